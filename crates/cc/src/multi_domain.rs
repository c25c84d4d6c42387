//! Multi-domain congestion control: two windows, one for the wired domain and one for the whole path; the smaller one
//! applies.
//!
//! Source: Z. Krämer, S. Molnár, A. Mihály, S. Nádas, "Towards Multi-Domain Congestion Control in Next-Generation
//! Networks" (WCNC 2019), sections III and IV-B, and "On the Benefits of Multi-Domain Congestion Control in LTE Networks"
//! (2019), section III. A lightweight PEP at the boundary of the domains reports which segments have passed it
//! ([`on_signal`](Controller::on_signal)).
//!
//! - `cwnd_pep` is CUBIC, driven by the PEP's reports and reduced when they name missing segments;
//! - `cwnd_e2e` is Scalable TCP, driven by the receiver's acknowledgements and reduced by losses that no report
//!   announced (loss filter);
//! - the larger is at most twice the smaller (multi-domain window validation). `cwnd_e2e` starts at ten times `cwnd_pep`
//!   and is exempt until `cwnd_pep` has caught up.
//!
//! The papers leave the following open; this file decides:
//! 1. Without a PEP, or if it has been silent while two round trips' worth of data was acknowledged, the controller is
//!    plain CUBIC driven by the receiver's acknowledgements; the next report resumes cooperation. Both changes wait for
//!    the end of a recovery.
//! 2. A retransmission timeout also returns to plain CUBIC: nothing is then known about either domain.
//! 3. An ECN mark may come from either domain and reduces both windows.
//! 4. A spurious reduction is undone in the window that was reduced.
//! 5. A reduction of `cwnd_pep` takes a round trip of the whole path, like one of CUBIC's: it reduces the data in
//!    flight between sender and receiver, so it follows their acknowledgements, and segments that a report names as
//!    missing before everything then in flight is acknowledged belong to it. If such a loss turns out to concern
//!    segments sent later, the next reduction begins when this one is over.
//! 6. A window that does not apply, because the other is smaller, has not been tested: a loss in its domain reduces it
//!    from the value of the window that applies; otherwise several reductions would be needed before they had an
//!    effect. Only the initial head start of `cwnd_e2e` is exempt.
//! 7. If sending is limited by the smaller window, the larger one counts as limiting, so that it may grow up to the
//!    bound.
//!
//! [`Mode::Published`] leaves out decisions 5 and 6 and reacts in the papers' words alone: each report that names
//! segments missing "calls the CUBIC decrease function on `cwnd_pep`", at once and however close the reports are; the
//! losses that it announced reduce neither window again; and any other loss reduces `cwnd_e2e` from its own value, over
//! the recovery, as the kernel does around Scalable TCP. The other decisions hold in both, as the papers have no rule
//! for what they are about.

use crate::cubic::{Cubic, CubicConfig};
use crate::scalable::{Scalable, ScalableConfig, VALID_DECREASE, VALID_STEP};
use crate::{
    AckSample, Congestion, Controller, Ctx, Event, Limits, Listens, Passage, Phase, RateSample, Sent, Sign, Signal,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::parameters;

/// The gauge of the wired domain's window, in segments.
pub const CWND_PEP: &str = "cwnd_pep";
/// The gauge of the whole path's window, in segments; only while a PEP is heard.
pub const CWND_E2E: &str = "cwnd_e2e";

/// Round trips' worth of acknowledged data without a report after which the PEP counts as lost.
const MAX_SILENT_ROUNDS: u8 = 2;

/// How losses reduce the windows of multi-domain congestion control.
// `Safe` is what decisions 5 and 6 say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "MdccMode")]
pub enum Mode {
    /// A reduction of CUBIC's window takes a round trip of the whole path, and begins at the window that applies.
    #[default]
    Safe,
    /// As the papers say: each report of missing segments reduces CUBIC's window at once, and each window is reduced
    /// from its own value.
    Published,
}

parameters! {
    /// The parameters in files.
    #[derive(Copy)]
    pub struct Parameters {
        /// How losses reduce the windows. Default: `safe`.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub mode: Mode = Mode::Safe;
        /// Scalable TCP: growth of the window for each acknowledgement, in segments.
        pub step: f64 = 0.02, in VALID_STEP;
        /// Whether the window grows with each acknowledgement, as in Linux before 4.8, or with each segment it
        /// covers.
        pub per_acknowledgement: bool = true;
        /// Scalable TCP: fraction by which a loss reduces the window.
        pub decrease: f64 = 0.125, in VALID_DECREASE;
        /// Whether losses announced by the PEP leave Scalable TCP's window unchanged.
        pub loss_filter: bool = true;
        /// Whether segments that the PEP reports missing are retransmitted at once.
        pub early_retransmission: bool = true;
    }
}

/// The parameters of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiDomainConfig {
    /// How losses reduce the windows.
    pub mode: Mode,
    /// Parameters of `cwnd_e2e`. The papers' steps are 0.02, which fits Table I of the first, and 0.1, which the second
    /// states; both per acknowledgement, as in their kernel (4.7).
    pub scalable: ScalableConfig,
    /// Parameters of `cwnd_pep`.
    pub cubic: CubicConfig,
    /// Initial `cwnd_e2e`, as a multiple of the initial window.
    pub initial_ratio: u32,
    /// Upper bound on the ratio of the larger to the smaller window.
    pub validation_ratio: u32,
    /// Whether announced losses leave `cwnd_e2e` unchanged.
    pub loss_filter: bool,
    /// Whether segments that a report names as missing are retransmitted at once.
    pub early_retransmission: bool,
}

impl Default for MultiDomainConfig {
    fn default() -> MultiDomainConfig {
        MultiDomainConfig {
            mode: Mode::default(),
            scalable: ScalableConfig { acks_per_segment: 50, per_acknowledgement: true, ..ScalableConfig::default() },
            cubic: CubicConfig::default(),
            initial_ratio: 10,
            validation_ratio: 2,
            loss_filter: true,
            early_retransmission: true,
        }
    }
}

impl From<&Parameters> for MultiDomainConfig {
    fn from(of: &Parameters) -> MultiDomainConfig {
        let &Parameters { mode, step, per_acknowledgement, decrease, loss_filter, early_retransmission } = of;
        let scalable = ScalableConfig::of(step, decrease, per_acknowledgement);
        MultiDomainConfig { mode, scalable, loss_filter, early_retransmission, ..MultiDomainConfig::default() }
    }
}

/// The multi-domain controller.
#[derive(Clone, Debug)]
pub struct MultiDomain {
    config: MultiDomainConfig,
    pep: Cubic,
    e2e: Scalable,
    /// Whether a PEP sends reports: then both windows apply, and CUBIC is driven by the reports. Otherwise only CUBIC
    /// applies, driven by the receiver's acknowledgements.
    joined: bool,
    /// Once this is acknowledged, a round trip without a report has passed; and the number of such round trips.
    silence_end: u64,
    silent_rounds: u8,
    /// The state of loss recovery at the endpoint.
    phase: Phase,
    /// Whether the current recovery concerns only announced losses, which `cwnd_e2e` ignores.
    filtered: bool,
    /// The current reduction of `cwnd_pep` ends when the receiver has acknowledged everything below this.
    pep_high: Option<u64>,
    /// `cwnd_pep` has caught up with the head start of `cwnd_e2e`.
    caught_up: bool,
}

impl MultiDomain {
    /// The controller with an initial window of so many segments.
    pub fn new(config: MultiDomainConfig, initial_window: u32) -> MultiDomain {
        let config = MultiDomainConfig {
            initial_ratio: config.initial_ratio.max(1),
            validation_ratio: config.validation_ratio.max(1),
            ..config
        };
        MultiDomain {
            config,
            pep: Cubic::new(config.cubic, initial_window),
            e2e: Scalable::new(config.scalable, initial_window.saturating_mul(config.initial_ratio)),
            joined: false,
            silence_end: 0,
            silent_rounds: 0,
            phase: Phase::Open,
            filtered: false,
            pep_high: None,
            caught_up: false,
        }
    }

    /// Whether the window of the whole path is the one that counts.
    fn e2e_counts(&self) -> bool {
        self.joined && self.e2e.window().cwnd < self.pep.window().cwnd
    }

    fn as_published(&self) -> bool {
        self.config.mode == Mode::Published
    }

    /// The window that the network has been shown, unless a reduction is changing one of the two: the smaller. The
    /// papers do not distinguish it.
    fn tried(&self) -> Option<u32> {
        (!self.as_published() && !self.pep.reducing() && !self.e2e.reducing()).then(|| self.limits().cwnd)
    }

    /// The wired domain lost something, and no reduction of `cwnd_pep` covers it.
    fn reduce_pep(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        if self.as_published() {
            self.pep_high = None;
            return self.pep.decrease(congestion.next, cx);
        }
        if let Some(cwnd) = self.tried() {
            self.pep.lower_to(cwnd);
        }
        self.pep.on_congestion(congestion, cx);
        self.pep_high = Some(congestion.next);
    }

    fn recovering(&self) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Disorder)
    }

    fn join(&mut self, passage: &Passage, cx: &mut Ctx) {
        self.joined = true;
        self.pep.growth_mut().reset_delay(passage.next, cx.now);
        cx.emit(|| Event::State("pep-heard"));
    }

    fn part(&mut self, next: u64, cx: &mut Ctx) {
        self.joined = false;
        self.pep_high = None;
        self.pep.growth_mut().reset_delay(next, cx.now);
        cx.emit(|| Event::State("pep-silent"));
    }

    /// Counts round trips without a report.
    fn listen(&mut self, ack: &AckSample, cx: &mut Ctx) {
        if ack.una > self.silence_end {
            self.silent_rounds = self.silent_rounds.saturating_add(1);
            self.silence_end = ack.next;
        }
        if self.silent_rounds > MAX_SILENT_ROUNDS && !self.recovering() && !self.pep.reducing() {
            self.part(ack.next, cx);
        }
    }

    /// Goes on with a reduction of `cwnd_pep`, whose growth is not clocked here.
    fn follow_reduction(&mut self, ack: &AckSample, cx: &mut Ctx) {
        self.pep_high = self.pep_high.filter(|&high| ack.una < high);
        let phase = if self.pep_high.is_some() { Phase::Recovery } else { Phase::Open };
        self.pep.on_ack(&AckSample { phase, rtt: None, cwnd_limited: false, ..ack.clone() }, cx);
    }

    /// Multi-domain window validation.
    fn validate(&mut self) {
        let (pep, e2e) = (self.pep.window().cwnd, self.e2e.window().cwnd);
        let bound = |smaller: u32| smaller.saturating_mul(self.config.validation_ratio);
        self.caught_up |= e2e <= bound(pep) || !self.pep.window().in_slow_start();
        if self.caught_up {
            self.e2e.lower_to(bound(pep));
        }
        if self.joined {
            self.pep.lower_to(bound(e2e));
        }
    }
}

impl Controller for MultiDomain {
    #[inline]
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx) {
        let in_flight = sent.in_flight_before;
        let full = in_flight + 1 >= self.limits().cwnd;
        let seen_by =
            |cwnd: u32| Sent { in_flight_before: if full { in_flight.max(cwnd) } else { in_flight }, ..*sent };
        let (pep, e2e) = (seen_by(self.pep.window().cwnd), seen_by(self.e2e.window().cwnd));
        self.pep.on_sent(&pep, cx);
        // Only the one that counts tells its state changes.
        self.e2e.on_sent(&e2e, &mut Ctx { log: None, now: cx.now, path: cx.path, random: cx.random });
    }

    #[inline]
    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx) {
        self.phase = ack.phase;
        self.filtered &= self.recovering();
        let seen = AckSample { phase: if self.filtered { Phase::Open } else { ack.phase }, ..ack.clone() };
        self.e2e.on_ack(&seen, &mut Ctx { log: None, now: cx.now, path: cx.path, random: cx.random });
        if self.joined {
            self.listen(ack, cx);
            if self.pep.reducing() {
                self.follow_reduction(ack, cx);
            }
        } else {
            self.pep.on_ack(ack, cx);
        }
        self.validate();
    }

    fn on_signal(&mut self, signal: &Signal, cx: &mut Ctx) {
        let Signal::Passage(passage) = signal else { return };
        if passage.reported {
            self.silent_rounds = 0;
            self.silence_end = passage.next;
            if !self.joined && !self.recovering() && !self.pep.reducing() {
                self.join(passage, cx);
            }
        }
        if !self.joined {
            return;
        }
        if passage.missing > 0 && (self.as_published() || self.pep_high.is_none()) {
            let &Passage { in_flight, missing: lost, una, next, .. } = passage;
            self.reduce_pep(&Congestion { sign: Sign::Loss, in_flight, lost, una, next, announced: true }, cx);
        }
        let reducing = self.pep.reducing();
        // Segments that pass during a reduction change nothing: the reduction follows acknowledgements. In the papers, a
        // report calls either the decrease or the increase.
        let idle = reducing || (self.as_published() && passage.missing > 0);
        let sample = AckSample {
            acked: passage.passed,
            delivered: if idle { 0 } else { passage.passed },
            delivered_ce: 0,
            lost: passage.missing,
            prior_in_flight: passage.in_flight,
            in_flight: passage.in_flight,
            advanced: passage.passed > 0,
            cwnd_limited: passage.cwnd_limited,
            ece: false,
            phase: if reducing { Phase::Recovery } else { Phase::Open },
            rtt: passage.rtt,
            una: passage.una,
            next: passage.next,
            rate: RateSample::default(),
        };
        self.pep.on_ack(&sample, cx);
        self.validate();
    }

    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        let announced = self.joined && self.config.loss_filter && congestion.announced;
        if congestion.sign == Sign::Loss && announced {
            // The reduction is that of `cwnd_pep`. A loss announced during the previous reduction, of a segment sent
            // after its beginning, begins another. In the papers, its report has reduced `cwnd_pep` already.
            if !self.as_published() && self.pep_high.is_none_or(|high| congestion.una >= high) {
                self.reduce_pep(congestion, cx);
            }
            self.filtered = true;
            self.phase = Phase::Recovery;
            return;
        }
        self.filtered = false;
        if congestion.sign == Sign::Loss
            && self.caught_up
            && self.joined
            && let Some(cwnd) = self.tried()
        {
            self.e2e.lower_to(cwnd);
        }
        self.e2e.on_congestion(congestion, &mut Ctx { log: None, now: cx.now, path: cx.path, random: cx.random });
        match congestion.sign {
            Sign::Loss if self.joined => {}
            Sign::Loss => self.pep.on_congestion(congestion, cx),
            Sign::Ecn => {
                self.pep.on_congestion(congestion, cx);
                self.pep_high = self.joined.then_some(congestion.next);
            }
            Sign::Timeout { .. } => {
                if self.joined {
                    self.part(congestion.next, cx);
                }
                self.pep.on_congestion(congestion, cx);
            }
        }
        self.phase = match congestion.sign {
            Sign::Loss => Phase::Recovery,
            Sign::Ecn => Phase::Cwr,
            Sign::Timeout { .. } => Phase::Loss,
        };
        self.validate();
    }

    fn on_undo(&mut self, cx: &mut Ctx) {
        if !self.filtered {
            self.e2e.on_undo(cx);
        }
        // A reduction by a report as published was no reaction to what the endpoint now takes back.
        if !self.joined || (self.filtered && !self.as_published()) {
            self.pep.on_undo(cx);
            self.pep_high = None;
        }
    }

    fn gauges(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each(CWND_PEP, self.pep.window().cwnd.into());
        if self.joined {
            each(CWND_E2E, self.e2e.window().cwnd.into());
        }
    }

    fn listens(&self) -> Listens {
        Listens {
            passages: true,
            early_retransmission: self.config.early_retransmission,
            misses_passages: !self.joined,
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        if self.e2e_counts() { self.e2e.limits() } else { self.pep.limits() }
    }

    fn name(&self) -> &'static str {
        "mdcc"
    }

    fn state(&self) -> &'static str {
        if self.e2e_counts() { self.e2e.state() } else { self.pep.state() }
    }
}

#[cfg(test)]
mod tests;
