//! The resource blocks of UEs, for feeds that tell only those of the cell.

use super::carrier::scaled;
use crate::report::RadioReport;
use channel::tables::nr::McsTable;

/// The MCS and CQI tables: the default of srsRAN's gNB.
const TABLE: McsTable = McsTable::Qam256;
/// Resource elements of a block that carry data: 12 subcarriers of a slot with 14 symbols, less 2 symbols for PDCCH and 2 for DM-RS.
const ELEMENTS: f64 = 12.0 * 10.0;
/// While a cell uses fewer blocks than this part of all, what it uses for itself and padding may be most of them.
const ENOUGH: f64 = 0.05;

/// Fills in [`RadioReport::prbs`] and [`RadioReport::bits_per_prb`], where they are missing, in the reports on all UEs of a cell
/// in the same interval.
///
/// A UE's blocks carry per resource element what its MCS and rank say, or else its CQI; if neither is known, as much as those of
/// the others. So what a UE was sent tells its part of the cell's blocks, and those of a UE that is alone with data are the cell's.
pub(super) fn fill_in<'a>(reports: impl Iterator<Item = &'a mut RadioReport>) {
    let mut reports: Vec<_> = reports.map(|report| (bits_per_element(report), report)).collect();
    let known: Vec<f64> = reports.iter().filter_map(|(bits, _)| *bits).collect();
    let usual = if known.is_empty() { 1.0 } else { known.iter().sum::<f64>() / known.len() as f64 };
    let part = |bits: Option<f64>, report: &RadioReport| sent_bits(report) / bits.unwrap_or(usual);
    let sum: f64 = reports.iter().map(|(bits, report)| part(*bits, report)).sum();
    for (bits, report) in &mut reports {
        let per_block = bits.map(|bits| bits * ELEMENTS);
        if report.prbs.is_none() {
            let enough = ENOUGH * report.all_prbs() as f64;
            report.prbs = match (report.cell_prbs.map(|used| used as f64), per_block) {
                _ if report.acked_bits == 0 => Some(0),
                (Some(used), _) if used >= enough || per_block.is_none() => {
                    Some(scaled(used * part(*bits, report) / sum))
                }
                (_, Some(bits)) => Some(scaled(sent_bits(report) / bits).min(report.all_prbs())),
                (_, None) => None,
            };
        }
        report.bits_per_prb = report.bits_per_prb.or(per_block);
    }
}

/// Returns the bits of transport blocks that the UE was sent for the first time.
fn sent_bits(report: &RadioReport) -> f64 {
    let decoded = report.blocks.saturating_sub(report.failed).max(1);
    report.acked_bits as f64 * (1.0 + f64::from(report.failed) / f64::from(decoded))
}

/// Returns the bits of a resource element on all layers.
fn bits_per_element(report: &RadioReport) -> Option<f64> {
    // Without blocks, the MCS is none that was used.
    let mcs = report.mcs.filter(|_| report.blocks > 0).and_then(|mcs| TABLE.schemes().get(usize::from(mcs)));
    let cqi = || TABLE.cqi().get(usize::from(report.cqi?).checked_sub(1)?);
    let layers = f64::from(report.layers.unwrap_or(1));
    mcs.or_else(cqi).map(|scheme| scheme.efficiency() * layers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::UeId;
    use units::{Span, Time};

    /// A report of a second of a cell with 100 blocks in 1000 slots, of which all UEs used `used`.
    fn report(acked_bits: u64, (mcs, layers): (u8, u8), used: Option<u64>) -> RadioReport {
        RadioReport {
            time: Time::ZERO + Span::from_secs(1),
            interval: Span::from_secs(1),
            cell: 1,
            ue: UeId::new(1),
            n_prb: 100,
            slots: 1000,
            cell_prbs: used,
            active_ues: Some(2),
            prbs: None,
            acked_bits,
            blocks: if acked_bits > 0 { 100 } else { 0 },
            failed: 0,
            mcs: Some(mcs),
            layers: Some(layers),
            cqi: None,
            bits_per_prb: None,
            queue_bytes: None,
        }
    }

    fn filled<const N: usize>(mut reports: [RadioReport; N]) -> [RadioReport; N] {
        fill_in(reports.iter_mut());
        reports
    }

    #[test]
    fn a_ue_that_is_alone_with_data_used_what_the_cell_used() {
        let [busy, idle] = filled([report(8_000_000, (27, 1), Some(50_000)), report(0, (0, 1), Some(50_000))]);
        assert_eq!((busy.prbs, idle.prbs), (Some(50_000), Some(0)));
        // 7.40625 bits in 120 elements; an idle UE's MCS says nothing.
        assert_eq!((busy.bits_per_prb, idle.bits_per_prb), (Some(888.75), None));
    }

    #[test]
    fn ues_used_blocks_by_what_they_were_sent_and_by_mcs_and_rank() {
        // MCS 5 has 1.4765625 bits per element, and 27 has 7.40625; two layers have twice as much.
        let at = |bits, radio| report(bits, radio, Some(80_000));
        let [near, far] = filled([at(14_812_500, (27, 1)), at(2_953_125, (5, 1))]);
        assert_eq!((near.prbs, far.prbs), (Some(40_000), Some(40_000)));
        let [two, one] = filled([at(14_812_500, (27, 2)), at(14_812_500, (27, 1))]);
        assert_eq!((two.prbs, one.prbs), (Some(26_667), Some(53_333)));
        // Blocks that had to be sent again count.
        let again = RadioReport { failed: 50, ..at(10_000_000, (27, 1)) };
        let [again, once] = filled([again, at(10_000_000, (27, 1))]);
        assert_eq!((again.prbs, once.prbs), (Some(53_333), Some(26_667)));
    }

    #[test]
    fn without_enough_blocks_of_the_cell_the_mcs_tells_them() {
        for used in [None, Some(4999)] {
            let [ue] = filled([report(888_750, (27, 1), used)]);
            assert_eq!(ue.prbs, Some(1000), "{used:?}");
        }
    }

    #[test]
    fn a_cqi_stands_for_an_unknown_mcs_and_other_ues_for_an_unknown_cqi() {
        let with =
            |cqi| RadioReport { mcs: None, layers: None, blocks: 0, cqi, ..report(1_000_000, (0, 1), Some(60_000)) };
        let [ue] = filled([with(Some(15))]);
        assert_eq!((ue.prbs, ue.bits_per_prb), (Some(60_000), Some(888.75)));
        let [known, unknown] = filled([with(Some(15)), with(None)]);
        assert_eq!((known.prbs, unknown.prbs, unknown.bits_per_prb), (Some(30_000), Some(30_000), None));
        let nothing = RadioReport { cell_prbs: None, ..with(None) };
        let [ue] = filled([nothing]);
        assert_eq!((ue.prbs, ue.bits_per_prb), (None, None));
    }

    #[test]
    fn what_is_known_stays() {
        let own = RadioReport { prbs: Some(7), bits_per_prb: Some(3.0), ..report(1000, (27, 1), Some(50_000)) };
        assert_eq!(filled([own.clone()]), [own]);
    }
}
