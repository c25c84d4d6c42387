//! Where the hosts' packets go, and the descriptors that represent them in the network.

use crate::lab::is_foreign;
use aqm::Ecn;
use sim::Visitor;
use std::collections::BTreeMap;
use std::net::IpAddr;
use wire::Headers;

/// The ports of a router: the one that the server's packets come to, and that of the other hosts' packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Router {
    pub(crate) wan: usize,
    /// The same if the router has one interface.
    pub(crate) ran: usize,
}

impl Router {
    /// Whether a port is the router's.
    pub(crate) fn has(self, port: usize) -> bool {
        port == self.wan || port == self.ran
    }
}

/// Where a packet goes.
pub(crate) enum Forward {
    /// To the host with its destination address, or to the gateway, if there is one, when the address is outside. If
    /// there is a router, packets from other hosts go to it first, and it sends them on.
    ByAddress { hosts: BTreeMap<IpAddr, usize>, gateway: Option<usize>, router: Option<Router> },
    /// To the other one of two interfaces, if it is not longer than this.
    Across { mtu: u16 },
}

impl Forward {
    /// Returns the host that a packet from the host `from` goes to, if there is one.
    pub(crate) fn to(&self, header: &Headers, from: usize) -> Option<usize> {
        match self {
            Forward::ByAddress { hosts, gateway, router } => {
                let host = hosts.get(&header.destination).copied();
                // What comes from the gateway was not routed to a host; it must not go back and forth.
                let outside = || gateway.filter(|&gateway| gateway != from && is_foreign(header.destination));
                let to = host.or_else(outside)?;
                let router = router.filter(|router| !router.has(from));
                Some(router.map_or(to, |router| if from == 0 { router.wan } else { router.ran }))
            }
            Forward::Across { .. } => Some(1 - from),
        }
    }

    /// Whether a port is a router's.
    pub(crate) fn is_router(&self, port: usize) -> bool {
        matches!(self, Forward::ByAddress { router: Some(router), .. } if router.has(port))
    }
}

/// Returns the descriptor that represents a packet of `len` bytes in the network.
pub(crate) fn visitor(tag: u32, len: u32, header: &Headers) -> Visitor {
    Visitor { tag, len, key: header.key() as u32, ecn: Ecn::from_bits(header.tos), priority: header.priority() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use wire::{Flags, Options, Segment, segment_headers};

    #[test]
    fn packets_of_hosts_go_through_the_router_once() {
        let address = |last: u8| IpAddr::from([10, 0, 0, last]);
        let (server, ue, outside) = (address(1), address(2), IpAddr::from([198, 51, 100, 1]));
        let hosts = [(server, 0), (ue, 1), (address(3), 2)];
        let header = |from: IpAddr, to: IpAddr| {
            let tcp = Segment {
                seq: 0,
                ack: 0,
                window: 0,
                len: 0,
                flags: Flags::SYN,
                timestamps: None,
                options: Options::default(),
            };
            let packet = segment_headers(&tcp, SocketAddr::new(from, 1), SocketAddr::new(to, 2), 0, &[]).unwrap();
            Headers::parse(&packet).unwrap()
        };
        let one = |port: usize| Router { wan: port, ran: port };
        let forward = |router: Option<usize>| Forward::ByAddress {
            hosts: hosts.into(),
            gateway: Some(0),
            router: router.map(one),
        };
        let to = |router, at, from, to| forward(router).to(&header(from, to), at);
        for (from, source, destination) in [(0, server, ue), (1, ue, server), (1, ue, outside), (0, outside, ue)] {
            let end = to(None, from, source, destination);
            assert_eq!(end, Some(1 - from));
            assert_eq!(to(Some(2), from, source, destination), Some(2), "to the router");
            assert_eq!(to(Some(2), 2, source, destination), end, "and from there to the end");
        }
        assert_eq!(to(Some(2), 1, ue, address(3)), Some(2), "the router is a host too");
        let sides = Forward::ByAddress { hosts: hosts.into(), gateway: None, router: Some(Router { wan: 2, ran: 3 }) };
        let through = |from, source, destination| sides.to(&header(source, destination), from);
        assert_eq!(
            (through(0, server, ue), through(3, server, ue)),
            (Some(2), Some(1)),
            "in on one side, out on the other"
        );
        assert_eq!((through(1, ue, server), through(2, ue, server)), (Some(3), Some(0)));
        for router in [None, Some(2)] {
            assert_eq!(
                to(router, 0, outside, IpAddr::from([203, 0, 113, 1])),
                None,
                "nothing comes back to the gateway"
            );
            assert_eq!(to(router, 1, ue, address(77)), None, "nobody has this address");
        }
    }
}
