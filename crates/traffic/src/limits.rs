//! Ranges of parameters that several applications have.

use core::ops::RangeInclusive;
use units::check::MAX_SPAN;
use units::{Bytes, Span};

/// Maximum number of transfers and pages of an application that has a number of them.
pub(crate) const MAX_COUNT: u32 = 100_000;

/// Valid periods of an application that alternates: a run would spend all its time on shorter ones.
pub const PERIODS: RangeInclusive<Span> = Span::from_micros(10)..=MAX_SPAN;

/// Valid packets: from the IP and UDP headers with one byte of payload to the largest IP packet.
pub(crate) const PACKETS: RangeInclusive<Bytes> = Bytes::new(29)..=Bytes::new(65_535);

/// The usual packet.
pub(crate) fn mtu() -> Bytes {
    Bytes::new(1500)
}
