//! Many runs on all cores: every repetition of every point of a sweep, or a list of them.

// Wall-clock and processor time are reported beside the results, never inside them.
#![allow(clippy::disallowed_methods)]

use crate::build::{self, flows, recordings};
use crate::error::Error;
use crate::rows::{RunId, meta};
use crate::world::{Done, Seen, World};
use rayon::prelude::*;
use record::{Job, Output, Partial, Results, SweepDir, Tables, Timing};
use rnis::RadioReport;
use scenario::Loaded;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use units::{Span, Time};

/// The most threads: more only take memory.
const MOST_THREADS: usize = 1024;

/// Options of a batch.
pub struct Options<'a> {
    /// Threads; 0 means one for each core.
    pub jobs: usize,
    /// Set this to stop: unfinished runs are discarded, finished ones are kept.
    pub stop: &'a AtomicBool,
    /// Called with the progress from time to time.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// The directory of captures, if the scenario requests any.
    pub output: Option<&'a Output>,
    /// Called with each report of the cells on a UE, by the UE's number, and times from the run's start.
    pub reports: Option<&'a (dyn Fn(u32, RadioReport) + Sync)>,
    /// Follows the runs, if anybody does.
    pub watch: Option<&'a dyn Watch>,
}

/// Follows runs while they go on. It changes nothing in their results, and must not wait.
pub trait Watch: Sync {
    /// Whether rows of a run that goes on are wanted now.
    fn is_due(&self, job: Job) -> bool;
    /// Takes the rows of a run up to `now`: new ones of samples, queues, radio and mobility, those so far of flows, links and UEs.
    fn take_rows(&self, job: Job, now: Span, rows: Tables);
    /// Takes a run that has finished; of its rows over time, those from `seen` on are new.
    fn take_finished(&self, job: Job, tables: &Tables, seen: &Seen);
}

/// The progress of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Runs that have finished.
    pub runs_done: u64,
    /// Runs in all.
    pub runs: u64,
    /// The completed share of all simulated time (0 to 1).
    pub share: f64,
}

/// The outcome of a batch.
pub struct Outcome {
    /// The results of the runs that finished.
    pub results: Results,
    /// Number of jobs that finished.
    pub finished: u64,
    /// Number of jobs.
    pub runs: u64,
}

/// Jobs of a scenario to run together: all of them, or a list.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    loaded: &'a Loaded,
    /// In order, each once, each one of the scenario's.
    jobs: Vec<Job>,
}

/// Errors in a list of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsError {
    /// The jobs that the scenario does not have, in order.
    pub unknown: Vec<Job>,
    /// The jobs that are listed more than once, in order.
    pub repeated: Vec<Job>,
    /// Number of points of the scenario.
    points: usize,
    /// The fewest and the most runs of a point.
    runs: (u32, u32),
}

impl fmt::Display for JobsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.unknown.is_empty() {
            let (fewest, most) = self.runs;
            let runs = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
            write!(f, "jobs out of range: {} (points: {}, ", Job::list(&self.unknown), self.points)?;
            write!(f, "runs of each: {runs}, both numbered from 0)")?;
        }
        if !self.repeated.is_empty() {
            let separator = if self.unknown.is_empty() { "" } else { "; " };
            write!(f, "{separator}jobs listed more than once: {}", Job::list(&self.repeated))?;
        }
        Ok(())
    }
}

impl std::error::Error for JobsError {}

/// Returns the jobs of `loaded`: every run of every point, in order.
pub fn jobs(loaded: &Loaded) -> Vec<Job> {
    Job::all(&runs(loaded)).collect()
}

/// The number of runs of each point.
fn runs(loaded: &Loaded) -> Vec<u32> {
    loaded.points().iter().map(|point| point.scenario.runs).collect()
}

impl<'a> Batch<'a> {
    /// Returns all jobs of `loaded`.
    pub fn all(loaded: &'a Loaded) -> Batch<'a> {
        Batch { loaded, jobs: jobs(loaded) }
    }

    /// Returns the given `jobs` of `loaded`, possibly none, in any order.
    ///
    /// # Errors
    /// Names the jobs that `loaded` does not have, and those that are listed more than once.
    pub fn of(loaded: &'a Loaded, mut jobs: Vec<Job>) -> Result<Batch<'a>, JobsError> {
        jobs.sort_unstable();
        let points = loaded.points();
        let is_known = |job: &Job| points.get(job.point as usize).is_some_and(|point| job.run < point.scenario.runs);
        let mut unknown: Vec<Job> = jobs.iter().copied().filter(|job| !is_known(job)).collect();
        unknown.dedup();
        let mut repeated: Vec<Job> = jobs.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        repeated.dedup();
        if unknown.is_empty() && repeated.is_empty() {
            return Ok(Batch { loaded, jobs });
        }
        let runs = || points.iter().map(|point| point.scenario.runs);
        let runs = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
        Err(JobsError { unknown, repeated, points: points.len(), runs })
    }

    /// The jobs, in order.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Runs the jobs.
    ///
    /// The tables hold them in order, whichever finished first, so that the same scenario, seed and jobs give the same
    /// tables with any number of threads. The results are marked as partial unless they hold all jobs of the scenario;
    /// [`record::merge`] puts the results of several batches together.
    ///
    /// # Errors
    /// [`Error::Trace`] for a trace that cannot be read, [`Error::Record`] if a capture cannot be written.
    pub fn run(&self, options: &Options) -> Result<Outcome, Error> {
        let loaded = self.loaded;
        let start = (Instant::now(), cpu_time::ProcessTime::now());
        let (outcomes, threads) = self.each(options, |_, done, _| Ok(done))?;

        let mut tables = Tables::default();
        let mut timing = Timing { threads, ..Timing::default() };
        let mut finished = Vec::new();
        for (&job, outcome) in self.jobs.iter().zip(outcomes) {
            let Some(outcome) = outcome else { continue };
            finished.push(job);
            tables.append(outcome.tables);
            timing.events += outcome.events;
            timing.packets += outcome.packets;
            timing.simulated_s += outcome.simulated.as_secs_f64();
        }
        timing.wall_s = start.0.elapsed().as_secs_f64();
        timing.cpu_s = start.1.elapsed().as_secs_f64();
        let mut meta = meta(loaded);
        let done = finished.len() as u64;
        meta.partial = partial(loaded, finished);
        Ok(Outcome { results: Results { meta, timing, tables }, finished: done, runs: self.jobs.len() as u64 })
    }

    /// Runs the jobs, and writes the results of each into `sweep` when it finishes, so that memory does not grow with their
    /// number. Returns how many have finished: all, unless it was stopped. [`record::assemble`] makes results of them.
    ///
    /// # Errors
    /// [`Error::Trace`] for a trace that cannot be read, [`Error::Record`] if a file cannot be written: then no further job
    /// begins.
    pub fn run_into(&self, sweep: &SweepDir, options: &Options) -> Result<u64, Error> {
        let write = |job: &Job, done: Done, timing: Timing| Ok(sweep.write(*job, &done.tables, &timing)?);
        let (outcomes, _) = self.each(options, write)?;
        Ok(outcomes.iter().flatten().count() as u64)
    }

    /// Runs the jobs and calls `take` with each one's results and timing, in the thread that ran it. Returns what `take` made of
    /// those that were not stopped, in the order of the jobs, and the number of threads.
    fn each<T: Send>(
        &self,
        options: &Options,
        take: impl Fn(&Job, Done, Timing) -> Result<T, Error> + Sync,
    ) -> Result<(Vec<Option<T>>, u32), Error> {
        let (loaded, points) = (self.loaded, self.loaded.points());
        let recordings = recordings::load(loaded)?;
        let nanos = |job: &Job| points[job.point as usize].scenario.duration.as_nanos();
        let total: u64 = self.jobs.iter().map(|job| nanos(job) / 1000).sum();
        let runs = self.jobs.len() as u64;
        let (behind, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let tell_all = |add: Span| {
            let behind = behind.fetch_add(add.as_nanos() / 1000, Ordering::Relaxed) + add.as_nanos() / 1000;
            let share = behind as f64 / total.max(1) as f64;
            (options.progress)(Progress { runs_done: done.load(Ordering::Relaxed), runs, share });
        };
        let one = |job: &Job| -> Result<Option<T>, Error> {
            if options.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let start = (Instant::now(), cpu_time::ThreadTime::now());
            let id = RunId { point: job.point, run: job.run };
            let scenario = &points[job.point as usize].scenario;
            let mut world = build::world(scenario, id, &recordings, options.output, false)?;
            if options.reports.is_some() {
                world.open_reports();
            }
            let (mut seen, mut now) = (Seen::default(), Span::ZERO);
            let mut tell = |add: Span, world: &mut World<'_>| {
                tell_all(add);
                now += add;
                if let Some(watch) = options.watch.filter(|watch| watch.is_due(*job)) {
                    watch.take_rows(*job, now, world.rows_since(&mut seen, Time::ZERO + now));
                }
            };
            let outcome = world.run(options.stop, &mut tell, options.reports.map_or(&|_, _| {}, |report| report))?;
            let Some(outcome) = outcome else { return Ok(None) };
            let timing = Timing {
                wall_s: start.0.elapsed().as_secs_f64(),
                cpu_s: start.1.elapsed().as_secs_f64(),
                simulated_s: outcome.simulated.as_secs_f64(),
                events: outcome.events,
                packets: outcome.packets,
                threads: 1,
                lateness: None,
            };
            if let Some(watch) = options.watch {
                watch.take_finished(*job, &outcome.tables, &seen);
            }
            let taken = take(job, outcome, timing)?;
            done.fetch_add(1, Ordering::Relaxed);
            tell_all(Span::ZERO);
            Ok(Some(taken))
        };
        self.on_threads(options.jobs, one)
    }

    /// Calls `one` with each job on up to this many `threads`, 0 for one for each core. Returns the outcomes in the order of
    /// the jobs, and the number of threads. A single job needs no further thread.
    fn on_threads<T: Send>(
        &self,
        threads: usize,
        one: impl Fn(&Job) -> Result<T, Error> + Sync,
    ) -> Result<(Vec<T>, u32), Error> {
        if let [job] = &self.jobs[..] {
            return Ok((vec![one(job)?], 1));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.min(self.jobs.len()).min(MOST_THREADS)).build();
        let pool = pool.map_err(|e| Error::Threads(e.to_string()))?;
        let outcomes = pool.install(|| self.jobs.par_iter().map(&one).collect::<Result<_, _>>())?;
        Ok((outcomes, pool.current_num_threads() as u32))
    }
}

/// Returns which part of `loaded` the `finished` jobs are, or `None` if all.
fn partial(loaded: &Loaded, finished: Vec<Job>) -> Option<Partial> {
    let runs = runs(loaded);
    let of = runs.iter().map(|&runs| u64::from(runs)).sum();
    let done = finished.len() as u64;
    (done < of).then_some(Partial { finished: done, of, jobs: finished, runs })
}

/// Opens the directory `path` of a sweep over `loaded`, or makes it.
///
/// # Errors
/// See [`SweepDir::open_or_create`].
pub fn sweep_dir(loaded: &Loaded, path: &Path) -> Result<SweepDir, record::Error> {
    let scenario = |point: &scenario::Point| serde_json::to_string(&point.scenario).expect("a scenario is plain data");
    let inputs = loaded.points().iter().map(scenario).chain(recordings::texts(loaded).map(str::to_owned));
    SweepDir::open_or_create(path, &meta(loaded), &runs(loaded), inputs)
}

/// Runs every repetition of every point of `loaded`: [`Batch::all`].
///
/// # Errors
/// See [`Batch::run`].
pub fn run(loaded: &Loaded, options: &Options) -> Result<Outcome, Error> {
    Batch::all(loaded).run(options)
}

/// Checks what [`run`] would only find after loading: the recordings that a scenario names, and that its applications can
/// run with their parameters.
///
/// # Errors
/// [`Error::Trace`], [`Error::Channel`] or [`Error::Flow`].
pub fn check(loaded: &Loaded) -> Result<(), Error> {
    recordings::load(loaded)?;
    for flow in loaded.points().iter().flat_map(|point| &point.scenario.flows) {
        flows::check_application(flow)?;
    }
    Ok(())
}
