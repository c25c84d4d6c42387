//! Sweeps in progress: what is assembled from the jobs' files is what one run of all jobs writes.

#![allow(clippy::disallowed_methods)] // These tests are about files.

mod made_up;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use record::tables::RttRow;
use record::{Error, Job, MergeError, Output, Results, SweepDir, Tables, Timing, Unfinished, assemble};
use testkit::results::assert_same;

/// The tables of a job.
fn of_job(results: &Results, job: Job) -> Tables {
    let mut tables = Tables::default();
    macro_rules! copy {
        ($($table:ident)+) => {$(
            for row in results.tables.$table.iter().filter(|row| row.point == job.point && row.run == job.run) {
                tables.$table.push(&row);
            }
        )+};
    }
    copy!(flows samples rtts owds queues links events transfers ues radio mobility transmissions peps proxies);
    tables
}

/// The jobs of results with so many runs of each point.
fn jobs(results: &Results, runs: u32) -> Vec<Job> {
    let points = 0..results.meta.points.len() as u32;
    points.flat_map(|point| (0..runs).map(move |run| Job { point, run })).collect()
}

fn open(path: &Path, results: &Results, runs: u32) -> Result<SweepDir, Error> {
    SweepDir::open_or_create(path, &results.meta, &vec![runs; results.meta.points.len()], ["scenario".to_owned()])
}

/// What is left of all jobs, and what is said about damage.
fn left(sweep: &SweepDir) -> Unfinished {
    sweep.unfinished(&sweep.jobs(), &mut |_| true).unwrap().expect("it was not interrupted")
}

fn merged(parts: &[SweepDir], to: &Path) -> Result<(), Error> {
    let output = Output::create(to)?;
    let done = assemble(parts, &output, &mut |_| true)?;
    assert!(done.is_some(), "it was not interrupted");
    output.commit()
}

#[test]
fn jobs_in_any_order_and_in_several_directories_make_the_results_of_one_run() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let sweeps = [(made_up::sweep("A sweep", 3, 50), 3), (made_up::cells("Cells", 3, 200, 3), 3)];
    for (results, runs) in sweeps.into_iter().chain([(made_up::single("One job", 50), 1)]) {
        results.write(&at("whole")).unwrap();
        let dirs = [at("a"), at("b")];
        let parts: Vec<SweepDir> = dirs.iter().map(|dir| open(dir, &results, runs).unwrap()).collect();
        for (i, &job) in jobs(&results, runs).iter().rev().enumerate() {
            parts[i % 2].write(job, &of_job(&results, job), &Timing::default()).unwrap();
        }
        // One that both have is taken once.
        let twice = jobs(&results, runs)[0];
        parts.iter().for_each(|part| part.write(twice, &of_job(&results, twice), &Timing::default()).unwrap());
        merged(&parts, &at("merged")).unwrap();
        assert_same(&at("whole"), &at("merged"));
        parts.into_iter().for_each(|part| part.remove().unwrap());
        assert!(dirs.iter().all(|dir| !dir.exists()), "nothing is left of them");
    }
}

#[test]
fn tables_longer_than_a_batch_are_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let mut results = made_up::sweep("Long", 2, 10);
    let (jobs, texts) = (jobs(&results, 2), ["a", "bb", "ccc", "dddd", "eeeee"]);
    results.tables.rtts = Default::default();
    // 65,536 rows are a batch: jobs that end before, at and after it, one whose tables are read again between others, and names
    // that come late.
    for (i, job) in jobs.iter().enumerate() {
        let rows = [30_000, 1, 35_535, 65_536, 1][i.min(4)];
        for n in 0..rows {
            let flow = texts[(n as usize * 7 + i) % (i + 2).min(texts.len())];
            let row = RttRow { point: job.point, run: job.run, flow, conn: n, rtt_ms: f64::from(n % 977), count: 3 };
            results.tables.rtts.push(&row);
        }
    }
    results.write(&temp.path().join("whole")).unwrap();
    let part = open(&temp.path().join("jobs"), &results, 2).unwrap();
    jobs.iter().for_each(|&job| part.write(job, &of_job(&results, job), &Timing::default()).unwrap());
    merged(&[part], &temp.path().join("merged")).unwrap();
    assert_same(&temp.path().join("whole"), &temp.path().join("merged"));
}

#[test]
fn whoever_continues_finds_the_finished_jobs() {
    let temp = tempfile::tempdir().unwrap();
    let results = made_up::sweep("A sweep", 2, 10);
    let (path, all) = (temp.path().join("jobs"), jobs(&results, 2));
    let first = open(&path, &results, 2).unwrap();
    assert_eq!(first.jobs(), all);
    assert!(first.finished().unwrap().is_empty());
    first.write(all[2], &of_job(&results, all[2]), &Timing::default()).unwrap();
    // What a killed process leaves, and what is not a job's file.
    for name in [".0-0.tar.0123-0", "notes.txt", "007-0.tar", "99-0.tar", "0-99.tar"] {
        fs::write(path.join(name), "x").unwrap();
    }
    let again = open(&path, &results, 2).unwrap();
    assert_eq!(again.finished().unwrap().into_iter().collect::<Vec<_>>(), [all[2]]);
    assert_eq!(again.read_job(all[2]).unwrap().0, of_job(&results, all[2]));

    let output = Output::create(&temp.path().join("merged")).unwrap();
    let missing = assemble(&[again], &output, &mut |_| true).unwrap_err();
    assert!(matches!(&missing, Error::Merge(MergeError::Jobs { missing, .. }) if missing.len() == all.len() - 1));
    assert!(missing.to_string().starts_with("missing jobs: 0/0, 0/1"), "{missing}");
}

#[test]
fn directories_of_something_else_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let results = made_up::sweep("A sweep", 2, 10);
    let path = temp.path().join("jobs");
    open(&path, &results, 2).unwrap();
    let said = |error: Error| error.to_string();
    assert!(said(open(&path, &results, 1).unwrap_err()).contains("another sweep, with a different number of runs"));
    let mut other = made_up::sweep("A sweep", 2, 10);
    other.meta.seed += 1;
    assert!(said(open(&path, &other, 2).unwrap_err()).contains("with a different seed"));
    // More runs alone would be no other sweep, and are not what is wrong.
    let more = made_up::sweep("A sweep", 3, 10);
    let inputs = |runs: &[u32], what: &str| {
        SweepDir::open_or_create(&path, &more.meta, runs, ["scenario".to_owned(), what.to_owned()])
    };
    let runs = vec![3; more.meta.points.len()];
    assert!(said(inputs(&runs, "another channel").unwrap_err()).contains("parameter, trace or recorded channel"));
    let foreign = temp.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("notes.txt"), "x").unwrap();
    assert!(matches!(open(&foreign, &results, 2), Err(Error::Foreign { .. })));
    assert!(matches!(SweepDir::open(&foreign), Err(Error::NotSweep { .. })));
    let two = [open(&path, &results, 2).unwrap(), open(&temp.path().join("other"), &other, 2).unwrap()];
    let output = Output::create(&temp.path().join("merged")).unwrap();
    let error = assemble(&two, &output, &mut |_| true).unwrap_err();
    assert!(matches!(error, Error::Merge(MergeError::Different { part: 1, key: "seed" })), "{error}");
}

#[test]
fn damaged_files_of_jobs_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let results = made_up::sweep("A sweep", 1, 10);
    let path = temp.path().join("jobs");
    let sweep = open(&path, &results, 1).unwrap();
    let (one, two) = (Job { point: 0, run: 0 }, Job { point: 1, run: 0 });
    sweep.write(one, &of_job(&results, one), &Timing::default()).unwrap();
    let whole = fs::read(path.join("0-0.tar")).unwrap();
    let mut cases = vec![(one, "0-0.tar", Vec::new()), (one, "0-0.tar", whole[..whole.len() / 2].to_vec())];
    cases.extend([(one, "0-0.tar", vec![0xa5; 4096]), (two, "1-0.tar", whole.clone())]);
    for (job, name, bytes) in cases {
        fs::write(path.join(name), bytes).unwrap();
        let said = sweep.read_job(job).unwrap_err().to_string();
        assert!(said.contains(name) && said.contains("start the same sweep again to redo the job"), "{said}");
        let left = left(&sweep);
        assert!(left.jobs.contains(&job), "{name}");
        assert!(left.repairs.len() == 1 && left.repairs[0].ends_with(&format!("run again: {job}")), "{left:?}");
        fs::remove_file(path.join(name)).unwrap();
    }
    // Whichever byte is damaged, nothing panics, and whoever resumes finds what the merge would find.
    let mut found = 0;
    for at in (0..whole.len()).step_by(149) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        fs::write(path.join("0-0.tar"), bytes).unwrap();
        let is_damaged = matches!(sweep.read_job(one), Err(Error::Damaged { .. }));
        assert_eq!(left(&sweep).jobs.contains(&one), is_damaged, "byte {at}");
        found += usize::from(is_damaged);
    }
    assert!(found > 10, "{found}");
}

#[test]
fn damaged_jobs_that_run_again_make_the_results_of_one_run() {
    let temp = tempfile::tempdir().unwrap();
    let results = made_up::sweep("A sweep", 2, 10);
    results.write(&temp.path().join("whole")).unwrap();
    let (path, all) = (temp.path().join("jobs"), jobs(&results, 2));
    let write = |sweep: &SweepDir, job| sweep.write(job, &of_job(&results, job), &Timing::default()).unwrap();
    let sweep = open(&path, &results, 2).unwrap();
    all.iter().for_each(|&job| write(&sweep, job));
    assert_eq!(left(&sweep), Unfinished::default());
    let damaged = [all[0], all[2]];
    for job in damaged {
        let file = path.join(format!("{}-{}.tar", job.point, job.run));
        let cut = fs::metadata(&file).unwrap().len() / 3;
        fs::File::options().write(true).open(&file).unwrap().set_len(cut).unwrap();
    }
    let again = open(&path, &results, 2).unwrap();
    assert_eq!(again.unfinished(&all, &mut |_| false).unwrap(), None, "it stops when it is told to");
    assert_eq!(again.unfinished(&all[2..], &mut |_| true).unwrap().unwrap().jobs, [all[2]]);
    let found = left(&again);
    assert_eq!(found.jobs, damaged);
    let said = format!("jobs: files are damaged, and these jobs run again: {}", Job::list(&damaged));
    assert!(found.repairs.len() == 1 && found.repairs[0].ends_with(&said), "{found:?}");
    damaged.iter().for_each(|&job| write(&again, job));
    assert_eq!(left(&again), Unfinished::default());
    merged(&[again], &temp.path().join("merged")).unwrap();
    assert_same(&temp.path().join("whole"), &temp.path().join("merged"));
}

#[test]
fn a_lost_description_is_made_anew_if_a_job_tells_that_it_is_of_the_same_sweep() {
    let temp = tempfile::tempdir().unwrap();
    let results = made_up::sweep("A sweep", 2, 10);
    let (path, first) = (temp.path().join("jobs"), jobs(&results, 2)[0]);
    let sweep = open(&path, &results, 2).unwrap();
    let file = path.join("sweep.json");
    let whole = fs::read(&file).unwrap();
    let cut = whole[..whole.len() / 2].to_vec();

    // Without a job, nothing tells what the file was.
    fs::write(&file, &cut).unwrap();
    let said = open(&path, &results, 2).unwrap_err().to_string();
    assert!(said.contains("sweep.json is damaged") && said.contains("choose another directory, or remove"), "{said}");
    assert_eq!(fs::read(&file).unwrap(), cut, "it stays");

    sweep.write(first, &of_job(&results, first), &Timing::default()).unwrap();
    let mut other = made_up::sweep("A sweep", 2, 10);
    other.meta.seed += 1;
    for damaged in [None, Some(Vec::new()), Some(cut), Some(vec![0; 4096])] {
        match &damaged {
            None => fs::remove_file(&file).unwrap(),
            Some(bytes) => fs::write(&file, bytes).unwrap(),
        }
        // Not for another sweep, whose jobs would replace these.
        let said = open(&path, &other, 2).unwrap_err();
        assert!(matches!(said, Error::OtherSweep { .. }), "{said}");
        let again = open(&path, &results, 2).unwrap();
        assert_eq!(fs::read(&file).unwrap(), whole);
        let found = left(&again);
        assert!(!found.jobs.contains(&first) && found.jobs.len() == again.jobs().len() - 1);
        let said = "jobs/sweep.json: it was lost or damaged, and has been made anew";
        assert!(found.repairs.len() == 1 && found.repairs[0].ends_with(said), "{found:?}");
        assert_eq!(left(&open(&path, &results, 2).unwrap()).repairs, Vec::<String>::new());
    }

    // Who only merges does not know the scenario, and is told what to do.
    fs::write(&file, "{").unwrap();
    let said = SweepDir::open(&path).unwrap_err().to_string();
    assert!(said.contains("sweep.json is damaged") && said.contains("start the same sweep again"), "{said}");
    fs::remove_file(&file).unwrap();
    let error = SweepDir::open(&path).unwrap_err();
    assert!(matches!(error, Error::LostSweep { .. }), "{error}");
    assert!(error.to_string().contains("start the same sweep again to make it anew"), "{error}");
}

/// A sweep, and one that differs in its seed.
fn two_sweeps() -> (Results, Results) {
    let (results, mut other) = (made_up::sweep("A sweep", 2, 10), made_up::sweep("A sweep", 2, 10));
    other.meta.seed += 1;
    (results, other)
}

/// A directory with the finished jobs of a sweep.
fn finished(path: &Path, results: &Results) -> SweepDir {
    let sweep = open(path, results, 2).unwrap();
    sweep.jobs().iter().for_each(|&job| sweep.write(job, &of_job(results, job), &Timing::default()).unwrap());
    sweep
}

#[test]
fn a_description_that_can_be_read_wins_over_a_job_of_another_sweep() {
    let temp = tempfile::tempdir().unwrap();
    let (results, other) = two_sweeps();
    let (path, theirs) = (temp.path().join("jobs"), temp.path().join("theirs"));
    let (sweep, _) = (finished(&path, &results), finished(&theirs, &other));
    let (file, job) = (path.join("sweep.json"), path.join("0-0.tar"));
    let (whole, own) = (fs::read(&file).unwrap(), fs::read(&job).unwrap());
    fs::copy(theirs.join("0-0.tar"), &job).unwrap();
    let error = open(&path, &other, 2).unwrap_err();
    assert!(matches!(error, Error::OtherSweep { what: "seed", .. }), "{error}");
    assert_eq!(fs::read(&file).unwrap(), whole);

    // Its own sweep does not replace the job either; nor does any sweep if the description is lost.
    let again = open(&path, &results, 2).unwrap();
    let mut said = vec![again.unfinished(&again.jobs(), &mut |_| true).unwrap_err()];
    said.push(sweep.read_job(sweep.jobs()[0]).unwrap_err());
    fs::remove_file(&file).unwrap();
    said.push(open(&path, &results, 2).unwrap_err());
    for error in said {
        assert!(matches!(error, Error::NotJob { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("jobs/0-0.tar is a job of another sweep: move it away"), "{said}");
    }
    assert!(matches!(open(&path, &other, 2).unwrap_err(), Error::NotJob { .. }));
    assert!(!file.exists(), "nothing is written");
    fs::write(&job, own).unwrap();
    assert!(left(&open(&path, &results, 2).unwrap()).jobs.is_empty());
}

#[test]
fn fields_of_the_description_that_do_not_matter_damage_no_job() {
    let temp = tempfile::tempdir().unwrap();
    let (results, _) = two_sweeps();
    results.write(&temp.path().join("whole")).unwrap();
    let path = temp.path().join("jobs");
    finished(&path, &results);
    let file = path.join("sweep.json");
    let partial = "\"meta\": {\"partial\": {\"finished\": 1, \"of\": 4},";
    let changed = fs::read_to_string(&file).unwrap().replacen("\"meta\": {", partial, 1);
    assert!(changed.contains(partial));
    fs::write(&file, changed).unwrap();
    assert_eq!(left(&open(&path, &results, 2).unwrap()), Unfinished::default());
    merged(&[SweepDir::open(&path).unwrap()], &temp.path().join("merged")).unwrap();
    assert_same(&temp.path().join("whole"), &temp.path().join("merged"));
}

#[test]
fn an_entry_that_the_job_does_not_list_is_not_read() {
    let temp = tempfile::tempdir().unwrap();
    let (results, _) = two_sweeps();
    let path = temp.path().join("jobs");
    let sweep = finished(&path, &results);
    let (job, file) = (sweep.jobs()[0], path.join("0-0.tar"));
    let mut bytes = fs::read(&file).unwrap();
    // Two blocks of zeros end the archive.
    bytes.truncate(bytes.len() - 1024);
    // A name of any length is read into memory by those who interpret it.
    for kind in [tar::EntryType::Regular, tar::EntryType::GNULongName] {
        let mut header = tar::Header::new_ustar();
        header.set_path("more.parquet").unwrap();
        header.set_entry_type(kind);
        header.set_size(3 << 30);
        header.set_cksum();
        fs::write(&file, [&bytes[..], header.as_bytes()].concat()).unwrap();
        // Sparse: it takes no space on the disk.
        fs::File::options().write(true).open(&file).unwrap().set_len(bytes.len() as u64 + (3 << 30)).unwrap();
        let said = sweep.read_job(job).unwrap_err().to_string();
        assert!(said.contains("it holds \"more.parquet\", which job.json does not list"), "{said}");
        assert_eq!(left(&sweep).jobs, [job]);
    }
}

#[test]
fn links_pipes_and_sockets_are_replaced_and_anything_else_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let (results, _) = two_sweeps();
    let path = temp.path().join("jobs");
    let sweep = finished(&path, &results);
    let (job, file) = (sweep.jobs()[0], path.join("0-0.tar"));
    let elsewhere = temp.path().join("elsewhere.tar");
    fs::copy(&file, &elsewhere).unwrap();
    let link = || symlink(&elsewhere, &file).unwrap();
    let pipe = || assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let socket = || drop(UnixListener::bind(&file).unwrap());
    for make in [&link as &dyn Fn(), &pipe, &socket] {
        fs::remove_file(&file).unwrap();
        make();
        assert_eq!(left(&sweep).jobs, [job]);
        sweep.write(job, &of_job(&results, job), &Timing::default()).unwrap();
        assert!(left(&sweep).jobs.is_empty());
    }
    assert!(elsewhere.exists());

    let refused = |what: &str| {
        let error = sweep.unfinished(&sweep.jobs(), &mut |_| true).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, Error::NotJob { .. }) && said.contains(&format!("jobs/0-0.tar {what}")), "{said}");
        assert!(said.ends_with("move it away or remove it, and start the same sweep again"), "{said}");
    };
    fs::set_permissions(&file, fs::Permissions::from_mode(0o0)).unwrap();
    // Root may read it nevertheless.
    if fs::read(&file).is_err() {
        refused("cannot be read (Permission denied");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    refused("is a directory");
}

#[test]
fn without_description_and_readable_jobs_the_sweep_says_that_it_is_lost() {
    let temp = tempfile::tempdir().unwrap();
    let (results, _) = two_sweeps();
    let path = temp.path().join("jobs");
    let sweep = finished(&path, &results);
    fs::remove_file(path.join("sweep.json")).unwrap();
    for job in sweep.jobs() {
        fs::write(path.join(format!("{}-{}.tar", job.point, job.run)), "").unwrap();
    }
    let error = open(&path, &results, 2).unwrap_err();
    assert!(matches!(error, Error::LostSweep { .. }), "{error}");
    assert!(error.to_string().contains("no job tells what was run: choose another directory, or remove"), "{error}");
    // What no sweep has written is not to be removed with it.
    fs::write(path.join("notes.txt"), "x").unwrap();
    let error = open(&path, &results, 2).unwrap_err();
    assert!(matches!(&error, Error::Foreign { entry, .. } if entry == "notes.txt"), "{error}");
}
