//! UEs whose power limits them: what they share, and how their blocks fare.

use std::collections::BTreeMap;

use crate::support::{TTI, World, each_mac, ms, network, ue, um};
use channel::tables::lte::tbs;
use channel::{Bandwidth, Direction};
use ran::{Discipline, Event};
use units::{Span, Time};

/// Mbit/s of each UE behind the given path losses, all saturated in the uplink, and the share of first transmissions that
/// failed.
fn saturated(bandwidth: Bandwidth, discipline: Discipline, losses: &[f64], end: u64) -> (Vec<f64>, f64) {
    let mut config = network(bandwidth, losses.iter().map(|loss| ue(um(), *loss)).collect());
    config.cells[0].uplink = discipline;
    // Strong enough down for the uplink alone to decide.
    config.cells[0].site.power_dbm = 46.0;
    let ues: Vec<u32> = (0..losses.len() as u32).collect();
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &ues, 60, ms(end));
    let warm = 500;
    let rate = |ue: &u32| world.bytes(Direction::Uplink, *ue, ms(warm)) as f64 * 8.0 / ((end - warm) as f64 * 1e3);
    let rates = ues.iter().map(rate).collect();
    let stats = ues.iter().map(|ue| world.ran.stats(*ue).uplink);
    let (failed, blocks) = stats.fold((0, 0), |(f, b), s| (f + s.first_failures, b + s.blocks));
    (rates, failed as f64 / blocks as f64)
}

#[test]
fn proportional_fair_carries_as_much_as_round_robin_where_power_limits_all() {
    for (loss, least) in [(100.0, 34.8), (110.0, 34.7), (115.0, 28.3), (122.0, 17.4), (126.0, 11.0), (132.0, 4.4)] {
        let [pf, rr] = [Discipline::ProportionalFair, Discipline::RoundRobin]
            .map(|discipline| saturated(Bandwidth::Mhz10, discipline, &[loss; 10], 2000).0);
        let [sum_pf, sum_rr] = [&pf, &rr].map(|rates| rates.iter().sum::<f64>());
        // Where all blocks have the best scheme, the sizes of the table decide (see below). Further away, repetitions of
        // other sizes leave 0.4 % of the resource blocks in gaps that no grant fits, and of larger blocks a little more than
        // the tenth fails to which the outer loop steers.
        let share = if loss <= 110.0 { 0.976 } else { 0.985 };
        assert!(sum_pf > share * sum_rr && sum_pf > least, "{loss} dB: {sum_pf} {sum_rr}");
        let mean = sum_pf / 10.0;
        assert!(pf.iter().all(|rate| (rate / mean - 1.0).abs() < 0.05), "{loss} dB: {pf:?}");
    }
}

/// The first transmissions from half a second on of ten saturated UEs behind `loss` by their number of resource blocks.
fn sizes(discipline: Discipline, loss: f64) -> BTreeMap<u16, u64> {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), loss); 10]);
    config.cells[0].uplink = discipline;
    config.cells[0].site.power_dbm = 46.0;
    let ues: Vec<u32> = (0..10).collect();
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &ues, 60, ms(2000));
    let mut sizes = BTreeMap::new();
    for (at, event) in &world.events {
        if let Event::Transmission(t) = event
            && t.direction == Direction::Uplink
            && (ms(500)..ms(2000)).contains(at)
        {
            assert!(t.decoded && t.mcs == 28 && t.padding < 8, "nothing else costs anything: {t:?}");
            assert_eq!(t.bits, tbs(26, t.prbs));
            *sizes.entry(t.prbs).or_default() += 1;
        }
    }
    sizes
}

#[test]
fn where_all_have_the_best_scheme_only_the_tables_sizes_tell_the_disciplines_apart() {
    // Both use all 48 resource blocks of each TTI. Round robin makes two blocks of four and eight of five of them, which
    // happen to have the most bits for their size; proportional fair gives as much as it needs to the one that is first, and
    // where power limits UEs, six resource blocks each to eight, of which each has the fewest.
    let cases = [
        (Discipline::RoundRobin, 100.0, vec![(4, 2), (5, 8)]),
        (Discipline::RoundRobin, 110.0, vec![(4, 2), (5, 8)]),
        (Discipline::ProportionalFair, 100.0, vec![(48, 1)]),
        (Discipline::ProportionalFair, 110.0, vec![(6, 8)]),
    ];
    let mut bits = Vec::new();
    for (discipline, loss, expected) in cases {
        let expected: BTreeMap<u16, u64> = expected.into_iter().collect();
        let in_all: BTreeMap<u16, u64> = expected.iter().map(|(prbs, blocks)| (*prbs, blocks * 1500)).collect();
        assert_eq!(sizes(discipline, loss), in_all, "{discipline:?} {loss} dB");
        assert_eq!(expected.iter().map(|(prbs, blocks)| u64::from(*prbs) * blocks).sum::<u64>(), 48);
        bits.push(expected.iter().map(|(prbs, blocks)| u64::from(tbs(26, *prbs)) * blocks).sum::<u64>());
    }
    // 2.3 and 2.4 % less.
    assert_eq!(bits, [35_984, 35_984, 35_160, 35_136]);
}

#[test]
fn near_and_far_ues_both_gain_from_sharing_each_tti() {
    let mixed = [60.0, 60.0, 110.0, 115.0, 120.0, 126.0];
    let spread: Vec<f64> = (0..20).map(|i| 90.0 + 2.0 * f64::from(i)).collect();
    for losses in [&[60.0, 126.0][..], &mixed, &spread] {
        let [pf, rr] = [Discipline::ProportionalFair, Discipline::RoundRobin]
            .map(|discipline| saturated(Bandwidth::Mhz10, discipline, losses, 3000).0);
        let sum = |rates: &[f64]| rates.iter().sum::<f64>();
        // What proportional fair maximises.
        let logs = |rates: &[f64]| rates.iter().map(|rate| rate.ln()).sum::<f64>();
        assert!(sum(&pf) > sum(&rr) && logs(&pf) > logs(&rr), "{losses:?}: {pf:?} {rr:?}");
    }
}

#[test]
fn the_outer_loop_keeps_its_target_at_the_limit_of_power() {
    for loss in [120.0, 126.0, 132.0, 136.0] {
        let [narrow, wide] =
            [Bandwidth::Mhz5, Bandwidth::Mhz20].map(|b| saturated(b, Discipline::ProportionalFair, &[loss], 4000));
        for (rates, errors) in [&narrow, &wide] {
            assert!((0.07..0.13).contains(errors), "{loss} dB: {errors} {rates:?}");
        }
        assert!(wide.0[0] > 0.96 * narrow.0[0], "more resource blocks do no harm: {loss} dB: {wide:?} {narrow:?}");
    }
}

#[test]
fn a_headroom_is_reported_at_first_each_period_and_when_the_path_loss_changes() {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 100.0)]);
    each_mac(&mut config, |mac| mac.power_reports.periodic = Some(Span::from_millis(200)));
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &[0], 60, ms(500));
    let reports = |world: &World| -> Vec<(Time, u8)> {
        let level = |event: &Event| if let Event::PowerHeadroom { level, .. } = event { Some(*level) } else { None };
        world.events.iter().filter_map(|(at, event)| Some((*at, level(event)?))).collect()
    };
    let before = reports(&world);
    assert_eq!(before.len(), 3, "{before:?}");
    assert!(before.windows(2).all(|w| (200..220).contains(&(w[1].0 - w[0].0).as_millis())), "{before:?}");
    // 23 dBm less -80 dBm a block and 100 dB: 3 dB on one block, and on the first grant's two.
    assert_eq!(before[0].1, 23 + 3 - 3, "{before:?}");
    assert_eq!(before[1].1, 23 + 3 - 17, "and on 48: {before:?}");
    // 15 dB better: the next block carries a report, which is there when it is decoded.
    let downlink_db = 30.0 - 10.0 * 600f64.log10() - 100.0 + 174.0 - 10.0 * 15_000f64.log10() - 9.0;
    world.ran.set_sinr(0, Some(downlink_db + 15.0), world.now);
    let changed = world.now;
    world.saturate(Direction::Uplink, &[0], 60, ms(530));
    let (at, _) = reports(&world)[3];
    assert!((4..=5).contains(&(at - changed).as_millis()), "sent in the next TTI, decoded four later: {at}");
}

#[test]
fn a_report_of_the_headroom_costs_its_bytes() {
    let carried = |periodic: Option<Span>| {
        let mut config = network(Bandwidth::Mhz1_4, vec![ue(um(), 100.0)]);
        each_mac(&mut config, |mac| mac.power_reports.periodic = periodic);
        let mut world = World::new(&config);
        world.saturate(Direction::Uplink, &[0], 60, ms(21_000));
        world.bytes(Direction::Uplink, 0, ms(1000))
    };
    let (none, each) = (carried(None), carried(Some(TTI)));
    // Two bytes in each of 20 000 blocks, to a packet of 1500 at either end.
    assert!((none - each).abs_diff(40_000) <= 1_500, "{none} {each}");
}
