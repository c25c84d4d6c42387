//! Delivery rates in fixed point, and their windowed maximum.

use units::Span;

/// One segment per microsecond: rates are 24-bit fractions of it, so that 1.5 kbit/s and 3 Tbit/s both fit 32 bits.
const UNIT_SHIFT: u32 = 24;
/// Gains are in 256ths.
pub(super) const GAIN_SHIFT: u32 = 8;
/// Gain 1.
pub(super) const UNIT: u32 = 1 << GAIN_SHIFT;
/// The pacing rate is this much below the estimate, in percent, so that the queue shrinks on average.
const PACING_MARGIN_PERCENT: u64 = 1;

/// A delivery rate in segments per 2^24 us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(pub(super) u32);

impl Bandwidth {
    /// Returns the rate of a number of segments over a span; the maximum rate if the span is shorter than a
    /// microsecond.
    #[inline]
    pub(super) fn over(segments: u64, span: Span) -> Bandwidth {
        let rate = (segments.min(1 << 39) << UNIT_SHIFT) / span.as_micros().max(1);
        Bandwidth(u32::try_from(rate).unwrap_or(u32::MAX))
    }

    /// Returns the number of segments delivered in a span, rounded down.
    #[inline]
    pub(super) fn segments_in(self, span: Span) -> u64 {
        u64::from(self.0).saturating_mul(span.as_micros()) >> UNIT_SHIFT
    }

    /// Returns `gain` times the segments delivered in `micros`, rounded up so that small pipes are not starved.
    #[inline]
    pub(super) fn pipe(self, micros: u32, gain: u32) -> u32 {
        let product = u64::from(self.0) * u64::from(micros);
        let scaled = ((u128::from(product) * u128::from(gain)) >> GAIN_SHIFT) as u64;
        u32::try_from(scaled.saturating_add((1 << UNIT_SHIFT) - 1) >> UNIT_SHIFT).unwrap_or(u32::MAX)
    }

    /// Returns the pacing rate for segments of `mss` bytes at a gain, in bytes per second, reduced by the margin.
    #[inline]
    pub(super) fn pacing(self, mss: u32, gain: u32) -> u64 {
        let scaled = (u64::from(self.0).saturating_mul(u64::from(mss)).saturating_mul(u64::from(gain))) >> GAIN_SHIFT;
        scaled.saturating_mul(1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT)) >> UNIT_SHIFT
    }
}

/// Windowed maximum over rounds, from the best, second-best and third-best samples of successive parts of the window
/// (Linux `win_minmax.c`, K. Nichols).
#[derive(Clone, Debug, Default)]
pub(super) struct MaxFilter {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u32,
    value: Bandwidth,
}

impl MaxFilter {
    /// Returns the maximum in the window.
    #[inline]
    pub(super) fn get(&self) -> Bandwidth {
        self.best[0].value
    }

    /// Adds a sample of `round` to a window of `window` rounds.
    #[inline]
    pub(super) fn update(&mut self, window: u32, round: u32, value: Bandwidth) {
        let sample = Sample { round, value };
        let best = &mut self.best;
        if value >= best[0].value || round - best[2].round > window {
            *best = [sample; 3];
            return;
        }
        if value >= best[1].value {
            best[1] = sample;
            best[2] = sample;
        } else if value >= best[2].value {
            best[2] = sample;
        }
        let age = round - best[0].round;
        if age > window {
            // The best has expired: the others move up, twice if the second-best has expired as well.
            *best = [best[1], best[2], sample];
            if round - best[0].round > window {
                *best = [best[1], best[2], sample];
            }
        } else if best[1].round == best[0].round && age > window / 4 {
            // A quarter of the window passed without a separate second-best: take one from this quarter.
            best[1] = sample;
            best[2] = sample;
        } else if best[2].round == best[1].round && age > window / 2 {
            best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_segments_per_microsecond_in_24_bits() {
        // 100 segments in 40 ms: 100 * 2^24 / 40,000 = 41,943.04.
        let rate = Bandwidth::over(100, Span::from_millis(40));
        assert_eq!(rate, Bandwidth(41_943));
        // In 40 ms it delivers 99.9999: 99 rounded down, and a pipe of 100 rounded up, of 200 at gain 2.
        assert_eq!(rate.segments_in(Span::from_millis(40)), 99);
        assert_eq!(rate.pipe(40_000, UNIT), 100);
        assert_eq!(rate.pipe(40_000, 2 * UNIT), 200);
        // 2,500 segments of 1,448 bytes per second are 3.62 MB/s; 1 % less is 3,583,800; 41,943 of 41,943.04 is 3,583,796.
        assert_eq!(rate.pacing(1448, UNIT), 3_583_796);
        // A part of a segment is one more.
        assert_eq!([1 << 24, (1 << 24) + 1].map(|micros| Bandwidth(1).pipe(micros, UNIT)), [1, 2]);
        // A span counts as a microsecond at least, and the highest rate is that of 32 bits.
        assert_eq!(Bandwidth::over(1, Span::from_nanos(999)), Bandwidth(1 << 24));
        assert_eq!(Bandwidth::over(1 << 40, Span::from_secs(1)), Bandwidth(u32::MAX));
    }

    #[test]
    fn the_maximum_lasts_its_window_and_then_falls_to_the_next_best() {
        let mut filter = MaxFilter::default();
        filter.update(10, 1, Bandwidth(100));
        for round in 2..=11 {
            filter.update(10, round, Bandwidth(50 + round));
            assert_eq!(filter.get(), Bandwidth(100), "round {round}");
        }
        // The sample of round 1 is 11 rounds old at round 12. What was kept beside it: the second-best is replaced by
        // each better sample, so it is that of round 11.
        filter.update(10, 12, Bandwidth(10));
        assert_eq!(filter.get(), Bandwidth(61));
    }

    #[test]
    fn a_new_maximum_takes_over_at_once() {
        let mut filter = MaxFilter::default();
        filter.update(10, 1, Bandwidth(100));
        filter.update(10, 2, Bandwidth(101));
        assert_eq!(filter.get(), Bandwidth(101));
    }

    /// What the kernel's `lib/win_minmax.c` keeps: the best, the second-best and the third-best sample. Computed by a literal
    /// reading of it, for a window of ten rounds.
    #[test]
    fn the_filter_keeps_what_the_kernels_does() {
        let table = [
            ((1, 100), [(1, 100), (1, 100), (1, 100)]),
            ((2, 50), [(1, 100), (1, 100), (1, 100)]),
            ((3, 40), [(1, 100), (1, 100), (1, 100)]),
            ((4, 45), [(1, 100), (4, 45), (4, 45)]),
            ((6, 30), [(1, 100), (4, 45), (4, 45)]),
            ((7, 35), [(1, 100), (4, 45), (7, 35)]),
            ((11, 20), [(1, 100), (4, 45), (7, 35)]),
            ((16, 10), [(7, 35), (16, 10), (16, 10)]),
            ((17, 12), [(7, 35), (17, 12), (17, 12)]),
            ((18, 12), [(18, 12), (18, 12), (18, 12)]),
            ((19, 8), [(18, 12), (18, 12), (18, 12)]),
            ((21, 9), [(18, 12), (21, 9), (21, 9)]),
            ((22, 7), [(18, 12), (21, 9), (21, 9)]),
            ((26, 6), [(18, 12), (21, 9), (26, 6)]),
            ((28, 5), [(18, 12), (21, 9), (26, 6)]),
            ((29, 2), [(21, 9), (26, 6), (29, 2)]),
            ((31, 5), [(21, 9), (26, 6), (31, 5)]),
            ((41, 1), [(31, 5), (41, 1), (41, 1)]),
            ((42, 0), [(41, 1), (41, 1), (42, 0)]),
            ((53, 0), [(53, 0), (53, 0), (53, 0)]),
            ((54, 3), [(54, 3), (54, 3), (54, 3)]),
            ((55, 3), [(55, 3), (55, 3), (55, 3)]),
            ((56, 2), [(55, 3), (55, 3), (55, 3)]),
            ((57, 2), [(55, 3), (55, 3), (55, 3)]),
            ((58, 2), [(55, 3), (58, 2), (58, 2)]),
            ((59, 1), [(55, 3), (58, 2), (58, 2)]),
            ((60, 1), [(55, 3), (58, 2), (58, 2)]),
            ((65, 0), [(55, 3), (58, 2), (65, 0)]),
        ];
        let mut filter = MaxFilter::default();
        for ((round, value), expected) in table {
            filter.update(10, round, Bandwidth(value));
            let best = filter.best.map(|sample| (sample.round, sample.value.0));
            assert_eq!(best, expected, "after {value} in round {round}");
        }
    }
}
