//! Antenna arrays and their beams.
//!
//! Sources: 3GPP TR 38.901 7.3 (Table 7.3-1: the pattern of an element; a panel of elements at half a wavelength) and 7.1.3
//! (its orientation); TS 38.214 5.2.2.2.1 (the beams of an oversampled DFT codebook); TS 38.213 4.1 (a UE assumes
//! synchronisation signals every 20 ms).
//!
//! The gain of a beam is the element's gain plus that of the array, which is at most ten times the decimal logarithm of
//! the number of elements. The array's gain is the product of those of a column and a row of elements.
//!
//! Deviations:
//! 1. Beams are picked by the direct direction between both ends, also without line of sight and regardless of blockage:
//!    a reflection in another direction is never used.
//! 2. A sweep takes no time and picks the best beam at both ends without error.
//! 3. There is one polarisation and one beam at a time at each end. Elements do not couple.
//! 4. A roll of the array around its boresight (slant) is not modelled.

use core::f64::consts::PI;

use units::{Span, Time};

use crate::decibels;
use crate::mobility::Position;

/// An array of elements: one or more equal panels around a vertical axis, of which one is in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array {
    /// Elements of a panel on top of each other; at least 1.
    pub rows: u8,
    /// Elements of a panel side by side; at least 1.
    pub columns: u8,
    /// Number of panels, at equal angles; at least 1.
    pub panels: u8,
    /// The elements.
    pub element: Element,
    /// The beams.
    pub steering: Steering,
    /// Boresight direction of the first panel in degrees counter-clockwise from east; of a UE's array, from the UE's
    /// orientation.
    pub azimuth_deg: f64,
    /// Degrees by which the boresight points below the horizon.
    pub downtilt_deg: f64,
}

impl Default for Array {
    /// One panel of 8 by 8 directional elements that points east, with a codebook without oversampling.
    fn default() -> Array {
        Array {
            rows: 8,
            columns: 8,
            panels: 1,
            element: Element::Directional,
            steering: Steering::Codebook { oversampling: 1 },
            azimuth_deg: 0.0,
            downtilt_deg: 0.0,
        }
    }
}

/// An element of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Element {
    /// 0 dBi in all directions.
    Isotropic,
    /// 8 dBi with a beamwidth of 65 degrees. TR 38.901 Table 7.3-1.
    #[default]
    Directional,
}

/// How an array forms its beams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steering {
    /// A beam in exactly the direction of the other end, at any time.
    Ideal,
    /// The beams of a DFT codebook, held from one sweep to the next.
    Codebook {
        /// Number of beams for each element along each axis; at least 1.
        oversampling: u8,
    },
}

/// Maximum gain of a directional element in dBi. TR 38.901 Table 7.3-1.
pub const ELEMENT_DBI: f64 = 8.0;

/// Beamwidth of a directional element in degrees, vertically and horizontally.
const ELEMENT_WIDTH_DEG: f64 = 65.0;

/// Maximum attenuation of a directional element in dB, of each cut and in total.
const ELEMENT_FLOOR_DB: f64 = 30.0;

/// Interval between sweeps that a UE assumes. TS 38.213 4.1.
pub const SWEEP: Span = Span::from_millis(20);

/// Returns the direction from one point to another, as a unit vector; east if they are the same.
pub fn direction(from: Position, to: Position) -> [f64; 3] {
    let distance = from.distance(to);
    if distance == 0.0 {
        return [1.0, 0.0, 0.0];
    }
    [(to.x - from.x) / distance, (to.y - from.y) / distance, (to.z - from.z) / distance]
}

/// Returns azimuth (counter-clockwise from east) and zenith angle of a unit vector in degrees.
pub fn angles([x, y, z]: [f64; 3]) -> [f64; 2] {
    [libm::atan2(y, x).to_degrees(), libm::acos(z.clamp(-1.0, 1.0)).to_degrees()]
}

impl Element {
    /// Returns the gain in dBi towards an azimuth and a zenith angle in degrees relative to the panel, whose boresight is
    /// at an azimuth of 0 and a zenith angle of 90. TR 38.901 Table 7.3-1.
    pub fn gain_db(self, azimuth: f64, zenith: f64) -> f64 {
        match self {
            Element::Isotropic => 0.0,
            Element::Directional => {
                let cut =
                    |off: f64| (12.0 * (off / ELEMENT_WIDTH_DEG) * (off / ELEMENT_WIDTH_DEG)).min(ELEMENT_FLOOR_DB);
                ELEMENT_DBI - (cut(zenith - 90.0) + cut(azimuth)).min(ELEMENT_FLOOR_DB)
            }
        }
    }
}

impl Array {
    /// Returns the number of beams. They are numbered panel by panel and row by row, from 0.
    pub fn beams(&self) -> u32 {
        u32::from(self.panels) * self.beams_along(self.rows) * self.beams_along(self.columns)
    }

    /// Returns the gain in dBi of a steered beam's maximum at the element's maximum.
    pub fn max_gain_db(&self) -> f64 {
        self.element.gain_db(0.0, 90.0) + self.ideal_db()
    }

    /// Returns the beam with the highest gain in a direction, a unit vector. `orientation` is added to the azimuth, in
    /// degrees.
    pub fn best_beam(&self, direction: [f64; 3], orientation: f64) -> u32 {
        let candidates = (0..self.panels.max(1)).map(|panel| {
            let local = self.local(panel, direction, orientation);
            let beam = self.best_of_panel(panel, local);
            (beam, self.panel_gain_db(beam, local))
        });
        candidates.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(0, |(beam, _)| beam)
    }

    /// Returns the gain in dBi of a beam in a direction, a unit vector. With ideal steering, that of the beam's panel.
    pub fn gain_db(&self, beam: u32, direction: [f64; 3], orientation: f64) -> f64 {
        let per_panel = self.beams_along(self.rows) * self.beams_along(self.columns);
        self.panel_gain_db(beam, self.local((beam / per_panel) as u8, direction, orientation))
    }

    /// Returns the gain in dBi in a direction, averaged over beams that point anywhere: that of an element of the panel
    /// which is turned most towards it.
    pub fn mean_gain_db(&self, direction: [f64; 3], orientation: f64) -> f64 {
        let gains = (0..self.panels.max(1)).map(|panel| self.element_db(self.local(panel, direction, orientation)));
        gains.fold(f64::NEG_INFINITY, f64::max)
    }

    /// Returns the array that interferes as this one does: with ideal steering, one with a beam at most 0.001 dB away from
    /// any direction along each axis.
    #[must_use]
    pub fn interfering(&self) -> Array {
        match self.steering {
            Steering::Codebook { .. } => *self,
            Steering::Ideal => Array { steering: Steering::Codebook { oversampling: IDEAL_OVERSAMPLING }, ..*self },
        }
    }

    /// Returns the gain in dBi in a direction to which a beam of [`Array::interfering`] was not steered. Without a known
    /// beam, it is the mean gain.
    pub fn gain_beside_db(&self, beam: Option<u32>, direction: [f64; 3], orientation: f64) -> f64 {
        match beam {
            Some(beam) => self.interfering().gain_db(beam, direction, orientation),
            None => self.mean_gain_db(direction, orientation),
        }
    }

    fn ideal_db(&self) -> f64 {
        decibels(f64::from(self.rows) * f64::from(self.columns))
    }

    /// Returns the number of beams along an axis of `elements`.
    fn beams_along(&self, elements: u8) -> u32 {
        match self.steering {
            Steering::Codebook { oversampling } if elements > 1 => u32::from(elements) * u32::from(oversampling.max(1)),
            Steering::Codebook { .. } | Steering::Ideal => 1,
        }
    }

    /// Returns a direction in the coordinates of a panel, whose boresight is its x-axis. TR 38.901 7.1.3.
    fn local(&self, panel: u8, [x, y, z]: [f64; 3], orientation: f64) -> [f64; 3] {
        let turned = 360.0 * f64::from(panel) / f64::from(self.panels.max(1));
        let (sin, cos) = libm::sincos((self.azimuth_deg + orientation + turned).to_radians());
        let (ahead, left) = (x * cos + y * sin, y * cos - x * sin);
        let (sin, cos) = libm::sincos(self.downtilt_deg.to_radians());
        [ahead * cos - z * sin, left, ahead * sin + z * cos]
    }

    fn element_db(&self, local: [f64; 3]) -> f64 {
        let [azimuth, zenith] = angles(local);
        self.element.gain_db(azimuth, zenith)
    }

    /// Returns the best beam of a panel in a direction in the panel's coordinates.
    fn best_of_panel(&self, panel: u8, [_, left, up]: [f64; 3]) -> u32 {
        let [rows, columns] = [self.beams_along(self.rows), self.beams_along(self.columns)];
        // Beam b points to a sine of 2 b / beams, modulo 2.
        let nearest = |sine: f64, beams: u32| {
            let place = libm::round(sine * f64::from(beams) / 2.0) as i32;
            place.rem_euclid(beams as i32) as u32
        };
        (u32::from(panel) * rows + nearest(up, rows)) * columns + nearest(left, columns)
    }

    /// Returns the gain of a beam of the panel in whose coordinates the direction is.
    fn panel_gain_db(&self, beam: u32, local: [f64; 3]) -> f64 {
        let [_, left, up] = local;
        let array_db = match self.steering {
            Steering::Ideal => self.ideal_db(),
            Steering::Codebook { .. } => {
                let [rows, columns] = [self.beams_along(self.rows), self.beams_along(self.columns)];
                let vertical = line_gain(self.rows, up, beam / columns % rows, rows);
                let horizontal = line_gain(self.columns, left, beam % columns, columns);
                // A null is never perfect.
                decibels((vertical * horizontal).max(NULL))
            }
        };
        self.element_db(local) + array_db
    }
}

/// Beams for each element along each axis by which the interference of ideal steering is told apart.
const IDEAL_OVERSAMPLING: u8 = 64;

/// Returns the beam of [`Array::interfering`] with which `array` sends in a direction: `beam` of a codebook, which it holds,
/// or the nearest of ideal steering.
fn aim(array: Array, beam: u32, direction: [f64; 3], orientation: f64) -> u32 {
    match array.steering {
        Steering::Codebook { .. } => beam,
        Steering::Ideal => array.interfering().best_beam(direction, orientation),
    }
}

/// The least gain of an array factor: 60 dB below an element.
const NULL: f64 = 1e-6;

/// Returns the power gain of a line of `elements` at half a wavelength over one of them, in the direction with a sine of
/// `sine`, with the weights of beam `beam` of `beams`.
fn line_gain(elements: u8, sine: f64, beam: u32, beams: u32) -> f64 {
    let elements = f64::from(elements);
    // The phase from one element to the next, after the weights.
    let phase = PI * sine - 2.0 * PI * f64::from(beam) / f64::from(beams);
    let half = libm::sin(phase / 2.0);
    if half.abs() < 1e-9 {
        return elements;
    }
    let sum = libm::sin(elements * phase / 2.0) / half;
    sum * sum / elements
}

/// The positions of both ends of a link at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// The cell's antenna.
    pub site: Position,
    /// The UE.
    pub ue: Position,
    /// The UE's orientation in degrees counter-clockwise from east.
    pub orientation_deg: f64,
}

/// The beams of a link: picked at each sweep, and held until the next one while the UE moves and turns.
///
/// Call [`Beams::update`] before the getters. Sweeps are at multiples of their interval, so that results do not depend on
/// the times of calls.
#[derive(Clone, Debug)]
pub struct Beams {
    site: Option<Array>,
    ue: Option<Array>,
    interval: u64,
    /// The number of the last sweep.
    swept: Option<u64>,
    site_beam: u32,
    ue_beam: u32,
}

impl Beams {
    /// Creates the beams of a link between two arrays; an end without one has a gain of 0 dB here. `interval` is the time
    /// from sweep to sweep, at least a nanosecond.
    pub fn new(site: Option<Array>, ue: Option<Array>, interval: Span) -> Beams {
        Beams { site, ue, interval: interval.as_nanos().max(1), swept: None, site_beam: 0, ue_beam: 0 }
    }

    /// Picks the beams of the last sweep until `now`; `ends` returns the positions at the time of the sweep.
    pub fn update(&mut self, now: Time, ends: impl FnOnce(Time) -> Ends) {
        let sweep = now.as_nanos() / self.interval;
        if self.swept == Some(sweep) {
            return;
        }
        self.swept = Some(sweep);
        let Ends { site, ue, orientation_deg } = ends(Time::from_nanos(sweep * self.interval));
        self.site_beam = self.site.map_or(0, |array| array.best_beam(direction(site, ue), 0.0));
        self.ue_beam = self.ue.map_or(0, |array| array.best_beam(direction(ue, site), orientation_deg));
    }

    /// Returns the beams of the cell and of the UE.
    pub fn pair(&self) -> (u32, u32) {
        (self.site_beam, self.ue_beam)
    }

    /// Returns the cell's beam as others hear it, one of [`Array::interfering`]; `None` without an array.
    pub fn site_aim(&self, ends: &Ends) -> Option<u32> {
        self.site.map(|array| aim(array, self.site_beam, direction(ends.site, ends.ue), 0.0))
    }

    /// Returns the same for the UE's beam.
    pub fn ue_aim(&self, ends: &Ends) -> Option<u32> {
        self.ue.map(|array| aim(array, self.ue_beam, direction(ends.ue, ends.site), ends.orientation_deg))
    }

    /// Returns the gains in dBi of the beams of the cell and of the UE.
    pub fn gains_db(&self, ends: &Ends) -> [f64; 2] {
        [self.site_gain_db(self.site_beam, ends), self.ue_gain_db(self.ue_beam, ends)]
    }

    /// Returns how much less the gains are in dB than those of the best beams would be.
    pub fn misalignment_db(&self, ends: &Ends) -> f64 {
        let Ends { site, ue, orientation_deg } = *ends;
        let site_best = self.site.map_or(0, |array| array.best_beam(direction(site, ue), 0.0));
        let ue_best = self.ue.map_or(0, |array| array.best_beam(direction(ue, site), orientation_deg));
        let [site_db, ue_db] = self.gains_db(ends);
        self.site_gain_db(site_best, ends) + self.ue_gain_db(ue_best, ends) - site_db - ue_db
    }

    fn site_gain_db(&self, beam: u32, ends: &Ends) -> f64 {
        self.site.map_or(0.0, |array| array.gain_db(beam, direction(ends.site, ends.ue), 0.0))
    }

    fn ue_gain_db(&self, beam: u32, ends: &Ends) -> f64 {
        self.ue.map_or(0.0, |array| array.gain_db(beam, direction(ends.ue, ends.site), ends.orientation_deg))
    }
}
