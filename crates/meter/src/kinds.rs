//! Directions of flows and kinds of probes.

use units::{Span, Time};

/// The direction of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the server.
    Down,
    /// To the server.
    Up,
}

impl Way {
    /// The name of its flows.
    pub fn name(self) -> &'static str {
        match self {
            Way::Down => "download",
            Way::Up => "upload",
        }
    }
}

/// A kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// ICMP echo to the server.
    Echo,
    /// A datagram with this hop limit, to a router on the path.
    Hop(u8),
    /// A TCP handshake with the server.
    Handshake,
    /// A request and its answer on a connection without load.
    Request,
}

impl Probe {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Echo => "echo",
            Probe::Hop(_) => "hop",
            Probe::Handshake => "handshake",
            Probe::Request => "request",
        }
    }
}

/// A probe and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// When it was sent.
    pub at: Time,
    /// Its kind.
    pub probe: Probe,
    /// When the answer came, after that; `None` if none came.
    pub rtt: Option<Span>,
}
