//! `ranway demo`: congestion controls over a cellular trace, and a paper's table, in one report.

use crate::args::DemoArgs;
use crate::reproduce::{Task, choose, papers, reproduce};
use crate::run::{Follow, interrupted, simulate};
use crate::{failure::Failure, show, table};
use console::Term;
use record::report;
use scenario::Scenario;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The built-in scenario run over the trace.
const SCENARIO: &str = "trace";
/// The trace preferred in a folder with several: an LTE downlink in a moving car.
const FAVOURITE: &str = "ATT-LTE-driving-2016.down";
const TABLE: &str = "mdcc-towards/wireless-loss";

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    let trace = match &args.traces {
        Some(path) => Some(recorded(path)?),
        None => None,
    };
    let mut out = crate::terminal::stdout();
    let mut set = vec!["sweep.cc=[\"cubic\", \"bbr\", \"new-reno\", \"vegas\"]".to_owned()];
    match &trace {
        Some(path) => {
            writeln!(out, "1. Four congestion controls over the recorded link {}", path.display())?;
            set.push(format!("dumbbell.rate={{ kind = \"trace\", file = {:?} }}", path.display().to_string()));
        }
        None => {
            writeln!(
                out,
                "1. Four congestion controls over a synthetic cellular link (use a recorded one with --traces)"
            )?;
        }
    }
    let loaded = Scenario::load(SCENARIO, &set, &scenario::read_file).map_err(|e| Failure::Invalid(e.to_string()))?;
    let (controls, _) =
        simulate(&loaded, "congestion controls", (0, false), Follow::default(), &args.out.join("congestion-controls"))?;
    let width = table::width(&Term::stdout(), args.wide);
    writeln!(out, "{}", table::summary(&controls.results, width))?;
    interrupted(&controls)?;

    writeln!(out, "2. A paper's table: published and measured")?;
    let papers = papers(&[])?;
    let which = choose(&papers, &[TABLE.to_owned()])?;
    let (paper, experiment) = which[0];
    drop(out);
    let task = Task::new(paper, experiment, &[], args.out.join("loss-table"))?;
    let table = reproduce(&[task], 0, false, args.wide)?;
    let results: Vec<_> = std::iter::once(controls.results).chain(table.results).collect();
    show::write(&args.out.join("report.html"), &report::reproduction(&table.rows, &table.figures, &results))
}

/// Returns the trace at `path`; in a folder, the preferred trace or the first one.
fn recorded(path: &Path) -> Result<PathBuf, Failure> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let invalid = |what: &str| Failure::Invalid(format!("--traces {}: {what}", path.display()));
    if !path.is_dir() {
        return Err(invalid("no such file or folder; without --traces, a synthetic link is used"));
    }
    if path.join(FAVOURITE).is_file() {
        return Ok(path.join(FAVOURITE));
    }
    let mut traces = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        if file.extension().is_some_and(|e| e == "down") {
            traces.push(file);
        }
    }
    traces.into_iter().min().ok_or_else(|| invalid("the folder has no file `*.down`; give the path of a trace file"))
}
