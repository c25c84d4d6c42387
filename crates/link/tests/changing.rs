//! What is changed of a link from outside while it runs: outages, rates, losses.

mod common;

use aqm::DropReason;
use common::{Driver, at, ms, no_drops, rate, tiny_trace};
use link::{Config, Loss, Schedule, Service, Sharing, Trace};
use std::sync::Arc;
use testkit::queue::TestPacket;
use units::{Rate, Span, Time};

#[test]
fn a_packet_in_service_during_an_outage_leaves_once_there_is_a_rate() {
    let config = Config { service: rate(12_000_000), delay: Span::from_millis(5).into(), ..Config::default() };
    let mut driver = Driver::new(config);
    driver.link.handle_packet(TestPacket::new(0, 0, 1500), ms(0), &mut no_drops);
    // Half of it has left.
    assert!(driver.link.set_rate(Rate::from_mbps(0), at(500_000)));
    assert_eq!(driver.link.poll_timeout(), None);
    driver.run_until(ms(1000));
    assert!(driver.link.set_rate(Rate::from_mbps(6), ms(1000)));
    driver.run_until(ms(2000));
    assert_eq!(driver.times(), [ms(1006)]);
}

#[test]
fn after_an_outage_a_link_goes_on_where_it_would_be_without_one() {
    // From 200 ms on, half of the rate.
    let steps = Schedule::new(Rate::from_mbps(12), vec![(ms(200), Rate::from_mbps(6))]).expect("times increase");
    let left = |service: Service, pause: &dyn Fn(&mut Driver)| {
        let mut driver = Driver::new(Config { service, ..Config::default() });
        driver.link.handle_packet(TestPacket::new(0, 0, 1500), ms(100), &mut no_drops);
        driver.link.handle_packet(TestPacket::new(1, 0, 1500), ms(100), &mut no_drops);
        pause(&mut driver);
        driver.run_until(ms(2000));
        driver.times()
    };
    let outage = |driver: &mut Driver| driver.link.pause(ms(1000), at(100_500_000));
    // Half of a packet is still to be served, at the rate of then.
    assert_eq!(left(Service::Rate(steps.clone()), &outage), [ms(1001), ms(1003)]);
    let within = |driver: &mut Driver| {
        outage(driver);
        driver.link.pause(ms(300), at(100_600_000));
    };
    assert_eq!(left(Service::Rate(steps.clone()), &within), [ms(1001), ms(1003)]);
    let ended = |driver: &mut Driver| {
        outage(driver);
        driver.run_until(ms(500));
        assert!(driver.link.set_rate(Rate::from_mbps(12), ms(500)));
    };
    assert_eq!(left(Service::Rate(steps.clone()), &ended), [at(500_500_000), at(501_500_000)]);
    // It ends as the rate halves, or has ended before it begins.
    let until_then = |driver: &mut Driver| driver.link.pause(ms(200), at(100_500_000));
    assert_eq!(left(Service::Rate(steps.clone()), &until_then), [ms(201), ms(203)]);
    let over = |driver: &mut Driver| driver.link.pause(ms(50), at(100_500_000));
    assert_eq!(left(Service::Rate(steps), &over), [ms(101), ms(102)]);
}

#[test]
fn an_outage_leaves_opportunities_of_a_trace_unused_and_gives_an_unlimited_link_a_queue() {
    let trace = || {
        let trace = Trace::parse(b"10\n20\n30\n").expect("it is one");
        Service::Trace { trace: Arc::new(trace), sharing: Sharing::Packets, offset: Span::ZERO }
    };
    for (service, until, sent, times) in [
        (trace(), ms(45), 5, [ms(50), ms(60)]),
        // The opportunity at its end is the first.
        (trace(), ms(50), 5, [ms(50), ms(60)]),
        (trace(), at(50_000_001), 5, [ms(60), ms(70)]),
        (Service::Infinite, ms(45), 15, [ms(45), ms(45)]),
    ] {
        let mut driver = Driver::new(Config { service, ..Config::default() });
        driver.link.pause(until, ms(5));
        driver.run_until(ms(sent));
        for id in 0..2 {
            driver.link.handle_packet(TestPacket::new(id, 0, 1500), ms(sent), &mut no_drops);
        }
        driver.run_until(ms(100));
        let millis = |times: &[Time]| times.iter().map(|time| time.as_nanos() / 1_000_000).collect::<Vec<_>>();
        assert_eq!(millis(&driver.times()), millis(&times));
    }
}

#[test]
fn an_infinitely_fast_link_can_be_given_a_rate_and_a_trace_cannot() {
    let mut driver = Driver::new(Config::default());
    assert!(driver.link.set_rate(Rate::from_mbps(12), ms(1)));
    let driver = driver.run([(ms(2), 1500), (ms(2), 1500)]);
    assert_eq!(driver.times(), [ms(3), ms(4)]);
    let mut driver = Driver::new(Config { service: tiny_trace(Sharing::Packets), ..Config::default() });
    assert!(!driver.link.set_rate(Rate::from_mbps(12), ms(1)));
}

#[test]
fn a_loss_that_is_set_holds_for_packets_that_are_served_later() {
    for service in [Service::Infinite, rate(12_000_000)] {
        let mut driver = Driver::new(Config { service, delay: Span::from_millis(5).into(), ..Config::default() });
        let send = |driver: &mut Driver, id, now| {
            driver.run_until(now);
            let packet = TestPacket::new(id, 0, 1500);
            driver.link.handle_packet(packet, now, &mut |packet: TestPacket, why| driver.lost.push((packet.id, why)));
            driver.collect(now);
        };
        send(&mut driver, 0, ms(0));
        driver.link.set_loss(Some(Loss::Random { probability: 1.0 }), ms(10));
        send(&mut driver, 1, ms(10));
        send(&mut driver, 2, ms(11));
        driver.run_until(ms(20));
        driver.link.set_loss(None, ms(20));
        send(&mut driver, 3, ms(20));
        driver.run_until(ms(100));
        assert_eq!(driver.delivered.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(driver.lost, [(1, DropReason::Loss), (2, DropReason::Loss)]);
        assert_eq!(driver.link.stats(ms(100)).losses, 2);
    }
}

/// 1500 bytes take 1 714 285.71 ns at 7 Mbit/s. What the last nanosecond of one leaves is for the next.
#[test]
fn a_rate_that_is_set_again_as_a_packet_ends_costs_no_part_of_a_nanosecond() {
    let mut driver = Driver::new(Config { service: rate(7_000_000), ..Config::default() });
    let ends = [1_714_286, 3_428_572, 5_142_858, 6_857_143, 8_571_429].map(at);
    driver.link.handle_packet(TestPacket::new(0, 0, 1500), ms(0), &mut no_drops);
    driver.run_until(ends[0]);
    assert!(driver.link.set_rate(Rate::from_mbps(7), ends[0]));
    for id in 1..5 {
        driver.link.handle_packet(TestPacket::new(id, 0, 1500), ends[0], &mut no_drops);
    }
    driver.run_until(ms(100));
    assert_eq!(driver.times(), ends);
}

#[test]
fn a_bit_a_second_is_a_rate() {
    let config = Config { service: rate(8), ..Config::default() };
    let mut driver = Driver::new(config);
    driver.link.handle_packet(TestPacket::new(0, 0, 2), ms(0), &mut no_drops);
    // One of two bytes has left.
    assert!(driver.link.set_rate(Rate::from_bits_per_sec(1), ms(1000)));
    driver.run_until(ms(100_000));
    assert_eq!(driver.times(), [ms(9000)]);
}

#[test]
fn a_packet_that_comes_before_there_is_any_rate_takes_its_time_once_there_is_one() {
    let mut driver = Driver::new(Config { service: rate(0), ..Config::default() });
    driver.link.handle_packet(TestPacket::new(0, 0, 1500), ms(0), &mut no_drops);
    assert_eq!(driver.link.poll_timeout(), None);
    assert!(driver.link.set_rate(Rate::from_mbps(12), ms(1000)));
    driver.run_until(ms(2000));
    assert_eq!(driver.times(), [ms(1001)]);
}
