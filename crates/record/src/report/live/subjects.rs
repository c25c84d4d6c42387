//! What is known so far of flows, links and UEs: their rows, and the means over them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::report::raw;
use crate::report::rows::{FlowRow, LinkRow, UeRow};
use crate::tables::{Flows, Links, Owds, Rtts, Transfers, Ues};
use crate::{Meta, PointSummary, Tables};

/// Rows that are kept, those of distributions included.
pub const MOST_ROWS: usize = 1_000_000;
/// Flows whose distributions are shown: more than the page draws.
const MOST_DISTRIBUTIONS: usize = 20;

/// A flow: point, run, name and copy.
type FlowKey = (u32, u32, String, u32);
/// A link, or a UE and its direction.
type NameKey = (u32, u32, String, &'static str);

/// What is known of a flow's copy.
#[derive(Debug, Default)]
struct Flow {
    row: Flows,
    rtts: Rtts,
    owds: Owds,
}

impl Flow {
    fn rows(&self) -> usize {
        use crate::Table;
        1 + self.rtts.len() + self.owds.len()
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    flows: BTreeMap<FlowKey, Flow>,
    links: BTreeMap<NameKey, Links>,
    ues: BTreeMap<NameKey, Ues>,
    transfers: BTreeMap<(u32, u32), Transfers>,
    changed_flows: BTreeSet<FlowKey>,
    changed_links: BTreeSet<NameKey>,
    changed_ues: BTreeSet<NameKey>,
    changed_points: BTreeSet<u32>,
    rows: usize,
    /// Runs for which there was no room.
    left_out: BTreeSet<(u32, u32)>,
    /// Columns that the source does not know.
    unknown: &'static [&'static str],
}

/// Rows as the page has them.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) flows: Vec<Box<RawValue>>,
    pub(super) links: Vec<Box<RawValue>>,
    pub(super) ues: Vec<Box<RawValue>>,
}

impl Subjects {
    /// Leaves out columns that the source does not know.
    pub(super) fn leave_out(&mut self, columns: &'static [&'static str]) {
        self.unknown = columns;
    }

    /// Takes the rows of flows, links, UEs and transfers of `tables` in the place of earlier ones.
    pub(super) fn add(&mut self, tables: &Tables) {
        for row in tables.flows.iter() {
            let job = (row.point, row.run);
            let key = (row.point, row.run, row.flow.to_owned(), row.conn);
            if !self.flows.contains_key(&key) && self.rows >= MOST_ROWS {
                self.left_out.insert(job);
                continue;
            }
            let mut flow = Flow::default();
            flow.row.push(&row);
            if let Some(before) = self.flows.insert(key.clone(), flow) {
                self.rows = self.rows.saturating_sub(before.rows());
            }
            self.rows += 1;
            self.changed_points.insert(row.point);
            self.changed_flows.insert(key);
        }
        let mut key: FlowKey = Default::default();
        for row in tables.rtts.iter() {
            is_of(&mut key, (row.point, row.run, row.flow, row.conn));
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.rtts.push(&row);
                self.rows += 1;
            }
        }
        for row in tables.owds.iter() {
            is_of(&mut key, (row.point, row.run, row.flow, row.conn));
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.owds.push(&row);
                self.rows += 1;
            }
        }
        for row in tables.links.iter() {
            let key = (row.point, row.run, row.link.to_owned(), "");
            if self.admits(self.links.contains_key(&key), (row.point, row.run)) {
                let mut links = Links::default();
                links.push(&row);
                self.rows += usize::from(self.links.insert(key.clone(), links).is_none());
                self.changed_links.insert(key);
            }
        }
        for row in tables.ues.iter() {
            let direction = if row.direction == "uplink" { "uplink" } else { "downlink" };
            let key = (row.point, row.run, row.ue.to_owned(), direction);
            if self.admits(self.ues.contains_key(&key), (row.point, row.run)) {
                let mut ues = Ues::default();
                ues.push(&row);
                self.rows += usize::from(self.ues.insert(key.clone(), ues).is_none());
                self.changed_ues.insert(key);
            }
        }
        let mut cleared = BTreeSet::new();
        for row in tables.transfers.iter().filter(|_| self.rows < MOST_ROWS) {
            let transfers = self.transfers.entry((row.point, row.run)).or_default();
            if cleared.insert((row.point, row.run)) {
                *transfers = Transfers::default();
            }
            transfers.push(&row);
            self.changed_points.insert(row.point);
        }
    }

    /// Whether a row of a run is taken, and notes which of its point's means change.
    fn admits(&mut self, is_known: bool, run: (u32, u32)) -> bool {
        let admitted = is_known || self.rows < MOST_ROWS;
        if admitted {
            self.changed_points.insert(run.0);
        } else {
            self.left_out.insert(run);
        }
        admitted
    }

    /// Forgets a flow.
    pub(super) fn forget(&mut self, name: &str, conn: Option<u32>) {
        let is_it = |key: &FlowKey| key.2 == name && Some(key.3) == conn;
        let rows = &mut self.rows;
        self.flows.retain(|key, flow| {
            let stays = !is_it(key);
            *rows -= if stays { 0 } else { flow.rows().min(*rows) };
            stays
        });
        self.changed_flows.retain(|key| !is_it(key));
    }

    /// Forgets a UE.
    pub(super) fn forget_ue(&mut self, name: &str) {
        let Subjects { ues, changed_points, rows, .. } = self;
        ues.retain(|key, _| {
            let stays = key.2 != name;
            if !stays {
                *rows = rows.saturating_sub(1);
                changed_points.insert(key.0);
            }
            stays
        });
        self.changed_ues.retain(|key| key.2 != name);
    }

    /// Runs whose means are left out.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.len() as u64
    }

    /// Whether means have changed.
    pub(super) fn is_changed(&self) -> bool {
        !self.changed_points.is_empty()
    }

    /// Returns the summaries of the points that have changed since the last call.
    pub(super) fn take_changed_points(&mut self, meta: &Meta, emulated: bool) -> Vec<(usize, PointSummary)> {
        let changed = std::mem::take(&mut self.changed_points);
        let summary = |point: u32| {
            let at = meta.points.get(point as usize)?;
            Some((point as usize, PointSummary::of(point, at, &self.of_point(point), emulated)))
        };
        changed.into_iter().filter_map(summary).collect()
    }

    /// The rows of a point.
    fn of_point(&self, point: u32) -> Tables {
        let mut tables = Tables::default();
        for (_, flow) in self.flows.range((point, 0, String::new(), 0)..).take_while(|(key, _)| key.0 == point) {
            tables.flows.append(&flow.row);
            tables.rtts.append(&flow.rtts);
            tables.owds.append(&flow.owds);
        }
        for (_, links) in self.links.range((point, 0, String::new(), "")..).take_while(|(key, _)| key.0 == point) {
            tables.links.append(links);
        }
        for (_, ues) in self.ues.range((point, 0, String::new(), "")..).take_while(|(key, _)| key.0 == point) {
            tables.ues.append(ues);
        }
        for (_, transfers) in self.transfers.range((point, 0)..=(point, u32::MAX)) {
            tables.transfers.append(transfers);
        }
        tables
    }

    /// The rows that have changed since the last call.
    pub(super) fn take_changed(&mut self) -> Rows {
        let flows = std::mem::take(&mut self.changed_flows);
        let links = std::mem::take(&mut self.changed_links);
        let ues = std::mem::take(&mut self.changed_ues);
        Rows {
            flows: flows.iter().filter_map(|key| self.flows.get(key)).map(|row| self.flow(row)).collect(),
            links: links.iter().filter_map(|key| self.links.get(key)).map(|row| self.link(row)).collect(),
            ues: ues.iter().filter_map(|key| self.ues.get(key)).map(|row| self.ue(row)).collect(),
        }
    }

    /// All rows.
    pub(super) fn all(&self) -> Rows {
        Rows {
            flows: self.flows.values().map(|row| self.flow(row)).collect(),
            links: self.links.values().map(|row| self.link(row)).collect(),
            ues: self.ues.values().map(|row| self.ue(row)).collect(),
        }
    }

    fn flow(&self, flow: &Flow) -> Box<RawValue> {
        self.known(&FlowRow::from(flow.row.row(0)))
    }

    fn link(&self, links: &Links) -> Box<RawValue> {
        self.known(&LinkRow::from(links.row(0)))
    }

    fn ue(&self, ues: &Ues) -> Box<RawValue> {
        self.known(&UeRow::from(ues.row(0)))
    }

    /// A row without the columns that the source does not know.
    fn known(&self, row: &impl Serialize) -> Box<RawValue> {
        if self.unknown.is_empty() {
            return raw(row);
        }
        let mut row = serde_json::to_value(row).expect("string keys and plain values");
        if let Some(columns) = row.as_object_mut() {
            columns.retain(|name, _| !self.unknown.contains(&name.as_str()));
        }
        raw(&row)
    }

    /// The distributions of the largest flows, and the transfers.
    pub(super) fn distributions(&self) -> Tables {
        let mut tables = Tables::default();
        let mut largest: Vec<(u64, &Flow)> = self.flows.values().map(|flow| (flow.row.row(0).bytes, flow)).collect();
        largest.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (_, flow) in largest.into_iter().take(MOST_DISTRIBUTIONS) {
            tables.rtts.append(&flow.rtts);
            tables.owds.append(&flow.owds);
        }
        self.transfers.values().for_each(|transfers| tables.transfers.append(transfers));
        tables
    }
}

/// Makes `key` the key of a flow; mostly it is that already.
fn is_of(key: &mut FlowKey, (point, run, name, conn): (u32, u32, &str, u32)) {
    if (key.0, key.1, key.2.as_str(), key.3) != (point, run, name, conn) {
        *key = (point, run, name.to_owned(), conn);
    }
}
