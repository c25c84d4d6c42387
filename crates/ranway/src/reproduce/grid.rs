//! `ranway reproduce --grid`: a variant in every setting of the parameters that its paper leaves open.

use crate::args::ReproduceArgs;
use crate::progress::Bar;
use crate::{failure::Failure, interrupt, show};
use reproduce::{Experiment, Paper, Published, Row, Setting, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// All rows of one setting.
#[derive(Serialize)]
struct Cell {
    /// The open parameters and their values.
    setting: Vec<(String, String)>,
    rows: Vec<Row>,
}

/// Runs the chosen experiments in every setting of their papers. Writes `grid.md` (tables) and `grid.json` (every row of
/// every setting) to the paper's directory.
pub(super) fn run(args: &ReproduceArgs, chosen: &[(&Paper, &Experiment)]) -> Result<(), Failure> {
    let mut papers: Vec<(&Paper, Vec<&Experiment>)> = Vec::new();
    for &(paper, experiment) in chosen {
        match papers.iter_mut().find(|(other, _)| other.name == paper.name) {
            Some((_, experiments)) => experiments.push(experiment),
            None => papers.push((paper, vec![experiment])),
        }
    }
    papers.retain(|(paper, _)| !args.which.is_empty() || !paper.settings.is_empty());
    if let Some((paper, _)) = papers.iter().find(|(paper, _)| paper.settings.is_empty()) {
        let why = "--grid needs a variant, which lists the parameters that its paper leaves open";
        return Err(Failure::Invalid(format!(
            "`{}`: {why}; `ranway list` shows the variants (PAPER@VARIANT)",
            paper.name
        )));
    }
    let mut all = BTreeMap::new();
    for (paper, experiments) in papers {
        let cells = cells(args, paper, &experiments)?;
        let text = tables(paper, &cells);
        let out = args.out.join(&paper.name);
        show::save(&out.join("grid.md"), &text)?;
        show::save(&out.join("grid.json"), &serde_json::to_string_pretty(&cells)?)?;
        if !args.job.json && !args.job.quiet {
            writeln!(crate::terminal::stdout(), "{text}\ntables: {}", out.join("grid.md").display())?;
        }
        all.insert(paper.name.clone(), cells);
    }
    if args.job.json {
        writeln!(crate::terminal::stdout(), "{}", serde_json::to_string_pretty(&all)?)?;
    }
    Ok(())
}

fn cells(args: &ReproduceArgs, paper: &Paper, experiments: &[&Experiment]) -> Result<Vec<Cell>, Failure> {
    let set: Vec<String> = args.runs.map(|runs| format!("runs={runs}")).into_iter().collect();
    let cell = |setting: &Setting| Cell { setting: setting.choices.clone(), rows: Vec::new() };
    let mut cells: Vec<Cell> = paper.settings.iter().map(cell).collect();
    for experiment in experiments {
        for (first, setting) in paper.settings.iter().enumerate() {
            // Settings that differ only in how values are counted share their runs.
            if paper.settings[..first].iter().any(|earlier| earlier.set == setting.set) {
                continue;
            }
            let names: Vec<&str> = setting.choices.iter().map(|(_, choice)| choice.as_str()).collect();
            let name = format!("{}/{} ({})", paper.name, experiment.id(), names.join(", "));
            let same = paper.settings.iter().zip(&mut cells).filter(|(other, _)| other.set == setting.set);
            let results = simulate(args, paper, experiment, (setting, &set), &name)?;
            for (setting, cell) in same {
                let paper = paper.with(setting);
                let here = paper.experiments.iter().find(|e| e.name == experiment.name).expect("the paper has it");
                cell.rows.extend(reproduce::compare(&paper, here, results.as_ref()));
            }
        }
    }
    Ok(cells)
}

/// Runs an experiment in one setting. Writes no results: only the rows matter.
fn simulate(
    args: &ReproduceArgs,
    paper: &Paper,
    experiment: &Experiment,
    (setting, set): (&Setting, &[String]),
    name: &str,
) -> Result<Option<record::Results>, Failure> {
    let paper = paper.with(setting);
    let here = paper.experiments.iter().find(|e| e.name == experiment.name).expect("the paper has it");
    let Some(loaded) = here.load(set).map_err(|e| Failure::Invalid(e.to_string()))? else { return Ok(None) };
    let bar = Bar::new(name, args.job.quiet || args.job.json);
    let progress = |progress| bar.show(progress);
    let options = sim::Options::new(args.job.jobs(), interrupt::flag(), &progress);
    let outcome = sim::run(&loaded, &options)?;
    if outcome.finished < outcome.runs {
        return Err(Failure::Interrupted);
    }
    Ok(Some(outcome.results))
}

/// Formats the tables of `grid.md`: how many rows hold in each setting, and in how many settings each row holds.
fn tables(paper: &Paper, cells: &[Cell]) -> String {
    let mut text = String::new();
    let experiments: Vec<&str> = paper
        .experiments
        .iter()
        .map(|e| e.name.as_str())
        .filter(|name| cells[0].rows.iter().any(|r| r.experiment == *name))
        .collect();
    let held = |cell: &Cell, of: &dyn Fn(&&Row) -> bool| {
        let rows = cell.rows.iter().filter(of);
        let (held, all) =
            rows.fold((0, 0), |(held, all), row| (held + u32::from(row.verdict == Verdict::Held), all + 1));
        format!("{held} of {all}")
    };
    let whats: Vec<&str> = cells[0].setting.iter().map(|(what, _)| what.as_str()).collect();
    let _ = writeln!(text, "| {} | {} | all rows |", whats.join(" | "), experiments.join(" | "));
    let _ = writeln!(text, "|{}{}", " --- |".repeat(whats.len()), " ---: |".repeat(experiments.len() + 1));
    for cell in cells {
        let choices: Vec<&str> = cell.setting.iter().map(|(_, choice)| choice.as_str()).collect();
        let counts: Vec<String> = experiments.iter().map(|name| held(cell, &|row| row.experiment == *name)).collect();
        let _ = writeln!(text, "| {} | {} | {} |", choices.join(" | "), counts.join(" | "), held(cell, &|_| true));
    }
    let _ = writeln!(
        text,
        "\n| row | unit | published | measured, min to max | held in |\n| --- | --- | ---: | ---: | ---: |"
    );
    for (i, row) in cells[0].rows.iter().enumerate() {
        let all: Vec<&Row> = cells.iter().map(|cell| &cell.rows[i]).collect();
        let published = match &row.published {
            Some(Published::Number(value)) => format!("{value}"),
            Some(Published::Text(text)) => text.clone(),
            None => String::new(),
        };
        let measured = all.iter().filter_map(|row| match row.measured {
            Some(Published::Number(value)) => Some(value),
            _ => None,
        });
        let (least, most) = measured.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let range = if least <= most { format!("{least:.2} to {most:.2}") } else { String::new() };
        let held = all.iter().filter(|row| row.verdict == Verdict::Held).count();
        let _ = writeln!(
            text,
            "| {}, {}, {}: {} | {} | {published} | {range} | {held} of {} |",
            row.experiment,
            row.variant,
            row.parameter,
            row.metric,
            row.unit,
            cells.len()
        );
    }
    text
}
