//! Flows: their endpoints, traffic and transport.

use crate::Cc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate, Span, kinds};

/// A flow, or several identical ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Name of the flow in results. Default: `flow-1`, `flow-2`, ... by position.
    #[serde(default)]
    pub name: String,
    /// The node that sends the data. Required unless the scenario has a dumbbell or an LTE network. In an LTE network,
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

/// The transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP: no acknowledgements, no congestion control.
    Udp,
}

impl Flow {
    /// Returns the flow's transport protocol, which follows from the traffic.
    pub fn transport(&self) -> Transport {
        match self.traffic {
            Traffic::Cbr { .. } | Traffic::Ppbp { .. } => Transport::Udp,
            _ => Transport::Tcp,
        }
    }
}

/// TCP options. The defaults are those of Linux 6.18.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// The version of Linux to follow where versions differ: in the share of the receive buffer that is window (half in 6.1,
    /// measured since 6.6), in how that buffer grows, and in the memory that packets take.
    pub linux: TcpLinux,
    /// Maximum payload of a segment in bytes; 1448 corresponds to an MTU of 1500 with timestamps.
    pub mss: u32,
    /// Initial congestion window in segments (RFC 6928).
    pub initial_window: u32,
    /// Negotiate ECN (RFC 3168).
    pub ecn: bool,
    /// Pace segments even if the congestion control does not request it (`true`), or never, as Linux before 4.13 without
    /// the queue discipline `fq` (`false`). Default: as the congestion control requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Start with the slow-start threshold that an earlier connection between the same two hosts has left, with whichever
    /// congestion control, as Linux before 5.6 (`tcp_no_ssthresh_metrics_save = 0`).
    pub ssthresh_cache: bool,
    /// Limit the data in the queue of the host, and reduce the window without a loss when that queue is full, as Linux does
    /// (TCP small queues). Applies to UEs, whose hosts have a queue (`host_queue`), and to links whose queue is in the host
    /// (`queue_in_host`).
    pub small_queues: bool,
    /// Send packets of up to one millisecond's worth of segments, as Linux does with segmentation offload (TSO, GSO): parts
    /// of a packet wait until more can be sent, and the last segment of each has PSH, so that it is acknowledged at once.
    pub tso: bool,
    /// Delay acknowledgements (with Linux's quick-acknowledgement phase); otherwise every segment is acknowledged.
    pub delayed_ack: bool,
    /// Reduce the congestion window after an idle period (RFC 2861).
    pub slow_start_after_idle: bool,
    /// Minimum retransmission timeout.
    pub min_rto: Span,
    /// Maximum memory of the sender's socket for data, sent or not, until it is acknowledged (Linux `tcp_wmem`). The buffer
    /// begins with room for two windows (BBR: three) and grows with the congestion window; each packet takes more memory
    /// than its data.
    pub send_buffer: Bytes,
    /// Let the send buffer grow up to `send_buffer`. Otherwise it holds `send_buffer` bytes of data from the start, as in
    /// ns-3.
    pub send_autotuning: bool,
    /// Maximum memory of the receiver's socket (Linux `tcp_rmem` grows up to it). 63 % of it are window for segments of 1448
    /// bytes, half with `linux = "6.1"`, whose default is `6 MiB`.
    pub receive_buffer: Bytes,
    /// Bytes that packets leave for headers (Linux `MAX_TCP_HEADER`, which depends on the kernel's build): 320 with drivers
    /// for wireless networks and tunnels, as in distributions, 192 without. They count in the send buffer.
    pub max_header: u16,
    /// Upper bound of the advertised window (Linux `TCP_WINDOW_CLAMP`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_clamp: Option<Bytes>,
}

impl Default for Tcp {
    fn default() -> Tcp {
        Tcp {
            linux: TcpLinux::default(),
            mss: 1448,
            initial_window: 10,
            ecn: false,
            pacing: None,
            ssthresh_cache: false,
            small_queues: true,
            tso: true,
            delayed_ack: true,
            slow_start_after_idle: true,
            min_rto: Span::from_millis(200),
            send_buffer: Bytes::new(4 << 20),
            send_autotuning: true,
            receive_buffer: Bytes::new(32 << 20),
            max_header: 320,
            window_clamp: None,
        }
    }
}

/// A version of Linux whose TCP to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TcpLinux {
    /// Linux 6.1.
    #[serde(rename = "6.1")]
    V6_1,
    /// Linux 6.18.
    #[default]
    #[serde(rename = "6.18")]
    V6_18,
}

impl TcpLinux {
    /// The default of [`Tcp::receive_buffer`] in Linux 6.1 (`tcp_rmem[2]`, which `tcp_init` bounds by 6 MiB).
    pub(crate) const RECEIVE_BUFFER_6_1: &str = "6 MiB";
}

kinds! { "Traffic",
    /// The traffic of an application.
    #[derive(Default)]
    pub enum Traffic {
        /// As much data as the transport accepts, without end.
        #[default]
        Bulk,
        /// One transfer; the connection then closes.
        Transfer {
            /// Bytes to send.
            size: Bytes,
        },
        /// Short connections, each started without waiting for the previous one to end.
        ShortFlows {
            /// Bytes per connection.
            size: Size,
            /// Time between consecutive starts.
            interval: Gap,
            /// Number of connections. Default: unlimited.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            count: Option<u32>,
        },
        /// Alternates between sending and silence on one connection.
        OnOff {
            /// Duration of a sending period.
            on: Gap,
            /// Duration of a silent period.
            off: Gap,
            /// Rate while sending. Default: as much as the transport accepts.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            rate: Option<Rate>,
        },
        /// Writes at a rate that changes at given times, on one connection: the rate of an application, not of the network.
        Steps {
            /// Times since the start of the flow, and the rate from each time on, such as `[["0 s", "1 Mbit/s"], ["40 s",
            /// "0 bit/s"]]`; the first time is 0.
            steps: Vec<(Span, Rate)>,
        },
        /// Loads web pages, one after another; the objects of a page are fetched over parallel connections.
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
            /// Time from the end of one page to the request for the next.
            think: Gap,
            /// Number of pages. Default: unlimited.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            count: Option<u32>,
        },
        /// Packets of constant size at a constant rate, over UDP.
        Cbr {
            /// Rate, including IP headers.
            rate: Rate,
            /// Bytes of an IP packet.
            #[serde(default = "mtu")]
            packet: Bytes,
        },
        /// Poisson Pareto burst process over UDP: bursts start at random times, have Pareto distributed lengths, and
        /// send at a constant rate.
        Ppbp {
            /// Rate of one burst, including IP headers.
            burst_rate: Rate,
            /// Mean length of a burst.
            mean_burst: Span,
            /// Mean number of bursts started per second.
            arrival_rate: f64,
            /// Hurst parameter of the aggregate: the Pareto shape is 3 - 2 H.
            #[serde(default = "hurst")]
            hurst: f64,
            /// Bytes of an IP packet.
            #[serde(default = "mtu")]
            packet: Bytes,
        },
    }
}

kinds! { "Size",
    /// An amount of data, constant or random. A bare amount is constant.
    #[derive(Copy)]
    pub enum Size {
        /// Constant.
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
            /// Shape; smaller values give a heavier tail.
            #[serde(default = "pareto_shape")]
            shape: f64,
        },
    }
}

kinds! { "Gap",
    /// A duration, constant or random. A bare duration is constant.
    #[derive(Copy)]
    pub enum Gap {
        /// Constant.
        Constant {
            /// The duration.
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
            /// Shape; smaller values give a heavier tail.
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

fn proxied() -> bool {
    true
}
