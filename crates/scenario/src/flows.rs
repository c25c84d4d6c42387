//! Flows: who sends what to whom, and how.

use crate::kinds::kinds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Span};

/// A flow, or several alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The flow's name in results. Unless given: `flow-1`, `flow-2`, ... by position.
    #[serde(default)]
    pub name: String,
    /// The node that sends the data. Needed unless there is a dumbbell or an LTE network. In an LTE network `PREFIX*` stands
    /// for each UE whose name begins so, or each host if no UE's does: each has a flow `NAME-UE`.
    #[serde(default)]
    pub from: String,
    /// The node that receives the data, as `from`. Only one of the two may have a `*`.
    #[serde(default)]
    pub to: String,
    /// What the application sends.
    #[serde(default)]
    pub traffic: Traffic,
    /// Congestion control of the sender.
    #[serde(default)]
    pub cc: Cc,
    /// Priority of its packets, 0 to 15, as Linux takes it from the TOS byte; 0 is best effort. `pfifo-fast` sorts by it, and
    /// dedicated bearers choose by it.
    #[serde(default)]
    pub priority: u8,
    /// When it starts.
    #[serde(default)]
    pub start: Span,
    /// When its application stops sending; never unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// How many such flows there are.
    #[serde(default = "one")]
    pub count: u32,
    /// How much later each of `count` starts than the one before it.
    #[serde(default)]
    pub stagger: Span,
    /// Each flow starts at a random moment up to this much later.
    #[serde(default)]
    pub start_jitter: Span,
    /// The links that data takes, in order. Unless given: the fewest links, then the least delay.
    #[serde(default)]
    pub route: Vec<String>,
    /// The links that acknowledgements take. Unless given: the route's reverse links if it has them all, otherwise the
    /// fewest links, then the least delay.
    #[serde(default)]
    pub return_route: Vec<String>,
    /// TCP options of this flow; what is not said is taken from the table `[tcp]`.
    #[serde(default)]
    pub tcp: Tcp,
}

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP: no acknowledgements, no congestion control.
    Udp,
}

impl Flow {
    /// What carries the flow: it follows from the traffic.
    pub fn transport(&self) -> Transport {
        match self.traffic {
            Traffic::Cbr { .. } | Traffic::Ppbp { .. } => Transport::Udp,
            _ => Transport::Tcp,
        }
    }
}

/// TCP options. The defaults are those of Linux 6.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Payload bytes of a full segment; 1448 is what an MTU of 1500 leaves with time stamps.
    pub mss: u32,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
    /// Negotiate ECN (RFC 3168).
    pub ecn: bool,
    /// Pace segments even if the congestion control does not ask for it.
    pub pacing: bool,
    /// Keep parts of bursts back until the rest can follow, as Linux does where an interface cuts segments itself (TSO). Then
    /// a fast sender sends a millisecond's worth at once.
    pub tso: bool,
    /// Delay acknowledgements (with Linux's quick-acknowledgement phase); if not, every segment is acknowledged.
    pub delayed_ack: bool,
    /// Shrink the congestion window after an idle time (RFC 2861).
    pub slow_start_after_idle: bool,
    /// The shortest retransmission time-out.
    pub min_rto: Span,
    /// Most bytes that the sender's socket holds, sent or not, until they are acknowledged.
    pub send_buffer: Bytes,
    /// Most bytes of memory that the receiver's socket may take; half of it is window (Linux `tcp_rmem` grows up to it).
    pub receive_buffer: Bytes,
    /// Upper bound of the advertised window (Linux `TCP_WINDOW_CLAMP`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_clamp: Option<Bytes>,
}

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp {
            mss: 1448,
            initial_window: 10,
            ecn: false,
            pacing: false,
            tso: false,
            delayed_ack: true,
            slow_start_after_idle: true,
            min_rto: Span::from_millis(200),
            send_buffer: Bytes::new(4 << 20),
            receive_buffer: Bytes::new(6 << 20),
            window_clamp: None,
        }
    }
}

kinds! { "Cc",
    /// Congestion control.
    #[derive(Default)]
    pub enum Cc {
        /// CUBIC (RFC 9438) as Linux does it, with its hybrid slow start.
        #[default]
        Cubic,
        /// `NewReno` (RFC 6582); `reno` is another name for it.
        #[serde(alias = "reno")]
        NewReno,
        /// BBR version 1: sends at the measured delivery rate.
        Bbr,
        /// Vegas: holds two to four packets in the queue.
        Vegas,
        /// Westwood+: falls to the measured bandwidth-delay product at a loss.
        Westwood,
        /// Yet Another High-speed TCP.
        Yeah,
        /// Scalable TCP: grows in proportion to the window.
        Scalable {
            /// Segments by which the window grows with each segment acknowledged.
            #[serde(default = "scalable_step")]
            step: f64,
            /// Share of the window that is given up at a loss.
            #[serde(default = "scalable_decrease")]
            decrease: f64,
        },
        /// Multi-domain congestion control: CUBIC on the reports of a PEP (`pep = true` on a link, or in `[lte]`), Scalable TCP
        /// on the receiver's acknowledgements; the smaller window counts. Without a PEP it is CUBIC.
        Mdcc {
            /// Of Scalable: segments by which the window grows with each acknowledgement.
            #[serde(default = "mdcc_step")]
            step: f64,
            /// Whether that is for each acknowledgement, as in Linux before 4.8, or for each segment that it covers.
            #[serde(default = "on")]
            per_acknowledgement: bool,
            /// Of Scalable: share of the window that is given up at a loss.
            #[serde(default = "scalable_decrease")]
            decrease: f64,
            /// Whether a loss that the PEP has announced leaves Scalable's window alone.
            #[serde(default = "on")]
            loss_filter: bool,
            /// Whether what the PEP misses is retransmitted at once.
            #[serde(default = "on")]
            early_retransmission: bool,
        },
    }
}

impl Cc {
    /// The name, as files write it.
    pub fn name(&self) -> &'static str {
        match self {
            Cc::Cubic => "cubic",
            Cc::NewReno => "new-reno",
            Cc::Bbr => "bbr",
            Cc::Vegas => "vegas",
            Cc::Westwood => "westwood",
            Cc::Yeah => "yeah",
            Cc::Scalable { .. } => "scalable",
            Cc::Mdcc { .. } => "mdcc",
        }
    }
}

kinds! { "Traffic",
    /// What an application sends.
    #[derive(Default)]
    pub enum Traffic {
        /// As much as the transport takes, without end.
        #[default]
        Bulk,
        /// One transfer; the connection then closes.
        Transfer {
            /// Bytes to send.
            size: Bytes,
        },
        /// One short connection after another, each started without waiting for the last.
        ShortFlows {
            /// Bytes of each.
            size: Size,
            /// From one start to the next.
            interval: Gap,
            /// How many; without end unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            count: Option<u32>,
        },
        /// Sends for a while, then is silent for a while, on one connection.
        OnOff {
            /// How long it sends.
            on: Gap,
            /// How long it is silent.
            off: Gap,
            /// Its rate while it sends; as much as the transport takes unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            rate: Option<Rate>,
        },
        /// Loads web pages, one after another: the objects of a page are fetched over parallel connections.
        Pages {
            /// Objects on a page.
            objects: u32,
            /// Bytes of an object.
            object_size: Size,
            /// Parallel connections.
            #[serde(default = "six")]
            connections: u32,
            /// Bytes of the request for an object.
            #[serde(default = "request")]
            request: Bytes,
            /// From the end of one page to the request for the next.
            think: Gap,
            /// How many pages; without end unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            count: Option<u32>,
        },
        /// Packets of one size at one rate, over UDP.
        Cbr {
            /// Rate, counted on IP packets.
            rate: Rate,
            /// Bytes of an IP packet.
            #[serde(default = "mtu")]
            packet: Bytes,
        },
        /// Poisson Pareto burst process over UDP: bursts start at random, last a Pareto time, and each sends at a constant rate.
        Ppbp {
            /// Rate of one burst, counted on IP packets.
            burst_rate: Rate,
            /// Mean length of a burst.
            mean_burst: Span,
            /// Bursts that start in a second, on average.
            arrival_rate: f64,
            /// Hurst parameter of the sum: the Pareto shape is 3 - 2 H.
            #[serde(default = "hurst")]
            hurst: f64,
            /// Bytes of an IP packet.
            #[serde(default = "mtu")]
            packet: Bytes,
        },
    }
}

kinds! { "Size",
    /// An amount of data, the same each time or random. A bare amount is the same each time.
    #[derive(Copy)]
    pub enum Size {
        /// The same each time.
        Constant {
            /// The amount.
            size: Bytes,
        },
        /// Exponentially distributed.
        Exponential {
            /// Mean.
            mean: Bytes,
        },
        /// Pareto distributed.
        Pareto {
            /// Mean.
            mean: Bytes,
            /// Shape: the smaller, the heavier the tail.
            #[serde(default = "pareto_shape")]
            shape: f64,
        },
    }
}

kinds! { "Gap",
    /// A length of time, the same each time or random. A bare time is the same each time.
    #[derive(Copy)]
    pub enum Gap {
        /// The same each time.
        Constant {
            /// The time.
            time: Span,
        },
        /// Exponentially distributed: independent arrivals.
        Exponential {
            /// Mean.
            mean: Span,
        },
        /// Pareto distributed.
        Pareto {
            /// Mean.
            mean: Span,
            /// Shape: the smaller, the heavier the tail.
            #[serde(default = "pareto_shape")]
            shape: f64,
        },
    }
}

fn one() -> u32 {
    1
}
fn six() -> u32 {
    6
}
fn request() -> Bytes {
    Bytes::new(500)
}
fn mtu() -> Bytes {
    Bytes::new(1500)
}
fn hurst() -> f64 {
    0.7
}
fn pareto_shape() -> f64 {
    1.5
}
fn mdcc_step() -> f64 {
    0.02
}

fn on() -> bool {
    true
}

fn scalable_step() -> f64 {
    0.01
}
fn scalable_decrease() -> f64 {
    0.125
}
