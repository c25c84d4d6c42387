//! `HyStart`: leaves slow start before it overfills the queue.
//!
//! Source: S. Ha and I. Rhee, "Taming the elephants: new TCP slow start" (2008), as implemented in Linux 6.1
//! `tcp_cubic.c` (`hystart_update`, `hystart_ack_delay`). From a window of 16 segments on, either of two conditions
//! ends slow start:
//!
//! - an **ACK train**: acknowledgements at most 2 ms apart have continued for longer than the minimum RTT (half of it
//!   without pacing, since the train is then as long as the burst);
//! - a **delay increase**: the minimum of at least nine RTT samples of a round exceeds the minimum RTT by an eighth,
//!   clamped to 4..16 ms.
//!
//! No deviation from Linux, except that times are not truncated to 32 bits.

use crate::loss_based::micros;
use crate::{AckSample, Ctx, ExitCause};
use units::{Rate, Span, Time};

/// Below this window, in segments, slow start is never left early.
const LOW_WINDOW: u32 = 16;
/// Maximum spacing of acknowledgements in a train.
const ACK_SPACING: Span = Span::from_micros(2_000);
/// Number of RTT samples in a round before its minimum is used.
const MIN_SAMPLES: u32 = 8;
/// Bounds of the delay threshold, in microseconds.
const DELAY_MIN: u32 = 4_000;
const DELAY_MAX: u32 = 16_000;
/// The largest burst that a host hands to its interface at once, in bytes (Linux `gso_max_size`), used for the
/// allowance for aggregation, and the maximum of that allowance in microseconds.
const GSO_MAX_BYTES: u64 = 65_536;
const ACK_DELAY_MAX: u64 = 1_000;

/// The state of the current round.
#[derive(Clone, Debug, Default)]
pub(crate) struct HyStart {
    /// Whether slow start was left early; not repeated until a timeout.
    found: bool,
    round_start: Time,
    /// Time of the last acknowledgement of the train.
    last_ack: Time,
    /// SND.NXT at the round's start: the round ends when more than this is acknowledged.
    end: u64,
    /// The round's minimum RTT in microseconds, and the number of its samples, counted up to `MIN_SAMPLES`.
    round_rtt: u32,
    samples: u32,
    started: bool,
}

impl HyStart {
    /// Resets after a timeout: a new round, and slow start may be left early again.
    pub(crate) fn reset(&mut self, now: Time, next: u64) {
        self.found = false;
        self.begin_round(now, next);
    }

    fn begin_round(&mut self, now: Time, next: u64) {
        self.round_start = now;
        self.last_ack = now;
        self.end = next;
        self.round_rtt = u32::MAX;
        self.samples = 0;
        self.started = true;
    }

    /// Returns whether this acknowledgement, with an RTT sample of `delay` us, ends slow start. `delay_min` is the
    /// minimum RTT of the connection in us, including this sample.
    pub(crate) fn on_sample(
        &mut self,
        cwnd: u32,
        delay: u32,
        delay_min: u32,
        ack: &AckSample,
        cx: &Ctx,
    ) -> Option<ExitCause> {
        if self.found {
            return None;
        }
        let (now, path) = (cx.now, cx.path);
        if !self.started || ack.una > self.end {
            self.begin_round(now, ack.next);
        }
        if cwnd < LOW_WINDOW {
            return None;
        }
        let mut cause = None;
        if now.saturating_since(self.last_ack) <= ACK_SPACING {
            self.last_ack = now;
            let train = micros(now.saturating_since(self.round_start));
            // No threshold is below half of the minimum RTT.
            if train > delay_min / 2 && train > train_threshold(delay_min, path.stack_rate.get(), path.paced) {
                cause = Some(ExitCause::AckTrain);
            }
        }
        self.round_rtt = self.round_rtt.min(delay);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else if self.round_rtt > delay_min.saturating_add(delay_allowance(delay_min)) {
            cause = cause.or(Some(ExitCause::Delay));
        }
        self.found = cause.is_some();
        cause
    }
}

/// Returns the maximum duration of a train, in us.
fn train_threshold(delay_min: u32, rate: Option<Rate>, paced: bool) -> u32 {
    let ack_delay = match rate.map_or(0, Rate::bytes_per_sec) {
        0 => 0,
        // Twice because a host queues two bursts, and twice because the rate doubles in slow start.
        rate => (GSO_MAX_BYTES * 4 * 1_000_000 / rate).min(ACK_DELAY_MAX) as u32,
    };
    let threshold = delay_min.saturating_add(ack_delay);
    if paced { threshold } else { threshold / 2 }
}

/// Returns how far a round's RTT may exceed the minimum, in us.
fn delay_allowance(delay_min: u32) -> u32 {
    (delay_min >> 3).clamp(DELAY_MIN, DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::{Cubic, CubicConfig};
    use crate::driver::Driver;
    use crate::{Controller, Event, INFINITE_SSTHRESH, StackRate};

    /// Returns CUBIC in slow start with a window of 100, a known minimum RTT in ms, at the beginning of a round.
    fn starting(min_rtt_ms: u64) -> Driver<Cubic> {
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 100));
        d.ack.rtt = Some(Span::from_millis(min_rtt_ms));
        d.acked(1);
        // An acknowledgement beyond the end of the round begins the next one.
        d.wait_ms(min_rtt_ms);
        d.fill();
        d.acked(1);
        d
    }

    /// Acknowledges one segment every `spacing` us; returns the number at which slow start ended, if it did within 200.
    fn train(d: &mut Driver<Cubic>, spacing: u64) -> Option<(u64, ExitCause)> {
        (1..=200).find_map(|n| {
            d.wait(Span::from_micros(spacing));
            d.acked(1);
            d.log.iter().find_map(|event| match event {
                Event::SlowStartExit { cause, .. } => Some((n, *cause)),
                Event::State(_) => None,
            })
        })
    }

    #[test]
    fn an_unpaced_train_longer_than_half_the_rtt_ends_slow_start() {
        // 40 ms: the first acknowledgement past 20 ms is that at 21 ms.
        let mut d = starting(40);
        d.fill();
        assert_eq!(train(&mut d, 1_000), Some((21, ExitCause::AckTrain)));
        assert_eq!(d.ssthresh(), 100 + 2 + 20, "the window at the exit, before this acknowledgement's growth");
        assert_eq!(d.c.state(), "avoidance");
    }

    #[test]
    fn a_paced_train_may_last_a_whole_rtt_and_the_aggregation_allowance() {
        let mut d = starting(40);
        d.path.paced = true;
        assert_eq!(train(&mut d, 1_000), Some((41, ExitCause::AckTrain)));
        // 4 * 65,536 B at 100 MB/s are 2.6 ms, more than the 1 ms that is allowed: the first past 41 ms.
        let mut d = starting(40);
        (d.path.paced, d.path.stack_rate) = (true, StackRate::new(800 * 1_000_000, Span::from_secs(1)));
        assert_eq!(train(&mut d, 1_000), Some((42, ExitCause::AckTrain)));
        // At 1 GB/s they are 262 us: 41 ms is past 40.262.
        let mut d = starting(40);
        (d.path.paced, d.path.stack_rate) = (true, StackRate::new(8_000 * 1_000_000, Span::from_secs(1)));
        assert_eq!(train(&mut d, 1_000), Some((41, ExitCause::AckTrain)));
    }

    #[test]
    fn a_gap_over_two_milliseconds_breaks_the_train() {
        let mut d = starting(40);
        assert_eq!(train(&mut d, 2_001), None);
        let mut d = starting(40);
        assert_eq!(train(&mut d, 2_000), Some((11, ExitCause::AckTrain)));
    }

    #[test]
    fn a_round_whose_least_rtt_rose_by_an_eighth_ends_slow_start() {
        // Allowances: 40 / 8 = 5 ms; 16 / 8 = 2, clamped to 4; 400 / 8 = 50, clamped to 16.
        for (min_rtt, allowance) in [(40, 5_000), (16, 4_000), (400, 16_000)] {
            for (over, exit) in [(0, None), (1, Some((9, ExitCause::Delay)))] {
                let mut d = starting(min_rtt);
                // A new round, so that the low samples of the one before do not count.
                d.acked(100);
                d.fill();
                d.wait_ms(5);
                d.ack.rtt = Some(Span::from_micros(min_rtt * 1_000 + allowance + over));
                d.acked(2);
                let exit = exit.map(|(n, cause)| (n - 1, cause));
                assert_eq!(train(&mut d, 3_000), exit, "{min_rtt} ms + {allowance} us + {over}");
            }
        }
    }

    #[test]
    fn nothing_ends_slow_start_below_sixteen_segments() {
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 4));
        d.ack.rtt = Some(Span::from_millis(4));
        d.acked(1);
        d.fill();
        // Ten acknowledgements 1 ms apart pass 2 ms, half of 4, at the third: windows 6 to 15.
        for _ in 0..10 {
            d.wait_ms(1);
            d.acked(1);
        }
        assert_eq!((d.cwnd(), d.ssthresh()), (15, INFINITE_SSTHRESH));
        // At 16 the next round is watched: 1, 2 and 3 ms after its begin.
        d.acked(16);
        d.fill();
        d.acked(1);
        assert_eq!((d.cwnd(), d.ssthresh()), (32, INFINITE_SSTHRESH));
        assert_eq!(train(&mut d, 1_000), Some((3, ExitCause::AckTrain)));
    }

    #[test]
    fn hystart_can_be_off() {
        let mut d = Driver::new(Cubic::new(CubicConfig { hystart: false, ..CubicConfig::default() }, 100));
        d.ack.rtt = Some(Span::from_millis(40));
        d.fill();
        assert_eq!(train(&mut d, 1_000), None);
        d.fill();
        d.ack.rtt = Some(Span::from_millis(80));
        assert_eq!(train(&mut d, 3_000), None);
    }

    #[test]
    fn the_aggregation_allowance_is_four_long_packets_at_the_rate() {
        // At 1 GB/s: 40 ms and 262 us. The acknowledgement after 40.3 ms is past that, the one before is not.
        let mut d = starting(40);
        (d.path.paced, d.path.stack_rate) = (true, StackRate::new(8_000 * 1_000_000, Span::from_secs(1)));
        assert_eq!(train(&mut d, 403), Some((100, ExitCause::AckTrain)));
        // 262,144 bytes take 500 us at 524,288,000 bytes a second, and less at one more; half of it counts without pacing.
        let threshold = |rate: u64, paced| train_threshold(0, Some(Rate::from_bits_per_sec(8 * rate)), paced);
        assert_eq!([524_288_000, 524_288_001].map(|rate| threshold(rate, true)), [500, 499]);
        assert_eq!([524_288_000, 262_143_999, 0].map(|rate| threshold(rate, false)), [250, 500, 0]);
    }

    #[test]
    fn slow_start_is_left_early_once_until_a_time_out() {
        let mut d = starting(40);
        assert_eq!(train(&mut d, 1_000), Some((21, ExitCause::AckTrain)));
        // Below the threshold again, when samples count, in a round whose train is as long (Linux `ca->found`).
        d.c.begin_at(1_000);
        d.log.clear();
        d.wait_ms(1_000);
        d.acked(300);
        d.fill();
        d.acked(1);
        assert_eq!(train(&mut d, 1_000), None);
        d.react(crate::Sign::Timeout { again: false }, 0);
        d.ack.phase = crate::Phase::Loss;
        d.c.begin_at(1_000);
        d.log.clear();
        d.acked(100);
        d.fill();
        assert_eq!(train(&mut d, 1_000), Some((21, ExitCause::AckTrain)));
    }

    #[test]
    fn a_train_of_selective_acknowledgements_counts_from_the_first_on() {
        // The first segment is missing: 20 ms, half of the round-trip time, are past 21 ms after the first sample.
        let mut d = Driver::new(Cubic::new(CubicConfig::default(), 100));
        d.ack.rtt = Some(Span::from_millis(40));
        d.fill();
        let exit = (1..=30).find(|_| {
            d.wait_ms(1);
            d.sacked(1);
            !d.log.is_empty()
        });
        assert_eq!(exit, Some(22));
        assert_eq!(d.log, [Event::SlowStartExit { cause: ExitCause::AckTrain, cwnd: 100 }]);
    }
}
