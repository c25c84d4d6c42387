//! `ranway reproduce`: papers' experiments, published and measured side by side.

use crate::args::ReproduceArgs;
use crate::run::{counted, simulate};
use crate::{Failure, show};
use record::Results;
use record::report;
use reproduce::{Experiment, Paper, Published, Row, Verdict};
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    let papers = reproduce::papers();
    let chosen = choose(&papers, &args.which)?;
    let mut rows = Vec::new();
    let mut figures = Vec::new();
    let mut results = Vec::new();
    let set: Vec<String> = args.runs.map(|runs| format!("runs={runs}")).into_iter().collect();
    for (paper, experiment) in chosen {
        let out = args.out.join(&paper.name).join(experiment.id());
        let quiet = args.job.quiet || args.job.json;
        let (these, result) = one(paper, experiment, &set, args.job.jobs, quiet, &out)?;
        if !quiet {
            print(paper, experiment, &these)?;
        }
        rows.extend(these);
        figures.extend(result.iter().flat_map(|result| reproduce::draw(paper, experiment, result)));
        results.extend(result);
    }
    let page = args.out.join("report.html");
    show::save(&page, &report::reproduction(&rows, &figures, &results))?;
    let mut stdout = std::io::stdout().lock();
    if args.job.json {
        writeln!(stdout, "{}", serde_json::to_string_pretty(&rows)?)?;
    } else if !args.job.quiet {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let (held, missed) = (count(Verdict::Held), count(Verdict::Missed));
        writeln!(stdout, "{held} held, {missed} missed, {} not possible yet", count(Verdict::NotPossible))?;
        writeln!(stdout, "report: {}", page.display())?;
    }
    Ok(())
}

/// Runs an experiment into `out` and compares; one that cannot be run yet gives its published rows only.
pub(crate) fn one(
    paper: &Paper,
    experiment: &Experiment,
    set: &[String],
    jobs: usize,
    quiet: bool,
    out: &Path,
) -> Result<(Vec<Row>, Option<Results>), Failure> {
    let loaded = experiment.load(set).map_err(|e| Failure::Wrong(e.to_string()))?;
    let Some(loaded) = loaded else { return Ok((reproduce::compare(paper, experiment, None), None)) };
    let name = format!("{}/{}", paper.name, experiment.id());
    let outcome = simulate(&loaded, &name, jobs, quiet, out)?;
    if outcome.finished < outcome.runs {
        // Half of the runs would give other numbers under the same name.
        eprintln!("interrupted: {} of {} has the results of {}", name, counted(outcome.runs, "run"), outcome.finished);
        return Err(Failure::Interrupted);
    }
    let rows = reproduce::compare(paper, experiment, Some(&outcome.results));
    Ok((rows, Some(outcome.results)))
}

/// Prints an experiment's rows.
pub(crate) fn print(paper: &Paper, experiment: &Experiment, rows: &[Row]) -> Result<(), Failure> {
    let floors = rows.iter().any(|row| row.floor.is_some());
    let heads = ["variant", "parameter", "metric", "unit", "published", "measured", "floor", "verdict"];
    let heads: Vec<&str> = heads.into_iter().filter(|&head| floors || head != "floor").collect();
    let mut table = show::table(&heads);
    let figure = |value: &Option<Published>, ci| match value {
        Some(Published::Number(value)) => with_ci(*value, ci),
        Some(Published::Text(text)) => text.clone(),
        None => String::new(),
    };
    for row in rows {
        let verdict = match row.verdict {
            Verdict::Held => "held",
            Verdict::Missed => "missed",
            Verdict::NotPossible => "not possible yet",
        };
        let floor = row.floor.map_or_else(String::new, |floor| format!("{floor:.3}"));
        let cells = [
            row.variant.clone(),
            row.parameter.clone(),
            row.metric.clone(),
            row.unit.clone(),
            figure(&row.published, row.published_ci),
            figure(&row.measured, row.ci),
            floor,
            row.why.as_ref().map_or_else(|| verdict.to_owned(), |why| format!("{verdict}: {why}")),
        ];
        table.add_row(cells.into_iter().enumerate().filter(|&(i, _)| floors || i != 6).map(|(_, cell)| cell));
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}/{}: {}\n{table}\n", paper.name, experiment.id(), experiment.about)?;
    Ok(())
}

fn with_ci(value: f64, ci: Option<f64>) -> String {
    ci.map_or_else(|| format!("{value:.2}"), |ci| format!("{value:.2} ± {ci:.2}"))
}

/// The experiments that `which` names: all of a paper, or one; everything if it names nothing.
pub(crate) fn choose<'a>(papers: &'a [Paper], which: &[String]) -> Result<Vec<(&'a Paper, &'a Experiment)>, Failure> {
    let all = || papers.iter().flat_map(|paper| paper.experiments.iter().map(move |e| (paper, e)));
    if which.is_empty() {
        return Ok(all().collect());
    }
    let mut chosen = Vec::new();
    for name in which {
        let matches =
            |paper: &Paper, e: &Experiment| *name == paper.name || *name == format!("{}/{}", paper.name, e.id());
        let before = chosen.len();
        chosen.extend(all().filter(|(paper, e)| matches(paper, e)));
        if chosen.len() == before {
            let names: Vec<String> = papers
                .iter()
                .flat_map(|p| {
                    [p.name.clone()].into_iter().chain(p.experiments.iter().map(|e| format!("{}/{}", p.name, e.id())))
                })
                .collect();
            return Err(Failure::Wrong(format!(
                "`{name}` is no paper or experiment here; there are {}",
                names.join(", ")
            )));
        }
    }
    Ok(chosen)
}
