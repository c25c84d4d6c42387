//! The technologies, and the words in which they answer.

use crate::mac::blocks::Blocks;

/// The radio access technology of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rat {
    /// LTE in FDD, according to 36.211 to 36.322.
    #[default]
    Lte,
    /// LTE with the idealisations of ns-3's LTE module, for comparison with it and with results published on it:
    /// - the eNodeB knows each UE's buffer levels in every TTI, quantised but without delay, error or cost: there are
    ///   no scheduling requests, no random access, and no reports in transport blocks; it also knows each UE's power;
    /// - MAC has no headers;
    /// - the uplink has no control region, and divides the carrier into equal parts, of three blocks at least, in turn;
    /// - the downlink leaves out the last resource block group if it is smaller than the others (one block of 25), and
    ///   round robin leaves out the remainder when it divides the groups; a UE that is served gets its part whether it
    ///   can fill it or not;
    /// - RRC messages arrive at once and without error.
    LteIdeal,
}

/// Delays in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// From a scheduling request to the resulting grant.
    pub(crate) request_to_grant: u64,
    /// From an uplink grant to the transmission, and from a NACK to the repetition.
    pub(crate) grant_to_data: u64,
    /// From an uplink transmission until the UE knows that it has failed.
    pub(crate) data_to_nack: u64,
    /// From a downlink transmission until its process can be reused.
    pub(crate) data_to_reuse: u64,
    /// The maximum decoding time for a block to be acknowledged in time.
    pub(crate) longest_decoding: u64,
}

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
