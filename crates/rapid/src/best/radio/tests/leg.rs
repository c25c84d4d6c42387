//! What the time on the radio leg and reported queues say, interval by interval.

use super::super::*;
use super::{NOW, busy};

/// The time of an interval, its inverse, and what a radio that is always busy delivers in it. Powers of two make all quotients exact.
const STEP: Span = Span::from_micros(31_250);
const PER_SEC: f64 = 32.0;
const DELIVERED_IN_STEP: u64 = 32_000;
const RATE: f64 = 32_000.0 * PER_SEC;

/// A radio of 1 024 000 bytes a second whose shares are all used, with a least time on the leg of an interval. A correction
/// is due after each.
struct Leg {
    ue: BestUe,
    seen: Seen,
    now: Time,
}

impl Leg {
    fn new() -> Leg {
        let ue = BestUe {
            is_busy: true,
            delivered: RATE,
            expected: RATE,
            fast: RATE,
            corrected: NOW,
            has_capacity: true,
            base: Some(1.0 / PER_SEC),
            ..BestUe::default()
        };
        let seen = busy(RATE, 1.0 / PER_SEC);
        Leg { ue, seen, now: NOW }
    }

    /// Lets a time pass in which so many bytes are delivered. Returns whether that ends the interval.
    fn passes(&mut self, span: Span, delivered: u64) -> bool {
        self.now += span;
        self.ue.total += delivered;
        self.ue.observe(&Best::default(), &self.seen, span.as_secs_f64(), self.now);
        self.ue.corrected == self.now
    }

    /// Lets an interval pass in which bytes are on the leg for so many seconds.
    fn interval(&mut self, on_leg: f64) {
        self.seen.in_flight = (on_leg * RATE).round() as u64;
        assert!(self.passes(STEP, DELIVERED_IN_STEP), "it is as long as the least time on the leg");
    }

    /// Returns the queue in seconds by which the capacity was lowered in the last interval.
    fn queue(&self) -> f64 {
        let (target, gain) = (0.005, self.ue.gain);
        assert!((1.0 - DOWN..1.0).contains(&gain), "the queue is too short or too long: {gain}");
        (1.0 - gain) / DOWN * (self.seen.radio_rtt + target) + 2.0 * target
    }
}

#[track_caller]
fn is_near(what: &str, got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 1e-9, "{what}: {got} for {wanted}");
}

/// An interval is 20 ms, the least time on the leg or a segment of each flow at the radio's rate, whichever is longest. If nothing
/// tells the queue, it goes on until 20 kB were delivered, up to 200 ms.
#[test]
fn an_interval_is_long_enough_for_what_it_is_to_tell() {
    let long = Span::from_millis(201);
    let (reported, rare) = (Some(0.0), Span::from_millis(200));
    let none = Span::ZERO;
    // The least time on the leg in seconds, segments in bytes, the queue, the period, and in how many milliseconds so many bytes are
    // delivered: first without an end, and then with it.
    type Row = (f64, f64, Option<f64>, Span, u64, u64);
    let rows: &[Row] = &[
        (0.01, 0.0, reported, none, 20, 1),
        (0.03, 0.0, reported, none, 30, 1),
        (0.01, 25_600.0, reported, none, 25, 1),
        (0.01, 10_240_000.0, reported, none, 200, 1),
        (0.01, 0.0, reported, rare, 20, 1),
        (0.01, 0.0, None, none, 20, 20_001),
        (0.01, 0.0, None, none, 200, 20_000),
        (0.01, 0.0, None, none, 200, 1),
        (0.01, 0.0, reported, long, 20, 20_001),
        (0.01, 0.0, reported, long, 200, 20_000),
        (0.3, 0.0, None, none, 300, 1),
    ];
    for &(radio_rtt, segments, queue, period, ms, delivered) in rows {
        let mut leg = Leg::new();
        leg.seen = Seen { radio_rtt, segments, queue, period, ..leg.seen };
        let row = format!("{radio_rtt} s, {segments}, {queue:?}, {period:?}, {delivered} in {ms} ms");
        assert!(!leg.passes(Span::from_millis(ms) - Span::from_nanos(1), delivered), "{row}: too early");
        assert!(leg.passes(Span::from_nanos(1), 0), "{row}: too late");
        assert_eq!((leg.ue.corrected_total, leg.ue.in_flight), (leg.ue.total, 0.0), "{row}: the next one begins");
    }
}

/// By Little's law, `in_flight` for an interval and what was delivered in it give the time on the leg. What is beyond twice the least
/// is a queue, but for a segment of each flow.
#[test]
fn a_queue_that_no_report_tells_is_inferred_from_the_time_on_the_leg() {
    let inferred = |on_leg: f64, segments: f64| {
        let mut leg = Leg::new();
        leg.seen.segments = segments;
        leg.interval(on_leg);
        leg.queue()
    };
    is_near("beyond two intervals", inferred(0.0625 + 0.02, 0.0), 0.02);
    is_near("a segment is none", inferred(0.0625 + 0.03, 10_240.0), 0.02);
    // The half that was delivered in an interval weighs half.
    let mut leg = Leg::new();
    leg.seen.in_flight = 64_000;
    leg.passes(STEP / 2, 0);
    leg.seen.in_flight = 105_000;
    leg.passes(STEP / 2, DELIVERED_IN_STEP);
    is_near("an average", leg.queue(), 84_500.0 / RATE - 0.0625);
    // At three quarters of the rate, the same time is a shorter queue.
    let mut leg = Leg::new();
    leg.seen.in_flight = 64_000;
    leg.passes(STEP, DELIVERED_IN_STEP * 3 / 4);
    is_near("less is delivered", leg.queue(), (64.0 / 24.0 / PER_SEC - 0.0625) * 0.75);
}

#[test]
fn the_least_time_on_the_leg_is_that_of_all_intervals_from_some_bytes_on() {
    let mut leg = Leg::new();
    leg.ue.base = None;
    let mut least = |on_leg: f64| {
        leg.interval(on_leg);
        leg.ue.leg().expect("it is known")
    };
    assert_eq!([0.25, 0.125, 0.25, 0.03125, 0.0].map(&mut least), [0.25, 0.125, 0.125, 0.03125, 0.03125]);
    // 20 kB in less than 200 ms say nothing.
    for (ms, delivered, base) in
        [(199, 20_000, None), (199, 20_001, Some(0.1)), (200, 0, None), (200, 10_000, Some(0.1))]
    {
        let mut leg = Leg::new();
        (leg.ue.base, leg.seen.queue, leg.seen.radio_rtt) = (None, Some(0.0), 0.02);
        leg.seen.in_flight = delivered * 100 / ms;
        leg.passes(Span::from_millis(ms), delivered);
        assert_eq!(leg.ue.leg().map(|base| (base * 100.0).round() / 100.0), base, "{delivered} in {ms} ms");
    }
}

/// A report is made when a burst of the flows' segments is there, or not. If more than one are made in an interval, one of them shows
/// the queue without it.
#[test]
fn a_reported_queue_is_the_least_of_an_interval_but_for_a_burst_if_reports_are_rare() {
    let reported = |period: Span, queues: [f64; 2]| {
        let mut leg = Leg::new();
        (leg.seen.period, leg.seen.segments, leg.seen.in_flight) = (period, 10_240.0, 64_000);
        for queue in queues {
            leg.seen.queue = Some(queue * RATE);
            leg.passes(STEP / 2, DELIVERED_IN_STEP / 2);
        }
        leg.queue()
    };
    let often = Span::from_millis(10);
    is_near("the first", reported(often, [0.03, 0.04]), 0.03);
    is_near("the second", reported(often, [0.04, 0.03]), 0.03);
    is_near("without a burst", reported(often + Span::from_nanos(1), [0.04, 0.045]), 0.03);
    // The least of an interval is not that of the next.
    let mut leg = Leg::new();
    leg.seen.in_flight = 64_000;
    for queue in [0.0, 0.03] {
        (leg.ue.gain, leg.seen.queue) = (1.0, Some(queue * RATE));
        leg.passes(STEP, DELIVERED_IN_STEP);
    }
    is_near("the next", leg.queue(), 0.03);
}

/// 3 % of a second at the radio's rate, and 1.1 times what our flows have on the leg.
#[test]
fn a_queue_far_longer_than_our_flows_can_fill_is_shared_by_others() {
    let most = 0.03 * RATE + 1.1 * 50_000.0;
    for (queue, period, is_shared) in [
        (most, CORRECTION, false),
        (most + 0.1, CORRECTION, true),
        (most + 0.1, CORRECTION + Span::from_nanos(1), false),
    ] {
        let mut leg = Leg::new();
        (leg.seen.queue, leg.seen.period, leg.seen.in_flight) = (Some(queue), period, 50_000);
        leg.passes(Span::from_millis(1), 0);
        assert_eq!(leg.ue.is_shared(leg.now), is_shared, "{queue} bytes, {period:?}");
        assert!(!leg.ue.is_shared(leg.now + SHARED), "it holds for a while");
    }
}

/// Beside a told queue of 62.5 ms. Acknowledgements may wait for an upload.
#[test]
fn rare_or_late_reports_tell_the_time_beside_the_queue_if_that_is_much_more_than_the_least() {
    let rare = CORRECTION + Span::from_nanos(1);
    let mut leg = Leg::new();
    leg.seen.period = rare;
    leg.seen.queue = Some(0.0625 * RATE);
    let mut told = |beside: f64| {
        leg.interval(0.0625 + beside);
        leg.ue.leg()
    };
    // The lesser one of the last two counts, if it is more than four times the least of 31.25 ms.
    let times = [0.1875, 0.1875, 0.15625, 0.25, 0.125, 0.25, 0.25].map(&mut told);
    assert_eq!(times, [0.03125, 0.1875, 0.15625, 0.15625, 0.03125, 0.03125, 0.25].map(Some));
    // Half more than that time is not a queue that nobody tells.
    leg.seen.queue = None;
    leg.ue.gain = 1.0;
    leg.interval(0.375 + 0.02);
    is_near("beyond one and a half", leg.queue(), 0.02);
    // Frequent reports tell all of it.
    (leg.seen.queue, leg.seen.period) = (Some(0.0625 * RATE), CORRECTION);
    leg.interval(0.3125);
    assert_eq!(leg.ue.leg(), Some(0.03125));

    // A late report counts once.
    let mut leg = Leg::new();
    leg.seen.period = rare;
    leg.seen.late_queue = Some(0.0625 * RATE);
    let mut told = |is_new: bool| {
        if is_new {
            leg.ue.report = leg.now;
        }
        leg.interval(0.0625 + 0.1875);
        leg.ue.leg()
    };
    assert_eq!(
        [false, true, false, false, true].map(&mut told),
        [0.03125, 0.03125, 0.03125, 0.03125, 0.1875].map(Some)
    );
}

/// What a queue took comes back only if that has gone, which rare reports tell late.
#[test]
fn a_rare_report_of_a_long_queue_that_the_time_on_the_leg_denies_takes_nothing_for_later() {
    let rare = CORRECTION + Span::from_nanos(1);
    let bytes = |seconds: f64| seconds * RATE;
    // 62.5 ms, of which half would be 31.25 ms beyond twice the least time on the leg; and four times the target of 5 ms.
    for (period, queue, on_leg_bytes, is_noted) in [
        (rare, bytes(0.0625), 96_000, true),
        (rare, bytes(0.0625), 95_999, false),
        (CORRECTION, bytes(0.0625), 95_999, true),
        (rare, bytes(0.02), 64_000, true),
        (rare, bytes(0.02) + 1.0, 64_000, false),
    ] {
        let mut leg = Leg::new();
        (leg.seen.period, leg.seen.queue, leg.seen.in_flight) = (period, Some(queue), on_leg_bytes);
        leg.passes(STEP, DELIVERED_IN_STEP);
        assert_eq!(leg.ue.high, if is_noted { 1.0 } else { 0.0 }, "{period:?}, {queue} of {on_leg_bytes}");
    }
    // Without a report there is nothing to deny.
    let mut leg = Leg::new();
    (leg.seen.period, leg.ue.high) = (rare, 1.0);
    leg.interval(0.03125);
    assert_eq!(leg.ue.high, 1.0);
}

/// Whatever was queued before the first report is drained by an eighth of the interval each: half of what a quarter less sends.
#[test]
fn a_queue_from_before_the_capacity_was_known_is_drained_as_long_as_that_shortens_it() {
    let slow = |leg: &Leg| leg.ue.pace() == DRAINING;
    let must = 0.25 / PER_SEC / 2.0;
    let start = || {
        let mut leg = Leg::new();
        (leg.ue.has_capacity, leg.ue.base) = (false, None);
        leg
    };
    let mut leg = start();
    for (on_leg, drains) in [(0.25, true), (0.25 - 1.25 * must, true), (0.25 - 2.25 * must, false), (0.03125, false)] {
        leg.interval(on_leg);
        assert_eq!(slow(&leg), drains, "{on_leg} s");
        assert!(leg.ue.gain >= 1.0, "nothing is learnt from it");
        assert_eq!(leg.ue.base.is_some(), !drains, "{on_leg} s");
    }
    // A reported queue needs no draining, and what is lost is unknown.
    let mut leg = start();
    leg.seen.queue = Some(0.0);
    leg.interval(0.25);
    assert!(!slow(&leg));
    let mut leg = Leg::new();
    leg.interval(0.25);
    assert!(!slow(&leg), "the capacity was known before");
    leg.ue.draining = Some(Drain { since: NOW, queue: 0.1, unseen: 0.0 });
    leg.seen.queue = Some(0.0);
    leg.passes(Span::from_millis(1), 0);
    leg.ue.lose_capacity(leg.now);
    assert_eq!((leg.ue.corrected, leg.ue.in_flight), (leg.now, 0.0), "the next interval begins");
    assert!(!slow(&leg), "without a capacity, a congestion control rules");
    leg.seen.queue = None;
    leg.interval(0.25);
    assert!(slow(&leg), "the queue that it has left is drained, too");
    leg.ue.lose_capacity(leg.now);
    assert!(!slow(&leg));
}

#[test]
fn the_target_is_the_least_time_on_the_leg_if_reports_tell_the_queue() {
    let target = |base, is_reported, most| {
        let of = Best { radio_target: Span::from_micros(most), ..Best::default() };
        BestUe { base, is_reported, ..BestUe::default() }.target(&of)
    };
    assert_eq!(target(Some(0.003), true, 5_000), 0.003);
    assert_eq!(target(Some(0.008), true, 5_000), 0.005);
    assert_eq!(target(Some(0.0001), true, 5_000), 0.001, "a millisecond at least");
    assert_eq!(target(Some(0.0001), true, 500), 0.0005, "unless less is wanted");
    assert_eq!(target(Some(0.003), false, 5_000), 0.005);
    assert_eq!(target(None, true, 5_000), 0.005);
}

/// What is delivered and the part that was used of the blocks tell what all of them would carry, up to twice what reports tell. A
/// capacity below the reported one has turned out so: then it is not more than that.
#[test]
fn the_service_is_what_the_radio_would_deliver_if_it_were_never_idle() {
    let service =
        |gain, delivered, used, capacity| BestUe { gain, delivered, used, ..BestUe::default() }.service(capacity);
    assert_eq!(service(1.0, 1e6, 0.8, 1e6), 1.25e6);
    assert_eq!(service(1.0, 1e6, 0.25, 1e6), 2e6);
    assert_eq!(service(2.0, 1e6, 0.25, 2e6), 2e6);
    assert_eq!(service(0.5, 0.5e6, 0.25, 0.5e6), 1e6);
    assert_eq!(service(1.0, 3e6, 1.0, 1e6), 3e6, "what is delivered, it delivers");
    assert_eq!(service(1.0, 1e4, 1.0, 1e6), 1e5, "a tenth of the capacity at least");
}

#[test]
fn a_feed_that_is_believed_again_begins_without_corrections() {
    let mut ue = BestUe {
        gain: 2.0,
        risen_from: 2.0,
        untold: 1.0,
        high: 3.0,
        is_lowered: true,
        stretch: 4.0,
        is_busy: true,
        ..BestUe::default()
    };
    ue.start_anew();
    assert_eq!([ue.gain, ue.risen_from, ue.untold, ue.high, ue.stretch], [1.0, 1.0, 0.0, 0.0, 1.0]);
    assert!(!ue.is_lowered && !ue.is_busy);
}

#[test]
fn fast_flows_alone_slow_down_to_drain_a_queue() {
    let drain = Some(Drain { since: NOW, queue: 0.1, unseen: 0.0 });
    let pace =
        |draining, expected, fast| BestUe { draining, delivered: 1e6, expected, fast, ..BestUe::default() }.pace();
    assert_eq!(pace(None, 1e6, 1e6), PACING);
    assert_eq!(pace(drain, 1e6, 0.0), PACING, "there is none");
    assert_eq!(pace(drain, 1e6, 1e6), 0.75);
    // They have what slow flows leave of three quarters of what is delivered.
    assert_eq!(pace(drain, 1e6, 0.5e6), 0.5);
    assert_eq!(pace(drain, 1.5e6, 1e6), 0.25);
    assert_eq!(pace(drain, 1e6, 0.25e6), LEAST_PACE);
    assert_eq!(pace(drain, 0.6e6, 0.6e6), DRAINING, "and no more than that");
}

/// A queue of 100 ms beside traffic of others. Half of what three quarters of the rate drain in 0.25 s are 31.25 ms.
#[test]
fn a_queue_is_ours_if_it_shrinks_as_our_flows_slow_down() {
    let others = 0.25 * RATE;
    let start = |queue: f64| {
        let mut leg = Leg::new();
        (leg.ue.unseen, leg.ue.is_queued, leg.ue.next_drain) = (others, true, NOW);
        leg.ue.drain(&Best::default(), &leg.seen, queue, NOW);
        leg
    };
    let drains = |leg: &Leg| leg.ue.draining.is_some();
    // Four times the target of 5 ms.
    assert!(!drains(&start(0.02)) && drains(&start(0.0201)));
    let mut early = Leg::new();
    (early.ue.unseen, early.ue.is_queued, early.ue.next_drain) = (others, true, NOW + Span::from_nanos(1));
    early.ue.drain(&Best::default(), &early.seen, 0.1, NOW);
    assert!(!drains(&early), "not before its time");

    // After how long, the queue then, whether a report has come, what is not seen, and whether it goes on.
    let filled = others + 0.05 * RATE;
    let quarter = Span::from_millis(250);
    for (after, queue, is_told, unseen, goes_on) in [
        (DRAIN - Span::from_nanos(1), 0.1, false, 0.5 * RATE, true),
        (DRAIN, 0.1, true, others, false),
        (quarter, 0.125 - 0.03125, true, others, false),
        (quarter, 0.125 - 0.0313, true, others, true),
        (quarter, 0.01, false, others, false),
        (quarter, 0.01, true, filled, true),
        (quarter, 0.01, true, filled + 1.0, false),
        // It has shrunk by more than half, although three quarters of the rate would have drained twice that.
        (Span::from_secs(1), 0.0626, true, others, false),
        (Span::from_secs(1), 0.0624, true, others, true),
    ] {
        let mut leg = start(0.125);
        let now = NOW + after;
        leg.ue.unseen = unseen;
        leg.ue.report = if is_told { now } else { NOW };
        leg.ue.drain(&Best::default(), &leg.seen, queue, now);
        let row = format!("{after:?}, {queue} s, {is_told}, {unseen}");
        assert_eq!(drains(&leg), goes_on, "{row}");
        assert_eq!(leg.ue.next_drain, if goes_on { NOW } else { now + DRAIN_AGAIN }, "{row}");
        assert_eq!(leg.ue.gain, 1.0, "{row}");
    }

    // When it has gone, or nobody else sends: it was ours if a report has told since then, and others have not filled the gap.
    for (is_queued, is_told, unseen, gain) in [
        (false, true, others, LESS),
        (false, false, others, 1.0),
        (false, true, filled, LESS),
        (false, true, filled + 1.0, 1.0),
        (true, true, 0.0, LESS),
    ] {
        let mut leg = start(0.1);
        (leg.ue.is_queued, leg.ue.unseen) = (is_queued, unseen);
        leg.ue.report = NOW + Span::from_nanos(u64::from(is_told));
        leg.ue.drain(&Best::default(), &leg.seen, 0.1, NOW + quarter);
        assert_eq!((leg.ue.gain, drains(&leg)), (gain, false), "{is_queued}, {is_told}, {unseen}");
        leg.ue.drain(&Best::default(), &leg.seen, 0.1, NOW + quarter);
        assert_eq!(leg.ue.gain, gain, "once");
    }
}
