//! Tests of `ranway measure` between hosts with interfaces of their own. Tests that need root report when they are skipped.

use crate::common::spaces::{Spaces, ip, own_mounts};
use crate::common::{may, text};
use serde_json::Value;
use std::process::{Command, Output};

const RANWAY: &str = env!("CARGO_BIN_EXE_ranway");
/// The page of the documentation.
const PAGE: &str = include_str!("../../../../docs/src/measure.md");
const README: &str = include_str!("../../../../README.md");

const CLIENT: &str = "c";
const SERVER: &str = "s";

/// The commands of the page that measure between two hosts: the server's and the client's.
fn pairs() -> Vec<[&'static str; 2]> {
    let blocks = PAGE.split("```console\n").filter(|block| block.starts_with("$ ranway measure serve "));
    let commands = |block: &'static str| block.lines().map_while(|line| line.strip_prefix("$ ")).collect::<Vec<_>>();
    blocks.map(|block| <[&str; 2]>::try_from(commands(block)).expect("one command on each side")).collect()
}

/// The arguments of a command, without the quotes for a shell.
fn arguments(command: &str) -> Vec<&str> {
    let arguments = command.strip_prefix("ranway ").expect("it is ours");
    arguments.split_whitespace().map(|word| word.trim_matches('\'')).collect()
}

/// Makes hosts of these names whose loopback interfaces are up.
fn hosts(names: &[&str]) -> Spaces {
    own_mounts(&[]);
    let net = Spaces::new(names);
    for host in names {
        ip(&format!("-n {} link set dev lo up", net.space(host)));
    }
    net
}

/// Runs a client for a short time.
fn measure(net: &Spaces, arguments: &[&str]) -> Output {
    let short = ["--json", "-t", "1s", "--flows", "1", "--idle", "300ms", "-o", "measured"];
    net.command(CLIENT, RANWAY).args(arguments).args(short).output().expect("it starts")
}

#[test]
fn root_the_documented_commands_measure_between_two_hosts() {
    if !may() {
        return;
    }
    let mut net = hosts(&[CLIENT, SERVER]);
    net.join((CLIENT, "c0", &["192.168.1.3/24", "192.0.2.3/24"]), (SERVER, "s0", &["192.168.1.2/24", "192.0.2.1/24"]));
    let pairs = pairs();
    assert_eq!(pairs.len(), 2, "in a private network, and over the Internet");
    for (number, [serve, client]) in pairs.into_iter().enumerate() {
        let server = net.start(SERVER, &arguments(serve));
        net.running.push(server);
        let output = measure(&net, &arguments(client));
        assert!(output.status.success(), "{client}: {}", text(&output.stderr));
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let bytes = |load: usize| results["loads"][load]["directions"][0]["bytes"].as_u64();
        assert!(bytes(0) > Some(100_000) && bytes(1) > Some(100_000), "{client}: {results}");
        // Without a token, clients elsewhere are refused by both servers.
        let output = measure(&net, &["measure", "192.0.2.1"]);
        let said = text(&output.stderr);
        let why = ["this server is for private networks", "the server refuses the measurement: "][number];
        assert!(output.status.code() == Some(1) && said.contains(why), "{serve}: {said}");
        net.end_running();
    }
    // Without an address it serves its own host alone, and the client is told what is missing.
    let server = net.start(SERVER, &["measure", "serve", "--open"]);
    net.running.push(server);
    let output = measure(&net, &["measure", "192.168.1.2"]);
    let expected = "error: 192.168.1.2: no server at 192.168.1.2:5231: Connection refused (os error 111); `ranway measure serve` \
                    needs --listen to be reached\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected.to_owned()));
}

#[test]
fn the_help_and_the_readme_have_the_documented_commands() {
    let output = Command::new(RANWAY).args(["measure", "--help"]).output().expect("it starts");
    let help = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for command in pairs().as_flattened() {
        assert!(help.contains(command), "{command}: {help}");
    }
    for command in pairs()[0] {
        assert!(README.contains(&format!("$ {command}\n")), "{command}");
    }
}

/// The packets that an interface of the client has sent.
fn sent(net: &Spaces, interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/tx_packets");
    let output = net.command(CLIENT, "cat").arg(file).output().expect("cat");
    text(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

#[test]
fn root_everything_passes_the_chosen_interface() {
    if !may() {
        return;
    }
    let mut net = hosts(&[CLIENT, SERVER]);
    net.join((CLIENT, "c0", &["10.5.0.2/24"]), (SERVER, "s0", &["10.5.0.1/24"]));
    net.join((CLIENT, "c1", &["10.6.0.2/24"]), (SERVER, "s1", &["10.6.0.1/24"]));
    // The server is behind both; the route is the first.
    ip(&format!("-n {} addr add 10.9.0.1/32 dev lo", net.space(SERVER)));
    ip(&format!("-n {} route add 10.9.0.1 via 10.5.0.1 dev c0 metric 10", net.space(CLIENT)));
    ip(&format!("-n {} route add 10.9.0.1 via 10.6.0.1 dev c1 metric 20", net.space(CLIENT)));
    let accept = "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done";
    assert!(net.command(CLIENT, "sh").args(["-c", accept]).status().expect("sh").success());
    // Tokens are for the address of the interface, too.
    let serve = ["measure", "serve", "--listen", "[::]:5231", "--control", "--require-v2", "--self-signed"];
    let server = net.start(SERVER, &serve);
    net.running.push(server);
    let tls = ["--interface", "c1", "--tls", "--insecure"];
    for (chosen, options) in [("c0", &[][..]), ("c1", &tls[..2]), ("c1", &tls[..])] {
        let before = ["c0", "c1"].map(|interface| sent(&net, interface));
        let common = ["measure", "10.9.0.1", "--control", "http://10.9.0.1:5231", "-d", "up", "--pcap", "up.pcapng"];
        let output = measure(&net, &[&common[..], options].concat());
        assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
        let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let [c0, c1] = [("c0", before[0]), ("c1", before[1])].map(|(name, before)| sent(&net, name) - before);
        let (there, elsewhere) = if chosen == "c0" { (c0, c1) } else { (c1, c0) };
        // Interfaces have something to say of themselves, to routers and neighbours.
        assert!(there > 300 && elsewhere < 20, "{options:?}: {there} on {chosen}, {elsewhere} elsewhere");
        let load = &results["loads"][0];
        assert!(load["directions"][0]["bytes"].as_u64() > Some(1_000_000), "{results}");
        assert_eq!(load["rtt_ms"]["probe"], "echo", "{results}");
        assert!(results["capture"]["packets"].as_u64() > Some(100), "{results}");
    }
    let output = measure(&net, &["measure", "10.9.0.1", "--interface", "nosuch0"]);
    let said = text(&output.stderr);
    assert!(said.starts_with("error: --interface: there is no interface `nosuch0`; there are lo, "), "{said}");
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
}
