//! Clients that others have written, against the measurement server: `rmbt-client` (Python) and `@m-lab/ndt7` (in a browser).

#![allow(clippy::disallowed_methods)] // Tests of other programs run them and read their files.

use serde_json::Value;
use services::measure::{Control, Open, Options, Service, Store};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// The longest time that a client may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Finds a program in the repository's Python environment or in the path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = std::iter::once(root().join(".venv/bin")).chain(path.split(':').map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|program| program.exists())
}

/// The lines of all results.
fn stored(directory: &Path) -> Vec<Value> {
    let files = std::fs::read_dir(directory).expect("it is there").map(|file| file.expect("a file").path());
    let text: String = files.map(|path| std::fs::read_to_string(path).expect("it can be read")).collect();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

async fn run(command: &mut Command) -> Output {
    let output = timeout(TEST_TIMEOUT, command.kill_on_drop(true).output()).await;
    output.expect("it ends in time").expect("it starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_measures_with_http_and_websocket() {
    let client = find("rmbt-client");
    if !testkit::root::has_program(client.is_some(), "rmbt-client") {
        return;
    }
    let client = client.expect("it is there");
    let results = tempfile::tempdir().expect("a temporary directory");
    let home = tempfile::tempdir().expect("a temporary directory");
    let service = Service::start(Options {
        open: Open::Nobody,
        control: Some(Control { name: None, seconds: 2, flows: 3 }),
        results: Some(Store::new(results.path().to_owned())),
        ..Options::default()
    });
    let service = service.await.expect("it starts");
    let address = format!("http://{}", service.addresses()[0]);
    for framing in ["--http", "--ws"] {
        let before = stored(results.path()).len();
        let output = run(Command::new(&client).args(["-h", &address, framing]).env("HOME", home.path())).await;
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        assert!(!text.contains("skipping") && !text.contains("Warning"), "{text}");
        let value = |name: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
            line.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()).expect("a number")
        };
        assert!(value("Download:") > 1.0 && value("Upload:") > 1.0 && value("Ping (median):") < 1_000.0, "{text}");
        // The client counts bytes as the server does: "UPLOAD bytes in".
        let line = text.lines().find(|line| line.starts_with("Upload:")).expect("it was found before");
        let counted: u64 = line.split(['(', ' ']).filter_map(|word| word.parse().ok()).next().unwrap_or_default();
        let all = loop {
            let all = stored(results.path()).split_off(before);
            if all.iter().any(|line| line["kind"] == "client") {
                break all;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let uploads = all.iter().filter(|line| line["kind"] == "transfer" && line["direction"] == "upload");
        let received: u64 = uploads.map(|line| line["bytes"].as_u64().expect("a number")).sum();
        assert_eq!((received, received > 1_000_000), (counted, true), "{line}");
        let theirs = all.iter().find(|line| line["kind"] == "client").expect("it was found before");
        assert_eq!(theirs["test_bytes_upload"].as_u64(), Some(received));
    }
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ndt7_client_measures_in_a_browser() {
    let script = root().join("web/scripts/ndt7.mjs");
    let is_there = find("node").is_some() && root().join("web/node_modules/@m-lab/ndt7").exists();
    if !testkit::root::has_program(is_there, "node or web/node_modules/@m-lab/ndt7") {
        return;
    }
    let results = tempfile::tempdir().expect("a temporary directory");
    let store = Some(Store::new(results.path().to_owned()));
    let service = Service::start(Options { results: store, ..Options::default() }).await.expect("it starts");
    let address = service.addresses()[0].to_string();
    let output = run(Command::new("node").arg(script).arg(&address)).await;
    if !testkit::root::has_program(output.status.code() != Some(77), "chromium") {
        return;
    }
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text} {errors}");
    let result: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&result["downloadCode"], &result["uploadCode"]), (&0.into(), &0.into()), "{text}");
    for direction in ["download", "upload"] {
        let last = &result[direction];
        assert!(last["LastClientMeasurement"]["MeanClientMbps"].as_f64() > Some(1.0), "{text}");
        assert!(last["LastServerMeasurement"]["TCPInfo"]["MinRTT"].as_u64().is_some(), "{text}");
    }
    assert!(result["server"].as_u64() > Some(20), "{text}");
    let lines = loop {
        let lines = stored(results.path());
        if lines.len() == 2 {
            break lines;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(lines.iter().all(|line| line["protocol"] == "ndt7" && line["complete"] == true), "{lines:?}");
    let server = result["upload"]["LastServerMeasurement"]["AppInfo"]["NumBytes"].as_u64();
    assert!(server <= lines[1]["bytes"].as_u64(), "{text}");
    service.stop().await;
}
