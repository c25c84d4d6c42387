//! `ranway run` and `ranway check`.

use crate::args::{RunArgs, ScenarioArgs};
use crate::dashboard::Runs;
use crate::failure::{Failure, warned};
use crate::out::{commit, counted, default_out, stem};
use crate::progress::Bar;
use crate::terminal::message;
use crate::{interrupt, reports, table};
use anyhow::anyhow;
use console::Term;
use record::Output;
use rnis::Record;
use scenario::{Loaded, Scenario};
use sim::reports::{NO_CELLS, Recording, add_addresses};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Takes the report on a UE, or what happened to it; the UE is given by its number.
type TakeReport<'a> = dyn Fn(u32, Record) + Sync + 'a;

/// What follows simulated runs, if anything does.
#[derive(Clone, Copy, Default)]
pub(crate) struct Follow<'a> {
    /// Called with the reports of the cells.
    pub(crate) reports: Option<&'a TakeReport<'a>>,
    /// The page that shows them.
    pub(crate) runs: Option<&'a Runs>,
}

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.scenario.source.file));
    let name = stem(&args.scenario.source.file);
    let recording = args.reports.as_deref().map(|path| record(&loaded, path, &out)).transpose()?;
    let report = |ue, mut record: Record| {
        add_addresses(&mut record, ue);
        if let Some(recording) = &recording {
            recording.lock().unwrap_or_else(PoisonError::into_inner).write(&record);
        }
    };
    let take = recording.as_ref().map(|_| &report as &TakeReport);
    let dashboard = args.dashboard.start("run", || sim::meta(&loaded), args.job.quiet, |_| {})?;
    let runs = dashboard.as_ref().map(|dashboard| Runs::new(dashboard, &loaded, sim::jobs(&loaded).len()));
    let follow = Follow { reports: take, runs: runs.as_ref() };
    let (results, out) = simulate(&loaded, &name, (args.job.jobs(), args.job.quiet), follow, &out)?;
    if let Some(dashboard) = dashboard {
        dashboard.end(&out);
    }
    if let Some(recording) = recording
        && results.finished > 0
    {
        let recording = recording.into_inner().unwrap_or_else(PoisonError::into_inner);
        recording.finish().map_err(|why| Failure::Failed(anyhow!(why)))?;
    }
    let width = table::width(&Term::stdout(), args.job.wide);
    let mut stdout = crate::terminal::stdout();
    if args.job.json {
        let timing = results.results.timing;
        let answer = serde_json::json!({ "out": out, "summary": results.results.summary(), "timing": timing });
        writeln!(stdout, "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.job.quiet {
        write!(stdout, "{}", table::summary(&results.results, width))?;
        writeln!(stdout, "report: {}", out.join("report.html").display())?;
    }
    drop(stdout);
    interrupted(&results)
}

/// Creates the recording of the reports of a scenario, which must be one run with cells.
fn record(loaded: &Loaded, path: &Path, out: &Path) -> Result<Mutex<Recording>, Failure> {
    let invalid = |why: &str| Failure::Invalid(why.to_owned());
    match loaded.points() {
        [point] if point.scenario.runs == 1 => match &point.scenario.radio {
            Some(_) => {
                reports::check(path, out)?;
                Ok(Mutex::new(Recording::create(path)?))
            }
            None => Err(invalid(NO_CELLS)),
        },
        _ => Err(invalid("--reports records one run: choose a point of the sweep with --set, and --runs 1")),
    }
}

pub(crate) fn check(args: &ScenarioArgs) -> Result<(), Failure> {
    let loaded = warned(Scenario::load_for_emulation(&args.source.file, &overrides(args), &scenario::read_file))?;
    sim::check(&loaded).map_err(wrong)?;
    let first = &loaded.points()[0].scenario;
    let flows: u32 = first.flows.iter().map(|f| f.count).sum();
    if flows == 0 {
        let links = first.links.len();
        writeln!(
            crate::terminal::stdout(),
            "{}: valid for `ranway emulate`: {links} links, no flows",
            args.source.file
        )?;
        return Ok(());
    }
    writeln!(
        crate::terminal::stdout(),
        "{}: valid. {} for {} of {} flows over {} links, {} of each",
        args.source.file,
        counted(loaded.points().len() as u64, "point"),
        first.duration,
        flows,
        first.links.len(),
        counted(first.runs.into(), "run"),
    )?;
    Ok(())
}

/// Reads a scenario with the overrides of the command line; prints its warnings to standard error.
pub(crate) fn load(args: &ScenarioArgs) -> Result<Loaded, Failure> {
    warned(Scenario::load(&args.source.file, &overrides(args), &scenario::read_file))
}

/// Returns the overrides of the command line.
pub(crate) fn overrides(args: &ScenarioArgs) -> Vec<String> {
    let mut set = args.source.overrides();
    set.extend(args.runs.map(|runs| format!("runs={runs}")));
    set
}

/// Runs a scenario and writes its results to `out`. After Ctrl-C, the results of completed runs are written, without
/// replacing complete results. Returns the outcome and the directory written to.
pub(crate) fn simulate(
    loaded: &Loaded,
    name: &str,
    (jobs, quiet): (usize, bool),
    follow: Follow<'_>,
    out: &Path,
) -> Result<(sim::Outcome, PathBuf), Failure> {
    let output = Output::create(out)?;
    let bar = Bar::new(name, quiet);
    let progress = |progress| {
        bar.show(progress);
        follow.runs.inspect(|runs| runs.show(progress));
    };
    let options = sim::Options {
        reports: follow.reports,
        watch: follow.runs.map(|runs| runs as &dyn sim::Watch),
        ..sim::Options::new(jobs, interrupt::flag(), &progress)
    };
    let outcome = sim::Batch::all(loaded).capturing_into(&output).run(&options).map_err(wrong)?;
    drop(bar);
    let place = write(&outcome, name, output, out)?;
    Ok((outcome, place))
}

/// Writes the results of the runs that have completed to `output`, without replacing complete results at `out`. Returns the
/// directory written to.
pub(crate) fn write(outcome: &sim::Outcome, name: &str, output: Output, out: &Path) -> Result<PathBuf, Failure> {
    if outcome.finished == 0 {
        message!("interrupted before any run of {name} had completed; no results were written");
        return Err(Failure::Interrupted);
    }
    let partial = outcome.finished < outcome.runs;
    outcome.results.write_to(&output)?;
    commit(output, partial, out)
}

/// Classifies what the simulator rejects: an error in the scenario or in a file that it names, unless the system failed.
pub(crate) fn wrong(error: sim::Error) -> Failure {
    match error {
        sim::Error::Trace { .. } | sim::Error::Channel { .. } => Failure::Invalid(error.to_string()),
        _ => error.into(),
    }
}

/// Prints how many runs had completed before the interruption.
pub(crate) fn interrupted(outcome: &sim::Outcome) -> Result<(), Failure> {
    if outcome.finished == outcome.runs {
        return Ok(());
    }
    message!("interrupted: the results are partial, {} of {} runs", outcome.finished, outcome.runs);
    Err(Failure::Interrupted)
}
