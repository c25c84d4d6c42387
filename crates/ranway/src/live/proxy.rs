//! `ranway proxy`.

mod args;
mod beside;
mod config;
mod successor;
mod top;

use crate::live::dashboard::ProxyFollower;
use crate::live::status_line::StatusLine;
use crate::{failure::Failure, terminal};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets};
use netio::manager::Manager;
use netio::process::{Happened, Signals, wait_for_no_reader};
use nix::sys::signal::Signal;
use services::proxy::{self, Connection, Inheritance, Proxy, Settings, Status, Unused};
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use units::Bytes;

pub(crate) use args::ProxyArgs;

use args::{ProxyCommand, StatusArgs, refusal, settings};
use beside::{Beside, Feed, export_settings, governor, log_settings, show, warn};
use successor::{Succession, Successor, take_over, tell_manager};

/// Interval between checks for signals, of the threads and to the guardian.
const TURN: Duration = Duration::from_millis(100);
/// Interval between status lines.
const TICK: Duration = Duration::from_secs(1);
/// The hidden command of the guardian.
pub(crate) const GUARDIAN: &str = "proxy-guardian";

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
    let signals = Signals::take_also(&[Signal::SIGUSR2])?;
    let this = std::env::current_exe()?;
    let mut successor = Successor::of(this.clone());
    let guardian = move || {
        let mut command = Command::new(&this);
        command.arg(GUARDIAN);
        command
    };
    let left = if args.take_over { Inheritance::ask(&args.ran[0]).map_err(refusal)? } else { None };
    let (mut proxy, beside) = match left {
        None => {
            let mut beside = Beside::open(&args, Err)?;
            let mut proxy = Proxy::start(settings, beside.governor.take(), None, guardian).map_err(refusal)?;
            beside.attach(&args, &mut proxy, Err)?;
            tell_manager(Manager::ready)?;
            (proxy, beside)
        }
        Some(left) => take_over(&args, settings, left, guardian)?,
    };
    let Beside { mut feed, dashboard, without, metrics_at, .. } = beside;
    if !args.quiet {
        announce(&args, &proxy, metrics_at);
        warn(without.as_ref());
        warn_of_forwarding();
    }
    let follower = dashboard.as_ref().map(|page| ProxyFollower::new(page.publisher(), proxy.observer()));
    let mut line = (!args.quiet && !args.json).then(|| StatusLine::new(false)).flatten();
    let mut shown = Instant::now();
    let mut before = Status::default();
    let mut outcome = Ok(());
    let mut is_full = false;
    loop {
        show(proxy.tick()?, args.quiet);
        match successor.look(&mut proxy) {
            Succession::None => {}
            Succession::Complete(count) => {
                // The other process waits for the addresses and files that this one has.
                drop((line, feed, follower, dashboard, proxy));
                report(count, args.quiet);
                return Ok(outcome?);
            }
            Succession::Failed => proxy.set_governor(governor(&args, feed.as_ref()).0)?,
        }
        match signals.wait(TURN) {
            Happened::Asked { signal: Signal::SIGUSR2, .. } => successor.start(),
            Happened::Asked { signal: Signal::SIGHUP, terminal: false } if args.config.is_none() => {
                terminal::message!("SIGHUP has no effect without --config");
            }
            Happened::Asked { signal: Signal::SIGHUP, terminal: false } => {
                let done = reload(command_line, &mut args, &mut feed, &mut proxy);
                tell_reload(done, args.quiet);
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
            outcome = put_totals(&serde_json::to_string(&now.totals)?, &mut is_full);
            if outcome.is_err() {
                break;
            }
        } else if let Some(line) = &mut line {
            line.show(&summary(&before, &now, seconds));
        }
        before = now;
    }
    drop(line);
    if let Some(count) = drain(&args, &mut proxy, &mut successor, &signals)? {
        drop((feed, follower, dashboard, proxy));
        report(count, args.quiet);
        return Ok(outcome?);
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

fn announce(args: &ProxyArgs, proxy: &Proxy, metrics_at: Option<SocketAddr>) {
    let (wan, ran) = (args.wan.join(", "), args.ran.join(", "));
    let at = metrics_at.map(|address| format!(", metrics at http://{address}/metrics")).unwrap_or_default();
    let before = proxy.inherited().map(|count| format!(", with {count} of the process before")).unwrap_or_default();
    terminal::message!("splitting TCP connections between {wan} and {ran}{before}{at}; press Ctrl-C to stop");
}

/// Warns if this machine is no router.
fn warn_of_forwarding() {
    for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
        let path = format!("/proc/sys/net/{setting}");
        if std::fs::read_to_string(path).is_ok_and(|value| value.trim() == "0") {
            let name = setting.replace('/', ".");
            terminal::message!("warning: net.{name} is 0: this kernel forwards no such packets");
        }
    }
}

/// Tells what came of reading the configuration again: the settings that wait for a restart, or why nothing has changed.
fn tell_reload(done: Result<Vec<&'static str>, Failure>, quiet: bool) {
    match done {
        Ok(waiting) if waiting.is_empty() && quiet => {}
        Ok(waiting) if waiting.is_empty() => terminal::message!("the configuration was read again"),
        Ok(waiting) => {
            let what = waiting.join(", ");
            terminal::message!("warning: the configuration was read again; until a restart, these stay: {what}");
        }
        Err(why) => {
            let why = why.message().unwrap_or_default();
            terminal::message!("error: {why}; the settings stay as they were");
        }
    }
}

/// Writes a line to standard output. `is_full` is whether the disk behind it has no space, which is told once.
///
/// # Errors
/// The reader is gone. Connections need not end because a disk is full, and who does not read in time misses some lines.
fn put_totals(line: &str, is_full: &mut bool) -> io::Result<()> {
    let written = terminal::put_line(line);
    match written.as_ref().map_err(io::Error::kind) {
        Ok(()) => *is_full = false,
        Err(io::ErrorKind::WouldBlock) => {}
        Err(io::ErrorKind::StorageFull) => {
            if !std::mem::replace(is_full, true) {
                terminal::message!("error: standard output: no space is left; lines are missing until there is some");
            }
        }
        Err(_) => return written,
    }
    Ok(())
}

/// Waits for connections to end. Returns how many another process has taken over, if one has.
fn drain(
    args: &ProxyArgs,
    proxy: &mut Proxy,
    successor: &mut Successor,
    signals: &Signals,
) -> Result<Option<u64>, Failure> {
    proxy.drain();
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
        // One that was about to take over may still do so. Should it give up, nothing new comes in.
        proxy.drain();
        if let Succession::Complete(count) = successor.look(proxy) {
            return Ok(Some(count));
        }
        if matches!(signals.wait(TURN), Happened::Asked { signal: Signal::SIGINT | Signal::SIGTERM, .. }) {
            break;
        }
    }
    Ok(None)
}

/// Tells of a hand-over.
fn report(count: u64, quiet: bool) {
    if !quiet {
        terminal::message!("{count} connections were handed over");
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
    let args = config::read::<Alone>(path, &line)?.args;
    let missing: Vec<&str> = [("no `wan`", &args.wan), ("no `ran`", &args.ran)]
        .into_iter()
        .filter_map(|(what, interfaces)| interfaces.is_empty().then_some(what))
        .collect();
    if !missing.is_empty() {
        let (path, missing) = (path.display(), missing.join(" and "));
        let valid = "both interfaces are needed, such as `wan = \"eth0\"` and `ran = \"eth1\"`";
        return Err(Failure::Invalid(format!("{path}: {missing}: {valid}")));
    }
    Ok(args)
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
    if export_settings(&new) != export_settings(args) {
        proxy.export_flows(export_settings(&new))?;
    }
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
    if of.quic_to_ue_bytes + of.quic_from_ue_bytes > 0 {
        let [to, from] = [of.quic_to_ue_bytes, of.quic_from_ue_bytes].map(Bytes::new);
        writeln!(stdout, "QUIC beside the proxy: {to} to UEs, {from} from UEs")?;
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
