//! Repetitions of a point: what differs between them, and that nothing identical passes as a repetition.

use crate::common::{load, run_on};
use record::Results;
use record::tables::QueueRow;
use scenario::Loaded;
use std::fmt::Write as _;

/// A recorded link that is fast for the first 2 s and slow for the other 8 s.
fn recording() -> String {
    let mut text = String::new();
    for ms in 0..10_000 {
        if ms < 2_000 || ms % 20 == 0 {
            let _ = writeln!(text, "{ms}");
        }
    }
    text + "10000\n"
}

fn results(runs: u32, more: &str) -> Results {
    let text = format!(
        r#"
duration = "6 s"
runs = {runs}
record = {{ samples = "100 ms" }}
[dumbbell]
rate = {{ kind = "trace", file = "cell" {more} }}
rtt = "40 ms"
reverse = {{ rate = {{ kind = "trace", file = "cell" {more} }} }}
queue = {{ kind = "drop-tail", packets = 100 }}
[[flows]]
name = "down"
[[flows]]
name = "up"
from = "receiver"
to = "sender"
"#
    );
    run_on(&load(&text, &[("cell", &recording())]), 1).results
}

/// By run, the payload that each flow delivered.
fn delivered(results: &Results) -> Vec<Vec<u64>> {
    let flows = &results.tables.flows;
    let of = |run| flows.iter().filter(|row| row.run == run).map(|row| row.bytes).collect();
    (0..results.meta.runs).map(of).collect()
}

#[test]
fn repetitions_begin_at_random_moments_of_a_recorded_trace() {
    let repeated = delivered(&results(4, ""));
    for (i, one) in repeated.iter().enumerate() {
        assert!(repeated[..i].iter().all(|other| other != one), "run {i} repeats another: {repeated:?}");
    }
    // The same seed gives the same moments.
    assert_eq!(repeated, delivered(&results(4, "")));
}

#[test]
fn a_single_run_and_a_given_offset_begin_where_they_are_told() {
    let at = |runs, more: &str| delivered(&results(runs, more));
    let single = at(1, "");
    assert_eq!(single, at(1, ", offset = \"0 s\""));
    assert_eq!(at(2, ", offset = \"0 s\""), [&single[..], &single[..]].concat());
    let later = at(1, ", offset = \"5 s\"");
    assert_ne!(later, single);
    // A period later is the same moment.
    assert_eq!(later, at(1, ", offset = \"15 s\""));
}

#[test]
fn both_directions_of_a_run_begin_at_the_same_moment() {
    let results = results(3, "");
    for run in 0..3 {
        let fast = |link: &str| -> Vec<bool> {
            let rows = results.tables.queues.iter().filter(|row: &QueueRow<'_>| row.run == run && row.link == link);
            rows.map(|row| row.served_mbps > 3.0).collect()
        };
        let (down, up) = (fast("bottleneck"), fast("bottleneck-reverse"));
        let agree = down.iter().zip(&up).filter(|(down, up)| down == up).count();
        assert!(agree * 10 >= down.len() * 8, "run {run}: {agree} of {} samples agree", down.len());
    }
}

/// A cell that is good for the first half of a drive, and bad for the second one, as its SINR and as the rate of a link.
fn loaded_drive(runs: u32, offset: &str) -> Loaded {
    let text = format!(
        r#"
duration = "4 s"
runs = {runs}
record = {{ samples = "100 ms" }}
[lte]
server_delay = "5 ms"
[[lte.ues]]
name = "phone"
count = 2
channel = {{ kind = "recorded", files = {{ cell-1 = "drive.csv" }}, loss_db = 100{offset} }}
[[flows]]
name = "down"
to = "phone-1"
traffic = {{ kind = "cbr", rate = "60 Mbit/s" }}
"#
    );
    let mut drive = "time_s,cqi\n".to_owned();
    for second in 0..20 {
        let _ = writeln!(drive, "{second},{}", if second < 10 { 15 } else { 4 });
    }
    load(&text, &[("drive.csv", &drive)])
}

fn drive(runs: u32, offset: &str) -> (Results, Vec<String>) {
    let loaded = loaded_drive(runs, offset);
    let warnings = loaded.warnings().iter().map(ToString::to_string).collect();
    (run_on(&loaded, 2).results, warnings)
}

#[test]
fn repetitions_begin_at_random_moments_of_a_recorded_channel_which_are_those_of_all_ues() {
    let (results, warnings) = drive(8, "");
    assert_eq!(warnings, [""; 0]);
    let cqi = |run, ue: &str| -> Vec<u32> {
        let rows = results.tables.radio.iter().filter(|row| row.run == run && row.ue == ue && row.t_s > 0.2);
        rows.map(|row| row.cqi).collect()
    };
    let good = (0..8).filter(|run| cqi(*run, "phone-1")[0] == 15).count();
    assert!((1..8).contains(&good), "{good} of 8 runs begin in the good half");
    for run in 0..8 {
        assert_eq!(cqi(run, "phone-1"), cqi(run, "phone-2"), "run {run}");
    }
    // A single run begins at the beginning.
    let begins_well = |results: &Results| results.tables.radio.iter().all(|row| row.t_s < 0.2 || row.cqi == 15);
    assert!(begins_well(&drive(1, "").0));
    let (fixed, warnings) = drive(2, ", offset = \"0 s\"");
    assert!(begins_well(&fixed));
    assert!(matches!(&warnings[..], [one] if one.contains("not repetitions")), "{warnings:?}");
}

#[test]
fn a_run_begins_before_the_end_of_a_recorded_channel() {
    let checked = |offset: &str| sim::check(&loaded_drive(1, &format!(", offset = \"{offset}\"")));
    assert!(checked("19.9 s").is_ok());
    for offset in ["20 s", "200 s"] {
        let error = checked(offset).unwrap_err().to_string();
        let wanted = format!(
            "channel drive.csv: UE `phone-1`: the `offset` of {offset} must be before the recording's end, 20 s"
        );
        assert_eq!(error, wanted);
    }
}

#[test]
fn identical_runs_are_one_run_in_the_summary() {
    let fixed = results(3, ", offset = \"0 s\"");
    let point = &fixed.summary().points[0];
    assert!(point.identical_runs);
    let goodput = point.flows[0].goodput_mbps.expect("it delivered something");
    assert_eq!((goodput.n, goodput.ci95), (1, None));
    let point = &results(3, "").summary().points[0];
    assert!(!point.identical_runs);
    let goodput = point.flows[0].goodput_mbps.expect("it delivered something");
    assert_eq!(goodput.n, 3);
    assert!(goodput.ci95.is_some_and(|ci| ci > 0.0), "{goodput:?}");
}
