//! Tests of a router in the path of the hosts' packets. Tests that need root and TUN report when they are skipped.

use crate::common::{CELLS, command, emulate, flows, is_late, may, ping_times, scratch, text};
use std::fs;
use testkit::realtime::{Watch, conclusive};

/// 30 ms there and back, and 8 Mbit/s between `mid` and `b`; a second receiver `c`.
const PATH: &str = r#"
duration = "3 s"
[[links]]
name = "core"
from = "a"
to = "mid"
duplex = true
rate = "100 Mbit/s"
delay = "10 ms"
[[links]]
name = "access"
from = "mid"
to = "b"
duplex = true
rate = "8 Mbit/s"
delay = "5 ms"
queue = { kind = "drop-tail", packets = 100 }
[[links]]
name = "other"
from = "mid"
to = "c"
duplex = true
rate = "8 Mbit/s"
delay = "5 ms"
"#;

#[test]
fn root_packets_pass_the_routers_kernel_over_ipv4_and_ipv6() {
    conclusive(packets_pass_the_routers_kernel_over_ipv4_and_ipv6);
}

fn packets_pass_the_routers_kernel_over_ipv4_and_ipv6(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(PATH);
    // To the server, and from UE to UE: 42 bytes and 84 are nothing at these rates.
    for (version, host, network) in [("-4", "a", 30.0), ("-6", "a", 30.0), ("-4", "c", 20.0), ("-6", "c", 20.0)] {
        let ping = ["ping", version, "-c", "5", "-i", "0.1", host];
        let output = emulate(dir.path(), &[&["--quiet", "--router", "mid", "--"][..], &ping].concat());
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}{}", text(&output.stderr));
        if is_late(dir.path(), watch) {
            return;
        }
        let times = ping_times(&said);
        assert_eq!(times.len(), 5, "{said}");
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((network..network + 5.0).contains(&fastest), "{version} {host}: {fastest} ms");
        assert!(said.contains("ttl=63"), "one router forwarded it: {said}");
        assert!(!said.contains("Redirect"), "{said}");
    }
    let output = emulate(dir.path(), &["--quiet", "--router", "mid", "--", "ping", "-c", "1", "-t", "1", "a"]);
    assert!(text(&output.stdout).contains("From mid"), "{}", text(&output.stdout));
    let output = emulate(dir.path(), &["--quiet", "--router", "mid", "--", "ping", "-c", "3", "-i", "0.1", "mid"]);
    let times = ping_times(&text(&output.stdout));
    assert!(times.len() == 3 && times.iter().all(|&time| time >= 10.0), "the router is a host too: {times:?}");
}

#[test]
fn root_each_side_of_the_router_is_a_flow_and_commands_run_in_it() {
    conclusive(each_side_of_the_router_is_a_flow_and_commands_run_in_it);
}

fn each_side_of_the_router_is_a_flow_and_commands_run_in_it(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(PATH);
    let count = "while sleep 0.1; do grep ^Ip: /proc/net/snmp > counted; mv counted snmp; done";
    let output = emulate(
        dir.path(),
        &[
            "--router",
            "mid",
            "--at-router",
            count,
            "--",
            "sh",
            "-c",
            "sleep 0.5; curl -4so /dev/null http://server/1MB",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    if is_late(dir.path(), watch) {
        return;
    }
    assert!(!text(&output.stderr).contains("unknown destination"), "{}", text(&output.stderr));
    let flows = flows(dir.path());
    let side = |sender: &str, receiver: &str| {
        let is = |flow: &&serde_json::Value| {
            let name = flow["flow"].as_str().unwrap_or_default();
            name.starts_with(&format!("tcp {sender}:80 > {receiver}:"))
        };
        let flow = flows.iter().find(is).unwrap_or_else(|| panic!("{sender} > {receiver}: {flows:?}"));
        let number = |key: &str| flow[key]["mean"].as_f64().unwrap_or_else(|| panic!("{key}: {flow}"));
        (number("goodput_mbps"), number("owd_p50_ms"))
    };
    let ((far, far_delay), (near, near_delay)) = (side("a", "mid"), side("mid", "b"));
    assert!((4.0..7.73).contains(&near) && (far - near).abs() < 1.0, "{far}, {near} Mbit/s");
    // The queue is at the access link.
    assert!((10.0..11.0).contains(&far_delay) && near_delay > 6.0, "{far_delay}, {near_delay} ms");
    let counters = fs::read_to_string(dir.path().join("snmp")).expect("the router's command runs in its namespace");
    let [names, values] = [0, 1].map(|line| counters.lines().nth(line).expect("a line").split(' ').collect::<Vec<_>>());
    let place = names.iter().position(|&name| name == "ForwDatagrams").expect("a counter");
    let forwarded: u64 = values[place].parse().expect("a number");
    assert!(forwarded > 690, "of {} full segments: {counters}", 1_000_000 / 1448);
}

#[test]
fn root_the_kernels_flows_keep_their_names_at_the_sender() {
    conclusive(the_kernels_flows_keep_their_names_at_the_sender);
}

fn the_kernels_flows_keep_their_names_at_the_sender(watch: &mut Watch) {
    if !may() {
        return;
    }
    let dir = scratch(&format!("{PATH}[[flows]]\nname = \"download\"\nfrom = \"a\"\nto = \"b\"\n"));
    let output = emulate(dir.path(), &["--kernel", "--router", "mid"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    if is_late(dir.path(), watch) {
        return;
    }
    let flows = flows(dir.path());
    let [download, second] = &flows[..] else { panic!("{flows:?}") };
    assert_eq!(download["flow"], "download");
    assert!(second["flow"].as_str().is_some_and(|name| name.starts_with("tcp mid:")), "{second}");
    let goodput = download["goodput_mbps"]["mean"].as_f64().expect("a number");
    assert!((6.0..7.73).contains(&goodput), "{goodput} Mbit/s");
}

#[test]
fn root_a_router_is_in_front_of_the_cells_or_behind_them() {
    if !may() {
        return;
    }
    let dir = scratch(CELLS);
    let pep = ["emulate", "net.toml", "--set", "lte.pep=true", "--router", "core"];
    let output = command(dir.path(), &pep).output().expect("it starts");
    assert!(text(&output.stderr).contains("use ran"), "a PEP would not see packets: {}", text(&output.stderr));
    for node in ["core", "ran"] {
        let ping = ["--quiet", "--router", node, "--", "ping", "-c", "3", "-i", "0.2", "server"];
        let output = emulate(dir.path(), &ping);
        assert!(text(&output.stdout).contains("ttl=63"), "{node}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn root_packets_that_the_router_drops_have_arrived_at_it() {
    if !may() {
        return;
    }
    let dir = scratch(PATH);
    let send = "sleep 0.3; python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
                [s.sendto(b\"x\" * 100, (\"10.0.0.1\", 9)) for _ in range(50)]'; sleep 0.2";
    let stop = "echo 0 > /proc/sys/net/ipv4/ip_forward; exit 3";
    let output = emulate(dir.path(), &["--router", "mid", "--at-router", stop, "--", "sh", "-c", send]);
    let said = text(&output.stderr);
    assert!(said.contains("warning: the command of --at-router ended with the exit code 3"), "{said}");
    let flows = flows(dir.path());
    let names: Vec<_> = flows.iter().filter_map(|flow| flow["flow"].as_str()).collect();
    assert!(names.len() == 1 && names[0].starts_with("udp b:") && names[0].ends_with("> mid:9"), "{names:?}");
}

#[test]
fn a_router_must_be_a_node_between_the_hosts() {
    let dir = scratch(&format!("{PATH}[[flows]]\nfrom = \"a\"\nto = \"b\"\n"));
    for (args, hint) in [
        (&["--router", "mit"][..], "use mid"),
        (&["--router", "a"], "use mid"),
        (&["--at-router", "true"], "--router"),
        (&["--router", "mid", "--attach", "x", "y"], "--attach"),
    ] {
        let output = command(dir.path(), &[&["emulate", "net.toml"], args].concat()).output().expect("it starts");
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(hint), "{args:?}: {said}");
    }
    assert!(!dir.path().join("ranway-out").exists());
}
