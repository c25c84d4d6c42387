//! The claims about queues above RLC, on one short run of the scenario that answers them at full length.

use super::{experiment, judge, measured, paper, row, run};
use reproduce::Verdict;

#[test]
fn byte_queue_limits_and_fq_codel_take_half_of_the_delay() {
    let paper = paper("backlog");
    let experiment = experiment(&paper, "single_ue");
    let results = run(experiment, &["runs=1", "duration=\"15 s\""], 1);
    let (rows, _) = judge(&paper, experiment, &results);
    let reduced = |flows| measured(&rows, "bql+fq_codel / none", flows, "median one-way delay reduced by");
    // Published: 50 and 60 %.
    let (up, down) = (reduced("UL flows"), reduced("DL flows"));
    assert!((50.0..65.0).contains(&up) && (56.0..64.0).contains(&down), "{up} {down}");
    let row = row(&rows, "bql+fq_codel / none", "DL flows", "median one-way delay reduced by");
    assert_eq!(row.verdict, Verdict::Held, "{row:?}");
}
