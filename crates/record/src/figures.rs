//! The catalogue of figures: what `summary.json` has of points, flows, links and UEs.
//!
//! A figure has one entry, from which are made: the columns of [`Means`](crate::Means), of
//! [`summary_frame`](crate::summary_frame) and of the table on the terminal, the report's choice of plots and its table of
//! means (`web/src/generated/figures.ts`), the figures and labels of Python's plots (`python/ranway/_figures.py`), and the
//! book's tables of figures. Tests find a figure of the summary without an entry, and generated files that are stale.
//!
//! A figure is the mean over the runs of a point, with a confidence interval ([`Stat`]); [`Figure::copies`] tells how the
//! copies of a flow are combined within a run.

use crate::summary::{FlowSummary, LinkSummary, PointSummary, Stat, UeSummary};

/// A figure of a `T`: a point, a flow, a link or a UE.
#[derive(Debug)]
pub struct Figure<T> {
    /// Its name in `summary.json`; of a UE's direction, `downlink.NAME` or `uplink.NAME`.
    pub name: &'static str,
    /// Its unit in `summary.json`: `1` of a share, empty of a count or an index.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// How the copies of a flow, or all flows, are combined within a run; empty where there is only one.
    pub copies: &'static str,
    /// The name of a plot of it, without its unit; empty if it is not plotted.
    pub label: &'static str,
    /// The head of a table's column of it, without its unit; empty if no table has it.
    pub head: &'static str,
    /// The unit in plots and tables.
    pub shown_unit: &'static str,
    /// What plots and tables show of it for 1.
    pub scale: f64,
    /// Its value.
    pub of: fn(&T) -> Option<Stat>,
}

impl<T> Figure<T> {
    const fn new(
        name: &'static str,
        unit: &'static str,
        of: fn(&T) -> Option<Stat>,
        meaning: &'static str,
    ) -> Figure<T> {
        Figure { name, unit, meaning, copies: "", label: "", head: "", shown_unit: unit, scale: 1.0, of }
    }

    /// A share of 1, which is shown in per cent.
    const fn share(name: &'static str, of: fn(&T) -> Option<Stat>, meaning: &'static str) -> Figure<T> {
        Figure { shown_unit: "%", scale: 100.0, ..Figure::new(name, "1", of, meaning) }
    }

    /// A number of events in a run.
    const fn count(name: &'static str, of: fn(&T) -> Option<Stat>, meaning: &'static str) -> Figure<T> {
        Figure::new(name, "", of, meaning)
    }

    const fn over(self, copies: &'static str) -> Figure<T> {
        Figure { copies, ..self }
    }

    const fn plot(self, label: &'static str) -> Figure<T> {
        Figure { label, ..self }
    }

    const fn per_run(self) -> Figure<T> {
        Figure { shown_unit: "a run", ..self }
    }

    const fn column(self, head: &'static str) -> Figure<T> {
        Figure { head, ..self }
    }
}

type Point = Figure<PointSummary>;
type Flow = Figure<FlowSummary>;
type Link = Figure<LinkSummary>;
type Ue = Figure<UeSummary>;

/// How rates are combined.
const BYTES: &str = "their bytes, from the first measured start to the last measured end";
/// How quantiles of delays are combined.
const SAMPLES: &str = "all their samples together";
/// How shares of packets are combined.
const PACKETS: &str = "all their packets together";
/// How quantities of transfers are combined.
const TRANSFERS: &str = "all their transfers together, those of the warm-up included";

/// The figures of a point.
pub const OF_POINTS: [Figure<PointSummary>; 5] = [
    Point::new("goodput_mbps", "Mbit/s", |point| point.goodput_mbps, "Payload that reached the applications.")
        .over("the sum of the flows' goodputs; of an emulation as of a flow's copies")
        .plot("Goodput, sum of the flows"),
    Point::new("rtt_p50_ms", "ms", |point| point.rtt_p50_ms, "Median round-trip time.")
        .over(SAMPLES)
        .plot("RTT, median"),
    Point::new("rtt_p95_ms", "ms", |point| point.rtt_p95_ms, "95th percentile of the round-trip times.")
        .over(SAMPLES)
        .plot("RTT, 95th percentile"),
    Point::share("retransmission_rate", |point| point.retransmission_rate, "Retransmitted over sent data segments.")
        .over(PACKETS)
        .plot("Retransmissions"),
    Point::new("jain", "", |point| point.jain, "Jain's fairness index: 1 is equal, 1/n is one that has all.")
        .over("the goodputs of all TCP flows' copies, if there are at least two")
        .plot("Jain's fairness index"),
];

/// The figures of a flow, in the order of a table's columns.
pub const OF_FLOWS: [Figure<FlowSummary>; 14] = [
    Flow::new("goodput_mbps", "Mbit/s", |flow| flow.goodput_mbps, "Payload that reached the application.")
        .over(BYTES)
        .plot("Goodput")
        .column("goodput"),
    Flow::new("throughput_mbps", "Mbit/s", |flow| flow.throughput_mbps, "IP bytes that reached the host.")
        .over(BYTES)
        .plot("Throughput, IP")
        .column("throughput"),
    Flow::new("rtt_p50_ms", "ms", |flow| flow.rtt_p50_ms, "Median round-trip time.")
        .over(SAMPLES)
        .plot("RTT, median")
        .column("RTT p50"),
    Flow::new("rtt_p95_ms", "ms", |flow| flow.rtt_p95_ms, "95th percentile of the round-trip times.")
        .over(SAMPLES)
        .plot("RTT, 95th percentile")
        .column("RTT p95"),
    Flow::new("owd_p50_ms", "ms", |flow| flow.owd_p50_ms, "Median one-way delay of the data packets.")
        .over(SAMPLES)
        .plot("One-way delay, median")
        .column("one-way p50"),
    Flow::new("owd_p95_ms", "ms", |flow| flow.owd_p95_ms, "95th percentile of the data packets' one-way delays.")
        .over(SAMPLES)
        .plot("One-way delay, 95th percentile")
        .column("one-way p95"),
    Flow::share("loss", |flow| flow.loss, "Packets lost on the way over packets sent; missing for TCP.")
        .over(PACKETS)
        .plot("Lost packets")
        .column("loss"),
    Flow::share(
        "retransmission_rate",
        |flow| flow.retransmission_rate,
        "Retransmitted over sent data segments; of TCP only.",
    )
    .over(PACKETS)
    .plot("Retransmissions")
    .column("retransmissions"),
    Flow::count("copies", |flow| Some(flow.copies), "Copies of the flow.").over("their number").column("copies"),
    Flow::count("transfers", |flow| flow.transfers, "Transfers that began.").over(TRANSFERS).column("transfers"),
    Flow::share("transfers_finished", |flow| flow.transfers_finished, "Share of the transfers that finished.")
        .over(TRANSFERS)
        .plot("Finished transfers")
        .column("finished"),
    Flow::new("completion_s", "s", |flow| flow.completion_s, "Mean completion time of the finished transfers.")
        .over(TRANSFERS)
        .plot("Completion time, mean")
        .column("completion"),
    Flow::new(
        "completion_p50_s",
        "s",
        |flow| flow.completion_p50_s,
        "Median completion time of the finished transfers.",
    )
    .over(TRANSFERS)
    .plot("Completion time, median")
    .column("completion p50"),
    Flow::new(
        "completion_p95_s",
        "s",
        |flow| flow.completion_p95_s,
        "95th percentile of the completion times of the finished transfers.",
    )
    .over(TRANSFERS)
    .plot("Completion time, 95th percentile")
    .column("completion p95"),
];

/// Returns the figure of a flow with this name.
pub fn of_flows(name: &str) -> Option<&'static Figure<FlowSummary>> {
    OF_FLOWS.iter().find(|figure| figure.name == name)
}

/// The figures of a link.
pub const OF_LINKS: [Figure<LinkSummary>; 6] = [
    Link::share(
        "utilisation",
        |link| link.utilisation,
        "Bytes carried over the bytes that the link could have carried; missing for a link without a rate.",
    )
    .plot("Utilisation"),
    Link::share("drop_rate", |link| link.drop_rate, "Packets dropped for any reason over packets that arrived.")
        .plot("Drops"),
    Link::share("mark_rate", |link| link.mark_rate, "Packets marked over packets that arrived.").plot("Marks"),
    Link::new("sojourn_p50_ms", "ms", |link| link.sojourn_p50_ms, "Median time in the queue.")
        .plot("Queueing delay, median"),
    Link::new("sojourn_p95_ms", "ms", |link| link.sojourn_p95_ms, "95th percentile of the time in the queue.")
        .plot("Queueing delay, 95th percentile"),
    Link::new("sojourn_p99_ms", "ms", |link| link.sojourn_p99_ms, "99th percentile of the time in the queue.")
        .plot("Queueing delay, 99th percentile"),
];

/// The figures of a UE.
pub const OF_UES: [Figure<UeSummary>; 19] = [
    Ue::new("downlink.scheduled_mbps", "Mbit/s", |ue| ue.downlink.scheduled_mbps, SCHEDULED).plot("Downlink capacity"),
    Ue::new("uplink.scheduled_mbps", "Mbit/s", |ue| ue.uplink.scheduled_mbps, SCHEDULED).plot("Uplink capacity"),
    Ue::share("downlink.utilisation", |ue| ue.downlink.utilisation, BLOCKS).plot("Downlink resource blocks"),
    Ue::share("uplink.utilisation", |ue| ue.uplink.utilisation, BLOCKS).plot("Uplink resource blocks"),
    Ue::share("downlink.block_error_rate", |ue| ue.downlink.block_error_rate, ERRORS).plot("Downlink block error rate"),
    Ue::share("uplink.block_error_rate", |ue| ue.uplink.block_error_rate, ERRORS).plot("Uplink block error rate"),
    Ue::new("downlink.queue_ms", "ms", |ue| ue.downlink.queue_ms, QUEUE).plot("Downlink queueing delay, mean"),
    Ue::new("uplink.queue_ms", "ms", |ue| ue.uplink.queue_ms, QUEUE).plot("Uplink queueing delay, mean"),
    Ue::new("downlink.core_ms", "ms", |ue| ue.downlink.core_ms, CORE),
    Ue::new("uplink.core_ms", "ms", |ue| ue.uplink.core_ms, CORE),
    Ue::new("downlink.air_ms", "ms", |ue| ue.downlink.air_ms, AIR),
    Ue::new("uplink.air_ms", "ms", |ue| ue.uplink.air_ms, AIR),
    Ue::new("downlink.harq_ms", "ms", |ue| ue.downlink.harq_ms, HARQ),
    Ue::new("uplink.harq_ms", "ms", |ue| ue.uplink.harq_ms, HARQ),
    Ue::new("downlink.rlc_ms", "ms", |ue| ue.downlink.rlc_ms, RLC),
    Ue::new("uplink.rlc_ms", "ms", |ue| ue.uplink.rlc_ms, RLC),
    Ue::count("handovers", |ue| ue.handovers, "Handovers that reached their target.").plot("Handovers").per_run(),
    Ue::count("handover_failures", |ue| ue.handover_failures, "Handovers that did not reach their target."),
    Ue::count("link_failures", |ue| ue.link_failures, "Radio links lost.").plot("Radio links lost").per_run(),
];

const SCHEDULED: &str = "Bits of transport blocks, each counted once, over the measured time.";
const BLOCKS: &str = "Its resource blocks over those of the carrier.";
const ERRORS: &str = "Share of the transport blocks whose first transmission was not decoded.";
const CORE: &str = "Mean one-way delay outside the radio.";
const QUEUE: &str = "Mean time from the arrival at the cell or the host until the first byte is on the air.";
const AIR: &str = "Mean time from the first byte on the air to the last: segmentation and scheduling.";
const HARQ: &str = "Mean time from the last byte on the air until it is decoded.";
const RLC: &str = "Mean time from decoding until delivery: the wait in RLC for missing earlier data.";

#[cfg(test)]
mod tests;
