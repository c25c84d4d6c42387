//! Pacing inside the stack (Linux `tcp_update_skb_after_send`, `tcp_pacing_check`).
//!
//! A burst of segments leaves at once, as a Linux TSO packet does, and the next waits for the time that the burst takes at
//! the pacing rate. Time lost before a burst is credited, to at most half of the burst's own time. The first ten data
//! segments of a connection leave unpaced: the burst of the tenth is the first that takes time.
//!
//! A burst is one packet of the stack, so it has consecutive data, all of it new or all of it sent again: each packet
//! that is retransmitted, and the first new one after it, waits for its own turn (`tcp_xmit_retransmit_queue`,
//! `tcp_write_xmit`).

use units::{Bytes, Rate, Span, Time};

/// The data segment of a connection whose burst is the first that the next one waits for.
const FIRST_PACED: u64 = 10;

/// When the next burst may leave.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    next: Time,
    /// Segments that the current burst may still send.
    left: u32,
    /// The data that it goes on with.
    follows: Data,
    credit: Span,
    /// The current burst takes time.
    counts: bool,
}

/// Where a segment's data begins in the stream, and whether it is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) seq: u64,
    pub(crate) again: bool,
}

impl Pacer {
    pub(crate) fn new() -> Pacer {
        Pacer { next: Time::ZERO, left: 0, follows: Data::default(), credit: Span::ZERO, counts: false }
    }

    /// Whether the segment with this data may leave now.
    #[inline]
    pub(crate) fn allows(&self, data: Data, now: Time) -> bool {
        self.next <= now || self.goes_on_with(data)
    }

    fn goes_on_with(&self, data: Data) -> bool {
        self.left > 0 && self.follows == data
    }

    /// When it may.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// A data segment of `len` bytes leaves, as the `count`-th of the connection, from 1.
    #[inline]
    pub(crate) fn on_sent(&mut self, data: Data, len: u32, rate: Rate, burst: u32, count: u64, now: Time) {
        if !self.goes_on_with(data) {
            self.credit = now.saturating_since(self.next);
            self.next = self.next.max(now);
            self.left = burst.max(1);
            self.counts = count + u64::from(self.left) > FIRST_PACED;
        }
        self.left -= 1;
        self.follows = Data { seq: data.seq + u64::from(len), ..data };
        if !self.counts || rate.bits_per_sec() == 0 {
            return;
        }
        let takes = rate.time_for(Bytes::new(u64::from(len)));
        let credited = self.credit.min(takes / 2);
        self.credit = self.credit.saturating_sub(credited);
        self.next = Time::from_nanos(self.next.as_nanos().saturating_add(takes.saturating_sub(credited).as_nanos()));
    }

    /// Nothing more can be sent now, so a burst ends early.
    #[inline]
    pub(crate) fn end_burst(&mut self) {
        self.left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(seq: u64) -> Data {
        Data { seq, again: false }
    }

    #[test]
    fn bursts_leave_together_and_wait_for_their_time() {
        let rate = Rate::from_mbps(8);
        let at = |us: u64| Time::from_nanos(us * 1000);
        let mut pacer = Pacer::new();
        pacer.on_sent(new(0), 1000, rate, 2, 10, at(0));
        assert!(pacer.allows(new(1000), at(0)));
        pacer.on_sent(new(1000), 1000, rate, 2, 11, at(0));
        assert!(!pacer.allows(new(2000), at(1999)));
        assert_eq!(pacer.next(), at(2000));
        // 600 us late: credited; 5 ms late: only half of the burst is.
        pacer.on_sent(new(2000), 1000, rate, 1, 12, at(2600));
        assert_eq!(pacer.next(), at(2600 + 500));
        pacer.on_sent(new(3000), 1000, rate, 1, 13, at(8100));
        assert_eq!(pacer.next(), at(8600));
    }

    #[test]
    fn what_is_sent_again_and_what_is_new_are_bursts_of_their_own() {
        let rate = Rate::from_mbps(8);
        let at = |us: u64| Time::from_nanos(us * 1000);
        let again = |seq| Data { seq, again: true };
        let mut pacer = Pacer::new();
        pacer.on_sent(again(5000), 1000, rate, 8, 20, at(0));
        // The next lost segment belongs to the same packet; one beyond a gap does not, and neither does new data.
        assert!(pacer.allows(again(6000), at(0)));
        assert!(!pacer.allows(again(7000), at(0)));
        assert!(!pacer.allows(new(6000), at(0)));
        assert!(pacer.allows(new(6000), at(1000)));
        pacer.on_sent(new(6000), 1000, rate, 8, 21, at(1000));
        assert!(pacer.allows(new(7000), at(1000)) && !pacer.allows(again(7000), at(1000)));
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacer = Pacer::new();
        for count in 1..=10 {
            let data = new(count * 1000);
            assert!(pacer.allows(data, Time::ZERO));
            pacer.on_sent(data, 1000, Rate::from_mbps(1), 1, count, Time::ZERO);
        }
        // The tenth takes 8 ms.
        assert!(!pacer.allows(new(11_000), Time::ZERO));
        assert_eq!(pacer.next(), Time::ZERO + Span::from_millis(8));
    }
}
