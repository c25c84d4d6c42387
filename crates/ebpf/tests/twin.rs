//! The kernel's arithmetic (`src/bpf/mdcc_algorithm.h`) beside the simulator's, integer for integer: both windows of `mdcc`
//! without a PEP are CUBIC and Scalable TCP, whatever happens.

#![allow(clippy::disallowed_methods)] // Tests run a compiler and read its output.

mod common;

use bolero::{TypeGenerator, check};
use cc::cubic::{Cubic, CubicConfig};
use cc::scalable::{Scalable, ScalableConfig};
use cc::{AckSample, Congestion, Controller, Ctx, Path, Phase, Random, RateSample, Sent, Sign, StackRate};
use common::Twin;
use rand_core::SeedableRng;
use units::{Span, Time};

const MSS: u64 = 1448;
const INITIAL_WINDOW: u32 = 10;

#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Op {
    /// So many segments leave.
    Send(u8),
    /// An acknowledgement of so many, after so many tenths of a millisecond, with this round-trip time in ms.
    Ack {
        segments: u8,
        after: u16,
        rtt: u8,
        lost: u8,
        limited: bool,
    },
    Loss,
    Ecn,
    Timeout {
        again: bool,
    },
    Undo,
}

/// Both windows and thresholds.
fn tell(twin: &mut Twin, op: char, numbers: &[u64]) -> [u32; 4] {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    twin.tell(&format!("{op} {}\n", numbers.join(" ")));
    let [cwnd_pep, ssthresh_pep, cwnd_e2e, ssthresh_e2e, _joined] = twin.answer()[..] else { panic!("five numbers") };
    [cwnd_pep, ssthresh_pep, cwnd_e2e, ssthresh_e2e]
}

/// The simulator's controllers, and what is going on.
struct Model {
    cubic: Cubic,
    scalable: Scalable,
    random: Random,
    path: Path,
    now: Time,
    sent: u64,
    una: u64,
    next: u64,
    high: u64,
    phase: Phase,
}

impl Model {
    fn new() -> Model {
        let path = Path {
            mss: MSS as u32,
            srtt: None,
            min_rtt: None,
            rto: Span::from_secs(1),
            stack_rate: StackRate::default(),
            paced: false,
            shrinks_idle: false,
            departure: Time::ZERO,
        };
        let scalable = ScalableConfig { acks_per_segment: 50, ..ScalableConfig::default() };
        // Numbers wrap after 700 segments.
        let start = (1 << 32) - 700 * MSS;
        Model {
            cubic: Cubic::new(CubicConfig::default(), INITIAL_WINDOW),
            scalable: Scalable::new(scalable, INITIAL_WINDOW),
            random: Random::seed_from_u64(1),
            path,
            now: Time::from_nanos(1_000_000_000),
            sent: 0,
            una: start,
            next: start,
            high: start,
            phase: Phase::Open,
        }
    }

    fn both(&mut self, mut act: impl FnMut(&mut dyn Controller, &mut Ctx)) {
        let (path, random) = (&self.path, &mut self.random);
        act(&mut self.cubic, &mut Ctx { now: self.now, path, random, log: None });
        act(&mut self.scalable, &mut Ctx { now: self.now, path, random, log: None });
    }

    fn windows(&self) -> [u32; 4] {
        let (pep, e2e) = (self.cubic.window(), self.scalable.window());
        [pep.cwnd, pep.ssthresh, e2e.cwnd, e2e.ssthresh]
    }

    fn in_flight(&self) -> u32 {
        ((self.next - self.una) / MSS) as u32
    }

    /// The line for the twin, unless nothing happens.
    fn apply(&mut self, op: Op) -> Option<(char, Vec<u64>)> {
        let in_flight = self.in_flight();
        let low = |number: u64| number & 0xffff_ffff;
        match op {
            Op::Send(count) => {
                for _ in 0..count {
                    // As if the window was full, so that it does not shrink for lack of use: the kernel's side of that is
                    // called elsewhere.
                    let sent = Sent {
                        bytes: MSS as u32,
                        retransmission: false,
                        in_flight_before: 1 << 22,
                        idle: None,
                        blocked: false,
                        app_limited: false,
                    };
                    self.both(|controller, cx| controller.on_sent(&sent, cx));
                }
                self.sent += u64::from(count);
                self.next += u64::from(count) * MSS;
                None
            }
            Op::Ack { segments, after, rtt, lost, limited } => {
                self.now += Span::from_micros(u64::from(after) * 100);
                let delivered = u64::from(segments).min(u64::from(in_flight));
                self.una += delivered * MSS;
                if self.una >= self.high {
                    self.phase = Phase::Open;
                }
                let (in_flight, lost) = (self.in_flight(), u32::from(lost % 3));
                let ack = AckSample {
                    acked: delivered as u32,
                    delivered: delivered as u32,
                    delivered_ce: 0,
                    lost,
                    prior_in_flight: in_flight,
                    in_flight,
                    advanced: delivered > 0,
                    cwnd_limited: limited,
                    ece: false,
                    phase: self.phase,
                    rtt: (rtt > 0).then(|| Span::from_millis(rtt.into())),
                    una: self.una,
                    next: self.next,
                    rate: RateSample::default(),
                };
                self.both(|controller, cx| controller.on_ack(&ack, cx));
                let rtt = u64::from(rtt) * 1000;
                let (una, next) = (low(self.una), low(self.next));
                let numbers = [delivered, lost.into(), in_flight.into(), rtt, una, next, self.phase as u64];
                Some(('a', [&numbers[..], &[u64::from(delivered > 0), limited.into()]].concat()))
            }
            // After a time-out, the sender knows of no other reduction until everything is acknowledged.
            Op::Loss | Op::Ecn if self.phase == Phase::Loss => None,
            Op::Loss | Op::Ecn | Op::Timeout { .. } => {
                let (sign, number, again) = match op {
                    Op::Loss => (Sign::Loss, 0, false),
                    Op::Ecn => (Sign::Ecn, 1, false),
                    Op::Timeout { again } => (Sign::Timeout { again }, 2, again),
                    _ => return None,
                };
                let congestion =
                    Congestion { sign, in_flight, lost: 1, una: self.una, next: self.next, announced: false };
                self.both(|controller, cx| controller.on_congestion(&congestion, cx));
                self.phase = match (sign, self.phase) {
                    (Sign::Timeout { .. }, _) => Phase::Loss,
                    (Sign::Ecn, phase) if phase != Phase::Open => phase,
                    (Sign::Ecn, _) => Phase::Cwr,
                    (Sign::Loss, _) => Phase::Recovery,
                };
                self.high = self.next;
                Some(('c', vec![in_flight.into(), low(self.una), low(self.next), number, again.into(), 0]))
            }
            Op::Undo => {
                self.both(|controller, cx| controller.on_undo(cx));
                Some(('u', Vec::new()))
            }
        }
    }
}

#[test]
fn without_a_pep_both_windows_are_the_simulators() {
    let directory = tempfile::tempdir().expect("a directory");
    let twin = std::sync::Mutex::new(Twin::new("twin", directory.path()));
    check!().with_type::<Vec<Op>>().with_iterations(3_000).with_max_len(4_096).for_each(|ops| {
        let mut twin = twin.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut model = Model::new();
        let numbers = [model.now.as_nanos(), 0, INITIAL_WINDOW.into(), 1, 1 << 20, 1, 0];
        assert_eq!(tell(&mut twin, 'i', &numbers), model.windows());
        for (at, &op) in ops.iter().enumerate() {
            if let Some((letter, numbers)) = model.apply(op) {
                let numbers = [&[model.now.as_nanos(), model.sent], &numbers[..]].concat();
                assert_eq!(tell(&mut twin, letter, &numbers), model.windows(), "after {at}: {op:?}");
            }
        }
    });
}
