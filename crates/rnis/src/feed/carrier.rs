//! The carrier of a cell, and arithmetic with values from outside.

use units::{Span, Time};

/// The most UEs whose counters a parser remembers.
pub(super) const MOST_UES: usize = 4096;
/// After a pause of this length, differences of counters mean nothing.
pub(super) const LONGEST_INTERVAL: Span = Span::from_secs(10);

/// What the records of base stations leave out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// The cell, for feeds that do not name one.
    pub cell: u64,
    /// Resource blocks of the carrier.
    pub n_prb: u16,
    /// Downlink slots per second, those that the duplexing pattern permits.
    pub slots_per_second: u32,
    /// The interval of the reports, where neither they nor the time between them tells.
    pub period: Span,
}

impl Default for Carrier {
    /// An LTE carrier of 20 MHz that reports each second.
    fn default() -> Carrier {
        Carrier { cell: 1, n_prb: 100, slots_per_second: 1000, period: Span::from_secs(1) }
    }
}

impl Carrier {
    /// Returns the downlink slots in an interval, rounded.
    pub(super) fn slots(&self, interval: Span) -> u32 {
        let slots = u128::from(interval.as_nanos()) * u128::from(self.slots_per_second) + 500_000_000;
        u32::try_from(slots / 1_000_000_000).unwrap_or(u32::MAX)
    }

    /// Returns the slots in an interval that a duplexing pattern divides between the directions: the numerology has 1000, 2000,
    /// 4000... a second, and is the smallest that has enough of them for the downlink.
    pub(super) fn slots_of_both_directions(&self, interval: Span) -> f64 {
        let mut per_second = 1000;
        while per_second < self.slots_per_second && per_second < 64_000 {
            per_second *= 2;
        }
        interval.as_secs_f64() * f64::from(per_second)
    }
}

/// The interval between two reports of one source.
pub(super) fn interval(before: Option<Time>, time: Time, otherwise: Span) -> Span {
    match before {
        Some(before) if before < time && time - before <= LONGEST_INTERVAL => time - before,
        _ => otherwise,
    }
}

/// Multiplies a count with a share, rounded, for values from outside: no more than `u64::MAX`, and 0 for what is not a number.
pub(super) fn scaled(value: f64) -> u64 {
    if value.is_finite() && value > 0.0 { (value + 0.5) as u64 } else { 0 }
}
