//! Where packets of the hosts go, and what stands for them in the network.

use crate::lab::is_foreign;
use aqm::Ecn;
use sim::Visitor;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Headers;

/// Where a packet goes.
pub(crate) enum Forward {
    /// To the host that has its destination's address, and what leaves the emulated network to the gateway, if there is
    /// one.
    ByAddress { hosts: BTreeMap<IpAddr, usize>, gateway: Option<usize> },
    /// To the other one of two wires, if it is not longer than this.
    Across { mtu: u16 },
}

impl Forward {
    /// To which host a packet from the side of `from` goes, if to any here.
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

/// What stands in the network for a packet of so many bytes.
pub(crate) fn visitor(tag: u32, len: u32, header: &Headers) -> Visitor {
    Visitor { tag, len, key: header.key() as u32, ecn: Ecn::from_bits(header.tos), priority: header.priority() }
}
