//! `summary.json`: what came out, per point of the sweep, as means over the runs with 95 % confidence intervals.
//!
//! The keys are stable; a new one may be added. A value that no run has (the completion time of an endless flow) is
//! null. Within a run:
//! - a flow's goodput and throughput are those of its copies' bytes over the time from the first copy's measured start to
//!   the last one's measured end;
//! - a quantile of the round-trip times or of the one-way delays of several copies is that of all their samples together
//!   (tables `rtts` and `owds`);
//! - loss is the share of the packets sent that were lost on the way, of flows without retransmissions: not of TCP;
//! - runs of a point that are identical in every row of `flows` count as one: nothing in them is random;
//! - completion times are those of the finished transfers of all copies (table `transfers`), the warm-up's too;
//! - shares of time are weighted by the copies' measured times; null where no sender told them: of UDP, and of
//!   connections of real hosts of which the packets alone were seen;
//! - a UE's delays are those of packets that were delivered, its error rate that of blocks that were sent: null without
//!   any;
//! - Jain's index (Jain, Chiu, Hawe 1984) is over the goodputs of all TCP flows' copies, if there are at least two;
//! - connections of real hosts come and go: the goodput of an emulation is that of all bytes over the time from the first
//!   measured start to the last measured end, and Jain's index leaves them out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use units::stats::{Mean, rank_of_weighted};

use crate::tables::{FlowRow, LinkRow, UeRow};
use crate::{Lateness, Meta, Partial, Point, Results, Tables};

/// The version of the file's layout.
const FORMAT: u32 = 1;

/// A figure over the runs of a point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Stat {
    /// Runs that have a value.
    pub n: u32,
    /// Mean over these runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); missing with fewer than two runs.
    pub ci95: Option<f64>,
    /// Smallest value of a run.
    pub min: f64,
    /// Largest value of a run.
    pub max: f64,
}

/// Shares of time by what held the senders back (0 to 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Limited {
    /// The application had nothing to send.
    pub app: Stat,
    /// The congestion window.
    pub cwnd: Stat,
    /// The receive window.
    pub rwnd: Stat,
    /// Pacing.
    pub pacing: Stat,
    /// A full send buffer; missing in results of earlier versions, in which it is part of the rest.
    #[serde(default)]
    pub sndbuf: Option<Stat>,
    /// The rest.
    pub other: Stat,
}

/// A flow at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FlowSummary {
    /// The flow's name.
    pub flow: String,
    /// Its transport protocol.
    pub transport: String,
    /// Its congestion control; missing of UDP, and if nothing tells it.
    pub cc: Option<String>,
    /// The host that sends the data.
    pub from: String,
    /// The host that receives the data.
    pub to: String,
    /// Copies.
    pub copies: Stat,
    /// Payload that reached the application, Mbit/s.
    pub goodput_mbps: Option<Stat>,
    /// IP bytes that reached the host, Mbit/s.
    pub throughput_mbps: Option<Stat>,
    /// ms.
    pub rtt_p50_ms: Option<Stat>,
    /// ms.
    pub rtt_p95_ms: Option<Stat>,
    /// Median one-way delay of its data packets, ms.
    #[serde(default)]
    pub owd_p50_ms: Option<Stat>,
    /// 95th percentile of the one-way delay of its data packets, ms.
    #[serde(default)]
    pub owd_p95_ms: Option<Stat>,
    /// Packets lost on the way over packets sent (0 to 1); missing for TCP.
    #[serde(default)]
    pub loss: Option<Stat>,
    /// Transfers that began.
    pub transfers: Option<Stat>,
    /// Of these, the share that finished within the run.
    pub transfers_finished: Option<Stat>,
    /// Mean completion time of the finished ones, s.
    pub completion_s: Option<Stat>,
    /// Their median completion time, s.
    pub completion_p50_s: Option<Stat>,
    /// 95th percentile of their completion times, s.
    pub completion_p95_s: Option<Stat>,
    /// Retransmitted segments over sent ones, of TCP.
    pub retransmission_rate: Option<Stat>,
    /// What held the flow back, if its sender told.
    pub limited: Option<Limited>,
}

/// A link at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinkSummary {
    /// The link's name.
    pub link: String,
    /// Carried over possible bytes; missing for a link without a rate.
    pub utilisation: Option<Stat>,
    /// Dropped packets for any reason over arrived ones.
    pub drop_rate: Option<Stat>,
    /// Marked packets over arrived ones.
    pub mark_rate: Option<Stat>,
    /// ms.
    pub sojourn_p50_ms: Option<Stat>,
    /// ms.
    pub sojourn_p95_ms: Option<Stat>,
    /// ms.
    pub sojourn_p99_ms: Option<Stat>,
}

/// A direction of a UE at a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UeDirection {
    /// Transport blocks, each counted once, Mbit/s.
    pub scheduled_mbps: Option<Stat>,
    /// Blocks whose first transmission failed over all.
    pub block_error_rate: Option<Stat>,
    /// Its resource blocks over those of the carrier.
    pub utilisation: Option<Stat>,
    /// Mean one-way delay outside the radio, ms.
    pub core_ms: Option<Stat>,
    /// From the arrival at the cell or the host up to the first byte on the air, ms.
    pub queue_ms: Option<Stat>,
    /// From then to the last byte's first transmission, ms.
    pub air_ms: Option<Stat>,
    /// From then until it is decoded, ms.
    pub harq_ms: Option<Stat>,
    /// From then to delivery, ms.
    pub rlc_ms: Option<Stat>,
}

/// A UE at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct UeSummary {
    /// The UE's name.
    pub ue: String,
    /// To the UE.
    pub downlink: UeDirection,
    /// From the UE.
    pub uplink: UeDirection,
    /// Handovers that reached their target.
    pub handovers: Option<Stat>,
    /// Handovers that did not.
    pub handover_failures: Option<Stat>,
    /// Radio links lost.
    pub link_failures: Option<Stat>,
}

/// A point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PointSummary {
    /// Its number.
    pub point: u32,
    /// What was varied, and its values here.
    #[cfg_attr(test, ts(type = "Record<string, unknown>"))]
    pub values: BTreeMap<String, Value>,
    /// Whether its runs are all identical, so that the figures are those of a single run.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    #[cfg_attr(test, ts(optional, as = "Option<bool>"))]
    pub identical_runs: bool,
    /// Sum of the flows' goodputs, Mbit/s; of an emulation, all their bytes over the whole time.
    pub goodput_mbps: Option<Stat>,
    /// Of all flows' samples, ms.
    pub rtt_p50_ms: Option<Stat>,
    /// Of all flows' samples, ms.
    pub rtt_p95_ms: Option<Stat>,
    /// Of all flows' segments.
    pub retransmission_rate: Option<Stat>,
    /// Jain's fairness index over the goodputs of the TCP flows' copies: 1 is equal, 1/n is one that has all; missing with
    /// fewer than two.
    pub jain: Option<Stat>,
    /// The flows, in the order of their first appearance.
    pub flows: Vec<FlowSummary>,
    /// The links, in the order of their first appearance.
    pub links: Vec<LinkSummary>,
    /// The UEs, in the order of their first appearance.
    #[serde(default)]
    pub ues: Vec<UeSummary>,
}

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this layout: 1.
    pub format: u32,
    /// The scenario's title.
    pub title: String,
    /// Repetitions of each point.
    pub runs: u32,
    /// Of partial results: how much of the scenario they cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<Partial>,
    /// The points in order.
    pub points: Vec<PointSummary>,
    /// Of an emulation: how well it kept to the time, and so whether it is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
}

impl Stat {
    /// The figure over `values`, one a run; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Stat> {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = Mean::of(&values)?;
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        Some(Stat { n: values.len() as u32, mean: mean.mean, ci95: mean.half_width(), min, max })
    }
}

impl Summary {
    /// The summary of `results`.
    pub fn of(results: &Results) -> Summary {
        let runs = gather(&results.tables);
        let points = results.meta.points.iter().enumerate();
        let (emulated, strangers) = kinds(results);
        let summarise =
            |(point, at): (usize, &Point)| summarise(point as u32, at.values.clone(), &runs, emulated, strangers);
        Summary { lateness: results.timing.lateness, ..Summary::with(&results.meta, points.map(summarise).collect()) }
    }

    /// The summary of simulations whose points have been summarised one by one.
    pub(crate) fn with(meta: &Meta, points: Vec<PointSummary>) -> Summary {
        Summary {
            format: FORMAT,
            title: meta.title.clone(),
            runs: meta.runs,
            partial: meta.partial.as_ref().map(Partial::counts),
            points,
            lateness: None,
        }
    }
}

impl PointSummary {
    /// The summary of the point `point`, of a simulation or an emulation. `tables` has the point's rows at least.
    pub(crate) fn of(point: u32, at: &Point, tables: &Tables, emulated: bool) -> PointSummary {
        summarise(point, at.values.clone(), &gather(tables), emulated, emulated)
    }
}

/// The summary of each run alone, by point and run.
pub(crate) fn by_run(results: &Results) -> BTreeMap<(u32, u32), PointSummary> {
    let (emulated, strangers) = kinds(results);
    let runs = gather(&results.tables);
    let alone = |(at, run): ((u32, u32), Run<'_>)| {
        let values = results.meta.points[at.0 as usize].values.clone();
        (at, summarise(at.0, values, &BTreeMap::from([(at, run)]), emulated, strangers))
    };
    runs.into_iter().map(alone).collect()
}

/// A flow in a run.
pub(crate) struct FlowInRun<'a> {
    pub(crate) point: u32,
    pub(crate) run: u32,
    /// Its copies, one at least.
    pub(crate) copies: Vec<FlowRow<'a>>,
    /// The summary of this run alone.
    pub(crate) summary: FlowSummary,
    /// The round-trip times of all copies in ascending order, with their counts.
    pub(crate) rtts: Vec<(f64, u64)>,
    /// The same of the one-way delays.
    pub(crate) owds: Vec<(f64, u64)>,
}

/// The flows of each run, by point, run and first appearance.
pub(crate) fn flows_by_run(results: &Results) -> Vec<FlowInRun<'_>> {
    let (_, strangers) = kinds(results);
    let mut flows = Vec::new();
    for ((point, run), rows) in gather(&results.tables) {
        for name in in_order(rows.flows.iter().map(|flow| flow.flow)) {
            let copies = rows.by_flow[name].clone();
            let summary = flow_summary(&copies[0], &[rows.figures(&copies, Some(name), strangers)]);
            let (rtts, owds) = (ascending(of_flow(&rows.rtts, Some(name))), ascending(of_flow(&rows.owds, Some(name))));
            flows.push(FlowInRun { point, run, copies, summary, rtts, owds });
        }
    }
    flows
}

/// Whether results are of real hosts, and whether their connections are those of strangers.
fn kinds(results: &Results) -> (bool, bool) {
    let emulated = results.timing.lateness.is_some();
    (emulated, emulated || results.meta.scenario.get("analysed").is_some())
}

/// The rows of a (point, run).
#[derive(Default)]
struct Run<'a> {
    flows: Vec<FlowRow<'a>>,
    by_flow: BTreeMap<&'a str, Vec<FlowRow<'a>>>,
    links: Vec<LinkRow<'a>>,
    by_link: BTreeMap<&'a str, LinkRow<'a>>,
    ues: Vec<UeRow<'a>>,
    rtts: BTreeMap<&'a str, Vec<(f64, u64)>>,
    owds: BTreeMap<&'a str, Vec<(f64, u64)>>,
    /// The completion times of the transfers that began; missing for those that did not finish.
    transfers: BTreeMap<&'a str, Vec<Option<f64>>>,
}

/// What a run, or a flow of it, comes to.
struct Figures {
    copies: f64,
    goodput_mbps: Option<f64>,
    throughput_mbps: Option<f64>,
    rtt_p50_ms: Option<f64>,
    rtt_p95_ms: Option<f64>,
    owd_p50_ms: Option<f64>,
    owd_p95_ms: Option<f64>,
    loss: Option<f64>,
    transfers: Option<f64>,
    transfers_finished: Option<f64>,
    completion_s: Option<f64>,
    completion_p50_s: Option<f64>,
    completion_p95_s: Option<f64>,
    retransmission_rate: Option<f64>,
    limited: Option<[Option<f64>; 6]>,
}

fn gather(tables: &Tables) -> BTreeMap<(u32, u32), Run<'_>> {
    let mut runs: BTreeMap<(u32, u32), Run<'_>> = BTreeMap::new();
    for flow in tables.flows.iter() {
        let run = runs.entry((flow.point, flow.run)).or_default();
        run.flows.push(flow);
        run.by_flow.entry(flow.flow).or_default().push(flow);
    }
    for link in tables.links.iter() {
        let run = runs.entry((link.point, link.run)).or_default();
        run.links.push(link);
        run.by_link.insert(link.link, link);
    }
    for ue in tables.ues.iter() {
        runs.entry((ue.point, ue.run)).or_default().ues.push(ue);
    }
    for rtt in tables.rtts.iter() {
        let run = runs.entry((rtt.point, rtt.run)).or_default();
        run.rtts.entry(rtt.flow).or_default().push((rtt.rtt_ms, rtt.count));
    }
    for owd in tables.owds.iter() {
        let run = runs.entry((owd.point, owd.run)).or_default();
        run.owds.entry(owd.flow).or_default().push((owd.owd_ms, owd.count));
    }
    for transfer in tables.transfers.iter() {
        let run = runs.entry((transfer.point, transfer.run)).or_default();
        run.transfers.entry(transfer.flow).or_default().push(transfer.completion_s);
    }
    runs
}

fn summarise(
    point: u32,
    values: BTreeMap<String, Value>,
    runs: &BTreeMap<(u32, u32), Run<'_>>,
    emulated: bool,
    strangers: bool,
) -> PointSummary {
    let mut runs: Vec<&Run<'_>> = runs.range((point, 0)..=(point, u32::MAX)).map(|(_, run)| run).collect();
    // Real hosts are never the same twice; of them, what happened to be equal says nothing.
    let identical_runs = !emulated && runs.len() > 1 && runs[1..].iter().all(|run| same(runs[0], run));
    if identical_runs {
        runs.truncate(1);
    }
    let flows = in_order(runs.iter().flat_map(|run| run.flows.iter().map(|flow| flow.flow)));
    let links = in_order(runs.iter().flat_map(|run| run.links.iter().map(|link| link.link)));
    let ues = in_order(runs.iter().flat_map(|run| run.ues.iter().map(|ue| ue.ue)));

    let mut goodputs: Vec<Option<f64>> = vec![None; runs.len()];
    let flows = flows.into_iter().map(|name| {
        let mut figures = Vec::new();
        let mut first = None;
        for (run, goodput) in runs.iter().zip(&mut goodputs) {
            let Some(rows) = run.by_flow.get(name) else { continue };
            first.get_or_insert(&rows[0]);
            let own = run.figures(rows, Some(name), strangers);
            *goodput = own.goodput_mbps.map(|own| own + goodput.unwrap_or(0.0)).or(*goodput);
            figures.push(own);
        }
        flow_summary(first.expect("the name is from a row"), &figures)
    });
    let flows = flows.collect();
    let all: Vec<Figures> = runs.iter().map(|run| run.figures(&run.flows, None, strangers)).collect();
    let over = |figure: fn(&Figures) -> Option<f64>| Stat::of(all.iter().filter_map(figure));
    PointSummary {
        point,
        values,
        identical_runs,
        goodput_mbps: if emulated { over(|run| run.goodput_mbps) } else { Stat::of(goodputs.into_iter().flatten()) },
        rtt_p50_ms: over(|run| run.rtt_p50_ms),
        rtt_p95_ms: over(|run| run.rtt_p95_ms),
        retransmission_rate: over(|run| run.retransmission_rate),
        jain: Stat::of(runs.iter().filter_map(|run| jain(&run.flows, strangers))),
        flows,
        links: links.into_iter().map(|name| link_summary(name, &runs)).collect(),
        ues: ues.into_iter().map(|name| ue_summary(name, &runs)).collect(),
    }
}

fn flow_summary(row: &FlowRow<'_>, runs: &[Figures]) -> FlowSummary {
    let over = |figure: fn(&Figures) -> Option<f64>| Stat::of(runs.iter().filter_map(figure));
    let share = |i: usize| Stat::of(runs.iter().filter_map(|run| run.limited?[i]));
    let limited = || {
        let (app, cwnd, rwnd, pacing, other) = (share(0)?, share(1)?, share(2)?, share(3)?, share(5)?);
        Some(Limited { app, cwnd, rwnd, pacing, sndbuf: share(4), other })
    };
    FlowSummary {
        flow: row.flow.to_owned(),
        transport: row.transport.to_owned(),
        cc: row.cc.map(str::to_owned),
        from: row.from.to_owned(),
        to: row.to.to_owned(),
        copies: Stat::of(runs.iter().map(|run| run.copies)).expect("the flow is in a run"),
        goodput_mbps: over(|run| run.goodput_mbps),
        throughput_mbps: over(|run| run.throughput_mbps),
        rtt_p50_ms: over(|run| run.rtt_p50_ms),
        rtt_p95_ms: over(|run| run.rtt_p95_ms),
        owd_p50_ms: over(|run| run.owd_p50_ms),
        owd_p95_ms: over(|run| run.owd_p95_ms),
        loss: over(|run| run.loss),
        transfers: over(|run| run.transfers),
        transfers_finished: over(|run| run.transfers_finished),
        completion_s: over(|run| run.completion_s),
        completion_p50_s: over(|run| run.completion_p50_s),
        completion_p95_s: over(|run| run.completion_p95_s),
        retransmission_rate: over(|run| run.retransmission_rate).filter(|_| row.transport == "tcp"),
        limited: limited(),
    }
}

fn link_summary(name: &str, runs: &[&Run<'_>]) -> LinkSummary {
    let over = |figure: fn(&LinkRow<'_>) -> Option<f64>| {
        Stat::of(runs.iter().filter_map(|run| figure(run.by_link.get(name)?)))
    };
    LinkSummary {
        link: name.to_owned(),
        utilisation: over(|link| (link.utilisation > 0.0 || link.bytes_out == 0).then_some(link.utilisation)),
        drop_rate: over(|link| {
            ratio((link.dropped_overflow + link.dropped_control + link.dropped_loss) as f64, link.packets_in as f64)
        }),
        mark_rate: over(|link| ratio(link.marked as f64, link.packets_in as f64)),
        sojourn_p50_ms: over(|link| link.sojourn_p50_ms),
        sojourn_p95_ms: over(|link| link.sojourn_p95_ms),
        sojourn_p99_ms: over(|link| link.sojourn_p99_ms),
    }
}

fn ue_summary(name: &str, runs: &[&Run<'_>]) -> UeSummary {
    let rows: Vec<&UeRow<'_>> = runs.iter().flat_map(|run| &run.ues).filter(|row| row.ue == name).collect();
    let over = |direction: &str, figure: fn(&UeRow<'_>) -> Option<f64>| {
        Stat::of(rows.iter().filter(|row| row.direction == direction).filter_map(|row| figure(row)))
    };
    let of = |direction: &str| UeDirection {
        scheduled_mbps: over(direction, |row| ratio(row.mbits, row.measured_s)),
        block_error_rate: over(direction, |row| (row.blocks > 0).then_some(row.block_error_rate)),
        utilisation: over(direction, |row| row.utilisation),
        core_ms: over(direction, |row| (row.packets > 0).then_some(row.core_ms)),
        queue_ms: over(direction, |row| (row.packets > 0).then_some(row.queue_ms)),
        air_ms: over(direction, |row| (row.packets > 0).then_some(row.air_ms)),
        harq_ms: over(direction, |row| (row.packets > 0).then_some(row.harq_ms)),
        rlc_ms: over(direction, |row| (row.packets > 0).then_some(row.rlc_ms)),
    };
    UeSummary {
        ue: name.to_owned(),
        downlink: of("downlink"),
        uplink: of("uplink"),
        handovers: over("uplink", |row| Some(row.handovers as f64)),
        handover_failures: over("uplink", |row| Some(row.handover_failures as f64)),
        link_failures: over("uplink", |row| Some(row.link_failures as f64)),
    }
}

/// Whether two runs of a point are the same in all that flows tell of them.
fn same(one: &Run<'_>, other: &Run<'_>) -> bool {
    let same = |(one, other): (&FlowRow<'_>, &FlowRow<'_>)| FlowRow { run: one.run, ..*other } == *one;
    one.flows.len() == other.flows.len() && one.flows.iter().zip(&other.flows).all(same)
}

/// All entries of one flow, or of all flows.
fn of_flow<'m, T>(map: &'m BTreeMap<&str, Vec<T>>, flow: Option<&str>) -> impl Iterator<Item = &'m T> {
    let all = flow.is_none().then(|| map.values());
    let one = flow.and_then(|flow| map.get(flow));
    all.into_iter().flatten().chain(one).flatten()
}

/// Samples in ascending order.
fn ascending<'m>(samples: impl Iterator<Item = &'m (f64, u64)>) -> Vec<(f64, u64)> {
    let mut samples: Vec<(f64, u64)> = samples.copied().collect();
    samples.sort_by(|a, b| a.0.total_cmp(&b.0));
    samples
}

/// The quantiles `q` of all samples together: of one copy those of its row, which are as good.
fn quantiles<'m>(own: Option<[Option<f64>; 2]>, samples: impl Iterator<Item = &'m (f64, u64)>) -> [Option<f64>; 2] {
    own.unwrap_or_else(|| {
        let samples = ascending(samples);
        [rank_of_weighted(&samples, 0.5), rank_of_weighted(&samples, 0.95)]
    })
}

impl Run<'_> {
    /// The round-trip times of all flows, each flow's as weighty as the data that it carried: a kernel that was asked now and then
    /// tells as many of an idle connection as of a busy one.
    fn rtts_by_data(&self, rows: &[FlowRow<'_>]) -> Vec<(f64, u64)> {
        // Whole numbers, of which all together have this many.
        const ALL: f64 = 1e12;
        let data = |name: &str| rows.iter().filter(|row| row.flow == name).map(|row| row.bytes as f64).sum::<f64>();
        let total: f64 = self.rtts.keys().map(|name| data(name)).sum();
        let mut all = Vec::new();
        for (name, samples) in self.rtts.iter().filter(|_| total > 0.0) {
            let count: f64 = samples.iter().map(|(_, count)| *count as f64).sum();
            let weight = data(name) / total * ALL / count.max(1.0);
            all.extend(samples.iter().map(|&(rtt, count)| (rtt, (count as f64 * weight).round() as u64)));
        }
        all.retain(|(_, weight)| *weight > 0);
        if all.is_empty() { of_flow(&self.rtts, None).copied().collect() } else { all }
    }

    /// The figures of `rows`, which are the copies of a flow, or of all flows.
    fn figures(&self, rows: &[FlowRow<'_>], flow: Option<&str>, strangers: bool) -> Figures {
        let sum = |value: fn(&FlowRow<'_>) -> f64| rows.iter().map(value).sum::<f64>();
        // Of the flows whose sender tells both.
        let part = |part: fn(&FlowRow<'_>) -> Option<u64>| {
            let known = rows.iter().filter_map(|row| Some((part(row)?, row.segments_sent?)));
            let (part, whole) = known.fold((0, 0), |sum: (u64, u64), of| (sum.0 + of.0, sum.1 + of.1));
            ratio(part as f64, whole as f64)
        };
        #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is of rows of one lifetime")]
        let again = part(|row| row.retransmitted_data());
        let from = rows.iter().map(|row| row.measured_from_s).reduce(f64::min).unwrap_or(0.0);
        let to = rows.iter().map(|row| row.measured_to_s).reduce(f64::max).unwrap_or(0.0);
        let measured = |row: &FlowRow<'_>| (row.measured_to_s - row.measured_from_s).max(0.0);
        let transfers: Vec<Option<f64>> = of_flow(&self.transfers, flow).copied().collect();
        let mut completions: Vec<(f64, u64)> = transfers.iter().flatten().map(|&time| (time, 1)).collect();
        completions.sort_by(|a, b| a.0.total_cmp(&b.0));
        let finished = completions.len() as f64;
        let own = |of: fn(&FlowRow<'_>) -> [Option<f64>; 2]| if let [row] = rows { Some(of(row)) } else { None };
        let own_rtt = own(|row| [row.rtt_p50_ms, row.rtt_p95_ms]);
        let rtt = match flow {
            None if strangers && own_rtt.is_none() => quantiles(None, self.rtts_by_data(rows).iter()),
            _ => quantiles(own_rtt, of_flow(&self.rtts, flow)),
        };
        let owd = quantiles(own(|row| [row.owd_p50_ms, row.owd_p95_ms]), of_flow(&self.owds, flow));
        let without_tcp = rows.iter().all(|row| row.transport != "tcp");
        // The mean over those of whose time something is known.
        let share = |value: fn(&FlowRow<'_>) -> Option<f64>| {
            let known = || rows.iter().filter_map(|row| Some((value(row)?, measured(row))));
            ratio(known().map(|(share, time)| share * time).sum(), known().map(|(_, time)| time).sum())
        };
        let limited = || {
            Some([
                Some(share(|row| row.limited_app)?),
                Some(share(|row| row.limited_cwnd)?),
                Some(share(|row| row.limited_rwnd)?),
                Some(share(|row| row.limited_pacing)?),
                share(|row| row.limited_sndbuf),
                Some(share(|row| row.limited_other)?),
            ])
        };
        Figures {
            copies: rows.len() as f64,
            goodput_mbps: ratio(sum(|row| row.bytes as f64) * 8e-6, to - from),
            throughput_mbps: ratio(rows.iter().map(|row| row.throughput_mbps * measured(row)).sum(), to - from),
            rtt_p50_ms: rtt[0],
            rtt_p95_ms: rtt[1],
            owd_p50_ms: owd[0],
            owd_p95_ms: owd[1],
            // What was sent before the warm-up's end may be lost after it.
            loss: part(|row| row.lost_packets).filter(|_| without_tcp).map(|loss| loss.min(1.0)),
            transfers: (!transfers.is_empty()).then_some(transfers.len() as f64),
            transfers_finished: ratio(finished, transfers.len() as f64),
            completion_s: ratio(completions.iter().map(|(time, _)| time).sum(), finished),
            completion_p50_s: rank_of_weighted(&completions, 0.5),
            completion_p95_s: rank_of_weighted(&completions, 0.95),
            // SYNs are no data segments.
            retransmission_rate: again.filter(|rate| *rate <= 1.0),
            // Earlier results have zeros where nothing was known: of UDP, and of connections of real hosts.
            limited: limited().filter(|shares| shares.iter().flatten().any(|&share| share > 0.0)),
        }
    }
}

/// The distinct names in the order of their first appearance.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// (sum x)^2 / (n sum x^2) over the goodputs of a TCP flow's copies. What UDP sends is the application's choice, and so is what
/// strangers do: whether a connection was there to carry data, and when, nobody knows. Of those whose kernel told its congestion
/// control, connections that were there for something else are left out.
fn jain(rows: &[FlowRow<'_>], strangers: bool) -> Option<f64> {
    let most = rows.iter().map(|row| row.bytes).max().unwrap_or(0);
    let is_known = |row: &FlowRow<'_>| !strangers || row.cc.is_some() && !row.is_aside(most);
    let competes = |row: &&FlowRow<'_>| row.transport == "tcp" && is_known(row);
    let rates: Vec<f64> = rows.iter().filter(competes).map(|row| row.goodput_mbps).collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    if rates.len() > 1 { ratio(sum * sum, rates.len() as f64 * squares) } else { None }
}
