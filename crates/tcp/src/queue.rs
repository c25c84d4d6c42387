//! The transmit queue: one record for each segment in flight, and what is known of it.
//!
//! Records sit in a ring that is indexed by a number that only grows, in sequence order. A doubly linked list through the
//! records keeps those that may still be detected as lost in the order of their last transmission (RFC 8985's time order,
//! Linux `tsorted_sent_queue`); its prefix up to `edge` was sent before the newest segment known to be delivered. Segments
//! that wait for retransmission are in a heap by number. So no acknowledgement walks what it says nothing new about.

mod audit;

use crate::ranges::{Range, RangeSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Time;

/// Selectively acknowledged (Linux `TCPCB_SACKED_ACKED`).
pub(crate) const SACKED: u16 = 1;
/// Marked lost.
pub(crate) const LOST: u16 = 2;
/// A retransmission of it is in flight.
pub(crate) const RETRANSMITTED: u16 = 4;
/// It was retransmitted at least once.
pub(crate) const EVER_RETRANSMITTED: u16 = 8;
/// Sent while the application limited the sender.
pub(crate) const APP_LIMITED: u16 = 16;
/// Carries the FIN, which takes one offset after its payload.
pub(crate) const FIN: u16 = 32;
/// In the list by time.
const LINKED: u16 = 64;
/// Missing at a PEP, by its report.
pub(crate) const ANNOUNCED: u16 = 128;
/// Begins a packet of the stack.
pub(crate) const PACKET: u16 = 256;
/// Has PSH.
pub(crate) const PUSHED: u16 = 512;

/// No record.
const NIL: u32 = u32::MAX;
/// Links hold the low bits of a number, so that `NIL` is none of them.
const LINK_MASK: u64 = 0x7fff_ffff;

/// One segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Record {
    /// Offset of its first byte.
    pub(crate) seq: u64,
    /// When it was last sent, and its place among all transmissions of the connection: segments that leave at one moment
    /// have equal times.
    pub(crate) sent: Time,
    pub(crate) order: u64,
    /// For the delivery rate (Linux `tx.delivered_mstamp`, `tx.first_tx_mstamp`, `tx.delivered` in its low bits).
    pub(crate) delivered_at: Time,
    pub(crate) first_sent: Time,
    pub(crate) delivered: u32,
    /// Neighbours in the list by time.
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// Payload bytes.
    pub(crate) len: u16,
    pub(crate) flags: u16,
}

const _: () = assert!(size_of::<Record>() <= 56);

impl Record {
    #[inline]
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// One past its last offset.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.has(FIN))
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Queue {
    /// A power of two in length; record `id` is at `id & (len - 1)`.
    slots: Vec<Record>,
    first: u64,
    end: u64,
    /// Transmissions so far.
    transmissions: u64,
    head: u32,
    tail: u32,
    /// The last record of the time list that was sent before the newest delivered one; `NIL` if none.
    edge: u32,
    /// Numbers of records marked lost and not retransmitted since; may hold outdated ones.
    lost: BinaryHeap<Reverse<u64>>,
    /// What is selectively acknowledged, in whole records.
    pub(crate) sacked: RangeSet,
    pub(crate) sacked_out: u32,
    pub(crate) lost_out: u32,
    pub(crate) retrans_out: u32,
    /// Records that were marked lost, each time: those that a PEP had not announced, and those that one had. They wrap.
    pub(crate) unannounced: u32,
    pub(crate) announced: u32,
    /// Records that begin a packet.
    heads: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            slots: Vec::new(),
            first: 0,
            end: 0,
            transmissions: 0,
            head: NIL,
            tail: NIL,
            edge: NIL,
            lost: BinaryHeap::new(),
            sacked: RangeSet::default(),
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            unannounced: 0,
            announced: 0,
            heads: 0,
        }
    }
}

impl Queue {
    /// Segments sent and not cumulatively acknowledged (Linux `packets_out`).
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        (self.end - self.first) as u32
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.end == self.first
    }

    /// Packets with segments that are not cumulatively acknowledged.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.heads + u32::from(self.front().is_some_and(|first| !first.has(PACKET)))
    }

    /// Segments in the network (Linux `tcp_packets_in_flight`).
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        (self.len() + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Whether a segment waits for its retransmission.
    #[inline]
    pub(crate) fn has_lost(&self) -> bool {
        self.lost_out > 0 && !self.lost.is_empty()
    }

    #[inline]
    fn slot(&self, id: u64) -> usize {
        id as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> &Record {
        &self.slots[self.slot(id)]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: u64) -> &mut Record {
        let slot = self.slot(id);
        &mut self.slots[slot]
    }

    #[inline]
    fn linked(&mut self, link: u32) -> &mut Record {
        self.get_mut(u64::from(link))
    }

    /// The numbers of the records.
    #[inline]
    pub(crate) fn ids(&self) -> core::ops::Range<u64> {
        self.first..self.end
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Record> {
        if self.is_empty() { None } else { Some(self.get(self.first)) }
    }

    pub(crate) fn last_id(&self) -> Option<u64> {
        if self.is_empty() { None } else { Some(self.end - 1) }
    }

    /// Appends a segment that was sent now.
    // In line, for the record to be written in its place: a copy right after would wait for each part of it.
    #[inline(always)]
    pub(crate) fn push(&mut self, record: Record) {
        if self.len() as usize == self.slots.len() {
            self.grow();
        }
        let id = self.end;
        self.end += 1;
        self.heads += u32::from(record.has(PACKET));
        *self.get_mut(id) = record;
        self.link_last(id);
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![Record::default(); (self.slots.len() * 2).max(8)];
        let mask = slots.len() - 1;
        for id in self.ids() {
            slots[id as usize & mask] = *self.get(id);
        }
        self.slots = slots;
    }

    /// Removes the first record, with what it counted for.
    #[inline]
    pub(crate) fn pop(&mut self) -> Record {
        let id = self.first;
        self.unlink(id);
        let record = *self.get(id);
        self.first += 1;
        self.heads -= u32::from(record.has(PACKET));
        if record.has(SACKED | LOST | RETRANSMITTED) {
            self.sacked_out -= u32::from(record.has(SACKED));
            self.lost_out -= u32::from(record.has(LOST));
            self.retrans_out -= u32::from(record.has(RETRANSMITTED));
        }
        if self.lost_out == 0 && !self.lost.is_empty() {
            self.lost.clear();
        }
        record
    }

    /// Gives the memory back; for a connection that is over.
    pub(crate) fn free(&mut self) {
        *self = Queue { first: self.end, end: self.end, ..Queue::default() };
    }

    /// The number of the first record that starts at or after `offset`, or the end.
    pub(crate) fn first_from(&self, offset: u64) -> u64 {
        let (mut low, mut high) = (self.first, self.end);
        // Segments are mostly of one size, so the guess is mostly right.
        if let Some(front) = self.front() {
            let guess = self.first + offset.saturating_sub(front.seq) / u64::from(front.len.max(1));
            if guess > low && guess < high {
                if self.get(guess).seq < offset {
                    low = guess + 1;
                } else if self.get(guess - 1).seq < offset {
                    return guess;
                } else {
                    high = guess - 1;
                }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).seq < offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The numbers of the records that lie wholly within `range`.
    pub(crate) fn within(&self, range: &Range) -> core::ops::Range<u64> {
        let from = self.first_from(range.start);
        // What starts at or after the end is out; so is the one before that if it reaches past the end.
        let mut upto = if self.end > from && self.get(self.end - 1).end() <= range.end {
            self.end
        } else {
            self.first_from(range.end)
        };
        if upto > from && self.get(upto - 1).end() > range.end {
            upto -= 1;
        }
        from..upto.max(from)
    }

    /// A record is sent now: it is the last in time.
    #[inline]
    fn link_last(&mut self, id: u64) {
        let link = (id & LINK_MASK) as u32;
        let tail = self.tail;
        self.transmissions += 1;
        let order = self.transmissions;
        let record = self.get_mut(id);
        record.order = order;
        record.flags |= LINKED;
        record.prev = tail;
        record.next = NIL;
        if tail == NIL {
            self.head = link;
        } else {
            self.linked(tail).next = link;
        }
        self.tail = link;
    }

    /// Takes a record out of the time order, if it is in it.
    #[inline]
    pub(crate) fn unlink(&mut self, id: u64) {
        let record = self.get_mut(id);
        if !record.has(LINKED) {
            return;
        }
        record.flags &= !LINKED;
        let (prev, next) = (record.prev, record.next);
        if self.edge == (id & LINK_MASK) as u32 {
            self.edge = prev;
        }
        match prev {
            NIL => self.head = next,
            prev => self.linked(prev).next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => self.linked(next).prev = prev,
        }
    }

    /// A record was sent again now: it is the last in time.
    pub(crate) fn relink_last(&mut self, id: u64) {
        self.unlink(id);
        self.link_last(id);
    }

    /// Puts records that were taken out back to where their time belongs.
    fn relink_by_time(&mut self, id: u64) {
        let order = self.get(id).order;
        let mut after = self.tail;
        while after != NIL && self.linked(after).order > order {
            after = self.linked(after).prev;
        }
        let next = if after == NIL { self.head } else { self.linked(after).next };
        let link = (id & LINK_MASK) as u32;
        let record = self.get_mut(id);
        record.flags |= LINKED;
        (record.prev, record.next) = (after, next);
        match after {
            NIL => self.head = link,
            after => self.linked(after).next = link,
        }
        match next {
            NIL => self.tail = link,
            next => self.linked(next).prev = link,
        }
        // The edge may lie before it now; it moves forward again when it is next looked at.
        self.edge = NIL;
    }

    /// Moves the edge of the time list to the last record sent before the transmission `order` (Linux
    /// `tcp_skb_sent_after`).
    #[inline]
    pub(crate) fn advance_edge(&mut self, order: u64) {
        loop {
            let next = if self.edge == NIL { self.head } else { self.linked(self.edge).next };
            if next == NIL {
                return;
            }
            if self.linked(next).order >= order {
                return;
            }
            self.edge = next;
        }
    }

    /// The oldest in time of those before the edge: its number and when it was sent.
    #[inline]
    pub(crate) fn oldest_before_edge(&mut self) -> Option<(u64, Time)> {
        if self.edge == NIL {
            return None;
        }
        let (head, first) = (u64::from(self.head), self.first);
        let id = first + (head.wrapping_sub(first) & LINK_MASK);
        Some((id, self.get(id).sent))
    }

    /// When the edge was sent.
    pub(crate) fn edge_sent(&mut self) -> Option<Time> {
        if self.edge == NIL { None } else { Some(self.linked(self.edge).sent) }
    }

    /// Marks a record lost; whether it was the retransmission that was lost, or `None` if nothing changed (Linux
    /// `tcp_mark_skb_lost`).
    pub(crate) fn mark_lost(&mut self, id: u64) -> Option<bool> {
        let record = self.get_mut(id);
        if record.has(SACKED) {
            return None;
        }
        let again = record.has(LOST);
        if again && !record.has(RETRANSMITTED) {
            return None;
        }
        let in_flight_again = record.has(RETRANSMITTED);
        record.flags = (record.flags | LOST) & !RETRANSMITTED;
        let announced = record.has(ANNOUNCED);
        self.unannounced = self.unannounced.wrapping_add(u32::from(!announced));
        self.announced = self.announced.wrapping_add(u32::from(announced));
        self.lost_out += u32::from(!again);
        self.retrans_out -= u32::from(in_flight_again);
        self.unlink(id);
        self.lost.push(Reverse(id));
        Some(again)
    }

    /// The lowest segment that is lost and not retransmitted; it stays until it is sent.
    pub(crate) fn next_lost(&mut self) -> Option<u64> {
        while let Some(&Reverse(id)) = self.lost.peek() {
            if id >= self.first {
                let record = self.get(id);
                if record.has(LOST) && !record.has(SACKED | RETRANSMITTED) {
                    return Some(id);
                }
            }
            self.lost.pop();
        }
        None
    }

    /// Nothing is lost after all (Linux `tcp_undo_cwnd_reduction` with `unmark_loss`).
    pub(crate) fn unmark_all_lost(&mut self) {
        self.lost.clear();
        if self.lost_out == 0 {
            return;
        }
        self.lost_out = 0;
        for id in self.ids() {
            let record = self.get_mut(id);
            if record.has(LOST) {
                record.flags &= !LOST;
                if !record.has(SACKED | LINKED) {
                    self.relink_by_time(id);
                }
            }
        }
    }

    /// Records are selectively acknowledged no longer: the receiver reneged.
    pub(crate) fn forget_sacks(&mut self) {
        self.sacked.clear();
        self.sacked_out = 0;
        for id in self.ids() {
            let record = self.get_mut(id);
            if record.has(SACKED) {
                record.flags &= !SACKED;
                self.relink_by_time(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(n: u64) -> Queue {
        let mut q = Queue::default();
        for i in 0..n {
            q.push(Record { seq: i * 100, len: 100, sent: Time::from_nanos(i), ..Record::default() });
        }
        q
    }

    #[test]
    fn a_record_is_found_by_offset_whatever_the_sizes() {
        let mut q = Queue::default();
        let mut seq = 7;
        let mut starts = Vec::new();
        for i in 0..50u16 {
            starts.push(seq);
            q.push(Record { seq, len: 1 + (i * 37) % 90, ..Record::default() });
            seq = q.get(u64::from(i)).end();
        }
        for offset in 0..seq + 5 {
            let expected = starts.iter().position(|&s| s >= offset).unwrap_or(50) as u64;
            assert_eq!(q.first_from(offset), expected, "offset {offset}");
        }
    }

    #[test]
    fn only_whole_records_are_within() {
        let q = queue(10);
        assert_eq!(q.within(&Range::new(100, 300)), 1..3);
        assert_eq!(q.within(&Range::new(50, 350)), 1..3);
        assert_eq!(q.within(&Range::new(910, 990)), 10..10);
        assert_eq!(q.within(&Range::new(0, 5000)), 0..10);
    }

    #[test]
    fn lost_records_come_lowest_first_and_once() {
        let mut q = queue(10);
        for id in [7, 2, 5] {
            assert_eq!(q.mark_lost(id), Some(false));
        }
        assert_eq!(q.mark_lost(2), None);
        assert_eq!(q.next_lost(), Some(2));
        q.get_mut(2).flags |= RETRANSMITTED;
        q.retrans_out += 1;
        assert_eq!(q.next_lost(), Some(5));
        assert_eq!(q.in_flight(), 8);
        assert_eq!(q.mark_lost(2), Some(true));
        assert_eq!((q.next_lost(), q.in_flight()), (Some(2), 7));
        q.unmark_all_lost();
        assert_eq!((q.next_lost(), q.in_flight()), (None, 10));
    }

    #[test]
    fn the_time_order_survives_marking_and_unmarking() {
        let mut q = queue(20);
        for id in [3, 0, 11, 19] {
            q.mark_lost(id);
        }
        q.unmark_all_lost();
        q.advance_edge(21);
        for expected in 0..20 {
            let (id, _) = q.oldest_before_edge().expect("all were sent before 100 ns");
            assert_eq!(id, expected);
            q.unlink(id);
        }
        assert_eq!(q.oldest_before_edge(), None);
    }

    #[test]
    fn a_packet_counts_until_the_last_of_its_segments_is_gone() {
        let mut q = Queue::default();
        for (n, flags) in (0..).zip([PACKET, 0, 0, PACKET, 0]) {
            q.push(Record { seq: n * 100, len: 100, flags, ..Record::default() });
        }
        let counts: Vec<u32> = (0..5)
            .map(|_| {
                let count = q.packets();
                q.pop();
                count
            })
            .collect();
        assert_eq!((counts, q.packets()), (vec![2, 2, 2, 1, 1], 0));
    }
}
