//! The transmitting side of AM: polls, retransmission and re-segmentation (38.322, 5.2.3.1, 5.3.2, 5.3.3).
//!
//! Deviations:
//! 1. A STATUS PDU that acknowledges less than an earlier one (after reordering by HARQ) is ignored.
//! 2. RETX_COUNT belongs to an SDU, not to a segment of it.
//! 3. Where t-PollRetransmit leaves a choice (5.3.3.4), the last unacknowledged SDU is retransmitted.
//! 4. If a discard empties the buffers and nothing is left to carry a poll, 3 applies; otherwise the earlier PDUs would
//!    wait for their acknowledgement until there is new data.

use std::collections::VecDeque;

use aqm::{Backlog, Drops, Packet};
use units::Time;

use super::pdu::{Contents, Headers, Pos, Report, Run};
use crate::pdcp::Sdus;
use crate::rlc::Stats;
use crate::rlc::mode::{AmSn, NrAm};

/// The state of one transmitting side.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Transmitter {
    config: NrAm,
    pub(in crate::rlc) headers: Headers,
    /// AM_Window_Size (7.2).
    window: u64,
    /// Bytes of headers above RLC in each SDU.
    overhead: u32,
    /// TX_Next_Ack: the first SDU that is not acknowledged.
    next_ack: u64,
    /// From TX_Next_Ack on: the SDUs that left the queue, of which those before `begun` have been sent in part at least.
    sdus: VecDeque<Sent>,
    /// After the last SDU of which a part has been sent. TX_Next is the same unless that SDU is not fully sent.
    begun: u64,
    /// The end of what has been sent.
    sent: Pos,
    /// Those of `sdus` that are not acknowledged; bytes without headers.
    unacknowledged: Backlog,
    /// POLL_SN: the highest SDU at the time of the last poll.
    poll_sn: u64,
    pdu_without_poll: u32,
    byte_without_poll: u32,
    /// t-PollRetransmit has expired and its poll has not been sent.
    poll_owed: bool,
    /// When t-PollRetransmit expires; `Time::MAX` if it is not running.
    pub(in crate::rlc) poll_retransmit: Time,
    /// What is to be retransmitted: ascending ranges without overlaps.
    pending: VecDeque<(Pos, Pos)>,
    /// Its bytes.
    pending_bytes: u64,
    /// The number of parts of SDUs in it.
    pending_pdus: u64,
    /// Whether RETX_COUNT of an SDU has reached maxRetxThreshold.
    pub(in crate::rlc) failed: bool,
    /// Reused buffer.
    missing: VecDeque<(Pos, Pos)>,
}

/// An SDU that left the queue.
#[derive(Clone, Copy, Debug)]
struct Sent {
    len: u32,
    /// RETX_COUNT plus one; 0 before the first retransmission.
    retransmissions: u32,
    acknowledged: bool,
}

impl Sent {
    fn new(len: u32) -> Sent {
        Sent { len, retransmissions: 0, acknowledged: false }
    }
}

impl Transmitter {
    /// Creates an entity that sends SDUs with these lengths, of which the first is number `first`.
    pub(in crate::rlc) fn new(
        config: &NrAm,
        overhead: u32,
        (first, lengths): (u64, impl Iterator<Item = u32>),
    ) -> Self {
        // 6.2.2.4, 7.2.
        let (header, window) = match config.sn {
            AmSn::Twelve => (2, 1 << 11),
            AmSn::Eighteen => (3, 1 << 17),
        };
        let sdus: VecDeque<Sent> = lengths.map(Sent::new).collect();
        Transmitter {
            config: *config,
            headers: Headers { whole: header, segment: header },
            window,
            overhead,
            next_ack: first,
            begun: first,
            sent: Pos::start(first),
            unacknowledged: Backlog {
                packets: sdus.len() as u64,
                bytes: sdus.iter().map(|sdu| u64::from(sdu.len - overhead)).sum(),
            },
            sdus,
            poll_sn: first,
            pdu_without_poll: 0,
            byte_without_poll: 0,
            poll_owed: false,
            poll_retransmit: Time::MAX,
            pending: VecDeque::new(),
            pending_bytes: 0,
            pending_pdus: 0,
            failed: false,
            missing: VecDeque::new(),
        }
    }

    /// Returns the bytes to be retransmitted, and an upper bound of their headers.
    #[inline]
    pub(in crate::rlc) fn pending(&self) -> (u64, u64) {
        (self.pending_bytes, self.headers.estimate(self.pending_pdus, self.pending.len() as u64))
    }

    /// Returns the SDUs that left the queue and are not acknowledged; bytes without headers.
    #[inline]
    pub(in crate::rlc) fn unacknowledged(&self) -> Backlog {
        self.unacknowledged
    }

    /// Fills `room` bytes: retransmissions before new data (5.2.3.1.1). Returns the bytes used.
    #[inline]
    pub(in crate::rlc) fn build<P: Packet>(
        &mut self,
        sdus: &mut Sdus<P>,
        room: u32,
        now: Time,
        block: &mut Contents,
        stats: &mut Stats,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let mut used = 0;
        if !self.pending.is_empty() {
            used = self.retransmit(sdus, room, now, block, stats);
            if !self.pending.is_empty() || block.is_full() {
                return used;
            }
        }
        used + self.send(sdus, room - used, now, block, stats, drops)
    }

    /// Fills `room` bytes with new data. Returns the bytes used.
    #[inline]
    fn send<P: Packet>(
        &mut self,
        sdus: &mut Sdus<P>,
        room: u32,
        now: Time,
        block: &mut Contents,
        stats: &mut Stats,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let mut used = 0;
        let mut run = Run::at(self.sent);
        while !self.is_stalled() && self.headers.cut(0, u32::MAX, false, room - used).is_some() {
            let overhead = self.overhead;
            let (waiting, unacknowledged) = (&mut self.sdus, &mut self.unacknowledged);
            let head = sdus.head(now, drops, |len| {
                waiting.push_back(Sent::new(len));
                *unacknowledged += Backlog { packets: 1, bytes: u64::from(len - overhead) };
            });
            let Some(head) = head else {
                self.ensure_answer(sdus);
                break;
            };
            let Some((take, bytes)) = self.headers.cut(head.so, head.left, true, room - used) else { break };
            sdus.send(take, now);
            used += bytes;
            debug_assert_eq!(self.sent, Pos::new(head.number, head.so));
            let ends = take == head.left;
            self.sent = if ends { Pos::start(head.number + 1) } else { Pos::new(head.number, head.so + take) };
            self.begun = head.number + 1;
            run.to = self.sent;
            // 5.3.3.2.
            self.pdu_without_poll += 1;
            self.byte_without_poll = self.byte_without_poll.saturating_add(take);
            let many = self.config.poll_pdu.is_some_and(|n| self.pdu_without_poll >= n);
            let much = self.config.poll_byte.is_some_and(|n| self.byte_without_poll >= n);
            if self.poll(sdus, now, many || much) {
                run.poll(head.number);
            }
            stats.pdus += 1;
            if !ends {
                break;
            }
        }
        if used > 0 {
            block.push(run);
        }
        used
    }

    /// 5.3.2: fills `room` bytes with retransmissions. Returns the bytes used.
    fn retransmit<P: Packet>(
        &mut self,
        sdus: &Sdus<P>,
        room: u32,
        now: Time,
        block: &mut Contents,
        stats: &mut Stats,
    ) -> u32 {
        let mut used = 0;
        while let Some(&(from, to)) = self.pending.front() {
            if block.is_full() {
                break;
            }
            let mut run = Run::at(from);
            while run.to < to {
                let (number, so) = (run.to.number(), run.to.so());
                let len = self.sdus[(number - self.next_ack) as usize].len;
                let end = if to < Pos::start(number + 1) { to.so() } else { len };
                let Some((take, bytes)) = self.headers.cut(so, end - so, end == len, room - used) else { break };
                used += bytes;
                run.to = if so + take == len { Pos::start(number + 1) } else { Pos::new(number, so + take) };
                self.pending_bytes -= u64::from(take);
                if so + take == end {
                    self.pending_pdus -= 1;
                }
                if run.to == to {
                    self.pending.pop_front();
                } else {
                    self.pending[0].0 = run.to;
                }
                if self.poll(sdus, now, false) {
                    run.poll(number);
                }
                stats.retx_pdus += 1;
                stats.retx_bytes += u64::from(take);
            }
            if run.to > from {
                block.push(run);
            }
            if run.to < to {
                break;
            }
        }
        used
    }

    /// 5.3.3.2: returns whether the PDU just built carries a poll, and updates the state if it does.
    #[inline]
    fn poll<P: Packet>(&mut self, sdus: &Sdus<P>, now: Time, due: bool) -> bool {
        let poll = due || self.poll_owed || self.nothing_to_send(sdus);
        if poll {
            self.pdu_without_poll = 0;
            self.byte_without_poll = 0;
            self.poll_owed = false;
            self.poll_sn = self.begun - 1;
            self.poll_retransmit = now + self.config.t_poll_retransmit;
        }
        poll
    }

    /// Returns whether both buffers are empty except for unacknowledged PDUs, or no new PDU can be sent.
    #[inline]
    fn nothing_to_send<P: Packet>(&self, sdus: &Sdus<P>) -> bool {
        self.is_stalled() || (self.pending.is_empty() && !sdus.has_unsent())
    }

    /// Returns whether the window is full, and the last SDU in it fully sent.
    #[inline]
    pub(in crate::rlc) fn is_stalled(&self) -> bool {
        self.sent.so() == 0 && self.begun - self.next_ack >= self.window
    }

    /// Returns whether the window is full.
    #[inline]
    pub(in crate::rlc) fn is_full(&self) -> bool {
        self.begun - self.next_ack >= self.window
    }

    /// 5.2.3.1.1, 5.3.2 and 5.3.3.3: handles a STATUS PDU and its NACKs.
    #[inline]
    pub(in crate::rlc) fn handle_status(&mut self, report: &Report, nacks: impl Iterator<Item = (Pos, Pos)> + Clone) {
        if report.ack < self.next_ack || report.ack > self.begun {
            return;
        }
        if self.poll_sn < report.ack {
            self.poll_retransmit = Time::MAX;
        }
        if report.nacks > 0 || !self.pending.is_empty() {
            self.sort_out(report.ack, nacks);
            while self.sdus.front().is_some_and(|sdu| sdu.acknowledged) {
                self.sdus.pop_front();
                self.next_ack += 1;
            }
            return;
        }
        for _ in self.next_ack..report.ack {
            self.acknowledge(0);
            self.sdus.pop_front();
            self.next_ack += 1;
        }
    }

    /// Acknowledges the SDU at `index`.
    #[inline]
    fn acknowledge(&mut self, index: usize) {
        let sdu = &mut self.sdus[index];
        if !sdu.acknowledged {
            sdu.acknowledged = true;
            self.unacknowledged.packets -= 1;
            self.unacknowledged.bytes -= u64::from(sdu.len - self.overhead);
        }
    }

    /// Updates `pending`: of the SDUs before `ack`, exactly what is reported missing is to be retransmitted.
    fn sort_out(&mut self, ack: u64, nacks: impl Iterator<Item = (Pos, Pos)>) {
        let mut missing = core::mem::take(&mut self.missing);
        missing.clear();
        // The first SDU not looked at, the one whose retransmission was counted last, and the first pending range that
        // may contain what comes next.
        let (mut next, mut counted, mut known) = (self.next_ack, None, 0);
        for (from, to) in nacks {
            let (from, to) = (from.max(Pos::start(self.next_ack)), to.min(Pos::start(ack)));
            if from >= to {
                continue;
            }
            let after = to.ceil();
            for number in next..from.number() {
                self.acknowledge((number - self.next_ack) as usize);
            }
            for number in from.number()..after {
                // The receiver does not know how much of an SDU has been sent.
                let portion = (from.max(Pos::start(number)), to.min(Pos::start(number + 1)).min(self.sent));
                if self.sdus[(number - self.next_ack) as usize].acknowledged || portion.0 >= portion.1 {
                    continue;
                }
                while self.pending.get(known).is_some_and(|range| range.1 <= portion.0) {
                    known += 1;
                }
                let is_pending =
                    self.pending.get(known).is_some_and(|range| range.0 <= portion.0 && portion.1 <= range.1);
                if !is_pending && counted != Some(number) {
                    counted = Some(number);
                    self.count_retransmission(number);
                }
                append(&mut missing, portion);
            }
            next = next.max(after);
        }
        for number in next..ack {
            self.acknowledge((number - self.next_ack) as usize);
        }
        for &(from, to) in &self.pending {
            if to > Pos::start(ack) {
                append(&mut missing, (from.max(Pos::start(ack)), to));
            }
        }
        self.missing = core::mem::replace(&mut self.pending, missing);
        self.count_pending();
    }

    fn count_pending(&mut self) {
        (self.pending_bytes, self.pending_pdus) = (0, 0);
        for &(from, to) in &self.pending {
            for number in from.number()..to.ceil() {
                let start = if number == from.number() { from.so() } else { 0 };
                let len = self.sdus[(number - self.next_ack) as usize].len;
                let end = if to < Pos::start(number + 1) { to.so() } else { len };
                self.pending_bytes += u64::from(end - start);
                self.pending_pdus += 1;
            }
        }
    }

    /// 5.3.2: counts the retransmission of an SDU that was not pending.
    fn count_retransmission(&mut self, number: u64) {
        let sdu = &mut self.sdus[(number - self.next_ack) as usize];
        self.failed |= sdu.retransmissions >= self.config.max_retx;
        sdu.retransmissions = sdu.retransmissions.saturating_add(1);
    }

    /// 5.3.3.4: handles the expiry of t-PollRetransmit, and the case that SDUs were discarded.
    pub(in crate::rlc) fn handle_timeout<P: Packet>(&mut self, now: Time, sdus: &Sdus<P>) {
        if now >= self.poll_retransmit {
            self.poll_retransmit = Time::MAX;
            self.poll_owed = true;
            if self.nothing_to_send(sdus) {
                self.retransmit_last();
            }
        }
        self.ensure_answer(sdus);
    }

    /// Ensures that a poll is outstanding if nothing is to be sent and something is unacknowledged.
    #[inline]
    pub(in crate::rlc) fn ensure_answer<P: Packet>(&mut self, sdus: &Sdus<P>) {
        if self.poll_retransmit == Time::MAX && self.pending.is_empty() && self.nothing_to_send(sdus) {
            self.retransmit_last();
        }
    }

    /// Retransmits the last unacknowledged SDU that was sent, if any, with a poll.
    fn retransmit_last(&mut self) {
        let begun = (self.begun - self.next_ack) as usize;
        let Some(index) = self.sdus.range(..begun).rposition(|sdu| !sdu.acknowledged) else { return };
        self.poll_owed = true;
        let number = self.next_ack + index as u64;
        let whole = (Pos::start(number), Pos::start(number + 1));
        if self.pending.iter().any(|&(from, to)| from <= whole.0 && whole.1 <= to) {
            return;
        }
        self.count_retransmission(number);
        // Nothing that is pending is behind the last unacknowledged SDU.
        while let Some(last) = self.pending.back_mut().filter(|last| last.1 > whole.0) {
            if last.0 < whole.0 {
                last.1 = whole.0;
                break;
            }
            self.pending.pop_back();
        }
        append(&mut self.pending, whole);
        self.count_pending();
    }
}

/// Appends a range behind all others.
fn append(ranges: &mut VecDeque<(Pos, Pos)>, (from, to): (Pos, Pos)) {
    match ranges.back_mut() {
        Some(last) if last.1 == from => last.1 = to,
        _ => ranges.push_back((from, to)),
    }
}

#[cfg(test)]
mod tests {
    use channel::Direction;
    use testkit::queue::TestPacket;
    use units::Span;

    use super::*;
    use crate::pdcp;

    /// SDUs of 100 bytes with PDCP's header; t-PollRetransmit 30 ms; no polls but those of 5.3.3.2.
    struct Story {
        transmitter: Transmitter,
        sdus: Sdus<TestPacket>,
        ids: u64,
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// Where a run begins and ends, and whether it polls.
    type SentRun = ([(u64, u32); 2], bool);

    const WHOLE: (u32, Option<u32>) = (0, None);

    impl Story {
        fn new(sdus: u64, max_retx: u32) -> Story {
            let t_poll_retransmit = Span::from_millis(30);
            let config = NrAm { t_poll_retransmit, poll_pdu: None, poll_byte: None, max_retx, ..NrAm::default() };
            let mut story = Story {
                transmitter: Transmitter::new(&config, 2, (0, core::iter::empty())),
                sdus: Sdus::new(Direction::Downlink, &pdcp::Config::default(), 2),
                ids: 0,
            };
            for _ in 0..sdus {
                let packet = TestPacket::new(story.ids, 0, 98);
                story.sdus.enqueue(packet, Time::ZERO, &mut |_, _| panic!("nothing is dropped"));
                story.ids += 1;
            }
            story
        }

        /// Returns the bytes used, and the runs.
        fn build(&mut self, ms: u64, room: u32) -> (u32, Vec<SentRun>) {
            let mut block = Contents::default();
            let mut none = |_, _| panic!("nothing is dropped");
            let stats = &mut Stats::default();
            let used = self.transmitter.build(&mut self.sdus, room, at(ms), &mut block, stats, &mut none);
            assert!(used <= room);
            let split = |pos: Pos| (pos.number(), pos.so());
            let runs = block.runs().iter().map(|run| ([split(run.from), split(run.to)], run.polls[0] > 0));
            (used, runs.collect())
        }

        /// A STATUS PDU with NACKs of these parts of SDUs; `None` is the end.
        fn status(&mut self, ack: u64, nacks: &[(u64, (u32, Option<u32>))]) {
            let ranges = nacks.iter().map(|&(number, (from, to))| {
                (Pos::new(number, from), to.map_or(Pos::start(number + 1), |to| Pos::new(number, to)))
            });
            let report = Report { ack, first: 0, nacks: nacks.len() as u32 };
            self.transmitter.handle_status(&report, ranges);
        }

        fn pending(&self) -> (u64, u64, usize) {
            let transmitter = &self.transmitter;
            (transmitter.pending_bytes, transmitter.pending_pdus, transmitter.pending.len())
        }
    }

    #[test]
    fn a_status_answers_the_poll_of_the_sdus_it_covers() {
        let mut story = Story::new(3, 4);
        assert_eq!(story.build(0, 500), (312, vec![([(0, 0), (3, 0)], true)]));
        assert_eq!((story.transmitter.poll_sn, story.transmitter.poll_retransmit), (2, at(30)));
        story.status(2, &[]);
        assert_eq!(story.transmitter.poll_retransmit, at(30), "POLL_SN is not reported on");
        story.status(3, &[(2, WHOLE)]);
        assert_eq!(story.transmitter.poll_retransmit, Time::MAX, "a negative acknowledgement is an answer");
        assert_eq!((story.transmitter.next_ack, story.transmitter.unacknowledged().bytes), (2, 98));
    }

    #[test]
    fn what_arrived_while_it_was_pending_is_not_retransmitted() {
        let mut story = Story::new(4, 8);
        story.build(0, 500);
        story.status(4, &[(0, WHOLE), (2, WHOLE), (3, WHOLE)]);
        assert_eq!((story.transmitter.next_ack, story.pending()), (0, (300, 3, 2)));
        // SDU 3 stays pending, and only a part of SDU 2.
        story.status(3, &[(2, (50, Some(60)))]);
        assert_eq!((story.transmitter.next_ack, story.pending()), (2, (110, 2, 2)));
        let segments = vec![([(2, 50), (2, 60)], false), ([(3, 0), (4, 0)], true)];
        assert_eq!(story.build(9, 500), (16 + 104, segments));
        // Two that HARQ has delayed, and one that has become obsolete.
        story.status(4, &[(2, WHOLE)]);
        story.status(4, &[(2, WHOLE), (3, WHOLE)]);
        assert_eq!(story.pending(), (100, 1, 1), "SDU 3 has been acknowledged");
        story.status(1, &[(0, WHOLE)]);
        assert_eq!((story.transmitter.next_ack, story.pending()), (2, (100, 1, 1)));
        story.status(4, &[]);
        assert_eq!((story.transmitter.next_ack, story.pending()), (4, (0, 0, 0)));
    }

    #[test]
    fn an_obsolete_status_answers_no_poll() {
        let mut story = Story::new(1, 8);
        story.build(0, 500);
        story.status(1, &[]);
        story.transmitter.poll_retransmit = at(30);
        story.status(0, &[]);
        assert_eq!(story.transmitter.poll_retransmit, at(30));
    }

    #[test]
    fn a_retransmission_that_does_not_fit_is_cut_and_its_parts_are_retransmitted() {
        let mut story = Story::new(2, 8);
        assert_eq!(story.build(0, 208).0, 208);
        story.status(2, &[(0, WHOLE)]);
        // First segments have 4 bytes of headers, others 6.
        assert_eq!(story.build(10, 44), (44, vec![([(0, 0), (0, 40)], false)]));
        assert_eq!(story.build(11, 36), (36, vec![([(0, 40), (0, 70)], false)]));
        assert_eq!(story.build(12, 500), (36, vec![([(0, 70), (1, 0)], true)]));
        story.status(2, &[(0, (0, Some(40))), (0, (70, None))]);
        assert_eq!(story.pending(), (70, 2, 2));
        let both = vec![([(0, 0), (0, 40)], false), ([(0, 70), (1, 0)], true)];
        assert_eq!(story.build(20, 500), (44 + 36, both));
    }

    #[test]
    fn a_nack_of_what_was_never_sent_is_clipped() {
        let mut story = Story::new(1, 8);
        assert_eq!(story.build(0, 44).1, [([(0, 0), (0, 40)], false)]);
        story.status(1, &[(0, (20, None))]);
        assert_eq!(story.pending(), (20, 1, 1));
        assert_eq!(story.build(1, 500).1, [([(0, 20), (0, 40)], false), ([(0, 40), (1, 0)], true)]);
        story.status(1, &[(0, (40, None))]);
        assert_eq!(story.pending(), (60, 1, 1));
    }

    #[test]
    fn an_sdu_that_is_missing_too_often_fails_the_link() {
        let mut story = Story::new(1, 2);
        story.build(0, 104);
        let nacks = [(0, (10, Some(20))), (0, (30, None))];
        story.status(1, &nacks);
        story.status(1, &nacks);
        assert_eq!(story.transmitter.sdus[0].retransmissions, 1, "once for two parts, and pending already");
        story.build(1, 500);
        story.status(1, &nacks);
        assert!(!story.transmitter.failed, "RETX_COUNT is 1");
        story.build(2, 500);
        story.status(1, &nacks);
        assert!(story.transmitter.failed, "RETX_COUNT is maxRetxThreshold");
    }

    #[test]
    fn a_poll_without_an_answer_retransmits_the_last_sdu() {
        let mut story = Story::new(3, 8);
        story.build(0, 500);
        story.status(3, &[(0, WHOLE), (2, (30, Some(40)))]);
        assert_eq!(story.pending(), (110, 2, 2));
        // The part of SDU 2 that is pending already belongs to it.
        story.transmitter.retransmit_last();
        assert_eq!((story.pending(), story.transmitter.sdus[2].retransmissions), ((200, 2, 2), 2));
        story.transmitter.retransmit_last();
        assert_eq!((story.pending(), story.transmitter.sdus[2].retransmissions), ((200, 2, 2), 2), "pending already");
        assert_eq!(story.build(1, 500).1, [([(0, 0), (1, 0)], true), ([(2, 0), (3, 0)], true)]);

        // A part that is one with the end of the SDU before it.
        let mut story = Story::new(3, 8);
        story.build(0, 500);
        story.status(3, &[(1, WHOLE), (2, (0, Some(40)))]);
        assert_eq!(story.pending(), (140, 2, 1));
        story.transmitter.retransmit_last();
        assert_eq!(story.pending(), (200, 2, 1));
        assert_eq!(story.build(1, 500).0, 208);
    }

    #[test]
    fn a_poll_without_an_answer_rides_on_new_data_if_there_is_any() {
        let mut story = Story::new(2, 8);
        story.build(0, 104);
        story.transmitter.poll_retransmit = at(30);
        story.transmitter.handle_timeout(at(30), &story.sdus);
        assert_eq!(story.pending(), (0, 0, 0));
        assert_eq!(story.build(31, 50).1, [([(1, 0), (1, 46)], true)]);
        assert_eq!(story.transmitter.poll_retransmit, at(61));
    }
}
