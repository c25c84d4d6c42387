//! End-to-end tests of multi-domain congestion control in the kernel with a live PEP: a server, an emulated wire, a
//! router with a PEP, an emulated lossy radio link, a phone. Tests that need root report when they are skipped.

use crate::common::shown::{metric, request};
use crate::common::spaces::{Spaces, ip, own_mounts};
use crate::common::{eventually, text};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends;
use testkit::realtime::{Watch, conclusive};
use testkit::root::granted;

const PORT: u16 = 5201;
const SERVER: [&str; 2] = ["10.8.1.1", "fd08:1::1"];

/// Returns the scenario of a path from `server` to `phone` and back, with the given loss.
fn way(rate: &str, delay: &str, loss: f64, packets: u32) -> String {
    format!(
        "duration = \"600 s\"\n[[links]]\nname = \"way\"\nfrom = \"server\"\nto = \"phone\"\nduplex = true\n\
         rate = \"{rate}\"\ndelay = \"{delay}\"\nloss = {loss}\nqueue = {{ kind = \"drop-tail\", packets = {packets} }}\n"
    )
}

/// In a row: a server, a wire, a router, a radio, a phone.
struct Net(Spaces);

const SERVER_HOST: &str = "s";
const WIRE: &str = "w";
const ROUTER: &str = "r";
const RADIO: &str = "a";
const PHONE_HOST: &str = "p";

impl Deref for Net {
    type Target = Spaces;
    fn deref(&self) -> &Spaces {
        &self.0
    }
}

impl DerefMut for Net {
    fn deref_mut(&mut self) -> &mut Spaces {
        &mut self.0
    }
}

impl Net {
    /// Returns `None`, with a message, where it is not available. The radio link loses this fraction of packets to the
    /// phone.
    fn new(loss: f64) -> Option<Net> {
        Net::with_queue(loss, 200)
    }

    /// The same, with queues of this many packets.
    fn with_queue(loss: f64, packets: u32) -> Option<Net> {
        granted(emulate::lab::check())?;
        if !can_load() {
            return None;
        }
        let mut net = Net(Spaces::new(&[SERVER_HOST, WIRE, ROUTER, RADIO, PHONE_HOST]));
        net.join((SERVER_HOST, "s0", &["10.8.1.1/24", "fd08:1::1/64"]), (WIRE, "left", &[]));
        net.join((ROUTER, "wan", &["10.8.1.2/24", "fd08:1::2/64"]), (WIRE, "right", &[]));
        net.join((ROUTER, "ran", &["10.8.2.1/24", "fd08:2::1/64"]), (RADIO, "left", &[]));
        net.join((PHONE_HOST, "p0", &["10.8.2.2/24", "fd08:2::2/64"]), (RADIO, "right", &[]));
        for (host, gateways) in [(SERVER_HOST, ["10.8.1.2", "fd08:1::2"]), (PHONE_HOST, ["10.8.2.1", "fd08:2::1"])] {
            for gateway in gateways {
                ip(&format!("-n {} route add default via {gateway}", net.space(host)));
            }
        }
        for (host, file) in [
            (ROUTER, "ipv4/ip_forward"),
            (ROUTER, "ipv6/conf/all/forwarding"),
            (SERVER_HOST, "ipv4/tcp_no_metrics_save"),
        ] {
            let line = format!("echo 1 > /proc/sys/net/{file}");
            assert!(net.command(host, "sh").args(["-c", &line]).status().expect("sh").success());
        }
        for (host, way) in
            [(WIRE, way("100 Mbit/s", "5 ms", 0.0, packets)), (RADIO, way("35 Mbit/s", "10 ms", loss, packets))]
        {
            let file = format!("{host}.toml");
            fs::write(net.dir.path().join(&file), way).expect("it is written");
            let patient = ["--max-lateness", "1 s", "--out", host];
            net.keep(host, &[&["emulate", &file, "--attach", "left", "right"], &patient[..]].concat());
        }
        // Lets neighbours resolve each other's addresses.
        net.command(PHONE_HOST, "ping").args(["-c", "1", "-W", "2", SERVER[0]]).output().expect("ping");
        net.command(PHONE_HOST, "ping").args(["-c", "1", "-W", "2", SERVER[1]]).output().expect("ping");
        Some(net)
    }

    /// Starts `ranway` in a namespace, where it runs until the end of the test.
    fn keep(&mut self, host: &str, args: &[&str]) {
        let child = self.start(host, args);
        self.running.push(child);
    }

    /// Starts a PEP at the router; returns its index among the running processes.
    fn start_pep(&mut self, options: &[&str]) -> usize {
        self.keep(ROUTER, &[&["pep", "--wan", "wan", "--ran", "ran"], options].concat());
        self.running.len() - 1
    }

    /// Downloads from the server to the phone for this many seconds, and until `during` has ended; returns the bytes in each second.
    fn download(&self, control: &str, server: &str, seconds: usize, during: impl FnOnce() + Send) -> Vec<u64> {
        let listener = self.inside(SERVER_HOST, || listener(control));
        let address = SocketAddr::new(server.parse::<IpAddr>().expect("an address"), PORT);
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("the phone connects");
                let block = vec![0; 1 << 16];
                while stream.write_all(&block).is_ok() {}
            });
            let other = scope.spawn(during);
            self.inside(PHONE_HOST, || {
                let mut stream = TcpStream::connect(address).expect("the server is there");
                stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
                let (start, mut counts) = (Instant::now(), vec![0; seconds]);
                let mut buffer = vec![0; 1 << 16];
                loop {
                    let second = start.elapsed().as_secs() as usize;
                    if second >= counts.len() {
                        if other.is_finished() {
                            break counts;
                        }
                        counts.resize(second + 1, 0);
                    }
                    counts[second] += stream.read(&mut buffer).unwrap_or(0) as u64;
                }
            })
        })
    }

    /// Returns a counter of the kernel's TCP in a namespace.
    fn counter(&self, host: &str, name: &str) -> u64 {
        let cat = self.command(host, "cat").args(["/proc/net/netstat", "/proc/net/snmp"]).output().expect("cat");
        let all = text(&cat.stdout);
        let lines: Vec<&str> = all.lines().collect();
        let found = lines.chunks(2).find_map(|pair| {
            let at = pair[0].split(' ').position(|field| field == name)?;
            pair[1].split(' ').nth(at)?.parse().ok()
        });
        found.unwrap_or_else(|| panic!("no counter {name}"))
    }
}

/// Creates a listener for both address families whose connections use this congestion control.
fn listener(control: &str) -> TcpListener {
    let fd = socket(AddressFamily::Inet6, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    setsockopt(&fd, sockopt::ReuseAddr, &true).expect("an option");
    setsockopt(&fd, sockopt::Ipv6V6Only, &false).expect("an option");
    setsockopt(&fd, sockopt::TcpCongestion, &control.into()).expect("the congestion control is there");
    let any = SockaddrIn6::from(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, PORT, 0, 0));
    bind(std::os::fd::AsRawFd::as_raw_fd(&fd), &any).expect("the port is free");
    listen(&fd, Backlog::new(4).expect("small")).expect("it listens");
    TcpListener::from(fd)
}

fn ranway(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ranway")).args(args).output().expect("it runs")
}

/// Returns whether `mdcc` can be loaded, with a message if not. From then on, its state and namespaces belong to this
/// test alone: the kernel releases everything when the test's processes end for any reason.
fn can_load() -> bool {
    if granted(ebpf::mdcc::check()).is_none() {
        return false;
    }
    own_mounts(&[("/sys/fs/bpf", "bpf")]);
    // The previous test may have ended a moment ago.
    let is_there = || {
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").is_ok_and(|all| all.contains("mdcc"))
    };
    let free = (0..100).any(|_| {
        !is_there() || {
            thread::sleep(Duration::from_millis(50));
            false
        }
    });
    if !free {
        eprintln!("SKIPPED: mdcc is loaded on this machine; `ranway mdcc unload` first");
    }
    free
}

/// Keeps `mdcc` loaded for its lifetime.
struct Loaded;

impl Loaded {
    fn new(options: &[&str]) -> Loaded {
        let output = ranway(&[&["mdcc", "load"], options].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        Loaded
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let output = ranway(&["mdcc", "unload"]);
        if !thread::panicking() {
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    }
}

/// Returns the `status` of the connection from the server, if there is one.
fn connection() -> Option<serde_json::Value> {
    let output = ranway(&["mdcc", "status", "--json"]);
    let sockets: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let port = format!(":{PORT}");
    let of_server = |s: &serde_json::Value| s["local"].as_str().is_some_and(|local| local.ends_with(&port));
    sockets.into_iter().find(of_server)
}

fn status() -> serde_json::Value {
    connection().expect("the server's connection is there")
}

/// Waits until this holds for the `status` of the connection from the server, and returns it.
fn status_when(what: &str, holds: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let mut seen = None;
    eventually(what, || {
        seen = connection();
        seen.as_ref().is_some_and(&holds)
    });
    seen.expect("it holds for one")
}

/// The reports that it has accepted.
fn reports(status: &serde_json::Value) -> u64 {
    status["reports"].as_u64().expect("a number")
}

fn mbps(counts: &[u64]) -> f64 {
    counts.iter().sum::<u64>() as f64 * 8e-6 / counts.len() as f64
}

#[test]
fn root_mdcc_with_a_pep_is_faster_than_cubic_over_a_lossy_radio() {
    conclusive(mdcc_with_a_pep_is_faster_than_cubic_over_a_lossy_radio);
}

fn mdcc_with_a_pep_is_faster_than_cubic_over_a_lossy_radio(_: &mut Watch) {
    let Some(mut net) = Net::new(2e-3) else { return };
    let _loaded = Loaded::new(&[]);
    let cubic = net.download("cubic", SERVER[0], 8, || {});
    net.start_pep(&[]);
    for server in SERVER {
        let mut seen = serde_json::Value::Null;
        let mdcc = net.download("mdcc", server, 8, || {
            thread::sleep(Duration::from_secs(5));
            seen = status();
        });
        let (slow, fast) = (mbps(&cubic[2..]), mbps(&mdcc[2..]));
        eprintln!("{server}: CUBIC {slow:.1} Mbit/s, mdcc {fast:.1} Mbit/s; {seen}");
        assert_eq!(seen["joined"], true, "{seen}");
        assert!(seen["reports"].as_u64() > Some(500) && seen["ignored"] == 0, "{seen}");
        let rtt = seen["pep_rtt_ms"].as_f64().expect("it is known");
        assert!((9.0..20.0).contains(&rtt), "the wire has 10 ms there and back: {rtt}");
        // A window of a/(b p) = 80 segments against 1.22/sqrt(p) = 27.
        assert!(fast > 1.4 * slow, "{server}: CUBIC {slow:.1} Mbit/s, mdcc {fast:.1} Mbit/s");
    }
}

#[test]
fn root_the_death_of_a_pep_is_detected_and_nothing_stalls() {
    conclusive(the_death_of_a_pep_is_detected_and_nothing_stalls);
}

fn the_death_of_a_pep_is_detected_and_nothing_stalls(_: &mut Watch) {
    let Some(mut net) = Net::new(0.0) else { return };
    let _loaded = Loaded::new(&[]);
    let pep = net.start_pep(&[]);
    let pid = net.command(ROUTER, "true").status().map(|_| net.running[pep].id()).expect("it runs");
    let (mut before, mut after) = (serde_json::Value::Null, serde_json::Value::Null);
    let counts = net.download("mdcc", SERVER[0], 5, || {
        before = status_when("it follows the PEP", |seen| seen["joined"] == true && reports(seen) > 500);
        kill(Pid::from_raw(pid as i32), Signal::SIGKILL).expect("it is there");
        status_when("its death is detected", |seen| seen["joined"] == false);
        thread::sleep(Duration::from_secs(1));
        after = status();
    });
    assert_eq!(before["fallbacks"], 0, "{before}");
    assert_eq!((&after["joined"], &after["fallbacks"]), (&false.into(), &1.into()), "{after}");
    for (second, count) in counts.iter().enumerate().skip(1) {
        assert!(mbps(&[*count]) > 20.0, "in second {second}: {counts:?}");
    }
}

#[test]
fn root_a_pep_that_takes_over_keeps_all_flows_and_the_old_one_ends() {
    conclusive(a_pep_that_takes_over_keeps_all_flows_and_the_old_one_ends);
}

fn a_pep_that_takes_over_keeps_all_flows_and_the_old_one_ends(_: &mut Watch) {
    let Some(net) = Net::new(0.0) else { return };
    let _loaded = Loaded::new(&[]);
    let pep = |limit: &str, options: &[&str]| {
        let mut command = net.command(ROUTER, "sh");
        command.args([
            "-c",
            &format!("{limit} exec \"$@\""),
            "sh",
            env!("CARGO_BIN_EXE_ranway"),
            "pep",
            "--wan",
            "wan",
        ]);
        command.args(options).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let begin = |mut command: Command| {
        let mut child = command.spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        stderr.read_line(&mut line).expect("it speaks");
        (child, stderr, line)
    };
    let (mut old, mut old_said, _) = begin(pep("", &["--ran", "ran"]));
    let mut new = None;
    let mut seen = Vec::new();
    net.download("mdcc", SERVER[0], 0, || {
        seen.push(status_when("it follows the PEP", |seen| reports(seen) > 500));
        // Without file descriptors, its programs cannot be loaded.
        let poor = pep("ulimit -n 16;", &["--ran", "ran", "--take-over"]).output().expect("it runs");
        let said = text(&poor.stderr);
        assert!(!poor.status.success() && said.starts_with("error: ") && said.lines().count() == 1, "{said}");
        thread::sleep(Duration::from_millis(500));
        assert!(old.try_wait().expect("it is ours").is_none(), "nobody took over");
        new = Some(begin(pep("", &["--ran", "ran", "--take-over"])));
        let before = reports(&status());
        seen.push(status_when("it follows the new PEP", |seen| reports(seen) > before + 500));
    });
    let (mut new, _said, line) = new.expect("it was started");
    assert_eq!(line, "PEP running between wan and ran, taken over from the previous one; press Ctrl-C to stop\n");
    assert!(old.ends().success());
    let mut said = String::new();
    old_said.read_to_string(&mut said).expect("it has spoken");
    assert_eq!(said, "another PEP has taken over; exiting\n");
    for seen in &seen {
        let (fallbacks, ignored) = (&seen["fallbacks"], &seen["ignored"]);
        assert_eq!((&seen["joined"], fallbacks, ignored), (&true.into(), &0.into(), &0.into()), "{seen}");
    }
    kill(Pid::from_raw(new.id() as i32), Signal::SIGTERM).expect("it is there");
    assert!(new.ends().success());
}

#[test]
fn root_a_sender_without_mdcc_is_not_affected_by_a_pep() {
    conclusive(a_sender_without_mdcc_is_not_affected_by_a_pep);
}

fn a_sender_without_mdcc_is_not_affected_by_a_pep(_: &mut Watch) {
    let Some(mut net) = Net::with_queue(0.0, 5000) else { return };
    net.start_pep(&["--all"]);
    let names =
        ["TCPChallengeACK", "TCPSackRecovery", "TCPRenoRecovery", "TCPLossProbes", "RetransSegs", "TCPDSACKRecv"];
    // The sender's own losses would hide the PEP's effect: BBR's startup doubles the path's capacity.
    let before: Vec<u64> = names.iter().map(|name| net.counter(SERVER_HOST, name)).collect();
    let pure = |net: &Net| {
        let counter = |name| net.counter(SERVER_HOST, name);
        // Closing during a download causes resets for segments still in flight.
        counter("OutSegs") - counter("TCPOrigDataSent") - counter("RetransSegs") - counter("OutRsts")
    };
    let (pure_before, mut counts) = (pure(&net), Vec::new());
    for server in SERVER {
        counts = net.download("bbr", server, 4, || {});
    }
    assert!(mbps(&counts[1..]) > 25.0, "{counts:?}");
    for (name, before) in names.iter().zip(before) {
        let more = net.counter(SERVER_HOST, name) - before;
        // The download ends in the middle.
        assert!(more <= 2, "{name}: {more} more");
    }
    // SYN-ACKs and the end of the connection.
    assert!(pure(&net) - pure_before <= 6, "{} segments without data", pure(&net) - pure_before);
}

#[test]
fn root_invalid_requests_are_rejected_in_one_line() {
    if !can_load() {
        return;
    }
    for (args, code, line) in [
        (&["mdcc", "load", "--step", "3"][..], 2, "error: invalid step 3: must be between 0.0001 and 1\n"),
        (&["mdcc", "unload"], 2, "error: mdcc is not loaded\n"),
        (&["mdcc", "status"], 2, "error: mdcc is not loaded; run `ranway mdcc load`\n"),
        (&["pep", "--wan", "none0", "--ran", "lo"], 2, "error: there is no interface `none0`\n"),
        (&["pep", "--wan", "lo", "--ran", "lo"], 2, "error: --wan and --ran must differ, but both are `lo`\n"),
    ] {
        let output = ranway(args);
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.as_str()), (Some(code), line), "{args:?}");
    }
    let _loaded = Loaded::new(&[]);
    let again = ranway(&["mdcc", "load"]);
    assert_eq!(text(&again.stderr), "error: mdcc is already loaded; run `ranway mdcc unload` first\n");
    let mut nobody = Command::new("setpriv");
    nobody.args(["--bounding-set=-all", "--reuid=65534", "--clear-groups"]);
    let nobody = nobody.args([env!("CARGO_BIN_EXE_ranway"), "mdcc", "status"]).output();
    if let Ok(output) = nobody.as_ref()
        && output.status.code() != Some(127)
    {
        let said = text(&output.stderr);
        assert!(said.starts_with("error: mdcc needs root (CAP_NET_ADMIN") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn root_the_metrics_of_mdcc_are_those_of_its_connections_until_it_is_unloaded() {
    if !can_load() {
        return;
    }
    let loaded = Loaded::new(&[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
    command.args(["mdcc", "status", "--metrics", "127.0.0.1:0"]).stderr(Stdio::piped());
    let mut watch = command.spawn().expect("it starts");
    let mut stderr = BufReader::new(watch.stderr.take().expect("it is piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("it speaks");
    let address = line.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics"));
    let (address, _) = address.unwrap_or_else(|| panic!("it says where they are: {line}"));
    let value = |series: &str| metric(&request(address, "GET", "/metrics", &[], "").1, series);
    let heard = |series: &str| value(&format!("ranway_mdcc_connections{{pep=\"{series}\"}}"));
    let before = heard("silent").expect("it is known");
    let listener = listener("mdcc");
    let stream = TcpStream::connect(("127.0.0.1", PORT)).expect("it listens");
    let (peer, _) = listener.accept().expect("it comes");
    // The client has the machine's default.
    assert!(heard("silent") > Some(before), "{before}");
    assert_eq!(heard("heard"), Some(0.0));
    assert!(value("ranway_mdcc_cwnd_segments{window=\"e2e\"}") >= Some(10.0));
    assert_eq!((value("ranway_mdcc_reports"), value("ranway_mdcc_pep_rtt_seconds")), (Some(0.0), None));
    drop((stream, peer, listener));
    drop(loaded);
    assert!(watch.ends().success());
    line.clear();
    stderr.read_line(&mut line).expect("it speaks");
    assert_eq!(line, "mdcc was unloaded; exiting\n");
}

#[test]
fn root_of_concurrent_loads_one_succeeds_and_the_others_report_why_not() {
    if !can_load() {
        return;
    }
    let load = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ranway"));
        command.args(["mdcc", "load"]).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let loads: Vec<_> = (0..6).map(|_| load()).collect();
    let outputs: Vec<Output> = loads.into_iter().map(Ends::ends_with_output).collect();
    let (loaded, refused): (Vec<_>, Vec<_>) = outputs.iter().partition(|output| output.status.success());
    assert_eq!(loaded.len(), 1, "{outputs:?}");
    for output in refused {
        let said = text(&output.stderr);
        let why = "error: mdcc is already loaded; run `ranway mdcc unload` first\n";
        assert_eq!((output.status.code(), said.as_str()), (Some(2), why));
    }
    let status = ranway(&["mdcc", "status"]);
    assert_eq!((status.status.code(), text(&status.stdout).lines().next()), (Some(0), Some(UNUSED)), "{status:?}");
    assert!(ranway(&["mdcc", "unload"]).status.success());
    assert!(!fs::exists("/run/ranway-mdcc.lock").expect("/run is there"));
}

const UNUSED: &str = "mdcc is loaded; no connection uses it";

#[test]
fn root_unloading_in_another_namespace_restores_the_default_where_it_was_set() {
    if !can_load() {
        return;
    }
    let spaces = Spaces::new(&["one", "two"]);
    let default = |host| {
        let cat = spaces.command(host, "cat").arg("/proc/sys/net/ipv4/tcp_congestion_control").output();
        text(&cat.expect("cat").stdout).trim().to_owned()
    };
    // Unlike `ip netns exec`, keeps the mounts.
    let mdcc = |host, args: &[&str]| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", spaces.space(host))).args([env!("CARGO_BIN_EXE_ranway"), "mdcc"]);
        let output = command.args(args).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    };
    let before = default("one");
    mdcc("one", &["load", "--default"]);
    assert_eq!(default("one"), "mdcc");
    mdcc("two", &["unload"]);
    assert_eq!(default("one"), before);
    // A removed namespace is ignored.
    mdcc("two", &["load", "--default"]);
    ip(&format!("netns delete {}", spaces.space("two")));
    mdcc("one", &["unload"]);
    assert_eq!(default("one"), before);
}

#[test]
fn root_reports_of_a_restarted_pep_are_accepted_and_those_without_the_key_are_not() {
    conclusive(reports_of_a_restarted_pep_are_accepted_and_those_without_the_key_are_not);
}

fn reports_of_a_restarted_pep_are_accepted_and_those_without_the_key_are_not(_: &mut Watch) {
    let Some(net) = Net::new(0.0) else { return };
    let key = net.dir.path().join("key");
    fs::write(&key, "0123456789abcdef".repeat(2)).expect("it is written");
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
    let key = ["--key", key.to_str().expect("UTF-8")];
    let _loaded = Loaded::new(&key);
    let begin = |options: &[&str]| net.start(ROUTER, &[&["pep", "--wan", "wan", "--ran", "ran"], options].concat());
    let end = |mut pep: std::process::Child| {
        pep.kill().expect("it is there");
        pep.ends();
    };
    let (pep, mut seen) = (begin(&key), Vec::new());
    net.download("mdcc", SERVER[0], 0, || {
        seen.push(status_when("it follows the PEP", |seen| seen["joined"] == true));
        end(pep);
        // Without a pause, only the missing reports indicate it.
        let pep = begin(&key);
        let is_back = |seen: &serde_json::Value| seen["joined"] == true && seen["fallbacks"].as_u64() > Some(0);
        seen.push(status_when("it was gone and is back", is_back));
        end(pep);
        let pep = begin(&[]);
        status_when("reports without the key come", |seen| seen["ignored"].as_u64() > Some(0));
        status_when("it follows none of them", |seen| seen["joined"] == false);
        thread::sleep(Duration::from_secs(1));
        seen.push(status());
        end(pep);
    });
    for seen in &seen[..2] {
        assert_eq!(seen["ignored"], 0, "{seen}");
    }
    assert_eq!(seen[2]["joined"], false, "{}", seen[2]);
}
