//! `ranway analyse`: measurements of others, and our own beside them.

use std::fs::metadata;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use analyse::{Analysis, Error, Options, Over, Replay, Rules, analyse};
use clap::{Args as ClapArgs, ValueEnum};
use console::Term;
use record::{Output, Results};
use scenario::Scenario;
use units::Span;

use crate::failure::Failure;
use crate::out::{default_out, refuse_existing, stem, write_new};
use crate::progress::Bar;
use crate::terminal::{self, message};
use crate::{interrupt, table};

/// The options of `ranway analyse`.
#[derive(ClapArgs)]
#[command(
    after_help = "Captures are pcap or pcapng files of Ethernet, Linux cooked (tcpdump -i any), raw IP, loopback or PPP. For each TCP \
connection the tables and the report hold goodput, round-trip times, retransmissions, reordering, spurious retransmissions, \
bytes in flight, windows, and a time-sequence plot. The best place for a capture is the sender's end: there, everything \
that is sent again is seen to be. The book, under Analysing captures, defines every value and says how wrong it can be.

Two captures that have packets in common are taken for both ends of a path, such as a client and its server: then one-way \
delays and losses are measured as well, after the offset and drift between both clocks. Otherwise, and with --apart, each \
file is a point of the results, as the points of a sweep are.

Other inputs are recognized by their content, and give what they have of the same tables; what they do not know is missing. \
Each file, test of nettest and point of results is a point, so that simulations, emulations and measurements are in one report. \
The metadata of modems belong to the inputs during which they were told.

--scenario writes a scenario that replays a point: where received powers were recorded, cells with these channels; elsewhere \
(or with --link), a link with the capacity that the flows got. Flows send what they sent: as much as the path takes, or what their \
application wrote. Its comments tell what was not measured.

Below the table stands what held the senders of the largest flows back, as their kernel (ss) or their packets tell it. A capture, a log \
of ss and a result of iperf3 of one connection are on one time axis.

Capture headers only, so that files stay small, and keep both directions:
  tcpdump -i eth0 -s 128 -w upload.pcap tcp

Examples:
  ranway analyse upload.pcap
  ranway analyse upload.pcap --flow :443 --out results/upload
  ranway analyse client.pcap server.pcap                  both ends
  ranway analyse cubic.pcap bbr.pcap --apart              side by side
  ranway analyse upload.pcap --as wireshark               the verdicts of Wireshark, to compare with it
  ranway analyse simulated/ measured/                     results side by side
  while sleep 0.1; do date +%s.%N; ss -tin dst 192.0.2.1; done > ss.log
  ranway analyse ss.log                                   what limited the flows, by their kernel
  ranway analyse upload.pcap ss.log iperf3.json           three views of one connection
  ranway analyse nettest/ metadata.json                   MONROE's tests and radio
  ranway analyse measured/ --point 0 --scenario drive.toml && ranway run drive.toml
  ranway analyse upload.pcap --json | jq '.summary.points[0].flows[0].rtt_p95_ms.mean'

In Python, ranway.read(\"ranway-out/upload-analysed\").table(\"tcp_flows\") has the counts, and ranway.plot.time_sequence draws \
them."
)]
pub(crate) struct AnalyseArgs {
    /// Captures (pcap, pcapng), directories of results, `tcp_info.parquet`, logs of `ss -ti`, and results of iperf3, ndt7 and MONROE's
    /// nettest with its modems' metadata
    #[arg(value_name = "INPUT", required = true)]
    files: Vec<PathBuf>,
    /// Whose definitions of retransmissions and their kin to use
    #[arg(long = "as", value_name = "RULES", value_enum, default_value_t = RulesArg::Ranway)]
    rules: RulesArg,
    /// Only flows whose name contains this text, such as an address or `:443`; give several
    #[arg(long, value_name = "TEXT")]
    flow: Vec<String>,
    /// Insist that two captures are of both ends of a path
    #[arg(long, conflicts_with = "apart")]
    ends: bool,
    /// Analyse each file alone
    #[arg(long)]
    apart: bool,
    /// Time between the snapshots of a log of `ss` that has no times
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Span>,
    /// Write a scenario that replays a point of the results: the same flows over the radio or the capacity that was measured
    #[arg(long, value_name = "FILE.toml")]
    scenario: Option<PathBuf>,
    /// The point to replay, from 0, if there are several
    #[arg(long, value_name = "NUMBER", requires = "scenario")]
    point: Option<u32>,
    /// Replay over a link with the capacity that the flows got, even where received powers were recorded
    #[arg(long, requires = "scenario")]
    link: bool,
    /// Output directory; replaces earlier results there [default: ranway-out/NAME-analysed]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    wide: bool,
}

/// The longest interval between samples.
const LONGEST_INTERVAL: Span = Span::from_secs(86_400);

fn interval(text: &str) -> Result<Span, String> {
    let span = text.parse::<Span>().map_err(|error| error.to_string())?;
    let is_valid = span > Span::ZERO && span <= LONGEST_INTERVAL;
    if is_valid { Ok(span) } else { Err("expected more than 0 s and at most 24 h".to_owned()) }
}

/// Whose definitions to use.
#[derive(Clone, Copy, ValueEnum)]
enum RulesArg {
    /// Those of the documentation
    Ranway,
    /// Those of Wireshark 4.0 with its default preferences
    Wireshark,
}

pub(crate) fn run(args: &AnalyseArgs) -> Result<(), Failure> {
    let first = args.files[0].display().to_string();
    let out = args.out.clone().unwrap_or_else(|| default_out(&format!("{}-analysed", stem(&first))));
    let sizes: u64 = args.files.iter().filter_map(|file| metadata(file).ok()).map(|data| data.len()).sum();
    let bar = Bar::of_bytes("analysing", sizes, args.quiet);
    let rules = match args.rules {
        RulesArg::Ranway => Rules::Ranway,
        RulesArg::Wireshark => Rules::Wireshark,
    };
    let ends = if args.apart { Some(false) } else { args.ends.then_some(true) };
    let options = Options {
        rules,
        flows: &args.flow,
        ends,
        interval: args.interval,
        progress: &|bytes| bar.set_bytes(bytes),
        stop: interrupt::flag(),
    };
    let begin = Instant::now();
    let analysis = analyse(&args.files, &options).map_err(failure)?;
    let seconds = begin.elapsed().as_secs_f64();
    drop(bar);
    let Analysis { mut results, mut notes, bytes, packets } = analysis;
    let replay = args.scenario.as_deref().map(|path| Replayed::new(&results, args, path)).transpose()?;
    (results.timing.wall_s, results.timing.cpu_s) = (Some(seconds), seconds);
    let output = Output::create(&out)?;
    results.write_to(&output)?;
    output.commit()?;
    if let Some(replay) = replay {
        notes.append(&mut replay.write()?);
    }
    for note in notes.iter().filter(|_| !args.quiet) {
        message!("note: {note}");
    }
    if args.quiet {
        return Ok(());
    }
    let mut to = terminal::stdout();
    if args.json {
        let answer = serde_json::json!({ "out": out, "summary": results.summary(), "why": analyse::why(&results) });
        let text = serde_json::to_string_pretty(&answer)?;
        writeln!(to, "{text}")?;
        return Ok(());
    }
    let width = table::width(&Term::stdout(), args.wide);
    write!(to, "{}", table::analysis(&results, width))?;
    write!(to, "{}", table::verdicts(&results, &analyse::why(&results), width))?;
    writeln!(to, "{} in {seconds:.2} s\nreport: {}", amount(packets, bytes), out.join("report.html").display())?;
    if let Some(scenario) = &args.scenario {
        writeln!(to, "replay: ranway run {}", scenario.display())?;
    }
    Ok(())
}

/// What was read. The packets of directories of results were only counted there, and other inputs have none.
fn amount(packets: u64, bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    match (packets, bytes) {
        (_, 0) => "analysed".to_owned(),
        (0, _) => format!("{megabytes:.1} MB"),
        _ => format!("{packets} packets, {megabytes:.1} MB"),
    }
}

/// A scenario to be written, with the files that it names.
struct Replayed {
    dir: PathBuf,
    name: String,
    replay: Replay,
}

impl Replayed {
    /// Makes the scenario, and checks it as `ranway check` does.
    fn new(results: &Results, args: &AnalyseArgs, path: &Path) -> Result<Replayed, Failure> {
        let invalid = |what: &str| Failure::Invalid(format!("{}: {what}", path.display()));
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".toml"));
        let Some(stem) = name.filter(|name| !name.is_empty()) else {
            return Err(invalid("expected a file name that ends with .toml"));
        };
        let dir = path.parent().map(Path::to_owned).unwrap_or_default();
        let over = if args.link { Over::Link } else { Over::Measured };
        let replay = analyse::replay(results, args.point, over, stem).map_err(failure)?;
        let name = format!("{stem}.toml");
        for name in replay.files.iter().map(|(name, _)| name).chain([&name]) {
            refuse_existing(&dir.join(name))?;
        }
        let files = |wanted: &str| -> std::io::Result<String> {
            let named = replay.files.iter().find(|(file, _)| file == wanted).map(|(_, text)| text);
            let text = if wanted == name { Some(&replay.scenario) } else { named };
            text.cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
        };
        Scenario::load(&name, &[], &files).map_err(|error| invalid(&format!("cannot be replayed: {error}")))?;
        Ok(Replayed { dir, name, replay })
    }

    /// Writes the files, the scenario last. Returns the notes.
    fn write(self) -> Result<Vec<String>, Failure> {
        for (name, text) in self.replay.files.iter().chain([&(self.name, self.replay.scenario)]) {
            write_new(&self.dir.join(name), text)?;
        }
        Ok(self.replay.notes)
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Io { ref source, .. } if source.kind() == ErrorKind::NotFound => Failure::Invalid(error.to_string()),
        Error::Io { .. } => Failure::Failed(error.into()),
        Error::Invalid(what) => Failure::Invalid(what),
        Error::Interrupted => Failure::Interrupted,
    }
}
