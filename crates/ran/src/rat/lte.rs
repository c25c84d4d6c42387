//! LTE in FDD: 36.211, 36.213, 36.321.

use channel::{Direction, Modulation, tables::lte as tables};
use units::Span;

use super::grid::{Grid, Sizes};
use crate::mac::blocks::Blocks;
use crate::mac::requests::{GROUPS, LONG_BSR, Report, SHORT_BSR};

/// The length of a subframe, which is a TTI.
pub(super) const SLOT: Span = Span::from_millis(1);

/// TTIs from a scheduling request to the resulting grant: its own, and three for decoding and scheduling.
pub(super) const REQUEST_TO_GRANT: u64 = 4;

/// TTIs from an uplink grant to the transmission, and from a NACK to the repetition (36.213 8.0).
pub(super) const GRANT_TO_DATA: u64 = 4;

/// TTIs from an uplink transmission until the UE knows that it has failed (36.213 9.1.2).
pub(super) const DATA_TO_NACK: u64 = 4;

/// TTIs from a downlink transmission until its process can be reused: feedback comes after four (36.213 7.3).
pub(super) const DATA_TO_REUSE: u64 = 8;

/// The maximum decoding time in TTIs for a block to be acknowledged in time.
pub(super) const LONGEST_DECODING: u64 = 3;

/// 36.321 5.3.2, 5.4.2.
pub(super) const PROCESSES: u8 = 8;

/// Maximum number of resource blocks in the tables of transport block sizes.
pub(super) const WIDEST: u16 = 110;

/// The largest MCS index.
pub(super) const BEST_MCS: u8 = 28;

/// A MAC subheader and the byte of a power headroom report (36.321 6.1.3.6).
pub(super) const HEADROOM_REPORT: u32 = 2;

/// The lowest MCS of an uplink block on one and on two resource blocks: with fewer than 56 bits, MAC and RLC headers
/// and a report would leave no room for data.
const LEAST_MCS: [u8; 2] = [4, 1];

/// Synchronous HARQ: the TTI number determines the process (36.321 5.4.2).
#[inline]
pub(super) fn uplink_process(tti: u64) -> u8 {
    (tti % u64::from(PROCESSES)) as u8
}

/// Downlink allocation of type 0 (36.213 7.1.6.1). The uplink's control channel occupies the edges: one block of 25 on
/// both sides together, an estimate of operators' configurations.
pub(super) fn grid(prbs: u16) -> Grid {
    let group = tables::rbg_size(prbs);
    let control = prbs / 25;
    Grid {
        prbs,
        group,
        groups: prbs.div_ceil(group),
        shared: Blocks::run(control / 2, prbs - control),
        sizes: Sizes::Smooth,
    }
}

/// Symbols of the control region, which [`channel::phy::DOWNLINK_ELEMENTS`] leaves out.
const CONTROL_SYMBOLS: u32 = 2;
/// Resource element groups of a resource block in the control region: two in its first symbol, which has reference signals,
/// and three in each further one (36.211 6.2.4).
const CONTROL_GROUPS: u32 = 2 + 3 * (CONTROL_SYMBOLS - 1);
/// Resource element groups of PCFICH (36.211 6.7.4), and of a PHICH group (6.9.3).
const PCFICH_GROUPS: u32 = 4;
const PHICH_GROUPS: u32 = 3;
/// Resource element groups of a control channel element (36.211 6.8.1).
const ELEMENT_GROUPS: u32 = 9;

/// Returns the control channel elements of a subframe: what PCFICH and PHICH leave of the control region, with a PHICH group
/// for each eight resource blocks (N_g = 1, 36.211 6.9).
pub(super) fn control_elements(prbs: u16) -> u32 {
    let prbs = u32::from(prbs);
    let others = PCFICH_GROUPS + PHICH_GROUPS * prbs.div_ceil(8);
    (CONTROL_GROUPS * prbs).saturating_sub(others) / ELEMENT_GROUPS
}

#[inline]
pub(super) fn downlink_bits(mcs: u8, prbs: u16) -> u32 {
    tables::tbs(tables::dl_mcs(mcs).i_tbs, prbs)
}

#[inline]
pub(super) fn uplink_bits(mcs: u8, prbs: u16) -> u32 {
    tables::tbs(tables::ul_mcs(mcs).i_tbs, prbs)
}

#[inline]
pub(super) fn modulation(direction: Direction, mcs: u8) -> Modulation {
    tables::mcs(direction, mcs).modulation
}

#[inline]
pub(super) fn least_mcs(prbs: u16) -> u8 {
    LEAST_MCS.get(usize::from(prbs) - 1).copied().unwrap_or(0)
}

/// Returns the report for these bytes in each group. 36.321 6.1.3.1.
#[inline]
pub(super) fn report(waiting: [u32; GROUPS]) -> Report {
    let mut report = Report::default();
    for (group, waiting) in four(&waiting).into_iter().enumerate() {
        if waiting > 0 {
            report.levels[group] = tables::bsr_index(waiting);
            report.bytes += tables::bsr_bytes(report.levels[group]);
        }
    }
    report
}

/// Returns the size of that report: short if at most one group has data. 36.321 6.1.3.1.
#[inline]
pub(super) fn report_size(waiting: &[u32; GROUPS]) -> u32 {
    if four(waiting).iter().filter(|bytes| **bytes > 0).count() > 1 { LONG_BSR } else { SHORT_BSR }
}

/// LTE has four groups; the last one stands for further ones.
#[inline]
fn four(waiting: &[u32; GROUPS]) -> [u32; 4] {
    let [first, second, third, rest @ ..] = *waiting;
    [first, second, third, u32::try_from(rest.map(u64::from).iter().sum::<u64>()).unwrap_or(u32::MAX)]
}

/// I_TBS 6 has more bits than coded bits on one block (36.213 table 7.1.7.2.1-1). In both directions it corresponds to
/// MCS 6.
#[inline]
pub(super) fn usable(mcs: u8, prbs: u16) -> u8 {
    if mcs == 6 && prbs == 1 { 5 } else { mcs }
}

/// Returns the smallest valid number of blocks of an uplink grant from `n` on.
#[inline]
pub(super) fn uplink_size_from(n: u16) -> u16 {
    UPLINK_SIZES_FROM[usize::from(n.min(108))].into()
}

const UPLINK_SIZES_FROM: [u8; 109] = {
    let mut sizes = [108; 109];
    let mut n = 108;
    while n > 0 {
        n -= 1;
        sizes[n] = if UPLINK_SIZES[n] as usize == n && n > 0 { n as u8 } else { sizes[n + 1] };
    }
    sizes
};

/// Returns the largest valid number of blocks of an uplink grant up to `n` (36.211 5.3.3: 2^a 3^b 5^c).
#[inline]
pub(super) fn uplink_size(n: u16) -> u16 {
    UPLINK_SIZES[usize::from(n.min(110))].into()
}

const UPLINK_SIZES: [u8; 111] = {
    let mut sizes = [0; 111];
    let mut n = 1;
    while n < sizes.len() {
        let mut rest = n;
        while rest % 2 == 0 {
            rest /= 2;
        }
        while rest % 3 == 0 {
            rest /= 3;
        }
        while rest % 5 == 0 {
            rest /= 5;
        }
        sizes[n] = if rest == 1 { n as u8 } else { sizes[n - 1] };
        n += 1;
    }
    sizes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uplink_sizes_have_the_factors_2_3_and_5_only() {
        for n in 1..=110u16 {
            let size = uplink_size(n);
            let allowed = |mut k: u16| {
                for p in [2, 3, 5] {
                    while k.is_multiple_of(p) {
                        k /= p;
                    }
                }
                k == 1
            };
            assert!(size <= n && allowed(size) && ((size + 1)..=n).all(|k| !allowed(k)), "{n}: {size}");
        }
    }
}
