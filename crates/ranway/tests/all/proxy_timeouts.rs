//! End-to-end tests of `ranway proxy` whose time runs out, whose reports are hostile, or whose tools are missing. Tests that need
//! root report when they are skipped.

use crate::common::proxied::*;
use crate::common::spaces::ip;
use crate::common::text;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The timeout in these tests.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Waits for the end of `stream`, which must be a reset after the timeout and not much later.
fn is_reset_in_time(stream: &mut TcpStream, since: Instant) {
    assert_eq!(ending(stream), Some(ErrorKind::ConnectionReset));
    let waited = since.elapsed();
    assert!(waited >= TIMEOUT && waited < TIMEOUT + Duration::from_secs(5), "{waited:?}");
}

#[test]
fn root_an_idle_connection_is_reset_on_both_sides_and_a_busy_one_goes_on() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--idle-timeout", "2 s"]);
    let listeners = SERVERS.map(|server| net.listen(SERVER, server));
    // Addresses of IPv6 can be used after a while.
    drop(net.pair(&listeners[1]));
    let (mut busy, mut busy_server) = net.pair(&listeners[0]);
    let mut idle = [0, 1, 1].map(|family| net.pair(&listeners[family]));
    // This one has never carried a byte.
    let (untouched, others) = idle.split_last_mut().expect("there are three");
    for (client, server) in &mut *others {
        exchange(client, server);
    }
    let start = Instant::now();
    while start.elapsed() < 2 * TIMEOUT {
        exchange(&mut busy, &mut busy_server);
        thread::sleep(TIMEOUT / 20);
    }
    for (client, server) in others.iter_mut().chain([untouched]) {
        is_reset_in_time(client, start);
        is_reset_in_time(server, start);
    }
    exchange(&mut busy, &mut busy_server);
    let totals = net.status().totals;
    let counted = (totals.idle_timeouts, totals.open, totals.reset, totals.closed);
    assert_eq!(counted, (3, 1, 0, 1), "{totals:?}");
}

#[test]
fn root_a_half_closed_connection_is_reset_unless_bytes_still_pass() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--half-closed-timeout", "2 s"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut whole, mut whole_server) = net.pair(&listener);
    exchange(&mut whole, &mut whole_server);
    let half_closed = |by_client: bool| {
        let (client, server) = net.pair(&listener);
        let (closing, mut other) = if by_client { (client, server) } else { (server, client) };
        closing.shutdown(Shutdown::Write).expect("it is open");
        assert_eq!(ending(&mut other), None);
        (closing, other)
    };
    let start = Instant::now();
    let mut silent = [true, false].map(half_closed);
    let (mut reader, mut writer) = half_closed(true);
    let mut sent = 0;
    while start.elapsed() < 2 * TIMEOUT {
        writer.write_all(&[byte(sent, 3)]).expect("it is open");
        sent += 1;
        thread::sleep(TIMEOUT / 20);
    }
    writer.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(read_whole(&mut reader, |at| byte(at, 3), |_| {}), sent);
    for (closing, other) in &mut silent {
        is_reset_in_time(closing, start);
        // The kernel reports a reset after an end to writers only.
        let error = other.write_all(b"more").expect_err("it is reset");
        assert!([ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&error.kind()), "{error}");
    }
    exchange(&mut whole, &mut whole_server);
    let totals = net.until("one is open", |status| status.totals.open == 1).totals;
    let counted = (totals.half_closed_timeouts, totals.idle_timeouts, totals.closed, totals.reset);
    assert_eq!(counted, (2, 0, 1, 0), "{totals:?}");
}

#[test]
fn root_a_connection_that_was_accepted_early_is_reset_after_the_connect_timeout() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--connect-timeout", "2 s", "--from-servers", "--early-accept", "80"]);
    // Packets to these vanish behind the server and the UE.
    for (host, gateways, network) in [(SERVER, ["10.2.0.2", "fd02::2"], 8), (UE, ["10.1.0.2", "fd01::2"], 9)] {
        let networks = [format!("10.{network}.0.0/24"), format!("fd0{network}::/64")];
        for (gateway, network) in gateways.into_iter().zip(networks) {
            ip(&format!("-n {} route add blackhole {network}", net.space(host)));
            ip(&format!("-n {} route add {network} via {gateway}", net.space(ROUTER)));
        }
    }
    let silent = [(UE, "10.8.0.1:80"), (UE, "[fd08::1]:80"), (SERVER, "10.9.0.1:80"), (SERVER, "[fd09::1]:80")];
    for (from, to) in silent {
        let start = Instant::now();
        is_reset_in_time(&mut net.connect(from, to.parse().expect("an address")), start);
    }
    let totals = net.status().totals;
    let counted = (totals.connect_timeouts, totals.connect_failed, totals.established, totals.open);
    assert_eq!(counted, (4, 0, 0, 0), "{totals:?}");
}

fn micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_micros()
}

/// A report on the first UE whose fields, but for those of `changes`, are plausible.
fn report(changes: &[(&str, &str)]) -> String {
    let (time, address) = (micros().to_string(), format!("\"{}\"", UES[0]));
    let plausible = [
        ("time_us", time.as_str()),
        ("interval_us", "5000"),
        ("cell", "1"),
        ("rnti", "61"),
        ("address", &address),
        ("n_prb", "100"),
        ("slots", "5"),
        ("cell_prbs", "0"),
        ("active_ues", "0"),
        ("prbs", "0"),
        ("acked_bits", "0"),
        ("blocks", "0"),
        ("failed", "0"),
        // A tenth of a Mbit/s for each.
        ("bits_per_prb", "400"),
    ];
    let value = |name, value| changes.iter().find(|(of, _)| *of == name).map_or(value, |(_, changed)| *changed);
    let mut fields: Vec<String> =
        plausible.iter().map(|(name, of)| format!("\"{name}\":{}", value(*name, *of))).collect();
    let more = changes.iter().filter(|(name, _)| plausible.iter().all(|(of, _)| of != name));
    fields.extend(more.map(|(name, value)| format!("\"{name}\":{value}")));
    format!("{{{}}}\n", fields.join(","))
}

/// Lines that no cell would send, and reports that are well-formed and absurd.
fn hostile() -> Vec<Vec<u8>> {
    let future = (micros() + 3_600_000_000).to_string();
    let reports = [
        &[("time_us", "0")][..],
        &[("time_us", future.as_str())],
        &[("time_us", "18446744073709551")],
        &[("time_us", "18446744073709551615")],
        &[("time_us", "-1")],
        &[("time_us", "1e400")],
        &[("interval_us", "0")],
        &[("interval_us", "3600000000")],
        &[("interval_us", "18446744073709551615")],
        &[("interval_us", "1"), ("slots", "4294967295"), ("n_prb", "65535"), ("bits_per_prb", "1000000")],
        &[("interval_us", "1"), ("acked_bits", "18446744073709551615"), ("prbs", "500")],
        &[("n_prb", "0"), ("slots", "0")],
        &[("n_prb", "65536")],
        &[("bits_per_prb", "NaN")],
        &[("bits_per_prb", "-0.0")],
        &[("bits_per_prb", "1e-300")],
        &[("bits_per_prb", "0")],
        &[("bits_per_prb", "null"), ("acked_bits", "0"), ("prbs", "0")],
        &[("queue_bytes", "18446744073709551615")],
        &[("active_ues", "65535"), ("cell_prbs", "500")],
        &[("failed", "4294967295"), ("blocks", "1")],
        &[("blocks", "4294967295"), ("failed", "4294967295")],
        &[("mcs", "255"), ("layers", "255"), ("cqi", "255")],
        &[("address", "\"10.1.0.999\"")],
        &[("address", "[]")],
        // A UE of which each address is the second one of the other, or of itself.
        &[("second_address", "\"10.1.0.2\"")],
        &[("second_address", "\"fd01::2\"")],
        &[("address", "\"fd01::2\""), ("second_address", "\"10.1.0.2\"")],
        &[("address", "\"::\""), ("second_address", "\"255.255.255.255\"")],
        &[("cell", "18446744073709551615"), ("rnti", "65535")],
    ];
    let mut lines: Vec<Vec<u8>> = reports.iter().map(|changes| report(changes).into_bytes()).collect();
    let nested = [vec![b'['; 100_000], b"\n".to_vec()].concat();
    let long = [report(&[]).trim_end().as_bytes(), &vec![b' '; 3 << 20], b"x\n"].concat();
    let name = [b"{\"", &vec![b'a'; 500_000][..], b"\":1}\n"].concat();
    let plain = ["\n", "{}\n", "null\n", "{\"time_us\":\n", "\u{0}\u{0}\n", "{\"time_us\":1}{\"time_us\":1}\n"];
    lines.extend([nested, long, name, b"\xff\xfe\xfd\n".to_vec()]);
    lines.extend(plain.map(|line| line.as_bytes().to_vec()));
    lines
}

/// Sends hostile lines, random ones and mutilated reports, each line after another number of bytes.
fn attack(path: &str, dice: &mut Dice) {
    let mut socket = UnixStream::connect(path).expect("the proxy has made it");
    let mut send = |bytes: &[u8]| socket.write_all(bytes).expect("faults do not end it");
    for line in hostile() {
        send(&line);
    }
    for _ in 0..300 {
        let mut line: Vec<u8> = (0..dice.below(200)).map(|_| dice.below(256) as u8).collect();
        line.push(b'\n');
        send(&line);
        let mut line = report(&[]).into_bytes();
        for _ in 0..=dice.below(3) {
            let at = dice.below(line.len() as u64) as usize;
            line[at] = dice.below(256) as u8;
        }
        send(&line);
    }
    // A flood for UEs that there are not, and half a line at the end.
    for n in 0..20_000_u32 {
        let (address, rnti) = (format!("\"10.200.{}.{}\"", n >> 8, n & 255), (n & 0xffff).to_string());
        send(report(&[("address", &address), ("rnti", &rnti)]).as_bytes());
    }
    send(report(&[]).split_at(40).0.as_bytes());
}

/// Sets a flag in the end.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn root_hostile_reports_cost_no_byte_and_good_ones_count_afterwards() {
    let Some(net) = Net::new() else { return };
    let path = net.dir.path().join("reports").display().to_string();
    let _proxy = net.proxy(&["--reports", &format!("recording:unix:{path}")]);
    let pairs = SERVERS.map(|server| net.pair(&net.listen(SERVER, server)));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // After a fault, too, the threads end.
        let _ends = Ends(&stop);
        let transfers = pairs.map(|(mut client, mut server)| {
            let stop = &stop;
            let sender = scope.spawn(move || {
                let (mut sent, block): (u64, Vec<u8>) = (0, (0..1 << 16).map(|n| byte(n, 7)).collect());
                while !stop.load(Relaxed) {
                    server.write_all(&block).expect("it is open");
                    sent += block.len() as u64;
                }
                server.shutdown(Shutdown::Write).expect("it is open");
                sent
            });
            (sender, scope.spawn(move || read_whole(&mut client, |at| byte(at & 0xffff, 7), |_| {})))
        });
        let attackers = [1, 2, 3].map(|seed| {
            let path = &path;
            scope.spawn(move || attack(path, &mut Dice(seed)))
        });
        let before = net.status().totals.to_ue_bytes;
        for attacker in attackers {
            attacker.join().expect("the proxy reads on");
        }
        net.until("bytes pass", |status| status.totals.to_ue_bytes > before + (1 << 20));
        // Reports that what is delivered contradicts would not be used.
        net.limit_radio(40.0);
        let _cell = Cell::start(&path, 40.0);
        // IPv6 is still the second address of the same UE or has no reports.
        let promised = net.until("good reports count", |status| {
            let of_ue = |one: &&services::proxy::Connection| one.ue.ip().to_string() == UES[0];
            let promised = status.connections.iter().find(of_ue).and_then(|one| one.promised_mbps);
            promised.is_some_and(|mbps| (10.0..44.0).contains(&mbps))
        });
        println!("{:?}", promised.connections.iter().map(|one| (one.ue, one.promised_mbps)).collect::<Vec<_>>());
        stop.store(true, Relaxed);
        for (sender, reader) in transfers {
            assert_eq!(sender.join().expect("it is open"), reader.join().expect("the bytes are right"));
        }
    });
    let totals = net.until("they have ended", |status| status.totals.open == 0).totals;
    assert_eq!((totals.closed, totals.reset, totals.internal_errors), (2, 0, 0), "{totals:?}");
}

/// Puts a program `nft` with these lines of shell, or none, into a directory, and `ip` beside it if `has_ip`.
fn tools(directory: &Path, nft: Option<&str>, has_ip: bool) {
    fs::create_dir(directory).expect("it is new");
    if has_ip {
        let found = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"].into_iter().find(|path| Path::new(path).exists());
        symlink(found.expect("the tests use it"), directory.join("ip")).expect("it is new");
    }
    if let Some(lines) = nft {
        fs::write(directory.join("nft"), format!("#!/bin/sh\n{lines}\n")).expect("it is new");
        fs::set_permissions(directory.join("nft"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
}

#[test]
fn root_a_missing_or_failing_tool_is_one_line_and_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let start = |name: &str, nft, has_ip| {
        let directory = net.dir.path().join(name);
        tools(&directory, nft, has_ip);
        let mut command = net.command(ROUTER, "env");
        command.arg(format!("PATH={}", directory.display())).arg(env!("CARGO_BIN_EXE_ranway"));
        command.args(["proxy", "--wan", "wan", "--ran", "ran"]).output().expect("it starts")
    };
    let fails = "echo 'Error: Could not process rule: Operation not supported' >&2\necho more >&2\nexit 1";
    let kernel = "error: this kernel cannot intercept connections (nftables with tproxy, socket and log is needed): ";
    for (name, nft, has_ip, why) in [
        ("no-nft", None, true, "error: `nft` is missing: install nftables".to_owned()),
        ("no-ip", Some("exit 0"), false, "error: `ip` is missing: install iproute2".to_owned()),
        ("failing", Some(fails), true, format!("{kernel}Error: Could not process rule: Operation not supported")),
        ("silent", Some("exit 1"), true, format!("{kernel}nft failed")),
    ] {
        let output = start(name, nft, has_ip);
        assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(2), why.as_str()), "{name}");
        assert_eq!(net.traces(), before, "{name}");
    }
    // This one permits everything, reads the rules, and makes no table: what has been done by then is undone.
    let output = start("no-table", Some("[ $1 = -c ] && exit 0\nread -r line\nread -r line\nexit 1"), true);
    let why = "error: run `nft -i`: it did not make its table";
    assert_eq!((output.status.code(), text(&output.stderr).trim()), (Some(1), why));
    assert_eq!(net.traces(), before);
}

/// Readers that take some data, so that much may be on its way to them, and then stop.
#[test]
fn root_readers_that_have_stopped_take_no_more_memory_than_is_permitted() {
    const STOPPED: usize = 60;
    const PERMITTED: u64 = 16 << 20;
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--threads", "1", "--memory", "16 MiB"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut busy, mut busy_server) = net.pair(&listener);
    let stopped: Vec<TcpStream> = (0..STOPPED)
        .map(|_| {
            let (mut client, mut server) = net.pair(&listener);
            thread::spawn(move || while server.write_all(&[7; 1 << 16]).is_ok() {});
            client.read_exact(&mut vec![0; 1 << 20]).expect("no reset");
            client
        })
        .collect();
    let status = net
        .until("the largest are reset", |status| status.totals.starved > 0 && status.totals.memory_bytes <= PERMITTED);
    println!("{:?}", status.totals);
    // As few as that takes.
    assert!(status.totals.open > 5, "{:?}", status.totals);
    exchange(&mut busy, &mut busy_server);
    drop(stopped);
}

/// Loses the packets that arrive at the UE and match `rule`.
fn lose_at_ue(net: &Net, rule: &str) {
    let rules = format!(
        "add table netdev lossy\n\
         add chain netdev lossy arriving {{ type filter hook ingress device u0 priority 0; }}\n\
         add rule netdev lossy arriving {rule} drop\n"
    );
    net.nft(UE, &rules);
}

#[test]
fn root_a_server_that_asks_hears_of_a_dead_ue_and_of_a_living_one_nothing() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&["--dead-peer-time", "5 s"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let (mut client, mut server) = net.pair(&listener);
    let second = Duration::from_secs(1);
    // By itself, the server would give up after a minute.
    netio::socket::Keepalive { silence: second, interval: second, probes: 60 }.set(&server).expect("it is open");
    exchange(&mut client, &mut server);
    thread::sleep(8 * second);
    exchange(&mut client, &mut server);
    lose_at_ue(&net, "meta l4proto tcp");
    let start = Instant::now();
    assert_eq!(ending(&mut server), Some(ErrorKind::ConnectionReset));
    let waited = start.elapsed();
    println!("heard after {waited:.1?}");
    assert!(waited < 15 * second, "{waited:?}");
}

#[test]
fn root_a_path_that_loses_large_packets_without_a_word_is_survived() {
    let Some(net) = Net::new() else { return };
    let probing = || net.on_router("sysctl", &["-n", "net.ipv4.tcp_mtu_probing"]).trim().to_owned();
    // Segments arrive as they are sent.
    net.on_router("ip", &["link", "set", "ran", "gso_max_segs", "1"]);
    lose_at_ue(&net, "ip length > 1300");
    let before = probing();
    let proxy = net.proxy(&[]);
    let (mut client, mut server) = net.pair(&net.listen(SERVER, SERVERS[0]));
    let sender = thread::spawn(move || server.write_all(&vec![7; 1_000_000]).expect("it is read"));
    let start = Instant::now();
    client.read_exact(&mut vec![0; 1_000_000]).expect("no reset");
    println!("arrived after {:.1?}", start.elapsed());
    sender.join().expect("it does not panic");
    assert_ne!(probing(), "0");
    // The guardian sees to it.
    proxy.end(nix::sys::signal::Signal::SIGKILL);
    let start = Instant::now();
    while probing() != before {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", probing());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn root_a_server_that_refuses_by_icmp_is_heard_about_as_soon_as_without_the_proxy() {
    let Some(net) = Net::new() else { return };
    net.nft(
        SERVER,
        "add table inet fw; add chain inet fw in { type filter hook input priority 0; }; \
         add rule inet fw in tcp dport 9000 reject with icmpx port-unreachable",
    );
    let server = |port| SocketAddr::from(([10, 2, 0, 2], port));
    let attempts = || {
        // The server sends six errors at once to a host, and then one each second.
        thread::sleep(Duration::from_secs(7));
        let longest = (0..8).map(|_| {
            let start = Instant::now();
            assert_eq!(net.fate(server(9000)), Some(ErrorKind::ConnectionRefused));
            start.elapsed()
        });
        longest.max().expect("there are some")
    };
    let direct = attempts();
    let _proxy = net.proxy(&["--connect-timeout", "20 s"]);
    let proxied = attempts();
    println!("{direct:.1?} without the proxy, {proxied:.1?} with it");
    // The first SYN that is sent again has an answer.
    assert!([direct, proxied].iter().all(|longest| *longest < Duration::from_millis(1_500)));
    // Another port of that server does not answer. The SYN passes when it comes again.
    net.nft(SERVER, "add rule inet fw in tcp dport 9100 drop");
    net.forge(server(9100), |forger| {
        let syn = || forger.send(forger.segment([10, 66, 0, 1], 1).syn(), &[]);
        syn();
        net.until("the proxy connects", |status| status.totals.half_open == 1);
        syn();
    });
    let start = Instant::now();
    net.until("it passes", |status| status.totals.half_open == 0);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
