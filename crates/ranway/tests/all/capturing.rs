//! Tests of `ranway measure --pcap`: what is captured, by whom, and what happens without the right to.

use crate::common::{emulate, eventually, is_late, may, scratch, text};
use record::Results;
use record::tables::{TcpFlowRow, TcpInfoRow};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, at_once, conclusive};
use testkit::root::granted;

/// A modem with room for 60 kB, which loses packets when it is full.
const NETWORK: &str = r#"
duration = "60 s"
[[links]]
name = "core"
from = "a"
to = "mid"
duplex = true
rate = "100 Mbit/s"
delay = "5 ms"
[[links]]
name = "access"
from = "mid"
to = "b"
duplex = true
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", bytes = "60 kB" }
"#;

/// A user without rights.
const NOBODY: u32 = 65_534;
const RANWAY: &str = env!("CARGO_BIN_EXE_ranway");

fn analyse(dir: &Path, capture: &str) -> Results {
    let output = Command::new(RANWAY).current_dir(dir).args(["analyse", capture, "--quiet", "--out", "seen"]).output();
    let output = output.expect("the command is built");
    assert!(output.status.success(), "{}", text(&output.stderr));
    Results::read(&dir.join("seen")).expect("they were written")
}

#[test]
fn root_a_capture_has_the_bytes_and_the_retransmissions_that_the_kernel_counts() {
    conclusive(a_capture_has_the_bytes_and_the_retransmissions_that_the_kernel_counts);
}

fn a_capture_has_the_bytes_and_the_retransmissions_that_the_kernel_counts(watch: &mut Watch) {
    if !may() {
        return;
    }
    let captured = at_once(["--cc cubic", "--cc cubic --tls --insecure"], |options| {
        let dir = scratch(NETWORK);
        let server = format!("exec {RANWAY} measure serve --quiet --open --self-signed --listen 10.0.0.1:5231");
        let client = format!(
            "sleep 1; exec {RANWAY} measure a:5231 --json --idle 500ms -o measured -d up -t 6s --flows 2 {options} \
             --pcap up.pcapng"
        );
        let output =
            emulate(dir.path(), &["--quiet", "--router", "mid", "--server", &server, "--", "sh", "-c", &client]);
        assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        (options, dir, output)
    });
    for (options, dir, output) in captured {
        if is_late(dir.path(), watch) {
            return;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(answer["capture"]["dropped"], 0, "{answer}");
        assert!(answer["capture"]["packets"].as_u64() > Some(5_000), "{}", answer["capture"]);

        let measured = Results::read(&dir.path().join("measured")).expect("they were written");
        let mut last: BTreeMap<u32, TcpInfoRow> = BTreeMap::new();
        for row in measured.tables.tcp_info.iter() {
            last.insert(row.conn, row);
        }
        let mut known: Vec<(u64, u64)> =
            last.values().map(|row| (row.bytes_acked - 1, row.total_retrans.into())).collect();
        let seen = analyse(dir.path(), "up.pcapng");
        let rows: Vec<TcpFlowRow> = seen.tables.tcp_flows.iter().collect();
        assert!(rows.iter().all(|row| row.flow.contains(":5231")), "{rows:?}");
        let big = rows.iter().filter(|row| row.payload_bytes > 200_000);
        let mut found: Vec<(u64, u64)> =
            big.map(|row| (row.payload_bytes - row.retransmitted_bytes, row.retransmitted)).collect();
        known.sort_unstable();
        found.sort_unstable();
        println!("{options}: bytes and retransmissions: the kernel {known:?}, the capture {found:?}");
        assert_eq!(found.len(), 2, "{rows:?}");
        assert!(known.iter().map(|flow| flow.1).sum::<u64>() > 20, "the network loses packets: {known:?}");
        for ((bytes, retransmissions), (seen_bytes, seen_retransmissions)) in known.into_iter().zip(found) {
            // What ends the connection comes after the last sample.
            assert!(bytes.abs_diff(seen_bytes) < 100, "{bytes} {seen_bytes}");
            let bound = 1 + retransmissions / 50;
            assert!(
                retransmissions.abs_diff(seen_retransmissions) <= bound,
                "{retransmissions} {seen_retransmissions}"
            );
        }
    }
}

/// A server on a free port of loopback.
struct Server {
    child: Child,
    address: String,
    /// It ends when nobody listens to it.
    _says: BufReader<ChildStderr>,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new(RANWAY);
        command.args(["measure", "serve", "--open", "--listen", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command is built");
        let mut line = String::new();
        let mut says = BufReader::new(child.stderr.take().expect("piped"));
        says.read_line(&mut line).expect("it says where it is");
        let address = line.split_whitespace().find_map(|word| word.trim_end_matches(';').parse().ok());
        let address: std::net::SocketAddr = address.unwrap_or_else(|| panic!("{line}"));
        Server { child, address: address.to_string(), _says: says }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn may_capture() -> bool {
    let has = netio::rights::has(netio::rights::CapabilitySet::NET_RAW);
    granted(if has { Ok(()) } else { Err("captures need CAP_NET_RAW") }).is_some()
}

/// A measurement of the server whose probes alone run for three seconds.
fn measurement(program: &mut Command, server: &Server, dir: &Path) -> Command {
    let mut command = std::mem::replace(program, Command::new(""));
    command.args(["measure", &server.address, "--idle", "3s", "-d", "up", "-t", "100ms", "--flows", "1"]);
    command.args(["--modem", "none", "--hops", "0", "--pcap", "up.pcapng", "--json"]).current_dir(dir);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn root_the_process_that_captures_has_no_rights_and_ends_with_the_measurement() {
    if !may_capture() {
        return;
    }
    let (server, dir) = (Server::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut client = measurement(&mut Command::new(RANWAY), &server, dir.path()).spawn().expect("it starts");
    let capture = dir.path().join("up.pcapng");
    eventually("the capture has begun", || capture.exists());
    let children = format!("/proc/{0}/task/{0}/children", client.id());
    let helper = fs::read_to_string(children).expect("it runs").trim().to_owned();
    let status = fs::read_to_string(format!("/proc/{helper}/status")).expect("it runs");
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("{name}: {status}")).trim().to_owned()
    };
    for name in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(field(name), "0000000000000000", "{name}");
    }
    assert_eq!((field("NoNewPrivs").as_str(), field("Seccomp").as_str()), ("1", "2"));
    std::thread::sleep(std::time::Duration::from_millis(700));
    client.kill().expect("it is ours");
    client.ends();
    eventually("the helper has ended", || !Path::new("/proc").join(&helper).exists());
    let seen = analyse(dir.path(), "up.pcapng");
    assert!(seen.tables.tcp_flows.iter().any(|row| row.segments > 5), "the requests were captured");
}

#[test]
fn root_a_user_captures_with_the_capability_of_the_file() {
    if !may_capture() {
        return;
    }
    let (server, dir) = (Server::start(), tempfile::tempdir().expect("a temporary directory"));
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let home = dir.path().join("home");
    fs::create_dir(&home).expect("there is room");
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may");
    let program = dir.path().join("ranway");
    fs::copy(RANWAY, &program).expect("there is room");
    let given = Command::new("setcap").arg("cap_net_raw=ep").arg(&program).status();
    let given = given
        .map_err(|why| why.to_string())
        .and_then(|status| if status.success() { Ok(()) } else { Err("setcap failed".into()) });
    if granted(given).is_none() {
        return;
    }
    let mut user = Command::new("setpriv");
    let id = NOBODY.to_string();
    user.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(&program);
    let output = measurement(&mut user, &server, &home).output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(answer["capture"]["packets"].as_u64() > Some(100), "{}{}", answer["capture"], text(&output.stderr));
    let seen = analyse(dir.path(), "home/up.pcapng");
    let largest = seen.tables.tcp_flows.iter().map(|row| row.payload_bytes).max();
    let bytes = answer["loads"][0]["directions"][0]["bytes"].as_u64();
    println!("{bytes:?} bytes at the server, {largest:?} captured, {}", answer["capture"]);
    assert!(largest >= bytes, "{largest:?} {bytes:?}");
}

#[test]
fn without_the_right_a_measurement_goes_on_and_its_results_say_why() {
    let (server, dir) = (Server::start(), tempfile::tempdir().expect("a temporary directory"));
    let mut program = Command::new(RANWAY);
    if netio::rights::has(netio::rights::CapabilitySet::NET_RAW) {
        program = Command::new("setpriv");
        program.args(["--bounding-set", "-net_raw", "--inh-caps", "-net_raw", RANWAY]);
    }
    let output = measurement(&mut program, &server, dir.path()).output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let why = "a capture needs the capability CAP_NET_RAW";
    let warning =
        format!("warning: packets are not captured: {why}; to permit it: sudo setcap cap_net_raw=ep {RANWAY}\n");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), warning);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let missing = answer["missing"].as_array().expect("a list");
    assert!(missing.contains(&format!("packets: {why}").into()), "{missing:?}");
    assert!(answer["capture"].is_null() && !dir.path().join("up.pcapng").exists());
    let meta = fs::read_to_string(dir.path().join("ranway-out/measure/meta.json")).expect("it was written");
    assert!(meta.contains(why), "{meta}");
}
