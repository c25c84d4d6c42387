//! Tests over a simulated network.

use super::failed::Failed;
use crate::failure::{Failure, warned};
use crate::interrupt;
use ::campaign::{Amount, Direction, File, Plan, Test};
use record::Output;
use scenario::{Files, Loaded, Scenario};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use units::Span;

/// The name of a test's scenario, which exists in memory alone.
const TEST: &str = "campaign";

/// The network of a campaign.
pub(super) struct Network {
    /// The scenario's file, or its name.
    source: String,
    set: Vec<String>,
    scenario: Scenario,
    hosts: Vec<String>,
}

impl Network {
    /// Reads the scenario `name` of the campaign file `campaign`.
    pub(super) fn load(campaign: &str, name: &str, set: &[String]) -> Result<Network, Failure> {
        let is_built_in = scenario::builtin::list().iter().any(|built_in| built_in.name == name);
        let source = match Path::new(campaign).parent() {
            Some(folder) if !is_built_in => folder.join(name).display().to_string(),
            _ => name.to_owned(),
        };
        let loaded = warned(Scenario::load_for_emulation(&source, set, &scenario::read_file))?;
        let invalid = |what: &str| Failure::Invalid(format!("{source}: {what}"));
        let [point] = loaded.points() else {
            return Err(invalid("it has a sweep, and a campaign needs one network: choose a point with where.set"));
        };
        let scenario = point.scenario.clone();
        let hosts = scenario::hosts(&scenario);
        if hosts.len() < 2 {
            return Err(invalid("it has fewer than two hosts: a server and a client are needed"));
        }
        if let Some(flow) = scenario.flows.iter().find(|flow| Direction::Both.flows().contains(&flow.name.as_str())) {
            let what =
                format!("a campaign's own flows are called `{0}`: rename the flow `{0}` of the scenario", flow.name);
            return Err(invalid(&what));
        }
        Ok(Network { source, set: set.to_vec(), scenario, hosts })
    }

    /// The scenario's file or name, and the changes to it.
    pub(super) fn source(&self) -> (&str, &[String]) {
        (&self.source, &self.set)
    }

    /// The scenario as it was understood.
    pub(super) fn describe(&self) -> Value {
        serde_json::to_value(&self.scenario).expect("string keys and plain values")
    }

    /// Checks that real hosts can be placed in the network.
    pub(super) fn check_hosts(&self) -> Result<(), Failure> {
        let loaded = Scenario::load_for_emulation(&self.source, &self.set, &scenario::read_file);
        let loaded = loaded.map_err(|why| Failure::Invalid(why.to_string()))?;
        emulate::single(&loaded)?;
        Ok(())
    }

    /// Returns the scenario of a test. The flows of the network's own scenario are background traffic.
    pub(super) fn test(&self, file: &File, plan: &Plan, test: &Test) -> Result<Loaded, Failure> {
        let (duration, traffic) = match file.amount() {
            Amount::Time(time) => (time, "\"bulk\"".to_owned()),
            Amount::Bytes(bytes) => (file.timeout, format!("{{ kind = \"transfer\", size = \"{} B\" }}", bytes.get())),
        };
        let source = toml(&Value::from(self.source.clone()));
        let seed = plan.simulation_seed(test.block);
        let title = toml(&Value::from(format!("{}: {}", file.title, test.name())));
        let mut text =
            format!("include = [{source}]\ntitle = {title}\nduration = \"{duration}\"\nruns = 1\nseed = {seed}\n");
        for flow in &self.scenario.flows {
            let _ = writeln!(text, "[[flows]]");
            if let Ok(Value::Object(keys)) = serde_json::to_value(flow) {
                keys.iter().filter(|(_, value)| !value.is_null()).for_each(|(key, value)| {
                    let _ = writeln!(text, "{key} = {}", toml(value));
                });
            }
        }
        let (server, client) = (&self.hosts[0], &self.hosts[1]);
        for &name in test.combination.direction.flows() {
            let (from, to) = if name == "download" { (server, client) } else { (client, server) };
            let [from, to, cc] = [from, to, &test.combination.cc].map(|text| toml(&Value::from(text.clone())));
            let count = test.combination.flows;
            let _ = writeln!(
                text,
                "[[flows]]\nname = \"{name}\"\nfrom = {from}\nto = {to}\ncc = {cc}\ncount = {count}\ntraffic = {traffic}"
            );
        }
        // What is changed in the network's scenario is changed here too, but for flows, which are resolved already.
        let of_network = |change: &&String| !change.trim_start().starts_with("flows");
        let set: Vec<String> = self.set.iter().filter(of_network).cloned().collect();
        let loaded = Scenario::load(TEST, &set, &InMemory(&text));
        loaded.map_err(|why| Failure::Invalid(format!("{}: {why}", test.name())))
    }
}

/// The scenario of a test in front of real files.
struct InMemory<'a>(&'a str);

impl Files for InMemory<'_> {
    fn read(&self, path: &str) -> io::Result<String> {
        if path == TEST { Ok(self.0.to_owned()) } else { scenario::read_file(path) }
    }
}

/// A value as TOML, on one line.
fn toml(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", join(items.iter().map(toml).collect())),
        Value::Object(map) => {
            let pairs = map.iter().filter(|(_, value)| !value.is_null());
            format!(
                "{{ {} }}",
                join(
                    pairs
                        .map(|(key, value)| format!("{} = {}", toml(&Value::from(key.as_str())), toml(value)))
                        .collect()
                )
            )
        }
        // JSON's strings are valid basic strings of TOML, except that U+007F has to be escaped.
        Value::String(_) => value.to_string().replace('\u{7f}', "\\u007f"),
        other => other.to_string(),
    }
}

/// Runs a test.
pub(super) fn run(loaded: &Loaded, place: &Path, timeout: Span) -> Result<(), Failed> {
    let failed = |why: &dyn std::fmt::Display| Failed::Test(why.to_string());
    let output = Output::create(place).map_err(|why| failed(&why))?;
    let (asked, stop, ended) = (interrupt::flag(), AtomicBool::new(false), AtomicBool::new(false));
    let options = sim::Options::new(1, &stop, &|_| {});
    let (start, timeout) = (Instant::now(), Duration::from_nanos(timeout.as_nanos()));
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Relaxed) {
                if asked.load(Relaxed) || start.elapsed() > timeout {
                    stop.store(true, Relaxed);
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let outcome = sim::Batch::all(loaded).capturing_into(&output).run(&options);
        ended.store(true, Relaxed);
        outcome
    });
    let outcome = outcome.map_err(|why| failed(&why))?;
    if outcome.finished < outcome.runs {
        return Err(if asked.load(Relaxed) {
            Failed::Interrupted
        } else {
            Failed::Test("it took longer than `timeout`".into())
        });
    }
    outcome.results.write_to(&output).map_err(|why| failed(&why))?;
    output.commit().map_err(|why| failed(&why))
}
