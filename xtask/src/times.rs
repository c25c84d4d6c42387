//! Where the time of the Rust tests goes and which have failed, by nextest's reports in `JUnit`'s form.

use anyhow::{Context, Result};
use roxmltree::Document;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where nextest writes its report (`.config/nextest.toml`).
const REPORT: &str = "target/nextest/default/junit.xml";
/// How many of the slowest tests are shown.
const SLOWEST: usize = 20;
/// The seconds that the tests of a crate may take together, and those of other crates: what they took on two busy processors on
/// 2026-11-30, rounded up.
const BUDGETS: [(&str, f64); 18] = [
    ("ranway", 2_000.0),
    ("analyse", 250.0),
    ("meter", 250.0),
    ("services", 250.0),
    ("sim", 210.0),
    ("reproduce", 160.0),
    ("ran", 120.0),
    ("record", 75.0),
    ("ebpf", 50.0),
    ("oracle", 40.0),
    ("emulate", 40.0),
    ("scenario", 30.0),
    ("aqm", 20.0),
    ("channel", 20.0),
    ("import", 15.0),
    ("speedtest", 15.0),
    ("tcp", 15.0),
    ("rapid", 12.0),
];
const USUAL_BUDGET: f64 = 10.0;

/// What reports tell of tests.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Crate, name and seconds of each.
    tests: Vec<(String, String, f64)>,
    /// Those of the latest report that have failed.
    failed: Vec<Failed>,
}

/// A test that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The crate it is of.
    pub(crate) of: String,
    pub(crate) name: String,
    /// Whether it has repeated itself (`testkit::realtime`).
    pub(crate) is_repeated: bool,
}

impl Times {
    /// Removes an earlier report, so that none is taken for this run's.
    pub(crate) fn begin() {
        let _ = std::fs::remove_file(REPORT);
    }

    /// The tests of the latest report that have failed.
    pub(crate) fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// Adds those of the report that nextest has just written; nothing without one, as of a run that could not begin.
    pub(crate) fn add(&mut self) -> Result<()> {
        self.failed.clear();
        let Ok(text) = std::fs::read_to_string(REPORT) else { return Ok(()) };
        self.read(&text).context(REPORT)
    }

    fn read(&mut self, text: &str) -> Result<()> {
        let report = Document::parse(text)?;
        for test in report.descendants().filter(|node| node.has_tag_name("testcase")) {
            let attribute = |name| test.attribute(name).with_context(|| format!("a test without {name}"));
            let (binary, name) = (attribute("classname")?, attribute("name")?);
            let seconds = attribute("time")?.parse().context("a test's time")?;
            let of = binary.split("::").next().unwrap_or(binary);
            self.tests.push((of.to_owned(), format!("{binary} {name}"), seconds));
            if test.children().any(|child| child.has_tag_name("failure") || child.has_tag_name("error")) {
                let said =
                    test.children().filter(|child| child.has_tag_name("system-err")).filter_map(|said| said.text());
                let is_repeated = said.flat_map(str::lines).any(|line| line.starts_with("inconclusive: "));
                self.failed.push(Failed { of: of.to_owned(), name: name.to_owned(), is_repeated });
            }
        }
        Ok(())
    }

    /// Prints the slowest tests, and the crates whose tests take longer than they may.
    pub(crate) fn print(mut self) {
        if self.tests.is_empty() {
            return;
        }
        print!("{}", self.text());
    }

    fn text(&mut self) -> String {
        let mut crates: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
        for (of, _, seconds) in &self.tests {
            let sum = crates.entry(of).or_default();
            *sum = (sum.0 + 1, sum.1 + seconds);
        }
        let mut crates: Vec<(&str, usize, f64)> =
            crates.into_iter().map(|(of, (tests, seconds))| (of, tests, seconds)).collect();
        crates.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut text = String::from("    seconds of tests, by crate (budget):\n");
        for (of, tests, seconds) in crates {
            let budget = BUDGETS.iter().find(|(name, _)| *name == of).map_or(USUAL_BUDGET, |(_, budget)| *budget);
            if seconds > budget {
                let _ = writeln!(text, "    {seconds:7.1}  {of}: {tests} tests, OVER ITS BUDGET of {budget} s");
            } else if seconds >= 1.0 {
                let _ = writeln!(text, "    {seconds:7.1}  {of}: {tests} tests ({budget} s)");
            }
        }
        text += "    the slowest tests, in seconds:\n";
        self.tests.sort_by(|a, b| b.2.total_cmp(&a.2));
        for (_, name, seconds) in self.tests.iter().take(SLOWEST) {
            let _ = writeln!(text, "    {seconds:7.1}  {name}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_from_those_that_have_repeated_themselves() {
        let case = |name: &str, inside: &str| {
            format!(r#"<testcase name="{name}" classname="ranway::all" time="1.000">{inside}</testcase>"#)
        };
        let said = "\ninconclusive: c: attempt 1 of 4: it failed\n";
        let cases = [
            case("a", "<system-out>fine</system-out>"),
            case("b", r#"<failure type="test failure">no</failure><system-err>no</system-err>"#),
            case("c", &format!(r#"<failure type="test failure">no</failure><system-err>{said}</system-err>"#)),
        ];
        let mut times = Times::default();
        times.read(&format!("<testsuites><testsuite>{}</testsuite></testsuites>", cases.concat())).unwrap();
        let failed = |name: &str, is_repeated| Failed { of: "ranway".to_owned(), name: name.to_owned(), is_repeated };
        assert_eq!(times.failed(), [failed("b", false), failed("c", true)]);
    }

    #[test]
    fn crates_over_their_budget_and_the_slowest_tests_are_told() {
        let case = |binary: &str, name: &str, seconds: f64| {
            format!(r#"<testcase name="{name}" classname="{binary}" timestamp="t" time="{seconds:.3}"></testcase>"#)
        };
        let cases = [case("units", "a", 6.25), case("units::all", "b&lt;c", 6.25), case("des", "d", 0.5)].concat();
        let mut times = Times::default();
        times.read(&format!("<testsuites><testsuite>{cases}</testsuite></testsuites>")).unwrap();
        let text = times.text();
        assert!(text.contains("   12.5  units: 2 tests, OVER ITS BUDGET of 10 s\n"), "{text}");
        assert!(text.contains("    6.2  units::all b<c\n") && text.ends_with("    0.5  des d\n"), "{text}");
    }
}
