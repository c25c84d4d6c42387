//! Parses and formats quantities with units: `35 Mbit/s`, `30 ms`, `500 kB`, `1 MiB`.

use crate::{Bytes, Rate, Span};
use core::fmt;
use core::str::FromStr;

/// The name of a unit and its value in the base unit. Larger units come first in a table: formatting uses the first one
/// that gives a short number.
type Unit = (&'static str, u64);

const SPANS: &[Unit] = &[
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];
const BYTES: &[Unit] = &[
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];
const RATES: &[Unit] = &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

/// Units that are accepted but never written or suggested. A small `b` is always a bit and a large `B` a byte. `tc`
/// uses `mbps` for bytes, so names that differ from these only in case are rejected with a suggestion.
const OTHER_NAMES: &[Unit] = &[
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("kbps", 1_000),
    ("bps", 1),
    ("Gb/s", 1_000_000_000),
    ("Mb/s", 1_000_000),
    ("kb/s", 1_000),
    ("GB/s", 8_000_000_000),
    ("MB/s", 8_000_000),
    ("kB/s", 8_000),
    ("B/s", 8),
];

/// The error for a string that is not a valid quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    what: &'static str,
    text: String,
    fault: Fault,
    units: &'static [Unit],
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fault {
    Number,
    NoUnit,
    Unit(String),
    Range,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseUnitError { what, text, fault, units } = self;
        let names = || units.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ");
        match fault {
            Fault::Number => write!(f, "`{text}` is not {what}: it needs a number and a unit ({})", names()),
            Fault::NoUnit => write!(f, "`{text}` has no unit: {what} is written with one of {}", names()),
            Fault::Unit(unit) => {
                write!(f, "`{unit}` is not a unit of {what}: use one of {}", names())?;
                nearest(unit, units).map_or(Ok(()), |near| write!(f, "; did you mean `{near}`?"))
            }
            Fault::Range => write!(f, "`{text}` is out of the range of {what}"),
        }
    }
}

impl core::error::Error for ParseUnitError {}

/// Returns the other names of the units in a table.
fn other_names(units: &[Unit]) -> &'static [Unit] {
    if units == RATES { OTHER_NAMES } else { &[] }
}

/// Returns the unit of the table that an invalid one resembles: it differs in case, or is an abbreviation such as
/// `Mbit` or `sec`.
fn nearest(wrong: &str, units: &'static [Unit]) -> Option<&'static str> {
    let wrong = wrong.to_ascii_lowercase();
    let short = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == wrong || name.strip_suffix("/s") == Some(&wrong) || name.replace("bit/s", "bps") == wrong
    };
    let spelled = match (wrong.as_str(), units) {
        ("sec" | "secs" | "second" | "seconds", SPANS) => Some("s"),
        ("msec" | "msecs" | "millis" | "milliseconds", SPANS) => Some("ms"),
        ("usec" | "usecs" | "micros" | "microseconds", SPANS) => Some("us"),
        ("m" | "mins" | "minute" | "minutes", SPANS) => Some("min"),
        ("hour" | "hours", SPANS) => Some("h"),
        _ => None,
    };
    let known = units.iter().find(|(name, _)| short(name)).map(|(name, _)| *name);
    spelled.or(known)
}

fn parse(text: &str, what: &'static str, units: &'static [Unit]) -> Result<u64, ParseUnitError> {
    let fail = |fault| ParseUnitError { what, text: text.to_owned(), fault, units };
    let trimmed = text.trim();
    // An `e` belongs to the number only if a digit or a sign follows it.
    let split = trimmed
        .char_indices()
        .find(|&(i, c)| {
            let after = trimmed[i + c.len_utf8()..].chars().next();
            let exponent = matches!(c, 'e' | 'E') && after.is_some_and(|a| a.is_ascii_digit() || a == '-' || a == '+');
            !(c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '+') || exponent)
        })
        .map_or(trimmed.len(), |(i, _)| i);
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim();
    let digits = number.replace('_', "");
    let value: f64 = digits.parse().map_err(|_| fail(Fault::Number))?;
    if unit.is_empty() {
        return if digits.trim_start_matches('0').is_empty() { Ok(0) } else { Err(fail(Fault::NoUnit)) };
    }
    // `us` may be written with either of Unicode's mu characters.
    let plain = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let mut known = units.iter().chain(other_names(units));
    let &(_, scale) = known.find(|(n, _)| *n == plain).ok_or_else(|| fail(Fault::Unit(unit.to_owned())))?;
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(|| fail(Fault::Range));
    }
    let scaled = (value * scale as f64).round();
    // 2^63: above it, an f64 cannot represent every integer that sums may need.
    if !(0.0..9_223_372_036_854_775_808.0).contains(&scaled) {
        return Err(fail(Fault::Range));
    }
    Ok(scaled as u64)
}

/// Formats `value` in the largest unit that represents it exactly with at most three decimals.
fn display(value: u64, units: &[Unit], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let smallest = units.last().expect("a table of units is not empty");
    let exact = |&&(_, scale): &&Unit| value >= scale && (u128::from(value) * 1000).is_multiple_of(u128::from(scale));
    let (name, scale) = units.iter().find(exact).unwrap_or(smallest);
    let (whole, part) = (value / scale, u128::from(value % scale) * 1000 / u128::from(*scale));
    if part == 0 {
        return write!(f, "{whole} {name}");
    }
    let decimals = format!("{part:03}");
    write!(f, "{whole}.{} {name}", decimals.trim_end_matches('0'))
}

macro_rules! unit {
    ($t:ident, $what:literal, $table:ident) => {
        impl FromStr for $t {
            type Err = ParseUnitError;
            fn from_str(text: &str) -> Result<$t, ParseUnitError> {
                parse(text, $what, $table).map($t)
            }
        }
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                display(self.0, $table, f)
            }
        }
    };
}
unit!(Span, "a time", SPANS);
unit!(Bytes, "an amount of data", BYTES);
unit!(Rate, "a rate", RATES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_with_units() {
        assert_eq!("35 Mbit/s".parse(), Ok(Rate::from_mbps(35)));
        assert_eq!("1.5ms".parse(), Ok(Span::from_micros(1500)));
        assert_eq!("62.5 µs".parse(), Ok(Span::from_nanos(62_500)));
        assert_eq!("1e3 ms".parse(), Ok(Span::from_secs(1)));
        assert_eq!("500 kB".parse(), Ok(Bytes::new(500_000)));
        assert_eq!("1 MiB".parse(), Ok(Bytes::new(1 << 20)));
        assert_eq!("0".parse(), Ok(Bytes::ZERO));
    }

    #[test]
    fn other_names_of_rates_are_accepted_and_a_large_b_is_a_byte() {
        for (text, rate) in [
            ("10 Mbps", Rate::from_mbps(10)),
            ("2.5Gbps", Rate::from_mbps(2500)),
            ("500 kbps", Rate::from_bits_per_sec(500_000)),
            ("500 bps", Rate::from_bits_per_sec(500)),
            ("1 Mb/s", Rate::from_mbps(1)),
            ("1 MB/s", Rate::from_mbps(8)),
            ("1.5 kB/s", Rate::from_bits_per_sec(12_000)),
            ("3 B/s", Rate::from_bits_per_sec(24)),
        ] {
            assert_eq!(text.parse(), Ok(rate), "{text}");
        }
        // These names are never written.
        assert_eq!("10 Mbps".parse::<Rate>().unwrap().to_string(), "10 Mbit/s");
        // Times and sizes have no other names.
        assert!("10 Mbps".parse::<Bytes>().is_err() && "10 MB/s".parse::<Bytes>().is_err());
    }

    #[test]
    fn a_misspelt_unit_is_rejected_with_a_suggestion() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        for text in ["10 mbps", "10 MBPS", "10 mbit/s", "10 Mbit", "10 mbit"] {
            assert!(rate(text).ends_with("; did you mean `Mbit/s`?"), "{}", rate(text));
        }
        assert!(rate("10 kbit").ends_with("; did you mean `kbit/s`?"), "{}", rate("10 kbit"));
        let span = "10 sec".parse::<Span>().unwrap_err().to_string();
        assert_eq!(span, "`sec` is not a unit of a time: use one of h, min, s, ms, us, ns; did you mean `s`?");
        let bytes = "10 kb".parse::<Bytes>().unwrap_err().to_string();
        assert!(bytes.ends_with("; did you mean `kB`?"), "{bytes}");
    }

    #[test]
    fn errors_name_the_valid_units() {
        let says = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert_eq!(says("35"), "`35` has no unit: a rate is written with one of Gbit/s, Mbit/s, kbit/s, bit/s");
        assert_eq!(says("35 MB"), "`MB` is not a unit of a rate: use one of Gbit/s, Mbit/s, kbit/s, bit/s");
        assert_eq!(says("fast"), "`fast` is not a rate: it needs a number and a unit (Gbit/s, Mbit/s, kbit/s, bit/s)");
        assert_eq!(says("-1 Mbit/s"), "`-1 Mbit/s` is out of the range of a rate");
        assert_eq!(says("1e30 Gbit/s"), "`1e30 Gbit/s` is out of the range of a rate");
    }

    #[test]
    fn formatted_quantities_parse_to_the_same_value() {
        for text in ["35 Mbit/s", "1.5 Gbit/s", "999 bit/s", "0 bit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["30 ms", "62.5 us", "2 min", "1.001 s", "7 ns"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("1000 kB".parse::<Bytes>().unwrap().to_string(), "1 MB");
    }

    #[test]
    fn a_rate_times_a_span_is_bytes_and_back() {
        let rate = Rate::from_mbps(35);
        assert_eq!(rate.time_for(Bytes::new(1500)), Span::from_nanos(342_858));
        assert_eq!(rate.bytes_in(Span::from_nanos(342_858)), Bytes::new(1500));
        assert_eq!(Rate::over(Bytes::new(4375), Span::from_millis(1)), rate);
        assert_eq!(Rate::default().time_for(Bytes::new(1)), Span::MAX);
    }
}
