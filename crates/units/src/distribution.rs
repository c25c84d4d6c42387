//! A distribution of spans in little memory.
//!
//! A log-linear histogram of microseconds, as HDR histograms of 2 significant digits are: a bucket for each value below
//! 256, then 128 to each power of two, so that a quantile is at most 1 % above the true value (and at least 1 us apart
//! from it). Count, sum, minimum and maximum are exact. A distribution up to 100 ms takes about 5 kB.

use crate::{Span, stats};

/// Buckets to a power of two, as a power of two.
const BITS: u32 = 7;

/// How often which span was seen.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// By bucket, up to that of the longest span.
    buckets: Vec<u32>,
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
        Distribution { buckets: Vec::new(), count: 0, sum_ns: 0, min: Span::MAX, max: Span::ZERO }
    }

    /// `span` was seen. Allocates only when it is longer than everything before.
    #[inline]
    pub fn record(&mut self, span: Span) {
        self.record_many(span, 1);
    }

    /// `span` was seen `count` times.
    #[inline]
    pub fn record_many(&mut self, span: Span, count: u64) {
        if count == 0 {
            return;
        }
        let (bucket, n) = (bucket(span.as_micros()), u32::try_from(count).unwrap_or(u32::MAX));
        match self.buckets.get_mut(bucket) {
            Some(seen) => *seen = seen.saturating_add(n),
            None => self.grow(bucket, n),
        }
        self.count += count;
        self.sum_ns += u128::from(span.as_nanos()) * u128::from(count);
        self.min = self.min.min(span);
        self.max = self.max.max(span);
    }

    /// The first span in `bucket`, which is the longest so far, was seen `n` times.
    #[cold]
    fn grow(&mut self, bucket: usize, n: u32) {
        // Up to the next power of two of microseconds, so that it happens seldom.
        self.buckets.resize((bucket | ((1 << BITS) - 1)) + 1, 0);
        self.buckets[bucket] = n;
    }

    /// Everything that `other` saw was seen.
    pub fn merge(&mut self, other: &Distribution) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (n, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *n = n.saturating_add(*more);
        }
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

    /// The smallest span that at least the share `q` (0 to 1) of the seen ones do not exceed, as [`stats::nearest_rank`].
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let wanted = stats::rank(self.count, q);
        let mut seen = 0;
        let reaches = |&(_, n): &(Span, u64)| {
            seen += n;
            seen >= wanted
        };
        // Buckets that are full count less than was seen.
        (self.count > 0).then(|| self.iter().find(reaches).map_or(self.max, |(upper, _)| upper))
    }

    /// The buckets that are not empty, in rising order: upper value and count.
    pub fn iter(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        let upper = |bucket| Span::from_nanos(last(bucket).saturating_mul(1_000)).max(self.min).min(self.max);
        self.buckets.iter().enumerate().filter(|(_, n)| **n > 0).map(move |(i, &n)| (upper(i), n.into()))
    }
}

/// The bucket of a number of microseconds.
#[inline]
fn bucket(micros: u64) -> usize {
    let shift = (63 - BITS).saturating_sub((micros | 1).leading_zeros());
    ((u64::from(shift) << BITS) + (micros >> shift)) as usize
}

/// The last number of microseconds in a bucket.
fn last(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> BITS).saturating_sub(1);
    ((bucket as u64 - (shift << BITS) + 1) << shift) - 1
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
    fn a_bucket_ends_where_the_next_begins_and_is_at_most_a_hundredth_wide() {
        let longest = Span::MAX.as_micros();
        for micros in (0..5_000).chain((13..=54).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + 1])).chain([longest]) {
            let upper = last(bucket(micros));
            assert!(micros <= upper && upper - micros <= micros / 100, "{micros}: {upper}");
            assert_eq!(bucket(upper), bucket(micros));
            assert_eq!(bucket(upper + 1), bucket(micros) + 1);
        }
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
        assert!(d.buckets.capacity() * size_of::<u32>() <= 6_000);
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
