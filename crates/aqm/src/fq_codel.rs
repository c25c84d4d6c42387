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

use units::check::Range;
use units::{Bytes, Span, Time, parameters};

use crate::codel::{self, CodelState, Params};
use crate::flow_table::{FlowTable, LIMIT, QUANTUM, QUEUES, VALID_QUANTUM, VALID_QUEUES};
use crate::{Backlog, DropReason, Drops, PACKETS, Packet, Queue};

/// Linux's default `drop_batch_size`, in packets.
const DROP_BATCH: u32 = 64;

parameters! {
    /// The limits, flow queues and control law of FQ-CoDel. The defaults are Linux's.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Target: the acceptable standing delay.
        pub target: Span = codel::TARGET, in Range::POSITIVE_SPAN;
        /// Interval: how long the delay may stay above the target.
        pub interval: Span = codel::INTERVAL, in Range::POSITIVE_SPAN;
        /// Maximum number of packets in total.
        pub packets: u32 = LIMIT, in PACKETS;
        /// Maximum number of bytes in total.
        // Of kernel memory, see `truesize`.
        pub bytes: Bytes = Bytes::new(32 << 20), in Range::SIZE;
        /// Number of queues that flows are hashed into.
        pub queues: u32 = QUEUES, in VALID_QUEUES;
        /// Bytes that a queue may send per round.
        pub quantum: Bytes = QUANTUM, in VALID_QUANTUM;
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool = true;
        /// Also mark each ECN-capable packet at once if it waited longer than this. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub ce_threshold: Option<Span> = None, in Range::SPAN;
        /// Hash salt: changes which flows share a queue.
        #[serde(skip)]
        pub salt: u64 = 0;
    }
}

impl Config {
    /// Returns the control law of each flow.
    fn params(&self) -> Params {
        let Config { target, interval, packets: _, bytes: _, queues: _, quantum: _, ecn, ce_threshold, salt: _ } =
            *self;
        Params { target, interval, ecn, ce_threshold }
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
            table: FlowTable::new(config.queues, config.quantum, config.salt),
            memory: 0,
            max_packets: config.packets.into(),
            max_memory: config.bytes.get(),
            params: config.params(),
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
