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

/// A normal process with mean 0 and standard deviation 1 over distance. The value of a place does not depend on the places
/// that were looked at before.
///
/// Most calls are for a place between the same two points as the last one, so these are kept apart from the others.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    /// Spacing of points in metres. Points are numbered from the start.
    step: f64,
    /// The point before the last place, its value and the next one's.
    left: u64,
    values: [f64; 2],
    points: Box<Points>,
}

/// The points of a process. Each is drawn after the one before it, so going back starts at a mark.
#[derive(Clone, Debug)]
struct Points {
    seed: u64,
    /// Where points are drawn for the first time.
    front: Window,
    /// Where points further back were last drawn again.
    back: Option<Box<Window>>,
    /// The states at each multiple of [`MARK`] that `front` has passed, except at 0.
    marks: Vec<State>,
}

/// A point's number and value, and what draws the next one.
#[derive(Clone, Debug)]
struct State {
    point: u64,
    value: f64,
    random: Random,
}

/// Consecutive points, the last [`REMEMBERED`] at most.
#[derive(Clone, Debug)]
struct Window {
    /// The first point that was drawn.
    first: u64,
    /// Point n is stored at index n modulo the array's length.
    values: [f64; REMEMBERED],
    newest: State,
}

/// Number of points stored: about a correlation distance.
const REMEMBERED: usize = 16;

/// Number of points from one mark to the next.
const MARK: u64 = 256;

/// The correlation of adjacent points: `exp(-1 / POINTS)`.
const NEIGHBOURS: f64 = 0.939_413_062_813_475_8;

impl Process {
    pub(crate) fn new(correlation_m: f64, seed: u64) -> Process {
        let mut front = Window::new(State::first(seed));
        front.draw();
        let values = [front.values[0], front.values[1]];
        let points = Box::new(Points { seed, front, back: None, marks: Vec::new() });
        Process { step: correlation_m / POINTS, left: 0, values, points }
    }

    /// Returns the value `travelled` metres from the start.
    #[inline]
    pub(crate) fn at(&mut self, travelled: f64) -> f64 {
        let place = travelled / self.step;
        let left = place as u64;
        if left != self.left {
            (self.left, self.values) = (left, self.points.around(left));
        }
        let b = place - left as f64;
        let a = 1.0 - b;
        let [left, right] = self.values;
        // Normalised by its own standard deviation, which is below 1 between two points.
        (a * left + b * right) / (a * a + b * b + 2.0 * a * b * NEIGHBOURS).sqrt()
    }
}

impl Points {
    /// Returns the values of point `left` and the next one.
    fn around(&mut self, left: u64) -> [f64; 2] {
        while self.front.newest.point <= left {
            self.front.draw();
            if self.front.newest.point.is_multiple_of(MARK) {
                self.marks.push(self.front.newest.clone());
            }
        }
        self.front.around(left).unwrap_or_else(|| self.around_again(left))
    }

    /// Returns the same of a point that is not in front any more.
    #[cold]
    fn around_again(&mut self, left: u64) -> [f64; 2] {
        let mark = || match left / MARK {
            0 => State::first(self.seed),
            passed => self.marks[passed as usize - 1].clone(),
        };
        // From the last place on, unless a mark is nearer.
        let is_near = |back: &Window| back.oldest() <= left && left / MARK * MARK <= back.newest.point;
        let mut back = match self.back.take() {
            Some(back) if is_near(&back) => back,
            _ => Box::new(Window::new(mark())),
        };
        while back.newest.point <= left {
            back.draw();
        }
        let values = [left, left + 1].map(|point| back.value(point));
        self.back = Some(back);
        values
    }
}

impl State {
    /// Returns the first point of a process.
    fn first(seed: u64) -> State {
        let mut random = Random::seed_from_u64(seed);
        State { point: 0, value: normal(&mut random), random }
    }
}

impl Window {
    /// Creates a window of one point.
    fn new(newest: State) -> Window {
        let mut values = [0.0; REMEMBERED];
        values[newest.point as usize % REMEMBERED] = newest.value;
        Window { first: newest.point, values, newest }
    }

    /// Draws the next point.
    fn draw(&mut self) {
        let State { point, value, random } = &mut self.newest;
        *value = NEIGHBOURS * *value + libm::sqrt(1.0 - NEIGHBOURS * NEIGHBOURS) * normal(random);
        *point += 1;
        self.values[*point as usize % REMEMBERED] = *value;
    }

    /// Returns the values of point `left`, which is before the newest, and the next one; `None` if they are no longer
    /// stored.
    fn around(&self, left: u64) -> Option<[f64; 2]> {
        (self.oldest() <= left).then(|| [left, left + 1].map(|point| self.value(point)))
    }

    fn value(&self, point: u64) -> f64 {
        self.values[point as usize % REMEMBERED]
    }

    /// Returns the number of the oldest point stored.
    fn oldest(&self) -> u64 {
        self.first.max((self.newest.point + 1).saturating_sub(REMEMBERED as u64))
    }
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
    fn a_shadow_is_the_same_when_it_is_asked_for_again_from_any_distance() {
        // 0.7 m for each point of 1 m, so that the farthest pass several marks.
        for ahead in [12.0, 40.0, 300.0, 2500.0] {
            let (mut process, mut again) = (Process::new(16.0, 7), Process::new(16.0, 7));
            for n in 0..4000 {
                let place = f64::from(n) * 0.7;
                let value = process.at(place);
                again.at(place + ahead);
                assert_eq!(again.at(place), value, "{place} from {ahead} m ahead");
            }
            for n in (0..4000).step_by(37).rev() {
                let place = f64::from(n) * 0.7;
                assert_eq!(again.at(place), Process::new(16.0, 7).at(place), "back to {place}");
            }
        }
    }

    #[test]
    fn neighbouring_points_are_correlated_as_their_distance_says() {
        assert!((NEIGHBOURS - libm::exp(-1.0 / POINTS)).abs() < 1e-15);
    }
}
