//! Configured grants, type 1 (38.321 5.8.2): resources of the uplink that recur, with which a UE sends without asking.
//!
//! A cell gives each UE that it serves a place of its own: a slot of the period, and resource blocks. A UE with data sends
//! a block at its next occasion; one without skips it, and the resources stay unused. The process of a block follows from
//! its slot (5.4.1), and is not used for another before `configuredGrantTimer` expires, which the grant of a repetition
//! restarts. Repetitions and further data are granted dynamically, on other processes for new data; as many resource blocks
//! as an occasion has are never configured.
//! Their scheme is fixed, so that their outcomes do not move the outer loop of link adaptation.
//!
//! Deviations: a UE without a place is given one that becomes free at once, without an RRC message; a process whose
//! block waits for its repetition is not reused when the timer expires; a UE with a place sends no scheduling requests
//! (`logicalChannelSR-Mask`); a dynamic grant for the same slot replaces the occasion whichever symbols it has; one
//! block per occasion (`repK` = 1), and no type 2, which is activated by the control channel.

use channel::Direction;
use units::Span;

use crate::mac::blocks::Blocks;
use crate::rat::Rat;
use crate::slots::at_or_after;

/// Milliseconds after which the system frame numbers, from which processes follow, begin anew.
const FRAMES_MS: u64 = 10_240;

/// The configured grants of a cell's UEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfiguredGrant {
    /// Slots from one occasion of a UE to the next: a multiple of a TDD pattern.
    pub period: u16,
    /// Resource blocks of an occasion, at most half of the carrier.
    pub prbs: u16,
    /// The modulation and coding scheme, raised to the lowest that leaves room for data.
    pub mcs: u8,
    /// HARQ processes, from the first on, at least 1 and fewer than the carrier has.
    pub processes: u8,
    /// Periods from a block until its process may be used again (`configuredGrantTimer`).
    pub timer: u8,
}

impl ConfiguredGrant {
    /// Returns whether a cell of `rat` with `prbs` resource blocks can grant it.
    pub fn is_valid(&self, rat: Rat, prbs: u16) -> bool {
        (1..=prbs / 2).contains(&self.prbs)
            && self.mcs <= rat.formats().best_mcs(Direction::Uplink)
            && (1..rat.timing().processes()).contains(&self.processes)
            && rat.timing().configurable(self.period)
    }

    /// Returns the process of a block in `slot`, of which a millisecond has `per_ms`.
    #[inline]
    pub(crate) fn process(&self, slot: u64, per_ms: u64) -> u8 {
        (slot % (FRAMES_MS * per_ms) / u64::from(self.period) % u64::from(self.processes)) as u8
    }
}

/// The places of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) grant: ConfiguredGrant,
    /// The slots of the period that are all uplink.
    offsets: Box<[u16]>,
    /// How many UEs share a slot.
    per_slot: u16,
    /// Whether each place is taken: those of one slot follow each other.
    taken: Vec<bool>,
    /// Slots in a millisecond.
    pub(crate) per_ms: u64,
}

/// The place of a UE.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    index: usize,
    offset: u16,
    /// The first slot that it has: the resource blocks of those before may be granted to others.
    from: u64,
    pub(crate) first_prb: u16,
    /// The processes that are not for dynamic grants.
    pub(crate) processes: u8,
    /// The first slot in which each process may be used again.
    pub(crate) free_from: [u64; 16],
    /// Whether the calendar has an entry for the next occasion.
    pub(crate) noted: bool,
}

impl Places {
    /// Returns those of a cell of `rat` with `prbs` resource blocks.
    pub(crate) fn new(grant: ConfiguredGrant, rat: Rat, prbs: u16) -> Places {
        let formats = rat.formats();
        let whole = formats.elements(Direction::Uplink);
        let is_whole = |slot: &u16| formats.in_slot((*slot).into(), 0).elements(Direction::Uplink) == whole;
        Places {
            grant,
            offsets: (0..grant.period).filter(is_whole).collect(),
            // Room for a repetition is left.
            per_slot: prbs / grant.prbs - 1,
            taken: Vec::new(),
            per_ms: Span::from_millis(1).as_nanos() / rat.slot().as_nanos(),
        }
    }

    /// Returns a free place from slot `from` on, if there is one.
    pub(crate) fn take(&mut self, from: u64) -> Option<Place> {
        let slots = self.offsets.len();
        let index = self.taken.iter().position(|taken| !taken).unwrap_or(self.taken.len());
        // UEs are spread over the slots first.
        let (offset, row) = (*self.offsets.get(index % slots.max(1))?, (index / slots) as u16);
        if row >= self.per_slot {
            return None;
        }
        self.taken.resize(self.taken.len().max(index + 1), false);
        self.taken[index] = true;
        let first_prb = row * self.grant.prbs;
        let processes = self.grant.processes;
        Some(Place { index, offset, from, first_prb, processes, free_from: [0; 16], noted: false })
    }

    pub(crate) fn give_back(&mut self, place: &Place) {
        self.taken[place.index] = false;
    }

    /// Returns the resource blocks of `slot` that are configured.
    pub(crate) fn blocks(&self, slot: u64) -> Blocks {
        let at = (slot % u64::from(self.grant.period)) as u16;
        let Ok(first) = self.offsets.binary_search(&at) else { return Blocks::none() };
        let rows = (0u16..).zip(self.taken.iter().skip(first).step_by(self.offsets.len()));
        let taken = rows.filter(|(_, taken)| **taken);
        taken.fold(Blocks::none(), |all, (row, _)| all.and(Blocks::run(row * self.grant.prbs, self.grant.prbs)))
    }
}

impl Place {
    /// Starts `configuredGrantTimer` of `process`, if it has one, in `slot`.
    pub(crate) fn start_timer(&mut self, grant: &ConfiguredGrant, process: u8, slot: u64) {
        if process < self.processes {
            self.free_from[usize::from(process)] = slot + u64::from(grant.timer) * u64::from(grant.period);
        }
    }

    /// Returns the first occasion from `slot` on.
    #[inline]
    pub(crate) fn next(&self, grant: &ConfiguredGrant, slot: u64) -> u64 {
        at_or_after(slot.max(self.from), grant.period.into(), self.offset.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duplex, Nr, Pattern};
    use channel::tables::nr::Numerology;

    const GRANT: ConfiguredGrant = ConfiguredGrant { period: 10, prbs: 20, mcs: 5, processes: 3, timer: 2 };

    #[test]
    fn processes_follow_from_the_slot_and_begin_anew_with_the_frames() {
        // 38.321 5.4.1 with a period of 10 slots of 0.5 ms: floor(symbol / 140) modulo 3.
        assert_eq!([0, 9, 10, 20, 30, 47].map(|slot| GRANT.process(slot, 2)), [0, 0, 1, 2, 0, 1]);
        // 20,480 slots are 1024 frames.
        assert_eq!([20_479, 20_480].map(|slot| GRANT.process(slot, 2)), [1, 0]);
    }

    #[test]
    fn places_lie_in_uplink_slots_and_do_not_overlap() {
        let rat = Rat::Nr(Nr::new(Numerology::Khz30, Duplex::Tdd(Pattern::DDDSU)));
        let mut places = Places::new(GRANT, rat, 65);
        let taken: Vec<Place> = core::iter::from_fn(|| places.take(0)).collect();
        let at: Vec<_> = taken.iter().map(|place| (place.offset, place.first_prb)).collect();
        // Slots 4 and 9 of the period, with room for two UEs of 20 of 65 resource blocks, and 20 left.
        assert_eq!(at, [(4, 0), (9, 0), (4, 20), (9, 20)]);
        assert_eq!([3, 4, 14, 19].map(|slot| places.blocks(slot).count()), [0, 40, 40, 40]);
        places.give_back(&taken[0]);
        assert_eq!(places.blocks(4), Blocks::run(20, 20));
        let place = places.take(15).unwrap();
        assert_eq!((place.offset, place.first_prb), (4, 0));
        assert_eq!([3, 14, 25].map(|slot| place.next(&GRANT, slot)), [24, 24, 34], "none before slot 15");
    }
}
