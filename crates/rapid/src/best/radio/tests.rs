use super::*;

mod leg;
mod reports;

/// A radio of 1 MB/s whose shares were all used, with a target of 5 ms, seen 10 s after the start and 20 ms after the last
/// correction.
struct Story {
    ue: BestUe,
    seen: Seen,
    queue: f64,
    rate: f64,
}

const NOW: Time = Time::from_nanos(10_000_000_000);

fn ago(span: Span) -> Time {
    Time::from_nanos((NOW - Time::ZERO - span).as_nanos())
}

/// A radio that has served a backlog at its capacity in bytes a second, with this least time on the leg in seconds.
fn busy(capacity: f64, radio_rtt: f64) -> Seen {
    Seen {
        capacity,
        service: capacity,
        in_flight: 0,
        segments: 0.0,
        radio_rtt,
        queue: None,
        late_queue: None,
        period: Span::from_millis(1),
        has_backlog: true,
    }
}

impl Story {
    fn new() -> Story {
        let ue = BestUe {
            is_busy: true,
            delivered: 1e6,
            expected: 1e6,
            fast: 1e6,
            corrected: ago(CORRECTION),
            ..BestUe::default()
        };
        let seen = busy(1e6, 0.02);
        Story { ue, seen, queue: 0.0, rate: 0.0 }
    }

    /// Returns the capacity after a correction, as a multiple of the reported one, and the stretch of windows.
    #[track_caller]
    fn becomes(mut self, gain: f64, stretch: f64) {
        self.ue.correct(&Best::default(), &self.seen, self.queue, self.rate, NOW);
        let (got, wide) = (self.ue.gain, self.ue.stretch);
        assert!((got - gain).abs() < 1e-9 && (wide - stretch).abs() < 1e-9, "{got} for {gain}, {wide} for {stretch}");
    }
}

/// Builds a story from what is not as in [`Story::new`].
macro_rules! story {
    ($($($field:ident).+ = $value:expr),+) => {{
        let mut story = Story::new();
        $(story.$($field).+ = $value;)+
        story
    }};
}

#[test]
fn a_capacity_of_which_all_is_delivered_without_a_queue_rises_by_a_hundredth() {
    Story::new().becomes(UP, 1.0);
    // Up to half of the target is no queue; up to twice the target, it is one that is wanted.
    story!(queue = 0.002_499_999).becomes(UP, 1.0);
    story!(queue = 0.0025).becomes(1.0, 1.0);
    story!(queue = 0.01).becomes(1.0, 1.0);
    // All is 99.2 %. The most that is promised is 2 % more than what was delivered.
    story!(ue.delivered = 0.992e6).becomes(UP, 1.0);
    story!(ue.delivered = 0.9919e6).becomes(1.0, 1.0);
    story!(seen.capacity = 1.015e6).becomes(PROMISED / 1.015, 1.0);
    story!(seen.capacity = 1.03e6).becomes(1.0, 1.0);
}

#[test]
fn a_capacity_falls_with_a_queue_and_with_less_delivered_in_a_short_one() {
    // By a tenth, times the queue beyond twice the target as a part of 25 ms; by a tenth at most.
    story!(queue = 0.02).becomes(1.0 - DOWN * 0.4, 1.0);
    story!(queue = 0.0125).becomes(1.0 - DOWN * 0.1, 1.0);
    story!(queue = 0.1).becomes(1.0 - DOWN, 1.0);
    // Not below three quarters of what is delivered.
    story!(queue = 0.1, seen.capacity = 0.8e6).becomes(DRAINED / 0.8, 1.0);
    story!(queue = 0.1, seen.capacity = 0.7e6).becomes(1.0, 1.0);
    // An inferred queue does not lower it below 0.4, a reported one does.
    story!(queue = 0.1, ue.gain = 0.42).becomes(LEAST_INFERRED, 1.0);
    story!(queue = 0.1, ue.gain = 0.3).becomes(0.3, 1.0);
    story!(queue = 0.1, ue.gain = 0.42, ue.is_reported = true).becomes(0.42 * 0.9, 1.0);
    story!(queue = 0.1, ue.gain = 0.105, ue.is_reported = true).becomes(BOUNDS.0, 1.0);
    story!(queue = 0.005, ue.delivered = 0.98e6).becomes(1.0, 1.0);
    story!(queue = 0.005, ue.delivered = 0.979e6).becomes(1.0 - DOWN / 20.0, 1.0);
}

#[test]
fn a_capacity_that_may_be_wrong_for_other_reasons_returns_to_the_reported_one() {
    // A UE that does not use its shares; traffic of others, from 3 % on, or a queue that others share.
    story!(ue.gain = 1.2, ue.is_busy = false).becomes(1.2 - 0.2 * 0.01, 1.0);
    story!(ue.gain = 1.2, ue.unseen = 0.031e6).becomes(1.2 - 0.2 * BACK, 1.0);
    story!(ue.gain = 1.2, ue.unseen = 0.03e6, ue.delivered = 0.985e6).becomes(1.2, 1.0);
    let just = Span::from_nanos(1);
    story!(ue.gain = 1.2, ue.shared = Some(ago(SHARED - just))).becomes(1.2 - 0.2 * BACK, 1.0);
    story!(ue.gain = 1.2, ue.shared = Some(ago(SHARED))).becomes(1.2 * UP, 1.0);
    // Little is delivered, and the proxy had nothing more.
    story!(ue.gain = 1.2, ue.delivered = 0.97e6, ue.ran_empty = true).becomes(1.2 - 0.2 * 0.02, 1.0);
    story!(ue.gain = 1.2, ue.delivered = 0.979e6, ue.ran_empty = true).becomes(1.2 - 0.2 * 0.02, 1.0);
    story!(ue.gain = 0.9, ue.delivered = 0.97e6, ue.ran_empty = true).becomes(0.9, 1.0);
    // What is delivered is nearly all of it.
    story!(ue.gain = 1.2, ue.delivered = 0.98e6, ue.ran_empty = true).becomes(1.2, 1.0);
}

#[test]
fn what_a_queue_took_comes_back_without_it() {
    story!(ue.gain = 0.8, ue.high = 1.0, ue.delivered = 0.985e6).becomes(0.8 + 0.2 * RETURNS, 1.0);
    story!(ue.gain = 0.8, ue.high = 1.0, ue.delivered = 0.985e6, queue = 0.0025).becomes(0.8, 1.0);
    story!(ue.gain = 0.8, ue.high = 0.7, ue.delivered = 0.985e6).becomes(0.8, 1.0);
    // Blocks to spare and a reported queue of nothing: what these would carry is there.
    let spare =
        |used, is_reported| story!(ue.gain = 0.8, ue.delivered = 0.985e6, ue.used = used, ue.is_reported = is_reported);
    spare(0.89, true).becomes(0.8, 1.0);
    let mut more = spare(0.89, true);
    more.seen.service = 1.2e6;
    more.becomes(0.8 + (0.96 - 0.8) * BACK_TO_SPARE, 1.0);
    for (used, is_reported) in [(0.9, true), (0.89, false)] {
        let mut more = spare(used, is_reported);
        more.seen.service = 1.2e6;
        more.becomes(0.8, 1.0);
    }
    // A first queue notes what it takes from; a further one of the same notes nothing.
    let noted = |mut story: Story| {
        story.ue.correct(&Best::default(), &story.seen, story.queue, story.rate, NOW);
        story.ue.high
    };
    assert_eq!(noted(story!(queue = 0.1, ue.gain = 0.9)), 0.9);
    assert_eq!(noted(story!(queue = 0.1, ue.gain = 0.9, ue.high = 1.0)), 0.95);
    assert_eq!(noted(story!(queue = 0.1, ue.gain = 0.95, ue.high = 1.0)), 0.95);
    assert_eq!(noted(story!(queue = 0.1, ue.gain = 0.9, ue.high = 1.0, ue.is_lowered = true)), 1.0);
}

#[test]
fn a_long_rise_without_any_sign_of_a_full_radio_becomes_faster() {
    let rare = |gain, span| story!(ue.gain = gain, ue.corrected = ago(span));
    rare(1.51, CORRECTION).becomes(1.51 * UP_FAST.0, 1.0);
    rare(1.5, CORRECTION).becomes(1.5 * UP, 1.0);
    // Corrections that are as rare as each tenth of a second take a larger step.
    rare(1.51, Span::from_millis(100)).becomes(1.51 * UP_FAST.1, 1.0);
    rare(1.5, Span::from_millis(100)).becomes(1.5 * UP, 1.0);
    rare(1.51, Span::from_millis(100) - Span::from_nanos(1)).becomes(1.51 * UP_FAST.0, 1.0);
    // It goes on as long as nine tenths of what is expected are delivered, on average or in the last interval.
    story!(ue.gain = 1.6, ue.delivered = 0.9e6).becomes(1.6 * UP_FAST.0, STRETCH);
    story!(ue.gain = 1.6, ue.delivered = 0.8e6, rate = 0.9e6).becomes(1.6 * UP_FAST.0, STRETCH);
    // At its end, what was delivered bounds it.
    story!(ue.gain = 1.6, ue.delivered = 0.89e6).becomes(1.6 * PROMISED * 0.89, STRETCH);
    story!(ue.gain = 1.6, ue.delivered = 0.8e6, rate = 0.89e6).becomes(1.6 * PROMISED * 0.89, STRETCH);
}

#[test]
fn windows_stretch_while_data_waits_and_the_radio_is_idle_at_times() {
    story!(ue.delivered = 0.95e6).becomes(1.0, STRETCH);
    story!(ue.delivered = 0.96e6).becomes(1.0, 1.0);
    story!(ue.delivered = 0.95e6, ue.ran_empty = true).becomes(1.0, 1.0);
    story!(ue.delivered = 0.95e6, ue.stretch = 31.9).becomes(1.0, MOST_STRETCHED);
    story!(ue.delivered = 0.95e6, ue.is_busy = false, ue.stretch = 2.0).becomes(1.0, 2.0);
    story!(queue = 0.1, ue.stretch = 2.0).becomes(1.0 - DOWN, 2.0 * 0.95);
    story!(queue = 0.1, ue.stretch = 1.02).becomes(1.0 - DOWN, 1.0);
}
