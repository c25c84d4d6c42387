//! The calendar: entries by transmission time interval.
//!
//! Nearly everything that MAC has to remember is due within a few dozen TTIs (a HARQ round trip is 8), so entries are
//! stored in a ring of lists, one per TTI, with a bitmap of non-empty lists; the few entries further ahead wait in a
//! heap. Entries of one TTI are returned in the order of insertion. When a UE changes its cell, its entries are not
//! searched: they carry the UE's epoch, and entries of an older epoch are stale.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of TTIs in the ring.
const RING: u64 = 64;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// The UE has decoded the downlink transport block of a HARQ process.
    DownlinkDecoded,
    /// The eNodeB receives the ACK or NACK of a downlink HARQ process.
    DownlinkFeedback,
    /// The UE transmits, or retransmits, with its grant for this TTI.
    UplinkTransmit,
    /// The eNodeB has decoded the uplink transport block of a HARQ process.
    UplinkDecoded,
    /// The UE learns that its uplink transport block failed.
    UplinkNack,
    /// The UE has an occasion of its configured grant.
    Occasion,
    /// The UE may send a scheduling request.
    SchedulingRequest,
    /// The eNodeB may respond to a scheduling request.
    SchedulingRequestReceived,
    /// The random access procedure has resulted in a grant.
    RandomAccessDone,
    /// No grant was received for too long (retxBSR-Timer).
    RetxBsr,
    /// A timer of the UE's RLC or PDCP entities.
    Rlc,
    /// A UE with something to send or receive wakes.
    Wake,
    /// Signal strengths are measured for mobility.
    Measure,
    /// The next step of a handover or cell search.
    Mobility,
}

/// An entry of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// The UE.
    pub(crate) ue: u32,
    /// The UE's epoch when the entry was made.
    pub(crate) epoch: u16,
    /// The kind.
    pub(crate) kind: Kind,
    /// The HARQ process, or the number of the random access, if the kind has one.
    pub(crate) process: u8,
}

/// See the module.
pub(crate) struct Calendar {
    /// The first TTI whose entries have not been taken yet.
    next: u64,
    ring: Vec<Vec<Entry>>,
    /// Bit `tti % RING`: the list of that TTI is not empty.
    occupied: u64,
    far: BinaryHeap<Reverse<(u64, u64, Entry)>>,
    /// Number of entries added to `far` so far, to keep the order within a TTI.
    sequence: u64,
}

impl Calendar {
    pub(crate) fn new() -> Calendar {
        Calendar {
            next: 0,
            ring: (0..RING).map(|_| Vec::new()).collect(),
            occupied: 0,
            far: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Adds `entry` for `tti`, whose entries must not have been taken yet.
    #[inline]
    pub(crate) fn at(&mut self, tti: u64, entry: Entry) {
        debug_assert!(tti >= self.next, "an entry in the past");
        if tti - self.next < RING {
            let slot = tti % RING;
            self.ring[slot as usize].push(entry);
            self.occupied |= 1 << slot;
        } else {
            self.far.push(Reverse((tti, self.sequence, entry)));
            self.sequence += 1;
        }
    }

    /// Returns the first TTI with entries.
    #[inline]
    pub(crate) fn first(&self) -> Option<u64> {
        let far = self.far.peek().map(|Reverse((tti, ..))| *tti);
        if self.occupied == 0 {
            return far;
        }
        let ahead = self.occupied.rotate_right((self.next % RING) as u32).trailing_zeros();
        let near = self.next + u64::from(ahead);
        Some(far.map_or(near, |far| far.min(near)))
    }

    /// Takes the entries of `tti` in order, in exchange for an empty list whose memory is reused. All earlier TTIs must
    /// have been taken. Entries from the heap come last.
    #[inline]
    pub(crate) fn take(&mut self, tti: u64, list: &mut Vec<Entry>) {
        debug_assert!(list.is_empty());
        self.next = tti + 1;
        let slot = tti % RING;
        if self.occupied & (1 << slot) != 0 {
            self.occupied &= !(1 << slot);
            core::mem::swap(&mut self.ring[slot as usize], list);
        }
        while let Some(Reverse((due, _, entry))) = self.far.peek().copied()
            && due <= tti
        {
            self.far.pop();
            list.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(ue: u32) -> Entry {
        Entry { ue, epoch: 0, kind: Kind::Rlc, process: 0 }
    }

    #[test]
    fn entries_come_out_by_tti_and_then_in_their_order() {
        let mut calendar = Calendar::new();
        let due = [5, 300, 5, 70, 63, 64, 300, 1_000_000];
        for (ue, tti) in due.iter().enumerate() {
            calendar.at(*tti, entry(ue as u32));
        }
        let mut order = Vec::new();
        while let Some(tti) = calendar.first() {
            let mut list = Vec::new();
            calendar.take(tti, &mut list);
            order.extend(list.iter().map(|e| (tti, e.ue)));
        }
        assert_eq!(order, [(5, 0), (5, 2), (63, 4), (64, 5), (70, 3), (300, 1), (300, 6), (1_000_000, 7)]);
    }

    #[test]
    fn an_entry_may_be_made_for_the_tti_after_the_one_that_was_taken() {
        let mut calendar = Calendar::new();
        let mut list = Vec::new();
        calendar.take(99, &mut list);
        calendar.at(100, entry(1));
        calendar.at(163, entry(2));
        assert_eq!(calendar.first(), Some(100));
        calendar.take(100, &mut list);
        assert_eq!(list.len(), 1);
        assert_eq!(calendar.first(), Some(163));
    }
}
