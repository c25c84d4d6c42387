//! What a cell costs: nanoseconds for each TTI or slot, and each packet. `cargo run --release -p ran --example cell_cost`
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::time::Instant;

use aqm::{DropReason, Limit};
use channel::fading::{self, Profile};
use channel::tables::nr::Numerology;
use channel::{AirConfig, Bandwidth, Carrier, Channel, Direction, PathLoss, Random, Site};
use ran::rlc::{self, Am, Mode};
use ran::{
    Above, BearerConfig, CellConfig, Config, Duplex, Filter, MacConfig, Nr, Pattern, Ran, Rat, Room, Stream, UeConfig,
    pdcp,
};
use rand_xoshiro::rand_core::SeedableRng;
use testkit::queue::TestPacket;
use units::{Span, Time};

const BQL: Limit = Limit::Bql(aqm::bql::Config { min: 0, max: 1 << 30, hold: Span::from_secs(1) });
/// Milliseconds that each case simulates.
const TTIS: u64 = 100_000;

/// A queue above 100 kB of RLC's.
fn above(limit: Limit) -> Above {
    let queue = aqm::Config::PfifoFast(aqm::pfifo_fast::Config::default());
    let room = Room { packets: None, bytes: Some(100_000) };
    Above { gate: aqm::gate::Config { queue, limit }, room, completion: rlc::Completion::Sent }
}

/// With byte queue limits both ways, or with a FIFO in front of RLC in the downlink and a modem's room in the uplink.
fn ue(air: AirConfig, limited: bool) -> UeConfig {
    let pdcp = pdcp::Config { queue: aqm::Config::default(), discard: None };
    let rlc = rlc::Config { mode: Mode::Am(Am::default()), downlink: pdcp, uplink: pdcp };
    UeConfig {
        air,
        cell: Some(0),
        aggregates: true,
        layers: 1,
        category: channel::tables::lte::Category::UNLIMITED,
        bearers: vec![BearerConfig {
            qci: 9,
            filter: Filter::All,
            group: 3,
            rlc,
            nr: None,
            nr_buffer: None,
            above: limited.then(|| above(BQL)),
        }],
        host: above(if limited { BQL } else { Limit::None }),
        reports_host: limited,
        modem_drops: false,
    }
}

fn still(loss_db: f64) -> AirConfig {
    let channel = Channel::Modelled { path_loss: PathLoss::Fixed(loss_db), shadowing: None };
    AirConfig { channel, ..AirConfig::default() }
}

/// Downloads to the first `active` of `ues`, an acknowledgement for each other packet.
fn run(name: &str, air: &AirConfig, limited: bool, ues: usize, active: u32, mac: MacConfig) {
    let site = Site { carrier: Carrier::lte(Bandwidth::Mhz20), ..Site::default() };
    let config = Config {
        cells: vec![CellConfig { site, mac, ..CellConfig::default() }],
        ues: (0..ues).map(|_| ue(air.clone(), limited)).collect(),
        ..Config::default()
    };
    let mut n = 0;
    let mut ran: Ran<TestPacket> = Ran::new(&config, |_: Stream| {
        n += 1;
        Random::seed_from_u64(n)
    });
    let mut drops = |_: TestPacket, _: DropReason| {};
    let (mut packets, mut unacknowledged) = (0u64, 0u64);
    let began = Instant::now();
    for tti in 0..TTIS {
        let now = Time::ZERO + Span::from_millis(tti);
        ran.handle_timeout(now, &mut drops, &mut ());
        while let Some(delivery) = ran.poll_delivery() {
            packets += 1;
            if delivery.direction == Direction::Downlink {
                unacknowledged += 1;
                if unacknowledged.is_multiple_of(2) {
                    ran.handle_uplink(delivery.ue, TestPacket::new(0, 1, 52), now, &mut drops);
                }
            }
        }
        for ue in 0..active {
            while ran.rlc_backlog(ue, Direction::Downlink).packets + ran.above_backlog(ue, Direction::Downlink).packets
                < 20
            {
                ran.handle_downlink(ue, TestPacket::new(0, 1, 1452), now, &mut drops);
            }
        }
    }
    let nanos = began.elapsed().as_nanos() as f64;
    let blocks: u64 = (0..active).map(|ue| ran.stats(ue)).map(|s| s.downlink.blocks + s.uplink.blocks).sum();
    println!(
        "{name:36} {:8.0} ns a TTI {:8.0} ns a packet {:6.2} packets {:5.2} blocks a TTI {:5.1} Mbit/s",
        nanos / TTIS as f64,
        nanos / packets.max(1) as f64,
        packets as f64 / TTIS as f64,
        blocks as f64 / TTIS as f64,
        (0..active).map(|ue| ran.stats(ue).downlink.bits).sum::<u64>() as f64 / TTIS as f64 / 1e3,
    );
}

/// Slots of NR at 240 kHz in which nothing is sent, with `ues` whose RLC mode is that of LTE.
fn idle_nr(name: &str, air: &AirConfig, ues: usize, duplex: Duplex) {
    let rat = Rat::Nr(Nr::new(Numerology::Khz240, duplex));
    let carrier = Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs: 66, subcarrier_hz: 240_000 };
    let site = Site { carrier, ..Site::default() };
    let config = Config {
        cells: vec![CellConfig {
            site,
            mac: MacConfig { rat, decoding: Span::from_micros(50), ..MacConfig::default() },
            ..CellConfig::default()
        }],
        ues: (0..ues).map(|_| ue(air.clone(), false)).collect(),
        ..Config::default()
    };
    let mut ran: Ran<TestPacket> = Ran::new(&config, |_: Stream| Random::seed_from_u64(1));
    let mut drops = |_: TestPacket, _: DropReason| {};
    let slots = TTIS * 16;
    let began = Instant::now();
    for slot in 0..slots {
        ran.handle_timeout(Time::ZERO + Span::from_nanos(62_500) * slot, &mut drops, &mut ());
    }
    println!("{name:36} {:8.1} ns a slot", began.elapsed().as_nanos() as f64 / slots as f64);
}

fn main() {
    let good = still(60.0);
    let fair = still(30.0 - -92.4 - 8.0);
    let fading = AirConfig {
        fading: Some(fading::Config { profile: Profile::Epa, doppler: fading::Doppler::Hz(5.9) }),
        ..good.clone()
    };
    let pattern = Duplex::Tdd(Pattern::DDDSU);
    idle_nr("NR at 240 kHz, idle, 1 UE", &good, 1, pattern);
    idle_nr("NR at 240 kHz, idle, 1000 UEs", &good, 1000, pattern);
    idle_nr("NR at 240 kHz, flexible, idle, 1 UE", &good, 1, Duplex::Flexible);
    run("idle, 1 UE", &good, false, 1, 0, MacConfig::default());
    run("idle, 1000 UEs", &good, false, 1000, 0, MacConfig::default());
    run("1 UE, best scheme", &good, false, 1, 1, MacConfig::default());
    run("1 UE, best scheme, byte queue limits", &good, true, 1, 1, MacConfig::default());
    run("1 UE, best scheme, ideal", &good, false, 1, 1, MacConfig::ideal());
    run("1 UE, 8 dB", &fair, false, 1, 1, MacConfig::default());
    run("1 UE, EPA fading", &fading, false, 1, 1, MacConfig::default());
    run("10 UEs", &good, false, 10, 10, MacConfig::default());
    run("1000 UEs, 1 active", &good, false, 1000, 1, MacConfig::default());
    run("1000 UEs, 100 active", &good, false, 1000, 100, MacConfig::default());
}
