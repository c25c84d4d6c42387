//! The cells, and one UE's links to them.

use super::site::{Carrier, Site};
use crate::antenna::Beams;
use crate::mobility::Position;
use crate::pathloss::{Antenna, Logarithms, noise_dbm};
use crate::tables::lte::SUBCARRIERS;
use crate::{decibels, linear};

/// What the radios of all UEs of a network share: its cells, which have the indices of their sites.
#[derive(Clone, Debug)]
pub struct Sites {
    pub(super) cells: Box<[Cell]>,
    /// What interference between cells depends on: loops over all cells read little memory.
    pub(super) carriers: Box<[Alike]>,
    pub(super) masts: Box<[MastSite]>,
}

/// What does not change of a cell.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) position: Position,
    pub(super) antenna: Antenna,
    pub(super) carrier: Carrier,
    pub(super) mast: usize,
    /// Transmit power of a resource element in dBm.
    pub(super) element_dbm: f64,
    /// Noise in dBm in a resource block of the cell's receiver.
    pub(super) noise_dbm: f64,
}

/// The carrier of a cell, as far as interference depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alike {
    /// The index of the first cell on the same downlink carrier.
    pub(super) first: u32,
    pub(super) subcarrier_hz: u32,
    /// Power over noise in a resource block of the cell's receiver for a transmit power of 1 mW, per mW of the received power
    /// of a resource element in the downlink.
    pub(super) uplink_per_rsrp: f64,
}

/// A position with cells.
#[derive(Clone, Debug)]
pub(super) struct MastSite {
    pub(super) position: Position,
    pub(super) cells: Vec<usize>,
}

/// A UE's current channel to a cell. The received powers are in [`super::Air`].
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// Gains of both antennas minus shadowing and the losses of walls and blockers, in dB.
    pub(super) gain_db: f64,
    /// Losses of walls and the car, and of blockers, in dB.
    pub(super) walls_db: f64,
    pub(super) blocked_db: f64,
    /// Gains in dBi of the cell's antenna and the UE's array towards each other, with their beams.
    pub(super) site_db: f64,
    pub(super) ue_db: f64,
    /// Noise in mW in a resource element of the UE's receiver; with a recorded SINR and received power, noise and interference.
    pub(super) ue_noise_mw: f64,
    /// The beams, if either end has an array.
    pub(super) beams: Option<Box<Beams>>,
    /// What the path loss depends on apart from the distance, once it was needed.
    pub(super) logarithms: Option<Logarithms>,
    /// Whether there is line of sight, apart from walls around the ends.
    pub(super) sees: bool,
    /// Whether the UE and the cell are in different buildings, or one of them outdoors.
    pub(super) walled: bool,
    /// Whether a recorded SINR already includes interference.
    pub(super) complete: bool,
    /// The loss in dB beside a recorded SINR, if it is known.
    pub(super) loss_db: Option<f64>,
}

impl Sites {
    /// Prepares `sites`.
    pub fn new(sites: &[Site]) -> Sites {
        let mut masts: Vec<MastSite> = Vec::new();
        let mut cells: Vec<Cell> = Vec::with_capacity(sites.len());
        for (index, site) in sites.iter().enumerate() {
            let mast = masts.iter().position(|mast| mast.position == site.position).unwrap_or_else(|| {
                masts.push(MastSite { position: site.position, cells: Vec::new() });
                masts.len() - 1
            });
            masts[mast].cells.push(index);
            let carrier = site.carrier;
            let subcarriers = f64::from(SUBCARRIERS);
            let noise_dbm = noise_dbm(subcarriers * f64::from(carrier.subcarrier_hz), site.noise_figure_db);
            let element_dbm = site.power_dbm - decibels(subcarriers * f64::from(carrier.prbs));
            cells.push(Cell { position: site.position, antenna: site.antenna, carrier, mast, element_dbm, noise_dbm });
        }
        let alike = |(index, cell): (usize, &Cell)| {
            let Carrier { downlink_hz, uplink_hz, subcarrier_hz, .. } = cell.carrier;
            let first = cells.iter().position(|other| other.carrier.downlink_hz == downlink_hz).unwrap_or(index);
            let higher = downlink_hz / uplink_hz;
            Alike {
                first: first as u32,
                subcarrier_hz,
                uplink_per_rsrp: linear(decibels(higher * higher) - cell.element_dbm - cell.noise_dbm),
            }
        };
        Sites { carriers: cells.iter().enumerate().map(alike).collect(), cells: cells.into(), masts: masts.into() }
    }
}

impl Alike {
    /// Returns the power in one of its resource elements for each mW in one of `from`: that of the same bandwidth.
    #[inline]
    pub(super) fn density_of(self, from: Alike) -> f64 {
        let [to, from] = [self, from].map(|carrier| carrier.subcarrier_hz);
        if to == from { 1.0 } else { f64::from(to) / f64::from(from) }
    }
}

impl Link {
    /// Creates a link over which nothing is received yet.
    pub(super) fn new(ue_noise_mw: f64, beams: Option<Beams>) -> Link {
        Link {
            gain_db: 0.0,
            walls_db: 0.0,
            blocked_db: 0.0,
            site_db: 0.0,
            ue_db: 0.0,
            ue_noise_mw,
            beams: beams.map(Box::new),
            logarithms: None,
            sees: true,
            walled: false,
            complete: false,
            loss_db: None,
        }
    }
}
