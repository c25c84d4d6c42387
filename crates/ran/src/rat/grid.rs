//! The words in which technologies answer: grids, sizes and needs.

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
}

/// The numbers of resource blocks that an uplink grant may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Numbers without a prime factor other than 2, 3 and 5.
    Smooth,
    /// Any number.
    Any,
}

/// A UE's demand for the uplink scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// None, until it is activated again.
    Nothing,
    /// None in this slot.
    Later,
    /// A block for this many bytes.
    Bytes(u32),
}
