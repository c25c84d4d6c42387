//! A radio network: hosts behind a core, cells of LTE and NR, and UEs.

use crate::lte::{Cell, LteCarriers, Ue, one_cell};
use crate::network::PepAt;
use crate::nr::{McsTable, NrCarriers};
use crate::proxy::{Proxy, Reports};
use crate::surroundings::{Building, Penetration};
use crate::technology::Technology;
use crate::{Capacity, Loss, ProxyPolicy};
use ran::parameters::{Handover, PowerControl};
use rapid::policies::BlockTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// A radio network of LTE cells, NR cells or both.
///
/// It creates the nodes `core` and `ran`, the UEs, and the hosts behind the core; duplex links `internet-HOST` from
/// each host to `core`, and `n3` from `core` to `ran`, named `s1` if all carriers are LTE's; and a radio hop `radio-UE`
/// (in the other direction `radio-UE-reverse`) from `ran` to each UE, whichever cell serves it. By default, flows start
/// at the first host and end at the first UE; traffic between UEs passes through the core. Further `[[links]]` may be
/// attached to the nodes.
///
/// The tables `[lte]` and `[nr]` are older forms of this one, which keep working: `[lte]` has the keys of `carriers.lte`
/// beside the common ones, and `[nr]` those of `carriers.nr`, with `lte` for `carriers.lte`; `core_delay` and
/// `core_rate` are `s1_delay` and `s1_rate` in the one, `n3_delay` and `n3_rate` in the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Radio {
    /// The hosts behind the core.
    #[serde(default = "one_server")]
    pub servers: Vec<String>,
    /// One-way delay between each host and the core.
    #[serde(default)]
    pub server_delay: Span,
    /// Rate of each host's link. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_rate: Option<Capacity>,
    /// Random loss on each host's link, in either direction, each with its own random numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_loss: Option<Loss>,
    /// Whether a lightweight PEP reports on traffic to the cells, to senders that understand its reports
    /// (`cc = "mdcc"`).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pep: bool,
    /// Probability that one of the PEP's reports is lost on its way to the sender, in addition to losses on links.
    #[serde(default, skip_serializing_if = "crate::network::is_zero")]
    pub pep_report_loss: f64,
    /// Where the PEP is.
    #[serde(default, skip_serializing_if = "PepAt::is_core")]
    pub pep_at: PepAt,
    /// A proxy at the core that splits TCP connections. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proxy: Option<Proxy>,
    /// One-way delay between the core and the cells.
    #[serde(default)]
    pub core_delay: Span,
    /// Rate between the core and the cells. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_rate: Option<Capacity>,
    /// The carriers of the cells: `{ lte = {} }` for LTE cells, `{ nr = {} }` for NR cells, or both.
    pub carriers: Carriers,
    /// The buildings. They attenuate UEs inside them, and obstruct the line of sight of channels with
    /// `sight = "buildings"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buildings: Vec<Building>,
    /// The loss into buildings.
    #[serde(default)]
    pub penetration: Penetration,
    /// Interval between beam sweeps, at which arrays with a codebook pick their beams.
    #[serde(default = "sweep")]
    pub beam_sweep: Span,
    /// The cells. Default: one at the origin.
    #[serde(default = "one_cell")]
    pub cells: Vec<Cell>,
    /// The UEs.
    pub ues: Vec<Ue>,
    /// Uplink power control.
    #[serde(default)]
    pub power_control: PowerControl,
    /// Handover between cells.
    #[serde(default)]
    pub handover: Handover,
}

/// The carriers of a radio network, by technology; at least one is required.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Carriers {
    /// The carriers of LTE cells. Default: no LTE cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lte: Option<LteCarriers>,
    /// The carriers of NR cells. Default: no NR cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr: Option<NrCarriers>,
}

impl Radio {
    /// Returns the name of the link between the core and the cells.
    pub fn core_link(&self) -> &'static str {
        if self.carriers.nr.is_some() { "n3" } else { "s1" }
    }

    /// Returns the proxy at the core, if there is one.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|proxy| proxy.exists())
    }

    /// Returns the proxy with what its policy leaves to the cells.
    pub fn proxy_in_cells(&self) -> Option<Proxy> {
        let policy = |policy| in_cells_of(policy, self.carriers.nr.as_ref());
        self.proxy().map(|proxy| Proxy { policy: policy(proxy.policy), ..proxy.clone() })
    }

    /// Returns the settings of the cells' reports, if the scenario has any.
    pub fn reports(&self) -> Option<&Reports> {
        self.proxy.as_ref().map(|proxy| &proxy.reports)
    }

    /// Returns the technology of one of its cells.
    pub fn technology(&self, cell: &Cell) -> Technology {
        cell.rat.unwrap_or(if self.carriers.nr.is_some() { Technology::Nr } else { Technology::Lte })
    }
}

/// Returns a policy with what it leaves to the cells of NR, or else of LTE.
fn in_cells_of(policy: ProxyPolicy, nr: Option<&NrCarriers>) -> ProxyPolicy {
    let ProxyPolicy::Published { slow_threshold, alpha, blocks, elements } = policy else { return policy };
    let (table, of_cell) = match nr {
        Some(nr) => (blocks_of(nr.mcs_table), Some(nr.mac.data_elements())),
        None => (BlockTable::Lte, None),
    };
    ProxyPolicy::Published { slow_threshold, alpha, blocks: blocks.or(Some(table)), elements: elements.or(of_cell) }
}

fn blocks_of(table: McsTable) -> BlockTable {
    match table {
        McsTable::Qam64 => BlockTable::Nr64qam,
        McsTable::Qam256 => BlockTable::Nr256qam,
        McsTable::LowRate => BlockTable::NrLowRate,
        McsTable::Qam1024 => BlockTable::Nr1024qam,
    }
}

fn one_server() -> Vec<String> {
    vec!["server".into()]
}
fn sweep() -> Span {
    Span::from_millis(20)
}
