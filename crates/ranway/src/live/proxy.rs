//! `ranway proxy`.

mod config;
mod top;

use crate::live::dashboard::{DashboardArgs, ProxyFollower, untitled};
use crate::live::secrets::{BrokerArgs, MetricsArgs};
use crate::live::status_line::StatusLine;
use crate::{failure::Failure, terminal};
use clap::{Args as ClapArgs, Parser, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use netio::process::{Happened, Signals, wait_for_no_reader};
use nix::sys::signal::Signal;
use rapid::{Policy, Rapid};
use scenario::ProxyPolicy;
use services::Network;
use services::proxy::{
    self, Connection, Governor, Inbox, LogSettings, Mark, Metrics, Notice, Proxy, RadioWindows, Settings, Status,
    Unused,
};
use services::rnis::{Follower, Log};
use std::ffi::OsString;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use units::{Bytes, Span};

/// Interval between checks for signals, of the threads and to the guardian.
const TURN: Duration = Duration::from_millis(100);
/// Interval between status lines.
const TICK: Duration = Duration::from_secs(1);
/// The hidden command of the guardian.
pub(crate) const GUARDIAN: &str = "proxy-guardian";

#[derive(Clone, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Run it on a router between servers and UEs. It splits each TCP connection that a UE opens and that this machine would \
forward, and moves the bytes between both halves. Hosts need no settings: they see each other's own addresses and ports. A UE's \
handshake is complete only when the server's is. What routes, rules and firewall forbid stays forbidden; connections to addresses \
of the router itself, and all other traffic, pass as without it.

New connections bypass the proxy when it is not running or hangs, when their server refuses or does not answer, and beyond the \
limits of each host and of all; forwarding must be enabled (net.ipv4.ip_forward, net.ipv6.conf.all.forwarding). Connections that the proxy has split cannot outlive it: they are reset, so \
no host takes a part of its data for all. On SIGTERM or Ctrl-C, new connections bypass the proxy, and existing ones may end for \
--drain; a second signal resets them at once. SIGHUP reads --config again and changes what it can without touching a connection: all \
but interfaces, --port, --threads, --buffer, --metrics and --dashboard, which it names if they wait for a restart. Buffers and --cc then hold for new connections. Rules, routes and the \
nftables table disappear with the proxy, even if it is killed.

With --reports, the proxy is RAPID: it divides among the flows of a UE what the radio network reports that the UE can receive, \
by receive windows towards servers, and by congestion windows and pacing towards UEs. Reports need the UEs' addresses; `ranway rnis` \
makes them from the feeds of base stations. A flow whose UE is not reported, or no longer, is not limited. Congestion windows take \
Linux 6.10 or newer with BTF, CAP_BPF and CAP_PERFMON; without them, the proxy paces only.

Examples:
  ranway proxy --wan eth0 --ran eth1
  ranway proxy --wan eth0 --ran eth1 --reports amqp://127.0.0.1              RAPID, with the reports of a ranway rnis
  ranway proxy --wan eth0 --ran eth1 --reports recording:unix:/run/reports   with those that programs write to a socket
  ranway proxy --wan eth0 --ran eth1 --ports 80,443,8000-8080
  ranway proxy --config proxy.toml                                options from a file, which SIGHUP reads again
  ranway proxy --wan eth0 --ran eth1 --metrics 127.0.0.1:9180     counters for Prometheus at /metrics
  ranway proxy status                                             counters and connections, by UE
  ranway proxy status --top 10                                    the UEs with most traffic at the moment
  ranway proxy status --json"
)]
pub(crate) struct ProxyArgs {
    #[command(subcommand)]
    command: Option<ProxyCommand>,
    /// The interface towards the servers, or several, such as eth0,eth2
    #[arg(long, value_name = "IF", value_delimiter = ',', required_unless_present = "config")]
    wan: Vec<String>,
    /// The interface towards the UEs, or several. The first one names the proxy
    #[arg(long, value_name = "IF", value_delimiter = ',', required_unless_present = "config")]
    ran: Vec<String>,
    /// TOML file with options by their names here, such as `wan = "eth0"`; those of the command line precede. SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Destination ports of the connections to split, such as 80,443,8000-8080
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = ports, default_value = "1-65535")]
    ports: Vec<RangeInclusive<u16>>,
    /// Destination ports of connections that the proxy accepts before their server does. It saves a round trip to the server; but a
    /// closed port looks open for a moment, and programs that try another address if one fails notice that late
    #[arg(long, value_name = "PORTS", value_delimiter = ',', value_parser = ports)]
    early_accept: Vec<RangeInclusive<u16>>,
    /// Also split connections that servers open to UEs
    #[arg(long)]
    from_servers: bool,
    /// Networks and addresses whose connections bypass the proxy, of servers and of UEs, such as `192.0.2.0/24,2001:db8::1`
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    bypass: Vec<Network>,
    /// Marks of packets (nft `meta mark`) whose connections bypass the proxy, such as 0x10 or 0x10/0xff
    #[arg(long, value_name = "MARKS", value_delimiter = ',', value_parser = mark)]
    bypass_marks: Vec<Mark>,
    /// Networks and addresses of the UEs whose connections alone are split [default: all]
    #[arg(long, value_name = "NETWORKS", value_delimiter = ',')]
    only: Vec<Network>,
    /// Port at which the proxy listens, on the loopback addresses
    #[arg(long, value_name = "PORT", default_value_t = 5080, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Number of threads that move bytes [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Number of connections at which new ones begin to bypass the proxy [default: 20000, or less if the limit of open files
    /// permits less]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    max_connections: Option<u32>,
    /// Number of a UE's connections at which its further ones bypass the proxy
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_ue: u32,
    /// Number of a server's connections at which its further ones bypass the proxy
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_server: u32,
    /// Number of connections in their handshake, of those that one side opens, at which further ones bypass the proxy
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    max_half_open: u32,
    /// The same for those of a UE
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    max_half_open_per_ue: u32,
    /// The same for those of a server
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_half_open_per_server: u32,
    /// Data that the proxy holds in each direction of a connection between its two sockets
    #[arg(long, value_name = "SIZE", default_value = "256 KiB")]
    buffer: Bytes,
    /// Receive buffer of each socket, an upper bound of its window: at least rate times round-trip time. The kernel uses up to as
    /// much again for its overhead
    #[arg(long, value_name = "SIZE", default_value = "1 MiB")]
    receive_buffer: Bytes,
    /// Data that a socket accepts beyond what it has sent
    #[arg(long, value_name = "SIZE", default_value = "256 KiB")]
    unsent: Bytes,
    /// Memory that connections may take together, in sockets and pipes; beyond it, those whose readers have stopped are reset, the
    /// largest first [default: half of what makes the kernel save memory for TCP, or of the control group's memory]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Congestion control towards UEs as long as RAPID sets no window, by its name in the kernel [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Where reports of the radio network come from: amqp:URL, or recording:SOURCE with a file, `-` or unix:PATH [default: none]
    #[arg(long, value_name = "KIND:ADDRESS")]
    reports: Option<String>,
    #[command(flatten)]
    broker: BrokerArgs,
    /// How RAPID divides what a UE can receive: best, published (the paper's text), artefact (its code) or milli-proxy, and after a
    /// colon the parameters that scenarios have, as in `best:radio_target=10 ms,proxy_target=4 ms`
    #[arg(long, value_name = "POLICY", default_value = "best", value_parser = policy, requires = "reports")]
    policy: Policy,
    /// Length of the IPv6 prefix that each UE has, by which its connections and reports are put together
    #[arg(long, value_name = "BITS", default_value_t = 64, value_parser = clap::value_parser!(u8).range(..=128))]
    ipv6_prefix: u8,
    /// Interval between two updates of windows and rates
    #[arg(long, value_name = "TIME", default_value = "5 ms", value_parser = tick, requires = "reports")]
    tick: Span,
    /// Time that a server has to accept a connection, before that bypasses the proxy
    #[arg(long, value_name = "TIME", default_value = "3 s")]
    connect_timeout: Span,
    /// Time without data after which a connection is reset
    #[arg(long, value_name = "TIME", default_value = "7440 s")]
    idle_timeout: Span,
    /// Time without data after which a connection is reset if one side has ended
    #[arg(long, value_name = "TIME", default_value = "900 s")]
    half_closed_timeout: Span,
    /// Time without an answer after which a host is dead, if the other host asks for it by keepalives. The other half is then reset
    #[arg(long, value_name = "TIME", default_value = "15 s")]
    dead_peer_time: Span,
    /// Time that connections have to end before the proxy does
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    drain: Span,
    /// File to which a line of JSON is written for each connection that ends
    #[arg(long, value_name = "FILE")]
    connection_log: Option<PathBuf>,
    /// Size at which that file becomes an earlier one, with .1 after its name
    #[arg(long, value_name = "SIZE", default_value = "100 MB")]
    connection_log_size: Bytes,
    /// Number of earlier files that are kept
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(..=9999))]
    connection_log_files: u32,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    dashboard: DashboardArgs,
    /// Print counters as a line of JSON every second
    #[arg(long)]
    json: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Subcommand)]
enum ProxyCommand {
    /// Print the counters and connections of a running proxy
    Status(StatusArgs),
}

#[derive(Clone, ClapArgs)]
pub(crate) struct StatusArgs {
    /// The running proxy's interface towards the UEs [default: the only proxy]
    #[arg(long, value_name = "IF")]
    ran: Option<String>,
    /// Print the N UEs to and from which most bytes pass within a second, instead of connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ProxyArgs) -> Result<(), Failure> {
    match &args.command {
        Some(ProxyCommand::Status(args)) => status(args),
        None => serve(args),
    }
}

/// Runs the guardian, which the proxy starts.
pub(crate) fn guard() -> Result<(), Failure> {
    Ok(proxy::guard()?)
}

fn serve(command_line: &ProxyArgs) -> Result<(), Failure> {
    let mut args = configured(command_line)?;
    let settings = settings(&args)?;
    wait_for_no_reader();
    let signals = Signals::take()?;
    let metrics = args.metrics.access()?.map(Metrics::bind).transpose().map_err(refusal)?;
    let this = std::env::current_exe()?;
    let guardian = move || {
        let mut command = Command::new(&this);
        command.arg(GUARDIAN);
        command
    };
    let mut feed = Feed::open(&args)?;
    let (governor, without) = governor(&args, feed.as_ref());
    let title = || untitled(format!("Proxy from {} to {}", args.wan.join(", "), args.ran.join(", ")));
    // The addresses of UEs are nobody else's business.
    let dashboard = args.dashboard.start("proxy", title, args.quiet, |options| options.is_private = true)?;
    let mut proxy = Proxy::start(settings, governor, guardian).map_err(refusal)?;
    log_settings(&args).map(|log| proxy.log_connections(&log)).transpose().map_err(refusal)?;
    let metrics = metrics.map(|metrics| proxy.serve_metrics(metrics)).transpose()?;
    if !args.quiet {
        let (wan, ran) = (args.wan.join(", "), args.ran.join(", "));
        let at = metrics.map(|address| format!(", metrics at http://{address}/metrics")).unwrap_or_default();
        terminal::message!("splitting TCP connections between {wan} and {ran}{at}; press Ctrl-C to stop");
        warn(without.as_ref());
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let path = format!("/proc/sys/net/{setting}");
            if std::fs::read_to_string(path).is_ok_and(|value| value.trim() == "0") {
                let name = setting.replace('/', ".");
                terminal::message!("warning: net.{name} is 0: this kernel forwards no such packets");
            }
        }
    }
    let follower = dashboard.as_ref().map(|page| ProxyFollower::new(page.publisher(), proxy.observer()));
    let mut line = (!args.quiet && !args.json).then(|| StatusLine::new(false)).flatten();
    let mut shown = Instant::now();
    let mut before = Status::default();
    let mut outcome = Ok(());
    let mut is_full = false;
    loop {
        show(proxy.tick()?, args.quiet);
        match signals.wait(TURN) {
            Happened::Asked { signal: Signal::SIGHUP, terminal: false } if args.config.is_none() => {
                terminal::message!("SIGHUP has no effect without --config");
            }
            Happened::Asked { signal: Signal::SIGHUP, terminal: false } => {
                match reload(command_line, &mut args, &mut feed, &mut proxy) {
                    Ok(waiting) if waiting.is_empty() && args.quiet => {}
                    Ok(waiting) if waiting.is_empty() => terminal::message!("the configuration was read again"),
                    Ok(waiting) => {
                        let what = waiting.join(", ");
                        terminal::message!(
                            "warning: the configuration was read again; until a restart, these stay: {what}"
                        );
                    }
                    Err(why) => {
                        let why = why.message().unwrap_or_default();
                        terminal::message!("error: {why}; the settings stay as they were");
                    }
                }
            }
            Happened::Asked { .. } => break,
            _ if terminal::is_closed() => break,
            _ => {}
        }
        follower.iter().for_each(ProxyFollower::look);
        let seconds = shown.elapsed().as_secs_f64();
        if shown.elapsed() < TICK {
            continue;
        }
        shown = Instant::now();
        let now = proxy.status(false);
        if args.json {
            let written = terminal::put_line(&serde_json::to_string(&now.totals)?);
            match written.as_ref().map_err(io::Error::kind) {
                Ok(()) => is_full = false,
                // Who does not read in time misses some.
                Err(io::ErrorKind::WouldBlock) => {}
                // Connections need not end because a disk is full.
                Err(io::ErrorKind::StorageFull) => {
                    if !std::mem::replace(&mut is_full, true) {
                        terminal::message!(
                            "error: standard output: no space is left; lines are missing until there is some"
                        );
                    }
                }
                Err(_) => {
                    outcome = written;
                    break;
                }
            }
        } else if let Some(line) = &mut line {
            line.show(&summary(&before, &now, seconds));
        }
        before = now;
    }
    proxy.drain();
    drop(line);
    let (start, limit) = (Instant::now(), Duration::from_nanos(args.drain.as_nanos()));
    if !args.quiet && proxy.connections() > 0 {
        let (open, seconds) = (proxy.connections(), limit.as_secs());
        terminal::message!("waiting up to {seconds} s for {open} connections to end; press Ctrl-C to reset them");
    }
    while (proxy.connections() > 0 || start.elapsed() < proxy::HANDSHAKES)
        && start.elapsed() < limit
        && !terminal::is_closed()
    {
        show(proxy.tick()?, args.quiet);
        if matches!(signals.wait(TURN), Happened::Asked { signal: Signal::SIGINT | Signal::SIGTERM, .. }) {
            break;
        }
    }
    let totals = proxy.status(false).totals;
    drop(proxy);
    if !args.quiet && !args.json {
        terminal::message!(
            "{} connections, {} closed, {} reset",
            totals.established,
            totals.closed,
            totals.reset + totals.open
        );
    }
    Ok(outcome?)
}

/// Tells the operator what the proxy has found.
fn show(notice: Option<Notice>, quiet: bool) {
    match notice {
        Some(Notice::Failed(what)) => {
            terminal::message!("error: {what}");
        }
        Some(Notice::Repaired(what) | Notice::Doubtful(what)) if !quiet => terminal::message!("warning: {what}"),
        _ => {}
    }
}

/// The command on its own.
#[derive(Parser)]
struct Alone {
    #[command(flatten)]
    args: ProxyArgs,
}

/// Returns the options of the command line and of its `--config`.
fn configured(args: &ProxyArgs) -> Result<ProxyArgs, Failure> {
    let Some(path) = &args.config else { return Ok(args.clone()) };
    let line: Vec<OsString> = std::env::args_os().skip(1).collect();
    Ok(config::read::<Alone>(path, &line)?.args)
}

/// Reads the configuration again and applies it to the proxy. Returns the changed settings that need a restart. On failure
/// nothing changes.
fn reload(
    command_line: &ProxyArgs,
    args: &mut ProxyArgs,
    feed: &mut Option<Feed>,
    proxy: &mut Proxy,
) -> Result<Vec<&'static str>, Failure> {
    let mut new = configured(command_line)?;
    let fixed = [
        ("the address of the metrics or the file of their token", new.metrics == args.metrics),
        ("the address of the page or the file of its token", new.dashboard == args.dashboard),
        ("the log of connections", log_settings(&new) == log_settings(args)),
    ];
    new.connection_log = args.connection_log.clone();
    (new.connection_log_size, new.connection_log_files) = (args.connection_log_size, args.connection_log_files);
    (new.metrics, new.dashboard) = (args.metrics.clone(), args.dashboard.clone());
    // How many connections the limit of open files permits depends on the threads that there are.
    let wanted = settings(&new)?.threads;
    new.threads = args.threads;
    let settings = Settings { threads: wanted, ..settings(&new)? };
    let other_feed =
        ((&new.reports, &new.broker) != (&args.reports, &args.broker)).then(|| Feed::open(&new)).transpose()?;
    let mut waiting = proxy.change(settings).map_err(refusal)?;
    waiting.extend(fixed.into_iter().filter(|(_, same)| !same).map(|(what, _)| what));
    let controls_otherwise =
        other_feed.is_some() || (new.policy, new.tick, new.ipv6_prefix) != (args.policy, args.tick, args.ipv6_prefix);
    if let Some(other) = other_feed {
        *feed = other;
    }
    if controls_otherwise {
        let (governor, without) = governor(&new, feed.as_ref());
        warn(without.as_ref().filter(|_| !new.quiet));
        proxy.set_governor(governor)?;
    }
    *args = new;
    Ok(waiting)
}

/// Returns where connections are logged, if they are.
fn log_settings(args: &ProxyArgs) -> Option<LogSettings> {
    let file = args.connection_log.clone()?;
    Some(LogSettings { file, size: args.connection_log_size.get(), keep: args.connection_log_files })
}

/// Reports of an input, from which a control takes them.
struct Feed {
    inbox: Inbox,
    follower: Follower,
}

impl Feed {
    /// Opens the input of `--reports`, if there is one.
    fn open(args: &ProxyArgs) -> Result<Option<Feed>, Failure> {
        let Some(input) = &args.reports else { return Ok(None) };
        let input = args.broker.input(input)?;
        let log = Log::new(|text| terminal::message!("{text}"));
        let inbox = Inbox::default();
        let filled = inbox.clone();
        let follower = Follower::start(input, log, move |report| filled.put(report));
        Ok(Some(Feed { inbox, follower: follower.map_err(|why| Failure::Invalid(why.to_string()))? }))
    }
}

/// Returns RAPID with the reports of `feed`, and why it has no congestion windows, if it has none.
fn governor(args: &ProxyArgs, feed: Option<&Feed>) -> (Option<Governor>, Option<ebpf::Error>) {
    let Some(feed) = feed else { return (None, None) };
    let config = rapid::Config { policy: args.policy, tick: args.tick, ..rapid::Config::default() };
    let (windows, without) = match ebpf::rapid::Windows::load() {
        Ok(windows) => (Some(Box::new(Windows(windows)) as Box<dyn RadioWindows>), None),
        Err(why) => (None, Some(why)),
    };
    let control = Box::new(Rapid::new(config));
    let (reports, reports_socket) = (feed.inbox.clone(), feed.follower.socket_file());
    (Some(Governor { control, reports, reports_socket, ipv6_prefix: args.ipv6_prefix, windows }), without)
}

/// Says why there are no congestion windows.
fn warn(why: Option<&ebpf::Error>) {
    if let Some(why) = why {
        terminal::message!("warning: RAPID sets no congestion windows towards UEs, only rates: {why}");
    }
}

/// The congestion windows of RAPID, in the kernel.
struct Windows(ebpf::rapid::Windows);

impl RadioWindows for Windows {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn set(&mut self, socket: BorrowedFd, segments: u32) -> io::Result<()> {
        self.0.set(socket, segments).map_err(io::Error::other)
    }

    fn clear(&mut self, socket: BorrowedFd) -> io::Result<()> {
        self.0.clear(socket).map_err(io::Error::other)
    }

    fn renew(&mut self, time: Duration) -> io::Result<()> {
        self.0.renew(time).map_err(io::Error::other)
    }
}

/// What keeps the proxy from starting is the operator's to change, and nothing has been changed yet.
fn refusal(error: netio::Error) -> Failure {
    match error {
        netio::Error::Wrong(what) | netio::Error::Missing(what) => Failure::Invalid(what),
        error => error.into(),
    }
}

fn settings(args: &ProxyArgs) -> Result<Settings, Failure> {
    let defaults = Settings::new(&[], &[]);
    let time = |span: Span| Duration::from_nanos(span.as_nanos());
    let size = |bytes: Bytes| usize::try_from(bytes.get()).unwrap_or(usize::MAX);
    let mut settings = Settings {
        wan: args.wan.clone(),
        ran: args.ran.clone(),
        ports: args.ports.clone(),
        early: args.early_accept.clone(),
        opened_by_servers: args.from_servers,
        bypass: args.bypass.clone(),
        bypass_marks: args.bypass_marks.clone(),
        only: args.only.clone(),
        ipv6_prefix: args.ipv6_prefix,
        port: args.port,
        threads: args.threads.map_or(defaults.threads, usize::from),
        max_connections: args.max_connections.map_or(defaults.max_connections, |connections| connections as usize),
        max_per_ue: args.max_per_ue as usize,
        max_per_server: args.max_per_server as usize,
        max_half_open: args.max_half_open as usize,
        max_half_open_per_ue: args.max_half_open_per_ue as usize,
        max_half_open_per_server: args.max_half_open_per_server as usize,
        buffer: size(args.buffer),
        receive_buffer: size(args.receive_buffer),
        unsent: size(args.unsent),
        memory: args.memory.map_or(defaults.memory, Bytes::get),
        connect_timeout: time(args.connect_timeout),
        idle_timeout: time(args.idle_timeout),
        half_closed_timeout: time(args.half_closed_timeout),
        dead_peer_time: time(args.dead_peer_time),
        radio_congestion: args.cc.clone(),
        ..defaults
    };
    if args.max_connections.is_none() {
        settings.max_connections = proxy::permitted_connections(&settings).max(1);
    }
    Ok(settings)
}

/// Parses a policy as a scenario has it, in the form of the command line.
fn policy(text: &str) -> Result<Policy, String> {
    let policy = match text.split(':').next() {
        Some("best" | "published" | "artefact" | "milli-proxy") => sim::rapid_policy(text.parse::<ProxyPolicy>()?),
        _ => None,
    };
    policy.ok_or_else(|| "expected best, published, artefact or milli-proxy".into())
}

fn tick(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|why| format!("{why}"))?;
    let range = Span::from_micros(500)..=Span::from_secs(1);
    if range.contains(&span) { Ok(span) } else { Err("expected a time from 0.5 ms to 1 s".into()) }
}

/// Parses a mark, or its bits and where they count.
fn mark(text: &str) -> Result<Mark, String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    match (number(value), number(mask)) {
        (Some(value), Some(mask)) if value & !mask == 0 && mask != 0 => Ok(Mark { value, mask }),
        _ => Err("expected a mark or a mark and its mask, such as 0x10 or 0x10/0xff".into()),
    }
}

/// Parses a port or a range of ports.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| match text.trim().parse::<u16>() {
        Ok(0) | Err(_) => Err(format!("`{text}` is not a port from 1 to 65535")),
        Ok(port) => Ok(port),
    };
    let range = port(first)?..=port(last)?;
    if range.is_empty() { Err("the first port of a range is the smaller one".into()) } else { Ok(range) }
}

fn summary(before: &Status, now: &Status, seconds: f64) -> String {
    let mbps = |from: u64, to: u64| to.saturating_sub(from) as f64 * 8e-6 / seconds.max(1e-3);
    let (was, is) = (&before.totals, &now.totals);
    let bypassed = if now.accepting { "" } else { "  new connections bypass the proxy" };
    format!(
        "{:5} connections  to UEs {:8.2} Mbit/s  from UEs {:8.2} Mbit/s{bypassed}",
        is.open,
        mbps(was.to_ue_bytes, is.to_ue_bytes),
        mbps(was.from_ue_bytes, is.from_ue_bytes),
    )
}

fn status(args: &StatusArgs) -> Result<(), Failure> {
    let mut status = proxy::ask(args.ran.as_deref())?;
    let mut stdout = terminal::stdout();
    let mut largest = None;
    if let Some(most) = args.top {
        let asked = Instant::now();
        std::thread::sleep(top::TIME);
        let before = std::mem::replace(&mut status, proxy::ask(args.ran.as_deref())?);
        largest = Some(top::largest(&before, &status, asked.elapsed().as_secs_f64(), most as usize));
    }
    if let Some(ues) = largest.as_ref().filter(|_| args.json) {
        writeln!(stdout, "{}", serde_json::to_string_pretty(ues)?)?;
        return Ok(());
    }
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&status)?)?;
        return Ok(());
    }
    let of = &status.totals;
    let state = match status.bypass {
        _ if status.accepting => "new connections are split".to_owned(),
        Some(why) => format!("new connections bypass the proxy: {}", why.text()),
        None => "new connections bypass the proxy".to_owned(),
    };
    let bypassed: Vec<String> =
        of.bypassed.iter().map(|(reason, count)| format!("{count} {}", reason.name().replace('_', " "))).collect();
    writeln!(
        stdout,
        "{} connections, {} half-open; {state}\nsince the start: {} established, {} closed, {} reset, {} failed to connect, \
         {} timed out, {} overloads",
        of.open,
        of.half_open,
        of.established,
        of.closed,
        of.reset,
        of.connect_failed,
        of.connect_timeouts + of.idle_timeouts + of.half_closed_timeouts,
        of.overloads,
    )?;
    if !bypassed.is_empty() {
        writeln!(stdout, "bypassed the proxy: {}", bypassed.join(", "))?;
    }
    let Unused { ahead, old, impossible, overtaken } = status.unused_reports;
    if ahead + old + impossible + overtaken > 0 {
        writeln!(
            stdout,
            "reports discarded: {ahead} from the future, {old} too old, {impossible} impossible, {overtaken} overtaken"
        )?;
    }
    if let Some(ues) = largest {
        writeln!(stdout, "\n{}", top::table(&ues))?;
    } else if !status.connections.is_empty() {
        writeln!(stdout, "\n{}", table(&status))?;
    }
    Ok(())
}

/// The connections, with a row for each UE before its own.
fn table(status: &Status) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "UE",
        "peer",
        "age s",
        "to UE kB",
        "from UE kB",
        "held kB",
        "radio Mbit/s",
        "promised",
        "feed",
        "radio RTT ms",
        "wired RTT ms",
        "wired window kB",
        "radio window kB",
    ]);
    let kilo = |bytes: u64| format!("{:.0}", bytes as f64 / 1e3);
    let promised = |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!("{rate:.2}"));
    for (ue, connections) in status.by_ue() {
        let sum = |of: fn(&Connection) -> u64| kilo(connections.iter().map(of).sum());
        let rate: f64 = connections.iter().map(|connection| connection.radio_mbps).sum();
        table.add_row([
            ue.to_string(),
            format!("{} connections", connections.len()),
            String::new(),
            sum(|one| one.arrived),
            sum(|one| one.from_ue_bytes),
            sum(Connection::waiting),
            format!("{rate:.2}"),
            promised(Connection::all_promised_mbps(connections)),
            status.feed(ue).map_or_else(String::new, |feed| format!("{} {:.0} ms", feed.trust, feed.age_s * 1e3)),
        ]);
        for one in connections {
            let arrow = if one.from_ue { "→" } else { "←" };
            table.add_row([
                format!("  :{} {arrow}", one.ue.port()),
                one.peer.to_string(),
                format!("{:.0}", one.age_s),
                kilo(one.arrived),
                kilo(one.from_ue_bytes),
                kilo(one.waiting()),
                format!("{:.2}", one.radio_mbps),
                promised(one.promised_mbps),
                String::new(),
                format!("{:.1}", one.radio_rtt_ms),
                format!("{:.1}", one.wired_rtt_ms),
                kilo(one.wired_window),
                kilo(one.radio_window),
            ]);
        }
    }
    for column in 2..13 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_the_parameters_of_scenarios() {
        let best = rapid::Best { radio_target: Span::from_millis(10), ..rapid::Best::default() };
        assert_eq!(policy("best:radio_target=10 ms"), Ok(Policy::Best(best)));
        assert_eq!(policy("best:"), policy("best"));
        let published = rapid::Published {
            blocks: rapid::TransportBlocks::Nr { mcs_table: rapid::McsTable::Qam256, elements: 144 },
            alpha: 0.4,
            ..rapid::Published::default()
        };
        assert_eq!(policy("published:alpha=0.4,blocks=nr-256qam"), Ok(Policy::Published(published)));
        assert_eq!(policy("published"), Ok(Policy::Published(rapid::Published::default())));
        let module = rapid::Published::kernel_module();
        assert_eq!(policy("artefact:code=kernel-module"), Ok(Policy::Published(module)));
        for (text, why) in [
            ("worst", "expected best, published, artefact or milli-proxy"),
            ("split", "expected best, published, artefact or milli-proxy"),
            ("best:radio_target", "expected KEY=VALUE, not `radio_target`"),
            ("published:alpha=2", "alpha: 2 is out of range: must be from 0 to 1"),
            ("milli-proxy:alpha=0", "alpha: unknown key; `milli-proxy` has no keys"),
        ] {
            assert_eq!(policy(text), Err(why.to_owned()));
        }
    }

    #[test]
    fn marks_are_parsed_or_refused() {
        assert_eq!(mark("0x10"), Ok(Mark { value: 0x10, mask: u32::MAX }));
        assert_eq!(mark("16/0xff"), Ok(Mark { value: 0x10, mask: 0xff }));
        for text in ["0x100/0xff", "0/0", "x", "1/"] {
            assert!(mark(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ports_are_single_or_ranges() {
        assert_eq!(ports("443"), Ok(443..=443));
        assert_eq!(ports("8000-8080"), Ok(8000..=8080));
        for (text, why) in [
            ("0", "`0` is not a port from 1 to 65535"),
            ("80-", "`` is not a port from 1 to 65535"),
            ("65536", "`65536` is not a port from 1 to 65535"),
            ("9-8", "the first port of a range is the smaller one"),
        ] {
            assert_eq!(ports(text), Err(why.to_owned()));
        }
    }
}
