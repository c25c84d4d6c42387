//! An NR network: its carrier, its MAC, and the NR side of bearers.

use crate::carrier::{Bandwidth, LteSecondary, NrCarrier, NrSecondary, bandwidth_mhz};
use crate::configured::ConfiguredGrant;
use crate::drx::NrDrx;
use crate::handover::Handover;
use crate::lte::{Cell, CqiOf, Mac, PowerControl, Ue};
use crate::network::PepAt;
use crate::proxy::Proxy;
use crate::surroundings::{Building, Penetration};
use crate::{Capacity, Loss, lte};
use channel::tables::nr::{self as tables, Numerology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span, kinds};

/// A 5G network of NR cells, and of LTE cells if `lte` is given.
///
/// It creates the same nodes, links and radio hops as an LTE network, except that the link from `core` to `ran` is
/// named `n3`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nr {
    /// The hosts behind the core.
    #[serde(default = "lte::one_server")]
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
    pub proxy: Option<Proxy>,
    /// One-way delay between the core and the cells.
    #[serde(default)]
    pub n3_delay: Span,
    /// Rate between the core and the cells. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n3_rate: Option<Capacity>,
    /// Centre frequency of the carrier in MHz: 410 to 7125 (FR1) or 24250 to 52600 (FR2). With FDD, of the downlink's.
    #[serde(default = "frequency_mhz")]
    pub frequency_mhz: f64,
    /// Centre frequency of the uplink's carrier in MHz, with FDD. Default: `frequency_mhz`, without interference between the
    /// directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink_mhz: Option<f64>,
    /// Bandwidth of the carrier in MHz, 5 to 400, as far as 38.104 tables 5.3.2-1 and -2 have it for the numerology.
    #[serde(default = "bandwidth_mhz")]
    pub bandwidth_mhz: u16,
    /// Number of resource blocks, 1 to 275, for carriers that the standard does not have, such as all of 240 kHz; at most
    /// 100 MHz in FR1 and 400 MHz in FR2. Default: that of the bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_blocks: Option<u16>,
    /// The numerology µ, 0 to 4: subcarriers of 15, 30, 60, 120 or 240 kHz, and slots of 1, 0.5, 0.25, 0.125 or
    /// 0.0625 ms.
    #[serde(default = "numerology")]
    pub numerology: u8,
    /// The division of slots between downlink and uplink.
    #[serde(default)]
    pub duplex: Duplex,
    /// Modulation and coding schemes of the downlink.
    #[serde(default)]
    pub mcs_table: McsTable,
    /// Modulation and coding schemes of the uplink.
    #[serde(default)]
    pub uplink_mcs_table: McsTable,
    /// A second downlink carrier, which UEs receive together with the first (carrier aggregation). Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secondary: Option<NrSecondary>,
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
    /// LTE carriers, for cells with `rat = "lte"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lte: Option<LteCarrier>,
    /// The cells. Default: one at the origin.
    #[serde(default = "lte::one_cell")]
    pub cells: Vec<Cell>,
    /// The UEs.
    pub ues: Vec<Ue>,
    /// Uplink power control.
    #[serde(default)]
    pub power_control: PowerControl,
    /// Parameters of the MAC layer.
    #[serde(default)]
    pub mac: NrMac,
    /// Handover between cells.
    #[serde(default)]
    pub handover: Handover,
}

/// The interval between scheduling request opportunities that a cell without a TDD pattern has by default.
const SR_PERIOD: Span = Span::from_millis(5);

impl Nr {
    /// Returns the first carrier.
    pub fn carrier(&self) -> NrCarrier {
        let Nr { frequency_mhz, bandwidth_mhz, resource_blocks, numerology, .. } = *self;
        NrCarrier { frequency_mhz, bandwidth_mhz, resource_blocks, numerology }
    }

    /// Returns the numerology.
    pub fn numerology(&self) -> Numerology {
        self.carrier().numerology()
    }

    /// Returns the numbers of downlink, special and uplink slots of the TDD pattern, or `None` if it has none, or not in
    /// this order.
    pub fn pattern(&self) -> Option<[usize; 3]> {
        let Duplex::Tdd { pattern, .. } = &self.duplex else { return None };
        let rest = pattern.trim_start_matches('D');
        let uplink = rest.trim_start_matches('S');
        let [downlink, special] = [pattern.len() - rest.len(), rest.len() - uplink.len()];
        let fits = special <= 1 && pattern.len() <= 160 && !pattern.is_empty() && uplink.bytes().all(|b| b == b'U');
        fits.then_some([downlink, special, uplink.len()])
    }

    /// Returns the slots between a UE's scheduling request opportunities. The default fits the TDD pattern, as a gNB has to
    /// choose it: an opportunity in a slot without uplink is none (38.213 11.1).
    pub fn sr_slots(&self) -> u64 {
        let slot = self.numerology().slot().as_nanos();
        if let Some(period) = self.mac.sr_period {
            return period.as_nanos().div_ceil(slot);
        }
        let usual = SR_PERIOD.as_nanos() / slot;
        let pattern = self.pattern_slots();
        let below = usual / pattern * pattern;
        let above = below + pattern;
        if below > 0 && usual - below <= above - usual { below } else { above }
    }

    /// Returns the number of slots after which their directions repeat.
    pub(crate) fn pattern_slots(&self) -> u64 {
        self.pattern().map_or(1, |slots| slots.iter().sum::<usize>() as u64)
    }

    /// Returns whether `slot` has a control channel of the uplink.
    pub(crate) fn carries_requests(&self, slot: u64) -> bool {
        let (Duplex::Tdd { uplink_symbols, .. }, Some([downlink, special, _])) = (&self.duplex, self.pattern()) else {
            return true;
        };
        let place = (slot % self.pattern_slots()) as usize;
        let is_special = special == 1 && place == downlink;
        place >= downlink && (!is_special || *uplink_symbols >= self.mac.uplink_control_symbols.max(1))
    }

    /// Returns the centre frequency of the uplink in MHz.
    pub fn uplink_mhz(&self) -> f64 {
        match self.duplex {
            Duplex::Fdd => self.uplink_mhz.unwrap_or(self.frequency_mhz),
            Duplex::Tdd { .. } | Duplex::Flexible => self.frequency_mhz,
        }
    }
}

/// The carriers of LTE cells in a 5G network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LteCarrier {
    /// Centre frequency of the downlink carrier in MHz.
    pub downlink_mhz: f64,
    /// Centre frequency of the uplink carrier in MHz.
    pub uplink_mhz: f64,
    /// Bandwidth of each carrier.
    pub bandwidth: Bandwidth,
    /// A second downlink carrier, which UEs receive together with the first (carrier aggregation). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<LteSecondary>,
    /// Parameters of the MAC layer.
    pub mac: Mac,
}

impl Default for LteCarrier {
    fn default() -> LteCarrier {
        LteCarrier {
            downlink_mhz: lte::downlink_mhz(),
            uplink_mhz: lte::uplink_mhz(),
            bandwidth: Bandwidth::default(),
            secondary: None,
            mac: Mac::default(),
        }
    }
}

kinds! { "Duplex",
    /// The division of slots between downlink and uplink.
    pub enum Duplex {
        /// A carrier for each direction.
        Fdd,
        /// A fixed pattern of slots on one carrier.
        Tdd {
            /// One letter for each slot: `D` downlink, `S` special, `U` uplink, such as `DDDSU` or `DDDDDDDSUU`. It takes
            /// 0.5, 0.625, 1, 1.25, 2, 2.5, 3, 4, 5 or 10 ms.
            #[serde(default = "pattern")]
            pattern: String,
            /// Downlink symbols at the start of the special slot, which has 14.
            #[serde(default = "downlink_symbols")]
            downlink_symbols: u8,
            /// Uplink symbols at its end; those between, at least one, are guard.
            #[serde(default = "uplink_symbols")]
            uplink_symbols: u8,
        },
        /// Each slot begins with the downlink's control channel and ends with the uplink's, and the symbols between
        /// are divided by demand, as in ns-3's mmWave module.
        Flexible,
    }
}

impl Default for Duplex {
    fn default() -> Duplex {
        Duplex::Tdd { pattern: pattern(), downlink_symbols: downlink_symbols(), uplink_symbols: uplink_symbols() }
    }
}

/// A table of modulation and coding schemes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum McsTable {
    /// Up to 64QAM (38.214 table 5.1.3.1-1).
    #[default]
    #[serde(rename = "64qam")]
    Qam64,
    /// Up to 256QAM (table 5.1.3.1-2).
    #[serde(rename = "256qam")]
    Qam256,
    /// Up to 64QAM with lower code rates, for reliability (table 5.1.3.1-3).
    LowRate,
    /// Up to 1024QAM, in the downlink only (table 5.1.3.1-4).
    #[serde(rename = "1024qam")]
    Qam1024,
}

impl McsTable {
    /// Returns the table itself.
    pub fn table(self) -> tables::McsTable {
        match self {
            McsTable::Qam64 => tables::McsTable::Qam64,
            McsTable::Qam256 => tables::McsTable::Qam256,
            McsTable::LowRate => tables::McsTable::LowSpectralEfficiency,
            McsTable::Qam1024 => tables::McsTable::Qam1024,
        }
    }
}

/// Parameters of the MAC layer of NR.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NrMac {
    /// Maximum number of HARQ transmissions of a transport block.
    pub harq_transmissions: u8,
    /// HARQ processes of either direction, 1 to 16.
    pub harq_processes: u8,
    /// K1: slots from a downlink block to its acknowledgement, at least, 1 to 15. Default: as the UE's processing time
    /// requires (38.214 5.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k1: Option<u8>,
    /// K2: slots from a grant to its uplink block, at least, 1 to 16. Default: as the UE's processing time requires
    /// (38.214 6.4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k2: Option<u8>,
    /// Decoding delay, from the end of a transmission until RLC receives the block; at most `k1` slots. What is sent in
    /// answer waits for the next slot.
    pub decoding: Span,
    /// Symbols of the downlink's control channel in each slot with downlink, 1 to 3.
    pub control_symbols: u8,
    /// Symbols of the uplink's control channel in each slot with uplink, 1 or 2.
    pub uplink_control_symbols: u8,
    /// Symbols of a block with reference signals (DMRS), 0 to 4.
    pub dmrs_symbols: u8,
    /// Resource elements of each resource block that are lost otherwise: 0, 6, 12 or 18.
    pub overhead: u8,
    /// Interval between channel quality reports.
    pub cqi_period: Span,
    /// Delay from the measurement until the scheduler has the report.
    pub cqi_delay: Span,
    /// The scope of a CQI; for `worst-group`, a group is a resource block.
    pub cqi: CqiOf,
    /// Step of the outer-loop link adaptation towards 10 % block errors, in dB; 0 disables it.
    pub outer_loop_db: f64,
    /// Averaging time of proportional fair: a UE's past rate is an exponential average over it. ns-3's default is 99 ms, as 99
    /// TTIs of LTE.
    pub fairness: Span,
    /// Interval between a UE's scheduling request opportunities, from two symbols to 640 slots. One opportunity a slot
    /// is used. In TDD, a UE's opportunities are the uplink slots at its offset in each interval, which should therefore be a
    /// multiple of the pattern, or one slot. Default: 5 ms, or the multiple of the TDD pattern next to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sr_period: Option<Span>,
    /// Number of these opportunities for which a request suppresses the next one, 0 to 7.
    pub sr_prohibit: u8,
    /// Number of scheduling requests before random access, 4 to 64.
    pub sr_maximum: u8,
    /// Size of the grant that answers a scheduling request.
    pub first_grant: Bytes,
    /// Interval between buffer status reports while data waits.
    pub bsr_period: Span,
    /// How long a UE with data waits without a grant before it requests again.
    pub bsr_retx: Span,
    /// Number of assignments and grants that the control channel has room for in a slot, both directions together, 2 to
    /// 1000. Default: half of the control channel elements of `control_symbols` over the whole carrier, at least 2: 8 in 106
    /// resource blocks with one symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignments: Option<u16>,
    /// Discontinuous reception. Default: UEs always listen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drx: Option<NrDrx>,
    /// Configured grants. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configured_grant: Option<ConfiguredGrant>,
}

impl NrMac {
    /// Returns the resource elements of a block in a downlink slot that carry data.
    pub(crate) fn data_elements(&self) -> u8 {
        let symbols = tables::SYMBOLS.saturating_sub(self.control_symbols).saturating_sub(self.dmrs_symbols);
        (12 * symbols).saturating_sub(self.overhead)
    }
}

impl Default for NrMac {
    fn default() -> NrMac {
        NrMac {
            harq_transmissions: 4,
            harq_processes: 16,
            k1: None,
            k2: None,
            decoding: Span::from_micros(100),
            control_symbols: 1,
            uplink_control_symbols: 1,
            dmrs_symbols: 1,
            overhead: 0,
            cqi_period: Span::from_millis(5),
            cqi_delay: Span::from_millis(2),
            cqi: CqiOf::Carrier,
            outer_loop_db: 0.1,
            fairness: Span::from_millis(100),
            sr_period: None,
            sr_prohibit: 1,
            sr_maximum: 64,
            first_grant: Bytes::new(150),
            bsr_period: Span::from_millis(5),
            bsr_retx: Span::from_millis(80),
            assignments: None,
            drx: None,
            configured_grant: None,
        }
    }
}

fn frequency_mhz() -> f64 {
    3500.0
}
fn sweep() -> Span {
    Span::from_millis(20)
}
fn numerology() -> u8 {
    1
}
fn pattern() -> String {
    "DDDSU".into()
}
fn downlink_symbols() -> u8 {
    10
}
fn uplink_symbols() -> u8 {
    2
}
