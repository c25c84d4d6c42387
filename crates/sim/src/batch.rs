//! Many runs on all cores: every repetition of every point of a sweep, or a list of them.

// Wall-clock and processor time are reported beside the results, never inside them.
#![allow(clippy::disallowed_methods)]

use crate::build;
use crate::build::recordings::{self, Recordings};
use crate::error::Error;
use crate::network::medium::radio::UePlace;
use crate::rows::{RunId, meta};
use crate::world::{Done, Most, Seen, World};
use record::{Job, Output, Partial, Results, SweepDir, Tables, Timing};
use rnis::Record;
use scenario::{Loaded, Scenario};
use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use units::{Span, Time};

/// The most threads: more only take memory.
const MOST_THREADS: usize = 1024;

/// Options of batches.
pub struct Options<'a> {
    /// Threads; 0 means one for each core.
    pub jobs: usize,
    /// Set this to stop: unfinished runs are discarded, finished ones are kept.
    pub stop: &'a AtomicBool,
    /// Called with the progress from time to time.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Called with each report of the cells on a UE and with what happens to it, by the UE's number, and times from the run's
    /// start.
    pub reports: Option<&'a (dyn Fn(u32, Record) + Sync)>,
    /// Follows the runs, if anybody does.
    pub watch: Option<&'a dyn Watch>,
}

impl<'a> Options<'a> {
    /// Options of batches that nobody follows.
    pub fn new(jobs: usize, stop: &'a AtomicBool, progress: &'a (dyn Fn(Progress) + Sync)) -> Options<'a> {
        Options { jobs, stop, progress, reports: None, watch: None }
    }
}

/// Follows runs while they go on. It changes nothing in their results, and must not wait.
pub trait Watch: Sync {
    /// Whether rows of a run that goes on are wanted now.
    fn is_due(&self, job: Job) -> bool;
    /// Takes the rows of a run up to `now`: new ones of samples, queues, radio, proxies and mobility, those so far of flows, links and UEs.
    /// And where its UEs are.
    fn take_rows(&self, job: Job, now: Span, rows: Tables, places: Vec<UePlace>);
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
    /// The directory of captures.
    output: Option<&'a Output>,
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
        Batch { loaded, jobs: jobs(loaded), output: None }
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
            return Ok(Batch { loaded, jobs, output: None });
        }
        let runs = || points.iter().map(|point| point.scenario.runs);
        let runs = (runs().min().unwrap_or(0), runs().max().unwrap_or(0));
        Err(JobsError { unknown, repeated, points: points.len(), runs })
    }

    fn scenario(&self, job: Job) -> &'a Scenario {
        &self.loaded.points()[job.point as usize].scenario
    }

    /// The jobs, in order.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The same jobs, with the captures that the scenario requests, if any, in `output`.
    #[must_use]
    pub fn capturing_into(self, output: &'a Output) -> Batch<'a> {
        Batch { output: Some(output), ..self }
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
        let mut all = None;
        run_all(std::slice::from_ref(self), options, |_, outcome| {
            all = Some(outcome);
            Ok::<(), Error>(())
        })?;
        Ok(all.expect("each batch has an outcome"))
    }

    /// Runs the jobs, and writes the results of each into `sweep` when it finishes, so that memory does not grow with their
    /// number. Returns how many have finished: all, unless it was stopped. [`record::assemble`] makes results of them.
    ///
    /// # Errors
    /// [`Error::Trace`] for a trace that cannot be read, [`Error::Record`] if a file cannot be written: then no further job
    /// begins.
    pub fn run_into(&self, sweep: &SweepDir, options: &Options) -> Result<u64, Error> {
        let pool = Pool::new(std::slice::from_ref(self), options)?;
        let mut finished = 0;
        let write = |item: &Item| {
            let Some(run) = pool.run(item)? else { return Ok(false) };
            Ok(sweep.write(item.job, &run.done.tables, &run.timing).map(|()| true)?)
        };
        pool.each(write, |_, written| {
            finished += u64::from(written);
            Ok::<(), Error>(())
        })?;
        Ok(finished)
    }

    /// Puts the runs, of which those that were stopped are missing, together.
    fn outcome(&self, runs: Vec<Option<Run>>, threads: usize) -> Outcome {
        let mut tables = Tables::default();
        let mut timing = Timing { threads: threads.min(self.jobs.len()).max(1) as u32, ..Timing::default() };
        let (mut finished, mut begin, mut end) = (Vec::new(), None, None);
        for (&job, run) in self.jobs.iter().zip(runs) {
            let Some(Run { done, timing: its, start }) = run else { continue };
            finished.push(job);
            tables.append(done.tables);
            timing.events += its.events;
            timing.packets += its.packets;
            timing.simulated_s += its.simulated_s;
            timing.cpu_s += its.cpu_s;
            begin = Some(begin.map_or(start, |begin: Instant| begin.min(start)));
            end = end.max(Some(start + Duration::from_secs_f64(its.wall_s.unwrap_or_default())));
        }
        timing.wall_s = begin.zip(end).map(|(begin, end)| (end - begin).as_secs_f64());
        let mut meta = meta(self.loaded);
        let done = finished.len() as u64;
        meta.partial = partial(self.loaded, finished);
        Outcome { results: Results { meta, timing, tables }, finished: done, runs: self.jobs.len() as u64 }
    }
}

/// Runs batches on the same threads: as soon as a thread has nothing to do for one, it begins with the next. `take` is called
/// with the number and the outcome of each one, in their order, in this thread, while others run.
///
/// # Errors
/// Those of [`Batch::run`] and of `take`; then no further job begins.
pub fn run_all<E: From<Error>>(
    batches: &[Batch],
    options: &Options,
    mut take: impl FnMut(usize, Outcome) -> Result<(), E>,
) -> Result<(), E> {
    let pool = Pool::new(batches, options)?;
    let none = |batch: &Batch| batch.jobs.iter().map(|_| None).collect();
    let mut runs: Vec<Vec<Option<Run>>> = batches.iter().map(none).collect();
    let mut left: Vec<usize> = batches.iter().map(|batch| batch.jobs.len()).collect();
    let mut next = 0;
    let mut take_complete = |left: &[usize], runs: &mut [Vec<Option<Run>>]| -> Result<(), E> {
        while left.get(next) == Some(&0) {
            take(next, batches[next].outcome(std::mem::take(&mut runs[next]), pool.threads))?;
            next += 1;
        }
        Ok(())
    };
    take_complete(&left, &mut runs)?;
    pool.each(
        |item| pool.run(item),
        |item, run| {
            runs[item.batch][item.place] = run;
            left[item.batch] -= 1;
            take_complete(&left, &mut runs)
        },
    )
}

/// A run that has finished.
struct Run {
    done: Done,
    timing: Timing,
    start: Instant,
}

/// A job of several batches.
#[derive(Clone, Copy)]
struct Item {
    batch: usize,
    /// Its place among the batch's jobs.
    place: usize,
    job: Job,
}

/// Jobs of batches, and threads for them.
struct Pool<'a> {
    batches: &'a [Batch<'a>],
    options: &'a Options<'a>,
    recordings: Vec<Recordings>,
    items: Vec<Item>,
    threads: usize,
    /// Simulated microseconds in all, and those that are done.
    total: u64,
    behind: AtomicU64,
    done: AtomicU64,
}

impl<'a> Pool<'a> {
    fn new(batches: &'a [Batch<'a>], options: &'a Options<'a>) -> Result<Pool<'a>, Error> {
        let recordings = batches.iter().map(|batch| recordings::load(batch.loaded)).collect::<Result<_, _>>()?;
        let of = |(batch, jobs): (usize, &'a Batch<'a>)| {
            jobs.jobs.iter().enumerate().map(move |(place, &job)| Item { batch, place, job })
        };
        let items: Vec<Item> = batches.iter().enumerate().flat_map(of).collect();
        let wanted = match options.jobs {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            jobs => jobs,
        };
        let micros = |item: &Item| batches[item.batch].scenario(item.job).duration.as_nanos() / 1000;
        Ok(Pool {
            batches,
            options,
            recordings,
            threads: wanted.min(items.len()).clamp(1, MOST_THREADS),
            total: items.iter().map(micros).sum(),
            items,
            behind: AtomicU64::new(0),
            done: AtomicU64::new(0),
        })
    }

    /// Calls `one` with each job, on all threads, and `got` with what it returned, in this thread. Jobs begin in their order.
    fn each<T: Send, E: From<Error>>(
        &self,
        one: impl Fn(&Item) -> Result<T, Error> + Sync,
        mut got: impl FnMut(&Item, T) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.threads == 1 {
            return self.items.iter().try_for_each(|item| got(item, one(item)?));
        }
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let (one, next, failed_) = (&one, &next, &failed);
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                let sender = sender.clone();
                let work = move || {
                    while !failed_.load(Ordering::Relaxed) {
                        let Some(item) = self.items.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                        if sender.send((item, one(item))).is_err() {
                            break;
                        }
                    }
                };
                let spawned = std::thread::Builder::new().spawn_scoped(scope, work);
                if let Err(error) = spawned {
                    failed.store(true, Ordering::Relaxed);
                    return Err(Error::Threads(error.to_string()).into());
                }
            }
            drop(sender);
            let outcome = receiver.iter().try_for_each(|(item, result)| got(item, result?));
            failed.store(outcome.is_err(), Ordering::Relaxed);
            outcome
        })
    }

    /// Runs a job. `None` if it was stopped.
    fn run(&self, item: &Item) -> Result<Option<Run>, Error> {
        let options = self.options;
        if options.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let (start, cpu) = (Instant::now(), cpu_time::ThreadTime::now());
        let (batch, recordings) = (&self.batches[item.batch], &self.recordings[item.batch]);
        let id = RunId { point: item.job.point, run: item.job.run };
        let mut world = build::world(batch.scenario(item.job), id, recordings, batch.output, false)?;
        if options.reports.is_some() {
            world.open_reports();
        }
        let (mut seen, mut now) = (Seen::default(), Span::ZERO);
        let mut tell = |add: Span, world: &mut World<'_>| {
            self.tell(add);
            now += add;
            if let Some(watch) = options.watch.filter(|watch| watch.is_due(item.job)) {
                let at = Time::ZERO + now;
                // Nobody waits for simulated packets: the rows are all there are, and of one moment.
                let rows = world.rows_since(&mut seen, Most::ALL, at);
                watch.take_rows(item.job, now, rows, world.places(at));
            }
        };
        let done = world.run(options.stop, &mut tell, options.reports.map_or(&|_, _| {}, |report| report))?;
        let Some(done) = done else { return Ok(None) };
        let timing = Timing {
            wall_s: Some(start.elapsed().as_secs_f64()),
            cpu_s: cpu.elapsed().as_secs_f64(),
            simulated_s: done.simulated.as_secs_f64(),
            events: done.events,
            packets: done.packets,
            threads: 1,
            lateness: None,
        };
        if let Some(watch) = options.watch {
            watch.take_finished(item.job, &done.tables, &seen);
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        self.tell(Span::ZERO);
        Ok(Some(Run { done, timing, start }))
    }

    /// Tells the progress, with this much more simulated time.
    fn tell(&self, add: Span) {
        let micros = add.as_nanos() / 1000;
        let behind = self.behind.fetch_add(micros, Ordering::Relaxed) + micros;
        let share = behind as f64 / self.total.max(1) as f64;
        let runs = self.items.len() as u64;
        (self.options.progress)(Progress { runs_done: self.done.load(Ordering::Relaxed), runs, share });
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
    // A run does not depend on how many there are, unless it is the only one.
    let scenario = |point: &scenario::Point| {
        let mut scenario = point.scenario.clone();
        scenario.runs = scenario.runs.min(2);
        serde_json::to_string(&scenario).expect("a scenario is plain data")
    };
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

/// Checks what [`run`] would only find after loading: the recordings that a scenario names.
///
/// # Errors
/// [`Error::Trace`] or [`Error::Channel`].
pub fn check(loaded: &Loaded) -> Result<(), Error> {
    recordings::load(loaded).map(drop)
}
