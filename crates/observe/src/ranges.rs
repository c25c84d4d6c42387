//! A bounded set of ranges of sequence space.

use std::collections::VecDeque;

/// Ranges that are kept.
const MOST: usize = 256;

/// Sorted, disjoint ranges that do not touch. What would be one range too many is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: VecDeque<(u64, u64)>,
    bytes: u64,
}

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes in all ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The start of the first range.
    pub(crate) fn start(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.0)
    }

    /// The largest place above which there are more than `bytes` bytes of ranges, or `count` of these.
    pub(crate) fn place_below(&self, bytes: u64, count: usize) -> Option<u64> {
        let mut above = 0;
        let mut ranges = self.ranges.iter().rev().enumerate();
        ranges.find_map(|(number, &(start, end))| {
            above += end - start;
            (above > bytes || number + 1 >= count).then_some(start)
        })
    }

    /// Bytes of the ranges below `at`.
    pub(crate) fn bytes_below(&self, at: u64) -> u64 {
        let below = self.ranges.iter().take_while(|range| range.0 < at);
        below.map(|&(start, end)| end.min(at) - start).sum()
    }

    /// Whether a range shares a byte with this one.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 <= start);
        start < end && self.ranges.get(at).is_some_and(|range| range.0 < end)
    }

    /// Whether all of it is in a range.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.1 < end);
        self.ranges.get(at).is_some_and(|range| range.0 <= start)
    }

    /// The first part of a range that is in none of these; empty if all of it is in one.
    pub(crate) fn gap(&self, mut start: u64, end: u64) -> (u64, u64) {
        let mut at = self.ranges.partition_point(|range| range.1 <= start);
        if let Some(&(_, last)) = self.ranges.get(at).filter(|range| range.0 <= start) {
            (start, at) = (last.min(end), at + 1);
        }
        (start, self.ranges.get(at).map_or(end, |range| range.0.min(end)))
    }

    /// Adds a range; those that it overlaps or touches become one with it.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let at = self.ranges.partition_point(|range| range.1 < start);
        let upto = self.ranges.partition_point(|range| range.0 <= end);
        if at < upto {
            let old: u64 = self.ranges.range(at..upto).map(|range| range.1 - range.0).sum();
            let joined = (self.ranges[at].0.min(start), self.ranges[upto - 1].1.max(end));
            self.ranges[at] = joined;
            self.ranges.drain(at + 1..upto);
            self.bytes += joined.1 - joined.0 - old;
        } else if self.ranges.len() < MOST {
            self.ranges.insert(at, (start, end));
            self.bytes += end - start;
        }
    }

    /// Takes out the ranges that a run up to `to` reaches, and returns how far it reaches with them.
    pub(crate) fn absorb(&mut self, mut to: u64) -> u64 {
        while let Some((start, end)) = self.ranges.pop_front_if(|(start, _)| *start <= to) {
            self.bytes -= end - start;
            to = to.max(end);
        }
        to
    }

    /// Takes out what lies below `to`.
    pub(crate) fn remove_below(&mut self, to: u64) {
        while let Some((start, end)) = self.ranges.front_mut() {
            if *end <= to {
                self.bytes -= *end - *start;
                self.ranges.pop_front();
            } else {
                if *start < to {
                    self.bytes -= to - *start;
                    *start = to;
                }
                return;
            }
        }
    }

    /// Takes out a range.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let mut at = self.ranges.partition_point(|range| range.1 <= start);
        while let Some(&(first, last)) = self.ranges.get(at).filter(|range| range.0 < end) {
            self.ranges.remove(at);
            self.bytes -= last - first;
            if first < start {
                self.ranges.insert(at, (first, start));
                self.bytes += start - first;
                at += 1;
            }
            if end < last {
                self.ranges.insert(at, (end, last));
                self.bytes += last - end;
                return;
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Ranges::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_a_set_of_bytes() {
        let operations = bolero::produce::<Vec<(u8, u8, u8)>>().with().len(0usize..60);
        bolero::check!().with_generator(operations).with_iterations(3_000).for_each(|operations| {
            let (mut ranges, mut bytes) = (Ranges::default(), [false; 512]);
            for &(what, start, len) in operations {
                let (from, to) = (usize::from(start), usize::from(start) + usize::from(len));
                let (start, end) = (from as u64, to as u64);
                match what % 4 {
                    0 | 1 => {
                        ranges.insert(start, end);
                        bytes[from..to].fill(true);
                    }
                    2 => {
                        ranges.remove(start, end);
                        bytes[from..to].fill(false);
                    }
                    _ => {
                        ranges.remove_below(start);
                        bytes[..from].fill(false);
                    }
                }
                let count = |part: &[bool]| part.iter().filter(|&&byte| byte).count() as u64;
                assert_eq!(ranges.bytes(), count(&bytes));
                assert_eq!(ranges.bytes_below(start), count(&bytes[..from]));
                assert_eq!(ranges.overlaps(start, end), count(&bytes[from..to]) > 0);
                if len > 0 {
                    assert_eq!(ranges.covers(start, end), count(&bytes[from..to]) == u64::from(len));
                }
                assert_eq!(ranges.start().map(|at| at as usize), bytes.iter().position(|&byte| byte));
                let last = bytes.iter().rposition(|&byte| byte);
                let start = |last: usize| bytes[..last].iter().rposition(|&byte| !byte).map_or(0, |gap| gap + 1);
                assert_eq!(ranges.place_below(0, 1).map(|at| at as usize), last.map(start));
            }
            let reach = (0..512).find(|&at| at >= 7 && !bytes[at]).unwrap_or(512);
            assert_eq!(ranges.absorb(7), if bytes[7] || bytes[6] { reach.max(7) as u64 } else { 7 });
        });
    }
}
