//! Tables of rates over time.

use std::io::Read;

use csv::{ByteRecord, ReaderBuilder, Trim};
use link::trace::Trace;

use crate::{Error, MAX_SECONDS, Opportunities, shown, text};

/// The highest accepted rate, in bit/s.
const MAX_RATE: f64 = 1e13;

/// The unit of a column of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// bit/s.
    Bps,
    /// 10^3 bit/s.
    Kbps,
    /// 10^6 bit/s.
    Mbps,
    /// Bytes between this line's time and the next line's.
    Bytes,
}

impl Unit {
    /// Endings of column names that indicate the unit.
    const ENDINGS: [(&'static str, Unit); 8] = [
        ("mbps", Unit::Mbps),
        ("mbit/s", Unit::Mbps),
        ("kbps", Unit::Kbps),
        ("kbit/s", Unit::Kbps),
        ("bps", Unit::Bps),
        ("bit/s", Unit::Bps),
        ("bits", Unit::Bps),
        ("bytes", Unit::Bytes),
    ];
}

/// Selects columns. Missing fields are derived from the columns' names.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The name of the column of times, or its number from 1.
    pub time: Option<String>,
    /// The name of the column of rates, or its number from 1.
    pub rate: Option<String>,
    /// The rates' unit.
    pub unit: Option<Unit>,
    /// Seconds per unit of time.
    pub seconds: Option<f64>,
}

/// Reads a table of times and rates whose first line names the columns; values are separated by commas, semicolons or
/// tabs. A rate holds from its line's time to the next line's; the last one for as long as the previous one. The trace
/// covers `length` seconds from `begin` seconds after the first line.
///
/// # Errors
/// [`Error::Line`] for a line without numbers, a rate below zero or above 10 Tbit/s, and decreasing times;
/// [`Error::File`] if the columns are not found or nothing passes; [`Error::Io`].
pub fn rates(from: impl Read, columns: &Columns, begin: f64, length: Option<f64>) -> Result<Trace, Error> {
    let text = text(from)?;
    let separator = separator(&text);
    let mut reader = ReaderBuilder::new()
        .delimiter(separator)
        .trim(Trim::All)
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(&text[..]);
    let head = reader.byte_headers().map_err(|error| Error::File(error.to_string()))?.clone();
    let (time, seconds) = time_column(&head, columns)?;
    let (rate, unit) = rate_column(&head, columns, time)?;

    let mut sum = Opportunities::new(begin, length);
    let mut record = ByteRecord::new();
    // The previous line: its time since the first line, and its value.
    let (mut first, mut before, mut step) = (None, None::<(f64, f64)>, 0.0);
    while reader.read_byte_record(&mut record).map_err(|error| Error::File(error.to_string()))? {
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize, what: &str| -> Result<f64, Error> {
            let digits =
                record.get(column).ok_or_else(|| Error::line(line, format!("has no column {}", column + 1)))?;
            let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<f64>().ok());
            number
                .filter(|number| number.is_finite())
                .ok_or_else(|| Error::line(line, format!("the {what} `{}` is not a number", shown(digits))))
        };
        let at = number(time, "time")? * seconds;
        let value = number(rate, "rate")?;
        let now = at - *first.get_or_insert(at);
        if !(0.0..=MAX_SECONDS).contains(&now) {
            let what =
                if now < 0.0 { "is earlier than the first line" } else { "is more than 49 days after the first line" };
            return Err(Error::line(line, what));
        }
        if value < 0.0 || unit != Unit::Bytes && value * bits(unit) > MAX_RATE {
            return Err(Error::line(line, format!("the rate {value} must be from 0 to 10 Tbit/s")));
        }
        if let Some((then, value)) = before {
            if now < then {
                return Err(Error::line(line, "is earlier than the previous line: times must not decrease"));
            }
            step = now - then;
            pass(&mut sum, unit, value, then, now)?;
        }
        before = Some((now, value));
    }
    let Some((last, value)) = before else { return Err(Error::File("no lines after the header".to_owned())) };
    pass(&mut sum, unit, value, last, last + if step > 0.0 { step } else { 1.0 })?;
    sum.finish()
}

fn pass(sum: &mut Opportunities, unit: Unit, value: f64, from: f64, to: f64) -> Result<(), Error> {
    if unit != Unit::Bytes {
        return sum.flow(value * bits(unit) / 8.0, from, to);
    }
    // Bytes of an interval of zero length pass at once.
    if to > from { sum.flow(value / (to - from), from, to) } else { sum.add(from, value) }
}

fn bits(unit: Unit) -> f64 {
    match unit {
        Unit::Bps | Unit::Bytes => 1.0,
        Unit::Kbps => 1e3,
        Unit::Mbps => 1e6,
    }
}

/// Returns the separator used in the first line.
fn separator(text: &[u8]) -> u8 {
    let first = text.split(|&byte| byte == b'\n').find(|line| !line.starts_with(b"#")).unwrap_or_default();
    let count = |of: u8| first.iter().filter(|&&byte| byte == of).count();
    [b'\t', b';'].into_iter().find(|&of| count(of) > count(b',')).unwrap_or(b',')
}

/// Returns the index of the column with that name or number.
fn named(head: &ByteRecord, name: &str) -> Result<usize, Error> {
    let by_name = head.iter().position(|one| one.eq_ignore_ascii_case(name.as_bytes()));
    let by_number = || name.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < head.len());
    by_name
        .or_else(by_number)
        .ok_or_else(|| Error::File(format!("no column `{name}`; the columns are {}", names(head))))
}

fn names(head: &ByteRecord) -> String {
    let names: Vec<String> = head.iter().take(20).map(|name| format!("`{}`", shown(name))).collect();
    names.join(", ")
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).trim_start_matches('\u{feff}').to_lowercase()
}

/// Returns the column of times, and its unit in seconds.
fn time_column(head: &ByteRecord, columns: &Columns) -> Result<(usize, f64), Error> {
    let unit = |name: &str| match name {
        name if name.ends_with("ms") || name.contains("milli") => 1e-3,
        name if name.ends_with("us") || name.contains("micro") => 1e-6,
        name if name.ends_with("ns") || name.contains("nano") => 1e-9,
        _ => 1.0,
    };
    let is_time =
        |name: &String| name == "t" || name == "s" || name == "ms" || name.contains("time") || name.starts_with("t_");
    let column = match &columns.time {
        Some(name) => named(head, name)?,
        None => head.iter().map(lower).position(|name| is_time(&name)).ok_or_else(|| {
            Error::File(format!("no column has a name for a time; select one of {} with --time", names(head)))
        })?,
    };
    Ok((column, columns.seconds.unwrap_or_else(|| unit(&shown(&head[column])))))
}

/// Returns the column of rates, and its unit.
fn rate_column(head: &ByteRecord, columns: &Columns, time: usize) -> Result<(usize, Unit), Error> {
    let unit_of = |name: &[u8]| {
        let name = lower(name);
        Unit::ENDINGS.iter().find(|(ending, _)| name.contains(ending)).map(|&(_, unit)| unit)
    };
    let column = match &columns.rate {
        Some(name) => named(head, name)?,
        None => {
            let fitting = |i: &usize| *i != time && unit_of(&head[*i]).is_some();
            let found: Vec<usize> = (0..head.len()).filter(fitting).collect();
            match found[..] {
                [one] => one,
                [] if head.len() == 2 && columns.unit.is_some() => 1 - time,
                [] => {
                    let what = format!("no column has a name for a rate; select one of {} with --rate", names(head));
                    return Err(Error::File(what));
                }
                _ => {
                    let of = found.iter().map(|&i| shown(&head[i])).collect();
                    return Err(crate::choose("several columns may be the rate: select one with --rate", of));
                }
            }
        }
    };
    let unit = columns.unit.or_else(|| unit_of(&head[column])).ok_or_else(|| {
        Error::File(format!("the unit of column `{}` is unknown: set it with --unit", shown(&head[column])))
    })?;
    Ok((column, unit))
}
