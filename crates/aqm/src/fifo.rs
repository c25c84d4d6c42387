//! A FIFO ring buffer that counts its bytes, used by all disciplines without flow queues.

use std::collections::VecDeque;

use units::Time;

use crate::{Backlog, Packet};

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    ring: VecDeque<P>,
    /// Sum of the lengths in `ring`.
    bytes: u64,
}

impl<P: Packet> Fifo<P> {
    pub(crate) fn new() -> Self {
        Fifo { ring: VecDeque::new(), bytes: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, mut packet: P, now: Time) {
        packet.set_enqueued(now);
        self.append(packet);
    }

    /// Like [`Fifo::push`], but the packet keeps the time at which it entered its previous queue.
    #[inline]
    pub(crate) fn append(&mut self, packet: P) {
        self.bytes += u64::from(packet.len());
        self.ring.push_back(packet);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<P> {
        let packet = self.ring.pop_front()?;
        self.bytes -= u64::from(packet.len());
        Some(packet)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&P> {
        self.ring.front()
    }

    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.ring.len() as u64, bytes: self.bytes }
    }
}
