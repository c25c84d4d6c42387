//! What keeps connections from the proxy, although the proxy works: settings of the kernel, rules of routing, and firewalls.
//!
//! Nothing reports them as an error: packets for the proxy are dropped or led elsewhere. An operator may change them at any time.
//! Known settings and rules are looked for; all else shows in the counters of packets that are led to the proxy and never arrive
//! ([`Divergence`]).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use netio::Error;
use netio::program::ip;

use super::book::Handshakes;
use super::settings::Settings;
use super::steering::{Counts, families, mark, nft};

/// Where `br_netfilter` has its settings, if it is loaded.
const BRIDGE_SETTINGS: &str = "/proc/sys/net/bridge";

/// Addresses of hosts that are nobody's neighbours (RFC 5737, RFC 3849): default routes lead there.
const ELSEWHERE: [&str; 2] = ["203.0.113.1", "2001:db8::1"];

/// Finds obstacles for the connections between two interfaces.
#[derive(Debug)]
pub(super) struct Obstacles {
    wan: Vec<String>,
    ran: Vec<String>,
    /// Those among them that are bridges.
    bridges: Vec<String>,
    mark: u32,
}

impl Obstacles {
    /// Prepares the search. The interface towards the RAN has the number `ran`.
    ///
    /// # Errors
    /// [`Error::System`] if `ip` fails.
    pub(super) fn new(settings: &Settings, ran: u32) -> Result<Obstacles, Error> {
        let mut bridges = Vec::new();
        for name in settings.wan.iter().chain(&settings.ran) {
            if !bridge(name)?.trim().is_empty() {
                bridges.push(name.clone());
            }
        }
        Ok(Obstacles { wan: settings.wan.clone(), ran: settings.ran.clone(), bridges, mark: mark(ran) })
    }

    fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.wan.iter().chain(&self.ran).map(String::as_str)
    }

    /// Returns a rule of nftables that is an obstacle: it says what becomes of packets that leave, by what those of the proxy do not have.
    /// `None` also if `nft` cannot list them.
    pub(super) fn in_ruleset() -> Option<String> {
        let rule = by_origin(&nft(&["-t", "list", "ruleset"], "").ok()?)?;
        Some(format!(
            "{rule} asks for what the proxy's own packets do not have: name addresses, the outgoing interface or a mark (`meta \
             mark`) instead"
        ))
    }

    /// Returns what is said if the kernel forwards nothing. That is no reason not to start: it may be about to change.
    pub(super) fn in_forwarding() -> Option<String> {
        let is_off = |path: &str| value(path).is_none_or(|value| value == "0");
        let off = is_off("/proc/sys/net/ipv4/ip_forward") && is_off("/proc/sys/net/ipv6/conf/all/forwarding");
        off.then(|| "net.ipv4.ip_forward is 0, and this kernel forwards nothing: set it to 1".into())
    }

    /// Returns a setting in `/proc/sys` that is an obstacle, if there is one.
    pub(super) fn in_settings(&self) -> Option<String> {
        for interface in ["all"].into_iter().chain(self.interfaces()) {
            // The kernel looks for the sender of a packet in the routing table of its mark, where all addresses are ours.
            if is_set(&format!("/proc/sys/net/ipv4/conf/{interface}/src_valid_mark")) {
                // sysctl takes a dot in the name of a VLAN's interface for a separator.
                let name = interface.replace('.', "/");
                return Some(format!(
                    "net.ipv4.conf.{name}.src_valid_mark is not 0, with which this kernel drops what the proxy marks: set it to 0"
                ));
            }
        }
        // Accepted sockets have the mark of the SYN, and so do their packets.
        if is_set("/proc/sys/net/ipv4/tcp_fwmark_accept") {
            return Some(
                "net.ipv4.tcp_fwmark_accept is not 0, with which this kernel sends the proxy's answers back to the proxy: \
                 set it to 0"
                    .into(),
            );
        }
        if value("/proc/sys/net/ipv4/tcp_syncookies").is_some_and(|value| value == "2") {
            return Some(
                "net.ipv4.tcp_syncookies is 2, with which this kernel answers each SYN with a cookie, and the proxy's clients \
                 are reset: set it to 1"
                    .into(),
            );
        }
        let bridge = self.bridges.first()?;
        let settings = ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"];
        let setting = settings.into_iter().find(|setting| is_set(&format!("{BRIDGE_SETTINGS}/{setting}")))?;
        Some(format!(
            "net.bridge.{setting} is not 0, with which this kernel does not lead connections by the bridge `{bridge}` to \
             the proxy: set it to 0"
        ))
    }

    /// Returns a routing rule or the setting of a bridge that is an obstacle, if there is one. The proxy's own rule has to be there.
    ///
    /// # Errors
    /// [`Error::System`] if `ip` fails; then it is unknown.
    pub(super) fn in_rules(&self) -> Result<Option<String>, Error> {
        if Path::new(BRIDGE_SETTINGS).exists() {
            for name in &self.bridges {
                let of_bridge = bridge(name)?;
                if let Some(setting) = filters(&of_bridge) {
                    return Ok(Some(format!(
                        "the bridge `{name}` has {setting} 1, with which this kernel does not lead its connections to the \
                         proxy: `ip link set {name} type bridge {setting} 0`"
                    )));
                }
            }
        }
        if let Some(why) = self.in_vrfs()? {
            return Ok(Some(why));
        }
        for family in families() {
            let rules = ip(&[family], "rule show\n")?;
            if let Some(rule) = by_interface(&rules, &self.interfaces().collect::<Vec<_>>()) {
                return Ok(Some(format!(
                    "a rule of `ip {family} rule` routes by the interface that a packet came from (`{rule}`), which the \
                     proxy's own packets do not have: let it route by a mark (`meta mark set` in prerouting, `fwmark`)"
                )));
            }
            if self.is_led_elsewhere(family, &rules)? {
                return Ok(Some(format!(
                    "a rule of `ip {family} rule` before the proxy's leads its packets elsewhere: move that rule behind it"
                )));
            }
        }
        Ok(None)
    }

    /// Returns what keeps connections of VRFs from the proxy: an interface is a VRF itself, or it is in one and is the way to hosts to
    /// which the proxy's own packets, which are in no VRF, go otherwise or not at all.
    fn in_vrfs(&self) -> Result<Option<String>, Error> {
        let show: String = self.interfaces().map(|name| format!("link show dev {name}\n")).collect();
        let shown = ip(&["-details", "-oneline"], &show)?;
        for (name, line) in self.interfaces().zip(shown.lines()) {
            if value_after(line, "vrf", "table").is_some() {
                return Ok(Some(format!("`{name}` is a VRF: name the interfaces in it")));
            }
            let is_member = value_after(line, "vrf_slave", "table").is_some();
            let Some(vrf) = value_after(line, "", "master").filter(|_| is_member) else { continue };
            for family in families() {
                let routes = ip(&[family], &format!("route show table all dev {name} proto kernel\n"))?;
                let near = routes.lines().find_map(host).map(|host| host.to_string());
                let far = ELSEWHERE[usize::from(*family == "-6")].to_owned();
                for host in near.into_iter().chain([far]) {
                    let get = |of: &str| ip(&[family], &format!("route get {host}{of}\n")).unwrap_or_default();
                    let goes = |route: &str| value_after(route, "", "dev") == Some(name);
                    if goes(&get(&format!(" vrf {vrf}"))) && !goes(&get("")) {
                        return Ok(Some(format!(
                            "`{name}` is in the VRF `{vrf}`, but the proxy's own packets are in none, and do not go to {host} by \
                             it: give the main table the VRF's routes (`ip {family} route add ... dev {name}`)"
                        )));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Whether packets with the mark, from a host next to one interface to a host next to the other, are not for this machine.
    fn is_led_elsewhere(&self, family: &str, rules: &str) -> Result<bool, Error> {
        if !has_rules_before(rules, self.mark) {
            return Ok(false);
        }
        for (wan, ran) in self.wan.iter().flat_map(|wan| self.ran.iter().map(move |ran| (wan, ran))) {
            if self.is_led_elsewhere_between(family, wan, ran)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_led_elsewhere_between(&self, family: &str, wan: &str, ran: &str) -> Result<bool, Error> {
        let host_at = |interface: &str| -> Result<Option<IpAddr>, Error> {
            let routes = ip(&[family], &format!("route show dev {interface} proto kernel\n"))?;
            Ok(routes.lines().find_map(host))
        };
        let (Some(server), Some(ue)) = (host_at(wan)?, host_at(ran)?) else { return Ok(false) };
        for (from, to, interface) in [(ue, server, ran), (server, ue, wan)] {
            let question = format!("route get {to} from {from} iif {interface} mark {:#x}\n", self.mark);
            // It fails if the kernel takes no packet from this host there; then this tells nothing.
            let route = ip(&[family], &question).unwrap_or_default();
            if !route.is_empty() && !route.starts_with("local ") {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What keeps packets from the proxy, as of the last looks.
#[derive(Default)]
pub(super) struct Obstructed {
    pub(super) by_setting: Option<String>,
    pub(super) by_routing: Option<String>,
    pub(super) by_ruleset: Option<String>,
    /// Nobody knows by what, but packets get lost.
    pub(super) somehow: Option<String>,
}

impl Obstructed {
    /// What is known without a trial.
    pub(super) fn known(&self) -> Option<&String> {
        [&self.by_setting, &self.by_routing, &self.by_ruleset].into_iter().flatten().next()
    }

    /// What the operator is told.
    pub(super) fn why(&self) -> Option<String> {
        self.known().or(self.somehow.as_ref()).cloned()
    }
}

/// Finds out by counters whether packets that are led to the proxy arrive there.
#[derive(Debug)]
pub(super) struct Divergence {
    /// As of the last look that showed nothing wrong.
    since: (Counts, u64),
    state: State,
    /// The present or last pause before the next trial.
    pause: Duration,
}

/// Whether packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Arriving,
    /// They do not, and no connection is taken until then.
    Missing(Instant),
    /// They did not, and one connection of each UE at a time is taken.
    OnTrial,
}

/// The first pause before a trial, and the longest: pauses double. It is shorter if all that shows an obstacle are handshakes of one
/// UE or at one server, which may be at fault itself.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
const LONGEST_PAUSE_FOR_ONE: Duration = Duration::from_secs(20);
/// How many packets of each kind of [`Counts`] must be lost at least. What other hosts send may be lost by chance, as to a policer.
const TELLING: [u64; 4] = [1, 2, 1, 2];

impl Divergence {
    pub(super) fn new() -> Divergence {
        Divergence { since: (Counts::default(), 0), state: State::Arriving, pause: PAUSE }
    }

    /// Returns what the counters tell. Call it once or twice a second while connections begin. `accepted` counts clients whose
    /// handshake was completed, and `handshakes` tells how those get on that are not: only all together show that it is not some
    /// host whose packets a rule drops on purpose.
    pub(super) fn look(&mut self, now: Instant, counts: Counts, accepted: u64, handshakes: Handshakes) -> State {
        let (before, accepted_before) = self.since;
        let is_astray = counts.0.iter().zip(before.0).zip(TELLING).any(|((now, before), telling)| {
            let [made, come] = [0, 1].map(|n| now[n].saturating_sub(before[n]));
            let lost = made.saturating_sub(come);
            lost >= telling && 2 * lost > made
        });
        let longest = match handshakes {
            Handshakes::Stuck => Some(LONGEST_PAUSE),
            Handshakes::StuckAtOne => Some(LONGEST_PAUSE_FOR_ONE),
            Handshakes::None | Handshakes::UnderWay => None,
        };
        let lost = longest.filter(|_| is_astray && accepted == accepted_before);
        if lost.is_some() || accepted > accepted_before || handshakes == Handshakes::None {
            self.since = (counts, accepted);
        }
        self.state = match (self.state, lost) {
            (State::Missing(until), _) if now < until => State::Missing(until),
            (State::Missing(_), _) => State::OnTrial,
            (_, Some(longest)) => {
                let pause = self.pause.min(longest);
                self.pause = (2 * pause).min(LONGEST_PAUSE);
                State::Missing(now + pause)
            }
            (State::OnTrial, None) if accepted > accepted_before => {
                self.pause = PAUSE;
                State::Arriving
            }
            (state, None) => state,
        };
        self.state
    }
}

/// Returns a rule in the output of `ip rule show` that chooses a table, or other rules, for packets from one of these interfaces or from this
/// machine itself.
fn by_interface<'a>(rules: &'a str, interfaces: &[&str]) -> Option<&'a str> {
    let found = rules.lines().find(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |word| words.iter().position(|other| *other == word).and_then(|at| words.get(at + 1)).copied();
        let chooses = after("lookup").is_some_and(|table| !["local", "main", "default"].contains(&table));
        let is_about =
            after("iif").is_some_and(|name| name == "lo" || words.contains(&"not") || interfaces.contains(&name));
        is_about && (chooses || after("goto").is_some())
    });
    Some(found?.split_once(':')?.1.trim())
}

/// A chain's name and rules.
type Chain<'a> = (&'a str, Vec<&'a str>);

/// Returns a rule in the output of `nft list ruleset` that treats packets which leave this machine by what the router's own packets do not
/// have: the interface that they came from, or the mark of their connection. It is in a chain of the hook `postrouting`, or in one to which
/// such a chain leads.
fn by_origin(ruleset: &str) -> Option<String> {
    let mut table = "";
    // Of the present table: its chains with their rules.
    let mut chains: Vec<Chain> = Vec::new();
    let mut tables: Vec<(&str, Vec<Chain>)> = Vec::new();
    for line in ruleset.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("table ") {
            tables.push((table, std::mem::take(&mut chains)));
            table = rest.split(" {").next().unwrap_or(rest);
        } else if let Some(rest) = line.strip_prefix("chain ") {
            chains.push((rest.split(" {").next().unwrap_or(rest), Vec::new()));
        } else if let Some((_, rules)) = chains.last_mut() {
            rules.push(line);
        }
    }
    tables.push((table, chains));
    tables.iter().filter(|(table, _)| !table.contains(" ranway_proxy_")).find_map(|(table, chains)| {
        let is_first = |rules: &[&str]| rules.iter().any(|rule| rule.contains(" hook postrouting "));
        let mut reached: Vec<&str> =
            chains.iter().filter(|(_, rules)| is_first(rules)).map(|(name, _)| *name).collect();
        let mut next = 0;
        while let Some(name) = reached.get(next).copied() {
            next += 1;
            for rule in chains.iter().filter(|(other, _)| *other == name).flat_map(|(_, rules)| rules) {
                let words: Vec<&str> = rule.split_whitespace().collect();
                let is_about = words.iter().any(|word| ["iif", "iifname", "iifgroup"].contains(word))
                    || words.windows(2).any(|two| two == ["ct", "mark"]);
                if is_about {
                    return Some(format!("chain `{name}` of table `{table}`: `{rule}`"));
                }
                let targets = words.windows(2).filter(|two| ["jump", "goto"].contains(&two[0])).map(|two| two[1]);
                for target in targets {
                    if !reached.contains(&target) {
                        reached.push(target);
                    }
                }
            }
        }
        None
    })
}

/// Returns the settings of a bridge as `ip` shows them, or nothing if the interface is none.
fn bridge(name: &str) -> Result<String, Error> {
    ip(&["-details"], &format!("link show dev {name} type bridge\n"))
}

/// Returns the word after `key` in the output of `ip`, where `key` comes right after `before`, if that is not empty.
fn value_after<'a>(shown: &'a str, before: &str, key: &str) -> Option<&'a str> {
    let words: Vec<&str> = shown.split_whitespace().collect();
    words.windows(3).find(|three| three[1] == key && (before.is_empty() || three[0] == before)).map(|three| three[2])
}

/// Returns the setting by which a bridge alone hands its packets to netfilter, if it does.
fn filters(bridge: &str) -> Option<&'static str> {
    let words: Vec<&str> = bridge.split_whitespace().collect();
    ["nf_call_iptables", "nf_call_ip6tables"]
        .into_iter()
        .find(|setting| words.windows(2).any(|two| two == [*setting, "1"]))
}

/// Whether `ip rule show` has rules before that of `mark`, beside the one for local addresses.
fn has_rules_before(rules: &str, mark: u32) -> bool {
    let ours = format!(" fwmark {mark:#x}");
    rules.lines().take_while(|line| !line.contains(&ours)).any(|line| !line.starts_with("0:"))
}

/// Returns an address that a neighbour in the network of this line of `ip route show` may have.
fn host(route: &str) -> Option<IpAddr> {
    let mut words = route.split_whitespace();
    let (network, length) = words.next()?.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    match network.parse::<IpAddr>().ok()? {
        IpAddr::V4(network) => {
            let own = words.skip_while(|word| *word != "src").nth(1).and_then(|own| own.parse::<Ipv4Addr>().ok());
            let hosts = [1, 2].map(|n| Ipv4Addr::from_bits(network.to_bits() | n));
            hosts.into_iter().find(|host| length <= 30 && Some(*host) != own).map(IpAddr::V4)
        }
        IpAddr::V6(network) => {
            // Not one of the first, which this machine is likely to have.
            let is_ordinary = length <= 112 && !network.is_unicast_link_local();
            is_ordinary.then(|| IpAddr::V6(Ipv6Addr::from_bits(network.to_bits() | 0x7261)))
        }
    }
}

/// Whether a setting exists and is not 0.
fn is_set(path: &str) -> bool {
    value(path).is_some_and(|value| value != "0")
}

fn value(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::steering::{Plan, Slot};
    use super::*;

    #[test]
    fn the_mark_is_that_of_the_rule() {
        let settings = Settings::new(&["wan0"], &["ran0"]);
        let ours = format!(" fwmark {:#x}", mark(7));
        let commands = Plan::new(&settings, 7, 1, Slot::First).undo_commands();
        assert!(commands.iter().all(|(_, commands)| commands.contains(&ours)), "{commands:?}");
    }

    #[test]
    fn rules_count_that_come_before_that_of_the_proxy() {
        let local = "0:\tfrom all lookup local\n";
        let ours = "99:\tfrom all fwmark 0x72610007 lookup 1918959623\n";
        let main = "32766:\tfrom all lookup main\n";
        assert!(!has_rules_before(&[local, ours, main].concat(), 0x7261_0007));
        for earlier in ["10:\tfrom all lookup main\n", "0:\tfrom all iif ran0 lookup 5\n"] {
            let rules = [local, earlier, ours, main].concat();
            assert_eq!(has_rules_before(&rules, 0x7261_0007), earlier.starts_with("10:"), "{earlier}");
        }
    }

    #[test]
    fn rules_that_choose_a_table_by_interface_are_found() {
        let rules =
            "0:\tfrom all lookup local\n100:\tfrom all iif ran0 lookup 7 \n200:\tfrom all iif ran1 lookup main\n";
        assert_eq!(by_interface(rules, &["wan0", "ran0"]), Some("from all iif ran0 lookup 7"));
        assert_eq!(by_interface(rules, &["ran1", "wan0"]), None);
        assert_eq!(
            by_interface("5:\tfrom all iif ran0 blackhole\n6:\tfrom all fwmark 0x1 lookup 7\n", &["ran0"]),
            None
        );
    }

    #[test]
    fn rules_about_the_origin_of_packets_that_leave_are_found_wherever_they_are() {
        let with = |rule: &str| {
            format!(
                "table inet ranway_proxy_2 {{\n\tchain postrouting {{\n\t\ttype filter hook postrouting priority 9;\n\t\tiifname \"x\"\n\t}}\n}}\n\
                 table ip nat {{\n\tchain in {{\n\t\ttype nat hook prerouting priority dstnat;\n\t\tiifname \"ran\" accept\n\t}}\n\t\
                 chain post {{\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tjump more\n\t}}\n\t\
                 chain more {{\n\t\t{rule}\n\t}}\n}}\n"
            )
        };
        assert_eq!(by_origin(&with("oifname \"wan\" masquerade")), None);
        for rule in ["iifname \"ran\" oifname \"wan\" masquerade", "ct mark 0x00000005 masquerade"] {
            assert_eq!(by_origin(&with(rule)), Some(format!("chain `more` of table `ip nat`: `{rule}`")));
        }
    }

    #[test]
    fn packets_that_never_arrive_are_noticed_and_tried_again_less_and_less_often() {
        let (start, mut divergence) = (Instant::now(), Divergence::new());
        let mut look = |seconds, steered, arrived, accepted, handshakes| {
            let counts = Counts([[0, 0], [steered, arrived], [7, 7], [0, 0]]);
            divergence.look(start + Duration::from_secs(seconds), counts, accepted, handshakes)
        };
        use Handshakes::{None, Stuck, StuckAtOne, UnderWay};
        let missing = |seconds| State::Missing(start + Duration::from_secs(seconds));
        assert_eq!(look(0, 1000, 900, 50, Stuck), State::Arriving);
        assert_eq!(look(1, 1100, 998, 60, Stuck), State::Arriving);
        // Those of one host may be dropped on purpose, while others connect or nobody does.
        assert_eq!(look(2, 1110, 998, 61, Stuck), State::Arriving);
        assert_eq!(look(3, 1120, 998, 61, None), State::Arriving);
        assert_eq!(look(4, 1120, 998, 61, Stuck), State::Arriving);
        // Nor does one lost packet tell anything, but another one does, also later.
        assert_eq!(look(5, 1121, 998, 61, Stuck), State::Arriving);
        assert_eq!(look(6, 1122, 998, 61, UnderWay), State::Arriving);
        assert_eq!(look(7, 1122, 998, 61, Stuck), missing(12));
        assert_eq!(look(8, 1129, 998, 61, None), missing(12));
        assert_eq!(look(12, 1129, 998, 61, None), State::OnTrial);
        assert_eq!(look(13, 1130, 999, 61, UnderWay), State::OnTrial);
        assert_eq!(look(14, 1133, 999, 61, Stuck), missing(24));
        assert_eq!(look(24, 1133, 999, 61, None), State::OnTrial);
        assert_eq!(look(25, 1136, 1002, 62, None), State::Arriving);
        assert_eq!(look(26, 1139, 1002, 62, Stuck), missing(31));
        assert_eq!(look(31, 1139, 1002, 62, None), State::OnTrial);
        // What one host can do has no long pauses.
        let mut divergence = Divergence::new();
        let mut at = start;
        let pauses: Vec<u64> = (1..6)
            .map(|n| {
                let counts = Counts([[0, 0], [100 * n, 0], [7, 7], [0, 0]]);
                let State::Missing(until) = divergence.look(at, counts, 0, StuckAtOne) else {
                    panic!("they are missing")
                };
                let pause = until - std::mem::replace(&mut at, until);
                assert_eq!(divergence.look(at, counts, 0, None), State::OnTrial);
                pause.as_secs()
            })
            .collect();
        assert_eq!(pauses, [5, 10, 20, 20, 20]);
        // No policer or radio loses what the proxy gives to itself.
        let given = Counts([[0, 0], [0, 0], [1, 0], [0, 0]]);
        let pause = start + PAUSE;
        assert_eq!(Divergence::new().look(start, given, 0, Stuck), State::Missing(pause));
    }

    #[test]
    fn a_neighbour_has_another_address_of_the_network() {
        for (route, expected) in [
            ("10.1.0.0/24 scope link src 10.1.0.1 ", Some("10.1.0.2")),
            ("10.1.0.0/24 scope link src 10.1.0.9", Some("10.1.0.1")),
            ("10.1.0.4/30 scope link src 10.1.0.6", Some("10.1.0.5")),
            ("10.1.0.4/31 scope link src 10.1.0.5", None),
            ("10.1.0.5 scope link src 10.1.0.1", None),
            ("fd01::/64 metric 256 pref medium", Some("fd01::7261")),
            ("fe80::/64 metric 256 pref medium", None),
            ("default via 10.1.0.2", None),
            ("", None),
        ] {
            let expected = expected.map(|address: &str| address.parse::<IpAddr>().expect("an address"));
            assert_eq!(host(route), expected, "{route}");
        }
    }

    #[test]
    fn an_interface_is_a_vrf_or_in_one_or_neither() {
        let vrf =
            "5: core: <NOARP,MASTER,UP> mtu 65575 \\    link/ether 2a:00:00:00:00:01 \\    vrf table 10 numtxqueues 1";
        let member = "2: ran@if2: <UP> mtu 1500 master vrf state UP \\    veth \\    vrf_slave table 10 numtxqueues 1";
        let other = "3: ran@if2: <UP> mtu 1500 master vrf state UP \\    veth \\    bridge_slave state forwarding";
        for (line, expected) in [(vrf, [true, false]), (member, [false, true]), (other, [false, false])] {
            let found = ["vrf", "vrf_slave"].map(|kind| value_after(line, kind, "table").is_some());
            assert_eq!(found, expected, "{line}");
        }
        assert_eq!(value_after(member, "", "master"), Some("vrf"));
        assert_eq!(value_after("10.1.0.2 dev ran.100 table 10 src 10.1.0.1", "", "dev"), Some("ran.100"));
        assert_eq!(value_after("", "", "dev"), None);
    }

    #[test]
    fn a_bridge_may_filter_by_a_setting_of_its_own() {
        let shown =
            |v4, v6| format!("mcast_mld_version 1 nf_call_iptables {v4} nf_call_ip6tables {v6} nf_call_arptables 1");
        assert_eq!(filters(&shown(0, 0)), None);
        assert_eq!(filters(&shown(1, 1)), Some("nf_call_iptables"));
        assert_eq!(filters(&shown(0, 1)), Some("nf_call_ip6tables"));
        assert_eq!(filters(""), None);
    }
}
