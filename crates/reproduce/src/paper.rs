//! A paper's folder: what `paper.toml` and `published.csv` say.

use crate::check::{Check, PublishedRow};
use crate::figure::Figure;
use crate::folder::Folder;
use crate::measure::Edge;
use scenario::{Loaded, Scenario};
use serde::Deserialize;
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
