//! `ranway measure SERVER`.

use super::shown::Flows;
use super::{capture, limits};
use crate::failure::Failure;
use crate::live::dashboard::{DashboardArgs, Values, untitled};
use crate::live::secrets;
use crate::live::status_line::StatusLine;
use crate::out::{commit, counted};
use crate::{interrupt, terminal};
use anyhow::anyhow;
use clap::{Args as ClapArgs, ValueEnum};
use meter::{
    Amount, Captured, CellSample, Fault, FlowOutcome, Glance, HostPort, Key, LEAST_WAIT, Load, Modem, Outcome, Phase,
    Plan, Protocol, ProxySign, TOKEN_VARIABLE, Target, Tls, Trust, Way, cell_changes,
};
use netio::socket::connect_through;
use observe::located::{Place, median};
use record::{Output, Partial, Results, ms};
use serde_json::{Value, json};
use std::fmt::Write as _;
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
    /// Metadata about the radio: `auto` from ModemManager if it runs, `none`, a modem of ModemManager by its network interface, port
    /// or number, or `monroe` from the metadata broker of a MONROE node (monroe@ADDRESS:PORT for another one than 172.17.0.1:5556)
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
            "loads": outcome.loads.iter().map(|load| describe(&outcome, load)).collect::<Vec<_>>(),
            "proxy": proxy(&outcome), "missing": outcome.reasons(), "capture": captured.and_then(Result::ok).as_ref().map(capture::json),
            "summary": results.summary() });
        writeln!(terminal::stdout(), "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.quiet {
        for load in &outcome.loads {
            terminal::message!("{}", text(&plan, &outcome, load).trim_end());
        }
        if let Some(signs) = outcome.proxy_signs().filter(|signs| !signs.is_empty()) {
            terminal::message!("{}", proxy_text(&signs));
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
    let broker = |address: &str| {
        let parsed: Option<SocketAddr> = address.parse().ok().filter(|parsed: &SocketAddr| parsed.port() > 0);
        let invalid = || Failure::Invalid(format!("--modem: invalid broker `{address}`; expected monroe@ADDRESS:PORT"));
        parsed.map(|broker| Modem::Monroe { broker }).ok_or_else(invalid)
    };
    match name {
        "none" => Ok(Modem::None),
        "auto" => Ok(Modem::Manager { bus: None, name: None }),
        "monroe" => broker(meter::BROKER),
        name => match name.strip_prefix("monroe@") {
            Some(address) => broker(address),
            None if is_name(name) => Ok(Modem::Manager { bus: None, name: Some(name.to_owned()) }),
            None => Err(Failure::Invalid("--modem: expected auto, none, monroe or the name of a modem".into())),
        },
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
        "proxy": proxy(outcome),
        "missing": outcome.reasons(),
        "capture": captured.and_then(|captured| captured.as_ref().ok()).map(capture::json),
        "loads": outcome.loads.iter().map(|load| describe(outcome, load)).collect::<Vec<_>>(),
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

/// Whether a proxy on the path answers for the server, for programs: null if that cannot be told.
fn proxy(outcome: &Outcome) -> Value {
    outcome.proxy_signs().map_or(Value::Null, |signs| {
        let listed: Vec<Value> = signs.iter().map(|sign| describe_sign(*sign)).collect();
        let text = (!signs.is_empty()).then(|| proxy_text(&signs));
        json!({ "found": !signs.is_empty(), "signs": listed, "text": text })
    })
}

fn describe_sign(sign: ProxySign) -> Value {
    let mut described = match sign {
        ProxySign::Answers { acknowledged, answered } => {
            json!({ "acknowledged_ms": ms(acknowledged), "answered_ms": ms(answered) })
        }
        ProxySign::Ends { here, there } => json!({ "here_ms": ms(here), "there_ms": ms(there) }),
        ProxySign::Data { ahead, late } => json!({ "ahead_bytes": ahead.get(), "late_ms": ms(late) }),
    };
    described["sign"] = sign.name().into();
    described
}

/// Tells that a proxy answers for the server, and what that means for the results.
fn proxy_text(signs: &[ProxySign]) -> String {
    let signs: Vec<String> = signs.iter().map(ProxySign::to_string).collect();
    format!(
        "a proxy on the path answers for the server: {}; TCP's round trips, limits, retransmissions and bytes in flight are those of \
         the path up to the proxy",
        signs.join("; ")
    )
}

/// What a load shows, for programs.
fn describe(outcome: &Outcome, load: &Load) -> Value {
    let located = outcome.located(load);
    let milliseconds = |span: Option<Span>| span.map(ms);
    let worst = located.worst(LEAST_WAIT).map(|(place, _)| place.name());
    let ways: Vec<Value> = [Way::Down, Way::Up]
        .into_iter()
        .filter(|&way| load.has(way))
        .map(|way| {
            let rates = load.throughput(way);
            let flows = || load.flows.iter().filter(move |flow| flow.way == way);
            json!({
                "direction": way.name(),
                "mbps": rates.map(|rates| rates.total.as_mbps()),
                "mbps_interpolated": rates.map(|rates| rates.interpolated.as_mbps()),
                "bytes": flows().map(FlowOutcome::total).sum::<Option<u64>>(),
                "flows": flows().map(limits::describe).collect::<Vec<_>>(),
                "failures": flows().filter_map(|flow| flow.failure.clone()).collect::<Vec<_>>(),
            })
        })
        .collect();
    let (probe, rtts) =
        outcome.to_server(load).map_or_else(Default::default, |(probe, rtts)| (Some(probe.name()), rtts));
    let [before, during, after] = rtts.map(|rtts| milliseconds(median(&rtts)));
    let responsiveness = outcome.responsiveness(load);
    json!({
        "directions": ways,
        "rtt_ms": { "probe": probe, "before": before, "during": during, "after": after },
        "rpm": responsiveness.map(|responsiveness| responsiveness.rpm),
        "queue_ms": {
            "host": milliseconds(located.host),
            "modem": milliseconds(located.modem),
            "network": milliseconds(located.network),
            "total": milliseconds(located.total),
            "behind": located.behind.map(|behind| json!({ "value": behind.ms, "error": behind.error_ms })),
            "longest": worst,
        },
    })
}

/// What a load shows, for people.
fn text(plan: &Plan, outcome: &Outcome, load: &Load) -> String {
    let mut text = String::new();
    for way in [Way::Down, Way::Up].into_iter().filter(|&way| load.has(way)) {
        let flows: Vec<_> = load.flows.iter().filter(|flow| flow.way == way).collect();
        let names: Vec<&str> =
            flows.iter().map(|flow| flow.congestion.as_str()).filter(|name| !name.is_empty()).collect();
        let kinds = names.iter().fold(Vec::new(), |mut kinds: Vec<&str>, name| {
            if !kinds.contains(name) {
                kinds.push(name);
            }
            kinds
        });
        let of = if kinds.is_empty() { String::new() } else { format!(" of {}", kinds.join(" and ")) };
        let rate = load.throughput(way).map_or_else(
            || {
                let is_cut = outcome.interrupted && flows.iter().any(|flow| flow.failure.is_some());
                let what = if is_cut { "interrupted before its end" } else { "no flow reached its end" };
                what.to_owned()
            },
            |rates| {
                format!(
                    "{:.2} Mbit/s over {:.1} s ({:.2} Mbit/s until the first flow ended)",
                    rates.total.as_mbps(),
                    rates.longest.as_secs_f64(),
                    rates.interpolated.as_mbps()
                )
            },
        );
        let _ = writeln!(text, "{}, {}{of}: {rate}", way.name(), counted(plan.flows as u64, "flow"));
        // What limited a download is the server's to tell.
        if way == Way::Up || flows.iter().any(|flow| flow.limits().is_some()) {
            for (line, limited) in limits::lines(&flows).into_iter().enumerate() {
                let _ = writeln!(text, "  {:<10}   {limited}", if line == 0 { "limited by" } else { "" });
            }
        }
        for flow in flows.iter().filter_map(|flow| Some((flow.number, flow.failure.as_ref()?))) {
            let _ = writeln!(text, "  flow {} failed: {}", flow.0, flow.1);
        }
    }
    let [before, during, _] = outcome.to_server(load).map(|(_, rtts)| rtts).unwrap_or_default();
    let show = |spans: &[Span]| median(spans).map_or_else(|| "-".to_owned(), |span| format!("{:.0} ms", ms(span)));
    let mut sorted = during.clone();
    sorted.sort_unstable();
    let p95 = sorted.get(sorted.len().saturating_sub(1) * 95 / 100).copied();
    let _ = write!(text, "  round trip   {} idle, {} under load", show(&before), show(&during));
    if let Some(p95) = p95 {
        let _ = write!(text, " (p95 {:.0} ms)", ms(p95));
    }
    if let Some(responsiveness) = outcome.responsiveness(load) {
        let _ = write!(text, ", {:.0} round trips a minute", responsiveness.rpm);
    }
    let _ = writeln!(text, "\n  queue        {}", queue(outcome, load));
    if let Some(radio) = radio(outcome, load) {
        let _ = writeln!(text, "  radio        {radio}");
    }
    text
}

/// What the first cell's modem told during a load; `None` if it told nothing.
fn radio(outcome: &Outcome, load: &Load) -> Option<String> {
    let is_during = |at| load.phase(at) == Some(Phase::During);
    let first = |cell: &&CellSample| !cell.secondary && is_during(cell.at);
    let cells: Vec<&CellSample> = outcome.cells.iter().filter(first).collect();
    let mut rsrps: Vec<f64> = cells.iter().filter_map(|cell| cell.rsrp_dbm).collect();
    rsrps.sort_by(f64::total_cmp);
    let technology = cells.iter().rev().find_map(|cell| cell.technology);
    let changes = cell_changes(&outcome.cells).filter(|cell| is_during(cell.at)).count();
    let strength = match &rsrps[..] {
        [] => "RSRP unknown".to_owned(),
        [least, .., most] => format!("RSRP {:.0} dBm ({least:.0} to {most:.0})", rsrps[(rsrps.len() - 1) / 2]),
        [only] => format!("RSRP {only:.0} dBm"),
    };
    let technology = technology.map_or("no service", |technology| technology.name()).to_uppercase();
    (!cells.is_empty()).then(|| format!("{technology}, {strength}, {}", counted(changes as u64, "cell change")))
}

/// Where packets waited.
fn queue(outcome: &Outcome, load: &Load) -> String {
    let located = outcome.located(load);
    let host = located.host.map(|host| format!("host {:.0} ms", ms(host)));
    // The parts have the uncertainty of the difference that divides them.
    let digits = |error: f64| usize::from(error < 1.0);
    let part = |name: &str, part: Option<Span>, error: f64| {
        let digits = digits(error);
        let value =
            part.map_or_else(|| "unknown".to_owned(), |part| format!("{:.digits$} ± {error:.digits$} ms", ms(part)));
        format!("{name} {value}")
    };
    let modem = located.behind.map(|behind| part("modem and radio", located.modem, behind.error_ms));
    let network = located.behind.map(|behind| match located.network {
        None => {
            let digits = digits(behind.error_ms);
            format!("network behind unknown: {:.digits$} ± {:.digits$} ms", behind.ms, behind.error_ms)
        }
        network => part("network behind", network, behind.error_ms),
    });
    let shown: Vec<String> = [host, modem, network].into_iter().flatten().collect();
    let place = match (located.worst(LEAST_WAIT), located.total) {
        (Some((Place::Host, _)), _) => "in this host",
        (Some((Place::Modem, _)), _) if load.has(Way::Up) => "in the modem or the radio access",
        (Some((Place::Modem, _)), _) => "in the radio access",
        (Some((Place::Network, _)), _) => "in the network behind the radio access",
        (None, Some(total)) if total >= LEAST_WAIT && located.behind.is_none() => {
            "somewhere on the path: no router answered under load"
        }
        (None, Some(total)) if total >= LEAST_WAIT => "somewhere on the path: the probes of routers do not tell where",
        (None, Some(_)) => "none worth a name",
        (None, None) => "not measured",
    };
    if shown.is_empty() { place.to_owned() } else { format!("{place} ({})", shown.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::rate::Samples;
    use meter::{Latency, LoadTimes, Probe};
    use units::Time;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn glance(load: usize, ms: u64, ways: &[Way], bytes: u64) -> Glance {
        let rtt = ms.is_multiple_of(2).then(|| Span::from_millis(83));
        Glance { load, at: at(ms), ways: ways.to_vec(), bytes, flows: Vec::new(), rtt }
    }

    /// A flow that begins with the second second and moves a megabyte in it.
    fn flow(way: Way, number: usize, failure: Option<&str>) -> FlowOutcome {
        let mut bytes = Samples::default();
        bytes.finish(Span::from_secs(1), 1_000_000);
        FlowOutcome {
            way,
            number,
            congestion: String::new(),
            start: at(1_000),
            bytes,
            acknowledged: false,
            ended: None,
            before: None,
            samples: Vec::new(),
            remote: meter::Remote::default(),
            passages: Vec::new(),
            failure: failure.map(str::to_owned),
        }
    }

    /// The outcome of a load in the second second, between two of probes alone.
    fn outcome(flows: Vec<FlowOutcome>, latencies: Vec<Latency>) -> Outcome {
        let times =
            LoadTimes { before: at(0), warming: at(1_000), during: at(1_000), after: at(2_000), end: at(3_000) };
        Outcome { loads: vec![Load { times, flows }], latencies, finished: 1, ..Outcome::default() }
    }

    #[test]
    fn a_failure_is_told_in_its_own_direction_alone() {
        let refused = Some("the server refuses the measurement");
        let outcome = outcome(vec![flow(Way::Down, 0, refused), flow(Way::Up, 0, None)], Vec::new());
        let described = describe(&outcome, &outcome.loads[0]);
        assert_eq!(described["directions"][0]["failures"], json!([refused]));
        assert_eq!(described["directions"][1]["failures"], json!([]));
    }

    #[test]
    fn the_round_trips_of_a_load_are_of_one_kind_of_probe() {
        let probe = |ms: u64, probe, rtt| Latency { at: at(ms), probe, rtt: Some(Span::from_millis(rtt)) };
        let of = |latencies: &[Latency]| {
            let outcome = outcome(vec![flow(Way::Up, 0, None)], latencies.to_vec());
            describe(&outcome, &outcome.loads[0])["rtt_ms"].take()
        };
        let requests = [(500, 30), (1_500, 90), (2_500, 31)].map(|(ms, rtt)| probe(ms, Probe::Request, rtt));
        let expected = json!({ "probe": "request", "before": 30.0, "during": 90.0, "after": 31.0 });
        assert_eq!(of(&requests), expected);
        // No echo is answered under load: requests are not compared with it.
        let echo = probe(400, Probe::Echo, 10);
        assert_eq!(of(&[&[echo][..], &requests].concat()), expected);
        let under = probe(1_600, Probe::Echo, 70);
        let expected = json!({ "probe": "echo", "before": 10.0, "during": 70.0, "after": null });
        assert_eq!(of(&[&[echo, under][..], &requests].concat()), expected);
        let expected = json!({ "probe": null, "before": null, "during": null, "after": null });
        assert_eq!(of(&[]), expected);
    }

    #[test]
    fn a_proxy_is_told_to_people_and_programs_and_null_if_nothing_tells() {
        let mut outcome = outcome(vec![flow(Way::Up, 0, None)], Vec::new());
        assert_eq!(proxy(&outcome), Value::Null);
        let of = |answered| {
            let acknowledged = Some(Span::from_millis(2));
            Some(meter::Requests { acknowledged, answered: Span::from_millis(answered), count: 20 })
        };
        outcome.requests = of(4);
        assert_eq!(proxy(&outcome), json!({ "found": false, "signs": [], "text": null }));
        outcome.requests = of(62);
        let found = proxy(&outcome);
        let signs = json!([{ "sign": "answers", "acknowledged_ms": 2.0, "answered_ms": 62.0 }]);
        assert_eq!((&found["found"], &found["signs"]), (&json!(true), &signs));
        let text = found["text"].as_str().expect("a sentence");
        assert!(
            text.starts_with("a proxy on the path answers for the server: TCP is answered within 2.0 ms"),
            "{text}"
        );
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
