//! Channel logs of other simulators, imported as recorded channels.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;

use channel::Recorded;
pub use channel::recorded::Quantity;
use csv::{ByteRecord, ReaderBuilder, Trim};

use crate::{Error, MAX_SECONDS, choose, shown, text};

/// Maximum number of samples of a channel.
pub const MAX_SAMPLES: usize = 5_000_000;
/// Resolution of times in seconds: nothing changes within a subframe.
const GRAIN: f64 = 1e-3;

/// Times in seconds, and values.
type Samples = Vec<(f64, f64)>;

/// One UE's measurements of one cell over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// The measured quantity.
    pub quantity: Quantity,
    /// Times in seconds, increasing and in whole milliseconds, and values in the quantity's unit.
    pub samples: Vec<(f64, f64)>,
    /// The received power in dBm of each sample, if it is known beside an SINR or CQI.
    pub powers: Option<Vec<f64>>,
}

impl Channel {
    /// Creates a channel from samples in the order of time, in seconds, which become whole milliseconds; samples of the same
    /// millisecond are averaged.
    ///
    /// # Errors
    /// [`Error::File`] if there is no sample, or one is out of the quantity's range.
    pub fn new(quantity: Quantity, samples: Vec<(f64, f64)>) -> Result<Channel, Error> {
        let mut merged: Vec<(f64, f64)> = Vec::new();
        let mut same = 0.0;
        for (at, value) in samples {
            let at = libm::round(at / GRAIN);
            match merged.last_mut() {
                Some((last, mean)) if *last == at => {
                    same += 1.0;
                    *mean += (value - *mean) / same;
                }
                _ => {
                    merged.push((at, value));
                    same = 1.0;
                }
            }
        }
        let round = |value: f64| if quantity == Quantity::Cqi { libm::round(value) } else { value };
        let samples = merged.into_iter().map(|(at, value)| (at * GRAIN, round(value))).collect();
        let channel = Channel { quantity, samples, powers: None };
        // The output must be readable as part of a scenario.
        Recorded::parse(channel.to_csv())
            .map_err(|error| Error::File(format!("cannot be converted to a channel: {error}")))?;
        Ok(channel)
    }

    /// Adds the received powers, which are those of the same times.
    ///
    /// # Errors
    /// [`Error::File`] if they have other times.
    pub(crate) fn beside(self, powers: &Channel) -> Result<Channel, Error> {
        let has_same_times = self.samples.len() == powers.samples.len()
            && self.samples.iter().zip(&powers.samples).all(|(one, other)| one.0 == other.0);
        match has_same_times {
            true => Ok(Channel { powers: Some(powers.samples.iter().map(|(_, dbm)| *dbm).collect()), ..self }),
            false => Err(Error::File("the received powers have other times than the other values".to_owned())),
        }
    }

    /// Returns the channel as the text of a recorded channel's file.
    pub fn to_csv(&self) -> String {
        let name = match self.quantity {
            Quantity::Sinr => "sinr_db",
            Quantity::Cqi => "cqi",
            Quantity::Rsrp => "rsrp_dbm",
        };
        let decimals = if self.quantity == Quantity::Cqi { 0 } else { 3 };
        let mut text = format!("time_s,{name}{}\n", if self.powers.is_some() { ",rsrp_dbm" } else { "" });
        for (index, (at, value)) in self.samples.iter().enumerate() {
            write!(text, "{at:.3},{value:.decimals$}").expect("a text takes everything");
            if let Some(dbm) = self.powers.as_ref().and_then(|powers| powers.get(index)) {
                write!(text, ",{dbm:.3}").expect("a text takes everything");
            }
            text.push('\n');
        }
        text
    }
}

/// Selects rows of an ns-3 log.
#[derive(Clone, Debug, Default)]
pub struct Ns3 {
    /// The UE's IMSI.
    pub imsi: Option<u64>,
    /// The UE's RNTI, of logs without IMSIs.
    pub rnti: Option<u64>,
    /// The cell's number.
    pub cell: Option<u64>,
    /// Whether to import received power (RSRP) instead of SINR.
    pub rsrp: bool,
}

/// Reads a log of what UEs hear, written by ns-3: tab-separated columns with names.
///
/// | file | columns |
/// | --- | --- |
/// | `DlRsrpSinrStats.txt` of the LTE module (`PhyStatsCalculator`) | `time`, `cellId`, `IMSI`, `rsrp` in W, `sinr` as a ratio |
/// | `DlDataSinr.txt`, `DlCtrlSinr.txt` of 5G-LENA (`NrPhyRxTrace`) | `Time`, `CellId`, `RNTI`, `SINR(dB)` |
/// | `RxPacketTrace.txt` of 5G-LENA, and of ns3-mmwave (`MmWavePhyTrace`) | `Time` or `time`, `direction` or `DL/UL`, `cellId`, `rnti`, `SINR(dB)` |
///
/// With `rsrp`, the channel has the received power beside the SINR. Of rows of both directions, those of the uplink are left out.
/// ns-3 logs only the serving cell; several component carriers, bandwidth parts and streams are averaged.
///
/// # Errors
/// [`Error::Choose`] if there are several UEs or cells and none was selected; [`Error::Line`], [`Error::File`], also of a log of
/// the uplink; [`Error::Io`].
pub fn ns3(from: impl Read, which: &Ns3) -> Result<Channel, Error> {
    let text = text(from)?;
    let mut reader = ReaderBuilder::new().delimiter(b'\t').trim(Trim::All).flexible(true).from_reader(&text[..]);
    let columns = Ns3Columns::of(reader.byte_headers().map_err(|error| Error::File(error.to_string()))?, which)?;
    let quantity = if which.rsrp { Quantity::Rsrp } else { Quantity::Sinr };
    let beside = columns.power.filter(|_| !which.rsrp);
    let mut found: BTreeMap<(u64, u64), [Samples; 2]> = BTreeMap::new();
    let (mut record, mut rows) = (ByteRecord::new(), 0);
    while reader.read_byte_record(&mut record).map_err(|error| Error::File(error.to_string()))? {
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize, what: &str| {
            let digits = record.get(column).and_then(|digits| str::from_utf8(digits).ok());
            let number = digits.and_then(|digits| digits.parse::<f64>().ok()).filter(|number| number.is_finite());
            number.ok_or_else(|| Error::line(line, format!("the {what} is not a number")))
        };
        if columns.direction.is_some_and(|column| record.get(column).is_some_and(|of| !of.eq_ignore_ascii_case(b"DL")))
        {
            continue;
        }
        let who = (number(columns.ue, columns.ue_name)? as u64, number(columns.cell, "cell")? as u64);
        let (at, value) = (number(columns.time, "time")?, number(columns.value, "value")?);
        let (imsi, rnti) = if columns.ue_name == IMSI { (which.imsi, None) } else { (None, which.rnti) };
        if imsi.or(rnti).is_some_and(|ue| ue != who.0) || which.cell.is_some_and(|cell| cell != who.1) {
            continue;
        }
        if !(0.0..=MAX_SECONDS).contains(&at) {
            return Err(Error::line(line, "the time must be from 0 to 49 days"));
        }
        rows += 1;
        if rows > MAX_SAMPLES {
            return Err(Error::File(format!("more than {MAX_SAMPLES} matching lines: select a UE, or split the file")));
        }
        let power = beside.map_or(Ok(1.0), |column| number(column, "received power"))?;
        let [samples, powers] = found.entry(who).or_default();
        if samples.last().is_some_and(|&(before, _)| at < before) {
            return Err(Error::line(line, "is earlier than the previous line of the same UE and cell"));
        }
        // A UE has no SINR before it is scheduled.
        if columns.is_db {
            samples.push((at, value));
        } else if value > 0.0 && power > 0.0 {
            let db = 10.0 * libm::log10(value);
            samples.push((at, if which.rsrp { db + 30.0 } else { db }));
            powers.push((at, 10.0 * libm::log10(power) + 30.0));
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, [samples, _])| std::cmp::Reverse(samples.len()));
    match &found[..] {
        [] => Err(Error::File("no line matches the UE and cell".to_owned())),
        [_] => {
            let [samples, powers] = found.remove(0).1;
            let channel = Channel::new(quantity, samples)?;
            if beside.is_some() { channel.beside(&Channel::new(Quantity::Rsrp, powers)?) } else { Ok(channel) }
        }
        several => {
            let option = columns.ue_name.to_lowercase();
            let of = several.iter().map(|((ue, cell), _)| format!("--{option} {ue} --cell {cell}")).collect();
            Err(choose("several UEs or cells in the log", of))
        }
    }
}

/// What numbers UEs in a log of ns-3: in the network, and in a cell.
const IMSI: &str = "IMSI";
const RNTI: &str = "RNTI";

/// The columns of a log of ns-3.
struct Ns3Columns {
    time: usize,
    cell: usize,
    ue: usize,
    /// [`IMSI`] or [`RNTI`].
    ue_name: &'static str,
    value: usize,
    /// Whether the values are in dB, and not ratios or W.
    is_db: bool,
    /// The received power.
    power: Option<usize>,
    /// `DL` or `UL`.
    direction: Option<usize>,
}

impl Ns3Columns {
    fn of(head: &ByteRecord, which: &Ns3) -> Result<Ns3Columns, Error> {
        let column = |names: &[&str]| {
            head.iter().position(|name| {
                let name = name.trim_ascii_start().strip_prefix(b"%").unwrap_or(name).trim_ascii();
                names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()))
            })
        };
        let place = |names: &[&str]| {
            column(names).ok_or_else(|| {
                let logs = "DlRsrpSinrStats.txt, or of 5G-LENA's or ns3-mmwave's DlDataSinr.txt and RxPacketTrace.txt";
                Error::line(1, format!("the first line has no column `{}`: not that of ns-3's {logs}", names[0]))
            })
        };
        let (time, cell) = (place(&["time"])?, place(&["cellid"])?);
        if column(&["sinrlinear"]).is_some() && !which.rsrp {
            let what = "it has the SINR of the uplink at the base station, and a recorded channel is what a UE hears: import \
                        DlRsrpSinrStats.txt, whose received power sets the uplink's loss, too";
            return Err(Error::File(what.to_owned()));
        }
        let (ue, ue_name) = match (column(&[IMSI]), column(&[RNTI])) {
            // Of a log with both, the number in the network, which handovers do not change.
            (Some(imsi), _) => (imsi, IMSI),
            (None, Some(rnti)) => (rnti, RNTI),
            (None, None) => (place(&[IMSI])?, IMSI),
        };
        let wrong = match (ue_name, which.imsi, which.rnti) {
            (IMSI, _, Some(_)) => Some("--rnti: the log has IMSIs: select a UE with --imsi"),
            (RNTI, Some(_), _) => Some("--imsi: the log has no IMSIs: select a UE with --rnti"),
            _ => None,
        };
        if let Some(what) = wrong {
            return Err(Error::File(what.to_owned()));
        }
        let (power, decibels) = (column(&["rsrp"]), column(&["sinr(db)"]));
        let (value, is_db) = match (which.rsrp, decibels) {
            (true, _) => (place(&["rsrp"])?, false),
            (false, Some(decibels)) => (decibels, true),
            (false, None) => (place(&["sinr"])?, false),
        };
        let direction = column(&["direction", "dl/ul"]);
        Ok(Ns3Columns { time, cell, ue, ue_name, value, is_db, power, direction })
    }
}

/// Selects a vector of an OMNeT++ export.
#[derive(Clone, Debug, Default)]
pub struct Omnet {
    /// Text contained in the module's path.
    pub module: Option<String>,
    /// The vector's name, with or without `:vector`. Default: a vector whose name indicates SINR, CQI or RSRP.
    pub vector: Option<String>,
    /// Text contained in the run's name.
    pub run: Option<String>,
}

/// Reads vectors exported by `opp_scavetool export -F CSV-R`, such as Simu5G's `measuredSinrDl:vector` (dB) or
/// `averageCqiDl:vector`.
///
/// # Errors
/// [`Error::Choose`] if several vectors match; [`Error::Line`], [`Error::File`], [`Error::Io`].
pub fn omnet(from: impl Read, which: &Omnet) -> Result<Channel, Error> {
    let text = text(from)?;
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(&text[..]);
    let head = reader.byte_headers().map_err(|error| Error::File(error.to_string()))?.clone();
    let place = |name: &str| {
        head.iter().position(|one| one == name.as_bytes()).ok_or_else(|| {
            Error::line(1, format!("has no column `{name}`: export vectors with `opp_scavetool export -F CSV-R`"))
        })
    };
    let [run, kind, module, name] = [place("run")?, place("type")?, place("module")?, place("name")?];
    let [times, values] = [place("vectime")?, place("vecvalue")?];
    let mut found: Vec<(String, Quantity, ByteRecord)> = Vec::new();
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| Error::File(error.to_string()))? {
        let field = |column: usize| String::from_utf8_lossy(record.get(column).unwrap_or_default()).into_owned();
        if field(kind) != "vector" {
            continue;
        }
        let bare = field(name).trim_end_matches(":vector").to_owned();
        let wanted = which.vector.as_ref().is_none_or(|vector| bare == vector.trim_end_matches(":vector"))
            && which.module.as_ref().is_none_or(|module_part| field(module).contains(module_part.as_str()))
            && which.run.as_ref().is_none_or(|part| field(run).contains(part.as_str()));
        if let (true, Some(quantity)) = (wanted, quantity_of(&bare, which.vector.is_some())) {
            let part = |column: usize| shown(record.get(column).unwrap_or_default());
            let who = format!("--run {} --module {} --vector {}", part(run), part(module), shown(bare.as_bytes()));
            found.push((who, quantity, record.clone()));
        }
    }
    match &found[..] {
        [] => Err(Error::File("contains no matching vector of SINR, CQI or RSRP".to_owned())),
        [(_, quantity, record)] => {
            let line = record.position().map_or(0, csv::Position::line);
            let list = |column: usize| numbers(record.get(column).unwrap_or_default(), line);
            let (times, values) = (list(times)?, list(values)?);
            if times.len() != values.len() {
                let what = format!("has {} times and {} values", times.len(), values.len());
                return Err(Error::line(line, what));
            }
            if let Some(at) = times.iter().find(|at| !(0.0..=MAX_SECONDS).contains(*at)) {
                return Err(Error::line(line, format!("the time {at} must be from 0 to 49 days")));
            }
            if times.windows(2).any(|pair| pair[1] < pair[0]) {
                return Err(Error::line(line, "times decrease"));
            }
            Channel::new(*quantity, times.into_iter().zip(values).collect())
        }
        several => {
            let of = several.iter().map(|(who, ..)| who.clone()).collect();
            Err(choose("several vectors match", of))
        }
    }
}

/// Returns the quantity of a vector with this name. A vector selected by name with no indication is assumed to be SINR.
fn quantity_of(name: &str, asked: bool) -> Option<Quantity> {
    let name = name.to_lowercase();
    match () {
        () if name.contains("cqi") => Some(Quantity::Cqi),
        () if name.contains("rsrp") => Some(Quantity::Rsrp),
        () if name.contains("sinr") || name.contains("snr") || asked => Some(Quantity::Sinr),
        () => None,
    }
}

fn numbers(list: &[u8], line: u64) -> Result<Vec<f64>, Error> {
    let mut all = Vec::new();
    for digits in list.split(u8::is_ascii_whitespace).filter(|digits| !digits.is_empty()) {
        if all.len() >= MAX_SAMPLES {
            return Err(Error::line(line, format!("has more than {MAX_SAMPLES} samples")));
        }
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite());
        all.push(number.ok_or_else(|| Error::line(line, format!("`{}` is not a number", shown(digits))))?);
    }
    Ok(all)
}
