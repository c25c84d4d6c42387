//! An emulation: the hosts' namespaces or interfaces, the network between them in real time, and the results.

use crate::Error;
use crate::capture::RawCapture;
use crate::control::Control;
use crate::engine::{Ended, Engine, Glance, State, Watch};
use crate::forward::{self, Forward};
use crate::host_queue;
use crate::kernel::{self, Kernel};
use crate::lab::{self, Lab, Router};
use crate::names::GivenName;
use crate::passage::Passage;
use crate::port::Port;
use crate::proxy::{self, Proxy};
use crate::reports::{Read, Readers, Target};
use crate::rows;
use crate::serve::{self, Iperf3, Web};
use crate::tidy::Claim;
use crate::uplink::Nat;
use disk::Dir;
use netio::attach::{self, Wire};
use netio::program::find_program;
use netio::realtime::{Clock, Granted, Resident, hurry};
use netio::rights;
use observe::{Observer, VantagePoint};
use record::{Output, Results};
use scenario::{Link, Loaded, Scenario};
use sim::Live;
use sim::reports::NO_CELLS;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};
use units::{Span, Time};

/// Most hosts with a namespace; further UEs of a large scenario are simulated only.
const MOST_HOSTS: usize = 33;
/// The port of the web server.
const WEB: u16 = 80;
/// Default interval between samples of the kernel's senders.
const SAMPLES: Span = Span::from_millis(100);

/// The file name of a capture, and of one that ended before the run.
const CAPTURE: &str = "captures/hosts.pcapng";
const INCOMPLETE: &str = "captures/hosts.incomplete.pcapng";

/// Options of an emulation.
pub struct Options {
    /// The point of the scenario's sweep and the number of the run. Without them, a scenario with a sweep is refused.
    pub which: Option<(u32, u32)>,
    /// The MTU of the hosts' interfaces, or the one announced to hosts behind existing interfaces.
    pub mtu: u32,
    /// Whether the scenario's TCP flows are sent by the kernel instead of being simulated; for namespaces alone.
    pub kernel: bool,
    /// Whether all packets are captured; needs `output`.
    pub capture: bool,
    /// The largest 99th percentile of the lateness in a valid run.
    pub bound: Span,
    /// Where captures go.
    pub output: Option<Output>,
    /// How hosts in namespaces reach the networks of this machine, if at all.
    pub nat: Option<Nat>,
    /// The node of the network at which another namespace forwards the hosts' packets ([`routers`] lists the valid ones).
    pub router: Option<String>,
    /// Names of hosts in namespaces beside those of their nodes.
    pub names: Vec<GivenName>,
    /// The program `ranway`, which runs the scenario's proxy; without it, the one in `PATH`.
    pub program: Option<PathBuf>,
    /// Where the cells' reports go, if anywhere.
    pub reports: Option<Target>,
    /// Who follows it, if anybody.
    pub watch: Option<Box<dyn Watch>>,
}

impl Default for Options {
    fn default() -> Options {
        let bound = Span::from_micros(500);
        Options {
            which: None,
            mtu: 1500,
            kernel: false,
            capture: false,
            bound,
            output: None,
            nat: None,
            router: None,
            names: Vec::new(),
            program: None,
            reports: None,
            watch: None,
        }
    }
}

/// A running emulation. Dropping it removes everything that it created.
pub struct Emulation {
    // In the order in which they end.
    kernel: Option<Kernel>,
    _iperf3: Option<Iperf3>,
    _web: Option<Web>,
    engine: Running,
    proxy: Option<Proxy>,
    site: Site,
}

/// Where the hosts are.
enum Site {
    /// In namespaces created for them.
    Lab(Lab),
    /// Behind existing interfaces; the emulation has only a directory of its own.
    Attached(Claim),
}

/// The ends of the network.
struct Ends {
    hosts: Vec<VantagePoint>,
    /// By host.
    ports: Vec<Port>,
    forward: Forward,
    control: Control,
    readers: Readers,
}

/// The outcome of an emulation.
pub struct Finished {
    /// The same tables as a simulation's, and the lateness.
    pub results: Results,
    /// [`Options::output`], with the captures in it.
    pub output: Option<Output>,
    /// Packets for an unknown destination.
    pub stray: u64,
    /// Packets refused because too many were in the network.
    pub refused: u64,
    /// Packets that the receiving interface did not take.
    pub untaken: u64,
    /// Packets missing from the capture because the disk was too slow.
    pub not_captured: u64,
    /// Reports of the cells that nobody took.
    pub unread: u64,
    /// Why the capture is incomplete or the recording of reports is missing, if so.
    pub incomplete: Option<String>,
    /// Flows that the kernel did not finish, and why.
    pub failures: Vec<String>,
    /// Why it ended early, if it did: an interface or the proxy is gone.
    pub gone: Option<String>,
}

impl Finished {
    /// Warnings about the results, a line each.
    pub fn notes(&self) -> Vec<String> {
        let counts = [
            (self.stray, "with an unknown destination"),
            (self.refused, "rejected because too many were in the network"),
            (self.untaken, "rejected by the receiving interface"),
            (self.not_captured, "missing from the capture because the disk was too slow"),
        ];
        let counted =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("packets {what}: {count}"));
        let unread = (self.unread > 0).then(|| format!("reports of the cells that nobody read: {}", self.unread));
        counted.chain(unread).chain(self.incomplete.clone()).chain(self.failures.iter().cloned()).collect()
    }
}

/// The engine's thread.
struct Running {
    /// The point and the number of the run.
    which: (u32, u32),
    warmup: Time,
    /// When its time began.
    started: Instant,
    stop: Arc<AtomicBool>,
    glance: Arc<Mutex<Glance>>,
    thread: Option<JoinHandle<Result<Outcome, Error>>>,
}

/// The outcome of the engine's thread.
struct Outcome {
    results: Results,
    ended: Ended,
    /// [`Finished::gone`].
    gone: Option<String>,
    flows: Vec<observe::Flow>,
    granted: Granted,
    output: Option<Output>,
    not_captured: u64,
    read: Read,
    /// Why the capture is incomplete, if it is.
    incomplete: Option<String>,
    /// Returned because restoring the interfaces takes programs and privileges that the thread has given up.
    ports: Vec<Port>,
}

impl Emulation {
    /// Sets up the hosts and starts the clock.
    ///
    /// # Errors
    /// [`Error::Missing`] without root, TUN or `ip`; [`Error::Wrong`] for a scenario that cannot be emulated.
    pub fn start(loaded: Loaded, options: Options) -> Result<Emulation, Error> {
        let scenario = chosen(&loaded, &options)?;
        check(scenario, &options, false)?;
        let names = hosts(scenario);
        if names.len() < 2 {
            return Err(Error::Wrong("an emulation needs at least two hosts; the scenario has fewer".into()));
        }
        let host_of = |node: &str| names.iter().position(|name| name == node);
        let flows = if options.kernel { kernel::flows(scenario, host_of)? } else { Vec::new() };
        let interval = scenario.record.samples.interval().unwrap_or(SAMPLES);
        let proxy = scenario.radio.as_ref().and_then(scenario::Radio::proxy_in_cells);
        let router = options.router.as_deref().map(|node| Router { node, has_sides: false });
        let router = proxy.as_ref().map_or(router, |_| Some(Router { node: scenario::CORE, has_sides: true }));
        let mut lab = Lab::named(&names, router, options.mtu, options.nat.as_ref(), &options.names)?;
        for queue in host_queue::plan(scenario, &names)? {
            queue.install(&lab, options.mtu)?;
        }
        let web = Some(Web::start(vec![listener(&lab)?])?);
        let iperf3 = serve::iperf3(&lab, 0);
        let stop = Arc::new(AtomicBool::new(false));
        let (proxy, reports) = match proxy {
            None => (None, None),
            Some(proxy) => {
                let bypassed = proxy::bypassed(scenario, &flows);
                let (arguments, reports) = proxy::arguments(&proxy, lab.dir().path(), &bypassed)?;
                (Some(Proxy::start(&lab, &program(&options)?, &arguments, Arc::clone(&stop))?), reports)
            }
        };
        let reports = reports.as_deref().map(|socket| (socket, names.len() - 1));
        let readers = Readers::open(reports, options.reports.as_ref())?;
        let engine = Running::start(loaded, options, Ends::of(&mut lab, readers)?, stop)?;
        let kernel = if flows.is_empty() { None } else { Some(Kernel::start(&lab, flows, engine.started, interval)?) };
        Ok(Emulation { kernel, _iperf3: iperf3, _web: web, engine, proxy, site: Site::Lab(lab) })
    }

    /// Puts the network between two interfaces of this thread's network namespace and starts the clock: the hosts behind the
    /// first stand for the server, those behind the second for the host with the number `ue`.
    ///
    /// # Errors
    /// As [`Emulation::start`], and [`Error::Wrong`] for interfaces that cannot be opened. Nothing is changed then.
    pub fn attach(loaded: Loaded, options: Options, interfaces: [&str; 2], ue: usize) -> Result<Emulation, Error> {
        attach::check(interfaces)?;
        let mtu = lab::check_mtu(options.mtu)?;
        let scenario = chosen(&loaded, &options)?;
        check(scenario, &options, true)?;
        let all = hosts(scenario);
        let (Some(server), Some(ue)) = (all.first(), all.get(ue)) else {
            return Err(Error::Wrong(format!("the scenario has no host {ue}; its hosts are {}", all.join(", "))));
        };
        for (from, to) in [(server, ue), (ue, server)] {
            if scenario::route(scenario, from, to).is_none() {
                return Err(Error::Wrong(format!("the scenario has no route from {from} to {to}")));
            }
        }
        let names = [server.clone(), ue.clone()];
        let claim = Claim::new()?;
        let wires = attach::open(interfaces)?;
        claim.restore_by(&wires.each_ref().map(Wire::restore_lines).concat())?;
        let readers = Readers::open(None, options.reports.as_ref())?;
        let ends = Ends::attached(names, wires, mtu, claim.directory(), readers)?;
        let engine = Running::start(loaded, options, ends, Arc::default())?;
        Ok(Emulation { kernel: None, _iperf3: None, _web: None, engine, proxy: None, site: Site::Attached(claim) })
    }

    /// The hosts, if they are in namespaces; the first is the server.
    pub fn lab(&self) -> Option<&Lab> {
        match &self.site {
            Site::Lab(lab) => Some(lab),
            Site::Attached(_) => None,
        }
    }

    /// Its ID, unique on this machine.
    pub fn id(&self) -> &str {
        match &self.site {
            Site::Lab(lab) => lab.id(),
            Site::Attached(claim) => claim.id(),
        }
    }

    /// Its directory, which lives as long as it does.
    pub fn dir(&self) -> &Path {
        match &self.site {
            Site::Lab(lab) => lab.dir().path(),
            Site::Attached(claim) => claim.directory().path(),
        }
    }

    /// Its state now.
    pub fn glance(&self) -> Glance {
        self.engine.glance.lock().map(|glance| glance.clone()).unwrap_or_default()
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Span {
        Span::from_nanos(self.engine.started.elapsed().as_nanos() as u64)
    }

    /// Whether it has ended by itself: it failed, or was stopped over its control socket.
    pub fn is_over(&self) -> bool {
        self.engine.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it and returns its outcome. Namespaces are removed and interfaces restored.
    ///
    /// # Errors
    /// As [`sim::run`].
    pub fn finish(mut self) -> Result<Finished, Error> {
        let measured = self.kernel.take().map(Kernel::finish).unwrap_or_default();
        let lost = self.lab().map(Lab::lost).unwrap_or_default();
        let names: Vec<_> = self.lab().iter().flat_map(|lab| lab.hosts()).map(|host| host.name.clone()).collect();
        let Outcome { mut results, ended, gone, flows, granted, output, not_captured, read, incomplete, ports } =
            self.engine.join()?;
        drop(ports);
        let gone = gone.or_else(|| self.proxy.as_ref().and_then(Proxy::failure));
        let has_proxy = self.proxy.is_some();
        rows::add(&mut results.tables, &names, has_proxy, &flows, &measured, (self.engine.which, self.engine.warmup));
        let failure = |m: &kernel::Measured| m.failure.as_ref().map(|why| format!("flow {}: {why}", m.flow.name));
        let failures = measured.iter().filter_map(failure).collect();
        let wall_s = (ended.end - Time::ZERO).as_secs_f64();
        results.timing.wall_s = Some(wall_s);
        results.timing.cpu_s = wall_s * ended.cpu_share;
        let Ended { end, lates, stray, refused, untaken, cpu_share, .. } = ended;
        let missed = lost.unnoticed(untaken) + ended.missed + refused;
        results.timing.lateness = Some(lates.summary(end - Time::ZERO, missed, cpu_share, granted));
        if let (Some(output), Some(_)) = (&output, &incomplete) {
            // Nobody takes it for a whole one.
            output.rename(CAPTURE, INCOMPLETE)?;
        }
        let Read { unread, failure } = read;
        let incomplete = incomplete.or(failure);
        Ok(Finished { results, output, stray, refused, untaken, not_captured, unread, incomplete, failures, gone })
    }
}

/// Returns the nodes of a scenario that get a namespace, the server first.
pub fn hosts(scenario: &Scenario) -> Vec<String> {
    let mut hosts = scenario::hosts(scenario);
    hosts.truncate(MOST_HOSTS);
    hosts
}

/// Returns the nodes of a scenario at which a router can be: those with routes to and from every host, and without a PEP,
/// which would have to see packets before they reach the router's kernel.
pub fn routers(scenario: &Scenario) -> Vec<&str> {
    let hosts = hosts(scenario);
    let joins = |from: &str, to: &str| scenario::route(scenario, from, to).is_some();
    let has_pep = |node: &str| scenario.links.iter().any(|link| link.pep && link.to == node);
    let fits = |node: &&str| !has_pep(node) && hosts.iter().all(|host| joins(node, host) && joins(host, node));
    scenario.nodes().into_iter().filter(fits).collect()
}

/// Checks that a router can be at a node.
///
/// # Errors
/// [`Error::Wrong`] names the valid ones.
pub fn check_router(scenario: &Scenario, node: &str) -> Result<(), Error> {
    let valid = routers(scenario);
    if valid.contains(&node) {
        return Ok(());
    }
    let valid = match &valid[..] {
        [] => "this network has no node between the hosts without a PEP".to_owned(),
        valid => format!("use {}", valid.join(" or ")),
    };
    Err(Error::Wrong(format!("no router can be placed at `{node}`; {valid}")))
}

/// Checks the options of an emulation against its scenario.
///
/// # Errors
/// [`Error::Wrong`] for options that do not fit, [`Error::Missing`] for programs that the scenario's proxy needs.
pub fn check(scenario: &Scenario, options: &Options, attached: bool) -> Result<(), Error> {
    let wrong = |what: &str| Err(Error::Wrong(what.to_owned()));
    let radio = scenario.radio.as_ref();
    if options.reports.is_some() && radio.is_none() {
        return wrong(NO_CELLS);
    }
    if let Some(node) = &options.router {
        check_router(scenario, node)?;
    }
    match scenario.links.iter().find(|link| attached && link.queue_in_host) {
        Some(Link { name, .. }) => {
            return Err(Error::Wrong(format!(
                "link `{name}`: hosts behind interfaces have their own queues: remove `queue_in_host`"
            )));
        }
        None => host_queue::plan(scenario, &hosts(scenario))?,
    };
    let Some(proxy) = radio.and_then(scenario::Radio::proxy) else { return Ok(()) };
    if attached {
        return wrong(
            "between two interfaces there is no proxy: remove `proxy` from the radio network, and run `ranway proxy`",
        );
    }
    if options.router.is_some() {
        return wrong(
            "the scenario's proxy is the router, at `core`: remove `--router`, or `proxy` from the radio network",
        );
    }
    proxy::arguments(proxy, Path::new(""), &[])?;
    if find_program("nft".as_ref()).is_none() {
        return Err(Error::Missing("the proxy needs `nft`, which is missing: install nftables".to_owned()));
    }
    program(options).map(drop)
}

/// Returns the program that runs the scenario's proxy.
fn program(options: &Options) -> Result<PathBuf, Error> {
    let found = options.program.clone().or_else(|| find_program("ranway".as_ref()));
    found.ok_or_else(|| Error::Missing("the scenario's proxy needs the program `ranway` in PATH".to_owned()))
}

/// Returns the scenario of the chosen point of `loaded`.
fn chosen<'a>(loaded: &'a Loaded, options: &Options) -> Result<&'a Scenario, Error> {
    match options.which {
        Some((point, _)) => Ok(&loaded.points()[point as usize].scenario),
        None => single(loaded),
    }
}

/// Returns the only scenario of `loaded`.
///
/// # Errors
/// [`Error::Wrong`] if it has a sweep.
pub fn single(loaded: &Loaded) -> Result<&Scenario, Error> {
    let [point] = loaded.points() else {
        let swept: Vec<String> = loaded.points()[0].values().keys().cloned().collect();
        let (swept, first) = (swept.join(", "), swept.first().cloned().unwrap_or_default());
        return Err(Error::Wrong(format!(
            "the scenario has a sweep over {swept}, and an emulation is one run: choose with --set {first}=VALUE"
        )));
    };
    Ok(&point.scenario)
}

/// Opens the web server's socket, for IPv6 and IPv4.
fn listener(lab: &Lab) -> Result<TcpListener, Error> {
    let listener = lab.inside(0, || TcpListener::bind((Ipv6Addr::UNSPECIFIED, WEB)))?;
    listener.map_err(Error::system("the web server's port"))
}

impl Ends {
    fn of(lab: &mut Lab, readers: Readers) -> Result<Ends, Error> {
        let point = |host: &lab::Host| VantagePoint { name: host.name.clone(), v4: host.v4, v6: host.v6 };
        let mut hosts: Vec<_> = lab.hosts().iter().map(point).collect();
        let addresses =
            hosts.iter().zip(0..).flat_map(|(host, i)| [(host.v4.into(), i), (host.v6.into(), i)]).collect();
        let ports: Vec<_> = lab.tuns().into_iter().map(|(tun, name)| Port::Tun(tun, name)).collect();
        // The router's second interface is at the same node.
        hosts.extend(hosts.last().filter(|_| lab.has_sides()).cloned());
        let gateway = lab.resolves().map(|_| 0);
        let control = Control::bind(lab.dir())?;
        let router = lab.router().map(|wan| forward::Router { wan, ran: ports.len() - 1 });
        let forward = Forward::ByAddress { hosts: addresses, gateway, router };
        Ok(Ends { hosts, ports, forward, control, readers })
    }

    fn attached(
        names: [String; 2],
        wires: [Wire; 2],
        mtu: u16,
        directory: &Dir,
        readers: Readers,
    ) -> Result<Ends, Error> {
        let anywhere = |name| VantagePoint { name, v4: Ipv4Addr::UNSPECIFIED, v6: Ipv6Addr::UNSPECIFIED };
        Ok(Ends {
            hosts: names.map(anywhere).into(),
            ports: wires.map(Port::Wire).into(),
            forward: Forward::Across { mtu },
            control: Control::bind(directory)?,
            readers,
        })
    }
}

impl Running {
    /// Starts the engine's thread and waits until it is ready.
    fn start(loaded: Loaded, options: Options, ends: Ends, stop: Arc<AtomicBool>) -> Result<Running, Error> {
        let (which, bound) = (options.which.unwrap_or_default(), options.bound);
        let scenario = &loaded.points()[which.0 as usize].scenario;
        let warmup = Time::ZERO + scenario.warmup;
        let has_proxy = scenario.radio.as_ref().is_some_and(|radio| radio.proxy().is_some());
        let glance = Arc::new(Mutex::new(Glance::default()));
        let Ends { hosts, ports, forward, control, mut readers } = ends;
        let (ready, is_ready) = mpsc::channel();
        let (stop2, glance2) = (Arc::clone(&stop), Arc::clone(&glance));
        let run = move || {
            let mut scenario = loaded.points()[which.0 as usize].scenario.clone();
            if options.kernel {
                scenario.flows.clear();
            }
            let capture = match (&options.output, options.capture) {
                (Some(output), true) => {
                    let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
                    Some(RawCapture::new(output.file(CAPTURE)?, &names, SystemTime::now())?)
                }
                _ => None,
            };
            let mut live = Live::new(&loaded, &scenario, which, options.output.as_ref())?;
            let names = hosts.iter().map(|host| host.name.as_str());
            let mut route = |from: &str, to: &str| scenario::route(&scenario, from, to).map(|links| live.route(&links));
            let routes: Vec<Vec<_>> =
                names.clone().map(|from| names.clone().map(|to| route(from, to)).collect()).collect();
            for (one, other) in (0..routes.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
                if let (Some(there), Some(back)) = (routes[one][other], routes[other][one]) {
                    live.place_peps(there, back);
                }
            }
            if !readers.is_empty() {
                live.open_reports();
            }
            let (granted, _resident) = (hurry(), Resident::hold());
            readers.start();
            let mut engine = Engine {
                scenario: &scenario,
                live,
                clock: Clock::start(),
                ports,
                routes,
                forward,
                observer: Observer::new(hosts.clone(), lab::is_foreign),
                capture,
                passage: has_proxy.then(Passage::default),
                readers,
                control,
                stop: stop2,
                glance: glance2,
                watch: options.watch,
                realtime: granted.realtime,
                state: State::new(bound),
            };
            // From here on it only moves packets that others have written.
            rights::confine(&[])?;
            // Who waits has gone away only if it has failed itself.
            let _ = ready.send(Instant::now());
            let ended = engine.run();
            let Engine { live, observer, capture, readers, ports, .. } = engine;
            let gone = |host: usize| format!("the interface {} of {} is gone", ports[host].name(), hosts[host].name);
            let gone = ended.gone.map(gone);
            let results = live.finish(ended.end)?;
            // What was measured is worth more than the capture.
            let (not_captured, incomplete) = match capture.map_or(Ok(0), RawCapture::finish) {
                Ok(not_captured) => (not_captured, None),
                Err(error) => (0, Some(format!("the capture is incomplete: {error}"))),
            };
            let flows = observer.finish(ended.end);
            let read = readers.finish();
            Ok(Outcome {
                results,
                ended,
                gone,
                flows,
                granted,
                output: options.output,
                not_captured,
                read,
                incomplete,
                ports,
            })
        };
        let thread = thread::Builder::new().name("engine".into()).spawn(run);
        let thread = thread.map_err(Error::system("a thread for the network"))?;
        let mut running = Running { which, warmup, started: Instant::now(), stop, glance, thread: Some(thread) };
        match is_ready.recv() {
            Ok(started) => {
                running.started = started;
                Ok(running)
            }
            Err(_) => Err(running.join().err().unwrap_or_else(|| Error::Wrong("the network did not start".into()))),
        }
    }

    /// Ends the thread.
    fn join(&mut self) -> Result<Outcome, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is joined once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.join();
        }
    }
}
