//! LTE: the schemes and sizes of transport blocks.

use channel::{Direction, Modulation, tables::lte as tables};

/// Maximum number of resource blocks in the tables of transport block sizes.
pub(crate) const WIDEST: u16 = 110;

/// The largest MCS index.
pub(crate) const BEST_MCS: u8 = 28;

/// The lowest MCS of an uplink block on one and on two resource blocks: with fewer than 56 bits, MAC and RLC headers
/// and a report would leave no room for data.
const LEAST_MCS: [u8; 2] = [4, 1];

#[inline]
pub(crate) fn downlink_bits(mcs: u8, prbs: u16) -> u32 {
    tables::tbs(tables::dl_mcs(mcs).i_tbs, prbs)
}

#[inline]
pub(crate) fn uplink_bits(mcs: u8, prbs: u16) -> u32 {
    tables::tbs(tables::ul_mcs(mcs).i_tbs, prbs)
}

#[inline]
pub(crate) fn modulation(direction: Direction, mcs: u8) -> Modulation {
    tables::mcs(direction, mcs).modulation
}

#[inline]
pub(crate) fn least_mcs(prbs: u16) -> u8 {
    LEAST_MCS.get(usize::from(prbs) - 1).copied().unwrap_or(0)
}

/// I_TBS 6 has more bits than coded bits on one block (36.213 table 7.1.7.2.1-1). In both directions it corresponds to
/// MCS 6.
#[inline]
pub(crate) fn usable(mcs: u8, prbs: u16) -> u8 {
    if mcs == 6 && prbs == 1 { 5 } else { mcs }
}
