//! Tables of rates, or of amounts of data, over time.

use std::io::Read;

use csv::ByteRecord;
use link::trace::Trace;

use crate::clock::{self, Moment};
use crate::table::{Table, is_missing, number};
use crate::units::{self, TimeName, Unit};
use crate::{Error, MAX_SECONDS, Noted, Opportunities, choose, shown, text};

/// The highest accepted rate, in bit/s.
const MAX_RATE: f64 = 1e13;
/// Maximum number of rows.
const MAX_ROWS: usize = 10_000_000;
/// Rows more than this many seconds apart are hardly in seconds, if the column does not say so.
const USUAL_STEP_S: f64 = 2.0;
/// Seconds between rows from which on the rates say little of what a link does.
const COARSE_S: f64 = 0.5;
/// A gap between rows is worth a note if it is longer than this many seconds and than this many usual steps.
const GAP_S: f64 = 5.0;
const GAP_STEPS: f64 = 5.0;

/// The time that a row's rate or amount of data covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// From the previous row's time to the row's.
    SincePrevious,
    /// From the row's time to the next row's.
    UntilNext,
    /// From the start of a counter to the row's time; amounts only.
    SinceStart,
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
    /// The time that a row covers. By default, a rate holds until the next row, an amount of data came since the previous
    /// row, and one whose column is called a total came since the start.
    pub covers: Option<Covers>,
}

/// Reads a table of times and rates. The first line names the columns, or columns are selected by number; values are
/// separated by commas, semicolons, tabs or blanks. Times are numbers or dates. The trace covers `length` seconds from
/// `begin` seconds after the first line. The notes say what was assumed and left out.
///
/// # Errors
/// [`Error::Line`] for a line without a time, a rate below zero or above 10 Tbit/s, and decreasing times;
/// [`Error::File`] if columns are not found or their units not known, or nothing passes; [`Error::Io`].
pub fn rates(from: impl Read, columns: &Columns, begin: f64, length: Option<f64>) -> Result<Noted<Trace>, Error> {
    let text = text(from)?;
    let mut table = Table::new(&text)?;
    let mut notes = Vec::new();
    let selected = Selected::new(&table, columns)?;
    if !table.has_names() {
        notes.push("the file has no header: its first line is data".to_owned());
    }
    let rows = Rows::read(&mut table, &selected, columns, &mut notes)?;
    drop(table);
    drop(text);
    let covers = selected.covers(columns, &rows)?;
    selected.tell(covers, columns, &mut notes);
    let mut sum = Opportunities::new(begin, length);
    let end = rows.pass(&mut sum, selected.unit, covers, &mut notes)?;
    if rows.step >= COARSE_S {
        let what = "the trace is smooth within that time, which no cell is: short queues and delays are those of a constant rate";
        notes.push(format!("the rows are {} s apart: {what}", short(rows.step)));
    }
    Ok(Noted { value: sum.finish(end)?, notes })
}

/// Formats a number of seconds.
fn short(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The columns of a table.
struct Selected {
    time: usize,
    rate: usize,
    time_name: String,
    rate_name: String,
    unit: Unit,
    is_total: bool,
    /// What the column says of its unit.
    time_unit: TimeName,
}

impl Selected {
    fn new(table: &Table<'_>, columns: &Columns) -> Result<Selected, Error> {
        if !table.has_names() && columns.time.is_none() && columns.rate.is_none() && table.width() != 2 {
            let what = "the file has no header: select columns by number, such as --time 1 --rate 2 --unit mbps";
            return Err(Error::File(what.to_owned()));
        }
        let time = time_column(table, columns.time.as_deref())?;
        let time_unit = table.names.get(time).map_or(TimeName::Bare, |name| units::time(name));
        let (rate, unit, is_total) = rate_column(table, columns, time)?;
        let (time_name, rate_name) = (table.shown(time), table.shown(rate));
        Ok(Selected { time, rate, time_name, rate_name, unit, is_total, time_unit })
    }

    /// What a row covers.
    fn covers(&self, columns: &Columns, rows: &Rows) -> Result<Covers, Error> {
        if self.unit.is_rate {
            return match columns.covers {
                Some(Covers::SinceStart) => {
                    Err(Error::File(format!("column {} has rates, which do not grow since a start", self.rate_name)))
                }
                covers => Ok(covers.unwrap_or(Covers::UntilNext)),
            };
        }
        match columns.covers {
            Some(covers) => Ok(covers),
            None if self.is_total => Ok(Covers::SinceStart),
            None if rows.only_grows() => Err(Error::File(format!(
                "the values of column {} only grow: say whether they are sums since the start (--covers since-start), or \
                 came since the previous row (since-previous), or until the next one (until-next)",
                self.rate_name
            ))),
            None => Ok(Covers::SincePrevious),
        }
    }

    /// Says what a row covers, if nobody told.
    fn tell(&self, covers: Covers, columns: &Columns, notes: &mut Vec<String>) {
        if columns.covers.is_some() || self.unit.is_rate {
            return;
        }
        let what = match covers {
            Covers::SincePrevious => {
                "to have come since the previous row; otherwise, give --covers until-next or since-start"
            }
            _ => "to be sums since the start; otherwise, give --covers since-previous or until-next",
        };
        notes.push(format!("the amounts in column {} are assumed {what}", self.rate_name));
    }
}

/// Returns the column of times.
pub(crate) fn time_column(table: &Table<'_>, selected: Option<&str>) -> Result<usize, Error> {
    if let Some(name) = selected {
        return table.column(name);
    }
    if !table.has_names() {
        return Ok(0);
    }
    let found: Vec<usize> = (0..table.width()).filter(|&column| units::is_time(&table.names[column])).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(Error::File(format!(
            "no column has a name for a time; select one of {} with --time",
            table.all_names()
        ))),
        _ => Err(choose(
            "several columns may be the time: select one with --time",
            found.iter().map(|&column| shown(table.names[column].as_bytes())).collect(),
        )),
    }
}

/// Returns the column of rates, its unit, and whether it is a sum since the start.
fn rate_column(table: &Table<'_>, columns: &Columns, time: usize) -> Result<(usize, Unit, bool), Error> {
    let named = |column: usize| table.names.get(column).and_then(|name| units::rate(name));
    let column = match &columns.rate {
        Some(name) => table.column(name)?,
        None => {
            let found: Vec<usize> = (0..table.width()).filter(|&i| i != time && named(i).is_some()).collect();
            match found[..] {
                [one] => one,
                [] if table.width() == 2 && columns.unit.is_some() => 1 - time.min(1),
                [] if table.has_names() => {
                    let of = table.all_names();
                    return Err(Error::File(format!(
                        "no column has a name for a rate; select one of {of} with --rate"
                    )));
                }
                [] => {
                    let what =
                        "the file has no header: select the column of rates by number, such as --rate 2 --unit mbps";
                    return Err(Error::File(what.to_owned()));
                }
                _ => {
                    let of = found.iter().map(|&i| shown(table.names[i].as_bytes())).collect();
                    return Err(choose("several columns may be the rate: select one with --rate", of));
                }
            }
        }
    };
    let named = named(column);
    let unit = columns.unit.or_else(|| named?.unit).ok_or_else(|| {
        let valid = Unit::VALID;
        Error::File(format!("the unit of column {} is unknown: set it with --unit ({valid})", table.shown(column)))
    })?;
    Ok((column, unit, named.is_some_and(|named| named.is_total)))
}

fn no_time_unit(column: &str) -> String {
    format!("the unit of the times in column {column} is unknown: set it with --time-unit (s, ms, us or ns)")
}

/// The rows of a table: times in seconds since the first, and values.
struct Rows {
    lines: Vec<u32>,
    times: Vec<f64>,
    values: Vec<f64>,
    /// The usual time between rows, in seconds; 0 if there is none.
    step: f64,
}

impl Rows {
    fn read(
        table: &mut Table<'_>,
        selected: &Selected,
        columns: &Columns,
        notes: &mut Vec<String>,
    ) -> Result<Rows, Error> {
        let mut rows = Rows { lines: Vec::new(), times: Vec::new(), values: Vec::new(), step: 0.0 };
        let (mut dates, mut missing) = (0u64, 0u64);
        let mut record = ByteRecord::new();
        while let Some(line) = table.next(&mut record)? {
            let cell = |column: usize| {
                record.get(column).ok_or_else(|| Error::line(line, format!("has no column {}", column + 1)))
            };
            let (time, value) = (cell(selected.time)?, cell(selected.rate)?);
            if is_missing(time) || is_missing(value) {
                missing += 1;
                continue;
            }
            let unread =
                |what: &str, cell: &[u8]| Error::line(line, format!("the {what} `{}` is not a number", shown(cell)));
            let moment = clock::moment(time).ok_or_else(|| {
                let valid = "a number, nor a date such as 2024-01-30T01:00:00Z or 2024.01.30_01.00.00";
                Error::line(line, format!("the time `{}` is neither {valid}", shown(time)))
            })?;
            let value = number(value).ok_or_else(|| unread("rate", value))?;
            if value < 0.0 || selected.unit.is_rate && value * selected.unit.bits > MAX_RATE {
                return Err(Error::line(line, format!("the rate {value} must be from 0 to 10 Tbit/s")));
            }
            let at = match moment {
                Moment::Number(at) => at,
                Moment::Date(at) => {
                    dates += 1;
                    at
                }
            };
            if dates > 0 && dates != rows.times.len() as u64 + 1 {
                return Err(Error::line(line, "a column has either numbers or dates for times"));
            }
            if rows.times.len() >= MAX_ROWS {
                return Err(Error::File(format!("more than {MAX_ROWS} rows: split the file")));
            }
            rows.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
            rows.times.push(at);
            rows.values.push(value);
        }
        if rows.times.is_empty() {
            let what = if missing > 0 { "all its rows lack the time or the rate" } else { "no lines after the header" };
            return Err(Error::File(what.to_owned()));
        }
        if missing > 0 {
            notes.push(format!("{missing} rows without a time or a rate are left out"));
        }
        let seconds = if dates > 0 { 1.0 } else { rows.unit(selected, columns, notes)? };
        rows.since_first(seconds)?;
        rows.spread(notes);
        Ok(rows)
    }

    /// Returns the seconds in a unit of time.
    fn unit(&self, selected: &Selected, columns: &Columns, notes: &mut Vec<String>) -> Result<f64, Error> {
        let first = self.times[0];
        let known = match selected.time_unit {
            TimeName::Known(seconds) => Some(seconds),
            TimeName::Bare | TimeName::Unknown => None,
        };
        if let Some(seconds) = columns.seconds.or(known) {
            if first * seconds > clock::LATEST {
                let what = format!("the time {first} is in the year 2099 or later");
                let of = if columns.seconds.is_some() { "--time-unit" } else { "the unit of its name" };
                return Err(Error::line(
                    u64::from(self.lines[0]),
                    format!("{what} by {of}: set --time-unit (s, ms, us or ns)"),
                ));
            }
            return Ok(seconds);
        }
        if selected.time_unit == TimeName::Unknown {
            return Err(Error::File(no_time_unit(&selected.time_name)));
        }
        if let Some(seconds) = clock::epoch(first) {
            let unit = if seconds == 1.0 {
                "s"
            } else if seconds == 1e-3 {
                "ms"
            } else if seconds == 1e-6 {
                "us"
            } else {
                "ns"
            };
            notes.push(format!("the times in column {} are {unit} since 1970, by their size", selected.time_name));
            return Ok(seconds);
        }
        let step = usual_step(&self.times);
        if step > USUAL_STEP_S || first > clock::LATEST {
            return Err(Error::File(no_time_unit(&selected.time_name)));
        }
        notes.push(format!("the times in column {} are assumed to be in seconds (--time-unit)", selected.time_name));
        Ok(1.0)
    }

    /// Makes times seconds since the first row.
    fn since_first(&mut self, seconds: f64) -> Result<(), Error> {
        let (first, mut before) = (self.times[0], 0.0);
        for (at, line) in self.times.iter_mut().zip(&self.lines) {
            let line = u64::from(*line);
            *at = (*at - first) * seconds;
            if !(0.0..=MAX_SECONDS).contains(at) {
                let what = if *at < 0.0 {
                    "is earlier than the first line"
                } else {
                    "is more than 49 days after the first line"
                };
                return Err(Error::line(line, what));
            }
            if *at < before {
                return Err(Error::line(line, "is earlier than the previous line: times must not decrease"));
            }
            before = *at;
        }
        self.step = usual_step(&self.times);
        Ok(())
    }

    /// Spreads rows of the same time evenly up to the next, but over a second at most: loggers write several lines in a
    /// second with that second as their time.
    fn spread(&mut self, notes: &mut Vec<String>) {
        let (mut from, mut count) = (0, 0u64);
        while from < self.times.len() {
            let at = self.times[from];
            let same = self.times[from..].iter().take_while(|&&other| other == at).count();
            if same > 1 {
                let usual = if self.step > 0.0 { self.step } else { 1.0 };
                let width = self.times.get(from + same).map_or(usual, |next| next - at).min(1.0);
                for (number, time) in self.times[from..from + same].iter_mut().enumerate() {
                    *time = at + width * number as f64 / same as f64;
                }
                count += same as u64;
            }
            from += same;
        }
        if count > 0 {
            notes.push(format!("{count} rows have the time of another, and are spread evenly up to the next time, over a second at most"));
        }
    }

    /// Whether values never decrease and most grow, as those of a counter do.
    fn only_grows(&self) -> bool {
        let steps = self.values.len().saturating_sub(1);
        let grown = self.values.windows(2).filter(|two| two[1] > two[0]).count();
        steps >= 2 && 2 * grown > steps && self.values.windows(2).all(|two| two[1] >= two[0])
    }

    /// Passes what the rows carry; returns the end of the recording in seconds.
    fn pass(&self, sum: &mut Opportunities, unit: Unit, covers: Covers, notes: &mut Vec<String>) -> Result<f64, Error> {
        let last = self.times.len() - 1;
        let usual = if self.step > 0.0 { self.step } else { 1.0 };
        let mut flow = |value: f64, from: f64, to: f64| {
            let bytes_per_s = value * unit.bits / 8.0 / if unit.is_rate { 1.0 } else { to - from };
            if bytes_per_s.is_finite() { sum.flow(bytes_per_s, from, to) } else { sum.add(to, value * unit.bits / 8.0) }
        };
        match covers {
            Covers::UntilNext => {
                for (at, value) in self.values.iter().enumerate() {
                    let to = if at < last { self.times[at + 1] } else { self.times[last] + usual };
                    flow(*value, self.times[at], to)?;
                }
                self.note_gaps("the rate holds over them", notes);
                Ok(self.times[last] + usual)
            }
            Covers::SincePrevious | Covers::SinceStart => {
                if last == 0 {
                    let what = "has one row only: what it covers began at a previous one";
                    return Err(Error::File(what.to_owned()));
                }
                let is_sum = covers == Covers::SinceStart;
                for at in 1..=last {
                    let value = self.values[at] - if is_sum { self.values[at - 1] } else { 0.0 };
                    if value < 0.0 {
                        let what = "the sum since the start is less than in the previous line: the counter began anew; import the parts singly";
                        return Err(Error::line(u64::from(self.lines[at]), what));
                    }
                    flow(value, self.times[at - 1], self.times[at])?;
                }
                if self.values[0] > 0.0 && !is_sum {
                    notes.push("the value of the first row is left out: it covers a time before it".to_owned());
                }
                self.note_gaps("what came in them is spread evenly", notes);
                Ok(self.times[last])
            }
        }
    }

    fn note_gaps(&self, what: &str, notes: &mut Vec<String>) {
        let gaps = self.times.windows(2).map(|two| (two[1] - two[0], two[0]));
        let long: Vec<(f64, f64)> = gaps.filter(|gap| gap.0 > GAP_S && gap.0 > GAP_STEPS * self.step).collect();
        if let Some(longest) = long.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) {
            let (count, seconds, at) = (long.len(), short(longest.0), short(longest.1));
            notes.push(format!("{count} long gaps between rows, the longest of {seconds} s at {at} s: {what}"));
        }
    }
}

/// Returns the median of the steps that are not zero; 0 if there is none.
fn usual_step(times: &[f64]) -> f64 {
    let mut steps: Vec<f64> = times.windows(2).map(|two| two[1] - two[0]).filter(|step| *step > 0.0).collect();
    if steps.is_empty() {
        return 0.0;
    }
    let middle = steps.len() / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1
}
