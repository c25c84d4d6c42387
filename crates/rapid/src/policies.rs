//! The policies of a proxy, as scenario files and the command line write them.

use crate::{Best, McsTable, Policy, Published, TransportBlocks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::check::{Check, Range};
use units::{Span, kinds};

/// Valid queues in the radio. At least a subframe of LTE: a cell that serves whole slots is idle in some of them below that.
const RADIO_TARGETS: core::ops::RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(1);
/// Valid queues in the proxy.
const PROXY_TARGETS: core::ops::RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
/// Resource elements of a block that count for a transport block's size (38.214 5.1.3.2).
const ELEMENTS: core::ops::RangeInclusive<u8> = 1..=156;

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
const USUAL_ELEMENTS: u8 = 12 * 12;

impl ProxyPolicy {
    /// Checks that each parameter is in its range.
    pub fn check(&self, c: &mut Check) {
        match *self {
            ProxyPolicy::Published { slow_threshold, alpha, blocks: _, elements } => {
                c.range("slow_threshold", slow_threshold, Range::PROBABILITY);
                c.range("alpha", alpha, Range::PROBABILITY);
                if let Some(elements) = elements {
                    c.range("elements", elements, ELEMENTS);
                }
            }
            ProxyPolicy::Best { radio_target, proxy_target } => {
                c.range("radio_target", radio_target, RADIO_TARGETS);
                c.range("proxy_target", proxy_target, PROXY_TARGETS);
            }
            ProxyPolicy::None | ProxyPolicy::Split | ProxyPolicy::Artefact { .. } | ProxyPolicy::MilliProxy => {}
        }
    }

    /// Returns the policy of RAPID; `None` if it has no part in what the proxy does.
    pub fn policy(&self) -> Option<Policy> {
        Some(match *self {
            ProxyPolicy::None | ProxyPolicy::Split => return None,
            ProxyPolicy::Published { slow_threshold, alpha, blocks, elements } => {
                let blocks = blocks.unwrap_or(BlockTable::Reported).blocks(elements.unwrap_or(USUAL_ELEMENTS));
                Policy::Published(Published { blocks, slow_threshold, alpha, ..Published::default() })
            }
            ProxyPolicy::Artefact { code: Code::Simulator } => Policy::Published(Published::simulator()),
            ProxyPolicy::Artefact { code: Code::KernelModule } => Policy::Published(Published::kernel_module()),
            ProxyPolicy::Best { radio_target, proxy_target } => {
                Policy::Best(Best { radio_target, proxy_target, ..Best::default() })
            }
            ProxyPolicy::MilliProxy => Policy::MilliProxy,
        })
    }
}

impl BlockTable {
    /// Returns the table, for so many resource elements of a block in a slot of NR.
    fn blocks(self, elements: u8) -> TransportBlocks {
        let mcs_table = match self {
            BlockTable::Reported => return TransportBlocks::Reported,
            BlockTable::Lte => return TransportBlocks::Lte,
            BlockTable::Nr64qam => McsTable::Qam64,
            BlockTable::Nr256qam => McsTable::Qam256,
            BlockTable::NrLowRate => McsTable::LowSpectralEfficiency,
            BlockTable::Nr1024qam => McsTable::Qam1024,
        };
        TransportBlocks::Nr { mcs_table, elements }
    }
}

fn slow_threshold() -> f64 {
    Published::default().slow_threshold
}

fn alpha() -> f64 {
    Published::default().alpha
}

fn radio_target() -> Span {
    Best::default().radio_target
}

fn proxy_target() -> Span {
    Best::default().proxy_target
}
