//! A cell: its carriers and who is to be served in them.

use units::Span;

use crate::config::{CellConfig, MacConfig};
use crate::mac::blocks::Blocks;
use crate::mac::sched::Scheduler;
use crate::rat::Grid;
use crate::slots::Slots;

/// One direction of a cell.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) scheduler: Scheduler,
    /// The UEs that have something to send, in ascending order. Nobody looks at the others.
    pub(crate) active: Vec<u32>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) mac: MacConfig,
    pub(crate) slots: Slots,
    /// Slots that decoding takes.
    pub(crate) decoding: u64,
    pub(crate) grid: Grid,
    pub(crate) downlink: Side,
    pub(crate) uplink: Side,
    /// Uplink resource blocks that retransmissions take in the slot that grants are made for next.
    pub(crate) reserved: Blocks,
}

impl Cell {
    /// The cell of `config`, in a network whose calendar counts in `tick`s.
    ///
    /// # Panics
    /// If decoding takes longer than the technology's acknowledgements allow.
    pub(crate) fn new(config: &CellConfig, tick: Span) -> Cell {
        let rat = config.mac.rat;
        let slots = Slots::new(rat.slot(), tick);
        let decoding = slots.spanning(config.mac.decoding);
        assert!(decoding <= rat.timing().longest_decoding, "a block is decoded before it is acknowledged");
        let side = |scheduler| Side { scheduler, active: Vec::new() };
        let (downlink, uplink) = rat.schedulers(config.downlink, config.uplink);
        Cell {
            mac: config.mac,
            slots,
            decoding,
            grid: rat.grid(config.site.carrier.bandwidth),
            downlink: side(downlink),
            uplink: side(uplink),
            reserved: Blocks::none(),
        }
    }

    /// Whether anything is to be sent.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !(self.downlink.active.is_empty() && self.uplink.active.is_empty())
    }

    /// Resource blocks of `count` groups from group `first` on: the last group may be smaller than the others.
    #[inline]
    pub(crate) fn blocks(&self, first: u16, count: u16) -> core::ops::Range<u16> {
        let Grid { group, prbs, .. } = self.grid;
        first * group..((first + count) * group).min(prbs)
    }

    /// Groups that hold `prbs` resource blocks.
    #[inline]
    pub(crate) fn groups_of(&self, prbs: u16) -> u16 {
        prbs.div_ceil(self.grid.group)
    }

    /// The fewest groups in which `bytes` fit with `mcs`, or all of them.
    #[inline(always)]
    pub(crate) fn groups_for(&self, mcs: u8, bytes: u32) -> u16 {
        let (rat, prbs) = (self.mac.rat, self.grid.prbs);
        let bits = bytes.saturating_mul(8);
        let size = |prbs| rat.downlink_bits(mcs, prbs);
        if size(prbs) <= bits {
            return self.grid.groups;
        }
        self.groups_of(fewest(size, |prbs| rat.downlink_bits(rat.usable(mcs, prbs), prbs), bits, prbs))
    }

    /// The fewest resource blocks that an uplink grant may have in which `bytes` fit with `mcs`, or the most that it may
    /// have.
    #[inline(always)]
    pub(crate) fn grant_for(&self, mcs: u8, bytes: u32) -> u16 {
        let (rat, sizes) = (self.mac.rat, self.grid.sizes);
        let most = self.grid.shared.count();
        let bits = bytes.saturating_mul(8);
        let size = |prbs| rat.uplink_bits(mcs, prbs);
        if size(most) <= bits {
            return sizes.up_to(most);
        }
        let fewest = fewest(size, |prbs| rat.uplink_bits(rat.usable(mcs, prbs), prbs), bits, most);
        sizes.from(fewest).min(sizes.up_to(most))
    }
}

/// The fewest resource blocks, up to `most`, in which `bits` fit; `most` is enough for them. `usable` gives what blocks
/// hold, and `size` what they would hold if they were all decoded.
#[inline(always)]
fn fewest(size: impl Fn(u16) -> u32, usable: impl Fn(u16) -> u32, bits: u32, most: u16) -> u16 {
    let holds = |prbs: u16| bits <= usable(prbs);
    // Sizes are nearly proportional to the blocks: start there.
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
    /// `ue` has something to send.
    #[inline]
    pub(crate) fn activate(&mut self, ue: u32) {
        if let Err(place) = self.active.binary_search(&ue) {
            self.active.insert(place, ue);
        }
    }

    /// `ue` has nothing to send any more.
    #[inline]
    pub(crate) fn remove(&mut self, ue: u32) {
        if let Ok(place) = self.active.binary_search(&ue) {
            self.active.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rat::Rat;
    use channel::{Bandwidth, Carrier, Site};

    fn cell(bandwidth: Bandwidth) -> Cell {
        let site = Site { carrier: Carrier { bandwidth, ..Carrier::default() }, ..Site::default() };
        Cell::new(&CellConfig { site, ..CellConfig::default() }, Span::from_millis(1))
    }

    #[test]
    fn groups_cover_the_carrier() {
        for bandwidth in Bandwidth::ALL {
            let cell = cell(bandwidth);
            let prbs = u16::from(bandwidth.prbs());
            assert_eq!(cell.blocks(0, cell.grid.groups), 0..prbs, "{bandwidth:?}");
            assert_eq!(cell.groups_of(prbs), cell.grid.groups);
        }
    }

    #[test]
    fn an_allocation_is_the_smallest_that_holds_the_bytes() {
        let cell = cell(Bandwidth::Mhz20);
        for mcs in [0, 6, 13, 28] {
            for bytes in (1..9500).step_by(7) {
                let groups = cell.groups_for(mcs, bytes);
                let holds = |groups: u16| Rat::Lte.downlink_bits(mcs, cell.blocks(0, groups).end) >= bytes * 8;
                assert!(holds(groups) || groups == cell.grid.groups, "{mcs} {bytes}");
                // The table has one entry that is larger than its neighbour: it may save a group.
                assert!(groups == 1 || !holds(groups - 1), "{mcs} {bytes} {groups}");
                let grant = cell.grant_for(mcs, bytes);
                assert!(cell.grid.sizes.up_to(grant) == grant && grant <= 96);
                assert!(Rat::Lte.uplink_bits(mcs, grant) >= bytes * 8 || grant == 96);
            }
        }
    }
}
