//! The configuration of a network.

use aqm::Packet;
use channel::{AirConfig, Carrier, Site, tables::lte as tables};
use units::Span;

use crate::handover::Handover;
use crate::mac::adaptation::LinkAdaptation;
use crate::mac::configured::ConfiguredGrant;
use crate::mac::drx::Drx;
use crate::mac::power::PowerReports;
use crate::mac::requests::Requests;
use crate::mac::sched::Discipline;
use crate::rat::Rat;
use crate::rlc;

/// A network: its cells, its UEs, and the handover parameters.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The cells, at least one.
    pub cells: Vec<CellConfig>,
    /// The UEs.
    pub ues: Vec<UeConfig>,
    /// The handover parameters.
    pub handover: Handover,
}

/// One cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct CellConfig {
    /// Its position and carriers.
    pub site: Site,
    /// The MAC parameters.
    pub mac: MacConfig,
    /// The scheduler of the downlink.
    pub downlink: Discipline,
    /// The scheduler of the uplink.
    pub uplink: Discipline,
    /// Fraction of the resource blocks without data that interferes with UEs of other cells, 0 to 1.
    pub load: f32,
    /// A second downlink carrier for the UEs that it serves (carrier aggregation). Events count these carriers as cells
    /// after all others.
    pub secondary: Option<Secondary>,
}

/// A second carrier of a cell, which shares everything else with the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Secondary {
    /// The carrier. Its subcarriers are as wide as those of the first.
    pub carrier: Carrier,
    /// Transmit power in dBm over the whole carrier.
    pub power_dbm: f64,
}

impl Config {
    /// Returns the cells, followed by one for each secondary carrier, and of each the index of its secondary.
    pub(crate) fn carriers(&self) -> (Vec<CellConfig>, Vec<Option<usize>>) {
        let (mut all, mut secondaries) = (self.cells.clone(), vec![None; self.cells.len()]);
        for (cell, secondary) in self.cells.iter().zip(&mut secondaries) {
            if let Some(Secondary { carrier, power_dbm }) = cell.secondary {
                *secondary = Some(all.len());
                let site = Site { carrier, power_dbm, ..cell.site };
                let mac = MacConfig { configured: None, ..cell.mac };
                all.push(CellConfig { site, mac, secondary: None, ..*cell });
            }
        }
        secondaries.resize(all.len(), None);
        (all, secondaries)
    }
}

/// One UE.
#[derive(Clone, Debug)]
pub struct UeConfig {
    /// The radio channel.
    pub air: AirConfig,
    /// The initial cell; `None` is the cell received best.
    pub cell: Option<usize>,
    /// Number of configured layers, 1 or 2, in NR up to 4 (downlink; the uplink has one).
    pub layers: u8,
    /// Whether it receives the secondary carrier of a cell that has one, in LTE if its category does.
    pub aggregates: bool,
    /// The UE category, which limits it in LTE.
    pub category: tables::Category,
    /// The bearers: the default bearer first, then the dedicated ones, at most 8 in total.
    pub bearers: Vec<BearerConfig>,
    /// The host above the modem, whose buffer is the sum of all bearers' uplink queues.
    pub host: Above,
    /// Whether buffer status reports include the host's queue, in the same way as PDCP's (36.323, 4.5), on the default
    /// bearer. If not, a quota that is small for a round of report and grant keeps grants small, and is never
    /// recognised as too small, because the modem does not run empty.
    pub reports_host: bool,
    /// Whether a full modem drops what the host sends, instead of stopping the host.
    pub modem_drops: bool,
}

/// A queue above a buffer of RLC. Packets are passed down while the buffer has room and the quota is not used up; the
/// last one may exceed either. The queues that form the buffer should be FIFOs without a lower limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Above {
    /// The queue discipline and the quota.
    pub gate: aqm::gate::Config,
    /// Size of the buffer, for data not yet sent in part.
    pub room: Room,
}

/// A limit on packets and bytes; whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Packets; `None` is no limit.
    pub packets: Option<u64>,
    /// Bytes; `None` is no limit.
    pub bytes: Option<u64>,
}

impl Room {
    /// Returns whether one more packet fits in addition to `held`.
    #[inline]
    pub(crate) fn is_left(&self, held: aqm::Backlog) -> bool {
        self.packets.is_none_or(|most| held.packets < most) && self.bytes.is_none_or(|most| held.bytes < most)
    }
}

/// One bearer.
#[derive(Clone, Debug)]
pub struct BearerConfig {
    /// QoS class (23.203 table 6.1.7): determines the priority among a UE's bearers.
    pub qci: u8,
    /// The packets that it carries. The default bearer carries all remaining packets, regardless of this.
    pub filter: Filter,
    /// The logical channel group in which its data is reported, 0 to 3.
    pub group: u8,
    /// Its RLC and PDCP.
    pub rlc: rlc::Config,
    /// Its RLC mode in NR cells; `None` is the same as in LTE cells.
    pub nr: Option<rlc::Mode>,
    /// Its buffer in NR cells; `None` is the same as in LTE cells.
    pub nr_buffer: Option<Buffer>,
    /// The queue above RLC's buffer in the eNodeB, if any.
    pub above: Option<Above>,
}

/// The buffer of a bearer's downlink in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The queue discipline in front of RLC.
    pub queue: aqm::Config,
    /// Its size for a queue above it, instead of [`Above::room`].
    pub room: Room,
}

impl BearerConfig {
    /// Priority of a class that is not in the table: after all others.
    const LAST: u8 = u8::MAX;

    pub(crate) fn priority(&self) -> u8 {
        tables::qci(self.qci).map_or(Self::LAST, |class| class.priority)
    }
}

/// The packets carried by a dedicated bearer: its traffic flow template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All packets that no earlier bearer carries.
    #[default]
    All,
    /// Packets of the listed flows, by [`Packet::flow`].
    Flows(Vec<u64>),
    /// Packets with a priority whose bit is set, by [`Packet::priority`].
    Priorities(u16),
}

impl Filter {
    /// Returns whether `packet` belongs to the bearer.
    #[inline]
    pub fn admits<P: Packet>(&self, packet: &P) -> bool {
        match self {
            Filter::All => true,
            Filter::Flows(flows) => flows.contains(&packet.flow()),
            Filter::Priorities(set) => set & (1 << (packet.priority() & 15)) != 0,
        }
    }
}

/// The parameters of MAC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacConfig {
    /// The radio access technology.
    pub rat: Rat,
    /// Maximum number of transmissions of a transport block, at least 1.
    pub transmissions: u8,
    /// Delay from the end of a transmission until RLC has its contents, in LTE at most 3 ms: the receiver must have decoded
    /// the block to acknowledge it. What is sent in answer waits for the next slot.
    pub decoding: Span,
    /// Link adaptation.
    pub link: LinkAdaptation,
    /// The averaging time of proportional fair: a UE's past rate is an exponential average over it, at least two slots.
    pub fairness: Span,
    /// Scheduling requests and buffer status reports.
    pub requests: Requests,
    /// Number of assignments and grants that the control channel has room for in a slot, both directions together, at least
    /// one for each; `None` is what its resources suffice for. Not with [`Rat::LteIdeal`], which has no limit.
    pub assignments: Option<u16>,
    /// Power headroom reports.
    pub power_reports: PowerReports,
    /// Discontinuous reception of the UEs that it serves; `None`: they always listen. Not with [`Rat::LteIdeal`].
    pub drx: Option<Drx>,
    /// Configured grants of the UEs that it serves. Only with NR whose slots are not flexible.
    pub configured: Option<ConfiguredGrant>,
}

impl MacConfig {
    /// Returns [`Rat::LteIdeal`] as in ns-3's LTE module: a transmission reaches RLC at the end of its TTI, the channel
    /// is reported in each TTI, and there is no outer loop.
    pub fn ideal() -> MacConfig {
        MacConfig {
            rat: Rat::LteIdeal,
            decoding: Span::ZERO,
            link: LinkAdaptation {
                period: Rat::LteIdeal.slot(),
                delay: Span::from_millis(3),
                step_db: 0.0,
                ..LinkAdaptation::default()
            },
            ..MacConfig::default()
        }
    }
}
