//! Westwood+: Reno that sets the window after a loss to the measured bandwidth-delay product instead of half of the
//! window.
//!
//! Source: L. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno and Vegas TCP congestion
//! control" (2004); Linux 6.1 `tcp_westwood.c`: bytes acknowledged in each max(RTT, 50 ms), smoothed by two consecutive
//! 7/8 filters; at the end of a reduction and at a timeout, the threshold is bandwidth times minimum RTT.
//!
//! Deviations from Linux:
//! 1. Rates are bytes per second over exact times, not bytes per tick of 1..4 ms.
//! 2. After an undone reduction, the window is not set from the estimate.

use crate::loss_based::{Growth, LossBased, Window};
use crate::new_reno::half;
use crate::{AckSample, Ctx, Sign};
use units::{Span, Time};

/// Minimum interval of a bandwidth sample.
const MIN_INTERVAL: Span = Span::from_millis(50);
/// The RTT before the first sample: long enough that no bandwidth sample is taken.
const INITIAL_RTT: Span = Span::from_secs(20);

/// Westwood+'s growth: Reno's, with a bandwidth estimate.
#[derive(Clone, Debug)]
pub struct WestwoodGrowth {
    estimate: Bandwidth,
    /// Bytes acknowledged in this interval, and its start.
    bytes: u64,
    interval_start: Option<Time>,
    /// SND.UNA at the previous acknowledgement.
    una: u64,
    /// Bytes counted for duplicates, which the next cumulative acknowledgement must not count again.
    accounted: u64,
    rtt: Span,
    rtt_min: Span,
    /// Whether the next acknowledgement resets the minimum.
    reset_rtt_min: bool,
}

/// The Westwood+ controller.
pub type Westwood = LossBased<WestwoodGrowth>;

impl Westwood {
    /// Creates Westwood+ with an initial window in segments.
    pub fn new(initial_window: u32) -> Westwood {
        LossBased::with_growth(WestwoodGrowth::default(), initial_window)
    }
}

impl Default for WestwoodGrowth {
    fn default() -> WestwoodGrowth {
        WestwoodGrowth {
            estimate: Bandwidth::default(),
            bytes: 0,
            interval_start: None,
            una: 0,
            accounted: 0,
            rtt: INITIAL_RTT,
            rtt_min: INITIAL_RTT,
            reset_rtt_min: true,
        }
    }
}

impl WestwoodGrowth {
    /// Returns bandwidth times minimum RTT, in segments, at least 2.
    fn pipe(&self, mss: u32) -> u32 {
        let bytes = u128::from(self.estimate.smooth) * u128::from(self.rtt_min.as_nanos()) / 1_000_000_000;
        u32::try_from(bytes / u128::from(mss.max(1))).unwrap_or(u32::MAX).clamp(2, crate::loss_based::MAX_CWND)
    }

    /// Returns the bytes represented by an acknowledgement, with one segment for each duplicate.
    fn count(&mut self, una: u64, mss: u64) -> u64 {
        let advance = una.saturating_sub(self.una);
        self.una = una;
        if advance == 0 {
            self.accounted += mss;
            return mss;
        }
        if advance <= mss {
            return advance;
        }
        if self.accounted >= advance {
            self.accounted -= advance;
            return mss;
        }
        advance - core::mem::take(&mut self.accounted)
    }
}

impl Growth for WestwoodGrowth {
    const NAME: &'static str = "westwood";

    fn reduce(&mut self, window: &Window, sign: Sign, cx: &mut Ctx) -> u32 {
        match sign {
            Sign::Timeout { .. } => {
                self.reset_rtt_min = true;
                self.pipe(cx.path.mss)
            }
            Sign::Loss | Sign::Ecn => half(window),
        }
    }

    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample, _cx: &mut Ctx) {
        window.grow_one_per(window.cwnd, acked);
    }

    fn on_ack(&mut self, _window: &mut Window, ack: &AckSample, cx: &mut Ctx) {
        let start = *self.interval_start.get_or_insert_with(|| {
            // The segments covered by the first acknowledgement were sent before the interval.
            self.una = ack.una;
            cx.now
        });
        let interval = cx.now.saturating_since(start);
        if interval > self.rtt.max(MIN_INTERVAL) {
            self.estimate.sample(self.bytes, interval);
            self.bytes = 0;
            self.interval_start = Some(cx.now);
        }
        if ack.advanced || ack.delivered > 0 {
            self.bytes += self.count(ack.una, u64::from(cx.path.mss));
        }
        // The minimum includes the RTT of the previous acknowledgement: Linux updates it before sampling.
        self.rtt_min = if self.reset_rtt_min { self.rtt } else { self.rtt_min.min(self.rtt) };
        self.reset_rtt_min = false;
        if let Some(rtt) = ack.rtt {
            self.rtt = rtt;
        }
    }

    fn on_recovered(&mut self, window: &mut Window, cx: &mut Ctx) {
        window.ssthresh = self.pipe(cx.path.mss);
        window.cwnd = window.ssthresh;
    }
}

/// Two consecutive low-pass filters, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bandwidth {
    rough: u64,
    smooth: u64,
}

impl Bandwidth {
    fn sample(&mut self, bytes: u64, interval: Span) {
        let sample = (u128::from(bytes) * 1_000_000_000 / u128::from(interval.as_nanos().max(1))) as u64;
        if *self == Bandwidth::default() {
            *self = Bandwidth { rough: sample, smooth: sample };
        } else {
            self.rough = (7 * self.rough + sample) / 8;
            self.smooth = (7 * self.smooth + self.rough) / 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::{Controller, Phase};

    fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn two_filters_follow_the_rate_by_an_eighth_each() {
        let mut bandwidth = Bandwidth::default();
        // 100 kB in 100 ms are 1 MB/s: the first sample is taken as it is.
        bandwidth.sample(100_000, ms(100));
        assert_eq!(bandwidth, Bandwidth { rough: 1_000_000, smooth: 1_000_000 });
        // 2 MB/s: (7 + 2) / 8 = 1.125 MB/s, then (7 + 1.125) / 8 = 1.015625 MB/s.
        bandwidth.sample(200_000, ms(100));
        assert_eq!(bandwidth, Bandwidth { rough: 1_125_000, smooth: 1_015_625 });
        // (7.875 + 2) / 8 = 1.234375; (7.109375 + 1.234375) / 8 = 1.04296875.
        bandwidth.sample(200_000, ms(100));
        assert_eq!(bandwidth, Bandwidth { rough: 1_234_375, smooth: 1_042_968 });
        // To the byte at 16 Gbit/s.
        let mut fast = Bandwidth::default();
        fast.sample(2_000_000_001, Span::from_secs(1));
        assert_eq!(fast.rough, 2_000_000_001);
    }

    #[test]
    fn duplicates_count_a_segment_each_and_once() {
        let mut growth = WestwoodGrowth::default();
        assert_eq!(growth.count(1000, 1000), 1000);
        for _ in 0..3 {
            assert_eq!(growth.count(1000, 1000), 1000);
        }
        // Five more segments, three of which were counted: two.
        assert_eq!(growth.count(6000, 1000), 2000);
        for _ in 0..4 {
            growth.count(6000, 1000);
        }
        // A partial acknowledgement of two segments, both counted: one, and two of the four counts are left.
        assert_eq!(growth.count(8000, 1000), 1000);
        assert_eq!(growth.accounted, 2000);
        // One segment counts, whatever was counted before; two are reduced by it.
        assert_eq!((growth.count(9000, 1000), growth.accounted), (1000, 2000));
        // Exactly what was counted: one.
        assert_eq!((growth.count(11_000, 1000), growth.accounted), (1000, 0));
        growth.una = 8000;
        // A delayed acknowledgement of two.
        assert_eq!(growth.count(10_000, 1000), 2000);
    }

    /// A path of 1 segment a millisecond with an RTT of 60 ms, for so many ms.
    fn carry(d: &mut Driver<Westwood>, duration: u64) {
        d.ack.rtt = Some(ms(60));
        d.ack.cwnd_limited = false;
        for _ in 0..duration {
            d.wait_ms(1);
            d.acked(1);
        }
        d.ack.cwnd_limited = true;
    }

    #[test]
    fn a_loss_leaves_the_window_that_the_path_carries() {
        let mut d = Driver::new(Westwood::new(200));
        carry(&mut d, 500);
        // 1 segment/ms for 60 ms: 60 segments, whatever the window was. Each interval ends with the first acknowledgement
        // past 60 ms, so 61 of 61 ms; only the first lacks the acknowledgement that began it: 59.0 and more.
        d.lose_and_recover();
        assert!((59..=60).contains(&d.cwnd()), "{}", d.cwnd());
        assert_eq!(d.ssthresh(), d.cwnd());
    }

    #[test]
    fn during_recovery_the_threshold_is_renos() {
        let mut d = Driver::new(Westwood::new(200));
        carry(&mut d, 500);
        d.fill();
        d.react(Sign::Loss, 200);
        assert_eq!(d.ssthresh(), 100);
    }

    #[test]
    fn a_time_out_takes_the_estimate_and_learns_the_rtt_afresh() {
        let mut d = Driver::new(Westwood::new(200));
        carry(&mut d, 500);
        d.fill();
        d.react(Sign::Timeout { again: false }, 0);
        assert!((59..=60).contains(&d.ssthresh()) && d.cwnd() == 1);
        d.ack.phase = Phase::Loss;
        d.ack.rtt = Some(ms(90));
        // The first acknowledgement takes the RTT before it, the second its own.
        d.acked(1);
        assert_eq!(d.c.growth().rtt_min, ms(60));
    }

    #[test]
    fn an_undone_reduction_keeps_the_window() {
        let mut d = Driver::new(Westwood::new(200));
        carry(&mut d, 500);
        d.fill();
        d.react(Sign::Loss, 190);
        d.undo();
        d.acked(0);
        assert_eq!(d.cwnd(), 200);
    }

    #[test]
    fn without_an_estimate_the_window_is_two() {
        let mut d = Driver::new(Westwood::new(20));
        d.lose_and_recover();
        assert_eq!(d.cwnd(), 2);
    }

    #[test]
    fn the_pipe_is_the_bandwidth_times_the_least_round_trip() {
        let estimate = Bandwidth { rough: 0, smooth: 1_000_000 };
        let growth = WestwoodGrowth { estimate, rtt_min: Span::from_secs(1), ..WestwoodGrowth::default() };
        assert_eq!([1_000, 1_001, 600_000, 0].map(|mss| growth.pipe(mss)), [1_000, 999, 2, 1_000_000]);
    }

    #[test]
    fn a_sample_is_of_more_than_a_round_trip_and_more_than_50_ms() {
        for (rtt, least) in [(60, 60), (50, 50), (20, 50)] {
            for (more, sampled) in [(0, false), (1, true)] {
                let mut d = Driver::new(Westwood::new(20));
                d.ack.rtt = Some(ms(rtt));
                d.acked(1);
                d.wait(ms(least) + Span::from_nanos(more));
                d.acked(1);
                let estimate = d.c.growth().estimate;
                assert_eq!(estimate != Bandwidth::default(), sampled, "{rtt} ms + {more} ns");
            }
        }
    }

    #[test]
    fn what_arrives_or_advances_counts_and_nothing_else() {
        let mut d = Driver::new(Westwood::new(20));
        d.acked(1);
        d.sacked(1);
        d.sacked(1);
        assert_eq!((d.c.growth().bytes, d.c.growth().accounted), (3_000, 3_000));
        // A duplicate that delivers nothing.
        d.acked(0);
        assert_eq!(d.c.growth().bytes, 3_000);
        // Two segments that were selectively acknowledged: nothing is newly delivered.
        let una = d.sequence().0 + 2_000;
        let ack = AckSample { una, next: una, delivered: 0, advanced: true, ..d.ack.clone() };
        d.call(|c, cx| c.on_ack(&ack, cx));
        assert_eq!((d.c.growth().bytes, d.c.growth().accounted), (4_000, 1_000));
    }
}
