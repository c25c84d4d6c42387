//! The data model of a paper's folder: `paper.toml` and `published.csv`.

use crate::check::{Check, PublishedRow};
use crate::figure::Figure;
use crate::folder::Folder;
use crate::measure::Edge;
use scenario::{Loaded, Scenario};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A paper: its published rows, and the experiments that can be run.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Its folder, which is its name on the command line.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Its experiments.
    pub experiments: Vec<Experiment>,
    /// The published rows.
    pub published: Vec<PublishedRow>,
    /// For a variant: every combination of the parameters that the paper leaves open. The experiments run with the
    /// first.
    pub settings: Vec<Setting>,
}

/// A variant of a paper, as described in `paper.toml`: the same rows and scenarios with overrides.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// Its name; written `PAPER@NAME` on the command line.
    pub(crate) name: String,
    /// A one-line description.
    pub(crate) about: String,
    /// The experiments that it runs. Default: all.
    #[serde(default)]
    pub(crate) experiments: Vec<String>,
    /// Overrides of each scenario, as given to `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// Parameters that the paper leaves open.
    #[serde(default)]
    pub(crate) unstated: Vec<Unstated>,
    /// For each experiment: what is known about its missed rows, instead of the reasons given in its checks.
    #[serde(default)]
    pub(crate) why: BTreeMap<String, String>,
    /// For experiments by whose rows a choice was made: what was chosen.
    #[serde(default)]
    pub(crate) fitted: BTreeMap<String, String>,
}

/// A parameter that a paper leaves open, and its possible values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unstated {
    pub(crate) what: String,
    pub(crate) choices: Vec<Choice>,
}

/// A possible value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    name: String,
    /// Overrides of each scenario, as given to `--set`.
    #[serde(default)]
    set: Vec<String>,
    /// The edge of the second at which fill-up times end.
    counted: Option<Edge>,
}

/// A choice for each open parameter, used for all rows of the paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// The open parameters and their values.
    pub choices: Vec<(String, String)>,
    /// Overrides of each scenario. Settings with equal overrides share their runs.
    pub set: Vec<String>,
    counted: Option<Edge>,
}

impl Variant {
    /// Returns all combinations of its choices, in order.
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
        let runs = |name: &String| variant.experiments.is_empty() || variant.experiments.contains(name);
        paper.experiments.retain(|experiment| runs(&experiment.name));
        paper.published.retain(|row| runs(&row.experiment));
        for experiment in &mut paper.experiments {
            let (why, fitted) = (variant.why.get(&experiment.name), variant.fitted.get(&experiment.name));
            for check in &mut experiment.checks {
                check.why = why.cloned();
                if fitted.is_some() {
                    (check.fitted, check.given) = (fitted.cloned(), None);
                }
            }
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
    /// Its name, as in the published rows.
    pub name: String,
    /// A one-line description.
    pub about: String,
    /// An earlier experiment whose checks and figures it shares, besides its own.
    pub(crate) like: Option<String>,
    /// What is known about missed rows, by metric, unless the check says it.
    #[serde(default)]
    pub(crate) why: BTreeMap<String, String>,
    /// Its scenario's file; none if it cannot be run yet.
    pub(crate) scenario: Option<String>,
    /// The checks that compare results with rows.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// The figures to draw.
    #[serde(default)]
    pub figures: Vec<Figure>,
    /// The paper's folder.
    #[serde(skip)]
    pub(crate) folder: Folder,
    /// Overrides by the variant.
    #[serde(skip)]
    set: Vec<String>,
}

impl Experiment {
    /// Returns its name on the command line.
    pub fn id(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Loads its scenario with `overrides`; `None` if it cannot be run yet.
    ///
    /// # Errors
    /// Those of the scenario. Opening a paper loads it once, so only an override or a changed file causes them.
    pub fn load(&self, overrides: &[String]) -> Result<Option<Loaded>, scenario::Error> {
        let Some(file) = &self.scenario else { return Ok(None) };
        let overrides = [&self.set[..], overrides].concat();
        Scenario::load(&self.folder.path(file), &overrides, &|path: &str| self.folder.read(path)).map(Some)
    }
}
