//! NR's PDCP: headers, the order of delivery, and one limit for PDCP and RLC (38.323).
//!
//! RLC delivers an SDU as soon as it is complete, out of order. PDCP delivers in order, and gives up on missing SDUs when
//! t-Reordering expires: they are lost (`DropReason::Loss`), whether or not RLC completes them later.
//!
//! Deviations, in addition to those of [`crate::pdcp`]:
//! 1. The SDUs of a block of RLC are processed together, at the same time, with the result of one after the other.
//! 2. At a re-establishment t-Reordering stops, also in AM (38.323, 5.1.2, lets it run there): it starts again with the
//!    next SDU that arrives out of order, so that a long interruption does not lose what a lossless handover forwards.
//! 3. outOfOrderDelivery is not modelled.

use aqm::{DropReason, Drops, Packet};
use units::{Span, Time};

use super::reordering::Head;
use super::{Deliver, Sdus};

impl<P: Packet> Sdus<P> {
    /// Returns the first bytes that have not been sent. Calls `pulled` with the length of an SDU that leaves the queue
    /// for it.
    #[inline]
    pub(crate) fn head(&mut self, now: Time, drops: &mut impl Drops<P>, mut pulled: impl FnMut(u32)) -> Option<Head> {
        if self.next == self.end {
            let start = self.end;
            if !self.pull(now, drops, &mut |end| pulled((end - start) as u32)) {
                return None;
            }
        }
        let sdu = &self.transit[(self.sending - self.gone) as usize];
        Some(Head { number: self.sending, so: (self.next - sdu.start) as u32, left: (sdu.end - self.next) as u32 })
    }

    /// Records that `bytes` of [`Sdus::head`] are sent.
    #[inline]
    pub(crate) fn send(&mut self, bytes: u32, now: Time) {
        let sdu = &mut self.transit[(self.sending - self.gone) as usize];
        if self.next == sdu.start {
            sdu.times.first_sent = now;
        }
        self.next += u64::from(bytes);
        if self.next == sdu.end {
            sdu.times.last_sent = now;
            self.sending += 1;
        }
    }

    /// Returns whether a part of an SDU has been sent, and the rest has not.
    #[inline]
    pub(crate) fn partly_sent(&self) -> Option<u32> {
        let sdu = self.transit.get((self.sending - self.gone) as usize)?;
        (self.next > sdu.start).then(|| (sdu.end - self.next) as u32)
    }

    /// 38.323, 5.2.2.1: RLC delivers the SDUs `from..to`. Those that were received before or given up are ignored.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        from: u64,
        to: u64,
        now: Time,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        self.reordering.next = self.reordering.next.max(to);
        let mut waiting = false;
        if from <= self.gone {
            for _ in self.gone..to {
                self.deliver_first(deliver);
            }
            // RX_DELIV = RX_NEXT unless later ones have arrived, or did before a re-establishment.
            if self.gone < self.reordering.next {
                self.deliver_decoded(deliver);
                waiting = self.gone < self.reordering.next;
            }
        } else {
            let (first, last) = ((from - self.gone) as usize, (to - self.gone) as usize);
            for sdu in self.transit.range_mut(first..last) {
                sdu.times.decoded.get_or_insert(now);
            }
            waiting = true;
        }
        if self.reordering.expires != Time::MAX && self.gone >= self.reordering.trigger {
            self.reordering.expires = Time::MAX;
        }
        if waiting && self.reordering.expires == Time::MAX {
            self.start_reordering(now);
            if self.reordering.t_reordering == Some(Span::ZERO) {
                self.reorder(now, deliver, drops);
            }
        }
    }

    /// 38.323, 5.2.2.2: handles the expiry of t-Reordering.
    pub(crate) fn reorder(&mut self, now: Time, deliver: &mut impl Deliver<P>, drops: &mut impl Drops<P>) {
        while now >= self.reordering.expires {
            self.reordering.expires = Time::MAX;
            while self.gone < self.reordering.trigger {
                if self.transit[0].times.decoded.is_some() {
                    self.deliver_first(deliver);
                } else if let Some(sdu) = self.transit.pop_front() {
                    drops.dropped(sdu.packet, DropReason::Loss);
                    self.passed(deliver);
                }
            }
            self.deliver_decoded(deliver);
            if self.gone < self.reordering.next {
                self.start_reordering(now);
            }
        }
        self.sending = self.sending.max(self.gone);
    }

    /// Returns when t-Reordering expires; `Time::MAX` if it is not running.
    #[inline]
    pub(crate) fn reordering(&self) -> Time {
        self.reordering.expires
    }

    /// Puts the followers back in their places, as held SDUs.
    pub(super) fn insert_followers(&mut self) {
        if self.reordering.followers.is_empty() {
            return;
        }
        for number in self.gone..self.gone + self.transit.len() as u64 {
            let Some(sdu) = self.transit.pop_front() else { return };
            let end = sdu.end;
            self.transit.push_back(sdu);
            while self.reordering.followers.front().is_some_and(|follower| follower.0 == number) {
                let Some((_, mut follower)) = self.reordering.followers.pop_front() else { return };
                (follower.start, follower.end) = (end, end);
                self.transit.push_back(follower);
            }
        }
    }

    /// Resets the receiving entity for a new stream. In NR, held SDUs become followers.
    pub(super) fn restart_reordering(&mut self, nr: bool) {
        self.reordering.expires = Time::MAX;
        self.reordering.next = self.gone;
        if !nr {
            return;
        }
        let mut kept = 0;
        for _ in 0..self.transit.len() {
            let Some(mut sdu) = self.transit.pop_front() else { return };
            if sdu.is_held() {
                self.reordering.followers.push_back((self.gone + kept - 1, sdu));
            } else {
                sdu.times.decoded = None;
                self.transit.push_back(sdu);
                kept += 1;
            }
        }
    }

    fn start_reordering(&mut self, now: Time) {
        if let Some(t_reordering) = self.reordering.t_reordering {
            self.reordering.expires = now + t_reordering;
            self.reordering.trigger = self.reordering.next;
        }
    }

    fn deliver_decoded(&mut self, deliver: &mut impl Deliver<P>) {
        while self.transit.front().is_some_and(|sdu| sdu.times.decoded.is_some()) {
            self.deliver_first(deliver);
        }
    }

    #[inline]
    fn deliver_first(&mut self, deliver: &mut impl Deliver<P>) {
        if let Some(sdu) = self.transit.pop_front() {
            deliver.delivered(self.way, sdu.packet, sdu.times);
            self.passed(deliver);
        }
    }

    /// The first SDU in transit was delivered or lost: the ones that waited for it are delivered.
    #[inline]
    fn passed(&mut self, deliver: &mut impl Deliver<P>) {
        let number = self.gone;
        self.gone += 1;
        while self.reordering.followers.front().is_some_and(|follower| follower.0 == number) {
            let Some((_, sdu)) = self.reordering.followers.pop_front() else { return };
            deliver.delivered(self.way, sdu.packet, sdu.times);
        }
    }
}

#[cfg(test)]
mod tests {
    use channel::Direction;
    use testkit::queue::TestPacket;

    use super::*;
    use crate::pdcp::{Config, Nr, PdcpSn, Times};

    /// 38.323, 5.2.2, taken literally: PDU by PDU.
    #[derive(Default)]
    struct Literal {
        deliv: u64,
        next: u64,
        trigger: u64,
        timer: Option<u64>,
        stored: std::collections::BTreeSet<u64>,
        delivered: Vec<u64>,
    }

    impl Literal {
        fn deliver_consecutive(&mut self, from: u64) {
            self.deliv = from;
            while self.stored.remove(&self.deliv) {
                self.delivered.push(self.deliv);
                self.deliv += 1;
            }
        }

        fn receive(&mut self, count: u64, now: u64) {
            if count < self.deliv || !self.stored.insert(count) {
                return;
            }
            self.next = self.next.max(count + 1);
            if count == self.deliv {
                self.deliver_consecutive(count);
            }
            if self.timer.is_some() && self.deliv >= self.trigger {
                self.timer = None;
            }
            if self.timer.is_none() && self.deliv < self.next {
                self.trigger = self.next;
                self.timer = Some(now + 10);
            }
        }

        fn time_out(&mut self, now: u64) {
            if self.timer.is_some_and(|timer| now >= timer) {
                self.timer = None;
                let late = self.stored.split_off(&self.trigger);
                self.delivered.extend(core::mem::replace(&mut self.stored, late));
                self.deliver_consecutive(self.trigger);
                if self.deliv < self.next {
                    self.trigger = self.next;
                    self.timer = Some(now + 10);
                }
            }
        }
    }

    #[test]
    fn blocks_of_sdus_are_reordered_as_if_one_by_one() {
        let mut state = 5u64;
        let mut dice = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut lost, mut expiries) = (0, 0);
        for _ in 0..300 {
            let mut sdus = Sdus::new(Direction::Downlink, &Config::default(), 2);
            sdus.set_nr(Some(&Nr { t_reordering: Some(Span::from_millis(10)), ..Nr::default() }));
            let mut literal = Literal::default();
            let (mut delivered, mut dropped, mut sent) = (Vec::new(), Vec::new(), 0);
            let mut late: Vec<(u64, u64)> = Vec::new();
            for ms in 0..150 {
                let now = Time::from_nanos(ms * 1_000_000);
                let mut deliver = |_: Direction, packet: TestPacket, _: Times| delivered.push(packet.id);
                let mut drops = |packet: TestPacket, reason| {
                    assert_eq!(reason, DropReason::Loss);
                    dropped.push(packet.id);
                };
                expiries += u32::from(sdus.reordering() <= now);
                sdus.reorder(now, &mut deliver, &mut drops);
                literal.time_out(ms);
                let count = 1 + dice(6);
                for id in sent..sent + count {
                    sdus.enqueue(TestPacket::new(id, 0, 98), now, &mut drops);
                    let head = sdus.head(now, &mut drops, |_| {}).expect("it was just added");
                    assert_eq!((head.number, head.so, head.left), (id, 0, 100));
                    sdus.send(100, now);
                }
                let block = (sent, sent + count);
                sent += count;
                match dice(4) {
                    0 => late.push(block),
                    1 if !late.is_empty() => {
                        let (from, to) = late.swap_remove(dice(late.len() as u64) as usize);
                        late.push(block);
                        sdus.complete(from, to, now, &mut deliver, &mut drops);
                        (from..to).for_each(|count| literal.receive(count, ms));
                    }
                    _ => {
                        sdus.complete(block.0, block.1, now, &mut deliver, &mut drops);
                        (block.0..block.1).for_each(|count| literal.receive(count, ms));
                    }
                }
                assert_eq!((&delivered, sdus.gone), (&literal.delivered, literal.deliv));
                let timer = literal.timer.map_or(Time::MAX, |ms| Time::from_nanos(ms * 1_000_000));
                assert_eq!(sdus.reordering(), timer);
                assert_eq!(delivered.len() + dropped.len() + sdus.in_transit(), sent as usize);
            }
            lost += dropped.len();
        }
        assert!(lost > 1000 && expiries > 1000, "{lost} lost, {expiries} expiries");
    }

    #[test]
    fn headers_have_the_lengths_of_the_standard() {
        let header = |sn, sdap| Nr { sn, sdap, ..Nr::default() }.header();
        assert_eq!([header(PdcpSn::Twelve, false), header(PdcpSn::Eighteen, false)], [2, 3]);
        assert_eq!([header(PdcpSn::Twelve, true), header(PdcpSn::Eighteen, true)], [3, 4]);
    }
}
