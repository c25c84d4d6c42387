//! Retransmission time-outs: what they mark, when they are undone, and when the sender gives up.

use super::*;

#[test]
fn a_time_out_marks_what_is_old_and_halves_once() {
    // Sent at 1000 and 1050 ms, and selectively acknowledged in part after a round trip of 100 ms.
    let mut s = flying(4, 20);
    s.write(3_000);
    poll(&mut s, 1_050);
    sacked(&mut s, 0, &[(3, 4)], 1_100);
    with_context(1_130, |cx| {
        s.arm(Timer::Retransmit, cx.now);
        assert!(s.on_timer(cx));
    });
    s.queue.audit(true);
    // The first three are older than a round trip; the last three are not.
    assert_eq!((s.queue.lost_out, s.stats.lost, s.rate.lost, s.stats.timeouts), (3, 3, 3, 1));
    assert_eq!((s.recovery.phase, s.recovery.high, s.retries, s.backoff), (Phase::Loss, 7_001, 1, 1));
    assert!(s.recovery.f_rto && !s.recovery.new_data_first && !s.recovery.hold && s.queue_cwr);
    assert_eq!((s.limits.cwnd, s.forced), (4, Forced::Head));
    assert_eq!((s.timer, s.deadline), (Timer::Retransmit, at(1_130) + s.rto()));
    // The first leaves whatever the window says.
    let out = with_context(1_130, |cx| s.poll(0, cx)).expect("the first");
    assert_eq!((out.seq, out.new, s.stats.retransmitted_timeout), (1, false, 1));
}

#[test]
fn a_first_time_out_does_not_give_up_however_long_ago_a_fast_retransmission_was() {
    // Linux `retransmits_timed_out`: without `icsk_retransmits`, false. No doubling is permitted here: 200 ms in all.
    for (retries, goes_on) in [(0, true), (1, false)] {
        let mut s = flying(10, 20);
        (s.retries, s.retries_max, s.recovery.retransmitted_at) = (retries, 0, Some(at(1_010)));
        let went_on = with_context(1_400, |cx| {
            s.arm(Timer::Retransmit, cx.now);
            s.on_timer(cx)
        });
        assert_eq!(went_on, goes_on, "{retries}");
    }
}

#[test]
fn a_time_out_that_finds_much_reported_lowers_the_reordering_threshold() {
    // Linux `tcp_enter_loss`: three reports and nothing marked lost, in Open or Disorder alone.
    for (phase, reports, reordering) in [
        (Phase::Disorder, 3, 3),
        (Phase::Disorder, 2, 50),
        (Phase::Open, 3, 3),
        (Phase::Cwr, 3, 50),
        (Phase::Recovery, 3, 50),
    ] {
        let mut s = flying(10, 20);
        (s.rack.reordering, s.rack.reordered) = (50, true);
        sacked(&mut s, 0, &[(5, 5 + reports)], 1_010);
        s.recovery.phase = phase;
        with_context(1_400, |cx| {
            s.arm(Timer::Retransmit, cx.now);
            s.on_timer(cx);
        });
        assert_eq!(s.rack.reordering, reordering, "{phase:?} {reports}");
    }
}

#[test]
fn a_sender_gives_up_after_its_retries_have_had_their_time() {
    let mut s = sender(20, &Config { retries: 3, ..plain() });
    s.write(1_000);
    poll(&mut s, 1_000);
    let mut fire = |ms: u64| {
        with_context(ms, |cx| {
            s.arm(Timer::Retransmit, cx.now);
            let lives = s.on_timer(cx);
            while s.poll(0, cx).is_some() {}
            lives
        })
    };
    // 3000 ms after the first retransmission, and not before there was one.
    assert!(fire(900_000));
    assert!(fire(902_999));
    assert!(!fire(903_000));
}
