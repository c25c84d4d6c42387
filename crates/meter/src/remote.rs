//! The sender of a download as its server tells it: its kernel's state, in the messages of ndt7 and throughput1.
//!
//! Servers are anyone's: a state is dropped if no kernel can have counted it, if it goes back, or if it comes too soon after another.

use observe::kernel::{Remote, State};
use speedtest::ndt7;
use speedtest::throughput1::is_congestion;
use units::{Span, Time};
use wire::tcp_info::TcpInfo;

/// The shortest interval between two states that are kept: servers wait for 25 ms at least.
const SHORTEST: Span = Span::from_millis(10);
/// How much older than its transfer a connection may be at the server: handshakes, and a wait for admission.
const OLDER: Span = Span::from_secs(10);
/// By how much a counter of time may grow more than time has passed: the kernel counts in jiffies, and a server that is busy
/// reads its clock a little earlier or later.
const JITTER: Span = Span::from_millis(100);
/// The largest payload of a segment.
const LARGEST_SEGMENT: u32 = 65_535;

/// What a server tells, with checks.
pub(crate) trait Listen {
    /// Sets the congestion control, unless the server has named one before.
    fn set_congestion(&mut self, congestion: &str);

    /// Takes a state of the server's kernel from `elapsed_us` after the start there. `from`: the start here, and how long
    /// after it the state arrived.
    fn take(&mut self, told: &ndt7::TcpInfo, bbr: Option<ndt7::BbrInfo>, elapsed_us: i64, from: (Time, Span));
}

impl Listen for Remote {
    fn set_congestion(&mut self, congestion: &str) {
        if self.congestion.is_empty() && is_congestion(congestion) {
            self.congestion = congestion.to_owned();
        }
    }

    fn take(
        &mut self,
        told: &ndt7::TcpInfo,
        bbr: Option<ndt7::BbrInfo>,
        elapsed_us: i64,
        (start, arrived): (Time, Span),
    ) {
        let oldest = arrived + OLDER;
        let Some(elapsed_us) = u64::try_from(elapsed_us).ok().filter(|&us| us <= oldest.as_micros()) else { return };
        let at = start + Span::from_micros(elapsed_us);
        let (info, is_whole) = told.state();
        let is_next = self.samples.last().is_none_or(|before| {
            at >= before.at + SHORTEST && follows(&before.info, &info, at.saturating_since(before.at))
        });
        if !is_next || !is_possible(&info, oldest) {
            return;
        }
        let is_whole = is_whole && info.snd_cwnd > 0 && info.snd_mss > 0;
        let bbr = bbr.and_then(|bbr| bbr.state());
        if bbr.is_some() {
            self.set_congestion("bbr");
        }
        self.is_partial |= !is_whole;
        self.lacks_state |= told.ca_state.is_none() || !is_whole;
        self.samples.push(State { at, raw: Box::default(), info, bbr, delivered: info.bytes_acked });
    }
}

/// Whether a connection that is at most so old can have this state. What held a busy sender back is a part of its busy time.
fn is_possible(info: &TcpInfo, oldest: Span) -> bool {
    let micros = |part: Option<u64>| part.unwrap_or(0);
    let (busy, held) = (micros(info.busy_time), micros(info.rwnd_limited).saturating_add(micros(info.sndbuf_limited)));
    let oldest = oldest.as_micros();
    u64::from(info.rtt) <= oldest && busy <= oldest && held <= busy && info.snd_mss <= LARGEST_SEGMENT
}

/// Whether a connection can have a state `span` after another one.
fn follows(before: &TcpInfo, after: &TcpInfo, span: Span) -> bool {
    let most = (span + JITTER).as_micros();
    let passes = |time: fn(&TcpInfo) -> Option<u64>| match (time(before), time(after)) {
        (Some(before), Some(after)) => after >= before && after - before <= most,
        (before, after) => before == after,
    };
    let times: [fn(&TcpInfo) -> Option<u64>; 3] =
        [|info| info.busy_time, |info| info.rwnd_limited, |info| info.sndbuf_limited];
    let counts: [fn(&TcpInfo) -> u64; 3] =
        [|info| info.bytes_acked, |info| info.total_retrans.into(), |info| info.data_segs_out.into()];
    times.into_iter().all(passes) && counts.into_iter().all(|count| count(after) >= count(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server with eleven fields tells of a sender that was busy for so many milliseconds.
    fn part(busy_ms: i64, rtt_us: i64) -> ndt7::TcpInfo {
        ndt7::TcpInfo {
            rtt: Some(rtt_us),
            busy_time: Some(busy_ms * 1_000),
            rwnd_limited: Some(0),
            sndbuf_limited: Some(0),
            bytes_acked: Some(busy_ms * 100),
            ..ndt7::TcpInfo::default()
        }
    }

    /// What remains of states at milliseconds of the server's clock, each of which arrives 50 ms later.
    fn taken(states: &[(i64, ndt7::TcpInfo)]) -> Vec<u64> {
        let mut remote = Remote::default();
        let start = Time::from_nanos(5_000_000_000);
        for (ms, told) in states {
            let arrived = Span::from_millis(ms.clamp(&0, &60_000).unsigned_abs() + 50);
            remote.take(told, None, ms * 1_000, (start, arrived));
        }
        remote.samples.iter().map(|sample| sample.at.saturating_since(start).as_millis()).collect()
    }

    #[test]
    fn states_are_kept_by_the_servers_clock() {
        let states = [(100, part(90, 20_000)), (350, part(340, 25_000)), (355, part(345, 25_000))];
        // The last one comes too soon.
        assert_eq!(taken(&states), [100, 350]);
    }

    #[test]
    fn states_that_no_kernel_can_have_counted_are_dropped() {
        let good = part(90, 20_000);
        let hostile = [
            (-5, good),
            (i64::MAX / 1_000, good),
            (200, part(i64::MAX / 1_000, 20_000)),
            (200, part(90, 4_000_000_000)),
            (200, ndt7::TcpInfo { rwnd_limited: Some(90_001), ..good }),
            (200, ndt7::TcpInfo { snd_mss: Some(65_536), ..good }),
        ];
        for one in hostile {
            assert_eq!(taken(&[one]), [0; 0], "{one:?}");
        }
        let second = [
            // Time and counters go back, or the sender was busy for longer than there was time.
            (90, part(190, 20_000)),
            (200, part(80, 20_000)),
            (200, part(90 + 201, 20_000)),
            (200, ndt7::TcpInfo { total_retrans: Some(-1), bytes_acked: Some(8_999), ..good }),
            (200, ndt7::TcpInfo { busy_time: None, ..good }),
        ];
        for one in second {
            assert_eq!(taken(&[(100, good), one]), [100], "{one:?}");
        }
    }

    #[test]
    fn a_flood_of_states_is_thinned_out() {
        let states: Vec<_> = (0..10_000).map(|ms| (ms, part(ms, 20_000))).collect();
        assert_eq!(taken(&states).len(), 1_000);
    }

    #[test]
    fn a_part_of_the_state_tells_no_windows() {
        let of = |told: &ndt7::TcpInfo, bbr: Option<ndt7::BbrInfo>| {
            let mut remote = Remote::default();
            remote.take(told, bbr, 100_000, (Time::ZERO, Span::from_millis(150)));
            remote
        };
        let remote = of(&part(90, 20_000), None);
        assert_eq!((remote.is_partial, remote.lacks_state, remote.congestion.as_str()), (true, true, ""));
        let whole = TcpInfo { rtt: 20_000, snd_cwnd: 10, snd_mss: 1_448, ..TcpInfo::default() };
        let whole = ndt7::TcpInfo::from(&whole);
        let gains = ndt7::BbrInfo { pacing_gain: 256, ..ndt7::BbrInfo::default() };
        let remote = of(&whole, Some(gains));
        assert_eq!((remote.is_partial, remote.lacks_state, remote.congestion.as_str()), (false, false, "bbr"));
        // Servers of msak send an empty one with another congestion control.
        assert_eq!(of(&whole, Some(ndt7::BbrInfo::default())).congestion, "");
        let mut named = Remote::default();
        named.set_congestion("x; rm -rf ~");
        named.set_congestion("cubic");
        named.set_congestion("bbr");
        assert_eq!(named.congestion, "cubic");
    }

    #[test]
    fn the_latest_state_lasts_until_the_next() {
        let mut remote = Remote::default();
        for ms in [100, 300] {
            remote.take(&part(ms, 1_000 * ms), None, ms * 1_000, (Time::ZERO, Span::from_secs(1)));
        }
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let latest = |ms: u64| {
            remote.latest(at(ms)).map(|(before, latest)| (before.map(|before| before.info.rtt), latest.info.rtt))
        };
        assert_eq!(latest(99), None);
        assert_eq!(latest(299), Some((None, 100_000)));
        assert_eq!(latest(300), Some((Some(100_000), 300_000)));
        assert!(remote.has_rtts() && !Remote::default().has_rtts());
    }
}
