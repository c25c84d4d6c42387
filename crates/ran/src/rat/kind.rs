//! The technologies, and the words in which they answer.

use crate::mac::blocks::Blocks;

/// The radio access technology of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rat {
    /// LTE in FDD, as 36.211 to 36.322 have it.
    #[default]
    Lte,
    /// LTE with the idealisations of ns-3's LTE module, to compare with it and with what was published on it:
    /// - the eNodeB knows each UE's buffer levels in every TTI, quantised but without delay, error or cost: there are no
    ///   scheduling requests, no random access, and no reports in transport blocks; it knows each UE's power, too;
    /// - MAC has no headers;
    /// - the uplink has no control region, and divides the carrier into equal parts, of three blocks at least, in turn;
    /// - the downlink leaves out the last resource block group if it is smaller than the others (one block of 25), and
    ///   round robin what remains when it divides the groups; who is served gets its part whether it can fill it or not;
    /// - RRC messages arrive at once and without fail.
    LteIdeal,
}

/// When things occur, in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// From a scheduling request to the grant that answers it.
    pub(crate) request_to_grant: u64,
    /// From an uplink grant to the transmission, and from a NACK to the repetition.
    pub(crate) grant_to_data: u64,
    /// From a transmission in the uplink until the UE knows that it has failed.
    pub(crate) data_to_nack: u64,
    /// From a transmission in the downlink until its process can be used again.
    pub(crate) data_to_reuse: u64,
    /// The longest decoding after which a block is acknowledged in time.
    pub(crate) longest_decoding: u64,
}

/// How a carrier is divided among UEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Resource blocks.
    pub(crate) prbs: u16,
    /// Resource blocks of a group, the unit of the downlink.
    pub(crate) group: u16,
    /// Groups.
    pub(crate) groups: u16,
    /// Uplink resource blocks that hold no control channel.
    pub(crate) shared: Blocks,
    /// The sizes of uplink grants.
    pub(crate) sizes: Sizes,
}

/// How many resource blocks an uplink grant may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Numbers without a prime factor other than 2, 3 and 5.
    Smooth,
    /// Any number.
    Any,
}

/// What a UE needs from an uplink scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing, until it is activated again.
    Nothing,
    /// Nothing in this slot.
    Later,
    /// A block for so many bytes.
    Bytes(u32),
}
