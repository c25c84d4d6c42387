//! Delays of links that change, as on paths over satellites.

use crate::common::{load, run_on};
use record::tables::FlowRow;
use std::fmt::Write as _;

/// Runs of a packet each 10 ms for a minute: the 5th, 50th and 95th percentile of the one-way delay (ms) of each.
fn delays(runs: u32, delay: &str, files: &[(&str, &str)]) -> Vec<[f64; 3]> {
    let text = format!(
        "duration = \"60 s\"\nruns = {runs}\n[[links]]\nname = \"satellite\"\nfrom = \"dish\"\nto = \"gateway\"\ndelay = {delay}\n\
         [[flows]]\nname = \"f\"\nfrom = \"dish\"\nto = \"gateway\"\n\
         traffic = {{ kind = \"cbr\", rate = \"80 kbit/s\", packet = \"100 B\" }}\n"
    );
    let tables = run_on(&load(&text, files), 1).results.tables;
    let of = |row: FlowRow<'_>| {
        assert_eq!(row.lost_packets, Some(0));
        [row.owd_p5_ms, row.owd_p50_ms, row.owd_p95_ms].map(|ms| ms.expect("packets arrive"))
    };
    tables.flows.iter().map(of).collect()
}

/// Percentiles are of buckets a hundredth wide.
fn are_near(found: [f64; 3], wanted: [f64; 3]) {
    for (found, wanted) in found.into_iter().zip(wanted) {
        assert!((found / wanted - 1.0).abs() < 0.011, "{found} for {wanted}");
    }
}

#[test]
fn a_delay_changes_at_its_times() {
    let steps = r#"{ kind = "steps", steps = [["0 s", "40 ms"], ["15 s", "14 ms"], ["51 s", "22 ms"]] }"#;
    are_near(delays(1, steps, &[])[0], [14.0, 14.0, 40.0]);
}

#[test]
fn a_recorded_delay_repeats_and_begins_where_it_is_told() {
    // 20 ms for 8 s and 30 ms for 8 s, again and again; in the minute, 20 ms for 32 s.
    let orbit = [("orbit.csv", "time_s,rtt_ms\n0,40\n8,60\n")];
    are_near(delays(1, r#"{ kind = "trace", file = "orbit.csv" }"#, &orbit)[0], [20.0, 20.0, 30.0]);
    are_near(delays(1, r#"{ kind = "trace", file = "orbit.csv", offset = "8 s" }"#, &orbit)[0], [20.0, 30.0, 30.0]);
}

#[test]
fn repetitions_begin_at_random_moments_of_a_recorded_delay() {
    let mut recording = String::from("time_s,delay_ms\n");
    (0..100).for_each(|minute| {
        let _ = writeln!(recording, "{},{}", 60 * minute, 20 + minute);
    });
    let mut medians: Vec<u64> = delays(5, r#"{ kind = "trace", file = "orbit.csv" }"#, &[("orbit.csv", &recording)])
        .iter()
        .map(|[_, median, _]| *median as u64)
        .collect();
    medians.sort_unstable();
    medians.dedup();
    assert!(medians.len() > 2, "{medians:?}");
}
