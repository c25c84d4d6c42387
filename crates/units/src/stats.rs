//! Quantiles, medians and confidence intervals: one definition for each purpose.
//!
//! # Quantiles
//!
//! Sources: Hyndman and Fan, Sample Quantiles in Statistical Packages (The American Statistician, 1996), whose types R numbers
//! too, and the methods of `numpy.quantile`. Of `n` values in ascending order, the quantile of a share `q` (0 to 1) is
//!
//! | function | definition | numpy | purpose |
//! | --- | --- | --- | --- |
//! | [`nearest_rank`] | the smallest value that at least the share `q` does not exceed (type 1) | `inverted_cdf` | figures of packets and samples: always a value that was measured |
//! | [`interpolated`] | linear between the values around place `q (n - 1)`, counted from 0 (type 7) | `linear` | few values, as of tests of a campaign |
//! | [`nearest_place`] | the value nearest to place `q (n - 1)`, of two equally near the upper one | `nearest`, which takes the one with the even place | estimates from bins |
//! | [`lower_place`] | the value at place `q (n - 1)`, rounded down | `lower` | the 95th percentile that `ranway measure` prints |
//!
//! Of an odd number of values, all have the same median. Of an even one, it is the lower of the two in the middle
//! (`nearest_rank`, `lower_place`), the upper one (`nearest_place`, [`upper_median`]), or their mean (`interpolated`,
//! [`median`]).
//!
//! [`rank_of_weighted`] and [`Distribution::quantile`](crate::Distribution::quantile) have the definition of `nearest_rank`
//! for values with counts.
//!
//! # Intervals
//!
//! | interval | purpose |
//! | --- | --- |
//! | [`Mean::half_width`] | of a mean, by Student's t |
//! | [`Mean::half_width_beside`] | of the difference between two means, by Welch's t |
//! | [`percentiles_95`] | of any statistic, by the percentiles of its [bootstrap] |

pub mod bootstrap;
mod student;

pub use student::{Mean, student_t};

/// Bounds of the share of resamples that a 95 % interval holds.
const TAILS: [f64; 2] = [0.025, 0.975];

/// Returns how many of `count` values, at least one, the quantile of `share` is not less than.
pub(crate) fn rank(count: u64, share: f64) -> u64 {
    ((share * count as f64).ceil() as u64).clamp(1, count.max(1))
}

/// Returns the smallest of ascending values that at least `share` of them do not exceed (type 1, `inverted_cdf`); `None`
/// without values.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    sorted.get(rank(sorted.len() as u64, share) as usize - 1).copied()
}

/// Returns the [`nearest_rank`] of values in any order, in linear time. Changes their order.
pub fn select_nearest_rank(values: &mut [f64], share: f64) -> Option<f64> {
    select(values, rank(values.len() as u64, share) as usize - 1)
}

/// Returns the [`nearest_rank`] of values that occur so many times each, in ascending order; `None` if nothing occurs.
pub fn rank_of_weighted(buckets: &[(f64, u64)], share: f64) -> Option<f64> {
    let wanted = rank(buckets.iter().map(|(_, count)| count).sum(), share);
    let mut seen = 0;
    buckets.iter().find_map(|&(value, count)| {
        seen += count;
        (seen >= wanted).then_some(value)
    })
}

/// Returns the quantile of ascending values, interpolated linearly between them (type 7, `linear`); `None` without values.
pub fn interpolated(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    Some(low + part * (high - low))
}

/// Returns the ascending value whose place is nearest to the share of the last one's, and the upper of two that are equally
/// near; `None` without values.
pub fn nearest_place<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).copied()
}

/// Returns the ascending value at the share of the last one's place, rounded down (`lower`); `None` without values.
pub fn lower_place<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).floor() as usize).copied()
}

/// Returns the median of values in any order, of an even number the mean of the two in the middle, in linear time; `None`
/// without values. Equals [`interpolated`] at 0.5, but for the rounding of the last digit. Changes the order of the values.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let upper = upper_median(values)?;
    // The values in front of the upper one are not greater.
    let below = &values[..values.len() / 2];
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| values.len().is_multiple_of(2));
    Some(lower.map_or(upper, |lower| (lower + upper) / 2.0))
}

/// Returns the median of values in any order, of an even number the upper of the two in the middle, in linear time; `None`
/// without values. Changes the order of the values.
pub fn upper_median(values: &mut [f64]) -> Option<f64> {
    select(values, values.len() / 2)
}

/// Returns the value that is at this place in ascending order.
fn select(values: &mut [f64], place: usize) -> Option<f64> {
    (place < values.len()).then(|| *values.select_nth_unstable_by(place, f64::total_cmp).1)
}

/// Returns the 2.5 % and 97.5 % percentiles of resamples of a statistic, in ascending order, by one of the definitions above:
/// the bounds of its 95 % interval (the percentile method; Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
/// section 13.3).
pub fn percentiles_95(resamples: &[f64], quantile: fn(&[f64], f64) -> Option<f64>) -> Option<(f64, f64)> {
    let [low, high] = TAILS.map(|share| quantile(resamples, share));
    low.zip(high)
}

#[cfg(test)]
mod tests;
