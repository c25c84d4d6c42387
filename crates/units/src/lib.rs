//! Time, spans, bytes and rates with checked arithmetic, distributions of spans, and [statistics](stats); parameters of these types in
//! scenario files.
//!
//! Everything is an integer: nanoseconds, bytes and bits per second, so that every sum is exact and the same on every
//! machine. A slot of the finest NR numerology, 62.5 us, is 62,500 of these nanoseconds. Overflow and time that runs
//! backwards are our own bugs and panic; where an ordinary input can reach an edge, a `saturating_` form exists.
//!
//! | product | result |
//! | --- | --- |
//! | `Time + Span`, `Time - Time` | `Time`, `Span` |
//! | [`Rate::time_for`] | the span that so many bytes take, rounded up |
//! | [`Rate::bytes_in`] | the bytes that fit into a span, rounded down |
//! | [`Rate::over`] | the rate of so many bytes over a span |

pub mod check;
mod distribution;
#[cfg(feature = "serde")]
mod kinds;
#[cfg(feature = "serde")]
pub mod parameters;
mod parse;
#[cfg(feature = "serde")]
mod serde_impls;
pub mod stats;

pub use distribution::Distribution;
pub use parse::ParseUnitError;

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run (simulation) or of the clock (live).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A duration in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Time {
    /// The start.
    pub const ZERO: Time = Time(0);
    /// Later than any other time: "no deadline" in comparisons.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the time `nanos` after the start.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Returns nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns seconds since the start, for display and plots.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Returns the span since `earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// Zero.
    pub const ZERO: Span = Span(0);
    /// Longer than any other span.
    pub const MAX: Span = Span(u64::MAX);

    /// Creates a span of nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Span {
        Span(n)
    }

    /// Creates a span of microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// Creates a span of milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// Creates a span of seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Span {
        Span(n * NANOS_PER_SEC)
    }

    /// Creates a span of seconds, rounded to the nearest nanosecond. Negative values and NaN give zero; overflow gives
    /// [`Span::MAX`].
    #[inline]
    pub fn from_secs_f64(s: f64) -> Span {
        Span((s * NANOS_PER_SEC as f64 + 0.5) as u64)
    }

    /// Returns nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns whole milliseconds, rounded down.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Returns seconds, for display and plots.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// Returns the difference, or zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// Returns `self * num / den`, rounded down, without intermediate overflow.
    #[inline]
    pub const fn mul_div(self, num: u64, den: u64) -> Span {
        Span((self.0 as u128 * num as u128 / den as u128) as u64)
    }
}

impl Bytes {
    /// Zero.
    pub const ZERO: Bytes = Bytes(0);

    /// Creates an amount of `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }

    /// Returns the number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Rate {
    /// Creates a rate in bits per second.
    #[inline]
    pub const fn from_bits_per_sec(n: u64) -> Rate {
        Rate(n)
    }

    /// Creates a rate in megabits (10^6 bits) per second.
    #[inline]
    pub const fn from_mbps(n: u64) -> Rate {
        Rate(n * 1_000_000)
    }

    /// Returns bits per second.
    #[inline]
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Returns bytes per second, rounded down.
    #[inline]
    pub const fn bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// Returns megabits per second, for display and plots.
    #[inline]
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the time that `bytes` take at this rate, rounded up to a nanosecond; [`Span::MAX`] at rate zero.
    #[inline]
    pub const fn time_for(self, bytes: Bytes) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        match bytes.0.checked_mul(8 * NANOS_PER_SEC) {
            Some(bit_nanos) => Span(bit_nanos.div_ceil(self.0)),
            None => {
                let nanos = (bytes.0 as u128 * (8 * NANOS_PER_SEC) as u128).div_ceil(self.0 as u128);
                if nanos > u64::MAX as u128 { Span::MAX } else { Span(nanos as u64) }
            }
        }
    }

    /// Returns the number of whole bytes that pass in `span` at this rate.
    #[inline]
    pub const fn bytes_in(self, span: Span) -> Bytes {
        Bytes((self.0 as u128 * span.0 as u128 / (8 * NANOS_PER_SEC) as u128) as u64)
    }

    /// Returns the rate of `bytes` over `span`, rounded down; zero for a span of zero.
    #[inline]
    pub const fn over(bytes: Bytes, span: Span) -> Rate {
        if span.0 == 0 {
            return Rate(0);
        }
        let bits = bytes.0 as u128 * (8 * NANOS_PER_SEC) as u128 / span.0 as u128;
        if bits > u64::MAX as u128 { Rate(u64::MAX) } else { Rate(bits as u64) }
    }

    /// Returns `self * num / den`, rounded down, without intermediate overflow.
    #[inline]
    pub const fn mul_div(self, num: u64, den: u64) -> Rate {
        Rate((self.0 as u128 * num as u128 / den as u128) as u64)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, rhs: Span) -> Time {
        Time(self.0.checked_add(rhs.0).expect("a time beyond the maximum"))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, rhs: Span) {
        *self = *self + rhs;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, rhs: Span) -> Time {
        Time(self.0.checked_sub(rhs.0).expect("a time before the start"))
    }
}

impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.checked_sub(earlier.0).expect("time went backwards"))
    }
}

macro_rules! sums {
    ($($t:ident),*) => {$(
        impl Add for $t {
            type Output = $t;
            #[inline]
            fn add(self, rhs: $t) -> $t {
                $t(self.0.checked_add(rhs.0).expect(concat!(stringify!($t), " overflowed")))
            }
        }
        impl AddAssign for $t {
            #[inline]
            fn add_assign(&mut self, rhs: $t) {
                *self = *self + rhs;
            }
        }
        impl Sub for $t {
            type Output = $t;
            #[inline]
            fn sub(self, rhs: $t) -> $t {
                $t(self.0.checked_sub(rhs.0).expect(concat!(stringify!($t), " below zero")))
            }
        }
        impl SubAssign for $t {
            #[inline]
            fn sub_assign(&mut self, rhs: $t) {
                *self = *self - rhs;
            }
        }
        impl Mul<u64> for $t {
            type Output = $t;
            #[inline]
            fn mul(self, n: u64) -> $t {
                $t(self.0.checked_mul(n).expect(concat!(stringify!($t), " overflowed")))
            }
        }
        impl Div<u64> for $t {
            type Output = $t;
            #[inline]
            fn div(self, n: u64) -> $t {
                $t(self.0 / n)
            }
        }
        impl core::iter::Sum for $t {
            #[inline]
            fn sum<I: Iterator<Item = $t>>(items: I) -> $t {
                items.fold($t(0), Add::add)
            }
        }
    )*};
}
sums!(Span, Bytes, Rate);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}
