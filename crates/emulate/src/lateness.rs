//! How late packets were delivered, and whether that makes a run invalid.

use netio::realtime::Granted;
use record::{Distribution, Lateness};
use units::{Span, Time};

/// The largest lateness and the longest stall of a valid run, as multiples of the bound on the 99th percentile.
const WORST: u64 = 40;
/// The largest share of the time that a valid run may have stalled.
const MOST_STALLED: f64 = 0.01;

/// The lateness of packets delivered to the hosts, and the time for which the loop stalled.
#[derive(Debug)]
pub(crate) struct Lates {
    spans: Distribution,
    bound: Span,
    stalled: Span,
    longest: Span,
}

impl Lates {
    /// No lateness yet. At most 1 % of the packets of a valid run are later than `bound`.
    pub(crate) fn within(bound: Span) -> Lates {
        Lates { spans: Distribution::default(), bound, stalled: Span::ZERO, longest: Span::ZERO }
    }

    /// Records that a packet due at `due` was delivered by `done`.
    #[inline]
    pub(crate) fn note(&mut self, due: Time, done: Time) {
        self.spans.record(done.saturating_since(due));
    }

    /// Records that the loop, which had work to do at `from`, looked for more work only at `to`. Up to the bound that is
    /// work; beyond it the machine was busy with something else, and the loop stalled.
    #[inline]
    pub(crate) fn pass(&mut self, from: Time, to: Time) {
        let span = to.saturating_since(from);
        if span > self.bound {
            self.stalled += span;
            self.longest = self.longest.max(span);
        }
    }

    /// Returns the figures, and whether they keep to the bound, for a run of `lasted` in which `missed` packets were not read
    /// in time.
    pub(crate) fn summary(&self, lasted: Span, missed: u64, cpu_share: f64, granted: Granted) -> Lateness {
        let quantile = |q| self.spans.quantile(q).map_or(0.0, record::ms);
        let p99 = self.spans.quantile(0.99).unwrap_or(Span::ZERO);
        let max = self.spans.max().unwrap_or(Span::ZERO);
        let stalled_share = self.stalled.as_secs_f64() / lasted.as_secs_f64().max(1e-9);
        let worst = Span::from_nanos(self.bound.as_nanos().saturating_mul(WORST));
        let in_time = p99 <= self.bound && max <= worst && self.longest <= worst && stalled_share <= MOST_STALLED;
        Lateness {
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
            max_ms: record::ms(max),
            bound_ms: record::ms(self.bound),
            worst_bound_ms: record::ms(worst),
            longest_stall_ms: record::ms(self.longest),
            stalled_share,
            packets: self.spans.count(),
            missed,
            cpu_share,
            realtime: granted.realtime,
            valid: in_time && missed == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Span = Span::from_micros(500);

    /// A minute with a packet each millisecond that is late by 50 us.
    fn punctual() -> Lates {
        let mut lates = Lates::within(BOUND);
        for n in 0..60_000 {
            let due = Time::ZERO + Span::from_millis(n);
            lates.note(due, due + Span::from_micros(50));
            lates.pass(due, due + Span::from_micros(60));
        }
        lates
    }

    fn judged(lates: &Lates, missed: u64) -> Lateness {
        lates.summary(Span::from_secs(60), missed, 0.5, Granted::default())
    }

    #[test]
    fn a_punctual_run_is_valid_unless_packets_were_missed() {
        assert!(judged(&punctual(), 0).valid && !judged(&punctual(), 1).valid);
        assert_eq!((judged(&punctual(), 0).longest_stall_ms, judged(&punctual(), 0).stalled_share), (0.0, 0.0));
    }

    #[test]
    fn a_run_that_stood_still_once_is_invalid_though_few_packets_were_late() {
        // For 2 s, with a packet in 200 late: the 99th percentile does not see it.
        let mut lates = punctual();
        for n in 0..300 {
            let due = Time::ZERO + Span::from_millis(7 * n);
            lates.note(due, Time::ZERO + Span::from_secs(2));
        }
        lates.pass(Time::ZERO, Time::ZERO + Span::from_secs(2));
        let lateness = judged(&lates, 0);
        assert!(lateness.p99_ms < lateness.bound_ms && !lateness.valid, "{lateness:?}");
        assert!((lateness.longest_stall_ms - 2_000.0).abs() < 1e-6, "{lateness:?}");
        assert!((lateness.stalled_share - 2.0 / 60.0).abs() < 1e-6, "{lateness:?}");
    }

    #[test]
    fn a_run_that_stood_still_while_nothing_was_on_its_way_is_invalid() {
        let mut lates = punctual();
        lates.pass(Time::ZERO, Time::ZERO + Span::from_millis(21));
        assert!(!judged(&lates, 0).valid);
    }

    #[test]
    fn many_short_stalls_are_as_bad_as_a_long_one() {
        let (mut few, mut many) = (punctual(), punctual());
        // Of 10 ms each, 0.5 and 2 s in all.
        for (lates, count) in [(&mut few, 50), (&mut many, 200)] {
            (0..count).for_each(|_| lates.pass(Time::ZERO, Time::ZERO + Span::from_millis(10)));
        }
        assert!(judged(&few, 0).valid && !judged(&many, 0).valid);
    }
}
