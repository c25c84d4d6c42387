//! What travels in the simulator: a descriptor without payload.
//!
//! Queues and links carry a [`Packet`], which is small because it is copied at each step. What only the hosts and the
//! routes need to know of it stays in one place for its whole way, a [`Parcel`] in the [`Store`].

use aqm::Ecn;
use tcp::segment::Segment;
use units::{Span, Time};

/// Bytes of an IPv4 header without options.
const IP_HEADER: u32 = 20;
/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;

/// One end of a flow: where it starts (`from` in the scenario) or where it goes (`to`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum End {
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
    Tcp(Segment),
    Udp { sequence: u64, payload: u32 },
}

impl Body {
    /// Bytes of the IP packet.
    #[inline]
    fn packet_len(&self) -> u32 {
        IP_HEADER
            + match self {
                Body::Tcp(segment) => segment.header_len() + u32::from(segment.len),
                Body::Udp { payload, .. } => UDP_HEADER + payload,
            }
    }

    /// Whether it is data, and not only an acknowledgement.
    #[inline]
    pub(crate) fn carries_data(&self) -> bool {
        match self {
            Body::Tcp(segment) => segment.len > 0,
            Body::Udp { .. } => true,
        }
    }
}

/// Whose packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Index of the flow.
    pub(crate) flow: u32,
    /// Index of the connection; zero for UDP.
    pub(crate) connection: u32,
    /// Tells a connection's packets from those of the one that had its index before.
    pub(crate) generation: u32,
}

/// What the hosts and the routes know of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) body: Body,
    /// When the sending host gave it to its first link.
    pub(crate) sent: Time,
    pub(crate) owner: Owner,
    /// Index into the network's routes.
    pub(crate) route: u32,
    /// The end that it goes to.
    pub(crate) towards: End,
    /// The ECN field as the sender set it.
    pub(crate) ecn: Ecn,
}

/// What queues and links carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// In a queue: when it entered, in nanoseconds. On a wire: for how long it waited before.
    clock: u64,
    /// Its parcel's place in the store.
    pub(crate) slot: u32,
    /// Stands for the 5-tuple.
    key: u32,
    /// Bytes of the IP packet.
    len: u32,
    /// Links that it has passed.
    pub(crate) hop: u16,
    ecn: Ecn,
}

impl Packet {
    /// How long it waited in the queue of the link that it has just left.
    #[inline]
    pub(crate) fn waited(&self) -> Span {
        Span::from_nanos(self.clock)
    }
}

impl aqm::Packet for Packet {
    #[inline]
    fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn flow(&self) -> u64 {
        self.key.into()
    }

    #[inline]
    fn priority(&self) -> u8 {
        0
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
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

/// The parcels of all packets on their way.
#[derive(Debug, Default)]
pub(crate) struct Store {
    parcels: Vec<Parcel>,
    free: Vec<u32>,
}

impl Store {
    /// Keeps a parcel for as long as its packet travels.
    #[inline]
    pub(crate) fn put(&mut self, parcel: &Parcel) -> Packet {
        let of = match parcel.body {
            Body::Tcp(_) => parcel.owner.connection << 2,
            Body::Udp { .. } => parcel.owner.flow << 2 | 2,
        };
        let (key, len, ecn) = (of | parcel.towards as u32, parcel.body.packet_len(), parcel.ecn);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.parcels[slot as usize] = *parcel;
                slot
            }
            None => {
                self.parcels.push(*parcel);
                (self.parcels.len() - 1) as u32
            }
        };
        Packet { clock: 0, slot, key, len, hop: 0, ecn }
    }

    /// The parcel of a packet that still travels.
    #[inline]
    pub(crate) fn get(&mut self, packet: &Packet) -> &mut Parcel {
        &mut self.parcels[packet.slot as usize]
    }

    /// Forgets the parcel of a packet that has arrived or was lost.
    #[inline]
    pub(crate) fn free(&mut self, packet: &Packet) {
        self.free.push(packet.slot);
    }
}
