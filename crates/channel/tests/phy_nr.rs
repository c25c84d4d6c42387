//! NR's block errors against published curves, and its link adaptation.

use channel::phy::nr::{
    REFERENCE, TARGET, block_error, coded_bits, cqi_at, cqi_sinr_db, mcs_at, mcs_for, mcs_sinr_db, receive,
    subband_cqi_at,
};
use channel::tables::nr::{Allocation, Mcs, McsTable, code_blocks, tbs};
use channel::{Modulation, Sinr, Soft, mutual_information};

fn linear(db: f64) -> f32 {
    libm::exp10(db / 10.0) as f32
}

/// Returns the error of a block that is sent once on a flat channel.
fn error(tb_bits: u32, scheme: Mcs, coded_bits: u32, sinr_db: f64) -> f64 {
    let mut soft = Soft::default();
    receive(&mut soft, tb_bits, scheme.rate, mutual_information(scheme.modulation(), linear(sinr_db)), coded_bits)
}

/// Returns the least SINR in dB at which the error is at most `target`.
fn least_sinr_db(tb_bits: u32, scheme: Mcs, coded_bits: u32, target: f64) -> f64 {
    let (mut fails, mut works) = (-30.0, 60.0);
    for _ in 0..50 {
        let middle = (fails + works) / 2.0;
        if error(tb_bits, scheme, coded_bits, middle) > target { fails = middle } else { works = middle }
    }
    works
}

/// Returns the least SINR in dB for a code block of `bits` at a scheme's code rate, in whole symbols.
fn code_block_sinr_db(bits: u32, scheme: Mcs, target: f64) -> f64 {
    let order = u32::from(scheme.order);
    let coded = (bits * 2048).div_ceil(u32::from(scheme.rate)).next_multiple_of(order);
    // A transport block of up to 3824 bits has a CRC of 16 bits, a larger one of 24 bits.
    least_sinr_db(if bits <= 3840 { bits - 16 } else { bits - 24 }, scheme, coded, target)
}

/// Returns the bits and coded bits of the reference allocation.
fn reference(scheme: Mcs) -> (u32, u32) {
    (tbs(scheme, &REFERENCE, 0), coded_bits(&REFERENCE, scheme.modulation()))
}

/// A point of a measured error curve.
struct Measured {
    table: McsTable,
    mcs: usize,
    bits: u32,
    sinr_db: f64,
    error: f64,
}

fn measured() -> Vec<Measured> {
    let row = |row: &str| {
        let fields: Vec<f64> = row.split(',').map(|field| field.parse().unwrap()).collect();
        let table = McsTable::ALL[fields[0] as usize - 1];
        Measured { table, mcs: fields[1] as usize, bits: fields[2] as u32, sinr_db: fields[3], error: fields[4] }
    };
    include_str!("../data/nr_bler_awgn_sionna.csv").lines().skip(1).map(row).collect()
}

/// Differences in dB.
#[derive(Default)]
struct Residuals {
    count: u32,
    sum: f64,
    squares: f64,
    largest: f64,
}

impl Residuals {
    fn add(&mut self, off: f64) {
        self.count += 1;
        self.sum += off;
        self.squares += off * off;
        self.largest = self.largest.max(off.abs());
    }

    fn rms(&self) -> f64 {
        libm::sqrt(self.squares / f64::from(self.count))
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

#[test]
fn block_errors_are_near_those_measured_by_sionna() {
    let points = measured();
    // The size of a code block, the number of points, and their largest and root mean square difference in dB.
    let documented = [
        (2000, 61, 0.23, 0.08),
        (1000, 72, 0.22, 0.08),
        (500, 106, 0.33, 0.11),
        (100, 222, 0.51, 0.14),
        (24, 440, 2.31, 0.85),
    ];
    for (bits, count, largest, rms) in documented {
        let mut residuals = Residuals::default();
        for point in points.iter().filter(|point| point.bits == bits && (0.01..0.95).contains(&point.error)) {
            let scheme = point.table.schemes()[point.mcs];
            residuals.add(code_block_sinr_db(bits, scheme, point.error) - point.sinr_db);
        }
        println!("{bits} bits: mean {:.3} dB", residuals.mean());
        assert_eq!(residuals.count, count, "{bits} bits");
        assert!((residuals.largest - largest).abs() < 0.006, "{bits} bits: at most {:.3} dB", residuals.largest);
        assert!((residuals.rms() - rms).abs() < 0.006, "{bits} bits: root mean square {:.3} dB", residuals.rms());
    }
}

#[test]
fn a_tenth_of_blocks_fails_where_sionnas_curves_say_so() {
    let points = measured();
    let (mut residuals, mut between) = (Residuals::default(), 0);
    for curve in points.chunk_by(|a, b| (a.table, a.mcs, a.bits) == (b.table, b.mcs, b.bits)) {
        let Measured { table, mcs, bits, .. } = curve[0];
        if bits < 100 {
            continue;
        }
        let scheme = table.schemes()[mcs];
        // The point that is nearest to 10 %, in the logarithm of the odds.
        let odds = |error: f64| libm::log(error / (1.0 - error)) - libm::log(TARGET / (1.0 - TARGET));
        let usable = curve.iter().filter(|point| (0.01..0.95).contains(&point.error));
        match usable.min_by(|a, b| odds(a.error).abs().total_cmp(&odds(b.error).abs())) {
            Some(point) => residuals.add(code_block_sinr_db(bits, scheme, point.error) - point.sinr_db),
            // The measured curve falls from almost one to almost nothing between two points.
            None => {
                let least = code_block_sinr_db(bits, scheme, TARGET);
                let above = curve.iter().rfind(|point| point.error >= 0.95).map_or(-30.0, |point| point.sinr_db);
                let below = curve.iter().find(|point| point.error < 0.01).map_or(60.0, |point| point.sinr_db);
                assert!(above - 0.1 < least && least < below + 0.1, "{table:?} MCS {mcs}, {bits} bits: {least} dB");
                between += 1;
            }
        }
    }
    println!(
        "{} curves, rms {:.3} dB, largest {:.3} dB; {between} within their bounds",
        residuals.count,
        residuals.rms(),
        residuals.largest
    );
    assert_eq!((residuals.count, between), (319, 56));
    assert!((residuals.rms() - 0.12).abs() < 0.006 && (residuals.largest - 0.38).abs() < 0.006);
}

/// The rows of the thresholds: the scheme and the other columns.
fn thresholds() -> Vec<(Mcs, Vec<Option<f64>>)> {
    let row = |row: &str| {
        let fields: Vec<Option<f64>> = row.split(',').map(|field| field.parse().ok()).collect();
        let table = McsTable::ALL[fields[0].unwrap() as usize - 1];
        (table.schemes()[fields[1].unwrap() as usize], fields[2..].to_vec())
    };
    include_str!("../data/nr_mcs_snr_thresholds_awgn.csv").lines().skip(1).map(row).collect()
}

#[test]
fn thresholds_lie_between_the_limit_and_the_published_ones() {
    let mut residuals = Residuals::default();
    for (scheme, columns) in thresholds() {
        let limit = columns[5].unwrap();
        // The limits have two decimals: 0.005 dB of at most 0.08 a dB.
        let information = f64::from(mutual_information(scheme.modulation(), linear(limit)));
        assert!((information - f64::from(scheme.rate) / 2048.0).abs() < 6e-4, "{scheme:?}: {information}");
        let least = code_block_sinr_db(2000, scheme, TARGET);
        assert!(least > limit + 0.4 && least < limit + 1.7, "{scheme:?}: {least} dB, limit {limit} dB");
        let Some(sionna) = columns[0] else { continue };
        residuals.add(least - sionna);
    }
    println!(
        "{} thresholds, rms {:.3} dB, mean {:.3} dB, largest {:.3} dB",
        residuals.count,
        residuals.rms(),
        residuals.mean(),
        residuals.largest
    );
    // These were interpolated between points 1.6 to 1.8 dB apart, most of which have an error of zero or one.
    assert!(residuals.count == 51 && residuals.rms() < 0.15 && residuals.largest < 0.36);
}

#[test]
fn large_code_blocks_gain_as_much_as_in_5g_lena() {
    let (mut here, mut there) = (Residuals::default(), Residuals::default());
    for (scheme, columns) in thresholds() {
        let (small, large) = (columns[1].unwrap() as u32, columns[3].unwrap() as u32);
        if small > 1900 && large > 8000 {
            there.add(columns[4].unwrap() - columns[2].unwrap());
            here.add(code_block_sinr_db(large, scheme, TARGET) - code_block_sinr_db(small, scheme, TARGET));
        }
    }
    println!("{} schemes: {:.3} dB, 5G-LENA {:.3} dB", here.count, here.mean(), there.mean());
    assert!(here.count > 40);
    assert!((here.mean() - there.mean()).abs() < 0.05);
    assert!(here.largest < 0.3);
}

#[test]
fn the_sinrs_of_mcs_and_cqi_are_those_at_which_a_tenth_fails() {
    // 12 x 13 - 12 = 144 resource elements of each of 50 blocks.
    assert_eq!(coded_bits(&REFERENCE, Modulation::Qam64), 144 * 50 * 6);
    for table in McsTable::ALL {
        let mut above = f64::INFINITY;
        for (index, &scheme) in table.schemes().iter().enumerate().rev() {
            let (bits, coded) = reference(scheme);
            // An MCS that needs more than a larger one has the SINR of the larger one, which is better.
            above = above.min(least_sinr_db(bits, scheme, coded, TARGET));
            let db = f64::from(mcs_sinr_db(table, index as u8));
            assert!((above - db).abs() < 1.5e-3, "{table:?} MCS {index}: {above}");
            // The MCS changes there and nowhere else.
            assert_eq!(mcs_at(table, db as f32 + 0.005), index as u8);
            assert_eq!(mcs_at(table, db as f32 - 0.005), (index as u8).saturating_sub(1));
        }
        for (index, &scheme) in table.cqi().iter().enumerate() {
            let (bits, coded) = reference(scheme);
            let least = least_sinr_db(bits, scheme, coded, TARGET);
            let cqi = index as u8 + 1;
            let db = f64::from(cqi_sinr_db(table, cqi));
            assert!((least - db).abs() < 1.5e-3, "{table:?} CQI {cqi}: {least}");
            assert_eq!(cqi_at(table, &Sinr::Flat(linear(db + 0.005))), cqi);
            assert_eq!(cqi_at(table, &Sinr::Flat(linear(db - 0.005))), cqi - 1);
        }
        assert_eq!(cqi_sinr_db(table, 0), cqi_sinr_db(table, 1) - 1.0);
        assert_eq!(cqi_at(table, &Sinr::Flat(0.0)), 0);
    }
}

#[test]
fn link_adaptation_selects_the_scheme_of_the_cqi() {
    for table in McsTable::ALL {
        for (cqi, scheme) in (1..).zip(table.cqi()) {
            let chosen = table.schemes()[usize::from(mcs_for(table, cqi, 0.0))];
            // The MCS of the CQI's own code rate, or MCS 0 if the table of MCS begins later.
            let expected = table.schemes().iter().rfind(|mcs| mcs.efficiency() <= scheme.efficiency() + 1e-9);
            assert_eq!(chosen, *expected.unwrap_or(&table.schemes()[0]), "{table:?} CQI {cqi}");
        }
        let last = table.schemes().len() as u8 - 1;
        assert_eq!((mcs_for(table, 0, 0.0), mcs_for(table, 1, -9.0), mcs_for(table, 15, 9.0)), (0, 0, last));
        // The outer loop's offset is in dB of SINR.
        assert_eq!(mcs_for(table, 9, 1.5), mcs_at(table, cqi_sinr_db(table, 9) + 1.5));
        assert!(mcs_for(table, 9, -1.5) < mcs_for(table, 9, 0.0));
    }
    // With 1024QAM, CQI ends at 256QAM.
    assert_eq!(McsTable::Qam1024.schemes()[usize::from(mcs_for(McsTable::Qam1024, 15, 0.0))].order, 8);
}

#[test]
fn a_subband_has_the_cqi_of_its_mean_information() {
    let half = Sinr::PerRb((0..50).map(|n| if n < 25 { linear(40.0) } else { 0.0 }).collect());
    for table in McsTable::ALL {
        assert_eq!((subband_cqi_at(table, &half, 0..25), subband_cqi_at(table, &half, 25..50)), (15, 0));
        // Half of the information: the largest code rate of 64QAM and 256QAM whose threshold is below one half is none,
        // and 16QAM at 378/1024 has 0.428.
        let cqi = cqi_at(table, &half);
        let scheme = table.cqi()[usize::from(cqi) - 1];
        assert_eq!((scheme.order, scheme.rate), (4, 756), "{table:?}");
        let flat = Sinr::PerRb(vec![linear(12.0); 50].into());
        assert_eq!(cqi_at(table, &flat), cqi_at(table, &Sinr::Flat(linear(12.0))));
    }
}

#[test]
fn a_block_error_falls_from_one_to_nothing_as_the_sinr_grows() {
    let allocations = [(1, 2, 0), (1, 14, 24), (2, 4, 12), (50, 13, 12), (132, 13, 12), (273, 14, 12)];
    for table in McsTable::ALL {
        for &scheme in table.schemes() {
            for ((prbs, symbols, dmrs), layers) in allocations.into_iter().flat_map(|a| [(a, 1), (a, 4)]) {
                let allocation = Allocation { prbs, symbols, dmrs, overhead: 0, layers };
                let (bits, coded) = (tbs(scheme, &allocation, 0), coded_bits(&allocation, scheme.modulation()));
                let errors: Vec<f64> = (-60..120).map(|db| error(bits, scheme, coded, f64::from(db) / 2.0)).collect();
                let what = format!("{table:?} {scheme:?} on {allocation:?}");
                assert!(errors.iter().all(|error| (0.0..=1.0).contains(error)), "{what}");
                assert!(errors.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{what}");
                assert!(errors[0] > 1.0 - 1e-3, "{what} at -30 dB: {}", errors[0]);
                // With the CRC, a small transport block has as many bits as coded bits, or more.
                let blocks = code_blocks(bits, scheme.rate);
                let impossible = blocks.count * blocks.bits >= coded;
                let last = errors.last().unwrap() - f64::from(u8::from(impossible));
                assert!(last.abs() < 1e-6, "{what} at 60 dB: {last}");
            }
        }
    }
}

#[test]
fn all_thirteen_code_blocks_of_a_transport_block_must_be_decoded() {
    // 132 resource blocks, MCS 28: 106,576 bits and their CRC in 13 code blocks of 8224 bits.
    let scheme = McsTable::Qam64.schemes()[28];
    let allocation = Allocation { prbs: 132, symbols: 13, dmrs: 12, overhead: 0, layers: 1 };
    let (bits, coded) = (tbs(scheme, &allocation, 0), coded_bits(&allocation, Modulation::Qam64));
    assert_eq!((bits, coded), (106_576, 114_048));
    let blocks = code_blocks(bits, scheme.rate);
    assert_eq!((blocks.count, blocks.bits), (13, 8224));
    // Code rate 106,912 / 114,048 = 0.93743; between the curves at 0.93 and 1 the gap is 0.01781 + 2.5 / 8224, the width
    // 0.33894 / sqrt(8224) = 0.0037375. At the mean, a code block is decoded in half of the cases.
    let mean = 0.937_430 + 0.017_810 + 0.000_304;
    let error = |information: f64| {
        let soft = Soft { information: information as f32 * coded as f32, coded_bits: coded };
        block_error(bits, scheme.rate, &soft)
    };
    assert!((error(mean) - (1.0 - libm::exp2(-13.0))).abs() < 1e-5);
    // Two deviations above, 2.275 % of code blocks fail: 1 - 0.97725^13 = 0.2586.
    assert!((error(mean + 2.0 * 0.003_737_5) - 0.2586).abs() < 2e-3, "{}", error(mean + 2.0 * 0.003_737_5));
    // Three above, 0.135 %: 0.0174.
    assert!((error(mean + 3.0 * 0.003_737_5) - 0.0174).abs() < 2e-4, "{}", error(mean + 3.0 * 0.003_737_5));
}

#[test]
fn retransmissions_add_up() {
    let needed = |scheme: Mcs, transmissions: u32| {
        let (bits, coded) = reference(scheme);
        let (mut fails, mut works) = (-30.0, 50.0);
        for _ in 0..40 {
            let middle = (fails + works) / 2.0;
            let mut soft = Soft::default();
            (0..transmissions).for_each(|_| soft.add(mutual_information(scheme.modulation(), linear(middle)), coded));
            if block_error(bits, scheme.rate, &soft) > TARGET { fails = middle } else { works = middle }
        }
        works
    };
    // 64QAM at a code rate of 0.65: energy alone gives 3.01, 1.76 and 1.25 dB, and new parity gives more.
    let scheme = McsTable::Qam64.schemes()[22];
    let gains = [1, 2, 3].map(|n| needed(scheme, n) - needed(scheme, n + 1));
    println!("{gains:?}");
    assert!(gains[0] > 3.5 && gains[0] < 7.0, "{gains:?}");
    assert!(gains[1] > 1.76 && gains[1] < 4.0, "{gains:?}");
    assert!(gains[2] > 1.25 && gains[2] < 3.0, "{gains:?}");
    // QPSK at a code rate of 0.03, below the code's 0.2: repetitions give energy and nothing else.
    let scheme = McsTable::LowSpectralEfficiency.schemes()[0];
    for (n, energy) in [(1, 3.01), (2, 1.76), (3, 1.25)] {
        let gain = needed(scheme, n) - needed(scheme, n + 1);
        assert!((gain - energy).abs() < 0.05, "{gain} dB, not {energy} dB");
    }
    // Nothing was received, nothing is decoded.
    assert_eq!(block_error(1000, 1000, &Soft::default()), 1.0);
}

#[test]
fn repetition_leaves_the_mean_over_many_transmissions_as_energy() {
    // One transmission at four times the SINR is as good as four that repeat all coded bits: a code rate of 0.029 is
    // less than a fifth of 0.2.
    let scheme = McsTable::LowSpectralEfficiency.schemes()[0];
    let (bits, coded) = reference(scheme);
    for db in [-20.0, -18.0, -17.5, -17.0, -15.0] {
        let sent = |times: u32, db: f64| {
            let mut soft = Soft::default();
            (0..times).for_each(|_| soft.add(mutual_information(Modulation::Qpsk, linear(db)), coded));
            block_error(bits, scheme.rate, &soft)
        };
        let (four, one) = (sent(4, db), sent(1, db + 10.0 * libm::log10(4.0)));
        assert!((four - one).abs() < 0.02, "{db} dB: {four} and {one}");
    }
}

#[test]
fn a_transmission_without_information_does_not_spoil_the_next() {
    for (index, prbs) in [(0, 6), (10, 2), (20, 50), (28, 2), (28, 132)] {
        let scheme = McsTable::Qam64.schemes()[index];
        let allocation = Allocation { prbs, ..REFERENCE };
        let (bits, coded) = (tbs(scheme, &allocation, 0), coded_bits(&allocation, scheme.modulation()));
        for db in -100..400 {
            let information = mutual_information(scheme.modulation(), linear(f64::from(db) / 10.0));
            let alone = receive(&mut Soft::default(), bits, scheme.rate, information, coded);
            for before in [0.0, 0.02, 0.5 * information, information] {
                let mut soft = Soft::default();
                assert!(receive(&mut soft, bits, scheme.rate, before, coded) >= alone - 1e-12 || before > information);
                let both = receive(&mut soft, bits, scheme.rate, information, coded);
                assert!(both <= alone, "MCS {index}, {prbs} blocks, after {before}: {both}, alone {alone}");
            }
        }
    }
}
