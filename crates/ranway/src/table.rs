//! The table of flows, sized to the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use console::{Term, measure_text_width};
use record::figures::Figure;
use record::means::with_interval;
use record::tables::{FlowRow, TcpFlowRow};
use record::{FlowSummary, Limited, Means, Point, Results, Stat, Summary, Timing};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of rows printed; the report has all rows.
const MAX_ROWS: usize = 40;
/// Narrower terminals are treated as this wide.
const NARROWEST: usize = 40;
/// Padding of a column.
const PADDING: usize = 2;

/// A column of the table of flows.
enum Column {
    /// A text: its head and its cell.
    Text(&'static str, fn(&FlowSummary) -> Option<String>),
    /// A figure of the catalogue: its name there, its head, and the digits of a value without an interval.
    Number(&'static str, Head, usize),
}

/// The head of a figure's column.
enum Head {
    /// The catalogue's, with the unit.
    Whole,
    /// A shorter one, with the unit.
    Short(&'static str),
    /// The last word of the catalogue's: the rest and the unit are those of the column before.
    Last,
}

const COLUMNS: [Column; 11] = [
    Column::Text("flow", |flow| Some(flow.flow.clone())),
    Column::Text("cc", |flow| flow.cc.clone()),
    Column::Number("goodput_mbps", Head::Whole, 2),
    Column::Number("rtt_p50_ms", Head::Whole, 1),
    Column::Number("rtt_p95_ms", Head::Last, 1),
    Column::Number("owd_p50_ms", Head::Whole, 1),
    Column::Number("owd_p95_ms", Head::Last, 1),
    Column::Number("loss", Head::Whole, 2),
    Column::Number("completion_s", Head::Whole, 3),
    Column::Number("retransmission_rate", Head::Short("retrans."), 2),
    Column::Text("limited by", limits),
];

impl Column {
    /// The head of the column.
    fn head(&self) -> String {
        match self {
            Column::Text(head, _) => (*head).to_owned(),
            Column::Number(name, Head::Whole, _) => format!("{} {}", figure(name).head, figure(name).shown_unit),
            Column::Number(name, Head::Short(head), _) => format!("{head} {}", figure(name).shown_unit),
            Column::Number(name, Head::Last, _) => figure(name).head.rsplit(' ').next().unwrap_or_default().to_owned(),
        }
    }

    /// Its name where the columns beside it are not shown.
    fn name(&self) -> &'static str {
        match self {
            Column::Text(head, _) => head,
            Column::Number(name, ..) => figure(name).head,
        }
    }

    fn cell(&self, flow: &FlowSummary) -> Option<String> {
        match self {
            Column::Text(_, cell) => cell(flow),
            Column::Number(name, _, digits) => Some(stat((figure(name).of)(flow)?, figure(name).scale, *digits)),
        }
    }
}

/// The figure of this name.
fn figure(name: &str) -> &'static Figure<FlowSummary> {
    record::figures::of_flows(name).expect("the catalogue has it")
}

const ONE_WAY: [usize; 2] = [5, 6];

/// The columns that are omitted on a narrow terminal, in this order.
const DISPENSABLE: [usize; 8] = [10, 9, 1, 8, 4, 6, 7, 3];

/// Returns the width limit of tables: the terminal's width; none if the output is not a terminal or `wide` is set.
pub(crate) fn width(term: &Term, wide: bool) -> Option<usize> {
    if wide {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns
        .or_else(|| term.size_checked().map(|(_, columns)| columns.into()))
        .map(|columns: usize| columns.max(NARROWEST))
}

/// Formats a table of means, in lines of at most `width` characters.
pub(crate) fn means(means: &Means, width: Option<usize>) -> String {
    let (head, rows) = means.cells();
    let mut table = table(&head.iter().map(String::as_str).collect::<Vec<_>>(), width);
    for place in means.texts()..head.len() {
        table.column_mut(place).expect("the table has it").set_cell_alignment(CellAlignment::Right);
    }
    rows.iter().for_each(|row| _ = table.add_row(row));
    format!("{table}\n")
}

/// Formats the summary of a run: one row for each flow at each point, in lines of at most `width` characters.
pub(crate) fn summary(results: &Results, width: Option<usize>) -> String {
    of_summary(&results.summary(), &results.timing, width)
}

/// The same, of results whose summary was made before.
pub(crate) fn of_summary(summary: &Summary, timing: &Timing, width: Option<usize>) -> String {
    let mut text = String::new();
    if !summary.title.is_empty() {
        let _ = writeln!(text, "{}", summary.title);
    }
    if let Some(partial) = &summary.partial {
        let (finished, of) = (partial.finished, partial.of);
        let _ = writeln!(text, "PARTIAL RESULTS: {finished} of {of} runs");
    }
    let all = || summary.points.iter().flat_map(|point| point.flows.iter().map(move |flow| (point, flow)));
    let rows = all().take(MAX_ROWS).map(|(point, flow)| {
        let cells = COLUMNS.iter().map(|column| column.cell(flow)).collect();
        (Point { values: point.values.clone() }.label(), cells)
    });
    // For TCP, round-trip times are more informative than one-way delays.
    let one_way = all().any(|(_, flow)| flow.transport != "tcp" && flow.owd_p50_ms.is_some());
    Flows::new(rows.collect(), one_way).write(&mut text, width);
    if all().count() > MAX_ROWS {
        let _ = writeln!(text, "{} more rows are in the report", all().count() - MAX_ROWS);
    }
    if let Some(note) = identical(summary) {
        wrap(&note, width.unwrap_or(usize::MAX)).iter().for_each(|part| _ = writeln!(text, "{part}"));
    }
    let _ = match timing.lateness {
        Some(_) => writeln!(text, "{:.0} s emulated, {} packets", timing.simulated_s, timing.packets),
        None => {
            let taken = match timing.wall_s {
                Some(wall) => format!("{wall:.2} s"),
                None => format!("{:.2} s of processor time", timing.cpu_s),
            };
            writeln!(text, "{:.0} s simulated in {taken}, {} data packets", timing.simulated_s, timing.packets)
        }
    };
    text
}

/// A column of the table of an analysis: its head, and its cell of a flow, with what its packets tell.
type Analysed = (&'static str, fn(&FlowRow<'_>, Option<&TcpFlowRow<'_>>) -> Option<String>);

const ANALYSED: [Analysed; 20] = [
    ("MB", |flow, _| Some(format!("{:.2}", flow.bytes as f64 / 1e6))),
    ("Mbit/s", |flow, _| Some(format!("{:.2}", flow.goodput_mbps))),
    ("RTT min ms", |flow, _| digits(flow.rtt_min_ms, 1)),
    ("RTT p50 ms", |flow, _| digits(flow.rtt_p50_ms, 1)),
    ("p95", |flow, _| digits(flow.rtt_p95_ms, 1)),
    // Some tools tell it instead of quantiles.
    ("RTT mean ms", |flow, _| digits(flow.rtt_mean_ms.filter(|_| flow.rtt_p50_ms.is_none()), 1)),
    ("retrans.", |flow, _| flow.retransmitted_data().map(|again| again.to_string())),
    ("%", |flow, _| digits(flow.retransmitted_share().map(|share| share * 100.0), 2)),
    ("spurious", |_, of| of?.spurious.map(|count| count.to_string())),
    ("reordered", |_, of| Some(of?.out_of_order.to_string())),
    ("timeouts", |flow, of| of.map_or(flow.rtos, |of| of.timeouts).map(|count| count.to_string())),
    ("max in flight kB", |flow, _| digits(flow.max_in_flight_bytes.map(|bytes| bytes as f64 / 1e3), 0)),
    ("pipe kB", |_, of| digits(of?.max_pipe_bytes.map(|bytes| bytes as f64 / 1e3), 0)),
    ("max cwnd kB", |flow, _| digits(flow.max_cwnd_bytes.map(|bytes| bytes as f64 / 1e3), 0)),
    ("one-way p50 ms", |flow, _| digits(flow.owd_p50_ms, 1)),
    ("p95", |flow, _| digits(flow.owd_p95_ms, 1)),
    // With two captures, or as a receiver told.
    ("lost", |flow, _| flow.lost_packets.map(|lost| lost.to_string())),
    // Of TCP, packets of both directions.
    ("lost %", |flow, _| {
        digits(per_cent(flow.lost_packets, flow.segments_sent).filter(|_| flow.transport != "tcp"), 2)
    }),
    ("jitter ms", |flow, _| digits(flow.jitter_ms, 2)),
    ("TEID", |flow, _| flow.teid.map(|teid| format!("{teid:#x}"))),
];

fn digits(value: Option<f64>, digits: usize) -> Option<String> {
    value.map(|value| format!("{value:.digits$}"))
}

fn per_cent(part: Option<u64>, of: Option<u64>) -> Option<f64> {
    let of = of.filter(|of| *of > 0)?;
    Some(part? as f64 / of as f64 * 100.0)
}

/// Formats the flows of an analysis, those with most bytes first: one row each, in lines of at most `width` characters. Columns without
/// values are left out.
pub(crate) fn analysis(results: &Results, width: Option<usize>) -> String {
    let mut tcp: BTreeMap<(u32, &str, u32), TcpFlowRow<'_>> = BTreeMap::new();
    tcp.extend(results.tables.tcp_flows.iter().map(|row| ((row.point, row.flow, row.conn), row)));
    let mut flows: Vec<_> = results.tables.flows.iter().collect();
    flows.sort_by(|a, b| a.point.cmp(&b.point).then(b.bytes.cmp(&a.bytes)));
    let points = &results.meta.points;
    let rows: Vec<(&FlowRow<'_>, Vec<Option<String>>)> = flows
        .iter()
        .take(MAX_ROWS)
        .map(|flow| {
            let of = tcp.get(&(flow.point, flow.flow, flow.conn));
            (flow, ANALYSED.iter().map(|(_, cell)| cell(flow, of)).collect())
        })
        .collect();
    let is_told = |column: &usize| rows.iter().any(|(_, cells)| cells[*column].is_some());
    let shown: Vec<usize> = (0..ANALYSED.len()).filter(is_told).collect();
    let head: Vec<&str> = ["flow"].into_iter().chain(shown.iter().map(|&column| ANALYSED[column].0)).collect();
    let mut table = table(&head, width);
    for column in 1..head.len() {
        table.column_mut(column).expect("the table has it").set_cell_alignment(CellAlignment::Right);
    }
    let mut text = String::new();
    let mut before = None;
    for (flow, cells) in &rows {
        if points.len() > 1 && before != Some(flow.point) {
            before = Some(flow.point);
            table.add_row([points[flow.point as usize].label()]);
        }
        let name = if flow.conn > 0 { format!("{} #{}", flow.flow, flow.conn + 1) } else { flow.flow.to_owned() };
        let cells = shown.iter().map(|&column| cells[column].clone().unwrap_or_else(|| "-".to_owned()));
        table.add_row([name].into_iter().chain(cells));
    }
    let _ = writeln!(text, "{table}");
    if flows.len() > MAX_ROWS {
        let _ = writeln!(text, "{} more rows are in the tables", flows.len() - MAX_ROWS);
    }
    for clock in results.tables.clocks.iter() {
        let (drift, drift_bound) = (clock.drift_ppm, clock.drift_bound_ppm);
        let clocks = format!(
            "clocks: {} is ahead of {} by {:.3} ± {:.3} ms, and faster by {drift:.1} ± {drift_bound:.1} ppm ({} packets)",
            clock.other, clock.file, clock.offset_ms, clock.offset_bound_ms, clock.matched
        );
        wrap(&clocks, width.unwrap_or(usize::MAX)).iter().for_each(|part| _ = writeln!(text, "{part}"));
    }
    text
}

/// Formats what held the senders of the largest flows back: a line for each, broken at `width` characters.
#[cfg(feature = "live")]
pub(crate) fn verdicts(results: &Results, all: &[analyse::Why], width: Option<usize>) -> String {
    const INDENT: &str = "  ";
    let points = &results.meta.points;
    let (mut text, mut before) = (String::new(), None);
    for why in all {
        if before.is_none() {
            let _ = writeln!(text, "what held the senders back:");
        }
        if points.len() > 1 && before != Some(why.point) {
            let _ = writeln!(text, "{}", points[why.point as usize].label());
        }
        before = Some(why.point);
        let number = if why.conn > 0 { format!(" #{}", why.conn + 1) } else { String::new() };
        let said = match why.told_in {
            Some(told_in) if told_in != why.point => format!("as in {}", points[told_in as usize].label()),
            _ => why.verdict.clone(),
        };
        let line = format!("{}{number}: {said}", why.flow);
        let room = width.unwrap_or(usize::MAX).saturating_sub(2 * INDENT.len()).max(1);
        for (place, part) in wrap(&line, room).iter().enumerate() {
            let _ = writeln!(text, "{INDENT}{}{part}", if place > 0 { INDENT } else { "" });
        }
    }
    text
}

/// Returns a warning if repetitions gave identical results.
fn identical(summary: &Summary) -> Option<String> {
    let points = summary.points.iter().filter(|point| point.identical_runs).count();
    let runs = summary.runs;
    let which = if points == summary.points.len() { String::new() } else { format!(" of {points} points") };
    (points > 0).then(|| {
        format!(
            "warning: all {runs} runs{which} are identical and count as one, because nothing in the scenario is random. Vary \
             them with `start_jitter` in [[flows]] or with loss or jitter on a link, or leave out `runs`"
        )
    })
}

/// The rows of flows, each with its point's label and its cells by column.
struct Flows {
    rows: Vec<(String, Vec<Option<String>>)>,
    /// The columns that have at least one value.
    shown: Vec<usize>,
}

impl Flows {
    fn new(rows: Vec<(String, Vec<Option<String>>)>, one_way: bool) -> Flows {
        let used = |&column: &usize| rows.iter().any(|(_, cells)| cells[column].is_some());
        let wanted = |&column: &usize| one_way || !ONE_WAY.contains(&column);
        let shown = (0..COLUMNS.len()).filter(used).filter(wanted).collect();
        Flows { rows, shown }
    }

    fn cell(&self, row: usize, column: usize) -> &str {
        self.rows[row].1[column].as_deref().unwrap_or("-")
    }

    /// Returns the total width of the columns.
    fn columns_width(&self) -> usize {
        let width = |&column: &usize| {
            let cells = (0..self.rows.len()).map(|row| measure_text_width(self.cell(row, column)));
            cells.chain([COLUMNS[column].head().len()]).max().unwrap_or(0) + PADDING
        };
        self.shown.iter().map(width).sum()
    }

    fn labels_width(&self) -> usize {
        self.rows.iter().map(|(label, _)| measure_text_width(label)).max().unwrap_or(0) + PADDING
    }

    /// Writes the table. If they fit, the points' labels form the first column; otherwise they stand above their rows.
    /// Columns that do not fit are omitted.
    fn write(mut self, text: &mut String, width: Option<usize>) {
        let room = width.unwrap_or(usize::MAX);
        if self.labels_width() + self.columns_width() <= room {
            let _ = writeln!(text, "{}", self.table(true, width));
            return;
        }
        let mut left_out = Vec::new();
        for column in DISPENSABLE {
            if self.columns_width() + PADDING <= room {
                break;
            }
            if let Some(place) = self.shown.iter().position(|&shown| shown == column) {
                self.shown.remove(place);
                left_out.push(column);
            }
        }
        // Lays out one table and splits it at the labels, so that all points have the same columns.
        let table = self.table(false, width).to_string();
        if table.lines().count() == self.rows.len() + 1 {
            let mut lines = table.lines();
            let _ = writeln!(text, "{}", lines.next().unwrap_or_default());
            let mut before = "";
            for ((label, _), line) in self.rows.iter().zip(lines) {
                if label != before {
                    wrap(label, room).iter().for_each(|part| _ = writeln!(text, "{part}"));
                }
                before = label;
                let _ = writeln!(text, "{line}");
            }
        } else {
            // Cells were wrapped even so: a row takes several lines.
            let _ = writeln!(text, "{}", self.table(true, width));
        }
        if !left_out.is_empty() {
            left_out.sort_unstable();
            let names: Vec<&str> = left_out.iter().map(|&column| COLUMNS[column].name()).collect();
            let note = format!("omitted for lack of space: {} (--wide shows all)", names.join(", "));
            wrap(&note, room).iter().for_each(|part| _ = writeln!(text, "{part}"));
        }
    }

    fn table(&self, labels: bool, width: Option<usize>) -> Table {
        let heads: Vec<String> = self.shown.iter().map(|&column| COLUMNS[column].head()).collect();
        let mut table = table(&[""].into_iter().chain(heads.iter().map(String::as_str)).collect::<Vec<_>>(), width);
        for (place, &column) in (1..).zip(&self.shown) {
            if matches!(COLUMNS[column], Column::Number(..)) {
                table.column_mut(place).expect("the table has it").set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut before = "";
        for row in 0..self.rows.len() {
            let label = &self.rows[row].0;
            let shown = if labels && label != before { label } else { "" };
            before = label;
            table.add_row([shown].into_iter().chain(self.shown.iter().map(|&column| self.cell(row, column))));
        }
        table
    }
}

/// Breaks text into lines of at most `width` characters, at spaces if possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one at least");
        if !line.is_empty() && measure_text_width(line) + 1 + measure_text_width(word) > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Creates an empty table in the style of all our tables. Cells are wrapped if it would be wider than `width`.
pub(crate) fn table(head: &[&str], width: Option<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head.iter().copied());
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    table
}

/// Formats a value in multiples of `1 / scale`, with its confidence interval, which tells its digits, if it has one.
fn stat(stat: Stat, scale: f64, digits: usize) -> String {
    let mean = stat.mean * scale;
    match stat.ci95 {
        Some(ci) => with_interval(mean, Some(ci * scale)),
        None => format!("{mean:.digits$}"),
    }
}

/// Lists what limited a flow for most of its time, such as `cwnd 93 %`.
fn limits(flow: &FlowSummary) -> Option<String> {
    let Limited { app, cwnd, rwnd, pacing, sndbuf, other: _ } = flow.limited.as_ref()?;
    let sndbuf = sndbuf.map_or(0.0, |sndbuf| sndbuf.mean);
    let mut shares =
        [("app", app.mean), ("cwnd", cwnd.mean), ("rwnd", rwnd.mean), ("pacing", pacing.mean), ("sndbuf", sndbuf)];
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let named = shares.iter().filter(|s| s.1 >= 0.1).map(|(name, share)| format!("{name} {:.0} %", share * 100.0));
    Some(named.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(points: usize) -> Vec<(String, Vec<Option<String>>)> {
        let cell = |column: usize| match column {
            0 => "download".to_owned(),
            1 => "cubic".to_owned(),
            10 => "pacing 50 %, cwnd 50 %".to_owned(),
            _ => "123.45 ± 67.89".to_owned(),
        };
        let label =
            |point| format!("dumbbell.queue = {{ kind = \"drop-tail\", packets = 500 }}, flows.*.cc = point {point}");
        (0..points).map(|point| (label(point), (0..COLUMNS.len()).map(|column| Some(cell(column))).collect())).collect()
    }

    fn written(width: Option<usize>) -> String {
        let mut text = String::new();
        Flows::new(rows(3), true).write(&mut text, width);
        text
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 40..=260 {
            let text = written(Some(width));
            for line in text.lines() {
                assert!(measure_text_width(line) <= width, "{width}: {} in {line}", measure_text_width(line));
            }
            assert!(text.contains("123.45"), "{width}: {text}");
        }
    }

    #[test]
    fn omitted_columns_are_named_and_wide_output_omits_none() {
        let narrow = written(Some(80));
        assert!(narrow.contains("omitted for lack of space: ") && narrow.contains("limited by"), "{narrow}");
        assert!(narrow.contains("--wide") && narrow.contains("point 2"), "{narrow}");
        let wide = written(None);
        assert!(!wide.contains("omitted") && wide.contains("pacing 50 %, cwnd 50 %"), "{wide}");
        assert!(wide.lines().all(|line| measure_text_width(line) > 200), "{wide}");
    }

    #[test]
    fn heads_and_units_are_those_of_the_catalogue() {
        let heads = COLUMNS.map(|column| column.head());
        let numbers =
            ["goodput Mbit/s", "RTT p50 ms", "p95", "one-way p50 ms", "p95", "loss %", "completion s", "retrans. %"];
        assert_eq!(heads[2..10], numbers);
        assert_eq!(COLUMNS[4].name(), "RTT p95");
        let stat = Stat { n: 1, mean: 0.0123, ci95: None, min: 0.0123, max: 0.0123 };
        assert_eq!(super::stat(stat, figure("loss").scale, 2), "1.23");
    }

    #[test]
    fn columns_without_a_value_are_hidden() {
        let mut rows = rows(1);
        rows[0].1[8] = None;
        let flows = Flows::new(rows, false);
        assert_eq!(flows.shown, [0, 1, 2, 3, 4, 7, 9, 10]);
    }

    #[test]
    fn an_analysis_shows_what_a_tool_tells_and_no_column_without_values() {
        let mut results = Results::default();
        results.meta.points.push(record::Point::default());
        let row =
            FlowRow { flow: "udp a > b", transport: "udp", bytes: 1_000_000, goodput_mbps: 5.0, ..FlowRow::default() };
        let told = FlowRow { segments_sent: Some(400), lost_packets: Some(100), jitter_ms: Some(1.5), ..row };
        results.tables.flows.push(&told);
        let text = analysis(&results, None);
        let [head, cells] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert_eq!(head.split_whitespace().collect::<Vec<_>>().join(" "), "flow MB Mbit/s lost lost % jitter ms");
        assert_eq!(cells.split_whitespace().collect::<Vec<_>>().join(" "), "udp a > b 1.00 5.00 100 25.00 1.50");
    }
}
