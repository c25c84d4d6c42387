//! Tests of the scenario's proxy in an emulation. Tests that need root, TUN and nftables report when they are skipped.

use crate::common::{Running, command, emulate, eventually, flows, is_late, namespaces, scratch, text};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use testkit::realtime::{Watch, at_once, conclusive};
use testkit::root::granted;

/// An LTE cell with a deep queue, 50 ms from the server, and a download of the scenario. Without a rate of the server, a window
/// would arrive at one moment, and the machine could not deliver it on time.
const CELL: &str = r#"
duration = "8 s"
warmup = "3 s"
[lte]
bandwidth = "5 MHz"
server_delay = "25 ms"
server_rate = "100 Mbit/s"
[[lte.ues]]
name = "ue"
bearer = { rlc = "am", queue = { kind = "drop-tail", bytes = "1 MB" } }
[[flows]]
name = "bulk"
from = "server"
to = "ue"
"#;

/// The options that give it a proxy.
const BEST: [&str; 2] = ["--set", "lte.proxy.policy=best"];
const SPLIT: [&str; 2] = ["--set", "lte.proxy.policy=split"];

fn may() -> bool {
    granted(emulate::lab::check()).is_some() && granted(emulate::uplink::check()).is_some()
}

/// `ranway proxy status` in the router of an emulation. A proxy that gets no processor for two seconds does not answer.
fn status(id: &str) -> Value {
    let ranway = env!("CARGO_BIN_EXE_ranway");
    let in_router = ["netns", "exec", &format!("ranway-{id}-core"), ranway, "proxy", "status", "--json"];
    let mut status = None;
    eventually("the proxy answers", || {
        let output = Command::new("ip").args(in_router).output().expect("it starts");
        status = serde_json::from_slice(&output.stdout).ok();
        status.is_some() || {
            eprintln!("{}", text(&output.stderr));
            false
        }
    });
    status.expect("it has answered")
}

/// The processes in the router of an emulation.
fn processes(id: &str) -> Vec<String> {
    let output = Command::new("ip").args(["netns", "pids", &format!("ranway-{id}-core")]).output().expect("it starts");
    text(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

/// Whether nothing is left of an emulation and of these processes.
fn is_gone(id: &str, processes: &[String]) -> bool {
    let runs = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    };
    namespaces(id).is_empty() && !Path::new("/run/ranway").join(id).exists() && !processes.iter().any(runs)
}

fn number(flow: &Value, key: &str) -> f64 {
    flow[key]["mean"].as_f64().unwrap_or_else(|| panic!("{key}: {flow}"))
}

#[test]
fn root_a_download_through_the_proxy_keeps_its_goodput_and_has_less_delay() {
    conclusive(a_download_through_the_proxy_keeps_its_goodput_and_has_less_delay);
}

fn a_download_through_the_proxy_keeps_its_goodput_and_has_less_delay(watch: &mut Watch) {
    if !may() {
        return;
    }
    let emulated = at_once([&[][..], &BEST, &SPLIT], |proxy| {
        let dir = scratch(CELL);
        let output = emulate(dir.path(), &[&["--kernel"], proxy].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        dir
    });
    let measured = emulated.map(|dir| {
        let late = is_late(dir.path(), watch);
        let flows = flows(dir.path());
        let flow = flows.iter().find(|flow| flow["flow"] == "bulk").expect("it keeps its name");
        (late, number(flow, "goodput_mbps"), number(flow, "owd_p50_ms"))
    });
    let [(_, without, delay), (_, best, best_delay), (_, split, split_delay)] = measured;
    println!(
        "without: {without:.2} Mbit/s {delay:.1} ms, best: {best:.2} {best_delay:.1}, split: {split:.2} {split_delay:.1}"
    );
    if measured.iter().any(|(late, ..)| *late) {
        return;
    }
    assert!(best > 0.9 * without && split > 0.9 * without, "{best}, {split} and {without} Mbit/s");
    // Without it, the cell's queue fills. A proxy that only splits has a queue of its own, which counts.
    assert!(best_delay < 0.5 * delay && split_delay > delay, "{best_delay}, {split_delay} and {delay} ms");
}

#[test]
fn root_a_proxy_that_shrinks_windows_drops_nothing_that_it_has_announced() {
    conclusive(a_proxy_that_shrinks_windows_drops_nothing_that_it_has_announced);
}

/// Each new flow takes a share of what the others had.
fn a_proxy_that_shrinks_windows_drops_nothing_that_it_has_announced(watch: &mut Watch) {
    if !may() {
        return;
    }
    let more =
        "[[flows]]\nname = \"more\"\nfrom = \"server\"\nto = \"ue\"\ncount = 5\nstart = \"2 s\"\nstagger = \"1 s\"\n";
    let dir = scratch(&(CELL.to_owned() + more));
    let running = Running::start(dir.path(), &[&["--kernel"], &BEST[..]].concat());
    let id = running.id();
    let start = Instant::now();
    let last = |host: &str| {
        let output = Command::new("ip")
            .args(["netns", "exec", &format!("ranway-{id}-{host}"), "cat", "/proc/self/net/netstat"])
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    // Shortly before its end.
    std::thread::sleep(Duration::from_millis(7_500).saturating_sub(start.elapsed()));
    let (proxy, server) = (last("core"), last("server"));
    let output = running.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    if is_late(dir.path(), watch) {
        return;
    }
    let count = |netstat: &str, names: &[&str]| -> Vec<(String, u64)> {
        let lines: Vec<&str> = netstat.lines().filter(|line| line.starts_with("TcpExt:")).collect();
        let counters = lines[0].split(' ').zip(lines[1].split(' ')).filter(|(name, _)| names.contains(name));
        counters.map(|(name, count)| (name.to_owned(), count.parse().expect("a number"))).collect()
    };
    let dropped = count(&proxy, &["PruneCalled", "RcvPruned", "OfoPruned", "TCPRcvCollapsed", "TCPRcvQDrop"]);
    let timeouts = count(&server, &["TCPTimeouts"]);
    println!("{dropped:?}, {timeouts:?}");
    assert_eq!((dropped.len(), timeouts.len()), (5, 1));
    assert!(dropped.iter().chain(&timeouts).all(|(_, count)| *count == 0), "{dropped:?}, {timeouts:?}");
}

/// Writes the address of the first TCP client and of the first UDP client, which get an answer.
const SERVER: &str = r#"exec python3 -c '
import socket
tcp = socket.create_server(("::", 7000), family=socket.AF_INET6, dualstack_ipv6=True)
udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
udp.bind(("::", 7000))
for _ in range(2):
    peer, address = tcp.accept()
    peer.sendall(f"{address[0]} {address[1]}\n".encode())
    data, address = udp.recvfrom(100)
    udp.sendto(data, address)
    peer.close()
'"#;

/// Connects by IPv4 and IPv6, and compares its own address with the one that the server has seen.
const CLIENT: &str = r#"
import socket, time
time.sleep(1)
for name, family in (("10.0.0.1", socket.AF_INET), ("fd00::1", socket.AF_INET6)):
    tcp = socket.create_connection((name, 7000), timeout=10)
    seen = tcp.makefile().readline().split()
    own = tcp.getsockname()
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.settimeout(10)
    udp.sendto(b"question", (name, 7000))
    assert udp.recvfrom(100)[0] == b"question"
    assert seen[0].replace("::ffff:", "") == own[0] and int(seen[1]) == own[1], (seen, own)
print("ready", flush=True)
input()
"#;

#[test]
fn root_the_server_sees_the_ues_own_address_and_udp_passes() {
    if !may() {
        return;
    }
    for proxy in [BEST, SPLIT] {
        let dir = scratch(CELL);
        let args = [&proxy, &["--quiet", "--server", SERVER, "--", "python3", "-c", CLIENT][..]].concat();
        let mut running = Running::start(dir.path(), &args);
        running.ready();
        let status = status(&running.id());
        assert_eq!(status["totals"]["established"], 2, "both connections were split: {status}");
        running.say("\n");
        let output = running.end();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let names: Vec<String> = flows(dir.path()).iter().map(|flow| flow["flow"].to_string()).collect();
        assert!(names.iter().any(|name| name.contains("udp") && name.contains("core")), "{names:?}");
    }
}

#[test]
fn root_nothing_is_left_after_the_end_or_a_crash_even_of_two_at_once() {
    if !may() {
        return;
    }
    let dirs = [scratch(CELL), scratch(CELL)];
    let download =
        "while curl -so /dev/null http://server/100kB && echo ready && read more && [ \"$more\" ]; do :; done";
    let wait = ["--quiet", "--", "sh", "-c", download];
    let start = |dir: &tempfile::TempDir| Running::start(dir.path(), &[&BEST[..], &wait].concat());
    let mut both = dirs.each_ref().map(start);
    both.iter_mut().for_each(Running::ready);
    for running in &mut both {
        // On a machine that stands still for a moment, a connection passes beside the proxy.
        eventually("a connection is split", || {
            let is_split = status(&running.id())["totals"]["established"] != 0;
            if !is_split {
                running.say("more\n");
                running.ready();
            }
            is_split
        });
        let socket = Path::new("/run/ranway").join(running.id()).join("reports");
        assert!(socket.exists(), "{}", socket.display());
    }
    let [mut killed, mut ended] = both;
    let [killed_all, ended_all] = [&killed, &ended].map(|running| (running.id(), processes(&running.id())));
    assert!(killed_all.1.len() > 2, "the proxy, its guardian and the owner of its table: {killed_all:?}");
    killed.signal("-KILL");
    killed.reap();
    eventually("nothing is left of the killed one", || is_gone(&killed_all.0, &killed_all.1));
    assert_eq!(namespaces(&ended_all.0).len(), 3, "the other one runs");
    ended.say("\n");
    let output = ended.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    eventually("nothing is left of the ended one", || is_gone(&ended_all.0, &ended_all.1));
}

#[test]
fn root_the_emulation_ends_with_its_proxy() {
    if !may() {
        return;
    }
    let dir = scratch(CELL);
    let wait = ["--quiet", "--", "sh", "-c", "curl -so /dev/null http://server/100kB && echo ready && exec sleep 60"];
    let mut running = Running::start(dir.path(), &[&BEST[..], &wait].concat());
    running.ready();
    let all = processes(&running.id());
    let is_proxy = |pid: &&String| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&command).split('\0').nth(1) == Some("proxy")
    };
    let proxy = all.iter().find(is_proxy).expect("it runs in the router");
    assert!(Command::new("kill").args(["-KILL", proxy]).status().expect("it starts").success());
    let id = running.id();
    let output = running.end();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.starts_with("error: the proxy ended: signal: 9 (SIGKILL); the measurements until then are in"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(is_gone(&id, &all));
}

#[test]
fn root_the_walk_through_of_the_book_runs() {
    if !may() {
        return;
    }
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = fs::read_to_string(root.join("docs/src/street.md")).expect("the page");
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block);
    let commands: Vec<&str> = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("# ")).collect();
    let [cubic, without, with, status] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(with.replace(" --set radio.proxy.policy=best", ""), **without, "both differ by the proxy");
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::os::unix::fs::symlink(root.join("docs"), dir.path().join("docs")).expect("a link");
    let program = Path::new(env!("CARGO_BIN_EXE_ranway")).parent().expect("a folder").display();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    // The run without the proxy takes a minute or more.
    let script = format!("{cubic}\n{with} &\nsleep 6; {status}\nwait $!");
    let output = Command::new("sh").args(["-c", &script]).current_dir(dir.path()).env("PATH", path).output();
    let output = output.expect("it starts");
    let said = text(&output.stdout);
    // On a busy machine it may be too late for valid results.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{said}{}", text(&output.stderr));
    assert!(said.contains("2 connections, 0 half-open; new connections are split"), "{said}");
    let page = |line: &str| line.strip_prefix("page: ")?.strip_suffix(" s")?.parse::<f64>().ok();
    let pages: Vec<f64> = said.lines().filter_map(page).collect();
    assert_eq!(pages.len(), 3, "{said}");
    // About 1 s each in the book, and without the proxy 15 s.
    assert!(output.status.code() == Some(3) || pages.iter().all(|seconds| *seconds < 5.0), "{said}");
}

#[test]
fn settings_that_cannot_be_emulated_are_one_line() {
    let dir = scratch(CELL);
    for (args, message) in [
        (&["--router", "core"][..], "error: the scenario's proxy is the router, at `core`: remove `--router`"),
        (&["--attach", "x", "y"], "error: between two interfaces there is no proxy"),
        (
            &["--set", "lte.proxy.cc={kind=\"scalable\",step=0.5,decrease=0.5}"],
            "error: proxy.cc: the kernel's `scalable` has step 0.01",
        ),
    ] {
        let args = [&["emulate", "net.toml"], &BEST[..], args].concat();
        let output = command(dir.path(), &args).output().expect("it starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.starts_with(message) && said.lines().count() == 1, "{args:?}: {said}");
    }
    assert!(!dir.path().join("ranway-out").exists());
}
