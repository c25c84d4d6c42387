//! Figures like the papers', drawn from an experiment's results.

use crate::check::{Check, Form};
use crate::data::Data;
use crate::drawn::{Drawn, Kind, Line};
use crate::measure::Measure;
use crate::percentile::Percentile;
use crate::points::At;
use crate::route::Along;
use crate::sampled::Series;
use crate::sequence::Sequence;
use crate::study::OverTests;
use record::{Point, Results};
use serde::Deserialize;
use units::Span;

/// A figure, as `paper.toml` describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Figure {
    /// A time series of one run.
    Series {
        /// Its title.
        title: String,
        /// The quantity to draw.
        column: Series,
        /// The flows and points.
        lines: Vec<Of>,
        /// Interval to average over, instead of individual samples.
        #[serde(default)]
        mean: Span,
        /// The first time shown.
        #[serde(default)]
        from: Span,
        /// The last time shown. Default: the end.
        to: Option<Span>,
        /// Whether time is relative to the flow's start.
        #[serde(default)]
        since_start: bool,
        /// Reference levels.
        #[serde(default)]
        levels: Vec<Level>,
    },
    /// The distribution of completion times over all runs.
    Completions {
        /// Its title.
        title: String,
        /// The flows and points.
        lines: Vec<Of>,
    },
    /// A value over a swept key, with a line for each of some points.
    Means {
        /// Its title.
        title: String,
        /// The axis title, with its unit.
        y: String,
        /// The swept key.
        over: String,
        /// The points.
        lines: Vec<Of>,
        /// The measure.
        measure: Measure,
        /// As in a check.
        against: Option<At>,
        /// As in a check.
        #[serde(default, rename = "as")]
        form: Form,
    },
    /// Box plots of flows' one-way delay over a swept key, a box for each of some points: [`Measure::Delay`] at the
    /// five percentiles, averaged over the runs.
    Boxes {
        /// Its title.
        title: String,
        /// The swept key.
        over: String,
        /// The flows; `*` matches any text.
        flow: String,
        /// The points.
        lines: Vec<Of>,
    },
    /// A quantity of tests.
    Tests(OverTests),
    /// A UE's way past the cells.
    Route(Along),
    /// Sequence numbers over time.
    Sequence(Sequence),
    /// A value over two swept keys, as a table of coloured cells.
    Map {
        /// Its title.
        title: String,
        /// The title, with its unit.
        y: String,
        /// The swept key of the columns.
        over: String,
        /// The swept key of the rows.
        down: String,
        /// The points.
        #[serde(default)]
        point: At,
        /// The measure.
        measure: Measure,
        /// As in a check.
        against: Option<At>,
        /// As in a check.
        #[serde(default, rename = "as")]
        form: Form,
    },
}

/// A line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Of {
    label: String,
    #[serde(default)]
    point: At,
    #[serde(default)]
    flow: String,
    /// A quantity other than the figure's.
    column: Option<Series>,
}

/// A reference level.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    label: String,
    value: f64,
}

impl Figure {
    /// Returns what is wrong with its keys, or with the names of its flows or its UE.
    pub(crate) fn fault(&self, is_flow: impl Fn(&str) -> bool, is_ue: impl Fn(&str) -> bool) -> Option<String> {
        let (fault, flows): (_, Vec<&str>) = match self {
            Figure::Tests(figure) => (figure.fault(), figure.lines.iter().flat_map(|line| line.flows()).collect()),
            Figure::Sequence(figure) => (None, figure.lines.iter().map(|line| line.flow.as_str()).collect()),
            Figure::Route(figure) => {
                return (!is_ue(&figure.ue)).then(|| format!("the scenario has no UE `{}`", figure.ue));
            }
            _ => return None,
        };
        let unknown =
            || flows.into_iter().find(|flow| !is_flow(flow)).map(|flow| format!("the scenario has no flow `{flow}`"));
        fault.map(str::to_owned).or_else(unknown)
    }

    /// Returns whether it is drawn from what a scenario records at its sampling moments.
    pub(crate) fn needs_samples(&self) -> bool {
        match self {
            Figure::Series { .. } => true,
            Figure::Means { measure, .. } | Figure::Map { measure, .. } => measure.needs_samples(),
            Figure::Completions { .. }
            | Figure::Boxes { .. }
            | Figure::Tests(_)
            | Figure::Route(_)
            | Figure::Sequence(_) => false,
        }
    }

    /// Returns whether each of its lines matches a point of the sweep.
    pub fn fits(&self, points: &[Point]) -> bool {
        let is_there = |at: &At| points.iter().any(|point| at.is(point));
        let swept = |key: &String| points.iter().all(|point| point.values.contains_key(key));
        match self {
            Figure::Series { lines, .. } | Figure::Completions { lines, .. } => {
                lines.iter().all(|of| is_there(&of.point) && !of.flow.is_empty())
            }
            Figure::Means { lines, over, .. } | Figure::Boxes { lines, over, .. } => {
                lines.iter().all(|of| is_there(&of.point)) && swept(over)
            }
            Figure::Map { point, over, down, .. } => is_there(point) && swept(over) && swept(down),
            Figure::Tests(_) | Figure::Route(_) | Figure::Sequence(_) => true,
        }
    }

    pub(crate) fn draw(&self, data: &Data, blank: Drawn) -> Drawn {
        let results = data.results;
        let title = self.title().to_owned();
        match self {
            Figure::Series { column, lines, mean, from, to, since_start, levels, .. } => {
                let to = to.map_or(f64::INFINITY, Span::as_secs_f64);
                let within = (from.as_secs_f64(), to);
                let mut drawn: Vec<Line> = lines
                    .iter()
                    .map(|of| {
                        of.series(results, of.column.unwrap_or(*column), mean.as_secs_f64(), within, *since_start)
                    })
                    .collect();
                let ends = drawn.iter().flat_map(|line| line.x.first().into_iter().chain(line.x.last()));
                let (first, last) = ends.fold((f64::INFINITY, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
                drawn.extend(levels.iter().map(|level| Line {
                    label: level.label.clone(),
                    x: vec![first, last],
                    y: vec![Some(level.value); 2],
                    published: true,
                    ..Line::default()
                }));
                let x = if *since_start { "time since the start, s" } else { "time, s" };
                Drawn { title, x: x.to_owned(), y: column.axis().to_owned(), lines: drawn, ..blank }
            }
            Figure::Completions { lines, .. } => {
                let lines = lines.iter().map(|of| of.completions(results)).collect();
                let (x, y) = ("completion time, s".to_owned(), "share".to_owned());
                Drawn { title, kind: Kind::Steps, x, y, lines, ..blank }
            }
            Figure::Means { y, over, lines, measure, against, form, .. } => {
                let check = Check::of(measure.clone(), against.clone(), *form);
                let names = values_of(results, over);
                let lines = lines.iter().map(|of| means(data, &check, over, &names, &of.point, &of.label)).collect();
                Drawn { title, kind: Kind::Means, x: over.clone(), y: y.clone(), names, lines, ..blank }
            }
            Figure::Boxes { over, flow, lines, .. } => {
                let names = values_of(results, over);
                let lines = lines.iter().map(|of| boxes(data, flow, over, &names, &of.point, &of.label)).collect();
                let y = "one-way delay, ms".to_owned();
                Drawn { title, kind: Kind::Boxes, x: over.clone(), y, names, lines, ..blank }
            }
            Figure::Tests(figure) => figure.draw(data.study(), blank),
            Figure::Route(figure) => figure.draw(results, blank),
            Figure::Sequence(figure) => figure.draw(results, blank),
            Figure::Map { y, over, down, point, measure, against, form, .. } => {
                let check = Check::of(measure.clone(), against.clone(), *form);
                let names = values_of(results, over);
                let rows = values_of(results, down);
                let rows = rows.iter().map(|row| {
                    let here = |at: &Point| point.is(at) && value_of(at, down).as_ref() == Some(row);
                    cells(data, &check, over, &names, here, row)
                });
                let lines = rows.collect();
                Drawn {
                    title,
                    kind: Kind::Map,
                    x: over.clone(),
                    y: y.clone(),
                    down: down.clone(),
                    names,
                    lines,
                    ..blank
                }
            }
        }
    }

    pub(crate) fn title(&self) -> &str {
        match self {
            Figure::Series { title, .. }
            | Figure::Completions { title, .. }
            | Figure::Means { title, .. }
            | Figure::Boxes { title, .. }
            | Figure::Map { title, .. } => title,
            Figure::Tests(figure) => &figure.title,
            Figure::Route(figure) => &figure.title,
            Figure::Sequence(figure) => &figure.title,
        }
    }
}

/// Formats the value of a swept key at a point.
fn value_of(point: &Point, key: &str) -> Option<String> {
    let value = point.values.get(key)?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Returns all values of a swept key, in the order of the sweep.
fn values_of(results: &Results, key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for value in results.meta.points.iter().filter_map(|point| value_of(point, key)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn means(data: &Data, check: &Check, over: &str, names: &[String], at: &At, label: &str) -> Line {
    cells(data, check, over, names, |point| at.is(point), label)
}

/// Computes the boxes of the flows' one-way delay at each value of `over`.
fn boxes(data: &Data, flow: &str, over: &str, names: &[String], at: &At, label: &str) -> Line {
    let of = |percentile| {
        let measure = Measure::Delay { flow: flow.to_owned(), at: percentile };
        means(data, &Check::of(measure, None, Form::default()), over, names, at, label)
    };
    let medians = of(Percentile::P50);
    let around = [Percentile::P5, Percentile::P25, Percentile::P75, Percentile::P95].map(|at| of(at).y);
    let box_at = |i: usize| Some([around[0][i]?, around[1][i]?, around[2][i]?, around[3][i]?]);
    Line { around: (0..names.len()).map(box_at).collect(), ..medians }
}

/// Computes the value at each value of `over`, at the first point for which `here` is true.
fn cells(data: &Data, check: &Check, over: &str, names: &[String], here: impl Fn(&Point) -> bool, label: &str) -> Line {
    let mut line = Line { label: label.to_owned(), ..Line::default() };
    for (x, name) in names.iter().enumerate() {
        let is_it = |point: &Point| here(point) && value_of(point, over).as_ref() == Some(name);
        let point = data.results.meta.points.iter().position(is_it);
        let stat = point.and_then(|point| check.figure(data, point as u32));
        line.x.push(x as f64);
        line.y.push(stat.map(|stat| stat.mean));
        line.ci.push(stat.and_then(|stat| stat.ci95));
    }
    line
}

impl Of {
    fn point(&self, results: &Results) -> Option<u32> {
        results.meta.points.iter().position(|point| self.point.is(point)).map(|point| point as u32)
    }

    /// Returns the first run's samples.
    fn series(&self, results: &Results, column: Series, mean: f64, (from, to): (f64, f64), since_start: bool) -> Line {
        let mut line = Line { label: self.label.clone(), ..Line::default() };
        let Some(point) = self.point(results) else { return line };
        let mut flows = results.tables.flows.iter();
        let flow = flows.find(|row| (row.point, row.run) == (point, 0) && row.flow == self.flow);
        let start = flow.map_or(0.0, |row| row.start_s);
        let zero = if since_start { start } else { 0.0 };
        let rows = results.tables.samples.iter();
        let rows = rows.filter(|row| (row.point, row.run) == (point, 0) && row.flow == self.flow && row.t_s > start);
        let (mut sum, mut n) = (0.0, 0);
        for row in rows.filter(|row| row.t_s - zero > from && row.t_s - zero <= to + 1e-9) {
            let value = column.of(&row);
            if let Some(value) = value {
                sum += value;
                n += 1;
            }
            let t = row.t_s - zero;
            if mean == 0.0 {
                line.x.push(t);
                line.y.push(value);
            } else if (t / mean - (t / mean).round()).abs() < 1e-6 {
                line.x.push(t);
                line.y.push((n > 0).then(|| sum / f64::from(n)));
            } else {
                continue;
            }
            (sum, n) = (0.0, 0);
        }
        line
    }

    /// Computes the share of all runs' transfers completed by each time.
    fn completions(&self, results: &Results) -> Line {
        let mut line = Line { label: self.label.clone(), ..Line::default() };
        let Some(point) = self.point(results) else { return line };
        let rows = results.tables.transfers.iter().filter(|row| row.point == point && row.flow == self.flow);
        let times: Vec<Option<f64>> = rows.map(|row| row.completion_s).collect();
        let mut finished: Vec<f64> = times.iter().flatten().copied().collect();
        finished.sort_by(f64::total_cmp);
        line.x.push(0.0);
        line.y.push(Some(0.0));
        for (i, time) in finished.iter().enumerate() {
            line.x.push(*time);
            line.y.push(Some((i + 1) as f64 / times.len() as f64));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::tables::FlowRow;

    #[test]
    fn a_box_is_the_mean_of_runs_and_flows_at_each_percentile() {
        let mut results = Results::default();
        results.meta.runs = 2;
        let limit = |value: &str| Point { values: [("limit".to_owned(), value.into())].into() };
        results.meta.points = vec![limit("none"), limit("bql")];
        // The second point has two flows in two runs; the first has a flow without arrivals. Other flows do not count.
        for (run, flow, low) in [(0, "small-a", 0.0), (0, "small-b", 20.0), (1, "small-a", 40.0), (1, "small-b", 60.0)]
        {
            let at = |rise: f64| Some(low + rise);
            let row = FlowRow { point: 1, run, flow, owd_p5_ms: at(1.0), owd_p25_ms: at(2.0), ..FlowRow::default() };
            let row = FlowRow { owd_p50_ms: at(4.0), owd_p75_ms: at(8.0), owd_p95_ms: at(16.0), ..row };
            results.tables.flows.push(&row);
            results.tables.flows.push(&FlowRow { flow: "bulk", owd_p50_ms: Some(1e6), ..row });
            results.tables.flows.push(&FlowRow { run, flow, ..FlowRow::default() });
        }
        let names = ["none".to_owned(), "bql".to_owned()];
        let line = boxes(&Data::new(&results), "small-*", "limit", &names, &At::default(), "FQ");
        assert_eq!(line.around, [None, Some([31.0, 32.0, 38.0, 46.0])]);
        assert_eq!((line.label.as_str(), line.x, line.y), ("FQ", vec![0.0, 1.0], vec![None, Some(34.0)]));
    }
}
