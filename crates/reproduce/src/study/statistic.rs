//! Statistics of pooled values.

use super::bootstrap::Pair;
use serde::Deserialize;
use units::stats::{median, nearest_rank, select_nearest_rank};

/// The quantile 0.95 of the chi-squared distribution with two degrees of freedom: -2 ln 0.05.
const CHI2_95: f64 = 5.991_464_547_107_98;
/// Fewest values of an interval that counts for a rank correlation.
const FEWEST: usize = 10;

/// A statistic. Those of pairs need a second quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The median.
    #[default]
    Median,
    /// The mean.
    Mean,
    /// The 95th percentile.
    P95,
    /// The 99th percentile.
    P99,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The standard deviation over the mean.
    Variation,
    /// The share of values above a bound, in per cent.
    Share,
    /// Spearman's rank correlation.
    Spearman,
    /// Pearson's correlation.
    Pearson,
    /// The area of the ellipse that covers 95 % of normally distributed pairs.
    Ellipse,
}

impl Statistic {
    pub(super) fn is_of_pairs(self) -> bool {
        matches!(self, Statistic::Spearman | Statistic::Pearson | Statistic::Ellipse)
    }

    /// Returns its value, if the values have one.
    pub(super) fn of(self, pairs: &[Pair], above: f64, bin: f64) -> Option<f64> {
        if pairs.is_empty() {
            return None;
        }
        let n = pairs.len() as f64;
        let values = || pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>();
        let at = |share: f64| select_nearest_rank(&mut values(), share);
        let mean = || pairs.iter().map(|pair| pair.1).sum::<f64>() / n;
        match self {
            Statistic::Median => median(&mut values()),
            Statistic::Mean => Some(mean()),
            Statistic::P95 => at(0.95),
            Statistic::P99 => at(0.99),
            Statistic::Min => at(0.0),
            Statistic::Max => at(1.0),
            Statistic::Variation => {
                let mean = mean();
                let variance = pairs.iter().map(|pair| (pair.1 - mean).powi(2)).sum::<f64>() / (n - 1.0);
                (n > 1.0 && mean != 0.0).then(|| variance.sqrt() / mean)
            }
            Statistic::Share => Some(pairs.iter().filter(|pair| pair.1 > above).count() as f64 / n * 100.0),
            Statistic::Pearson => pearson(pairs),
            Statistic::Spearman => {
                let binned = if bin > 0.0 { means(pairs, bin) } else { pairs.to_vec() };
                let ranks = |values: Vec<f64>| ranks(&values);
                let x = ranks(binned.iter().map(|pair| pair.0).collect());
                let y = ranks(binned.iter().map(|pair| pair.1).collect());
                pearson(&x.into_iter().zip(y).collect::<Vec<Pair>>())
            }
            Statistic::Ellipse => Ellipse::of(pairs).map(|ellipse| ellipse.area()),
        }
    }
}

/// The means of the values in each interval of width `bin` of `x` with enough of them.
fn means(pairs: &[Pair], bin: f64) -> Vec<Pair> {
    let mut sums = std::collections::BTreeMap::new();
    for (x, y) in pairs {
        let (sum, n) = sums.entry((x / bin).floor() as i64).or_insert((0.0, 0usize));
        *sum += y;
        *n += 1;
    }
    let enough = sums.into_iter().filter(|(_, (_, n))| *n >= FEWEST);
    enough.map(|(i, (sum, n))| ((i as f64 + 0.5) * bin, sum / n as f64)).collect()
}

/// The ranks of values, from 1; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let first = order.iter().position(|i| *i == equal[0]).unwrap_or_default();
        let rank = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|&i| ranks[i] = rank);
    }
    ranks
}

/// Returns the means of pairs over intervals of the first.
pub(super) fn binned(pairs: &[Pair], bin: f64) -> Vec<Pair> {
    means(pairs, bin)
}

/// Returns the cumulative distribution of values in at most `most` steps: a quantile, and its share.
pub(crate) fn steps(mut values: Vec<f64>, most: usize) -> impl Iterator<Item = Pair> {
    values.sort_by(f64::total_cmp);
    let n = values.len().min(most);
    (1..=n).filter_map(move |i| {
        let share = i as f64 / n as f64;
        Some((nearest_rank(&values, share)?, share))
    })
}

/// Means, variances and covariance of pairs.
struct Moments {
    mean: Pair,
    variance: Pair,
    covariance: f64,
}

fn moments(pairs: &[Pair]) -> Option<Moments> {
    let n = pairs.len() as f64;
    if n < 2.0 {
        return None;
    }
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / n, y + pair.1 / n));
    let sum = |of: &dyn Fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / (n - 1.0);
    Some(Moments {
        mean: (x, y),
        variance: (sum(&|p| (p.0 - x).powi(2)), sum(&|p| (p.1 - y).powi(2))),
        covariance: sum(&|p| (p.0 - x) * (p.1 - y)),
    })
}

fn pearson(pairs: &[Pair]) -> Option<f64> {
    let m = moments(pairs)?;
    let scale = (m.variance.0 * m.variance.1).sqrt();
    (scale > 0.0).then(|| m.covariance / scale)
}

/// The ellipse that covers 95 % of pairs with a normal distribution of these means and covariances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ellipse {
    centre: Pair,
    /// The lower triangle of the Cholesky factor of the covariance: `[xx, yx, yy]`.
    factor: [f64; 3],
}

impl Ellipse {
    /// Returns the ellipse of at least three pairs that are not on a line.
    pub(crate) fn of(pairs: &[Pair]) -> Option<Ellipse> {
        let m = moments(pairs).filter(|_| pairs.len() >= 3)?;
        let xx = m.variance.0.sqrt();
        let yx = m.covariance / xx;
        let rest = m.variance.1 - yx * yx;
        (xx > 0.0 && rest > 0.0).then(|| Ellipse { centre: m.mean, factor: [xx, yx, rest.sqrt()] })
    }

    fn area(&self) -> f64 {
        core::f64::consts::PI * CHI2_95 * self.factor[0] * self.factor[2]
    }

    /// Returns `n` points of its outline, the last one the first again.
    pub(crate) fn outline(&self, n: usize) -> Vec<Pair> {
        let [xx, yx, yy] = self.factor;
        let r = CHI2_95.sqrt();
        let at = |i: usize| {
            let (sin, cos) = (core::f64::consts::TAU * i as f64 / (n - 1) as f64).sin_cos();
            (self.centre.0 + r * xx * cos, self.centre.1 + r * (yx * cos + yy * sin))
        };
        (0..n).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(statistic: Statistic, values: &[f64]) -> f64 {
        let pairs: Vec<Pair> = values.iter().map(|y| (0.0, *y)).collect();
        statistic.of(&pairs, 2.5, 0.0).unwrap()
    }

    #[test]
    fn medians_and_percentiles_are_those_of_the_definitions() {
        assert_eq!(of(Statistic::Median, &[5.0, 1.0, 3.0]), 3.0);
        assert_eq!(of(Statistic::Median, &[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(of(Statistic::Median, &[2.0, 2.0, 1.0, 9.0]), 2.0);
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            [of(Statistic::P95, &hundred), of(Statistic::P99, &hundred), of(Statistic::Max, &hundred)],
            [95.0, 99.0, 100.0]
        );
        assert_eq!(of(Statistic::Share, &[1.0, 2.5, 3.0, 4.0]), 50.0);
        // Mean 3, variance (4 + 0 + 4) / 2 = 4.
        assert!((of(Statistic::Variation, &[1.0, 3.0, 5.0]) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Statistic::Mean.of(&[], 0.0, 0.0), None);
    }

    #[test]
    fn correlations_are_those_of_hand_worked_pairs() {
        // Deviations (-1, -2), (0, 1), (1, 1): 3 / sqrt(2 * 6).
        let pairs = [(1.0, 1.0), (2.0, 4.0), (3.0, 4.0)];
        let r = Statistic::Pearson.of(&pairs, 0.0, 0.0).unwrap();
        assert!((r - 3.0 / 12f64.sqrt()).abs() < 1e-12, "{r}");
        // Ranks 1, 2, 3 and 1, 2.5, 2.5: 1.5 / sqrt(2 * 1.5).
        let rho = Statistic::Spearman.of(&pairs, 0.0, 0.0).unwrap();
        assert!((rho - 1.5 / 3f64.sqrt()).abs() < 1e-12, "{rho}");
        assert_eq!(Statistic::Pearson.of(&[(1.0, 1.0), (1.0, 2.0)], 0.0, 0.0), None);
    }

    #[test]
    fn ranks_may_be_those_of_means_over_intervals() {
        // Ten values in each of the intervals from 0, 5 and 10, with means 2, 1 and 3, and too few beyond.
        let pairs: Vec<Pair> =
            (0..10).flat_map(|_| [(1.0, 2.0), (6.0, 1.0), (12.0, 3.0)]).chain([(99.0, -9.0)]).collect();
        // Ranks 1, 2, 3 and 2, 1, 3.
        assert!((Statistic::Spearman.of(&pairs, 0.0, 5.0).unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_ellipse_has_the_area_of_its_covariance_and_passes_where_it_should() {
        // Variances 2/3 * 2 = 4/3 and 4/3 * 4 = 16/3 without covariance.
        let pairs = [(-1.0, -2.0), (1.0, -2.0), (-1.0, 2.0), (1.0, 2.0)];
        let ellipse = Ellipse::of(&pairs).unwrap();
        let expected = core::f64::consts::PI * CHI2_95 * (4.0 / 3.0f64 * 16.0 / 3.0).sqrt();
        assert!((ellipse.area() - expected).abs() < 1e-9, "{} {expected}", ellipse.area());
        let outline = ellipse.outline(5);
        assert!((outline[0].0 - (CHI2_95 * 4.0 / 3.0).sqrt()).abs() < 1e-9 && outline[0].1.abs() < 1e-9);
        assert!((outline[4].0 - outline[0].0).abs() < 1e-9);
        assert!(Ellipse::of(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]).is_none());
    }
}
