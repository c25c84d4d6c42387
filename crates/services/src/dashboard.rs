//! The dashboard of a command: a page that follows its run, over HTTP.
//!
//! A thread of its own serves the page, its events, metrics and commands. The command, or the thread that it wants to show,
//! has a [`Publisher`]: it asks [`Publisher::is_due`], and if so gives it a closure that puts what is new on the
//! [`Board`]. The server calls the closure; the publisher never waits, and whatever it gives while the server is busy is
//! refused. The server makes a batch of it for all readers (`hub`) and asks for more after [`TURN`], or after a hundred times the
//! processor time that the batch took, up to [`LONGEST_REST`], so that batches use about 1 % of a core. What it serves does not
//! count: nobody can stop the batches by asking for pages.

mod access;
mod http;
mod hub;
pub(crate) mod metrics;

pub use access::{TOKEN_VARIABLE, parse_address};
pub use http::Command;

use crate::server::{Most, refused, serve};
use access::{Access, random};
use http::App;
use hub::Hub;
use netio::realtime::thread_time;
use netio::{Error, rights};
use record::Meta;
use record::report::live::Board;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The shortest interval between two batches.
const TURN: Duration = Duration::from_millis(500);
/// The interval between two batches is so many times the processor time that the first of them took.
const LEISURE: u32 = 100;
/// The longest interval between two batches.
const LONGEST_REST: Duration = Duration::from_secs(10);
/// What publishers have given and the server has not taken.
const MOST_WAITING: usize = 64;
/// The most connections. On the loopback interface, all users have one address.
const MOST_CLIENTS: Most = Most { connections: 64, of_site: 32 };
/// The longest time that open pages have to take the last batch and the report.
const LINGER: Duration = Duration::from_secs(10);

/// What a dashboard is for.
pub struct Options {
    /// Where it is served; by default, a free port of the loopback interface.
    pub address: SocketAddr,
    /// The subcommand.
    pub command: &'static str,
    /// What it runs.
    pub meta: Meta,
    /// Whether it is an emulation.
    pub emulated: bool,
    /// Whether it shows what not everybody on this machine may see.
    pub is_private: bool,
    /// Carries out commands, if there are any.
    pub control: Option<Command>,
    /// The token; without it, one is made.
    pub token: Option<String>,
}

impl Options {
    /// The options of a dashboard of `command` on the loopback interface.
    pub fn new(command: &'static str, meta: Meta) -> Options {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        Options { address, command, meta, emulated: false, is_private: false, control: None, token: None }
    }
}

type Act = Box<dyn FnOnce(&mut Board) + Send>;

/// Gives data to a dashboard, and never waits for it.
#[derive(Clone, Debug)]
pub struct Publisher {
    acts: mpsc::Sender<Act>,
    due: Arc<AtomicBool>,
}

impl Publisher {
    /// Whether the dashboard wants data.
    pub fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// Has the dashboard call `act`, which puts data on its board, unless it is too busy for more.
    pub fn publish(&self, act: impl FnOnce(&mut Board) + Send + 'static) {
        if self.acts.try_send(Box::new(act)).is_ok() {
            self.due.store(false, Ordering::Relaxed);
        }
    }

    /// Has the dashboard note something that happened now.
    pub fn note(&self, text: String) {
        // One note fewer in the log of a busy dashboard is no reason to wait.
        let _ = self.acts.try_send(Box::new(move |board| {
            let t_s = board.live().t_s;
            board.note(t_s, text);
        }));
    }
}

/// A running dashboard. Dropping it ends it; pages that are open say so.
#[derive(Debug)]
pub struct Dashboard {
    publisher: Publisher,
    report: Arc<Mutex<Option<PathBuf>>>,
    url: String,
    /// The server ends when this is gone.
    running: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Starts a dashboard.
    ///
    /// # Errors
    /// [`Error::Wrong`] for an address that is in use or not this machine's, or for a token that is too short.
    pub fn start(options: Options) -> Result<Dashboard, Error> {
        let Options { address, command, meta, emulated, is_private, control, token } = options;
        let wrong = |why: std::io::Error| {
            let why = refused(&why, "--dashboard");
            Error::Wrong(format!("--dashboard {address}: the page cannot be served there: {why}"))
        };
        let listener = TcpListener::bind(address).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        let access = Access::new(listener.local_addr().map_err(wrong)?, token.as_deref(), is_private)?;
        let url = access.url(control.is_some());
        let hub = Hub::new(Board::new(random()?, command, meta, emulated));
        let report = Arc::<Mutex<Option<PathBuf>>>::default();
        let app = App { hub: hub.clone(), access, command: control, report: report.clone() };
        let router = http::router(Arc::new(app));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::system("start the dashboard"))?;
        let (acts, waiting) = mpsc::channel(MOST_WAITING);
        let publisher = Publisher { acts, due: Arc::new(AtomicBool::new(true)) };
        let due = publisher.due.clone();
        let (running, stopped) = oneshot::channel();
        let written = report.clone();
        let run = move || {
            // It answers strangers, and needs no rights for that.
            if rights::give_up().is_err() {
                return;
            }
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let serving = tokio::spawn(serve(listener, router, MOST_CLIENTS, Vec::new()));
                follow(&hub, waiting, &due, stopped).await;
                let report = written.lock().unwrap_or_else(PoisonError::into_inner).clone();
                hub.with(|board| {
                    board.change(|live| {
                        (live.ended, live.report) = (true, report.map(|report| report.display().to_string()));
                    });
                });
                hub.publish(true);
                let end = Instant::now() + LINGER;
                while hub.readers.load(Ordering::Relaxed) > 0 && Instant::now() < end {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                serving.abort();
            });
            // A command that hangs is not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("dashboard".into()).spawn(run);
        let thread = thread.map_err(Error::system("start the dashboard"))?;
        Ok(Dashboard { publisher, report, url, running: Some(running), thread: Some(thread) })
    }

    /// The page's address, with its token if it needs one.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns what gives it data.
    pub fn publisher(&self) -> Publisher {
        self.publisher.clone()
    }

    /// Ends it. Pages that are open get the report in the directory `out`, and keep what they show.
    pub fn end(self, out: &Path) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(out.join("report.html"));
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            drop(thread.join());
        }
    }
}

/// Takes what publishers give and makes batches of it, until the sender of `stopped` is gone.
async fn follow(hub: &Hub, mut waiting: mpsc::Receiver<Act>, due: &AtomicBool, mut stopped: oneshot::Receiver<()>) {
    let mut next = Instant::now();
    let mut worked = Duration::ZERO;
    loop {
        tokio::select! {
            Some(act) = waiting.recv() => worked += timed(|| hub.with(act)),
            () = tokio::time::sleep_until(next.into()) => {
                worked += timed(|| hub.publish(false));
                next = Instant::now() + rest(worked);
                worked = Duration::ZERO;
                due.store(true, Ordering::Relaxed);
            }
            _ = &mut stopped => break,
        }
    }
    while let Ok(act) = waiting.try_recv() {
        hub.with(act);
    }
}

/// Returns the processor time that `act` takes.
fn timed(act: impl FnOnce()) -> Duration {
    let begun = thread_time();
    act();
    thread_time().saturating_sub(begun)
}

/// Returns the time to the next batch after one that took so much processor time.
fn rest(worked: Duration) -> Duration {
    (worked * LEISURE).clamp(TURN, LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_are_in_proportion_to_the_work_and_bounded() {
        for (worked_ms, rest_ms) in [(0, 500), (1, 500), (20, 2_000), (100, 10_000), (60_000, 10_000)] {
            assert_eq!(rest(Duration::from_millis(worked_ms)), Duration::from_millis(rest_ms), "{worked_ms}");
        }
    }

    #[test]
    fn what_is_served_delays_no_batch() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let hub = Hub::new(Board::new("one".to_owned(), "run", Meta::default(), false));
        let due = AtomicBool::new(false);
        let (_acts, waiting) = mpsc::channel(1);
        let (_running, stopped) = oneshot::channel();
        let batch = async || {
            while !due.swap(false, Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let serving = async {
            batch().await;
            let begun = thread_time();
            while thread_time().saturating_sub(begun) < Duration::from_millis(500) {}
            let begun = Instant::now();
            batch().await;
            batch().await;
            begun.elapsed()
        };
        let took = runtime.block_on(async {
            tokio::select! {
                () = follow(&hub, waiting, &due, stopped) => panic!("nobody has stopped it"),
                took = serving => took,
            }
        });
        assert!(took < LONGEST_REST, "{took:?}");
    }
}
