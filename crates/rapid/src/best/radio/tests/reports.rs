//! What reports say beside what was delivered.

use super::super::*;
use super::NOW;
use crate::fluid::report;
use rnis::RadioReport;

const TENTH: Span = Span::from_millis(100);

/// A report of a cell of 100 blocks of 800 bits for one UE, which used `prbs` of them each millisecond in so long an interval.
fn told(at: Time, interval: Span, prbs: u64) -> RadioReport {
    let mut report = report(at, interval, 0.0);
    let used = prbs * u64::from(report.slots);
    (report.prbs, report.cell_prbs, report.bits_per_prb) = (Some(used), Some(used), Some(800.0));
    report.acked_bits = used * 800;
    report
}

#[track_caller]
fn is_near(what: &str, got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 1e-6 * wanted.abs().max(1.0), "{what}: {got} for {wanted}");
}

/// After the time constant, an average is half of the way to the new value.
#[test]
fn averages_are_half_way_after_a_tenth_of_a_second() {
    let mut ue = BestUe::default();
    let mut capacity = Capacity::default();
    ue.measure([5_000, 0, 0], &mut capacity, NOW);
    assert_eq!((ue.delivered, ue.total), (0.0, 5_000), "there is no time to divide by yet");
    ue.measure([1_000, 500, 0], &mut capacity, NOW);
    assert_eq!((ue.delivered, ue.unknown, ue.total), (0.0, 0.0, 6_000), "nor between calls of one time");
    let now = NOW + TENTH;
    let blocks = told(now, TENTH, 50);
    capacity.on_report(&blocks, now);
    ue.measure([40_000, 10_000, 0], &mut capacity, now);
    is_near("delivered", ue.delivered, 200_000.0);
    is_near("unknown", ue.unknown, 50_000.0);
    // It could have all blocks, and used half.
    is_near("used", ue.used, 0.75);
    is_near("decoded", ue.decoded, 0.5 * PAYLOAD * 5e6);
    // What came before the second call counts, since the first: 41 kB.
    is_near("received", ue.received, 0.5 * 410_000.0);
    is_near("unseen", ue.unseen, 0.5 * (PAYLOAD * 5e6 - 410_000.0));
    assert_eq!(ue.report, now);
    // Without a report, only what is delivered is known.
    let (unseen, later) = (ue.unseen, now + TENTH);
    ue.measure([0, 0, 0], &mut capacity, later);
    is_near("delivered", ue.delivered, 100_000.0);
    assert_eq!((ue.unseen, ue.report), (unseen, now));
    // The next one is about all since the last: 20 kB in 0.3 s.
    let end = later + TENTH * 2;
    capacity.on_report(&told(end, TENTH * 3, 50), end);
    ue.measure([20_000, 0, 0], &mut capacity, end);
    is_near("received", ue.received, 205_000.0 + (20_000.0 / 0.3 - 205_000.0) * 0.75);
}

/// Bytes in flight that do not wait in the radio have been received. A queue that was told long ago says nothing.
#[test]
fn what_is_in_flight_and_not_queued_has_been_received() {
    for (queue_bytes, age, received) in [
        (Some(30_000), Span::ZERO, 20_000.0),
        (Some(30_000), FRESH, 20_000.0),
        (Some(30_000), FRESH + Span::from_nanos(1), 10_000.0),
        (Some(60_000), Span::ZERO, 10_000.0),
        (None, Span::ZERO, 10_000.0),
    ] {
        let (mut ue, mut capacity) = (BestUe::default(), Capacity::default());
        let now = NOW + TENTH;
        ue.measure([0, 0, 0], &mut capacity, NOW);
        let made = NOW + (TENTH - age);
        capacity.on_report(&RadioReport { queue_bytes, ..told(made, TENTH, 50) }, made);
        ue.measure([10_000, 0, 40_000], &mut capacity, now);
        is_near(&format!("{queue_bytes:?}, {age:?}"), ue.received, 0.5 * received * 10.0);
    }
}

/// A feed that has turned out too high is too high in what it says of others, unless the queue shows that they are there.
#[test]
fn what_others_receive_is_corrected_like_the_capacity_but_not_above_the_reports() {
    let just = Span::from_nanos(1);
    for (gain, shared, part) in [
        (1.0, None, 1.0),
        (0.5, None, 0.5),
        (1.5, None, 1.0),
        (0.5, Some(SHARED - just), 1.0),
        (0.5, Some(SHARED), 0.5),
    ] {
        let now = NOW + TENTH;
        let shared = shared.map(|ago| Time::from_nanos((now - Time::ZERO - ago).as_nanos()));
        let (mut ue, mut capacity) = (BestUe { gain, shared, ..BestUe::default() }, Capacity::default());
        ue.measure([0, 0, 0], &mut capacity, NOW);
        capacity.on_report(&told(now, TENTH, 50), now);
        ue.measure([0, 0, 0], &mut capacity, now);
        is_near(&format!("{gain}, {shared:?}"), ue.unseen, 0.5 * PAYLOAD * 5e6 * part);
    }
}

#[test]
fn a_correction_that_the_next_report_tells_too_does_not_count_twice() {
    let rare = CORRECTION + Span::from_nanos(1);
    let hears = |mut ue: BestUe, bits_per_prb: f64, period: Span| {
        let mut capacity = Capacity::default();
        let report =
            RadioReport { bits_per_prb: Some(bits_per_prb), active_ues: Some(0), slots: 20, ..told(NOW, period, 0) };
        capacity.on_report(&report, NOW);
        ue.hear(&capacity);
        assert_eq!(ue.told, capacity.fair().expect("it is told"));
        (ue.gain, ue.untold)
    };
    // 100 blocks of 800 bits in each of 20 slots.
    let before = 100.0 * 800.0 * 20.0 / 8.0 / rare.as_secs_f64();
    let remains = (-1.0_f64 / UNTOLD).exp();
    // A capacity was corrected, the part of that which no report has told, what becomes of the reported one, and what both become.
    for (gain, untold, change, left, still) in [
        (0.5, 0.5, 0.5, 1.0, 1.0),
        (0.5, 0.5, 0.25, 1.0, 1.0),
        (0.5, 0.5, 0.8, 0.625, 0.625),
        (0.5, 0.5, 1.5, 0.5, 0.5),
        (0.5, 0.8, 0.5, 0.625, 1.0),
        (2.0, 2.0, 2.0, 1.0, 1.0),
        (2.0, 2.0, 4.0, 1.0, 1.0),
        (2.0, 2.0, 1.25, 1.6, 1.6),
        (2.0, 2.0, 0.5, 2.0, 2.0),
        (16.0, 0.25, 0.25, BOUNDS.1, 1.0),
        (0.2, 4.0, 4.0, BOUNDS.0, 1.0),
    ] {
        let ue = BestUe { gain, untold: f64::ln(untold), told: before, ..BestUe::default() };
        let row = format!("{gain}, {untold}, {change}");
        let got = hears(ue.clone(), 800.0 * change, rare);
        is_near(&row, got.0, left);
        is_near(&row, got.1, f64::ln(still) * remains);
        // Frequent reports tell a change at once, and the first one tells none.
        assert_eq!(hears(ue.clone(), 800.0 * change, CORRECTION), (gain, 0.0), "{row}");
        assert_eq!(hears(BestUe { told: 0.0, ..ue.clone() }, 800.0 * change, rare), (gain, 0.0), "{row}");
        assert_eq!(hears(ue, 0.0, rare), (gain, 0.0), "{row}");
    }
}
