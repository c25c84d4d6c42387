//! NR: from SINR to CQI, MCS and block errors.
//!
//! As in LTE ([`super`]), a receiver's information about a block is the mutual information of all coded bits sent for it,
//! and a code block is decoded if that exceeds its code rate by enough; a transport block is decoded if all its code blocks
//! are ([`code_blocks`]). The gap and the width of the curve belong to NR's LDPC codes. They are round numbers that fit the
//! block errors that Sionna's simulations give for the downlink's code blocks of 500 to 2000 bits in 38.214's schemes, with
//! an rms difference of 0.016. A test compares the SINR for a block error rate of 10 %.
//!
//! Those simulations end at 2000 bits, and a code block may have 8448. The width is extrapolated with the square root of
//! the size, as finite block lengths have it (Polyanskiy, Poor, Verdu, IEEE Trans. Inf. Theory 56(5), 2010), and the gap
//! stays: at 8.2 kbit the curve is half as wide, and its foot is about 0.2 dB lower.
//!
//! Assumptions: as in LTE. The tables are for 50 resource blocks of twelve symbols with data in a flat channel, so that
//! a scheme's code blocks have up to 8448 bits; smaller blocks need a little more.

use core::ops::Range;

use super::{Sinr, Soft, error, line, power};
use crate::tables::nr::{McsTable, code_blocks};

/// The information needed in excess of the code rate for a block error rate of one half, by code rate.
const GAP: [(f32, f32); 7] =
    [(0.0, 0.0), (0.25, 0.05), (0.6, 0.048), (0.7, 0.036), (0.8, 0.029), (0.93, 0.018), (1.0, 0.009)];

/// The width of the error curve: this over the square root of the code block's bits, by code rate.
const WIDTH: [(f32, f32); 7] =
    [(0.0, 0.0), (0.1, 0.25), (0.25, 0.55), (0.4, 0.58), (0.7, 0.6), (0.93, 0.4), (1.0, 0.32)];

/// Returns the probability, 0 to 1, that a transport block of `tb_bits` with a code rate of `rate`/2048 is not decoded.
pub fn block_error(tb_bits: u32, rate: u16, soft: &Soft) -> f64 {
    let blocks = code_blocks(tb_bits, rate);
    let bits = blocks.count * blocks.bits;
    if bits > soft.coded_bits {
        return 1.0;
    }
    let rate = bits as f32 / soft.coded_bits as f32;
    let above = soft.information / soft.coded_bits as f32 - rate - line(&GAP, rate);
    1.0 - power(1.0 - error(above, line(&WIDTH, rate), blocks.bits), blocks.count)
}

/// Returns the largest MCS with an error rate of at most 10 % at an SINR in dB; MCS 0 if there is none.
#[inline]
pub fn mcs_at(table: McsTable, sinr_db: f32) -> u8 {
    mcs_sinrs_db(table).iter().rposition(|&least| least <= sinr_db).unwrap_or(0) as u8
}

/// Returns the minimum SINR in dB at which `mcs` has an error rate of at most 10 %.
#[inline]
pub fn mcs_sinr_db(table: McsTable, mcs: u8) -> f32 {
    mcs_sinrs_db(table)[usize::from(mcs)]
}

/// Returns the largest MCS with an error rate of at most 10 % at the minimum SINR of `cqi`, shifted by `offset_db` (the
/// outer loop's); MCS 0 if there is none.
#[inline]
pub fn mcs_for(table: McsTable, cqi: u8, offset_db: f32) -> u8 {
    mcs_at(table, cqi_sinr_db(table, cqi) + offset_db)
}

/// Returns the minimum SINR in dB, on a flat channel, that gives a CQI, 0 to 15. CQI 0 stands for 1 dB less than CQI 1
/// requires.
#[inline]
pub fn cqi_sinr_db(table: McsTable, cqi: u8) -> f32 {
    let needs = cqi_needs(table);
    usize::from(cqi).checked_sub(1).map_or(needs[0].0 - 1.0, |i| needs[i].0)
}

/// Returns the largest CQI, 1 to 15, at which a block on all resource blocks has an error rate of at most 10 %; 0 if
/// there is none. 38.214 5.2.2.1.
pub fn wideband_cqi(table: McsTable, sinr: &Sinr) -> u8 {
    let all = match sinr {
        Sinr::Flat(_) => 1,
        Sinr::PerRb(all) => all.len() as u16,
    };
    subband_cqi(table, sinr, 0..all)
}

/// Returns [`wideband_cqi`] for a block on the resource blocks `prbs` only.
pub fn subband_cqi(table: McsTable, sinr: &Sinr, prbs: Range<u16>) -> u8 {
    let (schemes, needs) = (table.cqi(), cqi_needs(table));
    let mut known = None;
    for cqi in (0..schemes.len()).rev() {
        let modulation = schemes[cqi].modulation();
        let information = match known {
            Some((of, information)) if of == modulation => information,
            _ => sinr.information(modulation, prbs.clone()),
        };
        known = Some((modulation, information));
        if needs[cqi].1 <= information {
            return cqi as u8 + 1;
        }
    }
    0
}

const fn mcs_sinrs_db(table: McsTable) -> &'static [f32] {
    match table {
        McsTable::Qam64 => &QAM64_SINR_DB,
        McsTable::Qam256 => &QAM256_SINR_DB,
        McsTable::LowSpectralEfficiency => &LOW_SPECTRAL_EFFICIENCY_SINR_DB,
        McsTable::Qam1024 => &QAM1024_SINR_DB,
    }
}

const fn cqi_needs(table: McsTable) -> &'static [(f32, f32); 15] {
    match table {
        McsTable::Qam64 => &QAM64_CQI,
        McsTable::Qam256 | McsTable::Qam1024 => &QAM256_CQI,
        McsTable::LowSpectralEfficiency => &LOW_SPECTRAL_EFFICIENCY_CQI,
    }
}

// The minimum SINR in dB of each MCS.
const QAM64_SINR_DB: [f32; 29] = [
    -6.198, -5.050, -4.033, -2.578, -1.751, -0.834, 0.130, 1.148, 2.164, 2.964, 3.497, 4.104, 5.125, 5.976, 6.956,
    7.999, 8.490, 9.265, 9.735, 10.889, 11.798, 12.763, 13.583, 14.419, 15.531, 16.513, 17.536, 18.087, 19.477,
];
const QAM256_SINR_DB: [f32; 28] = [
    -6.198, -4.033, -1.751, 0.130, 2.164, 4.104, 5.125, 5.976, 6.956, 7.999, 8.490, 9.735, 10.889, 11.798, 12.763,
    13.583, 14.419, 15.531, 16.513, 17.536, 18.406, 19.151, 19.948, 21.223, 22.047, 23.407, 23.968, 25.199,
];
const LOW_SPECTRAL_EFFICIENCY_SINR_DB: [f32; 29] = [
    -12.217, -11.032, -10.187, -9.001, -8.144, -7.124, -6.198, -5.050, -4.033, -2.578, -1.751, -0.834, 0.130, 1.148,
    2.164, 3.497, 4.104, 5.125, 5.976, 6.956, 7.999, 9.265, 9.735, 10.889, 11.798, 12.763, 13.583, 14.419, 15.531,
];
const QAM1024_SINR_DB: [f32; 27] = [
    -6.198, -4.033, 0.130, 4.104, 5.976, 7.999, 9.735, 10.889, 11.798, 12.763, 13.583, 14.419, 15.531, 16.513, 17.536,
    18.406, 19.151, 19.948, 21.223, 22.047, 23.407, 23.968, 25.199, 26.330, 27.955, 29.246, 31.483,
];

// The minimum SINR in dB of CQI 1 to 15, and the mutual information at it.
const QAM64_CQI: [(f32, f32); 15] = [
    (-8.144, 0.102_859),
    (-6.198, 0.154_981),
    (-4.033, 0.239_214),
    (-1.751, 0.364_445),
    (0.130, 0.495_560),
    (2.164, 0.655_085),
    (4.104, 0.429_424),
    (5.976, 0.542_910),
    (7.999, 0.669_464),
    (9.735, 0.514_759),
    (11.798, 0.619_641),
    (13.583, 0.710_032),
    (15.531, 0.804_889),
    (17.536, 0.892_508),
    (19.477, 0.955_108),
];
const QAM256_CQI: [(f32, f32); 15] = [
    (-8.144, 0.102_859),
    (-4.033, 0.239_214),
    (0.130, 0.495_560),
    (4.104, 0.429_424),
    (5.976, 0.542_910),
    (7.999, 0.669_464),
    (9.735, 0.514_759),
    (11.798, 0.619_641),
    (13.583, 0.710_032),
    (15.531, 0.804_889),
    (17.536, 0.892_508),
    (19.151, 0.745_974),
    (21.223, 0.828_591),
    (23.407, 0.907_225),
    (25.199, 0.956_573),
];
const LOW_SPECTRAL_EFFICIENCY_CQI: [(f32, f32); 15] = [
    (-12.217, 0.042_043),
    (-10.187, 0.065_970),
    (-8.144, 0.102_859),
    (-6.198, 0.154_981),
    (-4.033, 0.239_214),
    (-1.751, 0.364_445),
    (0.130, 0.495_560),
    (2.164, 0.655_085),
    (4.104, 0.429_424),
    (5.976, 0.542_910),
    (7.999, 0.669_464),
    (9.735, 0.514_759),
    (11.798, 0.619_641),
    (13.583, 0.710_032),
    (15.531, 0.804_889),
];

/// Resource blocks of the tables' blocks.
pub const REFERENCE_PRBS: u16 = 50;

/// Resource elements of each of them that carry data: twelve symbols of twelve subcarriers.
pub const REFERENCE_ELEMENTS: u32 = 144;
