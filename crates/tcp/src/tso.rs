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

    /// A sender of segments of 1000 bytes that makes packets of nine of them, with one in flight, and whose next acknowledgement
    /// is due in a millisecond at 10 ms: it may wait for up to 9000 bytes of room.
    fn waiting() -> Sender<cc::new_reno::NewReno> {
        let config = crate::Config { send_buffer: crate::SendBuffer::Fixed(u64::MAX), ..crate::Config::default() };
        let mut s = Sender::new(&config, cc::new_reno::NewReno::new(100), 0, Time::ZERO);
        s.begin(1000, true, Time::ZERO);
        s.window = 1 << 30;
        s.limits.pacing = Some(Rate::from_bits_per_sec(8 * 10_000_000));
        s.written = 1 + 100_000;
        s.queue.push(crate::queue::Record { seq: 1, len: 0, sent: Time::ZERO, ..Default::default() });
        s.path.srtt = Some(Span::from_millis(11));
        s.last_data = Some(at(9));
        s
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Whether it waits with so much room, after a change.
    fn waits(limit: u64, change: impl FnOnce(&mut Sender<cc::new_reno::NewReno>)) -> bool {
        let mut s = waiting();
        change(&mut s);
        let both = [s.can_wait(limit, 1 << 20, at(10)), s.can_wait(1 << 20, limit, at(10))];
        assert_eq!(both[0], both[1], "whichever window has less room");
        both[0]
    }

    #[test]
    fn a_part_of_a_packet_waits_only_for_what_comes_soon() {
        assert!(waits(5_000, |_| {}));
        // A whole packet does not wait: nine segments.
        assert!(waits(8_999, |_| {}) && !waits(9_000, |_| {}));
        // A third of the window does not, whichever is smaller.
        assert!(waits(4_999, |s| s.limits.cwnd = 15) && !waits(5_000, |s| s.limits.cwnd = 15));
        assert!(waits(4_999, |s| s.window = 15_000) && !waits(5_000, |s| s.window = 15_000));
        // What the application has written in all goes as it is, if there is room for all of it.
        assert!(waits(8_000, |s| s.written = 8_001) && !waits(8_001, |s| s.written = 8_001));
        assert!(!waits(500, |s| s.written = 1_001) && waits(500, |s| s.written = 1_002));
        // A sender that was silent for more than a millisecond does not wait.
        assert!(!waits(5_000, |s| s.last_data = Some(Time::from_nanos(8_999_999))));
        assert!(!waits(5_000, |s| s.last_data = None));
        // An acknowledgement is expected in more than a millisecond, or not at all.
        assert!(!waits(5_000, |s| s.path.srtt = Some(Span::from_nanos(11_000_001))));
        assert!(!waits(5_000, |s| s.path.srtt = None));
        assert!(!waits(5_000, |s| s.queue.free()));
        // Or in more than half of a round trip: 1.6 ms after 0.6 ms, and 0.8 are half.
        let short = |sent: u64| {
            move |s: &mut Sender<_>| {
                s.path.srtt = Some(Span::from_micros(1_600));
                s.queue.get_mut(0).sent = Time::from_nanos(sent * 1_000);
            }
        };
        assert!(waits(5_000, short(9_200)) && !waits(5_000, short(9_201)));
        for phase in [Phase::Recovery, Phase::Loss] {
            assert!(!waits(5_000, |s| s.recovery.phase = phase));
        }
        assert!(waits(5_000, |s| s.recovery.phase = Phase::Cwr));
    }

    #[test]
    fn a_packet_takes_half_of_the_window_at_most_and_what_there_is_room_for() {
        // The window, what is in flight besides the one, and the segments of the next packet.
        for (cwnd, receive, left) in
            [(100, 1 << 30, 9), (10, 1 << 30, 5), (100, 4_000, 4), (3, 1 << 30, 1), (100, 500, 1)]
        {
            let mut s = waiting();
            (s.limits.cwnd, s.window) = (cwnd, receive);
            (s.next, s.last_data) = (1, None);
            assert!(!s.defers(false, at(10)));
            assert_eq!((s.tso.size, s.tso.left, s.tso.begins), (left, left - 1, true), "{cwnd} {receive}");
        }
        // A FIN with the rest of the data leaves alone; and without the interface's help nothing waits.
        let mut s = waiting();
        assert!(!s.defers(true, at(10)));
        assert_eq!((s.tso.size, s.tso.left, s.tso.begins), (1, 0, true));
        s.tso.on = false;
        assert!(!s.defers(false, at(10)));
    }

    #[test]
    fn a_packet_is_a_millisecond_of_segments_and_at_least_a_burst() {
        let mut s = waiting();
        for (rate, segments) in [(10_240_000, 10), (10_239_999, 9), (1_000, 2), (1 << 40, 65)] {
            s.limits.pacing = Some(Rate::from_bits_per_sec(8 * rate));
            assert_eq!(s.packet_segments(), segments, "{rate}");
        }
        s.limits.pacing = None;
        s.path.stack_rate = cc::StackRate::new(8 * 10_240_000, Span::from_secs(1));
        assert_eq!(s.packet_segments(), 10);
        s.path.min_rtt = Some(Span::from_micros(1_600));
        assert_eq!(s.packet_segments(), 18, "8151 bytes more for 1.6 ms");
    }
}
