//! Resource blocks go to UEs that can send, and to no others.

mod ran_support;

use radio::{Bandwidth, Direction};
use ran::rlc::{Am, Mode};
use ran::{Config, Discipline};
use ran_support::{World, am, bearer, loss_for, ms, network, ue, um};
use units::Time;

const DISCIPLINES: [Discipline; 2] = [Discipline::ProportionalFair, Discipline::RoundRobin];

fn mbps(world: &World, direction: Direction, ue: u32, (from, to): (u64, u64)) -> f64 {
    let until = |a: &&ran_support::Arrival| a.at < ms(to) && a.at >= ms(from) && a.ue == ue && a.direction == direction;
    let bytes: u64 = world.arrivals.iter().filter(until).map(|a| u64::from(a.packet.len)).sum();
    bytes as f64 * 8.0 / ((to - from) as f64 * 1e3)
}

/// AM that does not give up: 32 retransmissions and slow polls.
fn patient() -> Mode {
    Mode::Am(Am { max_retx: 32, ..Am::default() })
}

/// Mbit/s of a near UE with always more to receive, beside one out of reach to which 500 kbit/s are sent.
fn beside_unreachable(mode: Mode) -> f64 {
    let mut world = World::new(&network(Bandwidth::Mhz10, vec![ue(um(), 60.0), ue(mode, loss_for(-50.0))]));
    for step in 0..1000 {
        world.send(Direction::Downlink, 1, 500);
        world.saturate(Direction::Downlink, &[0], 60, ms(8 * step + 8));
    }
    mbps(&world, Direction::Downlink, 0, (1000, 8000))
}

#[test]
fn data_that_a_full_window_holds_back_takes_nothing_from_others() {
    let (um, am) = (beside_unreachable(um()), beside_unreachable(patient()));
    assert!(am > 0.95 * um, "beside AM {am}, beside UM {um} Mbit/s");
}

#[test]
fn a_ue_that_leaves_coverage_takes_little_from_the_others() {
    for direction in [Direction::Downlink, Direction::Uplink] {
        let mut world = World::new(&network(Bandwidth::Mhz10, vec![ue(patient(), 60.0), ue(patient(), 60.0)]));
        world.saturate(direction, &[0, 1], 600, ms(1000));
        world.ran.set_sinr(1, Some(-40.0), world.now);
        world.saturate(direction, &[0, 1], 600, ms(6000));
        let (before, after) = (mbps(&world, direction, 0, (200, 1000)), mbps(&world, direction, 0, (1200, 6000)));
        assert!(after > 0.9 * before, "{direction:?}: {before} before, {after} Mbit/s after");
    }
}

/// A near UE with always more to send, and one whose TM bearer always has packets of `len` bytes.
fn beside_transparent(direction: Direction, discipline: Discipline, loss: f64, len: u32) -> [f64; 2] {
    let mut config = network(Bandwidth::Mhz5, vec![ue(um(), 60.0), ue(Mode::Tm, loss)]);
    config.cells[0].downlink = discipline;
    config.cells[0].uplink = discipline;
    let mut world = World::new(&config);
    for tti in 0..3000 {
        while world.ran.rlc_backlog(1, direction).packets < 10 {
            world.send(direction, 1, len);
        }
        world.saturate(direction, &[0], 60, ms(tti + 1));
    }
    [0, 1].map(|ue| mbps(&world, direction, ue, (500, 3000)))
}

#[test]
fn packets_of_tm_that_fit_no_block_take_nothing_from_others() {
    for discipline in DISCIPLINES {
        for direction in [Direction::Downlink, Direction::Uplink] {
            let [near, far] = beside_transparent(direction, discipline, 122.0, 1500);
            assert!(near > 15.5 && far == 0.0, "{discipline:?} {direction:?}: {near} {far}");
        }
    }
}

#[test]
fn packets_of_tm_get_blocks_that_hold_them() {
    for discipline in DISCIPLINES {
        for direction in [Direction::Downlink, Direction::Uplink] {
            let [near, other] = beside_transparent(direction, discipline, 60.0, 1500);
            assert!(near + other > 14.0 && other > 4.0 && near > 4.0, "{discipline:?} {direction:?}: {near} {other}");
        }
    }
}

#[test]
fn a_packet_of_tm_that_no_grant_can_hold_is_not_asked_for_without_end() {
    let mut world = World::new(&network(Bandwidth::Mhz1_4, vec![ue(Mode::Tm, 60.0)]));
    world.send(Direction::Uplink, 0, 1500);
    world.run(ms(3000));
    // A request each 320 ms, and those grants that are under way before the first has shown that it is too small.
    let stats = world.ran.stats(0);
    assert!((9..=10).contains(&stats.scheduling_requests) && stats.uplink.blocks <= 80, "{stats:?}");
}

#[test]
fn what_the_window_held_back_is_asked_for_as_soon_as_it_moves() {
    // The downlink, which brings the STATUS PDUs, is out of reach for a while.
    let mut world = World::new(&network(Bandwidth::Mhz10, vec![ue(am(), 60.0)]));
    world.saturate(Direction::Uplink, &[0], 600, ms(500));
    let before = mbps(&world, Direction::Uplink, 0, (200, 500));
    world.saturate(Direction::Uplink, &[0], 600, ms(2000));
    let after = mbps(&world, Direction::Uplink, 0, (500, 2000));
    assert!((after / before - 1.0).abs() < 0.1, "{before} {after}");
}

/// Two bearers of a UE, of which the one that goes first is in TM and cannot send.
#[test]
fn another_bearer_of_the_ue_goes_on() {
    let mut config: Config = network(Bandwidth::Mhz1_4, vec![ue(um(), 60.0)]);
    let mut first = bearer(Mode::Tm);
    first.qci = 1;
    first.filter = ran::Filter::Flows(vec![7]);
    config.ues[0].bearers.push(first);
    for direction in [Direction::Downlink, Direction::Uplink] {
        let mut world = World::new(&config);
        world.send_flow(direction, 0, 1500, 7);
        world.saturate(direction, &[0], 20, ms(1000));
        let rate = world.bytes(direction, 0, Time::ZERO) as f64 * 8.0 / 1e6;
        assert!(rate > 2.8, "{direction:?} {rate}");
    }
}
