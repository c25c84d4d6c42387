//! The round-trip time of a flow's path without queues, above which delays are compared.

use record::Results;
use std::collections::{BTreeMap, BTreeSet};
use units::Span;

/// The round-trip times of all flows' paths without queues.
#[derive(Debug)]
pub(crate) struct Base {
    /// By flow: the delays of the links on its route and back. Only flows that no radio hop is on the way of.
    wired_ms: BTreeMap<String, f64>,
    /// Flows that first wait in a queue of their own host. There, only the sender itself sees how long.
    in_hosts: BTreeSet<String>,
    /// By point and flow: the smallest smoothed round-trip time that either side has seen, at any time of the run.
    smallest_ms: BTreeMap<(u32, String), f64>,
}

impl Base {
    /// Creates the table of two sides, whose scenario is the same.
    pub(crate) fn new(simulated: &Results, emulated: &[Results]) -> Base {
        let mut smallest_ms = BTreeMap::new();
        for row in std::iter::once(simulated).chain(emulated).flat_map(|results| results.tables.samples.iter()) {
            for ms in row.srtt_ms.into_iter().chain(row.rtt_ms) {
                let least = smallest_ms.entry((row.point, row.flow.to_owned())).or_insert(f64::INFINITY);
                *least = ms.min(*least);
            }
        }
        let scenario = &simulated.meta.scenario;
        Base {
            wired_ms: wired(scenario).unwrap_or_default(),
            in_hosts: in_hosts(scenario).unwrap_or_default(),
            smallest_ms,
        }
    }

    /// Returns whether a flow first waits in a queue of its own host.
    pub(crate) fn begins_in_host(&self, flow: &str) -> bool {
        self.in_hosts.contains(flow)
    }

    /// Returns a flow's, in milliseconds.
    pub(crate) fn of(&self, point: u32, flow: &str) -> Option<f64> {
        let smallest = || self.smallest_ms.get(&(point, flow.to_owned()));
        self.wired_ms.get(flow).or_else(smallest).copied()
    }
}

/// Returns the delays of the links on each flow's way, if the scenario names them all.
fn wired(scenario: &serde_json::Value) -> Option<BTreeMap<String, f64>> {
    let delay = |link: &serde_json::Value| {
        let delay: Span = link.get("delay")?.as_str()?.parse().ok()?;
        Some((link.get("name")?.as_str()?.to_owned(), delay))
    };
    let links: BTreeMap<String, Span> = scenario.get("links")?.as_array()?.iter().filter_map(delay).collect();
    let way = |flow: &serde_json::Value| {
        let routes = [flow.get("route")?.as_array()?, flow.get("return_route")?.as_array()?];
        let delays = routes.into_iter().flatten().map(|name| links.get(name.as_str()?).copied());
        Some((flow.get("name")?.as_str()?.to_owned(), delays.sum::<Option<Span>>()?.as_secs_f64() * 1e3))
    };
    Some(scenario.get("flows")?.as_array()?.iter().filter_map(way).collect())
}

/// Returns the flows whose first link has its queue in their host.
fn in_hosts(scenario: &serde_json::Value) -> Option<BTreeSet<String>> {
    let is_in_host = |link: &&serde_json::Value| link.get("queue_in_host").is_some_and(|value| value == true);
    let links = scenario.get("links")?.as_array()?.iter().filter(is_in_host);
    let links: BTreeSet<&str> = links.filter_map(|link| link.get("name")?.as_str()).collect();
    let flows = scenario.get("flows")?.as_array()?.iter();
    let begins = |flow: &&serde_json::Value| {
        flow.pointer("/route/0").is_some_and(|first| links.contains(first.as_str().unwrap_or_default()))
    };
    Some(flows.filter(begins).filter_map(|flow| Some(flow.get("name")?.as_str()?.to_owned())).collect())
}
