//! The command as a user meets it: what it prints, writes and refuses, and its exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;

fn ranway(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ranway")).args(args).current_dir(dir).output().expect("the command starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

const SHORT: [&str; 4] = ["--set", "duration=\"2 s\"", "--set", "warmup=\"0 s\""];

#[test]
fn a_run_writes_a_whole_directory_and_says_where_its_report_is() {
    let dir = scratch();
    let output = ranway(dir.path(), &[&["run", "dumbbell"], &SHORT[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("report: ranway-out/dumbbell/report.html"), "{}", stdout(&output));
    let out = dir.path().join("ranway-out/dumbbell");
    for file in ["summary.json", "meta.json", "flows.parquet", "samples.parquet", "queues.parquet", "report.html"] {
        assert!(out.join(file).is_file(), "{file} is missing");
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!report.contains("src=\"http") && !report.contains("href=\"http"), "the report asks for the network");
}

#[test]
fn an_imported_trace_is_what_a_scenario_runs_on() {
    let dir = scratch();
    fs::write(dir.path().join("drive.csv"), "time_s,dl_mbps\n0,12\n1,6\n2,6\n").unwrap();
    let import = |out: &str| ranway(dir.path(), &["import", "rates", "drive.csv", "--out", out]);
    let output = import("drive.trace");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).starts_with("drive.trace: 3.000 s, mean 8.000 Mbit/s, 2000 opportunities\n"),
        "{}",
        stdout(&output)
    );
    let rate = "dumbbell.rate={ kind = \"trace\", file = \"drive.trace\" }";
    let output = ranway(dir.path(), &[&["run", "dumbbell", "--quiet", "--set", rate], &SHORT[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    // What is there already stays.
    let output = import("drive.trace");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), "error: drive.trace exists already\n"));
    fs::write(dir.path().join("drive.csv"), "time_s,dl_mbps\n0,fast\n").unwrap();
    let output = import("other.trace");
    let said = "error: drive.csv: line 2: the rate `fast` is not a number\n";
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), said));
    assert!(!dir.path().join("other.trace").exists());
    assert_eq!(ranway(dir.path(), &["import", "rates", "none.csv", "--out", "o"]).status.code(), Some(1));
}

#[test]
fn a_drive_log_becomes_a_scenario_whose_phone_changes_cells_when_the_log_did() {
    let dir = scratch();
    let mut log = "Timestamp,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,DL_bitrate,UL_bitrate\n".to_owned();
    for second in 0..9 {
        let cell = ["11", "12", "11"][second / 3];
        log += &format!(
            "2020.02.14_09.38.{second:02},{cell},LTE,-{},-11,9.0,-,{},200\n",
            90 + second,
            6_000 * (second % 3)
        );
    }
    fs::write(dir.path().join("log.csv"), log).unwrap();
    let output = ranway(dir.path(), &["import", "drive", "log.csv", "--out", "drive"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let wanted = "drive: 9.000 s, 9 rows\n2 cells, 2 handovers of LTE, channels of received powers\n\
        down.trace: 9.000 s, mean 6.000 Mbit/s\nup.trace: 9.000 s, mean 0.200 Mbit/s\nuse: ranway run drive/scenario.toml\n";
    assert_eq!(stdout(&output), wanted);
    let mut files: Vec<String> = fs::read_dir(dir.path().join("drive"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["cell-11.csv", "cell-12.csv", "down.trace", "scenario.toml", "timeline.csv", "up.trace"]);
    let output = ranway(dir.path(), &["check", "drive/scenario.toml"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let output = ranway(dir.path(), &["run", "drive/scenario.toml", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let all: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(all["summary"]["points"][0]["ues"][0]["handovers"]["mean"], 2.0);
    // What is there already stays.
    let output = ranway(dir.path(), &["import", "drive", "log.csv", "--out", "drive"]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(2), "error: drive exists already\n"));
    let hidden = fs::read_dir(dir.path())
        .unwrap()
        .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().starts_with(".drive"));
    assert_eq!(hidden.count(), 0);
}

#[test]
fn a_wrong_scenario_gets_one_line_exit_code_2_and_nothing_is_written() {
    let dir = scratch();
    fs::write(dir.path().join("wrong.toml"), "duration = \"2 s\"\n[dumbbell]\nrat = \"35 Mbit/s\"\nrtt = \"30 ms\"\n")
        .unwrap();
    let output = ranway(dir.path(), &["run", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("wrong.toml:3:") && said.contains("`rate`"), "{said}");
    assert!(!dir.path().join("ranway-out").exists());
}

#[test]
fn what_is_no_trace_is_found_out_late_and_still_nothing_is_written() {
    let dir = scratch();
    fs::write(dir.path().join("no.up"), "x\n").unwrap();
    let rate = "dumbbell.rate={ kind = \"trace\", file = \"no.up\" }";
    let output = ranway(dir.path(), &[&["run", "dumbbell", "--quiet", "--set", rate], &SHORT[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("trace no.up: line 1"), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn typos_in_each_place_are_answered_with_what_would_be_right() {
    let dir = scratch();
    for (args, hint) in [
        (&["run", "dumbel"][..], "dumbbell"),
        (&["run", "dumbbell", "--set", "dumbbell.rate=35 MB"][..], "Mbit/s"),
        (&["run", "dumbbell", "--set", "flows.*.cc=cubik"][..], "cubic"),
        (&["reproduce", "mdcc-toward"][..], "did you mean `mdcc-towards`?"),
        (&["report", "nowhere"][..], "nowhere"),
        (&["rum", "dumbbell"][..], "'run'"),
        (&["rnu", "dumbbell"], "'run'"),
        (&["emualte"], "'emulate'"),
        (&["dumbbell"], "'run dumbbell'"),
        (&["run", "dumbbell", "--set", "dumbbell.rate=35 mbps"], "did you mean `Mbit/s`?"),
    ] {
        let output = ranway(dir.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{args:?} wrote something");
    }
}

#[test]
fn a_foreign_directory_is_refused_and_untouched() {
    let dir = scratch();
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/thesis.tex"), "precious").unwrap();
    let output = ranway(dir.path(), &[&["run", "dumbbell", "--out", "mine"], &SHORT[..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(fs::read_dir(dir.path().join("mine")).unwrap().count(), 1);
}

#[test]
fn json_is_one_object_for_scripts_and_quiet_is_quiet() {
    let dir = scratch();
    let output = ranway(
        dir.path(),
        &[&["run", "dumbbell", "--json", "--runs", "2", "--set", "flows.*.start_jitter=1 s"], &SHORT[..]].concat(),
    );
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert_eq!(answer["summary"]["runs"], 2);
    assert!(answer["summary"]["points"][0]["flows"][0]["goodput_mbps"]["ci95"].is_number());
    let output = ranway(dir.path(), &[&["run", "dumbbell", "--quiet"], &SHORT[..]].concat());
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn the_seed_decides_and_jobs_do_not() {
    let dir = scratch();
    let run = |out: &str, more: &[&str]| {
        let args = [&["run", "loss-sweep", "--quiet", "--runs", "2", "--out", out], &SHORT[..], more].concat();
        let output = ranway(dir.path(), &args);
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read(dir.path().join(out).join("flows.parquet")).unwrap()
    };
    let one = run("a", &["--jobs", "1"]);
    assert_eq!(one, run("b", &["--jobs", "2"]));
    assert_ne!(one, run("c", &["--seed", "7"]));
}

#[test]
fn results_can_be_reported_again_and_compared() {
    let dir = scratch();
    for (out, cc) in [("a", "flows.*.cc=cubic"), ("b", "flows.*.cc=bbr")] {
        let output =
            ranway(dir.path(), &[&["run", "dumbbell", "--quiet", "--out", out, "--set", cc], &SHORT[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let before = fs::read(dir.path().join("a/report.html")).unwrap();
    fs::remove_file(dir.path().join("a/report.html")).unwrap();
    assert!(ranway(dir.path(), &["report", "a"]).status.success());
    assert_eq!(fs::read(dir.path().join("a/report.html")).unwrap(), before);
    assert!(ranway(dir.path(), &["compare", "a", "b", "--out", "both.html"]).status.success());
    assert!(fs::read_to_string(dir.path().join("both.html")).unwrap().contains("bbr"));
}

#[test]
fn events_and_captures_are_written_on_request() {
    let dir = scratch();
    let more = ["--set", "record.events=true", "--set", "record.pcap=[\"bottleneck\"]", "--set", "duration=\"1 s\""];
    let output = ranway(dir.path(), &[&["run", "dumbbell", "--quiet", "--set", "warmup=\"0 s\""], &more[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let out = dir.path().join("ranway-out/dumbbell");
    assert!(fs::metadata(out.join("captures/point-0-run-0.pcapng")).unwrap().len() > 10_000);
    assert!(fs::metadata(out.join("events.parquet")).unwrap().len() > 10_000);
}

/// The analysis of a capture at the sender's host finds what the simulated sender knows.
#[test]
fn a_capture_at_a_host_is_that_of_its_own_packets() {
    let dir = scratch();
    let set = ["record.pcap=[\"sender\"]", "duration=\"10 s\"", "warmup=\"0 s\"", "flows.*.cc=\"cubic\"", "runs=1"];
    let more: Vec<&str> = set.iter().flat_map(|key| ["--set", key]).collect();
    let output = ranway(dir.path(), &[&["run", "dumbbell", "--quiet", "--out", "run"], &more[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let output = ranway(dir.path(), &["analyse", "run/captures/point-0-run-0.pcapng", "--quiet", "--out", "seen"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures = |results: &str| -> Vec<Vec<f64>> {
        let wanted = "goodput_mbps,rtt_p50_ms,retransmission_rate";
        let output = ranway(dir.path(), &["table", results, "--figures", wanted, "--format", "csv"]);
        let table = String::from_utf8(output.stdout).expect("text");
        let row = |line: &str| [6, 3, 0].map(|at| line.split(',').nth_back(at + 2).unwrap().parse().unwrap()).to_vec();
        table.lines().skip(1).map(row).collect()
    };
    let (known, seen) = (figures("run"), figures("seen"));
    assert_eq!((known.len(), seen.len()), (1, 1));
    let (known, seen) = (&known[0], &seen[0]);
    assert_eq!(known[1..], seen[1..], "RTT and retransmissions");
    // A capture does not tell when the data came, but when it was acknowledged.
    assert!((known[0] - seen[0]).abs() < 0.01 * known[0], "{known:?} and {seen:?}");
}

#[test]
fn a_reproduction_prints_every_published_row_with_its_verdict() {
    let dir = scratch();
    let output = ranway(dir.path(), &["reproduce", "mdcc-towards/wireless-loss", "--runs", "2", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("an array");
    // Eight throughputs, four gains, two claims about these, and two closed forms.
    assert_eq!(rows.len(), 16);
    for row in &rows {
        for key in [
            "paper",
            "experiment",
            "variant",
            "parameter",
            "metric",
            "unit",
            "published",
            "published_ci",
            "measured",
            "ci",
            "verdict",
        ] {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
        // A claim about several points has the range of what was measured.
        let measured = &row["measured"];
        assert!(if row["published"].is_null() { measured.is_string() } else { measured.is_number() }, "{row}");
        assert!(row["verdict"] == "held" || row["verdict"] == "missed", "{row}");
    }
    let of_mdcc = |row: &&serde_json::Value| row["variant"] == "mdcc" && row["metric"] == "throughput";
    assert!(rows.iter().filter(of_mdcc).all(|row| row["verdict"] == "held"), "{rows:?}");
    assert!(dir.path().join("ranway-out/reproduce/report.html").is_file());
}

#[test]
fn an_interrupt_keeps_what_has_finished_and_leaves_nothing_half_written() {
    let dir = scratch();
    let run = |runs: &'static str, out: &'static str| {
        let only = ["--set", "duration=\"100 s\"", "--set", "record.samples=\"off\"", "--jobs", "1", "--quiet"];
        [&["run", "dumbbell", "--runs", runs, "--out", out][..], &only].concat()
    };
    // One run is short, hundreds of them are not.
    let begun = Instant::now();
    assert!(ranway(dir.path(), &run("1", "one")).status.success());
    let one = begun.elapsed();
    let args = run("10000", "ranway-out/dumbbell");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ranway")).args(args).current_dir(dir.path()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let polite = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(polite.success());
    let begun = Instant::now();
    let status = child.ends();
    assert_eq!(status.code(), Some(130));
    // The run under way is given up, or ends; then the results are written.
    let most = 3 * one + Duration::from_secs(5);
    assert!(begun.elapsed() < most, "it took {:?} to stop, and a run takes {one:?}", begun.elapsed());
    let out = dir.path().join("ranway-out");
    let names: Vec<_> = fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["dumbbell"], "something half-written is left");
    assert!(out.join("dumbbell/summary.json").is_file());
}

/// Starts a batch of many short runs at `out` and interrupts it once some of them must have finished.
fn interrupted_batch(dir: &Path, out: &str) -> Output {
    let many = ["--runs", "10000", "--jobs", "1", "--set", "duration=\"20 s\"", "--set", "record.samples=\"off\""];
    let args = [&["run", "dumbbell", "--set", "flows.*.start_jitter=1 s", "--out", out], &many[..]].concat();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
    let child = command.args(args).current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    child.ends_with_output()
}

#[test]
fn partial_results_are_marked_everywhere_and_never_replace_complete_ones() {
    let dir = scratch();
    let complete = ranway(dir.path(), &[&["run", "dumbbell", "--quiet", "--out", "r"], &SHORT[..]].concat());
    assert!(complete.status.success(), "{}", stderr(&complete));
    let before = fs::read(dir.path().join("r/summary.json")).unwrap();

    let output = interrupted_batch(dir.path(), "r");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("the results are partial, "), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("PARTIAL RESULTS: ") && said.contains("report: r-interrupted/report.html"), "{said}");

    assert_eq!(fs::read(dir.path().join("r/summary.json")).unwrap(), before, "complete results were replaced");
    let partial = fs::read(dir.path().join("r-interrupted/summary.json")).unwrap();
    let partial: serde_json::Value = serde_json::from_slice(&partial).unwrap();
    assert_eq!(partial["partial"]["of"], 10_000);
    assert!(partial["partial"]["finished"].as_u64().is_some_and(|finished| (1..10_000).contains(&finished)));
    let report = fs::read_to_string(dir.path().join("r-interrupted/report.html")).unwrap();
    assert!(report.contains("(partial: "), "the report looks complete");

    let compared = stdout(&ranway(dir.path(), &["compare", "r", "r-interrupted", "--out", "both.html"]));
    assert_eq!(compared.matches("PARTIAL RESULTS").count(), 1, "{compared}");
    // Complete results take the place of partial ones.
    let args = [&["run", "dumbbell", "--quiet", "--out", "r-interrupted"], &SHORT[..]].concat();
    assert!(ranway(dir.path(), &args).status.success());
    let whole = fs::read_to_string(dir.path().join("r-interrupted/summary.json")).unwrap();
    assert!(!whole.contains("\"partial\""), "{whole}");
}

#[test]
fn identical_runs_are_announced_and_counted_as_one() {
    let dir = scratch();
    let args = [&["run", "dumbbell", "--runs", "3", "--set", "hosts.processing=0 s"], &SHORT[..]].concat();
    let output = ranway(dir.path(), &args);
    assert!(stderr(&output).contains("warning: runs: 3 runs, but nothing"), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("all 3 runs are identical") && !said.contains('±'), "{said}");
    let output = ranway(dir.path(), &[&args[..], &["--set", "flows.*.start_jitter=1 s"]].concat());
    assert!(output.stderr.is_empty() && stdout(&output).contains('±'), "{}", stderr(&output));
}

#[test]
fn a_udp_flow_shows_its_one_way_delay_and_its_loss() {
    let dir = scratch();
    let queue = "dumbbell.queue={ kind = \"drop-tail\", packets = 500 }";
    let args =
        ["run", "aqm-compare", "--json", "--set", "duration=\"10 s\"", "--set", "warmup=\"2 s\"", "--set", queue];
    let output = ranway(dir.path(), &args);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    let flows = answer["summary"]["points"][0]["flows"].as_array().unwrap();
    let call = flows.iter().find(|flow| flow["flow"] == "call").unwrap();
    let mean = |key: &str| call[key]["mean"].as_f64().unwrap_or_else(|| panic!("{key} is missing: {call}"));
    // 500 packets at 20 Mbit/s are 0.3 s.
    assert!((50.0..=350.0).contains(&mean("owd_p50_ms")), "{call}");
    assert!(mean("owd_p95_ms") >= mean("owd_p50_ms") && (0.0..1.0).contains(&mean("loss")), "{call}");

    let compared = stdout(&ranway(dir.path(), &["compare", "ranway-out/aqm-compare", "ranway-out/aqm-compare"]));
    let head = compared.lines().find(|line| line.contains("goodput")).unwrap_or_default();
    assert!(head.contains("one-way p50 ms") && head.contains("loss %"), "{compared}");
    let row = compared.lines().find(|line| line.trim_start().starts_with("call")).unwrap_or_default();
    assert!(row.split_whitespace().filter(|cell| cell.contains('.')).count() >= 4, "{row}");
}

#[test]
fn tables_fit_the_terminal_unless_they_are_to_be_wide() {
    let dir = scratch();
    let args =
        [&["run", "aqm-compare", "--runs", "2", "--quiet", "--set", "flows.*.start_jitter=1 s"], &SHORT[..]].concat();
    assert!(ranway(dir.path(), &args).status.success());
    let results = "ranway-out/aqm-compare";
    let compare = |columns: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
        command.args([&["compare", results, results], more].concat()).current_dir(dir.path()).env("COLUMNS", columns);
        stdout(&command.output().unwrap())
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    for columns in [60, 80, 120] {
        let text = compare(&columns.to_string(), &[]);
        assert!(widest(&text) <= columns, "{columns}:\n{text}");
        assert!(text.contains("omitted for lack of space"), "{text}");
    }
    assert!(widest(&compare("80", &["--wide"])) > 120);
}

#[test]
fn check_refuses_the_recordings_that_run_refuses() {
    let dir = scratch();
    fs::write(dir.path().join("no.up"), "x\n").unwrap();
    let rate = "dumbbell.rate={ kind = \"trace\", file = \"no.up\" }";
    let said = ["check", "run"].map(|command| {
        let output = ranway(dir.path(), &[command, "dumbbell", "--set", rate]);
        assert_eq!(output.status.code(), Some(2), "{command}: {}", stderr(&output));
        stderr(&output)
    });
    assert!(said[0].contains("trace no.up: line 1: not a whole number"), "{}", said[0]);
    assert_eq!(said[0], said[1]);
}

#[test]
fn a_demo_of_traces_that_are_not_there_is_refused() {
    let dir = scratch();
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (path, hint) in [("/nonexistent", "no such file or folder"), ("empty", "*.down")] {
        let output = ranway(dir.path(), &["demo", "--traces", path]);
        assert_eq!(output.status.code(), Some(2), "{path}");
        assert!(stderr(&output).contains(path) && stderr(&output).contains(hint), "{}", stderr(&output));
    }
    assert!(!dir.path().join("ranway-out").exists());
}

#[test]
fn the_examples_of_the_help_run_without_a_warning() {
    let dir = scratch();
    fs::write(dir.path().join("my.toml"), scenario::builtin::list()[0].text).unwrap();
    let help = stdout(&ranway(dir.path(), &["run", "--help"]));
    let examples = help.lines().filter_map(|line| line.trim().strip_prefix("ranway run "));
    let mut seen = 0;
    for example in examples {
        let line = format!("{} run {example} --quiet --set 'duration=\"11 s\"'", env!("CARGO_BIN_EXE_ranway"));
        let output = Command::new("sh").args(["-c", &line]).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{example}: {}", stderr(&output));
        seen += 1;
    }
    assert!(seen >= 3, "{help}");
}

#[test]
fn a_built_in_file_is_shown_as_it_is_and_runs_as_a_copy() {
    let dir = scratch();
    for file in scenario::builtin::list() {
        assert_eq!(stdout(&ranway(dir.path(), &["show", file.name])), file.text);
    }
    for preset in scenario::builtin::presets() {
        assert_eq!(stdout(&ranway(dir.path(), &["show", &format!("preset:{}", preset.name)])), preset.text);
    }
    assert_eq!(stdout(&ranway(dir.path(), &["show", "preset:wired"])), stdout(&ranway(dir.path(), &["show", "wired"])));
    let output = ranway(dir.path(), &["show", "dumbel"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean `dumbbell`?"), "{}", stderr(&output));
}

#[test]
fn init_writes_scenarios_that_are_right_and_overwrites_nothing() {
    let dir = scratch();
    for kind in ["bottleneck", "trace", "lte", "sweep", "emulate"] {
        let file = format!("{kind}.toml");
        let output = ranway(dir.path(), &["init", kind, &file]);
        assert!(output.status.success() && stdout(&output).contains(&file), "{kind}: {}", stderr(&output));
        let checked = ranway(dir.path(), &["check", &file]);
        assert!(checked.status.success() && checked.stderr.is_empty(), "{kind}: {}", stderr(&checked));
    }
    assert!(ranway(dir.path(), &["init"]).status.success());
    fs::write(dir.path().join("scenario.toml"), "mine").unwrap();
    let output = ranway(dir.path(), &["init"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("scenario.toml already exists"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(dir.path().join("scenario.toml")).unwrap(), "mine");
    // A link is not followed.
    std::os::unix::fs::symlink("victim", dir.path().join("link.toml")).unwrap();
    assert_eq!(ranway(dir.path(), &["init", "lte", "link.toml"]).status.code(), Some(2));
    assert!(!dir.path().join("victim").exists());
    let output = ranway(dir.path(), &["init", "ltr"]);
    assert!(stderr(&output).contains("lte"), "{}", stderr(&output));
}

#[test]
fn an_error_of_the_system_is_told_once() {
    let dir = scratch();
    fs::write(dir.path().join("file"), "").unwrap();
    // Results cannot go where a file is: the place was chosen wrongly.
    for (args, code) in [
        (&[&["run", "dumbbell", "--quiet", "--out", "file/results"], &SHORT[..]].concat()[..], 2),
        (&["init", "lte", "file/my.toml"][..], 1),
    ] {
        let output = ranway(dir.path(), args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).matches("Not a directory").count(), 1, "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn help_teaches_and_every_listed_scenario_is_right() {
    let dir = scratch();
    let help = stdout(&ranway(dir.path(), &["--help"]));
    assert!(help.contains("ranway run dumbbell") && help.contains("Exit codes"), "{help}");
    let list = stdout(&ranway(dir.path(), &["list"]));
    let names: Vec<&str> = list
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() >= 8, "{list}");
    for name in names {
        let output = ranway(dir.path(), &["check", name]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
    }
}

#[test]
fn a_number_of_threads_is_at_least_one() {
    let dir = scratch();
    for command in ["run", "sweep", "reproduce"] {
        let output = Command::new(env!("CARGO_BIN_EXE_ranway"))
            .args([command, "dumbbell", "-j", "0"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("invalid value '0' for '--jobs <N>'"), "{command}: {said}");
    }
}
