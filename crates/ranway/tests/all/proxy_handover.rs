//! End-to-end tests of `ranway proxy --take-over`: connections go on in another process. Tests that need root report when they are
//! skipped.

use crate::common::proxied::*;
use crate::common::text;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, setsockopt, socket, sockopt,
};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use testkit::ends::Ends as _;

impl Running {
    /// Waits for its end, which is no failure.
    fn ends(mut self) {
        let mut child = self.0.take().expect("it runs");
        let start = Instant::now();
        while child.try_wait().expect("it is a child").is_none() {
            assert!(start.elapsed() < TEST_TIMEOUT, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
        assert!(child.ends().success());
    }
}

/// A host that writes `count` bytes in pieces, `pause` after each, and then ends its direction.
fn write(mut stream: &TcpStream, count: u64, salt: u64, pause: Duration) {
    let bytes: Vec<u8> = (0..count).map(|at| byte(at, salt)).collect();
    for piece in bytes.chunks(20_000) {
        stream.write_all(piece).expect("it is open");
        thread::sleep(pause);
    }
    stream.shutdown(Shutdown::Write).expect("it is open");
}

/// A host that reads to the end, slowly if it has a `pause`.
fn read(stream: &TcpStream, salt: u64, pause: Duration) -> u64 {
    let mut stream = stream.try_clone().expect("a descriptor");
    read_whole(&mut stream, |at| byte(at, salt), |_| thread::sleep(pause))
}

#[test]
fn root_connections_go_on_in_the_process_that_takes_over() {
    const COUNT: u64 = 1_500_000;
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let listeners = SERVERS.map(|address| net.listen(SERVER, address));
    let mut proxy = net.proxy(&["--from-servers"]);
    let (ended, served) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let mut hosts = Vec::new();
        for n in 0..24_u64 {
            let (client, server) = net.pair(&listeners[n as usize % 2]);
            let (up, down) = (2 * n, 2 * n + 1);
            // Some write all at once to who reads slowly, some slowly, and some have ended their direction long before.
            let pause = |slow: bool| Duration::from_millis(if slow { 200 } else { 10 });
            setsockopt(&client, sockopt::RcvBuf, &(32 << 10)).expect("it can be set");
            for (stream, mine, other, count) in
                [(client, up, down, COUNT), (server, down, up, if n % 4 == 3 { 1_000 } else { COUNT })]
            {
                hosts.push((
                    if mine == up && n % 4 == 3 { 1_000 } else { COUNT },
                    scope.spawn(move || {
                        thread::scope(|scope| {
                            scope.spawn(|| write(&stream, count, mine, pause(n % 3 == 0)));
                            read(&stream, other, pause(n % 3 == 1))
                        })
                    }),
                ));
            }
        }
        let (mut idle, mut idle_too) = net.pair(&listeners[0]);
        exchange(&mut idle, &mut idle_too);
        // One that never rests tells for how long bytes stand still.
        let (mut one, mut other) = net.pair(&listeners[1]);
        let pulse = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !ended.load(Relaxed) {
                let start = Instant::now();
                exchange(&mut one, &mut other);
                longest = longest.max(start.elapsed());
            }
            (longest, one, other)
        });
        // New connections all the while.
        let short = scope.spawn(|| {
            let listener = net.listen(SERVER, SERVERS[0]);
            while !ended.load(Relaxed) {
                let (mut one, mut other) = net.pair(&listener);
                exchange(&mut one, &mut other);
                served.fetch_add(1, Relaxed);
            }
        });
        for turn in 0..3 {
            let start = Instant::now();
            let next = net.proxy(&["--from-servers", "--take-over"]);
            std::mem::replace(&mut proxy, next).ends();
            println!("taken over in {:?} after {} connections", start.elapsed(), served.load(Relaxed));
            exchange(&mut idle, &mut idle_too);
            let open = net.status().totals.open;
            assert!(open >= 10, "turn {turn}: {open}");
        }
        ended.store(true, Relaxed);
        short.join().expect("all connections are served");
        let (longest, ..) = pulse.join().expect("it goes on");
        println!("bytes stood still for {longest:?} at most");
        assert!(longest < Duration::from_secs(2), "{longest:?}");
        for (expected, host) in hosts {
            assert_eq!(host.join().expect("every byte passes once"), expected);
        }
        exchange(&mut idle, &mut idle_too);
        let status = net.until("all but one have ended", |status| status.totals.open == 1);
        assert_eq!((status.totals.reset, status.totals.internal_errors), (0, 0), "{status:?}");
    });
    let tables = net.on_router("nft", &["list", "tables"]);
    assert_eq!(tables.lines().count(), 1, "{tables}");
    proxy.end(Signal::SIGTERM);
    net.is_clean_again(&before);
}

/// Takes part in a hand-over as far as these messages, in the order in which the proxy wants them, and then says nothing for a while.
fn pretend(net: &Net, says: &[&str]) {
    net.inside(ROUTER, || {
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::empty(), None).expect("root may");
        let index = nix::net::if_::if_nametoindex("ran").expect("it is there");
        let name = UnixAddr::new_abstract(format!("ranway/proxy-heir/{index}").as_bytes()).expect("a name");
        connect(socket.as_raw_fd(), &name).expect("the proxy waits for heirs");
        let mut buffer = vec![0; 1 << 17];
        // Descriptors that nobody asks for are closed.
        let mut hear = || recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).expect("it is open");
        assert!(hear() > 100, "an offer");
        for say in says {
            let said = [&(say.len() as u32).to_le_bytes(), say.as_bytes()].concat();
            send(socket.as_raw_fd(), &said, MsgFlags::empty()).expect("it is open");
        }
        if says.is_empty() {
            return;
        }
        // A proxy that is killed with messages unread resets the connection.
        while recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()).is_ok_and(|count| count > 0) {}
    });
}

#[test]
fn root_a_proxy_whose_heir_gives_up_goes_on() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let path = net.dir.path().join("reports").display().to_string();
    let reports = format!("recording:unix:{path}");
    let proxy = net.proxy(&["--reports", &reports, "--port", "5090"]);
    let _cell = Cell::start(&path, 40.0);
    // Its options do not fit.
    net.on_router("ip", &["link", "add", "more", "type", "veth", "peer", "name", "more0"]);
    for (wan, port, why) in [
        ("wan", "5080", "listens at port 5090"),
        ("more", "5090", "has the interfaces wan, ran"),
        ("no", "5090", "`no`"),
    ] {
        let output = net.fails(&["--take-over", "--wan", wan, "--ran", "ran", "--port", port]);
        assert!(!output.status.success() && text(&output.stderr).contains(why), "{}", text(&output.stderr));
    }
    let (client, server) = net.pair(&listener);
    let (mut idle, mut idle_too) = net.pair(&listener);
    thread::scope(|scope| {
        scope.spawn(|| write(&server, 20_000_000, 3, Duration::from_millis(5)));
        let reading = scope.spawn(|| read(&client, 3, Duration::ZERO));
        // One goes at once, one speaks out of order, and one has all it needs but does not say so, and may be dead.
        for says in [&[][..], &["\"Taken\""], &["{"], &["\"Ready\""]] {
            pretend(&net, says);
            exchange(&mut idle, &mut idle_too);
            net.until("it accepts", |status| status.accepting);
        }
        assert_eq!(reading.join().expect("every byte passes once"), 20_000_000);
        client.shutdown(Shutdown::Write).expect("it is open");
    });
    let (mut one, mut other) = net.pair(&listener);
    exchange(&mut one, &mut other);
    let promised = |status: &services::proxy::Status| status.connections.iter().any(|one| one.promised_mbps.is_some());
    other.write_all(&[0; 100_000]).expect("it is open");
    one.read_exact(&mut [0; 100_000]).expect("it is open");
    let status = net.until("RAPID limits flows again", promised);
    assert_eq!((status.totals.reset, status.totals.internal_errors), (0, 0), "{status:?}");
    proxy.end(Signal::SIGTERM);
}

#[test]
fn root_a_signal_starts_a_successor_that_has_reports_metrics_and_log() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let place = |name: &str| net.dir.path().join(name).display().to_string();
    let (path, log) = (place("reports"), place("log"));
    let reports = format!("recording:unix:{path}");
    let options = ["--reports", &reports, "--metrics", "127.0.0.1:9199", "--connection-log", &log];
    let before = net.traces();
    let (mut proxy, mut said) = {
        let args = [&["proxy", "--wan", "wan", "--ran", "ran", "--drain", "300 ms"][..], &options].concat();
        let mut command = net.command(ROUTER, env!("CARGO_BIN_EXE_ranway"));
        let mut child = command.args(args).stderr(Stdio::piped()).spawn().expect("it starts");
        let said = child.stderr.take().expect("it is piped");
        (Running(Some(child)), said)
    };
    net.until("it accepts", |status| status.accepting);
    let (mut one, mut other) = net.pair(&listener);
    let (mut last, mut last_too) = net.pair(&listener);
    exchange(&mut one, &mut other);
    kill(proxy.pid(), Signal::SIGUSR2).expect("it runs");
    assert!(proxy.0.as_mut().expect("it runs").ends().success());
    let _cell = {
        let start = Instant::now();
        while !std::fs::exists(&path).expect("a folder")
            || net.on_router("curl", &["-s", "127.0.0.1:9199/metrics"]).is_empty()
        {
            assert!(start.elapsed() < TEST_TIMEOUT, "the successor has no reports or no metrics");
            thread::sleep(Duration::from_millis(20));
        }
        Cell::start(&path, 40.0)
    };
    thread::scope(|scope| {
        scope.spawn(|| write(&other, 10_000_000, 5, Duration::ZERO));
        assert_eq!(read(&one, 5, Duration::ZERO), 10_000_000);
    });
    let promised = |status: &services::proxy::Status| status.connections.iter().any(|one| one.promised_mbps.is_some());
    net.until("RAPID limits a flow that it has not seen begin", promised);
    one.shutdown(Shutdown::Write).expect("it is open");
    exchange(&mut last, &mut last_too);
    net.until("one has ended", |status| status.totals.closed == 1);
    let successor = net.on_router("pgrep", &["-f", &format!("{log} --take-over")]);
    let pid = nix::unistd::Pid::from_raw(successor.trim().parse().unwrap_or_else(|_| panic!("{successor}")));
    kill(pid, Signal::SIGTERM).expect("it runs");
    net.is_clean_again(&before);
    let mut text = String::new();
    said.read_to_string(&mut text).expect("it is text");
    for part in ["2 connections were handed over", "with 2 of the process before, metrics at"] {
        assert!(text.contains(part), "{text}");
    }
    let logged = std::fs::read_to_string(&log).expect("it was written");
    assert_eq!(logged.lines().count(), 1, "{logged}");
}

#[test]
fn root_a_local_user_is_neither_believed_nor_in_the_way() {
    const SQUAT: &str = "
import socket, sys
index, sockets = sys.argv[1], []
for n in range(8):
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.bind('\\0ranway/proxy-heir/' + index + ('/%d' % n if n else ''))
    one.listen(1)
    sockets.append(one)
print('bound', flush=True)
import select
while True:
    for one in select.select(sockets, [], [])[0]:
        stream, _ = one.accept()
        stream.send(b'\\x02\\0\\0\\0{}')
";
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let index = net.inside(ROUTER, || nix::net::if_::if_nametoindex("ran").expect("it is there"));
    // In a user namespace of its own, it has all rights by its own account.
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "--user", "--map-root-user"];
    let mut command = net.command(ROUTER, "setpriv");
    command.args(nobody).args(["python3", "-c", SQUAT]).arg(index.to_string()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = [0; 6];
    if child.stdout.take().expect("it is piped").read_exact(&mut said).is_err() {
        // The kernel permits no such namespaces.
        let _ = child.wait();
        return;
    }
    let squatter = Running(Some(child));
    let proxy = net.proxy(&["--take-over"]);
    let (mut one, mut other) = net.pair(&listener);
    exchange(&mut one, &mut other);
    drop(squatter);
    thread::sleep(Duration::from_millis(1_200));
    let _next = net.proxy(&["--take-over"]);
    proxy.ends();
    exchange(&mut one, &mut other);
}

#[test]
fn root_a_proxy_that_is_killed_while_it_hands_over_leaves_nothing() {
    let Some(net) = Net::new() else { return };
    let settings = || net.on_router("sysctl", &["net.ipv4.tcp_early_demux", "net.ipv4.tcp_mtu_probing"]);
    let (before, untouched) = (net.traces(), settings());
    let proxy = net.proxy(&[]);
    assert_ne!(settings(), untouched);
    thread::scope(|scope| {
        // It has everything, and has not said so.
        scope.spawn(|| pretend(&net, &["\"Ready\""]));
        thread::sleep(Duration::from_secs(2));
        assert!(!net.status().accepting);
        proxy.end(Signal::SIGKILL);
    });
    net.is_clean_again(&before);
    assert_eq!(settings(), untouched);
}
