//! The transport formats of a cell: what a slot carries, the schemes and the sizes of transport blocks, and their errors.

use core::ops::Range;

use channel::{Direction, Modulation, Sinr, Soft};

use super::lte::formats as lte;
use super::nr::formats as nr;
use crate::mac::power;

/// The transport formats of a cell on all of its slots, or on the slot at hand ([`Formats::in_slot`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Formats {
    /// Of LTE.
    Lte,
    /// Of NR.
    Nr(nr::Formats),
}

impl Formats {
    /// Returns the technology with the resources of `slot`, of which `uplink` symbols are granted in the uplink if slots
    /// are flexible.
    #[inline]
    pub(crate) fn in_slot(self, slot: u64, uplink: u8) -> Formats {
        match self {
            Formats::Lte => self,
            Formats::Nr(nr) => Formats::Nr(nr.in_slot(slot, uplink)),
        }
    }

    /// Returns how many of the first `slots` slots carry data of a direction.
    pub(crate) fn slots_with(self, direction: Direction, slots: u64) -> u64 {
        match self {
            Formats::Lte => slots,
            Formats::Nr(nr) => nr.slots_with(direction, slots),
        }
    }

    /// Returns whether the slot at hand ([`Formats::in_slot`]) carries data of a direction.
    #[inline]
    pub(crate) fn carries(self, direction: Direction) -> bool {
        match self {
            Formats::Lte => true,
            Formats::Nr(nr) => nr.carries(direction),
        }
    }

    /// Returns the resource elements of a resource block that carry data of a direction in the slot at hand, 1 if all
    /// slots are alike.
    #[inline]
    pub(crate) fn elements(self, direction: Direction) -> u32 {
        match self {
            Formats::Lte => 1,
            Formats::Nr(nr) => nr.elements(direction),
        }
    }

    /// Returns the same of the slots that carry the most; of flexible slots, whose symbols are divided by demand, each does.
    #[inline]
    pub(crate) fn most_elements(self, direction: Direction) -> u32 {
        match self {
            Formats::Lte => 1,
            Formats::Nr(nr) => nr.most_elements(direction),
        }
    }

    /// Returns whether the slot at hand carries less than half as much of a direction as others: the block of a UE is small.
    #[inline]
    pub(crate) fn is_short(self, direction: Direction) -> bool {
        2 * self.elements(direction) < self.most_elements(direction)
    }

    /// Returns whether no slot carries more of a direction than the slot at hand. Only there does a UE get a block that is
    /// too small for its channel's scheme: in a shorter slot, it waits.
    #[inline]
    pub(crate) fn is_longest(self, direction: Direction) -> bool {
        self.elements(direction) >= self.most_elements(direction)
    }

    /// Returns the uplink symbols of a flexible slot in which a resource block has this many resource elements, or all of
    /// them; `None` if grants of the uplink do not divide the slot's symbols between the directions.
    #[inline]
    pub(crate) fn uplink_symbols(self, elements: u32) -> Option<u8> {
        match self {
            Formats::Nr(nr) if nr.is_flexible() => Some(nr.uplink_symbols(elements)),
            _ => None,
        }
    }

    /// Returns the number of resource blocks of its widest carrier.
    #[inline]
    pub(crate) fn widest(self) -> u16 {
        match self {
            Formats::Lte => lte::WIDEST,
            Formats::Nr(_) => nr::WIDEST,
        }
    }

    /// Returns the maximum number of layers of the downlink.
    #[inline]
    pub(crate) fn most_layers(self) -> u8 {
        match self {
            Formats::Lte => 2,
            Formats::Nr(_) => 4,
        }
    }

    /// Returns the number of code words of a block on `layers`.
    #[inline]
    pub(crate) fn words(self, layers: u8) -> u8 {
        match self {
            Formats::Lte => layers,
            Formats::Nr(_) => 1,
        }
    }

    /// Returns the bits of a code word of a downlink block with `mcs` and `layers` on `prbs` resource blocks.
    #[inline]
    pub(crate) fn downlink_bits(self, mcs: u8, layers: u8, prbs: u16) -> u32 {
        match self {
            Formats::Lte => lte::downlink_bits(mcs, prbs),
            Formats::Nr(nr) => nr.bits(Direction::Downlink, mcs, layers, prbs),
        }
    }

    /// Returns the bits of an uplink block with `mcs` on `prbs` resource blocks.
    #[inline]
    pub(crate) fn uplink_bits(self, mcs: u8, prbs: u16) -> u32 {
        match self {
            Formats::Lte => lte::uplink_bits(mcs, prbs),
            Formats::Nr(nr) => nr.bits(Direction::Uplink, mcs, 1, prbs),
        }
    }

    /// Returns `mcs`, or the next lower one if `mcs` cannot be decoded on `layers` and `prbs` resource blocks.
    #[inline]
    pub(crate) fn usable(self, direction: Direction, (mcs, layers): (u8, u8), prbs: u16) -> u8 {
        match self {
            Formats::Lte => lte::usable(mcs, prbs),
            Formats::Nr(nr) => nr.usable(direction, (mcs, layers), prbs),
        }
    }

    /// Returns what a resource block of the uplink carries in the slot at hand.
    #[inline]
    pub(crate) fn uplink_rates(self) -> power::Rates {
        match self {
            Formats::Lte => power::Rates::Lte,
            Formats::Nr(nr) => nr.uplink_rates(),
        }
    }

    /// Returns the largest MCS index of a direction.
    #[inline]
    pub(crate) fn best_mcs(self, direction: Direction) -> u8 {
        match self {
            Formats::Lte => lte::BEST_MCS,
            Formats::Nr(nr) => nr.best_mcs(direction),
        }
    }

    /// Returns the bytes of the smallest block of a direction: headers leave room for data. In LTE's downlink, these are a
    /// subheader and the header of a segment in AM.
    #[inline]
    pub(crate) fn least_bytes(self, direction: Direction) -> u32 {
        match (self, direction) {
            (Formats::Lte, Direction::Downlink) => 7,
            (Formats::Lte, Direction::Uplink) => 1,
            (Formats::Nr(_), _) => channel::tables::nr::LEAST_BITS / 8,
        }
    }

    /// Returns the lowest MCS of an uplink block on `prbs` resource blocks: headers and a report leave room for data.
    #[inline]
    pub(crate) fn least_mcs(self, prbs: u16) -> u8 {
        match self {
            Formats::Lte => lte::least_mcs(prbs),
            Formats::Nr(nr) => nr.least_mcs(prbs),
        }
    }

    /// Returns an SINR in dB from which on the uplink's lowest MCS ([`Formats::least_mcs`]) can be decoded on any number of
    /// resource blocks.
    #[inline]
    pub(crate) fn robust_sinr_db(self) -> f32 {
        match self {
            // A single resource block has the highest of them.
            Formats::Lte => self.uplink_sinr_db(lte::least_mcs(1)),
            Formats::Nr(nr) => nr.uplink_sinr_db(nr.best_mcs(Direction::Uplink)),
        }
    }

    /// Returns the modulation of an MCS.
    #[inline]
    pub(crate) fn modulation(self, direction: Direction, mcs: u8) -> Modulation {
        match self {
            Formats::Lte => lte::modulation(direction, mcs),
            Formats::Nr(nr) => nr.modulation(direction, mcs),
        }
    }

    /// Returns the coded bits of a code word sent with `modulation` on `layers` and `prbs` resource blocks.
    #[inline]
    pub(crate) fn coded_bits(self, direction: Direction, modulation: Modulation, layers: u8, prbs: u16) -> u32 {
        match self {
            Formats::Lte => channel::coded_bits(direction, modulation, prbs),
            Formats::Nr(nr) => nr.coded_bits(direction, modulation, layers, prbs),
        }
    }

    /// Returns the probability, 0 to 1, that a code word of `bits` with `mcs` cannot be decoded with this information.
    #[inline]
    pub(crate) fn block_error(self, direction: Direction, mcs: u8, bits: u32, soft: &Soft) -> f64 {
        match self {
            Formats::Lte => channel::block_error(bits, soft),
            Formats::Nr(nr) => nr.block_error(direction, mcs, bits, soft),
        }
    }

    /// Returns the largest CQI, up to 15, whose block would fail with a probability of at most 10 % on the resource blocks
    /// `prbs`; 0 if there is none.
    #[inline]
    pub(crate) fn cqi(self, sinr: &Sinr, prbs: Option<Range<u16>>) -> u8 {
        match (self, prbs) {
            (Formats::Lte, None) => channel::wideband_cqi(sinr),
            (Formats::Lte, Some(prbs)) => channel::phy::subband_cqi(sinr, prbs),
            (Formats::Nr(nr), prbs) => nr.cqi(sinr, prbs),
        }
    }

    /// Returns the downlink's MCS for a reported CQI, shifted by `offset_db`.
    #[inline]
    pub(crate) fn mcs_for(self, cqi: u8, offset_db: f32) -> u8 {
        match self {
            Formats::Lte => channel::mcs_for(cqi, Direction::Downlink, offset_db),
            Formats::Nr(nr) => nr.mcs_for(cqi, offset_db),
        }
    }

    /// Returns the minimum SINR in dB that gives a CQI.
    #[inline]
    pub(crate) fn cqi_sinr_db(self, cqi: u8) -> f32 {
        match self {
            Formats::Lte => channel::phy::cqi_sinr_db(cqi),
            Formats::Nr(nr) => nr.cqi_sinr_db(cqi),
        }
    }

    /// Returns the minimum SINR in dB of a downlink MCS.
    #[inline]
    pub(crate) fn downlink_sinr_db(self, mcs: u8) -> f32 {
        match self {
            Formats::Lte => channel::phy::MCS_SINR_DB[Direction::Downlink as usize][usize::from(mcs)],
            Formats::Nr(nr) => nr.downlink_sinr_db(mcs),
        }
    }

    /// Returns the probability that the first transmission of a downlink block with an MCS fails at an SINR in dB.
    #[inline]
    pub(crate) fn downlink_error(self, mcs: u8, sinr_db: f32) -> f64 {
        match self {
            Formats::Lte => channel::phy::first_error(Direction::Downlink, mcs, sinr_db),
            Formats::Nr(nr) => nr.downlink_error(mcs, sinr_db),
        }
    }

    /// Returns the uplink's MCS at an SINR in dB.
    #[inline]
    pub(crate) fn uplink_mcs_at(self, sinr_db: f32, has_64qam: bool) -> u8 {
        match self {
            Formats::Lte if has_64qam => channel::phy::mcs_at(sinr_db, Direction::Uplink),
            Formats::Lte => channel::phy::mcs_at_16qam(sinr_db),
            Formats::Nr(nr) => nr.uplink_mcs_at(sinr_db),
        }
    }

    /// Returns the minimum SINR in dB of an uplink MCS.
    #[inline]
    pub(crate) fn uplink_sinr_db(self, mcs: u8) -> f32 {
        match self {
            Formats::Lte => channel::phy::MCS_SINR_DB[Direction::Uplink as usize][usize::from(mcs)],
            Formats::Nr(nr) => nr.uplink_sinr_db(mcs),
        }
    }

    /// Returns whether slots can carry more or less data, so that a block waits for one in which it is large enough.
    #[inline]
    pub(crate) fn slots_differ(self) -> bool {
        matches!(self, Formats::Nr(_))
    }
}
