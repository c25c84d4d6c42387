//! The transmitting side of AM: numbering, polls, retransmission and re-segmentation (36.322, 5.1.3.1, 5.2.1, 5.2.2).
//!
//! Deviations:
//! 1. A STATUS PDU that acknowledges less than an earlier one (after reordering by HARQ) is ignored.
//! 2. RETX_COUNT is incremented at most once per PDU and STATUS PDU, however many of its portions are reported missing.
//! 3. Where t-PollRetransmit leaves a choice (5.2.2.3), the last unacknowledged PDU is retransmitted.
//! 4. A poll is sent with the PDU that empties the buffers (5.2.2.1). If a discard empties them and nothing is left to
//!    carry a poll, 3 applies; otherwise the earlier PDUs would wait for their acknowledgement until there is new data.

use std::collections::VecDeque;

use aqm::{Backlog, Drops, Packet};
use units::Time;

use super::elements::{LengthIndicators, fit};
use super::pdu::{AM_WINDOW, AMD_HEADER, Pdu, SEGMENT_HEADER, SO_END, Status, after, ahead, header};
use crate::pdcp::Sdus;
use crate::rlc::{Am, Block, Stats};

/// The state of one transmitting side.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Transmitter {
    config: Am,
    /// VT(A): the first unacknowledged PDU. VT(S), the next to be sent, is VT(A) plus the length of `sent`.
    vt_a: u16,
    /// VT(A) up to VT(S).
    sent: VecDeque<Sent>,
    /// POLL_SN: the highest PDU sent at the time of the last poll.
    poll_sn: u16,
    pdu_without_poll: u32,
    byte_without_poll: u32,
    /// t-PollRetransmit has expired and its poll has not been sent.
    poll_owed: bool,
    /// When t-PollRetransmit expires; `Time::MAX` if it is not running.
    pub(in crate::rlc) poll_retransmit: Time,
    /// Portions to be retransmitted, in order, without overlaps.
    pending: VecDeque<Portion>,
    /// Its bytes.
    pending_bytes: u64,
    /// The ends of SDUs that are not fully acknowledged.
    borders: VecDeque<u64>,
    /// The end of the last fully acknowledged SDU.
    acknowledged: u64,
    /// Whether a PDU has reached maxRetxThreshold.
    pub(in crate::rlc) failed: bool,
    /// Reused buffer.
    missing: Vec<Portion>,
}

/// A PDU that has been sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    len: u16,
    /// Number of SDU boundaries inside.
    borders: u16,
    /// RETX_COUNT; `None` before the first retransmission.
    retx_count: Option<u32>,
    acknowledged: bool,
}

/// A part of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Portion {
    sn: u16,
    from: u16,
    to: u16,
}

impl Portion {
    fn bytes(&self) -> u64 {
        u64::from(self.to - self.from)
    }

    fn covers(&self, other: &Portion) -> bool {
        self.sn == other.sn && self.from <= other.from && other.to <= self.to
    }
}

impl Transmitter {
    pub(in crate::rlc) fn new(config: &Am, borders: impl Iterator<Item = u64>) -> Self {
        Transmitter {
            config: *config,
            vt_a: 0,
            sent: VecDeque::new(),
            poll_sn: 0,
            pdu_without_poll: 0,
            byte_without_poll: 0,
            poll_owed: false,
            poll_retransmit: Time::MAX,
            pending: VecDeque::new(),
            pending_bytes: 0,
            borders: borders.collect(),
            acknowledged: 0,
            failed: false,
            missing: Vec::new(),
        }
    }

    /// Returns the bytes to be retransmitted, and the number of their portions.
    #[inline]
    pub(in crate::rlc) fn pending(&self) -> (u64, usize) {
        (self.pending_bytes, self.pending.len())
    }

    /// Returns the SDUs that wait or are not fully acknowledged.
    #[inline]
    pub(in crate::rlc) fn held<P: Packet>(&self, sdus: &Sdus<P>) -> Backlog {
        sdus.since(self.acknowledged, self.borders.len())
    }

    /// Fills the rest of `grant`: retransmissions before new data (5.1.3.1.1).
    #[inline]
    pub(in crate::rlc) fn build<P: Packet>(
        &mut self,
        sdus: &mut Sdus<P>,
        grant: u32,
        now: Time,
        block: &mut Block,
        stats: &mut Stats,
        drops: &mut impl Drops<P>,
    ) {
        while !self.pending.is_empty() {
            let Some((mut pdu, header)) = self.retransmit(block.room(grant)) else { return };
            pdu.poll = self.poll(sdus, now, false);
            block.push(pdu, header);
            stats.retx_pdus += 1;
            stats.retx_bytes += u64::from(pdu.len);
        }
        let room = block.room(grant).saturating_sub(AMD_HEADER).min(u32::from(SO_END));
        if room == 0 || self.is_stalled() {
            return;
        }
        let borders = &mut self.borders;
        let mapped = sdus.map::<LengthIndicators>(room, now, drops, |end| borders.push_back(end));
        if mapped.len == 0 {
            return self.ensure_answer(sdus);
        }
        let len = mapped.len as u16;
        let mut pdu = Pdu { start: mapped.start, len, so: 0, sn: self.vt_s(), last: true, poll: false };
        self.sent.push_back(Sent {
            start: mapped.start,
            len,
            borders: mapped.borders as u16,
            retx_count: None,
            acknowledged: false,
        });
        // 5.2.2.1.
        self.pdu_without_poll += 1;
        self.byte_without_poll += mapped.len;
        let many = self.config.poll_pdu.is_some_and(|n| self.pdu_without_poll >= n);
        let much = self.config.poll_byte.is_some_and(|n| self.byte_without_poll >= n);
        pdu.poll = self.poll(sdus, now, many || much);
        block.push(pdu, header(AMD_HEADER, mapped.borders));
        stats.pdus += 1;
    }

    /// 5.2.1: returns the first portion to be retransmitted, as far as it fits, and the length of its header.
    fn retransmit(&mut self, room: u32) -> Option<(Pdu, u32)> {
        let portion = *self.pending.front()?;
        let sent = self.sent[usize::from(ahead(portion.sn, self.vt_a))];
        let whole = header(AMD_HEADER, u32::from(sent.borders));
        if portion.bytes() == u64::from(sent.len) && whole + u32::from(sent.len) <= room {
            self.pending.pop_front();
            self.pending_bytes -= portion.bytes();
            let Sent { start, len, .. } = sent;
            return Some((Pdu { start, len, so: 0, sn: portion.sn, last: true, poll: false }, whole));
        }
        let start = sent.start + u64::from(portion.from);
        let limit = sent.start + u64::from(portion.to);
        let first = self.borders.partition_point(|&end| end <= start);
        let (len, inside) =
            fit(start, limit, room.saturating_sub(SEGMENT_HEADER), self.borders.range(first..).copied());
        if len == 0 {
            return None;
        }
        let (so, len) = (portion.from, len as u16);
        self.pending_bytes -= u64::from(len);
        if so + len == portion.to {
            self.pending.pop_front();
        } else {
            self.pending[0].from += len;
        }
        let pdu = Pdu { start, len, so, sn: portion.sn, last: so + len == sent.len, poll: false };
        Some((pdu, header(SEGMENT_HEADER, inside)))
    }

    /// 5.2.2.1: returns whether the PDU just built carries a poll, and updates the state if it does.
    #[inline]
    fn poll<P: Packet>(&mut self, sdus: &Sdus<P>, now: Time, due: bool) -> bool {
        let poll = due || self.poll_owed || self.nothing_to_send(sdus);
        if poll {
            self.pdu_without_poll = 0;
            self.byte_without_poll = 0;
            self.poll_owed = false;
            self.poll_sn = after(self.vt_s(), u16::MAX);
            self.poll_retransmit = now + self.config.t_poll_retransmit;
        }
        poll
    }

    /// Returns whether both buffers are empty except for unacknowledged PDUs, or no new PDU can be sent.
    #[inline]
    fn nothing_to_send<P: Packet>(&self, sdus: &Sdus<P>) -> bool {
        self.is_stalled() || (self.pending.is_empty() && !sdus.has_unsent())
    }

    /// VT(S) = VT(MS).
    #[inline]
    pub(in crate::rlc) fn is_stalled(&self) -> bool {
        self.sent.len() >= usize::from(AM_WINDOW)
    }

    fn vt_s(&self) -> u16 {
        after(self.vt_a, self.sent.len() as u16)
    }

    /// 5.1.3.1.1, 5.2.1 and 5.2.2.2: handles a STATUS PDU.
    pub(in crate::rlc) fn handle_status(&mut self, status: &Status) {
        let acknowledged = ahead(status.ack_sn, self.vt_a);
        if usize::from(acknowledged) > self.sent.len() {
            return;
        }
        if ahead(self.poll_sn, self.vt_a) < acknowledged {
            self.poll_retransmit = Time::MAX;
        }
        let mut all = acknowledged;
        if !status.nacks().is_empty() || !self.pending.is_empty() {
            self.sort_out(status, acknowledged);
            all = 0;
        }
        let mut end = None;
        while let Some(sent) = self.sent.front().filter(|sent| all > 0 || sent.acknowledged) {
            end = Some(sent.start + u64::from(sent.len));
            all = all.saturating_sub(1);
            self.sent.pop_front();
            self.vt_a = after(self.vt_a, 1);
        }
        if let Some(end) = end {
            while let Some(&border) = self.borders.front().filter(|&&border| border <= end) {
                self.acknowledged = border;
                self.borders.pop_front();
            }
        }
    }

    /// Updates `pending`: of the first `acknowledged` PDUs, exactly what `status` reports missing is to be
    /// retransmitted.
    fn sort_out(&mut self, status: &Status, acknowledged: u16) {
        let vt_a = self.vt_a;
        let mut missing = core::mem::take(&mut self.missing);
        for nack in status.nacks() {
            for i in 0..nack.count {
                let sn = after(nack.sn, i);
                let index = ahead(sn, vt_a);
                if index >= acknowledged {
                    continue;
                }
                let sent = &self.sent[usize::from(index)];
                let to = nack.to.min(sent.len);
                if !sent.acknowledged && nack.from < to {
                    missing.push(Portion { sn, from: nack.from, to });
                }
            }
        }
        let mut rest = missing.iter().peekable();
        for index in 0..acknowledged {
            let sn = after(vt_a, index);
            let (mut reported, mut new) = (false, false);
            while let Some(portion) = rest.next_if(|portion| portion.sn == sn) {
                reported = true;
                new |= !self.pending.iter().any(|pending| pending.covers(portion));
            }
            if !reported {
                self.sent[usize::from(index)].acknowledged = true;
            } else if new {
                self.count_retransmission(usize::from(index));
            }
        }
        let known = self.pending.partition_point(|portion| ahead(portion.sn, vt_a) < acknowledged);
        self.pending.drain(..known);
        for portion in missing.drain(..).rev() {
            self.pending.push_front(portion);
        }
        self.missing = missing;
        self.pending_bytes = self.pending.iter().map(Portion::bytes).sum();
    }

    /// 5.2.1: counts the retransmission of a PDU that was not pending.
    fn count_retransmission(&mut self, index: usize) {
        let count = self.sent[index].retx_count.map_or(0, |count| count + 1);
        self.sent[index].retx_count = Some(count);
        self.failed |= count >= self.config.max_retx;
    }

    /// 5.2.2.3: handles the expiry of t-PollRetransmit, and the case that SDUs were discarded.
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
    pub(in crate::rlc) fn ensure_answer<P: Packet>(&mut self, sdus: &Sdus<P>) {
        if self.poll_retransmit == Time::MAX && self.pending.is_empty() && self.nothing_to_send(sdus) {
            self.retransmit_last();
        }
    }

    /// Retransmits the last unacknowledged PDU, if any, with a poll.
    fn retransmit_last(&mut self) {
        let Some(index) = self.sent.iter().rposition(|sent| !sent.acknowledged) else { return };
        let sn = after(self.vt_a, index as u16);
        self.poll_owed = true;
        let whole = Portion { sn, from: 0, to: self.sent[index].len };
        let at = self.pending.partition_point(|portion| ahead(portion.sn, self.vt_a) < index as u16);
        let pending = self.pending.range(at..).take_while(|portion| portion.sn == sn).count();
        if pending == 1 && self.pending[at] == whole {
            return;
        }
        self.count_retransmission(index);
        for _ in 0..pending {
            self.pending_bytes -= self.pending.remove(at).map_or(0, |portion| portion.bytes());
        }
        self.pending.insert(at, whole);
        self.pending_bytes += whole.bytes();
    }
}

#[cfg(test)]
mod tests {
    use channel::Direction;
    use testkit::queue::TestPacket;
    use units::Span;

    use super::*;
    use crate::pdcp;

    struct Story {
        transmitter: Transmitter,
        sdus: Sdus<TestPacket>,
        ids: u64,
    }

    const POLL_RETRANSMIT: Span = Span::from_millis(30);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn status(ack_sn: u16, nacks: &[(u16, u16, u16)]) -> Status {
        let mut status = Status::new();
        status.ack_sn = ack_sn;
        for &(sn, from, to) in nacks {
            assert!(status.push(sn, from, to, 1000));
        }
        status
    }

    impl Story {
        fn new(poll_pdu: Option<u32>, max_retx: u32) -> Story {
            let config =
                Am { t_poll_retransmit: POLL_RETRANSMIT, poll_pdu, poll_byte: None, max_retx, ..Am::default() };
            Story {
                transmitter: Transmitter::new(&config, core::iter::empty()),
                sdus: Sdus::new(Direction::Downlink, &pdcp::Config::default(), pdcp::HEADER),
                ids: 0,
            }
        }

        fn enqueue(&mut self, sdus: u64, len: u32) {
            for _ in 0..sdus {
                let mut none = |_, _| panic!("nothing is dropped");
                self.sdus.enqueue(TestPacket::new(self.ids, 0, len), Time::ZERO, &mut none);
                self.ids += 1;
            }
        }

        /// The bytes used, and each PDU's number, offset, length and poll.
        fn build(&mut self, ms: u64, grant: u32) -> (u32, Vec<(u16, u16, u16, bool)>) {
            let mut block = Block::default();
            let mut none = |_, _| panic!("nothing is dropped");
            let stats = &mut Stats::default();
            self.transmitter.build(&mut self.sdus, grant, at(ms), &mut block, stats, &mut none);
            assert!(block.bytes() <= grant);
            let pdus = block.data().iter().map(|pdu| (pdu.sn, pdu.so, pdu.len, pdu.poll));
            (block.bytes(), pdus.collect())
        }
    }

    #[test]
    fn sdus_are_concatenated_and_cut_to_the_grant() {
        let mut story = Story::new(None, 4);
        story.enqueue(3, 98);
        // Two SDUs of 100 bytes and 43 of the third: two length indicators in 3 bytes, after 2 of header.
        assert_eq!(story.build(0, 248), (248, vec![(0, 0, 243, false)]));
        assert_eq!(story.build(1, 248), (59, vec![(1, 0, 57, true)]));
        assert_eq!(story.build(2, 248), (0, vec![]));
    }

    #[test]
    fn a_poll_goes_with_each_poll_pdu_new_pdus_and_with_the_last() {
        let mut story = Story::new(Some(3), 4);
        story.enqueue(7, 98);
        let polls: Vec<bool> = (0..7).map(|ms| story.build(ms, 102).1[0].3).collect();
        assert_eq!(polls, [false, false, true, false, false, true, true]);
        assert_eq!(story.transmitter.poll_sn, 6);
        assert_eq!(story.transmitter.poll_retransmit, at(6) + POLL_RETRANSMIT);
        story.transmitter.handle_status(&status(6, &[]));
        assert_ne!(story.transmitter.poll_retransmit, Time::MAX, "POLL_SN is not reported on");
        story.transmitter.handle_status(&status(7, &[(6, 0, SO_END)]));
        assert_eq!(story.transmitter.poll_retransmit, Time::MAX, "a negative acknowledgement is an answer");
    }

    #[test]
    fn a_poll_without_an_answer_retransmits_the_last_pdu() {
        let mut story = Story::new(None, 4);
        story.enqueue(2, 98);
        story.build(0, 102);
        assert_eq!(story.build(1, 102).1, [(1, 0, 100, true)]);
        story.transmitter.handle_timeout(at(30), &story.sdus);
        assert_eq!(story.build(30, 500).1, []);
        story.transmitter.handle_timeout(at(31), &story.sdus);
        assert_eq!(story.transmitter.pending(), (100, 1));
        assert_eq!(story.build(32, 500).1, [(1, 0, 100, true)]);
        assert_eq!(story.transmitter.poll_retransmit, at(32) + POLL_RETRANSMIT);
    }

    #[test]
    fn a_poll_without_an_answer_rides_on_new_data_if_there_is_any() {
        let mut story = Story::new(Some(1), 4);
        story.enqueue(5, 98);
        story.build(0, 102);
        story.transmitter.config.poll_pdu = None;
        story.transmitter.handle_timeout(at(30), &story.sdus);
        assert_eq!(story.transmitter.pending(), (0, 0));
        assert_eq!(story.build(31, 102).1, [(1, 0, 100, true)]);
        assert_eq!(story.build(32, 102).1, [(2, 0, 100, false)]);
    }

    #[test]
    fn a_full_window_polls_and_stalls() {
        let mut story = Story::new(None, 4);
        story.enqueue(600, 98);
        for n in 0..512 {
            assert_eq!(story.build(n, 102).1, [(n as u16, 0, 100, n == 511)]);
        }
        assert_eq!(story.build(512, 102), (0, vec![]));
        story.transmitter.handle_status(&status(1, &[]));
        assert_eq!(story.build(513, 102).1, [(512, 0, 100, true)]);
    }

    #[test]
    fn a_pdu_that_does_not_fit_again_is_cut_and_its_portions_are_retransmitted() {
        let mut story = Story::new(None, 8);
        story.enqueue(3, 98);
        assert_eq!(story.build(0, 305), (305, vec![(0, 0, 300, true)]));
        story.transmitter.handle_status(&status(1, &[(0, 0, SO_END)]));
        // 4 bytes of header, 2 for the border at 100, 114 of data.
        assert_eq!(story.build(10, 120), (120, vec![(0, 0, 114, false)]));
        assert_eq!(story.transmitter.pending(), (186, 1));
        // A segment of exactly one element needs no length indicator.
        assert_eq!(story.build(11, 90), (90, vec![(0, 114, 86, false)]));
        assert_eq!(story.build(12, 200), (104, vec![(0, 200, 100, true)]));
        // Only the middle has arrived.
        story.transmitter.handle_status(&status(1, &[(0, 0, 114), (0, 200, SO_END)]));
        assert_eq!(story.transmitter.pending(), (214, 2));
        assert_eq!(story.build(20, 1000), (120 + 2 + 104, vec![(0, 0, 114, false), (0, 200, 100, true)]));
        story.transmitter.handle_status(&status(1, &[]));
        assert!(story.transmitter.sent.is_empty() && story.transmitter.borders.is_empty());
    }

    #[test]
    fn what_arrived_while_it_was_pending_is_not_retransmitted() {
        let mut story = Story::new(None, 8);
        story.enqueue(4, 98);
        (0..4).for_each(|ms| drop(story.build(ms, 102)));
        story.transmitter.handle_status(&status(4, &[(0, 0, SO_END), (2, 0, SO_END), (3, 0, SO_END)]));
        assert_eq!(story.transmitter.vt_a, 0);
        story.transmitter.handle_status(&status(3, &[(2, 50, 60)]));
        assert_eq!(story.transmitter.vt_a, 2);
        assert_eq!(story.build(9, 500).1, [(2, 50, 10, false), (3, 0, 100, true)]);
        // Two that HARQ has delayed.
        story.transmitter.handle_status(&status(4, &[(2, 0, SO_END)]));
        story.transmitter.handle_status(&status(4, &[(2, 0, SO_END), (3, 0, SO_END)]));
        assert_eq!(story.transmitter.pending(), (100, 1), "PDU 3 has been acknowledged");
        story.transmitter.handle_status(&status(1, &[(0, 0, SO_END)]));
        assert_eq!((story.transmitter.vt_a, story.transmitter.pending()), (2, (100, 1)));
    }

    #[test]
    fn a_pdu_that_is_missing_too_often_fails_the_link() {
        let mut story = Story::new(None, 2);
        story.enqueue(1, 98);
        story.build(0, 102);
        let nack = status(1, &[(0, 0, SO_END)]);
        story.transmitter.handle_status(&nack);
        story.transmitter.handle_status(&nack);
        assert_eq!(story.transmitter.sent[0].retx_count, Some(0), "pending already");
        story.build(1, 102);
        story.transmitter.handle_status(&nack);
        assert!(!story.transmitter.failed, "RETX_COUNT is 1");
        story.build(2, 102);
        story.transmitter.handle_status(&nack);
        assert!(story.transmitter.failed, "RETX_COUNT is maxRetxThreshold");
    }
}
