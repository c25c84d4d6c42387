//! Runs a case both simulated and with the kernel.

use emulate::{Emulation, Finished, Options};
use record::{Lateness, Results};
use scenario::{Cc, Loaded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::Span;

/// Bound on the lateness of 99 % of a run's packets. The shortest round trip of the cases is 10 ms.
const BOUND: Span = Span::from_micros(500);
/// Interval between checks whether a run is over.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The results of a case.
pub struct Both {
    /// All points, simulated.
    pub simulated: Results,
    /// All points, run over the emulated network with the kernel's TCP, with one element per run.
    pub emulated: Vec<Results>,
    /// Runs of a point in which packets were late. A run is attempted up to three times, and `emulated` has the first
    /// valid attempt, or else the last.
    pub late: Vec<Lateness>,
    /// The lateness of runs of which all attempts were late: `emulated` has an invalid one for them.
    pub invalid: Vec<Lateness>,
}

/// Returns whether the case needs `mdcc`, which is not part of the kernel.
pub fn needs_mdcc(loaded: &Loaded) -> bool {
    let mut flows = loaded.points().iter().flat_map(|point| &point.scenario.flows);
    flows.any(|flow| matches!(flow.cc, Cc::Mdcc { .. }))
}

/// Runs each point of `loaded` both simulated and with the kernel, `runs` times each. Returns `None` if `stop` was set
/// in the meantime. `on_run` is called after each emulated run of a point.
///
/// # Errors
/// The machine cannot emulate, or the scenario cannot be run.
pub fn run(loaded: &Loaded, runs: u32, stop: &AtomicBool, on_run: &dyn Fn()) -> Result<Option<Both>, emulate::Error> {
    let simulated = simulate(loaded, stop)?;
    let (mut emulated, mut late, mut invalid) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..runs {
        let mut all: Option<Results> = None;
        for point in 0..loaded.points().len() as u32 {
            let mut one = emulate(loaded, (point, run), stop)?;
            for _ in 0..2 {
                match one.timing.lateness.filter(|lateness| !lateness.valid) {
                    Some(lateness) => late.push(lateness),
                    None => break,
                }
                one = emulate(loaded, (point, run), stop)?;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            invalid.extend(one.timing.lateness.filter(|lateness| !lateness.valid));
            on_run();
            match &mut all {
                Some(all) => all.tables.append(one.tables),
                None => all = Some(one),
            }
        }
        emulated.extend(all);
    }
    Ok(Some(Both { simulated, emulated, late, invalid }))
}

/// Simulates each point of `loaded`.
///
/// # Errors
/// The scenario is invalid.
pub fn simulate(loaded: &Loaded, stop: &AtomicBool) -> Result<Results, sim::Error> {
    Ok(sim::run(loaded, &sim::Options::new(0, stop, &|_| {}))?.results)
}

/// Runs one point once with the kernel's TCP.
fn emulate(loaded: &Loaded, which: (u32, u32), stop: &AtomicBool) -> Result<Results, emulate::Error> {
    let options = Options { which: Some(which), kernel: true, bound: BOUND, ..Options::default() };
    let duration = loaded.points()[which.0 as usize].scenario.duration;
    let emulation = Emulation::start(loaded.clone(), options)?;
    while emulation.elapsed() < duration && !emulation.is_over() && !stop.load(Ordering::Relaxed) {
        thread::sleep(POLL_INTERVAL);
    }
    let Finished { results, failures, .. } = emulation.finish()?;
    match failures.first() {
        Some(failure) => Err(emulate::Error::Missing(failure.clone())),
        None => Ok(results),
    }
}
