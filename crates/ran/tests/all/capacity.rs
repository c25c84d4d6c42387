//! What a cell carries, and how UEs share it.

use std::collections::BTreeMap;

use crate::support::{World, am, each_mac, loss_for, ms, network, ue, um};
use channel::{Bandwidth, Direction};
use ran::{Discipline, Event, MacConfig};

/// Bits that a TTI carries at `I_TBS` 26 (36.213 table 7.1.7.2.1-1).
const TABLE: [(Bandwidth, u64); 4] =
    [(Bandwidth::Mhz1_4, 4392), (Bandwidth::Mhz5, 18336), (Bandwidth::Mhz10, 36696), (Bandwidth::Mhz20, 75376)];

#[test]
fn a_saturated_downlink_carries_the_table_less_its_headers() {
    for mode in [um(), am()] {
        for (bandwidth, bits) in TABLE {
            let mut world = World::new(&network(bandwidth, vec![ue(mode, 60.0)]));
            world.saturate(Direction::Downlink, &[0], 100, ms(1000));
            let stats = world.ran.stats(0).downlink;
            let (goodput, table) = (world.bytes(Direction::Downlink, 0, ms(200)) * 8, bits * 801);
            assert_eq!(stats.bits, stats.blocks * bits);
            assert!(stats.blocks >= 999, "each TTI is used: {stats:?}");
            assert_eq!((stats.retransmissions, stats.padding), (0, 0));
            // A subheader of MAC, a header of RLC and a length indicator or two, and PDCP's two bytes each 1500.
            let least = table * (bits / 8 - 12) / (bits / 8) * 1500 / 1504;
            assert!(goodput <= table && goodput >= least - 1500 * 8 * 10, "{bandwidth:?} {goodput} {least} {table}");
        }
    }
}

#[test]
fn a_saturated_uplink_uses_its_blocks_and_wastes_next_to_nothing() {
    let mut world = World::new(&network(Bandwidth::Mhz10, vec![ue(am(), 60.0)]));
    world.saturate(Direction::Uplink, &[0], 200, ms(1000));
    let stats = world.ran.stats(0).uplink;
    // 48 blocks without the control channel's.
    let table = u64::from(channel::tables::lte::tbs(26, 48)) * 800;
    let goodput = world.bytes(Direction::Uplink, 0, ms(200)) * 8;
    assert!(goodput as f64 > table as f64 * 0.97, "{goodput} of {table} {stats:?}");
    assert!(stats.padding * 100 < stats.bits / 8, "{stats:?}");
}

#[test]
fn an_ideal_uplink_uses_the_whole_carrier() {
    let mut config = network(Bandwidth::Mhz10, vec![ue(am(), 60.0)]);
    each_mac(&mut config, |mac| *mac = MacConfig::ideal());
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &[0], 200, ms(1000));
    let goodput = world.bytes(Direction::Uplink, 0, ms(200)) * 8;
    assert!(goodput as f64 > 36_696.0 * 800.0 * 0.98, "{goodput}");
    assert_eq!(world.ran.stats(0).scheduling_requests, 0);
}

#[test]
fn two_layers_carry_twice_the_table_on_a_good_channel_and_one_on_a_bad_one() {
    let rate = |layers: u8, loss_db: f64| {
        let mut config = network(Bandwidth::Mhz20, vec![ue(um(), loss_db)]);
        config.ues[0].layers = layers;
        let mut world = World::new(&config);
        world.saturate(Direction::Downlink, &[0], 100, ms(1000));
        let sent =
            world.events.iter().filter_map(|(_, e)| if let Event::Transmission(t) = e { Some(t.layers) } else { None });
        (world.bytes(Direction::Downlink, 0, ms(200)) as f64 * 8.0 / 0.8e6, sent.max())
    };
    assert_eq!(rate(2, 60.0).1, Some(2));
    assert!(rate(2, 60.0).0 > 2.0 * 75.376 * 0.985 && rate(2, 60.0).0 < 2.0 * 75.376);
    // Half of the power is too little for a second layer.
    let bad = loss_for(-5.0);
    assert_eq!(rate(2, bad), rate(1, bad));
    assert!(rate(1, bad).0 > 1.0);
    // In between neither is twice as good.
    let (one, two) = (rate(1, loss_for(16.0)).0, rate(2, loss_for(16.0)).0);
    assert!(two > 1.2 * one && two < 1.9 * one, "{one} {two}");
}

fn split(discipline: Discipline, direction: Direction, losses: &[f64]) -> Vec<f64> {
    let mut config = network(Bandwidth::Mhz20, losses.iter().map(|loss| ue(um(), *loss)).collect());
    config.cells[0].downlink = discipline;
    config.cells[0].uplink = discipline;
    let ues: Vec<u32> = (0..losses.len() as u32).collect();
    let mut world = World::new(&config);
    world.saturate(direction, &ues, 100, ms(2000));
    ues.iter().map(|ue| world.bytes(direction, *ue, ms(500)) as f64 * 8.0 / 1.5e6).collect()
}

#[test]
fn equal_ues_share_equally_under_every_discipline_in_both_directions() {
    for discipline in [Discipline::RoundRobin, Discipline::ProportionalFair, Discipline::MaxThroughput] {
        for (direction, most) in [(Direction::Downlink, 75.4), (Direction::Uplink, 71.2)] {
            let rates = split(discipline, direction, &[60.0; 5]);
            let sum: f64 = rates.iter().sum();
            assert!(sum <= most && sum > most * 0.93, "{discipline:?} {direction:?} {rates:?} {sum}");
            for rate in &rates {
                assert!((rate / (sum / 5.0) - 1.0).abs() < 0.05, "{discipline:?} {direction:?} {rates:?}");
            }
        }
    }
}

#[test]
fn proportional_fair_shares_time_and_maximum_throughput_starves_the_far() {
    let losses = [60.0, loss_for(8.0)];
    let alone: Vec<f64> =
        losses.iter().map(|l| split(Discipline::ProportionalFair, Direction::Downlink, &[*l])[0]).collect();
    assert!(alone[1] < alone[0] / 2.0, "{alone:?}");
    for fair in [Discipline::ProportionalFair, Discipline::RoundRobin] {
        let rates = split(fair, Direction::Downlink, &losses);
        for (rate, alone) in rates.iter().zip(&alone) {
            assert!((rate / alone - 0.5).abs() < 0.06, "{fair:?} {rates:?} of {alone:?}");
        }
    }
    let rates = split(Discipline::MaxThroughput, Direction::Downlink, &losses);
    assert!(rates[0] > alone[0] * 0.97 && rates[1] < alone[1] * 0.03, "{rates:?} {alone:?}");
}

#[test]
fn what_a_ue_with_little_to_send_leaves_is_the_others() {
    let mut config = network(Bandwidth::Mhz20, vec![ue(um(), 60.0), ue(um(), 60.0)]);
    config.cells[0].downlink = Discipline::RoundRobin;
    let mut world = World::new(&config);
    for tti in 0..1000 {
        world.send(Direction::Downlink, 1, 100);
        world.saturate(Direction::Downlink, &[0], 100, ms(tti + 1));
    }
    let greedy = world.bytes(Direction::Downlink, 0, ms(200)) as f64 * 8.0 / 0.8e6;
    let little = world.bytes(Direction::Downlink, 1, ms(200)) as f64 * 8.0 / 0.8e6;
    assert!((little - 0.8).abs() < 0.01, "{little}");
    assert!(greedy > 71.0, "24 of 25 groups: {greedy}");
}

#[test]
fn no_resource_block_is_used_twice_in_a_tti() {
    let losses = [60.0, 60.0, loss_for(12.0), loss_for(5.0), loss_for(0.0)];
    for discipline in [Discipline::RoundRobin, Discipline::ProportionalFair] {
        let mut config = network(Bandwidth::Mhz20, losses.iter().map(|loss| ue(am(), *loss)).collect());
        config.cells[0].downlink = discipline;
        config.cells[0].uplink = discipline;
        let mut world = World::new(&config);
        for tti in 0..300 {
            for ue in 0..5 {
                world.send(Direction::Downlink, ue, 700 + 100 * ue);
                world.send(Direction::Uplink, ue, 400);
            }
            world.run(ms(tti + 1));
        }
        let mut used = BTreeMap::new();
        let mut retransmissions = 0;
        for (at, event) in &world.events {
            if let Event::Transmission(t) = event {
                let blocks = ((1u128 << t.prbs) - 1) << t.first_prb;
                let taken: &mut u128 = used.entry((*at, t.direction as u8)).or_default();
                assert_eq!(*taken & blocks, 0, "{at}: a resource block is used twice: {t:?}");
                *taken |= blocks;
                assert!(*taken < 1 << 100, "{at}: past the end of the carrier: {t:?}");
                retransmissions += usize::from(t.attempt > 1);
            }
        }
        assert!(used.len() > 500 && retransmissions > 20, "{} {retransmissions}", used.len());
    }
}

#[test]
fn a_block_of_one_resource_block_is_not_sent_at_a_code_rate_above_one() {
    // 1.4 MHz have groups of one resource block, and MCS 6, which a UE at 1.5 dB has, 328 bits in 276 coded ones.
    let mut config = network(Bandwidth::Mhz1_4, vec![ue(um(), 60.0); 6]);
    config.cells[0].downlink = Discipline::RoundRobin;
    // The control channel of so narrow a carrier has room for two assignments: blocks of one resource block need six.
    each_mac(&mut config, |mac| mac.assignments = Some(12));
    let mut world = World::new(&config);
    for ue in 0..6 {
        world.ran.set_sinr(ue, Some(1.5), world.now);
    }
    world.saturate(Direction::Downlink, &[0, 1, 2, 3, 4, 5], 60, ms(2000));
    let (mut single, mut failed, mut lower) = (0, 0, 0);
    for (at, event) in &world.events {
        // The channel is known then.
        if let Event::Transmission(t) = event
            && t.attempt == 1
            && *at >= ms(20)
        {
            assert!(t.bits + 24 <= 276 * u32::from(t.prbs), "{t:?}");
            assert_eq!(t.prbs, 1, "each UE has a sixth: {t:?}");
            single += 1;
            failed += u32::from(!t.decoded);
            lower += u32::from(t.mcs == 5);
        }
    }
    println!("{single} blocks, {lower} with MCS 5, {failed} failed");
    assert!(single > 9_000 && lower > 1_000);
    assert!((f64::from(failed) / f64::from(single) - 0.1).abs() < 0.01, "{failed} of {single}");
}
