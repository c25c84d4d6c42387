//! A transparent split proxy for TCP between the servers and the UEs: `ranway proxy`.
//!
//! Path of a connection: the host that opens it sends a SYN through this machine, a router between the interfaces `--wan` and
//! `--ran`. A rule of nftables ([`steering`]) gives the SYN to a listening socket of a [`worker`], which accepts it and
//! connects to the destination from the client's own address and port. From then on the worker moves bytes between the two
//! legs ([`relay`]). An end of one side reaches the other side after all bytes, and so does a reset.
//!
//! Six things can go wrong, and none may look like a regular end of a connection or block new ones:
//!
//! - **The process dies.** Both legs of every connection are reset, because no socket lingers ([`listen`]). Nothing listens any
//!   more, so SYNs pass to their destination. The [`guardian`] removes what is left.
//! - **The process or one of its threads hangs.** The guardian or [`Proxy::tick`] hides the listeners, and later shuts them.
//! - **There are too many connections.** The [`gate`] hides the listeners until some have ended.
//! - **Half-open connections fill the queues.** The [`flood`] is noticed, and the gate hides the listeners for a while.
//! - **A setting of the kernel keeps connections from the proxy.** Such [`obstacles`] are found, and the gate hides the listeners.
//! - **The upstream host refuses or does not answer.** The client's leg, which the kernel has accepted before, is reset.
//!
//! Each worker is a thread with its own listeners (`SO_REUSEPORT`), connections and pipes. Other threads see connections as
//! [`Flow`]s: the status, the metrics and a [`Governor`] of windows and rates.

mod control;
mod flood;
mod flow;
mod gate;
mod guardian;
mod inbox;
mod listen;
mod metrics;
mod obstacles;
mod relay;
mod settings;
mod status;
mod steering;
mod ues;
mod vigil;
mod window;
mod worker;

pub use control::{FlowKey, Governor, RadioWindows};
pub use flow::{Flow, Observation, Side};
pub use guardian::guard;
pub use inbox::Inbox;
pub use metrics::Metrics;
pub use settings::Settings;
pub use status::{Connection, Status, Totals, ask};

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::CString;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netio::reservation::{Reservation, Role};
use netio::{Error, rights};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::CapabilitySet;

use flood::{Change, Flood};
use flow::Registry;
use gate::{Gate, Waker};
use guardian::{Guardian, Orders};
use listen::{HANGS, Listener, keep_away};
use obstacles::Obstacles;
use settings::{Current, FILES_EACH};
use steering::{Plan, Steering};
use worker::{Counters, Shared, Worker};

/// How long handshakes under way may take when new connections bypass the proxy.
pub const HANDSHAKES: Duration = Duration::from_millis(300);
/// Of the time between two ticks, no more counts for the silence of workers: while none came, they may not have run either.
const TICK: Duration = Duration::from_millis(200);
/// Interval between checks that are not urgent.
const LOOK: Duration = Duration::from_millis(500);
/// Interval between checks of rules and routes, each of which runs `ip`.
const LOOK_AT_ROUTES: Duration = Duration::from_secs(5);

/// A proxy that runs until it is dropped, which resets its connections and removes everything that it changed.
pub struct Proxy {
    settings: Arc<Current>,
    interfaces: [u32; 2],
    gate: Arc<Gate>,
    workers: Vec<Running>,
    stop: Arc<AtomicBool>,
    controlling: Option<Controlling>,
    others: Vec<JoinHandle<()>>,
    answering: Answering,
    guardian_command: Box<dyn Fn() -> Command + Send>,
    flood: Flood,
    obstacles: Obstacles,
    /// The obstacles in the settings and in the rules of the kernel, as of the last looks.
    obstructed: [Option<String>; 2],
    /// What the operator has not been told yet.
    notices: VecDeque<Notice>,
    ticked: Instant,
    looked: Instant,
    routes_looked: Instant,
    /// Whether the last check of rules and routes failed.
    unchecked: bool,
    /// Whether there is no guardian because none could be started.
    unguarded: bool,
    // In this order: no packet is led to the proxy once it has no guardian.
    steering: Steering,
    plan: Plan,
    guardian: Guardian,
    orders: Orders,
    _reservations: [Reservation; 2],
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

/// What an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something was amiss, and has been repaired.
    Repaired(Cow<'static, str>),
    /// Something has failed, and the proxy goes on without it.
    Failed(Cow<'static, str>),
    /// Something may be amiss.
    Doubtful(Cow<'static, str>),
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
    thread: Option<JoinHandle<()>>,
    beat: u64,
    /// For how long its beat has not changed.
    silence: Duration,
}

impl Proxy {
    /// Starts a proxy. Without a governor, flows have no limits. `guardian_command` makes commands that call [`guard`].
    ///
    /// # Errors
    /// [`Error::Wrong`] for invalid settings, [`Error::Missing`] if the machine or the rights do not suffice, and
    /// [`Error::System`]. Then nothing is changed.
    pub fn start(
        settings: Settings,
        governor: Option<Governor>,
        guardian_command: impl Fn() -> Command + Send + 'static,
    ) -> Result<Proxy, Error> {
        settings.check()?;
        let settings = with_own_names(settings);
        let interfaces = interfaces(&settings)?;
        if !rights::has(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE) {
            return Err(Error::Missing(
                "a transparent proxy needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_NET_BIND_SERVICE): use sudo".into(),
            ));
        }
        check_file_limit(&settings)?;
        let plan = Plan::new(&settings, interfaces[1]);
        let reserve = |name: &str, index| Reservation::by_index(Role::Proxy, name, index);
        let reservations = [reserve(&settings.wan, interfaces[0])?, reserve(&settings.ran, interfaces[1])?];
        plan.await_predecessor();
        plan.check()?;
        let obstacles = Obstacles::new(&settings, interfaces[1])?;
        refuse(obstacles.in_settings())?;
        listen::check_congestion_control(&settings)?;
        let listeners = listen::open_patiently(&settings)?;

        let wakers = (0..settings.threads).map(|_| Waker::new()).collect::<Result<Vec<_>, _>>()?;
        let gate = Arc::new(Gate::new(settings.max_connections, wakers));
        let settings = Arc::new(Current::new(settings));
        let share = |(number, listeners)| {
            Arc::new(Shared {
                number,
                settings: Arc::clone(&settings),
                gate: Arc::clone(&gate),
                listeners,
                registry: Registry::default(),
                counters: Counters::default(),
                beat: AtomicU64::new(0),
                turn: AtomicU64::new(0),
                stop: AtomicBool::new(false),
            })
        };
        let shared: Vec<Arc<Shared>> = listeners.into_iter().enumerate().map(share).collect();
        let workers = shared.iter().map(|shared| Worker::new(Arc::clone(shared))).collect::<Result<Vec<_>, _>>()?;

        let all: Vec<&Listener> = shared.iter().flat_map(|shared| &shared.listeners).collect();
        let orders = Orders { undo: plan.undo_commands(), reports: None };
        let guardian = Guardian::start(guardian_command(), &orders, &all)?;
        let steering = plan.clone().start()?;
        refuse(obstacles.in_rules()?)?;
        let mut proxy = Proxy {
            settings,
            interfaces,
            gate,
            workers: Vec::new(),
            stop: Arc::default(),
            controlling: None,
            others: Vec::new(),
            answering: Answering::No,
            guardian_command: Box::new(guardian_command),
            flood: Flood::new(),
            obstacles,
            obstructed: [None, None],
            notices: VecDeque::new(),
            ticked: Instant::now(),
            looked: Instant::now(),
            routes_looked: Instant::now(),
            unchecked: false,
            unguarded: false,
            steering,
            plan,
            guardian,
            orders,
            _reservations: reservations,
        };
        for (worker, shared) in workers.into_iter().zip(&shared) {
            let thread = std::thread::Builder::new().name(format!("proxy-{}", shared.number));
            let thread = thread.spawn(move || worker.run()).map_err(Error::system("start a thread"))?;
            let running =
                Running { shared: Arc::clone(shared), thread: Some(thread), beat: 0, silence: Duration::ZERO };
            proxy.workers.push(running);
        }
        proxy.set_governor(governor)?;
        proxy.answer()?;
        if let Some(chain) = obstacles::dropping_chain() {
            let doubt = format!(
                "{chain} drops what comes to this machine unless a rule accepts it; where none accepts the mark \
                 {:#x}/0xffff0000, new connections time out",
                steering::BASE
            );
            proxy.notices.push_back(Notice::Doubtful(doubt.into()));
        }
        Ok(proxy)
    }

    /// Answers questions for the status, unless others have all names of the socket.
    fn answer(&mut self) -> Result<(), Error> {
        if let Some(thread) = status::serve(self.interfaces[1], self.shared(), Arc::clone(&self.stop))? {
            self.others.push(thread);
            self.answering = Answering::Yes;
        }
        Ok(())
    }

    /// Changes the settings. Those of sockets hold for connections to come, times for all.
    ///
    /// # Errors
    /// [`Error::Wrong`] if a setting is invalid or fixed from the start, and [`Error::System`]. Then nothing is changed.
    pub fn change(&mut self, new: Settings) -> Result<(), Error> {
        let new = with_own_names(new);
        let old = self.settings.get();
        old.check_change(&new)?;
        check_file_limit(&new)?;
        listen::check_congestion_control(&new)?;
        let prepare = |settings: &Settings| {
            let mut all = self.workers.iter().flat_map(|running| &running.shared.listeners);
            all.try_for_each(|listener| listener.prepare(settings))
        };
        let mut changed = prepare(&new);
        if changed.is_ok() && old.ports != new.ports {
            changed = self.steering.change(&new);
        }
        if let Err(error) = changed {
            // What they had before, they can have again.
            let _ = prepare(&old);
            return Err(error);
        }
        self.gate.set_most(new.max_connections);
        self.settings.set(new);
        Ok(())
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
        let thread = std::thread::Builder::new().name("proxy-control".into());
        let thread = thread.spawn(run).map_err(Error::system("start a thread"))?;
        self.controlling = Some(Controlling { stop, thread });
        Ok(())
    }

    fn end_control(&mut self) {
        if let Some(Controlling { stop, thread }) = self.controlling.take() {
            stop.store(true, Relaxed);
            // One that panicked has said so.
            drop(thread.join());
        }
    }

    fn shared(&self) -> Vec<Arc<Shared>> {
        self.workers.iter().map(|running| Arc::clone(&running.shared)).collect()
    }

    /// Serves the metrics at `address` over HTTP. Returns the address, whose port is chosen if it was 0.
    ///
    /// # Errors
    /// [`Error::Wrong`] if the address is in use or not this machine's.
    pub fn serve_metrics(&mut self, metrics: Metrics) -> Result<SocketAddr, Error> {
        let (address, thread) = metrics.serve(self.shared(), Arc::clone(&self.stop))?;
        self.others.push(thread);
        Ok(address)
    }

    /// Looks after workers and guardian. Call it about ten times a second: if it is not called for half a second, new
    /// connections bypass the proxy. Returns what it has found.
    ///
    /// # Errors
    /// The proxy cannot go on: an interface is gone, or a worker or the owner of the table has died. Drop it.
    pub fn tick(&mut self) -> Result<Option<Notice>, Error> {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.ticked, now)).min(TICK);
        let mut hang = 0;
        for running in &mut self.workers {
            let beat = running.shared.beat.load(Relaxed);
            let is_silent = std::mem::replace(&mut running.beat, beat) == beat;
            running.silence = if is_silent { running.silence + passed } else { Duration::ZERO };
            if running.silence > HANGS {
                hang += 1;
                let listeners = running.shared.listeners.iter();
                listeners.for_each(|listener| keep_away(listener.socket.as_fd(), running.silence));
            }
            if running.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Err(Error::Missing("a thread has ended unexpectedly".into()));
            }
        }
        if hang < self.workers.len() && !self.guardian.beat() {
            // Somebody has killed it.
            let all: Vec<&Listener> = self.workers.iter().flat_map(|running| &running.shared.listeners).collect();
            match Guardian::start((self.guardian_command)(), &self.orders, &all) {
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
        self.look_at_flood(now);
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
        if now.duration_since(self.looked) >= LOOK {
            self.looked = now;
            if self.answering == Answering::Told {
                self.answer()?;
                if self.answering == Answering::Yes {
                    return Ok(Some(Notice::Repaired("`ranway proxy status` works again".into())));
                }
            }
            if !self.steering.lives() {
                return Err(Error::Missing("`nft`, which owns the proxy's table, has ended".into()));
            }
            let Settings { wan, ran, .. } = &*self.settings.get();
            if [wan, ran].into_iter().zip(self.interfaces).any(|(name, number)| is_another(name, number)) {
                return Err(Error::Missing(format!("`{wan}` or `{ran}` was removed, renamed or made again")));
            }
            let is_time = now.duration_since(self.routes_looked) >= LOOK_AT_ROUTES;
            if is_time {
                self.routes_looked = now;
                let notice = self.look_at_routes();
                self.notices.extend(notice);
            }
            self.look_at_obstacles(is_time);
        }
        Ok(self.notices.pop_front())
    }

    /// Lets new connections bypass the proxy while half-open ones fill the queues of the listeners.
    fn look_at_flood(&mut self, now: Instant) {
        let Some(change) = self.flood.look(now) else { return };
        self.gate.set_flooded(change == Change::Began);
        self.notices.push_back(match change {
            Change::Began => Notice::Failed(
                "half-open connections fill the queues of listeners (a SYN flood?): new connections bypass the proxy for a \
                 while"
                    .into(),
            ),
            Change::Ended => Notice::Repaired("new connections are split again after too many half-open ones".into()),
        });
    }

    /// Lets new connections bypass the proxy while the kernel does not lead them to it. Looks also at what takes a run of `ip` if
    /// `in_rules`.
    fn look_at_obstacles(&mut self, in_rules: bool) {
        let before = self.obstructed.iter().flatten().next().cloned();
        self.obstructed[0] = self.obstacles.in_settings();
        // Without the proxy's own rule, others say nothing.
        if in_rules
            && !self.unchecked
            && let Ok(found) = self.obstacles.in_rules()
        {
            self.obstructed[1] = found;
        }
        let now = self.obstructed.iter().flatten().next().cloned();
        if now == before {
            return;
        }
        self.gate.set_obstructed(now.is_some());
        self.notices.push_back(match now {
            Some(why) => Notice::Failed(format!("{why}; new connections bypass the proxy until then").into()),
            None => Notice::Repaired("this kernel leads new connections to the proxy again".into()),
        });
    }

    /// Adds rules and routes again that somebody has removed. That may fail for a while, for want of open files or because `ip`
    /// is being replaced: connections need not end for that.
    fn look_at_routes(&mut self) -> Option<Notice> {
        let restored = self.plan.restore().and_then(|restored| self.steering.follow_tracking().map(|()| restored));
        let before = std::mem::replace(&mut self.unchecked, restored.is_err());
        match (restored, before) {
            (Err(_), false) => Some(Notice::Failed(
                "the proxy's routing rules and routes can be neither checked nor added again (`ip rule`, `ip route` and \
                 the limit of open files say more); it tries again every 5 s"
                    .into(),
            )),
            (Err(_), true) | (Ok(false), false) => None,
            (Ok(true), _) => {
                Some(Notice::Repaired("somebody removed the proxy's routing rule or route; it is there again".into()))
            }
            (Ok(false), true) => {
                Some(Notice::Repaired("the proxy's routing rules and routes can be checked again".into()))
            }
        }
    }

    /// Lets new connections bypass the proxy from now on; those that there are go on, and so do handshakes, for which
    /// [`HANDSHAKES`] is enough.
    pub fn drain(&self) {
        self.gate.drain();
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
        for running in &self.workers {
            running.shared.stop.store(true, Relaxed);
            running.shared.listeners.iter().for_each(Listener::shut);
        }
        self.stop.store(true, Relaxed);
        self.gate.wake_all();
        self.end_control();
        let threads = self.workers.iter_mut().filter_map(|running| running.thread.take()).chain(self.others.drain(..));
        // One that panicked has said so.
        threads.for_each(|thread| drop(thread.join()));
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
    for name in [&mut settings.wan, &mut settings.ran] {
        let own = nix::net::if_::if_nametoindex(name.as_str()).and_then(nix::net::if_::if_indextoname);
        if let Ok(Ok(own)) = own.map(CString::into_string) {
            *name = own;
        }
    }
    settings
}

/// Returns the numbers of the interfaces towards the WAN and the RAN.
fn interfaces(settings: &Settings) -> Result<[u32; 2], Error> {
    let find = |name: &str| {
        nix::net::if_::if_nametoindex(name).map_err(|_| Error::Wrong(format!("there is no interface `{name}`")))
    };
    let [wan, ran] = [find(&settings.wan)?, find(&settings.ran)?];
    if wan == ran {
        let (one, other) = (&settings.wan, &settings.ran);
        return Err(Error::Wrong(format!("`{one}` and `{other}` are one interface, and two are needed")));
    }
    for name in [&settings.wan, &settings.ran] {
        if name == "lo" {
            return Err(Error::Wrong("`lo` has no connections that pass through this machine".into()));
        }
    }
    Ok([wan, ran])
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
