//! The tables of the standards as constants, in a module for each radio access technology.
//!
//! The same numbers are in CSV files in this crate's `data` folder, and a test compares every entry.

mod information;
pub mod lte;
pub mod nr;

pub(crate) use information::{ENTRIES, FIRST_OCTAVE, INFORMATION, STEPS};

use core::ops::RangeInclusive;

/// What terminals can measure of a cell: SS-RSRP in dBm, SS-RSRQ and SS-SINR in dB (TS 38.133, tables 10.1.6.1-1, 10.1.11.1-1 and
/// 10.1.16.1-1). These contain the ranges of LTE (TS 36.133, sections 9.1.4, 9.1.7 and 9.1.17).
pub const RSRP_DBM: RangeInclusive<f64> = -156.0..=-31.0;
/// See [`RSRP_DBM`].
pub const RSRQ_DB: RangeInclusive<f64> = -43.0..=20.0;
/// See [`RSRP_DBM`].
pub const SINR_DB: RangeInclusive<f64> = -23.0..=40.0;

/// The direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the cell to the UE.
    Downlink,
    /// From the UE to the cell.
    Uplink,
}

/// A modulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Modulation {
    /// 2 bits per symbol.
    Qpsk,
    /// 4 bits per symbol.
    Qam16,
    /// 6 bits per symbol.
    Qam64,
    /// 8 bits per symbol, in NR only.
    Qam256,
    /// 10 bits per symbol, in NR's downlink only.
    Qam1024,
}

impl Modulation {
    /// All modulations, most robust first.
    pub const ALL: [Modulation; 5] =
        [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64, Modulation::Qam256, Modulation::Qam1024];

    /// The modulations of this crate's LTE tables, most robust first.
    pub const LTE: [Modulation; 3] = [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64];

    /// Returns the coded bits per symbol.
    #[inline]
    pub const fn bits(self) -> u32 {
        2 + 2 * self as u32
    }
}
