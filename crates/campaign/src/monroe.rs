//! MONROE's layout: what its container `nettest` writes for each test (github.com/MONROE-PROJECT/Experiments, nettest/readme.md).
//!
//! | file | contents |
//! | --- | --- |
//! | `TIME_ID_summary.json` | one object; the keys of the original, null where unknown or identifying |
//! | `TIME_ID_flows.json.xz` | FLOWS: `res_details.{init,pretest_dl,dl,pretest_ul,ul}[]` with `time_start_rel_ns`, `time_end_rel_ns` and `time_series[{t,b}]`, ns and bytes since the flow's start |
//! | `TIME_ID_stats.json.xz` | STATS: `flow_id`, `timestamp_ns` and `tcpi_*`, which only real tests have in full |
//!
//! Deviations: the byte counts of the series are integrated from the samples' goodput; there is no pre-test, and no phase `init`.
//! Flows are numbered through, downloads first.

use std::io::Write;
use std::path::PathBuf;

use lzma_rust2::{XzOptions, XzWriter};
use record::Results;
use record::tables::FlowRow;
use serde_json::{Map, Value, json};

use crate::measures::{Values, values};
use crate::plan::{Plan, Test};
use crate::store::{Folder, Store, json as to_json};
use crate::{Error, File};

/// Writes the folder `monroe` of a campaign; replaces an earlier one. Returns its path.
///
/// # Errors
/// A test cannot be read, or the folder not be written.
pub fn export(file: &File, plan: &Plan, store: &Store, complete: bool) -> Result<PathBuf, Error> {
    let mut folder = Folder::create(store, "monroe")?;
    for test in &plan.tests {
        if !store.has_finished(test)? {
            continue;
        }
        let path = store.results(test);
        let results = Results::read(&path)?;
        let found = values(&results, &test.combination, complete);
        let found = found.map_err(|why| Error::Invalid(format!("{}: {why}", path.display())))?;
        let start = store.last(test).map_or(0.0, |entry| entry.started_unix_s);
        let id = id(file, test);
        let stem = format!("{}_{id}", start.floor() as u64);
        folder.write(&format!("{stem}_summary.json"), &line(&summary(store, test, &id, &results, &found)))?;
        folder.write(
            &format!("{stem}_flows.json.xz"),
            &xz(&flows(&results, &id, test)).map_err(Error::io("compress", &path))?,
        )?;
        folder.write(
            &format!("{stem}_stats.json.xz"),
            &xz(&stats(&results, test)).map_err(Error::io("compress", &path))?,
        )?;
    }
    folder.commit()
}

/// MONROE's summaries are one line each.
fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

fn xz(value: &Value) -> std::io::Result<Vec<u8>> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(6))?;
    writer.write_all(&to_json(value))?;
    writer.finish()
}

/// An identifier of a test in the form of a UUID (version 8 of RFC 9562), the same in every export.
fn id(file: &File, test: &Test) -> String {
    use sha2::{Digest, Sha256};
    let text = serde_json::to_string(&(file, test)).expect("string keys and plain values");
    let mut bytes: [u8; 16] = Sha256::digest(text.as_bytes())[..16].try_into().expect("16 of 32 bytes");
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn summary(store: &Store, test: &Test, id: &str, results: &Results, found: &[Values]) -> Value {
    let state = store.state();
    let entry = store.last(test).filter(|entry| entry.started_unix_s > 0.0);
    let end = entry.map(|entry| entry.started_unix_s + entry.wall_s);
    let of = |name: &str| found.iter().find(|values| values.name == name);
    let bytes = |name: &str| of(name).map_or(0, |values| values.bytes);
    let cc = &test.combination.cc;
    let mut pings: Vec<f64> = results
        .tables
        .latencies
        .iter()
        .filter(|row| row.probe == "request" && row.phase == "before")
        .filter_map(|row| row.rtt_ms)
        .collect();
    let count = pings.len();
    let ping = crate::bootstrap::median(&mut pings).map(|ms| (ms * 1e6).round() as u64);
    let mut all = json!({
        "Guid": id,
        "Timestamp": end,
        "Iccid": null,
        "Operator": null,
        "NodeId": null,
        "DataVersion": 2,
        "ErrorCode": 0,
        "DataId": "MONROE.EXP.RMBT",
        "SequenceNumber": test.number,
        "res_id_test": id,
        "res_time_start_s": entry.map(|entry| entry.started_unix_s.floor() as u64),
        "res_time_end_s": end.map(|end| end.floor() as u64),
        "res_status": "success",
        "res_status_msg": null,
        "res_version_client": format!("ranway {}", results.meta.version),
        "res_version_server": null,
        "res_server_ip": null,
        "res_server_port": null,
        "res_encrypt": state.campaign["where"]["tls"] == true,
        "res_tcp_congestion": if cc == "new-reno" { "reno" } else { cc },
        "res_total_bytes_dl": bytes("download"),
        "res_total_bytes_ul": bytes("upload"),
        "res_uname_sysname": std::env::consts::OS.to_owned().replace("linux", "Linux"),
        "res_uname_nodename": null,
        "res_uname_release": state.host.kernel,
        "res_uname_version": null,
        "res_uname_machine": state.host.machine,
        "res_rtt_tcp_payload_num": count,
        "res_rtt_tcp_payload_client_ns": ping,
        "res_rtt_tcp_payload_server_ns": null,
    });
    for (name, short) in [("download", "dl"), ("upload", "ul")] {
        let Some(values) = of(name) else { continue };
        all[format!("res_{short}_num_flows")] = values.flows.len().into();
        all[format!("res_{short}_time_ns")] = ((values.span_s * 1e9).round() as u64).into();
        all[format!("res_{short}_bytes")] = values.bytes.into();
        all[format!("res_{short}_throughput_kbps")] = (values.throughput_mbps * 1e3).into();
    }
    all
}

/// The flows of a test with their numbers through both directions.
fn numbered<'a>(results: &'a Results, test: &'a Test) -> impl Iterator<Item = (usize, FlowRow<'a>)> {
    let names = test.combination.direction.flows().iter();
    names.flat_map(|name| results.tables.flows.iter().filter(move |row| row.flow == *name)).enumerate()
}

fn flows(results: &Results, id: &str, test: &Test) -> Value {
    let mut details: Map<String, Value> = ["init", "pretest_dl", "dl", "pretest_ul", "ul"]
        .into_iter()
        .map(|phase| (phase.to_owned(), json!([])))
        .collect();
    for (number, flow) in numbered(results, test) {
        let phase = if flow.flow == "download" { "dl" } else { "ul" };
        let (mut bytes, mut before) = (0.0, flow.start_s);
        let mut series = vec![json!({ "t": 0, "b": 0 })];
        for sample in results.tables.samples.iter().filter(|row| row.flow == flow.flow && row.conn == flow.conn) {
            if sample.t_s <= before {
                continue;
            }
            bytes += sample.goodput_mbps * (sample.t_s - before) / 8e-6;
            before = sample.t_s;
            series.push(json!({ "t": ((sample.t_s - flow.start_s) * 1e9).round() as u64, "b": bytes.round() as u64 }));
        }
        if let Some(Value::Array(of)) = details.get_mut(phase) {
            let end = flow.start_s.max(before);
            of.push(json!({
                "flow_id": number,
                "time_start_rel_ns": (flow.start_s * 1e9).round() as u64,
                "time_end_rel_ns": (end * 1e9).round() as u64,
                "time_series": series,
            }));
        }
    }
    json!({ "res_id_test": id, "res_details": details })
}

fn stats(results: &Results, test: &Test) -> Value {
    let mut rows = Vec::new();
    let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
    for (number, flow) in numbered(results, test) {
        let tables = &results.tables;
        if tables.tcp_info.iter().len() == 0 {
            for row in tables.samples.iter().filter(|row| row.flow == flow.flow && row.conn == flow.conn) {
                rows.push(json!({
                    "flow_id": number, "timestamp_ns": nanos(row.t_s),
                    "tcpi_rtt": row.srtt_ms.map(|ms| (ms * 1e3).round() as u64),
                    "tcpi_rto": row.rto_ms.map(|ms| (ms * 1e3).round() as u64).filter(|us| *us > 0),
                }));
            }
            continue;
        }
        for row in tables.tcp_info.iter().filter(|row| row.flow == flow.flow && row.conn == flow.conn) {
            rows.push(json!({
                "flow_id": number, "timestamp_ns": nanos(row.t_s),
                "tcpi_rto": row.rto_us, "tcpi_snd_mss": row.mss_bytes, "tcpi_unacked": row.unacked, "tcpi_sacked": row.sacked,
                "tcpi_lost": row.lost, "tcpi_retrans": row.retrans, "tcpi_rtt": row.rtt_us, "tcpi_rttvar": row.rttvar_us,
                "tcpi_snd_cwnd": row.cwnd, "tcpi_total_retrans": row.total_retrans, "tcpi_bytes_acked": row.bytes_acked,
                "tcpi_bytes_received": row.bytes_received, "tcpi_notsent_bytes": row.notsent_bytes, "tcpi_min_rtt": row.min_rtt_us,
                "tcpi_delivery_rate": (row.delivery_mbps / 8e-6).round() as u64, "tcpi_busy_time": row.busy_us,
                "tcpi_rwnd_limited": row.rwnd_limited_us, "tcpi_sndbuf_limited": row.sndbuf_limited_us,
            }));
        }
    }
    Value::Array(rows)
}
