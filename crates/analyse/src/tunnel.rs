//! The tunnels of flows.

use import::tunnel::Tunnels;
use observe::Flow;

/// Notes in which tunnels flows were.
pub(crate) fn name(tunnels: &Tunnels, flows: &mut [Flow]) {
    for flow in flows {
        let teid = flow.key.and_then(|key| tunnels.teid(key.sender, key.receiver, key.protocol));
        flow.teid = teid.or(flow.teid);
    }
}
