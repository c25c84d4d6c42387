//! Logs of ns-3: what UEs hear, row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use csv::{ByteRecord, ReaderBuilder, Trim};

use super::{Channel, MAX_SAMPLES, Quantity, Samples, UPLINK};
use crate::serving::{MARGIN_DB, Serving, channels};
use crate::table::as_wide;
use crate::{Error, MAX_SECONDS, MOST_NAMED, Noted, choose, shown, text};

/// Selects rows of an ns-3 log.
#[derive(Clone, Debug, Default)]
pub struct Ns3 {
    /// The UE's IMSI.
    pub imsi: Option<u64>,
    /// The UE's RNTI, of logs without IMSIs.
    pub rnti: Option<u64>,
    /// The cell's number.
    pub cell: Option<u64>,
    /// The component carrier or bandwidth part; of a log with columns for both, their numbers with a slash between.
    pub carrier: Option<String>,
    /// Whether to import received power (RSRP) instead of SINR.
    pub rsrp: bool,
}

/// What numbers UEs in a log of ns-3: in the network, and in a cell.
const IMSI: &str = "IMSI";
const RNTI: &str = "RNTI";
/// Columns of component carriers and bandwidth parts, in small letters and without separators.
const CARRIERS: [&str; 10] = [
    "componentcarrierid",
    "componentcarrier",
    "carrierid",
    "carrier",
    "ccid",
    "cc",
    "bandwidthpartid",
    "bandwidthpart",
    "bwpid",
    "bwp",
];

/// A UE, its cell, and the component carrier or bandwidth part.
type Who = (u64, u64, String);

/// Reads a log of what UEs hear, written by ns-3: tab-separated columns with names.
///
/// | file | columns |
/// | --- | --- |
/// | `DlRsrpSinrStats.txt` of the LTE module (`PhyStatsCalculator`) | `time`, `cellId`, `IMSI`, `rsrp` in W, `sinr` as a ratio, `ComponentCarrierId` |
/// | `DlDataSinr.txt`, `DlCtrlSinr.txt` of 5G-LENA (`NrPhyRxTrace`) | `Time`, `CellId`, `RNTI`, `BWPId`, `SINR(dB)` |
/// | `RxPacketTrace.txt` of 5G-LENA, and of ns3-mmwave (`MmWavePhyTrace`) | `Time` or `time`, `direction` or `DL/UL`, `cellId`, `rnti`, `bwpId` or `ccId`, `SINR(dB)` |
///
/// With `rsrp`, the channel has the received power alone. Of rows of both directions, those of the uplink are left out.
/// ns-3 logs only the serving cell. Values of the same millisecond, as of several streams or symbols, are averaged. The notes say what
/// was assumed, averaged and left out.
///
/// # Errors
/// [`Error::Choose`] if there are several UEs, cells or carriers and none was selected; [`Error::Line`], [`Error::File`], also of
/// a log of the uplink; [`Error::Io`].
pub fn ns3(from: impl Read, which: &Ns3) -> Result<Noted<Channel>, Error> {
    let text = text(from)?;
    let mut reader = ReaderBuilder::new().delimiter(b'\t').trim(Trim::All).flexible(true).from_reader(&text[..]);
    let head = reader.byte_headers().map_err(|error| Error::File(error.to_string()))?;
    let (columns, width) = (Columns::of(head, which)?, head.len());
    let (found, elsewhere, others) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut log = Log { which, columns, found, rows: 0, elsewhere, others, uplink: 0, unscheduled: 0 };
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| Error::File(error.to_string()))? {
        as_wide(&record, width, true, record.position().map_or(0, csv::Position::line))?;
        log.row(&record)?;
    }
    log.channel()
}

/// A time at which a UE was in another cell than the one selected: its value there, and its received power.
struct Elsewhere {
    at_s: f64,
    cell: u64,
    value: f64,
    power: f64,
}

/// The rows that match.
struct Log<'a> {
    which: &'a Ns3,
    columns: Columns,
    /// Values and received powers.
    found: BTreeMap<Who, [Samples; 2]>,
    rows: usize,
    /// Of a selected cell, when its UEs were in another one, by UE and carrier: the time, the cell, the value and the power.
    elsewhere: BTreeMap<(u64, String), Vec<Elsewhere>>,
    /// Other carriers than the one selected.
    others: BTreeSet<String>,
    /// Rows of the uplink, and those without a value.
    uplink: u64,
    unscheduled: u64,
}

impl Log<'_> {
    fn row(&mut self, record: &ByteRecord) -> Result<(), Error> {
        let (columns, which) = (&self.columns, self.which);
        let line = record.position().map_or(0, csv::Position::line);
        let number = |column: usize, what: &str| {
            let digits = record.get(column).and_then(|digits| str::from_utf8(digits).ok());
            let number = digits.and_then(|digits| digits.parse::<f64>().ok()).filter(|number| number.is_finite());
            number.ok_or_else(|| Error::line(line, format!("the {what} is not a number")))
        };
        if let Some(column) = columns.direction {
            let of = record.get(column).unwrap_or_default();
            match () {
                () if of.eq_ignore_ascii_case(b"DL") || of.eq_ignore_ascii_case(b"downlink") => {}
                () if of.eq_ignore_ascii_case(b"UL") || of.eq_ignore_ascii_case(b"uplink") => {
                    self.uplink += 1;
                    return Ok(());
                }
                () => return Err(Error::line(line, format!("the direction `{}` is neither DL nor UL", shown(of)))),
            }
        }
        let (ue, cell) = (number(columns.ue, columns.ue_name)? as u64, number(columns.cell, "cell")? as u64);
        let (at, value) = (number(columns.time, "time")?, number(columns.value, "value")?);
        let of_carriers = columns.carriers.iter().map(|&column| shown(record.get(column).unwrap_or_default()));
        let carrier = of_carriers.collect::<Vec<_>>().join("/");
        let (imsi, rnti) = if columns.ue_name == IMSI { (which.imsi, None) } else { (None, which.rnti) };
        if imsi.or(rnti).is_some_and(|selected| selected != ue) {
            return Ok(());
        }
        let is_elsewhere = which.cell.is_some_and(|selected| selected != cell);
        // In another cell, the number is that of another UE.
        if is_elsewhere && columns.ue_name == RNTI {
            return Ok(());
        }
        if which.carrier.as_ref().is_some_and(|selected| *selected != carrier) {
            if !is_elsewhere && self.others.len() < MOST_NAMED {
                self.others.insert(carrier);
            }
            return Ok(());
        }
        if !(0.0..=MAX_SECONDS).contains(&at) {
            return Err(Error::line(line, "the time must be from 0 to 49 days"));
        }
        self.rows += 1;
        if self.rows > MAX_SAMPLES {
            return Err(Error::File(format!("more than {MAX_SAMPLES} matching lines: select a UE, or split the file")));
        }
        let power = columns.power.map_or(Ok(1.0), |column| number(column, "received power"))?;
        if is_elsewhere {
            let is_heard = columns.is_db || value > 0.0 && power > 0.0;
            if is_heard {
                let value = if columns.is_db { value } else { decibels(value, which.rsrp) };
                let one = Elsewhere { at_s: at, cell, value, power: decibels(power, true) };
                self.elsewhere.entry((ue, carrier)).or_default().push(one);
            }
            return Ok(());
        }
        let [samples, powers] = self.found.entry((ue, cell, carrier)).or_default();
        if samples.last().is_some_and(|&(before, _)| at < before) {
            return Err(Error::line(line, "is earlier than the previous line of the same UE and cell"));
        }
        // A UE has no SINR before it is scheduled.
        if columns.is_db {
            samples.push((at, value));
        } else if value > 0.0 && power > 0.0 {
            samples.push((at, decibels(value, which.rsrp)));
            powers.push((at, decibels(power, true)));
        } else {
            self.unscheduled += 1;
        }
        Ok(())
    }

    fn channel(mut self) -> Result<Noted<Channel>, Error> {
        if self.found.len() > 1 {
            return Err(self.several());
        }
        let Some(((ue, _, carrier), [samples, powers])) = self.found.pop_first() else {
            if let Some(carrier) = self.which.carrier.as_ref().filter(|_| !self.others.is_empty()) {
                let what = format!("no line of the UE and cell is of the carrier `{}`", shown(carrier.as_bytes()));
                return Err(choose(&what, self.others.into_iter().collect()));
            }
            return Err(Error::File(match self.uplink {
                0 => "no line matches the UE and cell".to_owned(),
                count => format!("{UPLINK}: {count} rows are of the uplink, and none of the downlink matches"),
            }));
        };
        let mut notes = Vec::new();
        if self.columns.direction.is_none() && self.columns.is_db {
            notes.push("the log does not name a direction: its SINR is assumed to be that of the downlink".to_owned());
        }
        if self.uplink > 0 {
            notes.push(format!("{} rows are of the uplink and left out", self.uplink));
        }
        if self.unscheduled > 0 {
            let what = "rows have no SINR or power (0 or less, as before a UE is scheduled) and are left out";
            notes.push(format!("{} {what}", self.unscheduled));
        }
        if samples.is_empty() {
            return Err(Error::File(notes.join("; ")));
        }
        let (rows, quantity) = (samples.len(), if self.which.rsrp { Quantity::Rsrp } else { Quantity::Sinr });
        let mut elsewhere = self.elsewhere.remove(&(ue, carrier)).unwrap_or_default();
        // Of several carriers, a UE is in a cell of each.
        elsewhere.retain(|one| samples.binary_search_by(|(at, _)| at.total_cmp(&one.at_s)).is_err());
        let served = (!elsewhere.is_empty()).then(|| (samples.clone(), powers.clone()));
        let mut channel = Channel::new(quantity, samples)?;
        if self.columns.power.is_some() {
            channel = channel.beside(&Channel::new(Quantity::Rsrp, powers)?)?;
        }
        let averaged = rows - channel.samples.len();
        if averaged > 0 {
            notes.push(format!("{averaged} values are of the same millisecond as another, and averaged"));
        }
        if let Some((samples, powers)) = served {
            let what = "just before and after its time, this one is weaker by";
            notes.push(format!(
                "{} rows are of other cells that served the UE: {what} {MARGIN_DB} dB, and else out of reach",
                elsewhere.len()
            ));
            let others =
                |value: fn(&Elsewhere) -> f64| elsewhere.iter().map(|one| (one, value(one))).collect::<Vec<_>>();
            channel = match self.columns.power {
                Some(_) => {
                    let powers = while_serving(Quantity::Rsrp, powers, others(|one| one.power), MARGIN_DB)?;
                    while_serving(quantity, samples, others(|one| one.value), 0.0)?.beside(&powers)?
                }
                None => while_serving(quantity, samples, others(|one| one.value), MARGIN_DB)?,
            };
        }
        Ok(Noted { value: channel, notes })
    }

    /// The error that lists what can be selected.
    fn several(self) -> Error {
        let mut found: Vec<_> = self.found.into_iter().map(|(who, [samples, _])| (samples.len(), who)).collect();
        found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let all = |part: &dyn Fn(&Who) -> String| found.iter().map(|(_, who)| part(who)).collect::<BTreeSet<_>>().len();
        let (ues, cells, carriers) =
            (all(&|who| who.0.to_string()), all(&|who| who.1.to_string()), all(&|who| who.2.clone()));
        let option = self.columns.ue_name.to_lowercase();
        let of = found.iter().map(|(_, (ue, cell, carrier))| {
            let carrier = if carriers > 1 { format!(" --carrier {carrier}") } else { String::new() };
            format!("--{option} {ue} --cell {cell}{carrier}")
        });
        let what = match (ues > 1 || cells > 1, carriers > 1) {
            (_, false) => "several UEs or cells in the log",
            (false, true) => "several component carriers or bandwidth parts in the log, each of which is a channel",
            (true, true) => "several UEs, cells, component carriers or bandwidth parts in the log",
        };
        choose(what, of.collect())
    }
}

/// Returns a ratio in dB, or a power in W in dBm.
fn decibels(value: f64, is_power: bool) -> f64 {
    10.0 * libm::log10(value) + if is_power { 30.0 } else { 0.0 }
}

/// Returns the channel of a cell that did not serve all the time; `margin_db` is that of [`channels`].
fn while_serving(
    quantity: Quantity,
    samples: Samples,
    others: Vec<(&Elsewhere, f64)>,
    margin_db: f64,
) -> Result<Channel, Error> {
    // No number of another cell.
    const OWN: &str = "own";
    let own = samples.into_iter().map(|(at_s, value)| Serving { at_s, cell: OWN.to_owned(), value });
    let of = |(one, value): (&Elsewhere, f64)| Serving { at_s: one.at_s, cell: one.cell.to_string(), value };
    let mut serving: Vec<Serving> = own.chain(others.into_iter().map(of)).collect();
    serving.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    serving[0].at_s = 0.0;
    let own = channels(&serving, quantity, margin_db)?.remove(OWN);
    own.ok_or_else(|| Error::File("no line matches the UE and cell".to_owned()))
}

/// The columns of a log of ns-3.
struct Columns {
    time: usize,
    cell: usize,
    ue: usize,
    /// [`IMSI`] or [`RNTI`].
    ue_name: &'static str,
    value: usize,
    /// Whether the values are in dB, and not ratios or W.
    is_db: bool,
    /// The received power beside the value.
    power: Option<usize>,
    /// `DL` or `UL`.
    direction: Option<usize>,
    /// Of component carriers and bandwidth parts.
    carriers: Vec<usize>,
}

impl Columns {
    fn of(head: &ByteRecord, which: &Ns3) -> Result<Columns, Error> {
        let bare = |name: &[u8]| {
            let name = name.trim_ascii_start().strip_prefix(b"%").unwrap_or(name).trim_ascii();
            String::from_utf8_lossy(name).to_lowercase()
        };
        let names: Vec<String> = head.iter().map(bare).collect();
        let column = |all: &[&str]| names.iter().position(|name| all.iter().any(|one| name.eq_ignore_ascii_case(one)));
        let place = |all: &[&str]| {
            column(all).ok_or_else(|| {
                let logs = "DlRsrpSinrStats.txt, or of 5G-LENA's or ns3-mmwave's DlDataSinr.txt and RxPacketTrace.txt";
                Error::line(1, format!("the first line has no column `{}`: not that of ns-3's {logs}", all[0]))
            })
        };
        let (time, cell) = (place(&["time"])?, place(&["cellid"])?);
        if column(&["sinrlinear"]).is_some() && !which.rsrp {
            let what = "import DlRsrpSinrStats.txt, whose received power sets the uplink's loss, too";
            return Err(Error::File(format!("{UPLINK}: {what}")));
        }
        let (ue, ue_name) = match (column(&[IMSI]), column(&[RNTI])) {
            // Of a log with both, the number in the network, which handovers do not change.
            (Some(imsi), _) => (imsi, IMSI),
            (None, Some(rnti)) => (rnti, RNTI),
            (None, None) => (place(&[IMSI])?, IMSI),
        };
        let letters = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        let carriers: Vec<usize> =
            (0..names.len()).filter(|&at| CARRIERS.contains(&letters(&names[at]).as_str())).collect();
        let wrong = match (ue_name, which.imsi, which.rnti) {
            (IMSI, _, Some(_)) => Some("--rnti: the log has IMSIs: select a UE with --imsi"),
            (RNTI, Some(_), _) => Some("--imsi: the log has no IMSIs: select a UE with --rnti"),
            _ if which.carrier.is_some() && carriers.is_empty() => {
                Some("--carrier: the log has no column of component carriers or bandwidth parts")
            }
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
        let power = power.filter(|_| !which.rsrp && !is_db);
        let direction = column(&["direction", "dl/ul"]);
        Ok(Columns { time, cell, ue, ue_name, value, is_db, power, direction, carriers })
    }
}
