//! Shadowing: variations of the path loss caused by buildings and terrain.
//!
//! Source: M. Gudmundson, "Correlation Model for Shadow Fading in Mobile Radio Systems" (Electronics Letters 27(23),
//! 1991), used by 3GPP TR 38.901 7.4.4: normal in dB, with a correlation of `exp(-d / correlation distance)`. Standard
//! deviations and distances of UMi, UMa, RMa and InH: TR 38.901 Tables 7.4.1-1 and 7.5-6.
//!
//! Deviations:
//! 1. `d` is the distance travelled by the UE, not the distance between two positions: a UE that returns to a position
//!    finds a different shadow, and two UEs at one position have their own shadows.
//! 2. Masts are independent. Sectors of one mast share a shadow.
//! 3. Between points spaced by a sixteenth of the correlation distance, the shadow is interpolated.

use rand_xoshiro::rand_core::SeedableRng;

use crate::{Random, normal};

/// Number of points per correlation distance.
const POINTS: f64 = 16.0;

/// Log-normal shadowing with and without line of sight. Path loss models without this distinction use the former.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// With line of sight.
    pub los: Spread,
    /// Without line of sight.
    pub nlos: Spread,
    /// Standard deviation in dB with line of sight beyond the break point of the path loss.
    pub far_los_sigma_db: f64,
    /// Of a UE in a building, whether or not there is line of sight outside.
    pub indoors: Spread,
}

/// A normal process over distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Standard deviation in dB.
    pub sigma_db: f64,
    /// The distance in metres over which the correlation falls to 1/e; greater than zero.
    pub correlation_m: f64,
}

impl Shadowing {
    /// TR 38.901 UMi street canyon.
    pub const UMI: Shadowing = Shadowing {
        los: Spread { sigma_db: 4.0, correlation_m: 10.0 },
        nlos: Spread { sigma_db: 7.82, correlation_m: 13.0 },
        far_los_sigma_db: 4.0,
        indoors: Spread { sigma_db: 7.0, correlation_m: 7.0 },
    };

    /// TR 38.901 UMa.
    pub const UMA: Shadowing = Shadowing {
        los: Spread { sigma_db: 4.0, correlation_m: 37.0 },
        nlos: Spread { sigma_db: 6.0, correlation_m: 50.0 },
        far_los_sigma_db: 4.0,
        indoors: Spread { sigma_db: 7.0, correlation_m: 7.0 },
    };

    /// TR 38.901 RMa.
    pub const RMA: Shadowing = Shadowing {
        los: Spread { sigma_db: 4.0, correlation_m: 37.0 },
        nlos: Spread { sigma_db: 8.0, correlation_m: 120.0 },
        far_los_sigma_db: 6.0,
        indoors: Spread { sigma_db: 8.0, correlation_m: 120.0 },
    };

    /// TR 38.901 InH office.
    pub const INH: Shadowing = Shadowing {
        los: Spread { sigma_db: 3.0, correlation_m: 10.0 },
        nlos: Spread { sigma_db: 8.03, correlation_m: 6.0 },
        far_los_sigma_db: 3.0,
        indoors: Spread { sigma_db: 8.03, correlation_m: 6.0 },
    };

    /// Creates shadowing that is the same with and without line of sight.
    pub const fn uniform(sigma_db: f64, correlation_m: f64) -> Shadowing {
        let spread = Spread { sigma_db, correlation_m };
        Shadowing { los: spread, nlos: spread, far_los_sigma_db: sigma_db, indoors: spread }
    }
}

/// A normal process with mean 0 and standard deviation 1 over distance.
///
/// Most calls are for a place between the same two points as the last one, so these are kept apart from the others.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Spacing of points in metres. Points are numbered from the start.
    step: f64,
    /// The point before the last place, its value and the next one's.
    left: u64,
    values: [f64; 2],
    past: Box<Past>,
}

/// The last [`REMEMBERED`] points of a process.
#[derive(Clone, Debug)]
struct Past {
    /// Point n is stored at index n modulo the array's length.
    points: [f64; REMEMBERED],
    /// The newest point.
    newest: u64,
    random: Random,
}

/// Number of points stored: about a correlation distance.
const REMEMBERED: usize = 16;

/// The correlation of adjacent points: `exp(-1 / POINTS)`.
const NEIGHBOURS: f64 = 0.939_413_062_813_475_8;

impl Process {
    pub(crate) fn new(correlation_m: f64, seed: u64) -> Process {
        let mut random = Random::seed_from_u64(seed);
        let mut points = [0.0; REMEMBERED];
        points[0] = normal(&mut random);
        points[1] = next(points[0], &mut random);
        let past = Box::new(Past { points, newest: 1, random });
        Process { step: correlation_m / POINTS, left: 0, values: [points[0], points[1]], past }
    }

    /// Returns the value `travelled` metres from the start; before the stored points, the first stored value.
    #[inline]
    pub(crate) fn at(&mut self, travelled: f64) -> f64 {
        let place = travelled / self.step;
        let left = place as u64;
        if left != self.left {
            let Some(values) = self.past.around(left) else { return self.past.oldest() };
            (self.left, self.values) = (left, values);
        }
        let b = place - left as f64;
        let a = 1.0 - b;
        let [left, right] = self.values;
        // Normalised by its own standard deviation, which is below 1 between two points.
        (a * left + b * right) / (a * a + b * b + 2.0 * a * b * NEIGHBOURS).sqrt()
    }
}

impl Past {
    /// Returns the values of point `left` and the next one; `None` if they are no longer stored.
    fn around(&mut self, left: u64) -> Option<[f64; 2]> {
        while self.newest <= left {
            let last = self.points[self.newest as usize % REMEMBERED];
            self.newest += 1;
            self.points[self.newest as usize % REMEMBERED] = next(last, &mut self.random);
        }
        let is_stored = left + REMEMBERED as u64 > self.newest;
        is_stored.then(|| [left, left + 1].map(|point| self.points[point as usize % REMEMBERED]))
    }

    /// Returns the value of the first point stored.
    fn oldest(&self) -> f64 {
        self.points[(self.newest + 1) as usize % REMEMBERED]
    }
}

fn next(left: f64, random: &mut Random) -> f64 {
    NEIGHBOURS * left + libm::sqrt(1.0 - NEIGHBOURS * NEIGHBOURS) * normal(random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shadows_have_mean_0_and_deviation_1_and_lose_correlation_with_distance() {
        // 20 ways of 10,000 correlation distances: 200,000 nearly independent values.
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        let lags = [0.25, 1.0, 2.0, 5.0];
        let mut products = [0.0; 4];
        for seed in 0..20 {
            let mut process = Process::new(13.0, seed);
            let values: Vec<f64> = (0..40_000).map(|n| process.at(f64::from(n) * 13.0 / 4.0)).collect();
            for (n, value) in values[..39_000].iter().enumerate() {
                sum += value;
                squares += value * value;
                count += 1.0;
                for (product, lag) in products.iter_mut().zip(lags) {
                    *product += value * values[n + (lag * 4.0) as usize];
                }
            }
        }
        assert!((sum / count).abs() < 0.01, "mean {}", sum / count);
        assert!((squares / count - 1.0).abs() < 0.015, "variance {}", squares / count);
        for (product, lag) in products.iter().zip(lags) {
            let correlation = product / count;
            assert!((correlation - libm::exp(-lag)).abs() < 0.015, "{correlation} at a lag of {lag}");
        }
    }

    #[test]
    fn a_shadow_between_two_points_has_the_same_deviation() {
        let mut squares = 0.0;
        for seed in 0..20_000 {
            let value = Process::new(16.0, seed).at(0.5);
            squares += value * value;
        }
        assert!((squares / 20_000.0 - 1.0).abs() < 0.03, "variance {}", squares / 20_000.0);
    }

    #[test]
    fn a_shadow_depends_on_the_place_and_not_on_the_places_asked_before() {
        let (mut often, mut seldom) = (Process::new(10.0, 7), Process::new(10.0, 7));
        for n in 0..1000 {
            let place = f64::from(n) * 0.3;
            let value = often.at(place);
            if n % 100 == 99 {
                assert_eq!(value, seldom.at(place));
            }
        }
    }

    #[test]
    fn a_shadow_is_the_same_when_it_is_asked_for_again() {
        let (mut process, mut again) = (Process::new(16.0, 7), Process::new(16.0, 7));
        for n in 0..1000 {
            let place = f64::from(n) * 0.7;
            let value = process.at(place);
            again.at(place + 12.0);
            assert_eq!(again.at(place), value, "{place}");
        }
    }

    #[test]
    fn neighbouring_points_are_correlated_as_their_distance_says() {
        assert!((NEIGHBOURS - libm::exp(-1.0 / POINTS)).abs() < 1e-15);
    }
}
