//! Links: capacity, delay and loss.

use crate::Queue;
use link::trace::Synthetic;
use link::{Jitter, Loss, Reordering, Sharing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use units::{Bytes, Rate, Span, kinds};

/// A key that must have a value.
type Own<T> = T;

/// Declares a table with the keys that a link, its other direction and a dumbbell have in common, between the table's own; the first
/// argument is the type of a key that the other direction of a link has from it: `Own`, or `Option` if it is not set.
macro_rules! with_path {
    ($inherited:ident, $(#[$meta:meta])* pub struct $name:ident { $($before:tt)* } and { $($after:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($before)*
            /// Random additional delay of each packet. Packets stay in order.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub jitter: Option<Jitter>,
            /// Packets that others overtake: a share of the packets is delayed further.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub reordering: Option<Reordering>,
            /// Random loss, after the queue.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub loss: Option<Loss>,
            /// The queue in front of the link.
            #[serde(default)]
            pub queue: $inherited<Queue>,
            /// Bytes that the link adds to each IP packet during service (framing).
            #[serde(default)]
            pub overhead: $inherited<Bytes>,
            $($after)*
        }

        impl $name {
            /// Returns the keys of paths, those that are set.
            pub(crate) fn path(&self) -> Path<'_> {
                let (jitter, reordering, loss) = (self.jitter.as_ref(), self.reordering.as_ref(), self.loss.as_ref());
                Path { jitter, reordering, loss, queue: Option::from(&self.queue), overhead: Option::from(&self.overhead) }
            }
        }
    };
}

/// The keys that links, their other directions and dumbbells have in common.
pub(crate) struct Path<'a> {
    pub(crate) jitter: Option<&'a Jitter>,
    pub(crate) reordering: Option<&'a Reordering>,
    pub(crate) loss: Option<&'a Loss>,
    pub(crate) queue: Option<&'a Queue>,
    pub(crate) overhead: Option<&'a Bytes>,
}

with_path! { Own,
    /// A link between two nodes.
    ///
    /// After loading every link is one-way: a duplex one has become two, the second named `NAME-reverse`.
    #[derive(Serialize)]
    pub struct Link {
        /// Name of the link, used in routes, captures and results.
        pub name: String,
        /// The node where packets enter. Nodes exist by being named.
        pub from: String,
        /// The node where packets leave.
        pub to: String,
        /// Whether a second link `NAME-reverse` leads back, with the same rate, delay, queue and overhead, but without
        /// loss, jitter and reordering unless `reverse` sets them.
        #[serde(default = "yes")]
        pub(crate) duplex: bool,
        /// Service rate. A link without a rate is infinitely fast and has no queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rate: Option<Capacity>,
        /// Propagation delay.
        #[serde(default, serialize_with = "bare_if_constant")]
        pub delay: Delay,
    } and {
        /// Whether the queue is in the host at `from`, as the queue discipline of its interface, so that senders there heed it
        /// (`tcp.small_queues`). The link must have a rate and be the first one of every route over it. Does not apply to the
        /// other direction of a duplex link.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        pub queue_in_host: bool,
        /// Whether a lightweight PEP at the end of the link reports on traffic that arrives over it and is forwarded, to
        /// senders that understand its reports (`cc = "mdcc"`).
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        pub pep: bool,
        /// Probability that one of the PEP's reports is lost on its way to the sender, in addition to losses on links.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub pep_report_loss: f64,
        /// Differences in the other direction of a duplex link.
        #[serde(default, skip_serializing)]
        pub(crate) reverse: Option<Reverse>,
    }
}

with_path! { Option,
    /// Differences in the other direction of a duplex link. Unset keys are as in the forward direction, except loss,
    /// jitter and reordering, which are not inherited.
    #[derive(Default)]
    pub struct Reverse {
        /// Service rate.
        #[serde(default)]
        pub rate: Option<Capacity>,
        /// Propagation delay.
        #[serde(default)]
        pub delay: Option<Delay>,
    } and {}
}

with_path! { Own,
    /// A dumbbell topology: senders - `r1` = bottleneck = `r2` - receivers.
    ///
    /// It creates the links `bottleneck` (duplex) and `access-NODE`. Further `[[links]]` may be attached to its nodes. Jitter,
    /// reordering and loss are those from `r1` to `r2`.
    pub struct Dumbbell {
        /// Service rate of the bottleneck.
        pub rate: Capacity,
        /// Round-trip propagation delay, half of it in each direction of the bottleneck.
        pub rtt: Span,
    } and {
        /// Differences in the direction from `r2` to `r1`.
        #[serde(default)]
        pub reverse: Option<Reverse>,
        /// Rate of each host's access link. Default: unlimited.
        #[serde(default)]
        pub access_rate: Option<Capacity>,
        /// The hosts at `r1`. Flows without `from` start at the first.
        #[serde(default = "one_sender")]
        pub senders: Vec<String>,
        /// The hosts at `r2`. Flows without `to` end at the first.
        #[serde(default = "one_receiver")]
        pub receivers: Vec<String>,
    }
}

kinds! { "Capacity",
    /// Service rate of a link. A bare rate is constant.
    pub enum Capacity {
        /// Constant.
        Constant {
            /// The rate.
            rate: Rate,
        },
        /// A rate that changes at given times.
        Steps {
            /// Times, and the rate from each time on, such as `[["0 s", "35 Mbit/s"], ["40 s", "350 Mbit/s"]]`; the
            /// first time is 0.
            steps: Vec<(Span, Rate)>,
        },
        /// Recorded delivery opportunities of 1500 bytes: a text file with one time in milliseconds per line
        /// (mahimahi's format). It repeats when it ends.
        Trace {
            /// The file, relative to the scenario file.
            file: String,
            /// What a delivery opportunity carries.
            #[serde(default)]
            service: Sharing,
            /// Time in the trace at which a run begins. Default: its beginning if `runs` is 1, otherwise a random time
            /// in each run, the same for all traces of the run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            offset: Option<Span>,
        },
        /// A random rate resembling a cell's, drawn for each run: its logarithm is a stationary Gaussian process with
        /// exponentially decaying correlation, interrupted by outages.
        Synthetic(Synthetic),
    }
}

kinds! { "Delay",
    /// Propagation delay. A bare time is constant. Packets stay in order: where the delay falls, one that would overtake
    /// another arrives with it.
    pub enum Delay {
        /// Constant.
        Constant {
            /// The delay.
            delay: Span,
        },
        /// A delay that changes at given times.
        Steps {
            /// Times, and the delay from each time on, such as `[["0 s", "22 ms"], ["15 s", "31 ms"]]`; the first time
            /// is 0. Where routes are chosen, the first delay counts.
            steps: Vec<(Span, Span)>,
        },
        /// Recorded delays: a CSV file whose first line names `time_s` or `time_ms`, and `delay_s` or `delay_ms` (one way)
        /// or `rtt_s` or `rtt_ms` (both ways, half of it on this link). It repeats when it ends. Where routes are chosen,
        /// it counts as no delay.
        Trace {
            /// The file, relative to the scenario file.
            file: String,
            /// Time in the recording at which a run begins. Default: its beginning if `runs` is 1, otherwise a random time
            /// in each run, the same for all traces of the run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            offset: Option<Span>,
        },
    }
}

impl Default for Delay {
    fn default() -> Delay {
        Span::ZERO.into()
    }
}

/// Writes a constant delay as a bare time.
fn bare_if_constant<S: Serializer>(delay: &Delay, serializer: S) -> Result<S::Ok, S::Error> {
    match delay {
        Delay::Constant { delay: span } => span.serialize(serializer),
        varying => varying.serialize(serializer),
    }
}

impl From<Span> for Delay {
    fn from(delay: Span) -> Delay {
        Delay::Constant { delay }
    }
}

impl Delay {
    /// Returns the delay at the beginning, as far as the scenario tells it.
    pub(crate) fn first(&self) -> Option<Span> {
        match self {
            Delay::Constant { delay } => Some(*delay),
            Delay::Steps { steps } => steps.first().map(|(_, delay)| *delay),
            Delay::Trace { .. } => None,
        }
    }
}

pub(crate) fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
fn yes() -> bool {
    true
}
fn one_sender() -> Vec<String> {
    vec!["sender".into()]
}
fn one_receiver() -> Vec<String> {
    vec!["receiver".into()]
}

/// Where the PEP of a radio network is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PepAt {
    /// One PEP at the core, whichever cell serves a UE.
    #[default]
    Core,
    /// A PEP at each cell, behind the link from the core: after a handover, another one reports, which has not seen the
    /// connection before.
    Cells,
}

impl PepAt {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    pub(crate) fn is_core(&self) -> bool {
        *self == PepAt::Core
    }
}
