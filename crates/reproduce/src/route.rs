//! Figures of a UE's way past the cells: where it received how much of which cell.

use crate::drawn::{Drawn, Kind, Line, POINTS, STEPS};
use crate::study::steps;
use record::Results;
use record::tables::RadioRow;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Most steps of a cell's distribution, of which there are many in a figure.
const STEPS_OF_CELL: usize = 60;

/// A figure of a UE's way, as `paper.toml` describes it: of the first point and run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Along {
    /// Its title.
    pub(crate) title: String,
    /// The UE, which stands still or follows a route.
    pub(crate) ue: String,
    /// What is drawn.
    drawn: What,
}

/// What a figure shows of a UE's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// A map of the received power, with the cells that served.
    Rsrp,
    /// A map of the cells that served, each in the colour of the part of the way on which it did.
    Cells,
    /// The distribution of the received power in each cell, and over all of them.
    Distribution,
}

/// What a UE received at a moment.
struct Moment {
    t_s: f64,
    cell: String,
    rsrp_dbm: f64,
}

impl Along {
    pub(crate) fn draw(&self, results: &Results, blank: Drawn) -> Drawn {
        let of_ue = |row: &RadioRow| (row.point, row.run) == (0, 0) && row.ue == self.ue;
        let rows = results.tables.radio.iter().filter(of_ue);
        let moments: Vec<Moment> =
            rows.map(|row| Moment { t_s: row.t_s, cell: row.cell.to_owned(), rsrp_dbm: row.rsrp_dbm }).collect();
        let blank = Drawn { title: self.title.clone(), ..blank };
        if self.drawn == What::Distribution {
            let lines = distributions(&moments);
            return Drawn { kind: Kind::Curves, x: "RSRP, dBm".into(), y: "share".into(), lines, ..blank };
        }
        // Results of earlier versions have `lte` or `nr`.
        let network = ["radio", "lte", "nr"].iter().find_map(|table| results.meta.scenario.get(table));
        let of = |list: &str, name: &str| {
            let entries = network?.get(list)?.as_array()?;
            entries.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))
        };
        let track = of("ues", &self.ue).and_then(|ue| Track::of(ue.get("mobility")?)).unwrap_or_default();
        let served: BTreeSet<&str> = moments.iter().map(|moment| moment.cell.as_str()).collect();
        let sites = served.iter().filter_map(|name| Some((*name, point_of(of("cells", name)?.get("position")?)?)));
        // In the order in which the way passes them.
        let mut sites: Vec<(&str, [f64; 2])> = sites.collect();
        let mut first = BTreeMap::new();
        for (i, moment) in moments.iter().enumerate() {
            first.entry(moment.cell.as_str()).or_insert(i);
        }
        sites.sort_by_key(|(name, _)| first[name]);
        let number = |cell: &str| sites.iter().position(|(name, _)| *name == cell).map(|i| i as f64);
        let mut way = Line { label: self.ue.clone(), ..Line::default() };
        for part in moments.chunks(moments.len().div_ceil(POINTS).max(1)) {
            let Some(middle) = part.get(part.len() / 2) else { continue };
            let [x, y] = track.at(middle.t_s);
            way.x.push(x / 1e3);
            way.y.push(Some(y));
            way.shade.push(match self.drawn {
                What::Cells => number(&middle.cell),
                _ => Some(part.iter().map(|moment| moment.rsrp_dbm).sum::<f64>() / part.len() as f64),
            });
        }
        let mut cells = Line { label: "cells".into(), ..Line::default() };
        for (i, (_, [x, y])) in sites.iter().enumerate() {
            cells.x.push(x / 1e3);
            cells.y.push(Some(*y));
            cells.shade.push((self.drawn == What::Cells).then_some(i as f64));
        }
        let (down, names) = match self.drawn {
            What::Cells => ("serving cell", sites.iter().map(|(name, _)| (*name).to_owned()).collect()),
            _ => ("RSRP, dBm", Vec::new()),
        };
        let (x, y) = ("east, km".into(), "north, m".into());
        Drawn { kind: Kind::Places, x, y, down: down.into(), names, lines: vec![way, cells], ..blank }
    }
}

/// The distribution of the power in each cell, as the pieces of one line, and over all cells.
fn distributions(moments: &[Moment]) -> Vec<Line> {
    let mut of_cells: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for moment in moments.iter().filter(|moment| !moment.cell.is_empty()) {
        of_cells.entry(&moment.cell).or_default().push(moment.rsrp_dbm);
    }
    let mut each = Line { label: "a cell".into(), ..Line::default() };
    let mut all = Line { label: "all cells".into(), ..Line::default() };
    let mut every: Vec<f64> = Vec::new();
    for values in of_cells.into_values() {
        every.extend_from_slice(&values);
        add_steps(&mut each, values, STEPS_OF_CELL);
        // A gap needs a place on the axis, which is that of the value before.
        each.x.extend(each.x.last().copied());
        each.y.push(None);
    }
    add_steps(&mut all, every, STEPS);
    vec![each, all]
}

fn add_steps(line: &mut Line, values: Vec<f64>, most: usize) {
    for (value, share) in steps(values, most) {
        line.x.push(value);
        line.y.push(Some(share));
    }
}

/// A movement along straight legs at constant speeds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Track {
    points: Vec<[f64; 2]>,
    /// Metres per second on each leg; the last one holds for the rest.
    speeds: Vec<f64>,
}

impl Track {
    /// Reads the `mobility` of a UE in results: `still` or `route`, no other.
    fn of(mobility: &Value) -> Option<Track> {
        match mobility.get("kind")?.as_str()? {
            "still" => Some(Track { points: vec![point_of(mobility.get("position")?)?], speeds: Vec::new() }),
            "route" => {
                let points: Option<_> = mobility.get("points")?.as_array()?.iter().map(point_of).collect();
                let speeds: Option<_> = mobility.get("speeds")?.as_array()?.iter().map(Value::as_f64).collect();
                Some(Track { points: points?, speeds: speeds? })
            }
            _ => None,
        }
    }

    /// Returns where it is after `t_s` seconds: metres east and north.
    fn at(&self, t_s: f64) -> [f64; 2] {
        let mut left = t_s;
        for (i, leg) in self.points.windows(2).enumerate() {
            let [from, to] = [leg[0], leg[1]];
            let speed = self.speeds.get(i).or(self.speeds.last()).copied().unwrap_or_default();
            let takes = (to[0] - from[0]).hypot(to[1] - from[1]) / speed;
            if left < takes {
                let share = left / takes;
                return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
            }
            left -= takes;
        }
        self.points.last().copied().unwrap_or_default()
    }
}

/// Returns metres east and north of a position.
fn point_of(position: &Value) -> Option<[f64; 2]> {
    let of = |i: usize| position.get(i)?.as_f64();
    Some([of(0)?, of(1)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UE that passes cell `a` for 10 s and `b` for 10 s at 10 m/s to the east and then to the north, sampled each second:
    /// the RSRP falls by 1 dB in a second from -70 dBm, and again from -80 dBm in `b`.
    fn results() -> Results {
        let mut results = Results::default();
        results.meta.scenario = serde_json::json!({ "lte": {
            "cells": [
                { "name": "a", "position": [50.0, 7.0, 30] },
                { "name": "b", "position": [150.0, 8.0, 30] },
                { "name": "never", "position": [0.0, 5e4, 30] },
            ],
            "ues": [{ "name": "bus", "mobility": {
                "kind": "route", "points": [[0, 0, 1.5], [100, 0, 1.5], [100, 200, 1.5]], "speeds": [10, 20] } }],
        } });
        for i in 0..20 {
            let (cell, rsrp_dbm) = if i < 10 { ("b", -70.0 - f64::from(i)) } else { ("a", -70.0 - f64::from(i)) };
            let row = RadioRow { ue: "bus", t_s: f64::from(i), cell, rsrp_dbm, ..RadioRow::default() };
            results.tables.radio.push(&row);
            results.tables.radio.push(&RadioRow { ue: "other", ..row });
        }
        results
    }

    fn drawn(drawn: &str) -> Drawn {
        let text = format!("title = 't'\nue = 'bus'\ndrawn = '{drawn}'");
        let along: Along = toml::from_str(&text).unwrap();
        along.draw(&results(), Drawn::blank("paper", "experiment"))
    }

    #[test]
    fn a_map_has_the_way_and_the_cells_that_served() {
        let map = drawn("rsrp");
        let [way, cells] = &map.lines[..] else { panic!("{map:?}") };
        // 5 s at 10 m/s to the east; 12 s are 100 m to the east and 2 s at 20 m/s to the north.
        assert_eq!((way.x[5], way.y[5], way.shade[5]), (0.05, Some(0.0), Some(-75.0)));
        assert_eq!((way.x[12], way.y[12], way.shade[12]), (0.1, Some(40.0), Some(-82.0)));
        assert_eq!((way.x.len(), &cells.x[..], &cells.y[..]), (20, &[0.15, 0.05][..], &[Some(8.0), Some(7.0)][..]));
        assert!(map.kind == Kind::Places && map.names.is_empty() && cells.shade == [None, None]);
    }

    #[test]
    fn the_cell_plan_numbers_cells_in_the_order_of_the_way() {
        let plan = drawn("cells");
        assert_eq!(plan.names, ["b", "a"]);
        let [way, cells] = &plan.lines[..] else { panic!("{plan:?}") };
        assert_eq!((way.shade[9], way.shade[10]), (Some(0.0), Some(1.0)));
        assert_eq!(cells.shade, [Some(0.0), Some(1.0)]);
    }

    #[test]
    fn each_cell_has_a_distribution_that_ends_at_one() {
        let figure = drawn("distribution");
        let [each, all] = &figure.lines[..] else { panic!("{figure:?}") };
        let pieces: Vec<&[Option<f64>]> = each.y.split(Option::is_none).filter(|piece| !piece.is_empty()).collect();
        assert!(pieces.len() == 2 && pieces.iter().all(|piece| piece.last() == Some(&Some(1.0))), "{each:?}");
        // Cell `a`, the first by name, from -89 to -80 dBm; then a gap, and `b` from -79 dBm.
        assert_eq!((each.x[0], each.x[9], each.y[10], each.x[11]), (-89.0, -80.0, None, -79.0));
        assert_eq!((all.x[0], all.x[19], all.y[9]), (-89.0, -70.0, Some(0.5)));
        assert!(each.x.iter().all(|x| x.is_finite()));
    }

    #[test]
    fn a_ue_that_stands_still_has_one_place() {
        let still = Track::of(&serde_json::json!({ "kind": "still", "position": [3, 4, 1.5] })).unwrap();
        assert_eq!((still.at(0.0), still.at(1e6)), ([3.0, 4.0], [3.0, 4.0]));
        assert_eq!(Track::of(&serde_json::json!({ "kind": "disc", "centre": [0, 0, 0] })), None);
    }
}
