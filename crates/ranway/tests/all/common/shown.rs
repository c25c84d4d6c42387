//! A running command with `--dashboard`, and what its page and its metrics have.

use super::{command, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;

/// The longest that anything here takes on a busy machine.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// A link with a download and a call, sampled ten times a second.
pub(crate) const SCENARIO: &str = r#"
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

/// A command with a dashboard.
pub(crate) struct Shown {
    child: Child,
    pub(crate) url: String,
    /// The host and the port.
    pub(crate) address: String,
    stderr: Option<Lines<BufReader<ChildStderr>>>,
}

impl Shown {
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Shown {
        Shown::of(command(dir, args))
    }

    pub(crate) fn of(mut command: Command) -> Shown {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut said = Vec::new();
        let url = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it says where the page is: {said:?}")).expect("text");
            match line.strip_prefix("dashboard: ") {
                Some(url) => break url.to_owned(),
                None => said.push(line),
            }
        };
        let address = url.split('/').nth(2).expect("http://ADDRESS/").to_owned();
        Shown { child, url, address, stderr: Some(lines) }
    }

    /// A request without a body; the status, and all of the answer.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> (u16, String) {
        request(&self.address, "GET", path, headers, "")
    }

    /// The header with the token of the printed address; empty if that has none.
    fn authorization(&self) -> String {
        let token = self.url.split_once("token=").map(|(_, token)| token);
        token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"))
    }

    /// The metrics.
    pub(crate) fn metrics(&self) -> String {
        let authorization = self.authorization();
        let headers: Vec<&str> = authorization.lines().collect();
        let (status, metrics) = self.get("/metrics", &headers);
        assert_eq!(status, 200, "{metrics}");
        metrics
    }

    /// The value of a metric without labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let metrics = self.metrics();
        metric(&metrics, name).unwrap_or_else(|| panic!("{name}: {metrics}"))
    }

    /// All that the page has now.
    pub(crate) fn whole(&self) -> Value {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("it is open");
        let (address, authorization) = (&self.address, self.authorization());
        write!(stream, "GET /events HTTP/1.1\r\nHost: {address}\r\n{authorization}\r\n").expect("it is open");
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("text"));
        let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).expect("an event");
        serde_json::from_str(&data).expect("JSON")
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.expect("kill is part of every system").success());
    }

    /// Waits for its end, and returns its exit code and what it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let lines = self.stderr.take().expect("it ends once");
        let said: Vec<String> = lines.map_while(Result::ok).collect();
        (self.child.ends().code(), said.join("\n"))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn request(address: &str, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("it is open");
    let own: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let host = if headers.iter().any(|header| header.starts_with("Host:")) {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{host}{own}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = text(&reply);
    let status =
        reply.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{path}: {reply}"));
    (status, reply)
}

/// Reads all events up to the end of the run: the first one's data, and that of the others.
pub(crate) fn events(address: &str, path: &str) -> Vec<(String, Value)> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("it is open");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it is open");
    let mut events = Vec::new();
    let mut kind = String::new();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut kind);
        } else if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).expect("JSON");
            let ended = data["live"]["ended"] == true;
            events.push((kind.clone(), data));
            if ended {
                break;
            }
        }
    }
    events
}

/// Puts the columns of a kind of series together, by name, from the whole on.
pub(crate) fn columns(events: &[(String, Value)], kind: &str, column: &str) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut all = BTreeMap::<String, Vec<(f64, f64)>>::new();
    for (event, data) in events {
        if event == "whole" {
            all.clear();
        }
        let series = data["results"][0]["series"].as_array().expect("series");
        for one in series.iter().filter(|one| one["kind"] == kind) {
            let of = |name: &str| one["columns"][name].as_array().cloned().unwrap_or_default();
            let values = of("t").into_iter().zip(of(column)).filter_map(|(t, y)| Some((t.as_f64()?, y.as_f64()?)));
            all.entry(one["name"].as_str().expect("a name").to_owned()).or_default().extend(values);
        }
    }
    all
}

/// Five significant digits, as the page has them.
pub(crate) fn short(x: f64) -> f64 {
    format!("{x:.4e}").parse().expect("a number")
}

/// The value of a series of `metrics`, given with its labels.
pub(crate) fn metric(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

/// The newest value of a column of the series with this name, if it is known; `whole` is all that the page has.
pub(crate) fn newest(whole: &Value, kind: &str, name: &str, column: &str) -> Option<f64> {
    let mut series = whole["results"][0]["series"].as_array().expect("series").iter();
    series.find(|one| one["kind"] == kind && one["name"] == name)?["columns"][column].as_array()?.last()?.as_f64()
}

/// Waits until a look finds something. On a busy machine, a page may be renewed each 10 s only.
pub(crate) fn found<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(start.elapsed() < TEST_TIMEOUT, "not within {TEST_TIMEOUT:?}: {what}: {why}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
