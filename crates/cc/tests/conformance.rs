//! Every controller passes the suite, and its window on a simple path is what its formula says.
//!
//! The path: 400 us a segment, 40 ms, a pipe of 101 segments with the one in service, a queue of 100. One segment is lost
//! in round 5, when slow start is past the pipe, and one in round 60.

use bolero::{check, produce};
use cc::loss_based::MAX_CWND;
use cc::multi_domain::{Mode, MultiDomain, MultiDomainConfig};
use cc::{
    AckSample, AnyController, Config, Congestion, Controller, Ctx, Limits, Listens, Passage, Path, Phase, Random,
    RateSample, Sent, Sign, Signal, StackRate,
};
use rand_core::SeedableRng;
use std::fmt::Write;
use testkit::controller::{Kind, Op, PathModel, Round, run_operations, run_path};
use units::{Span, Time};

fn new(name: &str) -> AnyController {
    AnyController::by_name(name, cc::INITIAL_WINDOW).expect("the table has it")
}

fn kind(name: &str) -> Kind {
    if name == "bbr" { Kind::Model } else { Kind::Window }
}

fn path() -> PathModel {
    PathModel {
        rtt: Span::from_millis(40),
        per_segment: Span::from_micros(400),
        buffer: 100,
        losses: vec![5, 60],
        rounds: 110,
    }
}

macro_rules! conformance {
    ($($name:ident),*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn any_operations_keep_the_invariants() {
                let name = stringify!($name).replace('_', "-");
                let ops = produce::<Vec<Op>>().with().len(0..300_usize);
                check!().with_generator(ops).with_iterations(1000).for_each(|ops: &Vec<Op>| {
                    run_operations(|| new(&name), kind(&name), ops);
                });
            }
        }
    )*

        #[test]
        fn the_suite_runs_for_every_controller() {
            assert_eq!(Config::NAMES, [$(stringify!($name).replace('_', "-")),*]);
        }
    };
}
conformance!(cubic, new_reno, bbr, vegas, westwood, yeah, scalable, mdcc);

/// Multi-domain congestion control beside a PEP that reports all that the receiver acknowledges, just before.
#[derive(Clone, Debug)]
struct Heard(MultiDomain);

impl Controller for Heard {
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx) {
        self.0.on_sent(sent, cx);
    }

    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx) {
        let &AckSample { delivered: passed, in_flight, cwnd_limited, rtt, una, next, .. } = ack;
        let passage = Passage { reported: true, passed, missing: 0, in_flight, cwnd_limited, rtt, una, next };
        self.0.on_signal(&Signal::Passage(passage), cx);
        self.0.on_ack(ack, cx);
    }

    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        self.0.on_congestion(congestion, cx);
    }

    fn on_undo(&mut self, cx: &mut Ctx) {
        self.0.on_undo(cx);
    }

    fn listens(&self) -> Listens {
        self.0.listens()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn state(&self) -> &'static str {
        self.0.state()
    }
}

fn multi_domain(mode: Mode) -> MultiDomain {
    MultiDomain::new(MultiDomainConfig { mode, ..MultiDomainConfig::default() }, cc::INITIAL_WINDOW)
}

#[test]
fn any_operations_keep_the_invariants_of_multi_domain_as_published() {
    let ops = produce::<Vec<Op>>().with().len(0..300_usize);
    check!().with_generator(ops).with_iterations(1000).for_each(|ops: &Vec<Op>| {
        run_operations(|| multi_domain(Mode::Published), Kind::Window, ops);
    });
}

/// Not any operations: with a PEP, a timeout reduces the wired window after a loss has reduced the other.
#[test]
fn both_modes_of_multi_domain_keep_the_invariants_beside_a_pep() {
    for mode in [Mode::Safe, Mode::Published] {
        let rounds = run_path(Heard(multi_domain(mode)), Kind::Window, &path());
        assert!(rounds.last().is_some_and(|round| round.lost >= 2), "{mode:?}");
    }
}

#[test]
fn short_stories_keep_the_invariants() {
    use Op::{Deliver, DeliverAll, Lose, Mark, SendAll, Timeout, Undo, Wait};
    let stories: &[&[Op]] = &[
        // A reaction right after one that was undone is a new one.
        &[SendAll, Lose(1), Undo, Lose(1), Undo],
        &[SendAll, Lose(1), Undo, Timeout, Undo],
        // A loss in a CWR phase, and a time-out in the recovery that follows, are its consequence.
        &[SendAll, DeliverAll, SendAll, Mark, Lose(3), SendAll, Timeout, SendAll, DeliverAll, SendAll],
        // Slow start from one segment, twice, with the path's delay known and idle times between.
        &[SendAll, DeliverAll, SendAll, Timeout, SendAll, DeliverAll, SendAll, DeliverAll, Timeout, Wait(255)],
        &[SendAll, Wait(50), Timeout, SendAll, Wait(50), Deliver(1), SendAll, Wait(90), DeliverAll, Wait(255), SendAll],
    ];
    for name in Config::NAMES {
        for story in stories {
            run_operations(|| new(name), kind(name), story);
        }
    }
}

/// The rounds of a controller as a table, beside what `expected` says of a round from the rounds before, where it says
/// something; checks that both agree within 5 % and a segment.
fn table(name: &str, expected: impl Fn(&[Round], usize) -> Option<f64>) -> String {
    let rounds = run_path(new(name), kind(name), &path());
    let mut out = String::from("round    ms  cwnd  formula  state\n");
    let mut compared = 0;
    for (i, round) in rounds.iter().enumerate() {
        let formula = expected(&rounds, i);
        if let Some(formula) = formula {
            let off = (f64::from(round.cwnd) - formula).abs();
            assert!(off <= 1.0 + 0.05 * formula, "round {}: {} against {formula:.1}", i + 1, round.cwnd);
            compared += 1;
        }
        let formula = formula.map_or("-".to_owned(), |f| format!("{}", f.round()));
        let ms = round.at.as_nanos() / 1_000_000;
        writeln!(out, "{:>5} {ms:>5} {:>5} {formula:>8}  {}", i + 1, round.cwnd, round.state).expect("a text takes it");
    }
    assert!(compared > 20 || name == "yeah", "{compared} rounds compared");
    out
}

/// The first round after the last loss before `i`: the start of a formula. In the round of the loss itself more is
/// acknowledged than a window.
fn since_recovery(rounds: &[Round], i: usize) -> Option<usize> {
    let lost = rounds[i].lost;
    let start = 1 + rounds.iter().position(|r| r.lost == lost)?;
    (lost > 0 && start <= i).then_some(start)
}

#[test]
fn reno_adds_a_segment_each_round() {
    insta::assert_snapshot!(table("reno", |rounds, i| {
        let start = since_recovery(rounds, i)?;
        Some(f64::from(rounds[start].cwnd) + (i - start) as f64)
    }));
}

#[test]
fn cubic_follows_the_larger_of_its_curve_and_reno() {
    insta::assert_snapshot!(table("cubic", |rounds, i| {
        let start = since_recovery(rounds, i)? - 1;
        let w0 = f64::from(rounds[start].cwnd);
        // RFC 9438 sections 4.2 and 4.3, a minimum RTT ahead as Linux has it.
        let t = 0.04 + rounds[i].at.saturating_since(rounds[start].at).as_secs_f64();
        // The second loss comes below the first one's plateau: fast convergence aims at (1 + beta) / 2 of it.
        let w_max = w0 / 0.7 * if start > 50 { 0.85 } else { 1.0 };
        let from_plateau = t - libm::cbrt((w_max - w0) / 0.4);
        let curve = w_max + 0.4 * from_plateau * from_plateau * from_plateau;
        Some(curve.max(w0 + 0.529 * (i - start) as f64))
    }));
}

#[test]
fn scalable_adds_a_hundredth_each_round() {
    insta::assert_snapshot!(table("scalable", |rounds, i| {
        let start = since_recovery(rounds, i)?;
        Some((start..i).fold(f64::from(rounds[start].cwnd), |w, _| w + (w / 100.0).max(1.0)))
    }));
}

#[test]
fn vegas_holds_two_to_four_segments_in_the_queue() {
    insta::assert_snapshot!(table("vegas", |rounds, i| {
        // A pipe of 101, from 10 rounds for each reaction on, and at most one segment a round to get there.
        let start = since_recovery(rounds, i)?;
        let settled = i - start > 101_usize.saturating_sub(rounds[start].cwnd as usize) + 10;
        settled.then_some(104.0)
    }));
}

#[test]
fn westwood_adds_a_segment_each_round_to_its_estimate() {
    insta::assert_snapshot!(table("westwood", |rounds, i| {
        let start = since_recovery(rounds, i)?;
        Some(f64::from(rounds[start].cwnd) + (i - start) as f64)
    }));
}

#[test]
fn yeah_keeps_the_queue_short() {
    insta::assert_snapshot!(table("yeah", |_, _| None));
}

#[test]
fn bbr_allows_two_pipes_and_three_bursts() {
    insta::assert_snapshot!(table("bbr", |rounds, i| {
        // Bursts are 2 segments at 29 Mbit/s (3.5 kB in a millisecond); acknowledgements come evenly.
        (rounds[i].state == "probe-bw" && rounds[i - 1].state == "probe-bw" && i > 15)
            .then_some(2.0 * 101.0 + 3.0 * 2.0)
    }));
}

/// Calls a controller a second after the start of a connection.
fn call(controller: &mut AnyController, f: impl FnOnce(&mut AnyController, &mut Ctx)) {
    let path = Path {
        mss: 1448,
        srtt: None,
        min_rtt: None,
        rto: Span::from_secs(1),
        stack_rate: StackRate::default(),
        paced: false,
        shrinks_idle: true,
        departure: Time::ZERO,
    };
    let now = Time::from_nanos(1_000_000_000);
    f(controller, &mut Ctx { now, path: &path, random: &mut Random::seed_from_u64(1), log: None });
}

/// A window is of 1 to [`MAX_CWND`] segments, whatever a connection begins with and however much is in flight.
#[test]
fn no_controller_leaves_the_bounds_of_a_window() {
    let ack = |phase, in_flight| AckSample {
        acked: 5,
        delivered: 5,
        delivered_ce: 0,
        lost: 0,
        prior_in_flight: in_flight + 5,
        in_flight,
        advanced: true,
        cwnd_limited: true,
        ece: false,
        phase,
        rtt: None,
        una: 5 * 1448,
        next: u64::from(MAX_CWND + 10) * 1448,
        rate: RateSample { total_delivered: 5, ..RateSample::default() },
    };
    let congestion = |sign| Congestion {
        sign,
        in_flight: MAX_CWND + 5,
        lost: 1,
        una: 0,
        next: u64::from(MAX_CWND + 10) * 1448,
        announced: false,
    };
    for name in Config::NAMES {
        let begun = |initial| AnyController::by_name(name, initial).expect("the table has it");
        assert_eq!([0, 1, MAX_CWND, u32::MAX].map(|n| begun(n).limits().cwnd), [1, 1, MAX_CWND, MAX_CWND], "{name}");
        let mut grown = begun(MAX_CWND);
        call(&mut grown, |c, cx| c.on_ack(&ack(Phase::Open, 100), cx));
        let mut timed_out = begun(100);
        call(&mut timed_out, |c, cx| c.on_congestion(&congestion(Sign::Timeout { again: false }), cx));
        let mut recovering = begun(100);
        call(&mut recovering, |c, cx| c.on_congestion(&congestion(Sign::Loss), cx));
        call(&mut recovering, |c, cx| c.on_ack(&ack(Phase::Recovery, MAX_CWND + 5), cx));
        for controller in [grown, timed_out, recovering] {
            assert_eq!(controller.limits().cwnd, MAX_CWND, "{controller:?}");
        }
    }
}
