//! Sites and their carriers.

use crate::mobility::Position;
use crate::pathloss::Antenna;
use crate::tables::lte::Bandwidth;

/// A pair of carriers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// Centre frequency of the downlink in Hz.
    pub downlink_hz: f64,
    /// Centre frequency of the uplink in Hz.
    pub uplink_hz: f64,
    /// Resource blocks of each, of twelve subcarriers.
    pub prbs: u16,
    /// Their subcarrier spacing in Hz: 15,000 times a power of two.
    pub subcarrier_hz: u32,
}

impl Carrier {
    /// Returns a pair of LTE carriers of this bandwidth in band 1, EARFCN 100 and 18100.
    pub const fn lte(bandwidth: Bandwidth) -> Carrier {
        Carrier { downlink_hz: 2.12e9, uplink_hz: 1.93e9, prbs: bandwidth.prbs(), subcarrier_hz: 15_000 }
    }

    /// Nanoseconds for which a channel is constant: a slot of the numerology, which in LTE is a subframe.
    #[inline]
    pub(super) fn slot_nanos(&self) -> u64 {
        1_000_000 * 15_000 / u64::from(self.subcarrier_hz)
    }
}

impl Default for Carrier {
    /// LTE with 10 MHz.
    fn default() -> Carrier {
        Carrier::lte(Bandwidth::Mhz10)
    }
}

/// The radio parameters of a cell. Sectors of one mast are cells at the same position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Site {
    /// Position of its antenna.
    pub position: Position,
    /// Its antenna.
    pub antenna: Antenna,
    /// Transmit power in dBm over the whole carrier.
    pub power_dbm: f64,
    /// Noise figure of its receiver in dB. The noise rise caused by UEs of other cells may be added to it.
    pub noise_figure_db: f64,
    /// Its carriers.
    pub carrier: Carrier,
}

impl Default for Site {
    /// 30 dBm and 5 dB at a height of 30 m, isotropic.
    fn default() -> Site {
        Site {
            position: Position::new(0.0, 0.0, 30.0),
            antenna: Antenna::default(),
            power_dbm: 30.0,
            noise_figure_db: 5.0,
            carrier: Carrier::default(),
        }
    }
}
