//! Hosts: the time that they need to answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Span, kinds};

/// The hosts at the ends of flows. Middleboxes and the real hosts of an emulation are not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hosts {
    /// Time from an event at a host (a packet arrives, a timer expires, the application writes) to the departure of the
    /// packets that it causes. A host's packets stay in order. `"0 s"` switches it off.
    pub processing: Processing,
    /// Hosts whose processing time differs. Of several that match, the last one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedHost>,
}

/// A host whose processing time differs from that of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedHost {
    /// Name of the host, or the beginning of several hosts' names and a `*`.
    pub name: String,
    /// Its processing time.
    pub processing: Processing,
}

kinds! { "Processing",
    /// Processing time of a host. A bare time is constant.
    #[derive(Default)]
    pub enum Processing {
        /// Constant.
        Constant {
            /// The time.
            time: Span,
        },
        /// As measured of Linux 6.18: 22 us in the median, at most 122 us (see the page on the model of hosts and links).
        #[default]
        Linux,
        /// Random, with the given quantiles and linear between them.
        Quantiles {
            /// Shares and times, both ascending, such as `[[0, "5 us"], [0.5, "20 us"], [1, "90 us"]]`; the first share is 0
            /// and the last one is 1.
            points: Vec<(f64, Span)>,
        },
    }
}

/// Quantiles of the time in microseconds from the arrival of the second of two full segments at a veth interface to the
/// departure of the acknowledgement (`tools/host-time.py`, 14,948 answers, Linux 6.18.44 on two virtual processors that also
/// did other work). The longest percent, up to 3 ms, is left out: there the receiver waits for other programs.
const LINUX: [(f64, u64); 9] =
    [(0.0, 2), (0.05, 6), (0.1, 7), (0.25, 11), (0.5, 22), (0.75, 40), (0.9, 55), (0.95, 71), (1.0, 122)];

impl Processing {
    /// Returns the shares and times of its quantiles: the first share is 0, the last one is 1.
    pub fn quantiles(&self) -> Vec<(f64, Span)> {
        match self {
            Processing::Constant { time } => vec![(0.0, *time), (1.0, *time)],
            Processing::Linux => LINUX.iter().map(|&(share, us)| (share, Span::from_micros(us))).collect(),
            Processing::Quantiles { points } => points.clone(),
        }
    }
}

impl Hosts {
    /// Returns the processing time of the host at a node.
    pub fn processing(&self, node: &str) -> &Processing {
        self.named.iter().rev().find(|host| host.matches(node)).map_or(&self.processing, |host| &host.processing)
    }
}

impl NamedHost {
    /// Returns whether it is, or includes, the host at a node.
    pub(crate) fn matches(&self, node: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => node.starts_with(prefix),
            None => self.name == node,
        }
    }
}
