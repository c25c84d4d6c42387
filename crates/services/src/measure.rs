//! The measurement server: RMBT, ndt7, throughput1 and a small control server, on one port.
//!
//! Path of a connection: [`limits::Gate`] counts it, or it is closed. `connection.rs` finds out what it speaks: TLS by its first byte,
//! HTTP by its first word, and RMBT if it is silent for 300 ms, since the server greets first then. `rmbt.rs` and `streams.rs` connect
//! the state machines of the crate `speedtest` to the socket; `control.rs` answers requests for tokens. No data is sent or taken before a
//! token is accepted. Transfers that have ended go to `results.rs`.
//!
//! What clients can use is bounded: connections and flows in all and per address, connections that have not presented a token (the
//! oldest makes room), heads, lines, bodies, time. Random data is shared by all flows; what arrives is read into one buffer per
//! thread. A connection costs some kilobytes, and its samples.

mod app;
mod client;
mod connection;
mod control;
mod error;
mod keys;
mod limits;
pub(crate) mod metrics;
mod results;
mod rmbt;
mod stream;
mod streams;
mod tls;

pub use app::Control;
pub use error::Error;
pub use keys::Open;
pub use limits::Limits;
pub use results::Store;
pub use tls::Tls;

use crate::log::Log;
use crate::metrics::{MetricsAccess, MetricsListener};
use crate::server;
use app::App;
use error::fill_random;
use keys::Keys;
use limits::{Busy, Gate};
use metrics::Counters;
use results::Results;
use speedtest::rmbt::chunks::RANDOM;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::SignalKind;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections that the kernel completes before they are accepted.
const BACKLOG: u32 = 1024;
/// Pause after the system refused a connection, when file descriptors are exhausted.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
/// File descriptors that are not for connections.
const OTHER_DESCRIPTORS: u64 = 64;
/// The most long bodies of requests that are read at the same time; each takes up to 1 MiB.
const MOST_BODIES: usize = 32;
/// Interval between checks whether all flows have ended.
const DRAIN_TURN: Duration = Duration::from_millis(50);

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients connect.
    pub listen: Vec<SocketAddr>,
    /// The certificate, if there is TLS. The same ports take connections without TLS.
    pub tls: Option<Tls>,
    /// Whether connections without TLS are closed.
    pub tls_only: bool,
    /// File of the keys that tokens are signed with. Without one, the server makes a key, which its own control server uses.
    pub keys: Option<PathBuf>,
    /// Whether tokens need a v2 part.
    pub require_v2: bool,
    /// Who needs no token.
    pub open: Open,
    /// The control server, if there is one.
    pub control: Option<Control>,
    /// What clients may use.
    pub limits: Limits,
    /// Where results are stored.
    pub results: Option<Store>,
    /// Where metrics are served, and who may read them.
    pub metrics: Option<MetricsAccess>,
    /// The longest wait for flows when the server ends.
    pub drain: Duration,
    /// Where messages go.
    pub log: Log,
}

impl Default for Options {
    /// Serves on a free port of the loopback interface to this host and private networks, without tokens.
    fn default() -> Options {
        Options {
            listen: vec![([127, 0, 0, 1], 0).into()],
            tls: None,
            tls_only: false,
            keys: None,
            require_v2: false,
            open: Open::Private,
            control: None,
            limits: Limits::default(),
            results: None,
            metrics: None,
            drain: Duration::from_secs(15),
            log: Log::default(),
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct Service {
    app: Arc<App>,
    addresses: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
    keys: Option<PathBuf>,
    tls: Option<Tls>,
    drain: Duration,
    tasks: JoinSet<()>,
}

impl Service {
    /// Starts a server on the current tokio runtime. Nothing is served if an option is not valid.
    ///
    /// # Errors
    /// What is wrong, in one line: an address, a file, or a combination of options.
    pub async fn start(options: Options) -> Result<Service, Error> {
        let mut limits = options.limits;
        if options.keys.is_none() && options.control.is_none() && options.open == Open::Nobody {
            let why = "tokens cannot be checked: give a key file, or start the control server, or open the server";
            return Err(Error(why.into()));
        }
        if options.tls_only && options.tls.is_none() {
            return Err(Error("TLS alone is not possible without a certificate".into()));
        }
        let descriptors = netio::process::allow_files();
        let most = usize::try_from(descriptors.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(usize::MAX).max(1);
        if limits.connections > most {
            options.log.line(format_args!("at most {most} connections: the system allows {descriptors} open files"));
            limits.connections = most;
        }
        let keys = Keys::load(options.keys.as_deref())?;
        let acceptor = options.tls.as_ref().map(Tls::load).transpose()?;
        let counters = Arc::new(Counters::default());
        let results = Results::open(options.results, counters.clone())?;
        let mut random = vec![0; RANDOM];
        fill_random(&mut random)?;
        let mut listeners = Vec::new();
        for address in &options.listen {
            let wrong = |why: std::io::Error| {
                Error(format!("cannot listen on {address}: {}", server::refused(&why, "--listen")))
            };
            listeners.push(listen(*address).map_err(wrong)?);
        }
        let gate = Gate::new(limits);
        let mut tasks = JoinSet::new();
        let metrics = match options.metrics {
            Some(access) => {
                let listener = MetricsListener::bind(access).map_err(|why| Error(why.to_string()))?;
                let address = listener.address();
                let (gate, counters) = (gate.clone(), counters.clone());
                tasks.spawn(listener.run(move || metrics::text(&gate, &counters)));
                Some(address)
            }
            None => None,
        };
        let app = Arc::new(App {
            limits,
            tls_only: options.tls_only,
            require_v2: options.require_v2,
            open: options.open,
            control: options.control,
            gate,
            counters,
            results,
            log: options.log,
            random,
            start: Instant::now(),
            keys: RwLock::new(Arc::new(keys)),
            tls: RwLock::new(acceptor),
            bodies: Semaphore::new(MOST_BODIES),
        });
        let mut addresses = Vec::new();
        for listener in listeners {
            addresses.push(listener.local_addr().map_err(|why| Error(format!("cannot listen: {why}")))?);
            tasks.spawn(accept(app.clone(), listener));
        }
        let (keys, tls, drain) = (options.keys, options.tls, options.drain);
        Ok(Service { app, addresses, metrics, keys, tls, drain, tasks })
    }

    /// Returns where clients connect.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns where metrics are served.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Reads the key file and the certificate again. Flows go on; if a file is not valid, so does what was read before.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub fn reload(&self) -> Result<(), Error> {
        let keys = self.keys.as_deref().map(|path| Keys::load(Some(path))).transpose()?;
        let acceptor = match &self.tls {
            Some(tls @ Tls::Files { .. }) => Some(tls.load()?),
            _ => None,
        };
        if let (Some(keys), Ok(mut current)) = (keys, self.app.keys.write()) {
            *current = Arc::new(keys);
        }
        if let (Some(acceptor), Ok(mut current)) = (acceptor, self.app.tls.write()) {
            *current = Some(acceptor);
        }
        Ok(())
    }

    /// Accepts no more connections, waits for flows as long as agreed, and ends.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        let start = Instant::now();
        while self.app.gate.counts().1 > 0 && start.elapsed() < self.drain {
            tokio::time::sleep(DRAIN_TURN).await;
        }
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until the future is dropped. Connections live on.
async fn accept(app: Arc<App>, listener: TcpListener) {
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(REFUSED_PAUSE).await;
            continue;
        };
        app.counters.connections.fetch_add(1, Relaxed);
        match app.gate.enter(peer.ip()) {
            Ok(visitor) => drop(tokio::spawn(connection::serve(app.clone(), stream, peer, visitor))),
            Err(busy) => refuse(&app, &stream, busy),
        }
    }
}

/// Closes a connection for which there is no room. A reset frees it at once.
fn refuse(app: &App, stream: &TcpStream, busy: Busy) {
    app.counters.refuse(busy);
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Runs a server until Ctrl-C or SIGTERM; SIGHUP reads keys and certificate again. `started` learns where clients connect.
///
/// # Errors
/// Why it cannot start, in one line.
pub fn run(options: Options, started: impl FnOnce(&Service)) -> Result<(), Error> {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(|why| Error(format!("cannot start: {why}")))?;
    let log = options.log.clone();
    let app = runtime.block_on(async {
        let signal =
            |kind| tokio::signal::unix::signal(kind).map_err(|why| Error(format!("cannot catch signals: {why}")));
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut hangup = signal(SignalKind::hangup())?;
        let service = Service::start(options).await?;
        started(&service);
        loop {
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                _ = hangup.recv() => match service.reload() {
                    Ok(()) => log.line(format_args!("keys and certificate were read again")),
                    Err(why) => log.line(format_args!("nothing was changed: {why}")),
                },
            }
        }
        let app = service.app.clone();
        tokio::select! {
            () = service.stop() => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(app)
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    if let Some(mut app) = Arc::into_inner(app) {
        app.results.close();
    }
    Ok(())
}
