//! Where the hosts' packets go, and the descriptors that represent them in the network.

use crate::lab::is_foreign;
use aqm::Ecn;
use sim::Visitor;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Headers;

/// Where a packet goes.
pub(crate) enum Forward {
    /// To the host with its destination address; to the gateway, if there is one, when the address is outside.
    ByAddress { hosts: BTreeMap<IpAddr, usize>, gateway: Option<usize> },
    /// To the other one of two interfaces, if it is not longer than this.
    Across { mtu: u16 },
}

impl Forward {
    /// Returns the host that a packet from the host `from` goes to, if there is one.
    pub(crate) fn to(&self, header: &Headers, from: usize) -> Option<usize> {
        match self {
            Forward::ByAddress { hosts, gateway } => hosts.get(&header.destination).copied().or_else(|| {
                // What comes from there was not routed to a host; it must not go back and forth.
                gateway.filter(|&gateway| gateway != from && is_foreign(header.destination))
            }),
            Forward::Across { .. } => Some(1 - from),
        }
    }
}

/// Returns the descriptor that represents a packet of `len` bytes in the network.
pub(crate) fn visitor(tag: u32, len: u32, header: &Headers) -> Visitor {
    Visitor { tag, len, key: header.key() as u32, ecn: Ecn::from_bits(header.tos), priority: header.priority() }
}
