//! Which reports are taken, and what they change, each at its limits.

use super::*;
use crate::sender::tests::{MSS, at, flying, plain, sacked, with_context};
use cc::new_reno::NewReno;
use units::Time;

const MS: fn(u64) -> Span = Span::from_millis;

/// Ten segments are in flight since 1000 ms, past a PEP that is listened to.
fn reported() -> Sender<NewReno> {
    let mut s = flying(10, 20);
    let listens = cc::Listens { passages: true, early_retransmission: true, ..cc::Listens::default() };
    s.pep = Pep::new(listens, None, at(900));
    s
}

/// A report on bytes `from..through` of the stream without those missing, at `ms`; whether it was taken.
fn report(s: &mut Sender<NewReno>, from: u32, through: u32, missing: &[(u32, u32)], echo: u32, ms: u64) -> bool {
    let mut report = wire::report::Report::new(from, through);
    missing.iter().for_each(|&(start, end)| assert!(report.push(wire::Block { start, end })));
    let taken = with_context(ms, |cx| s.on_report(1, &report, wire::Timestamps { value: 0, echo }, cx));
    s.queue.audit(true);
    taken
}

#[test]
fn a_report_is_taken_if_it_is_of_what_is_in_flight_and_no_older_than_the_last() {
    for (from, through, echo, taken) in [
        (0, 1_000, 1_000, true),
        (0, 10_000, 1_000, true),
        (0, 10_001, 1_000, false),
        (5, 6, 1_000, true),
        (5, 5, 1_000, false),
        (0, 1_000, 1_050, true),
        (0, 1_000, 1_051, false),
        (0, 1_000, 900, true),
        (0, 1_000, 899, false),
    ] {
        let mut s = reported();
        assert_eq!(report(&mut s, from, through, &[], echo, 1_050), taken, "{from} {through} {echo}");
        assert!(!s.announcement_is_due(at(2_000)), "the controller misses no passages");
        if taken {
            let again = [echo.wrapping_sub(1), echo].map(|echo| report(&mut s, 0, 1_000, &[], echo, 1_050));
            assert_eq!(again, [false, true]);
        }
    }
}

#[test]
fn what_is_missing_is_lost_unless_it_left_after_what_has_passed() {
    // The echo, whether the segment was sent before, and what becomes of it.
    for (echo, again, lost) in
        [(1_000, 0, 1), (999, 0, 0), (1_000, EVER_RETRANSMITTED, 0), (1_001, EVER_RETRANSMITTED, 1)]
    {
        let mut s = reported();
        s.queue.get_mut(2).flags |= again;
        assert!(report(&mut s, 0, 5_000, &[(2_000, 3_000)], echo, 1_050));
        assert_eq!((s.queue.lost_out, s.stats.lost, s.rate.lost), (lost, lost.into(), lost.into()), "{echo}");
        assert_eq!(s.recovery.phase == Phase::Recovery, lost > 0);
        assert!(s.queue.get(2).has(crate::queue::ANNOUNCED));
        // All of what was marked had been announced, which is told once.
        assert_eq!(s.stats.recoveries, u64::from(lost));
        assert_eq!(s.recovery.early, if lost > 0 { 3_001 } else { 0 });
    }
    // What the receiver has is not missing, and neither is a segment of which a part has passed.
    let mut s = reported();
    sacked(&mut s, 0, &[(2, 3)], 1_040);
    assert!(report(&mut s, 0, 9_000, &[(2_000, 3_000), (5_001, 6_000)], 1_000, 1_050));
    assert_eq!((s.queue.lost_out, s.queue.sacked_out), (0, 1));
}

#[test]
fn announcements_begin_a_second_after_the_last_report_and_double_up_to_64() {
    let mut s = Sender::new(&plain(), cc::multi_domain::MultiDomain::new(Default::default(), 10), 0, Time::ZERO);
    s.take_rtt(MS(100), Some(MS(100)), at(100));
    s.begin(MSS, true, at(100));
    assert!(!s.announcement_is_due(at(1_000)), "there was no PEP");
    s.pep = Pep::new(s.controller.listens(), None, at(100));
    assert!(!s.announcement_is_due(at(1_000)), "none was heard");
    s.window = 1 << 20;
    s.write(1_000);
    with_context(1_000, |cx| s.poll(0, cx));
    let report = wire::report::Report::new(0, 500);
    assert!(with_context(1_010, |cx| s.on_report(1, &report, wire::Timestamps { value: 0, echo: 1_000 }, cx)));
    assert!(!s.announcement_is_due(at(1_010)), "the controller has just heard it");
    // It has not for a while.
    s.controller = cc::multi_domain::MultiDomain::new(Default::default(), 10);
    assert!(s.announcement_is_due(at(1_010)));
    let mut now = 1_010;
    for wait in [1, 2, 4, 8, 16, 32, 64, 64] {
        s.note_announcement(at(now));
        now += wait * 1_000;
        assert!(!s.announcement_is_due(at(now - 1)) && s.announcement_is_due(at(now)), "{wait} s");
    }
}

#[test]
fn what_passed_beyond_a_gap_is_not_passed_in_a_row() {
    let mut s = reported();
    let una = |s: &mut Sender<NewReno>, from, through| {
        assert!(report(s, from, through, &[], 1_000, 1_050));
        let first = s.pep.as_ref().and_then(|pep| pep.passed.first());
        first.filter(|first| first.start <= s.una).map_or(s.una, |first| first.end)
    };
    assert_eq!(una(&mut s, 2_000, 4_000), 1);
    assert_eq!(una(&mut s, 0, 1_000), 1_001);
    assert_eq!(una(&mut s, 1_000, 2_000), 4_001);
}
