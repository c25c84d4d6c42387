//! A UE's uplink power: headroom reports, and capacity depending on the number of resource blocks.
//!
//! Sources: 36.321 5.4.6 (when a power headroom report is due) and 6.1.3.6 (its control element), 36.213 5.1.1.2 (the
//! headroom of a transmission), 36.133 9.1.8.4 and 38.133 table 10.1.17.1-1 (its levels in LTE and NR). A report is written into a transport block like a buffer status
//! report: it costs its bytes, and the eNodeB has it when the block is decoded.
//!
//! Deviations: the UE knows its path loss without error and without fast fading; there is no closed loop, so the
//! headroom depends only on the path loss and the number of resource blocks. The eNodeB's assumption before the first
//! report is not standardised: here, the power suffices for one block.

use channel::phy::nr as nr_link;
use channel::tables::nr::McsTable;
use units::Span;

use crate::slots::Slots;

/// The headroom of LTE's level 0 in dB; each level adds 1 dB (36.133 9.1.8.4).
const LOWEST_DB: f64 = -23.0;
/// The headroom of NR's level 1 in dB, to which each level up to 55 adds 1 dB and each further one 2 dB (38.133 table
/// 10.1.17.1-1).
const LOWEST_NR_DB: f64 = -32.0;
/// The headroom of NR's level 55 in dB.
const COARSE_NR_DB: f64 = 22.0;
const COARSE: u8 = 55;
/// The highest level of either.
const HIGHEST: f64 = 63.0;

/// The triggers of power headroom reports (`phr-Config`). The default is srsRAN 4G's example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerReports {
    /// `periodicPHR-Timer`: when it expires, a report is due with the next grant; `None` is infinity.
    pub periodic: Option<Span>,
    /// `prohibitPHR-Timer`: for this long after a report, a change of the path loss does not trigger another.
    pub prohibit: Span,
    /// `dl-PathlossChange`: a change of the path loss by more than this many dB triggers a report; `None` is infinity.
    pub path_loss_change_db: Option<f64>,
}

impl Default for PowerReports {
    fn default() -> Self {
        PowerReports { periodic: Some(Span::from_millis(50)), prohibit: Span::ZERO, path_loss_change_db: Some(3.0) }
    }
}

/// Returns the level nearest to a headroom in dB.
#[inline]
pub(crate) fn level(headroom_db: f64) -> u8 {
    libm::round(headroom_db - LOWEST_DB).clamp(0.0, HIGHEST) as u8
}

/// Returns the headroom in dB of a level.
#[inline]
pub(crate) fn level_db(level: u8) -> f64 {
    LOWEST_DB + f64::from(level)
}

/// Returns NR's level for a headroom in dB.
#[inline]
pub(crate) fn nr_level(headroom_db: f64) -> u8 {
    let level = if headroom_db < COARSE_NR_DB {
        libm::floor(headroom_db - LOWEST_NR_DB) + 1.0
    } else {
        f64::from(COARSE) + libm::floor((headroom_db - COARSE_NR_DB) / 2.0)
    };
    level.clamp(0.0, HIGHEST) as u8
}

/// Returns the least headroom in dB of a level of NR; of level 0, one dB below that of level 1.
#[inline]
pub(crate) fn nr_level_db(level: u8) -> f64 {
    let fine = LOWEST_NR_DB - 1.0 + f64::from(level.min(COARSE));
    fine + 2.0 * f64::from(level.saturating_sub(COARSE))
}

/// The UE's state: when it has to report. Times are slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporting {
    triggered: bool,
    periodic_due: u64,
    prohibited_until: u64,
    /// The path loss at the last report, in dB.
    path_loss_db: f64,
}

impl Reporting {
    /// Creates the state of a UE whose reports have just been configured, which triggers the first report.
    pub(crate) fn new() -> Reporting {
        Reporting { triggered: true, periodic_due: u64::MAX, prohibited_until: 0, path_loss_db: 0.0 }
    }

    /// Returns whether a new transmission in `tti` has to carry a report (36.321 5.4.6).
    #[inline]
    pub(crate) fn is_due(&mut self, config: &PowerReports, path_loss_db: f64, tti: u64) -> bool {
        let changed = |most: f64| (path_loss_db - self.path_loss_db).abs() > most;
        self.triggered |= tti >= self.periodic_due
            || (tti >= self.prohibited_until && config.path_loss_change_db.is_some_and(changed));
        self.triggered
    }

    /// Called when a report is sent in `slot`.
    pub(crate) fn reported(&mut self, config: &PowerReports, path_loss_db: f64, slots: Slots, slot: u64) {
        self.triggered = false;
        self.periodic_due = config.periodic.map_or(u64::MAX, |period| slot + slots.spanning(period));
        self.prohibited_until = slot + slots.spanning(config.prohibit);
        self.path_loss_db = path_loss_db;
    }
}

/// The eNodeB's state: the newest report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reported {
    /// The UE's headroom on one resource block in dB; zero before the first report.
    pub(crate) one_block_db: f64,
    /// The TTI in which it was written.
    written: u64,
}

impl Reported {
    /// Processes a report of this headroom that was written for a transmission on `prbs` resource blocks in `tti`.
    #[inline]
    pub(crate) fn learn(&mut self, headroom_db: f64, prbs: u16, tti: u64) {
        // A retransmitted transport block may bring an older report than a block that was not retransmitted.
        if tti >= self.written {
            self.written = tti;
            self.one_block_db = headroom_db + blocks_db(prbs);
        }
    }
}

/// The SINR in dB of a UE's resource blocks at its eNodeB, depending on their number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Strength {
    /// SINR on as few blocks as the UE's power suffices for.
    pub(crate) sinr_db: f64,
    /// That number of blocks in dB relative to one block. On more blocks, the power is spread.
    pub(crate) headroom_db: f64,
}

impl Strength {
    /// Returns the SINR in dB on `prbs` resource blocks.
    #[inline]
    pub(crate) fn on(&self, prbs: u16) -> f64 {
        self.sinr_db - (blocks_db(prbs) - self.headroom_db).max(0.0)
    }

    /// Returns the maximum number of resource blocks, at least one, for which the UE's power suffices.
    #[inline]
    pub(crate) fn full_power_prbs(&self) -> u16 {
        largest(self.headroom_db)
    }
}

/// What a resource block carries at an SINR in the slot at hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rates {
    /// LTE's schemes, with turbo codes.
    Lte,
    /// NR's schemes of a table, with LDPC codes, on this many resource elements of a resource block.
    Nr {
        /// The table.
        table: McsTable,
        /// Resource elements with data.
        elements: u16,
    },
}

impl Rates {
    /// Returns the SINR in dB below which a block repeats coded bits, so that spreading power further carries no more: that
    /// of the last scheme below the code's own rate. This is a third for LTE's turbo code (36.212 5.1.3.2), and a fifth for
    /// NR's LDPC base graph 2, which schemes up to a rate of a quarter use (38.212 5.3.2, 6.2.2).
    #[inline]
    fn repeating_sinr_db(self) -> f64 {
        match self {
            Rates::Lte => REPEATING_SINR_DB,
            Rates::Nr { table, .. } => {
                // Rates are in 1/2048.
                let repeats = |scheme: &&channel::tables::nr::Mcs| scheme.rate * 5 < 2048;
                let schemes = table.schemes().iter().take_while(repeats).count();
                nr_link::mcs_sinr_db(table, schemes as u8 - 1).into()
            }
        }
    }

    /// Returns the bits carried by a resource block at an SINR in dB, smoothed over schemes.
    #[inline]
    fn bits_per_block(self, sinr_db: f32) -> f32 {
        match self {
            Rates::Lte => bits_per_block(sinr_db),
            Rates::Nr { table, elements } => f32::from(elements) * nr_link::efficiency_at(table, sinr_db),
        }
    }
}

/// What a UE's blocks carry, depending on the number of resource blocks over which it spreads its power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) strength: Strength,
    pub(crate) rates: Rates,
}

impl Spread {
    /// Returns the maximum number of resource blocks, at least one, up to which more blocks carry more bits.
    #[inline]
    pub(crate) fn most_prbs(&self) -> u16 {
        let Strength { sinr_db, headroom_db } = self.strength;
        if headroom_db >= WIDEST_DB {
            return WIDEST;
        }
        largest(headroom_db + (sinr_db - self.rates.repeating_sinr_db()).max(0.0))
    }

    /// Returns the bits of a block on `prbs` resource blocks, smoothed over schemes.
    #[inline]
    pub(crate) fn bits(&self, prbs: u16) -> f32 {
        f32::from(prbs) * self.rates.bits_per_block(self.strength.on(prbs) as f32)
    }
}

/// Maximum number of resource blocks of a carrier (38.101-1 Table 5.3.2-1).
const WIDEST: u16 = 275;
/// The same in dB.
const WIDEST_DB: f64 = BLOCKS_DB[WIDEST as usize];
/// The SINR in dB that the last scheme of LTE's uplink below a code rate of a third needs.
const REPEATING_SINR_DB: f64 = channel::phy::MCS_SINR_DB[channel::Direction::Uplink as usize][5] as f64;

/// Returns a number of resource blocks in dB.
#[inline]
fn blocks_db(prbs: u16) -> f64 {
    BLOCKS_DB[usize::from(prbs)]
}

/// Returns the largest number of resource blocks, at least one, not exceeding `db`.
#[inline]
fn largest(db: f64) -> u16 {
    (BLOCKS_DB[2..].partition_point(|blocks| *blocks <= db) + 1) as u16
}

const BLOCKS_DB: [f64; WIDEST as usize + 1] = {
    let mut table = [0.0; WIDEST as usize + 1];
    let mut n = 1;
    while n < table.len() {
        table[n] = log2(n as f64) * DB_PER_OCTAVE;
        n += 1;
    }
    table
};

/// Ten times the decimal logarithm of two.
const DB_PER_OCTAVE: f64 = 3.010_299_956_639_812;

/// Returns the bits carried by a resource block of LTE at an SINR in dB: Shannon's bound with a gap, with a smooth transition
/// to the best scheme's size, as the errors of blocks near their required SINR have.
#[inline]
fn bits_per_block(sinr_db: f32) -> f32 {
    let place = ((sinr_db - FIRST_DB) * STEPS_PER_DB).clamp(0.0, (STEPS - 2) as f32);
    let step = place as usize;
    let way = place - step as f32;
    BITS[step] + way * (BITS[step + 1] - BITS[step])
}

const FIRST_DB: f32 = -10.0;
const STEPS_PER_DB: f32 = 2.0;
const STEPS: usize = 80;

static BITS: [f32; STEPS] = {
    /// Fits the SINR and the size of the uplink's schemes within 0.7 dB.
    const GAP: f64 = 1.6;
    /// 10 to the power of 1/20: half a dB.
    const HALF_DB: f64 = 1.122_018_454_301_963_3;
    /// Bits of the best scheme in one of 50 resource blocks.
    const MOST: f64 = channel::tables::lte::TBS[26][49] as f64 / 50.0;
    /// Half the width of the transition in bits, about 4 dB to either side.
    const BEND: f64 = 200.0;
    let mut table = [0.0; STEPS];
    let (mut step, mut sinr) = (0, 0.1);
    while step < STEPS {
        let bound = channel::phy::UPLINK_ELEMENTS as f64 * log2(1.0 + sinr / GAP);
        let below = MOST + BEND - bound;
        table[step] = if below >= 2.0 * BEND {
            bound
        } else if below > 0.0 {
            MOST - below * below / (4.0 * BEND)
        } else {
            MOST
        } as f32;
        sinr *= HALF_DB;
        step += 1;
    }
    table
};

/// The logarithm to base two of `x`, at least 1, by its series: the standard library's is not `const`.
const fn log2(x: f64) -> f64 {
    let (mut rest, mut whole) = (x, 0.0);
    while rest >= 2.0 {
        rest /= 2.0;
        whole += 1.0;
    }
    let ratio = (rest - 1.0) / (rest + 1.0);
    let (mut term, mut sum, mut n) = (ratio, 0.0, 1.0);
    // Terms of up to 3^-61 / 61.
    while n < 61.0 {
        sum += term / n;
        term *= ratio * ratio;
        n += 2.0;
    }
    whole + 2.0 * sum / core::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_whole_decibels_from_minus_23_to_40() {
        let cases = [(-40.0, 0), (-23.4, 0), (-22.6, 0), (-22.4, 1), (0.0, 23), (0.6, 24), (39.6, 63), (70.0, 63)];
        for (db, expected) in cases {
            assert_eq!(level(db), expected, "{db} dB");
        }
        assert_eq!([0, 23, 63].map(level_db), [-23.0, 0.0, 40.0]);
    }

    #[test]
    fn levels_of_nr_have_steps_of_one_and_two_decibels() {
        let cases =
            [(-40.0, 0), (-32.1, 0), (-32.0, 1), (0.0, 33), (21.9, 54), (22.0, 55), (23.9, 55), (37.9, 62), (38.0, 63)];
        for (db, expected) in cases {
            assert_eq!(nr_level(db), expected, "{db} dB");
        }
        assert_eq!([0, 1, 54, 55, 56, 63].map(nr_level_db), [-33.0, -32.0, 21.0, 22.0, 24.0, 38.0]);
        assert!((0..64).all(|level| nr_level(nr_level_db(level)) == level));
    }

    #[test]
    fn a_report_is_due_at_first_each_period_and_when_the_path_loss_has_changed() {
        let config = PowerReports { prohibit: Span::from_millis(20), ..PowerReports::default() };
        let mut reporting = Reporting::new();
        assert!(reporting.is_due(&config, 100.0, 7), "upon configuration");
        reporting.reported(&config, 100.0, Slots::LTE, 7);
        assert!(!reporting.is_due(&config, 103.0, 30), "3 dB is not more than 3 dB");
        assert!(!reporting.is_due(&config, 110.0, 26), "prohibited");
        assert!(reporting.is_due(&config, 110.0, 27));
        assert!(reporting.is_due(&config, 100.0, 28), "it stays triggered until it is sent");
        reporting.reported(&config, 110.0, Slots::LTE, 28);
        assert!(!reporting.is_due(&config, 110.0, 77) && reporting.is_due(&config, 110.0, 78));
        let never = PowerReports { periodic: None, path_loss_change_db: None, ..config };
        reporting.reported(&never, 110.0, Slots::LTE, 78);
        assert!(!reporting.is_due(&never, 30.0, 1 << 40));
    }

    #[test]
    fn an_older_report_changes_nothing() {
        let mut reported = Reported::default();
        reported.learn(-7.0, 10, 20);
        assert!((reported.one_block_db - 3.0).abs() < 1e-9, "10 dB more on a tenth of the blocks");
        reported.learn(20.0, 10, 19);
        assert!((reported.one_block_db - 3.0).abs() < 1e-9);
    }

    #[test]
    fn power_is_spread_over_the_blocks_that_it_is_not_enough_for() {
        let strength = Strength { sinr_db: 20.0, headroom_db: 10.0 };
        assert_eq!(strength.full_power_prbs(), 10);
        for (prbs, sinr_db) in [(1, 20.0), (10, 20.0), (20, 20.0 - DB_PER_OCTAVE), (100, 10.0)] {
            assert!((strength.on(prbs) - sinr_db).abs() < 1e-9, "{prbs}");
        }
        let most =
            |rates, sinr_db, headroom_db| Spread { strength: Strength { sinr_db, headroom_db }, rates }.most_prbs();
        assert_eq!(most(Rates::Lte, 20.0, 10.0), WIDEST);
        // 13 dB on one block, -1.31 dB on 26.99.
        assert_eq!(most(Rates::Lte, 13.0, 0.0), 26);
        assert_eq!([0.0, 6.1].map(|headroom_db| most(Rates::Lte, -5.0, headroom_db)), [1, 4]);
        // NR's codes repeat bits below a rate of a fifth: at -3.885 dB, for MCS 2 of the 64QAM table and MCS 8 of the low-rate
        // table, 386 of 2048. 13 dB on one block are that on 48.8.
        for table in McsTable::ALL {
            assert_eq!(most(Rates::Nr { table, elements: 144 }, 13.0, 0.0), 48, "{table:?}");
        }
    }

    #[test]
    fn a_block_of_nr_carries_what_its_table_and_its_slot_have() {
        for table in McsTable::ALL {
            for elements in [24, 144] {
                let spread = |sinr_db| Spread {
                    strength: Strength { sinr_db, headroom_db: 30.0 },
                    rates: Rates::Nr { table, elements },
                };
                for (mcs, scheme) in table.schemes().iter().enumerate() {
                    let least = nr_link::mcs_sinr_db(table, mcs as u8);
                    let expected = f64::from(elements) * scheme.efficiency() * 10.0;
                    let bits = f64::from(spread(f64::from(least)).bits(10));
                    assert!((bits / expected - 1.0).abs() < 1e-4, "{table:?} {mcs}: {bits} {expected}");
                }
            }
        }
    }

    #[test]
    fn each_further_block_carries_less_and_what_is_carried_is_about_what_the_tables_say() {
        for sinr_db in [0.0, 10.0, 20.0, 30.0] {
            let strength = Spread { strength: Strength { sinr_db, headroom_db: 0.0 }, rates: Rates::Lte };
            // Over eight blocks, because the table's steps are seen in a single one.
            let more = |n: u16| (strength.bits(n + 8) - strength.bits(n)) / 8.0;
            for n in (1..strength.most_prbs().min(90)).step_by(8) {
                assert!(more(n) > more(n + 8) - 0.5, "{sinr_db} {n} {} {}", more(n), more(n + 8));
                assert!(more(n) > 0.0, "{sinr_db} {n} {}", more(n));
            }
        }
        for mcs in 6..=28u8 {
            let least = channel::phy::MCS_SINR_DB[channel::Direction::Uplink as usize][usize::from(mcs)];
            let table = channel::tables::lte::tbs(channel::tables::lte::ul_mcs(mcs).i_tbs, 50) as f32 / 50.0;
            let ours = bits_per_block(least);
            assert!((ours / table - 1.0).abs() < 0.16, "{mcs} {ours} {table}");
        }
    }

    #[test]
    fn constant_logarithms_are_those_of_the_library() {
        for n in 1..=275u16 {
            assert!((blocks_db(n) - 10.0 * libm::log10(f64::from(n))).abs() < 1e-12, "{n}");
        }
    }
}
