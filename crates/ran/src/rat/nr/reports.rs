//! NR: the sizes and levels of reports.

use channel::tables::nr::{LONG_LEVELS, SHORT_LEVELS, bytes, level};

use crate::mac::requests::{GROUPS, MOST_ASSUMED, Report};

/// A MAC subheader and a single entry power headroom report. 38.321 6.1.3.8.
pub(crate) const HEADROOM_REPORT: u32 = 3;

/// Returns the report for these bytes in each group: short with five bits if at most one has data, long with eight.
pub(crate) fn report(waiting: [u32; GROUPS]) -> Report {
    let upper_ends: &[u32] = if is_long(&waiting) { &LONG_LEVELS } else { &SHORT_LEVELS };
    let levels = waiting.map(|waiting| level(upper_ends, waiting));
    // What an open-ended level stands for is the cell's assumption; a block with padding corrects it.
    let is_open = |level: u8| usize::from(level) == upper_ends.len();
    let bytes = |level| if is_open(level) { MOST_ASSUMED } else { bytes(upper_ends, level) };
    Report { levels, bytes: levels.iter().fold(0u32, |sum, level| sum.saturating_add(bytes(*level))) }
}

/// Returns the size of that report with its subheader. 38.321 6.1.3.1.
#[inline]
pub(crate) fn report_size(waiting: &[u32; GROUPS]) -> u32 {
    if is_long(waiting) { 3 + waiting.iter().filter(|bytes| **bytes > 0).count() as u32 } else { 2 }
}

#[inline]
fn is_long(waiting: &[u32; GROUPS]) -> bool {
    waiting.iter().filter(|bytes| **bytes > 0).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_one_group_is_short() {
        let mut waiting = [0; GROUPS];
        waiting[5] = 1500;
        let short = report(waiting);
        assert_eq!((short.levels[5], short.bytes, report_size(&waiting)), (17, 2014, 2));
        waiting[1] = 10;
        let long = report(waiting);
        assert_eq!((long.levels[1], long.bytes, report_size(&waiting)), (1, 10 + 1532, 5));
        assert_eq!((report([0; GROUPS]).bytes, report_size(&[0; GROUPS])), (0, 2));
    }
}
