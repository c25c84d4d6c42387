//! The tables of the standards, as constants, a module for each radio access technology.
//!
//! The same numbers lie as CSV in this crate's `data` folder, and a test compares every entry.

mod information;
pub mod lte;

pub(crate) use information::{ENTRIES, FIRST_OCTAVE, INFORMATION, STEPS};

/// Which way data goes.
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
    /// 2 bits a symbol.
    Qpsk,
    /// 4 bits a symbol.
    Qam16,
    /// 6 bits a symbol.
    Qam64,
}

impl Modulation {
    /// All of them, from the most robust.
    pub const ALL: [Modulation; 3] = [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64];

    /// Coded bits of a symbol.
    #[inline]
    pub const fn bits(self) -> u32 {
        2 + 2 * self as u32
    }
}
