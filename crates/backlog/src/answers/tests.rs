use super::*;

mod conversations;

const MS: Span = Span::from_millis(1);
const PACKET: u32 = 1500;

/// A FIFO modem, and what is behind it: an answer to each probe a while after it has drained. Time goes in steps of
/// 100 us. It holds 500 kB at most, as modems do.
struct Model {
    drain: Answers,
    now: Time,
    rate: Rate,
    /// What is in the modem: when it was handed down, its probe, and what of it is left to send in bits x ns / s.
    queue: VecDeque<(Option<Probe>, u64)>,
    left: u64,
    /// Answers on their way.
    back: VecDeque<(Time, Probe)>,
    /// The largest that the queue was, and what has drained.
    largest: u64,
    drained: u64,
    next: u32,
}

const STEP: Span = Span::from_micros(100);

impl Model {
    fn new(rate: Rate) -> Model {
        Model {
            drain: Answers::new(MS * 20),
            now: Time::ZERO,
            rate,
            queue: VecDeque::new(),
            left: 0,
            back: VecDeque::new(),
            largest: 0,
            drained: 0,
            next: 0,
        }
    }

    /// After a first packet: nobody knows a round trip without waiting before something was sent alone.
    fn begun(rate: Rate) -> Model {
        let mut model = Model::new(rate);
        model.run(MS * 200, |n| if n < 1 { tcp(n) } else { None }, MS * 40);
        model
    }

    /// For so long; `fill`: the next packet that waits above, if one does, and the round trip of its answer.
    fn run(&mut self, span: Span, mut fill: impl FnMut(u32) -> Option<(Option<Probe>, u32)>, rtt: Span) {
        let end = self.now + span;
        (self.largest, self.drained) = (0, 0);
        while self.now < end {
            self.now += STEP;
            self.left += self.rate.bytes_in(STEP).get();
            while let Some(&(probe, bytes)) = self.queue.front() {
                if self.left < bytes {
                    break;
                }
                self.left -= bytes;
                self.drained += bytes;
                self.queue.pop_front();
                if let Some(probe) = probe {
                    self.back.push_back((self.now + rtt, probe));
                }
            }
            if self.queue.is_empty() {
                self.left = 0;
            }
            while let Some(&(at, Probe { conversation, end })) = self.back.front()
                && at <= self.now
            {
                self.back.pop_front();
                self.drain.answered(Answer { conversation, upto: end, exactly: None, window: None }, self.now);
            }
            while self.held() < 500_000 && self.drain.has_room(self.now) {
                let Some((probe, bytes)) = fill(self.next) else {
                    self.drain.on_idle();
                    break;
                };
                self.next += 1;
                self.drain.handed(bytes, probe, self.now);
                self.queue.push_back((probe, u64::from(bytes)));
            }
            self.largest = self.largest.max(self.held());
        }
    }

    fn held(&self) -> u64 {
        self.queue.iter().map(|&(_, bytes)| bytes).sum()
    }

    /// What the modem has sent of what it could in the last run.
    fn share(&self, span: Span) -> f64 {
        self.drained as f64 / self.rate.bytes_in(span).get() as f64
    }
}

fn tcp(n: u32) -> Option<(Option<Probe>, u32)> {
    Some((Some(Probe { conversation: 1, end: n.wrapping_mul(PACKET) }), PACKET))
}

#[test]
fn a_modem_that_is_full_is_found_and_emptied_and_kept_busy() {
    for mbps in [1, 5, 20, 100] {
        let rate = Rate::from_mbps(mbps);
        let mut model = Model::begun(rate);
        model.run(MS * 6000, tcp, MS * 40);
        assert_eq!(
            model.drain.rate.map(|found| (found.as_mbps() / rate.as_mbps() * 10.0).round() as u32),
            Some(10),
            "{mbps}"
        );
        let span = Span::from_secs(20);
        model.run(span, tcp, MS * 40);
        // The target, a quarter of the window in one round of eight, and what a round is too fine to tell.
        let most = rate.bytes_in(MS * 60).get() + 3 * u64::from(PACKET);
        assert!(model.largest <= most, "{mbps} Mbit/s: {} of {most}", model.largest);
        // At 1 Mbit/s the target is less than two packets.
        assert!(model.share(span) > 0.95, "{mbps} Mbit/s: {}", model.share(span));
    }
}

#[test]
fn a_rate_that_changes_is_followed() {
    let mut model = Model::begun(Rate::from_mbps(20));
    model.run(MS * 3000, tcp, MS * 40);
    model.rate = Rate::from_mbps(5);
    model.run(MS * 3000, tcp, MS * 40);
    model.run(MS * 3000, tcp, MS * 40);
    assert!(model.largest <= Rate::from_mbps(5).bytes_in(MS * 45).get(), "{}", model.largest);
    model.rate = Rate::from_mbps(40);
    model.run(MS * 2000, tcp, MS * 40);
    model.run(MS * 2000, tcp, MS * 40);
    assert!(model.share(MS * 2000) > 0.97, "{}", model.share(MS * 2000));
}

#[test]
fn nothing_is_held_back_before_packets_wait_below() {
    let mut model = Model::new(Rate::from_mbps(20));
    let mut due = 0;
    // A packet every 2 ms: 6 Mbit/s.
    for _ in 0..2000 {
        due += 1;
        model.run(MS * 2, |n| if n < due { tcp(n) } else { None }, MS * 40);
        assert_eq!(model.next, due);
    }
    assert_eq!(model.drain.rate, None);
}

#[test]
fn what_is_never_answered_passes() {
    let mut model = Model::begun(Rate::from_mbps(20));
    model.run(MS * 3000, tcp, MS * 40);
    assert!(model.drain.rate.is_some());
    model.rate = Rate::from_mbps(40);
    model.run(MS * 2000, |_| Some((None, PACKET)), MS * 40);
    let span = Span::from_secs(10);
    model.run(span, |_| Some((None, PACKET)), MS * 40);
    assert_eq!(model.drain.rate, None);
    assert!(model.share(span) > 0.97, "{}", model.share(span));
}

#[test]
fn few_questions_among_much_that_is_not_answered_are_enough() {
    let mut model = Model::begun(Rate::from_mbps(20));
    // One of a hundred: one in 60 ms.
    let mixed = |n: u32| if n.is_multiple_of(100) { tcp(n) } else { Some((None, PACKET)) };
    model.run(MS * 5000, mixed, MS * 40);
    let span = Span::from_secs(20);
    model.run(span, mixed, MS * 40);
    assert!(model.share(span) > 0.97, "{}", model.share(span));
    let most = Rate::from_mbps(20).bytes_in(MS * 100).get();
    assert!(model.largest < most, "{} of {most}", model.largest);
}

#[test]
fn an_outage_ends_by_itself() {
    let mut model = Model::begun(Rate::from_mbps(20));
    model.run(MS * 3000, tcp, MS * 40);
    model.rate = Rate::from_bits_per_sec(0);
    model.run(MS * 700, tcp, MS * 40);
    // All that was to be answered, and no more: a round trip and the target, in one round of eight with a quarter.
    assert!(model.largest <= Rate::from_mbps(20).bytes_in(MS * 76).get(), "{}", model.largest);
    model.rate = Rate::from_mbps(20);
    model.run(MS * 2000, tcp, MS * 40);
    model.run(MS * 2000, tcp, MS * 40);
    assert!(model.share(MS * 2000) > 0.97, "{}", model.share(MS * 2000));
}

#[test]
fn a_conversation_far_away_and_one_nearby_keep_the_modem_busy_together() {
    let mut model = Model::new(Rate::from_mbps(20));
    // The model has one round trip for all; the far one's is in the numbers, whose answers it takes later.
    model.run(MS * 400, |n| if n < 1 { tcp(n) } else { None }, MS * 200);
    let near = |n: u32| Some((Some(Probe { conversation: 2, end: n.wrapping_mul(PACKET) }), PACKET));
    model.run(MS * 50, |_| None, MS * 20);
    model.run(MS * 100, |n| if n < 2 { near(n) } else { None }, MS * 20);
    model.run(MS * 5000, tcp, MS * 200);
    model.run(MS * 5000, tcp, MS * 200);
    assert!(model.share(MS * 5000) > 0.95, "{}", model.share(MS * 5000));
    model.run(MS * 5000, near, MS * 20);
    assert!(model.share(MS * 5000) > 0.95, "{}", model.share(MS * 5000));
}

/// Whatever comes, in whatever order: it neither panics nor says that there is room for ever less.
#[test]
fn any_calls_in_any_order_are_taken() {
    bolero::check!().with_type::<Vec<(u8, u16, u8, u32)>>().for_each(|calls| {
        let mut drain = Answers::new(MS * 20);
        let mut now = Time::ZERO;
        for &(kind, bytes, conversation, end) in calls {
            now += Span::from_micros(u64::from(kind) * 20);
            let conversation = u64::from(conversation % 4);
            match kind % 4 {
                0 => drain.handed(u32::from(bytes) + 1, Some(Probe { conversation, end }), now),
                1 => drain.handed(u32::from(bytes) + 1, None, now),
                2 => {
                    let window = (bytes % 2 == 0).then_some(bytes);
                    drain.answered(Answer { conversation, upto: end, exactly: Some(end / 2), window }, now);
                }
                _ => {
                    if drain.has_room(now) {
                        drain.on_idle();
                    }
                }
            }
            let _ = (drain.poll_timeout(now), drain.estimate(now));
        }
        // Whatever was said, a modem that answers nothing more is given everything after a second.
        now += SILENCE;
        assert!(drain.has_room(now));
    });
}

/// A stream that nobody answers beside an upload whose receiver reads slowly, both through a modem with room for more.
struct Slow {
    /// Bytes a second that the receiver reads, and what its buffer holds at most.
    reads: u64,
    buffer: u64,
    /// What its buffer holds, in bytes and millionths of them; what it has got and what it has acknowledged.
    held: u64,
    got: u32,
    acked: u32,
    /// What the sender has sent, and what it may send.
    sent: u32,
    edge: u32,
    /// When a delayed acknowledgement leaves.
    due: Option<Time>,
}

#[test]
fn a_receiver_that_reads_slowly_is_not_taken_for_a_slow_modem() {
    for (reads, delay) in [(25_000, 40), (25_000, 120), (25_000, 200), (100_000, 60)] {
        let rate = Rate::from_mbps(20);
        let (rtt, stream) = (MS * 15, Rate::from_mbps(5));
        let mut drain = Answers::new(MS * 20);
        let mut slow = Slow { reads, buffer: 64_000, held: 0, got: 0, acked: 0, sent: 0, edge: 64_000, due: None };
        let mut above: VecDeque<(Time, Option<Probe>, u32)> = VecDeque::new();
        let mut below: VecDeque<(Option<Probe>, u64)> = VecDeque::new();
        let (mut now, mut left, mut streamed, mut late, mut count) = (Time::ZERO, 0, 0, 0_u32, 0_u32);
        let (mut there, mut back) = (VecDeque::new(), VecDeque::<(Time, u32, u64)>::new());
        while now < Time::ZERO + Span::from_secs(60) {
            now += STEP;
            // The stream and the upload come.
            streamed += stream.bytes_in(STEP).get();
            if streamed >= 1_400 {
                streamed -= 1_400;
                count += 1;
                above.push_back((now, None, 1_400));
            }
            while slow.edge - slow.sent >= 1_400 && above.len() < 100 {
                slow.sent += 1_400;
                above.push_back((now, Some(Probe { conversation: 1, end: slow.sent }), 1_400));
            }
            while drain.has_room(now) {
                let Some((since, probe, bytes)) = above.pop_front() else {
                    drain.on_idle();
                    break;
                };
                late += u32::from(probe.is_none() && now.saturating_since(since) > MS * 50);
                drain.handed(bytes, probe, now);
                below.push_back((probe, u64::from(bytes)));
            }
            // The modem sends.
            left = if below.is_empty() { 0 } else { left + rate.bytes_in(STEP).get() };
            while let Some(&(probe, bytes)) = below.front()
                && bytes <= left
            {
                left -= bytes;
                below.pop_front();
                there.extend(probe.map(|probe| (now + rtt, probe.end)));
            }
            // The receiver reads, and acknowledges: at once while half of its buffer is free, and late otherwise.
            slow.held = slow.held.saturating_sub(slow.reads * STEP.as_nanos() / 1_000);
            while let Some(&(at, end)) = there.front()
                && at <= now
            {
                there.pop_front();
                slow.held += u64::from(end - slow.got) * 1_000_000;
                slow.got = end;
                let free = slow.buffer.saturating_sub(slow.held / 1_000_000);
                let wait = if free * 2 > slow.buffer { Span::ZERO } else { MS * delay };
                slow.due = slow.due.or(Some(now + wait));
            }
            let free = slow.buffer.saturating_sub(slow.held / 1_000_000);
            let opens = free >= 3 * 1_400 && u64::from(slow.edge - slow.got) < 1_400;
            if slow.due.is_some_and(|due| due <= now) || (slow.due.is_none() && opens) {
                (slow.due, slow.acked) = (None, slow.got);
                back.push_back((now + rtt, slow.acked, free));
            }
            while let Some(&(at, upto, free)) = back.front()
                && at <= now
            {
                back.pop_front();
                slow.edge = slow.edge.max(upto + free as u32);
                drain.answered(Answer { conversation: 1, upto, exactly: None, window: Some(free as u16) }, now);
            }
        }
        assert!(late * 100 < count, "reads {reads}, {delay} ms: {late} of {count}");
    }
}

#[test]
fn a_late_acknowledgement_of_a_lone_segment_holds_nothing_back() {
    let mut drain = Answers::new(MS * 20);
    let (mut now, mut due) = (Time::ZERO, None);
    for n in 0..20_000 {
        now += MS * 2;
        assert!(drain.has_room(now), "{n}");
        // Now and then a line that somebody types. After some, the receiver hopes to answer together with data.
        if n % 150 == 0 {
            drain.handed(100, Some(Probe { conversation: 1, end: n * 100 }), now);
            due = Some((now + MS * if n < 1_000 { 40 } else { 200 }, n * 100));
        }
        drain.handed(1_400, None, now);
        drain.on_idle();
        if let Some((at, upto)) = due
            && at <= now
        {
            due = None;
            drain.answered(Answer { conversation: 1, upto, exactly: None, window: Some(500) }, now);
        }
    }
    assert_eq!(drain.rate, None);
}

#[test]
fn an_answer_to_what_was_not_sent_changes_nothing() {
    let mut model = Model::begun(Rate::from_mbps(20));
    model.run(MS * 3000, tcp, MS * 40);
    let (rate, base) = (model.drain.rate, model.drain.conversations[&1].base);
    for ahead in [1, 1 << 16, 1 << 30] {
        model.run(MS * 5, tcp, MS * 40);
        let upto = model.drain.conversations[&1].highest.wrapping_add(ahead);
        model.drain.answered(Answer { conversation: 1, upto, exactly: None, window: Some(0) }, model.now);
    }
    let span = Span::from_secs(10);
    model.run(span, tcp, MS * 40);
    assert_eq!(model.drain.conversations[&1].base, base);
    assert!(rate.is_some() && model.drain.rate.is_some() && model.share(span) > 0.95, "{}", model.share(span));
}

fn at(ms: u64) -> Time {
    Time::ZERO + MS * ms
}

/// Positions that had drained at times in ms after these waits in ms, of a conversation with a round trip of `base` ms.
fn noted(base: u64, drained: &[(u64, u64, u64)]) -> Answers {
    let mut drain = Answers::new(MS * 20);
    for &(position, ms, waited) in drained {
        drain.note(position, at(ms), MS * waited, MS * base);
    }
    drain
}

/// What drains in a round is its rate: here 1000 bytes a millisecond, 8 Mbit/s.
#[test]
fn a_round_lasts_for_a_round_trip_and_50_ms_at_least() {
    let rate_of = |base, drained: &[_]| noted(base, drained).rate.map(Rate::as_mbps);
    assert_eq!(rate_of(10, &[(0, 100, 30), (49_000, 149, 30)]), None);
    assert_eq!(rate_of(10, &[(0, 100, 30), (50_000, 150, 30)]), Some(8.0));
    assert_eq!(rate_of(80, &[(0, 100, 30), (79_000, 179, 30)]), None);
    assert_eq!(rate_of(80, &[(0, 100, 30), (80_000, 180, 30)]), Some(8.0));
    // An answer to what had drained before ends no round, and neither does one to the same.
    assert_eq!(rate_of(10, &[(50_000, 100, 30), (49_000, 160, 30)]), None);
    assert_eq!(rate_of(10, &[(50_000, 100, 30), (50_000, 160, 30)]), None);
    // A round begins where the last one has ended.
    let drain = noted(10, &[(0, 100, 30), (50_000, 150, 30), (99_000, 199, 30), (100_000, 200, 30)]);
    assert_eq!((drain.count, drain.rates.len(), drain.rate.map(Rate::as_mbps)), (2, 2, Some(8.0)));
}

#[test]
fn a_round_counts_if_packets_waited_for_the_target_all_the_time() {
    let counts = |waits: [u64; 3]| {
        let [first, middle, last] = waits;
        let drain = noted(10, &[(0, 100, first), (10_000, 110, middle), (50_000, 150, last)]);
        assert_eq!(drain.count, 1, "it is a round");
        drain.rate.is_some()
    };
    assert!(counts([20, 20, 20]));
    assert!(!counts([19, 30, 30]) && !counts([30, 19, 30]) && !counts([30, 30, 19]));
}

#[test]
fn a_round_counts_if_packets_waited_above_all_the_time_once_a_rate_is_known() {
    let after = |dry: u64, is_known: bool| {
        let mut drain = noted(10, &[(0, 100, 30), (if is_known { 50_000 } else { 0 }, 150, 30)]);
        assert_eq!(drain.rate.is_some(), is_known);
        drain.handed = dry;
        drain.on_idle();
        let from = drain.round.expect("one has begun").position;
        drain.note(from + 100_000, at(200), MS, MS * 10);
        drain.rate.map(Rate::as_mbps)
    };
    // Nothing more waited when 50 000 bytes were handed down: where the round began, or within it.
    assert_eq!(after(50_000, true), Some(16.0));
    assert_eq!(after(50_001, true), Some(8.0));
    assert_eq!(after(0, false), None);
}

#[test]
fn the_fastest_of_ten_rounds_is_the_rate() {
    let mut drained = vec![(0, 0, 30), (100_000, 50, 30)];
    drained.extend((1..=9).map(|n| (100_000 + n * 50_000, 50 + n * 50, 30)));
    assert_eq!(noted(10, &drained).rate.map(Rate::as_mbps), Some(16.0));
    drained.push((100_000 + 10 * 50_000, 50 + 10 * 50, 30));
    assert_eq!(noted(10, &drained).rate.map(Rate::as_mbps), Some(8.0), "it is the eleventh");
}

/// 1000 bytes a millisecond, up to byte 100 000 as an answer at 500 ms says, 40 ms after it had drained.
fn draining(handed: u64, asked: Option<u64>) -> Answers {
    let mut drain = noted(40, &[(0, 100, 30), (50_000, 150, 30)]);
    drain.last = Some(Drained { position: 100_000, base: MS * 40, answered: at(500) });
    (drain.handed, drain.heard) = (handed, at(500));
    drain.asked.extend(asked.map(|position| (position, 1)));
    drain
}

/// What is unanswered, less what drains in a round trip, and less what drains of that which asks for no answer, a quarter faster.
#[test]
fn the_backlog_is_what_is_neither_answered_nor_on_its_way() {
    let bytes = |handed, asked, ms| draining(handed, asked).estimate(at(ms)).bytes;
    assert_eq!(bytes(160_000, Some(101_000), 500), 20_000);
    assert_eq!(bytes(140_000, Some(101_000), 500), 0);
    assert_eq!(bytes(130_000, Some(101_000), 500), 0);
    // 1000 bytes up to the next probe drain in 0.8 ms, and nothing is taken to drain after them.
    assert_eq!(bytes(160_000, Some(101_000), 600), 19_000);
    assert_eq!(bytes(160_000, Some(150_000), 508), 10_000);
    assert_eq!(bytes(160_000, None, 508), 10_000);
    assert_eq!(bytes(160_000, None, 600), 0);
    let unknown = Answers::new(MS * 20).estimate(at(1));
    assert_eq!((unknown.rate, unknown.bytes, unknown.delay), (None, 0, None));
}

/// The window is what drains in a round trip and the target, 60 000 bytes; in one round of eight a quarter more.
#[test]
fn there_is_room_until_the_window_is_unanswered() {
    let has_room = |handed, count| {
        let mut drain = draining(handed, Some(101_000));
        drain.conversations.insert(1, Conversation::new(at(0)));
        let probe = Asked { end: 1, position: 101_000, at: at(0) };
        drain.conversations.get_mut(&1).expect("it is there").probes.push_back(probe);
        drain.count = count;
        let again = drain.poll_timeout(at(500)).filter(|_| !drain.has_room(at(500)));
        (again.is_none(), again.map(|again| (again - at(500)).as_micros()))
    };
    for count in [1, 7, 9] {
        assert_eq!(has_room(159_999, count), (true, None));
        // One byte drains soon, but nobody is called more often than each 100 us.
        assert_eq!(has_room(160_000, count), (false, Some(100)));
        // 10 001 bytes, at 1250 a millisecond.
        assert_eq!(has_room(170_000, count), (false, Some(8_000)));
        assert_eq!(
            has_room(2_000_000, count),
            (false, Some(1_000_000)),
            "what is not answered for a second is no more"
        );
    }
    for count in [0, 8, 16] {
        assert!(has_room(174_999, count).0 && !has_room(175_000, count).0);
    }
}

#[test]
fn the_modem_runs_half_empty_for_a_round_trip_every_ten_seconds() {
    let mut drain = draining(119_999, Some(101_000));
    drain.count = 1;
    let mut room = |handed: u64, ms: u64| {
        // Answers keep coming.
        drain.last = Some(Drained { position: handed - 19_999, base: MS * 40, answered: at(ms) });
        (drain.handed, drain.heard) = (handed, at(ms));
        drain.asked.clear();
        let narrow = drain.has_room(at(ms));
        drain.handed += 1;
        let full = drain.has_room(at(ms));
        (narrow, full)
    };
    // 20 000 bytes, half of a round trip, are no reason to wait but in those 70 ms: a round trip, 50 ms at least, and the target.
    for (ms, while_half_empty) in [
        (9_999, false),
        (10_000, true),
        (10_069, true),
        (10_070, false),
        (20_069, false),
        (20_070, true),
        (20_140, false),
    ] {
        assert_eq!(room(1_000_000 + ms, ms), (true, !while_half_empty), "{ms} ms");
    }
}

/// At the end of the time in which it runs half empty, the whole window counts again.
#[test]
fn there_may_be_room_again_when_the_modem_has_run_half_empty() {
    let again = |handed: u64, end: u64| {
        let mut drain = draining(handed, Some(101_000));
        (drain.count, drain.drains) = (1, Drains::Until(at(end)));
        drain.poll_timeout(at(500)).map(|again| (again - at(500)).as_micros())
    };
    // 10 001 bytes of 60 000, at 1250 a millisecond; until its end, 10 ms from now, 50 001 bytes of 20 000.
    assert_eq!(again(170_000, 500), Some(8_000));
    assert_eq!(again(170_000, 510), Some(10_000));
    assert_eq!(again(125_000, 510), Some(4_000));
}
