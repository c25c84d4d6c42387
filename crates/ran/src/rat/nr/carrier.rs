//! NR: the division of a carrier.

use super::Nr;
use crate::mac::blocks::Blocks;
use crate::rat::grid::{Grid, Sizes};

/// Allocation type 1: any resource blocks in a row.
pub(crate) fn grid(nr: &Nr, prbs: u16) -> Grid {
    Grid {
        prbs,
        group: 1,
        groups: prbs,
        shared: Blocks::run(0, prbs),
        sizes: Sizes::Any,
        control_elements: control_elements(nr, prbs),
    }
}

/// Returns the control channel elements of a slot: six resource blocks of a symbol each (38.211 7.3.2.2), in a control
/// resource set as wide as the carrier.
fn control_elements(nr: &Nr, prbs: u16) -> u32 {
    u32::from(prbs / 6) * u32::from(nr.control)
}
