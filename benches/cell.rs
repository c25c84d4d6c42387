//! What a cell costs for each packet, and for each TTI or slot in which nothing is sent. An iteration is a packet, a TTI or a slot.

use std::time::Duration;

use aqm::{Completion, DropReason, Limit};
use channel::fading::{self, Profile};
use channel::tables::nr::Numerology;
use channel::{AirConfig, Bandwidth, Carrier, Channel, Direction, PathLoss, Random, Site};
use cpu_time::ProcessTime;
use criterion::{Criterion, criterion_group, criterion_main};
use ran::rlc::{self, Am, Mode};
use ran::{
    Above, BearerConfig, CellConfig, Config, Duplex, Filter, MacConfig, Nr, Pattern, Ran, Rat, Room, Stream, UeConfig,
    pdcp,
};
use rand_xoshiro::rand_core::SeedableRng;
use testkit::queue::TestPacket;
use units::{Bytes, Span, Time};

const BQL: Limit = Limit::Bql(aqm::bql::Config {
    min: Bytes::ZERO,
    max: Bytes::new(1 << 30),
    hold: Span::from_secs(1),
    completed: Completion::Sent,
});
/// Milliseconds after which windows and averages are those of a long run.
const BEFORE: u64 = 1000;

/// A queue above 100 kB of RLC's.
fn above(limit: Limit) -> Above {
    let queue = aqm::Config::PfifoFast(aqm::pfifo_fast::Config::default());
    let room = Room { packets: None, bytes: Some(100_000) };
    Above { gate: aqm::gate::Config { queue, limit }, room }
}

/// With byte queue limits both ways, or with a FIFO in front of RLC in the downlink and a modem's room in the uplink.
fn ue(air: AirConfig, limited: bool) -> UeConfig {
    let pdcp = pdcp::Config { queue: aqm::Config::UNLIMITED, discard: None };
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

fn ran(air: &AirConfig, limited: bool, ues: usize, mac: MacConfig, site: Site) -> Ran<TestPacket> {
    let config = Config {
        cells: vec![CellConfig { site, mac, ..CellConfig::default() }],
        ues: (0..ues).map(|_| ue(air.clone(), limited)).collect(),
        ..Config::default()
    };
    let mut n = 0;
    Ran::new(&config, |_: Stream| {
        n += 1;
        Random::seed_from_u64(n)
    })
}

/// An LTE cell of 20 MHz.
fn lte(air: &AirConfig, limited: bool, ues: usize, mac: MacConfig) -> Ran<TestPacket> {
    ran(air, limited, ues, mac, Site { carrier: Carrier::lte(Bandwidth::Mhz20), ..Site::default() })
}

/// Returns what `packets` cost of downloads to the first `active` UEs, with an acknowledgement for each other packet.
fn busy(mut ran: Ran<TestPacket>, active: u32, packets: u64) -> Duration {
    let mut drops = |_: TestPacket, _: DropReason| {};
    let (mut delivered, mut unacknowledged) = (0u64, 0u64);
    let mut start = ProcessTime::now();
    for tti in 0.. {
        if tti == BEFORE {
            (start, delivered) = (ProcessTime::now(), 0);
        } else if tti > BEFORE && delivered >= packets {
            break;
        }
        let now = Time::ZERO + Span::from_millis(tti);
        ran.handle_timeout(now, &mut drops, &mut ());
        while let Some(delivery) = ran.poll_delivery() {
            delivered += 1;
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
    start.elapsed()
}

/// Returns what `slots` cost in which nothing is sent.
fn idle(mut ran: Ran<TestPacket>, slot: Span, slots: u64) -> Duration {
    let mut drops = |_: TestPacket, _: DropReason| {};
    let start = ProcessTime::now();
    for n in 0..slots {
        ran.handle_timeout(Time::ZERO + slot * n, &mut drops, &mut ());
    }
    start.elapsed()
}

fn slots(c: &mut Criterion) {
    let good = still(60.0);
    for ues in [1, 1000] {
        c.bench_function(&format!("a TTI of LTE, idle, {ues} UEs"), |b| {
            b.iter_custom(|slots| idle(lte(&good, false, ues, MacConfig::default()), Span::from_millis(1), slots));
        });
    }
    let pattern = Duplex::Tdd(Pattern::DDDSU);
    for (name, ues, duplex) in [("DDDSU", 1, pattern), ("DDDSU", 1000, pattern), ("flexible", 1, Duplex::Flexible)] {
        let rat = Rat::Nr(Nr::new(Numerology::Khz240, duplex));
        let carrier = Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs: 66, subcarrier_hz: 240_000 };
        let mac = MacConfig { rat, decoding: Span::from_micros(50), ..MacConfig::default() };
        c.bench_function(&format!("a slot of NR at 240 kHz, {name}, idle, {ues} UEs"), |b| {
            b.iter_custom(|slots| {
                let ran = ran(&good, false, ues, mac, Site { carrier, ..Site::default() });
                idle(ran, Span::from_nanos(62_500), slots)
            });
        });
    }
}

fn packets(c: &mut Criterion) {
    let good = still(60.0);
    let fair = still(30.0 - -92.4 - 8.0);
    let fading = AirConfig {
        fading: Some(fading::Config { profile: Profile::Epa, doppler: fading::Doppler::Hz(5.9) }),
        ..good.clone()
    };
    for (name, air, limited, ues, active, mac) in [
        ("1 UE, best scheme", &good, false, 1, 1, MacConfig::default()),
        ("1 UE, best scheme, byte queue limits", &good, true, 1, 1, MacConfig::default()),
        ("1 UE, best scheme, ideal", &good, false, 1, 1, MacConfig::ideal()),
        ("1 UE, 8 dB", &fair, false, 1, 1, MacConfig::default()),
        ("1 UE, EPA fading", &fading, false, 1, 1, MacConfig::default()),
        ("10 UEs", &good, false, 10, 10, MacConfig::default()),
        ("1000 UEs, 1 active", &good, false, 1000, 1, MacConfig::default()),
        ("1000 UEs, 100 active", &good, false, 1000, 100, MacConfig::default()),
    ] {
        c.bench_function(&format!("a packet, {name}"), |b| {
            b.iter_custom(|packets| busy(lte(air, limited, ues, mac), active, packets));
        });
    }
}

criterion_group!(benches, slots, packets);
criterion_main!(benches);
