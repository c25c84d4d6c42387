//! The division of slots and the MAC layer of NR cells.

use super::mac::RANDOM_ACCESS;
use super::{
    ASSIGNMENTS, CqiOf, MAX_AVERAGE, MAX_TIMER, NrDrx, OUTER_LOOP_DB, POSITIVE_TIMER, SR_MAXIMUM, SR_PROHIBIT,
    TRANSMISSIONS, check_delay,
};
use crate::{LinkAdaptation, MacConfig, Nr, Pattern, PowerReports, Rat, Requests};
use channel::tables::nr::{McsTable, Numerology, SYMBOLS};
use core::ops::RangeInclusive;
use units::check::Check;
use units::{Bytes, Span, kinds, parameters};

/// Symbols of one direction in a special slot.
const SPECIAL_SYMBOLS: RangeInclusive<u8> = 0..=SYMBOLS - 1;
/// The interval between scheduling request opportunities that a cell without a TDD pattern has by default.
const SR_PERIOD: Span = Span::from_millis(5);
/// `periodicity` of 38.331's `ConfiguredGrantConfig`, in slots.
const PERIODS: [u64; 22] =
    [1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2560, 5120];

kinds! { "Duplex",
    /// The division of slots between downlink and uplink.
    pub enum Duplex {
        /// A carrier for each direction.
        Fdd,
        /// A fixed pattern of slots on one carrier.
        Tdd(Tdd),
        /// Each slot begins with the downlink's control channel and ends with the uplink's, and the symbols between
        /// are divided by demand, as in ns-3's mmWave module.
        Flexible,
    }
}

parameters! {
    /// A TDD pattern.
    pub struct Tdd {
        /// One letter for each slot: `D` downlink, `S` special, `U` uplink, such as `DDDSU` or `DDDDDDDSUU`. It takes
        /// 0.5, 0.625, 1, 1.25, 2, 2.5, 3, 4, 5 or 10 ms.
        pub pattern: String = "DDDSU".to_owned();
        /// Downlink symbols at the start of the special slot, which has 14.
        pub downlink_symbols: u8 = 10, in SPECIAL_SYMBOLS;
        /// Uplink symbols at its end; those between, at least one, are guard.
        pub uplink_symbols: u8 = 2, in SPECIAL_SYMBOLS;
    }
}

impl Default for Duplex {
    fn default() -> Duplex {
        Duplex::Tdd(Tdd::default())
    }
}

impl Tdd {
    /// Returns the numbers of downlink, special and uplink slots, or `None` if the pattern has none, or not in this order.
    pub fn slots(&self) -> Option<[usize; 3]> {
        let rest = self.pattern.trim_start_matches('D');
        let uplink = rest.trim_start_matches('S');
        let [downlink, special] = [self.pattern.len() - rest.len(), rest.len() - uplink.len()];
        let fits = special <= 1
            && self.pattern.len() <= 160
            && !self.pattern.is_empty()
            && uplink.bytes().all(|slot| slot == b'U');
        fits.then_some([downlink, special, uplink.len()])
    }
}

impl Duplex {
    /// Returns the number of slots after which their directions repeat.
    pub fn pattern_slots(&self) -> u64 {
        let Duplex::Tdd(tdd) = self else { return 1 };
        tdd.slots().map_or(1, |slots| slots.iter().sum::<usize>() as u64)
    }
}

impl From<&Duplex> for crate::Duplex {
    /// # Panics
    /// If a TDD pattern was not checked.
    fn from(of: &Duplex) -> crate::Duplex {
        match of {
            Duplex::Fdd => crate::Duplex::Fdd,
            Duplex::Flexible => crate::Duplex::Flexible,
            Duplex::Tdd(tdd) => {
                let [downlink, special, uplink] = tdd.slots().expect("a checked pattern is valid").map(|n| n as u8);
                let symbols = |symbols: u8| if special > 0 { symbols } else { 0 };
                crate::Duplex::Tdd(Pattern {
                    slots: downlink + special + uplink,
                    downlink_slots: downlink,
                    downlink_symbols: symbols(tdd.downlink_symbols),
                    uplink_symbols: symbols(tdd.uplink_symbols),
                    uplink_slots: uplink,
                })
            }
        }
    }
}

/// What the MAC layer of NR has to fit.
#[derive(Clone, Copy, Debug)]
pub struct NrCell<'a> {
    /// The numerology.
    pub numerology: Numerology,
    /// The division of slots.
    pub duplex: &'a Duplex,
    /// The modulation and coding schemes of downlink and uplink.
    pub mcs_tables: [McsTable; 2],
    /// Resource blocks of the carrier, if it is a valid one.
    pub blocks: Option<u16>,
}

impl NrCell<'_> {
    /// Returns the length of a TDD pattern, whether it is valid or not.
    fn pattern(&self) -> Option<Span> {
        let Duplex::Tdd(Tdd { pattern, .. }) = self.duplex else { return None };
        Some(self.numerology.slot() * pattern.len() as u64)
    }
}

parameters! {
    /// Parameters of the MAC layer of NR.
    pub struct NrMac {
        /// Maximum number of HARQ transmissions of a transport block.
        pub harq_transmissions: u8 = 4, in TRANSMISSIONS;
        /// HARQ processes of either direction, 1 to 16.
        pub harq_processes: u8 = 16, in 1..=16;
        /// K1: slots from a downlink block to its acknowledgement, at least, 1 to 15. Default: as the UE's processing time
        /// requires (38.214 5.3).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub k1: Option<u8> = None, in 1..=15;
        /// K2: slots from a grant to its uplink block, at least, 1 to 16. Default: as the UE's processing time requires
        /// (38.214 6.4).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub k2: Option<u8> = None, in 1..=16;
        /// Decoding delay, from the end of a transmission until RLC receives the block; at most `k1` slots. What is sent in
        /// answer waits for the next slot.
        pub decoding: Span = Span::from_micros(100);
        /// Symbols of the downlink's control channel in each slot with downlink, 1 to 3.
        pub control_symbols: u8 = 1, in 1..=3;
        /// Symbols of the uplink's control channel in each slot with uplink, 1 or 2.
        pub uplink_control_symbols: u8 = 1, in 1..=2;
        /// Symbols of a block with reference signals (DMRS), 0 to 4.
        pub dmrs_symbols: u8 = 1, in 0..=4;
        /// Resource elements of each resource block that are lost otherwise: 0, 6, 12 or 18.
        pub overhead: u8 = 0, in &[0, 6, 12, 18];
        /// Interval between channel quality reports.
        pub cqi_period: Span = Span::from_millis(5);
        /// Delay from the measurement until the scheduler has the report.
        pub cqi_delay: Span = Span::from_millis(2);
        /// The scope of a CQI; for `worst-group`, a group is a resource block.
        pub cqi: CqiOf = CqiOf::Carrier;
        /// Step of the outer-loop link adaptation towards 10 % block errors, in dB; 0 disables it.
        pub outer_loop_db: f64 = 0.1, in OUTER_LOOP_DB;
        /// Averaging time of proportional fair: a UE's past rate is an exponential average over it. ns-3's default is 99 ms, as 99
        /// TTIs of LTE.
        pub fairness: Span = Span::from_millis(100);
        /// Interval between a UE's scheduling request opportunities, from two symbols to 640 slots. One opportunity a slot
        /// is used. In TDD, a UE's opportunities are the uplink slots at its offset in each interval, which should therefore be a
        /// multiple of the pattern, or one slot. Default: 5 ms, or the multiple of the TDD pattern next to it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub sr_period: Option<Span> = None;
        /// Number of these opportunities for which a request suppresses the next one, 0 to 7.
        pub sr_prohibit: u8 = 1, in SR_PROHIBIT;
        /// Number of scheduling requests before random access, 4 to 64.
        pub sr_maximum: u8 = 64, in SR_MAXIMUM;
        /// Size of the grant that answers a scheduling request.
        pub first_grant: Bytes = Bytes::new(150), in Bytes::new(1)..=Bytes::new(100_000);
        /// Interval between buffer status reports while data waits.
        pub bsr_period: Span = Span::from_millis(5);
        /// How long a UE with data waits without a grant before it requests again.
        pub bsr_retx: Span = Span::from_millis(80), in POSITIVE_TIMER;
        /// Number of assignments and grants that the control channel has room for in a slot, both directions together, 2 to
        /// 1000. Default: half of the control channel elements of `control_symbols` over the whole carrier, at least 2: 8 in 106
        /// resource blocks with one symbol.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub assignments: Option<u16> = None, in ASSIGNMENTS;
        /// Discontinuous reception. Default: UEs always listen.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub drx: Option<NrDrx> = None;
        /// Configured grants. Default: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub configured_grant: Option<ConfiguredGrant> = None;
    } with check_cell(cell: &NrCell<'_>)
}

impl NrMac {
    /// Checks what depends on the cell.
    fn check_cell(&self, cell: &NrCell<'_>, c: &mut Check) {
        let slot = cell.numerology.slot();
        // 38.214 5.3: a block is decoded when it is acknowledged.
        let k1 = u64::from(self.k1.unwrap_or(if cell.numerology.mu() < 2 { 1 } else { 2 })).max(1);
        c.range("decoding", self.decoding, Span::ZERO..=slot * k1);
        c.range("cqi_period", self.cqi_period, slot..=MAX_TIMER);
        check_delay(self.cqi_delay, self.cqi_period, slot, c);
        c.range("fairness", self.fairness, slot * 2..=MAX_AVERAGE);
        c.range("sr_period", self.sr_period.unwrap_or(slot), slot / 7..=slot * 640);
        c.range("bsr_period", self.bsr_period, slot..=MAX_TIMER);
        if let Some(drx) = &self.drx {
            c.key("drx", |c| drx.check(cell.pattern(), c));
        }
        if let Some(grant) = &self.configured_grant {
            c.key("configured_grant", |c| grant.check(cell, self.harq_processes, c));
        }
    }

    /// Returns the resource elements of a block in a downlink slot that carry data.
    pub fn data_elements(&self) -> u8 {
        let symbols = SYMBOLS.saturating_sub(self.control_symbols).saturating_sub(self.dmrs_symbols);
        (12 * symbols).saturating_sub(self.overhead)
    }

    /// Returns the slots between a UE's scheduling request opportunities. The default fits the TDD pattern, as a gNB has to
    /// choose it: an opportunity in a slot without uplink is none (38.213 11.1).
    pub fn sr_slots(&self, cell: &NrCell<'_>) -> u64 {
        let slot = cell.numerology.slot().as_nanos();
        if let Some(period) = self.sr_period {
            return period.as_nanos().div_ceil(slot);
        }
        let usual = SR_PERIOD.as_nanos() / slot;
        let pattern = cell.duplex.pattern_slots();
        let below = usual / pattern * pattern;
        let above = below + pattern;
        if below > 0 && usual - below <= above - usual { below } else { above }
    }

    /// Returns what runs in a cell for which it was checked.
    pub fn config(&self, cell: &NrCell<'_>) -> MacConfig {
        let nr = Nr::new(cell.numerology, cell.duplex.into());
        let mut rat = nr.with_control(self.control_symbols, self.uplink_control_symbols);
        rat.tables = cell.mcs_tables;
        (rat.dmrs, rat.overhead) = (self.dmrs_symbols, self.overhead);
        (rat.k1, rat.k2) = (self.k1.unwrap_or(rat.k1), self.k2.unwrap_or(rat.k2));
        rat.processes = self.harq_processes;
        let slot = cell.numerology.slot();
        MacConfig {
            rat: Rat::Nr(rat),
            transmissions: self.harq_transmissions,
            decoding: self.decoding,
            link: LinkAdaptation {
                period: self.cqi_period,
                delay: self.cqi_delay,
                step_db: self.outer_loop_db as f32,
                worst_group: self.cqi == CqiOf::WorstGroup,
            },
            fairness: self.fairness,
            requests: Requests {
                sr_period: self.sr_slots(cell) as u16,
                sr_prohibit: self.sr_prohibit,
                sr_maximum: self.sr_maximum,
                random_access: RANDOM_ACCESS,
                bsr_periodic: Some(self.bsr_period),
                bsr_retx: self.bsr_retx,
                first_grant: self.first_grant.get() as u32,
            },
            assignments: self.assignments,
            power_reports: PowerReports::default(),
            drx: self.drx.as_ref().map(Into::into),
            configured: self.configured_grant.as_ref().map(|grant| grant.config(slot)),
        }
    }
}

parameters! {
    /// Configured grants of type 1 (38.321 5.8.2): resources of the uplink that recur, with which a UE sends without a request.
    /// Each UE that a cell serves has its own, as long as there is room for one more.
    pub struct ConfiguredGrant {
        /// Time from one occasion of a UE to the next (`periodicity`): 1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256,
        /// 320, 512, 640, 1024, 1280, 2560 or 5120 slots, with TDD a multiple of the pattern.
        pub period: Span = Span::from_millis(5);
        /// Number of resource blocks of an occasion, at most half of the carrier.
        pub resource_blocks: u16 = 10;
        /// Modulation and coding scheme of the uplink's table, raised to the lowest with which data fits.
        pub mcs: u8 = 10;
        /// HARQ processes for these blocks, fewer than `harq_processes` (`nrofHARQ-Processes`).
        pub processes: u8 = 4;
        /// Periods from a block until its process may have another, 1 to 64 (`configuredGrantTimer`).
        pub timer: u8 = 2, in 1..=64;
    } with check_cell(cell: &NrCell<'_>, processes: u8)
}

impl ConfiguredGrant {
    /// Checks what depends on the cell, and on the number of its HARQ processes.
    fn check_cell(&self, cell: &NrCell<'_>, processes: u8, c: &mut Check) {
        self.check_period(cell, c);
        match cell.blocks {
            Some(1) => c.wrong("a carrier of one resource block has no room for repetitions"),
            Some(blocks) => c.range("resource_blocks", self.resource_blocks, 1..=(blocks / 2).max(1)),
            None => {}
        }
        let most = if cell.mcs_tables[1] == McsTable::Qam256 { 27 } else { 28 };
        c.range("mcs", self.mcs, 0..=most);
        if processes < 2 {
            return c.key("processes", |c| {
                c.wrong("one HARQ process is needed for other blocks: raise `harq_processes`");
            });
        }
        c.range("processes", self.processes, 1..=(processes - 1).min(15));
    }

    fn check_period(&self, cell: &NrCell<'_>, c: &mut Check) {
        let (period, slot) = (self.period, cell.numerology.slot());
        let slots = period.as_nanos() / slot.as_nanos();
        let is_whole = period.as_nanos().is_multiple_of(slot.as_nanos());
        match cell.duplex {
            Duplex::Flexible => c.wrong("flexible slots are divided by demand: use `fdd` or a TDD pattern"),
            _ if !is_whole || !PERIODS.contains(&slots) => {
                let list = PERIODS.map(|n| n.to_string()).join(", ");
                c.key("period", |c| c.wrong(format!("{period} is not one of {list} slots of {slot}")));
            }
            Duplex::Tdd(Tdd { pattern, .. }) if !slots.is_multiple_of(pattern.len().max(1) as u64) => {
                let own = pattern.len();
                let message = format!("{period}, {slots} slots, is not a multiple of the TDD pattern, {own} slots");
                c.key("period", |c| c.wrong(message));
            }
            Duplex::Tdd(Tdd { pattern, .. }) if !pattern.contains('U') => {
                c.wrong("the TDD pattern has no uplink slot");
            }
            _ => {}
        }
    }

    fn config(&self, slot: Span) -> crate::ConfiguredGrant {
        crate::ConfiguredGrant {
            period: (self.period.as_nanos() / slot.as_nanos()) as u16,
            prbs: self.resource_blocks,
            mcs: self.mcs,
            processes: self.processes,
            timer: self.timer,
        }
    }
}
