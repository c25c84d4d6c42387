//! A change of the cell interrupts for as long as it is configured and loses what it is configured to lose.

use std::sync::Arc;

use crate::support::{TTI, World, am, cell, each_mac, ms, network, ue, um};
use aqm::{Completion, Limit, gate};
use channel::fading::{self, Doppler, Profile};
use channel::recorded::Start;
use channel::{AirConfig, Bandwidth, Channel, Direction, Mobility, PathLoss, Position, Recorded, Site};
use ran::rlc::Mode;
use ran::{Above, CellConfig, Config, Event, Handover, Room, Step, UeConfig};
use units::{Span, Time};

/// Cells in a row, a kilometre apart, and a UE that drives along them.
fn drive(mode: Mode, cells: u32, speed: f64) -> Config {
    let place = |i: u32| CellConfig {
        site: Site { position: Position::new(f64::from(i) * 1000.0, 0.0, 30.0), ..cell(Bandwidth::Mhz5).site },
        ..cell(Bandwidth::Mhz5)
    };
    let air = AirConfig {
        mobility: Mobility::line(Position::new(200.0, 20.0, 1.5), [speed, 0.0, 0.0]),
        channel: Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None },
        ..AirConfig::default()
    };
    Config {
        cells: (0..cells).map(place).collect(),
        ues: vec![UeConfig { air, cell: None, ..ue(mode, 0.0) }],
        ..Config::default()
    }
}

fn steps(world: &World) -> Vec<(Time, Step)> {
    let steps = world.events.iter().filter_map(|(at, event)| match event {
        Event::Mobility { step, .. } => Some((*at, *step)),
        _ => None,
    });
    steps.collect()
}

fn transmissions(world: &World, cell: u32) -> Vec<Time> {
    let these = world.events.iter().filter_map(|(at, event)| match event {
        Event::Transmission(t) if t.cell == cell => Some(*at),
        _ => None,
    });
    these.collect()
}

/// A packet every two milliseconds each way during the drive, and time for all to arrive.
fn talk(world: &mut World, end: u64) {
    for tick in 0..end / 2 {
        world.run(ms(tick * 2));
        world.send(Direction::Downlink, 0, 1000);
        world.send(Direction::Uplink, 0, 500);
    }
    world.run(ms(end + 5000));
}

#[test]
fn the_interruption_is_exactly_the_configured_one() {
    for interruption in [20, 30, 49] {
        let mut config = drive(am(), 2, 50.0);
        config.handover.interruption = Span::from_millis(interruption);
        let mut world = World::new(&config);
        talk(&mut world, 12_000);
        let steps = steps(&world);
        let [
            (triggered, Step::Triggered { target: 1 }),
            (reported, Step::Preparing { target: 1 }),
            (left, Step::Left { source: 0, target: 1 }),
            (back, connected),
        ] = steps[..]
        else {
            panic!("{steps:?}")
        };
        // A request for resources (one in ten TTIs, 4 TTIs to the grant, 4 to the data) and decoding; then the command.
        let radio = TTI + config.cells[0].mac.decoding;
        assert!(reported - triggered <= Span::from_millis(18) + radio, "{}", reported - triggered);
        assert_eq!(left - reported, config.handover.preparation + radio);
        assert_eq!(connected, Step::Connected { cell: 1, interruption: Span::from_millis(interruption) });
        assert_eq!(back - left, Span::from_millis(interruption));
        // The last TTI of the source is the one before, the first of the target the one at the end.
        let (source, target) = (transmissions(&world, 0), transmissions(&world, 1));
        assert!(*source.last().unwrap() < left && *source.last().unwrap() >= left - Span::from_millis(2));
        assert_eq!(target[0], back, "packets wait in the target");
        assert_eq!(world.ran.stats(0).handovers, 1);
    }
}

#[test]
fn a_handover_with_forwarding_loses_nothing_in_am() {
    for seed in 0..5 {
        let mut world = World::seeded(&drive(am(), 4, 50.0), seed);
        talk(&mut world, 60_000);
        assert_eq!(world.ran.stats(0).handovers, 3);
        assert_eq!((world.drops.len(), world.ran.held()), (0, 0));
        for direction in [Direction::Downlink, Direction::Uplink] {
            let ids = world.ids(direction, 0);
            assert_eq!(ids.len(), 30_000);
            assert!(ids.is_sorted(), "{direction:?}: in order and each once");
        }
    }
}

#[test]
fn am_goes_on_after_a_handover_over_a_channel_that_loses_blocks() {
    let mut config = drive(am(), 4, 50.0);
    config.ues[0].air.fading = Some(fading::Config { profile: Profile::Epa, doppler: Doppler::Hz(70.0) });
    each_mac(&mut config, |mac| mac.transmissions = 1);
    // Where a UE is far enough to need its power, blocks fail.
    config.ues[0].air.channel = Channel::Modelled {
        path_loss: PathLoss::LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: 39.0 },
        shadowing: None,
    };
    let mut world = World::new(&config);
    for i in 0..600u64 {
        world.run(ms(i * 100));
        world.send(Direction::Downlink, 0, 1400);
        world.send(Direction::Uplink, 0, 700);
    }
    world.run(ms(65_000));
    let stats = world.ran.stats(0);
    assert!(stats.handovers >= 3 && stats.downlink.residual_errors > 20, "{stats:?}");
    assert_eq!((world.drops.len(), world.ran.held()), (0, 0));
    let slowest = world.arrivals.iter().map(|a| a.at - a.packet.created).max().unwrap();
    assert!(slowest < Span::from_millis(1500), "timers run: {slowest:?}");
}

#[test]
fn without_forwarding_the_downlink_loses_the_interruption_and_what_the_source_held() {
    for mode in [am(), um()] {
        let mut config = drive(mode, 2, 50.0);
        config.handover.forwarding = false;
        let mut world = World::new(&config);
        talk(&mut world, 12_000);
        assert_eq!(world.ran.stats(0).handovers, 1);
        // 30 ms at a packet each 2 ms, and what was on its way: decoding takes 4 ms, AM's status some more.
        let lost: Vec<u64> = world.drops.iter().map(|(packet, _)| packet.id).collect();
        let down = lost.iter().filter(|id| *id % 2 == 0).count();
        assert!((15..=20).contains(&down), "{down} {lost:?}");
        assert!(world.ids(Direction::Downlink, 0).is_sorted());
        if mode == am() {
            assert_eq!(lost.len(), down, "the UE keeps what it has not sent");
        }
    }
}

#[test]
fn um_with_forwarding_loses_only_what_was_on_its_way() {
    let mut world = World::new(&drive(um(), 2, 50.0));
    talk(&mut world, 12_000);
    assert_eq!(world.ran.stats(0).handovers, 1);
    assert!(world.drops.len() <= 16, "{:?}", world.drops.len());
    assert!(!world.drops.is_empty(), "what HARQ had not delivered is lost");
}

#[test]
fn what_waits_above_rlc_moves_with_the_ue() {
    let bql = |completed| Limit::Bql(aqm::bql::Config { completed, ..Default::default() });
    let dyn_rlc = Limit::DynRlc(aqm::dyn_rlc::Config { target: Span::from_millis(100), ..Default::default() });
    for (limit, mode) in [
        (bql(Completion::Sent), am()),
        (bql(Completion::Acknowledged), am()),
        (bql(Completion::Sent), um()),
        (dyn_rlc, am()),
    ] {
        let mut config = drive(mode, 4, 50.0);
        let above = Above {
            gate: gate::Config { queue: aqm::Config::UNLIMITED, limit },
            room: Room { packets: None, bytes: Some(500_000) },
        };
        config.ues[0].bearers[0].above = Some(above);
        config.ues[0].host = above;
        let mut world = World::new(&config);
        // More than the cell carries, so that there is a backlog when the cell changes.
        for tick in 0..9000 {
            world.run(ms(tick));
            for _ in 0..3 {
                world.send(Direction::Downlink, 0, 1000);
            }
            for _ in 0..2 {
                world.send(Direction::Uplink, 0, 1000);
            }
        }
        let waiting = [Direction::Downlink, Direction::Uplink].map(|way| world.ran.above_backlog(0, way).bytes);
        assert!(waiting[0] > 1_000_000, "{waiting:?}");
        world.run(ms(70_000));
        assert_eq!((world.ran.stats(0).handovers, world.ran.held()), (3, 0));
        for (direction, sent) in [(Direction::Downlink, 27_000), (Direction::Uplink, 18_000)] {
            let ids = world.ids(direction, 0);
            assert!(ids.is_sorted_by(|a, b| a < b), "{direction:?}: in order and each once");
            // UM loses what was being sent when the cell changed, and no more.
            let most = if mode == um() { 60 } else { 0 };
            assert!(sent - ids.len() <= most, "{direction:?}: {} of {sent}", ids.len());
        }
    }
}

#[test]
fn a_request_that_was_pending_at_a_handover_does_not_silence_the_ue() {
    for offset in 0..20 {
        let mut config = drive(am(), 3, 60.0);
        each_mac(&mut config, |mac| mac.requests.sr_period = 80);
        let mut world = World::new(&config);
        for i in 0..450u64 {
            world.run(ms(i * 90 + offset));
            world.send(Direction::Uplink, 0, 500);
        }
        world.run(ms(45_000));
        assert_eq!(world.ran.stats(0).handovers, 2);
        assert_eq!(world.arrivals.len(), 450);
        let slowest = world.arrivals.iter().map(|a| a.at - a.packet.created).max().unwrap();
        assert!(slowest <= Span::from_millis(80 + 12 + 30 + 92), "a request, a handover, another request: {slowest:?}");
    }
}

#[test]
fn a_ue_drives_through_twenty_cells() {
    let mut world = World::new(&drive(am(), 20, 60.0));
    talk(&mut world, 320_000);
    assert_eq!(world.ran.stats(0).handovers, 19);
    assert_eq!(world.ran.serving(0), Some(19));
    assert_eq!((world.drops.len(), world.ran.held()), (0, 0));
}

#[test]
fn a_ue_that_stands_still_measures_nothing() {
    let mut config = drive(am(), 3, 0.0);
    config.ues[0].air.mobility = Mobility::fixed(Position::new(300.0, 0.0, 1.5));
    let world = World::new(&config);
    assert_eq!(world.ran.poll_timeout(), None);
}

/// Two recorded cells: power in dBm each second.
fn recorded(serving: &[f64], neighbour: &[f64]) -> Config {
    let record = |dbm: &[f64]| {
        let rows: Vec<String> = dbm.iter().enumerate().map(|(second, dbm)| format!("{second},{dbm}\n")).collect();
        Some(Arc::new(Recorded::parse(format!("time_s,rsrp_dbm\n{}", rows.concat())).unwrap()))
    };
    let mut config = network(Bandwidth::Mhz5, vec![ue(am(), 0.0)]);
    config.cells.push(cell(Bandwidth::Mhz5));
    config.ues[0].air.channel = Channel::Recorded(vec![record(serving), record(neighbour)], Start::default());
    config
}

const GOOD: f64 = -90.0;
const BETTER: f64 = -80.0;
const GONE: f64 = -150.0;

#[test]
fn a_target_that_is_gone_fails_after_t304_and_the_ue_comes_back_where_it_hears_best() {
    // The neighbour is better for three seconds, then gone as the UE gets there.
    let mut config = recorded(&[GOOD; 20], &[GONE; 20]);
    let neighbour: Vec<f64> = (0..20).map(|s| if (2..=4).contains(&s) { BETTER } else { GONE }).collect();
    config.ues[0].air.channel = recorded(&[GOOD; 20], &neighbour).ues[0].air.channel.clone();
    config.handover = Handover {
        preparation: Span::from_millis(3500),
        t304: Span::from_millis(200),
        reestablishment: Span::from_millis(150),
        ..Handover::default()
    };
    let mut world = World::new(&config);
    talk(&mut world, 12_000);
    let steps = steps(&world);
    let kinds: Vec<Step> = steps.iter().map(|s| s.1).filter(|step| !matches!(step, Step::Triggered { .. })).collect();
    let [
        Step::Preparing { target: 1 },
        Step::Left { source: 0, target: 1 },
        Step::Failed,
        Step::Connected { cell: 0, interruption },
    ] = kinds[..]
    else {
        panic!("{steps:?}")
    };
    assert_eq!(interruption, Span::from_millis(200 + 150), "T304 and the re-establishment");
    assert_eq!(world.ran.stats(0).handover_failures, 1);
    assert_eq!((world.drops.len(), world.ran.held()), (0, 0), "AM with forwarding loses nothing even so");
}

#[test]
fn a_link_that_is_lost_is_re_established_in_the_best_cell() {
    // The serving cell goes away at once; no measurement report gets through in time.
    let serving: Vec<f64> = (0..20).map(|s| if s < 3 { BETTER } else { GONE }).collect();
    let mut config = recorded(&serving, &[GOOD; 20]);
    config.handover.a3 = None;
    let mut world = World::new(&config);
    talk(&mut world, 12_000);
    let steps = steps(&world);
    let [(lost, Step::LinkLost { source: 0 }), (_, Step::Connected { cell: 1, interruption })] = steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(interruption, config.handover.reestablishment);
    // N310 measurements of 40 ms and T310 of a second after the power has fallen.
    let link = config.handover.link;
    let (least, most) = (link.t310, link.t310 + Span::from_millis(1000 + 40 * 8));
    assert!(lost >= ms(2000) + least && lost <= ms(2000) + most, "{lost}");
    assert_eq!((world.drops.len(), world.ran.held()), (0, 0));
}

#[test]
fn the_last_retransmission_of_am_loses_the_link() {
    let mut config = network(Bandwidth::Mhz20, vec![ue(am(), crate::support::loss_for(-25.0))]);
    if let Mode::Am(am) = &mut config.ues[0].bearers[0].rlc.mode {
        am.max_retx = 3;
    }
    let mut world = World::new(&config);
    world.send(Direction::Downlink, 0, 1000);
    world.run(ms(3000));
    assert!(world.ran.stats(0).link_failures > 0);
    assert_eq!(world.arrivals.len(), 0);
}
