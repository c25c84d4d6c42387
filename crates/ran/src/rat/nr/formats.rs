//! NR: what a slot carries, the schemes and sizes of transport blocks, and their errors.

use core::ops::Range;

use channel::phy::nr as link;
use channel::tables::nr::{Allocation, LEAST_BITS, Mcs, SYMBOLS, fewest_symbols, tbs};
use channel::{Direction, Modulation, Sinr, Soft};

use super::{Duplex, Nr};
use crate::mac::power;

/// Maximum number of resource blocks of a carrier. 38.101-1 Table 5.3.2-1.
pub(crate) const WIDEST: u16 = 275;

/// The largest transport block of one code block with a CRC of 16 bits. 38.212 6.2.1, 7.2.1.
const SMALL: u32 = 3824;
const CRC: u32 = 16;

/// The transport formats of an NR cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Formats {
    nr: Nr,
    /// Symbols for data in the slot at hand, by direction.
    data: [u8; 2],
}

impl Formats {
    /// Returns those of a slot that is all of either direction.
    pub(crate) fn new(nr: Nr) -> Formats {
        let both = nr.control + nr.uplink_control;
        let data = match nr.duplex {
            Duplex::Flexible => [SYMBOLS - both; 2],
            _ => [SYMBOLS - nr.control, SYMBOLS - nr.uplink_control],
        };
        Formats { nr, data }
    }

    /// Returns the fewest symbols of a block.
    #[inline]
    fn fewest(&self) -> u8 {
        fewest_symbols(self.nr.dmrs, self.nr.overhead)
    }

    /// Returns it with the data symbols of `slot`; in a flexible slot, `uplink` of them are the uplink's.
    #[inline]
    pub(crate) fn in_slot(mut self, slot: u64, uplink: u8) -> Formats {
        let fewest = self.fewest();
        let data = |symbols: u8, control: u8| {
            let data = symbols.saturating_sub(control);
            if data < fewest { 0 } else { data }
        };
        self.data = match &self.nr.duplex {
            Duplex::Fdd => return self,
            Duplex::Tdd(pattern) => {
                let [downlink, up] = pattern.symbols(slot);
                [data(downlink, self.nr.control), data(up, self.nr.uplink_control)]
            }
            Duplex::Flexible => {
                let free = SYMBOLS - self.nr.control - self.nr.uplink_control;
                [data(free - uplink, 0), uplink]
            }
        };
        self
    }

    /// Returns how many of the first `slots` slots carry data of a direction.
    pub(crate) fn slots_with(&self, direction: Direction, slots: u64) -> u64 {
        let Duplex::Tdd(pattern) = self.nr.duplex else { return slots };
        let period = u64::from(pattern.slots);
        let among = |slots: u64| (0..slots).filter(|slot| self.in_slot(*slot, 0).data(direction) > 0).count() as u64;
        slots / period * among(period) + among(slots % period)
    }

    /// Returns whether the slot at hand carries data of a direction.
    #[inline]
    pub(crate) fn carries(&self, direction: Direction) -> bool {
        self.data(direction) > 0
    }

    /// Returns the data symbols of a direction in the slot at hand.
    #[inline]
    fn data(&self, direction: Direction) -> u8 {
        self.data[direction as usize]
    }

    /// Returns whether slots are flexible: grants of the uplink divide their symbols between the directions.
    #[inline]
    pub(crate) fn is_flexible(&self) -> bool {
        self.nr.duplex == Duplex::Flexible
    }

    /// Returns the symbols of a flexible slot in which a resource block has at least this many resource elements for data
    /// of the uplink, or all of them; none for no elements.
    #[inline]
    pub(crate) fn uplink_symbols(&self, elements: u32) -> u8 {
        if elements == 0 {
            return 0;
        }
        let symbols = u32::from(self.nr.dmrs) + elements.saturating_add(self.nr.overhead.into()).div_ceil(12);
        let free = SYMBOLS - self.nr.control - self.nr.uplink_control;
        symbols.clamp(self.fewest().min(free).into(), free.into()) as u8
    }

    /// Returns the resource elements of a resource block that carry data of a direction in the slot at hand.
    #[inline]
    pub(crate) fn elements(&self, direction: Direction) -> u32 {
        self.elements_of(self.data(direction))
    }

    /// Returns the same of the slots that carry the most; of flexible slots, each does.
    #[inline]
    pub(crate) fn most_elements(&self, direction: Direction) -> u32 {
        let Duplex::Tdd(pattern) = &self.nr.duplex else { return self.elements(direction) };
        let (whole, symbols, control) = match direction {
            Direction::Downlink => (pattern.downlink_slots, pattern.downlink_symbols, self.nr.control),
            Direction::Uplink => (pattern.uplink_slots, pattern.uplink_symbols, self.nr.uplink_control),
        };
        self.elements_of(if whole > 0 { SYMBOLS } else { symbols }.saturating_sub(control))
    }

    #[inline]
    fn elements_of(&self, data: u8) -> u32 {
        (12 * u32::from(data.saturating_sub(self.nr.dmrs))).saturating_sub(self.nr.overhead.into())
    }

    #[inline]
    fn allocation(&self, direction: Direction, layers: u8, prbs: u16) -> Allocation {
        Allocation { prbs, symbols: self.data(direction), dmrs: 12 * self.nr.dmrs, overhead: self.nr.overhead, layers }
    }

    #[inline]
    fn scheme(&self, direction: Direction, mcs: u8) -> Mcs {
        self.nr.tables[direction as usize].schemes()[usize::from(mcs)]
    }

    /// Returns the bits of a block.
    #[inline]
    pub(crate) fn bits(&self, direction: Direction, mcs: u8, layers: u8, prbs: u16) -> u32 {
        tbs(self.scheme(direction, mcs), &self.allocation(direction, layers, prbs), 0)
    }

    /// Returns `mcs`, or the next lower scheme if the CRC and the steps between the sizes of small blocks bring the
    /// code rate above 0.95, which a UE need not decode (38.214 5.1.3).
    #[inline]
    pub(crate) fn usable(&self, direction: Direction, (mcs, layers): (u8, u8), prbs: u16) -> u8 {
        let is_usable = |mcs: &u8| {
            let bits = self.bits(direction, *mcs, layers, prbs);
            let coded = self.coded_bits(direction, self.modulation(direction, *mcs), layers, prbs);
            bits > SMALL || 20 * (bits + CRC) <= 19 * coded
        };
        (1..=mcs).rev().find(is_usable).unwrap_or(0)
    }

    #[inline]
    pub(crate) fn modulation(&self, direction: Direction, mcs: u8) -> Modulation {
        self.scheme(direction, mcs).modulation()
    }

    /// Returns the coded bits of a block.
    #[inline]
    pub(crate) fn coded_bits(&self, direction: Direction, modulation: Modulation, layers: u8, prbs: u16) -> u32 {
        self.elements(direction) * modulation.bits() * u32::from(layers) * u32::from(prbs)
    }

    #[inline]
    pub(crate) fn block_error(&self, direction: Direction, mcs: u8, bits: u32, soft: &Soft) -> f64 {
        link::block_error(bits, self.scheme(direction, mcs).rate, soft)
    }

    #[inline]
    pub(crate) fn cqi(&self, sinr: &Sinr, prbs: Option<Range<u16>>) -> u8 {
        let table = self.nr.tables[Direction::Downlink as usize];
        match prbs {
            None => link::cqi_at(table, sinr),
            Some(prbs) => link::subband_cqi_at(table, sinr, prbs),
        }
    }

    #[inline]
    pub(crate) fn mcs_for(&self, cqi: u8, offset_db: f32) -> u8 {
        link::mcs_for(self.nr.tables[Direction::Downlink as usize], cqi, offset_db)
    }

    #[inline]
    pub(crate) fn cqi_sinr_db(&self, cqi: u8) -> f32 {
        link::cqi_sinr_db(self.nr.tables[Direction::Downlink as usize], cqi)
    }

    #[inline]
    pub(crate) fn downlink_sinr_db(&self, mcs: u8) -> f32 {
        link::mcs_sinr_db(self.nr.tables[Direction::Downlink as usize], mcs)
    }

    #[inline]
    pub(crate) fn downlink_error(&self, mcs: u8, sinr_db: f32) -> f64 {
        link::first_error(self.nr.tables[Direction::Downlink as usize], mcs, sinr_db)
    }

    #[inline]
    pub(crate) fn uplink_mcs_at(&self, sinr_db: f32) -> u8 {
        link::mcs_at(self.nr.tables[Direction::Uplink as usize], sinr_db)
    }

    #[inline]
    pub(crate) fn uplink_sinr_db(&self, mcs: u8) -> f32 {
        link::mcs_sinr_db(self.nr.tables[Direction::Uplink as usize], mcs)
    }

    /// Returns the largest index of a scheme.
    #[inline]
    pub(crate) fn best_mcs(&self, direction: Direction) -> u8 {
        self.nr.tables[direction as usize].schemes().len() as u8 - 1
    }

    /// Returns what a resource block of the uplink carries in the slot at hand.
    #[inline]
    pub(crate) fn uplink_rates(&self) -> power::Rates {
        let way = Direction::Uplink;
        power::Rates::Nr { table: self.nr.tables[way as usize], elements: self.elements(way) as u16 }
    }

    /// Returns the lowest scheme of an uplink block on `prbs` resource blocks that leaves room for data.
    #[inline]
    pub(crate) fn least_mcs(&self, prbs: u16) -> u8 {
        let direction = Direction::Uplink;
        let best = self.best_mcs(direction);
        (0..best).find(|mcs| self.bits(direction, *mcs, 1, prbs) >= LEAST_BITS).unwrap_or(best)
    }
}

#[cfg(test)]
mod tests {
    use channel::tables::nr::Numerology;

    use super::*;

    #[test]
    fn the_carrier_of_rapid_has_852_6_mbit_per_second() {
        let formats = Formats::new(Nr::new(Numerology::Khz120, Duplex::Fdd));
        let bits = formats.bits(Direction::Downlink, 28, 1, 132);
        assert_eq!(bits, 106_576);
        assert_eq!(f64::from(bits) / 125e-6, 852.608e6);
        let modulation = formats.modulation(Direction::Downlink, 28);
        assert_eq!(formats.coded_bits(Direction::Downlink, modulation, 1, 132), 144 * 6 * 132);
    }

    #[test]
    fn a_flexible_slot_divides_its_symbols() {
        let formats = Formats::new(Nr::new(Numerology::Khz60, Duplex::Flexible));
        assert_eq!(formats.in_slot(7, 0).data, [12, 0]);
        assert_eq!(formats.in_slot(7, 5).data, [7, 5]);
        assert_eq!(formats.in_slot(7, 11).data, [0, 11], "one symbol carries no data");
    }
}
