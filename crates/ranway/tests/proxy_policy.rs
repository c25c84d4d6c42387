//! End-to-end tests of `ranway proxy`: what routes, rules and firewall of the router decide holds with the proxy as without it. Tests
//! that need root report when they are skipped.

#![allow(clippy::disallowed_methods)] // Tests of a command run commands and read files.

mod common;

use common::proxied::*;
use common::spaces::ip;
use common::text;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

fn nft(net: &Net, host: &str, rules: &str) {
    assert!(net.command(host, "nft").arg(rules).status().expect("nft").success(), "{rules}");
}

/// How an attempt to connect ends that may be dropped without a word.
fn attempt(net: &Net, host: &str, to: SocketAddr) -> Result<(), ErrorKind> {
    net.inside(host, || TcpStream::connect_timeout(&to, Duration::from_millis(2_500)))
        .map(drop)
        .map_err(|error| error.kind())
}

#[test]
fn root_what_a_firewall_forbids_stays_forbidden() {
    let Some(net) = Net::new() else { return };
    nft(
        &net,
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
    let _proxy = net.proxy(&["--from-servers"]);
    for (family, server) in SERVERS.into_iter().enumerate() {
        let listener = net.listen(SERVER, server);
        let (mut client, mut accepted) = net.pair(&listener);
        exchange(&mut client, &mut accepted);
        let address = listener.local_addr().expect("it is bound").ip();
        assert_eq!(attempt(&net, UE, (address, 7).into()), Err(ErrorKind::ConnectionRefused));
        assert_eq!(attempt(&net, UE, (address, 9).into()), Err(ErrorKind::TimedOut));
        // Nobody reaches a UE from outside.
        let at_ue = net.listen(UE, UES[family]);
        assert_eq!(attempt(&net, SERVER, at_ue.local_addr().expect("it is bound")), Err(ErrorKind::TimedOut));
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
    nft(
        &net,
        ROUTER,
        &format!(
            "add table inet isp; add chain inet isp pre {{ type filter hook prerouting priority -150; }}; \
             add rule inet isp pre iifname ran tcp dport {port} meta mark set 0x10; \
             add rule inet isp pre iifname ran tcp dport {port} ip dscp set ef"
        ),
    );
    nft(
        &net,
        OTHER,
        "add table inet seen; add chain inet seen in { type filter hook input priority 0; }; \
         add rule inet seen in meta l4proto tcp ip dscp ef counter; \
         add rule inet seen in meta l4proto tcp ip dscp != ef counter",
    );
    let args = ["proxy", "--wan", "wan,wan2", "--ran", "ran", "--drain", "300 ms"];
    let _proxy = Running(Some(net.start(ROUTER, &args)));
    net.until("it accepts", |status| status.accepting);
    net.await_lease(true);
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
    nft(
        &net,
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
