//! The files of `papers/`.

use crate::Measure;
use include_dir::{Dir, include_dir};
use record::Point;
use scenario::{Loaded, Scenario};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

static PAPERS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// A paper: what it published, and what of it can be run.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Its folder, by which the command names it.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Its experiments.
    pub experiments: Vec<Experiment>,
    /// The published rows.
    pub published: Vec<PublishedRow>,
}

/// `paper.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperFile {
    title: String,
    authors: String,
    experiments: Vec<Experiment>,
}

/// An experiment of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, as the published rows write it.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Its scenario's file; none if nothing of it can be run yet.
    scenario: Option<String>,
    /// Which figures of a run answer which rows.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// The paper's folder.
    #[serde(skip)]
    paper: String,
}

/// Which figure of a run answers which published row.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    variant: String,
    parameter: String,
    metric: String,
    /// The point of the scenario's sweep.
    #[serde(default)]
    point: BTreeMap<String, Key>,
    /// The figure.
    pub measure: Measure,
    /// Share of the published value within which ours counts as the same.
    pub tolerance: Option<f64>,
    /// If it is missed: why.
    pub why: Option<String>,
}

/// A value of a swept parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Key {
    Number(f64),
    Text(String),
}

/// A row of `published.csv`.
#[derive(Clone, Debug)]
pub struct PublishedRow {
    /// The experiment.
    pub experiment: String,
    /// Which of the compared things.
    pub variant: String,
    /// Under which conditions.
    pub parameter: String,
    /// What was measured, or a claim in words.
    pub metric: String,
    /// The unit.
    pub unit: String,
    /// The value, if it is not a claim in words.
    pub value: Option<Published>,
    /// Half the width of the interval.
    pub ci95: Option<f64>,
    /// Where in the paper.
    pub place: String,
}

/// A published value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Published {
    /// A number.
    Number(f64),
    /// A range or a bound.
    Text(String),
}

impl Check {
    /// Whether it is about this row.
    pub fn answers(&self, row: &PublishedRow) -> bool {
        self.variant == row.variant && self.parameter == row.parameter && self.metric == row.metric
    }

    /// Whether it is about this point of the sweep.
    pub fn is_at(&self, point: &Point) -> bool {
        self.point.iter().all(|(key, value)| match (value, point.values.get(key)) {
            (Key::Number(wanted), Some(value)) => value.as_f64() == Some(*wanted),
            (Key::Text(wanted), Some(value)) => value.as_str() == Some(wanted),
            (_, None) => false,
        })
    }
}

impl Experiment {
    /// Its name, as the command writes it.
    pub fn id(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its scenario with `overrides` laid on it; `None` if nothing of it can be run yet.
    ///
    /// # Errors
    /// Those of the scenario, which only a wrong override can cause.
    pub fn load(&self, overrides: &[String]) -> Result<Option<Loaded>, scenario::Error> {
        let Some(file) = &self.scenario else { return Ok(None) };
        let read = |path: &str| {
            let file = PAPERS.get_file(path).and_then(|f| f.contents_utf8());
            file.map(str::to_owned).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        Scenario::load(&format!("{}/{file}", self.paper), overrides, &read).map(Some)
    }
}

/// All papers, in the order of their names.
///
/// # Panics
/// If a file of `papers/` is wrong: they are part of the program, and a test reads them all.
pub fn papers() -> Vec<Paper> {
    let mut papers: Vec<Paper> = PAPERS.dirs().map(|dir| paper(dir)).collect();
    papers.sort_by(|a, b| a.name.cmp(&b.name));
    papers
}

fn paper(dir: &Dir) -> Paper {
    let name = dir.path().to_string_lossy().into_owned();
    let read = |file: &str| {
        let path = format!("{name}/{file}");
        let found = PAPERS.get_file(&path).and_then(|f| f.contents_utf8());
        found.unwrap_or_else(|| panic!("papers/{path} is missing"))
    };
    let file: PaperFile =
        toml::from_str(read("paper.toml")).unwrap_or_else(|e| panic!("papers/{name}/paper.toml: {e}"));
    let mut experiments = file.experiments;
    for experiment in &mut experiments {
        experiment.paper.clone_from(&name);
    }
    Paper {
        title: file.title,
        authors: file.authors,
        experiments,
        published: published(&name, read("published.csv")),
        name,
    }
}

fn published(name: &str, text: &str) -> Vec<PublishedRow> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows = reader.records().map(|row| {
        let row = row.unwrap_or_else(|e| panic!("papers/{name}/published.csv: {e}"));
        let field = |i: usize| row.get(i).unwrap_or_default().to_owned();
        let value = match field(5) {
            text if text.is_empty() => None,
            text => Some(text.parse().map_or_else(|_| Published::Text(text), Published::Number)),
        };
        PublishedRow {
            experiment: field(0),
            variant: field(1),
            parameter: field(2),
            metric: field(3),
            unit: field(4),
            value,
            ci95: field(6).parse().ok(),
            place: field(7),
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_answers_one_published_row_at_one_point_of_its_scenario() {
        for paper in papers() {
            for experiment in &paper.experiments {
                let rows: Vec<_> = paper.published.iter().filter(|r| r.experiment == experiment.name).collect();
                assert!(!rows.is_empty(), "{}/{} has no published row", paper.name, experiment.name);
                let loaded = experiment.load(&[]).unwrap_or_else(|e| panic!("{e}"));
                for check in &experiment.checks {
                    let answered = rows.iter().filter(|row| check.answers(row)).count();
                    assert_eq!(answered, 1, "{}/{}: {check:?}", paper.name, experiment.name);
                    let points = loaded.as_ref().expect("a check needs a scenario").points();
                    let at = points.iter().filter(|p| check.is_at(&Point { values: p.values() })).count();
                    assert_eq!(at, 1, "{}/{}: {check:?}", paper.name, experiment.name);
                }
            }
        }
    }

    #[test]
    fn every_published_row_belongs_to_an_experiment() {
        for paper in papers() {
            for row in &paper.published {
                let known = paper.experiments.iter().any(|e| e.name == row.experiment);
                assert!(known, "{}: {} is in no experiment", paper.name, row.experiment);
            }
        }
    }
}
