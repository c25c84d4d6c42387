//! Drop-tail and `pfifo_fast`: who waits where, and who is lost.

use aqm::drop_tail::{self, DropTail, Victim};
use aqm::pfifo_fast::{self, PfifoFast};
use aqm::{DropReason, Queue};
use testkit::queue::TestPacket;
use units::Time;

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
    let queue = DropTail::new(drop_tail::Config { bytes: Some(3000), ..Default::default() });
    assert_eq!(play(queue, &[(0, 1500), (0, 1400), (0, 101), (0, 100), (0, 1)]), (vec![2, 4], vec![0, 1, 3]));
}

#[test]
fn head_drop_makes_room_by_losing_the_oldest() {
    let config = drop_tail::Config { packets: Some(3), bytes: Some(3000), victim: Victim::Oldest };
    assert_eq!(play(DropTail::new(config), &[(0, 1000); 5]), (vec![0, 1], vec![2, 3, 4]));
    assert_eq!(play(DropTail::new(config), &[(0, 1000), (0, 1000), (0, 2500)]), (vec![0, 1], vec![2]));
}

#[test]
fn head_drop_does_not_empty_the_queue_for_a_packet_that_never_fits() {
    let config = drop_tail::Config { packets: None, bytes: Some(3000), victim: Victim::Oldest };
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
    let queue = PfifoFast::new(pfifo_fast::Config { packets_per_band: Some(1) });
    assert_eq!(play(queue, &[(2, 100), (2, 100), (0, 100), (6, 100)]), (vec![1], vec![3, 2, 0]));
}
