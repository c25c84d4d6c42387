//! Uplink power control.

use channel::UplinkPower;
use units::parameters;

/// Path loss compensation factors (36.213 5.1.1.1).
const ALPHAS: [f64; 8] = [0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

parameters! {
    /// Open-loop power control of the uplink (36.213 5.1.1.1, 38.213 7.1.1), the same in all cells.
    #[derive(Copy)]
    pub struct PowerControl {
        /// P0: the target power in dBm received per resource block with full path loss compensation. For subcarriers wider
        /// than 15 kHz it is higher in proportion.
        // The nominal and the UE's part of P0 together (36.331 6.3.2).
        pub p0_dbm: f64 = -80.0, in -134.0..=31.0;
        /// The fraction of the path loss that is compensated: 0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 or 1.
        pub alpha: f64 = 1.0, in &ALPHAS;
    }
}

impl PowerControl {
    /// Returns the power control of a UE with this maximum power in dBm.
    pub fn of_ue(&self, max_dbm: f64) -> UplinkPower {
        UplinkPower { max_dbm, p0_dbm: self.p0_dbm, alpha: self.alpha }
    }
}
