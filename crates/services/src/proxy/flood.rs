//! Notices when half-open connections fill the queues of the listeners, as in a SYN flood.
//!
//! From then on the kernel answers SYNs with cookies and remembers nothing of them. The acknowledgement of a cookie has no socket
//! that the rule of nftables could find; it passes to the destination, which resets the connection. So new connections bypass the
//! proxy while the kernel sends cookies, and for a moment after. Hidden listeners get no more SYNs, and the kernel drops
//! half-open connections until half of their queues is free.

use std::time::{Duration, Instant};

/// For how long new connections bypass the proxy after the last cookie. A queue that is more than half full keeps a half-open
/// connection for 7 s: the kernel repeats its answer twice, after 1 s and 2 s more, and waits for another 4 s.
const PAUSE: Duration = Duration::from_secs(8);
/// A flood that goes on costs new connections in each attempt to listen again, so pauses double up to this one.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// A flood so soon after another one is the same.
const MEMORY: Duration = Duration::from_secs(60);

/// Whether there is a flood, by the counters of the kernel.
#[derive(Debug)]
pub(super) struct Flood {
    /// What [`refused`] returned last.
    refused: Option<u64>,
    /// Until when new connections bypass the proxy, if they do.
    until: Option<Instant>,
    /// The present or last pause.
    pause: Duration,
    /// When the last pause ended.
    ended: Option<Instant>,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Began,
    Ended,
}

impl Flood {
    pub(super) fn new() -> Flood {
        Flood { refused: refused(), until: None, pause: PAUSE, ended: None }
    }

    /// Looks at the counters. Call it several times a second, in the network namespace of the listeners.
    pub(super) fn look(&mut self, now: Instant) -> Option<Change> {
        self.on_count(now, refused())
    }

    /// `refused` is `None` if it cannot be known at the moment.
    fn on_count(&mut self, now: Instant, refused: Option<u64>) -> Option<Change> {
        let before = self.refused;
        self.refused = refused.or(before);
        let rises = before.is_some() && self.refused > before;
        match self.until {
            Some(_) if rises => {
                self.until = Some(now + self.pause);
                None
            }
            Some(until) if now >= until => {
                (self.until, self.ended) = (None, Some(now));
                Some(Change::Ended)
            }
            None if rises => {
                let goes_on = self.ended.is_some_and(|ended| now.saturating_duration_since(ended) < MEMORY);
                self.pause = if goes_on { (2 * self.pause).min(LONGEST_PAUSE) } else { PAUSE };
                self.until = Some(now + self.pause);
                Some(Change::Began)
            }
            _ => None,
        }
    }
}

/// Returns how many SYNs the kernel has answered with cookies, or dropped, because a queue was full. They may have been those of
/// another program in the same network namespace.
fn refused() -> Option<u64> {
    let counters = std::fs::read_to_string("/proc/thread-self/net/netstat").ok()?;
    // Without cookies, it drops the SYNs of unknown clients before a queue is full.
    let cookies = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_syncookies").ok()?;
    let names: &[&str] = match cookies.trim() {
        "0" => &["TCPReqQFullDrop", "ListenDrops"],
        _ => &["SyncookiesSent"],
    };
    sum(&counters, names)
}

/// Returns the sum of the counters with these names in `TcpExt` of `/proc/net/netstat`, where a line of names precedes one of
/// values.
fn sum(netstat: &str, names: &[&str]) -> Option<u64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (all, values) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    let counted = all.zip(values).filter(|(name, _)| names.contains(name));
    Some(counted.filter_map(|(_, value)| value.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_connections_bypass_the_proxy_from_the_first_cookie_until_a_pause_after_the_last() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut flood = Flood { refused: Some(5), until: None, pause: PAUSE, ended: None };
        assert_eq!(flood.on_count(at(0), Some(5)), None);
        assert_eq!(flood.on_count(at(1), Some(6)), Some(Change::Began));
        assert_eq!(flood.on_count(at(2), Some(7)), None);
        assert_eq!(flood.on_count(at(9), Some(7)), None);
        assert_eq!(flood.on_count(at(10), Some(7)), Some(Change::Ended));
        assert_eq!(flood.on_count(at(11), Some(7)), None);
    }

    #[test]
    fn a_flood_that_goes_on_makes_pauses_longer_and_a_later_one_does_not() {
        let start = Instant::now();
        let mut flood = Flood { refused: Some(0), until: None, pause: PAUSE, ended: None };
        let (mut now, mut count) = (start, 0);
        let mut pauses = Vec::new();
        for wait in [0, 1, 1, 1, 1, 61] {
            now += Duration::from_secs(wait);
            count += 1;
            assert_eq!(flood.on_count(now, Some(count)), Some(Change::Began));
            pauses.push(flood.pause.as_secs());
            now += flood.pause;
            assert_eq!(flood.on_count(now, Some(count)), Some(Change::Ended));
        }
        assert_eq!(pauses, [8, 16, 32, 64, 64, 8]);
    }

    #[test]
    fn counters_that_cannot_be_read_for_a_while_change_nothing() {
        let now = Instant::now();
        let mut flood = Flood { refused: None, until: None, pause: PAUSE, ended: None };
        assert_eq!(flood.on_count(now, Some(100)), None);
        assert_eq!(flood.on_count(now, None), None);
        assert_eq!(flood.on_count(now, Some(100)), None);
        assert_eq!(flood.on_count(now, Some(101)), Some(Change::Began));
    }

    #[test]
    fn counters_are_found_by_name() {
        let netstat =
            "TcpExt: SyncookiesSent SyncookiesRecv ListenDrops\nTcpExt: 7 8 90\nIpExt: SyncookiesSent\nIpExt: 1\n";
        assert_eq!(sum(netstat, &["SyncookiesSent"]), Some(7));
        assert_eq!(sum(netstat, &["ListenDrops", "SyncookiesSent"]), Some(97));
        assert_eq!(sum(netstat, &["Unknown"]), Some(0));
        assert_eq!(sum("", &["SyncookiesSent"]), None);
    }
}
