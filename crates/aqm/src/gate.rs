//! A queue discipline above a buffer that is drained by other code, with flow control in between, as between a Linux
//! qdisc and a driver's ring: the backlog waits where a discipline applies, and the buffer holds only what it needs.
//!
//! Two limits stop the transfer to the buffer. The *soft limit* is a [`Limit`]: a quota estimated from what is queued
//! and completed below. The *hard limit* is the buffer's own size, which its owner enforces. Packets are never moved
//! back up.

use units::check::Check;
use units::{Time, kinds};

use crate::bql::{self, Bql};
use crate::dyn_rlc::{self, DynRlc};
use crate::{AnyQueue, Backlog, Completion, Drops, Packet, Queue};

kinds! { "Limit",
    /// Limit on the data that a queue passes to the buffer below it, in addition to the buffer's size. The last packet
    /// may exceed it.
    #[derive(Copy, Default, Eq)]
    pub enum Limit {
        /// No limit.
        #[default]
        None,
        /// Byte queue limits, as in Linux's dynamic queue limits: the smallest number of bytes that does not let the
        /// buffer run empty while packets wait.
        Bql(bql::Config),
        /// DynRLC: as many packets as take the target time to pass the buffer. Patented; for comparison in simulations.
        DynRlc(dyn_rlc::Config),
    }
}

impl Limit {
    /// Checks that each parameter is in its range.
    pub fn check(&self, c: &mut Check) {
        match self {
            Limit::None => {}
            Limit::Bql(config) => config.check(c),
            Limit::DynRlc(config) => config.check(c),
        }
    }

    /// Returns when the owner of the buffer shall count a packet as completed.
    pub fn completion(&self) -> Completion {
        match self {
            Limit::None => Completion::default(),
            Limit::Bql(config) => config.completed,
            Limit::DynRlc(config) => config.completed,
        }
    }
}

/// A queue discipline and a limit. The default has no limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The queue discipline.
    pub queue: crate::Config,
    /// The limit on the data passed down.
    pub limit: Limit,
}

impl Default for Config {
    fn default() -> Self {
        Config { queue: crate::Config::UNLIMITED, limit: Limit::None }
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Gate<P> {
    queue: AnyQueue<P>,
    law: Law,
    /// What was passed down and is not yet completed.
    below: Backlog,
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one per buffer, and used for each packet")]
enum Law {
    None,
    Bql(Bql),
    DynRlc(DynRlc),
}

impl<P: Packet> Gate<P> {
    /// Creates an empty queue above an empty buffer.
    pub fn new(config: &Config) -> Gate<P> {
        let law = match config.limit {
            Limit::None => Law::None,
            Limit::Bql(config) => Law::Bql(Bql::new(config)),
            Limit::DynRlc(config) => Law::DynRlc(DynRlc::new(config)),
        };
        Gate { queue: AnyQueue::new(&config.queue), law, below: Backlog::default() }
    }

    /// Accepts `packet`, or drops it or others into `drops`.
    #[inline]
    pub fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.queue.enqueue(packet, now, drops);
    }

    /// Returns whether the queue would drop a packet of `len` bytes and this priority on arrival after `ahead` (see
    /// [`AnyQueue::is_full`]).
    pub fn is_full(&self, len: u32, priority: u8, ahead: Backlog) -> bool {
        self.queue.is_full(len, priority, ahead)
    }

    /// Returns the backlog of the queue, without the buffer.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Returns whether there is a quota, for which [`Gate::settle`] has to be called.
    #[inline]
    pub fn is_limited(&self) -> bool {
        !matches!(self.law, Law::None)
    }

    /// Returns whether the quota is used up.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        match &self.law {
            Law::None => false,
            Law::Bql(bql) => bql.is_stopped(),
            Law::DynRlc(dyn_rlc) => dyn_rlc.is_stopped(),
        }
    }

    /// Returns the quota, if it is in bytes.
    pub fn limit(&self) -> Option<u64> {
        if let Law::Bql(bql) = &self.law { Some(bql.limit()) } else { None }
    }

    /// Returns the next packet for the buffer, which must have room for it; it counts as queued there. Returns `None`
    /// if the quota is used up or the queue is empty.
    #[inline]
    pub fn release(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<P> {
        if self.is_stopped() || self.queue.backlog().packets == 0 {
            return None;
        }
        let packet = self.queue.dequeue(now, drops)?;
        if self.is_limited() {
            let mut below = self.below;
            below += Backlog { packets: 1, bytes: u64::from(packet.len()) };
            self.settle(below, now);
        }
        Some(packet)
    }

    /// Reports that the buffer now holds `below` of what was passed down: whatever has left it since the last call, sent
    /// or dropped, is completed. To be called once for everything that leaves at the same time. After a handover there may
    /// be more, because packets that had been sent wait again.
    #[inline]
    pub fn settle(&mut self, below: Backlog, now: Time) {
        let before = core::mem::replace(&mut self.below, below);
        match &mut self.law {
            Law::None => {}
            Law::Bql(bql) if below.bytes > before.bytes => bql.queued(below.bytes - before.bytes),
            Law::Bql(bql) if below.bytes < before.bytes => bql.completed(before.bytes - below.bytes, now),
            Law::Bql(_) => {}
            Law::DynRlc(dyn_rlc) if below.packets > before.packets => {
                (before.packets..below.packets).for_each(|_| dyn_rlc.queued(now));
            }
            Law::DynRlc(dyn_rlc) if below.packets < before.packets => {
                dyn_rlc.completed(before.packets - below.packets, now);
            }
            Law::DynRlc(_) => {}
        }
    }
}
