//! `ranway analyse`.

use std::fs::metadata;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use analyse::{Analysis, Error, Options, Rules, analyse};
use clap::{Args as ClapArgs, ValueEnum};
use console::Term;
use record::Output;

use crate::failure::Failure;
use crate::out::{default_out, stem};
use crate::progress::Bar;
use crate::terminal::{self, message};
use crate::{interrupt, table};

/// The options of `ranway analyse`.
#[derive(ClapArgs)]
#[command(
    after_help = "Captures are pcap or pcapng files of Ethernet, Linux cooked (tcpdump -i any), raw IP, loopback or PPP. For each TCP \
connection the tables and the report hold goodput, round-trip times, retransmissions, reordering, spurious retransmissions, \
bytes in flight, windows, and a time-sequence plot. The best place for a capture is the sender's end: there, everything \
that is sent again is seen to be. `docs/src/analyse.md` defines every value and says how wrong it can be.

Two captures that have packets in common are taken for both ends of a path, such as a client and its server: then one-way \
delays and losses are measured as well, after the offset and drift between both clocks. Otherwise, and with --apart, each \
file is a point of the results, as the points of a sweep are.

Capture headers only, so that files stay small, and keep both directions:
  tcpdump -i eth0 -s 128 -w upload.pcap tcp

Examples:
  ranway analyse upload.pcap
  ranway analyse upload.pcap --flow :443 --out results/upload
  ranway analyse client.pcap server.pcap                  both ends
  ranway analyse cubic.pcap bbr.pcap --apart              side by side
  ranway analyse upload.pcap --as wireshark               the verdicts of Wireshark, to compare with it
  ranway analyse upload.pcap --json | jq '.summary.points[0].flows[0].rtt_p95_ms.mean'

In Python, ranway.read(\"ranway-out/upload-analysed\").table(\"tcp_flows\") has the counts, and ranway.plot.time_sequence draws \
them."
)]
pub(crate) struct AnalyseArgs {
    /// Captures (pcap, pcapng), or results of `iperf3 --json`
    #[arg(value_name = "FILE", required = true)]
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
    let options =
        Options { rules, flows: &args.flow, ends, progress: &|bytes| bar.set_bytes(bytes), stop: interrupt::flag() };
    let begin = Instant::now();
    let analysis = analyse(&args.files, &options).map_err(failure)?;
    let seconds = begin.elapsed().as_secs_f64();
    drop(bar);
    let Analysis { mut results, notes, bytes, packets } = analysis;
    (results.timing.wall_s, results.timing.cpu_s) = (seconds, seconds);
    let output = Output::create(&out)?;
    results.write_to(&output)?;
    output.commit()?;
    for note in notes.iter().filter(|_| !args.quiet) {
        message!("note: {note}");
    }
    if args.quiet {
        return Ok(());
    }
    let mut to = terminal::stdout();
    if args.json {
        let answer = serde_json::json!({ "out": out, "summary": results.summary() });
        let text = serde_json::to_string_pretty(&answer)?;
        writeln!(to, "{text}")?;
        return Ok(());
    }
    let width = table::width(&Term::stdout(), args.wide);
    write!(to, "{}", table::analysis(&results, width))?;
    writeln!(
        to,
        "{packets} packets, {:.1} MB in {seconds:.2} s\nreport: {}",
        bytes as f64 / 1e6,
        out.join("report.html").display()
    )?;
    Ok(())
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Io { .. } => Failure::Failed(error.into()),
        Error::Invalid(what) => Failure::Invalid(what),
        Error::Interrupted => Failure::Interrupted,
    }
}
