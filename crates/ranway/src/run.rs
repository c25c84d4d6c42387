//! `ranway run` and `ranway check`.

use crate::args::{RunArgs, ScenarioArgs};
use crate::progress::Bar;
use crate::{Failure, interrupt, show};
use record::Output;
use scenario::{Loaded, Scenario};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&args.scenario.source.file));
    let name = stem(&args.scenario.source.file);
    let results = simulate(&loaded, &name, args.job.jobs, args.job.quiet, &out)?;
    let mut stdout = std::io::stdout().lock();
    if args.job.json {
        let timing = results.results.timing;
        let answer = serde_json::json!({ "out": out, "summary": results.results.summary(), "timing": timing });
        writeln!(stdout, "{}", serde_json::to_string_pretty(&answer)?)?;
    } else if !args.job.quiet {
        write!(stdout, "{}", show::summary(&results.results))?;
        writeln!(stdout, "report: {}", out.join("report.html").display())?;
    }
    interrupted(&results)
}

pub(crate) fn check(args: &ScenarioArgs) -> Result<(), Failure> {
    let loaded = warned(Scenario::load_for_emulation(&args.source.file, &overrides(args), &scenario::read_file))?;
    let first = &loaded.points()[0].scenario;
    let flows: u32 = first.flows.iter().map(|f| f.count).sum();
    if flows == 0 {
        let links = first.links.len();
        writeln!(std::io::stdout(), "{}: right for `ranway emulate`: {links} links, no flows", args.source.file)?;
        return Ok(());
    }
    writeln!(
        std::io::stdout(),
        "{}: right. {} for {} of {} flows over {} links, {} of each",
        args.source.file,
        counted(loaded.points().len() as u64, "point"),
        first.duration,
        flows,
        first.links.len(),
        counted(first.runs.into(), "run"),
    )?;
    Ok(())
}

/// Reads a scenario with what the command line says of it; its warnings go to standard error.
pub(crate) fn load(args: &ScenarioArgs) -> Result<Loaded, Failure> {
    warned(Scenario::load(&args.source.file, &overrides(args), &scenario::read_file))
}

/// What the command line says of a scenario.
fn overrides(args: &ScenarioArgs) -> Vec<String> {
    let mut set = args.source.overrides();
    set.extend(args.runs.map(|runs| format!("runs={runs}")));
    set
}

/// A scenario that was read; its warnings go to standard error.
pub(crate) fn warned(loaded: Result<Loaded, scenario::Error>) -> Result<Loaded, Failure> {
    let loaded = loaded.map_err(|e| Failure::Wrong(e.to_string()))?;
    for warning in loaded.warnings() {
        eprintln!("warning: {warning}");
    }
    Ok(loaded)
}

/// Runs a scenario and writes its results to `out`. After Ctrl-C these are the results of the runs that had finished.
pub(crate) fn simulate(
    loaded: &Loaded,
    name: &str,
    jobs: usize,
    quiet: bool,
    out: &Path,
) -> Result<sim::Outcome, Failure> {
    let output = Output::create(out)?;
    let bar = Bar::new(name, quiet);
    let options =
        sim::Options { jobs, stop: interrupt::flag(), progress: &|progress| bar.show(progress), output: Some(&output) };
    let outcome = sim::run(loaded, &options).map_err(|e| match e {
        sim::Error::Trace { .. } | sim::Error::Channel { .. } | sim::Error::Flow { .. } => {
            Failure::Wrong(e.to_string())
        }
        _ => e.into(),
    })?;
    drop(bar);
    if outcome.finished == 0 {
        return Err(Failure::Interrupted);
    }
    outcome.results.write_to(&output)?;
    output.commit()?;
    Ok(outcome)
}

/// Says what an interrupted batch left.
pub(crate) fn interrupted(outcome: &sim::Outcome) -> Result<(), Failure> {
    if outcome.finished == outcome.runs {
        return Ok(());
    }
    eprintln!("interrupted: the results are those of {} of {} runs", outcome.finished, outcome.runs);
    Err(Failure::Interrupted)
}

pub(crate) fn default_out(file: &str) -> PathBuf {
    Path::new("ranway-out").join(stem(file))
}

pub(crate) fn stem(file: &str) -> String {
    Path::new(file).file_stem().map_or_else(|| "scenario".to_owned(), |s| s.to_string_lossy().into_owned())
}

pub(crate) fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
