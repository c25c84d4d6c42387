//! A Prometheus that scrapes what a test runs, and the queries of the dashboards for Grafana.

use super::shown::request;
use serde_json::Value;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::root::has_program;

/// Whether Prometheus is there, after saying what is skipped if not.
pub(crate) fn is_there() -> bool {
    ["prometheus", "promtool"].into_iter().all(|program| {
        let output = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        has_program(output.is_ok(), program)
    })
}

/// A process that ends with the test.
pub(crate) struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    /// Starts Prometheus, as `command` runs it, in a folder. It scrapes `jobs` and answers at an address.
    pub(crate) fn start(mut command: Command, dir: &Path, jobs: &str, address: &str) -> Prometheus {
        let config = format!("global: {{ scrape_interval: 1s }}\nscrape_configs:\n{jobs}");
        std::fs::write(dir.join("prometheus.yml"), config).expect("it is written");
        let listen = format!("--web.listen-address={address}");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", &listen]).current_dir(dir);
        Prometheus(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
    }
}

/// The queries of a dashboard for Grafana, for all runs and flows.
pub(crate) fn queries(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana").join(name);
    let file: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("it is there")).expect("JSON");
    let panels = file["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
    queries.map(|query| query.replace("$instance", ".*").replace("$flow", ".*")).collect()
}

/// The first value that Prometheus at `address` has for `query`.
pub(crate) fn queried(address: &str, query: &str) -> Option<f64> {
    let form =
        |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let path = format!("/api/v1/query?query={}", query.bytes().map(form).collect::<String>());
    let (status, reply) = request(address, "GET", &path, &[], "");
    assert!(status == 200 || status == 503, "{query}: {reply}");
    let (_, body) = reply.split_once("\r\n\r\n")?;
    let answer: Value = serde_json::from_str(body.get(body.find('{')?..=body.rfind('}')?)?).ok()?;
    answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
}

/// Waits until each query has a value.
pub(crate) fn await_values(address: &str, mut queries: Vec<String>, patience: Duration) {
    let start = Instant::now();
    while !queries.is_empty() {
        assert!(start.elapsed() < patience, "no values within {patience:?}: {queries:#?}");
        std::thread::sleep(Duration::from_millis(500));
        if TcpStream::connect(address).is_ok() {
            queries.retain(|query| queried(address, query).is_none());
        }
    }
}
