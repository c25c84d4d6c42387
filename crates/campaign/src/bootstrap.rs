//! The cluster bootstrap: the test is the unit, and its flows are nested in it ([`units::stats::bootstrap`]). The interval is that
//! between the percentiles of the resamples.

use des::Streams;
use rand_xoshiro::Xoshiro256PlusPlus;
use units::stats::bootstrap::draw;
use units::stats::{interpolated, percentiles_95};

/// Number of resamples.
pub const RESAMPLES: usize = 2000;

/// Returns the statistic of each resample of `tests`; a test is the values of its flows. Resamples without a statistic are left out.
pub fn resample(
    tests: &[Vec<f64>],
    resamples: usize,
    random: &mut Xoshiro256PlusPlus,
    statistic: impl Fn(&mut Vec<f64>) -> Option<f64>,
) -> Vec<f64> {
    let mut pooled = Vec::new();
    let mut found = Vec::with_capacity(resamples);
    if tests.is_empty() {
        return found;
    }
    for _ in 0..resamples {
        pooled.clear();
        draw(tests.len(), random).for_each(|test| pooled.extend_from_slice(&tests[test]));
        found.extend(statistic(&mut pooled));
    }
    found
}

/// Returns the 2.5 % and 97.5 % percentiles of resamples of the median; `None` with fewer than two tests that have a value.
pub fn median_interval(tests: &[Vec<f64>], random: &mut Xoshiro256PlusPlus) -> Option<(f64, f64)> {
    if tests.iter().filter(|flows| !flows.is_empty()).count() < 2 {
        return None;
    }
    let mut medians = resample(tests, RESAMPLES, random, |values| median(values));
    medians.sort_unstable_by(f64::total_cmp);
    percentiles_95(&medians, interpolated)
}

/// A median, and the ends of its 95 % interval; these are missing with fewer than two tests.
pub(crate) type Middle = (f64, Option<f64>, Option<f64>);

/// Returns the median of all flows of `tests` with its interval; `None` without values. `stream` names the random numbers.
pub(crate) fn middle(tests: &[Vec<f64>], seed: u64, stream: &str) -> Option<Middle> {
    let middle = median(&mut tests.concat())?;
    let interval = median_interval(tests, &mut Streams::new(seed, 0).named(stream));
    Some((middle, interval.map(|(low, _)| low), interval.map(|(_, high)| high)))
}

/// Returns the median, of an even number the mean of the two in the middle ([`interpolated`]). Sorts the values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    interpolated(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn share(found: &[f64], value: f64) -> f64 {
        found.iter().filter(|&&other| (other - value).abs() < 1e-12).count() as f64 / found.len() as f64
    }

    fn medians(tests: &[Vec<f64>]) -> Vec<f64> {
        resample(tests, 20_000, &mut Xoshiro256PlusPlus::seed_from_u64(1), |values| median(values))
    }

    #[test]
    fn medians_are_those_worked_by_hand() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn medians_of_three_tests_are_as_likely_as_worked_by_hand() {
        // The median is 1 if at least two of three draws are 1: (3 * 2 + 1) / 27 = 7/27. Likewise 3; the rest is 13/27.
        let found = medians(&[vec![1.0], vec![2.0], vec![3.0]]);
        for (value, expected) in [(1.0, 7.0 / 27.0), (2.0, 13.0 / 27.0), (3.0, 7.0 / 27.0)] {
            assert!((share(&found, value) - expected).abs() < 0.015, "{value}: {}", share(&found, value));
        }
    }

    #[test]
    fn flows_stay_with_their_test() {
        // Whole tests are drawn: both times the first (1/4) or one of each (1/2) gives a median of 1, both times the second 5. Were
        // flows drawn on their own, 5 would need three of five draws: 5.8 %.
        let found = medians(&[vec![1.0; 4], vec![5.0]]);
        assert!((share(&found, 1.0) - 0.75).abs() < 0.015);
        assert!((share(&found, 5.0) - 0.25).abs() < 0.015);
    }

    #[test]
    fn two_tests_span_the_interval_and_one_has_none() {
        let random = || Xoshiro256PlusPlus::seed_from_u64(9);
        assert_eq!(median_interval(&[vec![1.0], vec![3.0]], &mut random()), Some((1.0, 3.0)));
        assert_eq!(median_interval(&[vec![1.0, 2.0], vec![]], &mut random()), None);
        assert_eq!(median_interval(&[], &mut random()), None);
        // Equal tests leave no doubt.
        assert_eq!(median_interval(&[vec![2.0], vec![2.0], vec![2.0]], &mut random()), Some((2.0, 2.0)));
    }

    #[test]
    fn the_same_stream_gives_the_same_interval() {
        let tests: Vec<Vec<f64>> = (0..20).map(|n| vec![f64::from(n), f64::from(n * n % 7)]).collect();
        let of = |seed| median_interval(&tests, &mut Xoshiro256PlusPlus::seed_from_u64(seed));
        assert_eq!(of(1), of(1));
        let (low, high) = of(1).expect("enough tests");
        let middle = median(&mut tests.concat()).expect("values");
        assert!(low <= middle && middle <= high);
    }
}
