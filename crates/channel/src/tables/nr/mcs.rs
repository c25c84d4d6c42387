//! Modulation and coding schemes and channel quality indicators: 38.214 Tables 5.1.3.1-1 to -4 and 5.2.2.1-2 to -4.

use crate::tables::Modulation;

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mcs {
    /// Modulation order: coded bits per symbol.
    pub order: u8,
    /// Target code rate in 1/2048.
    pub rate: u16,
}

impl Mcs {
    /// Returns the modulation.
    #[inline]
    pub const fn modulation(self) -> Modulation {
        match self.order {
            2 => Modulation::Qpsk,
            4 => Modulation::Qam16,
            6 => Modulation::Qam64,
            8 => Modulation::Qam256,
            _ => Modulation::Qam1024,
        }
    }

    /// Returns the bits per resource element and layer.
    #[inline]
    pub fn efficiency(self) -> f64 {
        f64::from(self.order) * f64::from(self.rate) / 2048.0
    }
}

/// A table of schemes, which RRC selects with `mcs-Table`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum McsTable {
    /// Table 5.1.3.1-1: up to 64QAM.
    #[default]
    Qam64,
    /// Table 5.1.3.1-2: up to 256QAM.
    Qam256,
    /// Table 5.1.3.1-3: up to 64QAM, with lower code rates.
    LowSpectralEfficiency,
    /// Table 5.1.3.1-4: up to 1024QAM, in the downlink only. Its numbers come from a single source (Sionna 2.2).
    Qam1024,
}

impl McsTable {
    /// All tables, in the order of the standard.
    pub const ALL: [McsTable; 4] =
        [McsTable::Qam64, McsTable::Qam256, McsTable::LowSpectralEfficiency, McsTable::Qam1024];

    /// Returns the schemes by MCS index. Higher indices are reserved for retransmissions.
    #[inline]
    pub const fn schemes(self) -> &'static [Mcs] {
        match self {
            McsTable::Qam64 => &QAM64,
            McsTable::Qam256 => &QAM256,
            McsTable::LowSpectralEfficiency => &LOW_SPECTRAL_EFFICIENCY,
            McsTable::Qam1024 => &QAM1024,
        }
    }

    /// Returns the schemes that CQI 1 to 15 stand for in reports of a UE with this table. Table 5.2.2.1-5, for 1024QAM, is not
    /// available here: 1024QAM uses that of 256QAM.
    #[inline]
    pub const fn cqi(self) -> &'static [Mcs; 15] {
        match self {
            McsTable::Qam64 => &CQI_QAM64,
            McsTable::Qam256 | McsTable::Qam1024 => &CQI_QAM256,
            McsTable::LowSpectralEfficiency => &CQI_LOW_SPECTRAL_EFFICIENCY,
        }
    }
}

const fn schemes<const N: usize>(rows: [(u8, u16); N]) -> [Mcs; N] {
    let mut all = [Mcs { order: 0, rate: 0 }; N];
    let mut i = 0;
    while i < N {
        all[i] = Mcs { order: rows[i].0, rate: rows[i].1 };
        i += 1;
    }
    all
}

const QAM64: [Mcs; 29] = schemes([
    (2, 240),
    (2, 314),
    (2, 386),
    (2, 502),
    (2, 616),
    (2, 758),
    (2, 898),
    (2, 1052),
    (2, 1204),
    (2, 1358),
    (4, 680),
    (4, 756),
    (4, 868),
    (4, 980),
    (4, 1106),
    (4, 1232),
    (4, 1316),
    (6, 876),
    (6, 932),
    (6, 1034),
    (6, 1134),
    (6, 1232),
    (6, 1332),
    (6, 1438),
    (6, 1544),
    (6, 1644),
    (6, 1746),
    (6, 1820),
    (6, 1896),
]);

const QAM256: [Mcs; 28] = schemes([
    (2, 240),
    (2, 386),
    (2, 616),
    (2, 898),
    (2, 1204),
    (4, 756),
    (4, 868),
    (4, 980),
    (4, 1106),
    (4, 1232),
    (4, 1316),
    (6, 932),
    (6, 1034),
    (6, 1134),
    (6, 1232),
    (6, 1332),
    (6, 1438),
    (6, 1544),
    (6, 1644),
    (6, 1746),
    (8, 1365),
    (8, 1422),
    (8, 1508),
    (8, 1594),
    (8, 1682),
    (8, 1770),
    (8, 1833),
    (8, 1896),
]);

const LOW_SPECTRAL_EFFICIENCY: [Mcs; 29] = schemes([
    (2, 60),
    (2, 80),
    (2, 100),
    (2, 128),
    (2, 156),
    (2, 198),
    (2, 240),
    (2, 314),
    (2, 386),
    (2, 502),
    (2, 616),
    (2, 758),
    (2, 898),
    (2, 1052),
    (2, 1204),
    (4, 680),
    (4, 756),
    (4, 868),
    (4, 980),
    (4, 1106),
    (4, 1232),
    (6, 876),
    (6, 932),
    (6, 1034),
    (6, 1134),
    (6, 1232),
    (6, 1332),
    (6, 1438),
    (6, 1544),
]);

const QAM1024: [Mcs; 27] = schemes([
    (2, 240),
    (2, 386),
    (2, 898),
    (4, 756),
    (4, 980),
    (4, 1232),
    (6, 932),
    (6, 1034),
    (6, 1134),
    (6, 1232),
    (6, 1332),
    (6, 1438),
    (6, 1544),
    (6, 1644),
    (6, 1746),
    (8, 1365),
    (8, 1422),
    (8, 1508),
    (8, 1594),
    (8, 1682),
    (8, 1770),
    (8, 1833),
    (8, 1896),
    (10, 1611),
    (10, 1706),
    (10, 1801),
    (10, 1896),
]);

const CQI_QAM64: [Mcs; 15] = schemes([
    (2, 156),
    (2, 240),
    (2, 386),
    (2, 616),
    (2, 898),
    (2, 1204),
    (4, 756),
    (4, 980),
    (4, 1232),
    (6, 932),
    (6, 1134),
    (6, 1332),
    (6, 1544),
    (6, 1746),
    (6, 1896),
]);

const CQI_QAM256: [Mcs; 15] = schemes([
    (2, 156),
    (2, 386),
    (2, 898),
    (4, 756),
    (4, 980),
    (4, 1232),
    (6, 932),
    (6, 1134),
    (6, 1332),
    (6, 1544),
    (6, 1746),
    (8, 1422),
    (8, 1594),
    (8, 1770),
    (8, 1896),
]);

const CQI_LOW_SPECTRAL_EFFICIENCY: [Mcs; 15] = schemes([
    (2, 60),
    (2, 100),
    (2, 156),
    (2, 240),
    (2, 386),
    (2, 616),
    (2, 898),
    (2, 1204),
    (4, 756),
    (4, 980),
    (4, 1232),
    (6, 932),
    (6, 1134),
    (6, 1332),
    (6, 1544),
]);
