//! The rules of the proxy's table, and the sets that settings fill.

use std::net::Ipv6Addr;
use std::time::Duration;

use ipnet::Ipv6Net;

use super::super::label::{ANNOUNCING, CONNECTING, KNOWN, OF_SERVERS, OF_UES, PASSING};
use super::super::settings::Settings;
use super::{BASE, COUNTERS, Plan, QUIC, comment};
use crate::server::Network;

/// The zone of connection tracking for legs towards UEs ("ra").
const ZONE: u32 = BASE >> 16;
/// SYNs of a side in a second, and at once, beyond which further ones pass without the proxy being asked. For a host, it is as many as it
/// may have connections, and at least [`SYNS`].
const SYNS_OF_SIDE: u32 = 20_000;
const SYNS: usize = 1_000;
/// Options of TCP that the proxy could not keep: MD5 signatures, TCP-AO (RFC 2385, RFC 5925: only the hosts know the keys), MPTCP
/// (RFC 8684) and fast open (RFC 7413).
const OPTIONS: [u8; 4] = [19, 29, 30, 34];
/// Protocols by number: their names are in /etc/protocols, which a small system does not have.
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Packets of IPv4 and IPv6 without options: the kernel drops some that have them.
const PLAIN: [&str; 2] = ["ip hdrlength 5", "ip6 nexthdr 6"];
/// The sets of connections that pass although there is a socket of their ends here, as long as nobody has answered: those that UEs and
/// that servers open.
const UNANSWERED: [&str; 2] = ["of_ues", "of_servers"];

/// The flags that tell the segments of a handshake and of an end from others.
const FLAGS: &str = "tcp flags & (fin | syn | rst | ack)";
/// Packets for sockets of the proxy. Not the listeners, unless `tproxy` has assigned them: they are bound to loopback addresses, which no
/// packet from an interface has.
const OURS: &str = "socket transparent 1";
/// The element of the lease, which packets of the proxy renew. A constant cannot be looked up, but this is one.
const LEASE: &str = "meta l4proto & 0";

/// A rule, and its chain before it.
pub(super) type Rule = (&'static str, String);

/// The interfaces towards UEs, towards servers, and all of them, as sets of nftables.
#[derive(Clone, Copy)]
struct At<'a> {
    ran: &'a str,
    wan: &'a str,
    both: &'a str,
}

/// Interfaces as a set of nftables.
fn set(interfaces: &[String]) -> String {
    format!("{{ {} }}", interfaces.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "))
}

fn icmp() -> String {
    format!("meta l4proto {{ {ICMP}, {ICMPV6} }}")
}

/// Tracks the proxy's packets in a zone of their own. These rules come before connection tracking, and marks of others are restored after
/// it.
fn untracked(ran: &str) -> Vec<Rule> {
    let (icmp, zone) = (icmp(), format!("ct zone set {ZONE}"));
    vec![
        ("early", format!("iifname {ran} {FLAGS} != syn {OURS} {zone} accept")),
        ("early", format!("iifname {ran} {icmp} {OURS} {zone} accept")),
        ("output", format!("oifname lo meta priority {} {zone} accept", class(OF_UES))),
        ("output", format!("oifname {ran} meta l4proto {TCP} {OURS} {zone} accept")),
    ]
}

/// What tells connections apart, in rules.
fn ends(family: &str) -> String {
    format!("{family} saddr . tcp sport . {family} daddr . tcp dport")
}

/// The same of the packets of the other direction.
fn back(family: &str) -> String {
    format!("{family} daddr . tcp dport . {family} saddr . tcp sport")
}

/// Conditions, of which one holds, for packets in `forward` that came from one of these interfaces. If it is in a VRF, they come from the
/// VRF there (`vrf_ip_rcv` in `vrf.c`).
fn origins(interfaces: &str) -> [String; 2] {
    ["iifname", "meta sdifname"].map(|key| format!("{key} {interfaces}"))
}

/// Notes a connection that one side opens (a set of [`UNANSWERED`]) and that passes although there is a socket of its ends here.
fn note_unanswered(family: &str, number: u32, opened_by: &str) -> String {
    let ends = ends(family);
    format!("{ends} @reused{number} update @{opened_by}{number} {{ {ends} }}")
}

/// A priority as nftables writes it.
fn class(priority: u32) -> String {
    format!("{:x}:{:x}", priority >> 16, priority & 0xffff)
}

fn nfproto(family: &str) -> &'static str {
    if family == "ip" { "ipv4" } else { "ipv6" }
}

impl Plan {
    /// The sets that settings fill: name, type and elements.
    pub(super) fn sets(&self) -> Vec<(&'static str, &'static str, Vec<String>)> {
        let Settings { ports, bypass, only, .. } = &self.settings;
        let of = |all: &[Network], v6: bool| {
            all.iter().filter(|network| network.is_ipv6() == v6).map(ToString::to_string).collect::<Vec<_>>()
        };
        let port = |range: &std::ops::RangeInclusive<u16>| format!("{}-{}", range.start(), range.end());
        vec![
            ("ports", "inet_service", ports.iter().map(port).collect()),
            ("bypass4", "ipv4_addr", of(bypass, false)),
            ("bypass6", "ipv6_addr", of(bypass, true)),
            ("only4", "ipv4_addr", of(only, false)),
            ("only6", "ipv6_addr", of(only, true)),
        ]
    }

    /// The rules, each with its chain, in the order in which they stand there.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let settings = &self.settings;
        let both = [&settings.ran[..], &settings.wan].concat();
        let at = At { ran: &set(&settings.ran), wan: &set(&settings.wan), both: &set(&both) };
        [
            self.reused(at),
            self.foreign(at.ran),
            self.own(at),
            self.listening(),
            self.passing(at.ran),
            self.counted(at),
            if self.tracked { untracked(at.ran) } else { Vec::new() },
            self.held(at),
            self.exempt(at),
            self.logged(),
        ]
        .concat()
    }

    /// A client may use the port of a connection again that is in TIME-WAIT here. If the new one passes, that socket must not have its
    /// packets.
    fn reused(&self, At { ran, wan, both }: At) -> Vec<Rule> {
        let mut all = Vec::new();
        for (family, number) in [("ip", 4), ("ip6", 6)] {
            let (ends, back) = (ends(family), back(family));
            // Only once the other host has accepted it: one with a connection of these ends, which is split, answers a SYN that somebody
            // has forged with a challenge (RFC 5961, section 4).
            for (opened_by, answers_from) in std::iter::zip(UNANSWERED, [wan, ran]) {
                let is_answer = format!("iifname {answers_from} {FLAGS} == (syn | ack) {back} @{opened_by}{number}");
                all.push(("first", format!("{is_answer} update @strays{number} {{ {back} }}")));
            }
            for ends in [&ends, &back] {
                // They neither count, nor are they in the zone of the proxy's legs, nor do they get the mark.
                let chains =
                    if self.tracked { &["first", "early", "prerouting"][..] } else { &["first", "prerouting"] };
                let is_stray = format!("iifname {both} {FLAGS} != syn {ends} @strays{number} accept");
                all.extend(chains.iter().map(|chain| (*chain, is_stray.clone())));
            }
            all.push((
                "prerouting",
                format!("iifname {both} {FLAGS} == syn {OURS} update @reused{number} {{ {ends} }}"),
            ));
        }
        all
    }

    /// The mark for the packets of the proxy's sockets.
    fn own(&self, At { both, .. }: At) -> Vec<Rule> {
        let (mark, icmp) = (self.mark, icmp());
        vec![
            // Nearly all packets. SYNs take the way of forwarded packets, whatever sockets there are.
            (
                "prerouting",
                format!("iifname {both} {FLAGS} != syn {OURS} jump own comment \"{}\"", comment(self.generation)),
            ),
            ("own", format!("meta mark set {mark:#x} accept")),
            // ICMP tells a socket that a packet was too long for a link behind.
            ("prerouting", format!("iifname {both} {icmp} {OURS} meta mark set {mark:#x} accept")),
            // Rules of others must not save this mark with the connection: it would lead its answers here.
            ("first", format!("iifname lo meta priority {} meta mark set 0 return", class(OF_UES))),
            ("first", format!("iifname lo meta priority {} meta mark set 0 return", class(OF_SERVERS))),
        ]
    }

    /// SYNs that were given to the listeners.
    fn listening(&self) -> Vec<Rule> {
        let (mark, port) = (self.mark, self.settings.port);
        let mut all = Vec::new();
        for (family, address) in [("ip", "127.0.0.1"), ("ip6", "[::1]")] {
            if family == "ip6" && !self.families.contains(&"-6") {
                continue;
            }
            let alone = address.trim_matches(['[', ']']);
            for priority in [OF_UES, OF_SERVERS] {
                all.push((
                    "prerouting",
                    format!(
                        "iifname lo meta priority {} meta nfproto {} meta l4proto {TCP} meta mark set {mark:#x} tproxy {family} \
                         to {address}:{port} accept",
                        class(priority),
                        nfproto(family),
                    ),
                ));
            }
            // Other programs of this machine have no business there.
            all.push(("prerouting", format!("iifname lo {family} daddr {alone} tcp dport {port} drop")));
            // What has the mark already has come from an interface in a VRF, and now comes from the VRF. No socket outside it would get
            // it (`inet_sk_bound_dev_eq` in `inet_sock.h`), unless it has its socket here.
            all.push((
                "prerouting",
                format!(
                    "meta mark {mark:#x} iifname != lo meta nfproto {} meta l4proto {TCP} tproxy {family} to \
                     {address}:{port} accept",
                    nfproto(family),
                ),
            ));
        }
        all
    }

    /// The lease, and SYNs that the proxy lets pass: they are noted, and not held again.
    fn passing(&self, ran: &str) -> Vec<Rule> {
        let (mark, to) = (self.mark, self.slot.lease().port());
        let mut all = vec![("output", format!("meta mark {mark:#x} udp dport {to} update @lease {{ {LEASE} }} drop"))];
        for (family, number) in [("ip", 4), ("ip6", 6)] {
            let (ends, passing) = (ends(family), class(PASSING));
            for (opened_by, is_to_ran) in std::iter::zip(UNANSWERED, ["!=", "=="]) {
                let note = note_unanswered(family, number, opened_by);
                all.push(("output", format!("meta priority {passing} oifname {is_to_ran} {ran} {note}")));
            }
            all.push(("output", format!("meta priority {passing} update @passed{number} {{ {ends} }} accept")));
            let sets = ["passed", "strays", UNANSWERED[0], UNANSWERED[1]];
            all.extend(sets.map(|set| ("hold", format!("{ends} @{set}{number} return"))));
        }
        all
    }

    /// Counters of packets of handshakes, where they leave and where they should come, for what keeps them from the proxy.
    fn counted(&self, At { both, .. }: At) -> Vec<Rule> {
        let mark = self.mark;
        let [syns, answers, given, acks] = COUNTERS;
        let syn = format!("meta priority {} {FLAGS} == syn counter name", class(CONNECTING));
        let mut all = vec![("output", format!("{syn} {}", syns[0])), ("postrouting", format!("{syn} {}", syns[1]))];
        for priority in [OF_UES, OF_SERVERS].map(class) {
            for plain in PLAIN {
                all.push(("output", format!("oifname lo {plain} meta priority {priority} counter name {}", given[0])));
                let come = format!("meta mark {mark:#x} {plain} meta priority {priority}");
                all.push(("input", format!("{come} counter name {}", given[1])));
            }
        }
        for (pair, kind) in [(answers, "(syn | ack)"), (acks, "ack")] {
            for (plain, family, number) in [(PLAIN[0], "ip", 4), (PLAIN[1], "ip6", 6)] {
                let is_own =
                    if kind == "ack" { format!("{} != @connecting{number}", ends(family)) } else { String::new() };
                all.push((
                    "first",
                    format!("iifname {both} {plain} {FLAGS} == {kind} {OURS} {is_own} counter name {}", pair[0]),
                ));
                all.push(("input", format!("meta mark {mark:#x} {plain} {FLAGS} == {kind} counter name {}", pair[1])));
            }
        }
        all
    }

    /// SYNs that are held as long as there is a lease, and packets of QUIC, which are counted.
    fn held(&self, At { ran, wan, .. }: At) -> Vec<Rule> {
        let mut ways = vec![(ran, wan, UNANSWERED[0])];
        if self.settings.opened_by_servers {
            ways.push((wan, ran, UNANSWERED[1]));
        }
        let mut all = vec![("forward", "meta sdif != 0 jump vrf".into())];
        for (from, to, opened_by) in ways {
            for (chain, from) in std::iter::zip(["forward", "vrf"], origins(from)) {
                // One that has no lease is not held. Without it, nothing else is looked at.
                let held = format!("{from} oifname {to} {FLAGS} == syn {LEASE} @lease");
                all.push((
                    chain,
                    format!("{held} limit rate {SYNS_OF_SIDE}/second burst {SYNS_OF_SIDE} packets jump hold"),
                ));
                // What is here was not held.
                for (family, number) in [("ip", 4), ("ip6", 6)] {
                    let note = note_unanswered(family, number, opened_by);
                    all.push((chain, format!("{from} oifname {to} {FLAGS} == syn {note}")));
                }
            }
        }
        let [to_ues, from_ues] = QUIC;
        all.push(("forward", format!("iifname {wan} oifname {ran} udp sport 443 counter name {to_ues}")));
        all.push(("forward", format!("iifname {ran} oifname {wan} udp dport 443 counter name {from_ues}")));
        all
    }

    /// SYNs that are not held, by settings or because of what the proxy could not keep.
    fn exempt(&self, At { ran, wan, .. }: At) -> Vec<Rule> {
        let settings = &self.settings;
        let leave = |condition: String| ("hold", format!("{condition} return"));
        let mut all = vec![leave("tcp dport != @ports".into())];
        // Their answers would not have these options, and the kernel may drop them here.
        all.extend(["ip hdrlength != 5", "ip6 nexthdr != 6"].map(|options| leave(options.into())));
        all.extend(
            settings
                .bypass_marks
                .iter()
                .map(|mark| leave(format!("meta mark & {:#x} == {:#x}", mark.mask, mark.value))),
        );
        for (family, number) in [("ip", 4), ("ip6", 6)] {
            all.extend(["saddr", "daddr"].map(|end| leave(format!("{family} {end} @bypass{number}"))));
            if !settings.only.is_empty() {
                for (ran, wan) in std::iter::zip(origins(ran), origins(wan)) {
                    all.push(leave(format!("{ran} {family} saddr != @only{number}")));
                    all.push(leave(format!("{wan} {family} daddr != @only{number}")));
                }
            }
        }
        if self.tracked {
            all.push(leave("ct status dnat".into()));
        }
        all.extend(OPTIONS.map(|option| leave(format!("tcp option {option} exists"))));
        // An IPv6 host has a whole network.
        let mask = Ipv6Net::new(Ipv6Addr::UNSPECIFIED, settings.ipv6_prefix).unwrap_or_default().netmask();
        for (family, end, number) in [("ip", "ip saddr".to_owned(), 4), ("ip6", format!("ip6 saddr & {mask}"), 6)] {
            let most = settings.max_per_ue.max(SYNS);
            let limit = format!("limit rate over {most}/second burst {most} packets");
            all.push(leave(format!("meta nfproto {} update @syns{number} {{ {end} {limit} }}", nfproto(family))));
        }
        all
    }

    /// The others: the proxy gets a copy of each.
    fn logged(&self) -> Vec<Rule> {
        let group = self.group;
        let mut all = Vec::new();
        if self.tracked {
            let known = String::from_utf8_lossy(KNOWN);
            all.push(("hold", format!("ct state established log prefix \"{known}\" group {group} drop")));
        }
        all.push(("hold", format!("log group {group}")));
        all.push(("hold", "drop".into()));
        all
    }

    /// The rules for segments that are for a socket of the proxy by their addresses and ports, and for another one by what they say: a
    /// socket that connects waits for a SYN-ACK or a reset. They come first in their chains.
    fn foreign(&self, ran: &str) -> Vec<Rule> {
        // The sockets are closed at the first sweep after that.
        let longest = (self.settings.connect_timeout + Duration::from_secs(2)).as_secs();
        let connecting = format!("meta priority {}", class(CONNECTING));
        let mut all = Vec::new();
        for (family, number) in [("ip", 4), ("ip6", 6)] {
            let sent = back(family);
            let note = format!("update @connecting{number} {{ {sent} timeout {longest}s }}");
            // Before the socket is there; and again if it has another port than the client.
            all.push(("output", format!("meta priority {} {note} drop", class(ANNOUNCING))));
            all.push(("output", format!("{connecting} {FLAGS} == syn {note}")));
            // The last packet of its handshake.
            all.push(("output", format!("{connecting} {FLAGS} == ack delete @connecting{number} {{ {sent} }}")));
            let foreign = format!("tcp flags & (syn | rst) == 0 {} @connecting{number}", ends(family));
            all.push(("own", format!("{foreign} return")));
            if self.tracked && self.settings.opened_by_servers {
                all.push(("early", format!("iifname {ran} {foreign} accept")));
            }
        }
        all
    }
}
