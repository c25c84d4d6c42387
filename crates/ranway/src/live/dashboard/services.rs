//! What the page shows of commands that have a few values: a measurement, the backlog service, the PEP, radio reports.

use ::services::dashboard::Publisher;
use record::Tables;
use record::tables::{QueueRow, RadioRow, SampleRow, UeRow};
use rnis::RadioReport;
use std::collections::BTreeMap;
use std::time::Instant;
use units::Span;

/// UEs of which reports are shown.
const MOST_UES: usize = 1_000;

/// What only a TCP sender or a queue's owner knows.
const UNKNOWN: [&str; 5] = ["cwnd_bytes", "in_flight_bytes", "packets", "dropped", "marked"];
/// What reports on UEs do not tell.
const UNREPORTED: [&str; 9] = [
    "rsrp_dbm",
    "ul_mcs",
    "ul_mbps",
    "ul_queue_bytes",
    "host_queue_bytes",
    "dl_above_bytes",
    "dl_buffer_bytes",
    "ul_prbs",
    "los",
];

/// Shows values from time to time.
pub(crate) struct Values {
    publisher: Publisher,
    begun: Instant,
}

/// A flow at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowValue {
    /// Its name.
    pub(crate) name: String,
    /// Its rate.
    pub(crate) mbps: f64,
    /// Its round-trip time.
    pub(crate) rtt: Option<Span>,
}

/// A queue at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueValue {
    /// Its name.
    pub(crate) name: &'static str,
    /// What waits.
    pub(crate) bytes: u64,
    /// How fast it drains, if that is known.
    pub(crate) mbps: Option<f64>,
    /// How long packets wait.
    pub(crate) wait_ms: Option<f64>,
}

impl Values {
    pub(crate) fn new(publisher: Publisher) -> Values {
        publisher.publish(|board| board.leave_out(&UNKNOWN));
        Values { publisher, begun: Instant::now() }
    }

    /// Shows what these flows and queues are now, if the dashboard wants it.
    pub(crate) fn show(&self, flows: &[FlowValue], queues: &[QueueValue]) {
        if !self.publisher.is_due() {
            return;
        }
        let t_s = self.begun.elapsed().as_secs_f64();
        let mut rows = Tables::default();
        for flow in flows {
            let (goodput_mbps, srtt_ms) = (flow.mbps, flow.rtt.map(record::ms));
            rows.samples.push(&SampleRow { flow: &flow.name, t_s, goodput_mbps, srtt_ms, ..SampleRow::default() });
        }
        for queue in queues {
            let (capacity_mbps, sojourn_ms) = (queue.mbps, queue.wait_ms);
            let row = QueueRow {
                link: queue.name,
                t_s,
                bytes: queue.bytes,
                capacity_mbps,
                sojourn_ms,
                ..QueueRow::default()
            };
            rows.queues.push(&row);
        }
        publish(&self.publisher, t_s, rows);
    }
}

fn publish(publisher: &Publisher, t_s: f64, rows: Tables) {
    publisher.publish(move |board| {
        board.add(&rows);
        board.change(|live| live.t_s = Some(t_s));
    });
}

/// Shows the reports on UEs.
pub(crate) struct Reports {
    publisher: Publisher,
    begun: Instant,
    ues: BTreeMap<String, Ue>,
}

/// The reports on a UE.
#[derive(Default)]
struct Ue {
    /// Those since the last publication, and all.
    new: Sum,
    all: Sum,
    latest: Option<RadioReport>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    span: Span,
    bits: u64,
    blocks: u64,
    failed: u64,
    prbs: u64,
    of_prbs: u64,
}

impl Sum {
    fn add(&mut self, report: &RadioReport) {
        self.span += report.interval;
        self.bits += report.acked_bits;
        self.blocks += u64::from(report.blocks);
        self.failed += u64::from(report.failed);
        if let Some(prbs) = report.prbs {
            self.prbs += prbs;
            self.of_prbs += report.all_prbs();
        }
    }

    fn mbps(&self) -> f64 {
        self.bits as f64 / 1e6 / self.span.as_secs_f64().max(1e-6)
    }

    fn share(&self) -> Option<f64> {
        (self.of_prbs > 0).then(|| self.prbs as f64 / self.of_prbs as f64)
    }
}

impl Reports {
    pub(crate) fn new(publisher: Publisher) -> Reports {
        publisher.publish(|board| board.leave_out(&UNREPORTED));
        Reports { publisher, begun: Instant::now(), ues: BTreeMap::new() }
    }

    /// Takes a report, and shows those since the last time, if the dashboard wants them.
    pub(crate) fn take(&mut self, report: &RadioReport) {
        let at = report.ue.address.map(|address| address.to_string());
        let name = at.unwrap_or_else(|| format!("{}/{:#x}", report.cell, report.ue.rnti));
        if self.ues.len() >= MOST_UES && !self.ues.contains_key(&name) {
            return;
        }
        let ue = self.ues.entry(name).or_default();
        ue.new.add(report);
        ue.all.add(report);
        ue.latest = Some(report.clone());
        if self.publisher.is_due() {
            let t_s = self.begun.elapsed().as_secs_f64();
            let rows = self.rows(t_s);
            publish(&self.publisher, t_s, rows);
        }
    }

    fn rows(&mut self, t_s: f64) -> Tables {
        let mut rows = Tables::default();
        for (name, ue) in &mut self.ues {
            let Some(latest) = ue.latest.take() else { continue };
            let new = std::mem::take(&mut ue.new);
            rows.radio.push(&RadioRow {
                ue: name,
                t_s,
                cell: &format!("cell {}", latest.cell),
                dl_mcs: latest.mcs.map(f64::from),
                dl_mbps: new.mbps(),
                dl_prbs: new.share(),
                dl_cell_prbs: new.share(),
                dl_bler: (new.blocks > 0).then(|| new.failed as f64 / new.blocks as f64),
                dl_queue_bytes: latest.queue_bytes,
                los: true,
                ..RadioRow::default()
            });
            rows.ues.push(&UeRow {
                ue: name,
                direction: "downlink",
                measured_s: ue.all.span.as_secs_f64(),
                mbits: ue.all.bits as f64 / 1e6,
                blocks: ue.all.blocks,
                block_error_rate: ue.all.failed as f64 / ue.all.blocks.max(1) as f64,
                prbs: ue.all.prbs,
                utilisation: ue.all.share(),
                ..UeRow::default()
            });
        }
        rows
    }
}
