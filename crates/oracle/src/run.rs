//! A case in both worlds.

use emulate::{Emulation, Finished, Options};
use record::{Lateness, Results};
use scenario::{Cc, Loaded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use units::Span;

/// By how much 1 % of the packets of a run may be late. The shortest round trip of the cases is 10 ms.
const BOUND: Span = Span::from_micros(500);
/// How often it is looked whether a run is over.
const LOOK: Duration = Duration::from_millis(20);

/// What came of a case.
pub struct Both {
    /// All points, simulated.
    pub simulated: Results,
    /// All points, over the emulated network and with the kernel's TCP, once a run.
    pub emulated: Vec<Results>,
    /// Runs of a point in which this machine was too late, with what was measured instead: the first that was on time
    /// after it, if one of three was.
    pub late: Vec<Lateness>,
    /// Those of `late` that stayed: what `emulated` has of a run of a point although it was too late.
    pub invalid: Vec<Lateness>,
}

/// Whether the kernel needs `mdcc` for it, which is not a part of it.
pub fn needs_mdcc(loaded: &Loaded) -> bool {
    let mut flows = loaded.points().iter().flat_map(|point| &point.scenario.flows);
    flows.any(|flow| matches!(flow.cc, Cc::Mdcc { .. }))
}

/// Runs each point of `loaded` in both worlds, `runs` times in each. `None` if `stop` was set meanwhile. `tell` hears of
/// each emulated run of a point that is over.
///
/// # Errors
/// The machine cannot emulate, or the scenario cannot be run.
pub fn run(loaded: &Loaded, runs: u32, stop: &AtomicBool, tell: &dyn Fn()) -> Result<Option<Both>, emulate::Error> {
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
            tell();
            match &mut all {
                Some(all) => all.tables.append(&one.tables),
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
/// The scenario cannot be run.
pub fn simulate(loaded: &Loaded, stop: &AtomicBool) -> Result<Results, sim::Error> {
    Ok(sim::run(loaded, &sim::Options { jobs: 0, stop, progress: &|_| {}, output: None })?.results)
}

/// One run of one point, with the kernel's TCP.
fn emulate(loaded: &Loaded, which: (u32, u32), stop: &AtomicBool) -> Result<Results, emulate::Error> {
    let options = Options { which: Some(which), kernel: true, bound: BOUND, ..Options::default() };
    let duration = loaded.points()[which.0 as usize].scenario.duration;
    let emulation = Emulation::start(loaded.clone(), options)?;
    while emulation.elapsed() < duration && !emulation.is_over() && !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
    let Finished { results, failures, .. } = emulation.finish()?;
    match failures.first() {
        Some(failure) => Err(emulate::Error::Missing(failure.clone())),
        None => Ok(results),
    }
}
