//! One UE among cells of NR: buildings, walls, blockers, beams, and fading on wide grids, against worked numbers.

use std::sync::Arc;

use channel::antenna::{Element, Steering, direction};
use channel::blockage::Grip;
use channel::buildings::{Car, Penetration, Wall};
use channel::fading::{self, Doppler, Profile, Tdl};
use channel::pathloss::Sight;
use channel::{
    Air, AirConfig, Antenna, Array, BeamShare, Blockage, Building, Buildings, Carrier, Channel, Mobility, Occupied,
    Orientation, PathLoss, Position, Random, Shadowing, Sinr, Site,
};
use rand_xoshiro::rand_core::SeedableRng;
use units::{Span, Time};

const HZ: f64 = 28e9;

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

fn random(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

fn db(ratio: f32) -> f64 {
    10.0 * libm::log10(f64::from(ratio))
}

/// A cell with 200 MHz at 28 GHz: 35 dBm over 1584 subcarriers are 3.0024 dBm each.
fn site(position: Position, antenna: Antenna) -> Site {
    Site {
        position,
        antenna,
        power_dbm: 35.0,
        noise_figure_db: 9.0,
        carrier: Carrier { downlink_hz: HZ, uplink_hz: HZ, prbs: 132, subcarrier_hz: 120_000 },
    }
}

const ISOTROPIC: Antenna = Antenna::Isotropic { gain_db: 0.0 };

fn ideal(rows: u8, columns: u8) -> Array {
    Array { rows, columns, element: Element::Isotropic, steering: Steering::Ideal, ..Array::default() }
}

fn umi(sight: Sight, shadowing: Option<Shadowing>) -> Channel {
    Channel::Modelled { path_loss: PathLoss::UmiStreetCanyon(sight), shadowing }
}

/// The map of the RAPID study, with the cell at (0, 0, 10).
fn street() -> Option<Arc<Buildings>> {
    let boxes = [
        ([20.0, 63.0], [3.0, 58.0], 28.0),
        ([20.0, 67.0], [68.0, 114.0], 26.0),
        ([20.0, 122.0], [124.0, 198.0], 31.0),
        ([20.0, 72.0], [215.0, 237.0], 31.0),
        ([78.0, 160.0], [3.0, 66.0], 30.0),
        ([82.0, 143.0], [75.0, 140.0], 24.0),
        ([137.0, 175.0], [149.0, 221.0], 28.0),
        ([87.0, 130.0], [232.0, 268.0], 27.0),
    ];
    let boxes = boxes.map(|(x, y, height)| Building { x, y, height, wall: Wall::LowLoss });
    Some(Arc::new(Buildings::new(&boxes).unwrap()))
}

const CELL: Position = Position::new(0.0, 0.0, 10.0);

fn flat(air: &mut Air, now: Time) -> f64 {
    let mut sinr = Sinr::default();
    air.downlink(0, now, &mut sinr);
    let Sinr::Flat(sinr) = sinr else { panic!("a channel without fading differs from block to block") };
    db(sinr)
}

#[test]
fn a_walk_around_a_corner_loses_sight_where_the_corner_is() {
    let walk = Mobility::route(&[Position::new(70.0, 0.0, 1.5), Position::new(70.0, 40.0, 1.5)], &[1.0]).unwrap();
    let config =
        AirConfig { mobility: walk, channel: umi(Sight::Buildings, None), buildings: street(), ..AirConfig::default() };
    let mut air = Air::new(&config, &[site(CELL, ISOTROPIC)], random(1));
    // The corner is passed at y = 3.333, and the position is updated every decimetre.
    for milliseconds in (0..40_000).step_by(50) {
        assert_eq!(air.is_los(0, ms(milliseconds)), milliseconds < 3400, "{milliseconds} ms");
        assert_eq!((air.walls_db(0, ms(milliseconds)), air.blocked_db(0, ms(milliseconds))), (0.0, 0.0));
        assert_eq!(air.beam(0, ms(milliseconds)), None);
    }
    // 70.5142 m: 32.4 + 21 * 1.848277 + 28.9432 = 100.157 dB. 81.0694 m: 22.4 + 35.3 * 1.908857 + 30.8245 = 120.607 dB.
    close(air.rsrp(0, ms(0)), 3.0024 - 100.157, 1e-3);
    close(air.rsrp(0, ms(40_000)), 3.0024 - 120.607, 1e-3);
    // Without any buildings nothing is in the way.
    let mut air = Air::new(&AirConfig { buildings: None, ..config }, &[site(CELL, ISOTROPIC)], random(1));
    assert!(air.is_los(0, ms(40_000)));
}

#[test]
fn the_shadow_behind_a_corner_is_a_new_one() {
    let config = |shadowing| AirConfig {
        mobility: Mobility::line(Position::new(70.0, 0.0, 1.5), [0.0, 1.0, 0.0]),
        channel: umi(Sight::Buildings, shadowing),
        buildings: street(),
        ..AirConfig::default()
    };
    let mut plain = Air::new(&config(None), &[site(CELL, ISOTROPIC)], random(1));
    // In the street, 2.5 m farther, and 1.3 m farther behind the corner.
    let times = [0, 2500, 3800];
    let means = times.map(|time| plain.rsrp(0, ms(time)));
    assert!(means[1] - means[2] > 15.0);
    let (mut squares, mut products) = ([0.0; 3], [0.0; 2]);
    for seed in 0..5000 {
        let mut air = Air::new(&config(Some(Shadowing::UMI)), &[site(CELL, ISOTROPIC)], random(seed));
        let [a, b, c] = [0, 1, 2].map(|n| air.rsrp(0, ms(times[n])) - means[n]);
        squares = [squares[0] + a * a, squares[1] + b * b, squares[2] + c * c];
        products = [products[0] + a * b, products[1] + b * c];
    }
    for (square, sigma) in squares.into_iter().zip([4.0, 4.0, 7.82]) {
        close(libm::sqrt(square / 5000.0) / sigma, 1.0, 0.03);
    }
    // exp(-2.5 / 10), and none.
    close(products[0] / libm::sqrt(squares[0] * squares[1]), 0.7788, 0.02);
    close(products[1] / libm::sqrt(squares[1] * squares[2]), 0.0, 0.05);
}

/// A UE in the fifth building, a centimetre behind its southern face.
fn indoors(sight: Sight, shadowing: Option<Shadowing>) -> AirConfig {
    AirConfig {
        mobility: Mobility::fixed(Position::new(100.0, 3.01, 1.5)),
        channel: umi(sight, shadowing),
        buildings: street(),
        ..AirConfig::default()
    }
}

#[test]
fn an_indoor_ue_loses_the_wall_and_what_is_behind_it() {
    // ns-3's case: 22.4 + 35.3 log10(100.406) + 30.8245 = 123.887 dB without line of sight; a wall of 17.829 dB, half of
    // 8.333 m; arrays of 64 and 16 elements; noise of 190.08 MHz with 9 dB: -82.210 dBm.
    let config = AirConfig { array: Some(ideal(4, 4)), ..indoors(Sight::Nlos, None) };
    let sites = [site(CELL, Antenna::Array(ideal(8, 8)))];
    let (mut sum, mut squares, mut sinr) = (0.0, 0.0, 0.0);
    for seed in 0..4000 {
        let mut air = Air::new(&config, &sites, random(seed));
        let loss = air.walls_db(0, ms(0));
        (sum, squares) = (sum + loss, squares + loss * loss);
        assert!(!air.is_los(0, ms(0)));
        close(air.rsrp(0, ms(0)), 3.0024 + 18.0618 + 12.0412 - 123.887 - loss, 2e-3);
        sinr += flat(&mut air, ms(0));
    }
    let mean = sum / 4000.0;
    close(mean, 17.829 + 8.333 / 2.0, 0.3);
    close(libm::sqrt(squares / 4000.0 - mean * mean), libm::sqrt(4.4 * 4.4 + 5.893 * 5.893 / 4.0), 0.2);
    close(sinr / 4000.0, 35.0 + 30.103 - 123.887 - 21.995 + 82.210, 0.3);
    // By geometry, the street outside is in sight: 32.4 + 21 log10(100.406) + 28.9432 = 103.380 dB.
    let mut air = Air::new(&indoors(Sight::Buildings, None), &sites, random(1));
    let loss = air.walls_db(0, ms(0));
    close(air.rsrp(0, ms(0)), 3.0024 + 18.0618 - 103.380 - loss, 2e-3);
    assert!(!air.is_los(0, ms(0)));
}

#[test]
fn houses_in_the_country_are_less_deep() {
    // The smaller of two numbers up to 10 m: mean 10/3. A high-loss wall has 6.5 dB of deviation.
    let house = Building { x: [90.0, 110.0], y: [-10.0, 10.0], height: 9.0, wall: Wall::HighLoss };
    let path_loss = PathLoss::RuralMacro { sight: Sight::Los, building_m: 5.0, street_m: 20.0 };
    let config = AirConfig {
        channel: Channel::Modelled { path_loss, shadowing: None },
        buildings: Some(Arc::new(Buildings::new(&[house]).unwrap())),
        ..AirConfig::default()
    };
    let mut rural = site(CELL, ISOTROPIC);
    rural.carrier.downlink_hz = 3.5e9;
    let loss = |seed| Air::new(&config, &[rural], random(seed)).walls_db(0, ms(0));
    let losses: Vec<f64> = (0..5000).map(loss).collect();
    let mean = losses.iter().sum::<f64>() / 5000.0;
    close(mean, 26.850 + 3.333 / 2.0, 0.3);
    let compatible = AirConfig { penetration: Penetration::Below6Ghz, ..config.clone() };
    let loss = |seed| Air::new(&compatible, &[rural], random(seed)).walls_db(0, ms(0));
    assert!((0..100).map(loss).all(|loss| (20.0..25.0).contains(&loss)));
}

#[test]
fn walls_are_only_between_different_rooms() {
    let config = indoors(Sight::Buildings, None);
    let neighbour = Position::new(100.0, 20.0, 3.0);
    let elsewhere = Position::new(100.0, 90.0, 3.0);
    let sites = [neighbour, elsewhere, CELL].map(|at| site(at, ISOTROPIC));
    let mut air = Air::new(&config, &sites, random(2));
    assert_eq!((air.walls_db(0, ms(0)), air.is_los(0, ms(0))), (0.0, true));
    // The other building's wall, with neither depth nor deviation.
    close(air.walls_db(1, ms(0)) - air.walls_db(2, ms(0)), 17.829, 1e-3);
    assert!(!air.is_los(1, ms(0)));
    // An outdoor UE behind the wall of an indoor cell.
    let outdoors = AirConfig { mobility: Mobility::fixed(Position::new(100.0, 0.0, 1.5)), ..config };
    let mut air = Air::new(&outdoors, &sites, random(2));
    close(air.walls_db(0, ms(0)), 17.829, 1e-3);
    assert_eq!((air.walls_db(2, ms(0)), air.is_los(2, ms(0)), air.is_los(0, ms(0))), (0.0, true, false));
}

#[test]
fn indoor_shadows_have_their_own_deviation() {
    let mean = 3.0024 - 103.380;
    let (mut squares, mut products, mut los_squares) = (0.0, 0.0, 0.0);
    for seed in 0..6000 {
        let mut air =
            Air::new(&indoors(Sight::Buildings, Some(Shadowing::UMI)), &[site(CELL, ISOTROPIC)], random(seed));
        let shadow = air.rsrp(0, ms(0)) + air.walls_db(0, ms(0)) - mean;
        let outdoors = AirConfig {
            mobility: Mobility::fixed(Position::new(100.0, 3.0, 1.5)),
            ..indoors(Sight::Buildings, Some(Shadowing::UMI))
        };
        // On the building's face, which is outside.
        let mut air = Air::new(&outdoors, &[site(CELL, ISOTROPIC)], random(seed));
        assert!(air.is_los(0, ms(0)));
        let los_shadow = air.rsrp(0, ms(0)) - mean;
        squares += shadow * shadow;
        los_squares += los_shadow * los_shadow;
        products += shadow * los_shadow;
    }
    close(libm::sqrt(squares / 6000.0), 7.0, 0.2);
    close(libm::sqrt(los_squares / 6000.0), 4.0, 0.12);
    close(products / libm::sqrt(squares * los_squares), 0.0, 0.05);
}

#[test]
fn a_car_costs_the_same_all_the_way() {
    let config = AirConfig {
        mobility: Mobility::line(Position::new(50.0, 0.0, 1.5), [20.0, 0.0, 0.0]),
        car: Some(Car::METALLISED),
        ..AirConfig::default()
    };
    let mut sum = 0.0;
    for seed in 0..3000 {
        let mut air = Air::new(&config, &[site(CELL, ISOTROPIC)], random(seed));
        let loss = air.walls_db(0, ms(0));
        assert_eq!(air.walls_db(0, ms(9000)), loss);
        sum += loss;
    }
    close(sum / 3000.0, 20.0, 0.3);
}

#[test]
fn blockers_take_away_what_they_block_in_both_directions() {
    let walk = Mobility::line(Position::new(150.0, -20.0, 1.5), [0.0, 1.0, 0.0]);
    let open = AirConfig {
        mobility: walk,
        channel: umi(Sight::Los, Some(Shadowing::UMI)),
        power: channel::UplinkPower { max_dbm: 23.0, p0_dbm: 0.0, alpha: 1.0 },
        ..AirConfig::default()
    };
    let sites = [site(CELL, ISOTROPIC)];
    let mut clear = Air::new(&open, &sites, random(3));
    let mut blocked = Air::new(&AirConfig { blockage: Some(Blockage::default()), ..open.clone() }, &sites, random(3));
    let mut most: f64 = 0.0;
    for n in 0..4000 {
        let now = ms(n * 20);
        let loss = blocked.blocked_db(0, now);
        most = most.max(loss);
        // Updates of the position differ by less than a decimetre, which at 150 m is 0.01 dB; more in the shadow.
        close(clear.rsrp(0, now) - blocked.rsrp(0, now), loss, 0.6);
        let (mut a, mut b) = (Sinr::default(), Sinr::default());
        clear.uplink(0, now, 10, &mut a);
        blocked.uplink(0, now, 10, &mut b);
        close(db(a.mean()) - db(b.mean()), loss, 0.6);
    }
    assert!(most > 3.0, "{most}");
    // A UE that walks north has its body at 350 degrees, and a cell in the west; one that walks south at 170.
    let body = Blockage { blockers: 0, grip: Some(Grip::Portrait), ..Blockage::default() };
    let south = Mobility::line(Position::new(150.0, 20.0, 1.5), [0.0, -1.0, 0.0]);
    for (mobility, orientation, loss) in [
        (open.mobility.clone(), Orientation::Movement, 0.0),
        (south.clone(), Orientation::Movement, 30.0),
        (south, Orientation::Fixed(0.0), 0.0),
        (Mobility::fixed(Position::new(150.0, 20.0, 1.5)), Orientation::Fixed(-90.0), 30.0),
    ] {
        let config = AirConfig { mobility, orientation, blockage: Some(body), ..open.clone() };
        assert_eq!(Air::new(&config, &sites, random(3)).blocked_db(0, ms(100)), loss, "{orientation:?}");
    }
}

#[test]
fn moving_blockers_change_a_still_ues_channel() {
    let config = |speed| AirConfig {
        blockage: Some(Blockage { blockers: 40, grip: None, speed, ..Blockage::default() }),
        ..AirConfig::default()
    };
    let sites = [site(CELL, ISOTROPIC)];
    let mut air = Air::new(&config(2.0), &sites, random(3));
    assert!(air.varies());
    let losses: Vec<f64> = (0..500).map(|n| air.blocked_db(0, ms(n * 20))).collect();
    let steps: Vec<f64> = losses.windows(2).map(|pair| (pair[0] - pair[1]).abs()).collect();
    assert!(losses.iter().any(|&loss| loss > 3.0) && steps.iter().sum::<f64>() > 3.0);
    let mut still = Air::new(&config(0.0), &sites, random(3));
    assert!(!still.varies());
    assert_eq!(still.blocked_db(0, ms(0)), still.blocked_db(0, ms(10_000)));
}

#[test]
fn beams_follow_the_ue_from_sweep_to_sweep() {
    // A row of eight at the cell looks east along the street; the UE passes 10 m in front of it at 10 m/s.
    let array = Array { rows: 1, columns: 8, ..Array::default() };
    let ue = Array { rows: 1, columns: 4, azimuth_deg: 180.0, ..Array::default() };
    let height = Position::new(0.0, 0.0, 1.5);
    let config = AirConfig {
        mobility: Mobility::line(Position::new(10.0, -5.0, 1.5), [0.0, 10.0, 0.0]),
        orientation: Orientation::Fixed(0.0),
        array: Some(ue),
        ..AirConfig::default()
    };
    let mut air = Air::new(&config, &[site(height, Antenna::Array(array))], random(1));
    let mut last = None;
    let mut changes = 0;
    for n in 0..1000 {
        let now = ms(n);
        let at = |now: Time| Position::new(10.0, -5.0 + 10.0 * now.as_secs_f64(), 1.5);
        let beams = (
            array.best_beam(direction(height, at(ms(n / 20 * 20))), 0.0),
            ue.best_beam(direction(at(ms(n / 20 * 20)), height), 0.0),
        );
        assert_eq!(air.beam(0, now), Some(beams), "{n} ms");
        // The position is updated every 10 ms, which is a decimetre.
        let place = at(ms(n / 10 * 10));
        let gain =
            array.gain_db(beams.0, direction(height, place), 0.0) + ue.gain_db(beams.1, direction(place, height), 0.0);
        let loss = channel::pathloss::friis_db(height.distance(place), HZ);
        close(air.rsrp(0, now), 3.0024 - loss + gain, 1e-3);
        if last.is_some_and(|last| last != beams) {
            changes += 1;
            assert_eq!(n % 20, 0);
        }
        last = Some(beams);
    }
    assert!(changes >= 4, "{changes}");
}

/// The SINR in dB from cell 0 while cell 1 transmits on its whole carrier with this beam.
fn among(air: &mut Air, beam: Option<u32>) -> f64 {
    let mut sinr = Sinr::default();
    let on_air = [Occupied::default(), Occupied { first: 0, prbs: 132, background: 0.0, beam }];
    air.downlink_among(0, ms(0), &on_air, &mut Vec::new(), &mut sinr);
    db(sinr.mean())
}

#[test]
fn a_neighbour_interferes_with_the_beam_that_it_uses() {
    // Two cells 200 m apart face each other, and the UE stands halfway, between two arrays of eight.
    let row = |azimuth_deg| Array { rows: 1, columns: 8, azimuth_deg, ..Array::default() };
    let at = |x| Position::new(x, 0.0, 1.5);
    let sites = [site(at(0.0), Antenna::Array(row(0.0))), site(at(200.0), Antenna::Array(row(180.0)))];
    let config = |array| AirConfig { mobility: Mobility::fixed(at(100.0)), array, ..AirConfig::default() };
    let mut air = Air::new(&config(None), &sites, random(1));
    let alone = flat(&mut air, ms(0));
    air.set_load(1, 1.0);
    // Unknown: its element's 8 dBi against 8 + 9.031 dBi; noise is 33 dB below the signal.
    close(flat(&mut air, ms(0)), 9.031, 0.02);
    // At the UE, or past it: beam 1 has a null there.
    close(among(&mut air, Some(0)), 0.0, 0.01);
    close(among(&mut air, Some(1)), alone, 0.01);
    close(among(&mut air, None), flat(&mut air, ms(0)), 1e-5);
    // Half of the beam's distance away from it: 3.8665 dB less, and its element's 0.1468 dB.
    let aside = Position::new(200.0 - 100.0 * libm::sqrt(1.0 - 1.0 / 64.0), 100.0 / 8.0, 1.5);
    let beside = AirConfig { mobility: Mobility::fixed(aside), ..AirConfig::default() };
    let mut air = Air::new(&beside, &sites[1..], random(1));
    close(air.rsrp(0, ms(0)), 3.0024 - channel::pathloss::friis_db(100.0, HZ) + 8.0 - 0.1465 + 9.0309 - 3.8665, 1e-2);
    // A UE with an array of its own listens to its cell, and not behind itself: 30 dB.
    let mut air = Air::new(&config(Some(row(180.0))), &sites, random(1));
    // Behind a row of eight that listens straight ahead, the array's gain is the same as ahead.
    close(among(&mut air, Some(0)), 30.0, 0.2);
    // Ideal beams at the UE, and 1/8 and 1/4 aside by their sines: in the last one's null there is only noise.
    let ideal_sites = [site(at(0.0), Antenna::Array(ideal(1, 8))), site(at(200.0), Antenna::Array(ideal(1, 8)))];
    let mut air = Air::new(&config(Some(ideal(1, 4))), &ideal_sites, random(1));
    assert_eq!((air.sent_beam(0, ms(0)), air.sent_beam(1, ms(0))), (Some(0), Some(0)));
    let aside = AirConfig { mobility: Mobility::fixed(aside), ..AirConfig::default() };
    let beam = Air::new(&aside, &ideal_sites, random(1)).sent_beam(1, ms(0)).unwrap();
    for (beam, expected) in [(0, 0.0), (beam, 3.8665), (2 * beam, 30.94)] {
        close(among(&mut air, Some(beam)), expected, 0.1);
    }
    // The UE's own beam has its full gain behind it, too.
    close(among(&mut air, None), 9.031, 0.04);
}

/// The beam is that of the cell to which the UE listens, whichever cell it hears beside it.
#[test]
fn a_ue_hears_other_cells_with_the_beam_of_its_own_cell() {
    let ue = Position::new(0.0, 0.0, 1.5);
    let at = |sine: f64| Position::new(100.0 * libm::sqrt(1.0 - sine * sine), 100.0 * sine, 1.5);
    let sites = [0.0, 0.3, -0.65].map(|sine| site(at(sine), ISOTROPIC));
    let turned_deg = 25.0;
    let config = |array| AirConfig {
        mobility: Mobility::fixed(ue),
        orientation: Orientation::Fixed(turned_deg),
        array,
        ..AirConfig::default()
    };
    let row = Array { rows: 1, columns: 8, azimuth_deg: -20.0, ..Array::default() };
    for array in [ideal(1, 4), row, Array { panels: 2, azimuth_deg: 60.0, ..row }] {
        let mut airs = [Some(array), None].map(|array| Air::new(&config(array), &sites, random(1)));
        for (serving, other) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            let toward = |cell: usize| direction(ue, sites[cell].position);
            let beam = array.interfering().best_beam(toward(serving), turned_deg);
            let expected = array.interfering().gain_db(beam, toward(other), turned_deg);
            let [with, without] = airs.each_mut().map(|air| {
                air.rsrp(serving, ms(0));
                10.0 * libm::log10(air.interference_per_mw(serving, other))
            });
            close(with - without, expected, 1e-6);
        }
    }
}

#[test]
fn measurements_follow_the_beams_in_use() {
    let row = |azimuth_deg| Array { rows: 1, columns: 8, azimuth_deg, ..Array::default() };
    let at = |x| Position::new(x, 0.0, 1.5);
    let sites = [site(at(0.0), Antenna::Array(row(0.0))), site(at(200.0), Antenna::Array(row(180.0)))];
    let config = AirConfig { mobility: Mobility::fixed(at(100.0)), ..AirConfig::default() };
    let mut air = Air::new(&config, &sites, random(1));
    let [alone, least] = [air.greatest_sinr(0, ms(0)), air.least_sinr(0, ms(0))].map(|sinr| db(sinr as f32));
    close(least, 0.0, 0.01);
    close(flat(&mut air, ms(0)), alone, 1e-5);
    let shares = [(0, 0.5), (1, 0.25)].map(|(beam, share)| BeamShare { beam, share });
    air.set_beams(1, &shares);
    air.set_load(1, 1.0);
    // Of the power of a beam at the UE: a half, nothing (a null), and an eighth of a quarter; noise is 0.0005 of it.
    close(flat(&mut air, ms(0)), -10.0 * libm::log10(0.5 + 0.25 / 8.0 + 0.0005), 0.01);
    let rsrq = |load: f64| -10.0 * libm::log10(12.0 * (2.0 / 6.0 + 5.0 / 6.0 * load + 0.0005));
    close(air.rsrq(0, ms(0)), rsrq(0.5 + 0.25 / 8.0), 0.01);
    air.set_beams(1, &shares[1..]);
    close(flat(&mut air, ms(0)), -10.0 * libm::log10(0.75 / 8.0 + 0.0005), 0.02);
    air.set_beams(1, &[BeamShare { beam: 0, share: 1.0 }]);
    close(flat(&mut air, ms(0)), least, 1e-5);
    // Half of the carrier with data in a beam at the UE, and half of the rest without.
    let mut sinr = Sinr::default();
    let on_air = [Occupied::default(), Occupied { first: 0, prbs: 66, background: 0.5, beam: Some(0) }];
    air.downlink_among(0, ms(0), &on_air, &mut Vec::new(), &mut sinr);
    close(db(sinr.mean_over(0..66)), least, 0.01);
    close(db(sinr.mean_over(66..132)), -10.0 * libm::log10(0.5 / 8.0 + 0.0005), 0.02);
}

#[test]
fn wide_carriers_fade_slot_by_slot() {
    let fading = Some(fading::Config {
        profile: Profile::Tdl { model: Tdl::D, delay_spread_ns: 32.0 },
        doppler: Doppler::Hz(260.0),
    });
    let mut wide = site(CELL, ISOTROPIC);
    wide.carrier.prbs = 264;
    let config = AirConfig { fading, ..AirConfig::default() };
    let mean = flat(&mut Air::new(&AirConfig { fading: None, ..config.clone() }, &[wide], random(1)), ms(0));
    let mut air = Air::new(&config, &[wide], random(1));
    let (mut sinr, mut last) = (Sinr::default(), Sinr::default());
    let mut sum = 0.0;
    for slot in 0..8000 {
        let start = Time::from_nanos(slot * 125_000);
        air.downlink(0, start, &mut sinr);
        assert_ne!(sinr, last);
        last.clone_from(&sinr);
        air.downlink(0, start + Span::from_micros(124), &mut sinr);
        assert_eq!(sinr, last, "it changed within a slot");
        sum += f64::from(sinr.mean());
    }
    let Sinr::PerRb(all) = &sinr else { panic!("a faded channel is flat") };
    assert_eq!(all.len(), 264);
    close(db((sum / 8000.0) as f32), mean, 0.3);
}

#[test]
fn a_channel_is_the_same_however_often_it_is_looked_at() {
    let array = Array { rows: 4, columns: 8, panels: 3, ..Array::default() };
    let route: Vec<Position> = [(70.0, -10.0), (70.0, 40.0), (90.0, 40.0), (70.0, 50.0), (10.0, 62.0)]
        .map(|(x, y)| Position::new(x, y, 1.5))
        .into();
    let config = AirConfig {
        mobility: Mobility::route(&route, &[9.0, 1.5, 9.0, 7.0]).unwrap(),
        channel: umi(Sight::Buildings, Some(Shadowing::UMI)),
        fading: Some(fading::Config {
            profile: Profile::Tdl { model: Tdl::A, delay_spread_ns: 66.0 },
            doppler: Doppler::Speed,
        }),
        buildings: street(),
        blockage: Some(Blockage::default()),
        car: Some(Car::default()),
        array: Some(Array { rows: 2, columns: 2, panels: 2, ..Array::default() }),
        ..AirConfig::default()
    };
    let sites = [site(CELL, Antenna::Array(array)), site(Position::new(70.0, 120.0, 10.0), Antenna::Array(array))];
    let new = || {
        let mut air = Air::new(&config, &sites, random(3));
        air.set_load(1, 0.5);
        air.set_beams(1, &[(3, 0.1), (33, 0.2), (70, 0.1)].map(|(beam, share)| BeamShare { beam, share }));
        air
    };
    let (mut often, mut seldom) = (new(), new());
    let (mut a, mut b) = (Sinr::default(), Sinr::default());
    let mut states = [0; 3];
    for n in 0..25_000 {
        let now = Time::from_nanos(n * 1_317_000);
        often.uplink(1, now, 3, &mut a);
        often.downlink(0, now, &mut a);
        states[0] += u32::from(often.is_los(0, now));
        states[1] += u32::from(often.walls_db(0, now) != often.walls_db(0, ms(0)));
        states[2] += u32::from(often.blocked_db(0, now) > 1.0);
        if n % 777 == 0 {
            seldom.downlink(0, now, &mut b);
            assert_eq!(a, b, "at {now}");
            assert_eq!(often.rsrp(1, now), seldom.rsrp(1, now));
            assert_eq!(often.rsrq(0, now), seldom.rsrq(0, now));
            assert_eq!(often.beam(1, now), seldom.beam(1, now));
        }
    }
    assert!(states.iter().all(|&count| count > 500 && count < 24_000), "{states:?}");
}

#[test]
fn wider_subcarriers_get_more_power_for_each_resource_block() {
    // 38.213 7.1.1: P0 + 10 log10(2^mu M) + alpha PL for M blocks, here -80 + 100 dBm for one of 15 kHz.
    let channel = Channel::Modelled { path_loss: PathLoss::Fixed(100.0), shadowing: None };
    let power = channel::UplinkPower { max_dbm: 40.0, p0_dbm: -80.0, alpha: 1.0 };
    let config = AirConfig { channel, power, ..AirConfig::default() };
    for (subcarrier_hz, more_db) in [(15_000, 0.0), (30_000, 3.0103), (120_000, 9.0309)] {
        let mut here = site(CELL, ISOTROPIC);
        here.carrier.subcarrier_hz = subcarrier_hz;
        let mut air = Air::new(&config, &[here], random(1));
        close(air.uplink_power_dbm(0, ms(0), 1), 20.0 + more_db, 1e-4);
        close(air.uplink_power_dbm(0, ms(0), 10), 30.0 + more_db, 1e-4);
        // 38.213 7.7.1.
        close(air.headroom_db(0, ms(0), 10), 10.0 - more_db, 1e-4);
        // The power density is the same, and so is the SINR: noise of -174 + 41.76 dBm per 15 kHz, plus 9 dB.
        let mut sinr = Sinr::default();
        air.uplink(0, ms(0), 10, &mut sinr);
        let noise_dbm = -174.0 + 10.0 * libm::log10(12.0 * 15_000.0) + 9.0;
        close(db(sinr.mean()), -80.0 - noise_dbm, 1e-3);
    }
}
