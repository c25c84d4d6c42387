//! The division of a carrier.

use super::lte::sizes;
use crate::mac::blocks::Blocks;

/// The division of a carrier among UEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Resource blocks.
    pub(crate) prbs: u16,
    /// Resource blocks per group, the unit of allocation in the downlink.
    pub(crate) group: u16,
    /// Groups.
    pub(crate) groups: u16,
    /// Uplink resource blocks without control channels.
    pub(crate) shared: Blocks,
    /// The valid sizes of uplink grants.
    pub(crate) sizes: Sizes,
    /// Control channel elements of a slot.
    pub(crate) control_elements: u32,
}

/// The numbers of resource blocks that an uplink grant may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Numbers without a prime factor other than 2, 3 and 5.
    Smooth,
    /// Any number.
    Any,
}

impl Sizes {
    /// Returns the largest size of at most `prbs` resource blocks.
    #[inline]
    pub(crate) fn up_to(self, prbs: u16) -> u16 {
        match self {
            Sizes::Smooth => sizes::uplink_size(prbs),
            Sizes::Any => prbs,
        }
    }

    /// Returns the smallest size of at least `prbs` resource blocks.
    #[inline]
    pub(crate) fn from(self, prbs: u16) -> u16 {
        match self {
            Sizes::Smooth => sizes::uplink_size_from(prbs),
            Sizes::Any => prbs,
        }
    }
}
