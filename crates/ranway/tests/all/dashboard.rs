//! `--dashboard`: the page's data against the run's own results, who may see it, and what it costs. `browser.rs` has tests of the page.

use crate::common::prometheus::{self, Prometheus, await_values, queried, queries};
use crate::common::shown::{SCENARIO, Shown, TEST_TIMEOUT, columns, events, found, request, short};
use crate::common::{eventually, may, scratch, text};
use netio::realtime::thread_time;
use record::Results;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::realtime::{Watch, conclusive};
use testkit::root::has_program;

#[test]
fn what_the_page_gets_is_what_the_run_writes() {
    let dir = scratch(SCENARIO);
    let shown = Shown::start(dir.path(), &["run", "net.toml", "--dashboard", "--out", "out"]);
    assert!(shown.url.starts_with("http://127.0.0.1:") && !shown.url.contains("token"), "{}", shown.url);
    let events = events(&shown.address, "/events");
    let (code, said) = shown.end();
    assert_eq!(code, Some(0), "{said}");
    let results = Results::read(&dir.path().join("out")).expect("results");
    for (flow, rows) in columns(&events, "goodput", "goodput_mbps") {
        let own = results.tables.samples.iter().filter(|row| row.flow == flow);
        let own: Vec<_> = own.map(|row| (short(row.t_s), short(row.goodput_mbps))).collect();
        assert!(own.len() > 100, "{flow}: {}", own.len());
        assert_eq!(rows, own, "{flow}");
    }
    let queues = columns(&events, "queue", "bytes");
    let own = results.tables.queues.iter().filter(|row| row.link == "wire");
    assert_eq!(queues["wire"], own.map(|row| (short(row.t_s), short(row.bytes as f64))).collect::<Vec<_>>());
    let (_, last) = events.last().expect("there are events");
    assert_eq!((&last["live"]["ended"], &last["live"]["report"]), (&true.into(), &"out/report.html".into()));
    let points: Vec<&Value> =
        events.iter().filter_map(|(_, data)| data["results"][0]["summary"]["points"].get(0)).collect();
    let summary = serde_json::to_value(results.summary()).expect("plain data");
    let (shown, own) = (&points.last().expect("means")["flows"], &summary["points"][0]["flows"]);
    for (flow, name) in [(0, "download"), (1, "call")] {
        let mean = |of: &Value, key: &str| {
            let flow = of.as_array().expect("flows").iter().find(|one| one["flow"] == name).expect("it is there");
            flow[key]["mean"].as_f64().map(short)
        };
        for key in ["goodput_mbps", "rtt_p50_ms", "owd_p95_ms"] {
            assert_eq!(mean(shown, key), mean(own, key), "{flow} {name} {key}");
        }
    }
}

#[test]
fn a_run_shows_where_its_cells_and_ues_are() {
    let dir = scratch("include = [\"preset:lte-drive\"]\nduration = \"120 s\"\n[[flows]]\nname = \"download\"\n");
    let shown = Shown::start(dir.path(), &["run", "net.toml", "--dashboard", "--out", "out"]);
    let events = events(&shown.address, "/events");
    let (code, said) = shown.end();
    assert_eq!(code, Some(0), "{said}");
    let lives = events.iter().map(|(_, data)| &data["live"]).filter(|live| !live["places"].is_null());
    let moments: Vec<&Value> = lives.collect();
    assert!(moments.len() > 1, "{events:?}");
    let number = |of: &Value| of.as_f64().expect("a number");
    for live in moments {
        let (cells, car) = (&live["places"]["cells"], &live["places"]["ues"][0]);
        let masts: Vec<f64> = cells.as_array().expect("cells").iter().map(|cell| number(&cell["x"])).collect();
        assert_eq!(masts, [0.0, 500.0, 1000.0, 1500.0, 2000.0]);
        // 60 km/h eastwards.
        let (t_s, x) = (number(&live["t_s"]), number(&car["x"]));
        assert!((x - 16.67 * t_s).abs() < 1.0 && car["y"] == 20.0, "{live}");
        let serving = cells.as_array().expect("cells").iter().find(|cell| cell["name"] == car["cell"]);
        assert!(serving.is_none_or(|cell| (number(&cell["x"]) - x).abs() < 500.0), "{live}");
    }
}

#[test]
fn a_run_with_a_dashboard_has_the_results_of_one_without() {
    let dir = scratch(&format!("{SCENARIO}\n").replace("20 s", "300 s"));
    let shown = Shown::start(dir.path(), &["run", "net.toml", "--dashboard", "--out", "with"]);
    events(&shown.address, "/events");
    assert_eq!(shown.end().0, Some(0));
    let plain = crate::common::command(dir.path(), &["run", "net.toml", "--out", "without", "-q"]).status();
    assert!(plain.expect("it starts").success());
    let [with, without] = ["with", "without"].map(|of| Results::read(&dir.path().join(of)).expect("results").tables);
    assert!(with == without, "looking at a run changes nothing");
}

#[test]
fn a_sweep_shows_its_progress_and_the_means_of_each_point() {
    let dir = scratch(&format!("{SCENARIO}\nruns = 3\n").replacen("\nruns = 3", "", 1).replacen(
        "title",
        "runs = 3\ntitle",
        1,
    ));
    let args = [
        "sweep",
        "net.toml",
        "--set",
        r#"sweep.flows.download.cc=["cubic", "new-reno"]"#,
        "--dashboard",
        "--out",
        "out",
    ];
    let shown = Shown::start(dir.path(), &args);
    let events = events(&shown.address, "/events");
    let (code, said) = shown.end();
    assert_eq!(code, Some(0), "{said}");
    let (_, last) = events.last().expect("there are events");
    assert_eq!((&last["live"]["progress"]["done"], &last["live"]["progress"]["of"]), (&6.into(), &6.into()));
    let summary =
        serde_json::to_value(Results::read(&dir.path().join("out")).expect("results").summary()).expect("plain");
    for point in 0..2 {
        let of = |data: &Value| data["results"][0]["summary"]["points"].as_array().cloned().unwrap_or_default();
        let shown = events.iter().flat_map(|(_, data)| of(data)).rfind(|one| one["point"] == point).expect("means");
        let own = &summary["points"][point];
        for key in ["mean", "n"] {
            let value = |of: &Value| of["goodput_mbps"][key].as_f64().map(short);
            assert_eq!(value(&shown), value(own), "{point} {key}");
        }
    }
}

#[test]
fn an_address_that_is_invalid_or_taken_is_refused_and_two_dashboards_run_at_once() {
    let dir = scratch(SCENARIO);
    let refused = |address: &str| -> Output {
        crate::common::command(dir.path(), &["run", "net.toml", "--out", "refused", "--dashboard", address])
            .output()
            .expect("it starts")
    };
    let output = refused("somewhere");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("use IP:PORT, IP or PORT"), "{}", text(&output.stderr));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one").to_string();
    let taken = text(&refused(&address).stderr);
    assert!(taken.ends_with(": choose another address with --dashboard\n"), "{taken}");
    for address in [address.as_str(), "192.0.2.1:80"] {
        let output = refused(address);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    }
    assert!(!dir.path().join("refused").exists(), "nothing was written");
    let long = ["--set", "duration=\"1000 h\""];
    let both = ["one", "two"]
        .map(|out| Shown::start(dir.path(), &[&["run", "net.toml", "--dashboard", "--out", out], &long[..]].concat()));
    let instances = both.each_ref().map(|one| {
        let (status, page) = one.get("/", &[]);
        assert_eq!(status, 200);
        page.split("\"instance\":\"").nth(1).expect("the page has it").chars().take(32).collect::<String>()
    });
    assert_ne!(instances[0], instances[1]);
}

#[test]
fn strangers_and_hostile_requests_are_refused() {
    let dir = scratch(SCENARIO);
    let long = ["--set", "duration=\"1000 h\"", "--dashboard", "0.0.0.0:0", "--out", "out"];
    let shown = Shown::start(dir.path(), &[&["run", "net.toml"], &long[..]].concat());
    let address = shown.address.clone();
    let token = shown.url.split_once("token=").expect("beyond loopback there is a token").1.to_owned();
    assert_eq!(token.len(), 32);
    for path in ["/", "/events", "/metrics", "/report"] {
        assert_eq!(shown.get(path, &[]).0, 401, "{path}");
        assert_eq!(shown.get(&format!("{path}?token={}", &token[1..]), &[]).0, 401, "{path}");
    }
    assert_eq!(shown.get("/metrics", &[&format!("Authorization: Bearer {token}")]).0, 200);
    let (status, reply) = shown.get(&format!("/?token={token}"), &[]);
    assert_eq!(status, 303);
    let cookie = reply.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = format!("Cookie: {}", cookie.split(';').next().expect("a pair"));
    let (status, page) = shown.get("/", &[&cookie]);
    assert_eq!(status, 200);
    assert!(!page.contains(&token), "a page can be saved and passed on");
    assert_eq!(
        request(&address, "POST", "/control", &[&cookie, "X-Ranway: 1"], "stop").0,
        404,
        "a run has no controls"
    );
    assert_eq!(request(&address, "POST", "/", &[&cookie], "").0, 405);
    assert_eq!(shown.get("/../../etc/passwd", &[&cookie]).0, 404);
    // None of this harms it.
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], b"GET / HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n", &[b'A'; 200_000]] {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(shown.get("/", &[&cookie]).0, 200);
    drop(shown);
    // The token can be chosen, so that it outlives the run.
    let mut command =
        crate::common::command(dir.path(), &["run", "net.toml", "--dashboard", "0.0.0.0:0", "--out", "x"]);
    let output = command.env("RANWAY_DASHBOARD_TOKEN", "short").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_quiet_command_prints_a_token_that_it_has_made_and_no_other() {
    let dir = scratch(SCENARIO);
    let args =
        ["run", "net.toml", "--quiet", "--dashboard", "0.0.0.0:0", "--set", "duration=\"1000 h\"", "--out", "one"];
    let shown = Shown::start(dir.path(), &args);
    let token = shown.url.split_once("token=").expect("a token").1.to_owned();
    assert_eq!(shown.get("/", &[&format!("Authorization: Bearer {token}")]).0, 200);
    drop(shown);
    let args = ["run", "net.toml", "--quiet", "--dashboard", "0.0.0.0:0", "--out", "two"];
    let mut command = crate::common::command(dir.path(), &args);
    let output = command.env("RANWAY_DASHBOARD_TOKEN", "0123456789abcdef").output().expect("it starts");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn a_reader_that_takes_nothing_is_disconnected_and_delays_nobody() {
    let dir = scratch(SCENARIO);
    let long = ["--set", "duration=\"1000 h\"", "--dashboard", "--out", "out"];
    let shown = Shown::start(dir.path(), &[&["run", "net.toml"], &long[..]].concat());
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(&shown.address).expect("it listens");
        rustix_small_buffer(&stream);
        write!(stream, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", shown.address).expect("it is open");
        idle.push(stream);
    }
    let readers = || shown.metric("ranway_dashboard_readers");
    let start = Instant::now();
    while readers() < 4.0 {
        assert!(start.elapsed() < TEST_TIMEOUT);
        std::thread::sleep(Duration::from_millis(50));
    }
    while readers() > 0.0 {
        assert!(start.elapsed() < TEST_TIMEOUT, "they are still there");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(idle);
}

/// Gives a socket a small receive buffer, so that it is soon full.
fn rustix_small_buffer(stream: &TcpStream) {
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::RcvBuf, &4_096).expect("it is a socket");
}

#[test]
fn root_a_page_of_a_hundred_flows_costs_little_more_than_reading_it() {
    let iperf3 = netio::program::find_program("iperf3".as_ref());
    if may() && has_program(iperf3.is_some(), "iperf3") {
        conclusive(a_hundred_flows_are_cheap);
    }
}

fn a_hundred_flows_are_cheap(_: &mut Watch) {
    let dir = scratch("");
    let network = ["emulate", "dumbbell", "--set", "dumbbell.rate=\"50 Mbit/s\"", "--max-lateness", "1 s"];
    let served = ["--dashboard", "--out", "out", "--"];
    // Quiet until its end.
    let load = ["iperf3", "-c", "server", "-R", "-P", "100", "-t", "150", "-i", "0"];
    let shown = Shown::start(dir.path(), &[&network[..], &served, &load].concat());
    let mut page = TcpStream::connect(&shown.address).expect("it listens");
    write!(page, "GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", shown.address).expect("it is open");
    // What it takes to read each renewal.
    let reads = Arc::new(Mutex::new(Vec::new()));
    let read = Arc::clone(&reads);
    let reader = std::thread::spawn(move || {
        let mut lines = BufReader::new(page).lines().map_while(Result::ok);
        while lines.any(|line| line == "event: batch") {
            let Some(data) = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)) else { break };
            let begun = thread_time();
            serde_json::from_str::<Value>(&data).expect("JSON");
            read.lock().expect("nobody panics with it").push(thread_time() - begun);
        }
    });
    // Each renewal of the page adds some of the connections.
    let flows = || shown.get("/metrics", &[]).1.matches("\nranway_flow_goodput_bytes_per_second{").count();
    let start = Instant::now();
    while flows() < 100 {
        assert!(start.elapsed() < TEST_TIMEOUT, "{} flows", flows());
        std::thread::sleep(Duration::from_secs(1));
    }
    let used = || (Instant::now(), shown.metric("ranway_dashboard_cpu_seconds_total"));
    let renewals = || reads.lock().expect("nobody panics with it").len();
    let await_renewal = || {
        let had = renewals();
        found("the page is renewed", || Some(renewals()).filter(|number| *number > had).ok_or_else(String::new))
    };
    // From one renewal to another, as the page rests by what the last one took.
    let first = await_renewal();
    let (begun, before) = used();
    let mut last = first;
    while begun.elapsed() < Duration::from_secs(10) {
        last = await_renewal();
    }
    let (ended, after) = used();
    let read: Duration = reads.lock().expect("nobody panics with it")[first..last].iter().sum();
    let (share, ratio) = ((after - before) / (ended - begun).as_secs_f64(), (after - before) / read.as_secs_f64());
    println!("{:.2} % of a core, {ratio:.2} times what it takes to read", share * 100.0);
    assert_eq!(shown.metric("ranway_dashboard_readers"), 1.0);
    // How much a core does in a second is the machine's.
    assert!(ratio > 0.0 && ratio < 5.0, "{ratio:.2} times");
    shown.signal("-INT");
    shown.end();
    // The reader leaves with the server.
    reader.join().expect("it only reads");
}

#[test]
fn prometheus_scrapes_what_the_dashboard_for_grafana_asks_for() {
    let dir = scratch(
        "include = [\"preset:lte-10mhz\"]\nduration = \"100000 s\"\n[[flows]]\nname = \"download\"\n[[flows]]\n\
         name = \"upload\"\nfrom = \"ue\"\nto = \"server\"\n",
    );
    let args = ["run", "net.toml", "--set", "lte.proxy={policy=\"best\"}", "--dashboard", "0.0.0.0:0", "--out", "out"];
    if !prometheus::is_there() {
        return;
    }
    let shown = Shown::start(dir.path(), &args);
    let token = shown.url.split_once("token=").expect("a token").1;
    let own = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").to_string();
    let jobs = format!(
        "- job_name: ranway\n  authorization: {{ credentials: '{token}' }}\n  static_configs: [{{ targets: ['{}'] }}]\n",
        shown.address
    );
    let _prometheus = Prometheus::start(Command::new("prometheus"), dir.path(), &jobs, &own);
    let queries = queries("ranway.json");
    assert!(queries.len() > 10, "{queries:?}");
    await_values(&own, queries, TEST_TIMEOUT);
    // The first scrapes may come before the download has its rate.
    let query = "8e-6 * max_over_time(ranway_flow_goodput_bytes_per_second{flow=\"download\"}[1m])";
    let value = || queried(&own, query).expect("it is scraped");
    eventually("the download has its rate", || value() > 34.0);
    // A transport block of 36,696 bits each ms, less the headers: 52 bytes of 1500 in IP and TCP, 7 in PDCP, RLC and MAC.
    let (value, bound) = (value(), 36.696 * 1448.0 / 1507.0);
    assert!(value < bound + 0.1, "{value} of {bound} Mbit/s");
}
