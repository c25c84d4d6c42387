//! `YeAH`: Scalable TCP while the queue is short, Reno with a decongestion each round trip while it is long.
//!
//! Source: A. Baiocchi, A. Castellani, F. Vacirca, "YeAH-TCP: yet another highspeed TCP" (2007); Linux 6.1 `tcp_yeah.c`.
//!
//! Deviation from Linux: a round in which the window did not limit sending changes nothing.

use crate::loss_based::{Growth, LossBased, Window};
use crate::vegas::Rounds;
use crate::{AckSample, Ctx, Event, ExitCause, Phase, Sign};
use units::Span;

/// Queued segments above which decongestion starts.
const ALPHA: u32 = 80;
/// Divisor of the queue that gives the amount removed by one decongestion.
const GAMMA: u32 = 1;
/// Minimum reduction by a loss, as a fraction of the window: 2^-3.
const DELTA: u32 = 3;
/// Maximum reduction by a decongestion, as a fraction of the window: 2^-1.
const EPSILON: u32 = 1;
/// Congestion is indicated if the minimum RTT of a round exceeds the base by more than a PHY-th of it.
const PHY: u32 = 8;
/// Rounds in slow mode after which a loss is attributed to a competing flow.
const RHO: u32 = 16;
/// Rounds in fast mode after which the estimate of Reno's window is discarded.
const ZETA: u32 = 50;
/// Scalable's step in fast mode: acknowledged segments for a segment of growth.
const FAST_ACKS_PER_SEGMENT: u32 = 100;

/// `YeAH`'s growth.
#[derive(Clone, Debug)]
pub struct YeahGrowth {
    rounds: Rounds,
    /// The queue at the end of the last round, in segments.
    last_queue: u32,
    /// Consecutive rounds in slow mode; 0 in fast mode.
    slow_rounds: u32,
    /// The window of a competing Reno flow, at least 2.
    reno_count: u32,
    /// Rounds in fast mode since it was discarded.
    fast_rounds: u32,
}

/// The `YeAH` controller.
pub type Yeah = LossBased<YeahGrowth>;

impl Yeah {
    /// Creates `YeAH` with an initial window in segments.
    pub fn new(initial_window: u32) -> Yeah {
        LossBased::with_growth(YeahGrowth::default(), initial_window)
    }
}

impl Default for YeahGrowth {
    fn default() -> YeahGrowth {
        YeahGrowth { rounds: Rounds::new(), last_queue: 0, slow_rounds: 0, reno_count: 2, fast_rounds: 0 }
    }
}

impl YeahGrowth {
    /// Adjusts the window at the end of a round with a valid minimum RTT.
    fn decide(&mut self, window: &mut Window, cx: &mut Ctx) {
        let (base, rtt) = (self.rounds.base, self.rounds.min);
        let queue = (u64::from(window.cwnd) * u64::from(rtt - base) / u64::from(rtt)) as u32;
        if queue > ALPHA || rtt - base > base / PHY {
            if queue > ALPHA && window.cwnd > self.reno_count {
                self.decongest(window, queue, cx);
            }
            self.reno_count = if self.reno_count <= 2 { (window.cwnd >> 1).max(2) } else { self.reno_count + 1 };
            self.slow_rounds = self.slow_rounds.saturating_add(1);
        } else {
            self.fast_rounds += 1;
            if self.fast_rounds > ZETA {
                self.reno_count = 2;
                self.fast_rounds = 0;
            }
            self.slow_rounds = 0;
        }
        self.last_queue = queue;
    }

    fn decongest(&self, window: &mut Window, queue: u32, cx: &mut Ctx) {
        let slow_start = window.in_slow_start();
        let reduction = (queue / GAMMA).min(window.cwnd >> EPSILON);
        window.cwnd = (window.cwnd - reduction).max(self.reno_count);
        window.ssthresh = window.cwnd;
        if slow_start {
            let cwnd = window.cwnd;
            cx.emit(|| Event::SlowStartExit { cause: ExitCause::Delay, cwnd });
        }
    }
}

impl Growth for YeahGrowth {
    const NAME: &'static str = "yeah";

    fn reduce(&mut self, window: &Window, _sign: Sign, _cx: &mut Ctx) -> u32 {
        let half = (window.cwnd >> 1).max(2);
        let reduction = if self.slow_rounds < RHO { self.last_queue.min(half).max(window.cwnd >> DELTA) } else { half };
        self.fast_rounds = 0;
        self.reno_count = (self.reno_count >> 1).max(2);
        window.cwnd.saturating_sub(reduction).max(2)
    }

    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample, _cx: &mut Ctx) {
        let per = if self.slow_rounds == 0 { window.cwnd.min(FAST_ACKS_PER_SEGMENT) } else { window.cwnd };
        window.grow_one_per(per, acked);
    }

    fn grow(&mut self, window: &mut Window, acked: u32, ack: &AckSample, cx: &mut Ctx) {
        let left = window.slow_start(acked);
        if left > 0 {
            self.avoid(window, left, ack, cx);
        }
        if self.rounds.over(ack) {
            if self.rounds.sure() {
                self.decide(window, cx);
            }
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
        if phase == Phase::Open {
            self.rounds.begin(next);
        }
    }

    fn on_restart(&mut self, _idle: Span, _cx: &mut Ctx) {
        self.rounds.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::new_reno::NewReno;

    /// A round whose least RTT is `ms` on a path of 100 ms is decided at a window; times carry a microsecond.
    fn decide(growth: &mut YeahGrowth, cwnd: u32, ms: u64) -> Window {
        decide_after(growth, cwnd, Span::from_millis(ms))
    }

    fn decide_after(growth: &mut YeahGrowth, cwnd: u32, rtt: Span) -> Window {
        growth.rounds.begin(0);
        growth.rounds.sample(rtt);
        let mut window = Window { cwnd, ssthresh: 2, credit: 0 };
        Driver::new(NewReno::new(10)).call(|_, cx| growth.decide(&mut window, cx));
        window
    }

    fn yeah() -> YeahGrowth {
        let mut growth = YeahGrowth::default();
        growth.rounds.sample(Span::from_millis(100));
        growth
    }

    fn step(growth: &mut YeahGrowth, cwnd: u32) -> u32 {
        let mut window = Window { cwnd, ssthresh: 2, credit: 0 };
        let mut d = Driver::new(NewReno::new(10));
        let ack = d.ack.clone();
        d.call(|_, cx| growth.avoid(&mut window, 200, &ack, cx));
        window.cwnd - cwnd
    }

    fn loss(growth: &mut YeahGrowth, cwnd: u32) -> u32 {
        let window = Window { cwnd, ssthresh: 2, credit: 0 };
        Driver::new(NewReno::new(10)).call(|_, cx| growth.reduce(&window, Sign::Loss, cx))
    }

    #[test]
    fn a_short_queue_is_fast_mode() {
        let mut growth = yeah();
        // 400 * 10 / 110 = 36 queued, and 10 ms are less than 100 / 8.
        assert_eq!(decide(&mut growth, 400, 110).cwnd, 400);
        assert_eq!((growth.last_queue, growth.slow_rounds, growth.fast_rounds), (36, 0, 1));
        // Scalable: 200 acknowledged at 100 each.
        assert_eq!(step(&mut growth, 400), 2);
    }

    #[test]
    fn a_long_delay_is_slow_mode() {
        let mut growth = yeah();
        // 400 * 13 / 113 = 46 queued are few, but 13 ms are more than 12.5: Reno, without decongestion.
        assert_eq!(decide(&mut growth, 400, 113).cwnd, 400);
        assert_eq!((growth.last_queue, growth.slow_rounds, growth.reno_count), (46, 1, 200));
        assert_eq!(step(&mut growth, 400), 0);
        decide(&mut growth, 400, 113);
        assert_eq!((growth.slow_rounds, growth.reno_count), (2, 201));
    }

    #[test]
    fn a_long_queue_is_drained() {
        let mut growth = yeah();
        // 400 * 30 / 130 = 92 queued > 80: they leave, and Reno is supposed to have half of the 308.
        let window = decide(&mut growth, 400, 130);
        assert_eq!((window.cwnd, window.ssthresh, growth.reno_count), (308, 308, 154));
        // 400 * 300 / 400 = 300 queued: at most half of the window leaves.
        let mut growth = yeah();
        assert_eq!(decide(&mut growth, 400, 400).cwnd, 200);
        // Never below what Reno would have.
        growth.reno_count = 350;
        assert_eq!(decide(&mut growth, 400, 400).cwnd, 350);
    }

    #[test]
    fn fifty_fast_rounds_forget_reno() {
        let mut growth = yeah();
        growth.reno_count = 77;
        for _ in 0..50 {
            decide(&mut growth, 400, 101);
        }
        assert_eq!((growth.reno_count, growth.fast_rounds), (77, 50));
        decide(&mut growth, 400, 101);
        assert_eq!((growth.reno_count, growth.fast_rounds), (2, 0));
    }

    #[test]
    fn a_loss_takes_the_queue_and_at_least_an_eighth() {
        // Queue 92 of 308 is between 308 / 8 = 38 and 154.
        let mut growth = yeah();
        decide(&mut growth, 400, 130);
        assert_eq!(loss(&mut growth, 308), 308 - 92);
        assert_eq!(growth.reno_count, 154 / 2);
        // A queue of 3 (400 * 1 / 101) is less than an eighth: 400 - 50.
        let mut growth = yeah();
        decide(&mut growth, 400, 101);
        assert_eq!(loss(&mut growth, 400), 350);
    }

    #[test]
    fn sixteen_slow_rounds_mean_a_competitor_and_half_the_window() {
        let mut growth = yeah();
        for _ in 0..15 {
            decide(&mut growth, 400, 113);
        }
        assert_eq!(loss(&mut growth, 400), 400 - 50);
        decide(&mut growth, 400, 113);
        assert_eq!(loss(&mut growth, 400), 200);
    }

    #[test]
    fn the_smallest_windows_are_kept() {
        // 3 / 8 = 0 is taken from 3, as Linux does.
        assert_eq!(loss(&mut yeah(), 3), 3);
        assert_eq!(loss(&mut yeah(), 1), 2);
    }

    #[test]
    fn what_slow_start_takes_is_not_counted_as_credit() {
        let mut window = Window { cwnd: 10, ssthresh: 20, credit: 15 };
        let mut d = Driver::new(NewReno::new(10));
        let ack = d.ack.clone();
        d.call(|_, cx| YeahGrowth::default().grow(&mut window, 3, &ack, cx));
        assert_eq!((window.cwnd, window.credit), (13, 15));
    }

    #[test]
    fn a_queue_of_more_than_80_or_a_delay_of_more_than_an_eighth_is_slow_mode() {
        // Queues of 760 and 750 * 12 / 112 are 81.4 and 80.4, with a short delay; an eighth is 12,500 us. Of 406 and 405 at
        // 125 ms, 81.2 and 81.0 less a little are queued.
        for (cwnd, micros, slow, after) in [
            (760, 112_000, true, 760 - 81),
            (750, 112_000, false, 750),
            (40, 112_500, false, 40),
            (40, 112_501, true, 40),
            (406, 125_000, true, 406 - 81),
            (405, 125_000, true, 405),
        ] {
            let mut growth = yeah();
            let window = decide_after(&mut growth, cwnd, Span::from_micros(micros));
            assert_eq!((growth.slow_rounds > 0, window.cwnd), (slow, after), "{cwnd} at {micros} us");
        }
    }

    #[test]
    fn a_window_that_reno_would_have_is_not_drained() {
        for (reno_count, ssthresh) in [(400, 2), (399, 399)] {
            let mut growth = yeah();
            growth.reno_count = reno_count;
            assert_eq!(decide(&mut growth, 400, 130).ssthresh, ssthresh, "{reno_count}");
        }
    }

    #[test]
    fn renos_window_starts_at_half_and_grows_by_one_a_round() {
        for (before, cwnd, after) in [(2, 400, 200), (3, 400, 4), (2, 3, 2)] {
            let mut growth = yeah();
            growth.reno_count = before;
            decide(&mut growth, cwnd, 113);
            assert_eq!(growth.reno_count, after, "{before} at {cwnd}");
        }
    }

    #[test]
    fn a_loss_takes_at_most_half_and_counts_fast_rounds_anew() {
        // 400 * 300 / 400 = 300 queued.
        let mut growth = yeah();
        decide(&mut growth, 400, 400);
        assert_eq!(growth.last_queue, 299);
        assert_eq!(loss(&mut growth, 400), 200);
        growth.reno_count = 2;
        decide(&mut growth, 400, 101);
        assert_eq!(growth.fast_rounds, 1);
        loss(&mut growth, 400);
        assert_eq!((growth.fast_rounds, growth.reno_count), (0, 2));
    }
}
