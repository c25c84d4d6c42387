//! The route from an emulation's server to the networks of this machine: a veth pair, with address translation at both ends.
//!
//! ```text
//! hosts -- (the emulated network) -- server  uplink0 <-- veth --> rwn-ID  this machine's routes
//!                                    translates to its             translates to the address of
//!                                    address on the pair           the interface that a packet leaves by
//! ```
//!
//! The machine learns no route to the emulated prefix, which several emulations share. Each of them has an nftables table
//! `ranway_ID` at the machine's side, which lets nothing but answers through to the veth pair.
//!
//! Answers come in by interfaces of the machine that may not forward packets, because `ip_forward` is off. Forwarding is
//! switched on for those interfaces alone (`net.ipv4.conf.IF.forwarding`), and the table drops everything else that
//! they would forward now. Several emulations may need the same interface: the last one switches it off. Setting up and
//! taking down hold the lock [`LOCK`], so none of them sees half of another.
//!
//! IPv4 alone: Linux forwards IPv6 for all interfaces or for none, and an interface that forwards it ignores router
//! advertisements, from which the machine may have its own address.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use netio::program::{self, find_program};

use crate::Error;

/// The server's end of the veth pair.
const INSIDE: &str = "uplink0";
/// Prefix of the names of this machine's ends; the emulation's ID follows.
const OUTSIDE: &str = "rwn-";
/// Prefix of the names of tables; the emulation's ID follows.
const TABLE: &str = "ranway_";
/// Held while an uplink is set up or taken down.
const LOCK: &str = "/run/ranway/uplinks";
/// The directory of the IPv4 settings of interfaces.
const SETTINGS: &str = "/proc/sys/net/ipv4/conf";

/// The private prefixes (RFC 1918) from which the veth pair gets a /30, in the order in which they are tried.
const POOLS: [Prefix; 2] =
    [Prefix { base: Ipv4Addr::new(172, 16, 0, 0), len: 12 }, Prefix { base: Ipv4Addr::new(192, 168, 0, 0), len: 16 }];
/// Shorter prefixes in a routing table are default routes in pieces (as VPNs have them), and occupy nothing.
const SHORTEST: u8 = 8;
/// Length of the prefix of a veth pair.
const PAIR: u8 = 30;

/// The machine's configuration of its resolver, and what systemd-resolved writes behind its own stub.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// Name servers that resolvers ask at most (`MAXNS` of resolv.h).
const MOST_SERVERS: usize = 3;

/// How hosts reach the networks of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nat {
    /// The name servers of the hosts, instead of the machine's own.
    pub dns: Vec<Ipv4Addr>,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) base: Ipv4Addr,
    pub(crate) len: u8,
}

impl Prefix {
    fn parse(text: &str) -> Option<Prefix> {
        let (base, len) = text.split_once('/').unwrap_or((text, "32"));
        Some(Prefix { base: base.parse().ok()?, len: len.parse().ok().filter(|&len| len <= 32)? })
    }

    fn overlaps(self, other: Prefix) -> bool {
        let shift = 32 - u32::from(self.len.min(other.len));
        let top = |prefix: Prefix| u64::from(prefix.base.to_bits()) >> shift;
        top(self) == top(other)
    }

    /// Whether an address lies in it.
    pub(crate) fn contains(self, address: Ipv4Addr) -> bool {
        self.overlaps(Prefix { base: address, len: 32 })
    }
}

/// The routing tables of a network namespace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Routes {
    prefixes: Vec<Prefix>,
    interfaces: BTreeSet<String>,
}

impl Routes {
    /// Reads the output of `ip -4 route show table all`.
    fn parse(text: &str) -> Routes {
        let mut routes = Routes::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            // Before the prefix there may be a type, as in "local 192.0.2.1 dev eth0".
            let prefix = words.iter().take(2).find_map(|word| Prefix::parse(word));
            routes.prefixes.extend(prefix.filter(|prefix| prefix.len >= SHORTEST));
            let interfaces = words.windows(2).filter(|pair| pair[0] == "dev" && pair[1] != "lo").map(|pair| pair[1]);
            routes.interfaces.extend(interfaces.map(str::to_owned));
        }
        routes
    }

    /// Returns a prefix for a veth pair that no route and none of `taken` overlaps.
    fn free(&self, taken: &[Prefix]) -> Option<Prefix> {
        let size = 1_usize << (32 - PAIR);
        let pairs = POOLS.iter().flat_map(|pool| {
            let (first, count) = (pool.base.to_bits(), 1_u32 << (32 - pool.len));
            // From the end, which people use less than the beginning.
            (first..first + count).step_by(size).rev().map(|base| Prefix { base: base.into(), len: PAIR })
        });
        let clashes = |pair: Prefix| self.prefixes.iter().chain(taken).any(|&other| pair.overlaps(other));
        pairs.into_iter().find(|&pair| !clashes(pair))
    }
}

/// Checks that this machine can have an uplink.
///
/// # Errors
/// [`Error::Missing`] without `nft`.
pub fn check() -> Result<(), Error> {
    match find_program("nft".as_ref()) {
        Some(_) => Ok(()),
        None => Err(Error::Missing("--nat needs `nft`, which is missing: install nftables".into())),
    }
}

/// The plan of the route out of the server's namespace.
#[derive(Debug)]
pub(crate) struct Uplink {
    id: String,
    pair: Prefix,
    /// Interfaces that forward only while there is an uplink.
    guarded: Vec<String>,
    _lock: File,
}

impl Uplink {
    /// Chooses addresses for the emulation `id`, whose hosts have addresses in `emulated`. Changes nothing yet.
    pub(crate) fn plan(id: &str, emulated: Prefix, servers: &[Ipv4Addr]) -> Result<Uplink, Error> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(LOCK)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(Error::system(format!("lock {LOCK}")))?;
        let routes = Routes::parse(&run("ip", &["-4", "route", "show", "table", "all"], "")?);
        let servers = servers.iter().map(|&base| Prefix { base, len: 32 });
        let taken: Vec<Prefix> = servers.chain([emulated]).collect();
        let pair = routes.free(&taken).ok_or_else(|| {
            let [one, other] = POOLS.map(|pool| format!("{}/{}", pool.base, pool.len));
            Error::Missing(format!(
                "--nat needs a free /{PAIR} in {one} or {other}, and this machine's routes use all of them"
            ))
        })?;
        let others = guarded_by_others()?;
        let needs = |interface: &String| !forwards(interface) || others.contains(interface);
        let guarded = routes.interfaces.into_iter().filter(|name| is_plain(name) && !name.starts_with(OUTSIDE));
        Ok(Uplink { id: id.to_owned(), pair, guarded: guarded.filter(needs).collect(), _lock: lock })
    }

    fn address(&self, number: u32) -> Ipv4Addr {
        (self.pair.base.to_bits() + number).into()
    }

    /// Returns shell commands that undo the changes at the machine's side, even if only some were made.
    pub(crate) fn restore_lines(&self) -> String {
        let Uplink { id, guarded, .. } = self;
        let all = u8::from(forwards("all"));
        let mut lines = format!(
            "exec 9>>{LOCK} && if command -v flock; then flock 9; fi\n\
             ip link delete dev {OUTSIDE}{id}\n\
             nft delete table ip {TABLE}{id}\n\
             others=$(for table in $(nft list tables ip | sed -n 's/^table ip \\({TABLE}.*\\)/\\1/p'); do nft list set ip \
             \"$table\" guarded; done)\n"
        );
        for name in guarded {
            // Whoever has switched everything on since then wants this one on, too.
            let _ = writeln!(
                lines,
                "case $others in *'\"{name}\"'*) ;; *) [ \"$(cat {SETTINGS}/all/forwarding)\" != {all} ] || \
                 [ ! -e '{SETTINGS}/{name}' ] || echo 0 >'{SETTINGS}/{name}/forwarding' ;; esac"
            );
        }
        lines + "exec 9>&-\n"
    }

    /// Connects the namespace `server` to this thread's. [`Uplink::restore_lines`] undo it.
    pub(crate) fn set_up(self, server: &str, mtu: u32) -> Result<(), Error> {
        let (ours, theirs) = (self.address(1), self.address(2));
        let outside = format!("{OUTSIDE}{}", self.id);
        program::ip(
            &[],
            &format!(
                "link add {outside} mtu {mtu} type veth peer name {INSIDE} mtu {mtu} netns {server}\n\
                 address add {ours}/{PAIR} dev {outside}\n\
                 link set dev {outside} up\n"
            ),
        )?;
        program::ip(
            &["-netns", server],
            &format!(
                "address add {theirs}/{PAIR} dev {INSIDE}\n\
                 link set dev {INSIDE} up\n\
                 route replace 0.0.0.0/0 via {ours} dev {INSIDE}\n"
            ),
        )?;
        // The guard is there before there is anything to guard.
        run("nft", &["-f", "-"], &self.table(&outside))?;
        run("ip", &["netns", "exec", server, "nft", "-f", "-"], &inner_table())?;
        for interface in self.guarded.iter().chain([&outside]) {
            let path = format!("{SETTINGS}/{interface}/forwarding");
            fs::write(&path, "1").map_err(Error::system(format!("write 1 to {path}")))?;
        }
        Ok(())
    }

    /// The table at the machine's side.
    fn table(&self, outside: &str) -> String {
        let Uplink { id, pair, guarded, .. } = self;
        let names: Vec<String> = guarded.iter().map(|name| format!("\"{name}\"")).collect();
        let elements = if names.is_empty() { String::new() } else { format!("elements = {{ {} }}", names.join(", ")) };
        format!(
            "table ip {TABLE}{id} {{
                set guarded {{
                    type ifname
                    {elements}
                }}
                chain postrouting {{
                    type nat hook postrouting priority srcnat
                    ip saddr {base}/{PAIR} oifname != \"{outside}\" masquerade
                }}
                chain forward {{
                    type filter hook forward priority filter
                    oifname \"{OUTSIDE}*\" ct state {{ established, related }} accept
                    oifname \"{OUTSIDE}*\" drop
                    iifname @guarded drop
                }}
            }}\n",
            base = pair.base
        )
    }
}

/// Returns the table in the server's namespace, which is removed with it: no connection is opened from outside.
fn inner_table() -> String {
    format!(
        "table ip ranway {{
            chain postrouting {{
                type nat hook postrouting priority srcnat
                oifname \"{INSIDE}\" masquerade
            }}
            chain input {{
                type filter hook input priority filter
                iifname \"{INSIDE}\" ct state != {{ established, related }} drop
            }}
            chain forward {{
                type filter hook forward priority filter
                iifname \"{INSIDE}\" ct state != {{ established, related }} drop
            }}
        }}\n"
    )
}

/// Whether the packets that come in by an interface are forwarded.
fn forwards(interface: &str) -> bool {
    fs::read_to_string(format!("{SETTINGS}/{interface}/forwarding")).is_ok_and(|value| value.trim() == "1")
}

/// Whether a name needs no quoting in a shell, a path and nftables.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b':' | b'@'))
}

/// Returns the interfaces that other emulations made forward.
fn guarded_by_others() -> Result<BTreeSet<String>, Error> {
    let mut guarded = BTreeSet::new();
    for line in run("nft", &["list", "tables", "ip"], "")?.lines() {
        if let Some(table) = line.strip_prefix("table ip ").filter(|table| table.starts_with(TABLE)) {
            // Others may have a table of such a name, without a set.
            let set = run("nft", &["list", "set", "ip", table, "guarded"], "").unwrap_or_default();
            guarded.extend(set.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    Ok(guarded)
}

/// Runs a program on an input. Returns its output.
pub(crate) fn run(program: &str, args: &[&str], input: &str) -> Result<String, Error> {
    let what = || format!("run `{}`", [&[program], args].concat().join(" "));
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::system(what()))?;
    // If it goes away before it has read everything, it says why.
    let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
    let output = child.wait_with_output().map_err(Error::system(what()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let source = io::Error::other(said.lines().next().unwrap_or("it failed").to_owned());
    Err(Error::System { what: what(), source })
}

/// The hosts' name servers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolver {
    pub(crate) servers: Vec<Ipv4Addr>,
    /// Other lines of the machine's file (`search`, `options`).
    rest: String,
}

impl Resolver {
    /// Returns the machine's own, or those of `nat`; `None` if hosts could not reach any. `emulated` is the hosts' prefix.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a server in `nat` that hosts cannot reach.
    pub(crate) fn find(nat: &Nat, emulated: Prefix) -> Result<Option<Resolver>, Error> {
        if let Some(server) = nat.dns.iter().find(|&&server| !is_outside(server, emulated)) {
            return Err(Error::Wrong(format!(
                "--dns {server}: emulated hosts cannot reach this address: name one outside {}/{} and 127.0.0.0/8",
                emulated.base, emulated.len
            )));
        }
        if nat.dns.len() > MOST_SERVERS {
            return Err(Error::Wrong(format!("--dns: {} addresses; at most {MOST_SERVERS} are used", nat.dns.len())));
        }
        let files = RESOLVERS.iter().filter_map(|path| fs::read_to_string(Path::new(path)).ok());
        let mut found = files.map(|text| Resolver::parse(&text, emulated));
        if nat.dns.is_empty() {
            return Ok(found.find(|resolver| !resolver.servers.is_empty()));
        }
        let rest = found.next().map_or_else(String::new, |resolver| resolver.rest);
        Ok(Some(Resolver { servers: nat.dns.clone(), rest }))
    }

    /// Reads a resolv.conf, ignoring servers that hosts cannot reach.
    fn parse(text: &str, emulated: Prefix) -> Resolver {
        let (mut servers, mut rest) = (Vec::new(), String::new());
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some("nameserver"), Some(address)) => {
                    let address: Option<IpAddr> = address.parse().ok();
                    servers.extend(match address {
                        Some(IpAddr::V4(address)) if is_outside(address, emulated) => Some(address),
                        _ => None,
                    });
                }
                (Some("search" | "domain" | "options"), _) => rest = rest + line + "\n",
                _ => {}
            }
        }
        servers.truncate(MOST_SERVERS);
        Resolver { servers, rest }
    }

    /// The hosts' /etc/resolv.conf.
    pub(crate) fn file(&self) -> String {
        let servers = self.servers.iter().map(|server| format!("nameserver {server}\n"));
        servers.chain([self.rest.clone()]).collect()
    }
}

fn is_outside(address: Ipv4Addr, emulated: Prefix) -> bool {
    !(address.is_loopback() || address.is_unspecified() || address.is_multicast() || emulated.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMULATED: Prefix = Prefix { base: Ipv4Addr::new(10, 0, 0, 0), len: 16 };

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).expect(text)
    }

    #[test]
    fn prefixes_overlap_if_one_holds_the_other() {
        for (one, other, overlap) in [
            ("10.0.0.0/16", "10.0.255.254", true),
            ("10.0.0.0/16", "10.1.0.0/16", false),
            ("10.0.0.0/8", "10.200.0.0/30", true),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("192.0.2.0/30", "192.0.2.4/30", false),
        ] {
            assert_eq!(prefix(one).overlaps(prefix(other)), overlap, "{one} {other}");
            assert_eq!(prefix(other).overlaps(prefix(one)), overlap, "{other} {one}");
        }
        for text in ["", "default", "10.0.0.0/33", "10.0.0/8", "fd00::/16"] {
            assert_eq!(Prefix::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_pair_clashes_with_no_route() {
        let text = "default via 192.0.2.1 dev eth0 proto dhcp\n\
                    0.0.0.0/1 via 10.8.0.1 dev tun0\n\
                    default\n\tnexthop via 198.51.100.1 dev eth1 weight 1\n\
                    172.31.255.0/24 dev docker0 proto kernel scope link src 172.31.255.1\n\
                    unreachable 172.31.254.252/30\n\
                    local 172.31.254.250 dev eth0 table local proto kernel\n\
                    local 127.0.0.0/8 dev lo table local\n";
        let routes = Routes::parse(text);
        assert_eq!(routes.interfaces.iter().collect::<Vec<_>>(), ["docker0", "eth0", "eth1", "tun0"]);
        let taken = [prefix("172.31.254.245")];
        assert_eq!(routes.free(&taken), Some(prefix("172.31.254.240/30")));
        assert_eq!(Routes::default().free(&[]), Some(prefix("172.31.255.252/30")));
        let full = Routes::parse("172.16.0.0/12 dev a\n192.168.0.0/16 dev b\n");
        assert_eq!(full.free(&[]), None);
    }

    #[test]
    fn hosts_ask_servers_that_they_can_reach() {
        let text = "# made by hand\nnameserver 127.0.0.53\nnameserver 10.0.1.1\nnameserver fd00::53\n\
                    nameserver 10.255.255.53\nsearch example.org\noptions edns0\n";
        let resolver = Resolver::parse(text, EMULATED);
        assert_eq!(resolver.file(), "nameserver 10.255.255.53\nsearch example.org\noptions edns0\n");
        assert_eq!(Resolver::parse("nameserver 127.0.0.53\n", EMULATED).file(), "");
        let nat = |dns: [u8; 4]| Nat { dns: vec![dns.into()] };
        let error = Resolver::find(&nat([10, 0, 0, 9]), EMULATED).expect_err("it is in the emulated prefix");
        assert!(matches!(&error, Error::Wrong(what) if what.contains("--dns 10.0.0.9")), "{error}");
        let found = Resolver::find(&nat([192, 0, 2, 53]), EMULATED).expect("it can be reached").expect("a resolver");
        assert_eq!(found.servers, [Ipv4Addr::new(192, 0, 2, 53)]);
    }

    #[test]
    fn names_that_mean_something_to_a_shell_are_not_plain() {
        assert!(["eth0", "wlp0s20f3", "eth0.100", "br-1a2b"].iter().all(|name| is_plain(name)));
        assert!(!["a'b", "a\"b", "$a", "a*", "a`b"].iter().any(|name| is_plain(name)));
    }
}
