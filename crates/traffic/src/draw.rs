//! Random sizes and durations.
//!
//! Each draw takes a fixed number of words from the stream, and logarithms and powers are libm's, so that equal streams
//! give equal numbers on any machine.

use crate::action::Random;
use rand_core::Rng;
use schemars::Schema;
use units::check::{Check, Range, Valid};
use units::parameters::Parameter;
use units::{Bytes, Span, Time, kinds};

kinds! { "Size",
    /// An amount of data, constant or random. A bare amount is constant.
    // Random sizes are rounded to the nearest byte, at least one.
    #[derive(Copy)]
    pub enum Size {
        /// Constant.
        Constant {
            /// The amount.
            size: Bytes,
        },
        /// Exponentially distributed.
        Exponential {
            /// Mean.
            mean: Bytes,
        },
        /// Pareto distributed.
        // At least `mean * (shape - 1) / shape`.
        Pareto {
            /// Mean.
            mean: Bytes,
            /// Shape; smaller values give a heavier tail.
            #[serde(default = "pareto_shape")]
            shape: f64,
        },
        /// Pareto distributed, bounded at both ends.
        BoundedPareto {
            /// The smallest amount.
            min: Bytes,
            /// The largest amount.
            max: Bytes,
            /// Shape; smaller values give a heavier tail.
            #[serde(default = "pareto_shape")]
            shape: f64,
        },
        /// Log-normally distributed.
        LogNormal {
            /// Mean (not that of the logarithm).
            mean: Bytes,
            /// Standard deviation of the natural logarithm.
            #[serde(default = "one")]
            sigma: f64,
        },
    }
}

kinds! { "Gap",
    /// A duration, constant or random. A bare duration is constant.
    #[derive(Copy)]
    pub enum Gap {
        /// Constant.
        Constant {
            /// The duration.
            time: Span,
        },
        /// Exponentially distributed: independent arrivals.
        Exponential {
            /// Mean.
            mean: Span,
        },
        /// Pareto distributed.
        // At least `mean * (shape - 1) / shape`.
        Pareto {
            /// Mean.
            mean: Span,
            /// Shape; smaller values give a heavier tail.
            #[serde(default = "pareto_shape")]
            shape: f64,
        },
    }
}

fn pareto_shape() -> f64 {
    1.5
}

fn one() -> f64 {
    1.0
}

/// Shapes of a Pareto distribution; with 1 or less, it has no mean.
const SHAPES: Range<f64> = Range::above(1.0, 100.0);

impl Parameter for Size {
    type Value = Bytes;

    fn check(&self, key: &str, valid: &Valid<Bytes>, c: &mut Check) {
        let mean = |c: &mut Check, mean| c.range("mean", mean, *valid);
        match *self {
            Size::Constant { size } => c.range(key, size, *valid),
            Size::Exponential { mean: of } => c.key(key, |c| mean(c, of)),
            Size::Pareto { mean: of, shape } => c.key(key, |c| {
                mean(c, of);
                c.range("shape", shape, SHAPES);
            }),
            Size::BoundedPareto { min, max, shape } => c.key(key, |c| {
                c.range("min", min, *valid);
                c.range("max", max, *valid);
                if max < min {
                    c.key("max", |c| c.wrong(format!("{max} is less than the smallest amount, {min}")));
                }
                c.positive("shape", shape, 0.0, 100.0);
            }),
            Size::LogNormal { mean: of, sigma } => c.key(key, |c| {
                mean(c, of);
                c.range("sigma", sigma, 0.0..=5.0);
            }),
        }
    }

    fn describe(_: &Valid<Bytes>, _: &mut Schema) {}
}

impl Parameter for Gap {
    type Value = Span;

    fn check(&self, key: &str, valid: &Valid<Span>, c: &mut Check) {
        match *self {
            Gap::Constant { time } => c.range(key, time, *valid),
            Gap::Exponential { mean } => c.key(key, |c| c.range("mean", mean, *valid)),
            Gap::Pareto { mean, shape } => c.key(key, |c| {
                c.range("mean", mean, *valid);
                c.range("shape", shape, SHAPES);
            }),
        }
    }

    fn describe(_: &Valid<Span>, _: &mut Schema) {}
}

impl Size {
    /// Returns whether it is drawn at random.
    pub fn varies(&self) -> bool {
        !matches!(self, Size::Constant { .. })
    }

    /// Draws a size.
    pub(crate) fn draw(&self, random: &mut Random) -> Bytes {
        let bytes = match *self {
            Size::Constant { size } => return size,
            Size::Exponential { mean } => mean.get() as f64 * exponential(random),
            Size::Pareto { mean, shape } => mean.get() as f64 * pareto(shape, random),
            Size::BoundedPareto { min, max, shape } => {
                let (low, high) = (min.get() as f64, max.get() as f64);
                // The inverse of F(x) = (1 - (low/x)^shape) / (1 - (low/high)^shape).
                let cut = 1.0 - libm::pow(low / high, shape);
                (low * libm::pow(1.0 - (1.0 - uniform(random)) * cut, -1.0 / shape)).min(high)
            }
            Size::LogNormal { mean, sigma } => {
                mean.get() as f64 * libm::exp(sigma * normal(random) - 0.5 * sigma * sigma)
            }
        };
        // The conversion saturates; it cannot fail.
        Bytes::new(((bytes + 0.5) as u64).max(1))
    }
}

impl Gap {
    /// Returns whether it is drawn at random.
    pub fn varies(&self) -> bool {
        !matches!(self, Gap::Constant { .. })
    }

    /// Draws a duration.
    pub(crate) fn draw(&self, random: &mut Random) -> Span {
        match *self {
            Gap::Constant { time } => time,
            Gap::Exponential { mean } => scaled(mean, exponential(random)),
            Gap::Pareto { mean, shape } => scaled(mean, pareto(shape, random)),
        }
    }
}

/// Returns `span * factor`, rounded to a nanosecond; at most [`Span::MAX`].
pub(crate) fn scaled(span: Span, factor: f64) -> Span {
    Span::from_nanos((span.as_nanos() as f64 * factor + 0.5) as u64)
}

/// Returns the time `span` after `time`, or [`Time::MAX`], which means never.
#[inline]
pub(crate) fn after(time: Time, span: Span) -> Time {
    Time::from_nanos(time.as_nanos().saturating_add(span.as_nanos()))
}

/// Draws a uniform number in (0, 1], with 53 bits.
pub(crate) fn uniform(random: &mut Random) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    ((random.next_u64() >> 11) + 1) as f64 * STEP
}

/// Draws an exponential number with mean 1.
pub(crate) fn exponential(random: &mut Random) -> f64 {
    -libm::log(uniform(random))
}

/// Draws a Pareto number with mean 1: the scale is (shape - 1) / shape.
pub(crate) fn pareto(shape: f64, random: &mut Random) -> f64 {
    (shape - 1.0) / shape * libm::pow(uniform(random), -1.0 / shape)
}

/// Draws a normal number with mean 0 and variance 1 (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(random));
    radius * libm::cos(2.0 * core::f64::consts::PI * uniform(random))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;

    const DRAWS: usize = 200_000;

    fn random() -> Random {
        Random::seed_from_u64(7)
    }

    fn mean(size: Size) -> f64 {
        let mut random = random();
        (0..DRAWS).map(|_| size.draw(&mut random).get() as f64).sum::<f64>() / DRAWS as f64
    }

    /// Five standard errors of a mean of [`DRAWS`] draws with this standard deviation.
    fn tolerance(deviation: f64) -> f64 {
        5.0 * deviation / libm::sqrt(DRAWS as f64)
    }

    #[test]
    fn exponential_sizes_have_their_mean_and_the_share_beyond_it_is_one_over_e() {
        let size = Size::Exponential { mean: Bytes::new(100_000) };
        assert!((mean(size) - 1e5).abs() < tolerance(1e5));
        let mut random = random();
        let beyond = (0..DRAWS).filter(|_| size.draw(&mut random).get() > 100_000).count() as f64 / DRAWS as f64;
        let p = libm::exp(-1.0);
        assert!((beyond - p).abs() < tolerance(libm::sqrt(p * (1.0 - p))));
    }

    #[test]
    fn bounded_pareto_sizes_stay_in_their_bounds_and_have_the_closed_forms_mean() {
        let (low, high, shape) = (10_000.0_f64, 1e7_f64, 1.2);
        let size = Size::BoundedPareto { min: Bytes::new(10_000), max: Bytes::new(10_000_000), shape };
        let mut random = random();
        for _ in 0..DRAWS {
            assert!((10_000..=10_000_000).contains(&size.draw(&mut random).get()));
        }
        // E[X^k] = shape * low^shape * (high^(k-shape) - low^(k-shape)) / ((k-shape) * (1 - (low/high)^shape))
        let moment = |k: f64| {
            shape * libm::pow(low, shape) * (libm::pow(high, k - shape) - libm::pow(low, k - shape))
                / ((k - shape) * (1.0 - libm::pow(low / high, shape)))
        };
        let deviation = libm::sqrt(moment(2.0) - moment(1.0) * moment(1.0));
        assert!((mean(size) - moment(1.0)).abs() < tolerance(deviation));
    }

    #[test]
    fn pareto_sizes_have_the_mean_that_is_asked_for() {
        // At shape 4 the variance is mean^2 / (shape * (shape - 2)) = mean^2 / 8.
        let size = Size::Pareto { mean: Bytes::new(60_000), shape: 4.0 };
        assert!((mean(size) - 6e4).abs() < tolerance(6e4 / libm::sqrt(8.0)));
        let mut random = random();
        // The scale is 3/4 of the mean.
        assert!((0..DRAWS).all(|_| size.draw(&mut random).get() >= 45_000));
    }

    #[test]
    fn log_normal_sizes_have_the_mean_that_is_asked_for_and_its_median_below() {
        let (asked, sigma) = (50_000.0, 1.0);
        let size = Size::LogNormal { mean: Bytes::new(50_000), sigma };
        let deviation = asked * libm::sqrt(libm::exp(sigma * sigma) - 1.0);
        assert!((mean(size) - asked).abs() < tolerance(deviation));
        let median = asked * libm::exp(-0.5 * sigma * sigma);
        let mut random = random();
        let below = (0..DRAWS).filter(|_| (size.draw(&mut random).get() as f64) < median).count() as f64;
        assert!((below / DRAWS as f64 - 0.5).abs() < tolerance(0.5));
    }

    #[test]
    fn exponential_lengths_have_their_mean() {
        let length = Gap::Exponential { mean: Span::from_millis(40) };
        let mut random = random();
        let sum: f64 = (0..DRAWS).map(|_| length.draw(&mut random).as_secs_f64()).sum();
        assert!((sum / DRAWS as f64 - 0.04).abs() < tolerance(0.04));
    }

    #[test]
    fn a_fixed_draw_takes_nothing_from_the_stream() {
        let (mut used, fresh) = (random(), random());
        assert_eq!(Size::Constant { size: Bytes::new(3) }.draw(&mut used), Bytes::new(3));
        assert_eq!(Gap::Constant { time: Span::from_nanos(3) }.draw(&mut used), Span::from_nanos(3));
        assert_eq!(used, fresh);
    }
}
