//! Flows and UEs.

use crate::best::demand::BestFlow;
use crate::best::radio::BestUe;
use crate::capacity::Capacity;
use crate::decision::Sample;
use crate::published::state::PublishedFlow;
use slab::Slab;
use units::{Span, Time};

/// A flow that was silent for longer is not counted and has no share.
const ACTIVE: Span = Span::from_secs(1);

/// A flow of a UE.
#[derive(Clone, Debug)]
pub(crate) struct Flow<F, U> {
    pub(crate) key: F,
    pub(crate) ue: U,
    pub(crate) mss: u32,
    pub(crate) sample: Sample,
    /// Bytes delivered since the sample before.
    pub(crate) gained: u64,
    /// When data arrived or was delivered last.
    pub(crate) active: Time,
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

/// A UE: its capacity and its flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ue {
    pub(crate) capacity: Capacity,
    pub(crate) best: BestUe,
    pub(crate) flows: Vec<usize>,
}

impl Ue {
    /// Returns an equal part of the reported capacity for each active flow, in bytes a second, and how many are active;
    /// `None` if the capacity is unknown. Without an active flow, it counts one.
    pub(crate) fn equal_share<F, U>(&self, flows: &Slab<Flow<F, U>>, now: Time) -> Option<(f64, f64)> {
        let capacity = self.capacity.published()?;
        let active = self.flows.iter().filter(|&&id| flows[id].is_active(now)).count().max(1) as f64;
        Some((capacity / active, active))
    }
}
