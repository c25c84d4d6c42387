//! Times in front of lines, or on lines of their own, as `date` and `ts` write them.
//!
//! | form | from |
//! | --- | --- |
//! | `1795597442.030269343` | `date +%s.%N`, `ts %.s` |
//! | `1795597442030`, `1795597442030269343` | `date +%s%3N` (ms), `date +%s%N` (ns), and µs |
//! | `2026-11-25T09:04:02.030+01:00`, `2026-11-25 09:04:02` | `date -Ins`, `ts '%F %T'` |
//! | `Wed Nov 25 09:04:02 UTC 2026`, `Nov 25 09:04:02` | `date`, `ts` |
//! | `09:04:02.030` | `date +%T`, `ts -s`: midnight is recognized |
//!
//! The name of a time zone is not read: all lines are of the same. Neither is a leap second.

/// A time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stamp {
    /// Seconds since the Unix epoch.
    Unix(f64),
    /// Seconds since some midnight, or since the epoch in an unknown year.
    Other(f64),
}

/// A year that is taken where none is given: one with a 29th of February.
const SOME_YEAR: i64 = 2024;
/// The seconds of that year.
pub(crate) const YEAR_S: f64 = 366.0 * DAY_S;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY_S: f64 = 86_400.0;

/// Takes the time from the beginning of a line, if there is one. Returns what is behind it as well.
pub(crate) fn take(line: &str) -> Option<(Stamp, &str)> {
    let line = line.trim_start();
    let (first, rest) = next(line)?;
    if first.as_bytes()[0].is_ascii_digit() {
        if let Some(seconds) = unix(first) {
            return Some((Stamp::Unix(seconds), rest));
        }
        if let Some(seconds) = clock(first) {
            return Some((Stamp::Other(seconds), rest));
        }
        return iso(first, rest);
    }
    words(line)
}

/// The next word, and what is behind it.
fn next(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn unix(word: &str) -> Option<f64> {
    let digits = word.find('.').unwrap_or(word.len());
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // From 2001 to 2286, in s, ms, us or ns.
    let unit = [(10, 1.0), (13, 1e3), (16, 1e6), (19, 1e9)].into_iter().find(|(len, _)| *len == digits);
    let number: f64 = word.parse().ok().filter(|_| is_number)?;
    unit.map(|(_, unit)| number / unit)
}

/// Seconds since midnight of `HH:MM:SS`, with a fraction after a point or a comma.
fn clock(word: &str) -> Option<f64> {
    let bytes = word.as_bytes();
    let two = |at: usize| -> Option<f64> {
        let [tens, ones] = bytes.get(at..at + 2)? else { return None };
        (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| f64::from((tens - b'0') * 10 + (ones - b'0')))
    };
    if bytes.get(2) != Some(&b':') || bytes.get(5) != Some(&b':') {
        return None;
    }
    let (hours, minutes, seconds) = (two(0)?, two(3)?, two(6)?);
    let fraction = match bytes.get(8..)? {
        [] => 0.0,
        [b'.' | b',', digits @ ..]
            if !digits.is_empty() && digits.len() <= 12 && digits.iter().all(u8::is_ascii_digit) =>
        {
            format!("0.{}", str::from_utf8(digits).ok()?).parse().ok()?
        }
        _ => return None,
    };
    (hours < 24.0 && minutes < 60.0 && seconds <= 60.0).then_some(hours * 3600.0 + minutes * 60.0 + seconds + fraction)
}

/// Days from the epoch to a date of the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date algorithms").
fn days(year: i64, month: i64, day: i64) -> f64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468) as f64
}

/// Whether between two times without a year lies nothing but a whole 29th of February: then the year had none.
pub(crate) fn skips_29_february(before: f64, after: f64) -> bool {
    let day = days(SOME_YEAR, 2, 29) * DAY_S;
    before < day && before >= day - DAY_S && after >= day + DAY_S && after < day + 2.0 * DAY_S
}

fn iso<'a>(first: &str, rest: &'a str) -> Option<(Stamp, &'a str)> {
    let date = first.get(..10)?;
    let part = |from: usize, to: usize| -> Option<i64> {
        let digits = date.get(from..to)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    if date.as_bytes()[4] != b'-' || date.as_bytes()[7] != b'-' {
        return None;
    }
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, rest) = match first.get(10..)? {
        "" => next(rest)?,
        time => (time.strip_prefix('T')?, rest),
    };
    let end = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(end);
    let seconds = days(year, month, day) * DAY_S + clock(time)?;
    Some((Stamp::Unix(seconds - offset(zone)?), rest))
}

/// Seconds of a time zone such as `+01:00`, `-0530`, `Z` or none.
fn offset(zone: &str) -> Option<f64> {
    let (sign, digits) = match zone.as_bytes() {
        [] | [b'Z'] => return Some(0.0),
        [b'+', ..] => (1.0, zone[1..].replace(':', "")),
        _ => (-1.0, zone[1..].replace(':', "")),
    };
    let number: f64 =
        digits.parse().ok().filter(|_| digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (hours, minutes) = if digits.len() > 2 { ((number / 100.0).trunc(), number % 100.0) } else { (number, 0.0) };
    Some(sign * (hours * 3600.0 + minutes * 60.0))
}

/// A date in words, in any order of `date` and `ts`.
fn words(line: &str) -> Option<(Stamp, &str)> {
    let (mut month, mut day, mut year, mut time) = (None, None, None, None);
    let mut rest = line;
    for _ in 0..8 {
        let Some((word, behind)) = next(rest) else { break };
        let number = word.parse::<i64>().ok();
        match number {
            _ if WEEKDAYS.contains(&word.trim_end_matches(',')) => {}
            _ if month.is_none() && MONTHS.contains(&word) => month = MONTHS.iter().position(|name| *name == word),
            Some(number @ 1..=31) if day.is_none() => day = Some(number),
            Some(number @ 1970..=2200) if year.is_none() && word.len() == 4 => year = Some(number),
            _ if time.is_none() && clock(word).is_some() => time = clock(word),
            _ if time.is_some() && ["AM", "PM"].contains(&word) => {
                let half = time.map(|seconds| seconds % (DAY_S / 2.0));
                time = half.map(|seconds| seconds + if word == "PM" { DAY_S / 2.0 } else { 0.0 });
            }
            // A zone comes before the year, or at the end.
            _ if time.is_some() && is_zone(word, behind) => {}
            _ => break,
        }
        rest = behind;
        if day.is_some() && time.is_some() && month.is_some() && year.is_some() && !ends_with_zone(rest) {
            break;
        }
    }
    let (month, day, time) = (month? as i64 + 1, day?, time?);
    let seconds = days(year.unwrap_or(SOME_YEAR), month, day) * DAY_S + time;
    Some((if year.is_some() { Stamp::Unix(seconds) } else { Stamp::Other(seconds) }, rest))
}

fn is_zone(word: &str, behind: &str) -> bool {
    let is_name = (2..=5).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_number = word.starts_with(['+', '-']) && word.len() == 5 && offset(word).is_some();
    let before_year =
        next(behind).is_some_and(|(word, _)| word.len() == 4 && word.parse::<u16>().is_ok_and(|year| year > 1969));
    (is_name || is_number) && (before_year || behind.trim().is_empty())
}

/// Whether nothing but the name of a zone, or the half of the day, is left.
fn ends_with_zone(rest: &str) -> bool {
    next(rest).is_some_and(|(word, behind)| ["AM", "PM"].contains(&word) || is_zone(word, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_date_and_ts_are_the_same_time() {
        // 2026-11-25T09:04:02Z, by `date -ud @1795597442`.
        let unix = 1_795_597_442.0;
        for text in [
            "1795597442",
            "1795597442.000000000",
            "1795597442000",
            "1795597442000.000",
            "1795597442000000",
            "1795597442000000000",
            "2026-11-25T09:04:02Z",
            "2026-11-25T10:04:02,000000000+01:00",
            "2026-11-25 09:04:02",
            "2026-11-25T03:34:02-0530",
            "Wed Nov 25 09:04:02 UTC 2026",
            "Wed Nov 25 09:04:02 AM UTC 2026",
            "Wed 25 Nov 2026 09:04:02 AM UTC",
            "Wed 25 Nov 09:04:02 CET 2026",
        ] {
            for (line, rest) in
                [(text.to_owned(), ""), (format!("{text} ESTAB 0 0 10.0.0.1:1"), "ESTAB 0 0 10.0.0.1:1")]
            {
                // The last form but one ends with a zone, which only the end of a line tells from a state.
                if text.ends_with("AM UTC") && !rest.is_empty() {
                    continue;
                }
                assert_eq!(take(&line).map(|(at, rest)| (at, rest.trim())), Some((Stamp::Unix(unix), rest)), "{line}");
            }
        }
        assert_eq!(take("09:04:02.5 ESTAB").map(|found| found.0), Some(Stamp::Other(32_642.5)));
        let some = take("Feb 29 23:59:60 ESTAB 0 0").expect("a time");
        assert_eq!((some.1.trim(), some.0), ("ESTAB 0 0", Stamp::Other(1_709_251_200.0)));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for line in [
            "",
            "ESTAB 0 0 10.0.0.1:22 10.0.0.2:80",
            "0 0 10.0.0.1:22 10.0.0.2:80",
            "0      4096 127.0.0.1:44869 127.0.0.1:33380",
            "State Recv-Q Send-Q",
            "cubic wscale:7,7 rto:204",
            "179559744200 ESTAB",
            "17955974420000 ESTAB",
            "1795597442.5.5 ESTAB",
            "2026-13-45T00:00:00",
            "2026-11-25T25:00:00",
            "2026-11-25T12:00:00+x",
            "Mon",
            "\u{e4}\u{f6}\u{fc}",
            "2026-11-2\u{e4}",
        ] {
            assert_eq!(take(line), None, "{line}");
        }
    }

    #[test]
    fn any_text_has_a_time_of_its_form_or_none() {
        bolero::check!().with_type::<String>().for_each(|text| {
            let Some((stamp, rest)) = take(text) else { return };
            assert!(text.ends_with(rest) && rest.len() < text.len());
            match stamp {
                // From 1970 on, in zones of up to 99 hours, to the year 2286 of 10 digits, or 9999 of a date.
                Stamp::Unix(at) => assert!((-100.0 * 3_600.0..3e11).contains(&at), "{text}: {at}"),
                Stamp::Other(at) => assert!((0.0..2e9).contains(&at), "{text}: {at}"),
            }
        });
    }

    #[test]
    fn any_time_is_read_as_it_was_written() {
        bolero::check!().with_type::<(u32, u16, i8)>().for_each(|&(seconds, milliseconds, quarters)| {
            // After 2001, when numbers have 10 digits; zones of up to 32 hours.
            let (unix, milliseconds) = (1_000_000_000 + i64::from(seconds), milliseconds % 1_000);
            let local = unix + i64::from(quarters) * 900;
            let (day, of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
            // The year by looking for it, unlike `days`.
            let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let (mut year, mut left) = (1970, day);
            while left >= 365 + i64::from(is_leap(year)) {
                left -= 365 + i64::from(is_leap(year));
                year += 1;
            }
            let lengths = [31, 28 + i64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let mut month = 0;
            while left >= lengths[month] {
                left -= lengths[month];
                month += 1;
            }
            let clock = format!("{:02}:{:02}:{:02}", of_day / 3_600, of_day / 60 % 60, of_day % 60);
            let (sign, zone) = (if quarters < 0 { '-' } else { '+' }, u32::from(quarters.unsigned_abs()) * 15);
            let exact = unix as f64 + f64::from(milliseconds) / 1e3;
            for (text, at) in [
                (format!("{unix}.{milliseconds:03}"), exact),
                (format!("{unix}{milliseconds:03}"), exact),
                (format!("{unix}{milliseconds:03}000000"), exact),
                (
                    format!(
                        "{year}-{:02}-{:02}T{clock}.{milliseconds:03}{sign}{:02}:{:02}",
                        month + 1,
                        left + 1,
                        zone / 60,
                        zone % 60
                    ),
                    exact,
                ),
                (format!("{} {} {clock} {year}", MONTHS[month], left + 1), local as f64),
            ] {
                let line = format!("{text} ESTAB 0 0");
                let (stamp, rest) = take(&line).unwrap_or_else(|| panic!("{line}"));
                assert_eq!(rest.trim(), "ESTAB 0 0");
                let Stamp::Unix(found) = stamp else { panic!("{line}: {stamp:?}") };
                assert!((found - at).abs() < 1e-4, "{line}: {found} is not {at}");
            }
        });
    }
}
