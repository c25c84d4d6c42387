//! What travels in the simulator: a descriptor without payload, carried by value.

use aqm::Ecn;
use tcp::segment::Segment;
use units::{Span, Time};

/// Bytes of an IPv4 header without options.
pub(crate) const IP_HEADER: u32 = 20;
/// Bytes of a UDP header.
pub(crate) const UDP_HEADER: u32 = 8;

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

/// An IP packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) body: Body,
    /// When the sending host gave it to its first link.
    pub(crate) sent: Time,
    /// In a queue: when it entered, in nanoseconds. On a wire: for how long it waited before.
    clock: u64,
    pub(crate) owner: Owner,
    /// Index into the network's routes.
    pub(crate) route: u32,
    /// Bytes of the IP packet.
    len: u32,
    /// Links that it has passed.
    pub(crate) hop: u16,
    /// The end that it goes to.
    pub(crate) towards: End,
    ecn: Ecn,
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

impl Packet {
    /// A packet of `owner` for the end `towards`, sent now.
    #[inline]
    pub(crate) fn new(body: Body, owner: Owner, route: u32, towards: End, ecn: Ecn, now: Time) -> Packet {
        let len = IP_HEADER
            + match &body {
                Body::Tcp(segment) => segment.header_len() + u32::from(segment.len),
                Body::Udp { payload, .. } => UDP_HEADER + payload,
            };
        Packet { body, sent: now, clock: 0, owner, route, len, hop: 0, towards, ecn }
    }

    /// How long it waited in the queue of the link that it has just left.
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
        // The flow's, the connection's and the direction's number stand for the 5-tuple.
        u64::from(self.owner.flow) << 33 | u64::from(self.owner.connection) << 1 | self.towards as u64
    }

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
