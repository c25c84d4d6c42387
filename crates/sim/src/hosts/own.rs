//! What a connection has to do with its own host: the queue there, and what the host remembers of destinations.

use crate::network::Network;
use crate::network::packet::End;
use crate::network::route::Hop;
use aqm::Backlog;
use cc::Controller;
use std::collections::BTreeMap;
use tcp::{Endpoint, Event, HostQueue, Metrics};
use units::Time;

/// Bytes of the headers of IP and TCP with timestamps.
const HEADERS: u32 = 52;

/// Returns the bytes of a flow's full packet.
fn packet_len(flow: &scenario::Flow) -> u32 {
    flow.tcp.mss + HEADERS
}

/// Returns the state of the host's queue in front of `first` for a connection of `flow` whose payload there is `payload`;
/// `ahead` is still to arrive there.
pub(super) fn queue(
    network: &Network,
    first: Hop,
    flow: &scenario::Flow,
    payload: u64,
    ahead: Backlog,
    now: Time,
) -> HostQueue {
    HostQueue {
        payload,
        is_full: network.is_host_full(first, packet_len(flow), flow.priority, ahead, now),
        // The modem takes what the host sends in one piece. A link serves segment by segment, as `tbf` does, which cuts
        // packets that exceed its burst when they arrive (`tbf_segment`).
        is_segmented: matches!(first, Hop::Link(_)),
    }
}

/// What hosts remember of each other, by the two hosts' names, the own one first.
#[derive(Default)]
pub(super) struct Memory<'a>(BTreeMap<(&'a str, &'a str), Metrics>);

impl<'a> Memory<'a> {
    /// An event of the endpoint at `end` of a connection of `flow`: it begins with what its host remembers, and its host
    /// remembers how it ended.
    pub(super) fn note<C: Controller>(
        &mut self,
        flow: &'a scenario::Flow,
        end: End,
        event: &Event,
        endpoint: &mut Endpoint<C>,
        now: Time,
    ) {
        if !flow.tcp.ssthresh_cache {
            return;
        }
        let hosts = match end {
            End::From => (flow.from.as_str(), flow.to.as_str()),
            End::To => (flow.to.as_str(), flow.from.as_str()),
        };
        match event {
            Event::Connected => {
                if let Some(metrics) = self.0.get(&hosts) {
                    endpoint.begin_with(metrics, now);
                }
            }
            Event::Closed => endpoint.remember(self.0.entry(hosts).or_default(), now),
            _ => {}
        }
    }
}
