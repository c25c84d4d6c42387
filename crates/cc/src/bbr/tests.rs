//! BBR on a path of one segment each 100 us (10,000 per second) with a minimum RTT of 10 ms: a pipe of 100 segments.
//!
//! A segment per 100 us is 2^24 / 100 = 167,772 in the kernel's fixed point.

use super::bandwidth::UNIT;
use super::*;
use crate::driver::{Driver, MSS};

mod limits;

const RTT: Span = Span::from_millis(10);
const PIPE: u32 = 100;

/// BBR after its first event, with the handshake's RTT known.
fn bbr() -> Driver<Bbr> {
    bbr_of(Version::default())
}

fn bbr_of(version: Version) -> Driver<Bbr> {
    let mut d = Driver::new(Bbr::of(version, 10));
    (d.path.srtt, d.path.min_rtt) = (Some(RTT), Some(RTT));
    d.send(0, None);
    d.ack.rtt = Some(RTT);
    // Startup's queue: more than a pipe in flight.
    d.ack.in_flight = 250;
    d
}

/// One round trip that delivers so many segments in 10 ms, in one acknowledgement.
fn round(d: &mut Driver<Bbr>, segments: u32) {
    d.wait(RTT);
    // The newest acknowledged segment was sent when all before it were delivered: a round ends.
    d.ack.rate.prior_delivered = d.delivered;
    d.ack.rate.delivered = Some(segments);
    d.ack.rate.interval = RTT;
    d.acked(segments);
}

/// Shows that a policer is found after so many rounds of `segments`, and not before, with this rate.
fn finds_a_policer(d: &mut Driver<Bbr>, rounds: u32, segments: u32, rate: u32) {
    for n in 1..rounds {
        round(d, segments);
        assert_eq!(d.c.policer.rate(), None, "round {n}");
    }
    round(d, segments);
    assert_eq!(d.c.policer.rate(), Some(Bandwidth(rate)));
}

/// An acknowledgement within a round: of segments sent before the round's end.
fn within(d: &mut Driver<Bbr>, segments: u32, after: Span) {
    d.wait(after);
    d.ack.rate.prior_delivered = 0;
    d.ack.rate.delivered = Some(segments);
    d.ack.rate.interval = RTT;
    d.acked(segments);
}

/// In `ProbeBW`, with the pipe's bandwidth known.
fn probing() -> Driver<Bbr> {
    probing_of(Version::default())
}

fn probing_of(version: Version) -> Driver<Bbr> {
    let mut d = bbr_of(version);
    for _ in 0..4 {
        round(&mut d, PIPE);
    }
    assert_eq!(d.c.state(), "drain");
    d.ack.in_flight = 50;
    round(&mut d, PIPE);
    assert_eq!(d.c.state(), "probe-bw");
    d.ack.in_flight = PIPE;
    d
}

fn phase(d: &Driver<Bbr>) -> u8 {
    match d.c.mode {
        Mode::ProbeBw { phase, .. } => phase,
        other => panic!("in {other:?}"),
    }
}

fn rate(d: &Driver<Bbr>) -> u64 {
    d.limits().pacing.expect("BBR paces").bytes_per_sec()
}

#[test]
fn the_first_window_is_paced_over_an_rtt_at_high_gain() {
    // 10 segments of 1000 B in 10 ms are 1 MB/s; times 739 / 256 is 2.88672; less 1 % 2.85785 MB/s. 2^24 / 1000 is cut
    // to 16,777, which is 13 ppm less.
    let d = bbr();
    assert!((2_857_800..2_857_852).contains(&rate(&d)), "{}", rate(&d));
    // 2,857,8xx >> 10 = 2790 B: two segments.
    assert_eq!(d.limits().burst, 2);
    // Without an RTT it is 1 ms: ten times as fast, until there is one.
    let mut d = Driver::new(Bbr::new(10));
    d.send(0, None);
    assert!((28_578_000..28_578_520).contains(&rate(&d)), "{}", rate(&d));
    // Acknowledgements without a sample, which let the window grow, do not change it.
    for _ in 0..3 {
        within(&mut d, 1, RTT);
    }
    assert_eq!(d.cwnd(), 13);
    assert!((28_578_000..28_578_520).contains(&rate(&d)), "{}", rate(&d));
}

#[test]
fn a_late_handshake_rtt_is_still_used() {
    let mut d = Driver::new(Bbr::new(10));
    d.send(0, None);
    d.path.srtt = Some(RTT);
    d.ack.rtt = Some(RTT);
    round(&mut d, 1);
    // The window was 10 then: as above.
    assert!((2_857_800..2_857_852).contains(&rate(&d)), "{}", rate(&d));
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let mut d = bbr();
    for segments in [10, 20, 40, 80] {
        round(&mut d, segments);
        assert_eq!(d.c.state(), "startup");
    }
    // 100 = 80 * 1.25 grows once more; then three rounds do not.
    for (n, state) in [(100, "startup"), (100, "startup"), (100, "startup"), (100, "drain")] {
        round(&mut d, n);
        assert_eq!(d.c.state(), state);
    }
    assert_eq!(d.log, [Event::State("drain")]);
    // Drain paces at 88 / 256 of 10 MB/s less 1 %: 3.403 MB/s.
    assert!((3_403_000..3_403_130).contains(&rate(&d)), "{}", rate(&d));
}

#[test]
fn rounds_that_the_application_limits_do_not_fill_the_pipe() {
    let mut d = bbr();
    d.ack.rate.app_limited = true;
    for _ in 0..20 {
        round(&mut d, 10);
    }
    assert_eq!(d.c.state(), "startup");
}

#[test]
fn drain_ends_when_the_flight_fits_the_pipe() {
    let mut d = bbr();
    for _ in 0..4 {
        round(&mut d, PIPE);
    }
    assert_eq!(d.c.state(), "drain");
    // The target is the pipe, 100, and three bursts. At 3.4 MB/s a burst is 3,323 B: 3 segments; 109 is made even: 110.
    assert_eq!(d.c.burst, 3);
    d.ack.in_flight = 111;
    within(&mut d, 1, RTT);
    assert_eq!(d.c.state(), "drain");
    d.ack.in_flight = 110;
    within(&mut d, 1, RTT);
    assert_eq!(d.c.state(), "probe-bw");
}

#[test]
fn the_cycle_starts_anywhere_but_in_the_draining_phase() {
    let mut seen = [0; 8];
    let mut d = probing();
    for _ in 0..700 {
        d.call(super::Bbr::start_probe_bw);
        seen[usize::from(phase(&d))] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().enumerate().all(|(i, &n)| i == 1 || n > 50), "{seen:?}");
}

#[test]
fn the_cycle_probes_drains_and_cruises() {
    let mut d = probing();
    d.call(|c, cx| {
        c.mode = Mode::ProbeBw { phase: 7, since: cx.now };
        c.update_gains();
    });
    // A phase of gain 1 lasts longer than the minimum RTT.
    d.ack.prior_in_flight = PIPE;
    within(&mut d, 1, RTT);
    assert_eq!(phase(&d), 7);
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!((phase(&d), d.c.pacing_gain), (0, 320));
    // Probing waits for 1.25 pipes in flight: 125, three bursts of 11 segments (10 MB/s * 1.25 * 0.99 >> 10 = 12,084 B,
    // 12 segments then), even, and two.
    within(&mut d, 1, RTT + Span::from_micros(1));
    assert_eq!(phase(&d), 0);
    assert_eq!(d.c.burst, 12);
    // 125 + 36 = 161, 162 even, 164; the burst that departs next counts as in flight, less what is delivered until then.
    d.ack.prior_in_flight = 164 - 12 - 1;
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!(phase(&d), 0);
    d.ack.prior_in_flight = 164 - 12;
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!((phase(&d), d.c.pacing_gain), (1, 192));
    // Draining ends as soon as the flight fits, 100 and three bursts of 7 (7,251 B), 122 made even, or after an RTT.
    d.ack.prior_in_flight = 123;
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!((phase(&d), d.c.burst), (1, 7));
    d.ack.prior_in_flight = 122;
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!((phase(&d), d.c.pacing_gain), (2, UNIT));
}

#[test]
fn a_loss_ends_probing_after_an_rtt() {
    let mut d = probing();
    d.call(|c, cx| {
        c.mode = Mode::ProbeBw { phase: 0, since: cx.now };
        c.update_gains();
    });
    d.ack.lost = 1;
    within(&mut d, 1, RTT);
    assert_eq!(phase(&d), 0);
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!(phase(&d), 1);
}

#[test]
fn the_window_is_two_pipes_and_three_bursts() {
    let mut d = probing();
    d.call(|c, cx| c.mode = Mode::ProbeBw { phase: 3, since: cx.now });
    d.path.rto = Span::from_secs(1);
    for _ in 0..5 {
        round(&mut d, PIPE);
        d.call(|c, cx| c.mode = Mode::ProbeBw { phase: 3, since: cx.now });
    }
    // 200 for the pipe; a burst of 9 segments (10 MB/s * 0.99 >> 10 = 9,667 B) three times; the rounds arrive in one
    // acknowledgement each, so aggregation asks for up to 100 more. 200 + 27 + 100 = 327, 328 made even.
    assert_eq!((d.c.burst, d.cwnd()), (9, 328));
}

#[test]
fn samples_that_the_application_limits_count_only_upwards() {
    let mut d = probing();
    let bw = d.c.max_bw.get();
    assert_eq!(bw, Bandwidth(167_772));
    d.ack.rate.app_limited = true;
    for _ in 0..30 {
        round(&mut d, 20);
    }
    assert_eq!(d.c.max_bw.get(), bw);
    round(&mut d, 150);
    assert_eq!(d.c.max_bw.get(), Bandwidth(251_658));
}

#[test]
fn the_bandwidth_is_forgotten_after_ten_rounds() {
    let mut d = probing();
    for n in 0..11 {
        assert_eq!(d.c.max_bw.get(), Bandwidth(167_772), "round {n}");
        round(&mut d, 50);
    }
    // 50 in 10 ms: 2^24 / 200.
    assert_eq!(d.c.max_bw.get(), Bandwidth(83_886));
}

#[test]
fn probe_rtt_comes_after_ten_seconds_and_lasts_200_ms_and_a_round() {
    let mut d = probing();
    let known = d.now;
    // The RTT is never again as low as the minimum.
    d.ack.rtt = Some(RTT + Span::from_millis(1));
    let cwnd = loop {
        let cwnd = d.cwnd();
        round(&mut d, PIPE);
        if d.c.state() == "probe-rtt" {
            break cwnd;
        }
    };
    // The minimum was seen at the handshake, 50 ms before `known`, and is not renewed by equal samples.
    let asked = d.now.saturating_since(known).as_millis();
    assert!((9_950..=9_970).contains(&asked), "{asked} ms");
    assert_eq!((d.cwnd(), d.c.min_rtt), (4, Some(11_000)));
    assert_eq!(d.limits().pacing.map(|r| r.bytes_per_sec() / 1000), Some(9899));
    // The clock starts when four segments or fewer are in flight.
    for _ in 0..5 {
        within(&mut d, 1, Span::from_millis(20));
    }
    d.ack.in_flight = 4;
    within(&mut d, 1, RTT);
    let began = d.now;
    while d.c.state() == "probe-rtt" {
        round(&mut d, 4);
    }
    let lasted = d.now.saturating_since(began);
    assert!(lasted > Span::from_millis(200) && lasted <= Span::from_millis(220), "{lasted}");
    assert_eq!((d.c.state(), d.c.max_bw.get()), ("probe-bw", Bandwidth(167_772)), "its low rates do not count");
    assert!(d.cwnd() >= cwnd.min(200), "{} after {cwnd}", d.cwnd());
}

#[test]
fn a_lower_rtt_renews_the_minimum() {
    let mut d = probing();
    d.ack.rtt = Some(Span::from_millis(9));
    round(&mut d, PIPE);
    assert_eq!((d.c.min_rtt, d.c.min_rtt_at), (Some(9_000), d.now));
}

#[test]
fn a_delayed_acknowledgement_does_not_replace_an_expired_minimum() {
    let mut d = probing();
    d.ack.rtt = Some(Span::from_millis(50));
    d.ack.rate.maybe_delayed = true;
    d.wait(Span::from_secs(11));
    round(&mut d, PIPE);
    assert_eq!((d.c.min_rtt, d.c.state()), (Some(10_000), "probe-rtt"));
}

#[test]
fn a_restart_from_idle_needs_no_probe_rtt_and_paces_at_the_estimate() {
    let mut d = probing();
    d.call(|c, cx| {
        c.mode = Mode::ProbeBw { phase: 0, since: cx.now };
        c.update_gains();
        c.update_pacing(c.pacing_gain, cx.path);
    });
    assert!(rate(&d) > 12_000_000);
    d.wait(Span::from_secs(11));
    d.send(0, Some(Span::from_secs(11)));
    // 10 MB/s less 1 %.
    assert!((9_899_900..9_900_000).contains(&rate(&d)), "{}", rate(&d));
    round(&mut d, 1);
    assert_eq!(d.c.state(), "probe-bw");
    assert!(!d.c.idle_restart);
}

#[test]
fn recovery_conserves_for_a_round_and_then_restores() {
    let mut d = probing();
    for _ in 0..4 {
        round(&mut d, PIPE);
    }
    let before = d.cwnd();
    d.react(Sign::Loss, 80);
    d.ack.phase = Phase::Recovery;
    (d.ack.in_flight, d.ack.lost) = (80, 10);
    within(&mut d, 3, Span::from_millis(1));
    // As much may leave as has arrived.
    assert_eq!(d.cwnd(), 83);
    d.ack.lost = 0;
    d.ack.in_flight = 82;
    within(&mut d, 1, Span::from_millis(1));
    assert_eq!(d.cwnd(), 83);
    // After a round it grows by what arrives.
    d.ack.in_flight = 82;
    round(&mut d, 5);
    assert_eq!(d.cwnd(), 88);
    // Two more of it are lost: they are taken off first.
    d.ack.lost = 2;
    within(&mut d, 1, Span::from_millis(1));
    assert_eq!(d.cwnd(), 87);
    (d.ack.lost, d.ack.phase) = (0, Phase::Open);
    within(&mut d, 1, Span::from_millis(1));
    // The window before, or the target if that is less.
    let target = d.call(|c, _| {
        let bw = c.bandwidth();
        c.with_bursts(c.pipe(bw, c.cwnd_gain) + c.aggregation.allowance(bw))
    });
    assert_eq!(d.cwnd(), (before + 1).min(target));
    assert!(before >= 200);
}

#[test]
fn a_time_out_leaves_one_segment_and_keeps_the_model() {
    let mut d = probing();
    let before = d.cwnd();
    d.react(Sign::Timeout { again: false }, 0);
    assert_eq!((d.cwnd(), d.c.prior_cwnd, d.c.state()), (1, before, "probe-bw"));
    d.react(Sign::Timeout { again: true }, 0);
    assert_eq!((d.cwnd(), d.c.prior_cwnd), (1, before));
    assert_eq!(d.c.max_bw.get(), Bandwidth(167_772));
    // Found spurious: the next acknowledgement gives the window back.
    d.undo();
    d.ack.phase = Phase::Open;
    within(&mut d, 1, Span::from_millis(1));
    assert!(d.cwnd() >= before, "{} after {before}", d.cwnd());
}

#[test]
fn undo_starts_the_search_for_the_full_pipe_again() {
    let mut d = bbr();
    for _ in 0..3 {
        round(&mut d, PIPE);
    }
    d.undo();
    for _ in 0..3 {
        round(&mut d, PIPE);
        assert_eq!(d.c.state(), "startup");
    }
    round(&mut d, PIPE);
    assert_eq!(d.c.state(), "drain");
}

#[test]
fn two_lossy_intervals_of_one_rate_are_a_policer() {
    let mut d = probing();
    // Before the first loss nothing is sampled.
    for _ in 0..10 {
        round(&mut d, PIPE);
    }
    assert_eq!(d.c.policer.rate(), None);
    // A policer lets 40 of 100 through; a quarter of what is delivered is lost each round. The first loss starts the
    // sampling with its round as the first; an interval ends with the fourth round that loses: 40 * 3 in 30 ms, then,
    // from there, 40 * 4 in 40 ms.
    d.ack.lost = 10;
    // 4 segments a ms: 2^24 / 250 = 67,108.
    finds_a_policer(&mut d, 8, 40, 67_108);
    assert_eq!(d.c.pacing_gain, UNIT);
    // 4 MB/s less 1 %.
    assert!((3_959_900..3_960_000).contains(&rate(&d)), "{}", rate(&d));
    // It is used for 48 rounds.
    d.ack.lost = 0;
    for n in 1..=47 {
        round(&mut d, 40);
        assert!(d.c.policer.rate().is_some(), "round {n}");
    }
    round(&mut d, 40);
    assert_eq!((d.c.policer.rate(), d.c.state()), (None, "probe-bw"));
}

#[test]
fn light_loss_is_no_policer() {
    let mut d = probing();
    // 7 of 40 delivered are 17.5 %: below 50 / 256 = 19.5 %.
    d.ack.lost = 7;
    for _ in 0..40 {
        round(&mut d, 40);
    }
    assert_eq!(d.c.policer.rate(), None);
}

#[test]
fn intervals_of_different_rates_are_no_policer() {
    let mut d = probing();
    for n in 0..10 {
        d.ack.lost = 20;
        for _ in 0..4 {
            round(&mut d, if n % 2 == 0 { 40 } else { 60 });
        }
        assert_eq!(d.c.policer.rate(), None);
    }
}

#[test]
fn what_pacing_holds_back_is_not_in_the_network() {
    let mut d = probing();
    d.call(|c, _| {
        c.pacing_gain = UNIT;
        c.set_rate(10_000_000, MSS);
    });
    // Until the next segment departs, in 1 ms, the path delivers 9.99.
    d.path.departure = d.now + Span::from_millis(1);
    assert_eq!(d.call(|c, cx| c.in_network_at_departure(50, cx)), 50 - 9);
    assert_eq!(d.call(|c, cx| c.in_network_at_departure(5, cx)), 0);
    // What was to depart before now changes nothing.
    d.path.departure = Time::ZERO;
    assert_eq!(d.call(|c, cx| c.in_network_at_departure(50, cx)), 50);
}

#[test]
fn the_first_version_leaves_no_room_for_aggregation_and_no_threshold() {
    let [old, new] = [Version::Linux4_9, Version::Linux6_1].map(|version| {
        let mut d = probing_of(version);
        for _ in 0..4 {
            round(&mut d, PIPE);
        }
        d
    });
    let pipe = |d: &Driver<Bbr>, more| d.c.with_bursts(d.c.pipe(d.c.bandwidth(), CWND_GAIN) + more);
    // What a round delivers at once exceeds what was expected by then.
    let allowance = new.c.aggregation.allowance(new.c.bandwidth());
    assert!(allowance > 0);
    assert_eq!(new.c.limits().cwnd, pipe(&new, allowance));
    assert_eq!(old.c.limits().cwnd, pipe(&old, 0));
    assert!(new.c.limits().ssthresh < INFINITE_SSTHRESH);
    assert_eq!(old.c.limits().ssthresh, INFINITE_SSTHRESH);
}

#[test]
fn a_remembered_threshold_changes_nothing() {
    for version in [Version::Linux4_9, Version::Linux6_1] {
        let after_start = |ssthresh: Option<u32>| {
            let mut d = Driver::new(Bbr::of(version, 10));
            if let Some(ssthresh) = ssthresh {
                d.c.begin_at(ssthresh);
            }
            (d.path.srtt, d.path.min_rtt) = (Some(RTT), Some(RTT));
            d.send(0, None);
            d.ack.rtt = Some(RTT);
            d.ack.in_flight = 250;
            (0..4).for_each(|_| round(&mut d, PIPE));
            d.c.limits()
        };
        assert_eq!(after_start(Some(5)), after_start(None));
    }
}

#[test]
fn a_time_out_in_startup_measures_growth_from_zero_again() {
    let mut d = bbr();
    for _ in 0..3 {
        round(&mut d, PIPE);
    }
    // Two rounds without growth; the next would fill the pipe.
    d.react(Sign::Timeout { again: false }, 0);
    d.ack.phase = Phase::Open;
    for _ in 0..3 {
        round(&mut d, PIPE);
        assert_eq!(d.c.state(), "startup");
    }
    round(&mut d, PIPE);
    assert_eq!(d.c.state(), "drain");
}

/// In `ProbeRTT`, when the clock has just started.
fn probing_rtt() -> Driver<Bbr> {
    let mut d = probing();
    d.ack.rtt = Some(RTT + Span::from_millis(1));
    d.wait(Span::from_secs(11));
    round(&mut d, PIPE);
    assert_eq!(d.c.state(), "probe-rtt");
    d.ack.in_flight = 4;
    within(&mut d, 1, RTT);
    d
}

#[test]
fn probe_rtt_needs_one_round_whichever_acknowledgement_ends_it() {
    // A round ends in the first 200 ms; what ends the mode is an acknowledgement within the next.
    let mut d = probing_rtt();
    round(&mut d, 4);
    for _ in 0..19 {
        within(&mut d, 1, RTT);
        assert_eq!(d.c.state(), "probe-rtt");
    }
    within(&mut d, 1, Span::from_micros(1));
    assert_eq!(d.c.state(), "probe-bw");
    // No round ends, however long it takes.
    let mut d = probing_rtt();
    for _ in 0..100 {
        within(&mut d, 1, RTT);
        assert_eq!(d.c.state(), "probe-rtt");
    }
    round(&mut d, 4);
    assert_eq!(d.c.state(), "probe-bw");
}

#[test]
fn probe_rtt_in_startup_returns_to_startup_and_restores_the_window() {
    let mut d = bbr();
    for segments in [10, 20, 40] {
        round(&mut d, segments);
    }
    let cwnd = d.cwnd();
    d.ack.rtt = Some(RTT + Span::from_millis(1));
    d.wait(Span::from_secs(11));
    round(&mut d, 40);
    assert_eq!((d.c.state(), d.cwnd()), ("probe-rtt", 4));
    d.ack.in_flight = 4;
    within(&mut d, 1, RTT);
    d.wait(Span::from_millis(200));
    let left = d.now + RTT;
    round(&mut d, 4);
    assert_eq!((d.c.state(), d.c.min_rtt_at), ("startup", left));
    assert!(d.cwnd() >= cwnd, "{} after {cwnd}", d.cwnd());
}

#[test]
fn an_idle_restart_ends_probe_rtt_once_its_time_is_over() {
    for (after, state) in [(200, "probe-rtt"), (201, "probe-bw")] {
        let mut d = probing_rtt();
        d.wait(Span::from_millis(after));
        d.send(0, Some(Span::from_millis(after)));
        assert_eq!(d.c.state(), state, "{after} ms");
    }
}
