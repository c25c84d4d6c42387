//! `ranway import`: traces, recorded channels, buildings and routes from other tools' files.

mod drive;
mod parts;

use parts::{PartArgs, TextureArgs, TimeUnit, WhereArgs, at, noted, open, rate_unit};

use crate::failure::Failure;
use crate::out::{refuse_existing, write_new};
use crate::terminal;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use import::buildings::{Layout, Map};
use import::channel::{Channel, Ns3, Omnet, Quantity};
use import::route::{self, Route};
use import::{Columns, Covers, Format, Unit, capture};
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The kinds of files to import.
#[derive(Subcommand)]
pub(crate) enum ImportCommand {
    /// A table of times and rates (CSV), as a trace of delivery opportunities
    Rates(RatesArgs),
    /// A phone's log of a drive (CSV): cells and their powers as recorded channels, rates as traces, and a timeline
    Drive(drive::DriveArgs),
    /// A capture (pcap, pcapng, also with gzip) of one flow, as a trace of delivery opportunities
    Capture(CaptureArgs),
    /// A trace in mahimahi's format: check it, and optionally extract a part
    Mahimahi(MahimahiArgs),
    /// A log of ns-3's LTE module, 5G-LENA or ns3-mmwave, as a recorded channel
    Ns3(Ns3Args),
    /// A vector from OMNeT++ (Simu5G, INET), as a recorded channel
    Omnet(OmnetArgs),
    /// A map (GeoJSON), as buildings of a radio network
    Buildings(BuildingsArgs),
    /// A recorded track (GPX) or a trip of a timetable (GTFS), as the mobility of a UE
    Route(RouteArgs),
}

/// The input and output files.
#[derive(ClapArgs)]
pub(crate) struct FileArgs {
    /// The file to import
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; must not exist yet
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

#[derive(ClapArgs)]
#[command(
    after_help = "The first line names the columns; of a file without a header, select columns by number. Columns are recognized \
by names with a unit, such as `time_s`, `Time (ms)`; and `mbps`, `Throughput [kbit/s]`, `rate_MBps`, `bytes_per_s`, `rx_kbytes`: \
`MBps` and `MB/s` are bytes, `Mbps` and `Mb/s` bits. A unit that is not recognized must be set. Times may also be dates \
(2024-01-30T01:00:00Z, 2024.01.30_01.00.00). Separators may be commas, semicolons, tabs or blanks; a row with `-` or nothing for a \
value is left out.

A rate holds until the time of the next row, an amount of data came since the previous row, and an amount that is called a total \
came since the start (--covers).

Examples:
  ranway import rates drive.csv --out drive.trace
  ranway import rates trace.txt --time 1 --rate 2 --time-unit s --unit mbps --out pensieve.trace
  ranway import rates report_bus_0001.log --format ghent --out bus.trace
  ranway import rates lumos5g.csv --format lumos5g --run 3 --out walk.trace
  ranway import rates drive.csv --rate DL_bitrate --unit kbps --begin 30 --length 60 --out drive.trace

A scenario uses it as the rate of a link:
  rate = { kind = \"trace\", file = \"drive.trace\" }"
)]
pub(crate) struct RatesArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The form of a known set or tool, which says what other options do not
    #[arg(long)]
    format: Option<TableFormat>,
    /// The column of times, by name or number from 1
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// The column of rates, by name or number from 1
    #[arg(long, value_name = "COLUMN")]
    rate: Option<String>,
    /// The unit of the rates or amounts, if the column's name does not include it, such as kbps, MB/s or bytes
    #[arg(long, value_parser = rate_unit)]
    unit: Option<Unit>,
    /// The unit of the times, if the column's name does not include it
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// The run whose rows count, if the table has a column of runs and several of them
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    rows: WhereArgs,
    /// What a row covers [default: until-next for rates; since-previous for amounts, and since-start for totals]
    #[arg(long, value_name = "TIME")]
    covers: Option<RowCovers>,
    #[command(flatten)]
    texture: TextureArgs,
    #[command(flatten)]
    part: PartArgs,
}

/// The form of a table of a known set or tool.
#[derive(Clone, Copy, ValueEnum)]
enum TableFormat {
    /// traces for Pensieve: seconds and Mbit/s, without a header
    Pensieve,
    /// 4G logs of Ghent, and HSDPA logs of Simula: milliseconds, and bytes since the previous row, without a header
    Ghent,
    /// logs of G-NetTrack, and the sets uccmisl/4Gdataset and 5Gdataset: bitrates in kbit/s
    GNettrack,
    /// the set of Minnesota, a row each second: rates in Mbit/s
    Lumos5g,
}

impl TableFormat {
    fn format(self) -> Format {
        match self {
            TableFormat::Pensieve => Format::Pensieve,
            TableFormat::Ghent => Format::Ghent,
            TableFormat::GNettrack => Format::GNetTrack,
            TableFormat::Lumos5g => Format::Lumos5g,
        }
    }
}

/// The time that a row of a table covers.
#[derive(Clone, Copy, ValueEnum)]
enum RowCovers {
    /// the time since the previous row
    SincePrevious,
    /// the time until the next row
    UntilNext,
    /// the time since the start: the column is a counter
    SinceStart,
}

#[derive(ClapArgs)]
#[command(
    after_help = "The trace has a delivery opportunity for every 1500 bytes of the flow. That equals the capacity of the \
link only while its queue is never empty: capture at the receiver of a flow that saturates the link, such as a long \
download.

Examples:
  ranway import capture download.pcapng --list
  ranway import capture download.pcapng --flow 'tcp 192.0.2.1:443 > 10.0.0.2:51644' --out cell.trace
  ranway import capture download.pcapng --to 10.0.0.2 --out cell.trace       all packets to that host
  ranway import capture router.pcapng --to 10.0.0.2 --interface wwan0 --out cell.trace

A scenario uses it as the rate of a link:
  rate = { kind = \"trace\", file = \"cell.trace\" }"
)]
pub(crate) struct CaptureArgs {
    /// The capture
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The file to write; must not exist yet
    #[arg(long, short, value_name = "FILE", required_unless_present = "list")]
    out: Option<PathBuf>,
    /// List the flows, largest first, and write nothing
    #[arg(long, conflicts_with_all = ["out", "flow", "from", "to", "interface"])]
    list: bool,
    /// The flow, as printed by --list
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    /// Only packets from this address
    #[arg(long, value_name = "ADDRESS")]
    from: Option<IpAddr>,
    /// Only packets to this address
    #[arg(long, value_name = "ADDRESS")]
    to: Option<IpAddr>,
    /// Only packets of this interface, as printed by --list; needed if the selected packets are of several
    #[arg(long, value_name = "INTERFACE")]
    interface: Option<String>,
    #[command(flatten)]
    part: PartArgs,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Ranway's traces have mahimahi's format: such a file can be used unchanged. Import it to print its mean \
rate, or to extract a part of it.

Examples:
  ranway import mahimahi Verizon-LTE-short.down --begin 30 --length 60 --out verizon.trace"
)]
pub(crate) struct MahimahiArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    part: PartArgs,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Reads DlRsrpSinrStats.txt of the LTE module (LteHelper::EnablePhyTraces), which has SINR and received power; \
DlDataSinr.txt and DlCtrlSinr.txt of 5G-LENA (NrHelper::EnableDlDataPhyTraces), and RxPacketTrace.txt of 5G-LENA and ns3-mmwave, which \
have the SINR. All have each UE's values for its serving cell. An SINR of the uplink is the base station's, and is not read. Component \
carriers and bandwidth parts are channels of their own.

Examples:
  ranway import ns3 DlRsrpSinrStats.txt --imsi 1 --cell 2 --out cell-2.csv
  ranway import ns3 DlRsrpSinrStats.txt --imsi 1 --cell 2 --rsrp --out cell-2.csv
  ranway import ns3 DlDataSinr.txt --rnti 1 --cell 2 --out cell-2.csv

A scenario uses it as the channel of a UE, a file for each cell:
  channel = { kind = \"recorded\", files = { west = \"cell-2.csv\" } }"
)]
pub(crate) struct Ns3Args {
    #[command(flatten)]
    file: FileArgs,
    /// The UE, if there are several
    #[arg(long)]
    imsi: Option<u64>,
    /// The UE by its number in the cell, in logs without IMSIs
    #[arg(long)]
    rnti: Option<u64>,
    /// The cell, if there are several
    #[arg(long)]
    cell: Option<u64>,
    /// The component carrier or bandwidth part, if there are several
    #[arg(long, value_name = "ID")]
    carrier: Option<String>,
    /// Import the received power (RSRP) alone, without the SINR
    #[arg(long)]
    rsrp: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Reads the output of `opp_scavetool export -F CSV-R -o out.csv results/*.vec`.

Examples:
  ranway import omnet out.csv --module 'ue[0]' --vector measuredSinrDl --out cell.csv

A scenario uses it as the channel of a UE, a file for each cell:
  channel = { kind = \"recorded\", files = { cell = \"cell.csv\" }, loss_db = 110 }")]
pub(crate) struct OmnetArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Text contained in the module's path, if there are several modules
    #[arg(long, value_name = "TEXT")]
    module: Option<String>,
    /// The vector's name, if there are several vectors
    #[arg(long, value_name = "NAME")]
    vector: Option<String>,
    /// Text contained in the run's name, if there are several runs
    #[arg(long, value_name = "TEXT")]
    run: Option<String>,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Reads GeoJSON with longitudes and latitudes, such as an extract of OpenStreetMap (overpass-turbo.eu exports \
ways with the tag `building` as GeoJSON). Each building becomes the smallest box around it with sides to the cardinal \
directions; turn the map so that most walls have these directions. Heights come from `height` or `building:levels`.

Examples:
  ranway import buildings campus.geojson --out campus.toml
  ranway import buildings campus.geojson --origin 60.1867,24.8277 --rotate -12 --out campus.toml

A scenario with a table [radio] includes it:
  include = [\"campus.toml\"]"
)]
pub(crate) struct BuildingsArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The place that becomes (0, 0), in degrees [default: the middle of the map]
    #[arg(long, value_name = "LATITUDE,LONGITUDE", value_parser = place, allow_hyphen_values = true)]
    origin: Option<[f64; 2]>,
    /// Turn the map counterclockwise by this many degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 0.0, value_parser = degrees, allow_hyphen_values = true)]
    rotate: f64,
    /// Height in metres of buildings of which the map has none
    #[arg(long, value_name = "METRES", default_value_t = 10.0, value_parser = metres)]
    height: f64,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Reads GPX files, and GTFS feeds as a directory or a zip file. The route is a parameter with the name of the file written: places \
with the times at which they are reached, so that the UE has the speeds and stops of the recording, or of the timetable. Give the same \
--origin and --rotate as to `ranway import buildings` to put a route between buildings.

Examples:
  ranway import route drive.gpx --out drive.toml
  ranway import route walk.gpx --speed 5 --out walk.toml               5 km/h: the track has no times
  ranway import route gtfs.zip --trip 1043.T0.22 --out bus.toml

A scenario includes the file, and its UE moves so:
  include = [\"bus.toml\"]
  [[radio.ues]]
  name = \"phone\"
  mobility = \"${bus}\""
)]
pub(crate) struct RouteArgs {
    #[command(flatten)]
    file: FileArgs,
    /// The trip of a GTFS feed, if there are several
    #[arg(long, value_name = "ID")]
    trip: Option<String>,
    /// The track of a GPX file, if there are several: its number from 1 or its name, or `all` to join them by straight lines
    #[arg(long, value_name = "TRACK")]
    track: Option<String>,
    /// Speed in km/h on a track without times; replaces its times
    #[arg(long, value_name = "KM/H", value_parser = kmh)]
    speed: Option<f64>,
    /// The place that becomes (0, 0), in degrees [default: the beginning of the route]
    #[arg(long, value_name = "LATITUDE,LONGITUDE", value_parser = place, allow_hyphen_values = true)]
    origin: Option<[f64; 2]>,
    /// Turn the map counterclockwise by this many degrees
    #[arg(long, value_name = "DEGREES", default_value_t = 0.0, value_parser = degrees, allow_hyphen_values = true)]
    rotate: f64,
    /// Height of the UE in metres above ground
    #[arg(long, value_name = "METRES", default_value_t = 1.5, value_parser = metres)]
    height: f64,
}

fn kmh(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=1000.0).contains(number));
    number.ok_or_else(|| "expected a speed in km/h from 0.1 to 1000".to_owned())
}

fn place(text: &str) -> Result<[f64; 2], String> {
    let number = |text: &str, most: f64| text.trim().parse::<f64>().ok().filter(|n| n.abs() <= most);
    let both = text.split_once(',').and_then(|(north, east)| Some([number(north, 85.0)?, number(east, 180.0)?]));
    both.ok_or_else(|| "expected a latitude and a longitude in degrees, such as 60.1867,24.8277".to_owned())
}

fn degrees(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.abs() <= 360.0);
    number.ok_or_else(|| "expected an angle in degrees from -360 to 360".to_owned())
}

fn metres(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.1..=1000.0).contains(number));
    number.ok_or_else(|| "expected a height in metres from 0.1 to 1000".to_owned())
}

/// The file that a command writes; a drive log becomes a folder.
fn written(command: &ImportCommand) -> Option<&Path> {
    let file = match command {
        ImportCommand::Rates(args) => &args.file,
        ImportCommand::Mahimahi(args) => &args.file,
        ImportCommand::Ns3(args) => &args.file,
        ImportCommand::Omnet(args) => &args.file,
        ImportCommand::Buildings(args) => &args.file,
        ImportCommand::Route(args) => &args.file,
        ImportCommand::Capture(args) => return args.out.as_deref(),
        ImportCommand::Drive(_) => return None,
    };
    Some(&file.out)
}

pub(crate) fn run(command: &ImportCommand) -> Result<(), Failure> {
    if let Some(out) = written(command) {
        refuse_existing(out)?;
    }
    match command {
        ImportCommand::Rates(args) => {
            let seconds = args.time_unit.map(TimeUnit::seconds);
            let covers = args.covers.map(|covers| match covers {
                RowCovers::SincePrevious => Covers::SincePrevious,
                RowCovers::UntilNext => Covers::UntilNext,
                RowCovers::SinceStart => Covers::SinceStart,
            });
            let columns = Columns {
                time: args.time.clone(),
                rate: args.rate.clone(),
                unit: args.unit,
                seconds,
                covers,
                texture: args.texture.spread(),
                run: args.run.clone(),
                runs: None,
                only: args.rows.only.clone(),
            };
            let columns =
                args.format.map_or_else(|| columns.clone(), |format| format.format().complete(columns.clone()));
            let FileArgs { file, out } = &args.file;
            let trace = import::rates(open(file)?, &columns, args.part.begin, args.part.length);
            write_trace(out, &noted(trace, file)?)
        }
        ImportCommand::Drive(args) => drive::run(args),
        ImportCommand::Capture(args) => {
            let capture = capture::read(open(&args.file)?).map_err(at(&args.file))?;
            let Some(out) = &args.out else { return list(&capture) };
            let which = capture::Which {
                flow: args.flow.clone(),
                from: args.from,
                to: args.to,
                interface: args.interface.clone(),
            };
            let trace = capture.trace(&which, args.part.begin, args.part.length);
            write_trace(out, &noted(trace, &args.file)?)
        }
        ImportCommand::Mahimahi(args) => {
            let FileArgs { file, out } = &args.file;
            let trace = import::mahimahi(open(file)?, args.part.begin, args.part.length);
            write_trace(out, &trace.map_err(at(file))?)
        }
        ImportCommand::Ns3(args) => {
            let FileArgs { file, out } = &args.file;
            let carrier = args.carrier.clone();
            let which = Ns3 { imsi: args.imsi, rnti: args.rnti, cell: args.cell, carrier, rsrp: args.rsrp };
            let channel = import::channel::ns3(open(file)?, &which);
            write_channel(out, &noted(channel, file)?)
        }
        ImportCommand::Omnet(args) => {
            let FileArgs { file, out } = &args.file;
            let which = Omnet { module: args.module.clone(), vector: args.vector.clone(), run: args.run.clone() };
            let channel = import::channel::omnet(open(file)?, &which);
            write_channel(out, &noted(channel, file)?)
        }
        ImportCommand::Buildings(args) => {
            let FileArgs { file, out } = &args.file;
            let layout = Layout { origin: args.origin, rotate_deg: args.rotate, height_m: args.height };
            let map = import::buildings::geojson(open(file)?, &layout);
            write_map(out, &map.map_err(at(file))?)
        }
        ImportCommand::Route(args) => {
            let FileArgs { file, out } = &args.file;
            let speed = args.speed.map(|kmh| kmh / 3.6);
            let layout = route::Layout { origin: args.origin, rotate_deg: args.rotate, height_m: args.height, speed };
            let is_gpx = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gpx"));
            let route = if is_gpx {
                if args.trip.is_some() {
                    return Err(Failure::Invalid("--trip: a GPX file has no trips, only a GTFS feed has".to_owned()));
                }
                route::gpx(open(file)?, args.track.as_deref(), &layout)
            } else {
                if args.track.is_some() {
                    return Err(Failure::Invalid(
                        "--track: a GTFS feed has trips; only for GPX files (*.gpx)".to_owned(),
                    ));
                }
                if args.speed.is_some() {
                    return Err(Failure::Invalid(
                        "--speed: a GTFS feed has times; only for GPX files (*.gpx)".to_owned(),
                    ));
                }
                route::gtfs(file, args.trip.as_deref(), &layout)
            };
            write_route(out, &noted(route, file)?)
        }
    }
}

fn list(capture: &capture::Capture) -> Result<(), Failure> {
    let mut out = terminal::stdout();
    for capture::Listed { flow, interface, packets, bytes } in capture.flows() {
        let at = interface.map_or_else(String::new, |interface| format!("   interface {interface}"));
        writeln!(out, "{flow}   {packets} packets, {:.3} MB{at}", bytes as f64 / 1e6)?;
    }
    for note in &capture.notes {
        writeln!(out, "{note}")?;
    }
    Ok(())
}

fn write_trace(path: &Path, trace: &import::Trace) -> Result<(), Failure> {
    write_new(path, &trace.to_string())?;
    let (seconds, mbps) = (trace.period().as_secs_f64(), trace.mean_rate().as_mbps());
    let mut out = terminal::stdout();
    writeln!(
        out,
        "{}: {seconds:.3} s, mean {mbps:.3} Mbit/s, {} opportunities",
        path.display(),
        trace.opportunities()
    )?;
    writeln!(out, "use: rate = {{ kind = \"trace\", file = {:?} }}", path.display().to_string())?;
    Ok(())
}

fn write_channel(path: &Path, channel: &Channel) -> Result<(), Failure> {
    write_new(path, &channel.to_csv())?;
    let values = || channel.samples.iter().map(|&(_, value)| value);
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let (from, to) = (channel.samples[0].0, channel.samples[channel.samples.len() - 1].0);
    let mut out = terminal::stdout();
    writeln!(
        out,
        "{}: {} samples from {from:.3} s to {to:.3} s, {low:.1} to {high:.1}",
        path.display(),
        channel.samples.len()
    )?;
    let has_power = channel.quantity == Quantity::Rsrp || channel.powers.is_some();
    let loss = if has_power { "" } else { ", loss_db = DB" };
    writeln!(
        out,
        "use: channel = {{ kind = \"recorded\", files = {{ CELL = {:?} }}{loss} }}",
        path.display().to_string()
    )?;
    if !has_power {
        writeln!(out, "loss_db is the path loss of the uplink, which does not follow from an SINR or CQI")?;
    }
    Ok(())
}

fn write_map(path: &Path, map: &Map) -> Result<(), Failure> {
    write_new(path, &map.to_toml())?;
    let [north, east] = map.origin;
    let mut out = terminal::stdout();
    writeln!(
        out,
        "{}: {} buildings, which fill {:.0} % of their boxes; {} without a height; (0, 0) is at {north:.6},{east:.6}",
        path.display(),
        map.blocks.len(),
        map.filled * 100.0,
        map.without_height
    )?;
    writeln!(out, "use: include = [{:?}]", path.display().to_string())?;
    Ok(())
}

fn write_route(path: &Path, route: &Route) -> Result<(), Failure> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if stem.is_empty() || !stem.chars().all(is_key) {
        let what = "the file's name names a parameter: expected letters, digits, `-` and `_`";
        return Err(Failure::Invalid(format!("{}: {what}", path.display())));
    }
    write_new(path, &route.to_toml(&stem))?;
    let ([north, east], seconds) = (route.origin, route.seconds());
    let mut out = terminal::stdout();
    writeln!(
        out,
        "{}: {:.2} km in {seconds:.0} s, {} stops, {} points; (0, 0) is at {north:.6},{east:.6}",
        path.display(),
        route.length_m() / 1e3,
        route.stops(),
        route.points.len()
    )?;
    writeln!(out, "use: include = [{:?}], and mobility = \"${{{stem}}}\" for a UE", path.display().to_string())?;
    Ok(())
}
