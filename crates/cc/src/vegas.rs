//! Vegas: keeps two to four segments in the bottleneck's queue, based on delay.
//!
//! Source: L. Brakmo and L. Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet" (1995); Linux
//! 6.1 `tcp_vegas.c`, which grows in every round trip of slow start, uses the minimum RTT of a round, and behaves as
//! Reno in recovery and until the following round.
//!
//! Deviation from Linux: a round in which the window did not limit sending changes nothing; Linux grows there too.

use crate::loss_based::{Growth, LossBased, Window, micros};
use crate::new_reno::half;
use crate::{AckSample, Ctx, Event, ExitCause, Phase, Sign};
use units::Span;

/// With at most this many samples in a round, all may stem from delayed acknowledgements.
const FEW_SAMPLES: u32 = 2;

/// Vegas's parameters, in segments of the connection in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasConfig {
    /// Below this, the window grows.
    pub alpha: u32,
    /// Above this, the window shrinks.
    pub beta: u32,
    /// Above this, slow start ends.
    pub gamma: u32,
}

impl Default for VegasConfig {
    fn default() -> VegasConfig {
        VegasConfig { alpha: 2, beta: 4, gamma: 1 }
    }
}

/// The RTT samples of a round trip, and the minimum of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    /// Minimum RTT since the start or the last restart, in us plus one, so never zero.
    pub(crate) base: u32,
    /// Minimum RTT of this round, in the same unit.
    pub(crate) min: u32,
    samples: u32,
    /// SND.NXT at the round's start: the round ends when more than this is acknowledged.
    end: u64,
}

impl Rounds {
    pub(crate) fn new() -> Rounds {
        Rounds { base: u32::MAX, min: u32::MAX, samples: 0, end: 0 }
    }

    pub(crate) fn sample(&mut self, rtt: Span) {
        let rtt = micros(rtt).saturating_add(1);
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.samples += 1;
    }

    pub(crate) fn over(&self, ack: &AckSample) -> bool {
        ack.una > self.end
    }

    /// Returns whether at least one sample surely does not stem from a delayed acknowledgement.
    pub(crate) fn sure(&self) -> bool {
        self.samples > FEW_SAMPLES
    }

    /// Discards the estimates as stale. The round still ends when everything sent before it is acknowledged.
    pub(crate) fn forget(&mut self) {
        *self = Rounds { end: self.end, ..Rounds::new() };
    }

    pub(crate) fn begin(&mut self, next: u64) {
        self.min = u32::MAX;
        self.samples = 0;
        self.end = next;
    }
}

/// Vegas's growth.
#[derive(Clone, Debug)]
pub struct VegasGrowth {
    config: VegasConfig,
    rounds: Rounds,
    /// Whether delay determines growth; otherwise growth is Reno's.
    by_delay: bool,
}

/// The Vegas controller.
pub type Vegas = LossBased<VegasGrowth>;

impl Vegas {
    /// Creates Vegas with an initial window in segments.
    pub fn new(config: VegasConfig, initial_window: u32) -> Vegas {
        LossBased::with_growth(VegasGrowth::new(config), initial_window)
    }
}

impl VegasGrowth {
    /// Creates the growth with its parameters.
    pub fn new(config: VegasConfig) -> VegasGrowth {
        VegasGrowth { config, rounds: Rounds::new(), by_delay: true }
    }

    /// Adjusts the window at the end of a round with a valid minimum RTT.
    fn decide(&self, window: &mut Window, acked: u32, cx: &mut Ctx) {
        let (cwnd, base, rtt) = (u64::from(window.cwnd), u64::from(self.rounds.base), u64::from(self.rounds.min));
        let queued = cwnd * (rtt - base) / base;
        if window.in_slow_start() {
            if queued > u64::from(self.config.gamma) {
                // The window filled by the actual rate, and one segment for rounding.
                let target = (cwnd * base / rtt) as u32 + 1;
                window.cwnd = window.cwnd.min(target);
                window.ssthresh = window.ssthresh.min(window.cwnd);
                let cwnd = window.cwnd;
                cx.emit(|| Event::SlowStartExit { cause: ExitCause::Delay, cwnd });
            } else {
                window.slow_start(acked);
            }
        } else if queued > u64::from(self.config.beta) {
            window.cwnd -= 1;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if queued < u64::from(self.config.alpha) {
            window.increment();
        }
        window.cwnd = window.cwnd.max(2);
        window.ssthresh = window.remembered_ssthresh().max(2);
    }
}

impl Growth for VegasGrowth {
    const NAME: &'static str = "vegas";

    fn reduce(&mut self, window: &Window, _sign: Sign, _cx: &mut Ctx) -> u32 {
        half(window)
    }

    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample, _cx: &mut Ctx) {
        window.grow_one_per(window.cwnd, acked);
    }

    fn grow(&mut self, window: &mut Window, acked: u32, ack: &AckSample, cx: &mut Ctx) {
        let round_over = self.rounds.over(ack);
        if self.by_delay && !round_over {
            window.slow_start(acked);
        } else if self.by_delay && self.rounds.sure() {
            self.decide(window, acked, cx);
        } else {
            let left = window.slow_start(acked);
            if left > 0 {
                self.avoid(window, left, ack, cx);
            }
        }
        if self.by_delay && round_over {
            self.rounds.begin(ack.next);
        }
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &AckSample, _cx: &mut Ctx) {
        if let Some(rtt) = ack.rtt {
            self.rounds.sample(rtt);
        }
        if !ack.cwnd_limited && self.rounds.over(ack) {
            self.rounds.begin(ack.next);
        }
    }

    fn on_phase(&mut self, phase: Phase, next: u64, _cx: &mut Ctx) {
        self.by_delay = phase == Phase::Open;
        if self.by_delay {
            self.rounds.begin(next);
        }
    }

    fn on_restart(&mut self, _idle: Span, _cx: &mut Ctx) {
        self.rounds.forget();
        self.by_delay = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::INFINITE_SSTHRESH;
    use crate::driver::Driver;

    /// Vegas with a base RTT of 100 ms (100,001 us as it counts) and the window given, at the begin of a round.
    fn vegas(cwnd: u32) -> Driver<Vegas> {
        let mut d = Driver::new(Vegas::new(VegasConfig::default(), cwnd));
        d.ack.rtt = Some(Span::from_millis(100));
        // Not limited by the window: this round only gives the base.
        d.ack.cwnd_limited = false;
        d.fill();
        d.acked(1);
        d.ack.cwnd_limited = true;
        d
    }

    /// A round in which every RTT is `ms`; its last acknowledgement decides.
    fn round(d: &mut Driver<Vegas>, ms: u64) {
        d.ack.rtt = Some(Span::from_millis(ms));
        d.fill();
        let cwnd = d.cwnd();
        d.sacked(cwnd - 1);
        d.sacked(1);
        d.acked(cwnd);
        d.acked(1);
    }

    /// In avoidance at a window.
    fn avoiding(cwnd: u32) -> Driver<Vegas> {
        let mut d = vegas(2 * cwnd);
        d.lose_and_recover();
        assert_eq!((d.cwnd(), d.ssthresh()), (cwnd, cwnd));
        // Slow start is over and a window that shrinks by one stays above the threshold.
        d
    }

    fn decision(cwnd: u32, ms: u64) -> u32 {
        let growth = vegas_growth(ms);
        let mut window = Window { cwnd, ssthresh: 2, credit: 0 };
        let mut d = Driver::new(crate::new_reno::NewReno::new(10));
        d.call(|_, cx| growth.decide(&mut window, 1, cx));
        window.cwnd
    }

    fn vegas_growth(ms: u64) -> VegasGrowth {
        let mut growth = VegasGrowth::new(VegasConfig::default());
        growth.rounds.sample(Span::from_millis(100));
        growth.rounds.begin(0);
        growth.rounds.sample(Span::from_millis(ms));
        growth
    }

    #[test]
    fn the_window_keeps_two_to_four_segments_queued() {
        // Queued = 20 * (rtt - base) / base, rounded down: 1.0 at 105 ms, 1.8 at 109, 2.0 at 111 (2.2), 4.0 at 120..124,
        // 5.0 at 126. (Times carry a microsecond, so that 110 ms gives 1.99998.)
        for (ms, after) in [(100, 21), (109, 21), (110, 21), (111, 20), (115, 20), (124, 20), (126, 19), (200, 19)] {
            assert_eq!(decision(20, ms), after, "{ms} ms");
        }
    }

    #[test]
    fn slow_start_ends_when_more_than_one_segment_is_queued() {
        let mut growth = vegas_growth(109);
        let mut d = Driver::new(crate::new_reno::NewReno::new(10));
        let mut window = Window { cwnd: 20, ssthresh: INFINITE_SSTHRESH, credit: 0 };
        // 1.8 rounds to 1, not more than gamma: slow start goes on by the acknowledged segments.
        d.call(|_, cx| growth.decide(&mut window, 3, cx));
        assert_eq!((window.cwnd, window.ssthresh), (23, INFINITE_SSTHRESH));
        // 23 * 9 / 100 = 2: the window that the actual rate fills is 23 * 100 / 109 = 21, and one more.
        growth.rounds.sample(Span::from_millis(109));
        d.call(|_, cx| growth.decide(&mut window, 3, cx));
        assert_eq!((window.cwnd, window.ssthresh), (22, 22));
        assert_eq!(d.log, [Event::SlowStartExit { cause: ExitCause::Delay, cwnd: 22 }]);
    }

    #[test]
    fn a_round_decides_once() {
        let mut d = avoiding(20);
        // The first acknowledgement past the flight at recovery's end begins a round of Vegas.
        d.acked(1);
        let before = d.cwnd();
        round(&mut d, 100);
        assert_eq!(d.cwnd(), before + 1);
        round(&mut d, 100);
        assert_eq!(d.cwnd(), before + 2);
    }

    #[test]
    fn few_samples_leave_the_round_to_reno() {
        let mut d = avoiding(20);
        d.fill();
        d.acked(20);
        // One acknowledgement, one sample: Reno, and 21 of 20 acknowledged are one segment.
        d.ack.rtt = Some(Span::from_millis(200));
        d.acked(1);
        assert_eq!(d.cwnd(), 21);
    }

    #[test]
    fn recovery_is_renos() {
        let mut d = vegas(40);
        d.lose_and_recover();
        assert_eq!(d.cwnd(), 20);
    }

    #[test]
    fn a_restart_forgets_the_base() {
        let mut d = avoiding(20);
        d.send(0, Some(Span::from_millis(10)));
        assert_eq!((d.c.growth().rounds.base, d.c.growth().rounds.samples), (u32::MAX, 0));
    }

    #[test]
    fn what_slow_start_takes_is_not_counted_as_credit() {
        let mut window = Window { cwnd: 10, ssthresh: 20, credit: 15 };
        let mut d = Driver::new(crate::new_reno::NewReno::new(10));
        let ack = d.ack.clone();
        d.call(|_, cx| VegasGrowth::new(VegasConfig::default()).grow(&mut window, 3, &ack, cx));
        assert_eq!((window.cwnd, window.credit), (13, 15));
    }

    #[test]
    fn the_threshold_follows_the_window_and_neither_falls_below_two() {
        // Queued segments: 5 of 20 at 126 ms, 2 at 111, and 17 of 2 at a second. A threshold of 3/4 of the window is
        // remembered (Linux `tcp_current_ssthresh`).
        for (before, ms, after) in [
            ((20, 20), 126, (19, 19)),
            ((20, 2), 126, (19, 13)),
            ((20, 20), 111, (20, 20)),
            ((20, 2), 111, (20, 15)),
            ((2, 2), 1_000, (2, 2)),
            ((2, INFINITE_SSTHRESH), 1_000, (2, 2)),
        ] {
            let mut window = Window { cwnd: before.0, ssthresh: before.1, credit: 0 };
            let mut d = Driver::new(crate::new_reno::NewReno::new(10));
            d.call(|_, cx| vegas_growth(ms).decide(&mut window, 1, cx));
            assert_eq!((window.cwnd, window.ssthresh), after, "{before:?} at {ms} ms");
        }
    }
}
