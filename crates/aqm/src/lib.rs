//! Queue disciplines. A queue orders and drops packets; a link or a bearer serves them.
//!
//! [`Queue::enqueue`] adds a packet, [`Queue::dequeue`] returns one at a service opportunity. Every dropped packet goes
//! to the [`Drops`] of the call that dropped it, with a reason, so that packets in = packets out + dropped + backlog
//! after every call. A packet's sojourn time ends at the time of its service opportunity; time never goes back.
//!
//! Disciplines are generic over the packet type: a descriptor in the simulator, a packet buffer in the emulator.

#![allow(clippy::doc_markdown, reason = "CoDel is a name, not code")]

mod any;
pub mod bql;
pub mod codel;
pub mod drop_tail;
pub mod dyn_rlc;
mod fifo;
mod flow_table;
pub mod fq;
pub mod fq_codel;
pub mod gate;
pub mod pfifo_fast;

pub use any::{AnyQueue, Config};
pub use bql::Bql;
pub use codel::Codel;
pub use drop_tail::DropTail;
pub use dyn_rlc::DynRlc;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub use gate::{Gate, Limit};
pub use pfifo_fast::PfifoFast;

use core::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Span, Time};

/// Limits in packets.
pub(crate) const PACKETS: RangeInclusive<u32> = 1..=1_000_000_000;

/// The properties of a packet that queues use.
#[allow(clippy::len_without_is_empty, reason = "a packet is never empty")]
pub trait Packet {
    /// Length on the wire in bytes, as the queue's owner counts it; never zero.
    fn len(&self) -> u32;
    /// A flow identifier: equal for packets of one flow and, as far as possible, distinct for others (a 5-tuple or a
    /// hash of one).
    fn flow(&self) -> u64;
    /// The priority from the TOS byte, like Linux's `skb->priority`: 0 is best effort. See `pfifo_fast`.
    fn priority(&self) -> u8;
    /// A number by which the packet's owner knows it; 0 if it does not need to.
    fn tag(&self) -> u64 {
        0
    }
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to CE. Called only if [`Packet::ecn`] is capable.
    fn mark_ce(&mut self);
    /// When the packet entered its current queue.
    fn enqueued(&self) -> Time;
    /// Sets the time at which the packet enters a queue. Called by every discipline.
    fn set_enqueued(&mut self, now: Time);
    /// Sets, for statistics, how long the packet waited in the queue before its service. Called by links.
    fn set_waited(&mut self, _waited: Span) {}
}

/// The ECN field of the IP header (RFC 3168), by its code points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECT(1).
    Ect1 = 1,
    /// ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Returns the ECN field with these two bits, the lowest bits of the IP header's traffic class.
    #[inline]
    pub fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Returns whether a queue may mark the packet instead of dropping it.
    pub fn capable(self) -> bool {
        self != Ecn::NotEct
    }
}

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// A limit of packets or bytes was reached.
    Overflow,
    /// The discipline's control law dropped it.
    Control,
    /// A link's random loss.
    Loss,
}

/// The receiver of dropped packets. A closure `FnMut(P, DropReason)` implements it.
pub trait Drops<P> {
    /// Called when `packet` was dropped.
    fn dropped(&mut self, packet: P, reason: DropReason);
}

impl<P, F: FnMut(P, DropReason)> Drops<P> for F {
    fn dropped(&mut self, packet: P, reason: DropReason) {
        self(packet, reason);
    }
}

/// When a packet counts as having left RLC's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Completed")]
pub enum Completion {
    /// When its last byte is sent for the first time.
    #[default]
    Sent,
    /// When all of it is acknowledged, in AM; UM and TM have no acknowledgements, so there it is the same as `sent`.
    Acknowledged,
}

/// The contents of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl core::ops::AddAssign for Backlog {
    #[inline]
    fn add_assign(&mut self, more: Backlog) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

/// A queue discipline. See the crate's documentation.
pub trait Queue<P: Packet> {
    /// Adds `packet`, or drops it or others into `drops`.
    fn enqueue(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>);
    /// Returns the packet to serve at the service opportunity `now`; packets that the discipline drops in the process
    /// go to `drops`. Returns `None` only if the queue is empty afterwards.
    fn dequeue(&mut self, now: Time, drops: &mut impl Drops<P>) -> Option<P>;
    /// Returns the current contents.
    fn backlog(&self) -> Backlog;
    /// Returns the number of packets CE-marked instead of dropped so far.
    fn marks(&self) -> u64;
}

/// Returns how long `packet` has been in its queue.
pub fn sojourn<P: Packet>(packet: &P, now: Time) -> Span {
    now.saturating_since(packet.enqueued())
}
