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

#[cfg(test)]
mod tests {
    use super::*;

    /// A policer's view: so many segments delivered and lost in all, at so many milliseconds, at the start of a round.
    fn seen(ms: u64, delivered: u64, lost: u64) -> Observation {
        let totals = Totals { at: Time::from_nanos(ms * 1_000_000), delivered, lost };
        Observation { totals, lost: true, app_limited: false, round_start: true, probe_bw: true, mss: 1000 }
    }

    /// A loss begins to sample, and rounds of 10 ms follow it, each with so many more delivered and lost.
    fn rounds(policer: &mut Policer, from: u64, count: u64, delivered: u64, lost: u64) -> Vec<Verdict> {
        let round = |n: u64| policer.observe(seen(10 * n, delivered * n, lost * n));
        (from..from + count).map(round).collect()
    }

    /// Two intervals of so many delivered and lost segments, in 300 ms and in 400 ms: whether they are a policer's.
    fn is_policed(first: (u64, u64), second: (u64, u64)) -> bool {
        policed_at(100, first, second).is_some()
    }

    /// The same for rounds of so many milliseconds: the policer's rate.
    fn policed_at(ms: u64, first: (u64, u64), second: (u64, u64)) -> Option<Bandwidth> {
        let mut policer = Policer::default();
        let mut at = (0, 0, 0);
        let mut verdict = Verdict::Same;
        // The first loss is of the first round of four, and each interval ends with its fourth.
        for (delivered, lost) in [(0, 0), (0, 0), (0, 0), first, (0, 0), (0, 0), (0, 0), second] {
            at = (at.0 + ms, at.1 + delivered, at.2 + lost);
            let ends = delivered > 0 || at.0 == ms;
            verdict = policer.observe(Observation { lost: ends, ..seen(at.0, at.1, at.2) });
        }
        assert_eq!(policer.rate().is_some(), verdict == Verdict::Policed);
        policer.rate()
    }

    #[test]
    fn an_interval_is_lossy_from_a_fifth_on() {
        // 50 of 256 exactly, in 300 ms and in 400 ms.
        assert!(is_policed((1920, 375), (2560, 500)));
        assert!(!is_policed((1920, 374), (2560, 500)));
        assert!(!is_policed((1920, 375), (2560, 499)));
    }

    #[test]
    fn rates_are_equal_within_an_eighth() {
        // 300 ms and 400 ms: 2400 in the first are 3200 in the second, and an eighth of that is 400; the rates are cut to
        // fractions of 2^24.
        assert!(is_policed((2400, 2400), (3599, 3600)));
        assert!(!is_policed((2400, 2400), (3601, 3600)));
        assert!(is_policed((2400, 2400), (2801, 2800)));
        assert!(!is_policed((2400, 2400), (2799, 2800)));
        // 8 and 8.9975 a millisecond are 134,217 and 150,953 in 2^24 us; the policer's is between them.
        assert_eq!(policed_at(100, (2400, 2400), (3599, 3600)), Some(Bandwidth(142_585)));
    }

    #[test]
    fn low_rates_are_equal_within_4_kbit_per_second() {
        // Segments of 1000 bytes in 300 s and 400 s: 1 a second is 16 in 2^24 us, and 1 more is 59 bytes less 1 %. 8 more
        // are 472 bytes a second, 9 are 531.
        assert_eq!(policed_at(100_000, (300, 300), (580, 580)), Some(Bandwidth((16 + 24) / 2)));
        assert_eq!(policed_at(100_000, (300, 300), (600, 600)), None);
        // The first interval has none to be equal to, however low its rate is.
        assert_eq!(policed_at(100_000, (150, 150), (200, 200)), Some(Bandwidth(8)));
    }

    #[test]
    fn an_interval_goes_on_until_something_is_delivered() {
        let mut policer = Policer::default();
        assert_eq!(rounds(&mut policer, 1, 5, 0, 10), [Verdict::Same; 5]);
        assert_eq!((policer.rounds, policer.start.at), (5, Time::from_nanos(10_000_000)));
    }

    #[test]
    fn after_an_interval_that_was_too_long_sampling_begins_anew() {
        let mut policer = Policer::default();
        let later = |n: u64| {
            let mut seen = seen(0, 1000 + 40 * n, 1000 + 10 * n);
            seen.totals.at = Time::ZERO + MAX_INTERVAL + Span::from_millis(10 * n);
            seen
        };
        for first in [seen(0, 0, 0), seen(0, 0, 0), seen(0, 0, 0), later(0)] {
            assert_eq!(policer.observe(first), Verdict::Same);
        }
        let verdicts: Vec<Verdict> = (1..=8).map(|n| policer.observe(later(n))).collect();
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::Policed), Some(7), "{verdicts:?}");
    }

    #[test]
    fn what_the_application_limits_or_lasts_too_long_is_forgotten() {
        // Sixteen rounds without a loss at their end are the most.
        for (quiet, policed) in [(12, true), (13, false)] {
            let mut policer = Policer::default();
            assert_eq!(rounds(&mut policer, 1, 1, 40, 10), [Verdict::Same]);
            for n in 2..=3 + quiet {
                policer.observe(Observation { lost: false, ..seen(10 * n, 40 * n, 10 * n) });
            }
            let verdicts = rounds(&mut policer, 4 + quiet, 5, 40, 10);
            assert_eq!(verdicts.contains(&Verdict::Policed), policed, "{quiet} {verdicts:?}");
        }
        // A round that the application limits ends the interval; the next begins with a loss.
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 3, 40, 10);
        policer.observe(Observation { app_limited: true, ..seen(40, 160, 40) });
        assert_eq!(policer.observe(Observation { lost: false, ..seen(50, 200, 50) }), Verdict::Same);
        let verdicts = rounds(&mut policer, 6, 8, 40, 10);
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::Policed), Some(7), "{verdicts:?}");
    }

    #[test]
    fn intervals_are_of_a_millisecond_to_an_hour_and_a_fifth() {
        let interval = |nanos: u64| {
            let mut policer = Policer::default();
            let mut verdict = Verdict::Same;
            for half in 0..2 {
                for n in 1..=4 {
                    // All of an interval passes in its last round.
                    let ended = half + n / 4;
                    let mut seen = seen(0, 1000 * ended, 1000 * ended);
                    seen.totals.at = Time::from_nanos(nanos * ended);
                    verdict = policer.observe(seen);
                }
            }
            verdict == Verdict::Policed
        };
        assert_eq!([999_999, 1_000_000].map(interval), [false, true]);
        let longest = MAX_INTERVAL.as_nanos();
        assert_eq!([longest - 1, longest].map(interval), [true, false]);
    }

    #[test]
    fn the_policers_rate_expires_after_48_rounds_of_probing() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 8, 40, 10);
        assert!(policer.rate().is_some());
        for n in 0..100 {
            let other = Observation { round_start: n % 2 == 0, probe_bw: n % 2 == 1, ..seen(n, 0, 0) };
            assert_eq!(policer.observe(other), Verdict::Same, "rounds of other modes do not count");
        }
        let verdicts = rounds(&mut policer, 100, 48, 40, 10);
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::Expired), Some(47));
        assert_eq!(policer.rate(), None);
    }
}
