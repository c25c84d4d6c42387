//! Emulations as a user starts them, for the tests of them.

pub(crate) mod prometheus;
pub(crate) mod proxied;
pub(crate) mod service;
pub(crate) mod shown;
pub(crate) mod spaces;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::root::granted;

/// Busy machines are late; only the tests of lateness care.
pub(crate) const PATIENT: [&str; 2] = ["--max-lateness", "1 s"];

/// 20 ms there and back, 8 Mbit/s, room for 100 packets.
pub(crate) const LINK: &str = r#"
duration = "2 s"
[[links]]
name = "wire"
from = "a"
to = "b"
duplex = true
rate = "8 Mbit/s"
delay = "10 ms"
queue = { kind = "drop-tail", packets = 100 }
"#;

/// Two cells, of which the first is the nearer, and a little traffic.
pub(crate) const CELLS: &str = r#"
duration = "5 s"
[lte]
cells = [{ position = [0, 0, 30] }, { position = [300, 0, 30] }]
handover = { enabled = false }
[[lte.ues]]
name = "phone"
[[flows]]
name = "background"
traffic = { kind = "cbr", rate = "100 kbit/s", packet = "250 B" }
"#;

/// Whether the test can run; says so loudly if not.
pub(crate) fn may() -> bool {
    granted(emulate::lab::check()).is_some()
}

/// A directory with `scenario` as `net.toml` in it.
pub(crate) fn scratch(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("net.toml"), scenario).expect("it is written");
    dir
}

pub(crate) fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
    command.args(args).current_dir(dir);
    command
}

/// `ranway emulate net.toml` from its start to its end.
pub(crate) fn emulate(dir: &Path, args: &[&str]) -> Output {
    Running::start(dir, args).end()
}

/// A running `ranway emulate net.toml`. It does not outlive the test, however that ends.
pub(crate) struct Running(Option<Child>);

impl Running {
    pub(crate) fn start(dir: &Path, args: &[&str]) -> Running {
        Running::of(command(dir, &[&["emulate", "net.toml"], &PATIENT[..], args].concat()))
    }

    /// Runs any command with its streams piped.
    pub(crate) fn of(mut command: Command) -> Running {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Running(Some(child.expect("the command starts")))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs to its end")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.as_ref().expect("it runs to its end").id()
    }

    /// What its namespaces and its directory are named after.
    pub(crate) fn id(&self) -> String {
        format!("{:x}", self.pid())
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.child().stdin.as_mut().expect("piped").write_all(text.as_bytes()).expect("it takes it");
    }

    /// Waits until the command in it prints `ready`.
    pub(crate) fn ready(&mut self) {
        let mut said = Vec::new();
        let stdout = self.child().stdout.as_mut().expect("piped");
        while !said.ends_with(b"ready\n") && !said.ends_with(b"ready\r\n") {
            let mut byte = [0];
            if stdout.read_exact(&mut byte).is_err() {
                let output = self.0.take().expect("it runs").ends_with_output();
                panic!("it ended before it was ready: {}{}", text(&said), text(&output.stderr));
            }
            said.extend(byte);
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.pid().to_string()]).status();
        assert!(status.expect("kill is part of every system").success());
    }

    /// `ranway control` to it: the exit code, and what it prints.
    pub(crate) fn control(&self, words: &str) -> (Option<i32>, String) {
        let mut control = command(Path::new("/"), &["control", "--id", &self.id()]);
        let output = control.args(words.split(' ')).output().expect("it starts");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    /// Waits for its own end: it holds nothing any more.
    pub(crate) fn reap(&mut self) {
        self.child().ends();
    }

    /// Waits for its end, and for that of all who have its streams.
    pub(crate) fn end(mut self) -> Output {
        self.0.take().expect("it runs to its end").ends_with_output()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// How long each ping took, in ms, of what `ping` says.
pub(crate) fn ping_times(said: &str) -> Vec<f64> {
    said.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok()).collect()
}

/// The network namespaces of an emulation, by name.
pub(crate) fn namespaces(id: &str) -> Vec<String> {
    let all = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&format!("ranway-{id}-"))).collect();
    names.sort();
    names
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A file of the results as JSON.
pub(crate) fn json(dir: &Path, file: &str) -> serde_json::Value {
    let bytes = fs::read(dir.join("ranway-out/net-emulated").join(file)).expect("it was written");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// The 99th percentile of lateness, in ms, from which on a test of times and rates proves nothing.
const LATE_MS: f64 = 2.0;

/// Whether the emulation in `dir` was too late for a test of times and rates; the attempt is void then.
pub(crate) fn is_late(dir: &Path, watch: &mut testkit::realtime::Watch) -> bool {
    let lateness = &json(dir, "timing.json")["lateness"];
    let p99 = lateness["p99_ms"].as_f64().expect("a number");
    watch.void_if_late(p99, lateness["missed"].as_u64().expect("a number"), LATE_MS)
}

/// The rows of the summary's flows.
pub(crate) fn flows(dir: &Path) -> Vec<serde_json::Value> {
    json(dir, "summary.json")["points"][0]["flows"].as_array().expect("flows").clone()
}
