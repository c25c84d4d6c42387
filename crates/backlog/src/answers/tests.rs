use super::*;

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
                self.drain.answered(Answer { conversation, upto: end, exactly: None }, self.now);
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
                2 => drain.answered(Answer { conversation, upto: end, exactly: Some(end / 2) }, now),
                _ => {
                    if drain.has_room(now) {
                        drain.on_idle();
                    }
                }
            }
            let _ = (drain.poll_timeout(now), drain.estimate(now));
        }
        // Whatever was said, a modem that answers nothing more is given everything after a second.
        now += PATIENCE;
        assert!(drain.has_room(now));
    });
}
