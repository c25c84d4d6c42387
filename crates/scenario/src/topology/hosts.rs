//! The hosts of a scenario.

use crate::Scenario;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts in a block of 256 addresses.
const HOSTS_PER_BLOCK: usize = 254;

/// Returns the addresses of a host by its place in [`hosts`]; 0 is the server. Both have the same numbers in
/// them. There can be 64,770 hosts beside the server, from 10.0.1.1 to 10.0.255.254, each with an IPv6 prefix of 64 bits of
/// its own, as in a cellular network (TS 23.401, 5.3.1.2.2).
pub fn host_addresses(number: usize) -> (Ipv4Addr, Ipv6Addr) {
    let (high, low) = match number.checked_sub(1) {
        None => (0, 1),
        Some(n) => (1 + n / HOSTS_PER_BLOCK, 1 + n % HOSTS_PER_BLOCK),
    };
    let v6 = match number {
        0 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
        _ => Ipv6Addr::new(0xfd00, 0, high as u16, low as u16, 0, 0, 0, 1),
    };
    (Ipv4Addr::new(10, 0, high as u8, low as u8), v6)
}

/// Returns the nodes of a loaded scenario at which real hosts are placed. The first is the server.
///
/// In a radio network these are the first server and the UEs; otherwise the ends of the flows: the first flow's sender,
/// all receivers, then the other senders. Without flows, they are the nodes with one outgoing link, in the order of
/// [`Scenario::nodes`].
pub fn hosts(scenario: &Scenario) -> Vec<String> {
    let flows = &scenario.flows;
    let hosts: Vec<&String> = match &scenario.radio {
        Some(radio) => radio.servers.iter().take(1).chain(radio.ues.iter().map(|ue| &ue.name)).collect(),
        None => {
            let senders = || flows.iter().map(|flow| &flow.from);
            senders().take(1).chain(flows.iter().map(|flow| &flow.to)).chain(senders()).collect()
        }
    };
    if hosts.is_empty() {
        let mut out = BTreeMap::new();
        scenario.links.iter().for_each(|link| *out.entry(link.from.as_str()).or_insert(0) += 1);
        return scenario.nodes().into_iter().filter(|node| out.get(node) == Some(&1)).map(str::to_owned).collect();
    }
    let mut seen = BTreeSet::new();
    hosts.into_iter().filter(|host| seen.insert(*host)).cloned().collect()
}
