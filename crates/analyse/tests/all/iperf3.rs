//! Results of iperf3: those of a real run, a hand-written file with the keys of iperf3 3.12, and damaged copies of that file.

use crate::common::analysed;
use analyse::{Analysis, Error, Rules};
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
    // The quantiles are those of the intervals.
    let told = [flow.rtt_p5_ms, flow.rtt_p95_ms].map(|ms| ms.map(f64::round));
    assert_eq!(told, [Some(40.0), Some(60.0)]);
    let samples: u64 = tables.rtts.iter().filter(|row| row.flow == flow.flow).map(|row| row.count).sum();
    assert_eq!(samples, 2);
    assert_eq!((flow.mean_cwnd_bytes, flow.max_cwnd_bytes), (Some(80_000.0), Some(90_000)));
    assert_eq!((flow.completed, flow.end_s), (true, Some(4.0)));
    // The other stream goes the other way.
    assert_eq!(tables.flows.row(1).flow, "tcp [fd00::2]:5201 > [fd00::1]:40002");
    let samples: Vec<_> = tables.samples.iter().map(|row| (row.t_s, row.goodput_mbps, row.srtt_ms)).collect();
    assert_eq!(samples, [(2.0, 8.0, Some(40.0)), (2.0, 4.0, Some(50.0)), (4.0, 16.0, Some(60.0))]);
}

#[test]
fn text_in_front_of_results_is_passed_over_and_said() {
    let plain = of(FILE).results;
    for (text, lines) in [("Starting the test\n", 1), ("\nwarning: Ignoring nonsense TCP MSS 0\n[  5] local\n", 2)] {
        let analysis = of(&format!("{text}{FILE}"));
        assert_eq!(analysis.results.tables, plain.tables);
        let note = format!("{lines} lines of text before the results were left out");
        assert!(analysis.notes.iter().any(|said| said.contains(&note)), "{:?}", analysis.notes);
    }
    assert!(of(FILE).notes.is_empty());
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

#[test]
fn lengths_are_those_that_iperf3_tells_and_not_between_two_clocks() {
    // After omitted seconds, the first interval begins by the old clock; the last may be of microseconds.
    for (start, end) in [(1.0002, 1.0001), (1.0002, 1.0012), (0.00002, 1.0)] {
        let mut file: serde_json::Value = serde_json::from_str(FILE).unwrap();
        file["start"]["test_start"]["omit"] = 1.into();
        file["intervals"][1]["streams"][0]["start"] = start.into();
        file["intervals"][1]["streams"][0]["end"] = end.into();
        let mut last = file["intervals"][2].clone();
        let stream = &mut last["streams"][0];
        (stream["seconds"], stream["bytes"]) = (31e-6.into(), 131_072.into());
        file["intervals"].as_array_mut().unwrap().push(last);
        let analysis = of(&file.to_string());
        let tables = &analysis.results.tables;
        let samples: Vec<_> = tables.samples.iter().filter(|row| row.flow.starts_with("tcp 10")).collect();
        assert_eq!(samples.len(), 2);
        assert!((samples[0].t_s - 1.0).abs() < 0.01 && (samples[1].t_s - 3.0).abs() < 0.01, "{samples:?}");
        assert!((samples[0].goodput_mbps - 8.0).abs() < 0.01 && (samples[1].goodput_mbps - 16.5).abs() < 0.1);
        // Round-trip times without those that were omitted.
        let flow = tables.flows.row(0);
        assert_eq!((flow.rtt_min_ms, flow.rtt_max_ms), (Some(40.0), Some(60.0)));
    }
}

#[test]
fn goodput_and_loss_of_datagrams_are_the_receivers() {
    let udp = |socket: i64, lost: i64| {
        format!(
            r#"{{"udp": {{"socket": {socket}, "seconds": 2, "bytes": 5000000, "jitter_ms": 1.5, "lost_packets": {lost}, "packets": 3500, "sender": true}}}}"#
        )
    };
    let connected = |socket: i64| {
        format!(
            r#"{{"socket": {socket}, "local_host": "10.0.0.1", "local_port": 4000{socket}, "remote_host": "10.0.0.2", "remote_port": 5201}}"#
        )
    };
    let interval = |socket: i64| {
        format!(
            r#"{{"socket": {socket}, "start": 0, "end": 2, "seconds": 2, "bytes": 5000000, "packets": 3500, "omitted": false, "sender": true}}"#
        )
    };
    let file = format!(
        r#"{{"start": {{"connected": [{}, {}], "test_start": {{"protocol": "UDP", "reverse": 0}}}},
        "intervals": [{{"streams": [{}, {}]}}], "end": {{"streams": [{}, {}],
        "sum_received": {{"start": 0, "end": 2, "seconds": 2, "bytes": 6250000, "lost_packets": 2625, "packets": 7000}}}}}}"#,
        connected(5),
        connected(7),
        interval(5),
        interval(7),
        udp(5, 2_625),
        udp(7, 0)
    );
    let analysis = of(&file);
    let tables = &analysis.results.tables;
    let flows: Vec<_> =
        tables.flows.iter().map(|row| (row.goodput_mbps, row.segments_sent, row.lost_packets)).collect();
    assert_eq!(flows, [(5.0, Some(3_500), Some(2_625)), (20.0, Some(3_500), Some(0))]);
    assert!(tables.flows.iter().all(|row| row.jitter_ms == Some(1.5)));
    assert_eq!(
        tables.samples.iter().map(|row| (row.t_s, row.goodput_mbps)).collect::<Vec<_>>(),
        [(2.0, 5.0), (2.0, 20.0)]
    );
    assert_eq!(analysis.results.summary().points[0].flows[0].loss.map(|loss| loss.mean), Some(0.75));
    // A replay sends what was sent.
    let replay = analyse::replay(&analysis.results, None, analyse::Over::Link, "replay").unwrap();
    // 3,500 datagrams of 5 MB in packets with headers of 28 bytes.
    let sent = "rate = \"20391882 bit/s\", packet = \"1457 B\"";
    assert_eq!(replay.scenario.matches(sent).count(), 2, "{}", replay.scenario);
    // Of an interrupted test, only what was written is known; iperf3 writes 0 for what the receiver has not told.
    let cut = file.replace(r#""sum_received""#, r#""other""#).replace(r#""udp""#, r#""none""#);
    assert!(analysed_text(&cut).is_err());
    let nothing = r#""bytes": 0, "lost_packets": 0, "packets": 0"#;
    let silent = file.replace(r#""bytes": 6250000, "lost_packets": 2625, "packets": 7000"#, nothing);
    let silent = silent.replace(r#""lost_packets": 2625"#, r#""lost_packets": 0"#);
    let interrupted = silent.replacen(r#"{"start""#, r#"{"error": "interrupt", "start""#, 1);
    assert!(
        analysed_text(&interrupted).expect_err("nothing is known").to_string().contains("only what their sender wrote")
    );
    // Of one that went to its end, the receiver got nothing, and counts nothing as lost.
    let analysis = of(&silent);
    let flows: Vec<_> = analysis.results.tables.flows.iter().map(|row| (row.bytes, row.lost_packets)).collect();
    assert_eq!(flows, [(0, None), (0, None)]);
}

#[test]
fn the_cases_of_iperf3_are_read_as_iperf3_reports_them() {
    let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    if !has_program(cases.is_dir(), "the folder of cases") {
        return;
    }
    let read = |name: &str| std::fs::read_to_string(cases.join(name)).unwrap();
    for name in
        ["F05-iperf3-omit/refused.json", "F05-iperf3-omit/inflated.json", "F18-iperf3-stream-and-logs/stream.json"]
    {
        let analysis = of(&read(name));
        let tables = &analysis.results.tables;
        let flow = tables.flows.row(0);
        assert!((flow.goodput_mbps - 10.0).abs() < 1e-9, "{name}: {flow:?}");
        assert!((flow.measured_to_s - flow.measured_from_s - 3.0).abs() < 1e-9, "{name}: {flow:?}");
        assert!(tables.samples.iter().all(|row| (9.9..10.1).contains(&row.goodput_mbps)), "{name}");
    }
    let log = of(&read("F18-iperf3-stream-and-logs/log.json"));
    assert_eq!(log.results.meta.points.len(), 2);
    assert!(log.results.tables.flows.iter().all(|flow| (flow.goodput_mbps - 10.0).abs() < 1e-9));
    let udp = of(&read("F06-iperf3-udp/udp.json"));
    let flow = udp.results.tables.flows.row(0);
    assert_eq!((flow.goodput_mbps, flow.lost_packets, flow.segments_sent), (5.0, Some(2_625), Some(3_500)));
}

#[test]
fn a_test_is_read_once_whether_it_comes_whole_or_in_parts() {
    let whole: serde_json::Value = serde_json::from_str(FILE).unwrap();
    let mut whole = whole;
    whole["start"]["cookie"] = "abc".into();
    let part = |event: &str, data: &serde_json::Value| serde_json::json!({ "event": event, "data": data }).to_string();
    let mut parts = vec![part("start", &whole["start"])];
    parts.extend(whole["intervals"].as_array().unwrap().iter().map(|interval| part("interval", interval)));
    parts.push(part("end", &whole["end"]));
    let (parts, one) = (parts.join("\n"), whole.to_string());
    let expected: Vec<_> = of(&one).results.tables.flows.iter().map(|row| row.goodput_mbps).collect();
    let other = one.replace("abc", "def");
    // In parts; with the whole behind it; one after the other, and as a list; and one that breaks off.
    for (text, tests, notes) in [
        (parts.clone(), 1, 0),
        (format!("{parts}\n{one}"), 1, 0),
        (format!("{one}\n{other}\n"), 2, 0),
        (format!("[{one}, {other}]"), 2, 0),
        (format!("{one}{}", &other[..other.len() / 2]), 1, 1),
    ] {
        let analysis = of(&text);
        assert_eq!((analysis.results.meta.points.len(), analysis.notes.len()), (tests, notes), "{:?}", analysis.notes);
        let all: Vec<_> = analysis.results.tables.flows.iter().map(|row| row.goodput_mbps).collect();
        assert_eq!(all, expected.repeat(tests));
    }
}

#[test]
fn a_test_that_did_not_begin_says_why() {
    let text = r#"{"start": {"connected": [], "version": "iperf 3.12"}, "intervals": [], "end": {}, "error": "unable to connect"}"#;
    let error = analysed_text(text).expect_err("nothing was measured").to_string();
    assert!(error.contains("unable to connect"), "{error}");
}

fn analysed_text(text: &str) -> Result<Analysis, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("test.json");
    std::fs::write(&file, text).unwrap();
    analysed(&[file], Rules::Ranway)
}

fn of(text: &str) -> Analysis {
    analysed_text(text).unwrap()
}

/// Returns what a client of iperf3 prints, and its server's port.
fn measured(more: &[&str]) -> (Vec<u8>, u16) {
    // Below the ports that the kernel gives to others. A server that finds its port taken ends, and its client too.
    for port in (20_000 + (std::process::id() % 10_000) as u16..).step_by(7).take(10) {
        let name = port.to_string();
        let mut server = Command::new("iperf3");
        let mut server = server.args(["-s", "-p", &name]).stdout(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_millis(300));
        let line = ["20", "iperf3", "-c", "127.0.0.1", "-p", &name, "-J", "-t", "1", "-b", "50M"];
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
    let options: [&[&str]; 8] = [
        &["-P", "2"],
        &["-P", "2", "-R"],
        &["-O", "1"],
        &["-O", "1", "-i", "0.3", "-R"],
        &["--bidir"],
        &["-u"],
        &["-u", "-R", "-P", "2"],
        &["-u", "--bidir", "-P", "2"],
    ];
    for options in options {
        let (output, port) = measured(options);
        let said: serde_json::Value = serde_json::from_slice(&output).expect("JSON");
        let analysis = of(&String::from_utf8(output).expect("UTF-8"));
        let (has, tables) = (|option: &str| options.contains(&option), &analysis.results.tables);
        let flows: Vec<_> = tables.flows.iter().collect();
        let directions = if has("--bidir") { 2 } else { 1 };
        assert_eq!(flows.len(), directions * if has("-P") { 2 } else { 1 }, "{options:?}");
        for flow in &flows {
            let (from, to) = flow.flow[4..].split_once(" > ").expect("two ends");
            assert!([from, to].contains(&format!("127.0.0.1:{port}").as_str()));
            assert_eq!(flow.transport, if has("-u") { "udp" } else { "tcp" });
            // iperf3 sends at this rate as far as the machine lets it.
            assert!((5.0..60.0).contains(&flow.goodput_mbps), "{options:?}: {flow:?}");
            assert_eq!(flow.lost_packets.is_some() && flow.segments_sent.is_some(), has("-u"));
        }
        assert!(tables.samples.iter().all(|row| row.goodput_mbps < 100.0), "{options:?}");
        // iperf3's own results for either direction.
        for (name, is_reverse) in [("sum_received", has("-R")), ("sum_received_bidir_reverse", true)] {
            let Some(theirs) = said["end"].get(name) else { continue };
            let of_direction = |flow: &&record::tables::FlowRow<'_>| {
                let from_server = flow.flow[4..].starts_with(&format!("127.0.0.1:{port} "));
                from_server == is_reverse
            };
            let bytes: u64 = flows.iter().filter(of_direction).map(|flow| flow.bytes).sum();
            let mbps: f64 = flows.iter().filter(of_direction).map(|flow| flow.goodput_mbps).sum();
            let (their_bytes, their_mbps) = (
                theirs["bytes"].as_f64().expect("a number"),
                theirs["bits_per_second"].as_f64().expect("a number") / 1e6,
            );
            assert!((bytes as f64 - their_bytes).abs() <= 2.0, "{options:?} {name}: {bytes} {their_bytes}");
            assert!((mbps / their_mbps - 1.0).abs() < 0.005, "{options:?} {name}: {mbps} {their_mbps}");
        }
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
