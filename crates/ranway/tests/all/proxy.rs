//! End-to-end tests of `ranway proxy`: a UE, a router that runs the proxy, and a server. Tests that need root report when they
//! are skipped.

use crate::common::proxied::*;
use crate::common::spaces::ip;
use crate::common::text;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use services::proxy::Status;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, conclusive};

#[test]
fn root_addresses_and_ports_are_kept_whichever_side_opens_over_ipv4_and_ipv6() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--from-servers"]);
    for (n, (from, to, client, server)) in
        [(UE, SERVER, UES, SERVERS), (SERVER, UE, SERVERS, UES)].into_iter().enumerate()
    {
        for family in 0..2 {
            let listener = net.listen(to, server[family]);
            let address = listener.local_addr().expect("an address");
            let mut one = net.connect(from, address);
            let mut other = accept(&listener);
            let peer = other.peer_addr().expect("connected");
            assert_eq!(peer, one.local_addr().expect("an address"));
            assert_eq!(peer.ip().to_string(), client[family]);
            assert_eq!(one.peer_addr().expect("an address"), other.local_addr().expect("an address"));
            exchange(&mut one, &mut other);
            let acknowledged = |status: &Status| status.connections.iter().all(|flow| flow.delivered == 16);
            let status = net.until("all is acknowledged", acknowledged);
            let [flow] = &status.connections[..] else { panic!("{status:?}") };
            let (ue, server) = if from == UE { (peer, address) } else { (address, peer) };
            assert_eq!((flow.ue, flow.peer, flow.from_ue, flow.established), (ue, server, from == UE, true));
            assert_eq!((flow.arrived, flow.delivered, flow.from_ue_bytes), (16, 16, 16));
            assert_eq!(status.totals.established, n as u64 * 2 + family as u64 + 1);
            drop((one, other));
            net.until("it has ended", |status| status.totals.open == 0);
        }
    }
    let totals = net.status().totals;
    assert_eq!((totals.from_ue, totals.from_wan, totals.closed, totals.other_port), (2, 2, 4, 0), "{totals:?}");
}

#[test]
fn root_one_direction_goes_on_after_the_other_has_ended() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    for opener_ends in [true, false] {
        let (client, server) = net.pair(&listener);
        let (mut first, mut second) = if opener_ends { (client, server) } else { (server, client) };
        first.write_all(b"the last").expect("it is open");
        first.shutdown(Shutdown::Write).expect("it is open");
        let mut said = String::new();
        second.read_to_string(&mut said).expect("an end");
        assert_eq!(said, "the last");
        let much: Vec<u8> = (0..3_000_000).map(|n| byte(n, 1)).collect();
        let mut received = Vec::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                second.write_all(&much).expect("it is open");
                second.shutdown(Shutdown::Write).expect("it is open");
            });
            first.read_to_end(&mut received).expect("an end");
        });
        assert!(received == much);
    }
    let status = net.until("both have ended", |status| status.totals.open == 0);
    assert_eq!((status.totals.closed, status.totals.reset), (2, 0));
}

#[test]
fn root_a_reset_reaches_the_other_side() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[1]);
    for by_opener in [true, false] {
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        let (gone, mut left) = if by_opener { (client, server) } else { (server, client) };
        reset(gone);
        assert_eq!(ending(&mut left), Some(ErrorKind::ConnectionReset));
    }
    let status = net.until("both have ended", |status| status.totals.open == 0);
    assert_eq!((status.totals.closed, status.totals.reset), (0, 2));
}

/// Hosts beyond the server whose packets vanish, and those that no host answers for.
fn absent_hosts(net: &Net) {
    ip(&format!("-n {} route add blackhole 10.3.0.0/24", net.space(SERVER)));
    ip(&format!("-n {} route add 10.3.0.0/24 via 10.2.0.2", net.space(ROUTER)));
}

#[test]
fn root_a_client_learns_what_its_server_answers() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--connect-timeout", "1 s"]);
    for server in SERVERS {
        let listener = net.listen(SERVER, server);
        let refusing = listener.local_addr().expect("an address");
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        drop(listener);
        let start = Instant::now();
        assert_eq!(net.fate(refusing), Some(ErrorKind::ConnectionRefused));
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    }
    absent_hosts(&net);
    // The router says that nobody has this address, and nobody says anything of the other.
    assert_eq!(net.fate("10.2.0.99:80".parse().expect("an address")), Some(ErrorKind::HostUnreachable));
    let connects = |to: &str| {
        net.inside(UE, || TcpStream::connect_timeout(&to.parse().expect("an address"), Duration::from_secs(3)))
    };
    assert_eq!(connects("10.3.0.1:80").map(drop).map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
    let is_over = |status: &Status| status.totals.connect_failed + status.totals.connect_timeouts >= 4;
    let totals = net.until("all have failed", is_over).totals;
    // IPv6 takes a moment to check its addresses.
    assert!(totals.half_open == 0 && totals.established >= 1, "{totals:?}");
    assert!(totals.connect_failed >= 2 && totals.connect_timeouts >= 1, "{totals:?}");
    // A server that is slow to come is reached without the proxy.
    ip(&format!("-n {} route del blackhole 10.3.0.0/24", net.space(SERVER)));
    ip(&format!("-n {} addr add 10.3.0.1/32 dev lo", net.space(SERVER)));
    let listener = net.listen(SERVER, "10.3.0.1");
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
}

#[test]
fn root_a_client_that_was_accepted_early_is_reset_if_the_server_refuses_or_does_not_answer() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--connect-timeout", "1 s", "--early-accept", "1-65535"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    let refusing = listener.local_addr().expect("an address");
    drop(listener);
    assert_eq!(net.fate(refusing), Some(ErrorKind::ConnectionReset));
    absent_hosts(&net);
    for silent in ["10.2.0.99:80", "10.3.0.1:80"] {
        let start = Instant::now();
        assert_eq!(net.fate(silent.parse().expect("an address")), Some(ErrorKind::ConnectionReset));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    let totals = net.status().totals;
    assert_eq!((totals.connect_failed + totals.connect_timeouts, totals.established, totals.open), (3, 1, 1));
    assert!(totals.connect_failed >= 1 && totals.connect_timeouts >= 1, "{totals:?}");
}

#[test]
fn root_a_killed_proxy_resets_both_sides_lets_new_connections_pass_and_leaves_nothing() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let listener = net.listen(SERVER, SERVERS[0]);
    for signal in [Signal::SIGKILL, Signal::SIGABRT, Signal::SIGTERM] {
        let proxy = net.proxy(&[]);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        // Others cannot remove the table.
        let said = net.on_router("sh", &["-c", "nft flush ruleset; nft list tables"]);
        assert!(said.contains("ranway_proxy"), "{said}");
        exchange(&mut client, &mut server);
        proxy.end(signal);
        // A FIN would say that this was all.
        assert_eq!(ending(&mut client), Some(ErrorKind::ConnectionReset), "{signal}");
        assert_eq!(ending(&mut server), Some(ErrorKind::ConnectionReset), "{signal}");
        net.is_clean_again(&before);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
    }
}

#[test]
fn root_a_killed_proxy_with_bytes_to_deliver_resets_those_who_wait_for_them() {
    const COUNT: u64 = 190_000;
    let Some(net) = Net::new() else { return };
    let listeners = SERVERS.map(|server| net.listen(SERVER, server));
    let bytes: Vec<u8> = (0..COUNT).map(|at| byte(at, 5)).collect();
    // In its pipes, and in its sockets: then the end is there as well.
    for unsent in ["32 KiB", "1 MiB"] {
        let proxy = net.proxy(&["--unsent", unsent]);
        let mut pairs = Vec::new();
        for case in 0..12 {
            let (client, server) = net.pair(&listeners[case % 2]);
            let (mut writer, reader) = if case % 4 < 2 { (client, server) } else { (server, client) };
            writer.write_all(&bytes).expect("there is room");
            // Neither side has ended, or the writer has, or both.
            for side in [&writer, &reader].into_iter().take(case / 4) {
                side.shutdown(Shutdown::Write).expect("it is open");
            }
            pairs.push((case, writer, reader));
        }
        net.until("it has taken all", |status| {
            // The kernel counts an end as a byte.
            status.connections.iter().all(|one| one.arrived.max(one.from_ue_bytes) >= COUNT)
        });
        proxy.end(Signal::SIGKILL);
        for (case, mut writer, mut reader) in pairs {
            let mut read = Vec::new();
            let end = reader.read_to_end(&mut read).map_err(|error| error.kind());
            assert_eq!(end, Err(ErrorKind::ConnectionReset), "unsent {unsent}, case {case}: {} bytes", read.len());
            assert!(read.len() < bytes.len() && bytes.starts_with(&read), "{} bytes", read.len());
            if case < 4 {
                assert_eq!(ending(&mut writer), Some(ErrorKind::ConnectionReset), "unsent {unsent}, case {case}");
            }
        }
    }
}

#[test]
fn root_a_proxy_starts_right_after_another_one_was_killed() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let mut proxy = net.proxy(&[]);
    for _ in 0..5 {
        proxy.end(Signal::SIGKILL);
        proxy = net.proxy(&[]);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        net.until("it is split", |status| status.totals.established == 1);
    }
}

#[test]
fn root_a_rule_or_route_that_somebody_removes_is_added_again() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&[]);
    let (mut client, mut server) = net.pair(&listener);
    let rules = net.traces();
    let table = net.on_router("sh", &["-c", "ip rule | sed -n 's/^99:.*lookup //p'"]);
    for command in ["ip rule del pref 99", &format!("ip route flush table {}", table.trim()), "ip -6 rule del pref 99"]
    {
        net.on_router("sh", &["-c", command]);
        let start = Instant::now();
        while net.traces() != rules {
            assert!(start.elapsed() < TEST_TIMEOUT, "{command}: {}", net.traces());
            thread::sleep(Duration::from_millis(50));
        }
        exchange(&mut client, &mut server);
    }
}

#[test]
fn root_new_connections_bypass_a_stopped_proxy_and_it_goes_on_when_it_continues() {
    conclusive(new_connections_bypass_a_stopped_proxy_and_it_goes_on_when_it_continues);
}

fn new_connections_bypass_a_stopped_proxy_and_it_goes_on_when_it_continues(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut old, mut old_server) = net.pair(&listener);
    exchange(&mut old, &mut old_server);
    kill(proxy.pid(), Signal::SIGSTOP).expect("it runs");
    thread::sleep(Duration::from_millis(1_000));
    for _ in 0..3 {
        let start = Instant::now();
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    }
    kill(proxy.pid(), Signal::SIGCONT).expect("it runs");
    exchange(&mut old, &mut old_server);
    let status = net.until("it listens", |status| status.accepting && status.totals.open == 1);
    assert_eq!(status.totals.from_ue, 1);
    let start = Instant::now();
    while net.status().totals.from_ue == 1 {
        assert!(start.elapsed() < Duration::from_secs(3), "it does not listen again");
        // Those of the transition may go either way.
        let address = listener.local_addr().expect("it is bound");
        let _ = net.inside(UE, || TcpStream::connect_timeout(&address, TEST_TIMEOUT));
    }
}

#[test]
fn root_clients_that_wait_for_a_proxy_that_stands_still_are_reset_and_new_ones_pass() {
    let Some(net) = Net::new() else { return };
    let proxy = net.proxy(&["--threads", "2"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let to = listener.local_addr().expect("an address");
    // The client takes its connection for established; its acknowledgement arrives when the proxy stands still.
    let rule = format!("tcp dport {} tcp flags & (syn | ack) == ack drop", to.port());
    let late =
        "add table inet late; add chain inet late out { type filter hook output priority 0; }; add rule inet late out";
    net.nft(UE, &format!("{late} {rule}"));
    let mut waiting = net.connect(UE, to);
    let _server = accept(&listener);
    kill(proxy.pid(), Signal::SIGSTOP).expect("it runs");
    net.nft(UE, "delete table inet late");
    waiting.write_all(b"question").expect("it is open");
    // Those whose SYN is held when it stops send it again after a second.
    for _ in 0..3 {
        let start = Instant::now();
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        assert!(start.elapsed() < Duration::from_millis(2_500), "{:?}", start.elapsed());
    }
    assert_eq!(ending(&mut waiting), Some(ErrorKind::ConnectionReset));
    kill(proxy.pid(), Signal::SIGCONT).expect("it runs");
    net.until("it goes on", |status| status.accepting);
    net.await_lease(true);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    net.until("it is split", |status| status.totals.from_ue == 1);
}

#[test]
fn root_new_connections_bypass_a_full_proxy_until_a_tenth_has_ended() {
    let Some(net) = Net::new() else { return };
    let _proxy =
        net.proxy(&["--max-connections", "20", "--max-per-ue", "20", "--max-per-server", "20", "--threads", "2"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let mut all: Vec<_> = (0..20).map(|_| net.pair(&listener)).collect();
    net.until("it is full", |status| !status.accepting && status.totals.open == 20);
    all.extend((0..10).map(|_| net.pair(&listener)));
    all.iter_mut().for_each(|(client, server)| exchange(client, server));
    let status = net.status();
    assert_eq!((status.totals.open, status.totals.overloads), (20, 1));
    all.drain(..5);
    net.until("it has room", |status| status.accepting && status.totals.open == 15);
    net.await_lease(true);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    assert_eq!(net.status().totals.open, 16);
}

#[test]
fn root_what_cannot_work_is_one_line_and_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let _busy = net.inside(ROUTER, || TcpListener::bind("127.0.0.1:7000").expect("a free port"));
    let before = net.traces();
    for (args, why) in [
        (&["--wan", "none0", "--ran", "ran"][..], "error: there is no interface `none0`"),
        (&["--wan", "ran", "--ran", "ran"], "error: `ran` and `ran` are one interface, and two are needed"),
        (&["--wan", "wan", "--ran", "lo"], "error: `lo` has no connections that pass through this machine"),
        (
            &["--wan", "wan", "--ran", "ran", "--port", "7000"],
            "error: port 7000 is in use: choose another one with --port",
        ),
        (
            &["--wan", "wan", "--ran", "ran", "--metrics", "127.0.0.1:7000"],
            "error: metrics cannot be served at 127.0.0.1:7000: Address already in use (os error 98): choose another \
             address with --metrics",
        ),
        (&["--wan", "wan", "--ran", "ran", "--buffer", "1 kB"], "error: the buffer must be between 32 KiB and 64 MiB"),
    ] {
        let output = net.fails(args);
        assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(2), why), "{args:?}");
        assert_eq!(net.traces(), before, "{args:?}");
    }
    let output = net.fails(&["status"]);
    let why = "error: no proxy runs in this network namespace";
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(1), why));
    // Without privileges.
    let mut command = net.command(ROUTER, "setpriv");
    command.args(["--bounding-set", "-net_admin", "--inh-caps", "-net_admin", "--"]);
    let output = command.arg(env!("CARGO_BIN_EXE_ranway")).args(["proxy", "--wan", "wan", "--ran", "ran"]).output();
    let output = output.expect("setpriv is part of util-linux");
    let why = "error: a transparent proxy needs root (CAP_NET_ADMIN, CAP_NET_RAW and CAP_NET_BIND_SERVICE): use sudo";
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(2), why));
    assert_eq!(net.traces(), before);
}

#[test]
fn root_an_interface_may_be_given_by_an_alternative_name() {
    let Some(net) = Net::new() else { return };
    for (interface, name) in [("wan", "to-the-servers"), ("ran", "to-the-phones")] {
        ip(&format!("-n {} link property add dev {interface} altname {name}", net.space(ROUTER)));
    }
    let output = net.fails(&["--wan", "ran", "--ran", "to-the-phones"]);
    let why = "error: `ran` and `ran` are one interface, and two are needed";
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(2), why));
    let args = ["proxy", "--wan", "to-the-servers", "--ran", "to-the-phones", "--drain", "300 ms"];
    let _proxy = Running(Some(net.start(ROUTER, &args)));
    net.until("it accepts", |status| status.accepting);
    net.await_lease(true);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    for name in ["ran", "to-the-phones"] {
        let said = net.on_router(env!("CARGO_BIN_EXE_ranway"), &["proxy", "status", "--ran", name]);
        assert!(said.starts_with("1 connections, 0 half-open; new connections are split"), "{name}: {said}");
    }
}

#[test]
fn root_two_proxies_do_not_share_an_interface() {
    let Some(net) = Net::new() else { return };
    let proxy = net.proxy(&[]);
    let before = net.traces();
    let output = net.fails(&["--wan", "wan", "--ran", "ran", "--port", "5081"]);
    let why = format!(
        "error: `wan` is in use: process {} already proxies its connections; --take-over replaces that",
        proxy.pid()
    );
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(2), why.as_str()));
    assert_eq!(net.traces(), before);
}

#[test]
fn root_connections_to_the_router_and_of_other_ports_are_not_touched() {
    let Some(net) = Net::new() else { return };
    let here = net.listen(ROUTER, "10.1.0.1");
    let listener = net.listen(SERVER, SERVERS[0]);
    let port = listener.local_addr().expect("an address").port().to_string();
    let other = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&["--ports", &port]);
    for listener in [&here, &other] {
        let (mut client, mut server) = net.pair(listener);
        exchange(&mut client, &mut server);
    }
    assert_eq!(net.status().totals.from_ue, 0);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    assert_eq!(net.status().totals.from_ue, 1);
    // The proxy's own port is nobody's.
    let own: SocketAddr = "127.0.0.1:5080".parse().expect("an address");
    let limit = Duration::from_millis(500);
    let own = net.inside(ROUTER, || TcpStream::connect_timeout(&own, limit).map(drop).map_err(|error| error.kind()));
    assert_eq!(own, Err(ErrorKind::TimedOut));
}

#[test]
fn root_metrics_are_served_to_prometheus() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--metrics", "127.0.0.1:9180"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    let said = net.on_router("curl", &["-s", "http://127.0.0.1:9180/metrics"]);
    for line in ["ranway_proxy_connections 1", "ranway_proxy_bytes_total{to=\"ran\"} 16", "ranway_proxy_accepting 1"] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    let table = net.on_router(env!("CARGO_BIN_EXE_ranway"), &["proxy", "status"]);
    assert!(
        table.contains("1 connections, 0 half-open; new connections are split") && table.contains("10.1.0.2"),
        "{table}"
    );
}

/// The processes that a proxy has started: the guardian and `nft`.
fn helpers(of: Pid) -> Vec<Pid> {
    let output = Command::new("pgrep").args(["-P", &of.to_string()]).output().expect("pgrep is there");
    text(&output.stdout).lines().map(|line| Pid::from_raw(line.parse().expect("a number"))).collect()
}

#[test]
fn root_signals_to_all_of_its_processes_end_it_in_order() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let listener = net.listen(SERVER, SERVERS[0]);
    let proxy = net.proxy(&["--drain", "20 s"]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    let helpers = helpers(proxy.pid());
    assert_eq!(helpers.len(), 2);
    for pid in helpers.into_iter().chain([proxy.pid()]) {
        kill(pid, Signal::SIGTERM).expect("it runs");
    }
    thread::sleep(Duration::from_millis(500));
    // It waits for the old connection, and new ones bypass it.
    exchange(&mut client, &mut server);
    let (mut new, mut new_server) = net.pair(&listener);
    exchange(&mut new, &mut new_server);
    assert_eq!((net.status().totals.from_ue, net.status().accepting), (1, false));
    drop(client);
    assert_eq!(ending(&mut server), None);
    drop(server);
    net.is_clean_again(&before);
    exchange(&mut new, &mut new_server);
}

#[test]
fn root_a_killed_guardian_is_replaced() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let proxy = net.proxy(&[]);
    let old = helpers(proxy.pid());
    // The first that was started.
    kill(old[0], Signal::SIGKILL).expect("it runs");
    let start = Instant::now();
    while helpers(proxy.pid()).len() != 2 || helpers(proxy.pid()) == old {
        assert!(start.elapsed() < Duration::from_secs(3), "there is no new one");
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(200));
    proxy.end(Signal::SIGKILL);
    net.is_clean_again(&before);
}

#[test]
fn root_a_proxy_ends_with_its_interface_and_leaves_nothing_else() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let mut proxy = net.proxy(&[]);
    let (_client, mut server) = net.pair(&listener);
    ip(&format!("-n {} link delete ran", net.space(ROUTER)));
    let mut child = proxy.0.take().expect("it runs");
    assert_eq!(child.ends().code(), Some(1));
    assert_eq!(ending(&mut server), Some(ErrorKind::ConnectionReset));
    let traces = net.traces();
    assert!(!traces.contains("ranway") && !traces.contains("fwmark") && !traces.contains(":5080"), "{traces}");
}

#[test]
fn root_it_runs_as_any_user_with_the_capabilities_of_its_service() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    // Where it may be read by others.
    let place = net.dir.path().join("ranway");
    fs::copy(env!("CARGO_BIN_EXE_ranway"), &place).expect("it is copied");
    fs::set_permissions(net.dir.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ranway-proxy.service");
    let unit = fs::read_to_string(unit).expect("it is there");
    let setting = |name: &str| {
        let mut values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix("=CAP_"));
        values.next().expect("it is set").to_lowercase()
    };
    let of_unit = setting("AmbientCapabilities");
    assert_eq!(of_unit, setting("CapabilityBoundingSet"));
    // Root may lack some in a container.
    let has = |name: &&str| {
        let name = format!("+{name}");
        let try_it = ["--inh-caps", &name, "--ambient-caps", &name, "true"];
        let has = Command::new("setpriv").args(try_it).output().expect("it starts").status.success();
        if !has {
            println!("root has no {name} here");
        }
        has
    };
    let all: Vec<&str> = of_unit.split(" cap_").filter(has).collect();
    let some = all.iter().copied().filter(|name| !["bpf", "perfmon"].contains(name)).collect();
    // Without these two, RAPID has no windows.
    for (names, may_load) in [(all, ebpf::rapid::check().is_ok()), (some, false)] {
        let capabilities = format!("-all,+{}", names.join(",+"));
        let mut command = net.command(ROUTER, "setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"]);
        for set in ["--bounding-set", "--inh-caps", "--ambient-caps"] {
            command.args([set, &capabilities]);
        }
        command.arg("--").arg(&place).args(["proxy", "--wan", "wan", "--ran", "ran", "--max-connections", "500"]);
        command.args(["--reports", "recording:-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (_reports, mut stderr) = (child.stdin.take(), child.stderr.take().expect("it is piped"));
        let control = format!("rapid{}", child.id());
        let running = Running(Some(child));
        net.until("it listens", |status| status.accepting);
        let listener = net.listen(SERVER, SERVERS[0]);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        assert_eq!(net.status().totals.established, 1);
        let has_windows = || {
            let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            names.expect("it can be read").split_whitespace().any(|name| name == control)
        };
        let loaded = has_windows();
        running.end(Signal::SIGKILL);
        net.is_clean_again(&before);
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("it is text");
        let refused = said.contains("warning: RAPID sets no congestion windows towards UEs, only rates: ");
        // A kernel that takes no congestion control from a program refuses it to root as well.
        assert_eq!((loaded, refused), (may_load, !may_load), "{said}");
        let start = Instant::now();
        while has_windows() {
            assert!(start.elapsed() < Duration::from_secs(3), "{control} is still there");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn root_a_flood_from_forged_addresses_costs_nobody_a_connection_and_known_ues_not_even_the_proxy() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--threads", "2", "--from-servers"]);
    let listeners = SERVERS.map(|server| net.listen(SERVER, server));
    let at_ue = net.listen(UE, UES[0]);
    let flooded = net.listen(SERVER, SERVERS[0]);
    let answering = flooded.local_addr().expect("an address");
    // A first connection, over IPv4: this UE is known.
    let (mut client, mut server) = net.pair(&listeners[0]);
    exchange(&mut client, &mut server);
    // IPv6 takes a moment to check its addresses.
    drop(net.pair(&listeners[1]));
    // The server's own queue must not fill.
    for (to, count) in [(answering, 3_000), (SocketAddr::new(answering.ip(), 9), 10_000)] {
        half_open(&net, count, to);
        let before = net.status().totals;
        for n in 0..10 {
            let start = Instant::now();
            let (mut client, mut server) = net.pair(&listeners[n % 2]);
            exchange(&mut client, &mut server);
            assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
            let mut client = net.connect(SERVER, at_ue.local_addr().expect("an address"));
            exchange(&mut client, &mut accept(&at_ue));
        }
        let after = net.status().totals;
        // Those over IPv4 are split, and what the other side opens.
        assert!(after.from_ue - before.from_ue >= 5, "{before:?} {after:?}");
        assert_eq!(after.from_wan - before.from_wan, 10, "{before:?} {after:?}");
    }
    let status = net.status();
    assert!(status.accepting && status.totals.overloads == 0, "{status:?}");
}

#[test]
fn root_a_flood_from_forged_addresses_opens_few_connections_at_its_server() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let flooded = net.listen(SERVER, SERVERS[0]);
    let to = flooded.local_addr().expect("an address");
    let (mut client, mut server) = net.pair(&flooded);
    exchange(&mut client, &mut server);
    let at_server = || {
        let shown = net.command(SERVER, "ss").args(["-Htn", "state", "established", "dst", "10.66.0.0/16"]).output();
        text(&shown.expect("ss runs").stdout).lines().count()
    };
    let start = Instant::now();
    let (mut first, mut later) = (0, 0);
    for n in 0_u32.. {
        net.forge(to, |forger| {
            for of in 0..100 {
                let [_, _, c, d] = (100 * n + of).to_be_bytes();
                forger.send(forger.segment([10, 66, c, d], 1).syn(), &[]);
            }
        });
        match start.elapsed().as_secs() {
            0..3 => first = at_server().max(first),
            // The first ones are given up after 5 s.
            8..10 => later = at_server().max(later),
            10.. => break,
            _ => {}
        }
        thread::sleep(Duration::from_millis(100));
    }
    println!("{first} at first, {later} later");
    // Between sweeps, which end them each second, some more may be there that have ended.
    assert!(first <= 125 && later <= 16, "{first}, {later}");
    // A client that is known is split, and so is one at another server.
    for (server, split) in [(to, 2), (net.listen(SERVER, SERVERS[1]).local_addr().expect("an address"), 3)] {
        let _client = net.connect(UE, server);
        net.until("it is split", |status| status.totals.open == split);
    }
}

#[test]
fn root_a_ue_with_too_many_connections_is_alone_in_bypassing_the_proxy() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--max-per-ue", "20", "--max-half-open-per-ue", "30"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let other = net.listen(SERVER, SERVERS[1]);
    let greedy: Vec<_> = (0..30).map(|_| net.pair(&listener)).collect();
    let totals = net.status().totals;
    assert_eq!((totals.open, totals.bypassed.get(&services::proxy::Reason::Ue)), (20, Some(&10)), "{totals:?}");
    // This address is another UE's, as far as the proxy knows.
    let (mut client, mut server) = net.pair(&other);
    exchange(&mut client, &mut server);
    assert_eq!(net.status().totals.open, 21);
    drop(greedy);
    net.until("they have ended", |status| status.totals.open == 1);
    let _pair = net.pair(&listener);
    assert_eq!(net.status().totals.open, 2);
}

#[test]
fn root_connections_to_absent_hosts_keep_nobody_from_the_proxy() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    absent_hosts(&net);
    let listeners = SERVERS.map(|server| net.listen(SERVER, server));
    let begin = |n: u16| {
        let to = SocketAddr::from(([10, 3, 0, n as u8], 80 + n / 256));
        netio::socket::begin_connection(netio::socket::stream_through(to, None).expect("there is room"), to)
    };
    let _waiting: Vec<_> = net.inside(UE, || (0..800).map(begin).collect());
    for listener in &listeners {
        let (mut client, mut server) = net.pair(listener);
        exchange(&mut client, &mut server);
    }
    let totals = net.status().totals;
    // The other family is another UE, whose SYN may have been repeated: one that comes late is one more.
    assert!(totals.established >= 1 && totals.half_open <= 201, "{totals:?}");
}

/// Sends the first packets of connections from as many addresses.
fn half_open(net: &Net, count: u32, to: SocketAddr) {
    net.forge(to, |forger| {
        for n in 0..count {
            forger.send(forger.segment([10, 66, (n >> 8) as u8, n as u8], 1).syn(), &[]);
        }
    });
}
