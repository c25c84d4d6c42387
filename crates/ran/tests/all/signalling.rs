//! The messages of a handover take the way of any other data: requests, grants, HARQ, RLC.

use crate::support::{World, am, cell, each_mac, ms, ue};
use channel::{AirConfig, Bandwidth, Channel, Direction, Mobility, PathLoss, Position, Site};
use ran::{CellConfig, Config, Event, MacConfig, Step, Transmission, UeConfig};
use units::{Span, Time};

/// Two cells a kilometre apart, and UEs near the first.
fn two_cells(ues: usize) -> Config {
    let place = |x| CellConfig {
        site: Site { position: Position::new(x, 0.0, 30.0), ..cell(Bandwidth::Mhz5).site },
        ..cell(Bandwidth::Mhz5)
    };
    let air = AirConfig {
        mobility: Mobility::fixed(Position::new(100.0, 0.0, 1.5)),
        channel: Channel::Modelled { path_loss: PathLoss::Friis, shadowing: None },
        ..AirConfig::default()
    };
    let ues = vec![UeConfig { air, cell: Some(0), ..ue(am(), 0.0) }; ues];
    let mut config = Config { cells: vec![place(0.0), place(1000.0)], ues, ..Config::default() };
    config.handover.a3 = None;
    config
}

fn hand_over(world: &mut World, cell: u32) {
    let events = &mut world.events;
    let mut sink = |now: Time, event: &Event| events.push((now, *event));
    world.ran.hand_over(0, cell, world.now, &mut sink).unwrap();
}

fn steps(world: &World) -> Vec<(Time, Step)> {
    let steps = world.events.iter().filter_map(|(at, event)| match event {
        Event::Mobility { step, ue: 0 } => Some((*at, *step)),
        _ => None,
    });
    steps.collect()
}

fn transmissions(world: &World, direction: Direction) -> Vec<(Time, Transmission)> {
    let these = world.events.iter().filter_map(|(at, event)| match event {
        Event::Transmission(t) if t.ue == 0 && t.direction == direction => Some((*at, *t)),
        _ => None,
    });
    these.collect()
}

#[test]
fn an_idle_ue_is_commanded_and_confirms_with_transport_blocks() {
    let mut world = World::new(&two_cells(1));
    hand_over(&mut world, 1);
    world.run(ms(1000));
    let down = transmissions(&world, Direction::Downlink);
    // The command in the old cell, in the TTI after the preparation; in the new one the STATUS for the confirmation.
    assert_eq!((down[0].0, down[0].1.cell), (ms(30), 0));
    assert!(down[0].1.bits >= 8 * (150 + 5 + 2 + 1), "message, PDCP, RLC, MAC");
    assert!(down[1..].iter().all(|(_, t)| t.cell == 1), "{down:?}");
    let up = transmissions(&world, Direction::Uplink);
    assert_eq!(up[0].1.cell, 1);
    assert!(up[0].0 <= ms(34 + 30 + 4), "granted with the random access: {}", up[0].0);
    assert_eq!((world.ran.serving(0), world.ran.held(), world.ran.poll_timeout()), (Some(1), 0, None));
    assert_eq!(world.ran.rlc_stats(0, Direction::Downlink).pdus, 0, "data bearers count their own");
}

#[test]
fn one_bad_tti_delays_the_command_by_a_harq_round_trip() {
    let mut world = World::new(&two_cells(1));
    hand_over(&mut world, 1);
    world.run(ms(29));
    world.ran.set_sinr(0, Some(-10.0), world.now);
    world.run(ms(30));
    world.ran.set_sinr(0, None, world.now);
    world.run(ms(1000));
    let sent = transmissions(&world, Direction::Downlink);
    assert!(!sent[0].1.decoded && sent[0].0 == ms(30), "{sent:?}");
    // The repetition is decoded by itself, however little the bad transmission has brought.
    assert!(sent[1].1.decoded && sent[1].0 == ms(38), "{sent:?}");
    let (left, step) = steps(&world)[1];
    assert_eq!(left, ms(38 + 1 + 3), "its TTI, and the decoding: {sent:?}");
    assert_eq!(step, Step::Left { source: 0, target: 1 });
    assert_eq!(world.ran.stats(0).handovers, 1);
}

#[test]
fn rlc_repeats_a_command_that_harq_gives_up() {
    let mut world = World::new(&two_cells(1));
    hand_over(&mut world, 1);
    world.run(ms(29));
    world.ran.set_sinr(0, Some(-30.0), world.now);
    // A block is sent four times, and given up within 40 ms.
    world.run(ms(70));
    world.ran.set_sinr(0, None, world.now);
    world.run(ms(1000));
    let sent = transmissions(&world, Direction::Downlink);
    let (early, late): (Vec<_>, Vec<_>) = sent.iter().partition(|(at, _)| *at < ms(70));
    assert!(early.iter().all(|(_, t)| !t.decoded) && early.iter().any(|(_, t)| t.attempt == 4), "{early:?}");
    // t-PollRetransmit of 45 ms has begun with the last byte. If there was a PDU before it, that is found missing
    // t-Reordering of 35 ms later.
    assert!((ms(75)..=ms(78)).contains(&late[0].0), "{late:?}");
    let (left, step) = steps(&world)[1];
    assert!(left >= ms(79) && left <= ms(75 + 35 + 40), "{left}");
    assert_eq!(step, Step::Left { source: 0, target: 1 });
}

#[test]
fn a_command_that_never_arrives_is_followed_by_t310_and_a_re_establishment() {
    let mut config = two_cells(1);
    config.ues[0].air.mobility = Mobility::fixed(Position::new(100.0, 0.0, 1.5));
    let mut world = World::new(&config);
    hand_over(&mut world, 1);
    world.run(ms(29));
    world.ran.set_sinr(0, Some(-30.0), world.now);
    for i in 0..40u64 {
        world.run(ms(40 + i * 100));
        if i == 25 {
            world.ran.set_sinr(0, None, world.now);
        }
        if i < 30 {
            world.send(Direction::Downlink, 0, 1000);
        }
    }
    world.run(ms(6000));
    let steps = steps(&world);
    let [
        (_, Step::Preparing { target: 1 }),
        (lost, Step::CommandLost),
        (failed, Step::LinkLost { source: 0 }),
        (back, Step::Connected { cell: 0, .. }),
    ] = steps[..]
    else {
        panic!("{steps:?}")
    };
    // Polls each 45 ms: the first transmission, and maxRetxThreshold of 4 retransmissions.
    assert!(lost >= ms(30 + 5 * 45) && lost <= ms(30 + 5 * 45 + 60), "{lost}");
    // N310 measurements of 40 ms from the fall on, the first at once, and T310.
    assert_eq!(failed, ms(29 + 5 * 40 + 1000));
    assert!(back >= ms(2540) && back <= ms(2550), "it looks again when its channel is changed: {back}");
    let stats = world.ran.stats(0);
    assert_eq!((stats.link_failures, stats.handovers), (1, 0));
    assert_eq!((world.arrivals.len(), world.drops.len(), world.ran.held()), (30, 0, 0), "nothing is lost in AM");
}

#[test]
fn a_second_command_gets_through_after_the_first_was_given_up() {
    let mut config = two_cells(1);
    config.handover.link.t310 = Span::from_secs(10);
    let mut world = World::new(&config);
    hand_over(&mut world, 1);
    world.run(ms(29));
    world.ran.set_sinr(0, Some(-30.0), world.now);
    world.run(ms(500));
    assert_eq!(steps(&world).last().unwrap().1, Step::CommandLost);
    world.ran.set_sinr(0, None, world.now);
    hand_over(&mut world, 1);
    world.run(ms(2000));
    assert_eq!((world.ran.serving(0), world.ran.poll_timeout()), (Some(1), None));
}

#[test]
fn handovers_of_a_full_cell_lose_nothing_and_take_little_longer() {
    let mut config = two_cells(20);
    config.handover.a3 = Some(ran::A3::default());
    // One drives past both; the others stay in the first and want all they can get, both ways.
    config.ues[0].air.mobility = Mobility::line(Position::new(100.0, 20.0, 1.5), [50.0, 0.0, 0.0]);
    let mut world = World::new(&config);
    let others: Vec<u32> = (1..20).collect();
    let mut sent = 0;
    while world.now < ms(14_000) {
        for direction in [Direction::Downlink, Direction::Uplink] {
            for ue in &others {
                while world.ran.rlc_backlog(*ue, direction).packets + world.ran.above_backlog(*ue, direction).packets
                    < 10
                {
                    world.send(direction, *ue, 1500);
                }
            }
            world.send(direction, 0, 100);
            sent += 1;
        }
        let next = world.now + Span::from_millis(10);
        world.run(next);
    }
    let steps = steps(&world);
    let [
        (triggered, Step::Triggered { .. }),
        (reported, Step::Preparing { .. }),
        (left, Step::Left { .. }),
        (_, Step::Connected { cell: 1, .. }),
    ] = steps[..]
    else {
        panic!("{steps:?}")
    };
    assert!(reported - triggered <= Span::from_millis(60), "{}", reported - triggered);
    let command = left - reported - config.handover.preparation;
    assert!(command <= Span::from_millis(60), "{command}");
    world.run(ms(20_000));
    for direction in [Direction::Downlink, Direction::Uplink] {
        let ids = world.ids(direction, 0);
        assert!(ids.len() * 2 == sent && ids.is_sorted(), "{direction:?}: {} of {sent}", ids.len());
    }
}

#[test]
fn ideal_messages_arrive_at_once() {
    let mut config = two_cells(1);
    each_mac(&mut config, |mac| *mac = MacConfig::ideal());
    let mut world = World::new(&config);
    hand_over(&mut world, 1);
    // As ns-3's ideal RRC: the command arrives however bad the channel is.
    world.run(ms(20));
    world.ran.set_sinr(0, Some(-30.0), world.now);
    world.run(ms(50));
    world.ran.set_sinr(0, None, world.now);
    world.run(ms(1000));
    assert_eq!(steps(&world)[1], (ms(30), Step::Left { source: 0, target: 1 }));
    assert!(
        transmissions(&world, Direction::Downlink).is_empty() && transmissions(&world, Direction::Uplink).is_empty()
    );
}
