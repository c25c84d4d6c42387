//! Recordings of one connection by several tools: a capture, a log of ss and a result of iperf3.

use std::fs;
use std::path::PathBuf;

use crate::common::{Script, analysed};
use analyse::{Rules, ToldBy, why};

const FLOW: &str = "tcp 10.0.0.1:40000 > 10.0.0.2:80";

/// Two seconds of an upload that begins a second after the capture's first packet.
fn recordings(dir: &std::path::Path, begin_s: u64) -> [PathBuf; 3] {
    let mut script = Script::new(1_000, 40_000, true);
    for n in 0..200 {
        script.data(1_000_000 + u64::from(n) * 10_000, n);
        script.ack(1_040_000 + u64::from(n) * 10_000, n + 1, &[]);
    }
    script.packets.sort_by_key(|packet| packet.at_us);
    let capture = script.write(&dir.join("c.pcap"));
    // The clock of `crate::common::pcap` begins at 10^9 s.
    let snapshot = |n: u64| {
        let (at, acked) = (begin_s as f64 + 0.5 + n as f64 / 10.0, n.saturating_sub(5).min(20) * 10_000);
        let state = format!(
            "cubic rto:240 rtt:40/1 mss:1000 cwnd:10 bytes_sent:{acked} bytes_acked:{acked} data_segs_out:{} busy:{}ms unacked:4",
            acked / 1_000,
            acked / 100
        );
        // A socket of IPv6 shows the same addresses as mapped ones.
        format!("{at:.3}\nESTAB 0 0 [::ffff:10.0.0.1]:40000 [::ffff:10.0.0.2]:80\n\t {state}\n")
    };
    let log = dir.join("ss.log");
    fs::write(&log, (0..26).map(snapshot).collect::<String>()).unwrap();
    let interval = |n: u64| {
        format!(
            r#"{{"streams": [{{"socket": 5, "start": {n}, "end": {}, "seconds": 1, "bytes": 100000, "retransmits": 0, "snd_cwnd": 10000,
                "rtt": 40000, "omitted": false, "sender": true}}]}}"#,
            n + 1
        )
    };
    let result = format!(
        r#"{{"start": {{"connected": [{{"socket": 5, "local_host": "10.0.0.1", "local_port": 40000, "remote_host": "10.0.0.2",
            "remote_port": 80}}], "timestamp": {{"timesecs": {begin_s}}}, "test_start": {{"protocol": "TCP", "reverse": 0}}}},
            "intervals": [{}, {}], "end": {{}}}}"#,
        interval(0),
        interval(1)
    );
    let iperf3 = dir.join("iperf3.json");
    fs::write(&iperf3, result).unwrap();
    [iperf3, log, capture]
}

#[test]
fn recordings_of_a_connection_share_a_time_axis_and_the_one_that_knows_most_tells() {
    let dir = tempfile::tempdir().unwrap();
    let analysis = analysed(&recordings(dir.path(), 1_000_000_000), Rules::Ranway).unwrap();
    let tables = &analysis.results.tables;
    let flows: Vec<_> = tables.flows.iter().map(|row| (row.point, row.flow, (row.start_s * 10.0).round())).collect();
    // The capture began first. The log's first snapshot is half a second later, and iperf3, which tells whole seconds, begins with the
    // connection.
    assert_eq!(flows, [(0, FLOW, 0.0), (1, FLOW, 5.0), (2, FLOW, 0.0)]);
    let first =
        |point: u32| tables.samples.iter().find(|row| row.point == point && row.goodput_mbps > 0.0).unwrap().t_s;
    assert!((first(1) - 1.1).abs() < 0.01 && (first(2) - 1.1).abs() < 0.01, "{} {}", first(1), first(2));
    let is_told = |note: &String| note.contains("one time axis") && note.contains("ss.log") && note.contains("c.pcap");
    assert!(analysis.notes.iter().any(is_told), "{:?}", analysis.notes);
    let why = why(&analysis.results);
    let told: Vec<_> = why.iter().map(|one| (one.point, one.told_by, one.told_in)).collect();
    assert_eq!(told, [0, 1, 2].map(|point| (point, Some(ToldBy::Sender), Some(1))));
    assert!(why.iter().all(|one| one.limited.is_some_and(|shares| shares.app > 0.9)), "{why:?}");
}

#[test]
fn recordings_of_other_times_are_not_of_the_same_connection() {
    let dir = tempfile::tempdir().unwrap();
    let analysis = analysed(&recordings(dir.path(), 1_000_001_000), Rules::Ranway).unwrap();
    let told: Vec<_> = why(&analysis.results).iter().map(|one| (one.point, one.told_in)).collect();
    // The log and the result, but not the capture.
    assert_eq!(told, [(0, Some(1)), (1, Some(1)), (2, Some(2))]);
    assert!(analysis.results.tables.flows.row(2).start_s.abs() < 1e-9);
}

#[test]
fn an_iperf3_that_tells_milliseconds_is_taken_at_its_word() {
    let dir = tempfile::tempdir().unwrap();
    let files = recordings(dir.path(), 1_000_000_000);
    let text = fs::read_to_string(&files[0]).unwrap();
    // A time that contradicts the seconds beside it is none.
    for (ms, start_s) in [(1_000_000_000_700_u64, 0.7), (1_000_000_003_000, 0.0)] {
        let told = format!(r#""timesecs": 1000000000, "timemillisecs": {ms}"#);
        fs::write(&files[0], text.replace(r#""timesecs": 1000000000"#, &told)).unwrap();
        let analysis = analysed(&files, Rules::Ranway).unwrap();
        let row = analysis.results.tables.flows.iter().find(|row| row.point == 0).unwrap().start_s;
        assert!((row - start_s).abs() < 1e-3, "{ms}: {row}");
    }
}
