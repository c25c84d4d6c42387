//! Measures over tests: several flows that run at the same time, one test after another.
//!
//! The test is the unit, its flows are nested in it. A statistic is taken over the pooled values of all tests of all runs
//! whose flow's name matches a pattern; its uncertainty comes from a cluster bootstrap, which draws whole tests with
//! replacement ([`bootstrap`]).

mod bootstrap;
mod drawing;
mod quantity;
mod statistic;
mod tests_of;

pub use drawing::OverTests;
pub use quantity::Quantity;
pub use statistic::Statistic;
pub(crate) use statistic::steps;
pub(crate) use tests_of::{Study, Test};

use bootstrap::{Group, Pair, resample};
use record::Stat;
use serde::Deserialize;
use units::stats::{nearest_rank, percentiles_95};

/// The share of resamples in which an order of two groups must hold.
pub(crate) const ORDER: f64 = 0.9;

/// A statistic over tests, or a comparison of two groups of tests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tests {
    /// The tests: a pattern of their flow's name.
    pub(crate) tests: String,
    /// What is taken of each.
    of: Quantity,
    /// For a statistic of pairs: the horizontal quantity.
    with: Option<Quantity>,
    /// The statistic.
    #[serde(default)]
    at: Statistic,
    /// For `share`: the bound that values must exceed.
    #[serde(default)]
    above: f64,
    /// For `spearman`: the width of intervals of `with` over which the values are averaged; 0 does not average.
    #[serde(default)]
    bin: f64,
    /// The result is divided by that of these tests,
    over: Option<String>,
    /// or that of these tests is subtracted.
    less: Option<String>,
    /// The quantity of the other tests, if it is another one.
    other: Option<Quantity>,
}

/// Another point of the sweep, whose tests have the same random numbers as those of this one, and the form of the comparison:
/// a function of the value at this point and the one there.
pub(crate) struct Beside<'a> {
    pub(crate) point: u32,
    pub(crate) form: &'a dyn Fn(f64, f64) -> Option<f64>,
}

/// The result of a measure over tests.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// The value of the tests themselves.
    pub(crate) value: f64,
    /// The values of the resamples, in ascending order.
    pub(crate) resamples: Vec<f64>,
    /// The number of tests.
    n: usize,
}

impl Tests {
    /// Returns the patterns of the flows that it covers.
    pub(crate) fn flows(&self) -> Vec<&str> {
        [Some(&self.tests), self.over.as_ref(), self.less.as_ref()].into_iter().flatten().map(String::as_str).collect()
    }

    /// Returns whether one of its quantities is computed from samples.
    pub(crate) fn needs_samples(&self) -> bool {
        [Some(self.of), self.with, self.other].into_iter().flatten().any(Quantity::needs_samples)
    }

    /// Returns what is wrong with the combination of its keys.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.at.is_of_pairs() != self.with.is_some() {
            return Some("`with` belongs to the statistics of pairs: spearman, pearson and ellipse");
        }
        if self.over.is_some() && self.less.is_some() {
            return Some("`over` and `less` exclude each other");
        }
        if self.other.is_some() && self.over.is_none() && self.less.is_none() {
            return Some("`other` needs `over` or `less`");
        }
        if !self.above.is_finite() {
            return Some("`above` must be finite");
        }
        (!(0.0..=f64::MAX).contains(&self.bin)).then_some("`bin` must be finite and not negative")
    }

    /// Returns whether a bound on it states an order of groups, or the sign of an association.
    pub(crate) fn is_order(&self) -> bool {
        self.over.is_some() || self.less.is_some() || matches!(self.at, Statistic::Spearman | Statistic::Pearson)
    }

    /// Returns the value over the tests at a point, compared with those of `beside` if it is given; none if there are no
    /// values. A test is drawn at both points together, so what the points have in common does not widen the interval.
    pub(crate) fn estimate(&self, study: &Study, point: u32, beside: Option<&Beside>) -> Option<Estimate> {
        let other = self.over.as_ref().or(self.less.as_ref());
        let group = |point: u32, pattern: &str, of: Quantity, draw: usize| Group {
            tests: study.matching(point, pattern).map(|test| self.values(study, test, of)).collect(),
            draw,
        };
        let groups_at = |point: u32| -> Vec<Group> {
            let ours = group(point, &self.tests, self.of, 0);
            // The same tests are drawn together.
            let draw = |pattern: &String| usize::from(*pattern != self.tests);
            let theirs = other.map(|pattern| group(point, pattern, self.other.unwrap_or(self.of), draw(pattern)));
            [ours].into_iter().chain(theirs).collect()
        };
        let mut groups = groups_at(point);
        let (sides, n) = (groups.len(), groups[0].tests.len());
        groups.extend(beside.map(|beside| groups_at(beside.point)).into_iter().flatten());
        let (here, there) = groups.split_at(sides);
        if here.iter().zip(there).any(|(here, there)| here.tests.len() != there.tests.len()) {
            return None;
        }
        let statistic = |values: &[Pair]| self.at.of(values, self.above, self.bin);
        let value_of = |values: &[Vec<Pair>]| {
            let one = statistic(&values[0])?;
            match (&self.over, &self.less) {
                (Some(_), _) => statistic(&values[1]).filter(|two| *two != 0.0).map(|two| one / two),
                (_, Some(_)) => statistic(&values[1]).map(|two| one - two),
                _ => Some(one),
            }
        };
        let combine = |values: &[Vec<Pair>]| match beside {
            Some(beside) => (beside.form)(value_of(&values[..sides])?, value_of(&values[sides..])?),
            None => value_of(values),
        };
        let all: Vec<Vec<Pair>> = groups.iter().map(|group| group.tests.concat()).collect();
        let value = combine(&all)?;
        let mut resamples = resample(&groups, combine);
        resamples.sort_by(f64::total_cmp);
        Some(Estimate { value, resamples, n })
    }

    /// The values of a test; of a statistic without pairs, the first of each pair is 0.
    fn values(&self, study: &Study, test: &Test, of: Quantity) -> Vec<Pair> {
        let y = of.values(study, test);
        let x = self.with.map_or_else(|| vec![0.0; y.len()], |with| with.values(study, test));
        let pairs = x.into_iter().zip(y);
        pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
    }
}

impl Estimate {
    /// Returns it as a statistic: with half the width of the interval that holds 95 % of the resamples.
    pub(crate) fn stat(&self) -> Stat {
        let bounds = percentiles_95(&self.resamples, nearest_rank);
        let ci95 = bounds.map(|(low, high)| (high - low) / 2.0);
        let (min, max) = bounds.unwrap_or((self.value, self.value));
        Stat { n: self.n as u32, mean: self.value, ci95, min, max }
    }

    /// Returns the share of resamples of which `holds` is true; 0 without any.
    pub(crate) fn share(&self, holds: impl Fn(f64) -> bool) -> f64 {
        let count = self.resamples.iter().filter(|&&value| holds(value)).count();
        count as f64 / self.resamples.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Results;
    use record::tables::FlowRow;

    /// Results with tests `a-1`, `a-2`, ... and `b-1`, ..., of two flows each, of these goodputs.
    fn results(a: &[[f64; 2]], b: &[[f64; 2]]) -> Results {
        let mut results = Results::default();
        for (group, tests) in [("a", a), ("b", b)] {
            for (i, goodputs) in tests.iter().enumerate() {
                for (conn, &goodput_mbps) in (0..).zip(goodputs) {
                    let flow = format!("{group}-{}", i + 1);
                    let row = FlowRow {
                        run: i as u32 % 2,
                        flow: &flow,
                        conn,
                        goodput_mbps,
                        transport: "tcp",
                        ..FlowRow::default()
                    };
                    results.tables.flows.push(&row);
                }
            }
        }
        results
    }

    fn measure(text: &str) -> Tests {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_statistic_is_over_tests_of_all_runs() {
        // Tests of 3, 7 and 30 Mbit/s: the median is 7. With flows as units it would be 4.
        let results = results(&[[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]], &[[5.0, 5.0]]);
        let study = Study::new(&results);
        let of = |text: &str| measure(text).estimate(&study, 0, None).unwrap();
        assert_eq!(of("tests = 'a-*'\nof = 'goodput'").value, 7.0);
        assert_eq!(of("tests = 'a-*'\nof = 'flow-goodput'").value, 3.5);
        assert_eq!(of("tests = 'a-*'\nof = 'goodput'\nover = 'b-*'").value, 0.7);
        assert_eq!(of("tests = 'a-*'\nof = 'goodput'\nless = 'b-*'").value, -3.0);
        assert!((of("tests = 'a-*'\nof = 'goodput'\nat = 'share'\nabove = 5").value - 200.0 / 3.0).abs() < 1e-9);
        assert!(measure("tests = 'c-*'\nof = 'goodput'").estimate(&study, 0, None).is_none());
    }

    #[test]
    fn flows_of_a_test_are_drawn_together() {
        // Two tests: the mean of a resample is 1, 5 or 9, in a quarter, a half and a quarter of the cases; drawing the
        // four flows would also give 3 and 7.
        let results = results(&[[1.0, 1.0], [9.0, 9.0]], &[]);
        let study = Study::new(&results);
        let estimate = measure("tests = 'a-*'\nof = 'flow-goodput'\nat = 'mean'").estimate(&study, 0, None).unwrap();
        assert!(estimate.resamples.iter().all(|value| [1.0, 5.0, 9.0].contains(value)));
        let middle = estimate.share(|value| value == 5.0);
        assert!((middle - 0.5).abs() < 0.05, "{middle}");
        let low = estimate.share(|value| value == 1.0);
        assert!((low - 0.25).abs() < 0.05, "{low}");
        // The same stream each time.
        let again = measure("tests = 'a-*'\nof = 'flow-goodput'\nat = 'mean'").estimate(&study, 0, None).unwrap();
        assert_eq!(estimate.resamples, again.resamples);
    }

    #[test]
    fn an_order_of_the_same_tests_is_drawn_together() {
        // Jain's index of goodputs over itself is 1 in each resample, although the tests differ.
        let results = results(&[[1.0, 3.0], [9.0, 9.0], [1.0, 0.0]], &[]);
        let study = Study::new(&results);
        let estimate =
            measure("tests = 'a-*'\nof = 'jain-goodput'\nat = 'mean'\nover = 'a-*'").estimate(&study, 0, None).unwrap();
        assert!(estimate.resamples.iter().all(|value| *value == 1.0));
        // (1 + 3)^2 / (2 * 10) = 0.8, 1, 0.5.
        let mean = measure("tests = 'a-*'\nof = 'jain-goodput'\nat = 'mean'").estimate(&study, 0, None).unwrap();
        assert!((mean.value - 2.3 / 3.0).abs() < 1e-9, "{}", mean.value);
    }

    #[test]
    fn tests_of_two_points_are_drawn_together() {
        // Each test has 2 Mbit/s more at point 1, and at both points the tests differ by more than that.
        let mut results = Results::default();
        for (point, more) in [(0, 0.0), (1, 2.0)] {
            for (flow, goodput_mbps) in [("a-1", 1.0), ("a-2", 30.0), ("a-3", 7.0), ("b-1", 4.0), ("b-2", 50.0)] {
                let goodput_mbps = goodput_mbps + more;
                results.tables.flows.push(&FlowRow {
                    point,
                    flow,
                    goodput_mbps,
                    transport: "tcp",
                    ..FlowRow::default()
                });
            }
        }
        let study = Study::new(&results);
        let difference = |here: f64, there: f64| Some(here - there);
        let of = |text: &str, point| {
            let beside = Beside { point: 1 - point, form: &difference };
            measure(text).estimate(&study, point, Some(&beside)).unwrap()
        };
        let mean = of("tests = 'a-*'\nof = 'goodput'\nat = 'mean'", 1);
        assert!((mean.value - 2.0).abs() < 1e-9 && mean.resamples.iter().all(|value| (value - 2.0).abs() < 1e-9));
        // A difference of groups that is the same at both points: each group has its own draw, the same at both.
        let groups = of("tests = 'a-*'\nof = 'goodput'\nat = 'mean'\nless = 'b-*'", 0);
        assert!(groups.value.abs() < 1e-9 && groups.resamples.iter().all(|value| value.abs() < 1e-9));
        // Without the same tests at both there are no pairs.
        let row = FlowRow { point: 1, flow: "a-4", transport: "tcp", ..FlowRow::default() };
        results.tables.flows.push(&row);
        let beside = Beside { point: 1, form: &difference };
        let pairs = measure("tests = 'a-*'\nof = 'goodput'").estimate(&Study::new(&results), 0, Some(&beside));
        assert!(pairs.is_none());
    }

    #[test]
    fn keys_that_do_not_fit_together_are_faults() {
        let fault = |text: &str| measure(text).fault();
        assert!(fault("tests = 'a'\nof = 'rtt'\nat = 'pearson'").is_some());
        assert!(fault("tests = 'a'\nof = 'rtt'\nwith = 'goodput'").is_some());
        assert!(fault("tests = 'a'\nof = 'rtt'\nover = 'b'\nless = 'b'").is_some());
        assert!(fault("tests = 'a'\nof = 'rtt'\nother = 'goodput'").is_some());
        assert!(fault("tests = 'a'\nof = 'rtt'\nwith = 'goodput'\nat = 'ellipse'\nover = 'b'").is_none());
    }
}
