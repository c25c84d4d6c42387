//! The tables of the standards as constants, in a module for each radio access technology.
//!
//! The same numbers are in CSV files in this crate's `data` folder, and a test compares every entry.

mod information;
pub mod lte;
pub mod nr;

pub(crate) use information::{ENTRIES, FIRST_OCTAVE, INFORMATION, STEPS};

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
