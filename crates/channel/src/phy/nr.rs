//! From SINR to CQI, MCS and block errors of NR.
//!
//! The abstraction is that of LTE (see [`crate::phy`]) with LDPC codes: the information about a transport block is the
//! mean over all coded bits of all its transmissions, and each of its code blocks (38.212 5.2.2) is decoded with a
//! probability that is a normal distribution function of the information in excess of the code rate. Its mean and width
//! are calibrated with the block error rates that Sionna 2.2 publishes for the PDSCH over white noise: MCS tables 1 to
//! 4, code blocks of 24, 100, 500, 1000 and 2000 bits (`data/nr_bler_awgn_sionna.csv`; NVIDIA, Apache-2.0).
//!
//! # Accuracy
//!
//! The difference in dB between the SINR at which Sionna measured an error rate between 1 % and 95 % and the SINR at
//! which this module has that rate, over all schemes:
//!
//! | code block | points | root mean square | largest |
//! | ---------- | ------ | ---------------- | ------- |
//! | 2000 bits  | 61 | 0.08 dB | 0.23 dB |
//! | 1000 bits  | 72 | 0.08 dB | 0.22 dB |
//! | 500 bits   | 106 | 0.11 dB | 0.33 dB |
//! | 100 bits   | 222 | 0.14 dB | 0.51 dB |
//! | 24 bits    | 440 | 0.85 dB | 2.31 dB |
//!
//! At the error rate nearest to 10 % of each curve it is 0.12 dB (root mean square) and at most 0.38 dB from 100 bits
//! up. Part of it belongs to the modulation, which one curve for all ignores: QPSK needs 0.1 dB more than here and
//! 256QAM 0.05 dB less. Short code blocks at code rates above 0.8 are the least certain. The curves of 24 bits were not
//! used for calibration, because NR has no code block below 40 bits.
//!
//! The 10 % points of `data/nr_mcs_snr_thresholds_awgn.csv`, interpolated in the same curves, differ by 0.14 dB (root
//! mean square) and at most 0.35 dB.
//!
//! # Extrapolation to larger code blocks
//!
//! NR's code blocks have up to 8448 bits, and Sionna's curves end at 2000. From 500 to 2000 bits the information at an
//! error rate of one half does not move by more than the curves' own uncertainty: what a large code block gains is
//! steepness. Beyond 2000 bits the mean is therefore constant and the width continues to fall with the square root of
//! the size. The SINR for an error rate of 10 % of a code block approaches the information-theoretic limit by 0.14 dB
//! from 2000 to 8448 bits; the tables of 5G-LENA, which lie 2 to 3 dB above Sionna's and are not used, fall by the same
//! 0.14 dB on average between these sizes.
//!
//! # Repetitions and lower code rates
//!
//! A code block of base graph 1 has three coded bits for each of its bits, one of base graph 2 has five. Transmissions
//! are assumed to repeat coded bits only after all of them were sent, and then evenly. A repetition adds energy and not
//! information: r transmissions of a coded bit with the information that QPSK has at an SINR carry together what QPSK
//! has at r times this SINR. This applies to retransmissions and to the first transmission at a lower code rate.
//!
//! Sionna's curves have code rates from 0.245. Down to 0.2 the distance from the limit is constant in dB.
//!
//! # Deviations
//!
//! 1. The redundancy versions 0, 2, 3 and 1 overlap in the circular buffer before all coded bits were sent (38.212
//!    5.4.2.1), and version 0 has more of the systematic bits than the others. Both are ignored.
//! 2. The circular buffer holds all coded bits. The standard limits it to a code rate of 2/3 for the largest transport
//!    blocks of a carrier (limited-buffer rate matching, 38.212 5.4.2.1), whose retransmissions then only add energy.
//! 3. All tables of CQI have a target of 10 %. That of the table with low spectral efficiency is 0.001 % (38.214
//!    5.2.2.1).
//! 4. Error floors are not modelled: below 1 % the curves of short code blocks at high code rates are flatter.
//! 5. A UE decodes at any code rate below one. The standard lets it skip a code rate above 0.95 (38.214 5.1.3).
//! 6. A transport block is repeated as a whole: there is no feedback for code block groups.
//! 7. With 1024QAM, CQI is that of 256QAM (see [`McsTable::cqi`]), and only the outer loop's offset selects an MCS with
//!    1024QAM. Sionna's curves end at 25 dB, so that for 1024QAM only three points of code blocks of 100 and 500 bits
//!    could be compared.

use core::ops::Range;

use super::{CERTAIN, Sinr, Soft, mutual_information};
use crate::tables::nr::{Allocation, McsTable, code_blocks, has_base_graph_2, tbs};
use crate::tables::{FIRST_OCTAVE, INFORMATION, Modulation, STEPS};

pub use super::TARGET;

/// The redundancy versions of the transmissions of a transport block, in this order. 38.214 5.1.2.1.
pub const REDUNDANCY_VERSIONS: [u8; 4] = [0, 2, 3, 1];

/// The allocation for which [`mcs_sinr_db`] and [`cqi_sinr_db`] are valid: 50 resource blocks in a slot with one symbol
/// for control, one for DMRS and twelve for data, and one layer.
pub const REFERENCE: Allocation = Allocation { prbs: 50, symbols: 13, dmrs: 12, overhead: 0, layers: 1 };

/// The error curve of a code block at a code rate.
struct Point {
    rate: f32,
    /// Information needed in excess of the code rate for an error rate of one half, in a long code block.
    gap: f32,
    /// The increase of the gap in a short code block: this over K.
    short: f32,
    /// The standard deviation of the information needed: this over the square root of K.
    width: f32,
}

const fn point(rate: f32, gap: f32, short: f32, width: f32) -> Point {
    Point { rate, gap, short, width }
}

/// The error curves by code rate; linear in between.
const CURVES: [Point; 8] = [
    point(0.2, 0.046, 0.0, 0.42),
    point(0.25, 0.053, 0.0, 0.48),
    point(0.35, 0.049, 0.0, 0.52),
    point(0.5, 0.0475, 0.0, 0.54),
    point(0.65, 0.046, 0.0, 0.56),
    point(0.8, 0.0285, 1.8, 0.50),
    point(0.93, 0.0185, 2.5, 0.34),
    point(1.0, 0.012, 2.5, 0.33),
];

/// The gap is at most this times the redundancy, so that the shortest code block can be decoded at any code rate.
const MAX_GAP: f32 = 0.4;

impl Point {
    /// Returns the curve at a code rate from 0.2 to 1.
    #[inline]
    fn at(rate: f32) -> Point {
        let mut piece = 1;
        while piece < CURVES.len() - 1 && CURVES[piece].rate < rate {
            piece += 1;
        }
        let (low, high) = (&CURVES[piece - 1], &CURVES[piece]);
        let way = (rate - low.rate) / (high.rate - low.rate);
        let between = |a: f32, b: f32| a + way * (b - a);
        point(rate, between(low.gap, high.gap), between(low.short, high.short), between(low.width, high.width))
    }

    /// Returns the error rate of a code block of `bits` with a mean `information` per coded bit.
    #[inline]
    fn error(&self, bits: u32, information: f32) -> f64 {
        let bits = bits as f32;
        let gap = (self.gap + self.short / bits).min(MAX_GAP * (1.0 - self.rate));
        // Coded bits that are certain have no deviation.
        let width = (self.width / bits.sqrt()).min(1.0 - information).max(f32::MIN_POSITIVE);
        let deviations = f64::from((information - self.rate - gap) / width);
        if deviations > CERTAIN {
            0.0
        } else if deviations < -CERTAIN {
            1.0
        } else {
            0.5 * libm::erfc(deviations * core::f64::consts::FRAC_1_SQRT_2)
        }
    }
}

/// Returns the probability, 0 to 1, that a transport block of `tb_bits`, excluding CRCs, is not decoded. `rate` is the
/// target code rate of its first transmission in 1/2048, which decides on the base graph.
pub fn block_error(tb_bits: u32, rate: u16, soft: &Soft) -> f64 {
    let blocks = code_blocks(tb_bits, rate);
    let bits = blocks.count * blocks.bits;
    if bits >= soft.coded_bits {
        return 1.0;
    }
    let mut coded = soft.coded_bits as f32;
    let mut information = soft.information / coded;
    let most = (bits * if has_base_graph_2(tb_bits, rate) { 5 } else { 3 }) as f32;
    if coded > most {
        information = repeated(information, coded / most);
        coded = most;
    }
    let error = Point::at(bits as f32 / coded).error(blocks.bits, information);
    1.0 - power(1.0 - error, blocks.count)
}

/// Returns the information about a coded bit that is sent `times` with a mean of `information`.
fn repeated(information: f32, times: f32) -> f32 {
    let table = &INFORMATION[Modulation::Qpsk as usize];
    let above = table.partition_point(|&entry| entry < information);
    if above == table.len() {
        return 1.0;
    }
    // The entry's number is an SINR's exponent and the leading bits of its mantissa.
    let sinr_of = |entry: usize| {
        let (octave, step) = (entry as u32 / STEPS, entry as u32 % STEPS);
        libm::ldexpf(1.0 + step as f32 / STEPS as f32, FIRST_OCTAVE + octave as i32)
    };
    let sinr = match above.checked_sub(1) {
        None => information / table[0] * sinr_of(0),
        Some(below) => {
            let way = (information - table[below]) / (table[above] - table[below]);
            sinr_of(below) + way * (sinr_of(above) - sinr_of(below))
        }
    };
    mutual_information(Modulation::Qpsk, times * sinr)
}

/// Adds a transmission of `coded_bits` with a mean of `information` (0 to 1) per coded bit to what a receiver knows
/// about a transport block of `tb_bits` at a code rate of `rate` in 1/2048; returns the probability, 0 to 1, that it
/// still cannot be decoded. Discards earlier transmissions if decoding is more likely without them.
#[inline]
pub fn receive(soft: &mut Soft, tb_bits: u32, rate: u16, information: f32, coded_bits: u32) -> f64 {
    soft.receive_with(information, coded_bits, |soft| block_error(tb_bits, rate, soft))
}

/// Returns the coded bits of an allocation, on all its layers: all resource elements carry data except those for DMRS
/// and overhead.
#[inline]
pub fn coded_bits(allocation: &Allocation, modulation: Modulation) -> u32 {
    let unavailable = u32::from(allocation.dmrs) + u32::from(allocation.overhead);
    let elements = (12 * u32::from(allocation.symbols)).saturating_sub(unavailable);
    elements * u32::from(allocation.prbs) * u32::from(allocation.layers) * modulation.bits()
}

/// Returns the largest MCS with an error rate of at most 10 % at an SINR in dB; MCS 0 if there is none.
#[inline]
pub fn mcs_at(table: McsTable, sinr_db: f32) -> u8 {
    mcs_sinrs(table).partition_point(|&least| least <= sinr_db).saturating_sub(1) as u8
}

/// Returns the minimum SINR in dB at which an MCS has an error rate of at most 10 % with the [`REFERENCE`] allocation on
/// a flat channel.
///
/// # Panics
///
/// If the table has no such MCS.
#[inline]
pub fn mcs_sinr_db(table: McsTable, mcs: u8) -> f32 {
    mcs_sinrs(table)[usize::from(mcs)]
}

/// Returns the bits per resource element and layer that the schemes of a table carry at an SINR in dB, linear between
/// their minimum SINRs ([`mcs_sinr_db`]). Below the first scheme's, they fall with the power, as repetitions of its blocks
/// make them.
pub fn efficiency_at(table: McsTable, sinr_db: f32) -> f32 {
    let (sinrs, schemes) = (mcs_sinrs(table), table.schemes());
    let of = |mcs: usize| schemes[mcs].efficiency() as f32;
    match sinrs.partition_point(|&least| least <= sinr_db) {
        0 => of(0) * libm::exp10f((sinr_db - sinrs[0]) / 10.0),
        above if above == sinrs.len() => of(above - 1),
        above => {
            let (low, high) = (sinrs[above - 1], sinrs[above]);
            of(above - 1) + (sinr_db - low) / (high - low) * (of(above) - of(above - 1))
        }
    }
}

/// Returns the probability, 0 to 1, that a block with an MCS and the [`REFERENCE`] allocation cannot be decoded at an SINR in
/// dB on a flat channel.
///
/// # Panics
///
/// If the table has no such MCS.
pub fn first_error(table: McsTable, mcs: u8, sinr_db: f32) -> f64 {
    let scheme = table.schemes()[usize::from(mcs)];
    let modulation = scheme.modulation();
    let mut soft = Soft::default();
    let information = mutual_information(modulation, crate::linear(sinr_db.into()) as f32);
    soft.add(information, coded_bits(&REFERENCE, modulation));
    block_error(tbs(scheme, &REFERENCE, 0), scheme.rate, &soft)
}

/// Returns the largest MCS with an error rate of at most 10 % at the minimum SINR of `cqi`, shifted by `olla_offset_db`
/// (the outer loop's); MCS 0 if there is none.
#[inline]
pub fn mcs_for(table: McsTable, cqi: u8, olla_offset_db: f32) -> u8 {
    mcs_at(table, cqi_sinr_db(table, cqi) + olla_offset_db)
}

/// Returns the largest CQI, 1 to 15, at which a block on all resource blocks has an error rate of at most 10 %; 0 if
/// there is none. 38.214 5.2.2.1.
pub fn cqi_at(table: McsTable, sinr: &Sinr) -> u8 {
    let all = match sinr {
        Sinr::Flat(_) => 1,
        Sinr::PerRb(all) => all.len() as u16,
    };
    subband_cqi_at(table, sinr, 0..all)
}

/// Returns [`cqi_at`] for a block on the resource blocks `prbs` only.
pub fn subband_cqi_at(table: McsTable, sinr: &Sinr, prbs: Range<u16>) -> u8 {
    let mut known = None;
    for (index, (scheme, &least)) in table.cqi().iter().zip(cqi_information(table)).enumerate().rev() {
        let modulation = scheme.modulation();
        let information = match known {
            Some((of, information)) if of == modulation => information,
            _ => sinr.information(modulation, prbs.clone()),
        };
        if least <= information {
            return index as u8 + 1;
        }
        known = Some((modulation, information));
    }
    0
}

/// Returns the minimum SINR in dB, on a flat channel, that gives a CQI, 0 to 15, with the [`REFERENCE`] allocation. CQI
/// 0 stands for 1 dB less than CQI 1 requires.
#[inline]
pub fn cqi_sinr_db(table: McsTable, cqi: u8) -> f32 {
    let sinrs = match table {
        McsTable::Qam64 => &CQI_QAM64.0,
        McsTable::Qam256 | McsTable::Qam1024 => &CQI_QAM256.0,
        McsTable::LowSpectralEfficiency => &CQI_LOW_SPECTRAL_EFFICIENCY.0,
    };
    usize::from(cqi).checked_sub(1).map_or(sinrs[0] - 1.0, |i| sinrs[i])
}

const fn cqi_information(table: McsTable) -> &'static [f32; 15] {
    match table {
        McsTable::Qam64 => &CQI_QAM64.1,
        McsTable::Qam256 | McsTable::Qam1024 => &CQI_QAM256.1,
        McsTable::LowSpectralEfficiency => &CQI_LOW_SPECTRAL_EFFICIENCY.1,
    }
}

/// Returns the minimum SINRs in dB of the schemes of a table, which grow with the MCS.
const fn mcs_sinrs(table: McsTable) -> &'static [f32] {
    match table {
        McsTable::Qam64 => &MCS_QAM64,
        McsTable::Qam256 => &MCS_QAM256,
        McsTable::LowSpectralEfficiency => &MCS_LOW_SPECTRAL_EFFICIENCY,
        McsTable::Qam1024 => &MCS_QAM1024,
    }
}

/// The minimum SINRs in dB of the schemes of [`McsTable::Qam64`].
const MCS_QAM64: [f32; 29] = [
    -5.781, -4.759, -3.885, -2.554, -1.714, -0.854, 0.108, 1.126, 2.132, 3.003, 3.481, 4.076, 5.095, 5.945, 6.923,
    7.974, 8.529, 9.226, 9.696, 10.848, 11.755, 12.731, 13.645, 14.476, 15.547, 16.500, 17.521, 18.070, 19.454,
];

/// The minimum SINRs in dB of the schemes of [`McsTable::Qam256`].
const MCS_QAM256: [f32; 28] = [
    -5.781, -3.885, -1.714, 0.108, 2.132, 4.076, 5.095, 5.945, 6.923, 7.974, 8.529, 9.696, 10.848, 11.755, 12.731,
    13.645, 14.476, 15.547, 16.500, 17.521, 18.480, 19.221, 19.992, 21.220, 22.032, 23.389, 23.946, 25.170,
];

/// The minimum SINRs in dB of the schemes of [`McsTable::LowSpectralEfficiency`].
const MCS_LOW_SPECTRAL_EFFICIENCY: [f32; 29] = [
    -11.453, -10.308, -9.499, -8.373, -7.570, -6.629, -5.781, -4.759, -3.885, -2.554, -1.714, -0.854, 0.108, 1.126,
    2.132, 3.481, 4.076, 5.095, 5.945, 6.923, 7.974, 9.226, 9.696, 10.848, 11.755, 12.731, 13.645, 14.476, 15.547,
];

/// The minimum SINRs in dB of the schemes of [`McsTable::Qam1024`].
const MCS_QAM1024: [f32; 27] = [
    -5.781, -3.885, 0.108, 4.076, 5.945, 7.974, 9.696, 10.848, 11.755, 12.731, 13.645, 14.476, 15.547, 16.500, 17.521,
    18.480, 19.221, 19.992, 21.220, 22.032, 23.389, 23.946, 25.170, 26.327, 27.934, 29.222, 31.484,
];

/// The minimum SINRs in dB of CQI 1 to 15, and the mutual information there.
type CqiTable = ([f32; 15], [f32; 15]);

const CQI_QAM64: CqiTable = (
    [-7.570, -5.781, -3.885, -1.714, 0.108, 2.132, 4.076, 5.945, 7.974, 9.696, 11.755, 13.645, 15.547, 17.521, 19.454],
    [
        0.116_246, 0.168_841, 0.246_155, 0.366_767, 0.493_936, 0.652_605, 0.427_773, 0.540_976, 0.667_942, 0.512_768,
        0.617_450, 0.713_157, 0.805_682, 0.891_935, 0.954_555,
    ],
);

const CQI_QAM256: CqiTable = (
    [-7.570, -3.885, 0.108, 4.076, 5.945, 7.974, 9.696, 11.755, 13.645, 15.547, 17.521, 19.221, 21.220, 23.389, 25.170],
    [
        0.116_246, 0.246_155, 0.493_936, 0.427_773, 0.540_976, 0.667_942, 0.512_768, 0.617_450, 0.713_157, 0.805_682,
        0.891_935, 0.748_875, 0.828_489, 0.906_640, 0.955_910,
    ],
);

const CQI_LOW_SPECTRAL_EFFICIENCY: CqiTable = (
    [-11.453, -9.499, -7.570, -5.781, -3.885, -1.714, 0.108, 2.132, 4.076, 5.945, 7.974, 9.696, 11.755, 13.645, 15.547],
    [
        0.049_852, 0.076_720, 0.116_246, 0.168_841, 0.246_155, 0.366_767, 0.493_936, 0.652_605, 0.427_773, 0.540_976,
        0.667_942, 0.512_768, 0.617_450, 0.713_157, 0.805_682,
    ],
);

/// Returns `base` to the power of `exponent`.
#[inline]
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}
