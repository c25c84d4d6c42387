//! Real hosts: a network namespace for each, all attached to the simulated network and to nothing else.
//!
//! Every host has one interface beside `lo`, the TUN device `cell0`, by which all its packets leave: all hosts share its
//! prefix, and its default routes point there too. A host is silent until a program in it sends: there is no link layer to
//! resolve addresses on, and the kernel announces nothing (no link-local address, no duplicate address detection, no router
//! solicitation, no multicast reports). A router that is a proxy has two interfaces instead, `wan0` and `ran0`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;

use disk::Dir;
use netio::program::{find_program, ip};
use netio::realtime;
use netio::rights::check_rights;
use netio::tun::{self, Counts, Tun};
use nix::sched::CloneFlags;
use scenario::host_addresses;

use crate::Error;
use crate::names::{GivenName, NameServer, Names};
use crate::tidy::{Claim, FILES, NAMESPACES};
use crate::uplink::{self, Nat, Prefix, Resolver, Uplink};

/// The network-wide prefixes: every host reaches every other without a router.
const PREFIX: Prefix = Prefix { base: Ipv4Addr::new(10, 0, 0, 0), len: 16 };
const PREFIX_V6: u8 = 16;

/// The variable with the emulation's ID in the environment of programs in hosts.
pub const ID_VARIABLE: &str = "RANWAY_ID";
/// The name of the interface of every host.
pub(crate) const INTERFACE: &str = "cell0";
/// The interfaces of a router with two sides: towards the server, and towards the UEs.
pub(crate) const SIDES: [&str; 2] = ["wan0", "ran0"];

/// Most hosts beside the server: addresses go from 10.0.1.1 to 10.0.255.254.
const HOSTS_MAX: usize = 255 * 254;

/// Settings that differ from a new namespace's. They are set before `cell0` is made, which takes its own from `default`.
const SETTINGS: [(&str, &str); 6] = [
    // What comes from the cell may come from any address.
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    // One connection's end is not the next one's beginning.
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv6/conf/all/disable_ipv6", "0"),
    ("ipv6/conf/default/disable_ipv6", "0"),
    // No link-local address, and with it nothing that is sent from one.
    ("ipv6/conf/default/addr_gen_mode", "1"),
];

/// The processors on which hosts handle what they receive (receive packet steering): all but that of the network's thread,
/// which would otherwise do that work itself for every packet that it delivers. `cell0` takes them from this setting when it
/// is made. Since Linux 6.3.
const STEERING: &str = "core/rps_default_mask";

/// Settings of a router. They are made when its interfaces are without multicast: a router joins the group of all routers,
/// and would announce it.
const FORWARDING: [(&str, &str); 3] =
    [("ipv4/conf/all/send_redirects", "0"), ("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1")];

/// The /etc/resolv.conf of every host: [`NameServer`]. The machine's name server cannot be reached, and a program would wait for
/// it for many seconds.
const RESOLVER: &str = "nameserver 127.0.0.1\n";

/// A real host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The scenario's node.
    pub name: String,
    /// Its network namespace, by the name that `ip netns` knows.
    pub netns: String,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
}

/// A host that forwards the packets of the others.
#[derive(Clone, Copy, Debug)]
pub struct Router<'a> {
    /// The node at which it is.
    pub node: &'a str,
    /// Whether it has an interface towards the server and another one towards all other hosts, or one towards all.
    pub has_sides: bool,
}

/// Real hosts. Dropping the lab ends every process in them and removes everything it created; so does the death of this
/// process.
#[derive(Debug)]
pub struct Lab {
    hosts: Vec<Host>,
    /// The program's ends of the interfaces, with their names: one of each host, then the router's second one.
    tuns: Vec<Option<(Tun, &'static str)>>,
    /// The host that forwards packets between the others.
    router: Option<usize>,
    /// [`Router::has_sides`].
    has_sides: bool,
    /// Whether hosts have name servers that they can reach, if they reach anything outside.
    resolves: Option<bool>,
    /// Answers programs that ask a name server, if hosts do not ask one outside.
    names: Option<NameServer>,
    /// [`tun::overflowed`] at the beginning.
    overflowed: u64,
    /// Dropped last.
    claim: Claim,
}

impl Lab {
    /// As [`Lab::named`], with no names but those of the nodes.
    ///
    /// # Errors
    /// As [`Lab::named`].
    pub fn new(names: &[String], router: Option<Router>, mtu: u32, nat: Option<&Nat>) -> Result<Lab, Error> {
        Lab::named(names, router, mtu, nat, &[])
    }

    /// Creates hosts for the scenario's nodes `names`, of which the first is the server, and a last one for the router, whose
    /// kernel forwards packets. With `nat`, the server is their router to the networks of this machine. `given` are further
    /// names of hosts.
    ///
    /// # Errors
    /// [`Error::Missing`] without root, TUN, `ip` or, for `nat`, `nft`; [`Error::Wrong`] for invalid options; and
    /// [`Error::System`].
    pub fn named(
        names: &[String],
        router: Option<Router>,
        mtu: u32,
        nat: Option<&Nat>,
        given: &[GivenName],
    ) -> Result<Lab, Error> {
        check_mtu(mtu)?;
        if !(1..=HOSTS_MAX + 1).contains(&names.len()) {
            return Err(Error::Wrong(format!("{} hosts: there can be 1 to {}", names.len(), HOSTS_MAX + 1)));
        }
        let nodes: Vec<String> =
            names.iter().map(String::as_str).chain(router.map(|r| r.node)).map(String::from).collect();
        let plain = plain_names(&nodes);
        let mut known = all_names(&plain, router.map(|_| names.len()));
        given.iter().try_for_each(|given| known.give(given))?;
        check()?;
        nat.map_or(Ok(()), |_| uplink::check())?;
        let resolver = nat.map(|nat| Resolver::find(nat, PREFIX)).transpose()?;
        let claim = Claim::new()?;
        let hosts = nodes.iter().zip(&plain).enumerate().map(|(n, (name, plain))| {
            let (v4, v6) = host_addresses(n);
            Host { name: name.clone(), netns: format!("{}{plain}", claim.prefix()), v4, v6 }
        });
        let mut lab = Lab {
            hosts: hosts.collect(),
            tuns: Vec::with_capacity(nodes.len()),
            router: router.map(|_| names.len()),
            has_sides: router.is_some_and(|router| router.has_sides),
            resolves: None,
            names: None,
            overflowed: tun::overflowed().unwrap_or(0),
            claim,
        };
        let file = resolver.as_ref().and_then(Option::as_ref).map_or_else(|| RESOLVER.to_owned(), Resolver::file);
        lab.set_up(&known.hosts_file(), mtu, &file, nat.is_some())?;
        if nat.is_none() {
            let open =
                |host| lab.inside(host, NameServer::open)?.map_err(Error::system("open the port of the name server"));
            let sockets = (0..lab.hosts.len()).map(open).collect::<Result<Vec<_>, Error>>()?;
            lab.names = Some(NameServer::start(sockets, known)?);
        }
        if let Some(resolver) = resolver {
            lab.set_up_uplink(resolver.as_ref(), mtu)?;
            lab.resolves = Some(resolver.is_some());
        }
        Ok(lab)
    }

    fn set_up(&mut self, names: &str, mtu: u32, resolver: &str, nat: bool) -> Result<(), Error> {
        let mut namespaces = String::new();
        for host in &self.hosts {
            let (files, made) = Dir::open_or_make(&Path::new(FILES).join(&host.netns))?;
            made.keep();
            files.replace("hosts", names.as_bytes())?;
            // `ip` lays it over this file, and complains if there is none.
            if Path::new("/etc/resolv.conf").exists() {
                files.replace("resolv.conf", resolver.as_bytes())?;
            }
            let _ = writeln!(namespaces, "netns add {}", host.netns);
        }
        ip(&[], &namespaces)?;
        let others = realtime::others();
        for n in 0..self.hosts.len() {
            let interfaces = self.interfaces(n);
            let make = |name: &&'static str| {
                let tun = Tun::new(name).map_err(Error::system(format!("make the interface {name}")))?;
                Ok(Some((tun, *name)))
            };
            let tuns = self.inside(n, || {
                configure(&SETTINGS)?;
                if let Some(others) = &others {
                    // Without the setting, in an older kernel, the network's thread has more to do.
                    let _ = configure(&[(STEERING, others)]);
                }
                interfaces.iter().map(make).collect::<Result<Vec<_>, Error>>()
            })??;
            self.tuns.extend(tuns);
            let Host { netns, v4, v6, .. } = &self.hosts[n];
            let mut commands = String::from("link set dev lo up\n");
            let lens = if interfaces.len() > 1 { (32, 128) } else { (PREFIX.len, PREFIX_V6) };
            for dev in interfaces {
                let (queue, (len_v4, len_v6)) = (tun::QUEUE, lens);
                let _ = write!(
                    commands,
                    "link set dev {dev} mtu {mtu} txqueuelen {queue} multicast off\n\
                     address add {v4}/{len_v4} dev {dev}\n\
                     address add {v6}/{len_v6} dev {dev} nodad\n\
                     link set dev {dev} up\n"
                );
            }
            if let [_, ran] = interfaces {
                for Host { v4, v6, .. } in &self.hosts[1..n] {
                    let _ = write!(commands, "route add {v4} dev {ran}\nroute add {v6} dev {ran}\n");
                }
            }
            let _ = writeln!(commands, "route add 0.0.0.0/0 dev {}", interfaces[0]);
            // Nothing outside is reached over IPv6, and without a route programs know at once.
            if !nat || interfaces.len() > 1 {
                let _ = writeln!(commands, "route add ::/0 dev {}", interfaces[0]);
            }
            ip(&["-netns", netns], &commands)?;
            if self.router == Some(n) {
                // Packets may leave it by the interface that they came by, which is no reason for a redirect.
                let redirects: Vec<_> =
                    interfaces.iter().map(|dev| format!("ipv4/conf/{dev}/send_redirects")).collect();
                let settings: Vec<_> = redirects.iter().map(|name| (name.as_str(), "0")).chain(FORWARDING).collect();
                self.inside(n, || configure(&settings))??;
            }
        }
        Ok(())
    }

    /// The names of a host's interfaces.
    fn interfaces(&self, host: usize) -> &'static [&'static str] {
        if self.has_sides && self.router == Some(host) { &SIDES } else { &[INTERFACE] }
    }

    /// Makes the server the router to the networks of this machine.
    fn set_up_uplink(&self, resolver: Option<&Resolver>, mtu: u32) -> Result<(), Error> {
        let servers = resolver.map_or(&[][..], |resolver| &resolver.servers);
        let uplink = Uplink::plan(self.claim.id(), PREFIX, servers)?;
        self.claim.restore_by(&uplink.restore_lines())?;
        self.inside(0, || configure(&[("ipv4/ip_forward", "1")]))??;
        uplink.set_up(&self.hosts[0].netns, mtu)
    }

    /// Whether hosts that reach the networks of this machine have a name server there; `None` without `nat`.
    pub fn resolves(&self) -> Option<bool> {
        self.resolves
    }

    /// The host that forwards packets between the others, if there is one.
    pub fn router(&self) -> Option<usize> {
        self.router
    }

    /// The lab's ID: short, and unique on this machine.
    pub fn id(&self) -> &str {
        self.claim.id()
    }

    /// A directory that lives as long as the lab.
    pub fn dir(&self) -> &Dir {
        self.claim.directory()
    }

    /// The hosts, in the order in which they were named; the router is the last.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Takes the program's end of a host's interface, once. The namespace is freed only when this is closed, too.
    pub fn tun(&mut self, host: usize) -> Tun {
        self.tuns[host].take().expect("a host's interface is taken once").0
    }

    /// Takes the program's ends of all interfaces, with their names, once: one of each host, then the router's second one.
    pub(crate) fn tuns(&mut self) -> Vec<(Tun, &'static str)> {
        self.tuns.iter_mut().filter_map(Option::take).collect()
    }

    /// Whether the router has an interface towards the server and another one towards all other hosts.
    pub fn has_sides(&self) -> bool {
        self.has_sides
    }

    /// Returns a command that runs `program` in a host, with the caller's terminal, process group and streams.
    ///
    /// It becomes `program` by exec, so its process number, signals and status are that program's. Whatever it leaves
    /// running ends with the lab. Its environment has the emulation's ID ([`ID_VARIABLE`]). Check with [`find_program`] that it is
    /// installed.
    // No PR_SET_PDEATHSIG: that comes when the spawning *thread* ends, and the keeper sees to what it is good for.
    pub fn command(&self, host: usize, program: &OsStr) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hosts[host].netns]).arg(program).env(ID_VARIABLE, self.id());
        command
    }

    /// Calls `act` in a host, in a thread of its own. Sockets made there stay in the host.
    ///
    /// Files and name resolution are those of this process, not the host's.
    pub fn inside<T: Send>(&self, host: usize, act: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let netns = &self.hosts[host].netns;
        let enter = || {
            let namespace = fs::File::open(Path::new(NAMESPACES).join(netns))?;
            Ok(nix::sched::setns(namespace, CloneFlags::CLONE_NEWNET)?)
        };
        let result: io::Result<T> = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(netns.clone());
            let thread = thread.spawn_scoped(scope, || enter().map(|()| act()))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        result.map_err(Error::system(format!("enter the namespace {netns}")))
    }
}

impl Lab {
    /// Packets lost between the hosts and the program until now.
    pub(crate) fn lost(&self) -> Lost {
        let counts = |interface: &&str| {
            let counts = Counts::open(*interface).ok()?;
            Some((counts.dropped()?, counts.untaken()?))
        };
        let of = |host| self.inside(host, || self.interfaces(host).iter().filter_map(counts).collect::<Vec<_>>());
        let all: Vec<_> = (0..self.hosts.len()).filter_map(|host| of(host).ok()).flatten().collect();
        Lost {
            unread: all.iter().map(|(dropped, _)| dropped).sum(),
            untaken: all.iter().map(|(_, untaken)| untaken).sum(),
            overflowed: tun::overflowed().unwrap_or(0).saturating_sub(self.overflowed),
        }
    }
}

/// Packets lost between the hosts and the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Not read in time, so that the queue of their interface was full.
    unread: u64,
    /// Written, but dropped before a host's protocols saw them.
    untaken: u64,
    /// Dropped on the whole machine because a processor's queue was full.
    overflowed: u64,
}

impl Lost {
    /// Returns the packets whose loss nobody has noticed. `refused` are those that the kernel rejected and counted.
    pub(crate) fn unnoticed(&self, refused: u64) -> u64 {
        // `untaken` has those as well, and what a host's own programs (XDP) drop.
        self.unread + self.untaken.saturating_sub(refused).min(self.overflowed)
    }
}

/// Whether tests can create hosts; prints that they are skipped if not.
#[cfg(test)]
pub(crate) fn may() -> bool {
    testkit::root::granted(check()).is_some()
}

#[cfg(test)]
impl Lab {
    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }
}

/// Makes settings in the namespace of this thread.
fn configure(settings: &[(&str, &str)]) -> Result<(), Error> {
    for (name, value) in settings {
        let path = format!("/proc/sys/net/{name}");
        fs::write(&path, value).map_err(Error::system(format!("write {value} to {path}")))?;
    }
    Ok(())
}

/// Checks that this machine, and this user, can create hosts.
///
/// # Errors
/// [`Error::Missing`] names what is missing.
pub fn check() -> Result<(), Error> {
    check_rights()?;
    let missing = |what: &str| Err(Error::Missing(what.into()));
    if find_program(OsStr::new("ip")).is_none() {
        return missing("`ip` is missing: install iproute2");
    }
    match fs::OpenOptions::new().read(true).write(true).open(tun::DEVICE) {
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return missing("/dev/net/tun is missing: `modprobe tun`, or give the container that device");
        }
        Err(e) => return missing(&format!("/dev/net/tun cannot be opened: {e}")),
    }
    if !Path::new("/proc/sys/net/ipv6").exists() {
        return missing("IPv6 is missing: the kernel was built or started without it (ipv6.disable=1)");
    }
    Ok(())
}

/// Checks an MTU. Returns it as in packet headers.
pub(crate) fn check_mtu(mtu: u32) -> Result<u16, Error> {
    let wrong = || Error::Wrong(format!("an MTU of {mtu} bytes: real hosts need 1280 (for IPv6) to 65535"));
    u16::try_from(mtu).ok().filter(|&mtu| mtu >= 1280).ok_or_else(wrong)
}

/// Whether an address is outside the emulated network.
pub(crate) fn is_foreign(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !(PREFIX.contains(v4) || v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified()),
        IpAddr::V6(_) => false,
    }
}

/// The nodes' names as they can stand in a path and in /etc/hosts: short, of plain characters, and all different.
fn plain_names(names: &[String]) -> Vec<String> {
    let mut plain: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let keep = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
        let short: String = name.chars().take(32).map(keep).collect();
        let mut unique = if short.is_empty() { "host".into() } else { short.clone() };
        let mut times = 1;
        while plain.iter().any(|taken| taken.eq_ignore_ascii_case(&unique)) {
            times += 1;
            unique = format!("{short}-{times}");
        }
        plain.push(unique);
    }
    plain
}

/// The names of every host: its own, and what it is where no name says otherwise.
fn all_names(plain: &[String], router: Option<usize>) -> Names {
    let mut all = Names::default();
    for (n, name) in plain.iter().enumerate() {
        let mut names = vec![name.clone()];
        let aliases = match n {
            _ if router == Some(n) => vec!["router".to_owned()],
            0 => vec!["server".to_owned()],
            1 => vec!["ue1".to_owned(), "ue".to_owned()],
            _ => vec![format!("ue{n}")],
        };
        names.extend(aliases.into_iter().filter(|alias| !plain.iter().any(|p| p.eq_ignore_ascii_case(alias))));
        all.add(host_addresses(n), names);
    }
    all
}

#[cfg(test)]
mod tests;
