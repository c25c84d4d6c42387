//! What a page that follows a run shows, in bounded memory: the results so far, and what has been added since the last look.
//!
//! A source adds [`Tables`]. Rows of samples, queues, radio, mobility and measurements are new ones, which extend the series.
//! Rows of flows, links, UEs, transfers and distributions are those so far: they replace what was known of the same flow, link
//! or UE. So at the end, the page shows what the report shows.
//!
//! - A series has at most twice [`Live::points`] points. When it has more, its older half is thinned as in the report: the
//!   smallest and the largest value of each group of neighbours stay. All series together have at most [`MOST_VALUES`] values;
//!   when they have more, [`Live::points`] is halved.
//! - The first [`MOST_FLOWS`] flows have series. Further ones take the place of a flow that has been silent for
//!   [`SILENCE_S`], or are added up as [`OTHERS`].
//! - Means are of the first [`MOST_ROWS`] rows of flows, links, UEs and distributions.

mod history;
mod subjects;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::rows;
use super::{
    EmbeddedSummary, PLACEHOLDER, SUMMARY_BYTES, SUMMARY_ENTRY_BYTES, Shown, TEMPLATE, embedded_points, escaped, raw,
};
use crate::{Meta, PointSummary, Tables, Timing};
use history::History;
pub use history::{Gone, Latest, MOST_FLOWS, MOST_VALUES, OTHERS, SILENCE_S};
pub use subjects::MOST_ROWS;
use subjects::Subjects;

/// Events, and rows of mobility and of commands, that are kept.
pub const MOST_EVENTS: usize = 1_000;

/// The part of the page's policy that forbids connections, and what replaces it in a page that follows a run.
const POLICY: (&str, &str) = ("default-src 'none';", "default-src 'none'; connect-src 'self';");

/// The state of the run that the page follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Live {
    /// Tells this source of data from others at the same address, before and after it.
    pub instance: String,
    /// The subcommand: `run`, `emulate` and so on.
    pub command: String,
    /// Whether the run has ended.
    pub ended: bool,
    /// The run's time; missing if there are several runs.
    pub t_s: Option<f64>,
    /// The progress of runs, if there is an end.
    pub progress: Option<Progress>,
    /// Where cells and UEs are.
    pub places: Option<Places>,
    /// What can be changed, if anything.
    pub controls: Option<Controls>,
    /// Where the results are, once they are written.
    pub report: Option<String>,
    /// Points down to which series are thinned.
    pub points: usize,
    /// Flows that are only part of a sum, and runs whose means are left out.
    pub left_out: u64,
    /// What a service counts.
    pub counters: Vec<Counter>,
}

/// What a service has counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Counter {
    /// Its part of the metric's name, as `pep_reports` of `ranway_pep_reports_total`.
    pub name: &'static str,
    /// What it counts, in the plural.
    pub what: &'static str,
    /// How many of them there were.
    pub value: u64,
}

/// The progress of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Progress {
    /// Runs that have finished.
    pub done: u64,
    /// All runs.
    pub of: u64,
    /// The completed share of all simulated time (0 to 1).
    pub share: f64,
    /// Seconds since the start.
    pub elapsed_s: f64,
}

/// A map.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Places {
    /// The cells.
    pub cells: Vec<Place>,
    /// The UEs.
    pub ues: Vec<Place>,
}

/// Where a cell or UE is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Metres east.
    pub x: f64,
    /// Metres north.
    pub y: f64,
    /// The cell that serves it, of a UE that has one.
    pub cell: Option<String>,
    /// Whether it sees that cell, of a UE.
    pub los: Option<bool>,
}

/// The names that commands may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Controls {
    /// UEs, whose SINR can be set and which can be handed over.
    pub ues: Vec<String>,
    /// Cells, whose load can be set.
    pub cells: Vec<String>,
    /// Links with a rate that can be set.
    pub links: Vec<String>,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Event {
    /// When, in the run's time; missing of what has no such time.
    pub t_s: Option<f64>,
    /// What.
    pub text: String,
}

/// A list of which the newest entries are kept, and of which some are new since the last look.
#[derive(Debug)]
struct Newest<T> {
    all: Vec<T>,
    fresh: usize,
}

impl<T> Default for Newest<T> {
    fn default() -> Newest<T> {
        Newest { all: Vec::new(), fresh: 0 }
    }
}

impl<T> Newest<T> {
    fn push(&mut self, entry: T) {
        self.all.push(entry);
        self.fresh += 1;
        if self.all.len() > MOST_EVENTS * 2 {
            self.all.drain(..MOST_EVENTS);
            self.fresh = self.fresh.min(self.all.len());
        }
    }

    fn fresh(&self) -> &[T] {
        &self.all[self.all.len() - self.fresh..]
    }
}

/// What the page shows.
#[derive(Debug)]
pub struct Board {
    live: Live,
    meta: Meta,
    emulated: bool,
    history: History,
    subjects: Subjects,
    /// The summary of each point.
    summaries: Vec<Value>,
    mobility: Newest<Box<RawValue>>,
    commands: Newest<Box<RawValue>>,
    events: Newest<Event>,
    changed: bool,
}

/// What was added to a result.
#[derive(Serialize)]
struct Growth<'a> {
    index: usize,
    summary: EmbeddedSummary,
    flows: Vec<Box<RawValue>>,
    links: Vec<Box<RawValue>>,
    ues: Vec<Box<RawValue>>,
    mobility: &'a [Box<RawValue>],
    commands: &'a [Box<RawValue>],
    gone: Vec<Gone>,
    series: Vec<Box<RawValue>>,
}

/// What was added to the page.
#[derive(Serialize)]
struct Batch<'a> {
    live: &'a Live,
    events: &'a [Event],
    results: [Growth<'a>; 1],
}

/// The page's data.
#[derive(Serialize)]
struct Whole<'a> {
    last: &'a str,
    live: &'a Live,
    events: &'a [Event],
    shown: Shown,
    reproduction: [(); 0],
    figures: [(); 0],
    results: Vec<WholeResult<'a>>,
}

#[derive(Serialize)]
struct WholeResult<'a> {
    meta: &'a Meta,
    timing: Timing,
    summary: Summaries<'a>,
    flows: Vec<Box<RawValue>>,
    links: Vec<Box<RawValue>>,
    ues: Vec<Box<RawValue>>,
    mobility: &'a [Box<RawValue>],
    commands: &'a [Box<RawValue>],
    series: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct Summaries<'a> {
    points: &'a [Value],
}

impl Board {
    /// Creates the page of a `command` that runs what `meta` describes. `instance` differs from that of any other board at the
    /// same address; of an emulation (`emulated`), means are those of real hosts.
    pub fn new(instance: String, command: &str, meta: Meta, emulated: bool) -> Board {
        let mut meta = meta;
        if meta.points.is_empty() {
            meta.points.push(crate::Point::default());
        }
        let empty = Tables::default();
        let points = (0..).zip(&meta.points).map(|(i, at)| PointSummary::of(i, at, &empty, emulated)).collect();
        let history = History::default();
        Board {
            live: Live { instance, command: command.to_owned(), points: history.points(), ..Live::default() },
            summaries: embedded_points(points),
            meta,
            emulated,
            history,
            subjects: Subjects::default(),
            mobility: Newest::default(),
            commands: Newest::default(),
            events: Newest::default(),
            changed: true,
        }
    }

    /// The state of the run.
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Changes the state of the run.
    pub fn change(&mut self, change: impl FnOnce(&mut Live)) {
        change(&mut self.live);
        self.changed = true;
    }

    /// Leaves out columns of series and of rows of flows, links and UEs that the source does not know, so that nobody takes a zero
    /// for a value.
    pub fn leave_out(&mut self, columns: &'static [&'static str]) {
        self.history.leave_out(columns);
        self.subjects.leave_out(columns);
    }

    /// Leaves out columns of the series with this name alone, likewise.
    pub fn leave_out_of(&mut self, name: &'static str, columns: &'static [&'static str]) {
        self.history.leave_out_of(name, columns);
    }

    /// Notes something that happened.
    pub fn note(&mut self, t_s: Option<f64>, text: impl Into<String>) {
        self.events.push(Event { t_s, text: text.into() });
        self.changed = true;
    }

    /// Adds rows: new ones of samples and the like, those so far of flows and the like.
    pub fn add(&mut self, tables: &Tables) {
        self.history.add(tables);
        self.subjects.add(tables);
        for row in tables.mobility.iter() {
            self.mobility.push(raw(&rows::MobilityRow::from(row)));
        }
        for row in tables.commands.iter() {
            self.commands.push(raw(&rows::CommandRow::from(row)));
        }
        self.live.points = self.history.points();
        self.live.left_out = self.history.left_out() + self.subjects.left_out();
        self.changed = true;
    }

    /// Forgets a flow of which nobody wants to know any more, with all its copies.
    pub fn forget(&mut self, flow: &str) {
        self.history.forget(flow);
        self.changed = true;
    }

    /// Forgets a UE likewise. What is known of its cells stays.
    pub fn forget_ue(&mut self, ue: &str) {
        self.history.forget_ue(ue);
        self.subjects.forget_ue(ue);
        self.changed = true;
    }

    /// The newest values of the series, if they are all of one run.
    pub fn latest(&self) -> Vec<Latest<'_>> {
        self.history.latest()
    }

    /// Returns what was added since the last call as JSON, or nothing if nothing was. Means take longer than the rest and are
    /// only renewed with `means`.
    pub fn growth(&mut self, means: bool) -> Option<String> {
        let is_new = self.changed || (means && self.subjects.is_changed());
        if !is_new {
            return None;
        }
        let mut points = Vec::new();
        let mut changed = subjects::Rows::default();
        if means {
            for (point, summary) in self.subjects.take_changed_points(&self.meta, self.emulated) {
                let value = embedded_points(vec![cut(summary, self.meta.points.len())]).remove(0);
                self.summaries[point].clone_from(&value);
                points.push(value);
            }
            changed = self.subjects.take_changed();
            self.history.set_distributions(&self.subjects.distributions());
        }
        let gone = self.history.take_gone();
        gone.iter().for_each(|gone| self.subjects.forget(&gone.name, gone.conn));
        let batch = Batch {
            live: &self.live,
            events: self.events.fresh(),
            results: [Growth {
                index: 0,
                summary: EmbeddedSummary { points },
                flows: changed.flows,
                links: changed.links,
                ues: changed.ues,
                mobility: self.mobility.fresh(),
                commands: self.commands.fresh(),
                gone,
                series: self.history.take_growth(),
            }],
        };
        let text = serde_json::to_string(&batch).expect("string keys and plain values");
        self.changed = false;
        (self.events.fresh, self.mobility.fresh, self.commands.fresh) = (0, 0, 0);
        Some(text)
    }

    /// Returns all of the page's data as JSON. `last` names this state; a reader sends it back to get what came later. Call
    /// [`Board::growth`] first: rows that it has not returned yet are in here, and would be in the next growth again.
    pub fn whole(&self, last: &str) -> String {
        let all = self.subjects.all();
        let series = self.history.whole();
        let counts = (
            all.flows.len() + all.links.len() + all.ues.len() + self.mobility.all.len() + self.commands.all.len(),
            series.len(),
        );
        let shown = Shown {
            points_per_series: self.history.points() * 2,
            runs: 1,
            runs_of: 1,
            series: counts.1,
            series_of: counts.1,
            rows: counts.0,
            rows_of: counts.0,
            ..Shown::default()
        };
        let result = WholeResult {
            meta: &self.meta,
            // What depends on the machine is known at the end, and in the report.
            timing: Timing { threads: 1, ..Timing::default() },
            summary: Summaries { points: &self.summaries },
            flows: all.flows,
            links: all.links,
            ues: all.ues,
            mobility: &self.mobility.all,
            commands: &self.commands.all,
            series,
        };
        let whole = Whole {
            last,
            live: &self.live,
            events: &self.events.all,
            shown,
            reproduction: [],
            figures: [],
            results: vec![result],
        };
        serde_json::to_string(&whole).expect("string keys and plain values")
    }
}

/// Returns the page that follows the run whose data so far is `whole`, as [`Board::whole`] returns it.
pub fn page(whole: String) -> String {
    TEMPLATE.replacen(POLICY.0, POLICY.1, 1).replacen(PLACEHOLDER, &escaped(whole), 1)
}

/// Keeps the largest flows, links and UEs of one of so many points.
fn cut(summary: PointSummary, points: usize) -> PointSummary {
    let entries = (SUMMARY_BYTES / SUMMARY_ENTRY_BYTES / points.max(1)).clamp(1, MOST_FLOWS);
    super::cut_point(summary, entries)
}

#[cfg(test)]
mod tests;
