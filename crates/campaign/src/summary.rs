//! Medians and intervals over all tests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use record::Results;
use serde::Serialize;
use serde_json::Value;

use crate::bootstrap::{Middle, RESAMPLES, middle};
use crate::comparisons::{Comparison, Difference, Found, compare};
use crate::distributions::Distribution;
use crate::measures::{ByMeasure, MEASURES, Values, by_measure, of_test, values};
use crate::plan::{Combination, Plan};
use crate::store::{Outcome, Store};
use crate::{Error, File};

/// A median with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The median of all values.
    pub median: f64,
    /// The ends of the interval; missing with fewer than two tests.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// Number of tests that have values.
    pub tests: usize,
    /// Number of values: flows of these tests, or the tests themselves.
    pub values: usize,
}

/// What the tests of a combination have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CombinationSummary {
    /// The combination.
    #[serde(flatten)]
    pub combination: Combination,
    /// Number of finished tests.
    pub tests: usize,
    /// By the names of flows (`download`, `upload`) and measures. Measures that begin with `flow_` have a value for each flow, the
    /// others one for each test.
    pub measures: ByMeasure<Estimate>,
    /// By the same names: how a value of each test, the median of its flows, is distributed.
    pub distributions: ByMeasure<Distribution>,
}

/// A test without results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// Its name.
    pub test: String,
    /// Number of attempts.
    pub attempts: usize,
    /// Why the last one failed.
    pub reason: String,
}

/// Whether something on the path answered for the server, in tests that were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Proxies {
    /// The names of the tests with signs of a proxy.
    pub found: Vec<String>,
    /// Number of tests without any.
    pub none: usize,
    /// Number of tests in which nothing tells.
    pub unknown: usize,
}

impl Proxies {
    /// Adds what a measured test says about itself; simulated ones say nothing.
    fn add(proxies: &mut Option<Proxies>, test: &str, scenario: &Value) {
        let Some(measurement) = scenario.get("measurement") else { return };
        let proxies = proxies.get_or_insert_default();
        match measurement.pointer("/proxy/found").and_then(Value::as_bool) {
            Some(true) => proxies.found.push(test.to_owned()),
            Some(false) => proxies.none += 1,
            None => proxies.unknown += 1,
        }
    }

    /// A line for people, if there is something to know.
    fn text(&self) -> Option<String> {
        let all = self.found.len() + self.none + self.unknown;
        if let Some(first) = self.found.first() {
            return Some(format!(
                "a proxy on the path answered for the server in {} of {all} tests, the first of them {first}: TCP's round trips and \
                 retransmissions are those of the path up to it",
                self.found.len()
            ));
        }
        (self.unknown > 0).then(|| {
            format!(
                "nothing tells whether a proxy on the path answered for the server in {} of {all} tests",
                self.unknown
            )
        })
    }
}

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The campaign's title.
    pub title: String,
    /// Number of tests planned.
    pub planned: usize,
    /// Number of tests that have finished.
    pub finished: usize,
    /// How intervals were computed.
    pub method: String,
    /// The tests that failed.
    pub failed: Vec<Failed>,
    /// Signs of proxies on the paths; null of simulations.
    pub proxies: Option<Proxies>,
    /// The combinations, in the order of the file.
    pub combinations: Vec<CombinationSummary>,
    /// Each two congestion controls with the same number of flows in the same directions, compared within blocks.
    pub comparisons: Vec<Comparison>,
}

impl Summary {
    /// The names of measures with their units.
    pub fn units() -> impl Iterator<Item = (&'static str, &'static str)> {
        MEASURES.iter().map(|&(name, unit, _)| (name, unit))
    }

    /// Summarises the tests that have finished. One test is in memory at a time.
    ///
    /// # Errors
    /// Results of a test cannot be read.
    pub fn of(file: &File, plan: &Plan, store: &Store, complete: bool) -> Result<Summary, Error> {
        let mut found = Found::new();
        let (mut failed, mut finished, mut proxies) = (Vec::new(), 0, None);
        for test in &plan.tests {
            if store.has_finished(test)? {
                let path = store.results(test);
                let results = Results::read(&path)?;
                Proxies::add(&mut proxies, &test.name(), &results.meta.scenario);
                let of = values(&results, &test.combination, complete);
                let of = of.map_err(|why| {
                    Error::Invalid(format!("{}: {why}: remove it to repeat the test", path.display()))
                })?;
                found.entry(&test.combination).or_default().insert(test.block, of);
                finished += 1;
            } else if let Some(Outcome::Failed(reason)) = store.last(test).map(|entry| &entry.outcome) {
                failed.push(Failed { test: test.name(), attempts: store.failures(test), reason: reason.clone() });
            }
        }
        let comparisons = compare(file.seed, &plan.combinations, &found);
        let combinations = plan.combinations.iter().map(|combination| {
            let tests: Vec<Vec<Values>> = found.remove(combination).unwrap_or_default().into_values().collect();
            CombinationSummary {
                combination: combination.clone(),
                tests: tests.len(),
                measures: measures(file.seed, combination, &tests),
                distributions: distributions(combination, &tests),
            }
        });
        Ok(Summary {
            title: file.title.clone(),
            planned: plan.tests.len(),
            finished,
            method: format!(
                "medians with 95 % percentile intervals of a cluster bootstrap: {RESAMPLES} resamples of whole tests, whose flows are \
                 pooled; comparisons: medians of the differences between the tests of a block, likewise with resamples of blocks; \
                 distributions: of tests, with a 95 % band of Dvoretzky, Kiefer and Wolfowitz"
            ),
            failed,
            proxies,
            combinations: combinations.collect(),
            comparisons,
        })
    }

    /// The summary for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {} of {} tests finished\n", self.title, self.finished, self.planned);
        let mut rows = vec![self.row("cc", "flows", "direction", "interface", TITLES)];
        for of in &self.combinations {
            for (name, estimates) in &of.measures {
                let [throughput, rtt, jain] = cells(estimates, |of| (of.tests, (of.median, of.low, of.high)));
                rows.push(self.row_of(&of.combination, name, [of.tests.to_string(), throughput, rtt, jain]));
            }
        }
        table(&mut text, &rows);
        if self.combinations.iter().any(|of| (1..LEAST_TESTS).contains(&of.tests)) {
            let _ = writeln!(text, "  fewer than {LEAST_TESTS} tests: too few for an interval of 95 %");
        }
        self.comparisons_text(&mut text);
        self.distributions_text(&mut text);
        for line in self.proxies.iter().filter_map(Proxies::text) {
            let _ = writeln!(text, "  {line}");
        }
        for Failed { test, attempts, reason } in &self.failed {
            let _ = writeln!(text, "  {test} failed {attempts} times: {reason}");
        }
        text
    }

    /// A row of a table. Only campaigns with interfaces have a column for them.
    fn row(
        &self,
        cc: &str,
        flows: &str,
        direction: &str,
        interface: &str,
        cells: [impl Into<String>; 4],
    ) -> Vec<String> {
        let has_interfaces = self.combinations.iter().any(|of| of.combination.interface.is_some());
        let mut row = [cc, flows, direction].map(str::to_owned).to_vec();
        row.extend(has_interfaces.then(|| interface.to_owned()));
        row.extend(cells.map(Into::into));
        row
    }

    fn row_of(&self, of: &Combination, direction: &str, cells: [String; 4]) -> Vec<String> {
        self.row(&of.cc, &of.flows.to_string(), direction, of.interface.as_deref().unwrap_or("-"), cells)
    }

    /// The differences within blocks, if any are known.
    fn comparisons_text(&self, text: &mut String) {
        let [_, throughput, rtt, jain] = TITLES;
        let mut rows =
            vec![self.row("difference", "flows", "direction", "interface", ["blocks", throughput, rtt, jain])];
        for of in &self.comparisons {
            for (name, differences) in &of.measures {
                let [throughput, rtt, jain] = cells(differences, |of| (of.blocks, (of.median, of.low, of.high)));
                let blocks = differences.values().map(|Difference { blocks, .. }| blocks).max().unwrap_or(&0);
                rows.push(self.row(
                    &format!("{} - {}", of.second, of.first),
                    &of.flows.to_string(),
                    name,
                    of.interface.as_deref().unwrap_or("-"),
                    [blocks.to_string(), throughput, rtt, jain],
                ));
            }
        }
        if rows.len() > 1 {
            let _ = writeln!(text, "  within blocks, median difference of two tests:");
            table(text, &rows);
        }
    }

    /// Quantiles of the tests' throughput, with the bounds that the band gives, where there are tests enough for it to bound anything.
    fn distributions_text(&self, text: &mut String) {
        let quantiles = ["band", "10 % (Mbit/s)", "50 % (Mbit/s)", "90 % (Mbit/s)"];
        let mut rows = vec![self.row("cc", "flows", "direction", "interface", quantiles)];
        let mut few = 0;
        for of in &self.combinations {
            for (name, distributions) in &of.distributions {
                let Some(throughput) = distributions.get("throughput_mbps").filter(|of| of.values.len() > 1) else {
                    continue;
                };
                if !throughput.bounds_median() {
                    few += 1;
                    continue;
                }
                let [low, middle, high] = [0.1, 0.5, 0.9].map(|share| throughput.text(share, 2));
                let band = format!("±{:.0} %", throughput.band * 100.0);
                rows.push(self.row_of(&of.combination, name, [band, low, middle, high]));
            }
        }
        if rows.len() > 1 {
            let _ =
                writeln!(text, "  distribution over tests, quantiles of throughput with bounds that all hold at once:");
            table(text, &rows);
        }
        if few > 0 {
            let what = if few == 1 { "row" } else { "rows" };
            let _ = writeln!(
                text,
                "  distribution over tests: {few} {what} left out; fewer than 8 tests do not bound the median"
            );
        }
    }
}

/// What the tables for people have of each combination.
const TITLES: [&str; 4] = ["tests", "throughput (Mbit/s)", "RTT (ms)", "Jain"];

/// The measures of these tables, with their digits.
const SHOWN: [(&str, usize); 3] = [("throughput_mbps", 2), ("flow_rtt_ms", 1), ("jain", 3)];

/// The least number of tests, or blocks, whose median has an interval in tables for people: all of fewer tests are on the same side of
/// the median that they are drawn from with a probability of more than 5 % (2 / 2^5 is 6 %), so that nothing they say bounds it.
pub(crate) const LEAST_TESTS: usize = 6;

/// The cells of these measures, of so many tests.
fn cells<T>(found: &BTreeMap<&'static str, T>, of: impl Fn(&T) -> (usize, Middle)) -> [String; 3] {
    let shown = |found: &T, digits| match of(found) {
        (tests, (median, ..)) if tests < LEAST_TESTS => interval((median, None, None), digits),
        (_, middle) => interval(middle, digits),
    };
    SHOWN.map(|(name, digits)| found.get(name).map_or_else(|| "-".to_owned(), |found| shown(found, digits)))
}

/// A value with its interval, if it has one.
fn interval((value, low, high): Middle, digits: usize) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{value:.digits$} [{low:.digits$}, {high:.digits$}]"),
        _ => format!("{value:.digits$}"),
    }
}

/// Writes a table with aligned columns.
fn table(text: &mut String, rows: &[Vec<String>]) {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in rows {
        let line =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "  {}", line.trim_end());
    }
}

fn distributions(combination: &Combination, tests: &[Vec<Values>]) -> ByMeasure<Distribution> {
    by_measure(combination, |(place, _), (_, _, of)| {
        Distribution::of(tests.iter().filter_map(|test| of_test(test.get(place)?, of)).collect())
    })
}

fn measures(seed: u64, combination: &Combination, tests: &[Vec<Values>]) -> ByMeasure<Estimate> {
    let Combination { cc, flows, direction, .. } = combination;
    let of_all = format!("{cc} {flows} {}{}", direction.name(), combination.through(' '));
    by_measure(combination, |(place, name), (measure, _, of)| {
        let clusters: Vec<Vec<f64>> =
            tests.iter().filter_map(|test| Some(of(test.get(place)?))).filter(|values| !values.is_empty()).collect();
        let (median, low, high) = middle(&clusters, seed, &format!("campaign bootstrap {of_all} {name} {measure}"))?;
        Some(Estimate { median, low, high, tests: clusters.len(), values: clusters.iter().map(Vec::len).sum() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use crate::measures::FlowValues;

    fn test(goodputs: &[f64]) -> Vec<Values> {
        let flow =
            |&goodput_mbps| FlowValues { goodput_mbps, rtt_ms: None, rtt_p95_ms: None, retransmitted: Some(0.0) };
        vec![Values {
            name: "upload",
            bytes: 1,
            span_s: 1.0,
            throughput_mbps: goodputs.iter().sum(),
            jain: 1.0,
            jain_windows: [None, Some(goodputs[0]), None],
            flows: goodputs.iter().map(flow).collect(),
        }]
    }

    #[test]
    fn proxies_are_counted_of_measured_tests_alone() {
        let measured = |proxy: Value| serde_json::json!({ "measurement": { "proxy": proxy } });
        let mut proxies = None;
        Proxies::add(&mut proxies, "simulated", &serde_json::json!({ "dumbbell": {} }));
        assert_eq!(proxies, None);
        Proxies::add(&mut proxies, "a", &measured(serde_json::json!({ "found": false, "signs": [] })));
        assert_eq!(proxies.as_ref().and_then(Proxies::text), None);
        Proxies::add(&mut proxies, "b", &measured(Value::Null));
        let unknown = proxies.as_ref().and_then(Proxies::text).expect("a line");
        assert!(unknown.ends_with("in 1 of 2 tests"), "{unknown}");
        Proxies::add(&mut proxies, "c", &measured(serde_json::json!({ "found": true })));
        let found = proxies.as_ref().and_then(Proxies::text).expect("a line");
        assert!(found.contains("in 1 of 3 tests, the first of them c: "), "{found}");
        assert_eq!(proxies, Some(Proxies { found: vec!["c".into()], none: 1, unknown: 1 }));
    }

    #[test]
    fn tests_and_their_flows_are_counted_apart_and_missing_values_are_absent() {
        let combination = Combination { cc: "cubic".into(), flows: 2, direction: Direction::Up, interface: None };
        let tests = [test(&[1.0, 2.0]), test(&[3.0, 4.0]), test(&[5.0, 6.0])];
        let found = &measures(1, &combination, &tests)["upload"];
        let throughput = found["throughput_mbps"];
        // 3, 7 and 11; all three equal draws are 1/27 at each end, more than 2.5 %.
        assert_eq!((throughput.median, throughput.low, throughput.high), (7.0, Some(3.0), Some(11.0)));
        assert_eq!((throughput.tests, throughput.values), (3, 3));
        let goodput = found["flow_goodput_mbps"];
        assert_eq!((goodput.median, goodput.low, goodput.high), (3.5, Some(1.5), Some(5.5)));
        assert_eq!((goodput.tests, goodput.values), (3, 6));
        assert!(!found.contains_key("flow_rtt_ms"));
        // Stand-ins for indices: 1, 3 and 5.
        assert_eq!((found["jain_1s"].median, found["jain_1s"].values), (3.0, 3));
        assert!(!found.contains_key("jain_100ms") && !found.contains_key("jain_5s"));
        let alone = Combination { flows: 1, ..combination };
        assert!(!measures(1, &alone, &tests)["upload"].keys().any(|name| name.starts_with("jain")));
    }
}
