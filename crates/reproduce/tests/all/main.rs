//! The papers' claims, on short runs of the scenarios that answer them at full length.

#![allow(missing_docs, reason = "a test binary")]

mod backlog;
mod mdcc;
mod rapid;
mod uplink;

use record::Results;
use reproduce::{Drawn, Experiment, Paper, Published, Row, compare, draw, papers};
use std::sync::atomic::AtomicBool;

fn paper(name: &str) -> Paper {
    papers().into_iter().find(|paper| paper.name == name).expect("the paper is there")
}

fn experiment<'a>(paper: &'a Paper, name: &str) -> &'a Experiment {
    paper.experiments.iter().find(|experiment| experiment.name == name).expect("the experiment is there")
}

/// Runs an experiment with `set` laid on its scenario.
fn run<S: AsRef<str>>(experiment: &Experiment, set: &[S], threads: usize) -> Results {
    let set: Vec<String> = set.iter().map(|one| one.as_ref().to_owned()).collect();
    let loaded = experiment.load(&set).unwrap_or_else(|e| panic!("{e}")).expect("it has a scenario");
    let stop = AtomicBool::new(false);
    sim::run(&loaded, &sim::Options::new(threads, &stop, &|_| {})).unwrap_or_else(|e| panic!("{e}")).results
}

/// Compares and draws, and asserts that each figure shows what was measured.
fn judge(paper: &Paper, experiment: &Experiment, results: &Results) -> (Vec<Row>, Vec<Drawn>) {
    let figures = draw(paper, experiment, results);
    assert_eq!(figures.len(), experiment.figures.len());
    for figure in &figures {
        assert!(!figure.lines.is_empty() && !figure.title.is_empty(), "{figure:?}");
        for line in &figure.lines {
            // Without a loss nothing is sent again.
            let is_empty = !line.y.iter().flatten().any(|y| y.is_finite());
            assert!(!is_empty || line.label.ends_with("sent again"), "{}: {}", figure.title, line.label);
            assert_eq!(line.x.len(), line.y.len(), "{}: {}", figure.title, line.label);
        }
    }
    (compare(paper, experiment, Some(results)), figures)
}

/// The row about `variant` and `parameter` whose metric begins with `metric`.
fn row<'a>(rows: &'a [Row], variant: &str, parameter: &str, metric: &str) -> &'a Row {
    let is_it = |row: &&Row| row.variant == variant && row.parameter == parameter && row.metric.starts_with(metric);
    rows.iter().find(is_it).unwrap_or_else(|| panic!("{variant} {parameter} {metric}"))
}

/// What was measured for it.
fn measured(rows: &[Row], variant: &str, parameter: &str, metric: &str) -> f64 {
    match row(rows, variant, parameter, metric) {
        Row { measured: Some(Published::Number(value)), .. } => *value,
        row => panic!("{row:?}"),
    }
}
