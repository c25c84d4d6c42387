//! A cell: its carriers and who is to be served in them.

use channel::tables::lte as tables;

use crate::adaptation::usable;
use crate::config::CellConfig;
use crate::sched::{Blocks, Discipline, Scheduler, uplink_size, uplink_size_from};

/// The fewest resource blocks that ns-3 grants in the uplink.
const NS3_LEAST: u8 = 3;

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
    pub(crate) prbs: u8,
    /// Resource blocks of a group, and groups.
    pub(crate) group: u8,
    pub(crate) groups: u8,
    pub(crate) downlink: Side,
    pub(crate) uplink: Side,
    /// Uplink resource blocks that hold no control channel.
    pub(crate) shared: Blocks,
    /// Uplink resource blocks that retransmissions take in the TTI that grants are made for next.
    pub(crate) reserved: Blocks,
    /// Grants have any size (ideal).
    any_size: bool,
}

impl Cell {
    pub(crate) fn new(config: &CellConfig, ideal: bool) -> Cell {
        let bandwidth = config.site.carrier.bandwidth;
        let prbs = bandwidth.prbs();
        // The control channel takes the edges: one block of 25 on both sides together, an estimate of what operators do.
        let control = if ideal { 0 } else { prbs / 25 };
        let side = |scheduler| Side { scheduler, active: Vec::new() };
        let downlink = match config.downlink {
            Discipline::RoundRobin if ideal => Scheduler::in_parts(config.downlink, 1),
            discipline => Scheduler::new(discipline),
        };
        let uplink = match config.uplink {
            discipline if ideal => Scheduler::in_parts(discipline, NS3_LEAST),
            discipline => Scheduler::new(discipline),
        };
        Cell {
            prbs,
            group: bandwidth.rbg_size(),
            // ns-3 leaves out the last group if it is smaller than the others.
            groups: if ideal { prbs / bandwidth.rbg_size() } else { bandwidth.rbgs() },
            downlink: side(downlink),
            uplink: side(uplink),
            shared: Blocks::run(control / 2, prbs - control),
            reserved: Blocks::none(),
            any_size: ideal,
        }
    }

    /// Whether anything is to be sent.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        !(self.downlink.active.is_empty() && self.uplink.active.is_empty())
    }

    /// Resource blocks of `count` groups from group `first` on: the last group may be smaller than the others.
    #[inline]
    pub(crate) fn blocks(&self, first: u8, count: u8) -> core::ops::Range<u8> {
        first * self.group..((first + count) * self.group).min(self.prbs)
    }

    /// Groups that hold `prbs` resource blocks.
    #[inline]
    pub(crate) fn groups_of(&self, prbs: u8) -> u8 {
        prbs.div_ceil(self.group)
    }

    /// The fewest groups in which `bytes` fit, or all of them.
    #[inline]
    pub(crate) fn groups_for(&self, i_tbs: u8, bytes: u32) -> u8 {
        let bits = bytes.saturating_mul(8);
        if tables::tbs(i_tbs, self.prbs) <= bits {
            return self.groups;
        }
        self.groups_of(fewest(i_tbs, bits, self.prbs))
    }

    /// The fewest resource blocks that an uplink grant may have in which `bytes` fit, or the most that it may have.
    #[inline]
    pub(crate) fn grant_for(&self, i_tbs: u8, bytes: u32) -> u8 {
        let most = self.shared.count();
        let bits = bytes.saturating_mul(8);
        if tables::tbs(i_tbs, most) <= bits {
            return self.grant(most);
        }
        uplink_size_from(fewest(i_tbs, bits, most)).min(self.grant(most))
    }

    /// The largest grant of at most `prbs` resource blocks.
    #[inline]
    pub(crate) fn grant(&self, prbs: u8) -> u8 {
        if self.any_size { prbs } else { uplink_size(prbs) }
    }
}

/// The fewest resource blocks, up to `most`, in which `bits` fit; `most` is enough for them.
fn fewest(i_tbs: u8, bits: u32, most: u8) -> u8 {
    let holds = |prbs: u8| bits <= tables::tbs(usable(i_tbs, prbs), prbs);
    // Sizes are nearly proportional to the blocks: start there.
    let whole = u64::from(tables::tbs(i_tbs, most));
    let mut prbs = ((u64::from(bits) * u64::from(most) / whole) as u8).clamp(1, most);
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
    use channel::{Bandwidth, Carrier, Site};

    fn cell(bandwidth: Bandwidth) -> Cell {
        let site = Site { carrier: Carrier { bandwidth, ..Carrier::default() }, ..Site::default() };
        Cell::new(&CellConfig { site, ..CellConfig::default() }, false)
    }

    #[test]
    fn groups_cover_the_carrier() {
        for bandwidth in Bandwidth::ALL {
            let cell = cell(bandwidth);
            assert_eq!(cell.blocks(0, cell.groups), 0..bandwidth.prbs(), "{bandwidth:?}");
            assert_eq!(cell.groups_of(bandwidth.prbs()), cell.groups);
        }
    }

    #[test]
    fn an_allocation_is_the_smallest_that_holds_the_bytes() {
        let cell = cell(Bandwidth::Mhz20);
        for i_tbs in [0, 6, 13, 26] {
            for bytes in (1..9500).step_by(7) {
                let groups = cell.groups_for(i_tbs, bytes);
                let holds = |groups: u8| tables::tbs(i_tbs, cell.blocks(0, groups).end) >= bytes * 8;
                assert!(holds(groups) || groups == cell.groups, "{i_tbs} {bytes}");
                // The table has one entry that is larger than its neighbour: it may save a group.
                assert!(groups == 1 || !holds(groups - 1), "{i_tbs} {bytes} {groups}");
                let grant = cell.grant_for(i_tbs, bytes);
                assert!(uplink_size(grant) == grant && grant <= 96);
                assert!(tables::tbs(i_tbs, grant) >= bytes * 8 || grant == 96);
            }
        }
    }
}
