//! Every entry of NR's tables against the CSV copies in `data`, and transport block sizes against worked vectors.

use channel::tables::nr::{
    Allocation, FrequencyRange, LONG_LEVELS, Mcs, McsTable, Numerology, SHORT_LEVELS, SYMBOLS, bandwidths, bytes,
    code_blocks, level, resource_blocks, tbs,
};
use units::Span;

/// The fields of each line after the first.
fn rows(text: &'static str) -> Vec<Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(field: &str) -> T {
    field.parse().unwrap()
}

/// A code rate in 1/2048 from one in 1/1024, which may have half a unit.
fn rate(field: &str) -> u16 {
    (2.0 * number::<f64>(field)) as u16
}

#[test]
fn modulation_and_coding_schemes_are_the_standards() {
    let tables = [
        (McsTable::Qam64, include_str!("../data/nr_38214_5.1.3.1-1_mcs.csv"), 29),
        (McsTable::Qam256, include_str!("../data/nr_38214_5.1.3.1-2_mcs.csv"), 28),
        (McsTable::LowSpectralEfficiency, include_str!("../data/nr_38214_5.1.3.1-3_mcs.csv"), 29),
        (McsTable::Qam1024, include_str!("../data/nr_38214_5.1.3.1-4_mcs_1024qam.csv"), 27),
    ];
    for (table, text, len) in tables {
        let rows: Vec<_> = rows(text).into_iter().filter(|row| !row[2].is_empty()).collect();
        assert_eq!((rows.len(), table.schemes().len()), (len, len), "{table:?}");
        for (row, mcs) in rows.iter().zip(table.schemes()) {
            assert_eq!((mcs.order, mcs.rate), (number(row[1]), rate(row[2])), "{table:?}, MCS {}", row[0]);
            assert_eq!(mcs.modulation().bits(), u32::from(mcs.order), "{table:?}, MCS {}", row[0]);
            // Four decimals in the table.
            assert!((mcs.efficiency() - number::<f64>(row[3])).abs() < 1.1e-4, "{table:?}, MCS {}", row[0]);
        }
    }
}

#[test]
fn channel_quality_indicators_are_the_standards() {
    let tables = [
        (McsTable::Qam64, include_str!("../data/nr_38214_5.2.2.1-2_cqi.csv")),
        (McsTable::Qam256, include_str!("../data/nr_38214_5.2.2.1-3_cqi.csv")),
        (McsTable::LowSpectralEfficiency, include_str!("../data/nr_38214_5.2.2.1-4_cqi.csv")),
    ];
    for (table, text) in tables {
        let rows = rows(text);
        assert_eq!(rows.len(), 16);
        for (row, scheme) in rows[1..].iter().zip(table.cqi()) {
            assert_eq!((scheme.order, scheme.rate), (number(row[2]), rate(row[3])), "{table:?}, CQI {}", row[0]);
            assert!((scheme.efficiency() - number::<f64>(row[4])).abs() < 1.1e-4, "{table:?}, CQI {}", row[0]);
        }
    }
}

#[test]
fn resource_blocks_are_the_standards() {
    let rows = rows(include_str!("../data/nr_38104_5.3.2_nrb.csv"));
    let ranges = [FrequencyRange::Fr1, FrequencyRange::Fr2];
    let all =
        ranges.into_iter().flat_map(|range| Numerology::ALL.map(|numerology| bandwidths(range, numerology).len()));
    assert_eq!(all.sum::<usize>(), rows.len());
    for row in rows {
        let range = if row[0] == "FR1" { FrequencyRange::Fr1 } else { FrequencyRange::Fr2 };
        let khz: u32 = number(row[2]);
        let numerology = Numerology::ALL.into_iter().find(|n| n.subcarrier_hz() == 1000 * khz).unwrap();
        let (mhz, blocks): (u16, u16) = (number(row[1]), number(row[3]));
        assert_eq!(resource_blocks(range, numerology, mhz), Some(blocks), "{row:?}");
        // The channel holds them, with guard bands.
        let occupied = u64::from(blocks) * 12 * u64::from(numerology.subcarrier_hz());
        assert!(occupied < u64::from(mhz) * 1_000_000, "{row:?}");
    }
    assert_eq!(resource_blocks(FrequencyRange::Fr2, Numerology::Khz120, 10), None);
}

#[test]
fn slots_are_whole_nanoseconds() {
    let slots = Numerology::ALL.map(Numerology::slot);
    assert_eq!(slots, [1_000_000, 500_000, 250_000, 125_000, 62_500].map(Span::from_nanos));
}

#[test]
fn transport_block_sizes_are_those_of_the_worked_vectors() {
    let rows = rows(include_str!("../data/nr_38214_tbs_vectors.csv"));
    assert_eq!(rows.len(), 25);
    for row in rows {
        let table = McsTable::ALL[number::<usize>(row[2]) - 1];
        let mcs = table.schemes()[number::<usize>(row[3])];
        assert_eq!((mcs.order, mcs.rate), (number(row[4]), rate(row[5])), "vector {}", row[0]);
        let allocation = Allocation {
            prbs: number(row[6]),
            symbols: number(row[7]),
            dmrs: number(row[8]),
            overhead: number(row[9]),
            layers: number(row[10]),
        };
        let halvings = match row[11] {
            "1" => 0,
            "0.5" => 1,
            _ => 2,
        };
        assert_eq!(allocation.resource_elements(), number::<u32>(row[13]), "vector {}", row[0]);
        let size = tbs(mcs, &allocation, halvings);
        assert_eq!(size, number::<u32>(row[18]), "vector {} ({})", row[0], row[1]);
        assert_eq!(code_blocks(size, mcs.rate).count, number::<u32>(row[17]), "vector {}", row[0]);
    }
}

#[test]
fn small_sizes_are_those_of_the_table() {
    let sizes = rows(include_str!("../data/nr_38214_5.1.3.2-1_tbs.csv"));
    let sizes: Vec<u32> = sizes.iter().map(|row| number(row[1])).collect();
    let found = (1..=3824u16).map(|elements| {
        // A code rate of 1 at one bit per symbol: as many information bits as resource elements.
        let mcs = Mcs { order: 1, rate: 2048 };
        let one = Allocation { prbs: elements, symbols: 1, dmrs: 11, overhead: 0, layers: 1 };
        assert_eq!(one.resource_elements(), u32::from(elements));
        tbs(mcs, &one, 0)
    });
    let mut found: Vec<u32> = found.collect();
    assert!(found.is_sorted());
    found.dedup();
    assert!(found.iter().all(|size| sizes.contains(size)));
    assert_eq!((found.first(), found.last()), (Some(&24), Some(&3824)));
}

#[test]
fn transport_block_sizes_are_whole_bytes_and_grow_with_resource_blocks() {
    for table in McsTable::ALL {
        for &mcs in table.schemes() {
            for layers in [1, 4] {
                let sizes = (1..=275).map(|prbs| {
                    let allocation = Allocation { prbs, symbols: 13, dmrs: 12, overhead: 0, layers };
                    let size = tbs(mcs, &allocation, 0);
                    let bits = f64::from(allocation.resource_elements()) * mcs.efficiency() * f64::from(layers);
                    // Quantisation keeps five bits after the leading one.
                    assert!(f64::from(size) <= bits * (1.0 + 1.0 / 32.0) + 40.0, "{mcs:?}, {prbs}: {size} of {bits}");
                    size
                });
                let sizes: Vec<u32> = sizes.collect();
                assert!(sizes.is_sorted() && sizes.iter().all(|size| size % 8 == 0), "{mcs:?}");
            }
        }
    }
}

/// Transport block sizes are chosen such that their code blocks need no filler bits at this level.
#[test]
fn large_transport_blocks_divide_into_equal_code_blocks() {
    for &mcs in McsTable::ALL.iter().flat_map(|table| table.schemes()) {
        for prbs in 1..=275 {
            let size = tbs(mcs, &Allocation { prbs, symbols: 13, dmrs: 12, overhead: 0, layers: 4 }, 0);
            let blocks = code_blocks(size, mcs.rate);
            let crcs = if blocks.count > 1 {
                24 * (blocks.count + 1)
            } else if size > 3824 {
                24
            } else {
                16
            };
            assert_eq!(blocks.count * blocks.bits, size + crcs, "{mcs:?}, {prbs}");
            assert!(blocks.bits <= 8448, "{mcs:?}, {prbs}");
        }
    }
}

#[test]
fn no_allocation_overflows() {
    let most = Allocation { prbs: u16::MAX, symbols: u8::MAX, dmrs: 0, overhead: 0, layers: u8::MAX };
    assert!(tbs(Mcs { order: 10, rate: 1896 }, &most, 0) > 0);
    let none = Allocation { prbs: 0, symbols: 0, dmrs: 255, overhead: 255, layers: 0 };
    assert_eq!(tbs(Mcs { order: 2, rate: 240 }, &none, 2), 24);
}

/// "RAN-aware proxies": 28 GHz, 200 MHz, µ = 3, MCS 28, one layer, 13 symbols of which one is for DMRS.
#[test]
fn a_carrier_of_200_mhz_in_fr2_carries_852_6_mbit_per_second() {
    let prbs = resource_blocks(FrequencyRange::Fr2, Numerology::Khz120, 200).unwrap();
    assert_eq!(prbs, 132);
    let mcs = McsTable::Qam64.schemes()[28];
    let allocation = Allocation { prbs, symbols: SYMBOLS - 1, dmrs: 12, overhead: 0, layers: 1 };
    let size = tbs(mcs, &allocation, 0);
    assert_eq!(size, 106_576);
    let rate = f64::from(size) / Numerology::Khz120.slot().as_secs_f64() / 1e6;
    assert!((rate - 852.608).abs() < 1e-9, "{rate} Mbit/s");
}

#[test]
fn buffer_size_levels_are_the_standards() {
    let tables = [
        (&SHORT_LEVELS[..], include_str!("../data/nr_38321_6.1.3.1-1_bsr_5bit.csv"), 31),
        (&LONG_LEVELS[..], include_str!("../data/nr_38321_6.1.3.1-2_bsr_8bit.csv"), 254),
    ];
    for (levels, text, open) in tables {
        assert_eq!(levels.len(), open);
        for row in rows(text) {
            let index: u8 = number(row[0]);
            if row[2].is_empty() {
                continue;
            }
            let upper: u32 = number(row[2]);
            assert_eq!((bytes(levels, index), level(levels, upper)), (upper, index), "level {index}");
            if !row[1].is_empty() {
                assert_eq!(level(levels, number::<u32>(row[1]) + 1), index, "level {index}");
            }
        }
        let last = levels[levels.len() - 1];
        assert_eq!(level(levels, last + 1), open as u8);
        assert_eq!(level(levels, u32::MAX), open as u8);
        assert_eq!(bytes(levels, open as u8), last + 1);
    }
}
