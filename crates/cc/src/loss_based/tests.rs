use super::*;
use crate::driver::Driver;
use crate::new_reno::NewReno;

fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

/// `NewReno` at a window, with a threshold of half of it.
fn recovered_from(cwnd: u32) -> Driver<NewReno> {
    let mut d = Driver::new(NewReno::new(cwnd));
    d.lose_and_recover();
    d
}

#[test]
fn slow_start_stops_at_the_threshold_and_leaves_the_rest() {
    let mut window = Window { cwnd: 10, ssthresh: 12, credit: 0 };
    assert_eq!(window.slow_start(5), 3);
    assert_eq!(window.cwnd, 12);
    assert_eq!(window.slow_start(5), 5);
}

#[test]
fn credit_from_a_higher_price_buys_one_segment() {
    let mut window = Window { cwnd: 10, ssthresh: 2, credit: 50 };
    // Linux tcp_cong_avoid_ai: credit 50 >= 10 buys one and is gone; then 4 < 10 are too few for another.
    window.grow_one_per(10, 4);
    assert_eq!((window.cwnd, window.credit), (11, 4));
    // 4 + 21 = 25 at 10 each: two, and 5 stay.
    window.grow_one_per(10, 21);
    assert_eq!((window.cwnd, window.credit), (13, 5));
}

#[test]
fn a_window_that_does_not_limit_does_not_grow() {
    let mut d = Driver::new(NewReno::new(10));
    d.ack.cwnd_limited = false;
    d.acked_singly(10);
    assert_eq!(d.cwnd(), 10);
    d.ack.cwnd_limited = true;
    d.acked_singly(10);
    assert_eq!(d.cwnd(), 20);
}

#[test]
fn recovery_follows_prr_and_ends_at_the_threshold() {
    let mut d = Driver::new(NewReno::new(20));
    d.fill();
    d.react(Sign::Loss, 16);
    assert_eq!((d.c.state(), d.ssthresh()), ("recovery", 10));
    d.ack.phase = Phase::Recovery;
    // Three delivered, one lost, 16 out: ceil(3 * 10 / 20) = 2 may leave.
    (d.ack.in_flight, d.ack.lost) = (16, 1);
    d.sacked(3);
    assert_eq!(d.cwnd(), 18);
    d.send(16, None);
    d.send(17, None);
    // The fourth: ceil(4 * 10 / 20) - 2 = 0; 17 are left.
    (d.ack.in_flight, d.ack.lost) = (17, 0);
    d.sacked(1);
    assert_eq!(d.cwnd(), 17);
    d.ack.phase = Phase::Open;
    d.acked(20);
    // The window is the threshold, and the acknowledgement that ends recovery grows it: 20 / 10.
    assert_eq!((d.c.state(), d.cwnd()), ("avoidance", 12));
}

#[test]
fn a_reduction_may_leave_one_segment() {
    // Three segments, of which the first is lost, sent again, and lost again: the selective acknowledgement of one
    // segment that shows it releases one.
    let mut d = Driver::new(NewReno::new(3));
    d.fill();
    d.react(Sign::Loss, 2);
    d.ack.phase = Phase::Recovery;
    (d.ack.in_flight, d.ack.lost) = (1, 1);
    d.sacked(1);
    d.send(1, None);
    assert_eq!((d.cwnd(), d.ssthresh()), (2, 2));
    (d.ack.in_flight, d.ack.lost) = (0, 1);
    d.sacked(1);
    assert_eq!(d.cwnd(), 1);
}

#[test]
fn a_time_out_leaves_one_segment_and_halves_once() {
    let mut d = Driver::new(NewReno::new(40));
    d.fill();
    d.react(Sign::Timeout { again: false }, 0);
    assert_eq!((d.cwnd(), d.ssthresh(), d.c.state()), (1, 20, "loss"));
    // The same flight times out again: nothing was learnt.
    d.react(Sign::Timeout { again: true }, 0);
    assert_eq!((d.cwnd(), d.ssthresh()), (1, 20));
    // Slow start in Loss, then another time-out after progress: half of the window of 5.
    d.ack.phase = Phase::Loss;
    d.acked_singly(4);
    assert_eq!(d.cwnd(), 5);
    d.react(Sign::Timeout { again: false }, 0);
    assert_eq!((d.cwnd(), d.ssthresh()), (1, 2));
}

#[test]
fn a_time_out_in_recovery_does_not_halve_again() {
    let mut d = Driver::new(NewReno::new(40));
    d.fill();
    d.react(Sign::Loss, 30);
    assert_eq!(d.ssthresh(), 20);
    d.react(Sign::Timeout { again: false }, 0);
    assert_eq!((d.cwnd(), d.ssthresh()), (1, 20));
}

#[test]
fn undo_restores_the_window_and_the_threshold() {
    for sign in [Sign::Loss, Sign::Timeout { again: false }] {
        let mut d = recovered_from(80);
        assert_eq!((d.cwnd(), d.ssthresh()), (40, 40));
        d.fill();
        d.react(sign, 0);
        assert_eq!(d.ssthresh(), 20);
        d.undo();
        d.acked(0);
        assert_eq!((d.cwnd(), d.ssthresh(), d.c.state()), (40, 40, "avoidance"));
        // A second undo has nothing to give.
        d.undo();
        assert_eq!(d.cwnd(), 40);
    }
}

#[test]
fn a_mark_reduces_once_and_is_not_undone() {
    let mut d = Driver::new(NewReno::new(40));
    d.fill();
    d.react(Sign::Ecn, 40);
    assert_eq!((d.ssthresh(), d.c.state()), (20, "cwr"));
    // A loss in the same round goes on with the reduction.
    d.react(Sign::Loss, 38);
    assert_eq!((d.ssthresh(), d.c.state()), (20, "recovery"));
    d.undo();
    assert_eq!(d.ssthresh(), 20);
}

#[test]
fn a_loss_after_the_reduction_is_over_reduces_again() {
    let mut d = Driver::new(NewReno::new(40));
    d.fill();
    d.react(Sign::Loss, 30);
    d.ack.phase = Phase::Recovery;
    d.ack.in_flight = 20;
    d.acked(40);
    d.react(Sign::Loss, 20);
    // Recovery ended at 20, so the next threshold is 10.
    assert_eq!(d.ssthresh(), 10);
}

#[test]
fn idle_time_halves_the_window_for_each_rto() {
    // RTO 250 ms. Idle 600 ms is two whole RTOs: 80 -> 40 -> 20. The threshold keeps 3/4 of 80.
    let mut d = recovered_from(160);
    assert_eq!(d.cwnd(), 80);
    // recovered_from starts with an initial window of 160: no lower than min(160, 80).
    d.send(0, Some(ms(600)));
    assert_eq!((d.cwnd(), d.ssthresh()), (80, 80));

    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    assert_eq!(d.cwnd(), 80);
    d.send(0, Some(ms(600)));
    assert_eq!((d.cwnd(), d.ssthresh()), (20, INFINITE_SSTHRESH));
    // 2 s more would leave nothing: the initial window stays.
    d.send(0, Some(ms(2_000)));
    assert_eq!(d.cwnd(), 10);
}

#[test]
fn idle_time_changes_nothing_where_the_system_says_so() {
    let mut d = Driver::new(NewReno::new(10));
    d.path.shrinks_idle = false;
    d.acked_singly(70);
    d.send(0, Some(ms(2_000)));
    assert_eq!(d.cwnd(), 80);
    // Neither does a window that is not used.
    for _ in 0..3 {
        d.send(19, None);
        d.wait_ms(250);
    }
    assert_eq!(d.cwnd(), 80);
}

#[test]
fn idle_for_exactly_one_rto_changes_nothing() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.send(0, Some(ms(250)));
    assert_eq!(d.cwnd(), 80);
    d.send(0, Some(ms(251)));
    assert_eq!(d.cwnd(), 40);
}

#[test]
fn a_retransmission_into_an_empty_pipe_is_no_restart() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    let idle = Some(ms(600));
    let sent =
        Sent { bytes: 1000, retransmission: true, in_flight_before: 0, idle, blocked: false, app_limited: false };
    d.call(|c, cx| c.on_sent(&sent, cx));
    assert_eq!(d.cwnd(), 80);
}

#[test]
fn a_window_unused_for_an_rto_comes_half_way_to_its_use() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.react(Sign::Ecn, 80);
    d.ack.phase = Phase::Open;
    d.acked(1);
    let cwnd = d.cwnd();
    assert_eq!((cwnd, d.ssthresh()), (40, 40));
    // Twenty in flight at most for 250 ms: (40 + 20) / 2, and 3/4 of 40 is below the threshold.
    for _ in 0..25 {
        d.send(19, None);
        d.wait_ms(10);
    }
    assert_eq!(d.cwnd(), 40);
    d.send(19, None);
    assert_eq!((d.cwnd(), d.ssthresh()), (30, 40));
    // A full window starts the measure anew.
    for _ in 0..30 {
        d.send(29, None);
        d.wait_ms(10);
    }
    assert_eq!(d.cwnd(), 30);
}

#[test]
fn a_window_that_the_receiver_does_not_let_the_sender_use_is_kept() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    let sent = Sent {
        bytes: 1000,
        retransmission: false,
        in_flight_before: 29,
        idle: None,
        blocked: true,
        app_limited: false,
    };
    for _ in 0..100 {
        d.call(|c, cx| c.on_sent(&sent, cx));
        d.wait_ms(10);
    }
    assert_eq!(d.cwnd(), 80);
    d.call(|c, cx| c.on_sent(&Sent { blocked: false, ..sent }, cx));
    assert_eq!(d.cwnd(), (80 + 30) / 2, "an application with nothing to send has let it go unused");
}

#[test]
fn windows_are_bounded() {
    // The largest receive window in segments of 512 bytes.
    assert_eq!(u64::from(MAX_CWND) * 512, 1 << 30);
    let mut window = Window { cwnd: MAX_CWND - 1, ssthresh: INFINITE_SSTHRESH, credit: 0 };
    window.slow_start(u32::MAX);
    assert_eq!(window.cwnd, MAX_CWND);
    window.grow_one_per(1, u32::MAX);
    assert_eq!(window.cwnd, MAX_CWND);
}

#[test]
fn after_a_restart_the_use_of_the_window_is_measured_anew() {
    // Twenty of 80 segments are used, and then none for two time-outs.
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.send(29, None);
    d.wait_ms(600);
    d.send(0, Some(ms(600)));
    assert_eq!(d.cwnd(), 20, "no time has passed since the restart");
    d.wait_ms(249);
    d.send(4, None);
    assert_eq!(d.cwnd(), 20);
    d.wait_ms(1);
    d.send(4, None);
    // Five are used, or the initial window of 10: the 30 of before do not count.
    assert_eq!(d.cwnd(), 15);
}

#[test]
fn in_slow_start_more_than_half_of_the_window_fills_it() {
    for (in_flight, cwnd) in [(20, 30), (21, 40)] {
        let mut d = Driver::new(NewReno::new(10));
        d.acked_singly(30);
        for _ in 0..2 {
            d.send(in_flight - 1, None);
            d.wait_ms(250);
        }
        d.send(in_flight - 1, None);
        assert_eq!(d.cwnd(), cwnd, "{in_flight}");
    }
}

#[test]
fn a_decrease_outside_recovery_cannot_be_undone() {
    let mut d = recovered_from(80);
    d.fill();
    d.react(Sign::Loss, 40);
    d.ack.phase = Phase::Recovery;
    d.sacked(1);
    let (_, next) = d.sequence();
    d.call(|c, cx| c.decrease(next, cx));
    // The reduction of 40 to 20 is ended, and half of that remains.
    assert_eq!((d.cwnd(), d.ssthresh(), d.c.state()), (10, 10, "avoidance"));
    d.undo();
    assert_eq!((d.cwnd(), d.ssthresh()), (10, 10));
}

#[test]
fn what_slow_start_takes_is_not_counted_as_credit() {
    let mut d = Driver::new(NewReno::new(10));
    let ack = d.ack.clone();
    let mut window = Window { cwnd: 10, ssthresh: 20, credit: 15 };
    d.call(|c, cx| c.growth_mut().grow(&mut window, 3, &ack, cx));
    assert_eq!((window.cwnd, window.credit), (13, 15));
}

#[test]
fn a_connection_begins_with_a_threshold_of_at_least_two() {
    for (begun, ssthresh) in [(0, 2), (1, 2), (2, 2), (3, 3)] {
        let mut d = Driver::new(NewReno::new(10));
        d.c.begin_at(begun);
        assert_eq!(d.ssthresh(), ssthresh, "{begun}");
    }
}

#[test]
fn a_threshold_is_remembered_only_if_the_window_shrinks() {
    for (idle, ssthresh) in [(250, 10), (251, 60)] {
        let mut d = Driver::new(NewReno::new(80));
        d.c.begin_at(10);
        d.send(0, Some(ms(idle)));
        assert_eq!((d.cwnd(), d.ssthresh()), (80, ssthresh), "{idle} ms");
    }
}

#[test]
fn idle_time_counts_in_whole_timeouts_that_have_passed() {
    // Linux `tcp_cwnd_restart`: half for each RTO of 250 ms but the one that has just ended, down to the initial window.
    for (idle, cwnd) in [(ms(500), 40), (ms(500) + Span::from_nanos(1), 20), (ms(60_000), 10)] {
        let mut d = Driver::new(NewReno::new(10));
        d.acked_singly(70);
        d.send(0, Some(idle));
        assert_eq!(d.cwnd(), cwnd, "{idle}");
    }
    // Without a timeout there is nothing to count in.
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.path.rto = Span::ZERO;
    let idle = Some(ms(60_000));
    let sent = Sent { bytes: 1000, retransmission: false, in_flight_before: 0, idle, blocked: true, app_limited: true };
    d.call(|c, cx| c.on_sent(&sent, cx));
    assert_eq!(d.cwnd(), 80);
}

#[test]
fn the_wait_for_a_timer_is_no_idle_time() {
    let mut d = Driver::new(NewReno::new(2));
    d.fill();
    d.react(Sign::Timeout { again: false }, 0);
    d.c.begin_at(100);
    d.ack.phase = Phase::Loss;
    d.acked_singly(39);
    d.send(0, Some(ms(600)));
    assert_eq!(d.cwnd(), 40);
}

#[test]
fn a_window_no_larger_than_the_initial_one_is_not_validated() {
    let mut d = Driver::new(NewReno::new(10));
    d.c.begin_at(5);
    for _ in 0..3 {
        d.send(3, None);
        d.wait_ms(250);
    }
    assert_eq!((d.cwnd(), d.ssthresh()), (10, 5));
}

#[test]
fn a_window_is_not_validated_while_something_may_be_lost() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.ack.cwnd_limited = false;
    d.ack.phase = Phase::Disorder;
    d.acked(0);
    d.send(19, None);
    d.wait_ms(250);
    d.send(19, None);
    d.ack.phase = Phase::Open;
    d.acked(0);
    assert_eq!(d.cwnd(), 80);
    // The next time is an RTO later.
    d.wait_ms(249);
    d.send(19, None);
    assert_eq!(d.cwnd(), 80);
    d.wait_ms(1);
    d.send(19, None);
    assert_eq!(d.cwnd(), (80 + 20) / 2);
}

#[test]
fn an_acknowledgement_of_a_full_window_measures_its_use_anew() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.send(29, None);
    d.wait_ms(240);
    d.acked(0);
    d.wait_ms(249);
    d.send(19, None);
    assert_eq!(d.cwnd(), 80);
    d.wait_ms(1);
    d.send(19, None);
    // The twenty since then, not the thirty before.
    assert_eq!(d.cwnd(), (80 + 20) / 2);
}

#[test]
fn an_undo_takes_nothing_from_a_window_that_has_grown_past_the_one_before() {
    let mut d = Driver::new(NewReno::new(4));
    d.fill();
    d.react(Sign::Timeout { again: false }, 0);
    d.c.begin_at(100);
    d.ack.phase = Phase::Loss;
    d.acked_singly(7);
    d.undo();
    // The threshold was infinite before.
    assert_eq!((d.cwnd(), d.ssthresh()), (8, INFINITE_SSTHRESH));
}

#[test]
fn a_window_that_is_lowered_from_outside_keeps_two_segments_and_never_grows() {
    for (to, cwnd) in [(0, 2), (1, 2), (2, 2), (9, 9), (10, 10), (11, 10)] {
        let mut d = Driver::new(NewReno::new(10));
        d.call(|c, _| c.lower_to(to));
        assert_eq!(d.cwnd(), cwnd, "{to}");
    }
    // A decrease halves, and does not raise a window of one segment to the least threshold.
    for (before, cwnd, ssthresh) in [(10, 5, 5), (3, 2, 2), (1, 1, 2)] {
        let mut d = Driver::new(NewReno::new(before));
        d.call(|c, cx| c.decrease(0, cx));
        assert_eq!((d.cwnd(), d.ssthresh()), (cwnd, ssthresh), "{before}");
    }
}

#[test]
fn a_window_that_was_just_full_begins_to_be_measured_then() {
    let mut d = Driver::new(NewReno::new(10));
    d.acked_singly(70);
    d.react(Sign::Ecn, 80);
    d.ack.phase = Phase::Open;
    d.acked(1);
    assert_eq!((d.cwnd(), d.ssthresh()), (40, 40));
    // Full at 200 ms, to the segment: 250 ms later ten were the most.
    for (in_flight, wait, cwnd) in [(10, 200, 40), (40, 200, 40), (10, 50, 40), (10, 0, 25)] {
        d.send(in_flight - 1, None);
        assert_eq!(d.cwnd(), cwnd);
        d.wait_ms(wait);
    }
}
