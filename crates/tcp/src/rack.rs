//! RACK-TLP's own state and loss detection by time (RFC 8985; Linux `tcp_recovery.c`).
//!
//! Deviation: which of two segments was sent first is known by counting transmissions. Linux compares times of transmission,
//! which in the kernel are hardly ever equal, and breaks ties by sequence number (RFC 8985 section 6.2 step 2).
//! In virtual time several acknowledgements arrive at one moment, so a new segment and a retransmission that follows it
//! leave at one moment too; by sequence number the retransmission would count as sent before the new segment, and as
//! lost once that is delivered.

use crate::queue::{EVER_RETRANSMITTED, Queue, RETRANSMITTED, Record};
use cc::Phase;
use units::{Span, Time};

/// Recoveries after which a widened reordering window is narrowed again (RFC 8985 section 6.2 step 4).
const PERSIST: u8 = 16;

#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The place of the newest delivered segment among all transmissions.
    newest: u64,
    /// The round-trip time of the segment delivered last.
    rtt: Span,
    /// These changed since losses were last looked for.
    pub(crate) advanced: bool,
    /// Reordering in segments (`tp->reordering`), and whether any was seen.
    pub(crate) reordering: u32,
    pub(crate) reordered: bool,
    /// Multiples of a quarter of the smallest round-trip time.
    steps: u8,
    persist: u8,
    pub(crate) d_sack_seen: bool,
    /// The count of delivered segments when `steps` was last raised.
    last_delivered: u64,
    /// SND.NXT when the tail loss probe was sent; 0 if none is out.
    pub(crate) probe_end: u64,
    /// It was a retransmission.
    pub(crate) probe_retransmitted: bool,
    /// What a lone segment's acknowledgement may be delayed by.
    pub(crate) delayed_ack: Span,
}

impl Rack {
    pub(crate) fn new(delayed_ack: Span) -> Rack {
        Rack {
            newest: 0,
            rtt: Span::ZERO,
            advanced: false,
            reordering: 3,
            reordered: false,
            steps: 1,
            persist: 0,
            d_sack_seen: false,
            last_delivered: 0,
            probe_end: 0,
            probe_retransmitted: false,
            delayed_ack,
        }
    }

    /// A segment was delivered (RFC 8985 section 6.2 steps 1 and 2; Linux `tcp_rack_advance`).
    #[inline]
    pub(crate) fn on_delivered(&mut self, record: &Record, min_rtt: Option<Span>, now: Time) {
        let rtt = now.saturating_since(record.sent);
        if record.has(RETRANSMITTED | EVER_RETRANSMITTED) && min_rtt.is_some_and(|min| rtt < min) {
            // More likely the original than the retransmission.
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max(record.order);
    }

    /// The reordering window (section 6.2 step 4; Linux `tcp_rack_reo_wnd`).
    fn window(&self, phase: Phase, sacked: u32, min_rtt: Option<Span>, srtt: Option<Span>) -> Span {
        if !self.reordered && (matches!(phase, Phase::Recovery | Phase::Loss) || sacked >= self.reordering) {
            return Span::ZERO;
        }
        let min_rtt = min_rtt.unwrap_or(Span::ZERO);
        (min_rtt / 4 * u64::from(self.steps)).min(srtt.unwrap_or(Span::MAX))
    }

    /// Marks what must be lost by now and gives to `each` whether it was a retransmission; when to look again, if some may
    /// be (section 6.2 step 5; Linux `tcp_rack_detect_loss`).
    pub(crate) fn detect(
        &mut self,
        queue: &mut Queue,
        phase: Phase,
        path: &cc::Path,
        now: Time,
        mut each: impl FnMut(bool),
    ) -> Option<Time> {
        let window = self.window(phase, queue.sacked_out, path.min_rtt, path.srtt);
        queue.advance_edge(self.newest);
        while let Some((id, sent)) = queue.oldest_before_edge() {
            if now.saturating_since(sent) < self.rtt + window {
                break;
            }
            match queue.mark_lost(id) {
                Some(again) => each(again),
                None => queue.unlink(id),
            }
        }
        queue.edge_sent().map(|sent| sent + self.rtt + window)
    }

    /// Whether a segment sent then has been out for longer than a round trip (`tcp_rack_skb_timeout`).
    pub(crate) fn is_old(&self, sent: Time, now: Time) -> bool {
        now.saturating_since(sent) >= self.rtt
    }

    /// Widens the window by a step for each round trip with a D-SACK (Linux `tcp_rack_update_reo_wnd`).
    #[inline]
    pub(crate) fn update_steps(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        let Some(prior) = prior_delivered else { return };
        if prior < self.last_delivered {
            self.d_sack_seen = false;
        }
        if self.d_sack_seen {
            self.steps = self.steps.saturating_add(1);
            self.d_sack_seen = false;
            self.last_delivered = delivered;
            self.persist = PERSIST;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// A recovery ended that was needed.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// A recovery was needless.
    pub(crate) fn on_needless_recovery(&mut self) {
        self.persist = (self.persist + 1).min(PERSIST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rate;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn path(min_rtt: u64, srtt: u64) -> cc::Path {
        cc::Path {
            mss: 100,
            srtt: Some(MS(srtt)),
            min_rtt: Some(MS(min_rtt)),
            rto: MS(300),
            stack_rate: cc::StackRate::new(Rate::from_mbps(1).bits_per_sec(), MS(1000)),
            paced: false,
            shrinks_idle: true,
            departure: Time::ZERO,
        }
    }

    #[test]
    fn the_reordering_window_is_a_quarter_of_the_least_round_trip_for_each_step() {
        // Until reordering is seen, there is none in recovery, and none after three reports.
        let rack = Rack::new(MS(200));
        let window = |rack: &Rack, phase, sacked| rack.window(phase, sacked, Some(MS(80)), Some(MS(100)));
        assert_eq!(window(&rack, Phase::Open, 2), MS(20));
        for phase in [Phase::Recovery, Phase::Loss] {
            assert_eq!(window(&rack, phase, 0), Span::ZERO);
        }
        assert_eq!(window(&rack, Phase::Disorder, 3), Span::ZERO);
        assert_eq!(window(&rack, Phase::Cwr, 2), MS(20));
        let patient = Rack { reordered: true, ..rack.clone() };
        assert_eq!(window(&patient, Phase::Recovery, 9), MS(20));
        let wide = Rack { steps: 4, ..patient.clone() };
        assert_eq!(window(&wide, Phase::Open, 0), MS(80));
        // No more than the smoothed round-trip time.
        assert_eq!(window(&Rack { steps: 9, ..patient }, Phase::Open, 0), MS(100));
        assert_eq!(rack.window(Phase::Open, 0, None, None), Span::ZERO);
    }

    #[test]
    fn d_sacks_widen_the_window_once_a_round_trip_for_sixteen_recoveries() {
        let mut rack = Rack::new(MS(200));
        rack.d_sack_seen = true;
        rack.update_steps(None, 50);
        assert!(rack.d_sack_seen, "an acknowledgement that delivers nothing tells no round trip");
        rack.update_steps(Some(10), 50);
        assert_eq!((rack.steps, rack.d_sack_seen), (2, false));
        // What was sent before the 50th was delivered belongs to the same round trip.
        rack.d_sack_seen = true;
        rack.update_steps(Some(49), 60);
        assert_eq!((rack.steps, rack.d_sack_seen), (2, false));
        rack.d_sack_seen = true;
        rack.update_steps(Some(50), 70);
        assert_eq!(rack.steps, 3);
        for _ in 0..15 {
            rack.on_recovered();
        }
        rack.update_steps(Some(80), 90);
        assert_eq!(rack.steps, 3);
        // A needless recovery keeps it for one more.
        rack.on_needless_recovery();
        rack.on_recovered();
        rack.update_steps(Some(90), 95);
        assert_eq!(rack.steps, 3);
        rack.on_recovered();
        rack.update_steps(Some(95), 99);
        assert_eq!(rack.steps, 1);
        (0..40).for_each(|_| rack.on_needless_recovery());
        assert_eq!(rack.persist, PERSIST);
    }

    #[test]
    fn a_retransmission_acknowledged_sooner_than_possible_tells_nothing() {
        let record = |flags, order| Record { sent: at(100), flags, order, ..Record::default() };
        for flags in [RETRANSMITTED, EVER_RETRANSMITTED] {
            let mut rack = Rack::new(MS(200));
            rack.on_delivered(&record(flags, 5), Some(MS(50)), at(149));
            assert_eq!((rack.advanced, rack.newest, rack.rtt), (false, 0, Span::ZERO));
            rack.on_delivered(&record(flags, 5), Some(MS(50)), at(150));
            assert_eq!((rack.advanced, rack.newest, rack.rtt), (true, 5, MS(50)));
        }
        let mut rack = Rack::new(MS(200));
        rack.on_delivered(&record(0, 5), Some(MS(50)), at(120));
        assert_eq!((rack.newest, rack.rtt), (5, MS(20)));
        // An older one gives its round-trip time, and the newest stays.
        rack.on_delivered(&record(0, 3), Some(MS(50)), at(130));
        assert_eq!((rack.newest, rack.rtt), (5, MS(30)));
        assert!(rack.is_old(at(100), at(130)) && !rack.is_old(at(101), at(130)));
    }

    #[test]
    fn what_was_sent_before_the_newest_is_lost_after_a_round_trip_and_the_window() {
        let mut queue = Queue::default();
        for n in 0..6 {
            queue.push(Record { seq: n * 100, len: 100, sent: at(100 + n), ..Record::default() });
        }
        let mut rack = Rack { reordered: true, ..Rack::new(MS(200)) };
        // The fifth was delivered at 144 ms, after 40 ms: what was sent by then may be 10 ms late.
        let fifth = *queue.get(4);
        queue.unlink(4);
        rack.on_delivered(&fifth, Some(MS(40)), at(144));
        let mut detect = |now| {
            let mut lost = 0;
            let next = rack.detect(&mut queue, Phase::Open, &path(40, 40), at(now), |again| lost += u32::from(!again));
            (lost, next)
        };
        assert_eq!(detect(149), (0, Some(at(153))));
        assert_eq!(detect(150), (1, Some(at(153))));
        assert_eq!(detect(152), (2, Some(at(153))));
        // The last, sent after the one delivered, is not looked at.
        assert_eq!(detect(500), (1, None));
        assert_eq!(detect(900), (0, None));
        assert_eq!(queue.lost_out, 4);
    }
}
