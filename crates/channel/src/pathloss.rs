//! Mean path loss, antennas and noise.
//!
//! Sources: H. T. Friis, "A Note on a Simple Transmission Formula" (Proc. IRE 34(5), 1946); 3GPP TR 38.901 Tables
//! 7.4.1-1 and 7.4.2-1 (UMi street canyon, UMa, RMa, InH office); COST Action 231, "Digital mobile radio towards future generation
//! systems", final report, 4.4.1 (Hata's model from 1.5 to 2 GHz); 3GPP TR 36.942 4.2.1 (the sector's antenna).
//!
//! Deviations:
//! 1. Friis, log-distance and InH are valid from 1 m, and the rest of TR 38.901 from 10 m; at shorter distances, the
//!    loss at that distance is used. Beyond its 5 km (RMa with line of sight: 10 km; InH: 150 m), TR 38.901 is
//!    extrapolated. COST 231 is extrapolated on both sides of its 1 to 20 km, but is never less than free space.
//! 2. There is no additional loss for UEs indoors or in a car: [`crate::buildings`] adds it.
//! 3. A sector's antenna has its horizontal pattern only, without downtilt.
//! 4. UMa's environment height is 1 m, as for UEs below 13 m; for higher ones TR 38.901 draws it.
//! 5. Antennas lower than the formulas hold for (UMi and UMa: 1.5 m; RMa: 10 m, and UEs 1 m; COST 231: 30 m) have the loss
//!    of these heights, over their own distance.

use crate::antenna::{Array, direction};
use crate::mobility::Position;

/// Speed of light in metres per second.
pub const LIGHT: f64 = 299_792_458.0;

/// Thermal noise in dBm per Hz at 290 K.
pub const THERMAL_DBM_HZ: f64 = -174.0;

/// The height in metres of street traffic, which is subtracted from the effective antenna heights. TR 38.901 Table
/// 7.4.1-1.
const EFFECTIVE_M: f64 = 1.0;

/// The minimum height in metres of a UE for UMi and UMa. TR 38.901 Table 7.4.1-1.
const URBAN_LEAST_M: f64 = 1.5;

/// The minimum heights in metres of antenna and UE for RMa. TR 38.901 Table 7.4.1-1.
const RURAL_LEAST_M: [f64; 2] = [10.0, 1.0];

/// The minimum height in metres of the antenna for COST 231's model. COST 231 4.4.1.
const HATA_LEAST_M: f64 = 30.0;

/// The minimum ground distance in metres for which TR 38.901 is valid.
const LEAST_M: f64 = 10.0;

/// The minimum distance in space in metres for which TR 38.901's InH is valid.
const INDOOR_LEAST_M: f64 = 1.0;

/// The mean path loss as a function of distance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PathLoss {
    /// Free space.
    #[default]
    Friis,
    /// `reference_db` at `reference_m` metres, plus ten times `exponent` dB for each decade of distance.
    LogDistance {
        /// The path loss exponent; 2 in free space.
        exponent: f64,
        /// The reference distance in metres.
        reference_m: f64,
        /// The loss at the reference distance, in dB.
        reference_db: f64,
    },
    /// TR 38.901 UMi street canyon.
    UmiStreetCanyon(Sight),
    /// TR 38.901 UMa: antennas above the roofs of a city.
    UrbanMacro(Sight),
    /// TR 38.901 RMa: open countryside and small towns.
    RuralMacro {
        /// Line of sight to the cell.
        sight: Sight,
        /// Mean height of buildings in metres, 5 to 50.
        building_m: f64,
        /// Mean width of streets in metres, 5 to 50.
        street_m: f64,
    },
    /// TR 38.901 InH: an office with antennas on its ceiling.
    IndoorOffice {
        /// Line of sight to the cell.
        sight: Sight,
        /// Its walls and partitions.
        office: Office,
    },
    /// COST 231's extension of Hata's model, for masts above the roofs.
    Cost231Hata {
        /// Whether the area is a metropolitan centre: 3 dB more than in medium cities and suburbs.
        metropolitan: bool,
    },
    /// A constant loss in dB.
    Fixed(f64),
}

/// Line of sight between the UE and the cell's antenna.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// Line of sight (LOS).
    Los,
    /// No line of sight (NLOS).
    Nlos,
    /// Random with the probability of TR 38.901, correlated over 50 m of movement (RMa: 60 m, InH: 10 m).
    #[default]
    Random,
    /// If no building is in between ([`crate::Buildings`]).
    Buildings,
}

/// The kind of an office, which determines the probability of line of sight. TR 38.901 Table 7.4.2-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Office {
    /// Rooms and open areas.
    #[default]
    Mixed,
    /// One open area.
    Open,
}

impl PathLoss {
    /// Returns the loss in dB from `site` to `ue` at a carrier of `hz`. `sees` is whether there is line of sight, where
    /// that matters.
    pub fn loss_db(&self, site: Position, ue: Position, hz: f64, sees: bool) -> f64 {
        self.loss_with(&mut None, site, ue, hz, sees)
    }

    /// Returns the same. `known` is memory of the last call, which was for the same model.
    pub(crate) fn loss_with(
        &self,
        known: &mut Option<Logarithms>,
        site: Position,
        ue: Position,
        hz: f64,
        sees: bool,
    ) -> f64 {
        let mut urban = |model: Urban| {
            let known = Logarithms::of(known, site.z, ue.z, hz);
            let ground = site.ground_distance(ue);
            if sees { model.los_of(ground, known) } else { model.nlos_of(ground, known) }
        };
        match *self {
            PathLoss::Friis => friis_db(site.distance(ue), hz),
            PathLoss::LogDistance { exponent, reference_m, reference_db } => {
                reference_db + 10.0 * exponent * libm::log10(site.distance(ue).max(1.0) / reference_m)
            }
            PathLoss::UmiStreetCanyon(_) => urban(Urban::MICRO),
            PathLoss::UrbanMacro(_) => urban(Urban::MACRO),
            PathLoss::RuralMacro { building_m, .. } if sees => {
                rma_los_db(site.ground_distance(ue), site.z, ue.z, hz, building_m)
            }
            PathLoss::RuralMacro { building_m, street_m, .. } => {
                rma_nlos_db(site.ground_distance(ue), site.z, ue.z, hz, building_m, street_m)
            }
            PathLoss::IndoorOffice { .. } if sees => inh_los_db(site.distance(ue), hz),
            PathLoss::IndoorOffice { .. } => inh_nlos_db(site.distance(ue), hz),
            PathLoss::Cost231Hata { metropolitan } => {
                let hata = cost231_hata_db(site.ground_distance(ue), site.z, ue.z, hz, metropolitan);
                hata.max(friis_db(site.distance(ue), hz))
            }
            PathLoss::Fixed(loss) => loss,
        }
    }

    /// Returns the line-of-sight setting. Models without this distinction assume line of sight.
    pub fn sight(&self) -> Sight {
        match *self {
            PathLoss::UmiStreetCanyon(sight)
            | PathLoss::UrbanMacro(sight)
            | PathLoss::RuralMacro { sight, .. }
            | PathLoss::IndoorOffice { sight, .. } => sight,
            _ => Sight::Los,
        }
    }

    /// Returns the probability of line of sight at a ground distance of `ground` metres. TR 38.901 Table 7.4.2-1.
    pub fn sight_probability(&self, ground: f64) -> f64 {
        match self {
            PathLoss::UmiStreetCanyon(_) => Urban::MICRO.sight_probability(ground),
            PathLoss::UrbanMacro(_) => Urban::MACRO.sight_probability(ground),
            PathLoss::RuralMacro { .. } => rma_sight_probability(ground),
            PathLoss::IndoorOffice { office, .. } => office.sight_probability(ground),
            _ => 1.0,
        }
    }

    /// Returns a bound of [`PathLoss::sight_probability`] that takes no exponential.
    #[inline]
    pub(crate) fn sight_bound(&self, ground: f64) -> f64 {
        match self {
            PathLoss::UmiStreetCanyon(_) => Urban::MICRO.sight_bound(ground),
            PathLoss::UrbanMacro(_) => Urban::MACRO.sight_bound(ground),
            _ => 1.0,
        }
    }

    /// Returns the correlation distance of line of sight in metres. TR 38.901 Table 7.6.3.1-2.
    pub(crate) fn sight_correlation_m(&self) -> f64 {
        match self {
            PathLoss::RuralMacro { .. } => 60.0,
            PathLoss::IndoorOffice { .. } => 10.0,
            _ => 50.0,
        }
    }

    /// Returns the carrier frequencies in Hz for which the model was made.
    ///
    /// TR 38.901 Table 7.4.1-1, notes: 0.5 to 100 GHz, for RMa up to 30 GHz. COST 231 4.4.1: 1.5 to 2 GHz.
    pub fn frequencies(&self) -> core::ops::RangeInclusive<f64> {
        match self {
            PathLoss::UmiStreetCanyon(_) | PathLoss::UrbanMacro(_) | PathLoss::IndoorOffice { .. } => 0.5e9..=100e9,
            PathLoss::RuralMacro { .. } => 0.5e9..=30e9,
            PathLoss::Cost231Hata { .. } => 1.5e9..=2e9,
            PathLoss::Friis | PathLoss::LogDistance { .. } | PathLoss::Fixed(_) => 0.0..=f64::INFINITY,
        }
    }

    /// Returns whether `ue` is beyond the break point of `site`, where shadowing depends on it.
    pub(crate) fn is_beyond_break(&self, site: Position, ue: Position, hz: f64) -> bool {
        matches!(self, PathLoss::RuralMacro { .. }) && site.ground_distance(ue) > rma_break_m(site.z, ue.z, hz)
    }
}

/// Returns the free-space loss in dB over `metres` at `hz`.
pub fn friis_db(metres: f64, hz: f64) -> f64 {
    20.0 * libm::log10(4.0 * core::f64::consts::PI * metres.max(1.0) * hz / LIGHT)
}

/// Returns the distance in space from ground distance and height difference, all in metres.
fn space(ground: f64, height: f64) -> f64 {
    (ground * ground + height * height).sqrt()
}

/// The coefficients of TR 38.901 for cells in a city: UMi and UMa have the same formulas (Tables 7.4.1-1 and 7.4.2-1).
///
/// Heights and ground distances are in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urban {
    /// Loss in dB with line of sight, at 1 m and 1 GHz.
    los_base: f64,
    /// Its increase in dB per decade of distance up to the break point.
    los_slope: f64,
    /// The decrease in dB of the loss beyond the break point, per decade of the break point's distance squared.
    break_slope: f64,
    /// Loss in dB without line of sight, at 1 m and 1 GHz.
    nlos_base: f64,
    /// Its increase in dB per decade of distance.
    nlos_slope: f64,
    /// Its increase in dB per decade of frequency.
    nlos_frequency: f64,
    /// Its decrease in dB per metre of the UE's height above 1.5 m.
    nlos_height: f64,
    /// Decay distance of the line-of-sight probability in metres.
    sight_m: f64,
}

impl Urban {
    /// UMi street canyon.
    pub const MICRO: Urban = Urban {
        los_base: 32.4,
        los_slope: 21.0,
        break_slope: 9.5,
        nlos_base: 22.4,
        nlos_slope: 35.3,
        nlos_frequency: 21.3,
        nlos_height: 0.3,
        sight_m: 36.0,
    };
    /// UMa.
    pub const MACRO: Urban = Urban {
        los_base: 28.0,
        los_slope: 22.0,
        break_slope: 9.0,
        nlos_base: 13.54,
        nlos_slope: 39.08,
        nlos_frequency: 20.0,
        nlos_height: 0.6,
        sight_m: 63.0,
    };

    /// Returns the ground distance of the break point, from which the ground reflection increases the loss. Table
    /// 7.4.1-1, note 1.
    pub fn break_m(site_height: f64, ue_height: f64, hz: f64) -> f64 {
        let [site, ue] = [site_height, ue_height].map(|height| height.max(URBAN_LEAST_M) - EFFECTIVE_M);
        4.0 * site * ue * hz / LIGHT
    }

    /// Returns the loss in dB with line of sight.
    pub fn los_db(&self, ground: f64, site_height: f64, ue_height: f64, hz: f64) -> f64 {
        self.los_of(ground, &Logarithms::new(site_height, ue_height, hz))
    }

    /// Returns the loss in dB without line of sight.
    pub fn nlos_db(&self, ground: f64, site_height: f64, ue_height: f64, hz: f64) -> f64 {
        self.nlos_of(ground, &Logarithms::new(site_height, ue_height, hz))
    }

    fn los_of(&self, ground: f64, known: &Logarithms) -> f64 {
        let ground = ground.max(LEAST_M);
        self.los_over(ground, libm::log10(known.space(ground)), known)
    }

    fn nlos_of(&self, ground: f64, known: &Logarithms) -> f64 {
        let ground = ground.max(LEAST_M);
        let space = libm::log10(known.space(ground));
        let hidden = self.nlos_base + self.nlos_slope * space + self.nlos_frequency * known.ghz
            - self.nlos_height * (known.ue_height.max(URBAN_LEAST_M) - 1.5);
        hidden.max(self.los_over(ground, space, known))
    }

    /// Returns the loss in dB with line of sight at a ground distance of at least [`LEAST_M`], from the decimal logarithm
    /// `space` of the distance in space.
    fn los_over(&self, ground: f64, space: f64, known: &Logarithms) -> f64 {
        let near = self.los_base + 20.0 * known.ghz;
        if ground <= known.break_m {
            near + self.los_slope * space
        } else {
            near + 40.0 * space - self.break_slope * known.break_space
        }
    }

    /// Returns the probability of line of sight for a UE below 13 m. Table 7.4.2-1.
    pub fn sight_probability(&self, ground: f64) -> f64 {
        if ground <= 18.0 {
            return 1.0;
        }
        let near = 18.0 / ground;
        near + libm::exp(-ground / self.sight_m) * (1.0 - near)
    }

    /// Returns a bound of the probability of line of sight.
    #[inline]
    fn sight_bound(&self, ground: f64) -> f64 {
        /// More than `exp(-n)`.
        const DECAY: [f64; 8] = [1.0, 0.37, 0.14, 0.05, 0.02, 0.007, 0.003, 0.001];
        18.0 / ground + DECAY[((ground / self.sight_m) as usize).min(DECAY.len() - 1)]
    }
}

/// What [`Urban`]'s losses depend on apart from the distance, for one pair of heights and a frequency.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logarithms {
    site_height: f64,
    ue_height: f64,
    hz: f64,
    /// Decimal logarithm of the frequency in GHz.
    ghz: f64,
    /// Ground distance of the break point.
    break_m: f64,
    /// Decimal logarithm of the square of its distance in space.
    break_space: f64,
}

impl Logarithms {
    fn new(site_height: f64, ue_height: f64, hz: f64) -> Logarithms {
        let break_m = Urban::break_m(site_height, ue_height, hz);
        let height = site_height - ue_height;
        let break_space = libm::log10(break_m * break_m + height * height);
        Logarithms { site_height, ue_height, hz, ghz: libm::log10(hz / 1e9), break_m, break_space }
    }

    /// Returns those in `known`, which are computed if they are for other heights or another frequency.
    #[inline]
    fn of(known: &mut Option<Logarithms>, site_height: f64, ue_height: f64, hz: f64) -> &Logarithms {
        let key = |known: &Logarithms| (known.site_height, known.ue_height, known.hz);
        if known.as_ref().map(key) != Some((site_height, ue_height, hz)) {
            *known = None;
        }
        known.get_or_insert_with(|| Logarithms::new(site_height, ue_height, hz))
    }

    /// Returns the distance in space for a ground distance.
    fn space(&self, ground: f64) -> f64 {
        space(ground, self.site_height - self.ue_height)
    }
}

/// Returns the ground distance in metres from which RMa's loss grows with the fourth power. TR 38.901 Table 7.4.1-1,
/// note 5.
pub fn rma_break_m(site_height: f64, ue_height: f64, hz: f64) -> f64 {
    let [site, ue] = RURAL_LEAST_M;
    2.0 * core::f64::consts::PI * site_height.max(site) * ue_height.max(ue) * hz / LIGHT
}

/// Returns the RMa loss in dB with line of sight, at a ground distance of `ground` metres, among buildings `building`
/// metres high.
pub fn rma_los_db(ground: f64, site_height: f64, ue_height: f64, hz: f64, building: f64) -> f64 {
    let near = |metres: f64| {
        let clutter = libm::pow(building, 1.72);
        20.0 * libm::log10(40.0 * core::f64::consts::PI * metres * (hz / 1e9) / 3.0)
            + (0.03 * clutter).min(10.0) * libm::log10(metres)
            - (0.044 * clutter).min(14.77)
            + 0.002 * libm::log10(building) * metres
    };
    let ground = ground.max(LEAST_M);
    let space = libm::hypot(ground, site_height - ue_height);
    let edge = rma_break_m(site_height, ue_height, hz);
    if ground <= edge { near(space) } else { near(edge) + 40.0 * libm::log10(space / edge) }
}

/// Returns the RMa loss in dB without line of sight, at a ground distance of `ground` metres, among buildings
/// `building` metres high and streets `street` metres wide.
pub fn rma_nlos_db(ground: f64, site_height: f64, ue_height: f64, hz: f64, building: f64, street: f64) -> f64 {
    let space = space(ground.max(LEAST_M), site_height - ue_height);
    let (site, ue) = (site_height.max(RURAL_LEAST_M[0]), ue_height.max(RURAL_LEAST_M[1]));
    let over = building / site;
    let height = libm::log10(11.75 * ue);
    let hidden = 161.04 - 7.1 * libm::log10(street) + 7.5 * libm::log10(building)
        - (24.37 - 3.7 * over * over) * libm::log10(site)
        + (43.42 - 3.1 * libm::log10(site)) * (libm::log10(space) - 3.0)
        + 20.0 * libm::log10(hz / 1e9)
        - (3.2 * height * height - 4.97);
    hidden.max(rma_los_db(ground, site_height, ue_height, hz, building))
}

/// Returns the InH loss in dB with line of sight, at a distance in space of `metres`. TR 38.901 Table 7.4.1-1.
pub fn inh_los_db(metres: f64, hz: f64) -> f64 {
    32.4 + 17.3 * libm::log10(metres.max(INDOOR_LEAST_M)) + 20.0 * libm::log10(hz / 1e9)
}

/// Returns the InH loss in dB without line of sight, at a distance in space of `metres`. TR 38.901 Table 7.4.1-1.
pub fn inh_nlos_db(metres: f64, hz: f64) -> f64 {
    let hidden = 17.3 + 38.3 * libm::log10(metres.max(INDOOR_LEAST_M)) + 24.9 * libm::log10(hz / 1e9);
    hidden.max(inh_los_db(metres, hz))
}

impl Office {
    /// Returns the probability of line of sight at a ground distance of `ground` metres. TR 38.901 Table 7.4.2-1.
    pub fn sight_probability(self, ground: f64) -> f64 {
        match self {
            Office::Mixed if ground <= 1.2 => 1.0,
            Office::Mixed if ground < 6.5 => libm::exp(-(ground - 1.2) / 4.7),
            Office::Mixed => 0.32 * libm::exp(-(ground - 6.5) / 32.6),
            Office::Open if ground <= 5.0 => 1.0,
            Office::Open if ground <= 49.0 => libm::exp(-(ground - 5.0) / 70.8),
            Office::Open => 0.54 * libm::exp(-(ground - 49.0) / 211.7),
        }
    }
}

/// Returns the COST 231-Hata loss in dB at a ground distance of `ground` metres.
pub fn cost231_hata_db(ground: f64, site_height: f64, ue_height: f64, hz: f64, metropolitan: bool) -> f64 {
    let (mhz, km) = (libm::log10(hz / 1e6), libm::log10(ground.max(LEAST_M) / 1e3));
    let mast = libm::log10(site_height.max(HATA_LEAST_M));
    let ue = (1.1 * mhz - 0.7) * ue_height - (1.56 * mhz - 0.8);
    let city = if metropolitan { 3.0 } else { 0.0 };
    46.3 + 33.9 * mhz - 13.82 * mast - ue + (44.9 - 6.55 * mast) * km + city
}

/// Returns the probability of line of sight to an RMa cell at a distance of `ground` metres. TR 38.901 Table 7.4.2-1.
pub fn rma_sight_probability(ground: f64) -> f64 {
    libm::exp(-(ground - 10.0).max(0.0) / 1000.0)
}

/// A site's antenna.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Antenna {
    /// The same gain in all directions.
    Isotropic {
        /// In dBi.
        gain_db: f64,
    },
    /// A sector with a parabolic pattern.
    Sector {
        /// In dBi, at boresight.
        gain_db: f64,
        /// Boresight direction, in degrees counter-clockwise from east.
        azimuth_deg: f64,
        /// The 3 dB beamwidth in degrees.
        beamwidth_deg: f64,
        /// Maximum attenuation in dB.
        front_to_back_db: f64,
    },
    /// An array, which forms beams.
    Array(Array),
}

impl Default for Antenna {
    fn default() -> Antenna {
        Antenna::Isotropic { gain_db: 0.0 }
    }
}

impl Antenna {
    /// Returns a sector of a three-sector site: 65 degrees, 20 dB, 15 dBi. TR 36.942 4.2.1.
    pub const fn sector(azimuth_deg: f64) -> Antenna {
        Antenna::Sector { gain_db: 15.0, azimuth_deg, beamwidth_deg: 65.0, front_to_back_db: 20.0 }
    }

    /// Returns the gain in dBi of the antenna at `site` towards `ue`; of an array, that without a beam
    /// ([`Array::mean_gain_db`]).
    pub fn gain_db(&self, site: Position, ue: Position) -> f64 {
        self.gain_along_db(site, ue, || bearing_deg(site, ue))
    }

    /// Returns the same, with a [`bearing_deg`] that is computed if it matters.
    #[inline]
    pub(crate) fn gain_along_db(&self, site: Position, ue: Position, bearing_deg: impl FnOnce() -> f64) -> f64 {
        match *self {
            Antenna::Isotropic { gain_db } => gain_db,
            Antenna::Sector { gain_db, azimuth_deg, beamwidth_deg, front_to_back_db } => {
                let off = half_turn(bearing_deg() - azimuth_deg) / beamwidth_deg;
                gain_db - (12.0 * off * off).min(front_to_back_db)
            }
            Antenna::Array(array) => array.mean_gain_db(direction(site, ue), 0.0),
        }
    }
}

/// Returns the direction from `site` to `ue` over the ground, in degrees counter-clockwise from east.
pub(crate) fn bearing_deg(site: Position, ue: Position) -> f64 {
    libm::atan2(ue.y - site.y, ue.x - site.x).to_degrees()
}

/// Returns an angle in degrees as one of at most half a turn; exact.
#[inline]
fn half_turn(degrees: f64) -> f64 {
    match degrees {
        -180.0..=180.0 => degrees,
        180.0..540.0 => degrees - 360.0,
        -540.0..-180.0 => degrees + 360.0,
        _ => libm::remainder(degrees, 360.0),
    }
}

/// Returns the noise in dBm over `hz` in a receiver with a noise figure in dB.
pub fn noise_dbm(hz: f64, noise_figure_db: f64) -> f64 {
    THERMAL_DBM_HZ + crate::decibels(hz) + noise_figure_db
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn free_space_loss_is_the_formulas() {
        // Wavelength 0.1414115 m at 2.12 GHz: 20 log10(4 pi 100 / 0.1414115) = 20 log10(8886.4) = 78.975 dB.
        close(friis_db(100.0, 2.12e9), 78.975, 5e-3);
        // 20 dB a decade of distance and of frequency.
        close(friis_db(1000.0, 2.12e9) - friis_db(100.0, 2.12e9), 20.0, 1e-9);
        close(friis_db(100.0, 2.12e10) - friis_db(100.0, 2.12e9), 20.0, 1e-9);
        // No loss becomes a gain next to the antenna.
        assert_eq!(friis_db(0.0, 2.12e9), friis_db(1.0, 2.12e9));
    }

    #[test]
    fn log_distance_loss_is_the_formulas() {
        let model = PathLoss::LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: 46.67 };
        let at = |x| model.loss_db(Position::default(), Position::new(x, 0.0, 0.0), 2e9, true);
        close(at(1.0), 46.67, 1e-9);
        close(at(200.0), 46.67 + 30.0 * 2.301_03, 1e-3);
    }

    #[test]
    fn umi_losses_are_the_formulas() {
        // 2 GHz, 10 m and 1.5 m high, 100 m away: d3D = 100.3606 m; 20 log10 2 = 6.0206; log10 d3D = 2.0015632.
        close(Urban::MICRO.los_db(100.0, 10.0, 1.5, 2e9), 32.4 + 21.0 * 2.001_563_2 + 6.0206, 1e-3);
        // NLOS: 22.4 + 35.3 * 2.0015632 + 21.3 * 0.30103.
        close(Urban::MICRO.nlos_db(100.0, 10.0, 1.5, 2e9), 22.4 + 70.655_18 + 6.411_94, 1e-3);
        // Break point: 4 * 9 * 0.5 * 2e9 / 299792458 = 120.083 m. At 500 m, d3D = 500.0722 m, log10 = 2.6990328, and
        // 9.5 log10(120.083^2 + 8.5^2) = 9.5 * 4.1611 = 39.530.
        close(Urban::break_m(10.0, 1.5, 2e9), 120.083, 1e-3);
        close(Urban::MICRO.los_db(500.0, 10.0, 1.5, 2e9), 32.4 + 107.961_31 + 6.0206 - 39.530, 3e-3);
        // The height of a UE upstairs: 0.3 dB a metre.
        let higher = |height| 22.4 + 35.3 * libm::log10(libm::hypot(200.0, 10.0 - height)) + 21.3 * libm::log10(2.0);
        close(Urban::MICRO.nlos_db(200.0, 10.0, 4.5, 2e9), higher(4.5) - 0.9, 1e-9);
    }

    #[test]
    fn umi_loss_is_continuous_at_the_break_point() {
        for (site, ue, hz) in [(10.0, 1.5, 2e9), (10.0, 1.5, 0.7e9), (10.0, 9.0, 3.5e9), (10.0, 22.5, 2e9)] {
            let edge = Urban::break_m(site, ue, hz);
            let step = Urban::MICRO.los_db(edge * (1.0 + 1e-9), site, ue, hz) - Urban::MICRO.los_db(edge, site, ue, hz);
            // The two formulas meet exactly: 40 - 2 * 9.5 = 21.
            close(step, 0.0, 1e-6);
        }
    }

    #[test]
    fn sight_is_certain_up_to_18_m_and_continuous_there() {
        assert_eq!(Urban::MICRO.sight_probability(18.0), 1.0);
        close(Urban::MICRO.sight_probability(18.000_001), 1.0, 1e-6);
        // 18/100 + exp(-100/36) * 82/100 = 0.18 + 0.0621765 * 0.82.
        close(Urban::MICRO.sight_probability(100.0), 0.230_985, 1e-5);
    }

    #[test]
    fn a_sector_loses_3_db_at_half_its_beam_and_20_behind() {
        let (antenna, site) = (Antenna::sector(170.0), Position::new(5.0, -3.0, 30.0));
        let gain = |degrees: f64| {
            let angle = degrees.to_radians();
            antenna.gain_db(site, Position::new(5.0 + 80.0 * libm::cos(angle), -3.0 + 80.0 * libm::sin(angle), 1.5))
        };
        close(gain(170.0), 15.0, 1e-9);
        close(gain(170.0 + 32.5), 12.0, 1e-9);
        close(gain(170.0 - 32.5), 12.0, 1e-9);
        // 190 degrees is 20 degrees off, across the line at which bearings wrap: 12 * (20/65)^2 = 1.136 dB.
        close(gain(-170.0), 15.0 - 1.136_09, 1e-5);
        close(gain(-10.0), -5.0, 1e-9);
    }

    #[test]
    fn noise_of_a_resource_block_is_the_sum_of_its_decibels() {
        // 180 kHz: 52.5527 dB; noise figure 9 dB.
        close(noise_dbm(180e3, 9.0), -112.447, 1e-3);
    }
}
