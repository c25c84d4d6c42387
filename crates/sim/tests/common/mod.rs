//! Scenarios that are texts in the test, and their results.

#![allow(dead_code, reason = "each test binary uses a part")]

use record::Tables;
use record::tables::{FlowRow, LinkRow};
use scenario::{Loaded, Scenario};
use sim::{Options, Outcome};
use std::io;
use std::sync::atomic::AtomicBool;

/// Payload bytes of a full segment, and of the IP packet that carries it.
pub(crate) const MSS: f64 = 1448.0;
pub(crate) const PACKET: f64 = 1500.0;

/// A scenario from its text; `files` are what it may name. Unless it has `hosts`, they take no time: then links, cells and TCP
/// can be compared with closed forms.
pub(crate) fn load(text: &str, files: &[(&str, &str)]) -> Loaded {
    let read = |path: &str| {
        let all = [("scenario", text)];
        let file = all.iter().chain(files).find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let instant = ["hosts.processing=\"0 s\"".to_owned()];
    let overrides = if text.contains("hosts") { &[][..] } else { &instant };
    Scenario::load("scenario", overrides, &read).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// One flow over an infinitely fast path with a round trip of 100 ms. `tables` stand before the link's.
pub(crate) fn far_text(seconds: u32, tables: &str, flow: &str) -> String {
    format!(
        r#"
duration = "{seconds} s"
record.samples = "off"
{tables}
[[links]]
name = "l"
from = "a"
to = "b"
delay = "50 ms"
[[flows]]
name = "f"
from = "a"
to = "b"
{flow}
"#
    )
}

/// All runs of a scenario on `jobs` threads.
pub(crate) fn run_on(loaded: &Loaded, jobs: usize) -> Outcome {
    let stop = AtomicBool::new(false);
    let options = Options::new(jobs, &stop, &|_| {});
    let outcome = sim::run(loaded, &options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(outcome.finished, outcome.runs);
    outcome
}

/// The tables of a scenario's runs, on one thread: the test runner already uses every core.
pub(crate) fn run(text: &str) -> Tables {
    run_on(&load(text, &[]), 1).results.tables
}

/// The first row of the flow `name`.
pub(crate) fn flow<'a>(tables: &'a Tables, name: &str) -> FlowRow<'a> {
    tables.flows.iter().find(|row| row.flow == name).unwrap_or_else(|| panic!("there is no flow {name}"))
}

/// The first row of the link `name`.
pub(crate) fn link<'a>(tables: &'a Tables, name: &str) -> LinkRow<'a> {
    tables.links.iter().find(|row| row.link == name).unwrap_or_else(|| panic!("there is no link {name}"))
}

/// Asserts that `got` is within `share` of `wanted`.
#[track_caller]
pub(crate) fn near(what: &str, got: f64, wanted: f64, share: f64) {
    println!("{what}: {got:.4} for {wanted:.4} ({:+.2} %)", (got / wanted - 1.0) * 100.0);
    assert!(got.is_finite() && (got / wanted - 1.0).abs() <= share, "{what}: {got} is not within {share} of {wanted}");
}
