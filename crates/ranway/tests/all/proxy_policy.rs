//! End-to-end tests of `ranway proxy`: what routes, rules and firewall of the router decide holds with the proxy as without it. Tests
//! that need root report when they are skipped.

use crate::common::proxied::*;
use crate::common::spaces::ip;
use crate::common::text;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use testkit::root::has_program;

/// How an attempt to connect ends that may be dropped without a word.
fn attempt(net: &Net, host: &str, to: SocketAddr) -> Result<(), ErrorKind> {
    net.inside(host, || TcpStream::connect_timeout(&to, Duration::from_millis(2_500)))
        .map(drop)
        .map_err(|error| error.kind())
}

#[test]
fn root_what_a_firewall_forbids_stays_forbidden() {
    let Some(net) = Net::new() else { return };
    net.nft(
        ROUTER,
        "add table inet fw; \
         add chain inet fw in { type filter hook input priority 0; policy drop; }; \
         add rule inet fw in iif lo accept; \
         add rule inet fw in meta l4proto ipv6-icmp accept; \
         add rule inet fw in ct state established,related accept; \
         add chain inet fw forward { type filter hook forward priority 0; policy drop; }; \
         add rule inet fw forward meta l4proto ipv6-icmp accept; \
         add rule inet fw forward ct state established,related accept; \
         add rule inet fw forward tcp dport 7 reject with tcp reset; \
         add rule inet fw forward tcp dport 9 drop; \
         add rule inet fw forward iifname ran oifname wan accept",
    );
    decides_alone(&net);
}

/// A firewall of the other kind that Linux has, with NAT as well.
#[test]
fn root_what_iptables_legacy_forbids_stays_forbidden() {
    let Some(net) = Net::new() else { return };
    let is_there = Command::new("iptables-legacy").arg("--version").output().is_ok_and(|of| of.status.success());
    if !has_program(is_there, "iptables-legacy") {
        return;
    }
    for (program, icmp) in [("iptables-legacy", "icmp"), ("ip6tables-legacy", "icmpv6")] {
        for rule in [
            "-P INPUT DROP",
            "-A INPUT -i lo -j ACCEPT",
            &format!("-A INPUT -p {icmp} -j ACCEPT"),
            "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            "-P FORWARD DROP",
            &format!("-A FORWARD -p {icmp} -j ACCEPT"),
            "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            "-A FORWARD -p tcp --dport 7 -j REJECT --reject-with tcp-reset",
            "-A FORWARD -p tcp --dport 9 -j DROP",
            "-A FORWARD -i ran -o wan -j ACCEPT",
        ] {
            net.on_router(program, &rule.split(' ').collect::<Vec<_>>());
        }
    }
    net.on_router("iptables-legacy", &["-t", "nat", "-A", "POSTROUTING", "-o", "wan", "-j", "MASQUERADE"]);
    decides_alone(&net);
}

/// A proxy changes nothing of what the router's firewall permits: connections of UEs, but to port 7, which it refuses, and to port 9, which it
/// drops; and none of servers.
fn decides_alone(net: &Net) {
    let _proxy = net.proxy(&["--from-servers"]);
    for (family, server) in SERVERS.into_iter().enumerate() {
        let listener = net.listen(SERVER, server);
        let (mut client, mut accepted) = net.pair(&listener);
        exchange(&mut client, &mut accepted);
        let address = listener.local_addr().expect("it is bound").ip();
        assert_eq!(attempt(net, UE, (address, 7).into()), Err(ErrorKind::ConnectionRefused));
        assert_eq!(attempt(net, UE, (address, 9).into()), Err(ErrorKind::TimedOut));
        // Nobody reaches a UE from outside.
        let at_ue = net.listen(UE, UES[family]);
        assert_eq!(attempt(net, SERVER, at_ue.local_addr().expect("it is bound")), Err(ErrorKind::TimedOut));
    }
    let totals = net.status().totals;
    assert_eq!((totals.from_ue, totals.from_wan, totals.connect_failed), (2, 0, 0), "{totals:?}");
}

#[test]
fn root_connections_that_servers_open_pass_unless_they_are_asked_for() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let at_ue = net.listen(UE, UES[0]);
    let mut client = net.connect(SERVER, at_ue.local_addr().expect("it is bound"));
    exchange(&mut client, &mut accept(&at_ue));
    assert_eq!(net.status().totals.from_wan, 0);
}

#[test]
fn root_marks_choose_the_route_and_the_dscp_is_kept() {
    const OTHER: &str = "o";
    let Some(net) = Net::with(&[OTHER]) else { return };
    // A second provider, which has a host with the server's address.
    net.join((OTHER, "o0", &["10.9.0.2/24"]), (ROUTER, "wan2", &["10.9.0.1/24"]));
    ip(&format!("-n {} link set dev lo up", net.space(OTHER)));
    ip(&format!("-n {} addr add 10.2.0.2/32 dev lo", net.space(OTHER)));
    ip(&format!("-n {} route add default via 10.9.0.1", net.space(OTHER)));
    ip(&format!("-n {} rule add fwmark 0x10/0xff lookup 50 pref 200", net.space(ROUTER)));
    ip(&format!("-n {} route add default via 10.9.0.2 table 50", net.space(ROUTER)));
    let (here, there) = (net.listen(SERVER, SERVERS[0]), net.listen(OTHER, SERVERS[0]));
    let port = there.local_addr().expect("it is bound").port();
    net.nft(
        ROUTER,
        &format!(
            "add table inet isp; add chain inet isp pre {{ type filter hook prerouting priority -150; }}; \
             add rule inet isp pre iifname ran tcp dport {port} meta mark set 0x10; \
             add rule inet isp pre iifname ran tcp dport {port} ip dscp set ef"
        ),
    );
    net.nft(
        OTHER,
        "add table inet seen; add chain inet seen in { type filter hook input priority 0; }; \
         add rule inet seen in meta l4proto tcp ip dscp ef counter; \
         add rule inet seen in meta l4proto tcp ip dscp != ef counter",
    );
    let _proxy = net.proxy_towards("wan,wan2", &[]);
    for listener in [&here, &there] {
        let mut client = net.connect(UE, listener.local_addr().expect("it is bound"));
        exchange(&mut client, &mut accept(listener));
    }
    assert_eq!(net.status().totals.established, 2);
    let seen = text(&net.command(OTHER, "nft").args(["list", "table", "inet", "seen"]).output().expect("nft").stdout);
    assert!(seen.contains("dscp != ef counter packets 0 ") && !seen.contains("dscp ef counter packets 0 "), "{seen}");
}

#[test]
fn root_routes_by_interface_are_refused_at_the_start_and_bypassed_later() {
    let Some(net) = Net::new() else { return };
    let before = net.traces();
    let rule = |verb: &str| ip(&format!("-n {} rule {verb} iif ran lookup 50 pref 200", net.space(ROUTER)));
    let proxy = net.proxy(&[]);
    rule("add");
    net.until("it takes no more", |status| !status.accepting);
    drop(proxy);
    rule("del");
    net.is_clean_again(&before);
    rule("add");
    let output = net.fails(&["--wan", "wan", "--ran", "ran"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("(`from all iif ran lookup 50`)") && said.lines().count() == 1, "{said}");
}

#[test]
fn root_lists_and_marks_say_whose_connections_are_split() {
    let Some(net) = Net::new() else { return };
    let listeners = SERVERS.map(|server| net.listen(SERVER, server));
    let marked = net.listen(SERVER, SERVERS[0]);
    let port = marked.local_addr().expect("it is bound").port();
    net.nft(
        ROUTER,
        &format!(
            "add table inet lists; add chain inet lists pre {{ type filter hook prerouting priority -150; }}; \
             add rule inet lists pre iifname ran tcp dport {port} meta mark set 0x30"
        ),
    );
    for (args, split) in [
        (&["--bypass-marks", "0x20/0xf0"][..], [true, true, true]),
        (&["--bypass-marks", "7,0x30/0xf0"], [true, true, false]),
        (&["--bypass", "10.2.0.0/16"], [false, true, false]),
        (&["--bypass", "fd01::/16"], [true, false, true]),
        (&["--only", "10.1.0.2"], [true, false, true]),
        (&["--only", "10.7.0.0/24,fd01::/64"], [false, true, false]),
        (&["--only", "10.1.0.0/24", "--bypass", "10.1.0.2"], [false, false, false]),
    ] {
        let _proxy = net.proxy(args);
        for (listener, split) in listeners.iter().chain([&marked]).zip(split) {
            let before = net.status().totals.established;
            let (mut client, mut server) = net.pair(listener);
            exchange(&mut client, &mut server);
            assert_eq!(net.status().totals.established - before, u64::from(split), "{args:?}");
        }
    }
}

#[test]
fn root_a_class_has_its_congestion_control_and_its_rate() {
    const BYTES: usize = 2_000_000;
    let Some(net) = Net::new() else { return };
    let [plain, slow, reno] = [0, 1, 1].map(|family| net.listen(SERVER, SERVERS[family]));
    let port = |listener: &TcpListener| listener.local_addr().expect("it is bound").port();
    net.nft(
        ROUTER,
        &format!(
            "add table inet lists; add chain inet lists pre {{ type filter hook prerouting priority -150; }}; \
             add rule inet lists pre iifname ran tcp dport {} meta mark set 0x31; \
             add rule inet lists pre iifname ran tcp dport {} meta mark set 0x40",
            port(&slow),
            port(&reno)
        ),
    );
    let proxy = net.proxy(&["--cc", "cubic", "--classes", "0x30/0xf0:rate=20 Mbit/s,0x40:cc=reno"]);
    for (listener, control, mbps) in [(&plain, "cubic", None), (&reno, "reno", None), (&slow, "cubic", Some(20.0))] {
        let (mut client, mut server) = net.pair(listener);
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| server.write_all(&vec![7; BYTES]).expect("it is open"));
            client.read_exact(&mut vec![0; BYTES]).expect("it is open");
        });
        let rate = BYTES as f64 * 8e-6 / start.elapsed().as_secs_f64();
        let ue = client.local_addr().expect("it is bound");
        let status = net.status();
        let of = status.connections.iter().find(|of| of.ue == ue).expect("it is split");
        assert_eq!(of.radio_congestion, control);
        // Slow start of the kernel is paced with less.
        assert!(mbps.is_none_or(|most| (most * 0.6..most * 1.1).contains(&rate)), "{rate} Mbit/s");
        assert!(mbps.is_some() || rate > 40.0, "{rate} Mbit/s");
    }
    drop(proxy);
    let output = net.fails(&["--wan", "wan", "--ran", "ran", "--classes", "1:cc=none"]);
    assert!(text(&output.stderr).contains("congestion control `none`"), "{}", text(&output.stderr));
}

#[test]
fn root_quic_passes_and_its_bytes_are_counted() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    // The headers of IP and UDP.
    for (family, header) in [(0, 28), (1, 48)] {
        let (before, server) =
            (net.status().totals, SocketAddr::new(SERVERS[family].parse().expect("an address"), 443));
        let at_server = net.inside(SERVER, || UdpSocket::bind(server)).expect("it is free");
        let at_ue = net.inside(UE, || UdpSocket::bind((UES[family], 0))).expect("it is free");
        let mut buffer = [0; 2000];
        for _ in 0..10 {
            at_ue.send_to(&[1; 200], server).expect("it is sent");
            let (bytes, ue) = at_server.recv_from(&mut buffer).expect("it arrives");
            at_server.send_to(&[2; 1000], ue).expect("it is sent");
            assert_eq!((bytes, at_ue.recv(&mut buffer).expect("it arrives")), (200, 1000));
        }
        let status = net.until("it is counted", |status| status.totals.quic_to_ue_bytes > before.quic_to_ue_bytes);
        let of = |totals: &services::proxy::Totals| (totals.quic_to_ue_bytes, totals.quic_from_ue_bytes);
        let (to_ue, from_ue) = (of(&status.totals).0 - of(&before).0, of(&status.totals).1 - of(&before).1);
        assert_eq!((to_ue, from_ue), (10 * (1000 + header), 10 * (200 + header)));
    }
}

/// Connects from a port of the UE's that may have been used before.
fn connect_from(net: &Net, port: u16, to: SocketAddr) -> TcpStream {
    let connected = net.inside(UE, || -> nix::Result<OwnedFd> {
        let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
        setsockopt(&socket, sockopt::SendTimeout, &TimeVal::seconds(10))?;
        bind(socket.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port))?;
        connect(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
        Ok(socket)
    });
    patient(TcpStream::from(connected.expect("it connects")))
}

#[test]
fn root_a_ue_may_use_a_port_again_whoever_has_closed_it() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let to = listener.local_addr().expect("it is bound");
    for round in 0..3 {
        let start = Instant::now();
        let mut client = connect_from(&net, 33_333, to);
        let mut server = accept(&listener);
        exchange(&mut client, &mut server);
        assert!(start.elapsed() < Duration::from_secs(3), "round {round}: {:?}", start.elapsed());
        // The server first: its end of the connection, and the proxy's towards the UE, wait in TIME-WAIT.
        drop(server);
        assert_eq!(ending(&mut client), None);
        drop(client);
        net.until("it has ended", |status| status.totals.open == 0);
    }
    // The UE resets it, and the server has not read all that came before.
    let mut client = connect_from(&net, 33_334, to);
    let _server = accept(&listener);
    client.set_nonblocking(true).expect("it is open");
    while client.write(&[7; 1 << 16]).is_ok() {}
    reset(client);
    let start = Instant::now();
    let mut client = connect_from(&net, 33_334, to);
    let mut server = accept(&listener);
    exchange(&mut client, &mut server);
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[test]
fn root_a_ue_may_use_the_port_of_a_split_connection_again_for_one_that_passes() {
    for is_tracked in [false, true] {
        a_ue_may_use_the_port_of_a_split_connection_again_for_one_that_passes(is_tracked);
    }
}

fn a_ue_may_use_the_port_of_a_split_connection_again_for_one_that_passes(is_tracked: bool) {
    let Some(net) = Net::new() else { return };
    if is_tracked {
        net.nft(
            ROUTER,
            "add table inet fw; add chain inet fw f { type filter hook forward priority 0; policy drop; }; \
             add rule inet fw f ct state established,related accept; add rule inet fw f tcp dport 1-65535 ct state new accept",
        );
    }
    let proxy = net.proxy(&["--max-per-ue", "1"]);
    let listener = net.listen(SERVER, SERVERS[0]);
    let to = listener.local_addr().expect("it is bound");
    let mut other = None;
    for port in [33_341, 33_342] {
        let mut client = connect_from(&net, port, to);
        let mut server = accept(&listener);
        exchange(&mut client, &mut server);
        // The proxy's end towards the UE waits in TIME-WAIT.
        drop(server);
        assert_eq!(ending(&mut client), None);
        drop(client);
        net.until("it has ended", |status| status.totals.open == 0);
        if port == 33_341 {
            kill(proxy.pid(), Signal::SIGSTOP).expect("it runs");
            thread::sleep(Duration::from_millis(1_500));
        } else {
            other = Some(net.pair(&listener));
            net.until("the UE has as many as it may have", |status| status.totals.open == 1);
        }
        for _ in 0..2 {
            let start = Instant::now();
            let mut client = connect_from(&net, port, to);
            let mut server = accept(&listener);
            exchange(&mut client, &mut server);
            assert!(start.elapsed() < Duration::from_secs(3), "{port}: {:?}", start.elapsed());
            drop(server);
            assert_eq!(ending(&mut client), None);
        }
        kill(proxy.pid(), Signal::SIGCONT).expect("it runs");
        net.until("it goes on", |status| status.accepting);
    }
    let status = net.status();
    assert_eq!((status.totals.established, status.totals.open), (3, 1), "{status:?}");
    drop(other);
}

/// Rules that many routers have, and that treat the router's own packets otherwise than those that it forwards.
#[test]
fn root_rules_about_the_routers_own_packets_cut_nobody_off() {
    for (rules, is_split) in [
        (
            "add table inet fw; add chain inet fw out { type filter hook output priority 0; policy drop; }; \
             add rule inet fw out oifname lo accept; add rule inet fw out ct state established,related accept; \
             add rule inet fw out meta l4proto ipv6-icmp accept",
            false,
        ),
        (
            "add table inet fw; add chain inet fw raw { type filter hook prerouting priority raw; }; \
             add rule inet fw raw iifname != ran ip saddr 10.1.0.0/24 drop",
            false,
        ),
        (
            "add table inet fw; add chain inet fw pre { type filter hook prerouting priority mangle; }; \
             add rule inet fw pre ct mark != 0 meta mark set ct mark; \
             add rule inet fw pre iifname ran ct state new meta mark set 0x10; \
             add rule inet fw pre ct mark set meta mark; \
             add chain inet fw out { type route hook output priority mangle; }; \
             add rule inet fw out ct mark != 0 meta mark set ct mark",
            true,
        ),
    ] {
        let Some(net) = Net::new() else { return };
        net.nft(ROUTER, rules);
        let _proxy = net.proxy(&[]);
        let listener = net.listen(SERVER, SERVERS[0]);
        let connects = |limit: Duration| {
            let start = Instant::now();
            let mut client = net.connect(UE, listener.local_addr().expect("it is bound"));
            exchange(&mut client, &mut accept(&listener));
            assert!(start.elapsed() < limit, "{rules}: {:?}", start.elapsed());
        };
        if is_split {
            connects(Duration::from_secs(1));
            assert_eq!(net.status().totals.established, 1, "{rules}");
            continue;
        }
        // The first one, whose server the proxy tries in vain, or which the proxy cannot give to itself.
        let to = listener.local_addr().expect("it is bound");
        let _first = net.inside(UE, || TcpStream::connect_timeout(&to, Duration::from_secs(1)));
        net.until("it takes no more", |status| !status.accepting);
        net.await_lease(false);
        listener.set_nonblocking(true).expect("it is a socket");
        while listener.accept().is_ok() {}
        (0..3).for_each(|_| connects(Duration::from_secs(1)));
    }
}

#[test]
fn root_rules_by_the_interface_that_a_packet_came_from_are_refused_where_the_routers_packets_pass() {
    let Some(net) = Net::new() else { return };
    for rule in ["iifname ran oifname wan masquerade", "ct mark 5 masquerade"] {
        net.nft(ROUTER, "add table inet n; add chain inet n po { type nat hook postrouting priority srcnat; }");
        net.nft(ROUTER, &format!("add rule inet n po {rule}"));
        let before = net.traces();
        let output = net.fails(&["--wan", "wan", "--ran", "ran"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("chain `po` of table `inet n`") && said.lines().count() == 1, "{said}");
        assert_eq!(net.traces(), before);
        net.nft(ROUTER, "delete table inet n");
    }
    let proxy = net.proxy(&[]);
    net.nft(ROUTER, "add table inet n; add chain inet n po { type nat hook postrouting priority srcnat; }");
    net.nft(ROUTER, "add rule inet n po iifname ran oifname wan masquerade");
    net.until("it takes no more", |status| !status.accepting);
    net.nft(ROUTER, "delete table inet n");
    net.until("it takes them again", |status| status.accepting);
    drop(proxy);
}

#[test]
fn root_a_rule_that_clamps_the_mss_holds_for_the_leg_to_the_server() {
    const MSS: u32 = 1_000;
    let Some(net) = Net::new() else { return };
    net.nft(
        ROUTER,
        &format!(
            "add table inet clamp; add chain inet clamp f {{ type filter hook forward priority 0; }}; \
             add rule inet clamp f oifname wan tcp flags syn tcp option maxseg size set {MSS}"
        ),
    );
    let _proxy = net.proxy(&[]);
    for server in SERVERS {
        let (mut client, mut server) = net.pair(&net.listen(SERVER, server));
        exchange(&mut client, &mut server);
        let mss = nix::sys::socket::getsockopt(&server, sockopt::TcpMaxSeg).expect("it is open");
        assert!((MSS - 40..=MSS).contains(&mss), "{mss}");
    }
    assert_eq!(net.status().totals.established, 2);
}

/// The kernel drops them between the places where packets are counted.
#[test]
fn root_packets_with_options_of_ip_do_not_look_like_a_firewall() {
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let _proxy = net.proxy(&[]);
    let (mut client, mut server) = net.pair(&listener);
    exchange(&mut client, &mut server);
    let (Ok(SocketAddr::V4(from)), to) = (client.local_addr(), listener.local_addr().expect("it is bound")) else {
        panic!("it has an IPv4 address")
    };
    net.forge(to, |forger| {
        // A handshake that is never complete, so that its packets are counted.
        forger.send(forger.segment([10, 66, 0, 1], 1).syn(), &[]);
        // Loose source and record route (RFC 791, section 3.1).
        let [a, b, c, d] = to.ip().to_string().parse::<std::net::Ipv4Addr>().expect("IPv4").octets();
        let route = [131, 7, 4, a, b, c, d, 0];
        for n in 0..30 {
            forger.send_with(&route, forger.segment_from(from, 1).ack(1));
            // A list of timestamps that is full: the next router counts this in four bits, and one more drops the packet.
            let full = [68, 8, 9, 0xe0, 0, 0, 0, 0];
            forger.send_with(&full, forger.segment([10, 66, 1, n], 1).syn());
            std::thread::sleep(Duration::from_millis(100));
            assert!(net.status().accepting);
        }
    });
    exchange(&mut client, &mut server);
}

/// Has the router track connections, and forbids nothing.
fn track(net: &Net) {
    let chain = "add table inet fw; add chain inet fw f { type filter hook forward priority 0; }";
    net.nft(ROUTER, &format!("{chain}; add rule inet fw f ct state established accept"));
}

/// Exchanges data until a forged SYN has had its effect: the proxy tries to reach the other host for 3 s, and then lets the SYN pass.
fn exchange_while_it_connects(client: &mut TcpStream, server: &mut TcpStream) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(4_500) {
        exchange(client, server);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn root_a_forged_syn_of_a_connection_that_is_not_split_does_it_no_harm() {
    for tracks in [false, true] {
        let Some(net) = Net::new() else { return };
        if tracks {
            track(&net);
        }
        let listeners = [net.listen(SERVER, SERVERS[0]), net.listen(SERVER, SERVERS[0])];
        let to = listeners.each_ref().map(|listener| listener.local_addr().expect("it is bound"));
        let mut pairs = listeners.each_ref().map(|listener| net.pair(listener));
        let early = to[1].port().to_string();
        // Where connections are not tracked, the listener would answer such a SYN.
        let args = ["--from-servers", "--early-accept", &early];
        let _proxy = net.proxy(if tracks { &args } else { &args[..1] });
        for ((client, server), to) in pairs.iter_mut().zip(to).take(1 + usize::from(tracks)) {
            exchange(client, server);
            let from = client.local_addr().expect("it is open");
            for (host, from, to) in [(UE, from, to), (SERVER, to, from)] {
                let SocketAddr::V4(from) = from else { panic!("it is of IPv4") };
                net.forge_at(host, to, |forger| forger.send(forger.segment_from(from, 1).syn(), &[]));
            }
            exchange_while_it_connects(client, server);
        }
        let totals = net.status().totals;
        assert_eq!((totals.established, totals.open, totals.half_open), (0, 0, 0), "{totals:?}");
    }
}

#[test]
fn root_a_forged_syn_of_a_split_connection_does_it_no_harm() {
    for tracks in [false, true] {
        let Some(net) = Net::new() else { return };
        if tracks {
            track(&net);
        }
        let listener = net.listen(SERVER, SERVERS[0]);
        let to = listener.local_addr().expect("it is bound");
        let _proxy = net.proxy(&["--from-servers"]);
        let (mut client, mut server) = net.pair(&listener);
        exchange(&mut client, &mut server);
        let from = client.local_addr().expect("it is open");
        for (host, from, to) in [(UE, from, to), (SERVER, to, from)] {
            let SocketAddr::V4(from) = from else { panic!("it is of IPv4") };
            net.forge_at(host, to, |forger| {
                forger.send(forger.segment_from(from, 1).syn(), &[]);
                // Fast open, which the proxy lets pass without being asked.
                let syn = forger.segment_from(from, 1).syn().options_raw(&[34, 2, 1, 1]).expect("it fits");
                forger.send(syn, &[]);
            });
        }
        exchange_while_it_connects(&mut client, &mut server);
        assert_eq!(net.status().totals.open, 1);
    }
}

#[test]
fn root_data_that_arrives_while_the_proxy_begins_to_connect_reaches_its_host() {
    const PIECES: usize = 300;
    let Some(net) = Net::new() else { return };
    let listener = net.listen(SERVER, SERVERS[0]);
    let to = listener.local_addr().expect("it is bound");
    let mut pairs: Vec<_> = (0..100).map(|_| net.pair(&listener)).collect();
    let _proxy = net.proxy(&[]);
    net.forge(to, |forger| {
        for (client, server) in &mut pairs {
            let Ok(SocketAddr::V4(from)) = client.local_addr() else { panic!("it is of IPv4") };
            server.set_nodelay(true).expect("it is open");
            std::thread::scope(|scope| {
                scope.spawn(|| (0..PIECES).for_each(|_| server.write_all(b"x").expect("no reset")));
                client.read_exact(&mut [0; PIECES / 3]).expect("no reset");
                forger.send(forger.segment_from(from, 1).syn(), &[]);
                client.read_exact(&mut [0; PIECES - PIECES / 3]).expect("no reset");
            });
        }
    });
    pairs.iter_mut().for_each(|(client, server)| exchange(client, server));
    let totals = net.status().totals;
    assert!(totals.half_open > 50 && totals.established == 0, "{totals:?}");
}
