//! Cells with arrays, and the beams with which they transmit to others.

use units::Time;

use super::cell::Cell;
use crate::antenna::{Array, direction};
use crate::linear;
use crate::mobility::Position;
use crate::pathloss::Antenna;

/// The mean share of a cell's resource blocks that it sends with one beam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BeamShare {
    /// The beam ([`Air::sent_beam`](super::Air::sent_beam)).
    pub beam: u32,
    /// Its share, 0 to 1.
    pub share: f64,
}

/// What the UE receives from a cell with an array beside the beam for itself.
#[derive(Clone, Debug)]
pub(super) struct Beamed {
    pub(super) cell: usize,
    array: Array,
    /// The beams in use, in ascending order.
    beams: Vec<Heard>,
    /// The mean gain towards the UE, as a ratio.
    mean_gain: f64,
    /// From when on the gains are valid.
    valid_from: Option<Time>,
}

/// A beam in use.
#[derive(Clone, Copy, Debug)]
struct Heard {
    of: BeamShare,
    /// Its gain towards the UE, as a ratio, once it was needed.
    gain: Option<f64>,
}

impl Beamed {
    /// Returns those of `cells` with arrays.
    pub(super) fn of(cells: &[Cell]) -> Box<[Beamed]> {
        let arrays = cells.iter().enumerate().filter_map(|(index, cell)| match cell.antenna {
            Antenna::Array(array) => Some((index, array.interfering())),
            Antenna::Isotropic { .. } | Antenna::Sector { .. } => None,
        });
        let beamed = |(cell, array)| Beamed { cell, array, beams: Vec::new(), mean_gain: 0.0, valid_from: None };
        arrays.map(beamed).collect()
    }

    /// Sets the shares of the beams in use; returns whether one has changed.
    pub(super) fn set(&mut self, shares: &[BeamShare]) -> bool {
        let before = self.beams.len();
        self.beams.retain(|heard| shares.binary_search_by_key(&heard.of.beam, |share| share.beam).is_ok());
        let mut changed = self.beams.len() != before;
        for (index, share) in shares.iter().enumerate() {
            match self.beams.get_mut(index) {
                Some(heard) if heard.of.beam == share.beam => {
                    changed |= heard.of != *share;
                    heard.of = *share;
                }
                _ => {
                    changed = true;
                    self.beams.insert(index, Heard { of: *share, gain: None });
                }
            }
        }
        changed
    }

    /// Computes the gains from `site` to `ue` that are missing, or all if those it has are not of `valid_from`.
    pub(super) fn look(&mut self, valid_from: Time, site: Position, ue: Position) {
        let Beamed { array, beams, mean_gain, .. } = self;
        if self.valid_from != Some(valid_from) {
            self.valid_from = Some(valid_from);
            *mean_gain = linear(array.mean_gain_db(direction(site, ue), 0.0));
            beams.iter_mut().for_each(|heard| heard.gain = None);
        }
        for Heard { of, gain } in beams {
            gain.get_or_insert_with(|| linear(array.gain_db(of.beam, direction(site, ue), 0.0)));
        }
    }

    /// Returns the mean gain towards the UE, as a ratio, times `load`.
    pub(super) fn gain(&self, load: f64) -> f64 {
        let (mut known, mut sum) = (0.0, 0.0);
        for Heard { of, gain } in &self.beams {
            known += of.share;
            sum += of.share * gain.unwrap_or(self.mean_gain);
        }
        sum + (load - known).max(0.0) * self.mean_gain
    }
}
