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
    /// Marks and reasons of some rows. All other rows keep those of the paper.
    #[serde(default)]
    pub(crate) rows: Vec<Marked>,
}

/// A mark or a reason that a variant adds to rows of an experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marked {
    /// The experiment.
    experiment: String,
    /// The metrics of the rows. Default: all.
    #[serde(default)]
    metrics: Vec<String>,
    /// What was chosen by them. A row that the paper has as `fitted` or `given` keeps its mark.
    fitted: Option<String>,
    /// What is known about those that are missed, instead of the paper's reason.
    why: Option<String>,
}

impl Marked {
    /// Returns what is wrong with it in a paper with these experiments.
    pub(crate) fn fault(&self, experiments: &[Experiment]) -> Option<String> {
        let Some(experiment) = experiments.iter().find(|experiment| experiment.name == self.experiment) else {
            return Some(format!("unknown experiment `{}`", self.experiment));
        };
        let is_known = |metric: &String| experiment.checks.iter().any(|check| check.metric == *metric);
        if let Some(unknown) = self.metrics.iter().find(|metric| !is_known(metric)) {
            return Some(format!("experiment `{}` has no check of the metric `{unknown}`", self.experiment));
        }
        let texts = [("fitted", &self.fitted), ("why", &self.why)];
        if texts.iter().all(|(_, text)| text.is_none()) {
            return Some(format!("those of experiment `{}` have neither `fitted` nor `why`", self.experiment));
        }
        let empty = texts.iter().find(|(_, text)| text.as_ref().is_some_and(|text| text.trim().is_empty()));
        empty.map(|(key, _)| format!("`{key}` of experiment `{}` is empty, but must say why", self.experiment))
    }

    fn names(&self, experiment: &Experiment, check: &Check) -> bool {
        self.experiment == experiment.name && (self.metrics.is_empty() || self.metrics.contains(&check.metric))
    }
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
    ///
    /// # Errors
    /// Two marks or two reasons of a row, or a mark for rows that have one.
    pub(crate) fn variant(&self, variant: &Variant) -> Result<Paper, String> {
        let mut paper = self.clone();
        paper.name = format!("{}@{}", self.name, variant.name);
        paper.title = format!("{}: {}", self.title, variant.about);
        let runs = |name: &String| variant.experiments.is_empty() || variant.experiments.contains(name);
        paper.experiments.retain(|experiment| runs(&experiment.name));
        paper.published.retain(|row| runs(&row.experiment));
        for rows in &variant.rows {
            let unmarked = |check: &Check| check.fitted.is_none() && check.given.is_none();
            let mut checks =
                self.experiments.iter().flat_map(|e| e.checks.iter().filter(move |check| rows.names(e, check)));
            if rows.fitted.is_some() && !checks.any(unmarked) {
                let all = "every row that it names is `fitted` or `given` already";
                return Err(format!("`rows` of experiment `{}`: `fitted` has no effect: {all}", rows.experiment));
            }
        }
        for experiment in &mut paper.experiments {
            let mut checks = core::mem::take(&mut experiment.checks);
            for check in &mut checks {
                let of: Vec<&Marked> = variant.rows.iter().filter(|rows| rows.names(experiment, check)).collect();
                let one = |key: &str, text: fn(&Marked) -> Option<&String>| {
                    let mut texts = of.iter().filter_map(|rows| text(rows));
                    let first = texts.next().cloned();
                    let twice = texts.next().map(|_| format!("`rows` give {} two texts as `{key}`", check.row()));
                    twice.map_or(Ok(first), Err)
                };
                let (fitted, why) =
                    (one("fitted", |rows| rows.fitted.as_ref())?, one("why", |rows| rows.why.as_ref())?);
                if check.given.is_none() {
                    check.fitted = check.fitted.take().or(fitted);
                }
                check.why = why.or_else(|| check.why.take());
            }
            experiment.checks = checks;
        }
        let settings = variant.settings();
        let mut paper = settings.first().map_or(paper.clone(), |first| paper.with(first));
        paper.settings = settings;
        Ok(paper)
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
    pub(crate) set: Vec<String>,
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

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = "
title = 'a'
authors = 'b'
[[experiments]]
name = 'one'
about = ''
[[experiments.checks]]
variant = 'v'
parameter = ''
metric = 'strength'
measure = { kind = 'jain' }
given = 'the distances'
why = 'far'
[[experiments.checks]]
variant = 'v'
parameter = ''
metric = 'time'
measure = { kind = 'jain' }
fitted = 'the buffer'
[[experiments.checks]]
variant = 'v'
parameter = ''
metric = 'rate'
measure = { kind = 'jain' }
why = 'slow'
[[variants]]
name = 'x'
about = ''
";

    /// The `fitted`, `given` and `why` of each check in the variant, or what is wrong with its rows.
    fn marked(rows: &str) -> Result<Vec<[Option<String>; 3]>, String> {
        let file: PaperFile = toml::from_str(&format!("{PAPER}{rows}")).unwrap();
        let variant = &file.variants[0];
        if let Some(fault) = variant.rows.iter().find_map(|rows| rows.fault(&file.experiments)) {
            return Err(fault);
        }
        let paper = Paper {
            name: "p".into(),
            title: file.title,
            authors: file.authors,
            experiments: file.experiments,
            published: Vec::new(),
            settings: Vec::new(),
        };
        let checks = paper.variant(variant)?.experiments.remove(0).checks;
        Ok(checks.into_iter().map(|check| [check.fitted, check.given, check.why]).collect())
    }

    #[test]
    fn a_variant_marks_the_rows_that_it_names_and_keeps_the_marks_and_reasons_of_the_paper() {
        let text = |text: &str| Some(text.to_owned());
        let paper =
            [[None, text("the distances"), text("far")], [text("the buffer"), None, None], [None, None, text("slow")]];
        assert_eq!(marked("").unwrap(), paper);
        let all = marked("[[variants.rows]]\nexperiment = 'one'\nfitted = 'the loss'").unwrap();
        assert_eq!(all, [paper[0].clone(), paper[1].clone(), [text("the loss"), None, text("slow")]]);
        let one = "[[variants.rows]]\nexperiment = 'one'\nmetrics = ['time']\nwhy = 'late'";
        assert_eq!(
            marked(one).unwrap(),
            [paper[0].clone(), [text("the buffer"), None, text("late")], paper[2].clone()]
        );
    }

    #[test]
    fn what_a_variant_says_of_rows_that_it_cannot_mark_is_an_error() {
        let rows = |keys: &str| format!("[[variants.rows]]\n{keys}\n");
        for (text, hint) in [
            (rows("experiment = 'two'\nwhy = 'a'"), "unknown experiment `two`"),
            (rows("experiment = 'one'\nmetrics = ['age']\nwhy = 'a'"), "no check of the metric `age`"),
            (rows("experiment = 'one'"), "neither `fitted` nor `why`"),
            (rows("experiment = 'one'\nwhy = ' '"), "`why` of experiment `one` is empty"),
            (rows("experiment = 'one'\nmetrics = ['strength', 'time']\nfitted = 'a'"), "`fitted` has no effect"),
            (rows("experiment = 'one'\nwhy = 'a'").repeat(2), "two texts as `why`"),
        ] {
            let said = marked(&text).expect_err("it is wrong");
            assert!(said.contains(hint), "{text}: {said}");
        }
    }
}
