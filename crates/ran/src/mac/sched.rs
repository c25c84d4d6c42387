//! Schedulers: the division of a carrier in a TTI.
//!
//! Three disciplines, the same in both directions, over the UEs with data to send: round robin gives each an equal part
//! of the carrier in each TTI, in rotating order; proportional fair serves by the ratio of a UE's possible rate to its
//! recent rate (Jalali, Padovani, Pankaj, VTC 2000); maximum throughput by the possible rate. No UE gets more than it
//! can use, and the remainder goes to the next one. If a UE's power does not suffice for everything it could use
//! (uplink), each further block is worth less to it, and goes to the UE to which it is worth most. Downlink resources
//! are resource block groups (36.213 7.1.6.1, type 0); uplink resources are contiguous blocks of sizes allowed by the
//! technology ([`Sizes`]).
//!
//! Deviations: channel quality is known only for the whole carrier, so a UE's rate is the same in all of it; ns-3's
//! proportional fair gives a TTI to one UE even if it cannot fill it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mac::adaptation::Scheme;
use crate::mac::power::Spread;
use crate::rat::Sizes;

/// The scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Scheduler")]
pub enum Discipline {
    /// Serves UEs in turn.
    RoundRobin,
    /// Proportional fair: serves the UE whose channel is best relative to its past throughput.
    #[default]
    ProportionalFair,
    /// Serves the UE with the best channel.
    MaxThroughput,
}

/// A UE that may be served in this TTI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) ue: u32,
    /// The discipline's metric of its next block; higher first.
    pub(crate) metric: f32,
    /// The value of blocks, if the UE's power limits it.
    pub(crate) limited: Option<Limited>,
    /// The scheme it would be sent with (downlink).
    pub(crate) scheme: Scheme,
    /// The amount of the carrier that it can use, at least 1: resource block groups, or resource blocks in the uplink.
    pub(crate) want: u16,
    /// The minimum with which it can send anything, at least 1.
    pub(crate) least: u16,
    /// The amount assigned by [`Scheduler::divide_among`].
    pub(crate) got: u16,
}

/// A UE whose power does not suffice for all blocks that it could use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limited {
    /// The value of a bit.
    weight: f32,
    /// The number of bits that blocks carry.
    spread: Spread,
    sizes: Sizes,
}

impl Candidate {
    /// Creates a UE for which each of up to `want` blocks has the value `metric`.
    #[inline]
    pub(crate) fn new(ue: u32, metric: f32, want: u16) -> Candidate {
        Candidate { ue, metric, limited: None, scheme: Scheme::default(), want, least: 1, got: 0 }
    }

    /// Creates a UE for which a bit has the value `weight`, and whose power does not suffice for `want` blocks; it can
    /// send nothing on fewer than `least`.
    #[inline]
    pub(crate) fn limited(ue: u32, weight: f32, (least, want): (u16, u16), spread: Spread, sizes: Sizes) -> Candidate {
        let limited = Some(Limited { weight, spread, sizes });
        let mut candidate = Candidate { limited, least, ..Candidate::new(ue, 0.0, want) };
        candidate.update_metric();
        candidate
    }

    /// Returns the number of blocks after its next assignment.
    #[inline]
    fn next(&self) -> u16 {
        match self.limited {
            None => self.want,
            Some(Limited { spread, sizes, .. }) if self.got == 0 => {
                sizes.up_to(spread.strength.full_power_prbs()).max(self.least).min(self.want)
            }
            Some(Limited { sizes, .. }) => sizes.from(self.got + 1).min(self.want),
        }
    }

    /// Computes the value of its next block.
    #[inline]
    fn update_metric(&mut self) {
        let Some(Limited { weight, spread, .. }) = self.limited else { return };
        let next = self.next();
        let before = if self.got == 0 { 0.0 } else { spread.bits(self.got) };
        self.metric = weight * (spread.bits(next) - before) / f32::from(next - self.got);
    }
}

/// The scheduler of one direction of one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduler {
    discipline: Discipline,
    /// With equal parts in turn, the minimum size of a part; `None` divides by the discipline.
    parts: Option<u16>,
    /// Among equals, the UE after this one comes first.
    last: u32,
}

impl Scheduler {
    pub(crate) fn new(discipline: Discipline) -> Scheduler {
        Scheduler { discipline, parts: None, last: u32::MAX }
    }

    /// Creates ns-3's round robin and uplink scheduler: equal parts of at least `least` in turn, whether a UE can use
    /// its part or not. The remainder is unused.
    pub(crate) fn in_parts(discipline: Discipline, least: u16) -> Scheduler {
        Scheduler { parts: Some(least), ..Scheduler::new(discipline) }
    }

    /// Returns the value of a bit of a UE in this TTI.
    #[inline]
    pub(crate) fn weight(&self, past: &mut Past, tti: u64) -> f32 {
        match self.discipline {
            Discipline::RoundRobin => 0.0,
            Discipline::ProportionalFair => 1.0 / past.at(tti).max(1.0),
            Discipline::MaxThroughput => 1.0,
        }
    }

    /// Returns whether it divides a slot into parts that may be too small for a UE: [`Candidate::least`] tells it.
    #[inline]
    pub(crate) fn divides_equally(&self) -> bool {
        self.parts.is_none() && self.discipline == Discipline::RoundRobin
    }

    /// Divides `free` among `candidates`, which are in ascending order and are returned in service order, those with an
    /// assignment first.
    #[cfg(test)]
    pub(crate) fn divide(&mut self, free: u16, candidates: &mut [Candidate]) {
        self.divide_among(usize::MAX, free, candidates);
    }

    /// Divides `free` among at most `most` of the `candidates`.
    pub(crate) fn divide_among(&mut self, most: usize, free: u16, candidates: &mut [Candidate]) {
        if most == 0 {
            return;
        }
        // Starts after the UE served last, so that equals take turns.
        let turn = candidates.partition_point(|c| c.ue <= self.last);
        candidates.rotate_left(turn);
        match (self.parts, self.discipline) {
            (Some(least), _) => divide_in_parts(free, least, candidates),
            (None, Discipline::RoundRobin) => {
                let first = candidates.len().min(most);
                divide_equally(free, &mut candidates[..first]);
            }
            (None, _) => divide_in_order(most, free, candidates),
        }
        self.turn(candidates);
        served_first(candidates);
    }

    /// Advances the turn: the next TTI begins with the first candidate without an assignment, or one further if all
    /// have one.
    fn turn(&mut self, candidates: &[Candidate]) {
        let served = candidates.iter().take_while(|c| c.got > 0).count();
        let last = if served == candidates.len() { 0 } else { served.saturating_sub(1) };
        if let Some(c) = candidates.get(last) {
            self.last = c.ue;
        }
    }
}

/// Returns how many of the `candidates` suffice to use `free` with all of their power, or all if there are too few.
pub(crate) fn enough(free: u16, candidates: &[Candidate]) -> usize {
    let mut left = free;
    let used = candidates.iter().take_while(|c| {
        let was = left;
        left = left.saturating_sub(c.next());
        was > 0
    });
    used.count()
}

/// See [`Scheduler::in_parts`].
fn divide_in_parts(mut free: u16, least: u16, candidates: &mut [Candidate]) {
    let part = (usize::from(free) / candidates.len().max(1)).max(least.into()) as u16;
    for c in candidates {
        c.got = if free < least { 0 } else { part.min(free) };
        free -= c.got;
    }
}

/// In round robin, a carrier of which an equal part is too small for any UE is divided into parts of this many times what
/// they need to send anything, of which most is headers. Ours.
const WORTHWHILE: u16 = 4;

/// Gives each in turn an equal part, or the part that it needs to send anything, as long as there is one; those left out are
/// first in the next TTI. What a UE cannot use is divided equally among the others that are served.
fn divide_equally(mut free: u16, candidates: &mut [Candidate]) {
    let part = (usize::from(free) / candidates.len().max(1)).max(1) as u16;
    let is_too_small = candidates.iter().all(|c| c.least > part);
    let mut unsatisfied = 0;
    for c in candidates.iter_mut() {
        let first = match c.limited {
            _ if !is_too_small => part.max(c.least),
            // Its power suffices for no more.
            Some(_) => c.next(),
            None => c.least.saturating_mul(WORTHWHILE),
        };
        let first = first.min(c.want).min(free);
        if first >= c.least {
            c.got = first;
            free -= first;
            unsatisfied += usize::from(c.got < c.want);
        }
    }
    while free > 0 && unsatisfied > 0 {
        let part = (usize::from(free) / unsatisfied).max(1) as u16;
        unsatisfied = 0;
        for c in candidates.iter_mut().filter(|c| c.got > 0) {
            let more = part.min(c.want - c.got).min(free);
            c.got += more;
            free -= more;
            unsatisfied += usize::from(c.got < c.want);
        }
    }
}

/// Serves in order of the metric, each with as much as it can use, or block by block if each further one is worth less.
/// Few UEs, at most `most`, get anything, so the others are not sorted.
fn divide_in_order(mut most: usize, mut free: u16, candidates: &mut [Candidate]) {
    let mut rest = &mut *candidates;
    while free > 0 && !rest.is_empty() {
        if most == 0 {
            // Only those that have something get more.
            served_first(rest);
            let served = rest.iter().take_while(|c| c.got > 0).count();
            rest = &mut rest[..served];
            if rest.is_empty() {
                break;
            }
        }
        let best = (1..rest.len()).fold(0, |best, i| if rest[i].metric > rest[best].metric { i } else { best });
        let c = &mut rest[best];
        let next = c.next();
        if next - c.got <= free {
            most -= usize::from(c.got == 0);
            free -= next - c.got;
            c.got = next;
            if next < c.want {
                c.update_metric();
                continue;
            }
        } else if c.got == 0 && c.least <= free {
            most -= 1;
            c.got = free;
            free = 0;
        }
        // Otherwise the next larger grant does not fit.
        // The earlier ones keep their order.
        rest[..=best].rotate_right(1);
        rest = &mut rest[1..];
    }
    // UEs that could use more come after those that could not.
    served_first(candidates);
}

/// Moves candidates with an assignment to the front. Both groups keep their order.
fn served_first(candidates: &mut [Candidate]) {
    let mut served = 0;
    for i in 0..candidates.len() {
        if candidates[i].got > 0 {
            if served < i {
                candidates[served..=i].rotate_right(1);
            }
            served += 1;
        }
    }
}

/// A UE's recent service, as an exponential average in bits per TTI, over all carriers of a direction. Not updated while the
/// UE is idle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Past {
    average: f32,
    /// The TTI at whose start the average applies.
    tti: u64,
    /// The averaging time in TTIs.
    ttis: f32,
}

impl Past {
    /// Creates the average over `ttis`, at least two, of a UE that was not served.
    pub(crate) fn new(ttis: u64) -> Past {
        Past { average: 0.0, tti: 0, ttis: ttis.max(2) as f32 }
    }

    /// Returns the average at the start of `tti`.
    #[inline]
    fn at(&mut self, tti: u64) -> f32 {
        let idle = tti - self.tti;
        if idle > 0 {
            self.average *= decay(self.ttis, idle);
            self.tti = tti;
        }
        self.average
    }

    /// Adds a service of `bits` in `tti`.
    #[inline]
    pub(crate) fn served(&mut self, tti: u64, bits: u32) {
        let before = self.at(tti);
        self.average = before + bits as f32 / (self.ttis - 1.0);
    }
}

/// Returns the decay of an average over `average` TTIs after `ttis` without service: `(1 - 1/T)^ttis`.
#[inline]
fn decay(average: f32, mut ttis: u64) -> f32 {
    let step = 1.0 - 1.0 / average;
    if ttis == 1 {
        return step;
    }
    if ttis as f32 > 100.0 * average {
        return 0.0;
    }
    let (mut product, mut power) = (1.0, step);
    while ttis > 0 {
        if ttis & 1 == 1 {
            product *= power;
        }
        power *= power;
        ttis >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(metrics: &[f32]) -> Vec<Candidate> {
        let candidate = |(ue, metric): (usize, &f32)| Candidate::new(ue as u32, *metric, 25);
        metrics.iter().enumerate().map(candidate).collect()
    }

    #[test]
    fn equals_are_served_in_turn() {
        let mut scheduler = Scheduler::new(Discipline::MaxThroughput);
        let mut first = Vec::new();
        for _ in 0..6 {
            let mut list = candidates(&[2.0, 2.0, 1.0, 2.0]);
            scheduler.divide(25, &mut list);
            first.push(list[0].ue);
        }
        assert_eq!(first, [0, 1, 3, 0, 1, 3]);
    }

    #[test]
    fn the_first_ue_in_round_robin_changes_every_tti() {
        let mut scheduler = Scheduler::new(Discipline::RoundRobin);
        for (free, order) in [(25, [1, 2, 3, 1, 2, 3]), (2, [1, 3, 2, 1, 3, 2])] {
            scheduler.last = 0;
            for expected in order {
                let mut list = candidates(&[0.0; 4]);
                list.remove(0);
                scheduler.divide(free, &mut list);
                assert_eq!(list[0].ue, expected);
            }
        }
    }

    #[test]
    fn round_robin_gives_equal_parts_and_what_one_leaves_to_the_others() {
        let divided = |wants: &[u16]| {
            let mut list = candidates(&vec![0.0; wants.len()]);
            for (c, want) in list.iter_mut().zip(wants) {
                c.want = *want;
            }
            Scheduler::new(Discipline::RoundRobin).divide(25, &mut list);
            list.iter().map(|c| c.got).collect::<Vec<_>>()
        };
        assert_eq!(divided(&[25; 10]), [3, 3, 3, 3, 3, 2, 2, 2, 2, 2]);
        assert_eq!(divided(&[25, 1]), [24, 1]);
        assert_eq!(divided(&[1, 25]), [1, 24]);
        assert_eq!(divided(&[2, 2, 2]), [2, 2, 2]);
        assert_eq!(divided(&[1; 40])[..26], [[1; 25].as_slice(), &[0]].concat());
    }

    #[test]
    fn proportional_fair_gives_equal_time_to_unequal_channels() {
        let mut scheduler = Scheduler::new(Discipline::ProportionalFair);
        let rates = [1000.0f32, 4000.0];
        let mut past = [Past::new(100); 2];
        let mut served = [0u32; 2];
        for tti in 1..2000 {
            let mut list = candidates(&[0.0, 0.0]);
            for c in &mut list {
                c.metric = rates[c.ue as usize] * scheduler.weight(&mut past[c.ue as usize], tti);
            }
            scheduler.divide(25, &mut list);
            let best = list[0].ue as usize;
            past[best].served(tti, rates[best] as u32);
            served[best] += 1;
        }
        assert!((f64::from(served[0]) / 2000.0 - 0.5).abs() < 0.02, "{served:?}");
    }

    #[test]
    fn a_ue_that_needs_more_than_its_part_gets_it_in_turn_and_nothing_otherwise() {
        for discipline in [Discipline::RoundRobin, Discipline::ProportionalFair] {
            let mut scheduler = Scheduler::new(discipline);
            let mut got = [0u32; 3];
            for _ in 0..30 {
                let mut list = candidates(&[1.0; 3]);
                list[1].least = 20;
                scheduler.divide(25, &mut list);
                assert!(list.iter().map(|c| c.got).sum::<u16>() <= 25);
                for c in &list {
                    assert!(c.got == 0 || c.got >= c.least, "{list:?}");
                    got[c.ue as usize] += u32::from(c.got);
                }
                let served = list.iter().take_while(|c| c.got > 0).count();
                assert!(list[served..].iter().all(|c| c.got == 0), "{list:?}");
            }
            assert!(got.iter().all(|got| (180..=330).contains(got)), "{discipline:?} {got:?}");
        }
    }

    #[test]
    fn no_more_are_served_than_the_control_channel_has_room_for_and_all_in_turn() {
        for discipline in [Discipline::RoundRobin, Discipline::ProportionalFair, Discipline::MaxThroughput] {
            let mut scheduler = Scheduler::new(discipline);
            let mut served = [0; 10];
            for _ in 0..10 {
                let mut list = candidates(&[1.0; 10]);
                list.iter_mut().for_each(|c| c.want = 5);
                scheduler.divide_among(3, 25, &mut list);
                let got: Vec<u16> = list.iter().take_while(|c| c.got > 0).map(|c| c.got).collect();
                assert!(got.len() == 3 && got.iter().all(|got| *got == 5), "{discipline:?} {list:?}");
                list[..3].iter().for_each(|c| served[c.ue as usize] += 1);
            }
            assert_eq!(served, [3; 10], "{discipline:?}");
        }
        let mut list = candidates(&[1.0, 3.0, 2.0]);
        Scheduler::new(Discipline::MaxThroughput).divide_among(0, 25, &mut list);
        assert!(list.iter().all(|c| c.got == 0));
    }

    #[test]
    fn a_carrier_of_which_an_equal_part_is_too_small_is_shared_by_as_many_as_it_holds() {
        let mut scheduler = Scheduler::new(Discipline::RoundRobin);
        let mut got = [0u32; 10];
        for _ in 0..100 {
            let mut list = candidates(&[0.0; 10]);
            list.iter_mut().for_each(|c| c.least = 3);
            scheduler.divide(25, &mut list);
            let mut parts: Vec<u16> = list.iter().map(|c| c.got).collect();
            parts.sort_unstable();
            assert_eq!(parts, [0, 0, 0, 0, 0, 0, 0, 0, 12, 13]);
            list.iter().for_each(|c| got[c.ue as usize] += u32::from(c.got));
        }
        assert!(got.iter().all(|got| (240..=260).contains(got)), "{got:?}");
    }

    #[test]
    fn an_average_covers_the_same_time_whatever_the_length_of_a_slot() {
        // 100 ms in slots of 1 ms and of 0.125 ms, after which 1 - 1/e of a constant rate is in the average.
        for slots in [100, 800] {
            let mut past = Past::new(slots);
            (0..slots).for_each(|slot| past.served(slot, 1000));
            assert!((past.at(slots) / 1000.0 - 0.632).abs() < 0.005, "{slots}: {}", past.at(slots));
        }
    }

    #[test]
    fn a_candidate_that_does_not_fit_leaves_what_is_free_to_the_next() {
        let mut list = candidates(&[1.0, 2.0]);
        list[1].least = 11;
        Scheduler::new(Discipline::ProportionalFair).divide(10, &mut list);
        assert_eq!((list[0].ue, list[0].got, list[1].got), (0, 10, 0));
    }

    #[test]
    fn as_many_are_enough_as_can_use_all_that_is_free() {
        let mut list = candidates(&[1.0; 10]);
        assert_eq!([0, 1, 25, 26, 1000].map(|free| enough(free, &list)), [0, 1, 1, 2, 10]);
        list.iter_mut().for_each(|c| c.want = 3);
        assert_eq!(enough(25, &list), 9);
    }

    #[test]
    fn an_average_decays_in_one_step_as_in_many() {
        let (mut asked, mut left) = (Past::new(100), Past::new(100));
        asked.served(1, 10_000);
        left.served(1, 10_000);
        for tti in 2..=300 {
            asked.at(tti);
        }
        assert!((left.at(300) / asked.at(300) - 1.0).abs() < 1e-4);
    }
}
