//! What a network of LTE cells and one of NR cells have in common.

use crate::ProxyPolicy;
use crate::carrier::{Bandwidth, LteSecondary};
use crate::lte::{Cell, Lte, Ue};
use crate::network::PepAt;
use crate::nr::{McsTable, Nr};
use crate::proxy::{Proxy, Reports};
use crate::technology::Technology;
use crate::{Capacity, Loss};
use ran::parameters::{Handover, Mac, PowerControl};
use rapid::policies::BlockTable;
use units::Span;

/// The radio network of a scenario, `[lte]` or `[nr]`.
#[derive(Clone, Copy, Debug)]
pub struct RadioNetwork<'a> {
    /// The hosts behind the core.
    pub servers: &'a [String],
    /// One-way delay between each host and the core.
    pub server_delay: Span,
    /// Rate of each host's link.
    pub server_rate: Option<&'a Capacity>,
    /// Random loss on each host's link, in either direction.
    pub server_loss: Option<Loss>,
    /// Whether a PEP reports on traffic, and the probability that a report is lost.
    pub pep: Option<f64>,
    /// Where it is.
    pub pep_at: PepAt,
    /// The proxy at the core, if there is one.
    pub proxy: Option<&'a Proxy>,
    /// The cells' reports, if the scenario has settings for them.
    pub reports: Option<&'a Reports>,
    /// The name of the link between the core and the cells,
    pub core_link: &'static str,
    /// its one-way delay,
    pub core_delay: Span,
    /// and its rate.
    pub core_rate: Option<&'a Capacity>,
    /// The cells.
    pub cells: &'a [Cell],
    /// The UEs.
    pub ues: &'a [Ue],
    /// Uplink power control.
    pub power_control: PowerControl,
    /// Handover between cells.
    pub handover: &'a Handover,
    /// The carriers of LTE cells.
    pub lte: Option<LteSide<'a>>,
    /// The carrier of NR cells.
    pub nr: Option<&'a Nr>,
}

/// The carriers of LTE cells.
#[derive(Clone, Copy, Debug)]
pub struct LteSide<'a> {
    /// Centre frequency of the downlink carrier in MHz.
    pub downlink_mhz: f64,
    /// Centre frequency of the uplink carrier in MHz.
    pub uplink_mhz: f64,
    /// Bandwidth of each carrier.
    pub bandwidth: Bandwidth,
    /// The second downlink carrier.
    pub secondary: Option<&'a LteSecondary>,
    /// Parameters of the MAC layer.
    pub mac: &'a Mac,
}

impl RadioNetwork<'_> {
    /// Returns the proxy with what its policy leaves to the cells.
    pub fn proxy_in_cells(&self) -> Option<Proxy> {
        self.proxy.map(|proxy| Proxy { policy: in_cells_of(proxy.policy, self.nr), ..proxy.clone() })
    }

    /// Returns the technology of one of its cells.
    pub fn technology(&self, cell: &Cell) -> Technology {
        cell.rat.unwrap_or(if self.nr.is_some() { Technology::Nr } else { Technology::Lte })
    }
}

/// Returns a policy with what it leaves to the cells of NR, or else of LTE.
fn in_cells_of(policy: ProxyPolicy, nr: Option<&Nr>) -> ProxyPolicy {
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

impl<'a> From<&'a Lte> for RadioNetwork<'a> {
    fn from(lte: &'a Lte) -> RadioNetwork<'a> {
        RadioNetwork {
            servers: &lte.servers,
            server_delay: lte.server_delay,
            server_rate: lte.server_rate.as_ref(),
            server_loss: lte.server_loss,
            pep: lte.pep.then_some(lte.pep_report_loss),
            pep_at: lte.pep_at,
            proxy: lte.proxy.as_ref().filter(|proxy| proxy.exists()),
            reports: lte.proxy.as_ref().map(|proxy| &proxy.reports),
            core_link: "s1",
            core_delay: lte.s1_delay,
            core_rate: lte.s1_rate.as_ref(),
            cells: &lte.cells,
            ues: &lte.ues,
            power_control: lte.power_control,
            handover: &lte.handover,
            lte: Some(LteSide {
                downlink_mhz: lte.downlink_mhz,
                uplink_mhz: lte.uplink_mhz,
                bandwidth: lte.bandwidth,
                secondary: lte.secondary.as_ref(),
                mac: &lte.mac,
            }),
            nr: None,
        }
    }
}

impl<'a> From<&'a Nr> for RadioNetwork<'a> {
    fn from(nr: &'a Nr) -> RadioNetwork<'a> {
        RadioNetwork {
            servers: &nr.servers,
            server_delay: nr.server_delay,
            server_rate: nr.server_rate.as_ref(),
            server_loss: nr.server_loss,
            pep: nr.pep.then_some(nr.pep_report_loss),
            pep_at: nr.pep_at,
            proxy: nr.proxy.as_ref().filter(|proxy| proxy.exists()),
            reports: nr.proxy.as_ref().map(|proxy| &proxy.reports),
            core_link: "n3",
            core_delay: nr.n3_delay,
            core_rate: nr.n3_rate.as_ref(),
            cells: &nr.cells,
            ues: &nr.ues,
            power_control: nr.power_control,
            handover: &nr.handover,
            lte: nr.lte.as_ref().map(|lte| LteSide {
                downlink_mhz: lte.downlink_mhz,
                uplink_mhz: lte.uplink_mhz,
                bandwidth: lte.bandwidth,
                secondary: lte.secondary.as_ref(),
                mac: &lte.mac,
            }),
            nr: Some(nr),
        }
    }
}
