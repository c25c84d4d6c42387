//! What a network is made of.

use aqm::Packet;
use channel::{AirConfig, Site, tables::lte as tables};
use units::Span;

use crate::handover::Handover;
use crate::mac::adaptation::LinkAdaptation;
use crate::mac::power::PowerReports;
use crate::mac::requests::Requests;
use crate::mac::sched::Discipline;
use crate::rat::Rat;
use crate::rlc;

/// A network: its cells, its UEs, and how these change cells.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The cells. There is at least one.
    pub cells: Vec<CellConfig>,
    /// The UEs.
    pub ues: Vec<UeConfig>,
    /// How UEs change cells.
    pub handover: Handover,
}

/// One cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct CellConfig {
    /// Where it is, and its carriers.
    pub site: Site,
    /// What its MAC does.
    pub mac: MacConfig,
    /// Who is served first in the downlink.
    pub downlink: Discipline,
    /// Who is served first in the uplink.
    pub uplink: Discipline,
    /// The share of its resource blocks that UEs of other cells see as interference, 0 to 1.
    pub load: f32,
}

/// One UE.
#[derive(Clone, Debug)]
pub struct UeConfig {
    /// Its radio.
    pub air: AirConfig,
    /// The cell that it starts in; `None` is the one that it hears best.
    pub cell: Option<usize>,
    /// Layers that it is configured for, 1 or 2 (downlink; the uplink has one).
    pub layers: u8,
    /// What it can receive and send.
    pub category: tables::Category,
    /// Its bearers: the default bearer first, then the dedicated ones, at most 8 together.
    pub bearers: Vec<BearerConfig>,
    /// The host above its modem, whose buffer is all bearers' uplink queues together.
    pub host: Above,
    /// Buffer status reports count what waits in the host too, as they count what waits in PDCP (36.323, 4.5), with the
    /// default bearer. If not, a quota that is small for a round of report and grant keeps grants small, and is never
    /// found to be small: the modem does not run empty.
    pub reports_host: bool,
}

/// A queue above a buffer of RLC's. Packets are handed down while the buffer has room and the quota is not used up; the
/// last one may exceed either. The queues that the buffer is made of should be FIFOs without a lower limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Above {
    /// How packets wait, and the quota.
    pub gate: aqm::gate::Config,
    /// How much the buffer holds of what was not begun to be sent.
    pub room: Room,
    /// When something has left the buffer, to the quota.
    pub completion: rlc::Completion,
}

/// A limit of packets and of bytes; the first that is reached counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Packets; `None` is no limit.
    pub packets: Option<u64>,
    /// Bytes; `None` is no limit.
    pub bytes: Option<u64>,
}

impl Room {
    /// Whether one more packet may come to what is held.
    #[inline]
    pub(crate) fn is_left(&self, held: aqm::Backlog) -> bool {
        self.packets.is_none_or(|most| held.packets < most) && self.bytes.is_none_or(|most| held.bytes < most)
    }
}

/// One bearer.
#[derive(Clone, Debug)]
pub struct BearerConfig {
    /// QoS class (23.203 table 6.1.7): decides which of a UE's bearers goes first.
    pub qci: u8,
    /// Which packets it carries. The default bearer carries what no other does, whatever this says.
    pub filter: Filter,
    /// The logical channel group that its data is reported in, 0 to 3.
    pub group: u8,
    /// Its RLC and PDCP.
    pub rlc: rlc::Config,
    /// What is above RLC's buffer in the eNodeB; nothing unless given.
    pub above: Option<Above>,
}

impl BearerConfig {
    /// Priority of a class without a row in the table: after all others.
    const LAST: u8 = u8::MAX;

    pub(crate) fn priority(&self) -> u8 {
        tables::qci(self.qci).map_or(Self::LAST, |class| class.priority)
    }
}

/// Which packets a dedicated bearer carries: its traffic flow template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All that no earlier bearer carries.
    #[default]
    All,
    /// Those of flows that are in the list, by [`Packet::flow`].
    Flows(Vec<u64>),
    /// Those with a priority whose bit is set, by [`Packet::priority`].
    Priorities(u16),
}

impl Filter {
    /// Whether `packet` belongs to the bearer.
    #[inline]
    pub fn admits<P: Packet>(&self, packet: &P) -> bool {
        match self {
            Filter::All => true,
            Filter::Flows(flows) => flows.contains(&packet.flow()),
            Filter::Priorities(set) => set & (1 << (packet.priority() & 15)) != 0,
        }
    }
}

/// What MAC does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MacConfig {
    /// The radio access technology.
    pub rat: Rat,
    /// How often a transport block is sent before it is given up, at least 1.
    pub transmissions: u8,
    /// From the end of a transmission until RLC has what it carried. Rounded up to whole slots, in LTE at most 3: the
    /// receiver must have decoded it to acknowledge it.
    pub decoding: Span,
    /// How channels are learned and what is made of them.
    pub link: LinkAdaptation,
    /// How UEs ask for uplink resources.
    pub requests: Requests,
    /// When UEs report how much power they have left.
    pub power_reports: PowerReports,
}

impl Default for MacConfig {
    fn default() -> Self {
        MacConfig {
            rat: Rat::default(),
            transmissions: 4,
            decoding: Span::from_millis(3),
            link: LinkAdaptation::default(),
            requests: Requests::default(),
            power_reports: PowerReports::default(),
        }
    }
}

impl MacConfig {
    /// [`Rat::LteIdeal`] as ns-3's LTE module has it: what was sent reaches RLC at the end of its TTI, the channel is
    /// reported in each TTI, and there is no outer loop.
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
