//! Sets of resource blocks.

/// Maximum number of resource blocks of a carrier (275, NR's, 38.101-1 Table 5.3.2-1), in words.
const WORDS: usize = 5;

/// A set of a carrier's resource blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks([u64; WORDS]);

impl Blocks {
    /// Returns `count` blocks starting at `first`.
    #[inline]
    pub(crate) fn run(first: u16, count: u16) -> Blocks {
        let mut words = [0; WORDS];
        parts(first, count).for_each(|(word, bits)| words[word] = bits);
        Blocks(words)
    }

    /// Removes `count` blocks starting at `first`.
    #[inline]
    pub(crate) fn remove(&mut self, first: u16, count: u16) {
        parts(first, count).for_each(|(word, bits)| self.0[word] &= !bits);
    }

    #[inline]
    pub(crate) fn none() -> Blocks {
        Blocks([0; WORDS])
    }

    #[inline]
    pub(crate) fn without(self, taken: Blocks) -> Blocks {
        Blocks(core::array::from_fn(|i| self.0[i] & !taken.0[i]))
    }

    #[inline]
    pub(crate) fn and(self, more: Blocks) -> Blocks {
        Blocks(core::array::from_fn(|i| self.0[i] | more.0[i]))
    }

    #[inline]
    pub(crate) fn count(self) -> u16 {
        self.0.iter().map(|word| word.count_ones() as u16).sum()
    }

    /// Returns it without its first `count` blocks.
    fn without_first(mut self, mut count: u16) -> Blocks {
        for word in &mut self.0 {
            while count > 0 && *word != 0 {
                *word &= *word - 1;
                count -= 1;
            }
        }
        self
    }

    /// Returns the first run of at least `want` blocks, or else the longest: its start and its length up to `want`.
    pub(crate) fn find(self, want: u16) -> (u16, u16) {
        let mut best = (0, 0);
        let mut at = 0;
        while let Some(start) = self.next(at, false) {
            at = self.next(start, true).unwrap_or(64 * WORDS as u16);
            let length = at - start;
            if length > best.1 {
                best = (start, length.min(want));
                if length >= want {
                    break;
                }
            }
        }
        best
    }

    /// Returns the first block at or after `at` that is in the set or, if `inverted`, that is not.
    #[inline]
    fn next(self, at: u16, inverted: bool) -> Option<u16> {
        let mut mask = u64::MAX << (at % 64);
        for (word, bits) in self.0.into_iter().enumerate().skip(usize::from(at / 64)) {
            let bits = if inverted { !bits } else { bits } & mask;
            if bits != 0 {
                return Some(64 * word as u16 + bits.trailing_zeros() as u16);
            }
            mask = u64::MAX;
        }
        None
    }
}

/// Free resource blocks, some of which are used only where the others do not suffice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    all: Blocks,
    preferred: Blocks,
}

impl Free {
    /// Creates those of `all`, whose first `spared` blocks are not preferred.
    #[inline]
    pub(crate) fn new(all: Blocks, spared: u16) -> Free {
        Free { all, preferred: all.without_first(spared) }
    }

    /// Returns a run of `want` blocks, or else the longest: its start and its length.
    #[inline]
    pub(crate) fn find(&self, want: u16) -> (u16, u16) {
        let preferred = self.preferred.find(want);
        if preferred.1 == want {
            return preferred;
        }
        let any = self.all.find(want);
        if any.1 > preferred.1 { any } else { preferred }
    }

    /// Removes `count` blocks starting at `first`.
    #[inline]
    pub(crate) fn remove(&mut self, first: u16, count: u16) {
        self.all.remove(first, count);
        self.preferred.remove(first, count);
    }
}

/// Returns the parts of `count` blocks starting at `first` that are in the same word: its number, and their bits.
#[inline]
fn parts(first: u16, count: u16) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, end) = (first, first + count);
    core::iter::from_fn(move || {
        let (word, from) = (at / 64, at % 64);
        let here = (64 - from).min(end.checked_sub(at).filter(|left| *left > 0)?);
        at += here;
        Some((usize::from(word), (u64::MAX >> (64 - here)) << from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_free_blocks_is_found_or_else_the_longest() {
        let free = Blocks::run(0, 50).without(Blocks::run(4, 2)).without(Blocks::run(20, 5));
        assert_eq!(free.find(4), (0, 4));
        assert_eq!(free.find(10), (6, 10));
        assert_eq!(free.find(20), (25, 20));
        assert_eq!(free.find(40), (25, 25));
        assert_eq!(Blocks::none().find(3), (0, 0));
        assert_eq!(free.count(), 43);
    }

    #[test]
    fn spared_blocks_are_used_only_where_the_others_do_not_suffice() {
        let mut free = Free::new(Blocks::run(2, 8).and(Blocks::run(70, 20)), 10);
        assert_eq!(free.find(12), (72, 12));
        free.remove(72, 12);
        assert_eq!((free.find(6), free.find(8), free.find(9)), ((84, 6), (2, 8), (2, 8)));
        free.remove(2, 8);
        assert_eq!((free.find(6), free.find(7)), ((84, 6), (84, 6)));
        assert_eq!(Free::new(Blocks::run(0, 275), 0).find(275), (0, 275));
    }

    #[test]
    fn runs_lead_over_the_words_of_a_wide_carrier() {
        let all = Blocks::run(0, 275);
        assert_eq!((all.count(), all.find(275), all.find(300)), (275, (0, 275), (0, 275)));
        let free = all.without(Blocks::run(0, 60)).without(Blocks::run(130, 1));
        assert_eq!((free.find(70), free.find(71), free.find(145)), ((60, 70), (131, 71), (131, 144)));
        assert_eq!(Blocks::run(0, 320).find(320), (0, 320));
        assert_eq!(Blocks::run(63, 2).and(Blocks::run(128, 1)).count(), 3);
        assert_eq!(Blocks::run(5, 0), Blocks::none());
    }
}
