//! Metrics for Prometheus: the newest value of everything that the page draws over time.

use super::hub::Hub;
use crate::metrics::{self, Page};
use netio::realtime::thread_time;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use record::report::live::{Counter, Progress};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// Ends of columns' names that tell a unit, those of base units, and how many of these it is.
const UNITS: [(&str, &str, f64); 2] = [("_mbps", "_bytes_per_second", 125_000.0), ("_ms", "_seconds", 1e-3)];
/// Columns that are shares from 0 to 1.
const RATIOS: [&str; 4] = ["dl_prbs", "ul_prbs", "dl_bler", "ul_bler"];

/// Columns of the sequence plot, which are in megabytes.
const MEGABYTES: [&str; 9] =
    ["sent", "acked", "window", "again_from", "again_to", "late_from", "late_to", "sack_from", "sack_to"];

/// Returns the name and the value that a column has in metrics, in base units.
fn in_base_units(column: &str, value: f64) -> (String, f64) {
    if RATIOS.contains(&column) {
        return (format!("{column}_ratio"), value);
    }
    if MEGABYTES.contains(&column) {
        return (format!("{column}_bytes"), value * 1e6);
    }
    let unit = UNITS.iter().find_map(|(end, base, of)| Some((column.strip_suffix(end)?, base, of)));
    unit.map_or_else(|| (column.to_owned(), value), |(name, base, of)| (format!("{name}{base}"), value * of))
}

/// A value's labels.
type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Snapshot {
    /// By name: help, and values with their labels.
    series: BTreeMap<String, (String, Vec<(Labels, f64)>)>,
    t_s: Option<f64>,
    ended: bool,
    progress: Option<Progress>,
    counters: Vec<Counter>,
    readers: u64,
    batches: u64,
    cpu_s: f64,
}

impl Snapshot {
    fn of(hub: &Hub) -> Snapshot {
        hub.with(|board| {
            let mut series: BTreeMap<String, (String, Vec<(Labels, f64)>)> = BTreeMap::new();
            for latest in board.latest() {
                let mut labels: Labels = vec![(latest.of, latest.name.to_owned())];
                let key = if latest.of == "flow" { "conn" } else { "hop" };
                labels.extend(latest.conn.map(|conn| (key, conn.to_string())));
                labels.extend(latest.technology.map(|technology| ("technology", technology.to_owned())));
                let help = || format!("Newest value of each {}, as in the plots of the page", latest.of);
                let (name, value) = in_base_units(latest.column, latest.value);
                let name = format!("{}_{name}", latest.of);
                let family = series.entry(name).or_insert_with(|| (help(), Vec::new()));
                family.1.push((labels, value));
            }
            let live = board.live();
            Snapshot {
                series,
                t_s: live.t_s,
                ended: live.ended,
                progress: live.progress,
                counters: live.counters.clone(),
                readers: hub.readers.load(Relaxed) as u64,
                batches: hub.batches(),
                // Whoever asks for metrics is served by the thread that does everything else.
                cpu_s: thread_time().as_secs_f64(),
            }
        })
    }
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut page = Page(encoder);
        for (name, (help, values)) in &self.series {
            let values = values.iter().map(|(labels, value)| {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                (labels, *value)
            });
            page.gauges(name, help, values)?;
        }
        let progress = self.progress;
        let gauges = [
            ("run_time_seconds", "Time of the run", self.t_s),
            ("run_ended", "1 if the run has ended", Some(f64::from(u8::from(self.ended)))),
            ("runs", "Runs in all", progress.map(|progress| progress.of as f64)),
            ("runs_finished", "Runs that have finished", progress.map(|progress| progress.done as f64)),
            ("runs_completed_ratio", "Completed share of all simulated time", progress.map(|progress| progress.share)),
            ("dashboard_readers", "Pages that are open", Some(self.readers as f64)),
        ];
        for (name, help, value) in gauges {
            value.map_or(Ok(()), |value| page.gauge(name, help, value))?;
        }
        let own = [
            ("dashboard_batches", "Batches of new data", self.batches as f64),
            ("dashboard_cpu_seconds", "Processor time of the dashboard's thread, for batches and answers", self.cpu_s),
        ];
        let counted = self.counters.iter().map(|Counter { name, what, value }| (*name, *what, *value as f64));
        own.into_iter().chain(counted).try_for_each(|(name, help, value)| page.counter(name, help, value))
    }
}

/// Returns the metrics of a dashboard.
pub(super) fn text(hub: &Hub) -> String {
    metrics::text("ranway", Snapshot::of(hub))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use record::report::live::Board;
    use record::tables::{LatencyRow, ModemRow, ProxyRow, QueueRow, RadioRow, SampleRow, SegmentRow, WaitRow};
    use record::{Meta, Tables};
    use std::time::Duration;

    #[test]
    fn processor_time_is_all_that_the_thread_has_taken_so_far() {
        let hub = Hub::new(Board::new("one".to_owned(), "run", Meta::default(), false));
        let taken = || {
            let text = text(&hub);
            let seconds = text.lines().find_map(|line| line.strip_prefix("ranway_dashboard_cpu_seconds_total "));
            seconds.and_then(|seconds| seconds.parse::<f64>().ok()).expect("a number")
        };
        let (before, begun) = (taken(), thread_time());
        while thread_time().saturating_sub(begun) < Duration::from_millis(50) {}
        assert!(taken() - before >= 0.05);
    }

    /// The metrics of a run that has a row of each kind, with all values.
    pub(crate) fn example() -> String {
        let mut board = Board::new("one".to_owned(), "emulate", Meta::default(), true);
        let mut tables = Tables::default();
        let (bytes, value, flow) = (Some(1), Some(1.0), "download");
        let sample = SampleRow { flow, cwnd_bytes: bytes, ssthresh_bytes: bytes, ..SampleRow::default() };
        tables.samples.push(&SampleRow {
            in_flight_bytes: bytes,
            srtt_ms: value,
            owd_ms: value,
            lost: bytes,
            ..sample
        });
        tables.queues.push(&QueueRow { link: "s1", capacity_mbps: value, sojourn_ms: value, ..QueueRow::default() });
        tables.proxies.push(&ProxyRow { flow, promised_mbps: value, ..ProxyRow::default() });
        for kind in ["data", "ack", "retransmission", "out-of-order", "sack"] {
            // Each kind has values of its own.
            tables.segments.push(&SegmentRow { flow: kind, kind, ..SegmentRow::default() });
        }
        let radio =
            RadioRow { ue: "phone", cell: "cell", sinr_db: value, dl_mcs: value, ul_mcs: value, ..RadioRow::default() };
        let radio = RadioRow { dl_prbs: value, dl_cell_prbs: value, dl_queue_bytes: bytes, dl_bler: value, ..radio };
        tables.radio.push(&RadioRow { ul_bler: value, cell_beam: bytes, ue_beam: bytes, ..radio });
        for (probe, rtt_ms) in [("request", value), ("echo", None)] {
            tables.latencies.push(&LatencyRow { probe, rtt_ms, hop: bytes, ..LatencyRow::default() });
        }
        let waits =
            WaitRow { host_ms: value, modem_ms: value, network_ms: value, total_ms: value, ..WaitRow::default() };
        tables.waits.push(&waits);
        let modem = ModemRow { modem: "wwan0", technology: "lte", cell: bytes, pci: bytes, ..ModemRow::default() };
        tables.modem.push(&ModemRow { rsrp_dbm: value, rsrq_db: value, rssi_dbm: value, sinr_db: value, ..modem });
        board.add(&tables);
        board.change(|live| {
            live.t_s = Some(0.2);
            live.progress = Some(Progress { done: 1, of: 2, share: 0.5, elapsed_s: 1.0 });
        });
        text(&Hub::new(board))
    }

    #[test]
    fn each_series_has_its_newest_value() {
        let mut board = Board::new("one".to_owned(), "emulate", Meta::default(), true);
        let mut tables = Tables::default();
        for (t_s, goodput_mbps) in [(0.1, 5.0), (0.2, 7.5)] {
            let flow = "tcp \"server\":80 > ue";
            tables.samples.push(&SampleRow {
                flow,
                conn: 1,
                t_s,
                goodput_mbps,
                cwnd_bytes: Some(14_480),
                ..SampleRow::default()
            });
            tables.queues.push(&QueueRow { link: "s1", t_s, bytes: 3_000, ..QueueRow::default() });
        }
        board.add(&tables);
        board.change(|live| {
            live.t_s = Some(0.2);
            live.counters = vec![Counter { name: "pep_reports", what: "reports (PEP-ACK)", value: 7 }];
        });
        let text = text(&Hub::new(board));
        for line in [
            "# TYPE ranway_flow_goodput_bytes_per_second gauge",
            "ranway_flow_goodput_bytes_per_second{flow=\"tcp \\\"server\\\":80 > ue\",conn=\"1\"} 937500",
            "ranway_flow_cwnd_bytes{flow=\"tcp \\\"server\\\":80 > ue\",conn=\"1\"} 14480",
            "ranway_link_bytes{link=\"s1\"} 3000",
            "ranway_run_time_seconds 0.2",
            "ranway_dashboard_batches_total 0",
            "ranway_pep_reports_total 7",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
