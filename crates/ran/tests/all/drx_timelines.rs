//! Timelines of UEs with discontinuous reception, worked by hand from 36.321 5.7 and 38.321 5.7.

use crate::support::{World, each_mac, ms, network, ue, um};
use channel::tables::nr::Numerology;
use channel::{Bandwidth, Carrier, Direction, Site};
use ran::rlc::{Mode, NrUm};
use ran::{CellConfig, Config, Drx, Duplex, Event, MacConfig, Nr, Pattern, Rat, Requests, ShortCycle, Transmission};
use units::{Span, Time};

/// A packet that arrives this much before a slot may be sent in it.
const EARLY: Span = Span::from_nanos(1);
const MS: Span = Span::from_millis(1);

fn lte_of(drx: Drx) -> Config {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0)]);
    each_mac(&mut config, |mac| {
        mac.requests = Requests { sr_period: 5, sr_prohibit: 7, ..Requests::default() };
        mac.drx = Some(drx);
    });
    config
}

/// Two TTIs from 10 on of 40, and `inactivity` TTIs after a block.
fn listens(inactivity: u64) -> Drx {
    Drx {
        on_duration: MS * 2,
        inactivity: MS * inactivity,
        cycle: MS * 40,
        offset: Some(MS * 10),
        retransmission: 4,
        ..Drx::default()
    }
}

fn lte(drx: Drx) -> World {
    World::new(&lte_of(drx))
}

fn sent(world: &World, direction: Direction) -> Vec<Transmission> {
    let of = |(_, event): &(Time, Event)| match event {
        Event::Transmission(t) if t.direction == direction => Some(*t),
        _ => None,
    };
    world.events.iter().filter_map(of).collect()
}

/// The milliseconds in which blocks are sent in a direction.
fn ttis(world: &World, direction: Direction) -> Vec<u64> {
    let of = |(time, event): &(Time, Event)| match event {
        Event::Transmission(t) if t.direction == direction => Some(time.as_nanos() / 1_000_000),
        _ => None,
    };
    world.events.iter().filter_map(of).collect()
}

/// Sends a packet just before each of these milliseconds, and runs on.
fn play(world: &mut World, packets: &[(u64, Direction)], end: u64) {
    for (at, direction) in packets {
        world.run(ms(*at) - EARLY);
        world.send(*direction, 0, 100);
    }
    world.run(ms(end));
}

/// The TTIs of the downlink if packets arrive at these times.
fn downlink(drx: Drx, packets: &[u64]) -> Vec<u64> {
    let mut world = lte(drx);
    let packets: Vec<_> = packets.iter().map(|at| (*at, Direction::Downlink)).collect();
    play(&mut world, &packets, 2000);
    assert_eq!(world.arrivals.len(), packets.len());
    ttis(&world, Direction::Downlink)
}

#[test]
fn a_sleeping_ue_is_served_in_its_next_on_duration() {
    // On-durations begin in 10, 50, ... 1010, 1050.
    let served = [1000, 1010, 1011, 1012, 1049].map(|at| downlink(listens(0), &[at])[0]);
    assert_eq!(served, [1010, 1010, 1011, 1050, 1050]);
    let mut world = lte(listens(0));
    play(&mut world, &[(1000, Direction::Downlink)], 1100);
    assert_eq!(world.arrivals[0].at, ms(1010 + 1 + 3), "a TTI on the air, three to decode");
}

#[test]
fn inactivity_keeps_it_awake() {
    // Sent in 1010, after which it listens in 1011 to 1015; from 1015 on, in 1016 to 1020.
    assert_eq!(downlink(listens(5), &[1000, 1015, 1020]), [1010, 1015, 1020]);
    assert_eq!(downlink(listens(5), &[1000, 1016]), [1010, 1050]);
    assert_eq!(downlink(listens(5), &[1000, 1015, 1021]), [1010, 1015, 1050]);
}

#[test]
fn a_retransmission_comes_after_eight_ttis_while_its_timer_runs() {
    let mut config = lte_of(Drx { on_duration: MS, ..listens(1) });
    each_mac(&mut config, |mac| mac.transmissions = 4);
    let mut world = World::new(&config);
    world.run(ms(1005));
    world.ran.set_sinr(0, Some(-30.0), ms(1005));
    world.send(Direction::Downlink, 0, 100);
    // Sent in 1010 and not decoded: the timer of four runs from 1018 on, and from 1026 on. It sleeps before, between and
    // after them.
    world.run(ms(1020));
    world.ran.set_sinr(0, Some(30.0), ms(1020));
    world.send(Direction::Downlink, 0, 100);
    world.run(ms(2000));
    let attempts: Vec<_> = sent(&world, Direction::Downlink).iter().map(|t| (t.attempt, t.decoded)).collect();
    assert_eq!(attempts, [(1, false), (2, false), (3, true), (1, true)]);
    // The second packet is served in none of these TTIs. In 1050 the cell knows the channel of 1010, out of range: the
    // report of 1050 arrives in 1056, when the UE sleeps.
    assert_eq!(ttis(&world, Direction::Downlink), [1010, 1018, 1026, 1090]);
}

#[test]
fn the_short_cycle_is_used_for_a_while_after_inactivity() {
    let drx = Drx {
        on_duration: MS,
        cycle: MS * 80,
        offset: Some(Span::ZERO),
        short: Some(ShortCycle { cycle: MS * 10, count: 3 }),
        ..listens(2)
    };
    // Sent in 1040, inactivity in 1041 and 1042, the short cycle from 1043 to 1072: on-durations in 1050, 1060, 1070 and
    // then 1120.
    let second = [1043, 1051, 1061, 1071].map(|at| downlink(drx, &[975, at])[1]);
    assert_eq!(second, [1050, 1060, 1070, 1120]);
    // A block in 1070 restarts it: inactivity until 1072, the short cycle from 1073 to 1102.
    assert_eq!(downlink(drx, &[975, 1065, 1091]), [1040, 1070, 1100]);
    assert_eq!(downlink(drx, &[975, 1065, 1101]), [1040, 1070, 1120]);
}

#[test]
fn an_on_duration_of_the_short_cycle_outlasts_it() {
    let drx = Drx {
        on_duration: MS * 6,
        cycle: MS * 80,
        offset: Some(Span::ZERO),
        short: Some(ShortCycle { cycle: MS * 10, count: 1 }),
        ..listens(5)
    };
    // Sent in 1040, inactivity until 1045, the short cycle from 1046 to 1055: the on-duration of 1050 lasts until 1055.
    // A block in 1055 is followed by inactivity until 1060, and the short cycle from 1061 to 1070: its on-duration begins
    // in 1070 and lasts until 1075. A block in 1070 leads to another one from 1080 to 1085.
    assert_eq!(downlink(drx, &[975, 1055, 1061, 1085]), [1040, 1055, 1070, 1085]);
    assert_eq!(downlink(drx, &[975, 1055, 1061, 1086]), [1040, 1055, 1070, 1120]);
}

#[test]
fn uplink_data_does_not_wait_for_the_on_duration() {
    let mut world = lte(listens(1));
    play(&mut world, &[(1013, Direction::Uplink)], 1100);
    // Request in 1015, grant in 1019, data in 1023: as without DRX.
    assert_eq!(ttis(&world, Direction::Uplink), [1023]);
    assert_eq!(world.arrivals[0].at, ms(1023 + 1 + 3));
}

#[test]
fn a_request_wakes_the_downlink_once_the_cell_has_it() {
    let beside = |at| {
        let mut world = lte(listens(1));
        play(&mut world, &[(1013, Direction::Uplink), (at, Direction::Downlink)], 1100);
        ttis(&world, Direction::Downlink)[0]
    };
    // The request of 1015 is known in 1019 and pending until the report goes in 1023. In 1027 the block is acknowledged,
    // and its repetition could be granted.
    let served = [1014, 1016, 1019, 1020, 1022, 1023, 1026, 1027, 1028].map(beside);
    assert_eq!(served, [1019, 1019, 1019, 1020, 1022, 1027, 1027, 1027, 1050]);
}

#[test]
fn a_grant_restarts_inactivity() {
    let mut world = lte(listens(12));
    play(&mut world, &[(1013, Direction::Uplink), (1031, Direction::Downlink)], 1100);
    // Granted in 1019: it listens until 1031.
    assert_eq!(ttis(&world, Direction::Downlink), [1031]);
    let mut world = lte(listens(12));
    play(&mut world, &[(1013, Direction::Uplink), (1032, Direction::Downlink)], 1100);
    assert_eq!(ttis(&world, Direction::Downlink), [1050]);
}

#[test]
fn random_access_wakes_it() {
    let mut config = lte_of(listens(1));
    each_mac(&mut config, |mac| {
        mac.requests.sr_maximum = 1;
        mac.requests.random_access = MS * 12;
    });
    let mut world = World::new(&config);
    // The uplink is out of reach for the request's answer: a grant in 1019 for 1023, and so on, is not decoded.
    world.run(ms(1013));
    world.ran.set_sinr(0, Some(-30.0), ms(1013));
    world.send(Direction::Uplink, 0, 100);
    world.run(ms(1024));
    world.ran.set_sinr(0, Some(30.0), ms(1024));
    world.run(ms(1100));
    assert_eq!(world.arrivals.len(), 1);
    assert!(ttis(&world, Direction::Uplink)[0] < 1050, "{:?}", ttis(&world, Direction::Uplink));
}

#[test]
fn a_handover_waits_for_the_on_duration_and_ends_in_an_active_time() {
    let mut config = lte_of(listens(1));
    config.cells.push(config.cells[0]);
    config.ues[0].cell = Some(0);
    // The target's cycles begin ten TTIs later.
    config.cells[1].mac.drx = Some(Drx { offset: Some(MS * 20), ..listens(1) });
    let mut world = World::new(&config);
    world.run(ms(1003));
    world.ran.hand_over(0, 1, ms(1003), &mut ()).unwrap();
    // The command is ready in 1033, sent in 1050, and received in 1054; 30 ms later the target serves the UE.
    world.run(ms(1070));
    world.send(Direction::Downlink, 0, 100);
    world.run(ms(1100));
    let of = |(time, event): &(Time, Event)| match event {
        Event::Mobility { step, .. } => Some((time.as_nanos() / 1_000_000, *step)),
        _ => None,
    };
    let steps: Vec<_> = world.events.iter().filter_map(of).map(|(at, step)| (at, format!("{step:?}"))).collect();
    assert_eq!(steps.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1054, 1084], "{steps:?}");
    // It listens until its first block: the packet goes at once, outside the on-durations of 1060 and 1100.
    // The confirmation is granted there too. It is acknowledged four TTIs later, when RLC's answer can go.
    assert_eq!(ttis(&world, Direction::Uplink)[0], 1088);
    assert_eq!(ttis(&world, Direction::Downlink), [1050, 1084, 1092]);
    // Packets wait for the target's cycle.
    world.run(ms(1105));
    world.send(Direction::Downlink, 0, 100);
    world.run(ms(1200));
    assert_eq!(ttis(&world, Direction::Downlink)[3..], [1140]);
}

#[test]
fn reports_are_of_the_time_in_which_it_listens() {
    let mut world = lte(Drx { on_duration: MS * 10, ..listens(0) });
    let cqi = |world: &World| sent(world, Direction::Downlink).last().unwrap().cqi;
    world.ran.set_sinr(0, Some(0.0), ms(0));
    // Reports in 970, 975 and 1010, 1015, each of which the cell has six TTIs later.
    world.run(ms(980));
    world.ran.set_sinr(0, Some(20.0), ms(980));
    for (at, is_old) in [(1010, true), (1015, true), (1016, false)] {
        world.run(ms(at) - EARLY);
        world.send(Direction::Downlink, 0, 100);
        world.run(ms(at));
        assert_eq!(cqi(&world) < 8, is_old, "{at}: {}", cqi(&world));
    }
}

#[test]
fn an_idle_ue_sleeps_all_but_its_on_durations_without_any_work() {
    let mut config = lte_of(listens(5));
    config.ues = vec![config.ues[0].clone(); 100];
    let mut world = World::new(&config);
    world.run(ms(100_000));
    assert_eq!((world.ran.work(), world.ran.poll_timeout()), (0, None));
    assert_eq!(world.ran.time_asleep(0, ms(100_000)), MS * 95_000);
    world.send(Direction::Downlink, 0, 100);
    world.run(ms(101_000));
    // On-durations of two TTIs, and after 100,010 five more of inactivity, of which the first is in the on-duration.
    assert_eq!(world.ran.time_asleep(0, ms(101_000)), MS * (95_000 + 950 - 4));
    assert!(world.ran.work() < 20, "{}", world.ran.work());
}

#[test]
fn ues_are_spread_over_the_cycle() {
    let mut config = lte_of(Drx { offset: None, cycle: MS * 320, on_duration: MS * 2, ..listens(0) });
    config.ues = vec![config.ues[0].clone(); 32];
    let mut world = World::new(&config);
    world.run(ms(1000));
    for ue in 0..32 {
        world.send(Direction::Downlink, ue, 100);
    }
    world.run(ms(1400));
    let mut served = ttis(&world, Direction::Downlink);
    served.sort_unstable();
    assert_eq!(served.len(), 32);
    assert!(served.windows(2).all(|pair| pair[1] - pair[0] <= 20), "{served:?}");
}

/// DDDSU at 120 kHz: slots of 125 us, of which 5 are a pattern and 80 a cycle; decoding takes one.
fn nr(drx: Drx) -> World {
    let nr = Nr::new(Numerology::Khz120, Duplex::Tdd(Pattern::DDDSU));
    let carrier = Carrier { downlink_hz: 28e9, uplink_hz: 28e9, prbs: 132, subcarrier_hz: 120_000 };
    let mac = MacConfig {
        rat: Rat::Nr(nr),
        decoding: Rat::Nr(nr).slot(),
        requests: Requests { sr_period: 1, sr_prohibit: 7, ..Requests::default() },
        drx: Some(drx),
        ..MacConfig::default()
    };
    let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
    let mut one = ue(um(), 50.0);
    one.bearers[0].nr = Some(Mode::NrUm(NrUm::default()));
    World::new(&Config { cells: vec![cell], ues: vec![one], ..Config::default() })
}

/// Five slots of 80, nothing after a block, and retransmission timers of four slots a slot after feedback or data.
fn brief() -> Drx {
    Drx {
        on_duration: Span::from_micros(625),
        inactivity: Span::ZERO,
        cycle: MS * 10,
        offset: Some(Span::ZERO),
        short: None,
        retransmission: 4,
        uplink_retransmission: 4,
        harq_rtt: 14,
        uplink_harq_rtt: 14,
    }
}

/// The beginning of slot `slot` after the 8000th, with which a cycle begins.
fn at(slot: u64) -> Time {
    Time::ZERO + Span::from_micros(125) * (8000 + slot)
}

fn slots(world: &World, direction: Direction) -> Vec<u64> {
    let of = |(time, event): &(Time, Event)| match event {
        Event::Transmission(t) if t.direction == direction && *time >= at(0) => Some(time.as_nanos() / 125_000 - 8000),
        _ => None,
    };
    world.events.iter().filter_map(of).collect()
}

#[test]
fn nr_serves_a_sleeping_ue_in_downlink_slots_of_its_on_duration() {
    let served = |drx: Drx, packets: &[u64]| {
        let mut world = nr(drx);
        for slot in packets {
            world.run(at(*slot) - EARLY);
            world.send(Direction::Downlink, 0, 100);
        }
        world.run(at(800));
        slots(&world, Direction::Downlink)
    };
    // Slots 0 to 3 of the on-duration have downlink, slot 4 does not.
    let from = |slot| served(brief(), &[slot])[0];
    assert_eq!([0, 3, 4, 5, 79, 80].map(from), [0, 3, 80, 80, 80, 80]);
    // A millisecond of inactivity after slot 3: slots 4 to 11. Slots 9 and 4 of it have no downlink.
    let longer = Drx { inactivity: MS, ..brief() };
    assert_eq!(served(longer, &[3, 11]), [3, 11]);
    assert_eq!(served(longer, &[3, 12]), [3, 80]);
}

#[test]
fn nr_repeats_a_downlink_block_after_its_feedback_and_harq_rtt() {
    let repeated = |drx: Drx| {
        let mut world = nr(drx);
        world.run(at(10));
        world.ran.set_sinr(0, Some(-30.0), at(10));
        world.send(Direction::Downlink, 0, 100);
        world.run(at(81));
        world.ran.set_sinr(0, Some(30.0), at(81));
        world.run(at(400));
        slots(&world, Direction::Downlink)
    };
    // Sent in 80 and acknowledged in 83, which the cell knows in 85. A slot of HARQ RTT after 83, it listens from 85 on.
    assert_eq!(repeated(brief()), [80, 85]);
    // With four slots, from 88 on; without a timer, in the next on-duration.
    assert_eq!(repeated(Drx { harq_rtt: 56, ..brief() }), [80, 88]);
    assert_eq!(repeated(Drx { harq_rtt: 43, ..brief() }), [80, 88], "43 symbols end in the fourth slot");
    assert_eq!(repeated(Drx { retransmission: 0, ..brief() }), [80, 160]);
}

#[test]
fn nr_uplink_data_wakes_it_and_each_block_is_followed_by_time_to_repeat_it() {
    let beside = |slot| {
        let mut world = nr(brief());
        world.run(at(20));
        world.send(Direction::Uplink, 0, 100);
        world.run(at(slot) - EARLY);
        world.send(Direction::Downlink, 0, 100);
        world.run(at(400));
        assert_eq!(slots(&world, Direction::Uplink), [29]);
        slots(&world, Direction::Downlink)[0]
    };
    // Request in 23, known in 25, granted in 26 for 29. The report ends the request; from 31 to 34 a repetition could be
    // granted, although the block is decoded in 31.
    let served = [21, 23, 25, 27, 28, 29, 30, 31, 32, 33, 34, 35].map(beside);
    assert_eq!(served, [25, 25, 25, 27, 28, 31, 31, 31, 32, 33, 80, 80]);
}

#[test]
fn nr_grants_the_repetition_of_an_uplink_block_while_its_timer_runs() {
    let repeated = |drx: Drx| {
        let mut world = nr(drx);
        world.run(at(20));
        world.send(Direction::Uplink, 0, 100);
        world.run(at(28));
        world.ran.set_sinr(0, Some(-30.0), at(28));
        world.run(at(30));
        world.ran.set_sinr(0, Some(30.0), at(30));
        world.run(at(400));
        slots(&world, Direction::Uplink)
    };
    // Sent in 29, known to have failed in 31, in which 34 is granted.
    assert_eq!(repeated(brief()), [29, 34]);
    // It listens from 34 on: slot 36 grants 39.
    assert_eq!(repeated(Drx { uplink_harq_rtt: 56, ..brief() }), [29, 39]);
    // In the on-duration from 80 on: slot 81 grants 84.
    assert_eq!(repeated(Drx { uplink_retransmission: 0, ..brief() }), [29, 84]);
}

/// A slot to repeat each block, a slot after it. The report in 29 is known in 31, which grants the rest for 34; until then, it
/// sleeps again.
#[test]
fn nr_listens_after_a_block_that_it_has_sent_between_two_active_times() {
    let beside = |slot| {
        let mut world = nr(Drx { uplink_retransmission: 1, ..brief() });
        world.run(at(20));
        world.send(Direction::Uplink, 0, 3000);
        world.run(at(slot) - EARLY);
        world.send(Direction::Downlink, 0, 100);
        world.run(at(400));
        assert_eq!(slots(&world, Direction::Uplink), [29, 34]);
        slots(&world, Direction::Downlink)[0]
    };
    assert_eq!([31, 32, 33, 34, 36, 37].map(beside), [31, 36, 36, 36, 36, 80]);
}
