//! The receiving side of AM: reassembly, loss detection and STATUS PDUs (38.322, 5.2.3.2, 5.3.4).
//!
//! Deviations:
//! 1. Numbers are never ambiguous: a PDU that HARQ delays for more than half a cycle of the SN is a duplicate.
//! 2. If a STATUS PDU has no room for all missing segments of an SDU, the last one reported extends to the end of the
//!    SDU, so that nothing missing counts as acknowledged.
//! 3. Of the polls in one run of PDUs, those between the first and the last have no effect of their own: they would
//!    be answered together with one of these, except for duplicates.
//! 4. A STATUS PDU that more than 4096 later NACKs overtake is ignored, as if it were lost.
//! 5. A STATUS PDU without room for a single NACK is not sent unless it acknowledges more than the last one: it would
//!    leave the sender in the belief that its poll was answered. The standard sends it.

use std::collections::VecDeque;

use units::Time;

use super::pdu::{
    MOST_NACKED, Pos, Report, Run, STATUS_HEADER, STATUS_OFFSETS, STATUS_RANGE, largest, subheader, with_subheader,
};
use super::ranges::Ranges;
use crate::rlc::mode::{AmSn, NrAm};

/// The number of NACKs that the log remembers.
const LOG: usize = 4096;

/// The state of one receiving side.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Receiver {
    config: NrAm,
    /// Everything before this has arrived. RX_Next is the number of its SDU.
    in_order: Pos,
    /// What has arrived behind the first gap.
    got: Ranges,
    /// RX_Next_Highest: after the highest SDU of which a part has arrived.
    highest: u64,
    /// RX_Highest_Status: the highest possible ACK_SN.
    highest_status: u64,
    /// RX_Next_Status_Trigger: after the SDU that started t-Reassembly.
    trigger: u64,
    /// When t-Reassembly expires; `Time::MAX` if it is not running.
    pub(in crate::rlc) reassembly: Time,
    /// SDUs, ascending, with polls that wait until RX_Highest_Status passes them.
    delayed_polls: VecDeque<u64>,
    status_triggered: bool,
    /// When t-StatusProhibit expires, or expired.
    prohibited: Time,
    /// When it expires, if a STATUS PDU waits for it; `Time::MAX` otherwise.
    pub(in crate::rlc) status_due: Time,
    /// ACK_SN of the last STATUS PDU.
    acknowledged: u64,
    /// The last NACKs, as missing ranges.
    log: VecDeque<(Pos, Pos)>,
    /// Number of NACKs that have left the log.
    forgotten: u64,
}

impl Receiver {
    /// Creates an entity that expects SDU `first`.
    pub(in crate::rlc) fn new(config: &NrAm, first: u64) -> Self {
        Receiver {
            config: *config,
            in_order: Pos::start(first),
            got: Ranges::default(),
            highest: first,
            highest_status: first,
            trigger: first,
            reassembly: Time::MAX,
            delayed_polls: VecDeque::new(),
            status_triggered: false,
            prohibited: Time::ZERO,
            status_due: Time::MAX,
            acknowledged: first,
            log: VecDeque::new(),
            forgotten: 0,
        }
    }

    /// RX_Next.
    #[inline]
    fn next(&self) -> u64 {
        self.in_order.number()
    }

    /// 5.2.3.2: receives a run of PDUs. Returns the SDUs that are complete, among those of the run.
    #[inline]
    pub(in crate::rlc) fn receive(&mut self, run: &Run, now: Time) -> (u64, u64) {
        // The common case: nothing is missing, and the run is the next one. The code below does the same.
        if run.from == self.in_order && self.got.is_empty() {
            let first = self.next();
            self.in_order = run.to;
            self.highest = self.highest.max(run.to.ceil());
            self.highest_status = self.highest_status.max(self.next());
            debug_assert_eq!(self.reassembly, Time::MAX, "nothing is missing before the last byte received");
            if run.polls[0] > 0 {
                run.polls.iter().for_each(|&poll| self.poll(first + u64::from(poll) - 1, now));
            }
            self.release_polls(now);
            return (first, self.next());
        }
        self.receive_behind_gap(run, now)
    }

    fn receive_behind_gap(&mut self, run: &Run, now: Time) -> (u64, u64) {
        let first = run.from.number();
        let part = |number| (run.from.max(Pos::start(number)), run.to.min(Pos::start(number + 1)));
        let polls = run.polls.map(|poll| {
            let number = (first + u64::from(poll)).wrapping_sub(1);
            (poll > 0).then(|| (number, self.has(part(number))))
        });
        // PDU by PDU as far as that makes a difference: the first one behind the highest may start t-Reassembly.
        let (mut from, mut alone) = (run.from, true);
        while from < run.to {
            let end = if from < Pos::start(self.highest) {
                Pos::start(self.highest)
            } else if alone {
                alone = false;
                Pos::start(from.number() + 1)
            } else {
                run.to
            };
            self.place(from, run.to.min(end), now);
            from = end;
        }
        for (number, duplicate) in polls.into_iter().flatten() {
            if duplicate { self.trigger_status(now) } else { self.poll(number, now) }
        }
        self.release_polls(now);
        let is_complete = |number| self.has((Pos::start(number), Pos::start(number + 1)));
        let from = first + u64::from(run.from.so() > 0 && !is_complete(first));
        let to = run.to.number();
        (from, from.max(to + u64::from(run.to.so() > 0 && is_complete(to))))
    }

    /// Returns whether a range has arrived.
    fn has(&self, (from, to): (Pos, Pos)) -> bool {
        to <= self.in_order || self.got.contains(from.max(self.in_order), to)
    }

    /// 5.2.3.2.3: places a part of the stream in the buffer.
    fn place(&mut self, from: Pos, to: Pos, now: Time) {
        if self.has((from, to)) {
            return;
        }
        self.highest = self.highest.max(to.ceil());
        if from <= self.in_order {
            self.in_order = to;
            while let Some(end) = self.got.take_up_to(self.in_order) {
                self.in_order = self.in_order.max(end);
            }
        } else {
            self.got.insert(from, to);
        }
        self.highest_status = self.first_incomplete(self.highest_status);
        if self.reassembly != Time::MAX {
            let next = self.next();
            if self.trigger <= next || (self.trigger == next + 1 && !self.is_missing_inside(next)) {
                self.reassembly = Time::MAX;
            }
        }
        if self.reassembly == Time::MAX {
            self.start_reassembly(self.next(), now);
        }
    }

    /// Returns the first SDU from `number` on that is not complete.
    fn first_incomplete(&self, number: u64) -> u64 {
        if number <= self.next() {
            return self.next();
        }
        self.got.end_of(Pos::start(number)).map_or(number, Pos::number)
    }

    /// Returns whether a segment of SDU `number`, RX_Next or later, is missing before the last one received.
    fn is_missing_inside(&self, number: u64) -> bool {
        self.got.begins_inside(number)
    }

    /// Starts t-Reassembly if something is missing from SDU `number` on.
    fn start_reassembly(&mut self, number: u64, now: Time) {
        if self.highest > number + 1 || (self.highest == number + 1 && self.is_missing_inside(number)) {
            self.reassembly = now + self.config.t_reassembly;
            self.trigger = self.highest;
        }
    }

    /// Handles the expiry of t-StatusProhibit, which allows a STATUS PDU, and of t-Reassembly (5.2.3.2.4).
    pub(in crate::rlc) fn handle_timeout(&mut self, now: Time) {
        if now >= self.status_due {
            self.status_due = Time::MAX;
        }
        while now >= self.reassembly {
            self.reassembly = Time::MAX;
            self.highest_status = self.first_incomplete(self.trigger);
            self.start_reassembly(self.highest_status, now);
            self.trigger_status(now);
            self.release_polls(now);
        }
    }

    /// 5.3.4: handles a poll of SDU `number`, which waits for reordering by HARQ to end.
    #[inline]
    fn poll(&mut self, number: u64, now: Time) {
        if number < self.highest_status {
            self.trigger_status(now);
        } else if let Err(at) = self.delayed_polls.binary_search(&number) {
            self.delayed_polls.insert(at, number);
        }
    }

    #[inline]
    fn release_polls(&mut self, now: Time) {
        while self.delayed_polls.front().is_some_and(|&number| number < self.highest_status) {
            self.delayed_polls.pop_front();
            self.trigger_status(now);
        }
    }

    #[inline]
    fn trigger_status(&mut self, now: Time) {
        self.status_triggered = true;
        if now < self.prohibited {
            self.status_due = self.prohibited;
        }
    }

    /// Returns whether a STATUS PDU may be sent.
    #[inline]
    pub(in crate::rlc) fn may_report(&self, now: Time) -> bool {
        self.status_triggered && now >= self.prohibited
    }

    /// Returns the sizes of the STATUS PDU that may be sent now and of its MAC subheader, and 0 if there is none.
    #[inline]
    pub(in crate::rlc) fn status_size(&self, now: Time) -> (u32, u32) {
        if !self.may_report(now) {
            return (0, 0);
        }
        let mut bytes = STATUS_HEADER;
        self.gaps(|from, to| {
            bytes += self.nack_size(from, to);
            true
        });
        (bytes, subheader(bytes))
    }

    /// Builds the STATUS PDU that may be sent now, in `room` bytes. Returns it and its bytes with the MAC subheader.
    #[inline]
    pub(in crate::rlc) fn status(&mut self, now: Time, room: u32) -> Option<(Report, u32)> {
        let most = largest(room);
        (self.may_report(now) && most >= STATUS_HEADER && self.says_anything(most)).then(|| {
            self.status_triggered = false;
            self.status_due = Time::MAX;
            self.prohibited = now + self.config.t_status_prohibit;
            let (report, bytes) = self.construct(most);
            self.acknowledged = report.ack;
            (report, bytes)
        })
    }

    /// Returns whether a STATUS PDU of at most `most` bytes has room for what is missing, or acknowledges more than the
    /// last one.
    #[inline]
    fn says_anything(&self, most: u32) -> bool {
        if self.in_order >= Pos::start(self.highest_status) || self.next() > self.acknowledged {
            return true;
        }
        let mut fits = false;
        self.gaps(|from, to| {
            fits = STATUS_HEADER + self.nack_size(from, to) <= most;
            false
        });
        fits
    }

    fn construct(&mut self, most: u32) -> (Report, u32) {
        let mut log = core::mem::take(&mut self.log);
        let before = log.len();
        let mut bytes = STATUS_HEADER;
        let mut ack = self.highest_status;
        self.gaps(|from, to| {
            let size = self.nack_size(from, to);
            let fits = bytes + size <= most && log.len() - before < LOG;
            if fits {
                bytes += size;
                log.push_back((from, to));
                return true;
            }
            ack = from.number();
            if log.len() > before
                && let Some(last) = log.back_mut().filter(|last| last.1 > Pos::start(ack))
            {
                last.1 = Pos::start(ack + 1);
                ack += 1;
            }
            false
        });
        let nacks = (log.len() - before) as u32;
        let first = self.forgotten + before as u64;
        let excess = log.len().saturating_sub(LOG);
        log.drain(..excess);
        self.forgotten += excess as u64;
        self.log = log;
        (Report { ack, first, nacks }, with_subheader(bytes))
    }

    /// Returns the missing ranges that `report` lists; `None` if the log has lost them.
    #[inline]
    pub(in crate::rlc) fn nacks(&self, report: &Report) -> Option<impl Iterator<Item = (Pos, Pos)> + Clone + '_> {
        let from = usize::try_from(report.first.checked_sub(self.forgotten)?).ok()?;
        let to = from + report.nacks as usize;
        (to <= self.log.len()).then(|| self.log.range(from..to).copied())
    }

    /// Calls `each` with the missing ranges before RX_Highest_Status, none larger than a NACK, until it returns false.
    fn gaps(&self, mut each: impl FnMut(Pos, Pos) -> bool) {
        let end = Pos::start(self.highest_status);
        let mut from = self.in_order;
        for (to, next) in self.got.iter().chain([(end, end)]) {
            let to = to.min(end);
            while from < to {
                let piece = to.min(Pos::start(from.number() + MOST_NACKED));
                if !each(from, piece) {
                    return;
                }
                from = piece;
            }
            from = next;
            if from >= end {
                return;
            }
        }
    }

    /// 6.2.2.5: returns the size of the NACK of a missing range.
    fn nack_size(&self, from: Pos, to: Pos) -> u32 {
        let sn = match self.config.sn {
            AmSn::Twelve => 2,
            AmSn::Eighteen => 3,
        };
        let offsets = if from.so() > 0 || to.so() > 0 { STATUS_OFFSETS } else { 0 };
        let range = if to.ceil() - from.number() > 1 { STATUS_RANGE } else { 0 };
        sn + offsets + range
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;

    /// The first byte of a missing range and that of what follows it: SDU and offset.
    type Ends = [(u64, u32); 2];

    /// t-Reassembly 10 ms, t-StatusProhibit 20 ms; the first SDU is number 7.
    struct Story(Receiver);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Whole SDUs `from..to`.
    fn sdus(from: u64, to: u64) -> Run {
        Run { to: Pos::start(7 + to), ..Run::at(Pos::start(7 + from)) }
    }

    /// Bytes `from..to` of an SDU; `None` is its end.
    fn part(number: u64, from: u32, to: Option<u32>) -> Run {
        let to = to.map_or(Pos::start(8 + number), |to| Pos::new(7 + number, to));
        Run { to, ..Run::at(Pos::new(7 + number, from)) }
    }

    /// With a poll of the last PDU.
    fn polling(mut run: Run) -> Run {
        run.poll(run.to.ceil() - 1);
        run
    }

    /// ACK_SN, bytes without MAC subheader, and missing ranges.
    type Reported = (u64, u32, Vec<Ends>);

    impl Story {
        fn new(sn: AmSn) -> Story {
            let (t_reassembly, t_status_prohibit) = (Span::from_millis(10), Span::from_millis(20));
            Story(Receiver::new(&NrAm { sn, t_reassembly, t_status_prohibit, ..NrAm::default() }, 7))
        }

        /// Returns the complete SDUs.
        fn receive(&mut self, ms: u64, run: Run) -> Vec<u64> {
            let (from, to) = self.0.receive(&run, at(ms));
            (from..to).map(|number| number - 7).collect()
        }

        fn status(&mut self, ms: u64, room: u32) -> Option<Reported> {
            let announced = self.0.status_size(at(ms));
            let (report, bytes) = self.0.status(at(ms), room)?;
            assert!(bytes <= room && bytes <= announced.0 + announced.1);
            let list = self.0.nacks(&report).expect("the log has it");
            let split = |pos: Pos| (pos.number() - 7, pos.so());
            let subheader = if bytes < 258 { 2 } else { 3 };
            Some((report.ack - 7, bytes - subheader, list.map(|(from, to)| [split(from), split(to)]).collect()))
        }

        /// RX_Next, RX_Next_Status_Trigger, RX_Highest_Status and RX_Next_Highest.
        fn state(&self) -> [u64; 4] {
            [self.0.next(), self.0.trigger, self.0.highest_status, self.0.highest].map(|number| number - 7)
        }
    }

    #[test]
    fn a_gap_is_reported_when_t_reassembly_ends() {
        let mut story = Story::new(AmSn::Twelve);
        assert_eq!(story.receive(0, sdus(0, 1)), [0]);
        assert_eq!(story.receive(0, sdus(2, 4)), [2, 3], "RLC delivers out of order");
        // The first PDU behind the gap starts the timer, the second does not move the trigger.
        assert_eq!((story.state(), story.0.reassembly), ([1, 3, 1, 4], at(10)));
        assert_eq!(story.status(9, 100), None);
        story.receive(5, sdus(5, 6));
        story.0.handle_timeout(at(10));
        // SDU 4 is not reported: it is behind the PDU that started the timer, which runs again for it.
        assert_eq!((story.state(), story.0.reassembly), ([1, 6, 4, 6], at(20)));
        assert_eq!(story.status(10, 100), Some((4, 5, vec![[(1, 0), (2, 0)]])));
        story.0.handle_timeout(at(20));
        assert_eq!(story.status(29, 100), None, "t-StatusProhibit runs");
        assert_eq!(story.0.status_due, at(30));
        assert_eq!(story.status(30, 100), Some((6, 7, vec![[(1, 0), (2, 0)], [(4, 0), (5, 0)]])));
        assert_eq!(story.receive(31, sdus(1, 2)), [1]);
        assert_eq!(story.receive(31, sdus(4, 5)), [4]);
        assert_eq!((story.state()[0], story.0.reassembly), (6, Time::MAX));
        assert!(story.0.got.is_empty());
    }

    #[test]
    fn t_reassembly_ends_with_the_gap_and_begins_with_the_next() {
        let mut story = Story::new(AmSn::Twelve);
        story.receive(0, sdus(0, 1));
        story.receive(0, sdus(2, 3));
        assert_eq!((story.state(), story.0.reassembly), ([1, 3, 1, 3], at(10)));
        assert_eq!(story.receive(4, sdus(1, 2)), [1]);
        assert_eq!((story.state(), story.0.reassembly), ([3, 3, 3, 3], Time::MAX));
        story.receive(5, sdus(4, 5));
        story.receive(6, sdus(6, 7));
        assert_eq!((story.state(), story.0.reassembly), ([3, 5, 3, 7], at(15)));
        story.receive(8, sdus(3, 4));
        assert_eq!((story.state(), story.0.reassembly), ([5, 7, 5, 7], at(18)), "anew, for SDU 5");
    }

    #[test]
    fn a_segment_missing_inside_the_last_sdu_starts_t_reassembly_and_its_end_does_not() {
        let mut story = Story::new(AmSn::Twelve);
        assert!(story.receive(0, part(0, 0, Some(10))).is_empty());
        assert_eq!((story.state(), story.0.reassembly), ([0, 0, 0, 1], Time::MAX), "the end may follow");
        assert!(story.receive(1, part(0, 20, Some(30))).is_empty());
        assert_eq!((story.state(), story.0.reassembly), ([0, 1, 0, 1], at(11)));
        assert!(story.receive(2, part(0, 10, Some(20))).is_empty());
        assert_eq!(story.0.reassembly, Time::MAX, "no segment is missing before the last");
        story.receive(3, part(0, 40, Some(50)));
        story.0.handle_timeout(at(13));
        // The receiver cannot know whether bytes from 50 on were sent.
        assert_eq!(story.status(13, 100), Some((1, 3 + 6 + 6, vec![[(0, 30), (0, 40)], [(0, 50), (1, 0)]])));
        assert!(story.receive(20, part(0, 30, Some(40))).is_empty());
        assert_eq!(story.receive(20, part(0, 50, None)), [0]);
    }

    #[test]
    fn rx_highest_status_does_not_go_back() {
        let mut story = Story::new(AmSn::Twelve);
        story.receive(0, part(0, 0, Some(10)));
        story.receive(0, part(0, 20, Some(30)));
        story.0.handle_timeout(at(10));
        story.receive(11, part(0, 10, Some(20)));
        story.receive(12, part(0, 30, Some(40)));
        assert_eq!(story.state(), [0, 1, 1, 1]);
        assert_eq!(story.status(12, 100), Some((1, 9, vec![[(0, 40), (1, 0)]])), "its end may not have been sent");
    }

    /// A STATUS PDU has a header of 3 bytes, a NACK 2, and the MAC subheader 2.
    #[test]
    fn a_status_that_has_no_room_for_a_gap_is_sent_if_it_acknowledges_more() {
        let mut story = Story::new(AmSn::Twelve);
        story.receive(0, sdus(0, 1));
        story.receive(0, sdus(2, 3));
        story.0.handle_timeout(at(10));
        assert_eq!(story.status(10, 4), None, "no room for the header");
        // SDU 0 is acknowledged. Where the list of gaps ends, so does what is acknowledged.
        assert_eq!(story.status(10, 6), Some((1, 3, vec![])));
        story.receive(31, polling(sdus(2, 3)));
        assert_eq!(story.status(31, 6), None, "it would say the same again");
        assert_eq!(story.status(31, 7), Some((3, 5, vec![[(1, 0), (2, 0)]])));
        // With a second gap, the first one fits, and it alone is reported.
        story.receive(32, sdus(4, 5));
        story.0.handle_timeout(at(42));
        assert_eq!(story.status(52, 6), None);
        assert_eq!(story.status(52, 8), Some((3, 5, vec![[(1, 0), (2, 0)]])));
        // With the first gap filled, ACK_SN is still that of the second, which the last one had.
        story.receive(60, sdus(1, 2));
        story.receive(73, polling(sdus(2, 3)));
        assert_eq!(story.status(73, 6), None);
        // Nothing is missing: the answer to a poll is due, although it acknowledges no more than the last one.
        story.receive(80, sdus(3, 4));
        for ms in [94, 115] {
            story.receive(ms, polling(sdus(2, 3)));
            assert_eq!(story.status(ms, 5), Some((5, 3, vec![])));
        }
    }

    #[test]
    fn polls_are_answered_at_once_unless_something_before_them_is_missing() {
        let mut story = Story::new(AmSn::Twelve);
        story.receive(0, polling(sdus(0, 2)));
        assert_eq!(story.status(0, 100), Some((2, 3, vec![])));
        story.receive(30, polling(sdus(3, 5)));
        assert_eq!(story.status(33, 100), None, "HARQ may fill the gap");
        story.receive(38, sdus(2, 3));
        assert_eq!(story.status(38, 100), Some((5, 3, vec![])));
        // A duplicate.
        story.receive(60, polling(sdus(4, 5)));
        assert_eq!(story.status(60, 100), Some((5, 3, vec![])));
        assert_eq!(story.status(90, 100), None);
        // A segment, which waits for its SDU.
        story.receive(90, polling(part(5, 0, Some(40))));
        assert_eq!(story.status(90, 100), None);
        story.receive(91, part(5, 40, None));
        assert_eq!(story.status(91, 100), Some((6, 3, vec![])));
    }

    #[test]
    fn a_gap_is_one_nack_with_offsets_and_a_range() {
        // 6.2.2.5: 3 bytes, a NACK of 2 or 3, 4 for offsets, 1 for a range.
        for (sn, nack) in [(AmSn::Twelve, 2), (AmSn::Eighteen, 3)] {
            let mut story = Story::new(sn);
            story.receive(0, part(0, 0, Some(60)));
            // The end of SDU 0, SDUs 1 and 2, and the beginning of SDU 3.
            assert_eq!(story.receive(0, Run { to: Pos::start(7 + 5), ..part(3, 20, None) }), [4]);
            story.receive(0, sdus(6, 7));
            story.0.handle_timeout(at(10));
            story.0.handle_timeout(at(20));
            let nacks = vec![[(0, 60), (3, 20)], [(5, 0), (6, 0)]];
            assert_eq!(story.status(20, 100), Some((7, 3 + nack + 5 + nack, nacks)));
        }
    }

    #[test]
    fn a_nack_range_has_at_most_255_sdus() {
        let mut story = Story::new(AmSn::Twelve);
        story.receive(0, sdus(600, 601));
        story.0.handle_timeout(at(10));
        let nacks = vec![[(0, 0), (255, 0)], [(255, 0), (510, 0)], [(510, 0), (600, 0)]];
        assert_eq!(story.status(10, 100), Some((601, 12, nacks)));
    }

    #[test]
    fn a_status_that_does_not_fit_acknowledges_up_to_what_it_leaves_out() {
        let story = || {
            let mut story = Story::new(AmSn::Twelve);
            story.receive(0, sdus(1, 2));
            story.receive(0, sdus(3, 4));
            story.receive(0, part(4, 20, Some(40)));
            story.receive(0, sdus(5, 6));
            story.0.handle_timeout(at(10));
            story.0.handle_timeout(at(20));
            story
        };
        let fits = |room| story().status(20, room).map(|(ack, bytes, nacks)| (ack, bytes, nacks.len()));
        assert_eq!(fits(4), None);
        assert_eq!(fits(5), None, "nothing to acknowledge, and no room for a NACK");
        assert_eq!(fits(7), Some((2, 5, 1)));
        assert_eq!(fits(9), Some((4, 7, 2)));
        assert_eq!(fits(14), Some((4, 7, 2)), "one of two parts would take 15");
        let (ack, bytes, nacks) = story().status(20, 15).expect("it fits");
        assert_eq!((ack, bytes, nacks[2]), (5, 13, [(4, 0), (5, 0)]), "which then stands for both");
        assert_eq!(fits(21), Some((6, 19, 4)));
    }

    #[test]
    fn a_status_reports_hundreds_of_gaps_and_the_log_remembers_thousands() {
        let mut story = Story::new(AmSn::Eighteen);
        for n in 0..1000 {
            story.receive(0, sdus(2 * n + 1, 2 * n + 2));
        }
        story.0.handle_timeout(at(10));
        story.0.handle_timeout(at(20));
        let (first, _) = story.0.status(at(20), 10_000).expect("a reception failure");
        assert_eq!((first.ack - 7, first.nacks), (2000, 1000));
        for n in 1..=4u64 {
            assert!(story.0.nacks(&first).is_some_and(|nacks| nacks.count() == 1000));
            story.0.trigger_status(at(20 * n + 20));
            assert!(story.0.status(at(20 * n + 20), 10_000).is_some());
        }
        assert!(story.0.nacks(&first).is_none(), "more than 4096 have followed");
        assert!(story.0.log.len() <= LOG);
    }

    /// 38.322, 5.2.3.2, taken literally: PDU by PDU and byte by byte, for SDUs of six bytes numbered from 7.
    struct Literal {
        got: Vec<[bool; 6]>,
        next: usize,
        trigger: usize,
        highest_status: usize,
        highest: usize,
        timer: Option<u64>,
        delayed_polls: Vec<usize>,
        status: bool,
        delivered: Vec<usize>,
    }

    impl Literal {
        fn all(&self, sn: usize) -> bool {
            self.got[sn] == [true; 6]
        }

        fn first_missing(&self, from: usize) -> usize {
            (from..).find(|&sn| !self.all(sn)).expect("there are more SDUs than received")
        }

        /// A missing byte segment before the last byte of all received segments.
        fn missing(&self, sn: usize) -> bool {
            let last = self.got[sn].iter().rposition(|&have| have);
            last.is_some_and(|last| self.got[sn][..last].contains(&false))
        }

        fn receive(&mut self, x: usize, bytes: core::ops::Range<usize>, poll: bool, now: u64) {
            let discarded = x < self.next || self.got[x][bytes.clone()].iter().all(|&have| have);
            if !discarded {
                self.got[x][bytes].fill(true);
                self.highest = self.highest.max(x + 1);
                if self.all(x) {
                    self.delivered.push(x);
                    if x == self.highest_status {
                        self.highest_status = self.first_missing(x);
                    }
                    if x == self.next {
                        self.next = self.first_missing(x);
                    }
                }
                if self.timer.is_some()
                    && (self.trigger == self.next || (self.trigger == self.next + 1 && !self.missing(self.next))
                        // Outside of the window: below it.
                        || self.trigger < self.next)
                {
                    self.timer = None;
                }
                let gap = self.highest > self.next + 1 || (self.highest == self.next + 1 && self.missing(self.next));
                if self.timer.is_none() && gap {
                    self.timer = Some(now + 10);
                    self.trigger = self.highest;
                }
            }
            if poll {
                if discarded || x < self.highest_status {
                    self.status = true;
                } else {
                    self.delayed_polls.push(x);
                }
            }
            self.release();
        }

        fn release(&mut self) {
            let before = self.delayed_polls.len();
            self.delayed_polls.retain(|&x| x >= self.highest_status);
            self.status |= self.delayed_polls.len() < before;
        }

        fn time_out(&mut self, now: u64) {
            if self.timer.is_some_and(|timer| now >= timer) {
                self.timer = None;
                let next = self.first_missing(self.trigger);
                self.highest_status = next;
                if self.highest > next + 1 || (self.highest == next + 1 && self.missing(next)) {
                    self.timer = Some(now + 10);
                    self.trigger = self.highest;
                }
                self.status = true;
                self.release();
            }
        }
    }

    #[test]
    fn runs_are_received_as_if_pdu_by_pdu() {
        let mut state = 9u64;
        let mut dice = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let pos = |byte: u64| Pos::new(7 + byte / 6, (byte % 6) as u32);
        let (mut timers, mut dups) = (0, 0);
        for _ in 0..400 {
            let mut story = Story::new(AmSn::Twelve);
            story.0.config.t_status_prohibit = Span::ZERO;
            let mut literal = Literal {
                got: vec![[false; 6]; 400],
                next: 0,
                trigger: 0,
                highest_status: 0,
                highest: 0,
                timer: None,
                delayed_polls: Vec::new(),
                status: false,
                delivered: Vec::new(),
            };
            let mut sent = 0;
            let mut complete = Vec::new();
            for ms in 0..120 {
                story.0.handle_timeout(at(ms));
                literal.time_out(ms);
                // New data, of which half is lost, or a retransmission of anything, duplicates included.
                let (from, len) = if dice(3) > 0 {
                    let len = 1 + dice(12);
                    sent += len;
                    (sent - len, len)
                } else {
                    let from = dice(sent + 1).min(sent.saturating_sub(1));
                    (from, (1 + dice(20)).min(sent - from))
                };
                if len == 0 || dice(2) == 0 {
                    continue;
                }
                let mut run = Run { to: pos(from + len), ..Run::at(pos(from)) };
                let numbers = (from / 6)..=((from + len - 1) / 6);
                let polls: Vec<u64> = numbers.clone().filter(|_| dice(6) == 0).collect();
                polls.iter().for_each(|&sdu| run.poll(7 + sdu));
                complete.extend(story.receive(ms, run));
                for sdu in numbers {
                    let bytes =
                        (from.max(6 * sdu) - 6 * sdu) as usize..((from + len).min(6 * sdu + 6) - 6 * sdu) as usize;
                    dups += u32::from(literal.got[sdu as usize][bytes.clone()].iter().all(|&have| have));
                    // Of several polls the ones between the first and the last are left out.
                    let poll = polls.first() == Some(&sdu) || polls.last() == Some(&sdu);
                    literal.receive(sdu as usize, bytes, poll, ms);
                }
                let timer = literal.timer.map_or(Time::MAX, at);
                timers += u32::from(literal.timer == Some(ms + 10));
                assert_eq!(story.0.reassembly, timer);
                let expected = [literal.next, literal.trigger, literal.highest_status, literal.highest];
                let got = story.state().map(|number| number as usize);
                assert_eq!([got[0], got[2], got[3]], [expected[0], expected[2], expected[3]]);
                assert!(timer == Time::MAX || got[1] == expected[1]);
                assert_eq!(story.0.status_triggered, literal.status, "polls {polls:?}");
                if dice(4) == 0
                    && let Some((ack, _, nacks)) = story.status(ms, 1000)
                {
                    literal.status = false;
                    assert_eq!(ack as usize, literal.highest_status);
                    let missing = |byte: u64| !literal.got[byte as usize / 6][byte as usize % 6];
                    let byte = |(sdu, so): (u64, u32)| 6 * sdu + u64::from(so);
                    let reported: Vec<u64> = nacks.iter().flat_map(|&[from, to]| byte(from)..byte(to)).collect();
                    assert!(reported.into_iter().eq((0..6 * ack).filter(|&byte| missing(byte))));
                }
            }
            // Those that were complete before may be named again: PDCP ignores them.
            complete.sort_unstable();
            complete.dedup();
            literal.delivered.sort_unstable();
            assert!(complete.into_iter().eq(literal.delivered.into_iter().map(|sdu| sdu as u64)));
        }
        assert!(timers > 1000 && dups > 1000, "{timers} starts of the timer, {dups} duplicates");
    }
}
