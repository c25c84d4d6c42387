//! Buildings as boxes: line of sight past them, and the loss through their walls.
//!
//! Sources: 3GPP TR 38.901 7.4.3.1 (O2I penetration loss, Tables 7.4.3-1 and 7.4.3-2; for carriers below 6 GHz also
//! Table 7.4.3-3) and 7.4.3.2 (loss of a car).
//!
//! Deviations:
//! 1. A building is opaque and has no windows to look through and no diffraction around its edges: it turns line of
//!    sight into its absence, and the path loss model does the rest.
//! 2. The ends' own buildings do not obstruct them: the walls' loss is added to the loss of the path outside, with or
//!    without line of sight, as in TR 38.901. In ns-3 a UE in a building has no line of sight.
//! 3. The depth of a UE in its building is drawn, and does not follow its position; so is the deviation of the wall's
//!    loss. Both are drawn anew on each visit of a building.
//! 4. Buildings stand on flat ground, and an antenna below the ground is in them.

use core::fmt;

use crate::mobility::{Mobility, Position};
use crate::{Random, decibels, linear, normal, uniform};

/// A building: an axis-aligned box on the ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Building {
    /// Its western and eastern side, in metres.
    pub x: [f64; 2],
    /// Its southern and northern side, in metres.
    pub y: [f64; 2],
    /// Its height in metres.
    pub height: f64,
    /// Its outer walls.
    pub wall: Wall,
}

/// The outer walls of a building. TR 38.901 Table 7.4.3-2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wall {
    /// 30 % standard multi-pane glass and 70 % concrete: old and residential buildings.
    #[default]
    LowLoss,
    /// 70 % infrared reflecting glass and 30 % concrete: modern, insulated buildings.
    HighLoss,
}

/// The model of the loss from outdoors to a UE in a building.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Penetration {
    /// TR 38.901 Table 7.4.3-2.
    #[default]
    Materials,
    /// The model of TR 38.901 Table 7.4.3-3 for carriers below 6 GHz, for comparisons with older studies: the same for
    /// all walls, without deviation.
    Below6Ghz,
}

/// The loss in dB of a car's body: a normal distribution. TR 38.901 7.4.3.2, for 0.6 to 60 GHz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Car {
    /// Its mean.
    pub mean_db: f64,
    /// Its standard deviation.
    pub sigma_db: f64,
}

impl Default for Car {
    /// 9 and 5 dB.
    fn default() -> Car {
        Car { mean_db: 9.0, sigma_db: 5.0 }
    }
}

impl Car {
    /// A car with metallised windows.
    pub const METALLISED: Car = Car { mean_db: 20.0, sigma_db: 5.0 };

    /// Draws the loss of a car in dB.
    pub fn draw_db(self, random: &mut Random) -> f64 {
        self.mean_db + self.sigma_db * normal(random)
    }
}

/// The loss of 1 m of a building's interior in dB. TR 38.901 Tables 7.4.3-2 and 7.4.3-3.
const INTERIOR_DB_PER_M: f64 = 0.5;

/// The loss of any wall in dB at carriers below 6 GHz. TR 38.901 Table 7.4.3-3.
const BELOW_6_GHZ_WALL_DB: f64 = 20.0;

/// The greatest depth of a UE in a building in metres. TR 38.901 7.4.3.1, for UMi and UMa.
pub const URBAN_DEPTH_M: f64 = 25.0;

/// The same for RMa.
pub const RURAL_DEPTH_M: f64 = 10.0;

impl Wall {
    /// Returns the median loss of the wall at a carrier of `hz` in dB, at the usual angles of incidence.
    pub fn loss_db(self, hz: f64) -> f64 {
        let ghz = hz / 1e9;
        // TR 38.901 Table 7.4.3-1.
        let (glass, reflecting_glass, concrete) = (2.0 + 0.2 * ghz, 23.0 + 0.3 * ghz, 5.0 + 4.0 * ghz);
        let through = match self {
            Wall::LowLoss => 0.3 * linear(-glass) + 0.7 * linear(-concrete),
            Wall::HighLoss => 0.7 * linear(-reflecting_glass) + 0.3 * linear(-concrete),
        };
        5.0 - decibels(through)
    }

    /// Returns the standard deviation of the penetration loss in dB.
    pub const fn sigma_db(self) -> f64 {
        match self {
            Wall::LowLoss => 4.4,
            Wall::HighLoss => 6.5,
        }
    }
}

/// What is drawn for a visit of a building.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// Metres travelled by the UE when it enters.
    from: f64,
    /// The UE's distance from the outer wall in metres.
    depth_m: f64,
    /// Deviation of the loss from its mean, in standard deviations.
    deviation: f64,
}

impl Visit {
    /// Returns the UE's distance from the outer wall in metres.
    pub fn depth_m(&self) -> f64 {
        self.depth_m
    }

    /// Returns the loss in dB through `wall` and the interior, at a carrier of `hz`.
    pub fn loss_db(&self, penetration: Penetration, wall: Wall, hz: f64) -> f64 {
        let interior_db = INTERIOR_DB_PER_M * self.depth_m;
        match penetration {
            Penetration::Materials => wall.loss_db(hz) + interior_db + wall.sigma_db() * self.deviation,
            Penetration::Below6Ghz => BELOW_6_GHZ_WALL_DB + interior_db,
        }
    }
}

/// The visits of buildings on one UE's way, with what is drawn for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visits {
    /// In the order in which they begin.
    all: Box<[Visit]>,
}

/// Metres by which the beginning of a visit may be rounded.
const ROUNDING_M: f64 = 1e-6;

impl Visits {
    /// Finds the visits on the way of `mobility` and draws for each, with depths up to `depth_m` metres
    /// ([`URBAN_DEPTH_M`], [`RURAL_DEPTH_M`]).
    pub fn new(
        buildings: &Buildings,
        mobility: &Mobility,
        penetration: Penetration,
        depth_m: f64,
        random: &mut Random,
    ) -> Visits {
        // Entry and exit in metres travelled, and the building.
        let mut stays: Vec<(f64, f64, usize)> = Vec::new();
        for leg in mobility.legs() {
            let [x, y, z] = leg.velocity;
            let next = Position::new(leg.from.x + x, leg.from.y + y, leg.from.z + z);
            for (index, building) in buildings.all.iter().enumerate() {
                if leg.speed == 0.0 {
                    if building.contains(leg.from) {
                        stays.push((leg.travelled, leg.travelled, index));
                    }
                } else if let Some((enter, leave)) = building.cut(leg.from, next, 0.0, leg.seconds) {
                    stays.push((
                        leg.travelled + leg.speed * enter.value(),
                        leg.travelled + leg.speed * leave.value(),
                        index,
                    ));
                }
            }
        }
        stays.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut all: Vec<Visit> = Vec::new();
        let mut last = (f64::NEG_INFINITY, usize::MAX);
        for (enter, leave, building) in stays {
            // The same visit goes on after a turn, and in a building that overlaps with the previous one.
            let same = enter <= last.0 + ROUNDING_M && building == last.1;
            if !same && enter >= last.0 - ROUNDING_M {
                let [one, other] = [(); 2].map(|()| depth_m * uniform(random));
                let depth_m = if penetration == Penetration::Materials { one.min(other) } else { one };
                all.push(Visit { from: enter, depth_m, deviation: normal(random) });
            }
            if leave >= last.0 {
                last = (leave, building);
            }
        }
        Visits { all: all.into() }
    }

    /// Returns the visit of a UE that is in a building after it has travelled so many metres.
    pub fn at(&self, travelled: f64) -> Option<&Visit> {
        self.all[..self.all.partition_point(|visit| visit.from <= travelled + ROUNDING_M)].last()
    }
}

/// A number as a fraction with a denominator above zero, so that comparisons need no division and are exact for
/// coordinates with few digits.
#[derive(Clone, Copy, Debug)]
struct Fraction {
    over: f64,
    under: f64,
}

impl Fraction {
    fn new(over: f64) -> Fraction {
        Fraction { over, under: 1.0 }
    }

    fn is_less(self, other: Fraction) -> bool {
        self.over * other.under < other.over * self.under
    }

    fn value(self) -> f64 {
        self.over / self.under
    }
}

impl Building {
    /// Returns whether a point is inside; its faces are outside.
    pub fn contains(&self, point: Position) -> bool {
        self.x[0] < point.x
            && point.x < self.x[1]
            && self.y[0] < point.y
            && point.y < self.y[1]
            && point.z < self.height
    }

    /// Returns whether the straight line between two points passes through the inside. A line along a face or through an
    /// edge does not.
    pub fn is_cut(&self, a: Position, b: Position) -> bool {
        self.cut(a, b, 0.0, 1.0).is_some()
    }

    /// Returns where the line from `a` (0) through `b` (1) is inside, between `from` and `until`.
    fn cut(&self, a: Position, b: Position, from: f64, until: f64) -> Option<(Fraction, Fraction)> {
        let (mut enter, mut leave) = (Fraction::new(from), Fraction::new(until));
        let slabs =
            [(self.x, a.x, b.x - a.x), (self.y, a.y, b.y - a.y), ([f64::NEG_INFINITY, self.height], a.z, b.z - a.z)];
        for ([low, high], start, step) in slabs {
            if step == 0.0 {
                if start <= low || start >= high {
                    return None;
                }
                continue;
            }
            let (near, far) = if step > 0.0 { (low - start, high - start) } else { (start - high, start - low) };
            let [near, far] = [near, far].map(|over| Fraction { over, under: step.abs() });
            if enter.is_less(near) {
                enter = near;
            }
            if far.is_less(leave) {
                leave = far;
            }
        }
        enter.is_less(leave).then_some((enter, leave))
    }
}

/// The error for an invalid building; the number is its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildingError {
    /// A side or the height is not finite.
    NotFinite(usize),
    /// It has no volume: a side is not beyond the opposite one, or the height is not above zero.
    Empty(usize),
}

impl fmt::Display for BuildingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildingError::NotFinite(index) => write!(f, "building {index}: sides and height must be finite numbers"),
            BuildingError::Empty(index) => {
                write!(f, "building {index}: sides must be in ascending order and the height above 0 m")
            }
        }
    }
}

impl std::error::Error for BuildingError {}

/// A set of buildings, which may overlap.
///
/// A uniform grid over the ground holds which buildings are where, so that a line is compared only with those near it.
#[derive(Clone, Debug, PartialEq)]
pub struct Buildings {
    all: Box<[Building]>,
    /// South-western corner of the grid.
    corner: [f64; 2],
    /// Sides of a square of the grid in metres, west to east and south to north.
    square: [f64; 2],
    /// Number of squares along each axis.
    squares: usize,
    /// For each square, row by row, where its buildings end in `members`.
    ends: Box<[u32]>,
    /// Indices of buildings.
    members: Box<[u32]>,
}

/// Maximum number of squares along an axis.
const MAX_SQUARES: usize = 64;

impl Buildings {
    /// Creates a set of buildings.
    pub fn new(all: &[Building]) -> Result<Buildings, BuildingError> {
        for (index, building) in all.iter().enumerate() {
            let Building { x, y, height, .. } = *building;
            if ![x[0], x[1], y[0], y[1], height].into_iter().all(f64::is_finite) {
                return Err(BuildingError::NotFinite(index));
            }
            if x[0] >= x[1] || y[0] >= y[1] || height <= 0.0 {
                return Err(BuildingError::Empty(index));
            }
        }
        let least = |side: fn(&Building) -> f64| all.iter().map(side).fold(f64::INFINITY, f64::min);
        let most = |side: fn(&Building) -> f64| all.iter().map(side).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = ([least(|b| b.x[0]), least(|b| b.y[0])], [most(|b| b.x[1]), most(|b| b.y[1])]);
        let squares = (libm::ceil(libm::sqrt(all.len() as f64)) as usize).clamp(1, MAX_SQUARES);
        let square = [0, 1].map(|axis| (high[axis] - low[axis]) / squares as f64);
        let mut grid =
            Buildings { all: all.into(), corner: low, square, squares, ends: Box::default(), members: Box::default() };
        let (mut ends, mut members) = (Vec::with_capacity(squares * squares), Vec::new());
        for row in 0..squares {
            for column in 0..squares {
                let touches = |building: &Building| {
                    let [columns, rows] = [grid.range(0, building.x), grid.range(1, building.y)];
                    columns.contains(&column) && rows.contains(&row)
                };
                members.extend((0..all.len()).filter(|&index| touches(&all[index])).map(|index| index as u32));
                ends.push(members.len() as u32);
            }
        }
        (grid.ends, grid.members) = (ends.into(), members.into());
        Ok(grid)
    }

    /// Returns all buildings.
    pub fn all(&self) -> &[Building] {
        &self.all
    }

    /// Returns the index of the first building around a point.
    pub fn around(&self, point: Position) -> Option<usize> {
        // The conversions saturate at zero, and a point beyond the grid is in no building of its border.
        let [column, row] =
            [(0, point.x), (1, point.y)].map(|(axis, at)| (self.place(axis, at) as usize).min(self.squares - 1));
        let mut members = self.members(column, row).iter().map(|&index| index as usize);
        members.find(|&index| self.all[index].contains(point))
    }

    /// Returns whether the straight line between two points passes no building other than those around its ends.
    pub fn sees(&self, a: Position, b: Position) -> bool {
        let blocks = |&index: &u32| {
            let building = &self.all[index as usize];
            building.is_cut(a, b) && !building.contains(a) && !building.contains(b)
        };
        let columns = self.range(0, [a.x.min(b.x), a.x.max(b.x)]);
        for column in columns {
            // The line's part in this column.
            let west = self.corner[0] + column as f64 * self.square[0];
            let [y0, y1] = [west, west + self.square[0]].map(|x| {
                let share = if a.x == b.x { 0.5 } else { ((x - a.x) / (b.x - a.x)).clamp(0.0, 1.0) };
                a.y + share * (b.y - a.y)
            });
            let [y0, y1] = if a.x == b.x { [a.y, b.y] } else { [y0, y1] };
            for row in self.range(1, [y0.min(y1), y0.max(y1)]) {
                if self.members(column, row).iter().any(blocks) {
                    return false;
                }
            }
        }
        true
    }

    /// Returns a coordinate in squares from the corner.
    fn place(&self, axis: usize, at: f64) -> f64 {
        (at - self.corner[axis]) / self.square[axis]
    }

    /// Returns the squares of an interval along an axis, with a margin for rounding.
    fn range(&self, axis: usize, [low, high]: [f64; 2]) -> core::ops::Range<usize> {
        const MARGIN: f64 = 1e-6;
        let (low, high) = (self.place(axis, low) - MARGIN, self.place(axis, high) + MARGIN);
        if self.all.is_empty() || high < 0.0 || low >= self.squares as f64 {
            return 0..0;
        }
        // The conversions saturate at zero.
        low as usize..(high as usize + 1).min(self.squares)
    }

    fn members(&self, column: usize, row: usize) -> &[u32] {
        let square = row * self.squares + column;
        let start = if square == 0 { 0 } else { self.ends[square - 1] };
        &self.members[start as usize..self.ends[square] as usize]
    }
}
