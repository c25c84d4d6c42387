//! Compares the simulator's TCP with the kernel's: the same scenario is simulated, and run one or more times over the
//! emulated network with flows carried by the kernel.
//!
//! [`cases()`] lists the scenarios. [`compare`] takes the results of both, which have the same tables, and reports for
//! each flow how much its values differ, how much the kernel's own runs differ, and whether the difference is within
//! bounds.
//!
//! | file | what |
//! | --- | --- |
//! | `cases` | the scenarios |
//! | `run` | runs a scenario both simulated and with the kernel |
//! | `figures` | values computed from the tables of one flow in one run |
//! | `base` | the round-trip time of a flow's path without queues |
//! | `bounds` | how far values may differ, and when a difference is noise |
//! | `curve` | growth of CUBIC's window after a loss |
//! | `row` | the rows of a comparison: differences and verdicts |

// The code that drives both waits in real time for the kernel's run.
#![allow(clippy::disallowed_methods)]

mod base;
mod bounds;
mod cases;
mod curve;
mod figures;
mod row;
mod run;

pub use cases::{Case, cases};
pub use row::{Comparison, Row, Scale, Verdict};
pub use run::{Both, needs_mdcc, run, simulate};

use base::Base;
use bounds::Bound;
use curve::Curve;
use figures::{Figures, Flow, collect};
use record::Results;

/// A value with a mean for the simulator and one for the kernel.
struct Figure {
    metric: &'static str,
    unit: &'static str,
    scale: Scale,
    bound: Option<Bound>,
    of: fn(&Figures) -> Option<f64>,
}

const fn figure(
    metric: &'static str,
    unit: &'static str,
    scale: Scale,
    bound: Option<Bound>,
    of: fn(&Figures) -> Option<f64>,
) -> Figure {
    Figure { metric, unit, scale, bound, of }
}

/// All values except goodput, whose bound depends on the case.
const FIGURES: [Figure; 11] = [
    figure("queueing delay, median", "ms", Scale::Share, Some(bounds::DELAY_MEDIAN), |f| f.delay_p50_ms),
    figure("queueing delay, p95", "ms", Scale::Share, Some(bounds::DELAY_P95), |f| f.delay_p95_ms),
    figure("smoothed delay, median", "ms", Scale::Share, Some(bounds::SMOOTHED_MEDIAN), |f| f.smoothed_p50_ms),
    figure("smoothed delay, p95", "ms", Scale::Share, Some(bounds::SMOOTHED_P95), |f| f.smoothed_p95_ms),
    figure("retransmitted", "%", Scale::Points, Some(bounds::RETRANSMITTED), |f| f.retransmitted_percent),
    figure("timeouts", "a run", Scale::Count, Some(bounds::TIMEOUTS), |f| f.timeouts),
    figure("time in recovery", "%", Scale::Points, None, |f| f.recovery_percent),
    figure("slow start's end, window", "kB", Scale::Share, Some(bounds::EXIT_WINDOW), |f| f.exit.map(|e| e.window_kb)),
    figure("slow start's end, time", "s", Scale::Rounds, Some(bounds::EXIT_ROUNDS), |f| f.exit.map(|e| e.after_s)),
    figure("window, median", "kB", Scale::Share, Some(bounds::WINDOW_MEDIAN), |f| f.window_p50_kb),
    figure("window, p95", "kB", Scale::Share, Some(bounds::WINDOW_P95), |f| f.window_p95_kb),
];

/// Compares each TCP flow of a case. Means are over all runs. `emulated` has at least one element; with six or more, the
/// variation between the kernel's own runs excuses a difference.
pub fn compare(case: &str, simulated: &Results, emulated: &[Results]) -> Vec<Row> {
    let base = Base::new(simulated, emulated);
    let (ours, theirs) = (collect([simulated], &base), collect(emulated, &base));
    let goodput = bounds::goodput(loses_at_random(simulated));
    let mut rows = Vec::new();
    for (flow, runs) in &ours {
        let theirs = theirs.iter().find(|(other, _)| other == flow).map_or(&[][..], |(_, runs)| runs);
        let named = |row: Row| Row { case: label(case, simulated, flow), flow: flow.to_string(), ..row };
        let is_alone = ours.iter().filter(|(other, _)| other.point == flow.point).count() == 1;
        let is_full = is_alone && runs.iter().chain(theirs).all(|run| run.utilisation >= bounds::FULL);
        let goodput = figure("goodput", "Mbit/s", Scale::Share, Some(goodput), |f| Some(f.goodput_mbps));
        let goodput = compare_figure(&goodput, runs, theirs).map(|row| if is_full { row.of_full_link() } else { row });
        rows.extend(goodput.map(named));
        rows.extend(FIGURES.iter().filter_map(|figure| compare_figure(figure, runs, theirs)).map(named));
        rows.extend(compare_curve(runs, theirs).map(named));
    }
    rows
}

/// Returns the row of a value, unless both sides lack it.
fn compare_figure(figure: &Figure, ours: &[Figures], theirs: &[Figures]) -> Option<Row> {
    let simulated = Spread::of(ours.iter().filter_map(figure.of));
    let emulated = Spread::of(theirs.iter().filter_map(figure.of));
    let means = [simulated.mean, emulated.mean];
    let shift = simulated.mean.zip(emulated.mean).map(|(ours, theirs)| (ours - theirs).abs());
    // A difference of 1 in the value's unit, converted to the scale.
    let per_unit = match figure.scale {
        Scale::Share => emulated.mean.map(|value| 1.0 / value.abs()),
        Scale::Points | Scale::Count => Some(1.0),
        Scale::Rounds => round_trip(theirs).or(round_trip(ours)).map(|rtt| 1.0 / rtt),
    };
    let on_scale =
        |difference: f64| if difference == 0.0 { Some(0.0) } else { per_unit.map(|scale| difference * scale) };
    let noise = emulated.half_range.and_then(on_scale);
    let base = ours.first().map_or(0.0, |figures| figures.base_ms);
    // Values read from samples are accurate to one sampling interval.
    let interval = ours.first().and_then(|figures| figures.interval_s).filter(|_| figure.scale == Scale::Rounds);
    let bound = figure.bound.map(|bound| match figure.scale {
        Scale::Rounds => bound.floor + interval.and_then(on_scale).unwrap_or(0.0),
        _ => emulated.mean.and_then(|kernel| on_scale(bound.allowed(kernel, base))).unwrap_or(bound.share),
    });
    let deviation = shift.and_then(on_scale);
    Row::new((figure.metric, figure.unit, figure.scale), means, deviation, (noise, emulated.count), bound)
}

/// Returns the row of CUBIC's curve: the mean deviation of each curve of the simulator from each of the kernel.
fn compare_curve(ours: &[Figures], theirs: &[Figures]) -> Option<Row> {
    fn curves(figures: &[Figures]) -> Vec<&Curve> {
        figures.iter().filter_map(|figures| figures.curve.as_ref()).collect()
    }
    let (ours, theirs) = (curves(ours), curves(theirs));
    let common = ours.iter().chain(&theirs).map(|curve| curve.length()).reduce(f64::min)?;
    let mean = |curves: &[&Curve]| Spread::of(curves.iter().map(|curve| curve.mean(common))).mean;
    let deviations = ours.iter().flat_map(|ours| theirs.iter().map(|theirs| ours.deviation(theirs, common)));
    let deviation = Spread::of(deviations).mean;
    let pairs = theirs.iter().enumerate().flat_map(|(i, a)| theirs[..i].iter().map(|b| a.deviation(b, common)));
    let noise = pairs.reduce(f64::max).map(|most| most / 2.0);
    let of = ("CUBIC's curve", "kB", Scale::Share);
    Row::new(of, [mean(&ours), mean(&theirs)], deviation, (noise, theirs.len()), Some(bounds::CURVE))
}

/// The values of several runs.
struct Spread {
    count: usize,
    mean: Option<f64>,
    /// Given two or more values, half of their range.
    half_range: Option<f64>,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Spread {
        let values: Vec<f64> = values.collect();
        let count = values.len();
        let stat = record::Stat::of(values);
        let half_range = stat.as_ref().filter(|stat| stat.n > 1).map(|stat| (stat.max - stat.min) / 2.0);
        Spread { count, mean: stat.map(|stat| stat.mean), half_range }
    }
}

/// Returns the round-trip time at the end of slow start, in seconds.
fn round_trip(runs: &[Figures]) -> Option<f64> {
    Spread::of(runs.iter().filter_map(|figures| figures.exit?.rtt_s)).mean
}

fn label(case: &str, results: &Results, flow: &Flow) -> String {
    let point = results.meta.points.get(flow.point as usize).map(record::Point::label).unwrap_or_default();
    if point.is_empty() { case.to_owned() } else { format!("{case}: {point}") }
}

fn loses_at_random(results: &Results) -> bool {
    let loses = |loss: &serde_json::Value| {
        !loss.is_null() && loss.get("probability").and_then(serde_json::Value::as_f64) != Some(0.0)
    };
    let links = results.meta.scenario.get("links").and_then(|links| links.as_array());
    links.is_some_and(|links| links.iter().filter_map(|link| link.get("loss")).any(loses))
}

#[cfg(test)]
mod tests;
