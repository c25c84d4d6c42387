//! Measures computed from a run, for comparison with published values.

use crate::pattern::is_flow;
use crate::percentile::{Percentile, mean_of_flows};
use crate::rtt::{self, Base};
use crate::sampled::Series;
use crate::study::Tests;
use record::Results;
use record::tables::{FlowRow, SampleRow};
use serde::Deserialize;
use units::{Bytes, Rate, Span};

/// Averaging interval of [`Measure::FillTime`].
const WINDOW_S: f64 = 1.0;

/// A measure of a run. If it covers several flows, `*` in the name matches any text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Measure {
    /// Throughput: IP bytes that arrived after the warm-up, Mbit/s; total of all copies of the flows.
    Throughput {
        /// The flows.
        flow: String,
    },
    /// Goodput: payload delivered after the warm-up, Mbit/s; total of all copies of the flows.
    Goodput {
        /// The flows.
        flow: String,
    },
    /// Share of some flows in the goodput of all, in per cent.
    Share {
        /// The flows.
        flow: String,
        /// If set, only until a flow has received so much.
        until: Option<Received>,
    },
    /// Mean goodput over a part of the run, from the samples, Mbit/s.
    MeanGoodput {
        /// The flow.
        flow: String,
        /// Start of the part.
        from: Span,
        /// End of the part.
        to: Span,
    },
    /// Ratio of the mean congestion windows of two flows.
    WindowRatio {
        /// The numerator.
        flow: String,
        /// The denominator.
        over: String,
    },
    /// Mean completion time of a flow's transfers, s.
    Completion {
        /// The flow.
        flow: String,
    },
    /// Completion time of the last transfer of several flows, s.
    LastCompletion {
        /// The flows.
        flow: String,
    },
    /// Round-trip time, ms: the mean of the flows' percentiles of the smoothed round-trip time at the sampling moments, with and
    /// without a proxy. Behind a proxy, it is the sum of both legs', as RAPID's authors have it, without the proxy's own queue.
    Rtt {
        /// The flows.
        flow: String,
        /// The percentile.
        #[serde(default)]
        at: Percentile,
    },
    /// Increase of the round-trip time over that of the idle path, ms, or in per cent of the idle path's or of a time. The
    /// round-trip time is that of [`Measure::Rtt`]. The idle path's is the least that any flow of the run had (of a packet, or of each
    /// leg behind a proxy), and of a pair of points, the least at either: the first packets of a run meet no queue.
    RttIncrease {
        /// The flows.
        flow: String,
        /// The percentile.
        #[serde(default)]
        at: Percentile,
        /// What it is in per cent of.
        over: Option<Base>,
    },
    /// Jain's fairness index over all flows' goodputs.
    #[default]
    Jain,
    /// Time until a link's mean rate over one second reaches a fraction of a given rate, s. The averaging window slides
    /// in steps of the sampling interval; the time ends at the beginning of that second unless `to` is set.
    FillTime {
        /// The link.
        link: String,
        /// The start of the time.
        after: Span,
        /// The rate.
        rate: Rate,
        /// The fraction of it.
        share: f64,
        /// The edge of the second at which the time ends.
        #[serde(default)]
        to: Edge,
    },
    /// The same for a flow's goodput, relative to its goodput at the end of the run.
    RiseTime {
        /// The flow.
        flow: String,
        /// The start of the time.
        after: Span,
        /// Length of the interval at the end of the run that gives the final goodput.
        end: Span,
        /// The fraction of that goodput.
        share: f64,
        /// The edge of the second at which the time ends.
        #[serde(default)]
        to: Edge,
    },
    /// Mean rate of a link from a given time until a run of the *other* point has filled it, as defined by
    /// [`Measure::FillTime`], Mbit/s. Only for checks with `against`.
    UntilFilled {
        /// The link.
        link: String,
        /// The start of the interval.
        after: Span,
        /// The swept key whose value is the rate.
        rate: String,
        /// The fraction of it.
        share: f64,
    },
    /// Fraction of the samples in a part of the run in which the end-to-end window is the smaller of the two (0 to 1).
    WholePathGoverns {
        /// The flow.
        flow: String,
        /// Start of the part.
        from: Span,
        /// End of the part.
        to: Span,
    },
    /// Time from a flow's start until the end of slow start, ms.
    SlowStart {
        /// The flow.
        flow: String,
    },
    /// Whether a flow is in slow start until its end, %: 100 or 0, so that the mean is a share of the runs.
    InSlowStart {
        /// The flow.
        flow: String,
    },
    /// One-way delay of the data packets, ms: the mean of the flows' percentiles.
    Delay {
        /// The flows.
        flow: String,
        /// The percentile.
        #[serde(default)]
        at: Percentile,
    },
    /// Difference between the 95th and the 5th percentile of the one-way delay, ms; mean of the flows.
    DelaySpread {
        /// The flows.
        flow: String,
    },
    /// Ratio of the median one-way delays of two sets of flows.
    DelayRatio {
        /// The numerator.
        flow: String,
        /// The denominator.
        over: String,
    },
    /// Number of packets of these flows lost in the network.
    Lost {
        /// The flows.
        flow: String,
    },
    /// A statistic over tests, each of several flows, in all runs together.
    Tests(Tests),
    /// Transport blocks with unused room while packets waited above PDCP and RLC, in per cent of all.
    Starved {
        /// `downlink` or `uplink`.
        direction: String,
    },
    /// Load of the cells' reports on a UE to the proxy while they are sent, Mbit/s, or in per cent of a rate: the mean of
    /// the UEs with reports.
    ReportLoad {
        /// The rate.
        over: Option<Rate>,
    },
    /// Mean of a sampled quantity in one part of the run over that in another.
    Change {
        /// The quantity.
        of: Series,
        /// The flow.
        flow: String,
        /// Start and end of the part that is the reference.
        before: (Span, Span),
        /// Start and end of the other part.
        after: (Span, Span),
    },
}

/// What a flow has received.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// The flow.
    flow: String,
    /// The payload.
    size: Bytes,
}

/// An edge of the second in which the fraction of the rate is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// Its beginning.
    #[default]
    Beginning,
    /// Its end.
    End,
}

/// A lower bound on a duration.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// The amount of data carried.
    size: Bytes,
    /// The maximum rate.
    rate: Rate,
}

impl Floor {
    /// The least time that `size` takes at `rate`.
    pub(crate) fn new(size: Bytes, rate: Rate) -> Floor {
        Floor { size, rate }
    }

    /// Returns whether something is carried, at some rate.
    pub(crate) fn is_real(&self) -> bool {
        self.size.get() > 0 && self.rate.as_mbps() > 0.0
    }

    /// Returns the bound in a row's unit, if that is one of time.
    pub fn value(&self, unit: &str) -> Option<f64> {
        let each_second = match unit {
            "s" => 1.0,
            "ms" => 1e3,
            "us" | "µs" => 1e6,
            _ => return None,
        };
        Some(self.seconds() * each_second)
    }

    /// Returns the bound in seconds.
    pub fn seconds(&self) -> f64 {
        self.size.get() as f64 * 8.0 / (self.rate.as_mbps() * 1e6)
    }
}

/// An upper bound, for a figure of which more is better.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Ceiling {
    /// The reduction of a duration, in per cent, that leaves the least one. It limits what was published with this duration, not
    /// what we measure with another.
    Reduction {
        /// The amount of data carried.
        size: Bytes,
        /// The maximum rate.
        rate: Rate,
        /// The published duration that is reduced.
        from: Span,
    },
    /// A value in the row's unit.
    Value {
        /// The value.
        most: f64,
    },
}

impl Ceiling {
    /// Returns the bound in the row's unit.
    pub fn value(&self) -> f64 {
        match *self {
            Ceiling::Reduction { size, rate, from } => {
                (1.0 - Floor { size, rate }.seconds() / from.as_secs_f64()) * 100.0
            }
            Ceiling::Value { most } => most,
        }
    }
}

/// Jain's index of fairness; `None` if nothing was delivered.
fn jain(rates: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) =
        rates.fold((0.0, 0.0, 0.0), |(n, sum, squares), rate| (n + 1.0, sum + rate, squares + rate * rate));
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// A sample: its time, and a value of the interval ending there.
type Sample = (f64, f64);

impl Measure {
    /// Returns the value for one run, if it has one.
    pub fn of(&self, results: &Results, point: u32, run: u32) -> Option<f64> {
        let flows = || results.tables.flows.iter().filter(move |row| (row.point, row.run) == (point, run));
        let sum = |flow: &str, value: fn(&FlowRow) -> f64| {
            let values: Vec<f64> = flows().filter(|row| is_flow(flow, row.flow)).map(|row| value(&row)).collect();
            (!values.is_empty()).then(|| values.iter().sum())
        };
        match self {
            Measure::Throughput { flow } => sum(flow, |row| row.throughput_mbps),
            Measure::Goodput { flow } => sum(flow, |row| row.goodput_mbps),
            Measure::Share { flow, until: Some(received) } => share_until(results, point, run, flow, received),
            Measure::Share { flow, until: None } => {
                let (of, all) = (sum(flow, |row| row.goodput_mbps)?, sum("*", |row| row.goodput_mbps)?);
                (all > 0.0).then(|| of / all * 100.0)
            }
            Measure::WindowRatio { flow, over } => {
                let of = |flow: &String| flows().find(|row| row.flow == flow).and_then(|row| row.mean_cwnd_bytes);
                of(flow).zip(of(over)).map(|(one, other)| one / other)
            }
            Measure::Completion { flow } => flows().find(|row| row.flow == flow).and_then(|row| row.completion_s),
            Measure::LastCompletion { flow } => {
                let all: Option<Vec<f64>> =
                    flows().filter(|row| is_flow(flow, row.flow)).map(|row| row.completion_s).collect();
                all?.into_iter().reduce(f64::max)
            }
            Measure::Rtt { flow, at } => rtt::of(results, point, run, flow, *at),
            Measure::RttIncrease { flow, at, over } => {
                let idle = rtt::idle(results, point, run)?;
                rtt::increase(results, point, run, flow, *at, idle)
                    .map(|ms| over.map_or(ms, |base| base.percent(ms, idle)))
            }
            Measure::Jain => jain(flows().map(|row| row.goodput_mbps)),
            Measure::MeanGoodput { flow, from, to } => {
                mean(&goodput(results, point, run, flow), from.as_secs_f64(), to.as_secs_f64())
            }
            Measure::FillTime { link, after, rate, share, to } => {
                let level = share * rate.as_mbps();
                fill_time(&served(results, point, run, link), after.as_secs_f64(), level)
                    .map(|time| time + to.seconds())
            }
            Measure::RiseTime { flow, after, end, share, to } => {
                let samples = goodput(results, point, run, flow);
                let last = samples.last()?.0;
                let steady = mean(&samples, last - end.as_secs_f64(), last)?;
                fill_time(&samples, after.as_secs_f64(), share * steady).map(|time| time + to.seconds())
            }
            // Defined only for a pair of points, and for all runs together.
            Measure::UntilFilled { .. } | Measure::Tests(_) => None,
            Measure::WholePathGoverns { flow, from, to } => {
                let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
                let within = samples(results, point, run, flow).filter(|row| row.t_s > from && row.t_s <= to);
                let governs: Vec<bool> = within
                    .map(|row| row.cwnd_pep_bytes.zip(row.cwnd_e2e_bytes).is_some_and(|(pep, e2e)| e2e < pep))
                    .collect();
                let share = governs.iter().filter(|&&governs| governs).count() as f64 / governs.len() as f64;
                (!governs.is_empty()).then_some(share)
            }
            Measure::SlowStart { flow } => {
                let start = flows().find(|row| row.flow == flow)?.start_s;
                let ended = samples(results, point, run, flow).find(|row| row.ssthresh_bytes.is_some())?;
                Some((ended.t_s - start) * 1e3)
            }
            Measure::InSlowStart { flow } => {
                let mut samples = samples(results, point, run, flow).peekable();
                samples.peek()?;
                Some(if samples.any(|row| row.ssthresh_bytes.is_some()) { 0.0 } else { 100.0 })
            }
            Measure::Delay { flow, at } => delay(results, point, run, flow, *at),
            Measure::DelaySpread { flow } => {
                let of = |at| delay(results, point, run, flow, at);
                of(Percentile::P95).zip(of(Percentile::P5)).map(|(high, low)| high - low)
            }
            Measure::DelayRatio { flow, over } => {
                let of = |flow| delay(results, point, run, flow, Percentile::P50);
                of(flow).zip(of(over)).map(|(one, other)| one / other)
            }
            Measure::Lost { flow } => sum(flow, |row| row.lost_packets.map_or(f64::NAN, |lost| lost as f64)),
            Measure::Starved { direction } => {
                let rows = results.tables.ues.iter();
                let rows = rows.filter(|row| (row.point, row.run) == (point, run) && row.direction == direction);
                let (starved, all) = rows.fold((0, 0), |(a, b), row| (a + row.starved_blocks, b + row.blocks));
                (all > 0).then(|| starved as f64 / all as f64 * 100.0)
            }
            Measure::ReportLoad { over } => {
                let rows = results.tables.ues.iter();
                let rows = rows.filter(|row| (row.point, row.run) == (point, run) && row.reported_s > 0.0);
                let (sum, ues) = rows.fold((0.0, 0.0), |(sum, ues), row| {
                    (sum + row.report_bytes as f64 * 8e-6 / row.reported_s, ues + 1.0)
                });
                (ues > 0.0).then(|| sum / ues * over.map_or(1.0, |rate| 100.0 / rate.as_mbps()))
            }
            Measure::Change { of, flow, before, after } => {
                let rows = samples(results, point, run, flow);
                let values: Vec<Sample> = rows.filter_map(|row| Some((row.t_s, of.of(&row)?))).collect();
                let part = |(from, to): &(Span, Span)| mean(&values, from.as_secs_f64(), to.as_secs_f64());
                part(after).zip(part(before)).filter(|(_, before)| *before > 0.0).map(|(after, before)| after / before)
            }
        }
    }

    /// Sets the edge at which fill-up times end; returns other measures unchanged.
    pub(crate) fn counted_to(&self, edge: Edge) -> Measure {
        let mut counted = self.clone();
        if let Measure::FillTime { to, .. } | Measure::RiseTime { to, .. } = &mut counted {
            *to = edge;
        }
        counted
    }

    /// Returns what is wrong with the combination of its keys.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if let Measure::Tests(tests) = self { tests.fault() } else { None }
    }

    /// Returns whether it is computed from what a scenario records at its sampling moments.
    pub(crate) fn needs_samples(&self) -> bool {
        match self {
            Measure::Share { until, .. } => until.is_some(),
            Measure::MeanGoodput { .. }
            | Measure::Rtt { .. }
            | Measure::RttIncrease { .. }
            | Measure::FillTime { .. }
            | Measure::RiseTime { .. }
            | Measure::UntilFilled { .. }
            | Measure::WholePathGoverns { .. }
            | Measure::SlowStart { .. }
            | Measure::InSlowStart { .. }
            | Measure::Change { .. } => true,
            Measure::Throughput { .. }
            | Measure::Goodput { .. }
            | Measure::WindowRatio { .. }
            | Measure::Completion { .. }
            | Measure::LastCompletion { .. }
            | Measure::Jain
            | Measure::Delay { .. }
            | Measure::DelaySpread { .. }
            | Measure::DelayRatio { .. }
            | Measure::Lost { .. }
            | Measure::Starved { .. }
            | Measure::ReportLoad { .. } => false,
            Measure::Tests(tests) => tests.needs_samples(),
        }
    }

    /// Returns the names and patterns of the flows it covers.
    pub(crate) fn flows(&self) -> Vec<&str> {
        match self {
            Measure::Throughput { flow }
            | Measure::Goodput { flow }
            | Measure::Share { flow, .. }
            | Measure::MeanGoodput { flow, .. }
            | Measure::Completion { flow }
            | Measure::LastCompletion { flow }
            | Measure::Rtt { flow, .. }
            | Measure::RttIncrease { flow, .. }
            | Measure::RiseTime { flow, .. }
            | Measure::WholePathGoverns { flow, .. }
            | Measure::SlowStart { flow }
            | Measure::InSlowStart { flow }
            | Measure::Delay { flow, .. }
            | Measure::DelaySpread { flow }
            | Measure::Change { flow, .. }
            | Measure::Lost { flow } => vec![flow],
            Measure::WindowRatio { flow, over } | Measure::DelayRatio { flow, over } => vec![flow, over],
            Measure::Tests(tests) => tests.flows(),
            Measure::Jain
            | Measure::FillTime { .. }
            | Measure::UntilFilled { .. }
            | Measure::Starved { .. }
            | Measure::ReportLoad { .. } => Vec::new(),
        }
    }

    /// Returns the values of a run at two points, if both have one.
    pub fn of_both(&self, results: &Results, point: u32, other: u32, run: u32) -> Option<(f64, f64)> {
        if let Measure::RttIncrease { flow, at, over } = self {
            let (here, there) = (rtt::idle(results, point, run)?, rtt::idle(results, other, run)?);
            let idle = here.min(there);
            let of = |point| {
                let ms = rtt::increase(results, point, run, flow, *at, idle)?;
                Some(over.map_or(ms, |base| base.percent(ms, idle)))
            };
            return of(point).zip(of(other));
        }
        let Measure::UntilFilled { link, after, rate, share } = self else {
            return self.of(results, point, run).zip(self.of(results, other, run));
        };
        let rate: Rate = results.meta.points[other as usize].values.get(rate)?.as_str()?.parse().ok()?;
        let after = after.as_secs_f64();
        let theirs = served(results, other, run, link);
        let until = after + fill_time(&theirs, after, share * rate.as_mbps())?;
        mean(&served(results, point, run, link), after, until).zip(mean(&theirs, after, until))
    }
}

impl Edge {
    /// Returns the offset in seconds from the beginning of the second.
    fn seconds(self) -> f64 {
        match self {
            Edge::Beginning => 0.0,
            Edge::End => WINDOW_S,
        }
    }
}

/// The mean of flows' percentiles of the one-way delay, ms. It is missing if any of the flows had no arrivals.
fn delay(results: &Results, point: u32, run: u32, flow: &str, at: Percentile) -> Option<f64> {
    mean_of_flows(results, point, run, flow, |row| match at {
        Percentile::P5 => row.owd_p5_ms,
        Percentile::P25 => row.owd_p25_ms,
        Percentile::P50 => row.owd_p50_ms,
        Percentile::P75 => row.owd_p75_ms,
        Percentile::P95 => row.owd_p95_ms,
    })
}

/// The rate served by a link, Mbit/s.
fn served(results: &Results, point: u32, run: u32, link: &str) -> Vec<Sample> {
    let rows = results.tables.queues.iter();
    let rows = rows.filter(|row| (row.point, row.run) == (point, run) && row.link == link);
    rows.map(|row| (row.t_s, row.served_mbps)).collect()
}

/// The goodput of a flow, Mbit/s.
fn goodput(results: &Results, point: u32, run: u32, flow: &str) -> Vec<Sample> {
    samples(results, point, run, flow).map(|row| (row.t_s, row.goodput_mbps)).collect()
}

/// The samples of a flow.
fn samples<'a>(results: &'a Results, point: u32, run: u32, flow: &'a str) -> impl Iterator<Item = SampleRow<'a>> {
    results.tables.samples.iter().filter(move |row| (row.point, row.run) == (point, run) && row.flow == flow)
}

/// The share of some flows in the goodput of all until one has received so much, in per cent.
fn share_until(results: &Results, point: u32, run: u32, flow: &str, until: &Received) -> Option<f64> {
    let mut rest = until.size.get() as f64 * 8e-6;
    let mut before = 0.0;
    let end = goodput(results, point, run, &until.flow).into_iter().find_map(|(t, mbps)| {
        rest -= mbps * (t - before);
        before = t;
        (rest <= 0.0).then_some(t)
    })?;
    let rows = results.tables.samples.iter();
    let rows = rows.filter(|row| (row.point, row.run) == (point, run) && row.t_s <= end + 1e-9);
    let (of, all) = rows.fold((0.0, 0.0), |(of, all), row| {
        let mbps = row.goodput_mbps;
        (of + if is_flow(flow, row.flow) { mbps } else { 0.0 }, all + mbps)
    });
    (all > 0.0).then(|| of / all * 100.0)
}

/// The mean of the samples after `from` and up to `to`.
fn mean(samples: &[Sample], from: f64, to: f64) -> Option<f64> {
    let within: Vec<f64> = samples.iter().filter(|&&(t, _)| t > from && t <= to + 1e-9).map(|s| s.1).collect();
    (!within.is_empty()).then(|| within.iter().sum::<f64>() / within.len() as f64)
}

/// The time from `after` to the beginning of the first second whose mean is at least `level`.
fn fill_time(samples: &[Sample], after: f64, level: f64) -> Option<f64> {
    let samples = &samples[samples.partition_point(|&(t, _)| t <= after)..];
    let interval = samples.get(1)?.0 - samples.first()?.0;
    let window = ((WINDOW_S / interval).round() as usize).max(1);
    let full = |w: &[Sample]| w.iter().map(|s| s.1).sum::<f64>() / w.len() as f64 >= level;
    // A sample at `t` covers the interval ending there.
    samples.windows(window).find(|w| full(w)).map(|w| w[0].0 - interval - after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::tables::{QueueRow, UeRow};

    /// A link that carries 10 Mbit/s up to a given time and 100 Mbit/s from then on, sampled every 10 ms for 20 s.
    fn steps(results: &mut Results, point: u32, at: f64) {
        for i in 1..=2_000u32 {
            let t_s = f64::from(i) / 100.0;
            let served_mbps = if t_s <= at + 1e-9 { 10.0 } else { 100.0 };
            results.tables.queues.push(&QueueRow {
                point,
                run: 0,
                link: "radio",
                t_s,
                packets: 0,
                bytes: 0,
                dropped: 0,
                marked: 0,
                served_mbps,
                capacity_mbps: None,
                sojourn_ms: None,
                sojourn_max_ms: None,
            });
        }
    }

    #[test]
    fn a_link_is_full_from_the_first_second_whose_mean_reaches_the_fraction() {
        let mut results = Results::default();
        // The second from 11.96 s on is the first with a mean of 95.
        steps(&mut results, 0, 12.0);
        let measure = |rate, share| Measure::FillTime {
            link: "radio".into(),
            after: Span::from_secs(10),
            rate,
            share,
            to: Edge::Beginning,
        };
        let time = measure(Rate::from_mbps(100), 0.95).of(&results, 0, 0).unwrap();
        assert!((time - 1.95).abs() < 0.011, "{time}");
        let end = measure(Rate::from_mbps(100), 0.95).counted_to(Edge::End).of(&results, 0, 0).unwrap();
        assert!((end - time - 1.0).abs() < 1e-9, "{end}");
        assert_eq!(measure(Rate::from_mbps(200), 0.95).of(&results, 0, 0), None);
        assert_eq!(measure(Rate::from_mbps(100), 0.95).of(&results, 0, 1), None);
    }

    #[test]
    fn a_gain_is_measured_until_the_other_run_has_filled_the_link() {
        let mut results = Results::default();
        // Point 0 is full 2 s after the step and point 1 at once: until 1.95 s, 10 against 100 Mbit/s.
        steps(&mut results, 0, 12.0);
        steps(&mut results, 1, 10.0);
        let to = record::Point { values: [("to".to_owned(), "100 Mbit/s".into())].into() };
        results.meta.points = vec![to.clone(), to];
        let (link, after) = ("radio".into(), Span::from_secs(10));
        let measure = Measure::UntilFilled { link, after, rate: "to".into(), share: 0.95 };
        let (ours, theirs) = measure.of_both(&results, 1, 0, 0).unwrap();
        assert!((ours - 100.0).abs() < 1e-9 && (theirs - 10.0).abs() < 1e-9, "{ours} {theirs}");
        assert_eq!(measure.of(&results, 0, 0), None);
    }

    /// Samples of a second: CUBIC has 8 Mbit in 4 s at 2 Mbit/s, and BBR 1 Mbit/s, and after 4 s the other way round.
    #[test]
    fn a_share_may_end_when_a_flow_has_received_so_much() {
        let mut results = Results::default();
        for second in 1..=8 {
            let early = second <= 4;
            for (flow, goodput_mbps) in
                [("cubic", if early { 2.0 } else { 0.0 }), ("bbr", if early { 1.0 } else { 3.0 })]
            {
                results.tables.samples.push(&SampleRow {
                    flow,
                    t_s: f64::from(second),
                    goodput_mbps,
                    ..SampleRow::default()
                });
            }
        }
        let share = |size| {
            let until = Some(Received { flow: "cubic".into(), size: Bytes::new(size) });
            Measure::Share { flow: "bbr".into(), until }.of(&results, 0, 0)
        };
        let near = |value: Option<f64>| value.is_some_and(|value| (value - 100.0 / 3.0).abs() < 1e-9);
        assert!(near(share(1_000_000)) && near(share(500_000)), "{:?}", share(1_000_000));
        assert_eq!(share(1_000_001), None);
    }

    #[test]
    fn a_star_matches_any_text() {
        assert!(is_flow("bulk-down", "bulk-down") && !is_flow("bulk-down", "bulk-down-ue"));
        assert!(
            is_flow("*-down-*", "bulk-down-ue-7")
                && is_flow("*-down-*", "small-down-ue")
                && !is_flow("*-down-*", "small-up-ue")
        );
        assert!(is_flow("bulk*", "bulk") && is_flow("*", "") && !is_flow("*x", "xy"));
    }

    #[test]
    fn ten_megabytes_take_a_second_at_eighty_megabits() {
        let floor = Floor { size: Bytes::new(10_000_000), rate: Rate::from_mbps(80) };
        assert!((floor.seconds() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_change_compares_two_parts_of_a_run_and_a_load_is_of_the_time_that_reports_cover() {
        let mut results = Results::default();
        for (t_s, owd_ms) in [(1.0, Some(30.0)), (2.0, None), (3.0, Some(50.0)), (4.0, Some(10.0)), (5.0, Some(20.0))] {
            results.tables.samples.push(&SampleRow { flow: "tcp", t_s, owd_ms, ..SampleRow::default() });
        }
        let part = |from: u64, to: u64| (Span::from_secs(from), Span::from_secs(to));
        let change =
            |before, after| Measure::Change { of: Series::Delay, flow: "tcp".into(), before, after }.of(&results, 0, 0);
        // (10 + 20) / 2 over (30 + 50) / 2.
        assert_eq!(change(part(0, 3), part(3, 5)), Some(0.375));
        assert_eq!(change(part(0, 3), part(5, 9)), None);

        // 236 and 118 bytes each ms.
        for (ue, reported_s, report_bytes) in [("a", 2.0, 472_000), ("b", 1.0, 118_000), ("c", 0.0, 0)] {
            results.tables.ues.push(&UeRow { ue, reported_s, report_bytes, ..UeRow::default() });
        }
        for (over, expected) in [(None, 1.416), (Some(Rate::from_mbps(177)), 0.8)] {
            let load = Measure::ReportLoad { over }.of(&results, 0, 0).expect("there are reports");
            assert!((load - expected).abs() < 1e-9, "{load} instead of {expected}");
        }
    }
}
