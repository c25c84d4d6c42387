//! LTE: the division of a carrier.

use channel::tables::lte as tables;

use crate::mac::blocks::Blocks;
use crate::rat::grid::{Grid, Sizes};

/// Downlink allocation of type 0 (36.213 7.1.6.1). The uplink's control channel occupies the edges: one block of 25 on
/// both sides together, an estimate of operators' configurations.
pub(crate) fn grid(prbs: u16) -> Grid {
    let group = tables::rbg_size(prbs);
    let control = prbs / 25;
    Grid {
        prbs,
        group,
        groups: prbs.div_ceil(group),
        shared: Blocks::run(control / 2, prbs - control),
        sizes: Sizes::Smooth,
        control_elements: control_elements(prbs),
    }
}

/// Symbols of the control region, which [`channel::phy::DOWNLINK_ELEMENTS`] leaves out.
const CONTROL_SYMBOLS: u32 = 2;
/// Resource element groups of a resource block in the control region: two in its first symbol, which has reference signals,
/// and three in each further one (36.211 6.2.4).
const CONTROL_GROUPS: u32 = 2 + 3 * (CONTROL_SYMBOLS - 1);
/// Resource element groups of PCFICH (36.211 6.7.4), and of a PHICH group (6.9.3).
const PCFICH_GROUPS: u32 = 4;
const PHICH_GROUPS: u32 = 3;
/// Resource element groups of a control channel element (36.211 6.8.1).
const ELEMENT_GROUPS: u32 = 9;

/// Returns the control channel elements of a subframe: what PCFICH and PHICH leave of the control region, with a PHICH group
/// for each eight resource blocks (N_g = 1, 36.211 6.9).
fn control_elements(prbs: u16) -> u32 {
    let prbs = u32::from(prbs);
    let others = PCFICH_GROUPS + PHICH_GROUPS * prbs.div_ceil(8);
    (CONTROL_GROUPS * prbs).saturating_sub(others) / ELEMENT_GROUPS
}
