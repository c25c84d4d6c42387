//! `ranway measure SERVER`.

use super::shown::Flows;
use super::{capture, told};
use crate::failure::Failure;
use crate::live::dashboard::{DashboardArgs, Values, untitled};
use crate::live::secrets;
use crate::live::status_line::StatusLine;
use crate::out::{commit, counted};
use crate::{interrupt, terminal};
use anyhow::anyhow;
use clap::{Args as ClapArgs, ValueEnum};
use meter::{
    Amount, Captured, Fault, Glance, HostPort, Key, Load, Modem, Outcome, Plan, Protocol, TOKEN_VARIABLE, Target, Tls,
    Trust,
};
use netio::socket::connect_through;
use observe::kernel::Way;
use record::{Output, Partial, Results, ms};
use serde_json::json;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};
use units::{Bytes, Span};

/// The port of a server unless it is given.
const PORT: u16 = 5231;
/// Time to connect to each address of a server.
const CONNECT: Duration = Duration::from_secs(5);
/// Time for a server that refuses connections to start: it may have been started together with this program.
const STARTING: Duration = Duration::from_secs(2);
/// Time between two attempts to connect to it.
const AGAIN: Duration = Duration::from_millis(100);
/// The longest file of keys, in bytes.
const LONGEST_KEYS: u64 = 1 << 20;

/// The options of `ranway measure SERVER`.
#[derive(ClapArgs)]
pub(super) struct ClientArgs {
    /// The server, HOST or HOST:PORT; an IPv6 address with a port has brackets, as `[::1]:5231`, and a link-local one its interface,
    /// as `fe80::1%eth0` [default port: 5231]
    #[arg(required = true)]
    server: Option<String>,
    /// Directions to measure, one after the other
    #[arg(long, short, value_name = "DIRECTION", value_delimiter = ',', default_value = "down,up")]
    direction: Vec<Direction>,
    /// Number of flows in each direction
    #[arg(long, short, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    flows: u8,
    /// Congestion controls of the flows, which take turns, such as cubic,bbr [default: the kernel's]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = clap::builder::NonEmptyStringValueParser::new())]
    cc: Vec<String>,
    /// Length of each transfer; of downloads by RMBT rounded up to whole seconds
    #[arg(long, short, value_name = "TIME", default_value = "10 s", conflicts_with = "bytes")]
    time: Span,
    /// Data of each flow, instead of a time
    #[arg(long, value_name = "SIZE")]
    bytes: Option<Bytes>,
    /// Protocol of the server
    #[arg(long, value_name = "NAME", default_value = "rmbt")]
    protocol: ProtocolName,
    /// Use TLS (HTTPS and WSS, or RMBT over TLS)
    #[arg(long)]
    tls: bool,
    /// Trust these authorities (PEM) for servers' certificates, instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Accept any certificate, as of a server with --self-signed; others can then read and change what is sent
    #[arg(long)]
    insecure: bool,
    /// Token that the server requires. Other users can see command lines: a token that is good for more than this test belongs in
    /// --token-file, or in the variable `RANWAY_MEASURE_TOKEN`
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["control", "key"])]
    token: Option<String>,
    /// File with the token, which others than its owner and its group cannot read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["token", "control", "key"])]
    token_file: Option<PathBuf>,
    /// Control server of RMBT that gives a token, such as `http://192.0.2.1:5231` or `https://example.org`
    #[arg(long, value_name = "URL", conflicts_with = "key")]
    control: Option<String>,
    /// File with the server's key, with which a token is made
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Let flows transfer data for about two seconds, between the probes of --idle and the load, so that their windows are open (RMBT)
    #[arg(long)]
    warm: bool,
    /// Interval between samples of the kernel's state of each flow
    #[arg(long, value_name = "TIME", default_value = "10 ms")]
    interval: Span,
    /// Send and receive everything through this network interface, whatever the route [default: that of the route]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    interface: Option<String>,
    /// Time for latency probes alone, before and after each load
    #[arg(long, value_name = "TIME", default_value = "2 s")]
    idle: Span,
    /// Interval between latency probes
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    probe_interval: Span,
    /// Number of routers on the path to probe; 0 for none
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=32))]
    hops: u8,
    /// Metadata about the radio: `auto` from ModemManager if it runs, `none`, or a modem of ModemManager by its network interface,
    /// port or number
    #[arg(long, value_name = "MODEM", default_value = "auto")]
    modem: String,
    /// Write the headers of the measurement's packets to FILE (pcapng), which `ranway analyse` reads; replaces FILE; needs
    /// `CAP_NET_RAW`
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Output directory; replaces earlier results there [default: ranway-out/measure]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dashboard: DashboardArgs,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// From the server
    Down,
    /// To the server
    Up,
    /// Both at the same time
    Both,
}

impl Direction {
    fn ways(self) -> Vec<Way> {
        match self {
            Direction::Down => vec![Way::Down],
            Direction::Up => vec![Way::Up],
            Direction::Both => vec![Way::Down, Way::Up],
        }
    }
}

/// A protocol.
#[derive(Clone, Copy, ValueEnum)]
enum ProtocolName {
    /// RTR Multithreaded Broadband Test
    Rmbt,
    /// M-Lab's throughput1, in which clients choose the server's congestion control
    Throughput1,
    /// M-Lab's ndt7, of one flow
    Ndt7,
}

impl ProtocolName {
    fn name(self) -> &'static str {
        match self {
            ProtocolName::Rmbt => "rmbt",
            ProtocolName::Throughput1 => "throughput1",
            ProtocolName::Ndt7 => "ndt7",
        }
    }
}

pub(super) fn run(args: &ClientArgs) -> Result<(), Failure> {
    let plan = plan(args)?;
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("ranway-out/measure"));
    let output = Output::create(&out)?;
    let start = Instant::now();
    let interface = plan.target.interface.as_deref();
    let capture = args.pcap.as_deref().map(|file| capture::start(file, plan.target.address, interface)).transpose()?;
    let mut line = (!args.quiet && !args.json).then(|| StatusLine::new(false)).flatten();
    let title = || untitled(format!("Measurement of {}", plan.target.name));
    let dashboard = args.dashboard.start("measure", title, args.quiet, |_| {})?;
    let values = dashboard.as_ref().map(|page| Values::new(page.publisher()));
    let mut outcome = measure(&plan, (&mut line, values.as_ref()))?;
    drop(line);
    let captured = capture.map(capture::Running::finish);
    if let Some(Err(why)) = &captured {
        outcome.missing.push(format!("packets: {why}"));
    }
    let partial = outcome.is_partial();
    let results = results(&plan, args, (&outcome, captured.as_ref()), start.elapsed());
    // What cannot be written, as on a full disk, is printed all the same.
    let written = results.write_to(&output).map_err(Failure::from).and_then(|()| commit(output, partial, &out));
    if let (Some(dashboard), Ok(out)) = (dashboard, &written) {
        dashboard.end(out);
    }
    if args.json {
        let answer = json!({ "out": written.as_ref().ok(),
            "loads": outcome.loads.iter().map(|load| told::describe(&outcome, load)).collect::<Vec<_>>(),
            "proxy": told::proxy(&outcome), "missing": outcome.reasons(), "capture": captured.and_then(Result::ok).as_ref().map(capture::json),
            "summary": results.summary() });
        writeln!(terminal::stdout(), "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.quiet {
        for load in &outcome.loads {
            terminal::message!("{}", told::text(&plan, &outcome, load).trim_end());
        }
        if let Some(signs) = outcome.proxy_signs().filter(|signs| !signs.is_empty()) {
            terminal::message!("{}", told::proxy_text(&signs));
        }
        for why in outcome.reasons() {
            terminal::message!("not measured: {why}");
        }
        if let (Some(Ok(captured)), Some(file)) = (&captured, &args.pcap) {
            terminal::message!("packets: {}, {}", file.display(), capture::describe(captured));
        }
        if let Ok(out) = &written {
            terminal::message!("report: {}", out.join("report.html").display());
        }
    }
    written?;
    if partial {
        let why = if outcome.interrupted { "interrupted: " } else { "" };
        terminal::message!("{why}the results are partial, {} of {} loads", outcome.finished, plan.loads.len());
    }
    match outcome.fault {
        Some(fault) => Err(Failure::Failed(anyhow!(fault))),
        None if outcome.interrupted => Err(Failure::Interrupted),
        None => Ok(()),
    }
}

/// Measures with the status line on the terminal; Ctrl-C ends the measurement in order.
fn measure(plan: &Plan, (line, values): (&mut Option<StatusLine>, Option<&Values>)) -> Result<Outcome, Failure> {
    let stop = interrupt::flag();
    let (mut rates, mut flows) = (Rates::default(), Flows::new(plan));
    let mut glance = |glance: &Glance| {
        if terminal::is_closed() {
            stop.store(true, Relaxed);
        }
        if let Some(values) = values {
            flows.add(glance);
            values.show(|t_s| (flows.rows(t_s, glance), Vec::new()));
        }
        if let Some(line) = line {
            let rate = rates.since(glance);
            line.show(&status(glance, &doing(glance), rate));
        }
    };
    meter::measure(plan, stop, &mut glance).map_err(|fault| match fault {
        Fault::Interrupted => Failure::Interrupted,
        Fault::Option(what) => Failure::Invalid(what),
        fault => Failure::Failed(fault.into()),
    })
}

/// The rate since the glance before.
#[derive(Default)]
struct Rates {
    before: Option<Glance>,
}

impl Rates {
    fn since(&mut self, glance: &Glance) -> Option<f64> {
        let same_load = self.before.take().filter(|before| before.load == glance.load);
        let rate = same_load.map(|before| {
            let seconds = glance.at.saturating_since(before.at).as_secs_f64();
            glance.bytes.saturating_sub(before.bytes) as f64 * 8e-6 / seconds.max(1e-3)
        });
        self.before = Some(glance.clone());
        rate.filter(|_| !glance.ways.is_empty())
    }
}

/// What is being measured.
fn doing(glance: &Glance) -> String {
    match &glance.ways[..] {
        [] => "latency alone".to_owned(),
        ways => ways.iter().map(|way| way.name()).collect::<Vec<_>>().join(" and "),
    }
}

fn status(glance: &Glance, what: &str, rate: Option<f64>) -> String {
    let rate = rate.map(|rate| format!("  {rate:8.2} Mbit/s")).unwrap_or_default();
    let rtt = glance.rtt.map(|rtt| format!("  {:6.0} ms", ms(rtt))).unwrap_or_default();
    format!("{:5.1} s  {what}{rate}{rtt}", glance.at.as_secs_f64())
}

fn plan(args: &ClientArgs) -> Result<Plan, Failure> {
    // What is wrong with the options is said before anything goes over the network.
    let modem = modem(&args.modem)?;
    let interface = args.interface.as_deref();
    let refused = |why: String| Failure::Invalid(format!("--interface: {why}"));
    interface.map_or(Ok(()), meter::check_interface).map_err(refused)?;
    let trust = trust(args)?;
    let invalid = |fault: Fault| Failure::Invalid(fault.to_string());
    let tls = args.tls.then(|| Tls::new(&trust)).transpose().map_err(invalid)?;
    let range = |what: &str, span: Span, from: Span, to: Span| {
        let valid = (from..=to).contains(&span);
        if valid { Ok(span) } else { Err(Failure::Invalid(format!("--{what}: expected a time from {from} to {to}"))) }
    };
    let protocol = match args.protocol {
        ProtocolName::Rmbt => Protocol::Rmbt,
        ProtocolName::Throughput1 => Protocol::Throughput1,
        ProtocolName::Ndt7 => Protocol::Ndt7,
    };
    let server = args.server.as_deref().unwrap_or_default();
    let host_port = host_port(server)?;
    // The server's address and the token are not known yet.
    let target = Target {
        name: host_port.host.to_owned(),
        address: ([0; 4], PORT).into(),
        interface: args.interface.clone(),
        protocol,
        tls,
        token: given_token(args)?,
    };
    let mut plan = Plan {
        target,
        loads: args.direction.iter().map(|direction| direction.ways()).collect(),
        flows: args.flows.into(),
        congestion: args.cc.iter().map(|name| meter::kernel_name(name).to_owned()).collect(),
        amount: args.bytes.map_or(Amount::Time(args.time), |bytes| Amount::Bytes(bytes.get())),
        interval: range("interval", args.interval, Span::from_millis(1), Span::from_secs(10))?,
        idle: range("idle", args.idle, Span::ZERO, Span::from_secs(60))?,
        probing: range("probe-interval", args.probe_interval, Span::from_millis(10), Span::from_secs(10))?,
        hops: args.hops,
        warm: args.warm,
        modem,
    };
    plan.check().map_err(Failure::Invalid)?;
    plan.check_kernel().map_err(invalid)?;
    let key = args.key.as_deref().map(|file| read_key("--key", file)).transpose()?;
    let invalid_server = |why: String| Failure::Invalid(format!("{server}: {why}"));
    let addresses = meter::addresses(&host_port, host_port.port.unwrap_or(PORT)).map_err(invalid_server)?;
    if let Some(url) = &args.control {
        plan.target.token = meter::request_token(url, &trust, interface).map_err(of_control)?;
    }
    plan.target.address = first_reached(server, &addresses, interface)?;
    if let Some(key) = &key {
        plan.target.token = make_token(key, plan.target.address, interface)?;
    }
    if has_spaces(&plan.target.token) {
        return Err(Failure::Failed(anyhow!("--control: the server gave a token with spaces")));
    }
    Ok(plan)
}

/// Returns the token of the options or the variable, unless another option gets one; any text for RMBT without one.
fn given_token(args: &ClientArgs) -> Result<String, Failure> {
    let is_made = args.control.is_some() || args.key.is_some();
    let variable = || std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty() && !is_made);
    let no_token = if matches!(args.protocol, ProtocolName::Rmbt) { "none" } else { "" };
    let of_file = args.token_file.as_deref().map(secrets::read).transpose()?;
    let token = args.token.clone().or(of_file).or_else(variable).unwrap_or_else(|| no_token.to_owned());
    if has_spaces(&token) {
        let from = match (&args.token, &args.token_file) {
            (Some(_), _) => "--token",
            (_, Some(_)) => "--token-file",
            _ => TOKEN_VARIABLE,
        };
        return Err(Failure::Invalid(format!("{from}: a token has no spaces")));
    }
    Ok(token)
}

fn has_spaces(token: &str) -> bool {
    token.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Returns who may sign servers' certificates.
fn trust(args: &ClientArgs) -> Result<Trust, Failure> {
    let is_used = args.tls || args.control.as_ref().is_some_and(|url| url.starts_with("https://"));
    let given = args.ca.as_ref().map(|_| "--ca").or(args.insecure.then_some("--insecure"));
    if let Some(option) = given.filter(|_| !is_used) {
        return Err(Failure::Invalid(format!(
            "{option}: there is no TLS; add --tls, or use a control server of https://"
        )));
    }
    Ok(match &args.ca {
        Some(file) => Trust::File(file.clone()),
        None if args.insecure => Trust::Anyone,
        None => Trust::System,
    })
}

/// Returns where the metadata about the radio comes from.
fn modem(name: &str) -> Result<Modem, Failure> {
    let is_name = |name: &str| !name.is_empty() && name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_graphic());
    match name {
        "none" => Ok(Modem::None),
        "auto" => Ok(Modem::Manager { bus: None, name: None }),
        name if is_name(name) => Ok(Modem::Manager { bus: None, name: Some(name.to_owned()) }),
        _ => Err(Failure::Invalid("--modem: expected auto, none or the name of a modem".into())),
    }
}

/// What a control server's refusal means for the exit code: a URL that is none is the user's fault.
fn of_control(fault: Fault) -> Failure {
    match fault {
        Fault::Option(what) => Failure::Invalid(format!("--control: {what}")),
        fault => Failure::Failed(anyhow!("--control: {fault}")),
    }
}

/// Reads the first key of a file, which `option` named.
pub(crate) fn read_key(option: &str, file: &Path) -> Result<Key, Failure> {
    let invalid = |why: &dyn std::fmt::Display| Failure::Invalid(format!("{option}: {}: {why}", file.display()));
    let text = disk::read(file, LONGEST_KEYS).map_err(|why| invalid(&why))?;
    let text = String::from_utf8(text).map_err(|_| invalid(&"expected a key on each line"))?;
    meter::first_key(&text).map_err(|why| invalid(&why))
}

/// Makes a token with a key, for the address from which this host reaches the server.
fn make_token(key: &Key, server: SocketAddr, interface: Option<&str>) -> Result<String, Failure> {
    meter::make_token(key, server, interface).map_err(|fault| Failure::Failed(fault.into()))
}

/// Parses a server as the user gave it.
fn host_port(server: &str) -> Result<HostPort<'_>, Failure> {
    if let Some((_, host)) = server.split_once("://") {
        let host = host.split('/').next().unwrap_or_default();
        return Err(Failure::Invalid(format!("{server}: expected HOST or HOST:PORT, as {host}; --tls uses TLS")));
    }
    HostPort::parse(server).map_err(|why| Failure::Invalid(format!("{server}: {why}")))
}

/// Returns the first of a server's addresses at which it accepts connections. `server` is what the user gave.
fn first_reached(server: &str, addresses: &[SocketAddr], interface: Option<&str>) -> Result<SocketAddr, Failure> {
    let start = Instant::now();
    loop {
        let mut last = None;
        for &address in addresses {
            match connect_through(address, interface, CONNECT) {
                Ok(_) => return Ok(address),
                Err(why) => last = Some((address, why)),
            }
        }
        let (address, why) = last.ok_or_else(|| anyhow!("{server}: it has no address"))?;
        if why.kind() != ErrorKind::ConnectionRefused || start.elapsed() >= STARTING {
            let is_elsewhere = why.kind() == ErrorKind::ConnectionRefused && !address.ip().to_canonical().is_loopback();
            let listens = || is_elsewhere.then(|| "; `ranway measure serve` needs --listen to be reached".to_owned());
            let through = || Some(format!("; `{}` needs an address and a route to the server", interface?));
            let hint = meter::written_as_port(server)
                .map(|written| format!("; write {written} if the last group is a port"))
                .or_else(listens)
                .or_else(through)
                .unwrap_or_default();
            return Err(anyhow!("{server}: no server at {address}: {why}{hint}").into());
        }
        thread::sleep(AGAIN);
    }
}

fn results(
    plan: &Plan,
    args: &ClientArgs,
    (outcome, captured): (&Outcome, Option<&Result<Captured, String>>),
    wall: Duration,
) -> Results {
    let mut results = Results { tables: outcome.tables(), ..Results::default() };
    results.meta.title = format!("Measurement: {}", counted(plan.flows as u64, "flow"));
    results.meta.version = env!("CARGO_PKG_VERSION").to_owned();
    results.meta.runs = 1;
    let direction = |load: &Load| match (load.has(Way::Down), load.has(Way::Up)) {
        (true, true) => "both",
        (true, false) => "down",
        _ => "up",
    };
    for load in &outcome.loads {
        let mut point = record::Point::default();
        if plan.loads.len() > 1 {
            point.values.insert("direction".into(), direction(load).into());
        }
        results.meta.points.push(point);
    }
    // Neither the server's address nor this host's: results are for publication.
    results.meta.scenario = json!({ "measurement": {
        "protocol": args.protocol.name(),
        "tls": args.tls,
        "flows": plan.flows,
        "cc": plan.congestion,
        "interval_ms": ms(plan.interval),
        "started_unix_s": outcome.unix.as_secs_f64().floor(),
        "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
        "proxy": told::proxy(outcome),
        "missing": outcome.reasons(),
        "capture": captured.and_then(|captured| captured.as_ref().ok()).map(capture::json),
        "loads": outcome.loads.iter().map(|load| told::describe(outcome, load)).collect::<Vec<_>>(),
    }});
    results.meta.partial = outcome.is_partial().then(|| Partial {
        finished: outcome.finished as u64,
        of: plan.loads.len() as u64,
        ..Partial::default()
    });
    results.timing.wall_s = Some(wall.as_secs_f64());
    results.timing.threads = 1;
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    fn glance(load: usize, ms: u64, ways: &[Way], bytes: u64) -> Glance {
        let rtt = ms.is_multiple_of(2).then(|| Span::from_millis(83));
        Glance { load, at: Time::from_nanos(ms * 1_000_000), ways: ways.to_vec(), bytes, flows: Vec::new(), rtt }
    }

    #[test]
    fn the_status_line_tells_what_is_measured_and_how_fast_it_is() {
        let mut rates = Rates::default();
        let mut line = |glance: &Glance| {
            let rate = rates.since(glance);
            status(glance, &doing(glance), rate)
        };
        let up = [Way::Up];
        let both = [Way::Down, Way::Up];
        // Before a load there is no rate.
        assert_eq!(line(&glance(0, 500, &[], 0)), "  0.5 s  latency alone      83 ms");
        assert_eq!(line(&glance(0, 2_000, &up, 0)), "  2.0 s  upload      0.00 Mbit/s      83 ms");
        assert_eq!(line(&glance(0, 2_200, &up, 500_000)), "  2.2 s  upload     20.00 Mbit/s      83 ms");
        // A rate is of the time since the glance before; a round trip may be missing.
        assert_eq!(line(&glance(0, 2_401, &up, 500_000)), "  2.4 s  upload      0.00 Mbit/s");
        // The bytes of another load begin anew.
        assert_eq!(line(&glance(1, 7_000, &both, 100_000)), "  7.0 s  download and upload      83 ms");
        assert_eq!(line(&glance(1, 7_400, &both, 600_000)), "  7.4 s  download and upload     10.00 Mbit/s      83 ms");
        assert_eq!(line(&glance(1, 9_000, &[], 600_000)), "  9.0 s  latency alone      83 ms");
    }
}
