//! The claims about queues above RLC, on one short run of the scenario that answers them at full length.

use super::{experiment, judge, paper, run};
use reproduce::Verdict;

#[test]
fn byte_queue_limits_and_fq_codel_take_half_of_the_delay() {
    let paper = paper("backlog");
    let experiment = experiment(&paper, "single_ue");
    let results = run(experiment, &["runs=1", "duration=\"15 s\""], 1);
    let (rows, _) = judge(&paper, experiment, &results);
    let reduced: Vec<_> = rows.iter().filter(|row| row.metric == "median one-way delay reduced by").collect();
    assert_eq!(reduced.len(), 2);
    assert!(reduced.iter().all(|row| row.verdict == Verdict::Held), "{reduced:?}");
}
