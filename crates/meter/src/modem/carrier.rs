//! Bands and frequencies from channel numbers.
//!
//! Source: TS 36.101, table 5.7.3-1 (EARFCN of the downlink); TS 38.104, table 5.4.2.1-1 (NR-ARFCN). An NR-ARFCN belongs to several
//! bands at once, so that it tells a frequency but no band.

/// An LTE band: its number, the lowest frequency of its downlink in 100 kHz, its first and its last EARFCN.
type Band = (u32, u32, u32, u32);

/// TS 36.101, table 5.7.3-1, downlink.
const BANDS: &[Band] = &[
    (1, 21_100, 0, 599),
    (2, 19_300, 600, 1_199),
    (3, 18_050, 1_200, 1_949),
    (4, 21_100, 1_950, 2_399),
    (5, 8_690, 2_400, 2_649),
    (6, 8_750, 2_650, 2_749),
    (7, 26_200, 2_750, 3_449),
    (8, 9_250, 3_450, 3_799),
    (9, 18_449, 3_800, 4_149),
    (10, 21_100, 4_150, 4_749),
    (11, 14_759, 4_750, 4_949),
    (12, 7_290, 5_010, 5_179),
    (13, 7_460, 5_180, 5_279),
    (14, 7_580, 5_280, 5_379),
    (17, 7_340, 5_730, 5_849),
    (18, 8_600, 5_850, 5_999),
    (19, 8_750, 6_000, 6_149),
    (20, 7_910, 6_150, 6_449),
    (21, 14_959, 6_450, 6_599),
    (22, 35_100, 6_600, 7_399),
    (24, 15_250, 7_700, 8_039),
    (25, 19_300, 8_040, 8_689),
    (26, 8_590, 8_690, 9_039),
    (27, 8_520, 9_040, 9_209),
    (28, 7_580, 9_210, 9_659),
    (29, 7_170, 9_660, 9_769),
    (30, 23_500, 9_770, 9_869),
    (31, 4_625, 9_870, 9_919),
    (32, 14_520, 9_920, 10_359),
    (33, 19_000, 36_000, 36_199),
    (34, 20_100, 36_200, 36_349),
    (35, 18_500, 36_350, 36_949),
    (36, 19_300, 36_950, 37_549),
    (37, 19_100, 37_550, 37_749),
    (38, 25_700, 37_750, 38_249),
    (39, 18_800, 38_250, 38_649),
    (40, 23_000, 38_650, 39_649),
    (41, 24_960, 39_650, 41_589),
    (42, 34_000, 41_590, 43_589),
    (43, 36_000, 43_590, 45_589),
    (44, 7_030, 45_590, 46_589),
    (46, 51_500, 46_790, 54_539),
    (48, 35_500, 55_240, 56_739),
    (65, 21_100, 65_536, 66_435),
    (66, 21_100, 66_436, 67_335),
    (67, 7_380, 67_336, 67_535),
    (68, 7_530, 67_536, 67_835),
    (70, 19_950, 68_336, 68_585),
    (71, 6_170, 68_586, 68_935),
];

/// Returns the band of an EARFCN, and the frequency of the downlink in MHz: F = `F_low` + 0.1 (N - `N_offset`).
pub(super) fn lte(earfcn: u32) -> Option<(u32, f64)> {
    let &(band, low, first, _) = BANDS.iter().find(|(_, _, first, last)| (*first..=*last).contains(&earfcn))?;
    Some((band, f64::from(low + earfcn - first) / 10.0))
}

/// Returns the frequency of an NR-ARFCN in MHz: F = `F_offset` + step (N - `N_offset`).
pub(super) fn nr(arfcn: u32) -> Option<f64> {
    match arfcn {
        0..=599_999 => Some(f64::from(arfcn) * 0.005),
        600_000..=2_016_666 => Some(3_000.0 + f64::from(arfcn - 600_000) * 0.015),
        2_016_667..=3_279_165 => Some(24_250.08 + f64::from(arfcn - 2_016_667) * 0.06),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channel_numbers_have_the_frequencies_of_the_standards() {
        // The middle channels of TS 36.508, tables 4.3.1.1.1-1 to 4.3.1.1.20-1.
        for (earfcn, band, mhz) in
            [(300, 1, 2140.0), (1575, 3, 1842.5), (3100, 7, 2655.0), (6300, 20, 806.0), (39_150, 40, 2350.0)]
        {
            assert_eq!(lte(earfcn), Some((band, mhz)));
        }
        assert_eq!((lte(5_000), lte(70_000), lte(u32::MAX)), (None, None, None));
        // Ends of the ranges in TS 38.104, table 5.4.2.1-1, and the raster of n78 and n257.
        for (arfcn, mhz) in
            [(0, 0.0), (599_999, 2_999.995), (620_000, 3_300.0), (653_333, 3_799.995), (2_054_166, 26_500.02)]
        {
            let found = nr(arfcn).expect("a frequency");
            assert!((found - mhz).abs() < 1e-6, "{arfcn}: {found}");
        }
        assert_eq!(nr(3_279_166), None);
    }

    #[test]
    fn bands_do_not_overlap() {
        assert!(BANDS.windows(2).all(|two| two[0].3 < two[1].2 && two[0].2 < two[0].3));
    }
}
