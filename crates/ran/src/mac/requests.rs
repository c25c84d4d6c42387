//! How a UE comes to send: scheduling requests and buffer status reports, and what the eNodeB knows by them.
//!
//! Sources: 36.321 5.4.4 (scheduling request), 5.4.5 (buffer status report), 6.1.3.1 (its levels). Data that arrives at a
//! UE with empty buffers triggers a regular report; without a grant for it, a scheduling request goes out at the next
//! opportunity, again and again until a report is sent or `maximum` is reached, which leads to random access. What the
//! eNodeB believes is the last report less what it has granted since the report was written.
//!
//! Deviations: the report's size leaves RLC and MAC headers out in the standard and includes RLC's here, as the sender
//! has to ask for them anyway; there is no prioritised bit rate. The eNodeB's part is not standardised: it answers a
//! request with [`Requests::first_grant`], and the loss of a block too, and goes on with twice as much when its last
//! grant came back full without a report. If a block comes without data from a UE that reports some (a packet of a TM
//! bearer that does not fit), it grants more than before or, where it cannot, nothing until the UE asks again.

use units::Span;

use crate::slots::Slots;

/// Logical channel groups.
pub(crate) const GROUPS: usize = 4;
/// A MAC subheader and the one byte of a short buffer status report.
pub(crate) const SHORT_BSR: u32 = 2;
/// A MAC subheader and the three bytes of a long one.
pub(crate) const LONG_BSR: u32 = 4;
/// The most that an eNodeB assumes to wait at a UE that does not report, in bytes.
const MOST_ASSUMED: u32 = 1 << 20;
/// Blocks in a row after whose loss an eNodeB grants another: then it waits for a request.
const MOST_LOST: u8 = 4;
/// How UEs ask for uplink resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Period of the opportunities for a scheduling request, in TTIs (1, 2, 5, 10, 20, 40 or 80).
    pub sr_period: u8,
    /// For how many periods a request holds back the next one (`sr-ProhibitTimer`, 0..7).
    pub sr_prohibit: u8,
    /// Requests before random access (`dsr-TransMax`: 4 to 64).
    pub sr_maximum: u8,
    /// How long random access takes from its beginning to the grant that follows it: preamble, response, message 3, and
    /// contention.
    pub random_access: Span,
    /// After this a report is due with the next grant (`periodicBSR-Timer`); `None` is infinity.
    pub bsr_periodic: Option<Span>,
    /// After this without a grant a UE that has data asks again (`retxBSR-Timer`).
    pub bsr_retx: Span,
    /// Bytes that a scheduling request is answered with.
    pub first_grant: u32,
}

impl Default for Requests {
    fn default() -> Self {
        Requests {
            sr_period: 10,
            sr_prohibit: 1,
            sr_maximum: 64,
            random_access: Span::from_millis(24),
            bsr_periodic: Some(Span::from_millis(10)),
            bsr_retx: Span::from_millis(320),
            first_grant: 150,
        }
    }
}

/// A buffer status report: the level of each group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) levels: [u8; GROUPS],
}

impl Report {
    /// The report for so many bytes in each group.
    #[inline]
    pub(crate) fn of(bytes: [u32; GROUPS]) -> Report {
        Report { levels: bytes.map(channel::tables::lte::bsr_index) }
    }

    /// The most that the levels can mean, in bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> u32 {
        self.levels.iter().map(|l| if *l == 0 { 0 } else { channel::tables::lte::bsr_bytes(*l) }).sum()
    }

    /// Its size in a transport block with the subheader: short if at most one group has data.
    #[inline]
    pub(crate) fn size(bytes: &[u32; GROUPS]) -> u32 {
        if bytes.iter().filter(|b| **b > 0).count() > 1 { LONG_BSR } else { SHORT_BSR }
    }
}

/// The UE's side: what it still has to tell. Times are TTIs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// A regular or periodic report waits for a grant.
    pub(crate) report_due: bool,
    /// A regular one does: without a grant, a scheduling request goes out.
    pub(crate) request_pending: bool,
    /// Whether the calendar holds this UE's next opportunity.
    pub(crate) opportunity_noted: bool,
    /// Random access is under way instead.
    pub(crate) random_access: bool,
    requests: u8,
    prohibited_until: u64,
    periodic_due: u64,
    pub(crate) retx_due: u64,
    /// Whether the calendar holds a wake-up for `retx_due` or before it.
    pub(crate) retx_noted: bool,
}

/// What an opportunity for a scheduling request led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opportunity {
    /// There was nothing to ask for.
    Unused,
    /// The prohibit timer runs: try again at the next.
    Prohibited,
    /// It was sent.
    Sent,
    /// It was sent too often: random access begins.
    Exhausted,
}

impl Asking {
    pub(crate) fn new() -> Asking {
        Asking {
            report_due: false,
            request_pending: false,
            opportunity_noted: false,
            random_access: false,
            requests: 0,
            prohibited_until: 0,
            periodic_due: u64::MAX,
            retx_due: u64::MAX,
            retx_noted: false,
        }
    }

    /// The first opportunity at or after `tti` for the UE whose opportunities are `offset` into each period.
    #[inline]
    pub(crate) fn opportunity(config: &Requests, offset: u32, tti: u64) -> u64 {
        let period = u64::from(config.sr_period.max(1));
        let phase = u64::from(offset) % period;
        let ahead = (tti + period - phase) % period;
        if ahead == 0 { tti } else { tti + period - ahead }
    }

    /// Data has come to empty buffers, or of a higher priority than any, or was not asked for too long (36.321 5.4.5).
    #[inline]
    pub(crate) fn trigger(&mut self) {
        self.report_due = true;
        if !self.request_pending {
            self.request_pending = true;
            self.requests = 0;
        }
    }

    /// This TTI is an opportunity and the UE transmits no data in it (36.321 5.4.4).
    pub(crate) fn opportunity_comes(&mut self, config: &Requests, tti: u64) -> Opportunity {
        if !self.request_pending || self.random_access {
            return Opportunity::Unused;
        }
        if tti < self.prohibited_until {
            return Opportunity::Prohibited;
        }
        if self.requests >= config.sr_maximum {
            self.random_access = true;
            return Opportunity::Exhausted;
        }
        self.requests += 1;
        self.prohibited_until = tti + u64::from(config.sr_prohibit) * u64::from(config.sr_period.max(1));
        Opportunity::Sent
    }

    /// A transmission begins: whether it has to carry a report because the periodic timer has expired.
    #[inline]
    pub(crate) fn granted(&mut self, config: &Requests, slots: Slots, slot: u64) {
        if slot >= self.periodic_due {
            self.report_due = true;
        }
        self.retx_due = slot + slots.spanning(config.bsr_retx);
    }

    /// A report of what is left goes out with this transmission.
    #[inline]
    pub(crate) fn reported(&mut self, config: &Requests, slots: Slots, slot: u64) {
        self.periodic_due = config.bsr_periodic.map_or(u64::MAX, |p| slot + slots.spanning(p));
        self.settled();
    }

    /// Nothing is left to be told: a report went out, or everything was sent. Either cancels the request and stops
    /// sr-ProhibitTimer (36.321 5.4.4).
    #[inline]
    pub(crate) fn settled(&mut self) {
        self.report_due = false;
        self.request_pending = false;
        self.random_access = false;
        self.prohibited_until = 0;
    }
}

/// The eNodeB's side: what it believes a UE has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Believed {
    /// Bytes that wait and are not granted yet.
    pub(crate) waiting: u32,
    /// Bytes that a request is to be answered with although nothing is known to wait; 0 if there is none.
    pub(crate) asked: u32,
    /// Grants of the last 16 transmission TTIs: the TTI and the bytes.
    grants: [(u64, u32); 16],
    /// When the newest report was written.
    written: u64,
    /// What was last assumed to wait without a report since.
    assumed: u32,
    /// Blocks that were given up in a row.
    lost: u8,
    /// The largest block, in bytes, that came without data although the UE reported some: what waits needs a larger one.
    refused: u32,
    /// Bytes of the newest report.
    reported: u32,
}

impl Believed {
    /// Whether the UE is to be scheduled.
    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.waiting > 0 || self.asked > 0
    }

    /// `bytes` of payload are granted for a transmission in `tti`.
    #[inline]
    pub(crate) fn grant(&mut self, tti: u64, bytes: u32) {
        self.grants[(tti % 16) as usize] = (tti, bytes);
        self.waiting = self.waiting.saturating_sub(bytes);
        self.asked = 0;
    }

    /// What was granted for TTIs after `tti`.
    #[inline]
    pub(crate) fn granted_after(&self, tti: u64) -> u32 {
        self.grants.iter().filter(|(at, _)| *at > tti).map(|(_, bytes)| *bytes).sum()
    }

    /// A report that was written in `tti` is read.
    #[inline]
    pub(crate) fn learn(&mut self, report: &Report, tti: u64) {
        // A transport block that was retransmitted may bring an older report than one that was not.
        if tti >= self.written {
            self.written = tti;
            self.assumed = 0;
            self.reported = report.bytes();
            self.waiting = self.reported.saturating_sub(self.granted_after(tti));
        }
    }

    /// A transport block of `tti` with `bytes` came without a report, and full: there may be more that nobody has told.
    /// Each time in a row twice as much is assumed, so that a UE that never reports is not kept at a trickle.
    #[inline]
    pub(crate) fn came_full(&mut self, tti: u64, bytes: u32) {
        if self.waiting == 0 && self.granted_after(tti) == 0 {
            self.assumed = self.assumed.max(bytes).saturating_mul(2).min(MOST_ASSUMED);
            self.waiting = self.assumed;
        }
    }

    /// A transport block of `bytes` has come, with data or although the UE `reports` some without.
    #[inline]
    pub(crate) fn carried(&mut self, bytes: u32, data: bool, reports: bool) {
        if data && bytes <= self.refused {
            self.refused = 0;
        } else if !data && reports {
            self.refused = self.refused.max(bytes);
        }
    }

    /// The least bytes of a block that what waits may fit, if a smaller one has come without data.
    #[inline]
    pub(crate) fn least(&self) -> Option<u32> {
        (0 < self.refused && self.refused < self.reported).then_some(self.refused + 1)
    }

    /// No block is large enough for the next packet: nothing is granted before the UE asks again.
    pub(crate) fn give_up(&mut self) {
        (self.waiting, self.asked, self.refused) = (0, 0, 0);
    }

    /// Whether the UE has a grant for a new transmission in `tti`.
    #[inline]
    pub(crate) fn has_grant(&self, tti: u64) -> bool {
        let (at, bytes) = self.grants[(tti % 16) as usize];
        at == tti && bytes > 0
    }

    /// A transport block was given up, and the report that it may have carried with it.
    #[inline]
    pub(crate) fn lost(&mut self, config: &Requests, tti: u64) {
        self.lost = self.lost.saturating_add(1);
        if self.lost <= MOST_LOST {
            self.requested(config, tti);
        }
    }

    /// A transport block was decoded.
    #[inline]
    pub(crate) fn heard(&mut self) {
        self.lost = 0;
    }

    /// A scheduling request came. With grants under way it tells nothing new.
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

    #[test]
    fn opportunities_come_once_a_period_at_the_ues_offset() {
        let config = Requests { sr_period: 5, ..Requests::default() };
        let next: Vec<u64> = (10..17).map(|tti| Asking::opportunity(&config, 7, tti)).collect();
        assert_eq!(next, [12, 12, 12, 17, 17, 17, 17]);
    }

    #[test]
    fn requests_respect_the_prohibit_timer_and_end_in_random_access() {
        let config = Requests { sr_period: 10, sr_prohibit: 2, sr_maximum: 2, ..Requests::default() };
        let mut asking = Asking::new();
        assert_eq!(asking.opportunity_comes(&config, 0), Opportunity::Unused);
        asking.trigger();
        let outcomes: Vec<_> = (0..6).map(|i| asking.opportunity_comes(&config, i * 10)).collect();
        use Opportunity::{Exhausted, Prohibited, Sent, Unused};
        assert_eq!(outcomes, [Sent, Prohibited, Sent, Prohibited, Exhausted, Unused]);
        asking.settled();
        asking.trigger();
        assert_eq!(asking.opportunity_comes(&config, 60), Sent, "a new request starts to count anew");
    }

    #[test]
    fn a_report_stops_the_prohibit_timer() {
        let config = Requests { sr_period: 10, sr_prohibit: 7, ..Requests::default() };
        let mut asking = Asking::new();
        asking.trigger();
        assert_eq!(asking.opportunity_comes(&config, 0), Opportunity::Sent);
        asking.trigger();
        assert_eq!(asking.opportunity_comes(&config, 10), Opportunity::Prohibited);
        asking.reported(&config, Slots::LTE, 12);
        asking.trigger();
        assert_eq!(asking.opportunity_comes(&config, 20), Opportunity::Sent, "70 ms have not passed");
    }

    #[test]
    fn a_report_counts_less_what_was_granted_since_it_was_written() {
        let mut believed = Believed::default();
        let report = Report::of([0, 0, 0, 5000]);
        believed.grant(20, 1000);
        believed.grant(22, 2000);
        believed.grant(24, 500);
        believed.learn(&report, 20);
        assert_eq!(believed.waiting, 5476 - 2500);
        believed.learn(&Report::of([0; 4]), 19);
        assert_eq!(believed.waiting, 5476 - 2500, "an older report changes nothing");
    }

    #[test]
    fn a_report_is_as_long_as_the_groups_that_have_data_need() {
        assert_eq!(Report::size(&[0, 0, 0, 10]), SHORT_BSR);
        assert_eq!(Report::size(&[0; 4]), SHORT_BSR);
        assert_eq!(Report::size(&[1, 0, 0, 10]), LONG_BSR);
    }

    #[test]
    fn a_full_block_without_a_report_is_answered_by_one_more_grant() {
        let mut believed = Believed::default();
        believed.grant(10, 300);
        believed.came_full(9, 300);
        assert!(!believed.wants(), "another grant is under way");
        believed.came_full(10, 300);
        assert_eq!(believed.waiting, 600);
        believed.grant(18, 600);
        assert!(!believed.wants());
        believed.came_full(18, 600);
        assert_eq!(believed.waiting, 1200);
        believed.learn(&Report::default(), 18);
        assert!(!believed.wants());
    }

    #[test]
    fn a_block_that_was_too_small_is_followed_by_a_larger_one() {
        let mut believed = Believed { reported: 1500, ..Believed::default() };
        assert_eq!(believed.least(), None);
        believed.carried(400, false, true);
        believed.carried(200, false, true);
        assert_eq!(believed.least(), Some(401));
        believed.carried(1600, true, true);
        assert_eq!(believed.least(), Some(401), "a larger one shows nothing new");
        believed.reported = 300;
        assert_eq!(believed.least(), None, "no packet is longer than all that waits");
        believed.reported = 1500;
        believed.carried(400, true, false);
        assert_eq!(believed.least(), None);
    }
}
