//! NR: mutual information of its modulations, block errors, and link adaptation.

use channel::phy::TARGET;
use channel::phy::nr::{
    REFERENCE_ELEMENTS, REFERENCE_PRBS, block_error, cqi_sinr_db, mcs_at, mcs_for, mcs_sinr_db, subband_cqi,
    wideband_cqi,
};
use channel::tables::nr::{Allocation, Mcs, McsTable, code_blocks, tbs};
use channel::{Sinr, Soft, mutual_information};

/// Sionna's 10 % block error points for code blocks near 2000 bits, and the exact limits of capacity.
const THRESHOLDS: &str = include_str!("../data/nr_mcs_snr_thresholds_awgn.csv");

fn linear(db: f64) -> f32 {
    libm::exp10(db / 10.0) as f32
}

/// The error of a block of one scheme that is sent once on a flat channel.
fn error(scheme: Mcs, tb_bits: u32, coded_bits: u32, sinr_db: f64) -> f64 {
    let mut soft = Soft::default();
    soft.add(mutual_information(scheme.modulation(), linear(sinr_db)), coded_bits);
    block_error(tb_bits, scheme.rate, &soft)
}

fn least_sinr_db(scheme: Mcs, tb_bits: u32, coded_bits: u32) -> f64 {
    let (mut fails, mut works) = (-30.0, 50.0);
    for _ in 0..50 {
        let middle = (fails + works) / 2.0;
        if error(scheme, tb_bits, coded_bits, middle) > TARGET { fails = middle } else { works = middle }
    }
    works
}

/// Bits and coded bits of a scheme's block in the tables.
fn reference(scheme: Mcs) -> (u32, u32) {
    let allocation = Allocation { prbs: REFERENCE_PRBS, symbols: 13, dmrs: 12, overhead: 0, layers: 1 };
    let elements = REFERENCE_ELEMENTS * u32::from(REFERENCE_PRBS);
    (tbs(scheme, &allocation, 0), elements * scheme.modulation().bits())
}

#[test]
fn a_tenth_of_blocks_fails_where_sionnas_simulations_say() {
    let (mut sum, mut squares, mut most, mut count) = (0.0, 0.0, 0.0f64, 0.0);
    for row in THRESHOLDS.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let table = McsTable::ALL[fields[0].parse::<usize>().unwrap() - 1];
        let scheme = table.schemes()[fields[1].parse::<usize>().unwrap()];
        let Ok(published) = fields[2].parse::<f64>() else { continue };
        // One code block of 2000 bits, with its CRC.
        let tb_bits = 2000 - 16;
        assert_eq!(code_blocks(tb_bits, scheme.rate).count, 1);
        let coded = (2000.0 * 2048.0 / f64::from(scheme.rate)) as u32;
        let ours = least_sinr_db(scheme, tb_bits, coded);
        let off = ours - published;
        assert!(off.abs() < 0.75, "{row}: {ours:.2} dB");
        let limit: f64 = fields[7].parse().unwrap();
        assert!(ours > limit, "{row}: {ours:.2} dB is better than capacity");
        (sum, squares, most, count) = (sum + off, squares + off * off, most.max(off.abs()), count + 1.0);
    }
    let (mean, rms) = (sum / count, libm::sqrt(squares / count));
    assert!(
        count > 40.0 && mean.abs() < 0.1 && rms < 0.2,
        "{count} points: mean {mean:.3}, rms {rms:.3}, most {most:.3}"
    );
}

#[test]
fn longer_code_blocks_approach_capacity() {
    let scheme = McsTable::Qam64.schemes()[20];
    let at = |bits: u32| least_sinr_db(scheme, bits, (f64::from(bits + 24) * 2048.0 / f64::from(scheme.rate)) as u32);
    let [short, middle, long] = [500, 2000, 8400].map(at);
    assert!(short > middle + 0.1 && middle > long + 0.05, "{short} {middle} {long}");
    // Thirteen code blocks of 8.2 kbit must all be decoded.
    let whole = at(106_576);
    assert!((0.02..0.3).contains(&(whole - long)), "{whole} {long}");
    assert!(long > 10.51, "capacity");
}

#[test]
fn block_errors_fall_from_one_to_nothing_and_retransmissions_add_up() {
    for table in McsTable::ALL {
        for scheme in table.schemes() {
            let (bits, coded) = reference(*scheme);
            let mut before = 1.0;
            for step in -60..200 {
                let now = error(*scheme, bits, coded, f64::from(step) / 4.0);
                assert!(now <= before + 1e-12, "{scheme:?} at {step}");
                before = now;
            }
            assert!(error(*scheme, bits, coded, -20.0) > 0.999 && before < 1e-9, "{scheme:?}: {before}");
            // Two transmissions 2 dB below the threshold.
            let sinr = least_sinr_db(*scheme, bits, coded) - 2.0;
            let information = mutual_information(scheme.modulation(), linear(sinr));
            let mut soft = Soft::default();
            let errors =
                [(); 2].map(|()| soft.receive(information, coded, |soft| block_error(bits, scheme.rate, soft)));
            assert!(errors[0] > 0.9 && errors[1] < 0.1, "{scheme:?}: {errors:?}");
        }
    }
}

#[test]
fn the_sinrs_of_mcs_and_cqi_are_those_at_which_a_tenth_fails() {
    let mut wrong = Vec::new();
    for table in McsTable::ALL {
        let exact: Vec<f64> =
            table.schemes().iter().map(|s| least_sinr_db(*s, reference(*s).0, reference(*s).1)).collect();
        let ours = (0..exact.len() as u8).map(|mcs| f64::from(mcs_sinr_db(table, mcs)));
        if ours.zip(&exact).any(|(ours, exact)| (ours - exact).abs() > 2e-3) {
            wrong.push(format!("{table:?}: {exact:.3?}"));
        }
        let exact: Vec<(f64, f32)> = table
            .cqi()
            .iter()
            .map(|s| {
                let sinr = least_sinr_db(*s, reference(*s).0, reference(*s).1);
                (sinr, mutual_information(s.modulation(), linear(sinr)))
            })
            .collect();
        let ours = (1..=15).map(|cqi| f64::from(cqi_sinr_db(table, cqi)));
        if ours.zip(&exact).any(|(ours, (exact, _))| (ours - exact).abs() > 2e-3) {
            wrong.push(format!("CQI of {table:?}: {exact:.6?}"));
        }
        for (cqi, (sinr, _)) in (1..).zip(&exact) {
            let reported = |off: f64| wideband_cqi(table, &Sinr::Flat(linear(sinr + off)));
            if reported(0.01) < cqi || reported(-0.01) >= cqi {
                wrong.push(format!("CQI {cqi} of {table:?}: {} {}", reported(0.01), reported(-0.01)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn link_adaptation_takes_the_largest_scheme_that_works() {
    for table in McsTable::ALL {
        assert_eq!((mcs_at(table, -30.0), usize::from(mcs_at(table, 60.0))), (0, table.schemes().len() - 1));
        for cqi in 1..=15 {
            let mcs = mcs_for(table, cqi, 0.0);
            assert!(mcs_sinr_db(table, mcs) <= cqi_sinr_db(table, cqi) || mcs == 0);
            assert!(mcs_for(table, cqi, 3.0) >= mcs && mcs_for(table, cqi, -3.0) <= mcs);
        }
        assert_eq!(wideband_cqi(table, &Sinr::Flat(linear(-20.0))), 0);
    }
    // A selective channel is worth its mean information, and a group of it what it has itself.
    let sinr = Sinr::PerRb((0..50).map(|prb| if prb < 25 { 1000.0 } else { 1.0 }).collect());
    let table = McsTable::Qam256;
    let [all, good, bad] = [0..50, 0..25, 25..50].map(|prbs| subband_cqi(table, &sinr, prbs));
    assert_eq!((good, bad), (wideband_cqi(table, &Sinr::Flat(1000.0)), wideband_cqi(table, &Sinr::Flat(1.0))));
    assert!(bad < all && all < good, "{bad} {all} {good}");
}
