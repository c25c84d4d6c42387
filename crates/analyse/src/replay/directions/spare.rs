//! What flows that something else than the path held back tell of a direction: nothing but that it had more, except in bursts of theirs
//! that had a queue.

use super::{Axis, Basis, Bins, Buffer, MOST_APP, Measured, mean_near};
use crate::why::{Hold, Stretch};

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
}

impl Spare {
    pub(super) fn of(measured: &Measured<'_>, axis: &Axis, way: usize, is_used: &[bool]) -> Spare {
        let none = || vec![false; axis.count];
        let (mut needed, mut left, mut bursts) = (none(), none(), none());
        for ((row, _), held) in measured.flows.iter().zip(&measured.held).filter(|((_, of), _)| *of == way) {
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
        Spare { bins, bursts }
    }
}

impl Bins {
    /// What a direction could have carried, with the nearest times with load where flows left some of it; `None` if they always did,
    /// and no burst filled it. If bursts tell it, their rate as well, in bytes a second.
    pub(super) fn with_spare(&self, way: usize, mut bytes: Vec<f64>) -> (Option<Vec<f64>>, Option<f64>) {
        let of = &self.ways[way];
        if !of.spare.bins.contains(&true) {
            return (Some(bytes), None);
        }
        let full = self.full(way);
        let is_needed = |bin: &usize| of.is_used[*bin] && !of.spare.bins[*bin];
        // Without a queue, nothing tells that they filled it. A bin at the edge of a load is not full.
        let used = of.is_used.iter().filter(|is_used| **is_used).count();
        let least = if full.is_empty() { used / 2 } else { (used as f64 * LEAST_SHARE) as usize };
        let mut needed: Vec<usize> = if full.is_empty() { (0..bytes.len()).filter(is_needed).collect() } else { full };
        let mut rate = None;
        if needed.len() < least.max(LEAST_NEEDED) {
            let most =
                (0..bytes.len()).filter(|&bin| of.spare.bursts[bin]).map(|bin| of.bytes[bin]).fold(0.0, f64::max);
            needed = (0..bytes.len()).filter(|&bin| of.spare.bursts[bin] && of.bytes[bin] >= most * FULL).collect();
            if needed.len() < LEAST_NEEDED {
                return (None, None);
            }
            let all: f64 = needed.iter().map(|&bin| of.bytes[bin]).sum();
            rate = Some(all / needed.len() as f64 / self.axis.width_s);
        }
        for bin in (0..bytes.len()).filter(|&bin| of.spare.bins[bin]) {
            bytes[bin] = mean_near(&of.bytes, &needed, bin).unwrap_or(0.0).max(bytes[bin]);
        }
        (Some(bytes), rate)
    }

    /// The most that a direction carried in a bin.
    pub(super) fn most_mbps(&self, way: usize) -> f64 {
        self.ways[way].bytes.iter().copied().fold(0.0, f64::max) * 8.0 / 1e6 / self.axis.width_s
    }
}

/// The buffer that bursts filled at a rate in bytes a second, by the most bytes that a flow of the direction had in flight; `None` if no
/// sender told.
pub(super) fn in_flight_of_bursts(measured: &Measured<'_>, way: usize, rate: f64) -> Option<Buffer> {
    let flows = measured.flows.iter().filter(|(row, of)| *of == way && row.transport == "tcp");
    let most = flows.filter_map(|(row, _)| row.max_in_flight_bytes.filter(|&most| most > 0)).max()?;
    Some(Buffer::new(most.min(1 << 32) as f64 - rate * measured.base_ms / 1e3, Basis::InFlight))
}
