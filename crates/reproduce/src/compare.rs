//! Compares measured values with published ones.

use crate::check::{Bound, Check, Claim, Form, Published, PublishedRow};
use crate::data::Data;
use crate::measure::Measure;
use crate::paper::{Experiment, Paper};
use crate::points::At;
use crate::study::{Beside, Estimate, ORDER, Tests};
use record::{Results, Stat};
use serde::Serialize;

/// Relative deviation within which measured and published values count as equal, unless the check sets another.
const TOLERANCE: f64 = 0.10;
/// The same for the ratio of two measured values.
const RATIO_TOLERANCE: f64 = 0.20;

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within the larger of the published interval and the tolerance; for a claim, the measurements satisfy it.
    Held,
    /// Outside those limits, or the claim is not satisfied.
    Missed,
    /// Ranway cannot measure it yet.
    #[serde(rename = "not possible yet")]
    NotPossible,
}

/// A published row and our measurement. The fields are the keys of `ranway reproduce --json`.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Row {
    /// The paper's folder.
    pub paper: String,
    /// The experiment.
    pub experiment: String,
    /// The system that was compared.
    pub variant: String,
    /// The conditions.
    pub parameter: String,
    /// The metric; for a claim in words, the claim.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The published value; a string if the paper gives a range or a bound, null for a claim in words.
    pub published: Option<Published>,
    /// Half the width of the published interval.
    pub published_ci: Option<f64>,
    /// Our mean over the runs; a string if the row covers several points.
    pub measured: Option<Published>,
    /// Half the width of our 95 % confidence interval.
    pub ci: Option<f64>,
    /// The physical lower bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub floor: Option<f64>,
    /// The outcome.
    pub verdict: Verdict,
    /// Whether a parameter of the scenario was chosen by this row, which then is no prediction.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub fitted: bool,
    /// For a missed row: what is known about the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub why: Option<String>,
}

/// The number of rows with each verdict. Fitted rows are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Predictions that hold.
    pub held: usize,
    /// Predictions that do not.
    pub missed: usize,
    /// Rows that cannot be measured yet.
    pub not_possible: usize,
    /// Rows by which a parameter was chosen.
    pub fitted: usize,
    /// Those of them that hold.
    pub fitted_held: usize,
}

impl Counts {
    /// Counts rows.
    pub fn of(rows: &[Row]) -> Counts {
        let mut counts = Counts::default();
        for row in rows {
            match row.verdict {
                verdict if row.fitted => {
                    counts.fitted += 1;
                    counts.fitted_held += usize::from(verdict == Verdict::Held);
                }
                Verdict::Held => counts.held += 1,
                Verdict::Missed => counts.missed += 1,
                Verdict::NotPossible => counts.not_possible += 1,
            }
        }
        counts
    }
}

impl core::fmt::Display for Counts {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let Counts { held, missed, not_possible, fitted, fitted_held } = self;
        write!(f, "{held} held, {missed} missed, {not_possible} not possible yet")?;
        if *fitted > 0 {
            write!(f, "; not counted: {fitted} fitted, of which {fitted_held} held")?;
        }
        Ok(())
    }
}

/// Returns an experiment's published rows, with measured values where `results` has them.
pub fn compare(paper: &Paper, experiment: &Experiment, results: Option<&Results>) -> Vec<Row> {
    let data = results.map(Data::new);
    let published = paper.published.iter().filter(|row| row.experiment == experiment.name);
    published.map(|row| beside(paper, experiment, row, data.as_ref())).collect()
}

fn beside(paper: &Paper, experiment: &Experiment, row: &PublishedRow, data: Option<&Data>) -> Row {
    let check = experiment.checks.iter().find(|check| check.answers(row));
    let answer = check.zip(data).map(|(check, data)| answer(check, row, data));
    let (measured, ci, verdict) = match answer {
        None => (None, None, Verdict::NotPossible),
        Some(Answer { measured, ci, held }) => (measured, ci, if held { Verdict::Held } else { Verdict::Missed }),
    };
    let floor = check.and_then(|check| check.floor).map(|floor| floor.seconds());
    let impossible = matches!((&row.value, floor), (Some(Published::Number(value)), Some(floor)) if *value < floor);
    let why = check.filter(|_| verdict == Verdict::Missed).map(|check| {
        let unknown = if measured.is_none() { "the runs have no such value" } else { "not explained yet" };
        let known = check.why.clone().unwrap_or_else(|| unknown.to_owned());
        if impossible { format!("the published value is below the physical lower bound; {known}") } else { known }
    });
    Row {
        paper: paper.name.clone(),
        experiment: row.experiment.clone(),
        variant: row.variant.clone(),
        parameter: row.parameter.clone(),
        metric: row.metric.clone(),
        unit: row.unit.clone(),
        published: row.value.clone(),
        published_ci: row.ci95,
        measured,
        ci,
        floor,
        verdict,
        fitted: check.is_some_and(|check| check.fitted),
        why,
    }
}

/// What the results say about a row.
struct Answer {
    measured: Option<Published>,
    ci: Option<f64>,
    held: bool,
}

fn answer(check: &Check, row: &PublishedRow, data: &Data) -> Answer {
    let results = data.results;
    let points: Vec<u32> =
        (0..).zip(&results.meta.points).filter(|(_, point)| check.is_at(point)).map(|(i, _)| i).collect();
    let stats: Option<Vec<Stat>> = points.iter().map(|&point| check.figure(data, point)).collect();
    // A run without a value (such as a link that never filled) must not improve the mean of the others.
    let Some(stats) = stats.filter(|stats| !stats.is_empty()) else {
        return Answer { measured: None, ci: None, held: false };
    };
    let means: Vec<f64> = stats.iter().map(|stat| stat.mean).collect();
    let (least, most) = means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), &x| (a.min(x), b.max(x)));
    // Avoids the minus sign of a value that rounds to zero.
    let short = |x: f64| (x * 100.0).round() / 100.0 + 0.0;
    let several = || Published::Text(format!("{:.2}..{:.2}", short(least), short(most)));
    if let Some(claim) = check.claim_of(row) {
        let held = match &claim {
            Claim::Bound(bound) => {
                means.iter().all(|&mean| bound.holds(mean)) && points.iter().all(|&at| check.orders(data, at, *bound))
            }
            Claim::Range(from, to) => {
                check.is_same(least, *from, None, RATIO_TOLERANCE) && check.is_same(most, *to, None, RATIO_TOLERANCE)
            }
            Claim::Trend { along, rises } => follows(results, &points, &means, along, *rises),
        };
        let (measured, ci) = match stats.as_slice() {
            [one] => (Published::Number(one.mean), one.ci95),
            _ => (several(), None),
        };
        return Answer { measured: Some(measured), ci, held };
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let ci = if stats.len() == 1 { stats[0].ci95 } else { None };
    let held = match row.value {
        Some(Published::Number(value)) => check.is_same(mean, value, row.ci95, TOLERANCE),
        _ => false,
    };
    Answer { measured: Some(Published::Number(mean)), ci, held }
}

/// Returns whether the value rises (or falls) along each of `along`, from value to value in the order of the sweep,
/// with all other keys equal.
fn follows(results: &Results, points: &[u32], means: &[f64], along: &[String], rises: bool) -> bool {
    let values = |point: u32| &results.meta.points[point as usize].values;
    along.iter().all(|key| {
        (0..points.len()).all(|i| {
            // The next point that differs only in this key.
            let next = (i + 1..points.len()).find(|&j| {
                let (a, b) = (values(points[i]), values(points[j]));
                a.iter().all(|(k, v)| (k == key) != (b.get(k) == Some(v)))
            });
            next.is_none_or(|j| if rises { means[j] > means[i] } else { means[j] < means[i] })
        })
    })
}

impl Check {
    /// Returns the value at a point, over the runs.
    pub(crate) fn figure(&self, data: &Data, point: u32) -> Option<Stat> {
        let results = data.results;
        if let Measure::Tests(tests) = &self.measure {
            return self.estimate(tests, data, point).map(|estimate| estimate.stat());
        }
        let runs = 0..results.meta.runs;
        let Some(against) = &self.against else {
            let values: Option<Vec<f64>> = runs.map(|run| self.measure.of(results, point, run)).collect();
            return Stat::of(values?);
        };
        let other = reference(results, point, against)?;
        let pairs: Option<Vec<(f64, f64)>> = runs.map(|run| self.measure.of_both(results, point, other, run)).collect();
        self.form.of(&pairs?)
    }

    /// Returns the value of a measure over tests at a point, compared with the reference if there is one.
    fn estimate(&self, tests: &Tests, data: &Data, point: u32) -> Option<Estimate> {
        let Some(against) = &self.against else { return tests.estimate(data.study(), point, None) };
        let form = |here, there| self.form.of_two(here, there);
        let beside = Beside { point: reference(data.results, point, against)?, form: &form };
        tests.estimate(data.study(), point, Some(&beside))
    }

    /// Returns whether enough resamples satisfy a bound that states an order of tests; true of any other bound.
    fn orders(&self, data: &Data, point: u32, bound: Bound) -> bool {
        let Measure::Tests(tests) = &self.measure else { return true };
        let is_order = tests.is_order() || self.against.is_some();
        if !is_order || matches!(bound, Bound::Within(_) | Bound::Between(..)) {
            return true;
        }
        let estimate = self.estimate(tests, data, point);
        estimate.is_some_and(|estimate| estimate.share(|value| bound.holds(value)) >= ORDER)
    }

    /// Returns whether a measured value equals the published one within the tolerance.
    fn is_same(&self, measured: f64, published: f64, ci95: Option<f64>, tolerance: f64) -> bool {
        if self.against.is_some() && self.form.is_ratio() {
            let (ours, theirs) = (self.form.ratio(measured), self.form.ratio(published));
            let margin = self.tolerance.unwrap_or(RATIO_TOLERANCE) * theirs.abs();
            let within = (ours - theirs).abs() <= margin || ci95.is_some_and(|ci| (measured - published).abs() <= ci);
            let same_side = (ours - 1.0) * (theirs - 1.0) > 0.0 || theirs == 1.0;
            return within && same_side;
        }
        let margin = ci95.unwrap_or(0.0).max(self.tolerance.unwrap_or(tolerance) * published.abs());
        (measured - published).abs() <= margin
    }
}

/// Returns the point that a check compares `point` with.
fn reference(results: &Results, point: u32, against: &At) -> Option<u32> {
    let here = &results.meta.points[point as usize];
    results.meta.points.iter().position(|other| against.leads(here, other)).map(|other| other as u32)
}

impl Form {
    /// Compares a value with another one; there is no ratio to 0.
    fn of_two(self, here: f64, there: f64) -> Option<f64> {
        match self {
            Form::Difference => Some(here - there),
            _ => (there != 0.0).then(|| self.figure(here / there)),
        }
    }

    /// Compares the first value of each pair with the second.
    pub(crate) fn of(self, pairs: &[(f64, f64)]) -> Option<Stat> {
        if self == Form::Difference {
            return Stat::of(pairs.iter().map(|(a, b)| a - b));
        }
        let n = pairs.len() as f64;
        let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), pair| (a + pair.0 / n, b + pair.1 / n));
        if b == 0.0 {
            return None;
        }
        // The ratio of the means; its interval is computed by linearisation, in which the common variation of a pair
        // cancels.
        let ratio = a / b;
        let linear = Stat::of(pairs.iter().map(|(x, y)| ratio + (x - ratio * y) / b))?;
        let (low, high) = (self.figure(linear.min), self.figure(linear.max));
        Some(Stat {
            mean: self.figure(ratio),
            ci95: linear.ci95.map(|ci| ci * (self.figure(1.0) - self.figure(0.0)).abs()),
            min: low.min(high),
            max: low.max(high),
            ..linear
        })
    }

    fn is_ratio(self) -> bool {
        matches!(self, Form::Ratio | Form::Gain | Form::Reduction)
    }

    /// Converts a ratio to this form.
    fn figure(self, ratio: f64) -> f64 {
        match self {
            Form::Ratio | Form::Difference => ratio,
            Form::Gain => (ratio - 1.0) * 100.0,
            Form::Reduction => (1.0 - ratio) * 100.0,
        }
    }

    /// Inverts [`Form::figure`].
    fn ratio(self, figure: f64) -> f64 {
        match self {
            Form::Ratio | Form::Difference => figure,
            Form::Gain => 1.0 + figure / 100.0,
            Form::Reduction => 1.0 - figure / 100.0,
        }
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
            Bound::Within(bound) => value.abs() <= bound,
            Bound::Between(from, to) => (from..=to).contains(&value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_variation_does_not_widen_the_interval_of_a_ratio() {
        // Both vary by a factor of two from run to run, always by the same factor.
        let stat = Form::Gain.of(&[(15.0, 10.0), (30.0, 20.0), (22.5, 15.0)]).unwrap();
        assert!((stat.mean - 50.0).abs() < 1e-9 && stat.ci95.unwrap() < 1e-9, "{stat:?}");
        // (2 + 4) / (1 + 1) = 3: residuals -1 and +1 over a mean of 1; t(1) = 12.706, over the root of 2.
        let stat = Form::Ratio.of(&[(2.0, 1.0), (4.0, 1.0)]).unwrap();
        assert!((stat.mean - 3.0).abs() < 1e-9 && (stat.ci95.unwrap() - 12.706).abs() < 1e-2, "{stat:?}");
        let stat = Form::Reduction.of(&[(1.0, 4.0), (1.0, 4.0)]).unwrap();
        assert!((stat.mean - 75.0).abs() < 1e-9, "{stat:?}");
    }

    #[test]
    fn fitted_rows_are_counted_apart() {
        let text = r#"
            name = "one"
            about = "one"
            checks = [
                { variant = "a", parameter = "", metric = "m", measure = { kind = "jain" }, expect = ">=0.9", fitted = true },
                { variant = "b", parameter = "", metric = "m", measure = { kind = "jain" }, expect = ">=0.9" },
            ]
        "#;
        let experiment: Experiment = toml::from_str(text).unwrap();
        let published = ["a", "b", "c"].map(|variant| PublishedRow {
            experiment: "one".into(),
            variant: variant.into(),
            parameter: String::new(),
            metric: "m".into(),
            unit: String::new(),
            value: None,
            ci95: None,
            place: String::new(),
            line: 0,
        });
        let paper = Paper {
            name: "paper".into(),
            title: String::new(),
            authors: String::new(),
            experiments: Vec::new(),
            published: published.into(),
            settings: Vec::new(),
        };
        // Two flows of the same goodput: the index is 1.
        let mut results = Results::default();
        results.meta.runs = 1;
        results.meta.points = vec![record::Point::default()];
        for conn in 0..2 {
            let row = record::tables::FlowRow { flow: "f", conn, goodput_mbps: 1.0, ..Default::default() };
            results.tables.flows.push(&row);
        }
        let rows = compare(&paper, &experiment, Some(&results));
        let counts = Counts::of(&rows);
        assert_eq!(counts, Counts { held: 1, missed: 0, not_possible: 1, fitted: 1, fitted_held: 1 });
        let text = "1 held, 0 missed, 1 not possible yet; not counted: 1 fitted, of which 1 held";
        assert_eq!(counts.to_string(), text);
    }

    #[test]
    fn two_values_are_compared_in_each_form() {
        let all = [Form::Ratio, Form::Gain, Form::Reduction, Form::Difference].map(|form| form.of_two(3.0, 4.0));
        assert_eq!(all, [Some(0.75), Some(-25.0), Some(25.0), Some(-1.0)]);
        assert_eq!((Form::Ratio.of_two(3.0, 0.0), Form::Difference.of_two(3.0, 0.0)), (None, Some(3.0)));
    }

    #[test]
    fn ratios_are_compared_as_ratios() {
        let check = |form| Check::of(crate::Measure::Jain, Some(At::default()), form);
        // 108.75 % is a ratio of 2.09: 70 % (1.7) is within a fifth, 60 % (1.6) is not.
        assert!(check(Form::Gain).is_same(70.0, 108.75, None, 0.1));
        assert!(!check(Form::Gain).is_same(60.0, 108.75, None, 0.1));
        // 76.6 % less is a ratio of 0.234: 80 % (0.2) is, 88 % (0.12) is not.
        assert!(check(Form::Reduction).is_same(80.0, 76.6, None, 0.1));
        assert!(!check(Form::Reduction).is_same(88.0, 76.6, None, 0.1));
        // A decrease is not a gain, however small.
        assert!(!check(Form::Gain).is_same(-1.0, 1.9, None, 0.1));
        // Without a reference there is no ratio.
        assert!(!Check::of(crate::Measure::Jain, None, Form::Ratio).is_same(72.0, 64.0, None, 0.1));
    }
}
