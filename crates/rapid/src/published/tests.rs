use super::period;
use super::state::{Published, RadioWindow, Released, RoundTrip};
use crate::fluid::{Lab, Reports, alone, report, together};
use crate::{Category, Config, Control, Decision, Policy, Rapid, Sample};
use units::{Span, Time};

#[test]
fn a_period_is_as_long_as_slow_start() {
    // Equation 7: log2 of the window in segments, and one.
    assert_eq!([0.0, 1.0, 1448.0, 2896.0, 2897.0, 14_480.0, 148_000.0].map(|w| period(w, 1448)), [1, 1, 1, 2, 3, 5, 8]);
}

/// The paper says that the fast flow takes all that the slow one leaves (3.5, 4.3). Its equations do not: a slow flow's
/// window is its demand, which it uses, so that it is fast again in the next period.
#[test]
fn the_equations_leave_a_third_of_the_capacity_unused_beside_a_slow_flow() {
    let mut lab = Lab::new(Policy::Published(Published::default()), Reports::default());
    let ue = lab.ue(834.0);
    lab.flow(ue, 8, Some(16.0));
    lab.flow(ue, 8, None);
    lab.run(2.0);
    lab.begin();
    let got = lab.run(10.0);
    assert!((15.0..16.5).contains(&got[0]), "{got:?}");
    assert!((450.0..650.0).contains(&got[1]), "{got:?}");
}

/// The released window of a flow with a long round-trip time becomes a rate many times as high for one with a short one.
#[test]
fn released_windows_of_other_round_trip_times_promise_more_than_there_is() {
    let mut lab = Lab::new(Policy::Published(Published::default()), Reports::default());
    let ue = lab.ue(834.0);
    lab.flow(ue, 100, Some(16.0));
    lab.flow(ue, 2, None);
    lab.run(5.0);
    assert!(lab.promised > 5.0, "{}", lab.promised);
}

/// Gives a policy a flow whose share is 20 MB/s. It arrives with 10 MB/s until `until`, in milliseconds, and then stays silent.
/// Returns its category and receive window at `end`.
fn at(of: Published, until: u64, end: u64) -> (Category, u64) {
    let sample = |ms: u64| Sample { arrived: ms.min(until) * 10_000, delivered: ms * 1_000, ..Sample::default() };
    let decision = alone(Policy::Published(of), end, sample);
    (decision.category, decision.receive_window.expect("a report has come"))
}

/// What has arrived in whole waits in the proxy for the radio leg: the flow's window must not shrink to nothing meanwhile.
#[test]
fn a_flow_that_has_become_silent_is_not_judged_again() {
    assert_eq!(at(Published::default(), 500, 2000), at(Published::default(), 500, 500));
}

#[test]
fn windows_are_for_the_wired_legs_round_trip_or_for_that_of_both() {
    let path = Published { round_trip: RoundTrip::Path, ..Published::default() };
    let ratio = at(path, 500, 500).1 as f64 / at(Published::default(), 500, 500).1 as f64;
    assert!((1.45..1.55).contains(&ratio), "{ratio}");
}

/// A flow's least and present round-trip time on the wired leg in milliseconds, and how many bytes of it arrive each millisecond
/// in the first 81 ms and from then on.
type Arrivals = ([u64; 2], [u64; 2]);

/// What a row shows, settings, a time in milliseconds, flows, and their receive windows then.
type Row<'a> = (&'a str, Published, u64, &'a [Arrivals], &'a [u64]);

/// Lets flows share 20 MB/s until `end`, in milliseconds. Returns what is decided of each.
fn shared(of: Published, end: u64, flows: &[Arrivals]) -> Vec<Decision> {
    let sample = |([least, present], [first, then]): Arrivals| {
        move |now: u64| {
            let arrived = now.min(81) * first + now.saturating_sub(81) * then;
            let [wan_min_rtt, wan_rtt] = [least, present].map(|ms| Some(Span::from_millis(ms)));
            Sample { arrived, delivered: arrived, wan_min_rtt, wan_rtt, ..Sample::default() }
        }
    };
    let samples: Vec<_> = flows.iter().map(|&flow| sample(flow)).collect();
    let samples: Vec<&dyn Fn(u64) -> Sample> = samples.iter().map(|sample| sample as _).collect();
    together(Policy::Published(of), end, &samples)
}

/// The windows are computed by hand. The first period begins at 1 ms. For 200 kB, which are 138.1 segments, it has 9 round trips:
/// with one of 10 ms, the last begins at 81 ms.
#[test]
fn windows_are_those_of_the_equations() {
    let of = Published::default();
    let alpha = |alpha| Published { alpha, ..of };
    let threshold = |slow_threshold| Published { slow_threshold, ..of };
    let share = Published { released: Released::OfShare, ..of };
    const AGAIN: [Arrivals; 2] = [([10, 10], [3_000, 1_000]), ([10, 10], [10_000; 2])];
    const FOUR: [Arrivals; 4] =
        [([10, 10], [2_000; 2]), ([10, 10], [3_000; 2]), ([10, 10], [7_500; 2]), ([20, 20], [6_250; 2])];
    let rows: &[Row] = &[
        ("4: 20 MB/s for 10 ms", of, 50, &[([10, 10], [20_000; 2])], &[200_000]),
        ("4: half of it each", of, 50, &[([10, 10], [20_000; 2]), ([40, 40], [20_000; 2])], &[100_000, 400_000]),
        ("4: the least time counts", of, 50, &[([10, 20], [20_000; 2])], &[200_000]),
        ("4: at least 10 segments", of, 50, &[([0, 1], [20_000; 2])], &[14_480]),
        ("4: one is silent", of, 1_500, &[([10, 10], [20_000; 2]), ([10, 10], [20_000, 0])], &[200_000; 2]),
        ("7: not before 91 ms", of, 90, &[([10, 10], [8_000, 4_000])], &[200_000]),
        // 20 MB/s are expected, and less than 16 of them are slow. The demand is 20/8 + 15.9 * 7/8 MB/s.
        ("80 %: less", of, 91, &[([10, 10], [20_000, 15_900])], &[164_125]),
        ("80 %: more", of, 91, &[([10, 10], [20_000, 16_100])], &[200_000]),
        ("80 %: in the last round trip", of, 91, &[([10, 10], [8_000, 16_100])], &[200_000]),
        ("85 %: less", threshold(0.85), 91, &[([10, 10], [20_000, 16_900])], &[172_875]),
        ("85 %: more", threshold(0.85), 91, &[([10, 10], [20_000, 17_100])], &[200_000]),
        ("75 %: less", threshold(0.75), 91, &[([10, 10], [20_000, 14_900])], &[155_375]),
        ("75 %: more", threshold(0.75), 91, &[([10, 10], [20_000, 15_100])], &[200_000]),
        // With 20 ms now, 10 MB/s are expected.
        ("8: 8 MB/s are not slow", of, 181, &[([10, 20], [8_100; 2])], &[200_000]),
        ("8, 10: 200 kB * 7.9/10", of, 181, &[([10, 20], [7_900; 2])], &[158_000]),
        // The demand is 8/8 + 4 * 7/8 = 4.5 MB/s of 20.
        ("9, 10: an eighth of the old rate", of, 91, &[([10, 10], [8_000, 4_000])], &[45_000]),
        ("9, 10: 0.4 of it", alpha(0.4), 91, &[([10, 10], [8_000, 4_000])], &[56_000]),
        // An average from 0 on would be 5.1 MB/s instead of 7.5.
        ("9: the first rate is the average", alpha(0.875), 91, &[([10, 10], [8_000, 4_000])], &[75_000]),
        // 75 kB have 7 round trips. In the second period, the demand is 4 of 7.5 MB/s.
        ("9: each period begins anew", alpha(0.875), 161, &[([10, 10], [8_000, 4_000])], &[40_000]),
        ("10: at most the window before", alpha(0.875), 91, &[([10, 10], [40_000, 4_000])], &[200_000]),
        ("10: at least 10 segments", of, 91, &[([10, 10], [800; 2])], &[14_480]),
        // Of 50, 50, 50 and 100 kB, the first two release 30 and 20, of which the others have half each.
        ("11 to 13: two are slow", of, 100, &FOUR, &[20_000, 30_000, 75_000, 125_000]),
        // 20 kB have 5 round trips, and 30 kB have 6. Then, a flow that uses its window is fast.
        ("11 to 13: one is slow", of, 125, &FOUR, &[56_666, 30_000, 56_666, 106_666]),
        // Of 100 kB each, the first releases 70 at 81 ms. At 141 ms, it has a third of its 30 kB, but for the floor, and releases
        // 15.52: what it released before is forgotten. In both artefacts, it has released all but its window.
        ("11: slow once", of, 140, &AGAIN, &[30_000, 170_000]),
        ("11: slow twice", of, 160, &AGAIN, &[14_480, 115_520]),
        ("11: slow twice, the artefacts", share, 160, &AGAIN, &[14_480, 185_520]),
        ("12: none is fast", of, 81, &FOUR[..2], &[20_000, 30_000]),
    ];
    for (what, of, end, flows, expected) in rows {
        let window = |decision: &Decision| decision.receive_window.expect("a report has come");
        let got: Vec<u64> = shared(*of, *end, flows).iter().map(window).collect();
        // Windows are computed in floating point, and rounded down.
        assert!(got.iter().zip(*expected).all(|(got, expected)| got.abs_diff(*expected) <= 1), "{what}: {got:?}");
    }
}

/// The radio leg has a round-trip time of 5 ms; the kernel module counts 21.
#[test]
fn radio_windows_are_those_of_the_paper_of_its_simulator_or_of_its_kernel_module() {
    let flow = ([10, 10], [20_000; 2]);
    let rows: &[(RadioWindow, &[Arrivals], u64)] = &[
        (RadioWindow::Bdp, &[flow], 100_000),
        (RadioWindow::Bdp, &[flow; 2], 50_000),
        (RadioWindow::Bdp, &[([10, 20], [20_000; 2])], 50_000),
        (RadioWindow::ReceiveWindow, &[flow], 200_000),
        // 420 kB are 290.1 segments, and 210 kB are 145.03.
        (RadioWindow::Rounded, &[flow], 512 * 1448),
        (RadioWindow::Rounded, &[flow; 2], 256 * 1448),
        // The wired leg's least round-trip time counts, not the present one.
        (RadioWindow::Rounded, &[([10, 20], [20_000; 2])], 512 * 1448),
    ];
    for &(radio_window, flows, expected) in rows {
        let decision = shared(Published { radio_window, ..Published::default() }, 50, flows)[0];
        let got = decision.window.expect("the round-trip time is known");
        assert!(got.abs_diff(expected) <= 1, "{radio_window:?}: {got} instead of {expected}");
    }
}

/// A flow that uses its 20 MB/s has periods of nine round trips of 10 ms, from 1 ms on.
#[test]
fn the_radio_legs_time_is_an_average_over_periods() {
    let radio_rtt = |ms: u64| if ms <= 100 { 5 } else { 13 };
    for (end, window) in [(90, 100_000), (180, 100_000), (181, 120_000), (270, 120_000), (271, 137_500)] {
        let sample = |ms: u64| {
            let ran_min_rtt = Some(Span::from_millis(radio_rtt(ms)));
            Sample { arrived: ms * 20_000, delivered: ms * 20_000, ran_min_rtt, ..Sample::default() }
        };
        let decision = alone(Policy::Published(Published::default()), end, sample);
        let got = decision.window.expect("the round-trip time is known");
        assert!(got.abs_diff(window) <= 1, "{end} ms: {got} instead of {window}");
    }
}

#[test]
fn radio_windows_have_a_floor_and_need_a_round_trip_time() {
    let window = |radio_window, ran_min_rtt: Option<Span>, wan_min_rtt: u64| {
        let mut rapid = Rapid::new(Config {
            policy: Policy::Published(Published { radio_window, ..Published::default() }),
            ..Config::default()
        });
        let now = Time::ZERO + Span::from_millis(1);
        rapid.open(0, 0, 1448, now);
        let mut told = report(now, Span::from_millis(1), 0.0);
        told.bits_per_prb = Some(1600.0);
        rapid.on_report(0, &told, now);
        let (wan_rtt, wan_min_rtt) = (Some(Span::from_millis(10)), Some(Span::from_millis(wan_min_rtt)));
        let sample = Sample { ran_min_rtt, wan_rtt, wan_min_rtt, ..Sample::default() };
        let mut window = None;
        rapid.update(now, &mut |_| sample, &mut |_, decision| window = decision.window);
        window
    };
    let (none, short, long) = (None, Some(Span::ZERO), Some(Span::from_millis(5)));
    assert_eq!(window(RadioWindow::Bdp, long, 10), Some(100_000));
    assert_eq!(window(RadioWindow::Bdp, short, 10), Some(14_480), "ten segments");
    assert_eq!(window(RadioWindow::Bdp, none, 10), None);
    assert_eq!(window(RadioWindow::Rounded, none, 10), None);
    assert_eq!(window(RadioWindow::ReceiveWindow, none, 10), Some(200_000));
    // Without a least time to the server, the floor of the receive window lasts for the present 10 ms: 21 segments in 21 ms.
    assert_eq!(window(RadioWindow::Rounded, long, 0), Some(32 * 1448));
}

#[test]
fn round_trip_times_are_those_of_one_leg_or_of_both_and_never_nothing() {
    let ms = Span::from_millis;
    let sample =
        Sample { wan_min_rtt: Some(ms(10)), wan_rtt: Some(ms(20)), ran_min_rtt: Some(ms(5)), ..Sample::default() };
    assert_eq!(RoundTrip::Wired.of(&sample), (0.010, ms(20)));
    assert_eq!(RoundTrip::Path.of(&sample), (0.015, ms(25)));
    let least = Span::from_micros(1);
    assert_eq!([RoundTrip::Wired, RoundTrip::Path].map(|of| of.of(&Sample::default())), [(0.0, least); 2]);
}
