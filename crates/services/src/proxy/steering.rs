//! Leads the packets of TCP connections between two interfaces to the proxy's sockets.
//!
//! A table of nftables gives SYNs of new connections to a listening socket, if there is one (`tproxy`), and marks the packets of the
//! proxy's connections. A rule sends what is marked to a routing table that delivers everything locally. Traffic of other
//! interfaces, connections that would leave by one, and those to addresses of this machine are not touched. ICMP errors about the
//! proxy's packets are delivered to it.
//!
//! Both legs of a connection have the same addresses and ports, which is one connection to the kernel's connection tracking. Where
//! that is used (by NAT, or by rules with states), the legs towards UEs are in a zone of their own. Connections whose destination
//! NAT changes are left alone: only the rules after NAT can tell, so the first SYN to such a destination is dropped and its address
//! and port noted.
//!
//! The table belongs to a child process (`flags owner`): it vanishes when that ends, which it does when its input ends, and
//! other programs cannot flush it. The rule and the route are removed by [`Steering`] or, after a crash, by the guardian.
//! Mark and table are named after the interface towards the RAN, so a next start also removes what might be left. The routing
//! table has a number of the instance, so that the guardian of an earlier one, if it was stopped and goes on later, removes
//! nothing of the present one.

use std::io::Write;
use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use netio::program::{find_program, ip};
use netio::{Error, sys};
use serde_json::{Value, json};

use super::listen::ipv6;
use super::settings::Settings;

/// Before the rules that an operator is likely to have.
const PREFERENCE: u32 = 99;
/// The upper half of marks and of numbers of routing tables ("ra").
pub(super) const BASE: u32 = 0x7261_0000;
/// The zone of connection tracking for legs towards UEs ("ra").
const ZONE: u32 = BASE >> 16;
/// Before connection tracking; with the marks of others; and after destinations were translated.
const EARLY: i32 = -300;
const MARKING: i32 = -150;
const TRANSLATED: i32 = -90;
/// Destinations that are noted because NAT changes them, for each family, and how long, in seconds.
const MOST_KEPT: u32 = 65_536;
const KEPT: u32 = 600;
/// Protocols by number: their names are in /etc/protocols, which a small system does not have.
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Time that nft has to set up its table.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time for the end of an instance that was killed.
const PREDECESSOR: Duration = Duration::from_secs(2);

/// How packets are led to the proxy's sockets, not yet in effect.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    table: String,
    mark: u32,
    /// The number of the routing table.
    routes: u32,
    /// The families that were there at the start, as options of `ip`.
    families: &'static [&'static str],
    /// Whether connections are tracked.
    tracked: bool,
    generation: u32,
    settings: Settings,
}

impl Plan {
    /// Plans the steering of an instance whose interface towards the RAN has the number `ran`.
    pub(super) fn new(settings: &Settings, ran: u32) -> Plan {
        // Another number for each instance, whichever process it is in.
        static INSTANCES: AtomicU32 = AtomicU32::new(0);
        let instance = std::process::id().wrapping_mul(31).wrapping_add(INSTANCES.fetch_add(1, Relaxed));
        Plan {
            table: format!("ranway_proxy_{ran}"),
            mark: mark(ran),
            routes: BASE | (instance & 0xffff),
            families: families(),
            tracked: tracks() || may_track(),
            generation: 0,
            settings: settings.clone(),
        }
    }

    /// What is in the table: its sets, its chains without what was in them, and their rules.
    fn contents(&self) -> impl Iterator<Item = Value> {
        let named = |name: &str| json!({ "family": "inet", "table": self.table, "name": name });
        let hook = |name: &str, hook: &str, prio: i32| {
            let mut chain = named(name);
            for (key, value) in [("type", "filter"), ("hook", hook), ("policy", "accept")] {
                chain[key] = value.into();
            }
            chain["prio"] = prio.into();
            chain
        };
        let set = |name: &str, address: &str| {
            let mut set = named(name);
            set["type"] = json!([address, "inet_service"]);
            set["flags"] = json!(["timeout"]);
            (set["size"], set["timeout"]) = (MOST_KEPT.into(), KEPT.into());
            json!({ "add": { "set": set } })
        };
        let mut chains = vec![named("ran"), named("wan"), hook("prerouting", "prerouting", MARKING)];
        let mut all = Vec::new();
        if self.tracked {
            all.extend([set("kept", "ipv4_addr"), set("kept6", "ipv6_addr")]);
            chains.push(hook("early", "prerouting", EARLY));
            chains.extend([hook("output", "output", EARLY), hook("translated", "prerouting", TRANSLATED)]);
        }
        let flush = |chain: &Value| json!({ "flush": { "chain": named(chain["name"].as_str().unwrap_or_default()) } });
        let flushes: Vec<Value> = chains.iter().map(flush).collect();
        all.extend(chains.into_iter().map(|chain| json!({ "add": { "chain": chain } })));
        all.into_iter().chain(flushes).chain(self.rules())
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
        let mut all = vec![json!({ "add": { "table": { "family": "inet", "name": self.table } } })];
        all.extend(self.contents());
        match nft(&["-c", "-j", "-f", "-"], &json!({ "nftables": all }).to_string()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Missing(format!(
                "this kernel cannot intercept connections (nftables with tproxy and socket is needed): {error}"
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
        while start.elapsed() < PREDECESSOR && nft(&["list", "table", "inet", &self.table], "").is_ok() {
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

    /// Puts the plan into effect.
    ///
    /// # Errors
    /// [`Error::System`]; then nothing is changed.
    pub(super) fn start(self) -> Result<Steering, Error> {
        // An instance whose guardian was killed, too, may have left them.
        for family in self.families {
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
        command
            .args(["-j", "-i"])
            .env("HOME", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A service manager or terminal that signals all processes must not end it before the connections end.
        let child = sys::in_own_session(&mut command).spawn().map_err(Error::system(what()))?;
        let child = self.nft.insert(child);
        let input = child.stdin.as_mut().expect("it is piped");
        let all: Vec<Value> = self.plan.contents().collect();
        // nft 1.0 does not know this flag in JSON; what is not JSON is read in its own language.
        let table = format!("add table inet {} {{ flags owner; }}", self.plan.table);
        writeln!(input, "{table}\n{}", json!({ "nftables": all })).map_err(Error::system(what()))?;
        self.await_generation()
    }

    /// Changes the ports of connections to split, at once for all.
    ///
    /// # Errors
    /// [`Error::System`]; then nothing is changed, or the owner of the table has ended.
    pub(super) fn change(&mut self, settings: &Settings) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.plan.settings, settings.clone());
        self.renew().inspect_err(|_| self.plan.settings = before)
    }

    /// Adapts the rules if connections have come to be tracked since the start.
    ///
    /// # Errors
    /// As [`Steering::change`].
    pub(super) fn follow_tracking(&mut self) -> Result<(), Error> {
        if self.plan.tracked || !tracks() {
            return Ok(());
        }
        self.plan.tracked = true;
        self.renew()
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.plan.generation += 1;
        let all: Vec<Value> = self.plan.contents().collect();
        let input = self.nft.as_mut().and_then(|child| child.stdin.as_mut()).expect("it runs");
        writeln!(input, "{}", json!({ "nftables": all })).map_err(Error::system("change the rules of nftables"))?;
        self.await_generation()
    }

    /// Waits until the table has the rules that were written last.
    fn await_generation(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let comment = format!("\"{}\"", comment(self.plan.generation));
        let table = self.plan.table.clone();
        while !nft(&["list", "chain", "inet", &table, "prerouting"], "").is_ok_and(|rules| rules.contains(&comment)) {
            if start.elapsed() > PATIENCE || !self.lives() {
                let source = std::io::Error::other("it did not make its table");
                return Err(Error::System { what: "run `nft -i`".into(), source });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
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
    legacy || nft(&["list", "ruleset"], "").is_ok_and(is_such)
}

/// Runs `nft`. Returns what it prints, or its complaint on failure.
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

impl Plan {
    /// The rules of the table, in the JSON of libnftables-json(5).
    fn rules(&self) -> Vec<Value> {
        let Plan { table, mark, tracked, settings, .. } = self;
        let rule = |chain: &str, expr: Vec<Value>| {
            let rule = json!({ "family": "inet", "table": table, "chain": chain, "expr": expr });
            json!({ "add": { "rule": rule } })
        };
        let [ran, wan] = [&settings.ran, &settings.wan].map(|name| equal(meta("iifname"), json!(name)));
        let set_mark = json!({ "mangle": { "key": meta("mark"), "value": mark } });
        let set_zone = json!({ "mangle": { "key": { "ct": { "key": "zone" } }, "value": ZONE } });
        let [accept, leave] = ["accept", "return"].map(|verdict| json!({ verdict: null }));
        let is_syn = || equal(flags(), json!("syn"));
        let is_not_syn = || compare("!=", flags(), json!("syn"));
        let is_icmp = || equal(meta("l4proto"), json!({ "set": [ICMP, ICMPV6] }));
        // Not the listeners, unless `tproxy` has assigned them: they are bound to loopback addresses, which no packet from an
        // interface has.
        let is_ours = || equal(json!({ "socket": { "key": "transparent" } }), json!(1));

        let port = |range: &RangeInclusive<u16>| json!({ "range": [range.start(), range.end()] });
        let ports: Vec<Value> = settings.ports.iter().map(port).collect();
        // If it leaves by a third interface, its answers come from there and do not reach the proxy.
        let leaves = |by: &str| equal(json!({ "fib": { "result": "oifname", "flags": ["daddr"] } }), json!(by));
        // Zones are given before connections are tracked, but marks of others are restored after that.
        let first = if *tracked { "early" } else { "prerouting" };
        let new = |from: &Value, by: &str, chain: &str| {
            let ports = equal(payload("tcp", "dport"), json!({ "set": ports }));
            rule(first, vec![from.clone(), is_syn(), ports, leaves(by), json!({ "jump": { "target": chain } })])
        };
        let here = json!({ "fib": { "result": "type", "flags": ["daddr"] } });
        let local = json!({ "set": ["local", "broadcast", "anycast", "multicast"] });
        let is_signed = equal(json!({ "tcp option": { "name": "md5sig" } }), json!(true));
        let tproxy = |chain: &str, family: &str, address: &str, nfproto: &str| {
            let tproxy = json!({ "tproxy": { "family": family, "addr": address, "port": settings.port } });
            let tcp = equal(meta("l4proto"), json!(TCP));
            let set = match (tracked, chain) {
                (true, "ran") => Some(set_zone.clone()),
                (true, _) => None,
                (false, _) => Some(set_mark.clone()),
            };
            let all =
                [equal(meta("nfproto"), json!(nfproto)), tcp, tproxy].into_iter().chain(set).chain([accept.clone()]);
            rule(chain, all.collect())
        };
        let marked = |mut conditions: Vec<Value>| {
            conditions.extend([is_ours(), set_mark.clone(), accept.clone()]);
            rule("prerouting", conditions)
        };
        let mut all = vec![
            // Nearly all packets.
            marked(vec![ran.clone(), is_not_syn()]),
            marked(vec![wan.clone(), is_not_syn()]),
            // For SYNs, these come first: if the addresses and ports of one are in TIME-WAIT, only `tproxy` finds the listener.
            new(&ran, &settings.wan, "ran"),
            new(&wan, &settings.ran, "wan"),
            // ICMP tells a socket that a packet was too long for a link behind.
            marked(vec![
                equal(meta("iifname"), json!({ "set": [settings.ran, settings.wan] })),
                equal(meta("l4proto"), json!({ "set": [TCP, ICMP, ICMPV6] })),
            ]),
        ];
        all[0]["add"]["rule"]["comment"] = comment(self.generation).into();
        if *tracked {
            let zoned = |chain: &str, mut conditions: Vec<Value>| {
                conditions.extend([is_ours(), set_zone.clone(), accept.clone()]);
                rule(chain, conditions)
            };
            let to_ran = equal(meta("oifname"), json!(settings.ran));
            all.extend([
                zoned("early", vec![ran.clone(), is_not_syn()]),
                zoned("early", vec![ran.clone(), is_icmp()]),
                zoned("output", vec![to_ran, equal(meta("l4proto"), json!(TCP))]),
            ]);
            for (family, nfproto, set) in [("ip", "ipv4", "@kept"), ("ip6", "ipv6", "@kept6")] {
                let original = |key: &str| json!({ "ct": { "key": key, "dir": "original" } });
                let address = json!({ "ct": { "key": format!("{family} daddr"), "dir": "original" } });
                let translated =
                    json!({ "match": { "op": "in", "left": { "ct": { "key": "status" } }, "right": "dnat" } });
                let note = json!({ "set": { "op": "update", "elem": { "concat": [address, original("proto-dst")] }, "set": set } });
                all.push(rule(
                    "translated",
                    vec![
                        ran.clone(),
                        equal(meta("nfproto"), json!(nfproto)),
                        is_syn(),
                        equal(meta("mark"), json!(mark)),
                        translated,
                        note,
                        json!({ "drop": null }),
                    ],
                ));
                let destination = json!({ "concat": [payload(family, "daddr"), payload("tcp", "dport")] });
                all.push(rule("ran", vec![equal(destination, json!(set)), leave.clone()]));
            }
        }
        for chain in ["ran", "wan"] {
            all.push(rule(chain, vec![equal(here.clone(), local.clone()), leave.clone()]));
            // Only the hosts know the key.
            all.push(rule(chain, vec![is_signed.clone(), leave.clone()]));
            all.push(tproxy(chain, "ip", "127.0.0.1", "ipv4"));
            if self.families.contains(&"-6") {
                all.push(tproxy(chain, "ip6", "::1", "ipv6"));
            }
        }
        all
    }
}

fn compare(op: &str, left: Value, right: Value) -> Value {
    let parts = [("op", op.into()), ("left", left), ("right", right)];
    json!({ "match": parts.into_iter().collect::<Value>() })
}

fn equal(left: Value, right: Value) -> Value {
    compare("==", left, right)
}

fn meta(key: &str) -> Value {
    json!({ "meta": { "key": key } })
}

fn payload(protocol: &str, field: &str) -> Value {
    json!({ "payload": { "protocol": protocol, "field": field } })
}

fn flags() -> Value {
    json!({ "&": [payload("tcp", "flags"), ["fin", "syn", "rst", "ack"]] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_on_one_line_and_names_the_interfaces_and_ports() {
        let settings = Settings { ports: vec![80..=80, 8000..=8080], ..Settings::new("wan0", "ran0") };
        let plan = Plan::new(&settings, 7);
        let text = json!(plan.rules()).to_string();
        assert_eq!(text.lines().count(), 1);
        for part in [r#""set":["ran0","wan0"]"#, r#"{"range":[8000,8080]}"#, "ranway_proxy_7"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let rule = "rule add pref 99 fwmark 0x72610007 lookup ";
        assert!(plan.ip_commands("add").starts_with(&format!("{rule}{}\n", plan.routes)));
        assert_ne!(Plan::new(&settings, 7).routes, plan.routes);
    }

    #[test]
    fn rules_of_other_marks_are_somebody_elses() {
        let rules = "99:\tfrom all fwmark 0x72610007 lookup 1918959623 \n99:\tfrom all fwmark 0x72610008 lookup 7\n\
                     99:\tfrom all fwmark 0x72610007 lookup 1918959624 proto kernel\n99:\tfrom all lookup main\n";
        assert_eq!(lookups(rules, 0x7261_0007).collect::<Vec<_>>(), [1_918_959_623, 1_918_959_624]);
        assert_eq!(lookups(rules, 0x7_2610).count(), 0);
    }
}
