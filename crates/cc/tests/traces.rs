//! The windows of each controller over long random connections, as tables: losses, marks, time-outs, pauses and spurious
//! reactions in any order. A change that is meant to change a table shows there from which moment on.

use cc::multi_domain::{Mode, MultiDomain, MultiDomainConfig};
use cc::{
    AckSample, AnyController, Congestion, Controller, Ctx, Event, INFINITE_SSTHRESH, Passage, Path, Phase, Random,
    RateSample, Sent, Sign, Signal, StackRate,
};
use rand_core::SeedableRng;
use std::fmt::Write;
use units::{Rate, Span, Time};

const MSS: u64 = 1448;
/// Steps of a connection, and of a line.
const STEPS: u32 = 4_000;
const LINE: u32 = 80;

/// A connection whose events are drawn at random, with numbers that agree with each other.
struct Connection<C> {
    c: C,
    now: Time,
    path: Path,
    random: Random,
    log: Vec<Event>,
    state: u64,
    una: u64,
    next: u64,
    /// Segments beyond SND.UNA that were selectively acknowledged.
    sacked: u64,
    in_flight: u32,
    delivered: u64,
    lost: u64,
    phase: Phase,
    high: u64,
    limited: bool,
    app_limited: bool,
    last_sent: Option<Time>,
    timeouts: u32,
    /// How far a PEP has reported.
    passed: u64,
    /// How many times as rare losses, marks and time-outs are, and as slow the path is.
    rarer: u64,
    slower: u64,
    /// The sums of the windows, of the thresholds and of the pacing rates after each call, since the last line.
    sums: [u64; 3],
}

impl<C: Controller> Connection<C> {
    fn new(c: C, seed: u64) -> Connection<C> {
        let path = Path {
            mss: MSS as u32,
            srtt: Some(Span::from_millis(20)),
            min_rtt: Some(Span::from_millis(20)),
            rto: Span::from_millis(220),
            stack_rate: StackRate::default(),
            paced: seed.is_multiple_of(2),
            shrinks_idle: true,
            departure: Time::ZERO,
        };
        Connection {
            c,
            now: Time::from_nanos(20_000_000),
            path,
            random: Random::seed_from_u64(seed),
            log: Vec::new(),
            state: seed,
            una: 1,
            next: 1,
            sacked: 0,
            in_flight: 0,
            delivered: 1,
            lost: 0,
            phase: Phase::Open,
            high: 0,
            limited: false,
            app_limited: false,
            last_sent: None,
            timeouts: 0,
            passed: 1,
            rarer: [1, 8, 3][seed as usize % 3],
            slower: [1, 1, 10][seed as usize % 3],
            sums: [0; 3],
        }
    }

    /// Knuth's MMIX generator: a number below `bound`.
    fn draw(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn call(&mut self, f: impl FnOnce(&mut C, &mut Ctx)) {
        let mut cx = Ctx { now: self.now, path: &self.path, random: &mut self.random, log: Some(&mut self.log) };
        f(&mut self.c, &mut cx);
        let limits = self.c.limits();
        let rate = limits.pacing.map_or(0, Rate::bytes_per_sec);
        let terms = [u64::from(limits.cwnd), u64::from(limits.ssthresh.min(10_000)), rate];
        self.sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }

    fn send(&mut self) {
        // Mostly all that the window allows; sometimes the application has less.
        let offered = if self.draw(40) == 0 { self.draw(5) as u32 } else { 400 };
        let mut sent = 0;
        while sent < offered && self.in_flight < self.c.limits().cwnd.min(400) {
            let idle = self.last_sent.filter(|_| self.in_flight == 0).map(|last| self.now.saturating_since(last));
            let sent_now = Sent {
                bytes: MSS as u32,
                retransmission: self.phase == Phase::Loss && sent == 0,
                in_flight_before: self.in_flight,
                idle,
                blocked: offered < 400 && self.app_limited,
                app_limited: self.app_limited,
            };
            self.in_flight += 1;
            self.next += MSS;
            self.last_sent = Some(self.now);
            if let Some(rate) = self.c.limits().pacing {
                self.path.departure = self.path.departure.max(self.now) + rate.time_for(units::Bytes::new(MSS));
            }
            self.call(|c, cx| c.on_sent(&sent_now, cx));
            sent += 1;
        }
        let limits = self.c.limits();
        self.limited =
            self.in_flight >= limits.cwnd || (limits.cwnd < limits.ssthresh && limits.cwnd < 2 * self.in_flight);
        self.app_limited = self.in_flight < limits.cwnd;
    }

    fn congestion(&mut self, sign: Sign, lost: u32) {
        let announced = self.draw(3) == 0;
        let congestion =
            Congestion { sign, in_flight: self.in_flight, lost, una: self.una, next: self.next, announced };
        self.call(|c, cx| c.on_congestion(&congestion, cx));
    }

    /// Up to three segments arrive, cumulatively unless something is missing; perhaps a loss or a mark shows.
    fn acknowledge(&mut self) {
        let prior_in_flight = self.in_flight;
        let arrived = (1 + self.draw(3) as u32).min(self.in_flight);
        self.in_flight -= arrived;
        let lost = if self.draw(150 * self.rarer) == 0 { (1 + self.draw(3) as u32).min(self.in_flight) } else { 0 };
        self.in_flight -= lost;
        let gap = matches!(self.phase, Phase::Recovery | Phase::Loss | Phase::Disorder) && self.draw(5) > 0;
        let acked = if gap {
            self.sacked += u64::from(arrived);
            0
        } else {
            u64::from(arrived) + core::mem::take(&mut self.sacked)
        };
        self.una = (self.una + acked * MSS).min(self.next);
        let prior_delivered = self.delivered - u64::from(prior_in_flight).min(self.delivered);
        self.delivered += u64::from(arrived);
        self.lost += u64::from(lost);
        let ece = self.phase == Phase::Open && self.draw(400 * self.rarer) == 0;
        if self.una >= self.high && self.phase != Phase::Open {
            self.phase = Phase::Open;
        }
        if lost > 0 && self.phase != Phase::Recovery {
            self.congestion(Sign::Loss, lost);
            (self.phase, self.high) = (Phase::Recovery, self.next);
        } else if lost > 0 && self.draw(3) == 0 {
            self.congestion(Sign::Loss, lost);
        } else if ece {
            self.congestion(Sign::Ecn, 0);
            (self.phase, self.high) = (Phase::Cwr, self.next);
        } else if self.phase == Phase::Open && self.draw(60) == 0 {
            (self.phase, self.high) = (Phase::Disorder, self.una + 3 * MSS);
        }
        // 20 ms and the queue; now and then a spike.
        let spike = if self.draw(30) == 0 { self.draw(30_000) } else { self.draw(400) };
        let rtt = Span::from_micros(20_000 + u64::from(prior_in_flight) * 120 * self.slower + spike);
        let srtt = self.path.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8);
        self.path.srtt = Some(srtt);
        self.path.rto = srtt + Span::from_millis(200);
        let cwnd = u64::from(self.c.limits().cwnd);
        self.path.stack_rate = StackRate::new(cwnd * MSS * 8 * 2, srtt);
        let sampled = arrived > 0 && self.draw(20) > 0;
        let rate = RateSample {
            delivered: sampled.then(|| (self.delivered - prior_delivered) as u32),
            interval: if sampled { rtt } else { Span::ZERO },
            prior_delivered,
            total_delivered: self.delivered,
            total_lost: self.lost,
            app_limited: self.app_limited,
            retransmitted: gap,
            maybe_delayed: self.draw(10) == 0,
        };
        let ack = AckSample {
            acked: acked as u32,
            delivered: arrived,
            delivered_ce: if ece { arrived } else { 0 },
            lost,
            prior_in_flight,
            in_flight: self.in_flight,
            advanced: acked > 0,
            cwnd_limited: self.limited,
            ece,
            phase: self.phase,
            rtt: (self.draw(8) > 0 && !gap).then_some(rtt),
            una: self.una,
            next: self.next,
            rate,
        };
        self.call(|c, cx| c.on_ack(&ack, cx));
        if acked > 0 {
            self.timeouts = 0;
        }
    }

    /// A PEP tells what has passed it, and perhaps what is missing there.
    fn report(&mut self) {
        let target = self.una + (self.next - self.una) / 2 / MSS * MSS;
        let passed = (target.saturating_sub(self.passed) / MSS) as u32;
        self.passed = self.passed.max(target);
        let missing = if self.draw(80 * self.rarer) == 0 { 1 + self.draw(2) as u32 } else { 0 };
        let passage = Passage {
            reported: self.draw(5) > 0,
            passed,
            missing,
            in_flight: self.in_flight,
            cwnd_limited: self.limited,
            rtt: (self.draw(4) > 0).then(|| Span::from_micros(10_000 + u64::from(self.in_flight) * 60 * self.slower)),
            una: self.passed,
            next: self.next,
        };
        self.call(|c, cx| c.on_signal(&Signal::Passage(passage), cx));
    }

    fn step(&mut self, step: u32) {
        self.send();
        let wait = match self.draw(200) {
            0 if self.draw(self.rarer) == 0 => 300_000 + self.draw(900_000),
            1..=8 => 2_000 + self.draw(20_000),
            _ => (100 + self.draw(700)) * self.slower,
        };
        self.now += Span::from_micros(wait);
        if wait > 300_000 && self.draw(2) == 0 {
            // Everything arrives in the pause, or the timer fires.
            while self.in_flight > 0 {
                self.acknowledge();
            }
        } else if wait > 300_000 || self.draw(700 * self.rarer) == 0 {
            self.lost += u64::from(self.in_flight);
            self.in_flight = 0;
            let again = self.timeouts > 0;
            self.timeouts += 1;
            self.congestion(Sign::Timeout { again }, 1);
            (self.phase, self.high) = (Phase::Loss, self.next);
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss) && self.draw(60) == 0 {
            self.call(Controller::on_undo);
            self.phase = Phase::Open;
        }
        self.acknowledge();
        // The PEP falls silent for a fifth of the time.
        if step % 1_000 < 800 {
            self.report();
        }
    }

    fn line(&mut self, step: u32) -> String {
        let limits = self.c.limits();
        let ssthresh = if limits.ssthresh == INFINITE_SSTHRESH { "-".to_owned() } else { limits.ssthresh.to_string() };
        let [cwnds, thresholds, rates] = core::mem::take(&mut self.sums);
        let mut text = format!("{step:>4} cwnd {} sum {cwnds} ssthresh {ssthresh} sum {thresholds}", limits.cwnd);
        if rates > 0 {
            write!(text, " pacing {} burst {}", rates / 1_000, limits.burst).expect("a text takes it");
        }
        write!(text, " {} listens {:?}", self.c.state(), self.c.listens().misses_passages).expect("a text takes it");
        self.c.gauges(&mut |name, value| write!(text, " {name} {value}").expect("a text takes it"));
        for event in self.log.drain(..) {
            let told = match event {
                Event::State(state) => write!(text, " [{state}]"),
                Event::SlowStartExit { cause, cwnd } => write!(text, " [{cause:?} at {cwnd}]"),
            };
            told.expect("a text takes it");
        }
        text
    }
}

/// The table of a controller over three connections: with many losses, with few, and on a slow path.
fn table<C: Controller>(new: impl Fn() -> C) -> String {
    let mut text = String::new();
    for seed in 0..3 {
        let mut connection = Connection::new(new(), seed);
        for step in 1..=STEPS {
            connection.step(step);
            if step % LINE == 0 {
                writeln!(text, "{}", connection.line(step)).expect("a text takes it");
            }
        }
        writeln!(text, "{} {} s", connection.c.name(), connection.now.as_nanos() / 1_000_000_000)
            .expect("a text takes it");
    }
    text
}

macro_rules! traces {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(table(|| AnyController::by_name(stringify!($name), 10).expect("the table has it")));
        }
    )*};
}
traces!(reno, cubic, bbr, vegas, westwood, yeah, scalable, mdcc);

#[test]
fn mdcc_as_published() {
    insta::assert_snapshot!(table(|| {
        MultiDomain::new(MultiDomainConfig { mode: Mode::Published, ..MultiDomainConfig::default() }, 10)
    }));
}

#[test]
fn bbr_of_linux_4_9() {
    insta::assert_snapshot!(table(|| cc::bbr::Bbr::of(cc::bbr::Version::Linux4_9, 10)));
}
