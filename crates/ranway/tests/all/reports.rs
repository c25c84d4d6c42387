//! Tests of the cells' reports, recorded by a simulation or streamed by an emulation, and served by `ranway rnis`. Tests that
//! need root and TUN report when they are skipped.

use crate::common::service::{Service, until};
use crate::common::{CELLS, LINK, Running, command, emulate, may, scratch, text};
use std::fs;
use std::process::Command;

/// Starts `ranway rnis` with an input.
fn rnis(input: &str) -> Service {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
    Service::start(command.args(["rnis", "--listen", "127.0.0.1:0", "--input", input]))
}

/// Waits until the layer 2 measurements name a UE by its address.
fn until_measured(service: &Service, address: &str) {
    until(|| service.get("/queries/layer2_meas").to_string().contains(&format!("\"{address}\"")));
}

#[test]
fn a_simulation_records_reports_that_the_service_replays() {
    let dir = scratch(CELLS);
    let period = ["--set", "lte.proxy.policy=none", "--set", "lte.proxy.reports.period=10 ms"];
    let run = |args: &[&str], out: &str| {
        let args = [&["run", "net.toml", "--quiet", "-o", out], args].concat();
        let output = command(dir.path(), &args).output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    run(&[&period[..], &["--reports", "drive.jsonl"]].concat(), "with");
    let recording = fs::read_to_string(dir.path().join("drive.jsonl")).expect("it was written");
    let (events, reports): (Vec<&str>, Vec<&str>) = recording.lines().partition(|line| line.contains("\"event\""));
    assert_eq!(
        (reports.len(), events.len()),
        (500, 43),
        "of one UE in 5 s: each 10 ms, what it measures each 120 ms, its bearer and its timing advance"
    );
    // Recording changes no result.
    run(&period, "without");
    let [with, without] = ["with", "without"].map(|out| fs::read(dir.path().join(out).join("flows.parquet")));
    assert_eq!(with.expect("a table"), without.expect("a table"));
    let service = rnis(&format!("replay:{}", dir.path().join("drive.jsonl").display()));
    until_measured(&service, "10.0.1.1");
    let bearers = service.get("/queries/rab_info").to_string();
    assert!(bearers.contains("\"erabId\":5") && bearers.contains("\"qci\":9"), "{bearers}");
    service.stop();
}

#[test]
fn root_an_emulation_streams_reports_to_a_live_service() {
    if !may() {
        return;
    }
    let dir = scratch(CELLS);
    let socket = dir.path().join("socket").display().to_string();
    let service = rnis(&format!("recording:unix:{socket}"));
    let to = format!("unix:{socket}");
    let args = ["--reports", &to, "--", "sh", "-c", "curl -so /dev/null http://server/200kB && echo ready && read end"];
    let mut running = Running::start(dir.path(), &args);
    running.ready();
    until_measured(&service, "10.0.1.1");
    running.say("\n");
    let output = running.end();
    assert!(output.status.success() && !text(&output.stderr).contains("nobody"), "{}", text(&output.stderr));
    service.stop();
}

#[test]
fn root_an_emulation_needs_no_reader_and_writes_files() {
    if !may() {
        return;
    }
    let dir = scratch(CELLS);
    let output = emulate(dir.path(), &["--reports", "unix:nobody", "--", "sleep", "2.5"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("warning: nobody reads the reports").count(), 1, "{said}");
    assert!(said.contains("reports of the cells that nobody read: "), "{said}");
    let output = emulate(dir.path(), &["--quiet", "--reports", "drive.jsonl", "--", "sleep", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let recording = fs::read_to_string(dir.path().join("drive.jsonl")).expect("it was written");
    assert!(recording.lines().count() > 800 && recording.ends_with('\n'), "{}", recording.lines().count());
}

#[test]
fn what_has_no_reports_is_one_line_and_exit_code_2() {
    let dir = scratch(&format!("{LINK}[[flows]]\nfrom = \"a\"\nto = \"b\"\n"));
    fs::write(dir.path().join("cells.toml"), CELLS).expect("it is written");
    for (args, message) in [
        (&["run", "net.toml"][..], "error: there are no reports: the scenario has no cells"),
        (&["emulate", "net.toml"], "error: there are no reports: the scenario has no cells"),
        (&["run", "cells.toml", "--runs", "2"], "error: --reports records one run"),
    ] {
        let output = command(dir.path(), &[args, &["--reports", "drive.jsonl"]].concat()).output().expect("it starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.starts_with(message) && said.lines().count() == 1, "{args:?}: {said}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 2, "nothing was written");
}

#[test]
fn a_recording_replaces_nothing_but_an_earlier_one() {
    let dir = scratch(CELLS);
    let at = |name: &str| dir.path().join(name);
    std::os::unix::fs::symlink("/dev/null", at("link")).expect("it is made");
    fs::create_dir(at("made")).expect("it is made");
    let says = |args: &[&str]| {
        let output = command(dir.path(), args).output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    for (reports, out, why) in [
        ("link", "out", "not a regular file; name a new file or an earlier recording"),
        ("made", "out", "not a regular file; name a new file or an earlier recording"),
        ("net.toml", "out", "not a recording of reports; name a new file or an earlier recording"),
        ("none/drive.jsonl", "out", "no such directory: none"),
        ("..", "out", "expected the name of a file"),
        ("out/drive.jsonl", "out", "the results replace the directory out as a whole; name a file outside it"),
        ("made/drive.jsonl", "made", "the results replace the directory made as a whole; name a file outside it"),
        ("made/../same", "same", "the results replace the directory same as a whole; name a file outside it"),
        ("drive", "drive/out", "the results replace the directory drive/out as a whole; name a file outside it"),
    ] {
        for kind in ["run", "emulate"] {
            let (code, said) = says(&[kind, "net.toml", "--reports", reports, "-o", out]);
            assert_eq!((code, said), (Some(2), format!("error: --reports {reports}: {why}\n")), "{kind}");
        }
    }
    let (code, said) = says(&["run", "net.toml", "--reports", "unix:socket", "-o", "out"]);
    let wanted = "error: --reports unix:socket: `ranway emulate` streams reports to a socket";
    assert!(code == Some(2) && said.starts_with(wanted), "{code:?} {said}");
    let (code, said) = says(&["emulate", "net.toml", "--reports", "unix:"]);
    assert!(code == Some(2) && said.contains("expected the path of a socket after `unix:`"), "{said}");
    assert!(at("link").symlink_metadata().expect("it is there").is_symlink());
    assert_eq!(fs::read_to_string(at("net.toml")).expect("it is there"), CELLS);
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 3, "nothing was written");
    for _ in 0..2 {
        let args = ["run", "net.toml", "--quiet", "--reports", "made/drive.jsonl", "-o", "out"];
        assert_eq!(says(&args), (Some(0), String::new()));
        assert_eq!(fs::read_dir(at("made")).expect("a directory").count(), 1);
    }
}
