//! Flows and UEs.
//!
//! Under the policy `best`, a flow *sleeps* when it has been silent for a second and the proxy holds nothing of it: an update
//! neither samples it nor looks at it. It is given new settings about once in [`RENEWAL`], or at once if its share has doubled or
//! halved. It wakes when data passes, in the state that it would have without sleep, so the decisions for flows that are awake
//! do not depend on sleep.

use crate::best::demand::BestFlow;
use crate::best::radio::BestUe;
use crate::blocks::TransportBlocks;
use crate::capacity::Capacity;
use crate::decision::Sample;
use crate::published::state::PublishedFlow;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use units::{Span, Time};

/// A flow that was silent for longer is not counted and has no share.
const ACTIVE: Span = Span::from_secs(1);
/// Interval between decisions for a flow that sleeps, unless others wake meanwhile.
const RENEWAL: Span = Span::from_secs(1);

/// A flow of a UE.
#[derive(Clone, Debug)]
pub(crate) struct Flow<F, U> {
    pub(crate) key: F,
    pub(crate) ue: U,
    /// Flows are numbered in the order of their opening.
    pub(crate) number: u64,
    pub(crate) mss: u32,
    pub(crate) sample: Sample,
    /// Bytes delivered since the sample before.
    pub(crate) gained: u64,
    /// When data arrived or was delivered last.
    pub(crate) active: Time,
    /// If it sleeps, since which update.
    pub(crate) asleep: Option<Time>,
    pub(crate) state: State,
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    Published(PublishedFlow),
    Best(BestFlow),
    MilliProxy,
}

impl State {
    /// Returns the state for [`crate::Policy::Published`].
    ///
    /// # Panics
    /// If the flow was opened under another policy.
    pub(crate) fn published(&mut self) -> &mut PublishedFlow {
        let State::Published(state) = self else { unreachable!("the policy does not change") };
        state
    }

    /// Returns the state for [`crate::Policy::Best`].
    ///
    /// # Panics
    /// If the flow was opened under another policy.
    pub(crate) fn best(&mut self) -> &mut BestFlow {
        let State::Best(state) = self else { unreachable!("the policy does not change") };
        state
    }
}

impl<F, U> Flow<F, U> {
    pub(crate) fn is_active(&self, now: Time) -> bool {
        now.saturating_since(self.active) <= ACTIVE || self.sample.held() + self.sample.in_flight > 0
    }
}

/// What a flow that sleeps would have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// The time of the update.
    pub(crate) at: Time,
    /// Its share if it became active, and what that would be if it took everything, in bytes a second.
    pub(crate) share: f64,
    /// See `share`.
    pub(crate) potential: f64,
}

/// A UE: its capacity and its flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ue {
    pub(crate) capacity: Capacity,
    pub(crate) best: BestUe,
    /// The flows that are awake, in the order of their opening.
    pub(crate) awake: Vec<usize>,
    /// The flows that sleep, of which the first is the next to be given new settings.
    asleep: VecDeque<usize>,
    /// How many of those have each least round-trip time of the radio leg.
    rtts: BTreeMap<Span, usize>,
    /// The part of a renewal that is due.
    due: f64,
    /// The terms at the last update with a known capacity.
    terms: Terms,
    /// The share, if the capacity was known, that was told to all flows that sleep or stands for what was told, and since when.
    told: (Option<f64>, Time),
}

impl Ue {
    /// Returns the number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.awake.len() + self.asleep.len()
    }

    /// Returns an equal part of the reported capacity for each active flow, in bytes a second, and how many are active;
    /// `None` if the capacity is unknown. Without an active flow, it counts one.
    pub(crate) fn equal_share<F, U>(
        &self,
        of: &TransportBlocks,
        flows: &Slab<Flow<F, U>>,
        now: Time,
    ) -> Option<(f64, f64)> {
        let capacity = self.capacity.published(of)?;
        let active = self.awake.iter().filter(|&&id| flows[id].is_active(now)).count().max(1) as f64;
        Some((capacity / active, active))
    }

    /// Returns the least round-trip time of the radio legs of flows that sleep.
    pub(crate) fn least_rtt_asleep(&self) -> Option<Span> {
        self.rtts.keys().next().copied()
    }

    /// Notes the terms of flows that sleep, `None` if the capacity is unknown, `span` seconds after the last update. Returns
    /// those to decide for in this update.
    pub(crate) fn renewals(&mut self, terms: Option<Terms>, span: f64, now: Time) -> Vec<usize> {
        self.terms = terms.unwrap_or(self.terms);
        let share = terms.map(|terms| terms.share);
        let is_near = match (self.told.0, share) {
            (Some(told), Some(share)) => (told / 2.0..=told * 2.0).contains(&share),
            (told, share) => told.is_none() && share.is_none(),
        };
        if !is_near || now.saturating_since(self.told.1) >= RENEWAL {
            self.told = (share, now);
        }
        let count = if is_near {
            self.due += self.asleep.len() as f64 * span / RENEWAL.as_secs_f64();
            (self.due as usize).min(self.asleep.len())
        } else {
            self.asleep.len()
        };
        self.due = if is_near { self.due.fract() } else { 0.0 };
        self.asleep.rotate_left(count);
        self.asleep.range(self.asleep.len() - count..).copied().collect()
    }

    /// Puts flows to sleep.
    pub(crate) fn rest<F, U>(&mut self, flows: &mut Slab<Flow<F, U>>, now: Time) {
        let Ue { awake, asleep, rtts, .. } = self;
        awake.retain(|&id| {
            let flow = &mut flows[id];
            let is_silent = !flow.is_active(now) && flow.state.best().rest();
            if is_silent {
                flow.asleep = Some(now);
                asleep.push_back(id);
                flow.sample.ran_min_rtt.into_iter().for_each(|rtt| *rtts.entry(rtt).or_default() += 1);
            }
            !is_silent
        });
    }

    /// Wakes a flow if it sleeps.
    pub(crate) fn wake<F, U>(&mut self, id: usize, flows: &mut Slab<Flow<F, U>>) {
        let flow = &mut flows[id];
        let Some(since) = flow.asleep.take() else { return };
        if let Some(rtt) = flow.sample.ran_min_rtt
            && let Some(count) = self.rtts.get_mut(&rtt)
        {
            *count -= 1;
            if *count == 0 {
                self.rtts.remove(&rtt);
            }
        }
        // Each update with a known capacity would have begun its period anew.
        let Terms { at, share, potential } = self.terms;
        if at >= since {
            let state = flow.state.best();
            state.restart(flow.sample.arrived, at);
            (state.share, state.potential) = (share, potential);
        }
        let number = flow.number;
        if let Some(place) = self.asleep.iter().position(|&other| other == id) {
            self.asleep.remove(place);
        }
        let place = self.awake.partition_point(|&other| flows[other].number < number);
        self.awake.insert(place, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_trip_time_of_flows_that_sleep_is_that_of_those_still_asleep() {
        let (mut ue, mut flows) = (Ue::default(), Slab::new());
        for (number, ms) in [(1, 20), (2, 8), (3, 8)] {
            let sample = Sample { ran_min_rtt: Some(Span::from_millis(ms)), ..Sample::default() };
            let state = State::Best(BestFlow::new(Time::ZERO));
            let (mss, gained, active, asleep) = (1448, 0, Time::ZERO, None);
            ue.awake.push(flows.insert(Flow {
                key: number,
                ue: (),
                number,
                mss,
                sample,
                gained,
                active,
                asleep,
                state,
            }));
        }
        // Silence of a second is not long enough.
        ue.rest(&mut flows, Time::ZERO + ACTIVE);
        assert_eq!((ue.awake.len(), ue.least_rtt_asleep()), (3, None));
        ue.rest(&mut flows, Time::ZERO + ACTIVE + Span::from_nanos(1));
        assert_eq!((ue.awake.len(), ue.flows()), (0, 3));
        let mut least_after = |id| {
            ue.wake(id, &mut flows);
            ue.least_rtt_asleep().map(Span::as_millis)
        };
        assert_eq!([1, 1, 2, 0].map(&mut least_after), [Some(8), Some(8), Some(20), None]);
        assert_eq!((ue.awake, ue.asleep.len()), (vec![0, 1, 2], 0), "in the order of their opening");
    }

    #[test]
    fn a_flow_is_active_while_it_is_not_silent_for_long_or_something_of_it_waits() {
        let is_active = |arrived, in_flight, silence: Span| {
            let sample = Sample { arrived, in_flight, ..Sample::default() };
            let (state, active) = (State::MilliProxy, Time::ZERO);
            let flow = Flow { key: 0, ue: (), number: 0, mss: 1448, sample, gained: 0, active, asleep: None, state };
            flow.is_active(Time::ZERO + silence)
        };
        let long = ACTIVE + Span::from_nanos(1);
        assert_eq!([ACTIVE, long].map(|silence| is_active(0, 0, silence)), [true, false]);
        // A byte in the proxy, on the radio leg, or both.
        assert_eq!([(1, 0), (1, 1), (2, 1)].map(|(arrived, flight)| is_active(arrived, flight, long)), [true; 3]);
    }

    /// Four flows sleep. An eighth of a second is the turn of half a flow.
    #[test]
    fn flows_that_sleep_are_renewed_one_after_the_other_or_at_once_if_their_share_has_doubled_or_halved() {
        let start = || {
            let mut ue = Ue { asleep: VecDeque::from([0, 1, 2, 3]), ..Ue::default() };
            ue.told = (Some(100.0), Time::ZERO);
            ue
        };
        let terms = |share: f64| Some(Terms { share, ..Terms::default() });
        let renewed = |ue: &mut Ue, share: Option<f64>, span: f64, now: Span| {
            ue.renewals(share.and_then(terms), span, Time::ZERO + now)
        };
        let mut ue = start();
        let mut turn = |share: f64| renewed(&mut ue, Some(share), 0.125, Span::from_millis(500));
        let turns = [100.0, 50.0, 200.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0].map(&mut turn);
        assert_eq!(turns, [vec![], vec![0], vec![], vec![1], vec![], vec![2], vec![], vec![3], vec![], vec![0]]);
        // The next in turn is the second. What was due is not, once all have had theirs.
        assert_eq!([100.0, 49.0, 49.0, 49.0].map(&mut turn), [vec![], vec![1, 2, 3, 0], vec![], vec![1]]);
        assert_eq!(renewed(&mut start(), Some(201.0), 0.125, Span::ZERO), [0, 1, 2, 3]);
        assert_eq!(renewed(&mut start(), Some(100.0), 1.0, Span::ZERO), [0, 1, 2, 3]);
        assert_eq!(renewed(&mut start(), Some(100.0), 5.0, Span::ZERO), [0, 1, 2, 3], "there are no more");
        // A capacity that becomes unknown or known changes everything.
        let mut ue = start();
        let mut turn = |share| renewed(&mut ue, share, 0.0, Span::ZERO).len();
        assert_eq!([None, None, Some(100.0), Some(100.0)].map(&mut turn), [4, 0, 4, 0]);
        // After a second, all have been told what it was then: its double is that of then.
        for (after, at_once) in [(RENEWAL, 0), (RENEWAL - Span::from_nanos(1), 4)] {
            let mut ue = start();
            assert!(renewed(&mut ue, Some(150.0), 0.0, after).is_empty());
            assert_eq!(renewed(&mut ue, Some(210.0), 0.0, after).len(), at_once, "{after:?}");
        }
    }
}
