//! Token-bucket policers: two intervals with the same rate and heavy loss indicate a policer, whose rate is then used
//! directly.
//!
//! Source: T. Flach et al., "An Internet-wide analysis of traffic policing" (SIGCOMM 2016); Linux `bbr_lt_bw_sampling`.

use super::bandwidth::{Bandwidth, UNIT};
use units::{Span, Time};

/// Minimum length of an interval in rounds; the maximum is four times as long.
const MIN_ROUNDS: u32 = 4;
/// Lost segments per 256 delivered above which an interval is lossy: 20 %.
const LOSS_THRESHOLD: u64 = 50;
/// Two rates are equal if they differ by at most an eighth,
const RATIO_256THS: u64 = UNIT as u64 / 8;
/// or by 4 kbit/s, here in bytes per second.
const DIFFERENCE: u64 = 4_000 / 8;
/// Number of rounds for which the policer's rate is used.
const USE_ROUNDS: u32 = 48;
/// A shorter interval is ignored.
const MIN_INTERVAL: Span = Span::from_millis(1);
/// A longer interval (2^32 us) is discarded.
const MAX_INTERVAL: Span = Span::from_micros(0xffff_ffff);

/// Totals of the connection at a given time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) at: Time,
    pub(super) delivered: u64,
    pub(super) lost: u64,
}

/// The relevant parts of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) totals: Totals,
    /// Whether a loss was newly detected.
    pub(super) lost: bool,
    pub(super) app_limited: bool,
    pub(super) round_start: bool,
    pub(super) probe_bw: bool,
    pub(super) mss: u32,
}

/// The result of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No change.
    Same,
    /// A policer was detected.
    Policed,
    /// The policer's rate has expired: probe again.
    Expired,
}

/// The long-term bandwidth sampler.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// The rate of the last interval, or the policer's while in use; 0 if none.
    rate: Bandwidth,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    start: Totals,
}

impl Policer {
    /// Returns the policer's rate, if one was detected.
    #[inline]
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.in_use.then_some(self.rate)
    }

    /// Resets the sampler.
    pub(super) fn reset(&mut self, totals: Totals) {
        *self = Policer { start: totals, ..Policer::default() };
    }

    fn begin_interval(&mut self, totals: Totals) {
        self.start = totals;
        self.rounds = 0;
    }

    pub(super) fn observe(&mut self, seen: Observation) -> Verdict {
        if self.in_use {
            if seen.probe_bw && seen.round_start {
                self.rounds += 1;
                if self.rounds >= USE_ROUNDS {
                    self.reset(seen.totals);
                    return Verdict::Expired;
                }
            }
            return Verdict::Same;
        }
        // The first loss shows that the bucket is empty; before it, the rate is that of the burst.
        if !self.sampling {
            if !seen.lost {
                return Verdict::Same;
            }
            self.begin_interval(seen.totals);
            self.sampling = true;
        }
        if seen.app_limited {
            self.reset(seen.totals);
            return Verdict::Same;
        }
        self.rounds += u32::from(seen.round_start);
        if self.rounds < MIN_ROUNDS {
            return Verdict::Same;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(seen.totals);
            return Verdict::Same;
        }
        // An interval ends at a loss, when the bucket is empty again.
        if !seen.lost {
            return Verdict::Same;
        }
        let lost = seen.totals.lost.saturating_sub(self.start.lost);
        let delivered = seen.totals.delivered.saturating_sub(self.start.delivered);
        if delivered == 0 || lost * u64::from(UNIT) < LOSS_THRESHOLD * delivered {
            return Verdict::Same;
        }
        let interval = seen.totals.at.saturating_since(self.start.at);
        if interval < MIN_INTERVAL {
            return Verdict::Same;
        }
        if interval >= MAX_INTERVAL {
            self.reset(seen.totals);
            return Verdict::Same;
        }
        self.end_interval(Bandwidth::over(delivered, interval), &seen)
    }

    fn end_interval(&mut self, rate: Bandwidth, seen: &Observation) -> Verdict {
        if self.rate.0 > 0 {
            let difference = Bandwidth(rate.0.abs_diff(self.rate.0));
            let alike = u64::from(difference.0) * u64::from(UNIT) <= RATIO_256THS * u64::from(self.rate.0);
            if alike || difference.pacing(seen.mss, UNIT) <= DIFFERENCE {
                self.rate = Bandwidth(((u64::from(rate.0) + u64::from(self.rate.0)) / 2) as u32);
                self.in_use = true;
                self.rounds = 0;
                return Verdict::Policed;
            }
        }
        self.rate = rate;
        self.begin_interval(seen.totals);
        Verdict::Same
    }
}
