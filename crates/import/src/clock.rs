//! Times in tables: numbers of a unit, seconds since 1970 in one, and dates.
//!
//! A date is a year, a month and a day, and a time of day (ISO 8601, `2024-01-30T01:00:00.25+02:00`, or with other
//! separators, such as G-NetTrack's `2020.02.14_09.38.22`). Days in front of months are not read: of `03/04/2024`, nobody
//! can tell. A date without an offset counts as one in UTC; only differences matter.

use time::{Date, Month};

/// A value of a column of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moment {
    /// A number, in the column's unit.
    Number(f64),
    /// Seconds since 1970.
    Date(f64),
}

/// Parses a finite number.
pub(crate) fn number(cell: &[u8]) -> Option<f64> {
    str::from_utf8(cell).ok()?.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Parses a time.
pub(crate) fn moment(cell: &[u8]) -> Option<Moment> {
    number(cell).map(Moment::Number).or_else(|| date(cell).map(Moment::Date))
}

/// Parses a date with a time of day; returns the seconds since 1970.
pub(crate) fn date(cell: &[u8]) -> Option<f64> {
    let mut rest = Rest(str::from_utf8(cell).ok()?.trim());
    let year = rest.digits(4, 4)?;
    let mark = rest.one_of("-./");
    let month = rest.digits(2, if mark { 1 } else { 2 })?;
    if rest.one_of("-./") != mark {
        return None;
    }
    let day = rest.digits(2, if mark { 1 } else { 2 })?;
    if !rest.one_of("Tt_ -") {
        return None;
    }
    let hour = rest.digits(2, 1)?;
    let mark = rest.one_of(":.-h");
    let minute = rest.digits(2, 2)?;
    let mut second = 0.0;
    if mark && rest.one_of(":.-") || !mark && rest.begins_with_digit() {
        second = f64::from(rest.digits(2, 2)?);
        if rest.one_of(".,:") {
            let (digits, count) = rest.fraction()?;
            second += digits / libm::pow(10.0, f64::from(count));
        }
    }
    let offset = rest.offset()?;
    if hour > 24 || minute > 59 || second >= 61.0 {
        return None;
    }
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::from(year), month, u8::try_from(day).ok()?).ok()?;
    let days = f64::from(date.to_julian_day() - Date::from_ordinal_date(1970, 1).ok()?.to_julian_day());
    Some(days * 86_400.0 + f64::from(hour) * 3_600.0 + f64::from(minute) * 60.0 + second - offset)
}

/// What is left of a text.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// Takes a number of up to `most` digits, and at least `least`.
    fn digits(&mut self, most: usize, least: usize) -> Option<u16> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        (count >= least).then(|| digits.parse().ok())?
    }

    /// Takes the digits behind a decimal mark: their number, up to 18 of them, and how many.
    fn fraction(&mut self) -> Option<(f64, u8)> {
        let count = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        let digits = &digits[..count.min(18)];
        Some((digits.parse().ok()?, digits.len() as u8))
    }

    fn begins_with_digit(&self) -> bool {
        self.0.starts_with(|letter: char| letter.is_ascii_digit())
    }

    /// Takes a character if it is one of these.
    fn one_of(&mut self, marks: &str) -> bool {
        let rest = self.0.strip_prefix(|letter| marks.contains(letter));
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Takes the rest, an offset from UTC; returns it in seconds.
    fn offset(&mut self) -> Option<f64> {
        let rest = self.0.trim();
        if rest.is_empty() || ["z", "utc", "gmt"].iter().any(|zone| rest.eq_ignore_ascii_case(zone)) {
            return Some(0.0);
        }
        let sign = if rest.starts_with('-') { -1.0 } else { 1.0 };
        let mut digits = Rest(rest.strip_prefix(['+', '-'])?);
        let hours = digits.digits(2, 2)?;
        digits.one_of(":");
        let minutes = if digits.0.is_empty() { 0 } else { digits.digits(2, 2)? };
        digits.0.is_empty().then(|| sign * (f64::from(hours) * 3_600.0 + f64::from(minutes) * 60.0))
    }
}

/// Times from which on a number without a unit is a date: 2001-09-09 to 2099-12-03.
const DATES: std::ops::Range<f64> = 1e9..4.1e9;
/// Seconds beyond which a time is not one of a recording.
pub(crate) const LATEST: f64 = DATES.end;

/// Returns the unit in which a number is a date, in seconds, and its name: seconds, milliseconds, microseconds or nanoseconds
/// since 1970.
pub(crate) fn epoch(number: f64) -> Option<(f64, &'static str)> {
    [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
        .into_iter()
        .find(|(unit, _)| DATES.contains(&(number * unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_the_forms_that_loggers_write() {
        // date -u -d '2020-02-14 09:38:22' +%s
        for text in [
            "2020.02.14_09.38.22",
            "2020-02-14T09:38:22Z",
            "2020-02-14T09:38:22",
            "2020-02-14 09:38:22 UTC",
            "2020/2/14 9:38:22",
            "2020-02-14T11:38:22+02:00",
            "2020-02-14T07:08:22-0230",
            "20200214T093822Z",
            "2020-02-14_09-38-22",
        ] {
            assert_eq!(date(text.as_bytes()), Some(1_581_673_102.0), "{text}");
        }
        for text in ["2020.02.14_09.38.22.250", "2020-02-14T09:38:22,25Z", "2020-02-14 09:38:22.250000+00"] {
            assert_eq!(date(text.as_bytes()), Some(1_581_673_102.25), "{text}");
        }
        for text in [
            "14.02.2020 09:38:22",
            "03/04/2024 01:00:00",
            "2020.13.14_09.38.22",
            "2020-02-30T00:00:00Z",
            "2020.02.14",
            "1581673102",
            "2020-02-14T09:38:22 EST",
            "2020-02-14T25:00:00Z",
            "",
        ] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_today_are_dates_in_the_unit_of_their_size() {
        let units = [1.7e9, 1.7e12, 1.7e15, 1.7e18].map(|number| epoch(number).unwrap().0);
        assert_eq!(units, [1.0, 1e-3, 1e-6, 1e-9]);
        assert_eq!([0.0, 1e8, 1e11, -1.7e9].map(epoch), [None; 4]);
    }
}
