//! The outer loop of [link adaptation](super::adaptation).
//!
//! Each number of layers (rank) has its own offset. A CQI stands for a range of SINRs, up to 4 dB wide, and the reports for two
//! ranks can be at different places in their ranges: one offset for both would let failures with the higher rank lower
//! the schemes of the other. The offset of a rank that is not used rises slowly with the successes of the one that is, so
//! that it is tried again.

/// Target of the outer loop: one failure in this many first transmissions.
const FIRST_TRANSMISSIONS_PER_FAILURE: f32 = 10.0;
/// Range of the outer loop in dB.
const RANGE_DB: f32 = 10.0;
/// The rise of the offsets of other ranks, as a share of that of the rank used. One failed trial in ninety blocks pays
/// for it: fitted, so that a rank which does not fit costs about 1 %.
const OTHERS: f32 = 0.1;
/// How far the offset of a rank that is not used can rise above that of the one that is: the width in dB of most CQIs' ranges.
const SPREAD_DB: f32 = 2.0;
/// The maximum number of layers.
const LAYERS: usize = 4;

/// How the scheme of a block compares with link adaptation's choice for the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// It is that choice.
    #[default]
    Freely,
    /// It is the highest scheme that the block may have: on a better channel, it would be the same.
    Highest,
    /// It was raised above that choice, so that headers leave room for data.
    Raised,
    /// The block was first sent in a short slot ([`crate::rat::Formats::is_short`]).
    Small,
}

/// The outer loop of one direction of one UE.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OuterLoop {
    /// The offset of blocks with one to four layers.
    pub(crate) offsets_db: [f32; LAYERS],
    /// A further offset in short slots, not above zero.
    pub(crate) small_db: f32,
}

impl OuterLoop {
    /// The outcome of a first transmission on `layers`.
    #[inline]
    pub(crate) fn outcome(&mut self, step_db: f32, (layers, chosen): (u8, Chosen), decoded: bool) {
        let change = if decoded { step_db / (FIRST_TRANSMISSIONS_PER_FAILURE - 1.0) } else { -step_db };
        let used = usize::from(layers) - 1;
        let offset = &mut self.offsets_db[used];
        match (chosen, decoded) {
            (Chosen::Small, _) => {
                self.small_db = (self.small_db + change).clamp(-RANGE_DB, 0.0);
                return;
            }
            (Chosen::Raised, false) => {}
            (Chosen::Highest, true) if *offset >= 0.0 => {}
            _ => *offset = (*offset + change).clamp(-RANGE_DB, RANGE_DB),
        }
        if decoded {
            let most = (*offset + SPREAD_DB).min(RANGE_DB);
            for (rank, other) in self.offsets_db.iter_mut().enumerate() {
                if rank != used && *other < most {
                    *other = (*other + OTHERS * change).min(most);
                }
            }
        }
    }

    /// Returns the offset in dB of the SINR that is assumed for one layer.
    #[inline]
    pub(crate) fn offset_db(&self) -> f32 {
        self.offsets_db[0]
    }

    /// Returns the offsets in dB of the SINRs that are assumed in a slot for one to four layers.
    #[inline]
    pub(crate) fn offsets_in(&self, is_short: bool) -> [f32; LAYERS] {
        let small_db = if is_short { self.small_db } else { 0.0 };
        self.offsets_db.map(|offset_db| offset_db + small_db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_loop_settles_at_one_failure_in_ten() {
        // A channel on which a block fails whenever the assumed SINR is above the true one.
        let mut outer = OuterLoop::default();
        let failures = (0..20_000)
            .filter(|_| {
                let decoded = outer.offset_db() <= 1.7;
                outer.outcome(0.5, (1, Chosen::Freely), decoded);
                !decoded
            })
            .count();
        assert!((1900..2100).contains(&failures), "{failures}");
    }

    #[test]
    fn the_outer_loop_does_not_wind_up_at_the_best_scheme() {
        let mut outer = OuterLoop::default();
        for _ in 0..10_000 {
            outer.outcome(0.5, (1, Chosen::Highest), true);
        }
        assert_eq!(outer.offset_db(), 0.0);
    }

    #[test]
    fn a_block_that_link_adaptation_did_not_choose_does_not_lower_the_offset() {
        let mut outer = OuterLoop { offsets_db: [-3.0; LAYERS], ..OuterLoop::default() };
        (0..100).for_each(|_| outer.outcome(0.5, (1, Chosen::Raised), false));
        (0..4).for_each(|_| outer.outcome(0.5, (1, Chosen::Small), false));
        assert_eq!((outer.offset_db(), outer.offsets_in(true)[0]), (-3.0, -5.0));
        (0..100).for_each(|_| outer.outcome(0.5, (1, Chosen::Small), true));
        assert_eq!((outer.offset_db(), outer.offsets_in(true)[0]), (-3.0, -3.0));
        // Its success shows that the channel is better than assumed: an offset that raises all schemes is not for ever.
        (0..100).for_each(|_| outer.outcome(0.5, (1, Chosen::Raised), true));
        assert!(outer.offset_db() > 2.0, "{}", outer.offset_db());
    }

    #[test]
    fn failures_with_two_layers_leave_the_schemes_of_one_layer_alone() {
        let mut outer = OuterLoop { offsets_db: [2.0; LAYERS], ..OuterLoop::default() };
        (0..30).for_each(|_| outer.outcome(0.1, (2, Chosen::Freely), false));
        assert!(outer.offset_db() == 2.0 && (outer.offsets_db[1] + 1.0).abs() < 1e-5, "{outer:?}");
        // Two layers are tried again, but not as if the channel were far better than with one.
        (0..90).for_each(|_| outer.outcome(0.1, (1, Chosen::Highest), true));
        assert!((outer.offsets_db[1] + 0.9).abs() < 0.01, "{outer:?}");
        (0..10_000).for_each(|_| outer.outcome(0.1, (1, Chosen::Highest), true));
        assert_eq!(outer.offsets_db, [2.0, 4.0, 4.0, 4.0]);
    }
}
