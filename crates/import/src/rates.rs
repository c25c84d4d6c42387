//! Tables of rates, or of amounts of data, over time.

use std::collections::BTreeMap;
use std::io::Read;

use csv::ByteRecord;
use link::trace::Trace;

use crate::clock::number;
use crate::select::{Filter, Kind, RUNS, Where, plain};
use crate::table::{Table, is_missing, is_sentinel, sentinels};
use crate::times::{Raw, TimeColumn, Times, retain, short};
use crate::units::{self, Named, Unit};
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
    /// The run whose rows count, of a table of several.
    pub run: Option<String>,
    /// The column of runs. Default: none, or, if a run is selected, one with such a name.
    pub runs: Option<String>,
    /// The rows that count: those that meet all conditions.
    pub only: Vec<Where>,
}

/// What rows of one trace are of one of.
const KINDS: [Kind; 5] = [Kind::Operator, Kind::Direction, Kind::Run, Kind::Device, Kind::InCell];

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
    /// `Lumos5G`: a row a second, with the number `seq_num`, and `Throughput` in Mbit/s; of several runs, if it has `run_num`.
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
        if self == Format::Lumos5g {
            columns.runs.get_or_insert_with(|| LUMOS_RUNS.to_owned());
        }
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
    notes.extend(table.note());
    let is_sum = match columns.covers {
        Some(covers) => covers == Covers::SinceStart,
        None => selected.is_total,
    };
    let rows = Rows::read(&mut table, &selected, (columns, is_sum), &mut notes)?;
    drop(table);
    drop(text);
    let counter = counter(&rows.values, selected.unit, is_sum);
    let covers = selected.covers(columns, &counter)?;
    selected.tell(covers, columns, &counter, &mut notes);
    let mut sum = Opportunities::new(begin, length).vary(columns.texture, 0);
    let end = rows.pass(&mut sum, selected.unit, (covers, counter), &mut notes)?;
    notes.extend(smooth(rows.times.step, columns.texture));
    Ok(Noted { value: sum.finish(end)?, notes })
}

/// What to say of rates that are so many seconds apart, if they are far.
pub(crate) fn smooth(step: f64, texture: Option<f64>) -> Option<String> {
    // A spread of 0 is none.
    let what = match texture.filter(|spread| *spread > 0.0) {
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
    /// What to say of the unit.
    unit_note: Option<String>,
    /// The column of runs.
    runs: Option<usize>,
}

impl Selected {
    fn new(table: &Table<'_>, columns: &Columns) -> Result<Selected, Error> {
        if !table.has_names() && columns.time.is_none() && columns.rate.is_none() && table.width() != 2 {
            let what = "the file has no header: select columns by number, such as --time 1 --rate 2 --unit mbps";
            return Err(Error::File(what.to_owned()));
        }
        let time = TimeColumn::of(table, columns.time.as_deref(), columns.seconds)?;
        let (rate, unit, named) = rate_column(table, columns, time.index)?;
        let rate_name = table.shown(rate);
        let unit_note = named.filter(|_| columns.unit.is_none()).and_then(|named| named.note(&rate_name));
        let is_total = named.is_some_and(|named| named.is_total);
        Ok(Selected { time, rate, rate_name, unit, is_total, unit_note, runs: runs_column(table, columns)? })
    }

    /// What a row covers.
    fn covers(&self, columns: &Columns, counter: &Counter) -> Result<Covers, Error> {
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
            None => match counter {
                Counter::No => Ok(Covers::SincePrevious),
                Counter::Wraps { .. } => Ok(Covers::SinceStart),
                Counter::Grows { falls } => {
                    let falls = match falls {
                        0 => "only grow".to_owned(),
                        1 => "grow, but for one fall".to_owned(),
                        falls => format!("grow, but for {falls} falls"),
                    };
                    Err(Error::File(format!(
                        "the values of column {} {falls}: say whether they are sums since the start (--covers since-start), or \
                         came since the previous row (since-previous), or until the next one (until-next)",
                        self.rate_name
                    )))
                }
            },
        }
    }

    /// Says what a row covers, if nobody told, and how a counter wraps.
    fn tell(&self, covers: Covers, columns: &Columns, counter: &Counter, notes: &mut Vec<String>) {
        notes.extend(self.unit_note.clone());
        if self.unit.is_rate {
            return;
        }
        if let (Counter::Wraps { modulus, times }, Covers::SinceStart) = (counter, covers) {
            let bytes = modulus * self.unit.bits / 8.0;
            let (most, of) = if WRAPS.contains(&bytes) { (bytes, "bytes") } else { (*modulus, "of its unit") };
            let (name, bits) = (&self.rate_name, libm::round(libm::log2(most)));
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            notes.push(format!(
                "the counter in column {name} is assumed to have begun anew {often}, after 2^{bits} {of}"
            ));
        }
        if columns.covers.is_some() {
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

/// The column of runs of `Lumos5G`.
const LUMOS_RUNS: &str = "run_num";

/// Returns the column of runs, if there is one and it is needed.
fn runs_column(table: &Table<'_>, columns: &Columns) -> Result<Option<usize>, Error> {
    let find = |is: &dyn Fn(&str) -> bool| table.names.iter().position(|name| is(name));
    match (&columns.runs, &columns.run) {
        // A format's column, which not all of its tables have.
        (Some(name), None) => Ok(find(&|one| one.eq_ignore_ascii_case(name))),
        (Some(name), Some(_)) => table.column(name).map(Some),
        (None, Some(_)) => find(&|one| RUNS.contains(&plain(one).as_str())).map(Some).ok_or_else(|| {
            Error::File(format!("--run: no column is called one of runs; the columns are {}", table.all_names()))
        }),
        (None, None) => Ok(None),
    }
}

/// Returns the column of rates, its unit, and what its name says.
fn rate_column(table: &Table<'_>, columns: &Columns, time: usize) -> Result<(usize, Unit, Option<Named>), Error> {
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
    Ok((column, unit, named))
}

/// Whether a column is that of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counter {
    No,
    /// It grows, but for this many falls.
    Grows {
        falls: usize,
    },
    /// It grows, and begins anew after this many of its unit.
    Wraps {
        modulus: f64,
        times: usize,
    },
}

/// After how many bytes or values counters begin anew.
const WRAPS: [f64; 2] = [2_147_483_648.0, 4_294_967_296.0];
/// A step at which a counter begins anew is at most so many times the largest of the others.
const FAR: f64 = 2.0;
/// From so many steps on, a column that falls in at most one step of this many is one that grows.
const MANY_STEPS: usize = 8;
const RARE: usize = 8;
/// Runs that are told apart.
const MOST_RUNS: usize = 10_000;

/// Says which run was selected of several.
fn one_run(runs: &BTreeMap<String, u64>, selected: Option<&str>, notes: &mut Vec<String>) -> Result<(), Error> {
    let names = || runs.iter().map(|(run, rows)| format!("{run} ({rows} rows)")).collect();
    match selected {
        None if runs.len() > 1 => Err(choose("several runs in the table: select one with --run", names())),
        Some(run) if !runs.contains_key(run) => {
            Err(choose(&format!("no row is of a run `{}`", shown(run.as_bytes())), names()))
        }
        Some(run) if runs.len() > 1 => {
            let (rows, all) = (runs[run], runs.values().sum::<u64>());
            notes.push(format!("{rows} of {all} rows are of the run, and the others are left out"));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Leaves out the rows that are in the table a second time, right behind the first one: of rows at a steady pace, all that have the time of
/// another are the same, and none is there more often. Rows that are the same in a log of packets count as often as they are there.
fn leave_out_copies(times: &mut Raw, values: &mut Vec<f64>, copies: &[bool], notes: &mut Vec<String>) {
    let count = copies.iter().filter(|copy| **copy).count();
    let is_clear = (1..copies.len()).all(|at| copies[at] == times.is_at_once(at) && !(copies[at] && copies[at - 1]));
    if count == 0 || !is_clear || !times.has_a_pace() {
        return;
    }
    let keep: Vec<bool> = copies.iter().map(|copy| !copy).collect();
    times.retain(&keep);
    retain(values, &keep);
    notes.push(format!("{count} rows are the same as the one before, with its time, and count once"));
}

/// Leaves out the rows whose values stand for unknown ones. A counter may have these values by chance, but for those below 0.
fn leave_out_sentinels(
    times: &mut Raw,
    values: &mut Vec<f64>,
    (unit, is_sum): (Unit, bool),
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    if !values.iter().any(|value| is_sentinel(*value)) {
        return Ok(());
    }
    let known: Vec<f64> = values.iter().copied().filter(|value| !is_sentinel(*value)).collect();
    let is_counter = is_sum || matches!(counter(&known, unit, false), Counter::Wraps { .. });
    let is_left_out = |value: f64| is_sentinel(value) && (value < 0.0 || !is_counter);
    let example = values.iter().copied().find(|value| is_left_out(*value));
    let keep: Vec<bool> = values.iter().map(|value| !is_left_out(*value)).collect();
    times.retain(&keep);
    retain(values, &keep);
    if values.is_empty() {
        return Err(Error::File("all its rates or amounts stand for unknown ones, such as -1".to_owned()));
    }
    let count = keep.iter().filter(|keep| !**keep).count() as u64;
    notes.extend(example.map(|example| sentinels(count, example)));
    Ok(())
}

/// Whether the values are those of a counter, as is known if `is_sum`: most grow, and few are less than the one before. If all of
/// these fit a counter that begins anew after 2^31 or 2^32 bytes or values, it does; a step of a quarter of that or more tells only if
/// it is known to be one.
fn counter(values: &[f64], unit: Unit, is_sum: bool) -> Counter {
    let steps = values.len().saturating_sub(1);
    let grown = values.windows(2).filter(|two| two[1] > two[0]).count();
    let falls: Vec<(f64, f64)> = values.windows(2).filter(|two| two[1] < two[0]).map(|two| (two[0], two[1])).collect();
    if unit.is_rate || steps < 2 || grown < 2 * falls.len() {
        return Counter::No;
    }
    let largest = values.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
    let most = values.iter().copied().fold(0.0, f64::max);
    let of_bytes = 8.0 / unit.bits;
    for modulus in WRAPS.into_iter().flat_map(|most| [most, most * of_bytes]) {
        // The step over the end is not far from the others.
        let fits = |&(before, after): &(f64, f64)| after + modulus - before <= FAR * largest;
        let is_clear = is_sum || largest < modulus / 4.0;
        if !falls.is_empty() && most < modulus && is_clear && falls.iter().all(fits) {
            return Counter::Wraps { modulus, times: falls.len() };
        }
    }
    let is_rare = falls.is_empty() || steps >= MANY_STEPS && RARE * falls.len() <= steps;
    if 2 * grown > steps && is_rare { Counter::Grows { falls: falls.len() } } else { Counter::No }
}

/// The rows of a table.
struct Rows {
    times: Times,
    values: Vec<f64>,
}

impl Rows {
    fn read(
        table: &mut Table<'_>,
        selected: &Selected,
        (columns, is_sum): (&Columns, bool),
        notes: &mut Vec<String>,
    ) -> Result<Rows, Error> {
        let (mut times, mut values, mut missing) = (Raw::default(), Vec::new(), 0u64);
        let (mut before, mut copies) = (ByteRecord::new(), Vec::new());
        let mut runs: BTreeMap<String, u64> = BTreeMap::new();
        let taken: Vec<usize> = [selected.time.index, selected.rate].into_iter().chain(selected.runs).collect();
        let mut filter = Filter::new(table, &columns.only, &KINDS, &taken)?;
        let mut record = ByteRecord::new();
        while let Some(line) = table.next(&mut record)? {
            if !filter.keeps(&record) {
                continue;
            }
            let cell = |column: usize| {
                record.get(column).ok_or_else(|| Error::line(line, format!("has no column {}", column + 1)))
            };
            if let Some(column) = selected.runs {
                let run = shown(cell(column)?);
                let is_other = columns.run.as_ref().is_some_and(|selected| *selected != run);
                if runs.len() < MOST_RUNS || runs.contains_key(&run) {
                    *runs.entry(run).or_default() += 1;
                }
                if is_other || columns.run.is_none() && runs.len() > 1 {
                    continue;
                }
            }
            filter.count(&record);
            let (time, value) = (cell(selected.time.index)?, cell(selected.rate)?);
            if is_missing(time) || is_missing(value) {
                missing += 1;
                continue;
            }
            times.push(line, time)?;
            let value = number(value)
                .ok_or_else(|| Error::line(line, format!("the rate `{}` is not a number", shown(value))))?;
            if value < 0.0 && !is_sentinel(value)
                || !is_sentinel(value) && selected.unit.is_rate && value * selected.unit.bits > MAX_RATE
            {
                return Err(Error::line(line, format!("the rate {value} must be from 0 to 10 Tbit/s")));
            }
            values.push(value);
            copies.push(record == before);
            before.clone_from(&record);
        }
        one_run(&runs, columns.run.as_deref(), notes)?;
        filter.finish(Some("--run"), notes)?;
        if times.is_empty() {
            let what = if missing > 0 { "all its rows lack the time or the rate" } else { "no lines after the header" };
            return Err(Error::File(what.to_owned()));
        }
        if missing > 0 {
            notes.push(format!("{missing} rows without a time or a rate are left out"));
        }
        leave_out_copies(&mut times, &mut values, &copies, notes);
        leave_out_sentinels(&mut times, &mut values, (selected.unit, is_sum), notes)?;
        Ok(Rows { times: times.times(&selected.time, notes)?, values })
    }

    /// Passes what the rows carry; returns the end of the recording in seconds.
    fn pass(
        &self,
        sum: &mut Opportunities,
        unit: Unit,
        (covers, counter): (Covers, Counter),
        notes: &mut Vec<String>,
    ) -> Result<f64, Error> {
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
            let mut value = values[at] - if is_sum { values[at - 1] } else { 0.0 };
            if let (Counter::Wraps { modulus, .. }, true) = (&counter, value < 0.0) {
                value += modulus;
            }
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
