//! The transport block of equation 3.

use channel::tables::nr::{Allocation, Mcs, McsTable, SYMBOLS};
use channel::tables::{lte, nr};
use rnis::RadioReport;

/// Resource elements of a block in a slot of 14 symbols.
const ELEMENTS: u8 = 12 * SYMBOLS;
/// The most layers of a UE in the downlink of LTE and of NR, and the most blocks of a carrier of NR (38.101-1 5.3.2).
const LTE_LAYERS: u8 = 8;
const NR_LAYERS: u8 = 4;
const NR_BLOCKS: u16 = 275;

/// How equation 3 learns what resource blocks carry.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TransportBlocks {
    /// As the paper says (3.3), for LTE: the MCS has a row of the table of transport blocks, and the number of blocks a column
    /// (36.213 tables 7.1.7.1-1 and 7.1.7.2.1-1). Each layer has a code word.
    Lte,
    /// As the paper says (3.3), for NR: by the MCS table, and the formula and the table of 38.214 5.1.3.2. The paper multiplies
    /// subcarriers, modulation order and code rate; the standard also multiplies the symbols and the layers, as here.
    Nr {
        /// The table of modulation and coding schemes.
        mcs_table: McsTable,
        /// The resource elements of a block in a slot that carry data.
        elements: u8,
    },
    /// The bits of a block that the report tells.
    #[default]
    Reported,
}

impl TransportBlocks {
    /// Returns the bits that `block_slots` carry in the slots of a report, divided equally among them; `None` if the report or the
    /// tables do not tell.
    pub(crate) fn bits(&self, report: &RadioReport, block_slots: u64) -> Option<f64> {
        let slots = u64::from(report.slots.max(1));
        let prbs = u16::try_from(block_slots / slots).ok()?;
        let (mcs, layers) = (usize::from(report.mcs?), report.layers.unwrap_or(1).max(1));
        let bits = match *self {
            TransportBlocks::Reported => return None,
            TransportBlocks::Lte => {
                let i_tbs = lte::DOWNLINK_MCS.get(mcs)?.i_tbs;
                let most = lte::TBS[0].len() as u16;
                f64::from(layers.min(LTE_LAYERS)) * of_carriers(prbs, most, |prbs| lte::tbs(i_tbs, prbs))
            }
            TransportBlocks::Nr { mcs_table, elements } => {
                let mcs: Mcs = *mcs_table.schemes().get(mcs)?;
                let (dmrs, layers) = (ELEMENTS.saturating_sub(elements), layers.min(NR_LAYERS));
                let allocation = |prbs| Allocation { prbs, symbols: SYMBOLS, dmrs, overhead: 0, layers };
                of_carriers(prbs, NR_BLOCKS, |prbs| nr::tbs(mcs, &allocation(prbs), 0))
            }
        };
        Some(bits * slots as f64)
    }
}

/// Returns the bits of `prbs` blocks. More than a carrier has are of several carriers.
fn of_carriers(prbs: u16, most: u16, bits: impl Fn(u16) -> u32) -> f64 {
    let rest = prbs % most;
    let of_rest = if rest > 0 { f64::from(bits(rest)) } else { 0.0 };
    if prbs < most { of_rest } else { f64::from(prbs / most) * f64::from(bits(most)) + of_rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::report;
    use units::{Span, Time};

    /// A report on one downlink slot of a carrier of `n_prb` blocks.
    fn slot(n_prb: u16, mcs: Option<u8>, layers: u8) -> RadioReport {
        let report = report(Time::ZERO, Span::from_millis(1), 0.0);
        RadioReport { n_prb, slots: 1, mcs, layers: Some(layers), ..report }
    }

    /// 132 blocks of 120 kHz with MCS 28, one symbol for PDCCH and one for DMRS: 106 576 bits each 125 µs are 852.6 Mbit/s, the
    /// cell of table 1. LTE with 25 blocks and MCS 28 (`I_TBS` 26): 18 336 bits each millisecond.
    #[test]
    fn transport_blocks_are_those_of_the_standards_tables() {
        let nr = TransportBlocks::Nr { mcs_table: McsTable::Qam64, elements: 144 };
        let bits = |of: TransportBlocks, report: &RadioReport, prbs| of.bits(report, prbs);
        assert_eq!(bits(nr, &slot(132, Some(28), 1), 132), Some(106_576.0));
        assert_eq!(bits(TransportBlocks::Lte, &slot(25, Some(28), 1), 25), Some(18_336.0));
        assert_eq!(bits(TransportBlocks::Lte, &slot(25, Some(28), 2), 25), Some(2.0 * 18_336.0));
        // Table 7.1.7.2.1-1, I_TBS 9 (MCS 10) and 10 blocks; 38.214 table 5.1.3.2-1: 144 * 120 / 1024 * 2 = 33.75 bits are 32.
        assert_eq!(bits(TransportBlocks::Lte, &slot(25, Some(10), 1), 10), Some(1544.0));
        assert_eq!(bits(nr, &slot(132, Some(0), 1), 1), Some(32.0));
        assert_eq!(bits(nr, &slot(132, Some(5), 1), 0), Some(0.0));
    }

    #[test]
    fn the_blocks_of_an_interval_are_divided_among_its_slots() {
        let two = RadioReport { slots: 2, ..slot(25, Some(28), 1) };
        assert_eq!(TransportBlocks::Lte.bits(&two, 50), Some(2.0 * 18_336.0));
    }

    #[test]
    fn an_unknown_scheme_has_no_transport_block() {
        for report in [slot(25, None, 1), slot(25, Some(31), 1)] {
            assert_eq!(TransportBlocks::Lte.bits(&report, 25), None);
        }
        assert_eq!(TransportBlocks::Reported.bits(&slot(25, Some(28), 1), 25), None);
    }

    /// More blocks than a carrier has are several carriers, more layers than a UE has are as many, and none are one.
    #[test]
    fn blocks_and_layers_are_those_of_carriers_and_of_ues() {
        let nr = TransportBlocks::Nr { mcs_table: McsTable::Qam64, elements: 144 };
        for (of, most, most_layers) in [(TransportBlocks::Lte, 110, 8), (nr, 275, 4)] {
            let bits = |layers, prbs| of.bits(&slot(100, Some(10), layers), prbs).expect("it is known");
            let (all, one) = (bits(1, most), bits(1, 1));
            assert!(all > bits(1, most - 10));
            let carriers = [most + 1, 2 * most, 2 * most + 1].map(|prbs| bits(1, prbs));
            assert_eq!(carriers, [all + one, 2.0 * all, 2.0 * all + one], "{of:?}");
            assert!(bits(most_layers, 50) > bits(most_layers - 1, 50));
            assert_eq!(bits(most_layers + 1, 50), bits(most_layers, 50), "{of:?}");
            let unknown = RadioReport { layers: None, ..slot(100, Some(10), 1) };
            assert_eq!([bits(0, 50), of.bits(&unknown, 50).expect("it is known")], [bits(1, 50); 2], "{of:?}");
            // An interval without a slot has the blocks of one.
            let empty = RadioReport { slots: 0, ..slot(100, Some(10), 1) };
            assert_eq!(of.bits(&empty, 50), Some(bits(1, 50)), "{of:?}");
            assert_eq!(of.bits(&slot(100, Some(10), 1), 65_536), None, "{of:?}: no cell has so many");
        }
        // A block has 168 elements, and no more carry data.
        let all = TransportBlocks::Nr { mcs_table: McsTable::Qam64, elements: 168 };
        let more = TransportBlocks::Nr { mcs_table: McsTable::Qam64, elements: 255 };
        let bits = |of: TransportBlocks| of.bits(&slot(100, Some(10), 1), 50);
        assert!(bits(all) > bits(nr) && bits(more) == bits(all));
    }
}
