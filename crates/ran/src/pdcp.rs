//! PDCP: the SDUs of one direction of a bearer, from the queue in front of RLC to their delivery (36.323, 38.323).
//!
//! SDUs are never copied or split. An SDU waits in a queue discipline; when RLC begins to send it, it joins the SDUs in
//! transit, whose PDCP PDUs (with a header of [`HEADER`] bytes each) form one byte stream. RLC's PDUs are ranges of
//! that stream. When the receiver has an SDU's range, the SDU is delivered.
//!
//! Deviations:
//! 1. A COUNT (36.323, 7.1) is assigned when RLC takes an SDU instead of at its arrival, so that reordering or drops by
//!    a queue discipline leave no gap, and it has 64 bits: the 12-bit SN is never ambiguous, and the number of SDUs in
//!    transit is not limited to 2048.
//! 2. The discard timer (5.4) applies to SDUs of which nothing has been sent, which are those that RLC may discard
//!    (36.322, 5.3). It acts on time in a FIFO; with other disciplines an expired SDU is discarded when it would be
//!    sent. An SDU that a lossless handover sends again is not discarded.
//! 3. At a lossless re-establishment (5.2) the sender knows what the receiver has, as after a PDCP status report (5.3)
//!    that is never lost and has no size. An SDU that had arrived out of order is held and delivered in order, and
//!    nothing is sent twice, so duplicate removal (5.1.2.1.2) is not needed.
//! 4. In LTE the SN has 12 bits in every mode; no ciphering (which does not change lengths) and no header compression.

mod nr;
mod reordering;

pub use reordering::{Nr, PdcpSn};

use std::collections::VecDeque;

use aqm::{AnyQueue, DropReason, Drops, Packet, Queue, sojourn};
use channel::Direction;
use units::{Bytes, Span, Time};

use reordering::Reordering;

/// Bytes of header before each SDU: 36.323, 6.2.3, the data PDU of a DRB with a 12-bit SN.
pub const HEADER: u32 = 2;

/// The longest SDU in LTE (36.323 4.3.1).
pub const LONGEST_SDU: Bytes = Bytes::new(8188);
/// The longest SDU in NR (38.323 4.3.1).
pub const NR_LONGEST_SDU: Bytes = Bytes::new(9000);

/// The parameters of one direction of a bearer above RLC. The default has no limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The queue discipline in front of RLC. Its limits count SDUs without headers, and only those of which nothing has
    /// been sent.
    pub queue: aqm::Config,
    /// How long an SDU may wait before it is discarded, if nothing of it has been sent (`DropReason::Control`); `None`
    /// is unlimited.
    pub discard: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Config { queue: aqm::Config::UNLIMITED, discard: None }
    }
}

/// What a re-establishment (a handover) keeps of one direction. The rest is lost (`DropReason::Loss`), except SDUs that
/// the receiver has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Everything that the receiver does not have: it is sent again, in order. In UM and TM, which cannot retransmit,
    /// the same as [`Keep::Queue`].
    All,
    /// SDUs of which nothing has been sent.
    Queue,
    /// Nothing: the new cell starts empty.
    Nothing,
}

impl Keep {
    /// Limits it for modes that cannot retransmit.
    pub(crate) fn at_most_queue(self) -> Keep {
        if self == Keep::All { Keep::Queue } else { self }
    }
}

/// When a delivered SDU was sent, in the cell in which it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When a block with its first byte was first built: until then the SDU waited in the queue.
    pub first_sent: Time,
    /// When a block with its last byte was first built: the end of scheduling.
    pub last_sent: Time,
    /// When its last byte was decoded, after HARQ and, in AM, RLC retransmissions, if it then had to wait in RLC for
    /// earlier missing data.
    pub decoded: Option<Time>,
}

/// The receiver of delivered SDUs. A closure `FnMut(Direction, P, Times)` implements it.
pub trait Deliver<P> {
    /// Called when `packet` is delivered.
    fn delivered(&mut self, way: Direction, packet: P, times: Times);
}

impl<P, F: FnMut(Direction, P, Times)> Deliver<P> for F {
    #[inline]
    fn delivered(&mut self, way: Direction, packet: P, times: Times) {
        self(way, packet, times);
    }
}

/// How an RLC PDU combines parts of several SDUs, its elements.
pub(crate) trait Concatenation {
    /// Returns the overhead in bytes of a PDU with this many elements, for marking their ends.
    fn overhead(elements: u32) -> u32;
    /// The maximum length of an element that another one may follow.
    const LONGEST: u64;
}

/// A range of the stream for one RLC PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// Number of SDU boundaries inside.
    pub(crate) borders: u32,
}

/// The SDUs of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Sdus<P> {
    way: Direction,
    queue: AnyQueue<P>,
    queue_config: aqm::Config,
    discard: Option<Span>,
    header: u32,
    /// SDUs that left the queue and were neither delivered nor lost, in order; their ranges are contiguous.
    transit: VecDeque<Sdu<P>>,
    /// Number of SDUs that have left `transit`.
    gone: u64,
    /// The number, counted from the first ever, of the SDU at `next`.
    sending: u64,
    /// The stream up to this offset has been sent at least once.
    next: u64,
    /// The end of the stream.
    end: u64,
    /// The receiving entity of NR's PDCP.
    reordering: Reordering<Sdu<P>>,
}

/// What RLC's receiver has when its entities are re-established.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// LTE: these ranges of the stream.
    Ranges(Vec<(u64, u64)>),
    /// NR: the SDUs that RLC delivered to PDCP.
    Decoded,
}

impl Received {
    fn has<P>(&self, sdu: &Sdu<P>) -> bool {
        match self {
            Received::Ranges(ranges) => ranges.iter().any(|&(from, to)| from <= sdu.start && sdu.end <= to),
            Received::Decoded => sdu.times.decoded.is_some(),
        }
    }
}

/// An SDU in transit. Its range is empty if the receiver already holds it.
#[derive(Clone, Copy, Debug)]
struct Sdu<P> {
    packet: P,
    start: u64,
    end: u64,
    times: Times,
}

impl<P: Packet> Sdus<P> {
    pub(crate) fn new(way: Direction, config: &Config, header: u32) -> Self {
        Sdus {
            way,
            queue: AnyQueue::new(&config.queue),
            queue_config: config.queue,
            discard: config.discard,
            header,
            transit: VecDeque::new(),
            gone: 0,
            sending: 0,
            next: 0,
            end: 0,
            reordering: Reordering::new(),
        }
    }

    /// Sets NR's parameters, if the mode is one of NR.
    pub(crate) fn set_nr(&mut self, nr: Option<&Nr>) {
        self.reordering.t_reordering = nr.and_then(|nr| nr.t_reordering);
    }

    /// Changes the parameters; the queue keeps its SDUs as far as they fit. [`Sdus::reestablish`] has to follow.
    pub(crate) fn configure(&mut self, config: &Config, header: u32, now: Time, drops: &mut impl Drops<P>) {
        self.discard = config.discard;
        self.header = header;
        if config.queue == self.queue_config {
            return;
        }
        self.queue_config = config.queue;
        let mut before = core::mem::replace(&mut self.queue, AnyQueue::new(&config.queue));
        while let Some(packet) = before.dequeue(now, drops) {
            self.take_over(packet, now, drops);
        }
    }

    #[inline]
    pub(crate) fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.queue.enqueue(packet, now, drops);
    }

    /// Accepts an SDU from the queue above, where it began to wait. In a FIFO it keeps that time.
    #[inline]
    pub(crate) fn take_over(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        match &mut self.queue {
            AnyQueue::DropTail(fifo) => fifo.take_over(packet),
            queue => queue.enqueue(packet, now, drops),
        }
    }

    /// Returns the SDUs whose last byte has not been sent in this stream; bytes without headers.
    #[inline]
    pub(crate) fn not_sent(&self) -> aqm::Backlog {
        let mut sum = self.queue.backlog();
        if self.next < self.end {
            let unsent = self.transit.iter().skip((self.sending - self.gone) as usize).filter(|sdu| !sdu.is_held());
            unsent.for_each(|sdu| sum += aqm::Backlog { packets: 1, bytes: sdu.packet.len().into() });
        }
        sum
    }

    /// Returns the queue and the last `sdus` SDUs of the stream, which begin at `start`; bytes without headers.
    #[inline]
    pub(crate) fn since(&self, start: u64, sdus: usize) -> aqm::Backlog {
        let mut sum = self.queue.backlog();
        let packets = sdus as u64;
        sum += aqm::Backlog { packets, bytes: (self.end - start) - u64::from(self.header) * packets };
        sum
    }

    /// Returns the backlog of SDUs in the discipline, of which nothing has been sent.
    #[inline]
    pub(crate) fn queued(&self) -> aqm::Backlog {
        self.queue.backlog()
    }

    pub(crate) fn in_transit(&self) -> usize {
        self.transit.len() + self.reordering.followers.len()
    }

    /// Returns the bytes never sent, with PDCP headers, and the number of SDUs they belong to.
    #[inline]
    pub(crate) fn unsent(&self) -> (u64, u64) {
        let held = self.queue.backlog();
        let begun = self.end - self.next;
        (begun + held.bytes + u64::from(self.header) * held.packets, held.packets + u64::from(begun > 0))
    }

    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.next < self.end || self.queue.backlog().packets > 0
    }

    /// Returns when the SDU whose bytes are next entered its queue, as far as the discipline exposes it.
    pub(crate) fn head_since(&self) -> Option<Time> {
        if self.next < self.end {
            let mut unsent = self.transit.iter().skip((self.sending - self.gone) as usize);
            return unsent.find(|sdu| !sdu.is_held()).map(|sdu| sdu.packet.enqueued());
        }
        self.fifo_head().map(Packet::enqueued)
    }

    #[inline]
    fn fifo_head(&self) -> Option<&P> {
        match &self.queue {
            AnyQueue::DropTail(fifo) => fifo.head(),
            _ => None,
        }
    }

    /// Returns when the next SDU is to be discarded.
    #[inline]
    pub(crate) fn next_discard(&self) -> Time {
        let Some(discard) = self.discard else { return Time::MAX };
        self.fifo_head()
            .map_or(Time::MAX, |head| Time::from_nanos(head.enqueued().as_nanos().saturating_add(discard.as_nanos())))
    }

    /// 36.323, 5.4: discards SDUs whose timer has expired.
    pub(crate) fn discard(&mut self, now: Time, drops: &mut impl Drops<P>) {
        while self.next_discard() <= now {
            let packet = self.queue.dequeue(now, drops).expect("a FIFO with a head serves it");
            drops.dropped(packet, DropReason::Control);
        }
    }

    /// Takes the next bytes of the stream for a PDU that has `room` bytes for data and the overhead of `C`. Calls
    /// `border` with the end of each SDU that leaves the queue.
    #[inline]
    pub(crate) fn map<C: Concatenation>(
        &mut self,
        room: u32,
        now: Time,
        drops: &mut impl Drops<P>,
        mut border: impl FnMut(u64),
    ) -> Mapped {
        let start = self.next;
        let mut elements = 0;
        loop {
            let free = u64::from(room.saturating_sub(C::overhead(elements)));
            let used = self.next - start;
            if free <= used || (self.next == self.end && !self.pull(now, drops, &mut border)) {
                break;
            }
            while self.transit[(self.sending - self.gone) as usize].is_held() {
                self.sending += 1;
            }
            let sdu = &mut self.transit[(self.sending - self.gone) as usize];
            if self.next == sdu.start {
                sdu.times.first_sent = now;
            }
            let take = (sdu.end - self.next).min(free - used);
            self.next += take;
            elements += 1;
            if self.next < sdu.end {
                break;
            }
            sdu.times.last_sent = now;
            self.sending += 1;
            if take > C::LONGEST {
                break;
            }
        }
        Mapped { start, len: (self.next - start) as u32, borders: elements.saturating_sub(1) }
    }

    /// Moves the next SDU from the queue to the stream.
    #[inline]
    fn pull(&mut self, now: Time, drops: &mut impl Drops<P>, border: &mut impl FnMut(u64)) -> bool {
        while let Some(packet) = self.queue.dequeue(now, drops) {
            if self.discard.is_some_and(|discard| sojourn(&packet, now) >= discard) {
                drops.dropped(packet, DropReason::Control);
                continue;
            }
            let start = self.end;
            self.end += u64::from(packet.len() + self.header);
            border(self.end);
            let times = Times { first_sent: now, last_sent: now, decoded: None };
            self.transit.push_back(Sdu { packet, start, end: self.end, times });
            return true;
        }
        false
    }

    /// Returns the length of the next SDU, for TM, which does not segment.
    pub(crate) fn next_len(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<u32> {
        if self.next == self.end && !self.pull(now, drops, &mut |_| {}) {
            return None;
        }
        self.transit.get((self.sending - self.gone) as usize).map(|sdu| (sdu.end - sdu.start) as u32)
    }

    /// Informs that the receiver will get no further bytes before `end`, and has those from `start` on without a gap:
    /// SDUs in between are delivered, earlier ones are lost.
    #[inline]
    pub(crate) fn arrived(&mut self, start: u64, end: u64, deliver: &mut impl Deliver<P>, drops: &mut impl Drops<P>) {
        while self.transit.front().is_some_and(|sdu| sdu.end <= end) {
            let Some(sdu) = self.transit.pop_front() else { return };
            self.gone += 1;
            if sdu.start >= start {
                deliver.delivered(self.way, sdu.packet, sdu.times);
            } else {
                drops.dropped(sdu.packet, DropReason::Loss);
            }
        }
        self.sending = self.sending.max(self.gone);
    }

    /// Records that the bytes from `start` to `end` were decoded: SDUs that end there and are still in transit wait for
    /// others.
    #[inline]
    pub(crate) fn decoded(&mut self, start: u64, end: u64, now: Time) {
        if self.transit.front().is_none_or(|sdu| sdu.end > end) {
            return;
        }
        let first = self.transit.partition_point(|sdu| sdu.end <= start);
        for sdu in self.transit.range_mut(first..).take_while(|sdu| sdu.end <= end) {
            sdu.times.decoded.get_or_insert(now);
        }
    }

    /// Removes and returns the SDU that begins at `start` (TM).
    pub(crate) fn take(&mut self, start: u64) -> Option<(P, Times)> {
        let index = self.transit.binary_search_by_key(&start, |sdu| sdu.start).ok()?;
        let sdu = self.transit.remove(index)?;
        self.gone += 1;
        Some((sdu.packet, sdu.times))
    }

    /// 36.322, 5.4, and 36.323, 5.2; 38.322, 5.1.2, and 38.323, 5.1.2: begins a new stream, for NR if `nr` is true.
    pub(crate) fn reestablish(
        &mut self,
        keep: Keep,
        received: &Received,
        nr: bool,
        now: Time,
        deliver: &mut impl Deliver<P>,
        drops: &mut impl Drops<P>,
    ) {
        self.insert_followers();
        let sent = self.next;
        (self.next, self.end) = (0, 0);
        for _ in 0..self.transit.len() {
            let Some(mut sdu) = self.transit.pop_front() else { break };
            let held = sdu.is_held() || received.has(&sdu);
            // Held SDUs keep waiting for the earlier ones that are kept.
            let waits = sdu.start >= sent && (!held || self.end > 0);
            let kept = keep == Keep::All || (keep == Keep::Queue && waits);
            if kept {
                let len = if held { 0 } else { u64::from(sdu.packet.len() + self.header) };
                (sdu.start, sdu.end) = (self.end, self.end + len);
                self.end = sdu.end;
                self.transit.push_back(sdu);
                continue;
            }
            self.gone += 1;
            if held {
                deliver.delivered(self.way, sdu.packet, sdu.times);
            } else {
                drops.dropped(sdu.packet, DropReason::Loss);
            }
        }
        self.sending = self.gone;
        // Held SDUs at the head have nothing to wait for.
        self.arrived(0, 0, deliver, drops);
        if keep == Keep::Nothing {
            while let Some(packet) = self.queue.dequeue(now, drops) {
                drops.dropped(packet, DropReason::Loss);
            }
        }
        self.restart_reordering(nr);
    }

    /// Returns the lengths, with headers, of the SDUs in transit, and the number of the first.
    pub(crate) fn lengths(&self) -> (u64, impl Iterator<Item = u32> + '_) {
        (self.gone, self.transit.iter().map(|sdu| (sdu.end - sdu.start) as u32))
    }

    /// Returns where the SDUs in transit end, for a sender that starts again.
    pub(crate) fn borders(&self) -> impl Iterator<Item = u64> {
        self.transit.iter().filter(|sdu| !sdu.is_held()).map(|sdu| sdu.end)
    }
}

impl<P> Sdu<P> {
    #[inline]
    fn is_held(&self) -> bool {
        self.start == self.end
    }
}

#[cfg(test)]
mod tests {
    use testkit::queue::TestPacket;

    use super::*;
    use crate::rlc::lte::elements::LengthIndicators;

    fn sdus(lengths: &[u32]) -> Sdus<TestPacket> {
        let mut sdus = Sdus::new(Direction::Downlink, &Config::default(), HEADER);
        for (id, len) in (0..).zip(lengths) {
            sdus.enqueue(TestPacket::new(id, 0, len - HEADER), Time::ZERO, &mut |_, _| panic!("there is room"));
        }
        sdus
    }

    fn map(sdus: &mut Sdus<TestPacket>, room: u32) -> (u32, u32) {
        let mapped = sdus.map::<LengthIndicators>(room, Time::ZERO, &mut |_, _| panic!("there is room"), |_| {});
        (mapped.len, mapped.borders)
    }

    #[test]
    fn an_sdu_is_delivered_if_its_range_arrived_and_lost_if_it_cannot_any_more() {
        let mut sdus = sdus(&[100, 100, 100, 100]);
        map(&mut sdus, 1000);
        let (mut delivered, mut lost) = (Vec::new(), Vec::new());
        let mut deliver = |_: Direction, packet: TestPacket, _: Times| delivered.push(packet.id);
        sdus.arrived(150, 399, &mut deliver, &mut |packet: TestPacket, _| lost.push(packet.id));
        assert_eq!((delivered, lost, sdus.in_transit()), (vec![2], vec![0, 1], 1));
    }
}
