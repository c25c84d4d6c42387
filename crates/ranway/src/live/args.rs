//! The arguments of commands that meet real networks.

use crate::live::analyse::AnalyseArgs;
use crate::live::campaign::CampaignArgs;
use crate::live::dashboard::DashboardArgs;
use crate::live::measure::{MeasureArgs, capture};
use crate::live::proxy::{self, ProxyArgs};
use crate::live::rnis::RnisArgs;
use crate::live::secrets::MetricsArgs;
use crate::source::SourceArgs;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use emulate::GivenName;
use emulate::reports::Target;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use units::{Rate, Span};

/// The subcommands that meet real networks, programs and captures.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Connect real programs through a scenario's network in real time
    Emulate(EmulateArgs),
    /// Query or change a running emulation
    Control(ControlArgs),
    /// Run a program, such as pytest, in namespaces in which emulations need no root
    Rootless(RootlessArgs),
    /// Manage multi-domain congestion control in the kernel (needs root)
    #[command(subcommand)]
    Mdcc(MdccCommand),
    /// Run the lightweight PEP between two interfaces of this router (needs root)
    Pep(PepArgs),
    /// Shape traffic ahead of a bufferbloated modem (needs root)
    Backlog(BacklogArgs),
    /// Serve radio network information (ETSI MEC 012) from the feeds of base stations
    Rnis(Box<RnisArgs>),
    /// Measure a network against a server: throughput, latency under load, where packets wait
    Measure(Box<MeasureArgs>),
    /// Run many tests in randomised blocks over a simulation, an emulation or a real network
    Campaign(CampaignArgs),
    /// Capture packets of a measurement; `ranway measure --pcap` starts it
    #[command(name = capture::HELPER, hide = true)]
    MeasureCapture {
        /// The server's address and port
        server: SocketAddr,
        /// The interface [default: that of the route]
        interface: Option<String>,
    },
    /// Split TCP connections transparently between servers and UEs (needs root)
    Proxy(Box<ProxyArgs>),
    /// Clean up after a proxy; `ranway proxy` starts it
    #[command(name = proxy::GUARDIAN, hide = true)]
    ProxyGuardian,
    /// Compare the simulator's TCP with the kernel's over the same networks (needs root)
    Oracle(OracleArgs),
    /// Measure the flows of captures and of other tools' recordings
    Analyse(AnalyseArgs),
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
  ranway emulate lte-cell --name api.example.com=server -- ./client-test
  ranway emulate dumbbell --kernel                            the scenario's flows, sent by the kernel
  ranway emulate lte-cell --router core -- traceroute server  a router in the core network
  ranway emulate lte-cell --attach eth1 eth2                  the network between two cables

With --attach, the hosts are the devices connected to two Ethernet interfaces, whatever their addresses, as if a cable \
joined them that carries IP packets through the network: from the server's side on the first interface to the UE's side on \
the second. ARP, neighbour discovery, multicast and non-IP frames pass without delay. The emulation runs until Ctrl-C or \
`ranway control stop`, and then writes its results. The interfaces should have no addresses; receive offloads that merge \
frames (GRO, LRO) are off while it runs.

Without root, the hosts are in namespaces of this user (user_namespaces(7)), where the machine allows it: without real-time \
priority, --nat, --attach, --user, --dashboard, and `ranway control` from outside.

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
    /// Another name of a host for programs in hosts, such as api.example.com=server; may be repeated
    #[arg(long = "name", value_name = "NAME=HOST", conflicts_with = "attach", value_parser = GivenName::parse)]
    pub(crate) names: Vec<GivenName>,
    /// A name server for the hosts behind --nat, instead of this machine's; up to three times
    #[arg(long, value_name = "ADDRESS", requires = "nat")]
    pub(crate) dns: Vec<Ipv4Addr>,
    /// Write the cells' reports on the UEs, as lines of JSON with wall-clock times, to a file, or to unix:PATH, the socket of
    /// a reader such as `ranway rnis`
    #[arg(long, value_name = "FILE|unix:PATH", value_parser = Target::parse)]
    pub(crate) reports: Option<Target>,
    #[command(flatten)]
    pub(crate) dashboard: DashboardArgs,
    /// Capture all packets of the hosts to captures/hosts.pcapng
    #[arg(long)]
    pub(crate) pcap: bool,
    /// MTU of the hosts' interfaces in bytes; with --attach, senders of longer packets are sent an ICMP error
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1280..=9000))]
    pub(crate) mtu: u32,
    /// Bound on the lateness of 99 % of the packets in a valid run; no packet may be later than 40 times this
    #[arg(long, value_name = "TIME", default_value = "0.5 ms", value_parser = |text: &str| text.parse::<Span>())]
    pub(crate) max_lateness: Span,
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
    pub(crate) command: Vec<OsString>,
}

#[derive(ClapArgs)]
#[command(
    after_help = "The program is root of new namespaces (user, network, mount; see user_namespaces(7)) and may set up hosts there; outside \
it has this user's rights. An emulation in it has no real-time priority, no way to the machine's networks and interfaces, and is not seen \
by `ranway control` outside. `ranway emulate` goes into such namespaces by itself.

Examples:
  ranway rootless -- pytest tests/"
)]
pub(crate) struct RootlessArgs {
    /// The program and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(ClapArgs)]
#[command(after_help = "Examples:
  ranway control status
  ranway control sinr ue 3
  ranway control handover ue cell-2
  ranway control load cell-1 0.8
  ranway control rate bottleneck 5 Mbit/s
  ranway control outage 10 s
  ranway control loss bottleneck 0.01
  ranway control stop")]
pub(crate) struct ControlArgs {
    /// The ID of the emulation, if several are running [default: in a host, `RANWAY_ID`]
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
  ranway mdcc status --metrics 127.0.0.1:9185    instead, metrics for Prometheus until Ctrl-C
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
    /// How losses reduce the windows
    #[arg(long, value_enum, default_value_t = MdccMode::Safe)]
    pub(crate) mode: MdccMode,
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

/// How losses reduce the windows of `mdcc`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MdccMode {
    /// A reduction takes a round trip of the whole path, and begins at the window that applies
    Safe,
    /// As in the papers: each report of missing segments reduces the wired domain's window at once, and each window is
    /// reduced from its own value
    Published,
}

#[derive(ClapArgs)]
#[command(
    after_help = "With --metrics, the command prints no sockets. It serves what they have together, until Ctrl-C or until mdcc is \
unloaded."
)]
pub(crate) struct MdccStatusArgs {
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    /// Print JSON
    #[arg(long, conflicts_with = "metrics")]
    pub(crate) json: bool,
    /// With --metrics, print nothing but errors
    #[arg(long, short, requires = "metrics")]
    pub(crate) quiet: bool,
}

#[derive(ClapArgs)]
#[command(
    after_help = "The kernel forwards between the two interfaces, as a router or a bridge; the PEP only observes, and reports to \
the senders behind the first interface which of their data has passed. It runs until Ctrl-C or SIGTERM. If it ends in any \
other way, packets are forwarded as without it. The book, under PEP messages, describes its reports. Senders with `ranway mdcc` \
understand them; other senders receive none unless --all is given, and ignore them.

Examples:
  ranway pep --wan eth0 --ran eth1
  ranway pep --wan eth0 --ran eth1 --take-over   replace the running PEP, after an upgrade
  ranway pep --wan eth0 --ran eth1 --json        counters as a line of JSON every second
  ranway pep --wan eth0 --ran eth1 --metrics 127.0.0.1:9183"
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
    pub(crate) metrics: MetricsArgs,
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
  ranway backlog --modem wwan0 --metrics 127.0.0.1:9184
  ranway backlog --modem wwan0 --rate '8 Mbit/s' --min-rate '2 Mbit/s' --max-rate '30 Mbit/s' \\
      --reflector 1.1.1.1 --reflector 9.9.9.9"
)]
pub(crate) struct BacklogArgs {
    /// The modem's interface
    #[arg(long, value_name = "IF")]
    pub(crate) modem: String,
    /// Drain rate to use instead of an estimate; in a search, the initial rate, and the rate with little traffic
    #[arg(long)]
    pub(crate) rate: Option<Rate>,
    /// Read new rates from standard input while running, one per line
    #[arg(long, requires = "rate")]
    pub(crate) follow: bool,
    /// Search for the rate by pinging this host, an IP address; give several
    #[arg(long, value_name = "ADDRESS", requires_all = ["rate", "min_rate", "max_rate"], conflicts_with = "follow")]
    pub(crate) reflector: Vec<IpAddr>,
    /// Lower bound of the search; choose one that holds even in the worst conditions
    #[arg(long, value_name = "RATE", requires = "reflector")]
    pub(crate) min_rate: Option<Rate>,
    /// Upper bound of the search
    #[arg(long, value_name = "RATE", requires = "reflector")]
    pub(crate) max_rate: Option<Rate>,
    /// Increase of the one-way delay over its minimum that counts as delayed in a search
    #[arg(long, value_name = "TIME", default_value = "30 ms", requires = "reflector")]
    pub(crate) delay_threshold: Span,
    /// Target delay of the modem's queue
    #[arg(long, value_name = "TIME", default_value = "20 ms", conflicts_with = "reflector")]
    pub(crate) target: Span,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
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
Reno and BBR. The table shows goodput, queueing delays, retransmissions, timeouts, the end of slow start and window growth \
after a loss side by side, with the bound for each, and the variation between the kernel's own runs, which excuses a \
difference if there are six or more.

Examples:
  ranway oracle                        all cases; takes more than an hour
  ranway oracle short                  the shortest case
  ranway oracle loss codel --runs 6
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
    /// Simulate hosts that answer in no time (`hosts.processing = "0 s"`)
    #[arg(long)]
    pub(crate) instant_hosts: bool,
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
