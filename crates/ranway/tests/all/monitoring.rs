//! What operators watch: the metrics of running services, and the rules and dashboards that use them, with Debian's Prometheus.

use crate::common::prometheus::{self, Prometheus, await_values, queried, queries};
use crate::common::proxied::*;
use crate::common::shown::{found, metric, request};
use crate::common::spaces::{Spaces, ip, own_mounts};
use nix::sys::signal::Signal;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};
use testkit::root::granted;

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
        assert!(
            output.status.success(),
            "{args:?}: {}{}",
            crate::common::text(&output.stdout),
            crate::common::text(&output.stderr)
        );
    }
    let text = |name: &str| fs::read_to_string(rules.join(name)).expect("it is there");
    let (rules, tests) = (text("ranway.rules.yml"), text("ranway.rules.test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert} has no test");
    }
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
        let (_, queries) = queries_of_services();
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

/// The queries of the services' dashboard: those for `pep` and `backlog`, and the others.
fn queries_of_services() -> (Vec<String>, Vec<String>) {
    let is_of_two = |query: &String| query.contains("ranway_pep_") || query.contains("ranway_backlog_");
    queries("ranway-services.json").into_iter().partition(is_of_two)
}

/// A router between a UE and a server, which has a modem to a third host, too.
struct Crossing(Spaces);

impl Crossing {
    /// Returns `None`, with a message, where namespaces or eBPF are not available.
    fn new() -> Option<Crossing> {
        granted(emulate::lab::check())?;
        granted(ebpf::divert::check("this test"))?;
        own_mounts(&[]);
        let net = Spaces::new(&[UE, ROUTER, SERVER, "f"]);
        net.join((UE, "u0", &["10.1.0.2/24"]), (ROUTER, "ran", &["10.1.0.1/24"]));
        net.join((SERVER, "s0", &["10.2.0.2/24"]), (ROUTER, "wan", &["10.2.0.1/24"]));
        net.join(("f", "f0", &["10.3.0.2/24"]), (ROUTER, "modem", &["10.3.0.1/24"]));
        for (host, gateway) in [(UE, "10.1.0.1"), (SERVER, "10.2.0.1"), ("f", "10.3.0.1")] {
            ip(&format!("-n {} route add default via {gateway}", net.space(host)));
        }
        ip(&format!("-n {} link set lo up", net.space(ROUTER)));
        let forward = net.command(ROUTER, "sh").args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status();
        assert!(forward.expect("sh").success());
        Some(Crossing(net))
    }

    fn start(&self, args: &[&str]) -> Running {
        Running(Some(self.0.start(ROUTER, args)))
    }

    /// Has `from` send to `to`, an address, until what is returned is dropped.
    fn sends(&self, from: &str, to: (&str, &str)) -> TcpStream {
        let listener = self.0.inside(to.0, || TcpListener::bind((to.1, 0)).expect("a port"));
        let address = listener.local_addr().expect("it is bound");
        let mut stream = self.0.inside(from, || TcpStream::connect(address).expect("it is reached"));
        let (mut peer, _) = listener.accept().expect("it comes");
        let end = stream.try_clone().expect("a descriptor");
        thread::spawn(move || while stream.write_all(&[7; 1 << 14]).is_ok() {});
        thread::spawn(move || std::io::copy(&mut peer, &mut std::io::sink()));
        end
    }

    /// The status and the metrics at a port of the router.
    fn read(&self, port: u16) -> (u16, String) {
        let address = format!("127.0.0.1:{port}");
        self.0.inside(ROUTER, || request(&address, "GET", "/metrics", &[], ""))
    }

    /// The exit code of a command at the router that does not start, and what it says.
    fn refused(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.0.command(ROUTER, env!("CARGO_BIN_EXE_ranway")).args(args).output().expect("it runs");
        (output.status.code(), crate::common::text(&output.stderr))
    }
}

const PEP: [&str; 8] = ["pep", "--wan", "wan", "--ran", "ran", "--all", "--flows", "1000"];
/// By capability(7): memory is allocated with it in processes whose memory is locked.
const IPC_LOCK: u64 = 1 << 14;
const BACKLOG: [&str; 5] = ["backlog", "--modem", "modem", "--rate", "8 Mbit/s"];

#[test]
fn root_the_metrics_of_pep_and_backlog_tell_what_they_count_in_prometheus() {
    if !prometheus::is_there() {
        return;
    }
    let Some(net) = Crossing::new() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let _pep = net.start(&[&PEP[..], &["--metrics", "127.0.0.1:9183"]].concat());
    let _backlog = net.start(&[&BACKLOG[..], &["--metrics", "127.0.0.1:9184"]].concat());
    let jobs = "- job_name: ranway\n  static_configs: [{ targets: ['127.0.0.1:9183', '127.0.0.1:9184'] }]\n";
    let own = "127.0.0.1:9190";
    let _prometheus = Prometheus::start(net.0.command(ROUTER, "prometheus"), dir.path(), jobs, own);
    let flows = [net.sends(SERVER, (UE, "10.1.0.2")), net.sends(UE, ("f", "10.3.0.2"))];
    net.0.inside(ROUTER, || {
        let (queries, _) = queries_of_services();
        assert!(queries.len() > 10, "{queries:?}");
        await_values(own, queries, LONG);
        let value = |query: &str| queried(own, query).unwrap_or_else(|| panic!("{query} has no value"));
        assert_eq!((value("count(ranway_build_info)"), value("sum(up)")), (2.0, 2.0));
        assert_eq!((value("ranway_pep_flows_total"), value("ranway_pep_flows_limit")), (1.0, 1_000.0));
        let [segments, reports] = ["segments", "reports"].map(|what| value(&format!("ranway_pep_{what}_total")));
        assert!(reports > 100.0 && segments > 2.0 * reports, "{reports} of {segments}");
        let a_segment = value("ranway_pep_segment_bytes_total / ranway_pep_segments_total");
        assert!((500.0..70_000.0).contains(&a_segment), "{a_segment} bytes");
        assert_eq!(value("ranway_backlog_modem_rate_bytes_per_second"), 1e6);
        // At first, the interval of the rate begins before the upload.
        found("an upload at the modem's rate", || {
            let rate = value("rate(ranway_backlog_bytes_total[5s])");
            if (0.8e6..1.1e6).contains(&rate) { Ok(()) } else { Err(format!("{rate} bytes a second")) }
        });
        let held = value("ranway_backlog_queue_bytes{queue=\"modem\"}");
        assert!((1.0..=40_000.0).contains(&held), "20 ms at 8 Mbit/s: {held} bytes");
        let waited = value("rate(ranway_backlog_wait_seconds_total[5s]) / rate(ranway_backlog_packets_total[5s])");
        assert!((1e-4..10.0).contains(&waited), "{waited} s");
    });
    drop(flows);
}

#[test]
fn root_metrics_of_pep_and_backlog_keep_neither_from_its_work() {
    let Some(net) = Crossing::new() else { return };
    let with = |args: &[&'static str], address: &'static str| [args, &["--metrics", address]].concat();
    for (args, port) in [(&PEP[..], 9183), (&BACKLOG[..], 9184)] {
        let (code, said) = net.refused(&with(args, "0.0.0.0:9180"));
        assert!(code == Some(2) && said.contains("can be read by others: give a token with --metrics-token"), "{said}");
        let at: &'static str = if port == 9183 { "127.0.0.1:9183" } else { "127.0.0.1:9184" };
        let taken = net.0.inside(ROUTER, || TcpListener::bind(at).expect("it is free"));
        let (code, said) = net.refused(&with(args, at));
        assert!(code == Some(2) && said.ends_with("choose another address with --metrics\n"), "{said}");
        drop(taken);
        let running = net.start(&with(args, at));
        let (status, metrics) = net.read(port);
        assert!(status == 200 && metrics.contains("ranway_build_info{version="), "{metrics}");
        // Whoever serves strangers has no rights.
        let tasks = fs::read_dir(format!("/proc/{}/task", running.pid())).expect("it runs");
        let about =
            tasks.map(|task| fs::read_to_string(task.expect("a task").path().join("status")).expect("it is there"));
        let of_metrics: Vec<String> = about.filter(|about| about.starts_with("Name:\tmetrics\n")).collect();
        assert_eq!(of_metrics.len(), 1);
        let left = of_metrics[0].lines().find_map(|line| line.strip_prefix("CapEff:\t"));
        let left = left.and_then(|left| u64::from_str_radix(left, 16).ok()).expect("it is told");
        assert_eq!(left & !IPC_LOCK, 0, "{left:x}");
        running.end(Signal::SIGTERM);
    }
}

#[test]
fn root_a_pep_that_takes_over_works_while_the_other_one_has_its_addresses() {
    let Some(net) = Crossing::new() else { return };
    let args = [&PEP[..], &["--metrics", "127.0.0.1:9183", "--dashboard", "127.0.0.1:9193"]].concat();
    let mut old = net.0.start(ROUTER, &args);
    let flow = net.sends(SERVER, (UE, "10.1.0.2"));
    let segments = || metric(&net.read(9183).1, "ranway_pep_segments_total").unwrap_or_default();
    found("segments", || if segments() > 10.0 { Ok(()) } else { Err("too few".to_owned()) });
    let before = segments();
    let mut new = net.0.start(ROUTER, &[&args[..], &["--take-over"]].concat());
    let has_ended = |pep: &mut Child| pep.try_wait().expect("it is ours").is_some();
    found("the end of the old one", || if has_ended(&mut old) { Ok(()) } else { Err(String::new()) });
    found("the metrics of the new one", || {
        let is_there = net.0.inside(ROUTER, || TcpStream::connect("127.0.0.1:9183").is_ok());
        assert!(!has_ended(&mut new), "it goes on");
        if is_there { Ok(()) } else { Err("nobody listens".to_owned()) }
    });
    let after = segments();
    assert!(after > before, "it counts on: {before}, {after}");
    drop((flow, Running(Some(new))));
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
    proxy.end(Signal::SIGTERM);
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
