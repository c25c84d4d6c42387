//! The occasions of scheduling requests.

use crate::rat::Timing;
use crate::slots::at_or_after;

/// The slots in which the UEs of a cell may send scheduling requests: in each period, a UE has the slot at its offset
/// (`periodicityAndOffset` of 38.331 `SchedulingRequestResourceConfig`, 38.213 9.2.4; 36.213 10.1.5). UEs only have offsets
/// that are uplink slots, and are spread over them. If the period is not a multiple of a TDD pattern, the slots at an offset
/// that are not uplink slots are no occasions (38.213 11.1).
#[derive(Clone, Debug)]
pub(crate) struct Occasions {
    period: u64,
    /// The offsets with occasions, in ascending order.
    offsets: Box<[u16]>,
}

impl Occasions {
    /// Returns those of a cell with a period of `period` slots.
    pub(crate) fn new(timing: Timing, period: u16) -> Occasions {
        let period = period.max(1);
        let occurs = |offset: &u16| occasion(timing, u64::from(*offset), u64::from(period)).is_some();
        Occasions { period: period.into(), offsets: (0..period).filter(occurs).collect() }
    }

    /// Returns the first occasion of `ue` at or after `slot`.
    #[inline]
    pub(crate) fn next(&self, timing: Timing, ue: u32, slot: u64) -> u64 {
        let offset = self.offsets[ue as usize % self.offsets.len()];
        let nominal = at_or_after(slot, self.period, offset.into());
        occasion(timing, nominal, self.period).expect("an offset has occasions")
    }
}

/// Returns the first slot from `slot` on, in steps of `period`, in which requests can be sent, if there is one.
#[inline]
fn occasion(timing: Timing, slot: u64, period: u64) -> Option<u64> {
    // The steps reach the same slots of the pattern again after as many as it has.
    (0..timing.pattern_slots()).map(|steps| slot + steps * period).find(|slot| timing.carries_requests(*slot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duplex, Nr, Pattern, Rat};
    use channel::tables::nr::Numerology;

    /// The occasions of `ue` in the first `slots` slots.
    fn occasions(rat: Rat, period: u16, ue: u32, slots: u64) -> Vec<u64> {
        let timing = rat.timing();
        let occasions = Occasions::new(timing, period);
        let mut next: Vec<u64> =
            (0..slots).map(|slot| occasions.next(timing, ue, slot)).filter(|at| *at < slots).collect();
        next.dedup();
        next
    }

    #[test]
    fn opportunities_come_once_a_period_at_the_ues_offset() {
        assert_eq!(occasions(Rat::Lte, 5, 7, 20), [2, 7, 12, 17]);
    }

    #[test]
    fn occasions_are_uplink_slots_at_the_ues_offset() {
        let tdd = |pattern| Rat::Nr(Nr::new(Numerology::Khz30, Duplex::Tdd(pattern)));
        let dddsu = |period, ue| occasions(tdd(Pattern::DDDSU), period, ue, 40);
        // The special slot 3 and slot 4 have control symbols of the uplink.
        assert_eq!(
            [0, 1, 2, 3, 4].map(|ue| dddsu(10, ue)[..3].to_vec()),
            [[3, 13, 23], [4, 14, 24], [8, 18, 28], [9, 19, 29], [3, 13, 23]]
        );
        assert_eq!(dddsu(1, 5)[..6], [3, 4, 8, 9, 13, 14]);
        // Slots 0, 8, 16, 24 and 32 of offset 0: only the second and the fourth are uplink slots.
        assert_eq!((dddsu(8, 0), dddsu(8, 1)), (vec![8, 24], vec![9, 33]));
        let long = |ue| occasions(tdd(Pattern::DDDDDDDSUU), 10, ue, 20);
        assert_eq!([0, 1, 2, 3].map(long), [[7, 17], [8, 18], [9, 19], [7, 17]]);
    }
}
