//! Modulation and coding schemes and channel quality indicators: 36.213 Tables 7.1.7.1-1, 8.6.1-1 and 7.2.3-1.

use crate::tables::{Direction, Modulation};

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mcs {
    /// The modulation.
    pub modulation: Modulation,
    /// The row of the transport block size table.
    pub i_tbs: u8,
}

const fn scheme(modulation: Modulation, i_tbs: u8) -> Mcs {
    Mcs { modulation, i_tbs }
}

/// Schemes of a direction from the MCS at which 16QAM begins and the one at which 64QAM does. Each modulation's first
/// scheme has the I_TBS of the last one of the modulation before.
const fn schemes(qam16: usize, qam64: usize) -> [Mcs; 29] {
    let mut all = [scheme(Modulation::Qpsk, 0); 29];
    let mut mcs = 1;
    while mcs < 29 {
        let i_tbs = mcs as u8 - (mcs >= qam16) as u8 - (mcs >= qam64) as u8;
        let modulation = if mcs >= qam64 {
            Modulation::Qam64
        } else if mcs >= qam16 {
            Modulation::Qam16
        } else {
            Modulation::Qpsk
        };
        all[mcs] = scheme(modulation, i_tbs);
        mcs += 1;
    }
    all
}

/// The downlink's MCS 0 to 28. 29 to 31 are retransmissions with the size of the first transmission and QPSK, 16QAM or
/// 64QAM. 36.213 Table 7.1.7.1-1.
pub const DOWNLINK_MCS: [Mcs; 29] = schemes(10, 17);

/// The uplink's MCS 0 to 28. 29 to 31 are retransmissions with redundancy version 1 to 3 and size and modulation of the
/// first transmission. 36.213 Table 8.6.1-1.
pub const UPLINK_MCS: [Mcs; 29] = schemes(11, 21);

/// The downlink's MCS `mcs`, 0 to 28.
#[inline]
pub fn dl_mcs(mcs: u8) -> Mcs {
    DOWNLINK_MCS[usize::from(mcs)]
}

/// The uplink's MCS `mcs`, 0 to 28.
#[inline]
pub fn ul_mcs(mcs: u8) -> Mcs {
    UPLINK_MCS[usize::from(mcs)]
}

/// The MCS `index`, 0 to 28, of a direction.
#[inline]
pub fn mcs(direction: Direction, index: u8) -> Mcs {
    match direction {
        Direction::Downlink => dl_mcs(index),
        Direction::Uplink => ul_mcs(index),
    }
}

/// CQI 1 to 15: modulation and 1024 times the code rate. 36.213 Table 7.2.3-1.
pub const CQI: [(Modulation, u16); 15] = [
    (Modulation::Qpsk, 78),
    (Modulation::Qpsk, 120),
    (Modulation::Qpsk, 193),
    (Modulation::Qpsk, 308),
    (Modulation::Qpsk, 449),
    (Modulation::Qpsk, 602),
    (Modulation::Qam16, 378),
    (Modulation::Qam16, 490),
    (Modulation::Qam16, 616),
    (Modulation::Qam64, 466),
    (Modulation::Qam64, 567),
    (Modulation::Qam64, 666),
    (Modulation::Qam64, 772),
    (Modulation::Qam64, 873),
    (Modulation::Qam64, 948),
];

/// The code rate of a CQI, 0 to 15; zero for CQI 0, which is out of range.
#[inline]
pub fn cqi_code_rate(cqi: u8) -> f64 {
    usize::from(cqi).checked_sub(1).map_or(0.0, |i| f64::from(CQI[i].1) / 1024.0)
}

/// The efficiency of a CQI, 0 to 15, in bits per resource element; zero for CQI 0, which is out of range.
#[inline]
pub fn cqi_efficiency(cqi: u8) -> f64 {
    usize::from(cqi).checked_sub(1).map_or(0.0, |i| cqi_code_rate(cqi) * f64::from(CQI[i].0.bits()))
}
