//! The radio of a UE.

use channel::{Air, Random, Sinr};
use units::Time;

use crate::mac::cell::Cell;
use crate::mac::interference::Interference;

/// See the module.
pub(crate) struct Phy {
    pub(crate) air: Air,
    /// The version of the loads in `air`.
    loads: u32,
    /// Random stream for decoding.
    pub(crate) random: Random,
    /// The SINR of its last transmission or sounding.
    pub(crate) up_sinr: Sinr,
    /// Whether its channel changes only when its SINR or a cell's background is set.
    pub(crate) is_constant: bool,
}

impl Phy {
    /// Creates the radio of a UE whose channel `is_constant`, or may vary.
    pub(crate) fn new(air: Air, random: Random, is_constant: bool) -> Phy {
        Phy { air, loads: 0, random, up_sinr: Sinr::default(), is_constant }
    }

    /// Brings the loads of the cells up to date; returns whether they have changed.
    #[inline]
    pub(crate) fn hear(&mut self, interference: &Interference) -> bool {
        let is_new = self.loads != interference.version();
        if is_new {
            self.loads = interference.version();
            interference.load(&mut self.air);
        }
        is_new
    }

    /// Sets the loads that the cells have at `now`, until the next call of [`Phy::hear`].
    pub(crate) fn hear_at(&mut self, now: Time, interference: &Interference, cells: &[Cell]) {
        interference.foresee(&mut self.air, now, cells);
        self.loads = interference.version().wrapping_sub(1);
    }
}
