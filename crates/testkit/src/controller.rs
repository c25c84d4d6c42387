//! The conformance suite for congestion controllers.
//!
//! [`Sender`] is a small model of a sender with selective acknowledgements. It follows the calling order stated in
//! [`cc`] and checks, after every call, properties that hold for any controller:
//!
//! - the window is at least 2 segments, at least 1 in a reduction and after a timeout, and at most [`MAX_CWND`];
//! - the threshold is at least 2, and pacing rate and burst are not zero;
//! - the window does not grow while it does not limit sending ([`Kind::Window`]);
//! - until a reduction has ended, no other lowers the threshold;
//! - an undo restores the window and the threshold ([`Kind::Window`]).
//!
//! Two drivers use it: [`run_operations`] executes an arbitrary list of operations, such as a fuzzer generates, and
//! [`run_path`] puts the sender on a path with a fixed round-trip time, rate and buffer, and returns the window of each
//! round.

use bolero::TypeGenerator;
use cc::loss_based::MAX_CWND;
use cc::{
    AckSample, Congestion, Controller, Ctx, Event, INFINITE_SSTHRESH, Limits, Path, Phase, Random, RateSample, Sent,
    Sign,
};
use rand_core::SeedableRng;
use std::collections::VecDeque;
use units::{Rate, Span, Time};

/// Payload bytes of every segment.
pub const MSS: u32 = 1448;
/// Maximum number of segments in flight, in place of a receive window.
const MAX_FLIGHT: u32 = 3000;
/// The variance term of the retransmission timeout, with Linux's minimum.
const RTO_MARGIN: Span = Span::from_millis(200);

/// How a controller determines its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From acknowledgements and losses: all checks apply.
    Window,
    /// From a model of the path, which decides itself how to treat application-limited samples, and how much of the
    /// window an undo restores.
    Model,
}

/// An event at the sender.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub enum Op {
    /// The application offers this many segments; as many as the window allows are sent.
    Send(u8),
    /// The application offers more than any window.
    SendAll,
    /// The oldest `n` segments in flight arrive, with a single acknowledgement.
    Deliver(u8),
    /// All segments in flight arrive one by one, 100 us apart.
    DeliverAll,
    /// The oldest `n` segments in flight are lost, as detected by the arrival of the next one.
    Lose(u8),
    /// The receiver echoes a congestion mark.
    Mark,
    /// The retransmission timer fires.
    Timeout,
    /// The last reduction turns out to be spurious.
    Undo,
    /// This many milliseconds pass.
    Wait(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Delivered,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    fate: Fate,
    sent_at: Time,
    retransmitted: bool,
    app_limited: bool,
    /// The sender's counters when this was sent, for the delivery rate.
    delivered_then: u64,
    delivered_at_then: Time,
    first_sent_then: Time,
}

/// A model of a sender that drives a controller. Segments are numbered from 0.
pub struct Sender<C> {
    controller: C,
    kind: Kind,
    now: Time,
    path: Path,
    random: Random,
    log: Vec<Event>,
    /// The segments starting with SND.UNA, which has the number `una`.
    segments: VecDeque<Segment>,
    una: u64,
    in_flight: u32,
    phase: Phase,
    /// SND.NXT at the last reduction.
    high: u64,
    /// The limits that an undo must restore.
    prior: Option<Limits>,
    /// Consecutive timeouts without progress.
    timeouts: u32,
    /// Whether the window fell to 1 in a reduction or after a timeout, and has not been 2 since.
    single: bool,
    /// Whether the window limited sending at the last opportunity.
    limited: bool,
    app_limited: bool,
    last_sent: Option<Time>,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    lost: u64,
}

impl<C: Controller> Sender<C> {
    /// Creates a sender at the start of a connection whose handshake took `rtt`.
    pub fn new(controller: C, kind: Kind, rtt: Span) -> Sender<C> {
        let path = Path {
            mss: MSS,
            srtt: Some(rtt),
            min_rtt: Some(rtt),
            rto: rtt + RTO_MARGIN,
            stack_rate: cc::StackRate::default(),
            paced: false,
            shrinks_idle: true,
            departure: Time::ZERO,
        };
        Sender {
            controller,
            kind,
            now: Time::ZERO + rtt,
            path,
            random: Random::seed_from_u64(1),
            log: Vec::new(),
            segments: VecDeque::new(),
            una: 0,
            in_flight: 0,
            phase: Phase::Open,
            high: 0,
            prior: None,
            timeouts: 0,
            single: false,
            limited: false,
            app_limited: false,
            last_sent: None,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            lost: 0,
        }
    }

    /// Returns the controller for inspection.
    pub fn controller(&self) -> &C {
        &self.controller
    }

    /// Returns the events emitted by the controller.
    pub fn log(&self) -> &[Event] {
        &self.log
    }

    fn next(&self) -> u64 {
        self.una + self.segments.len() as u64
    }

    /// Calls the controller and checks the invariants; returns the limits from before the call.
    fn call(&mut self, f: impl FnOnce(&mut C, &mut Ctx)) -> Limits {
        let before = self.controller.limits();
        let mut cx = Ctx { now: self.now, path: &self.path, random: &mut self.random, log: Some(&mut self.log) };
        f(&mut self.controller, &mut cx);
        let after = self.controller.limits();
        let reduces = matches!(self.phase, Phase::Cwr | Phase::Recovery);
        self.single = (self.single || reduces) && after.cwnd < 2;
        let least = if self.single { 1 } else { 2 };
        assert!((least..=MAX_CWND).contains(&after.cwnd), "window {} after {before:?}", after.cwnd);
        assert!((2..=INFINITE_SSTHRESH).contains(&after.ssthresh), "threshold {}", after.ssthresh);
        assert_ne!(after.pacing, Some(Rate::from_bits_per_sec(0)), "a rate of zero never sends");
        assert!(after.burst >= 1);
        before
    }

    /// Returns whether the window allows sending.
    pub fn may_send(&self) -> bool {
        self.in_flight < self.controller.limits().cwnd.min(MAX_FLIGHT)
    }

    /// Retransmits the first lost segment, or sends a new one; returns its number.
    pub fn send(&mut self) -> u64 {
        let idle = if self.in_flight == 0 { self.last_sent.map(|at| self.now - at) } else { None };
        if self.in_flight == 0 {
            (self.first_sent, self.delivered_at) = (self.now, self.now);
        }
        let segment = Segment {
            fate: Fate::InFlight,
            sent_at: self.now,
            retransmitted: false,
            app_limited: self.app_limited,
            delivered_then: self.delivered,
            delivered_at_then: self.delivered_at,
            first_sent_then: self.first_sent,
        };
        let again = self.segments.iter().position(|s| s.fate == Fate::Lost);
        let number = match again {
            Some(i) => {
                self.segments[i] = Segment { retransmitted: true, ..segment };
                self.una + i as u64
            }
            None => {
                self.segments.push_back(segment);
                self.next() - 1
            }
        };
        let sent = Sent {
            bytes: MSS,
            retransmission: again.is_some(),
            in_flight_before: self.in_flight,
            idle,
            blocked: false,
            app_limited: self.app_limited,
        };
        self.in_flight += 1;
        self.last_sent = Some(self.now);
        if let Some(rate) = self.controller.limits().pacing {
            self.path.departure = self.path.departure.max(self.now) + rate.time_for(units::Bytes::new(u64::from(MSS)));
        }
        self.call(|c, cx| c.on_sent(&sent, cx));
        number
    }

    /// Ends a burst: records what stopped it.
    pub fn sent_all(&mut self) {
        let Limits { cwnd, ssthresh, .. } = self.controller.limits();
        // Linux `tcp_is_cwnd_limited`: in slow start, using half of the window is sufficient.
        self.limited = self.in_flight >= cwnd || (cwnd < ssthresh && cwnd < 2 * self.in_flight);
        self.app_limited = self.in_flight < cwnd;
    }

    /// Processes an acknowledgement: `arrived` were delivered, and it reveals the loss of `lost`.
    pub fn acknowledge(&mut self, arrived: &[u64], lost: &[u64], ece: bool) {
        let prior_in_flight = self.in_flight;
        let mut ack = AckSample {
            acked: 0,
            delivered: 0,
            delivered_ce: u32::from(ece),
            lost: 0,
            prior_in_flight,
            in_flight: 0,
            advanced: false,
            cwnd_limited: self.limited,
            ece,
            phase: Phase::Open,
            rtt: None,
            una: 0,
            next: 0,
            rate: RateSample::default(),
        };
        let mut newest: Option<Segment> = None;
        for &number in arrived {
            let Some(segment) = self.segment(number).filter(|s| s.fate == Fate::InFlight) else { continue };
            segment.fate = Fate::Delivered;
            let segment = *segment;
            self.in_flight -= 1;
            ack.delivered += 1;
            if newest.is_none_or(|n| segment.delivered_then >= n.delivered_then) {
                newest = Some(segment);
            }
        }
        for &number in lost {
            if let Some(segment) = self.segment(number).filter(|s| s.fate == Fate::InFlight) {
                segment.fate = Fate::Lost;
                self.in_flight -= 1;
                ack.lost += 1;
            }
        }
        self.delivered += u64::from(ack.delivered);
        self.lost += u64::from(ack.lost);
        if let Some(segment) = newest {
            self.measure(&segment, &mut ack);
        }
        while self.segments.front().is_some_and(|s| s.fate == Fate::Delivered) {
            self.segments.pop_front();
            self.una += 1;
            ack.acked += 1;
        }
        ack.advanced = ack.acked > 0;
        if ack.advanced {
            self.timeouts = 0;
        }
        self.recover(ack.lost > 0, ece);
        ack.phase = self.phase;
        ack.in_flight = self.in_flight;
        (ack.una, ack.next) = (self.una * u64::from(MSS), self.next() * u64::from(MSS));
        ack.rate.total_delivered = self.delivered;
        ack.rate.total_lost = self.lost;
        let reducing_before = reducing(self.controller.state());
        let before = self.call(|c, cx| c.on_ack(&ack, cx));
        let after = self.controller.limits();
        let free = !reducing_before && !reducing(self.controller.state());
        if self.kind == Kind::Window && !ack.cwnd_limited && free {
            assert!(after.cwnd <= before.cwnd, "{before:?} grew to {after:?} though the window did not limit");
        }
    }

    /// Measures the round-trip time, by Karn's rule, and the delivery rate.
    fn measure(&mut self, segment: &Segment, ack: &mut AckSample) {
        if !segment.retransmitted {
            let rtt = self.now - segment.sent_at;
            ack.rtt = Some(rtt);
            let srtt = self.path.srtt.map_or(rtt, |srtt| (srtt * 7 + rtt) / 8);
            self.path.srtt = Some(srtt);
            self.path.min_rtt = self.path.min_rtt.map(|min| min.min(rtt)).or(Some(rtt));
            self.path.rto = srtt + RTO_MARGIN;
        }
        let sending = segment.sent_at.saturating_since(segment.first_sent_then);
        let interval = sending.max(self.now.saturating_since(segment.delivered_at_then));
        self.first_sent = segment.sent_at;
        self.delivered_at = self.now;
        ack.rate.prior_delivered = segment.delivered_then;
        ack.rate.app_limited = segment.app_limited;
        ack.rate.retransmitted = segment.retransmitted;
        if self.path.min_rtt.is_some_and(|min| interval >= min) {
            ack.rate.interval = interval;
            ack.rate.delivered = Some((self.delivered - segment.delivered_then) as u32);
        }
    }

    /// Advances loss recovery, and signals congestion to the controller.
    fn recover(&mut self, lost: bool, ece: bool) {
        if self.phase != Phase::Open && self.una >= self.high {
            self.phase = Phase::Open;
        }
        if lost && matches!(self.phase, Phase::Open | Phase::Cwr) {
            let within = self.phase == Phase::Cwr;
            self.react(Sign::Loss, within);
            self.phase = Phase::Recovery;
        } else if ece && self.phase == Phase::Open {
            self.react(Sign::Ecn, false);
            self.phase = Phase::Cwr;
        }
    }

    /// Signals congestion; if `within` an ongoing reduction, the controller must not reduce again.
    fn react(&mut self, sign: Sign, within: bool) {
        let lost = self.segments.iter().filter(|s| s.fate == Fate::Lost).count() as u32;
        let (una, next) = (self.una * u64::from(MSS), self.next() * u64::from(MSS));
        let congestion = Congestion { sign, in_flight: self.in_flight, lost, una, next, announced: false };
        let time_out = matches!(sign, Sign::Timeout { .. });
        self.single |= time_out;
        let ending = !within && reducing(self.controller.state());
        let mut before = self.call(|c, cx| c.on_congestion(&congestion, cx));
        if within {
            let ssthresh = self.controller.limits().ssthresh;
            assert_eq!(ssthresh, before.ssthresh, "{sign:?} in {:?}: a second reduction in one round trip", self.phase);
        }
        if ending {
            // This call ends the previous reduction, and only the controller knows at which window.
            (before.cwnd, before.ssthresh) = (2, 2);
        }
        if !within {
            self.prior = if sign == Sign::Ecn { None } else { Some(before) };
        } else if sign == Sign::Loss {
            self.prior = None;
        }
        // A loss in the CWR phase does not extend it.
        if !within || time_out {
            self.high = self.next();
        }
    }

    /// Fires the retransmission timer if it is armed.
    pub fn time_out(&mut self) {
        if self.segments.is_empty() {
            return;
        }
        for segment in &mut self.segments {
            if segment.fate == Fate::InFlight {
                segment.fate = Fate::Lost;
                self.lost += 1;
            }
        }
        self.in_flight = 0;
        let again = self.timeouts > 0;
        // After progress in Loss, the kernel does reduce again.
        let open = self.phase == Phase::Open || self.una >= self.high || (self.phase == Phase::Loss && !again);
        self.timeouts += 1;
        self.react(Sign::Timeout { again }, !open);
        self.phase = Phase::Loss;
    }

    /// Undoes the last reduction as spurious, if that is still possible.
    pub fn undo(&mut self) {
        let Some(prior) = self.prior.take().filter(|_| matches!(self.phase, Phase::Recovery | Phase::Loss)) else {
            return;
        };
        self.call(Controller::on_undo);
        self.phase = Phase::Open;
        // Nothing was lost: segments considered lost are in flight.
        for segment in &mut self.segments {
            if segment.fate == Fate::Lost {
                segment.fate = Fate::InFlight;
                self.in_flight += 1;
            }
        }
        let after = self.controller.limits();
        if self.kind == Kind::Window {
            assert!(after.cwnd >= prior.cwnd && after.ssthresh >= prior.ssthresh, "{prior:?} came back as {after:?}");
        }
    }

    fn segment(&mut self, number: u64) -> Option<&mut Segment> {
        self.segments.get_mut(usize::try_from(number.checked_sub(self.una)?).ok()?)
    }

    fn oldest_in_flight(&self, n: usize) -> Vec<u64> {
        let numbered = (self.una..).zip(&self.segments);
        numbered.filter(|(_, s)| s.fate == Fate::InFlight).map(|(number, _)| number).take(n).collect()
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Send(_) | Op::SendAll => {
                let offered = if let Op::Send(n) = op { u32::from(n) } else { u32::MAX };
                let mut sent = 0;
                while sent < offered && self.may_send() {
                    self.send();
                    sent += 1;
                }
                self.sent_all();
            }
            Op::Deliver(n) => {
                let arrived = self.oldest_in_flight(usize::from(n));
                self.acknowledge(&arrived, &[], false);
            }
            Op::DeliverAll => {
                for number in self.oldest_in_flight(usize::MAX) {
                    self.now += Span::from_micros(100);
                    self.acknowledge(&[number], &[], false);
                }
            }
            Op::Lose(n) => {
                let oldest = self.oldest_in_flight(usize::from(n) + 1);
                if let Some((arrived, lost)) = oldest.split_last() {
                    self.acknowledge(&[*arrived], lost, false);
                }
            }
            Op::Mark => {
                let arrived = self.oldest_in_flight(1);
                if !arrived.is_empty() {
                    self.acknowledge(&arrived, &[], true);
                }
            }
            Op::Timeout => self.time_out(),
            Op::Undo => self.undo(),
            Op::Wait(ms) => self.now += Span::from_millis(u64::from(ms)),
        }
    }
}

/// Returns whether the window in this state is determined by the reduction alone.
fn reducing(state: &str) -> bool {
    matches!(state, "recovery" | "cwr")
}

/// Executes a list of operations on a sender with `new()`'s controller, twice, checking invariants after every call,
/// and that both executions give the same limits after every operation.
pub fn run_operations<C: Controller>(new: impl Fn() -> C, kind: Kind, ops: &[Op]) {
    let run = || -> Vec<Limits> {
        let mut sender = Sender::new(new(), kind, Span::from_millis(20));
        let step = |&op: &Op| {
            sender.apply(op);
            sender.controller.limits()
        };
        ops.iter().map(step).collect()
    };
    assert_eq!(run(), run(), "equal inputs gave different outputs");
}

/// A path: all segments pass a queue with a constant rate, and are acknowledged on arrival.
#[derive(Clone, Debug)]
pub struct PathModel {
    /// The round-trip time without queueing.
    pub rtt: Span,
    /// Service time of a segment.
    pub per_segment: Span,
    /// Capacity of the queue in segments.
    pub buffer: u32,
    /// Rounds, counted from 1, whose first segment is lost.
    pub losses: Vec<usize>,
    /// Number of rounds to run.
    pub rounds: usize,
}

/// The limits at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// The time.
    pub at: Time,
    /// The window.
    pub cwnd: u32,
    /// The controller's state.
    pub state: &'static str,
    /// Segments lost so far.
    pub lost: u64,
}

/// Runs a sender with unlimited data on a path, and returns its window at the end of each round: when the segment that
/// was next to be sent at the end of the previous round is acknowledged.
pub fn run_path<C: Controller>(controller: C, kind: Kind, model: &PathModel) -> Vec<Round> {
    let mut sender = Sender::new(controller, kind, model.rtt);
    let mut queue_free = Time::ZERO;
    let mut paced_until = Time::ZERO;
    // Arrivals in order, and drops with the number of arrivals that will reveal them.
    let mut arrivals: VecDeque<(Time, u64)> = VecDeque::new();
    let mut dropped: Vec<(u64, usize)> = Vec::new();
    let mut rounds = Vec::new();
    let mut round_end = 0;
    let mut lose_next = model.losses.contains(&1);
    let mut steps = 0_u32;
    while rounds.len() < model.rounds {
        steps += 1;
        assert!(steps < 5_000_000, "the sender makes no progress after {} rounds", rounds.len());
        while sender.may_send() && sender.now >= paced_until {
            let number = sender.send();
            let waiting = queue_free.saturating_since(sender.now).as_nanos() / model.per_segment.as_nanos();
            if core::mem::take(&mut lose_next) || waiting >= u64::from(model.buffer) {
                // It is detected when three later segments have arrived.
                dropped.push((number, arrivals.len() + 3));
            } else {
                queue_free = queue_free.max(sender.now) + model.per_segment;
                arrivals.push_back((queue_free + model.rtt, number));
            }
            if let Some(rate) = sender.controller.limits().pacing {
                paced_until = paced_until.max(sender.now) + rate.time_for(cc::window(1, MSS));
            }
        }
        if !sender.may_send() {
            sender.sent_all();
        }
        let next_arrival = arrivals.front().map(|&(at, _)| at);
        if sender.may_send() && next_arrival.is_none_or(|at| paced_until < at) {
            sender.now = paced_until;
            continue;
        }
        let Some((at, number)) = arrivals.pop_front() else {
            // Everything in flight was dropped.
            sender.now += sender.path.rto;
            dropped.clear();
            sender.time_out();
            continue;
        };
        sender.now = at;
        let mut lost = Vec::new();
        dropped.retain_mut(|(number, later)| {
            *later -= 1;
            if *later == 0 {
                lost.push(*number);
            }
            *later > 0
        });
        sender.acknowledge(&[number], &lost, false);
        if sender.una > round_end {
            round_end = sender.next();
            let Limits { cwnd, .. } = sender.controller.limits();
            rounds.push(Round { at, cwnd, state: sender.controller.state(), lost: sender.lost });
            lose_next |= model.losses.contains(&(rounds.len() + 1));
        }
    }
    rounds
}
