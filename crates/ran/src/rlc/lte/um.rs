//! UM: numbering, and reordering and loss detection at the receiver (36.322, 5.1.2).
//!
//! As in the standard, losses at the end of a transmission are not detected: their SDUs stay in transit until another
//! PDU arrives.
//!
//! Deviation: a PDU whose sequence number, ambiguous after half a cycle, would place it after delivered data is
//! ignored.

use std::collections::VecDeque;

use aqm::{Drops, Packet};
use units::{Span, Time};

use super::elements::LengthIndicators;
use super::pdu::{Pdu, SO_END, header};
use crate::pdcp::{Deliver, Sdus};
use crate::rlc::{Block, SnLength, Um};

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub(in crate::rlc) struct Entity {
    /// Modulus of sequence numbers minus one: modulo is `& mask`.
    mask: u16,
    /// UM_Window_Size (7.2).
    window: u16,
    header: u32,
    t_reordering: Span,
    /// VT(US).
    vt_us: u16,
    /// VR(UR): the first PDU that may still arrive.
    vr_ur: u16,
    /// VR(UX): after the PDU that started t-Reordering.
    vr_ux: u16,
    /// VR(UH): after the highest PDU received.
    vr_uh: u16,
    /// When t-Reordering expires; `Time::MAX` if it is not running.
    pub(in crate::rlc) reordering: Time,
    /// From VR(UR) up to VR(UH): the range of the stream in each PDU, empty if it has not arrived.
    buffer: VecDeque<(u64, u64)>,
    /// The last range assembled without a gap.
    run: (u64, u64),
}

/// In `buffer`: not received.
const MISSING: (u64, u64) = (0, 0);

impl Entity {
    pub(in crate::rlc) fn new(config: &Um) -> Self {
        let bits = match config.sn {
            SnLength::Five => 5,
            SnLength::Ten => 10,
        };
        Entity {
            mask: (1 << bits) - 1,
            window: 1 << (bits - 1),
            // 6.2.1.3.
            header: if bits == 5 { 1 } else { 2 },
            t_reordering: config.t_reordering,
            vt_us: 0,
            vr_ur: 0,
            vr_ux: 0,
            vr_uh: 0,
            reordering: Time::MAX,
            buffer: VecDeque::new(),
            run: MISSING,
        }
    }

    /// 5.1.2.1: builds one PDU that fills the rest of the grant.
    #[inline]
    pub(in crate::rlc) fn build<P: Packet>(
        &mut self,
        sdus: &mut Sdus<P>,
        grant: u32,
        now: Time,
        block: &mut Block,
        drops: &mut impl Drops<P>,
    ) {
        let room = block.room(grant).saturating_sub(self.header);
        let mapped = sdus.map::<LengthIndicators>(room.min(u32::from(SO_END)), now, drops, |_| {});
        if mapped.len > 0 {
            let len = mapped.len as u16;
            let pdu = Pdu { start: mapped.start, len, so: 0, sn: self.vt_us, last: true, poll: false };
            block.push(pdu, header(self.header, mapped.borders));
            self.vt_us = (self.vt_us + 1) & self.mask;
        }
    }

    #[inline]
    pub(in crate::rlc) fn receive<P: Packet>(
        &mut self,
        pdu: &Pdu,
        now: Time,
        sdus: &mut Sdus<P>,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        let arrived = (pdu.start, pdu.end());
        // The common case: nothing is missing, so t-Reordering does not run, and the PDU is the next one. The code below does the
        // same.
        if pdu.sn == self.vr_ur && self.buffer.is_empty() {
            self.vr_ur = (pdu.sn + 1) & self.mask;
            self.vr_uh = self.vr_ur;
            return self.assemble(arrived, sdus, deliver, drops);
        }
        let index = usize::from(self.past_ur(pdu.sn));
        let in_window = self.in_window(pdu.sn);
        // 5.1.2.2.2: too old, or a duplicate.
        if in_window && (self.is_before_ur(pdu.sn) || self.buffer.get(index).is_some_and(|&have| have != MISSING)) {
            return;
        }
        if index >= self.buffer.len() {
            self.buffer.resize(index + 1, MISSING);
        }
        self.buffer[index] = arrived;
        // 5.1.2.2.3.
        if !in_window {
            self.vr_uh = (pdu.sn + 1) & self.mask;
            while self.buffer.len() > usize::from(self.window) {
                self.advance(sdus, deliver, drops);
            }
        }
        self.advance_over_received(sdus, deliver, drops);
        if self.reordering != Time::MAX {
            let outside = !self.in_window(self.vr_ux) && self.vr_ux != self.vr_uh;
            if outside || self.vr_ux == self.vr_ur || self.is_before_ur(self.vr_ux) {
                self.reordering = Time::MAX;
            }
        }
        self.start_reordering(now);
    }

    /// 5.1.2.2.4: handles the expiry of t-Reordering.
    pub(in crate::rlc) fn handle_timeout<P: Packet>(
        &mut self,
        now: Time,
        sdus: &mut Sdus<P>,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        if now < self.reordering {
            return;
        }
        self.reordering = Time::MAX;
        for _ in 0..self.past_ur(self.vr_ux) {
            self.advance(sdus, deliver, drops);
        }
        self.advance_over_received(sdus, deliver, drops);
        self.start_reordering(now);
    }

    /// 5.4: returns the received parts of the stream, in order.
    pub(in crate::rlc) fn received(&self) -> impl Iterator<Item = (u64, u64)> {
        core::iter::once(self.run).chain(self.buffer.iter().copied().filter(|&have| have != MISSING))
    }

    fn start_reordering(&mut self, now: Time) {
        if self.reordering == Time::MAX && self.vr_uh != self.vr_ur {
            self.reordering = now + self.t_reordering;
            self.vr_ux = self.vr_uh;
        }
    }

    fn advance_over_received<P: Packet>(
        &mut self,
        sdus: &mut Sdus<P>,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        while self.buffer.front().is_some_and(|&have| have != MISSING) {
            self.advance(sdus, deliver, drops);
        }
    }

    /// Advances VR(UR) by one.
    fn advance<P: Packet>(&mut self, sdus: &mut Sdus<P>, deliver: &mut impl Deliver<P>, drops: &mut impl Drops<P>) {
        self.vr_ur = (self.vr_ur + 1) & self.mask;
        if let Some(have) = self.buffer.pop_front().filter(|&have| have != MISSING) {
            self.assemble(have, sdus, deliver, drops);
        }
    }

    #[inline]
    fn assemble<P: Packet>(
        &mut self,
        (start, end): (u64, u64),
        sdus: &mut Sdus<P>,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        if start < self.run.1 {
            return;
        }
        self.run = (if start == self.run.1 { self.run.0 } else { start }, end);
        sdus.arrived(self.run.0, end, deliver, drops);
    }

    fn past_ur(&self, sn: u16) -> u16 {
        sn.wrapping_sub(self.vr_ur) & self.mask
    }

    /// 7.1: values are compared relative to VR(UH) - UM_Window_Size.
    fn in_window(&self, sn: u16) -> bool {
        self.past_window(sn) < self.window
    }

    fn is_before_ur(&self, sn: u16) -> bool {
        self.past_window(sn) < self.past_window(self.vr_ur)
    }

    fn past_window(&self, sn: u16) -> u16 {
        sn.wrapping_sub(self.vr_uh.wrapping_sub(self.window)) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use channel::Direction;
    use testkit::queue::TestPacket;

    use super::*;
    use crate::pdcp::{self, Times};

    /// SDUs of 98 bytes, one in each PDU; t-Reordering 10 ms.
    struct Story {
        entity: Entity,
        sdus: Sdus<TestPacket>,
        pdus: Vec<Pdu>,
        delivered: Vec<u64>,
        lost: Vec<u64>,
    }

    impl Story {
        fn new(sn: SnLength, pdus: u64) -> Story {
            let config = Um { sn, t_reordering: Span::from_millis(10) };
            let mut entity = Entity::new(&config);
            let mut sdus = Sdus::new(Direction::Downlink, &pdcp::Config::default(), pdcp::HEADER);
            let mut none = |_, _| panic!("nothing is dropped");
            let mut block = Block::default();
            let mut sent = Vec::new();
            for id in 0..pdus {
                sdus.enqueue(TestPacket::new(id, 0, 98), Time::ZERO, &mut none);
                block.clear(0);
                entity.build(&mut sdus, 100 + entity.header, Time::ZERO, &mut block, &mut none);
                sent.extend(block.data());
            }
            Story { entity, sdus, pdus: sent, delivered: Vec::new(), lost: Vec::new() }
        }

        fn play(&mut self, ms: u64, event: Option<usize>) -> (u16, u16, u16) {
            let now = Time::from_nanos(ms * 1_000_000);
            let mut deliver = |_: Direction, packet: TestPacket, _: Times| self.delivered.push(packet.id);
            let mut drops = |packet: TestPacket, _| self.lost.push(packet.id);
            match event {
                Some(n) => self.entity.receive(&self.pdus[n], now, &mut self.sdus, &mut deliver, &mut drops),
                None => self.entity.handle_timeout(now, &mut self.sdus, &mut deliver, &mut drops),
            }
            (self.entity.vr_ur, self.entity.vr_ux, self.entity.vr_uh)
        }
    }

    #[test]
    fn pdus_that_harq_reorders_are_put_in_order() {
        let mut story = Story::new(SnLength::Ten, 4);
        assert_eq!(story.play(0, Some(0)), (1, 0, 1));
        assert_eq!(story.play(1, Some(3)), (1, 4, 4));
        assert_eq!(story.play(2, Some(2)), (1, 4, 4));
        assert_eq!(story.delivered, [0]);
        assert_eq!(story.play(9, Some(1)), (4, 4, 4));
        assert_eq!(story.entity.reordering, Time::MAX);
        assert_eq!(story.delivered, [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_missing_is_lost_when_t_reordering_ends() {
        let mut story = Story::new(SnLength::Ten, 6);
        story.play(0, Some(0));
        assert_eq!(story.play(1, Some(2)), (1, 3, 3));
        assert_eq!(story.play(5, Some(4)), (1, 3, 5));
        assert_eq!(story.play(11, None), (3, 5, 5), "the timer runs again for PDU 3");
        assert_eq!((story.delivered.clone(), story.lost.clone()), (vec![0, 2], vec![1]));
        story.play(12, Some(1));
        assert_eq!(story.delivered, [0, 2], "too late");
        assert_eq!(story.play(21, None), (5, 5, 5));
        story.play(22, Some(5));
        assert_eq!((story.delivered, story.lost), (vec![0, 2, 4, 5], vec![1, 3]));
    }

    #[test]
    fn the_reordering_window_pushes_out_what_is_older() {
        let mut story = Story::new(SnLength::Five, 40);
        story.play(0, Some(0));
        // PDU 1 is missing until PDU 17 makes it older than a window of 16.
        for n in 2..17 {
            assert_eq!(story.play(1, Some(n)).0, 1);
        }
        assert_eq!(story.play(2, Some(17)), (18, 3, 18));
        assert_eq!(story.delivered.len(), 17);
        assert_eq!(story.lost, [1]);
        assert_eq!(story.entity.reordering, Time::MAX);
        for n in 18..40 {
            story.play(3, Some(n));
        }
        assert_eq!(story.delivered.len(), 39, "numbers wrap at 32");
    }

    #[test]
    fn what_an_ambiguous_number_brings_again_does_not_break_what_is_being_assembled() {
        let mut story = Story::new(SnLength::Five, 2);
        let (mut delivered, mut lost) = (Vec::new(), Vec::new());
        let mut deliver = |_: Direction, packet: TestPacket, _: Times| delivered.push(packet.id);
        let mut drops = |packet: TestPacket, _| lost.push(packet.id);
        for range in [(0, 150), (50, 100), (150, 200)] {
            story.entity.assemble(range, &mut story.sdus, &mut deliver, &mut drops);
        }
        assert_eq!((delivered, lost), (vec![0, 1], vec![]));
    }

    #[test]
    fn duplicates_are_ignored() {
        let mut story = Story::new(SnLength::Ten, 3);
        for n in [0, 0, 2, 2, 0, 1, 1, 2] {
            story.play(0, Some(n));
        }
        assert_eq!(story.delivered, [0, 1, 2]);
    }
}
