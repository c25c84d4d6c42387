//! Student's t distribution, for intervals of means.

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
