use super::period;
use super::state::{Published, RoundTrip};
use crate::fluid::{Lab, Reports, alone};
use crate::{Category, Policy, Sample};

#[test]
fn a_period_is_as_long_as_slow_start() {
    // Equation 7: log2 of the window in segments, and one.
    assert_eq!([1.0, 1448.0, 2896.0, 2897.0, 14_480.0, 148_000.0].map(|w| period(w, 1448)), [1, 1, 2, 3, 5, 8]);
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
