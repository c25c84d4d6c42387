//! Downlink interference that fades as the serving cell's link does.

use core::ops::Range;

use units::Time;

use super::interference::Occupied;
use super::{Air, Sinr};
use crate::tables::Direction;

/// The mean power in mW of a resource element that a cell causes.
#[derive(Clone, Debug)]
struct Heard {
    /// On all resource blocks.
    all_mw: f64,
    /// In addition on these.
    more_mw: f64,
    blocks: Range<u16>,
}

impl Air {
    /// [`Air::downlink`] with interference that fades.
    #[inline(never)]
    pub(super) fn downlink_faded(&mut self, serving: usize, now: Time, sinr: &mut Sinr) {
        self.look();
        let heard = |air: &Air, index: usize| {
            let density = air.sites.carriers[serving].density_of(air.sites.carriers[index]);
            Heard { all_mw: air.mean_mw(serving, index) * density, more_mw: 0.0, blocks: 0..0 }
        };
        self.fill_among(serving, now, heard, sinr);
    }

    /// [`Air::downlink_among`] with interference that fades.
    #[inline(never)]
    pub(super) fn downlink_among_faded(&mut self, serving: usize, now: Time, on_air: &[Occupied], sinr: &mut Sinr) {
        let heard = |air: &Air, index: usize| {
            let occupied = &on_air[index];
            if occupied.is_silent() {
                return Heard { all_mw: 0.0, more_mw: 0.0, blocks: 0..0 };
            }
            let (all_mw, more_mw) = air.heard_mw(serving, index, occupied);
            Heard { all_mw, more_mw, blocks: occupied.first..occupied.first + occupied.prbs }
        };
        self.fill_among(serving, now, heard, sinr);
    }

    /// Fills `sinr` with that of `serving` among cells of which the UE hears `heard`.
    fn fill_among(&mut self, serving: usize, now: Time, heard: impl Fn(&Air, usize) -> Heard, sinr: &mut Sinr) {
        let (Some(config), Some(mut sums)) = (self.fading, self.faded.take()) else { return };
        let noise_mw = self.links[serving].ue_noise_mw;
        let (carrier, first) = (self.sites.cells[serving].carrier, self.sites.carriers[serving].first);
        sums.clear();
        sums.resize(carrier.prbs.into(), noise_mw);
        for index in 0..self.sites.cells.len() {
            if index == serving || self.sites.carriers[index].first != first {
                continue;
            }
            let there = self.sites.cells[index].carrier;
            let Heard { all_mw, more_mw, blocks } = heard(self, index);
            if all_mw == 0.0 && (more_mw == 0.0 || blocks.is_empty()) {
                continue;
            }
            let gains = self.fade(config, Direction::Downlink, index, now);
            if (there.prbs, there.subcarrier_hz) == (carrier.prbs, carrier.subcarrier_hz) {
                for (block, (sum, gain)) in (0..).zip(sums.iter_mut().zip(gains)) {
                    let more_mw = if blocks.contains(&block) { more_mw } else { 0.0 };
                    *sum += (all_mw + more_mw) * f64::from(*gain);
                }
            } else {
                // Another grid's interference is spread over its carrier.
                let mean = gains.iter().map(|gain| f64::from(*gain)).sum::<f64>() / gains.len() as f64;
                let mw = (all_mw + more_mw * blocks.len() as f64 / f64::from(there.prbs)) * mean;
                sums.iter_mut().for_each(|sum| *sum += mw);
            }
        }
        let alone = self.received_mw[serving] / noise_mw;
        self.fill(Direction::Downlink, serving, alone as f32, now, sinr);
        for (sinr, sum) in sinr.per_block(carrier.prbs.into()).iter_mut().zip(&sums) {
            *sinr *= (noise_mw / sum) as f32;
        }
        self.faded = Some(sums);
    }
}
