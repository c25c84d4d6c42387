//! The report: one HTML page that opens without a network.
//!
//! The page is `assets/report.html`, built from `web/`; the data is put into it as JSON. A report of a large sweep stays
//! usable because what is embedded is bounded, and the page says what was left out:
//! - a series has at most [`POINTS_PER_SERIES`] points: of every group of neighbouring samples, each column keeps its
//!   smallest and its largest value, so that a peak is never lost;
//! - the whole page stays below [`MAX_BYTES`]: first the series get coarser, then series are left out, those of later
//!   runs, of smaller flows and of UEs with less traffic first. The tables (Parquet) always hold everything.

mod series;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::tables::{FlowRow, LinkRow, MobilityRow, UeRow};
use crate::{Meta, Results, Summary, Timing};
use series::{Series, short};

/// Most points of a series.
pub const POINTS_PER_SERIES: usize = 1_500;
/// Most bytes of a report.
pub const MAX_BYTES: usize = 20_000_000;

/// Series get coarser down to this before any is left out.
const COARSEST: usize = 200;
/// Shares of [`MAX_BYTES`] for the summary and for rows of tables; series get the rest.
const SUMMARY_BYTES: usize = 4_000_000;
const ROWS_BYTES: usize = 4_000_000;
/// Room for [`Shown`] and the names around the series.
const SHOWN_BYTES: usize = 2_000;
/// What an entry of the summary takes, roughly.
const SUMMARY_ENTRY_BYTES: usize = 1_400;

/// The page without data.
const TEMPLATE: &str = include_str!("../assets/report.html");
/// Where the data goes.
const PLACEHOLDER: &str = "\"RANWAY-DATA\"";

/// One self-contained HTML page about `results`.
pub fn html(results: &Results) -> String {
    compare(std::slice::from_ref(results))
}

/// One self-contained HTML page about several results side by side.
pub fn compare(results: &[Results]) -> String {
    page(Default::default(), results, MAX_BYTES)
}

/// One self-contained HTML page: published figures beside measured ones, and below the results that they come from.
///
/// A row has the keys
///
/// | key | what |
/// | --- | --- |
/// | `paper`, `experiment` | texts; the rows of an experiment stand in one table, and those of a metric in one plot |
/// | `variant`, `parameter`, `metric`, `unit` | texts that may be empty; of a claim in words, `metric` is the claim |
/// | `published` | a number, a text (a range, a bound), or null for a claim in words |
/// | `published_ci`, `ci` | half the width of the confidence intervals, or null |
/// | `measured` | a number, a text (a range), or null |
/// | `floor` | the least that is physically possible, or missing |
/// | `verdict` | `held`, `missed` or `not possible yet` |
/// | `why` | a text, or missing |
///
/// and a figure
///
/// | key | what |
/// | --- | --- |
/// | `paper`, `experiment` | texts: the table that it stands below |
/// | `kind` | `lines`, `steps`, `means` (over names, with intervals) or `map` (a table of coloured cells) |
/// | `title`, `x`, `y`, `down` | texts: its title, its axes; of a map, what its columns, cells and rows are |
/// | `names` | texts: the places on the horizontal axis of `means` and `map` |
/// | `lines` | `label`, `x` and `y` (numbers, or null), `ci`, and whether it is `published` |
///
/// # Panics
/// If one of them cannot be written as JSON: it has a map whose keys are no texts.
pub fn reproduction<R: Serialize, F: Serialize>(rows: &[R], figures: &[F], results: &[Results]) -> String {
    page((rows.iter().map(raw).collect(), figures.iter().map(raw).collect()), results, MAX_BYTES)
}

#[derive(Serialize)]
struct Data<'a> {
    shown: Shown,
    reproduction: Vec<Box<RawValue>>,
    figures: Vec<Box<RawValue>>,
    results: Vec<Embedded<'a>>,
}

/// What the page holds, and of how much.
#[derive(Debug, Default, Serialize)]
struct Shown {
    points_per_series: usize,
    series: usize,
    series_of: usize,
    rows: usize,
    rows_of: usize,
    summaries: usize,
    summaries_of: usize,
    max_bytes: usize,
}

#[derive(Serialize)]
struct Embedded<'a> {
    meta: Cow<'a, Meta>,
    timing: &'a Timing,
    summary: Box<RawValue>,
    flows: Vec<Box<RawValue>>,
    links: Vec<Box<RawValue>>,
    ues: Vec<Box<RawValue>>,
    mobility: Vec<Box<RawValue>>,
    series: Vec<Box<RawValue>>,
}

/// Something to embed; if not all of it fits, the earlier ranks go first.
struct Ranked<T> {
    /// Run, rank within the run, point.
    rank: (u32, usize, u32),
    result: usize,
    what: T,
}

/// A row of a result's tables, by its index.
enum Row {
    Flow(usize),
    Link(usize),
    Ue(usize),
    Mobility(usize),
}

/// Rows of published and measured figures, and what is drawn of them.
type Reproduction = (Vec<Box<RawValue>>, Vec<Box<RawValue>>);

fn page((reproduction, figures): Reproduction, results: &[Results], max_bytes: usize) -> String {
    let mut shown = Shown { max_bytes, ..Shown::default() };
    let room = |share: usize| (share as f64 * (max_bytes as f64 / MAX_BYTES as f64)) as usize;
    let mut embedded = Vec::new();
    let points: usize = results.iter().map(|results| results.meta.points.len()).sum();
    let entries_per_point = (room(SUMMARY_BYTES) / SUMMARY_ENTRY_BYTES / points.max(1)).max(1);
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for (i, result) in results.iter().enumerate() {
        embedded.push(Embedded {
            meta: marked(&result.meta),
            timing: &result.timing,
            summary: raw(&rounded(cut(result.summary(), entries_per_point, &mut shown))),
            flows: Vec::new(),
            links: Vec::new(),
            ues: Vec::new(),
            mobility: Vec::new(),
            series: Vec::new(),
        });
        candidates(i, result, &mut rows, &mut series);
    }
    rows.sort_by_key(|row| row.rank);
    series.sort_by_key(|series| series.rank);
    (shown.rows_of, shown.series_of) = (rows.len(), series.len());

    let mut left = room(ROWS_BYTES);
    for row in rows {
        let (tables, embedded) = (&results[row.result].tables, &mut embedded[row.result]);
        let (into, text) = match row.what {
            Row::Flow(i) => (&mut embedded.flows, raw(&flow_json(&tables.flows.row(i)))),
            Row::Link(i) => (&mut embedded.links, raw(&link_json(&tables.links.row(i)))),
            Row::Ue(i) => (&mut embedded.ues, raw(&ue_json(&tables.ues.row(i)))),
            Row::Mobility(i) => (&mut embedded.mobility, raw(&mobility_json(&tables.mobility.row(i)))),
        };
        let Some(rest) = left.checked_sub(text.get().len() + 1) else { break };
        left = rest;
        shown.rows += 1;
        into.push(text);
    }

    let used = serde_json::to_string(&(&reproduction, &figures, &embedded)).map_or(0, |text| escaped(text).len())
        + TEMPLATE.len();
    let mut left = max_bytes.saturating_sub(used + SHOWN_BYTES);
    shown.points_per_series = points_that_fit(&series, left);
    for one in series {
        let text = raw(&one.what.json(shown.points_per_series));
        let Some(rest) = left.checked_sub(escaped(text.get().to_owned()).len() + 1) else { break };
        left = rest;
        shown.series += 1;
        embedded[one.result].series.push(text);
    }
    let data = serde_json::to_string(&Data { shown, reproduction, figures, results: embedded })
        .expect("string keys and plain values");
    TEMPLATE.replacen(PLACEHOLDER, &escaped(data), 1)
}

/// JSON that can stand inside a script element, which only `<` could end or turn into a comment.
fn escaped(json: String) -> String {
    if json.contains('<') { json.replace('<', "\\u003c") } else { json }
}

/// The most points per series with which all series fit into `bytes`, within the bounds.
fn points_that_fit(series: &[Ranked<Series<'_>>], bytes: usize) -> usize {
    let needed = |points: usize| series.iter().map(|one| one.what.estimated_bytes(points)).sum::<usize>();
    let mut points = POINTS_PER_SERIES;
    while points > COARSEST && needed(points) > bytes {
        points = (points * 4 / 5).max(COARSEST);
    }
    points
}

/// All that could be embedded of `results`.
fn candidates<'a>(
    result: usize,
    results: &'a Results,
    rows: &mut Vec<Ranked<Row>>,
    series: &mut Vec<Ranked<Series<'a>>>,
) {
    // The rank of a flow's copy within its run: by the bytes that it delivered.
    let mut flows: Vec<_> = results.tables.flows.iter().enumerate().collect();
    flows.sort_by_key(|(_, flow)| (flow.point, flow.run, std::cmp::Reverse(flow.bytes), flow.flow, flow.conn));
    let mut ranks: BTreeMap<(u32, u32, &str, u32), usize> = BTreeMap::new();
    let (mut rank, mut of) = (0, None);
    for (i, flow) in flows {
        let run = Some((flow.point, flow.run));
        rank = if of == run { rank + 1 } else { 0 };
        of = run;
        ranks.insert((flow.point, flow.run, flow.flow, flow.conn), rank);
        rows.push(Ranked { rank: (flow.run, rank, flow.point), result, what: Row::Flow(i) });
    }
    for (i, link) in results.tables.links.iter().enumerate() {
        rows.push(Ranked { rank: (link.run, 0, link.point), result, what: Row::Link(i) });
    }
    // The rank of a UE within its run: by the bits that it was sent and sent.
    let mut bits: BTreeMap<(u32, u32, &str), f64> = BTreeMap::new();
    for (i, ue) in results.tables.ues.iter().enumerate() {
        *bits.entry((ue.point, ue.run, ue.ue)).or_default() += ue.mbits;
        rows.push(Ranked { rank: (ue.run, 0, ue.point), result, what: Row::Ue(i) });
    }
    let mut ues: Vec<_> = bits.into_iter().collect();
    ues.sort_by(|((point, run, ue), a), (other, b)| {
        (*point, *run).cmp(&(other.0, other.1)).then(b.total_cmp(a)).then(ue.cmp(&other.2))
    });
    let mut ue_ranks: BTreeMap<(u32, u32, &str), usize> = BTreeMap::new();
    for group in ues.chunk_by(|(a, _), (b, _)| (a.0, a.1) == (b.0, b.1)) {
        ue_ranks.extend(group.iter().enumerate().map(|(rank, (ue, _))| (*ue, rank)));
    }
    // There may be many, and they are the first that a reader can do without.
    for (i, row) in results.tables.mobility.iter().enumerate() {
        rows.push(Ranked { rank: (row.run, usize::MAX, row.point), result, what: Row::Mobility(i) });
    }
    for one in series::of(&results.tables) {
        let of_copy = one.copy().and_then(|(flow, conn)| ranks.get(&(one.point, one.run, flow, conn)));
        let of_ue = one.ue().and_then(|ue| ue_ranks.get(&(one.point, one.run, ue)));
        let rank = of_copy.or(of_ue).copied().unwrap_or(0);
        series.push(Ranked { rank: (one.run, rank, one.point), result, what: one });
    }
}

/// The summary with at most so many flows, links and UEs at a point: those with the most goodput, and the busiest.
fn cut(mut summary: Summary, entries: usize, shown: &mut Shown) -> Summary {
    for point in &mut summary.points {
        shown.summaries_of += point.flows.len() + point.links.len() + point.ues.len();
        let mean = |stat: Option<crate::Stat>| stat.map_or(0.0, |stat| stat.mean);
        keep_largest(&mut point.flows, entries, |flow| mean(flow.goodput_mbps));
        keep_largest(&mut point.links, entries, |link| mean(link.utilisation));
        keep_largest(&mut point.ues, entries, |ue| mean(ue.downlink.scheduled_mbps) + mean(ue.uplink.scheduled_mbps));
        shown.summaries += point.flows.len() + point.links.len() + point.ues.len();
    }
    summary
}

/// Keeps the `n` entries with the largest `size`, in their order.
fn keep_largest<T>(entries: &mut Vec<T>, n: usize, size: impl Fn(&T) -> f64) {
    if entries.len() <= n {
        return;
    }
    let mut sizes: Vec<f64> = entries.iter().map(&size).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = sizes[n - 1];
    let mut left = n;
    entries.retain(|entry| {
        let keep = left > 0 && size(entry) >= least;
        left -= usize::from(keep);
        keep
    });
}

/// What was run; the title of partial results says that they are partial, wherever the page shows it.
fn marked(meta: &Meta) -> Cow<'_, Meta> {
    let Some(partial) = &meta.partial else { return Cow::Borrowed(meta) };
    let title = format!("{} (partial: {} of {} runs)", meta.title, partial.finished, partial.of);
    Cow::Owned(Meta { title: title.trim_start().to_owned(), partial: Some(partial.counts()), ..meta.clone() })
}

fn flow_json(flow: &FlowRow<'_>) -> Value {
    json!({
        "point": flow.point, "run": flow.run, "flow": flow.flow, "conn": flow.conn, "transport": flow.transport,
        "cc": flow.cc, "from": flow.from, "to": flow.to, "start_s": short(flow.start_s),
        "measured_from_s": short(flow.measured_from_s), "completion_s": flow.completion_s.map(short), "bytes": flow.bytes, "goodput_mbps": short(flow.goodput_mbps),
        "throughput_mbps": short(flow.throughput_mbps), "rtt_min_ms": flow.rtt_min_ms.map(short),
        "rtt_p50_ms": flow.rtt_p50_ms.map(short), "rtt_p95_ms": flow.rtt_p95_ms.map(short),
        "rtt_max_ms": flow.rtt_max_ms.map(short), "owd_p50_ms": flow.owd_p50_ms.map(short),
        "owd_p95_ms": flow.owd_p95_ms.map(short), "segments_sent": flow.segments_sent,
        "retransmitted": flow.retransmitted, "rtos": flow.rtos, "ce_marks": flow.ce_marks,
        "lost_packets": flow.lost_packets, "limited": [
            short(flow.limited_app), short(flow.limited_cwnd), short(flow.limited_rwnd), short(flow.limited_pacing),
            short(flow.limited_other),
        ],
        "mean_cwnd_bytes": short(flow.mean_cwnd_bytes),
    })
}

fn link_json(link: &LinkRow<'_>) -> Value {
    json!({
        "point": link.point, "run": link.run, "link": link.link, "packets_in": link.packets_in,
        "packets_out": link.packets_out, "bytes_out": link.bytes_out, "dropped_overflow": link.dropped_overflow,
        "dropped_control": link.dropped_control, "dropped_loss": link.dropped_loss, "marked": link.marked,
        "utilisation": short(link.utilisation), "sojourn_p50_ms": link.sojourn_p50_ms.map(short),
        "sojourn_p95_ms": link.sojourn_p95_ms.map(short), "sojourn_p99_ms": link.sojourn_p99_ms.map(short),
    })
}

fn ue_json(ue: &UeRow<'_>) -> Value {
    json!({
        "point": ue.point, "run": ue.run, "ue": ue.ue, "direction": ue.direction, "measured_s": short(ue.measured_s),
        "blocks": ue.blocks, "mbits": short(ue.mbits), "retransmissions": ue.retransmissions,
        "block_error_rate": short(ue.block_error_rate), "residual_errors": ue.residual_errors, "prbs": ue.prbs,
        "utilisation": short(ue.utilisation), "padding_bytes": ue.padding_bytes,
        "starved_blocks": ue.starved_blocks, "rlc_retx_pdus": ue.rlc_retx_pdus,
        "rlc_retx_bytes": ue.rlc_retx_bytes, "scheduling_requests": ue.scheduling_requests,
        "random_accesses": ue.random_accesses, "handovers": ue.handovers, "handover_failures": ue.handover_failures,
        "link_failures": ue.link_failures, "core_ms": short(ue.core_ms), "queue_ms": short(ue.queue_ms),
        "air_ms": short(ue.air_ms), "harq_ms": short(ue.harq_ms), "rlc_ms": short(ue.rlc_ms), "packets": ue.packets,
    })
}

fn mobility_json(row: &MobilityRow<'_>) -> Value {
    json!({
        "point": row.point, "run": row.run, "t_s": short(row.t_s), "ue": row.ue, "event": row.event, "cell": row.cell,
        "interruption_ms": row.interruption_ms.map(short),
    })
}

/// `summary` with numbers as short as the page needs them.
fn rounded(summary: Summary) -> Value {
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => *value = json!(short(number.as_f64().unwrap_or(0.0))),
            Value::Array(values) => values.iter_mut().for_each(round),
            Value::Object(values) => values.values_mut().for_each(round),
            _ => {}
        }
    }
    let mut points = Vec::new();
    for point in summary.points {
        // What was varied is the user's text, not ours to round.
        let values = json!(point.values);
        let mut point = json!(point);
        round(&mut point);
        point["values"] = values;
        points.push(point);
    }
    json!({ "points": points })
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("string keys and plain values")
}
