//! Slots: the unit of time of one cell.

use units::{Span, Time};

/// The slots of a cell, numbered from time zero. LTE's are its TTIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    length: Span,
    /// Number of calendar ticks per slot: the calendar counts in the shortest slots of all cells.
    ticks: u64,
}

impl Slots {
    /// LTE's slots, in a network of LTE only.
    #[cfg(test)]
    pub(crate) const LTE: Slots = Slots { length: Span::from_millis(1), ticks: 1 };

    /// Creates slots of `length`, in a calendar with ticks of `tick`.
    ///
    /// # Panics
    /// If a slot is not a whole number of ticks.
    pub(crate) fn new(length: Span, tick: Span) -> Slots {
        assert!(length.as_nanos().is_multiple_of(tick.as_nanos()), "a slot is a whole number of ticks");
        Slots { length, ticks: length.as_nanos() / tick.as_nanos() }
    }

    /// Returns the length of a slot.
    #[inline]
    pub(crate) fn length(self) -> Span {
        self.length
    }

    /// Returns when `slot` begins.
    #[inline]
    pub(crate) fn start(self, slot: u64) -> Time {
        Time::ZERO + self.length * slot
    }

    /// Returns the first slot that begins at `now` or later.
    #[inline]
    pub(crate) fn next_after(self, now: Time) -> u64 {
        now.as_nanos().div_ceil(self.length.as_nanos())
    }

    /// Returns the slot that contains `now`.
    #[inline]
    pub(crate) fn at(self, now: Time) -> u64 {
        now.as_nanos() / self.length.as_nanos()
    }

    /// Returns the number of slots in `span`, rounded up.
    #[inline]
    pub(crate) fn spanning(self, span: Span) -> u64 {
        span.as_nanos().div_ceil(self.length.as_nanos())
    }

    /// Returns the tick at which `slot` begins.
    #[inline]
    pub(crate) fn tick(self, slot: u64) -> u64 {
        slot * self.ticks
    }

    /// Returns the first slot that begins at `tick` or later.
    #[inline]
    pub(crate) fn next_at(self, tick: u64) -> u64 {
        if self.ticks == 1 { tick } else { tick.div_ceil(self.ticks) }
    }

    /// Returns whether a slot begins at `tick`.
    #[inline]
    pub(crate) fn begins_at(self, tick: u64) -> bool {
        self.ticks == 1 || tick.is_multiple_of(self.ticks)
    }
}

/// Returns the last slot up to `n` that is `offset` modulo `period`.
#[inline]
pub(crate) fn at_or_before(n: u64, period: u64, offset: u64) -> Option<u64> {
    let phase = offset % period;
    (n >= phase).then(|| n - (n - phase) % period)
}

/// Returns the first slot from `n` on that is `offset` modulo `period`.
#[inline]
pub(crate) fn at_or_after(n: u64, period: u64, offset: u64) -> u64 {
    let phase = offset % period;
    if n <= phase { phase } else { n + (period - (n - phase) % period) % period }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_different_lengths_share_a_calendar() {
        let tick = Span::from_nanos(62_500);
        let (long, short) = (Slots::new(Span::from_millis(1), tick), Slots::new(tick, tick));
        assert_eq!((long.tick(3), short.tick(3)), (48, 3));
        assert_eq!(long.start(3), short.start(48));
        assert_eq!((long.next_at(48), long.next_at(49), short.next_at(49)), (3, 4, 49));
        assert_eq!([47, 48, 49].map(|tick| long.begins_at(tick)), [false, true, false]);
        let now = Time::ZERO + Span::from_nanos(1_000_001);
        assert_eq!((long.at(now), long.next_after(now), short.at(now), short.next_after(now)), (1, 2, 16, 17));
        assert_eq!((long.spanning(Span::from_nanos(1)), long.spanning(Span::ZERO)), (1, 0));
    }
}
