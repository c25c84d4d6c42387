//! `ranway analyse` on captures of the simulator, whose own tables are the truth.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn ranway(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ranway")).current_dir(dir).args(args).output().expect("the command is built")
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a summary")
}

/// A lossy upload behind a short queue, captured at every link.
const SCENARIO: &str = r#"
title = "captured"
duration = "10 s"
[dumbbell]
rate = "10 Mbit/s"
rtt = "40 ms"
loss = 2e-3
queue = { kind = "drop-tail", packets = 40 }
[record]
pcap = ["*"]
[[flows]]
name = "bulk"
cc = "cubic"
"#;

fn mean(summary: &Value, point: usize, figure: &str) -> f64 {
    summary["summary"]["points"][point]["flows"][0][figure]["mean"]
        .as_f64()
        .unwrap_or_else(|| panic!("{figure} of {summary}"))
}

#[test]
fn a_capture_of_the_simulator_tells_what_the_simulator_knows() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("s.toml"), SCENARIO).expect("written");
    let truth = json(&ranway(dir.path(), &["run", "s.toml", "--json", "--out", "run"]));
    let capture = "run/captures/point-0-run-0.pcapng";
    let seen = json(&ranway(dir.path(), &["analyse", capture, "--json", "--out", "seen"]));
    let points = seen["summary"]["points"].as_array().expect("points");
    // Each link and its reverse are a vantage point; the sender's own link is the second.
    let sender =
        points.iter().position(|point| point["values"]["interface"] == "access-sender").expect("the sender's link");
    assert_eq!(mean(&seen, sender, "retransmission_rate"), mean(&truth, 0, "retransmission_rate"));
    for (figure, within) in [("rtt_p50_ms", 1.0), ("rtt_p95_ms", 1.0), ("goodput_mbps", 0.2)] {
        let (own, known) = (mean(&seen, sender, figure), mean(&truth, 0, figure));
        assert!((own - known).abs() < within, "{figure}: {own}, {known}");
    }
    for file in ["report.html", "segments.parquet", "tcp_flows.parquet", "tcp_samples.parquet"] {
        assert!(dir.path().join("seen").join(file).exists(), "{file}");
    }
    // Once more by other rules, over the same results.
    let again = ranway(dir.path(), &["analyse", capture, "--as", "wireshark", "--out", "seen", "--quiet"]);
    assert!(again.status.success() && again.stdout.is_empty() && again.stderr.is_empty(), "{again:?}");
}

#[test]
fn what_cannot_be_analysed_is_named_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("a.txt"), "hello").expect("written");
    let cases: [(&[&str], i32, &str); 3] = [
        (
            &["analyse", "a.txt"],
            2,
            "error: a.txt: unknown format: expected a capture (pcap, pcapng) or results of iperf3 (--json)\n",
        ),
        (&["analyse", "b.pcap"], 1, "error: b.pcap: No such file or directory (os error 2)\n"),
        (
            &["analyse", "a.txt", "--ends"],
            2,
            "error: a.txt: unknown format: expected a capture (pcap, pcapng) or results of iperf3 (--json)\n",
        ),
    ];
    for (args, code, message) in cases {
        let output = ranway(dir.path(), args);
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(code), message));
    }
    assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 1);
}
