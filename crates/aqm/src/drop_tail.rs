//! Drop-tail: a FIFO with a limit, like Linux's `pfifo`, `bfifo` and `pfifo_head_drop`.
//!
//! A packet is accepted if neither limit is exceeded with it. Otherwise the arriving packet is dropped or, with
//! [`Victim::Oldest`], packets at the head until the new one fits (or the new one if it can never fit).
//!
//! Deviations: none. Linux has the two limits in two disciplines; here either, both or neither may be set.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::check::Range;
use units::{Bytes, Time, parameters};

use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Drops, PACKETS, Packet, Queue};

/// Linux's `DEFAULT_TX_QUEUE_LEN`, in packets.
pub(crate) const TX_QUEUE_LEN: u32 = 1000;

parameters! {
    /// The limits of a drop-tail queue, and which packet is dropped when it is full. The default has no limit.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Maximum number of packets.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub packets: Option<u32> = None, in PACKETS;
        /// Maximum number of bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub bytes: Option<Bytes> = None, in Range::SIZE;
        /// Which packet is dropped when the queue is full.
        #[serde(rename = "drop")]
        pub victim: Victim = Victim::default();
    }
}

/// Which packet is dropped when a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Drop")]
pub enum Victim {
    /// The arriving packet.
    #[default]
    #[serde(rename = "tail")]
    Arriving,
    /// The oldest packets, until the arriving one fits.
    #[serde(rename = "head")]
    Oldest,
}

/// Reads the limits in a file, where a queue without any has the usual one.
pub(crate) fn limited<'de, D: Deserializer<'de>>(d: D) -> Result<Config, D::Error> {
    Ok(match Config::deserialize(d)? {
        Config { packets: None, bytes: None, victim } => Config { victim, ..Config::USUAL },
        limited => limited,
    })
}

impl Config {
    /// No limit.
    pub const UNLIMITED: Config = Config { packets: None, bytes: None, victim: Victim::Arriving };
    /// The queue of an interface as Linux configures it.
    pub const USUAL: Config = Config { packets: Some(TX_QUEUE_LEN), bytes: None, victim: Victim::Arriving };

    /// Returns whether a packet of `len` bytes fits in addition to `held`.
    #[inline]
    pub fn has_room(&self, held: Backlog, len: u64) -> bool {
        self.packets.is_none_or(|most| held.packets < most.into())
            && self.bytes.is_none_or(|most| held.bytes.saturating_add(len) <= most.get())
    }
}

/// A FIFO with a limit.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    fifo: Fifo<P>,
    config: Config,
}

impl<P: Packet> DropTail<P> {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Self {
        DropTail { fifo: Fifo::new(), config }
    }

    /// Returns the packet that is served next.
    #[inline]
    pub fn head(&self) -> Option<&P> {
        self.fifo.front()
    }

    /// Accepts `packet` regardless of the limit. It keeps the time at which it entered the queue above.
    #[inline]
    pub fn take_over(&mut self, packet: P) {
        self.fifo.append(packet);
    }

    /// Returns whether a packet of `len` bytes would be dropped on arrival after `ahead`.
    pub fn is_full(&self, len: u32, ahead: Backlog) -> bool {
        let len = u64::from(len);
        let makes_room = self.config.victim == Victim::Oldest && self.config.has_room(Backlog::default(), len);
        let mut held = self.fifo.backlog();
        held += ahead;
        !(self.config.has_room(held, len) || makes_room)
    }

    #[inline]
    fn fits(&self, len: u64) -> bool {
        self.config.has_room(self.fifo.backlog(), len)
    }
}

impl<P: Packet> Queue<P> for DropTail<P> {
    #[inline]
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        let len = u64::from(packet.len());
        if self.config.victim == Victim::Oldest && self.config.has_room(Backlog::default(), len) {
            while !self.fits(len) {
                let oldest = self.fifo.pop().expect("an empty queue has room for a packet within its limits");
                drops.dropped(oldest, DropReason::Overflow);
            }
        }
        if self.fits(len) {
            self.fifo.push(packet, now);
        } else {
            drops.dropped(packet, DropReason::Overflow);
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _drops: &mut impl Drops<P>) -> Option<P> {
        self.fifo.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        0
    }
}
