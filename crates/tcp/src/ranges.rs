//! A set of disjoint offset ranges, sorted: what a receiver holds out of order, and what a sender knows to be held.
//!
//! Appending to or extending the last range is the common case and costs nothing more than a comparison; anything else is
//! a binary search and at most one shift of the shorter side. The number of ranges is the number of holes.

use std::collections::VecDeque;

/// A half-open range of stream offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Range {
    pub(crate) fn new(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether both together are one range.
    #[inline]
    pub(crate) fn touches(&self, other: &Range) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// What both have in common; empty if nothing.
    #[inline]
    pub(crate) fn and(&self, other: &Range) -> Range {
        Range::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// Sorted, disjoint, non-adjacent, non-empty ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeSet {
    ranges: VecDeque<Range>,
    bytes: u64,
}

impl RangeSet {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes in all ranges.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// One past the highest offset.
    #[inline]
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.back().map(|r| r.end)
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }

    /// The index of the first range that ends after `offset`.
    #[inline]
    fn search(&self, offset: u64) -> usize {
        match self.ranges.back() {
            Some(last) if last.end > offset && last.start <= offset => self.ranges.len() - 1,
            Some(last) if last.end <= offset => self.ranges.len(),
            _ => self.ranges.partition_point(|r| r.end <= offset),
        }
    }

    /// Adds a non-empty range; gives the range of the set that now contains it.
    #[inline]
    pub(crate) fn insert(&mut self, new: Range) -> Range {
        debug_assert!(!new.is_empty());
        match self.ranges.back_mut() {
            Some(last) if last.start <= new.start && new.start <= last.end => {
                let end = new.end.max(last.end);
                self.bytes += end - last.end;
                last.end = end;
                *last
            }
            _ => self.insert_apart(new),
        }
    }

    /// [`RangeSet::insert`] of what does not extend the last range.
    fn insert_apart(&mut self, new: Range) -> Range {
        // Ranges that touch are merged, so look for the first that ends at or after the start.
        let at = match self.ranges.back() {
            Some(last) if last.end < new.start => self.ranges.len(),
            _ => self.ranges.partition_point(|r| r.end < new.start),
        };
        let mut merged = new;
        let mut upto = at;
        while let Some(r) = self.ranges.get(upto).filter(|r| r.start <= new.end) {
            merged = Range::new(merged.start.min(r.start), merged.end.max(r.end));
            self.bytes -= r.end - r.start;
            upto += 1;
        }
        self.bytes += merged.end - merged.start;
        if upto == at {
            self.ranges.insert(at, merged);
        } else {
            self.ranges[at] = merged;
            if upto > at + 1 {
                self.ranges.drain(at + 1..upto);
            }
        }
        merged
    }

    /// The first part of the set that lies within `range`; empty if none.
    pub(crate) fn overlap(&self, range: &Range) -> Range {
        self.ranges.get(self.search(range.start)).map_or(Range::default(), |r| r.and(range))
    }

    /// The first part of `range` that is not in the set; empty if all of it is.
    #[inline]
    pub(crate) fn gap(&self, range: &Range) -> Range {
        if self.end().is_none_or(|end| end <= range.start) {
            return *range;
        }
        let at = self.search(range.start);
        let mut start = range.start;
        let mut next = self.ranges.get(at);
        if let Some(r) = next.filter(|r| r.start <= start) {
            start = r.end;
            next = self.ranges.get(at + 1);
        }
        Range::new(start, next.map_or(range.end, |r| r.start.min(range.end)))
    }

    /// Forgets everything below `offset`.
    #[inline]
    pub(crate) fn forget_below(&mut self, offset: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.start >= offset {
                break;
            }
            let upto = first.end.min(offset);
            self.bytes -= upto - first.start;
            if first.end > offset {
                first.start = offset;
                break;
            }
            self.ranges.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> RangeSet {
        let mut set = RangeSet::default();
        for &(start, end) in ranges {
            set.insert(Range::new(start, end));
        }
        set
    }

    #[test]
    fn touching_ranges_merge_and_others_do_not() {
        let mut s = set(&[(10, 20), (30, 40), (50, 60)]);
        assert_eq!(s.ranges.len(), 3);
        assert_eq!(s.insert(Range::new(20, 30)), Range::new(10, 40));
        assert_eq!(s.insert(Range::new(35, 55)), Range::new(10, 60));
        assert_eq!((s.ranges.len(), s.bytes()), (1, 50));
    }

    #[test]
    fn a_gap_is_what_is_missing_first() {
        let s = set(&[(10, 20), (30, 40)]);
        assert_eq!(s.gap(&Range::new(10, 40)), Range::new(20, 30));
        assert_eq!(s.gap(&Range::new(0, 15)), Range::new(0, 10));
        assert_eq!(s.gap(&Range::new(35, 50)), Range::new(40, 50));
        assert!(s.gap(&Range::new(31, 39)).is_empty());
        assert_eq!(s.overlap(&Range::new(15, 35)), Range::new(15, 20));
        assert!(s.overlap(&Range::new(20, 30)).is_empty());
    }

    #[test]
    fn any_order_of_insertion_agrees_with_a_set_of_bytes() {
        let mut state = 1u64;
        for _ in 0..200 {
            let (mut s, mut model) = (RangeSet::default(), std::collections::BTreeSet::new());
            for _ in 0..30 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let start = (state >> 33) % 60;
                let end = start + 1 + (state >> 50) % 6;
                let merged = s.insert(Range::new(start, end));
                model.extend(start..end);
                let run = |from: u64, held: bool| (from..90).find(|b| model.contains(b) != held).unwrap_or(90);
                let first = (0..=start).rev().take_while(|b| model.contains(b)).last().expect("it was added");
                assert_eq!(merged, Range::new(first, run(start, true)));
                if state >> 62 == 0 {
                    s.forget_below(start);
                    model.retain(|&b| b >= start);
                }
                assert_eq!((s.bytes(), s.is_empty()), (model.len() as u64, model.is_empty()));
                assert_eq!(s.first().map(|r| r.start), model.first().copied());
                assert_eq!(s.end(), model.last().map(|b| b + 1));
                for from in 0..70 {
                    for to in [from, from + 1, from + 4, from + 20, 90] {
                        // The first run of bytes in `from..to` that are, or are not, in the set.
                        let run = |held: bool| {
                            let start = (from..to).find(|b| model.contains(b) == held)?;
                            let end = (start..to).find(|b| model.contains(b) != held).unwrap_or(to);
                            Some(Range::new(start, end))
                        };
                        let (gap, overlap) = (s.gap(&Range::new(from, to)), s.overlap(&Range::new(from, to)));
                        assert_eq!(Some(gap).filter(|r| !r.is_empty()), run(false), "gap of {from} to {to}");
                        assert_eq!(Some(overlap).filter(|r| !r.is_empty()), run(true), "overlap of {from} to {to}");
                    }
                }
            }
        }
    }
}
