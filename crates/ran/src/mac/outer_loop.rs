//! The outer loop of [link adaptation](super::adaptation).

/// Target of the outer loop: one failure in this many first transmissions.
const FIRST_TRANSMISSIONS_PER_FAILURE: f32 = 10.0;
/// Range of the outer loop in dB.
const RANGE_DB: f32 = 10.0;

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
    /// The block was first sent in a short slot ([`crate::Rat::is_short`]).
    Small,
}

/// The outer loop of one direction of one UE.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OuterLoop {
    pub(crate) offset_db: f32,
    /// A further offset in short slots, not above zero.
    pub(crate) small_db: f32,
}

impl OuterLoop {
    /// The outcome of a first transmission.
    #[inline]
    pub(crate) fn outcome(&mut self, step_db: f32, chosen: Chosen, decoded: bool) {
        let change = if decoded { step_db / (FIRST_TRANSMISSIONS_PER_FAILURE - 1.0) } else { -step_db };
        match (chosen, decoded) {
            (Chosen::Small, _) => self.small_db = (self.small_db + change).clamp(-RANGE_DB, 0.0),
            (Chosen::Raised, false) => {}
            (Chosen::Highest, true) if self.offset_db >= 0.0 => {}
            _ => self.offset_db = (self.offset_db + change).clamp(-RANGE_DB, RANGE_DB),
        }
    }

    /// Returns the offset in dB of the SINR that is assumed in a slot.
    #[inline]
    pub(crate) fn offset_in(&self, is_short: bool) -> f32 {
        self.offset_db + if is_short { self.small_db } else { 0.0 }
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
                let decoded = outer.offset_db <= 1.7;
                outer.outcome(0.5, Chosen::Freely, decoded);
                !decoded
            })
            .count();
        assert!((1900..2100).contains(&failures), "{failures}");
    }

    #[test]
    fn the_outer_loop_does_not_wind_up_at_the_best_scheme() {
        let mut outer = OuterLoop::default();
        for _ in 0..10_000 {
            outer.outcome(0.5, Chosen::Highest, true);
        }
        assert_eq!(outer.offset_db, 0.0);
    }

    #[test]
    fn a_block_that_link_adaptation_did_not_choose_does_not_lower_the_offset() {
        let mut outer = OuterLoop { offset_db: -3.0, ..OuterLoop::default() };
        (0..100).for_each(|_| outer.outcome(0.5, Chosen::Raised, false));
        (0..4).for_each(|_| outer.outcome(0.5, Chosen::Small, false));
        assert_eq!((outer.offset_db, outer.offset_in(true)), (-3.0, -5.0));
        (0..100).for_each(|_| outer.outcome(0.5, Chosen::Small, true));
        assert_eq!((outer.offset_db, outer.offset_in(true)), (-3.0, -3.0));
        // Its success shows that the channel is better than assumed: an offset that raises all schemes is not for ever.
        (0..100).for_each(|_| outer.outcome(0.5, Chosen::Raised, true));
        assert!(outer.offset_db > 2.0, "{}", outer.offset_db);
    }
}
