//! ACK aggregation: the number of segments acknowledged at once in excess of the bandwidth. The window includes an
//! allowance for it, so that the sender continues during the gap before the next burst of acknowledgements.

use super::bandwidth::Bandwidth;
use units::{Span, Time};

/// Length in rounds of each of the two windows of the maximum.
const WINDOW_ROUNDS: u32 = 5;
/// Number of acknowledged segments after which an epoch ends.
const MAX_EPOCH_ACKED: u64 = 1 << 20;
/// Maximum duration of a gap covered by the allowance.
const MAX_SILENCE: Span = Span::from_millis(100);

/// Maximum excess over the last five to ten rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Time,
    epoch_acked: u64,
    /// The maxima of the previous and the current window.
    excess: [u32; 2],
    current: usize,
    rounds: u32,
}

impl Aggregation {
    /// Begins a new epoch.
    pub(super) fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// Updates the excess: `acked` segments were delivered at `now`.
    pub(super) fn update(&mut self, acked: u32, round_start: bool, bw: Bandwidth, cwnd: u32, now: Time) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.current = 1 - self.current;
                self.excess[self.current] = 0;
            }
        }
        let mut expected = bw.segments_in(now.saturating_since(self.epoch_start));
        let acked = u64::from(acked);
        // The epoch ends when acknowledgements fall behind the bandwidth.
        if self.epoch_acked <= expected || self.epoch_acked + acked >= MAX_EPOCH_ACKED {
            self.restart(now);
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(MAX_EPOCH_ACKED - 1);
        let excess = (self.epoch_acked.saturating_sub(expected) as u32).min(cwnd);
        self.excess[self.current] = self.excess[self.current].max(excess);
    }

    /// Returns the allowance in segments.
    #[inline]
    pub(super) fn allowance(&self, bw: Bandwidth) -> u32 {
        let most = bw.segments_in(MAX_SILENCE).min(u64::from(u32::MAX)) as u32;
        self.excess[0].max(self.excess[1]).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bunch_is_the_excess_over_the_bandwidth() {
        // One segment each 100 us. A bunch of 20 at once, 1 ms after the epoch began, in which 10 were expected.
        let bw = Bandwidth::over(10_000, Span::from_secs(1));
        let at = |micros: u64| Time::from_nanos(micros * 1_000);
        let mut aggregation = Aggregation::default();
        aggregation.update(1, true, bw, 1000, at(0));
        // The epoch has acknowledged 1 <= 9 expected: it starts again, and all 20 are excess.
        aggregation.update(20, false, bw, 1000, at(1_000));
        assert_eq!(aggregation.allowance(bw), 20);
        // 500 us later 4.99 more were expected, 15 came: 20 + 15 - 4.
        aggregation.update(15, false, bw, 1000, at(1_500));
        assert_eq!(aggregation.allowance(bw), 31);
        // Never more than the window holds.
        aggregation.update(100, false, bw, 40, at(1_500));
        assert_eq!(aggregation.allowance(bw), 40);
    }

    #[test]
    fn the_maximum_is_forgotten_after_two_windows() {
        let bw = Bandwidth::over(10_000, Span::from_secs(1));
        let mut aggregation = Aggregation::default();
        let mut now = Time::from_nanos(1_000_000);
        aggregation.update(30, true, bw, 1000, now);
        for round in 1..=12 {
            now += Span::from_millis(10);
            aggregation.update(2, true, bw, 1000, now);
            // Rounds are 1-based with the bunch's: windows change at rounds 5 and 10, and the second one drops it.
            let expected = if round + 1 < 10 { 30 } else { 2 };
            assert_eq!(aggregation.allowance(bw), expected, "round {round}");
        }
    }

    #[test]
    fn the_allowance_is_at_most_100_ms_of_bandwidth() {
        let bw = Bandwidth::over(100, Span::from_secs(1));
        let mut aggregation = Aggregation::default();
        aggregation.update(500, false, bw, 1000, Time::ZERO);
        // 100 per second is 10 in 100 ms, 9.99 in 24 bits.
        assert_eq!(aggregation.allowance(bw), 9);
    }

    #[test]
    fn an_epoch_begins_anew_when_as_much_was_acknowledged_as_expected() {
        // A segment each 100 us, cut to fractions of 2^24: 1.99 in 200 us and 2.99 in 300.
        let bw = Bandwidth::over(10_000, Span::from_secs(1));
        let mut aggregation = Aggregation::default();
        for (acked, micros) in [(1, 0), (5, 200), (1, 300)] {
            aggregation.update(acked, false, bw, 1000, Time::from_nanos(micros * 1_000));
        }
        // Of the six of an epoch that began at 200 us, less than one was expected by then.
        assert_eq!(aggregation.allowance(bw), 6);
    }

    #[test]
    fn an_epoch_has_less_than_2_to_the_20_segments() {
        let bw = Bandwidth(u32::MAX);
        let mut aggregation = Aggregation::default();
        for (acked, counted, most) in [
            ((1 << 20) - 2, (1 << 20) - 2, (1 << 20) - 2),
            (1, (1 << 20) - 1, (1 << 20) - 1),
            (1, 1, (1 << 20) - 1),
            (5, 6, (1 << 20) - 1),
            (1 << 21, (1 << 20) - 1, (1 << 20) - 1),
        ] {
            aggregation.update(acked, false, bw, 1 << 21, Time::ZERO);
            assert_eq!((aggregation.epoch_acked, aggregation.allowance(bw)), (counted, most));
        }
    }
}
