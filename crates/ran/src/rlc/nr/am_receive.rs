//! The receiving side of AM: reassembly, loss detection and STATUS PDUs (38.322, 5.2.3.2, 5.3.4).
//!
//! Deviations:
//! 1. Numbers are never ambiguous: a PDU that HARQ delays for more than half a cycle of the SN is a duplicate.
//! 2. If a STATUS PDU has no room for all missing segments of an SDU, the last one reported extends to the end of the
//!    SDU, so that nothing missing counts as acknowledged.
//! 3. A STATUS PDU that more than 4096 later NACKs overtake is ignored, as if it were lost.

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
            self.reassembly = Time::MAX;
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
    fn may_report(&self, now: Time) -> bool {
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
        (self.may_report(now) && most >= STATUS_HEADER).then(|| {
            self.status_triggered = false;
            self.status_due = Time::MAX;
            self.prohibited = now + self.config.t_status_prohibit;
            self.construct(most)
        })
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
