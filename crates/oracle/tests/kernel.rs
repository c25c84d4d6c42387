//! The simulator's TCP beside this machine's kernel, as far as there is time for it at every change.

#![allow(missing_docs, reason = "a test binary")]
#![allow(clippy::disallowed_methods, reason = "it waits for what another test has loaded")]

use ebpf::mdcc::{self, Held, Parameters};
use oracle::{Both, Row, Verdict, cases, compare, run};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use testkit::realtime::{Watch, at_once, conclusive};
use testkit::root::granted;

/// How many times its bound a figure may be off here: other tests take the kernel's processor away.
const SLACK: f64 = 2.0;

/// A case in both worlds, once: the rows. The attempt is void, and there are none, if a point never ran on time.
fn rows(case: &str, overrides: &[&str], watch: &mut Watch) -> Option<Vec<Row>> {
    let case = cases().into_iter().find(|other| other.name == case).expect("there is such a case");
    let overrides: Vec<String> = overrides.iter().map(|&set| set.to_owned()).collect();
    let loaded = case.load(Path::new(""), &overrides).expect("it loads");
    let runs = run(&loaded, 1, &AtomicBool::new(false), &|| {}).expect("it runs");
    let Both { simulated, emulated, invalid, .. } = runs.expect("nobody stops it");
    if let Some(late) = invalid.first() {
        watch.void(format!("{} of {} points never ran on time: {late:?}", invalid.len(), loaded.points().len()));
        return None;
    }
    Some(compare(&case.name, &simulated, &emulated))
}

/// That the worlds are near each other.
fn check(rows: &[Row]) {
    let far = |row: &&Row| {
        let allowed = row.bound.map(|bound| SLACK * bound + row.noise.unwrap_or(0.0));
        row.verdict == Some(Verdict::Beyond) && row.deviation.is_none_or(|off| allowed.is_some_and(|most| off > most))
    };
    let far: Vec<_> = rows.iter().filter(far).collect();
    assert!(far.is_empty(), "{far:#?}");
}

/// The kernel's `mdcc`, for as long as this lives: nothing keeps it when this process ends, however it does.
fn mdcc() -> Option<Held> {
    granted(mdcc::check())?;
    // A test before this one may have ended a moment ago.
    for _ in 0..100 {
        match Held::load(Parameters::default()) {
            Err(ebpf::Error::Wrong(_)) => std::thread::sleep(Duration::from_millis(50)),
            loaded => return Some(loaded.expect("it loads")),
        }
    }
    eprintln!("SKIPPED: mdcc is loaded on this machine; `ranway mdcc unload` first");
    None
}

#[test]
fn root_the_simulator_does_what_the_kernel_does() {
    conclusive(the_simulator_does_what_the_kernel_does);
}

fn the_simulator_does_what_the_kernel_does(watch: &mut Watch) {
    if granted(emulate::lab::check()).is_none() {
        return;
    }
    // Each has networks of its own.
    let by_control = at_once(["cc=\"cubic\"", "cc=\"new-reno\"", "cc=\"bbr\""], |cc| {
        let mut watch = Watch::default();
        let found = rows("short", &["runs=1", cc], &mut watch).ok_or(watch);
        // The median delays of BBR, and those under CoDel, differ by a known amount (docs/src/oracle.md).
        let is_known =
            |row: &Row| row.metric.ends_with("delay, median") && (cc.contains("bbr") || row.case.contains("codel"));
        found.map(|rows| rows.into_iter().filter(|row| !is_known(row)).collect::<Vec<_>>())
    });
    let mut rows = Vec::new();
    for found in by_control {
        match found {
            Ok(found) => rows.extend(found),
            Err(late) => return *watch = late,
        }
    }
    assert!(rows.iter().filter(|row| row.verdict.is_some()).count() > 40, "{rows:?}");
    check(&rows);
}

#[test]
fn root_the_simulators_mdcc_does_what_the_kernels_does() {
    conclusive(the_simulators_mdcc_does_what_the_kernels_does);
}

fn the_simulators_mdcc_does_what_the_kernels_does(watch: &mut Watch) {
    if granted(emulate::lab::check()).is_none() {
        return;
    }
    let Some(_mdcc) = mdcc() else { return };
    for (case, point) in [("mdcc-queue", "radio_queue=\"131.25 kB\""), ("mdcc-radio-loss", "radio_loss=1e-3")] {
        let Some(rows) = rows(case, &["runs=1", "duration=\"8 s\"", point], watch) else { return };
        assert_eq!(rows.iter().filter(|row| row.verdict.is_some()).count(), 11, "{rows:?}");
        // The kernel's send buffer begins small and does not grow by reports, so its window ends slow start at 111 kB, and the
        // simulator's at 181 kB (docs/src/oracle.md). When slow start ends is compared.
        let steady: Vec<Row> = rows.iter().filter(|row| row.metric != "slow start's end, window").cloned().collect();
        check(&steady);
        // It hears the PEP: CUBIC's window would be 41 segments at this loss.
        let goodput = rows.iter().find(|row| row.metric == "goodput").and_then(|row| row.emulated);
        assert!(goodput > Some(25.0), "{case}: {goodput:?}");
    }
}
