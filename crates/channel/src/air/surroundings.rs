//! What stands between a UE and the cells: buildings, walls, a car, and blockers.

use std::sync::Arc;

use rand_core::Rng;
use rand_xoshiro::rand_core::SeedableRng;
use units::Time;

use crate::antenna::{angles, direction};
use crate::blockage::{Blockage, Blockers};
use crate::buildings::{Buildings, Car, Penetration, RURAL_DEPTH_M, URBAN_DEPTH_M, Visits};
use crate::{Mobility, PathLoss, Position, Random};

/// The direction of the x-axis of a UE, to which its array and its user's body are fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Orientation {
    /// Along its movement ([`Mobility::heading_deg`]); east if it never moves.
    #[default]
    Movement,
    /// Constant, in degrees counter-clockwise from east.
    Fixed(f64),
}

impl Orientation {
    /// Returns the direction at `now` in degrees counter-clockwise from east.
    pub fn degrees(self, mobility: &Mobility, now: Time) -> f64 {
        match self {
            Orientation::Movement => mobility.heading_deg(now).unwrap_or(0.0),
            Orientation::Fixed(degrees) => degrees,
        }
    }
}

/// The configuration of [`Surroundings`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Config<'a> {
    pub(super) mobility: &'a Mobility,
    pub(super) path_loss: PathLoss,
    pub(super) buildings: Option<&'a Arc<Buildings>>,
    pub(super) penetration: Penetration,
    pub(super) car: Option<Car>,
    pub(super) blockage: Option<Blockage>,
}

/// The surroundings of one UE.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    buildings: Option<Arc<Buildings>>,
    penetration: Penetration,
    visits: Visits,
    car_db: f64,
    blockers: Option<Blockers>,
}

/// The place and time at which the surroundings are considered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) now: Time,
    pub(super) position: Position,
    pub(super) orientation_deg: f64,
    /// Metres travelled until then.
    pub(super) travelled: f64,
    /// The building around it.
    pub(super) building: Option<usize>,
}

impl Surroundings {
    pub(super) fn new(config: Config<'_>, random: &mut Random) -> Surroundings {
        // One stream for each, so that none depends on which others are configured.
        let [mut car, mut visits, mut blockers] = [(); 3].map(|()| Random::seed_from_u64(random.next_u64()));
        let Config { mobility, path_loss, buildings, penetration, .. } = config;
        let depth_m = if matches!(path_loss, PathLoss::RuralMacro { .. }) { RURAL_DEPTH_M } else { URBAN_DEPTH_M };
        Surroundings {
            buildings: buildings.cloned(),
            penetration,
            visits: buildings.map_or_else(Visits::default, |buildings| {
                Visits::new(buildings, mobility, penetration, depth_m, &mut visits)
            }),
            car_db: config.car.map_or(0.0, |model| model.draw_db(&mut car)),
            blockers: config.blockage.map(|blockage| Blockers::new(blockage, &mut blockers)),
        }
    }

    pub(super) fn has_blockers(&self) -> bool {
        self.blockers.is_some()
    }

    /// Returns the index of the building around a point.
    pub(super) fn around(&self, point: Position) -> Option<usize> {
        self.buildings.as_ref()?.around(point)
    }

    /// Returns whether no building other than those around the ends is between two points.
    pub(super) fn sees(&self, a: Position, b: Position) -> bool {
        self.buildings.as_ref().is_none_or(|buildings| buildings.sees(a, b))
    }

    /// Returns the loss in dB of the walls between a site, which is in the building `site`, and a place, and of the car.
    pub(super) fn walls_db(&self, site: Option<usize>, place: &Place, hz: f64) -> f64 {
        let Some(buildings) = self.buildings.as_ref().filter(|_| site != place.building) else {
            return self.car_db;
        };
        let wall = |index: usize| buildings.all()[index].wall;
        let visit = place.building.and_then(|index| Some((wall(index), self.visits.at(place.travelled)?)));
        let ues_db = visit.map_or(0.0, |(wall, visit)| visit.loss_db(self.penetration, wall, hz));
        self.car_db + ues_db + site.map_or(0.0, |index| wall(index).loss_db(hz))
    }

    /// Returns the loss in dB of blockers between a site and a place.
    pub(super) fn blocked_db(&mut self, site: Position, place: &Place, hz: f64) -> f64 {
        self.blockers.as_mut().map_or(0.0, |blockers| {
            let arrival = angles(direction(place.position, site));
            blockers.loss_db(arrival, place.orientation_deg, hz, place.travelled, place.now.as_secs_f64())
        })
    }
}
