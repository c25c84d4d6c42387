//! The radio of LTE and NR: from positions and powers to SINR, from SINR to CQI, MCS and block errors, and the 3GPP
//! tables.
//!
//! [`Air`] models everything between one UE and all cells: path loss, buildings, blockers, shadowing, beams, fast
//! fading, interference and power control, or a recorded channel instead. It returns the SINR at a given time; [`phy`]
//! derives CQI, MCS and block errors from an SINR. Time and random numbers are arguments, and every result depends only
//! on the requested time and not on earlier requests, so that observing a channel does not change it.
//!
//! A channel is constant for a slot of its carrier, which in LTE is a subframe of a millisecond.

#![allow(clippy::doc_markdown, reason = "I_TBS and QoS are names, not code")]

mod air;
pub mod antenna;
pub mod blockage;
pub mod buildings;
pub mod fading;
pub mod mobility;
pub mod pathloss;
pub mod phy;
pub mod recorded;
pub mod shadowing;
pub mod tables;
pub mod wandering;

pub use air::{Air, AirConfig, BeamShare, Carrier, Channel, Occupied, Orientation, Site, Sites, UplinkPower};
pub use antenna::Array;
pub use blockage::Blockage;
pub use buildings::{Building, Buildings};
pub use mobility::{Mobility, Position};
pub use pathloss::{Antenna, PathLoss};
pub use phy::{Sinr, Soft, block_error, coded_bits, mcs_for, mutual_information, wideband_cqi};
pub use recorded::Recorded;
pub use shadowing::Shadowing;
pub use tables::lte::{Bandwidth, Mcs};
pub use tables::{Direction, Modulation};

use rand_core::Rng;

/// The random stream of a UE's radio. The driver names it, so that runs can be repeated.
pub type Random = rand_xoshiro::Xoshiro256PlusPlus;

/// Nanoseconds of a subframe: UEs' positions are updated at multiples of it.
pub(crate) const SUBFRAME_NANOS: u64 = 1_000_000;

/// Draws a uniform number in [0, 1).
pub(crate) fn uniform(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Draws a normal number with mean 0 and standard deviation 1 (Box and Muller, 1958).
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - uniform(random)));
    radius * libm::cos(core::f64::consts::TAU * uniform(random))
}

/// Returns ten to the power of a tenth of `db`.
#[inline]
pub fn linear(db: f64) -> f64 {
    libm::exp(db * (core::f64::consts::LN_10 / 10.0))
}

/// Returns ten times the decimal logarithm of `ratio`.
pub(crate) fn decibels(ratio: f64) -> f64 {
    10.0 * libm::log10(ratio)
}
