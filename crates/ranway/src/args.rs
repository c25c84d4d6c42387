//! The command line.

use crate::analyse::AnalyseArgs;
use crate::dashboard::DashboardArgs;
use crate::import::ImportCommand;
use crate::measure::MeasureArgs;
use crate::rnis::RnisArgs;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use record::Job;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Simulate, emulate, measure and fix TCP over LTE and 5G.
///
/// Start with `ranway run dumbbell`: it simulates one CUBIC download and prints where its report is. `ranway list` shows the
/// other built-in scenarios and `ranway show NAME` prints one. `ranway init` writes a scenario file of your own, for
/// `ranway run FILE`.
#[derive(Parser)]
#[command(version, propagate_version = true, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 success; 1 a failure of the environment, such as a full disk; 2 invalid input, nothing was written; \
130 interrupted, the results of completed runs were written and marked as partial. `ranway emulate` has further codes."
)]
pub(crate) struct Args {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and write its results and report
    Run(RunArgs),
    /// Simulate all points of a sweep: on all cores, resumable, or a share of them on each of many machines
    Sweep(SweepArgs),
    /// Make results of the jobs of a sweep that many machines have shared
    Merge(MergeArgs),
    /// Check a scenario without running it
    Check(ScenarioArgs),
    /// List the built-in scenarios, presets and papers
    List,
    /// Print a built-in scenario or preset, including its comments
    Show(ShowArgs),
    /// Write a commented scenario file to start from
    Init(InitArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema,
    /// Regenerate the report of existing results
    Report(ReportArgs),
    /// Connect real programs through a scenario's network in real time (needs root)
    Emulate(EmulateArgs),
    /// Query or change a running emulation
    Control(ControlArgs),
    /// Manage multi-domain congestion control in the kernel (needs root)
    #[command(subcommand)]
    Mdcc(MdccCommand),
    /// Run the lightweight PEP between two interfaces of this router (needs root)
    Pep(PepArgs),
    /// Shape traffic ahead of a bufferbloated modem (needs root)
    Backlog(BacklogArgs),
    /// Serve radio network information (ETSI MEC 012) from the feeds of base stations
    Rnis(RnisArgs),
    /// Measure a network against a server: throughput, latency under load, where packets wait
    Measure(Box<MeasureArgs>),
    /// Run many tests in randomised blocks over a simulation, an emulation or a real network
    Campaign(crate::campaign::CampaignArgs),
    /// Capture packets of a measurement; `ranway measure --pcap` starts it
    #[command(name = crate::measure::capture::HELPER, hide = true)]
    MeasureCapture {
        /// The server's address and port
        server: std::net::SocketAddr,
    },
    /// Split TCP connections transparently between servers and UEs (needs root)
    Proxy(crate::proxy::ProxyArgs),
    /// Clean up after a proxy; `ranway proxy` starts it
    #[command(name = crate::proxy::GUARDIAN, hide = true)]
    ProxyGuardian,
    /// Compare the simulator's TCP with the kernel's over the same networks (needs root)
    Oracle(OracleArgs),
    /// Measure the flows of captures and of other tools' recordings
    Analyse(AnalyseArgs),
    /// Convert rate tables, packet captures and logs of ns-3 and OMNeT++ into traces and recorded channels
    #[command(subcommand)]
    Import(ImportCommand),
    /// Compare several results in one report
    Compare(CompareArgs),
    /// Run experiments of papers and print published and measured numbers side by side
    Reproduce(ReproduceArgs),
    /// Compare congestion controls over a cellular trace and reproduce a paper's table
    Demo(DemoArgs),
    /// Print a completion script for a shell
    Completion(CompletionArgs),
    /// Print a page of the reference
    #[command(hide = true)]
    Reference(ReferenceArgs),
    /// Write a manual page for each subcommand
    #[command(hide = true)]
    ManPages {
        /// The directory to write them to
        dir: PathBuf,
    },
}

/// The scenario to load, and the changes to make to it.
#[derive(ClapArgs)]
pub(crate) struct SourceArgs {
    /// A scenario file, or the name of a built-in one (`ranway list`)
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Set a parameter or any key, such as loss=1e-3, links.radio.delay="20 ms" or flows.*.cc=bbr
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of the random number generators, instead of the scenario's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

impl SourceArgs {
    /// Returns the scenario's overrides, as `KEY=VALUE`.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        self.set.iter().cloned().chain(seed).collect()
    }
}

/// The scenario and the number of repetitions.
#[derive(ClapArgs)]
pub(crate) struct ScenarioArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Repetitions of each point, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
}

/// How runs are executed and printed.
#[derive(ClapArgs)]
pub(crate) struct JobArgs {
    /// Number of threads; a run uses one, and several runs execute in parallel [default: all cores]
    #[arg(long, short, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) jobs: usize,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway run dumbbell
  ranway run dumbbell --set flows.*.cc=bbr
  ranway run loss-sweep --set loss=1e-3 --runs 20
  ranway run my.toml --set dumbbell.rate='10 Mbit/s' --out results/slow --json

After Ctrl-C, the results of completed runs are written and marked as partial. They never replace complete \
results: partial results then go to NAME-interrupted, beside the complete ones.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Output directory; replaces earlier results there [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    /// Record the cells' reports on the UEs in a file, as lines of JSON with times from the run's start, for
    /// `ranway rnis --input replay:FILE`; of one run
    #[arg(long, value_name = "FILE")]
    pub(crate) reports: Option<PathBuf>,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A sweep is a list of jobs, one for each run of each point. Each job's results are written when it finishes, into \
OUT.sweep; when all have, the results go to OUT, the same bytes as from `ranway run`, and OUT.sweep is removed. After Ctrl-C, a \
crash or a full disk, the same command resumes and skips the finished jobs. Memory does not grow with the number of jobs.

On many machines, each takes a share of the jobs with --shard. They may share OUT.sweep, or have one each.

Examples:
  ranway sweep loss-sweep --runs 100
  ranway sweep my.toml --set 'sweep.flows.*.cc=[\"cubic\", \"bbr\"]' --out results/cc
  ranway sweep my.toml --out results/cc --shard 3/20    the third of twenty shares, as of a job array
  ranway merge results/cc.sweep                         when all shares have finished"
)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Number of threads; a job uses one [default: all cores]
    #[arg(long, short, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) jobs: usize,
    /// Output directory; replaces earlier results there [default: ranway-out/NAME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run the I-th of N shares of the jobs and write no results yet; `ranway merge` does
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    #[command(flatten)]
    pub(crate) ending: EndArgs,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Several directories are those of machines that share none; a job that two have is taken once. Together they must have \
all jobs, or those that are missing are named.

Examples:
  ranway merge ranway-out/loss-sweep.sweep
  ranway merge node-*/cc.sweep --out results/cc"
)]
pub(crate) struct MergeArgs {
    /// Directories that `ranway sweep --shard` has written
    #[arg(value_name = "SWEEP", required = true)]
    pub(crate) sweeps: Vec<PathBuf>,
    /// Output directory; replaces earlier results there [default: the first SWEEP without `.sweep`]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ending: EndArgs,
}

/// What happens when the jobs of a sweep have finished.
#[derive(ClapArgs)]
pub(crate) struct EndArgs {
    /// Keep the jobs' own files
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One of several shares of the jobs of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    index: usize,
    count: usize,
}

impl Shard {
    /// Returns the jobs of this share: every N-th, so that all shares have some of each kind.
    pub(crate) fn of(self, jobs: &[Job]) -> Vec<Job> {
        jobs.iter().copied().skip(self.index - 1).step_by(self.count).collect()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parse = || {
            let (index, count) = text.split_once('/')?;
            Some(Shard { index: index.parse().ok()?, count: count.parse().ok()? })
        };
        let shard = parse().filter(|shard| (1..=shard.count).contains(&shard.index));
        shard.ok_or_else(|| "expected I/N with I from 1 to N, as in 3/20".to_owned())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[derive(ClapArgs)]
#[command(
    after_help = "The hosts are network namespaces: a server, and one for each UE. The command runs in the namespace of the first UE. It \
reaches the server under the name `server`: a web server on port 80 and, if installed, iperf3 on its usual port. The \
scenario's own flows are simulated alongside the real packets, in the same queues and cells. On a terminal, a status line \
is updated every second; while a command runs, it occupies the last row.

Examples:
  ranway emulate lte-20mhz-vehicular -- curl -o /dev/null http://server/100MB
  ranway emulate lte-20mhz-vehicular -- iperf3 -c server -R
  ranway emulate lte-download -- ping -c 10 server            beside a simulated download
  ranway emulate lte-cell --nat -- curl https://example.org/  the Internet behind the cell
  ranway emulate lte-cell --ue 2 --shell                      a shell at the second UE
  ranway emulate dumbbell --kernel                            the scenario's flows, sent by the kernel
  ranway emulate lte-cell --router core -- traceroute server  a router in the core network
  ranway emulate lte-cell --attach eth1 eth2                  the network between two cables

With --attach, the hosts are the devices connected to two Ethernet interfaces, whatever their addresses, as if a cable \
joined them that carries IP packets through the network: from the server's side on the first interface to the UE's side on \
the second. ARP, neighbour discovery, multicast and non-IP frames pass without delay. The emulation runs until Ctrl-C or \
`ranway control stop`, and then writes its results. The interfaces should have no addresses; receive offloads that merge \
frames (GRO, LRO) are off while it runs.

Exit codes: the command's own; without a command, or after one that succeeded, 3 if packets were delivered too late \
for the results to be valid; otherwise as for `ranway` in general."
)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The UE in whose namespace the command runs, or that `RAN_IF` represents, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) ue: usize,
    /// A shell command to run in the server's namespace; it is started before the UE's command and ended after it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<String>,
    /// Send the hosts' packets through a namespace at this node of the network, where its kernel forwards them
    #[arg(long, value_name = "NODE", conflicts_with = "attach")]
    pub(crate) router: Option<String>,
    /// A shell command to run in the router's namespace; it is started before the other commands and ended after them
    #[arg(long, value_name = "COMMAND", requires = "router")]
    pub(crate) at_router: Option<String>,
    /// Run an interactive shell at the UE
    #[arg(long, conflicts_with = "command")]
    pub(crate) shell: bool,
    /// The user, by name or number, that runs the command or the shell at the UE, instead of root
    #[arg(long, value_name = "USER", conflicts_with = "attach")]
    pub(crate) user: Option<String>,
    /// Send the scenario's flows with the kernel's TCP instead of simulating them
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Place the network between two Ethernet interfaces, the server's and the UE's, until Ctrl-C
    #[arg(long, num_args = 2, value_names = ["WAN_IF", "RAN_IF"], conflicts_with_all = ["server", "shell", "kernel", "command"])]
    pub(crate) attach: Option<Vec<String>>,
    /// Give the hosts IPv4 access to this machine's networks, through the server and address translation
    #[arg(long, conflicts_with = "attach")]
    pub(crate) nat: bool,
    /// A name server for the hosts behind --nat, instead of this machine's; up to three times
    #[arg(long, value_name = "ADDRESS", requires = "nat")]
    pub(crate) dns: Vec<std::net::Ipv4Addr>,
    /// Write the cells' reports on the UEs, as lines of JSON with wall-clock times, to a file, or to unix:PATH, the socket of
    /// a reader such as `ranway rnis`
    #[arg(long, value_name = "FILE|unix:PATH")]
    pub(crate) reports: Option<String>,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    /// Capture all packets of the hosts to captures/hosts.pcapng
    #[arg(long)]
    pub(crate) pcap: bool,
    /// MTU of the hosts' interfaces in bytes; with --attach, senders of longer packets are sent an ICMP error
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9000))]
    pub(crate) mtu: u32,
    /// Bound on the lateness of 99 % of the packets in a valid run; no packet may be later than 40 times this
    #[arg(long, value_name = "TIME", default_value = "0.5 ms", value_parser = |text: &str| text.parse::<units::Span>())]
    pub(crate) max_lateness: units::Span,
    /// Output directory; replaces earlier results there [default: ranway-out/NAME-emulated]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print nothing but errors and the command's own output
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
    /// The command to run at the UE; without one, the scenario's flows run for the scenario's duration
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
  ranway control loss bottleneck 0.01
  ranway control stop")]
pub(crate) struct ControlArgs {
    /// The ID of the emulation, if several are running
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// The request; `help` lists all requests
    #[arg(value_name = "WORD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Multi-domain congestion control in the kernel.
#[derive(Subcommand)]
#[command(after_help = "Once loaded, sockets select it like any other congestion control:

  as the default      ranway mdcc load --default        for new sockets of this network namespace
  for a route         ip route change default via 192.0.2.1 congctl mdcc
  for a socket        setsockopt(TCP_CONGESTION, \"mdcc\"), as iperf3 -C mdcc does

Without a PEP on the path (`ranway pep`), such a socket behaves as with CUBIC. It stays loaded when the command ends.

Examples:
  ranway mdcc load --default
  ranway mdcc status
  ranway mdcc unload")]
pub(crate) enum MdccCommand {
    /// Load it into the kernel
    Load(MdccLoadArgs),
    /// Show the sockets that use it: both windows, the round-trip time to the PEP, and the reports received
    Status(MdccStatusArgs),
    /// Unload it; sockets that use it continue with CUBIC until they are closed
    Unload,
}

#[derive(ClapArgs)]
pub(crate) struct MdccLoadArgs {
    /// Increase of the end-to-end window for each acknowledged segment, in segments
    #[arg(long, default_value_t = 0.02)]
    pub(crate) step: f64,
    /// Fraction by which a loss reduces the end-to-end window
    #[arg(long, default_value_t = 0.125)]
    pub(crate) decrease: f64,
    /// Initial end-to-end window, as a multiple of the initial window
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) initial_ratio: u32,
    /// Upper bound on the ratio of the larger to the smaller window
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) validation_ratio: u32,
    /// Reduce the end-to-end window for losses announced by the PEP, too
    #[arg(long)]
    pub(crate) no_loss_filter: bool,
    /// The cgroup (v2) whose sockets receive PEP reports, including all cgroups below it [default: the root, for all sockets]
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Make it the default of this network namespace; `unload` restores the previous default
    #[arg(long)]
    pub(crate) default: bool,
    /// Announce on every connection that reports are understood, for programs that select mdcc only after connecting
    #[arg(long)]
    pub(crate) announce_all: bool,
    /// Accept only reports authenticated with the key in this file (32 hexadecimal digits, readable by its owner alone);
    /// without a key, unauthenticated reports are accepted from any sender
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
    after_help = "The kernel forwards between the two interfaces, as a router or a bridge; the PEP only observes, and reports to \
the senders behind the first interface which of their data has passed. It runs until Ctrl-C or SIGTERM. If it ends in any \
other way, packets are forwarded as without it. docs/src/pep-messages.md describes its reports. Senders with `ranway mdcc` \
understand them; other senders receive none unless --all is given, and ignore them.

Examples:
  ranway pep --wan eth0 --ran eth1
  ranway pep --wan eth0 --ran eth1 --take-over   replace the running PEP, after an upgrade
  ranway pep --wan eth0 --ran eth1 --json        counters as a line of JSON every second"
)]
pub(crate) struct PepArgs {
    /// The interface towards the senders
    #[arg(long, value_name = "IF")]
    pub(crate) wan: String,
    /// The interface towards the receivers
    #[arg(long, value_name = "IF")]
    pub(crate) ran: String,
    /// Report to senders that have not announced support for reports, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Segments per report; a gap in the data or the end of a burst causes a report earlier
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) every: u32,
    /// Maximum number of flows tracked
    #[arg(long, value_name = "N", default_value_t = 65_536)]
    pub(crate) flows: u32,
    /// Authenticate reports with the key in this file (32 hexadecimal digits, readable by its owner alone); only senders with
    /// the same key accept them
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Take over from the PEP that runs between these interfaces, which then ends: flows and counters continue, and no
    /// segment is missed. --flows keeps the old PEP's value. Without a running PEP, simply start
    #[arg(long)]
    pub(crate) take_over: bool,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    /// Attach without processing packets, to measure the cost of processing
    #[arg(long, hide = true)]
    pub(crate) blind: bool,
    /// Print counters as a line of JSON every second
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "A modem accepts packets from its host faster than the radio sends them, so all traffic queues in the modem behind the largest upload. \
This command moves that queue to FQ-CoDel on the host, and passes to the modem only what it needs to stay busy for --target. \
The modem's drain rate is estimated from returning acknowledgements (TCP, ping), or set by --rate. Without either, as with QUIC \
alone, packets pass without delay.

With --reflector, the rate is searched by delay and load, as in cake-autorate, without acknowledgements: the reflectors are \
pinged in turn, 20 pings per second in all. While the traffic needs the rate and delays are low, the rate grows towards --max-rate; \
while delays are above normal, it falls towards --min-rate; with little traffic it returns to --rate.

Packets are intercepted as they leave through the interface, after routing, filtering and address translation, which stay unchanged. If \
the command ends, is killed or hangs, packets leave as without it, and it leaves nothing behind.

Examples:
  ranway backlog --modem wwan0
  ranway backlog --modem wwan0 --target 40ms     longer queue in the modem: slightly more throughput and delay
  ranway backlog --modem wwan0 --rate '8 Mbit/s' at a fixed rate
  ranway backlog --modem wwan0 --json            statistics as a line of JSON every second
  ranway backlog --modem wwan0 --rate '8 Mbit/s' --min-rate '2 Mbit/s' --max-rate '30 Mbit/s' \\
      --reflector 1.1.1.1 --reflector 9.9.9.9"
)]
pub(crate) struct BacklogArgs {
    /// The modem's interface
    #[arg(long, value_name = "IF")]
    pub(crate) modem: String,
    /// Drain rate to use instead of an estimate; in a search, the initial rate, and the rate with little traffic
    #[arg(long)]
    pub(crate) rate: Option<units::Rate>,
    /// Read new rates from standard input while running, one per line
    #[arg(long, requires = "rate")]
    pub(crate) follow: bool,
    /// Search for the rate by pinging this host, an IP address; give several
    #[arg(long, value_name = "ADDRESS", requires_all = ["rate", "min_rate", "max_rate"], conflicts_with = "follow")]
    pub(crate) reflector: Vec<std::net::IpAddr>,
    /// Lower bound of the search; choose one that holds even in the worst conditions
    #[arg(long, value_name = "RATE", requires = "reflector")]
    pub(crate) min_rate: Option<units::Rate>,
    /// Upper bound of the search
    #[arg(long, value_name = "RATE", requires = "reflector")]
    pub(crate) max_rate: Option<units::Rate>,
    /// Increase of the one-way delay over its minimum that counts as delayed in a search
    #[arg(long, value_name = "TIME", default_value = "30 ms", requires = "reflector")]
    pub(crate) delay_threshold: units::Span,
    /// Target delay of the modem's queue
    #[arg(long, value_name = "TIME", default_value = "20 ms", conflicts_with = "reflector")]
    pub(crate) target: units::Span,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    /// Print statistics as a line of JSON every second
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "Each case is a scenario. It is simulated, and run over the emulated network with the kernel's CUBIC, \
Reno and BBR. The table shows goodput, round-trip times, the end of slow start and window growth after a loss side by side, \
with the bound for each, and the variation between the kernel's own runs.

Examples:
  ranway oracle                        all cases; takes more than an hour
  ranway oracle short                  the shortest case
  ranway oracle loss codel --runs 5
  ranway oracle --reuse ranway-out/oracle --out again
                                                                              after a change to the simulator: reuse the measured
                                                                              kernel results and simulate again, in a minute"
)]
pub(crate) struct OracleArgs {
    /// The cases to run [default: all]
    #[arg(value_name = "CASE")]
    pub(crate) cases: Vec<String>,
    /// Runs of each point, both simulated and with the kernel
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Directory of recorded traces; cases whose trace is missing are skipped
    #[arg(long, value_name = "DIR", default_value = "../shared/data/traces")]
    pub(crate) recordings: PathBuf,
    /// Compare with the kernel results in the `--out` directory of an earlier `ranway oracle`, and only simulate (needs no
    /// root)
    #[arg(long, value_name = "DIR")]
    pub(crate) reuse: Option<PathBuf>,
    /// Output directory for the table and both sets of results
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/oracle")]
    pub(crate) out: PathBuf,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway show dumbbell
  ranway show lte-cell > my.toml          a copy to edit
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
    /// The template to start from
    #[arg(default_value = "bottleneck")]
    pub(crate) kind: Starter,
    /// The file to write; an existing one is never overwritten
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
}

/// Templates of scenario files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Starter {
    /// Two flows that share a bottleneck
    Bottleneck,
    /// A recorded or synthetic cellular link
    Trace,
    /// An LTE cell with two phones
    Lte,
    /// A sweep over congestion controls and loss rates, with repetitions
    Sweep,
    /// A network for real hosts (`ranway emulate`)
    Emulate,
}

#[derive(ClapArgs)]
pub(crate) struct ReportArgs {
    /// A results directory written by `ranway run`
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The report file to write [default: report.html in DIR]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ClapArgs)]
pub(crate) struct CompareArgs {
    /// Results directories written by `ranway run`
    #[arg(value_name = "DIR", required = true, num_args = 2..)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The report file to write
    #[arg(long, short, value_name = "FILE", default_value = "ranway-out/compare.html")]
    pub(crate) out: PathBuf,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway reproduce                               every experiment of every paper
  ranway reproduce mdcc-towards                  every experiment of one paper
  ranway reproduce mdcc-towards/wireless-loss    one experiment
  ranway reproduce mdcc-lte@as-run --grid        a variant, in each of its settings
  ranway reproduce ./my-paper                    every experiment in a folder of your own
  ranway reproduce ./my-paper/my-experiment      one experiment from it")]
pub(crate) struct ReproduceArgs {
    /// The experiments to reproduce: built-in papers (`ranway list`), folders with a `paper.toml`, or experiments of either
    /// [default: all built-in papers]
    #[arg(value_name = "PAPER|DIR[@VARIANT][/EXPERIMENT]")]
    pub(crate) which: Vec<String>,
    /// Repetitions of each point, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    /// Run a variant in every setting of the parameters that its paper leaves open, and count the published rows that each
    /// reproduces
    #[arg(long)]
    pub(crate) grid: bool,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    /// Output directory for results and the comparison page
    #[arg(long, short, value_name = "DIR", default_value = "ranway-out/reproduce")]
    pub(crate) out: PathBuf,
}

#[derive(ClapArgs)]
pub(crate) struct DemoArgs {
    /// A recorded trace in mahimahi's format, or a folder of them; without one, the link is synthetic
    #[arg(long, value_name = "PATH")]
    pub(crate) traces: Option<PathBuf>,
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long)]
    pub(crate) wide: bool,
    /// Output directory for the report
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
    /// The page
    pub(crate) page: Page,
}

/// The generated pages of the reference.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Page {
    /// The keys of scenario files
    Scenario,
    /// The command line
    Command,
}
