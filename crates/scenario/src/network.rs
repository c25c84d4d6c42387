//! Links: what they carry, how fast, what they lose, and the queue in front of them.

use crate::kinds::kinds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Span};

/// A link between two nodes.
///
/// After loading every link is one-way: a duplex one has become two, the second named `NAME-reverse`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The link's name, by which routes, captures and results refer to it.
    pub name: String,
    /// The node where packets enter. Links create the nodes that they name.
    pub from: String,
    /// The node where packets leave.
    pub to: String,
    /// Whether there is a second link back, called `NAME-reverse`, with the same rate, delay, queue and overhead but
    /// without loss and jitter, unless `reverse` says otherwise.
    #[serde(default = "yes")]
    pub(crate) duplex: bool,
    /// How fast packets are served. A link without a rate is infinitely fast and has no queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Capacity>,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Span,
    /// Random extra delay of each packet. Packets stay in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Random loss, after the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// The queue in front of the link.
    #[serde(default)]
    pub queue: Queue,
    /// Bytes that the link adds to each IP packet when it serves it (framing).
    #[serde(default)]
    pub overhead: Bytes,
    /// Whether a lightweight PEP is where the link ends: it reports to the senders of what comes over this link and goes on,
    /// if they understand it (`cc = "mdcc"`).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pep: bool,
    /// Probability that a report of this PEP is lost on its way to the sender, beside what the links lose.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pep_report_loss: f64,
    /// What differs in the other direction of a duplex link.
    #[serde(default, skip_serializing)]
    pub(crate) reverse: Option<Reverse>,
}

/// What differs in the other direction of a duplex link. What is not said is as in the forward direction, except loss
/// and jitter, which are not inherited.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reverse {
    /// How fast packets are served.
    pub rate: Option<Capacity>,
    /// Propagation delay.
    pub delay: Option<Span>,
    /// Random extra delay of each packet. Packets stay in order.
    pub jitter: Option<Jitter>,
    /// Random loss, after the queue.
    pub loss: Option<Loss>,
    /// The queue in front of the link.
    pub queue: Option<Queue>,
    /// Bytes that the link adds to each IP packet when it serves it (framing).
    pub overhead: Option<Bytes>,
}

/// The shortcut topology: senders - `r1` = bottleneck = `r2` - receivers.
///
/// It stands for links named `bottleneck` (duplex) and `access-NODE`. Further `[[links]]` may be attached to its nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// How fast the bottleneck serves packets.
    pub rate: Capacity,
    /// Round-trip propagation delay: half of it in each direction of the bottleneck.
    pub rtt: Span,
    /// Random extra delay of each packet from `r1` to `r2`. Packets stay in order.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// Random loss from `r1` to `r2`, after the queue.
    #[serde(default)]
    pub loss: Option<Loss>,
    /// The queue in front of the bottleneck.
    #[serde(default)]
    pub queue: Queue,
    /// Bytes that the bottleneck adds to each IP packet when it serves it (framing).
    #[serde(default)]
    pub overhead: Bytes,
    /// What differs from `r2` to `r1`.
    #[serde(default)]
    pub reverse: Option<Reverse>,
    /// Rate of each host's own link; infinite unless given.
    #[serde(default)]
    pub access_rate: Option<Capacity>,
    /// The hosts at `r1`. The first is where flows start that do not say `from`.
    #[serde(default = "one_sender")]
    pub senders: Vec<String>,
    /// The hosts at `r2`. The first is where flows end that do not say `to`.
    #[serde(default = "one_receiver")]
    pub receivers: Vec<String>,
}

kinds! { "Capacity",
    /// How fast a link serves packets. A bare rate is constant.
    pub enum Capacity {
        /// The same rate always.
        Constant {
            /// The rate.
            rate: Rate,
        },
        /// A rate that changes at given moments.
        Steps {
            /// Moments and the rates from then on, as `[["0 s", "35 Mbit/s"], ["40 s", "350 Mbit/s"]]`; the first moment is 0.
            steps: Vec<(Span, Rate)>,
        },
        /// Recorded delivery opportunities of 1500 bytes: a text file with one time in milliseconds on each line (the
        /// format of mahimahi). It starts again when it ends.
        Trace {
            /// The file, relative to the scenario file that names it.
            file: String,
            /// What an opportunity carries.
            #[serde(default)]
            service: Service,
            /// The moment of the trace at which a run begins. Unless given: its beginning if `runs` is 1, otherwise a
            /// random moment in each run, the same one for all traces of the run.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            offset: Option<Span>,
        },
        /// A random rate that looks like a cell's, drawn for each run: its logarithm is a stationary Gaussian process whose
        /// correlation falls exponentially with time, cut by outages.
        Synthetic {
            /// Mean rate outside outages, before the peak cuts it.
            mean: Rate,
            /// The rate is never above this.
            peak: Rate,
            /// Standard deviation of the natural logarithm of the rate: 0 is constant, 0.8 an uneven cell.
            #[serde(default = "spread")]
            spread: f64,
            /// After this time the correlation has fallen to 1/e.
            #[serde(default = "two_seconds")]
            correlation: Span,
            /// Mean time from the end of an outage to the next; no outages unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            outage_every: Option<Span>,
            /// Mean length of an outage.
            #[serde(default = "quarter_second")]
            outage: Span,
        },
    }
}

/// What a delivery opportunity of a trace carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// 1500 bytes: several small packets, or a part of a large one.
    #[default]
    Bytes,
    /// One packet of whatever size.
    Packets,
}

kinds! { "Jitter",
    /// Random extra delay of each packet. A bare time is the largest of a uniform distribution.
    #[derive(Copy)]
    pub enum Jitter {
        /// Equally likely from zero to a largest value.
        Uniform {
            /// The largest extra delay.
            max: Span,
        },
        /// The absolute value of a normal variable with mean zero.
        HalfNormal {
            /// Standard deviation of the normal variable; the mean extra delay is 0.8 times this.
            sigma: Span,
        },
    }
}

kinds! { "Loss",
    /// Random loss. A bare number is the probability of independent losses.
    #[derive(Copy)]
    pub enum Loss {
        /// Each packet is lost independently of the others.
        Random {
            /// Probability that a packet is lost.
            probability: f64,
        },
        /// Losses in bursts: a chain of a good and a bad state that may change before each packet.
        GilbertElliott {
            /// Probability to go from good to bad.
            good_to_bad: f64,
            /// Probability to go from bad to good; the mean burst is 1/this packets long.
            bad_to_good: f64,
            /// Probability that a packet is lost in the good state.
            #[serde(default)]
            loss_good: f64,
            /// Probability that a packet is lost in the bad state.
            #[serde(default = "one")]
            loss_bad: f64,
        },
    }
}

kinds! { "Queue",
    /// The queue in front of a link. Unless said otherwise: drop-tail with 1000 packets, which is what Linux gives an
    /// interface.
    pub enum Queue {
        /// First in, first out; what does not fit is lost. With neither limit given: 1000 packets.
        DropTail {
            /// Most packets held.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            packets: Option<u32>,
            /// Most bytes held.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            bytes: Option<Bytes>,
            /// Who is lost when it is full.
            #[serde(default)]
            drop: Drop,
        },
        /// Three bands by priority, first in, first out in each (Linux `pfifo_fast`).
        PfifoFast {
            /// Most packets held in each band.
            #[serde(default = "thousand")]
            packets: u32,
        },
        /// Controlled delay (RFC 8289).
        Codel {
            /// Standing delay that is tolerated.
            #[serde(default = "codel_target")]
            target: Span,
            /// How long the delay may stay above the target.
            #[serde(default = "codel_interval")]
            interval: Span,
            /// Most packets held.
            #[serde(default = "thousand")]
            packets: u32,
            /// Mark ECN-capable packets instead of dropping them.
            #[serde(default = "yes")]
            ecn: bool,
            /// Also mark each ECN-capable packet that waited longer than this, at once; none unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            ce_threshold: Option<Span>,
        },
        /// One queue a flow, served in turn by deficit round robin; over the limit, the longest queue loses.
        Fq {
            /// Most packets held in total.
            #[serde(default = "ten_thousand")]
            packets: u32,
            /// Number of queues that flows are hashed into.
            #[serde(default = "queues")]
            queues: u32,
            /// Bytes that a queue may send in its turn.
            #[serde(default = "quantum")]
            quantum: Bytes,
        },
        /// Flow queueing with controlled delay in each queue (RFC 8290).
        FqCodel {
            /// Standing delay that is tolerated.
            #[serde(default = "codel_target")]
            target: Span,
            /// How long the delay may stay above the target.
            #[serde(default = "codel_interval")]
            interval: Span,
            /// Most packets held in total.
            #[serde(default = "ten_thousand")]
            packets: u32,
            /// Most bytes held in total.
            #[serde(default = "memory")]
            bytes: Bytes,
            /// Number of queues that flows are hashed into.
            #[serde(default = "queues")]
            queues: u32,
            /// Bytes that a queue may send in its turn.
            #[serde(default = "quantum")]
            quantum: Bytes,
            /// Mark ECN-capable packets instead of dropping them.
            #[serde(default = "yes")]
            ecn: bool,
            /// Also mark each ECN-capable packet that waited longer than this, at once; none unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            ce_threshold: Option<Span>,
        },
    }
}

/// Who is lost when a queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Drop {
    /// The packet that arrives.
    #[default]
    Tail,
    /// The oldest ones, until it fits.
    Head,
}

impl Queue {
    /// `fq-codel` as it is unless said otherwise.
    pub(crate) fn fq_codel() -> Queue {
        Queue::FqCodel {
            target: codel_target(),
            interval: codel_interval(),
            packets: ten_thousand(),
            bytes: memory(),
            queues: queues(),
            quantum: quantum(),
            ecn: true,
            ce_threshold: None,
        }
    }

    /// A drop-tail queue without a limit gets the default one.
    pub(crate) fn with_limit(self) -> Queue {
        match self {
            Queue::DropTail { packets: None, bytes: None, drop } => {
                Queue::DropTail { packets: Some(thousand()), bytes: None, drop }
            }
            other => other,
        }
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::DropTail { packets: Some(thousand()), bytes: None, drop: Drop::default() }
    }
}

pub(crate) fn is_zero(x: &f64) -> bool {
    *x == 0.0
}
fn yes() -> bool {
    true
}
fn one() -> f64 {
    1.0
}
fn spread() -> f64 {
    0.8
}
fn two_seconds() -> Span {
    Span::from_secs(2)
}
fn quarter_second() -> Span {
    Span::from_millis(250)
}
fn thousand() -> u32 {
    1000
}
fn ten_thousand() -> u32 {
    10_240
}
fn queues() -> u32 {
    1024
}
fn quantum() -> Bytes {
    Bytes::new(1514)
}
fn memory() -> Bytes {
    Bytes::new(32 << 20)
}
fn codel_target() -> Span {
    Span::from_millis(5)
}
fn codel_interval() -> Span {
    Span::from_millis(100)
}
fn one_sender() -> Vec<String> {
    vec!["sender".into()]
}
fn one_receiver() -> Vec<String> {
    vec!["receiver".into()]
}
