//! A scenario, as plain data.

use crate::kinds::kinds;
use crate::{Dumbbell, Flow, Link, Lte, Tcp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// What network, which flows, how long, what to record.
///
/// A loaded scenario is resolved and checked: the dumbbell and duplex links have become one-way links, and so have those of
/// the LTE network; cells and UEs stand one by one, with their names; each flow has a name, its ends, both its routes and all
/// its TCP options. A route names links, and radio hops (see [`Lte`]), which are not among the links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line that says what this is.
    #[serde(default)]
    pub title: String,
    /// What it shows, and how.
    #[serde(default)]
    pub description: String,
    /// Simulated time.
    pub duration: Span,
    /// Summary statistics start here.
    #[serde(default)]
    pub warmup: Span,
    /// Seed of all randomness: the same seed gives the same results.
    #[serde(default = "one_seed")]
    pub seed: u64,
    /// How often it is run, each time with other random numbers.
    #[serde(default = "one")]
    pub runs: u32,
    /// What to record.
    #[serde(default)]
    pub record: Record,
    /// The shortcut topology.
    #[serde(default, skip_serializing)]
    pub(crate) dumbbell: Option<Dumbbell>,
    /// An LTE network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lte: Option<Lte>,
    /// Links of an arbitrary small network.
    #[serde(default)]
    pub links: Vec<Link>,
    /// TCP options of all flows, unless a flow says otherwise.
    #[serde(default, skip_serializing)]
    pub(crate) tcp: Tcp,
    /// The flows.
    #[serde(default)]
    pub flows: Vec<Flow>,
}

/// What a file may say beside the scenario; it is used up by loading.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "described here for the schema; read from the tree")]
pub(crate) struct FileKeys {
    /// Files (relative to this one), built-in scenarios, and presets (`"preset:NAME"`) that this file is laid on, in order.
    #[serde(default)]
    include: Vec<String>,
    /// Named values: `"${name}"` anywhere else becomes the value of `name`; inside a longer text, its text.
    #[serde(default)]
    parameters: std::collections::BTreeMap<String, serde_json::Value>,
    /// The values of parameters and dotted keys (`"dumbbell.rate"`, `"flows.a.cc"`, `"flows.*.cc"`) that are tried: every
    /// combination is a point.
    #[serde(default)]
    sweep: std::collections::BTreeMap<String, serde_json::Value>,
}

/// What to record, beside the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// How often windows, rates, round-trip times and queues are sampled, or `"off"`.
    pub samples: Samples,
    /// Whether to write a table with a row for each thing that happens to a packet. It is large.
    pub events: bool,
    /// Whether to write a table with a row for each transport block. It is large.
    pub radio: bool,
    /// Links whose packets are captured into pcapng files, or `["*"]` for all.
    pub pcap: Vec<String>,
}

kinds! { "Samples",
    /// How often time series are sampled. A bare time is the interval.
    pub enum Samples {
        /// At a fixed interval.
        Every {
            /// The interval.
            interval: Span,
        },
        /// Not at all.
        Off,
    }
}

impl Default for Samples {
    fn default() -> Samples {
        Samples::Every { interval: Span::from_millis(100) }
    }
}

impl Samples {
    /// The interval, if there are samples.
    pub fn interval(&self) -> Option<Span> {
        match self {
            Samples::Every { interval } => Some(*interval),
            Samples::Off => None,
        }
    }
}

impl Scenario {
    /// The nodes, in the order in which links first name them; then the UEs that none names.
    pub fn nodes(&self) -> Vec<&str> {
        let mut seen = std::collections::BTreeSet::new();
        let ends = self.links.iter().flat_map(|l| [l.from.as_str(), l.to.as_str()]);
        let ues = self.lte.iter().flat_map(|lte| lte.ues.iter().map(|ue| ue.name.as_str()));
        ends.chain(ues).filter(|n| seen.insert(*n)).collect()
    }
}

fn one_seed() -> u64 {
    1
}
fn one() -> u32 {
    1
}
