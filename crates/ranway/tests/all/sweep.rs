//! `ranway sweep` and `ranway merge` as a user runs them: whatever is killed, the results are those of `ranway run`.

use crate::common::{command, eventually, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use testkit::ends::Ends as _;
use testkit::results::{assert_same, names};

/// Twelve jobs of some tens of milliseconds.
const SWEEP: &str = "title = 'loss'\nduration = '20 s'\nruns = 4\n[dumbbell]\nrate = '20 Mbit/s'\nrtt = '40 ms'\n\
                     [sweep]\n'dumbbell.loss' = [0, 1e-3, 1e-2]\n[[flows]]\nname = 'f'\ncc = 'cubic'\ncount = 2\n";

fn scratch() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("s.toml"), SWEEP).expect("written");
    dir
}

fn run(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().expect("it runs")
}

/// Runs what must succeed. Returns its standard output and standard error.
fn succeed(dir: &Path, args: &[&str]) -> (String, String) {
    let output = run(dir, args);
    assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// Runs what must be refused with exit code 2. Returns its message.
fn refused(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn a_sweep_writes_what_a_run_writes() {
    let dir = scratch();
    succeed(dir.path(), &["run", "s.toml", "--out", "run"]);
    let (out, _) = succeed(dir.path(), &["sweep", "s.toml", "--out", "sweep"]);
    assert!(out.contains("240 s simulated in ") && out.contains("report: sweep/report.html"), "{out}");
    assert_same(&dir.path().join("run"), &dir.path().join("sweep"));
    assert_eq!(names(dir.path()), ["run", "s.toml", "sweep"]);
    // Again: earlier results are replaced.
    succeed(dir.path(), &["sweep", "s.toml", "--out", "sweep", "--quiet", "--jobs", "1"]);
    assert_same(&dir.path().join("run"), &dir.path().join("sweep"));
}

#[test]
fn shards_of_several_machines_are_merged() {
    let dir = scratch();
    succeed(dir.path(), &["run", "s.toml", "--out", "run"]);
    // Two share a directory, the third has its own.
    let (out, _) = succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "1/3"]);
    assert!(out.contains("shard 1/3: its 4 jobs have finished; of all shards, 4 of 12"), "{out}");
    assert!(out.contains("ranway merge") && out.contains("a.sweep"), "{out}");
    succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "3/3"]);
    let said = refused(dir.path(), &["merge", "a.sweep"]);
    assert_eq!(said, "error: missing jobs: 0/1, 1/0, 1/3, 2/2\n");
    assert!(!dir.path().join("a").exists());
    succeed(dir.path(), &["sweep", "s.toml", "--out", "b", "--shard", "2/3"]);
    succeed(dir.path(), &["merge", "a.sweep", "b.sweep", "--out", "merged"]);
    assert_same(&dir.path().join("run"), &dir.path().join("merged"));
    assert_eq!(names(dir.path()), ["merged", "run", "s.toml"]);
}

/// Starts a sweep, sends it `signal` once some jobs have finished, and returns its exit code.
fn stopped(dir: &Path, signal: Signal) -> Option<i32> {
    let args = ["sweep", "s.toml", "--out", "sweep", "--jobs", "1", "--set", "duration=120 s"];
    let mut child = command(dir, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let jobs = || names(&dir.join("sweep.sweep")).iter().filter(|name| name.ends_with(".tar")).count();
    eventually("two jobs have finished", || dir.join("sweep.sweep").exists() && jobs() >= 2);
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
    child.ends().code()
}

#[test]
fn a_stopped_sweep_is_resumed_without_running_finished_jobs_again() {
    let dir = scratch();
    succeed(dir.path(), &["run", "s.toml", "--out", "run", "--set", "duration=120 s"]);
    for (signal, code) in [(Signal::SIGINT, Some(130)), (Signal::SIGKILL, None)] {
        assert_eq!(stopped(dir.path(), signal), code);
        assert!(!dir.path().join("sweep").exists(), "nothing half-written");
    }
    let place = dir.path().join("sweep.sweep");
    let modified = |name: &String| fs::metadata(place.join(name)).expect("it is there").modified().expect("a time");
    let finished: Vec<_> = names(&place).into_iter().filter(|name| name.ends_with(".tar")).collect();
    let before: Vec<_> = finished.iter().map(modified).collect();
    let args = ["sweep", "s.toml", "--out", "sweep", "--set", "duration=120 s", "--keep"];
    let (_, said) = succeed(dir.path(), &args);
    assert!(said.contains(&format!("{} of 12 jobs have finished before", finished.len())), "{said}");
    assert_eq!(finished.iter().map(modified).collect::<Vec<_>>(), before);
    assert_same(&dir.path().join("run"), &dir.path().join("sweep"));
}

#[test]
fn a_sweep_that_was_kept_grows_by_the_new_runs_alone() {
    let dir = scratch();
    let more = |runs: &'static str| ["sweep", "s.toml", "--out", "a", "--keep", "--runs", runs];
    succeed(dir.path(), &more("2"));
    let (_, said) = succeed(dir.path(), &more("5"));
    assert!(said.contains("6 of 15 jobs have finished before"), "{said}");
    let (_, said) = succeed(dir.path(), &more("6"));
    assert!(said.contains("15 of 18 jobs have finished before"), "{said}");
    succeed(dir.path(), &["run", "s.toml", "--out", "run", "--runs", "6"]);
    assert_same(&dir.path().join("run"), &dir.path().join("a"));
    // It does not shrink, and one run is another thing than the first of several.
    let said = refused(dir.path(), &more("3"));
    assert!(said.contains("with a different number of runs"), "{said}");
    succeed(dir.path(), &["sweep", "s.toml", "--out", "b", "--keep", "--runs", "1"]);
    let said = refused(dir.path(), &["sweep", "s.toml", "--out", "b", "--runs", "2"]);
    assert!(said.contains("with a different "), "{said}");
    // Another loss is another sweep.
    let said = refused(dir.path(), &["sweep", "s.toml", "--out", "a", "--runs", "9", "--set", "dumbbell.rtt=50 ms"]);
    assert!(said.contains("with a different "), "{said}");
}

#[test]
fn a_table_of_means_comes_as_text_csv_and_latex_and_as_paired_differences() {
    let dir = scratch();
    let (out, _) = succeed(dir.path(), &["sweep", "s.toml", "--out", "a"]);
    let (text, _) = succeed(dir.path(), &["table", "a"]);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains("goodput Mbit/s") && text.contains(" ± "), "{text}");
    assert!(out.contains("dumbbell.loss = 0.01"), "{out}");
    let (csv, _) = succeed(dir.path(), &["table", "a", "--figures", "goodput_mbps", "--format", "csv"]);
    let head = csv.lines().next().expect("a head");
    assert_eq!(head, "dumbbell.loss,flow,cc,goodput_mbps,goodput_mbps_ci95,goodput_mbps_n");
    let goodput = |line: &str| line.split(',').nth(3).and_then(|number| number.parse::<f64>().ok()).expect("a number");
    let rates: Vec<f64> = csv.lines().skip(1).map(goodput).collect();
    assert!(rates[0] > rates[1] && rates[1] > rates[2], "{csv}");
    let paired = ["table", "a", "--figures", "goodput_mbps", "--format", "csv", "--against", "loss=0.0"];
    let (csv, _) = succeed(dir.path(), &paired);
    assert_eq!(csv.matches("dumbbell.loss=0.0,").count(), 2, "{csv}");
    let differences: Vec<f64> = csv.replace("dumbbell.loss=0.0,", "").lines().skip(1).map(goodput).collect();
    assert_eq!(differences.len(), 2, "{csv}");
    assert!((differences[1] - (rates[2] - rates[0])).abs() < 1e-9, "{csv}");
    succeed(dir.path(), &["table", "a", "--format", "latex", "--out", "a.tex"]);
    let tex = fs::read_to_string(dir.path().join("a.tex")).expect("it is written");
    assert!(tex.contains("\\begin{tabular}{lll") && tex.contains("$\\pm$"), "{tex}");
    for (args, what) in [
        (["table", "a", "--figures", "goodput"], "there is no figure `goodput`: there are goodput_mbps, "),
        (["table", "a", "--against", "loss=1"], "`dumbbell.loss` is never 1: it is 0, 0.001, 0.01"),
        (["table", "a", "--against", "rate=1"], "`rate` is not one of the swept keys: dumbbell.loss"),
        (["table", "a", "--against", "loss"], "expected a swept key and one of its values, such as cc=cubic"),
    ] {
        let said = refused(dir.path(), &args);
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn damaged_jobs_are_named_by_the_merge_and_run_again_by_the_sweep() {
    let dir = scratch();
    let place = dir.path().join("a.sweep");
    succeed(dir.path(), &["run", "s.toml", "--out", "run"]);
    let shard = ["sweep", "s.toml", "--out", "a", "--shard", "1/1"];
    succeed(dir.path(), &shard);
    let whole = fs::read(place.join("1-2.tar")).expect("a job's file");
    let mut flipped = whole.clone();
    // In a table: a file has bytes that mean nothing, too.
    flipped[whole.windows(4).position(|bytes| bytes == b"PAR1").expect("a table")] ^= 1;
    for damaged in [Vec::new(), whole[..whole.len() / 2].to_vec(), vec![0; whole.len()], flipped] {
        fs::write(place.join("1-2.tar"), damaged).expect("written");
        let output = run(dir.path(), &["merge", "a.sweep"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("a.sweep/1-2.tar is damaged") && said.contains("start the same sweep again"), "{said}");
        assert!(said.lines().count() == 1 && !dir.path().join("a").exists(), "{said}");
        let (_, said) = succeed(dir.path(), &shard);
        assert!(said.contains("a.sweep: files are damaged, and these jobs run again: 1/2\n"), "{said}");
        assert!(said.contains("11 of 12 jobs have finished before"), "{said}");
    }
    // Without a shard, the same command makes the results as well.
    fs::write(place.join("0-0.tar"), "").expect("written");
    let (_, said) = succeed(dir.path(), &["sweep", "s.toml", "--out", "a"]);
    assert!(said.contains("these jobs run again: 0/0\n"), "{said}");
    assert_same(&dir.path().join("run"), &dir.path().join("a"));
}

#[test]
fn a_sweep_makes_a_lost_description_anew() {
    let dir = scratch();
    let file = dir.path().join("a.sweep/sweep.json");
    succeed(dir.path(), &["run", "s.toml", "--out", "run"]);
    succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "1/2"]);
    fs::remove_file(&file).expect("removed");
    let said = refused(dir.path(), &["merge", "a.sweep"]);
    assert!(said.contains("a.sweep holds jobs, but its sweep.json is lost: start the same sweep again"), "{said}");
    let said = refused(dir.path(), &["sweep", "s.toml", "--out", "a", "--seed", "9"]);
    assert!(said.contains("jobs of another sweep, with a different scenario, seed"), "{said}");
    let (_, said) = succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "1/2"]);
    assert!(said.contains("sweep.json: it was lost or damaged, and has been made anew\n"), "{said}");
    assert!(said.contains("6 of 6 jobs have finished before"), "{said}");
    fs::write(&file, "{\"format\": 1, ").expect("written");
    let (_, said) = succeed(dir.path(), &["sweep", "s.toml", "--out", "a"]);
    assert!(said.contains("made anew") && said.contains("6 of 12 jobs have finished before"), "{said}");
    assert_same(&dir.path().join("run"), &dir.path().join("a"));
}

#[test]
fn shards_with_other_parameters_are_not_mixed_and_foreign_files_stay() {
    let dir = scratch();
    let with =
        SWEEP.replace("[0, 1e-3, 1e-2]", "[0, '${loss}']").replace("[sweep]", "[parameters]\nloss = 1e-3\n[sweep]");
    fs::write(dir.path().join("s.toml"), with).expect("written");
    succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "1/2"]);
    let other = ["sweep", "s.toml", "--out", "a", "--shard", "2/2", "--set", "loss=1e-2"];
    let said = refused(dir.path(), &other);
    assert!(said.contains("with a different parameter, trace or recorded channel"), "{said}");
    succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "2/2"]);
    fs::write(dir.path().join("a.sweep/thesis.tex"), "x").expect("written");
    let (_, said) = succeed(dir.path(), &["merge", "a.sweep", "a.sweep"]);
    assert!(said.contains("warning: "), "{said}");
    assert_eq!(names(&dir.path().join("a.sweep")), ["thesis.tex"]);
}

#[test]
fn what_cannot_be_meant_is_refused_in_one_line() {
    let dir = scratch();
    for shard in ["0/3", "4/3", "3", "a/b", "1/0"] {
        let said = refused(dir.path(), &["sweep", "s.toml", "--shard", shard]);
        assert!(said.contains("expected I/N with I from 1 to N, as in 3/20"), "{said}");
    }
    fs::create_dir(dir.path().join("empty")).expect("made");
    assert!(refused(dir.path(), &["merge", "empty"]).contains("empty holds no jobs of a sweep (no sweep.json)"));
    for name in ["nodir", "s.toml"] {
        let said = refused(dir.path(), &["merge", name]);
        assert!(said.starts_with("error: cannot use ") && said.contains(name) && said.lines().count() == 1, "{said}");
    }
    let (out, _) = succeed(dir.path(), &["sweep", "s.toml", "--out", "one", "--shard", "1/12"]);
    assert!(out.contains("shard 1/12: its job has finished; of all shards, 1 of 12"), "{out}");
    fs::remove_dir_all(dir.path().join("one.sweep")).expect("removed");
    // The page's address is wrong: no directory for the jobs is made.
    refused(dir.path(), &["sweep", "s.toml", "--out", "deep/q", "--dashboard", "192.0.2.1:80"]);
    succeed(dir.path(), &["sweep", "s.toml", "--out", "a", "--shard", "1/3"]);
    let other = ["sweep", "s.toml", "--out", "a", "--shard", "2/3", "--seed", "9"];
    assert!(refused(dir.path(), &other).contains("a.sweep holds jobs of another sweep, with a different seed"));
    let inside = ["merge", "a.sweep", "--out", "a.sweep/results"];
    assert!(refused(dir.path(), &inside).contains("it is inside"));
    assert!(refused(dir.path(), &["sweep", "s.toml", "--out", "."]).contains("it has no name"));
    fs::write(dir.path().join("b.sweep"), "").expect("written");
    for args in
        [&["--out", "s.toml"][..], &["--out", "s.toml/x"], &["--out", "s.toml", "--shard", "1/2"], &["--out", "b"]]
    {
        let said = refused(dir.path(), &[&["sweep", "s.toml"][..], args].concat());
        let file = if args == ["--out", "b"] { "b.sweep" } else { "s.toml" };
        assert!(said.contains(&format!("{file}: Not a directory")) && said.lines().count() == 1, "{said}");
        assert!(said.contains("it is a file; choose a directory that is new, is empty or holds results"), "{said}");
    }
    fs::remove_file(dir.path().join("b.sweep")).expect("removed");
    let pcap = ["sweep", "s.toml", "--out", "p", "--set", "record.pcap=[\"*\"]"];
    assert!(refused(dir.path(), &pcap).contains("record.pcap: a sweep writes no captures"));
    assert_eq!(names(dir.path()), ["a.sweep", "empty", "s.toml"]);
    fs::rename(dir.path().join("a.sweep"), dir.path().join("moved")).expect("renamed");
    assert!(refused(dir.path(), &["merge", "moved"]).contains("choose the output directory with --out"));
}
