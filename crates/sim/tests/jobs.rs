//! Lists of jobs: what they run, and which are refused.

#![allow(missing_docs, reason = "a test binary")]

mod common;

use common::{load, run_on};
use record::Table;
use scenario::Loaded;
use sim::{Batch, Job, Options, Outcome};
use std::sync::atomic::AtomicBool;

/// Two points of three runs each, with random losses.
const SWEPT: &str = r#"
title = "Lossy"
duration = "3 s"
runs = 3
seed = 5
[sweep]
"dumbbell.loss" = [0.001, 0.01]
[dumbbell]
rate = "5 Mbit/s"
rtt = "40 ms"
[[flows]]
name = "a"
[[flows]]
name = "b"
cc = "bbr"
"#;

fn job(point: u32, run: u32) -> Job {
    Job { point, run }
}

fn run_list(loaded: &Loaded, jobs: &[Job], threads: usize) -> Outcome {
    let options = Options { jobs: threads, stop: &AtomicBool::new(false), progress: &|_| {}, output: None };
    Batch::of(loaded, jobs.to_vec()).unwrap().run(&options).unwrap()
}

#[test]
fn the_jobs_of_a_scenario_are_all_runs_of_all_points_in_order() {
    let jobs = sim::jobs(&load(SWEPT, &[]));
    assert_eq!(jobs, [job(0, 0), job(0, 1), job(0, 2), job(1, 0), job(1, 1), job(1, 2)]);
    let unequal = load(&SWEPT.replace("\"dumbbell.loss\" = [0.001, 0.01]", "runs = [1, 2]"), &[]);
    assert_eq!(sim::jobs(&unequal), [job(0, 0), job(1, 0), job(1, 1)]);
}

#[test]
fn a_list_gives_the_rows_that_its_jobs_have_in_the_whole() {
    let loaded = load(SWEPT, &[]);
    let whole = run_on(&loaded, 2).results.tables;
    // Out of order, as a list may be.
    let list = [job(1, 2), job(0, 1), job(1, 0)];
    let outcome = run_list(&loaded, &list, 1);
    assert_eq!((outcome.finished, outcome.runs), (3, 3));
    let tables = &outcome.results.tables;
    let expected: Vec<_> = whole.flows.iter().filter(|row| list.contains(&job(row.point, row.run))).collect();
    assert_eq!(tables.flows.iter().collect::<Vec<_>>(), expected);
    assert!(*tables == run_list(&loaded, &list, 3).results.tables, "the number of threads changes the tables");
}

#[test]
fn results_of_some_jobs_name_them_and_those_of_all_are_complete() {
    let loaded = load(SWEPT, &[]);
    let partial = run_list(&loaded, &[job(1, 2), job(0, 1)], 1).results.meta.partial.unwrap();
    assert_eq!((partial.finished, partial.of), (2, 6));
    assert_eq!((partial.jobs, partial.runs), (vec![job(0, 1), job(1, 2)], vec![3, 3]));

    let whole = run_on(&loaded, 1).results;
    let all = run_list(&loaded, &sim::jobs(&loaded), 1).results;
    assert!(all.meta == whole.meta && all.tables == whole.tables && whole.meta.partial.is_none());
}

#[test]
fn no_jobs_give_empty_tables() {
    let outcome = run_list(&load(SWEPT, &[]), &[], 1);
    assert_eq!((outcome.finished, outcome.runs), (0, 0));
    assert!(outcome.results.tables.is_empty() && outcome.results.tables.flows.is_empty());
    assert_eq!(outcome.results.meta.partial.unwrap().of, 6);
}

#[test]
fn jobs_out_of_range_and_repeated_ones_are_one_error_that_names_them() {
    let loaded = load(SWEPT, &[]);
    let says = |jobs: &[Job]| Batch::of(&loaded, jobs.to_vec()).unwrap_err().to_string();
    let range = "(points: 2, runs of each: 3, both numbered from 0)";
    assert_eq!(says(&[job(0, 3)]), format!("jobs out of range: 0/3 {range}"));
    assert_eq!(says(&[job(0, 1), job(1, 1), job(0, 1), job(0, 1)]), "jobs listed more than once: 0/1");
    let both = says(&[job(2, 0), job(1, 0), job(0, 7), job(1, 0)]);
    assert_eq!(both, format!("jobs out of range: 0/7, 2/0 {range}; jobs listed more than once: 1/0"));

    let unequal = load(&SWEPT.replace("\"dumbbell.loss\" = [0.001, 0.01]", "runs = [1, 2]"), &[]);
    let said = Batch::of(&unequal, vec![job(0, 1)]).unwrap_err().to_string();
    assert_eq!(said, "jobs out of range: 0/1 (points: 2, runs of each: 1 to 2, both numbered from 0)");
}
