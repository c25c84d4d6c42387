//! Second downlink carriers (carrier aggregation).

use crate::lte::Bandwidth;
use crate::nr::Nr;
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

/// A second downlink carrier of all NR cells, with the power, the antenna, the numerology and the duplexing of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NrSecondary {
    /// Its centre frequency in MHz: 410 to 7125 (FR1) or 24250 to 52600 (FR2).
    pub frequency_mhz: f64,
    /// Its bandwidth in MHz, 5 to 400, as far as 38.104 tables 5.3.2-1 and -2 have it for the numerology.
    #[serde(default = "crate::nr::bandwidth_mhz")]
    pub bandwidth_mhz: u16,
    /// Number of resource blocks, 1 to 275, for carriers that the standard does not have. Default: that of the bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_blocks: Option<u16>,
}

impl NrSecondary {
    /// Returns `nr` with this carrier as its only one.
    pub fn alone(&self, nr: &Nr) -> Nr {
        let NrSecondary { frequency_mhz, bandwidth_mhz, resource_blocks } = *self;
        Nr { frequency_mhz, uplink_mhz: None, bandwidth_mhz, resource_blocks, secondary: None, ..nr.clone() }
    }
}
