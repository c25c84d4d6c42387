//! LTE with the idealisations of ns-3's LTE module: see [`super::Rat::LteIdeal`].

use super::grid::{Grid, Sizes};
use super::lte::carrier;
use crate::mac::blocks::Blocks;

/// The least resource block groups that ns-3's round robin grants in the downlink.
pub(crate) const LEAST_GROUPS: u16 = 1;
/// The least resource blocks that ns-3 grants in the uplink.
pub(crate) const LEAST_PRBS: u16 = 3;

/// ns-3 leaves out the last group if it is smaller than the others, and has no control region in the uplink.
pub(crate) fn grid(prbs: u16) -> Grid {
    let lte = carrier::grid(prbs);
    Grid { groups: lte.prbs / lte.group, shared: Blocks::run(0, lte.prbs), sizes: Sizes::Any, ..lte }
}
