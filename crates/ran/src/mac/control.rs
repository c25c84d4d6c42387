//! The room for assignments and grants in the control channel (PDCCH).
//!
//! Each assignment of a downlink block, a retransmission's too, and each grant of an uplink block takes control channel
//! elements. Both directions share them: each may use half of them, and what the other leaves. LTE's repetitions in the
//! uplink, which the UE makes without a grant (36.213 8.0), and configured grants take none.
//!
//! In TDD, the grants of a pattern's uplink slots share the room of its control channels, and those for a short slot are
//! made first. Which grants it makes is up to the gNB (38.300 10.1, 38.321 5.4.1); here, a short slot gets what the whole
//! slots after it leave. Each is expected to need as many grants as the last ones did to fill the carrier, or to serve all
//! UEs that waited. Whole slots for which there are not enough have equal shares.
//!
//! Deviations: all take the same number of elements ([`AGGREGATION`]), whatever the UE's channel; none is blocked by those of
//! other UEs in its search space; control regions do not adapt to the load. In TDD, the grants for an uplink slot are all made
//! in the last slot that is early enough, but have the room of all control channels of the pattern up to it: a gNB sends
//! some of them earlier.

use channel::Direction;

use crate::rat::Rat;
use crate::slots::at_or_after;

/// Control channel elements of an assignment. Assumed: with two, formats 0 and 1 of LTE (36.212 5.3.3) and formats 0_1 and 1_1
/// of NR (38.212 7.3.1) have code rates of about a third, the codes' own.
pub(crate) const AGGREGATION: u32 = 2;

/// The control channels of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    /// Assignments and grants in a slot.
    most: u32,
    /// For each slot of a TDD pattern; empty if each slot grants its own.
    pattern: Box<[(Place, Target)]>,
    /// The slot at the end of the period in which `used` counts the assignments and grants.
    until: u64,
    used: u32,
    /// Grants that a whole slot of the uplink is expected to need.
    needed: u32,
}

/// If a whole slot needs fewer grants than expected, the expectation falls by this part of the difference, rounded up, so that
/// the next ones rarely lack grants although their needs vary. Ours.
const DECAY: u32 = 8;

/// A slot of a TDD pattern. The room for grants is counted over periods that end with the last slot of a pattern that grants
/// uplink data.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Slots until the end of the period.
    ahead: u8,
    /// Control channels of the period up to this slot, and in all.
    so_far: u8,
    all: u8,
}

/// A slot of a TDD pattern whose uplink is granted.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Whether no slot has more of the uplink.
    is_whole: bool,
    /// Such slots that are granted after it in the same period.
    after: u8,
}

impl Control {
    /// Returns those of a carrier of `rat` with `prbs` resource blocks, on which `most` assignments fit into a slot, or as many
    /// as its control channel elements suffice for.
    pub(crate) fn new(rat: Rat, prbs: u16, most: Option<u16>) -> Control {
        let fit = || rat.grid(prbs).control_elements / AGGREGATION;
        let most = if rat.wants().limits_control() { most.map_or_else(fit, u32::from).max(2) } else { u32::MAX / 512 };
        Control { most, pattern: pattern(rat), until: u64::MAX, used: 0, needed: 0 }
    }

    /// Returns how many blocks of the downlink can be assigned in `slot`, in which `uplink` UEs have data to send.
    #[inline]
    pub(crate) fn for_downlink(&mut self, slot: u64, uplink: usize) -> usize {
        let all = self.begin(slot).all;
        (self.most - self.reserved(all, uplink)) as usize
    }

    /// Returns how many grants the downlink leaves room for in each of the `all` control channels of a period, if `uplink`
    /// UEs have data to send.
    #[inline]
    fn reserved(&self, all: u8, uplink: usize) -> u32 {
        (uplink as u32).div_ceil(all.into()).min(self.most / 2)
    }

    /// Returns how many grants for the slot `sent` can be made in `slot`, if `uplink` UEs have data to send: those that the
    /// whole slots after it are not expected to need, beyond what the downlink leaves them in later control channels.
    #[inline]
    pub(crate) fn for_uplink(&mut self, (slot, sent): (u64, u64), uplink: usize) -> usize {
        let Place { so_far, all, .. } = self.begin(slot);
        let left = (self.most * u32::from(so_far)).saturating_sub(self.used);
        let Some(Target { is_whole, after }) = self.target(sent) else { return left as usize };
        let later = self.reserved(all, uplink) * u32::from(all - so_far);
        let needed = (self.needed * u32::from(after)).saturating_sub(later);
        let share = left * u32::from(after) / (u32::from(after) + 1);
        let kept = if is_whole { needed.min(share) } else { needed };
        left.saturating_sub(kept) as usize
    }

    /// Returns whether the slot `sent` carries as much of the uplink as any.
    #[inline]
    pub(crate) fn is_whole(&self, sent: u64) -> bool {
        self.target(sent).is_none_or(|target| target.is_whole)
    }

    /// Returns the place of the slot `sent` among those that are granted, `None` if all are alike.
    #[inline]
    fn target(&self, sent: u64) -> Option<Target> {
        let slots = self.pattern.len() as u64;
        (slots > 0).then(|| self.pattern[(sent % slots) as usize].1)
    }

    /// Notes how many grants a whole slot of the uplink needed, whether it got them or not.
    #[inline]
    pub(crate) fn note_needed(&mut self, grants: usize) {
        let grants = grants as u32;
        self.needed = grants.max(self.needed - self.needed.saturating_sub(grants).div_ceil(DECAY));
    }

    /// Counts assignments or grants in `slot`.
    #[inline]
    pub(crate) fn take(&mut self, slot: u64, count: usize) {
        self.begin(slot);
        self.used += count as u32;
    }

    /// Begins to count anew if a period has ended before `slot`; returns the place of the slot.
    #[inline]
    fn begin(&mut self, slot: u64) -> Place {
        let place = match self.pattern.len() {
            0 => Place { ahead: 0, so_far: 1, all: 1 },
            slots => self.pattern[(slot % slots as u64) as usize].0,
        };
        let until = slot + u64::from(place.ahead);
        if self.until != until {
            (self.until, self.used) = (until, 0);
        }
        place
    }
}

/// Returns [`Control::pattern`].
fn pattern(rat: Rat) -> Box<[(Place, Target)]> {
    let (timing, formats) = (rat.timing(), rat.formats());
    let slots = timing.pattern_slots();
    if slots == 1 {
        return Box::new([]);
    }
    let carries = |sent| formats.in_slot(sent, 0).carries(Direction::Uplink);
    let is_whole = |sent: &u64| carries(*sent) && formats.in_slot(*sent, 0).is_longest(Direction::Uplink);
    let last = (0..slots).rev().find(|slot| timing.granted_in(*slot).any(carries)).unwrap_or(slots - 1);
    let end = timing.granted_in(last).last().unwrap_or(last);
    let target = |sent: u64| {
        let after = (sent + 1..=at_or_after(sent, slots, end)).filter(is_whole).count() as u8;
        Target { is_whole: is_whole(&sent), after }
    };
    let place = |slot: u64| {
        let until = at_or_after(slot, slots, last);
        let channels =
            |to: u64| (until + 1 - slots..=to).filter(|slot| timing.carries_grants(*slot)).count().max(1) as u8;
        Place { ahead: (until - slot) as u8, so_far: channels(slot), all: channels(until) }
    };
    // The second pattern: the period of its first slot begins in the first one.
    (slots..2 * slots).map(|slot| (place(slot), target(slot))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duplex, Nr, Pattern};
    use channel::tables::nr::Numerology;

    fn nr(duplex: Duplex) -> Rat {
        Rat::Nr(Nr::new(Numerology::Khz30, duplex))
    }

    #[test]
    fn control_channels_have_the_elements_of_the_standards() {
        // Two symbols have 5 resource element groups in each resource block, of which PCFICH takes 4 and PHICH 3 for each eight
        // resource blocks; nine make an element: (30 - 4 - 3) / 9, (125 - 4 - 12) / 9, and so on.
        let lte = [6, 15, 25, 50, 75, 100].map(|prbs| Rat::Lte.grid(prbs).control_elements);
        assert_eq!(lte, [2, 7, 12, 25, 37, 50]);
        // Six resource blocks of a symbol make an element.
        let symbols = |symbols| Rat::Nr(Nr::new(Numerology::Khz30, Duplex::Fdd).with_control(symbols, 1));
        assert_eq!([1, 2, 3].map(|n| symbols(n).grid(106).control_elements), [17, 34, 51]);
        assert_eq!([24, 273].map(|prbs| symbols(1).grid(prbs).control_elements), [4, 45]);
    }

    #[test]
    fn each_direction_has_half_and_what_the_other_leaves() {
        let mut control = Control::new(nr(Duplex::Fdd), 106, None);
        assert_eq!([0, 1, 3, 40].map(|uplink| control.for_downlink(7, uplink)), [8, 7, 5, 4]);
        control.take(7, 3);
        assert_eq!(control.for_uplink((7, 8), 40), 5);
        control.take(7, 5);
        assert_eq!((control.for_uplink((7, 8), 40), control.for_uplink((8, 9), 40)), (0, 8));
        let least = |prbs, most| Control::new(nr(Duplex::Fdd), prbs, most).for_downlink(0, 9);
        assert_eq!((least(6, None), least(106, Some(2)), least(106, Some(20))), (1, 1, 11));
    }

    #[test]
    fn grants_have_the_room_of_the_control_channels_of_their_pattern() {
        // Slots 0 to 3 have a control channel, and slot 3 grants slot 4.
        let mut control = Control::new(nr(Duplex::Tdd(Pattern::DDDSU)), 106, None);
        assert_eq!((10..14).map(|slot| control.for_downlink(slot, 8)).collect::<Vec<_>>(), [6; 4]);
        (10..14).for_each(|slot| control.take(slot, 6));
        assert_eq!(control.for_uplink((13, 14), 8), 4 * 8 - 4 * 6);
        control.take(13, 8);
        assert_eq!((control.for_uplink((18, 19), 8), control.for_downlink(15, 0)), (32, 8));
        // Slot 6 grants slot 7, and slot 7 grants slots 8 and 9.
        let mut long = Control::new(nr(Duplex::Tdd(Pattern::DDDDDDDSUU)), 106, None);
        assert_eq!([6, 7, 16, 17].map(|slot| long.for_uplink((slot, slot + 1), 1)), [56, 64, 56, 64]);
    }

    #[test]
    fn a_short_slot_gets_the_grants_that_the_whole_slots_after_it_leave() {
        let mut control = Control::new(nr(Duplex::Tdd(Pattern::DDDDDDDSUU)), 106, None);
        // Slots 0 to 6 have 56, and slot 7 grants slots 8 and 9. None needed any so far.
        assert_eq!(control.for_uplink((6, 7), 40), 56);
        control.note_needed(20);
        // The downlink leaves the 40 UEs at least four grants in slot 7, and one UE one of them.
        assert_eq!([40, 1].map(|ues| control.for_uplink((16, 17), ues)), [56 - (2 * 20 - 4), 56 - (2 * 20 - 1)]);
        control.take(16, 10);
        assert_eq!(control.for_uplink((16, 17), 40), 10);
        // Slot 18 leaves slot 19 the 20 that it needs, and half of them if that is less.
        assert_eq!([18, 19].map(|sent| control.for_uplink((17, sent), 40)), [54 - 20, 54]);
        control.note_needed(40);
        assert_eq!(control.for_uplink((26, 27), 40), 0);
        assert_eq!([28, 29].map(|sent| control.for_uplink((27, sent), 40)), [32, 64]);
        // Needs that become less are forgotten slowly.
        let mut kept = || {
            control.note_needed(38);
            control.needed
        };
        assert_eq!([kept(), kept(), kept()], [39, 38, 38]);
        // No slot is longer than this special one, which slot 2 grants.
        let pattern = Pattern { slots: 4, uplink_slots: 0, uplink_symbols: 4, downlink_symbols: 6, ..Pattern::DDDSU };
        let mut alone = Control::new(nr(Duplex::Tdd(pattern)), 106, None);
        alone.note_needed(20);
        assert!(alone.is_whole(7) && !control.is_whole(7));
        assert_eq!(alone.for_uplink((6, 7), 40), 4 * 8);
    }
}
