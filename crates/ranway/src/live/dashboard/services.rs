//! What the page shows of commands that have a few values: a measurement, the backlog service, the PEP, radio reports.

use ::services::dashboard::Publisher;
use record::Tables;
use record::report::live::Counter;
use record::tables::{RadioRow, UeRow};
use rnis::RadioReport;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// UEs of which reports are shown.
const MOST_UES: usize = 1_000;

/// What reports on UEs do not tell.
const UNREPORTED: [&str; 28] = [
    "rsrp_dbm",
    "ul_mcs",
    "ul_mbps",
    "ul_queue_bytes",
    "host_queue_bytes",
    "dl_above_bytes",
    "dl_buffer_bytes",
    "ul_prbs",
    "los",
    // Of a UE's row.
    "retransmissions",
    "residual_errors",
    "prbs",
    "padding_bytes",
    "starved_blocks",
    "rlc_retx_pdus",
    "rlc_retx_bytes",
    "scheduling_requests",
    "random_accesses",
    "handovers",
    "handover_failures",
    "link_failures",
    "asleep",
    "core_ms",
    "queue_ms",
    "air_ms",
    "harq_ms",
    "rlc_ms",
    "packets",
];

/// Shows values from time to time.
pub(crate) struct Values {
    publisher: Publisher,
    begun: Instant,
}

impl Values {
    pub(crate) fn new(publisher: Publisher) -> Values {
        Values { publisher, begun: Instant::now() }
    }

    /// Leaves out columns of the queue `name`, which nobody knows.
    pub(crate) fn leave_out_of(&self, name: &'static str, columns: &'static [&'static str]) {
        self.publisher.publish(move |board| board.leave_out_of(name, columns));
    }

    /// Shows the rows of this moment, which is given in seconds since the start, and counters, if the dashboard wants them.
    pub(crate) fn show(&self, values: impl FnOnce(f64) -> (Tables, Vec<Counter>)) {
        if self.publisher.is_due() {
            let t_s = self.begun.elapsed().as_secs_f64();
            publish(&self.publisher, t_s, values(t_s));
        }
    }
}

fn publish(publisher: &Publisher, t_s: f64, (rows, counters): (Tables, Vec<Counter>)) {
    publisher.publish(move |board| {
        board.add(&rows);
        board.change(|live| (live.t_s, live.counters) = (Some(t_s), counters));
    });
}

/// Shows the reports on UEs.
pub(crate) struct Reports {
    publisher: Publisher,
    begun: Instant,
    known: Known,
}

impl Reports {
    pub(crate) fn new(publisher: Publisher) -> Reports {
        publisher.publish(|board| board.leave_out(&UNREPORTED));
        Reports { publisher, begun: Instant::now(), known: Known::default() }
    }

    /// Takes a report, and shows those since the last time, if the dashboard wants them.
    pub(crate) fn take(&mut self, report: &RadioReport) {
        self.known.add(report);
        if self.publisher.is_due() {
            let t_s = self.begun.elapsed().as_secs_f64();
            let rows = self.known.rows(t_s);
            publish(&self.publisher, t_s, (rows, Vec::new()));
        }
    }
}

/// What reports have told.
#[derive(Default)]
struct Known {
    ues: BTreeMap<String, Ue>,
    /// The resource blocks that all UEs of a cell used since the last publication, of cells that tell.
    cells: BTreeMap<u64, Share>,
}

/// The reports on a UE.
#[derive(Default)]
struct Ue {
    /// Those since the last publication, and all.
    new: Sum,
    all: Sum,
    latest: Option<RadioReport>,
}

/// Resource blocks that were used, of those that there were.
#[derive(Clone, Copy, Default)]
struct Share {
    used: u64,
    of: u64,
}

impl Share {
    /// Adds those of a report, if it tells how many were used.
    fn add(&mut self, used: Option<u64>, report: &RadioReport) {
        if let Some(used) = used {
            self.used = self.used.saturating_add(used);
            self.of = self.of.saturating_add(report.all_prbs());
        }
    }

    /// The share that was used (0 to 1), if any report told it.
    fn known(self) -> Option<f64> {
        (self.of > 0).then(|| self.used as f64 / self.of as f64)
    }
}

#[derive(Clone, Copy, Default)]
struct Sum {
    seconds: f64,
    bits: u64,
    blocks: u64,
    failed: u64,
    prbs: Share,
}

impl Sum {
    fn add(&mut self, report: &RadioReport) {
        self.seconds += report.interval.as_secs_f64();
        self.bits = self.bits.saturating_add(report.acked_bits);
        self.blocks += u64::from(report.blocks);
        self.failed += u64::from(report.failed);
        self.prbs.add(report.prbs, report);
    }

    fn mbps(&self) -> f64 {
        self.bits as f64 / 1e6 / self.seconds.max(1e-6)
    }
}

impl Known {
    fn add(&mut self, report: &RadioReport) {
        let at = report.ue.address.map(|address| address.to_string());
        let name = at.unwrap_or_else(|| format!("{}/{:#x}", report.cell, report.ue.rnti));
        if self.ues.len() >= MOST_UES && !self.ues.contains_key(&name) {
            return;
        }
        let ue = self.ues.entry(name).or_default();
        ue.new.add(report);
        ue.all.add(report);
        ue.latest = Some(report.clone());
        if self.cells.len() < MOST_UES || self.cells.contains_key(&report.cell) {
            self.cells.entry(report.cell).or_default().add(report.cell_prbs, report);
        }
    }

    /// The rows of the UEs with reports since the last call. What these did not tell is missing.
    fn rows(&mut self, t_s: f64) -> Tables {
        let mut rows = Tables::default();
        let cells = std::mem::take(&mut self.cells);
        let mut told = BTreeSet::new();
        for (name, ue) in &mut self.ues {
            let Some(latest) = ue.latest.take() else { continue };
            let new = std::mem::take(&mut ue.new);
            // The page adds up the rows of a cell. If the cell itself has told the sum, the first row has all of it: UEs without
            // reports have their parts, too.
            let of_cell = match cells.get(&latest.cell).and_then(|cell| cell.known()) {
                Some(sum) => told.insert(latest.cell).then_some(sum),
                None => new.prbs.known(),
            };
            rows.radio.push(&RadioRow {
                ue: name,
                t_s,
                cell: &format!("cell {}", latest.cell),
                dl_mcs: latest.mcs.map(f64::from),
                dl_mbps: new.mbps(),
                dl_prbs: new.prbs.known(),
                dl_cell_prbs: of_cell,
                dl_bler: (new.blocks > 0).then(|| new.failed as f64 / new.blocks as f64),
                dl_queue_bytes: latest.queue_bytes,
                ..RadioRow::default()
            });
            rows.ues.push(&UeRow {
                ue: name,
                direction: "downlink",
                measured_s: ue.all.seconds,
                mbits: ue.all.bits as f64 / 1e6,
                blocks: ue.all.blocks,
                block_error_rate: ue.all.failed as f64 / ue.all.blocks.max(1) as f64,
                utilisation: ue.all.prbs.known(),
                ..UeRow::default()
            });
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report on a UE of cell 7, which has 1000 block-slots, with more fields.
    fn report(rnti: u16, more: &str) -> RadioReport {
        let text = format!(
            r#"{{"time_us":1000000,"interval_us":10000,"cell":7,"rnti":{rnti},"n_prb":100,"slots":10,"acked_bits":80000,"blocks":0,
            "failed":0{more}}}"#
        );
        serde_json::from_str(&text).expect("it can be read")
    }

    fn rows(reports: &[RadioReport]) -> Tables {
        let mut known = Known::default();
        reports.iter().for_each(|report| known.add(report));
        known.rows(1.0)
    }

    #[test]
    fn what_reports_do_not_tell_is_missing() {
        let tables = rows(&[report(61, "")]);
        let row = tables.radio.row(0);
        assert_eq!((row.ue, row.cell, row.dl_mbps), ("7/0x3d", "cell 7", 8.0));
        assert_eq!((row.dl_queue_bytes, row.dl_prbs, row.dl_cell_prbs), (None, None, None));
        assert_eq!((row.dl_mcs, row.dl_bler, tables.ues.row(0).utilisation), (None, None, None));
        // A zero that is told is one.
        let tables = rows(&[report(61, r#","queue_bytes":0,"prbs":0,"cell_prbs":0"#)]);
        let row = tables.radio.row(0);
        assert_eq!((row.dl_queue_bytes, row.dl_prbs, row.dl_cell_prbs), (Some(0), Some(0.0), Some(0.0)));
    }

    #[test]
    fn a_cells_share_is_the_one_that_it_tells_or_the_sum_of_its_ues() {
        let sum = |tables: &Tables| tables.radio.iter().filter_map(|row| row.dl_cell_prbs).sum::<f64>();
        let shares = |tables: &Tables| tables.radio.iter().map(|row| row.dl_prbs).collect::<Vec<_>>();
        // Others used 300, on which there is no report.
        let tables = rows(&[
            report(61, r#","prbs":400,"cell_prbs":900"#),
            report(62, r#","prbs":200,"cell_prbs":900"#),
            report(61, r#","prbs":200,"cell_prbs":500"#),
            report(62, r#","prbs":0,"cell_prbs":500"#),
        ]);
        assert_eq!((sum(&tables), shares(&tables)), (0.7, vec![Some(0.3), Some(0.1)]));
        let tables = rows(&[report(61, r#","cell_prbs":900"#), report(62, r#","cell_prbs":900"#)]);
        assert_eq!((sum(&tables), shares(&tables)), (0.9, vec![None, None]));
        let tables = rows(&[report(61, r#","prbs":250"#), report(62, r#","prbs":500"#), report(63, "")]);
        assert_eq!((sum(&tables), shares(&tables)), (0.75, vec![Some(0.25), Some(0.5), None]));
    }

    #[test]
    fn impossible_numbers_are_no_fault() {
        let most = format!(r#","prbs":{0},"cell_prbs":{0},"queue_bytes":{0}"#, u64::MAX);
        let tables = rows(&[report(61, &most), report(61, &most)]);
        assert_eq!(tables.radio.row(0).dl_queue_bytes, Some(u64::MAX));
    }
}
