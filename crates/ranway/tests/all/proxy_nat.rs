//! End-to-end tests of `ranway proxy` on a router with NAT and a firewall. Tests that need root report when they are skipped.

use crate::common::proxied::*;
use crate::common::spaces::ip;
use nix::sys::signal::{Signal, kill};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

/// The router's own addresses on the server's side.
const ROUTERS: [&str; 2] = ["10.2.0.1", "fd02::1"];
const MASQUERADE: &str = "add table inet nat
add chain inet nat post { type nat hook postrouting priority srcnat; }
add rule inet nat post oifname wan masquerade";

fn add_rules(net: &Net, rules: &str) {
    for line in rules.lines() {
        assert_eq!(net.on_router("nft", &[line]), "");
    }
}

/// Connects the UE to the server, and checks from which address the server is reached.
fn is_reached_from(net: &Net, listener: &TcpListener, address: &str) {
    let (mut client, mut server) = net.pair(listener);
    exchange(&mut client, &mut server);
    assert_eq!(server.peer_addr().expect("it is connected").ip(), address.parse::<IpAddr>().expect("an address"));
}

#[test]
fn root_addresses_are_translated_as_without_the_proxy() {
    let Some(net) = Net::new() else { return };
    add_rules(&net, MASQUERADE);
    let before = net.traces();
    // As on the internet: only the router's address is known.
    for family in ["-4", "-6"] {
        ip(&format!("-n {} {family} route del default", net.space(SERVER)));
    }
    let proxy = net.proxy(&[]);
    for (server, router) in SERVERS.into_iter().zip(ROUTERS) {
        let listener = net.listen(SERVER, server);
        (0..20).for_each(|_| is_reached_from(&net, &listener, router));
    }
    assert_eq!(net.status().totals.from_ue, 40);
    // What bypasses the proxy is translated, too.
    kill(proxy.pid(), Signal::SIGSTOP).expect("it runs");
    thread::sleep(Duration::from_secs(1));
    is_reached_from(&net, &net.listen(SERVER, SERVERS[0]), ROUTERS[0]);
    kill(proxy.pid(), Signal::SIGCONT).expect("it runs");
    proxy.end(Signal::SIGTERM);
    net.is_clean_again(&before);
}

#[test]
fn root_translation_that_begins_later_is_noticed() {
    let Some(net) = Net::new() else { return };
    let _proxy = net.proxy(&[]);
    let listener = net.listen(SERVER, SERVERS[0]);
    is_reached_from(&net, &listener, UES[0]);
    add_rules(&net, MASQUERADE);
    let start = Instant::now();
    while !net.on_router("nft", &["list", "ruleset"]).contains("ct zone set") {
        assert!(start.elapsed() < TEST_TIMEOUT, "it is not noticed");
        thread::sleep(Duration::from_millis(20));
    }
    is_reached_from(&net, &listener, ROUTERS[0]);
}

/// A firewall that drops what belongs to no connection sees none of that, whoever opens connections and over a path that takes time.
#[test]
fn root_a_firewall_with_states_takes_both_legs_for_connections() {
    let Some(net) = Net::new() else { return };
    add_rules(&net, "add table inet wall");
    for hook in ["prerouting", "input", "forward", "output", "postrouting"] {
        add_rules(&net, &format!("add chain inet wall {hook} {{ type filter hook {hook} priority 0; }}"));
        add_rules(&net, &format!("add rule inet wall {hook} meta l4proto tcp ct state invalid counter drop"));
    }
    let proxy = net.proxy(&["--from-servers"]);
    for (ue, server) in UES.into_iter().zip(SERVERS) {
        let (at_server, at_ue) = (net.listen(SERVER, server), net.listen(UE, ue));
        for _ in 0..20 {
            let (mut client, mut server) = net.pair(&at_server);
            exchange(&mut client, &mut server);
            let mut client = net.connect(SERVER, at_ue.local_addr().expect("it is bound"));
            let mut server = accept(&at_ue);
            exchange(&mut client, &mut server);
        }
    }
    let totals = net.until("all have ended", |status| status.totals.open == 0).totals;
    assert_eq!((totals.from_ue, totals.from_wan), (40, 40));
    let rules = net.on_router("nft", &["list", "table", "inet", "wall"]);
    assert_eq!(rules.matches("counter packets 0 bytes 0 drop").count(), 5, "{rules}");
    proxy.end(Signal::SIGTERM);
}

#[test]
fn root_connections_whose_destination_is_translated_bypass_the_proxy() {
    let Some(net) = Net::new() else { return };
    add_rules(
        &net,
        "add table inet nat
add chain inet nat pre { type nat hook prerouting priority dstnat; }
add rule inet nat pre iifname ran ip daddr 192.0.2.1 dnat to 10.2.0.2
add rule inet nat pre iifname ran ip6 daddr 2001:db8::1 dnat to fd02::2",
    );
    for (address, server) in ["192.0.2.1", "2001:db8::1"].into_iter().zip(SERVERS) {
        ip(&format!("-n {} route add {address} via {server}", net.space(ROUTER)));
    }
    let _proxy = net.proxy(&[]);
    for (address, server) in ["192.0.2.1", "2001:db8::1"].into_iter().zip(SERVERS) {
        let listener = net.listen(SERVER, server);
        let port = listener.local_addr().expect("it is bound").port();
        let translated = SocketAddr::new(address.parse().expect("an address"), port);
        // Others are split.
        is_reached_from(&net, &listener, UES[usize::from(address.contains(':'))]);
        net.until("it has ended", |status| status.totals.open == 0);
        let start = Instant::now();
        let (mut client, mut server) = (net.connect(UE, translated), accept(&listener));
        exchange(&mut client, &mut server);
        assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
        assert_eq!(net.status().totals.open, 0);
    }
    assert_eq!(net.status().totals.from_ue, 2);
}
