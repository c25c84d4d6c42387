use super::period;
use super::state::Published;
use crate::Policy;
use crate::fluid::{Lab, Reports};

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
