//! Byte queue limits above RLC: little waits in it, and it never wants for anything.

use crate::support::{World, am, each_mac, loss_for, ms, network, ue, um};
use aqm::{Completion, Limit, bql, gate};
use channel::fading::{self, Doppler, Profile};
use channel::{Bandwidth, Direction};
use ran::rlc::Mode;
use ran::{Above, Config, Discipline, MacConfig, Room};

const WAYS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

fn above(limit: Limit) -> Above {
    Above {
        gate: gate::Config { queue: aqm::Config::UNLIMITED, limit },
        room: Room { packets: None, bytes: Some(500_000) },
    }
}

fn bql(completed: Completion) -> Limit {
    Limit::Bql(bql::Config { completed, ..bql::Config::default() })
}

/// The network with nothing but the buffer's room to stop who fills it, or with byte queue limits.
fn limited(mut config: Config, limit: Limit) -> Config {
    for ue in &mut config.ues {
        ue.host = above(limit);
        for bearer in &mut ue.bearers {
            bearer.above = Some(above(limit));
        }
    }
    config
}

/// Bytes a second each way with everybody always having more, what the first UE's RLC holds in the end, and how often one
/// was left with nothing after the first second.
fn saturated(config: &Config) -> [(f64, u64, u64); 2] {
    let ues: Vec<u32> = (0..config.ues.len() as u32).collect();
    let mut world = World::new(config);
    let starved = |world: &World, way: Direction| -> u64 {
        let of = |ue: &u32| match way {
            Direction::Downlink => world.ran.stats(*ue).downlink.starved,
            Direction::Uplink => world.ran.stats(*ue).uplink.starved,
        };
        ues.iter().map(of).sum()
    };
    let mut before = [0; 2];
    for second in 0..3 {
        for tick in 0..200 {
            let end = ms(second * 1000 + tick * 5 + 5);
            for way in WAYS {
                world.saturate(way, &ues, 400, world.now + units::Span::from_nanos(1));
            }
            world.run(end);
        }
        if second == 0 {
            before = WAYS.map(|way| starved(&world, way));
        }
    }
    WAYS.map(|way| {
        let bytes: u64 = ues.iter().map(|&ue| world.bytes(way, ue, ms(1000))).sum();
        let below = world.ran.rlc_backlog(0, way).bytes;
        (bytes as f64 / 2.0, below, starved(&world, way) - before[way as usize])
    })
}

/// Networks that differ in what decides how much a transport block takes, and when.
fn networks() -> Vec<(&'static str, Config)> {
    let fade = |mut config: Config| {
        for ue in &mut config.ues {
            ue.air.fading = Some(fading::Config { profile: Profile::Eva, doppler: Doppler::Hz(70.0) });
        }
        config
    };
    let ten = |mode: Mode| network(Bandwidth::Mhz5, (0..10).map(|i| ue(mode, loss_for(12.0 + f64::from(i)))).collect());
    let ideal = |mut config: Config| {
        each_mac(&mut config, |mac| *mac = MacConfig::ideal());
        config
    };
    let round_robin = |mut config: Config| {
        config.cells[0].downlink = Discipline::RoundRobin;
        config.cells[0].uplink = Discipline::RoundRobin;
        config
    };
    vec![
        ("one UE, UM", network(Bandwidth::Mhz5, vec![ue(um(), 60.0)])),
        ("one UE, AM, 20 MHz", network(Bandwidth::Mhz20, vec![ue(am(), 60.0)])),
        ("one UE that fades, AM", fade(network(Bandwidth::Mhz5, vec![ue(am(), loss_for(15.0))]))),
        ("one UE, UM, ideal MAC", ideal(network(Bandwidth::Mhz5, vec![ue(um(), 60.0)]))),
        ("ten UEs, UM, proportional fair", ten(um())),
        ("ten UEs that fade, AM, round robin", round_robin(fade(ten(am())))),
        ("ten UEs, UM, ideal MAC", ideal(ten(um()))),
    ]
}

#[test]
fn byte_queue_limits_cost_no_throughput() {
    for (name, mut config) in networks() {
        config.ues.iter_mut().for_each(|ue| ue.reports_host = true);
        let none = saturated(&limited(config.clone(), Limit::None));
        let bql = saturated(&limited(config, bql(Completion::Sent)));
        for (way, (none, bql)) in WAYS.iter().zip(none.iter().zip(&bql)) {
            let ratio = bql.0 / none.0;
            eprintln!(
                "{name}, {way:?}: {:.2} of {:.2} MB/s, {} of {} B below, {} starved",
                bql.0 / 1e6,
                none.0 / 1e6,
                bql.1,
                none.1,
                bql.2
            );
            assert!((0.97..1.03).contains(&ratio), "{name}, {way:?}: {ratio}");
            assert!(bql.1 < none.1 / 5, "{name}, {way:?}: {} of {} bytes in RLC", bql.1, none.1);
        }
    }
}

/// What a modem does not report is not granted, and that is nothing that byte queue limits find out.
#[test]
fn a_modem_that_reports_itself_alone_is_granted_too_little() {
    let config = network(Bandwidth::Mhz20, vec![ue(um(), 60.0)]);
    let [_, none] = saturated(&limited(config.clone(), Limit::None));
    let [_, bql] = saturated(&limited(config, bql(Completion::Sent)));
    assert!(bql.0 < 0.5 * none.0, "{} of {}", bql.0, none.0);
    assert_eq!(bql.2, 0, "it never runs empty");
}

#[test]
fn in_am_what_waits_for_its_acknowledgement_can_count() {
    let mut config = network(Bandwidth::Mhz5, vec![ue(am(), 60.0)]);
    config.ues[0].reports_host = true;
    let [none, _] = saturated(&limited(config.clone(), Limit::None));
    let [sent, _] = saturated(&limited(config.clone(), bql(Completion::Sent)));
    let [acknowledged, _] = saturated(&limited(config, bql(Completion::Acknowledged)));
    assert!((0.97..1.03).contains(&(acknowledged.0 / none.0)), "{acknowledged:?} {none:?}");
    // It comes with a STATUS PDU, many blocks later, and until then counts as waiting.
    assert!(acknowledged.1 > 2 * sent.1, "{acknowledged:?} {sent:?}");
}
