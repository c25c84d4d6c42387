//! `--dashboard`: the page's data against the run's own results, who may see it, and the page in Debian's Chromium.

#![allow(clippy::disallowed_methods)] // Tests of the command run it and read its files.

mod common;

use common::shown::{PATIENCE, Shown, columns, events, request, short};
use common::{eventually, may, scratch, text};
use record::Results;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::realtime::{Watch, conclusive};

/// A link with a download and a call, sampled ten times a second.
const SCENARIO: &str = r#"
title = "A link"
duration = "20 s"
[[links]]
name = "wire"
from = "a"
to = "b"
duplex = true
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", packets = 100 }
[[flows]]
name = "download"
from = "a"
to = "b"
[[flows]]
name = "call"
from = "a"
to = "b"
traffic = { kind = "cbr", rate = "100 kbit/s", packet = "250 B" }
[record]
samples = { kind = "every", interval = "100 ms" }
"#;

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
    let plain = common::command(dir.path(), &["run", "net.toml", "--out", "without", "-q"]).status();
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
        common::command(dir.path(), &["run", "net.toml", "--out", "refused", "--dashboard", address])
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
    let mut command = common::command(dir.path(), &["run", "net.toml", "--dashboard", "0.0.0.0:0", "--out", "x"]);
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
    let mut command = common::command(dir.path(), &args);
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
    let readers = || {
        let (_, metrics) = shown.get("/metrics", &[]);
        let line = metrics.lines().find_map(|line| line.strip_prefix("ranway_dashboard_readers "));
        line.and_then(|n| n.parse::<f64>().ok()).expect("a number")
    };
    let start = Instant::now();
    while readers() < 4.0 {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    while readers() > 0.0 {
        assert!(start.elapsed() < PATIENCE, "they are still there");
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(idle);
}

/// Gives a socket a small receive buffer, so that it is soon full.
fn rustix_small_buffer(stream: &TcpStream) {
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::RcvBuf, &4_096).expect("it is a socket");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page in Chromium, which does `steps` in order.
struct Browser(Child);

impl Browser {
    /// Opens `url`. Without Chromium or Playwright, the test is skipped or fails ([`testkit::root::has_program`]).
    fn open(url: &str, steps: &Value) -> Option<Browser> {
        let is_there = |name: &str| {
            Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        };
        let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().any(is_there);
        let all = chromium && is_there("node") && root().join("web/node_modules/playwright-core").exists();
        if !testkit::root::has_program(all, "chromium, node or web/node_modules") {
            return None;
        }
        let mut command = Command::new("node");
        command.arg(root().join("web/scripts/dashboard.mjs")).args([url, &steps.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(Browser(command.spawn().expect("node is there")))
    }

    /// Waits until the page prints `line`.
    fn await_line(&mut self, line: &str) {
        let stdout = self.0.stdout.as_mut().expect("piped");
        let mut said = Vec::new();
        while !said.ends_with(format!("{line}\n").as_bytes()) {
            let mut byte = [0];
            assert_eq!(stdout.read(&mut byte).expect("it is open"), 1, "it ended: {}", text(&said));
            said.extend(byte);
        }
    }

    fn go_on(&mut self) {
        self.0.stdin.as_mut().expect("piped").write_all(b"go\n").expect("it reads");
    }

    /// What it has found in the end.
    fn found(mut self) -> Value {
        drop(self.0.stdin.take());
        let mut said = String::new();
        self.0.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
        let found: Value = serde_json::from_str(said.lines().last().unwrap_or_default()).expect("JSON");
        assert!(found["failed"].is_null() && found["errors"] == json!([]), "{found}");
        found
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a plot's values through its own button.
const PLOTTED: &str = r#"(async () => {
    let text = "";
    URL.createObjectURL = (blob) => { blob.text().then((all) => (text = all)); return "javascript:void 0"; };
    const figure = [...document.querySelectorAll("figure")].find((one) => one.querySelector("figcaption b")?.firstChild.textContent === "Goodput");
    [...figure.querySelectorAll(".save button")].find((one) => one.textContent === "CSV").click();
    while (text === "") await new Promise((done) => setTimeout(done, 50));
    return text;
})()"#;

#[test]
fn root_the_page_of_an_emulation_plots_its_values_takes_commands_and_stays_after_the_end() {
    if !may() {
        return;
    }
    let dir = scratch(SCENARIO);
    let args =
        ["emulate", "net.toml", "--max-lateness", "1 s", "--set", "duration=\"30 s\"", "--dashboard", "--out", "out"];
    let shown = Shown::start(dir.path(), &args);
    let steps = json!([
        { "wait": "live" },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1" },
        { "command": ["loss", "wire", "0.05"] },
        { "command": ["rate", "wire", "4 Mbit/s"] },
        { "until": "document.querySelector('.log')?.textContent.includes('rate wire')" },
        { "wait": "ended", "s": 80 },
        { "until": "document.querySelector('.live a')?.href.startsWith('blob:')" },
        { "read": "plotted", "script": PLOTTED },
        { "read": "bar", "script": "document.querySelector('.live').textContent" },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    let (code, said) = shown.end();
    assert!(matches!(code, Some(0 | 3)), "{said}");
    assert!(found["bar"].as_str().is_some_and(|bar| bar.starts_with("ended")), "{found}");
    let results = Results::read(&dir.path().join("out")).expect("results");
    let own = results.tables.samples.iter().filter(|row| row.flow == "download");
    let own: Vec<(f64, f64)> = own.map(|row| (short(row.t_s), short(row.goodput_mbps))).collect();
    let lines = found["plotted"].as_str().expect("text").lines().filter_map(|line| line.strip_prefix("download,"));
    let plotted: Vec<(f64, f64)> = lines
        .filter_map(|line| line.split_once(',').and_then(|(t, y)| Some((t.parse().ok()?, y.parse().ok()?))))
        .collect();
    assert!(plotted.len() > 100, "{}", plotted.len());
    // The last samples may come after the last look.
    assert_eq!(plotted[..], own[..plotted.len()]);
    assert!(own.len() - plotted.len() < 20, "{} of {}", plotted.len(), own.len());
    let late = own.iter().filter(|(t, _)| *t > 25.0).map(|(_, mbps)| mbps).sum::<f64>() / 50.0;
    assert!(late < 4.0, "the rate was changed: {late} Mbit/s");
}

#[test]
fn a_page_comes_back_after_a_restart() {
    let dir = scratch(SCENARIO);
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").to_string();
    let start = |out: &str, title: &str| {
        let title = format!("title=\"{title}\"");
        let args =
            ["run", "net.toml", "--set", "duration=\"100000 s\"", "--set", &title, "--dashboard", &free, "--out", out];
        Shown::start(dir.path(), &args)
    };
    let first = start("one", "Before");
    let steps = json!([
        { "wait": "live" },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1" },
        { "line": "seen" },
        { "wait": "reconnecting", "s": 60 },
        { "line": "lost" },
        { "wait": "live", "s": 60 },
        { "until": "document.querySelector('h1').textContent === 'After'", "s": 60 },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1" },
        { "read": "title", "script": "document.title" },
    ]);
    let Some(mut browser) = Browser::open(&first.url, &steps) else { return };
    browser.await_line("seen");
    first.signal("-KILL");
    drop(first);
    browser.go_on();
    browser.await_line("lost");
    let second = start("two", "After");
    browser.go_on();
    assert_eq!(browser.found()["title"], "After – Ranway");
    drop(second);
}

#[test]
fn a_thousand_flows_stay_usable_with_keyboard_and_contrast() {
    conclusive(a_thousand_flows_are_usable);
}

fn a_thousand_flows_are_usable(_: &mut Watch) {
    // The simulation runs much faster than real time: with ten samples a second, its rows would fill gigabytes.
    let scenario = SCENARIO.replace("8 Mbit/s", "100 Mbit/s").replace("\"100 ms\"", "\"1 s\"");
    let dir = scratch(&scenario.replace("name = \"download\"", "name = \"download\"\ncount = 1000"));
    let args = ["run", "net.toml", "--set", "duration=\"100000 s\"", "--dashboard", "--out", "out"];
    let shown = Shown::start(dir.path(), &args);
    let frames = r#"new Promise((done) => {
        const gaps = [];
        let last = performance.now();
        const frame = (now) => {
            gaps.push(now - last);
            last = now;
            if (gaps.reduce((sum, gap) => sum + gap, 0) > 6000) done(Math.max(...gaps));
            else requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    })"#;
    let typed = r##"(async () => {
        const input = document.querySelector("#case input");
        input.focus();
        input.value = "call";
        input.dispatchEvent(new Event("change"));
        await new Promise((done) => setTimeout(done, 3000));
        return [document.querySelector("#case input").value, document.activeElement === document.querySelector("#case input"),
            [...document.querySelectorAll(".keys")][0].textContent];
    })()"##;
    let steps = json!([
        { "wait": "live", "s": 60 },
        { "until": "document.querySelectorAll('ranway-plot canvas').length > 1 && document.querySelectorAll('tbody tr').length > 90", "s": 60 },
        { "read": "gap", "script": frames },
        { "contrast": true },
        { "keyboard": 60 },
        { "read": "typed", "script": typed },
        { "read": "bar", "script": "document.querySelector('.live').textContent" },
    ]);
    let Some(browser) = Browser::open(&shown.url, &steps) else { return };
    let found = browser.found();
    println!("the longest frame took {} ms", found["gap"]);
    assert!(found["gap"].as_f64().is_some_and(|gap| gap < 1_500.0), "a frame took {} ms", found["gap"]);
    assert_eq!((&found["contrast"], &found["contrast_dark"]), (&json!([]), &json!([])));
    let stops = found["keyboard"].as_array().expect("a list");
    let interactive: Vec<&Value> = stops.iter().filter(|stop| stop["tag"] != "BODY").collect();
    assert!(interactive.len() > 40, "{stops:?}");
    assert!(interactive.iter().all(|stop| stop["outlined"] == true), "the focus is seen: {stops:?}");
    let tops: Vec<i64> = interactive.iter().filter_map(|stop| stop["y"].as_i64()).collect();
    let back = tops.windows(2).filter(|pair| pair[1] < pair[0] - 400).count();
    assert!(back <= 1, "the focus goes from top to bottom: {tops:?}");
    assert_eq!(
        (&found["typed"][0], &found["typed"][1]),
        (&"call".into(), &true.into()),
        "what is typed stays, and so does the focus"
    );
}

/// The queries of the dashboard for Grafana, for all runs and flows.
fn grafana_queries() -> Vec<String> {
    let file = root().join("packaging/grafana/ranway.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("it is there")).expect("JSON");
    let panels = file["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
    queries.map(|query| query.replace("$instance", ".*").replace("$flow", ".*")).collect()
}

/// The first value that Prometheus at `address` has for `query`.
fn queried(address: &str, query: &str) -> Option<f64> {
    let form =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let path = format!("/api/v1/query?query={}", query.bytes().map(form).collect::<String>());
    let (status, reply) = request(address, "GET", &path, &[], "");
    assert!(status == 200 || status == 503, "{query}: {reply}");
    let (_, body) = reply.split_once("\r\n\r\n")?;
    let answer: Value = serde_json::from_str(body.get(body.find('{')?..=body.rfind('}')?)?).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

#[test]
fn prometheus_scrapes_what_the_dashboard_for_grafana_asks_for() {
    let dir = scratch(
        "include = [\"preset:lte-10mhz\"]\nduration = \"100000 s\"\n[[flows]]\nname = \"download\"\n[[flows]]\n\
         name = \"upload\"\nfrom = \"ue\"\nto = \"server\"\n",
    );
    let args = ["run", "net.toml", "--set", "lte.proxy={policy=\"best\"}", "--dashboard", "0.0.0.0:0", "--out", "out"];
    let prometheus = Command::new("prometheus").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !testkit::root::has_program(prometheus.is_ok(), "prometheus") {
        return;
    }
    let shown = Shown::start(dir.path(), &args);
    let token = shown.url.split_once("token=").expect("a token").1;
    let own = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").to_string();
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n- job_name: ranway\n  authorization: {{ credentials: '{token}' }}\n  \
         static_configs: [{{ targets: ['{}'] }}]\n",
        shown.address
    );
    std::fs::write(dir.path().join("prometheus.yml"), config).expect("it is written");
    let mut prometheus = Command::new("prometheus");
    prometheus.args([
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        &format!("--web.listen-address={own}"),
    ]);
    let prometheus = prometheus.current_dir(dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let prometheus = Browser(prometheus.expect("it starts"));
    let start = Instant::now();
    let mut queries = grafana_queries();
    assert!(queries.len() > 10, "{queries:?}");
    while !queries.is_empty() {
        assert!(start.elapsed() < PATIENCE, "no values within {PATIENCE:?}: {queries:?}");
        std::thread::sleep(Duration::from_millis(500));
        if TcpStream::connect(&own).is_ok() {
            queries.retain(|query| queried(&own, query).is_none());
        }
    }
    // The first scrapes may come before the download has its rate.
    let query = "max_over_time(ranway_flow_goodput_mbps{flow=\"download\"}[1m])";
    let value = || queried(&own, query).expect("it is scraped");
    eventually("the download has its rate", || value() > 1.0);
    let value = value();
    assert!(value < 36.0, "{value} Mbit/s");
    drop(prometheus);
}
