//! Flows: their endpoints, traffic and transport.

use crate::{Cc, Tcp, Traffic, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// A flow, or several identical ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow in results. Default: `flow-1`, `flow-2`, ... by position.
    #[serde(default)]
    pub name: String,
    /// The node that sends the data. Required unless the scenario has a dumbbell or a radio network. In a radio network,
    /// `PREFIX*` expands to every UE whose name has this prefix, or to every such host if no UE matches; each gets a
    /// flow `NAME-UE`.
    #[serde(default, deserialize_with = "node")]
    pub from: String,
    /// The node that receives the data; written like `from`. Only one of the two may contain a `*`.
    #[serde(default, deserialize_with = "node")]
    pub to: String,
    /// The application's traffic.
    #[serde(default)]
    pub traffic: Traffic,
    /// Congestion control at the sender.
    #[serde(default)]
    pub cc: Cc,
    /// Priority of the packets, 0 to 15, as Linux derives it from the TOS byte; 0 is best effort. It selects the band
    /// of a `pfifo-fast` queue and the dedicated bearer.
    #[serde(default)]
    pub priority: u8,
    /// Whether a proxy may split its TCP connections. Without, they stand for QUIC, whose acknowledgements are encrypted.
    #[serde(default = "proxied")]
    pub proxied: bool,
    /// Start time.
    #[serde(default)]
    pub start: Span,
    /// Time at which the application stops sending. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Number of identical flows.
    #[serde(default = "one")]
    pub count: u32,
    /// Delay between the starts of consecutive flows of `count`.
    #[serde(default)]
    pub stagger: Span,
    /// Upper bound of a random delay added to each flow's start.
    #[serde(default)]
    pub start_jitter: Span,
    /// Further flows like this one, each later than the one before. Always absent after loading. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// The links that data takes, in order. Default: the route with the fewest links, then with the least delay.
    #[serde(default)]
    pub route: Vec<String>,
    /// The links that acknowledgements take. Default: the route's reverse links if all exist, otherwise the route with
    /// the fewest links, then with the least delay.
    #[serde(default)]
    pub return_route: Vec<String>,
    /// Pauses of the receiving application, which close the receive window. Default: it reads data as it arrives. Only for
    /// TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<Reader>,
    /// TCP options of this flow; options not set here are taken from the table `[tcp]`.
    #[serde(default)]
    pub tcp: Tcp,
}

/// Reads the name of a node, which may be left out but not be empty.
fn node<'de, D: serde::Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    let name = String::deserialize(d)?;
    if name.is_empty() {
        return Err(serde::de::Error::custom("a node has no empty name; name one, or leave the key out"));
    }
    Ok(name)
}

/// Flows like one another, named `NAME-1`, `NAME-2`, ..., which start and stop one after another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Number of flows in all.
    pub count: u32,
    /// Time from the start of one to the start of the next.
    pub every: Span,
}

/// A receiving application that alternates between reading everything and reading nothing, beginning with the former at
/// the start of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    /// Duration of a period of reading.
    pub reads: Span,
    /// Duration of a pause.
    pub pauses: Span,
}

impl Flow {
    /// Returns the flow's transport protocol, which follows from the traffic.
    pub fn transport(&self) -> Transport {
        self.traffic.transport()
    }
}

fn one() -> u32 {
    1
}
fn proxied() -> bool {
    true
}
