//! Means with confidence intervals by Student's t distribution.

/// The 97.5 % quantiles of Student's t distribution with 1 to 30 degrees of freedom.
const STUDENT_T: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448,
    2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484,
    2.0452, 2.0423,
];
/// The same quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// Returns the 97.5 % quantile of Student's t, the factor of a 95 % confidence interval, for at least one degree of freedom: a
/// table, and beyond it the first two terms of the Cornish-Fisher expansion, which are within 0.0002 of it.
///
/// # Panics
/// With no degree of freedom.
pub fn student_t(degrees: usize) -> f64 {
    if let Some(t) = STUDENT_T.get(degrees - 1) {
        return *t;
    }
    let (z, v) = (NORMAL, degrees as f64);
    let (z3, z5) = (z * z * z, z * z * z * z * z);
    z + (z3 + z) / (4.0 * v) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
}

/// A mean of independent values, and the uncertainty of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Estimated variance of the mean; NaN of a single value.
    variance: f64,
    /// Degrees of freedom of the variance: one less than there are values.
    degrees: usize,
}

impl Mean {
    /// Returns the mean of some values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Mean> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let degrees = values.len().checked_sub(1)?;
        Some(Mean { mean, variance: squares / (count - 1.0) / count, degrees })
    }

    /// Returns half the width of the mean's 95 % confidence interval; `None` of a single value.
    pub fn half_width(&self) -> Option<f64> {
        (self.degrees > 0).then(|| student_t(self.degrees) * self.variance.sqrt())
    }

    /// Returns half the width of the 95 % confidence interval of the difference between two means whose values may vary
    /// differently (Welch, The generalization of 'Student's' problem, Biometrika, 1947); `None` if one is of a single value.
    /// The degrees of freedom are rounded down.
    pub fn half_width_beside(&self, other: &Mean) -> Option<f64> {
        if self.degrees == 0 || other.degrees == 0 {
            return None;
        }
        let variance = self.variance + other.variance;
        let [a, b] = [self, other].map(|mean| mean.variance * mean.variance / mean.degrees as f64);
        let degrees = if a + b > 0.0 { variance * variance / (a + b) } else { 1.0 };
        Some(student_t((degrees as usize).max(1)) * variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_beyond_the_table_are_those_of_printed_tables() {
        // Printed with three decimals in most textbooks.
        for (degrees, t) in [(1, 12.706), (10, 2.228), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)] {
            assert!((student_t(degrees) - t).abs() < 6e-4, "{degrees}: {}", student_t(degrees));
        }
        assert!((student_t(31) - 2.0395).abs() < 2e-4);
        assert!((student_t(1_000_000) - NORMAL).abs() < 1e-5);
    }

    #[test]
    fn a_means_interval_is_that_worked_by_hand() {
        // Deviations -2, 0, 2: variance 8 / 2 = 4, of the mean 4 / 3; with 2 degrees of freedom 4.3027 * sqrt(4 / 3).
        let mean = Mean::of(&[1.0, 3.0, 5.0]).expect("there are values");
        assert_eq!(mean.mean, 3.0);
        assert!((mean.half_width().expect("three values") - 4.3027 * (4.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Mean::of(&[7.0]).map(|one| (one.mean, one.half_width())), Some((7.0, None)));
        assert_eq!(Mean::of(&[2.0, 2.0]).and_then(|same| same.half_width()), Some(0.0));
        assert_eq!(Mean::of(&[]), None);
    }

    #[test]
    fn the_interval_of_a_difference_is_that_worked_by_hand() {
        // Variances of the means: 4 / 3 with 2 degrees of freedom, and 1, 2, 3, 4: (2.25 + 0.25) * 2 / 3 / 4 = 5 / 12 with 3.
        // Together 7 / 4. Welch: (49 / 16) / (16 / 9 / 2 + 25 / 144 / 3) = 3.0625 / 0.946759 = 3.23, so 3 degrees: 3.1824.
        let [a, b] = [&[1.0, 3.0, 5.0][..], &[1.0, 2.0, 3.0, 4.0]].map(|values| Mean::of(values).expect("values"));
        let expected = 3.1824 * 1.75f64.sqrt();
        assert!((a.half_width_beside(&b).expect("more than one") - expected).abs() < 1e-12);
        assert_eq!(a.half_width_beside(&b), b.half_width_beside(&a));
        let one = Mean::of(&[1.0]).expect("a value");
        assert_eq!((a.half_width_beside(&one), one.half_width_beside(&a)), (None, None));
    }
}
