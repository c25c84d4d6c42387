//! Drop-tail and `pfifo_fast`: who waits where, and who is lost.

use aqm::drop_tail::{self, DropTail, Victim};
use aqm::gate::{self, Gate};
use aqm::pfifo_fast::{self, PfifoFast};
use aqm::{AnyQueue, Backlog, Config, DropReason, Ecn, Limit, Packet, Queue, codel, fq, fq_codel};
use testkit::queue::TestPacket;
use units::{Bytes, Span, Time};

const NOW: Time = Time::ZERO;

/// Fills `queue` with packets of (flow, length), numbered from 0, and gives the numbers of the lost and of the served.
fn play(mut queue: impl Queue<TestPacket>, packets: &[(u64, u32)]) -> (Vec<u64>, Vec<u64>) {
    let (mut lost, mut served) = (Vec::new(), Vec::new());
    let mut drops = |packet: TestPacket, _: DropReason| lost.push(packet.id);
    for (id, &(flow, len)) in packets.iter().enumerate() {
        queue.enqueue(TestPacket::new(id as u64, flow, len), NOW, &mut drops);
    }
    while let Some(packet) = queue.dequeue(NOW, &mut drops) {
        served.push(packet.id);
    }
    (lost, served)
}

#[test]
fn a_full_drop_tail_loses_the_arriving_packet() {
    let queue = DropTail::new(drop_tail::Config { packets: Some(2), ..Default::default() });
    assert_eq!(play(queue, &[(0, 100); 4]), (vec![2, 3], vec![0, 1]));
}

#[test]
fn a_byte_limit_is_reached_exactly_and_lets_smaller_packets_in() {
    let queue = DropTail::new(drop_tail::Config { bytes: Some(Bytes::new(3000)), ..Default::default() });
    assert_eq!(play(queue, &[(0, 1500), (0, 1400), (0, 101), (0, 100), (0, 1)]), (vec![2, 4], vec![0, 1, 3]));
}

#[test]
fn head_drop_makes_room_by_losing_the_oldest() {
    let config = drop_tail::Config { packets: Some(3), bytes: Some(Bytes::new(3000)), victim: Victim::Oldest };
    assert_eq!(play(DropTail::new(config), &[(0, 1000); 5]), (vec![0, 1], vec![2, 3, 4]));
    assert_eq!(play(DropTail::new(config), &[(0, 1000), (0, 1000), (0, 2500)]), (vec![0, 1], vec![2]));
}

#[test]
fn head_drop_does_not_empty_the_queue_for_a_packet_that_never_fits() {
    let config = drop_tail::Config { packets: None, bytes: Some(Bytes::new(3000)), victim: Victim::Oldest };
    assert_eq!(play(DropTail::new(config), &[(0, 1000), (0, 3001), (0, 1000)]), (vec![1], vec![0, 2]));
}

#[test]
fn pfifo_fast_serves_bands_in_strict_priority_by_linux_map() {
    // A test packet's flow is its priority: 6 and 7 are band 0; 0, 4 and 8 to 15 band 1; 1, 2, 3 and 5 band 2.
    let packets: Vec<(u64, u32)> = (0..16).map(|priority| (priority, 100)).collect();
    let (lost, served) = play(PfifoFast::new(pfifo_fast::Config::default()), &packets);
    assert!(lost.is_empty());
    assert_eq!(served, [6, 7, 0, 4, 8, 9, 10, 11, 12, 13, 14, 15, 1, 2, 3, 5]);
}

#[test]
fn a_full_band_of_pfifo_fast_leaves_room_in_the_others() {
    let (lost, served) = play(PfifoFast::new(pfifo_fast::Config::default()), &[(0, 100); 1002]);
    assert_eq!((lost, served.len()), (vec![1000, 1001], 1000));
    let queue = PfifoFast::new(pfifo_fast::Config { packets: 1 });
    assert_eq!(play(queue, &[(2, 100), (2, 100), (0, 100), (6, 100)]), (vec![1], vec![3, 2, 0]));
}

/// A queue of so many packets of 700 bytes of a priority, and whether it loses the packet that arrives after them.
fn loses(config: &Config, priority: u64, held: u64, len: u32) -> (AnyQueue<TestPacket>, bool) {
    let mut queue = AnyQueue::new(config);
    for id in 0..held {
        queue.enqueue(TestPacket::new(id, priority, 700), NOW, &mut |_: TestPacket, _: DropReason| panic!("no room"));
    }
    let mut lost = false;
    let before = queue.clone();
    queue.enqueue(TestPacket::new(held, priority, len), NOW, &mut |packet: TestPacket, _: DropReason| {
        lost |= packet.id == held;
    });
    (before, lost)
}

#[test]
fn a_queue_tells_beforehand_whether_it_would_lose_an_arriving_packet() {
    let drop_tail = |packets, bytes: Option<u64>, victim| {
        Config::DropTail(drop_tail::Config { packets, bytes: bytes.map(Bytes::new), victim })
    };
    let fifos = [
        drop_tail(None, None, Victim::Arriving),
        drop_tail(Some(3), None, Victim::Arriving),
        drop_tail(None, Some(2_100), Victim::Arriving),
        drop_tail(Some(3), Some(2_100), Victim::Oldest),
        drop_tail(Some(0), None, Victim::Oldest),
        Config::PfifoFast(pfifo_fast::Config { packets: 3 }),
    ];
    for config in fifos {
        let most = if config == fifos[4] { 0 } else { 3 };
        for total in 0..=most {
            for len in [1, 700, 1_400, 1_401, 2_100, 2_101] {
                let (_, lost) = loses(&config, 6, total, len);
                // The same packets, some of which are still to come.
                for ahead in 0..=total {
                    let (queue, _) = loses(&config, 6, total - ahead, len);
                    let ahead = Backlog { packets: ahead, bytes: 700 * ahead };
                    assert_eq!(
                        queue.is_full(len, 6, ahead),
                        lost,
                        "{config:?}: {len} after {total}, {ahead:?} to come"
                    );
                }
            }
        }
    }
    // Another band has room, and more ahead than there is room for leaves none.
    let (full, _) = loses(&fifos[5], 6, 3, 1);
    assert!(!full.is_full(1, 0, Backlog::default()));
    assert!(full.is_full(1, 0, Backlog { packets: 4, bytes: 4 }));
    // Where the victim is not known beforehand, none is foretold.
    for config in [
        Config::Codel(codel::Config { packets: 1, ..Default::default() }),
        Config::Fq(fq::Config { packets: 1, ..Default::default() }),
        Config::FqCodel(fq_codel::Config { packets: 1, ..Default::default() }),
    ] {
        let (queue, _) = loses(&config, 0, 1, 700);
        assert!(!queue.is_full(700, 0, Backlog::default()));
    }
    let one = drop_tail::Config { packets: Some(1), ..Default::default() };
    let mut gate = Gate::new(&gate::Config { queue: Config::DropTail(one), limit: Limit::None });
    assert!(!gate.is_full(1, 0, Backlog::default()));
    gate.enqueue(TestPacket::new(0, 0, 1), NOW, &mut |_: TestPacket, _: DropReason| panic!("there is room"));
    assert!(gate.is_full(1, 0, Backlog::default()));
}

#[test]
fn what_is_taken_over_keeps_its_time_and_needs_no_room() {
    let mut queue = DropTail::new(drop_tail::Config { packets: Some(1), ..Default::default() });
    assert!(queue.head().is_none());
    let later = NOW + Span::from_millis(7);
    queue.enqueue(TestPacket::new(0, 0, 100), later, &mut |_: TestPacket, _: DropReason| panic!("there is room"));
    let mut above = TestPacket::new(1, 0, 200);
    above.set_enqueued(NOW + Span::from_millis(3));
    queue.take_over(above);
    assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 300 });
    for (id, entered) in [(0, 7), (1, 3)] {
        let head = queue.head().copied();
        let served = queue.dequeue(later, &mut |_: TestPacket, _: DropReason| panic!("nothing is dropped"));
        assert_eq!((served, served.map(|packet| packet.id)), (head, Some(id)));
        assert_eq!(served.map(|packet| packet.enqueued), Some(NOW + Span::from_millis(entered)));
    }
}

#[test]
fn the_ecn_field_is_the_lowest_two_bits() {
    for bits in 0..=u8::MAX {
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits % 4)];
        assert_eq!(Ecn::from_bits(bits), ecn, "{bits}");
        assert_eq!(ecn.capable(), bits % 4 != 0);
    }
}
