//! Configured grants: an uplink packet from idle slot by slot, and what happens to blocks that fail.

use crate::support::{World, ms, ue};
use channel::tables::nr::Numerology;
use channel::{Carrier, Direction, Site};
use ran::rlc::{AmSn, Mode, NrAm};
use ran::{
    CellConfig, Config, ConfiguredGrant, Drx, Duplex, Event, MacConfig, Nr, Pattern, Rat, Requests, Step, Transmission,
};
use units::{Span, Time};

const SLOT: Span = Span::from_micros(500);

/// `ues` in a cell of 51 resource blocks of 30 kHz, with an occasion of 10 of them in each ten slots.
fn network(duplex: Duplex, ues: usize) -> Config {
    let grant = ConfiguredGrant { period: 10, prbs: 10, mcs: 10, processes: 2, timer: 2 };
    let carrier = Carrier { downlink_hz: 3.5e9, uplink_hz: 3.5e9, prbs: 51, subcarrier_hz: 30_000 };
    let mac = MacConfig {
        rat: Rat::Nr(Nr::new(Numerology::Khz30, duplex)),
        decoding: SLOT,
        requests: Requests { sr_period: 1, ..Requests::default() },
        configured: Some(grant),
        ..MacConfig::default()
    };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    let mode = Mode::NrAm(NrAm { sn: AmSn::Eighteen, ..NrAm::default() });
    Config { cells: vec![cell], ues: vec![ue(mode, 70.0); ues], ..Config::default() }
}

/// The beginning of slot `slot` after the 2000th.
fn at(slot: u64) -> Time {
    ms(1000) + SLOT * slot
}

fn uplink(world: &World) -> Vec<(u64, Transmission)> {
    let of = |(time, event): &(Time, Event)| match event {
        Event::Transmission(t) if t.direction == Direction::Uplink => {
            Some(((*time - ms(1000)).as_nanos() / SLOT.as_nanos(), *t))
        }
        _ => None,
    };
    world.events.iter().filter(|(time, _)| *time >= at(0)).filter_map(of).collect()
}

/// The UEs that have sent scheduling requests.
fn requests(world: &World) -> Vec<u32> {
    let mut ues: Vec<u32> = world
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::SchedulingRequest { ue } => Some(*ue),
            _ => None,
        })
        .collect();
    ues.sort_unstable();
    ues.dedup();
    ues
}

#[test]
fn a_packet_goes_at_the_next_occasion_without_a_request() {
    let mut world = World::new(&network(Duplex::Tdd(Pattern::DDDSU), 1));
    world.run(at(1));
    world.send(Direction::Uplink, 0, 100);
    world.run(at(11));
    world.send(Direction::Uplink, 0, 100);
    world.run(at(60));
    // The first uplink slot of each ten is slot 4; the process is the number of the period modulo 2.
    let sent: Vec<_> = uplink(&world).iter().map(|(slot, t)| (*slot, t.process, t.first_prb, t.prbs, t.mcs)).collect();
    assert_eq!(sent[..2], [(4, 0, 0, 10, 10), (14, 1, 0, 10, 10)]);
    // Decoded in slots 5 and 15, and delivered at the end of the slot after.
    let arrived: Vec<Time> = world.arrivals.iter().map(|a| a.at).collect();
    assert_eq!((arrived, requests(&world)), (vec![at(6), at(16)], vec![]));
    // Without the grant: request in the special slot 3, known in 5, answered in slot 8 for 9 (K2 = 1).
    let mut config = network(Duplex::Tdd(Pattern::DDDSU), 1);
    config.cells[0].mac.configured = None;
    let mut world = World::new(&config);
    world.run(at(1));
    world.send(Direction::Uplink, 0, 100);
    world.run(at(60));
    assert_eq!((world.arrivals[0].at, requests(&world)), (at(11), vec![0]));
}

#[test]
fn more_data_than_an_occasion_holds_is_reported_and_granted_on_other_processes() {
    let mut world = World::new(&network(Duplex::Fdd, 1));
    world.run(at(1));
    for _ in 0..20 {
        world.send(Direction::Uplink, 0, 1500);
    }
    world.run(at(100));
    assert_eq!((world.ids(Direction::Uplink, 0).len(), requests(&world)), (20, vec![]));
    let sent = uplink(&world);
    assert_eq!((sent[0].0, sent[0].1.process), (10, 1), "the occasion");
    let (occasions, granted): (Vec<_>, Vec<_>) = sent.iter().partition(|(_, t)| t.process < 2);
    assert!(occasions.iter().all(|(slot, t)| slot % 10 == 0 && (t.first_prb, t.prbs) == (0, 10)), "{occasions:?}");
    assert!(!granted.is_empty());
    // Nobody else gets the resources, whether the UE uses them or not.
    let overlaps = granted.iter().filter(|(slot, t)| slot % 10 == 0 && t.first_prb < 10);
    assert_eq!(overlaps.count(), 0);
}

#[test]
fn a_block_that_fails_is_repeated_with_a_dynamic_grant() {
    let mut config = network(Duplex::Fdd, 1);
    config.cells[0].mac.transmissions = 8;
    let mut world = World::new(&config);
    world.run(at(1));
    // MCS 10 needs about 6 dB.
    world.ran.set_sinr(0, Some(-4.0), at(1));
    world.run(at(100));
    world.send(Direction::Uplink, 0, 100);
    world.run(at(400));
    let sent = uplink(&world);
    let first: Vec<_> = sent.iter().take_while(|(_, t)| t.process == sent[0].1.process).collect();
    assert!(first.len() > 1 && first[0].0 == 100, "{sent:?}");
    // Known to have failed after the slot and its decoding, granted with K2 = 1.
    for pair in first.windows(2) {
        assert_eq!((pair[1].0 - pair[0].0, pair[1].1.attempt), (3, pair[0].1.attempt + 1), "{sent:?}");
    }
    assert_eq!(world.ids(Direction::Uplink, 0).len(), 1);
}

#[test]
fn the_grant_of_a_repetition_restarts_the_timer_of_its_process() {
    // 38.321 5.4.1: the UE does not know that its block was decoded. One process, with a timer of two periods.
    let mut config = network(Duplex::Fdd, 1);
    config.cells[0].mac.configured.as_mut().unwrap().processes = 1;
    let mut world = World::new(&config);
    world.run(at(1));
    world.ran.set_sinr(0, Some(-4.0), at(1));
    world.run(at(100));
    world.send(Direction::Uplink, 0, 100);
    world.run(at(101));
    world.ran.set_sinr(0, Some(20.0), at(101));
    for n in 0..8 {
        world.run(at(101 + 10 * n));
        world.send(Direction::Uplink, 0, 60);
    }
    world.run(at(200));
    let sent: Vec<_> = uplink(&world).iter().filter(|(_, t)| t.process == 0).map(|(s, t)| (*s, t.attempt)).collect();
    // Granted in slot 102 for 103.
    assert_eq!(sent[..3], [(100, 1), (103, 2), (130, 1)]);
}

#[test]
fn each_ue_has_a_place_of_its_own_and_those_without_one_ask() {
    // Four UEs fit into a slot, forty into a period.
    let mut world = World::new(&network(Duplex::Fdd, 42));
    world.run(at(0));
    for ue in 0..42 {
        world.send(Direction::Uplink, ue, 60);
    }
    world.run(at(12));
    let mut places: Vec<_> = uplink(&world).iter().map(|(slot, t)| (*slot, t.first_prb, t.prbs)).collect();
    places.retain(|(.., prbs)| *prbs == 10);
    places.sort_unstable();
    assert_eq!(places, (0..40).map(|n| (n / 4, n as u16 % 4 * 10, 10)).collect::<Vec<_>>());
    world.run(at(100));
    assert_eq!((world.arrivals.len(), requests(&world)), (42, vec![40, 41]));
}

#[test]
fn a_place_that_becomes_free_is_given_to_a_ue_without_one() {
    // One place in each five slots, in the last, and a second cell to which the first UE goes.
    let mut config = network(Duplex::Tdd(Pattern::DDDSU), 3);
    let grant = config.cells[0].mac.configured.as_mut().unwrap();
    (grant.period, grant.prbs) = (5, 25);
    let mut second = config.cells[0];
    (second.site.carrier.downlink_hz, second.site.carrier.uplink_hz) = (3.7e9, 3.7e9);
    config.cells.push(second);
    (config.handover.preparation, config.handover.interruption) = (Span::ZERO, Span::ZERO);
    config.handover.a3 = None;
    // The UE that gets the place has data and has sent a request, or is about to, or has none.
    for packet in (90..=110).chain([151]) {
        let mut world = World::new(&config);
        world.run(at(100));
        world.ran.hand_over(0, 1, at(100), &mut ()).unwrap();
        world.run(at(packet));
        world.send(Direction::Uplink, 1, 100);
        world.run(at(160));
        assert_eq!((world.ran.serving(0), world.ids(Direction::Uplink, 1).len()), (Some(1), 1), "{packet}");
        let before = requests(&world);
        assert!(packet < 110 || before.is_empty(), "{packet}");
        world.run(at(201));
        world.send(Direction::Uplink, 1, 100);
        world.run(at(240));
        // Decoded in slot 205, and delivered at the end of the slot after.
        assert_eq!((world.arrivals.last().unwrap().at, requests(&world)), (at(206), before), "{packet}");
        world.send(Direction::Uplink, 2, 100);
        world.run(at(300));
        assert!(requests(&world).contains(&2), "there is no place for the third");
    }
}

#[test]
fn grants_of_the_old_cell_do_not_take_the_occasions_of_the_new_one() {
    // The first cell grants 16 slots ahead, the second has an occasion in each slot.
    let mut config = network(Duplex::Fdd, 1);
    let mut second = config.cells[0];
    second.mac.configured.as_mut().unwrap().period = 1;
    (second.site.carrier.downlink_hz, second.site.carrier.uplink_hz) = (3.7e9, 3.7e9);
    let first = &mut config.cells[0].mac;
    first.configured = None;
    if let Rat::Nr(nr) = &mut first.rat {
        nr.k2 = 16;
    }
    config.cells.push(second);
    (config.handover.preparation, config.handover.interruption) = (Span::ZERO, Span::ZERO);
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &[0], 200, ms(1000));
    world.ran.hand_over(0, 1, ms(1000), &mut ()).unwrap();
    world.saturate(Direction::Uplink, &[0], 200, ms(1100));
    let connected = world.events.iter().find_map(|(time, event)| match event {
        Event::Mobility { step: Step::Connected { .. }, .. } => Some((*time - at(0)).as_nanos() / SLOT.as_nanos()),
        _ => None,
    });
    let next = uplink(&world).iter().find(|(_, t)| t.cell == 1).map(|(slot, _)| *slot);
    // K2 is 1 there.
    assert_eq!(next, connected.map(|slot| slot + 1));
}

#[test]
fn a_sleeping_ue_uses_its_occasions() {
    let mut config = network(Duplex::Tdd(Pattern::DDDSU), 1);
    let drx = Drx { cycle: Span::from_millis(160), on_duration: Span::from_millis(5), ..Drx::default() };
    config.cells[0].mac.drx = Some(Drx { offset: Some(Span::from_millis(100)), ..drx });
    let mut world = World::new(&config);
    world.run(at(1));
    world.send(Direction::Uplink, 0, 100);
    world.run(at(20));
    assert_eq!(world.arrivals[0].at, at(6));
}

#[test]
fn blocks_with_the_configured_scheme_do_not_adapt_the_link() {
    // The schemes of granted blocks after so many configured ones, at 10 dB.
    let granted = |packets: u64| {
        let mut world = World::new(&network(Duplex::Fdd, 1));
        world.ran.set_sinr(0, Some(10.0), ms(0));
        for n in 0..packets {
            world.run(at(10 * n));
            world.send(Direction::Uplink, 0, 60);
        }
        world.run(at(20_100));
        for _ in 0..200 {
            world.send(Direction::Uplink, 0, 1500);
        }
        world.run(at(20_150));
        let new = |(_, t): &(u64, Transmission)| t.attempt == 1 && t.process >= 2;
        uplink(&world).into_iter().filter(new).map(|(_, t)| t.mcs).take(10).collect::<Vec<_>>()
    };
    let few = granted(1);
    assert_eq!((few.len(), granted(2000)), (10, few));
}

#[test]
fn proportional_fair_counts_configured_grants_as_service() {
    // The first UE has half of the carrier in each slot, unless it is granted the other half.
    let mut config = network(Duplex::Fdd, 2);
    config.cells[0].mac.configured = Some(ConfiguredGrant { period: 1, prbs: 25, mcs: 20, processes: 8, timer: 8 });
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &[0, 1], 300, ms(1500));
    let [first, second] = [0, 1].map(|ue| world.bytes(Direction::Uplink, ue, ms(500)) as f64);
    let used = uplink(&world).iter().filter(|(_, t)| (t.ue, t.prbs, t.mcs) == (0, 25, 20)).count();
    assert!(used > 500 && (first / second - 1.0).abs() < 0.03, "{used} occasions: {first} {second}");
}
