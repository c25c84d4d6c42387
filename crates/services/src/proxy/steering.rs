//! Leads the packets of TCP connections between two sides of this router to the proxy's sockets.
//!
//! A table of nftables does it in three places:
//!
//! - **`forward`, last**: a SYN that routes, rules and firewall have let through is *held*: its copy goes to the proxy (`log group`),
//!   and the packet is dropped. The proxy connects to the server first, and then gives the SYN to its own listener, or lets it pass
//!   ([`super::admission`]). Nothing is held without the proxy's *lease*, an element of a set that the proxy renews by packets to
//!   itself several times a second: a proxy that hangs or has died holds nothing.
//! - **`output` and `prerouting` of `lo`**: the SYN that the proxy gives back to itself reaches its listener (`tproxy`).
//! - **`prerouting`**: all other packets of the proxy's connections, and ICMP errors about them, are marked.
//!
//! A host's SYN may be forged, and its server may have another connection of the same addresses and ports, which is not split. It answers
//! the proxy with that one's acknowledgement (RFC 9293, section 3.10.7.4), which a socket in SYN-SENT would answer with a reset
//! (section 3.10.7.3). So until the proxy's socket has its SYN-ACK, other segments than SYN-ACKs and resets go on to the host.
//!
//! A rule sends what is marked to a routing table that delivers everything locally. All other traffic passes as without a proxy.
//!
//! Both legs of a connection have the same addresses and ports, which is one connection to the kernel's connection tracking. Where
//! that is used (by NAT, or by rules with states), the legs towards UEs are in a zone of their own. A leg begins with a packet of
//! the router itself, so that rules take the host's packets for answers. Connections whose destination NAT changes are left alone.
//!
//! A packet from an interface in a VRF passes `prerouting` twice: from the interface, where it gets the mark, and then from the VRF. The
//! proxy's sockets are in no VRF, and would not get it (unless `net.ipv4.tcp_l3mdev_accept` is set), so that there `tproxy` gives it its
//! socket. To `forward`, it comes from the VRF.
//!
//! The table belongs to a child process (`flags owner`): it vanishes when that ends, which it does when its input ends, and
//! other programs cannot flush it. The rule and the route are removed by [`Steering`] or, after a crash, by the guardian.
//! Mark and table are named after the first interface towards the RAN, so a next start also removes what might be left. The routing
//! table has a number of the instance, so that the guardian of an earlier one, if it was stopped and goes on later, removes
//! nothing of the present one.

mod rules;

use std::fmt::Write as _;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use netio::program::{find_program, ip};
use netio::{Error, counters, sys};
use serde::{Deserialize, Serialize};

use super::listen::ipv6;
use super::settings::Settings;

/// Before the rules that an operator is likely to have.
const PREFERENCE: u32 = 99;
/// The upper half of marks and of numbers of routing tables ("ra").
pub(super) const BASE: u32 = 0x7261_0000;
/// The first group that SYNs may be logged to ("ra").
pub(super) const GROUP: u16 = (BASE >> 16) as u16;
/// Before connection tracking; and after all rules of others that may refuse a packet or give it a mark.
const EARLY: i32 = -300;
const LAST: i32 = i32::MAX;
/// Before the first.
const FIRST: i32 = EARLY - 1;
/// How long the proxy's lease lasts without another packet of the proxy, in ms.
pub(super) const LEASE: u64 = 1000;
/// Hosts whose SYNs are counted, of each family, and how long, in seconds. Those of further hosts are not limited one by one.
const HOSTS: u32 = 65_536;
const COUNTED: u32 = 10;
/// How long packets of a connection that passes are not held, in seconds.
const PASSED: u32 = 130;
/// How long a socket may be in TIME-WAIT here (`TCP_TIMEWAIT_LEN` of Linux), and a moment, in seconds.
const WAITING: u32 = 61;
/// Connections that the proxy opens at a time, of each family, for which segments of others are told from its own: as many as both sides'
/// SYNs may begin in some seconds.
const OPENED: u32 = 262_144;
/// Time that nft has to set up its table: on a busy machine, it may get little of the processor.
const SETUP_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest time between two looks whether it has.
const LOOK: Duration = Duration::from_millis(100);
/// Time for the end of an instance that was killed.
const PREDECESSOR: Duration = Duration::from_secs(2);

/// How packets are led to the proxy's sockets, not yet in effect.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    table: String,
    /// The number of the interface towards the RAN.
    ran: u32,
    mark: u32,
    /// The number of the routing table.
    routes: u32,
    /// The families that were there at the start, as options of `ip`.
    families: &'static [&'static str],
    /// Whether connections are tracked.
    tracked: bool,
    generation: u32,
    /// The group to which SYNs are logged.
    group: u16,
    slot: Slot,
    settings: Settings,
}

/// Which of two: a proxy that takes over has its table and its lease beside those of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Slot {
    #[default]
    First,
    Second,
}

impl Slot {
    pub(super) fn other(self) -> Slot {
        match self {
            Slot::First => Slot::Second,
            Slot::Second => Slot::First,
        }
    }

    /// The name of the table, with the number of the interface towards the RAN.
    fn table(self, ran: u32) -> String {
        let more = if self == Slot::First { "" } else { "_b" };
        format!("ranway_proxy_{ran}{more}")
    }

    /// Where packets go that renew the lease. They are dropped before.
    pub(super) fn lease(self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 9 + self as u16))
    }
}

impl Plan {
    /// Plans the steering of an instance whose interface towards the RAN has the number `ran`.
    pub(super) fn new(settings: &Settings, ran: u32, group: u16, slot: Slot) -> Plan {
        // Another number for each instance, whichever process it is in.
        static INSTANCES: AtomicU32 = AtomicU32::new(0);
        let instance = std::process::id().wrapping_mul(31).wrapping_add(INSTANCES.fetch_add(1, Relaxed));
        Plan {
            table: slot.table(ran),
            ran,
            mark: mark(ran),
            routes: BASE | (instance & 0xffff),
            families: families(),
            tracked: tracks() || may_track(),
            generation: 0,
            group,
            slot,
            settings: settings.clone(),
        }
    }

    /// Which of two tables it has.
    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    /// Commands of `nft`, on one line and so at once: the table's counters, sets and chains, if they are missing, and what is in
    /// them, instead of what was.
    fn commands(&self) -> String {
        let table = &self.table;
        let mut all = String::new();
        let mut say = |words: std::fmt::Arguments| write!(all, "{words}; ").expect("it is text");
        for counter in COUNTERS.as_flattened().iter().chain(&QUIC) {
            say(format_args!("add counter inet {table} {counter}"));
        }
        // What it contains is of no importance.
        say(format_args!(
            "add set inet {table} lease {{ type inet_proto; flags dynamic, timeout; size 4; timeout {LEASE}ms; }}"
        ));
        for (set, kind, elements) in self.sets() {
            say(format_args!("add set inet {table} {set} {{ type {kind}; flags interval; auto-merge; }}"));
            say(format_args!("flush set inet {table} {set}"));
            if !elements.is_empty() {
                say(format_args!("add element inet {table} {set} {{ {} }}", elements.join(", ")));
            }
        }
        for (set, kind) in [("syns4", "ipv4_addr"), ("syns6", "ipv6_addr")] {
            say(format_args!(
                "add set inet {table} {set} {{ type {kind}; flags dynamic, timeout; size {HOSTS}; timeout {COUNTED}s; }}"
            ));
        }
        for (kind, number) in [("ipv4_addr", 4), ("ipv6_addr", 6)] {
            let short = ["reused", "strays", "of_ues", "of_servers"].map(|set| (set, WAITING));
            for (set, timeout) in [("passed", PASSED)].into_iter().chain(short) {
                say(format_args!(
                    "add set inet {table} {set}{number} {{ type {kind} . inet_service . {kind} . inet_service; flags dynamic, \
                     timeout; size {HOSTS}; timeout {timeout}s; }}"
                ));
            }
        }
        for (set, kind) in [("connecting4", "ipv4_addr"), ("connecting6", "ipv6_addr")] {
            say(format_args!(
                "add set inet {table} {set} {{ type {kind} . inet_service . {kind} . inet_service; flags dynamic, timeout; \
                 size {OPENED}; }}"
            ));
        }
        for (chain, hook) in [
            ("hold", None),
            ("own", None),
            ("vrf", None),
            ("first", Some(("prerouting", FIRST))),
            ("early", Some(("prerouting", EARLY))),
            ("output", Some(("output", FIRST))),
            ("prerouting", Some(("prerouting", LAST))),
            ("input", Some(("input", LAST))),
            ("forward", Some(("forward", LAST))),
            ("postrouting", Some(("postrouting", LAST))),
        ] {
            let hook = hook
                .map(|(hook, priority)| format!("{{ type filter hook {hook} priority {priority}; policy accept; }}"));
            say(format_args!("add chain inet {table} {chain} {}", hook.unwrap_or_default()));
            say(format_args!("flush chain inet {table} {chain}"));
        }
        for (chain, rule) in self.rules() {
            say(format_args!("add rule inet {table} {chain} {rule}"));
        }
        all
    }

    /// Checks that `nft`, `ip` and the kernel can do what is planned. Changes nothing.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub(super) fn check(&self) -> Result<(), Error> {
        for (program, package) in [("nft", "nftables"), ("ip", "iproute2")] {
            if find_program(program.as_ref()).is_none() {
                return Err(Error::Missing(format!("`{program}` is missing: install {package}")));
            }
        }
        match nft(&["-c", "-f", "-"], &format!("add table inet {}; {}\n", self.table, self.commands())) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Missing(format!(
                "this kernel cannot intercept connections (nftables with tproxy, socket and log is needed): {error}"
            ))),
        }
    }

    /// Commands of `ip` for each family, with `add` or `del`.
    fn ip_commands(&self, verb: &str) -> String {
        commands(verb, self.mark, self.routes)
    }

    /// Adds those rules and routes again that somebody has removed. Returns whether there were any.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn restore(&self) -> Result<bool, Error> {
        let Plan { mark, routes, .. } = self;
        let look = format!("rule show pref {PREFERENCE}\nroute show table {routes}\n");
        let mut restored = false;
        for family in self.families {
            // A table without a route is an error to `ip`.
            let there = ip(&[family, "-force"], &look).unwrap_or_default();
            let (rule, route) = (lookups(&there, *mark).any(|table| table == *routes), there.contains("local default"));
            let missing = self.ip_commands("add");
            for (command, _) in missing.lines().zip([rule, route]).filter(|(_, there)| !there) {
                ip(&[family], command)?;
                restored = true;
            }
        }
        Ok(restored)
    }

    /// Waits for the end of an instance on the same interface that was killed, whose table vanishes a moment later.
    pub(super) fn await_predecessor(&self) {
        let start = Instant::now();
        let tables = [Slot::First, Slot::Second].map(|slot| slot.table(self.ran));
        let are_there = || tables.iter().any(|table| nft(&["-t", "list", "table", "inet", table], "").is_ok());
        while start.elapsed() < PREDECESSOR && are_there() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Removes the rules and routes, if they are there.
    pub(super) fn undo(&self) {
        for family in self.families {
            let _ = ip(&[family, "-force"], &self.ip_commands("del"));
        }
    }

    /// Commands that do what [`Plan::undo`] does, for the guardian.
    pub(super) fn undo_commands(&self) -> Vec<(String, String)> {
        self.families.iter().map(|family| ((*family).to_owned(), self.ip_commands("del"))).collect()
    }

    /// Puts the plan into effect, beside that of a proxy from which this one takes over if it `takes_over`.
    ///
    /// # Errors
    /// [`Error::System`]; then nothing is changed.
    pub(super) fn start(self, takes_over: bool) -> Result<Steering, Error> {
        // An instance whose guardian was killed, too, may have left them.
        for family in if takes_over { &[][..] } else { self.families } {
            let there = ip(&[family, "-force"], &format!("rule show pref {PREFERENCE}\n")).unwrap_or_default();
            let left: String = lookups(&there, self.mark).map(|table| commands("del", self.mark, table)).collect();
            let _ = ip(&[family, "-force"], &left);
        }
        let mut steering = Steering { plan: self, nft: None };
        for family in steering.plan.families {
            ip(&[family], &steering.plan.ip_commands("add"))?;
        }
        steering.own_table()?;
        Ok(steering)
    }
}

/// Leads packets to the proxy until it is dropped.
#[derive(Debug)]
pub(super) struct Steering {
    plan: Plan,
    /// The process that owns the table.
    nft: Option<Child>,
}

impl Steering {
    fn own_table(&mut self) -> Result<(), Error> {
        let what = || "run `nft -i`".to_owned();
        let mut command = Command::new("nft");
        // It would keep a history at home if it is killed.
        command.arg("-i").env("HOME", "/dev/null").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A service manager or terminal that signals all processes must not end it before the connections end.
        let child = sys::in_own_session(&mut command).spawn().map_err(Error::system(what()))?;
        let child = self.nft.insert(child);
        let input = child.stdin.as_mut().expect("it is piped");
        let Plan { table, .. } = &self.plan;
        writeln!(input, "add table inet {table} {{ flags owner; }}; {}", self.plan.commands())
            .map_err(Error::system(what()))?;
        self.await_generation()
    }

    /// Makes the table again if its owner has ended because somebody has killed it, or the kernel for want of memory. Returns whether it
    /// had. Until then, packets of split connections go on to the hosts, which take them for old ones of their own connections (RFC 9293,
    /// section 3.10.7.4) and drop them: both their sequence and their acknowledgement numbers would have to fit.
    ///
    /// # Errors
    /// [`Error::System`]; then there is no table, and connections stand still.
    pub(super) fn revive(&mut self) -> Result<bool, Error> {
        if self.lives() {
            return Ok(false);
        }
        let made = self.own_table();
        if made.is_err()
            && let Some(child) = &mut self.nft
        {
            // It may be there without a table.
            let _ = child.kill();
            let _ = child.wait();
        }
        made.map(|()| true)
    }

    /// Changes which connections are split, at once for all.
    ///
    /// # Errors
    /// [`Error::System`]; then nothing is changed, or the owner of the table has ended.
    pub(super) fn change(&mut self, settings: &Settings) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.plan.settings, settings.clone());
        self.renew().inspect_err(|_| self.plan.settings = before)
    }

    /// Adapts the rules if connections have come to be tracked since the start, or are about to: the rules of others have `changed`.
    /// Returns whether they have just now. It costs little otherwise.
    ///
    /// # Errors
    /// As [`Steering::change`].
    pub(super) fn follow_tracking(&mut self, changed: bool) -> Result<bool, Error> {
        if self.plan.tracked || !(tracks() || (changed && may_track())) {
            return Ok(false);
        }
        self.plan.tracked = true;
        self.renew().map(|()| true)
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.plan.generation += 1;
        let commands = self.plan.commands();
        let input = self.nft.as_mut().and_then(|child| child.stdin.as_mut()).expect("it runs");
        writeln!(input, "{commands}").map_err(Error::system("change the rules of nftables"))?;
        self.await_generation()
    }

    /// Waits until the table has the rules that were written last.
    fn await_generation(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let comment = format!("\"{}\"", comment(self.plan.generation));
        let (table, mut pause) = (self.plan.table.clone(), Duration::from_millis(5));
        while !listed(&table).is_ok_and(|rules| rules.contains(&comment)) {
            if start.elapsed() > SETUP_TIMEOUT || !self.lives() {
                let source = std::io::Error::other("it did not make its table");
                return Err(Error::System { what: "run `nft -i`".into(), source });
            }
            // Each look takes processor time that it may need.
            std::thread::sleep(pause);
            pause = (2 * pause).min(LOOK);
        }
        Ok(())
    }

    /// Returns how many packets the table has led to the proxy, and how many of them have passed what follows; and the bytes of QUIC
    /// to UEs and from them.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel does not tell; then it is unknown.
    pub(super) fn counts(&self) -> Result<(Counts, [u64; 2]), Error> {
        let all = counters::of(&self.plan.table)?;
        let of = |name: &str| {
            let missing = || std::io::Error::other(format!("there is no counter `{name}`"));
            all.get(name).ok_or_else(missing).map_err(Error::system("read counters of nftables"))
        };
        let mut pairs = [[0; 2]; COUNTERS.len()];
        for (pair, names) in pairs.iter_mut().zip(COUNTERS) {
            *pair = [of(names[0])?.packets, of(names[1])?.packets];
        }
        Ok((Counts(pairs), [of(QUIC[0])?.bytes, of(QUIC[1])?.bytes]))
    }

    /// Whether the table is still there, as far as can be told cheaply.
    pub(super) fn lives(&mut self) -> bool {
        self.nft.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        if let Some(mut child) = self.nft.take() {
            // It is reaped, and its table gone, when this returns.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.plan.undo();
    }
}

/// Whether the rules of these settings differ.
pub(super) fn differ(one: &Settings, other: &Settings) -> bool {
    let what = |settings: &Settings| {
        let Settings {
            ports,
            bypass,
            bypass_marks,
            only,
            opened_by_servers,
            ipv6_prefix,
            max_per_ue,
            connect_timeout,
            ..
        } = settings.clone();
        (ports, bypass, bypass_marks, only, opened_by_servers, ipv6_prefix, max_per_ue, connect_timeout)
    };
    what(one) != what(other)
}

/// Returns the mark of packets for the proxy whose interface towards the RAN has the number `ran`.
pub(super) fn mark(ran: u32) -> u32 {
    BASE | (ran & 0xffff)
}

/// Returns the families that there are, as options of `ip`.
pub(super) fn families() -> &'static [&'static str] {
    if ipv6() { &["-4", "-6"] } else { &["-4"] }
}

/// Commands that add or delete (`verb`) a rule and a route.
fn commands(verb: &str, mark: u32, routes: u32) -> String {
    format!(
        "rule {verb} pref {PREFERENCE} fwmark {mark:#x} lookup {routes}\n\
         route {verb} local default dev lo table {routes}\n"
    )
}

/// Returns the tables that rules for `mark` name in the output of `ip rule show`.
fn lookups(rules: &str, mark: u32) -> impl Iterator<Item = u32> {
    let mark = format!(" fwmark {mark:#x} ");
    rules.lines().filter(move |line| line.contains(&mark)).filter_map(|line| {
        let (_, table) = line.split_once(" lookup ")?;
        table.split_whitespace().next()?.parse().ok()
    })
}

/// Whether the kernel tracks connections here at present.
fn tracks() -> bool {
    let count = std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count");
    count.is_ok_and(|count| count.trim().parse::<u64>().is_ok_and(|count| count > 0))
}

/// Whether rules are there that make the kernel track connections as soon as some come.
fn may_track() -> bool {
    let legacy = ["ip", "ip6"].iter().any(|family| {
        std::fs::read_to_string(format!("/proc/net/{family}_tables_names")).is_ok_and(|names| !names.trim().is_empty())
    });
    // What iptables has added is shown by the names of its matches and targets.
    let words = ["ct", "nat", "masquerade", "conntrack", "state", "MASQUERADE", "SNAT", "DNAT", "REDIRECT"];
    let is_such = |rules: String| rules.split_whitespace().any(|word| words.contains(&word));
    legacy || nft(&["-t", "list", "ruleset"], "").is_ok_and(is_such)
}

/// Runs `nft`, with `-t` where sets of others may be large. Returns what it prints, or its complaint on failure.
pub(super) fn nft(arguments: &[&str], input: &str) -> Result<String, String> {
    let run = || -> std::io::Result<std::process::Output> {
        let mut child = Command::new("nft")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // If it goes away before it has read everything, it says why.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        child.wait_with_output()
    };
    match run() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().unwrap_or("nft failed").to_owned())
        }
        Err(error) => Err(format!("nft: {error}")),
    }
}

/// The comment of the first rule, which tells a changed table from the one before.
fn comment(generation: u32) -> String {
    format!("generation {generation}")
}

/// Counters of packets of handshakes where they are made or come in, and where nothing can drop them any more: SYNs to servers, servers'
/// answers, SYNs that the proxy gives to itself, and clients' acknowledgements. Of other packets, hosts decide, and what rules drop of
/// theirs tells nothing.
const COUNTERS: [[&str; 2]; 4] =
    [["syns", "syns_sent"], ["answers", "answers_heard"], ["given", "given_heard"], ["acks", "acks_heard"]];

/// Counters of QUIC, to UEs and from them: of UDP with port 443 of servers, which passes beside the proxy.
const QUIC: [&str; 2] = ["quic_to_ues", "quic_from_ues"];

/// What the counters say, in pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(pub(super) [[u64; 2]; COUNTERS.len()]);

/// Returns a table as `nft` lists it, without the elements of sets. To list it alone, nftables 1.0.6 reads all elements of its sets
/// nevertheless, which are many while a host opens many connections.
fn listed(table: &str) -> Result<String, String> {
    let all = nft(&["-t", "list", "ruleset"], "")?;
    let begin = all.find(&format!("table inet {table} {{")).ok_or("the table is not there")?;
    let length = all[begin..].find("\n}").unwrap_or(all.len() - begin);
    Ok(all[begin..begin + length].to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::settings::Mark;
    use super::*;

    fn plan(settings: &Settings) -> Plan {
        Plan { tracked: true, families: &["-4", "-6"], ..Plan::new(settings, 7, 9, Slot::First) }
    }

    #[test]
    fn the_table_is_on_one_line_and_names_what_the_settings_name() {
        let settings = Settings {
            ports: vec![80..=80, 8000..=8080],
            bypass: ["192.0.2.0/24", "2001:db8::1/128"].map(|text| text.parse().expect("a network")).to_vec(),
            bypass_marks: vec![Mark { value: 0x10, mask: 0xff }],
            ..Settings::new(&["wan0"], &["ran0", "ran1"])
        };
        let (plan, text) = (plan(&settings), plan(&settings).commands());
        assert_eq!(text.lines().count(), 1);
        for part in [
            r#"iifname { "ran0", "ran1" } oifname { "wan0" } tcp flags & (fin | syn | rst | ack) == syn"#,
            r#"meta sdifname { "ran0", "ran1" } oifname { "wan0" } tcp flags & (fin | syn | rst | ack) == syn"#,
            "ports { 80-80, 8000-8080 }",
            "ranway_proxy_7",
            "bypass4 { 192.0.2.0/24 }",
            "bypass6 { 2001:db8::1/128 }",
            "meta mark & 0xff == 0x10 return",
            "log group 9",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            !text.contains(r#"iifname { "wan0" } oifname { "ran0", "ran1" } tcp"#) && !text.contains("saddr != @only"),
            "{text}"
        );
        let rule = "rule add pref 99 fwmark 0x72610007 lookup ";
        assert!(plan.ip_commands("add").starts_with(&format!("{rule}{}\n", plan.routes)));
        assert_ne!(Plan::new(&settings, 7, 9, Slot::First).routes, plan.routes);
    }

    #[test]
    fn rules_of_other_marks_are_somebody_elses() {
        let rules = "99:\tfrom all fwmark 0x72610007 lookup 1918959623 \n99:\tfrom all fwmark 0x72610008 lookup 7\n\
                     99:\tfrom all fwmark 0x72610007 lookup 1918959624 proto kernel\n99:\tfrom all lookup main\n";
        assert_eq!(lookups(rules, 0x7261_0007).collect::<Vec<_>>(), [1_918_959_623, 1_918_959_624]);
        assert_eq!(lookups(rules, 0x7_2610).count(), 0);
    }
}
