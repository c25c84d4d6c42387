//! Configured grants.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Span;

/// Configured grants of type 1 (38.321 5.8.2): resources of the uplink that recur, with which a UE sends without a request.
/// Each UE that a cell serves has its own, as long as there is room for one more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConfiguredGrant {
    /// Time from one occasion of a UE to the next (`periodicity`): 1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256,
    /// 320, 512, 640, 1024, 1280, 2560 or 5120 slots, with TDD a multiple of the pattern.
    pub period: Span,
    /// Number of resource blocks of an occasion, at most half of the carrier.
    pub resource_blocks: u16,
    /// Modulation and coding scheme of the uplink's table, raised to the lowest with which data fits.
    pub mcs: u8,
    /// HARQ processes for these blocks, fewer than `harq_processes` (`nrofHARQ-Processes`).
    pub processes: u8,
    /// Periods from a block until its process may have another, 1 to 64 (`configuredGrantTimer`).
    pub timer: u8,
}

impl Default for ConfiguredGrant {
    fn default() -> ConfiguredGrant {
        ConfiguredGrant { period: Span::from_millis(5), resource_blocks: 10, mcs: 10, processes: 4, timer: 2 }
    }
}
