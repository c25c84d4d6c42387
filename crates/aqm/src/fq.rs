//! FQ: fair queueing without delay control. Flows share a link by deficit round robin.
//!
//! Source: RFC 8290 (FQ-CoDel) without CoDel in each queue: its hash, its byte-based DRR with new flows first, and its
//! limit. This equals M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round-Robin" (1996) with the
//! drop policy of P. McKenney's "Stochastic Fairness Queueing" (1990): when full, the longest queue, here in bytes,
//! drops its head packet. It is not Linux's `sch_fq`, which paces.
//!
//! Deviations from RFC 8290: apart from the missing CoDel, a full queue drops one packet per arrival, not half of a
//! flow.

use units::{Bytes, Time, parameters};

use crate::flow_table::{FlowTable, LIMIT, QUANTUM, QUEUES, VALID_QUANTUM, VALID_QUEUES};
use crate::{Backlog, DropReason, Drops, PACKETS, Packet, Queue};

parameters! {
    /// The limit and the flow queues of FQ. The defaults are those of FQ-CoDel.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Maximum number of packets in total.
        pub packets: u32 = LIMIT, in PACKETS;
        /// Number of queues that flows are hashed into.
        pub queues: u32 = QUEUES, in VALID_QUEUES;
        /// Bytes that a queue may send per round.
        pub quantum: Bytes = QUANTUM, in VALID_QUANTUM;
        /// Hash salt: changes which flows share a queue.
        #[serde(skip)]
        pub salt: u64 = 0;
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
        Fq { table: FlowTable::new(config.queues, config.quantum, config.salt), max_packets: config.packets.into() }
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
