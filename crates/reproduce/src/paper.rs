//! The files of `papers/`.

use crate::figure::Figure;
use crate::measure::{Floor, Measure};
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
    /// What is drawn of it.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The paper's folder.
    #[serde(skip)]
    paper: String,
}

/// Which figure of a run answers which published row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    variant: String,
    parameter: String,
    metric: String,
    /// The points of the scenario's sweep: of several, the mean, unless the row is a claim about each of them.
    #[serde(default)]
    point: At,
    /// What differs at the point that it is compared with.
    pub(crate) against: Option<At>,
    /// How it is compared.
    #[serde(default, rename = "as")]
    pub(crate) form: Form,
    /// The figure.
    pub measure: Measure,
    /// Share of the published value within which ours counts as the same.
    pub tolerance: Option<f64>,
    /// Of a claim: what has to be true, as `>=0.9`.
    expect: Option<String>,
    /// Of a claim: the swept keys along which the figure rises,
    #[serde(default)]
    rising: Vec<String>,
    /// or falls.
    #[serde(default)]
    falling: Vec<String>,
    /// The least that is physically possible.
    pub floor: Option<Floor>,
    /// If it is missed: why.
    pub why: Option<String>,
}

/// How a figure is compared with that of another point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The one over the other.
    #[default]
    Ratio,
    /// By how many per cent it is more.
    Gain,
    /// By how many per cent it is less.
    Reduction,
    /// What is left of it.
    Difference,
}

/// A claim about figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Claim {
    /// True of each.
    Bound(Bound),
    /// The least and the largest.
    Range(f64, f64),
    /// How it changes.
    Trend { along: Vec<String>, rises: bool },
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Of the absolute value.
    Within(f64),
}

/// Points of a sweep, by the values of some of its keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct At(BTreeMap<String, Key>);

/// A value of a swept parameter, or any of several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Key {
    Bool(bool),
    Number(f64),
    Text(String),
    Any(Vec<Key>),
}

impl Key {
    fn is(&self, value: &serde_json::Value) -> bool {
        match self {
            Key::Bool(wanted) => value.as_bool() == Some(*wanted),
            Key::Number(wanted) => value.as_f64() == Some(*wanted),
            Key::Text(wanted) => value.as_str() == Some(wanted),
            Key::Any(any) => any.iter().any(|key| key.is(value)),
        }
    }
}

impl At {
    /// Whether `point` is one of them.
    pub(crate) fn is(&self, point: &Point) -> bool {
        self.0.iter().all(|(key, wanted)| point.values.get(key).is_some_and(|value| wanted.is(value)))
    }

    /// Whether `other` is what `point` becomes with these values.
    pub(crate) fn leads(&self, point: &Point, other: &Point) -> bool {
        let same = |(key, value): (&String, &serde_json::Value)| {
            self.0.contains_key(key) || other.values.get(key) == Some(value)
        };
        self.is(other) && point.values.iter().all(same)
    }
}

impl Claim {
    /// `>=0.9`, `<=5`, `±0.03`, `22.4..111.18`.
    fn parse(text: &str) -> Option<Claim> {
        if let Some((from, to)) = text.split_once("..") {
            return Some(Claim::Range(from.parse().ok()?, to.parse().ok()?));
        }
        let bound = |sign: &str| text.strip_prefix(sign).and_then(|bound| bound.parse().ok());
        let found = bound(">=").map(Bound::AtLeast).or_else(|| bound("<=").map(Bound::AtMost));
        found.or_else(|| bound("±").map(Bound::Within)).map(Claim::Bound)
    }
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
    /// One that answers no row.
    pub(crate) fn of(measure: Measure, against: Option<At>, form: Form) -> Check {
        Check { measure, against, form, ..Check::default() }
    }

    /// Whether it is about this row.
    pub fn answers(&self, row: &PublishedRow) -> bool {
        self.variant == row.variant && self.parameter == row.parameter && self.metric == row.metric
    }

    /// Whether it is about this point of the sweep.
    pub fn is_at(&self, point: &Point) -> bool {
        self.point.is(point)
    }

    /// The claim to be checked, if the row is one.
    pub(crate) fn claim_of(&self, row: &PublishedRow) -> Option<Claim> {
        match &row.value {
            Some(Published::Number(_)) => None,
            Some(Published::Text(text)) => Claim::parse(text),
            None if !self.rising.is_empty() => Some(Claim::Trend { along: self.rising.clone(), rises: true }),
            None if !self.falling.is_empty() => Some(Claim::Trend { along: self.falling.clone(), rises: false }),
            None => self.expect.as_deref().and_then(Claim::parse),
        }
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
            let file = PAPERS.get_file(without_parents(path)).and_then(|f| f.contents_utf8());
            file.map(str::to_owned).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        Scenario::load(&format!("{}/{file}", self.paper), overrides, &read).map(Some)
    }
}

/// `a/../b` is `b`: one paper's scenario may build on another's.
fn without_parents(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
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
    fn every_check_answers_one_published_row_at_points_of_its_scenario() {
        for paper in papers() {
            for experiment in &paper.experiments {
                let rows: Vec<_> = paper.published.iter().filter(|r| r.experiment == experiment.name).collect();
                assert!(!rows.is_empty(), "{}/{} has no published row", paper.name, experiment.name);
                let loaded = experiment.load(&[]).unwrap_or_else(|e| panic!("{e}"));
                let points: Vec<Point> =
                    loaded.iter().flat_map(scenario::Loaded::points).map(|p| Point { values: p.values() }).collect();
                for check in &experiment.checks {
                    let answered: Vec<_> = rows.iter().filter(|row| check.answers(row)).collect();
                    assert_eq!(answered.len(), 1, "{}/{}: {check:?}", paper.name, experiment.name);
                    let number = matches!(answered[0].value, Some(Published::Number(_)));
                    assert!(
                        number || check.claim_of(answered[0]).is_some(),
                        "{}/{}: {check:?}",
                        paper.name,
                        experiment.name
                    );
                    let at: Vec<&Point> = points.iter().filter(|p| check.is_at(p)).collect();
                    assert!(!at.is_empty(), "{}/{}: {check:?}", paper.name, experiment.name);
                    for point in at {
                        let others = |against: &At| points.iter().filter(|other| against.leads(point, other)).count();
                        assert_eq!(
                            check.against.as_ref().map_or(1, others),
                            1,
                            "{}/{}: {check:?}",
                            paper.name,
                            experiment.name
                        );
                    }
                }
                for figure in &experiment.figures {
                    assert!(figure.fits(&points), "{}/{}: {figure:?}", paper.name, experiment.name);
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
