//! Position and movement of a UE.

use core::fmt;

use units::{Span, Time};

/// A point in metres; `z` is the height above ground.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres east.
    pub x: f64,
    /// Metres north.
    pub y: f64,
    /// Metres above ground.
    pub z: f64,
}

impl Position {
    /// Creates the point (`x`, `y`, `z`) in metres.
    pub const fn new(x: f64, y: f64, z: f64) -> Position {
        Position { x, y, z }
    }

    /// Returns the ground distance in metres.
    pub fn ground_distance(self, other: Position) -> f64 {
        let (x, y) = (other.x - self.x, other.y - self.y);
        (x * x + y * y).sqrt()
    }

    /// Returns the distance in space in metres.
    pub fn distance(self, other: Position) -> f64 {
        let (x, y, z) = (other.x - self.x, other.y - self.y, other.z - self.z);
        (x * x + y * y + z * z).sqrt()
    }

    fn is_finite(self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.z.is_finite()
    }
}

/// A movement along straight legs, each at a constant speed. The last leg has no end.
#[derive(Clone, Debug, PartialEq)]
pub struct Mobility {
    /// In order of their starts, the first at time zero; never empty.
    legs: Box<[Leg]>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Leg {
    start: Time,
    from: Position,
    /// Metres per second along each axis.
    velocity: [f64; 3],
    /// Length of `velocity`.
    speed: f64,
    /// Metres travelled before this leg.
    travelled: f64,
}

/// A part of a movement at constant speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Where it begins.
    pub(crate) from: Position,
    /// Metres per second along each axis.
    pub(crate) velocity: [f64; 3],
    /// Length of `velocity`.
    pub(crate) speed: f64,
    /// Metres travelled before it.
    pub(crate) travelled: f64,
    /// Its duration, which may be infinite.
    pub(crate) seconds: f64,
}

/// The error for an invalid list of points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MobilityError {
    /// The list is empty.
    Empty,
    /// A coordinate of the point with this index is not finite.
    NotFinite(usize),
    /// The point with this index is not later than the previous one.
    NotLater(usize),
    /// The number of speeds must be the number of legs, which is this.
    Speeds(usize),
    /// The speed with this index is not a positive number.
    NotPositive(usize),
    /// The leg with this index takes longer than the range of time.
    TooLong(usize),
}

impl fmt::Display for MobilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MobilityError::Empty => write!(f, "a movement needs at least one point"),
            MobilityError::NotFinite(point) => write!(f, "point {point}: coordinates must be finite numbers"),
            MobilityError::NotLater(point) => {
                write!(f, "point {point}: the time must be later than that of the previous point")
            }
            MobilityError::Speeds(legs) => write!(f, "{legs} speeds are required, one for each leg of the route"),
            MobilityError::NotPositive(leg) => write!(f, "speed {leg}: must be above 0 m/s and finite"),
            MobilityError::TooLong(leg) => write!(f, "leg {leg}: takes longer than 580 years"),
        }
    }
}

impl std::error::Error for MobilityError {}

impl Mobility {
    /// Creates a stationary position.
    pub fn fixed(at: Position) -> Mobility {
        Mobility::line(at, [0.0; 3])
    }

    /// Creates a straight line from a point with a velocity in metres per second along each axis, without end.
    pub fn line(from: Position, velocity: [f64; 3]) -> Mobility {
        Mobility {
            legs: Box::new([Leg { start: Time::ZERO, from, velocity, speed: length(velocity), travelled: 0.0 }]),
        }
    }

    /// Creates a movement that is at each point at its time, moves at constant speed in between, waits at the first
    /// point until its time and stays at the last one.
    pub fn waypoints(points: &[(Time, Position)]) -> Result<Mobility, MobilityError> {
        let (first_time, first) = *points.first().ok_or(MobilityError::Empty)?;
        if let Some(index) = points.iter().position(|(_, point)| !point.is_finite()) {
            return Err(MobilityError::NotFinite(index));
        }
        let mut legs = Vec::with_capacity(points.len() + 1);
        let mut travelled = 0.0;
        if first_time > Time::ZERO {
            legs.push(Leg { start: Time::ZERO, from: first, velocity: [0.0; 3], speed: 0.0, travelled });
        }
        for (index, pair) in points.windows(2).enumerate() {
            let [(start, from), (end, to)] = [pair[0], pair[1]];
            if end <= start {
                return Err(MobilityError::NotLater(index + 1));
            }
            let seconds = (end - start).as_secs_f64();
            let velocity = [(to.x - from.x) / seconds, (to.y - from.y) / seconds, (to.z - from.z) / seconds];
            legs.push(Leg { start, from, velocity, speed: length(velocity), travelled });
            travelled += from.distance(to);
        }
        let (start, from) = points[points.len() - 1];
        legs.push(Leg { start, from, velocity: [0.0; 3], speed: 0.0, travelled });
        Ok(Mobility { legs: legs.into() })
    }

    /// Creates a movement that leaves the first point at time zero, moves to each of the others at the speed of that
    /// leg in metres per second, and stays at the last one.
    pub fn route(points: &[Position], speeds: &[f64]) -> Result<Mobility, MobilityError> {
        let legs = points.len().checked_sub(1).ok_or(MobilityError::Empty)?;
        if speeds.len() != legs {
            return Err(MobilityError::Speeds(legs));
        }
        if let Some(index) = points.iter().position(|point| !point.is_finite()) {
            return Err(MobilityError::NotFinite(index));
        }
        let mut timed = Vec::with_capacity(points.len());
        let mut time = Time::ZERO;
        timed.push((time, points[0]));
        for (index, (pair, &speed)) in points.windows(2).zip(speeds).enumerate() {
            if !(speed > 0.0 && speed.is_finite()) {
                return Err(MobilityError::NotPositive(index));
            }
            let span = Span::from_secs_f64(pair[0].distance(pair[1]) / speed);
            let end = time.as_nanos().checked_add(span.as_nanos()).ok_or(MobilityError::TooLong(index))?;
            time = Time::from_nanos(end);
            // A leg of zero length takes no time and is omitted.
            if span > Span::ZERO {
                timed.push((time, pair[1]));
            }
        }
        Mobility::waypoints(&timed)
    }

    /// Returns the position at `now`.
    pub fn position(&self, now: Time) -> Position {
        let leg = self.leg(now);
        let seconds = (now - leg.start).as_secs_f64();
        let [vx, vy, vz] = leg.velocity;
        Position { x: leg.from.x + vx * seconds, y: leg.from.y + vy * seconds, z: leg.from.z + vz * seconds }
    }

    /// Returns the speed at `now`, in metres per second.
    pub fn speed(&self, now: Time) -> f64 {
        self.leg(now).speed
    }

    /// Returns the metres travelled until `now`.
    pub fn travelled(&self, now: Time) -> f64 {
        let leg = self.leg(now);
        leg.travelled + leg.speed * (now - leg.start).as_secs_f64()
    }

    /// Returns the speed of its fastest leg, in metres per second.
    pub fn max_speed(&self) -> f64 {
        self.legs.iter().fold(0.0, |fastest, leg| leg.speed.max(fastest))
    }

    /// Returns the direction of its movement along the ground at `now`, in degrees counter-clockwise from east; while it
    /// stops or moves vertically, that of the previous leg, and before the first movement that of the next one. `None` if
    /// it never moves.
    pub fn heading_deg(&self, now: Time) -> Option<f64> {
        let index = self.legs.partition_point(|leg| leg.start <= now);
        let (past, future) = self.legs.split_at(index);
        let moving = |leg: &&Leg| leg.velocity[0] != 0.0 || leg.velocity[1] != 0.0;
        let leg = past.iter().rev().find(moving).or_else(|| future.iter().find(moving))?;
        Some(libm::atan2(leg.velocity[1], leg.velocity[0]).to_degrees())
    }

    /// Returns its legs in order.
    pub(crate) fn legs(&self) -> impl Iterator<Item = Segment> + '_ {
        self.legs.iter().enumerate().map(|(index, leg)| Segment {
            from: leg.from,
            velocity: leg.velocity,
            speed: leg.speed,
            travelled: leg.travelled,
            seconds: self.legs.get(index + 1).map_or(f64::INFINITY, |next| (next.start - leg.start).as_secs_f64()),
        })
    }

    fn leg(&self, now: Time) -> &Leg {
        // The first leg starts at time zero, so at least one has started.
        &self.legs[self.legs.partition_point(|leg| leg.start <= now) - 1]
    }
}

fn length([x, y, z]: [f64; 3]) -> f64 {
    (x * x + y * y + z * z).sqrt()
}
