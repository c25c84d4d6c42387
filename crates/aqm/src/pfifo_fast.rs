//! Linux's former default discipline: three FIFO bands in strict priority (`net/sched/sch_generic.c`, `pfifo_fast`).
//!
//! A fixed map of Linux derives the band from the packet's priority; band 0 is served while it holds packets, then band
//! 1, then band 2. Each band holds `tx_queue_len` packets (1000), as since Linux 4.16, when the discipline became
//! lockless; before that, all three shared one limit.
//!
//! Deviations: none that affect a packet.

use units::{Time, parameters};

use crate::drop_tail::TX_QUEUE_LEN;
use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Drops, PACKETS, Packet, Queue};

/// The band of each `skb->priority` & 15 (Linux `sch_default_prio2band`): interactive 6 and 7 first, bulk 2 and the
/// fillers 1, 3 and 5 last.
const BAND_OF_PRIORITY: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// Returns the band of a priority.
fn band(priority: u8) -> usize {
    usize::from(BAND_OF_PRIORITY[usize::from(priority & 15)])
}

parameters! {
    /// The limit of `pfifo_fast`.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Maximum number of packets in each band.
        pub packets: u32 = TX_QUEUE_LEN, in PACKETS;
    }
}

/// Three FIFO bands in strict priority.
#[derive(Clone, Debug)]
pub struct PfifoFast<P> {
    bands: [Fifo<P>; 3],
    max_packets: u64,
}

impl<P: Packet> PfifoFast<P> {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Self {
        PfifoFast { bands: [Fifo::new(), Fifo::new(), Fifo::new()], max_packets: config.packets.into() }
    }

    /// Returns whether the band of a priority is full after `ahead` has arrived there.
    pub fn is_full(&self, priority: u8, ahead: Backlog) -> bool {
        self.bands[band(priority)].backlog().packets + ahead.packets >= self.max_packets
    }
}

impl<P: Packet> Queue<P> for PfifoFast<P> {
    #[inline(never)]
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        let band = &mut self.bands[band(packet.priority())];
        if band.backlog().packets < self.max_packets {
            band.push(packet, now);
        } else {
            drops.dropped(packet, DropReason::Overflow);
        }
    }

    #[inline(never)]
    fn dequeue(&mut self, _now: Time, _drops: &mut impl Drops<P>) -> Option<P> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bands.iter().map(Fifo::backlog).fold(Backlog::default(), |sum, band| Backlog {
            packets: sum.packets + band.packets,
            bytes: sum.bytes + band.bytes,
        })
    }

    fn marks(&self) -> u64 {
        0
    }
}
