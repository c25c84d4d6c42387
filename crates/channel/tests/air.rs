//! One UE among cells: powers, interference, power control, movement, and records.

use std::sync::Arc;

use channel::pathloss::{Sight, Urban};
use channel::phy::CQI_SINR_DB;
use channel::recorded::Start;
use channel::{
    Air, AirConfig, Antenna, Bandwidth, Carrier, Channel, Mobility, Occupied, PathLoss, Position, Random, Recorded,
    Shadowing, Sinr, Site, UplinkPower, fading, wideband_cqi,
};
use rand_xoshiro::rand_core::SeedableRng;
use units::{Span, Time};

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

fn random(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

fn db(ratio: f32) -> f64 {
    10.0 * libm::log10(f64::from(ratio))
}

fn linear(db: f64) -> f64 {
    libm::exp10(db / 10.0)
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b}");
}

fn site(x: f64, bandwidth: Bandwidth) -> Site {
    Site { position: Position::new(x, 0.0, 30.0), carrier: Carrier::lte(bandwidth), ..Site::default() }
}

fn modelled(path_loss: PathLoss, shadowing: Option<Shadowing>) -> Channel {
    Channel::Modelled { path_loss, shadowing }
}

fn flat_downlink(air: &mut Air, serving: usize, now: Time) -> f64 {
    let mut sinr = Sinr::default();
    air.downlink(serving, now, &mut sinr);
    let Sinr::Flat(sinr) = sinr else { panic!("a channel without fading differs from block to block") };
    db(sinr)
}

fn flat_uplink(air: &mut Air, serving: usize, now: Time, prbs: u16) -> f64 {
    let mut sinr = Sinr::default();
    air.uplink(serving, now, prbs, &mut sinr);
    let Sinr::Flat(sinr) = sinr else { panic!("a channel without fading differs from block to block") };
    db(sinr)
}

#[test]
fn one_cell_in_free_space_is_the_sum_of_its_decibels() {
    let mut air = Air::new(&AirConfig::default(), &[site(0.0, Bandwidth::Mhz20)], random(1));
    // 30 dBm over 1200 subcarriers are -0.792 dBm; 103.981 m at 2.12 GHz lose 79.314 dB.
    close(air.rsrp(0, ms(0)), -0.792 - 79.314, 2e-3);
    // Noise of 15 kHz with 9 dB: -174 + 41.761 + 9 = -123.239 dBm.
    close(flat_downlink(&mut air, 0, ms(0)), -80.106 + 123.239, 2e-3);
    // Reference signals alone use two of twelve elements of their symbol; all data, all of them.
    close(air.rsrq(0, ms(0)), -3.010, 2e-3);
    air.set_load(0, 1.0);
    close(air.rsrq(0, ms(0)), -10.792, 2e-3);
    // A cell does not interfere with itself.
    close(flat_downlink(&mut air, 0, ms(0)), -80.106 + 123.239, 2e-3);
}

#[test]
fn the_uplink_makes_up_for_the_loss_until_its_power_ends() {
    let at = |metres: f64, power: UplinkPower| {
        let config =
            AirConfig { mobility: Mobility::fixed(Position::new(metres, 0.0, 30.0)), power, ..AirConfig::default() };
        Air::new(&config, &[site(0.0, Bandwidth::Mhz20)], random(1))
    };
    // At 100 m, 78.975 dB are lost in the downlink and 0.815 dB less in the uplink: -80 dBm a block and 1.025 dB less
    // power than at 0 dBm. Noise of 180 kHz with 5 dB: -174 + 52.553 + 5 = -116.447 dBm.
    let mut air = at(100.0, UplinkPower::default());
    for prbs in [1, 10, 100] {
        close(flat_uplink(&mut air, 0, ms(0), prbs), -80.0 + 0.815 + 116.447, 5e-3);
        close(air.uplink_power_dbm(0, ms(0), prbs), -1.025 + 10.0 * libm::log10(f64::from(prbs)), 5e-3);
    }
    // Ten times as far, 18.975 dBm a block are needed: enough for two blocks, but four halve it.
    let mut air = at(1000.0, UplinkPower::default());
    close(air.uplink_power_dbm(0, ms(0), 2), 18.975 + 3.010, 5e-3);
    close(air.uplink_power_dbm(0, ms(0), 4), 23.0, 1e-9);
    close(flat_uplink(&mut air, 0, ms(0), 4), 23.0 - 6.021 - 98.975 + 0.815 + 116.447, 5e-3);
    close(flat_uplink(&mut air, 0, ms(0), 4) - flat_uplink(&mut air, 0, ms(0), 40), 10.0, 1e-3);
    // Half of the loss made up for.
    let mut air = at(100.0, UplinkPower { alpha: 0.5, p0_dbm: -60.0, ..UplinkPower::default() });
    close(air.uplink_power_dbm(0, ms(0), 1), -60.0 + 78.975 / 2.0, 5e-3);
}

#[test]
fn neighbours_interfere_on_the_blocks_on_which_they_transmit() {
    let sites = [site(0.0, Bandwidth::Mhz5), site(200.0, Bandwidth::Mhz5), site(200.0, Bandwidth::Mhz10)];
    let mut air = Air::new(&AirConfig::default(), &sites, random(1));
    let alone = flat_downlink(&mut air, 0, ms(0));
    let (mut steps, mut sinr) = (Vec::new(), Sinr::default());
    let mut among = |prbs: [u16; 2], background: f32| {
        let of = |prbs| Occupied { first: 0, prbs, background, beam: None };
        air.downlink_among(0, ms(0), &[of(25), of(prbs[0]), of(prbs[1])], &mut steps, &mut sinr);
        [0, 9, 10, 24].map(|prb| db(sinr.at(prb)))
    };
    let near = |a: [f64; 4], b: [f64; 4]| a.into_iter().zip(b).for_each(|(a, b)| close(a, b, 2e-3));
    near(among([0, 0], 0.0), [alone; 4]);
    near(among([25, 0], 0.0), [0.0; 4]);
    // Cell 1 on the first ten blocks.
    near(among([10, 0], 0.0), [0.0, 0.0, alone, alone]);
    // A quarter of the others, and of cell 2, whose elements have half the power.
    near(among([10, 0], 0.25), [-0.512, -0.512, 4.260, 4.260]);
    // Half of the wider carrier is everywhere a half: 0.25 of cell 1's power.
    near(among([10, 25], 0.0), [-0.969, -0.969, 6.020, 6.020]);
    // Each block of the UE's in the uplink: 0 dBm + 1.025 arrive 78.5 dB weaker at either.
    let mw = air.block_mw(0, ms(0), 1);
    let mut own = Sinr::default();
    air.uplink(0, ms(0), 1, &mut own);
    close(mw * air.interference_per_mw(0, 1), f64::from(own.at(0)), 1e-3 * f64::from(own.at(0)));
    let mut heard = [0.0; 3];
    air.interference(0, |other, per_mw| heard[other] = per_mw);
    assert_eq!(heard, [0.0, air.interference_per_mw(0, 1), air.interference_per_mw(0, 2)]);
    // A SINR that was set has no interference.
    air.set_sinr(Some(7.0));
    assert!(air.is_set() && air.interference_per_mw(0, 1) == 0.0);
    air.interference(0, |other, per_mw| panic!("{other} {per_mw}"));
    air.downlink_among(
        0,
        ms(0),
        &[Occupied { first: 0, prbs: 50, background: 1.0, beam: None }; 3],
        &mut Vec::new(),
        &mut own,
    );
    close(db(own.at(0)), 7.0, 1e-5);
}

#[test]
fn neighbours_interfere_by_their_load_and_only_on_the_same_carrier() {
    let mut sites = [site(0.0, Bandwidth::Mhz5), site(200.0, Bandwidth::Mhz5), site(200.0, Bandwidth::Mhz5)];
    sites[2].carrier.downlink_hz = 1.8e9;
    let mut air = Air::new(&AirConfig::default(), &sites, random(1));
    let alone = flat_downlink(&mut air, 0, ms(0));
    air.set_load(2, 1.0);
    assert_eq!(flat_downlink(&mut air, 0, ms(0)), alone, "another carrier");
    // As far from one as from the other: 0 dB at full load, 3 dB at half, and noise is 49 dB below.
    air.set_load(1, 1.0);
    close(flat_downlink(&mut air, 0, ms(0)), 0.0, 1e-3);
    close(flat_downlink(&mut air, 1, ms(0)), alone, 1e-3);
    air.set_load(1, 0.5);
    close(flat_downlink(&mut air, 0, ms(0)), 3.010, 1e-3);
    air.set_load(1, 0.0);
    assert_eq!(flat_downlink(&mut air, 0, ms(0)), alone);
}

#[test]
fn a_drive_past_cells_hands_the_strongest_over_halfway() {
    let sites: Vec<Site> = (0..5).map(|n| site(f64::from(n) * 500.0, Bandwidth::Mhz10)).collect();
    let mobility =
        Mobility::route(&[Position::new(0.0, 50.0, 1.5), Position::new(2000.0, 50.0, 1.5)], &[25.0]).unwrap();
    let mut air = Air::new(&AirConfig { mobility, ..AirConfig::default() }, &sites, random(1));
    let mut last = 0;
    for second in 0..=90 {
        let now = ms(second * 1000);
        let strongest = (0..5).max_by(|&a, &b| air.rsrp(a, now).total_cmp(&air.rsrp(b, now))).unwrap();
        let x = air.position(now).x;
        // Halfway at 250, 750, ... m; on the spot, either is right.
        if (x - 250.0) % 500.0 != 0.0 {
            assert_eq!(strongest, ((x + 250.0) / 500.0) as usize, "at {x} m");
        }
        assert!(strongest >= last);
        last = strongest;
        assert_eq!(air.speed(now), if second < 80 { 25.0 } else { 0.0 });
    }
    assert_eq!(last, 4);
}

#[test]
fn a_moving_ue_is_at_most_a_decimetre_from_where_its_loss_is_taken() {
    // From 30 km/h on a decimetre takes 12 ms; at 100 m the loss changes by 0.0087 dB in a decimetre.
    let mobility = Mobility::line(Position::new(100.0, 0.0, 30.0), [8.3, 0.0, 0.0]);
    let mut air = Air::new(&AirConfig { mobility, ..AirConfig::default() }, &[site(0.0, Bandwidth::Mhz10)], random(1));
    let mut steps = 0;
    let mut last = f64::NAN;
    for n in 0..1000 {
        let metres = 100.0 + 8.3e-3 * n as f64;
        let rsrp = air.rsrp(0, ms(n));
        let exact = 30.0 - 10.0 * libm::log10(600.0) - channel::pathloss::friis_db(metres, 2.12e9);
        assert!(rsrp >= exact - 1e-9 && rsrp - exact < 0.0088, "{rsrp} at {metres} m, not {exact}");
        steps += u32::from(rsrp != last);
        last = rsrp;
    }
    assert_eq!(steps, 84, "once in 12 ms");
}

#[test]
fn a_channel_is_the_same_however_often_it_is_looked_at() {
    let config = AirConfig {
        mobility: Mobility::line(Position::new(-150.0, 20.0, 1.5), [9.7, 0.0, 0.0]),
        channel: modelled(PathLoss::UmiStreetCanyon(Sight::Random), Some(Shadowing::UMI)),
        fading: Some(fading::Config { profile: fading::Profile::Eva, doppler: fading::Doppler::Speed }),
        ..AirConfig::default()
    };
    let sites = [site(0.0, Bandwidth::Mhz5), site(120.0, Bandwidth::Mhz5)];
    let (mut often, mut seldom) = (Air::new(&config, &sites, random(3)), Air::new(&config, &sites, random(3)));
    let (mut a, mut b) = (Sinr::default(), Sinr::default());
    for n in 0..20_000 {
        let now = Time::from_nanos(n * 1_300_000);
        often.uplink(1, now, 3, &mut a);
        often.downlink(0, now, &mut a);
        let rsrp = [often.rsrp(0, now), often.rsrp(1, now)];
        if n % 777 == 0 {
            seldom.downlink(0, now, &mut b);
            assert_eq!(a, b, "at {now}");
            assert_eq!(rsrp, [seldom.rsrp(0, now), seldom.rsrp(1, now)]);
        }
    }
}

/// 25 masts, 500 m apart.
fn grid() -> Vec<Site> {
    let place = |n: i32| Position::new(500.0 * f64::from(n % 5 - 2), 500.0 * f64::from(n / 5 - 2), 30.0);
    (0..25).map(|n| Site { position: place(n), ..site(0.0, Bandwidth::Mhz10) }).collect()
}

#[test]
fn weak_masts_are_updated_less_often_and_hardly_matter() {
    let sites = grid();
    let exponent = 3.9;
    let config = AirConfig {
        mobility: Mobility::line(Position::new(-900.0, 130.0, 1.5), [20.0, 0.0, 0.0]),
        channel: modelled(PathLoss::LogDistance { exponent, reference_m: 1.0, reference_db: 20.0 }, None),
        ..AirConfig::default()
    };
    let mut air = Air::new(&config, &sites, random(5));
    let noise = linear(-174.0 + 10.0 * libm::log10(15e3) + 9.0);
    let (mut late, mut furthest, mut worst) = (0, 0.0f64, 0.0f64);
    for n in 0..16_000u64 {
        // A decimetre takes 5 ms.
        let now = ms(n / 5 * 5);
        let place = config.mobility.position(now);
        let exact = |cell: usize| {
            30.0 - 10.0 * libm::log10(600.0)
                - 20.0
                - 10.0 * exponent * libm::log10(sites[cell].position.distance(place))
        };
        let best = (0..25).map(exact).fold(f64::MIN, f64::max);
        for cell in 0..25 {
            let off = (air.rsrp(cell, ms(n)) - exact(cell)).abs();
            if exact(cell) > best - 19.0 {
                assert!(off < 1e-9, "{off} dB at {place:?}");
            }
            late += u32::from(off > 1e-9);
            furthest = furthest.max(off);
        }
        let serving = (0..25).max_by(|a, b| exact(*a).total_cmp(&exact(*b))).expect("there are cells");
        let all: f64 = (0..25).map(|cell| linear(exact(cell))).sum();
        let own = linear(exact(serving));
        let sinr = 10.0 * libm::log10(own / (noise + all - own));
        let got = 10.0 * libm::log10(air.least_sinr(serving, ms(n)));
        worst = worst.max((got - sinr).abs());
    }
    // Within 1.6 m, the loss over 400 m changes by 0.07 dB.
    assert!(late > 100_000 && furthest < 0.08, "{late} late ones, by up to {furthest} dB");
    assert!(worst < 5e-3, "{worst} dB");
}

#[test]
fn weak_masts_are_the_same_however_often_they_are_looked_at() {
    let sites = grid();
    let config = AirConfig {
        mobility: Mobility::line(Position::new(-900.0, 130.0, 1.5), [9.7, 0.0, 0.0]),
        channel: modelled(PathLoss::UrbanMacro(Sight::Random), Some(Shadowing::UMA)),
        ..AirConfig::default()
    };
    let (mut often, mut seldom) = (Air::new(&config, &sites, random(3)), Air::new(&config, &sites, random(3)));
    for n in 0..20_000 {
        let now = Time::from_nanos(n * 1_300_000);
        let all: Vec<f64> = (0..25).map(|cell| often.rsrp(cell, now)).collect();
        if n % 777 == 0 {
            for (cell, rsrp) in all.iter().enumerate() {
                assert_eq!(*rsrp, seldom.rsrp(cell, now), "cell {cell} at {now}");
            }
        }
    }
}

#[test]
fn sectors_of_a_mast_share_their_shadow_and_masts_do_not() {
    let mut sites = [site(0.0, Bandwidth::Mhz10), site(0.0, Bandwidth::Mhz10), site(60.0, Bandwidth::Mhz10)];
    sites[1].antenna = Antenna::Isotropic { gain_db: 6.0 };
    let (mut squares, mut product, mut other) = (0.0, 0.0, 0.0);
    let n = 4000;
    for seed in 0..n {
        let config = AirConfig {
            mobility: Mobility::fixed(Position::new(30.0, 0.0, 30.0)),
            channel: modelled(PathLoss::Fixed(100.0), Some(Shadowing::uniform(8.0, 20.0))),
            ..AirConfig::default()
        };
        let mut air = Air::new(&config, &sites, random(seed));
        let mean = 30.0 - 10.0 * libm::log10(600.0) - 100.0;
        let [a, b, c] = [0, 1, 2].map(|cell| air.rsrp(cell, ms(0)) - mean);
        close(b, a + 6.0, 1e-9);
        squares += a * a;
        product += a * c;
        other += c * c;
    }
    let n = n as f64;
    assert!((libm::sqrt(squares / n) - 8.0).abs() < 0.3, "{}", libm::sqrt(squares / n));
    assert!((product / libm::sqrt(squares * other)).abs() < 0.06, "{}", product / libm::sqrt(squares * other));
}

#[test]
fn umi_cells_are_seen_as_often_as_the_probability_says() {
    let mut sites = [site(0.0, Bandwidth::Mhz10)];
    sites[0].position.z = 10.0;
    for metres in [15.0, 40.0, 100.0, 300.0] {
        let loss = |sight, seed| {
            let config = AirConfig {
                mobility: Mobility::fixed(Position::new(metres, 0.0, 1.5)),
                channel: modelled(PathLoss::UmiStreetCanyon(sight), None),
                ..AirConfig::default()
            };
            Air::new(&config, &sites, random(seed)).rsrp(0, ms(0))
        };
        let (los, nlos) = (loss(Sight::Los, 1), loss(Sight::Nlos, 1));
        assert!(los > nlos);
        let mut seen = 0;
        for seed in 0..3000 {
            let drawn = loss(Sight::Random, seed);
            assert!(drawn == los || drawn == nlos);
            seen += u32::from(drawn == los);
        }
        close(f64::from(seen) / 3000.0, Urban::MICRO.sight_probability(metres), 0.03);
    }
}

#[test]
fn fading_shapes_the_mean_and_reuses_its_room() {
    let faded = |doppler| {
        let fading = Some(fading::Config { profile: fading::Profile::Etu, doppler });
        Air::new(&AirConfig { fading, ..AirConfig::default() }, &[site(0.0, Bandwidth::Mhz20)], random(2))
    };
    let mut air = faded(fading::Doppler::Hz(300.0));
    let (mut down, mut up) = (Sinr::default(), Sinr::default());
    air.downlink(0, ms(0), &mut down);
    let Sinr::PerRb(all) = &down else { panic!("a faded channel is flat") };
    let room = all.as_ptr();
    assert_eq!(all.len(), 100);
    let (mut sum, mut product, mut squares) = (0.0, 0.0, [0.0; 2]);
    for n in 0..20_000 {
        air.downlink(0, ms(n), &mut down);
        air.uplink(0, ms(n), 5, &mut up);
        sum += f64::from(down.mean());
        let (a, b) = (db(down.at(50)) - 43.13 + 2.51, db(up.at(50)) - 37.2 + 2.51);
        product += a * b;
        squares = [squares[0] + a * a, squares[1] + b * b];
        let again = down.clone();
        air.downlink(0, ms(n) + Span::from_micros(900), &mut down);
        assert_eq!(down, again, "it changed within a subframe");
    }
    let Sinr::PerRb(all) = &down else { panic!("a faded channel is flat") };
    assert_eq!(all.as_ptr(), room, "it was allocated again");
    close(db((sum / 20_000.0) as f32), 43.133, 0.2);
    assert!((product / libm::sqrt(squares[0] * squares[1])).abs() < 0.08, "the two directions fade together");
    // A UE that stands has a constant channel if only its speed counts.
    let mut air = faded(fading::Doppler::Speed);
    air.downlink(0, ms(0), &mut down);
    let first = down.clone();
    air.downlink(0, ms(10_000), &mut down);
    assert_eq!(down, first);
}

#[test]
fn a_record_is_what_the_ue_has() {
    let record = |text: &str| Some(Arc::new(Recorded::parse(text).unwrap()));
    let air = |records| {
        let config = AirConfig { channel: Channel::Recorded(records, Start::default()), ..AirConfig::default() };
        Air::new(&config, &[site(0.0, Bandwidth::Mhz10), site(500.0, Bandwidth::Mhz10)], random(1))
    };
    // An SINR is taken as it is, with all interference in it, and the neighbour is not heard.
    let mut sinr = air(vec![record("time_s,sinr_db\n0,12.5\n1,-4\n"), None]);
    sinr.set_load(1, 1.0);
    close(flat_downlink(&mut sinr, 0, ms(999)), 12.5, 1e-5);
    close(flat_downlink(&mut sinr, 0, ms(1000)), -4.0, 1e-5);
    close(sinr.rsrp(0, ms(1000)), -123.239 - 4.0, 1e-3);
    assert_eq!(sinr.rsrp(1, ms(1000)), f64::NEG_INFINITY);
    // Each CQI gives itself.
    for cqi in 0..=15u8 {
        let mut air = air(vec![record(&format!("time_s,cqi\n0,{cqi}\n")), None]);
        let mut sinr = Sinr::default();
        air.downlink(0, ms(5), &mut sinr);
        assert_eq!(wideband_cqi(&sinr), cqi);
        if cqi > 0 {
            close(db(sinr.mean()), f64::from(CQI_SINR_DB[usize::from(cqi) - 1]), 0.1);
        }
    }
    // Received powers interfere.
    let mut rsrp = air(vec![record("time_ms,rsrp_dbm\n0,-90\n"), record("time_ms,rsrp_dbm\n0,-100\n10,-80\n")]);
    close(flat_downlink(&mut rsrp, 0, ms(0)), 33.239, 1e-3);
    rsrp.set_load(1, 1.0);
    close(flat_downlink(&mut rsrp, 0, ms(0)), 9.979, 2e-2);
    close(flat_downlink(&mut rsrp, 0, ms(10)), -10.0, 2e-2);
    assert_eq!((rsrp.rsrp(0, ms(10)), rsrp.rsrp(1, ms(10))), (-90.0, -80.0));
    // The uplink has the loss that the received power tells of: 30 dBm over 600 subcarriers to -90 dBm are 92.218 dB.
    close(rsrp.uplink_power_dbm(0, ms(10), 1), -80.0 + 92.218, 2e-3);
    close(flat_uplink(&mut rsrp, 0, ms(10), 1), -80.0 + 116.447, 2e-3);
}

#[test]
fn a_record_begins_where_it_is_told_and_begins_again_when_it_repeats() {
    let (record, constant) = ("time_s,sinr_db\n0,10\n1,0\n2,-10\n", "time_s,sinr_db\n4,5\n");
    let [record, constant] = [record, constant].map(|text| Arc::new(Recorded::parse(text).unwrap()));
    // The last value holds for as long as the one before it.
    assert_eq!((record.period(), constant.period()), (Some(Span::from_secs(3)), None));
    let sites = [site(0.0, Bandwidth::Mhz10)];
    let values = |record: &Arc<Recorded>, start| -> Vec<f64> {
        let config =
            AirConfig { channel: Channel::Recorded(vec![Some(Arc::clone(record))], start), ..AirConfig::default() };
        let mut air = Air::new(&config, &sites, random(1));
        (0..9).map(|n| libm::round(flat_downlink(&mut air, 0, ms(500 * n)))).collect()
    };
    let begun = [10.0, 10.0, 0.0, 0.0, -10.0, -10.0, -10.0, -10.0, -10.0];
    assert_eq!(values(&record, Start::default()), begun);
    assert_eq!(values(&record, Start::at(Span::from_millis(1500)))[..3], [0.0, -10.0, -10.0]);
    assert_eq!(values(&record, Start::at(Span::from_secs(1_000_000_000))), [-10.0; 9]);
    let repeated = [0.0, -10.0, -10.0, 10.0, 10.0, 0.0, 0.0, -10.0, -10.0];
    for offset in [1500, 4500, 30_001_500] {
        assert_eq!(values(&record, Start::repeating(Span::from_millis(offset), record.period())), repeated);
    }
    assert_eq!(values(&constant, Start::repeating(Span::from_secs(7), constant.period())), [5.0; 9]);
}

#[test]
fn the_power_beside_an_sinr_sets_the_uplink_and_the_sinr_the_downlink() {
    let uplink = |text: &str| {
        let record = Some(Arc::new(Recorded::parse(text).unwrap()));
        let config =
            AirConfig { channel: Channel::Recorded(vec![record, None], Start::default()), ..AirConfig::default() };
        let mut air = Air::new(&config, &[site(0.0, Bandwidth::Mhz10), site(500.0, Bandwidth::Mhz10)], random(1));
        air.set_load(1, 1.0);
        let down = flat_downlink(&mut air, 0, ms(5));
        (down, air.rsrp(0, ms(5)), flat_uplink(&mut air, 0, ms(5), 1), air.path_loss_db(0, ms(5)))
    };
    let power = uplink("time_s,rsrp_dbm\n0,-90\n");
    for (text, sinr_db) in
        [("time_s,rsrp_dbm,sinr_db\n0,-90,3\n", 3.0), ("time_s,sinr_db,rsrp_dbm\n0,-12,-90\n", -12.0)]
    {
        let both = uplink(text);
        close(both.0, sinr_db, 1e-5);
        assert_eq!((both.1, both.2, both.3), (power.1, power.2, power.3), "{text}");
    }
    // With a loss beside it, an SINR is none of the uplink's.
    let record = |text: &str| Some(Arc::new(Recorded::parse(text).unwrap().with_loss(110.0)));
    let of = |text: &str| {
        let config = AirConfig {
            channel: Channel::Recorded(vec![record(text), None], Start::default()),
            ..AirConfig::default()
        };
        let mut air = Air::new(&config, &[site(0.0, Bandwidth::Mhz10), site(500.0, Bandwidth::Mhz10)], random(1));
        (flat_downlink(&mut air, 0, ms(5)), air.path_loss_db(0, ms(5)), flat_uplink(&mut air, 0, ms(5), 1))
    };
    let [poor, good] = ["time_s,sinr_db\n0,-3\n", "time_s,cqi\n0,15\n"].map(of);
    close(poor.0, -3.0, 1e-5);
    assert_eq!((poor.1, poor.2), (110.0, good.2));
    // A received power knows better.
    assert_eq!(of("time_s,rsrp_dbm,sinr_db\n0,-90,3\n").1, power.3);
    // An SINR alone is taken for loss, of the uplink too.
    close(uplink("time_s,sinr_db\n0,3\n").1, -123.239 + 3.0, 1e-3);
    let cqi = uplink("time_s,cqi,rsrp_dbm\n0,7,-90\n");
    close(cqi.0, f64::from(CQI_SINR_DB[6]), 0.1);
    assert_eq!(cqi.1, -90.0);
}

#[test]
fn a_sinr_that_is_set_is_heard_at_once_and_until_it_is_taken_back() {
    let sites = [site(0.0, Bandwidth::Mhz10), site(500.0, Bandwidth::Mhz10)];
    let mut air = Air::new(&AirConfig::default(), &sites, random(1));
    air.set_load(1, 1.0);
    let before = (flat_downlink(&mut air, 0, ms(5)), flat_uplink(&mut air, 0, ms(5), 1), air.rsrp(0, ms(5)));
    air.set_sinr(Some(2.0));
    // Whatever the neighbour sends, and from whichever cell.
    close(flat_downlink(&mut air, 0, ms(5)), 2.0, 1e-5);
    close(flat_downlink(&mut air, 1, ms(5)), 2.0, 1e-5);
    // 2 dB above -123.239 dBm, from 30 dBm over 600 subcarriers: 123.457 dB are lost, more than 23 dBm make up for.
    close(air.uplink_power_dbm(0, ms(5), 1), 23.0, 1e-9);
    close(flat_uplink(&mut air, 0, ms(5), 1), 23.0 - 123.457 + 116.447, 5e-3);
    assert_eq!(air.rsrp(0, ms(5)), before.2, "what decides on handovers is the channel's");
    air.set_sinr(None);
    assert_eq!((flat_downlink(&mut air, 0, ms(5)), flat_uplink(&mut air, 0, ms(5), 1), air.rsrp(0, ms(5))), before);
}

#[test]
fn interference_fades_as_the_link_to_its_cell_does() {
    let sites = [site(0.0, Bandwidth::Mhz5), site(200.0, Bandwidth::Mhz5), site(200.0, Bandwidth::Mhz10)];
    let fading = Some(fading::Config { profile: fading::Profile::Epa, doppler: fading::Doppler::Hz(300.0) });
    let air = |interference_fades| {
        Air::new(&AirConfig { fading, interference_fades, ..AirConfig::default() }, &sites, random(2))
    };
    let (mut steady, mut faded) = (air(false), air(true));
    let (mut steps, mut sinr) = (Vec::new(), Sinr::default());
    let mut at = |air: &mut Air, serving, n, prbs: [u16; 3]| {
        let on_air = prbs.map(|prbs| Occupied { first: 0, prbs, background: 0.0, beam: None });
        air.downlink_among(serving, ms(n), &on_air, &mut steps, &mut sinr);
        [4, 20].map(|prb| f64::from(sinr.at(prb)))
    };
    let (mut sums, mut squares, mut products, mut serving) = ([0.0; 2], [0.0; 2], 0.0, 0.0);
    let rounds = 40_000;
    for n in 0..rounds {
        let [own, here] = [[25, 0, 0], [25, 10, 0]].map(|prbs| at(&mut faded, 0, n, prbs));
        // The first ten blocks have the neighbour's power, which equals the cell's: both are as far away.
        let [alone, mean] = [[25, 0, 0], [25, 10, 0]].map(|prbs| at(&mut steady, 0, n, prbs));
        assert_eq!((own[1], own), (here[1], alone), "other blocks");
        let of_mean = (own[0] / here[0] - 1.0) / (alone[0] / mean[0] - 1.0);
        // The gain is that with which the neighbour would serve.
        let served = at(&mut steady, 1, n, [0, 25, 0])[0];
        let over_noise = own[0] / here[0] - 1.0;
        assert!((over_noise - served).abs() < 1e-3 * served.max(1.0), "{over_noise} {served}");
        // A wider neighbour has its mean over the carrier, with half the power in each element.
        let wide = at(&mut faded, 0, n, [25, 0, 50]);
        let of_wide = (own[0] / wide[0] - 1.0) / (alone[0] / mean[0] - 1.0) * 2.0;
        assert!(((own[1] / wide[1] - 1.0) / (own[0] / wide[0] - 1.0) - 1.0).abs() < 1e-3);
        for (i, gain) in [of_mean, of_wide].into_iter().enumerate() {
            sums[i] += gain;
            squares[i] += gain * gain;
        }
        products += own[0] * of_mean;
        serving += own[0];
    }
    let of = |sum: f64| sum / rounds as f64;
    // The power of a Rayleigh fading link is exponential: its variance is the square of its mean.
    let variance = |i: usize| of(squares[i]) - of(sums[i]) * of(sums[i]);
    assert!((of(sums[0]) - 1.0).abs() < 0.05 && (of(sums[1]) - 1.0).abs() < 0.05, "means {:?}", sums.map(of));
    assert!((variance(0) - 1.0).abs() < 0.1 && (0.1..1.0).contains(&variance(1)), "{} {}", variance(0), variance(1));
    let together = of(products) / (of(serving) * of(sums[0]));
    assert!((together - 1.0).abs() < 0.1, "both links are independent: {together}");
    // What is measured fades likewise, in proportion to the load.
    faded.set_load(1, 0.5);
    let mut measured = Sinr::default();
    for n in 0..50 {
        let [own, all] = [[25, 0, 0], [25, 25, 0]].map(|prbs| at(&mut faded, 0, n, prbs));
        faded.downlink(0, ms(n), &mut measured);
        for (i, prb) in [4, 20].into_iter().enumerate() {
            let [half, whole] = [f64::from(measured.at(prb)), all[i]].map(|sinr| own[i] / sinr - 1.0);
            assert!((half / whole - 0.5).abs() < 1e-3, "{half} {whole}");
        }
    }
    // A SINR that was set has no interference.
    faded.set_sinr(Some(7.0));
    steady.set_sinr(Some(7.0));
    assert_eq!(at(&mut faded, 0, 7, [25; 3]), at(&mut steady, 0, 7, [25; 3]));
}

#[test]
fn fading_goes_on_around_a_sinr_that_is_set() {
    let fading = Some(fading::Config { profile: fading::Profile::Epa, doppler: fading::Doppler::Hz(300.0) });
    let mut air = Air::new(&AirConfig { fading, ..AirConfig::default() }, &[site(0.0, Bandwidth::Mhz10)], random(2));
    let mut sinr = Sinr::default();
    let mut sum = 0.0;
    let mut range = (f32::MAX, f32::MIN);
    air.set_sinr(Some(7.0));
    for n in 0..20_000 {
        air.downlink(0, ms(n), &mut sinr);
        sum += f64::from(sinr.mean());
        range = (range.0.min(sinr.at(25)), range.1.max(sinr.at(25)));
    }
    close(db((sum / 20_000.0) as f32), 7.0, 0.2);
    assert!(db(range.0) < -3.0 && db(range.1) > 11.0, "{range:?}");
}
