//! Where a UE is.

use channel::mobility::MobilityError;
use channel::{Mobility, Position};
use units::{Span, Time};

fn s(n: u64) -> Time {
    Time::ZERO + Span::from_secs(n)
}

const A: Position = Position::new(0.0, 0.0, 1.5);
const B: Position = Position::new(30.0, 40.0, 1.5);
const C: Position = Position::new(30.0, 40.0, 11.5);

#[test]
fn a_fixed_ue_stays() {
    let fixed = Mobility::fixed(B);
    assert_eq!((fixed.position(s(0)), fixed.position(s(1_000_000))), (B, B));
    assert_eq!((fixed.speed(s(5)), fixed.travelled(s(5)), fixed.max_speed()), (0.0, 0.0, 0.0));
}

#[test]
fn a_line_goes_on() {
    let line = Mobility::line(A, [3.0, -4.0, 0.0]);
    assert_eq!(line.position(s(10)), Position::new(30.0, -40.0, 1.5));
    assert_eq!((line.speed(s(10)), line.travelled(s(10)), line.max_speed()), (5.0, 50.0, 5.0));
}

#[test]
fn waypoints_are_met_on_time() {
    let way = Mobility::waypoints(&[(s(2), A), (s(12), B), (s(15), B), (s(17), C)]).unwrap();
    assert_eq!((way.position(s(0)), way.position(s(2)), way.travelled(s(2))), (A, A, 0.0));
    assert_eq!((way.position(s(7)), way.speed(s(7)), way.travelled(s(7))), (Position::new(15.0, 20.0, 1.5), 5.0, 25.0));
    assert_eq!((way.position(s(12)), way.position(s(14)), way.speed(s(14))), (B, B, 0.0));
    assert_eq!((way.position(s(16)).z, way.travelled(s(16))), (6.5, 55.0));
    assert_eq!((way.position(s(100)), way.speed(s(100)), way.travelled(s(100))), (C, 0.0, 60.0));
}

#[test]
fn a_route_takes_the_time_of_its_speeds() {
    let route = Mobility::route(&[A, B, B, C], &[10.0, 3.0, 2.0]).unwrap();
    assert_eq!((route.position(s(5)), route.speed(s(5))), (B, 2.0));
    assert_eq!((route.position(s(10)), route.travelled(s(10)), route.speed(s(10))), (C, 60.0, 0.0));
    assert_eq!(Mobility::route(&[A], &[]).unwrap().position(s(3)), A);
}

#[test]
fn a_movement_that_is_none_is_refused() {
    let nowhere = Position::new(f64::NAN, 0.0, 0.0);
    assert_eq!(Mobility::waypoints(&[]), Err(MobilityError::Empty));
    assert_eq!(Mobility::waypoints(&[(s(0), A), (s(1), nowhere)]), Err(MobilityError::NotFinite(1)));
    assert_eq!(Mobility::waypoints(&[(s(1), A), (s(1), B)]), Err(MobilityError::NotLater(1)));
    assert_eq!(Mobility::route(&[], &[]), Err(MobilityError::Empty));
    assert_eq!(Mobility::route(&[A, B], &[]), Err(MobilityError::Speeds(1)));
    assert_eq!(Mobility::route(&[A, B], &[0.0]), Err(MobilityError::NotPositive(0)));
    assert_eq!(Mobility::route(&[A, B], &[f64::INFINITY]), Err(MobilityError::NotPositive(0)));
    assert_eq!(Mobility::route(&[A, nowhere], &[1.0]), Err(MobilityError::NotFinite(1)));
    assert_eq!(Mobility::route(&[A, B, A], &[1e-300, 1e-300]), Err(MobilityError::TooLong(1)));
}

#[test]
fn a_heading_is_that_of_the_movement_and_is_kept_while_it_stops() {
    let p = |x, y| Position::new(x, y, 1.5);
    let points = [
        (Time::ZERO + Span::from_secs(1), p(0.0, 0.0)),
        (Time::ZERO + Span::from_secs(2), p(0.0, 5.0)),
        (Time::ZERO + Span::from_secs(3), p(0.0, 5.0)),
        (Time::ZERO + Span::from_secs(4), p(-3.0, 8.0)),
    ];
    let mobility = Mobility::waypoints(&points).unwrap();
    for (milliseconds, degrees) in [(0, 90.0), (1500, 90.0), (2500, 90.0), (3000, 135.0), (9000, 135.0)] {
        let heading = mobility.heading_deg(Time::ZERO + Span::from_millis(milliseconds)).unwrap();
        assert!((heading - degrees).abs() < 1e-9, "{heading} after {milliseconds} ms");
    }
    assert_eq!(Mobility::fixed(p(1.0, 2.0)).heading_deg(Time::ZERO), None);
}
