//! `ranway import drive`: the folder that a drive log becomes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use import::drive::{self, Columns, Direction};
use import::{Noted, Unit};

use super::parts::{PartArgs, TextureArgs, TimeUnit, WhereArgs, at, noted, open, rate_unit};
use crate::failure::Failure;
use crate::out::{counted, refuse_existing, write_new};
use crate::terminal;

#[derive(ClapArgs)]
#[command(
    after_help = "Reads the logs of phones, a table with a row about each second: G-NetTrack's, those of the sets uccmisl/4Gdataset \
and 5Gdataset, and others with names such as RSRP, ss_rsrp, SNR, CellID, dl_mbps. Other columns are selected by name or number. The \
folder written has
  scenario.toml    a phone with a recorded channel of each cell that served; handovers happen when they did
  cell-ID.csv      the channels: received power (RSRP), SINR, or both
  timeline.csv     all rows: cell, technology, RSRP, RSRQ, SINR, CQI, rates, place; what is missing is empty
  down.trace, up.trace    the rates, if there are any

Examples:
  ranway import drive B_2020.02.14_09.38.22.csv --out drive
  ranway import drive log.csv --cell PCI --rsrp 'SS-RSRP (dBm)' --downlink rate_dl --unit Mbps --out drive
  ranway run drive/scenario.toml"
)]
pub(crate) struct DriveArgs {
    /// The log
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The folder to write; must not exist yet
    #[arg(long, short, value_name = "FOLDER")]
    out: PathBuf,
    /// The column of times, by name or number from 1
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// The unit of the times, if the column's name does not include it
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// The column of the serving cell's identity
    #[arg(long, value_name = "COLUMN")]
    cell: Option<String>,
    /// The operator whose rows count, if the log has several; `all` for all of them, whose cells are told apart
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    #[command(flatten)]
    rows: WhereArgs,
    /// The column of the received power (RSRP) in dBm
    #[arg(long, value_name = "COLUMN")]
    rsrp: Option<String>,
    /// The column of the received quality (RSRQ) in dB
    #[arg(long, value_name = "COLUMN")]
    rsrq: Option<String>,
    /// The column of the SINR in dB
    #[arg(long, value_name = "COLUMN")]
    sinr: Option<String>,
    /// The column of the CQI
    #[arg(long, value_name = "COLUMN")]
    cqi: Option<String>,
    /// The column of the downlink's rate
    #[arg(long, value_name = "COLUMN")]
    downlink: Option<String>,
    /// The column of the uplink's rate
    #[arg(long, value_name = "COLUMN")]
    uplink: Option<String>,
    /// The unit of the rates, if their names do not include it, such as kbps or MB/s
    #[arg(long, value_parser = rate_unit)]
    unit: Option<Unit>,
    /// What the channels are made of [default: rsrp if it was recorded, else sinr]
    #[arg(long)]
    quantity: Option<Made>,
    /// The technology of the scenario's cells [default: nr if most rows are of 5G, else lte]
    #[arg(long)]
    technology: Option<Technology>,
    #[command(flatten)]
    texture: TextureArgs,
    #[command(flatten)]
    part: PartArgs,
}

/// What channels are made of.
#[derive(Clone, Copy, ValueEnum)]
enum Made {
    /// received power: the losses of both directions follow from it, and interference from the scenario's cells
    Rsrp,
    /// SINR of the downlink
    Sinr,
    /// received power, and SINR for what is heard of other cells
    Both,
}

/// The technology of cells.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Technology {
    Lte,
    Nr,
}

/// Imports a log.
pub(crate) fn run(args: &DriveArgs) -> Result<(), Failure> {
    refuse_existing(&args.out)?;
    let columns = Columns {
        time: args.time.clone(),
        seconds: args.time_unit.map(TimeUnit::seconds),
        cell: args.cell.clone(),
        operator: args.operator.clone(),
        rsrp: args.rsrp.clone(),
        rsrq: args.rsrq.clone(),
        sinr: args.sinr.clone(),
        cqi: args.cqi.clone(),
        downlink: args.downlink.clone(),
        uplink: args.uplink.clone(),
        unit: args.unit,
        only: args.rows.only.clone(),
    };
    let drive = noted(import::drive::read(open(&args.file)?, &columns), &args.file)?;
    let drive = drive.part(args.part.begin, args.part.length).map_err(at(&args.file))?;
    let mut files: Vec<(String, String)> = vec![("timeline.csv".to_owned(), drive.to_csv())];
    let mut says: Vec<String> = Vec::new();
    let made = args.quantity.map_or_else(|| drive.made_of(), |made| Some(made.of()));
    if let Some(made) = made {
        let channels = drive.channels(made).map_err(at(&args.file))?;
        let is_nr = args.technology.map_or_else(|| drive.is_nr(), |technology| technology == Technology::Nr);
        says.push(format!(
            "{}, {} of {}, {}",
            counted(channels.len() as u64, "cell"),
            counted(drive.handovers() as u64, "handover"),
            if is_nr { "NR" } else { "LTE" },
            match made {
                drive::Made::Rsrp => "channels of received powers",
                drive::Made::Sinr => "channels of SINR",
                drive::Made::Both => "channels of received powers and SINR",
            },
        ));
        if made == drive::Made::Sinr {
            let what = "an SINR of the downlink says nothing of the uplink: edit its `loss_db` in the scenario";
            terminal::message!("note: {}: {what}", args.file.display());
        }
        files.push((
            "scenario.toml".to_owned(),
            scenario(&args.file, &channels, (is_nr, made != drive::Made::Sinr), drive.seconds()),
        ));
        files.extend(channels.into_iter().map(|(cell, text)| (format!("{cell}.csv"), text)));
    }
    if made.is_none() {
        let what = "has no received power or SINR of LTE or 5G: no scenario is written";
        terminal::message!("note: {}: {what}", args.file.display());
    }
    for (direction, name) in [(Direction::Down, "down.trace"), (Direction::Up, "up.trace")] {
        match drive.trace(direction, args.texture.spread()) {
            Ok(None) => {}
            Ok(Some(Noted { value, notes })) => {
                for note in notes {
                    terminal::message!("note: {name}: {note}");
                }
                let (seconds, mbps) = (value.period().as_secs_f64(), value.mean_rate().as_mbps());
                says.push(format!("{name}: {seconds:.3} s, mean {mbps:.3} Mbit/s"));
                files.push((name.to_owned(), value.to_string()));
            }
            // An idle direction is no fault of the other.
            Err(error) => terminal::message!("note: {name} is not written: {error}"),
        }
    }
    write(&args.out, &files)?;
    let mut out = terminal::stdout();
    writeln!(out, "{}: {:.3} s, {}", args.out.display(), drive.seconds(), counted(drive.rows.len() as u64, "row"))?;
    for line in says {
        writeln!(out, "{line}")?;
    }
    if made.is_some() {
        writeln!(out, "use: ranway run {}", args.out.join("scenario.toml").display())?;
    }
    Ok(())
}

impl Made {
    fn of(self) -> drive::Made {
        match self {
            Made::Rsrp => drive::Made::Rsrp,
            Made::Sinr => drive::Made::Sinr,
            Made::Both => drive::Made::Both,
        }
    }
}

/// Writes a folder of files, completely or not at all.
fn write(out: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    refuse_existing(out)?;
    let Some(name) = out.file_name() else {
        return Err(Failure::Invalid(format!("{}: expected a folder's name", out.display())));
    };
    let parent = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let hidden = parent.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    fs::create_dir(&hidden).with_context(|| out.display().to_string())?;
    let written = files.iter().try_for_each(|(name, text)| write_new(&hidden.join(name), text));
    let moved = written.and_then(|()| Ok(fs::rename(&hidden, out).with_context(|| out.display().to_string())?));
    if moved.is_err() {
        // What is left of it is of no use; the first error counts.
        fs::remove_dir_all(&hidden).ok();
    }
    moved
}

/// The scenario of a phone with these channels.
fn scenario(
    file: &Path,
    channels: &BTreeMap<String, String>,
    (is_nr, has_power): (bool, bool),
    seconds: f64,
) -> String {
    let title = file.file_name().map_or_else(|| "drive".to_owned(), |name| name.to_string_lossy().into_owned());
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (table, carrier) = match is_nr {
        true => ("nr", "frequency_mhz = 3500.0 # not recorded\nbandwidth_mhz = 100 # not recorded"),
        false => ("lte", "bandwidth = \"20 MHz\" # not recorded"),
    };
    let mut text = format!(
        "# Written by `ranway import drive`. What was not recorded is marked: edit it.\n\
         title = {}\nduration = \"{:.3} s\"\n\n[{table}]\n{carrier}\nserver_delay = \"10 ms\" # not recorded\n\
         # A cell's times are those of the log; the event of a handover follows them at once.\n\
         handover = {{ time_to_trigger = \"40 ms\", filter = 0 }}\ncells = [\n",
        quoted(&format!("Drive {title}")),
        seconds.min(86_400.0),
    );
    for cell in channels.keys() {
        let what = "# place and power not recorded: the loss of the uplink is the power less the received power";
        writeln!(text, "    {{ name = {}, position = [0, 0, 30], power_dbm = 46 }}, {what}", quoted(cell))
            .expect("a text takes everything");
    }
    let files: Vec<String> =
        channels.keys().map(|cell| format!("{} = {}", quoted(cell), quoted(&format!("{cell}.csv")))).collect();
    write!(
        text,
        "]\n\n[[{table}.ues]]\nname = \"phone\"\nmobility = [100, 0, 1.5] # of no effect: the channel is recorded\n\
         channel = {{ kind = \"recorded\", files = {{ {} }}{} }}\n\n\
         [[flows]]\nname = \"download\"\nfrom = \"server\"\nto = \"phone\"\ncc = \"cubic\"\n",
        files.join(", "),
        if has_power { "" } else { ", loss_db = 120" }
    )
    .expect("a text takes everything");
    text
}
