//! A cell: its carriers and active UEs.

use channel::Direction;
use units::Span;

use crate::config::{CellConfig, MacConfig};
use crate::mac::active::ActiveUes;
use crate::mac::blocks::Blocks;
use crate::mac::configured::Places;
use crate::mac::control::Control;
use crate::mac::opportunities::Occasions;
use crate::mac::reach;
use crate::mac::sched::{Discipline, Past, Scheduler};
use crate::rat::{Formats, Grid, Reports, Timing, Wants};
use crate::slots::Slots;

/// One direction of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) scheduler: Scheduler,
    /// The UEs with data to send. Others are not processed.
    pub(crate) active: ActiveUes,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) mac: MacConfig,
    pub(crate) slots: Slots,
    /// The values of its technology ([`crate::rat`]).
    pub(crate) timing: Timing,
    pub(crate) formats: Formats,
    pub(crate) reports: Reports,
    pub(crate) wants: Wants,
    /// Number of slots that pass before a decoded block can affect what is sent.
    pub(crate) decoding: u64,
    /// Number of ticks needed for decoding.
    decoding_ticks: u64,
    pub(crate) grid: Grid,
    pub(crate) downlink: Side,
    pub(crate) uplink: Side,
    /// Downlink resource blocks used so far, those of retransmissions among them.
    pub(crate) used: u64,
    /// The cell that is its secondary carrier.
    pub(crate) secondary: Option<usize>,
    /// The room for assignments and grants.
    pub(crate) control: Control,
    /// The SINR in dB on one resource block below which it does not hear a UE.
    pub(crate) least_uplink_db: f64,
    /// The slots of scheduling requests.
    pub(crate) occasions: Occasions,
    /// Its configured grants.
    pub(crate) places: Option<Places>,
    /// Uplink resource blocks used by retransmissions in the slot for which grants are made next.
    pub(crate) reserved: Blocks,
    /// Symbols granted in the uplink of flexible slots, and their slots, by slot number modulo the length.
    granted: [(u64, u8); MOST_AHEAD],
}

/// A block that a cell sends in this slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnAir {
    pub(crate) cell: usize,
    /// The formats of the slot, and the slot.
    pub(crate) formats: Formats,
    pub(crate) tti: u64,
    pub(crate) ue: u32,
    pub(crate) process: u8,
    /// The first group of resource blocks, and how many.
    pub(crate) groups: (u16, u16),
}

/// Slots for which grants of flexible slots may be made ahead: more than K2.
const MOST_AHEAD: usize = 32;

impl Cell {
    /// Creates the cell of `config`, with this `secondary`, in a network whose calendar counts `tick`s.
    ///
    /// # Panics
    /// If decoding takes longer than the technology's acknowledgements allow, an NR carrier's pattern is invalid
    /// ([`crate::Nr::is_valid`]), or so are the cycles of discontinuous reception, or
    /// configured grants do not fit ([`crate::ConfiguredGrant::is_valid`]), or slots and decoding are not whole numbers of
    /// ticks.
    pub(crate) fn new(config: &CellConfig, secondary: Option<usize>, tick: Span) -> Cell {
        let rat = config.mac.rat;
        let (timing, formats, reports, wants) = (rat.timing(), rat.formats(), rat.reports(), rat.wants());
        let slots = Slots::new(timing.slot(), tick);
        let decoding = slots.spanning(config.mac.decoding);
        assert!(config.mac.decoding.as_nanos().is_multiple_of(tick.as_nanos()), "decoding is a whole number of ticks");
        assert!(rat.is_valid(), "a pattern has control channels");
        let prbs = config.site.carrier.prbs;
        let is_granted = config.mac.configured.is_none_or(|grant| grant.is_valid(rat, prbs));
        assert!(is_granted, "a configured grant fits into the carrier and its pattern");
        let drx = config.mac.drx;
        assert!(drx.is_none_or(|drx| drx.is_valid() && reports.include_buffers()), "a UE that sleeps has valid cycles");
        assert!(decoding <= timing.longest_decoding(), "a block is decoded before it is acknowledged");
        let side = |way, discipline| {
            let part = wants.least_part(way, discipline == Discipline::RoundRobin);
            let scheduler = part.map_or(Scheduler::new(discipline), |least| Scheduler::in_parts(discipline, least));
            Side { scheduler, active: ActiveUes::default() }
        };
        Cell {
            mac: config.mac,
            slots,
            timing,
            formats,
            reports,
            wants,
            decoding,
            decoding_ticks: config.mac.decoding.as_nanos() / tick.as_nanos(),
            grid: rat.grid(config.site.carrier.prbs),
            downlink: side(Direction::Downlink, config.downlink),
            uplink: side(Direction::Uplink, config.uplink),
            used: 0,
            secondary,
            control: Control::new(rat, prbs, config.mac.assignments),
            least_uplink_db: reach::least_sinr_db(rat, config.mac.transmissions),
            occasions: Occasions::new(timing, config.mac.requests.sr_period),
            places: config.mac.configured.map(|grant| Places::new(grant, rat, prbs)),
            reserved: Blocks::none(),
            granted: [(0, 0); MOST_AHEAD],
        }
    }

    /// Returns the tick at which a block sent in `slot` has been decoded.
    #[inline]
    pub(crate) fn decoded(&self, slot: u64) -> u64 {
        self.slots.tick(slot + 1) + self.decoding_ticks
    }

    /// Returns the formats of `slot`, after grants for its uplink.
    #[inline]
    pub(crate) fn formats_in(&self, slot: u64) -> Formats {
        let (granted, symbols) = self.granted[slot as usize % MOST_AHEAD];
        self.formats.in_slot(slot, if granted == slot { symbols } else { 0 })
    }

    /// Records that `symbols` of the flexible slot `slot` are the uplink's.
    #[inline]
    pub(crate) fn grant_symbols(&mut self, slot: u64, symbols: u8) {
        self.granted[slot as usize % MOST_AHEAD] = (slot, symbols);
    }

    /// Returns the past service, for proportional fair, of a UE that has just come.
    pub(crate) fn past(&self) -> Past {
        Past::new(self.slots.spanning(self.mac.fairness))
    }

    /// Returns one direction of the cell.
    #[inline]
    pub(crate) fn side(&mut self, way: Direction) -> &mut Side {
        match way {
            Direction::Downlink => &mut self.downlink,
            Direction::Uplink => &mut self.uplink,
        }
    }

    /// Returns whether any UE is active.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !(self.downlink.active.ues().is_empty() && self.uplink.active.ues().is_empty())
    }

    /// Returns the resource blocks of `count` groups starting at group `first`; the last group may be smaller.
    #[inline]
    pub(crate) fn blocks(&self, first: u16, count: u16) -> core::ops::Range<u16> {
        let Grid { group, prbs, .. } = self.grid;
        first * group..((first + count) * group).min(prbs)
    }

    /// Returns the number of groups that hold `prbs` resource blocks.
    #[inline]
    pub(crate) fn groups_of(&self, prbs: u16) -> u16 {
        prbs.div_ceil(self.grid.group)
    }

    /// Returns the smallest number of groups in which a code word of `bytes` with `mcs` and `layers` fits in a slot of
    /// these `formats`, or all of them.
    #[inline(always)]
    pub(crate) fn groups_for(&self, formats: &Formats, (mcs, layers): (u8, u8), bytes: u32) -> u16 {
        let prbs = self.grid.prbs;
        let bits = bytes.saturating_mul(8);
        let size = |prbs| formats.downlink_bits(mcs, layers, prbs);
        if size(prbs) <= bits {
            return self.grid.groups;
        }
        let usable = |prbs| formats.usable(Direction::Downlink, (mcs, layers), prbs);
        self.groups_of(fewest(size, |prbs| formats.downlink_bits(usable(prbs), layers, prbs), bits, prbs))
    }

    /// Returns the smallest valid number of resource blocks of an uplink grant in which `bytes` fit with `mcs` in a slot
    /// of these `formats`, or the maximum.
    #[inline(always)]
    pub(crate) fn grant_for(&self, formats: &Formats, mcs: u8, bytes: u32) -> u16 {
        let sizes = self.grid.sizes;
        let most = self.grid.shared.count();
        let bits = bytes.saturating_mul(8);
        let size = |prbs| formats.uplink_bits(mcs, prbs);
        if size(most) <= bits {
            return sizes.up_to(most);
        }
        let usable = |prbs| formats.usable(Direction::Uplink, (mcs, 1), prbs);
        let fewest = fewest(size, |prbs| formats.uplink_bits(usable(prbs), prbs), bits, most);
        sizes.from(fewest).min(sizes.up_to(most))
    }
}

/// Returns the smallest number of resource blocks, up to `most`, in which `bits` fit; `most` suffices. `usable` gives
/// the capacity of blocks, and `size` the capacity if all code rates could be decoded.
#[inline(always)]
fn fewest(size: impl Fn(u16) -> u32, usable: impl Fn(u16) -> u32, bits: u32, most: u16) -> u16 {
    let holds = |prbs: u16| bits <= usable(prbs);
    // Sizes are nearly proportional to the number of blocks: start there.
    let whole = u64::from(size(most));
    let mut prbs = ((u64::from(bits) * u64::from(most) / whole) as u16).clamp(1, most);
    while prbs > 1 && holds(prbs - 1) {
        prbs -= 1;
    }
    while prbs < most && !holds(prbs) {
        prbs += 1;
    }
    prbs
}

impl Side {
    /// Marks `ue` as inactive.
    #[inline]
    pub(crate) fn remove(&mut self, ue: u32) {
        self.active.remove(ue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::{Bandwidth, Carrier, Site};

    fn cell(bandwidth: Bandwidth) -> Cell {
        let site = Site { carrier: Carrier::lte(bandwidth), ..Site::default() };
        Cell::new(&CellConfig { site, ..CellConfig::default() }, None, Span::from_millis(1))
    }

    #[test]
    fn groups_cover_the_carrier() {
        for bandwidth in Bandwidth::ALL {
            let cell = cell(bandwidth);
            let prbs = bandwidth.prbs();
            assert_eq!(cell.blocks(0, cell.grid.groups), 0..prbs, "{bandwidth:?}");
            assert_eq!(cell.groups_of(prbs), cell.grid.groups);
        }
    }

    #[test]
    fn an_allocation_is_the_smallest_that_holds_the_bytes() {
        let cell = cell(Bandwidth::Mhz20);
        for mcs in [0, 6, 13, 28] {
            for bytes in (1..9500).step_by(7) {
                let groups = cell.groups_for(&Formats::Lte, (mcs, 1), bytes);
                let holds = |groups: u16| Formats::Lte.downlink_bits(mcs, 1, cell.blocks(0, groups).end) >= bytes * 8;
                assert!(holds(groups) || groups == cell.grid.groups, "{mcs} {bytes}");
                // The table has one entry that is larger than its neighbour: it may save a group.
                assert!(groups == 1 || !holds(groups - 1), "{mcs} {bytes} {groups}");
                let grant = cell.grant_for(&Formats::Lte, mcs, bytes);
                assert!(cell.grid.sizes.up_to(grant) == grant && grant <= 96);
                assert!(Formats::Lte.uplink_bits(mcs, grant) >= bytes * 8 || grant == 96);
            }
        }
    }
}
