//! Interference between the links of cells on the same carrier.

use std::sync::Arc;

use units::Time;

use super::beamed::BeamShare;
use super::cell::Cell;
use super::{Air, Antenna, Sinr};
use crate::antenna::{Ends, direction};
use crate::tables::Direction;
use crate::tables::lte::SUBCARRIERS;
use crate::{decibels, linear};

/// Fraction of a cell's resource elements used in a symbol with reference signals but without data.
const REFERENCE_SHARE: f64 = 1.0 / 6.0;

/// What a cell transmits at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupied {
    /// The first resource block with data.
    pub first: u16,
    /// Number of resource blocks with data, from that one on.
    pub prbs: u16,
    /// The fraction of the others, 0 to 1, that interferes.
    pub background: f32,
    /// The beam of its array ([`Air::sent_beam`]) on blocks with data; `None` if it is unknown or there are several.
    pub beam: Option<u32>,
}

impl Occupied {
    /// Returns whether the cell does not interfere.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        self.prbs == 0 && self.background == 0.0
    }
}

impl Air {
    /// Sets the fraction of resource blocks, 0 to 1, on which `cell` transmits and interferes with others. Initially
    /// zero.
    #[inline]
    pub fn set_load(&mut self, cell: usize, load: f32) {
        if self.loads[cell] != load {
            Arc::make_mut(&mut self.loads)[cell] = load;
            self.downlink_of = None;
        }
    }

    /// Sets those of all cells, which UEs share.
    #[inline]
    pub fn set_loads(&mut self, loads: &Arc<[f32]>) {
        if !Arc::ptr_eq(&self.loads, loads) {
            self.loads = Arc::clone(loads);
            self.downlink_of = None;
        }
    }

    /// Sets the shares of the resource blocks that `cell`, which has an array, sends with known beams, in ascending order of
    /// the beams. They are part of its load ([`Air::set_load`]); the rest of that is sent with unknown beams. Initially
    /// there are none.
    pub fn set_beams(&mut self, cell: usize, shares: &[BeamShare]) {
        let Ok(index) = self.beamed.binary_search_by_key(&cell, |beamed| beamed.cell) else { return };
        if self.beamed[index].set(shares) {
            self.downlink_of = None;
        }
    }

    /// Returns the beam with which the array of `cell` transmits to the UE, numbered as in
    /// [`Array::interfering`](crate::Array::interfering); `None` without an array.
    pub fn sent_beam(&mut self, cell: usize, now: Time) -> Option<u32> {
        self.update(now);
        self.links[cell].beams.as_ref()?.site_aim(&self.ends(&self.sites.cells[cell]))
    }

    /// Returns the quality of a cell's reference signals, in dB (36.214 5.1.3): their power relative to that of all
    /// cells and noise in symbols with reference signals of one antenna port.
    pub fn rsrq(&mut self, cell: usize, now: Time) -> f64 {
        self.update(now);
        self.look();
        let of = self.sites.carriers[cell];
        let others = self.sites.carriers.iter().enumerate();
        let all = others.filter(|(_, other)| other.first == of.first);
        let used_mw = |index: usize| {
            let mw = self.received_mw[index];
            if self.has_beams(index) {
                REFERENCE_SHARE * mw + (1.0 - REFERENCE_SHARE) * self.mean_beams_mw(cell, index)
            } else {
                mw * (REFERENCE_SHARE + (1.0 - REFERENCE_SHARE) * f64::from(self.loads[index]))
            }
        };
        let received: f64 = all.map(|(index, other)| used_mw(index) * of.density_of(*other)).sum();
        decibels(self.received_mw[cell] / (f64::from(SUBCARRIERS) * (received + self.links[cell].ue_noise_mw)))
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
        if !self.has_interference(serving) {
            return self.downlink(serving, now, sinr);
        }
        if self.faded.is_some() {
            return self.downlink_among_faded(serving, now, on_air, sinr);
        }
        let (cell, link) = (self.sites.carriers[serving], &self.links[serving]);
        let prbs = self.sites.cells[serving].carrier.prbs;
        let mut even = link.ue_noise_mw;
        steps.clear();
        for (index, (other, occupied)) in self.sites.carriers.iter().zip(on_air).enumerate() {
            if occupied.is_silent() || index == serving || other.first != cell.first {
                continue;
            }
            if occupied.prbs == 0 {
                even += self.idle_mw(serving, index, occupied);
                continue;
            }
            let (idle, more) = self.heard_mw(serving, index, occupied);
            even += idle;
            let others = self.sites.cells[index].carrier.prbs;
            let is_alike = others == prbs && other.subcarrier_hz == cell.subcarrier_hz;
            if !is_alike || occupied.prbs >= prbs {
                even += more * f64::from(occupied.prbs) / f64::from(others);
            } else {
                if steps.is_empty() {
                    steps.resize(usize::from(prbs) + 1, 0.0);
                }
                steps[usize::from(occupied.first)] += more;
                steps[usize::from(occupied.first + occupied.prbs)] -= more;
            }
        }
        let flat = self.received_mw[serving] / even;
        self.fill(Direction::Downlink, serving, flat as f32, now, sinr);
        if !steps.is_empty() {
            let mut more = 0.0;
            for (sinr, step) in sinr.per_block(prbs.into()).iter_mut().zip(&*steps) {
                more += *step;
                *sinr *= (even / (even + more)) as f32;
            }
        }
    }

    /// Returns whether other cells interfere with `serving`: the SINR is not set, and a recorded one does not include it.
    #[inline]
    pub(super) fn has_interference(&self, serving: usize) -> bool {
        self.set_db.is_none() && !self.links[serving].complete
    }

    /// Returns the power in mW of a resource element that the UE, which listens to `serving`, receives from cell `index` on
    /// all blocks, and how much more on those with data.
    #[inline]
    pub(super) fn heard_mw(&self, serving: usize, index: usize, occupied: &Occupied) -> (f64, f64) {
        let density = self.sites.carriers[serving].density_of(self.sites.carriers[index]);
        let background = f64::from(occupied.background);
        let mw = self.interfering_mw(serving, index, occupied.beam) * density;
        if background == 0.0 || occupied.beam.is_none() {
            return (mw * background, mw * (1.0 - background));
        }
        let idle = self.idle_mw(serving, index, occupied);
        (idle, mw - idle)
    }

    /// Returns the power in mW of a resource element that the UE receives from cell `index` on blocks without data.
    #[inline]
    fn idle_mw(&self, serving: usize, index: usize, occupied: &Occupied) -> f64 {
        let density = self.sites.carriers[serving].density_of(self.sites.carriers[index]);
        self.interfering_mw(serving, index, None) * density * f64::from(occupied.background)
    }

    /// Returns the power over noise in a resource block with which `other` receives what the UE sends to `serving`, for a
    /// transmit power of 1 mW, as of the last call with a time.
    #[inline]
    pub fn interference_per_mw(&self, serving: usize, other: usize) -> f64 {
        if self.set_db.is_some() {
            return 0.0;
        }
        self.over_noise(serving, other, self.interfering_mw(serving, other, None))
    }

    /// Calls `heard` with each other cell and what [`Air::interference_per_mw`] returns for it, which may be left out if it is
    /// zero.
    #[inline]
    pub fn interference(&self, serving: usize, mut heard: impl FnMut(usize, f64)) {
        if self.set_db.is_some() {
            return;
        }
        let has_beams = self.array.is_some() || !self.beamed.is_empty();
        for (other, &mw) in self.received_mw.iter().enumerate().filter(|(other, _)| *other != serving) {
            let mw = if has_beams { self.interfering_mw(serving, other, None) } else { mw };
            heard(other, self.over_noise(serving, other, mw));
        }
    }

    /// Returns the power over noise in a resource block with which `other` receives what the UE sends to `serving` with 1 mW, if
    /// the UE receives `mw` in a resource element of `other`.
    #[inline]
    fn over_noise(&self, serving: usize, other: usize, mw: f64) -> f64 {
        let [at, from] = [other, serving].map(|index| self.sites.carriers[index]);
        mw * at.uplink_per_rsrp * at.density_of(from)
    }

    /// Returns whether the SINR was set ([`Air::set_sinr`]), so that there is no interference.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.set_db.is_some()
    }

    /// Returns the downlink's SINR without fading if no other cell transmitted.
    pub fn greatest_sinr(&mut self, serving: usize, now: Time) -> f64 {
        self.update(now);
        f64::from(self.flat_downlink_among(serving, |_| 0.0))
    }

    /// Returns the downlink's SINR without fading if all other cells transmitted on all resource blocks, with the beams
    /// that interfere most.
    pub fn least_sinr(&mut self, serving: usize, now: Time) -> f64 {
        self.update(now);
        f64::from(self.flat_downlink_among(serving, |other| {
            if self.has_beams(other) {
                linear(self.unsteered_dbm(serving, other) + self.links[other].site_db)
            } else {
                self.received_mw[other]
            }
        }))
    }

    /// Returns the downlink's SINR without fading.
    pub(super) fn flat_downlink(&mut self, serving: usize) -> f32 {
        self.look();
        self.flat_downlink_among(serving, |other| self.mean_mw(serving, other))
    }

    /// Returns the mean power in mW of a resource element of cell `other` that the UE receives while it listens to `serving`.
    /// Call [`Air::look`] before.
    #[inline]
    pub(super) fn mean_mw(&self, serving: usize, other: usize) -> f64 {
        if self.has_beams(other) {
            self.mean_beams_mw(serving, other)
        } else {
            self.received_mw[other] * f64::from(self.loads[other])
        }
    }

    /// Returns the same if the UE receives `mw` from each other cell in a resource element.
    fn flat_downlink_among(&self, serving: usize, mw: impl Fn(usize) -> f64) -> f32 {
        if let Some(sinr_db) = self.set_db {
            return linear(sinr_db) as f32;
        }
        let (cell, link) = (self.sites.carriers[serving], &self.links[serving]);
        let others = self.sites.carriers.iter().enumerate();
        let interfering =
            others.filter(|&(index, other)| index != serving && !link.complete && other.first == cell.first);
        let interference: f64 = interfering.map(|(index, other)| mw(index) * cell.density_of(*other)).sum();
        (self.received_mw[serving] / (link.ue_noise_mw + interference)) as f32
    }

    /// Brings the gains of the beams in use up to date.
    #[inline]
    pub(super) fn look(&mut self) {
        for beamed in &mut self.beamed {
            beamed.look(self.valid_from, self.sites.cells[beamed.cell].position, self.place);
        }
    }

    /// Returns the mean power in mW of a resource element of cell `other`, with its load and the beams in use, that the UE
    /// receives while it listens to `serving`, if either end has an array. Call [`Air::look`] before.
    fn mean_beams_mw(&self, serving: usize, other: usize) -> f64 {
        let load = f64::from(self.loads[other]);
        let gain = match self.beamed.binary_search_by_key(&other, |beamed| beamed.cell) {
            Ok(index) => self.beamed[index].gain(load),
            Err(_) => linear(self.links[other].site_db) * load,
        };
        linear(self.unsteered_dbm(serving, other)) * gain
    }

    /// Returns the power in mW of a resource element of `other`, with this beam, that the UE receives while it listens to
    /// `serving`.
    #[inline]
    fn interfering_mw(&self, serving: usize, other: usize, beam: Option<u32>) -> f64 {
        if self.has_beams(other) { self.interfering_beam_mw(serving, other, beam) } else { self.received_mw[other] }
    }

    /// Returns whether the UE or a cell has an array.
    #[inline]
    fn has_beams(&self, cell: usize) -> bool {
        self.array.is_some() || !self.beamed.is_empty() && matches!(self.sites.cells[cell].antenna, Antenna::Array(_))
    }

    /// [`Air::interfering_mw`] if either end has an array.
    fn interfering_beam_mw(&self, serving: usize, other: usize, beam: Option<u32>) -> f64 {
        let at = &self.sites.cells[other];
        let site_db = match at.antenna {
            Antenna::Array(array) => array.gain_beside_db(beam, direction(at.position, self.place), 0.0),
            Antenna::Isotropic { .. } | Antenna::Sector { .. } => self.links[other].site_db,
        };
        linear(self.unsteered_dbm(serving, other) + site_db)
    }

    /// Returns the power in dBm of a resource element of `other`, without the gain of that cell's antenna, that the UE
    /// receives while it listens to `serving`.
    fn unsteered_dbm(&self, serving: usize, other: usize) -> f64 {
        let ue_db = self.array.map_or(0.0, |array| {
            let beams = self.links[serving].beams.as_deref();
            let beam = beams.and_then(|beams| beams.ue_aim(&self.ends(&self.sites.cells[serving])));
            array.gain_beside_db(beam, direction(self.place, self.sites.cells[other].position), self.orientation_deg)
        });
        let link = &self.links[other];
        self.rsrp_dbm[other] - link.site_db - link.ue_db + ue_db
    }

    /// Returns the ends of the link to a cell.
    fn ends(&self, cell: &Cell) -> Ends {
        Ends { site: cell.position, ue: self.place, orientation_deg: self.orientation_deg }
    }
}
