//! FQ-CoDel: flows share a link by deficit round robin, with CoDel in each flow's queue (RFC 8290).
//!
//! Source: RFC 8290; where it leaves a choice, Linux's `net/sched/sch_fq_codel.c`: a flow is skipped while its deficit
//! is <= 0 (RFC text: negative); CoDel compares the MTU with the backlog of the whole discipline; above a limit, half
//! of the fattest flow, at most 64 packets, is dropped from its head at once, and its control law is informed.
//!
//! Deviations:
//! 1. Linux finds the fattest flow by a scan over all buckets and takes the lowest number among equals; this scans only
//!    active flows (see `flow_table`) and takes the first in service order.
//! 2. The memory of a packet is Linux's `truesize` estimated from its length; see [`truesize`].
//! 3. Linux salts its hash randomly; here the salt is an argument, so that runs can be repeated.

use units::Time;

use crate::codel::{CodelState, Params};
use crate::flow_table::FlowTable;
use crate::{Backlog, DropReason, Drops, Packet, Queue};

/// Linux's default `drop_batch_size`, in packets.
const DROP_BATCH: u32 = 64;

/// The limits, flow queues and control law of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of packets in total; `None` is no limit. Linux: 10240.
    pub packets: Option<u64>,
    /// Maximum kernel memory in bytes, see [`truesize`]; `None` is no limit. Linux: 32 MiB.
    pub memory: Option<u64>,
    /// Number of hash buckets, at least 1; flows with the same hash share a queue. Linux: 1024.
    pub flows: u32,
    /// Bytes that a flow may send per round; values below 256 count as 256. Linux: 1514.
    pub quantum: u32,
    /// Hash salt: changes which flows collide.
    pub salt: u64,
    /// The control law of each flow. Linux: CoDel's defaults with ECN.
    pub params: Params,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            packets: Some(10_240),
            memory: Some(32 << 20),
            flows: 1024,
            quantum: 1514,
            salt: 0,
            params: Params { ecn: true, ..Params::default() },
        }
    }
}

/// Deficit round robin over hashed flows, each with CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    table: FlowTable<P, CodelState>,
    /// The sum of `truesize` over the table.
    memory: u64,
    max_packets: u64,
    max_memory: u64,
    params: Params,
    marks: u64,
}

impl<P: Packet> FqCodel<P> {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Self {
        FqCodel {
            table: FlowTable::new(config.flows, config.quantum, config.salt),
            memory: 0,
            max_packets: config.packets.unwrap_or(u64::MAX),
            max_memory: config.memory.unwrap_or(u64::MAX),
            params: config.params,
            marks: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.table.backlog().packets > self.max_packets || self.memory > self.max_memory
    }

    /// Drops packets from the head of the fattest flow until half of its bytes are gone, at most one batch.
    #[cold]
    fn drop_from_fattest(&mut self, drops: &mut impl Drops<P>) {
        let flow = self.table.fattest().expect("a queue over its limit holds a packet");
        let enough = self.table.flow_bytes(flow) / 2;
        let (mut lost, mut lost_bytes) = (0, 0);
        while lost == 0 || (lost < DROP_BATCH && lost_bytes < enough) {
            let victim = self.table.pop(flow).expect("half of a flow leaves a packet behind");
            self.memory -= truesize(victim.len());
            lost += 1;
            lost_bytes += u64::from(victim.len());
            drops.dropped(victim, DropReason::Overflow);
        }
        self.table.state(flow).on_overflow(lost);
    }
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    #[inline(never)]
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.memory += truesize(packet.len());
        self.table.push(packet, now);
        // Linux drops one batch per arrival, which suffices for the packet limit; a big packet among small ones may
        // need several for the memory limit.
        while self.is_over() {
            self.drop_from_fattest(drops);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<P> {
        loop {
            let flow = self.table.select()?;
            let mut state = *self.table.state(flow);
            let (table, memory) = (&mut self.table, &mut self.memory);
            let pop = || {
                let packet = table.pop(flow)?;
                *memory -= truesize(packet.len());
                Some((packet, table.backlog().bytes))
            };
            let served = state.dequeue(&self.params, now, pop, &mut self.marks, drops);
            *self.table.state(flow) = state;
            if let Some(packet) = served {
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
        self.marks
    }
}

/// Returns a packet's charge against the memory limit in bytes, for a length of `len`: the kernel allocates its data,
/// with 64 bytes of headroom and 320 of `skb_shared_info`, in a power of two, and a `sk_buff` of 256 bytes. 2304 for a
/// full-sized frame.
#[inline]
pub fn truesize(len: u32) -> u64 {
    (u64::from(len) + 384).next_power_of_two() + 256
}
