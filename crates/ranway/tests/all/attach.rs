//! End-to-end tests of a simulated network between two interfaces: `a0 - ma` and `mb - b0`, with the command in the
//! middle. Tests that need root report when they are skipped.

use crate::common::spaces::{Spaces, ip};
use crate::common::{LINK, PATIENT, eventually, may, ping_times, scratch, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, conclusive};

const ATTACH: [&str; 3] = ["--attach", "ma", "mb"];

/// The namespaces. The first and the last represent the scenario's hosts of the same name.
const A: &str = "a";
const MIDDLE: &str = "m";
const B: &str = "b";
const A4: &str = "10.9.0.1";
const A6: &str = "fd09::1";
const B4: &str = "10.9.0.2";
const B6: &str = "fd09::2";

/// The namespaces, and the scenario in their directory.
struct Net(Spaces);

impl Deref for Net {
    type Target = Spaces;
    fn deref(&self) -> &Spaces {
        &self.0
    }
}

impl Net {
    /// Returns `None`, with a message, where namespaces are not available.
    fn new() -> Option<Net> {
        if !may() {
            return None;
        }
        let net = Spaces::new(&[A, MIDDLE, B]);
        fs::write(net.dir.path().join("net.toml"), LINK).expect("it is written");
        net.join((A, "a0", &["10.9.0.1/24", "fd09::1/64"]), (MIDDLE, "ma", &[]));
        net.join((B, "b0", &["10.9.0.2/24", "fd09::2/64"]), (MIDDLE, "mb", &[]));
        Some(Net(net))
    }

    fn run(&self, host: &str, program: &str, args: &str) -> Output {
        self.command(host, program).args(args.split(' ')).output().expect("the command starts")
    }

    /// Returns the commands that would restore the offloads currently enabled at the middle's interfaces.
    fn offloads(&self) -> [String; 2] {
        self.inside(MIDDLE, || netio::attach::open(["ma", "mb"])).expect("they can be had").each_ref().map(restore)
    }

    /// Starts the network and waits until it is ready.
    fn attach(&self, args: &[&str]) -> Attached {
        self.attach_by(self.command(MIDDLE, env!("CARGO_BIN_EXE_ranway")), args)
    }

    fn attach_by(&self, mut command: Command, args: &[&str]) -> Attached {
        let args = [&["emulate", "net.toml"], &PATIENT[..], &ATTACH, args].concat();
        command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("a line");
        let id = line.strip_prefix("attached ma (a) and mb (b); ID ");
        let id = id.and_then(|rest| rest.strip_suffix("; press Ctrl-C to stop\n"));
        let id = id.unwrap_or_else(|| panic!("{line}")).to_owned();
        Attached { child, stderr, id }
    }

    /// Returns a counter of a host's kernel: from a file in `/proc/net`, in two lines with a group name, or in one with
    /// the counter's name.
    fn count(&self, host: &str, file: &str, group: &str, name: &str) -> f64 {
        let all = text(&self.run(host, "cat", &format!("/proc/net/{file}")).stdout);
        let lines: Vec<Vec<&str>> = all.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
        let mut ours = lines.iter().filter(|line| line[0].trim_end_matches(':') == group);
        let first = ours.next().unwrap_or_else(|| panic!("{group} in {all}"));
        let value =
            ours.next().map_or(first[1], |values| values[first.iter().position(|&n| n == name).expect("a name")]);
        value.parse().expect("a number")
    }

    fn flows(&self) -> Vec<serde_json::Value> {
        crate::common::flows(self.dir.path())
    }
}

/// A running network.
struct Attached {
    child: Child,
    stderr: BufReader<ChildStderr>,
    id: String,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Attached {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Waits for its end, and returns its exit code and messages.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("text");
        let status = self.child.ends();
        assert!(!Path::new("/run/ranway").join(&self.id).exists());
        (status.code(), said)
    }

    fn interrupt(self) -> String {
        self.signal(Signal::SIGINT);
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
        said
    }
}

fn restore(wire: &netio::attach::Wire) -> String {
    wire.restore_lines()
}

/// Sends `data` over TCP from one host to another, compares what arrives, and returns the duration.
fn transfer(net: &Net, from: &str, to: &str, address: &str, data: &[u8]) -> Duration {
    let listener = net.inside(to, || TcpListener::bind((address, 5000))).expect("the port is free");
    let began = Instant::now();
    let mut stream = net.inside(from, || TcpStream::connect((address, 5000))).expect("it connects");
    let (mut receiver, _) = listener.accept().expect("it has connected");
    receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let mut got = Vec::new();
            receiver.read_to_end(&mut got).map(|_| got)
        });
        stream.write_all(data).expect("it takes it");
        drop(stream);
        assert!(receiving.join().expect("no panic").expect("it comes") == data, "from {from} to {address}");
    });
    began.elapsed()
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect()
}

#[test]
fn root_hosts_behind_two_interfaces_find_each_other_and_take_as_long_as_the_links_say() {
    conclusive(hosts_behind_two_interfaces_find_each_other_and_take_as_long_as_the_links_say);
}

fn hosts_behind_two_interfaces_find_each_other_and_take_as_long_as_the_links_say(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let attached = net.attach(&["--pcap"]);
    // 1000 bytes of payload and 8 of ICMP: 1.028 ms (IPv4) and 1.048 ms (IPv6) each way at 8 Mbit/s, and 10 ms.
    for (from, to, least) in [(B, A4, 22.056), (A, B6, 22.096)] {
        let said = text(&net.run(from, "ping", &format!("-c 10 -i 0.1 -s 1000 {to}")).stdout);
        let times = ping_times(&said);
        assert_eq!(times.len(), 10, "{said}");
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        // Processing in the hosts adds to it, considerably on a busy machine.
        assert!((least..least + 5.0).contains(&fastest), "{to}: {fastest} ms, of which {least} are the network's");
    }
    // 691 segments of 1500 bytes at 8 Mbit/s plus the handshake: longer than the scenario, which does not end the run.
    for (from, to, address) in [(A, B, B4), (B, A, A6)] {
        let took = transfer(&net, from, to, address, &noise(1_000_000)).as_secs_f64();
        assert!((1.03..1.6).contains(&took), "to {address}: {took} s");
    }
    let said = attached.interrupt();
    assert!(said.contains("report: "), "{said}");
    assert!(
        !said.contains("with an unknown destination") && !said.contains("rejected by the receiving interface"),
        "{said}"
    );

    let flows = net.flows();
    let flow = |name: &str| flows.iter().find(|flow| flow["flow"].as_str().is_some_and(|flow| flow.starts_with(name)));
    let down = flow("tcp 10.9.0.1:").unwrap_or_else(|| panic!("{flows:?}"));
    assert_eq!((down["from"].as_str(), down["to"].as_str()), (Some("a"), Some("b")));
    let goodput = down["goodput_mbps"]["mean"].as_f64().expect("a number");
    // 1448 of 1500 bytes are payload.
    assert!((4.0..7.73).contains(&goodput), "{goodput} Mbit/s");
    assert!(flow("icmp 10.9.0.2 > 10.9.0.1").is_some() && flow("tcp [fd09::2]:").is_some(), "{flows:?}");

    let file = net.dir.path().join("ranway-out/net-emulated/captures/hosts.pcapng");
    let tshark =
        Command::new("tshark").args(["-Y", "icmpv6 && frame.interface_name == \"a\"", "-r"]).arg(file).output();
    if !testkit::root::has_program(tshark.is_ok(), "tshark") {
        return;
    }
    let tshark = tshark.expect("it is there");
    // Requests and replies; neighbour discovery is not captured.
    assert_eq!(text(&tshark.stdout).lines().count(), 20, "{}", text(&tshark.stdout));
}

#[test]
fn root_senders_learn_the_mtu_at_a_limited_rate() {
    let Some(net) = Net::new() else { return };
    let attached = net.attach(&["--mtu", "1300"]);
    for (from, to, address) in [(A, B, B4), (B, A, A6)] {
        transfer(&net, from, to, address, &noise(200_000));
        let route = text(&net.run(from, "ip", &format!("route get {address}")).stdout);
        assert!(route.contains("mtu 1300"), "{route}");
    }
    // A sender that ignores it: 1,000 packets at once, each of which would be answered.
    ip(&format!("-n {} link add idle type veth peer name other", net.space(B)));
    ip(&format!("-n {} link set dev idle up", net.space(B)));
    let [wire, _] = net.inside(B, || netio::attach::open(["b0", "idle"])).expect("they can be had");
    let header = [0x45, 0, 1400_u16.to_be_bytes()[0], 1400_u16.to_be_bytes()[1], 0, 0, 0x40, 0, 64, 17, 0, 0];
    let packet = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0][..], &header, &[10, 9, 0, 2], &[10, 9, 0, 1], &[0; 1380]];
    let packet = packet.concat();
    let began = Instant::now();
    for _ in 0..1000 {
        while wire.send(&packet).is_err() {
            assert!(began.elapsed() < Duration::from_secs(10), "there is no room");
        }
    }
    std::thread::sleep(Duration::from_millis(300));
    let windows = began.elapsed().as_secs() as usize + 2;
    let mut buffer = vec![0; netio::attach::LONGEST];
    let mut answers = 0;
    while let Ok(frame) = wire.receive(&mut buffer) {
        // "Fragmentation needed" to the address that the frames came from.
        answers += usize::from(frame.bytes.starts_with(&[2, 0, 0, 0, 0, 8]) && frame.bytes[34..36] == [3, 4]);
    }
    // Some of the first second's answers went to the transfers.
    assert!((50..=windows * 100).contains(&answers), "{answers} answers");
    attached.interrupt();
}

#[test]
fn root_congestion_is_marked_in_packets_within_frames() {
    let Some(net) = Net::new() else { return };
    let codel = LINK.replace("kind = \"drop-tail\", packets = 100", "kind = \"codel\"");
    fs::write(net.dir.path().join("net.toml"), codel).expect("it is written");
    for host in [A, B] {
        assert!(net.run(host, "sysctl", "-qw net.ipv4.tcp_ecn=1").status.success());
    }
    let attached = net.attach(&[]);
    transfer(&net, A, B, B4, &noise(1_000_000));
    transfer(&net, A, B, B6, &noise(1_000_000));
    attached.interrupt();
    assert!(net.count(B, "netstat", "IpExt", "InCEPkts") > 0.0 && net.count(B, "snmp6", "Ip6InCEPkts", "") > 0.0);
    assert_eq!(net.count(B, "snmp", "Ip", "InHdrErrors"), 0.0);
}

#[test]
fn root_control_and_stop_work_and_restore_the_interfaces() {
    let Some(net) = Net::new() else { return };
    let before = net.offloads();
    assert!(before[0].starts_with("ethtool -K 'ma' rx on"), "{before:?}");
    let control = |id: &str, line: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
        let output = command.args(["control", "--id", id]).args(line.split(' ')).output().expect("it starts");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for ended_by in ["stop", "SIGTERM"] {
        let attached = net.attach(&[]);
        let restore =
            fs::read_to_string(Path::new("/run/ranway").join(&attached.id).join("restore")).expect("a record");
        assert!(before.iter().all(|line| restore.contains(line.trim())), "{restore}");
        assert!(control(&attached.id, "status").contains("\"wire-reverse\""));
        control(&attached.id, "rate wire 80 Mbit/s");
        let took = transfer(&net, A, B, B4, &noise(1_000_000)).as_secs_f64();
        assert!((0.1..0.9).contains(&took), "{took} s");
        match ended_by {
            "stop" => drop(control(&attached.id, "stop")),
            _ => attached.signal(Signal::SIGTERM),
        }
        let (code, said) = attached.end();
        assert_eq!(code, Some(0), "{ended_by}: {said}");
        assert_eq!(net.offloads(), before, "{ended_by}");
    }
}

#[test]
fn root_after_a_kill_the_keeper_restores_the_interfaces() {
    let Some(net) = Net::new() else { return };
    let before = net.offloads();
    // A stub in place of the command, which may not be installed; it records its arguments.
    let called = net.dir.path().join("called");
    let stub = net.dir.path().join("ethtool");
    fs::write(&stub, format!("#!/bin/sh\necho \"$@\" >> {}\n", called.display())).expect("it is written");
    fs::set_permissions(&stub, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is ours");
    let mut command = net.command(MIDDLE, env!("CARGO_BIN_EXE_ranway"));
    let path = std::env::var("PATH").expect("there is one");
    command.env("PATH", format!("{}:{path}", net.dir.path().display()));
    let mut attached = net.attach_by(command, &[]);
    let record = Path::new("/run/ranway").join(&attached.id);
    assert!(record.join("restore").is_file());
    attached.child.kill().expect("it runs");
    attached.child.ends();
    eventually("the record is gone", || !record.exists());
    assert_eq!(
        fs::read_to_string(called).expect("it was called"),
        before.concat().replace("ethtool ", "").replace('\'', "")
    );
}

#[test]
fn root_removing_an_interface_ends_it_with_an_error_and_results() {
    let Some(net) = Net::new() else { return };
    let attached = net.attach(&[]);
    assert!(net.run(B, "ping", &format!("-c 1 -W 5 {A4}")).status.success());
    ip(&format!("-n {} link del b0", net.space(B)));
    let began = Instant::now();
    let (code, said) = attached.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(said.contains("error: the interface mb of b is gone"), "{said}");
    assert_eq!(net.flows().len(), 1);
}

#[test]
fn root_it_continues_after_an_interface_was_down() {
    let Some(net) = Net::new() else { return };
    let attached = net.attach(&[]);
    let reaches = || net.run(B, "ping", &format!("-c 1 -W 3 {A4}")).status.success();
    assert!(reaches());
    let middle = net.space(MIDDLE);
    ip(&format!("-n {middle} link set dev mb down"));
    assert!(!reaches());
    ip(&format!("-n {middle} link set dev mb up"));
    eventually("the other side answers again", reaches);
    attached.interrupt();
}

#[test]
fn root_unusable_interfaces_are_rejected_in_one_line_without_changes() {
    let Some(net) = Net::new() else { return };
    let (middle, before) = (net.space(MIDDLE), net.offloads());
    ip(&format!("-n {middle} link add idle type veth peer name other"));
    ip(&format!("-n {middle} link add bridge0 type bridge"));
    ip(&format!("-n {middle} link add port type veth peer name end"));
    ip(&format!("-n {middle} link set dev port up"));
    ip(&format!("-n {middle} link set dev port master bridge0"));
    for (interface, why) in [
        ("eth77", "there is no such interface"),
        ("ma", "it is one interface with `ma`, and two are needed"),
        ("lo", "it does not carry Ethernet frames"),
        ("idle", "it is down; bring it up with: ip link set dev idle up"),
        ("port", "it belongs to `bridge0`; take it out with: ip link set dev port nomaster"),
    ] {
        let output =
            net.run(MIDDLE, env!("CARGO_BIN_EXE_ranway"), &format!("emulate net.toml --attach ma {interface}"));
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said), (Some(2), format!("error: cannot attach `{interface}`: {why}\n")));
    }
    assert!(!net.dir.path().join("ranway-out").exists());
    assert_eq!(net.offloads(), before);
}

#[test]
fn options_that_need_namespaces_are_rejected_with_interfaces() {
    let dir = scratch(LINK);
    for args in [&["--shell"][..], &["--kernel"], &["--server", "true"], &["--", "true"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
        command.args(["emulate", "net.toml"]).args(ATTACH).args(args).current_dir(dir.path());
        let output = command.output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains("cannot be used with"), "{args:?}: {}", text(&output.stderr));
    }
}
