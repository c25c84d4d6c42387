//! Robustness of emulations: malformed packets, invalid control input and killed processes. In every case the emulation
//! ends, reports what was wrong, and leaves the machine unchanged.
//!
//! Code inside a host is run by this test binary, too: the functions whose names begin with `root_inside`.

mod machine;
mod malformed;

use crate::common::{LINK, PATIENT, Running, command, eventually, flows, json, may, scratch, text};
use machine::{Machine, processes};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testkit::realtime::{Watch, conclusive};
use testkit::root::has_program;

/// A fast network with large queues: no packet is lost.
const ROOMY: &str = r#"
duration = "2 s"
[[links]]
name = "wire"
from = "a"
to = "b"
duplex = true
rate = "200 Mbit/s"
delay = "1 ms"
queue = { kind = "drop-tail", packets = 100000 }
"#;

const CELL: &str = "include = [\"preset:lte-20mhz\"]\nduration = \"2 s\"\n";

/// A delay longer than any test, so that all packets stay in flight.
const FAR: &str = "duration = \"2 s\"\n[[links]]\nname = \"wire\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"60 s\"\n";

/// The server's first address.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Duration of a flood.
const FLOOD: Duration = Duration::from_secs(3);
/// Packets in the network at most.
const MOST_PACKETS: u64 = 1 << 18;
/// Maximum memory of an emulation, in kB.
const MOST_MEMORY: u64 = 1_200_000;

/// Returns a shell command that runs one of the functions of this file inside a host.
fn inside(name: &str) -> String {
    let exe = std::env::current_exe().expect("it runs");
    format!("RANWAY_INSIDE=1 {} abuse::root_inside_{name} --exact --ignored --nocapture", exe.display())
}

fn is_inside() -> bool {
    std::env::var_os("RANWAY_INSIDE").is_some()
}

fn shell(dir: &Path, options: &[&str], line: &str) -> Running {
    Running::start(dir, &[options, &["--", "sh", "-c", line]].concat())
}

/// Returns the interface's counters in a host: packets to it, packets from it.
fn counters(netns: &str) -> (u64, u64) {
    let output = Command::new("ip").args(["netns", "exec", netns, "cat", "/proc/net/dev"]).output().expect("ip runs");
    let all = text(&output.stdout);
    let line = all.lines().find_map(|line| line.trim_start().strip_prefix("cell0:")).expect("its interface");
    let numbers: Vec<u64> = line.split_ascii_whitespace().map(|number| number.parse().expect("a number")).collect();
    let [_, received, errors, dropped, _, _, _, _, _, sent, _, missed, ..] = numbers[..] else { panic!("{line}") };
    assert_eq!((errors, dropped, missed), (0, 0, 0), "{line}");
    (received, sent)
}

/// Returns the number of the line `WHAT: NUMBER`, or 0.
fn number(text: &str, what: &str) -> u64 {
    let behind = text.lines().find_map(|line| line.trim().strip_prefix(what)?.strip_prefix(": ")?.parse().ok());
    behind.unwrap_or(0)
}

#[test]
fn root_malformed_packets_do_no_harm_and_are_all_accounted_for() {
    if !may() {
        return;
    }
    for (scenario, hosts) in [(ROOMY, ["a", "b"]), (CELL, ["server", "ue"])] {
        let dir = scratch(scenario);
        let line = format!(
            "{} && ping -c 2 -i 0.2 server >&2 && curl -sf -o /dev/null http://server/100kB && echo ready && read _; exit 5",
            inside("everything_malformed_is_sent")
        );
        let mut running = shell(dir.path(), &[], &line);
        running.ready();
        let namespaces = hosts.map(|host| format!("ranway-{}-{host}", running.id()));
        // The last acknowledgements are still on their way.
        let mut before = [(0, 0); 2];
        eventually("it is quiet", || {
            let now = [counters(&namespaces[0]), counters(&namespaces[1])];
            std::thread::sleep(Duration::from_millis(200));
            std::mem::replace(&mut before, now) == now
        });
        let [(to_server, from_server), (to_ue, from_ue)] = before;
        running.say("\n");
        let output = running.end();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains("2 received"), "{said}");
        let stray = number(&said, "packets with an unknown destination");
        assert!(from_ue > 3000 && stray > 1000, "{from_ue} packets were sent, {stray} to unknown destinations");
        assert_eq!(from_server + from_ue, to_server + to_ue + stray, "what went in, and what became of it: {said}");
    }
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_everything_malformed_is_sent() {
    if is_inside() {
        malformed::send("cell0");
    }
}

#[test]
fn root_a_flood_takes_bounded_memory_and_the_control_socket_answers_in_it() {
    conclusive(a_flood_takes_bounded_memory_and_the_control_socket_answers_in_it);
}

fn a_flood_takes_bounded_memory_and_the_control_socket_answers_in_it(watch: &mut Watch) {
    if !may() {
        return;
    }
    for scenario in [LINK, CELL, FAR] {
        let dir = scratch(scenario);
        let mut running = shell(dir.path(), &[], &format!("echo ready; {}", inside("a_flood_is_sent")));
        running.ready();
        let (start, mut peak, mut asked) = (Instant::now(), 0, 0);
        // Ends before the command, with which the emulation ends.
        while start.elapsed() < FLOOD * 2 / 3 {
            let (code, said) = running.control("status");
            assert_eq!(code, Some(0), "{said}");
            asked += 1;
            peak = memory(running.pid()).max(peak);
            std::thread::sleep(Duration::from_millis(100));
        }
        let output = running.end();
        let missed = says_if_it_is_valid(dir.path(), &output);
        let sent = number(&text(&output.stdout), "datagrams sent");
        // Rejected packets never entered the network, either.
        let refused = number(&text(&output.stderr), "packets rejected because too many were in the network");
        assert!(missed >= refused && (refused == 0 || scenario == FAR), "{}", text(&output.stderr));
        if scenario == FAR && refused == 0 {
            assert!(sent - missed < MOST_PACKETS, "{sent} sent: {}", text(&output.stderr));
            watch.void(format!("{sent} packets were sent, which do not fill the network"));
        }
        assert!(asked >= 3, "{asked} questions were answered");
        assert!(peak < MOST_MEMORY, "{peak} kB");
        assert!(sent > missed, "{}", text(&output.stdout));
    }
}

#[test]
fn root_packets_missed_by_a_stalled_emulation_make_a_run_invalid() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let mut running = shell(dir.path(), &[], &format!("echo ready; {}", inside("a_flood_is_sent")));
    running.ready();
    // Simulates a machine without CPU time.
    running.signal("-STOP");
    std::thread::sleep(FLOOD / 2);
    running.signal("-CONT");
    let output = running.end();
    assert!(says_if_it_is_valid(dir.path(), &output) > 0, "{}", text(&output.stderr));
}

/// Checks that exit code, results and output agree on validity. Returns the number of missed packets.
fn says_if_it_is_valid(dir: &Path, output: &Output) -> u64 {
    let lateness = &json(dir, "timing.json")["lateness"];
    let said = text(&output.stderr);
    let missed = lateness["missed"].as_u64().expect("a number");
    let late = lateness["p99_ms"].as_f64().expect("a number") > lateness["bound_ms"].as_f64().expect("a number");
    assert_eq!(lateness["valid"].as_bool(), Some(missed == 0 && !late), "{lateness}");
    let (code, says) = if missed > 0 || late { (3, true) } else { (0, false) };
    assert_eq!((output.status.code(), said.contains("invalid: ")), (Some(code), says), "{said}");
    missed
}

/// Returns the resident memory of a process in kB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_a_flood_is_sent() {
    if !is_inside() {
        return;
    }
    let (start, sent) = (Instant::now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for size in [1, 1400] {
            let (socket, sent) = (UdpSocket::bind("0.0.0.0:0").expect("a socket"), &sent);
            scope.spawn(move || {
                while start.elapsed() < FLOOD {
                    // A full queue is what this is about.
                    let done = (0..100).filter(|_| socket.send_to(&[7; 1400][..size], (SERVER, 9)).is_ok());
                    sent.fetch_add(done.count() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    println!("\ndatagrams sent: {}", sent.into_inner());
}

#[test]
fn root_ten_thousand_flows_give_a_report_of_limited_size() {
    if !may() {
        return;
    }
    let dir = scratch(ROOMY);
    let output = shell(dir.path(), &[], &inside("many_flows_are_sent")).end();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = fs::metadata(dir.path().join("ranway-out/net-emulated/report.html")).expect("a report").len();
    assert!((100_000..30_000_000).contains(&report), "{report} bytes");
    let flows = flows(dir.path());
    let named = |flow: &serde_json::Value, begin: &str| flow["flow"].as_str().is_some_and(|n| n.starts_with(begin));
    let count = |begin: &str| flows.iter().filter(|flow| named(flow, begin)).count();
    // The number of flows tracked individually is limited; the rest is counted together.
    assert!((3_500..=4_096).contains(&count("udp b:")), "{} rows of UDP", count("udp b:"));
    assert!(count("tcp a:80 > b:") >= 450, "{} rows of TCP", count("tcp a:80 > b:"));
    assert_eq!(count("udp others > a"), 1);
    for flow in &flows {
        let goodput = flow["goodput_mbps"]["mean"].as_f64().unwrap_or(-1.0);
        assert!((0.0..200.0).contains(&goodput), "{flow}");
    }
}

#[test]
#[ignore = "it is run by others"]
fn root_inside_many_flows_are_sent() {
    if !is_inside() {
        return;
    }
    // Connections with an answer of 20 kB each, all at once.
    let request = b"GET /20kB HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n";
    let open = |_| {
        let mut stream = TcpStream::connect((SERVER, 80)).expect("a connection");
        stream.write_all(request).expect("it takes the request");
        stream
    };
    let streams: Vec<TcpStream> = (0..500).map(open).collect();
    for mut stream in streams {
        let got = stream.read_to_end(&mut Vec::new()).expect("an answer");
        assert!(got > 20_000, "{got} bytes");
    }
    // 100 by 100 ports.
    let sockets: Vec<UdpSocket> = (0..100).map(|_| UdpSocket::bind("0.0.0.0:0").expect("a socket")).collect();
    for port in 20_000..20_100 {
        for socket in &sockets {
            // The server reports a closed port, which causes an error at a later call.
            let _ = (0..3).map(|_| socket.send_to(&[7; 300], (SERVER, port))).filter(Result::is_ok).count();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn root_invalid_control_input_does_not_stop_an_emulation() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    let mut running = shell(dir.path(), &[], "echo ready; exec ping -c 10 -i 0.2 server");
    running.ready();
    let path = format!("/run/ranway/{}/control", running.id());
    let mut crowd = Vec::new();
    for n in 0..100 {
        // It closes connections beyond its limit.
        let Ok(mut stream) = UnixStream::connect(&path) else { continue };
        let garbage: [&[u8]; 4] =
            [b"\0\xff\xfe\n\n\n", b"status status\r\n", &[b'x'; 10_000], b"rate wire -1 Mbit/s\nst"];
        let _ = stream.write_all(garbage[n % 4]);
        crowd.push(stream);
    }
    let (code, said) = running.control("status");
    assert!(code == Some(0) && said.contains("wire"), "{said}");
    let (code, said) = running.control("rate wire fast");
    assert!(code == Some(2) && said.contains("Mbit/s"), "{said}");
    drop(crowd);
    let output = running.end();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(" 0% packet loss"), "{}", text(&output.stdout));
}

/// An emulation whose processes can be distinguished from all others.
struct Marked {
    running: Running,
    mark: String,
}

impl Marked {
    fn start(dir: &Path, line: &str) -> Marked {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mark = format!("{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut command = command(dir, &[&["emulate", "net.toml"], &PATIENT[..], &["--", "sh", "-c", line]].concat());
        command.env(machine::MARK, &mark);
        let mut running = Running::of(command);
        running.ready();
        Marked { running, mark }
    }

    /// Returns its process whose command line begins with these words, or contains this one after a script.
    fn find(&self, what: &str) -> Option<u32> {
        let is = |line: &str| {
            let name = line.rsplit_once('/').filter(|(path, _)| !path.contains(' ')).map_or(line, |(_, name)| name);
            name.starts_with(what) || line.contains(&format!("\n {what} "))
        };
        processes(&self.mark).into_iter().find(|(_, line)| is(line)).map(|(pid, _)| pid)
    }

    /// Kills all processes of this kind: one that has just been forked has the command line of its parent, until it has its own.
    fn kill(&self, what: &str) {
        while let Some(pid) = self.find(what) {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            eventually("it is dead", || !processes(&self.mark).contains_key(&pid));
        }
    }
}

#[test]
fn root_killing_any_process_leaves_the_machine_unchanged() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    // Creates what stays permanently: directories, and the mount that contains namespaces.
    Marked::start(dir.path(), "echo ready").running.end();
    let before = Machine::now();
    let iperf3 = has_program(netio::program::find_program("iperf3".as_ref()).is_some(), "iperf3");
    // A background process in addition to the command.
    let line = "setsid sleep 1001 & echo ready; sleep 1002; true";
    for (who, code) in [
        // The command continues until it receives a signal.
        (&["ranway-tidy"][..], Some(128 + 15)),
        (&["iperf3 -s"], Some(128 + 15)),
        (&["iperf3 -s", "ranway-tidy"], Some(128 + 15)),
        (&["sh -c setsid"], Some(128 + 9)),
        (&["sleep 1002"], Some(0)),
        (&["sleep 1001", "sh -c setsid"], Some(128 + 9)),
        (&["ranway-tidy", "sh -c setsid"], Some(128 + 9)),
        (&["ranway emulate"], None),
        (&["ranway-tidy", "ranway emulate"], None),
        (&["ranway emulate", "ranway-tidy"], None),
    ] {
        if !iperf3 && who.contains(&"iperf3 -s") {
            continue;
        }
        let mut marked = Marked::start(dir.path(), line);
        eventually("the first is there", || marked.find(who[0]).is_some());
        // The others may already have died with the first.
        who.iter().for_each(|what| marked.kill(what));
        if code == Some(128 + 15) {
            marked.running.signal("-TERM");
        }
        if code.is_none() {
            marked.running.reap();
            if who.contains(&"ranway-tidy") {
                // No process may be left to clean up; the next emulation does it.
                Marked::start(dir.path(), "echo ready").running.end();
            }
        }
        let (id, mark) = (marked.running.id(), marked.mark.clone());
        let status = marked.running.end().status;
        assert_eq!((status.code(), status.signal()), (code, code.is_none().then_some(9)), "{who:?}");
        before.is_back(&id, &mark, &format!("{who:?} killed"));
    }
}

#[test]
fn root_removing_a_host_ends_the_emulation() {
    if !may() {
        return;
    }
    let dir = scratch(LINK);
    Marked::start(dir.path(), "echo ready").running.end();
    let before = Machine::now();
    for (how, code, hint) in [
        ("ip link delete cell0; sleep 1003", 1, "cell0 of b is gone"),
        // Only its name is removed.
        ("read _; ping -c 1 server >&2", 0, "1 received"),
        // A host may change its own interface.
        (
            "ip link set cell0 down; ip address flush cell0; sleep 0.2; ip link set cell0 mtu 100 up; exit 4",
            4,
            "report",
        ),
    ] {
        let mut marked = Marked::start(dir.path(), &format!("echo ready; {how}"));
        let (id, mark) = (marked.running.id(), marked.mark.clone());
        if how.starts_with("read") {
            let deleted = Command::new("ip").args(["netns", "delete", &format!("ranway-{id}-b")]).status();
            assert!(deleted.expect("ip runs").success());
            marked.running.say("\n");
        }
        let output = marked.running.end();
        assert_eq!(output.status.code(), Some(code), "{how}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint), "{how}: {}", text(&output.stderr));
        before.is_back(&id, &mark, how);
    }
}
