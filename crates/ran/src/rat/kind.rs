//! The technologies.

use super::nr::Nr;

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
    /// NR, according to 38.211 to 38.323.
    Nr(Nr),
}
