//! What people read: the summary of a run, lists, reports.

use crate::Failure;
use crate::args::{CompareArgs, ReportArgs};
use comfy_table::{CellAlignment, Table, presets};
use record::{FlowSummary, Limited, Results, Stat, report};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// At most so many rows of flows are printed; the report has them all.
const MAX_ROWS: usize = 40;

/// The summary of a run as text: a row for each flow at each point.
pub(crate) fn summary(results: &Results) -> String {
    let summary = results.summary();
    let mut table =
        table(&["", "flow", "cc", "goodput Mbit/s", "RTT p50 ms", "p95", "completion s", "retrans. %", "limited by"]);
    for column in 3..8 {
        table.column_mut(column).expect("the table has it").set_cell_alignment(CellAlignment::Right);
    }
    let rows = || summary.points.iter().flat_map(|point| point.flows.iter().map(move |flow| (point, flow)));
    let mut label = String::new();
    for (point, flow) in rows().take(MAX_ROWS) {
        let this = results.meta.points[point.point as usize].label();
        let shown = if this == label { String::new() } else { this.clone() };
        label = this;
        table.add_row([
            shown,
            flow.flow.clone(),
            flow.cc.clone(),
            stat(flow.goodput_mbps.as_ref(), 2),
            stat(flow.rtt_p50_ms.as_ref(), 1),
            stat(flow.rtt_p95_ms.as_ref(), 1),
            stat(flow.completion_s.as_ref(), 3),
            stat(flow.retransmission_rate.map(percent).as_ref(), 2),
            limits(flow),
        ]);
    }
    let mut text = String::new();
    if !results.meta.title.is_empty() {
        let _ = writeln!(text, "{}", results.meta.title);
    }
    let _ = writeln!(text, "{table}");
    if rows().count() > MAX_ROWS {
        let _ = writeln!(text, "and {} more rows: see the report", rows().count() - MAX_ROWS);
    }
    let t = &results.timing;
    let _ = match t.lateness {
        Some(_) => writeln!(text, "{:.0} s emulated, {} packets", t.simulated_s, t.packets),
        None => {
            writeln!(text, "{:.0} s simulated in {:.2} s, {} data packets", t.simulated_s, t.wall_s, t.packets)
        }
    };
    text
}

/// An empty table in the style of all of ours.
pub(crate) fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head.iter().copied());
    table
}

/// A figure with its confidence interval, if it has one that the digits can show.
pub(crate) fn stat(stat: Option<&Stat>, digits: usize) -> String {
    let Some(stat) = stat else { return "-".to_owned() };
    match stat.ci95 {
        Some(ci) => format!("{:.digits$} ± {:.digits$}", stat.mean, ci),
        None => format!("{:.digits$}", stat.mean),
    }
}

fn percent(stat: Stat) -> Stat {
    Stat {
        mean: stat.mean * 100.0,
        ci95: stat.ci95.map(|ci| ci * 100.0),
        min: stat.min * 100.0,
        max: stat.max * 100.0,
        ..stat
    }
}

/// What held a flow back most of its time, as `cwnd 93 %`.
fn limits(flow: &FlowSummary) -> String {
    let Some(Limited { app, cwnd, rwnd, pacing, other: _ }) = &flow.limited else { return "-".to_owned() };
    let mut shares = [("app", app.mean), ("cwnd", cwnd.mean), ("rwnd", rwnd.mean), ("pacing", pacing.mean)];
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = shares.iter().filter(|s| s.1 >= 0.1).map(|(name, share)| format!("{name} {:.0} %", share * 100.0));
    named.collect::<Vec<_>>().join(", ")
}

pub(crate) fn list() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let width = 20;
    writeln!(out, "Scenarios (ranway run NAME):")?;
    for s in scenario::builtin::list() {
        writeln!(out, "  {:width$} {}", s.name, s.about)?;
    }
    writeln!(out, "\nPresets (include = [\"preset:NAME\"] in a scenario file):")?;
    for s in scenario::builtin::presets() {
        writeln!(out, "  {:width$} {}", s.name, s.about)?;
    }
    writeln!(out, "\nPapers (ranway reproduce PAPER[/EXPERIMENT]):")?;
    for paper in reproduce::papers() {
        writeln!(out, "  {:width$} {}", paper.name, paper.title)?;
        // A variant has the experiments of its paper, which comes before it.
        for experiment in paper.experiments.iter().filter(|_| paper.settings.is_empty()) {
            writeln!(out, "    {:width$} {}", experiment.id(), experiment.about)?;
        }
    }
    Ok(())
}

pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let results = read(&args.dir)?;
    let out = args.out.clone().unwrap_or_else(|| args.dir.join("report.html"));
    write(&out, &report::html(&results))
}

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let results = args.dirs.iter().map(|dir| read(dir)).collect::<Result<Vec<_>, _>>()?;
    let mut out = std::io::stdout().lock();
    for one in &results {
        write!(out, "{}", summary(one))?;
    }
    write(&args.out, &report::compare(&results))
}

/// Reads results; a directory that holds none is the caller's mistake.
fn read(dir: &Path) -> Result<Results, Failure> {
    Results::read(dir).map_err(|e| Failure::Wrong(e.to_string()))
}

/// Writes a page and says where.
pub(crate) fn write(path: &Path, page: &str) -> Result<(), Failure> {
    save(path, page)?;
    writeln!(std::io::stdout(), "report: {}", path.display())?;
    Ok(())
}

/// Writes a page whole or not at all.
pub(crate) fn save(path: &Path, page: &str) -> Result<(), Failure> {
    Ok(disk::write(path, page.as_bytes())?)
}
