use super::*;
use Demand::{Everything, Limited, Unknown};

/// A wired leg whose periods are a sixteenth of a second: twice its round-trip time. All rates are exact.
const RTT: Span = Span::from_micros(31_250);
const LENGTH: Span = Span::from_micros(62_500);
const PER_SEC: u64 = 16;
const BEGIN: Time = Time::from_nanos(1_000_000_000);
const MSS: u32 = 1000;
/// What has arrived before the period.
const BEFORE: u64 = 1_000_000;

/// A flow at the start of a period, which is promised 1.6 MB/s: 100 kB in the period.
fn flow(demand: Demand) -> BestFlow {
    BestFlow { demand, arrived: BEFORE, share: 1.6e6, potential: 1e9, came: (BEFORE, BEGIN), ..BestFlow::new(BEGIN) }
}

/// What is seen of a flow of which so many bytes have come in the period, and so many wait in the proxy.
fn sample(came: u64, held: u64) -> Sample {
    let arrived = BEFORE + came;
    Sample { arrived, delivered: arrived - held, wan_rtt: Some(RTT), ..Sample::default() }
}

/// Lets a flow receive bytes in a period, at whose end so many wait in the proxy.
fn judged(mut flow: BestFlow, came: u64, held: u64) -> BestFlow {
    flow.observe(&sample(came, held), MSS, LENGTH.as_secs_f64(), BEGIN + LENGTH);
    flow
}

#[test]
fn a_flow_that_uses_its_share_is_fast_and_one_that_does_not_and_has_nothing_waiting_is_slow() {
    let steady = |demand| BestFlow { last: 1.3e6, ..flow(demand) };
    let limited = |came: u64| Limited((came * PER_SEC) as f64);
    for demand in [Everything, Unknown] {
        // 85 % of the share, and two segments that wait.
        for (came, held, becomes) in [
            (85_000, 0, Everything),
            (84_999, 0, limited(84_999)),
            (84_999, 1_999, limited(84_999)),
            (84_999, 2_000, Everything),
        ] {
            let flow = judged(steady(demand), came, held);
            assert_eq!(flow.demand, becomes, "{demand:?}: {came}, {held}");
            assert_eq!(flow.last, (came * PER_SEC) as f64);
        }
        // It is not slow while it grows by a quarter and two segments: it may become fast.
        for (last, came, grows) in
            [(1e6, 78_125, false), (1e6, 78_126, true), (100_000.0, 8_250, false), (100_000.0, 8_251, true)]
        {
            let becomes = if grows { demand } else { limited(came) };
            let flow = judged(BestFlow { last, ..flow(demand) }, came, 0);
            assert_eq!(flow.demand, becomes, "{demand:?}: {came} after {last}");
        }
    }
}

/// Its windows have room for a quarter more than its demand, so that a demand that grows shows.
#[test]
fn a_slow_flow_is_fast_again_once_it_uses_what_it_would_have_then_and_unknown_once_its_demand_grows() {
    for (demand, potential, came, held, becomes) in [
        // Nine tenths of what it would have as a fast one, or data that waits.
        (900_000.0, 1e6, 56_250, 0, Limited(900_000.0)),
        (900_000.0, 1e6, 56_251, 0, Everything),
        (900_000.0, 1e9, 1, 2_000, Everything),
        // 15 % and two segments more than it had.
        (1e6, 1e9, 71_875, 0, Limited(1.15e6)),
        (1e6, 1e9, 71_876, 0, Unknown),
        (100_000.0, 1e9, 8_250, 0, Limited(132_000.0)),
        (100_000.0, 1e9, 8_251, 0, Unknown),
        // It rises at once, and falls by an eighth of the difference.
        (160_000.0, 1e9, 10_001, 0, Limited(160_016.0)),
        (160_000.0, 1e9, 5_000, 0, Limited(150_000.0)),
        (160_000.0, 1e9, 0, 0, Limited(0.0)),
    ] {
        let flow = judged(BestFlow { potential, ..flow(Limited(demand)) }, came, held);
        assert_eq!(flow.demand, becomes, "{demand} of {potential}: {came}, {held}");
    }
}

/// A flow that may just have ended is not yet fast.
#[test]
fn a_new_flow_that_has_fallen_silent_for_half_a_round_trip_is_still_unknown() {
    for (silence, held, becomes) in [
        (RTT / 2, 0, Everything),
        (RTT / 2 + Span::from_nanos(1), 0, Unknown),
        (RTT / 2 + Span::from_nanos(1), 1, Everything),
    ] {
        let came = (BEFORE + 100_000, BEGIN + (LENGTH - silence));
        let flow = judged(BestFlow { came, ..flow(Unknown) }, 100_000, held);
        assert_eq!(flow.demand, becomes, "{silence:?}, {held}");
    }
}

#[test]
fn a_period_is_two_round_trips_and_at_least_50_ms() {
    for (rtt, length) in [(0, 50), (25, 50), (26, 52)] {
        let sample = Sample { wan_rtt: Some(Span::from_millis(rtt)), ..sample(1, 0) };
        let mut flow = flow(Everything);
        let end = BEGIN + Span::from_millis(length);
        flow.observe(&sample, MSS, 0.0, end - Span::from_nanos(1));
        assert_eq!(flow.began, BEGIN, "{rtt} ms");
        flow.observe(&sample, MSS, 0.0, end);
        assert_eq!(flow.began, end, "{rtt} ms");
    }
}

/// The share is the mean one of the period, and it is enough that the proxy was empty at some time. Each period is judged by itself.
#[test]
fn a_period_is_judged_by_what_was_promised_and_seen_in_it() {
    let half = LENGTH / 2;
    let seconds = half.as_secs_f64();
    let mut flow = flow(Everything);
    for period in 0..3 {
        let (begin, before) = (BEGIN + LENGTH * period, 79_000 * period);
        // 1.5 MB/s, of which 85 % are 79 688 bytes in the period.
        flow.share = 2e6;
        flow.observe(&sample(before + 39_000, 0), MSS, seconds, begin + half);
        flow.share = 1e6;
        flow.demand = Everything;
        flow.observe(&sample(before + 79_000, 5_000), MSS, seconds, begin + LENGTH);
        assert_eq!(flow.demand, if period == 0 { Everything } else { Limited(79_000.0 * 16.0) }, "{period}");
    }
    // Data has waited all the time.
    flow.demand = Everything;
    for part in 1..=2 {
        flow.share = 1.6e6;
        flow.observe(&sample(237_000 + part, 5_000), MSS, seconds, BEGIN + LENGTH * 3 + half * part);
    }
    assert_eq!(flow.demand, Everything);
}

/// By a twentieth up, by half of that down, between nothing and the bandwidth-delay product.
#[test]
fn the_slack_of_a_window_grows_with_each_period_in_which_the_proxy_was_empty() {
    for (before, held, after) in
        [(0.25, 0, 0.3), (0.25, 2_000, 0.225), (0.98, 0, 1.0), (1.0, 0, 1.0), (0.02, 2_000, 0.0), (0.0, 2_000, 0.0)]
    {
        let slack = judged(BestFlow { slack: before, ..flow(Everything) }, 1, held).slack;
        assert!((slack - after).abs() < 1e-9, "{slack} after {before}");
    }
    assert_eq!(BestFlow::new(BEGIN).slack, 0.25);
}

#[test]
fn delivery_is_averaged_over_a_tenth_of_a_second_and_a_flow_rests_once_it_has_decayed() {
    let mut flow = BestFlow::new(BEGIN);
    flow.measure(1_000, 0.0);
    assert_eq!(flow.rate, 0.0, "no time has passed");
    flow.measure(11_000, SMOOTHING);
    assert_eq!(flow.rate, 50_000.0);
    flow.measure(11_000, SMOOTHING);
    assert_eq!(flow.rate, 25_000.0);
    flow.restart(7, BEGIN + LENGTH);
    assert_eq!((flow.rate, flow.delivered, flow.arrived, flow.began), (25_000.0, 11_000, 7, BEGIN + LENGTH));
    assert_eq!((flow.demand, flow.share, flow.last), (Unknown, 0.0, 0.0));
    for (rate, rests) in [(NOTHING, false), (NOTHING * 0.999, true)] {
        flow.rate = rate;
        assert_eq!((flow.rest(), flow.rate), (rests, if rests { 0.0 } else { rate }));
    }
}

/// 2 * 100 kB/s * (50 + 50 ms) and 40 segments.
#[test]
fn without_a_capacity_a_window_is_twice_what_passes() {
    let flow = BestFlow { rate: 100_000.0, ..BestFlow::new(BEGIN) };
    let of = |wan_rtt| flow.without_capacity(&Sample { wan_rtt, ..Sample::default() }, 1448);
    let windows = |receive, unsent| Decision {
        receive_window: Some(receive),
        receive_buffer: Some(receive),
        unsent: Some(unsent),
        ..Decision::UNLIMITED
    };
    assert_eq!(of(Some(Span::from_millis(50))), windows(20_000 + 57_920, 57_920));
    assert_eq!(of(None), windows(10_000 + 57_920, 57_920));
}
