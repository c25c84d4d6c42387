//! Tests of emulated hosts that reach the machine's networks. The machine and the hosts it reaches are namespaces of
//! the test. Tests that need root and TUN report when they are skipped.

use crate::common::spaces::{Spaces, ip};
use crate::common::{LINK, PATIENT, Running, command, eventually, flows, namespaces, ping_times, scratch, text};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread;
use testkit::root::granted;

/// A web server and a name server on the Internet.
const OUTSIDE: &str = "198.51.100.1";
/// The machine's address on the Internet.
const MACHINE: &str = "192.0.2.2";
/// A network of the machine, with a host.
const OFFICE: &str = "10.99.0.2";
/// Bytes of the header of a DNS message (RFC 1035, section 4.1.1).
const DNS_HEADER: usize = 12;

fn may() -> bool {
    crate::common::may() && granted(emulate::uplink::check()).is_some()
}

/// Creates a machine that does not forward, between the Internet and an office, whose addresses the Internet can reach
/// through the machine as soon as it forwards.
fn world() -> Spaces {
    let spaces = Spaces::new(&["machine", "internet", "office"]);
    spaces.join(("machine", "eth0", &["192.0.2.2/24"]), ("internet", "eth0", &["192.0.2.1/24"]));
    spaces.join(("machine", "eth1", &["10.99.0.1/24"]), ("office", "eth0", &["10.99.0.2/24"]));
    let [machine, internet, office] = ["machine", "internet", "office"].map(|host| spaces.space(host));
    ip(&format!("-n {internet} link set dev lo up"));
    ip(&format!("-n {internet} addr add {OUTSIDE}/32 dev lo"));
    ip(&format!("-n {internet} route add 10.99.0.0/24 via {MACHINE}"));
    ip(&format!("-n {office} route add default via 10.99.0.1"));
    ip(&format!("-n {machine} route add default via 192.0.2.1"));
    // A new namespace may inherit its parent's settings.
    let off = "echo 0 >/proc/sys/net/ipv4/ip_forward";
    assert!(spaces.command("machine", "sh").args(["-c", off]).status().expect("it runs").success());
    serve(&spaces);
    spaces
}

/// Answers each connection to port 8080 with its source address, and any DNS query with [`OUTSIDE`]. The threads end
/// with the test's process.
fn serve(spaces: &Spaces) {
    let (web, dns) = spaces.inside("internet", || {
        let address = |port| SocketAddr::from((OUTSIDE.parse::<Ipv4Addr>().expect("an address"), port));
        (TcpListener::bind(address(8080)).expect("a port"), UdpSocket::bind(address(53)).expect("a port"))
    });
    thread::spawn(move || {
        while let Ok((mut stream, peer)) = web.accept() {
            let _ = stream.read(&mut [0; 1024]);
            let body = peer.ip().to_string();
            let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((len, from)) = dns.recv_from(&mut buffer) {
            let _ = dns.send_to(&dns_answer(&buffer[..len]), from);
        }
    });
}

/// Returns the answer to an address query; for IPv6, that there is none.
fn dns_answer(question: &[u8]) -> Vec<u8> {
    let name = question[DNS_HEADER..].iter().position(|&byte| byte == 0).expect("a name");
    // The name is followed by type and class.
    let end = DNS_HEADER + name + 5;
    let is_v4 = question[end - 4..end - 2] == [0, 1];
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
    answer.extend(&question[DNS_HEADER..end]);
    if is_v4 {
        // The name refers to the query; type A, class IN, for 60 s, 4 bytes.
        answer.extend([0xc0, DNS_HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(OUTSIDE.parse::<Ipv4Addr>().expect("an address").octets());
    }
    answer
}

/// Starts `ranway emulate --nat` on the machine, but not with `ip netns exec`, in whose mounts new namespaces would
/// have no names.
fn start(spaces: &Spaces, dir: &Path, args: &[&str]) -> Running {
    let mut machine = Command::new("nsenter");
    machine.arg(format!("--net=/run/netns/{}", spaces.space("machine"))).arg(env!("CARGO_BIN_EXE_ranway"));
    machine.args(["emulate", "net.toml", "--nat"]).args(PATIENT).args(args).current_dir(dir);
    Running::of(machine)
}

/// Returns everything on the machine that an emulation might change. IPv6 link-local addresses change on their own.
fn state(spaces: &Spaces) -> String {
    let all = "ip -o link; ip -4 route show table all; ip -6 route show table all | grep -v -e fe80: -e ff00:; nft list ruleset; \
               grep -H . /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv[46]/conf/*/forwarding";
    let output = spaces.command("machine", "sh").args(["-c", all]).output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Whether any of three pings is answered: a busy machine may take a second to resolve the first one's address.
fn pings(spaces: &Spaces, host: &str, address: &str) -> bool {
    let output =
        spaces.command(host, "ping").args(["-c", "3", "-i", "0.2", "-W", "1", address]).output().expect("ping runs");
    output.status.success()
}

#[test]
fn root_hosts_reach_outside_through_the_network() {
    if !may() {
        return;
    }
    let (spaces, dir) = (world(), scratch(LINK));
    let output = start(&spaces, dir.path(), &["--quiet", "--", "ping", "-c", "5", "-i", "0.1", OUTSIDE]).end();
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    let times = ping_times(&said);
    assert!(times.len() == 5 && times.iter().all(|&time| time >= 20.0), "10 ms each way: {said}");

    let url = format!("http://{OUTSIDE}:8080/");
    let output =
        start(&spaces, dir.path(), &["--quiet", "--", "curl", "-sS", "-w", " %{time_starttransfer}", &url]).end();
    let said = text(&output.stdout) + &text(&output.stderr);
    let (peer, time) = said.split_once(' ').unwrap_or_else(|| panic!("{said}"));
    assert_eq!(peer, MACHINE, "{said}");
    // The handshake, and the request with its answer.
    assert!(time.parse::<f64>().is_ok_and(|time| time >= 0.04), "{said}");
    let flows = flows(dir.path());
    let name = |flow: &serde_json::Value| flow["flow"].as_str().map(str::to_owned);
    assert!(flows.iter().filter_map(name).any(|name| name.contains(&format!("{OUTSIDE}:8080"))), "{flows:?}");
}

#[test]
fn root_hosts_resolve_names_outside_and_reach_the_server_as_before() {
    if !may() || !Path::new("/etc/resolv.conf").exists() {
        return;
    }
    let (spaces, dir) = (world(), scratch(LINK));
    let ask = "curl -sS http://outside.example:8080/ && curl -sS http://server/10kB | wc -c";
    let output = start(&spaces, dir.path(), &["--quiet", "--dns", OUTSIDE, "--", "sh", "-c", ask]).end();
    assert_eq!(text(&output.stdout), format!("{MACHINE}10000\n"), "{}", text(&output.stderr));
}

#[test]
fn root_outside_hosts_cannot_reach_emulated_hosts_or_pass_the_machine() {
    if !may() {
        return;
    }
    let (spaces, dir) = (world(), scratch(LINK));
    assert!(pings(&spaces, "machine", OFFICE) && !pings(&spaces, "internet", OFFICE));
    let mut running = start(&spaces, dir.path(), &["--", "sh", "-c", "echo ready; read _; ping -c 1 10.99.0.2"]);
    running.ready();
    assert!(!pings(&spaces, "internet", OFFICE), "the machine has become a router");
    let addresses = spaces.command("machine", "ip").args(["-o", "-4", "address"]).output().expect("ip runs");
    let addresses = text(&addresses.stdout);
    let ours = addresses.lines().find(|line| line.contains("rwn-")).unwrap_or_else(|| panic!("{addresses}"));
    let ours = ours.split_whitespace().find_map(|word| word.strip_suffix("/30")).expect("an address");
    let last = ours.parse::<Ipv4Addr>().expect("an address").to_bits() + 1;
    let server = Ipv4Addr::from_bits(last).to_string();
    ip(&format!("-n {} route add {server}/32 via {MACHINE}", spaces.space("internet")));
    assert!(!pings(&spaces, "internet", &server) && !pings(&spaces, "machine", &server));
    running.say("\n");
    let output = running.end();
    assert!(output.status.success(), "the machine's other networks: {}", text(&output.stdout));
}

#[test]
fn root_nothing_is_left_on_the_machine_after_the_end_or_a_kill() {
    if !may() {
        return;
    }
    let (spaces, dir) = (world(), scratch(LINK));
    let before = state(&spaces);
    for kill in [None, Some("-TERM"), Some("-KILL")] {
        let mut running = start(&spaces, dir.path(), &["--", "sh", "-c", "echo ready; exec sleep 1"]);
        running.ready();
        let id = running.id();
        let during = state(&spaces);
        assert!(during.contains(&format!("table ip ranway_{id}")) && during.contains("eth0/forwarding:1"), "{during}");
        assert!(during.contains("ip_forward:0"), "{during}");
        kill.inspect(|signal| running.signal(signal));
        running.end();
        eventually("the machine is as it was", || state(&spaces) == before && namespaces(&id).is_empty());
        assert!(!Path::new("/etc/netns").join(format!("ranway-{id}-server")).exists());
    }
    // What the killed keeper left is removed by the next emulation.
    let mut running = start(&spaces, dir.path(), &["--", "sh", "-c", "echo ready; exec sleep 30"]);
    running.ready();
    let id = running.id();
    let keeper = Command::new("pgrep").args(["-f", &format!("ranway-tidy {id}$")]).output().expect("pgrep runs");
    let keeper = text(&keeper.stdout).trim().to_owned();
    assert!(keeper.parse::<u32>().is_ok(), "one process: {keeper}");
    assert!(Command::new("kill").args(["-KILL", &keeper]).status().expect("kill runs").success());
    running.signal("-KILL");
    running.reap();
    assert_ne!(state(&spaces), before);
    let output = start(&spaces, dir.path(), &["--", "ping", "-c", "1", OUTSIDE]).end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    eventually("the machine is as it was", || state(&spaces) == before && namespaces(&id).is_empty());
}

#[test]
fn root_the_last_of_two_emulations_restores_the_machine() {
    if !may() {
        return;
    }
    let (spaces, dirs) = (world(), [scratch(LINK), scratch(LINK)]);
    let before = state(&spaces);
    let wait = format!("echo ready; read _; ping -c 1 -W 5 {OUTSIDE}");
    let [mut first, mut second] =
        dirs.each_ref().map(|dir| start(&spaces, dir.path(), &["--quiet", "--", "sh", "-c", &wait]));
    first.ready();
    second.ready();
    for running in [&mut first, &mut second] {
        running.say("\n");
    }
    let outputs = [first.end(), second.end()];
    for output in &outputs {
        assert!(output.status.success(), "{}", text(&output.stdout));
    }
    assert_eq!(state(&spaces), before);

    let [mut first, mut second] =
        dirs.each_ref().map(|dir| start(&spaces, dir.path(), &["--quiet", "--", "sh", "-c", &wait]));
    first.ready();
    second.ready();
    first.say("\n");
    assert!(first.end().status.success());
    second.say("\n");
    let output = second.end();
    assert!(output.status.success(), "after the end of the first: {}", text(&output.stdout));
    assert_eq!(state(&spaces), before);
}

#[test]
fn nat_is_rejected_where_it_does_not_apply() {
    let dir = scratch(LINK);
    for (args, hint) in [
        (&["emulate", "net.toml", "--nat", "--attach", "eth1", "eth2"][..], "--attach"),
        (&["emulate", "net.toml", "--dns", "192.0.2.53", "--", "true"], "--nat"),
        (&["emulate", "net.toml", "--nat", "--dns", "server", "--", "true"], "--dns"),
    ] {
        let output = command(dir.path(), args).output().expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(hint), "{args:?}: {}", text(&output.stderr));
    }
    assert!(!dir.path().join("ranway-out").exists());
}

#[test]
fn root_a_name_server_that_hosts_cannot_reach_is_refused() {
    if !may() {
        return;
    }
    let (spaces, dir) = (world(), scratch(LINK));
    for address in ["127.0.0.53", "10.0.0.9"] {
        let output = start(&spaces, dir.path(), &["--dns", address, "--", "true"]).end();
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(&format!("--dns {address}: ")), "{said}");
    }
    assert!(!dir.path().join("ranway-out").exists());
}
