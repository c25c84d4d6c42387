//! Resource blocks go to UEs that can send, and to no others.

use crate::support::{World, am, bearer, loss_for, ms, network, ue, um};
use channel::{Bandwidth, Direction};
use ran::rlc::{Am, Mode};
use ran::{Config, Discipline, Event, UeConfig};
use units::{Span, Time};

const DISCIPLINES: [Discipline; 2] = [Discipline::ProportionalFair, Discipline::RoundRobin];

fn mbps(world: &World, direction: Direction, ue: u32, (from, to): (u64, u64)) -> f64 {
    let until =
        |a: &&crate::support::Arrival| a.at < ms(to) && a.at >= ms(from) && a.ue == ue && a.direction == direction;
    let bytes: u64 = world.arrivals.iter().filter(until).map(|a| u64::from(a.packet.len)).sum();
    bytes as f64 * 8.0 / ((to - from) as f64 * 1e3)
}

/// AM that does not give up: 32 retransmissions and slow polls.
fn patient() -> Mode {
    Mode::Am(Am { max_retx: 32, ..Am::default() })
}

/// Mbit/s of a near UE that always has more to send or to receive, alone and beside one that is out of reach, which stays
/// connected and has 500 kbit/s.
fn beside_unreachable(direction: Direction, discipline: Discipline, mode: Mode, far: &UeConfig) -> [f64; 2] {
    [false, true].map(|far_has_data| {
        let far = UeConfig { bearers: vec![bearer(mode)], ..far.clone() };
        let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0), far]);
        config.cells[0].downlink = discipline;
        config.cells[0].uplink = discipline;
        config.handover.link.t310 = Span::from_secs(100);
        let mut world = World::new(&config);
        for step in 0..500 {
            for _ in 0..if far_has_data { 5 } else { 0 } {
                world.send(direction, 1, 100);
            }
            world.saturate(direction, &[0], 60, ms(8 * step + 8));
        }
        assert!(world.ran.serving(1).is_some());
        mbps(&world, direction, 0, (1000, 4000))
    })
}

#[test]
fn an_unreachable_ue_takes_next_to_nothing_from_its_neighbour() {
    let far = ue(um(), loss_for(-50.0));
    // Power control leaves 30 dB too little at the eNodeB, although the UE has power for all resource blocks.
    let mut faint = ue(um(), 60.0);
    faint.air.power.p0_dbm = -146.0;
    for (direction, far) in [(Direction::Downlink, &far), (Direction::Uplink, &far), (Direction::Uplink, &faint)] {
        for discipline in DISCIPLINES {
            for mode in [um(), patient(), Mode::Tm] {
                let [alone, beside] = beside_unreachable(direction, discipline, mode, far);
                println!("{direction:?} {discipline:?} {mode:?}: {alone:.2} alone, {beside:.2} Mbit/s beside");
                assert!(
                    beside > 0.99 * alone,
                    "{direction:?} {discipline:?} {mode:?}: {alone} alone, {beside} Mbit/s beside"
                );
            }
        }
    }
}

#[test]
fn a_ue_that_comes_back_is_served_as_soon_as_its_reports_say_so() {
    for direction in [Direction::Downlink, Direction::Uplink] {
        for discipline in DISCIPLINES {
            let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0), ue(um(), 60.0)]);
            config.cells[0].downlink = discipline;
            config.cells[0].uplink = discipline;
            config.handover.link.t310 = Span::from_secs(100);
            let mut world = World::new(&config);
            world.saturate(direction, &[0, 1], 60, ms(500));
            world.ran.set_sinr(1, Some(-40.0), world.now);
            world.saturate(direction, &[0, 1], 60, ms(3500));
            assert_eq!(mbps(&world, direction, 1, (600, 3500)), 0.0);
            world.ran.set_sinr(1, None, world.now);
            world.saturate(direction, &[0, 1], 60, ms(4500));
            let sent = world.events.iter().find_map(|(at, event)| match event {
                Event::Transmission(t) if t.ue == 1 && *at >= ms(3500) && t.attempt == 1 => Some(*at),
                _ => None,
            });
            // A report within the period of 5 ms, used 6 ms later; in the uplink from the grant to its transmission.
            let latest = if direction == Direction::Downlink { 3512 } else { 3516 };
            assert!(sent.is_some_and(|at| at <= ms(latest)), "{direction:?} {discipline:?}: {sent:?}");
            let rates = [0, 1].map(|ue| mbps(&world, direction, ue, (4000, 4500)));
            assert!((rates[0] / rates[1] - 1.0).abs() < 0.05, "{direction:?} {discipline:?}: {rates:?}");
        }
    }
}

/// The shares of resource blocks of a near UE and of one whose first transmissions nearly all fail.
fn blocks_beside_edge(direction: Direction, discipline: Discipline) -> [f64; 2] {
    // On half of the carrier that `loss_for` is for, each resource block has 3 dB more. The uplink's noise is -116.4 dBm in
    // a resource block, and power control's aim 7.5 dB below it.
    let mut edge = ue(um(), if direction == Direction::Downlink { loss_for(-6.5 - 3.01) } else { 60.0 });
    edge.air.power.p0_dbm = -116.4 - 7.5;
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0), edge]);
    config.cells[0].downlink = discipline;
    config.cells[0].uplink = discipline;
    config.handover.link.t310 = Span::from_secs(100);
    let mut world = World::new(&config);
    world.saturate(direction, &[0, 1], 60, ms(4000));
    let mut blocks = [0.0; 2];
    for (at, event) in &world.events {
        if let Event::Transmission(t) = event
            && t.direction == direction
            && *at >= ms(500)
        {
            blocks[t.ue as usize] += f64::from(t.prbs);
        }
    }
    let stats = world.ran.stats(1);
    let stats = if direction == Direction::Downlink { stats.downlink } else { stats.uplink };
    assert!(stats.first_failures * 10 > stats.blocks * 9 && stats.residual_errors == 0, "{stats:?}");
    blocks.map(|of| of / (blocks[0] + blocks[1]))
}

#[test]
fn what_is_sent_again_counts_as_service() {
    for direction in [Direction::Downlink, Direction::Uplink] {
        for discipline in DISCIPLINES {
            let [near, edge] = blocks_beside_edge(direction, discipline);
            assert!((near - edge).abs() < 0.1, "{direction:?} {discipline:?}: {near} {edge}");
        }
    }
}

#[test]
fn a_ue_that_leaves_coverage_takes_little_from_the_others() {
    for direction in [Direction::Downlink, Direction::Uplink] {
        for discipline in DISCIPLINES {
            for mode in [um(), patient()] {
                let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0), ue(mode, 60.0)]);
                config.cells[0].downlink = discipline;
                config.cells[0].uplink = discipline;
                config.handover.link.t310 = Span::from_secs(100);
                let mut world = World::new(&config);
                world.saturate(direction, &[0], 600, ms(1000));
                let alone = mbps(&world, direction, 0, (200, 1000));
                world.saturate(direction, &[0, 1], 600, ms(2000));
                world.ran.set_sinr(1, Some(-40.0), world.now);
                world.saturate(direction, &[0, 1], 600, ms(5000));
                let after = mbps(&world, direction, 0, (2000, 5000));
                println!("{direction:?} {discipline:?} {mode:?}: {alone:.2} alone, {after:.2} Mbit/s after");
                assert!(after > 0.98 * alone, "{direction:?} {discipline:?} {mode:?}: {alone} alone, {after} after");
            }
        }
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
