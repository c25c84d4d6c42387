//! CUBIC: the window is a cubic function of the time since the last loss, with its plateau near the window at that
//! loss.
//!
//! Source: RFC 9438; Linux 6.1 `tcp_cubic.c`, whose integer arithmetic is used here: time in 1/1024 s, beta in 1024ths,
//! growth as "one segment for each `cnt` acknowledged", recomputed at most every 1/32 s while the window is unchanged.
//!
//! Deviations from Linux:
//! 1. Time is exact, not in ticks of 1..4 ms; "at most once a tick" is once a millisecond.
//! 2. The cube root is exact; Linux's is off by 0.2 % on average.
//! 3. The time since the plateau is limited to 256 s; Linux overflows at 347 s.
//!
//! Deviations of Linux, and so of this file, from RFC 9438: a timeout discards the plateau (the RFC then starts from
//! the window at the beginning of congestion avoidance, which is equivalent); without a known plateau, growth is at
//! least 5 % per round trip; growth is at most half a segment for each acknowledged one; the slope of the Reno-friendly
//! region stays 8/15 after the previous window has been passed.

use crate::hystart::HyStart;
use crate::loss_based::{Growth, LossBased, Window, micros};
use crate::{AckSample, Ctx, Event, Phase, Sign};
use units::{Span, Time};

/// The multiplicative decrease, in 1024ths: 0.7.
const BETA: u32 = 717;
const SCALE: u32 = 1024;
/// C, in 1/(10 * 1024) segments per s^3: 0.4004.
const C: u64 = 410;
/// Time is in units of 1/2^10 s; its cube has three times this shift, C its own 10.
const TIME_SHIFT: u32 = 10;
const CURVE_SHIFT: u32 = 10 + 3 * TIME_SHIFT;
/// The longest time from the plateau, in 1/1024 s, at which `C * t^3` fits 64 bits: 256 s.
const MAX_OFFSET: u64 = 1 << 18;
/// Acknowledged windows, times 8, for each segment of growth of an equally aggressive Reno: 8 / 0.529 = 15 (RFC 9438
/// section 4.3: alpha = 3 (1 - beta) / (1 + beta)).
const FRIENDLY_SCALE: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// Minimum interval between computations of the curve with an unchanged window.
const RECOMPUTE: Span = Span::from_nanos(1_000_000_000 / 32);
const TICK: Span = Span::from_millis(1);
/// Delay samples within this time after a reduction belong to the queue that caused it.
const SETTLE: Span = Span::from_secs(1);
/// Minimum growth without a known plateau: 5 % per round trip.
const MAX_COUNT_UNKNOWN: u32 = 20;
/// Maximum growth: by half per round trip.
const MIN_COUNT: u32 = 2;

/// The optional parts of CUBIC; all are enabled by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicConfig {
    /// Leave slow start by `HyStart`.
    pub hystart: bool,
    /// Never grow more slowly than Reno with the same average window (RFC 9438 section 4.3).
    pub friendly_region: bool,
    /// Release bandwidth to new flows: lower the plateau if the last loss occurred below it (RFC 9438 section 4.7).
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> CubicConfig {
        CubicConfig { hystart: true, friendly_region: true, fast_convergence: true }
    }
}

/// CUBIC's growth: the curve, the Reno-friendly region and `HyStart`.
#[derive(Clone, Debug)]
pub struct CubicGrowth {
    config: CubicConfig,
    hystart: HyStart,
    /// The window at the last loss, or less (fast convergence); 0 while unknown.
    last_max: u32,
    /// Start of the curve; `None` until the first growth after a reduction.
    epoch: Option<Time>,
    curve: Curve,
    /// Acknowledged segments per segment of growth.
    count: u32,
    /// Window and time of the last computation.
    computed: (u32, Time),
    /// Acknowledged segments not yet counted as growth of the Reno-friendly window, and that window.
    acked: u32,
    friendly_cwnd: u32,
    /// Minimum RTT in microseconds; 0 without samples.
    delay_min: u32,
}

/// The CUBIC controller.
pub type Cubic = LossBased<CubicGrowth>;

impl Cubic {
    /// Creates CUBIC with an initial window in segments.
    pub fn new(config: CubicConfig, initial_window: u32) -> Cubic {
        LossBased::with_growth(CubicGrowth::new(config), initial_window)
    }
}

impl CubicGrowth {
    /// Creates the growth with its parameters.
    pub fn new(config: CubicConfig) -> CubicGrowth {
        CubicGrowth {
            config,
            hystart: HyStart::default(),
            last_max: 0,
            epoch: None,
            curve: Curve::default(),
            count: 0,
            computed: (0, Time::ZERO),
            acked: 0,
            friendly_cwnd: 0,
            delay_min: 0,
        }
    }

    /// Discards the delay estimate, because acknowledgements now come from a different place. The current round ends
    /// with `next`.
    pub(crate) fn reset_delay(&mut self, next: u64, now: Time) {
        self.delay_min = 0;
        self.hystart.reset(now, next);
    }

    /// Returns the acknowledged segments per segment of growth at `now`.
    #[inline]
    fn update(&mut self, cwnd: u32, acked: u32, now: Time) -> u32 {
        self.acked = self.acked.saturating_add(acked);
        let since = now.saturating_since(self.computed.1);
        if self.epoch.is_some() && self.computed.0 == cwnd && since <= RECOMPUTE {
            return self.count;
        }
        if self.epoch.is_none() || since >= TICK {
            self.follow_curve(cwnd, acked, now);
        }
        if self.config.friendly_region {
            self.apply_reno_friendly_region(cwnd);
        }
        self.count = self.count.max(MIN_COUNT);
        self.count
    }

    fn follow_curve(&mut self, cwnd: u32, acked: u32, now: Time) {
        self.computed = (cwnd, now);
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.acked = acked;
            self.friendly_cwnd = cwnd;
            self.curve = Curve::from(cwnd, self.last_max);
            now
        });
        // One round trip ahead: this growth affects the segments sent in the next round trip.
        let ahead = now.saturating_since(epoch) + Span::from_micros(u64::from(self.delay_min));
        let target = self.curve.at(ahead);
        self.count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            self.count = self.count.min(MAX_COUNT_UNKNOWN);
        }
    }

    fn apply_reno_friendly_region(&mut self, cwnd: u32) {
        let per_segment = (cwnd * FRIENDLY_SCALE) >> 3;
        if self.acked > per_segment {
            let grown = (self.acked - 1) / per_segment;
            self.acked -= grown * per_segment;
            self.friendly_cwnd = self.friendly_cwnd.saturating_add(grown);
        }
        if self.friendly_cwnd > cwnd {
            self.count = self.count.min(cwnd / (self.friendly_cwnd - cwnd));
        }
    }
}

impl Growth for CubicGrowth {
    const NAME: &'static str = "cubic";

    fn reduce(&mut self, window: &Window, _sign: Sign, _cx: &mut Ctx) -> u32 {
        self.epoch = None;
        let cwnd = window.cwnd;
        self.last_max = if cwnd < self.last_max && self.config.fast_convergence {
            cwnd * (SCALE + BETA) / (2 * SCALE)
        } else {
            cwnd
        };
        (cwnd * BETA / SCALE).max(2)
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample, cx: &mut Ctx) {
        let count = self.update(window.cwnd, acked, cx.now);
        window.grow_one_per(count, acked);
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample, cx: &mut Ctx) {
        let Some(rtt) = ack.rtt else { return };
        if self.epoch.is_some_and(|epoch| cx.now.saturating_since(epoch) < SETTLE) {
            return;
        }
        let delay = micros(rtt).max(1);
        if self.delay_min == 0 || delay < self.delay_min {
            self.delay_min = delay;
        }
        if self.config.hystart && window.in_slow_start() {
            let exit = self.hystart.on_sample(window.cwnd, delay, self.delay_min, ack, cx);
            if let Some(cause) = exit {
                window.ssthresh = window.cwnd;
                let cwnd = window.cwnd;
                cx.emit(|| Event::SlowStartExit { cause, cwnd });
            }
        }
    }

    fn on_phase(&mut self, phase: Phase, next: u64, cx: &mut Ctx) {
        if phase == Phase::Loss {
            let hystart = core::mem::take(&mut self.hystart);
            *self = CubicGrowth { hystart, ..CubicGrowth::new(self.config) };
            self.hystart.reset(cx.now, next);
        }
    }

    fn on_restart(&mut self, idle: Span, cx: &mut Ctx) {
        // Idle time earns no growth.
        if let Some(epoch) = &mut self.epoch {
            *epoch = Time::from_nanos(epoch.as_nanos().saturating_add(idle.as_nanos())).min(cx.now);
        }
    }
}

/// W(t) = C (t - K)^3 + plateau (RFC 9438 section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Curve {
    /// Time from the start to the plateau, in 1/1024 s.
    k: u64,
    plateau: u32,
}

impl Curve {
    /// Returns the curve that starts at `cwnd` with its plateau at `last_max`, or rises at once if that has been
    /// passed.
    fn from(cwnd: u32, last_max: u32) -> Curve {
        if last_max <= cwnd {
            return Curve { k: 0, plateau: cwnd };
        }
        let k = cube_root((1 << CURVE_SHIFT) / C * u64::from(last_max - cwnd));
        Curve { k, plateau: last_max }
    }

    /// Returns the window at `t` after the start, in segments.
    fn at(&self, t: Span) -> u32 {
        // 2^10 / 10^9 = 2 / 1,953,125.
        let t = t.as_nanos().saturating_mul(2) / 1_953_125;
        let offset = t.abs_diff(self.k).min(MAX_OFFSET);
        let delta = ((C * offset * offset * offset) >> CURVE_SHIFT) as u32;
        if t < self.k { self.plateau.saturating_sub(delta) } else { self.plateau + delta }
    }
}

/// Returns the largest integer whose cube is at most `a`.
fn cube_root(a: u64) -> u64 {
    let mut root = 0;
    // 2^22 cubed is past 64 bits only from 2^21.33 on, so the highest bit of a root is bit 21.
    for bit in (0..22).rev() {
        let candidate: u64 = root | (1 << bit);
        if candidate.checked_mul(candidate * candidate).is_some_and(|cube| cube <= a) {
            root = candidate;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    fn growth(config: CubicConfig) -> CubicGrowth {
        CubicGrowth::new(config)
    }

    /// CUBIC without its Reno-friendly floor and without `HyStart`, where only the curve speaks.
    const CURVE_ONLY: CubicConfig = CubicConfig { hystart: false, friendly_region: false, fast_convergence: true };

    fn secs(s: u64) -> Span {
        Span::from_secs(s)
    }

    #[test]
    fn a_cube_root_is_the_floor_of_the_real_one() {
        for a in [0, 1, 7, 8, 26, 27, 1_000_000, 999_999, (1 << 40) - 1, 2_642_245 * 2_642_245 * 2_642_245] {
            let root = cube_root(a);
            assert!(root * root * root <= a, "{a}");
            assert!((root + 1).checked_mul((root + 1) * (root + 1)).is_none_or(|cube| cube > a), "{a}");
        }
    }

    #[test]
    fn the_plateau_is_reached_after_k() {
        // A loss at 1000 leaves floor(1000 * 717 / 1024) = 700. K = cbrt(300 / 0.4004) = 9.083 s = 9,300 / 1024.
        let curve = Curve::from(700, 1000);
        assert_eq!(curve, Curve { k: 9_300, plateau: 1000 });
        assert_eq!(curve.at(Span::ZERO), 1000 - 299);
        // 5 s before: 0.4004 * 4.083^3 = 27.25 below; 9 s in, 0.083^3 is nothing; 5 s after 9.083: 50.05 above.
        assert_eq!(curve.at(secs(5)), 1000 - 27);
        assert_eq!(curve.at(secs(9)), 1000);
        assert_eq!(curve.at(secs(5) + Span::from_nanos(9_082_100_000)), 1000 + 50);
    }

    #[test]
    fn a_window_past_the_plateau_rises_at_once() {
        // 0.4004 * 10^3 = 400.4.
        let curve = Curve::from(1200, 1000);
        assert_eq!((curve.at(Span::ZERO), curve.at(secs(10))), (1200, 1600));
    }

    #[test]
    fn the_curve_does_not_overflow() {
        // 256 s after a plateau: 0.4004 * 2^24 = 6,717,440 (410 * 2^54 / 2^40), and no more later.
        let curve = Curve::from(100, 0);
        assert_eq!(curve.at(secs(256)), 100 + 6_717_440);
        assert_eq!(curve.at(Span::MAX), 100 + 6_717_440);
    }

    #[test]
    fn a_loss_below_the_plateau_aims_lower() {
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 1000));
        d.lose_and_recover();
        assert_eq!((d.cwnd(), d.c.growth().last_max), (700, 1000));
        // 700 * 1741 / 2048 = 595.07; 700 * 717 / 1024 = 490.1.
        d.lose_and_recover();
        assert_eq!((d.cwnd(), d.c.growth().last_max), (490, 595));

        let mut d = Driver::new(Cubic::new(CubicConfig { fast_convergence: false, ..CURVE_ONLY }, 1000));
        d.lose_and_recover();
        d.lose_and_recover();
        assert_eq!((d.cwnd(), d.c.growth().last_max), (490, 700));
    }

    #[test]
    fn the_window_follows_the_curve() {
        // 100 ms round trips after a loss at 1000, every segment acknowledged singly and evenly. RFC 9438's W(t) one
        // round trip ahead of t = 1, 3, 5, 9, 12 s: 1000 - 0.4 * (K - t - 0.1)^3 with K = 9.086 s (C = 0.4).
        let mut d = Driver::new(Cubic::new(CURVE_ONLY, 1000));
        d.ack.rtt = Some(Span::from_millis(100));
        d.acked(1);
        d.lose_and_recover();
        let start = d.now;
        let k = libm::cbrt(300.0 / 0.4);
        for check in [1, 3, 5, 9, 12] {
            while d.now < start + secs(check) {
                let cwnd = d.cwnd();
                let step = Span::from_nanos(100_000_000 / u64::from(cwnd));
                for _ in 0..cwnd {
                    d.wait(step);
                    d.acked(1);
                }
            }
            let t = d.now.saturating_since(start).as_secs_f64() - k;
            let curve = 1000.0 + 0.4 * t * t * t;
            let cwnd = f64::from(d.cwnd());
            assert!((cwnd - curve).abs() / curve < 0.02, "at {check} s: {cwnd} against {curve}");
        }
    }

    #[test]
    fn the_friendly_window_grows_by_eight_fifteenths_a_round() {
        // At 70 segments one more costs 70 * 15 / 8 = 131 acknowledged: 8 in 1048, which are 15 rounds of 70 less two.
        let mut growth = growth(CubicConfig::default());
        let now = Time::from_nanos(1);
        growth.last_max = 70;
        growth.update(70, 1, now);
        let friendly = growth.friendly_cwnd;
        assert_eq!(friendly, 70);
        // The first counts too, and a segment is due when more than its cost has been acknowledged.
        for tick in 2..=1048 {
            growth.update(70, 1, now + RECOMPUTE * 2 * tick);
        }
        assert_eq!(growth.friendly_cwnd, 77);
        growth.update(70, 1, now + RECOMPUTE * 2 * 1049);
        assert_eq!(growth.friendly_cwnd, 78);
        // 8 segments behind: one for each 70 / 8 = 8 acknowledged, unless the curve asks for more.
        assert!(growth.count <= 8, "{}", growth.count);
    }

    #[test]
    fn without_a_known_plateau_growth_is_five_percent_a_round() {
        let mut growth = growth(CURVE_ONLY);
        assert_eq!(growth.update(1000, 1, Time::from_nanos(1)), MAX_COUNT_UNKNOWN);
    }

    #[test]
    fn growth_is_at_most_one_segment_for_two() {
        let mut growth = growth(CURVE_ONLY);
        growth.update(10, 1, Time::from_nanos(1));
        // 60 s later the curve is at 10 + 86,486: 10 / 86,486 = 0, which is raised to 2.
        assert_eq!(growth.update(10, 1, Time::from_nanos(1) + secs(60)), MIN_COUNT);
    }

    #[test]
    fn an_unchanged_window_is_recomputed_every_thirty_second() {
        let mut growth = growth(CURVE_ONLY);
        growth.last_max = 100;
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let slow = growth.update(100, 1, at(1));
        assert_eq!(slow, 100 * 100);
        assert_eq!(growth.update(100, 1, at(1) + RECOMPUTE), slow);
        // 5 s later the curve is 50 above: 100 / 50 = 2.
        growth.computed.1 = at(5_000);
        assert_eq!(growth.update(100, 1, at(5_000) + RECOMPUTE), slow);
        assert_eq!(growth.update(100, 1, at(5_000) + RECOMPUTE + Span::from_nanos(1)), 2);
    }

    #[test]
    fn a_changed_window_is_recomputed_once_a_millisecond() {
        let mut growth = growth(CURVE_ONLY);
        growth.last_max = 100;
        let began = Time::from_nanos(1_000_000);
        // At its plateau, a segment for each hundred windows.
        assert_eq!(growth.update(100, 1, began), 10_000);
        assert_eq!(growth.update(101, 1, began + Span::from_nanos(999_999)), 10_000);
        assert_eq!(growth.update(101, 1, began + Span::from_nanos(1_000_000)), 10_100);
    }

    #[test]
    fn a_new_epoch_computes_its_curve_at_once_and_counts_afresh() {
        let mut growth = growth(CubicConfig { friendly_region: true, ..CURVE_ONLY });
        growth.last_max = 100;
        let began = Time::from_nanos(1_000_000);
        assert_eq!(growth.update(100, 1, began), 10_000);
        growth.update(100, 900, began + secs(1));
        assert_eq!((growth.acked, growth.friendly_cwnd), (901 - 4 * 187, 104));
        // A reduction, and the first growth right after it, at the same window, 100 below a plateau. The curve, whose K is
        // rounded down, begins a segment above: one for each 100.
        growth.epoch = None;
        growth.last_max = 200;
        growth.computed = (100, began);
        assert_eq!(growth.update(100, 7, began), 100);
        assert_eq!((growth.acked, growth.friendly_cwnd), (7, 100));
        assert_eq!((growth.epoch, growth.curve.plateau), (Some(began), 200));
    }

    #[test]
    fn idle_time_shifts_the_epoch() {
        let mut d = Driver::new(Cubic::new(CURVE_ONLY, 100));
        d.lose_and_recover();
        d.acked(1);
        let began = d.c.growth().epoch.expect("the first growth begins it");
        d.wait(secs(30));
        d.send(0, Some(secs(20)));
        assert_eq!(d.c.growth().epoch, Some(began + secs(20)));
        // Never into the future.
        d.send(0, Some(secs(1000)));
        assert_eq!(d.c.growth().epoch, Some(d.now));
    }

    #[test]
    fn a_time_out_forgets_the_plateau() {
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 100));
        d.lose_and_recover();
        assert_eq!(d.c.growth().last_max, 100);
        d.fill();
        d.react(Sign::Timeout { again: false }, 0);
        // 71 is floor(70.02) from 100; floor(70 * 717 / 1024) = 49.
        assert_eq!((d.c.growth().last_max, d.ssthresh(), d.cwnd()), (0, 49, 1));
    }

    #[test]
    fn delay_samples_within_a_second_of_the_epoch_are_ignored() {
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 100));
        d.ack.rtt = Some(Span::from_millis(50));
        d.acked(1);
        d.lose_and_recover();
        d.acked(1);
        d.ack.rtt = Some(Span::from_millis(30));
        d.wait_ms(999);
        d.acked(1);
        assert_eq!(d.c.growth().delay_min, 50_000);
        d.wait_ms(1);
        d.acked(1);
        assert_eq!(d.c.growth().delay_min, 30_000);
    }

    #[test]
    fn a_loss_at_the_plateau_keeps_it_and_leaves_two_segments() {
        let mut growth = growth(CubicConfig::default());
        let mut d = Driver::new(crate::new_reno::NewReno::new(10));
        for (cwnd, ssthresh, last_max) in [(1000, 700, 1000), (1000, 700, 1000), (999, 699, 849), (2, 2, 1), (1, 2, 1)]
        {
            let window = Window { cwnd, ssthresh: 2, credit: 0 };
            let reduced = d.call(|_, cx| growth.reduce(&window, Sign::Loss, cx));
            assert_eq!((reduced, growth.last_max), (ssthresh, last_max), "{cwnd}");
        }
    }

    #[test]
    fn a_round_trip_of_no_time_is_a_sample_of_a_microsecond() {
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 10));
        d.ack.rtt = Some(Span::ZERO);
        d.acked(1);
        d.ack.rtt = Some(Span::from_millis(30));
        d.acked(1);
        assert_eq!(d.c.growth().delay_min, 1);
    }
}
