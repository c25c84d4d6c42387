//! End-to-end tests of `ranway proxy`: bytes, and the memory that they take. Tests that need root report when they are skipped.

use crate::common::proxied::*;
use crate::common::text;
use etherparse::{PacketHeaders, TcpOptionElement, TransportHeader};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket, sockopt,
};
use services::proxy::{Connection, Settings};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn root_a_reader_that_stops_stops_the_writer_within_the_bounds_of_memory() {
    let Some(net) = Net::new() else { return };
    let path = net.dir.path().join("reports").display().to_string();
    let reports = format!("recording:unix:{path}");
    let options = ["--receive-buffer", "256 KiB", "--buffer", "64 KiB", "--unsent", "64 KiB", "--reports", &reports];
    let listener = net.listen(SERVER, SERVERS[0]);
    let block: Vec<u8> = (0..1 << 16).map(|n| byte(n, 3)).collect();
    for (to_ue, limits) in [(false, false), (true, false), (true, true)] {
        let _proxy = net.proxy(if limits { &options[..] } else { &options[..6] });
        let _cell = limits.then(|| Cell::start(&path, 40.0));
        let (client, server) = net.pair(&listener);
        let (mut writer, mut reader) = if to_ue { (server, client) } else { (client, server) };
        // The hosts' own buffers are not the proxy's.
        setsockopt(&reader, sockopt::RcvBuf, &(64 << 10)).expect("it can be set");
        setsockopt(&writer, sockopt::SndBuf, &(64 << 10)).expect("it can be set");
        // The proxy's grow while bytes pass.
        thread::scope(|scope| {
            scope.spawn(|| (0..32).for_each(|_| writer.write_all(&block).expect("it is open")));
            reader.read_exact(&mut vec![0; 32 * block.len()]).expect("it is open");
        });
        writer.set_write_timeout(Some(Duration::from_secs(1))).expect("a time");
        let mut written = 0;
        while let Ok(count) = writer.write(&block[written as usize % block.len()..]) {
            written += count as u64;
            assert!(written < 64 << 20, "nobody stops the writer");
        }
        let connection = &net.status().connections[0];
        eprintln!("{written} bytes written; {connection:?}");
        assert_eq!(connection.promised_mbps.is_some(), limits, "{connection:?}");
        // Receive buffer (doubled for overhead), pipe and unsent data of the proxy.
        let most = (512 + 64 + 128) << 10;
        assert!(connection.waiting() < most, "{connection:?}");
        // Buffers of the hosts, doubled as well.
        assert!(written < most + (384 << 10), "{written}, {connection:?}");
        // All of it arrives in the end.
        writer.shutdown(Shutdown::Write).expect("it is open");
        let read = read_whole(&mut reader, |at| block[at as usize % block.len()], |_| {});
        assert_eq!(read, written);
    }
}

/// What one host does with its end of a connection: it sends `count` bytes in random pieces with pauses, reads what comes, and
/// ends its direction before or after the other, or resets the connection at some piece. Returns what it has written and read, and
/// whether it read to the end. A host whose peer `may_reset` may wait for ever: if data is lost before a reset, the reset counts
/// only after a challenge acknowledgement (RFC 5961, section 3.2), which can be lost as well, and is not repeated.
fn converse(
    mut stream: TcpStream,
    mut dice: Dice,
    (salt, peer_salt): (u64, u64),
    resets: bool,
    may_reset: bool,
) -> (u64, u64, bool) {
    let count = dice.below(400_000);
    let reading = stream.try_clone().expect("a descriptor");
    let pause = dice.below(2) == 0;
    let reader = thread::spawn(move || {
        let (mut read, mut buffer, mut stream) = (0, vec![0; 20_000], reading);
        loop {
            let room = 1 + (read * 7) as usize % (buffer.len() - 1);
            match stream.read(&mut buffer[..room]) {
                Ok(0) => return (read, true),
                Ok(count) => {
                    for &found in &buffer[..count] {
                        assert_eq!(found, byte(read, peer_salt), "at {read}");
                        read += 1;
                    }
                    if pause && read % 5 == 0 {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return (read, false),
                Err(error) if error.kind() == ErrorKind::WouldBlock && may_reset => return (read, false),
                Err(error) => panic!("{error} after {read} bytes"),
            }
        }
    });
    let mut written = 0;
    while written < count {
        let piece = (1 + dice.below(30_000)).min(count - written);
        let bytes: Vec<u8> = (0..piece).map(|n| byte(written + n, salt)).collect();
        // A piece may have left in part when the other end resets the connection.
        let Ok(sent) = stream.write(&bytes) else { break };
        written += sent as u64;
        if dice.below(8) == 0 {
            thread::sleep(Duration::from_millis(dice.below(10)));
        }
        if resets && dice.below(6) == 0 {
            setsockopt(&stream, sockopt::Linger, &libc_linger()).expect("it can be set");
            let _ = stream.shutdown(Shutdown::Read);
            drop(stream);
            let (read, _) = reader.join().expect("the bytes are right");
            return (written, read, false);
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let (read, whole) = reader.join().expect("the bytes are right");
    (written, read, whole && written == count)
}

#[test]
fn root_every_byte_passes_once_and_in_order_whatever_the_hosts_do() {
    every_byte_passes_once_and_in_order_whatever_the_hosts_do(false);
}

#[test]
fn root_every_byte_passes_once_and_in_order_with_the_limits_of_rapid() {
    every_byte_passes_once_and_in_order_whatever_the_hosts_do(true);
}

fn every_byte_passes_once_and_in_order_whatever_the_hosts_do(limits: bool) {
    let Some(net) = Net::new() else { return };
    // Each host loses some of what comes from the others. A reset that is lost is not repeated to a host that only listens.
    const LOSS: &str = "add table inet loss
        add chain inet loss in { type filter hook prerouting priority raw - 1; }
        add rule inet loss in iifname != lo tcp flags & rst == 0 numgen random mod 100 < 3 counter drop";
    for host in [UE, ROUTER, SERVER] {
        net.nft(host, LOSS);
    }
    let path = net.dir.path().join("reports").display().to_string();
    let reports = ["--reports", &format!("recording:unix:{path}")];
    let reports = if limits { &reports[..] } else { &[] };
    // A UE whose reset was lost (see `converse`) leaves a half-closed connection, which must end while the test still waits.
    let settings = ["--buffer", "32 KiB", "--receive-buffer", "64 KiB", "--half-closed-timeout", "15 s"];
    let _proxy = net.proxy(&[&settings[..], reports].concat());
    let _cell = limits.then(|| Cell::start(&path, 40.0));
    let listeners = [net.listen(SERVER, SERVERS[0]), net.listen(SERVER, SERVERS[1])];
    let has_windows = ebpf::rapid::check().is_ok();
    let is_limited =
        |one: &&Connection| one.promised_mbps.is_some() && (one.radio_congestion.starts_with("rapid") || !has_windows);
    let mut limited = BTreeSet::new();
    let mut conversations = Vec::new();
    for seed in 1..=60_u64 {
        let resets = seed % 4 == 0;
        let (client, server) = net.pair(&listeners[seed as usize % 2]);
        let (up, down) = (seed * 2, seed * 2 + 1);
        conversations.push([(client, (up, down), resets, false), (server, (down, up), false, resets)].map(
            |(stream, salts, resets, may_reset)| {
                let dice = Dice(salts.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
                thread::spawn(move || converse(stream, dice, salts, resets, may_reset))
            },
        ));
        if limits {
            limited.extend(net.status().connections.iter().filter(is_limited).map(|one| one.ue.is_ipv4()));
        }
    }
    assert!(!limits || limited.len() == 2, "RAPID limits flows of both IP versions: {limited:?}");
    let mut whole = 0;
    for (seed, ends) in (1..).zip(conversations) {
        let [one, other] = ends.map(|end| end.join().expect("right bytes"));
        // An end means that everything is there; a reset, that something may be missing.
        if one.2 && other.2 {
            assert_eq!((one.0, one.1), (other.1, other.0), "seed {seed}");
            whole += 1;
        } else {
            assert!(seed % 4 == 0, "seed {seed}: {one:?} {other:?}");
            assert!(one.1 <= other.0 && other.1 <= one.0, "seed {seed}: {one:?} {other:?}");
        }
    }
    for host in [UE, ROUTER, SERVER] {
        let output = net.command(host, "nft").args(["list", "chain", "inet", "loss", "in"]).output().expect("nft runs");
        let said = text(&output.stdout);
        let lost =
            said.split_once("counter packets ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u32>().ok());
        println!("{host} lost {lost:?} packets");
        assert!(lost.is_some_and(|lost| lost > 10), "{said}");
    }
    assert!(whole >= 45, "{whole}");
    let totals = net.until("all have ended", |status| status.totals.open == 0).totals;
    // A server whose answers are lost for too long is reached without the proxy.
    let passed = totals.connect_timeouts;
    assert_eq!((totals.from_ue + passed, totals.internal_errors), (60, 0), "{totals:?}");
    assert!(passed <= 5, "{totals:?}");
}

/// Reads and checks all that comes. Returns how many bytes there were, and what [`ending`] returns.
fn read_all(stream: &mut TcpStream, salt: u64) -> (u64, Option<ErrorKind>) {
    let (mut read, mut buffer) = (0, vec![0; 50_000]);
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => return (read, None),
            Ok(count) => count,
            Err(error) => return (read, Some(error.kind())),
        };
        for &found in &buffer[..count] {
            assert_eq!(found, byte(read, salt), "at {read}");
            read += 1;
        }
    }
}

#[test]
fn root_a_reset_does_not_overtake_the_answer_before_it() {
    const EACH: usize = 40;
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--from-servers"]);
    let mut connections = 0;
    for (from, to, addresses) in [(UE, SERVER, SERVERS), (SERVER, UE, UES)] {
        let listeners = addresses.map(|address| net.listen(to, address));
        // With and without a FIN before the reset.
        for (count, ends) in [(500, false), (3_000, false), (10_000, false), (10_000, true)] {
            let answer: Vec<u8> = (0..count).map(|at| byte(at, 6)).collect();
            for n in 0..EACH {
                let listener = &listeners[n % 2];
                let opener = net.connect(from, listener.local_addr().expect("an address"));
                let other = accept(listener);
                let (mut asking, mut answering) = if n % 4 < 2 { (opener, other) } else { (other, opener) };
                asking.write_all(&[1; 1_000]).expect("it is open");
                answering.read_exact(&mut [0; 10]).expect("it arrives");
                answering.peek(&mut [0]).expect("there is more");
                answering.write_all(&answer).expect("it is open");
                if ends {
                    answering.shutdown(Shutdown::Write).expect("it is open");
                }
                // Closing with unread data resets the connection, and discards what is unsent.
                while netio::sys::tcp_info(answering.as_fd()).expect("it is a connection").notsent_bytes > 0 {
                    thread::yield_now();
                }
                drop(answering);
                let end = (!ends).then_some(ErrorKind::ConnectionReset);
                assert_eq!(read_all(&mut asking, 6), (count, end), "from {from}: {n}");
                connections += 1;
            }
        }
    }
    let totals = net.until("all have ended", |status| status.totals.open == 0).totals;
    assert_eq!((totals.reset, totals.internal_errors), (connections, 0), "{totals:?}");
}

/// More bytes than the kernel of a reader takes that does not read, and fewer than it and the proxy take together.
const MUCH: u64 = 190_000;

/// Returns a reader that has not read yet. The proxy has [`MUCH`] bytes for it, and the writer has reset the connection.
fn unread_and_reset(net: &Net, listener: &TcpListener, by_server: bool) -> TcpStream {
    let (client, server) = net.pair(listener);
    let (mut writer, reader) = if by_server { (server, client) } else { (client, server) };
    let bytes: Vec<u8> = (0..MUCH).map(|at| byte(at, 8)).collect();
    writer.write_all(&bytes).expect("there is room");
    net.until("it has taken all", |status| {
        status.connections.iter().all(|one| one.arrived.max(one.from_ue_bytes) >= MUCH)
    });
    reset(writer);
    reader
}

#[test]
fn root_what_came_before_a_reset_waits_for_a_reader_and_not_for_ever() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    // In its sockets, and in its pipes.
    for unsent in ["1 MiB", "32 KiB"] {
        let proxy = net.proxy(&["--unsent", unsent]);
        for by_server in [true, false] {
            let mut reader = unread_and_reset(&net, &listener, by_server);
            thread::sleep(Duration::from_secs(1));
            let end = read_all(&mut reader, 8);
            assert_eq!(end, (MUCH, Some(ErrorKind::ConnectionReset)), "unsent {unsent}, by server: {by_server}");
        }
        net.until("both have ended", |status| status.totals.open == 0);
        // These read too late.
        let mut readers = [true, false].map(|by_server| unread_and_reset(&net, &listener, by_server));
        let start = Instant::now();
        let totals = net.until("both have ended", |status| status.totals.open == 0).totals;
        let waited = start.elapsed();
        assert!(waited > Duration::from_secs(4) && waited < Duration::from_secs(15), "{waited:?}");
        assert_eq!((totals.reset, totals.internal_errors), (4, 0), "{totals:?}");
        for reader in &mut readers {
            let (read, end) = read_all(reader, 8);
            assert_eq!(end, Some(ErrorKind::ConnectionReset), "after {read} bytes");
            assert!(read < MUCH);
        }
        // A FIN would say that this was all.
        let mut readers = [true, false].map(|by_server| unread_and_reset(&net, &listener, by_server));
        thread::sleep(Duration::from_millis(200));
        assert_eq!(net.status().totals.open, 2);
        proxy.end(Signal::SIGKILL);
        for reader in &mut readers {
            let (read, end) = read_all(reader, 8);
            assert_eq!(end, Some(ErrorKind::ConnectionReset), "after {read} bytes");
            assert!(read < MUCH);
        }
    }
}

#[test]
fn root_resets_of_both_sides_at_once_end_a_connection_at_once() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    for n in 0..40 {
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        for side in [&mut client, &mut server] {
            side.write_all(&[1; 10_000]).expect("there is room");
        }
        let (first, second) = if n % 2 == 0 { (client, server) } else { (server, client) };
        reset(first);
        reset(second);
    }
    let start = Instant::now();
    let totals = net.until("all have ended", |status| status.totals.open == 0).totals;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!((totals.established, totals.reset, totals.internal_errors), (40, 40, 0), "{totals:?}");
}

#[test]
fn root_windows_can_be_as_large_as_the_receive_buffer() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--receive-buffer", "1 MiB"]);
    for family in [0, 1] {
        let (mut client, mut server) = net.pair(&net.listen(SERVER, SERVERS[family]));
        exchange(&mut client, &mut server);
        let legs = net.on_router("ss", &["-Htni", "state", "established"]);
        let scales: Vec<u32> = legs
            .split("wscale:")
            .skip(1)
            .map(|rest| rest.split([',', ' ']).nth(1).and_then(|own| own.parse().ok()).expect("its own scale"))
            .collect();
        // The largest window is 65,535 bytes, shifted by so many bits.
        assert!(scales.len() >= 2 && scales.iter().all(|&scale| 65_535 << scale >= 1_000_000), "{legs}");
    }
}

#[test]
fn root_thousands_of_connections_pass_at_once() {
    let Some(net) = Net::new() else { return };
    // This process has both ends of each.
    let count = services::proxy::permitted_connections(&Settings {
        max_connections: 10_000,
        ..Settings::new(&["wan"], &["ran"])
    });
    if count < 10_000 {
        println!("only {count} connections: the limit of open files permits no more");
    }
    let _proxy = net.proxy(&["--max-per-ue", "10000", "--max-per-server", "10000"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let address = listener.local_addr().expect("an address");
    let (accepted, mut connected) = thread::scope(|scope| {
        let accepting = scope.spawn(|| (0..count).map(|_| accept(&listener)).collect::<Vec<_>>());
        let connected: Vec<TcpStream> = net
            .inside(UE, || (0..count).map(|_| patient(TcpStream::connect(address).expect("it is accepted"))).collect());
        (accepting.join().expect("they connect"), connected)
    });
    let mut accepted: Vec<(SocketAddr, TcpStream)> =
        accepted.into_iter().map(|stream| (stream.peer_addr().expect("connected"), stream)).collect();
    accepted.sort_by_key(|(peer, _)| *peer);
    connected.sort_by_key(|stream| stream.local_addr().expect("connected"));
    let status = net.status();
    assert_eq!((status.totals.open, status.connections.len()), (count as u64, count));
    for ((peer, server), client) in accepted.iter_mut().zip(&mut connected) {
        assert_eq!(*peer, client.local_addr().expect("connected"));
        exchange(client, server);
    }
    drop((accepted, connected));
    let status = net.until("all have ended", |status| status.totals.open == 0);
    assert_eq!((status.totals.closed, status.totals.reset), (count as u64, 0));
}

#[test]
fn root_bytes_pass_whatever_mtu_and_offloads_the_interfaces_have() {
    let Some(net) = Net::new() else { return };
    let interfaces = [(UE, "u0"), (ROUTER, "ran"), (ROUTER, "wan"), (SERVER, "s0")];
    let on = |(host, interface): (&str, &str), program: &str, args: &[&str]| {
        let args: Vec<&str> = args.iter().map(|arg| if *arg == "IF" { interface } else { arg }).collect();
        let output = net.command(host, program).args(&args).output().expect("it starts");
        assert!(output.status.success(), "{program} {args:?}: {}", text(&output.stderr));
    };
    let _proxy = net.proxy(&[]);
    let listeners = [0, 1].map(|family| net.listen(SERVER, SERVERS[family]));
    let has_ethtool = net.command(ROUTER, "ethtool").arg("--version").output().is_ok_and(|done| done.status.success());
    testkit::root::has_program(has_ethtool, "ethtool");
    let mut salt = 0;
    for offloads in if has_ethtool { &["off", "on"][..] } else { &["as they are"] } {
        for interface in interfaces.iter().filter(|_| has_ethtool) {
            on(*interface, "ethtool", &["-K", "IF", "tso", offloads, "gso", offloads, "gro", offloads]);
        }
        // Towards the UE and towards the server. The largest that veth has, and the least of IPv6.
        for mtus in [["1280", "9000"], ["65535", "1280"], ["1500", "1500"]] {
            for (interface, mtu) in interfaces.iter().zip([mtus[0], mtus[0], mtus[1], mtus[1]]) {
                on(*interface, "ip", &["link", "set", "dev", "IF", "mtu", mtu]);
            }
            for listener in &listeners {
                let (client, server) = net.pair(listener);
                salt += 2;
                let (up, down) = (salt, salt + 1);
                let [one, other] = [(client, up, down), (server, down, up)].map(|(stream, salt, peer)| {
                    thread::spawn(move || converse(stream, Dice(salt | 1 << 40), (salt, peer), false, false))
                });
                let (one, other) = (one.join().expect("right bytes"), other.join().expect("right bytes"));
                assert_eq!((one.0, one.1), (other.1, other.0), "offloads {offloads}, MTU {mtus:?}");
            }
        }
    }
    // It changes while bytes pass.
    let (mut client, mut server) = net.pair(&listeners[0]);
    thread::scope(|scope| {
        scope.spawn(|| {
            for position in 0..200_u64 {
                let bytes: Vec<u8> = (0..50_000).map(|n| byte(position * 50_000 + n, 9)).collect();
                server.write_all(&bytes).expect("it is open");
            }
            server.shutdown(Shutdown::Write).expect("it is open");
        });
        let change_mtu = |read: u64| {
            if read.is_multiple_of(20) {
                let mtu = if read.is_multiple_of(3) { "1280" } else { "1500" };
                on(interfaces[1], "ip", &["link", "set", "dev", "IF", "mtu", mtu]);
            }
        };
        let read = read_whole(&mut client, |at| byte(at, 9), change_mtu);
        assert_eq!(read, 10_000_000);
    });
    net.until("all have ended", |status| status.totals.open == 1);
    drop((client, server));
    let status = net.until("all have ended", |status| status.totals.open == 0);
    assert_eq!(status.totals.internal_errors, 0);
}

/// A receive buffer that is full of short packets holds less than its window. The kernel drops the rest of a burst, and the sender
/// waits for 0.2 s.
#[test]
fn root_a_burst_finds_room_for_all_of_its_packets() {
    const BYTES: usize = 600_000;
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    for turn in 0..60 {
        let (one, other) = net.pair(&listener);
        let (mut from, mut to) = if turn % 2 == 0 { (one, other) } else { (other, one) };
        let sender = thread::spawn(move || from.write_all(&vec![7; BYTES]).expect("it is read"));
        to.read_exact(&mut vec![0; BYTES]).expect("no reset");
        sender.join().expect("it does not panic");
    }
    let counters = net.on_router("cat", &["/proc/net/netstat"]);
    let mut lines = counters.lines().filter(|line| line.starts_with("TcpExt:")).map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let dropped = names.zip(values).find(|(name, _)| *name == "TCPRcvQDrop").expect("it is counted").1;
    assert_eq!(dropped, "0", "packets were dropped");
}

/// Bytes that the receive buffers of the router take, with the kernel's overhead.
fn received(net: &Net) -> Vec<u64> {
    let said = net.on_router("ss", &["-tmnH"]);
    let shown = said.lines().filter_map(|line| line.split_once("skmem:(r")).map(|(_, shown)| shown);
    shown.map(|shown| shown.split_once(',').and_then(|(bytes, _)| bytes.parse().ok()).expect("a number")).collect()
}

#[test]
fn root_a_reader_that_never_reads_costs_little_memory() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&[]);
    for to_ue in [true, false] {
        let (client, server) = net.pair(&listener);
        let (mut writer, reader) = if to_ue { (server, client) } else { (client, server) };
        setsockopt(&reader, sockopt::RcvBuf, &(8 << 10)).expect("it can be set");
        writer.set_write_timeout(Some(Duration::from_secs(1))).expect("a time");
        while writer.write(&[7; 1 << 16]).is_ok() {}
        let connection = &net.status().connections[0];
        let taken = received(&net);
        eprintln!("{taken:?}, {connection:?}");
        // The kernel's first receive buffer is 128 KiB; the largest would be 2 MiB.
        assert!(taken.iter().all(|&taken| taken < 320 << 10), "{taken:?}");
        assert!(connection.waiting() < 512 << 10, "{connection:?}");
        drop((writer, reader));
        net.until("it has ended", |status| status.totals.open == 0);
    }
}

/// Where packets hold a byte each, their memory is hundreds of times the window.
#[test]
fn root_many_short_packets_take_no_more_than_the_receive_buffer() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&["--receive-buffer", "128 KiB"]);
    let mut pairs: Vec<_> = (0..5).map(|_| net.pair(&listener)).collect();
    for (reader, writer) in &pairs {
        setsockopt(reader, sockopt::RcvBuf, &(8 << 10)).expect("it can be set");
        writer.set_nodelay(true).expect("it is open");
        writer.set_nonblocking(true).expect("it is open");
    }
    let (start, mut most) = (Instant::now(), 0);
    // A busy machine takes longer until the proxy may take no more.
    let is_short = |most| start.elapsed() < Duration::from_secs(if most > 128 << 10 { 10 } else { 60 });
    while is_short(most) {
        for (_, writer) in &mut pairs {
            // Some have no more room.
            (0..10_000).for_each(|_| drop(writer.write(b"x")));
        }
        most = most.max(*received(&net).iter().max().expect("they are open"));
    }
    eprintln!("at most {most} bytes");
    // The kernel uses as much again for its overhead; some packets more may come before the proxy looks. Without that it is 8 MB.
    assert!(most > 128 << 10 && most < 768 << 10, "{most}");
}

/// Packets with gaps between them, of a byte each. They wait for what is missing, and nobody can read them.
#[test]
fn root_short_packets_with_gaps_are_not_kept() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&["--receive-buffer", "128 KiB"]);
    let to = listener.local_addr().expect("it is bound");
    let (mut client, mut server) = net.pair(&listener);
    net.forge(to, |forger| {
        let seen = socket(AddressFamily::Packet, SockType::Datagram, SockFlag::empty(), SockProtocol::EthAll);
        let seen = seen.expect("root may");
        let segment = |sequence| forger.segment([10, 66, 0, 1], sequence);
        forger.send(segment(1).syn().options(&[TcpOptionElement::MaximumSegmentSize(1460)]).expect("it fits"), &[]);
        let answer = loop {
            let mut bytes = [0; 2000];
            let (length, _) = recvfrom::<LinkAddr>(seen.as_raw_fd(), &mut bytes).expect("an answer comes");
            let headers = PacketHeaders::from_ip_slice(&bytes[..length]).ok();
            if let Some(TransportHeader::Tcp(tcp)) = headers.and_then(|headers| headers.transport)
                && (tcp.syn, tcp.ack, tcp.destination_port) == (true, true, 40_000)
            {
                break tcp.sequence_number.wrapping_add(1);
            }
        };
        forger.send(segment(2).ack(answer), &[]);
        for gap in 0..30_000 {
            forger.send(segment(3 + 2 * gap).ack(answer), b"x");
        }
    });
    let most = received(&net).into_iter().max();
    eprintln!("at first {most:?} bytes");
    let start = Instant::now();
    while received(&net).iter().any(|&bytes| bytes > 1 << 20) {
        assert!(start.elapsed() < TEST_TIMEOUT, "{:?}", received(&net));
        thread::sleep(Duration::from_millis(100));
    }
    exchange(&mut client, &mut server);
}
