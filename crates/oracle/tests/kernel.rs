//! The simulator's TCP beside this machine's kernel, as far as there is time for it at every change.

#![allow(missing_docs, reason = "a test binary")]

use oracle::{Both, Verdict, cases, compare, run};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// How many times its bound a figure may be off here: other tests take the kernel's processor away.
const SLACK: f64 = 2.0;

#[test]
fn root_the_simulator_does_what_the_kernel_does() {
    if let Err(why) = host::lab::check() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let short = cases().into_iter().find(oracle::Case::is_short).expect("there is a short case");
    let loaded = short.load(Path::new(""), &["runs=1".into()]).expect("it loads");
    let runs = run(&loaded, 1, &AtomicBool::new(false), &|| {}).expect("it runs");
    let Both { simulated, emulated, late } = runs.expect("nobody stops it");
    if late.len() > loaded.points().len() {
        eprintln!("SKIPPED: this machine is too busy to be on time: {late:?}");
        return;
    }
    let rows = compare(&short.name, &simulated, &emulated);
    assert!(rows.iter().filter(|row| row.verdict.is_some()).count() > 40, "{rows:?}");
    let far = |row: &&oracle::Row| {
        let allowed = row.bound.map(|bound| SLACK * bound + row.noise.unwrap_or(0.0));
        row.verdict == Some(Verdict::Beyond) && row.deviation.is_none_or(|off| allowed.is_some_and(|most| off > most))
    };
    let far: Vec<_> = rows.iter().filter(far).collect();
    assert!(far.is_empty(), "{far:#?}");
}
