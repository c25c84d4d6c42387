//! Drive logs: what a phone wrote of its cells, their powers, its rates and its place, as a timeline, recorded channels and
//! traces.
//!
//! Columns are found by the names that loggers give them (G-NetTrack, the sets uccmisl/4Gdataset and 5Gdataset, `Lumos5G`,
//! Android's `CellInfo`), or are selected. Values outside what a UE can report are missing, as are `-` and empty ones. A row
//! of UMTS or GSM has no received power of LTE or NR: what stands in its column is that of another signal.

mod cells;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;

use channel::recorded::Quantity;
use channel::tables::{RSRP_DBM, RSRQ_DB, SINR_DB};
use csv::ByteRecord;
use link::trace::Trace;

use crate::channel::Channel;
use crate::clock::number;
use crate::select::{self, Filter, Kind as Apart, Where};
use crate::serving::{MARGIN_DB, Serving, channels};
use crate::table::{Table, is_missing, is_sentinel, sentinels};
use crate::times::{Raw, TimeColumn, retain};
use crate::units::{self, Unit};
use crate::{Error, Noted, Opportunities, choose, rates, shown, text};
use cells::{Beside, Technology};

/// Maximum number of rows.
const MAX_ROWS: usize = 2_000_000;

/// Selects columns by their names or numbers. Missing fields are found by the columns' names.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Times.
    pub time: Option<String>,
    /// Seconds per unit of time.
    pub seconds: Option<f64>,
    /// The identity of the serving cell.
    pub cell: Option<String>,
    /// The operator whose rows count, of a log of several; `all` for all of them.
    pub operator: Option<String>,
    /// Its received power (RSRP, SS-RSRP) in dBm.
    pub rsrp: Option<String>,
    /// Its received quality (RSRQ, SS-RSRQ) in dB.
    pub rsrq: Option<String>,
    /// Its SINR in dB.
    pub sinr: Option<String>,
    /// The CQI.
    pub cqi: Option<String>,
    /// The downlink's rate.
    pub downlink: Option<String>,
    /// The uplink's rate.
    pub uplink: Option<String>,
    /// The rates' unit.
    pub unit: Option<Unit>,
    /// The rows that count: those that meet all conditions.
    pub only: Vec<Where>,
}

/// What the rows of one drive are of one of, beside its operator.
const KINDS: [Apart; 3] = [Apart::Direction, Apart::Run, Apart::Device];

/// A direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the phone.
    Down,
    /// From the phone.
    Up,
}

/// What channels are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Received power.
    Rsrp,
    /// SINR of the downlink.
    Sinr,
    /// Both: the power sets the losses, and the SINR what the UE hears of other cells.
    Both,
}

/// A row of a log. What is not known is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Seconds since the first row.
    pub at_s: f64,
    /// The serving cell: its identity, and what else tells it from others in the log with the same.
    pub cell: Option<String>,
    /// What the log calls the radio technology.
    pub technology: Option<String>,
    /// Received power in dBm.
    pub rsrp_dbm: Option<f64>,
    /// Received quality in dB.
    pub rsrq_db: Option<f64>,
    /// SINR in dB.
    pub sinr_db: Option<f64>,
    /// CQI.
    pub cqi: Option<f64>,
    /// Rates of the downlink and the uplink in Mbit/s.
    pub mbps: [Option<f64>; 2],
    /// Latitude and longitude in degrees.
    pub place: [Option<f64>; 2],
}

/// A drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// Its rows, in the order of time.
    pub rows: Vec<Row>,
    /// For how long the last row holds, in seconds.
    last_s: f64,
    /// The usual time between rows, in seconds.
    step_s: f64,
}

/// A quantity of a log: how it is called (letters and digits, without a unit), and what a UE can report.
struct Kind {
    what: &'static str,
    option: &'static str,
    names: &'static [&'static str],
    range: std::ops::RangeInclusive<f64>,
}

/// A step of what a UE reports of quality and SINR. Some loggers take a report of less or more than all steps for one step beyond.
const STEP_DB: f64 = 0.5;
const RSRP: Kind = Kind {
    what: "RSRP",
    option: "--rsrp",
    names: &["rsrp", "ltersrp", "ssrsrp", "nrssrsrp", "nrrsrp", "servingrsrp", "rsrpserving"],
    range: RSRP_DBM,
};
const RSRQ: Kind = Kind {
    what: "RSRQ",
    option: "--rsrq",
    names: &["rsrq", "ltersrq", "ssrsrq", "nrssrsrq", "nrrsrq", "servingrsrq", "rsrqserving"],
    range: (*RSRQ_DB.start() - STEP_DB)..=*RSRQ_DB.end(),
};
/// Android's RSSNR of LTE is from -20 to 30 dB.
const SINR: Kind = Kind {
    what: "SINR",
    option: "--sinr",
    names: &["sinr", "snr", "rssnr", "lterssnr", "ltesinr", "ltesnr", "sssinr", "nrsssinr", "nrsinr", "nrsnr"],
    range: (*SINR_DB.start() - STEP_DB)..=(*SINR_DB.end() + STEP_DB),
};
/// TS 36.213 table 7.2.3-1, TS 38.214 table 5.2.2.1-2.
const CQI: Kind =
    Kind { what: "CQI", option: "--cqi", names: &["cqi", "ltecqi", "nrcqi", "widebandcqi"], range: 0.0..=15.0 };
const LATITUDE: Kind =
    Kind { what: "latitude", option: "", names: &["latitude", "lat", "gpslat"], range: -90.0..=90.0 };
const LONGITUDE: Kind = Kind {
    what: "longitude",
    option: "",
    names: &["longitude", "lon", "lng", "long", "gpslon"],
    range: -180.0..=180.0,
};
/// What G-NetTrack calls the power and the quality of any technology.
const LEVEL: [&str; 2] = ["level", "qual"];
/// Columns of G-NetTrack, whose bitrates are in kbit/s.
const G_NETTRACK: [&str; 4] = ["timestamp", "dlbitrate", "ulbitrate", "networkmode"];

/// A column's name without what varies: case, separators and the unit.
fn plain(name: &str) -> String {
    let letters = select::plain(name);
    let bare = letters.strip_suffix("dbm").or_else(|| letters.strip_suffix("db")).unwrap_or(&letters);
    bare.to_owned()
}

/// The columns of a log.
struct Selected {
    time: TimeColumn,
    cell: cells::Columns,
    /// RSRP, RSRQ, SINR, CQI, latitude and longitude.
    values: [Option<usize>; 6],
    /// Of the downlink and the uplink.
    rates: [Option<(usize, Unit)>; 2],
}

impl Selected {
    fn of(table: &Table<'_>, columns: &Columns, notes: &mut Vec<String>) -> Result<Selected, Error> {
        let names: Vec<String> = table.names.iter().map(|name| plain(name)).collect();
        let time = TimeColumn::of(table, columns.time.as_deref(), columns.seconds)?;
        let is_g_nettrack = G_NETTRACK.iter().all(|one| names.iter().any(|name| name == one));
        if is_g_nettrack {
            notes.push("the columns are those of G-NetTrack: bitrates are in kbit/s".to_owned());
        }
        let first = |list: &[&str]| list.iter().find_map(|one| names.iter().position(|name| name == one));
        let cell = cells::Columns::of(table, &names, columns.cell.as_deref())?;
        let select = |kind: &Kind, selected: &Option<String>, level: Option<&str>| -> Result<Option<usize>, Error> {
            if let Some(name) = selected {
                return table.column(name).map(Some);
            }
            let found: Vec<usize> = (0..names.len()).filter(|&at| kind.names.contains(&names[at].as_str())).collect();
            match found[..] {
                [] => Ok(level.and_then(|level| first(&[level]))),
                [one] => Ok(Some(one)),
                _ if kind.option.is_empty() => Ok(Some(found[0])),
                _ => {
                    let of = found.iter().map(|&at| shown(table.names[at].as_bytes())).collect();
                    Err(choose(
                        &format!("several columns may be the {}: select one with {}", kind.what, kind.option),
                        of,
                    ))
                }
            }
        };
        let values = [
            select(&RSRP, &columns.rsrp, Some(LEVEL[0]))?,
            select(&RSRQ, &columns.rsrq, Some(LEVEL[1]))?,
            select(&SINR, &columns.sinr, None)?,
            select(&CQI, &columns.cqi, None)?,
            select(&LATITUDE, &None, None)?,
            select(&LONGITUDE, &None, None)?,
        ];
        let mut rate = |selected: &Option<String>, g_nettrack: &str, (option, begins): (&str, &[&str])| {
            let column = match selected {
                Some(name) => Some(table.column(name)?),
                None if is_g_nettrack => first(&[g_nettrack]),
                None => rate_column(table, &names, (option, begins), notes)?,
            };
            let Some(column) = column else { return Ok::<_, Error>(None) };
            let named = units::rate(table.names.get(column).map_or("", String::as_str));
            let of_logger = (is_g_nettrack && selected.is_none()).then_some(Unit::KBPS);
            let known = columns.unit.or(named.and_then(|named| named.unit)).or(of_logger);
            let unit = known.filter(|unit| unit.is_rate).ok_or_else(|| {
                let (column, valid) = (table.shown(column), Unit::VALID);
                let what = format!("the unit of the rates in column {column} is unknown");
                Error::File(format!("{what}: set it with --unit ({valid})"))
            })?;
            let note = named.filter(|_| columns.unit.is_none()).and_then(|named| named.note(&table.shown(column)));
            Ok(Some((column, unit, note)))
        };
        let down = rate(&columns.downlink, "dlbitrate", ("--downlink", &["dl", "down", "throughputdl", "rx"]))?;
        let up = rate(&columns.uplink, "ulbitrate", ("--uplink", &["ul", "up", "throughputul", "tx"]))?;
        notes.extend([&down, &up].into_iter().flatten().filter_map(|(.., note)| note.clone()));
        let rates = [down, up].map(|rate| rate.map(|(column, unit, _)| (column, unit)));
        let has_values = values[..4].iter().any(Option::is_some) || rates.iter().any(Option::is_some);
        if !has_values {
            let what = "no column has a name for a received power, quality, SINR, CQI or rate; select one with --rsrp, --sinr or --downlink";
            return Err(Error::File(format!("{what}: the columns are {}", table.all_names())));
        }
        Ok(Selected { time, cell, values, rates })
    }
}

/// Returns the column of rates whose name begins like this and has a unit of a rate, or one that is not clear.
fn rate_column(
    table: &Table<'_>,
    names: &[String],
    (option, begins): (&str, &[&str]),
    notes: &mut Vec<String>,
) -> Result<Option<usize>, Error> {
    let is_it = |at: &usize| {
        let is_rate = units::rate(&table.names[*at]).is_some_and(|named| named.unit.is_none_or(|unit| unit.is_rate));
        is_rate && begins.iter().any(|begin| names[*at].starts_with(begin))
    };
    let found: Vec<usize> = (0..names.len()).filter(is_it).collect();
    match found[..] {
        [] => {
            let may_be = |at: &usize| {
                begins.iter().any(|begin| names[*at].starts_with(begin)) && units::is_called_rate(&table.names[*at])
            };
            let what = "may be a rate, but its unit is unknown: it is left out; give";
            let note = |at: usize| format!("column {} {what} {option} and --unit", table.shown(at));
            notes.extend((0..names.len()).filter(may_be).map(note));
            let is_amount = |at: &usize| {
                let named = units::rate(&table.names[*at]).and_then(|named| named.unit);
                begins.iter().any(|begin| names[*at].starts_with(begin)) && named.is_some_and(|unit| !unit.is_rate)
            };
            notes.extend((0..names.len()).filter(is_amount).map(|at| {
                let what = "has amounts of data and no rates, and is left out: make a trace of it with `ranway import rates --rate";
                format!("column {} {what} {}`", table.shown(at), shown(table.names[at].as_bytes()))
            }));
            Ok(None)
        }
        [one] => Ok(Some(one)),
        _ => {
            let of = found.iter().map(|&at| shown(table.names[at].as_bytes())).collect();
            Err(choose(&format!("several columns may be the rate: select one with {option}"), of))
        }
    }
}

/// Values that were not taken.
#[derive(Default)]
struct Ignored {
    out_of_range: BTreeMap<&'static str, u64>,
    of_others: u64,
    without_time: u64,
    /// Rows that are not of the serving cell.
    beside: BTreeMap<Beside, u64>,
    /// Rates that stand for unknown ones, and one of them.
    sentinels: Option<(u64, f64)>,
}

/// Reads a log.
///
/// # Errors
/// [`Error::Choose`] if several columns fit; [`Error::Line`] for a line without a time, or with text for a number;
/// [`Error::File`] if columns are not found; [`Error::Io`].
pub fn read(from: impl Read, columns: &Columns) -> Result<Noted<Drive>, Error> {
    let text = text(from)?;
    let mut table = Table::new(&text)?;
    let mut notes = Vec::new();
    let selected = Selected::of(&table, columns, &mut notes)?;
    notes.extend(table.note());
    let (mut times, mut rows, mut ignored) = (Raw::default(), Vec::new(), Ignored::default());
    let (mut cells, mut serving) = (cells::Cells::default(), Vec::new());
    let mut filter = Filter::new(&table, &columns.only, &KINDS, &[selected.time.index])?;
    let mut record = ByteRecord::new();
    while let Some(line) = table.next(&mut record)? {
        if !filter.keeps(&record) {
            continue;
        }
        if let Some(beside) = selected.cell.beside(&record) {
            *ignored.beside.entry(beside).or_default() += 1;
            continue;
        }
        filter.count(&record);
        let time = record.get(selected.time.index).unwrap_or_default();
        if is_missing(time) {
            ignored.without_time += 1;
            continue;
        }
        times.push(line, time)?;
        if rows.len() >= MAX_ROWS {
            return Err(Error::File(format!("more than {MAX_ROWS} rows: split the file")));
        }
        let row = row(&record, &selected, line, &mut ignored)?;
        serving.push(cells.row(&record, &selected.cell, row.technology.as_deref().and_then(Technology::named)));
        rows.push(row);
    }
    filter.finish(None, &mut notes)?;
    if times.is_empty() {
        let of_others =
            ignored.beside.iter().map(|(beside, rows)| format!("; {}", beside.note(*rows))).collect::<String>();
        return Err(Error::File(format!("no row with a time{of_others}")));
    }
    if let Some(operator) = cells.selected(columns.operator.as_deref(), &mut notes)? {
        let keep: Vec<bool> = serving.iter().map(|row| row.operator == Some(operator)).collect();
        times.retain(&keep);
        retain(&mut rows, &keep);
        retain(&mut serving, &keep);
    }
    let keep = cells::first_at_once(&serving, &times);
    let at_once = keep.iter().filter(|keep| !**keep).count() as u64;
    if at_once > 0 {
        ignored.beside.insert(Beside::AtOnce, at_once);
        times.retain(&keep);
        retain(&mut rows, &keep);
        retain(&mut serving, &keep);
    }
    notes.extend(ignored.beside.iter().map(|(beside, rows)| beside.note(*rows)));
    if !selected.cell.has_identity() {
        notes.push("no column is known to name the cell: all rows are of one (--cell)".to_owned());
    }
    for (row, cell) in rows.iter_mut().zip(cells.names(&serving, &mut notes)) {
        row.cell = cell;
    }
    let times = times.times(&selected.time, &mut notes)?;
    times.note_gaps("the row before it holds for all of it", &mut notes);
    for (row, at) in rows.iter_mut().zip(&times.seconds) {
        row.at_s = *at;
    }
    if ignored.without_time > 0 {
        notes.push(format!("{} rows without a time are left out", ignored.without_time));
    }
    for (what, count) in ignored.out_of_range {
        notes.push(format!("{count} values of {what} are none that a UE can report, and are left out"));
    }
    notes.extend(ignored.sentinels.map(|(count, example)| sentinels(count, example)));
    if ignored.of_others > 0 {
        let what = "rows are of neither LTE nor 5G: their power, quality, SINR and CQI are left out";
        notes.push(format!("{} {what}", ignored.of_others));
    }
    Ok(Noted { value: Drive { rows, last_s: times.usual(), step_s: times.usual() }, notes })
}

/// Reads a row.
fn row(record: &ByteRecord, selected: &Selected, line: u64, ignored: &mut Ignored) -> Result<Row, Error> {
    let cell = |column: usize| record.get(column).filter(|cell| !is_missing(cell));
    let words = |column: usize| cell(column).map(|cell| String::from_utf8_lossy(cell).into_owned());
    let value = |column: Option<usize>, what: &str| -> Result<Option<f64>, Error> {
        let Some(cell) = column.and_then(cell) else { return Ok(None) };
        let unread = || Error::line(line, format!("the {what} `{}` is not a number", shown(cell)));
        number(cell).ok_or_else(unread).map(Some)
    };
    let technology = selected.cell.technology.and_then(words);
    let is_other = technology.as_deref().and_then(Technology::named) == Some(Technology::Other);
    ignored.of_others += u64::from(is_other);
    let mut values = [None; 6];
    for (at, (kind, column)) in
        [RSRP, RSRQ, SINR, CQI, LATITUDE, LONGITUDE].into_iter().zip(selected.values).enumerate()
    {
        let Some(read) = value(column, kind.what)? else { continue };
        if at < 4 && is_other {
            continue;
        }
        if kind.range.contains(&read) && (kind.what != "CQI" || libm::trunc(read) == read) {
            values[at] = Some(read);
        } else {
            *ignored.out_of_range.entry(kind.what).or_default() += 1;
        }
    }
    let mut mbps = [None; 2];
    for (mbps, column) in mbps.iter_mut().zip(selected.rates) {
        let Some((column, unit)) = column else { continue };
        let read = value(Some(column), "rate")?;
        if let Some(unknown) = read.filter(|value| is_sentinel(*value)) {
            ignored.sentinels.get_or_insert((0, unknown)).0 += 1;
            continue;
        }
        let bits = read.map(|value| value * unit.bits);
        if bits.is_some_and(|bits| !(0.0..=rates::MAX_RATE).contains(&bits)) {
            return Err(Error::line(line, "a rate must be from 0 to 10 Tbit/s"));
        }
        *mbps = bits.map(|bits| bits / 1e6);
    }
    let [rsrp_dbm, rsrq_db, sinr_db, cqi, north, east] = values;
    Ok(Row { at_s: 0.0, cell: None, technology, rsrp_dbm, rsrq_db, sinr_db, cqi, mbps, place: [north, east] })
}

/// A cell's name in a scenario and in names of files.
fn sanitised(name: &str) -> String {
    let name: String = name.chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).take(40).collect();
    format!("cell-{}", name.trim_matches('-'))
}

impl Drive {
    /// Seconds from the first row to the end of the last one.
    pub fn seconds(&self) -> f64 {
        self.rows.last().map_or(0.0, |last| last.at_s + self.last_s)
    }

    /// Returns the part of `length` seconds from `begin` on; it begins with the row that held then.
    ///
    /// # Errors
    /// [`Error::File`] if the drive ends before.
    pub fn part(mut self, begin: f64, length: Option<f64>) -> Result<Drive, Error> {
        let seconds = self.seconds();
        let end = length.map_or(seconds, |length| seconds.min(begin + length));
        if begin >= end {
            return Err(Error::File(format!("nothing is left of it: the recording ends after {seconds:.3} s")));
        }
        self.rows.truncate(self.rows.partition_point(|row| row.at_s < end));
        self.rows.drain(..self.rows.partition_point(|row| row.at_s <= begin).saturating_sub(1));
        for row in &mut self.rows {
            row.at_s = (row.at_s - begin).max(0.0);
        }
        self.last_s = end - begin - self.rows.last().map_or(0.0, |last| last.at_s);
        Ok(self)
    }

    /// How often the serving cell changed.
    pub fn handovers(&self) -> usize {
        let cells: Vec<&String> = self.rows.iter().filter_map(|row| row.cell.as_ref()).collect();
        cells.windows(2).filter(|two| two[0] != two[1]).count()
    }

    /// The names of cells in scenarios and in names of files, which are different for different cells.
    fn names(&self) -> BTreeMap<&str, String> {
        let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
        for cell in self.rows.iter().filter_map(|row| row.cell.as_deref()) {
            if names.contains_key(cell) {
                continue;
            }
            let plain = sanitised(cell);
            let numbered = (2..).map(|number| format!("{plain}-{number}"));
            let mut free = std::iter::once(plain.clone()).chain(numbered).filter(|name| !taken.contains(name));
            let name = free.next().unwrap_or_default();
            taken.insert(name.clone());
            names.insert(cell, name);
        }
        names
    }

    /// Whether most rows are of 5G.
    pub fn is_nr(&self) -> bool {
        let named = || self.rows.iter().filter_map(|row| row.technology.as_deref());
        named().filter(|name| Technology::named(name) == Some(Technology::Nr)).count() * 2 > named().count()
    }

    /// Returns all rows as a table; what is missing is empty.
    pub fn to_csv(&self) -> String {
        let mut text =
            "time_s,cell,technology,rsrp_dbm,rsrq_db,sinr_db,cqi,downlink_mbps,uplink_mbps,latitude,longitude\n"
                .to_owned();
        let names = self.names();
        for row in &self.rows {
            let cell = row.cell.as_deref().map_or("", |cell| &names[cell]);
            let technology: String =
                row.technology.iter().flat_map(|name| name.chars()).filter(char::is_ascii_alphanumeric).collect();
            write!(text, "{:.3},{cell},{technology}", row.at_s).expect("a text takes everything");
            for value in
                [row.rsrp_dbm, row.rsrq_db, row.sinr_db, row.cqi, row.mbps[0], row.mbps[1], row.place[0], row.place[1]]
            {
                let value = value.map_or_else(String::new, |value| value.to_string());
                write!(text, ",{value}").expect("a text takes everything");
            }
            text.push('\n');
        }
        text
    }

    /// What channels are made of by default: the received power, from which the losses of both directions follow, and with
    /// which all handovers succeed as they did; or else the SINR. A recorded SINR that is poor while cells change makes
    /// simulated handovers fail.
    pub fn made_of(&self) -> Option<Made> {
        let has = |value: fn(&Row) -> Option<f64>| self.rows.iter().any(|row| value(row).is_some());
        match (has(|row| row.rsrp_dbm), has(|row| row.sinr_db)) {
            (true, _) => Some(Made::Rsrp),
            (false, true) => Some(Made::Sinr),
            (false, false) => None,
        }
    }

    /// Returns the text of the recorded channel of each cell that served. Cells change when they did. A row without an SINR
    /// beside its power has that of the row before, or, at the beginning, of the next that has one.
    ///
    /// # Errors
    /// [`Error::File`] if no row has these quantities, or there are too many cells or samples.
    pub fn channels(&self, made: Made) -> Result<BTreeMap<String, String>, Error> {
        let is_without_cells = self.rows.iter().all(|row| row.cell.is_none());
        let names = self.names();
        let mut sinr_db = self.rows.iter().find_map(|row| row.sinr_db);
        let (mut powers, mut sinrs) = (Vec::new(), Vec::new());
        for row in &self.rows {
            sinr_db = row.sinr_db.or(sinr_db);
            let cell = match &row.cell {
                Some(cell) => names[cell.as_str()].clone(),
                None if is_without_cells => "cell".to_owned(),
                None => continue,
            };
            let of = |value: f64| Serving { at_s: row.at_s, cell: cell.clone(), value };
            match made {
                Made::Rsrp => powers.extend(row.rsrp_dbm.map(of)),
                Made::Sinr => sinrs.extend(row.sinr_db.map(of)),
                Made::Both => {
                    let both = row.rsrp_dbm.zip(sinr_db);
                    powers.extend(both.map(|(power, _)| of(power)));
                    sinrs.extend(both.map(|(_, sinr)| of(sinr)));
                }
            }
        }
        for serving in [&mut powers, &mut sinrs] {
            if let Some(first) = serving.first_mut() {
                first.at_s = 0.0;
            }
        }
        let text = |(cell, channel): (String, Channel)| (cell, channel.to_csv());
        Ok(match (powers.is_empty(), sinrs.is_empty()) {
            (true, true) => {
                return Err(Error::File("no row has a cell and its received power or SINR".to_owned()));
            }
            (false, true) => channels(&powers, Quantity::Rsrp, MARGIN_DB)?.into_iter().map(text).collect(),
            (true, false) => channels(&sinrs, Quantity::Sinr, MARGIN_DB)?.into_iter().map(text).collect(),
            (false, false) => {
                let powers = channels(&powers, Quantity::Rsrp, MARGIN_DB)?;
                let both = |(cell, sinr): (String, Channel)| {
                    let channel = sinr.beside(&powers[&cell])?;
                    Ok(text((cell, channel)))
                };
                channels(&sinrs, Quantity::Sinr, 0.0)?.into_iter().map(both).collect::<Result<_, Error>>()?
            }
        })
    }

    /// Returns the rates of a direction as a trace; `None` if the log has none. A row without a rate has that of the row before,
    /// or, at the beginning, of the next that has one. `texture` is that of [`Columns::texture`](crate::Columns::texture).
    ///
    /// # Errors
    /// [`Error::File`] if nothing passes.
    pub fn trace(&self, direction: Direction, texture: Option<f64>) -> Result<Option<Noted<Trace>>, Error> {
        let way = usize::from(direction == Direction::Up);
        let known: Vec<(f64, f64)> = self.rows.iter().filter_map(|row| Some((row.at_s, row.mbps[way]?))).collect();
        if known.is_empty() {
            return Ok(None);
        }
        let mut sum = Opportunities::new(0.0, None).vary(texture, way as u64);
        let mut begin = 0.0;
        let ends = known.iter().skip(1).map(|next| next.0).chain([self.seconds()]);
        for ((_, mbps), end) in known.iter().zip(ends) {
            rates::flow(&mut sum, Unit::MBPS, *mbps, begin, end)?;
            begin = end;
        }
        let mut notes = Vec::new();
        let missing = self.rows.len() - known.len();
        if missing > 0 {
            notes.push(format!("{missing} rows have no rate: that of the row before holds"));
        }
        notes.extend(rates::smooth(self.step_s, texture));
        Ok(Some(Noted { value: sum.finish(self.seconds())?, notes }))
    }
}
