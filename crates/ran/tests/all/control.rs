//! What the control channel has room for, with many UEs and with one.

use std::collections::BTreeMap;

use crate::support::{World, cell, each_mac, ms, network, ue, um};
use channel::tables::nr::Numerology;
use channel::{Bandwidth, Carrier, Direction, Site};
use ran::rlc::{Mode, NrUm};
use ran::{CellConfig, Config, Discipline, Duplex, Event, MacConfig, Nr, Pattern, Rat, Transmission};
use units::{Span, Time};

/// An NR cell of 40 MHz, 106 resource blocks of 30 kHz, with `count` UEs.
fn nr(duplex: Duplex, count: usize, loss_db: f64) -> Config {
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs: 106, subcarrier_hz: 30_000 };
    let rat = Rat::Nr(Nr::new(Numerology::Khz30, duplex));
    let mac = MacConfig { rat, decoding: Span::from_micros(100), ..MacConfig::default() };
    let cell = CellConfig { site: Site { carrier, power_dbm: 46.0, ..Site::default() }, mac, ..CellConfig::default() };
    Config { cells: vec![cell], ues: vec![ue(Mode::NrUm(NrUm::default()), loss_db); count], ..Config::default() }
}

fn lte(bandwidth: Bandwidth, count: usize) -> Config {
    let mut config = network(bandwidth, vec![ue(um(), 60.0); count]);
    config.cells = vec![cell(bandwidth)];
    config
}

fn transmissions(world: &World) -> impl Iterator<Item = (Time, &Transmission)> {
    world.events.iter().filter_map(|(at, event)| match event {
        Event::Transmission(t) => Some((*at, t)),
        _ => None,
    })
}

/// The most blocks of a direction in one slot that needed an assignment or grant.
fn most(world: &World, direction: Direction, is_lte: bool) -> usize {
    let mut blocks: BTreeMap<Time, usize> = BTreeMap::new();
    for (at, t) in transmissions(world) {
        // LTE's UEs repeat without a grant.
        if t.direction == direction && !(is_lte && direction == Direction::Uplink && t.attempt > 1) {
            *blocks.entry(at).or_default() += 1;
        }
    }
    blocks.into_values().max().unwrap_or(0)
}

/// Sends small packets in both directions to and from all UEs, for 300 ms.
fn trickle(config: &Config) -> World {
    let mut world = World::new(config);
    let count = config.ues.len() as u32;
    for step in 0..15 {
        for ue in 0..count {
            world.send(Direction::Downlink, ue, 60);
            world.send(Direction::Uplink, ue, 60);
        }
        world.run(ms(20 * (step + 1)));
    }
    world.run(ms(2000));
    world
}

#[test]
fn a_slot_has_no_more_assignments_than_its_control_channel_has_room_for_and_no_ue_starves() {
    let disciplines = [Discipline::RoundRobin, Discipline::ProportionalFair];
    let cases = [
        // 17 control channel elements, two for each.
        (nr(Duplex::Fdd, 106, 60.0), false, [8, 8]),
        // The grants for slot 4 have the room of four control channels.
        (nr(Duplex::Tdd(Pattern::DDDSU), 106, 60.0), false, [8, 32]),
        (lte(Bandwidth::Mhz20, 96), true, [25, 25]),
        (lte(Bandwidth::Mhz1_4, 6), true, [2, 2]),
    ];
    for (mut config, is_lte, bounds) in cases {
        for discipline in disciplines {
            (config.cells[0].downlink, config.cells[0].uplink) = (discipline, discipline);
            let world = trickle(&config);
            for (direction, bound) in [Direction::Downlink, Direction::Uplink].into_iter().zip(bounds) {
                let most = most(&world, direction, is_lte);
                assert!(most > 0 && most <= bound, "{:?} {direction:?}: {most}", config.cells[0].mac.rat);
            }
            assert_eq!((world.arrivals.len(), world.ran.held()), (config.ues.len() * 30, 0), "{discipline:?}");
        }
    }
}

#[test]
fn both_directions_share_the_control_channel_and_retransmissions_count() {
    // About a tenth of the blocks fails.
    let mut config = nr(Duplex::Fdd, 40, 118.0);
    each_mac(&mut config, |mac| mac.assignments = Some(6));
    let world = trickle(&config);
    let mut blocks: BTreeMap<Time, [usize; 2]> = BTreeMap::new();
    for (at, t) in transmissions(&world) {
        // The grant of a block is made in the slot before it: K2 = 1.
        let granted = if t.direction == Direction::Uplink { at - Span::from_micros(500) } else { at };
        blocks.entry(granted).or_default()[t.direction as usize] += 1;
    }
    assert!(transmissions(&world).any(|(_, t)| t.attempt > 1));
    assert!(blocks.values().all(|[down, up]| down + up <= 6), "{blocks:?}");
    assert!(blocks.values().any(|[down, up]| *down >= 3 && *up >= 3), "either has half of it");
    assert!(blocks.values().any(|[down, up]| down.max(up) > &4), "and what the other leaves");
}

#[test]
fn the_bound_changes_nothing_for_one_ue() {
    for mut config in [nr(Duplex::Tdd(Pattern::DDDSU), 1, 120.0), lte(Bandwidth::Mhz5, 1)] {
        let [least, unlimited] = [2, 1000].map(|assignments| {
            each_mac(&mut config, |mac| mac.assignments = Some(assignments));
            let mut world = World::new(&config);
            for n in 0..30 {
                world.saturate(Direction::Downlink, &[0], 100, ms(20 * n + 10));
                world.saturate(Direction::Uplink, &[0], 60, ms(20 * n + 20));
            }
            (world.arrivals, world.events)
        });
        assert_eq!(least, unlimited);
    }
}
