//! The claims about queues above RLC, on one short run of the scenario that answers them at full length.

#![allow(missing_docs, reason = "a test binary")]

use reproduce::{Verdict, compare, draw, papers};
use std::sync::atomic::AtomicBool;

#[test]
fn byte_queue_limits_and_fq_codel_take_half_of_the_delay() {
    let papers = papers();
    let paper = papers.iter().find(|p| p.name == "backlog").expect("the paper is there");
    let experiment = paper.experiments.iter().find(|e| e.name == "single_ue").expect("the experiment is there");
    let set = ["runs=1".to_owned(), "duration=\"15 s\"".to_owned()];
    let loaded = experiment.load(&set).unwrap_or_else(|e| panic!("{e}")).expect("it has a scenario");
    let stop = AtomicBool::new(false);
    let options = sim::Options::new(1, &stop, &|_| {});
    let results = sim::run(&loaded, &options).unwrap_or_else(|e| panic!("{e}")).results;
    assert_eq!(draw(paper, experiment, &results).len(), experiment.figures.len());
    let rows = compare(paper, experiment, Some(&results));
    let reduced: Vec<_> = rows.iter().filter(|row| row.metric == "median one-way delay reduced by").collect();
    assert_eq!(reduced.len(), 2);
    assert!(reduced.iter().all(|row| row.verdict == Verdict::Held), "{reduced:?}");
}
