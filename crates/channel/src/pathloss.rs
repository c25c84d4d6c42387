//! Mean path loss, antennas and noise.
//!
//! Sources: H. T. Friis, "A Note on a Simple Transmission Formula" (Proc. IRE 34(5), 1946); 3GPP TR 38.901 Tables
//! 7.4.1-1 and 7.4.2-1 (UMi street canyon, UMa, RMa); COST Action 231, "Digital mobile radio towards future generation
//! systems", final report, 4.4.1 (Hata's model from 1.5 to 2 GHz); 3GPP TR 36.942 4.2.1 (the sector's antenna).
//!
//! Deviations:
//! 1. Friis and log-distance hold from 1 m on, and TR 38.901 from its 10 m on: closer than that, the loss is the one
//!    there. Beyond its 5 km (RMa in sight: 10 km), TR 38.901 goes on with the same formula. COST 231 goes on with its
//!    formula on both sides of its 1 to 20 km, but is never less than free space.
//! 2. A UE indoors or in a car loses nothing more (no O2I).
//! 3. A sector's antenna has its horizontal pattern only, without downtilt.
//! 4. UMa's environment is 1 m high, as it is for UEs below 13 m; for higher ones TR 38.901 draws it.

use crate::mobility::Position;

/// Speed of light in metres per second.
pub const LIGHT: f64 = 299_792_458.0;

/// Thermal noise in dBm per Hz at 290 K.
pub const THERMAL_DBM_HZ: f64 = -174.0;

/// The height in metres of the street's traffic, which the effective antenna heights leave out. TR 38.901 Table 7.4.1-1.
const EFFECTIVE_M: f64 = 1.0;

/// The least distance in metres along the ground for which TR 38.901 holds.
const LEAST_M: f64 = 10.0;

/// How the mean loss grows with distance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PathLoss {
    /// Free space.
    #[default]
    Friis,
    /// `reference_db` at `reference_m` metres, and ten times `exponent` dB more for each decade of distance.
    LogDistance {
        /// Decay with distance; 2 in free space.
        exponent: f64,
        /// The distance in metres at which the loss is known.
        reference_m: f64,
        /// The loss there, in dB.
        reference_db: f64,
    },
    /// TR 38.901 UMi street canyon.
    UmiStreetCanyon(Sight),
    /// TR 38.901 UMa: antennas above the roofs of a city.
    UrbanMacro(Sight),
    /// TR 38.901 RMa: open country and small towns.
    RuralMacro {
        /// Whether the UE sees the cell.
        sight: Sight,
        /// Mean height of buildings in metres, 5 to 50.
        building_m: f64,
        /// Mean width of streets in metres, 5 to 50.
        street_m: f64,
    },
    /// COST 231's extension of Hata's model, for masts above the roofs.
    Cost231Hata {
        /// The centre of a metropolis: 3 dB more than in medium cities and suburbs.
        metropolitan: bool,
    },
    /// A given loss in dB everywhere.
    Fixed(f64),
}

/// Whether the UE sees the cell's antenna.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// It does (LOS).
    Los,
    /// It does not (NLOS).
    Nlos,
    /// It does with the probability of TR 38.901, correlated over 50 m of its way.
    #[default]
    Random,
}

impl PathLoss {
    /// The loss in dB from `site` to `ue` at a carrier of `hz`. `sees` says whether the UE sees the cell, where that
    /// matters.
    pub fn loss_db(&self, site: Position, ue: Position, hz: f64, sees: bool) -> f64 {
        match *self {
            PathLoss::Friis => friis_db(site.distance(ue), hz),
            PathLoss::LogDistance { exponent, reference_m, reference_db } => {
                reference_db + 10.0 * exponent * libm::log10(site.distance(ue).max(1.0) / reference_m)
            }
            PathLoss::UmiStreetCanyon(_) => Urban::MICRO.loss_db(site.ground_distance(ue), site.z, ue.z, hz, sees),
            PathLoss::UrbanMacro(_) => Urban::MACRO.loss_db(site.ground_distance(ue), site.z, ue.z, hz, sees),
            PathLoss::RuralMacro { building_m, .. } if sees => {
                rma_los_db(site.ground_distance(ue), site.z, ue.z, hz, building_m)
            }
            PathLoss::RuralMacro { building_m, street_m, .. } => {
                rma_nlos_db(site.ground_distance(ue), site.z, ue.z, hz, building_m, street_m)
            }
            PathLoss::Cost231Hata { metropolitan } => {
                let hata = cost231_hata_db(site.ground_distance(ue), site.z, ue.z, hz, metropolitan);
                hata.max(friis_db(site.distance(ue), hz))
            }
            PathLoss::Fixed(loss) => loss,
        }
    }

    /// Whether the UE sees the cell. Models that know no sight take it for given.
    pub fn sight(&self) -> Sight {
        match *self {
            PathLoss::UmiStreetCanyon(sight) | PathLoss::UrbanMacro(sight) | PathLoss::RuralMacro { sight, .. } => {
                sight
            }
            _ => Sight::Los,
        }
    }

    /// The probability that a UE `ground` metres away along the ground sees the cell. TR 38.901 Table 7.4.2-1.
    pub fn sight_probability(&self, ground: f64) -> f64 {
        match self {
            PathLoss::UmiStreetCanyon(_) => Urban::MICRO.sight_probability(ground),
            PathLoss::UrbanMacro(_) => Urban::MACRO.sight_probability(ground),
            PathLoss::RuralMacro { .. } => rma_sight_probability(ground),
            _ => 1.0,
        }
    }

    /// Distance in metres over which the sight of a cell is correlated. TR 38.901 Table 7.6.3.1-2.
    pub(crate) fn sight_correlation_m(&self) -> f64 {
        if matches!(self, PathLoss::RuralMacro { .. }) { 60.0 } else { 50.0 }
    }

    /// Whether `ue` is so far from `site` that a sight of it is worth less, where shadowing depends on it.
    pub(crate) fn is_beyond_break(&self, site: Position, ue: Position, hz: f64) -> bool {
        matches!(self, PathLoss::RuralMacro { .. }) && site.ground_distance(ue) > rma_break_m(site.z, ue.z, hz)
    }
}

/// Free-space loss in dB over `metres` at `hz`.
pub fn friis_db(metres: f64, hz: f64) -> f64 {
    20.0 * libm::log10(4.0 * core::f64::consts::PI * metres.max(1.0) * hz / LIGHT)
}

/// The distance in space from that along the ground and from the difference in height, all in metres.
fn space(ground: f64, height: f64) -> f64 {
    libm::sqrt(ground * ground + height * height)
}

/// The coefficients of TR 38.901 for cells in a city: UMi and UMa have the same formulas (Tables 7.4.1-1 and 7.4.2-1).
///
/// Heights and distances along the ground are in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Urban {
    /// Loss in dB in sight, at 1 m and 1 GHz.
    los_base: f64,
    /// Its growth in dB for each decade of distance up to the break point.
    los_slope: f64,
    /// The decrease in dB of the loss beyond the break point for each decade of that point's distance, squared.
    break_slope: f64,
    /// Loss in dB out of sight, at 1 m and 1 GHz.
    nlos_base: f64,
    /// Its growth in dB for each decade of distance.
    nlos_slope: f64,
    /// Its growth in dB for each decade of frequency.
    nlos_frequency: f64,
    /// Its decrease in dB for each metre of the UE's height above 1.5 m.
    nlos_height: f64,
    /// Distance in metres over which the probability of a sight falls.
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

    /// The distance along the ground at which the ground's echo begins to take away from a sight. Table 7.4.1-1, note 1.
    pub fn break_m(site_height: f64, ue_height: f64, hz: f64) -> f64 {
        4.0 * (site_height - EFFECTIVE_M) * (ue_height - EFFECTIVE_M) * hz / LIGHT
    }

    /// The loss in dB of a UE that `sees` the cell or not.
    fn loss_db(&self, ground: f64, site_height: f64, ue_height: f64, hz: f64, sees: bool) -> f64 {
        let loss_db = if sees { Urban::los_db } else { Urban::nlos_db };
        loss_db(self, ground, site_height, ue_height, hz)
    }

    /// The loss in dB of a UE that sees the cell.
    pub fn los_db(&self, ground: f64, site_height: f64, ue_height: f64, hz: f64) -> f64 {
        let (ground, height) = (ground.max(LEAST_M), site_height - ue_height);
        let space = space(ground, height);
        let edge = Urban::break_m(site_height, ue_height, hz);
        let near = self.los_base + 20.0 * libm::log10(hz / 1e9);
        if ground <= edge {
            near + self.los_slope * libm::log10(space)
        } else {
            near + 40.0 * libm::log10(space) - self.break_slope * libm::log10(edge * edge + height * height)
        }
    }

    /// The loss in dB of a UE that does not see the cell.
    pub fn nlos_db(&self, ground: f64, site_height: f64, ue_height: f64, hz: f64) -> f64 {
        let space = space(ground.max(LEAST_M), site_height - ue_height);
        let hidden =
            self.nlos_base + self.nlos_slope * libm::log10(space) + self.nlos_frequency * libm::log10(hz / 1e9)
                - self.nlos_height * (ue_height - 1.5);
        hidden.max(self.los_db(ground, site_height, ue_height, hz))
    }

    /// The probability that a UE below 13 m sees the cell. Table 7.4.2-1.
    pub fn sight_probability(&self, ground: f64) -> f64 {
        if ground <= 18.0 {
            return 1.0;
        }
        let near = 18.0 / ground;
        near + libm::exp(-ground / self.sight_m) * (1.0 - near)
    }
}

/// The distance in metres along the ground from which on RMa's loss grows with its fourth power. TR 38.901 Table
/// 7.4.1-1, note 5.
pub fn rma_break_m(site_height: f64, ue_height: f64, hz: f64) -> f64 {
    2.0 * core::f64::consts::PI * site_height * ue_height * hz / LIGHT
}

/// RMa loss in dB of a UE that sees the cell, `ground` metres away along the ground, among buildings `building` metres
/// high.
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

/// RMa loss in dB of a UE that does not see the cell, `ground` metres away along the ground, among buildings `building`
/// metres high and streets `street` metres wide.
pub fn rma_nlos_db(ground: f64, site_height: f64, ue_height: f64, hz: f64, building: f64, street: f64) -> f64 {
    let space = space(ground.max(LEAST_M), site_height - ue_height);
    let over = building / site_height;
    let height = libm::log10(11.75 * ue_height);
    let hidden = 161.04 - 7.1 * libm::log10(street) + 7.5 * libm::log10(building)
        - (24.37 - 3.7 * over * over) * libm::log10(site_height)
        + (43.42 - 3.1 * libm::log10(site_height)) * (libm::log10(space) - 3.0)
        + 20.0 * libm::log10(hz / 1e9)
        - (3.2 * height * height - 4.97);
    hidden.max(rma_los_db(ground, site_height, ue_height, hz, building))
}

/// COST 231-Hata loss in dB, `ground` metres away along the ground.
pub fn cost231_hata_db(ground: f64, site_height: f64, ue_height: f64, hz: f64, metropolitan: bool) -> f64 {
    let (mhz, km) = (libm::log10(hz / 1e6), libm::log10(ground.max(LEAST_M) / 1e3));
    let mast = libm::log10(site_height);
    let ue = (1.1 * mhz - 0.7) * ue_height - (1.56 * mhz - 0.8);
    let city = if metropolitan { 3.0 } else { 0.0 };
    46.3 + 33.9 * mhz - 13.82 * mast - ue + (44.9 - 6.55 * mast) * km + city
}

/// The probability that a UE `ground` metres away sees an RMa cell. TR 38.901 Table 7.4.2-1.
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
        /// In dBi, straight ahead.
        gain_db: f64,
        /// Straight ahead, in degrees counter-clockwise from east.
        azimuth_deg: f64,
        /// The angle in degrees between the two directions in which 3 dB are lost.
        beamwidth_deg: f64,
        /// The most that is lost behind, in dB.
        front_to_back_db: f64,
    },
}

impl Default for Antenna {
    fn default() -> Antenna {
        Antenna::Isotropic { gain_db: 0.0 }
    }
}

impl Antenna {
    /// A sector of a site of three: 65 degrees, 20 dB, 15 dBi. TR 36.942 4.2.1.
    pub const fn sector(azimuth_deg: f64) -> Antenna {
        Antenna::Sector { gain_db: 15.0, azimuth_deg, beamwidth_deg: 65.0, front_to_back_db: 20.0 }
    }

    /// The gain in dBi from the antenna at `site` towards `ue`.
    pub fn gain_db(&self, site: Position, ue: Position) -> f64 {
        match *self {
            Antenna::Isotropic { gain_db } => gain_db,
            Antenna::Sector { gain_db, azimuth_deg, beamwidth_deg, front_to_back_db } => {
                let bearing = libm::atan2(ue.y - site.y, ue.x - site.x).to_degrees();
                let off = libm::remainder(bearing - azimuth_deg, 360.0) / beamwidth_deg;
                gain_db - (12.0 * off * off).min(front_to_back_db)
            }
        }
    }
}

/// Noise in dBm over `hz` in a receiver with a noise figure in dB.
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
