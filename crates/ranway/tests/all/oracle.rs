//! `ranway oracle --reuse`, which needs no root.

use oracle::cases;
use record::{Lateness, Results};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

/// Writes simulated results of the case `short` in place of the kernel's results of `ranway oracle --out dir`.
fn pretend_measured(dir: &Path, overrides: &[&str]) {
    let short = cases().into_iter().find(oracle::Case::is_short).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|&o| o.to_owned()).collect();
    let loaded = short.load(Path::new(""), &overrides).unwrap();
    let mut results = oracle::simulate(&loaded, &AtomicBool::new(false)).unwrap();
    results.timing.lateness = Some(Lateness { valid: true, ..Lateness::default() });
    results.write(&dir.join("short/kernel")).unwrap();
}

fn again(earlier: &Path, out: &Path) -> Output {
    let mut ranway = Command::new(env!("CARGO_BIN_EXE_ranway"));
    ranway.args(["oracle", "short", "--runs", "1", "--reuse"]).arg(earlier).arg("--out").arg(out).output().unwrap()
}

#[test]
fn results_of_an_earlier_run_are_compared_again() {
    let dir = tempfile::tempdir().unwrap();
    let (earlier, out) = (dir.path().join("earlier"), dir.path().join("out"));
    pretend_measured(&earlier, &["runs=2"]);
    let output = again(&earlier, &out);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::read_to_string(out.join("oracle.md")).unwrap();
    assert!(table.contains("short: ") && !table.contains("**"), "{table}");
    // Its output can be reused in the same way.
    let output = again(&out, &dir.path().join("third"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn simulated_or_partial_results_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (earlier, out) = (dir.path().join("earlier"), dir.path().join("out"));
    for (spoil, expected) in [
        ((|r| r.timing.lateness = None) as fn(&mut Results), "these results are simulated"),
        (|r| r.meta.partial = Some(record::Partial::default()), "these results are partial"),
    ] {
        pretend_measured(&earlier, &[]);
        let mut results = Results::read(&earlier.join("short/kernel")).unwrap();
        spoil(&mut results);
        fs::remove_dir_all(earlier.join("short/kernel")).unwrap();
        results.write(&earlier.join("short/kernel")).unwrap();
        let output = again(&earlier, &out);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
    }
}

#[test]
fn results_of_another_scenario_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (earlier, out) = (dir.path().join("earlier"), dir.path().join("out"));
    pretend_measured(&earlier, &["duration=9 s"]);
    let output = again(&earlier, &out);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("short/kernel: measured with a different"), "{error}");
    assert!(!out.join("oracle.md").exists());
}

#[test]
fn missing_results_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let output = again(&dir.path().join("nowhere"), &dir.path().join("out"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.contains("nowhere/short/kernel: no such directory"), "{error}");
}
