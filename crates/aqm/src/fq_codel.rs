//! FQ-CoDel: flows share a link by deficit round robin, and each flow's queue is under CoDel (RFC 8290).
//!
//! Source: RFC 8290; where it leaves room, Linux's `net/sched/sch_fq_codel.c`: a flow is passed over while its deficit
//! is <= 0 (RFC text: negative); CoDel compares the MTU with the backlog of the whole discipline; over a limit, half of
//! the fattest flow, at most 64 packets, is lost from its head at once and its control law is told.
//!
//! Deviations:
//! 1. Linux finds the fattest flow by a scan over all buckets and takes the lowest number among equals; this scans only
//!    the flows that are listed (see `flow_table`) and takes the first in the order of service.
//! 2. The memory of a packet is an estimate of Linux's `truesize` from its length; see [`truesize`].
//! 3. Linux re-keys its hash with the machine; here the salt is given, so that runs repeat.

use units::Time;

use crate::codel::{CodelState, Params};
use crate::flow_table::FlowTable;
use crate::{Backlog, DropReason, Drops, Packet, Queue};

/// Linux's default `drop_batch_size`, in packets.
const DROP_BATCH: u32 = 64;

/// How much FQ-CoDel may hold, how it shares, and its control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// At most so many packets in all; `None` is no limit. Linux: 10240.
    pub packets: Option<u64>,
    /// At most so many bytes of kernel memory, see [`truesize`]; `None` is no limit. Linux: 32 MiB.
    pub memory: Option<u64>,
    /// Hash buckets; flows that fall into one share it. At least 1. Linux: 1024.
    pub flows: u32,
    /// Bytes that a flow may send in a round; below 256 it counts as 256. Linux: 1514.
    pub quantum: u32,
    /// Changes which flows collide.
    pub salt: u64,
    /// The control law of each flow. Linux: the defaults of CoDel, with ECN on.
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

/// Deficit round robin over hashed flows, each under CoDel.
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
    /// An empty queue.
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

    /// Loses packets from the head of the fattest flow until half of its bytes are gone, at most a batch.
    #[cold]
    fn shed(&mut self, drops: &mut impl Drops<P>) {
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
        // Linux sheds once an arrival, which is enough for the packet limit; a big packet among small ones may take
        // more for the memory limit to hold.
        while self.is_over() {
            self.shed(drops);
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

/// What a packet of `len` bytes costs of the memory limit, in bytes: the kernel allocates its data with 64 bytes of
/// headroom and 320 of `skb_shared_info` in a power of two, and a `sk_buff` of 256 bytes. 2304 for a full frame.
#[inline]
pub fn truesize(len: u32) -> u64 {
    (u64::from(len) + 384).next_power_of_two() + 256
}
