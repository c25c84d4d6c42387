//! The control law against RFC 8289's pseudo-code, and by hand.

use std::collections::VecDeque;

use aqm::codel::{Codel, Config};
use aqm::{DropReason, Ecn, Packet, Queue, sojourn};
use bolero::check;
use testkit::queue::{Op, TestPacket};
use units::{Span, Time};

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// RFC 8289, sections 5.2 to 5.6, literally: signed time in nanoseconds, 0 for "not above", a count of 32 bits.
struct Rfc8289 {
    queue: VecDeque<TestPacket>,
    bytes: u64,
    first_above_time: i64,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    dropped: Vec<u64>,
}

const TARGET: i64 = 5_000_000;
const INTERVAL: i64 = 100_000_000;
const MAXPACKET: u64 = 1514;

impl Rfc8289 {
    fn new() -> Self {
        Rfc8289 {
            queue: VecDeque::new(),
            bytes: 0,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            dropped: Vec::new(),
        }
    }

    fn enque(&mut self, mut p: TestPacket, now: i64) {
        p.enqueued = Time::from_nanos(now as u64);
        self.bytes += u64::from(p.len);
        self.queue.push_back(p);
    }

    fn control_law(t: i64, count: u32) -> i64 {
        t + (INTERVAL as f64 / f64::from(count).sqrt()) as i64
    }

    fn dodeque(&mut self, now: i64) -> (Option<TestPacket>, bool) {
        let Some(p) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.bytes -= u64::from(p.len);
        let mut ok_to_drop = false;
        let sojourn_time = now - p.enqueued.as_nanos() as i64;
        if sojourn_time < TARGET || self.bytes <= MAXPACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn deque(&mut self, now: i64) -> Option<TestPacket> {
        let mut r = self.dodeque(now);
        if self.dropping {
            if !r.1 {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.push(r.0.unwrap().id);
                self.count += 1;
                r = self.dodeque(now);
                if !r.1 {
                    self.dropping = false;
                } else {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                }
            }
        } else if r.1 {
            self.dropped.push(r.0.unwrap().id);
            r = self.dodeque(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now - self.drop_next < 16 * INTERVAL {
                self.count = delta;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.0
    }
}

#[test]
fn codel_does_what_the_pseudo_code_of_rfc_8289_does() {
    // Each step of the list is stretched so that queues last for many intervals.
    let mut drops_seen = 0;
    check!().with_type::<Vec<Op>>().for_each(|ops| {
        let mut oracle = Rfc8289::new();
        let mut queue = Codel::new(Config { packets: u32::MAX, ..Config::default() });
        let mut dropped = Vec::new();
        let mut now = Time::from_nanos(1);
        let mut id = 0;
        for op in ops {
            match *op {
                Op::Arrive { count, len, .. } => {
                    for _ in 0..u32::from(count) {
                        id += 1;
                        let packet = TestPacket::new(id, 0, u32::from(len % 1500) + 1);
                        oracle.enque(packet, now.as_nanos() as i64);
                        queue.enqueue(packet, now, &mut |_, _| panic!("there is no limit"));
                    }
                }
                Op::Serve { count, each } => {
                    for _ in 0..count {
                        let served = queue.dequeue(now, &mut |packet: TestPacket, _: DropReason| {
                            dropped.push(packet.id);
                        });
                        assert_eq!(served, oracle.deque(now.as_nanos() as i64));
                        assert_eq!(dropped, oracle.dropped);
                        now += Span::from_micros(u64::from(each) * 50);
                    }
                }
                Op::Wait { millis } => now += Span::from_millis(u64::from(millis) / 8),
            }
        }
        drops_seen += dropped.len();
    });
    assert!(drops_seen > 0, "no list led to a drop, so nothing was compared");
}

/// Serves one packet a millisecond of a queue that was filled at time zero, and gives the times of the drops in ms.
fn drop_times(queue: &mut Codel<TestPacket>, until: u64) -> Vec<u64> {
    let mut times = Vec::new();
    for t in 0..until {
        queue.dequeue(ms(t), &mut |_: TestPacket, reason| {
            assert_eq!(reason, DropReason::Control);
            times.push(t);
        });
    }
    times
}

fn filled(config: Config, ecn: Ecn) -> Codel<TestPacket> {
    let mut queue = Codel::new(Config { packets: u32::MAX, ..config });
    for id in 0..2000 {
        queue.enqueue(TestPacket::new(id, 0, 1500).with_ecn(ecn), ms(0), &mut |_, _| panic!("there is no limit"));
    }
    queue
}

#[test]
fn drops_come_at_interval_over_the_square_root_of_count() {
    // Above the target from 5 ms on, so the first drop is at 105; then 205, and 100/sqrt(2) = 70.71, 57.74, 50, 44.72
    // ms later each, at the next service opportunity: 275.71, 333.45, 383.45, 428.17.
    assert_eq!(drop_times(&mut filled(Config::default(), Ecn::NotEct), 430), [105, 205, 276, 334, 384, 429]);
}

#[test]
fn ecn_marks_at_the_times_at_which_it_would_drop() {
    let mut queue = filled(Config::default(), Ecn::Ect0);
    let mut marked = Vec::new();
    for t in 0..430 {
        let packet = queue.dequeue(ms(t), &mut |_, _| panic!("ECN-capable packets are not dropped")).unwrap();
        if packet.ecn() == Ecn::Ce {
            marked.push(t);
        }
    }
    assert_eq!(marked, [105, 205, 276, 334, 384, 429]);
    assert_eq!(queue.marks(), 6);
}

#[test]
fn with_ecn_on_a_packet_that_is_not_capable_is_dropped() {
    let mut queue = filled(Config::default(), Ecn::NotEct);
    assert_eq!(drop_times(&mut queue, 210), [105, 205]);
    assert_eq!(queue.marks(), 0);
}

#[test]
fn with_ecn_off_a_packet_that_is_capable_is_dropped_too() {
    let mut queue = filled(Config { ecn: false, ..Config::default() }, Ecn::Ect0);
    assert_eq!(drop_times(&mut queue, 210), [105, 205]);
    assert_eq!(queue.marks(), 0);
}

#[test]
fn the_ce_threshold_marks_every_packet_that_waited_longer() {
    let config = Config { ce_threshold: Some(Span::from_millis(20)), ..Config::default() };
    let mut queue = filled(config, Ecn::Ect1);
    for t in 0..40 {
        let packet = queue.dequeue(ms(t), &mut |_, _| panic!("too early for a drop")).unwrap();
        assert_eq!(packet.ecn() == Ecn::Ce, t > 20, "at {t} ms");
    }
    assert_eq!(queue.marks(), 19);
}

/// RFC 8289 section 5.4: `count` is kept if the drop that was not carried out is less than 16 intervals ago.
#[test]
fn a_drop_state_is_resumed_within_16_intervals_and_begins_anew_after_them() {
    // Drops at 105, 205 and 275.71 ms: the next would be 100/sqrt(3) = 57.735 ms later.
    let not_carried_out = 105_000_000 + 100_000_000 + 70_710_678 + 57_735_026;
    for (after_ns, next_ms) in [(1_600_000_000 - 1, 70_710_678), (1_600_000_000, 100_000_000)] {
        let mut queue = filled(Config::default(), Ecn::NotEct);
        assert_eq!(drop_times(&mut queue, 300), [105, 205, 276]);
        while queue.dequeue(ms(300), &mut |_, _| panic!("no drop is due")).is_some() {}
        for id in 0..500 {
            queue.enqueue(TestPacket::new(id, 0, 1500), ms(1000), &mut |_, _| panic!("there is no limit"));
        }
        let mut drops = 0;
        let mut serve = |now| {
            queue.dequeue(now, &mut |_: TestPacket, _: DropReason| drops += 1);
            core::mem::take(&mut drops)
        };
        // Above the target for an interval.
        assert_eq!(serve(ms(1800)), 0);
        let entered = Time::from_nanos(not_carried_out + after_ns);
        assert_eq!(serve(entered), 1);
        let next = entered + Span::from_nanos(next_ms);
        assert_eq!([serve(next - Span::from_nanos(1)), serve(next)], [0, 1], "{after_ns} ns after it");
    }
}

#[test]
fn a_backlog_of_one_mtu_is_never_too_much() {
    let mut queue = Codel::new(Config::default());
    for id in 0..500 {
        // One packet behind the one that is served, which has waited for 100 ms.
        queue.enqueue(TestPacket::new(id, 0, 1514), ms(id * 100), &mut |_, _| panic!("a drop"));
        if id > 0 {
            assert!(queue.dequeue(ms(id * 100), &mut |_, _| panic!("a drop")).is_some());
        }
    }
}

#[test]
fn the_hard_limit_loses_the_arriving_packet() {
    let mut queue = Codel::new(Config::default());
    let mut lost = Vec::new();
    for id in 0..1001 {
        queue.enqueue(TestPacket::new(id, 0, 1500), ms(0), &mut |packet: TestPacket, reason| {
            lost.push((packet.id, reason));
        });
    }
    assert_eq!(lost, [(1000, DropReason::Overflow)]);
}

#[test]
fn an_overloaded_queue_settles_near_the_target() {
    // A source that never slows down, 5 % above a link of one packet a millisecond, for 60 s.
    let mut queue = Codel::new(Config::default());
    let mut arrivals = 0;
    let mut waits = Vec::new();
    let mut drops = 0;
    for t in 0..60_000 {
        let now = ms(t);
        while Time::from_nanos(arrivals * 1_000_000_000 / 1050) <= now {
            let at = Time::from_nanos(arrivals * 1_000_000_000 / 1050);
            queue.enqueue(TestPacket::new(arrivals, 0, 1500), at, &mut |_, _| panic!("the limit was reached"));
            arrivals += 1;
        }
        if let Some(packet) = queue.dequeue(now, &mut |_: TestPacket, _| drops += 1)
            && t > 20_000
        {
            waits.push(sojourn(&packet, now).as_micros());
        }
    }
    waits.sort_unstable();
    let median = waits[waits.len() / 2];
    let p95 = waits[waits.len() * 95 / 100];
    assert!((2_000..10_000).contains(&median), "median sojourn {median} us, 95th percentile {p95} us");
    assert!(p95 < 25_000, "95th percentile {p95} us");
    assert!((2_800..3_100).contains(&drops), "{drops} drops do not make up for the overload of 3000 packets");
}
