//! What the page shows of commands that have a few values: a measurement, the backlog service, the PEP, radio reports.

use super::locked;
use ::services::dashboard::Publisher;
use netio::Error;
use record::Tables;
use record::report::live::{Board, Counter, SILENCE_S};
use record::tables::{RadioRow, UeRow};
use rnis::RadioReport;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// UEs of which reports are shown; further ones wait until others have been silent for a while.
const MOST_UES: usize = 1_000;
/// The longest silence of a UE that is shown, in seconds, however long the intervals are that its reports tell.
const LONGEST_SILENCE_S: f64 = 7_200.0;
/// The interval between two looks whether the dashboard wants the reports.
const TICK: Duration = Duration::from_millis(100);

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
    begun: Instant,
    known: Arc<Mutex<Known>>,
}

impl Reports {
    /// Starts a thread that has the dashboard show the reports whenever it wants them, for as long as this exists: the last
    /// reports before a pause are shown, and UEs leave, without a further report.
    ///
    /// # Errors
    /// [`Error::System`] without a thread.
    pub(crate) fn new(publisher: Publisher) -> Result<Reports, Error> {
        publisher.publish(|board| board.leave_out(&UNREPORTED));
        let (begun, known) = (Instant::now(), Arc::<Mutex<Known>>::default());
        let shown = Arc::downgrade(&known);
        let run = move || {
            while let Some(known) = shown.upgrade() {
                if publisher.is_due() {
                    publisher.publish(move |board| {
                        let now_s = begun.elapsed().as_secs_f64();
                        let news = locked(&known).take_news(now_s);
                        news.show(now_s, board);
                    });
                }
                thread::sleep(TICK);
            }
        };
        thread::Builder::new().name("reports".into()).spawn(run).map_err(Error::system("start the dashboard"))?;
        Ok(Reports { begun, known })
    }

    /// Takes a report.
    pub(crate) fn take(&self, report: &RadioReport) {
        // The time is taken with the lock: it never precedes what has been shown.
        let mut known = locked(&self.known);
        known.add(report, self.begun.elapsed().as_secs_f64());
    }
}

/// What has changed since the last publication.
struct News {
    rows: Tables,
    /// UEs that have been silent for too long.
    silent: Vec<String>,
}

impl News {
    fn show(&self, now_s: f64, board: &mut Board) {
        self.silent.iter().for_each(|ue| board.forget_ue(ue));
        if self.rows.row_count() > 0 {
            board.add(&self.rows);
            board.change(|live| live.t_s = Some(now_s));
        }
    }
}

/// What reports have told.
#[derive(Default)]
struct Known {
    ues: BTreeMap<String, Ue>,
    /// When the newest report came.
    newest_s: f64,
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
    /// When it leaves, unless there is another report until then.
    until_s: f64,
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
    /// Adds a report that came at `now_s`.
    fn add(&mut self, report: &RadioReport, now_s: f64) {
        let at = report.ue.address.map(|address| address.to_string());
        let name = at.unwrap_or_else(|| format!("{}/{:#x}", report.cell, report.ue.rnti));
        if self.ues.len() >= MOST_UES && !self.ues.contains_key(&name) {
            return;
        }
        let ue = self.ues.entry(name).or_default();
        ue.new.add(report);
        ue.all.add(report);
        ue.latest = Some(report.clone());
        // Some feeds report less often than others are forgotten.
        ue.until_s = now_s + (2.0 * report.interval.as_secs_f64()).clamp(SILENCE_S, LONGEST_SILENCE_S);
        self.newest_s = now_s;
        if self.cells.len() < MOST_UES || self.cells.contains_key(&report.cell) {
            self.cells.entry(report.cell).or_default().add(report.cell_prbs, report);
        }
    }

    /// Returns what is new since the last call, and forgets UEs that have been silent for too long.
    fn take_news(&mut self, now_s: f64) -> News {
        let silent: Vec<String> =
            self.ues.iter().filter(|(_, ue)| now_s >= ue.until_s).map(|(name, _)| name.clone()).collect();
        for name in &silent {
            self.ues.remove(name);
        }
        News { rows: self.rows(), silent }
    }

    /// The rows of the UEs with reports since the last call. What these did not tell is missing. The page adds up rows of one time,
    /// so all have that of the newest report.
    fn rows(&mut self) -> Tables {
        let mut rows = Tables::default();
        let t_s = self.newest_s;
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
                point: 0,
                run: 0,
                // What reports do not tell, or the page does not show.
                rsrp_dbm: 0.0,
                rsrq_db: 0.0,
                sinr_db: None,
                cqi: 0,
                ul_mcs: None,
                ul_mbps: 0.0,
                ul_prbs: 0.0,
                ul_queue_bytes: 0,
                host_queue_bytes: 0,
                dl_above_bytes: 0,
                dl_limit_bytes: None,
                ul_limit_bytes: None,
                harq_retx: 0,
                ul_bler: None,
                dl_buffer_bytes: 0,
                ul_buffer_bytes: 0,
                los: false,
                cell_beam: None,
                ue_beam: None,
                blocked_db: 0.0,
            });
            rows.ues.push(&UeRow {
                ue: name,
                direction: "downlink",
                measured_s: ue.all.seconds,
                mbits: ue.all.bits as f64 / 1e6,
                blocks: ue.all.blocks,
                block_error_rate: ue.all.failed as f64 / ue.all.blocks.max(1) as f64,
                utilisation: ue.all.prbs.known(),
                point: 0,
                run: 0,
                // What reports do not tell, or the page does not show.
                retransmissions: 0,
                residual_errors: 0,
                prbs: 0,
                padding_bytes: 0,
                starved_blocks: 0,
                rlc_retx_pdus: 0,
                rlc_retx_bytes: 0,
                scheduling_requests: 0,
                random_accesses: 0,
                handovers: 0,
                handover_failures: 0,
                link_failures: 0,
                asleep: 0.0,
                core_ms: 0.0,
                queue_ms: 0.0,
                air_ms: 0.0,
                harq_ms: 0.0,
                rlc_ms: 0.0,
                packets: 0,
                reported_s: 0.0,
                report_bytes: 0,
            });
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Meta;
    use units::Span;

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
        reports.iter().for_each(|report| known.add(report, 1.0));
        known.rows()
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
    fn ues_that_are_silent_leave_the_page_and_make_room() {
        let (mut known, mut board) = (Known::default(), Board::new("one".to_owned(), "rnis", Meta::default(), false));
        let ues = |board: &Board| {
            let latest = board.latest();
            let names: BTreeSet<&str> = latest.iter().filter(|one| one.of == "ue").map(|one| one.name).collect();
            names.len()
        };
        (0..1_000).for_each(|rnti| known.add(&report(rnti, ""), 1.0));
        known.take_news(1.0).show(1.0, &mut board);
        // There is no room for another one, and one goes on.
        known.add(&report(1_000, ""), 2.0);
        known.add(&report(7, ""), 2.0);
        known.take_news(2.0).show(2.0, &mut board);
        assert_eq!((known.ues.len(), ues(&board)), (MOST_UES, MOST_UES));
        let now_s = 1.0 + SILENCE_S;
        known.take_news(now_s - 0.1).show(now_s - 0.1, &mut board);
        assert_eq!(ues(&board), MOST_UES);
        known.take_news(now_s).show(now_s, &mut board);
        assert_eq!((known.ues.len(), ues(&board)), (1, 1));
        known.add(&report(1_000, ""), now_s);
        known.take_news(now_s).show(now_s, &mut board);
        assert!(board.latest().iter().any(|one| one.name == "7/0x3e8"));
        assert_eq!(ues(&board), 2);
    }

    #[test]
    fn a_ue_with_rare_reports_stays_from_one_to_the_next() {
        let mut known = Known::default();
        let rare = |interval_s| RadioReport { interval: Span::from_secs(interval_s), ..report(61, "") };
        known.add(&rare(60), 1.0);
        assert_eq!(known.take_news(120.9).silent, [""; 0]);
        assert_eq!(known.take_news(121.0).silent, ["7/0x3d"]);
        // However long it is said to be, it ends.
        known.add(&rare(1_000_000), 1.0);
        assert_eq!(known.take_news(1.0 + LONGEST_SILENCE_S).silent, ["7/0x3d"]);
    }

    #[test]
    fn rows_have_the_time_of_the_reports_and_appear_once() {
        let (mut known, mut board) = (Known::default(), Board::new("one".to_owned(), "rnis", Meta::default(), false));
        known.add(&report(61, ""), 1.0);
        known.add(&report(62, ""), 1.5);
        let news = known.take_news(9.0);
        let times = |rows: &Tables| rows.radio.iter().map(|row| row.t_s).collect::<Vec<_>>();
        assert_eq!(times(&news.rows), [1.5, 1.5], "not that of the publication");
        news.show(9.0, &mut board);
        assert_eq!(board.live().t_s, Some(9.0));
        board.growth(true);
        known.take_news(10.0).show(10.0, &mut board);
        assert_eq!(board.growth(true), None, "without reports, nothing is new");
    }

    #[test]
    fn impossible_numbers_are_no_fault() {
        let most = format!(r#","prbs":{0},"cell_prbs":{0},"queue_bytes":{0}"#, u64::MAX);
        let tables = rows(&[report(61, &most), report(61, &most)]);
        assert_eq!(tables.radio.row(0).dl_queue_bytes, Some(u64::MAX));
    }
}
