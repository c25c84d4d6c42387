//! Buildings, antenna arrays, blockers and cars.

use channel::antenna::{Array, Element, Steering};
use channel::blockage::{self, Blockage, Grip};
use channel::buildings::{Building, Buildings, Car, Penetration, Wall};
use std::sync::Arc;
use units::Span;

/// What all UEs have around them.
pub(super) struct Surroundings {
    pub(super) buildings: Option<Arc<Buildings>>,
    pub(super) penetration: Penetration,
    pub(super) sweep: Span,
}

pub(super) fn of(network: &scenario::Radio) -> Surroundings {
    let building = |of: &scenario::Building| Building {
        x: of.x,
        y: of.y,
        height: of.height,
        wall: match of.wall {
            scenario::Wall::LowLoss => Wall::LowLoss,
            scenario::Wall::HighLoss => Wall::HighLoss,
        },
    };
    let all: Vec<Building> = network.buildings.iter().map(building).collect();
    Surroundings {
        buildings: (!all.is_empty()).then(|| Arc::new(Buildings::new(&all).expect("checked buildings are boxes"))),
        penetration: match network.penetration {
            scenario::Penetration::Materials => Penetration::Materials,
            scenario::Penetration::Below6Ghz => Penetration::Below6Ghz,
        },
        sweep: network.beam_sweep,
    }
}

pub(super) fn array(of: &scenario::Array) -> Array {
    Array {
        rows: of.rows,
        columns: of.columns,
        panels: of.panels,
        element: if of.directional { Element::Directional } else { Element::Isotropic },
        steering: match of.beams {
            scenario::Beams::Ideal => Steering::Ideal,
            scenario::Beams::Codebook => Steering::Codebook { oversampling: 1 },
            scenario::Beams::Oversampled => Steering::Codebook { oversampling: 2 },
        },
        azimuth_deg: of.azimuth_deg,
        downtilt_deg: of.downtilt_deg,
    }
}

pub(super) fn car(of: scenario::Car) -> Car {
    match of {
        scenario::Car::Plain => Car::default(),
        scenario::Car::Metallised => Car::METALLISED,
    }
}

pub(super) fn blockage(of: scenario::Blockage) -> Blockage {
    let (surroundings, grip, blockers, kmh) = match of {
        scenario::Blockage::Outdoor { grip, blockers, kmh } => (blockage::Surroundings::Outdoor, grip, blockers, kmh),
        scenario::Blockage::Indoor { grip, blockers, kmh } => (blockage::Surroundings::Indoor, grip, blockers, kmh),
    };
    let grip = match grip {
        scenario::Grip::None => None,
        scenario::Grip::Portrait => Some(Grip::Portrait),
        scenario::Grip::Landscape => Some(Grip::Landscape),
    };
    Blockage { surroundings, grip, blockers, speed: kmh / 3.6 }
}
