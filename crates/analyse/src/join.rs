//! Recordings of the same connections by different tools: one time axis for all of them.
//!
//! The name of a connection, its addresses and ports, is the same in a capture, a log of `ss` and a result of iperf3 that were made at one
//! end. Inputs that share a connection, and that overlap on the calendar, are moved to the time axis of the one that began first. Each
//! stays a point of its own. Before 3.20, iperf3 tells its beginning in whole seconds only ([`Anchor::is_coarse`]): another input that shows the first
//! data of a shared connection tells it better.

use std::collections::{BTreeMap, BTreeSet};

use record::Tables;
use record::tables::FlowRow;

use crate::collector::{Anchor, Collector};

/// How far a beginning in whole seconds may be off.
const COARSE_S: f64 = 1.0;
/// What may be between inputs that overlap: clocks are those of one machine, and beginnings are those of the first packet or snapshot.
const APART_S: f64 = 2.0;

/// Puts inputs with shared connections on one time axis, and tells of it.
pub(crate) fn join(all: &mut Collector<'_>) {
    let anchors: BTreeMap<u32, Anchor> = all.anchors.iter().map(|anchor| (anchor.point, *anchor)).collect();
    let groups = groups(&all.tables, &anchors);
    for group in groups {
        let first = group.iter().map(|point| anchors[point]).min_by(|a, b| a.start_s.total_cmp(&b.start_s));
        // One that knows its beginning exactly, if there is one.
        let exact = group.iter().map(|point| anchors[point]).filter(|anchor| !anchor.is_coarse);
        let Some(base) = exact.min_by(|a, b| a.start_s.total_cmp(&b.start_s)).or(first) else { continue };
        let (mut is_uncertain, mut moves) = (false, Vec::new());
        for point in &group {
            let own = anchors[point];
            let mut by_s = own.start_s - base.start_s;
            if own.is_coarse && !base.is_coarse {
                match began(&all.tables, *point, base.point) {
                    Some(began_s) if (began_s - by_s).abs() <= COARSE_S + APART_S => by_s = began_s,
                    _ => is_uncertain = true,
                }
            }
            moves.push((*point, by_s));
        }
        // Time does not go below 0.
        let least_s = moves.iter().map(|(_, by_s)| *by_s).fold(0.0, f64::min);
        for (point, by_s) in moves {
            shift(&mut all.tables, point, by_s - least_s);
            for anchor in all.anchors.iter_mut().filter(|anchor| anchor.point == point) {
                anchor.start_s = base.start_s + least_s;
            }
        }
        let file = |point: &u32| all.points.get(*point as usize)?.values.get("file")?.as_str().map(str::to_owned);
        let names: BTreeSet<String> = group.iter().filter_map(file).collect();
        all.joined.push(group.into_iter().collect());
        // Interfaces of one capture have one clock and one beginning.
        if names.len() < 2 {
            continue;
        }
        let within = if is_uncertain { ", within a second, as iperf3 tells its beginning" } else { "" };
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        all.notes.push(format!("recordings of the same connections are on one time axis{within}: {names}"));
    }
}

/// The points that share connections, two or more each.
fn groups(tables: &Tables, anchors: &BTreeMap<u32, Anchor>) -> Vec<BTreeSet<u32>> {
    // A connection between addresses has them in its name; others are of tests, whose names say nothing.
    let is_named = |row: &FlowRow<'_>| row.flow.contains(" > ") && anchors.contains_key(&row.point);
    let mut with: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    let rows: Vec<FlowRow<'_>> = tables.flows.iter().filter(is_named).collect();
    rows.iter().for_each(|row| {
        with.entry(row.flow).or_default().insert(row.point);
    });
    let overlap = |a: &Anchor, b: &Anchor| a.start_s <= b.end_s + APART_S && b.start_s <= a.end_s + APART_S;
    let mut groups: Vec<BTreeSet<u32>> = Vec::new();
    for points in with.into_values().filter(|points| points.len() > 1) {
        for (a, b) in points.iter().zip(points.iter().skip(1)) {
            if !overlap(&anchors[a], &anchors[b]) {
                continue;
            }
            let (mut joined, apart): (Vec<_>, Vec<_>) =
                std::mem::take(&mut groups).into_iter().partition(|group| group.contains(a) || group.contains(b));
            joined.push(BTreeSet::from([*a, *b]));
            groups = apart;
            groups.push(joined.into_iter().flatten().collect());
        }
    }
    groups
}

/// When a connection that both points have began in one of them, less when it did in the other.
fn began(tables: &Tables, of: u32, base: u32) -> Option<f64> {
    let start = |point: u32, flow: &str| {
        let first = tables.samples.iter().find(|row| row.point == point && row.flow == flow && row.goodput_mbps > 0.0);
        let row = tables.flows.iter().find(|row| row.point == point && row.flow == flow)?;
        // A capture that has the handshake tells the beginning; otherwise the first data does.
        first.map(|_| row.start_s)
    };
    let largest = tables.flows.iter().filter(|row| row.point == of).max_by_key(|row| row.bytes)?;
    Some(start(base, largest.flow)? - largest.start_s)
}

/// Moves a point on the time axis.
fn shift(tables: &mut Tables, point: u32, by_s: f64) {
    if by_s <= 0.0 {
        return;
    }
    macro_rules! shift {
        ($($table:ident { $($time:ident),+ })+) => {$(
            if tables.$table.iter().any(|row| row.point == point) {
                let before = std::mem::take(&mut tables.$table);
                for mut row in before.iter() {
                    if row.point == point {
                        $(row.$time += by_s;)+
                    }
                    tables.$table.push(&row);
                }
            }
        )+};
    }
    shift! {
        samples { t_s } tcp_samples { t_s } tcp_info { t_s } segments { t_s } latencies { t_s } passages { t_s } modem { t_s }
    }
    let before = std::mem::take(&mut tables.flows);
    for mut row in before.iter() {
        if row.point == point {
            row.start_s += by_s;
            row.measured_from_s += by_s;
            row.measured_to_s += by_s;
            row.end_s = row.end_s.map(|end_s| end_s + by_s);
        }
        tables.flows.push(&row);
    }
}
