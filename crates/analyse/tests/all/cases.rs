//! Captures that were once measured wrongly, written by the scripts of a folder of cases beside the sources, if that is there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::analysed;
use analyse::{Analysis, Rules};
use record::Table as _;
use tempfile::TempDir;
use testkit::root::has_program;

/// The folder of a case; `None`, loudly, if there are no cases.
fn case(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases").join(name);
    has_program(folder.is_dir(), "the folder of cases").then_some(folder)
}

/// What comes of the files that a case's script makes.
fn made(name: &str, script: &str) -> Option<TempDir> {
    let folder = case(name)?;
    let dir = tempfile::tempdir().unwrap();
    let made = Command::new("python3").arg(folder.join(script)).current_dir(&dir).status();
    assert!(made.is_ok_and(|made| made.success()), "{name}/{script}");
    Some(dir)
}

fn of(file: PathBuf) -> Analysis {
    analysed(&[file], Rules::Ranway).unwrap()
}

#[test]
fn a_hole_in_a_capture_of_one_direction_does_not_stop_its_goodput() {
    let Some(dir) = made("F17-one-way-capture-hole", "mk.py") else { return };
    for (name, bytes) in [("whole.pcap", 2_896_000), ("hole.pcap", 2_894_552)] {
        let analysis = of(dir.path().join(name));
        let tables = &analysis.results.tables;
        let flow = tables.flows.row(0);
        // tcptrace: unique bytes.
        assert_eq!((flow.bytes, flow.retransmitted), (bytes, Some(0)), "{name}");
        assert_eq!((flow.lost_packets, flow.dup_acks), (None, None), "{name}");
        let tcp = tables.tcp_flows.row(0);
        let counts =
            [tcp.fast, tcp.timeouts, tcp.spurious, tcp.dup_acks, tcp.dsacks, tcp.zero_windows, tcp.window_full];
        assert_eq!(counts, [None; 7], "{name}");
        assert_eq!([tcp.keep_alives, tcp.zero_window_probes, tcp.acked_unseen], [None; 3], "{name}");
        // What this direction tells by itself.
        let gaps = u64::from(name == "hole.pcap");
        assert_eq!(
            (tcp.segments, tcp.retransmitted, tcp.gaps, tcp.foreign),
            (2_000 - gaps, 0, gaps, Some(0)),
            "{name}"
        );
        assert_eq!((flow.mean_in_flight_bytes, flow.max_in_flight_bytes), (None, None), "{name}");
        let samples: Vec<_> = tables.samples.iter().map(|row| (row.in_flight_bytes, row.goodput_mbps > 6.0)).collect();
        assert!(samples.iter().all(|sample| *sample == (None, true)), "{name}: {samples:?}");
        assert!(tables.tcp_samples.iter().all(|row| (row.in_flight_bytes, row.pipe_bytes) == (None, None)), "{name}");
    }
}

#[test]
fn probes_of_a_closed_window_are_no_retransmissions() {
    let Some(folder) = case("F11-zero-window-probes") else { return };
    let analysis = of(folder.join("probes.pcap"));
    let row = analysis.results.tables.tcp_flows.row(0);
    assert_eq!((row.retransmitted, row.timeouts, row.zero_window_probes), (0, Some(0), Some(10)));
    assert_eq!((row.segments, analysis.results.tables.flows.row(0).bytes), (40, 40 * 1_448));
}

#[test]
fn segments_of_an_earlier_connection_do_not_disturb_one_of_the_same_ports() {
    let Some(dir) = made("F19-port-reuse-challenge-ack", "mk.py") else { return };
    let Some(other) = made("F19-port-reuse-challenge-ack", "mk2.py") else { return };
    let files =
        [dir.path().join("download.pcap"), dir.path().join("upload.pcap"), other.path().join("two_synacks.pcap")];
    for file in files {
        let name = file.display().to_string();
        let analysis = of(file);
        let tables = &analysis.results.tables;
        let last = tables.flows.len() - 1;
        assert_eq!(tables.flows.len(), if name.contains("two_synacks") { 1 } else { 2 }, "{name}");
        let (flow, tcp) = (tables.flows.row(last), tables.tcp_flows.row(last));
        assert_eq!(
            (flow.bytes, tcp.retransmitted, tcp.spurious, tcp.acked_unseen),
            (579_200, 0, Some(0), Some(0)),
            "{name}"
        );
        assert_eq!(flow.max_in_flight_bytes, Some(14_480), "{name}");
        assert!(flow.rtt_p50_ms.is_some(), "{name}");
    }
}

#[test]
fn a_segment_outside_the_window_is_not_taken_for_data() {
    let Some(dir) = made("F20-outside-the-window", "mk.py") else { return };
    let analysis = of(dir.path().join("stray.pcap"));
    let tables = &analysis.results.tables;
    let (flow, tcp) = (tables.flows.row(0), tables.tcp_flows.row(0));
    assert_eq!((tcp.retransmitted, tcp.out_of_order, flow.max_in_flight_bytes), (0, 0, Some(14_480)));
    assert_eq!((tcp.foreign, analysis.notes.len()), (Some(1), 1), "{:?}", analysis.notes);
    assert_eq!(flow.bytes, 579_200);
}

#[test]
fn what_a_capture_of_datagrams_cannot_tell_is_missing() {
    let Some(folder) = case("F09-udp-loss-invented") else { return };
    let analysis = of(folder.join("rtp.pcap"));
    let flow = analysis.results.tables.flows.row(0);
    assert_eq!((flow.segments_sent, flow.bytes), (Some(500), 500 * 172));
    assert_eq!((flow.lost_packets, flow.retransmitted, flow.dup_acks), (None, None, None));
    assert_eq!((flow.mean_in_flight_bytes, flow.max_in_flight_bytes), (None, None));
    let summary = analysis.results.summary();
    let of = &summary.points[0].flows[0];
    assert!(of.loss.is_none() && of.retransmission_rate.is_none());
    assert!(analysis.results.tables.samples.iter().all(|row| (row.lost, row.in_flight_bytes) == (None, None)));
}

#[test]
fn joined_archives_of_ndt7_are_two_downloads() {
    let Some(folder) = case("F07-ndt7-archives") else { return };
    let analysis = of(folder.join("two.jsonl"));
    let mbps: Vec<f64> = analysis.results.tables.flows.iter().map(|flow| flow.goodput_mbps.round()).collect();
    assert_eq!((mbps, analysis.results.meta.points.len()), (vec![40.0, 10.0], 2));
}

#[test]
fn flows_to_ports_with_names_are_in_a_log_of_ss() {
    let Some(folder) = case("F13-ss-names") else { return };
    let analysis = of(folder.join("ss.log"));
    let bytes: Vec<u64> = analysis.results.tables.flows.iter().map(|flow| flow.bytes).collect();
    assert_eq!(bytes, [100_000, 90_000_000]);
    let error = analysed(&[folder.join("names.log")], Rules::Ranway).unwrap_err().to_string();
    assert!(error.contains("run ss with -n"), "{error}");
}
