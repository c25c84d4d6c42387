//! Interference between the links of cells on the same carrier.

use units::Time;

use super::{Air, Antenna, Sinr};
use crate::antenna::direction;
use crate::linear;
use crate::tables::Direction;

/// What a cell transmits at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupied {
    /// Number of resource blocks with data: its first ones.
    pub prbs: u16,
    /// The fraction of the others, 0 to 1, that interferes.
    pub background: f32,
    /// The beam of its array; `None` if it is unknown or there are several.
    pub beam: Option<u16>,
}

impl Air {
    /// Sets the fraction of resource blocks, 0 to 1, on which `cell` transmits and interferes with others. Initially
    /// zero.
    #[inline]
    pub fn set_load(&mut self, cell: usize, load: f32) {
        if self.loads[cell] != load {
            self.loads[cell] = load;
            self.downlink_of = None;
        }
    }

    /// Computes the SINR of `serving`'s resource blocks at the UE if the cells transmit what `on_air` has for each of them,
    /// instead of their loads. The interference of a cell with another grid of resource blocks is spread over its carrier.
    ///
    /// `steps` is memory.
    pub fn downlink_among(
        &mut self,
        serving: usize,
        now: Time,
        on_air: &[Occupied],
        steps: &mut Vec<f64>,
        sinr: &mut Sinr,
    ) {
        self.update(now);
        let (cell, link) = (&self.sites.cells[serving], &self.links[serving]);
        if self.set_db.is_some() || link.complete {
            return self.downlink(serving, now, sinr);
        }
        let prbs = cell.carrier.prbs;
        let mut even = link.ue_noise_mw;
        steps.clear();
        for (index, (other, occupied)) in self.sites.cells.iter().zip(on_air).enumerate() {
            if index == serving || other.first_alike != cell.first_alike {
                continue;
            }
            let background = f64::from(occupied.background);
            if occupied.prbs == 0 && background == 0.0 {
                continue;
            }
            let mw = self.interfering_mw(serving, index, occupied.beam) * cell.density_of(other);
            let more = mw * (1.0 - background);
            even += mw * background;
            let is_alike = other.carrier.prbs == prbs && other.carrier.subcarrier_hz == cell.carrier.subcarrier_hz;
            if !is_alike || occupied.prbs >= prbs {
                even += more * f64::from(occupied.prbs) / f64::from(other.carrier.prbs);
            } else if occupied.prbs > 0 {
                if steps.is_empty() {
                    steps.resize(prbs.into(), 0.0);
                }
                steps[usize::from(occupied.prbs) - 1] += more;
            }
        }
        let flat = self.received_mw[serving] / even;
        self.fill(Direction::Downlink, serving, flat as f32, now, sinr);
        if !steps.is_empty() {
            let mut more = 0.0;
            for (sinr, step) in sinr.per_block(prbs.into()).iter_mut().zip(&*steps).rev() {
                more += *step;
                *sinr *= (even / (even + more)) as f32;
            }
        }
    }

    /// Returns the power over noise in a resource block with which `other` receives what the UE sends to `serving`, for a
    /// transmit power of 1 mW, as of the last call with a time.
    #[inline]
    pub fn interference_per_mw(&self, serving: usize, other: usize) -> f64 {
        if self.set_db.is_some() {
            return 0.0;
        }
        let [at, from] = [other, serving].map(|index| &self.sites.cells[index]);
        self.interfering_mw(serving, other, None) * at.uplink_per_rsrp * at.density_of(from)
    }

    /// Returns whether the SINR was set ([`Air::set_sinr`]), so that there is no interference.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set_db.is_some()
    }

    /// Returns the downlink's SINR without fading if all other cells transmitted on all resource blocks, or none did.
    pub fn sinr_at_load(&mut self, serving: usize, now: Time, load: f64) -> f64 {
        self.update(now);
        f64::from(self.flat_downlink_at(serving, |_| load))
    }

    /// Returns the downlink's SINR without fading.
    pub(super) fn flat_downlink(&self, serving: usize) -> f32 {
        self.flat_downlink_at(serving, |other| f64::from(self.loads[other]))
    }

    fn flat_downlink_at(&self, serving: usize, load: impl Fn(usize) -> f64) -> f32 {
        if let Some(sinr_db) = self.set_db {
            return linear(sinr_db) as f32;
        }
        let (cell, link) = (&self.sites.cells[serving], &self.links[serving]);
        let others = self
            .sites
            .cells
            .iter()
            .enumerate()
            .filter(|&(index, other)| index != serving && !link.complete && other.first_alike == cell.first_alike);
        let interference: f64 = others
            .map(|(index, other)| self.interfering_mw(serving, index, None) * cell.density_of(other) * load(index))
            .sum();
        (self.received_mw[serving] / (link.ue_noise_mw + interference)) as f32
    }

    /// Returns the power in mW of a resource element of `other`, with this beam, that the UE receives while it listens to
    /// `serving`.
    #[inline]
    fn interfering_mw(&self, serving: usize, other: usize, beam: Option<u16>) -> f64 {
        if self.array.is_none() && !matches!(self.sites.cells[other].antenna, Antenna::Array(_)) {
            self.received_mw[other]
        } else {
            self.interfering_beam_mw(serving, other, beam)
        }
    }

    /// [`Air::interfering_mw`] if either end has an array.
    fn interfering_beam_mw(&self, serving: usize, other: usize, beam: Option<u16>) -> f64 {
        let (at, link) = (&self.sites.cells[other], &self.links[other]);
        let site_db = match at.antenna {
            Antenna::Array(array) => array.gain_beside_db(beam, direction(at.position, self.place), 0.0),
            Antenna::Isotropic { .. } | Antenna::Sector { .. } => link.site_db,
        };
        let ue_db = self.array.map_or(0.0, |array| {
            let beam = self.links[serving].beams.as_ref().map(|beams| beams.pair().1);
            array.gain_beside_db(beam, direction(self.place, at.position), self.orientation_deg)
        });
        linear(link.rsrp_dbm - link.site_db - link.ue_db + site_db + ue_db)
    }
}
