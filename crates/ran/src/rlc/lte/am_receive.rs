//! The receiving side of AM: reassembly, reordering and STATUS PDUs (36.322, 5.1.3.2, 5.2.3).
//!
//! Deviations:
//! 1. If not all missing portions of a PDU fit, the last one reported is extended to the PDU's end, so that nothing
//!    missing counts as acknowledged. If none fits, ACK_SN stops before that PDU.
//! 2. A STATUS PDU carries at most eight runs of NACKs (consecutive missing PDUs are one run, with 12 bits each);
//!    beyond that, it ends as if the grant were too small.

use std::collections::VecDeque;

use units::Time;

use super::pdu::{AM_WINDOW, Pdu, SO_END, Status, after, ahead};
use crate::rlc::Am;

/// The state of one receiving side.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Receiver {
    config: Am,
    /// VR(R): the first PDU that is not complete.
    vr_r: u16,
    /// VR(MS): the highest possible ACK_SN.
    vr_ms: u16,
    /// VR(X): after the PDU that started t-Reordering.
    vr_x: u16,
    /// VR(R) up to VR(H), which follows the highest PDU received.
    buffer: VecDeque<Slot>,
    /// Received parts of incomplete PDUs in `buffer`: sorted, without overlaps or adjacent ends.
    portions: Vec<(u16, u16, u16)>,
    /// The end of the part of the stream received without a gap.
    in_order: u64,
    /// When t-Reordering expires; `Time::MAX` if it is not running.
    pub(in crate::rlc) reordering: Time,
    status_triggered: bool,
    /// When t-StatusProhibit expires, or expired.
    prohibited: Time,
    /// When it expires, if a STATUS PDU waits for it; `Time::MAX` otherwise.
    pub(in crate::rlc) status_due: Time,
}

/// The state of a PDU.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Its start in the stream, once a part of it has arrived.
    start: u64,
    /// Its length, once its end has arrived; 0 before.
    len: u16,
    complete: bool,
    /// Whether it carried a poll.
    polled: bool,
}

impl Receiver {
    pub(in crate::rlc) fn new(config: &Am) -> Self {
        Receiver {
            config: *config,
            vr_r: 0,
            vr_ms: 0,
            vr_x: 0,
            buffer: VecDeque::new(),
            portions: Vec::new(),
            in_order: 0,
            reordering: Time::MAX,
            status_triggered: false,
            prohibited: Time::ZERO,
            status_due: Time::MAX,
        }
    }

    /// 5.1.3.2: handles a data PDU. Returns the end of the part of the stream received without a gap.
    #[inline]
    pub(in crate::rlc) fn receive(&mut self, pdu: &Pdu, now: Time) -> u64 {
        let index = ahead(pdu.sn, self.vr_r);
        // The common case: nothing is missing, and the PDU is the next one, whole. The code below does the same.
        if index == 0 && self.buffer.is_empty() && pdu.is_whole() && self.reordering == Time::MAX {
            self.vr_r = after(self.vr_r, 1);
            self.vr_ms = self.vr_r;
            self.in_order = pdu.end();
            if pdu.poll {
                self.trigger_status(now);
            }
            return self.in_order;
        }
        // 5.1.3.2.2.
        let placed = index < AM_WINDOW && self.place(pdu, index);
        if placed {
            self.update(now);
        }
        if pdu.poll {
            // 5.2.3: the report waits until x < VR(MS), to allow for reordering by HARQ.
            let index = ahead(pdu.sn, self.vr_r);
            if !placed || index >= AM_WINDOW || index < ahead(self.vr_ms, self.vr_r) {
                self.trigger_status(now);
            } else {
                self.buffer[usize::from(index)].polled = true;
            }
        }
        self.in_order
    }

    /// Places `pdu` in the buffer; returns whether it contained anything new.
    fn place(&mut self, pdu: &Pdu, index: u16) -> bool {
        if usize::from(index) >= self.buffer.len() {
            // VR(H) advances.
            self.buffer.resize(usize::from(index) + 1, Slot::default());
        }
        let slot = &mut self.buffer[usize::from(index)];
        if slot.complete {
            return false;
        }
        slot.start = pdu.start - u64::from(pdu.so);
        if pdu.last {
            slot.len = pdu.so + pdu.len;
        }
        if pdu.is_whole() {
            slot.complete = true;
            self.portions.retain(|portion| portion.0 != pdu.sn);
            return true;
        }
        let len = slot.len;
        let (mut from, mut to) = (pdu.so, pdu.so + pdu.len);
        if self.portions.iter().any(|&(sn, a, b)| sn == pdu.sn && a <= from && to <= b) {
            return false;
        }
        self.portions.retain(|&(sn, a, b)| {
            let touches = sn == pdu.sn && a <= to && from <= b;
            if touches {
                (from, to) = (from.min(a), to.max(b));
            }
            !touches
        });
        if from == 0 && to == len {
            slot.complete = true;
        } else {
            let vr_r = self.vr_r;
            let at = self.portions.partition_point(|&(sn, a, _)| (ahead(sn, vr_r), a) < (index, from));
            self.portions.insert(at, (pdu.sn, from, to));
        }
        true
    }

    /// 5.1.3.2.3: a PDU was placed in the buffer.
    fn update(&mut self, now: Time) {
        self.advance_vr_ms(0, now);
        let mut last = None;
        while self.buffer.front().is_some_and(|slot| slot.complete) {
            last = self.buffer.pop_front();
            self.vr_r = after(self.vr_r, 1);
        }
        if let Some(last) = last {
            self.in_order = last.start + u64::from(last.len);
        }
        if let (Some(slot), Some(&(sn, 0, to))) = (self.buffer.front(), self.portions.first())
            && sn == self.vr_r
        {
            self.in_order = slot.start + u64::from(to);
        }
        if self.reordering != Time::MAX {
            let x = ahead(self.vr_x, self.vr_r);
            if x == 0 || x > AM_WINDOW {
                self.reordering = Time::MAX;
            }
        }
        if self.reordering == Time::MAX && !self.buffer.is_empty() {
            self.start_reordering(now);
        }
    }

    /// Handles the expiry of t-StatusProhibit, which allows a STATUS PDU, and of t-Reordering (5.1.3.2.4).
    pub(in crate::rlc) fn handle_timeout(&mut self, now: Time) {
        if now >= self.status_due {
            self.status_due = Time::MAX;
        }
        if now < self.reordering {
            return;
        }
        self.reordering = Time::MAX;
        let x = ahead(self.vr_x, self.vr_r);
        self.advance_vr_ms(x, now);
        if ahead(self.vr_ms, self.vr_r) < self.buffer.len() as u16 {
            self.start_reordering(now);
        }
        self.trigger_status(now);
    }

    fn start_reordering(&mut self, now: Time) {
        self.reordering = now + self.config.t_reordering;
        self.vr_x = after(self.vr_r, self.buffer.len() as u16);
    }

    /// Advances VR(MS) to the first incomplete PDU, but at least to `least` after VR(R). Polls of the PDUs that it
    /// passes trigger a report (5.2.3).
    fn advance_vr_ms(&mut self, least: u16, now: Time) {
        let mut ms = ahead(self.vr_ms, self.vr_r);
        let mut polled = false;
        while let Some(slot) = self.buffer.get_mut(usize::from(ms)).filter(|slot| slot.complete || ms < least) {
            polled |= slot.polled;
            slot.polled = false;
            ms += 1;
        }
        self.vr_ms = after(self.vr_r, ms);
        if polled {
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

    /// Returns the STATUS PDU that may be sent now, in `room` bytes (5.2.3).
    #[inline]
    pub(in crate::rlc) fn status(&self, now: Time, room: u32) -> Option<Status> {
        (self.may_report(now) && room >= 2).then(|| self.construct(room))
    }

    /// Returns whether a STATUS PDU may be sent now.
    #[inline]
    pub(in crate::rlc) fn may_report(&self, now: Time) -> bool {
        self.status_triggered && now >= self.prohibited
    }

    /// Called when a STATUS PDU was sent.
    pub(in crate::rlc) fn status_sent(&mut self, now: Time) {
        self.status_triggered = false;
        self.status_due = Time::MAX;
        self.prohibited = now + self.config.t_status_prohibit;
    }

    fn construct(&self, room: u32) -> Status {
        let mut status = Status::new();
        status.ack_sn = self.vr_ms;
        for index in 0..ahead(self.vr_ms, self.vr_r) {
            let sn = after(self.vr_r, index);
            let slot = &self.buffer[usize::from(index)];
            if !slot.complete && !self.report(&mut status, sn, slot, room) {
                status.ack_sn = sn;
                break;
            }
        }
        status
    }

    /// Reports the missing parts of a PDU.
    fn report(&self, status: &mut Status, sn: u16, slot: &Slot, room: u32) -> bool {
        let mut at = 0;
        for &(_, from, to) in self.portions.iter().filter(|portion| portion.0 == sn) {
            if at < from && !status.push(sn, at, from, room) {
                return status.extend(sn);
            }
            at = to;
        }
        at == slot.len && slot.len > 0 || status.push(sn, at, SO_END, room) || status.extend(sn)
    }

    /// 5.4: returns the received parts of the stream, in order and possibly adjacent.
    pub(in crate::rlc) fn received(&self) -> impl Iterator<Item = (u64, u64)> {
        let buffered = (0..).zip(&self.buffer).flat_map(|(index, slot)| {
            let sn = after(self.vr_r, index);
            let whole = slot.complete.then_some((slot.start, slot.start + u64::from(slot.len)));
            let portions = self.portions.iter().filter(move |portion| portion.0 == sn);
            whole.into_iter().chain(portions.map(|p| (slot.start + u64::from(p.1), slot.start + u64::from(p.2))))
        });
        core::iter::once((0, self.in_order)).chain(buffered)
    }
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::super::pdu::Nack;
    use super::*;

    /// PDUs of 100 bytes; t-Reordering 10 ms, t-StatusProhibit 20 ms.
    struct Story(Receiver);

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn part(sn: u16, so: u16, len: u16) -> Pdu {
        let start = u64::from(sn) * 100 + u64::from(so);
        Pdu { start, len, so, sn, last: so + len == 100, poll: false }
    }

    fn whole(sn: u16) -> Pdu {
        part(sn, 0, 100)
    }

    fn polling(sn: u16) -> Pdu {
        Pdu { poll: true, ..whole(sn) }
    }

    fn missing(sn: u16, count: u16) -> Nack {
        Nack { sn, count, from: 0, to: SO_END }
    }

    impl Story {
        fn new() -> Story {
            let config =
                Am { t_reordering: Span::from_millis(10), t_status_prohibit: Span::from_millis(20), ..Am::default() };
            Story(Receiver::new(&config))
        }

        fn receive(&mut self, ms: u64, pdus: &[Pdu]) -> u64 {
            pdus.iter().map(|pdu| self.0.receive(pdu, at(ms))).last().unwrap_or(0)
        }

        fn status(&mut self, ms: u64, room: u32) -> Option<(u16, Vec<Nack>)> {
            let status = self.0.status(at(ms), room)?;
            assert!(status.bytes() <= room);
            self.0.status_sent(at(ms));
            Some((status.ack_sn, status.nacks().to_vec()))
        }
    }

    #[test]
    fn a_gap_is_reported_when_t_reordering_ends() {
        let mut story = Story::new();
        assert_eq!(story.receive(0, &[whole(0), whole(2)]), 100);
        assert_eq!((story.0.vr_r, story.0.vr_x, story.0.vr_ms), (1, 3, 1));
        assert_eq!(story.0.reordering, at(10));
        assert_eq!(story.status(9, 100), None);
        story.receive(5, &[whole(4)]);
        story.0.handle_timeout(at(10));
        // PDU 3 is not reported: it is behind the PDU that started the timer, which runs again for it.
        assert_eq!((story.0.vr_ms, story.0.vr_x, story.0.reordering), (3, 5, at(20)));
        assert_eq!(story.status(10, 100), Some((3, vec![missing(1, 1)])));
        story.0.handle_timeout(at(20));
        assert_eq!(story.status(29, 100), None, "t-StatusProhibit runs");
        assert_eq!(story.status(30, 100), Some((5, vec![missing(1, 1), missing(3, 1)])));
        assert_eq!(story.receive(31, &[whole(1)]), 300);
        assert_eq!(story.receive(31, &[whole(3)]), 500);
        assert_eq!((story.0.vr_r, story.0.vr_ms, story.0.reordering), (5, 5, Time::MAX));
    }

    #[test]
    fn t_reordering_ends_with_the_gap_and_begins_with_the_next() {
        let mut story = Story::new();
        story.receive(0, &[whole(0), whole(2), whole(3)]);
        assert_eq!((story.0.vr_x, story.0.reordering), (3, at(10)));
        story.receive(4, &[whole(1)]);
        assert_eq!((story.0.vr_r, story.0.reordering), (4, Time::MAX), "VR(R) went past VR(X)");
        story.receive(5, &[whole(5), whole(7)]);
        assert_eq!((story.0.vr_x, story.0.reordering), (6, at(15)));
        story.receive(8, &[whole(4)]);
        assert_eq!((story.0.vr_r, story.0.vr_x, story.0.reordering), (6, 8, at(18)), "anew, for PDU 6");
    }

    #[test]
    fn a_poll_is_answered_at_once_if_nothing_before_it_is_missing() {
        let mut story = Story::new();
        story.receive(0, &[whole(0), polling(1)]);
        assert_eq!(story.status(0, 2), Some((2, vec![])));
    }

    #[test]
    fn a_poll_behind_a_gap_waits_for_harq_to_fill_it() {
        let mut story = Story::new();
        story.receive(0, &[whole(0), polling(2)]);
        assert_eq!(story.status(3, 100), None);
        story.receive(8, &[whole(1)]);
        assert_eq!(story.0.reordering, Time::MAX, "VR(X) = VR(R)");
        assert_eq!(story.status(8, 100), Some((3, vec![])));
    }

    #[test]
    fn a_duplicate_that_polls_is_answered() {
        let mut story = Story::new();
        story.receive(0, &[whole(0), polling(0)]);
        assert_eq!(story.status(0, 100), Some((1, vec![])));
        assert_eq!(story.receive(30, &[polling(600)]), 100, "outside of the window");
        assert_eq!(story.status(30, 100), Some((1, vec![])));
    }

    #[test]
    fn what_is_missing_of_a_pdu_is_reported_with_offsets() {
        let mut story = Story::new();
        assert_eq!(story.receive(0, &[part(0, 20, 10), part(0, 50, 50), part(0, 0, 10), whole(1)]), 10);
        story.0.handle_timeout(at(10));
        let portion = |from, to| Nack { sn: 0, count: 1, from, to };
        assert_eq!(story.status(10, 100), Some((2, vec![portion(10, 20), portion(30, 50)])));
        // Overlaps with what is there count once.
        assert_eq!(story.receive(21, &[part(0, 5, 30)]), 35);
        assert_eq!(story.receive(21, &[part(0, 34, 16)]), 200);
        assert!(story.0.portions.is_empty());
    }

    #[test]
    fn an_end_that_is_missing_is_reported_to_the_end() {
        let mut story = Story::new();
        story.receive(0, &[part(0, 0, 10), whole(1)]);
        story.0.handle_timeout(at(10));
        assert_eq!(story.status(10, 100), Some((2, vec![Nack { sn: 0, count: 1, from: 10, to: SO_END }])));
    }

    #[test]
    fn a_status_that_does_not_fit_acknowledges_up_to_what_it_leaves_out() {
        let mut story = Story::new();
        story.receive(0, &[whole(1), whole(3), part(4, 20, 20), whole(5)]);
        story.0.handle_timeout(at(10));
        story.0.handle_timeout(at(20));
        assert_eq!(story.0.status(at(20), 1), None);
        let fits = |room| story.0.status(at(20), room).map(|s| (s.ack_sn, s.bytes(), s.nacks().len()));
        assert_eq!(fits(2), Some((0, 2, 0)), "15 bits");
        assert_eq!(fits(4), Some((2, 4, 1)), "27");
        assert_eq!(fits(5), Some((4, 5, 2)), "39");
        assert_eq!(fits(10), Some((4, 5, 2)), "one of two portions would be 81");
        assert_eq!(fits(11), Some((6, 11, 3)), "which then stands for both");
        assert_eq!(fits(16), Some((6, 16, 4)), "123");
    }

    #[test]
    fn a_pdu_in_more_pieces_than_a_status_holds_is_reported_all_the_same() {
        let mut story = Story::new();
        let pieces: Vec<Pdu> = (0..10).map(|n| part(0, 5 + 10 * n, 5)).collect();
        story.receive(0, &pieces);
        story.0.handle_timeout(at(10));
        let (ack_sn, nacks) = story.status(10, 100).expect("a reception failure");
        assert_eq!((ack_sn, nacks.len()), (1, 8));
        assert_eq!((nacks[6].from, nacks[6].to, nacks[7].from, nacks[7].to), (60, 65, 70, SO_END));
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut story = Story::new();
        let pdu = |n: u64| Pdu { start: n * 100, sn: (n % 1024) as u16, ..whole(0) };
        let mut lost = 0;
        for n in 0..3000 {
            if n % 700 == 699 {
                lost = n;
            } else {
                story.receive(n, &[pdu(n)]);
            }
            if lost > 0 && n == lost + 5 {
                assert_eq!(story.receive(n, &[pdu(lost)]), (n + 1) * 100);
            }
        }
        assert_eq!((story.0.vr_r, story.0.in_order), ((3000 % 1024) as u16, 300_000));
    }
}
