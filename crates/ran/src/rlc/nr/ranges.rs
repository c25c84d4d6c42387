//! A set of positions as disjoint ranges.

use std::collections::VecDeque;

use super::pdu::Pos;

/// Ascending ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub(in crate::rlc) struct Ranges(VecDeque<(Pos, Pos)>);

impl Ranges {
    #[inline]
    pub(in crate::rlc) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(in crate::rlc) fn iter(&self) -> impl Iterator<Item = (Pos, Pos)> + '_ {
        self.0.iter().copied()
    }

    /// Adds `from..to`.
    #[inline]
    pub(in crate::rlc) fn insert(&mut self, from: Pos, to: Pos) {
        match self.0.back_mut() {
            Some(last) if last.1 == from => last.1 = to,
            Some(last) if last.1 > from => self.merge(from, to),
            _ => self.0.push_back((from, to)),
        }
    }

    fn merge(&mut self, mut from: Pos, mut to: Pos) {
        let first = self.0.partition_point(|range| range.1 < from);
        let mut end = first;
        while let Some(range) = self.0.get(end).filter(|range| range.0 <= to) {
            (from, to) = (from.min(range.0), to.max(range.1));
            end += 1;
        }
        if first == end {
            self.0.insert(first, (from, to));
        } else {
            self.0[first] = (from, to);
            self.0.drain(first + 1..end);
        }
    }

    /// Removes the first range if it begins at or before `pos`, and returns its end.
    #[inline]
    pub(in crate::rlc) fn take_up_to(&mut self, pos: Pos) -> Option<Pos> {
        self.0.front().is_some_and(|range| range.0 <= pos).then(|| self.0.pop_front().map(|range| range.1))?
    }

    /// Removes `from..to`.
    pub(in crate::rlc) fn remove(&mut self, from: Pos, to: Pos) {
        let mut index = self.0.partition_point(|range| range.1 <= from);
        while let Some(range) = self.0.get(index).copied().filter(|range| range.0 < to) {
            match (range.0 < from, to < range.1) {
                (false, false) => {
                    self.0.remove(index);
                }
                (true, false) => {
                    self.0[index].1 = from;
                    index += 1;
                }
                (false, true) => self.0[index].0 = to,
                (true, true) => {
                    self.0[index].1 = from;
                    self.0.insert(index + 1, (to, range.1));
                    return;
                }
            }
        }
    }

    /// Returns the end of the range that contains `pos`.
    #[inline]
    pub(in crate::rlc) fn end_of(&self, pos: Pos) -> Option<Pos> {
        let index = self.0.partition_point(|range| range.1 <= pos);
        self.0.get(index).filter(|range| range.0 <= pos).map(|range| range.1)
    }

    #[inline]
    pub(in crate::rlc) fn contains(&self, from: Pos, to: Pos) -> bool {
        self.end_of(from).is_some_and(|end| to <= end)
    }

    /// Returns whether a range begins inside SDU `number`: something before it is missing.
    #[inline]
    pub(in crate::rlc) fn begins_inside(&self, number: u64) -> bool {
        let index = self.0.partition_point(|range| range.0 <= Pos::start(number));
        self.0.get(index).is_some_and(|range| range.0 < Pos::start(number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_agree_with_a_list_of_bytes() {
        // SDUs of 4 positions of 2^22 bytes, so that a range crosses SDUs.
        let pos = |n: u32| Pos::new(u64::from(n / 4), (n % 4) << 22);
        let mut state = 1u32;
        let mut dice = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) % below
        };
        let (mut set, mut model) = (Ranges::default(), [false; 64]);
        for step in 0..20_000 {
            let (from, len) = (dice(60), 1 + dice(4));
            match step % 3 {
                0 | 1 => {
                    set.insert(pos(from), pos(from + len));
                    model[from as usize..(from + len) as usize].fill(true);
                }
                _ => {
                    set.remove(pos(from), pos(from + len));
                    model[from as usize..(from + len) as usize].fill(false);
                }
            }
            if step % 50 == 0 {
                set.remove(pos(0), pos(60));
                model[..60].fill(false);
            }
            for n in 0..63 {
                let have = model[n as usize];
                assert_eq!(set.contains(pos(n), pos(n + 1)), have);
                let end = (n..64).find(|&n| !model[n as usize]).filter(|_| have);
                assert_eq!(set.end_of(pos(n)), end.map(pos));
            }
            let begins = |sdu: usize| (1..4).any(|i| model[4 * sdu + i] && !model[4 * sdu + i - 1]);
            assert!((0..16).all(|sdu| set.begins_inside(sdu as u64) == begins(sdu)));
            assert!(set.0.iter().zip(set.0.iter().skip(1)).all(|(a, b)| a.1 < b.0));
        }
    }
}
