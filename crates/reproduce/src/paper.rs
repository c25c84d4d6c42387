//! A paper's folder: what `paper.toml` and `published.csv` say.

use crate::figure::Figure;
use crate::folder::Folder;
use crate::measure::{Edge, Floor, Measure};
use record::Point;
use scenario::{Loaded, Scenario};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Of a variant: every combination of what the paper does not state. The first is what the experiments run with.
    pub settings: Vec<Setting>,
}

/// A variant of a paper, as `paper.toml` describes it: the same rows and scenarios with something laid on them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// Its name; the command writes it `PAPER@NAME`.
    pub(crate) name: String,
    /// One line about it.
    pub(crate) about: String,
    /// What is laid on each scenario, as `--set` takes it.
    #[serde(default)]
    set: Vec<String>,
    /// What the paper does not state.
    #[serde(default)]
    pub(crate) unstated: Vec<Unstated>,
    /// By experiment: what is known of its missed rows, instead of what their checks say.
    #[serde(default)]
    pub(crate) why: BTreeMap<String, String>,
}

/// Something that a paper does not state, and what it may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unstated {
    pub(crate) what: String,
    pub(crate) choices: Vec<Choice>,
}

/// One of the things that it may be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    name: String,
    /// What is laid on each scenario, as `--set` takes it.
    #[serde(default)]
    set: Vec<String>,
    /// The edge of the second to which fill-up times count.
    counted: Option<Edge>,
}

/// A choice for each thing that a paper does not state; it holds for all of its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// What is not stated, and the choice.
    pub choices: Vec<(String, String)>,
    /// What is laid on each scenario. Settings that share it share their runs too.
    pub set: Vec<String>,
    counted: Option<Edge>,
}

impl Variant {
    /// Returns all combinations of its choices, the first choices first.
    fn settings(&self) -> Vec<Setting> {
        let mut all = vec![Setting { set: self.set.clone(), ..Setting::default() }];
        for unstated in &self.unstated {
            let with = |setting: &Setting, choice: &Choice| Setting {
                choices: [&setting.choices[..], &[(unstated.what.clone(), choice.name.clone())]].concat(),
                set: [&setting.set[..], &choice.set].concat(),
                counted: choice.counted.or(setting.counted),
            };
            all = all.iter().flat_map(|s| unstated.choices.iter().map(move |choice| with(s, choice))).collect();
        }
        all
    }
}

impl Paper {
    /// Returns the variant of this paper with its first setting.
    pub(crate) fn variant(&self, variant: &Variant) -> Paper {
        let mut paper = self.clone();
        paper.name = format!("{}@{}", self.name, variant.name);
        paper.title = format!("{}: {}", self.title, variant.about);
        for experiment in &mut paper.experiments {
            let why = variant.why.get(&experiment.name);
            experiment.checks.iter_mut().for_each(|check| check.why = why.cloned());
        }
        let settings = variant.settings();
        let mut paper = settings.first().map_or(paper.clone(), |first| paper.with(first));
        paper.settings = settings;
        paper
    }

    /// Returns this paper with everything run and measured in `setting`.
    pub fn with(&self, setting: &Setting) -> Paper {
        let mut paper = self.clone();
        for experiment in &mut paper.experiments {
            experiment.set.clone_from(&setting.set);
            for check in &mut experiment.checks {
                check.measure = check.measure.counted_to(setting.counted.unwrap_or_default());
            }
        }
        paper
    }
}

/// `paper.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaperFile {
    pub(crate) title: String,
    pub(crate) authors: String,
    pub(crate) experiments: Vec<Experiment>,
    #[serde(default)]
    pub(crate) variants: Vec<Variant>,
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
    pub(crate) scenario: Option<String>,
    /// Which figures of a run answer which rows.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// What is drawn of it.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The paper's folder.
    #[serde(skip)]
    pub(crate) folder: Folder,
    /// What a variant lays on its scenario.
    #[serde(skip)]
    set: Vec<String>,
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
    /// Its line in `published.csv`.
    pub(crate) line: u64,
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

    /// The row that it names, for people.
    pub(crate) fn row(&self) -> String {
        format!("`{}`, `{}`, `{}`", self.variant, self.parameter, self.metric)
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
    /// Those of the scenario. A paper that was opened has loaded it once, so only an override or a changed file causes them.
    pub fn load(&self, overrides: &[String]) -> Result<Option<Loaded>, scenario::Error> {
        let Some(file) = &self.scenario else { return Ok(None) };
        let overrides = [&self.set[..], overrides].concat();
        Scenario::load(&self.folder.path(file), &overrides, &|path: &str| self.folder.read(path)).map(Some)
    }
}
