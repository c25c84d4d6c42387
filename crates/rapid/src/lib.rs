//! RAPID: a proxy between servers and UEs that divides what the radio can carry among the flows of each UE.
//!
//! Source: RAPID (`papers/rapid`), sections 3 and 5.3. The proxy splits each TCP connection: the *wired leg* ends at the
//! proxy, the *radio leg* begins there. It learns from the radio network what a UE can receive ([`rnis::RadioReport`]), and
//! from arrivals what each flow wants, and sets three things per flow ([`Decision`]): the receive window on the wired leg,
//! and the congestion window and pacing rate on the radio leg.
//!
//! [`Rapid`] does no I/O and has no clock. The simulated and the live proxy call it in the same way: [`Control`] says how.
//!
//! The live driver applies a smaller receive buffer by [`Room`], as the announced window is used. The simulated receiver takes all
//! that it has announced, whatever its buffer, and its window follows the buffer at once.
//!
//! There are three [`Policy`]s. [`Policy::Published`] follows the paper's equations 1 to 13, to the letter of its text or as its
//! two artefacts have them, which [`Published`] tells. [`Policy::Best`] shares rates instead of windows (`best.rs` says how and why).
//! [`Policy::MilliProxy`] is the window rule of milliProxy.

mod best;
mod blocks;
mod capacity;
mod decision;
mod feed;
mod flow;
#[cfg(test)]
mod fluid;
mod milli;
pub mod policies;
mod published;
#[cfg(test)]
mod robustness;
mod room;
mod share;
#[cfg(test)]
mod sleep;
#[cfg(test)]
mod traces;

pub use best::parameters::Best;
pub use blocks::TransportBlocks;
pub use channel::tables::nr::McsTable;
pub use decision::{Category, Decision, Sample};
pub use feed::{Doubt, Feed, Rejected};
pub use published::state::{Published, RadioWindow, Released, RoundTrip};
pub use room::{LEAST_SEGMENTS, Room};

use best::demand::BestFlow;
use flow::{Flow, State, Ue};
use published::state::PublishedFlow;
use rnis::RadioReport;
use rnis::state::KEEP;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use units::{Span, Time};

/// The interval between checks. A UE without flows is forgotten once no report has named it for longer than [`KEEP`].
const FORGET: Span = Span::from_secs(10);
/// UEs that are remembered. Reports on others are ignored, unless they have flows.
const MOST_UES: usize = 65_536;

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

/// Decides windows and rates of flows. `F` identifies a flow, `U` a UE.
///
/// The driver, that is, the simulated or the live proxy, calls with a `now` that never decreases:
///
/// - [`Control::open`] and [`Control::close`] for each flow, that is, for each direction of a connection that carries data to
///   a UE;
/// - [`Control::on_progress`] when data has passed on a flow in either direction;
/// - [`Control::on_report`] for each report of the radio network;
/// - [`Control::update`] at [`Control::poll_timeout`].
pub trait Control<F, U>: Send {
    /// A flow to `ue` opens, whose full segments carry `mss` bytes. Its name is not in use.
    fn open(&mut self, flow: F, ue: U, mss: u32, now: Time);
    /// A flow closes. Its name may be used again.
    fn close(&mut self, flow: F);
    /// Data has passed on a flow. Until the first update after it, a silent flow may stay as it was sampled last.
    fn on_progress(&mut self, flow: F);
    /// The radio network reports on a UE. A report of the future, and one that no cell can make, is rejected.
    fn on_report(&mut self, ue: U, report: &RadioReport, now: Time);
    /// Returns when to call [`Control::update`]; `None` without flows.
    fn poll_timeout(&self) -> Option<Time>;
    /// Updates the flows: `sample` returns what the proxy sees of one, `each` takes its settings. A silent flow keeps the settings
    /// that it has if neither is called for it.
    fn update(&mut self, now: Time, sample: &mut dyn FnMut(F) -> Sample, each: &mut dyn FnMut(F, &Decision));
    /// Calls `each` for each UE that has flows and of which there was a report.
    fn feeds(&self, _now: Time, _each: &mut dyn FnMut(U, &Feed)) {}
    /// Returns how many reports were rejected.
    fn rejected(&self) -> Rejected {
        Rejected::default()
    }
}

/// Divides the radio among flows.
#[derive(Clone, Debug)]
pub struct Rapid<F, U> {
    config: Config,
    ues: BTreeMap<U, Ue>,
    flows: Slab<Flow<F, U>>,
    by_key: BTreeMap<F, usize>,
    /// How many flows have opened.
    opened: u64,
    /// The UEs that have flows.
    busy: BTreeSet<U>,
    next: Option<Time>,
    rejected: Rejected,
    /// When UEs that are gone were forgotten last.
    forgotten: Time,
}

impl<F, U> Rapid<F, U> {
    /// Creates an instance without flows.
    pub fn new(config: Config) -> Rapid<F, U> {
        let (ues, by_key, busy) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let (flows, rejected) = (Slab::new(), Rejected::default());
        Rapid { config, ues, flows, by_key, opened: 0, busy, next: None, rejected, forgotten: Time::ZERO }
    }
}

impl<F: Copy + Ord + Send, U: Copy + Ord + Send> Control<F, U> for Rapid<F, U> {
    fn open(&mut self, flow: F, ue: U, mss: u32, now: Time) {
        let state = match self.config.policy {
            Policy::Published(_) => State::Published(PublishedFlow::new(now)),
            Policy::Best(_) => State::Best(BestFlow::new(now)),
            Policy::MilliProxy => State::MilliProxy,
        };
        self.opened += 1;
        let id = self.flows.insert(Flow {
            key: flow,
            ue,
            number: self.opened,
            mss: mss.max(1),
            sample: Sample::default(),
            gained: 0,
            active: now,
            asleep: None,
            state,
        });
        self.by_key.insert(flow, id);
        self.ues.entry(ue).or_default().awake.push(id);
        self.busy.insert(ue);
        self.next.get_or_insert(now);
    }

    fn close(&mut self, flow: F) {
        let Some(id) = self.by_key.remove(&flow) else { return };
        let name = self.flows[id].ue;
        if let Some(ue) = self.ues.get_mut(&name) {
            ue.wake(id, &mut self.flows);
            ue.awake.retain(|&other| other != id);
            if ue.flows() == 0 {
                self.busy.remove(&name);
            }
        }
        self.flows.remove(id);
        if self.flows.is_empty() {
            self.next = None;
        }
    }

    fn on_progress(&mut self, flow: F) {
        let Some(&id) = self.by_key.get(&flow) else { return };
        if let Some(ue) = self.ues.get_mut(&self.flows[id].ue) {
            ue.wake(id, &mut self.flows);
        }
    }

    fn on_report(&mut self, ue: U, report: &RadioReport, now: Time) {
        if feed::is_ahead(report, now) {
            self.rejected.ahead += 1;
        } else if feed::is_impossible(report) {
            self.rejected.impossible += 1;
        } else if self.ues.len() < MOST_UES || self.ues.contains_key(&ue) {
            let is_latest = self.ues.entry(ue).or_default().capacity.on_report(report, now);
            self.rejected.overtaken += u64::from(!is_latest);
        }
        if now.saturating_since(self.forgotten) >= FORGET {
            self.forgotten = now;
            let is_fresh = |ue: &Ue| ue.capacity.age(now).is_some_and(|age| age <= KEEP);
            self.ues.retain(|_, ue| ue.flows() > 0 || is_fresh(ue));
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }

    fn feeds(&self, now: Time, each: &mut dyn FnMut(U, &Feed)) {
        for (&name, ue) in self.busy.iter().filter_map(|name| self.ues.get_key_value(name)) {
            let Some(age) = ue.capacity.age(now) else { continue };
            let (is_stale, delivered) = (age > ue.capacity.believed() + best::parameters::FADE, ue.best.delivered);
            each(name, &Feed { age, is_stale, doubt: ue.best.trust.doubt(), delivered });
        }
    }

    fn rejected(&self) -> Rejected {
        self.rejected
    }

    fn update(&mut self, now: Time, sample: &mut dyn FnMut(F) -> Sample, each: &mut dyn FnMut(F, &Decision)) {
        let Rapid { config, ues, flows, busy, next, .. } = self;
        for &id in busy.iter().filter_map(|ue| ues.get(ue)).flat_map(|ue| &ue.awake) {
            let flow = &mut flows[id];
            let new = sample(flow.key);
            if new.arrived != flow.sample.arrived || new.delivered != flow.sample.delivered {
                flow.active = now;
            }
            flow.gained = new.delivered.saturating_sub(flow.sample.delivered);
            flow.sample = new;
        }
        for ue in busy.iter() {
            let Some(ue) = ues.get_mut(ue) else { continue };
            match &config.policy {
                Policy::Published(of) => published::update(of, config.floor_segments, ue, flows, now, each),
                Policy::Best(of) => best::update(of, config.floor_segments, ue, flows, now, each),
                Policy::MilliProxy => milli::update(config.floor_segments, ue, flows, now, each),
            }
        }
        *next = (!flows.is_empty()).then(|| now + config.tick);
    }
}
