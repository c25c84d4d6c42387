//! What flows that something else than the path held back tell of a direction: nothing but that it had more, except in bursts of theirs
//! that had a queue.

use record::tables::FlowRow;

use super::axis::{Axis, mean_near};
use crate::why::{Held, Hold, Stretch};

/// The share of its time from which on a flow is its application's.
pub(super) const MOST_APP: f64 = 0.5;
/// Bins with load that tell the capacity of others, in number and as a share of those that flows used.
const LEAST_NEEDED: usize = 3;
const LEAST_SHARE: f64 = 0.02;
/// A bin in which a burst fills a direction has this share of what the fullest has; others are at the edges of bursts (fitted).
const FULL: f64 = 0.8;

/// What flows left of a direction, in each bin.
pub(super) struct Spare {
    /// Whether all flows that were under way left some of it.
    pub(super) bins: Vec<bool>,
    /// Of these, where a burst of a flow that its application holds back most of the time had a queue.
    bursts: Vec<bool>,
    is_used: Vec<bool>,
}

impl Spare {
    /// Of a direction of some flows, by what held them back.
    pub(super) fn of(
        (flows, held): (&[(FlowRow<'_>, usize)], &[Held]),
        axis: &Axis,
        way: usize,
        is_used: &[bool],
    ) -> Spare {
        let none = || vec![false; axis.count];
        let (mut needed, mut left, mut bursts) = (none(), none(), none());
        for ((row, _), held) in flows.iter().zip(held).filter(|((_, of), _)| *of == way) {
            let is_of_app = held.share(&[Hold::App, Hold::Room]) >= MOST_APP;
            let is_left = |one: &Stretch| match one.hold {
                Hold::App | Hold::Room => true,
                Hold::Rwnd => one.queued == Some(false),
                // An application that sends now and then fills the path for moments, if at all.
                Hold::Cwnd | Hold::Unknown => is_of_app,
            };
            let (mut own, mut needs, mut under_way) = (none(), none(), none());
            for one in &held.stretches {
                axis.mark_between(if is_left(one) { &mut own } else { &mut needs }, one.from_s, one.to_s);
                if is_of_app && one.hold == Hold::Cwnd && one.queued == Some(true) {
                    axis.mark_between(&mut bursts, one.from_s, one.to_s);
                }
            }
            axis.mark(&mut under_way, row);
            for bin in 0..axis.count {
                // A bin in which something else held it back too was needed.
                let is_spare = own[bin] && !needs[bin];
                left[bin] |= is_spare;
                needed[bin] |= under_way[bin] && !is_spare;
            }
        }
        let bins: Vec<bool> = (0..axis.count).map(|bin| is_used[bin] && left[bin] && !needed[bin]).collect();
        bursts.iter_mut().zip(&bins).for_each(|(burst, is_spare)| *burst &= is_spare);
        Spare { bins, bursts, is_used: is_used.to_vec() }
    }

    /// What a direction that carried `carried` and could have carried `bytes` could have carried in all, with the nearest times with load
    /// (those with a queue are `full`) where flows left some of it; `None` if they always did, and no burst filled it. If bursts tell it,
    /// their rate as well, in bytes a second.
    pub(super) fn filled(
        &self,
        carried: &[f64],
        mut bytes: Vec<f64>,
        full: Vec<usize>,
        axis: &Axis,
    ) -> (Option<Vec<f64>>, Option<f64>) {
        if !self.bins.contains(&true) {
            return (Some(bytes), None);
        }
        // Without a queue, nothing tells that they filled it. A bin at the edge of a load is not full.
        let used = self.is_used.iter().filter(|is_used| **is_used).count();
        let least = if full.is_empty() { used / 2 } else { (used as f64 * LEAST_SHARE) as usize };
        let is_needed = |bin: &usize| self.is_used[*bin] && !self.bins[*bin];
        let mut needed: Vec<usize> = if full.is_empty() { (0..axis.count).filter(is_needed).collect() } else { full };
        let mut rate = None;
        if needed.len() < least.max(LEAST_NEEDED) {
            let bursts = || (0..axis.count).filter(|&bin| self.bursts[bin]);
            let most = bursts().map(|bin| carried[bin]).fold(0.0, f64::max);
            needed = bursts().filter(|&bin| carried[bin] >= most * FULL).collect();
            if needed.len() < LEAST_NEEDED {
                return (None, None);
            }
            let all: f64 = needed.iter().map(|&bin| carried[bin]).sum();
            rate = Some(all / needed.len() as f64 / axis.width_s);
        }
        for bin in (0..axis.count).filter(|&bin| self.bins[bin]) {
            bytes[bin] = mean_near(carried, &needed, bin).unwrap_or(0.0).max(bytes[bin]);
        }
        (Some(bytes), rate)
    }
}
