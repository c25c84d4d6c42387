//! FQ: fair queueing without delay control. Flows share a link by deficit round robin.
//!
//! Source: RFC 8290 (FQ-CoDel) without CoDel in each queue: its hash, its byte-based DRR with new flows first, and its
//! limit. This equals M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round-Robin" (1996) with the
//! drop policy of P. McKenney's "Stochastic Fairness Queueing" (1990): when full, the longest queue, here in bytes,
//! drops its head packet. It is not Linux's `sch_fq`, which paces.
//!
//! Deviations from RFC 8290: apart from the missing CoDel, a full queue drops one packet per arrival, not half of a
//! flow.

use units::Time;

use crate::flow_table::FlowTable;
use crate::{Backlog, DropReason, Drops, Packet, Queue};

/// The limit and the flow queues of FQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of packets in total; `None` is no limit. Default: 10240, as in FQ-CoDel.
    pub packets: Option<u64>,
    /// Number of hash buckets, at least 1; flows with the same hash share a queue. Default: 1024.
    pub flows: u32,
    /// Bytes that a flow may send per round; values below 256 count as 256, as in Linux. Default: 1514.
    pub quantum: u32,
    /// Hash salt: changes which flows collide.
    pub salt: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config { packets: Some(10_240), flows: 1024, quantum: 1514, salt: 0 }
    }
}

/// Deficit round robin over hashed flows.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    table: FlowTable<P, ()>,
    max_packets: u64,
}

impl<P: Packet> Fq<P> {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Self {
        Fq {
            table: FlowTable::new(config.flows, config.quantum, config.salt),
            max_packets: config.packets.unwrap_or(u64::MAX),
        }
    }
}

impl<P: Packet> Queue<P> for Fq<P> {
    #[inline(never)]
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.table.push(packet, now);
        if self.table.backlog().packets > self.max_packets {
            let fattest = self.table.fattest().expect("a queue over its limit holds a packet");
            let victim = self.table.pop(fattest).expect("the fattest flow holds a packet");
            drops.dropped(victim, DropReason::Overflow);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Time, _drops: &mut impl Drops<P>) -> Option<P> {
        loop {
            let flow = self.table.select()?;
            if let Some(packet) = self.table.pop(flow) {
                self.table.charge(flow, packet.len());
                return Some(packet);
            }
            self.table.retire(flow);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.table.backlog()
    }

    fn marks(&self) -> u64 {
        0
    }
}
