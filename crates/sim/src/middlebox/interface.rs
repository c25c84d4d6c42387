//! The interface between a middlebox and the network.

use crate::network::packet::{End, Owner, Visitor};
use pep::Arrival;
use std::net::SocketAddr;
use units::Time;
use wire::Segment;

/// A middlebox: sees the TCP segments of the flows whose routes lead through its node.
///
/// Order of calls: [`Middlebox::handle_packet`] for each packet, [`Middlebox::handle_timeout`] at
/// [`Middlebox::poll_timeout`] until it returns `None`. Time never goes back.
pub trait Middlebox {
    /// Decides what happens to a packet.
    fn handle_packet(&mut self, packet: &Passing<'_>, now: Time) -> Verdict;

    /// Returns the next packet to send at a deadline.
    fn handle_timeout(&mut self, _now: Time) -> Option<Emission> {
        None
    }

    /// Returns when to call [`Middlebox::handle_timeout`].
    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// The decision of a middlebox about a packet.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// The packet continues.
    Forward,
    /// The packet ends here.
    Consume,
    /// The packet continues, and another packet is sent before it.
    Emit(Emission),
    /// The packet ends here, and another packet is sent.
    Answer(Emission),
}

/// A packet at a middlebox.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// The connection that it belongs to.
    pub flow: FlowKey,
    /// Whether it travels towards the receiver of the flow's data, and not back to the sender.
    pub towards_receiver: bool,
    /// Its TCP header.
    pub segment: &'a Segment,
    /// Its length and its previous hop.
    pub arrival: Arrival,
    /// When it left its host.
    pub sent: Time,
    /// Whether it is marked with congestion experienced.
    pub ce: bool,
    /// The UE at one end of its way, if there is one.
    pub towards: Option<Towards>,
    /// The cell that serves that UE, or served it last: its index in the scenario.
    pub cell: Option<u32>,
    /// Its way, for [`Emission::way`].
    pub way: Way,
}

/// A packet's direction relative to the UE whose radio it has passed or will pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Towards {
    /// The UE's index in the scenario.
    pub number: u32,
    /// Whether the packet goes to it, and does not come from it.
    pub ue: bool,
}

impl Way {
    /// Returns the index of the flow of a packet of the simulation.
    pub(crate) fn flow(&self) -> Option<u32> {
        match self.origin {
            Origin::Simulated { owner, .. } => Some(owner.flow),
            Origin::Visitor(_) => None,
        }
    }
}

/// Identifies a TCP connection at a middlebox, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowKey {
    /// A connection of the simulation: its index and its generation.
    Simulated(u32, u32),
    /// A connection of visitors: the sender's and the receiver's address and port.
    Addresses([SocketAddr; 2]),
}

/// A flow's way through a middlebox in one direction. That of a visitor is valid in the call that showed its packet only.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub(super) tap: u32,
    pub(super) origin: Origin,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    Simulated { owner: Owner, towards: End, priority: u8 },
    Visitor(u32),
}

/// A packet that a middlebox sends.
#[derive(Clone, Copy, Debug)]
pub struct Emission {
    /// The way of a packet of the same flow.
    pub way: Way,
    /// Whether it goes where that packet went, and not where it came from.
    pub onward: bool,
    /// Its TCP header.
    pub segment: Segment,
    /// Whether it is ECN-capable.
    pub ect: bool,
    /// When its data left the host that created it; `None` if the middlebox did.
    pub sent: Option<Time>,
}

/// The packets behind the visitors, for middleboxes. [`NoVisitors`] if there are none.
pub trait External {
    /// Returns the connection, the TCP header and the arrival of a visitor's packet, `None` if it is not TCP or malformed.
    /// `towards_receiver` as in [`Passing`].
    fn segment(&self, tag: u32, towards_receiver: bool) -> Option<(FlowKey, Segment, Arrival)>;

    /// Builds the packet of an emission on the way of the visitor `tag`, and returns the visitor that stands for it; `None`
    /// if that is impossible or there is no room.
    fn build(&mut self, tag: u32, onward: bool, segment: &Segment) -> Option<Visitor>;

    /// Called when a middlebox has consumed the visitor.
    fn consumed(&mut self, tag: u32);
}

/// The packets behind visitors that no middlebox looks into: they all pass.
#[derive(Clone, Copy, Debug)]
pub struct NoVisitors;

impl External for NoVisitors {
    fn segment(&self, _tag: u32, _towards_receiver: bool) -> Option<(FlowKey, Segment, Arrival)> {
        None
    }

    fn build(&mut self, _tag: u32, _onward: bool, _segment: &Segment) -> Option<Visitor> {
        None
    }

    fn consumed(&mut self, _tag: u32) {}
}
