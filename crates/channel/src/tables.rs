//! The tables of the standards as constants, in a module for each radio access technology.
//!
//! The same numbers are in CSV files in this crate's `data` folder, and a test compares every entry.

mod information;
pub mod lte;
pub mod nr;

pub(crate) use information::{FIRST_OCTAVE, HIGH_INFORMATION, INFORMATION, STEPS};

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
    /// 8 bits per symbol (NR).
    Qam256,
    /// 10 bits per symbol (NR's downlink).
    Qam1024,
}

impl Modulation {
    /// All modulations, most robust first.
    pub const ALL: [Modulation; 5] =
        [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64, Modulation::Qam256, Modulation::Qam1024];

    /// Returns the modulation with this many coded bits per symbol: 2, 4, 6, 8 or 10.
    #[inline]
    pub(crate) const fn of_bits(bits: u8) -> Modulation {
        Modulation::ALL[bits as usize / 2 - 1]
    }

    /// Returns the coded bits per symbol.
    #[inline]
    pub const fn bits(self) -> u32 {
        2 + 2 * self as u32
    }
}
