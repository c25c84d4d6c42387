//! Shim.
#![allow(missing_docs)]
use crate::tables::nr::McsTable;
use crate::{Direction, Sinr, Soft};
use core::ops::Range;
pub fn block_error(tb_bits: u32, _rate: u16, soft: &Soft) -> f64 {
    super::block_error(tb_bits, soft)
}
pub fn cqi_at(_t: McsTable, sinr: &Sinr) -> u8 {
    super::wideband_cqi(sinr)
}
pub fn subband_cqi_at(_t: McsTable, sinr: &Sinr, prbs: Range<u16>) -> u8 {
    super::subband_cqi(sinr, prbs)
}
pub fn mcs_for(_t: McsTable, cqi: u8, o: f32) -> u8 {
    super::mcs_for(cqi, Direction::Downlink, o)
}
pub fn mcs_at(_t: McsTable, s: f32) -> u8 {
    super::mcs_at(s, Direction::Uplink)
}
pub fn mcs_sinr_db(_t: McsTable, mcs: u8) -> f32 {
    super::MCS_SINR_DB[1][usize::from(mcs)]
}
