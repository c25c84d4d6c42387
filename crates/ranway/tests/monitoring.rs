//! What operators watch: the metrics of running services, and the rules and dashboards that use them, with Debian's Prometheus.

#![allow(clippy::disallowed_methods)] // Tests of a command run commands and read files.

mod common;

use common::prometheus::{self, Prometheus, await_values, queried, queries};
use common::proxied::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The time until a service and Prometheus have started, and rates have two scrapes.
const LONG: Duration = Duration::from_secs(60);

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_alerts_fire_for_their_faults_and_for_no_others() {
    if !prometheus::is_there() {
        return;
    }
    let rules = root("packaging/prometheus");
    for args in [["check", "rules", "ranway.rules.yml"], ["test", "rules", "ranway.rules.test.yml"]] {
        let output = Command::new("promtool").args(args).current_dir(&rules).output().expect("it starts");
        assert!(output.status.success(), "{args:?}: {}{}", common::text(&output.stdout), common::text(&output.stderr));
    }
    let text = |name: &str| fs::read_to_string(rules.join(name)).expect("it is there");
    let (rules, tests) = (text("ranway.rules.yml"), text("ranway.rules.test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert} has no test");
    }
}

#[test]
fn the_reference_has_the_counters_of_pep_and_backlog() {
    let reference = fs::read_to_string(root("docs/src/metrics.md")).expect("it is there");
    let mut told: Vec<&str> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `ranway_")?.split_once("_total`"))
        .map(|(name, _)| name)
        .filter(|name| name.starts_with("pep_") || name.starts_with("backlog_"))
        .collect();
    let sources = [include_str!("../src/live/pep.rs"), include_str!("../src/live/backlog.rs")].concat();
    let parts = sources.split("Counter { name: \"").skip(1);
    let mut named: Vec<&str> = parts.filter_map(|part| part.split_once('"')).map(|(name, _)| name).collect();
    told.sort_unstable();
    named.sort_unstable();
    assert_eq!(told, named);
}

#[test]
fn root_each_panel_of_the_services_has_a_value_in_prometheus() {
    if !prometheus::is_there() {
        return;
    }
    let Some(net) = Net::new() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let place = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (reports, input) = (place("proxy"), place("rnis"));
    let source = |path: &str| format!("recording:unix:{path}");
    let _proxy = net.proxy(&["--metrics", "127.0.0.1:9180", "--reports", &source(&reports)]);
    let listen = ["--listen", "127.0.0.1:9191", "--open", "--metrics", "127.0.0.1:9181"];
    let _server = Running(Some(net.start(ROUTER, &[&["measure", "serve"], &listen[..]].concat())));
    let rnis = ["rnis", "--listen", "127.0.0.1:9192", "--metrics", "127.0.0.1:9182", "--input", &source(&input)];
    let _rnis = Running(Some(net.start(ROUTER, &rnis)));
    let start = Instant::now();
    while !Path::new(&input).exists() {
        assert!(start.elapsed() < LONG, "the input has no socket");
        std::thread::sleep(Duration::from_millis(20));
    }
    let _cells = [Cell::start(&reports, 20.0), Cell::start(&input, 20.0)];
    let jobs =
        "- job_name: ranway\n  static_configs: [{ targets: ['127.0.0.1:9180', '127.0.0.1:9181', '127.0.0.1:9182'] }]\n";
    let own = "127.0.0.1:9190";
    let _prometheus = Prometheus::start(net.command(ROUTER, "prometheus"), dir.path(), jobs, own);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    // Bytes pass before several samples of the connection.
    for _ in 0..30 {
        exchange(&mut client, &mut server);
        std::thread::sleep(Duration::from_millis(100));
    }
    net.inside(ROUTER, || {
        let queries = queries("ranway-services.json");
        assert!(queries.len() > 30, "{queries:?}");
        await_values(own, queries, LONG);
        let value = |query: &str| queried(own, query).unwrap_or_else(|| panic!("{query} has no value"));
        assert_eq!(value("count(ranway_build_info)"), 3.0);
        assert_eq!(value("sum(up)"), 3.0);
        assert_eq!((value("ranway_proxy_accepting"), value("sum(ranway_proxy_bypass)")), (1.0, 0.0));
        assert_eq!(value("ranway_proxy_handshake_seconds_count"), 1.0);
        for side in ["ran", "wan"] {
            assert!(value(&format!("ranway_proxy_rtt_seconds_count{{side=\"{side}\"}}")) >= 2.0, "{side}");
            assert!(value(&format!("ranway_proxy_wait_seconds_count{{to=\"{side}\"}}")) >= 2.0, "{side}");
        }
        assert!(value("ranway_proxy_feed_age_seconds") < 5.0);
        assert!(value("min(process_resident_memory_bytes)") > 1e6);
        let age = value("time() - ranway_rnis_input_latest_record_timestamp_seconds");
        assert!((-1.0..5.0).contains(&age), "{age}");
    });
    drop((client, server));
}

#[test]
fn root_connections_that_end_are_in_the_log_and_ues_with_most_traffic_in_the_status() {
    let Some(net) = Net::new() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let log = dir.path().join("connections.jsonl");
    let proxy = net.proxy(&["--connection-log", &log.to_string_lossy()]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    let (ue, peer) = (client.local_addr().expect("an address"), listener.local_addr().expect("an address"));
    exchange(&mut client, &mut server);
    let top = net.on_router(env!("CARGO_BIN_EXE_ranway"), &["proxy", "status", "--top", "1", "--json"]);
    let top: serde_json::Value = serde_json::from_str(&top).expect("JSON");
    assert_eq!((&top[0]["ue"], &top[0]["connections"]), (&UES[0].into(), &1.into()));
    drop(client);
    assert_eq!(ending(&mut server), None);
    drop(server);
    net.until("it has ended", |status| status.totals.closed == 1);
    proxy.end(nix::sys::signal::Signal::SIGTERM);
    let text = fs::read_to_string(&log).expect("it is there");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [entry] = &lines[..] else { panic!("one line: {text}") };
    let expected = serde_json::json!({
        "ue": ue,
        "peer": peer,
        "opened_by": "ran",
        "end": "closed",
        "established": true,
        "to_ue_bytes": 16,
        "from_ue_bytes": 16,
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&entry[key], value, "{key}: {text}");
    }
    assert!(entry["duration_s"].as_f64() > Some(0.0) && entry["ran"]["srtt_s"].as_f64() > Some(0.0), "{text}");
    assert_eq!(entry["wan"]["retransmissions"], 0, "{text}");
}
