//! The part shared by FQ and FQ-CoDel: flows found by hash, each with a FIFO and a deficit, served by deficit round
//! robin with a list of new flows ahead of the list of old ones (RFC 8290, sections 4.1 and 4.2).
//!
//! All packets are stored in one slab, linked per flow, so memory is proportional to the total backlog, and nothing is
//! allocated in the steady state. Each flow is on at most one of the two lists.
//!
//! Push, select and pop take constant time (select is amortised: a flow whose packet used up the deficit by `n` quanta
//! is skipped `n` times). [`FlowTable::fattest`] scans only the flows on a list, so its cost is the number of active
//! flows, not of hash buckets; it is called only on overflow.

use core::ops::RangeInclusive;

use slab::Slab;
use units::{Bytes, Time};

use crate::{Backlog, Packet};

/// "No node" and "no flow" in links.
const NONE: u32 = u32::MAX;

/// Linux's minimum quantum in bytes: a smaller one would need many rounds per packet.
const MIN_QUANTUM: u64 = 256;

/// Packets in total, as `fq_codel` of Linux has by default.
pub(crate) const LIMIT: u32 = 10_240;
/// Queues, likewise.
pub(crate) const QUEUES: u32 = 1024;
/// Bytes of a round, likewise: a full Ethernet frame.
pub(crate) const QUANTUM: Bytes = Bytes::new(1514);
/// Valid numbers of queues.
pub(crate) const VALID_QUEUES: RangeInclusive<u32> = 1..=65_536;
/// Valid bytes of a round; values below 256 count as 256, as in Linux.
pub(crate) const VALID_QUANTUM: RangeInclusive<Bytes> = Bytes::new(1)..=Bytes::new(1 << 20);

#[derive(Clone, Debug)]
struct Node<P> {
    packet: P,
    next: u32,
}

#[derive(Clone, Debug)]
struct Flow<S> {
    /// The FIFO's nodes; `tail` is valid only while `head` is a node.
    head: u32,
    tail: u32,
    /// The next flow on its list.
    next: u32,
    /// Whether the flow is on a list; always true for a flow with packets.
    listed: bool,
    /// Bytes that the flow may still send in this round; it is served only while this is positive.
    deficit: i64,
    bytes: u64,
    state: S,
}

/// A linked list of flows, through `Flow::next`.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NONE, tail: NONE };

    fn push<S>(&mut self, flows: &mut [Flow<S>], flow: u32) {
        flows[flow as usize].next = NONE;
        if self.head == NONE {
            self.head = flow;
        } else {
            flows[self.tail as usize].next = flow;
        }
        self.tail = flow;
    }

    fn pop<S>(&mut self, flows: &[Flow<S>]) {
        self.head = flows[self.head as usize].next;
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FlowTable<P, S> {
    flows: Vec<Flow<S>>,
    nodes: Slab<Node<P>>,
    new: List,
    old: List,
    bytes: u64,
    quantum: i64,
    salt: u64,
}

impl<P: Packet, S: Clone + Default> FlowTable<P, S> {
    pub(crate) fn new(flows: u32, quantum: Bytes, salt: u64) -> Self {
        let idle =
            Flow { head: NONE, tail: NONE, next: NONE, listed: false, deficit: 0, bytes: 0, state: S::default() };
        FlowTable {
            flows: vec![idle; flows.max(1) as usize],
            nodes: Slab::new(),
            new: List::EMPTY,
            old: List::EMPTY,
            bytes: 0,
            quantum: quantum.get().max(MIN_QUANTUM) as i64,
            salt,
        }
    }

    /// Appends `packet` to its flow. A flow that was not on a list becomes a new flow with a full quantum.
    #[inline]
    pub(crate) fn push(&mut self, mut packet: P, now: Time) {
        packet.set_enqueued(now);
        let len = u64::from(packet.len());
        let index = bucket(packet.flow(), self.salt, self.flows.len());
        let node = self.nodes.insert(Node { packet, next: NONE }) as u32;
        let flow = &mut self.flows[index as usize];
        if flow.head == NONE {
            flow.head = node;
        } else {
            self.nodes[flow.tail as usize].next = node;
        }
        flow.tail = node;
        flow.bytes += len;
        self.bytes += len;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push(&mut self.flows, index);
        }
    }

    /// Returns the flow to serve next. If it is empty, call [`FlowTable::retire`] and try again.
    #[inline]
    pub(crate) fn select(&mut self) -> Option<u32> {
        loop {
            let list = if self.new.head == NONE { &mut self.old } else { &mut self.new };
            let index = list.head;
            if index == NONE {
                return None;
            }
            let flow = &mut self.flows[index as usize];
            if flow.deficit > 0 {
                return Some(index);
            }
            flow.deficit += self.quantum;
            list.pop(&self.flows);
            self.old.push(&mut self.flows, index);
        }
    }

    /// Removes the selected flow, which is empty, from its list. A new flow moves to the list of old flows first if
    /// others wait there, so that it cannot starve them by returning as new (RFC 8290, section 4.2).
    pub(crate) fn retire(&mut self, index: u32) {
        if self.new.head == index {
            self.new.pop(&self.flows);
            if self.old.head != NONE {
                self.old.push(&mut self.flows, index);
                return;
            }
        } else {
            self.old.pop(&self.flows);
        }
        self.flows[index as usize].listed = false;
    }

    /// Removes and returns the packet at the head of a flow.
    #[inline]
    pub(crate) fn pop(&mut self, index: u32) -> Option<P> {
        let flow = &mut self.flows[index as usize];
        if flow.head == NONE {
            return None;
        }
        let Node { packet, next } = self.nodes.remove(flow.head as usize);
        let len = u64::from(packet.len());
        flow.head = next;
        flow.bytes -= len;
        self.bytes -= len;
        Some(packet)
    }

    /// Charges the selected flow for `len` bytes served.
    #[inline]
    pub(crate) fn charge(&mut self, index: u32, len: u32) {
        self.flows[index as usize].deficit -= i64::from(len);
    }

    /// Returns the flow with the most bytes, the first in service order among equals; `None` if the table is empty.
    pub(crate) fn fattest(&self) -> Option<u32> {
        let mut fattest = None;
        let mut most = 0;
        for head in [self.new.head, self.old.head] {
            let mut index = head;
            while index != NONE {
                let flow = &self.flows[index as usize];
                if flow.bytes > most {
                    most = flow.bytes;
                    fattest = Some(index);
                }
                index = flow.next;
            }
        }
        fattest
    }

    pub(crate) fn flow_bytes(&self, index: u32) -> u64 {
        self.flows[index as usize].bytes
    }

    #[inline]
    pub(crate) fn state(&mut self, index: u32) -> &mut S {
        &mut self.flows[index as usize].state
    }

    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.nodes.len() as u64, bytes: self.bytes }
    }
}

/// Returns the bucket of a flow: a 64-bit finaliser (Stafford's thirteenth variant, as in `SplitMix64`) over flow and
/// salt, scaled to the number of buckets by multiplication, like Linux's `reciprocal_scale`.
#[inline]
fn bucket(flow: u64, salt: u64, buckets: usize) -> u32 {
    let mut x = flow ^ salt;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    (((x >> 32) * buckets as u64) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_the_upper_half_of_splitmix64s_output_scaled() {
        // The published outputs of SplitMix64 from the seed 1234567: each is the finaliser's of a multiple of the golden
        // ratio's fraction, added to the seed.
        let golden = 0x9e37_79b9_7f4a_7c15_u64;
        let outputs = [
            6_457_827_717_110_365_317_u64,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        let salt = 0x5a5a;
        for (n, output) in (1..).zip(outputs) {
            let flow = golden.wrapping_mul(n).wrapping_add(1_234_567) ^ salt;
            assert_eq!(u64::from(bucket(flow, salt, 1 << 32)), output >> 32, "output {n}");
            assert_eq!(u64::from(bucket(flow, salt, 1024)), output >> 54, "output {n}");
            assert_eq!(bucket(flow, salt, 1), 0);
        }
    }
}
