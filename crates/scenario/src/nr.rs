//! The carriers of NR cells.

use crate::carrier::{NrCarrier, NrSecondary, bandwidth_mhz};
use channel::tables::nr::{self as tables, Numerology};
use ran::parameters::{Duplex, NrCell, NrMac};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The carriers of NR cells, and what NR's own layers say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NrCarriers {
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
    /// Parameters of the MAC layer.
    #[serde(default)]
    pub mac: NrMac,
}

impl NrCarriers {
    /// Returns the first carrier.
    pub fn carrier(&self) -> NrCarrier {
        let NrCarriers { frequency_mhz, bandwidth_mhz, resource_blocks, numerology, .. } = *self;
        NrCarrier { frequency_mhz, bandwidth_mhz, resource_blocks, numerology }
    }

    /// Returns the numerology.
    pub fn numerology(&self) -> Numerology {
        self.carrier().numerology()
    }

    /// Returns what the MAC layer has to fit.
    pub fn cell(&self) -> NrCell<'_> {
        NrCell {
            numerology: self.numerology(),
            duplex: &self.duplex,
            mcs_tables: [self.mcs_table, self.uplink_mcs_table].map(McsTable::table),
            blocks: self.carrier().blocks(),
        }
    }

    /// Returns whether `slot` has a control channel of the uplink.
    pub(crate) fn carries_requests(&self, slot: u64) -> bool {
        let Duplex::Tdd(tdd) = &self.duplex else { return true };
        let Some([downlink, special, _]) = tdd.slots() else { return true };
        let place = (slot % self.duplex.pattern_slots()) as usize;
        let is_special = special == 1 && place == downlink;
        place >= downlink && (!is_special || tdd.uplink_symbols >= self.mac.uplink_control_symbols.max(1))
    }

    /// Returns the centre frequency of the uplink in MHz.
    pub fn uplink_mhz(&self) -> f64 {
        match self.duplex {
            Duplex::Fdd => self.uplink_mhz.unwrap_or(self.frequency_mhz),
            Duplex::Tdd(_) | Duplex::Flexible => self.frequency_mhz,
        }
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

fn frequency_mhz() -> f64 {
    3500.0
}
fn numerology() -> u8 {
    1
}
