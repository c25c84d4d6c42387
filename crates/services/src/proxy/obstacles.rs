//! Settings of the kernel with which new connections through the proxy get no answer, although the proxy works.
//!
//! Nothing reports them as an error: packets for the proxy are dropped or led elsewhere. An operator may change them at any time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use netio::Error;
use netio::program::ip;
use serde_json::Value;

use super::settings::Settings;
use super::steering::{BASE, families, mark, nft};

/// Where `br_netfilter` has its settings, if it is loaded.
const BRIDGE_SETTINGS: &str = "/proc/sys/net/bridge";

/// Finds obstacles for the connections between two interfaces.
#[derive(Debug)]
pub(super) struct Obstacles {
    wan: String,
    ran: String,
    /// Those of the two that are bridges.
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
        for name in [&settings.wan, &settings.ran] {
            if !bridge(name)?.trim().is_empty() {
                bridges.push(name.clone());
            }
        }
        Ok(Obstacles { wan: settings.wan.clone(), ran: settings.ran.clone(), bridges, mark: mark(ran) })
    }

    /// Returns a setting in `/proc/sys` that is an obstacle, if there is one.
    pub(super) fn in_settings(&self) -> Option<String> {
        for interface in ["all", &self.wan, &self.ran] {
            // The kernel looks for the sender of a packet in the routing table of its mark, where all addresses are ours.
            if is_set(&format!("/proc/sys/net/ipv4/conf/{interface}/src_valid_mark")) {
                return Some(format!(
                    "net.ipv4.conf.{interface}.src_valid_mark is not 0, with which this kernel drops what the proxy marks: \
                     set it to 0"
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
        for family in families() {
            if self.is_led_elsewhere(family)? {
                return Ok(Some(format!(
                    "a rule of `ip {family} rule` before the proxy's leads its packets elsewhere: move that rule behind it"
                )));
            }
        }
        Ok(None)
    }

    /// Whether packets with the mark, from a host next to one interface to a host next to the other, are not for this machine.
    fn is_led_elsewhere(&self, family: &str) -> Result<bool, Error> {
        if !has_rules_before(&ip(&[family], "rule show\n")?, self.mark) {
            return Ok(false);
        }
        let host_at = |interface: &str| -> Result<Option<IpAddr>, Error> {
            let routes = ip(&[family], &format!("route show dev {interface} proto kernel\n"))?;
            Ok(routes.lines().find_map(host))
        };
        let (Some(server), Some(ue)) = (host_at(&self.wan)?, host_at(&self.ran)?) else { return Ok(false) };
        for (from, to, interface) in [(ue, server, &self.ran), (server, ue, &self.wan)] {
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

/// Returns a chain of nftables that drops what comes to this machine unless a rule accepts it, as in "chain `input` of table
/// `inet filter`", if there is one and its table has no rule about marks of the proxy. `None` also if `nft` cannot say it.
pub(super) fn dropping_chain() -> Option<String> {
    let listed: Value = serde_json::from_str(&nft(&["-j", "list", "chains"], "").ok()?).ok()?;
    listed["nftables"].as_array()?.iter().map(|item| &item["chain"]).find_map(|chain| {
        let text = |key: &str| chain[key].as_str();
        let (family, table, name) = (text("family")?, text("table")?, text("name")?);
        if text("hook")? != "input" || text("policy")? != "drop" || !["inet", "ip", "ip6"].contains(&family) {
            return None;
        }
        let rules = nft(&["list", "table", family, table], "").ok()?;
        (!rules.contains(&format!("{:#x}", BASE >> 16))).then(|| format!("chain `{name}` of table `{family} {table}`"))
    })
}

/// Returns the settings of a bridge as `ip` shows them, or nothing if the interface is none.
fn bridge(name: &str) -> Result<String, Error> {
    ip(&["-details"], &format!("link show dev {name} type bridge\n"))
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
    use super::super::steering::Plan;
    use super::*;

    #[test]
    fn the_mark_is_that_of_the_rule() {
        let settings = Settings::new("wan0", "ran0");
        let ours = format!(" fwmark {:#x}", mark(7));
        let commands = Plan::new(&settings, 7).undo_commands();
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
    fn a_bridge_may_filter_by_a_setting_of_its_own() {
        let shown =
            |v4, v6| format!("mcast_mld_version 1 nf_call_iptables {v4} nf_call_ip6tables {v6} nf_call_arptables 1");
        assert_eq!(filters(&shown(0, 0)), None);
        assert_eq!(filters(&shown(1, 1)), Some("nf_call_iptables"));
        assert_eq!(filters(&shown(0, 1)), Some("nf_call_ip6tables"));
        assert_eq!(filters(""), None);
    }
}
