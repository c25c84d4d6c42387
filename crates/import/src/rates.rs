//! Tables of rates, or of amounts of data, over time.

use std::io::Read;

use csv::ByteRecord;
use link::trace::Trace;

use crate::clock::number;
use crate::table::{Table, is_missing};
use crate::times::{Raw, TimeColumn, Times, short};
use crate::units::{self, Unit};
use crate::{Error, Noted, Opportunities, choose, shown, text};

/// The highest accepted rate, in bit/s.
pub(crate) const MAX_RATE: f64 = 1e13;
/// Seconds between rows from which on the rates say little of what a link does.
const COARSE_S: f64 = 0.5;
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
    /// The standard deviation of the natural logarithm of a rate within a row, which no row tells ([`USUAL`]): a random rate with
    /// the same amount of data in each row. Without it, rates are steady.
    ///
    /// [`USUAL`]: crate::texture::USUAL
    pub texture: Option<f64>,
}

/// A form of tables that a set or a tool has, whose names, if it has any, do not tell all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Traces of Pensieve, and others for it: seconds and Mbit/s.
    Pensieve,
    /// The 4G logs of Ghent and the HSDPA logs of Simula: time since 1970, milliseconds since the start, latitude, longitude,
    /// bytes since the previous row, milliseconds since the previous row.
    Ghent,
    /// G-NetTrack's logs, and the sets uccmisl/4Gdataset and 5Gdataset: `Timestamp` and `DL_bitrate` in kbit/s.
    GNetTrack,
    /// `Lumos5G`: a row a second, with the number `seq_num`, and `Throughput` in Mbit/s.
    Lumos5g,
}

impl Format {
    /// Adds what the format says to the columns that were selected.
    pub fn complete(self, mut columns: Columns) -> Columns {
        let (time, rate, unit, seconds, covers) = match self {
            Format::Pensieve => ("1", "2", Unit::MBPS, Some(1.0), Covers::UntilNext),
            Format::Ghent => ("2", "5", Unit::BYTES, Some(1e-3), Covers::SincePrevious),
            Format::GNetTrack => ("Timestamp", "DL_bitrate", Unit::KBPS, None, Covers::UntilNext),
            Format::Lumos5g => ("seq_num", "Throughput", Unit::MBPS, Some(1.0), Covers::UntilNext),
        };
        columns.time.get_or_insert_with(|| time.to_owned());
        columns.rate.get_or_insert_with(|| rate.to_owned());
        columns.unit.get_or_insert(unit);
        columns.covers.get_or_insert(covers);
        columns.seconds = columns.seconds.or(seconds);
        columns
    }
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
    let rows = Rows::read(&mut table, &selected, &mut notes)?;
    drop(table);
    drop(text);
    let covers = selected.covers(columns, &rows)?;
    selected.tell(covers, columns, &mut notes);
    let mut sum = Opportunities::new(begin, length).vary(columns.texture, 0);
    let end = rows.pass(&mut sum, selected.unit, covers, &mut notes)?;
    notes.extend(smooth(rows.times.step, columns.texture));
    Ok(Noted { value: sum.finish(end)?, notes })
}

/// What to say of rates that are so many seconds apart, if they are far.
pub(crate) fn smooth(step: f64, texture: Option<f64>) -> Option<String> {
    let what = match texture {
        None => {
            "the trace is smooth within that time, which no cell is: short queues and delays are those of a constant rate (a \
             texture makes it vary at random)"
        }
        Some(_) => "the trace varies within that time at random, which was not recorded",
    };
    (step >= COARSE_S).then(|| format!("the rows are {} s apart: {what}", short(step)))
}

/// The columns of a table.
struct Selected {
    time: TimeColumn,
    rate: usize,
    rate_name: String,
    unit: Unit,
    is_total: bool,
}

impl Selected {
    fn new(table: &Table<'_>, columns: &Columns) -> Result<Selected, Error> {
        if !table.has_names() && columns.time.is_none() && columns.rate.is_none() && table.width() != 2 {
            let what = "the file has no header: select columns by number, such as --time 1 --rate 2 --unit mbps";
            return Err(Error::File(what.to_owned()));
        }
        let time = TimeColumn::of(table, columns.time.as_deref(), columns.seconds)?;
        let (rate, unit, is_total) = rate_column(table, columns, time.index)?;
        Ok(Selected { time, rate, rate_name: table.shown(rate), unit, is_total })
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
                    let (of, valid) = (table.all_names(), Unit::VALID);
                    let what = "no column has a name with a known unit of a rate";
                    return Err(Error::File(format!(
                        "{what}; select one of {of} with --rate, and its unit with --unit ({valid})"
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

/// The rows of a table.
struct Rows {
    times: Times,
    values: Vec<f64>,
}

impl Rows {
    fn read(table: &mut Table<'_>, selected: &Selected, notes: &mut Vec<String>) -> Result<Rows, Error> {
        let (mut times, mut values, mut missing) = (Raw::default(), Vec::new(), 0u64);
        let mut record = ByteRecord::new();
        while let Some(line) = table.next(&mut record)? {
            let cell = |column: usize| {
                record.get(column).ok_or_else(|| Error::line(line, format!("has no column {}", column + 1)))
            };
            let (time, value) = (cell(selected.time.index)?, cell(selected.rate)?);
            if is_missing(time) || is_missing(value) {
                missing += 1;
                continue;
            }
            times.push(line, time)?;
            let value = number(value)
                .ok_or_else(|| Error::line(line, format!("the rate `{}` is not a number", shown(value))))?;
            if value < 0.0 || selected.unit.is_rate && value * selected.unit.bits > MAX_RATE {
                return Err(Error::line(line, format!("the rate {value} must be from 0 to 10 Tbit/s")));
            }
            values.push(value);
        }
        if times.is_empty() {
            let what = if missing > 0 { "all its rows lack the time or the rate" } else { "no lines after the header" };
            return Err(Error::File(what.to_owned()));
        }
        if missing > 0 {
            notes.push(format!("{missing} rows without a time or a rate are left out"));
        }
        Ok(Rows { times: times.times(&selected.time, notes)?, values })
    }

    /// Whether values never decrease and most grow, as those of a counter do.
    fn only_grows(&self) -> bool {
        let steps = self.values.len().saturating_sub(1);
        let grown = self.values.windows(2).filter(|two| two[1] > two[0]).count();
        steps >= 2 && 2 * grown > steps && self.values.windows(2).all(|two| two[1] >= two[0])
    }

    /// Passes what the rows carry; returns the end of the recording in seconds.
    fn pass(&self, sum: &mut Opportunities, unit: Unit, covers: Covers, notes: &mut Vec<String>) -> Result<f64, Error> {
        let (times, values) = (&self.times.seconds, &self.values);
        let last = times.len() - 1;
        if covers == Covers::UntilNext {
            for (at, value) in values.iter().enumerate() {
                let to = if at < last { times[at + 1] } else { times[last] + self.times.usual() };
                flow(sum, unit, *value, times[at], to)?;
            }
            self.times.note_gaps("the value before it holds for all of it", notes);
            return Ok(times[last] + self.times.usual());
        }
        if last == 0 {
            let what = "has one row only: what it covers began at a previous one";
            return Err(Error::File(what.to_owned()));
        }
        let is_sum = covers == Covers::SinceStart;
        for at in 1..=last {
            let value = values[at] - if is_sum { values[at - 1] } else { 0.0 };
            if value < 0.0 {
                let what = "the sum since the start is less than in the previous line: the counter began anew; import the parts singly";
                return Err(Error::line(u64::from(self.times.lines[at]), what));
            }
            flow(sum, unit, value, times[at - 1], times[at])?;
        }
        if values[0] > 0.0 && !is_sum {
            notes.push("the value of the first row is left out: it covers a time before it".to_owned());
        }
        self.times.note_gaps("the value after it covers all of it", notes);
        Ok(times[last])
    }
}

/// Passes what a row carries from one time to another. An amount in no time passes at once.
pub(crate) fn flow(sum: &mut Opportunities, unit: Unit, value: f64, from: f64, to: f64) -> Result<(), Error> {
    let bytes = value * unit.bits / 8.0;
    match (unit.is_rate, to > from) {
        (true, _) => sum.flow(bytes, from, to),
        (false, true) => sum.flow(bytes / (to - from), from, to),
        (false, false) => sum.add(to, bytes),
    }
}
