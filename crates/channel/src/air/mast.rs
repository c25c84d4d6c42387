//! What the cells of one mast share: line of sight, shadowing, and the path between the mast and the UE.

use rand_core::Rng;

use super::surroundings::{Place, Surroundings};
use crate::pathloss::{PathLoss, Sight};
use crate::shadowing::{Process, Spread};
use crate::{Position, Random, Shadowing};

/// Values of a normal variable, and less than the probability of values below them: far from a mast, they decide that
/// there is no line of sight without the exact probability.
const QUANTILES: [(f64, f64); 4] = [(-2.0, 0.0227), (-1.5, 0.0668), (-1.0, 0.1586), (0.0, 0.4999)];

/// What the cells at a position share of their channels to the UE.
#[derive(Clone, Debug)]
pub(super) struct Mast {
    /// Whether it is received so much weaker than others that it is updated less often.
    pub(super) is_weak: bool,
    /// Determines line of sight.
    sight: Process,
    /// Shadowing with and without line of sight, if configured.
    shadows: Option<[Process; 2]>,
    /// Shadowing of a UE in a building, if there are any.
    indoor_shadow: Option<Box<Process>>,
    /// The building around it.
    building: Option<usize>,
}

/// The path between a mast and the UE on one carrier.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Whether there is line of sight, apart from walls around the ends.
    pub(super) sees: bool,
    /// Whether the UE and the mast are in different buildings, or one of them outdoors.
    pub(super) walled: bool,
    /// Losses of walls and the car, of blockers, and by shadowing, in dB.
    pub(super) walls_db: f64,
    pub(super) blocked_db: f64,
    pub(super) shadow_db: f64,
}

impl Mast {
    /// Creates a mast outdoors.
    pub(super) fn new(shadowing: Option<Shadowing>, sight_m: f64, random: &mut Random) -> Mast {
        let mut process = |correlation_m| Process::new(correlation_m, random.next_u64());
        Mast {
            is_weak: false,
            sight: process(sight_m),
            shadows: shadowing.map(|s| [process(s.los.correlation_m), process(s.nlos.correlation_m)]),
            indoor_shadow: None,
            building: None,
        }
    }

    /// Sets the building around it, and the shadowing of UEs in buildings, if there are any.
    pub(super) fn enclose(&mut self, building: Option<usize>, indoors: Option<Spread>, random: &mut Random) {
        let seed = random.next_u64();
        self.building = building;
        self.indoor_shadow = indoors.map(|spread| Box::new(Process::new(spread.correlation_m, seed)));
    }

    /// Returns the path from this mast at `position` to the UE at `place` on a carrier of `hz`.
    pub(super) fn path(
        &mut self,
        position: Position,
        path_loss: PathLoss,
        shadowing: Option<Shadowing>,
        surroundings: &mut Surroundings,
        place: &Place,
        hz: f64,
    ) -> Path {
        let (ue, travelled) = (place.position, place.travelled);
        let sees = self.is_seen(position, path_loss, surroundings, place);
        let walled = self.building != place.building;
        let walls_db = surroundings.walls_db(self.building, place, hz);
        let blocked_db = surroundings.blocked_db(position, place, hz);
        let far = path_loss.is_beyond_break(position, ue, hz);
        let indoors = walled && place.building.is_some();
        let shadow_db = shadowing.map_or(0.0, |shadowing| self.shadow_db(shadowing, sees, far, indoors, travelled));
        Path { sees, walled, walls_db, blocked_db, shadow_db }
    }

    fn is_seen(&mut self, position: Position, path_loss: PathLoss, surroundings: &Surroundings, place: &Place) -> bool {
        match path_loss.sight() {
            Sight::Los => true,
            Sight::Nlos => false,
            Sight::Buildings => surroundings.sees(position, place.position),
            Sight::Random => {
                let normal = self.sight.at(place.travelled);
                let ground = position.ground_distance(place.position);
                let is_hidden = |probability: f64| {
                    QUANTILES.iter().any(|(above, uniform)| normal > *above && probability < *uniform)
                };
                if is_hidden(path_loss.sight_bound(ground)) {
                    return false;
                }
                let probability = path_loss.sight_probability(ground);
                if is_hidden(probability) {
                    return false;
                }
                let uniform = 0.5 * libm::erfc(-normal * core::f64::consts::FRAC_1_SQRT_2);
                uniform < probability
            }
        }
    }

    fn shadow_db(&mut self, shadowing: Shadowing, sees: bool, far: bool, indoors: bool, travelled: f64) -> f64 {
        if let Some(process) = self.indoor_shadow.as_mut().filter(|_| indoors) {
            return shadowing.indoors.sigma_db * process.at(travelled);
        }
        let Some([los, nlos]) = &mut self.shadows else { return 0.0 };
        match (sees, far) {
            (true, false) => shadowing.los.sigma_db * los.at(travelled),
            (true, true) => shadowing.far_los_sigma_db * los.at(travelled),
            (false, _) => shadowing.nlos.sigma_db * nlos.at(travelled),
        }
    }
}
