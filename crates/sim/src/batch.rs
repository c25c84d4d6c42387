//! Many runs: every point of a sweep, every repetition, on all cores.

// Wall-clock and processor time are reported beside the results, never inside them.
#![allow(clippy::disallowed_methods)]

use crate::build::{self, flows, recordings};
use crate::error::Error;
use crate::rows::{RunId, meta};
use crate::world::Done;
use rayon::prelude::*;
use record::{Output, Partial, Results, Tables, Timing};
use scenario::Loaded;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use units::Span;

/// How to run.
pub struct Options<'a> {
    /// Threads; 0 means one for each core.
    pub jobs: usize,
    /// Set to stop: runs that have not finished are given up, the others are kept.
    pub stop: &'a AtomicBool,
    /// Told now and then how far it is.
    pub progress: &'a (dyn Fn(Progress) + Sync),
    /// Where captures are written to, if the scenario asks for any.
    pub output: Option<&'a Output>,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Runs that have finished.
    pub runs_done: u64,
    /// Runs in all.
    pub runs: u64,
    /// The share of all simulated time that is behind (0 to 1).
    pub share: f64,
}

/// What came of it.
pub struct Outcome {
    /// The results of the runs that finished.
    pub results: Results,
    /// How many of them finished.
    pub finished: u64,
    /// How many there were to do.
    pub runs: u64,
}

/// Runs every repetition of every point of `loaded`.
///
/// The tables hold the runs in the order of (point, run), whichever finished first, so that the same scenario and seed
/// give the same tables with any number of threads.
///
/// # Errors
/// [`Error::Trace`] for a trace that cannot be read, [`Error::Record`] if a capture cannot be written.
pub fn run(loaded: &Loaded, options: &Options) -> Result<Outcome, Error> {
    let points = loaded.points();
    let recordings = recordings::load(loaded)?;
    let jobs: Vec<(u32, u32)> =
        points.iter().enumerate().flat_map(|(p, point)| (0..point.scenario.runs).map(move |r| (p as u32, r))).collect();
    let total: u64 = jobs.iter().map(|&(p, _)| points[p as usize].scenario.duration.as_nanos() / 1000).sum();
    let (behind, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let tell = |add: Span| {
        let behind = behind.fetch_add(add.as_nanos() / 1000, Ordering::Relaxed) + add.as_nanos() / 1000;
        let share = behind as f64 / total.max(1) as f64;
        (options.progress)(Progress { runs_done: done.load(Ordering::Relaxed), runs: jobs.len() as u64, share });
    };
    let one = |&(p, r): &(u32, u32)| -> Result<Option<Done>, Error> {
        if options.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let id = RunId { point: p, run: r };
        let world = build::world(&points[p as usize].scenario, id, &recordings, options.output, false)?;
        let outcome = world.run(options.stop, &tell)?;
        if outcome.is_some() {
            done.fetch_add(1, Ordering::Relaxed);
            tell(Span::ZERO);
        }
        Ok(outcome)
    };
    let start = (Instant::now(), cpu_time::ProcessTime::now());
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(options.jobs).build().map_err(|e| Error::Threads(e.to_string()))?;
    let outcomes: Vec<Option<Done>> = pool.install(|| jobs.par_iter().map(one).collect::<Result<_, _>>())?;

    let mut tables = Tables::default();
    let mut timing = Timing { threads: pool.current_num_threads() as u32, ..Timing::default() };
    let mut finished = 0;
    for outcome in outcomes.into_iter().flatten() {
        finished += 1;
        tables.append(&outcome.tables);
        timing.events += outcome.events;
        timing.packets += outcome.packets;
        timing.simulated_s += outcome.simulated.as_secs_f64();
    }
    timing.wall_s = start.0.elapsed().as_secs_f64();
    timing.cpu_s = start.1.elapsed().as_secs_f64();
    let mut meta = meta(loaded);
    let of = jobs.len() as u64;
    meta.partial = (finished < of).then_some(Partial { finished, of });
    Ok(Outcome { results: Results { meta, timing, tables }, finished, runs: of })
}

/// Checks what [`run`] would find out after loading: the recordings that a scenario names, and that its applications can
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
