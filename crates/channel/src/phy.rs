//! From SINR to CQI, MCS and block errors: of LTE here, of NR in [`nr`].
//!
//! Each resource block's SINR gives a mutual information per coded bit, and a receiver's information about a transport
//! block is the mean over all coded bits sent for it in all transmissions (mutual information effective SINR mapping
//! with incremental redundancy: Wan, Tsai, Almgren, "A Fading-Insensitive Performance Metric for a Unified Link Quality
//! Model", WCNC 2006). The decoding probability of a code block of K bits at rate R is a normal distribution function
//! of that information, whose mean exceeds R by a gap and whose width decreases with the square root of K (finite block
//! length: Polyanskiy, Poor, Verdu, IEEE Trans. Inf. Theory 56(5), 2010). A transport block is decoded if all its code
//! blocks are.
//!
//! The information is computed, not fitted. Gap and width are round numbers that match the published SNRs for a block
//! error rate of 10 % at each CQI within half a decibel; with information instead of SNR, one curve serves all
//! modulations.
//!
//! The gap depends on the mean code rate. A transmission whose coded bits carry no information, as in a deep fade,
//! would lower that rate and increase the gap, so that the block needed more information than without it. A receiver
//! gives such bits no weight: [`Soft::receive`] omits them.
//!
//! Assumptions:
//! 1. A resource block pair has 138 resource elements for downlink data: 168 minus two control symbols and the
//!    reference signals of one antenna port. The CQI's definition has three control symbols (36.213 7.2.3), but then
//!    MCS 28 would have more bits than coded bits. For uplink data it has 144: twelve of fourteen symbols.
//!    Synchronisation, broadcast, sounding and random access take no resources.
//! 2. Control channels and HARQ feedback are free of errors.
//! 3. A receiver's soft buffer has room for all coded bits.
//! 4. With rank 2, each of the two blocks is evaluated separately, with the SINR of its layer given by the caller.

pub mod nr;

use core::ops::Range;

use crate::tables::lte::{CQI, MAX_CODE_BLOCK, code_block_size, smaller_code_block_size};
use crate::tables::{Direction, ENTRIES, FIRST_OCTAVE, INFORMATION, Modulation, STEPS};

/// Resource elements of a resource block pair that carry the downlink's data.
pub const DOWNLINK_ELEMENTS: u32 = 138;

/// Resource elements of a resource block pair that carry the uplink's data.
pub const UPLINK_ELEMENTS: u32 = 144;

/// Bits of the CRC of a transport block, and of each code block if there are several. 36.212 5.1.
const CRC: u32 = 24;

/// The information needed in excess of the code rate for a block error rate of one half, by code rate, at [`GAP_BLOCK`]
/// bits; linear in between.
const GAP: [(f32, f32); 7] =
    [(0.0, 0.0), (0.08, 0.048), (0.2, 0.077), (0.6, 0.080), (0.75, 0.060), (0.93, 0.030), (1.0, 0.012)];

/// The code block size in bits for which [`GAP`] is valid.
const GAP_BLOCK: f32 = 2560.0;

/// The increase of the gap for shorter blocks: this times the width's factor over K.
const SHORT_BLOCK: f32 = 12.0;

/// The width of the error curve: this over the square root of K, by code rate.
const WIDTH: [(f32, f32); 7] = [(0.0, 0.0), (0.08, 0.2), (0.2, 0.4), (0.45, 0.6), (0.7, 0.6), (0.93, 0.4), (1.0, 0.35)];

/// Number of standard deviations beyond which the outcome is certain.
const CERTAIN: f64 = 7.0;

/// The target block error rate of CQI and MCS.
pub const TARGET: f64 = 0.1;

/// Linear SINR over a carrier's resource blocks. The memory is reused between calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Sinr {
    /// The same on all resource blocks.
    Flat(f32),
    /// One value per resource block.
    PerRb(Box<[f32]>),
}

impl Default for Sinr {
    fn default() -> Sinr {
        Sinr::Flat(0.0)
    }
}

impl Sinr {
    /// Returns the SINR of resource block `prb`.
    #[inline]
    pub fn at(&self, prb: u16) -> f32 {
        match self {
            Sinr::Flat(sinr) => *sinr,
            Sinr::PerRb(all) => all[usize::from(prb)],
        }
    }

    /// Returns the linear mean over all resource blocks.
    pub fn mean(&self) -> f32 {
        match self {
            Sinr::Flat(sinr) => *sinr,
            Sinr::PerRb(all) => all.iter().sum::<f32>() / all.len() as f32,
        }
    }

    /// Returns the linear mean over the resource blocks `prbs`.
    pub fn mean_over(&self, prbs: Range<u16>) -> f32 {
        match self {
            Sinr::Flat(sinr) => *sinr,
            Sinr::PerRb(all) => {
                let own = &all[usize::from(prbs.start)..usize::from(prbs.end)];
                own.iter().sum::<f32>() / own.len() as f32
            }
        }
    }

    /// Multiplies all values by `factor`.
    pub fn scale(&mut self, factor: f32) {
        match self {
            Sinr::Flat(sinr) => *sinr *= factor,
            Sinr::PerRb(all) => all.iter_mut().for_each(|sinr| *sinr *= factor),
        }
    }

    /// Returns the values of `prbs` resource blocks, so that each can be changed.
    pub fn per_block(&mut self, prbs: usize) -> &mut [f32] {
        if let Sinr::Flat(sinr) = *self {
            *self = Sinr::PerRb(vec![sinr; prbs].into());
        }
        match self {
            Sinr::PerRb(all) => all,
            Sinr::Flat(_) => &mut [],
        }
    }

    /// Returns the mean mutual information per coded bit, 0 to 1, of a block sent on `prbs`.
    #[inline]
    pub fn information(&self, modulation: Modulation, prbs: impl IntoIterator<Item = u16>) -> f32 {
        match self {
            Sinr::Flat(sinr) => mutual_information(modulation, *sinr),
            Sinr::PerRb(all) => {
                let (mut sum, mut count) = (0.0, 0u32);
                // Neighbouring blocks without fading have the same SINR.
                let (mut last, mut each) = (f32::NAN, 0.0);
                for prb in prbs {
                    let sinr = all[usize::from(prb)];
                    if sinr != last {
                        (last, each) = (sinr, mutual_information(modulation, sinr));
                    }
                    sum += each;
                    count += 1;
                }
                sum / count.max(1) as f32
            }
        }
    }
}

/// A receiver's soft information about a transport block: the sum over all its transmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Soft {
    /// Bits of mutual information.
    pub information: f32,
    /// Coded bits sent.
    pub coded_bits: u32,
}

impl Soft {
    /// Adds a transmission of `coded_bits` with a mean of `information` (0 to 1) per coded bit.
    #[inline]
    pub fn add(&mut self, information: f32, coded_bits: u32) {
        self.information += information * coded_bits as f32;
        self.coded_bits += coded_bits;
    }

    /// Adds a transmission of a block of `tb_bits`, as in [`Soft::add`]; returns the probability, 0 to 1, that it still
    /// cannot be decoded. Discards earlier transmissions if decoding is more likely without them.
    pub fn receive(&mut self, tb_bits: u32, information: f32, coded_bits: u32) -> f64 {
        self.receive_with(information, coded_bits, |soft| block_error(tb_bits, soft))
    }

    /// Like [`Soft::receive`], with the function that gives the probability.
    #[inline]
    pub fn receive_with(&mut self, information: f32, coded_bits: u32, error_of: impl Fn(&Soft) -> f64) -> f64 {
        let (mut alone, held) = (Soft::default(), self.coded_bits > 0);
        alone.add(information, coded_bits);
        self.add(information, coded_bits);
        let error = error_of(self);
        if held {
            let without = error_of(&alone);
            if without < error {
                *self = alone;
                return without;
            }
        }
        error
    }
}

/// Returns the coded bits of an allocation of `prbs` resource blocks in a subframe.
#[inline]
pub const fn coded_bits(direction: Direction, modulation: Modulation, prbs: u16) -> u32 {
    let elements = match direction {
        Direction::Downlink => DOWNLINK_ELEMENTS,
        Direction::Uplink => UPLINK_ELEMENTS,
    };
    elements * modulation.bits() * prbs as u32
}

/// Returns the mutual information per coded bit, 0 to 1, at a linear SINR.
#[inline]
pub fn mutual_information(modulation: Modulation, sinr: f32) -> f32 {
    /// Mantissa bits below those that index the table.
    const REST: u32 = 23 - STEPS.ilog2();
    const FIRST: i32 = (127 + FIRST_OCTAVE) * STEPS as i32;
    let table = &INFORMATION[modulation as usize];
    // A float's exponent and leading mantissa bits are the table index, the rest the position between entries.
    let bits = sinr.to_bits();
    let entry = (bits as i32 >> REST) - FIRST;
    if entry < 0 {
        const LEAST: f32 = 1.0 / (1 << -FIRST_OCTAVE) as f32;
        return (sinr * (table[0] / LEAST)).max(0.0);
    }
    let entry = entry as usize;
    if entry >= ENTRIES - 1 {
        return table[ENTRIES - 1];
    }
    let way = (bits & ((1 << REST) - 1)) as f32 * (1.0 / (1 << REST) as f32);
    table[entry] + way * (table[entry + 1] - table[entry])
}

/// The segmentation of a transport block into code blocks. 36.212 5.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeBlocks {
    /// Number of code blocks of the larger size.
    pub count: u32,
    /// The larger size K+ in bits, including CRC.
    pub size: u32,
    /// Number of code blocks of the smaller size.
    pub smaller_count: u32,
    /// The smaller size K- in bits, including CRC.
    pub smaller_size: u32,
    /// Bits of the transport block including all CRCs.
    pub bits: u32,
}

/// Returns the code blocks of a transport block of `tb_bits`, excluding its own CRC.
#[inline]
pub fn code_blocks(tb_bits: u32) -> CodeBlocks {
    let bits = tb_bits + CRC;
    if bits <= MAX_CODE_BLOCK {
        return CodeBlocks { count: 1, size: code_block_size(bits), smaller_count: 0, smaller_size: 0, bits };
    }
    let count = bits.div_ceil(MAX_CODE_BLOCK - CRC);
    let bits = bits + count * CRC;
    let size = code_block_size(bits.div_ceil(count));
    let smaller_size = smaller_code_block_size(size);
    let smaller_count = (count * size - bits) / (size - smaller_size);
    CodeBlocks { count: count - smaller_count, size, smaller_count, smaller_size, bits }
}

/// Returns the probability, 0 to 1, that a transport block of `tb_bits` is not decoded.
pub fn block_error(tb_bits: u32, soft: &Soft) -> f64 {
    let blocks = code_blocks(tb_bits);
    if blocks.bits > soft.coded_bits {
        return 1.0;
    }
    let rate = blocks.bits as f32 / soft.coded_bits as f32;
    let curve = Curve { gap: line(&GAP, rate), width: line(&WIDTH, rate) };
    let above = soft.information / soft.coded_bits as f32 - rate;
    let mut decoded = power(1.0 - curve.error(above, blocks.size), blocks.count);
    if blocks.smaller_count > 0 {
        decoded *= power(1.0 - curve.error(above, blocks.smaller_size), blocks.smaller_count);
    }
    1.0 - decoded
}

/// Returns the largest CQI, 1 to 15, at which a block on all resource blocks has an error rate of at most 10 %; 0 if
/// there is none. 36.213 7.2.3.
pub fn wideband_cqi(sinr: &Sinr) -> u8 {
    let all = match sinr {
        Sinr::Flat(_) => 1,
        Sinr::PerRb(all) => all.len() as u16,
    };
    subband_cqi(sinr, 0..all)
}

/// Returns [`wideband_cqi`] for a block on the resource blocks `prbs` only.
pub fn subband_cqi(sinr: &Sinr, prbs: Range<u16>) -> u8 {
    for modulation in Modulation::LTE.into_iter().rev() {
        let information = sinr.information(modulation, prbs.clone());
        let fits = |&cqi: &usize| CQI[cqi].0 == modulation && CQI_INFORMATION[cqi] <= information;
        if let Some(cqi) = (0..CQI.len()).rev().find(fits) {
            return cqi as u8 + 1;
        }
    }
    0
}

/// Returns the largest MCS with an error rate of at most 10 % at the minimum SINR of `cqi`, shifted by `olla_offset_db`
/// (the outer loop's); MCS 0 if there is none.
#[inline]
pub fn mcs_for(cqi: u8, direction: Direction, olla_offset_db: f32) -> u8 {
    mcs_at(cqi_sinr_db(cqi) + olla_offset_db, direction)
}

/// Returns the largest MCS with an error rate of at most 10 % at an SINR in dB; MCS 0 if there is none.
#[inline]
pub fn mcs_at(sinr_db: f32, direction: Direction) -> u8 {
    MCS_SINR_DB[direction as usize].iter().rposition(|&least| least <= sinr_db).unwrap_or(0) as u8
}

/// Like [`mcs_at`], for the uplink of a UE without 64QAM: from MCS 21 on it sends the same bits with 16QAM (36.213
/// 8.6.1), where MCS 24 and above would exceed a code rate of 0.93.
#[inline]
pub fn mcs_at_16qam(sinr_db: f32) -> u8 {
    match UPLINK_16QAM_SINR_DB.iter().rposition(|&least| least <= sinr_db) {
        Some(above) => FIRST_UPLINK_64QAM + above as u8,
        None => mcs_at(sinr_db, Direction::Uplink).min(FIRST_UPLINK_64QAM - 1),
    }
}

/// The first MCS of the uplink with 64QAM.
const FIRST_UPLINK_64QAM: u8 = 21;

/// [`MCS_SINR_DB`] of MCS 21 to 23 of the uplink, sent with 16QAM.
pub const UPLINK_16QAM_SINR_DB: [f32; 3] = [10.525, 11.336, 13.087];

/// Returns the probability, 0 to 1, that a block with an MCS on 50 resource blocks of a flat channel cannot be decoded at an
/// SINR in dB: [`TARGET`] at that of [`MCS_SINR_DB`].
pub fn first_error(direction: Direction, mcs: u8, sinr_db: f32) -> f64 {
    const PRBS: u16 = 50;
    let scheme = crate::tables::lte::mcs(direction, mcs);
    let information = mutual_information(scheme.modulation, crate::linear(sinr_db.into()) as f32);
    let mut soft = Soft::default();
    soft.add(information, coded_bits(direction, scheme.modulation, PRBS));
    block_error(crate::tables::lte::tbs(scheme.i_tbs, PRBS), &soft)
}

/// Returns the minimum SINR in dB, on a flat channel, that gives a CQI, 0 to 15. CQI 0 stands for 1 dB less than CQI 1
/// requires.
#[inline]
pub fn cqi_sinr_db(cqi: u8) -> f32 {
    usize::from(cqi).checked_sub(1).map_or(CQI_SINR_DB[0] - 1.0, |i| CQI_SINR_DB[i])
}

/// The minimum SINR in dB at which MCS 0 to 28 of downlink and uplink have an error rate of at most 10 % on 50 resource
/// blocks of a flat channel.
pub const MCS_SINR_DB: [[f32; 29]; 2] = [
    [
        -5.912, -4.894, -4.025, -2.921, -1.968, -1.111, -0.319, 0.843, 1.537, 2.461, 3.258, 3.753, 4.470, 5.393, 6.371,
        7.029, 7.689, 8.659, 9.231, 10.163, 10.956, 11.674, 12.395, 13.614, 14.412, 14.818, 15.773, 16.313, 18.834,
    ],
    [
        -6.079, -5.074, -4.215, -3.087, -2.152, -1.313, -0.540, 0.594, 1.268, 2.151, 2.800, 3.512, 4.209, 5.103, 6.052,
        6.684, 7.316, 7.949, 8.930, 9.747, 10.525, 11.247, 11.935, 13.149, 13.926, 14.308, 15.219, 15.736, 17.929,
    ],
];

/// The same for CQI 1 to 15, with block sizes according to the CQI's efficiency on 50 resource blocks of 120 elements.
pub const CQI_SINR_DB: [f32; 15] =
    [-6.868, -5.289, -3.292, -1.355, 0.557, 2.597, 4.662, 6.442, 8.477, 10.431, 12.430, 14.190, 16.081, 18.052, 20.190];

/// The mutual information at these SINRs.
const CQI_INFORMATION: [f32; 15] = [
    0.134_811, 0.186_577, 0.275_576, 0.390_107, 0.528_206, 0.689_348, 0.462_449, 0.571_937, 0.699_153, 0.549_868,
    0.651_807, 0.740_169, 0.830_386, 0.911_870, 0.970_612,
];

/// The block error curve at a code rate.
struct Curve {
    gap: f32,
    width: f32,
}

impl Curve {
    /// Returns the error rate of a code block of `size` bits with this much information per coded bit above its code
    /// rate.
    #[inline]
    fn error(&self, above: f32, size: u32) -> f64 {
        let size = size as f32;
        let short = SHORT_BLOCK * self.width * (1.0 / size - 1.0 / GAP_BLOCK);
        let deviations = f64::from((above - self.gap - short) * size.sqrt() / self.width);
        if deviations > CERTAIN {
            0.0
        } else if deviations < -CERTAIN {
            1.0
        } else {
            0.5 * libm::erfc(deviations * core::f64::consts::FRAC_1_SQRT_2)
        }
    }
}

/// Returns the piecewise linear function through `points` at `x`; the first point has x = 0 and the last is above any
/// `x`.
#[inline]
fn line(points: &[(f32, f32); 7], x: f32) -> f32 {
    let mut piece = 1;
    while piece < points.len() - 1 && points[piece].0 < x {
        piece += 1;
    }
    let ((x0, y0), (x1, y1)) = (points[piece - 1], points[piece]);
    y0 + (x - x0) * (y1 - y0) / (x1 - x0)
}

/// Returns `base` to the power of a small `exponent`.
#[inline]
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}
