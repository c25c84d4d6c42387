//! Blocks that fail are sent again after eight milliseconds, four times in all, and what is lost then reaches RLC.

use std::collections::BTreeMap;

use crate::support::{World, am, each_mac, loss_for, ms, network, ue, um};
use channel::{Bandwidth, Direction};
use ran::rlc::Mode;
use ran::{Config, Event, MacConfig, Transmission};
use units::{Span, Time};

/// The transmissions of each block, by process and first TTI.
fn blocks(world: &World, direction: Direction) -> Vec<Vec<(Time, Transmission)>> {
    let mut open: BTreeMap<u8, Vec<(Time, Transmission)>> = BTreeMap::new();
    let mut done = Vec::new();
    for (at, event) in &world.events {
        if let Event::Transmission(t) = event
            && t.direction == direction
        {
            if t.attempt == 1
                && let Some(before) = open.remove(&t.process)
            {
                done.push(before);
            }
            open.entry(t.process).or_default().push((*at, *t));
        }
    }
    done
}

/// A channel between two schemes, on which the outer loop fails one block in ten.
fn lossy(mode: Mode) -> Config {
    network(Bandwidth::Mhz20, vec![ue(mode, loss_for(8.0))])
}

#[test]
fn a_block_that_fails_is_sent_again_eight_milliseconds_later() {
    let mut world = World::new(&lossy(um()));
    world.saturate(Direction::Downlink, &[0], 50, ms(1000));
    let blocks = blocks(&world, Direction::Downlink);
    let repeated = blocks.iter().filter(|b| b.len() > 1).count();
    assert!(repeated > 20, "{repeated} of {}", blocks.len());
    for block in &blocks {
        for (i, pair) in block.windows(2).enumerate() {
            let ((before, a), (after, b)) = (pair[0], pair[1]);
            assert_eq!(after - before, Span::from_millis(8));
            assert!(!a.decoded, "a decoded block is not repeated");
            assert_eq!((b.attempt, b.bits, b.mcs), (i as u8 + 2, a.bits, a.mcs));
        }
        let (_, last) = block[block.len() - 1];
        assert!(last.decoded || last.attempt == 4);
    }
}

#[test]
fn an_uplink_block_that_fails_is_repeated_on_its_resource_blocks_eight_milliseconds_later() {
    // At the edge of the cell, where the UE's power doesn't suffice for the best scheme.
    let mut world = World::new(&network(Bandwidth::Mhz20, vec![ue(um(), 125.0)]));
    world.saturate(Direction::Uplink, &[0], 50, ms(2000));
    let blocks = blocks(&world, Direction::Uplink);
    let repeated = blocks.iter().filter(|b| b.len() > 1).count();
    assert!(repeated > 20, "{repeated} of {}", blocks.len());
    for pair in blocks.iter().flat_map(|b| b.windows(2)) {
        assert_eq!(pair[1].0 - pair[0].0, Span::from_millis(8));
        assert_eq!((pair[1].1.bits, pair[1].1.prbs), (pair[0].1.bits, pair[0].1.prbs));
    }
}

#[test]
fn a_block_is_given_up_after_the_configured_number_of_transmissions() {
    for transmissions in [1, 2, 4] {
        for direction in [Direction::Downlink, Direction::Uplink] {
            let mut config = network(Bandwidth::Mhz20, vec![ue(um(), 60.0)]);
            each_mac(&mut config, |mac| mac.transmissions = transmissions);
            let mut world = World::new(&config);
            world.saturate(direction, &[0], 50, ms(100));
            let before = world.ran.stats(0);
            assert_eq!((before.downlink.first_failures, before.uplink.first_failures), (0, 0));
            // From now on no block can be decoded; grants and blocks go on until reports tell.
            world.ran.set_sinr(0, Some(-50.0), world.now);
            world.run(ms(300));
            let these = |e: &&(Time, Event)| matches!(e.1, Event::Transmission(t) if t.direction == direction);
            let count = world.events.iter().filter(these).count() as u64;
            let mut stats = world.ran.stats(0);
            let stats = if direction == Direction::Downlink { &mut stats.downlink } else { &mut stats.uplink };
            assert!(stats.residual_errors >= 4, "{direction:?} {stats:?}");
            assert_eq!(stats.first_failures, stats.residual_errors);
            assert_eq!(stats.retransmissions, stats.residual_errors * u64::from(transmissions - 1));
            assert_eq!(count, stats.blocks + stats.retransmissions);
            assert!(world.arrivals.iter().all(|a| a.at <= ms(104)), "what was sent before is decoded within 4 ms");
        }
    }
}

#[test]
fn am_delivers_everything_once_and_in_order_through_blocks_that_harq_loses() {
    for seed in 0..4 {
        // Without a repetition each failure reaches RLC.
        let mut config = lossy(am());
        each_mac(&mut config, |mac| mac.transmissions = 1);
        let mut world = World::seeded(&config, seed);
        for i in 0..400 {
            world.send(Direction::Downlink, 0, 40 + (i * 37) % 1460);
            world.send(Direction::Uplink, 0, 40 + (i * 91) % 1460);
            let next = world.now + Span::from_micros(2300);
            world.run(next);
        }
        world.run(ms(20_000));
        let stats = world.ran.stats(0);
        assert!(stats.downlink.residual_errors > 5, "{stats:?}");
        assert_eq!(world.drops.len(), 0);
        for direction in [Direction::Downlink, Direction::Uplink] {
            let ids = world.ids(direction, 0);
            assert_eq!(ids.len(), 400, "{direction:?}");
            assert!(ids.is_sorted());
        }
    }
}

#[test]
fn the_outer_loop_holds_first_failures_at_one_in_ten() {
    for sinr_db in [3.3, 7.1, 11.7, 15.2] {
        let mut world = World::new(&network(Bandwidth::Mhz20, vec![ue(um(), loss_for(sinr_db))]));
        world.saturate(Direction::Downlink, &[0], 100, ms(4000));
        let stats = world.ran.stats(0).downlink;
        let share = stats.first_failures as f64 / stats.blocks as f64;
        assert!((share - 0.1).abs() < 0.01, "{sinr_db} dB: {share} {stats:?}");
        assert!(stats.residual_errors * 1000 < stats.blocks, "{stats:?}");
    }
}

#[test]
fn decoding_takes_as_long_as_configured() {
    for (decoding, arrives) in [(0, 1), (1, 2), (3, 4)] {
        let mut config = network(Bandwidth::Mhz20, vec![ue(um(), 60.0)]);
        each_mac(&mut config, |mac| *mac = MacConfig { decoding: Span::from_millis(decoding), ..MacConfig::default() });
        let mut world = World::new(&config);
        world.run(ms(10));
        world.send(Direction::Downlink, 0, 1000);
        world.run(ms(100));
        assert_eq!(world.arrivals[0].at, ms(10 + arrives));
    }
}

/// Nobody else would know: packets are not numbered.
#[test]
fn a_packet_of_transparent_mode_is_lost_with_the_last_transmission_of_its_block() {
    let mut config = lossy(Mode::Tm);
    each_mac(&mut config, |mac| mac.transmissions = 1);
    let mut world = World::new(&config);
    for i in 0..500 {
        world.send(Direction::Downlink, 0, 600);
        world.send(Direction::Uplink, 0, 600);
        world.run(ms(4 * (i + 1)));
    }
    world.run(ms(3000));
    let stats = world.ran.stats(0);
    assert!(stats.downlink.residual_errors > 5, "{stats:?}");
    let lost = world.drops.iter().filter(|(_, reason)| *reason == aqm::DropReason::Loss).count();
    assert!(lost > 5 && lost == world.drops.len(), "{lost} of {}", world.drops.len());
    assert_eq!(world.ran.held(), 0, "each one has arrived or is lost");
}
