//! Limits that whole connections hardly ever meet.

use super::*;

#[test]
fn a_burst_is_a_millisecond_of_segments_and_at_most_64_kib_less_headers() {
    let mut d = probing();
    // Bytes per second, bytes of a segment, and segments; 65,215 bytes are five of 13,043.
    for (rate, mss, burst) in [
        (1 << 40, 13_043, 5),
        ((1 << 40) + 1, 13_044, 4),
        (1 << 40, 500, 127),
        (10_240_000, 1_000, 10),
        (10_239_999, 1_000, 9),
        (150_000, 1_000, 2),
        (149_999, 1_000, 1),
        (150_000, 0, 127),
        (1, 1_000, 1),
    ] {
        d.call(|c, _| c.set_rate(rate, mss));
        assert_eq!((d.c.burst, d.limits().burst), (burst, if rate < 150_000 { 1 } else { 2 }), "{rate} {mss}");
        assert_eq!(super::rate(&d), rate);
    }
}

#[test]
fn the_pipe_is_the_initial_window_until_a_round_trip_is_known() {
    let d = Driver::new(Bbr::new(7));
    assert_eq!((d.cwnd(), d.c.pipe(Bandwidth(1 << 24), UNIT)), (7, INITIAL_WINDOW));
    assert_eq!((d.limits().pacing, d.limits().ssthresh, d.c.buffered_windows()), (None, INFINITE_SSTHRESH, 3));
}

#[test]
fn the_first_packets_of_a_connection_grow_the_window_whatever_the_target() {
    // Linux `bbr_set_cwnd`: as long as fewer than the initial window were delivered.
    for (before, cwnd) in [(8, 60 + 1), (9, 60)] {
        let mut d = Driver::new(Bbr::new(60));
        (d.path.srtt, d.path.min_rtt) = (Some(RTT), Some(RTT));
        d.send(0, None);
        d.ack.rtt = Some(RTT);
        d.delivered = before;
        // A slow sample: the target is far below 60.
        d.wait(RTT);
        d.ack.rate.prior_delivered = before;
        d.ack.rate.delivered = Some(1);
        d.ack.rate.interval = Span::from_secs(1);
        d.acked(1);
        assert_eq!(d.cwnd(), cwnd, "{before}");
    }
}

#[test]
fn a_sample_over_no_time_is_none() {
    let mut d = probing();
    d.ack.rate.prior_delivered = d.delivered;
    (d.ack.rate.delivered, d.ack.rate.interval) = (Some(1_000), Span::ZERO);
    d.acked(PIPE);
    assert_eq!((d.c.max_bw.get(), d.c.round_start), (Bandwidth(167_772), false));
}

#[test]
fn an_application_limited_sample_as_high_as_the_estimate_renews_it() {
    let mut d = probing();
    d.ack.rate.app_limited = true;
    for _ in 0..5 {
        round(&mut d, PIPE);
    }
    d.ack.rate.app_limited = false;
    for n in 0..11 {
        assert_eq!(d.c.max_bw.get(), Bandwidth(167_772), "round {n}");
        round(&mut d, 50);
    }
    assert_eq!(d.c.max_bw.get(), Bandwidth(83_886));
}

#[test]
fn losses_leave_a_segment_of_the_window() {
    // Linux `bbr_set_cwnd_to_recover_or_restore`: at least one, and then what was delivered.
    let mut d = probing();
    (d.ack.phase, d.ack.lost) = (Phase::Recovery, 20);
    d.call(|c, _| (c.phase, c.cwnd) = (Phase::Recovery, 5));
    within(&mut d, 10, RTT);
    assert_eq!(d.cwnd(), 1 + 10);
}

#[test]
fn in_startup_the_window_grows_below_its_target_without_room_for_aggregation() {
    // 10 in 10 ms: 10 * 739 / 256 = 28.9, and three bursts of two, made even: 36.
    for (before, after) in [(34, 35), (35, 36), (36, 36), (37, 37)] {
        let mut d = bbr();
        round(&mut d, 10);
        d.call(|c, cx| {
            c.aggregation.update(200, false, c.max_bw.get(), 1_000, cx.now);
            c.cwnd = before;
        });
        assert!(d.c.aggregation.allowance(d.c.max_bw.get()) > 50);
        within(&mut d, 1, Span::from_micros(1));
        assert_eq!((d.cwnd(), d.c.burst, d.c.state()), (after, 2, "startup"), "{before}");
    }
}

#[test]
fn a_pause_is_a_restart_if_the_application_or_probe_rtt_made_it() {
    let pause = |d: &mut Driver<Bbr>, app_limited| {
        d.wait(Span::from_millis(201));
        let idle = Some(Span::from_millis(201));
        let sent = Sent { bytes: MSS, retransmission: false, in_flight_before: 0, idle, blocked: false, app_limited };
        d.call(|c, cx| c.on_sent(&sent, cx));
    };
    for (app_limited, restarts) in [(true, true), (false, false)] {
        let mut d = probing();
        pause(&mut d, app_limited);
        assert_eq!(d.c.idle_restart, restarts);
    }
    let mut d = probing_rtt();
    pause(&mut d, false);
    assert_eq!((d.c.idle_restart, d.c.state()), (true, "probe-bw"));
}

#[test]
fn what_delivers_nothing_is_no_round_of_aggregation() {
    // A bunch, and after a while a single segment, with which another epoch begins.
    let mut d = probing();
    round(&mut d, PIPE);
    within(&mut d, 1, Span::from_millis(50));
    let most = Bandwidth(u32::MAX);
    let allowance = d.c.aggregation.allowance(most);
    assert!(allowance > 10);
    for _ in 0..12 {
        d.wait(RTT);
        d.ack.rate.prior_delivered = d.delivered;
        d.acked(0);
    }
    assert_eq!(d.c.aggregation.allowance(most), allowance);
}

#[test]
fn a_time_out_begins_to_sample_a_policer_and_counts_as_a_round() {
    let mut d = probing();
    d.react(Sign::Timeout { again: false }, 0);
    d.ack.lost = 10;
    // As for losses, but the first of four rounds is over: 40 * 3 in 30 ms, then 40 * 4 in 40 ms.
    finds_a_policer(&mut d, 7, 40, 67_108);
}

#[test]
fn a_minimum_is_valid_for_ten_seconds() {
    let mut d = probing();
    d.c.min_rtt_at = d.now;
    d.ack.rtt = Some(RTT + Span::from_millis(1));
    within(&mut d, 1, Span::from_secs(10));
    assert_eq!((d.c.state(), d.c.min_rtt), ("probe-bw", Some(10_000)));
    within(&mut d, 1, Span::from_nanos(1));
    assert_eq!((d.c.state(), d.c.min_rtt), ("probe-rtt", Some(11_000)));
}

#[test]
fn draining_ends_when_the_flight_fits() {
    let mut d = bbr();
    for _ in 0..4 {
        round(&mut d, PIPE);
    }
    // A pipe of 100, and three bursts that depend on the rate.
    let fits = d.c.with_bursts(100);
    for (in_flight, state) in [(fits + 1, "drain"), (fits, "probe-bw")] {
        d.ack.in_flight = in_flight;
        within(&mut d, 1, Span::from_micros(1));
        assert_eq!(d.c.state(), state, "{in_flight}");
    }
}

#[test]
fn what_probe_rtt_limited_is_what_was_sent_from_its_first_to_its_last_flight() {
    let mut limited = SelfLimited::default();
    assert!(!limited.covers(0));
    limited.extend(10, 5);
    limited.extend(12, 8);
    assert_eq!([9, 10, 20, 21].map(|n| limited.covers(n)), [false, true, true, false]);
    // The next time.
    limited.extend(30, 0);
    assert_eq!([10, 29, 30, 31].map(|n| limited.covers(n)), [false, false, true, false]);
    // Before anything was delivered or sent.
    let mut limited = SelfLimited::default();
    limited.extend(0, 0);
    assert_eq!([0, 1, 2].map(|n| limited.covers(n)), [true, true, false]);
}

#[test]
fn a_spurious_reduction_begins_to_sample_a_policer_anew() {
    // Seven lossy rounds, of which the eighth would show a policer.
    let mut d = probing();
    d.ack.lost = 10;
    for _ in 0..7 {
        round(&mut d, 40);
    }
    d.undo();
    finds_a_policer(&mut d, 8, 40, 67_108);
}

#[test]
fn a_restart_from_idle_lasts_until_something_is_delivered() {
    let mut d = probing();
    d.send(0, Some(Span::from_millis(10)));
    for (delivered, restarts) in [(None, true), (Some(0), true), (Some(1), false)] {
        d.ack.rate.delivered = delivered;
        d.acked(0);
        assert_eq!(d.c.idle_restart, restarts, "{delivered:?}");
    }
}

#[test]
fn a_single_loss_in_each_round_of_few_segments_shows_a_policer() {
    let mut d = probing();
    d.ack.lost = 1;
    // 0.4 segments a ms: 2^24 / 2500 = 6,710.
    finds_a_policer(&mut d, 8, 4, 6_710);
}

#[test]
fn a_first_acknowledgement_that_takes_ten_seconds_asks_for_probe_rtt() {
    let mut d = bbr();
    within(&mut d, 1, Span::from_secs(10) + Span::from_nanos(1));
    assert_eq!(d.c.state(), "probe-rtt");
}

#[test]
fn a_phase_lasts_until_a_round_trip_is_known() {
    let mut d = probing();
    d.call(|c, cx| {
        c.mode = Mode::ProbeBw { phase: 3, since: cx.now };
        c.min_rtt = None;
        c.update_gains();
    });
    d.ack.rtt = None;
    within(&mut d, 1, Span::from_secs(1));
    assert_eq!(phase(&d), 3);
}

#[test]
fn an_acknowledgement_may_be_a_connections_first_event() {
    let mut d = Driver::new(Bbr::new(10));
    d.acked(1);
    assert!((28_578_000..28_578_520).contains(&rate(&d)), "{}", rate(&d));
    assert_eq!(d.c.min_rtt_at, d.now);
}
