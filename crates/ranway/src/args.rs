//! The command line.

use crate::import::ImportCommand;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Simulate, emulate, measure and fix TCP over LTE and 5G.
///
/// Start with `ranway run dumbbell`: it simulates one CUBIC download and prints where its report is. `ranway list` shows the
/// other built-in scenarios and `ranway show NAME` prints one. `ranway init` writes a scenario file of your own, for
/// `ranway run FILE`.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 success; 1 a failure outside, such as a full disk; 2 wrong input, nothing was written; \
130 interrupted, the results of the runs that had finished were written and marked as partial. `ranway emulate` has more."
)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and write its results and report
    Run(RunArgs),
    /// Check a scenario without running it
    Check(ScenarioArgs),
    /// List the built-in scenarios, presets and papers
    List,
    /// Print a built-in scenario or preset, with its comments
    Show(ShowArgs),
    /// Write a commented scenario file to start from
    Init(InitArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Write the report of existing results again
    Report(ReportArgs),
    /// Connect real programs through a scenario's network, in real time (needs root)
    Emulate(EmulateArgs),
    /// Change or query a running emulation
    Control(ControlArgs),
    /// Manage multi-domain congestion control in this machine's kernel (needs root)
    #[command(subcommand)]
    Mdcc(MdccCommand),
    /// Run the lightweight PEP between two interfaces of this router (needs root)
    Pep(PepArgs),
    /// Shape traffic ahead of a bufferbloated modem (needs root)
    Backlog(BacklogArgs),
    /// Compare the simulator's TCP with this machine's kernel over the same networks (needs root)
    Oracle(OracleArgs),
    /// Make a trace or a recorded channel of other tools' files: rates, captures, ns-3, OMNeT++
    #[command(subcommand)]
    Import(ImportCommand),
    /// Compare several results in one report
    Compare(CompareArgs),
    /// Run papers' experiments and print published and measured numbers side by side
    Reproduce(ReproduceArgs),
    /// Compare congestion controls over a cellular trace and reproduce a paper's table
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference(ReferenceArgs),
}

/// Which scenario, and what to change in it.
#[derive(ClapArgs)]
pub(crate) struct SourceArgs {
    /// A scenario file, or the name of a built-in one (`ranway list`)
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Set a parameter or any key, as loss=1e-3, links.radio.delay="20 ms" or flows.*.cc=bbr
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all randomness, instead of the scenario's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

impl SourceArgs {
    /// What is to be changed in the scenario, as `KEY=VALUE`.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        self.set.iter().cloned().chain(seed).collect()
    }
}

/// Which scenario, and how often.
#[derive(ClapArgs)]
pub(crate) struct ScenarioArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Repetitions of each point, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
}

/// How to run.
#[derive(ClapArgs)]
pub(crate) struct JobArgs {
    /// Threads; a run uses one, runs go side by side [default: all cores]
    #[arg(long, short, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) jobs: usize,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tables as wide as they are, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway run dumbbell
  ranway run dumbbell --set flows.*.cc=bbr
  ranway run loss-sweep --set loss=1e-3 --runs 20
  ranway run my.toml --set dumbbell.rate='10 Mbit/s' --out results/slow --json

After Ctrl-C the results of the runs that had finished are written and marked as partial. They never replace complete \
results: those stay, and the partial ones go to NAME-interrupted beside them.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Where to write results; earlier results there are replaced [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs)]
#[command(
    after_help = "The hosts are network namespaces: a server, and one for each UE. The command runs in the first UE's. It \
finds the server under the name `server`, with a web server on port 80, and iperf3 on its own port if it is installed. The \
scenario's own flows are simulated beside the real packets, in the same queues and cells. On a \
terminal a line tells each second what goes on; while a command runs it has the last row to itself.

Examples:
  ranway emulate lte-20mhz-vehicular -- curl -o /dev/null http://server/100MB
  ranway emulate lte-20mhz-vehicular -- iperf3 -c server -R
  ranway emulate lte-download -- ping -c 10 server        beside a simulated download
  ranway emulate lte-cell --nat -- curl https://example.org/   the Internet behind the cell
  ranway emulate lte-cell --ue 2 --shell                  a shell at the second UE
  ranway emulate dumbbell --kernel                        the scenario's flows, sent by the kernel
  ranway emulate lte-cell --attach eth1 eth2              a network between two cables

With --attach, the hosts are whoever is behind two Ethernet interfaces, with whatever addresses, as if a cable joined them \
that takes IP packets through the network: from the first interface as the server's, from the second as the UE's. ARP, \
neighbour discovery, multicast and what is not IP pass at once. It runs until Ctrl-C or `ranway control stop`, and writes \
its results then. The interfaces should have no addresses; while it runs they merge no frames (GRO, LRO).

Exit codes: the command's own; without a command, or after one that succeeded, 3 if packets were given to the hosts too \
late for the results to be valid, and otherwise as for `ranway` in general."
)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The UE in whose namespace the command runs, or that stands for `RAN_IF`, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) ue: usize,
    /// A command for the server's namespace, started before the other and ended after it; a shell reads it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<String>,
    /// Run an interactive shell at the UE
    #[arg(long, conflicts_with = "command")]
    pub(crate) shell: bool,
    /// The user, by name or number, who runs the command or the shell at the UE, instead of root
    #[arg(long, value_name = "USER", conflicts_with = "attach")]
    pub(crate) user: Option<String>,
    /// Let the kernel's TCP send the scenario's flows, instead of simulating them
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Put the network between two Ethernet interfaces, the server's and the UE's, until Ctrl-C
    #[arg(long, num_args = 2, value_names = ["WAN_IF", "RAN_IF"], conflicts_with_all = ["server", "shell", "kernel", "command"])]
    pub(crate) attach: Option<Vec<String>>,
    /// Let the hosts reach the networks of this machine over IPv4, behind the server and address translation
    #[arg(long, conflicts_with = "attach")]
    pub(crate) nat: bool,
    /// A name server for the hosts behind --nat, instead of this machine's own; up to three times
    #[arg(long, value_name = "ADDRESS", requires = "nat")]
    pub(crate) dns: Vec<std::net::Ipv4Addr>,
    /// Capture all packets of the hosts into captures/hosts.pcapng
    #[arg(long)]
    pub(crate) pcap: bool,
    /// The longest IP packet of the hosts' interfaces in bytes; behind --attach, senders of longer ones are told
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9000))]
    pub(crate) mtu: u32,
    /// By how much 1 % of the packets may be late in a valid run; none may be later than 40 times that
    #[arg(long, value_name = "TIME", default_value = "0.5 ms", value_parser = |text: &str| text.parse::<units::Span>())]
    pub(crate) max_lateness: units::Span,
    /// Where to write results; earlier results there are replaced [default: ranway-out/NAME-emulated]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print nothing but errors, and what the command prints
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tables as wide as they are, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
    /// What to run at the UE; without it, the scenario's flows run for the scenario's duration
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway control status
  ranway control sinr ue 3
  ranway control handover ue cell-2
  ranway control load cell-1 0.8
  ranway control rate bottleneck 5 Mbit/s
  ranway control stop")]
pub(crate) struct ControlArgs {
    /// Which emulation, if several are running
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// What to do; `help` lists what there is
    #[arg(value_name = "WORD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// The multi-domain congestion control in the kernel.
#[derive(Subcommand)]
#[command(after_help = "Once loaded, sockets choose it like any other congestion control:

  as the default      ranway mdcc load --default        for new sockets of this network namespace
  for a route         ip route change default via 192.0.2.1 congctl mdcc
  for a socket        setsockopt(TCP_CONGESTION, \"mdcc\"), as iperf3 -C mdcc does

Without a PEP on the way (`ranway pep`), a socket that uses it behaves as CUBIC. It stays loaded when the command ends.

Examples:
  ranway mdcc load --default
  ranway mdcc status
  ranway mdcc unload")]
pub(crate) enum MdccCommand {
    /// Give it to the kernel
    Load(MdccLoadArgs),
    /// Show the sockets that use it: both windows, the way to the PEP, its reports
    Status(MdccStatusArgs),
    /// Remove it; sockets that use it go on as CUBIC until they are closed
    Unload,
}

#[derive(ClapArgs)]
pub(crate) struct MdccLoadArgs {
    /// What each acknowledged segment adds to the window of the whole path, in segments
    #[arg(long, default_value_t = 0.02)]
    pub(crate) step: f64,
    /// What a loss takes from that window
    #[arg(long, default_value_t = 0.125)]
    pub(crate) decrease: f64,
    /// That window starts at so many times the initial window
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) initial_ratio: u32,
    /// The larger of both windows is at most so many times the smaller
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) validation_ratio: u32,
    /// Let losses that the PEP has announced reduce that window too
    #[arg(long)]
    pub(crate) no_loss_filter: bool,
    /// The cgroup (v2) whose sockets hear PEPs, with all cgroups below it [default: the root, for all sockets]
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Make it the default of this network namespace; `unload` restores what was
    #[arg(long)]
    pub(crate) default: bool,
    /// Let every connection announce that it understands reports, for programs that choose mdcc only after connecting
    #[arg(long)]
    pub(crate) announce_all: bool,
    /// Take only reports with a tag of the key in this file (32 hexadecimal digits, readable by its owner alone); without a
    /// key, reports without a tag are taken, whoever made them
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct MdccStatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "The kernel forwards between both interfaces, as a router or a bridge; the PEP only looks, and tells senders \
behind the first what of their data has passed. It works until Ctrl-C or SIGTERM. If it dies in any other way, packets are \
forwarded as before, too. Its reports are in docs/src/pep-messages.md; senders with `ranway mdcc` understand them, others \
get none unless --all is given, and ignore them.

Examples:
  ranway pep --wan eth0 --ran eth1
  ranway pep --wan eth0 --ran eth1 --take-over   in place of the one that is at work, after an upgrade
  ranway pep --wan eth0 --ran eth1 --json        counters as a line of JSON each second"
)]
pub(crate) struct PepArgs {
    /// The interface to the senders
    #[arg(long, value_name = "IF")]
    pub(crate) wan: String,
    /// The interface to the receivers
    #[arg(long, value_name = "IF")]
    pub(crate) ran: String,
    /// Report to senders that have not announced that they understand it, too
    #[arg(long)]
    pub(crate) all: bool,
    /// A report for so many segments, unless something is missing or a burst ends
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) every: u32,
    /// Flows that are remembered at most
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    pub(crate) flows: u32,
    /// Tag reports with the key in this file (32 hexadecimal digits, readable by its owner alone), for senders with the same
    /// key; others do not take them
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Take the place of the PEP that is at work between these interfaces, which ends: flows and counters go on, and no segment
    /// goes unseen. --flows stays what it was. Without one there, it simply starts
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Attach, and look at nothing: for measuring what looking costs
    #[arg(long, hide = true)]
    pub(crate) blind: bool,
    /// Print counters as a line of JSON each second
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A modem takes what its host sends faster than the radio does, and all waits in it behind the largest upload. \
This keeps what waits in FQ-CoDel above the modem, and hands down only what the modem needs to stay busy for --target. How fast it \
drains is learnt from the acknowledgements that come back (TCP, ping); with --rate it is told instead. Without either, as \
under QUIC alone, everything passes at once.

With --reflector the rate is searched by delay and load, as cake-autorate does, and needs no acknowledgements: hosts are \
pinged, 20 times a second in turns. While the traffic needs the rate and pings are short, it grows towards --max-rate; \
while they take longer than usual it falls towards --min-rate; with little traffic it returns to --rate.

It takes packets as they leave by the interface, behind routes, filters and address translation, which stay as they are. If \
it ends, is killed or hangs, packets leave as without it, and nothing of it stays.

Examples:
  ranway backlog --modem wwan0
  ranway backlog --modem wwan0 --target 40ms     more in the modem: a little faster, a little later
  ranway backlog --modem wwan0 --rate '8 Mbit/s' never more than that
  ranway backlog --modem wwan0 --json            figures as a line of JSON each second
  ranway backlog --modem wwan0 --rate '8 Mbit/s' --min-rate '2 Mbit/s' --max-rate '30 Mbit/s' \\
      --reflector 1.1.1.1 --reflector 9.9.9.9"
)]
pub(crate) struct BacklogArgs {
    /// The modem's interface
    #[arg(long, value_name = "IF")]
    pub(crate) modem: String,
    /// Hand down at this rate, and learn nothing; in a search, the rate to begin with and to return to
    #[arg(long)]
    pub(crate) rate: Option<units::Rate>,
    /// Take new rates from standard input while it runs, one a line
    #[arg(long, requires = "rate")]
    pub(crate) follow: bool,
    /// Search the rate by pinging this host, an IP address; give several
    #[arg(long, value_name = "ADDRESS", requires_all = ["rate", "min_rate", "max_rate"], conflicts_with = "follow")]
    pub(crate) reflector: Vec<std::net::IpAddr>,
    /// Lowest rate of a search, low enough for the worst of times
    #[arg(long, value_name = "RATE", requires = "reflector")]
    pub(crate) min_rate: Option<units::Rate>,
    /// Highest rate of a search
    #[arg(long, value_name = "RATE", requires = "reflector")]
    pub(crate) max_rate: Option<units::Rate>,
    /// By how much a one-way delay has to exceed the shortest to count as delayed in a search
    #[arg(long, value_name = "TIME", default_value = "30 ms", requires = "reflector")]
    pub(crate) delay_threshold: units::Span,
    /// What the modem is to hold, in time
    #[arg(long, value_name = "TIME", default_value = "20 ms", conflicts_with = "reflector")]
    pub(crate) target: units::Span,
    /// Print figures as a line of JSON each second
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Each case is a scenario that is simulated, and run over the emulated network with the kernel's CUBIC, \
Reno and BBR. Goodput, round-trip times, the end of slow start and the growth after a loss are put side by side, with the \
bound for each, and with what the kernel does differently from itself.

Examples:
  ranway oracle                        every case; more than an hour
  ranway oracle short                  the quick one
  ranway oracle loss codel --runs 5
  ranway oracle --reuse ranway-out/oracle --out again
                                       after a change to the simulator: the kernel's results as they
                                       were measured, the simulator's anew, in a minute"
)]
pub(crate) struct OracleArgs {
    /// Which cases; all unless given
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Runs of each point, in each world
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Where recorded traces are; cases that need one that is not there are skipped
    #[arg(long, value_name = "DIR", default_value = "../shared/data/traces")]
    pub(crate) recordings: PathBuf,
    /// Compare with the kernel's results in the `--out` of an earlier `ranway oracle`, and simulate only (needs no root)
    #[arg(long, value_name = "DIR")]
    pub(crate) reuse: Option<PathBuf>,
    /// Where to write the table and the results of both worlds
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/oracle")]
    pub(crate) out: PathBuf,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway show dumbbell
  ranway show lte-cell > my.toml          a copy to change
  ranway show preset:lte-drive            what `include = [\"preset:lte-drive\"]` stands for")]
pub(crate) struct ShowArgs {
    /// The name of a built-in scenario, or of a preset (`ranway list`)
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway init                             scenario.toml: two flows over a bottleneck
  ranway init lte my-cell.toml            an LTE cell with two phones
  ranway run scenario.toml")]
pub(crate) struct InitArgs {
    /// What the scenario starts from
    #[arg(default_value = "bottleneck")]
    pub(crate) kind: Starter,
    /// The file to write; an existing one is never overwritten
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
}

/// What a starter scenario is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Starter {
    /// Two flows that share a bottleneck
    Bottleneck,
    /// A recorded or synthetic cellular link
    Trace,
    /// An LTE cell with two phones
    Lte,
    /// Congestion controls and losses in every combination, with repetitions
    Sweep,
    /// A network for real hosts (`ranway emulate`)
    Emulate,
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// Results, as `ranway run` wrote them
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Where to write the report [default: report.html in DIR]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct CompareArgs {
    /// Results, as `ranway run` wrote them
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE", default_value = "ranway-out/compare.html")]
    pub(crate) out: PathBuf,
    /// Print tables as wide as they are, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway reproduce                               every experiment of every paper
  ranway reproduce mdcc-towards                  every experiment of one paper
  ranway reproduce mdcc-towards/wireless-loss    one experiment
  ranway reproduce mdcc-lte@as-run --grid        a variant in every setting of what the paper does not state
  ranway reproduce ./my-paper                    every experiment of your own folder
  ranway reproduce ./my-paper/my-experiment      one of them")]
pub(crate) struct ReproduceArgs {
    /// What to reproduce: built-in papers (`ranway list`), folders with a `paper.toml`, or experiments of either; every
    /// built-in paper unless given
    #[arg(value_name = "PAPER|DIR[@VARIANT][/EXPERIMENT]")]
    pub(crate) which: Vec<String>,
    /// Repetitions of each point, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    /// Run a variant in every setting of what its paper does not state, and count the published rows that each reproduces
    #[arg(long)]
    pub(crate) grid: bool,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Where to write results and the page that compares them
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/reproduce")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct DemoArgs {
    /// A recorded trace in mahimahi's format, or a folder of them; unless given, the link is synthetic
    #[arg(long, value_name = "PATH")]
    pub(crate) traces: Option<PathBuf>,
    /// Print tables as wide as they are, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
    /// Where to write the report
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/demo")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct CompletionArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(ClapArgs)]
pub(crate) struct ReferenceArgs {
    /// Which page
    pub(crate) page: Page,
}

/// A generated page of the reference.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// The keys of scenario files
    Scenario,
    /// The command line
    Command,
}
