//! Values computed from the tables of one flow in one run, in the same way for the simulator and the kernel.

use crate::base::Base;
use crate::curve::{Curve, reduces};
use record::Results;
use record::tables::{FlowRow, SampleRow};
use std::collections::BTreeMap;
use std::fmt;
use units::stats::nearest_rank;

/// One copy of a flow at a point of the sweep.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) point: u32,
    name: String,
    copy: u32,
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.copy {
            0 => f.write_str(&self.name),
            copy => write!(f, "{}, copy {copy}", self.name),
        }
    }
}

/// The values of a flow in one run.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) goodput_mbps: f64,
    /// Of the busiest link or cell, 0 to 1.
    pub(crate) utilisation: f64,
    /// The path's round-trip time without queues.
    pub(crate) base_ms: f64,
    /// Round-trip time above that.
    pub(crate) delay_p50_ms: Option<f64>,
    /// See `delay_p50_ms`.
    pub(crate) delay_p95_ms: Option<f64>,
    /// The same of the sender's smoothed round-trip time.
    pub(crate) smoothed_p50_ms: Option<f64>,
    /// See `smoothed_p50_ms`.
    pub(crate) smoothed_p95_ms: Option<f64>,
    /// Retransmitted share of the data segments sent.
    pub(crate) retransmitted_percent: Option<f64>,
    /// Retransmission timeouts.
    pub(crate) timeouts: Option<f64>,
    /// Share of the samples after the warm-up, while connected.
    pub(crate) recovery_percent: Option<f64>,
    pub(crate) exit: Option<Exit>,
    /// For CUBIC only.
    pub(crate) curve: Option<Curve>,
    /// For `mdcc` only, after the warm-up: its window is the smaller of two and does not follow a single curve.
    pub(crate) window_p50_kb: Option<f64>,
    /// See `window_p50_kb`.
    pub(crate) window_p95_kb: Option<f64>,
    /// Interval between samples.
    pub(crate) interval_s: Option<f64>,
}

/// The end of slow start.
///
/// The threshold is infinite at first, so slow start ends when it becomes finite, whether due to delay or to loss. The
/// threshold gives the window exactly, independently of the sampling times: after an exit for delay it equals the
/// window, after a loss it is the same fraction of the window in the simulator and the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    /// Time since the flow's start.
    pub(crate) after_s: f64,
    /// The resulting threshold.
    pub(crate) window_kb: f64,
    pub(crate) rtt_s: Option<f64>,
}

/// Returns the values of all TCP flows, each with one entry per run, in the order of the flows.
pub(crate) fn collect<'a>(results: impl IntoIterator<Item = &'a Results>, base: &Base) -> Vec<(Flow, Vec<Figures>)> {
    let mut flows: BTreeMap<Flow, Vec<Figures>> = BTreeMap::new();
    for results in results {
        let mut samples: BTreeMap<(u32, u32, &str, u32), Vec<SampleRow<'_>>> = BTreeMap::new();
        for row in results.tables.samples.iter() {
            samples.entry((row.point, row.run, row.flow, row.conn)).or_default().push(row);
        }
        let busiest = busiest(results);
        for row in results.tables.flows.iter().filter(|row| row.transport == "tcp") {
            let samples = samples.get(&(row.point, row.run, row.flow, row.conn)).map_or(&[][..], Vec::as_slice);
            let flow = Flow { point: row.point, name: row.flow.to_owned(), copy: row.conn };
            let utilisation = busiest.get(&(row.point, row.run)).copied().unwrap_or(0.0);
            let mut figures = Figures::new(&row, samples, base.of(row.point, row.flow), utilisation);
            if base.begins_in_host(row.flow) {
                // The kernel's packets are first seen behind that queue.
                (figures.delay_p50_ms, figures.delay_p95_ms) = (None, None);
            }
            flows.entry(flow).or_default().push(figures);
        }
    }
    flows.into_iter().collect()
}

/// Returns the utilisation of the busiest link or cell in each run of each point.
fn busiest(results: &Results) -> BTreeMap<(u32, u32), f64> {
    let mut most = BTreeMap::new();
    let links = results.tables.links.iter().map(|row| (row.point, row.run, Some(row.utilisation)));
    let cells = results.tables.ues.iter().map(|row| (row.point, row.run, row.utilisation));
    for (point, run, utilisation) in links.chain(cells) {
        let most: &mut f64 = most.entry((point, run)).or_default();
        *most = most.max(utilisation.unwrap_or(0.0));
    }
    most
}

impl Figures {
    fn new(flow: &FlowRow<'_>, samples: &[SampleRow<'_>], base_ms: Option<f64>, utilisation: f64) -> Figures {
        let measured = || samples.iter().filter(|row| row.t_s >= flow.measured_from_s && row.state != "closed");
        let srtts = sorted(measured().filter_map(|row| row.srtt_ms));
        let is_mdcc = flow.cc == Some("mdcc");
        let windows = sorted(measured().filter(|_| is_mdcc).filter_map(|row| Some(row.cwnd_bytes? as f64 / 1e3)));
        let percent = |part: f64, whole: f64| (whole > 0.0).then(|| 100.0 * part / whole);
        let above = |ms: Option<f64>| ms.zip(base_ms).map(|(ms, base)| (ms - base).max(0.0));
        Figures {
            goodput_mbps: flow.goodput_mbps,
            utilisation,
            base_ms: base_ms.unwrap_or(0.0),
            delay_p50_ms: above(flow.rtt_p50_ms),
            delay_p95_ms: above(flow.rtt_p95_ms),
            smoothed_p50_ms: above(nearest_rank(&srtts, 0.5)),
            smoothed_p95_ms: above(nearest_rank(&srtts, 0.95)),
            retransmitted_percent: flow.retransmitted_share().map(|share| share * 100.0),
            timeouts: flow.rtos.map(|count| count as f64),
            recovery_percent: percent(measured().filter(|row| reduces(row)).count() as f64, measured().count() as f64),
            exit: exit(flow, samples),
            curve: (flow.cc == Some("cubic")).then(|| Curve::new(samples)).flatten(),
            window_p50_kb: nearest_rank(&windows, 0.5),
            window_p95_kb: nearest_rank(&windows, 0.95),
            interval_s: samples.windows(2).map(|pair| pair[1].t_s - pair[0].t_s).reduce(f64::min),
        }
    }
}

fn exit(flow: &FlowRow<'_>, samples: &[SampleRow<'_>]) -> Option<Exit> {
    let row = samples.iter().find(|row| row.ssthresh_bytes.is_some())?;
    Some(Exit {
        after_s: row.t_s - flow.start_s,
        window_kb: row.ssthresh_bytes? as f64 / 1e3,
        rtt_s: row.srtt_ms.map(|ms| ms / 1e3),
    })
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
