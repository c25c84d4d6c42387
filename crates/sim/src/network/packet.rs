//! What travels in the simulator: a descriptor without payload.
//!
//! Queues and links carry a [`Packet`], which is small because it is copied at each step. What only the hosts and the
//! routes need to know of it stays in one place for its whole way, a [`Parcel`] in the [`Store`].

use aqm::Ecn;
use tcp::Transmit;
use units::{Span, Time};

/// Bytes of an IPv4 header without options.
const IP_HEADER: u32 = 20;
/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;

/// One end of a flow: where it starts (`from` in the scenario) or where it goes (`to`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum End {
    #[default]
    From = 0,
    To = 1,
}

impl End {
    pub(crate) fn other(self) -> End {
        match self {
            End::From => End::To,
            End::To => End::From,
        }
    }
}

/// What an IP packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Tcp(Transmit),
    Udp { sequence: u64, payload: u32 },
    Visitor(Visitor),
}

impl Body {
    /// Bytes of the IP packet.
    #[inline]
    fn packet_len(&self) -> u32 {
        IP_HEADER
            + match self {
                Body::Tcp(t) => t.segment.header_len() + u32::from(t.segment.len),
                Body::Udp { payload, .. } => UDP_HEADER + payload,
                Body::Visitor(visitor) => return visitor.len,
            }
    }

    /// Whether it is data, and not only an acknowledgement.
    #[inline]
    pub(crate) fn carries_data(&self) -> bool {
        match self {
            Body::Tcp(t) => t.segment.len > 0,
            Body::Udp { .. } | Body::Visitor(_) => true,
        }
    }

    /// Returns the place for a TCP segment, replacing the previous contents.
    #[inline]
    pub(crate) fn tcp(&mut self) -> &mut Transmit {
        if !matches!(self, Body::Tcp(_)) {
            *self = Body::default();
        }
        match self {
            Body::Tcp(transmit) => transmit,
            Body::Udp { .. } | Body::Visitor(_) => unreachable!("it is a segment's place now"),
        }
    }

    /// The ECN field as the sender set it.
    #[inline]
    fn ecn(&self) -> Ecn {
        match self {
            Body::Tcp(t) if t.ect => Ecn::Ect0,
            Body::Visitor(visitor) => visitor.ecn,
            _ => Ecn::NotEct,
        }
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::Tcp(Transmit::default())
    }
}

/// A packet from outside: the network carries its descriptor only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// The number by which its owner knows it.
    pub tag: u32,
    /// Bytes of the IP packet.
    pub len: u32,
    /// What stands for its 5-tuple.
    pub key: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its priority, 0 to 15 ([`scenario::Flow::priority`]).
    pub priority: u8,
}

/// A visitor has come to the end of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// [`Visitor::tag`].
    pub tag: u32,
    /// When to deliver it to the host.
    pub at: Time,
    /// When it was sent.
    pub delay: Span,
    /// Whether it was marked with congestion experienced on its way.
    pub ce: bool,
}

/// The owner of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Index of the flow.
    pub(crate) flow: u32,
    /// Index of the connection; zero for UDP.
    pub(crate) connection: u32,
    /// Distinguishes a connection's packets from those of the previous one with its index.
    pub(crate) generation: u32,
}

/// The parts of a packet that only hosts and routes need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) body: Body,
    /// When the sending host sent it.
    pub(crate) sent: Time,
    pub(crate) owner: Owner,
    /// Index into the network's routes.
    pub(crate) route: u32,
    /// The end that it goes to.
    pub(crate) towards: End,
    /// The flow's, 0 to 15.
    pub(crate) priority: u8,
    /// The UE whose radio hop it has left towards the core, and when.
    pub(crate) aired: Option<(u32, Time)>,
    /// Whether it waits in the queue of its own host, which the sender counts.
    pub(crate) held: bool,
}

/// The descriptor that queues and links carry.
///
/// It consists of whole words because it is copied soon after it is created: a wide load would wait for narrow stores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// In a queue: when it entered, in nanoseconds. On a wire: for how long it waited before.
    clock: u64,
    /// Its parcel's place in the store in the low half; in the high half, what stands for the 5-tuple.
    ids: u64,
    /// Bytes of the IP packet, 32 bits; links that it has passed, 16; the ECN field, 8; the priority, 8.
    shape: u64,
}

const HOP_SHIFT: u32 = 32;
const ECN_SHIFT: u32 = 48;
const PRIORITY_SHIFT: u32 = 56;

impl Packet {
    #[inline]
    fn new(slot: u32, key: u32, len: u32, ecn: Ecn, priority: u8) -> Packet {
        let ids = u64::from(key) << 32 | u64::from(slot);
        let marks = u64::from(priority) << PRIORITY_SHIFT | (ecn as u64) << ECN_SHIFT;
        Packet { clock: 0, ids, shape: marks | u64::from(len) }
    }

    /// Its parcel's place in the store.
    #[inline]
    fn slot(&self) -> u32 {
        self.ids as u32
    }

    /// Links that it has passed.
    #[inline]
    pub(crate) fn hop(&self) -> u16 {
        (self.shape >> HOP_SHIFT) as u16
    }

    /// Returns the packet after one more hop.
    #[inline]
    pub(crate) fn passed(self) -> Packet {
        Packet { shape: self.shape + (1 << HOP_SHIFT), ..self }
    }

    /// Returns the packet after `links` hops.
    pub(crate) fn at_hop(self, hop: u16) -> Packet {
        Packet { shape: self.shape + (u64::from(hop) << HOP_SHIFT), ..self }
    }

    /// Returns the time that it waited in the queue of the link that it has just left.
    #[inline]
    pub(crate) fn waited(&self) -> Span {
        Span::from_nanos(self.clock)
    }
}

impl aqm::Packet for Packet {
    #[inline]
    fn len(&self) -> u32 {
        self.shape as u32
    }

    #[inline]
    fn flow(&self) -> u64 {
        self.ids >> 32
    }

    #[inline]
    fn priority(&self) -> u8 {
        (self.shape >> PRIORITY_SHIFT) as u8
    }

    #[inline]
    fn tag(&self) -> u64 {
        self.slot().into()
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.shape >> ECN_SHIFT) as u8)
    }

    fn mark_ce(&mut self) {
        self.shape |= (Ecn::Ce as u64) << ECN_SHIFT;
    }

    #[inline]
    fn enqueued(&self) -> Time {
        Time::from_nanos(self.clock)
    }

    #[inline]
    fn set_enqueued(&mut self, now: Time) {
        self.clock = now.as_nanos();
    }

    #[inline]
    fn set_waited(&mut self, waited: Span) {
        self.clock = waited.as_nanos();
    }
}

/// The parcels of all packets in transit.
#[derive(Debug, Default)]
pub(crate) struct Store {
    parcels: Vec<Parcel>,
    free: Vec<u32>,
}

impl Store {
    /// Where the next parcel is written; [`Store::post`] sends it off. Written in place, since a copy right after would
    /// wait for each part of it.
    #[inline]
    pub(crate) fn draft(&mut self) -> &mut Parcel {
        if self.free.is_empty() {
            self.free.push(self.parcels.len() as u32);
            self.parcels.push(Parcel::default());
        }
        let slot = self.free[self.free.len() - 1];
        &mut self.parcels[slot as usize]
    }

    /// Returns the packet of the drafted parcel, which is kept until the packet ends.
    #[inline(always)]
    pub(crate) fn post(&mut self) -> Packet {
        let slot = self.free.pop().expect("a parcel was drafted");
        let parcel = &self.parcels[slot as usize];
        let of = match parcel.body {
            Body::Tcp(_) => parcel.owner.connection << 2,
            Body::Udp { .. } => parcel.owner.flow << 2 | 2,
            Body::Visitor(visitor) => visitor.key << 2,
        };
        let (key, len, ecn) = (of | parcel.towards as u32, parcel.body.packet_len(), parcel.body.ecn());
        Packet::new(slot, key, len, ecn, parcel.priority)
    }

    /// Returns the parcel of a packet in transit.
    #[inline]
    pub(crate) fn get(&mut self, packet: &Packet) -> &mut Parcel {
        &mut self.parcels[packet.slot() as usize]
    }

    /// Returns the parcel of a packet in transit, by the packet's tag.
    pub(crate) fn tagged(&mut self, tag: u64) -> &mut Parcel {
        &mut self.parcels[tag as usize]
    }

    /// Frees the parcel of a packet that has arrived or was lost.
    #[inline]
    pub(crate) fn free(&mut self, packet: &Packet) {
        self.free.push(packet.slot());
    }
}
