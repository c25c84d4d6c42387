//! A queue discipline above a buffer that somebody else empties, with flow control between them, as between a Linux qdisc
//! and a driver's ring: the backlog waits where it can be scheduled, and the buffer holds what it needs.
//!
//! Two things stop the way down. The *soft stop* is a [`Limit`]'s: a quota that it learns from what is queued and completed
//! below. The *hard stop* is the buffer's own, when it is full, and its owner's to tell. What is below is never taken back.

use units::Time;

use crate::bql::{self, Bql};
use crate::dyn_rlc::{self, DynRlc};
use crate::{AnyQueue, Backlog, Drops, Packet, Queue};

/// What limits what is handed down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Nothing but the buffer's own room.
    #[default]
    None,
    /// Byte queue limits.
    Bql(bql::Config),
    /// DynRLC.
    DynRlc(dyn_rlc::Config),
}

/// A discipline and a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How packets wait.
    pub queue: crate::Config,
    /// How many are handed down.
    pub limit: Limit,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Gate<P> {
    queue: AnyQueue<P>,
    law: Law,
    /// Bytes that were handed down and are not completed.
    below: u64,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one for each buffer, and it is used for each packet")]
enum Law {
    None,
    Bql(Bql),
    DynRlc(DynRlc),
}

impl<P: Packet> Gate<P> {
    /// An empty queue above an empty buffer.
    pub fn new(config: &Config) -> Gate<P> {
        let law = match config.limit {
            Limit::None => Law::None,
            Limit::Bql(config) => Law::Bql(Bql::new(config)),
            Limit::DynRlc(config) => Law::DynRlc(DynRlc::new(config)),
        };
        Gate { queue: AnyQueue::new(&config.queue), law, below: 0 }
    }

    /// Takes `packet` in, or loses it or others into `drops`.
    #[inline]
    pub fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.queue.enqueue(packet, now, drops);
    }

    /// What waits above.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Whether there is a quota for what is below, and has to be told ([`Gate::settle`]).
    #[inline]
    pub fn is_limited(&self) -> bool {
        !matches!(self.law, Law::None)
    }

    /// Whether the quota is used up.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        match &self.law {
            Law::None => false,
            Law::Bql(bql) => bql.is_stopped(),
            Law::DynRlc(dyn_rlc) => dyn_rlc.is_stopped(),
        }
    }

    /// The quota in bytes, if it is one of bytes.
    pub fn limit(&self) -> Option<u64> {
        if let Law::Bql(bql) = &self.law { Some(bql.limit()) } else { None }
    }

    /// The next packet for the buffer, which has room for it; it counts as queued there. `None` if the quota is used up or
    /// nothing is left.
    #[inline]
    pub fn release(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<P> {
        if self.is_stopped() || self.queue.backlog().packets == 0 {
            return None;
        }
        let packet = self.queue.dequeue(now, drops)?;
        if self.is_limited() {
            self.queued(u64::from(packet.len()), now);
        }
        Some(packet)
    }

    /// `below` bytes of what was handed down are in the buffer now: what has left it since the last call is completed,
    /// whether it was sent or dropped. Once for what leaves at one time.
    #[inline]
    pub fn settle(&mut self, below: u64, now: Time) {
        if !self.is_limited() || below == self.below {
            return;
        }
        if below > self.below {
            // A new cell: what had been sent waits again.
            self.queued(below - self.below, now);
            return;
        }
        let bytes = self.below - below;
        self.below = below;
        match &mut self.law {
            Law::None => {}
            Law::Bql(bql) => bql.completed(bytes, now),
            Law::DynRlc(dyn_rlc) => dyn_rlc.completed(bytes, now),
        }
    }

    #[inline]
    fn queued(&mut self, bytes: u64, now: Time) {
        self.below += bytes;
        match &mut self.law {
            Law::None => {}
            Law::Bql(bql) => bql.queued(bytes),
            Law::DynRlc(dyn_rlc) => dyn_rlc.queued(bytes, now),
        }
    }
}
