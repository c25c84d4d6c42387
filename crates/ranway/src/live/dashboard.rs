//! `--dashboard`: starts the page that follows a run, and puts what each command has to show on it.

mod proxy;
mod services;

pub(crate) use proxy::ProxyFollower;
pub(crate) use services::{Reports, Values};

use crate::failure::Failure;
use crate::live::secrets;
use crate::terminal::message;
pub(crate) use ::services::dashboard::Dashboard;
use ::services::dashboard::{Options, Publisher, TOKEN_VARIABLE, parse_address};
use clap::Args as ClapArgs;
use emulate::{Emulation, News, control};
use record::report::live::{Board, Controls, Place, Places, Progress};
use record::{Meta, Tables, observed};
use scenario::{Loaded, Scenario};
use sim::{Job, Seen, UePlace};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use units::Span;

/// The longest time that an emulation may take for a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(2);
/// Points of which the first run's rows over time are shown, of several runs.
const MOST_POINTS: u32 = 20;
/// Rows of finished runs that may wait for the dashboard.
const MOST_PENDING: usize = 500_000;

#[derive(Clone, PartialEq, Eq, ClapArgs)]
pub(crate) struct DashboardArgs {
    /// Serve a page that follows the run, and metrics for Prometheus, at this address, by default a free port of 127.0.0.1;
    /// beyond this machine, only with the token that is printed
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:0",
        value_parser = parse_address
    )]
    pub(crate) dashboard: Option<SocketAddr>,
    /// File with the token of the page and its metrics: at least 16 letters and digits, in a file that others than its owner and its
    /// group cannot read [default: the systemd credential `dashboard-token`, or the variable `RANWAY_DASHBOARD_TOKEN`, or else a new one]
    #[arg(long, value_name = "FILE")]
    pub(crate) dashboard_token: Option<PathBuf>,
}

impl DashboardArgs {
    /// Whether it is asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.dashboard.is_some()
    }

    /// Starts the dashboard of `command`, if it is wanted, with what `adapt` adds, and prints its address; if `quiet`, only with a
    /// token that the user does not know yet.
    pub(crate) fn start(
        &self,
        command: &'static str,
        meta: impl FnOnce() -> Meta,
        quiet: bool,
        adapt: impl FnOnce(&mut Options),
    ) -> Result<Option<Dashboard>, Failure> {
        let Some(address) = self.dashboard else { return Ok(None) };
        let token = match secrets::file(self.dashboard_token.as_deref(), "dashboard-token") {
            Some(path) => Some(secrets::read(&path)?),
            None => std::env::var(TOKEN_VARIABLE).ok(),
        };
        let is_told = !quiet || token.is_none();
        let mut options = Options { address, token, ..Options::new(command, meta()) };
        adapt(&mut options);
        let dashboard = Dashboard::start(options)?;
        if is_told {
            message!("dashboard: {}", dashboard.url());
        }
        Ok(Some(dashboard))
    }
}

/// The description of something that is not a scenario.
pub(crate) fn untitled(title: String) -> Meta {
    Meta { title, version: sim::VERSION.to_owned(), runs: 1, ..Meta::default() }
}

/// Follows simulated runs.
pub(crate) struct Runs {
    publisher: Publisher,
    begun: Instant,
    /// Whether there is one run, whose rows are shown as they come.
    is_single: bool,
    /// The cells of the first point.
    cells: Vec<Place>,
    /// The rows of runs that have finished since the last publication.
    pending: Mutex<Tables>,
    progress: Mutex<Progress>,
}

impl Runs {
    /// Follows so many runs of `loaded`.
    pub(crate) fn new(dashboard: &Dashboard, loaded: &Loaded, runs: usize) -> Runs {
        let (publisher, pending, progress) = (dashboard.publisher(), Mutex::default(), Mutex::default());
        let cells = loaded.points().first().map_or_else(Vec::new, |point| cells(&point.scenario));
        Runs { publisher, begun: Instant::now(), is_single: runs == 1, cells, pending, progress }
    }

    /// Shows the progress, and the runs that have finished.
    pub(crate) fn show(&self, progress: sim::Progress) {
        let is_last = progress.runs_done == progress.runs;
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        let progress = Progress { done: progress.runs_done, of: progress.runs, share: progress.share, elapsed_s };
        *locked(&self.progress) = progress;
        // Of a single run that goes on, the progress is shown with its rows.
        if is_last || (self.publisher.is_due() && !self.is_single) {
            let rows = std::mem::take(&mut *locked(&self.pending));
            self.publish(move |board| board.add(&rows));
        }
    }

    /// Puts the progress on the board, and what `add` adds.
    fn publish(&self, add: impl FnOnce(&mut Board) + Send + 'static) {
        let progress = *locked(&self.progress);
        self.publisher.publish(move |board| {
            add(board);
            board.change(|live| live.progress = Some(progress));
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl sim::Watch for Runs {
    fn is_due(&self, _: Job) -> bool {
        self.is_single && self.publisher.is_due()
    }

    fn take_rows(&self, _: Job, now: Span, rows: Tables, ues: Vec<UePlace>) {
        let cells = self.cells.clone();
        self.publish(move |board| show_rows(board, now, &rows, cells, ues));
    }

    fn take_finished(&self, job: Job, tables: &Tables, seen: &Seen) {
        let with_series = self.is_single || (job.run == 0 && job.point < MOST_POINTS);
        let rows = seen.rest_of(tables, with_series);
        let mut pending = locked(&self.pending);
        // Means are of fewer runs if they finish faster than they can be shown.
        if pending.row_count() < MOST_PENDING {
            pending.append(rows);
        }
    }
}

/// Puts rows up to `now` on the board, and where UEs are.
fn show_rows(board: &mut Board, now: Span, rows: &Tables, cells: Vec<Place>, ues: Vec<UePlace>) {
    board.add(rows);
    let place = |UePlace { ue, position: [x, y, _], cell }| {
        let los = rows.radio.iter().filter(|row| row.ue == ue).last().map(|row| row.los);
        Place { name: ue, x, y, cell, los }
    };
    let ues: Vec<Place> = ues.into_iter().map(place).collect();
    board.change(|live| {
        live.t_s = Some(now.as_secs_f64());
        if !ues.is_empty() {
            live.places = Some(Places { cells, ues });
        }
    });
}

/// The cells of a scenario.
fn cells(scenario: &Scenario) -> Vec<Place> {
    let cells = scenario.radio.as_ref().map_or(&[][..], |radio| &radio.cells);
    let place = |cell: &scenario::Cell| {
        let [x, y, _] = cell.position;
        Place { name: cell.name.clone(), x, y, ..Place::default() }
    };
    cells.iter().map(place).collect()
}

/// Follows an emulation.
struct Follower {
    publisher: Publisher,
    cells: Vec<Place>,
}

impl emulate::Watch for Follower {
    fn is_due(&self) -> bool {
        self.publisher.is_due()
    }

    fn take(&mut self, news: News) {
        let cells = self.cells.clone();
        self.publisher.publish(move |board| {
            let News { at, mut rows, flows, places } = news;
            flows.iter().for_each(|flow| observed::push(&mut rows, flow, (0, 0)));
            show_rows(board, at, &rows, cells, places);
        });
    }
}

/// The dashboard of an emulation that has not started yet.
pub(crate) struct OfEmulation {
    dashboard: Dashboard,
    socket: Arc<OnceLock<PathBuf>>,
}

impl OfEmulation {
    /// Starts the dashboard, if it is wanted, and has it follow the emulation of `options`.
    pub(crate) fn start(
        args: &DashboardArgs,
        scenario: &Scenario,
        meta: impl FnOnce() -> Meta,
        quiet: bool,
        options: &mut emulate::Options,
    ) -> Result<Option<OfEmulation>, Failure> {
        let socket = Arc::<OnceLock<PathBuf>>::default();
        let place = Arc::clone(&socket);
        let dashboard = args.start("emulate", meta, quiet, |options| {
            options.emulated = true;
            options.control = Some(Box::new(move |line| {
                let socket = place.get().ok_or("the emulation has not started yet")?;
                control::ask(socket, line, COMMAND_TIMEOUT).map_err(|why| why.to_string())
            }));
        })?;
        let Some(dashboard) = dashboard else { return Ok(None) };
        let publisher = dashboard.publisher();
        let controls = controls(scenario);
        publisher.publish(move |board| board.change(|live| live.controls = Some(controls)));
        options.watch = Some(Box::new(Follower { publisher, cells: cells(scenario) }));
        Ok(Some(OfEmulation { dashboard, socket }))
    }

    /// The emulation has started.
    pub(crate) fn started(&self, emulation: &Emulation) {
        let mut running = control::running().into_iter();
        if let Some((_, socket)) = running.find(|(id, _)| id == emulation.id()) {
            // It starts once.
            let _ = self.socket.set(socket);
        }
    }

    /// Notes something that the user is told, too.
    pub(crate) fn note(&self, text: &str) {
        self.dashboard.publisher().note(text.to_owned());
    }

    /// The emulation has ended, and its results are in `out`.
    pub(crate) fn end(self, out: &std::path::Path) {
        self.dashboard.end(out);
    }
}

/// The names that commands may use.
fn controls(scenario: &Scenario) -> Controls {
    let radio = &scenario.radio;
    Controls {
        ues: radio.iter().flat_map(|radio| &radio.ues).map(|ue| ue.name.clone()).collect(),
        cells: radio.iter().flat_map(|radio| &radio.cells).map(|cell| cell.name.clone()).collect(),
        links: scenario.links.iter().map(|link| link.name.clone()).collect(),
    }
}
