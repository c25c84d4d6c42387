//! `--dashboard` of services: values that a test knows are in the page's data and in the metrics, and what a service does not know
//! is in neither. Tests that need root report when they are skipped.

use crate::common::proxied::{self, Net, ROUTER, SERVER, SERVERS, UES};
use crate::common::service::MeasureServer;
use crate::common::shown::{Shown, events, found, metric, newest, short};
use crate::common::spaces::{Spaces, ip, own_mounts};
use record::Results;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testkit::root::granted;

#[test]
fn the_page_of_rnis_has_the_queues_that_reports_tell_and_no_others() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let socket = dir.path().join("reports");
    let input = format!("recording:unix:{}", socket.display());
    let shown = Shown::start(dir.path(), &["rnis", "--listen", "127.0.0.1:0", "--input", &input, "--dashboard"]);
    assert_eq!((shown.get("/metrics", &[]).0, shown.get("/events", &[]).0), (401, 401), "they have addresses");
    let mut feed = found("the socket for reports", || UnixStream::connect(&socket).map_err(|why| why.to_string()));
    let stop = AtomicBool::new(false);
    // Of the cell's 10,000 block-slots, 6000 are used. The second UE's reports have what every report has.
    let reports = || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_micros();
        let of = |rnti: u16, more: &str| {
            format!(
                r#"{{"time_us":{now},"interval_us":100000,"cell":7,"rnti":{rnti},"address":"10.45.0.{rnti}","n_prb":100,"slots":100,{more}}}"#
            )
        };
        let told =
            r#""cell_prbs":6000,"prbs":2500,"acked_bits":800000,"blocks":100,"failed":10,"mcs":20,"queue_bytes":12345"#;
        format!("{}\n{}\n", of(61, told), of(62, r#""acked_bits":400000,"blocks":0,"failed":0"#))
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) && feed.write_all(reports().as_bytes()).is_ok() {
                thread::sleep(Duration::from_millis(100));
            }
        });
        let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reported(&shown)));
        // Otherwise a test that fails would wait for the thread.
        stop.store(true, Relaxed);
        looked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    shown.signal("-INT");
    assert_eq!(shown.end().0, Some(0));
}

/// Looks for what the reports tell.
fn reported(shown: &Shown) {
    let expected = [
        ("ranway_ue_dl_queue_bytes{ue=\"10.45.0.61\"}", 12_345.0),
        ("ranway_ue_dl_prbs_ratio{ue=\"10.45.0.61\"}", 0.25),
        ("ranway_ue_dl_mcs{ue=\"10.45.0.61\"}", 20.0),
        ("ranway_ue_dl_bler_ratio{ue=\"10.45.0.61\"}", 0.1),
        ("ranway_ue_dl_bytes_per_second{ue=\"10.45.0.61\"}", 1e6),
        ("ranway_ue_dl_bytes_per_second{ue=\"10.45.0.62\"}", 5e5),
        ("ranway_cell_dl_prbs_ratio{cell=\"cell 7\"}", 0.6),
    ];
    let is_near = |value: Option<f64>, wanted: f64| value.is_some_and(|value| (value - wanted).abs() < 1e-9);
    let metrics = found("the values of the reports", || {
        let metrics = shown.metrics();
        let all = expected.iter().all(|(series, wanted)| is_near(metric(&metrics, series), *wanted));
        if all { Ok(metrics) } else { Err(metrics) }
    });
    let of_second: Vec<&str> = metrics.lines().filter(|line| line.contains("10.45.0.62")).collect();
    assert!(of_second.len() == 1 && of_second[0].starts_with("ranway_ue_dl_bytes_per_second"), "{of_second:?}");
    for unknown in ["ue_rsrp_dbm", "ue_ul_queue_bytes", "ue_los", "cell_ul_prbs"] {
        assert!(!metrics.contains(&format!("ranway_{unknown}{{")), "{unknown}: {metrics}");
    }
    let whole = found("the reports on the page", || {
        let whole = shown.whole();
        let queue = newest(&whole, "radio", "10.45.0.61", "dl_queue_bytes");
        let has_means = whole["results"][0]["ues"].as_array().is_some_and(|ues| ues.len() == 2);
        if queue == Some(12_345.0) && has_means { Ok(whole) } else { Err(whole.to_string()) }
    });
    let [first, second] = ["10.45.0.61", "10.45.0.62"].map(|ue| {
        let rows = whole["results"][0]["ues"].as_array().expect("UEs").iter();
        rows.clone().find(|row| row["ue"] == ue).unwrap_or_else(|| panic!("{whole}"))
    });
    assert_eq!((&first["utilisation"], &second["utilisation"]), (&0.25.into(), &Value::Null));
    assert!(first.get("retransmissions").is_none() && first.get("queue_ms").is_none(), "{first}");
    for column in ["dl_queue_bytes", "dl_prbs", "dl_mcs", "dl_bler"] {
        assert_eq!(newest(&whole, "radio", "10.45.0.62", column), None, "{column}");
    }
}

#[test]
fn the_page_of_rnis_has_all_reports_of_a_feed_that_falls_silent() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let socket = dir.path().join("reports");
    let input = format!("recording:unix:{}", socket.display());
    let shown = Shown::start(dir.path(), &["rnis", "--listen", "127.0.0.1:0", "--input", &input, "--dashboard"]);
    let mut feed = found("the socket for reports", || UnixStream::connect(&socket).map_err(|why| why.to_string()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_micros();
    let report = |rnti: u16| {
        let text = format!(
            r#"{{"time_us":{now},"interval_us":100000,"cell":7,"rnti":{rnti},"n_prb":100,"slots":100,"acked_bits":800000,"blocks":0,"failed":0}}"#
        );
        text + "\n"
    };
    feed.write_all((1..=9).map(report).collect::<String>().as_bytes()).expect("it is open");
    found("each UE of the burst", || {
        let metrics = shown.metrics();
        let is_there =
            |rnti| metric(&metrics, &format!("ranway_ue_dl_bytes_per_second{{ue=\"7/{rnti:#x}\"}}")) == Some(1e6);
        if (1..=9).all(is_there) { Ok(()) } else { Err(metrics) }
    });
    shown.signal("-INT");
    assert_eq!(shown.end().0, Some(0));
}

#[test]
fn the_page_of_a_measurement_has_each_of_its_flows() {
    let (server, dir) = (MeasureServer::start("127.0.0.1:0"), tempfile::tempdir().expect("a temporary directory"));
    let options = ["-d", "up", "--flows", "3", "-t", "6s", "--idle", "1s", "--hops", "0", "--modem", "none"];
    let args = [&["measure", &server.address][..], &options, &["--dashboard", "--out", "out"]].concat();
    let shown = Shown::start(dir.path(), &args);
    found("each flow's rate, window and round-trip time", || {
        let metrics = shown.metrics();
        let is_there = |column: &str, conn: u32| {
            let series = format!("ranway_flow_{column}{{flow=\"upload\",conn=\"{conn}\"}}");
            metric(&metrics, &series).is_some_and(|value| value > 0.0)
        };
        let columns = ["goodput_bytes_per_second", "cwnd_bytes", "srtt_seconds"];
        let all = (0..3).all(|conn| columns.iter().all(|column| is_there(column, conn)));
        let has_probes = metric(&metrics, "ranway_probe_rtt_seconds{probe=\"request\"}").is_some_and(|rtt| rtt > 0.0);
        if all && has_probes { Ok(()) } else { Err(metrics) }
    });
    let events = events(&shown.address, "/events");
    let (code, said) = shown.end();
    assert_eq!(code, Some(0), "{said}");
    let results = Results::read(&dir.path().join("out")).expect("results");
    let mut shown_flows = BTreeMap::new();
    for row in events.iter().flat_map(|(_, data)| data["results"][0]["flows"].as_array().cloned().unwrap_or_default()) {
        shown_flows.insert(row["conn"].as_u64().expect("a number"), row);
    }
    assert_eq!(shown_flows.keys().copied().collect::<Vec<_>>(), [0, 1, 2]);
    for own in results.tables.flows.iter() {
        let row = &shown_flows[&u64::from(own.conn)];
        assert_eq!((row["flow"].as_str(), row["cc"].as_str()), (Some(own.flow), own.cc), "{row}");
        // The page's last look is before the end, and the server counts in the results.
        let ratio = row["goodput_mbps"].as_f64().expect("a number") / own.goodput_mbps;
        assert!((0.7..1.4).contains(&ratio), "{row}\n{own:?}");
    }
    let limited = events.iter().rev().find_map(|(_, data)| {
        let flow = &data["results"][0]["summary"]["points"][0]["flows"][0];
        (flow["flow"] == "upload").then(|| flow["limited"].clone())
    });
    assert!(limited.is_some_and(|limited| limited["cwnd"]["mean"].is_number()), "what limited them is shown");
}

#[test]
fn root_the_page_of_a_proxy_has_the_queues_of_ues_and_of_the_largest_flows() {
    let Some(net) = Net::new() else { return };
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--wan", "wan", "--ran", "ran", "--drain", "300 ms", "--dashboard"]);
    let shown = Shown::of(command);
    net.until("it accepts", |status| status.accepting);
    // Four sockets, and the page's.
    net.await_lease(true);
    assert_eq!(net.inside(ROUTER, || shown.get("/metrics", &[])).0, 401, "they have addresses");
    let listener = net.listen(SERVER, SERVERS[0]);
    let (client, mut server) = net.pair(&listener);
    let (ue, peer) = (client.local_addr().expect("it is open"), listener.local_addr().expect("it is open"));
    // The UE reads nothing: what does not fit into its receive buffer waits in the proxy and its sockets.
    let writing = thread::spawn(move || server.write_all(&vec![7; 64 << 20]));
    let flow = format!("tcp {peer} > {ue}");
    let waiting = found("the bytes that wait for the UE", || {
        let before = net.status();
        let (metrics, whole) = net.inside(ROUTER, || (shown.metrics(), shown.whole()));
        let waiting: u64 = net.status().connections.iter().map(services::proxy::Connection::waiting).sum();
        let settled = before.connections.iter().map(services::proxy::Connection::waiting).sum::<u64>() == waiting;
        let told = [
            metric(&metrics, &format!("ranway_link_bytes{{link=\"{}\"}}", UES[0])),
            metric(&metrics, &format!("ranway_flow_held_bytes{{flow=\"{flow}\",conn=\"0\"}}")),
        ];
        let plotted = [newest(&whole, "queue", UES[0], "bytes"), newest(&whole, "proxy", &flow, "held_bytes")];
        let all = waiting > 0
            && settled
            && told == [Some(waiting as f64); 2]
            && plotted == [Some(short(waiting as f64)); 2]
            && metric(&metrics, &format!("ranway_flow_cwnd_bytes{{flow=\"{flow}\",conn=\"0\"}}")) > Some(0.0);
        if all { Ok(waiting) } else { Err(format!("{waiting} {told:?} {plotted:?}\n{metrics}")) }
    });
    println!("{waiting} bytes wait");
    proxied::reset(client);
    assert!(writing.join().expect("it only writes").is_err(), "not all of it fits");
    shown.signal("-INT");
    assert_eq!(shown.end().0, Some(0));
}

#[test]
fn root_the_pages_of_backlog_and_the_pep_have_rates_queues_and_counters() {
    if granted(emulate::lab::check()).is_none() || granted(ebpf::divert::check("this test")).is_none() {
        return;
    }
    own_mounts(&[]);
    let (ue, router, server) = ("u", "r", "s");
    let net = Spaces::new(&[ue, router, server]);
    net.join((ue, "u0", &["10.9.1.1/24"]), (router, "ran", &["10.9.1.2/24"]));
    net.join((router, "wan", &["10.9.3.1/24"]), (server, "s0", &["10.9.3.2/24"]));
    ip(&format!("-n {} route add default via 10.9.1.2", net.space(ue)));
    ip(&format!("-n {} route add default via 10.9.3.1", net.space(server)));
    ip(&format!("-n {} link set lo up", net.space(router)));
    let forward = net.command(router, "sh").args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status();
    assert!(forward.expect("sh").success());
    for (args, flow) in [
        (&["backlog", "--modem", "wan", "--rate", "8 Mbit/s"][..], "all traffic"),
        (&["pep", "--wan", "wan", "--ran", "ran", "--all"], "data of all flows"),
    ] {
        let mut command = net.command(router, env!("CARGO_BIN_EXE_ranway"));
        command.args(args).arg("--dashboard");
        let shown = Shown::of(command);
        let listener = net.inside(server, || TcpListener::bind("10.9.3.2:0").expect("a port"));
        let address = listener.local_addr().expect("it is bound");
        // Each side sends what it can until the other one leaves.
        let sends = |mut stream: TcpStream| while stream.write_all(&[7; 1 << 14]).is_ok() {};
        let reads = |mut stream: TcpStream| std::io::copy(&mut stream, &mut std::io::sink());
        let near = net.inside(ue, || TcpStream::connect(address).expect("the server is there"));
        let (far, _) = listener.accept().expect("the UE connects");
        let end = near.try_clone().expect("a descriptor");
        for stream in [near, far] {
            let other = stream.try_clone().expect("a descriptor");
            thread::spawn(move || sends(stream));
            thread::spawn(move || reads(other));
        }
        let series = format!("ranway_flow_goodput_bytes_per_second{{flow=\"{flow}\",conn=\"0\"}}");
        found(flow, || {
            let (metrics, whole) = net.inside(router, || (shown.metrics(), shown.whole()));
            let rate = metric(&metrics, &series);
            // The backlog service keeps 8 Mbit/s; nothing limits what passes a PEP.
            let has_rate =
                rate.map(|rate| rate * 8e-6).is_some_and(|mbps| mbps > 7.0 && (flow != "all traffic" || mbps < 9.0));
            let rest = if flow == "all traffic" { has_queue } else { has_reports };
            if has_rate && rest(&metrics, &whole) { Ok(()) } else { Err(metrics) }
        });
        let _ = end.shutdown(Shutdown::Both);
        shown.signal("-INT");
        assert_eq!(shown.end().0, Some(0));
    }
}

/// Whether `backlog` tells of a queue that an upload fills, with drops, and nothing of the modem's that nobody knows.
fn has_queue(metrics: &str, whole: &Value) -> bool {
    let of_host = |column: &str| metric(metrics, &format!("ranway_link_{column}{{link=\"host\"}}"));
    let is_positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let dropped = metric(metrics, "ranway_backlog_dropped_total");
    assert!(!metrics.contains("ranway_link_dropped{link=\"modem"), "{metrics}");
    assert_eq!(newest(whole, "queue", "modem (estimated)", "dropped"), None);
    ["bytes", "packets", "sojourn_seconds"].iter().all(|column| is_positive(of_host(column)))
        && is_positive(dropped)
        && of_host("dropped") == dropped
        && is_positive(newest(whole, "queue", "host", "bytes"))
}

/// Whether a PEP tells of the reports that it sends to servers.
fn has_reports(metrics: &str, whole: &Value) -> bool {
    let is_positive = |value: Option<f64>| value.is_some_and(|value| value > 0.0);
    let counted = ["flows", "segments", "reports"].map(|what| metric(metrics, &format!("ranway_pep_{what}_total")));
    let mut counters = whole["live"]["counters"].as_array().expect("a list").iter();
    let rate = metric(metrics, "ranway_flow_goodput_bytes_per_second{flow=\"reports to servers\",conn=\"0\"}");
    is_positive(rate)
        && counted.into_iter().all(is_positive)
        && counters.any(|counter| counter["name"] == "pep_reports" && counter["value"].as_u64() > Some(0))
}
