//! Drop-tail: a FIFO with a limit, like Linux's `pfifo`, `bfifo` and `pfifo_head_drop`.
//!
//! A packet is accepted if neither limit is exceeded with it. Otherwise the arriving packet is dropped or, with
//! [`Victim::Oldest`], packets at the head until the new one fits (or the new one if it can never fit).
//!
//! Deviations: none. Linux has the two limits in two disciplines; here either, both or neither may be set.

use units::Time;

use crate::fifo::Fifo;
use crate::{Backlog, DropReason, Drops, Packet, Queue};

/// The limits of a drop-tail queue, and which packet is dropped when it is full. The default has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of packets; `None` is no limit.
    pub packets: Option<u64>,
    /// Maximum number of bytes; `None` is no limit.
    pub bytes: Option<u64>,
    /// Which packet is dropped when the queue is full.
    pub victim: Victim,
}

/// Which packet is dropped when a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victim {
    /// The arriving packet (drop-tail).
    #[default]
    Arriving,
    /// The packets at the head (head-drop).
    Oldest,
}

impl Config {
    /// Returns whether a packet of `len` bytes fits in addition to `held`.
    #[inline]
    pub fn has_room(&self, held: Backlog, len: u64) -> bool {
        self.packets.is_none_or(|most| held.packets < most)
            && self.bytes.is_none_or(|most| held.bytes.saturating_add(len) <= most)
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
