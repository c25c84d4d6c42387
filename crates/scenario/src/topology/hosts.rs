//! The hosts of a scenario.

use crate::Scenario;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the nodes of a loaded scenario at which real hosts are placed. The first is the server.
///
/// In a radio network these are the first server and the UEs; otherwise the ends of the flows: the first flow's sender,
/// all receivers, then the other senders. Without flows, they are the nodes with one outgoing link, in the order of
/// [`Scenario::nodes`].
pub fn hosts(scenario: &Scenario) -> Vec<String> {
    let flows = &scenario.flows;
    let hosts: Vec<&String> = match scenario.radio() {
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
