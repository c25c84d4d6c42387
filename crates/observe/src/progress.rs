//! Bytes of a flow over time.

use units::Span;

/// The most samples of a flow; beyond that, every second one is dropped and the interval doubles.
const MOST_SAMPLES: usize = 4096;

/// Bytes of a flow over time since its start. Both never decrease. Memory is bounded: old samples are thinned out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    interval: Span,
    list: Vec<(Span, u64)>,
    next: Span,
}

impl Samples {
    /// Starts with at least `interval` between two samples.
    pub fn new(interval: Span) -> Samples {
        Samples { interval, list: Vec::new(), next: Span::ZERO }
    }

    /// Records a sample, unless the latest one is too recent.
    pub fn record(&mut self, time: Span, bytes: u64) {
        if time >= self.next {
            self.push(time, bytes);
            self.next = time + self.interval;
        }
    }

    /// Records the last sample, whatever the interval.
    pub fn finish(&mut self, time: Span, bytes: u64) {
        self.push(time, bytes);
    }

    fn push(&mut self, time: Span, bytes: u64) {
        if let Some(&(last, known)) = self.list.last() {
            if time < last || bytes < known || (time, bytes) == (last, known) {
                return;
            }
            if time == last {
                self.list.pop();
            }
        }
        if self.list.len() == MOST_SAMPLES {
            let mut keep = false;
            self.list.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval = self.interval * 2;
        }
        self.list.push((time, bytes));
    }

    /// Returns the latest sample.
    pub fn last(&self) -> Option<(Span, u64)> {
        self.list.last().copied()
    }

    /// Returns the samples in order.
    pub fn as_slice(&self) -> &[(Span, u64)] {
        &self.list
    }

    /// Returns the bytes at `time`, interpolated between the samples around it, from (0, 0) on.
    pub fn bytes_at(&self, time: Span) -> f64 {
        let index = self.list.partition_point(|&(at, _)| at < time);
        let before = index.checked_sub(1).map_or((Span::ZERO, 0), |index| self.list[index]);
        let Some(&after) = self.list.get(index) else { return before.1 as f64 };
        let width = after.0.saturating_sub(before.0).as_secs_f64();
        if width == 0.0 {
            return after.1 as f64;
        }
        let share = time.saturating_sub(before.0).as_secs_f64() / width;
        before.1 as f64 + share * (after.1 - before.1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_keep_their_interval_their_last_one_and_a_bound() {
        let mut samples = Samples::new(Span::from_millis(10));
        for ms in 0..100_000 {
            samples.record(Span::from_millis(ms), ms * 100);
        }
        samples.finish(Span::from_millis(100_000), 10_000_000);
        let list = samples.as_slice();
        assert!(list.len() <= MOST_SAMPLES && list.len() > MOST_SAMPLES / 2, "{}", list.len());
        assert!(list.is_sorted() && list.last() == Some(&(Span::from_secs(100), 10_000_000)));
        assert_eq!(samples.bytes_at(Span::from_millis(50_005)), 5_000_500.0);
    }
}
