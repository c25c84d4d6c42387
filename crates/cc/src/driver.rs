//! A test driver that describes events at a sender in segments.

use crate::{AckSample, Congestion, Controller, Ctx, Event, Limits, Path, Phase, Random, RateSample, Sent, Sign};
use rand_core::SeedableRng;
use units::{Span, Time};

/// Payload bytes of a segment: a round number for manual calculation.
pub(crate) const MSS: u32 = 1000;

pub(crate) struct Driver<C> {
    pub(crate) c: C,
    pub(crate) now: Time,
    pub(crate) path: Path,
    pub(crate) log: Vec<Event>,
    random: Random,
    una: u64,
    next: u64,
    /// The contents of the next acknowledgements; counts and sequence numbers are filled in.
    pub(crate) ack: AckSample,
    pub(crate) lost: u64,
    pub(crate) delivered: u64,
}

impl<C: Controller> Driver<C> {
    pub(crate) fn new(c: C) -> Driver<C> {
        let ack = AckSample {
            acked: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            prior_in_flight: 0,
            in_flight: 0,
            advanced: true,
            cwnd_limited: true,
            ece: false,
            phase: Phase::Open,
            rtt: None,
            una: 0,
            next: 0,
            rate: RateSample::default(),
        };
        let path = Path {
            mss: MSS,
            srtt: None,
            min_rtt: None,
            rto: Span::from_millis(250),
            stack_rate: crate::StackRate::default(),
            paced: false,
            shrinks_idle: true,
            departure: Time::ZERO,
        };
        let random = Random::seed_from_u64(7);
        let now = Time::from_nanos(1_000_000_000);
        Driver { c, now, path, log: Vec::new(), random, una: 0, next: 0, ack, lost: 0, delivered: 0 }
    }

    pub(crate) fn call<T>(&mut self, f: impl FnOnce(&mut C, &mut Ctx) -> T) -> T {
        let mut cx = Ctx { now: self.now, path: &self.path, random: &mut self.random, log: Some(&mut self.log) };
        f(&mut self.c, &mut cx)
    }

    pub(crate) fn wait(&mut self, span: Span) {
        self.now += span;
    }

    pub(crate) fn wait_ms(&mut self, ms: u64) {
        self.wait(Span::from_millis(ms));
    }

    /// Sends as many segments as the window allows.
    pub(crate) fn fill(&mut self) {
        let window = u64::from(self.limits().cwnd) * u64::from(MSS);
        self.next = self.next.max(self.una + window);
    }

    /// Sends one segment with `in_flight_before` segments in flight.
    pub(crate) fn send(&mut self, in_flight_before: u32, idle: Option<Span>) {
        let app_limited = idle.is_some();
        let blocked = false;
        let sent = Sent { bytes: MSS, retransmission: false, in_flight_before, idle, blocked, app_limited };
        self.call(|c, cx| c.on_sent(&sent, cx));
    }

    /// Cumulatively acknowledges `n` segments, possibly 0; `self.ack` has the other fields.
    pub(crate) fn acked(&mut self, n: u32) {
        self.una += u64::from(n) * u64::from(MSS);
        self.next = self.next.max(self.una);
        self.delivered += u64::from(n);
        let mut ack = self.ack.clone();
        (ack.acked, ack.delivered, ack.advanced) = (n, n, n > 0);
        self.deliver(&mut ack);
    }

    /// Selectively acknowledges `n` segments.
    pub(crate) fn sacked(&mut self, n: u32) {
        self.delivered += u64::from(n);
        let mut ack = self.ack.clone();
        (ack.acked, ack.delivered, ack.advanced) = (0, n, false);
        self.deliver(&mut ack);
    }

    fn deliver(&mut self, ack: &mut AckSample) {
        (ack.una, ack.next) = (self.una, self.next);
        self.lost += u64::from(ack.lost);
        (ack.rate.total_delivered, ack.rate.total_lost) = (self.delivered, self.lost);
        self.call(|c, cx| c.on_ack(ack, cx));
    }

    /// Like `acked`, with one acknowledgement per segment at the same time.
    pub(crate) fn acked_singly(&mut self, n: u32) {
        for _ in 0..n {
            self.acked(1);
        }
    }

    pub(crate) fn react(&mut self, sign: Sign, in_flight: u32) {
        let congestion = Congestion { sign, in_flight, lost: 1, una: self.una, next: self.next, announced: false };
        self.call(|c, cx| c.on_congestion(&congestion, cx));
    }

    pub(crate) fn undo(&mut self) {
        self.call(super::Controller::on_undo);
    }

    /// A loss, a round of recovery in which the flight falls to the threshold, and its end.
    pub(crate) fn lose_and_recover(&mut self) {
        self.fill();
        self.react(Sign::Loss, self.limits().cwnd);
        self.ack.phase = Phase::Recovery;
        self.ack.in_flight = self.limits().ssthresh;
        self.sacked(1);
        self.una = self.next;
        self.ack.phase = Phase::Open;
        // The last acknowledgement delivers nothing, so that nothing grows yet.
        self.acked(0);
    }

    /// Returns SND.UNA and SND.NXT.
    pub(crate) fn sequence(&self) -> (u64, u64) {
        (self.una, self.next)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.c.limits()
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.limits().cwnd
    }

    pub(crate) fn ssthresh(&self) -> u32 {
        self.limits().ssthresh
    }
}
