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

pub(crate) mod carrier;
pub(crate) mod formats;
pub(crate) mod reports;
pub(crate) mod timing;

use channel::tables::nr::{McsTable, Numerology, SYMBOLS};

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
        Nr {
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
        }
    }

    /// Returns it with this many symbols for the control channels of downlink and uplink.
    pub fn with_control(self, control: u8, uplink_control: u8) -> Nr {
        Nr { control, uplink_control, ..self }
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

    /// Returns the symbols of downlink and uplink in `slot`, with those for control.
    #[inline]
    fn symbols(&self, slot: u64) -> [u8; 2] {
        match &self.duplex {
            Duplex::Fdd | Duplex::Flexible => [SYMBOLS; 2],
            Duplex::Tdd(pattern) => pattern.symbols(slot),
        }
    }

    /// Returns whether `slot` has a control channel of the downlink.
    #[inline]
    fn has_control(&self, slot: u64) -> bool {
        self.symbols(slot)[0] >= self.control.max(1)
    }

    /// Returns whether `slot` has a control channel of the uplink.
    #[inline]
    pub(super) fn has_uplink_control(&self, slot: u64) -> bool {
        self.symbols(slot)[1] >= self.uplink_control.max(1)
    }
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
}
