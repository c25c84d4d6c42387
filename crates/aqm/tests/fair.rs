//! The fair disciplines: shares, order of service, victims.

use aqm::{AnyQueue, Backlog, Config, DropReason, Ecn, Queue, fq, fq_codel};
use testkit::queue::TestPacket;
use units::{Bytes, Span, Time};

type Any = AnyQueue<TestPacket>;

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// Both disciplines, which share their flows the same way.
fn both(packets: u32) -> [Any; 2] {
    [
        AnyQueue::new(&Config::Fq(fq::Config { packets, ..Default::default() })),
        AnyQueue::new(&Config::FqCodel(fq_codel::Config { packets, ..Default::default() })),
    ]
}

fn fill(queue: &mut Any, flow: u64, len: u32, ids: core::ops::Range<u64>) -> Vec<(u64, u64)> {
    let mut lost = Vec::new();
    for id in ids {
        queue.enqueue(TestPacket::new(id, flow, len), ms(0), &mut |packet: TestPacket, reason| {
            assert_eq!(reason, DropReason::Overflow);
            lost.push((packet.flow, packet.id));
        });
    }
    lost
}

fn serve(queue: &mut Any) -> Option<TestPacket> {
    queue.dequeue(ms(0), &mut |_, _| panic!("nothing has waited"))
}

#[test]
fn flows_share_by_bytes_whatever_their_packet_sizes() {
    for mut queue in both(u32::MAX) {
        let sizes = [1500, 700, 100, 9000];
        for (flow, &len) in sizes.iter().enumerate() {
            fill(&mut queue, flow as u64, len, 0..400_000 / u64::from(len));
        }
        let mut bytes = [0; 4];
        while bytes.iter().sum::<u64>() < 1_000_000 {
            let packet = serve(&mut queue).unwrap();
            bytes[packet.flow as usize] += u64::from(packet.len);
        }
        for (flow, served) in bytes.iter().enumerate() {
            // DRR keeps each flow within a quantum and its largest packet of its share.
            assert!(served.abs_diff(250_000) < 2 * 9000 + 1514, "flow {flow} got {served} of 250000 bytes");
        }
    }
}

#[test]
fn a_sparse_flow_goes_before_the_backlog_of_others() {
    for mut queue in both(u32::MAX) {
        fill(&mut queue, 1, 1500, 0..100);
        fill(&mut queue, 2, 1500, 100..200);
        for _ in 0..10 {
            serve(&mut queue).unwrap();
        }
        fill(&mut queue, 3, 100, 200..201);
        assert_eq!(serve(&mut queue).unwrap().id, 200);
    }
}

#[test]
fn a_new_flow_that_ran_empty_waits_behind_the_old_ones_once() {
    for mut queue in both(u32::MAX) {
        fill(&mut queue, 1, 100, 0..100);
        for _ in 0..20 {
            serve(&mut queue).unwrap();
        }
        // Flow 1 is old by now. Flow 2 is served at once as new, and found empty after that.
        fill(&mut queue, 2, 100, 200..201);
        assert_eq!(serve(&mut queue).unwrap().flow, 2);
        assert_eq!(serve(&mut queue).unwrap().flow, 1);
        // It comes back: not as new, but after what is left of flow 1's turn.
        fill(&mut queue, 2, 100, 201..202);
        let order: Vec<u64> = (0..20).map(|_| serve(&mut queue).unwrap().flow).collect();
        let turn = order.iter().position(|&flow| flow == 2).unwrap();
        assert!((5..=15).contains(&turn), "served after {turn} packets of 100 bytes of a quantum of 1514");
    }
}

#[test]
fn a_full_fq_loses_the_head_of_the_fattest_flow() {
    let [mut queue, _] = both(10);
    // The most packets are not the most bytes.
    assert_eq!(fill(&mut queue, 1, 100, 0..6), []);
    assert_eq!(fill(&mut queue, 2, 1500, 10..14), []);
    assert_eq!(fill(&mut queue, 1, 100, 6..8), [(2, 10), (2, 11)]);
    assert_eq!(fill(&mut queue, 3, 9000, 20..21), [(3, 20)]);
    // Flows 4 and 5 are equal: the one that is served first loses.
    let [mut queue, _] = both(4);
    fill(&mut queue, 4, 1500, 0..2);
    fill(&mut queue, 5, 1500, 10..12);
    assert_eq!(fill(&mut queue, 6, 100, 20..21), [(4, 0)]);
}

#[test]
fn a_full_fq_codel_loses_half_of_the_fattest_flow() {
    let [_, mut queue] = both(100);
    fill(&mut queue, 1, 1500, 0..60);
    fill(&mut queue, 2, 1000, 100..140);
    let lost = fill(&mut queue, 3, 100, 200..201);
    assert_eq!(lost, (0..30).map(|id| (1, id)).collect::<Vec<_>>());
    assert_eq!(queue.backlog(), Backlog { packets: 71, bytes: 30 * 1500 + 40 * 1000 + 100 });
}

#[test]
fn a_full_fq_codel_loses_at_most_64_packets_at_once() {
    let [_, mut queue] = both(1000);
    fill(&mut queue, 1, 1500, 0..1000);
    assert_eq!(fill(&mut queue, 2, 100, 1000..1001).len(), 64);
}

#[test]
fn the_memory_limit_counts_what_the_kernel_would_allocate() {
    assert_eq!(fq_codel::truesize(1514), 2304);
    assert_eq!(fq_codel::truesize(66), 768);
    // With 64 bytes of headroom and 320 at the end, 128 bytes fill half a KiB exactly, and 640 bytes a KiB.
    assert_eq!([128, 129, 640, 641].map(fq_codel::truesize), [512, 1024, 1024, 2048].map(|data| data + 256));
    let config = fq_codel::Config { bytes: Bytes::new(20 * 768), ..Default::default() };
    let mut queue = AnyQueue::new(&Config::FqCodel(config));
    assert_eq!(fill(&mut queue, 1, 66, 0..20), []);
    assert_eq!(fill(&mut queue, 1, 66, 20..21).len(), 11, "until half of the bytes of 21 packets are gone");
}

#[test]
fn memory_is_given_back_when_packets_are_served() {
    let config = fq_codel::Config { bytes: Bytes::new(20 * 2304), ..Default::default() };
    let mut queue = AnyQueue::new(&Config::FqCodel(config));
    for id in (0..1000).step_by(20) {
        assert_eq!(fill(&mut queue, id % 3, 1500, id..id + 20), []);
        for _ in 0..20 {
            serve(&mut queue).unwrap();
        }
    }
}

#[test]
fn each_flow_has_a_control_law_of_its_own() {
    // FQ-CoDel marks by default.
    let mut queue = AnyQueue::new(&Config::FqCodel(fq_codel::Config::default()));
    // Flow 1 is ECN-capable and stands; flow 2 sends a packet a millisecond and is served at once, being sparse.
    for id in 0..3000 {
        queue.enqueue(TestPacket::new(id, 1, 1500).with_ecn(Ecn::Ect0), ms(0), &mut |_, _| panic!("a drop"));
    }
    let mut marked = 0;
    for t in 0..1000 {
        let packet = TestPacket::new(10_000 + t, 2, 200).with_ecn(Ecn::Ect0);
        queue.enqueue(packet, ms(t), &mut |_, _| panic!("a drop"));
        for _ in 0..2 {
            let packet = queue.dequeue(ms(t), &mut |_, _| panic!("a drop")).unwrap();
            if packet.ecn == Ecn::Ce {
                assert_eq!(packet.flow, 1, "the flow without a standing queue was marked");
                marked += 1;
            }
        }
    }
    assert!(marked > 10, "{marked} marks");
    assert_eq!(queue.marks(), marked);
}

/// Serves a packet a millisecond, and gives the times of CoDel's drops in ms.
fn control_drops(queue: &mut Any, times: core::ops::Range<u64>) -> Vec<u64> {
    let mut drops = Vec::new();
    for t in times {
        queue.dequeue(ms(t), &mut |_: TestPacket, reason| {
            assert_eq!(reason, DropReason::Control);
            drops.push(t);
        });
    }
    drops
}

/// Linux `fq_codel_drop` adds the packets that a limit loses to CoDel's count, so the next drops come as fast as after as many
/// of its own: 100 ms over the square root.
#[test]
fn what_a_full_fq_codel_loses_counts_in_the_control_law_of_its_flow() {
    let [_, mut queue] = both(2000);
    assert_eq!(fill(&mut queue, 1, 1500, 0..2001).len(), 64);
    // The drop state begins with a count of 64: 100/8 = 12.5 ms, and then 100/sqrt(65) = 12.40 and 100/sqrt(66) = 12.31.
    assert_eq!(control_drops(&mut queue, 0..144), [105, 118, 130, 143]);

    // In the drop state, the drop that is due next comes when it would, and those after it faster.
    let [_, mut queue] = both(2000);
    fill(&mut queue, 1, 1500, 0..2000);
    assert_eq!(control_drops(&mut queue, 0..207), [105, 205]);
    let lost = fill(&mut queue, 1, 1500, 2000..2000 + 207 + 2 + 1);
    assert_eq!(lost.len(), 64);
    // Due at 275.71; the count is then 2 + 64 + 1: 100/sqrt(67) = 12.22 and 100/sqrt(68) = 12.13 ms later.
    assert_eq!(control_drops(&mut queue, 207..302), [276, 288, 301]);
}

#[test]
fn what_a_full_fq_codel_loses_of_a_flow_is_nothing_to_the_others() {
    let [_, mut queue] = both(2000);
    fill(&mut queue, 2, 1400, 0..900);
    assert_eq!(fill(&mut queue, 1, 1500, 1000..2101), (1000..1064).map(|id| (1, id)).collect::<Vec<_>>());
    let mut drops = Vec::new();
    for t in 0..260 {
        queue.dequeue(ms(t), &mut |packet: TestPacket, _| {
            if packet.flow == 2 {
                drops.push(t);
            }
        });
    }
    // Of flow 2, each is the first and the second drop of a control law that nothing has told of the other's.
    let [first, second] = drops[..] else { panic!("{drops:?}") };
    assert!((105..=107).contains(&first) && (100..=102).contains(&(second - first)), "{drops:?}");
}

#[test]
fn the_salt_decides_which_flows_collide() {
    // With two buckets, flows 0 to 15 split in some way; another salt splits them in another.
    let split = |salt| -> Vec<bool> {
        (1..16)
            .map(|flow| {
                let config = fq::Config { queues: 2, salt, ..Default::default() };
                let mut queue = AnyQueue::new(&Config::Fq(config));
                fill(&mut queue, 0, 1500, 0..3);
                fill(&mut queue, flow, 1500, 10..13);
                let order: Vec<u64> = core::iter::from_fn(|| serve(&mut queue)).map(|packet| packet.flow).collect();
                // One bucket is one FIFO.
                order == [0, 0, 0, flow, flow, flow]
            })
            .collect()
    };
    let (one, other) = (split(1), split(2));
    assert!(one.contains(&true) && one.contains(&false));
    assert_ne!(one, other);
    assert_eq!(one, split(1));
}

#[test]
fn a_flow_waits_once_its_quantum_is_spent() {
    // A packet of a quantum spends all of it: the flows take turns.
    let queues = [
        AnyQueue::new(&Config::Fq(fq::Config { quantum: Bytes::new(1000), ..Default::default() })),
        AnyQueue::new(&Config::FqCodel(fq_codel::Config { quantum: Bytes::new(1000), ..Default::default() })),
    ];
    for mut queue in queues {
        fill(&mut queue, 1, 1000, 0..3);
        fill(&mut queue, 2, 1000, 10..13);
        let order: Vec<u64> = core::iter::from_fn(|| serve(&mut queue)).map(|packet| packet.id).collect();
        assert_eq!(order, [0, 10, 1, 11, 2, 12]);
    }
}

#[test]
fn without_a_bucket_there_is_one() {
    let mut queue = AnyQueue::new(&Config::Fq(fq::Config { queues: 0, ..Default::default() }));
    fill(&mut queue, 1, 1500, 0..2);
    fill(&mut queue, 2, 1500, 2..4);
    let order: Vec<u64> = core::iter::from_fn(|| serve(&mut queue)).map(|packet| packet.id).collect();
    assert_eq!(order, [0, 1, 2, 3]);
}

#[test]
fn a_full_fq_codel_loses_at_least_a_packet_however_short() {
    let mut queue = AnyQueue::new(&Config::FqCodel(fq_codel::Config { packets: 1, ..Default::default() }));
    assert_eq!(fill(&mut queue, 1, 1, 0..2), [(1, 0)]);
    // Half of a byte is none.
    assert_eq!(fill(&mut queue, 2, 1, 2..3).len(), 1);
    assert_eq!(queue.backlog(), Backlog { packets: 1, bytes: 1 });
}
