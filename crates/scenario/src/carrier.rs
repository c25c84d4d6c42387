//! Carriers: their bandwidths, and second ones.

use channel::tables::nr::{self as tables, FrequencyRange, Numerology};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A second downlink carrier of all LTE cells, with the power and the antenna of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LteSecondary {
    /// Its centre frequency in MHz.
    pub downlink_mhz: f64,
    /// Its bandwidth.
    #[serde(default)]
    pub bandwidth: Bandwidth,
}

/// Bandwidth of a carrier (36.101 table 5.6-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Bandwidth {
    /// 6 resource blocks.
    #[serde(rename = "1.4 MHz")]
    Mhz1_4,
    /// 15 resource blocks.
    #[serde(rename = "3 MHz")]
    Mhz3,
    /// 25 resource blocks.
    #[serde(rename = "5 MHz")]
    Mhz5,
    /// 50 resource blocks.
    #[default]
    #[serde(rename = "10 MHz")]
    Mhz10,
    /// 75 resource blocks.
    #[serde(rename = "15 MHz")]
    Mhz15,
    /// 100 resource blocks.
    #[serde(rename = "20 MHz")]
    Mhz20,
}

impl Bandwidth {
    /// Returns the bandwidth in MHz.
    pub fn mhz(self) -> f64 {
        match self {
            Bandwidth::Mhz1_4 => 1.4,
            Bandwidth::Mhz3 => 3.0,
            Bandwidth::Mhz5 => 5.0,
            Bandwidth::Mhz10 => 10.0,
            Bandwidth::Mhz15 => 15.0,
            Bandwidth::Mhz20 => 20.0,
        }
    }
}

/// A second downlink carrier of all NR cells, with the power, the antenna, the numerology and the duplexing of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NrSecondary {
    /// Its centre frequency in MHz: 410 to 7125 (FR1) or 24250 to 52600 (FR2).
    pub frequency_mhz: f64,
    /// Its bandwidth in MHz, 5 to 400, as far as 38.104 tables 5.3.2-1 and -2 have it for the numerology.
    #[serde(default = "bandwidth_mhz")]
    pub bandwidth_mhz: u16,
    /// Number of resource blocks, 1 to 275, for carriers that the standard does not have. Default: that of the bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_blocks: Option<u16>,
}

impl NrSecondary {
    /// Returns the carrier, of the first one's numerology.
    pub fn carrier(&self, numerology: u8) -> NrCarrier {
        let NrSecondary { frequency_mhz, bandwidth_mhz, resource_blocks } = *self;
        NrCarrier { frequency_mhz, bandwidth_mhz, resource_blocks, numerology }
    }
}

/// An NR carrier, or its half for the downlink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NrCarrier {
    /// Its centre frequency in MHz.
    pub frequency_mhz: f64,
    /// Its bandwidth in MHz.
    pub bandwidth_mhz: u16,
    /// Its number of resource blocks, if not that of the bandwidth.
    pub resource_blocks: Option<u16>,
    /// The numerology µ, 0 to 4.
    pub numerology: u8,
}

impl NrCarrier {
    /// Returns the numerology.
    pub fn numerology(&self) -> Numerology {
        Numerology::ALL[usize::from(self.numerology).min(4)]
    }

    /// Returns the bandwidths in MHz that the standard has for the carrier, and their resource blocks.
    pub fn bandwidths(&self) -> &'static [(u16, u16)] {
        let range = if self.frequency_mhz < 10_000.0 { FrequencyRange::Fr1 } else { FrequencyRange::Fr2 };
        tables::bandwidths(range, self.numerology())
    }

    /// Returns the number of resource blocks, or `None` if the standard has no such carrier.
    pub fn blocks(&self) -> Option<u16> {
        let of_standard = || self.bandwidths().iter().find(|(mhz, _)| *mhz == self.bandwidth_mhz).map(|(_, n)| *n);
        self.resource_blocks.or_else(of_standard)
    }

    /// Returns its width in MHz.
    pub(crate) fn width_mhz(&self) -> f64 {
        let khz = f64::from(12 * self.numerology().subcarrier_hz() / 1000);
        self.resource_blocks.map_or(f64::from(self.bandwidth_mhz), |blocks| f64::from(blocks) * khz / 1000.0)
    }
}

pub(crate) fn bandwidth_mhz() -> u16 {
    100
}
