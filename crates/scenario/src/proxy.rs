//! A split proxy at the core, and the radio reports that it receives.

use crate::Cc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span, kinds};

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
        /// RAPID as its paper's text has it: equations 1 to 13.
        Published {
            /// Part of its expected rate below which a flow is slow.
            #[serde(default = "slow_threshold")]
            slow_threshold: f64,
            /// Weight of the old average in the demand (equation 9).
            #[serde(default = "alpha")]
            alpha: f64,
            /// What tells the bits of resource blocks (equation 3). Default: the table of the scenario's cells; of a deployed
            /// proxy, `reported`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            blocks: Option<BlockTable>,
            /// Resource elements of a block in a slot that carry data, for the tables of NR. Default: as the scenario's cells
            /// have them; of a deployed proxy, 144, without a symbol for the control channel and one for reference signals.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            elements: Option<u8>,
        },
        /// RAPID as its authors' code has it.
        Artefact {
            /// Which of the two.
            #[serde(default)]
            code: Code,
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

/// What tells the bits of resource blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockTable {
    /// LTE's transport blocks, by MCS and number of blocks (36.213 table 7.1.7.2.1-1).
    Lte,
    /// NR's transport blocks (38.214 5.1.3.2), by the MCS table up to 64QAM (5.1.3.1-1),
    #[serde(rename = "nr-64qam")]
    Nr64qam,
    /// that up to 256QAM (5.1.3.1-2),
    #[serde(rename = "nr-256qam")]
    Nr256qam,
    /// that with lower code rates (5.1.3.1-3),
    NrLowRate,
    /// or that up to 1024QAM (5.1.3.1-4).
    #[serde(rename = "nr-1024qam")]
    Nr1024qam,
    /// The bits of a block that reports tell.
    Reported,
}

/// The code that the authors of RAPID ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The simulator of section 4: a threshold of 0.85, weight 0.4, windows for the round-trip time of both legs, and the receive
    /// window as the radio leg's congestion window.
    #[default]
    Simulator,
    /// The kernel module of section 5: a threshold of 0.75, weight 0.4, windows for the wired leg's round-trip time, and a
    /// congestion window for 16 ms more than the radio leg's, rounded up to a power of two of segments.
    KernelModule,
}

/// Resource elements of a block in a slot of NR, without a symbol for the control channel and one for reference signals.
pub const USUAL_ELEMENTS: u8 = 12 * 12;

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
