//! Links: exact service, what the wire does, and conservation.

mod common;

use aqm::{DropReason, drop_tail};
use bolero::check;
use common::{Driver, at, ms, no_drops, random, rate, tiny_trace};
use link::{Config, Delay, Delays, Jitter, Link, Loss, Reordering, Schedule, Service, Sharing};
use std::sync::Arc;
use testkit::queue::{Op, TestPacket};
use units::{Bytes, Rate, Span, Time};

#[test]
fn a_busy_link_is_exact_to_the_nanosecond_over_a_million_packets() {
    // 7 Mbit/s: 1500 bytes take 1714285.714... ns.
    let rate_7 = Rate::from_mbps(7);
    let mut link = Link::new(Config { service: rate(7_000_000), ..Config::default() }, random(1));
    let mut now = ms(3);
    let start = now;
    let mut expected_bytes = 0;
    for id in 0..1_000_000u64 {
        let len = if id % 3 == 0 { 1500 } else { 40 + (id % 7) as u32 };
        link.handle_packet(TestPacket::new(id, 0, len), now, &mut no_drops);
        if id % 2 == 1 {
            // Two packets were handed over; both leave before the next two come.
            for before in [id - 1, id] {
                let due = link.poll_timeout().unwrap();
                let len = if before % 3 == 0 { 1500 } else { 40 + before % 7 };
                expected_bytes += len;
                assert_eq!(due, start + rate_7.time_for(Bytes::new(expected_bytes)), "packet {before}");
                link.handle_timeout(due, &mut no_drops);
                assert_eq!(link.poll_delivery(due).unwrap().id, before);
                now = due;
            }
        }
    }
}

#[test]
fn an_idle_link_serves_at_once_and_asks_for_one_wake_up() {
    let config = Config { service: rate(12_000_000), delay: Span::from_millis(20).into(), ..Config::default() };
    let driver = Driver::new(config).run((0..100).map(|n| (ms(n * 10), 1500)));
    assert_eq!(driver.times(), (0..100).map(|n| ms(n * 10 + 21)).collect::<Vec<_>>());
    assert_eq!(driver.wake_ups, 100);
}

/// A delay that changes: times and delays in microseconds.
fn varying(steps: &[(u64, u64)]) -> Delay {
    let micros = |&(at, delay): &(u64, u64)| (Span::from_micros(at), Span::from_micros(delay));
    let delays = Delays::steps(steps.iter().map(micros).collect()).expect("they are in order");
    Delay::Varying { delays: Arc::new(delays), offset: Span::ZERO }
}

#[test]
fn a_delay_is_that_of_the_moment_at_which_a_packet_has_been_served_and_order_is_kept() {
    // A packet is served in 1 ms. The third one would overtake the second, and arrives with it.
    let delay = varying(&[(0, 20_000), (1_500, 40_000), (3_000, 10_000), (60_000, 30_000)]);
    let config = Config { service: rate(12_000_000), delay, ..Config::default() };
    let driver = Driver::new(config)
        .run([(0, 1500), (0, 1500), (2, 1500), (30, 1500), (70, 1500)].map(|(at, len)| (ms(at), len)));
    assert_eq!(driver.times(), [21, 42, 42, 42, 101].map(ms));
    assert_eq!(driver.delivered.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_queue_that_loses_nothing_when_served_costs_one_wake_up_a_packet() {
    let config = Config { service: rate(12_000_000), delay: Span::from_millis(20).into(), ..Config::default() };
    let driver = Driver::new(config).run((0..100).map(|_| (ms(0), 1500)));
    assert_eq!(driver.times(), (0..100).map(|n| ms(n + 21)).collect::<Vec<_>>());
    assert_eq!(driver.wake_ups, 100);
}

#[test]
fn a_control_law_acts_on_time_for_two_wake_ups_a_packet() {
    let queue = aqm::Config::Codel(aqm::codel::Config::default());
    let config =
        Config { queue, service: rate(12_000_000), delay: Span::from_micros(20_500).into(), ..Config::default() };
    let driver = Driver::new(config).run((0..100).map(|_| (ms(0), 1500)));
    assert_eq!(driver.delivered.len(), 100);
    assert!((190..=200).contains(&driver.wake_ups), "{} wake-ups", driver.wake_ups);
}

#[test]
fn the_backlog_is_that_of_the_time_asked_for_without_a_wake_up() {
    let config = Config { service: rate(12_000_000), delay: Span::from_secs(1).into(), ..Config::default() };
    let mut link = Link::new(config, random(1));
    for id in 0..10 {
        link.handle_packet(TestPacket::new(id, 0, 1500), ms(0), &mut no_drops);
    }
    assert_eq!(link.poll_timeout(), Some(ms(1001)));
    assert_eq!(link.backlog(ms(0)).packets, 9);
    assert_eq!(link.backlog(at(3_999_999)).packets, 6);
    assert_eq!(link.backlog(ms(4)).packets, 5);
    let stats = link.stats(ms(100));
    assert_eq!(stats.served.packets, 10);
    assert_eq!(stats.total_sojourn, Span::from_millis(45));
    let mut longest = |at| link.take_longest_sojourn(at);
    assert_eq!([longest(ms(100)), longest(ms(100))], [Span::from_millis(9), Span::ZERO]);
    assert_eq!(link.in_flight(), 10);
}

#[test]
fn the_packet_in_service_does_not_count_against_the_limit() {
    let queue = aqm::Config::DropTail(drop_tail::Config { packets: Some(2), ..Default::default() });
    let driver = Driver::new(Config { queue, service: rate(12_000_000), ..Config::default() }).run([
        (ms(0), 1500),
        (ms(0), 1500),
        (ms(0), 1500),
        (ms(0), 1500),
        // The second packet begins its service at 1 ms, before this one asks for its place.
        (ms(1), 1500),
    ]);
    assert_eq!(driver.lost, [(3, DropReason::Overflow)]);
    assert_eq!(driver.delivered.last(), Some(&(ms(4), 4)));
}

#[test]
fn framing_costs_time_but_no_room() {
    let queue = aqm::Config::DropTail(drop_tail::Config { bytes: Some(Bytes::new(1000)), ..Default::default() });
    let config = Config { queue, service: rate(8_000_000), overhead: 38, ..Config::default() };
    let driver = Driver::new(config).run([(ms(0), 1000), (ms(0), 1000)]);
    assert_eq!(driver.times(), [at(1_038_000), at(2_076_000)]);
}

#[test]
fn an_infinite_rate_passes_the_queue_by() {
    let queue = aqm::Config::DropTail(drop_tail::Config { packets: Some(1), ..Default::default() });
    let config = Config { queue, delay: Span::from_millis(5).into(), ..Config::default() };
    let driver = Driver::new(config).run((0..50).map(|_| (ms(1), 1500)));
    assert_eq!(driver.times(), [ms(6); 50]);
}

#[test]
fn a_packet_in_service_finishes_at_the_new_rate() {
    // 1500 bytes: half of them in 1 ms at 6 Mbit/s, the rest at 12 in 0.5 ms; the next at 12, then 3 Mbit/s.
    let changes = vec![(ms(1), Rate::from_mbps(12)), (ms(2), Rate::from_mbps(3))];
    let schedule = Schedule::new(Rate::from_mbps(6), changes).unwrap();
    let driver = Driver::new(Config { service: Service::Rate(schedule), ..Config::default() }).run([
        (ms(0), 1500),
        (ms(0), 1500),
        (ms(50), 1500),
    ]);
    assert_eq!(driver.times(), [at(1_500_000), ms(4), ms(54)]);
}

#[test]
fn an_outage_holds_the_packet_in_service() {
    let changes = vec![(ms(1), Rate::from_mbps(0)), (ms(100), Rate::from_mbps(12)), (ms(101), Rate::from_mbps(0))];
    let schedule = Schedule::new(Rate::from_mbps(6), changes).unwrap();
    let mut driver = Driver::new(Config { service: Service::Rate(schedule), ..Config::default() });
    driver = driver.run([(ms(0), 1500), (ms(0), 1500), (ms(200), 1500)]);
    // The second packet has half of its bytes left when the last rate ends, and never leaves.
    assert_eq!(driver.times(), [at(100_500_000)]);
    assert_eq!((driver.link.in_flight(), driver.link.backlog(ms(300)).packets), (1, 1));
    assert_eq!(driver.link.poll_timeout(), None);
}

#[test]
fn a_packet_that_ends_when_an_outage_begins_gets_through() {
    // 1714285.71 ns at 7 Mbit/s: the last bit leaves within the last nanosecond before the outage.
    let schedule = Schedule::new(Rate::from_mbps(7), vec![(at(1_714_286), Rate::from_mbps(0))]).unwrap();
    let driver = Driver::new(Config { service: Service::Rate(schedule), ..Config::default() }).run([(ms(0), 1500)]);
    assert_eq!(driver.times(), [at(1_714_286)]);
}

#[test]
fn a_flow_is_new_again_after_the_link_was_idle() {
    let queue = aqm::Config::Fq(aqm::fq::Config::default());
    // Whether it was called when it asked for it, or only when the next packet comes.
    for is_called in [false, true] {
        let mut link = Link::new(Config { queue, service: rate(12_000_000), ..Config::default() }, random(1));
        let mut order = Vec::new();
        let mut call = |link: &mut Link<TestPacket>, end| {
            while let Some(now) = link.poll_timeout().filter(|now| *now <= end) {
                link.handle_timeout(now, &mut no_drops);
                order.extend(link.poll_delivery(now).map(|packet| packet.flow));
            }
        };
        // Flow 1 waits once behind flow 0. After the idle time flow 2 waits first, then flow 1.
        for (id, (time, flow)) in [(0, 0), (0, 1), (50, 3), (50, 2), (50, 1)].into_iter().enumerate() {
            if is_called {
                call(&mut link, ms(time));
            }
            link.handle_packet(TestPacket::new(id as u64, flow, 1000), ms(time), &mut no_drops);
        }
        call(&mut link, Time::MAX);
        assert_eq!(order, [0, 1, 3, 2, 1], "called {is_called}");
    }
}

#[test]
fn rate_changes_out_of_order_are_refused() {
    let changes = vec![(ms(1), Rate::from_mbps(1)), (ms(3), Rate::from_mbps(1)), (ms(3), Rate::from_mbps(2))];
    let error = Schedule::new(Rate::from_mbps(1), changes).unwrap_err();
    assert_eq!(error.to_string(), "rate change 3 is not later than the one before it");
}

#[test]
fn many_rate_changes_deliver_their_integral() {
    // The rate steps through 1..=10 Mbit/s every 700 us; 55 Mbit/s over a round of 7 ms.
    let changes = (1..5000).map(|n| (at(n * 700_000), Rate::from_mbps(n % 10 + 1))).collect();
    let schedule = Schedule::new(Rate::from_mbps(1), changes).unwrap();
    let driver = Driver::new(Config { service: Service::Rate(schedule), ..Config::default() })
        .run((0..1000).map(|_| (ms(0), 1211)));
    // 1 ns each of 10 Mbit/s is 0.01 bit: the work of 500 rounds, counted directly in units of 1e-9 bit.
    let mut work = 0;
    let mut expected = Vec::new();
    let mut step = 0u64;
    while expected.len() < 1000 {
        let rate = (step % 10 + 1) * 1_000_000;
        let end = work + rate * 700_000;
        while expected.len() < 1000 {
            let target = (expected.len() as u64 + 1) * 1211 * 8_000_000_000;
            if target > end {
                break;
            }
            expected.push(at(step * 700_000 + (target - work).div_ceil(rate)));
        }
        work = end;
        step += 1;
    }
    assert_eq!(driver.times(), expected);
}

#[test]
fn whole_opportunities_serve_one_packet_each_and_begin_again_at_the_end() {
    // The opportunity at 0 is gone when packets arrive at 0. Rounds of 5 ms: 2, 2, 5, then 5 (0), 7, 7, 10.
    let service = tiny_trace(Sharing::Packets);
    let mut driver = Driver::new(Config { service, ..Config::default() }).run([
        (ms(0), 100),
        (ms(0), 1500),
        (ms(0), 40),
        (ms(0), 1500),
        (ms(0), 3001),
        (ms(1), 100),
        (ms(14), 1),
    ]);
    // The packet of 3001 bytes takes the opportunities at 7, 7 and 10.
    let expected = [2, 2, 5, 5, 10, 10, 15].map(ms);
    assert_eq!(driver.times(), expected);
    // Gone: 0; 1400 of 100, 1460 of 40, 1499 of 3001, 1400 of 100; 12 and 12; 1499 of 1; the second at 15.
    let wasted = 1500 + 1400 + 1460 + 1499 + 1400 + 3000 + 1499 + 1500;
    let stats = driver.link.stats(ms(15));
    assert_eq!(stats.wasted, wasted);
    // Service begins at 2, 2, 5, 5, 7, 10 and 15.
    assert_eq!(stats.total_sojourn, Span::from_millis(2 + 2 + 5 + 5 + 7 + (10 - 1) + (15 - 14)));
}

#[test]
fn bytewise_service_shares_and_carries_over_as_mahimahi_does() {
    let service = tiny_trace(Sharing::Bytes);
    let mut driver = Driver::new(Config { service, ..Config::default() }).run([
        (at(1), 1000), // 2 ms, first: 500 bytes left
        (at(1), 600),  // 100 bytes go on in the second at 2 ms: 1400 left
        (at(1), 1400), // uses them up
        (at(1), 1400), // 5 ms: 100 left
        (at(1), 3100), // those, and both of 5 (0) and 7
        (at(1), 1),    // the second at 7 ms; the rest of it finds nothing waiting
        (ms(8), 1500), // 10
    ]);
    let expected = [2, 2, 2, 5, 7, 7, 10].map(ms);
    assert_eq!(driver.times(), expected);
    // And, until 15: 10 (0), 12, 12, 15 and 15 (0).
    assert_eq!(driver.link.stats(ms(15)).wasted, 1500 + 1499 + 5 * 1500);
}

#[test]
fn an_offset_starts_in_the_middle_of_a_trace_and_wastes_nothing_of_what_was_before() {
    let with = |offset| match tiny_trace(Sharing::Bytes) {
        Service::Trace { trace, sharing, .. } => Service::Trace { trace, sharing, offset: Span::from_millis(offset) },
        other => other,
    };
    // From 3 ms on: 2 (5), 2 (5 + 0), 4 (7), 4 (7), 7 (10), 7 (10 + 0), ...
    for offset in [3, 8, 5003] {
        let service = with(offset);
        let mut driver = Driver::new(Config { service, ..Config::default() }).run((0..6).map(|_| (at(1), 1500)));
        assert_eq!(driver.times(), [2, 2, 4, 4, 7, 7].map(ms), "offset {offset} ms");
        assert_eq!(driver.link.stats(ms(8)).wasted, 0, "offset {offset} ms");
    }
    // After whole rounds of nothing, too.
    let driver = Driver::new(Config { service: with(3), ..Config::default() }).run([(at(5_000_000_000_001), 1500)]);
    assert_eq!(driver.times(), [at(5_000_002_000_000)]);
    // A period later is where it begins: 0, 2, 2, 5.
    let service = with(5);
    let driver = Driver::new(Config { service, ..Config::default() }).run([(at(1), 1500), (at(1), 1500)]);
    assert_eq!(driver.times(), [2, 2].map(ms));
}

#[test]
fn opportunities_that_find_nothing_are_skipped_over_whole_rounds() {
    let service = tiny_trace(Sharing::Bytes);
    let mut driver = Driver::new(Config { service, ..Config::default() }).run([
        (at(5_000_000_000_000 + 1), 1500),
        (at(5_000_006_000_000), 1500),
        (at(5_000_006_000_000), 1500),
    ]);
    assert_eq!(driver.times(), [2, 7, 7].map(|n| at(5_000_000_000_000 + n * 1_000_000)));
    // A thousand thousand rounds of four opportunities and the one at 0 of the next; 2, 5 and 5 (0) in between.
    assert_eq!(driver.link.stats(at(5_000_007_000_000)).wasted, (4_000_000 + 1 + 3) * 1500);
}

#[test]
fn independent_loss_has_its_probability_and_takes_its_time() {
    let config = Config {
        service: rate(12_000_000),
        loss: Some(Loss::Random { probability: 0.1 }),
        delay: Span::from_millis(3).into(),
        ..Config::default()
    };
    let n = 100_000u64;
    let driver = Driver::new(config).run((0..n).map(|i| (ms(i), 1500)));
    // Five standard deviations: sqrt(n p (1-p)) is 95.
    assert!((9_525..10_475).contains(&driver.lost.len()), "{} lost", driver.lost.len());
    assert!(driver.lost.iter().all(|&(_, reason)| reason == DropReason::Loss));
    assert_eq!(driver.delivered.len() + driver.lost.len(), n as usize);
    assert!(driver.delivered.iter().all(|&(time, id)| time == ms(id + 4)));
}

#[test]
fn certain_loss_loses_all_and_impossible_loss_none() {
    for (probability, lost) in [(1.0, 1000), (7.0, 1000), (0.0, 0), (-1.0, 0), (f64::NAN, 0)] {
        let config = Config { loss: Some(Loss::Random { probability }), ..Config::default() };
        assert_eq!(Driver::new(config).run((0..1000).map(|i| (ms(i), 1))).lost.len(), lost, "at {probability}");
    }
}

#[test]
fn gilbert_elliott_bursts_have_their_length_and_share() {
    let loss = Some(Loss::GilbertElliott { good_to_bad: 0.02, bad_to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 });
    let n = 400_000u64;
    let driver = Driver::new(Config { loss, ..Config::default() }).run((0..n).map(|i| (ms(i), 1)));
    // Every packet of the bad state is lost, so a burst is a stay: geometric with mean 4 and deviation sqrt(12).
    let lost: Vec<u64> = driver.lost.iter().map(|&(id, _)| id).collect();
    let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    let mean = lost.len() as f64 / bursts as f64;
    // About n / (50 + 4) = 7407 bursts: five deviations of the mean are 0.2.
    assert!((mean - 4.0).abs() < 0.2, "mean burst {mean}");
    let share = lost.len() as f64 / n as f64;
    assert!((share - 0.02 / 0.27).abs() < 0.005, "share {share}");
    let singles = lost.windows(3).filter(|w| w[0] + 1 != w[1] && w[1] + 1 != w[2]).count() as f64;
    assert!((singles / bursts as f64 - 0.25).abs() < 0.03, "{singles} bursts of one packet in {bursts}");
}

#[test]
fn partial_losses_of_gilbert_elliott_add_up() {
    let loss = Some(Loss::GilbertElliott { good_to_bad: 0.1, bad_to_good: 0.3, loss_good: 0.01, loss_bad: 0.5 });
    let n = 200_000u64;
    let driver = Driver::new(Config { loss, ..Config::default() }).run((0..n).map(|i| (ms(i), 1)));
    let share = driver.lost.len() as f64 / n as f64;
    assert!((share - (0.75 * 0.01 + 0.25 * 0.5)).abs() < 0.007, "share {share}");
}

#[test]
fn jitter_has_its_distribution_where_packets_are_far_apart() {
    let mean_delay = |jitter| {
        let config = Config { delay: Span::from_millis(10).into(), jitter, ..Config::default() };
        let driver = Driver::new(config).run((0..20_000).map(|i| (ms(i * 100), 1)));
        let delays: Vec<f64> =
            driver.delivered.iter().map(|&(time, id)| (time - ms(id * 100 + 10)).as_secs_f64() * 1e3).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        (mean, delays.iter().copied().fold(0.0, f64::max))
    };
    let (mean, max) = mean_delay(Some(Jitter::Uniform { max: Span::from_millis(8) }));
    assert!((mean - 4.0).abs() < 0.09 && max < 8.0 && max > 7.9, "uniform: mean {mean} ms, max {max} ms");
    let (mean, max) = mean_delay(Some(Jitter::HalfNormal { sigma: Span::from_millis(5) }));
    assert!((mean - 3.989).abs() < 0.11 && max > 15.0, "half-normal: mean {mean} ms, max {max} ms");
}

#[test]
fn loss_does_not_shift_the_jitter() {
    let run = |loss| {
        let jitter = Some(Jitter::Uniform { max: Span::from_millis(8) });
        Driver::new(Config { loss, jitter, ..Config::default() }).run((0..50).map(|i| (ms(i * 100), 1))).delivered
    };
    let none = run(None);
    let never = run(Some(Loss::Random { probability: 0.0 }));
    assert_eq!(none, never);
}

#[test]
fn loss_and_jitter_are_independent() {
    let mut agree = 0;
    for seed in 0..400 {
        let first = |loss, jitter| {
            let mut link = Link::new(Config { loss, jitter, ..Config::default() }, random(seed));
            link.handle_packet(TestPacket::new(0, 0, 1), ms(0), &mut |_, _| ());
            link.poll_timeout()
        };
        let lost = first(Some(Loss::Random { probability: 0.5 }), None).is_none();
        let early = first(None, Some(Jitter::Uniform { max: Span::from_millis(10) })) < Some(ms(5));
        agree += u32::from(lost == early);
    }
    // Half of 400, with a standard deviation of 10.
    assert!((150..250).contains(&agree), "{agree} of 400 agree");
}

/// Configurations that cover each kind of service, queue, loss and jitter.
fn configs() -> Vec<Config> {
    let limit = aqm::Config::DropTail(drop_tail::Config { packets: Some(30), ..Default::default() });
    let fq_codel = aqm::Config::FqCodel(aqm::fq_codel::Config {
        target: Span::from_millis(1),
        interval: Span::from_millis(5),
        packets: 50,
        ..Default::default()
    });
    let changes = (1..200).map(|n| (ms(n * 5), Rate::from_mbps(n % 4 * 5))).collect();
    let changing = Service::Rate(Schedule::new(Rate::from_mbps(3), changes).unwrap());
    let loss = Some(Loss::GilbertElliott { good_to_bad: 0.2, bad_to_good: 0.3, loss_good: 0.05, loss_bad: 0.6 });
    let jitter = Some(Jitter::HalfNormal { sigma: Span::from_millis(2) });
    let delay = Delay::from(Span::from_millis(4));
    let orbit = varying(&[(0, 4_000), (30_000, 9_000), (31_000, 1_000), (60_000, 2_000)]);
    vec![
        Config { queue: limit, service: rate(10_000_000), delay: delay.clone(), ..Config::default() },
        Config { queue: limit, service: rate(10_000_000), delay: orbit, ..Config::default() },
        Config {
            queue: fq_codel,
            service: changing,
            delay: delay.clone(),
            overhead: 20,
            loss,
            jitter,
            ..Config::default()
        },
        Config { queue: limit, service: tiny_trace(Sharing::Packets), jitter, ..Config::default() },
        Config { queue: fq_codel, service: tiny_trace(Sharing::Bytes), loss, ..Config::default() },
        Config { queue: limit, delay, loss, jitter, ..Config::default() },
    ]
}

#[test]
fn links_conserve_packets_and_never_reorder_a_flow() {
    check!().with_type::<Vec<Op>>().for_each(|ops| {
        for config in configs() {
            let mut driver = Driver::new(config);
            let mut now = Time::ZERO;
            let mut next = 0;
            for op in ops {
                match *op {
                    Op::Arrive { flow, count, len, .. } => {
                        for _ in 0..=count % 16 {
                            let packet = TestPacket::new(next, u64::from(flow % 4), u32::from(len % 1500) + 1);
                            next += 1;
                            let lost = &mut driver.lost;
                            driver.link.handle_packet(packet, now, &mut |p: TestPacket, why| lost.push((p.id, why)));
                        }
                    }
                    Op::Serve { count, .. } => now += Span::from_micros(u64::from(count) * 10),
                    Op::Wait { millis } => now += Span::from_millis(u64::from(millis) / 8),
                }
                driver.run_until(now);
                conserved(&mut driver, next, now);
            }
        }
    });
}

fn conserved(driver: &mut Driver, arrived: u64, now: Time) {
    let waiting = driver.link.backlog(now);
    let stats = driver.link.stats(now);
    let (delivered, lost) = (driver.delivered.len() as u64, driver.lost.len() as u64);
    assert_eq!(arrived, delivered + lost + waiting.packets + driver.link.in_flight());
    assert_eq!((stats.arrived.packets, stats.delivered.packets), (arrived, delivered));
    assert_eq!(lost, stats.overflows + stats.control_drops + stats.losses);
    assert_eq!(stats.served.packets, delivered + stats.losses + driver.link.in_flight());
}

#[test]
fn jitter_never_reorders() {
    let jitter = Some(Jitter::Uniform { max: Span::from_millis(50) });
    let config = Config { service: rate(100_000_000), delay: Span::from_millis(1).into(), jitter, ..Config::default() };
    let driver = Driver::new(config).run((0..5_000).map(|i| (at(i * 130_000), 1500)));
    assert!(driver.delivered.iter().map(|&(_, id)| id).eq(0..5_000));
    assert!(driver.delivered.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn calls_that_come_late_serve_at_the_times_that_were_due() {
    let queue = aqm::Config::Codel(aqm::codel::Config::default());
    let config = Config { queue, service: rate(6_000_000), delay: Span::from_millis(40).into(), ..Config::default() };
    let run = |step: u64| {
        let mut link = Link::new(config.clone(), random(1));
        let mut lost = Vec::new();
        let mut order = Vec::new();
        for t in 0..2_000 {
            link.handle_packet(TestPacket::new(t, 0, 1500), ms(t), &mut |p: TestPacket, _| lost.push(p.id));
        }
        for t in (2_000..20_000).step_by(step as usize) {
            link.handle_timeout(ms(t), &mut |p: TestPacket, _| lost.push(p.id));
            order.extend(core::iter::from_fn(|| link.poll_delivery(ms(t))).map(|p| p.id));
        }
        (lost, order, link.stats(ms(20_000)))
    };
    let (on_time, late) = (run(1), run(1700));
    assert!(!on_time.0.is_empty());
    assert_eq!(on_time, late);
}

/// What became of each packet, in the order of arrival: delivered or lost, and when.
type Fates = Vec<(Option<DropReason>, Time)>;

/// What happens to a link from outside.
#[derive(Clone, Copy)]
enum Input {
    Packet(u32),
    Rate(Rate),
    /// Until then.
    Pause(Time),
}

/// Counters, backlog, and the longest wait since the last look.
type Seen = (link::Stats, aqm::Backlog, Span);

/// A link's own account, driven input by input, with its counters and backlog at each of them and in the end.
fn fates_on_a_link(config: Config, inputs: &[(Time, Input)]) -> (Fates, Vec<Seen>) {
    let mut link: Link<TestPacket> = Link::new(config, random(9));
    let mut fates = Fates::new();
    let mut seen = Vec::new();
    for &(at, input) in inputs {
        while let Some(due) = link.poll_timeout().filter(|&due| due <= at) {
            serve(&mut link, due, &mut fates);
        }
        match input {
            Input::Packet(len) => {
                let packet = TestPacket::new(fates.len() as u64, u64::from(len % 3), len);
                fates.push((None, Time::MAX));
                link.handle_packet(packet, at, &mut |p: TestPacket, why| fates[p.id as usize] = (Some(why), at));
            }
            Input::Rate(rate) => assert!(link.set_rate(rate, at), "it has a rate"),
            Input::Pause(until) => link.pause(until, at),
        }
        while let Some(packet) = link.poll_delivery(at) {
            fates[packet.id as usize].1 = at;
        }
        seen.push((link.stats(at), link.backlog(at), link.take_longest_sojourn(at)));
    }
    while let Some(due) = link.poll_timeout().filter(|&due| due != Time::MAX) {
        serve(&mut link, due, &mut fates);
    }
    let end = ms(1 << 40);
    seen.push((link.stats(end), link.backlog(end), link.take_longest_sojourn(end)));
    (fates, seen)
}

fn serve(link: &mut Link<TestPacket>, now: Time, fates: &mut Fates) {
    link.handle_timeout(now, &mut |p: TestPacket, why| fates[p.id as usize] = (Some(why), now));
    while let Some(packet) = link.poll_delivery(now) {
        fates[packet.id as usize].1 = now;
    }
}

#[test]
fn a_foreseen_link_does_what_a_link_does() {
    // Gaps of 0 to 65 us, 40 to 1500 bytes; each op picks the configuration too.
    check!().with_type::<(u8, Vec<(u8, u8)>)>().for_each(|(kind, ops)| {
        let mut now = Time::ZERO;
        let arrivals: Vec<(Time, u32)> = ops
            .iter()
            .map(|&(gap, len)| {
                now += Span::from_nanos(u64::from(gap) * 255);
                (now, 40 + u32::from(len) * 5)
            })
            .collect();
        let limits = [(Some(3), None), (None, Some(4_000)), (Some(0), None), (None, None)];
        let (packets, bytes) = limits[usize::from(kind & 3)];
        let schedule = if kind & 4 == 0 {
            Schedule::constant(Rate::from_mbps(200))
        } else {
            let changes = [(40, 0), (90, 300), (300, 7), (2_000, 900)];
            let changes = changes.map(|(us, mbps)| (Time::ZERO + Span::from_micros(us), Rate::from_mbps(mbps)));
            Schedule::new(Rate::from_mbps(500), changes.to_vec()).unwrap()
        };
        let config = Config {
            queue: aqm::Config::DropTail(drop_tail::Config {
                packets,
                bytes: bytes.map(Bytes::new),
                ..drop_tail::Config::default()
            }),
            service: if kind & 8 == 0 { Service::Rate(schedule) } else { Service::Infinite },
            loss: if kind & 16 == 0 { None } else { Some(Loss::Random { probability: 0.2 }) },
            overhead: u32::from(kind >> 5) * 2,
            delay: Span::from_micros(u64::from(kind >> 5) * 30).into(),
            ..Config::default()
        };
        let inputs: Vec<_> = arrivals.iter().map(|&(at, len)| (at, Input::Packet(len))).collect();
        let (expected, counted) = fates_on_a_link(config.clone(), &inputs);
        let mut foreseen = link::Foreseen::new(&config, random(9)).expect("it is of that kind");
        for (i, &(at, len)) in arrivals.iter().enumerate() {
            let fate = match foreseen.pass(len, at) {
                Ok((due, _)) => (None, due),
                Err((when, why)) => (Some(why), when),
            };
            assert_eq!(fate, expected[i], "packet {i}");
            let (stats, backlog, longest) = counted[i];
            assert_eq!((foreseen.stats(at), foreseen.backlog(at)), (stats, backlog), "counters at packet {i}");
            if i % 3 == usize::from(kind % 3) {
                foreseen.settle(at);
                assert_eq!((foreseen.stats(at), foreseen.backlog(at)), (stats, backlog), "settled at packet {i}");
            }
            assert_eq!(foreseen.take_longest_sojourn(at), longest, "waits up to packet {i}");
        }
        let end = ms(1 << 40);
        let all = (foreseen.stats(end), foreseen.backlog(end), foreseen.take_longest_sojourn(end));
        assert_eq!(all, counted[arrivals.len()]);
    });
}

#[test]
fn managed_queues_traces_and_jitter_are_not_foreseen() {
    let jitter = Some(Jitter::Uniform { max: Span::from_millis(1) });
    let oldest = drop_tail::Config { victim: drop_tail::Victim::Oldest, ..drop_tail::Config::default() };
    for config in [
        Config { queue: aqm::Config::Codel(aqm::codel::Config::default()), ..Config::default() },
        Config { queue: aqm::Config::DropTail(oldest), ..Config::default() },
        Config { service: tiny_trace(Sharing::Bytes), ..Config::default() },
        Config { jitter, ..Config::default() },
        Config { reordering: Some(Reordering { share: 0.1, ..Reordering::default() }), ..Config::default() },
    ] {
        assert!(link::Foreseen::new(&config, random(1)).is_none(), "{config:?}");
    }
    let never = Reordering { share: 0.0, delay: Span::from_millis(1), ..Reordering::default() };
    for reordering in [None, Some(never)] {
        assert!(link::Foreseen::new(&Config { reordering, ..Config::default() }, random(1)).is_some());
    }
}

#[test]
fn a_foreseen_link_is_full_until_some_of_its_packets_are_settled() {
    let mut link = link::Foreseen::new(&Config::default(), random(1)).expect("it is of that kind");
    let mut passed = 0;
    while !link.is_full() {
        link.pass(1500, ms(passed)).expect("nothing is lost");
        passed += 1;
    }
    assert!(passed >= 16);
    link.settle(ms(0));
    assert!(!link.is_full());
    link.pass(1500, ms(passed)).expect("nothing is lost");
    assert!(link.is_full());
}

/// A link that never recovers: one packet is in service, and any number wait.
#[test]
fn packets_behind_an_outage_without_an_end_are_never_delivered() {
    let service = Service::Rate(Schedule::new(Rate::from_mbps(12), vec![(ms(2), Rate::from_mbps(0))]).unwrap());
    let mut link =
        link::Foreseen::new(&Config { service, ..Config::default() }, random(1)).expect("it is of that kind");
    let ends: Vec<Time> = (0..6).map(|_| link.pass(1500, ms(0)).expect("nothing is lost").0).collect();
    assert_eq!(ends, [ms(1), ms(2), Time::MAX, Time::MAX, Time::MAX, Time::MAX]);
    let stats = link.stats(ms(1000));
    assert_eq!((stats.served.packets, stats.delivered.packets, stats.service_ends), (3, 2, Time::MAX));
    // 0, 1 and 2 ms.
    assert_eq!((stats.total_sojourn, link.backlog(ms(1000)).packets), (Span::from_millis(3), 3));
}

#[test]
fn rates_and_outages_that_are_set_do_what_a_schedule_that_had_them_from_the_start_does() {
    // Gaps of 1 to 65 us, 40 to 1500 bytes, one input in eight a rate and one an outage; the first byte picks the configuration.
    check!().with_type::<(u8, Vec<(u8, u8)>)>().with_iterations(3_000).for_each(|(kind, ops)| {
        let first = vec![
            (at(40_000), Rate::from_mbps(3)),
            (at(90_000), Rate::from_mbps(0)),
            (at(900_000), Rate::from_mbps(70)),
        ];
        let (mut inputs, mut changes) = (Vec::new(), first.clone());
        let initial = Rate::from_mbps(200);
        let mut now = Time::ZERO;
        for &(gap, what) in ops {
            now += Span::from_nanos(u64::from(gap) * 255 + 1);
            if what % 8 == 0 {
                let rate = Rate::from_bits_per_sec([0, 1_000, 7_000_001, 999_999_999][usize::from(what) / 8 % 4]);
                changes.retain(|change| change.0 < now);
                changes.push((now, rate));
                inputs.push((now, Input::Rate(rate)));
            } else if what % 8 == 1 {
                let until = now + Span::from_micros(u64::from(what) * 3);
                let then = changes.iter().rfind(|change| change.0 <= until).map_or(initial, |change| change.1);
                changes.retain(|change| change.0 < now || change.0 > until);
                let outage = [(now, Rate::default()), (until, then)];
                let place = changes.partition_point(|change| change.0 < now);
                changes.splice(place..place, outage);
                inputs.push((now, Input::Pause(until)));
            } else {
                inputs.push((now, Input::Packet(40 + u32::from(what) * 5)));
            }
        }
        let target = Span::from_micros(50);
        let queue = match kind % 3 {
            0 => aqm::Config::DropTail(drop_tail::Config { packets: Some(3), ..Default::default() }),
            1 => aqm::Config::FqCodel(aqm::fq_codel::Config { target, packets: 9, ..Default::default() }),
            _ => aqm::Config::UNLIMITED,
        };
        let late = Reordering { share: 0.3, delay: Span::from_micros(15), spread: Span::from_micros(10) };
        let config = |changes| Config {
            queue,
            service: Service::Rate(Schedule::new(initial, changes).unwrap()),
            loss: if kind & 16 == 0 { None } else { Some(Loss::Random { probability: 0.2 }) },
            jitter: if kind & 32 == 0 { None } else { Some(Jitter::Uniform { max: Span::from_micros(20) }) },
            reordering: (kind & 8 != 0).then_some(late),
            overhead: u32::from(kind >> 6) * 2,
            delay: match kind >> 6 {
                3 => varying(&[(0, 30), (400, 90), (900, 10)]),
                steps => Span::from_micros(u64::from(steps) * 30).into(),
            },
        };
        let of_schedule: Vec<_> = inputs.iter().copied().filter(|(_, i)| matches!(i, Input::Packet(_))).collect();
        let (expected, mut counted) = fates_on_a_link(config(changes), &of_schedule);
        let (fates, seen) = fates_on_a_link(config(first), &inputs);
        assert_eq!(fates, expected);
        let at_packets = inputs.iter().zip(&seen).filter(|((_, i), _)| matches!(i, Input::Packet(_)));
        let mut seen: Vec<_> = at_packets.map(|(_, seen)| *seen).chain(seen.last().copied()).collect();
        // When a service ends is what the link expects, and a schedule tells it of changes to come. At the end there are none.
        let ends = |all: &[Seen]| all.last().map(|(stats, ..)| stats.service_ends);
        assert_eq!(ends(&seen), ends(&counted));
        for (stats, _, longest) in seen.iter_mut().chain(&mut counted) {
            stats.service_ends = Time::ZERO;
            // One of them was looked at more often.
            *longest = Span::ZERO;
        }
        assert_eq!(seen, counted);
    });
}

#[test]
fn late_packets_are_overtaken_and_the_others_keep_their_times() {
    let config = |reordering| Config {
        service: rate(12_000_000),
        delay: Span::from_millis(10).into(),
        reordering,
        ..Config::default()
    };
    let arrivals = || (0..20_000u64).map(|i| (at(i * 1_000_000), 1500));
    let plain = Driver::new(config(None)).run(arrivals());
    let late = Some(Reordering { share: 0.25, delay: Span::from_micros(2_500), spread: Span::ZERO });
    let some = Driver::new(config(late)).run(arrivals());
    let mut by_id = some.delivered.clone();
    by_id.sort_by_key(|&(_, id)| id);
    assert_eq!(by_id.len(), 20_000);
    let mut count = 0u32;
    for (&(time, id), &(plain, _)) in by_id.iter().zip(&plain.delivered) {
        count += u32::from(time != plain);
        assert!(time == plain || time == plain + Span::from_micros(2_500), "{id}");
    }
    assert!((4_800..5_200).contains(&count), "{count}");
    assert!(some.times().is_sorted() && some.delivered.windows(2).any(|pair| pair[0].1 > pair[1].1));
}

#[test]
fn with_a_share_of_one_a_spread_is_a_jitter_that_reorders() {
    let reordering = Some(Reordering { share: 1.0, delay: Span::ZERO, spread: Span::from_millis(5) });
    let driver =
        Driver::new(Config { reordering, ..Config::default() }).run((0..5_000u64).map(|i| (at(i * 100_000), 100)));
    assert!(driver.times().is_sorted() && driver.delivered.len() == 5_000);
    let delays = driver.delivered.iter().map(|&(time, id)| (time - at(id * 100_000)).as_nanos() as f64 / 1e6);
    let mean = delays.clone().sum::<f64>() / 5_000.0;
    assert!((mean - 2.5).abs() < 0.1 && delays.clone().all(|ms| (0.0..5.0).contains(&ms)), "{mean}");
}

#[test]
fn a_rate_change_moves_a_late_packet_in_service_too() {
    let reordering = Some(Reordering { share: 1.0, delay: Span::from_millis(3), spread: Span::ZERO });
    let mut link = Link::new(Config { service: rate(12_000_000), reordering, ..Config::default() }, random(1));
    link.handle_packet(TestPacket::new(0, 0, 1500), ms(0), &mut no_drops);
    assert_eq!(link.poll_timeout(), Some(ms(4)));
    // Half of it has been sent; the rest takes four times as long.
    assert!(link.set_rate(Rate::from_mbps(3), at(500_000)));
    assert_eq!(link.poll_timeout(), Some(at(500_000 + 2_000_000 + 3_000_000)));
    assert_eq!((link.in_flight(), link.stats(ms(1)).delivered.packets), (1, 0));
    assert_eq!(link.poll_delivery(at(5_500_000)).map(|packet| packet.id), Some(0));
    assert_eq!(link.stats(ms(6)).delivered.packets, 1);
}

#[test]
fn packets_that_begin_service_are_told_of_on_time() {
    let queue = aqm::Config::DropTail(drop_tail::Config { packets: Some(2), ..drop_tail::Config::default() });
    let config = Config { service: rate(12_000_000), queue, delay: Span::from_millis(50).into(), ..Config::default() };
    let mut link = Link::new(config, random(1));
    link.note_begun();
    let full = |link: &Link<TestPacket>, ahead, now| {
        link.is_full(1500, 0, aqm::Backlog { packets: ahead, bytes: 1500 * ahead }, now)
    };
    // The first one is served at once, and two more would wait.
    assert_eq!([0, 2, 3].map(|ahead| full(&link, ahead, ms(0))), [false, false, true]);
    for id in 0..3 {
        link.handle_packet(TestPacket::new(id, 0, 1500), ms(0), &mut no_drops);
    }
    assert!(full(&link, 0, ms(0)));
    assert_eq!([link.poll_begun(), link.poll_begun()], [Some(0), None]);
    // Long before anything is delivered.
    for (id, now) in [(1, ms(1)), (2, ms(2))] {
        assert_eq!(link.poll_timeout(), Some(now));
        link.handle_timeout(now, &mut no_drops);
        assert_eq!([link.poll_begun(), link.poll_begun()], [Some(id), None]);
    }
    assert!(!full(&link, 0, ms(2)));
    assert_eq!(link.poll_timeout(), Some(ms(51)));
}
