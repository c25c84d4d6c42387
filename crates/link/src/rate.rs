//! A server with a rate that changes at given times.
//!
//! A packet in service when the rate changes finishes its remaining bits at the new rate; rate zero is an outage. Each
//! packet ends at the first nanosecond by which its last bit has left; the fraction of a nanosecond lost by rounding is
//! credited to the next packet, so that a busy server never drifts.

use core::fmt;

use units::{Rate, Span, Time};

/// Work is measured in bits at 1 bit/s during one nanosecond; a byte is this many units.
const WORK_PER_BYTE: u64 = 8_000_000_000;

/// A rate over time. The default is a permanent outage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    initial: Rate,
    /// Changes, with strictly increasing times.
    changes: Vec<(Time, Rate)>,
}

/// The error for a schedule out of order: the change at this index is not later than the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// Index of the offending change.
    pub index: usize,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rate change {} is not later than the one before it", self.index + 1)
    }
}

impl std::error::Error for ScheduleError {}

impl Schedule {
    /// Creates a schedule with a constant rate.
    pub fn constant(rate: Rate) -> Self {
        Schedule { initial: rate, changes: Vec::new() }
    }

    /// Creates a schedule with `initial` from the start, then each rate from its time on. Times must increase.
    pub fn new(initial: Rate, changes: Vec<(Time, Rate)>) -> Result<Self, ScheduleError> {
        match changes.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
            Some(before) => Err(ScheduleError { index: before + 1 }),
            None => Ok(Schedule { initial, changes }),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RateServer {
    /// Rate in bit/s before the first of `changes`, if it may still be needed.
    initial: u64,
    changes: Vec<(Time, Rate)>,
    /// Index of the next change.
    next: usize,
    /// Time of the next change, or never.
    change: Time,
    /// Rate in bit/s until `change`.
    rate: u64,
    /// When the service of everything accepted so far ends.
    busy_until: Time,
    /// Work that the server could have done between the exact end and `busy_until`, the next full nanosecond.
    credit: u64,
    /// Remaining work of a packet in service whose service never ends.
    stuck: u64,
    /// The packet length to which `nanos` and `rest` apply, at `rate`.
    len: u64,
    /// Quotient of its work divided by the rate.
    nanos: u64,
    /// Remainder of that division.
    rest: u64,
}

impl RateServer {
    pub(crate) fn new(schedule: Schedule) -> Self {
        RateServer {
            change: schedule.changes.first().map_or(Time::MAX, |c| c.0),
            initial: schedule.initial.bits_per_sec(),
            rate: schedule.initial.bits_per_sec(),
            changes: schedule.changes,
            next: 0,
            busy_until: Time::ZERO,
            credit: 0,
            stuck: 0,
            len: 0,
            nanos: 0,
            rest: 0,
        }
    }

    #[inline]
    pub(crate) fn next_start(&self) -> Time {
        self.busy_until
    }

    #[inline]
    pub(crate) fn idle_until(&mut self, now: Time) -> bool {
        let idle = self.busy_until < now;
        if idle {
            self.busy_until = now;
            self.credit = 0;
        }
        idle
    }

    #[inline]
    pub(crate) fn serve(&mut self, len: u64) -> Time {
        if len != self.len {
            self.cache_division(len);
        }
        let (nanos, credit) = if self.rest > self.credit {
            (self.nanos.saturating_add(1), self.rate - (self.rest - self.credit))
        } else {
            (self.nanos, self.credit - self.rest)
        };
        let end = self.busy_until.as_nanos().saturating_add(nanos);
        if end < self.change.as_nanos() {
            self.busy_until = Time::from_nanos(end);
            self.credit = credit;
        } else {
            self.serve_across_changes(len);
        }
        self.busy_until
    }

    /// Computes the division shared by packets of one length.
    #[cold]
    fn cache_division(&mut self, len: u64) {
        let work = len.saturating_mul(WORK_PER_BYTE);
        self.len = len;
        // At rate zero, the end lies after a later change, and is searched across changes.
        self.nanos = work.checked_div(self.rate).unwrap_or(u64::MAX);
        self.rest = work.checked_rem(self.rate).unwrap_or(0);
    }

    #[cold]
    fn serve_across_changes(&mut self, len: u64) {
        self.do_work(len.saturating_mul(WORK_PER_BYTE).saturating_sub(self.credit));
    }

    /// Serves `work` from `busy_until` on.
    fn do_work(&mut self, mut work: u64) {
        let mut at = self.busy_until;
        (self.credit, self.stuck) = (0, 0);
        loop {
            while at >= self.change && self.change != Time::MAX {
                self.rate = self.changes[self.next].1.bits_per_sec();
                self.next += 1;
                self.change = self.changes.get(self.next).map_or(Time::MAX, |c| c.0);
                // The cached division applies to the old rate.
                self.len = 0;
                self.nanos = 0;
                self.rest = 0;
            }
            if self.rate > 0 {
                let nanos = work.div_ceil(self.rate);
                let end = at.as_nanos().saturating_add(nanos);
                if end <= self.change.as_nanos() {
                    // At the maximum of time, exactness does not matter.
                    self.credit =
                        if end == u64::MAX { 0 } else { nanos.saturating_mul(self.rate).saturating_sub(work) };
                    self.busy_until = Time::from_nanos(end);
                    return;
                }
            }
            if self.change == Time::MAX {
                self.busy_until = Time::MAX;
                self.stuck = work;
                return;
            }
            // Less than `work`, which otherwise would have ended before the change.
            work -= self.rate * (self.change - at).as_nanos();
            at = self.change;
        }
    }

    /// Sets the rate from `now` on, as if the schedule ended with it: a packet in service finishes its remaining bits
    /// at it. Packets whose service begins before `now`, but was not computed yet, still use the old rates until then.
    pub(crate) fn set_rate(&mut self, rate: Rate, now: Time) {
        self.replace(&[(now, rate)], now, Time::MAX);
    }

    /// Sets the rate to zero from `now` until `until`, when the schedule goes on as without that.
    pub(crate) fn pause(&mut self, until: Time, now: Time) {
        let passed = self.changes.partition_point(|change| change.0 <= until);
        let then = self.changes[..passed].last().map_or(Rate::from_bits_per_sec(self.initial), |change| change.1);
        self.replace(&[(now, Rate::default()), (until, then)], now, until);
    }

    /// Replaces the changes from `now` to `until`.
    fn replace(&mut self, changes: &[(Time, Rate)], now: Time, until: Time) {
        let in_service = (self.busy_until > now).then(|| self.left(now));
        let before = self.changes.partition_point(|change| change.0 < now);
        let after = self.changes.partition_point(|change| change.0 <= until);
        self.changes.splice(before..after.max(before), changes.iter().copied());
        // Past changes are not needed again.
        self.changes.drain(..self.next.min(before));
        self.next = 0;
        self.change = self.changes[0].0;
        if let Some(work) = in_service {
            self.busy_until = now;
            self.do_work(work);
        }
    }

    /// Returns the remaining work at `now` of the packet in service.
    fn left(&self, now: Time) -> u64 {
        let (mut at, mut rate) = (now, self.initial);
        let mut work = u128::from(self.stuck);
        let mut serve = |rate: u64, span: Span| work += u128::from(rate) * u128::from(span.as_nanos());
        for &(change, next) in self.changes.iter().take_while(|change| change.0 < self.busy_until) {
            serve(rate, change.saturating_since(at));
            (at, rate) = (at.max(change), next.bits_per_sec());
        }
        serve(rate, self.busy_until - at);
        u64::try_from(work.saturating_sub(u128::from(self.credit))).unwrap_or(u64::MAX)
    }
}
