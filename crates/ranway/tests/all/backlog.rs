//! End-to-end tests of `ranway backlog`: a host uploads through a router with a deep modem buffer, an emulated cell,
//! and a server. Tests that need root report when they are skipped.

use crate::common::spaces::{Spaces, ip, own_mounts};
use crate::common::{is_late, ping_times, text};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::ops::Deref;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;
use testkit::realtime::{Watch, at_once, conclusive};
use testkit::root::granted;

const SERVER: &str = "10.9.3.2";
const PORT: u16 = 5202;

/// A cell with about 20 Mbit/s uplink, and a server 15 ms behind it. The modem's buffer of 500 kB takes 200 ms.
const CELL: &str = "duration = \"600 s\"\n[lte]\nbandwidth = \"10 MHz\"\nserver_delay = \"15 ms\"\n\
    cells = [{ position = [0, 0, 10] }]\n[[lte.ues]]\nname = \"phone\"\nmobility = [120, 0, 1.5]\nchannel = \"umi\"\n\
    modem = \"500 kB\"\nhost_queue = { kind = \"drop-tail\", packets = 10 }\n";

const HOST: &str = "h";
const ROUTER: &str = "r";
const RADIO: &str = "a";
const FAR: &str = "s";

/// In a row: a host, a router with a modem, the modem and its cell, a server.
struct Net(Spaces);

impl Deref for Net {
    type Target = Spaces;
    fn deref(&self) -> &Spaces {
        &self.0
    }
}

impl Net {
    /// Returns `None`, with a message, where namespaces or eBPF are not available.
    fn new() -> Option<Net> {
        is_granted()?;
        let mut net = Spaces::new(&[HOST, ROUTER, RADIO, FAR]);
        net.join((HOST, "h0", &["10.9.1.1/24"]), (ROUTER, "lan", &["10.9.1.2/24"]));
        net.join((ROUTER, "modem", &["10.9.3.1/24"]), (RADIO, "right", &[]));
        net.join((FAR, "s0", &["10.9.3.2/24"]), (RADIO, "left", &[]));
        ip(&format!("-n {} route add default via 10.9.1.2", net.space(HOST)));
        ip(&format!("-n {} route add default via 10.9.3.1", net.space(FAR)));
        let forward = net.command(ROUTER, "sh").args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).status();
        assert!(forward.expect("sh").success());
        fs::write(net.dir.path().join("net.toml"), CELL).expect("it is written");
        let emulate = ["emulate", "net.toml", "--attach", "left", "right", "--max-lateness", "1 s"];
        net.running.push(net.start(RADIO, &emulate));
        // Lets neighbours resolve each other's addresses.
        net.command(HOST, "ping").args(["-c", "2", "-W", "2", SERVER]).output().expect("ping");
        Some(Net(net))
    }

    fn start_backlog(&self) -> Child {
        self.start(ROUTER, &["backlog", "--modem", "modem"])
    }

    /// Uploads from the host to the server with this congestion control while running `during`, which receives the
    /// number of bytes that have arrived.
    fn upload<T: Send>(&self, control: &str, during: impl FnOnce(&AtomicU64) -> T + Send) -> T {
        let listener = self.inside(FAR, || TcpListener::bind((SERVER, PORT)).expect("the port is free"));
        let stream = self.inside(HOST, || TcpStream::connect((SERVER, PORT)).expect("the server is there"));
        setsockopt(&stream, sockopt::TcpCongestion, &control.into()).expect("the congestion control is there");
        stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a time-out");
        let (mut peer, _) = listener.accept().expect("the host connects");
        let (arrived, over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = stream;
                while !over.load(Ordering::Relaxed) {
                    let _ = stream.write(&[0; 1 << 14]);
                }
            });
            scope.spawn(|| {
                let mut buffer = vec![0; 1 << 16];
                while let Ok(count @ 1..) = peer.read(&mut buffer) {
                    arrived.fetch_add(count as u64, Ordering::Relaxed);
                }
            });
            let done = during(&arrived);
            over.store(true, Ordering::Relaxed);
            done
        })
    }

    /// Returns the median of several pings from the host to the server, in ms.
    fn ping(&self, count: u32) -> f64 {
        let count = count.to_string();
        let said = self.command(HOST, "ping").args(["-c", &count, "-i", "0.1", SERVER]).output().expect("ping");
        let said = text(&said.stdout);
        let mut times = ping_times(&said);
        times.sort_by(f64::total_cmp);
        *times.get(times.len() / 2).unwrap_or_else(|| panic!("nobody answers: {said}"))
    }

    /// Ends the emulation. Returns whether it was too late for a test of times and rates; the attempt is void then.
    fn was_late(&mut self, watch: &mut Watch) -> bool {
        self.0.end_running();
        is_late(self.dir.path(), watch)
    }

    /// Returns our traces at the router: interfaces and routing rules.
    fn traces(&self) -> String {
        let links = self.command(ROUTER, "ip").args(["-o", "link"]).output().expect("ip");
        let links = text(&links.stdout);
        let rules = self.command(ROUTER, "ip").args(["rule"]).output().expect("ip");
        links.lines().filter(|line| line.contains("backlog")).collect::<String>() + &text(&rules.stdout)
    }
}

/// The router and the server alone, with nothing between them. Returns `None`, with a message, where that is not available.
fn without_a_radio() -> Option<Spaces> {
    is_granted()?;
    let net = Spaces::new(&[ROUTER, FAR]);
    net.join((ROUTER, "modem", &["10.9.3.1/24"]), (FAR, "s0", &["10.9.3.2/24"]));
    net.command(ROUTER, "ping").args(["-c", "1", "-W", "2", SERVER]).output().expect("ping");
    Some(net)
}

/// Returns `None`, with a message, where namespaces or eBPF are not available.
fn is_granted() -> Option<()> {
    granted(emulate::lab::check())?;
    granted(ebpf::divert::check("this test"))?;
    own_mounts(&[]);
    Some(())
}

fn end(mut child: Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("it runs");
    child.ends();
}

/// Returns how much arrives in a number of seconds, in Mbit/s.
fn rate(arrived: &AtomicU64, seconds: u64) -> f64 {
    let (before, start) = (arrived.load(Ordering::Relaxed), Instant::now());
    thread::sleep(Duration::from_secs(seconds));
    (arrived.load(Ordering::Relaxed) - before) as f64 * 8e-6 / start.elapsed().as_secs_f64()
}

#[test]
fn root_a_ping_beside_an_upload_is_short_and_the_upload_keeps_most_of_its_rate() {
    conclusive(a_ping_beside_an_upload_is_short_and_the_upload_keeps_most_of_its_rate);
}

fn a_ping_beside_an_upload_is_short_and_the_upload_keeps_most_of_its_rate(watch: &mut Watch) {
    let measured = at_once(["cubic", "bbr"], |control| {
        let net = Net::new()?;
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("it is there");
        granted(if available.contains(control) { Ok(()) } else { Err(format!("this kernel has no {control}")) })?;
        let measure = || {
            net.upload(control, |arrived| {
                thread::sleep(Duration::from_secs(3));
                thread::scope(|scope| {
                    let ping = scope.spawn(|| net.ping(50));
                    (rate(arrived, 6), ping.join().expect("it pings"))
                })
            })
        };
        let (bare, bare_ping) = measure();
        let backlog = net.start_backlog();
        let (kept, kept_ping) = measure();
        end(backlog, Signal::SIGTERM);
        eprintln!("{control}: {bare:.1} Mbit/s, {bare_ping:.0} ms; with it {kept:.1} Mbit/s, {kept_ping:.0} ms");
        assert!(!net.traces().contains("backlog"), "{}", net.traces());
        Some((control, net, bare, bare_ping, kept, kept_ping))
    });
    for (control, mut net, bare, bare_ping, kept, kept_ping) in measured.into_iter().flatten() {
        if net.was_late(watch) {
            return;
        }
        if control == "cubic" {
            if bare_ping <= 140.0 {
                return watch.void(format!("the upload hardly filled its queue: {bare_ping} ms"));
            }
            assert!(kept_ping < bare_ping * 0.75, "{bare_ping} ms, {kept_ping} ms");
        }
        assert!(kept_ping < 120.0, "{control}: {kept_ping} ms");
        assert!(kept > bare * 0.7, "{control}: {bare} Mbit/s, {kept} Mbit/s");
    }
}

#[test]
fn root_an_upload_goes_on_if_it_is_killed_or_stands_still_or_ends() {
    conclusive(an_upload_goes_on_if_it_is_killed_or_stands_still_or_ends);
}

fn an_upload_goes_on_if_it_is_killed_or_stands_still_or_ends(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    net.upload("cubic", |arrived| {
        for signal in [Signal::SIGKILL, Signal::SIGSTOP, Signal::SIGTERM] {
            let backlog = net.start_backlog();
            assert!(net.traces().contains("backlog"));
            thread::sleep(Duration::from_secs(2));
            if signal == Signal::SIGSTOP {
                kill(Pid::from_raw(backlog.id() as i32), signal).expect("it runs");
                // For half a second it is waited for; then a lost window has to be found again.
                thread::sleep(Duration::from_secs(2));
                let stopped = rate(arrived, 2);
                assert!(stopped > 5.0, "{signal}: {stopped} Mbit/s");
                kill(Pid::from_raw(backlog.id() as i32), Signal::SIGCONT).expect("it is there");
                end(backlog, Signal::SIGTERM);
            } else {
                end(backlog, signal);
                assert_eq!(net.traces(), before);
                thread::sleep(Duration::from_secs(1));
                let after = rate(arrived, 2);
                assert!(after > 5.0, "{signal}: {after} Mbit/s");
            }
            assert_eq!(net.traces(), before);
        }
    });
}

#[test]
fn root_an_upload_that_nobody_acknowledges_passes() {
    conclusive(an_upload_that_nobody_acknowledges_passes);
}

fn an_upload_that_nobody_acknowledges_passes(_: &mut Watch) {
    let Some(net) = Net::new() else { return };
    let backlog = net.start_backlog();
    let far = net.inside(FAR, || UdpSocket::bind((SERVER, PORT)).expect("the port is free"));
    let near = net.inside(HOST, || UdpSocket::bind("0.0.0.0:0").expect("a port"));
    near.connect((SERVER, PORT)).expect("an address");
    far.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
    // 8 Mbit/s for 3 s, less than the cell carries.
    let sent = 2000;
    let received = thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..sent {
                let _ = near.send(&[0; 1400]);
                thread::sleep(Duration::from_micros(1400));
            }
        });
        let (mut buffer, mut count, mut quiet) = ([0; 2000], 0, 0);
        while quiet < 10 && count < sent {
            match far.recv(&mut buffer) {
                Ok(_) => count += 1,
                Err(_) => quiet += 1,
            }
        }
        count
    });
    end(backlog, Signal::SIGTERM);
    assert_eq!(received, sent);
}

#[test]
fn root_a_server_that_reads_slowly_is_not_taken_for_a_slow_modem() {
    conclusive(a_server_that_reads_slowly_is_not_taken_for_a_slow_modem);
}

fn a_server_that_reads_slowly_is_not_taken_for_a_slow_modem(watch: &mut Watch) {
    let Some(mut net) = Net::new() else { return };
    let backlog = net.start_backlog();
    let far = net.inside(FAR, || UdpSocket::bind((SERVER, PORT)).expect("the port is free"));
    let near = net.inside(HOST, || UdpSocket::bind("0.0.0.0:0").expect("a port"));
    near.connect((SERVER, PORT)).expect("an address");
    far.set_read_timeout(Some(Duration::from_millis(300))).expect("a time-out");
    let listener = net.inside(FAR, || TcpListener::bind((SERVER, PORT)).expect("the port is free"));
    let stream = net.inside(HOST, || TcpStream::connect((SERVER, PORT)).expect("the server is there"));
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("a time-out");
    let (mut peer, _) = listener.accept().expect("the host connects");
    let over = AtomicBool::new(false);
    // 5 Mbit/s for 20 s, a quarter of what the cell carries.
    let sent = 8_928;
    let received = thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = stream;
            while !over.load(Ordering::Relaxed) {
                let _ = stream.write(&[0; 1 << 14]);
            }
        });
        scope.spawn(|| {
            // 0.2 Mbit/s.
            let mut buffer = [0; 2_500];
            while !over.load(Ordering::Relaxed) {
                let _ = peer.read(&mut buffer);
                thread::sleep(Duration::from_millis(100));
            }
        });
        scope.spawn(|| {
            let start = Instant::now();
            for n in 0..sent {
                let _ = near.send(&[0; 1400]);
                let due = Duration::from_micros(2_240) * n;
                thread::sleep(due.saturating_sub(start.elapsed()));
            }
        });
        let (mut buffer, mut count, mut quiet) = ([0; 2000], 0, 0);
        while quiet < 10 && count < sent {
            match far.recv(&mut buffer) {
                Ok(_) => count += 1,
                Err(_) => quiet += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
        count
    });
    end(backlog, Signal::SIGTERM);
    let lost = f64::from(sent - received) / f64::from(sent);
    eprintln!("lost {:.1} %", lost * 100.0);
    if net.was_late(watch) {
        return;
    }
    assert!(lost < 0.005, "{received} of {sent}");
}

#[test]
fn root_a_rate_is_searched_where_nobody_acknowledges() {
    conclusive(a_rate_is_searched_where_nobody_acknowledges);
}

fn a_rate_is_searched_where_nobody_acknowledges(watch: &mut Watch) {
    let Some(mut net) = Net::new() else { return };
    let before = net.traces();
    let far = net.inside(FAR, || UdpSocket::bind((SERVER, PORT)).expect("the port is free"));
    let near = net.inside(HOST, || UdpSocket::bind("0.0.0.0:0").expect("a port"));
    near.connect((SERVER, PORT)).expect("an address");
    far.set_read_timeout(Some(Duration::from_millis(100))).expect("a time-out");
    let (arrived, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let measure = || {
        thread::sleep(Duration::from_secs(4));
        thread::scope(|scope| {
            let ping = scope.spawn(|| net.ping(50));
            (rate(&arrived, 5), ping.join().expect("it pings"))
        })
    };
    let (bare, searched) = thread::scope(|scope| {
        // Some 40 Mbit/s, twice what the cell carries.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for _ in 0..4 {
                    let _ = near.send(&[0; 1400]);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        scope.spawn(|| {
            let mut buffer = [0; 2000];
            while !over.load(Ordering::Relaxed) {
                arrived.fetch_add(far.recv(&mut buffer).unwrap_or(0) as u64, Ordering::Relaxed);
            }
        });
        let bare = measure();
        let search = ["--rate", "8 Mbit/s", "--min-rate", "2 Mbit/s", "--max-rate", "30 Mbit/s", "--reflector", SERVER];
        let backlog = net.start(ROUTER, &[&["backlog", "--modem", "modem"], &search[..]].concat());
        let searched = measure();
        end(backlog, Signal::SIGKILL);
        over.store(true, Ordering::Relaxed);
        (bare, searched)
    });
    eprintln!("Mbit/s and ms: {bare:?}, with a search {searched:?}");
    assert_eq!(net.traces(), before);
    if net.was_late(watch) {
        return;
    }
    assert!(bare.1 > 140.0 && searched.1 < bare.1 * 0.75, "{bare:?}, {searched:?}");
    // More than what it begins with: it has found that there is more.
    assert!(searched.0 > 9.0, "{searched:?}");
}

#[test]
fn root_new_rates_are_taken_from_standard_input() {
    conclusive(new_rates_are_taken_from_standard_input);
}

fn new_rates_are_taken_from_standard_input(_: &mut Watch) {
    let Some(net) = without_a_radio() else { return };
    let mut backlog = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    backlog.args(["backlog", "--modem", "modem", "--rate", "4 Mbit/s", "--follow", "--json"]);
    let mut backlog =
        backlog.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut rates = backlog.stdin.take().expect("it is piped");
    let mut lines = BufReader::new(backlog.stdout.take().expect("it is piped")).lines();
    let mut mbps = || {
        let line = lines.next().expect("a line a second").expect("it is read");
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        line["mbps"].as_f64().expect("a number")
    };
    let over = AtomicBool::new(false);
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            let socket = net.inside(ROUTER, || UdpSocket::bind("10.9.3.1:0").expect("a socket"));
            while !over.load(Ordering::Relaxed) {
                for _ in 0..3 {
                    let _ = socket.send_to(&[7; 1400], (SERVER, 9));
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let mut after = |line: &str| {
            rates.write_all(line.as_bytes()).expect("it listens");
            // In the second of a change there are both rates.
            (mbps(), mbps(), mbps()).2
        };
        let measured = [after(""), after("12 Mb"), after("it/s\n"), after("12 Mbit\n0 bit/s\n"), after("2 Mbit/s\n")];
        over.store(true, Ordering::Relaxed);
        measured
    });
    // It goes on when its input ends.
    drop(rates);
    assert!(mbps() > 0.5);
    kill(Pid::from_raw(backlog.id() as i32), Signal::SIGTERM).expect("it runs");
    let output = backlog.ends_with_output();
    for (found, expected) in measured.into_iter().zip([4.0, 4.0, 12.0, 12.0, 2.0]) {
        assert!((found / expected - 1.0_f64).abs() < 0.15, "{measured:?}");
    }
    let said = text(&output.stderr);
    let complaints = said.lines().filter(|line| line.starts_with("standard input: ")).count();
    assert_eq!(complaints, 2, "{said}");
    assert!(said.contains("standard input: the rate must be greater than 0; the rate is unchanged"), "{said}");
}

#[test]
fn a_search_needs_its_bounds() {
    for (args, says) in [
        (&["--reflector", "::1"][..], "--rate <RATE>"),
        (&["--reflector", "::1", "--rate", "8 Mbit/s", "--min-rate", "1 Mbit/s"], "--max-rate <RATE>"),
        (&["--reflector", "one.one.one.one"], "invalid IP address syntax"),
        (&["--rate", "8 Mbit/s", "--min-rate", "1 Mbit/s"], "--reflector <ADDRESS>"),
        (&["--follow"], "--rate <RATE>"),
    ] {
        let mut ranway = Command::new(env!("CARGO_BIN_EXE_ranway"));
        let output = ranway.args(["backlog", "--modem", "lo"]).args(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(says), "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn wrong_arguments_are_one_line_each() {
    let search = |min, max, reflector| {
        let rates = ["--rate", "8 Mbit/s", "--min-rate", min, "--max-rate", max];
        [&["backlog", "--modem", "lo"], &rates[..], &["--reflector", reflector]].concat()
    };
    for (args, says) in [
        (
            &["backlog", "--modem", "nothing-there"][..],
            "cannot shape the traffic of `nothing-there`: there is no such interface",
        ),
        (&["backlog", "--modem", "lo", "--target", "0 ms"], "--target and --rate must be greater than 0"),
        (&search("0 bit/s", "8 Mbit/s", "::1"), "--min-rate and --delay-threshold must be greater than 0"),
        (
            &search("9 Mbit/s", "30 Mbit/s", "::1"),
            "--min-rate (9 Mbit/s) <= --rate (8 Mbit/s) <= --max-rate (30 Mbit/s) must hold",
        ),
        (
            &search("1 Mbit/s", "7 Mbit/s", "::1"),
            "--min-rate (1 Mbit/s) <= --rate (8 Mbit/s) <= --max-rate (7 Mbit/s) must hold",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_ranway")).args(args).output().expect("it runs");
        let said = text(&output.stderr);
        let is_root = !said.contains("needs root") && !said.contains("need root");
        assert_eq!(said.lines().count(), 1, "{said}");
        if is_root {
            assert_eq!(said.trim(), format!("error: {says}"));
            assert_eq!(output.status.code(), Some(2));
        }
    }
}

#[test]
fn root_packets_that_come_too_fast_are_counted() {
    conclusive(packets_that_come_too_fast_are_counted);
}

fn packets_that_come_too_fast_are_counted(_: &mut Watch) {
    let Some(net) = without_a_radio() else { return };
    let mut backlog = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
    backlog.args(["backlog", "--modem", "modem", "--rate", "10 Mbit/s", "--json"]);
    let backlog = backlog.stdout(Stdio::piped()).spawn().expect("it starts");
    let pid = Pid::from_raw(backlog.id() as i32);
    thread::sleep(Duration::from_millis(1_500));
    let socket = net.inside(ROUTER, || UdpSocket::bind("10.9.3.1:0").expect("a socket"));
    let start = Instant::now();
    let mut sent = 0_u64;
    // It has no time for them for a while, but the diversion has not run out.
    kill(pid, Signal::SIGSTOP).expect("it runs");
    while start.elapsed() < Duration::from_millis(250) {
        sent += u64::from(socket.send_to(&[7], (SERVER, 9)).is_ok());
    }
    kill(pid, Signal::SIGCONT).expect("it runs");
    thread::sleep(Duration::from_millis(2_500));
    kill(pid, Signal::SIGTERM).expect("it runs");
    let output = backlog.ends_with_output();
    let said = text(&output.stdout);
    let last: serde_json::Value = serde_json::from_str(said.lines().last().expect("a line a second")).expect("JSON");
    let count = |what: &str| last["counters"][what].as_u64().expect("a number");
    let all = ["packets", "dropped", "overflowed", "refused", "missed"].map(count);
    assert!(count("missed") > 0, "{last} of {sent}");
    // What was still waiting at that moment is not among them, nor what the diversion let pass.
    let waiting = last["waiting_bytes"].as_u64().expect("a number") / 29;
    assert!(all.iter().sum::<u64>() + waiting >= sent * 9 / 10, "{last} of {sent}");
}
