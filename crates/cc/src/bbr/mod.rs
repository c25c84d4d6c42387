//! BBR, version 1: models the path by its bandwidth and its minimum RTT, and controls rate and data in flight
//! accordingly.
//!
//! Source: N. Cardwell et al., "BBR: congestion-based congestion control" (ACM Queue 14(5), 2016);
//! draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.1 `tcp_bbr.c`, whose fixed-point arithmetic is used here.
//!
//! ```text
//!            pipe full              in flight <= pipe
//! startup ---------------> drain ----------------------> probe-bw <--+
//!    |                                                      |        |
//!    +----------- minimum RTT older than 10 s --------------+--> probe-rtt
//! ```
//!
//! Deviations from Linux:
//! 1. Times are exact, not in ticks of 1..4 ms or whole milliseconds.
//! 2. The controller itself records which segments were limited by `ProbeRTT`, instead of marking them in the endpoint.
//! 3. Of Linux 4.9 ([`Version::Linux4_9`]), what is said there; the rest is as in 6.1.
//! 4. Connections are initialized at their first event: the constructor needs no path.

mod aggregation;
mod bandwidth;
mod drain;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;
mod state;
#[cfg(test)]
mod tests;

use crate::loss_based::{MAX_CWND, micros};
use crate::{
    AckSample, Congestion, Controller, Ctx, Event, INFINITE_SSTHRESH, INITIAL_WINDOW, Limits, Path, Phase, Sent, Sign,
};
use aggregation::Aggregation;
use bandwidth::{Bandwidth, MaxFilter, UNIT};
use policer::{Observation, Policer, Totals, Verdict};
use startup::FullPipe;
pub use state::{Bbr, Parameters, Version};
use state::{CWND_GAIN, DRAIN_GAIN, MIN_CWND, Mode, SelfLimited, cycle_gain};
use units::{Rate, Span, Time};

/// The bandwidth is the maximum over this many rounds: a cycle of probing and two more.
const BW_ROUNDS: u32 = 10;
/// The RTT assumed before there is a sample, in microseconds.
const NOMINAL_RTT: u32 = 1_000;
/// Below this pacing rate, in bytes per second, single segments may be sent: 1.2 Mbit/s (`bbr_min_tso_segs`).
const MIN_BURST_RATE: u64 = 1_200_000 / 8;
/// The window includes bursts of 2^-10 s at the pacing rate, at most the size that a host hands over at once (64 KiB
/// less headers), and at most 127 segments (`bbr_tso_segs_goal`). The actual bursts are the endpoint's, and longer if
/// the round-trip time is short.
const BURST_SHIFT: u32 = 10;
const MAX_BURST_BYTES: u64 = 65_535 - 320;
const MAX_BURST: u64 = 0x7f;

impl Bbr {
    /// Creates BBR as in Linux 6.1 with an initial window in segments.
    pub fn new(initial_window: u32) -> Bbr {
        Bbr::of(Version::Linux6_1, initial_window)
    }

    /// Creates BBR as in a version of Linux with an initial window in segments.
    pub fn of(version: Version, initial_window: u32) -> Bbr {
        Bbr {
            version,
            mode: Mode::Startup,
            cwnd: initial_window.clamp(1, MAX_CWND),
            prior_cwnd: 0,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: 0,
            burst: 1,
            least_burst: 1,
            pacing_gain: startup::HIGH_GAIN,
            cwnd_gain: startup::HIGH_GAIN,
            max_bw: MaxFilter::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            full_pipe: FullPipe::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            rounds: 0,
            round_ends: 0,
            round_start: false,
            phase: Phase::Open,
            conserving: false,
            idle_restart: false,
            self_limited: SelfLimited::default(),
            started: false,
            has_seen_rtt: false,
            delivered: 0,
            lost: 0,
            delivered_at: Time::ZERO,
        }
    }

    #[cold]
    fn start(&mut self, cx: &Ctx) {
        self.started = true;
        self.min_rtt = cx.path.min_rtt.map(micros);
        self.min_rtt_at = cx.now;
        self.aggregation.restart(cx.now);
        self.init_pacing(cx.path);
    }

    /// Paces the first window over one RTT at startup's gain.
    fn init_pacing(&mut self, path: &Path) {
        self.has_seen_rtt = path.srtt.is_some();
        let rtt = path.srtt.map_or(NOMINAL_RTT, |srtt| micros(srtt).max(1));
        let bw = Bandwidth::over(u64::from(self.cwnd), Span::from_micros(u64::from(rtt)));
        self.set_rate(bw.pacing(path.mss, startup::HIGH_GAIN), path.mss);
    }

    fn set_rate(&mut self, rate: u64, mss: u32) {
        if rate != self.pacing_rate {
            self.pacing_rate = rate;
            let bytes = (rate >> BURST_SHIFT).min(MAX_BURST_BYTES);
            self.least_burst = if rate < MIN_BURST_RATE { 1 } else { 2 };
            self.burst = (bytes / u64::from(mss.max(1))).clamp(u64::from(self.least_burst), MAX_BURST) as u32;
        }
    }

    fn update_pacing(&mut self, gain: u32, path: &Path) {
        let rate = self.bandwidth().pacing(path.mss, gain);
        if !self.has_seen_rtt && path.srtt.is_some() {
            self.init_pacing(path);
        }
        // Until the pipe is full, the estimate lags behind.
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.set_rate(rate, path.mss);
        }
    }

    /// Returns the bandwidth in use: the policer's if one was detected.
    #[inline]
    fn bandwidth(&self) -> Bandwidth {
        self.policer.rate().unwrap_or(self.max_bw.get())
    }

    /// Returns the pipe times a gain, in segments.
    fn pipe(&self, bw: Bandwidth, gain: u32) -> u32 {
        self.min_rtt.map_or(INITIAL_WINDOW, |rtt| bw.pipe(rtt, gain))
    }

    /// Adds room for the bursts at both ends, rounded up to an even number for delayed acknowledgements, and two
    /// segments more so that probing is effective in a small pipe.
    fn with_bursts(&self, segments: u32) -> u32 {
        let even = segments.saturating_add(3 * self.burst).saturating_add(1) & !1;
        even.saturating_add(if matches!(self.mode, Mode::ProbeBw { phase: 0, .. }) { 2 } else { 0 })
    }

    /// Returns the target of data in flight at a gain.
    fn inflight_target(&self, bw: Bandwidth, gain: u32) -> u32 {
        self.with_bursts(self.pipe(bw, gain))
    }

    /// Returns how much of `in_flight` will be in the network when the next segment departs, without what pacing holds
    /// back.
    fn in_network_at_departure(&self, in_flight: u32, cx: &Ctx) -> u32 {
        let wait = cx.path.departure.saturating_since(cx.now);
        let delivered = self.bandwidth().segments_in(wait);
        let then = in_flight + if self.pacing_gain > UNIT { self.burst } else { 0 };
        u64::from(then).saturating_sub(delivered) as u32
    }

    /// Changes the mode; all transitions happen here.
    fn transition_to(&mut self, mode: Mode, cx: &mut Ctx) {
        self.mode = mode;
        let state = self.state();
        cx.emit(|| Event::State(state));
    }

    fn totals(&self) -> Totals {
        Totals { at: self.delivered_at, delivered: self.delivered, lost: self.lost }
    }

    fn observe_policer(&mut self, lost: bool, app_limited: bool, cx: &mut Ctx) {
        let seen = Observation {
            totals: self.totals(),
            lost,
            app_limited,
            round_start: self.round_start,
            probe_bw: matches!(self.mode, Mode::ProbeBw { .. }),
            mss: cx.path.mss,
        };
        match self.policer.observe(seen) {
            Verdict::Same => {}
            Verdict::Policed => self.pacing_gain = UNIT,
            Verdict::Expired => self.start_probe_bw(cx),
        }
    }

    /// Updates rounds, policer and bandwidth from the delivery rate; returns whether the sample is valid.
    #[inline]
    fn update_bandwidth(&mut self, ack: &AckSample, app_limited: bool, cx: &mut Ctx) -> bool {
        self.round_start = false;
        let Some(delivered) = ack.rate.delivered.filter(|_| ack.rate.interval > Span::ZERO) else { return false };
        if ack.rate.prior_delivered >= self.round_ends {
            self.round_ends = self.delivered;
            self.rounds = self.rounds.wrapping_add(1);
            self.round_start = true;
            self.conserving = false;
        }
        self.observe_policer(ack.lost > 0, app_limited, cx);
        let bw = Bandwidth::over(u64::from(delivered), ack.rate.interval);
        // An application-limited sample underestimates the path.
        if !app_limited || bw >= self.max_bw.get() {
            self.max_bw.update(BW_ROUNDS, self.rounds, bw);
        }
        true
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (startup::HIGH_GAIN, startup::HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, startup::HIGH_GAIN),
            Mode::ProbeBw { .. } if self.policer.rate().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw { phase, .. } => (cycle_gain(phase), CWND_GAIN),
            Mode::ProbeRtt { .. } => (UNIT, UNIT),
        };
    }

    /// Saves the window for restoration after a reduction.
    fn save_cwnd(&mut self) {
        if recovering(self.phase) || matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
        } else {
            self.prior_cwnd = self.cwnd;
        }
    }

    /// Returns the window according to loss recovery; `None` if packet conservation alone determines it.
    fn recover_or_restore(&mut self, ack: &AckSample) -> Option<u32> {
        let before = core::mem::replace(&mut self.phase, ack.phase);
        let mut cwnd = self.cwnd;
        if ack.lost > 0 {
            cwnd = cwnd.saturating_sub(ack.lost).max(1);
        }
        let conserved = ack.in_flight + ack.delivered;
        if ack.phase == Phase::Recovery && before != Phase::Recovery {
            self.conserving = true;
            self.round_ends = self.delivered;
            cwnd = conserved;
        } else if recovering(before) && !recovering(ack.phase) {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        if self.conserving {
            self.cwnd = cwnd.max(conserved).max(1);
            return None;
        }
        Some(cwnd)
    }

    fn update_cwnd(&mut self, ack: &AckSample) {
        if ack.delivered > 0
            && let Some(cwnd) = self.recover_or_restore(ack)
        {
            let bw = self.bandwidth();
            let allows = self.full_pipe.reached && self.version == Version::Linux6_1;
            let aggregated = if allows { self.aggregation.allowance(bw) } else { 0 };
            let target = self.with_bursts(self.pipe(bw, self.cwnd_gain).saturating_add(aggregated));
            let grown = cwnd.saturating_add(ack.delivered);
            self.cwnd = if self.full_pipe.reached {
                grown.min(target)
            } else if cwnd < target || self.delivered < u64::from(INITIAL_WINDOW) {
                grown
            } else {
                cwnd
            };
            self.cwnd = self.cwnd.max(MIN_CWND);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
        self.cwnd = self.cwnd.min(MAX_CWND);
    }
}

/// Returns whether losses are being recovered.
fn recovering(phase: Phase) -> bool {
    matches!(phase, Phase::Recovery | Phase::Loss)
}

impl Controller for Bbr {
    #[inline]
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx) {
        if !self.started {
            self.start(cx);
        }
        if sent.idle.is_some() && (sent.app_limited || self.self_limited.covers(self.delivered)) {
            self.idle_restart = true;
            self.aggregation.restart(cx.now);
            // The queue is empty: the estimated rate suffices.
            match self.mode {
                Mode::ProbeBw { .. } => self.update_pacing(UNIT, cx.path),
                Mode::ProbeRtt { .. } => self.probe_rtt_after_idle(cx),
                Mode::Startup | Mode::Drain => {}
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx) {
        if !self.started {
            self.start(cx);
        }
        self.delivered = ack.rate.total_delivered;
        self.lost = ack.rate.total_lost;
        if ack.delivered > 0 {
            self.delivered_at = cx.now;
        }
        let app_limited = ack.rate.app_limited || self.self_limited.covers(ack.rate.prior_delivered);
        let valid = self.update_bandwidth(ack, app_limited, cx);
        if valid && ack.delivered > 0 {
            let bw = self.bandwidth();
            self.aggregation.update(ack.delivered, self.round_start, bw, self.cwnd, self.delivered_at);
        }
        self.advance_cycle(ack, cx);
        if self.round_start && !app_limited {
            self.full_pipe.on_round(self.max_bw.get());
        }
        self.check_drain(ack.in_flight, cx);
        self.update_min_rtt(ack, cx);
        self.update_gains();
        self.update_pacing(self.pacing_gain, cx.path);
        self.update_cwnd(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        self.save_cwnd();
        if let Sign::Timeout { .. } = congestion.sign {
            self.cwnd = (congestion.in_flight + 1).min(MAX_CWND);
            self.phase = Phase::Loss;
            self.full_pipe.on_timeout();
            // A timeout counts as the end of a round.
            self.round_start = true;
            self.observe_policer(true, false, cx);
        }
    }

    fn on_undo(&mut self, _cx: &mut Ctx) {
        self.full_pipe.on_undo();
        self.policer.reset(self.totals());
    }

    /// Slow start may double the window in a round trip, and recovery needs a window more (`bbr_sndbuf_expand`).
    fn buffered_windows(&self) -> u32 {
        3
    }

    #[inline]
    fn limits(&self) -> Limits {
        // Without an estimate there is no pacing rate.
        let pacing = (self.pacing_rate > 0).then(|| Rate::from_bits_per_sec(self.pacing_rate.saturating_mul(8)));
        Limits { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing, burst: self.least_burst }
    }

    fn name(&self) -> &'static str {
        "bbr"
    }

    fn state(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw { .. } => "probe-bw",
            Mode::ProbeRtt { .. } => "probe-rtt",
        }
    }
}
