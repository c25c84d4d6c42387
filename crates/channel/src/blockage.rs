//! Blockage by the user's body, other people and vehicles: a loss towards a direction.
//!
//! Source: 3GPP TR 38.901 7.6.4.1 (model A): Tables 7.6.4.1-1 (self-blocking), 7.6.4.1-2 (other blockers), 7.6.4.1-4
//! (correlation distance) and equations 7.6-22 to 7.6-27.
//!
//! A blocker covers an angular region. The centres of all regions but the user's own move with the distance travelled by
//! the UE and with time: their correlation is `exp(-(x / d + t v / d))`, with the correlation distance `d` and the
//! blockers' speed `v`.
//!
//! Deviations:
//! 1. The standard attenuates each cluster by its direction of arrival; here the whole link is attenuated by its
//!    geometric direction. That is exact for the line of sight, and too much for a channel with many directions.
//! 2. A region's centre is uniform over the circle and correlated, by way of a normal process; its correlation is up to
//!    2 % below the standard's, and it does not pass the direction at which angles wrap.
//! 3. A region's width is drawn once for each UE.
//! 4. The correlation distance is that of the surroundings, also while the UE is in a building.
//! 5. Model B (7.6.4.2, blockers with positions) is left out: the sizes and numbers of its blockers (Table 7.6.4.2-5)
//!    could not be taken from the standard's text.

use core::f64::consts::PI;

use rand_core::Rng;

use crate::pathloss::LIGHT;
use crate::shadowing::Process;
use crate::{Random, uniform};

/// The blockage of a UE's links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blockage {
    /// The sizes of the blockers.
    pub surroundings: Surroundings,
    /// How the user holds the UE; `None` if the user's body does not block.
    pub grip: Option<Grip>,
    /// The number of other blockers, at most 255.
    pub blockers: u8,
    /// The speed of the other blockers in metres per second.
    pub speed: f64,
}

impl Default for Blockage {
    /// Portrait, four blockers at 3 km/h outdoors.
    fn default() -> Blockage {
        Blockage { surroundings: Surroundings::Outdoor, grip: Some(Grip::Portrait), blockers: 4, speed: 3.0 / 3.6 }
    }
}

/// Where blockers are. TR 38.901 Table 7.6.4.1-2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surroundings {
    /// UMi, UMa and RMa: vehicles and people 10 m away.
    #[default]
    Outdoor,
    /// InH: people 2 m away.
    Indoor,
}

/// How the user holds the UE. TR 38.901 Table 7.6.4.1-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grip {
    /// Upright.
    #[default]
    Portrait,
    /// Sideways.
    Landscape,
}

/// An angular region in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Region {
    /// Azimuth of its centre.
    azimuth: f64,
    /// Its width in azimuth.
    width: f64,
    /// Zenith angle of its centre.
    zenith: f64,
    /// Its height.
    height: f64,
}

/// The loss in dB within the region of the user's body. TR 38.901 7.6.4.1.
const BODY_DB: f64 = 30.0;

impl Grip {
    /// The region of the user's body in the UE's coordinates.
    const fn region(self) -> Region {
        match self {
            Grip::Portrait => Region { azimuth: 260.0, width: 120.0, zenith: 100.0, height: 80.0 },
            Grip::Landscape => Region { azimuth: 40.0, width: 160.0, zenith: 110.0, height: 75.0 },
        }
    }
}

impl Surroundings {
    /// Least and greatest width of a blocker in degrees.
    const fn widths(self) -> [f64; 2] {
        match self {
            Surroundings::Outdoor => [5.0, 15.0],
            Surroundings::Indoor => [15.0, 45.0],
        }
    }

    /// Least and greatest height of a blocker in degrees.
    const fn heights(self) -> [f64; 2] {
        match self {
            Surroundings::Outdoor => [5.0, 5.0],
            Surroundings::Indoor => [5.0, 15.0],
        }
    }

    /// Distance between UE and blocker in metres.
    const fn distance_m(self) -> f64 {
        match self {
            Surroundings::Outdoor => 10.0,
            Surroundings::Indoor => 2.0,
        }
    }

    /// Correlation distance in metres. TR 38.901 Table 7.6.4.1-4.
    const fn correlation_m(self) -> f64 {
        match self {
            Surroundings::Outdoor => 10.0,
            Surroundings::Indoor => 5.0,
        }
    }
}

/// Zenith angle of the centres of blockers other than the user, in degrees. TR 38.901 Table 7.6.4.1-2.
const LEVEL: f64 = 90.0;

/// The blockers around one UE.
///
/// Its results depend on distance and time only, and not on earlier calls.
#[derive(Clone, Debug)]
pub struct Blockers {
    config: Blockage,
    others: Box<[Other]>,
    /// Sum of distances for which the centres were computed.
    at: f64,
}

/// A blocker other than the user.
#[derive(Clone, Debug)]
struct Other {
    /// Determines the azimuth of its centre.
    process: Process,
    region: Region,
}

impl Blockers {
    /// Draws the blockers of a UE.
    pub fn new(config: Blockage, random: &mut Random) -> Blockers {
        let surroundings = config.surroundings;
        let mut draw = |[least, greatest]: [f64; 2]| least + (greatest - least) * uniform(random);
        let sizes: Vec<[f64; 2]> =
            (0..config.blockers).map(|_| [draw(surroundings.widths()), draw(surroundings.heights())]).collect();
        let others = sizes.into_iter().map(|[width, height]| Other {
            process: Process::new(surroundings.correlation_m(), random.next_u64()),
            region: Region { azimuth: 0.0, width, zenith: LEVEL, height },
        });
        Blockers { config, others: others.collect(), at: f64::NAN }
    }

    /// Returns the loss in dB of a wave at a carrier of `hz` that arrives from an azimuth (counter-clockwise from east)
    /// and a zenith angle in degrees, after the UE has travelled so many metres and time has gone on for so many seconds.
    /// `heading` is the direction of the UE's x-axis in degrees.
    pub fn loss_db(&mut self, [azimuth, zenith]: [f64; 2], heading: f64, hz: f64, travelled: f64, seconds: f64) -> f64 {
        let at = travelled + self.config.speed * seconds;
        if self.at != at {
            self.at = at;
            for other in &mut self.others {
                other.region.azimuth = 360.0 * share_below(other.process.at(at));
            }
        }
        let body = self.config.grip.map_or(0.0, |grip| body_db(grip.region(), azimuth - heading, zenith));
        let distance = self.config.surroundings.distance_m();
        let others = self.others.iter().map(|other| screen_db(other.region, azimuth, zenith, distance, hz));
        body + others.sum::<f64>()
    }
}

/// Returns the share of a normal distribution that is below a number of standard deviations.
fn share_below(deviations: f64) -> f64 {
    0.5 * libm::erfc(-deviations * core::f64::consts::FRAC_1_SQRT_2)
}

/// Returns the loss in dB through the region of the user's body.
fn body_db(region: Region, azimuth: f64, zenith: f64) -> f64 {
    let aside = libm::remainder(azimuth - region.azimuth, 360.0).abs();
    let above = (zenith - region.zenith).abs();
    if aside < region.width / 2.0 && above < region.height / 2.0 { BODY_DB } else { 0.0 }
}

/// Returns the loss in dB behind a screen `distance` metres away that covers a region: four knife edges. TR 38.901
/// 7.6-22.
fn screen_db(region: Region, azimuth: f64, zenith: f64, distance: f64, hz: f64) -> f64 {
    let aside = libm::remainder(azimuth - region.azimuth, 360.0);
    let above = zenith - region.zenith;
    if aside.abs() >= region.width || above.abs() >= region.height {
        return 0.0;
    }
    // 7.6-23 to 7.6-27: an edge counts negatively if the direction is beyond it.
    let pair = |off: f64, width: f64| {
        let edge = |degrees: f64, beyond: bool| {
            let detour = distance * (1.0 / libm::cos(degrees.to_radians()) - 1.0);
            let value = libm::atan(PI / 2.0 * libm::sqrt(PI * detour * hz / LIGHT)) / PI;
            if beyond { -value } else { value }
        };
        edge(off - width / 2.0, off > width / 2.0) + edge(off + width / 2.0, off <= -width / 2.0)
    };
    -20.0 * libm::log10(1.0 - pair(aside, region.width) * pair(above, region.height))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn constants_are_those_of_the_tables() {
        let text = include_str!("../data/nr_38901_7.6.4.1_blockage_a.csv");
        let row = |item: &str| {
            let line = text.lines().find(|line| line.contains(item)).unwrap();
            // `7.6.4.1-2,"non-self, K=4, InH","U(0,360)","U(15,45)",90,"U(5,15)",2,...`: all numbers after the item.
            let rest = &line[line.find(item).unwrap() + item.len()..];
            let numbers = rest.split(|c: char| !(c.is_ascii_digit() || c == '.'));
            numbers.filter(|field| !field.is_empty()).map_while(|field| field.parse().ok()).collect::<Vec<f64>>()
        };
        for (item, grip) in [("portrait", Grip::Portrait), ("landscape", Grip::Landscape)] {
            let region = grip.region();
            assert_eq!(row(item)[..5], [region.azimuth, region.width, region.zenith, region.height, BODY_DB], "{item}");
        }
        let indoor = Surroundings::Indoor;
        let ([a, b], [c, d]) = (indoor.widths(), indoor.heights());
        assert_eq!(row("K=4, InH")[..8], [0.0, 360.0, a, b, LEVEL, c, d, indoor.distance_m()]);
        let outdoor = Surroundings::Outdoor;
        let ([a, b], [c, _]) = (outdoor.widths(), outdoor.heights());
        assert_eq!(row("K=4, UMi UMa RMa")[..7], [0.0, 360.0, a, b, LEVEL, c, outdoor.distance_m()]);
        assert!(text.contains("UMi/UMa/RMa LOS and NLOS 10; O2I 5; InH 5"));
        assert_eq!((outdoor.correlation_m(), indoor.correlation_m()), (10.0, 5.0));
        assert_eq!(Blockage::default().blockers, 4);
    }

    #[test]
    fn a_screen_loses_what_its_four_edges_let_past() {
        // 28 GHz, 10 m, 10 by 5 degrees, in its centre: F(5) = atan(pi/2 sqrt(pi/0.0107069 * 10 * 0.00381984)) / pi =
        // 0.440185, F(2.5) = 0.384193: -20 log10(1 - 0.880370 * 0.768386) = 9.8015 dB.
        let region = Region { azimuth: 40.0, width: 10.0, zenith: 90.0, height: 5.0 };
        let loss = |aside: f64, above: f64, hz| screen_db(region, 40.0 + aside, 90.0 + above, 10.0, hz);
        close(loss(0.0, 0.0, 28e9), 9.8015, 1e-4);
        // An eighth of the frequency.
        close(loss(0.0, 0.0, 3.5e9), 3.4365, 1e-4);
        // At an edge its own term vanishes and F(10) = 0.469970 remains.
        close(loss(5.0, 0.0, 28e9), 3.8916, 1e-4);
        close(loss(-5.0, 0.0, 28e9), 3.8916, 1e-4);
        // Beyond it the terms differ in sign.
        close(loss(7.5, 0.0, 28e9), 0.6357, 1e-4);
        close(loss(-7.5, 0.0, 28e9), 0.6357, 1e-4);
        close(loss(0.0, -4.9, 28e9), 0.6311, 1e-4);
        close(loss(9.9, 0.0, 28e9), 0.2779, 1e-4);
        assert_eq!((loss(10.0, 0.0, 28e9), loss(0.0, 5.0, 28e9), loss(180.0, 0.0, 28e9)), (0.0, 0.0, 0.0));
        // Across the direction at which angles wrap.
        close(screen_db(Region { azimuth: 359.0, ..region }, 4.0, 90.0, 10.0, 28e9), 3.8916, 1e-4);
        // Indoors, 30 by 10 degrees and 2 m away.
        let region = Region { azimuth: 0.0, width: 30.0, zenith: 90.0, height: 10.0 };
        close(screen_db(region, 0.0, 90.0, 2.0, 28e9), 9.8483, 1e-4);
        close(screen_db(region, 0.0, 90.0, 2.0, 60e9), 12.7762, 1e-4);
        close(screen_db(region, 20.0, 93.0, 2.0, 28e9), 0.6533, 1e-4);
    }

    #[test]
    fn the_users_body_turns_with_the_ue() {
        let config = Blockage { blockers: 0, ..Blockage::default() };
        let mut blockers = Blockers::new(config, &mut Random::seed_from_u64(1));
        let mut loss = |azimuth, zenith, heading| blockers.loss_db([azimuth, zenith], heading, 28e9, 0.0, 0.0);
        // 200 to 320 degrees, 60 to 140 degrees.
        assert_eq!((loss(200.1, 90.0, 0.0), loss(199.9, 90.0, 0.0)), (30.0, 0.0));
        assert_eq!((loss(319.9, 90.0, 0.0), loss(320.1, 90.0, 0.0)), (30.0, 0.0));
        assert_eq!((loss(260.0, 60.1, 0.0), loss(260.0, 59.9, 0.0)), (30.0, 0.0));
        assert_eq!((loss(-100.0, 139.9, 0.0), loss(-100.0, 140.1, 0.0)), (30.0, 0.0));
        // Turned by 90 degrees: -70 to 50.
        assert_eq!((loss(49.0, 90.0, 90.0), loss(51.0, 90.0, 90.0), loss(260.0, 90.0, 90.0)), (30.0, 0.0, 0.0));
        let config = Blockage { blockers: 0, grip: Some(Grip::Landscape), ..Blockage::default() };
        let mut blockers = Blockers::new(config, &mut Random::seed_from_u64(1));
        let mut loss = |azimuth| blockers.loss_db([azimuth, 110.0], 0.0, 28e9, 0.0, 0.0);
        assert_eq!((loss(-39.0), loss(-41.0), loss(119.0), loss(121.0)), (30.0, 0.0, 30.0, 0.0));
    }

    #[test]
    fn blockers_stand_in_the_way_as_often_as_they_are_wide() {
        // A region of 10 degrees on average, four times: a direction on their level is in one with a probability of
        // 1 - (1 - 10/360)^4 = 0.1066.
        let config = Blockage { grip: None, ..Blockage::default() };
        let n = 20_000;
        let blocked = |config: Blockage, least_db: f64| {
            let hit = |seed| {
                let mut blockers = Blockers::new(config, &mut Random::seed_from_u64(seed));
                blockers.loss_db([123.0, 90.0], 0.0, 28e9, 0.0, 0.0) > least_db
            };
            (0..n).filter(|&seed| hit(seed)).count() as f64 / n as f64
        };
        // Any loss reaches twice as far: 1 - (1 - 20/360)^4 = 0.2044.
        close(blocked(config, 0.0), 0.2044, 0.012);
        // 30 degrees on average indoors: 1 - (1 - 60/360)^4 = 0.5177.
        close(blocked(Blockage { surroundings: Surroundings::Indoor, ..config }, 0.0), 0.5177, 0.015);
        // At an edge of the narrowest outdoor screen, 3.7 dB are lost at 28 GHz, and inside it more.
        close(blocked(config, 3.9), 0.1066, 0.012);
    }

    #[test]
    fn blockers_are_correlated_over_distance_and_time() {
        // Deviation 2: a normal process of correlation r is (6 / pi) asin(r / 2) as a uniform one.
        let config = Blockage { grip: None, blockers: 1, speed: 2.0, ..Blockage::default() };
        for (metres, seconds) in [(5.0, 0.0), (0.0, 2.5), (5.0, 2.5), (20.0, 0.0)] {
            let (mut product, mut squares) = (0.0, 0.0);
            for seed in 0..20_000 {
                let mut blockers = Blockers::new(config, &mut Random::seed_from_u64(seed));
                let mut centre = |metres, seconds| {
                    blockers.loss_db([0.0, 90.0], 0.0, 28e9, metres, seconds);
                    blockers.others[0].region.azimuth / 360.0 - 0.5
                };
                let (a, b) = (centre(3.0, 1.0), centre(3.0 + metres, 1.0 + seconds));
                product += a * b;
                squares += a * a;
            }
            // A uniform distribution has a variance of 1/12.
            close(squares / 20_000.0, 1.0 / 12.0, 0.002);
            let normal = libm::exp(-(metres + 2.0 * seconds) / 10.0);
            close(product / squares, 6.0 / PI * libm::asin(normal / 2.0), 0.03);
            close(product / squares, normal, 0.045);
        }
    }

    #[test]
    fn blockage_depends_on_the_place_and_time_and_not_on_those_asked_before() {
        let new = || Blockers::new(Blockage::default(), &mut Random::seed_from_u64(2));
        let (mut often, mut seldom) = (new(), new());
        for n in 0..5000 {
            let (metres, seconds) = (f64::from(n) * 0.02, f64::from(n) * 0.013);
            let loss = often.loss_db([80.0, 88.0], 30.0, 28e9, metres, seconds);
            if n % 613 == 0 {
                assert_eq!(loss, seldom.loss_db([80.0, 88.0], 30.0, 28e9, metres, seconds));
            }
        }
    }
}
