use super::*;
use crate::driver::Driver;
use units::Span;

fn driver(config: MultiDomainConfig) -> Driver<MultiDomain> {
    let mut d = Driver::new(MultiDomain::new(config, 10));
    d.ack.rtt = Some(Span::from_millis(30));
    d
}

/// The PEP reports so many segments passed and missing, and everything so far with them.
fn report(d: &mut Driver<MultiDomain>, passed: u32, missing: u32) {
    let (una, next) = d.sequence();
    let passage = Passage {
        reported: true,
        passed,
        missing,
        in_flight: d.cwnd(),
        cwnd_limited: true,
        rtt: Some(Span::from_millis(10)),
        una: if missing > 0 { una } else { next },
        next,
    };
    d.call(|c, cx| c.on_signal(&Signal::Passage(passage), cx));
}

/// The endpoint reacts to a loss that was announced.
fn react_to_announced(d: &mut Driver<MultiDomain>, lost: u32) {
    let (una, next) = d.sequence();
    let announced = Congestion { sign: Sign::Loss, in_flight: 80, lost, una, next, announced: true };
    d.call(|c, cx| c.on_congestion(&announced, cx));
}

/// Everything is acknowledged, and no window grows by it.
fn settle(d: &mut Driver<MultiDomain>) {
    let (una, next) = d.sequence();
    (d.ack.cwnd_limited, d.ack.phase) = (false, Phase::Open);
    d.acked(((next - una) / 1000) as u32);
    d.ack.cwnd_limited = true;
}

fn windows(d: &Driver<MultiDomain>) -> (u32, Option<u32>) {
    let gauge = |name| crate::gauge(&d.c, name).map(|window| window as u32);
    (gauge(CWND_PEP).expect("it always has one"), gauge(CWND_E2E))
}

/// A PEP is heard, and both windows are out of slow start: (100, 100) or near.
fn avoiding() -> Driver<MultiDomain> {
    let mut d = driver(MultiDomainConfig::default());
    report(&mut d, 0, 0);
    d.fill();
    while windows(&d).0 < 144 {
        report(&mut d, 1, 0);
    }
    // 144 * 0.7 = 100 after the one, 100 - 100 / 8 = 88 after the other.
    d.fill();
    report(&mut d, 0, 1);
    settle(&mut d);
    d.fill();
    report(&mut d, 0, 0);
    d.react(Sign::Loss, d.cwnd());
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 88;
    d.sacked(1);
    d.ack.phase = Phase::Open;
    d.acked(0);
    d
}

#[test]
fn the_defaults_of_files_are_those_of_the_controller() {
    assert_eq!(MultiDomainConfig::from(&Parameters::default()), MultiDomainConfig::default());
}

#[test]
fn without_a_pep_it_is_cubic() {
    let mut a = driver(MultiDomainConfig::default());
    let mut b = Driver::new(Cubic::new(CubicConfig::default(), 10));
    b.ack.rtt = a.ack.rtt;
    for round in 0..40 {
        a.fill();
        b.fill();
        if round % 9 == 8 {
            a.lose_and_recover();
            b.lose_and_recover();
        }
        for _ in 0..20 {
            a.acked(1);
            b.acked(1);
            a.wait_ms(1);
            b.wait_ms(1);
            assert_eq!(a.limits(), b.limits(), "round {round}");
        }
    }
}

#[test]
fn reports_clock_one_window_and_acknowledgements_the_other() {
    let mut d = driver(MultiDomainConfig::default());
    report(&mut d, 5, 0);
    // The head start: ten times the initial window.
    assert_eq!(windows(&d), (15, Some(100)));
    d.acked(5);
    assert_eq!(windows(&d), (15, Some(105)));
    assert_eq!(d.cwnd(), 15);
}

#[test]
fn the_larger_window_is_at_most_twice_the_smaller_once_the_head_start_is_caught_up() {
    let mut d = driver(MultiDomainConfig::default());
    report(&mut d, 30, 0);
    assert_eq!(windows(&d), (40, Some(100)));
    report(&mut d, 10, 0);
    assert_eq!(windows(&d), (50, Some(100)));
    d.acked(30);
    assert_eq!(windows(&d), (50, Some(100)), "130 is cut to twice 50");
    report(&mut d, 400, 0);
    assert_eq!(windows(&d), (200, Some(100)), "450 is cut to twice 100");
    assert_eq!(d.cwnd(), 100);
}

#[test]
fn what_a_pep_misses_reduces_the_wired_window_alone_and_what_the_radio_loses_the_other() {
    let mut d = avoiding();
    let e2e = windows(&d).1;
    let counts = d.cwnd();
    d.fill();
    report(&mut d, 0, 3);
    // The endpoint reacts to the same loss, which was announced.
    react_to_announced(&mut d, 3);
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 60;
    d.sacked(1);
    assert_eq!(windows(&d).1, e2e);
    settle(&mut d);
    assert_eq!(windows(&d).0, counts * 717 / 1024);

    let mut d = avoiding();
    let pep = windows(&d).0;
    d.fill();
    d.react(Sign::Loss, d.cwnd());
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 77;
    d.sacked(1);
    d.ack.phase = Phase::Open;
    d.acked(0);
    let e2e = e2e.expect("a PEP is heard");
    assert_eq!(windows(&d), (pep, Some(e2e - e2e / 8)));
}

#[test]
fn the_wired_window_is_reduced_once_in_a_round_trip_of_the_whole_path() {
    let mut d = avoiding();
    let pep = d.cwnd();
    d.fill();
    report(&mut d, 0, 1);
    // What was in flight has passed the PEP, but not all of it has reached the receiver, and more is missing.
    report(&mut d, 20, 0);
    report(&mut d, 20, 1);
    d.ack.in_flight = pep / 2;
    settle(&mut d);
    let once = pep * 717 / 1024;
    assert_eq!(windows(&d).0, once);
    // In the next round trip it is.
    d.fill();
    report(&mut d, 0, 1);
    settle(&mut d);
    assert_eq!(windows(&d).0, once * 717 / 1024);
}

#[test]
fn a_loss_reduces_a_window_that_does_not_count_from_the_one_that_does() {
    let (mut d, pep) = unequal();
    d.fill();
    d.react(Sign::Loss, pep);
    settle(&mut d);
    assert_eq!(windows(&d), (pep, Some(pep - pep / 8)), "the radio lost");

    // The other counts, and the wired window has grown to twice as much.
    let mut d = avoiding();
    for _ in 0..200 {
        report(&mut d, 100, 0);
        d.wait_ms(10);
    }
    let e2e = windows(&d).1.expect("a PEP is heard");
    assert_eq!(windows(&d).0, 2 * e2e);
    d.fill();
    report(&mut d, 0, 1);
    settle(&mut d);
    assert_eq!(windows(&d), (e2e * 717 / 1024, Some(e2e)), "the wire lost");
}

#[test]
fn a_reduction_of_the_wired_window_follows_acknowledgements() {
    let mut d = avoiding();
    let (una, _) = d.sequence();
    let pep = d.cwnd();
    d.fill();
    report(&mut d, 0, 1);
    // 10 of W are delivered, W - 10 are in flight: 7 may leave, whatever has passed the PEP meanwhile.
    d.ack.in_flight = pep - 10;
    d.ack.phase = Phase::Recovery;
    d.sacked(10);
    let expected = pep - 10 + (10 * (pep * 717 / 1024)).div_ceil(pep);
    assert_eq!(windows(&d).0, expected);
    report(&mut d, 30, 0);
    assert_eq!((windows(&d).0, d.sequence().0), (expected, una));
}

#[test]
fn what_was_announced_during_a_reduction_and_sent_in_it_begins_the_next() {
    let mut d = avoiding();
    let pep = d.cwnd();
    d.fill();
    report(&mut d, 0, 1);
    let (_, high) = d.sequence();
    report(&mut d, 5, 1);
    let next = high + 20_000;
    let late = Congestion { sign: Sign::Loss, in_flight: 20, lost: 1, una: high, next, announced: true };
    d.call(|c, cx| c.on_congestion(&late, cx));
    settle(&mut d);
    let once = pep * 717 / 1024;
    d.call(|c, cx| {
        let late = Congestion { una: next, next, ..late.clone() };
        c.on_congestion(&late, cx);
    });
    assert_eq!(d.ssthresh(), (once * 717 / 1024) * 717 / 1024);
}

#[test]
fn without_the_filter_an_announced_loss_reduces_both() {
    let mut d = driver(MultiDomainConfig { loss_filter: false, ..MultiDomainConfig::default() });
    report(&mut d, 90, 0);
    react_to_announced(&mut d, 1);
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 50;
    d.sacked(1);
    d.ack.phase = Phase::Open;
    d.acked(0);
    assert_eq!(windows(&d).1, Some(100 - 100 / 8));
}

#[test]
fn a_loss_on_the_radio_within_a_recovery_from_an_announced_one_counts() {
    let mut d = avoiding();
    let e2e = windows(&d).1.expect("a PEP is heard");
    d.fill();
    report(&mut d, 0, 1);
    react_to_announced(&mut d, 1);
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 70;
    d.sacked(1);
    d.react(Sign::Loss, 70);
    d.sacked(1);
    d.ack.phase = Phase::Open;
    d.acked(0);
    assert_eq!(windows(&d).1, Some(e2e - e2e / 8));
}

#[test]
fn a_pep_that_falls_silent_is_gone_after_two_round_trips_and_may_come_back() {
    let mut d = avoiding();
    let before = windows(&d);
    for round in 1..=3 {
        d.fill();
        let cwnd = d.cwnd();
        assert!(windows(&d).1.is_some(), "round {round}");
        d.acked_singly(cwnd + 1);
    }
    let (pep, e2e) = windows(&d);
    assert_eq!((e2e, d.cwnd()), (None, pep), "CUBIC alone");
    assert!(pep >= before.0.min(before.1.expect("a PEP was heard")));
    report(&mut d, 1, 0);
    assert!(windows(&d).1.is_some());
}

#[test]
fn a_time_out_is_cubics() {
    let mut d = avoiding();
    d.fill();
    d.react(Sign::Timeout { again: false }, 0);
    assert_eq!((d.cwnd(), windows(&d).1), (1, None));
    // A report changes nothing until the loss is repaired.
    d.ack.phase = Phase::Loss;
    report(&mut d, 50, 0);
    assert_eq!((d.cwnd(), windows(&d).1), (1, None));
    d.acked_singly(4);
    assert_eq!(d.cwnd(), 5);
    d.ack.phase = Phase::Open;
    d.acked(0);
    report(&mut d, 1, 0);
    assert!(windows(&d).1.is_some());
}

/// A PEP is heard, and so many more segments have passed it: `cwnd_pep` has grown by as many from 10, and
/// `cwnd_e2e` is 100.
fn published(passed: u32) -> Driver<MultiDomain> {
    let mut d = driver(MultiDomainConfig { mode: Mode::Published, ..MultiDomainConfig::default() });
    report(&mut d, passed, 0);
    d.fill();
    d
}

#[test]
fn as_published_each_report_of_missing_segments_reduces_the_wired_window_at_once() {
    let mut d = published(90);
    assert_eq!(windows(&d), (100, Some(100)));
    // 0.7 of 100, of 70 and of 49, as Linux rounds; the segments that passed beside the missing ones grow nothing.
    // The other is at most twice as large.
    for expected in [(70, Some(100)), (49, Some(98)), (34, Some(68))] {
        report(&mut d, 20, 1);
        assert_eq!(windows(&d), expected);
    }
    // The endpoint detects what was announced: neither window is reduced for it.
    react_to_announced(&mut d, 3);
    d.ack.phase = Phase::Recovery;
    d.sacked(1);
    assert_eq!(windows(&d), (34, Some(68)));
    // What has passed in the meantime grows the window, although the recovery goes on; nothing is undone.
    report(&mut d, 3, 0);
    assert!((34..=36).contains(&windows(&d).0), "{:?}", windows(&d));
    d.undo();
    settle(&mut d);
    assert!((34..=36).contains(&windows(&d).0), "{:?}", windows(&d));
    assert_eq!(windows(&d).1, Some(68));
}

#[test]
fn as_published_each_window_is_reduced_from_its_own_value() {
    // The radio loses something while the wired window of 50 applies: 100 - 100 / 8 instead of 50 - 50 / 8.
    let mut d = published(40);
    assert_eq!(windows(&d), (50, Some(100)));
    d.react(Sign::Loss, 50);
    settle(&mut d);
    assert_eq!(windows(&d), (50, Some(88)));
    // The wire loses something while the other of 100 applies: 0.7 of 200 instead of 100.
    let mut d = published(190);
    assert_eq!(windows(&d), (200, Some(100)));
    report(&mut d, 0, 1);
    assert_eq!(windows(&d), (140, Some(100)));
}

#[test]
fn as_published_a_report_ends_the_reduction_of_a_mark() {
    let mut d = published(90);
    d.react(Sign::Ecn, 100);
    report(&mut d, 0, 1);
    // 0.7 of 100 by the mark, and of 70 by the report.
    assert_eq!(windows(&d).0, 49);
    d.ack.in_flight = 60;
    d.ack.phase = Phase::Cwr;
    d.sacked(1);
    assert_eq!(windows(&d).0, 49);
}

#[test]
fn a_spurious_reaction_is_taken_back_where_it_was_taken() {
    let mut d = avoiding();
    let (before, e2e) = (d.cwnd(), windows(&d).1);
    d.fill();
    report(&mut d, 0, 1);
    react_to_announced(&mut d, 1);
    d.undo();
    d.acked(0);
    assert_eq!((d.cwnd(), windows(&d).1), (before, e2e));
}

/// The wired window applies, and the other has grown to twice as much.
fn unequal() -> (Driver<MultiDomain>, u32) {
    let mut d = avoiding();
    d.fill();
    report(&mut d, 0, 1);
    settle(&mut d);
    let pep = windows(&d).0;
    for _ in 0..200 {
        d.fill();
        report(&mut d, 0, 0);
        d.acked_singly(pep);
    }
    assert_eq!(windows(&d), (pep, Some(2 * pep)));
    (d, pep)
}

#[test]
fn a_wired_loss_while_the_other_window_reduces_starts_from_the_wired_windows_own_value() {
    let (mut d, pep) = unequal();
    // The radio loses, and the flight falls below both windows.
    d.fill();
    d.react(Sign::Loss, pep);
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = pep * 6 / 10;
    d.sacked(1);
    assert!(d.cwnd() < pep * 7 / 10, "{}", d.cwnd());
    report(&mut d, 0, 1);
    settle(&mut d);
    assert_eq!(windows(&d).0, pep * 717 / 1024);
}

#[test]
fn after_the_pep_has_gone_silent_a_loss_reduces_each_window_from_its_own_value() {
    let (mut d, _) = unequal();
    while windows(&d).1.is_some() {
        let cwnd = d.cwnd();
        d.fill();
        d.acked_singly(cwnd + 1);
    }
    let pep = d.cwnd();
    d.lose_and_recover();
    let reduced = windows(&d).0;
    assert_eq!(reduced, pep * 717 / 1024);
    // 7/8 of the larger, but no more than twice the smaller.
    report(&mut d, 0, 0);
    assert_eq!(windows(&d), (reduced, Some(2 * reduced)));
}

#[test]
fn a_mark_reduces_each_window_from_its_own_value() {
    let (mut d, pep) = unequal();
    d.fill();
    d.react(Sign::Ecn, pep);
    d.ack.phase = Phase::Cwr;
    d.ack.in_flight = pep / 2;
    d.sacked(1);
    settle(&mut d);
    let reduced = pep * 717 / 1024;
    assert_eq!(windows(&d), (reduced, Some(2 * reduced)));
}

#[test]
fn an_undo_of_an_announced_loss_lasts() {
    let mut d = avoiding();
    let before = windows(&d);
    d.fill();
    report(&mut d, 0, 1);
    react_to_announced(&mut d, 1);
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 70;
    d.sacked(1);
    d.undo();
    settle(&mut d);
    assert_eq!(windows(&d).1, before.1);
    assert!(windows(&d).0 >= before.0, "{:?} after {before:?}", windows(&d));
}

#[test]
fn it_listens_for_passages_and_misses_them_without_a_pep() {
    for early_retransmission in [true, false] {
        let mut d = driver(MultiDomainConfig { early_retransmission, ..MultiDomainConfig::default() });
        let listens = |misses_passages| Listens { passages: true, early_retransmission, misses_passages };
        assert_eq!(d.c.listens(), listens(true));
        report(&mut d, 1, 0);
        assert_eq!(d.c.listens(), listens(false));
    }
}

#[test]
fn ratios_are_at_least_one() {
    let mut d = driver(MultiDomainConfig { initial_ratio: 0, validation_ratio: 0, ..MultiDomainConfig::default() });
    report(&mut d, 0, 0);
    assert_eq!(windows(&d), (10, Some(10)));
}

#[test]
fn a_time_out_in_a_reduction_of_the_wired_window_ends_it() {
    let mut d = avoiding();
    d.fill();
    report(&mut d, 0, 1);
    d.react(Sign::Timeout { again: false }, 0);
    d.ack.phase = Phase::Loss;
    d.acked_singly(30);
    settle(&mut d);
    report(&mut d, 1, 0);
    // The PEP is heard again, and what is missing there is a new loss.
    let cwnd = d.cwnd();
    assert!(cwnd > 20 && windows(&d).1.is_some(), "{:?}", windows(&d));
    d.fill();
    report(&mut d, 0, 1);
    settle(&mut d);
    assert_eq!(windows(&d).0, cwnd * 717 / 1024);
}

#[test]
fn a_window_that_the_smaller_one_keeps_from_use_is_kept_and_one_that_is_not_used_shrinks() {
    // With as much in flight as the smaller allows, and with less: for a retransmission timeout of 250 ms.
    for (unused, kept) in [(0, true), (1, false)] {
        let mut d = avoiding();
        for _ in 0..200 {
            report(&mut d, 100, 0);
            d.wait_ms(10);
        }
        let e2e = d.cwnd();
        assert_eq!(windows(&d), (2 * e2e, Some(e2e)));
        for _ in 0..3 {
            d.send(e2e - 1 - unused, None);
            d.wait_ms(250);
        }
        assert_eq!(windows(&d).0 == 2 * e2e, kept, "{:?}", windows(&d));
    }
}
