//! RAPID: a proxy between servers and UEs that divides what the radio can carry among the flows of each UE.
//!
//! Source: RAPID (`papers/rapid`), sections 3 and 5.3. The proxy splits each TCP connection: the *wired leg* ends at the
//! proxy, the *radio leg* begins there. It learns from the radio network what a UE can receive ([`rnis::RadioReport`]), and
//! from arrivals what each flow wants, and sets three things per flow ([`Decision`]): the receive window on the wired leg,
//! and the congestion window and pacing rate on the radio leg.
//!
//! [`Rapid`] does no I/O and has no clock. The simulated and the live proxy use the same one. Its driver calls, with a `now`
//! that never decreases:
//!
//! - [`Rapid::open`] and [`Rapid::close`] for each flow, that is, for each direction of a connection that carries data to a
//!   UE;
//! - [`Rapid::on_report`] for each report of the radio network;
//! - [`Rapid::update`] at [`Rapid::poll_timeout`]: it asks for a [`Sample`] of each flow and returns a [`Decision`] for each.
//!
//! There are three [`Policy`]s. [`Policy::Published`] follows the paper's equations 1 to 13 to the letter, with what its
//! authors measured or chose as [`Published`]. [`Policy::Best`] shares rates instead of windows (`best.rs` says how and why).
//! [`Policy::MilliProxy`] is the window rule of milliProxy.

mod best;
mod capacity;
mod decision;
mod flow;
#[cfg(test)]
mod fluid;
mod milli;
mod published;
#[cfg(test)]
mod robustness;
mod share;

pub use best::parameters::Best;
pub use decision::{Category, Decision, Sample};
pub use published::state::{Published, RadioWindow};

use best::demand::BestFlow;
use flow::{Flow, State, Ue};
use published::state::PublishedFlow;
use rnis::RadioReport;
use slab::Slab;
use std::collections::BTreeMap;
use units::{Span, Time};

/// A policy and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// Equations 1 to 13 of the paper.
    Published(Published),
    /// Rates shared by max-min, with the proxy's own queue accounted for.
    Best(Best),
    /// The window rule of milliProxy: rate times round-trip time less the radio's backlog.
    MilliProxy,
}

/// The parameters of [`Rapid`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The policy.
    pub policy: Policy,
    /// Interval between two updates.
    pub tick: Span,
    /// The smallest window, in segments: below it, a sender could stall.
    pub floor_segments: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { policy: Policy::Best(Best::default()), tick: Span::from_millis(1), floor_segments: 10 }
    }
}

/// Identifies a flow of a [`Rapid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(usize);

/// Divides the radio among flows. See the crate's documentation for the order of calls. `U` identifies a UE.
#[derive(Clone, Debug)]
pub struct Rapid<U> {
    config: Config,
    ues: BTreeMap<U, Ue>,
    flows: Slab<Flow<U>>,
    next: Option<Time>,
}

impl<U: Copy + Ord> Rapid<U> {
    /// Creates an instance without flows.
    pub fn new(config: Config) -> Rapid<U> {
        Rapid { config, ues: BTreeMap::new(), flows: Slab::new(), next: None }
    }

    /// Opens a flow to `ue` whose full segments carry `mss` bytes.
    pub fn open(&mut self, ue: U, mss: u32, now: Time) -> FlowId {
        let state = match self.config.policy {
            Policy::Published(_) => State::Published(PublishedFlow::new(now)),
            Policy::Best(_) => State::Best(BestFlow::new(now)),
            Policy::MilliProxy => State::MilliProxy,
        };
        let id =
            self.flows.insert(Flow { ue, mss: mss.max(1), sample: Sample::default(), gained: 0, active: now, state });
        self.ues.entry(ue).or_default().flows.push(id);
        self.next.get_or_insert(now);
        FlowId(id)
    }

    /// Closes a flow.
    ///
    /// # Panics
    /// If it is closed already.
    pub fn close(&mut self, flow: FlowId) {
        let gone = self.flows.remove(flow.0);
        if let Some(ue) = self.ues.get_mut(&gone.ue) {
            ue.flows.retain(|&id| id != flow.0);
        }
        if self.flows.is_empty() {
            self.next = None;
        }
    }

    /// Forgets UEs without flows that no report has named for a minute.
    pub fn forget_stale(&mut self, now: Time) {
        self.ues.retain(|_, ue| !ue.flows.is_empty() || ue.capacity.age(now).is_some_and(|a| a <= Span::from_secs(60)));
    }

    /// Notes what the radio network reports of a UE.
    pub fn on_report(&mut self, ue: U, report: &RadioReport, now: Time) {
        self.ues.entry(ue).or_default().capacity.on_report(report, now);
    }

    /// Returns when to call [`Rapid::update`]; `None` without flows.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.next
    }

    /// Updates all flows: `sample` returns what the proxy sees of one, `each` takes its settings.
    pub fn update(
        &mut self,
        now: Time,
        mut sample: impl FnMut(FlowId) -> Sample,
        mut each: impl FnMut(FlowId, &Decision),
    ) {
        let Rapid { config, ues, flows, next } = self;
        for (id, flow) in flows.iter_mut() {
            let new = sample(FlowId(id));
            if new.arrived != flow.sample.arrived || new.delivered != flow.sample.delivered {
                flow.active = now;
            }
            flow.gained = new.delivered.saturating_sub(flow.sample.delivered);
            flow.sample = new;
        }
        for ue in ues.values_mut().filter(|ue| !ue.flows.is_empty()) {
            let mut decide = |id: usize, decision: &Decision| each(FlowId(id), decision);
            match &config.policy {
                Policy::Published(of) => published::update(of, config.floor_segments, ue, flows, now, &mut decide),
                Policy::Best(of) => best::update(of, config.floor_segments, ue, flows, now, &mut decide),
                Policy::MilliProxy => milli::update(config.floor_segments, ue, flows, now, &mut decide),
            }
        }
        *next = (!flows.is_empty()).then(|| now + config.tick);
    }
}
