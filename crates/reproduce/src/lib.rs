//! Papers' experiments: run, and printed beside what was published.
//!
//! `papers/` is part of the program. [`papers`] reads it, [`Experiment::load`] gives the scenario to run, and
//! [`compare`] puts the results beside the published rows. `papers/README.md` explains the files and the verdicts.

mod measure;
mod paper;

pub use measure::Measure;
pub use paper::{Check, Experiment, Paper, Published, papers};

use record::{Results, Stat};
use serde::Serialize;

/// Within this share of a published value a measured one counts as the same, unless the check says otherwise.
const TOLERANCE: f64 = 0.10;

/// What became of a published row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within the larger of the published interval and the tolerance.
    Held,
    /// Not so.
    Missed,
    /// Nothing here can measure it yet.
    #[serde(rename = "not possible yet")]
    NotPossible,
}

/// A published row beside what we measured. The fields are the keys of `ranway reproduce --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The paper's folder.
    pub paper: String,
    /// The experiment.
    pub experiment: String,
    /// Which of the compared things.
    pub variant: String,
    /// Under which conditions.
    pub parameter: String,
    /// What was measured; for a claim in words, the claim.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The published value; a text where the paper gives a range or a bound, null for a claim in words.
    pub published: Option<Published>,
    /// Half the width of the published interval.
    pub published_ci: Option<f64>,
    /// Our mean over the runs.
    pub measured: Option<f64>,
    /// Half the width of our 95 % confidence interval.
    pub ci: Option<f64>,
    /// What became of it.
    pub verdict: Verdict,
    /// For a missed one: what we know about why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// An experiment's published rows, those that `results` answers with their measured values.
pub fn compare(paper: &Paper, experiment: &Experiment, results: Option<&Results>) -> Vec<Row> {
    let published = paper.published.iter().filter(|row| row.experiment == experiment.name);
    published
        .map(|row| {
            let check = experiment.checks.iter().find(|check| check.answers(row));
            let measured = check.zip(results).and_then(|(check, results)| measure(check, results));
            let (verdict, why) = match (check, measured, &row.value) {
                (Some(check), Some(stat), Some(Published::Number(value))) => {
                    let margin = row.ci95.unwrap_or(0.0).max(check.tolerance.unwrap_or(TOLERANCE) * value.abs());
                    let held = (stat.mean - value).abs() <= margin;
                    if held { (Verdict::Held, None) } else { (Verdict::Missed, Some(why(check))) }
                }
                (Some(check), None, _) if results.is_some() => (Verdict::Missed, Some(why(check))),
                _ => (Verdict::NotPossible, None),
            };
            Row {
                paper: paper.name.clone(),
                experiment: row.experiment.clone(),
                variant: row.variant.clone(),
                parameter: row.parameter.clone(),
                metric: row.metric.clone(),
                unit: row.unit.clone(),
                published: row.value.clone(),
                published_ci: row.ci95,
                measured: measured.map(|stat| stat.mean),
                ci: measured.and_then(|stat| stat.ci95),
                verdict,
                why,
            }
        })
        .collect()
}

/// A check's figure over the runs of its point.
fn measure(check: &Check, results: &Results) -> Option<Stat> {
    let point = results.meta.points.iter().position(|point| check.is_at(point))? as u32;
    let runs = results.meta.runs;
    let values: Vec<f64> = (0..runs).filter_map(|run| check.measure.of(results, point, run)).collect();
    // A run without a value (a link that never filled) must not make the others look better.
    (values.len() == runs as usize).then(|| Stat::of(values)).flatten()
}

fn why(check: &Check) -> String {
    check.why.clone().unwrap_or_else(|| "not explained yet".to_owned())
}
