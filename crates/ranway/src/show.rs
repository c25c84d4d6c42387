//! Lists, built-in files, and reports of existing results.

use crate::args::{CompareArgs, ReportArgs, ShowArgs, TableArgs, TableForm};
use crate::table::{self, summary};
use crate::{failure::Failure, terminal};
use console::Term;
use record::{Means, Results, report};
use std::io::Write as _;
use std::path::Path;

/// Larger tables are sampled when a report is generated; a report shows fewer points still.
const MOST_ROWS: usize = 1_000_000;

pub(crate) fn list() -> Result<(), Failure> {
    let mut out = terminal::stdout();
    let width = 20;
    writeln!(out, "Scenarios (ranway run NAME):")?;
    for s in scenario::builtin::list() {
        writeln!(out, "  {:width$} {}", s.name, s.about)?;
    }
    writeln!(out, "\nPresets (include = [\"preset:NAME\"] in a scenario file):")?;
    for s in scenario::builtin::presets() {
        writeln!(out, "  {:width$} {}", s.name, s.about)?;
    }
    writeln!(out, "\nPapers (ranway reproduce PAPER[/EXPERIMENT]):")?;
    for paper in reproduce::papers() {
        writeln!(out, "  {:width$} {}", paper.name, paper.title)?;
        // A variant has the same experiments as its paper, which is listed before it.
        for experiment in paper.experiments.iter().filter(|_| paper.settings.is_empty()) {
            writeln!(out, "    {:width$} {}", experiment.id(), experiment.about)?;
        }
    }
    Ok(())
}

/// Prints a built-in file unchanged, including its comments.
pub(crate) fn show(args: &ShowArgs) -> Result<(), Failure> {
    // A scenario and a preset may have the same name.
    let preset = args.name.strip_prefix("preset:");
    let name = preset.unwrap_or(&args.name);
    let scenarios = if preset.is_some() { &[] } else { scenario::builtin::list() };
    let files = || scenarios.iter().chain(scenario::builtin::presets());
    let Some(file) = files().find(|file| file.name == name) else {
        let near = scenario::nearest(name, files().map(|file| file.name));
        let hint = near
            .map_or_else(|| "; `ranway list` shows all names".to_owned(), |near| format!("; did you mean `{near}`?"));
        return Err(Failure::Invalid(format!("unknown built-in scenario or preset `{name}`{hint}")));
    };
    write!(terminal::stdout(), "{}", file.text)?;
    Ok(())
}

pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let out = args.out.clone().unwrap_or_else(|| args.dir.join("report.html"));
    #[cfg(feature = "live")]
    if args.dir.is_dir()
        && let Some(page) = campaign::report_of(&args.dir).map_err(Failure::from)?
    {
        return write(&out, &page);
    }
    let results = read(&args.dir)?;
    write!(terminal::stdout(), "{}", summary(&results, table::width(&Term::stdout(), args.wide)))?;
    write(&out, &report::html(&results))
}

/// Prints or writes a table of means.
pub(crate) fn table(args: &TableArgs) -> Result<(), Failure> {
    let results = read(&args.dir)?;
    let means = Means::of(&results, &args.figures, args.against.clone()).map_err(Failure::Invalid)?;
    means.notes.iter().for_each(|note| terminal::message!("note: {note}"));
    let text = match args.format {
        TableForm::Csv => means.csv(),
        TableForm::Latex => means.latex(),
        TableForm::Text => {
            let width = table::width(&Term::stdout(), args.wide || args.out.is_some());
            table::means(&means, width)
        }
    };
    match &args.out {
        Some(out) => Ok(disk::write(out, text.as_bytes())?),
        None => Ok(write!(terminal::stdout(), "{text}")?),
    }
}

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let results = args.dirs.iter().map(|dir| read(dir)).collect::<Result<Vec<_>, _>>()?;
    let width = table::width(&Term::stdout(), args.wide);
    let mut out = terminal::stdout();
    for one in &results {
        write!(out, "{}", summary(one, width))?;
    }
    write(&args.out, &report::compare(&results))
}

/// Reads results; a directory without results is invalid input.
fn read(dir: &Path) -> Result<Results, Failure> {
    let (results, notes) = Results::read_within(dir, MOST_ROWS).map_err(|e| Failure::Invalid(e.to_string()))?;
    notes.iter().for_each(|note| terminal::message!("note: {note}"));
    Ok(results)
}

/// Writes a page and prints its path.
pub(crate) fn write(path: &Path, page: &str) -> Result<(), Failure> {
    save(path, page)?;
    writeln!(terminal::stdout(), "report: {}", path.display())?;
    Ok(())
}

/// Writes a page atomically.
pub(crate) fn save(path: &Path, page: &str) -> Result<(), Failure> {
    Ok(disk::write(path, page.as_bytes())?)
}
