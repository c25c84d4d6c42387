//! Byte queue limits, by the rules of Linux's dynamic queue limits (DQL): how many bytes may wait in a buffer below so
//! that it is never empty while there is more above, and no longer than that takes.
//!
//! Whoever fills the buffer says what it puts in ([`Bql::queued`]); whoever empties it says what has left
//! ([`Bql::completed`]), once for all that left at a time: a transport block, an interrupt. At each completion:
//!
//! - The buffer *starved* if it is empty although the limit stopped the filling, or if all that had been there at the last
//!   completion is gone although the limit stopped it then. The limit grows by what was completed beyond that, and by what
//!   had been above the limit.
//! - If it was busy from one completion to the next, what need not have been there is *slack*. The smallest slack over
//!   [`Config::hold`] is taken off the limit.
//!
//! One object may exceed the limit: the filling stops after it, not before.
//!
//! Counters here have 64 bits and do not wrap, where Linux's have 32 and do.

use units::{Span, Time};

/// Parameters; the default is Linux's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The limit is at least so many bytes,
    pub min: u64,
    /// and at most so many.
    pub max: u64,
    /// For how long slack has to last before the limit shrinks.
    pub hold: Span,
}

impl Default for Config {
    fn default() -> Self {
        const UINT_MAX: u64 = u32::MAX as u64;
        Config { min: 0, max: UINT_MAX / 2 - UINT_MAX / 16, hold: Span::from_secs(1) }
    }
}

/// The limit, and what it is learnt from. All in bytes since the beginning, unless said otherwise.
#[derive(Clone, Debug)]
pub struct Bql {
    config: Config,
    limit: u64,
    queued: u64,
    completed: u64,
    /// The size of the last object that was queued.
    last: u64,
    /// At the last completion: what had been queued, its last object, and by how much it was above the limit.
    before: u64,
    last_before: u64,
    over_before: u64,
    /// The smallest slack since,
    slack: u64,
    /// this time.
    slack_since: Time,
}

impl Bql {
    /// A limit that knows nothing yet.
    pub fn new(config: Config) -> Bql {
        Bql {
            config,
            limit: config.min,
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

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether nothing more may be put in before something has left.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.queued > self.limit + self.completed
    }

    /// `bytes` were put in.
    #[inline]
    pub fn queued(&mut self, bytes: u64) {
        self.queued += bytes;
        self.last = bytes;
    }

    /// `bytes` have left.
    ///
    /// # Panics
    /// If that is more than what was put in.
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
            // Half of what there was at most has left: the other half was not needed.
            let slack = (limit + self.over_before).saturating_sub(2 * bytes);
            let of_last = if self.over_before > 0 { self.last_before.saturating_sub(self.over_before) } else { 0 };
            self.slack = self.slack.min(slack.max(of_last));
            if now > self.slack_since + self.config.hold {
                limit = limit.saturating_sub(self.slack);
                self.slack = u64::MAX;
                self.slack_since = now;
            }
        }
        limit = limit.clamp(self.config.min, self.config.max);
        self.over_before = if limit == self.limit { over } else { 0 };
        self.limit = limit;
        self.last_before = self.last;
        self.completed = completed;
        self.before = self.queued;
    }
}
