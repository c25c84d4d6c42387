//! The path losses beside worked values, beside the standard's table, and at their break points.

use channel::pathloss::{
    Office, PathLoss, Sight, Urban, cost231_hata_db, friis_db, inh_los_db, inh_nlos_db, rma_break_m, rma_los_db,
    rma_nlos_db, rma_sight_probability,
};
use channel::{Air, AirConfig, Channel, Mobility, Position, Random, Shadowing, Site, shadowing::Spread};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use units::{Span, Time};

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

/// TR 38.901 Table 7.4.1-1: scenario, state, formula, range, standard deviation, correlation, source.
fn table() -> Vec<Vec<String>> {
    let text = include_str!("../data/nr_38901_7.4.1-1_pathloss.csv");
    let fields = |line: &str| {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                c => fields.last_mut().unwrap().push(c),
            }
        }
        fields
    };
    text.lines().skip(1).map(fields).collect()
}

fn row(scenario: &str, state: &str) -> Vec<String> {
    table().into_iter().find(|row| row[0] == scenario && row[1] == state).unwrap()
}

#[test]
fn losses_near_the_mast_have_the_coefficients_of_the_table() {
    type Loss = fn(&Urban, f64, f64, f64, f64) -> f64;
    let models: [(&str, Urban, &str, Loss); 4] = [
        ("UMi", Urban::MICRO, "LOS", Urban::los_db),
        ("UMi", Urban::MICRO, "NLOS", Urban::nlos_db),
        ("UMa", Urban::MACRO, "LOS", Urban::los_db),
        ("UMa", Urban::MACRO, "NLOS", Urban::nlos_db),
    ];
    for (scenario, urban, state, loss) in models {
        // `28.0+22log10(d3D)+20log10(f); ...` or `max(LOS, 13.54+39.08log10(d3D)+20log10(f)-0.6(hUT-1.5))`.
        let formula = row(scenario, state)[2].clone();
        let formula = formula.split(';').next().unwrap().trim_start_matches("max(LOS, ");
        let (left, right) = formula.split_once("log10(d3D)+").unwrap();
        let (base, slope) = left.split_once('+').unwrap();
        let (frequency, rest) = right.split_once("log10(f)").unwrap();
        let [base, slope, frequency] = [base, slope, frequency].map(|n| n.parse::<f64>().unwrap());
        let height = rest.strip_prefix('-').map_or(0.0, |rest| rest.split('(').next().unwrap().parse().unwrap());
        for (ground, site, ue, ghz) in [(60.0, 25.0, 1.5, 2.0f64), (90.0, 10.0, 6.0, 3.5), (150.0, 25.0, 4.0, 2.6)] {
            assert!(ground < Urban::break_m(site, ue, ghz * 1e9));
            let space = f64::hypot(ground, site - ue);
            let expected = base + slope * space.log10() + frequency * ghz.log10() - height * (ue - 1.5);
            close(loss(&urban, ground, site, ue, ghz * 1e9), expected, 1e-9);
        }
    }
}

#[test]
fn shadowing_has_the_deviations_and_distances_of_the_table() {
    let models = [("UMi", Shadowing::UMI), ("UMa", Shadowing::UMA), ("RMa", Shadowing::RMA), ("InH", Shadowing::INH)];
    for (scenario, shadowing) in models {
        for (state, Spread { sigma_db, correlation_m }) in [("LOS", shadowing.los), ("NLOS", shadowing.nlos)] {
            let row = row(scenario, state);
            // `4 (d2D<=dBP) / 6` has one before the break point and one beyond.
            let sigmas: Vec<f64> =
                row[4].split('/').map(|part| part.split_whitespace().next().unwrap().parse().unwrap()).collect();
            assert_eq!((sigma_db, correlation_m), (sigmas[0], row[5].parse().unwrap()), "{scenario} {state}");
            if state == "LOS" {
                assert_eq!(shadowing.far_los_sigma_db, *sigmas.last().unwrap(), "{scenario}");
            }
        }
    }
    for (scenario, shadowing) in [("UMi/UMa", Shadowing::UMI), ("UMi/UMa", Shadowing::UMA), ("RMa", Shadowing::RMA)] {
        let (row, Spread { sigma_db, correlation_m }) = (row(scenario, "O2I"), shadowing.indoors);
        assert_eq!((sigma_db, correlation_m), (row[4].parse().unwrap(), row[5].parse().unwrap()), "{scenario} O2I");
    }
}

#[test]
fn uma_losses_are_the_formulas() {
    // 2 GHz, 25 m and 1.5 m high: break point 4 * 24 * 0.5 * 2e9 / c = 320.2215 m; log10(hypot(100, 23.5)) = 2.0116725.
    close(Urban::break_m(25.0, 1.5, 2e9), 320.2215, 1e-4);
    close(Urban::MACRO.los_db(100.0, 25.0, 1.5, 2e9), 28.0 + 22.0 * 2.011_672_5 + 6.020_6, 1e-4);
    // Beyond it: d3D = sqrt(1000^2 + 23.5^2), log10 = 3.0001199; log10(320.2215^2 + 23.5^2) = 5.0132337:
    // 28 + 40 * 3.0001199 + 6.0206 - 9 * 5.0132337 = 108.9063.
    close(Urban::MACRO.los_db(1000.0, 25.0, 1.5, 2e9), 108.906_3, 1e-4);
    close(Urban::MACRO.nlos_db(500.0, 25.0, 1.5, 2e9), 125.055_1, 1e-4);
    close(Urban::MACRO.sight_probability(200.0), 0.128_048, 1e-6);
    assert_eq!(Urban::MACRO.sight_probability(18.0), 1.0);
}

#[test]
fn umi_losses_are_the_formulas() {
    // 3.5 GHz (log10 = 0.5440680), 10 m and 1.5 m high. Break point: 4 * 9 * 0.5 * 3.5e9 / 299792458 = 210.1454 m.
    close(Urban::break_m(10.0, 1.5, 3.5e9), 210.1454, 1e-4);
    // At 100 m, d3D = sqrt(100^2 + 8.5^2) = 100.360600, log10 = 2.0015633:
    // 32.4 + 21 * 2.0015633 + 20 * 0.5440680 = 85.31419.
    close(Urban::MICRO.los_db(100.0, 10.0, 1.5, 3.5e9), 85.314_19, 1e-4);
    // Beyond it, at 500 m: d3D = 500.072245, log10 = 2.6990327; log10(210.1454^2 + 8.5^2) = log10(44233.34) = 4.6457497:
    // 32.4 + 40 * 2.6990327 + 20 * 0.5440680 - 9.5 * 4.6457497 = 107.10805. The nearer formula would say 99.96105.
    close(Urban::MICRO.los_db(500.0, 10.0, 1.5, 3.5e9), 107.108_05, 1e-4);
    // Without line of sight at 500 m, the UE 5 m high: d3D = 500.025, log10 = 2.6989917:
    // 22.4 + 35.3 * 2.6989917 + 21.3 * 0.5440680 - 0.3 * 3.5 = 128.21306.
    close(Urban::MICRO.nlos_db(500.0, 10.0, 5.0, 3.5e9), 128.213_06, 1e-4);
    // 18 / 200 + exp(-200 / 36) * (1 - 18 / 200) = 0.09 + 0.0038659 * 0.91.
    close(Urban::MICRO.sight_probability(200.0), 0.093_518, 1e-6);
    assert_eq!(Urban::MICRO.sight_probability(18.0), 1.0);
}

#[test]
fn rma_losses_are_the_formulas() {
    // 800 MHz, 35 m and 1.5 m high, buildings of 5 m (5^1.72 = 15.93046), streets of 20 m.
    close(rma_break_m(35.0, 1.5, 8e8), 880.2549, 1e-4);
    close(rma_los_db(500.0, 35.0, 1.5, 8e8, 5.0), 85.792_36, 1e-4);
    // Beyond the break point, PL1 there and 40 log10(d3D / dBP): 20 log10(40 pi 880.2549 * 0.8 / 3) = 89.39574,
    // 0.03 * 15.93046 * log10(880.2549) = 1.40727, 0.044 * 15.93046 = 0.70094, 0.002 log10(5) * 880.2549 = 1.23054:
    // 89.39574 + 1.40727 - 0.70094 + 1.23054 + 40 log10(3000.18704 / 880.2549) = 91.33261 + 21.30159.
    close(rma_los_db(3000.0, 35.0, 1.5, 8e8, 5.0), 91.332_61 + 21.301_59, 1e-4);
    close(rma_nlos_db(1000.0, 35.0, 1.5, 8e8, 5.0, 20.0), 117.604_74, 1e-4);
    close(rma_sight_probability(1000.0), 0.371_577, 1e-6);
    assert_eq!(rma_sight_probability(10.0), 1.0);
}

#[test]
fn inh_losses_are_the_formulas() {
    // 20 m: log10 = 1.30103. 3.5 GHz: log10 = 0.5440680; 28 GHz: 1.4471580; 100 GHz: 2.
    close(inh_los_db(20.0, 3.5e9), 32.4 + 22.507_82 + 10.881_36, 1e-4);
    close(inh_los_db(20.0, 28e9), 32.4 + 22.507_82 + 28.943_16, 1e-4);
    close(inh_los_db(150.0, 100e9), 32.4 + 17.3 * 2.176_091_3 + 40.0, 1e-4);
    close(inh_nlos_db(20.0, 3.5e9), 17.3 + 49.829_45 + 13.547_29, 1e-4);
    close(inh_nlos_db(20.0, 28e9), 17.3 + 49.829_45 + 36.034_23, 1e-4);
    // At 3 m and 3.5 GHz the formula without line of sight gives 49.121 dB, and the other one 51.536 dB.
    close(inh_nlos_db(3.0, 3.5e9), 51.535_56, 1e-4);
    // The distance is that in space: 4 m along the ground and 3 m up are 5 m.
    let model = |sight| PathLoss::IndoorOffice { sight, office: Office::Mixed };
    let (site, ue) = (Position::new(0.0, 0.0, 4.0), Position::new(0.0, 4.0, 1.0));
    assert_eq!(model(Sight::Los).loss_db(site, ue, 28e9, true), inh_los_db(5.0, 28e9));
    assert_eq!(model(Sight::Nlos).loss_db(site, ue, 28e9, false), inh_nlos_db(5.0, 28e9));
    assert_eq!(inh_los_db(0.2, 28e9), inh_los_db(1.0, 28e9));
}

#[test]
fn an_office_is_in_sight_with_the_probability_of_the_table() {
    for (office, ground, probability) in [
        (Office::Mixed, 1.2, 1.0),
        // exp(-3.8 / 4.7)
        (Office::Mixed, 5.0, 0.445_521),
        // exp(-5.3 / 4.7) = 0.323790 just before it and 0.32 from there on.
        (Office::Mixed, 6.499_999_999, 0.323_790),
        (Office::Mixed, 6.5, 0.32),
        // 0.32 exp(-23.5 / 32.6)
        (Office::Mixed, 30.0, 0.155_627),
        (Office::Open, 5.0, 1.0),
        // exp(-15 / 70.8)
        (Office::Open, 20.0, 0.809_074),
        // exp(-44 / 70.8)
        (Office::Open, 49.0, 0.537_155),
        // 0.54 exp(-51 / 211.7)
        (Office::Open, 100.0, 0.424_394),
    ] {
        close(office.sight_probability(ground), probability, 1e-6);
        let model = PathLoss::IndoorOffice { sight: Sight::Random, office };
        assert_eq!(model.sight_probability(ground), office.sight_probability(ground));
    }
}

#[test]
fn models_name_the_frequencies_they_were_made_for() {
    for (model, hz, inside) in [
        (PathLoss::UmiStreetCanyon(Sight::Los), 100e9, true),
        (PathLoss::UrbanMacro(Sight::Los), 101e9, false),
        (PathLoss::IndoorOffice { sight: Sight::Los, office: Office::Open }, 0.4e9, false),
        (PathLoss::RuralMacro { sight: Sight::Los, building_m: 5.0, street_m: 20.0 }, 31e9, false),
        (PathLoss::Cost231Hata { metropolitan: true }, 28e9, false),
        (PathLoss::Friis, 300e9, true),
    ] {
        assert_eq!(model.frequencies().contains(&hz), inside, "{model:?} at {hz} Hz");
    }
}

#[test]
fn cost_231_losses_are_the_formulas() {
    // 1800 MHz, 30 m, 1.5 m, 1 km: 46.3 + 33.9 * 3.2552725 - 13.82 * 1.4771213 - 0.0430 = 136.1969 dB.
    close(cost231_hata_db(1000.0, 30.0, 1.5, 1.8e9, false), 136.196_95, 1e-4);
    close(cost231_hata_db(2000.0, 100.0, 1.5, 1.5e9, false), 135.866_4, 1e-4);
    close(cost231_hata_db(5000.0, 50.0, 1.5, 1.8e9, true), 159.736_44, 1e-4);
    let city = |metropolitan| cost231_hata_db(3000.0, 50.0, 1.5, 1.8e9, metropolitan);
    close(city(true) - city(false), 3.0, 1e-9);
    // Where the formula is left far behind, free space is the least.
    let model = PathLoss::Cost231Hata { metropolitan: false };
    let (site, ue) = (Position::new(0.0, 0.0, 200.0), Position::new(12.0, 0.0, 1.5));
    assert_eq!(model.loss_db(site, ue, 1.8e9, true), friis_db(site.distance(ue), 1.8e9));
}

#[test]
fn losses_are_continuous_at_the_break_point_and_grow_with_distance() {
    for (site, ue, hz) in [(25.0, 1.5, 2e9), (25.0, 12.0, 0.8e9), (25.0, 1.5, 3.5e9)] {
        let edge = Urban::break_m(site, ue, hz);
        for model in [Urban::MACRO, Urban::MICRO] {
            close(model.los_db(edge * (1.0 + 1e-9), site, ue, hz), model.los_db(edge, site, ue, hz), 1e-6);
        }
    }
    for (site, ue, hz, building) in [(35.0, 1.5, 8e8, 5.0), (150.0, 10.0, 2e9, 50.0), (10.0, 1.0, 7e8, 5.0)] {
        let edge = rma_break_m(site, ue, hz);
        // The formulas meet where the distance in space is the break point, some centimetres before the one along the
        // ground.
        let step = rma_los_db(edge * (1.0 + 1e-9), site, ue, hz, building) - rma_los_db(edge, site, ue, hz, building);
        close(step, 0.0, 0.02);
    }
    let sights = [Sight::Los, Sight::Nlos];
    let models = sights.into_iter().flat_map(|sight| {
        [PathLoss::UrbanMacro(sight), PathLoss::RuralMacro { sight, building_m: 5.0, street_m: 20.0 }]
    });
    for model in models.chain([PathLoss::Cost231Hata { metropolitan: true }]) {
        let sees = model.sight() == Sight::Los;
        let at =
            |metres: f64| model.loss_db(Position::new(0.0, 0.0, 35.0), Position::new(metres, 0.0, 1.5), 1.8e9, sees);
        let losses: Vec<f64> = (1..2000).map(|i| at(f64::from(i) * 10.0)).collect();
        assert!(losses.is_sorted(), "{model:?}");
        assert!(at(5000.0) >= friis_db(5000.0, 1.8e9), "{model:?}");
    }
}

#[test]
fn losses_are_finite_anywhere_and_near_free_space_at_least_where_the_models_hold() {
    let mut random = Random::seed_from_u64(1);
    let mut draw = |least: f64, most: f64| least + (most - least) * (random.next_u64() as f64 / u64::MAX as f64);
    for _ in 0..20_000 {
        let [building_m, street_m] = [(); 2].map(|()| draw(5.0, 50.0));
        let sight = Sight::Random;
        // Their heights of antenna and UE, distances along the ground, and frequencies.
        for (model, site, ue, ground, ghz) in [
            (PathLoss::UmiStreetCanyon(sight), [1.5, 30.0], [1.5, 22.5], 5000.0, 100.0),
            (PathLoss::UrbanMacro(sight), [25.0, 25.0], [1.5, 13.0], 5000.0, 100.0),
            (PathLoss::RuralMacro { sight, building_m, street_m }, [10.0, 150.0], [1.0, 10.0], 5000.0, 30.0),
            (PathLoss::IndoorOffice { sight, office: Office::Mixed }, [1.0, 10.0], [0.5, 5.0], 150.0, 100.0),
            (PathLoss::Cost231Hata { metropolitan: false }, [30.0, 200.0], [1.0, 10.0], 20_000.0, 2.0),
        ] {
            let hz = 1e9 * draw(0.5, ghz);
            let at = |metres: f64, height: f64| Position::new(metres, 0.0, height);
            let (site, ue) = (at(0.0, draw(site[0], site[1])), at(draw(0.0, ground), draw(ue[0], ue[1])));
            for sees in [true, false] {
                let loss = model.loss_db(site, ue, hz, sees);
                // The tables themselves are up to 5.9 dB less: InH at 150 m, with line of sight.
                let free = friis_db(site.distance(ue), hz);
                assert!(loss.is_finite() && loss > free - 6.0, "{model:?} {site:?} {ue:?} {hz} {sees}: {loss}, {free}");
            }
            let (site, ue) = (at(0.0, draw(-5.0, 300.0)), at(draw(0.0, 1e6), draw(-1e6, 1e6)));
            for (site, ue) in [(site, ue), (at(0.0, 1.0), at(ue.x, 1.0)), (at(0.0, 0.0), at(0.0, 0.0))] {
                for sees in [true, false] {
                    let loss = model.loss_db(site, ue, hz, sees);
                    assert!(loss.is_finite() && loss > 0.0, "{model:?} {site:?} {ue:?} {hz} {sees}: {loss}");
                }
            }
        }
    }
}

/// Received powers of a UE that goes away from a mast of 25 m at 10 m/s, each second.
fn drive(path_loss: PathLoss, shadowing: Option<Shadowing>, seed: u64) -> Vec<f64> {
    let config = AirConfig {
        mobility: Mobility::line(Position::new(20.0, 0.0, 1.5), [10.0, 0.0, 0.0]),
        channel: Channel::Modelled { path_loss, shadowing },
        ..AirConfig::default()
    };
    let site = Site { position: Position::new(0.0, 0.0, 25.0), ..Site::default() };
    let mut air = Air::new(&config, &[site], Random::seed_from_u64(seed));
    (0..200).map(|second| air.rsrp(0, Time::ZERO + Span::from_secs(second))).collect()
}

#[test]
fn a_drive_is_in_sight_as_often_as_the_table_says() {
    let seen = |sight, seed| drive(PathLoss::UrbanMacro(sight), None, seed);
    let los = seen(Sight::Los, 0);
    let nlos = seen(Sight::Nlos, 0);
    let (mut sights, mut expected) = (0.0, 0.0);
    for seed in 0..200 {
        for (second, dbm) in seen(Sight::Random, seed).iter().enumerate() {
            assert!(*dbm == los[second] || *dbm == nlos[second], "one of the two");
            sights += f64::from(u8::from(*dbm == los[second] && los[second] != nlos[second]));
            let probability = Urban::MACRO.sight_probability(20.0 + 10.0 * second as f64);
            expected += if los[second] != nlos[second] { probability } else { 0.0 };
        }
    }
    close(sights / expected, 1.0, 0.1);
}

#[test]
fn rma_shadows_are_deeper_beyond_the_break_point() {
    let model = PathLoss::RuralMacro { sight: Sight::Los, building_m: 5.0, street_m: 20.0 };
    // 2.12 GHz, 25 m, 1.5 m: 1666 m.
    let edge = rma_break_m(25.0, 1.5, 2.12e9);
    let plain = drive(model, None, 0);
    let (mut near, mut far) = ((0.0, 0u32), (0.0, 0u32));
    for seed in 0..300 {
        for (second, dbm) in drive(model, Some(Shadowing::RMA), seed).iter().enumerate() {
            let sum = if 20.0 + 10.0 * second as f64 <= edge { &mut near } else { &mut far };
            sum.0 += (dbm - plain[second]).powi(2);
            sum.1 += 1;
        }
    }
    let sigma = |(sum, count): (f64, u32)| (sum / f64::from(count)).sqrt();
    close(sigma(near), 4.0, 0.2);
    close(sigma(far), 6.0, 0.4);
}
