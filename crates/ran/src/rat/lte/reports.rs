//! LTE: the sizes and levels of reports.

use channel::tables::lte as tables;

use crate::mac::requests::{GROUPS, LONG_BSR, Report, SHORT_BSR};

/// A MAC subheader and the byte of a power headroom report (36.321 6.1.3.6).
pub(crate) const HEADROOM_REPORT: u32 = 2;

/// Returns the report for these bytes in each group. 36.321 6.1.3.1.
#[inline]
pub(crate) fn report(waiting: [u32; GROUPS]) -> Report {
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
pub(crate) fn report_size(waiting: &[u32; GROUPS]) -> u32 {
    if four(waiting).iter().filter(|bytes| **bytes > 0).count() > 1 { LONG_BSR } else { SHORT_BSR }
}

/// LTE has four groups; the last one stands for further ones.
#[inline]
fn four(waiting: &[u32; GROUPS]) -> [u32; 4] {
    let [first, second, third, rest @ ..] = *waiting;
    [first, second, third, u32::try_from(rest.map(u64::from).iter().sum::<u64>()).unwrap_or(u32::MAX)]
}
