//! The data model of a scenario.

use crate::{Dumbbell, Flow, Hosts, Link, Radio, Tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Span, kinds};

/// A scenario: network, flows, duration, and what to record.
///
/// A loaded scenario is resolved and checked: the dumbbell, duplex links and the links of the radio network are expanded
/// to one-way links; cells and UEs are listed individually, with their names; each flow has a name, both ends, both
/// routes and all its TCP options. A route names links and radio hops (see [`Radio`]); radio hops are not in the list of
/// links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A one-line title.
    #[serde(default)]
    pub title: String,
    /// What the scenario shows, and how.
    #[serde(default)]
    pub description: String,
    /// Simulated time.
    pub duration: Span,
    /// Time at which summary statistics start.
    #[serde(default)]
    pub warmup: Span,
    /// Seed of the random number generators: the same seed gives the same results.
    #[serde(default = "one_seed")]
    pub seed: u64,
    /// Number of repetitions, each with different random numbers.
    #[serde(default = "one")]
    pub runs: u32,
    /// What to record.
    #[serde(default)]
    pub record: Record,
    /// A dumbbell topology.
    #[serde(default, skip_serializing)]
    pub(crate) dumbbell: Option<Dumbbell>,
    /// A radio network of LTE cells, NR cells or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radio: Option<Radio>,
    /// Links of an arbitrary small network.
    #[serde(default)]
    pub links: Vec<Link>,
    /// The hosts at the ends of flows.
    #[serde(default)]
    pub hosts: Hosts,
    /// Default TCP options of all flows.
    #[serde(default, skip_serializing)]
    pub(crate) tcp: Tcp,
    /// The flows.
    #[serde(default)]
    pub flows: Vec<Flow>,
}

/// Keys of a file that loading consumes.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "described here for the schema; read from the tree")]
pub(crate) struct FileKeys {
    /// Files (relative to this one), built-in scenarios, and presets (`"preset:NAME"`) that this file extends, merged
    /// in order.
    #[serde(default)]
    include: Vec<String>,
    /// Named values: `"${name}"` elsewhere becomes the value of `name`, or its text inside a longer string, and
    /// `"${name.key}"` the value of a key of a table.
    #[serde(default)]
    parameters: std::collections::BTreeMap<String, serde_json::Value>,
    /// Arrays of values of parameters and dotted keys (`"dumbbell.rate"`, `"flows.a.cc"`, `"flows.*.cc"`): every
    /// combination is a point.
    #[serde(default)]
    sweep: std::collections::BTreeMap<String, serde_json::Value>,
}

/// What to record in addition to the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Sampling interval of windows, rates, round-trip times and queues, or `"off"`.
    pub samples: Samples,
    /// Whether to write a table with one row for each packet event. It is large.
    pub events: bool,
    /// Whether to write a table with one row for each transport block. It is large.
    pub radio: bool,
    /// Links, or hosts at the ends of flows, whose packets are captured to pcapng files, or `["*"]` for all links. A host's
    /// capture is that of its own packets, as tcpdump's there; a name of both is the link.
    pub pcap: Vec<String>,
}

kinds! { "Samples",
    /// Sampling of time series. A bare time is the interval.
    pub enum Samples {
        /// At a fixed interval.
        Every {
            /// The interval.
            interval: Span,
        },
        /// No samples.
        Off,
    }
}

impl Default for Samples {
    fn default() -> Samples {
        Samples::Every { interval: Span::from_millis(100) }
    }
}

impl Samples {
    /// Returns the sampling interval, if there are samples.
    pub fn interval(&self) -> Option<Span> {
        match self {
            Samples::Every { interval } => Some(*interval),
            Samples::Off => None,
        }
    }
}

impl Scenario {
    /// Returns the nodes in the order in which links first name them, then the UEs not named by any link.
    pub fn nodes(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        let ends = self.links.iter().flat_map(|l| [l.from.as_str(), l.to.as_str()]);
        let ues = self.radio.iter().flat_map(|radio| radio.ues.iter().map(|ue| ue.name.as_str()));
        ends.chain(ues).filter(|n| seen.insert(*n)).collect()
    }
}

fn one_seed() -> u64 {
    1
}
fn one() -> u32 {
    1
}
