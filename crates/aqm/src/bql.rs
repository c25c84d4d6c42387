//! Byte queue limits, by the rules of Linux's dynamic queue limits (DQL): the number of bytes that may wait in a lower
//! buffer, so that it never runs empty while packets wait above, and is no longer than necessary.
//!
//! The code that fills the buffer reports what it adds ([`Bql::queued`]); the code that drains it reports what has left
//! ([`Bql::completed`]), once for everything that left at the same time, such as a transport block or an interrupt. At
//! each completion:
//!
//! - The buffer *starved* if it is empty although the limit had stopped filling, or if everything present at the
//!   previous completion has left although the limit had stopped filling then. The limit grows by the bytes completed
//!   beyond that, and by the bytes that had exceeded the limit.
//! - If the buffer was busy between two completions, the bytes that were not needed are *slack*. The smallest slack
//!   over [`Config::hold`] is subtracted from the limit.
//!
//! One object may exceed the limit: filling stops after it, not before.
//!
//! Counters here have 64 bits and do not wrap; Linux's have 32 and do.

use units::check::{Check, Range};
use units::{Bytes, Span, Time, parameters};

use crate::Completion;

parameters! {
    /// The bounds of the limit, and how fast it shrinks; the default is Linux's.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// Minimum of the limit.
        pub min: Bytes = Bytes::ZERO;
        /// Maximum of the limit.
        pub max: Bytes = Bytes::new(UINT_MAX / 2 - UINT_MAX / 16), in Range::SIZE;
        /// How long bytes must be unneeded before the limit shrinks.
        // Linux's `slack_hold_time`.
        pub hold: Span = Span::from_secs(1), in Range::POSITIVE_SPAN;
        /// When a packet counts as having left the buffer.
        pub completed: Completion = Completion::default();
    } with check_bounds()
}

/// The largest number of Linux's counters.
const UINT_MAX: u64 = u32::MAX as u64;

impl Config {
    fn check_bounds(&self, c: &mut Check) {
        c.range("min", self.min, Bytes::ZERO..=self.max);
    }
}

/// The limit and its estimator's state. Counters are in bytes since the start unless noted otherwise.
#[derive(Clone, Debug)]
pub struct Bql {
    config: Config,
    limit: u64,
    queued: u64,
    completed: u64,
    /// Size of the last object queued.
    last: u64,
    /// At the last completion: bytes queued, size of the last object, and excess over the limit.
    before: u64,
    last_before: u64,
    over_before: u64,
    /// The smallest slack since `slack_since`.
    slack: u64,
    /// Start of the interval over which `slack` is the minimum.
    slack_since: Time,
}

impl Bql {
    /// Creates the limit in its initial state.
    pub fn new(config: Config) -> Bql {
        Bql {
            config,
            limit: config.min.get(),
            queued: 0,
            completed: 0,
            last: 0,
            before: 0,
            last_before: 0,
            over_before: 0,
            slack: u64::MAX,
            slack_since: Time::ZERO,
        }
    }

    /// Returns the limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns whether filling must stop until something has left.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.queued > self.limit + self.completed
    }

    /// Reports that `bytes` were added.
    #[inline]
    pub fn queued(&mut self, bytes: u64) {
        self.queued += bytes;
        self.last = bytes;
    }

    /// Reports that `bytes` have left.
    ///
    /// # Panics
    /// If more bytes leave than were added.
    pub fn completed(&mut self, bytes: u64, now: Time) {
        let completed = self.completed + bytes;
        let inside = self.queued.checked_sub(completed).expect("what leaves was put in");
        let over = (self.queued - self.completed).saturating_sub(self.limit);
        let inside_before = self.before - self.completed;
        let all_gone = completed >= self.before;
        let mut limit = self.limit;
        if (over > 0 && inside == 0) || (self.over_before > 0 && all_gone) {
            limit += completed.saturating_sub(self.before) + self.over_before;
            self.slack = u64::MAX;
            self.slack_since = now;
        } else if inside > 0 && inside_before > 0 && !all_gone {
            // Half of the maximum content has left; the other half was not needed.
            let slack = (limit + self.over_before).saturating_sub(2 * bytes);
            let of_last = if self.over_before > 0 { self.last_before.saturating_sub(self.over_before) } else { 0 };
            self.slack = self.slack.min(slack.max(of_last));
            if now > self.slack_since + self.config.hold {
                limit = limit.saturating_sub(self.slack);
                self.slack = u64::MAX;
                self.slack_since = now;
            }
        }
        limit = limit.clamp(self.config.min.get(), self.config.max.get());
        self.over_before = if limit == self.limit { over } else { 0 };
        self.limit = limit;
        self.last_before = self.last;
        self.completed = completed;
        self.before = self.queued;
    }
}
