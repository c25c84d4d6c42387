//! End-to-end tests of `ranway proxy` where something around it is amiss: readers that stand still, guardians that were stopped,
//! strangers with its names, too few descriptors. Tests that need root report when they are skipped.

use crate::common::proxied::*;
use crate::common::spaces::ip;
use crate::common::text;
use netio::reservation::{Reservation, Role};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, pipe, write};
use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;

/// A full pipe: the end that is read, and the end that takes nothing more and waits.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (read, written) = pipe().expect("there is room");
    fcntl(&written, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("it is a pipe");
    while write(&written, &[b'\n'; 512]).is_ok() {}
    fcntl(&written, FcntlArg::F_SETFL(OFlag::empty())).expect("it is a pipe");
    (read, written)
}

/// A proxy that accepts connections, and what it says.
fn audible(net: &Net) -> (Running, ChildStderr) {
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--wan", "wan", "--ran", "ran", "--drain", "100 ms"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let stderr = child.stderr.take().expect("it is piped");
    let proxy = Running(Some(child));
    net.until("it accepts", |status| status.accepting);
    (proxy, stderr)
}

/// Waits for the end of a process. Returns whether it came in this time.
fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if child.try_wait().expect("it is ours").is_some() {
            return true;
        }
        thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Returns the guardian of a proxy.
fn guardian(proxy: Pid) -> Pid {
    child_of(proxy, "proxy-guardian").expect("it has a guardian")
}

/// Returns the process of a proxy whose command line contains a word.
fn child_of(proxy: Pid, word: &str) -> Option<Pid> {
    let of = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse::<i32>().ok())?;
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        (parent == proxy.as_raw() && command.contains(word)).then(|| Pid::from_raw(pid))
    };
    let all = fs::read_dir("/proc").expect("there are processes").flatten();
    let mut numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find_map(of)
}

#[test]
fn root_a_reader_of_its_output_that_stands_still_does_not_keep_the_proxy_from_ending() {
    let Some(net) = Net::new() else { return };
    let (before, listener) = (net.traces(), net.listen(SERVER, SERVERS[0]));
    let [(_one, stdout), (_other, stderr)] = [full_pipe(), full_pipe()];
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--wan", "wan", "--ran", "ran", "--drain", "300 ms", "--json"]);
    let mut running = Running(Some(command.stdout(stdout).stderr(stderr).spawn().expect("it starts")));
    net.until("it accepts", |status| status.accepting);
    // It says something each second, and goes on.
    thread::sleep(Duration::from_millis(2500));
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    net.until("it is split", |status| status.totals.established == 1);
    kill(running.pid(), Signal::SIGTERM).expect("it runs");
    let child = running.0.as_mut().expect("it runs");
    assert!(ends_within(child, Duration::from_secs(10)), "it waits for a reader");
    assert!(child.ends().success());
    net.is_clean_again(&before);
}

#[test]
fn root_a_proxy_whose_guardian_is_stopped_ends_and_leaves_nothing() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let mut running = net.proxy(&[]);
    kill(guardian(running.pid()), Signal::SIGSTOP).expect("it runs");
    kill(running.pid(), Signal::SIGTERM).expect("it runs");
    let child = running.0.as_mut().expect("it runs");
    assert!(ends_within(child, Duration::from_secs(10)), "it waits for its guardian");
    net.is_clean_again(&before);
}

#[test]
fn root_the_guardian_of_an_earlier_proxy_removes_nothing_of_the_present_one() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let first = net.proxy(&[]);
    let old = guardian(first.pid());
    kill(old, Signal::SIGSTOP).expect("it runs");
    first.end(Signal::SIGKILL);
    // The stopped guardian has the port of the first one.
    let second = net.proxy(&["--port", "5081"]);
    let rules = || ["-4", "-6"].map(|family| net.on_router("ip", &[family, "rule"])).concat();
    let routes = || net.on_router("ip", &["route", "show", "table", "all", "type", "local", "dev", "lo"]);
    let (own_rules, own_routes) = (rules(), routes());
    assert_eq!(own_rules.matches("fwmark").count(), 2, "{own_rules}");
    kill(old, Signal::SIGCONT).expect("it is there");
    let start = Instant::now();
    // Nobody waits for the process whose parent has died but init, which may be slow.
    let lives = || {
        let state = fs::read_to_string(format!("/proc/{old}/status")).unwrap_or_default();
        state.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
    };
    while lives() {
        assert!(start.elapsed() < TEST_TIMEOUT, "the guardian goes on");
        assert_eq!(rules(), own_rules);
    }
    // The proxy looks at its rules only each five seconds.
    assert_eq!(rules(), own_rules);
    let left = routes();
    assert!(own_routes.lines().filter(|line| left.contains(*line)).count() >= own_routes.lines().count() - 1, "{left}");
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    net.until("it is split", |status| status.totals.established == 1);
    drop((client, server));
    second.end(Signal::SIGTERM);
    // What a first one has left whose guardian was killed, too, is removed by the next.
    let third = net.proxy(&[]);
    kill(guardian(third.pid()), Signal::SIGKILL).expect("it runs");
    kill(third.pid(), Signal::SIGKILL).expect("it runs");
    drop(third);
    net.proxy(&[]).end(Signal::SIGTERM);
    net.is_clean_again(&before);
}

/// A process of a user without rights that listens at an abstract name in the router's namespace.
struct Squatter(Child);

impl Squatter {
    fn new(net: &Net, name: &str) -> Squatter {
        const LISTEN: &str = "import socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind('\\0' + sys.argv[1])
s.listen()
print('ready', flush=True)
while True:
    s.accept()[0].sendall(b'{}')";
        let mut command = net.command(ROUTER, "setpriv");
        command.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            "/usr/bin/python3",
            "-c",
            LISTEN,
            name,
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it speaks");
        assert_eq!(line, "ready\n");
        Squatter(child)
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn root_a_stranger_with_the_name_of_the_status_socket_neither_answers_nor_keeps_the_proxy_from_starting() {
    let Some(net) = Net::new() else { return };
    let index = net.on_router("cat", &["/sys/class/net/ran/ifindex"]);
    let name = format!("ranway/proxy-status/{}", index.trim());
    let squatters = [Squatter::new(&net, &name), Squatter::new(&net, &format!("{name}/1"))];
    let ask = || net.fails(&["status", "--json"]);
    let output = ask();
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("a program of user 65534 that is no proxy"), "{said}");
    let proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    net.until("it is split", |status| status.totals.established == 1);
    drop(squatters);
    assert!(ask().status.success());
    kill(proxy.pid(), Signal::SIGSTOP).expect("it runs");
    let said = text(&ask().stderr);
    assert_eq!(said, "error: the proxy does not answer within 2 s: it hangs or is stopped\n");
}

#[test]
fn root_a_stranger_with_all_names_of_the_status_socket_takes_the_status_alone() {
    let Some(net) = Net::new() else { return };
    let index = net.on_router("cat", &["/sys/class/net/ran/ifindex"]);
    let name =
        |n| format!("ranway/proxy-status/{}{}", index.trim(), if n == 0 { String::new() } else { format!("/{n}") });
    let squatters: Vec<Squatter> = (0..8).map(|n| Squatter::new(&net, &name(n))).collect();
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--wan", "wan", "--ran", "ran", "--drain", "300 ms"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
    let proxy = Running(Some(child));
    let mut hears = |words: &str| {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert_ne!(said.read_line(&mut line).expect("it is text"), 0, "it ended before it said {words:?}");
        }
    };
    hears("another program has all names of the status socket");
    assert!(!net.fails(&["status", "--json"]).status.success());
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    drop(squatters);
    hears("`ranway proxy status` works again");
    assert_eq!(net.status().totals.established, 1);
    proxy.end(Signal::SIGTERM);
}

#[test]
fn root_connections_of_a_proxy_with_few_descriptors_go_on_without_pipes_and_further_ones_bypass_it() {
    let Some(net) = Net::new() else { return };
    // 1000 descriptors, which root may not raise.
    let run = "ulimit -n 1000; exec setpriv --bounding-set -sys_resource \"$@\"";
    let mut command = net.command(ROUTER, "sh");
    command.args([
        "-c",
        run,
        "sh",
        env!("CARGO_BIN_EXE_ranway"),
        "proxy",
        "--wan",
        "wan",
        "--ran",
        "ran",
        "--threads",
        "1",
    ]);
    let _proxy = Running(Some(
        command
            .args(["--drain", "100 ms", "--quiet", "--max-per-ue", "1000", "--max-per-server", "1000"])
            .spawn()
            .expect("it starts"),
    ));
    net.until("it accepts", |status| status.accepting);
    let listener = net.listen(SERVER, SERVERS[0]);
    // Two for each connection.
    let mut pairs = Vec::new();
    while net.status().accepting {
        pairs.extend((0..8).map(|_| net.pair(&listener)));
        assert!(pairs.len() <= 500, "it takes more connections than it has descriptors for");
    }
    let most = net.status().totals.open as usize;
    assert!((400..=440).contains(&most), "{most}");
    // Each of these would have a pipe: the clients do not read, and the servers send more than all buffers hold.
    const MUCH: u64 = 6_000_000;
    let send = |mut server: TcpStream, salt: u64| {
        thread::spawn(move || {
            let bytes: Vec<u8> = (0..MUCH).map(|at| byte(at, salt)).collect();
            server.write_all(&bytes).expect("no reset");
        })
    };
    let mut busy: Vec<(TcpStream, TcpStream)> = pairs.drain(..60).collect();
    let senders: Vec<_> =
        (0..).zip(&busy).map(|(n, (_, server))| send(server.try_clone().expect("there is room"), n)).collect();
    let status = net.until("all hold something", |status| {
        status.connections.iter().filter(|connection| connection.held > 0).count() == busy.len()
    });
    assert_eq!((status.totals.reset, status.totals.exhausted), (0, 0), "{:?}", status.totals);
    // Connections that are not split pass, and so do the others.
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    assert_eq!(net.status().totals.open as usize, most);
    pairs.iter_mut().for_each(|(client, server)| exchange(client, server));
    for (salt, (client, _)) in (0..).zip(&mut busy) {
        let mut bytes = vec![0; MUCH as usize];
        client.read_exact(&mut bytes).expect("no reset");
        assert!((0..).zip(&bytes).all(|(at, &found)| found == byte(at, salt)), "other bytes");
    }
    senders.into_iter().for_each(|sender| sender.join().expect("it does not panic"));
    let totals = net.status().totals;
    assert_eq!((totals.reset, totals.internal_errors, totals.exhausted), (0, 0, 0), "{totals:?}");
}

#[test]
fn root_nothing_is_left_at_home_and_the_socket_of_the_reports_is_removed() {
    let Some(net) = Net::new() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let reports = net.dir.path().join("reports");
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let mut command: Command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
        command.args(["proxy", "--wan", "wan", "--ran", "ran", "--drain", "100 ms", "--quiet", "--reports"]);
        command.arg(format!("recording:unix:{}", reports.display())).env("HOME", home.path());
        let running = Running(Some(command.spawn().expect("it starts")));
        net.until("it accepts", |status| status.accepting);
        assert!(reports.exists());
        running.end(signal);
        net.until("its end", |status| !status.accepting);
        // The guardian removes it after a process that was killed.
        thread::sleep(Duration::from_millis(300));
        assert!(!reports.exists(), "{signal}");
        let left: Vec<_> = fs::read_dir(home.path()).expect("it is there").flatten().map(|of| of.file_name()).collect();
        assert!(left.is_empty(), "{signal}: {left:?}");
    }
}

#[test]
fn root_handshakes_under_way_are_completed_when_new_connections_bypass() {
    for ends in [false, true] {
        let Some(net) = Net::new() else { return };
        let before = net.traces();
        let limits = ["--max-connections", "8", "--max-per-ue", "8", "--max-per-server", "8"];
        let others = ["--threads", "2", "--drain", "20 s", "--from-servers"];
        let mut proxy = net.proxy(&[&limits[..], &others].concat());
        let listener = net.listen(SERVER, SERVERS[0]);
        let to = listener.local_addr().expect("an address");
        // The UE takes its connection for established, and the router still waits for its acknowledgement.
        let rules = format!(
            "add table inet lossy; add chain inet lossy out {{ type filter hook output priority 0; }}; \
             add rule inet lossy out tcp dport {} tcp flags & (syn | ack) == ack drop",
            to.port()
        );
        net.nft(UE, &rules);
        let mut under_way: Vec<TcpStream> = (0..3).map(|_| net.connect(UE, to)).collect();
        under_way.iter_mut().for_each(|client| client.write_all(b"question").expect("there is room"));
        let other = net.listen(UE, UES[0]);
        let backwards = || net.connect(SERVER, other.local_addr().expect("an address"));
        let mut open: Vec<_> = (0..5).map(|_| (backwards(), accept(&other))).collect();
        if ends {
            kill(proxy.pid(), Signal::SIGTERM).expect("it runs");
        }
        net.until("it takes no more", |status| !status.accepting && status.totals.open == 5);
        net.await_lease(false);
        open.push((backwards(), accept(&other)));
        assert_eq!(net.status().totals.open, 5, "the last one bypasses it");
        net.nft(UE, "delete table inet lossy");
        let servers: Vec<TcpStream> = under_way.iter().map(|_| accept(&listener)).collect();
        let mut bytes = [0; 8];
        for mut server in &servers {
            server.read_exact(&mut bytes).expect("it arrives");
            server.write_all(&bytes).expect("it is open");
        }
        under_way.iter_mut().for_each(|client| client.read_exact(&mut bytes).expect("there is no reset"));
        net.until("they are split", |status| status.totals.open == 8 && !status.accepting);
        open.iter_mut().for_each(|(one, other)| exchange(one, other));
        drop((under_way, servers, open));
        if ends {
            assert!(ends_within(proxy.0.as_mut().expect("it runs"), TEST_TIMEOUT));
            net.is_clean_again(&before);
        } else {
            net.until("it has room again", |status| status.accepting && status.totals.open == 0);
            net.await_lease(true);
            let (mut client, mut server) = net.pair(&listener);
            exchange(&mut client, &mut server);
            assert_eq!(net.status().totals.open, 1);
        }
    }
}

#[test]
fn root_connections_by_a_third_interface_pass() {
    const OTHER: &str = "m";
    let Some(net) = Net::with(&[OTHER]) else { return };
    net.join((ROUTER, "mgm", &["10.3.0.1/24", "fd03::1/64"]), (OTHER, "m0", &["10.3.0.2/24", "fd03::2/64"]));
    let _proxy = net.proxy(&[]);
    for (address, gateway) in [("10.3.0.2", "10.3.0.1"), ("fd03::2", "fd03::1")] {
        ip(&format!("-n {} route add default via {gateway}", net.space(OTHER)));
        let listener = net.listen(OTHER, address);
        for host in [UE, SERVER] {
            let mut client = net.connect(host, listener.local_addr().expect("it is bound"));
            exchange(&mut client, &mut accept(&listener));
        }
    }
    assert_eq!(net.status().totals.established, 0);
    for address in SERVERS {
        let (mut client, mut server) = net.pair(&net.listen(SERVER, address));
        exchange(&mut client, &mut server);
    }
    assert_eq!(net.status().totals.established, 2);
}

#[test]
fn root_a_link_behind_with_a_smaller_mtu_is_found_out() {
    const BEHIND: &str = "t";
    let Some(net) = Net::with(&[BEHIND]) else { return };
    net.join((SERVER, "s1", &["10.4.0.1/24", "fd04::1/64"]), (BEHIND, "t0", &["10.4.0.2/24", "fd04::2/64"]));
    net.forwards(SERVER);
    for (prefix, gateway, router) in [("10.4.0.0/24", "10.4.0.1", "10.2.0.2"), ("fd04::/64", "fd04::1", "fd02::2")] {
        ip(&format!("-n {} route add default via {gateway}", net.space(BEHIND)));
        ip(&format!("-n {} route add {prefix} via {router}", net.space(ROUTER)));
        // The hosts at its ends know nothing of it.
        ip(&format!("-n {} route replace {prefix} dev s1 mtu lock 1300", net.space(SERVER)));
    }
    let _proxy = net.proxy(&[]);
    for address in ["10.4.0.2", "fd04::2"] {
        let (mut client, mut server) = net.pair(&net.listen(BEHIND, address));
        let bytes: Vec<u8> = (0..500_000).map(|at| byte(at, 3)).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                client.write_all(&bytes).expect("it is open");
                client.shutdown(Shutdown::Write).expect("it is open");
            });
            assert_eq!(read_whole(&mut server, |at| byte(at, 3), |_| {}), bytes.len() as u64, "{address}");
        });
    }
    assert_eq!(net.status().totals.established, 2);
}

#[test]
fn root_a_kernel_that_leads_no_connection_to_the_proxy_is_refused() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    for (setting, harmful, usual) in [
        ("net.ipv4.conf.ran.src_valid_mark", "1", "0"),
        ("net.ipv4.conf.all.src_valid_mark", "1", "0"),
        ("net.ipv4.tcp_fwmark_accept", "1", "0"),
        ("net.ipv4.tcp_syncookies", "2", "1"),
    ] {
        net.on_router("sysctl", &["-qw", &format!("{setting}={harmful}")]);
        let output = net.fails(&["--wan", "wan", "--ran", "ran"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(&format!("error: {setting} is ")) && said.lines().count() == 1, "{said}");
        assert_eq!(net.traces(), before);
        net.on_router("sysctl", &["-qw", &format!("{setting}={usual}")]);
    }
    net.on_router("ip", &["rule", "add", "pref", "10", "lookup", "main"]);
    let before = net.traces();
    let output = net.fails(&["--wan", "wan", "--ran", "ran"]);
    let why = "error: a rule of `ip -4 rule` before the proxy's leads its packets elsewhere: move that rule behind it";
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(2), why));
    net.is_clean_again(&before);
}

#[test]
fn root_new_connections_bypass_the_proxy_while_the_kernel_leads_none_to_it() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let (proxy, mut stderr) = audible(&net);
    let obstacles = [
        ("sysctl -qw net.ipv4.conf.all.src_valid_mark=1", "sysctl -qw net.ipv4.conf.all.src_valid_mark=0"),
        ("sysctl -qw net.ipv4.tcp_fwmark_accept=1", "sysctl -qw net.ipv4.tcp_fwmark_accept=0"),
        ("ip rule add pref 10 lookup main", "ip rule del pref 10"),
        ("ip -6 rule add pref 10 lookup main", "ip -6 rule del pref 10"),
    ];
    for (set, unset) in obstacles {
        net.on_router("sh", &["-c", set]);
        net.until("it takes no more", |status| !status.accepting);
        net.await_lease(false);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        assert_eq!(net.status().totals.open, 0, "{set}");
        drop((client, server));
        net.on_router("sh", &["-c", unset]);
        net.until("it takes them again", |status| status.accepting);
        net.await_lease(true);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        net.until("it is split", |status| status.totals.open == 1);
        drop((client, server));
        net.until("it has ended", |status| status.totals.open == 0);
    }
    assert_eq!(net.status().totals.overloads, 0);
    proxy.end(Signal::SIGTERM);
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("it is text");
    // Once for each.
    assert_eq!(said.matches("; new connections bypass the proxy until then").count(), obstacles.len(), "{said}");
    assert_eq!(said.matches("leads new connections to the proxy again").count(), obstacles.len(), "{said}");
}

#[test]
fn root_a_bridge_whose_packets_pass_netfilter_before_it_is_refused_and_bypassed() {
    let Some(net) = Net::new() else { return };
    if !Path::new("/proc/sys/net/bridge").exists() {
        println!("br_netfilter is not loaded here");
        return;
    }
    for line in [
        "link add cell type bridge",
        "link set cell up",
        "addr flush dev ran",
        "link set ran master cell",
        "addr add 10.1.0.1/24 dev cell",
        "addr add fd01::1/64 dev cell nodad",
    ] {
        ip(&format!("-n {} {line}", net.space(ROUTER)));
    }
    let set = |setting: &str, value: &str| net.on_router("sysctl", &["-qw", &format!("net.bridge.{setting}={value}")]);
    let bridge = |value: &str| {
        ip(&format!("-n {} link set cell type bridge nf_call_iptables {value}", net.space(ROUTER)));
    };
    let settings = ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"];
    settings.iter().for_each(|setting| drop(set(setting, "0")));
    let before = net.traces();
    let is_refused = |why: &str| {
        let output = net.fails(&["--wan", "wan", "--ran", "cell"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(why) && said.contains("`cell`") && said.lines().count() == 1, "{said}");
        net.is_clean_again(&before);
    };
    for setting in settings {
        set(setting, "1");
        is_refused(&format!("error: net.bridge.{setting} is not 0"));
        set(setting, "0");
    }
    bridge("1");
    is_refused("error: the bridge `cell` has nf_call_iptables 1");
    bridge("0");
    let args = ["proxy", "--wan", "wan", "--ran", "cell", "--drain", "300 ms"];
    let _proxy = Running(Some(net.start(ROUTER, &args)));
    let listener = net.listen(SERVER, SERVERS[0]);
    let passes = |is_split: bool| {
        net.until("it has seen the setting", |status| status.accepting == is_split);
        net.await_lease(is_split);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        assert_eq!(net.status().totals.open, u64::from(is_split));
        drop((client, server));
        net.until("it has ended", |status| status.totals.open == 0);
    };
    passes(true);
    set(settings[0], "1");
    passes(false);
    set(settings[0], "0");
    passes(true);
    bridge("1");
    passes(false);
    bridge("0");
    passes(true);
}

#[test]
fn root_new_connections_bypass_the_proxy_while_a_firewall_drops_its_packets() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    command.args(["proxy", "--quiet", "--wan", "wan", "--ran", "ran", "--drain", "100 ms"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stderr = child.stderr.take().expect("it is piped");
    let proxy = Running(Some(child));
    net.until("it accepts", |status| status.accepting);
    // A usual one is none: the proxy's packets belong to connections.
    net.nft(
        ROUTER,
        "add table inet fw; add chain inet fw in { type filter hook input priority 0; policy drop; }; \
         add rule inet fw in iif lo accept; add rule inet fw in ct state established,related accept",
    );
    thread::sleep(Duration::from_millis(500));
    let mut last = net.pair(&listener);
    exchange(&mut last.0, &mut last.1);
    net.until("it is split", |status| status.totals.open == 1);
    drop(last);
    // This one was loaded by somebody who knows no local connections.
    net.nft(ROUTER, "flush chain inet fw in");
    let start = Instant::now();
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    // The server repeats its answer after a second, and then hears of another handshake, whose SYN comes again after another one.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(!net.status().accepting);
    net.await_lease(false);
    let start = Instant::now();
    for _ in 0..5 {
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
    }
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    net.nft(ROUTER, "delete table inet fw");
    // One at a time at first.
    net.until("it takes them again", |status| status.accepting);
    let start = Instant::now();
    while net.status().totals.established < 3 {
        assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", net.status());
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
    }
    proxy.end(Signal::SIGTERM);
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("it is text");
    assert!(said.contains("error: packets of the proxy's handshakes get lost in this machine"), "{said}");
}

#[test]
fn root_a_proxy_that_can_open_no_file_for_a_while_keeps_its_connections() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let (proxy, stderr) = audible(&net);
    let mut said = BufReader::new(stderr).lines();
    let mut until = |what: &str| {
        let found = said.by_ref().map_while(Result::ok).find(|line| line.contains(what));
        assert!(found.is_some(), "it ended without `{what}`");
    };
    let (mut client, mut server) = net.pair(&listener);
    let pid = proxy.pid().to_string();
    let limit = |files: &str| {
        let soft = format!("--nofile={files}:");
        assert!(Command::new("prlimit").args(["--pid", &pid, &soft]).status().expect("it starts").success());
    };
    limit("3");
    until("can be neither checked nor added again");
    exchange(&mut client, &mut server);
    limit("1000");
    until("can be checked again");
    assert_eq!(net.status().totals.reset, 0);
}

#[test]
fn root_a_proxy_waits_for_the_end_of_a_killed_one() {
    let Some(net) = Net::new() else { return };
    // The kernel closes the sockets of a killed process a moment later.
    let left = net.inside(ROUTER, || Reservation::new(Role::Proxy, "wan").expect("nobody has it"));
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        drop(left);
    });
    drop(net.proxy(&[]));
}

#[test]
fn root_a_killed_owner_of_the_table_is_replaced_and_connections_go_on() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let listener = net.listen(SERVER, SERVERS[0]);
    let (proxy, stderr) = audible(&net);
    let (mut client, mut server) = net.pair(&listener);
    let owner = || child_of(proxy.pid(), "nft\0-i\0");
    let stop = AtomicBool::new(false);
    // The longest pause of the reader, in ms.
    let longest = AtomicU64::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let last = Cell::new(Instant::now());
            let after = |_| {
                longest.fetch_max(last.replace(Instant::now()).elapsed().as_millis() as u64, Relaxed);
            };
            read_whole(&mut client, |at| byte(at, 1), after)
        });
        let (stop, server) = (&stop, &mut server);
        let writer = scope.spawn(move || {
            let mut sent = 0;
            while !stop.load(Relaxed) {
                let bytes: Vec<u8> = (sent..sent + 20_000).map(|at| byte(at, 1)).collect();
                server.write_all(&bytes).expect("no reset");
                sent += 20_000;
                thread::sleep(Duration::from_millis(2));
            }
            server.shutdown(Shutdown::Write).expect("it is open");
            sent
        });
        for files in [None, None, None, Some("3")] {
            let limit = |files: &str| {
                let (pid, soft) = (proxy.pid().to_string(), format!("--nofile={files}:"));
                assert!(Command::new("prlimit").args(["--pid", &pid, &soft]).status().expect("it starts").success());
            };
            thread::sleep(Duration::from_millis(530));
            let killed = owner().expect("there is one");
            files.iter().for_each(|files| limit(files));
            kill(killed, Signal::SIGKILL).expect("it runs");
            // Without descriptors, there is none for a while.
            if files.is_some() {
                thread::sleep(Duration::from_secs(2));
                limit("10000");
            }
            let start = Instant::now();
            while owner().is_none_or(|owner| owner == killed) {
                assert!(start.elapsed() < TEST_TIMEOUT, "there is no other one");
                thread::sleep(Duration::from_millis(5));
            }
            let again = start.elapsed();
            thread::sleep(Duration::from_secs(1));
            let paused = longest.swap(0, Relaxed);
            // The kernels send again ever more rarely.
            if files.is_none() {
                println!("another one after {again:?}, a pause of {paused} ms");
                assert!(paused < 1_000, "{paused} ms");
            }
        }
        net.await_lease(true);
        stop.store(true, Relaxed);
        assert_eq!(writer.join().expect("no reset"), reader.join().expect("no reset"));
    });
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    let totals = net.status().totals;
    assert_eq!((totals.established, totals.reset, totals.internal_errors), (2, 0, 0), "{totals:?}");
    proxy.end(Signal::SIGTERM);
    let said: Vec<String> = BufReader::new(stderr).lines().map_while(Result::ok).collect();
    assert_eq!(said.iter().filter(|line| line.contains("has made the table again")).count(), 4, "{said:?}");
    net.is_clean_again(&before);
}

#[test]
fn root_a_router_whose_loopback_is_down_is_told_and_one_without_ipv6_splits_ipv4() {
    let Some(net) = Net::new() else { return };
    net.on_router("ip", &["link", "set", "lo", "down"]);
    let refused = net.fails(&["--wan", "wan", "--ran", "ran"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert_eq!(said, "error: the loopback interface has no address: `ip link set lo up`\n");
    net.on_router("ip", &["link", "set", "lo", "up"]);
    net.on_router("sh", &["-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"]);
    let _proxy = Running(Some(net.start(ROUTER, &["proxy", "--wan", "wan", "--ran", "ran", "--drain", "100 ms"])));
    net.until("it accepts", |status| status.accepting);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    assert_eq!(net.status().totals.open, 1);
}

#[test]
fn root_an_address_of_the_page_that_is_not_this_machines_is_refused_before_anything_is_changed() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let refused = net.fails(&["--wan", "wan", "--ran", "ran", "--dashboard", "192.0.2.1:99"]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(!said.contains("splitting") && said.lines().count() == 1, "{said}");
    assert_eq!(net.traces(), before);
}
