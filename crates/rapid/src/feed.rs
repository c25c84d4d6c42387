//! What is known of the reports on a UE, for whoever watches a control.

use rnis::RadioReport;
use units::{Span, Time};

/// How far a report's clock may be ahead of ours, unless its interval is longer, and the longest interval that counts.
const AHEAD: (Span, Span) = (Span::from_millis(100), Span::from_secs(2));
/// Beyond any cell, in bits a second.
pub(crate) const MOST_BITS: f64 = 1e12;
/// The most bits of a block in a slot: 12 subcarriers, 14 symbols, 10 bits by 1024-QAM (38.211 7.3.1.2), 8 layers.
const MOST_PER_PRB: f64 = (12 * 14 * 10 * 8) as f64;

/// Why the reports on a UE are not believed, although they are fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Far more is delivered than they tell.
    TooLow,
    /// Far less is delivered than they tell, although data waits.
    TooHigh,
}

/// The reports on a UE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feed {
    /// The age of the latest one.
    pub age: Span,
    /// Whether that is too old for decisions.
    pub is_stale: bool,
    /// Why they are not believed, if they are not.
    pub doubt: Option<Doubt>,
    /// Payload that is delivered to the UE, as an average in bytes a second.
    pub delivered: f64,
}

/// How many reports were rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Their time is in the future.
    pub ahead: u64,
    /// Their values are beyond any cell.
    pub impossible: u64,
    /// They are older than the report on the UE before them.
    pub overtaken: u64,
}

/// Whether a report's time is further ahead than clocks may differ.
pub(crate) fn is_ahead(report: &RadioReport, now: Time) -> bool {
    report.time > now + AHEAD.0.max(report.interval.min(AHEAD.1))
}

/// Whether no cell can have done what a report tells.
pub(crate) fn is_impossible(report: &RadioReport) -> bool {
    let seconds = report.interval.as_secs_f64();
    let is_too_fast = seconds > 0.0 && report.acked_bits as f64 > MOST_BITS * seconds;
    is_too_fast || report.bits_per_prb.is_some_and(|bits| !(0.0..=MOST_PER_PRB).contains(&bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::report;
    use crate::{Config, Control, Rapid, Sample};

    #[test]
    fn a_report_is_possible_up_to_what_a_cell_can_do() {
        let bits = |bits_per_prb| RadioReport { bits_per_prb, ..report(Time::ZERO, Span::from_millis(10), 0.0) };
        // 12 subcarriers, 14 symbols, 10 bits and 8 layers.
        for (bits_per_prb, is_possible) in [
            (None, true),
            (Some(0.0), true),
            (Some(13_440.0), true),
            (Some(13_441.0), false),
            (Some(-1.0), false),
            (Some(f64::NAN), false),
        ] {
            assert_eq!(is_impossible(&bits(bits_per_prb)), !is_possible, "{bits_per_prb:?}");
        }
        // 10^12 bits a second for 10 ms. Without an interval, there is no rate.
        for (acked_bits, millis, is_possible) in
            [(10_000_000_000, 10, true), (10_000_000_001, 10, false), (10_000_000_001, 11, true), (u64::MAX, 0, true)]
        {
            let report = RadioReport { acked_bits, interval: Span::from_millis(millis), ..bits(None) };
            assert_eq!(is_impossible(&report), !is_possible, "{acked_bits} in {millis} ms");
        }
    }

    #[test]
    fn a_clock_may_be_ahead_by_100_ms_or_by_an_interval_of_up_to_2_s() {
        let now = Time::ZERO + Span::from_secs(10);
        for (interval, most) in [(10, 100), (100, 100), (101, 101), (2_000, 2_000), (5_000, 2_000)] {
            let ahead = |by: u64| is_ahead(&report(now + Span::from_millis(by), Span::from_millis(interval), 0.0), now);
            assert_eq!([ahead(most), ahead(most + 1)], [false, true], "{interval} ms");
        }
    }

    #[test]
    fn reports_of_the_future_and_of_no_cell_are_rejected_and_counted() {
        let mut rapid = Rapid::<u32, u32>::new(Config::default());
        let now = Time::ZERO + Span::from_secs(10);
        let made = |at: Span| RadioReport { bits_per_prb: Some(500.0), ..report(now + at, Span::from_millis(10), 1e5) };
        let age = |rapid: &Rapid<u32, u32>| {
            let mut age = None;
            rapid.feeds(now, &mut |_, feed| age = Some(feed.age));
            age
        };
        rapid.open(0, 0, 1448, now);
        rapid.on_report(0, &made(Span::from_millis(101)), now);
        let bits = RadioReport { bits_per_prb: Some(2e4), ..made(Span::ZERO) };
        rapid.on_report(0, &bits, now);
        rapid.on_report(0, &RadioReport { acked_bits: 1 << 40, ..made(Span::ZERO) }, now);
        assert_eq!(age(&rapid), None);
        rapid.on_report(0, &made(Span::from_millis(100)), now);
        assert_eq!(age(&rapid), Some(Span::ZERO));
        let late = RadioReport { time: now - Span::from_millis(1), ..made(Span::ZERO) };
        rapid.on_report(0, &late, now);
        assert_eq!(rapid.rejected(), Rejected { ahead: 1, impossible: 2, overtaken: 1 });
        // Reports that are made each second may be ahead by that much.
        let slow = RadioReport { interval: Span::from_secs(1), ..made(Span::from_millis(900)) };
        rapid.on_report(0, &slow, now);
        assert_eq!(rapid.rejected().ahead, 1);
    }

    /// Reports are believed for 100 ms, and what they told fades for a second.
    #[test]
    fn a_feed_is_stale_once_its_latest_report_is_too_old_for_decisions() {
        let mut rapid = Rapid::<u32, u32>::new(Config::default());
        let now = Time::ZERO + Span::from_secs(10);
        let told = RadioReport { bits_per_prb: Some(500.0), ..report(now, Span::from_millis(10), 0.0) };
        [1, 2].into_iter().for_each(|ue| rapid.on_report(ue, &told, now));
        rapid.open(0, 1, 1448, now);
        rapid.open(1, 3, 1448, now);
        let feeds = |rapid: &Rapid<u32, u32>, age: Span| {
            let mut feeds = Vec::new();
            rapid.feeds(now + age, &mut |ue, feed| feeds.push((ue, feed.age, feed.is_stale)));
            feeds
        };
        // One UE has no flows, and of another one there are no reports.
        let longest = Span::from_millis(1_100);
        let longer = longest + Span::from_nanos(1);
        assert_eq!(feeds(&rapid, longest), [(1, longest, false)]);
        assert_eq!(feeds(&rapid, longer), [(1, longer, true)]);
        // A thousand bytes in a tenth of a second, of which the average shows half.
        let mut delivered = 0;
        for at in [now, now + Span::from_millis(100)] {
            rapid.update(at, &mut |_| Sample { arrived: delivered, delivered, ..Sample::default() }, &mut |_, _| {});
            delivered = 1_000;
        }
        let mut averages = Vec::new();
        rapid.feeds(now, &mut |_, feed| averages.push(feed.delivered));
        assert_eq!(averages, [5_000.0]);
        rapid.close(0);
        assert!(feeds(&rapid, longest).is_empty());
    }
}
