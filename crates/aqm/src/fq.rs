//! FQ: fair queueing without delay control. Flows share a link by deficit round robin.
//!
//! Source: RFC 8290 (FQ-CoDel) with the CoDel of each queue taken out: its hash, its DRR of bytes with new flows first,
//! its limit. That leaves M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round-Robin" (1996) with
//! the drop policy of P. McKenney's "Stochastic Fairness Queueing" (1990): when full, the longest queue, here by bytes,
//! loses its head packet. It is not Linux's `sch_fq`, which paces.
//!
//! Deviations from RFC 8290: none but the missing CoDel; a full queue loses one packet an arrival, not half a flow.

use units::Time;

use crate::flow_table::FlowTable;
use crate::{Backlog, DropReason, Drops, Packet, Queue};

/// How much FQ may hold and how it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// At most so many packets in all; `None` is no limit. Default: 10240, as FQ-CoDel.
    pub packets: Option<u64>,
    /// Hash buckets; flows that fall into one share it. At least 1. Default: 1024.
    pub flows: u32,
    /// Bytes that a flow may send in a round; below 256 it counts as 256, as in Linux. Default: 1514.
    pub quantum: u32,
    /// Changes which flows collide.
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
    /// An empty queue.
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
