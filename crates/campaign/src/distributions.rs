//! Empirical distributions of tests, with the band of Dvoretzky, Kiefer and Wolfowitz.
//!
//! With a probability of at least 1 - alpha, the distribution that the tests are drawn from is everywhere within
//! epsilon = sqrt(ln(2 / alpha) / (2 n)) of the empirical one of n tests (Massart, The tight constant in the
//! Dvoretzky-Kiefer-Wolfowitz inequality, 1990). Nothing is assumed about the distribution but that tests are independent, so flows of a
//! test count as one value.

use serde::Serialize;
use units::stats::nearest_rank;

/// The probability that the distribution leaves its band.
const ALPHA: f64 = 0.05;
/// By how much of a test a share may miss a number of tests because of rounding.
const ROUNDED: f64 = 1e-9;

/// An empirical distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// A value for each test, in ascending order: the share of tests with at most the i-th value, counted from 1, is i over their number.
    pub values: Vec<f64>,
    /// Half of the width of the 95 % band, as a share: the distribution is within this of the empirical one.
    pub band: f64,
}

impl Distribution {
    /// Makes the distribution of some values; `None` without any.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Distribution> {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as f64;
        (!values.is_empty())
            .then(|| Distribution { values, band: ((2.0 / ALPHA).ln() / (2.0 * count)).sqrt().min(1.0) })
    }

    /// The [`nearest_rank`] of a share; `None` if no value has that share.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        // A share that is a number of tests, but for the last digits.
        let share_of_rank = share - ROUNDED / self.values.len() as f64;
        nearest_rank(&self.values, share_of_rank).filter(|_| share > 0.0 && share_of_rank <= 1.0)
    }

    /// The bounds of a quantile by the band, which hold for all quantiles at once; `None` where the band has none.
    pub(crate) fn bounds(&self, share: f64) -> (Option<f64>, Option<f64>) {
        (self.quantile(share - self.band), self.quantile(share + self.band))
    }

    /// Whether the band bounds the median on both sides, as that of 8 tests does.
    pub(crate) fn bounds_median(&self) -> bool {
        matches!(self.bounds(0.5), (Some(_), Some(_)))
    }

    /// A quantile with its bounds, for people.
    pub(crate) fn text(&self, share: f64, digits: usize) -> String {
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"));
        let (low, high) = self.bounds(share);
        format!("{} [{}, {}]", show(self.quantile(share)), show(low), show(high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_band_is_that_worked_by_hand() {
        // ln(2 / 0.05) is 3.688879: over 200, the root is 0.135810; over 16, 0.480161. With one test it would be 1.358.
        for (count, expected) in [(100, 0.135_810), (8, 0.480_161), (1, 1.0)] {
            let distribution = Distribution::of((0..count).map(f64::from).collect()).expect("there are values");
            assert!((distribution.band - expected).abs() < 1e-6, "{count}: {}", distribution.band);
        }
        assert_eq!(Distribution::of(Vec::new()), None);
    }

    #[test]
    fn quantiles_have_the_bounds_at_which_the_band_crosses_their_share() {
        let hundred = Distribution::of((1..=100).rev().map(f64::from).collect()).expect("there are values");
        assert_eq!(hundred.quantile(0.5), Some(50.0));
        // 0.5 - 0.1358 is 0.3642, which 37 of 100 reach; 0.6358 is reached by 64.
        assert_eq!(hundred.bounds(0.5), (Some(37.0), Some(64.0)));
        // Nothing is below 0 or above 1.
        assert_eq!(hundred.bounds(0.1), (None, Some(24.0)));
        assert_eq!(hundred.bounds(0.9), (Some(77.0), None));
        assert_eq!(hundred.text(0.9, 1), "90.0 [77.0, -]");
        let bounds_median =
            |count: u32| Distribution::of((0..count).map(f64::from).collect()).is_some_and(|of| of.bounds_median());
        assert_eq!([2, 6, 7, 8, 9].map(bounds_median), [false, false, false, true, true]);
        let eight = Distribution::of(vec![3.0, 1.0, 2.0, 4.0, 8.0, 7.0, 6.0, 5.0]).expect("there are values");
        assert_eq!(
            (eight.quantile(0.25), eight.quantile(1.0), eight.bounds(0.5)),
            (Some(2.0), Some(8.0), (Some(1.0), Some(8.0)))
        );
    }
}
