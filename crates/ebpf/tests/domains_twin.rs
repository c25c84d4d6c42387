//! The kernel's `mdcc` (`src/bpf/mdcc_algorithm.h`) beside the simulator's (`cc::multi_domain`), integer for integer, with a
//! PEP that reports, falls silent and comes back.

#![allow(clippy::disallowed_methods)] // Tests run a compiler and read its output.

mod common;

use bolero::generator::bolero_generator::driver::{Options as Generation, bytes};
use bolero::{TypeGenerator, ValueGenerator, produce};
use cc::multi_domain::{CWND_E2E, CWND_PEP, Mode, MultiDomain, MultiDomainConfig};
use cc::scalable::ScalableConfig;
use cc::{
    AckSample, Congestion, Controller, Ctx, Passage, Path, Phase, Random, RateSample, Sent, Sign, Signal, StackRate,
};
use common::Twin;
use rand_core::{Rng, SeedableRng};
use units::{Span, Time};

const MSS: u64 = 1448;
const INITIAL_WINDOW: u32 = 10;
const CASES: u64 = 3_000;

/// Something happens; [`Model::apply`] says what.
#[derive(Clone, Copy, Debug, TypeGenerator)]
struct Op {
    kind: u8,
    a: u8,
    b: u8,
    c: u8,
}

/// What a case has shown.
#[derive(Debug, Default)]
struct Shown {
    reports: u32,
    missing: u32,
    announced: u32,
    fallbacks: u32,
    e2e_counts: u32,
    restarts: u32,
}

/// The simulator's controller, and what is going on.
struct Model {
    mdcc: MultiDomain,
    random: Random,
    path: Path,
    now: Time,
    sent: u64,
    una: u64,
    /// Everything below has passed the PEP: at least SND.UNA.
    passed: u64,
    next: u64,
    high: u64,
    phase: Phase,
}

impl Model {
    fn new(config: MultiDomainConfig, paced: bool) -> Model {
        let path = Path {
            mss: MSS as u32,
            srtt: None,
            min_rtt: None,
            rto: Span::from_millis(300),
            stack_rate: StackRate::default(),
            paced,
            shrinks_idle: true,
            departure: Time::ZERO,
        };
        // Numbers wrap after 700 segments.
        let start = (1 << 32) - 700 * MSS;
        Model {
            mdcc: MultiDomain::new(config, INITIAL_WINDOW),
            random: Random::seed_from_u64(1),
            path,
            now: Time::from_nanos(1_000_000_000),
            sent: 0,
            una: start,
            passed: start,
            next: start,
            high: start,
            phase: Phase::Open,
        }
    }

    fn call(&mut self, act: impl FnOnce(&mut MultiDomain, &mut Ctx)) {
        let (path, random) = (&self.path, &mut self.random);
        act(&mut self.mdcc, &mut Ctx { now: self.now, path, random, log: None });
    }

    /// Both windows and whether the second one counts for anything, as the twin says them.
    fn answer(&self) -> [u32; 3] {
        let gauge = |name| cc::gauge(&self.mdcc, name).map_or(0, |window| window as u32);
        [self.mdcc.limits().cwnd, gauge(CWND_PEP), gauge(CWND_E2E)]
    }

    fn in_flight(&self) -> u32 {
        ((self.next - self.una) / MSS) as u32
    }

    /// So many segments leave. The window counts as full, so that it does not shrink for lack of use: the kernel's side of
    /// that is called elsewhere, and later.
    fn send(&mut self, count: u8, idle: Option<Span>) {
        for n in 0..count {
            let sent = Sent {
                bytes: MSS as u32,
                retransmission: false,
                in_flight_before: 1 << 22,
                idle: idle.filter(|_| n == 0),
                blocked: false,
                app_limited: false,
            };
            self.call(|controller, cx| controller.on_sent(&sent, cx));
        }
        self.sent += u64::from(count);
        self.next += u64::from(count) * MSS;
    }

    fn react(&mut self, sign: Sign, announced: bool) -> (char, Vec<u64>) {
        let in_flight = self.in_flight();
        let (una, next) = (self.una, self.next);
        let congestion = Congestion { sign, in_flight, lost: 1, una, next, announced };
        self.call(|controller, cx| controller.on_congestion(&congestion, cx));
        let (number, again) = match sign {
            Sign::Loss => (0, false),
            Sign::Ecn => (1, false),
            Sign::Timeout { again } => (2, again),
        };
        self.phase = match (sign, self.phase) {
            (Sign::Timeout { .. }, _) => Phase::Loss,
            (Sign::Ecn, phase) if phase != Phase::Open => phase,
            (Sign::Ecn, _) => Phase::Cwr,
            (Sign::Loss, _) => Phase::Recovery,
        };
        self.high = self.next;
        ('c', vec![in_flight.into(), low(una), low(next), number, again.into(), announced.into()])
    }

    fn pass(&mut self, reported: bool, passed: u32, missing: u32, rtt: u8, limited: bool) -> (char, Vec<u64>) {
        self.passed = (self.passed + u64::from(passed) * MSS).clamp(self.una, self.next);
        let passage = Passage {
            reported,
            passed,
            missing,
            in_flight: self.in_flight(),
            cwnd_limited: limited,
            rtt: (rtt > 0).then(|| Span::from_micros(u64::from(rtt) * 250)),
            una: self.passed,
            next: self.next,
        };
        self.call(|controller, cx| controller.on_signal(&Signal::Passage(passage), cx));
        let rtt = u64::from(rtt) * 250;
        let flags = [reported.into(), limited.into()];
        let numbers = [passed.into(), missing.into(), self.in_flight().into(), rtt, low(self.passed), low(self.next)];
        ('p', [&numbers[..], &flags].concat())
    }

    /// The line for the twin, unless nothing happens there.
    fn apply(&mut self, op: Op, shown: &mut Shown) -> Option<(char, Vec<u64>)> {
        let Op { kind, a, b, c } = op;
        let joined = cc::gauge(&self.mdcc, CWND_E2E).is_some();
        match kind {
            0..60 => {
                self.send(a % 64, None);
                None
            }
            // The receiver acknowledges, mostly a part, sometimes all.
            60..140 => {
                self.now += Span::from_micros(u64::from(b) * 100);
                let all = self.in_flight();
                let delivered = if c % 8 == 0 { all } else { u32::from(a % 32).min(all) };
                self.una += u64::from(delivered) * MSS;
                self.passed = self.passed.max(self.una);
                if self.una >= self.high {
                    self.phase = Phase::Open;
                }
                let lost = if c % 16 == 5 { 2 } else { 0 };
                let limited = c % 5 != 1;
                let rtt = u64::from(a) + 20_000;
                let in_flight = self.in_flight();
                let ack = AckSample {
                    acked: delivered,
                    delivered,
                    delivered_ce: 0,
                    lost,
                    prior_in_flight: in_flight,
                    in_flight,
                    advanced: delivered > 0,
                    cwnd_limited: limited,
                    ece: false,
                    phase: self.phase,
                    rtt: Some(Span::from_micros(rtt)),
                    una: self.una,
                    next: self.next,
                    rate: RateSample::default(),
                };
                self.call(|controller, cx| controller.on_ack(&ack, cx));
                let after = cc::gauge(&self.mdcc, CWND_E2E).is_some();
                shown.fallbacks += u32::from(joined && !after);
                let numbers = [delivered.into(), lost.into(), in_flight.into(), rtt, low(self.una), low(self.next)];
                let flags = [self.phase as u64, (delivered > 0).into(), limited.into()];
                Some(('a', [&numbers[..], &flags].concat()))
            }
            // The PEP reports, now and then of something missing.
            140..210 => {
                self.now += Span::from_micros(u64::from(b) * 20);
                let missing = if c % 8 == 3 { u32::from(c / 8) % 4 + 1 } else { 0 };
                shown.reports += 1;
                shown.missing += u32::from(missing > 0);
                Some(self.pass(true, (a % 16).into(), missing, b, c % 5 != 1))
            }
            // It follows from an acknowledgement that something has passed.
            210..220 => Some(self.pass(false, (a % 8).into(), 0, 0, c % 5 != 1)),
            // After a time-out, the sender knows of no other reduction until everything is acknowledged.
            220..240 if self.phase == Phase::Loss => None,
            220..234 => {
                let announced = joined && a % 2 == 0;
                shown.announced += u32::from(announced);
                Some(self.react(Sign::Loss, announced))
            }
            234..240 => Some(self.react(Sign::Ecn, false)),
            240..244 => {
                let again = self.phase == Phase::Loss && a % 2 == 0;
                Some(self.react(Sign::Timeout { again }, false))
            }
            244..248 => {
                self.call(Controller::on_undo);
                Some(('u', Vec::new()))
            }
            // The sender pauses, and goes on with an empty network.
            248..252 if self.phase == Phase::Open && self.una == self.next => {
                let idle = Span::from_millis(u64::from(a) * 8);
                self.now += idle;
                self.send(1, Some(idle));
                shown.restarts += 1;
                Some(('r', vec![idle.as_nanos(), self.path.rto.as_nanos()]))
            }
            _ => {
                self.now += Span::from_millis(a.into());
                None
            }
        }
    }
}

fn low(number: u64) -> u64 {
    number & 0xffff_ffff
}

/// The window that counts, that of the wired domain, and that of the whole path, or 0 while no PEP is heard.
fn tell(twin: &mut Twin, op: char, numbers: &[u64]) -> [u32; 3] {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    twin.tell(&format!("{op} {}\n", numbers.join(" ")));
    let [pep, _, e2e, _, joined] = twin.answer::<u32>()[..] else { panic!("five numbers") };
    if joined > 0 { [e2e.min(pep), pep, e2e] } else { [pep, pep, 0] }
}

#[test]
fn with_a_pep_both_windows_are_the_simulators() {
    compare(Mode::Safe);
}

#[test]
fn as_published_both_windows_are_the_simulators() {
    compare(Mode::Published);
}

/// Compares both over many cases.
fn compare(mode: Mode) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut twin = Twin::new("twin", directory.path());
    let mut shown = Shown::default();
    let generator = (produce::<(u8, u8, bool)>(), produce::<Vec<Op>>().with().len(0_usize..400));
    // The same cases each time.
    for case in 0..CASES {
        let mut input = vec![0; 4_096];
        Random::seed_from_u64(case).fill_bytes(&mut input);
        let mut driver = bytes::Driver::new(input, &Generation::default());
        let Some(((initial, validation, loss_filter), ops)) = generator.generate(&mut driver) else { continue };
        let config = MultiDomainConfig {
            mode,
            scalable: ScalableConfig { acks_per_segment: 50, ..ScalableConfig::default() },
            initial_ratio: u32::from(initial % 12) + 1,
            validation_ratio: u32::from(validation % 4) + 1,
            loss_filter: loss_filter || initial % 3 > 0,
            ..MultiDomainConfig::default()
        };
        let mut model = Model::new(config, validation >= 128);
        let ratios = [u64::from(config.initial_ratio), u64::from(config.validation_ratio)];
        let how = [config.loss_filter.into(), model.path.paced.into(), (mode == Mode::Published).into()];
        let numbers = [&[model.now.as_nanos(), 0, INITIAL_WINDOW.into()], &ratios[..], &how].concat();
        assert_eq!(tell(&mut twin, 'i', &numbers), model.answer());
        for (at, &op) in ops.iter().enumerate() {
            if let Some((letter, numbers)) = model.apply(op, &mut shown) {
                let numbers = [&[model.now.as_nanos(), model.sent], &numbers[..]].concat();
                let answer = tell(&mut twin, letter, &numbers);
                assert_eq!(answer, model.answer(), "case {case}, after {at}: {op:?}, {config:?}");
                shown.e2e_counts += u32::from(answer[2] > 0 && answer[2] < answer[1]);
            }
        }
    }
    eprintln!("{shown:?}");
    let Shown { reports, missing, announced, fallbacks, e2e_counts, restarts } = shown;
    assert!(reports > 10_000 && missing > 2_000 && announced > 500 && fallbacks > 100, "they say too little");
    assert!(e2e_counts > 10_000 && restarts > 100, "too little happens");
}
