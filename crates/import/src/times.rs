//! The times of a table's rows, in seconds since the first.

use crate::clock::{self, Moment};
use crate::table::Table;
use crate::units::{self, TimeName};
use crate::{Error, MAX_SECONDS, choose, shown};
use ::units::stats::upper_median;

/// Maximum number of rows.
const MAX_ROWS: usize = 10_000_000;
/// Rows more than this many seconds apart are hardly in seconds, if the column does not say so; and not those of a logger
/// that writes one each second.
const USUAL_STEP_S: f64 = 2.0;
/// A gap between rows is long if it is longer than this many seconds and than this many usual steps.
const GAP_S: f64 = 5.0;
const GAP_STEPS: f64 = 5.0;
/// Steps from which on a pace can be told.
const MANY_STEPS: usize = 20;
/// By how much of the usual step others differ from it at a steady pace; a tenth is a choice.
const PACE: f64 = 0.1;
/// By how many seconds the clock of a logger of whole seconds may go back: it was set.
const SET_BACK_S: f64 = 2.0;

/// A column of times.
pub(crate) struct TimeColumn {
    pub(crate) index: usize,
    /// Its name in messages.
    pub(crate) name: String,
    /// What its name says of its unit.
    unit: TimeName,
    /// Seconds in a unit, if the user says it.
    given: Option<f64>,
}

impl TimeColumn {
    /// Returns the column with this name or number, or the one that is called a time.
    pub(crate) fn of(table: &Table<'_>, selected: Option<&str>, given: Option<f64>) -> Result<TimeColumn, Error> {
        let index = index(table, selected)?;
        let unit = table.names.get(index).map_or(TimeName::Bare, |name| units::time(name));
        Ok(TimeColumn { index, name: table.shown(index), unit, given })
    }

    /// Returns the seconds in a unit of the numbers of a column.
    fn seconds(&self, rows: &Raw, notes: &mut Vec<String>) -> Result<f64, Error> {
        let unknown = || {
            let what = "is unknown: set it with --time-unit (s, ms, us or ns)";
            Error::File(format!("the unit of the times in column {} {what}", self.name))
        };
        let first = rows.numbers[0];
        let known = match self.unit {
            TimeName::Known(seconds) => Some(seconds),
            TimeName::Bare | TimeName::Unknown => None,
        };
        if let Some(seconds) = self.given.or(known) {
            if first * seconds > clock::LATEST {
                let of = if self.given.is_some() { "--time-unit" } else { "the unit of its name" };
                let what = format!("the time {first} is in the year 2099 or later by {of}");
                let line = u64::from(rows.lines[0]);
                return Err(Error::line(line, format!("{what}: set --time-unit (s, ms, us or ns)")));
            }
            return Ok(seconds);
        }
        if self.unit == TimeName::Unknown {
            return Err(unknown());
        }
        if let Some((seconds, unit)) = clock::epoch(first) {
            notes.push(format!("the times in column {} are {unit} since 1970, by their size", self.name));
            return Ok(seconds);
        }
        if usual_step(&rows.numbers) > USUAL_STEP_S || first > clock::LATEST {
            return Err(unknown());
        }
        notes.push(format!("the times in column {} are assumed to be in seconds (--time-unit)", self.name));
        Ok(1.0)
    }
}

fn index(table: &Table<'_>, selected: Option<&str>) -> Result<usize, Error> {
    if let Some(name) = selected {
        return table.column(name);
    }
    if !table.has_names() {
        return Ok(0);
    }
    let found: Vec<usize> = (0..table.width()).filter(|&column| units::is_time(&table.names[column])).collect();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let names = table.all_names();
            let what = "no column has a name for a time with a known unit";
            Err(Error::File(format!(
                "{what}; select one of {names} with --time, and its unit with --time-unit (s, ms, us or ns)"
            )))
        }
        _ => Err(choose(
            "several columns may be the time: select one with --time",
            found.iter().map(|&column| shown(table.names[column].as_bytes())).collect(),
        )),
    }
}

/// Keeps what is true in `keep`, which has as many.
pub(crate) fn retain<T>(all: &mut Vec<T>, keep: &[bool]) {
    let mut keep = keep.iter();
    all.retain(|_| keep.next() == Some(&true));
}

/// The times of rows as they are in a file.
#[derive(Default)]
pub(crate) struct Raw {
    pub(crate) lines: Vec<u32>,
    /// Numbers in the column's unit, or seconds since 1970.
    numbers: Vec<f64>,
    are_dates: bool,
}

impl Raw {
    pub(crate) fn push(&mut self, line: u64, cell: &[u8]) -> Result<(), Error> {
        let moment = clock::moment(cell).ok_or_else(|| {
            let valid = "a number, nor a date such as 2024-01-30T01:00:00Z or 2024.01.30_01.00.00";
            Error::line(line, format!("the time `{}` is neither {valid}", shown(cell)))
        })?;
        let (at, is_date) = match moment {
            Moment::Number(at) => (at, false),
            Moment::Date(at) => (at, true),
        };
        if self.numbers.is_empty() {
            self.are_dates = is_date;
        }
        if is_date != self.are_dates {
            return Err(Error::line(line, "a column has either numbers or dates for times"));
        }
        if self.numbers.len() >= MAX_ROWS {
            return Err(Error::File(format!("more than {MAX_ROWS} rows: split the file")));
        }
        self.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
        self.numbers.push(at);
        Ok(())
    }

    /// Keeps the rows that are true in `keep`.
    pub(crate) fn retain(&mut self, keep: &[bool]) {
        retain(&mut self.lines, keep);
        retain(&mut self.numbers, keep);
    }

    /// Whether a row has the time of the one before.
    pub(crate) fn is_at_once(&self, at: usize) -> bool {
        self.numbers[at] == self.numbers[at - 1]
    }

    /// Whether most steps between times are about the same.
    pub(crate) fn has_a_pace(&self) -> bool {
        let usual = usual_step(&self.numbers);
        let steps = || self.numbers.windows(2).map(|two| two[1] - two[0]).filter(|step| *step > 0.0);
        2 * steps().filter(|step| (step - usual).abs() <= PACE * usual).count() > steps().count()
    }

    /// Whether the times may be those of a logger of whole seconds, which writes several rows with one time.
    pub(crate) fn are_of_logger(&self) -> bool {
        self.numbers.iter().all(|number| is_whole(*number)) && usual_step(&self.numbers) <= USUAL_STEP_S
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the times in seconds since the first row; there must be one.
    pub(crate) fn times(mut self, column: &TimeColumn, notes: &mut Vec<String>) -> Result<Times, Error> {
        let unit = if self.are_dates { 1.0 } else { column.seconds(&self, notes)? };
        let is_of_clock = self.are_dates || clock::epoch(self.numbers[0]).is_some();
        let first = self.numbers[0];
        let is_whole = self.numbers.iter().all(|number| is_whole(number * unit));
        let is_logger = is_whole && usual_step(&self.numbers) * unit <= USUAL_STEP_S;
        let (mut before, mut back) = (0.0, 0u64);
        for (at, line) in self.numbers.iter_mut().zip(&self.lines) {
            let line = u64::from(*line);
            *at = (*at - first) * unit;
            if *at < before && is_logger && before - *at <= SET_BACK_S {
                *at = before;
                back += 1;
            }
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
        if back > 0 {
            notes
                .push(format!("{back} rows are up to {SET_BACK_S} s earlier than the previous one, and have its time"));
        }
        let step = usual_step(&self.numbers);
        let mut times = Times { lines: self.lines, seconds: self.numbers, step };
        times.spread(is_whole, is_of_clock, notes);
        Ok(times)
    }
}

/// Whether a number of seconds is a whole one.
fn is_whole(seconds: f64) -> bool {
    (seconds - libm::round(seconds)).abs() < 1e-6
}

/// The times of rows.
pub(crate) struct Times {
    pub(crate) lines: Vec<u32>,
    /// Seconds since the first row; they do not decrease.
    pub(crate) seconds: Vec<f64>,
    /// The usual time between rows, in seconds; 0 if there is none.
    pub(crate) step: f64,
}

impl Times {
    /// For how long the last row holds.
    pub(crate) fn usual(&self) -> f64 {
        if self.step > 0.0 { self.step } else { 1.0 }
    }

    /// Spreads the rows of a logger evenly that has several in a second, all with that second as their time. Such loggers
    /// write at a steady pace (G-NetTrack: a row in 1.08 s, and some more), of which whole seconds show only the mean: with
    /// these times, a row before a second without one would count twice.
    fn spread(&mut self, is_whole: bool, is_of_clock: bool, notes: &mut Vec<String>) {
        let count = |is: &dyn Fn(f64) -> bool| self.seconds.windows(2).filter(|two| is(two[1] - two[0])).count();
        let (same, usual) = (count(&|step| step == 0.0), count(&|step| step == self.step));
        let is_logger = is_whole && self.step > 0.0 && self.step <= USUAL_STEP_S;
        let steps = self.seconds.len() - 1;
        // A pace of a little more than a second leaves out a second now and then.
        let leaves_out = is_logger && is_of_clock && steps >= MANY_STEPS && 2 * usual > steps && usual < steps;
        if same == 0 && !leaves_out {
            return;
        }
        if !is_logger {
            notes.push(format!("{same} rows have the time of the next, and last for no time"));
            return;
        }
        let (mut from, mut most) = (0, 0.0_f64);
        while from < self.seconds.len() {
            let rest = &self.seconds[from..];
            let count = 1 + rest.windows(2).take_while(|two| !self.is_gap(two[1] - two[0])).count();
            let (begin, end) = (rest[0], rest[count - 1] + 1.0);
            let width = (end - begin) / count as f64;
            for (number, at) in self.seconds[from..from + count].iter_mut().enumerate() {
                let even = begin + width * number as f64;
                most = most.max((even - *at).abs());
                *at = even;
            }
            from += count;
        }
        self.step = usual_step(&self.seconds);
        let what =
            "rows have the time of another, in whole seconds: all rows are spread evenly, which moves them by up to";
        notes.push(format!("{same} {what} {most:.1} s"));
    }

    fn is_gap(&self, step: f64) -> bool {
        step > GAP_S && step > GAP_STEPS * self.step
    }

    /// Says how many long gaps there are.
    pub(crate) fn note_gaps(&self, what: &str, notes: &mut Vec<String>) {
        let gaps = self.seconds.windows(2).map(|two| (two[1] - two[0], two[0])).filter(|gap| self.is_gap(gap.0));
        let (count, longest) = gaps.fold((0, (0.0, 0.0)), |(count, longest): (u32, (f64, f64)), gap| {
            (count + 1, if gap.0 > longest.0 { gap } else { longest })
        });
        if count > 0 {
            let (seconds, at) = (short(longest.0), short(longest.1));
            notes.push(format!("{count} long gaps between rows, the longest of {seconds} s at {at} s: {what}"));
        }
    }
}

/// Formats a number of seconds.
pub(crate) fn short(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the median of the steps that are not zero; 0 if there is none.
fn usual_step(times: &[f64]) -> f64 {
    let mut steps: Vec<f64> = times.windows(2).map(|two| two[1] - two[0]).filter(|step| *step > 0.0).collect();
    upper_median(&mut steps).unwrap_or(0.0)
}
