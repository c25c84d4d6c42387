//! What the hot functions of the channel cost.

use std::hint::black_box;
use std::sync::Arc;

use channel::buildings::Wall;
use channel::fading::{Config, Doppler, Fading, Grid, Profile, Tdl, Turns};
use channel::pathloss::Sight;
use channel::phy::nr;
use channel::tables::lte::tbs;
use channel::tables::nr::McsTable;
use channel::{
    Air, AirConfig, Antenna, Array, Bandwidth, Blockage, Building, Buildings, Carrier, Channel, Direction, Mobility,
    Modulation, PathLoss, Position, Random, Shadowing, Sinr, Site, Soft, block_error, coded_bits, mcs_for,
    mutual_information, wideband_cqi,
};
use criterion::{Criterion, criterion_group, criterion_main};
use rand_xoshiro::rand_core::SeedableRng;
use units::{Span, Time};

/// Measures `call`, which gets the numbers of its calls.
fn measure(c: &mut Criterion, name: &str, mut call: impl FnMut(u64)) {
    let mut n = 0;
    c.bench_function(name, |b| {
        b.iter(|| {
            call(n);
            n += 1;
        });
    });
}

fn air(bandwidth: Bandwidth, fading: Option<Config>) -> Air {
    let site = Site { carrier: Carrier::lte(bandwidth), ..Site::default() };
    Air::new(&AirConfig { fading, ..AirConfig::default() }, &[site], Random::seed_from_u64(1))
}

/// A UE with an array that walks among blockers and 300 buildings, and seven cells with arrays.
fn city() -> Air {
    let block = |n: u32| {
        let (x, y) = (f64::from(n % 20) * 60.0, f64::from(n / 20) * 60.0);
        Building { x: [x, x + 45.0], y: [y, y + 45.0], height: 20.0, wall: Wall::LowLoss }
    };
    let blocks: Vec<Building> = (0..300).map(block).collect();
    let carrier = Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs: 264, subcarrier_hz: 120_000 };
    let site = |n: i32| Site {
        position: Position::new(170.0 * f64::from(n), 110.0 * f64::from(n), 10.0),
        antenna: Antenna::Array(Array::default()),
        carrier,
        ..Site::default()
    };
    let config = AirConfig {
        mobility: Mobility::line(Position::new(-7.0, 53.0, 1.5), [1.0, 0.0, 0.0]),
        channel: Channel::Modelled {
            path_loss: PathLoss::UmiStreetCanyon(Sight::Buildings),
            shadowing: Some(Shadowing::UMI),
        },
        buildings: Some(Arc::new(Buildings::new(&blocks).expect("blocks have a volume"))),
        blockage: Some(Blockage::default()),
        array: Some(Array { rows: 2, columns: 2, panels: 2, ..Array::default() }),
        ..AirConfig::default()
    };
    Air::new(&config, &(0..7).map(site).collect::<Vec<_>>(), Random::seed_from_u64(1))
}

fn calls(c: &mut Criterion) {
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let mut sinr = Sinr::default();

    let mut flat = air(Bandwidth::Mhz20, None);
    measure(c, "downlink, static and flat", |n| flat.downlink(0, at(n), black_box(&mut sinr)));
    measure(c, "uplink, static and flat", |n| flat.uplink(0, at(n), 10, black_box(&mut sinr)));
    measure(c, "wideband_cqi, flat", |_| {
        black_box(wideband_cqi(black_box(&sinr)));
    });

    for (profile, name) in [(Profile::Epa, "EPA"), (Profile::Eva, "EVA"), (Profile::Etu, "ETU")] {
        for blocks in [25, 100] {
            let mut fading = Fading::new(profile, blocks, &mut Random::seed_from_u64(1));
            measure(c, &format!("fading a subframe, {name}, {blocks} blocks"), |n| {
                black_box(fading.gains(Turns::new(0.07 * n as f64)));
            });
        }
    }
    let tdl = |model| Profile::Tdl { model, delay_spread_ns: 32.0 };
    for (profile, name, blocks, subcarrier_hz) in [
        (tdl(Tdl::A), "TDL-A", 264, 120_000),
        (tdl(Tdl::D), "TDL-D", 264, 120_000),
        (tdl(Tdl::A), "TDL-A", 132, 120_000),
        (Profile::TdlA30, "TDLA30", 273, 30_000),
    ] {
        let mut fading = Fading::on_grid(profile, Grid::new(blocks, subcarrier_hz), &mut Random::seed_from_u64(1));
        measure(c, &format!("fading a slot, {name}, {blocks} blocks of {} kHz", 12 * subcarrier_hz / 1000), |n| {
            black_box(fading.gains(Turns::new(0.07 * n as f64)));
        });
    }
    let doppler = Doppler::Hz(70.0);
    let mut faded = air(Bandwidth::Mhz20, Some(Config { profile: Profile::Eva, doppler }));
    measure(c, "downlink, EVA70, 100 blocks, next subframe", |n| faded.downlink(0, at(n), black_box(&mut sinr)));
    measure(c, "downlink, EVA70, 100 blocks, same subframe", |_| faded.downlink(0, at(500_000), &mut sinr));
    let Sinr::PerRb(blocks) = &mut sinr else { unreachable!("a faded channel differs from block to block") };
    // Down to the SINRs at which links work.
    blocks.iter_mut().for_each(|sinr| *sinr *= 1e-3);
    let sites: Vec<Site> =
        (0..20).map(|n| Site { position: Position::new(f64::from(n) * 300.0, 0.0, 10.0), ..Site::default() }).collect();
    let config = AirConfig {
        mobility: Mobility::line(Position::new(0.0, 20.0, 1.5), [120.0 / 3.6, 0.0, 0.0]),
        channel: Channel::Modelled {
            path_loss: PathLoss::UmiStreetCanyon(Sight::Random),
            shadowing: Some(Shadowing::UMI),
        },
        ..AirConfig::default()
    };
    let mut drive = Air::new(&config, &sites, Random::seed_from_u64(1));
    let mut flat = Sinr::default();
    measure(c, "downlink, 20 UMi cells at 120 km/h, next subframe", |n| drive.downlink(0, at(n), &mut flat));
    let fading = Some(Config { profile: Profile::Eva, doppler });
    let config = AirConfig { fading, interference_fades: true, ..AirConfig::default() };
    let mut among = Air::new(&config, &sites[..7], Random::seed_from_u64(1));
    (1..7).for_each(|cell| among.set_load(cell, 1.0));
    measure(c, "downlink, EVA70, 50 blocks, among 6 cells that fade", |n| among.downlink(0, at(n), &mut flat));
    let mut walk = city();
    measure(c, "rsrp, 7 cells with beams among 300 buildings, next update", |n| {
        black_box(walk.rsrp(0, at(20 * n)));
    });
    measure(c, "information, 100 blocks", |_| {
        black_box(black_box(&sinr).information(Modulation::Qam16, 0..100));
    });
    measure(c, "wideband_cqi, 100 blocks", |_| {
        black_box(wideband_cqi(black_box(&sinr)));
    });

    measure(c, "mutual_information", |n| {
        black_box(mutual_information(Modulation::Qam64, black_box(n as f32 * 1e-5)));
    });
    measure(c, "mcs_for", |n| {
        black_box(mcs_for(1 + (n % 15) as u8, Direction::Downlink, black_box(-0.3)));
    });
    let mut soft = Soft::default();
    soft.add(0.999, coded_bits(Direction::Downlink, Modulation::Qam64, 100));
    measure(c, "block_error, certain", |_| {
        black_box(block_error(tbs(26, 100), black_box(&soft)));
    });
    soft.information *= 0.91;
    measure(c, "block_error, at the edge", |_| {
        black_box(block_error(tbs(26, 100), black_box(&soft)));
    });

    // 132 resource blocks at MCS 28: 106,576 bits in 13 code blocks.
    let (rate, coded) = (1896, 114_048);
    let information = [("certain", 0.999), ("at the edge", 0.96), ("repeated", 0.2)];
    for (name, information) in information {
        let mut soft = Soft::default();
        soft.add(information, if name == "repeated" { 5 * coded } else { coded });
        measure(c, &format!("nr::block_error, 13 code blocks, {name}"), |_| {
            black_box(nr::block_error(black_box(106_576), rate, black_box(&soft)));
        });
    }
    measure(c, "nr::mcs_for", |n| {
        black_box(nr::mcs_for(McsTable::Qam256, 1 + (n % 15) as u8, black_box(-0.3)));
    });
    measure(c, "nr::cqi_at, flat", |_| {
        black_box(nr::cqi_at(McsTable::Qam256, black_box(&Sinr::Flat(1.7))));
    });
}

criterion_group!(benches, calls);
criterion_main!(benches);
