//! What a UE can receive, from the radio network's reports.
//!
//! Equations 1 to 3 of the paper, and what they leave out. The paper promises each UE everything that is unused, so that
//! several UEs are promised more than there is, and a new UE of a full cell nothing; [`Capacity::fair`] divides the unused
//! resource blocks among the active UEs, and never promises less than an equal part (the idea is PBE-CC's). The paper takes
//! the transport block of the latest MCS; here, a block carries what the UE has decoded per block, errors included.

use crate::blocks::TransportBlocks;
use crate::feed::MOST_BITS;
use rnis::RadioReport;
use units::{Span, Time};

/// The time constant of averages over reports: a few HARQ round trips.
const SMOOTHING: Span = Span::from_millis(20);
/// The longest silence after which the interval between reports is still believed.
const LONGEST_PERIOD: Span = Span::from_secs(2);

/// A UE's capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Capacity {
    latest: Option<RadioReport>,
    /// The seconds that the latest report stands for, and those of intervals without a downlink slot since then.
    covered: f64,
    skipped: f64,
    /// What was reported since the last call of [`Capacity::take_decoded`]: the decoded bits, and the seconds they stand for.
    untaken: (f64, f64),
    /// The interval between the last two reports.
    period: Span,
    /// Averages a second: decoded bits, the UE's block-slots, those of all UEs, and those that there are.
    bits: f64,
    blocks: f64,
    used: f64,
    all: f64,
    /// The average number of UEs with data, this one among them.
    ues: f64,
}

impl Capacity {
    /// Notes a report. One that is older than the latest is ignored: it came late. Returns whether it was not.
    pub(crate) fn on_report(&mut self, report: &RadioReport, now: Time) -> bool {
        let before = self.latest.as_ref().map(|latest| latest.time);
        // Clocks differ a little.
        let time = report.time.min(now);
        if before.is_some_and(|before| before > time) {
            return false;
        }
        if report.interval == Span::ZERO || report.slots == 0 && report.acked_bits == 0 {
            // An interval without a downlink slot says nothing, except that the cell is alive. It counts with the next one.
            if let Some(latest) = &mut self.latest {
                latest.time = time;
            }
            self.skipped += report.interval.as_secs_f64();
            return true;
        }
        let moved = self.latest.as_ref().is_some_and(|latest| latest.cell != report.cell);
        let skipped = std::mem::take(&mut self.skipped);
        self.covered = report.interval.as_secs_f64() + if moved { 0.0 } else { skipped };
        let span = self.covered;
        self.untaken = (self.untaken.0 + report.acked_bits as f64, self.untaken.1 + span);
        // The first report, and the first of a cell, stand for themselves.
        let weight = match before {
            Some(_) if !moved => span / (span + SMOOTHING.as_secs_f64()),
            _ => 1.0,
        };
        let average = |value: &mut f64, new: f64| *value += (new - *value) * weight;
        average(&mut self.bits, report.acked_bits as f64 / span);
        average(&mut self.blocks, report.prbs.unwrap_or(0) as f64 / span);
        // Without a report of them, nothing is unused.
        average(&mut self.used, report.cell_prbs.unwrap_or(report.all_prbs()) as f64 / span);
        average(&mut self.all, report.all_prbs() as f64 / span);
        average(&mut self.ues, ues(report));
        self.period = before.map_or(report.interval, |before| time - before).min(LONGEST_PERIOD);
        self.latest = Some(RadioReport { time, ..report.clone() });
        true
    }

    /// Returns how old the latest report is; `None` if there was none.
    pub(crate) fn age(&self, now: Time) -> Option<Span> {
        self.latest.as_ref().map(|latest| latest.age(now))
    }

    /// Returns for how long the latest report is believed: three intervals, so that two may be lost, but no less than clocks and
    /// networks may delay it.
    pub(crate) fn believed(&self) -> Span {
        (self.period * 3).max(Span::from_millis(100))
    }

    /// Returns the interval between reports.
    pub(crate) fn period(&self) -> Span {
        self.period
    }

    /// Returns the rate at which the UE has decoded blocks in the reports since the last call, in bytes a second of MAC, and the
    /// time of the latest; `None` if there were none. Several may come between two updates, and each counts: some schedulers
    /// give all of a slot to one UE after the other.
    pub(crate) fn take_decoded(&mut self) -> Option<(f64, Time)> {
        let (bits, seconds) = std::mem::take(&mut self.untaken);
        let time = self.latest.as_ref()?.time;
        (seconds > 0.0).then_some((bits / 8.0 / seconds, time))
    }

    /// Returns the reported queue in bytes, if there is a report of it that is not older than `fresh`.
    pub(crate) fn queue(&self, now: Time, fresh: Span) -> Option<f64> {
        let report = self.latest.as_ref().filter(|report| report.age(now) <= fresh)?;
        report.queue_bytes.map(|bytes| bytes as f64)
    }

    /// Returns equation 3 in bytes a second: what the blocks that the UE used (equation 2) and those that nobody used
    /// (equation 1) carry at its MCS, by the latest report; `None` if it does not tell what a block carries.
    pub(crate) fn published(&self, of: &TransportBlocks) -> Option<f64> {
        let report = self.latest.as_ref()?;
        let own = report.prbs.unwrap_or(0);
        let expected = own + report.all_prbs().saturating_sub(report.cell_prbs.unwrap_or(0));
        let bits = of.bits(report, expected).or_else(|| {
            let per_block = report.bits_per_prb.or_else(|| self.per_block(report))?;
            Some(expected as f64 * per_block)
        })?;
        sane(bits / self.covered / 8.0)
    }

    /// Returns the capacity in bytes a second of MAC, with unused blocks divided among the active UEs.
    pub(crate) fn fair(&self) -> Option<f64> {
        let report = self.latest.as_ref()?;
        sane(self.expected() * self.per_block(report)? / 8.0)
    }

    /// Returns what the UE used of the block-slots that it could have, as part of them; 1 if that is unknown.
    pub(crate) fn used(&self) -> f64 {
        let is_known = self.latest.as_ref().is_some_and(|latest| latest.prbs.is_some() && latest.cell_prbs.is_some());
        if is_known && self.all > 0.0 { self.blocks / self.expected() } else { 1.0 }
    }

    /// Returns the block-slots that the UE could have each second: its own and its part of the unused ones, or an equal part of
    /// all. Averages come first: a scheduler gives all of a slot to one UE after the other, and in its own slot each has all.
    fn expected(&self) -> f64 {
        let unused = (self.all - self.used).max(0.0);
        (self.all / self.ues).max(self.blocks + unused / self.ues)
    }

    /// Returns the bits that a block-slot carries, errors deducted.
    fn per_block(&self, report: &RadioReport) -> Option<f64> {
        // A few blocks say little: their transport blocks are rounded up, and padded.
        let enough = f64::from(report.n_prb) * 50.0;
        let measured = (self.blocks > 0.0).then(|| self.bits / self.blocks);
        let nominal = report.bits_per_prb.map(|bits| {
            let lost = if report.blocks > 0 { f64::from(report.failed) / f64::from(report.blocks) } else { 0.0 };
            bits * (1.0 - lost.min(1.0))
        });
        match (measured, nominal) {
            (Some(measured), Some(nominal)) if self.blocks < enough => {
                let weight = self.blocks / enough;
                Some(measured * weight + nominal * (1.0 - weight))
            }
            (measured, nominal) => measured.or(nominal),
        }
    }
}

/// Returns the capacity in bytes a second if it is one: reports come from outside.
fn sane(capacity: f64) -> Option<f64> {
    (0.0..=MOST_BITS / 8.0).contains(&capacity).then_some(capacity)
}

/// Returns the number of UEs with data, the report's among them: if it had none, it would be one more.
fn ues(report: &RadioReport) -> f64 {
    let had_data = report.prbs.unwrap_or(0) > 0 || report.queue_bytes.is_some_and(|bytes| bytes > 0);
    let others = report.active_ues.unwrap_or(1).saturating_sub(had_data.into());
    f64::from(others) + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::report;

    /// A report on a cell of 100 blocks for 10 slots, of which the UE used `own` and all UEs `used`, 500 bits each.
    fn used(own: u64, used: u64, active: u16, at: u64) -> RadioReport {
        let mut report = report(Time::from_nanos(at * 1_000_000), Span::from_millis(10), 0.0);
        (report.n_prb, report.slots) = (100, 10);
        (report.prbs, report.cell_prbs, report.active_ues) = (Some(own), Some(used), Some(active));
        report.acked_bits = own * 500;
        report.bits_per_prb = Some(500.0);
        report
    }

    fn capacity(report: &RadioReport) -> (f64, f64) {
        let mut capacity = Capacity::default();
        capacity.on_report(report, report.time);
        (capacity.published(&TransportBlocks::Reported).expect("published"), capacity.fair().expect("fair"))
    }

    #[test]
    fn two_ues_are_promised_too_much_by_the_paper_and_all_there_is_by_an_equal_division() {
        // Both use 300 of 1000 block-slots: the paper promises each 700.
        let (published, fair) = capacity(&used(300, 600, 2, 10));
        let of = |block_slots: f64| block_slots * 500.0 / 8.0 / 0.01;
        assert_eq!((published, fair), (of(700.0), of(500.0)));
    }

    #[test]
    fn a_new_ue_of_a_full_cell_has_an_equal_part() {
        let (published, fair) = capacity(&used(0, 1000, 1, 10));
        assert_eq!((published, fair), (0.0, 500.0 * 500.0 / 8.0 / 0.01));
    }

    /// A UE without blocks comes on top of the active ones, unless its queue tells that it is one of them.
    #[test]
    fn a_ue_with_a_queue_is_active_without_blocks() {
        let of = |queue_bytes| capacity(&RadioReport { queue_bytes, ..used(0, 1000, 1, 10) }).1;
        let all = 1000.0 * 500.0 / 8.0 / 0.01;
        assert_eq!([None, Some(0), Some(1)].map(of), [all / 2.0, all / 2.0, all]);
        // With a block it is one of them, too.
        assert_eq!(capacity(&used(1, 1000, 1, 10)).1, all);
    }

    #[test]
    fn ues_that_are_served_in_turn_are_promised_what_there_is() {
        // Four UEs with data, of which one has all blocks of a slot.
        let mut ues = vec![Capacity::default(); 4];
        for ms in 1..400 {
            for (turn, capacity) in (0..).zip(&mut ues) {
                let is_served = ms % 4 == turn;
                let mut report = used(if is_served { 100 } else { 0 }, 100, 4, ms);
                (report.slots, report.interval, report.queue_bytes) = (1, Span::from_millis(1), Some(1000));
                capacity.on_report(&report, report.time);
            }
        }
        let promised: f64 = ues.iter().map(|capacity| capacity.fair().expect("it is known")).sum();
        let all = 100.0 * 500.0 / 8.0 / 0.001;
        // Blocks of the last slots count more than those before.
        assert!((promised / all - 1.0).abs() < 0.03, "{promised} of {all}");
    }

    #[test]
    fn a_report_that_comes_late_is_ignored() {
        let mut capacity = Capacity::default();
        capacity.on_report(&used(300, 600, 2, 20), Time::from_nanos(20_000_000));
        let before = capacity.fair();
        capacity.on_report(&used(900, 900, 1, 10), Time::from_nanos(21_000_000));
        assert_eq!(capacity.fair(), before);
    }

    #[test]
    fn the_first_report_of_another_cell_stands_for_itself() {
        let mut capacity = Capacity::default();
        capacity.on_report(&used(1000, 1000, 1, 10), Time::from_nanos(10_000_000));
        let mut other = used(100, 1000, 10, 20);
        other.cell += 1;
        capacity.on_report(&other, other.time);
        assert_eq!(capacity.fair(), Some(100.0 * 500.0 / 8.0 / 0.01));
    }

    /// Ten reports in each slot, of which the first has all of it.
    #[test]
    fn reports_more_frequent_than_a_slot_tell_the_same_capacity() {
        let mut capacity = Capacity::default();
        for tenth in 1..2000 {
            let mut report = used(if tenth % 10 == 1 { 100 } else { 0 }, 100, 1, 0);
            report.time = Time::from_nanos(tenth * 100_000);
            report.interval = Span::from_micros(100);
            report.slots = u32::from(tenth % 10 == 1);
            capacity.on_report(&report, report.time);
        }
        let slot = 100.0 * 500.0 / 8.0 / 0.001;
        let (fair, (decoded, _)) = capacity.fair().zip(capacity.take_decoded()).expect("both are known");
        assert!((fair / slot - 1.0).abs() < 0.01, "{fair} of {slot}");
        assert!((decoded / slot - 1.0).abs() < 0.01, "{decoded} of {slot}");
        let published = capacity.published(&TransportBlocks::Reported).expect("it is known");
        assert!((published / slot - 1.0).abs() < 0.01, "{published} of {slot}");
    }

    #[test]
    fn all_reports_since_the_last_look_tell_what_was_decoded() {
        let mut capacity = Capacity::default();
        assert_eq!(capacity.take_decoded(), None);
        for (ms, blocks) in [(10, 1000), (20, 0), (30, 0)] {
            let report = used(blocks, 1000, 1, ms);
            capacity.on_report(&report, report.time);
        }
        let time = Time::from_nanos(30_000_000);
        assert_eq!(capacity.take_decoded(), Some((1000.0 * 500.0 / 8.0 / 0.03, time)));
        assert_eq!(capacity.take_decoded(), None);
        // Whatever a report claims, the next ones tell the truth.
        let absurd = RadioReport { acked_bits: u64::MAX, ..used(1000, 1000, 1, 40) };
        capacity.on_report(&absurd, absurd.time);
        capacity.take_decoded();
        let report = used(1000, 1000, 1, 50);
        capacity.on_report(&report, report.time);
        assert_eq!(capacity.take_decoded(), Some((1000.0 * 500.0 / 8.0 / 0.01, report.time)));
    }

    /// The time counts with the cell's next report. That of another cell stands for its own interval.
    #[test]
    fn intervals_without_a_slot_count_with_the_next_report_unless_the_cell_changes() {
        let empty = |at| RadioReport { slots: 0, ..used(0, 0, 1, at) };
        for (cell, seconds) in [(1, 0.03), (2, 0.01)] {
            let mut capacity = Capacity::default();
            let next = RadioReport { cell, ..used(600, 1000, 1, 40) };
            for report in [used(1000, 1000, 1, 10), empty(20), empty(30), next] {
                assert_eq!(capacity.age(report.time), capacity.latest.as_ref().map(|_| Span::from_millis(10)));
                assert!(capacity.on_report(&report, report.time), "it is the latest");
                let decoded = capacity.take_decoded();
                assert_eq!(decoded.is_some(), report.slots > 0);
                if report.time == Time::from_nanos(40_000_000) {
                    let rate = 600.0 * 500.0 / 8.0 / seconds;
                    assert_eq!(decoded, Some((rate, report.time)), "cell {cell}");
                    assert_eq!(capacity.published(&TransportBlocks::Reported), Some(rate), "cell {cell}");
                }
            }
            // It has been counted, or is forgotten.
            let report = RadioReport { cell, ..used(600, 1000, 1, 50) };
            capacity.on_report(&report, report.time);
            assert_eq!(capacity.take_decoded(), Some((600.0 * 500.0 / 8.0 / 0.01, report.time)));
        }
    }

    #[test]
    fn what_is_used_is_a_part_of_what_the_ue_could_have() {
        let used_of = |report: &RadioReport| {
            let mut capacity = Capacity::default();
            capacity.on_report(report, report.time);
            capacity.used()
        };
        // Alone it could have 1000 block-slots, and beside another one that uses 500, half of them and half of the rest.
        assert_eq!(used_of(&used(200, 200, 1, 10)), 0.2);
        assert_eq!(used_of(&used(250, 750, 2, 10)), 0.5);
        let unknown = RadioReport { prbs: None, ..used(200, 200, 1, 10) };
        assert_eq!(used_of(&unknown), 1.0);
        // Bits without a slot: there are no blocks.
        let empty = RadioReport { slots: 0, acked_bits: 500, ..used(0, 0, 1, 10) };
        assert_eq!(used_of(&empty), 1.0);
    }

    /// Fifty times the blocks of a slot each second are enough for what was decoded to count alone.
    #[test]
    fn a_few_blocks_tell_less_of_what_a_block_carries_than_its_scheme() {
        // 500 bits were decoded per block, and the scheme has 1000.
        let per_block = |own, blocks, failed, bits_per_prb| {
            let report = RadioReport { blocks, failed, bits_per_prb, ..used(own, own, 1, 10) };
            let mut capacity = Capacity::default();
            capacity.on_report(&report, report.time);
            capacity.per_block(&report)
        };
        let nominal = Some(1000.0);
        // 5000 blocks a second are 50 in 10 ms.
        assert_eq!(per_block(50, 0, 0, nominal), Some(500.0));
        assert_eq!(per_block(25, 0, 0, nominal), Some(750.0));
        assert_eq!(per_block(10, 0, 0, nominal), Some(900.0));
        assert_eq!(per_block(25, 4, 1, nominal), Some(625.0), "a quarter was lost");
        assert_eq!([per_block(0, 4, 1, nominal), per_block(0, 1, 1, nominal)], [Some(750.0), Some(0.0)]);
        assert_eq!(per_block(0, 4, 9, nominal), Some(0.0), "no more than all");
        assert_eq!([per_block(25, 0, 0, None), per_block(0, 0, 0, None)], [Some(500.0), None]);
    }

    /// After 20 ms, the time constant, an average is half of the way.
    #[test]
    fn what_reports_tell_is_averaged() {
        let mut capacity = Capacity::default();
        for (own, at) in [(2000, 20), (0, 40)] {
            let report = RadioReport { slots: 20, interval: SMOOTHING, ..used(own, own, 1, at) };
            capacity.on_report(&report, report.time);
        }
        // Of 100 000 block-slots a second, 50 000 are used. A UE that had no data comes on top of the active one.
        let averages = [capacity.bits, capacity.blocks, capacity.used, capacity.all, capacity.ues];
        assert_eq!(averages, [25e6, 50e3, 50e3, 100e3, 1.5]);
        let fair = capacity.fair().expect("it is known");
        assert!((fair - (50e3 + 50e3 / 1.5) * 500.0 / 8.0).abs() < 1e-3, "{fair}");
    }

    /// Without the blocks of all UEs, none is unused.
    #[test]
    fn what_a_report_leaves_out_is_as_bad_as_it_may_be() {
        let report = used(300, 600, 2, 10);
        let of = |block_slots: f64| block_slots * 500.0 / 8.0 / 0.01;
        assert_eq!(capacity(&RadioReport { cell_prbs: None, ..report.clone() }).1, of(500.0));
        assert_eq!(capacity(&RadioReport { cell_prbs: Some(1001), ..report.clone() }).0, of(300.0));
        assert_eq!(capacity(&RadioReport { prbs: None, ..report.clone() }).0, of(400.0));
        // It is the only one, and could have all.
        assert_eq!(capacity(&RadioReport { active_ues: None, ..report.clone() }).1, of(1000.0));
        assert_eq!(capacity(&RadioReport { active_ues: Some(0), ..report }).1, of(1000.0));
    }

    /// A clock may be ahead: a report is not younger than its arrival.
    #[test]
    fn a_report_is_believed_for_three_intervals_and_at_least_100_ms() {
        let ms = Span::from_millis;
        for (interval, period, believed) in
            [(0, 0, 100), (33, 33, 100), (34, 34, 102), (2_000, 2_000, 6_000), (2_001, 2_000, 6_000)]
        {
            let mut capacity = Capacity::default();
            let first = used(300, 600, 2, 50);
            assert!(capacity.on_report(&first, Time::ZERO + ms(40)));
            assert_eq!((capacity.age(Time::ZERO + ms(45)), capacity.period()), (Some(ms(5)), ms(10)));
            let now = Time::ZERO + ms(40 + interval);
            assert!(capacity.on_report(&used(300, 600, 2, 40 + interval), now), "not before the other");
            assert_eq!((capacity.period(), capacity.believed()), (ms(period), ms(believed)), "{interval} ms");
        }
    }

    #[test]
    fn a_queue_is_known_while_its_report_is_fresh() {
        let mut capacity = Capacity::default();
        let told = RadioReport { queue_bytes: Some(700), ..used(300, 600, 2, 10) };
        assert_eq!(capacity.queue(told.time, Span::MAX), None);
        capacity.on_report(&told, told.time);
        let fresh = Span::from_millis(50);
        let queue = |age| capacity.queue(told.time + age, fresh);
        assert_eq!([fresh, fresh + Span::from_nanos(1)].map(queue), [Some(700.0), None]);
    }

    /// 10^12 bits a second.
    #[test]
    fn a_capacity_beyond_any_cell_is_none() {
        let fair = |bits: f64| {
            let mut report = used(0, 0, 0, 10);
            (report.n_prb, report.interval, report.bits_per_prb) = (1000, Span::from_micros(10), Some(bits));
            let mut capacity = Capacity::default();
            capacity.on_report(&report, report.time);
            (capacity.fair(), capacity.published(&TransportBlocks::Reported))
        };
        let is_near = |capacity: Option<f64>| capacity.is_some_and(|capacity| (capacity / 124.9e9 - 1.0).abs() < 1e-9);
        let (low, high) = (fair(999.2), fair(1000.8));
        assert!(is_near(low.0) && is_near(low.1), "{low:?}");
        assert_eq!(high, (None, None));
    }
}
