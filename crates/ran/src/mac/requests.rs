//! Uplink requests: scheduling requests and buffer status reports, and the eNodeB's estimate of a UE's backlog.
//!
//! Sources: 36.321 5.4.4 (scheduling request), 5.4.5 (buffer status report), 6.1.3.1 (its levels). Data that arrives at
//! a UE with empty buffers triggers a regular report; without a grant for it, a scheduling request is sent at the next
//! opportunity, repeatedly until a report is sent or `maximum` is reached, which leads to random access. The eNodeB's
//! estimate is the last report minus the grants made since the report was written.
//!
//! Deviations: in the standard a report excludes RLC and MAC headers; here it includes RLC's, as the sender has to
//! request them anyway; there is no prioritised bit rate. The eNodeB's behaviour is not standardised: it responds to a
//! request, and to the loss of a block, with [`Requests::first_grant`], and doubles the amount if its last grant was
//! used fully without a report. If a block arrives without data from a UE that reports some (a packet of a TM bearer
//! that does not fit), it grants more than before or, if it cannot, nothing until the UE requests again.

use units::Span;

use crate::slots::Slots;

/// Logical channel groups: NR's eight, of which LTE has four.
pub(crate) const GROUPS: usize = 8;
/// A MAC subheader and the one byte of a short buffer status report.
pub(crate) const SHORT_BSR: u32 = 2;
/// A MAC subheader and the three bytes of a long one.
pub(crate) const LONG_BSR: u32 = 4;
/// The maximum backlog in bytes that a cell assumes for a UE that does not report it.
pub(crate) const MOST_ASSUMED: u32 = 1 << 20;
/// Number of consecutive lost blocks after which an eNodeB stops granting, waits for a request, and no longer relies on the
/// UE's power headroom reports.
const MOST_LOST: u8 = 4;
/// The parameters of uplink requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Period of the opportunities for a scheduling request, in slots (in LTE 1, 2, 5, 10, 20, 40 or 80).
    pub sr_period: u16,
    /// Number of periods for which a request suppresses the next one (`sr-ProhibitTimer`, 0..7).
    pub sr_prohibit: u8,
    /// Number of requests before random access (`dsr-TransMax`: 4 to 64).
    pub sr_maximum: u8,
    /// Duration of random access from its beginning to the resulting grant: preamble, response, message 3, and
    /// contention.
    pub random_access: Span,
    /// When it expires, a report is due with the next grant (`periodicBSR-Timer`); `None` is infinity.
    pub bsr_periodic: Option<Span>,
    /// How long a UE with data waits without a grant before it requests again (`retxBSR-Timer`).
    pub bsr_retx: Span,
    /// Size in bytes of the grant that answers a scheduling request.
    pub first_grant: u32,
}

/// A buffer status report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The level of each group.
    pub(crate) levels: [u8; GROUPS],
    /// The maximum number of bytes that the levels represent.
    pub(crate) bytes: u32,
}

/// The UE's state: pending reports and requests. Times are TTIs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestState {
    /// A regular or periodic report is due with the next grant.
    pub(crate) report_due: bool,
    /// A regular report is due: without a grant, a scheduling request is sent.
    pub(crate) request_pending: bool,
    /// Whether the calendar has an entry for this UE's next opportunity.
    pub(crate) opportunity_noted: bool,
    /// Random access is in progress instead.
    pub(crate) random_access: bool,
    /// Random accesses so far, modulo 256: one that a grant has ended does not end the next.
    pub(crate) accesses: u8,
    /// The slot in which the first pending request was sent, and the slot from which the cell knows it; the last slot if
    /// none was.
    pub(crate) requested_at: u64,
    pub(crate) heard_from: u64,
    requests: u8,
    prohibited_until: u64,
    periodic_due: u64,
    pub(crate) retx_due: u64,
    /// Whether the calendar has an entry for `retx_due` or before it.
    pub(crate) retx_noted: bool,
}

/// The outcome of a scheduling request opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opportunity {
    /// No request was pending.
    Unused,
    /// The prohibit timer is running: try again at the next opportunity.
    Prohibited,
    /// A request was sent.
    Sent,
    /// The maximum number of requests was reached: random access begins.
    Exhausted,
}

impl RequestState {
    pub(crate) fn new() -> RequestState {
        RequestState {
            report_due: false,
            request_pending: false,
            opportunity_noted: false,
            random_access: false,
            accesses: 0,
            requested_at: u64::MAX,
            heard_from: u64::MAX,
            requests: 0,
            prohibited_until: 0,
            periodic_due: u64::MAX,
            retx_due: u64::MAX,
            retx_noted: false,
        }
    }

    /// Triggers a regular report: data arrived at empty buffers, or with a higher priority, or retxBSR-Timer expired
    /// (36.321 5.4.5).
    #[inline]
    pub(crate) fn trigger(&mut self) {
        self.report_due = true;
        if !self.request_pending {
            self.request_pending = true;
            self.requests = 0;
        }
    }

    /// Handles a scheduling request opportunity in a TTI without uplink data (36.321 5.4.4).
    pub(crate) fn opportunity_comes(&mut self, config: &Requests, tti: u64) -> Opportunity {
        if !self.request_pending || self.random_access {
            return Opportunity::Unused;
        }
        if tti < self.prohibited_until {
            return Opportunity::Prohibited;
        }
        if self.requests >= config.sr_maximum {
            self.random_access = true;
            self.accesses = self.accesses.wrapping_add(1);
            // 36.321 5.4.4: all pending requests are cancelled.
            (self.requested_at, self.heard_from) = (u64::MAX, u64::MAX);
            return Opportunity::Exhausted;
        }
        self.requests += 1;
        self.prohibited_until = tti + u64::from(config.sr_prohibit) * u64::from(config.sr_period.max(1));
        Opportunity::Sent
    }

    /// Called when a request was sent in slot `sent`, which the cell knows from slot `known` on.
    #[inline]
    pub(crate) fn sent(&mut self, sent: u64, known: u64) {
        self.requested_at = self.requested_at.min(sent);
        self.heard_from = self.heard_from.min(known);
    }

    /// Called when a transmission begins: makes a report due if the periodic timer has expired.
    #[inline]
    pub(crate) fn granted(&mut self, config: &Requests, slots: Slots, slot: u64) {
        if slot >= self.periodic_due {
            self.report_due = true;
        }
        self.retx_due = slot + slots.spanning(config.bsr_retx);
    }

    /// Called when a report of the remaining data is sent with this transmission.
    #[inline]
    pub(crate) fn reported(&mut self, config: &Requests, slots: Slots, slot: u64) {
        self.periodic_due = config.bsr_periodic.map_or(u64::MAX, |p| slot + slots.spanning(p));
        self.settled();
    }

    /// Called when no report is pending any more: one was sent, or all data was. Either cancels the request and stops
    /// sr-ProhibitTimer (36.321 5.4.4).
    #[inline]
    pub(crate) fn settled(&mut self) {
        self.report_due = false;
        self.request_pending = false;
        self.random_access = false;
        self.prohibited_until = 0;
        (self.requested_at, self.heard_from) = (u64::MAX, u64::MAX);
    }
}

/// The eNodeB's estimate of a UE's backlog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BufferEstimate {
    /// Bytes waiting that are not granted yet.
    pub(crate) waiting: u32,
    /// Bytes to grant in response to a request although no backlog is known; 0 without a request.
    pub(crate) asked: u32,
    /// Grants of the last 16 transmission TTIs: the TTI and the bytes. Those to come are never lost: they are at most as
    /// many as HARQ processes, although in slots at any distance.
    grants: [(u64, u32); 16],
    /// The last transmission TTI with a grant, and whether any grant is not at its TTI modulo 16.
    last: u64,
    are_displaced: bool,
    /// The sum of the grants for TTIs after `counted`, unless any is displaced.
    to_come: u32,
    counted: u64,
    /// When the newest report was written.
    written: u64,
    /// The backlog last assumed without a report since.
    assumed: u32,
    /// Number of consecutive blocks abandoned.
    lost: u8,
    /// The most bytes of room for data in a block that arrived without any, although the UE reported some: the waiting data
    /// needs more room.
    refused: u32,
    /// Bytes of the newest report.
    reported: u32,
}

impl BufferEstimate {
    /// Returns whether the UE should be scheduled.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.waiting > 0 || self.asked > 0
    }

    /// Records a grant in `now` of `bytes` of payload for a transmission in `tti`.
    #[inline]
    pub(crate) fn grant(&mut self, (now, tti): (u64, u64), bytes: u32) {
        self.count_until(now.saturating_sub(1));
        let mut place = (tti % 16) as usize;
        if self.grants[place].0 >= now {
            place = (0..16).min_by_key(|place| self.grants[*place].0).unwrap_or(place);
            self.are_displaced = true;
        }
        self.last = self.last.max(tti);
        self.grants[place] = (tti, bytes);
        if tti > self.counted {
            self.to_come += bytes;
        }
        self.waiting = self.waiting.saturating_sub(bytes);
        self.asked = 0;
    }

    /// Returns the bytes granted for TTIs after `tti`.
    #[inline]
    pub(crate) fn granted_after(&self, tti: u64) -> u32 {
        if self.last.saturating_sub(tti) >= 16 || self.are_displaced {
            return self.grants.iter().filter(|(at, _)| *at > tti).map(|(_, bytes)| *bytes).sum();
        }
        let there = (tti + 1..=self.last).map(|at| (at, self.grants[(at % 16) as usize]));
        there.filter(|(at, (of, _))| at == of).map(|(_, (_, bytes))| bytes).sum()
    }

    /// Returns the same for the present TTI, at less cost.
    #[inline]
    pub(crate) fn granted_from_now(&mut self, tti: u64) -> u32 {
        if self.are_displaced || tti < self.counted {
            return self.granted_after(tti);
        }
        self.count_until(tti);
        debug_assert_eq!(self.to_come, self.granted_after(tti), "the sum of the grants to come");
        self.to_come
    }

    /// Takes the grants for TTIs up to `tti` out of the sum.
    #[inline]
    fn count_until(&mut self, tti: u64) {
        if self.are_displaced {
            return;
        }
        for at in self.counted + 1..=tti.min(self.last) {
            let (of, bytes) = self.grants[(at % 16) as usize];
            self.to_come -= if of == at { bytes } else { 0 };
        }
        self.counted = self.counted.max(tti);
    }

    /// Processes a report that was written in `tti`.
    #[inline]
    pub(crate) fn learn(&mut self, report: &Report, tti: u64) {
        // A retransmitted transport block may bring an older report than a block that was not retransmitted.
        if tti >= self.written {
            self.written = tti;
            self.assumed = 0;
            self.reported = report.bytes;
            self.waiting = self.reported.saturating_sub(self.granted_after(tti));
        }
    }

    /// Called when a full transport block of `tti` with `bytes` arrived without a report: more data may wait. The
    /// assumed backlog doubles each time, so that a UE that never reports is not limited to small grants.
    #[inline]
    pub(crate) fn full_without_report(&mut self, tti: u64, bytes: u32) {
        if self.waiting == 0 && self.granted_after(tti) == 0 {
            self.assumed = self.assumed.max(bytes).saturating_mul(2).min(MOST_ASSUMED);
            self.waiting = self.assumed;
        }
    }

    /// Called when a transport block with `room` bytes for data arrived, with data, or without although the UE `reports`
    /// some.
    #[inline]
    pub(crate) fn carried(&mut self, room: u32, data: bool, reports: bool) {
        if data && room <= self.refused {
            self.refused = 0;
        } else if !data && reports {
            self.refused = self.refused.max(room);
        }
    }

    /// Returns the fewest bytes of room that the waiting data may need, if a block arrived without any of it.
    #[inline]
    pub(crate) fn least(&self) -> Option<u32> {
        (0 < self.refused && self.refused < self.reported).then_some(self.refused + 1)
    }

    /// Called when no block is large enough for the next packet: nothing is granted before the UE requests again.
    pub(crate) fn give_up(&mut self) {
        (self.waiting, self.asked, self.refused) = (0, 0, 0);
    }

    /// Returns whether the UE has a grant for a new transmission in `tti`.
    #[inline]
    pub(crate) fn has_grant(&self, tti: u64) -> bool {
        self.grants.iter().any(|(at, bytes)| *at == tti && *bytes > 0)
    }

    /// Called when a transport block was abandoned, possibly with a report; returns whether so many were in a row that the
    /// UE has to request again.
    #[inline]
    pub(crate) fn lost(&mut self, config: &Requests, tti: u64) -> bool {
        self.lost = self.lost.saturating_add(1);
        let is_many = self.lost > MOST_LOST;
        if !is_many {
            self.requested(config, tti);
        }
        is_many
    }

    /// Called when a transport block was decoded.
    #[inline]
    pub(crate) fn decoded(&mut self) {
        self.lost = 0;
    }

    /// Called when a scheduling request was received. If grants are pending, it has no effect.
    #[inline]
    pub(crate) fn requested(&mut self, config: &Requests, tti: u64) {
        if self.waiting == 0 && self.granted_after(tti) == 0 {
            self.asked = self.asked.max(config.first_grant);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rat::Reports;

    #[test]
    fn requests_respect_the_prohibit_timer_and_end_in_random_access() {
        let config = Requests { sr_period: 10, sr_prohibit: 2, sr_maximum: 2, ..Requests::default() };
        let mut request_state = RequestState::new();
        assert_eq!(request_state.opportunity_comes(&config, 0), Opportunity::Unused);
        request_state.trigger();
        let outcomes: Vec<_> = (0..6).map(|i| request_state.opportunity_comes(&config, i * 10)).collect();
        use Opportunity::{Exhausted, Prohibited, Sent, Unused};
        assert_eq!(outcomes, [Sent, Prohibited, Sent, Prohibited, Exhausted, Unused]);
        request_state.settled();
        request_state.trigger();
        assert_eq!(request_state.opportunity_comes(&config, 60), Sent, "a new request starts to count anew");
    }

    #[test]
    fn a_report_stops_the_prohibit_timer() {
        let config = Requests { sr_period: 10, sr_prohibit: 7, ..Requests::default() };
        let mut request_state = RequestState::new();
        request_state.trigger();
        assert_eq!(request_state.opportunity_comes(&config, 0), Opportunity::Sent);
        request_state.trigger();
        assert_eq!(request_state.opportunity_comes(&config, 10), Opportunity::Prohibited);
        request_state.reported(&config, Slots::LTE, 12);
        request_state.trigger();
        assert_eq!(request_state.opportunity_comes(&config, 20), Opportunity::Sent, "70 ms have not passed");
    }

    #[test]
    fn a_report_counts_less_what_was_granted_since_it_was_written() {
        let mut estimate = BufferEstimate::default();
        let report = Reports::Lte.report([0, 0, 0, 5000, 0, 0, 0, 0]);
        estimate.grant((20 - 4, 20), 1000);
        estimate.grant((22 - 4, 22), 2000);
        estimate.grant((24 - 4, 24), 500);
        estimate.learn(&report, 20);
        assert_eq!(estimate.waiting, 5476 - 2500);
        estimate.learn(&Report::default(), 19);
        assert_eq!(estimate.waiting, 5476 - 2500, "an older report changes nothing");
    }

    #[test]
    fn grants_to_come_are_counted_wherever_they_are_kept() {
        // The second has the place of the first, which is still to come.
        for second in [12, 26] {
            let mut estimate = BufferEstimate::default();
            estimate.grant((5, 10), 100);
            estimate.grant((8, second), 20);
            let to_come = [8, 10, second, second + 20].map(|tti| estimate.granted_after(tti));
            assert_eq!(to_come, [120, 20, 0, 0], "{second}");
        }
    }

    #[test]
    fn a_report_is_as_long_as_the_groups_that_have_data_need() {
        let size = |waiting: [u32; 4]| {
            let [a, b, c, d] = waiting;
            Reports::Lte.report_size(&[a, b, c, d, 0, 0, 0, 0])
        };
        assert_eq!([[0, 0, 0, 10], [0; 4], [1, 0, 0, 10]].map(size), [SHORT_BSR, SHORT_BSR, LONG_BSR]);
    }

    #[test]
    fn a_full_block_without_a_report_is_answered_by_one_more_grant() {
        let mut estimate = BufferEstimate::default();
        estimate.grant((10 - 4, 10), 300);
        estimate.full_without_report(9, 300);
        assert!(!estimate.wants(), "another grant is under way");
        estimate.full_without_report(10, 300);
        assert_eq!(estimate.waiting, 600);
        estimate.grant((18 - 4, 18), 600);
        assert!(!estimate.wants());
        estimate.full_without_report(18, 600);
        assert_eq!(estimate.waiting, 1200);
        estimate.learn(&Report::default(), 18);
        assert!(!estimate.wants());
    }

    #[test]
    fn grants_to_come_are_known_at_any_distance() {
        let mut estimate = BufferEstimate::default();
        for n in 0..16 {
            estimate.grant((7, 100 + 16 * n), 10);
        }
        assert_eq!((estimate.granted_after(99), estimate.granted_after(100)), (160, 150));
        assert!((0..16).all(|n| estimate.has_grant(100 + 16 * n)) && !estimate.has_grant(101));
    }

    #[test]
    fn a_block_that_was_too_small_is_followed_by_a_larger_one() {
        let mut estimate = BufferEstimate { reported: 1500, ..BufferEstimate::default() };
        assert_eq!(estimate.least(), None);
        estimate.carried(400, false, true);
        estimate.carried(200, false, true);
        assert_eq!(estimate.least(), Some(401));
        estimate.carried(1600, true, true);
        assert_eq!(estimate.least(), Some(401), "a larger one shows nothing new");
        estimate.reported = 300;
        assert_eq!(estimate.least(), None, "no packet is longer than all that waits");
        estimate.reported = 1500;
        estimate.carried(400, true, false);
        assert_eq!(estimate.least(), None);
    }
}
