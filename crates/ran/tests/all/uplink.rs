//! How long it takes a UE to be heard, and how it tells what it has.

use crate::support::{TTI, World, am, bearer, each_mac, ms, network, ue, um, us};
use channel::{Bandwidth, Direction, tables::lte as tables};
use ran::{Discipline, Event, MacConfig, Requests};
use units::{Span, Time};

fn world(requests: Requests) -> World {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0)]);
    each_mac(&mut config, |mac| mac.requests = requests);
    World::new(&config)
}

#[test]
fn the_latency_from_idle_is_the_sum_of_its_steps() {
    for period in [5u16, 10, 20, 40] {
        let mut latencies = Vec::new();
        for i in 0..400u64 {
            let mut world = world(Requests { sr_period: period, ..Requests::default() });
            // Arrivals spread evenly over the period.
            let arrival = us(1_000_000 + i * u64::from(period) * 1000 / 400 + 1);
            world.run(arrival);
            world.send(Direction::Uplink, 0, 100);
            world.run(ms(2000));
            assert_eq!(world.arrivals.len(), 1);
            let at = world.arrivals[0].at;
            // Request at the UE's next opportunity (offset 0), 1 ms; decoding and grant 3 ms, on the air 1 ms;
            // UE 3 ms; data 1 ms, decoding 3 ms.
            let opportunity = arrival.as_nanos().div_ceil(u64::from(period) * 1_000_000) * u64::from(period);
            assert_eq!(at, ms(opportunity + 12), "period {period}, arrival {arrival}");
            latencies.push((at - arrival).as_secs_f64() * 1e3);
        }
        latencies.sort_by(f64::total_cmp);
        // Uniform between 12 ms and 12 ms and a period: mean, quantiles.
        let (mean, p) = (latencies.iter().sum::<f64>() / 400.0, f64::from(period));
        assert!((mean - (12.0 + p / 2.0)).abs() < 0.02 * p, "{period}: {mean}");
        for q in [0.1, 0.5, 0.9] {
            let quantile = latencies[(q * 400.0) as usize];
            assert!((quantile - (12.0 + p * q)).abs() < 0.02 * p, "{period}: {q} {quantile}");
        }
    }
}

#[test]
fn an_ideal_uplink_takes_no_request() {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0)]);
    each_mac(&mut config, |mac| *mac = MacConfig::ideal());
    let mut world = World::new(&config);
    world.run(us(100_300));
    world.send(Direction::Uplink, 0, 1400);
    world.run(ms(200));
    assert_eq!(world.arrivals[0].at, ms(101 + 4 + 1), "granted in the next TTI, sent four later, received at its end");
    assert!(
        !world.events.iter().any(|(_, e)| matches!(e, Event::SchedulingRequest { .. } | Event::BufferStatus { .. }))
    );
}

#[test]
fn buffer_levels_are_quantised_as_in_the_table() {
    let mut world = world(Requests { first_grant: 1, ..Requests::default() });
    world.run(us(500));
    for _ in 0..10 {
        world.send(Direction::Uplink, 0, 1000);
    }
    world.run(ms(300));
    let reports: Vec<[u8; 8]> = world
        .events
        .iter()
        .filter_map(|(_, e)| if let Event::BufferStatus { levels, .. } = e { Some(*levels) } else { None })
        .collect();
    // The first grant is one resource block; ten packets of 1000 with two bytes of PDCP each, less what it took, and the
    // headers that the rest will need.
    let [0, 0, 0, level, 0, 0, 0, 0] = reports[0] else { panic!("{reports:?}") };
    let first = u64::from(tables::tbs(26, 1) / 8);
    let (least, most) = (10_020 - first as u32, 10_060);
    assert!((tables::bsr_index(least)..=tables::bsr_index(most)).contains(&level), "{reports:?}");
    assert_eq!(reports.last().copied(), Some([0; 8]), "the last report says that nothing is left");
    assert_eq!(world.arrivals.len(), 10);
}

#[test]
fn levels_are_reported_by_group() {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0)]);
    let mut second = bearer(um());
    second.qci = 1;
    second.group = 1;
    second.filter = ran::Filter::Flows(vec![7]);
    config.ues[0].bearers.push(second);
    each_mac(&mut config, |mac| mac.requests.first_grant = 1);
    let mut world = World::new(&config);
    world.run(us(500));
    for _ in 0..10 {
        world.send_flow(Direction::Uplink, 0, 1000, 0);
        world.send_flow(Direction::Uplink, 0, 1000, 7);
    }
    world.run(ms(300));
    let first = world
        .events
        .iter()
        .find_map(|(_, e)| if let Event::BufferStatus { levels, .. } = e { Some(*levels) } else { None });
    let Some([0, urgent, 0, rest, 0, 0, 0, 0]) = first else { panic!("{first:?}") };
    assert!(urgent > 0 && rest > 0 && urgent <= rest, "{first:?}");
    // The urgent bearer goes first.
    let flows: Vec<u64> = world.arrivals.iter().map(|a| a.packet.flow).collect();
    assert_eq!(flows[..10], [7; 10]);
}

#[test]
fn padding_is_counted_as_waste() {
    let mut world = world(Requests { first_grant: 2000, ..Requests::default() });
    world.run(us(500));
    world.send(Direction::Uplink, 0, 100);
    world.run(ms(100));
    let stats = world.ran.stats(0).uplink;
    assert_eq!(stats.blocks, 1);
    // MAC subheader 1, reports of buffer and power 2 each, RLC 2, PDCP 2, packet 100.
    assert_eq!(stats.padding, stats.bits / 8 - 109, "{stats:?}");
}

#[test]
fn a_grant_is_as_large_as_the_report_asks_for() {
    let mut world = world(Requests { first_grant: 1, ..Requests::default() });
    for i in 0..50 {
        world.run(us(i * 100_000 + 500));
        for _ in 0..2 {
            world.send(Direction::Uplink, 0, 900);
        }
    }
    world.run(ms(6000));
    let stats = world.ran.stats(0).uplink;
    assert_eq!(stats.blocks, 100, "one grant to hear what there is, one for all of it");
    let bytes = |prbs| tables::tbs(26, prbs) / 8;
    // Of a block of one resource block, reports of buffer and power take 2 bytes each, the MAC subheader 1, and RLC 2.
    let left = 2 * 902 - (bytes(1) - 7);
    // For what is left and its 5 bytes of headers, the UE reports a level, which is up to 17 % more. A grant has a number of
    // resource blocks without prime factors above 5.
    let level = tables::bsr_bytes(tables::bsr_index(left + 5));
    let sizes = [1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24, 25, 27, 30, 32, 36, 40, 45, 48, 50];
    let large = sizes.map(bytes).into_iter().find(|bytes| *bytes >= level).expect("it fits");
    assert_eq!(stats.bits, 50 * 8 * u64::from(bytes(1) + large));
    // A report of the buffer, the MAC subheader, RLC and the length of the first packet.
    assert_eq!(stats.padding, 50 * u64::from(large - (left + 2 + 1 + 2 + 2)));
}

#[test]
fn a_request_that_goes_unanswered_is_repeated_and_then_random_access_follows() {
    // The near UE has the better channel and never stops: the far one gets no grant.
    let mut config = network(Bandwidth::Mhz5, vec![ue(um(), 60.0), ue(um(), 130.0)]);
    config.cells[0].uplink = Discipline::MaxThroughput;
    each_mac(&mut config, |mac| {
        mac.requests =
            Requests { sr_period: 5, sr_prohibit: 2, sr_maximum: 4, bsr_periodic: Some(TTI), ..Requests::default() }
    });
    let mut world = World::new(&config);
    world.saturate(Direction::Uplink, &[0], 300, ms(100));
    world.send(Direction::Uplink, 1, 1000);
    world.saturate(Direction::Uplink, &[0], 300, ms(400));
    let requests: Vec<Time> = world
        .events
        .iter()
        .filter(|(_, e)| matches!(e, Event::SchedulingRequest { ue: 1 }))
        .map(|(at, _)| *at)
        .collect();
    let stats = world.ran.stats(1);
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert!(requests.windows(2).all(|w| w[1] - w[0] == Span::from_millis(10)), "the prohibit timer: {requests:?}");
    assert_eq!((stats.random_accesses, stats.uplink.blocks), (1, 0));
    world.run(ms(2000));
    assert_eq!(world.bytes(Direction::Uplink, 1, Time::ZERO), 1000, "its turn comes when the near one rests");
}

#[test]
fn a_ue_that_was_forgotten_asks_again_when_its_timer_ends() {
    // Data that the last report did not tell of comes after it: the follow-up grant or retxBSR has to find it.
    let mut config = network(Bandwidth::Mhz10, vec![ue(am(), 60.0)]);
    each_mac(&mut config, |mac| mac.requests.bsr_periodic = None);
    let mut world = World::new(&config);
    for i in 0..3000u64 {
        world.run(us(i * 731));
        world.send(Direction::Uplink, 0, 200 + (i as u32 * 7919) % 1300);
    }
    world.run(ms(4000));
    assert_eq!(world.arrivals.len(), 3000);
    assert_eq!(world.ran.held(), 0);
}

#[test]
fn the_modem_takes_packets_while_it_has_room_and_the_host_holds_and_drops_the_others() {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0)]);
    config.ues[0].host.room.bytes = Some(20_000);
    config.ues[0].host.gate.queue = aqm::Config::PfifoFast(aqm::pfifo_fast::Config { packets: 30 });
    let mut world = World::new(&config);
    world.run(us(500));
    for _ in 0..60 {
        world.send(Direction::Uplink, 0, 1000);
    }
    assert_eq!(world.ran.rlc_backlog(0, Direction::Uplink).packets, 20);
    assert_eq!(world.ran.above_backlog(0, Direction::Uplink).packets, 30);
    assert_eq!(world.drops.len(), 10);
    world.run(ms(500));
    assert_eq!(world.arrivals.len(), 50);
    assert!(world.ids(Direction::Uplink, 0).is_sorted());
}

#[test]
fn a_packet_that_waits_too_long_for_a_grant_is_discarded_on_time() {
    let mut config = network(Bandwidth::Mhz10, vec![ue(um(), 60.0)]);
    config.ues[0].bearers[0].rlc.uplink.discard = Some(Span::from_millis(50));
    each_mac(&mut config, |mac| mac.requests.sr_period = 80);
    let mut world = World::new(&config);
    world.run(ms(7));
    world.send(Direction::Uplink, 0, 1400);
    world.run(ms(56));
    assert_eq!((world.drops.len(), world.ran.held()), (0, 1));
    world.run(ms(57));
    assert_eq!((world.drops.len(), world.ran.held()), (1, 0));
    world.run(ms(300));
    assert_eq!(world.ran.poll_timeout(), None);
}
