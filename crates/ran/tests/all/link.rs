//! A UE judges its radio link whether it moves or not, and costs nothing while its channel cannot change.

use std::sync::Arc;

use crate::support::{World, am, cell, loss_for, ms, network, ue};
use channel::fading::{self, Doppler, Profile};
use channel::recorded::Start;
use channel::{Bandwidth, Channel, Direction, Mobility, PathLoss, Position, Recorded, Site};
use ran::{CellConfig, Config, Event, Step, UeConfig};
use units::{Span, Time};

fn steps(world: &World) -> Vec<(Time, Step)> {
    let steps = world.events.iter().filter_map(|(at, event)| match event {
        Event::Mobility { step, .. } => Some((*at, *step)),
        _ => None,
    });
    steps.collect()
}

/// A UE that hears its cell with `sinr_db` and moves at `speed` metres a second, where that makes no difference.
fn at(sinr_db: f64, speed: f64) -> Config {
    let mut config = network(Bandwidth::Mhz20, vec![ue(am(), loss_for(sinr_db))]);
    config.ues[0].air.mobility = Mobility::line(Position::new(100.0, 0.0, 1.5), [speed, 0.0, 0.0]);
    config
}

#[test]
fn the_link_of_a_still_ue_is_lost_as_that_of_a_moving_one() {
    for sinr_db in [-12.0, -6.0, -5.1, -4.5, 0.0] {
        let [still, moving] = [0.0, 0.001].map(|speed| {
            let mut world = World::new(&at(sinr_db, speed));
            world.saturate(Direction::Downlink, &[0], 50, ms(10_000));
            (steps(&world), world.bytes(Direction::Downlink, 0, Time::ZERO), world.ran.stats(0))
        });
        assert_eq!(still, moving, "{sinr_db} dB");
        // N310 measurements, the first at time zero, and T310.
        let lost = ms(5 * 40 + 1000);
        let expected: &[_] = if sinr_db < -5.0 { &[(lost, Step::LinkLost { source: 0 })] } else { &[] };
        assert_eq!(still.0, expected, "{sinr_db} dB");
        let mbps = still.1 as f64 * 8.0 / 10e6;
        assert!(if sinr_db < -5.0 { mbps < 0.4 } else { mbps > 1.0 }, "{sinr_db} dB: {mbps} Mbit/s");
    }
}

#[test]
fn a_still_ue_whose_channel_fades_may_lose_its_link() {
    let lost = |sinr_db: f64| {
        let mut config = at(sinr_db, 0.0);
        config.ues[0].air.fading = Some(fading::Config { profile: Profile::Epa, doppler: Doppler::Hz(5.0) });
        let mut world = World::new(&config);
        world.run(ms(60_000));
        world.ran.stats(0).link_failures
    };
    assert_eq!((lost(5.0), lost(-30.0)), (0, 1));
    assert!(lost(-8.0) > 1, "it is lost in fades and comes back out of them");
}

#[test]
fn a_recorded_channel_is_judged_too() {
    let mut config = at(0.0, 0.0);
    let record = Recorded::parse("time_s,sinr_db\n0,10\n5,-10\n10,10\n").unwrap();
    config.ues[0].air.channel = Channel::Recorded(vec![Some(Arc::new(record))], Start::default());
    let mut world = World::new(&config);
    world.run(ms(15_000));
    let link = config.handover.link;
    let [(lost, Step::LinkLost { .. }), (back, Step::Connected { .. })] = steps(&world)[..] else {
        panic!("{:?}", steps(&world))
    };
    assert_eq!(lost, ms(5000) + config.handover.period * 5 + link.t310);
    assert!(back >= ms(10_000) && back <= ms(10_010), "{back}");
}

/// Two cells on one carrier, and a still UE between them that interference of the nearer one silences.
fn between_two_cells() -> Config {
    let place = |x| CellConfig {
        site: Site { position: Position::new(x, 0.0, 30.0), ..cell(Bandwidth::Mhz5).site },
        ..cell(Bandwidth::Mhz5)
    };
    let mut ue = UeConfig { cell: Some(0), ..ue(am(), 0.0) };
    ue.air.channel = Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None };
    ue.air.mobility = Mobility::fixed(Position::new(660.0, 0.0, 1.5));
    let mut config = Config { cells: vec![place(0.0), place(1000.0)], ues: vec![ue], ..Config::default() };
    config.handover.a3 = None;
    config
}

#[test]
fn a_load_that_is_set_may_lose_the_link_of_a_still_ue() {
    let mut world = World::new(&between_two_cells());
    world.run(ms(1000));
    assert_eq!(world.ran.poll_timeout(), None, "nothing changes");
    world.ran.set_load(1, 1.0, world.now);
    assert!(world.ran.poll_timeout().is_some());
    world.run(ms(10_000));
    let steps = steps(&world);
    // 5.8 dB more interference than signal: the neighbour is the one that it hears best.
    assert!(
        matches!(steps[..], [(_, Step::LinkLost { source: 0 }), (_, Step::Connected { cell: 1, .. })]),
        "{steps:?}"
    );
    assert_eq!(steps[0].0, ms(1000 + 5 * 40 + 1000));
    assert_eq!(world.ran.poll_timeout(), None, "it rests again");
}

#[test]
fn a_load_that_falls_in_time_stops_t310() {
    let mut world = World::new(&between_two_cells());
    world.ran.set_load(1, 1.0, world.now);
    world.run(ms(900));
    world.ran.set_load(1, 0.0, world.now);
    world.run(ms(10_000));
    assert_eq!((steps(&world), world.ran.poll_timeout()), (vec![], None));
}

#[test]
fn a_still_ue_out_of_coverage_costs_nothing_until_its_channel_is_changed() {
    let mut world = World::new(&at(-20.0, 0.0));
    world.send(Direction::Downlink, 0, 1000);
    world.run(ms(5000));
    assert_eq!(world.ran.serving(0), None);
    let work = world.ran.work();
    world.run(ms(100_000));
    assert_eq!((world.ran.work(), world.ran.poll_timeout()), (work, None));
    // Still too weak: it looks once.
    world.ran.set_sinr(0, Some(-10.0), world.now);
    world.run(ms(101_000));
    assert_eq!((world.ran.work(), world.ran.poll_timeout()), (work + 1, None));
    world.ran.set_sinr(0, Some(10.0), world.now);
    world.run(ms(103_000));
    assert_eq!((world.ran.serving(0), world.arrivals.len()), (Some(0), 1));
    assert_eq!(world.ran.poll_timeout(), None);
}

#[test]
fn a_still_ue_in_the_cell_that_it_hears_worse_measures_until_it_is_handed_over() {
    let mut config = between_two_cells();
    config.handover = ran::Handover::default();
    config.ues[0].air.mobility = Mobility::fixed(Position::new(700.0, 0.0, 1.5));
    let mut world = World::new(&config);
    world.run(ms(5000));
    assert_eq!((world.ran.serving(0), world.ran.stats(0).handovers), (Some(1), 1));
    assert_eq!(world.ran.poll_timeout(), None);
    let connected = steps(&world).last().unwrap().0;
    assert!(connected < ms(0) + Span::from_millis(1000), "{connected}");
}

#[test]
fn a_ue_whose_cell_does_not_hear_it_gets_no_data_and_loses_its_link() {
    // 7 dB in the downlink; -16 dB on a single resource block of the uplink, where -11 dB suffice.
    let mut config = network(Bandwidth::Mhz20, vec![ue(am(), 155.0)]);
    config.cells[0].site.power_dbm = 70.0;
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 50, ms(5000));
    assert_eq!(steps(&world), [(ms(5 * 40 + 1000), Step::LinkLost { source: 0 })]);
    // The cell has noticed it with the sixth measurement.
    assert_eq!(world.bytes(Direction::Downlink, 0, ms(5 * 40 + 50)), 0);
    assert_eq!(world.ran.serving(0), None);
    // It is found again where it is heard.
    world.ran.set_sinr(0, Some(20.0), world.now);
    world.run(ms(6000));
    assert_eq!(world.ran.serving(0), Some(0));
    assert!(world.bytes(Direction::Downlink, 0, ms(5000)) > 0);
    // A stronger UE is served.
    config.ues[0].air.power.max_dbm = 40.0;
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 50, ms(2000));
    assert_eq!(steps(&world), []);
    assert!(world.bytes(Direction::Downlink, 0, Time::ZERO) > 1_000_000);
}
