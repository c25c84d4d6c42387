//! NR: delays of grants, data and feedback, with the processing times of the UE (38.214 5.3, 6.4).

use core::ops::Range;

use units::Span;

use super::{Duplex, Nr, Pattern};

/// The timing of an NR cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing(pub(crate) Nr);

impl Timing {
    /// Returns the length of a slot.
    #[inline]
    pub(crate) fn slot(&self) -> Span {
        self.0.numerology.slot()
    }

    /// Returns the number of HARQ processes of a direction.
    #[inline]
    pub(crate) fn processes(&self) -> u8 {
        self.0.processes
    }

    /// Returns the maximum decoding time for a block to be acknowledged in time.
    pub(crate) fn longest_decoding(&self) -> u64 {
        self.0.k1.into()
    }

    /// Returns whether grants that recur after `period` slots can be configured.
    pub(crate) fn configurable(&self, period: u16) -> bool {
        match self.0.duplex {
            Duplex::Fdd => period > 0,
            Duplex::Tdd(Pattern { slots, uplink_slots, .. }) => {
                period > 0 && uplink_slots > 0 && period.is_multiple_of(slots.into())
            }
            Duplex::Flexible => false,
        }
    }

    /// Returns whether `slot` has a control channel of the downlink.
    #[inline]
    pub(crate) fn has_control(&self, slot: u64) -> bool {
        self.0.has_control(slot)
    }

    /// Returns the number of slots after which their directions repeat.
    #[inline]
    pub(crate) fn pattern_slots(&self) -> u64 {
        if let Duplex::Tdd(pattern) = self.0.duplex { pattern.slots.into() } else { 1 }
    }

    /// Returns whether `slot` has a control channel of the uplink.
    #[inline]
    pub(crate) fn has_uplink_control(&self, slot: u64) -> bool {
        self.0.has_uplink_control(slot)
    }

    /// Returns the first slot from `slot` on with a control channel of the uplink.
    #[inline]
    fn uplink_control_from(&self, slot: u64) -> u64 {
        match self.0.duplex {
            Duplex::Fdd | Duplex::Flexible => slot,
            Duplex::Tdd(_) => (slot..).find(|slot| self.has_uplink_control(*slot)).unwrap_or(slot),
        }
    }

    /// Returns the slot in which a downlink block of `slot` is acknowledged.
    #[inline]
    pub(crate) fn acknowledged(&self, slot: u64) -> u64 {
        self.uplink_control_from(slot + u64::from(self.0.k1))
    }

    /// Returns the slots whose uplink is granted in `slot`: those for which it is the last one early enough.
    #[inline]
    pub(crate) fn granted_in(&self, slot: u64) -> Range<u64> {
        let first = slot + u64::from(self.0.k2);
        match self.0.duplex {
            Duplex::Fdd | Duplex::Flexible => first..first + 1,
            Duplex::Tdd(_) if !self.has_control(slot) => first..first,
            Duplex::Tdd(_) => {
                let next = (slot + 1..).find(|slot| self.has_control(*slot)).unwrap_or(slot + 1);
                first..next + u64::from(self.0.k2)
            }
        }
    }

    /// Returns the first slot whose uplink cannot have been granted before `slot`.
    pub(crate) fn ungranted_from(&self, slot: u64) -> u64 {
        let next = (slot..).find(|slot| self.has_control(*slot)).unwrap_or(slot);
        next + u64::from(self.0.k2)
    }
}

#[cfg(test)]
mod tests {
    use channel::tables::nr::Numerology;

    use super::*;

    fn tdd(numerology: Numerology, pattern: Pattern) -> Timing {
        Timing(Nr::new(numerology, Duplex::Tdd(pattern)))
    }

    #[test]
    fn each_uplink_slot_is_granted_once_and_early_enough() {
        for (numerology, pattern) in [
            (Numerology::Khz30, Pattern::DDDSU),
            (Numerology::Khz30, Pattern::DDDDDDDSUU),
            (Numerology::Khz120, Pattern::DDDSU),
        ] {
            let nr = tdd(numerology, pattern);
            let mut granted = Vec::new();
            for slot in 0..40 {
                for target in nr.granted_in(slot) {
                    assert!(nr.has_control(slot) && target >= slot + u64::from(nr.0.k2));
                    granted.push(target);
                }
            }
            let first = u64::from(nr.0.k2);
            assert!(granted.iter().copied().eq(first..first + granted.len() as u64), "{granted:?}");
        }
    }

    #[test]
    fn blocks_are_acknowledged_in_the_next_uplink_after_k1() {
        let nr = tdd(Numerology::Khz120, Pattern::DDDSU);
        // K1 is 2; slots 3 and 4 of the pattern have uplink symbols.
        let slots: Vec<u64> = (0..6).map(|slot| nr.acknowledged(slot)).collect();
        assert_eq!(slots, [3, 3, 4, 8, 8, 8]);
    }
}
