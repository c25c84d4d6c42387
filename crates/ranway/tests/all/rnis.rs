//! `ranway rnis` as its operator meets it: one line and exit code 2 for what cannot work, and a service otherwise.

use crate::common::service::{Service, until};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn ranway() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ranway"))
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rnis/tests/feeds").join(name)
}

/// Runs the command, which must refuse, and returns what it printed.
fn refusal(args: &[&str]) -> String {
    let output = ranway().args(["rnis", "--listen", "127.0.0.1:0", "--quiet"]).args(args).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]), "{args:?}: {text}");
    text
}

#[test]
fn what_cannot_work_is_one_line_and_exit_code_2() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, content).expect("there is room");
        path.display().to_string()
    };
    let broken = path("broken.jsonl", b"{\"time_us\":1}\n");
    let empty = path("empty.csv", b"\n\n");
    let table = path("ues.txt", b"0x4601 10.45.0.2\n0x4602 ten\n");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let busy = taken.local_addr().expect("it is bound").to_string();
    for (args, message) in [
        (vec!["--input", "x:y"], "error: invalid input `x:y`: expected recording:SOURCE, replay:FILE"),
        (vec!["--input", "recording:/nonexistent"], "error: input recording:/nonexistent: No such file"),
        (
            vec!["--input", &format!("recording:{broken}")],
            &format!("error: input recording:{broken}: line 1: missing field"),
        ),
        (
            vec!["--input", &format!("kpm:unix:{broken}")],
            &format!("error: input kpm:unix:{broken}: Address already in use"),
        ),
        (vec!["--input", "recording:-", "--input", "kpm:-"], "error: only one input can be standard input"),
        (vec!["--ues", &table], &format!("error: {table}: line 2: invalid address `ten`")),
        (vec!["--ues", "/nonexistent"], "error: /nonexistent: No such file"),
        (vec!["--ues", "/dev/zero"], "error: /dev/zero: not a regular file"),
        (vec!["--input", &format!("kpm:{empty}")], &format!("error: input kpm:{empty}: has no report in its 2 lines")),
        (vec!["--amqp", "amqps://user:secret@host"], "error: invalid AMQP URL: user and password belong in a file"),
        (
            vec!["--amqp", "amqp://a", "--amqp-credentials", &table],
            &format!("error: credentials {table}: accessible to others"),
        ),
        (vec!["--amqp", "amqp://a", "--amqp-ca", &table], "error: --amqp-ca has no effect without amqps://"),
        (vec!["--amqp-ca", &table], "error: --amqp-credentials and --amqp-ca are for a broker"),
        (vec!["--amqp", "amqp://a", "--input", "amqp:amqp://a"], "error: --amqp and an input amqp:"),
        (
            vec!["--dashboard", "--dashboard-token", &table],
            &format!("error: {table}: accessible to others than its owner"),
        ),
        (vec!["--api-root", "mec.example"], "error: invalid API root `mec.example`"),
        (vec!["--period", "0 s"], "error: --period must be greater than 0"),
    ] {
        let text = refusal(&args);
        assert!(text.starts_with(message), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
    let output = ranway().args(["rnis", "--listen", &busy]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.starts_with(&format!("error: cannot listen on {busy}: Address already in use")), "{text}");
    for args in [["--listen", "localhost"], ["--plmn", "1-1"], ["--rat", "5g"], ["--n-prb", "0"], ["--cell", "x"]]
        .into_iter()
        .chain([["--callback-network", "10.0.0.0/99"], ["--trusted-proxy", "proxy.example"], ["--host", "a:80"]])
    {
        let output = ranway().arg("rnis").args(args).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn systemds_credentials_are_read_and_secrets_are_in_no_command_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("amqp-credentials");
    let run = |args: &[&str], text: &str, mode: u32| {
        fs::write(&path, text).expect("there is room");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
        let mut command = ranway();
        command.args(["rnis", "--listen", "127.0.0.1:0"]).args(args).env("CREDENTIALS_DIRECTORY", directory.path());
        let output = command.output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).replace(&path.display().to_string(), "FILE");
        assert!(!said.contains("secret"), "{said}");
        (output.status.code(), said)
    };
    let broker = ["--amqp", "amqp://127.0.0.1:1"];
    let (code, said) = run(&broker, "user:secret", 0o644);
    assert_eq!(code, Some(2));
    assert!(said.starts_with("error: credentials FILE: accessible to others"), "{said}");
    let none = "error: credentials FILE: expected one line with USER:PASSWORD\n".to_owned();
    assert_eq!(run(&broker, "secret", 0o640), (Some(2), none));
    for url in ["amqp://user:secret@127.0.0.1", "amqps://user:secret@127.0.0.1"] {
        for args in [["--amqp", url], ["--input", url]] {
            let (code, said) = run(&args, "user:secret", 0o600);
            assert_eq!(code, Some(2));
            assert!(said.contains("--amqp-credentials"), "{said}");
        }
    }
}

#[test]
fn a_missing_or_failing_mmcli_is_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = || {
        let mut command = ranway();
        command.args(["rnis", "--listen", "127.0.0.1:0", "--input", "modem:0"]).env("PATH", directory.path());
        command.output().expect("it starts")
    };
    let output = run();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), &text[..]),
        (Some(2), "error: input modem:0: mmcli: No such file or directory (os error 2)\n")
    );
    program(directory.path(), "mmcli", "echo 'error: couldn'\\''t find modem' >&2; exit 1");
    let output = run();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), &text[..]),
        (Some(2), "error: input modem:0: mmcli: error: couldn't find modem\n")
    );
}

fn program(directory: &Path, name: &str, script: &str) {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("there is room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn a_modem_is_polled_and_never_has_a_throughput() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    program(
        directory.path(),
        "mmcli",
        &format!(
            "test \"$*\" = '-m 0 --signal-get -J' && while read -r line; do printf '%s\\n' \"$line\"; done < {}",
            sample("mmcli.json").display()
        ),
    );
    let service = Service::start(
        ranway().args(["rnis", "--listen", "127.0.0.1:0", "--input", "modem:0"]).env("PATH", directory.path()),
    );
    std::thread::sleep(Duration::from_millis(1500));
    let measurements = service.get("/queries/layer2_meas");
    assert_eq!(
        (&measurements["cellInfo"], &measurements["cellUEInfo"]),
        (&Value::Array(vec![]), &Value::Array(vec![]))
    );
    service.stop();
}

#[test]
fn a_recording_is_served_and_printed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let table = directory.path().join("ues.txt");
    fs::write(&table, "61 10.45.0.61\n").expect("there is room");
    let socket = directory.path().join("socket");
    let mut command = ranway();
    command.args(["rnis", "--listen", "127.0.0.1:0", "--rat", "nr", "--plmn", "262-01", "--print"]);
    command.arg("--ues").arg(&table).arg("--input").arg(format!("recording:{}", sample("recording.jsonl").display()));
    command.arg("--input").arg(format!("recording:unix:{}", socket.display())).stdout(Stdio::piped());
    let mut service = Service::start(&mut command);
    let mut lines = BufReader::new(service.child.stdout.take().expect("it is piped")).lines();
    let recording = fs::read_to_string(sample("recording.jsonl")).expect("it is there");
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
    for (number, wanted) in recording.lines().map(value).enumerate() {
        let line = value(&lines.next().expect("each record is printed").expect("it is text"));
        let kind = |record: &Value| (record["event"].clone(), record["time_us"].clone());
        assert_eq!(kind(&line), kind(&wanted));
        // Events get the address of the table.
        assert!(line == wanted || number > 0 && line["address"] == "10.45.0.61", "{line}");
    }
    assert_eq!(service.get("/queries/plmn_info?app_ins_id=a")[0]["plmn"][0]["mcc"], "262");
    until(|| service.get("/queries/layer2_meas")["cellInfo"][0]["ecgi"]["cellId"] == "000000001");
    assert!(socket.exists());
    service.stop();
    assert!(!socket.exists(), "the socket was left behind");
}

/// Before, lines that came while output was slow were lost beyond 1024.
#[test]
fn all_reports_of_4096_ues_are_printed_when_output_is_slow() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("socket");
    let mut command = ranway();
    command.args(["rnis", "--listen", "127.0.0.1:0", "--print", "--input"]);
    command.arg(format!("recording:unix:{}", socket.display())).stdout(Stdio::piped());
    let mut service = Service::start(&mut command);
    let output = BufReader::new(service.child.stdout.take().expect("it is piped"));
    let sent: Vec<(u64, u16)> = (0..4).flat_map(|tick| (1..=4096).map(move |rnti| (tick, rnti))).collect();
    let line = |&(tick, rnti): &(u64, u16)| {
        let [high, low] = rnti.to_be_bytes();
        let ue = format!(r#""rnti":{rnti},"address":"10.45.{high}.{low}""#);
        let rest = r#""interval_us":1000,"n_prb":100,"slots":1,"acked_bits":8000,"blocks":1,"failed":0"#;
        format!("{{\"time_us\":{},\"cell\":1,{ue},{rest}}}\n", 1_000_000 + 1000 * tick)
    };
    let text: String = sent.iter().map(line).collect();
    let mut program = UnixStream::connect(&socket).expect("it listens");
    let writing = std::thread::spawn(move || program.write_all(text.as_bytes()));
    // Output stands still: the pipe has room for a few hundred lines.
    std::thread::sleep(Duration::from_millis(300));
    let mut printed = Vec::new();
    for line in output.lines() {
        let report: Value = serde_json::from_str(&line.expect("it is text")).expect("it is JSON");
        let time = report["time_us"].as_u64().expect("a time");
        printed.push(((time - 1_000_000) / 1000, report["rnti"].as_u64().expect("a number") as u16));
        if printed.last() == sent.last() {
            break;
        }
    }
    writing.join().expect("it writes").expect("it is read");
    assert!(printed == sent, "{} of {} reports are printed", printed.len(), sent.len());
    service.stop();
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let mut command = ranway();
    command.args(["rnis", "--listen", "127.0.0.1:0", "--quiet", "--print", "--input"]);
    command.arg(format!("recording:{}", sample("recording.jsonl").display()));
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = command.stdout(full).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), &text[..]),
        (Some(1), "error: standard output: No space left on device (os error 28)\n")
    );
}

#[test]
fn a_reader_that_leaves_ends_a_service_that_prints() {
    let mut command = ranway();
    command
        .args(["rnis", "--listen", "127.0.0.1:0", "--print", "--input"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.arg("recording:-").stdin(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let mut input = child.stdin.take().expect("it is piped");
    let report = fs::read_to_string(sample("recording.jsonl")).expect("it is there");
    let report = report.lines().next().expect("there is one").to_owned();
    until(|| {
        let _ = writeln!(input, "{report}");
        child.try_wait().expect("it is ours").is_some()
    });
}

#[test]
fn the_help_explains_inputs_and_security() {
    let output = ranway().args(["rnis", "--help"]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    for words in ["replay:FILE", "srsran:HOST:PORT", "bearer token", "--callback-network", "curl http://"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
