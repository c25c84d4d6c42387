//! A histogram of times, which a thread adds to while others read it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds of the buckets: from 0.25 ms to 8 s, each twice the one before it.
const BOUNDS_US: [u64; 16] = [
    250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000, 2_048_000,
    4_096_000, 8_192_000,
];

/// Times by their length.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// The last bucket is for what exceeds all bounds.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    pub(crate) fn add(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.buckets[BOUNDS_US.partition_point(|&bound| bound < us)].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }

    /// Returns the sum of all times in seconds, their number, and the number in each bucket by its upper bound in seconds.
    pub(crate) fn total(parts: &[&Histogram]) -> (f64, u64, Vec<(f64, u64)>) {
        let sum_us: u64 = parts.iter().map(|part| part.sum_us.load(Relaxed)).sum();
        let count = |bucket: usize| parts.iter().map(|part| part.buckets[bucket].load(Relaxed)).sum::<u64>();
        let bounds = BOUNDS_US.iter().map(|&us| us as f64 * 1e-6).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.enumerate().map(|(bucket, bound)| (bound, count(bucket))).collect();
        (sum_us as f64 * 1e-6, buckets.iter().map(|(_, count)| count).sum(), buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics;
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::DescriptorEncoder;
    use std::sync::Arc;

    #[derive(Debug)]
    struct Two(Arc<[Histogram; 2]>);

    impl Collector for Two {
        fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
            let parts = self.0.iter().collect();
            metrics::Page(encoder).histograms("wait_seconds", "Waits", [([("of", "both")], parts)])
        }
    }

    #[test]
    fn times_of_all_parts_are_in_the_buckets_up_to_their_bounds() {
        let two = Arc::<[Histogram; 2]>::default();
        for (part, us) in [(0, 0), (0, 250), (1, 251), (1, 1_000_000), (0, 9_000_000)] {
            two[part].add(Duration::from_micros(us));
        }
        let text = metrics::text("ranway", Two(two));
        for line in [
            "# TYPE ranway_wait_seconds histogram",
            "ranway_wait_seconds_sum{of=\"both\"} 10.000501",
            "ranway_wait_seconds_count{of=\"both\"} 5",
            "ranway_wait_seconds_bucket{le=\"0.00025\",of=\"both\"} 2",
            "ranway_wait_seconds_bucket{le=\"0.0005\",of=\"both\"} 3",
            "ranway_wait_seconds_bucket{le=\"1.024\",of=\"both\"} 4",
            "ranway_wait_seconds_bucket{le=\"+Inf\",of=\"both\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
