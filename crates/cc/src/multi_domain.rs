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
use crate::scalable::{Scalable, ScalableConfig};
use crate::{
    AckSample, Congestion, Controller, Ctx, Event, Limits, Listens, Passage, Phase, RateSample, Sent, Sign, Signal,
};

/// The gauge of the wired domain's window, in segments.
pub const CWND_PEP: &str = "cwnd_pep";
/// The gauge of the whole path's window, in segments; only while a PEP is heard.
pub const CWND_E2E: &str = "cwnd_e2e";

/// Round trips' worth of acknowledged data without a report after which the PEP counts as lost.
const PATIENCE: u8 = 2;

/// How losses reduce the windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A reduction takes a round trip of the whole path, and begins at the window that applies (decisions 5 and 6).
    #[default]
    Safe,
    /// As the papers say: each report of missing segments reduces `cwnd_pep` at once, and each window is reduced from
    /// its own value.
    Published,
}

/// The parameters.
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
        if self.silent_rounds > PATIENCE && !self.recovering() && !self.pep.reducing() {
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
mod tests {
    use super::*;
    use crate::driver::Driver;
    use units::Span;

    fn driver(config: MultiDomainConfig) -> Driver<MultiDomain> {
        let mut d = Driver::new(MultiDomain::new(config, 10));
        d.ack.rtt = Some(Span::from_millis(30));
        d
    }

    /// The PEP reports so many segments passed and missing, and everything so far with them.
    fn report(d: &mut Driver<MultiDomain>, passed: u32, missing: u32) {
        let (una, next) = d.sequence();
        let passage = Passage {
            reported: true,
            passed,
            missing,
            in_flight: d.cwnd(),
            cwnd_limited: true,
            rtt: Some(Span::from_millis(10)),
            una: if missing > 0 { una } else { next },
            next,
        };
        d.call(|c, cx| c.on_signal(&Signal::Passage(passage), cx));
    }

    /// Everything is acknowledged, and no window grows by it.
    fn settle(d: &mut Driver<MultiDomain>) {
        let (una, next) = d.sequence();
        (d.ack.cwnd_limited, d.ack.phase) = (false, Phase::Open);
        d.acked(((next - una) / 1000) as u32);
        d.ack.cwnd_limited = true;
    }

    fn windows(d: &Driver<MultiDomain>) -> (u32, Option<u32>) {
        let gauge = |name| crate::gauge(&d.c, name).map(|window| window as u32);
        (gauge(CWND_PEP).expect("it always has one"), gauge(CWND_E2E))
    }

    /// A PEP is heard, and both windows are out of slow start: (100, 100) or near.
    fn avoiding() -> Driver<MultiDomain> {
        let mut d = driver(MultiDomainConfig::default());
        report(&mut d, 0, 0);
        d.fill();
        while windows(&d).0 < 144 {
            report(&mut d, 1, 0);
        }
        // 144 * 0.7 = 100 after the one, 100 - 100 / 8 = 88 after the other.
        d.fill();
        report(&mut d, 0, 1);
        settle(&mut d);
        d.fill();
        report(&mut d, 0, 0);
        d.react(Sign::Loss, d.cwnd());
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = 88;
        d.sacked(1);
        d.ack.phase = Phase::Open;
        d.acked(0);
        d
    }

    #[test]
    fn without_a_pep_it_is_cubic() {
        let mut a = driver(MultiDomainConfig::default());
        let mut b = Driver::new(Cubic::new(CubicConfig::default(), 10));
        b.ack.rtt = a.ack.rtt;
        for round in 0..40 {
            a.fill();
            b.fill();
            if round % 9 == 8 {
                a.lose_and_recover();
                b.lose_and_recover();
            }
            for _ in 0..20 {
                a.acked(1);
                b.acked(1);
                a.wait_ms(1);
                b.wait_ms(1);
                assert_eq!(a.limits(), b.limits(), "round {round}");
            }
        }
    }

    #[test]
    fn reports_clock_one_window_and_acknowledgements_the_other() {
        let mut d = driver(MultiDomainConfig::default());
        report(&mut d, 5, 0);
        // The head start: ten times the initial window.
        assert_eq!(windows(&d), (15, Some(100)));
        d.acked(5);
        assert_eq!(windows(&d), (15, Some(105)));
        assert_eq!(d.cwnd(), 15);
    }

    #[test]
    fn the_larger_window_is_at_most_twice_the_smaller_once_the_head_start_is_caught_up() {
        let mut d = driver(MultiDomainConfig::default());
        report(&mut d, 30, 0);
        assert_eq!(windows(&d), (40, Some(100)));
        report(&mut d, 10, 0);
        assert_eq!(windows(&d), (50, Some(100)));
        d.acked(30);
        assert_eq!(windows(&d), (50, Some(100)), "130 is cut to twice 50");
        report(&mut d, 400, 0);
        assert_eq!(windows(&d), (200, Some(100)), "450 is cut to twice 100");
        assert_eq!(d.cwnd(), 100);
    }

    #[test]
    fn what_a_pep_misses_reduces_the_wired_window_alone_and_what_the_radio_loses_the_other() {
        let mut d = avoiding();
        let e2e = windows(&d).1;
        let counts = d.cwnd();
        d.fill();
        report(&mut d, 0, 3);
        // The endpoint reacts to the same loss, which was announced.
        let (una, next) = d.sequence();
        let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost: 3, una, next, announced: true };
        d.call(|c, cx| c.on_congestion(&announced, cx));
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = 60;
        d.sacked(1);
        assert_eq!(windows(&d).1, e2e);
        settle(&mut d);
        assert_eq!(windows(&d).0, counts * 717 / 1024);

        let mut d = avoiding();
        let pep = windows(&d).0;
        d.fill();
        d.react(Sign::Loss, d.cwnd());
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = 77;
        d.sacked(1);
        d.ack.phase = Phase::Open;
        d.acked(0);
        let e2e = e2e.expect("a PEP is heard");
        assert_eq!(windows(&d), (pep, Some(e2e - e2e / 8)));
    }

    #[test]
    fn the_wired_window_is_reduced_once_in_a_round_trip_of_the_whole_path() {
        let mut d = avoiding();
        let pep = d.cwnd();
        d.fill();
        report(&mut d, 0, 1);
        // What was in flight has passed the PEP, but not all of it has reached the receiver, and more is missing.
        report(&mut d, 20, 0);
        report(&mut d, 20, 1);
        d.ack.in_flight = pep / 2;
        settle(&mut d);
        let once = pep * 717 / 1024;
        assert_eq!(windows(&d).0, once);
        // In the next round trip it is.
        d.fill();
        report(&mut d, 0, 1);
        settle(&mut d);
        assert_eq!(windows(&d).0, once * 717 / 1024);
    }

    #[test]
    fn a_loss_reduces_a_window_that_does_not_count_from_the_one_that_does() {
        // The wired window counts, and the other has grown to twice as much.
        let mut d = avoiding();
        d.fill();
        report(&mut d, 0, 1);
        settle(&mut d);
        let pep = windows(&d).0;
        for _ in 0..200 {
            d.fill();
            report(&mut d, 0, 0);
            d.acked_singly(pep);
        }
        assert_eq!(windows(&d), (pep, Some(2 * pep)));
        d.fill();
        d.react(Sign::Loss, pep);
        settle(&mut d);
        assert_eq!(windows(&d), (pep, Some(pep - pep / 8)), "the radio lost");

        // The other counts, and the wired window has grown to twice as much.
        let mut d = avoiding();
        for _ in 0..200 {
            report(&mut d, 100, 0);
            d.wait_ms(10);
        }
        let e2e = windows(&d).1.expect("a PEP is heard");
        assert_eq!(windows(&d).0, 2 * e2e);
        d.fill();
        report(&mut d, 0, 1);
        settle(&mut d);
        assert_eq!(windows(&d), (e2e * 717 / 1024, Some(e2e)), "the wire lost");
    }

    #[test]
    fn a_reduction_of_the_wired_window_follows_acknowledgements() {
        let mut d = avoiding();
        let (una, _) = d.sequence();
        let pep = d.cwnd();
        d.fill();
        report(&mut d, 0, 1);
        // 10 of W are delivered, W - 10 are in flight: 7 may leave, whatever has passed the PEP meanwhile.
        d.ack.in_flight = pep - 10;
        d.ack.phase = Phase::Recovery;
        d.sacked(10);
        let expected = pep - 10 + (10 * (pep * 717 / 1024)).div_ceil(pep);
        assert_eq!(windows(&d).0, expected);
        report(&mut d, 30, 0);
        assert_eq!((windows(&d).0, d.sequence().0), (expected, una));
    }

    #[test]
    fn what_was_announced_during_a_reduction_and_sent_in_it_begins_the_next() {
        let mut d = avoiding();
        let pep = d.cwnd();
        d.fill();
        report(&mut d, 0, 1);
        let (_, high) = d.sequence();
        report(&mut d, 5, 1);
        let next = high + 20_000;
        let late = Congestion { sign: Sign::Loss, in_flight: 20, lost: 1, una: high, next, announced: true };
        d.call(|c, cx| c.on_congestion(&late, cx));
        settle(&mut d);
        let once = pep * 717 / 1024;
        d.call(|c, cx| {
            let late = Congestion { una: next, next, ..late.clone() };
            c.on_congestion(&late, cx);
        });
        assert_eq!(d.ssthresh(), (once * 717 / 1024) * 717 / 1024);
    }

    #[test]
    fn without_the_filter_an_announced_loss_reduces_both() {
        let mut d = driver(MultiDomainConfig { loss_filter: false, ..MultiDomainConfig::default() });
        report(&mut d, 90, 0);
        let (una, next) = d.sequence();
        let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost: 1, una, next, announced: true };
        d.call(|c, cx| c.on_congestion(&announced, cx));
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = 50;
        d.sacked(1);
        d.ack.phase = Phase::Open;
        d.acked(0);
        assert_eq!(windows(&d).1, Some(100 - 100 / 8));
    }

    #[test]
    fn a_loss_on_the_radio_within_a_recovery_from_an_announced_one_counts() {
        let mut d = avoiding();
        let e2e = windows(&d).1.expect("a PEP is heard");
        d.fill();
        report(&mut d, 0, 1);
        let (una, next) = d.sequence();
        let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost: 1, una, next, announced: true };
        d.call(|c, cx| c.on_congestion(&announced, cx));
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = 70;
        d.sacked(1);
        d.react(Sign::Loss, 70);
        d.sacked(1);
        d.ack.phase = Phase::Open;
        d.acked(0);
        assert_eq!(windows(&d).1, Some(e2e - e2e / 8));
    }

    #[test]
    fn a_pep_that_falls_silent_is_gone_after_two_round_trips_and_may_come_back() {
        let mut d = avoiding();
        let before = windows(&d);
        for round in 1..=3 {
            d.fill();
            let cwnd = d.cwnd();
            assert!(windows(&d).1.is_some(), "round {round}");
            d.acked_singly(cwnd + 1);
        }
        let (pep, e2e) = windows(&d);
        assert_eq!((e2e, d.cwnd()), (None, pep), "CUBIC alone");
        assert!(pep >= before.0.min(before.1.expect("a PEP was heard")));
        report(&mut d, 1, 0);
        assert!(windows(&d).1.is_some());
    }

    #[test]
    fn a_time_out_is_cubics() {
        let mut d = avoiding();
        d.fill();
        d.react(Sign::Timeout { again: false }, 0);
        assert_eq!((d.cwnd(), windows(&d).1), (1, None));
        // A report changes nothing until the loss is repaired.
        d.ack.phase = Phase::Loss;
        report(&mut d, 50, 0);
        assert_eq!((d.cwnd(), windows(&d).1), (1, None));
        d.acked_singly(4);
        assert_eq!(d.cwnd(), 5);
        d.ack.phase = Phase::Open;
        d.acked(0);
        report(&mut d, 1, 0);
        assert!(windows(&d).1.is_some());
    }

    /// A PEP is heard, and so many more segments have passed it: `cwnd_pep` has grown by as many from 10, and
    /// `cwnd_e2e` is 100.
    fn published(passed: u32) -> Driver<MultiDomain> {
        let mut d = driver(MultiDomainConfig { mode: Mode::Published, ..MultiDomainConfig::default() });
        report(&mut d, passed, 0);
        d.fill();
        d
    }

    #[test]
    fn as_published_each_report_of_missing_segments_reduces_the_wired_window_at_once() {
        let mut d = published(90);
        assert_eq!(windows(&d), (100, Some(100)));
        // 0.7 of 100, of 70 and of 49, as Linux rounds; the segments that passed beside the missing ones grow nothing.
        // The other is at most twice as large.
        for expected in [(70, Some(100)), (49, Some(98)), (34, Some(68))] {
            report(&mut d, 20, 1);
            assert_eq!(windows(&d), expected);
        }
        // The endpoint detects what was announced: neither window is reduced for it.
        let (una, next) = d.sequence();
        let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost: 3, una, next, announced: true };
        d.call(|c, cx| c.on_congestion(&announced, cx));
        d.ack.phase = Phase::Recovery;
        d.sacked(1);
        assert_eq!(windows(&d), (34, Some(68)));
        // What has passed in the meantime grows the window, although the recovery goes on; nothing is undone.
        report(&mut d, 3, 0);
        assert!((34..=36).contains(&windows(&d).0), "{:?}", windows(&d));
        d.undo();
        settle(&mut d);
        assert!((34..=36).contains(&windows(&d).0), "{:?}", windows(&d));
        assert_eq!(windows(&d).1, Some(68));
    }

    #[test]
    fn as_published_each_window_is_reduced_from_its_own_value() {
        // The radio loses something while the wired window of 50 applies: 100 - 100 / 8 instead of 50 - 50 / 8.
        let mut d = published(40);
        assert_eq!(windows(&d), (50, Some(100)));
        d.react(Sign::Loss, 50);
        settle(&mut d);
        assert_eq!(windows(&d), (50, Some(88)));
        // The wire loses something while the other of 100 applies: 0.7 of 200 instead of 100.
        let mut d = published(190);
        assert_eq!(windows(&d), (200, Some(100)));
        report(&mut d, 0, 1);
        assert_eq!(windows(&d), (140, Some(100)));
    }

    #[test]
    fn as_published_a_report_ends_the_reduction_of_a_mark() {
        let mut d = published(90);
        d.react(Sign::Ecn, 100);
        report(&mut d, 0, 1);
        // 0.7 of 100 by the mark, and of 70 by the report.
        assert_eq!(windows(&d).0, 49);
        d.ack.in_flight = 60;
        d.ack.phase = Phase::Cwr;
        d.sacked(1);
        assert_eq!(windows(&d).0, 49);
    }

    #[test]
    fn a_spurious_reaction_is_taken_back_where_it_was_taken() {
        let mut d = avoiding();
        let (before, e2e) = (d.cwnd(), windows(&d).1);
        d.fill();
        report(&mut d, 0, 1);
        let (una, next) = d.sequence();
        let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost: 1, una, next, announced: true };
        d.call(|c, cx| c.on_congestion(&announced, cx));
        d.undo();
        d.acked(0);
        assert_eq!((d.cwnd(), windows(&d).1), (before, e2e));
    }

    /// The wired window applies, and the other has grown to twice as much.
    fn unequal() -> (Driver<MultiDomain>, u32) {
        let mut d = avoiding();
        d.fill();
        report(&mut d, 0, 1);
        settle(&mut d);
        let pep = windows(&d).0;
        for _ in 0..200 {
            d.fill();
            report(&mut d, 0, 0);
            d.acked_singly(pep);
        }
        assert_eq!(windows(&d), (pep, Some(2 * pep)));
        (d, pep)
    }

    #[test]
    fn a_wired_loss_while_the_other_window_reduces_starts_from_the_wired_windows_own_value() {
        let (mut d, pep) = unequal();
        // The radio loses, and the flight falls below both windows.
        d.fill();
        d.react(Sign::Loss, pep);
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = pep * 6 / 10;
        d.sacked(1);
        assert!(d.cwnd() < pep * 7 / 10, "{}", d.cwnd());
        report(&mut d, 0, 1);
        settle(&mut d);
        assert_eq!(windows(&d).0, pep * 717 / 1024);
    }

    #[test]
    fn after_the_pep_has_gone_silent_a_loss_reduces_each_window_from_its_own_value() {
        let (mut d, _) = unequal();
        while windows(&d).1.is_some() {
            let cwnd = d.cwnd();
            d.fill();
            d.acked_singly(cwnd + 1);
        }
        let pep = d.cwnd();
        d.lose_and_recover();
        let reduced = windows(&d).0;
        assert_eq!(reduced, pep * 717 / 1024);
        // 7/8 of the larger, but no more than twice the smaller.
        report(&mut d, 0, 0);
        assert_eq!(windows(&d), (reduced, Some(2 * reduced)));
    }

    #[test]
    fn a_mark_reduces_each_window_from_its_own_value() {
        let (mut d, pep) = unequal();
        d.fill();
        d.react(Sign::Ecn, pep);
        d.ack.phase = Phase::Cwr;
        d.ack.in_flight = pep / 2;
        d.sacked(1);
        settle(&mut d);
        let reduced = pep * 717 / 1024;
        assert_eq!(windows(&d), (reduced, Some(2 * reduced)));
    }

    #[test]
    fn an_undo_of_an_announced_loss_lasts() {
        let mut d = avoiding();
        let before = windows(&d);
        d.fill();
        report(&mut d, 0, 1);
        let (una, next) = d.sequence();
        let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost: 1, una, next, announced: true };
        d.call(|c, cx| c.on_congestion(&announced, cx));
        d.ack.phase = Phase::Recovery;
        d.ack.in_flight = 70;
        d.sacked(1);
        d.undo();
        settle(&mut d);
        assert_eq!(windows(&d).1, before.1);
        assert!(windows(&d).0 >= before.0, "{:?} after {before:?}", windows(&d));
    }

    #[test]
    fn it_listens_for_passages_and_misses_them_without_a_pep() {
        for early_retransmission in [true, false] {
            let mut d = driver(MultiDomainConfig { early_retransmission, ..MultiDomainConfig::default() });
            let listens = |misses_passages| Listens { passages: true, early_retransmission, misses_passages };
            assert_eq!(d.c.listens(), listens(true));
            report(&mut d, 1, 0);
            assert_eq!(d.c.listens(), listens(false));
        }
    }
}
