//! The common part of window-based controllers that react to loss: the window, its reduction and its restoration.
//!
//! [`LossBased`] owns the window and does what the kernel's TCP core does around a congestion control module;
//! [`Growth`] is the module: it determines the reduction and the growth. A `Growth` works on any [`Window`], so that
//! one controller can have several.
//!
//! Source: Linux 6.1 `tcp_input.c` (`tcp_cong_control`, `tcp_init_cwnd_reduction`, `tcp_cwnd_reduction`,
//! `tcp_end_cwnd_reduction`, `tcp_enter_loss`, `tcp_undo_cwnd_reduction`), `tcp_output.c` (`tcp_cwnd_restart`,
//! `tcp_cwnd_validate`, `tcp_cwnd_application_limited`) and `tcp_cong.c` (`tcp_slow_start`, `tcp_cong_avoid_ai`);
//! RFC 5681, RFC 6937 (through `prr.rs`) and RFC 2861.
//!
//! Deviations from Linux:
//! 1. The window is at most [`MAX_CWND`], which exceeds what the receive window can allow.
//! 2. For every controller, growth stops while the window does not limit sending; Linux leaves this to each module, and
//!    Vegas lacks it.
//! 3. The window in use (RFC 2861) is recorded for each segment, not once per burst.
//! 4. A retransmission that is lost again after a timeout, before the data sent by then is acknowledged, does not
//!    reduce the window a second time.

use crate::prr::{Delivery, Prr};
use crate::{AckSample, Congestion, Controller, Ctx, Event, ExitCause, INFINITE_SSTHRESH, Limits, Phase, Sent, Sign};
use units::{Span, Time};

/// The maximum window in segments: 1 GiB (RFC 7323's largest receive window) in 512-byte segments. Below it, 32-bit
/// integer arithmetic with 1024ths is exact.
pub const MAX_CWND: u32 = 1 << 21;

/// The minimum number of segments sent back to back when the stack paces (Linux `tcp_min_tso_segs`).
const STACK_BURST: u32 = 2;

/// A congestion window and its threshold, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The window: 1 or more, at most [`MAX_CWND`].
    pub cwnd: u32,
    /// The threshold below which the window grows by slow start.
    pub ssthresh: u32,
    /// Acknowledged segments not yet counted as growth (Linux `snd_cwnd_cnt`).
    pub credit: u32,
}

impl Window {
    /// Creates a window for the start of a connection, without a threshold.
    pub fn new(initial_window: u32) -> Window {
        Window { cwnd: initial_window.clamp(1, MAX_CWND), ssthresh: INFINITE_SSTHRESH, credit: 0 }
    }

    /// Returns whether the window is in slow start.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by one segment per acknowledged segment, up to the threshold; returns the acknowledged segments left over.
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        if !self.in_slow_start() {
            return acked;
        }
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.set(grown);
        left
    }

    /// Grows by one segment for each `per` acknowledged segments.
    #[inline]
    pub fn grow_one_per(&mut self, per: u32, acked: u32) {
        // Credit that was gathered when growth cost more is good for one segment, not for several at once.
        if self.credit >= per {
            self.credit = 0;
            self.increment();
        }
        self.credit = self.credit.saturating_add(acked);
        if self.credit >= per {
            let more = self.credit / per;
            self.credit -= more * per;
            self.set(self.cwnd.saturating_add(more));
        }
    }

    /// Grows by one segment.
    #[inline]
    pub fn increment(&mut self) {
        self.set(self.cwnd.saturating_add(1));
    }

    /// Returns the threshold that records the window in use before it shrinks for lack of use (Linux
    /// `tcp_current_ssthresh`).
    pub fn remembered_ssthresh(&self) -> u32 {
        self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
    }

    #[inline]
    fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.min(MAX_CWND);
    }
}

/// Growth and reduction of a window: the part in which loss-based controllers differ.
///
/// For each acknowledgement, `on_ack` is called first, then `grow` only if SND.UNA advanced, the window limited sending
/// and no reduction is in progress.
pub trait Growth {
    /// The controller's name, as in scenarios and `sysctl`.
    const NAME: &'static str;

    /// Returns the slow-start threshold for a reduction due to `sign`, at least 2; called once for each reduction.
    fn reduce(&mut self, window: &Window, sign: Sign, cx: &mut Ctx) -> u32;

    /// Grows in congestion avoidance: `acked` segments were delivered at or above the threshold.
    fn avoid(&mut self, window: &mut Window, acked: u32, ack: &AckSample, cx: &mut Ctx);

    /// Grows by `acked` delivered segments: slow start and, with the remainder, [`avoid`](Growth::avoid). Overridden by
    /// controllers with their own slow start.
    #[inline]
    fn grow(&mut self, window: &mut Window, acked: u32, ack: &AckSample, cx: &mut Ctx) {
        let left = window.slow_start(acked);
        if left > 0 {
            self.avoid(window, left, ack, cx);
        }
    }

    /// Called for every acknowledgement in any phase: round-trip samples, rate estimates, exits from slow start.
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample, cx: &mut Ctx) {
        let _ = (window, ack, cx);
    }

    /// Called when loss recovery changes to `phase`; also for each timeout. `next` is SND.NXT.
    fn on_phase(&mut self, phase: Phase, next: u64, cx: &mut Ctx) {
        let _ = (phase, next, cx);
    }

    /// Called when a reduction that was not undone is complete and the window is at the threshold.
    fn on_recovered(&mut self, window: &mut Window, cx: &mut Ctx) {
        let _ = (window, cx);
    }

    /// Called when data is sent with nothing in flight, `idle` after the last segment.
    fn on_restart(&mut self, idle: Span, cx: &mut Ctx) {
        let _ = (idle, cx);
    }
}

/// A window and threshold to restore.
#[derive(Clone, Copy, Debug)]
struct Prior {
    cwnd: u32,
    ssthresh: u32,
}

/// A loss-based controller: the common window logic around a [`Growth`].
#[derive(Clone, Debug)]
pub struct LossBased<G> {
    window: Window,
    growth: G,
    phase: Phase,
    initial_window: u32,
    prr: Prr,
    /// The values that an undo restores; `None` if the last reduction cannot be undone or already was.
    prior: Option<Prior>,
    /// Whether the current reduction was undone: its end must not lower the window to the threshold.
    undone: bool,
    /// SND.NXT at the last reduction, which is over once this is acknowledged.
    high: u64,
    /// Maximum number of segments in flight since `used_since`, while the window did not limit sending.
    used: u32,
    used_since: Time,
}

impl<G: Growth> LossBased<G> {
    /// Creates a controller with an initial window of `initial_window` segments.
    pub fn with_growth(growth: G, initial_window: u32) -> LossBased<G> {
        let window = Window::new(initial_window);
        LossBased {
            window,
            growth,
            phase: Phase::Open,
            initial_window: window.cwnd,
            prr: Prr::default(),
            prior: None,
            undone: false,
            high: 0,
            used: 0,
            used_since: Time::ZERO,
        }
    }

    /// Returns the growth policy.
    pub fn growth(&self) -> &G {
        &self.growth
    }

    /// Returns the window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the growth policy for modification.
    pub(crate) fn growth_mut(&mut self) -> &mut G {
        &mut self.growth
    }

    /// Lowers the window to `cwnd`, at least 2, if it is larger. Growth then continues from there.
    pub(crate) fn lower_to(&mut self, cwnd: u32) {
        self.window.cwnd = self.window.cwnd.min(cwnd.max(2));
    }

    /// Lowers window and threshold at once by the module's reduction, outside any loss recovery; ends a reduction in
    /// progress. It cannot be undone. `next` is SND.NXT.
    pub(crate) fn decrease(&mut self, next: u64, cx: &mut Ctx) {
        if self.reducing() {
            self.end_reduction(cx);
            self.enter(Phase::Open, next, cx);
        }
        self.prior = None;
        self.reduce(Sign::Loss, cx);
        self.window.cwnd = self.window.ssthresh.min(self.window.cwnd);
    }

    /// Returns whether a reduction is in progress.
    pub(crate) fn reducing(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    /// Returns whether a reduction that is neither over nor undone covers a loss or mark at `una`.
    fn reacting(&self, una: u64) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Disorder) && !self.undone && una < self.high
    }

    fn enter(&mut self, phase: Phase, next: u64, cx: &mut Ctx) {
        if phase != self.phase {
            self.phase = phase;
            let state = self.state();
            cx.emit(|| Event::State(state));
        }
        self.growth.on_phase(phase, next, cx);
    }

    /// Lowers the threshold; the window follows by PRR or, at a timeout, at once.
    fn reduce(&mut self, sign: Sign, cx: &mut Ctx) {
        let before = self.window;
        self.window.ssthresh = self.growth.reduce(&before, sign, cx).max(2);
        self.window.credit = 0;
        self.undone = false;
        if before.in_slow_start() {
            cx.emit(|| Event::SlowStartExit { cause: ExitCause::Congestion, cwnd: before.cwnd });
        }
    }

    fn end_reduction(&mut self, cx: &mut Ctx) {
        if !self.undone {
            self.window.cwnd = self.window.ssthresh.min(MAX_CWND);
            self.growth.on_recovered(&mut self.window, cx);
        }
    }

    /// Restarts after nothing was in flight and the last segment was sent `idle` ago. A pause of the application makes
    /// the window stale (RFC 2861 section 3.1, RFC 5681 section 4.1); waiting for the retransmission timer does not.
    #[cold]
    fn restart(&mut self, idle: Span, retransmission: bool, cx: &mut Ctx) {
        self.growth.on_restart(idle, cx);
        let rto = cx.path.rto;
        let over = !retransmission && self.phase != Phase::Loss;
        if cx.path.shrinks_idle && over && idle > rto && rto > Span::ZERO {
            self.window.ssthresh = self.window.remembered_ssthresh();
            let floor = self.initial_window.min(self.window.cwnd);
            let periods = (idle.as_nanos() - 1) / rto.as_nanos();
            self.window.cwnd = (self.window.cwnd >> periods.min(31)).max(floor);
            self.used = 0;
            self.used_since = cx.now;
        }
    }

    /// Shrinks a window that was not used for an RTO and so was not validated (RFC 2861 section 3.2). A sender whose
    /// application always has data keeps its window, whatever else limits it (Linux checks `SOCK_NOSPACE`).
    #[cold]
    fn validate(&mut self, blocked: bool, now: Time) {
        if self.phase == Phase::Open && !blocked {
            let used = self.used.max(self.initial_window);
            if used < self.window.cwnd {
                self.window.ssthresh = self.window.remembered_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) >> 1;
            }
            self.used = 0;
        }
        self.used_since = now;
    }

    /// Returns whether `in_flight` segments fill the window (Linux `tcp_is_cwnd_limited`: half of it in slow start).
    fn fills_window(&self, in_flight: u32) -> bool {
        in_flight >= self.window.cwnd || (self.window.in_slow_start() && self.window.cwnd < in_flight.saturating_mul(2))
    }
}

impl<G: Growth> Controller for LossBased<G> {
    #[inline]
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx) {
        if self.reducing() {
            self.prr.on_sent();
        }
        if let Some(idle) = sent.idle {
            self.restart(idle, sent.retransmission, cx);
        }
        let in_flight = sent.in_flight_before + 1;
        if self.fills_window(in_flight) {
            self.used = 0;
            self.used_since = cx.now;
        } else {
            self.used = self.used.max(in_flight);
            if cx.path.shrinks_idle && cx.now.saturating_since(self.used_since) >= cx.path.rto {
                self.validate(sent.blocked, cx.now);
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx) {
        self.growth.on_ack(&mut self.window, ack, cx);
        if ack.phase != self.phase {
            if self.reducing() && !matches!(ack.phase, Phase::Cwr | Phase::Recovery) {
                self.end_reduction(cx);
            }
            self.enter(ack.phase, ack.next, cx);
        }
        if ack.cwnd_limited {
            self.used = 0;
            self.used_since = cx.now;
        }
        if self.reducing() {
            let &AckSample { delivered, lost, in_flight, advanced, .. } = ack;
            let delivery = Delivery { delivered, lost, in_flight, advanced };
            if let Some(count) = self.prr.on_ack(delivery, self.window.ssthresh) {
                self.window.cwnd = (in_flight + count).clamp(1, MAX_CWND);
            }
        } else if ack.advanced && ack.cwnd_limited {
            self.growth.grow(&mut self.window, ack.delivered, ack, cx);
        }
    }

    fn begin_at(&mut self, ssthresh: u32) {
        self.window.ssthresh = ssthresh.max(2);
    }

    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        let reacting = self.reacting(congestion.una);
        match congestion.sign {
            Sign::Loss | Sign::Ecn => {
                let ecn = congestion.sign == Sign::Ecn;
                // A loss in a CWR phase continues its reduction, and a mark during any reduction has no effect.
                if reacting {
                    self.prior = None;
                    if !ecn {
                        self.enter(Phase::Recovery, congestion.next, cx);
                    }
                    return;
                }
                if self.reducing() {
                    self.end_reduction(cx);
                }
                // The kernel does not undo a reduction caused by a mark.
                let prior = Prior { cwnd: self.window.cwnd, ssthresh: self.window.remembered_ssthresh() };
                self.prior = if ecn { None } else { Some(prior) };
                self.prr = Prr::begin(self.window.cwnd);
                self.reduce(congestion.sign, cx);
                self.high = congestion.next;
                self.enter(if ecn { Phase::Cwr } else { Phase::Recovery }, congestion.next, cx);
            }
            Sign::Timeout { again } => {
                // Progress since the last timeout makes this a separate one.
                if !reacting || (self.phase == Phase::Loss && !again) {
                    let ssthresh = self.window.remembered_ssthresh();
                    self.prior = Some(Prior { cwnd: self.window.cwnd, ssthresh });
                    self.reduce(congestion.sign, cx);
                }
                self.window.cwnd = (congestion.in_flight + 1).min(MAX_CWND);
                self.window.credit = 0;
                self.high = congestion.next;
                self.enter(Phase::Loss, congestion.next, cx);
            }
        }
    }

    fn on_undo(&mut self, _cx: &mut Ctx) {
        if let Some(prior) = self.prior.take() {
            self.window.cwnd = self.window.cwnd.max(prior.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(prior.ssthresh);
            self.undone = true;
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits { cwnd: self.window.cwnd, ssthresh: self.window.ssthresh, pacing: None, burst: STACK_BURST }
    }

    fn name(&self) -> &'static str {
        G::NAME
    }

    fn state(&self) -> &'static str {
        match self.phase {
            Phase::Cwr => "cwr",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
            Phase::Open | Phase::Disorder if self.window.in_slow_start() => "slow-start",
            Phase::Open | Phase::Disorder => "avoidance",
        }
    }
}

/// Returns whole microseconds, as used by the kernel's controllers.
pub(crate) fn micros(span: Span) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
