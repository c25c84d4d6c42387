//! Lists of jobs: what they run, which are refused, and how their results become those of the whole.

use crate::common::{load, run_on};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use record::{MergeError, Results, Table, merge};
use scenario::Loaded;
use sim::{Batch, Job, Options, Outcome};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    let stop = AtomicBool::new(false);
    let options = Options::new(threads, &stop, &|_| {});
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
fn batches_together_give_what_each_gives_alone_in_their_order() {
    let (lossy, short) = (load(SWEPT, &[]), load(&SWEPT.replace("3 s", "1 s"), &[]));
    // The second one, and the empty one, finish first.
    let lists = [sim::jobs(&lossy), vec![], sim::jobs(&short), vec![job(1, 2)]];
    let scenarios = [&lossy, &lossy, &short, &lossy];
    let batches: Vec<Batch> =
        scenarios.iter().zip(&lists).map(|(loaded, jobs)| Batch::of(loaded, jobs.clone()).unwrap()).collect();
    for threads in [1, 5] {
        let stop = AtomicBool::new(false);
        let options = Options::new(threads, &stop, &|_| {});
        let mut outcomes = Vec::new();
        sim::run_all(&batches, &options, |number, outcome| {
            assert_eq!(number, outcomes.len());
            outcomes.push(outcome);
            Ok::<(), sim::Error>(())
        })
        .unwrap();
        assert_eq!(outcomes.len(), batches.len());
        for ((outcome, loaded), jobs) in outcomes.iter().zip(scenarios).zip(&lists) {
            let alone = run_list(loaded, jobs, 1);
            assert!(outcome.results.tables == alone.results.tables && outcome.results.meta == alone.results.meta);
            assert_eq!((outcome.finished, outcome.runs), (jobs.len() as u64, jobs.len() as u64));
        }
    }
}

#[test]
fn an_error_of_whoever_takes_the_outcomes_ends_all() {
    let loaded = load(SWEPT, &[]);
    let batches = vec![Batch::all(&loaded); 200];
    let (stop, ran) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |progress: sim::Progress| {
        ran.fetch_max(progress.runs_done, Ordering::Relaxed);
    };
    let options = Options::new(2, &stop, &progress);
    #[derive(Debug)]
    struct Enough;
    impl From<sim::Error> for Enough {
        fn from(error: sim::Error) -> Enough {
            panic!("{error}")
        }
    }
    let outcome = sim::run_all(&batches, &options, |number, _| if number == 1 { Err(Enough) } else { Ok(()) });
    assert!(outcome.is_err());
    let ran = ran.into_inner();
    assert!((12..600).contains(&ran), "{ran} of 1200 jobs have run");
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

/// The bytes of every file that results consist of, but for the timing.
fn bytes(results: &Results) -> BTreeMap<String, Vec<u8>> {
    let mut files = results.to_files().unwrap();
    files.remove("timing.json").expect("there is a timing");
    files.insert("summary.json".to_owned(), serde_json::to_vec(&results.summary()).unwrap());
    files
}

/// `jobs` in a random number of lists, in random order.
fn split(jobs: &[Job], random: &mut Xoshiro256PlusPlus) -> Vec<Vec<Job>> {
    let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
    let mut lists = vec![Vec::new(); 1 + below(jobs.len() + 1)];
    for &job in jobs {
        let list = below(lists.len());
        let place = below(lists[list].len() + 1);
        lists[list].insert(place, job);
    }
    lists
}

#[test]
fn lists_of_jobs_merge_into_the_bytes_of_a_single_run() {
    let short = SWEPT.replace("duration = \"3 s\"", "duration = \"1 s\"");
    let recorded = short.replace("seed = 5", "seed = 5\nrecord = { samples = \"100 ms\", events = true }");
    let unequal = short.replace("\"dumbbell.loss\" =", "runs = [2, 4]\n\"dumbbell.loss\" =");
    for text in [&recorded, &unequal] {
        let loaded = load(text, &[]);
        let whole = run_on(&loaded, 2).results;
        let expected = bytes(&whole);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
        for _ in 0..4 {
            let lists = split(&sim::jobs(&loaded), &mut random);
            let parts: Vec<Results> = lists.iter().map(|list| run_list(&loaded, list, 2).results).collect();
            let mut merged = merge(&parts.iter().collect::<Vec<_>>()).unwrap();
            assert!(bytes(&merged) == expected, "the bytes differ for {lists:?}");
            assert_eq!(merged.timing.events, whole.timing.events);

            // As they come from other processes.
            let sent = |part: &Results| Results::from_files(part.to_files().unwrap()).unwrap();
            let received: Vec<Results> = parts.iter().rev().map(sent).collect();
            merged = merge(&received.iter().collect::<Vec<_>>()).unwrap();
            assert!(bytes(&merged) == expected, "the bytes of parts that were sent differ for {lists:?}");
        }
    }
}

#[test]
fn missing_and_repeated_jobs_are_named() {
    let loaded = load(SWEPT, &[]);
    let part = |jobs: &[Job]| run_list(&loaded, jobs, 1).results;
    let (a, b) = (part(&[job(0, 0), job(1, 2)]), part(&[job(1, 0), job(0, 0), job(1, 2)]));
    let error = merge(&[&b, &a]).unwrap_err();
    assert_eq!(error.to_string(), "missing jobs: 0/1, 0/2, 1/1; jobs in more than one of the results: 0/0, 1/2");
    assert_eq!(merge(&[&a]).unwrap_err().to_string(), "missing jobs: 0/1, 0/2, 1/0, 1/1");

    let whole = run_on(&loaded, 1).results;
    assert_eq!(merge(&[&whole]).unwrap(), whole);
    let said = merge(&[&whole, &a]).unwrap_err().to_string();
    assert_eq!(said, "jobs in more than one of the results: 0/0, 1/2");
    assert!(matches!(merge(&[&whole, &whole]), Err(MergeError::Jobs { repeated, .. }) if repeated.len() == 6));
}

#[test]
fn results_that_do_not_belong_together_are_refused() {
    let of = |text: &str, jobs: &[Job]| run_list(&load(text, &[]), jobs, 1).results;
    let first = of(SWEPT, &[job(0, 0)]);
    let rest = [job(0, 1), job(0, 2), job(1, 0), job(1, 1), job(1, 2)];
    let differs = |text: &str| merge(&[&first, &of(text, &rest)]).unwrap_err();
    assert_eq!(differs(&SWEPT.replace("seed = 5", "seed = 6")), MergeError::Different { part: 1, key: "seed" });
    assert_eq!(differs(&SWEPT.replace("0.01]", "0.02]")), MergeError::Different { part: 1, key: "points" });
    assert_eq!(differs(&SWEPT.replace("40 ms", "41 ms")), MergeError::Different { part: 1, key: "scenario" });
    assert_eq!(merge(&[]), Err(MergeError::Empty));

    let mut unnamed = of(SWEPT, &rest);
    let partial = unnamed.meta.partial.as_mut().unwrap();
    (partial.jobs, partial.runs) = (Vec::new(), Vec::new());
    assert_eq!(merge(&[&first, &unnamed]), Err(MergeError::Unnamed { part: 1 }));

    let mut damaged = of(SWEPT, &rest);
    damaged.tables.append(first.tables.clone());
    assert_eq!(merge(&[&first, &damaged]), Err(MergeError::Damaged { part: 1, table: "flows" }));
}
