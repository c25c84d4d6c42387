//! Random places and movements.
//!
//! Sources: D. B. Johnson, D. A. Maltz, "Dynamic Source Routing in Ad Hoc Wireless Networks" (Mobile Computing, 1996:
//! random waypoint); ETSI TR 101 112 (UMTS 30.03), the model of pedestrians on a Manhattan grid.
//!
//! Deviations:
//! 1. Random waypoint begins at a uniform place with a new leg. In the long run UEs are more often near the middle of the
//!    area and in slow legs (Yoon, Liu, Noble, INFOCOM 2003).
//! 2. After [`MOST_LEGS`] legs, a UE stays where it is.

use units::{Span, Time};

use crate::{Mobility, Position, Random, uniform};

/// Maximum number of legs of a movement.
pub const MOST_LEGS: usize = 100_000;

/// A rectangle at a height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Its western and eastern side in metres.
    pub x: [f64; 2],
    /// Its southern and northern side in metres.
    pub y: [f64; 2],
    /// Metres above ground.
    pub z: f64,
}

/// How fast and until when a UE moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The least and the greatest speed of a leg in metres per second; above zero.
    pub speeds: [f64; 2],
    /// How long the UE stays at the end of a leg.
    pub pause: Span,
    /// When the movement may end.
    pub until: Time,
}

impl Area {
    fn place(&self, random: &mut Random) -> Position {
        Position::new(between(self.x, random), between(self.y, random), self.z)
    }

    #[cfg(test)]
    fn contains(&self, place: Position) -> bool {
        (self.x[0]..=self.x[1]).contains(&place.x) && (self.y[0]..=self.y[1]).contains(&place.y)
    }
}

/// Returns a place on a disc around `centre`, uniform over its area.
pub fn on_disc(centre: Position, radius: f64, random: &mut Random) -> Position {
    let (distance, angle) = (radius * libm::sqrt(uniform(random)), core::f64::consts::TAU * uniform(random));
    Position::new(centre.x + distance * libm::cos(angle), centre.y + distance * libm::sin(angle), centre.z)
}

/// Returns a place on the streets of a grid with one crossing every `block` metres, from the south-western corner of `area`,
/// uniform over their length.
pub fn on_streets(area: &Area, block: f64, random: &mut Random) -> Position {
    let Area { x, y, z } = *area;
    let [wide, high] = [x[1] - x[0], y[1] - y[0]];
    // Eastward streets lie one above the other.
    let [eastward, northward] = [wide * streets(high, block), high * streets(wide, block)];
    let along = uniform(random) * (eastward + northward);
    if along < eastward {
        Position::new(x[0] + along % wide, y[0] + block * libm::floor(along / wide), z)
    } else {
        let along = along - eastward;
        Position::new(x[0] + block * libm::floor(along / high), y[0] + along % high, z)
    }
}

/// Returns a movement from one uniform place of `area` to the next.
pub fn random_waypoint(area: &Area, pace: &Pace, random: &mut Random) -> Mobility {
    let start = area.place(random);
    movement(start, pace, random, |_, random| area.place(random))
}

/// Returns a movement along the streets of a grid with one crossing every `block` metres, from the south-western corner of
/// `area`. At a crossing the UE turns with the probability `turn`, to either side, and turns back only in a dead end.
pub fn manhattan(area: &Area, block: f64, turn: f64, pace: &Pace, random: &mut Random) -> Mobility {
    let streets = [area.x, area.y].map(|range| streets(range[1] - range[0], block));
    let mut crossing = streets.map(|streets| libm::floor(uniform(random) * streets));
    let place = |[x, y]: [f64; 2]| Position::new(area.x[0] + block * x, area.y[0] + block * y, area.z);
    let mut heading = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][(uniform(random) * 4.0) as usize];
    movement(place(crossing), pace, random, |_, random| {
        let (x, y) = heading;
        let aside = if uniform(random) < 0.5 { (-y, x) } else { (y, -x) };
        let other = (-aside.0, -aside.1);
        let wanted = if uniform(random) < turn { [aside, other, heading] } else { [heading, aside, other] };
        let ahead = |(x, y): (f64, f64)| [crossing[0] + x, crossing[1] + y];
        let exists = |way: (f64, f64)| (0..2).all(|axis| (0.0..streets[axis]).contains(&ahead(way)[axis]));
        heading = wanted.into_iter().find(|way| exists(*way)).unwrap_or((-x, -y));
        // An area smaller than a block has one crossing.
        if exists(heading) {
            crossing = ahead(heading);
        }
        place(crossing)
    })
}

/// Returns the number of streets, `block` metres apart from the edge on, in an area as long.
fn streets(metres: f64, block: f64) -> f64 {
    // Lengths such as 33.3 m have no exact number.
    libm::floor(metres / block + 1e-9) + 1.0
}

/// Returns a movement from `start` to one place after another, as `next` gives them.
fn movement(
    start: Position,
    pace: &Pace,
    random: &mut Random,
    mut next: impl FnMut(Position, &mut Random) -> Position,
) -> Mobility {
    let mut points = vec![(Time::ZERO, start)];
    let (mut now, mut at) = (Time::ZERO, start);
    for _ in 0..MOST_LEGS {
        let to = next(at, random);
        let span = Span::from_secs_f64(at.distance(to) / between(pace.speeds, random));
        if now > pace.until || span == Span::ZERO {
            break;
        }
        (now, at) = (now + span, to);
        points.push((now, at));
        if pace.pause > Span::ZERO {
            now += pace.pause;
            points.push((now, at));
        }
    }
    Mobility::waypoints(&points).unwrap_or_else(|_| Mobility::fixed(start))
}

fn between([least, most]: [f64; 2], random: &mut Random) -> f64 {
    least + (most - least) * uniform(random)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    const AREA: Area = Area { x: [-100.0, 300.0], y: [0.0, 200.0], z: 1.5 };

    fn pace(seconds: u64) -> Pace {
        Pace { speeds: [2.0, 4.0], pause: Span::ZERO, until: Time::ZERO + Span::from_secs(seconds) }
    }

    fn random(seed: u64) -> Random {
        Random::seed_from_u64(seed)
    }

    #[test]
    fn places_on_a_disc_are_uniform_over_its_area() {
        let centre = Position::new(10.0, -20.0, 3.0);
        let mut random = random(1);
        let places: Vec<Position> = (0..20_000).map(|_| on_disc(centre, 50.0, &mut random)).collect();
        assert!(places.iter().all(|p| p.z == 3.0 && centre.ground_distance(*p) <= 50.0));
        let within = |part: f64| places.iter().filter(|p| centre.ground_distance(**p) < 50.0 * part).count();
        for part in [0.25, 0.5, 0.75] {
            let share = within(part) as f64 / places.len() as f64;
            assert!((share - part * part).abs() < 0.01, "{share} within {part}");
        }
        let east = places.iter().filter(|p| p.x > centre.x).count() as f64 / places.len() as f64;
        assert!((east - 0.5).abs() < 0.015, "{east}");
    }

    #[test]
    fn places_on_streets_are_uniform_over_their_length() {
        // Nine streets of 200 m to the north, and five of 400 m to the east.
        let mut random = random(1);
        let places: Vec<Position> = (0..20_000).map(|_| on_streets(&AREA, 50.0, &mut random)).collect();
        let on_street = |v: f64, origin: f64| libm::remainder(v - origin, 50.0).abs() < 1e-6;
        assert!(places.iter().all(|p| AREA.contains(*p) && (on_street(p.x, -100.0) || on_street(p.y, 0.0))));
        let share = |on: &dyn Fn(&Position) -> bool| places.iter().filter(|p| on(p)).count() as f64 / 20_000.0;
        for (found, length) in [
            (share(&|p| on_street(p.y, 0.0)), 2000.0),
            (share(&|p| on_street(p.y, 0.0) && p.y < 1.0), 400.0),
            (share(&|p| p.x > 299.0 && !on_street(p.y, 0.0)), 200.0),
            (share(&|p| on_street(p.y, 0.0) && p.x < -50.0), 250.0),
        ] {
            assert!((found - length / 3800.0).abs() < 0.01, "{found} on {length} m");
        }
    }

    #[test]
    fn a_random_waypoint_stays_in_its_area_at_its_speeds() {
        for seed in 0..20 {
            let mobility = random_waypoint(&AREA, &pace(2000), &mut random(seed));
            for second in 0..2000 {
                let now = Time::ZERO + Span::from_secs(second);
                assert!(AREA.contains(mobility.position(now)) && mobility.position(now).z == 1.5);
                assert!((2.0..=4.0).contains(&mobility.speed(now)), "{}", mobility.speed(now));
            }
        }
        let rest = Pace { pause: Span::from_secs(10), ..pace(2000) };
        let mobility = random_waypoint(&AREA, &rest, &mut random(1));
        let still = (0..2000).filter(|s| mobility.speed(Time::ZERO + Span::from_secs(*s)) == 0.0).count();
        assert!((100..500).contains(&still), "{still} seconds of pauses");
    }

    #[test]
    fn a_walk_on_a_grid_keeps_to_the_streets_and_turns_as_often_as_it_should() {
        let mobility = manhattan(&AREA, 50.0, 0.5, &pace(40_000), &mut random(3));
        let on_street = |v: f64, origin: f64| (libm::remainder(v - origin, 50.0)).abs() < 1e-6;
        for second in 0..40_000 {
            let at = mobility.position(Time::ZERO + Span::from_secs(second));
            assert!(AREA.contains(at) && (on_street(at.x, -100.0) || on_street(at.y, 0.0)), "{at:?}");
        }
        // The streets at the edges too, also if a block has no exact length: each of eleven is as long as the others.
        let area = Area { x: [0.0, 333.0], y: [0.0, 333.0], z: 0.0 };
        let walk = manhattan(&area, 33.3, 0.5, &pace(200_000), &mut random(3));
        let at_edge = |v: f64| {
            (0..200_000)
                .filter(|s| {
                    let at = walk.position(Time::ZERO + Span::from_secs(*s));
                    (at.x - v).abs() < 1e-6 && libm::remainder(at.y, 33.3).abs() > 1e-6
                })
                .count() as f64
        };
        let (edges, middle) = (at_edge(0.0) + at_edge(333.0), at_edge(33.3 * 5.0));
        assert!((0.5..1.2).contains(&(edges / 2.0 / middle)), "{edges} {middle}");
        let straight =
            manhattan(&Area { x: [0.0, 1e6], y: [0.0, 1e6], z: 0.0 }, 50.0, 0.0, &pace(1000), &mut random(5));
        let [a, b] = [0, 1000].map(|s| straight.position(Time::ZERO + Span::from_secs(s)));
        assert!(a.x == b.x || a.y == b.y, "without turns it goes straight on");
        let alone = manhattan(&Area { x: [0.0, 10.0], y: [0.0, 10.0], z: 0.0 }, 50.0, 0.5, &pace(100), &mut random(1));
        assert_eq!(alone.position(Time::ZERO + Span::from_secs(50)), Position::new(0.0, 0.0, 0.0));
    }

    #[test]
    fn the_same_stream_gives_the_same_movement() {
        let walk = |seed| manhattan(&AREA, 50.0, 0.5, &pace(1000), &mut random(seed));
        assert_eq!(walk(7), walk(7));
        assert_ne!(walk(7), walk(8));
    }
}
