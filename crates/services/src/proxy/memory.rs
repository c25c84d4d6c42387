//! The memory that connections take.
//!
//! A host that has shown that it reads may have more on its way. Its connection's receive buffer grows by need, as the kernel would
//! let it grow (`tcp_rcv_space_adjust`): it doubles as long as half of it or more is read in a round trip. So a reader that stops
//! leaves no more behind than its rate was worth. What all take together is bounded by the settings, and so is what buffers may grow
//! to ([`Budget`]).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use netio::sys;
use serde::{Deserialize, Serialize};

use super::relay::Direction;

/// The receive buffer of a leg whose other host has shown that it reads: less makes small turns of a worker that is late.
const FIRST: usize = 256 << 10;
/// So many times the buffer must be read before it may grow: the kernel's measure of a round trip must have seen it full.
const ROUNDS: u64 = 2;
/// A host whose packets take this many times the memory that a receive buffer allows, with the kernel's overhead, is an attacker: short
/// packets with gaps between them, of which none can be read.
const ABUSE_FACTOR: u64 = 4;
/// The same in bytes, at least: short packets of which none is missing take up to 4 KiB each, and the first window is 64 KiB.
const ABUSE_FLOOR: u64 = 4 << 20;

/// The size of a leg's receive buffer.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sizes {
    bytes: usize,
    /// How many bytes must have been read before it may grow.
    next: u64,
}

impl Sizes {
    /// Returns the first size of a proven leg of which `taken` bytes were read, at most `whole`.
    pub(super) fn first(&mut self, taken: u64, whole: usize) -> usize {
        self.set(FIRST.min(whole), taken)
    }

    /// Whether so much has been read that the leg may need a larger one.
    pub(super) fn is_due(&self, taken: u64, whole: usize) -> bool {
        taken >= self.next && self.bytes > 0 && self.bytes < whole
    }

    /// Returns the memory that a full buffer of this size takes, with the kernel's overhead.
    pub(super) fn memory(&self) -> u64 {
        2 * self.bytes as u64
    }

    /// Returns the next size if the leg needs a larger one, for which there are `spare` bytes of memory.
    pub(super) fn next(&mut self, taken: u64, leg: BorrowedFd, whole: usize, spare: u64) -> Option<usize> {
        if !self.is_due(taken, whole) || spare < self.memory() {
            return None;
        }
        let needs = sys::tcp_info(leg).is_ok_and(|info| info.rcv_space as usize >= self.bytes / 2);
        let bytes = if needs { (2 * self.bytes).min(whole) } else { self.bytes };
        self.set(bytes, taken);
        needs.then_some(bytes)
    }

    fn set(&mut self, bytes: usize, taken: u64) -> usize {
        *self = Sizes { bytes, next: taken + ROUNDS * bytes as u64 };
        bytes
    }
}

/// What buffers may grow to. They share three quarters of the memory: first come, first served, but a UE that has less than an equal part
/// may always have that, so that another one cannot keep its connections slow.
#[derive(Debug)]
pub(super) struct Budget {
    /// The memory that connections may take.
    memory: u64,
    /// Whether they take most of it. Then none may have more than its UE's part.
    is_short: bool,
    /// What connections in use may take, as of the last sweep, and what buffers have grown by since.
    committed: u64,
    by_ue: BTreeMap<IpAddr, u64>,
}

impl Budget {
    pub(super) fn new(memory: u64) -> Budget {
        Budget { memory, is_short: false, committed: 0, by_ue: BTreeMap::new() }
    }

    /// Begins to add up anew.
    pub(super) fn begin(&mut self, memory: u64) {
        (self.memory, self.committed) = (memory, 0);
        self.by_ue.clear();
    }

    /// A connection of a UE may take so many more bytes.
    pub(super) fn commit(&mut self, ue: IpAddr, bytes: u64) {
        self.committed += bytes;
        *self.by_ue.entry(ue).or_default() += bytes;
    }

    /// All connections take so many bytes.
    pub(super) fn note_taken(&mut self, bytes: u64) {
        // Buffers grow again once there is room for some.
        self.is_short = bytes > if self.is_short { self.memory / 2 } else { self.memory / 4 * 3 };
    }

    /// Returns by how much the buffers of a UE's connections may grow.
    pub(super) fn spare(&self, ue: IpAddr) -> u64 {
        let shared = self.memory / 4 * 3;
        let rest = if self.is_short { 0 } else { shared.saturating_sub(self.committed) };
        // At least the first buffers of one connection.
        let of_ue = self.by_ue.get(&ue);
        let ues = self.by_ue.len() + usize::from(of_ue.is_none());
        let part = (shared / ues as u64).max(4 * FIRST as u64);
        rest.max(part.saturating_sub(of_ue.copied().unwrap_or_default()))
    }
}

/// Returns the keys of connections that take `excess` bytes together, or of all that take any. `taken` is what each takes, with its UE and
/// its key. Of the UE that has most, it is the connection that has most, and so on.
pub(super) fn largest(mut taken: Vec<(IpAddr, u64, usize)>, mut excess: u64) -> Vec<usize> {
    let mut ended = Vec::new();
    if excess == 0 {
        return ended;
    }
    let mut ues: BTreeMap<IpAddr, (u64, Vec<(u64, usize)>)> = BTreeMap::new();
    taken.sort_unstable_by_key(|(_, bytes, _)| *bytes);
    for (ue, bytes, key) in taken {
        let (sum, all) = ues.entry(ue).or_default();
        *sum += bytes;
        all.push((bytes, key));
    }
    while excess > 0
        && let Some((sum, all)) = ues.values_mut().max_by_key(|(sum, _)| *sum)
        && let Some((bytes, key)) = all.pop().filter(|(bytes, _)| *bytes > 0)
    {
        *sum -= bytes;
        excess = excess.saturating_sub(bytes);
        ended.push(key);
    }
    ended
}

/// The memory of a connection in bytes, with the kernel's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Of the packets that each leg has received and nobody has read.
    received: [u64; 2],
    /// Of the rest.
    other: u64,
}

impl Taken {
    /// Asks the kernel.
    pub(super) fn of(legs: [BorrowedFd; 2], directions: &[Direction; 2]) -> Taken {
        let sockets = legs.map(|leg| sys::socket_memory(leg).unwrap_or_default());
        let in_pipes: usize = directions.iter().map(Direction::held).sum();
        let to_send: u64 = sockets.iter().map(|of| u64::from(of.to_send)).sum();
        Taken { received: sockets.map(|of| of.received.into()), other: to_send + in_pipes as u64 }
    }

    /// Returns what the connection may take until the next sweep: with buffers of these sizes, if it is in use.
    pub(super) fn committed(&self, sizes: &[Sizes; 2], is_in_use: bool) -> u64 {
        let full: u64 = sizes.iter().map(Sizes::memory).sum();
        self.all().max(if is_in_use { full } else { 0 })
    }

    /// Returns all of it.
    pub(super) fn all(&self) -> u64 {
        self.received.iter().sum::<u64>() + self.other
    }

    /// Whether the packets that a host has sent take far more memory than a receive buffer allows.
    pub(super) fn is_abusive(&self, receive_buffer: usize) -> bool {
        let most = (ABUSE_FACTOR * 2 * receive_buffer as u64).max(ABUSE_FLOOR);
        self.received.iter().any(|&bytes| bytes > most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ue_that_takes_most_pays_for_it_with_its_largest_connections() {
        let ue = |n: u8| IpAddr::from([10, 0, 0, n]);
        // The largest connection of all belongs to a UE that has no other.
        let taken = || {
            let many = (0..20).map(|key| (ue(1), 50 + key as u64, key));
            many.chain([(ue(2), 500, 100), (ue(3), 0, 101)]).collect::<Vec<_>>()
        };
        assert!(largest(taken(), 0).is_empty());
        assert_eq!(largest(taken(), 1), [19]);
        assert_eq!(largest(taken(), 69 + 68), [19, 18]);
        // It pays as soon as it is the one that has most.
        let until_less = (9..20).rev().collect::<Vec<_>>();
        assert_eq!(largest(taken(), 700), until_less);
        assert_eq!(largest(taken(), 750), [until_less, vec![100]].concat());
        // What takes nothing gives nothing back.
        assert_eq!(largest(taken(), u64::MAX).len(), 21);
    }

    #[test]
    fn packets_of_a_few_bytes_are_abusive() {
        let taken = |bytes| Taken { received: [0, bytes], other: 1 << 40 };
        assert!(!taken(8 << 20).is_abusive(1 << 20));
        assert!(taken((8 << 20) + 1).is_abusive(1 << 20));
        assert!(!taken(4 << 20).is_abusive(16 << 10));
    }

    #[test]
    fn a_buffer_begins_small_and_does_not_exceed_the_whole() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.first(64 << 10, 1 << 20), FIRST);
        assert_eq!(sizes.first(64 << 10, 100_000), 100_000);
        assert_eq!(sizes.next, (64 << 10) + 200_000);
    }

    #[test]
    fn a_ue_that_takes_everything_leaves_others_their_part() {
        let [greedy, modest, new] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let mut budget = Budget::new(40 << 20);
        budget.commit(modest, 1 << 20);
        assert_eq!(budget.spare(greedy), 29 << 20);
        budget.commit(greedy, 29 << 20);
        assert_eq!([greedy, modest, new].map(|ue| budget.spare(ue) >> 20), [0, 14, 10]);
        // The same while memory is short, although less is committed.
        budget.begin(40 << 20);
        [(greedy, 10), (modest, 1)].iter().for_each(|(ue, bytes)| budget.commit(*ue, bytes << 20));
        budget.note_taken(31 << 20);
        assert_eq!([greedy, modest].map(|ue| budget.spare(ue) >> 20), [5, 14]);
        budget.note_taken(21 << 20);
        assert_eq!(budget.spare(greedy) >> 20, 5);
        budget.note_taken(20 << 20);
        assert_eq!(budget.spare(greedy) >> 20, 19);
        // Of many UEs, each may have the first buffers of a connection.
        (0..200).for_each(|n| budget.commit([10, 1, 0, n].into(), 1 << 20));
        assert_eq!((budget.spare(new), budget.spare(greedy)), (4 * FIRST as u64, 0));
    }

    #[test]
    fn buffers_count_in_full_as_long_as_they_are_in_use() {
        let mut sizes = [Sizes::default(); 2];
        sizes[1].first(64 << 10, 1 << 20);
        let taken = Taken { received: [100, 200], other: 3 };
        assert_eq!(taken.committed(&sizes, true), 2 * FIRST as u64);
        assert_eq!(taken.committed(&sizes, false), 303);
        assert_eq!(Taken { other: 1 << 30, ..taken }.committed(&sizes, true), (1 << 30) + 300);
    }
}
