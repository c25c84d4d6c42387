use super::*;

const MS: Span = Span::from_millis(1);
/// From one reply to the next, as with the defaults: six reflectors, each pinged every 300 ms.
const REPLIES: Span = Span::from_millis(50);

/// Replies at regular intervals, and a constant rate that is sent.
struct Line {
    drain: Autorate,
    now: Time,
}

impl Line {
    /// With 2, 10 and 20 Mbit/s and a threshold of 30 ms; nothing has happened for a second.
    fn new() -> Line {
        let [min, base, max] = [2, 10, 20].map(Rate::from_mbps);
        let drain = Autorate::new(Bounds { min, base, max, threshold: MS * 30 });
        Line { drain, now: Time::ZERO + Span::from_secs(1) }
    }

    /// One reply after `rtt` ms while `mbps` are sent, and the rate then.
    fn reply(&mut self, mbps: u64, rtt: u64) -> f64 {
        self.now += REPLIES;
        let bytes = Rate::from_mbps(mbps).bytes_in(REPLIES).get();
        self.drain.handed(u32::try_from(bytes).expect("few"), None, self.now);
        self.drain.reflected(0, MS * rtt, self.now);
        self.rate()
    }

    fn replies(&mut self, count: u32, mbps: u64, rtt: u64) -> f64 {
        for _ in 0..count {
            self.reply(mbps, rtt);
        }
        self.rate()
    }

    fn rate(&self) -> f64 {
        self.drain.estimate(self.now).rate.expect("it has one always").as_mbps()
    }
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.002 * expected, "{found}, and not {expected}");
}

#[test]
fn a_baseline_falls_at_once_and_grows_slowly() {
    let mut line = Line::new();
    // 20 ms one way; then 10 ms more, of which a thousandth is taken; then 10.01 ms less, of which nine tenths are.
    let micros = |span: Span| span.as_nanos() / 1000;
    assert_eq!(micros(line.drain.delta(0, MS * 20)), 0);
    assert_eq!(micros(line.drain.delta(0, MS * 30)), 9_990);
    assert_eq!(micros(line.drain.delta(0, MS * 10)), 0);
    assert_eq!(micros(line.drain.baselines[&0]), 11_001);
    // Each reflector has its own.
    assert_eq!(micros(line.drain.delta(1, MS * 50)), 0);
}

#[test]
fn three_delayed_samples_of_six_are_bufferbloat_and_two_are_not() {
    let mut line = Line::new();
    line.replies(6, 5, 40);
    // 50 ms more one way.
    assert_near(line.replies(2, 5, 140), 10.0);
    // A mean of (49.95 + 49.90 + 49.85) / 6 = 25 ms is below the threshold: the least step.
    assert_near(line.reply(5, 140), 9.9);
    // No further one for 300 ms: six replies more. Then all six are delayed, by 49.7 ms in the mean. A packet takes 1.2 ms
    // at 9.9 Mbit/s, so 31.2 ms make a step of 1 % and 61.2 ms one of 25 %: (49.7 - 31.2) / 30 of the way is 15.8 %.
    assert_near(line.replies(6, 5, 140), 9.9);
    assert_near(line.reply(5, 140), 9.9 * 0.842);
}

#[test]
fn two_delayed_samples_among_six_again_and_again_change_nothing() {
    let mut line = Line::new();
    for _ in 0..10 {
        line.replies(4, 5, 40);
        line.replies(2, 5, 140);
    }
    assert_near(line.rate(), 10.0);
}

#[test]
fn a_delay_of_twice_the_threshold_costs_a_quarter() {
    let mut line = Line::new();
    line.replies(6, 5, 40);
    // 200 ms more one way: 10 ms below the first time, then three steps of a quarter until the minimum is reached.
    line.replies(6, 5, 440);
    assert_near(line.rate(), 10.0 * 0.75);
    line.replies(7, 5, 440);
    assert_near(line.rate(), 10.0 * 0.75 * 0.75);
    line.replies(70, 5, 440);
    assert_near(line.rate(), 2.0);
}

#[test]
fn high_load_raises_the_rate_by_4_percent_for_each_measurement_of_it() {
    let mut line = Line::new();
    // The first measurement includes the second in which nothing was sent.
    line.replies(1, 20, 40);
    assert_near(line.rate(), 10.0);
    // One each 200 ms.
    assert_near(line.replies(4, 20, 40), 10.4);
    assert_near(line.replies(3, 20, 40), 10.4);
    assert_near(line.reply(20, 40), 10.816);
    assert_near(line.replies(200, 20, 40), 20.0);
}

#[test]
fn high_load_raises_the_rate_less_where_delays_near_the_threshold() {
    let mut line = Line::new();
    line.replies(6, 5, 40);
    // 20 ms more one way, all six. At 10 Mbit/s a packet takes 1.2 ms: from 11.2 to 31.2 ms the step falls from 4 % to nothing.
    line.replies(6, 5, 80);
    let before = line.rate();
    while line.rate() <= before {
        line.reply(20, 80);
    }
    let factor = line.rate() / before;
    assert!((factor - 1.0224).abs() < 0.0012, "{factor}");
}

#[test]
fn at_75_percent_of_the_rate_the_load_is_not_high() {
    let mut line = Line::new();
    assert_near(line.replies(40, 7, 40), 10.0);
    assert!(line.replies(40, 8, 40) > 10.3);
}

#[test]
fn with_little_load_the_rate_returns_to_the_base_by_1_percent_a_second() {
    let mut line = Line::new();
    line.replies(200, 20, 40);
    assert_near(line.rate(), 20.0);
    // A step each 1.05 s: the first reply after more than a second. The load is measured as low within 250 ms.
    let high = line.replies(5, 0, 40);
    assert_near(high, 20.0);
    assert_near(line.replies(21, 0, 40), 20.0 * 0.99);
    assert_near(line.replies(21, 0, 40), 20.0 * 0.99 * 0.99);
    assert_near(line.replies(2000, 0, 40), 10.0);
    line.replies(3, 0, 400);
    assert!(line.rate() < 9.0);
    line.replies(7, 0, 40);
    let low = line.rate();
    assert_near(line.replies(21, 0, 40), low * 1.01);
    assert_near(line.replies(2000, 0, 40), 10.0);
}

#[test]
fn without_any_reply_for_ten_seconds_the_rate_is_the_least() {
    let mut line = Line::new();
    line.replies(6, 5, 40);
    assert!(line.drain.has_room(line.now + Span::from_millis(9_999)));
    assert_near(line.rate(), 10.0);
    line.drain.has_room(line.now + SILENCE);
    assert_near(line.rate(), 2.0);
    line.now += SILENCE;
    assert!(line.replies(100, 5, 40) > 2.0);
}

#[test]
fn it_hands_down_at_its_rate() {
    let mut line = Line::new();
    let mut passed = 0_u64;
    let end = line.now + Span::from_secs(1);
    while line.now < end {
        while line.drain.has_room(line.now) {
            line.drain.handed(1500, None, line.now);
            passed += 1500;
        }
        line.now = line.drain.poll_timeout(line.now).expect("there is no room");
    }
    // 1.25 MB in a second, and what it holds.
    assert!((1_250_000..=1_250_000 + 4_000).contains(&passed), "{passed}");
}

/// A load that is complete when a reply comes counts for it.
#[test]
fn a_reply_ends_the_interval_in_which_the_load_is_measured() {
    let mut line = Line::new();
    line.drain.handed(250_000, None, line.now);
    for (millis, rate) in [(199, 10.0), (1, 10.4)] {
        line.now += MS * millis;
        line.drain.reflected(0, MS * 40, line.now);
        assert_near(line.rate(), rate);
    }
}

#[test]
fn a_pause_lasts_to_its_very_end() {
    let just = Span::from_nanos(1);
    // With little load, 1 % a second; the sixth of six delayed samples is bufferbloat, which lowers the rate once in 300 ms.
    let after = |pause: Span, delayed: bool| {
        let mut line = Line::new();
        line.drain.rate = Rate::from_mbps(20);
        (line.drain.decayed, line.drain.bufferbloat) = (line.now, line.now);
        line.drain.samples = [Sample { delta: MS * 30, delayed }; WINDOW];
        line.drain.step(line.now + pause).as_mbps()
    };
    assert_near(after(DECAY_PAUSE, false), 20.0);
    assert_near(after(DECAY_PAUSE + just, false), 19.8);
    assert_near(after(BUFFERBLOAT_PAUSE, true), 20.0);
    assert_near(after(BUFFERBLOAT_PAUSE + just, true), 19.8);
}

/// 30 ms, and the millisecond of a packet at 12 Mbit/s; the baseline has followed a thousandth of the delay.
#[test]
fn a_sample_is_delayed_above_the_threshold_and_a_packet() {
    for (more, delta, delayed) in [(31_031_031, 31_000_000, false), (31_031_032, 31_000_001, true)] {
        let mut line = Line::new();
        line.drain.rate = Rate::from_mbps(12);
        line.drain.reflected(0, MS * 40, line.now);
        line.drain.rate = Rate::from_mbps(12);
        line.drain.reflected(0, MS * 40 + Span::from_nanos(2 * more), line.now);
        let sample = line.drain.samples[1];
        assert_eq!((sample.delta.as_nanos(), sample.delayed), (delta, delayed), "{more}");
    }
}
