//! NR: 38.211, 38.213, 38.214, 38.321.
//!
//! A slot has fourteen symbols. Its first [`Nr::control`] symbols carry the cell's control channel, and the last
//! [`Nr::uplink_control`] those of the UEs; what lies between is for data of the slot's direction. The slots of either
//! direction follow from [`Duplex`]. Grants, data and feedback are as far apart as the processing times of the UE
//! require (38.214 5.3, 6.4, capability 1), and further where the slot at that distance has the other direction.
//!
//! HARQ is asynchronous and adaptive in both directions: a block is sent again with a new grant, on other resource blocks
//! if need be, with the same scheme. On a slot with fewer symbols it takes more of them.
//!
//! Deviations:
//! 1. A slot is scheduled, sent and decoded as a whole: blocks take all its data symbols, and scheduling request periods
//!    of a few symbols are like one of a slot.
//! 2. Control channels take whole symbols of the carrier, whatever they carry, and have no errors. Synchronisation, broadcast,
//!    sounding and random access take no resources.
//! 3. Feedback is for whole transport blocks (no code block groups), and a UE has decoded a block when it acknowledges it.
//! 4. One TDD pattern, not two after one another; symbols between its parts are guard.
//! 5. The uplink has one layer, and no transform precoding.

use core::ops::Range;

use channel::phy::nr as link;
use channel::tables::nr::{
    Allocation, LEAST_BITS, LONG_LEVELS, Mcs, McsTable, Numerology, SHORT_LEVELS, SYMBOLS, bytes, fewest_symbols,
    level, tbs,
};
use channel::{Direction, Modulation, Sinr, Soft};

use super::grid::{Grid, Sizes};
use crate::mac::blocks::Blocks;
use crate::mac::requests::{GROUPS, MOST_ASSUMED, Report};

/// Maximum number of resource blocks of a carrier. 38.101-1 Table 5.3.2-1.
pub(super) const WIDEST: u16 = 275;

/// The largest transport block of one code block with a CRC of 16 bits. 38.212 6.2.1, 7.2.1.
const SMALL: u32 = 3824;
const CRC: u32 = 16;

/// A MAC subheader and a single entry power headroom report. 38.321 6.1.3.8.
pub(super) const HEADROOM_REPORT: u32 = 3;

/// The symbols from the end of a downlink block to its acknowledgement, by numerology. 38.214 Table 5.3-1, with one DMRS
/// symbol; 240 kHz carries no data in the standard and is like 120 kHz.
const N1: [u8; 5] = [8, 10, 17, 20, 20];

/// The symbols from the end of a grant to the uplink block. 38.214 Table 6.4-1.
const N2: [u8; 5] = [10, 12, 23, 36, 36];

/// The parameters of an NR carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nr {
    /// The numerology.
    pub numerology: Numerology,
    /// The division of slots between the directions.
    pub duplex: Duplex,
    /// The schemes of the downlink and of the uplink.
    pub tables: [McsTable; 2],
    /// Symbols of the downlink's control channel in each slot with downlink.
    control: u8,
    /// Symbols of the uplink's control channel in each slot with uplink.
    uplink_control: u8,
    /// Symbols of a block that carry reference signals (DMRS), and no data.
    pub dmrs: u8,
    /// Resource elements of a resource block that carry no data for other reasons: `xOverhead`, 0, 6, 12 or 18.
    pub overhead: u8,
    /// The minimum of K1: slots from a downlink block to its acknowledgement.
    pub k1: u8,
    /// The minimum of K2: slots from a grant to its uplink block.
    pub k2: u8,
    /// HARQ processes of either direction, 1 to 16.
    pub processes: u8,
    /// Symbols for data in the slot at hand, by direction.
    data: [u8; 2],
}

/// The division of slots between the directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// A carrier for each direction.
    Fdd,
    /// A fixed pattern on one carrier.
    Tdd(Pattern),
    /// Each slot begins with the downlink's control channel and ends with the uplink's; the symbols between are divided
    /// by demand, uplink grants first. So does ns-3's mmWave module.
    Flexible,
}

/// A TDD pattern, `TDD-UL-DL-Pattern` of 38.331: from its start downlink, then guard, then uplink until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Slots of the pattern.
    pub slots: u8,
    /// Whole downlink slots at its start.
    pub downlink_slots: u8,
    /// Downlink symbols of the slot after them.
    pub downlink_symbols: u8,
    /// Uplink symbols of the slot before the uplink slots.
    pub uplink_symbols: u8,
    /// Whole uplink slots at its end.
    pub uplink_slots: u8,
}

impl Pattern {
    /// DDDSU, with ten downlink, two guard and two uplink symbols in the special slot.
    pub const DDDSU: Pattern =
        Pattern { slots: 5, downlink_slots: 3, downlink_symbols: 10, uplink_symbols: 2, uplink_slots: 1 };

    /// DDDDDDDSUU, with six downlink, four guard and four uplink symbols in the special slot.
    pub const DDDDDDDSUU: Pattern =
        Pattern { slots: 10, downlink_slots: 7, downlink_symbols: 6, uplink_symbols: 4, uplink_slots: 2 };

    /// Returns whether its parts fit into it, and either direction has a slot for control.
    pub fn is_valid(&self) -> bool {
        let special = u8::from(self.downlink_symbols > 0 || self.uplink_symbols > 0);
        let Some(used) = self.downlink_slots.checked_add(self.uplink_slots).and_then(|n| n.checked_add(special)) else {
            return false;
        };
        // One slot is special for both if there is only one between the whole ones.
        let shared = used == self.slots && u16::from(self.downlink_symbols) + u16::from(self.uplink_symbols) > 14;
        used <= self.slots
            && !shared
            && self.downlink_symbols < SYMBOLS
            && self.uplink_symbols < SYMBOLS
            && (self.downlink_slots > 0 || self.downlink_symbols > 0)
            && (self.uplink_slots > 0 || self.uplink_symbols > 0)
    }

    /// Returns the symbols of downlink and uplink in `slot`.
    #[inline]
    fn symbols(&self, slot: u64) -> [u8; 2] {
        let place = (slot % u64::from(self.slots)) as u8;
        let rest = self.slots - 1 - place;
        let downlink = match place {
            _ if place < self.downlink_slots => SYMBOLS,
            _ if place == self.downlink_slots => self.downlink_symbols,
            _ => 0,
        };
        let uplink = match rest {
            _ if rest < self.uplink_slots => SYMBOLS,
            _ if rest == self.uplink_slots => self.uplink_symbols,
            _ => 0,
        };
        [downlink, uplink]
    }
}

impl Nr {
    /// Creates a carrier with the shortest delays that the UE's processing times permit, 64QAM, one symbol each for
    /// control and reference signals, and 16 HARQ processes.
    pub fn new(numerology: Numerology, duplex: Duplex) -> Nr {
        let mu = numerology.mu() as usize;
        let (control, uplink_control) = (1, 1);
        let nr = Nr {
            numerology,
            duplex,
            tables: [McsTable::Qam64; 2],
            control,
            uplink_control,
            dmrs: 1,
            overhead: 0,
            k1: (N1[mu] + uplink_control).div_ceil(SYMBOLS),
            k2: (N2[mu] + control).div_ceil(SYMBOLS),
            processes: 16,
            data: [0; 2],
        };
        nr.of_whole_slots()
    }

    /// Returns it with this many symbols for the control channels of downlink and uplink.
    pub fn with_control(self, control: u8, uplink_control: u8) -> Nr {
        Nr { control, uplink_control, ..self }.of_whole_slots()
    }

    /// Returns it with the data symbols of a slot that is all of either direction.
    fn of_whole_slots(mut self) -> Nr {
        let both = self.control + self.uplink_control;
        self.data = match self.duplex {
            Duplex::Flexible => [SYMBOLS - both; 2],
            _ => [SYMBOLS - self.control, SYMBOLS - self.uplink_control],
        };
        self
    }

    /// Returns whether the pattern is valid and either direction has a control channel, without which nothing could be
    /// granted or acknowledged.
    pub fn is_valid(&self) -> bool {
        let Duplex::Tdd(pattern) = self.duplex else { return true };
        let slots = 0..u64::from(pattern.slots);
        pattern.is_valid()
            && slots.clone().any(|slot| self.has_control(slot))
            && slots.clone().any(|slot| self.has_uplink_control(slot))
    }

    /// Returns whether grants that recur after `period` slots can be configured.
    pub(super) fn configurable(&self, period: u16) -> bool {
        match self.duplex {
            Duplex::Fdd => period > 0,
            Duplex::Tdd(Pattern { slots, uplink_slots, .. }) => {
                period > 0 && uplink_slots > 0 && period.is_multiple_of(slots.into())
            }
            Duplex::Flexible => false,
        }
    }

    /// Returns the symbols of downlink and uplink in `slot`, with those for control.
    #[inline]
    fn symbols(&self, slot: u64) -> [u8; 2] {
        match &self.duplex {
            Duplex::Fdd | Duplex::Flexible => [SYMBOLS; 2],
            Duplex::Tdd(pattern) => pattern.symbols(slot),
        }
    }

    /// Returns the fewest symbols of a block.
    #[inline]
    fn fewest(&self) -> u8 {
        fewest_symbols(self.dmrs, self.overhead)
    }

    /// Returns it with the data symbols of `slot`; in a flexible slot, `uplink` of them are the uplink's.
    #[inline]
    pub(super) fn in_slot(mut self, slot: u64, uplink: u8) -> Nr {
        let fewest = self.fewest();
        let data = |symbols: u8, control: u8| {
            let data = symbols.saturating_sub(control);
            if data < fewest { 0 } else { data }
        };
        self.data = match &self.duplex {
            Duplex::Fdd => return self,
            Duplex::Tdd(pattern) => {
                let [downlink, up] = pattern.symbols(slot);
                [data(downlink, self.control), data(up, self.uplink_control)]
            }
            Duplex::Flexible => {
                let free = SYMBOLS - self.control - self.uplink_control;
                [data(free - uplink, 0), uplink]
            }
        };
        self
    }

    /// Returns how many of the first `slots` slots carry data of a direction.
    pub(super) fn slots_with(&self, direction: Direction, slots: u64) -> u64 {
        let Duplex::Tdd(pattern) = self.duplex else { return slots };
        let period = u64::from(pattern.slots);
        let among = |slots: u64| (0..slots).filter(|slot| self.in_slot(*slot, 0).data(direction) > 0).count() as u64;
        slots / period * among(period) + among(slots % period)
    }

    /// Returns whether the slot at hand carries data of a direction.
    #[inline]
    pub(super) fn carries(&self, direction: Direction) -> bool {
        self.data(direction) > 0
    }

    /// Returns the data symbols of a direction in the slot at hand.
    #[inline]
    fn data(&self, direction: Direction) -> u8 {
        self.data[direction as usize]
    }

    /// Returns the symbols of a flexible slot in which a resource block has at least this many resource elements for data
    /// of the uplink, or all of them; none for no elements.
    #[inline]
    pub(super) fn uplink_symbols(&self, elements: u32) -> u8 {
        if elements == 0 {
            return 0;
        }
        let symbols = u32::from(self.dmrs) + elements.saturating_add(self.overhead.into()).div_ceil(12);
        let free = SYMBOLS - self.control - self.uplink_control;
        symbols.clamp(self.fewest().min(free).into(), free.into()) as u8
    }

    /// Returns whether `slot` has a control channel of the downlink.
    #[inline]
    pub(super) fn has_control(&self, slot: u64) -> bool {
        self.symbols(slot)[0] >= self.control.max(1)
    }

    /// Returns the control channel elements of a slot: six resource blocks of a symbol each (38.211 7.3.2.2), in a control
    /// resource set as wide as the carrier.
    pub(super) fn control_elements(&self, prbs: u16) -> u32 {
        u32::from(prbs / 6) * u32::from(self.control)
    }

    /// Returns the number of slots after which their directions repeat.
    #[inline]
    pub(super) fn pattern_slots(&self) -> u64 {
        if let Duplex::Tdd(pattern) = self.duplex { pattern.slots.into() } else { 1 }
    }

    /// Returns whether `slot` has a control channel of the uplink.
    #[inline]
    pub(super) fn has_uplink_control(&self, slot: u64) -> bool {
        self.symbols(slot)[1] >= self.uplink_control.max(1)
    }

    /// Returns the first slot from `slot` on with a control channel of the uplink.
    #[inline]
    fn uplink_control_from(&self, slot: u64) -> u64 {
        match self.duplex {
            Duplex::Fdd | Duplex::Flexible => slot,
            Duplex::Tdd(_) => (slot..).find(|slot| self.has_uplink_control(*slot)).unwrap_or(slot),
        }
    }

    /// Returns the slot in which a downlink block of `slot` is acknowledged.
    #[inline]
    pub(super) fn acknowledged(&self, slot: u64) -> u64 {
        self.uplink_control_from(slot + u64::from(self.k1))
    }

    /// Returns the slots whose uplink is granted in `slot`: those for which it is the last one early enough.
    #[inline]
    pub(super) fn granted_in(&self, slot: u64) -> Range<u64> {
        let first = slot + u64::from(self.k2);
        match self.duplex {
            Duplex::Fdd | Duplex::Flexible => first..first + 1,
            Duplex::Tdd(_) if !self.has_control(slot) => first..first,
            Duplex::Tdd(_) => {
                let next = (slot + 1..).find(|slot| self.has_control(*slot)).unwrap_or(slot + 1);
                first..next + u64::from(self.k2)
            }
        }
    }

    /// Returns the first slot whose uplink cannot have been granted before `slot`.
    pub(super) fn ungranted_from(&self, slot: u64) -> u64 {
        let next = (slot..).find(|slot| self.has_control(*slot)).unwrap_or(slot);
        next + u64::from(self.k2)
    }

    /// Returns the resource elements of a resource block that carry data of a direction in the slot at hand.
    #[inline]
    pub(super) fn elements(&self, direction: Direction) -> u32 {
        self.elements_of(self.data(direction))
    }

    /// Returns the same of the slots that carry the most; of flexible slots, each does.
    #[inline]
    pub(super) fn most_elements(&self, direction: Direction) -> u32 {
        let Duplex::Tdd(pattern) = &self.duplex else { return self.elements(direction) };
        let (whole, symbols, control) = match direction {
            Direction::Downlink => (pattern.downlink_slots, pattern.downlink_symbols, self.control),
            Direction::Uplink => (pattern.uplink_slots, pattern.uplink_symbols, self.uplink_control),
        };
        self.elements_of(if whole > 0 { SYMBOLS } else { symbols }.saturating_sub(control))
    }

    #[inline]
    fn elements_of(&self, data: u8) -> u32 {
        (12 * u32::from(data.saturating_sub(self.dmrs))).saturating_sub(self.overhead.into())
    }

    #[inline]
    fn allocation(&self, direction: Direction, layers: u8, prbs: u16) -> Allocation {
        Allocation { prbs, symbols: self.data(direction), dmrs: 12 * self.dmrs, overhead: self.overhead, layers }
    }

    #[inline]
    pub(super) fn scheme(&self, direction: Direction, mcs: u8) -> Mcs {
        self.tables[direction as usize].schemes()[usize::from(mcs)]
    }

    /// Returns the bits of a block.
    #[inline]
    pub(super) fn bits(&self, direction: Direction, mcs: u8, layers: u8, prbs: u16) -> u32 {
        tbs(self.scheme(direction, mcs), &self.allocation(direction, layers, prbs), 0)
    }

    /// Returns `mcs`, or the next lower scheme if the CRC and the steps between the sizes of small blocks bring the
    /// code rate above 0.95, which a UE need not decode (38.214 5.1.3).
    #[inline]
    pub(super) fn usable(&self, direction: Direction, (mcs, layers): (u8, u8), prbs: u16) -> u8 {
        let is_usable = |mcs: &u8| {
            let bits = self.bits(direction, *mcs, layers, prbs);
            let coded = self.coded_bits(direction, self.modulation(direction, *mcs), layers, prbs);
            bits > SMALL || 20 * (bits + CRC) <= 19 * coded
        };
        (1..=mcs).rev().find(is_usable).unwrap_or(0)
    }

    #[inline]
    pub(super) fn modulation(&self, direction: Direction, mcs: u8) -> Modulation {
        self.scheme(direction, mcs).modulation()
    }

    /// Returns the coded bits of a block.
    #[inline]
    pub(super) fn coded_bits(&self, direction: Direction, modulation: Modulation, layers: u8, prbs: u16) -> u32 {
        self.elements(direction) * modulation.bits() * u32::from(layers) * u32::from(prbs)
    }

    #[inline]
    pub(super) fn block_error(&self, direction: Direction, mcs: u8, bits: u32, soft: &Soft) -> f64 {
        link::block_error(bits, self.scheme(direction, mcs).rate, soft)
    }

    #[inline]
    pub(super) fn cqi(&self, sinr: &Sinr, prbs: Option<Range<u16>>) -> u8 {
        let table = self.tables[Direction::Downlink as usize];
        match prbs {
            None => link::cqi_at(table, sinr),
            Some(prbs) => link::subband_cqi_at(table, sinr, prbs),
        }
    }

    #[inline]
    pub(super) fn mcs_for(&self, cqi: u8, offset_db: f32) -> u8 {
        link::mcs_for(self.tables[Direction::Downlink as usize], cqi, offset_db)
    }

    #[inline]
    pub(super) fn cqi_sinr_db(&self, cqi: u8) -> f32 {
        link::cqi_sinr_db(self.tables[Direction::Downlink as usize], cqi)
    }

    #[inline]
    pub(super) fn downlink_sinr_db(&self, mcs: u8) -> f32 {
        link::mcs_sinr_db(self.tables[Direction::Downlink as usize], mcs)
    }

    #[inline]
    pub(super) fn downlink_error(&self, mcs: u8, sinr_db: f32) -> f64 {
        link::first_error(self.tables[Direction::Downlink as usize], mcs, sinr_db)
    }

    #[inline]
    pub(super) fn uplink_mcs_at(&self, sinr_db: f32) -> u8 {
        link::mcs_at(self.tables[Direction::Uplink as usize], sinr_db)
    }

    #[inline]
    pub(super) fn uplink_sinr_db(&self, mcs: u8) -> f32 {
        link::mcs_sinr_db(self.tables[Direction::Uplink as usize], mcs)
    }

    /// Returns the largest index of a scheme.
    #[inline]
    pub(super) fn best_mcs(&self, direction: Direction) -> u8 {
        self.tables[direction as usize].schemes().len() as u8 - 1
    }

    /// Returns the lowest scheme of an uplink block on `prbs` resource blocks that leaves room for data.
    #[inline]
    pub(super) fn least_mcs(&self, prbs: u16) -> u8 {
        let direction = Direction::Uplink;
        let best = self.best_mcs(direction);
        (0..best).find(|mcs| self.bits(direction, *mcs, 1, prbs) >= LEAST_BITS).unwrap_or(best)
    }

    /// Allocation type 1: any resource blocks in a row.
    pub(super) fn grid(prbs: u16) -> Grid {
        Grid { prbs, group: 1, groups: prbs, shared: Blocks::run(0, prbs), sizes: Sizes::Any }
    }
}

/// Returns the report for these bytes in each group: short with five bits if at most one has data, long with eight.
pub(super) fn report(waiting: [u32; GROUPS]) -> Report {
    let upper_ends: &[u32] = if is_long(&waiting) { &LONG_LEVELS } else { &SHORT_LEVELS };
    let levels = waiting.map(|waiting| level(upper_ends, waiting));
    // What an open-ended level stands for is the cell's assumption; a block with padding corrects it.
    let is_open = |level: u8| usize::from(level) == upper_ends.len();
    let bytes = |level| if is_open(level) { MOST_ASSUMED } else { bytes(upper_ends, level) };
    Report { levels, bytes: levels.iter().fold(0u32, |sum, level| sum.saturating_add(bytes(*level))) }
}

/// Returns the size of that report with its subheader. 38.321 6.1.3.1.
#[inline]
pub(super) fn report_size(waiting: &[u32; GROUPS]) -> u32 {
    if is_long(waiting) { 3 + waiting.iter().filter(|bytes| **bytes > 0).count() as u32 } else { 2 }
}

#[inline]
fn is_long(waiting: &[u32; GROUPS]) -> bool {
    waiting.iter().filter(|bytes| **bytes > 0).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tdd(numerology: Numerology, pattern: Pattern) -> Nr {
        Nr::new(numerology, Duplex::Tdd(pattern))
    }

    #[test]
    fn the_shortest_delays_follow_from_the_processing_times() {
        let delays = Numerology::ALL.map(|numerology| {
            let nr = Nr::new(numerology, Duplex::Fdd);
            (nr.k1, nr.k2)
        });
        // N1 of 8, 10, 17 and 20 symbols, N2 of 10, 12, 23 and 36; default K2 is j = 1, 1, 2, 3 (38.214 6.1.2.1.1-4).
        assert_eq!(delays, [(1, 1), (1, 1), (2, 2), (2, 3), (2, 3)]);
    }

    #[test]
    fn a_special_slot_has_symbols_of_both_directions() {
        let symbols = |pattern: Pattern| (0..u64::from(pattern.slots)).map(|slot| pattern.symbols(slot)).collect();
        let dddsu: Vec<_> = symbols(Pattern::DDDSU);
        assert_eq!(dddsu, [[14, 0], [14, 0], [14, 0], [10, 2], [0, 14]]);
        let long: Vec<_> = symbols(Pattern::DDDDDDDSUU);
        assert_eq!(long[6..], [[14, 0], [6, 4], [0, 14], [0, 14]]);
        // Two slots between the whole ones: the first has the downlink's symbols, the second the uplink's.
        let wide = Pattern { slots: 5, downlink_slots: 2, downlink_symbols: 3, uplink_symbols: 4, uplink_slots: 1 };
        let wide: Vec<_> = symbols(wide);
        assert_eq!(wide, [[14, 0], [14, 0], [3, 0], [0, 4], [0, 14]]);
    }

    #[test]
    fn a_pattern_that_does_not_fit_or_lacks_a_direction_is_invalid() {
        let pattern = Pattern::DDDSU;
        assert!(pattern.is_valid() && Pattern::DDDDDDDSUU.is_valid());
        for invalid in [
            Pattern { downlink_slots: 4, ..pattern },
            Pattern { downlink_symbols: 13, ..pattern },
            Pattern { uplink_slots: 0, uplink_symbols: 0, ..pattern },
            Pattern { downlink_slots: 0, downlink_symbols: 0, ..pattern },
            Pattern { downlink_slots: 255, uplink_slots: 255, ..pattern },
        ] {
            assert!(!invalid.is_valid() && !tdd(Numerology::Khz30, invalid).is_valid(), "{invalid:?}");
        }
    }

    #[test]
    fn a_pattern_without_a_control_channel_is_invalid() {
        let pattern = Pattern { downlink_slots: 0, downlink_symbols: 1, ..Pattern::DDDSU };
        assert!(tdd(Numerology::Khz30, pattern).is_valid());
        assert!(!tdd(Numerology::Khz30, pattern).with_control(2, 1).is_valid());
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
                    assert!(nr.has_control(slot) && target >= slot + u64::from(nr.k2));
                    granted.push(target);
                }
            }
            let first = u64::from(nr.k2);
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

    #[test]
    fn the_carrier_of_rapid_has_852_6_mbit_per_second() {
        let nr = Nr::new(Numerology::Khz120, Duplex::Fdd);
        let bits = nr.bits(Direction::Downlink, 28, 1, 132);
        assert_eq!(bits, 106_576);
        assert_eq!(f64::from(bits) / 125e-6, 852.608e6);
        let modulation = nr.modulation(Direction::Downlink, 28);
        assert_eq!(nr.coded_bits(Direction::Downlink, modulation, 1, 132), 144 * 6 * 132);
    }

    #[test]
    fn a_flexible_slot_divides_its_symbols() {
        let nr = Nr::new(Numerology::Khz60, Duplex::Flexible);
        assert_eq!(nr.in_slot(7, 0).data, [12, 0]);
        assert_eq!(nr.in_slot(7, 5).data, [7, 5]);
        assert_eq!(nr.in_slot(7, 11).data, [0, 11], "one symbol carries no data");
    }

    #[test]
    fn a_report_of_one_group_is_short() {
        let mut waiting = [0; GROUPS];
        waiting[5] = 1500;
        let short = report(waiting);
        assert_eq!((short.levels[5], short.bytes, report_size(&waiting)), (17, 2014, 2));
        waiting[1] = 10;
        let long = report(waiting);
        assert_eq!((long.levels[1], long.bytes, report_size(&waiting)), (1, 10 + 1532, 5));
        assert_eq!((report([0; GROUPS]).bytes, report_size(&[0; GROUPS])), (0, 2));
    }
}
