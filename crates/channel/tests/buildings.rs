//! Line of sight past buildings, and the loss of their walls, against worked numbers.

use channel::buildings::{Building, BuildingError, Buildings, Car, Penetration, URBAN_DEPTH_M, Visit, Visits, Wall};
use channel::{Mobility, Position, Random};
use rand_core::Rng;
use rand_xoshiro::rand_core::SeedableRng;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

fn building(x: [f64; 2], y: [f64; 2], height: f64) -> Building {
    Building { x, y, height, wall: Wall::LowLoss }
}

/// Eight buildings around a street crossing, with the cell at (0, 0, 10): the map of the RAPID study.
fn street() -> Buildings {
    Buildings::new(&[
        building([20.0, 63.0], [3.0, 58.0], 28.0),
        building([20.0, 67.0], [68.0, 114.0], 26.0),
        building([20.0, 122.0], [124.0, 198.0], 31.0),
        building([20.0, 72.0], [215.0, 237.0], 31.0),
        building([78.0, 160.0], [3.0, 66.0], 30.0),
        building([82.0, 143.0], [75.0, 140.0], 24.0),
        building([137.0, 175.0], [149.0, 221.0], 28.0),
        building([87.0, 130.0], [232.0, 268.0], 27.0),
    ])
    .unwrap()
}

const CELL: Position = Position::new(0.0, 0.0, 10.0);

#[test]
fn a_walk_into_a_side_street_loses_sight_behind_the_corner() {
    // The corner of the first building is at (63, 3), and 3 * 70 / 63 = 3.333.
    let street = street();
    let sees = |y: f64| street.sees(CELL, Position::new(70.0, y, 1.5));
    assert!(sees(0.0) && sees(3.0) && sees(3.33));
    assert!(!sees(3.34) && !sees(10.0) && !sees(40.0));
    assert_eq!(street.around(Position::new(70.0, 40.0, 1.5)), None);
    // In both directions.
    assert!(street.sees(Position::new(70.0, 3.33, 1.5), CELL));
    assert!(!street.sees(Position::new(70.0, 3.34, 1.5), CELL));
    // Over the roofs: at 63 m of 70 m a line from 10 m up to 30 m has risen to 28 m, which is the roof's edge.
    assert!(!street.sees(CELL, Position::new(70.0, 3.4, 29.9)));
    assert!(street.sees(Position::new(0.0, 30.0, 28.0), Position::new(70.0, 30.0, 28.0)), "along the roof");
    assert!(!street.sees(Position::new(0.0, 30.0, 28.0), Position::new(70.0, 30.0, 27.9)), "through the roof");
}

#[test]
fn faces_and_edges_are_outside() {
    let one = building([10.0, 20.0], [10.0, 20.0], 5.0);
    let p = |x, y| Position::new(x, y, 1.0);
    for (a, b, cut) in [
        // Along each face, and through the corners.
        (p(0.0, 10.0), p(30.0, 10.0), false),
        (p(20.0, 0.0), p(20.0, 30.0), false),
        (p(0.0, 20.0), p(20.0, 0.0), false),
        (p(0.0, 0.0), p(30.0, 30.0), true),
        (p(0.0, 40.0), p(40.0, 0.0), false),
        (p(10.0, 30.0), p(30.0, 10.0), false),
        (p(10.0, 29.0), p(30.0, 9.0), true),
        // Up to a face, from both sides, and away from it.
        (p(0.0, 15.0), p(10.0, 15.0), false),
        (p(0.0, 15.0), p(10.1, 15.0), true),
        (p(30.0, 15.0), p(20.0, 15.0), false),
        (p(0.0, 15.0), p(9.0, 15.0), false),
        (p(21.0, 15.0), p(90.0, 15.0), false),
        // Without any length.
        (p(15.0, 15.0), p(15.0, 15.0), true),
        (p(10.0, 15.0), p(10.0, 15.0), false),
        // Straight down onto the roof, and through it.
        (Position::new(15.0, 15.0, 9.0), Position::new(15.0, 15.0, 5.0), false),
        (Position::new(15.0, 15.0, 9.0), Position::new(15.0, 15.0, 4.9), true),
        // Along the ground.
        (Position::new(0.0, 15.0, 0.0), Position::new(30.0, 15.0, 0.0), true),
    ] {
        assert_eq!(one.is_cut(a, b), cut, "{a:?} to {b:?}");
        assert_eq!(one.is_cut(b, a), cut, "{b:?} to {a:?}");
    }
    // A corner that no binary fraction hits: x = 63/70 of the way, on a line through it.
    let corner = building([20.0, 63.0], [3.0, 58.0], 28.0);
    for n in 1..200 {
        let n = f64::from(n);
        assert!(!corner.is_cut(CELL, Position::new(21.0 * n + 63.0, n + 3.0, 10.0)), "{n}");
    }
    assert!(!one.contains(p(10.0, 15.0)) && !one.contains(p(15.0, 20.0)) && one.contains(p(10.001, 19.999)));
    assert!(!one.contains(Position::new(15.0, 15.0, 5.0)) && one.contains(Position::new(15.0, 15.0, 0.0)));
}

#[test]
fn the_ends_own_buildings_do_not_obstruct_them() {
    let rooms =
        Buildings::new(&[building([0.0, 10.0], [0.0, 10.0], 9.0), building([20.0, 30.0], [0.0, 10.0], 9.0)]).unwrap();
    let p = |x| Position::new(x, 5.0, 1.5);
    assert!(rooms.sees(p(2.0), p(8.0)), "in one building");
    assert!(rooms.sees(p(2.0), p(15.0)), "out of a building");
    assert!(rooms.sees(p(2.0), p(25.0)), "from building to building");
    assert!(!rooms.sees(p(2.0), p(35.0)), "past another building");
    assert_eq!((rooms.around(p(5.0)), rooms.around(p(15.0)), rooms.around(p(25.0))), (Some(0), None, Some(1)));
    assert_eq!(rooms.around(Position::new(5.0, 5.0, 9.0)), None, "on the roof");
    let none = Buildings::new(&[]).unwrap();
    assert!(none.sees(p(2.0), p(35.0)) && none.around(p(2.0)).is_none());
}

#[test]
fn the_grid_finds_every_building_that_a_line_cuts() {
    let mut random = Random::seed_from_u64(5);
    for count in [1, 2, 7, 40, 300] {
        // Coordinates on a lattice, so that lines run along faces and through corners.
        let mut draw = |most: u64| (random.next_u64() % most) as f64;
        let all: Vec<Building> = (0..count)
            .map(|_| {
                let (x, y) = (draw(180), draw(180));
                building([x, x + 1.0 + draw(12)], [y, y + 1.0 + draw(12)], 1.0 + draw(20))
            })
            .collect();
        let city = Buildings::new(&all).unwrap();
        let mut seen = 0;
        for _ in 0..3000 {
            let mut point = || Position::new(draw(220) - 20.0, draw(220) - 20.0, draw(24));
            let (a, b) = (point(), point());
            let blocked = all.iter().any(|one| one.is_cut(a, b) && !one.contains(a) && !one.contains(b));
            assert_eq!(city.sees(a, b), !blocked, "{count} buildings: {a:?} to {b:?}");
            assert_eq!(city.around(a), all.iter().position(|one| one.contains(a)));
            seen += u32::from(!blocked);
        }
        assert!(seen > 50 && seen < 3000, "{count} buildings: {seen}");
    }
}

#[test]
fn walls_lose_what_the_table_says() {
    // 28 GHz: glass 7.6 dB, concrete 117 dB: 5 + 5.229 + 7.6 = 17.829 dB. Reflecting glass 31.4 dB: 5 + 1.549 + 31.4.
    close(Wall::LowLoss.loss_db(28e9), 17.829, 1e-3);
    close(Wall::HighLoss.loss_db(28e9), 37.949, 1e-3);
    // 3.5 GHz: glass 2.7 dB, concrete 19 dB: 0.3 * 0.53703 + 0.7 * 0.012589 = 0.169922, 7.697 dB.
    close(Wall::LowLoss.loss_db(3.5e9), 12.697, 1e-3);
    // Reflecting glass 24.05 dB: 0.7 * 0.0039355 + 0.3 * 0.012589 = 0.0065316, 21.850 dB.
    close(Wall::HighLoss.loss_db(3.5e9), 26.850, 1e-3);
    close(Wall::LowLoss.loss_db(60e9), 24.229, 1e-3);
    close(Wall::HighLoss.loss_db(60e9), 47.549, 1e-3);
    assert_eq!((Wall::LowLoss.sigma_db(), Wall::HighLoss.sigma_db()), (4.4, 6.5));
}

/// Mean, standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
    (mean, libm::sqrt(squares / values.len() as f64))
}

#[test]
fn a_visits_loss_has_the_distribution_of_the_standard() {
    let one = Buildings::new(&[building([0.0, 10.0], [0.0, 10.0], 5.0)]).unwrap();
    let inside = Mobility::fixed(Position::new(5.0, 5.0, 1.5));
    let draw = |penetration, wall, hz| -> (Vec<f64>, Vec<f64>) {
        let visit = |seed| {
            let mut random = Random::seed_from_u64(seed);
            let visits = Visits::new(&one, &inside, penetration, URBAN_DEPTH_M, &mut random);
            let visit = visits.at(0.0).unwrap();
            (visit.depth_m(), visit.loss_db(penetration, wall, hz))
        };
        (0..20_000).map(visit).unzip()
    };
    // The smaller of two numbers up to 25 m: mean 25/3, variance 25^2/18.
    let (depths, losses) = draw(Penetration::Materials, Wall::LowLoss, 28e9);
    let (mean, sigma) = moments(&depths);
    close(mean, 8.333, 0.15);
    close(sigma, 5.893, 0.1);
    assert!(depths.iter().all(|depth| (0.0..25.0).contains(depth)));
    // 17.829 + 8.333 / 2; 4.4^2 + (5.893 / 2)^2.
    let (mean, sigma) = moments(&losses);
    close(mean, 21.995, 0.15);
    close(sigma, 5.296, 0.1);
    let (mean, sigma) = moments(&draw(Penetration::Materials, Wall::HighLoss, 28e9).1);
    close(mean, 42.116, 0.2);
    close(sigma, 7.137, 0.15);
    // 20 dB and half a decibel for each of up to 25 m: mean 26.25, standard deviation 12.5 / sqrt 12.
    let (mean, sigma) = moments(&draw(Penetration::Below6Ghz, Wall::HighLoss, 3.5e9).1);
    close(mean, 26.25, 0.1);
    close(sigma, 3.608, 0.05);
    let cars: Vec<f64> = (0..20_000).map(|seed| Car::default().draw_db(&mut Random::seed_from_u64(seed))).collect();
    let (mean, sigma) = moments(&cars);
    close(mean, 9.0, 0.15);
    close(sigma, 5.0, 0.1);
    assert_eq!(Car::METALLISED, Car { mean_db: 20.0, sigma_db: 5.0 });
}

#[test]
fn each_visit_is_drawn_once_and_a_new_visit_anew() {
    let p = |x, y| Position::new(x, y, 1.5);
    let city = Buildings::new(&[
        building([10.0, 20.0], [0.0, 10.0], 9.0),
        // Overlaps with the first one.
        building([18.0, 30.0], [0.0, 10.0], 9.0),
        // Adjoins the second one.
        building([30.0, 40.0], [0.0, 10.0], 9.0),
    ])
    .unwrap();
    // In at 10 m, a turn inside at 15 m, into the second one, into the third one after 30 m, out of it to the north, and
    // after 25 m in again.
    let route = [p(0.0, 5.0), p(15.0, 5.0), p(35.0, 5.0), p(35.0, 20.0), p(35.0, 5.0)];
    let mobility = Mobility::route(&route, &[1.0, 2.0, 1.0, 3.0]).unwrap();
    let visits = Visits::new(&city, &mobility, Penetration::Materials, URBAN_DEPTH_M, &mut Random::seed_from_u64(3));
    let depth = |travelled| visits.at(travelled).map(Visit::depth_m);
    assert_eq!(depth(9.9), None);
    let first = depth(10.0).unwrap();
    for travelled in [10.5, 15.0, 18.5, 20.5, 29.9] {
        assert_eq!(depth(travelled), Some(first), "{travelled} m");
    }
    let second = depth(30.1).unwrap();
    assert_eq!(depth(39.0), Some(second));
    let third = depth(60.1).unwrap();
    assert!(first != second && second != third && first != third);
    assert_eq!(depth(65.0), Some(third));
    // A movement without end.
    let away = Mobility::line(p(50.0, 5.0), [-1.0, 0.0, 0.0]);
    let visits = Visits::new(&city, &away, Penetration::Materials, URBAN_DEPTH_M, &mut Random::seed_from_u64(3));
    assert!(visits.at(9.9).is_none() && visits.at(10.1).is_some() && visits.at(39.0) != visits.at(11.0));
}

#[test]
fn a_building_needs_a_volume() {
    for (x, y, height, error) in [
        ([0.0, 0.0], [0.0, 1.0], 5.0, BuildingError::Empty(1)),
        ([0.0, 1.0], [2.0, 1.0], 5.0, BuildingError::Empty(1)),
        ([0.0, 1.0], [0.0, 1.0], 0.0, BuildingError::Empty(1)),
        ([0.0, f64::INFINITY], [0.0, 1.0], 5.0, BuildingError::NotFinite(1)),
        ([0.0, 1.0], [f64::NAN, 1.0], 5.0, BuildingError::NotFinite(1)),
    ] {
        let good = building([0.0, 1.0], [0.0, 1.0], 1.0);
        assert_eq!(Buildings::new(&[good, building(x, y, height)]), Err(error));
    }
    assert_eq!(
        BuildingError::Empty(3).to_string(),
        "building 3: sides must be in ascending order and the height above 0 m"
    );
}
