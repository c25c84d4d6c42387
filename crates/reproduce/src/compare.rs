//! Compares measured values with published ones.

use crate::check::{Bound, Check, Claim, Form, Origin, Published, PublishedRow, roundings};
use crate::data::Data;
use crate::measure::{Ceiling, Measure};
use crate::open::differs_in;
use crate::paper::{Experiment, Paper};
use crate::points::At;
use crate::study::{Beside, Estimate, ORDER, Tests};
use record::{Results, Stat};
use serde::Serialize;

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within the published interval or the tolerance; for a claim, the measurements satisfy it.
    Held,
    /// Outside those limits, or the claim is not satisfied.
    Missed,
    /// Outside them, and so is everything that is physically possible.
    Impossible,
    /// Ranway cannot measure it yet.
    #[default]
    #[serde(rename = "not possible yet")]
    NotPossible,
}

/// A published row and our measurement. The fields are the keys of `ranway reproduce --json`.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// The physical lower bound, in the row's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub floor: Option<f64>,
    /// The physical upper bound, in the row's unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub ceiling: Option<f64>,
    /// Whose row it is.
    pub origin: Origin,
    /// The outcome.
    pub verdict: Verdict,
    /// The condition that stands for the words of a claim, or replaces the tolerance of a published number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub expected: Option<String>,
    /// Of a published number or range: the deviation up to which a measured value counts as equal, if it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub tolerance: Option<f64>,
    /// Why the tolerance, or what is expected instead of it, is not the default, or why words or a bound are read so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub because: Option<String>,
    /// The parameter that was chosen by this row, which then is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub fitted: Option<String>,
    /// Why the row holds by construction, and is no prediction either.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub given: Option<String>,
    /// For a missed row: what is known about the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub why: Option<String>,
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
    let floor = check.and_then(|check| check.floor).and_then(|floor| floor.value(&row.unit));
    let ceiling = check.and_then(|check| check.ceiling.as_ref()).map(Ceiling::value);
    let (measured, ci, verdict, wrong) = match answer {
        None => (None, None, Verdict::NotPossible, None),
        Some(Answer { measured, ci, held, extremes }) => {
            let wrong = check.and_then(|check| check.wrong_limit(extremes, floor));
            let verdict = match (held, &wrong) {
                (true, None) => Verdict::Held,
                (false, None) if is_beyond(row, floor, ceiling) => Verdict::Impossible,
                _ => Verdict::Missed,
            };
            (measured, ci, verdict, wrong)
        }
    };
    let is_missed = matches!(verdict, Verdict::Missed | Verdict::Impossible);
    let why = check.filter(|_| is_missed).map(|check| {
        let unknown = if measured.is_none() { "the runs have no such value" } else { "not explained yet" };
        wrong.or_else(|| check.why.clone()).unwrap_or_else(|| unknown.to_owned())
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
        ceiling,
        origin: row.origin,
        verdict,
        expected: check.and_then(|check| check.expected(row)),
        tolerance: check.and_then(|check| check.tolerance),
        because: check.and_then(|check| check.because.clone()),
        fitted: check.and_then(|check| check.fitted.clone()),
        given: check.and_then(|check| check.given.clone()),
        why,
    }
}

/// Returns whether a published value is physically impossible, even at the end of its interval or before it was rounded. The ends
/// of a range are values that were published, so one of them beyond a limit is enough. A bound is impossible if no value that
/// satisfies it is possible.
fn is_beyond(row: &PublishedRow, floor: Option<f64>, ceiling: Option<f64>) -> bool {
    // What must not be below the floor, and what must not be above the ceiling.
    let (lowest, highest, (low, high)) = match &row.value {
        None => return false,
        Some(Published::Number(value)) => (Some(*value), Some(*value), (row.rounding, row.rounding)),
        Some(Published::Text(text)) => {
            let (lowest, highest) = match Claim::parse(text) {
                Some(Claim::Bound(Bound::Between(from, to))) => (Some(from), Some(to)),
                Some(Claim::Bound(Bound::AtLeast(bound))) => (None, Some(bound)),
                Some(Claim::Bound(Bound::AtMost(bound) | Bound::Within(bound))) => (Some(bound), None),
                Some(Claim::Trend { .. }) | None => (None, None),
            };
            (lowest, highest, roundings(text))
        }
    };
    let margin = |rounding: f64| row.ci95.unwrap_or(0.0).max(rounding);
    lowest.zip(floor).is_some_and(|(lowest, floor)| lowest + margin(low) < floor)
        || highest.zip(ceiling).is_some_and(|(highest, ceiling)| highest - margin(high) > ceiling)
}

/// What the results say about a row.
struct Answer {
    measured: Option<Published>,
    ci: Option<f64>,
    held: bool,
    /// The least and the most that is compared.
    extremes: Option<(f64, f64)>,
}

fn answer(check: &Check, row: &PublishedRow, data: &Data) -> Answer {
    let results = data.results;
    let points: Vec<u32> =
        (0..).zip(&results.meta.points).filter(|(_, point)| check.is_at(point)).map(|(i, _)| i).collect();
    let stats: Option<Vec<Stat>> = points.iter().map(|&point| check.figure(data, point)).collect();
    // A run without a value (such as a link that never filled) must not improve the mean of the others.
    let Some(stats) = stats.filter(|stats| !stats.is_empty()) else {
        return Answer { measured: None, ci: None, held: false, extremes: None };
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
            Claim::Trend { rising, falling } => {
                follows(results, &points, &means, rising, true) && follows(results, &points, &means, falling, false)
            }
        };
        let (measured, ci) = match stats.as_slice() {
            [one] => (Published::Number(one.mean), one.ci95),
            _ => (several(), None),
        };
        return Answer { measured: Some(measured), ci, held, extremes: Some((least, most)) };
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let ci = if stats.len() == 1 { stats[0].ci95 } else { None };
    let held = match row.value {
        Some(Published::Number(value)) => (mean - value).abs() <= check.margin(row, value),
        _ => false,
    };
    Answer { measured: Some(Published::Number(mean)), ci, held, extremes: Some((mean, mean)) }
}

/// Returns whether the value rises (or falls) along each of `along`, from value to value in the order of the sweep,
/// with all other keys equal. It does not along a key in which no points differ.
fn follows(results: &Results, points: &[u32], means: &[f64], along: &[String], rises: bool) -> bool {
    let at = |i: usize| &results.meta.points[points[i] as usize];
    along.iter().all(|key| {
        // Each point, and the next one that differs only in this key.
        let next = |i: usize| (i + 1..points.len()).find(|&j| differs_in(key, at(i), at(j)));
        let steps: Vec<(usize, usize)> = (0..points.len()).filter_map(|i| Some((i, next(i)?))).collect();
        let holds = |&(i, j): &(usize, usize)| if rises { means[j] > means[i] } else { means[j] < means[i] };
        !steps.is_empty() && steps.iter().all(holds)
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

    /// Returns which of its limits is wrong, as measured values are beyond it: what was measured is possible. The ceiling of a
    /// reduction is that of a published time, which ours may exceed.
    fn wrong_limit(&self, extremes: Option<(f64, f64)>, floor: Option<f64>) -> Option<String> {
        let (least, most) = extremes?;
        if let Some(floor) = floor.filter(|floor| least < *floor) {
            return Some(format!("its `floor` is wrong: {least:.3} was measured, which is below {floor:.3}"));
        }
        match self.ceiling {
            Some(Ceiling::Value { most: ceiling }) if most > ceiling => {
                Some(format!("its `ceiling` is wrong: {most:.3} was measured, which is above {ceiling:.3}"))
            }
            _ => None,
        }
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
    use crate::check::rounding;

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
    fn two_values_are_compared_in_each_form() {
        let all = [Form::Ratio, Form::Gain, Form::Reduction, Form::Difference].map(|form| form.of_two(3.0, 4.0));
        assert_eq!(all, [Some(0.75), Some(-25.0), Some(25.0), Some(-1.0)]);
        assert_eq!((Form::Ratio.of_two(3.0, 0.0), Form::Difference.of_two(3.0, 0.0)), (None, Some(3.0)));
    }

    #[test]
    fn a_trend_is_one_of_points_that_differ_in_its_key() {
        let trend = |keys: &str, goodputs: &[f64]| verdict("", keys, goodputs);
        assert_eq!(trend("point = { at = 'here' }\nrising = ['i']", &[1.0, 2.0, 3.0, 9.0]), Verdict::Held);
        assert_eq!(trend("point = { at = 'here' }\nrising = ['i']", &[1.0, 3.0, 2.0, 9.0]), Verdict::Missed);
        assert_eq!(trend("point = { at = 'here' }\nfalling = ['i']", &[3.0, 2.0, 9.0]), Verdict::Held);
        // Not swept, or at one point.
        assert_eq!(trend("point = { at = 'here' }\nrising = ['nosuch']", &[1.0, 2.0, 9.0]), Verdict::Missed);
        assert_eq!(trend("point = { at = 'there' }\nrising = ['i']", &[1.0, 2.0, 9.0]), Verdict::Missed);
    }

    #[test]
    fn the_condition_beside_words_is_our_reading() {
        assert_eq!(verdict("", "expect = '±0.03'\nbecause = 'negligible'", &[0.02]), Verdict::Held);
        let check: Check = toml::from_str(
            "variant = 'a'\nparameter = ''\nmetric = 'm'\nmeasure = { kind = 'jain' }\nrising = ['a']\nfalling = ['b']",
        )
        .unwrap();
        assert_eq!(check.expected(&PublishedRow::default()).as_deref(), Some("rises with a; falls with b"));
    }

    /// The verdict on a row of which a flow's goodput is measured: `value` and `ci95` as in `published.csv`, `keys` of the check,
    /// and the goodputs at the points of a sweep, of which the last is the reference of `against = { at = "there" }`.
    fn verdict(value: &str, keys: &str, goodputs: &[f64]) -> Verdict {
        row(value, "s", keys, goodputs).verdict
    }

    /// The same row with a unit.
    fn row(value: &str, unit: &str, keys: &str, goodputs: &[f64]) -> Row {
        let (value, ci95) = value.split_once(" +- ").map_or((value, None), |(value, ci)| (value, ci.parse().ok()));
        let check = format!(
            "variant = 'a'\nparameter = ''\nmetric = 'm'\nmeasure = {{ kind = 'goodput', flow = 'f' }}\n{keys}"
        );
        let experiment: Experiment =
            toml::from_str(&format!("name = 'one'\nabout = 'one'\n[[checks]]\n{check}")).unwrap();
        let row = PublishedRow {
            experiment: "one".into(),
            variant: "a".into(),
            metric: "m".into(),
            rounding: rounding(value),
            value: (!value.is_empty())
                .then(|| value.parse().map_or_else(|_| Published::Text(value.into()), Published::Number)),
            unit: if keys.contains("as = 'reduction'") { "%" } else { unit }.into(),
            ci95,
            ..PublishedRow::default()
        };
        assert_eq!(experiment.checks[0].fault(&row), None, "{keys}");
        let mut results = Results::default();
        results.meta.runs = 1;
        for (point, &goodput_mbps) in (0..).zip(goodputs) {
            let at = if point as usize + 1 == goodputs.len() { "there" } else { "here" };
            let values =
                [("at".to_owned(), at.into()), ("i".to_owned(), if at == "there" { 0.into() } else { point.into() })];
            results.meta.points.push(record::Point { values: values.into_iter().collect() });
            let row = record::tables::FlowRow { point, flow: "f", goodput_mbps, ..Default::default() };
            results.tables.flows.push(&row);
        }
        let paper = Paper {
            name: "paper".into(),
            title: String::new(),
            authors: String::new(),
            experiments: Vec::new(),
            published: vec![row],
            settings: Vec::new(),
        };
        compare(&paper, &experiment, Some(&results)).remove(0)
    }

    /// The same of a comparison of two points, whose goodputs have this ratio.
    fn compared(value: &str, form: &str, ratio: f64, keys: &str) -> Verdict {
        let keys = format!("point = {{ at = 'here' }}\nagainst = {{ at = 'there' }}\nas = '{form}'\n{keys}");
        verdict(value, &keys, &[10.0 * ratio, 10.0])
    }

    #[test]
    fn a_range_holds_only_if_every_point_is_inside() {
        let all = |range: &str, keys: &str| verdict(range, keys, &[1.25, 1.4, 1.3]);
        assert_eq!(all("1..1.5", ""), Verdict::Held);
        assert_eq!(all("1.3..1.4", ""), Verdict::Missed);
        assert_eq!(all("1.25..1.35", ""), Verdict::Missed);
        assert_eq!(all("1.3..1.4", "tolerance = 0.06\nbecause = 'read from a plot'"), Verdict::Held);
        // 1.3 may have been 1.26 before it was rounded.
        assert_eq!(verdict("1.3..1.4", "", &[1.26]), Verdict::Held);
        assert_eq!(verdict("1.30..1.40", "", &[1.26]), Verdict::Missed);
        assert_eq!(verdict("1.3..1.4", "", &[1.24]), Verdict::Missed);
    }

    #[test]
    fn a_difference_is_compared_as_a_difference() {
        // A gain of 7.3 % is neither none nor four times as much.
        let gain = |value: &str, measured: f64, keys: &str| compared(value, "gain", 1.0 + measured / 100.0, keys);
        for (measured, expected) in
            [(7.0, Verdict::Held), (0.07, Verdict::Missed), (12.0, Verdict::Missed), (28.0, Verdict::Missed)]
        {
            assert_eq!(gain("7.3", measured, ""), expected, "{measured}");
        }
        assert_eq!(gain("7.3 +- 2.8", 9.8, ""), Verdict::Held);
        assert_eq!(gain("108.75", 92.9, ""), Verdict::Missed);
        assert_eq!(gain("108.75", 92.9, "tolerance = 20\nbecause = 'a plot'"), Verdict::Held);
        // No gain is none, but for the rounding.
        assert_eq!((gain("0.0", 0.04, ""), gain("0.0", 0.2, "")), (Verdict::Held, Verdict::Missed));
        // A reduction by 98 % is by a factor of 50, and not of 20.
        let reduction = |value: &str, measured: f64| compared(value, "reduction", 1.0 - measured / 100.0, "");
        assert_eq!((reduction("98.0", 97.9), reduction("98.0", 95.0)), (Verdict::Held, Verdict::Missed));
        assert_eq!((reduction("76.6", 78.0), reduction("76.6", 80.0)), (Verdict::Held, Verdict::Missed));
        assert_eq!((reduction("50", 54.0), reduction("50", 56.0)), (Verdict::Held, Verdict::Missed));
        let ratio = |value: &str, measured: f64| compared(value, "ratio", measured, "");
        assert_eq!((ratio("1.9", 2.05), ratio("1.9", 2.2)), (Verdict::Held, Verdict::Missed));
        assert_eq!(compared("0.4", "difference", 1.042, ""), Verdict::Held);
        assert_eq!(compared("0.4", "difference", 1.05, ""), Verdict::Missed);
    }

    #[test]
    fn what_is_physically_impossible_is_not_missed() {
        // 10 MB at 80 Mbit/s take a second.
        let keys = "floor = { size = '10 MB', rate = '80 Mbit/s' }";
        assert_eq!(verdict("0.24", keys, &[2.0]), Verdict::Impossible);
        assert_eq!(verdict("1.1", keys, &[2.0]), Verdict::Missed);
        assert_eq!(verdict("0.24 +- 0.8", keys, &[2.0]), Verdict::Missed);
        assert_eq!(verdict("0.95", keys, &[1.0]), Verdict::Held);
        // A figure without decimals may have been the floor before it was rounded.
        assert_eq!(verdict("0.9", keys, &[2.0]), Verdict::Impossible);
        assert_eq!(verdict("1", keys, &[2.0]), Verdict::Missed);
        // From 1.6 s, to a second, is 37.5 % less.
        let keys = "ceiling = { size = '10 MB', rate = '80 Mbit/s', from = '1.6 s' }";
        assert_eq!(compared("84.2", "reduction", 0.9, keys), Verdict::Impossible);
        assert_eq!(compared("37.0", "reduction", 0.9, keys), Verdict::Missed);
        assert_eq!(compared("3600", "gain", 2.0, "ceiling = { most = 900 }"), Verdict::Impossible);
    }

    #[test]
    fn a_range_with_an_impossible_end_and_an_impossible_bound_are_not_missed() {
        let floor = "floor = { size = '10 MB', rate = '80 Mbit/s' }";
        for (value, expected) in [
            ("0.2..0.8", Verdict::Impossible),
            // The lower end is a value that was published.
            ("0.2..1.5", Verdict::Impossible),
            ("1.0..1.5", Verdict::Missed),
            ("1..1.5", Verdict::Missed),
            ("<=0.8", Verdict::Impossible),
            ("<=1.2", Verdict::Missed),
            ("±0.8", Verdict::Impossible),
            (">=3", Verdict::Missed),
        ] {
            assert_eq!(verdict(value, floor, &[2.0]), expected, "{value}");
        }
        // What holds is held, whatever else the range has.
        assert_eq!(verdict("0.2..2.5", floor, &[2.0]), Verdict::Held);
        let ceiling = "ceiling = { most = 80 }";
        for (value, expected) in [
            ("33..84", Verdict::Impossible),
            ("81..84", Verdict::Impossible),
            ("33..80", Verdict::Missed),
            (">=90", Verdict::Impossible),
            (">=75", Verdict::Missed),
            ("<=5", Verdict::Missed),
        ] {
            assert_eq!(verdict(value, ceiling, &[20.0]), expected, "{value}");
        }
    }

    #[test]
    fn a_floor_is_in_the_unit_of_the_row() {
        let floor = "floor = { size = '10 MB', rate = '80 Mbit/s' }";
        let of = |value, unit| row(value, unit, floor, &[2e6]);
        assert_eq!((of("242", "ms").verdict, of("242", "ms").floor), (Verdict::Impossible, Some(1e3)));
        assert_eq!((of("1100", "ms").verdict, of("242000", "us").verdict), (Verdict::Missed, Verdict::Impossible));
    }

    #[test]
    fn a_limit_that_a_measured_value_exceeds_is_wrong() {
        let why = |value, keys: &str, measured| {
            let row = row(value, "s", keys, &[measured]);
            (row.verdict, row.why.unwrap_or_default())
        };
        let (verdict, said) = why("95", "ceiling = { most = 90 }", 95.0);
        assert_eq!(verdict, Verdict::Missed);
        assert!(said.contains("`ceiling` is wrong: 95.000 was measured, which is above 90.000"), "{said}");
        let (verdict, said) = why("0.5", "floor = { size = '10 MB', rate = '80 Mbit/s' }\nwhy = 'known'", 0.9);
        assert_eq!(verdict, Verdict::Missed);
        assert!(said.contains("`floor` is wrong: 0.900 was measured, which is below 1.000"), "{said}");
    }
}
