//! What the results of some runs consist of, and which of them are complete.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;

use disk::Dir;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Job;
use crate::tables::Tables;

/// The file that tells results from anything else.
const META: &str = "meta.json";
/// The version of the directory's layout.
pub(crate) const FORMAT: u32 = 2;

/// A point of a sweep: the scenario's keys that were varied, and their values here. Empty without a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point {
    /// Key to value, as `flow.cc` to `"cubic"`.
    pub values: BTreeMap<String, Value>,
}

impl Point {
    /// For people: `flow.cc = cubic, link.loss = 0.01`.
    pub fn label(&self) -> String {
        self.values.iter().map(|(key, value)| format!("{key} = {}", text(value))).collect::<Vec<_>>().join(", ")
    }
}

/// A swept value for people: a text without its quotes.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How much there is of results that are not complete, because the runs were interrupted or only some jobs were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Partial {
    /// Runs that finished, over all points.
    pub finished: u64,
    /// All runs of the scenario.
    pub of: u64,
    /// The jobs that finished, in order. Written to `meta.json` alone; empty for an emulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(skip))]
    pub jobs: Vec<Job>,
    /// The number of runs of each point of the scenario. Written to `meta.json` alone; empty for an emulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(skip))]
    pub runs: Vec<u32>,
}

impl Partial {
    /// The counts without the lists.
    pub(crate) fn counts(&self) -> Partial {
        Partial { finished: self.finished, of: self.of, ..Partial::default() }
    }
}

/// What was run. The same for the same input on any machine, unless the results are partial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Meta {
    /// The scenario's title.
    pub title: String,
    /// The program's version.
    pub version: String,
    /// The scenario as it was understood, with every default.
    #[cfg_attr(test, ts(type = "unknown"))]
    pub scenario: Value,
    /// The points of the sweep; a run without a sweep has one point without values.
    #[cfg_attr(test, ts(type = "Record<string, unknown>[]"))]
    pub points: Vec<Point>,
    /// Repetitions of each point.
    pub runs: u32,
    /// The seed.
    pub seed: u64,
    /// Of partial results: how much of the scenario they cover. Complete results have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub partial: Option<Partial>,
}

/// What depends on the machine and its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Timing {
    /// Wall-clock seconds from start to end; `None` of jobs that ran side by side in several batches or processes, of which
    /// nobody knows when the first began and the last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub wall_s: Option<f64>,
    /// Processor seconds over all threads.
    pub cpu_s: f64,
    /// Simulated seconds over all points and runs.
    pub simulated_s: f64,
    /// Events handled over all points and runs.
    pub events: u64,
    /// Data packets that arrived over all points and runs.
    pub packets: u64,
    /// Threads.
    pub threads: u32,
    /// Of an emulation: how well it kept to the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub lateness: Option<Lateness>,
}

/// How well an emulation kept to the time: by how much packets were given to the hosts after the moment at which the
/// network delivered them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Lateness {
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
    /// What the 99th percentile may be.
    pub bound_ms: f64,
    /// What the latest packet and the longest stall may be.
    #[serde(default)]
    pub worst_bound_ms: f64,
    /// The longest time for which nothing was done although something was due, if it was longer than `bound_ms`.
    #[serde(default)]
    pub longest_stall_ms: f64,
    /// The sum of all such times, over the wall-clock time (0 to 1); 0.01 in a valid run at most.
    #[serde(default)]
    pub stalled_share: f64,
    /// Packets that were given to the hosts.
    pub packets: u64,
    /// Packets of the hosts that the network never saw, because the queue in front of it was full.
    pub missed: u64,
    /// The processor time of the thread that keeps the time, over its wall-clock time (0 to 1).
    pub cpu_share: f64,
    /// Whether it had a real-time priority.
    pub realtime: bool,
    /// Whether all bounds were kept and nothing was missed. If not, the results say more about this machine than about
    /// the network.
    pub valid: bool,
}

/// The results of some runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// What was run.
    pub meta: Meta,
    /// How long it took.
    pub timing: Timing,
    /// What came out.
    pub tables: Tables,
}

/// `meta.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct MetaFile {
    pub(crate) format: u32,
    #[serde(flatten)]
    pub(crate) meta: Meta,
}

/// Whether the directory `name` holds complete results. Those that cannot be read may be complete.
pub(crate) fn is_complete(parent: &Dir, name: &OsStr) -> bool {
    let Ok(dir) = parent.sub(name) else { return false };
    let Ok(Some(_)) = dir.look(META) else { return false };
    let read = |file| serde_json::from_reader::<_, MetaFile>(io::BufReader::new(file)).ok();
    dir.read(META).ok().and_then(read).is_none_or(|file| file.meta.partial.is_none())
}
