//! Every entry of the tables against the CSV copies in `data`.

use channel::fading::Profile;
use channel::tables::lte::{
    BUFFER_SIZES, CATEGORIES, CQI, Category, DOWNLINK_MCS, QCI, TBS, UPLINK_MCS, bsr_bytes, bsr_index, code_block_size,
    cqi_code_rate, cqi_efficiency, dl_mcs, qci, smaller_code_block_size, tbs, ul_mcs,
};
use channel::{Bandwidth, Modulation};

/// The fields of each line after the first.
fn rows(text: &'static str) -> Vec<Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(field: &str) -> T {
    field.parse().unwrap()
}

#[test]
fn transport_block_sizes_are_the_standards() {
    let rows = rows(include_str!("../data/lte_36213_7.1.7.2.1-1_tbs.csv"));
    assert_eq!(rows.len(), 27 * 110);
    for row in rows {
        assert_eq!(tbs(number(row[0]), number(row[1])), number::<u32>(row[2]), "I_TBS {}, {} blocks", row[0], row[1]);
    }
}

#[test]
fn transport_block_sizes_grow_but_for_the_standards_one_exception() {
    // 328 bits in one block at I_TBS 6 are more than at I_TBS 7 to 17, which other programs change to 88.
    assert_eq!(tbs(6, 1), 328);
    let falls = |pair: &[u32]| pair[0] > pair[1];
    for (i_tbs, row) in TBS.iter().enumerate() {
        assert_eq!(row.windows(2).any(falls), i_tbs == 6, "I_TBS {i_tbs}");
    }
    for blocks in 0..110 {
        let column: Vec<u32> = TBS.iter().map(|row| row[blocks]).collect();
        assert_eq!(column.windows(2).any(falls), blocks == 0, "{} blocks", blocks + 1);
    }
}

#[test]
fn the_largest_blocks_are_a_cells_capacity() {
    assert_eq!([6, 25, 50, 100].map(|blocks| tbs(26, blocks)), [4392, 18_336, 36_696, 75_376]);
}

#[test]
fn modulation_and_coding_schemes_are_the_standards() {
    type Scheme = fn(u8) -> channel::Mcs;
    let directions = [
        (include_str!("../data/lte_36213_7.1.7.1-1_mcs_dl.csv"), dl_mcs as Scheme, DOWNLINK_MCS.len()),
        (include_str!("../data/lte_36213_8.6.1-1_mcs_ul.csv"), ul_mcs as Scheme, UPLINK_MCS.len()),
    ];
    for (text, scheme, len) in directions {
        let rows = rows(text);
        assert_eq!((rows.len(), len), (32, 29));
        for row in &rows[..29] {
            let mcs = scheme(number(row[0]));
            assert_eq!((mcs.modulation.bits(), mcs.i_tbs), (number(row[1]), number(row[2])), "MCS {}", row[0]);
        }
        assert!(rows[29..].iter().all(|row| row[2].is_empty()), "the others are reserved for retransmissions");
    }
}

#[test]
fn channel_quality_indicators_are_the_standards() {
    let rows = rows(include_str!("../data/lte_36213_7.2.3-1_cqi.csv"));
    assert_eq!(rows.len(), 16);
    assert_eq!((cqi_code_rate(0), cqi_efficiency(0)), (0.0, 0.0));
    for row in &rows[1..] {
        let cqi: u8 = number(row[0]);
        let (modulation, rate) = CQI[usize::from(cqi) - 1];
        let name = match modulation {
            Modulation::Qpsk => "QPSK",
            Modulation::Qam16 => "16QAM",
            Modulation::Qam64 => "64QAM",
            Modulation::Qam256 | Modulation::Qam1024 => panic!("CQI {cqi}: {modulation:?}"),
        };
        assert_eq!((name, modulation.bits(), rate), (row[1], number(row[2]), number(row[3])), "CQI {cqi}");
        // Four decimals in the table.
        assert!((cqi_efficiency(cqi) - number::<f64>(row[4])).abs() < 5.1e-5, "CQI {cqi}");
    }
}

#[test]
fn turbo_code_block_sizes_are_the_standards() {
    let sizes: Vec<u32> = rows(include_str!("../data/lte_36212_5.1.3-3_turbo_block_sizes.csv"))
        .iter()
        .map(|row| number(row[1]))
        .collect();
    assert_eq!(sizes.len(), 188);
    for bits in 0..=6144 {
        let smallest = sizes.iter().find(|&&size| size >= bits).unwrap();
        assert_eq!(code_block_size(bits), *smallest, "{bits} bits");
    }
    for pair in sizes.windows(2) {
        assert_eq!(smaller_code_block_size(pair[1]), pair[0]);
    }
    assert_eq!(smaller_code_block_size(40), 40);
}

#[test]
fn buffer_status_levels_are_the_standards() {
    let rows = rows(include_str!("../data/lte_36321_6.1.3.1-1_bsr.csv"));
    assert_eq!((rows.len(), BUFFER_SIZES.len()), (64, 63));
    for row in rows {
        let index: u8 = number(row[0]);
        if index > 0 {
            assert_eq!(bsr_index(number::<u32>(row[1]) + 1), index, "more than {} bytes", row[1]);
        }
        if index < 63 {
            assert_eq!(bsr_index(number(row[2])), index, "{} bytes", row[2]);
            assert_eq!(bsr_bytes(index), number::<u32>(row[2]));
        }
    }
    assert_eq!((bsr_index(u32::MAX), bsr_bytes(63)), (63, 150_001));
}

#[test]
fn bandwidths_are_the_standards() {
    let rows = rows(include_str!("../data/lte_bandwidth_prb.csv"));
    assert_eq!(rows.len(), Bandwidth::ALL.len());
    for (row, bandwidth) in rows.iter().zip(Bandwidth::ALL) {
        assert_eq!(f64::from(bandwidth.hz()), number::<f64>(row[0]) * 1e6);
        assert_eq!((bandwidth.prbs(), bandwidth.rbg_size()), (number(row[1]), number(row[2])), "{bandwidth:?}");
    }
    assert_eq!(Bandwidth::ALL.map(Bandwidth::rbgs), [6, 8, 13, 17, 19, 25]);
}

#[test]
fn qos_classes_are_the_standards() {
    let rows = rows(include_str!("../data/lte_23203_6.1.7_qci.csv"));
    assert_eq!(rows.len(), QCI.len());
    for row in rows {
        let class = qci(number(row[0])).unwrap();
        assert_eq!(class.qci, number::<u8>(row[0]));
        assert_eq!(class.guaranteed, row[1] == "GBR");
        assert_eq!((class.priority, class.delay_budget_ms), (number(row[2]), number(row[3])), "QCI {}", row[0]);
        assert_eq!(class.loss_rate, number::<f64>(row[4]));
    }
    assert_eq!((qci(0), qci(10)), (None, None));
}

#[test]
fn ue_categories_are_the_standards() {
    let rows = rows(include_str!("../data/lte_36306_4.1_categories.csv"));
    assert_eq!(rows.len(), CATEGORIES.len());
    for row in rows {
        let category = Category::numbered(number(row[0])).unwrap();
        let downlink = (category.downlink_bits, category.downlink_block_bits);
        assert_eq!(downlink, (number(row[1]), number(row[2])), "category {}", row[0]);
        // At most two layers are modelled.
        let layers: u8 = number(row[3].split(' ').next().unwrap());
        assert_eq!(category.layers, layers.min(2), "category {}", row[0]);
        assert_eq!(
            (category.uplink_block_bits, category.uplink_64qam),
            (number(row[5]), row[6] == "yes"),
            "{}",
            row[0]
        );
        // Several blocks in a TTI are as many on as many carriers or layers.
        assert_eq!(number::<u32>(row[4]) % category.uplink_block_bits, 0, "category {}", row[0]);
    }
    assert_eq!((Category::numbered(0), Category::numbered(13)), (None, None));
}

#[test]
fn fading_taps_are_the_standards() {
    let rows = rows(include_str!("../data/lte_36104_B.2_fading_profiles.csv"));
    let mut seen = 0;
    for (name, profile) in [("EPA", Profile::Epa), ("EVA", Profile::Eva), ("ETU", Profile::Etu)] {
        let taps: Vec<(f64, f64)> =
            rows.iter().filter(|row| row[0] == name).map(|row| (number(row[2]), number(row[3]))).collect();
        assert_eq!(taps, profile.taps(), "{name}");
        seen += taps.len();
    }
    assert_eq!(seen, rows.len());
}
