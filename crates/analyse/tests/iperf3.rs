//! Results of iperf3: those of a real run, a hand-written file with the keys of iperf3 3.12, and damaged copies of that file.
#![allow(clippy::disallowed_methods)]

mod common;

use analyse::Rules;
use common::analysed;
use std::process::{Command, Stdio};
use std::time::Duration;
use testkit::root::has_program;

const FILE: &str = r#"{
  "start": { "connected": [
      {"socket": 5, "local_host": "10.0.0.1", "local_port": 40000, "remote_host": "10.0.0.2", "remote_port": 5201},
      {"socket": 7, "local_host": "fd00::1", "local_port": 40002, "remote_host": "fd00::2", "remote_port": 5201}],
    "test_start": {"protocol": "TCP", "num_streams": 2, "reverse": 0} },
  "intervals": [
    {"streams": [
      {"socket": 5, "start": 0, "end": 1.0, "seconds": 1.0, "bytes": 9000000, "retransmits": 9, "snd_cwnd": 1000, "rtt": 1, "omitted": true, "sender": true}]},
    {"streams": [
      {"socket": 5, "start": 1.0, "end": 2.0, "seconds": 1.0, "bytes": 1000000, "retransmits": 2, "snd_cwnd": 60000, "rtt": 40000, "omitted": false, "sender": true},
      {"socket": 7, "start": 1.0, "end": 2.0, "seconds": 1.0, "bytes": 500000, "retransmits": 0, "snd_cwnd": 20000, "rtt": 50000, "omitted": false, "sender": false}]},
    {"streams": [
      {"socket": 5, "start": 2.0, "end": 4.0, "seconds": 2.0, "bytes": 4000000, "retransmits": 1, "snd_cwnd": 90000, "rtt": 60000, "omitted": false, "sender": true}]}],
  "end": { "streams": [
      {"sender": {"socket": 5, "bytes": 5000000, "min_rtt": 39000, "max_rtt": 61000, "mean_rtt": 50000}, "receiver": {"socket": 5, "bytes": 4800000}}],
    "sender_tcp_congestion": "cubic" }
}"#;

#[test]
fn streams_become_flows_and_intervals_samples() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("test.json");
    std::fs::write(&file, FILE).unwrap();
    let analysis = analysed(&[file], Rules::Ranway).unwrap();
    let tables = &analysis.results.tables;
    let flow = tables.flows.row(0);
    assert_eq!((flow.flow, flow.cc), ("tcp 10.0.0.1:40000 > 10.0.0.2:5201", Some("cubic")));
    // The omitted second does not count, and the receiver's bytes do.
    assert_eq!(
        (flow.bytes, flow.retransmitted, flow.measured_from_s, flow.measured_to_s),
        (4_800_000, Some(3), 1.0, 4.0)
    );
    assert!((flow.goodput_mbps - 12.8).abs() < 1e-9);
    assert_eq!((flow.rtt_min_ms, flow.rtt_mean_ms, flow.rtt_max_ms), (Some(39.0), Some(50.0), Some(61.0)));
    assert_eq!((flow.mean_cwnd_bytes, flow.max_cwnd_bytes), (Some(80_000.0), Some(90_000)));
    assert_eq!((flow.completed, flow.end_s), (true, Some(4.0)));
    // The other stream goes the other way.
    assert_eq!(tables.flows.row(1).flow, "tcp [fd00::2]:5201 > [fd00::1]:40002");
    let samples: Vec<_> = tables.samples.iter().map(|row| (row.t_s, row.goodput_mbps, row.srtt_ms)).collect();
    assert_eq!(samples, [(2.0, 8.0, Some(40.0)), (2.0, 4.0, Some(50.0)), (4.0, 16.0, Some(60.0))]);
}

#[test]
fn a_flow_of_an_interrupted_test_is_not_complete() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("test.json");
    let interrupted = r#"{ "error": "interrupt - the client has terminated", "start""#;
    std::fs::write(&file, FILE.replacen("{\n  \"start\"", interrupted, 1)).unwrap();
    let analysis = analysed(&[file], Rules::Ranway).unwrap();
    let flow = analysis.results.tables.flows.row(0);
    assert_eq!((flow.completed, flow.end_s, analysis.notes.len()), (false, None, 1));
}

/// Returns what a client of iperf3 prints, and its server's port.
fn measured(more: &[&str]) -> (Vec<u8>, u16) {
    // Below the ports that the kernel gives to others. A server that finds its port taken ends, and its client too.
    for port in (20_000 + (std::process::id() % 10_000) as u16..).step_by(7).take(10) {
        let name = port.to_string();
        let mut server = Command::new("iperf3");
        let mut server = server.args(["-s", "-p", &name]).stdout(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(300));
        let line = ["20", "iperf3", "-c", "127.0.0.1", "-p", &name, "-J", "-t", "1", "-P", "2", "-b", "50M"];
        let output = Command::new("timeout").args(line).args(more).output().expect("it starts");
        let _ = server.kill();
        let _ = server.wait();
        if output.status.success() {
            return (output.stdout, port);
        }
    }
    panic!("iperf3 does not measure over loopback");
}

#[test]
fn what_iperf3_writes_is_read() {
    if !has_program(Command::new("iperf3").arg("--version").output().is_ok(), "iperf3") {
        return;
    }
    for is_reverse in [false, true] {
        let (output, port) = measured(if is_reverse { &["-R"] } else { &[] });
        let said: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("real.json");
        std::fs::write(&file, output).unwrap();
        let analysis = analysed(&[file], Rules::Ranway).unwrap();
        let flows: Vec<_> = analysis.results.tables.flows.iter().collect();
        assert_eq!(flows.len(), 2);
        for flow in &flows {
            let (from, to) = flow.flow.strip_prefix("tcp ").and_then(|ends| ends.split_once(" > ")).expect("two ends");
            assert_eq!(if is_reverse { from } else { to }, format!("127.0.0.1:{port}"));
            // iperf3 sends at this rate as far as the machine lets it.
            assert!((5.0..55.0).contains(&flow.goodput_mbps), "{flow:?}");
        }
        let bytes: u64 = flows.iter().map(|flow| flow.bytes).sum();
        assert_eq!(Some(bytes), said["end"]["sum_received"]["bytes"].as_u64());
    }
}

#[test]
fn any_edit_of_a_file_gives_flows_or_one_line() {
    let edits = bolero::produce::<Vec<(u16, u8)>>();
    bolero::check!().with_generator(edits).with_iterations(1_000).for_each(|edits| {
        let mut bytes = FILE.as_bytes().to_vec();
        for &(at, byte) in edits.iter().take(4) {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("test.json");
        std::fs::write(&file, bytes).unwrap();
        match analysed(&[file], Rules::Ranway) {
            Ok(analysis) => {
                for flow in analysis.results.tables.flows.iter() {
                    assert!(
                        flow.goodput_mbps.is_finite() && flow.mean_cwnd_bytes.is_none_or(f64::is_finite),
                        "{flow:?}"
                    );
                }
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    });
}
