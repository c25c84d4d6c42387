//! Whatever other inputs hold: an analysis with numbers that are numbers, or one line.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::common::{or_one_line, quick_folder};
use analyse::{Analysis, Error, Options, Over, Rules};
use record::tables::{TcpInfoRow, TcpInfos};
use record::{Results, Table as _};
use units::Span;

fn check(outcome: Result<Analysis, Error>) {
    let Some(analysis) = or_one_line(outcome) else { return };
    let tables = &analysis.results.tables;
    for flow in tables.flows.iter() {
        let shares = [flow.limited_app, flow.limited_cwnd, flow.limited_rwnd, flow.limited_pacing];
        let shares = [&shares[..], &[flow.limited_sndbuf, flow.limited_other]].concat();
        assert!(shares.iter().flatten().all(|share| (0.0..=1.000_001).contains(share)), "{flow:?}");
        let numbers = [flow.goodput_mbps, flow.measured_to_s, flow.start_s].map(Some);
        let numbers = numbers.into_iter().chain([flow.mean_cwnd_bytes, flow.mean_in_flight_bytes]).flatten();
        assert!(numbers.into_iter().all(|number| number.is_finite() && number >= 0.0), "{flow:?}");
        assert!(flow.start_s <= flow.measured_to_s, "{flow:?}");
    }
    for row in tables.samples.iter() {
        assert!(row.goodput_mbps.is_finite() && row.goodput_mbps >= 0.0 && row.t_s.is_finite(), "{row:?}");
    }
    assert!(tables.modem.iter().all(|row| row.t_s.is_finite() && row.rsrp_dbm.is_none_or(f64::is_finite)));
    // What can be replayed is a text, and what cannot be is a line.
    let over = if tables.flows.len() % 2 == 0 { Over::Measured } else { Over::Link };
    match analyse::replay(&analysis.results, Some(0), over, "name") {
        Ok(replay) => assert!(replay.scenario.len() < 1 << 20),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
    let mut report = analysis.results;
    report.meta.runs = 1;
    assert!(!report.summary().points.is_empty());
}

fn any(files: &[(&str, &[u8])]) {
    let dir = quick_folder();
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|(name, bytes)| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        })
        .collect();
    let stop = AtomicBool::new(false);
    for interval in [None, Some(Span::from_millis(10))] {
        let options =
            Options { rules: Rules::Ranway, flows: &[], ends: None, interval, progress: &|_| {}, stop: &stop };
        check(analyse::analyse(&paths, &options));
    }
}

const FLOWS: &str = r#"{"res_id_test": "e", "res_time_start_s": 1496394081, "res_details": {
    "rtt_tcp_payload": {"values": [{"time_start_rel_ns": 1000000, "rtt_client_ns": 61000000}]},
    "dl": [{"flow_id": 0, "time_start_rel_ns": 1000000000, "time_end_rel_ns": 3000000000, "time_series": [{"t": 1000, "b": 10}, {"t": 2000000000, "b": 30}]}],
    "ul": [{"flow_id": 1, "time_series": [{"t_begin": 0, "t_end": 1000000000, "b": 500000}, {"t": 2000000000, "b": 1000000}]}]}}"#;
const STATS: &str = r#"[{"flow_id": 1, "timestamp_ns": 4100000000, "tcpi_rto": 260000, "tcpi_snd_mss": 1000, "tcpi_unacked": 5, "tcpi_sacked": 0,
    "tcpi_lost": 0, "tcpi_retrans": 0, "tcpi_rtt": 60000, "tcpi_rttvar": 5000, "tcpi_snd_cwnd": 10, "tcpi_total_retrans": 2,
    "tcpi_bytes_acked": 99999, "tcpi_bytes_received": 3, "tcpi_notsent_bytes": 0, "tcpi_delivery_rate": 125000, "tcpi_busy_time": 100,
    "tcpi_rwnd_limited": 10, "tcpi_sndbuf_limited": 20}, {"flow_id": 1, "timestamp_ns": 4200000000, "tcpi_rtt": 70000}]"#;
const METADATA: &str = r#"{"DataId":"MONROE.META.DEVICE.MODEM","Timestamp":1496394081.5,"InternalInterface":"op0","DeviceMode":5,"CID":7,"RSRP":-90}
MONROE.META.DEVICE.MODEM.8948 {"Timestamp":1496394083.0,"InternalInterface":"op0","DeviceMode":5,"CID":8,"RSRP":-95}"#;
const NDT7: &str = r#"{"AppInfo":{"ElapsedTime":1000000,"NumBytes":500000},"Origin":"server","Test":"download","TCPInfo":{"ElapsedTime":1000000,"BytesAcked":5,"RTT":9,"BusyTime":7,"RWndLimited":3,"SndBufLimited":2}}
{"Key":"measurement","Value":{"AppInfo":{"ElapsedTime":2000000,"NumBytes":900000},"Origin":"client","Test":"download"}}
{"Upload":{"ServerMeasurements":[{"TCPInfo":{"ElapsedTime":9,"BytesReceived":7}}]}}"#;
const SS: &str = include_str!("../samples/ss-bbr.log");

/// Bytes with some of them replaced, by others and by digits, and perhaps cut.
fn edited(text: &str, edits: &[(u16, u8)], cut: u16) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(at, byte) in edits.iter().take(8) {
        let at = usize::from(at) % bytes.len();
        bytes[at] = if bytes[at].is_ascii_digit() && byte.is_multiple_of(2) { b'0' + byte % 10 } else { byte };
    }
    if cut.is_multiple_of(4) {
        bytes.truncate(usize::from(cut) % bytes.len());
    }
    bytes
}

#[test]
fn any_edit_of_a_good_input_gives_numbers_or_one_line() {
    let edits = bolero::produce::<(u8, Vec<(u16, u8)>, u16)>();
    bolero::check!().with_generator(edits).with_iterations(2_500).for_each(|(which, edits, cut)| {
        let edit = |text| edited(text, edits, *cut);
        match which % 5 {
            0 => any(&[
                ("a_flows.json", &edit(FLOWS)),
                ("a_stats.json", STATS.as_bytes()),
                ("m.json", METADATA.as_bytes()),
            ]),
            1 => any(&[("a_flows.json", FLOWS.as_bytes()), ("a_stats.json", &edit(STATS))]),
            2 => any(&[("a_flows.json", FLOWS.as_bytes()), ("m.json", &edit(METADATA))]),
            3 => any(&[("n.json", &edit(NDT7))]),
            _ => any(&[("ss.log", &edit(SS))]),
        }
    });
}

#[test]
fn any_bytes_after_a_beginning_that_tells_a_kind_are_an_input_or_one_line() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        for begin in [
            "",
            "PAR1",
            "{\"res_details\":",
            "[{\"flow_id\":0,\"tcpi_rtt\":",
            "{\"AppInfo\":",
            "State Recv-Q Send-Q\n",
            "1795597442 ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n cubic rto:200 cwnd:10 bytes_acked:",
            "MONROE.META.DEVICE.MODEM {",
        ] {
            any(&[("a", &[begin.as_bytes(), bytes].concat())]);
        }
        // As what xz unpacks, and as what it cannot.
        let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
        writer.write_all(&[b"{\"res_details\":", bytes].concat()).unwrap();
        any(&[("a_flows.json.xz", &writer.finish().unwrap())]);
        any(&[("a.xz", &[b"\xfd7zXZ\0", bytes].concat())]);
    });
}

#[test]
fn any_state_of_a_kernel_is_decoded_and_any_edit_of_a_table_is_read_or_one_line() {
    let states = bolero::produce::<(Vec<(u8, u8, Vec<u8>)>, Vec<(u16, u8)>)>();
    bolero::check!().with_generator(states).with_iterations(40).for_each(|(states, edits)| {
        let mut table = TcpInfos::default();
        for (conn, at, bytes) in states {
            let raw: Vec<u8> = bytes.iter().copied().cycle().take(if bytes.is_empty() { 0 } else { 280 }).collect();
            let row = TcpInfoRow {
                flow: "upload",
                conn: (conn % 3).into(),
                t_s: f64::from(*at),
                raw: &raw,
                ..TcpInfoRow::default()
            };
            table.push(&row);
        }
        let mut bytes = Vec::new();
        table.write_parquet(&mut bytes).unwrap();
        any(&[("tcp_info.parquet", &bytes)]);
        for &(at, byte) in edits.iter().take(4) {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        any(&[("tcp_info.parquet", &bytes)]);
    });
}

#[test]
fn any_edit_of_a_directory_of_results_is_read_or_one_line() {
    let edits = bolero::produce::<(u8, Vec<(u16, u8)>)>();
    let dir = quick_folder();
    let good = dir.path().join("good");
    let mut results = Results::default();
    let row =
        record::tables::FlowRow { flow: "a", transport: "tcp", bytes: 9, measured_to_s: 1.0, ..Default::default() };
    results.tables.flows.push(&row);
    results.meta.points.push(record::Point::default());
    results.write(&good).unwrap();
    let stop = AtomicBool::new(false);
    bolero::check!().with_generator(edits).with_iterations(300).for_each(|(which, edits)| {
        let copy = dir.path().join("copy");
        let _ = std::fs::remove_dir_all(&copy);
        std::fs::create_dir(&copy).unwrap();
        let edited = ["meta.json", "flows.parquet", "samples.parquet", "timing.json"][usize::from(which % 4)];
        for entry in good.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let mut bytes = std::fs::read(&path).unwrap();
            for &(at, byte) in edits.iter().take(3).filter(|_| name == edited) {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            std::fs::write(copy.join(name), bytes).unwrap();
        }
        let options =
            Options { rules: Rules::Ranway, flows: &[], ends: None, interval: None, progress: &|_| {}, stop: &stop };
        match analyse::analyse(std::slice::from_ref(&copy), &options) {
            Ok(analysis) => assert!(!analysis.results.meta.points.is_empty()),
            Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
        }
    });
}
