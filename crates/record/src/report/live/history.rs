//! Series that grow, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::Tables;
use crate::report::raw;
use crate::report::series::{Embedded, Identity, Kind, Series, thinned, whole};

/// Values that all series have together at most.
pub const MOST_VALUES: usize = 1_500_000;
/// Flows that have series of their own.
pub const MOST_FLOWS: usize = 200;
/// Seconds without a sample after which a flow makes room for another one.
pub const SILENCE_S: f64 = 30.0;
/// The name of the sum of the other flows.
pub const OTHERS: &str = "other flows";

/// Points down to which series are thinned at first, and at last.
const POINTS: usize = 1_500;
const COARSEST: usize = 50;
/// Points of a distribution.
const DISTRIBUTION_POINTS: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    point: u32,
    run: u32,
    kind: Kind,
    name: String,
    conn: Option<u32>,
    technology: Option<String>,
}

/// A flow or a UE that is no longer kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Gone {
    /// Its name.
    pub(super) name: String,
    /// Its copy; missing of a UE.
    pub(super) conn: Option<u32>,
}

/// A flow: point, run, name and copy.
type FlowKey = (u32, u32, String, u32);

#[derive(Debug)]
struct Kept {
    names: &'static [&'static str],
    columns: Vec<Vec<Option<f64>>>,
    cells: Vec<String>,
    begun: usize,
    /// Rows at the end that nobody has seen yet.
    fresh: usize,
}

/// The newest value of a column of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latest<'a> {
    /// What the series is about: `flow`, `link`, `ue`, `cell`, `probe`, `wait` or `modem`.
    pub of: &'static str,
    /// Its name.
    pub name: &'a str,
    /// The copy of a flow, or the hop limit of probes.
    pub conn: Option<u32>,
    /// The technology of a modem's cell.
    pub technology: Option<&'a str>,
    /// The column.
    pub column: &'static str,
    /// The value.
    pub value: f64,
}

/// All series.
#[derive(Debug)]
pub(super) struct History {
    series: BTreeMap<Key, Kept>,
    /// The time of the newest sample of each flow with series.
    flows: BTreeMap<FlowKey, f64>,
    /// The flows that are added up.
    others: BTreeSet<FlowKey>,
    gone: Vec<Gone>,
    points: usize,
    /// The newest sample of all.
    now: f64,
    /// Series for which there was no room.
    refused: BTreeSet<Key>,
    unknown: Unknown,
}

/// Columns that the source does not know: those of all series, and those of series with certain names.
#[derive(Debug, Default)]
struct Unknown {
    of_all: &'static [&'static str],
    of_some: Vec<(&'static str, &'static [&'static str])>,
}

impl Unknown {
    /// Whether a column of the series with this name is among them.
    fn has(&self, series: &str, column: &str) -> bool {
        let of_it = self.of_some.iter().filter(|(name, _)| *name == series).map(|(_, columns)| columns);
        of_it.chain([&self.of_all]).any(|columns| columns.contains(&column))
    }
}

impl Default for History {
    fn default() -> History {
        History {
            series: BTreeMap::new(),
            flows: BTreeMap::new(),
            others: BTreeSet::new(),
            gone: Vec::new(),
            points: POINTS,
            now: 0.0,
            refused: BTreeSet::new(),
            unknown: Unknown::default(),
        }
    }
}

impl Kept {
    fn rows(&self) -> usize {
        self.columns[0].len()
    }

    fn values(&self) -> usize {
        self.rows() * self.columns.len()
    }

    /// Appends the rows of a series with the same columns.
    fn extend(&mut self, more: &Series<'_>) {
        for (column, (name, values)) in self.columns.iter_mut().zip(more.names.iter().zip(&more.columns)) {
            if *name != "cell" || more.cells.is_empty() {
                column.extend_from_slice(values);
                continue;
            }
            // Each part numbers its cells anew.
            let numbers: Vec<usize> = more.cells.iter().map(|cell| number(&mut self.cells, cell)).collect();
            let renumbered = |value: &Option<f64>| value.and_then(|i| numbers.get(i as usize)).map(|&i| i as f64);
            column.extend(values.iter().map(renumbered));
        }
        self.fresh += more.columns[0].len();
    }

    /// Thins the older half until there are at most `2 * points` rows.
    fn bound(&mut self, points: usize) {
        while self.rows() > 2 * points {
            let half = self.rows() / 2;
            let old: Vec<Vec<Option<f64>>> =
                self.columns.iter_mut().map(|column| column.drain(..half).collect()).collect();
            for (column, mut thin) in self.columns.iter_mut().zip(thinned(&old, half / 2)) {
                thin.append(column);
                *column = thin;
            }
        }
        self.fresh = self.fresh.min(self.rows());
    }

    fn embedded(&self, key: &Key, from: usize, unknown: &Unknown) -> Box<RawValue> {
        let cells: Vec<&str> = self.cells.iter().map(String::as_str).collect();
        let identity =
            Identity { kind: key.kind, name: &key.name, conn: key.conn, technology: key.technology.as_deref() };
        let begun = (key.kind == Kind::Transfers).then_some(self.begun);
        let cells = (key.kind == Kind::Radio).then_some(&cells[..]);
        let columns = self.columns.iter().map(|column| &column[from..]);
        let known = self.names.iter().copied().zip(columns).filter(|(name, _)| !unknown.has(&key.name, name));
        raw(&Embedded::new((key.point, key.run), &identity, (begun, cells), known))
    }
}

/// Returns the number of `cell` in the list, where it is from now on.
fn number(cells: &mut Vec<String>, cell: &str) -> usize {
    cells.iter().position(|known| known == cell).unwrap_or_else(|| {
        cells.push(cell.to_owned());
        cells.len() - 1
    })
}

impl History {
    /// Leaves out columns that the source does not know.
    pub(super) fn leave_out(&mut self, columns: &'static [&'static str]) {
        self.unknown.of_all = columns;
    }

    /// Leaves out columns of the series with this name that the source does not know.
    pub(super) fn leave_out_of(&mut self, name: &'static str, columns: &'static [&'static str]) {
        self.unknown.of_some.push((name, columns));
    }

    /// Points down to which series are thinned.
    pub(super) fn points(&self) -> usize {
        self.points
    }

    /// Flows that are only part of a sum, and series for which there was no room.
    pub(super) fn left_out(&self) -> u64 {
        (self.others.len() + self.refused.len()) as u64
    }

    /// Extends the series over time by new rows.
    pub(super) fn add(&mut self, tables: &Tables) {
        let mut sums: BTreeMap<(u32, u32), BTreeMap<u64, f64>> = BTreeMap::new();
        let all = whole(tables);
        let over_time = || all.iter().filter(|more| !more.is_distribution() && !more.columns[0].is_empty());
        // Nobody makes room who has samples in these tables.
        for more in over_time() {
            let last = newest(more);
            self.now = self.now.max(last);
            if let Some((name, conn)) = more.copy()
                && let Some(at) = self.flows.get_mut(&(more.point, more.run, name.to_owned(), conn))
            {
                *at = at.max(last);
            }
        }
        for more in over_time() {
            let last = newest(more);
            if let Some((name, conn)) = more.copy() {
                let flow = (more.point, more.run, name.to_owned(), conn);
                if !self.has_room(&flow, last) {
                    if more.identity().kind == Kind::Goodput {
                        let sum = sums.entry((more.point, more.run)).or_default();
                        for (t, mbps) in more.columns[0].iter().zip(&more.columns[1]) {
                            *sum.entry(t.unwrap_or(0.0).to_bits()).or_default() += mbps.unwrap_or(0.0);
                        }
                    }
                    continue;
                }
            }
            self.extend(more);
        }
        for ((point, run), sum) in sums {
            let columns = vec![
                sum.keys().map(|&t| Some(f64::from_bits(t))).collect(),
                sum.values().map(|&mbps| Some(mbps)).collect(),
            ];
            self.extend(&Series::of_goodput((point, run), OTHERS, columns));
        }
        self.bound();
    }

    /// Whether a flow with a sample at `last` has series of its own.
    fn has_room(&mut self, flow: &FlowKey, last: f64) -> bool {
        if let Some(at) = self.flows.get_mut(flow) {
            *at = at.max(last);
            return true;
        }
        if self.flows.len() >= MOST_FLOWS {
            let oldest = self.flows.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(flow, at)| (flow.clone(), *at));
            let Some((old, _)) = oldest.filter(|(_, at)| self.now - at > SILENCE_S) else {
                // So many names are not worth remembering.
                if self.others.len() < 10 * MOST_FLOWS {
                    self.others.insert(flow.clone());
                }
                return false;
            };
            self.remove(old);
        }
        self.others.remove(flow);
        self.flows.insert(flow.clone(), last);
        true
    }

    /// Removes a flow and its series.
    fn remove(&mut self, flow: FlowKey) {
        self.flows.remove(&flow);
        let (point, run, name, conn) = flow;
        self.series.retain(|key, _| {
            (key.point, key.run, &key.name, key.conn) != (point, run, &name, Some(conn)) || key.kind.subject() != "flow"
        });
        self.gone.push(Gone { name, conn: Some(conn) });
    }

    /// Removes the flows of this name.
    pub(super) fn forget(&mut self, name: &str) {
        let flows: Vec<FlowKey> = self.flows.keys().filter(|flow| flow.2 == name).cloned().collect();
        flows.into_iter().for_each(|flow| self.remove(flow));
        self.others.retain(|flow| flow.2 != name);
    }

    /// Removes the series of the UE of this name.
    pub(super) fn forget_ue(&mut self, name: &str) {
        let before = self.series.len();
        self.series.retain(|key, _| key.name != name || key.kind.subject() != "ue");
        if self.series.len() < before {
            self.gone.push(Gone { name: name.to_owned(), conn: None });
        }
    }

    fn extend(&mut self, more: &Series<'_>) {
        let key = key_of(more);
        if self.is_full() && !self.series.contains_key(&key) {
            self.refused.insert(key);
            return;
        }
        let kept = self.series.entry(key).or_insert_with(|| Kept::empty(more));
        kept.extend(more);
        kept.bound(self.points);
    }

    /// Whether there is no room for another series.
    fn is_full(&self) -> bool {
        self.points <= COARSEST && self.series.len() * COARSEST * 10 > MOST_VALUES
    }

    /// Thins all series if they have too many values.
    fn bound(&mut self) {
        while self.points > COARSEST && self.series.values().map(Kept::values).sum::<usize>() > MOST_VALUES {
            self.points = (self.points / 2).max(COARSEST);
            self.series.values_mut().for_each(|kept| kept.bound(self.points));
        }
    }

    /// Replaces the distributions by those of `tables`.
    pub(super) fn set_distributions(&mut self, tables: &Tables) {
        for all in whole(tables).into_iter().filter(Series::is_distribution) {
            let key = key_of(&all);
            let mut kept = Kept::empty(&all);
            kept.columns = thinned(&all.columns, DISTRIBUTION_POINTS);
            (kept.begun, kept.fresh) = (all.begun, kept.rows());
            if self.series.get(&key).is_none_or(|before| before.columns != kept.columns || before.begun != kept.begun) {
                self.series.insert(key, kept);
            }
        }
    }

    /// Flows and UEs whose series are gone since the last call.
    pub(super) fn take_gone(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.gone)
    }

    /// The rows since the last call.
    pub(super) fn take_growth(&mut self) -> Vec<Box<RawValue>> {
        let mut grown = Vec::new();
        for (key, kept) in self.series.iter_mut().filter(|(_, kept)| kept.fresh > 0) {
            grown.push(kept.embedded(key, kept.rows() - kept.fresh, &self.unknown));
            kept.fresh = 0;
        }
        grown
    }

    /// All series.
    pub(super) fn whole(&self) -> Vec<Box<RawValue>> {
        self.series.iter().map(|(key, kept)| kept.embedded(key, 0, &self.unknown)).collect()
    }

    /// The newest values, if all series are of one run.
    pub(super) fn latest(&self) -> Vec<Latest<'_>> {
        let over_time = || self.series.iter().filter(|(key, _)| !key.kind.is_distribution());
        let mut runs = over_time().map(|(key, _)| (key.point, key.run));
        let first = runs.next();
        if runs.any(|run| Some(run) != first) {
            return Vec::new();
        }
        let values = over_time().flat_map(|(key, kept)| {
            let is_value = move |name: &str| name != "t" && name != "cell" && !self.unknown.has(&key.name, name);
            let columns = kept.names.iter().zip(&kept.columns).filter(move |(name, _)| is_value(name));
            columns.filter_map(|(&column, values)| {
                let value = values.last().copied().flatten()?;
                let technology = key.technology.as_deref();
                Some(Latest { of: key.kind.subject(), name: &key.name, conn: key.conn, technology, column, value })
            })
        });
        values.collect()
    }
}

/// The time of the newest row of a series over time.
fn newest(series: &Series<'_>) -> f64 {
    series.columns[0].last().copied().flatten().unwrap_or(0.0)
}

fn key_of(series: &Series<'_>) -> Key {
    let Identity { kind, name, conn, technology } = series.identity();
    let (name, technology) = (name.to_owned(), technology.map(str::to_owned));
    Key { point: series.point, run: series.run, kind, name, conn, technology }
}

impl Kept {
    fn empty(like: &Series<'_>) -> Kept {
        let columns = vec![Vec::new(); like.names.len()];
        Kept { names: like.names, columns, cells: Vec::new(), begun: 0, fresh: 0 }
    }
}
