//! Leads the packets of TCP connections between two interfaces to the proxy's sockets.
//!
//! A table of nftables marks the packets of the proxy's connections, and gives SYNs of new ones to a listening socket, if there
//! is one (`tproxy`). A rule sends what is marked to a routing table that delivers everything locally. Traffic of other
//! interfaces, connections that would leave by one, and those to addresses of this machine are not touched. ICMP errors about the
//! proxy's packets are delivered to it.
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
const BASE: u32 = 0x7261_0000;
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
    rules: Vec<Value>,
}

impl Plan {
    /// Plans the steering of an instance whose interface towards the RAN has the number `ran`.
    pub(super) fn new(settings: &Settings, ran: u32) -> Plan {
        let mark = BASE | (ran & 0xffff);
        let table = format!("ranway_proxy_{ran}");
        let rules = rules(settings, &table, mark, 0);
        // Another number for each instance, whichever process it is in.
        static INSTANCES: AtomicU32 = AtomicU32::new(0);
        let instance = std::process::id().wrapping_mul(31).wrapping_add(INSTANCES.fetch_add(1, Relaxed));
        Plan { table, mark, routes: BASE | (instance & 0xffff), rules }
    }

    /// What is in the table: its chains, and their rules.
    fn contents(&self) -> impl Iterator<Item = Value> {
        let chain = |name: &str| json!({ "family": "inet", "table": self.table, "name": name });
        let mut hook = chain("prerouting");
        for (key, value) in [("type", "filter"), ("hook", "prerouting"), ("policy", "accept")] {
            hook[key] = value.into();
        }
        hook["prio"] = (-150).into();
        let chains = [chain("new"), hook].map(|chain| json!({ "add": { "chain": chain } }));
        chains.into_iter().chain(self.rules.clone())
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
        for family in families() {
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
        for family in families() {
            let _ = ip(&[family, "-force"], &self.ip_commands("del"));
        }
    }

    /// Commands that do what [`Plan::undo`] does, for the guardian.
    pub(super) fn undo_commands(&self) -> Vec<(String, String)> {
        families().iter().map(|family| ((*family).to_owned(), self.ip_commands("del"))).collect()
    }

    /// Puts the plan into effect.
    ///
    /// # Errors
    /// [`Error::System`]; then nothing is changed.
    pub(super) fn start(self) -> Result<Steering, Error> {
        // An instance whose guardian was killed, too, may have left them.
        for family in families() {
            let there = ip(&[family, "-force"], &format!("rule show pref {PREFERENCE}\n")).unwrap_or_default();
            let left: String = lookups(&there, self.mark).map(|table| commands("del", self.mark, table)).collect();
            let _ = ip(&[family, "-force"], &left);
        }
        let mut steering = Steering { plan: self, nft: None, generation: 0 };
        for family in families() {
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
    /// How often the rules have changed.
    generation: u32,
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
        let Steering { plan, nft, generation } = self;
        *generation += 1;
        plan.rules = rules(settings, &plan.table, plan.mark, *generation);
        let chain =
            |name: &str| json!({ "flush": { "chain": { "family": "inet", "table": plan.table, "name": name } } });
        let mut all = vec![chain("prerouting"), chain("new")];
        all.extend_from_slice(&plan.rules);
        let input = nft.as_mut().and_then(|child| child.stdin.as_mut()).expect("it runs");
        writeln!(input, "{}", json!({ "nftables": all })).map_err(Error::system("change the rules of nftables"))?;
        self.await_generation()
    }

    /// Waits until the table has the rules that were written last.
    fn await_generation(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        let comment = format!("\"{}\"", comment(self.generation));
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

fn families() -> &'static [&'static str] {
    if ipv6() { &["-4", "-6"] } else { &["-4"] }
}

/// Runs `nft`. Returns what it prints, or its complaint on failure.
fn nft(arguments: &[&str], input: &str) -> Result<String, String> {
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

/// The rules of the table, in the JSON of libnftables-json(5).
fn rules(settings: &Settings, table: &str, mark: u32, generation: u32) -> Vec<Value> {
    let compare = |op: &str, left: Value, right: Value| json!({ "match": { "op": op, "left": left, "right": right } });
    let equal = |left, right| compare("==", left, right);
    let meta = |key: &str| json!({ "meta": { "key": key } });
    let set_mark = json!({ "mangle": { "key": meta("mark"), "value": mark } });
    let accept = json!({ "accept": null });
    let interfaces = json!({ "set": [settings.ran, settings.wan] });
    let port = |range: &RangeInclusive<u16>| json!({ "range": [range.start(), range.end()] });
    let ports: Vec<Value> = settings.ports.iter().map(port).collect();
    let rule = |chain: &str, expr: Vec<Value>| json!({ "add": { "rule": { "family": "inet", "table": table, "chain": chain, "expr": expr } } });
    let flags = json!({ "&": [{ "payload": { "protocol": "tcp", "field": "flags" } }, ["fin", "syn", "rst", "ack"]] });
    let tproxy = |family: &str, address: &str, nfproto: &str| {
        let tproxy = json!({ "tproxy": { "family": family, "addr": address, "port": settings.port } });
        let tcp = equal(meta("l4proto"), json!("tcp"));
        rule("new", vec![equal(meta("nfproto"), json!(nfproto)), tcp, tproxy, set_mark.clone(), accept.clone()])
    };
    let here = json!({ "fib": { "result": "type", "flags": ["daddr"] } });
    let local = json!({ "set": ["local", "broadcast", "anycast", "multicast"] });
    // If it leaves by a third interface, its answers come from there and do not reach the proxy.
    let leaves = json!({ "fib": { "result": "oifname", "flags": ["daddr"] } });
    let new = |from: &str, to: &str| {
        rule(
            "prerouting",
            vec![
                equal(meta("iifname"), json!(from)),
                equal(flags.clone(), json!("syn")),
                equal(json!({ "payload": { "protocol": "tcp", "field": "dport" } }), json!({ "set": ports })),
                equal(leaves.clone(), json!(to)),
                json!({ "jump": { "target": "new" } }),
            ],
        )
    };
    // Not the listeners: they are bound to loopback addresses, which no packet from an interface has.
    let ours = [equal(json!({ "socket": { "key": "transparent" } }), json!(1)), set_mark.clone(), accept.clone()];
    let split = |from: &str| {
        let is_old = [equal(meta("iifname"), json!(from)), compare("!=", flags.clone(), json!("syn"))];
        rule("prerouting", [&is_old[..], &ours].concat())
    };
    let mut all = vec![
        // Nearly all packets.
        split(&settings.ran),
        split(&settings.wan),
        // For SYNs, these come first: if the addresses and ports of one are in TIME-WAIT, only `tproxy` finds the listener.
        new(&settings.ran, &settings.wan),
        new(&settings.wan, &settings.ran),
        rule(
            "prerouting",
            [
                &[
                    equal(meta("iifname"), interfaces),
                    // ICMP tells a socket that a packet was too long for a link behind.
                    equal(meta("l4proto"), json!({ "set": ["tcp", "icmp", "ipv6-icmp"] })),
                ][..],
                &ours,
            ]
            .concat(),
        ),
        rule("new", vec![equal(here, local), json!({ "return": null })]),
        tproxy("ip", "127.0.0.1", "ipv4"),
    ];
    all[0]["add"]["rule"]["comment"] = comment(generation).into();
    if ipv6() {
        all.push(tproxy("ip6", "::1", "ipv6"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_on_one_line_and_names_the_interfaces_and_ports() {
        let settings = Settings { ports: vec![80..=80, 8000..=8080], ..Settings::new("wan0", "ran0") };
        let plan = Plan::new(&settings, 7);
        let text = json!(plan.rules).to_string();
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
