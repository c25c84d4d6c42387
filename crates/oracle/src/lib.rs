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
//! | `curve` | growth of CUBIC's window after a loss |
//! | `row` | the rows of a comparison: differences and verdicts |

// The code that drives both waits in real time for the kernel's run.
#![allow(clippy::disallowed_methods)]

mod cases;
mod curve;
mod figures;
mod row;
mod run;

pub use cases::{Case, cases};
pub use row::{Comparison, Row, Scale, Verdict};
pub use run::{Both, needs_mdcc, run, simulate};

use curve::Curve;
use figures::{Figures, Flow, collect};
use record::Results;

/// Bound on the relative difference of goodput; the second value applies under random loss, where two runs lose
/// different packets.
const GOODPUT: [f64; 2] = [0.05, 0.10];
/// The same for the median of the round-trip time.
const RTT_MEDIAN: f64 = 0.10;
/// The same for its 95th percentile.
const RTT_P95: f64 = 0.15;
/// Bound on the difference of the end of slow start, in round trips.
const EXIT_ROUNDS: f64 = 1.0;
/// Bound on the relative difference of the window at the end of slow start.
const EXIT_WINDOW: f64 = 0.15;
/// Bound on the relative difference of the window of `mdcc`, equal to that of the RTT which it causes: median.
const WINDOW_MEDIAN: f64 = RTT_MEDIAN;
/// The same for its 95th percentile.
const WINDOW_P95: f64 = RTT_P95;
/// Bound on the mean relative difference of CUBIC's curve.
const CURVE: f64 = 0.05;

/// A value with a mean for the simulator and one for the kernel.
struct Figure {
    metric: &'static str,
    unit: &'static str,
    scale: Scale,
    bound: Option<f64>,
    of: fn(&Figures) -> Option<f64>,
}

const fn figure(
    metric: &'static str,
    unit: &'static str,
    scale: Scale,
    bound: Option<f64>,
    of: fn(&Figures) -> Option<f64>,
) -> Figure {
    Figure { metric, unit, scale, bound, of }
}

/// All values except goodput, whose bound depends on the case.
const FIGURES: [Figure; 10] = [
    figure("RTT, median", "ms", Scale::Share, Some(RTT_MEDIAN), |f| f.rtt_p50_ms),
    figure("RTT, p95", "ms", Scale::Share, Some(RTT_P95), |f| f.rtt_p95_ms),
    figure("smoothed RTT, median", "ms", Scale::Share, Some(RTT_MEDIAN), |f| f.srtt_p50_ms),
    figure("smoothed RTT, p95", "ms", Scale::Share, Some(RTT_P95), |f| f.srtt_p95_ms),
    figure("retransmitted", "%", Scale::Points, None, |f| f.retransmitted_percent),
    figure("time in recovery", "%", Scale::Points, None, |f| f.recovery_percent),
    figure("slow start's end, window", "kB", Scale::Share, Some(EXIT_WINDOW), |f| f.exit.map(|e| e.window_kb)),
    figure("slow start's end, time", "s", Scale::Rounds, Some(EXIT_ROUNDS), |f| f.exit.map(|e| e.after_s)),
    figure("window, median", "kB", Scale::Share, Some(WINDOW_MEDIAN), |f| f.window_p50_kb),
    figure("window, p95", "kB", Scale::Share, Some(WINDOW_P95), |f| f.window_p95_kb),
];

/// Compares each TCP flow of a case. Means are over all runs. `emulated` has at least one element; with two or more,
/// the variation between the kernel's own runs counts as noise.
pub fn compare(case: &str, simulated: &Results, emulated: &[Results]) -> Vec<Row> {
    let (ours, theirs) = (collect([simulated]), collect(emulated));
    let goodput = GOODPUT[usize::from(loses_at_random(simulated))];
    let mut rows = Vec::new();
    for (flow, ours) in &ours {
        let theirs = theirs.iter().find(|(other, _)| other == flow).map_or(&[][..], |(_, runs)| runs);
        let named = |row: Row| Row { case: label(case, simulated, flow), flow: flow.to_string(), ..row };
        let goodput = figure("goodput", "Mbit/s", Scale::Share, Some(goodput), |f| Some(f.goodput_mbps));
        let figures = std::iter::once(&goodput).chain(&FIGURES);
        rows.extend(figures.filter_map(|figure| compare_figure(figure, ours, theirs)).map(named));
        rows.extend(compare_curve(ours, theirs).map(named));
    }
    rows
}

/// Returns the row of a value, unless both sides lack it.
fn compare_figure(figure: &Figure, ours: &[Figures], theirs: &[Figures]) -> Option<Row> {
    let (simulated, _) = spread(ours.iter().filter_map(figure.of));
    let (emulated, half_range) = spread(theirs.iter().filter_map(figure.of));
    let shift = simulated.zip(emulated).map(|(ours, theirs)| (ours - theirs).abs());
    // A difference of 1 in the value's unit, converted to the scale.
    let per_unit = match figure.scale {
        Scale::Share => emulated.map(|value| 1.0 / value.abs()),
        Scale::Points => Some(1.0),
        Scale::Rounds => round_trip(theirs).or(round_trip(ours)).map(|rtt| 1.0 / rtt),
    };
    let on_scale =
        |difference: f64| if difference == 0.0 { Some(0.0) } else { per_unit.map(|scale| difference * scale) };
    let mut noise = half_range.and_then(on_scale);
    if figure.scale == Scale::Rounds {
        // Values read from samples are accurate to one sampling interval.
        let interval = ours.first().and_then(|figures| figures.interval_s).and_then(on_scale);
        noise = noise.into_iter().chain(interval).reduce(f64::max);
    }
    Row::new(
        figure.metric,
        figure.unit,
        figure.scale,
        [simulated, emulated],
        shift.and_then(on_scale),
        noise,
        figure.bound,
    )
}

/// Returns the row of CUBIC's curve: the mean deviation of each curve of the simulator from each of the kernel.
fn compare_curve(ours: &[Figures], theirs: &[Figures]) -> Option<Row> {
    fn curves(figures: &[Figures]) -> Vec<&Curve> {
        figures.iter().filter_map(|figures| figures.curve.as_ref()).collect()
    }
    let (ours, theirs) = (curves(ours), curves(theirs));
    let common = ours.iter().chain(&theirs).map(|curve| curve.length()).reduce(f64::min)?;
    let mean = |curves: &[&Curve]| spread(curves.iter().map(|curve| curve.mean(common))).0;
    let deviations = ours.iter().flat_map(|ours| theirs.iter().map(|theirs| ours.deviation(theirs, common)));
    let (deviation, _) = spread(deviations);
    let pairs = theirs.iter().enumerate().flat_map(|(i, a)| theirs[..i].iter().map(|b| a.deviation(b, common)));
    let noise = pairs.reduce(f64::max).map(|most| most / 2.0);
    Row::new("CUBIC's curve", "kB", Scale::Share, [mean(&ours), mean(&theirs)], deviation, noise, Some(CURVE))
}

/// Returns the mean and, given two or more values, half of their range.
fn spread(values: impl Iterator<Item = f64>) -> (Option<f64>, Option<f64>) {
    let values: Vec<f64> = values.collect();
    let Some(stat) = record::Stat::of(values) else { return (None, None) };
    (Some(stat.mean), (stat.n > 1).then_some((stat.max - stat.min) / 2.0))
}

/// Returns the round-trip time at the end of slow start, in seconds.
fn round_trip(runs: &[Figures]) -> Option<f64> {
    spread(runs.iter().filter_map(|figures| figures.exit?.rtt_s)).0
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
