//! A distribution of spans in little memory.
//!
//! HDR histogram of microseconds with 2 significant digits: a quantile is at most 1 % above the true value (and at least
//! 1 us apart from it). Count, sum, minimum and maximum are exact. A distribution up to 100 ms takes about 5 kB.

use hdrhistogram::Histogram;
use units::Span;

/// Significant decimal digits of a quantile.
const DIGITS: u8 = 2;

/// How often which span was seen.
#[derive(Clone, Debug)]
pub struct Distribution {
    micros: Histogram<u32>,
    count: u64,
    sum_ns: u128,
    min: Span,
    max: Span,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution::new()
    }
}

impl Distribution {
    /// Nothing seen.
    pub fn new() -> Distribution {
        let micros = Histogram::new(DIGITS).expect("2 digits are legal");
        Distribution { micros, count: 0, sum_ns: 0, min: Span::MAX, max: Span::ZERO }
    }

    /// `span` was seen. Allocates only when it is longer than everything before.
    #[inline]
    pub fn record(&mut self, span: Span) {
        self.micros.record(span.as_micros()).expect("an auto-resizing histogram takes any value");
        self.count += 1;
        self.sum_ns += u128::from(span.as_nanos());
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// `span` was seen `count` times.
    pub fn record_many(&mut self, span: Span, count: u64) {
        if count == 0 {
            return;
        }
        self.micros.saturating_record_n(span.as_micros(), u32::try_from(count).unwrap_or(u32::MAX));
        self.count += count;
        self.sum_ns += u128::from(span.as_nanos()) * u128::from(count);
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// Everything that `other` saw was seen.
    pub fn merge(&mut self, other: &Distribution) {
        self.micros.add(&other.micros).expect("an auto-resizing histogram takes any value");
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many spans were seen.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest, exactly.
    pub fn min(&self) -> Option<Span> {
        (self.count > 0).then_some(self.min)
    }

    /// The longest, exactly.
    pub fn max(&self) -> Option<Span> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, exactly, rounded down to a nanosecond.
    pub fn mean(&self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_nanos((self.sum_ns / u128::from(self.count)) as u64))
    }

    /// The smallest span that at least the share `q` (0 to 1) of the seen ones do not exceed.
    pub fn quantile(&self, q: f64) -> Option<Span> {
        (self.count > 0).then(|| Span::from_micros(self.micros.value_at_quantile(q)).max(self.min).min(self.max))
    }

    /// The buckets that are not empty, in rising order: upper value and count.
    pub fn iter(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        self.micros.iter_recorded().map(|bucket| {
            let upper = Span::from_micros(bucket.value_iterated_to());
            (upper.max(self.min).min(self.max), bucket.count_since_last_iteration())
        })
    }
}

/// `span` in milliseconds, as the tables want it.
pub fn ms(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_hundredth_and_the_rest_is_exact() {
        let mut d = Distribution::new();
        for us in 1..=100_000 {
            d.record(Span::from_micros(us));
        }
        for q in [0.01, 0.05, 0.5, 0.95, 0.99] {
            let truth = q * 100_000.0;
            let got = d.quantile(q).unwrap().as_micros() as f64;
            assert!((got - truth).abs() <= truth / 100.0 + 1.0, "{q}: {got} for {truth}");
        }
        assert_eq!(d.min(), Some(Span::from_micros(1)));
        assert_eq!(d.max(), Some(Span::from_micros(100_000)));
        assert_eq!(d.mean(), Some(Span::from_nanos(50_000_500)));
        assert_eq!(d.iter().map(|(_, n)| n).sum::<u64>(), 100_000);
    }

    #[test]
    fn an_empty_distribution_has_no_quantiles() {
        let d = Distribution::new();
        assert_eq!((d.count(), d.min(), d.max(), d.mean(), d.quantile(0.5)), (0, None, None, None, None));
        assert_eq!(d.iter().count(), 0);
    }

    #[test]
    fn a_merge_is_the_same_as_recording_both() {
        let (mut a, mut b, mut both) = (Distribution::new(), Distribution::new(), Distribution::new());
        for us in (10..5_000).step_by(7) {
            a.record(Span::from_micros(us));
            both.record(Span::from_micros(us));
        }
        for ms in 20..400 {
            b.record(Span::from_millis(ms));
            both.record(Span::from_millis(ms));
        }
        a.merge(&b);
        assert_eq!(a.iter().collect::<Vec<_>>(), both.iter().collect::<Vec<_>>());
        assert_eq!((a.count(), a.min(), a.max(), a.mean()), (both.count(), both.min(), both.max(), both.mean()));
    }

    #[test]
    fn a_hundred_milliseconds_fit_into_six_kilobytes() {
        let mut d = Distribution::new();
        d.record(Span::from_millis(100));
        assert!(d.micros.distinct_values() * size_of::<u32>() <= 6_000);
    }

    #[test]
    fn the_longest_span_is_counted_and_not_a_panic() {
        let mut d = Distribution::new();
        d.record(Span::from_secs(3_600));
        d.record(Span::from_nanos(1));
        assert_eq!(d.count(), 2);
        assert_eq!(d.max(), Some(Span::from_secs(3_600)));
    }
}
