//! What a link tells before anything happens to it: whether its queue is full, and what it holds.

mod common;

use aqm::{DropReason, drop_tail};
use common::{Driver, at, ms, no_drops, random, rate, tiny_trace};
use link::{Config, Link, Loss, Reordering, Sharing};
use testkit::queue::TestPacket;
use units::{Bytes, Span};

/// The queue has room for two: the packet in service is not in it, and one that comes to an idle server passes it by.
#[test]
fn a_queue_is_full_for_a_packet_if_and_only_if_it_loses_the_packet() {
    let limits = [
        drop_tail::Config { packets: Some(2), ..drop_tail::Config::default() },
        drop_tail::Config { bytes: Some(Bytes::new(3000)), ..drop_tail::Config::default() },
        drop_tail::Config { packets: Some(0), ..drop_tail::Config::default() },
    ];
    for config in limits {
        let queue = aqm::Config::DropTail(config);
        let mut link = Link::new(Config { service: rate(12_000_000), queue, ..Config::default() }, random(1));
        link.note_begun();
        // By service, one packet and two thirds come each millisecond, then one each 1.25.
        let times = (0..20).map(|n| n * 600_000).chain((20..60).map(|n| 12_000_000 + (n - 20) * 1_250_000));
        let (mut lost, mut full) = (0, 0);
        for (id, now) in times.map(at).enumerate() {
            while let Some(due) = link.poll_timeout().filter(|&due| due <= now) {
                link.handle_timeout(due, &mut no_drops);
                while link.poll_delivery(due).is_some() {}
            }
            let is_full = |link: &Link<TestPacket>, packets| {
                link.is_full(1500, 0, aqm::Backlog { packets, bytes: 1500 * packets }, now)
            };
            // As many more fit as do one after the other.
            let mut others = link.clone();
            for ahead in 0..5 {
                let said = is_full(&link, ahead);
                let mut is_lost = false;
                let packet = TestPacket::new(1000 + ahead, 0, 1500);
                others.handle_packet(packet, now, &mut |_: TestPacket, _: DropReason| is_lost = true);
                assert_eq!(said, is_lost, "{config:?} at {now}, {ahead} ahead");
            }
            full += u32::from(is_full(&link, 0));
            link.handle_packet(TestPacket::new(id as u64, 0, 1500), now, &mut |_: TestPacket, _: DropReason| lost += 1);
        }
        assert!(lost == full && (1..40).contains(&lost), "{config:?}: {lost}");
    }
}

/// A reader may ask at the time of a service, before the driver has called for it.
#[test]
fn reading_a_link_that_may_lose_packets_serves_none() {
    let codel = aqm::Config::Codel(aqm::codel::Config::default());
    let all = Some(Loss::Random { probability: 1.0 });
    for (queue, loss, then) in
        [(codel, None, None), (aqm::Config::UNLIMITED, all, all), (aqm::Config::UNLIMITED, None, all)]
    {
        let mut link = Link::new(Config { queue, loss, service: rate(12_000_000), ..Config::default() }, random(1));
        if then != loss {
            link.set_loss(then, ms(0));
        }
        let mut lost = 0;
        let mut drops = |_: TestPacket, _: DropReason| lost += 1;
        for id in 0..3 {
            link.handle_packet(TestPacket::new(id, 0, 1500), ms(0), &mut drops);
        }
        assert_eq!(link.backlog(ms(1)).packets, 2);
        assert_eq!((link.stats(ms(1)).served.packets, link.take_longest_sojourn(ms(1))), (1, Span::ZERO));
        link.handle_timeout(ms(1), &mut drops);
        assert_eq!(link.backlog(ms(1)).packets, 1);
        assert_eq!((link.stats(ms(1)).served.packets, link.take_longest_sojourn(ms(1))), (2, Span::from_millis(1)));
    }
}

/// Nobody is called for a service while a packet is on the wire.
#[test]
fn a_service_that_is_due_as_a_packet_arrives_makes_room_for_it() {
    let queue = aqm::Config::DropTail(drop_tail::Config { packets: Some(1), ..drop_tail::Config::default() });
    let config = Config { queue, service: rate(12_000_000), delay: Span::from_millis(20).into(), ..Config::default() };
    let driver = Driver::new(config).run([(ms(0), 1500), (ms(0), 1500), (ms(0), 1500), (ms(1), 1500)]);
    assert_eq!(driver.lost, [(2, DropReason::Overflow)]);
    assert_eq!(driver.delivered, [(ms(21), 0), (ms(22), 1), (ms(23), 3)]);
}

#[test]
fn late_packets_of_one_time_keep_their_order() {
    let reordering = Some(Reordering { share: 1.0, delay: Span::from_millis(3), spread: Span::ZERO });
    let driver = Driver::new(Config { reordering, ..Config::default() }).run((0..5).map(|_| (ms(1), 100)));
    assert_eq!(driver.delivered, [0, 1, 2, 3, 4].map(|id| (ms(4), id)));
}

/// Opportunities are at 2, 2 and 5 ms. What is left of a turn is lost once one of them has found no packet.
#[test]
fn a_flow_keeps_its_turn_until_an_opportunity_has_found_nothing() {
    for (comes, order) in [(3, [0, 1, 1, 2]), (6, [0, 1, 2, 1])] {
        let queue = aqm::Config::Fq(aqm::fq::Config::default());
        let config = Config { queue, service: tiny_trace(Sharing::Packets), ..Config::default() };
        let mut link = Link::new(config, random(1));
        let mut served = Vec::new();
        let mut call = |link: &mut Link<TestPacket>, end| {
            while let Some(now) = link.poll_timeout().filter(|now| *now <= end) {
                link.handle_timeout(now, &mut no_drops);
                served.extend(link.poll_delivery(now).map(|packet| packet.flow));
            }
        };
        for (id, (time, flow)) in [(1, 0), (1, 1), (comes, 2), (comes, 1)].into_iter().enumerate() {
            call(&mut link, ms(time));
            link.handle_packet(TestPacket::new(id as u64, flow, 500), ms(time), &mut no_drops);
        }
        call(&mut link, ms(100));
        assert_eq!(served, order, "{comes} ms");
    }
}
