//! What is handed down to a buffer below: byte queue limits, DynRLC, and the gate that keeps to them.

use std::collections::VecDeque;

use aqm::drop_tail;
use aqm::dyn_rlc::{self, DynRlc};
use aqm::gate::{self, Gate};
use aqm::{Backlog, Bql, DropReason, Limit, bql, fq_codel};
use bolero::{TypeGenerator, check};
use testkit::queue::TestPacket;
use units::{Bytes, Span, Time};

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

/// Fills to the limit with objects of `len` bytes; how many bytes went in.
fn fill(bql: &mut Bql, len: u64) -> u64 {
    let mut bytes = 0;
    while !bql.is_stopped() {
        bql.queued(len);
        bytes += len;
    }
    bytes
}

/// Worked by hand from the rules: a sender that always has more, and a buffer that sends 4500 bytes at a time.
#[test]
fn a_limit_grows_until_nothing_is_wanting() {
    let mut bql = Bql::new(bql::Config::default());
    // The limit is 0: one object goes in, and it is above the limit.
    assert_eq!(fill(&mut bql, 1500), 1500);
    bql.completed(1500, ms(1));
    // Empty although stopped: the limit grows by the 1500 that came after the last completion (0 were there then).
    assert_eq!(bql.limit(), 1500);
    // 1500 is not more than 1500: a second object goes in.
    assert_eq!(fill(&mut bql, 1500), 3000);
    bql.completed(3000, ms(2));
    assert_eq!(bql.limit(), 4500);
    assert_eq!(fill(&mut bql, 1500), 6000);
    // 4500 leave and 1500 remain: busy. Nothing had been there at the last completion, so nothing is learnt of slack.
    bql.completed(4500, ms(3));
    assert_eq!(bql.limit(), 4500);
    assert_eq!(fill(&mut bql, 1500), 4500);
}

/// Worked by hand: 2000 bytes leave each millisecond, and 12 000 are allowed.
#[test]
fn slack_is_taken_off_after_the_hold_time_and_not_before() {
    let mut bql = Bql::new(bql::Config::default());
    bql.queued(12_000);
    bql.completed(12_000, ms(1));
    assert_eq!(bql.limit(), 12_000);
    for at in 2..=1001 {
        fill(&mut bql, 1000);
        bql.completed(2000, ms(at));
        assert_eq!(bql.limit(), 12_000, "at {at} ms");
    }
    fill(&mut bql, 1000);
    bql.completed(2000, ms(1002));
    // There were 13 000, twice 2000 were needed.
    assert_eq!(bql.limit(), 3000);
    let mut bounded = Bql::new(bql::Config { min: Bytes::new(10_000), ..bql::Config::default() });
    for at in 1..3000 {
        fill(&mut bounded, 1000);
        bounded.completed(2000, ms(at));
    }
    assert_eq!(bounded.limit(), 10_000, "it does not go below its minimum");
}

/// The rules as they are written down for 32-bit counters that wrap, variable by variable.
#[derive(Default)]
struct Transcript {
    num_queued: u32,
    last_obj_cnt: u32,
    limit: u32,
    num_completed: u32,
    prev_ovlimit: u32,
    prev_num_queued: u32,
    prev_last_obj_cnt: u32,
    lowest_slack: u32,
    slack_start_ms: u64,
    min_limit: u32,
    max_limit: u32,
    hold_ms: u64,
}

fn posdiff(a: u32, b: u32) -> u32 {
    u32::try_from(a.wrapping_sub(b) as i32).unwrap_or(0)
}

impl Transcript {
    fn new(config: &bql::Config) -> Transcript {
        Transcript {
            // Close to where they wrap.
            num_queued: u32::MAX - 70_000,
            num_completed: u32::MAX - 70_000,
            prev_num_queued: u32::MAX - 70_000,
            limit: config.min.get() as u32,
            min_limit: config.min.get() as u32,
            max_limit: config.max.get() as u32,
            lowest_slack: u32::MAX,
            hold_ms: config.hold.as_nanos() / 1_000_000,
            ..Transcript::default()
        }
    }

    fn avail(&self) -> i32 {
        self.limit.wrapping_add(self.num_completed).wrapping_sub(self.num_queued) as i32
    }

    fn queued(&mut self, count: u32) {
        self.last_obj_cnt = count;
        self.num_queued = self.num_queued.wrapping_add(count);
    }

    fn completed(&mut self, count: u32, now_ms: u64) {
        let completed = self.num_completed.wrapping_add(count);
        let mut limit = self.limit;
        let mut ovlimit = posdiff(self.num_queued.wrapping_sub(self.num_completed), limit);
        let inprogress = self.num_queued.wrapping_sub(completed);
        let prev_inprogress = self.prev_num_queued.wrapping_sub(self.num_completed);
        let all_prev_completed = completed.wrapping_sub(self.prev_num_queued) as i32 >= 0;
        if (ovlimit > 0 && inprogress == 0) || (self.prev_ovlimit > 0 && all_prev_completed) {
            limit += posdiff(completed, self.prev_num_queued) + self.prev_ovlimit;
            self.slack_start_ms = now_ms;
            self.lowest_slack = u32::MAX;
        } else if inprogress > 0 && prev_inprogress > 0 && !all_prev_completed {
            let mut slack = posdiff(limit + self.prev_ovlimit, 2 * count);
            let slack_last_objs =
                if self.prev_ovlimit > 0 { posdiff(self.prev_last_obj_cnt, self.prev_ovlimit) } else { 0 };
            slack = slack.max(slack_last_objs);
            self.lowest_slack = self.lowest_slack.min(slack);
            if now_ms > self.slack_start_ms + self.hold_ms {
                limit = posdiff(limit, self.lowest_slack);
                self.slack_start_ms = now_ms;
                self.lowest_slack = u32::MAX;
            }
        }
        limit = limit.clamp(self.min_limit, self.max_limit);
        if limit != self.limit {
            self.limit = limit;
            ovlimit = 0;
        }
        self.prev_ovlimit = ovlimit;
        self.prev_last_obj_cnt = self.last_obj_cnt;
        self.num_completed = completed;
        self.prev_num_queued = self.num_queued;
    }
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Step {
    /// As much as is allowed is put in, in objects of so many bytes, at most so many.
    Put { len: u16, most: u8 },
    /// So many 256ths of what is there leave after so many milliseconds.
    Leave { share: u8, after: u8 },
}

#[test]
fn bql_does_what_its_transcript_does() {
    let configs = [
        bql::Config::default(),
        bql::Config {
            min: Bytes::new(3000),
            max: Bytes::new(20_000),
            hold: Span::from_millis(50),
            ..bql::Config::default()
        },
        bql::Config { hold: Span::from_millis(10), ..bql::Config::default() },
    ];
    check!().with_type::<(u8, Vec<Step>)>().for_each(|(which, steps)| {
        let config = configs[usize::from(*which) % configs.len()];
        let (mut bql, mut transcript) = (Bql::new(config), Transcript::new(&config));
        let (mut inside, mut now) = (0u64, 0);
        for step in steps {
            match *step {
                Step::Put { len, most } => {
                    let len = u64::from(len % 3000) + 1;
                    for _ in 0..most {
                        assert_eq!(bql.is_stopped(), transcript.avail() < 0);
                        if bql.is_stopped() {
                            break;
                        }
                        bql.queued(len);
                        transcript.queued(len as u32);
                        inside += len;
                    }
                }
                Step::Leave { share, after } => {
                    now += u64::from(after);
                    let bytes = inside * (u64::from(share) + 1) / 256;
                    if bytes > 0 {
                        bql.completed(bytes, ms(now));
                        transcript.completed(bytes as u32, now);
                        inside -= bytes;
                    }
                }
            }
            assert_eq!(bql.limit(), u64::from(transcript.limit));
        }
    });
}

#[test]
fn dyn_rlc_shrinks_above_its_target_and_grows_below_it() {
    let config = dyn_rlc::Config::default();
    let mut dyn_rlc = DynRlc::new(config);
    assert_eq!(dyn_rlc.threshold(), 10);
    // Each waits 5 ms: at the end of each interval it grows by a tenth of what is left to 333, rounded down.
    let mut now = 0;
    let mut run = |dyn_rlc: &mut DynRlc, wait: u64, for_ms: u64| {
        for _ in 0..for_ms / wait {
            dyn_rlc.queued(ms(now));
            now += wait;
            dyn_rlc.completed(1, ms(now));
        }
    };
    run(&mut dyn_rlc, 5, 200);
    assert_eq!(dyn_rlc.threshold(), 10 + 32);
    run(&mut dyn_rlc, 5, 200);
    assert_eq!(dyn_rlc.threshold(), 42 + 29);
    // 25 ms is more than 20: it shrinks by a tenth of what is above 2.
    run(&mut dyn_rlc, 25, 200);
    assert_eq!(dyn_rlc.threshold(), 71 - 6);
    run(&mut dyn_rlc, 25, 200 * 100);
    assert_eq!(dyn_rlc.threshold(), 2, "by one at least, and not below its minimum");
    run(&mut dyn_rlc, 5, 200 * 200);
    assert_eq!(dyn_rlc.threshold(), 333, "nor beyond its maximum");
}

/// A threshold from its initial state of 10, with a tenth of 333 - 10 to grow by and one of 8 to shrink by, rounded down, but at
/// least one.
fn dyn_rlc_after(sdus: &[(u64, u64)]) -> u32 {
    let mut dyn_rlc = DynRlc::new(dyn_rlc::Config::default());
    for &(entered, left) in sdus {
        dyn_rlc.queued(ms(entered));
        dyn_rlc.completed(1, ms(left));
    }
    dyn_rlc.threshold()
}

#[test]
fn dyn_rlc_changes_at_the_end_of_an_interval_by_the_mean_of_what_left_in_it() {
    // What leaves at the end of the interval counts in it, and so does nothing that leaves before.
    assert_eq!(dyn_rlc_after(&[(194, 199)]), 10);
    assert_eq!(dyn_rlc_after(&[(195, 200)]), 10 + 32);
    // A mean that is the target is not above it.
    assert_eq!(dyn_rlc_after(&[(180, 200)]), 10 + 32);
    assert_eq!(dyn_rlc_after(&[(179, 200)]), 10 - 1);
    assert_eq!(dyn_rlc_after(&[(0, 10), (169, 199), (180, 200)]), 10 + 32, "10, 30 and 20 ms are 20 on average");
    assert_eq!(dyn_rlc_after(&[(0, 10), (169, 199), (179, 200)]), 10 - 1, "10, 30 and 21 ms are more");
    // Each interval forgets the one before, and begins when the threshold changed: at 250, not at 200.
    assert_eq!(dyn_rlc_after(&[(100, 250), (445, 449)]), 10 - 1);
    assert_eq!(dyn_rlc_after(&[(100, 250), (445, 450)]), 9 + 32);
    // Nothing is learnt of an interval in which nothing left.
    assert_eq!(dyn_rlc_after(&[(100, 200), (995, 1000)]), 9 + 32);
}

#[test]
fn dyn_rlc_begins_and_stays_within_its_limits() {
    let with = |min, max| DynRlc::new(dyn_rlc::Config { min, max, ..dyn_rlc::Config::default() });
    assert_eq!([with(2, 333), with(20, 333), with(2, 5)].map(|dyn_rlc| dyn_rlc.threshold()), [10, 20, 5]);
    let mut dyn_rlc = with(2, 3);
    assert!(!dyn_rlc.is_stopped());
    (0..2).for_each(|_| dyn_rlc.queued(ms(0)));
    assert!(!dyn_rlc.is_stopped());
    dyn_rlc.queued(ms(0));
    assert!(dyn_rlc.is_stopped(), "as many as the threshold");
    // Of three that enter together, two are completed: the third one's time goes on.
    dyn_rlc.completed(2, ms(200));
    assert_eq!(dyn_rlc.threshold(), 2);
    dyn_rlc.completed(7, ms(400));
    assert_eq!(dyn_rlc.threshold(), 2);
    dyn_rlc.completed(1, ms(900));
    dyn_rlc.queued(ms(900));
    dyn_rlc.completed(1, ms(901));
    assert_eq!(dyn_rlc.threshold(), 3);
}

#[test]
fn dyn_rlc_counts_sdus_whichever_of_them_leave() {
    let two = dyn_rlc::Config { min: 2, max: 2, ..dyn_rlc::Config::default() };
    let config = gate::Config { limit: Limit::DynRlc(two), ..gate::Config::default() };
    let mut gate: Gate<TestPacket> = Gate::new(&config);
    for (id, len) in [(0, 1000), (1, 400), (2, 400), (3, 400)] {
        gate.enqueue(TestPacket::new(id, 0, len), ms(0), &mut |_: TestPacket, _: DropReason| panic!("there is room"));
    }
    let next = |gate: &mut Gate<TestPacket>, now| gate.release(now, &mut |_: TestPacket, _: DropReason| {});
    assert!(next(&mut gate, ms(0)).is_some() && next(&mut gate, ms(0)).is_some() && gate.is_stopped());
    assert!(next(&mut gate, ms(0)).is_none(), "the quota is used up");
    // The newer of the two is discarded: as many bytes as a part of the older one.
    gate.settle(Backlog { packets: 1, bytes: 1000 }, ms(1));
    assert!(next(&mut gate, ms(1)).is_some() && gate.is_stopped());
    gate.settle(Backlog { packets: 1, bytes: 1000 }, ms(2));
    assert!(!gate.is_stopped(), "only the first is inside");
}

#[test]
fn dyn_rlc_changes_when_sdus_leave_and_at_no_other_time() {
    let config = dyn_rlc::Config { max: 4, ..dyn_rlc::Config::default() };
    let mut gate: Gate<TestPacket> =
        Gate::new(&gate::Config { limit: Limit::DynRlc(config), ..gate::Config::default() });
    for id in 0..5 {
        gate.enqueue(TestPacket::new(id, 0, 100), ms(0), &mut |_: TestPacket, _: DropReason| panic!("there is room"));
    }
    while gate.release(ms(0), &mut |_: TestPacket, _: DropReason| {}).is_some() {}
    let mut is_stopped_with = |packets, now| {
        gate.settle(Backlog { packets, bytes: packets * 100 }, ms(now));
        gate.is_stopped()
    };
    // The first that leaves has been inside for longer than the target; the interval ends at 200 ms.
    assert!(is_stopped_with(4, 0));
    assert_eq!([(3, 199), (3, 200)].map(|(packets, now)| is_stopped_with(packets, now)), [false, false]);
    assert_eq!(
        [(2, 201), (3, 202)].map(|(packets, now)| is_stopped_with(packets, now)),
        [false, true],
        "3 is the threshold"
    );
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Act {
    /// A packet of this flow comes.
    Arrive { flow: u8, len: u16 },
    /// The buffer below takes what it may, and sends so many packets.
    Serve { packets: u8, after: u8 },
    /// The buffer below is full for a while: the hard stop.
    Full,
}

/// Whatever stops and wakes: nothing is lost but by the discipline, nothing doubled, no flow reordered, and nothing is
/// stopped above an empty buffer.
#[test]
fn a_gate_conserves_and_never_starves_an_empty_buffer() {
    let limits = [Limit::None, Limit::Bql(bql::Config::default()), Limit::DynRlc(dyn_rlc::Config::default())];
    let fair = fq_codel::Config { packets: 20, ..fq_codel::Config::default() };
    let fifo = drop_tail::Config { packets: Some(20), ..drop_tail::Config::default() };
    let queues = [aqm::Config::FqCodel(fair), aqm::Config::DropTail(fifo)];
    check!().with_type::<(u8, Vec<Act>)>().for_each(|(which, acts)| {
        let which = usize::from(*which);
        let config = gate::Config { queue: queues[which % 2], limit: limits[which / 2 % 3] };
        let mut gate: Gate<TestPacket> = Gate::new(&config);
        let mut buffer = VecDeque::new();
        let (mut came, mut lost, mut sent, mut now, mut full) = (0, 0, Vec::new(), 0, false);
        let below = |buffer: &VecDeque<TestPacket>| Backlog {
            packets: buffer.len() as u64,
            bytes: buffer.iter().map(|p| u64::from(p.len)).sum(),
        };
        for act in acts {
            match *act {
                Act::Arrive { flow, len } => {
                    let packet = TestPacket::new(came, u64::from(flow % 4), u32::from(len % 1500) + 1);
                    gate.enqueue(packet, ms(now), &mut |_: TestPacket, _: DropReason| lost += 1);
                    came += 1;
                }
                Act::Full => full = true,
                Act::Serve { packets, after } => {
                    now += u64::from(after);
                    let mut drops = |_: TestPacket, _: DropReason| lost += 1;
                    while !full && let Some(packet) = gate.release(ms(now), &mut drops) {
                        buffer.push_back(packet);
                    }
                    assert!(full || !buffer.is_empty() || gate.backlog().packets == 0, "stopped above an empty buffer");
                    full = false;
                    let count = usize::from(packets).min(buffer.len());
                    sent.extend(buffer.drain(..count));
                    gate.settle(below(&buffer), ms(now));
                }
            }
            let inside = gate.backlog().packets + buffer.len() as u64 + sent.len() as u64;
            assert_eq!(came, inside + lost, "each packet is in one place");
        }
        for flow in 0..4 {
            let ids = sent.iter().filter(|packet| packet.flow == flow).map(|packet| packet.id);
            assert!(ids.is_sorted_by(|a, b| a < b), "flow {flow} is out of order");
        }
    });
}

#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Report {
    /// The buffer below takes what it may.
    Fill,
    /// So many packets leave after so many milliseconds: none, if so many are not there.
    Leave { packets: u8, after: u8 },
    /// A handover puts so many packets back.
    Return { packets: u8 },
}

/// A gate's quota is that of its limit when told of each packet that enters the buffer, and once of all that leave it, and
/// of nothing else.
#[test]
fn a_gate_tells_its_limit_what_enters_and_what_leaves() {
    check!().with_type::<Vec<Report>>().for_each(|reports| {
        let gate_of = |limit| Gate::<TestPacket>::new(&gate::Config { limit, ..gate::Config::default() });
        let mut by_bytes = (gate_of(Limit::Bql(bql::Config::default())), Bql::new(bql::Config::default()));
        let mut by_sdus = (gate_of(Limit::DynRlc(dyn_rlc::Config::default())), DynRlc::new(dyn_rlc::Config::default()));
        for id in 0..2_000 {
            for gate in [&mut by_bytes.0, &mut by_sdus.0] {
                gate.enqueue(
                    TestPacket::new(id, 0, 100 + id as u32 % 7),
                    ms(0),
                    &mut |_: TestPacket, _: DropReason| {},
                );
            }
        }
        assert!(by_bytes.0.is_limited() && by_sdus.0.is_limited() && !gate_of(Limit::None).is_limited());
        let (mut in_bytes, mut in_sdus, mut now) = (Vec::<u64>::new(), 0, 0);
        for report in reports {
            match *report {
                Report::Fill => {
                    while let Some(packet) = by_bytes.0.release(ms(now), &mut |_: TestPacket, _: DropReason| {}) {
                        by_bytes.1.queued(u64::from(packet.len));
                        in_bytes.push(u64::from(packet.len));
                    }
                    while by_sdus.0.release(ms(now), &mut |_: TestPacket, _: DropReason| {}).is_some() {
                        by_sdus.1.queued(ms(now));
                        in_sdus += 1;
                    }
                }
                Report::Leave { packets, after } => {
                    now += u64::from(after);
                    let left: u64 = in_bytes.drain(..usize::from(packets).min(in_bytes.len())).sum();
                    if left > 0 {
                        by_bytes.1.completed(left, ms(now));
                    }
                    let left = u64::from(packets).min(in_sdus);
                    in_sdus -= left;
                    if left > 0 {
                        by_sdus.1.completed(left, ms(now));
                    }
                }
                Report::Return { packets } => {
                    let packets = u64::from(packets % 4);
                    if packets > 0 {
                        in_bytes.extend(vec![50; packets as usize]);
                        by_bytes.1.queued(50 * packets);
                        in_sdus += packets;
                        (0..packets).for_each(|_| by_sdus.1.queued(ms(now)));
                    }
                }
            }
            by_bytes.0.settle(Backlog { packets: in_bytes.len() as u64, bytes: in_bytes.iter().sum() }, ms(now));
            by_sdus.0.settle(Backlog { packets: in_sdus, bytes: 100 * in_sdus }, ms(now));
            assert_eq!((by_bytes.0.limit(), by_sdus.0.limit()), (Some(by_bytes.1.limit()), None));
            let stopped = |gate: &Gate<TestPacket>| gate.is_stopped();
            assert_eq!(stopped(&by_bytes.0), by_bytes.1.is_stopped());
            assert_eq!(stopped(&by_sdus.0), by_sdus.1.is_stopped());
        }
    });
}

#[test]
fn a_buffer_that_runs_empty_unstopped_has_room_enough() {
    // Nothing had been kept out: neither at the limit nor below it.
    for bytes in [1_000, 3_000] {
        let mut bql = Bql::new(bql::Config { min: Bytes::new(3_000), ..bql::Config::default() });
        bql.queued(bytes);
        bql.completed(bytes, ms(1));
        assert_eq!(bql.limit(), 3_000, "{bytes}");
    }
    // One object above it: the limit grows by all that came after the last completion, which was none.
    let mut bql = Bql::new(bql::Config { min: Bytes::new(3_000), ..bql::Config::default() });
    bql.queued(3_001);
    bql.completed(3_001, ms(1));
    assert_eq!(bql.limit(), 6_001);
}
