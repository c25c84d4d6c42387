//! What is changed while a network runs holds from then on, and no rule is left out for it.

use crate::support::{TTI, World, am, cell, ms, network, ue, us};
use channel::{Bandwidth, Carrier, Channel, Direction, PathLoss, Position, Site};
use ran::{CellConfig, Config, Event, Refused, Step, UeConfig};
use units::{Span, Time};

/// Two cells on different carriers, a kilometre apart, and a UE that stands near the first.
fn two_cells() -> Config {
    let place = |x| CellConfig {
        site: Site { position: Position::new(x, 0.0, 30.0), ..cell(Bandwidth::Mhz5).site },
        ..cell(Bandwidth::Mhz5)
    };
    let mut ue = UeConfig { cell: None, ..ue(am(), 0.0) };
    ue.air.channel = Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None };
    let mut other = place(1000.0);
    other.site.carrier = Carrier { downlink_hz: 2.16e9, uplink_hz: 1.97e9, ..other.site.carrier };
    Config { cells: vec![place(0.0), other], ues: vec![ue], ..Config::default() }
}

fn hand_over(world: &mut World, cell: u32) -> Result<(), Refused> {
    let events = &mut world.events;
    world.ran.hand_over(0, cell, world.now, &mut |now: Time, event: &Event| events.push((now, *event)))
}

fn steps(world: &World) -> Vec<(Time, Step)> {
    let steps = world.events.iter().filter_map(|(at, event)| match event {
        Event::Mobility { step, .. } => Some((*at, *step)),
        _ => None,
    });
    steps.collect()
}

/// A packet every two milliseconds each way until `end`.
fn talk(world: &mut World, end: Time) {
    while world.now < end {
        world.send(Direction::Downlink, 0, 1000);
        world.send(Direction::Uplink, 0, 500);
        let next = world.now + Span::from_millis(2);
        world.run(next);
    }
}

#[test]
fn a_ue_that_stands_still_is_handed_over_in_the_steps_of_any_other() {
    let mut config = two_cells();
    config.handover.a3 = None;
    let mut world = World::new(&config);
    assert_eq!(world.ran.poll_timeout(), None, "nobody measures");
    talk(&mut world, ms(1000));
    assert_eq!(hand_over(&mut world, 1), Ok(()));
    talk(&mut world, ms(3000));
    world.run(ms(5000));
    // The command is sent after the preparation, and decoded after its TTI and three more.
    let left = ms(1000) + config.handover.preparation + TTI + config.cells[0].mac.decoding;
    let interruption = config.handover.interruption;
    assert_eq!(
        steps(&world),
        [
            (ms(1000), Step::Preparing { target: 1 }),
            (left, Step::Left { source: 0, target: 1 }),
            (left + interruption, Step::Connected { cell: 1, interruption }),
        ]
    );
    assert_eq!((world.ran.serving(0), world.ran.stats(0).handovers), (Some(1), 1));
    assert_eq!((world.drops.len(), world.ran.held()), (0, 0));
    assert!(world.ids(Direction::Downlink, 0).is_sorted() && world.ids(Direction::Uplink, 0).is_sorted());
}

#[test]
fn an_idle_ue_is_handed_over_between_two_ttis_of_an_idle_network() {
    let mut config = two_cells();
    config.handover.a3 = None;
    let mut world = World::new(&config);
    world.run(us(7_777_300));
    assert_eq!(hand_over(&mut world, 1), Ok(()));
    assert!(world.ran.poll_timeout().is_some_and(|due| due >= us(7_777_300)), "a deadline in the past");
    world.run(ms(8000));
    assert_eq!(world.ran.serving(0), Some(1));
}

#[test]
fn event_a3_brings_a_ue_back_from_a_cell_that_it_hears_worse() {
    let config = two_cells();
    let mut world = World::new(&config);
    talk(&mut world, ms(100));
    assert_eq!(hand_over(&mut world, 1), Ok(()));
    talk(&mut world, ms(2000));
    let connected: Vec<u32> = steps(&world)
        .iter()
        .filter_map(|(_, step)| match step {
            Step::Connected { cell, .. } => Some(*cell),
            _ => None,
        })
        .collect();
    assert_eq!(connected, [1, 0]);
    let triggered = steps(&world).iter().position(|(_, step)| matches!(step, Step::Triggered { .. })).unwrap();
    let stay = steps(&world)[triggered].0 - steps(&world)[triggered - 1].0;
    let least = config.handover.a3.unwrap().time_to_trigger;
    assert!(stay >= least && stay <= least + config.handover.period * 2, "{stay}");
}

#[test]
fn a_handover_that_cannot_be_is_refused_with_its_reason() {
    let mut config = two_cells();
    config.handover.a3 = None;
    let mut world = World::new(&config);
    assert_eq!(hand_over(&mut world, 0), Err(Refused::OwnCell));
    assert_eq!(hand_over(&mut world, 2), Err(Refused::NoSuchCell));
    assert_eq!(hand_over(&mut world, 1), Ok(()));
    // While it is prepared, and while the UE is on its way.
    for at in [10, 45] {
        world.run(ms(at));
        assert_eq!(hand_over(&mut world, 0), Err(Refused::UnderWay { target: 1 }), "at {at} ms");
    }
    world.run(ms(100));
    assert_eq!(hand_over(&mut world, 1), Err(Refused::OwnCell));
    world.ran.set_sinr(0, Some(-20.0), world.now);
    world.run(ms(5000));
    assert_eq!(hand_over(&mut world, 0), Err(Refused::NotServed));
    assert_eq!(world.ran.stats(0).handovers, 1);
}

#[test]
fn a_sinr_that_is_set_is_on_the_air_in_the_next_tti_and_in_schemes_after_the_report_of_it() {
    let config = network(Bandwidth::Mhz10, vec![ue(am(), crate::support::loss_for(30.0))]);
    let mut world = World::new(&config);
    world.saturate(Direction::Downlink, &[0], 200, ms(500));
    world.ran.set_sinr(0, Some(4.0), world.now);
    world.saturate(Direction::Downlink, &[0], 200, ms(1500));
    world.ran.set_sinr(0, None, world.now);
    world.saturate(Direction::Downlink, &[0], 200, ms(2000));
    let sent: Vec<_> = world
        .events
        .iter()
        .filter_map(|(at, event)| match event {
            Event::Transmission(t) if t.direction == Direction::Downlink => Some((*at, t)),
            _ => None,
        })
        .collect();
    let between = |from: u64, to: u64| sent.iter().filter(move |(at, _)| *at > ms(from) && *at <= ms(to));
    assert!(between(500, 1500).all(|(_, t)| t.sinr_cdb == 399 || t.sinr_cdb == 400), "from the next TTI on");
    let (before, after) = (between(100, 500).next().unwrap().1.cqi, between(1700, 2000).next().unwrap().1.cqi);
    assert_eq!(before, after);
    // Measured within five milliseconds, used six later.
    let link = config.cells[0].mac.link;
    let known = between(500, 1500).find(|(_, t)| t.cqi < before).unwrap().0;
    assert!(known > ms(500) + link.delay && known <= ms(501) + link.delay + link.period, "{known}");
    assert!(between(500, 1500).any(|(_, t)| !t.decoded), "what is sent by an old report fails");
    let rate = |from: u64, to: u64| {
        let bits: u64 = between(from, to).filter(|(_, t)| t.attempt == 1).map(|(_, t)| u64::from(t.bits)).sum();
        bits as f64 / (to - from) as f64
    };
    let (full, reduced, again) = (rate(100, 500), rate(600, 1500), rate(1700, 2000));
    assert!(reduced < full / 3.0 && (again / full - 1.0).abs() < 0.05, "{full} {reduced} {again}");
}

#[test]
fn a_sinr_that_is_set_counts_for_the_uplink_too() {
    let mut world = World::new(&network(Bandwidth::Mhz10, vec![ue(am(), crate::support::loss_for(30.0))]));
    world.saturate(Direction::Uplink, &[0], 60, ms(1000));
    world.ran.set_sinr(0, Some(0.0), world.now);
    world.saturate(Direction::Uplink, &[0], 60, ms(3000));
    let before = world.bytes(Direction::Uplink, 0, ms(200)) - world.bytes(Direction::Uplink, 0, ms(1000));
    let after = world.bytes(Direction::Uplink, 0, ms(2200));
    assert!(after > 0 && after < before / 2, "{before} bytes in 0.8 s, then {after}");
}

#[test]
fn a_ue_without_a_signal_loses_its_link_and_comes_back_with_it() {
    let mut world = World::new(&network(Bandwidth::Mhz10, vec![ue(am(), crate::support::loss_for(20.0))]));
    talk(&mut world, ms(1000));
    world.ran.set_sinr(0, Some(-20.0), world.now);
    talk(&mut world, ms(6000));
    assert_eq!((world.ran.serving(0), world.ran.stats(0).link_failures), (None, 1));
    world.ran.set_sinr(0, None, world.now);
    talk(&mut world, ms(7000));
    world.run(ms(9000));
    assert_eq!((world.ran.serving(0), world.ran.held()), (Some(0), 0));
    let last = world.arrivals.iter().rev().take(100).map(|a| a.at - a.packet.created).max();
    assert!(last < Some(Span::from_millis(100)), "{last:?}");
}
