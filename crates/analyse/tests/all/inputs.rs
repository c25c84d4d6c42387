//! What other inputs than captures give: our own results, recordings of `TCP_INFO`, logs of ss, nettest's and ndt7's results.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::common::analysed;
use analyse::{Analysis, Error, Options, Over, Rules};
use record::tables::{FlowRow, SampleRow, TcpInfoRow, TcpInfos};
use record::{Meta, Point, Results, Table as _};
use serde_json::json;
use units::Span;

fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn invalid(outcome: Result<Analysis, Error>) -> String {
    match outcome {
        Err(Error::Invalid(what)) => what,
        other => panic!("{other:?}"),
    }
}

/// Results with two points, of which each has a flow.
fn results(goodput_mbps: f64) -> Results {
    let mut results = Results::default();
    for point in 0..2 {
        let values = [("cc".to_owned(), json!(["cubic", "bbr"][point as usize]))].into_iter().collect();
        results.meta.points.push(Point { values });
        for flow in ["bulk", "other"] {
            let row = FlowRow {
                point,
                flow,
                goodput_mbps,
                bytes: 1,
                measured_to_s: 3.0,
                transport: "tcp",
                ..FlowRow::default()
            };
            results.tables.flows.push(&row);
        }
        results.tables.samples.push(&SampleRow { point, flow: "bulk", t_s: 1.0, goodput_mbps, ..SampleRow::default() });
    }
    results.meta = Meta { title: "t".into(), runs: 4, scenario: json!({ "seed": goodput_mbps }), ..results.meta };
    results
}

#[test]
fn results_are_put_side_by_side_a_point_for_each_of_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("simulated"), dir.path().join("measured"));
    results(10.0).write(&a).unwrap();
    results(20.0).write(&b).unwrap();
    let analysis = analysed(&[a.clone(), b.clone()], Rules::Ranway).unwrap();
    let meta = &analysis.results.meta;
    let values: Vec<_> =
        meta.points.iter().map(|point| (&point.values["cc"], point.values["results"].as_str().unwrap())).collect();
    let (first, second) = (a.to_str().unwrap(), b.to_str().unwrap());
    let expected =
        [(&json!("cubic"), first), (&json!("bbr"), first), (&json!("cubic"), second), (&json!("bbr"), second)];
    assert_eq!(values, expected);
    assert_eq!((meta.runs, &meta.scenario["analysed"]["scenarios"][second]["seed"]), (4, &json!(20.0)));
    let tables = &analysis.results.tables;
    let rows: Vec<_> =
        tables.flows.iter().filter(|row| row.flow == "bulk").map(|row| (row.point, row.goodput_mbps)).collect();
    assert_eq!(rows, [(0, 10.0), (1, 10.0), (2, 20.0), (3, 20.0)]);
    assert_eq!(tables.samples.iter().map(|row| row.point).collect::<Vec<_>>(), [0, 1, 2, 3]);
    // And once more, as an input of their own: points keep their values.
    let both = dir.path().join("both");
    analysis.results.write(&both).unwrap();
    let again = analysed(&[both], Rules::Ranway).unwrap();
    assert_eq!(again.results.meta.points.len(), 4);
}

#[test]
fn a_flow_of_results_can_be_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let a = dir.path().join("a");
    results(10.0).write(&a).unwrap();
    let (stop, flows) = (AtomicBool::new(false), ["other".to_owned()]);
    let options =
        Options { rules: Rules::Ranway, flows: &flows, ends: None, interval: None, progress: &|_| {}, stop: &stop };
    let tables = analyse::analyse(&[a], &options).unwrap().results.tables;
    assert!(tables.flows.iter().all(|row| row.flow == "other") && tables.samples.is_empty());
}

#[test]
fn rows_of_a_point_that_does_not_exist_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let mut damaged = results(10.0);
    damaged.meta.points.truncate(1);
    let a = dir.path().join("a");
    damaged.write(&a).unwrap();
    let what = invalid(analysed(&[a], Rules::Ranway));
    assert!(
        what.ends_with(
            "is damaged: flows.parquet: Invalid argument error: a row is of point 1, and there are 1 points"
        ),
        "{what}"
    );
}

/// A state with its numbers at the offsets of the kernel's structure.
fn raw(len: usize, acked: u64, cwnd: u32, busy: [u64; 3]) -> Vec<u8> {
    let mut raw = vec![0; 280];
    let mut put = |at: usize, bytes: &[u8]| raw[at..at + bytes.len()].copy_from_slice(bytes);
    put(16, &1000u32.to_le_bytes());
    put(68, &40_000u32.to_le_bytes());
    put(24, &cwnd.to_le_bytes());
    put(76, &0x7fff_ffffu32.to_le_bytes());
    put(80, &cwnd.to_le_bytes());
    put(120, &acked.to_le_bytes());
    put(148, &30_000u32.to_le_bytes());
    for (value, at) in busy.iter().zip([168, 176, 184]) {
        put(at, &value.to_le_bytes());
    }
    raw.truncate(len);
    raw
}

/// A table of states of an upload, each second.
fn recording(path: &Path, states: &[Vec<u8>]) {
    let mut table = TcpInfos::default();
    for (raw, t) in states.iter().zip(10..) {
        table.push(&TcpInfoRow { flow: "upload", t_s: f64::from(t), raw, ..TcpInfoRow::default() });
    }
    table.write_parquet(File::create(path).unwrap()).unwrap();
}

fn shares(flow: &FlowRow) -> [Option<f64>; 6] {
    let FlowRow { limited_app, limited_cwnd, limited_rwnd, limited_pacing, limited_sndbuf, limited_other, .. } = *flow;
    [limited_app, limited_cwnd, limited_rwnd, limited_pacing, limited_sndbuf, limited_other]
}

#[test]
fn raw_states_tell_what_limited_the_flow() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tcp_info.parquet");
    // Of two seconds: one idle, of the other half a second each of receive window and congestion window.
    let states = [
        raw(280, 1_000_000, 10, [5_000_000, 0, 0]),
        raw(280, 2_000_000, 20, [5_400_000, 200_000, 0]),
        raw(280, 3_000_000, 30, [6_000_000, 500_000, 0]),
    ];
    recording(&file, &states);
    let analysis = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap();
    let tables = &analysis.results.tables;
    let flow = tables.flows.row(0);
    assert_eq!((flow.flow, flow.from, flow.to, flow.bytes, flow.cc), ("upload", "client", "server", 2_000_000, None));
    assert_eq!((flow.start_s, flow.measured_to_s, flow.goodput_mbps), (10.0, 12.0, 8.0));
    let shares = [flow.limited_app, flow.limited_rwnd, flow.limited_cwnd, flow.limited_other].map(Option::unwrap);
    for (share, expected) in shares.into_iter().zip([0.5, 0.25, 0.25, 0.0]) {
        assert!((share - expected).abs() < 1e-9, "{shares:?}");
    }
    let samples: Vec<_> =
        tables.samples.iter().map(|row| (row.goodput_mbps, row.cwnd_bytes, row.limit, row.srtt_ms)).collect();
    assert_eq!(
        samples,
        [
            (0.0, Some(10_000), "", Some(40.0)),
            (8.0, Some(20_000), "app", Some(40.0)),
            (8.0, Some(30_000), "app", Some(40.0))
        ]
    );
    assert_eq!(tables.tcp_info.row(2).raw, &states[2][..]);
    assert_eq!(tables.tcp_info.row(2).min_rtt_us, Some(30_000));
}

#[test]
fn the_congestion_control_of_a_receivers_kernel_is_not_that_of_the_flow() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tcp_info.parquet");
    let mut table = TcpInfos::default();
    // Offsets of what was acknowledged and of what was received.
    for (flow, at) in [("upload-bbr", 120), ("download-cubic", 128)] {
        for n in 0..3u64 {
            let mut raw = raw(280, 0, 10, [0; 3]);
            raw[at..at + 8].copy_from_slice(&(n * 1_000_000).to_le_bytes());
            let (t_s, bbr_bw_mbps) = (n as f64, Some(8.0));
            table.push(&TcpInfoRow { flow, t_s, raw: &raw, bbr_bw_mbps, ..TcpInfoRow::default() });
        }
    }
    table.write_parquet(File::create(&file).unwrap()).unwrap();
    let analysis = analysed(&[file], Rules::Ranway).unwrap();
    let flows: Vec<_> = analysis.results.tables.flows.iter().map(|row| (row.flow, row.bytes, row.cc)).collect();
    assert_eq!(flows, [("download-cubic", 2_000_000, None), ("upload-bbr", 2_000_000, Some("bbr"))]);
}

#[test]
fn a_kernel_that_does_not_count_leaves_the_limits_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tcp_info.parquet");
    let states = [raw(168, 0, 10, [0; 3]), raw(168, 1_000_000, 10, [0; 3]), raw(100, 0, 0, [0; 3])];
    recording(&file, &states);
    let analysis = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap();
    assert_eq!(shares(&analysis.results.tables.flows.row(0)), [None; 6]);
    let what = "1 rows have less than 168 bytes of TCP_INFO (Linux before 4.9) and were left out";
    assert_eq!(analysis.notes, [format!("{}: {what}", file.display())]);
    recording(&file, &[raw(100, 0, 0, [0; 3])]);
    let what = invalid(analysed(std::slice::from_ref(&file), Rules::Ranway));
    assert!(what.ends_with("no row with a state that can be read"), "{what}");
    results(1.0).tables.flows.write_parquet(File::create(&file).unwrap()).unwrap();
    let what = invalid(analysed(&[file], Rules::Ranway));
    assert!(what.contains("no table tcp_info of ours: ") && !what.contains('\n'), "{what}");
}

/// What ss 6.1 printed of both ends of a connection on one host.
const SS: &str = include_str!("../samples/ss-bbr.log");

fn with_interval(file: PathBuf, interval: Option<Span>) -> Result<Analysis, Error> {
    let stop = AtomicBool::new(false);
    let options = Options { rules: Rules::Ranway, flows: &[], ends: None, interval, progress: &|_| {}, stop: &stop };
    analyse::analyse(&[file], &options)
}

#[test]
fn snapshots_of_ss_become_samples_of_each_connection() {
    let dir = tempfile::tempdir().unwrap();
    let analysis = analysed(&[write(dir.path(), "ss.log", SS)], Rules::Ranway).unwrap();
    assert_eq!(analysis.notes, [""; 0]);
    let tables = &analysis.results.tables;
    let name = "tcp 127.0.0.1:33380 > 127.0.0.1:44869";
    // The sender's end comes first in the order of ports, then the receiver's.
    let [sender, receiver] = [0, 1].map(|row| tables.flows.row(row));
    assert_eq!(
        [(sender.flow, sender.conn, sender.cc), (receiver.flow, receiver.conn, receiver.cc)],
        [(name, 0, Some("bbr")), (name, 1, None)]
    );
    assert_eq!((sender.bytes, receiver.bytes, sender.segments_sent), (3_040_000, 3_040_000, Some(304)));
    assert!((sender.measured_to_s - 0.645_137).abs() < 1e-6, "{sender:?}");
    // The kernel has seen a shorter one than its smoothed ones.
    assert_eq!((sender.rtt_min_ms.map(|ms| (ms * 1e3).round()), shares(&receiver)), (Some(15.0), [None; 6]));
    // Busy for 12 of 645 ms, and with room in its window whenever it was asked.
    assert_eq!((sender.limited_app, sender.limited_cwnd), (Some(1.0), Some(0.0)));
    let info = tables.tcp_info.row(3);
    assert_eq!(
        (info.rtt_us, info.rto_us, info.cwnd, info.mss_bytes, info.bytes_acked),
        (29, 204_000, 18, 55_808, 3_120_001)
    );
    assert_eq!((info.busy_us, info.rwnd_limited_us, info.min_rtt_us), (Some(12_000), Some(0), Some(15)));
    assert_eq!((info.bbr_pacing_gain, info.bbr_min_rtt_us), (Some(2.88672), Some(15)));
    assert_eq!((info.raw, tables.samples.row(3).state), (&[][..], ""));
}

#[test]
fn a_congestion_window_that_cannot_be_read_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "ss.log", SS.replace(" cwnd:", " cwnd:9999999999999999999"));
    let analysis = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap();
    let what = "2 connections have congestion windows that cannot be read: windows and segments are missing";
    assert_eq!(analysis.notes, [format!("{}: {what}", file.display())]);
    let tables = &analysis.results.tables;
    let flow = tables.flows.row(0);
    assert_eq!((flow.bytes, flow.mean_cwnd_bytes, flow.max_cwnd_bytes), (3_040_000, None, None));
    assert!(tables.samples.iter().all(|row| row.cwnd_bytes.is_none()));
}

#[test]
fn snapshots_without_times_need_an_interval() {
    let dir = tempfile::tempdir().unwrap();
    let bare: String = SS.lines().filter(|line| !line.starts_with("17955")).map(|line| format!("{line}\n")).collect();
    let file = write(dir.path(), "ss.log", &bare);
    let what = invalid(with_interval(file.clone(), None));
    let expected =
        "has no times: run `date +%s.%N` before each ss, or give the time between two snapshots (--interval 100ms)";
    assert_eq!(what, format!("{}: {expected}", file.display()));
    // Without headings as well, and with the state on the line of the addresses.
    let lines: Vec<&str> = bare.lines().filter(|line| !line.starts_with("State")).collect();
    let joined: String = lines.chunks(2).map(|two| format!("{}{}\n", two[0], two[1])).collect();
    // A snapshot without connections passes time, too.
    let heading = bare.lines().next().unwrap();
    let gap = bare.replacen(&format!("{heading}\n"), &format!("{heading}\n{heading}\n"), 3);
    let analysis = with_interval(write(dir.path(), "gap.log", gap), Some(Span::from_millis(250))).unwrap();
    assert_eq!(analysis.results.tables.flows.row(0).measured_to_s, 1.25);
    for file in [file, write(dir.path(), "joined.log", joined.replace("ESTAB ", ""))] {
        let analysis = with_interval(file, Some(Span::from_millis(250))).unwrap();
        assert_eq!((analysis.results.tables.flows.row(0).measured_to_s, analysis.notes.len()), (0.75, 0));
    }
}

#[test]
fn a_port_that_is_used_again_is_another_connection() {
    let dir = tempfile::tempdir().unwrap();
    let line = |at: u32, acked: u64| {
        format!("09:00:{at:02} ESTAB 0 0 [fd00::1]:5%eth0:1000 [::ffff:10.0.0.2]:443\n09:00:{at:02} \t cubic wscale:7,7 rto:204 rtt:50/2 mss:1000 cwnd:10 ssthresh:7 bytes_acked:{acked} data_segs_out:{} unacked:4 retrans:1/3 lost:1 pacing_rate 1.6Mbps\n", acked / 1000)
            .replace("]:5%eth0:", "%eth0]:")
    };
    let log: String =
        [(0, 1000), (1, 126_000), (2, 251_000), (3, 1000), (4, 63_500)].map(|(at, acked)| line(at, acked)).concat();
    let analysis = analysed(&[write(dir.path(), "ss.log", log)], Rules::Ranway).unwrap();
    let tables = &analysis.results.tables;
    let flows: Vec<_> = tables.flows.iter().map(|row| (row.conn, row.bytes, row.goodput_mbps, row.cc)).collect();
    assert_eq!(flows, [(0, 250_000, 1.0, Some("cubic")), (1, 62_500, 0.5, Some("cubic"))]);
    assert_eq!(tables.flows.row(0).flow, "tcp [fd00::1]:1000 > 10.0.0.2:443");
    let sample = tables.samples.row(1);
    assert_eq!(
        (sample.cwnd_bytes, sample.ssthresh_bytes, sample.in_flight_bytes),
        (Some(10_000), Some(7_000), Some(4_000))
    );
    // An old kernel: no time is told, and nothing limited.
    assert_eq!((tables.tcp_info.row(1).busy_us, shares(&tables.flows.row(0))), (None, [None; 6]));
}

/// FLOWS as nettest writes it: both directions on the same connections.
const FLOWS: &str = r#"{"res_id_test": "e6147214", "res_time_start_s": 1496394081, "res_details": {
    "rtt_tcp_payload": {"values": [{"time_start_rel_ns": 1000000, "rtt_server_ns": 5, "rtt_client_ns": 61000000, "time_end_rel_ns": 2}]},
    "init": [{"client_port": 40000}],
    "dl": [{"time_start_rel_ns": 1000000000, "time_end_rel_ns": 3000000000,
            "time_series": [{"t": 1000000000, "b": 1000000}, {"t": 2000000000, "b": 3000000}]}],
    "ul": [{"time_start_rel_ns": 4000000000, "time_end_rel_ns": 6000000000,
            "time_series": [{"t_begin": 0, "t_end": 1000000000, "b": 500000}, {"t": 2000000000, "b": 1000000}]}]}}"#;

fn stats() -> String {
    let state = |at: f64, acked: u64| {
        json!({"flow_id": 0, "timestamp_ns": (at * 1e9) as u64, "tcpi_state": 1, "tcpi_ca_state": 0, "tcpi_rto": 260000, "tcpi_ato": 40000,
            "tcpi_snd_mss": 1000, "tcpi_unacked": 5, "tcpi_sacked": 0, "tcpi_lost": 0, "tcpi_retrans": 0, "tcpi_rtt": 60000,
            "tcpi_rttvar": 5000, "tcpi_snd_ssthresh": 8, "tcpi_snd_cwnd": 10, "tcpi_total_retrans": 2, "tcpi_bytes_acked": acked,
            "tcpi_bytes_received": 3000000, "tcpi_notsent_bytes": 9000, "tcpi_min_rtt": 55000, "tcpi_data_segs_out": 1000,
            "tcpi_delivery_rate": 125000, "tcpi_busy_time": (at * 1e6) as u64, "tcpi_rwnd_limited": 0, "tcpi_sndbuf_limited": 0})
    };
    json!([state(1.5, 0), state(2.5, 0), state(4.5, 200_000), state(5.5, 700_000), state(6.2, 900_000)]).to_string()
}

fn xz(text: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(6)).unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

const METADATA: &str = r#"{"DataId":"MONROE.META.DEVICE.MODEM","Timestamp":1496394071.5,"InternalInterface":"op0","DeviceMode":5,"CID":7,"RSRP":-90,"Frequency":1800,"ICCID":"8948"}
MONROE.META.DEVICE.MODEM.8948.UPDATE {"Timestamp":1496394083.0,"InternalInterface":"op0","DeviceMode":5,"CID":8,"RSRP":-95}
{"DataId":"MONROE.META.DEVICE.GPS","Timestamp":1496394084.0,"Latitude":59.4}
{"DataId":"MONROE.META.DEVICE.MODEM","Timestamp":1496394999.0,"InternalInterface":"op0","DeviceMode":5,"CID":9,"RSRP":-99}
"#;

#[test]
fn a_test_of_nettest_is_a_point_with_its_radio() {
    let dir = tempfile::tempdir().unwrap();
    let summary = r#"{"Guid": "x", "res_id_test": "e6147214", "res_time_start_s": 1496394081, "res_status": "success", "res_tcp_congestion": "cubic", "Iccid": "8948"}"#;
    write(dir.path(), "1_e6_summary.json", summary);
    write(dir.path(), "1_e6_flows.json.xz", xz(FLOWS));
    write(dir.path(), "1_e6_stats.json.xz", xz(&stats()));
    write(dir.path(), "metadata.json", METADATA);
    write(dir.path(), "readme.txt", "hello");
    let folder = dir.path().to_owned();
    let analysis = analysed(std::slice::from_ref(&folder), Rules::Ranway).unwrap();
    let tables = &analysis.results.tables;
    let [down, up] = [0, 1].map(|row| tables.flows.row(row));
    assert_eq!(
        (down.flow, down.bytes, down.start_s, down.measured_to_s, down.cc),
        ("download", 3_000_000, 1.0, 3.0, None)
    );
    assert_eq!((up.flow, up.bytes, up.start_s, up.goodput_mbps, up.cc), ("upload", 1_000_000, 4.0, 4.0, Some("cubic")));
    assert_eq!((up.retransmitted, up.limited_cwnd, shares(&down)), (Some(2), Some(1.0), [None; 6]));
    assert_eq!((down.segments_sent, down.retransmitted, down.rtos, down.lost_packets), (None, None, None, None));
    assert_eq!((down.mean_cwnd_bytes, down.max_in_flight_bytes, up.max_cwnd_bytes), (None, None, Some(10_000)));
    // The states of one connection are of the direction at their time; a receiver's own round trips are old.
    let samples: Vec<_> =
        tables.samples.iter().map(|row| (row.flow.to_owned(), row.t_s, row.cwnd_bytes, row.srtt_ms)).collect();
    let expected = [
        ("download", 1.5, None, None),
        ("download", 2.5, None, None),
        ("upload", 4.5, Some(10_000), Some(60.0)),
        ("upload", 5.5, Some(10_000), Some(60.0)),
        ("upload", 6.2, Some(10_000), Some(60.0)),
    ];
    assert_eq!(samples, expected.map(|(flow, at, cwnd, srtt)| (flow.to_owned(), at, cwnd, srtt)));
    assert_eq!((tables.latencies.row(0).rtt_ms, tables.latencies.row(0).t_s), (Some(61.0), 0.001));
    // What was known 9.5 s before, and what came 2 s after the beginning.
    let modem: Vec<_> = tables.modem.iter().map(|row| (row.t_s, row.cell, row.rsrp_dbm, row.lag_ms)).collect();
    assert_eq!(modem, [(0.0, Some(7), Some(-90.0), Some(39_500.0)), (2.0, Some(8), Some(-95.0), Some(30_000.0))]);
    assert_eq!((tables.mobility.row(0).event, tables.mobility.row(0).cell), ("changed", "8"));
    let text = format!("{:?}", analysis.results.meta);
    assert!(!text.contains("8948"), "no identity is kept");
    assert_eq!(analysis.notes.len(), 2, "{:?}", analysis.notes);
    // The files alone, in any order, are the same.
    let files = ["1_e6_stats.json.xz", "metadata.json", "1_e6_summary.json", "1_e6_flows.json.xz"]
        .map(|name| folder.join(name));
    let again = analysed(&files, Rules::Ranway).unwrap();
    assert_eq!(again.results.tables, analysis.results.tables);
}

#[test]
fn parts_of_a_test_give_what_they_have() {
    let dir = tempfile::tempdir().unwrap();
    let flows = analysed(&[write(dir.path(), "a_flows.json", FLOWS)], Rules::Ranway).unwrap();
    let tables = &flows.results.tables;
    // Without states, the goodput over time is that of the series.
    let samples: Vec<_> = tables.samples.iter().map(|row| (row.t_s, row.goodput_mbps, row.srtt_ms)).collect();
    assert_eq!(samples, [(3.0, 16.0, None), (6.0, 4.0, None)].map(|row| row));
    let stats = analysed(&[write(dir.path(), "a_stats.json", stats())], Rules::Ranway).unwrap();
    assert_eq!(stats.results.tables.flows.row(0).flow, "upload");
    let summary = r#"{"res_id_test": "a", "res_status": "fail_dl", "res_dl_num_flows": 5, "res_dl_time_ns": 2000000000, "res_dl_bytes": 1000000}"#;
    let summary = analysed(&[write(dir.path(), "a_summary.json", summary)], Rules::Ranway).unwrap();
    assert_eq!((summary.results.tables.flows.row(0).goodput_mbps, summary.notes.len()), (4.0, 2));
    // Metadata alone are radio without flows.
    let metadata = analysed(&[write(dir.path(), "m.json", METADATA)], Rules::Ranway).unwrap();
    assert_eq!((metadata.results.tables.modem.len(), metadata.results.tables.flows.len()), (3, 0));
}

#[test]
fn ndt7_in_its_three_forms_is_the_same_download() {
    let dir = tempfile::tempdir().unwrap();
    let server = |us: u64, acked: u64| {
        json!({"AppInfo": {"ElapsedTime": us, "NumBytes": acked + 99}, "Origin": "server", "Test": "download", "TCPInfo": {"BusyTime": us,
            "BytesAcked": acked, "BytesReceived": 10, "BytesSent": acked, "BytesRetrans": 0, "ElapsedTime": us, "MinRTT": 20000,
            "RTT": 30000, "RTTVar": 1000, "RWndLimited": us / 2, "SndBufLimited": 0}})
    };
    let client = |us: u64, bytes: u64| json!({"AppInfo": {"ElapsedTime": us, "NumBytes": bytes}, "Origin": "client", "Test": "download"});
    let (servers, clients) = ([server(1_000_000, 500_000), server(2_000_000, 1_000_000)], [client(2_000_000, 900_000)]);
    let all: Vec<_> = servers.iter().chain(&clients).collect();
    let lines: String = all.iter().map(|one| format!("{one}\n")).collect();
    let wrapped: String = all.iter().map(|one| format!("{}\n", json!({"Key": "measurement", "Value": one}))).collect();
    let archive = json!({"GitShortCommit": "x", "ServerIP": "192.0.2.1", "StartTime": "2026-11-25T09:04:02.5Z",
        "Download": {"UUID": "u", "StartTime": "2026-11-25T09:04:02.5Z", "ServerMeasurements": servers, "ClientMeasurements": clients}});
    for text in [lines, json!(all).to_string(), wrapped, archive.to_string()] {
        let analysis = analysed(&[write(dir.path(), "ndt7.json", &text)], Rules::Ranway).unwrap();
        let tables = &analysis.results.tables;
        let flow = tables.flows.row(0);
        assert_eq!(
            (flow.flow, flow.from, flow.bytes, flow.goodput_mbps),
            ("download", "server", 900_000, 3.6),
            "{text}"
        );
        assert_eq!((flow.limited_rwnd, flow.limited_cwnd, flow.rtt_p50_ms.is_some()), (Some(0.5), Some(0.5), true));
        // Eleven fields are no table `tcp_info`, and windows are told to be unknown.
        assert_eq!((flow.retransmitted, flow.segments_sent, flow.max_cwnd_bytes), (None, None, None));
        assert_eq!((tables.samples.row(1).cwnd_bytes, tables.samples.row(1).rto_ms), (None, None));
        assert_eq!(
            (tables.tcp_info.len(), tables.samples.len(), analysis.notes.len()),
            (0, 2, 1),
            "{:?}",
            analysis.notes
        );
        assert!(analysis.notes[0].contains("unknown"), "{:?}", analysis.notes);
    }
}

/// Measurements of a server each quarter of a second, of so many Mbit/s.
fn of_server(mbps: u64, seconds: std::ops::RangeInclusive<u64>) -> Vec<serde_json::Value> {
    let bytes = |us: u64| mbps * us / 8;
    let at =
        |us: u64| json!({"TCPInfo": {"BytesAcked": bytes(us), "BytesReceived": 300, "RTT": 20000, "ElapsedTime": us}});
    seconds.map(|quarter| at(quarter * 250_000)).collect()
}

fn goodputs(text: &str) -> (Vec<f64>, usize, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let analysis = analysed(&[write(dir.path(), "ndt7.json", text)], Rules::Ranway).unwrap();
    let mbps = |flow: FlowRow<'_>| (flow.goodput_mbps * 100.0).round() / 100.0;
    (analysis.results.tables.flows.iter().map(mbps).collect(), analysis.results.meta.points.len(), analysis.notes)
}

#[test]
fn archives_in_one_file_are_tests_of_their_own() {
    let archive = |uuid: &str, mbps: u64, quarters: u64| {
        let measurements = of_server(mbps, 1..=quarters);
        json!({"Version": "v0.20", "StartTime": "2023-11-14T10:00:00Z", "Download": {"UUID": uuid,
            "StartTime": "2023-11-14T10:00:00Z", "ServerMeasurements": measurements}})
    };
    let (one, other, broken) = (archive("a", 40, 40), archive("b", 10, 40), archive("c", 20, 1));
    let lines = |all: &[&serde_json::Value]| all.iter().map(|one| format!("{one}\n")).collect::<String>();
    assert_eq!(goodputs(&lines(&[&one, &other])).0, [40.0, 10.0]);
    assert_eq!(goodputs(&json!([one, other]).to_string()).1, 2);
    assert_eq!(goodputs(&lines(&[&json!({"id": "x", "raw": one}), &json!({"id": "y", "raw": other})])).0, [40.0, 10.0]);
    // One that broke off is no part of the next; the same one twice is one.
    assert_eq!(goodputs(&lines(&[&broken, &one, &broken])).0, [20.0, 40.0]);
    assert!(goodputs(&lines(&[&one, &one])).2.iter().any(|note| note.contains("twice")));
    let both = json!({"Download": one["Download"], "Upload": {"UUID": "u", "ServerMeasurements": [
        {"TCPInfo": {"BytesReceived": 250_000, "ElapsedTime": 1_000_000}}, {"TCPInfo": {"BytesReceived": 500_000, "ElapsedTime": 2_000_000}}]}});
    assert_eq!((goodputs(&both.to_string()).0, goodputs(&both.to_string()).1), (vec![40.0, 2.0], 1));
}

#[test]
fn measurements_of_another_test_are_told_by_time_bytes_or_connection() {
    let named = |mut all: Vec<serde_json::Value>, uuid: &str| {
        all.iter_mut().for_each(|one| one["ConnectionInfo"] = json!({ "UUID": uuid }));
        all
    };
    let joined = |one: Vec<serde_json::Value>, other: Vec<serde_json::Value>| -> String {
        one.iter().chain(&other).map(|one| format!("{one}\n")).collect()
    };
    // One that broke off after 1.25 s; bytes that go back although the time does not; another connection.
    assert_eq!(goodputs(&joined(of_server(40, 1..=5), of_server(10, 4..=40))).0, [40.0, 10.0]);
    assert_eq!(goodputs(&joined(of_server(40, 1..=4), of_server(10, 5..=10))).0, [40.0, 10.0]);
    assert_eq!(goodputs(&joined(named(of_server(10, 1..=4), "a"), named(of_server(40, 5..=10), "b"))).0, [10.0, 40.0]);
    assert_eq!(goodputs(&joined(named(of_server(10, 1..=4), "a"), named(of_server(10, 5..=10), "a"))).0, [10.0]);
}

#[test]
fn names_of_ports_that_ss_prints_are_resolved_or_counted() {
    let snapshot = |second: u64, bytes: u64| {
        let state = format!(
            "\t cubic rto:204 rtt:3/1 mss:1448 cwnd:10 bytes_sent:{bytes} bytes_acked:{bytes} segs_out:9 data_segs_out:9\n"
        );
        let peers = [
            "198.51.100.1:8443",
            "198.51.100.1:https",
            "[2001:db8::1]:ssh",
            "server.example:http",
            "192.0.2.9:unheard-of",
        ];
        let mut text = format!(
            "{}.0\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 0 128 0.0.0.0:ssh 0.0.0.0:*\n",
            1_700_000_000 + second
        );
        for (number, peer) in peers.iter().enumerate() {
            let local = if peer.starts_with('[') { "[2001:db8::2]" } else { "192.0.2.1" };
            text += &format!("ESTAB 0 0 {local}:{} {peer}\n{state}", 50_000 + number);
        }
        text
    };
    let dir = tempfile::tempdir().unwrap();
    let log = format!("{}{}", snapshot(0, 1_000), snapshot(1, 90_001_000));
    let analysis = analysed(&[write(dir.path(), "ss.log", &log)], Rules::Ranway).unwrap();
    let flows: Vec<_> = analysis.results.tables.flows.iter().map(|row| (row.flow.to_owned(), row.bytes)).collect();
    let ends = [
        "192.0.2.1:50000 > 198.51.100.1:8443",
        "192.0.2.1:50001 > 198.51.100.1:443",
        "[2001:db8::2]:50002 > [2001:db8::1]:22",
    ];
    assert_eq!(flows, ends.map(|ends| (format!("tcp {ends}"), 90_000_000)));
    assert!(
        analysis.notes.iter().any(|note| note.contains("4 states") && note.contains("ss with -n")),
        "{:?}",
        analysis.notes
    );
    let named: String = log
        .lines()
        .filter(|line| !line.starts_with("ESTAB") || line.contains("example"))
        .map(|line| format!("{line}\n"))
        .collect();
    let error = analysed(&[write(dir.path(), "named.log", &named)], Rules::Ranway).unwrap_err().to_string();
    assert!(error.contains("host or service names") && error.contains("-n"), "{error}");
}

/// Snapshots of an upload at 400 ms and of a connection that sent 400 bytes at 20 ms, once, and is idle.
fn upload_beside_an_idle_connection() -> String {
    let snapshot = |n: u64| {
        let bytes = n * 12_500;
        let upload = format!(
            "rto:804 rtt:{}/1 mss:1448 cwnd:40 bytes_sent:{bytes} bytes_acked:{bytes} data_segs_out:{n}",
            400 + n % 3
        );
        let idle =
            format!("rto:224 rtt:20/1 mss:1448 cwnd:10 bytes_sent:{0} bytes_acked:{0} data_segs_out:1", 400 * n.min(1));
        format!(
            "{}\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\nESTAB 0 0 192.0.2.1:50000 198.51.100.1:443\n\t cubic {upload}\n\
             ESTAB 0 0 192.0.2.1:50001 198.51.100.1:443\n\t cubic {idle}\n",
            1_700_000_000.0 + n as f64 / 10.0
        )
    };
    (0..100).map(snapshot).collect()
}

#[test]
fn an_idle_connection_does_not_decide_what_is_said_of_all() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "ss.log", upload_beside_an_idle_connection());
    let analysis = analysed(&[file], Rules::Ranway).unwrap();
    let tables = &analysis.results.tables;
    assert_eq!(tables.flows.len(), 2);
    // Its round-trip time was told a hundred times, and is one before its data and one after.
    let idle: u64 = tables.rtts.iter().filter(|row| row.flow.contains(":50001")).map(|row| row.count).sum();
    assert_eq!(idle, 2);
    let summary = analysis.results.summary();
    let point = &summary.points[0];
    assert!(point.rtt_p50_ms.unwrap().mean > 399.0 && point.jain.is_none(), "{point:?}");
    let replay = analyse::replay(&analysis.results, None, Over::Link, "replay").unwrap();
    assert_eq!(replay.scenario.matches("[[flows]]").count(), 1, "{}", replay.scenario);
    // Its application sent 1 Mbit/s and had room for more: no capacity follows from that.
    let steps: Vec<&str> = replay.scenario.lines().filter_map(|line| line.strip_prefix("    [\"")).collect();
    let [step] = steps[..] else { panic!("{}", replay.scenario) };
    let rate = step.strip_prefix("0.000 s\", \"").and_then(|rest| rest.strip_suffix(" bit/s\"],"));
    assert!(
        rate.and_then(|rate| rate.parse::<i64>().ok()).is_some_and(|rate| (rate - 1_000_000).abs() < 100),
        "{step}"
    );
    assert!(replay.scenario.contains("rate = \"1 Gbit/s\" # not measured"), "{}", replay.scenario);
    assert!(replay.scenario.contains("rtt = \"401"), "{}", replay.scenario);
    assert!(replay.notes.iter().any(|note| note.contains("1 connections that carried little")), "{:?}", replay.notes);
}

/// `ndt7-client -format json` (ndt7-client-go 0.10.1) and M-Lab's server (ndt-server 0.25.0), through a link of 40 and 15 Mbit/s: some
/// measurements of each direction and end. The last line is the client's summary.
const NDT7: &str = include_str!("../samples/ndt7-client.json");

#[test]
fn what_m_labs_client_prints_has_the_throughput_that_it_tells() {
    let told: serde_json::Value = serde_json::from_str(NDT7.lines().last().expect("a line")).expect("JSON");
    let dir = tempfile::tempdir().unwrap();
    let analysis = analysed(&[write(dir.path(), "ndt7.json", NDT7)], Rules::Ranway).unwrap();
    let flows = &analysis.results.tables.flows;
    for (n, (name, cc, key)) in
        [("download", Some("bbr"), "Download"), ("upload", None, "Upload")].into_iter().enumerate()
    {
        let (flow, mbps) = (flows.row(n), told[key]["Throughput"]["Value"].as_f64().expect("a number"));
        assert_eq!((flow.flow, flow.cc), (name, cc));
        assert!((flow.goodput_mbps - mbps).abs() < 0.01, "{name}: {} {mbps}", flow.goodput_mbps);
    }
    assert_eq!((flows.len(), flows.row(0).retransmitted), (2, Some(0)));
}

#[test]
fn a_connection_within_a_host_is_replayed_once() {
    let dir = tempfile::tempdir().unwrap();
    let analysis = analysed(&[write(dir.path(), "ss.log", SS)], Rules::Ranway).unwrap();
    let replay = analyse::replay(&analysis.results, None, Over::Link, "replay").unwrap();
    assert_eq!(replay.scenario.matches("[[flows]]").count(), 1, "{}", replay.scenario);
    // That of its sender's end.
    assert!(replay.scenario.contains("cc = \"bbr\"\ntraffic = { kind = \"steps\""), "{}", replay.scenario);
    assert!(replay.notes.iter().any(|note| note.contains("1 connections were recorded at both")), "{:?}", replay.notes);
}

#[test]
fn exports_of_bigquery_have_numbers_as_texts() {
    fn as_texts(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Number(number) if number.is_i64() => *value = number.to_string().into(),
            serde_json::Value::Array(all) => all.iter_mut().for_each(as_texts),
            serde_json::Value::Object(all) => all.values_mut().for_each(as_texts),
            _ => {}
        }
    }
    let states = (1..=4).map(|n| {
        json!({"TCPInfo": {"ElapsedTime": n * 250_000, "BytesAcked": n * 1_250_000, "RTT": 20_000 + n, "SndCwnd": 10, "SndMSS": 1_448,
            "TotalRetrans": n, "BusyTime": n * 250_000}, "BBRInfo": {"BW": 40_000_000, "MinRTT": 20_000}})
    });
    let archive =
        json!({"Download": {"StartTime": "2026-11-25T10:00:00Z", "ServerMeasurements": states.collect::<Vec<_>>()}});
    let mut export = json!({"id": "a", "date": "2026-11-25", "raw": archive});
    as_texts(&mut export);
    let dir = tempfile::tempdir().unwrap();
    let of = |text: &serde_json::Value| {
        let analysis = analysed(&[write(dir.path(), "ndt7.json", text.to_string())], Rules::Ranway).unwrap();
        let tables = analysis.results.tables;
        assert!((tables.flows.row(0).goodput_mbps - 40.0).abs() < 1e-9, "{:?}", tables.flows.row(0));
        (tables.flows, tables.samples)
    };
    assert!(of(&archive) == of(&export));
    export["raw"]["Download"]["ServerMeasurements"][0]["TCPInfo"]["RTT"] = "fast".into();
    let what = invalid(analysed(&[write(dir.path(), "ndt7.json", export.to_string())], Rules::Ranway));
    assert!(what.contains("fast") && what.contains("whole number"), "{what}");
}

#[test]
fn an_upload_of_ndt7_counts_what_the_server_received() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"Upload": {"ServerMeasurements": [
        {"AppInfo": {"ElapsedTime": 1000000, "NumBytes": 7}, "TCPInfo": {"ElapsedTime": 1000000, "BytesReceived": 250000, "RTT": 1}},
        {"TCPInfo": {"ElapsedTime": 2000000, "BytesReceived": 500000, "RTT": 1}}], "ClientMeasurements": null}}"#;
    let analysis = analysed(&[write(dir.path(), "ndt7.json", text)], Rules::Ranway).unwrap();
    let flow = analysis.results.tables.flows.row(0);
    assert_eq!((flow.flow, flow.bytes, flow.goodput_mbps, shares(&flow)), ("upload", 500_000, 2.0, [None; 6]));
}

#[test]
fn what_is_of_no_kind_or_wrong_is_one_line_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&str, &str, &str); 8] = [
        ("a.json", "{}", "unknown format: expected a capture"),
        (
            "b_flows.json",
            r#"{"res_details": {"dl": 3}}"#,
            "not FLOWS of nettest: invalid type: integer `3`, expected a list of at most 1024 items at line 1 column 25",
        ),
        (
            "c_stats.json",
            r#"[{"flow_id": 5000, "timestamp_ns": 1, "tcpi_rtt": 1}]"#,
            "not STATS of nettest: flow_id 5000: expected a number below 1024",
        ),
        (
            "d_summary.json",
            r#"{"res_id_test": "a" "#,
            "not a summary of nettest: EOF while parsing an object at line 1 column 20",
        ),
        ("e.json", r#"{"AppInfo": 5}"#, "not results of ndt7: invalid type: integer `5`"),
        ("f.json", r#"{"TCPInfo": null, "Key": "measurement"}"#, "no measurement of ndt7 (AppInfo or TCPInfo)"),
        ("g.json", r#"{"DataId": "MONROE.META.DEVICE.MODEM", "RSRP": -90}"#, "no message about a modem with a time"),
        ("h.log", "State Recv-Q Send-Q\n", "no state of a connection: run ss with -t and -i"),
    ];
    for (name, text, expected) in cases {
        let path = write(dir.path(), name, text);
        let what = invalid(analysed(std::slice::from_ref(&path), Rules::Ranway));
        assert!(what.starts_with(&format!("{}: {expected}", path.display())) && !what.contains('\n'), "{what}");
    }
    let what = invalid(analysed(&[dir.path().join("none").tap_dir()], Rules::Ranway));
    assert!(what.contains("no directory of results (no meta.json)"), "{what}");
    let mut packed = xz(FLOWS);
    packed.truncate(packed.len() / 2);
    let path = write(dir.path(), "i_flows.json.xz", packed);
    let what = invalid(analysed(&[path], Rules::Ranway));
    assert!(!what.contains('\n'), "{what}");
}

trait TapDir {
    fn tap_dir(self) -> PathBuf;
}

impl TapDir for PathBuf {
    /// Makes the directory.
    fn tap_dir(self) -> PathBuf {
        fs::create_dir(&self).unwrap();
        self
    }
}
