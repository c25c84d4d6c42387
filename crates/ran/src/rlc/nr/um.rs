//! UM: segments, their reassembly, and the discard of what stays incomplete (38.322, 5.2.2).
//!
//! A complete SDU has no SN and is delivered at once. A lost SDU is noticed by PDCP, not here.
//!
//! Deviation: a segment whose SN, ambiguous after half a cycle, would place it among the segments of another SDU is
//! ignored.

use std::collections::VecDeque;

use aqm::{Drops, Packet};
use units::{Span, Time};

use super::pdu::{Contents, Headers, Pos, Run};
use super::ranges::Ranges;
use crate::pdcp::Sdus;
use crate::rlc::mode::{NrUm, UmSn};

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Entity {
    /// Modulus of sequence numbers minus one: modulo is `& mask`.
    mask: u16,
    pub(in crate::rlc) headers: Headers,
    t_reassembly: Span,
    /// TX_Next: the SN of the next SDU to be segmented.
    tx_next: u16,
    /// RX_Next_Reassembly: the earliest SN still considered for reassembly.
    next_reassembly: u16,
    /// RX_Timer_Trigger: after the SN that started t-Reassembly.
    trigger: u16,
    /// RX_Next_Highest: after the highest SN received.
    highest: u16,
    /// When t-Reassembly expires; `Time::MAX` if it is not running.
    pub(in crate::rlc) reassembly: Time,
    /// From RX_Next_Reassembly up to RX_Next_Highest: the SDU of each SN.
    slots: VecDeque<Slot>,
    /// Received segments of SDUs in `slots`.
    got: Ranges,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Missing,
    /// Segments of this SDU have arrived.
    Partial(u64),
    Delivered,
}

impl Entity {
    pub(in crate::rlc) fn new(config: &NrUm) -> Self {
        // 6.2.2.3.
        let (bits, segment) = match config.sn {
            UmSn::Six => (6, 1),
            UmSn::Twelve => (12, 2),
        };
        Entity {
            mask: (1 << bits) - 1,
            headers: Headers { whole: 1, segment },
            t_reassembly: config.t_reassembly,
            tx_next: 0,
            next_reassembly: 0,
            trigger: 0,
            highest: 0,
            reassembly: Time::MAX,
            slots: VecDeque::new(),
            got: Ranges::default(),
        }
    }

    /// 5.2.2.1: fills `room` bytes with PDUs. Returns the bytes used.
    #[inline]
    pub(in crate::rlc) fn build<P: Packet>(
        &mut self,
        sdus: &mut Sdus<P>,
        room: u32,
        now: Time,
        block: &mut Contents,
        drops: &mut impl Drops<P>,
    ) -> u32 {
        let mut used = 0;
        let mut run = Run { sn: self.tx_next, ..Run::default() };
        while self.headers.cut(0, u32::MAX, false, room - used).is_some() {
            let Some(head) = sdus.head(now, drops, |_| {}) else { break };
            let Some((take, bytes)) = self.headers.cut(head.so, head.left, true, room - used) else { break };
            sdus.send(take, now);
            used += bytes;
            if run.to == Pos::default() {
                run.from = Pos::new(head.number, head.so);
            }
            if take < head.left {
                run.to = Pos::new(head.number, head.so + take);
                break;
            }
            run.to = Pos::start(head.number + 1);
            if head.so > 0 {
                self.tx_next = (self.tx_next + 1) & self.mask;
            }
        }
        if used > 0 {
            block.push(run);
        }
        used
    }

    /// 5.2.2.2.2: receives a run of PDUs. Calls `complete` with each range of SDUs that are complete.
    #[inline]
    pub(in crate::rlc) fn receive(&mut self, run: &Run, now: Time, mut complete: impl FnMut(u64, u64)) {
        let (mut first, end) = (run.from.number(), run.to.number());
        let mut sn = run.sn;
        if run.from.so() > 0 {
            let to = run.to.min(Pos::start(first + 1));
            if self.segment(sn, run.from, to, now) {
                complete(first, first + 1);
            }
            sn = (sn + 1) & self.mask;
            first += 1;
        }
        if first < end {
            complete(first, end);
        }
        if run.to.so() > 0 && first <= end && self.segment(sn, Pos::start(end), run.to, now) {
            complete(end, end + 1);
        }
    }

    /// Receives a segment; returns whether its SDU is complete.
    fn segment(&mut self, sn: u16, from: Pos, to: Pos, now: Time) -> bool {
        if self.in_window(sn) && self.is_before_next(sn) {
            return false;
        }
        let index = usize::from(self.past_next(sn));
        let number = from.number();
        // 5.2.2.2.3.
        let outside = !self.in_window(sn);
        if outside {
            // The window may push out all there is and more.
            self.highest = (sn + 1) & self.mask;
            self.slots.resize(index + 1, Slot::Missing);
        }
        match self.slots[index] {
            Slot::Missing => self.slots[index] = Slot::Partial(number),
            Slot::Partial(other) if other == number => {}
            _ => return false,
        }
        self.got.insert(from, to);
        let complete = self.got.contains(Pos::start(number), Pos::start(number + 1));
        if complete {
            self.got.remove(Pos::start(number), Pos::start(number + 1));
            self.slots[index] = Slot::Delivered;
        }
        if outside {
            while self.slots.len() > usize::from(self.window()) {
                self.advance();
            }
        }
        self.advance_over_delivered();
        if self.reassembly != Time::MAX {
            let outside = !self.in_window(self.trigger) && self.trigger != self.highest;
            let passed = self.trigger == self.next_reassembly || self.is_before_next(self.trigger);
            if outside || passed || !self.is_missing() {
                self.reassembly = Time::MAX;
            }
        }
        if self.reassembly == Time::MAX {
            self.start_reassembly(now);
        }
        complete
    }

    /// 5.2.2.2.4: handles the expiry of t-Reassembly.
    pub(in crate::rlc) fn handle_timeout(&mut self, now: Time) {
        while now >= self.reassembly {
            self.reassembly = Time::MAX;
            for _ in 0..self.past_next(self.trigger) {
                self.advance();
            }
            self.advance_over_delivered();
            self.start_reassembly(now);
        }
    }

    fn start_reassembly(&mut self, now: Time) {
        if self.is_missing() {
            self.reassembly = now + self.t_reassembly;
            self.trigger = self.highest;
        }
    }

    /// Returns whether RX_Next_Highest > RX_Next_Reassembly + 1, or they differ by one and a segment is missing before
    /// the last one received.
    fn is_missing(&self) -> bool {
        match (self.slots.len(), self.slots.front()) {
            (0, _) => false,
            (1, Some(&Slot::Partial(number))) => self.got.begins_inside(number),
            _ => true,
        }
    }

    fn advance_over_delivered(&mut self) {
        while self.slots.front() == Some(&Slot::Delivered) {
            self.advance();
        }
    }

    /// Advances RX_Next_Reassembly by one and discards the segments before it.
    fn advance(&mut self) {
        self.next_reassembly = (self.next_reassembly + 1) & self.mask;
        if let Some(Slot::Partial(number)) = self.slots.pop_front() {
            self.got.remove(Pos::start(number), Pos::start(number + 1));
        }
    }

    /// UM_Window_Size (7.2).
    fn window(&self) -> u16 {
        self.mask / 2 + 1
    }

    fn past_next(&self, sn: u16) -> u16 {
        sn.wrapping_sub(self.next_reassembly) & self.mask
    }

    /// 7.1: values are compared relative to RX_Next_Highest - UM_Window_Size.
    fn in_window(&self, sn: u16) -> bool {
        self.past_window(sn) < self.window()
    }

    fn is_before_next(&self, sn: u16) -> bool {
        self.past_window(sn) < self.past_window(self.next_reassembly)
    }

    fn past_window(&self, sn: u16) -> u16 {
        sn.wrapping_sub(self.highest.wrapping_sub(self.window())) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDUs in two segments each; t-Reassembly 10 ms.
    struct Story {
        entity: Entity,
        complete: Vec<u64>,
    }

    impl Story {
        fn new(sn: UmSn) -> Story {
            let t_reassembly = Span::from_millis(10);
            Story { entity: Entity::new(&NrUm { sn, t_reassembly, ..NrUm::default() }), complete: Vec::new() }
        }

        /// Receives the first (0) or second (1) segment of SDU `number`. Returns RX_Next_Reassembly, RX_Timer_Trigger
        /// and RX_Next_Highest.
        fn receive(&mut self, ms: u64, number: u64, segment: u32) -> [u16; 3] {
            let middle = Pos::new(number, 50);
            let (from, to) = if segment == 0 { (Pos::start(number), middle) } else { (middle, Pos::start(number + 1)) };
            let run = Run { to, sn: number as u16 & self.entity.mask, ..Run::at(from) };
            let complete = &mut self.complete;
            self.entity.receive(&run, Time::from_nanos(ms * 1_000_000), |from, to| complete.extend(from..to));
            self.state()
        }

        fn time_out(&mut self, ms: u64) -> [u16; 3] {
            self.entity.handle_timeout(Time::from_nanos(ms * 1_000_000));
            self.state()
        }

        fn state(&self) -> [u16; 3] {
            [self.entity.next_reassembly, self.entity.trigger, self.entity.highest]
        }

        fn timer(&self) -> Option<u64> {
            let timer = self.entity.reassembly;
            (timer != Time::MAX).then(|| timer.as_nanos() / 1_000_000)
        }
    }

    #[test]
    fn segments_that_harq_reorders_are_reassembled() {
        let mut story = Story::new(UmSn::Twelve);
        assert_eq!((story.receive(0, 0, 0), story.timer()), ([0, 0, 1], None), "the end may follow");
        assert_eq!((story.receive(1, 1, 1), story.timer()), ([0, 2, 2], Some(11)));
        assert_eq!(story.receive(2, 1, 0), [0, 2, 2]);
        assert_eq!(story.complete, [1], "out of order");
        assert_eq!((story.receive(3, 0, 1), story.timer()), ([2, 2, 2], None));
        assert_eq!(story.complete, [1, 0]);
        assert!(story.entity.got.is_empty() && story.entity.slots.is_empty());
    }

    #[test]
    fn an_end_without_its_beginning_starts_t_reassembly() {
        let mut story = Story::new(UmSn::Twelve);
        assert_eq!((story.receive(0, 0, 1), story.timer()), ([0, 1, 1], Some(10)));
        assert_eq!((story.receive(1, 0, 0), story.timer()), ([1, 1, 1], None));
        assert_eq!(story.complete, [0]);
    }

    #[test]
    fn what_is_incomplete_is_discarded_when_t_reassembly_ends() {
        let mut story = Story::new(UmSn::Twelve);
        story.receive(0, 0, 0);
        story.receive(0, 2, 0);
        assert_eq!((story.state(), story.timer()), ([0, 3, 3], Some(10)));
        assert_eq!(story.receive(5, 4, 1), [0, 3, 5]);
        assert_eq!((story.time_out(10), story.timer()), ([3, 5, 5], Some(20)), "anew, for SDUs 3 and 4");
        assert_eq!(story.receive(11, 0, 1), [3, 5, 5]);
        assert_eq!(story.receive(11, 2, 1), [3, 5, 5]);
        assert!(story.complete.is_empty(), "too late");
        assert_eq!(story.receive(12, 4, 0), [3, 5, 5]);
        assert_eq!((story.time_out(20), story.timer()), ([5, 5, 5], None));
        assert_eq!(story.complete, [4]);
    }

    #[test]
    fn the_reassembly_window_pushes_out_what_is_older() {
        for (sn, window) in [(UmSn::Six, 32), (UmSn::Twelve, 2048)] {
            let mut story = Story::new(sn);
            story.receive(0, 0, 0);
            for number in 1..window {
                story.receive(0, number, 0);
                assert_eq!(story.receive(0, number, 1)[0], 0);
            }
            // SDU 0 leaves the window of SNs.
            let next = window as u16 + 1;
            assert_eq!(story.receive(1, window, 0), [next - 1, 2, next]);
            assert_eq!(story.timer(), None);
            story.receive(1, 0, 1);
            assert_eq!(story.complete.len() as u64, window - 1);
        }
    }

    #[test]
    fn sequence_numbers_wrap() {
        for (sn, modulus) in [(UmSn::Six, 64), (UmSn::Twelve, 4096)] {
            let mut story = Story::new(sn);
            for number in 0..4 * modulus {
                story.receive(number, number, (number % 2) as u32);
                story.receive(number, number, 1 - (number % 2) as u32);
            }
            assert!(story.complete.iter().copied().eq(0..4 * modulus));
            // The timer ran for each second SDU, last for the last one.
            assert_eq!((story.state(), story.timer()), ([0, 0, 0], None));
        }
    }

    #[test]
    fn after_half_a_cycle_without_reception_sns_are_taken_for_old_ones() {
        let mut story = Story::new(UmSn::Six);
        story.receive(0, 0, 0);
        story.receive(0, 0, 1);
        // SDUs 1 to 33 are lost. The SN of 34 is inside the window that ends at 1.
        for number in 34..80 {
            story.receive(1, number, 0);
            story.receive(1, number, 1);
        }
        // SDUs 34 to 64 have SNs 34 to 63 and 0, those before RX_Next_Reassembly; 65 has SN 1.
        assert!(story.complete.iter().copied().eq([0].into_iter().chain(65..80)));
    }

    #[test]
    fn a_segment_with_the_sn_of_another_sdu_is_ignored() {
        let mut story = Story::new(UmSn::Six);
        story.receive(0, 1, 0);
        story.receive(0, 65, 1);
        assert!(story.complete.is_empty());
        story.receive(1, 1, 1);
        assert_eq!(story.complete, [1]);
        assert!(story.entity.got.is_empty());
    }
}
