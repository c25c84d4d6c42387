//! The simulator's TCP beside the kernel's: the same scenario, once simulated, and once or more with flows that the kernel
//! carries over the emulated network.
//!
//! [`cases`] are the scenarios. [`compare`] takes the results of both worlds, which have the same tables, and says of each
//! flow by how much its figures differ, by how much the kernel differs from itself, and whether that is within bounds.
//!
//! | file | what |
//! | --- | --- |
//! | `cases` | the scenarios |
//! | `run` | a scenario in both worlds |
//! | `figures` | what is read from the tables of one flow in one run |
//! | `curve` | how CUBIC's window grows after a loss |
//! | `row` | a comparison's rows: what differs by how much, and what that means |

// What drives both worlds waits for the second.
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

/// Goodput may differ by this share; under random loss, by the second, because two runs do not lose the same packets.
const GOODPUT: [f64; 2] = [0.05, 0.10];
/// Likewise the median of the round-trip time.
const RTT_MEDIAN: f64 = 0.10;
/// Likewise its 95th percentile.
const RTT_P95: f64 = 0.15;
/// Slow start may end this many round trips earlier or later.
const EXIT_ROUNDS: f64 = 1.0;
/// The window at which it ends may differ by this share.
const EXIT_WINDOW: f64 = 0.15;
/// The window of `mdcc` may be off by this share, as the round-trip time that it makes may: the median.
const WINDOW_MEDIAN: f64 = RTT_MEDIAN;
/// Likewise its 95th percentile.
const WINDOW_P95: f64 = RTT_P95;
/// CUBIC's curve may be off by this share of the window, on average.
const CURVE: f64 = 0.05;

/// A figure that each world has a mean of.
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

/// The figures but goodput, whose bound depends on the case.
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

/// Compares the TCP flows of a case, each by itself. The means are over all runs of a world. `emulated` has at least one;
/// from the second on, what the kernel does differently from itself counts as noise.
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

/// A figure's row, unless neither world has it.
fn compare_figure(figure: &Figure, ours: &[Figures], theirs: &[Figures]) -> Option<Row> {
    let (simulated, _) = spread(ours.iter().filter_map(figure.of));
    let (emulated, half_range) = spread(theirs.iter().filter_map(figure.of));
    let shift = simulated.zip(emulated).map(|(ours, theirs)| (ours - theirs).abs());
    // What a difference of 1 in the figure's unit is on the scale.
    let per_unit = match figure.scale {
        Scale::Share => emulated.map(|value| 1.0 / value.abs()),
        Scale::Points => Some(1.0),
        Scale::Rounds => round_trip(theirs).or(round_trip(ours)).map(|rtt| 1.0 / rtt),
    };
    let on_scale =
        |difference: f64| if difference == 0.0 { Some(0.0) } else { per_unit.map(|scale| difference * scale) };
    let mut noise = half_range.and_then(on_scale);
    if figure.scale == Scale::Rounds {
        // What is read from samples is known to an interval.
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

/// The row of CUBIC's curve: the mean of the deviations of each curve of one world from each of the other.
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

/// Mean, and from two values on half of the range.
fn spread(values: impl Iterator<Item = f64>) -> (Option<f64>, Option<f64>) {
    let values: Vec<f64> = values.collect();
    let Some(stat) = record::Stat::of(values) else { return (None, None) };
    (Some(stat.mean), (stat.n > 1).then_some((stat.max - stat.min) / 2.0))
}

/// The round-trip time when slow start ended, in seconds.
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
