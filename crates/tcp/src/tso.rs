//! Bursts of a sender whose interface, or the stack in front of it, cuts long packets into segments (TSO, GSO).
//!
//! Source: Linux `tcp_output.c` (`tcp_tso_autosize`, `tcp_tso_should_defer`). A packet is a millisecond's worth of
//! segments, two at least. While the congestion window has room for a part of one only, the sender waits for the next
//! acknowledgement, if it has sent within the last millisecond, the window has less than a third of itself to spare, and
//! the acknowledgement can be expected soon.
//!
//! Deviations:
//! 1. What the application has written lies in packets of 64 kB; Linux cuts them where writes and windows happened to end.
//! 2. Without this ([`crate::Config::tso`]), every segment is a packet, and only a pacer keeps a packet's worth of them
//!    together ([`crate::pacing`]).

pub(crate) mod state;

use crate::sender::Sender;
use cc::{Controller, Phase};
use units::{Rate, Span, Time};

/// The longest packet that an interface takes, less room for headers (`sk_gso_max_size`).
pub(crate) const LONGEST: u64 = 65_215;
/// A part of a packet is kept back only if the last was sent less than this ago.
const RECENT: Span = Span::from_millis(1);
/// And only if the next acknowledgement can be expected within this, and within half of a round trip.
const ACK_IS_NEAR: Span = Span::from_millis(1);
/// The share of a window that is sent even if it is a part of a packet (`tcp_tso_win_divisor`).
const WINDOW_SHARE: u64 = 3;
/// A short round-trip time adds to a packet: [`LONGEST`], halved once for every 2^9 us of that time (`tcp_tso_rtt_log`).
const RTT_LOG: u32 = 9;

impl<C: Controller> Sender<C> {
    /// Whether the next new segment waits, because a longer packet can be sent soon. It has room in both windows, but that
    /// with the FIN, which does not wait.
    #[inline(always)]
    pub(crate) fn defers(&mut self, fin: bool, now: Time) -> bool {
        self.tso.on && self.waits_for_the_rest(fin, now)
    }

    #[inline(never)]
    fn waits_for_the_rest(&mut self, fin: bool, now: Time) -> bool {
        if self.tso.left == 0 && fin {
            self.tso.begin_alone();
            return false;
        }
        if self.tso.left == 0 {
            let mss = u64::from(self.path.mss);
            let quota = u64::from(self.limits.cwnd.saturating_sub(self.queue.in_flight())) * mss;
            let window = self.window_end().saturating_sub(self.next);
            if self.can_wait(quota, window, now) {
                self.tso.deferred = quota < window;
                return true;
            }
            // `tcp_cwnd_test`: no packet takes more than half of the window.
            let half = self.limits.cwnd / 2;
            let segments = ((quota.min(window) / mss) as u32).min(half);
            self.tso.left = self.packet_segments().min(segments).max(1);
            (self.tso.size, self.tso.begins) = (self.tso.left, true);
        }
        self.tso.left -= 1;
        false
    }

    /// `tcp_tso_should_defer`, for a packet in front of a congestion window and a receive window with so many bytes left.
    /// Follows 6.18, and 6.1 since a fix of 2025: the first 6.1 waited for what was expected within half a round trip.
    fn can_wait(&self, quota: u64, window: u64, now: Time) -> bool {
        let mss = u64::from(self.path.mss);
        let limit = quota.min(window);
        let whole = u64::from(self.packet_segments()) * mss;
        let unsent = self.buffered();
        let packet = unsent.min(LONGEST / mss * mss);
        let in_use = self.window.min(u64::from(self.limits.cwnd) * mss);
        let soon =
            |srtt: Span| self.queue.front().is_some_and(|first| first.sent + srtt <= now + (srtt / 2).min(ACK_IS_NEAR));
        packet > mss
            && !matches!(self.recovery.phase, Phase::Recovery | Phase::Loss)
            && self.last_data.is_some_and(|last| now.saturating_since(last) <= RECENT)
            && limit < whole
            && (packet == unsent || limit < packet)
            && limit < in_use / WINDOW_SHARE
            && self.path.srtt.is_some_and(soon)
            && limit <= packet
    }

    /// `tcp_tso_autosize`, in segments: a millisecond's worth, and more where the round-trip time is short (since 5.18).
    #[inline]
    pub(crate) fn packet_segments(&self) -> u32 {
        let rate = self.limits.pacing.or_else(|| self.path.stack_rate.get()).map_or(0, Rate::bytes_per_sec);
        let bytes = ((rate >> 10) + more_for(self.path.min_rtt)).min(LONGEST);
        ((bytes / u64::from(self.path.mss.max(1))) as u32).max(self.limits.burst)
    }
}

/// The bytes that a packet is longer by for the sake of a short round-trip time.
fn more_for(min_rtt: Option<Span>) -> u64 {
    let halvings = min_rtt.map_or(u64::MAX, |rtt| rtt.as_micros() >> RTT_LOG);
    u32::try_from(halvings).ok().and_then(|by| LONGEST.checked_shr(by)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_round_trip_makes_longer_packets() {
        let more = |micros: u64| more_for(Some(Span::from_micros(micros)));
        assert_eq!([more(100), more(512), more(1_600), more(20_000)], [65_215, 32_607, 8_151, 0]);
        assert_eq!(more_for(None), 0);
    }
}
