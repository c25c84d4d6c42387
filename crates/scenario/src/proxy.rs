//! A split proxy at the core, and the radio reports that it receives.

use crate::flows::Cc;
use crate::kinds::kinds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

/// A proxy at the core that splits the TCP connections between hosts and UEs. With a policy other than `split`, it is RAPID:
/// it divides among the flows of a UE what the cell reports that the UE can receive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Proxy {
    /// How the proxy sets receive windows of the wired leg, and windows and pacing of the radio leg.
    pub policy: ProxyPolicy,
    /// Interval between two updates of the windows.
    pub tick: Span,
    /// Congestion control of the proxy's own connections. On the radio leg, it rules where the policy does not.
    pub cc: Cc,
    /// Bytes that the proxy holds at most of each connection and direction.
    pub buffer: Bytes,
    /// The cell's reports to the proxy.
    pub reports: Reports,
}

impl Default for Proxy {
    fn default() -> Proxy {
        Proxy {
            policy: ProxyPolicy::default(),
            tick: Span::from_millis(1),
            cc: Cc::default(),
            buffer: Bytes::new(16_000_000),
            reports: Reports::default(),
        }
    }
}

impl Proxy {
    /// Returns whether there is one.
    pub fn exists(&self) -> bool {
        self.policy != ProxyPolicy::None
    }
}

kinds! { "ProxyPolicy",
    /// How a proxy sets windows.
    #[derive(Copy)]
    pub enum ProxyPolicy {
        /// There is no proxy.
        None,
        /// Not at all: each leg has its own congestion control and autotuned buffers.
        Split,
        /// RAPID as published: equations 1 to 13 of the paper.
        Published {
            /// Part of its expected rate below which a flow is slow. The paper has 0.8, its simulator 0.85, its kernel
            /// module 0.75.
            #[serde(default = "slow_threshold")]
            slow_threshold: f64,
            /// Weight of the old average in the demand. The paper has 1/8, its artefacts 0.4.
            #[serde(default = "alpha")]
            alpha: f64,
            /// The round-trip time for which windows are computed.
            #[serde(default)]
            round_trip: RoundTrip,
            /// The congestion window of the radio leg.
            #[serde(default)]
            radio_window: RadioWindow,
        },
        /// RAPID with max-min shares of rate; it counts what the proxy holds and corrects wrong reports.
        Best {
            /// The queue that the flows keep in the radio, beyond its least time for a packet and up to that time. At least 1 ms.
            #[serde(default = "radio_target")]
            radio_target: Span,
            /// What each flow keeps in the proxy, in time at its rate.
            #[serde(default = "proxy_target")]
            proxy_target: Span,
        },
        /// The window rule of milliProxy: rate times round-trip time, less the radio's backlog.
        MilliProxy,
    }
}

impl Default for ProxyPolicy {
    fn default() -> ProxyPolicy {
        ProxyPolicy::Best { radio_target: radio_target(), proxy_target: proxy_target() }
    }
}

/// The round-trip time of the equations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoundTrip {
    /// The wired leg's, as the paper says.
    #[default]
    Wired,
    /// The wired leg's and the radio leg's least together, as in the paper's simulator.
    Path,
}

/// The congestion window of the radio leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RadioWindow {
    /// The flow's bandwidth-delay product on that leg, as the paper says.
    #[default]
    Bdp,
    /// The receive window, as in the paper's simulator.
    ReceiveWindow,
    /// The bandwidth-delay product with 16 ms more, rounded up to a power of two of segments, as in its kernel module.
    Rounded,
}

/// The reports of cells on the UEs that they serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reports {
    /// Interval between two reports on a UE.
    pub period: Span,
    /// Time that a report takes to the proxy.
    pub delay: Span,
    /// Probability that a report is lost.
    pub loss: f64,
    /// The reported capacity as a multiple of the true one, to see what wrong reports cost.
    pub factor: f64,
}

impl Default for Reports {
    fn default() -> Reports {
        Reports { period: Span::from_millis(1), delay: Span::ZERO, loss: 0.0, factor: 1.0 }
    }
}

fn slow_threshold() -> f64 {
    0.8
}

fn alpha() -> f64 {
    0.125
}

fn radio_target() -> Span {
    Span::from_millis(5)
}

fn proxy_target() -> Span {
    Span::from_millis(2)
}
