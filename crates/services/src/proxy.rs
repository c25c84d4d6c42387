//! A transparent split proxy for TCP between the servers and the UEs: `ranway proxy`.
//!
//! Path of a connection: the host that opens it sends a SYN through this machine, a router between the interfaces `--wan` and
//! `--ran`. If routes, rules and firewall let it pass, it is held ([`steering`]), and a [`worker`] connects to the destination from
//! the client's own address and port. When the server has answered, the SYN is given to a listener ([`admission`]), and the
//! client's handshake completes, too. From then on the worker moves bytes between the two legs ([`relay`]). An end of one side
//! reaches the other side after all bytes, and so does a reset.
//!
//! What the proxy cannot serve passes as without it, and what the machine forbids without it stays forbidden:
//!
//! - **The server refuses or does not answer.** The SYN passes, and the server's or a router's own answer reaches the client.
//! - **A host has as many connections as it may have, or there are too many in all.** SYNs pass ([`book`], [`gate`]).
//! - **The process or one of its threads hangs.** Its lease ends, and no SYN is held any more ([`steering`]).
//! - **The process dies.** So does the lease. Both legs of every connection are reset, because no socket lingers ([`listen`]). The
//!   [`guardian`] removes what is left.
//! - **Something keeps packets from the proxy**: a setting of the kernel, a rule, a firewall. Such [`obstacles`] are found, and the
//!   gate shuts.
//!
//! Each worker is a thread with its own connections and pipes. Other threads see connections as [`Flow`]s: the status, the metrics
//! and a [`Governor`] of windows and rates.

mod admission;
mod book;
mod busy_poll;
mod control;
mod ended;
mod export;
mod feeds;
mod flow;
mod gate;
mod guardian;
mod hall;
mod handover;
mod inbox;
mod ipfix;
mod label;
mod listen;
mod liveness;
mod log;
mod looks;
mod memory;
pub(crate) mod metrics;
mod names;
mod notice;
mod obstacles;
mod opening;
mod passing;
mod records;
mod relay;
mod samples;
mod settings;
mod status;
mod steering;
mod succession;
mod syn;
mod sysctl;
mod thread;
mod ues;
mod window;
mod worker;

pub use book::Reason;
pub use control::{FlowKey, Governor, RadioWindows};
pub use export::ExportSettings;
pub use feeds::{Feed, Trust, Unused};
pub use flow::{Flow, Observation, Side};
pub use gate::Bypass;
pub use guardian::guard;
pub use handover::Inheritance;
pub use inbox::Inbox;
pub use log::LogSettings;
pub use notice::Notice;
pub use settings::{Class, Mark, Settings};
pub use status::{Connection, Limits, Status, Totals, ask};

use std::collections::VecDeque;
use std::ffi::CString;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netio::nflog::Log;
use netio::reservation::{Reservation, Role};
use netio::rules::Changes;
use netio::{Error, rights};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CapabilitySet;

use crate::metrics::{MetricsListener, MetricsServer};
use admission::Admission;
use book::Book;
use export::Exporter;
use flow::Registry;
use gate::{Gate, Waker};
use guardian::{Guardian, Orders};
use hall::{Admitted, Hall, Mailbox};
use handover::Testament;
use listen::{HANGS, LOST, Listener};
use log::ConnectionLog;
use obstacles::{Divergence, Obstacles, Obstructed};
use records::Records;
use settings::{Current, FILES_EACH};
use steering::{Plan, Slot, Steering, mark};
use syn::Injector;
use sysctl::Setting;
use worker::{Counters, Shared, Worker};

const NO_NAME: &str = "another program has all names of the socket by which a process takes over (find it with `ss -xlp`): until \
                       it ends, `--take-over` does not work";
const NO_PROBING: &str = "net.ipv4.tcp_mtu_probing is 0 and cannot be set: connections through paths that lose large packets without \
                          ICMP will stall; set it to 1";

/// How long handshakes under way may take when new connections bypass the proxy.
pub const HANDSHAKES: Duration = Duration::from_millis(300);
/// Of the time between two ticks, no more counts for the silence of workers: while none came, they may not have run either.
const TICK: Duration = Duration::from_millis(200);
/// Interval between checks that are not urgent.
const LOOK: Duration = Duration::from_millis(500);
/// Groups of logged packets that are tried, of which other programs may have some.
const GROUPS: u16 = 16;
/// How long the proxy tries to make its table again before it gives up.
const WITHOUT_TABLE: Duration = Duration::from_secs(10);
/// Interval between checks of rules and routes, each of which runs `ip`.
const LOOK_AT_ROUTES: Duration = Duration::from_secs(5);

/// A proxy that runs until it is dropped, which resets its connections and removes everything that it changed.
pub struct Proxy {
    settings: Arc<Current>,
    /// Names and numbers.
    interfaces: Vec<(String, u32)>,
    gate: Arc<Gate>,
    hall: Arc<Hall>,
    admission: Option<JoinHandle<Option<Admission>>>,
    /// The last value of [`Hall::beat`], and how long it has not changed.
    admission_beat: (u64, Duration),
    workers: Vec<Running>,
    stop: Arc<AtomicBool>,
    controlling: Option<Controlling>,
    others: Vec<JoinHandle<()>>,
    metrics: Option<MetricsServer>,
    /// The threads of the log of connections and of flow records.
    recording: Vec<JoinHandle<()>>,
    answering: Answering,
    guardian_command: Box<dyn Fn() -> Command + Send>,
    obstacles: Obstacles,
    divergence: Divergence,
    obstructed: Obstructed,
    /// The bypasses that were told of: by full queues.
    is_full: bool,
    /// What the operator has not been told yet.
    notices: VecDeque<Notice>,
    ticked: Instant,
    looked: Instant,
    routes_looked: Instant,
    /// Whether the last check of rules and routes failed.
    unchecked: bool,
    /// Since when the table could not be made again that somebody has removed.
    without_table: Option<Instant>,
    /// Whether there is no guardian because none could be started.
    unguarded: bool,
    // In this order: no packet is led to the proxy once it has no guardian.
    steering: Steering,
    plan: Plan,
    /// Of the rules of nftables.
    changes: Changes,
    /// Whether they have changed since they were looked at.
    rules_changed: bool,
    guardian: Guardian,
    orders: Orders,
    reservations: Vec<Reservation>,
    testament: Option<Testament>,
    inherited: Option<u64>,
    /// Tells a process that has taken over when this proxy is gone.
    handed: Option<OwnedFd>,
}

/// The thread of a control, and what ends it.
struct Controlling {
    stop: Arc<AtomicBool>,
    /// Returns whether the control did not fail.
    thread: JoinHandle<bool>,
}

/// Whether the proxy can be asked for its status.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answering {
    Yes,
    /// Others have all names of the socket; this has not been said yet.
    No,
    /// The same, and it was said.
    Told,
}

/// Reads the status of a proxy, also after its end.
#[derive(Clone, Debug)]
pub struct Observer(Vec<Arc<Shared>>);

impl Observer {
    /// Returns the counters and what is known of each connection.
    pub fn status(&self) -> Status {
        status::status(&self.0, true)
    }
}

/// A worker, and when it was last seen alive.
struct Running {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Option<Worker>>>,
    beat: u64,
    /// For how long its beat has not changed.
    silence: Duration,
}

impl Running {
    /// Starts the thread of a worker, which waits until it is given one.
    fn start(shared: &Arc<Shared>) -> Result<(Sender<Worker>, Running), Error> {
        let (give, given) = channel();
        let thread = thread::start(&format!("proxy-{}", shared.number), move || given.recv().ok().map(Worker::run))?;
        let running = Running { shared: Arc::clone(shared), thread: Some(thread), beat: 0, silence: Duration::ZERO };
        Ok((give, running))
    }
}

/// What all threads share.
fn hall(settings: Settings, gate: &Arc<Gate>, injector: Injector, listeners: Vec<Listener>) -> Arc<Hall> {
    Arc::new(Hall {
        gate: Arc::clone(gate),
        book: Arc::new(Book::new(Arc::clone(gate))),
        injector,
        admitted: Admitted::default(),
        listeners,
        records: Records::default(),
        exports: Arc::default(),
        again: Mutex::default(),
        waker: settings.threads,
        leased: AtomicBool::new(false),
        forsaken: AtomicU64::new(0),
        beat: AtomicU64::new(0),
        ticks: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        settings: Arc::new(Current::new(settings)),
    })
}

/// What a worker shares with the other threads.
fn share(number: usize, hall: &Arc<Hall>) -> Arc<Shared> {
    Arc::new(Shared {
        number,
        settings: Arc::clone(&hall.settings),
        gate: Arc::clone(&hall.gate),
        hall: Arc::clone(hall),
        mailbox: Mailbox::default(),
        registry: Registry::default(),
        counters: Counters::default(),
        beat: AtomicU64::new(0),
        hangs: AtomicBool::new(false),
        turn: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    })
}

fn require_rights() -> Result<(), Error> {
    if rights::has(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE) {
        return Ok(());
    }
    let missing = "a transparent proxy needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_NET_BIND_SERVICE): use sudo";
    Err(Error::Missing(missing.into()))
}

impl Proxy {
    /// Starts a proxy, with the connections that another process has `left`. Without a governor, flows have no limits.
    /// `guardian_command` makes commands that call [`guard`].
    ///
    /// # Errors
    /// [`Error::Wrong`] for invalid settings, [`Error::Missing`] if the machine or the rights do not suffice, and
    /// [`Error::System`]. Then nothing is changed, and the other process goes on.
    pub fn start(
        settings: Settings,
        governor: Option<Governor>,
        mut left: Option<&mut Inheritance>,
        guardian_command: impl Fn() -> Command + Send + 'static,
    ) -> Result<Proxy, Error> {
        settings.check()?;
        let settings = with_own_names(settings);
        let interfaces = interfaces(&settings)?;
        let [wan, ran] = numbers(&settings, &interfaces);
        require_rights()?;
        check_file_limit(&settings)?;
        let (inherited, reservations) = match &mut left {
            Some(left) => {
                let (listeners, reservations) = left.possessions(&settings, &interfaces)?;
                (Some(listeners), reservations)
            }
            None => (None, reserve_patiently(&interfaces)?),
        };
        let slot = left.as_ref().map_or(Slot::First, |left| left.slot().other());
        let log = Log::open((0..GROUPS).map(|n| steering::GROUP + n))?;
        let changes = Changes::open()?;
        let plan = Plan::new(&settings, ran[0], log.group(), slot);
        if left.is_none() {
            plan.await_predecessor();
        }
        plan.check()?;
        let obstacles = Obstacles::new(&settings, ran[0])?;
        refuse(obstacles.in_settings())?;
        refuse(Obstacles::in_ruleset())?;
        listen::check_congestion_control(&settings)?;
        let listeners = inherited.map_or_else(|| listen::open_patiently(&settings), Ok)?;

        let wakers = (0..=settings.threads).map(|_| Waker::new()).collect::<Result<Vec<_>, _>>()?;
        let gate = Arc::new(Gate::new(settings.max_connections, wakers));
        let injector = Injector::new(mark(ran[0]), listen::ipv6(), slot.lease())?;
        let hall = hall(settings, &gate, injector, listeners);
        let settings = Arc::clone(&hall.settings);
        let shared: Vec<Arc<Shared>> = (0..settings.get().threads).map(|number| share(number, &hall)).collect();
        let mut workers = shared.iter().map(|shared| Worker::new(Arc::clone(shared))).collect::<Result<Vec<_>, _>>()?;
        let admission = Admission::new(Arc::clone(&hall), shared.clone(), log, [wan, ran])?;

        let mut orders = Orders { undo: plan.undo_commands(), has_heir: left.is_some(), ..Orders::default() };
        // Those of another proxy are this one's only later.
        let own = if left.is_some() { &[][..] } else { &hall.listeners };
        let guardian = Guardian::start(guardian_command(), &orders, own)?;
        let steering = plan.clone().start(left.is_some())?;
        refuse(obstacles.in_rules()?)?;
        let changed = Setting::ALL.map(|setting| (setting, setting.change()));
        let is_without_probing = changed[0].1.is_err();
        orders.settings.extend(changed.into_iter().filter_map(|(setting, done)| done.ok()?.then_some(setting)));
        let mut proxy = Proxy {
            settings,
            interfaces,
            gate,
            hall,
            admission: None,
            admission_beat: (0, Duration::ZERO),
            workers: Vec::new(),
            stop: Arc::default(),
            controlling: None,
            others: Vec::new(),
            metrics: None,
            recording: Vec::new(),
            answering: Answering::No,
            guardian_command: Box::new(guardian_command),
            obstacles,
            divergence: Divergence::new(),
            obstructed: Obstructed::default(),
            is_full: false,
            notices: VecDeque::new(),
            ticked: Instant::now(),
            looked: Instant::now(),
            routes_looked: Instant::now(),
            unchecked: false,
            without_table: None,
            unguarded: false,
            steering,
            plan,
            changes,
            rules_changed: false,
            guardian,
            orders,
            reservations,
            testament: None,
            inherited: None,
            handed: None,
        };
        let mut giving = Vec::new();
        for shared in &shared {
            let (give, running) = Running::start(shared)?;
            proxy.workers.push(running);
            giving.push(give);
        }
        let (give, given) = channel();
        proxy.admission = Some(thread::start("proxy-admission", move || given.recv().ok().map(Admission::run))?);
        proxy.answer()?;
        proxy.testament = Testament::open(proxy.ran())?;
        if proxy.testament.is_none() {
            proxy.notices.push_back(Notice::Failed(NO_NAME.into()));
        }
        // Once it has connections of another process, nothing may fail any more.
        if let Some(left) = left {
            proxy.inherit(left, &mut workers)?;
        }
        // Threads that wait take them.
        workers.into_iter().zip(giving).for_each(|(worker, give)| drop(give.send(worker)));
        let _ = give.send(admission);
        // This tells the guardian its orders, too.
        proxy.set_governor(governor)?;
        if is_without_probing {
            proxy.notices.push_back(Notice::Failed(NO_PROBING.into()));
        }
        Ok(proxy)
    }

    /// Answers questions for the status, unless others have all names of the socket.
    fn answer(&mut self) -> Result<(), Error> {
        if let Some(thread) = status::serve(self.ran(), self.shared(), Arc::clone(&self.stop))? {
            self.others.push(thread);
            self.answering = Answering::Yes;
        }
        Ok(())
    }

    /// Changes the settings. Those of sockets hold for connections to come, times for all.
    ///
    /// # Errors
    /// [`Error::Wrong`] if a setting is invalid, and [`Error::System`]. Then nothing is changed.
    pub fn change(&mut self, new: Settings) -> Result<Vec<&'static str>, Error> {
        let old = self.settings.get();
        let (new, waiting) = old.changed(with_own_names(new))?;
        check_file_limit(&new)?;
        listen::check_congestion_control(&new)?;
        let prepare =
            |settings: &Settings| self.hall.listeners.iter().try_for_each(|listener| listener.prepare(settings));
        let mut changed = prepare(&new);
        if changed.is_ok() && steering::differ(&old, &new) {
            changed = self.steering.change(&new);
        }
        if let Err(error) = changed {
            // What they had before, they can have again.
            let _ = prepare(&old);
            return Err(error);
        }
        self.gate.set_most(new.max_connections);
        self.settings.set(new);
        Ok(waiting)
    }

    /// Replaces the governor, whose limits are lifted first. `None` sets no limits.
    ///
    /// # Errors
    /// [`Error::System`]; then there is no governor.
    pub fn set_governor(&mut self, governor: Option<Governor>) -> Result<(), Error> {
        self.end_control();
        self.orders.reports = governor.as_ref().and_then(|governor| governor.reports_socket.clone());
        // A guardian that somebody has killed is replaced in the next turn.
        let _ = self.guardian.order(&self.orders);
        let Some(governor) = governor else { return Ok(()) };
        let (workers, stop) = (self.shared(), Arc::<AtomicBool>::default());
        let run = {
            let stop = Arc::clone(&stop);
            move || control::run(governor, &workers, &stop)
        };
        self.controlling = Some(Controlling { stop, thread: thread::start("proxy-control", run)? });
        Ok(())
    }

    fn end_control(&mut self) {
        if let Some(Controlling { stop, thread }) = self.controlling.take() {
            stop.store(true, Relaxed);
            // One that panicked has said so.
            drop(thread.join());
        }
    }

    /// Lets the threads for new connections and for bytes end soon.
    fn stop_threads(&self) {
        self.hall.stop.store(true, Relaxed);
        for running in &self.workers {
            running.shared.stop.store(true, Relaxed);
        }
        self.gate.wake_all();
    }

    /// The number of the first interface towards the RAN.
    fn ran(&self) -> u32 {
        numbers(&self.settings.get(), &self.interfaces)[1][0]
    }

    fn shared(&self) -> Vec<Arc<Shared>> {
        self.workers.iter().map(|running| Arc::clone(&running.shared)).collect()
    }

    /// Serves its metrics over HTTP, for as long as it exists. Returns the address.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn serve_metrics(&mut self, listener: MetricsListener) -> Result<SocketAddr, Error> {
        let workers = self.shared();
        let server = listener.serve_text(move || metrics::text(&workers))?;
        Ok(self.metrics.insert(server).address())
    }

    /// Writes a line to a log for each connection that ends.
    ///
    /// # Errors
    /// [`Error::Wrong`] if the file cannot be opened.
    pub fn log_connections(&mut self, settings: &LogSettings) -> Result<(), Error> {
        let (log, thread) = ConnectionLog::open(settings)?;
        self.hall.records.set_log(Some(log));
        self.recording.push(thread);
        Ok(())
    }

    /// Sends a flow record for each connection that ends to a collector, or to another one than before, or to none.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn export_flows(&mut self, settings: Option<ExportSettings>) -> Result<(), Error> {
        let shared = self.workers.first().map(|running| Arc::clone(&running.shared));
        let tell = move |notice| {
            if let Some(shared) = &shared {
                shared.registry.notify([notice]);
            }
        };
        let counts = &self.hall.exports;
        let started = settings.map(|settings| Exporter::start(settings, Arc::clone(counts), tell)).transpose()?;
        let (exporter, thread) = started.unzip();
        // The one before sends what it has and ends, for which nobody waits here.
        self.hall.records.set_exporter(exporter);
        self.recording.retain(|thread| !thread.is_finished());
        self.recording.extend(thread);
        Ok(())
    }

    /// Looks after workers and guardian. Call it about ten times a second: if it is not called for half a second, new
    /// connections bypass the proxy. Returns what it has found.
    ///
    /// # Errors
    /// The proxy cannot go on: an interface is gone, a worker has died, or the table cannot be made again. Drop it.
    pub fn tick(&mut self) -> Result<Option<Notice>, Error> {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.ticked, now)).min(TICK);
        self.hall.ticks.fetch_add(1, Relaxed);
        self.look_at_table(now)?;
        let mut hang = 0;
        for running in &mut self.workers {
            let beat = running.shared.beat.load(Relaxed);
            let is_silent = std::mem::replace(&mut running.beat, beat) == beat;
            running.silence = if is_silent { running.silence + passed } else { Duration::ZERO };
            running.shared.hangs.store(running.silence > HANGS, Relaxed);
            hang += usize::from(running.silence > HANGS);
            if running.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Err(Error::Missing("a thread has ended unexpectedly".into()));
            }
        }
        if self.admission.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(Error::Missing("the thread for new connections has ended unexpectedly".into()));
        }
        let beat = self.hall.beat.load(Relaxed);
        let silence = if beat == self.admission_beat.0 { self.admission_beat.1 + passed } else { Duration::ZERO };
        self.admission_beat = (beat, silence);
        if silence > LOST {
            self.hall.listeners.iter().for_each(Listener::shut);
        }
        if hang < self.workers.len() && !self.guardian.beat() {
            // Somebody has killed it.
            match Guardian::start((self.guardian_command)(), &self.orders, &self.hall.listeners) {
                Ok(guardian) => (self.guardian, self.unguarded) = (guardian, false),
                Err(_) if self.unguarded => {}
                Err(_) => {
                    self.unguarded = true;
                    return Ok(Some(Notice::Failed(
                        "the process that cleans up if the proxy is killed was killed itself, and cannot be started again \
                         (is the limit of open files or processes reached?); the proxy tries on"
                            .into(),
                    )));
                }
            }
        }
        self.notices.extend(self.workers.iter().flat_map(|running| running.shared.registry.take_notices()));
        if self.controlling.as_ref().is_some_and(|controlling| controlling.thread.is_finished()) {
            self.end_control();
            return Ok(Some(Notice::Failed(
                "the control of windows and rates has failed: connections go on without limits; restart the proxy, and \
                 report this as a fault of it"
                    .into(),
            )));
        }
        if self.answering == Answering::No {
            self.answering = Answering::Told;
            return Ok(Some(Notice::Failed(
                "another program has all names of the status socket (find it with `ss -xlp`): until it ends, \
                 `ranway proxy status` does not work"
                    .into(),
            )));
        }
        let changed = self.changes.any();
        self.rules_changed |= changed;
        match self.steering.follow_tracking(changed) {
            // Their handshakes are unknown to the rules.
            Ok(true) => self.forsake(),
            Ok(false) => {}
            Err(why) if self.steering.lives() => return Err(why),
            // In the next turn, it gets another owner.
            Err(_) => {}
        }
        if now.duration_since(self.looked) >= LOOK {
            self.looked = now;
            if self.testament.is_none() {
                self.testament = Testament::open(self.ran()).ok().flatten();
            }
            if self.answering == Answering::Told {
                self.answer()?;
                if self.answering == Answering::Yes {
                    return Ok(Some(Notice::Repaired("`ranway proxy status` works again".into())));
                }
            }
            if let Some((name, _)) = self.interfaces.iter().find(|(name, number)| is_another(name, *number)) {
                return Err(Error::Missing(format!("`{name}` was removed, renamed or made again")));
            }
            self.look_at_room();
            let is_time = now.duration_since(self.routes_looked) >= LOOK_AT_ROUTES;
            if is_time {
                self.routes_looked = now;
                let notice = self.look_at_routes();
                self.notices.extend(notice);
            }
            self.look_at_obstacles(now, is_time);
        }
        Ok(self.notices.pop_front())
    }

    /// Makes the table of nftables again if its owner has ended.
    ///
    /// # Errors
    /// That has failed for [`WITHOUT_TABLE`].
    fn look_at_table(&mut self, now: Instant) -> Result<(), Error> {
        match self.steering.revive() {
            Ok(false) => {}
            Ok(true) => {
                self.without_table = None;
                self.notices.push_back(Notice::Repaired(
                    "somebody killed `nft`, which owns the proxy's table; another one has made the table again".into(),
                ));
            }
            Err(why) => {
                let since = *self.without_table.get_or_insert(now);
                if now.duration_since(since) >= WITHOUT_TABLE {
                    return Err(why);
                }
            }
        }
        Ok(())
    }

    /// Lets new connections bypass the proxy from now on; those that there are go on, and so do handshakes, for which
    /// [`HANDSHAKES`] is enough.
    pub fn drain(&self) {
        self.gate.set_draining(true);
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.gate.count()
    }

    /// Returns the counters and, if `connections`, what is known of each connection.
    pub fn status(&self, connections: bool) -> Status {
        status::status(&self.shared(), connections)
    }

    /// Returns what reads the status in another thread.
    pub fn observer(&self) -> Observer {
        Observer(self.shared())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // No more connections, then no more bytes. What is not closed is reset as the workers end.
        self.stop_threads();
        if !self.orders.has_heir {
            self.hall.listeners.iter().for_each(Listener::shut);
        }
        self.stop.store(true, Relaxed);
        self.gate.wake_all();
        self.end_control();
        // One that panicked has said so.
        self.admission.take().into_iter().for_each(|thread| drop(thread.join()));
        let workers = self.workers.iter_mut().filter_map(|running| running.thread.take());
        workers.for_each(|thread| drop(thread.join()));
        self.others.drain(..).for_each(|thread| drop(thread.join()));
        drop(self.metrics.take());
        // Its last lines are written when nobody can add one.
        self.hall.records.set_log(None);
        self.hall.records.set_exporter(None);
        self.recording.drain(..).for_each(|thread| drop(thread.join()));
        self.orders.settings.drain(..).for_each(Setting::restore);
    }
}

/// Whether the interface of this name is another one than that of this number, or gone. For want of open files, nobody knows.
fn is_another(name: &str, number: u32) -> bool {
    match nix::net::if_::if_nametoindex(name) {
        Ok(found) => found != number,
        Err(error) => error == nix::errno::Errno::ENODEV,
    }
}

/// Returns the settings with the names that nftables knows interfaces by, which are not their alternative ones.
fn with_own_names(mut settings: Settings) -> Settings {
    for name in settings.wan.iter_mut().chain(&mut settings.ran) {
        let own = nix::net::if_::if_nametoindex(name.as_str()).and_then(nix::net::if_::if_indextoname);
        if let Ok(Ok(own)) = own.map(CString::into_string) {
            *name = own;
        }
    }
    settings
}

/// Returns the names and numbers of the interfaces.
fn interfaces(settings: &Settings) -> Result<Vec<(String, u32)>, Error> {
    let mut all: Vec<(String, u32)> = Vec::new();
    for name in settings.wan.iter().chain(&settings.ran) {
        let number = nix::net::if_::if_nametoindex(name.as_str())
            .map_err(|_| Error::Wrong(format!("there is no interface `{name}`")))?;
        if let Some((other, _)) = all.iter().find(|(_, other)| *other == number) {
            return Err(Error::Wrong(format!("`{other}` and `{name}` are one interface, and two are needed")));
        }
        if name == "lo" {
            return Err(Error::Wrong("`lo` has no connections that pass through this machine".into()));
        }
        all.push((name.clone(), number));
    }
    Ok(all)
}

/// Reserves the interfaces. Waits a moment for an instance that was killed: the kernel is about to close its sockets.
///
/// # Errors
/// As [`Reservation::new`].
fn reserve_patiently(interfaces: &[(String, u32)]) -> Result<Vec<Reservation>, Error> {
    let start = Instant::now();
    let reserve = |(name, number): &(String, u32)| Reservation::by_index(Role::Proxy, name, *number);
    loop {
        match interfaces.iter().map(reserve).collect() {
            Err(Error::Wrong(_)) if start.elapsed() < listen::BIND_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(20));
            }
            reserved => return reserved,
        }
    }
}

/// Returns the numbers of the interfaces towards the WAN and the RAN.
fn numbers(settings: &Settings, interfaces: &[(String, u32)]) -> [Vec<u32>; 2] {
    let of = |names: &[String]| {
        interfaces.iter().filter(|(name, _)| names.contains(name)).map(|(_, number)| *number).collect()
    };
    [of(&settings.wan), of(&settings.ran)]
}

/// Returns for how many connections this process may open files, up to those that the settings want. Raises its limit as far as
/// it may, so that there are pipes for all.
pub fn permitted_connections(settings: &Settings) -> usize {
    let wanted = settings.max_connections;
    let (needed, pipes) = (settings.files(), 2 * wanted as u64);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed + pipes) {
        return wanted;
    }
    let raise = |current: u64, maximum| setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum });
    let most = limit.maximum.unwrap_or(needed + pipes).min(needed + pipes);
    // Beyond the hard limit it takes CAP_SYS_RESOURCE.
    let raised = raise(needed + pipes, limit.maximum.map(|maximum| maximum.max(needed + pipes)))
        .or_else(|_| raise(most, limit.maximum));
    let files = if raised.is_ok() { getrlimit(Resource::Nofile).current } else { limit.current };
    let missing = files.map_or(0, |files| needed.saturating_sub(files));
    wanted.saturating_sub(missing.div_ceil(FILES_EACH) as usize)
}

/// Refuses to start with an obstacle.
fn refuse(obstacle: Option<String>) -> Result<(), Error> {
    obstacle.map_or(Ok(()), |why| Err(Error::Missing(why)))
}

fn check_file_limit(settings: &Settings) -> Result<(), Error> {
    let (wanted, permitted) = (settings.max_connections, permitted_connections(settings));
    if permitted >= wanted {
        return Ok(());
    }
    let lower = match permitted {
        0 => "--threads".to_owned(),
        permitted => format!("--max-connections to {permitted}"),
    };
    Err(Error::Wrong(format!(
        "{wanted} connections may need {} open files, which the limit does not permit: lower {lower}, or raise the limit \
         (ulimit -n, LimitNOFILE=)",
        settings.files(),
    )))
}
