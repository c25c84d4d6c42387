//! LTE with the idealisations of ns-3's LTE module: see [`super::Rat::LteIdeal`].

use aqm::{Drops, Packet};
use channel::Direction;

use super::grid::{Grid, Need, Sizes};
use super::lte;
use crate::mac::blocks::Blocks;
use crate::mac::sched::{Candidate, Discipline, Scheduler};
use crate::network::{Io, Ran};
use crate::ue::Ue;

/// The minimum number of resource blocks that ns-3 grants in the uplink.
const LEAST: u16 = 3;

/// ns-3 leaves out the last group if it is smaller than the others, and has no control region in the uplink.
pub(super) fn grid(prbs: u16) -> Grid {
    let lte = lte::grid(prbs);
    Grid { groups: lte.prbs / lte.group, shared: Blocks::run(0, lte.prbs), sizes: Sizes::Any, ..lte }
}

pub(super) fn schedulers(downlink: Discipline, uplink: Discipline) -> (Scheduler, Scheduler) {
    let downlink = match downlink {
        Discipline::RoundRobin => Scheduler::in_parts(downlink, 1),
        discipline => Scheduler::new(discipline),
    };
    (downlink, Scheduler::in_parts(uplink, LEAST))
}

/// ns-3 gives the best UE all groups on which it is best, which here are all groups.
#[inline]
pub(super) fn downlink_want(groups: u16) -> u16 {
    groups
}

/// Returns the known backlog minus pending grants.
#[inline]
pub(super) fn uplink_need<P: Packet>(ue: &mut Ue<P>, tti: u64) -> Need {
    let known = lte::report(ue.uplink_groups(ue.slots.start(tti))).bytes;
    if known == 0 {
        return Need::Nothing;
    }
    match known.saturating_sub(ue.estimate.granted_from_now(tti)) {
        0 => Need::Later,
        bytes => Need::Bytes(bytes),
    }
}

/// All UEs have equal parts, regardless of their channel.
#[inline]
pub(super) fn uplink_candidate(index: u32, free: u16) -> Candidate {
    Candidate::new(index, 0.0, free)
}

/// Fills a block with data only.
#[inline]
pub(super) fn fill_uplink<P: Packet, D: Drops<P>, S>(
    ran: &mut Ran<P>,
    index: u32,
    process: u8,
    tti: u64,
    io: &mut Io<'_, D, S>,
) -> u32 {
    let ue = &mut ran.ues[index as usize];
    let bytes = ue.up.harq.processes[usize::from(process)].bits / 8;
    ue.fill(Direction::Uplink, process, bytes, false, ue.slots.start(tti), io.drops)
}
