//! The report: one HTML page that opens without a network.
//!
//! The page is `assets/report.html`, built from `web/`; the data is embedded as JSON. The embedded data is bounded so that
//! the report of a large sweep stays usable, and the page states what was left out:
//! - a series has at most [`POINTS_PER_SERIES`] points: of every group of neighbouring samples, each column keeps its
//!   smallest and its largest value, so that a peak is never lost;
//! - of a sweep with more than two million rows in all tables, the first runs of all points come first, and the runs
//!   beyond are in the summary alone;
//! - the whole page stays below [`MAX_BYTES`]: first the series get coarser, then series are left out, those of later
//!   runs, of smaller flows and of UEs with less traffic first. The tables (Parquet) always hold everything.

mod chosen;
pub mod live;
mod rows;
mod series;
#[cfg(test)]
mod types;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::{Meta, PointSummary, Results, Summary, Timing};
pub(crate) use chosen::Chosen;
use series::{Series, short};

/// Maximum number of points of a series.
pub const POINTS_PER_SERIES: usize = 1_500;
/// Maximum size of a report in bytes.
pub const MAX_BYTES: usize = 20_000_000;

/// Number of points down to which series get coarser before any is left out.
const COARSEST: usize = 200;
/// Shares of [`MAX_BYTES`] for the summary and for rows of tables; series get the rest.
const SUMMARY_BYTES: usize = 4_000_000;
const ROWS_BYTES: usize = 4_000_000;
/// Bytes for [`Shown`] and the keys around the series.
const SHOWN_BYTES: usize = 2_000;
/// Approximate size of an entry of the summary.
const SUMMARY_ENTRY_BYTES: usize = 1_400;

/// The page without data.
const TEMPLATE: &str = include_str!("../assets/report.html");
/// The text in the page that the data replaces.
const PLACEHOLDER: &str = "\"RANWAY-DATA\"";

/// Returns a self-contained HTML page about `results`.
pub fn html(results: &Results) -> String {
    html_with(results, results.summary())
}

/// Returns the same with the summary of `results`, which has been computed.
pub(crate) fn html_with(results: &Results, summary: Summary) -> String {
    let (chosen, runs) = chosen::chosen(results);
    html_of(&chosen, summary, runs)
}

/// Returns the page with the `summary` of all runs, and the results of those that are [`Chosen`]: so many of so many.
pub(crate) fn html_of(results: &Results, summary: Summary, runs: (usize, usize)) -> String {
    page(Default::default(), &[results], vec![summary], runs, MAX_BYTES)
}

/// Returns a self-contained HTML page about several results side by side.
pub fn compare(results: &[Results]) -> String {
    page_of_all(Default::default(), results)
}

/// The page about several results, of the runs that are chosen of each.
fn page_of_all(reproduction: Reproduction, results: &[Results]) -> String {
    let (chosen, runs): (Vec<_>, Vec<_>) = results.iter().map(chosen::chosen).unzip();
    let runs = runs.into_iter().fold((0, 0), |sum, runs| (sum.0 + runs.0, sum.1 + runs.1));
    let chosen: Vec<&Results> = chosen.iter().map(|results| &**results).collect();
    page(reproduction, &chosen, results.iter().map(Results::summary).collect(), runs, MAX_BYTES)
}

/// Returns a self-contained HTML page: published figures beside measured ones, above the results that they come from.
///
/// A row has the keys
///
/// | key | value |
/// | --- | --- |
/// | `paper`, `experiment` | texts; the rows of an experiment stand in one table, and those of a metric in one plot |
/// | `variant`, `parameter`, `metric`, `unit` | texts that may be empty; of a claim in words, `metric` is the claim |
/// | `published` | a number, a text (a range, a bound), or null for a claim in words |
/// | `published_ci`, `ci` | half the width of the confidence intervals, or null |
/// | `measured` | a number, a text (a range), or null |
/// | `floor`, `ceiling` | the least and the most that is physically possible, or missing |
/// | `origin` | `paper`, `artefact` or `ours`: rows that are not the paper's are counted apart |
/// | `verdict` | `held`, `missed`, `impossible` or `not possible yet` |
/// | `expected` | what a claim in words is taken to mean, or what replaces a published number's tolerance; or missing |
/// | `tolerance`, `because` | a tolerance of the row's own, and its reason; or missing |
/// | `fitted`, `given` | the parameter that was chosen by this row, or why it holds by construction: it is counted apart; or missing |
/// | `why` | a text, or missing |
///
/// and a figure
///
/// | key | value |
/// | --- | --- |
/// | `paper`, `experiment` | texts: the table that it stands below |
/// | `kind` | `lines`, `steps`, `means` (over names, with intervals) or `map` (a table of coloured cells) |
/// | `title`, `x`, `y`, `down` | texts: its title, its axes; for a map, the meaning of its columns, cells and rows |
/// | `names` | texts: the places on the horizontal axis of `means` and `map` |
/// | `lines` | `label`, `x` and `y` (numbers, or null), `ci`, and whether it is `published` |
///
/// # Panics
/// If a row or figure cannot be written as JSON because a map in it has keys that are not strings.
pub fn reproduction<R: Serialize, F: Serialize>(rows: &[R], figures: &[F], results: &[Results]) -> String {
    let reproduction = (rows.iter().map(raw).collect(), figures.iter().map(raw).collect());
    page_of_all(reproduction, results)
}

#[derive(Serialize)]
struct Data<'a> {
    shown: Shown,
    reproduction: Vec<Box<RawValue>>,
    figures: Vec<Box<RawValue>>,
    results: Vec<Embedded<'a>>,
}

/// How much the page holds of what was recorded (`*_of`).
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Shown {
    points_per_series: usize,
    runs: usize,
    runs_of: usize,
    series: usize,
    series_of: usize,
    rows: usize,
    rows_of: usize,
    summaries: usize,
    summaries_of: usize,
    max_bytes: usize,
}

/// A result in the page. Its rows and series are JSON already, so that their sizes are known.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Result"))]
struct Embedded<'a> {
    meta: Cow<'a, Meta>,
    timing: &'a Timing,
    #[cfg_attr(test, ts(as = "EmbeddedSummary"))]
    summary: Box<RawValue>,
    #[cfg_attr(test, ts(as = "Vec<rows::FlowRow<'a>>"))]
    flows: Vec<Box<RawValue>>,
    #[cfg_attr(test, ts(as = "Vec<rows::LinkRow<'a>>"))]
    links: Vec<Box<RawValue>>,
    #[cfg_attr(test, ts(as = "Vec<rows::UeRow<'a>>"))]
    ues: Vec<Box<RawValue>>,
    #[cfg_attr(test, ts(as = "Vec<rows::MobilityRow<'a>>"))]
    mobility: Vec<Box<RawValue>>,
    #[cfg_attr(test, ts(as = "Vec<rows::CommandRow<'a>>"))]
    commands: Vec<Box<RawValue>>,
    #[cfg_attr(test, ts(as = "Vec<series::Embedded<'a>>"))]
    series: Vec<Box<RawValue>>,
}

/// The part of the summary that the page holds.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Summary"))]
struct EmbeddedSummary {
    #[cfg_attr(test, ts(as = "Vec<crate::summary::PointSummary>"))]
    points: Vec<Value>,
}

/// A candidate for embedding. Candidates with smaller ranks are embedded first.
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
    Command(usize),
}

/// Rows of published and measured values, and the figures drawn from them.
type Reproduction = (Vec<Box<RawValue>>, Vec<Box<RawValue>>);

fn page(
    (reproduction, figures): Reproduction,
    results: &[&Results],
    summaries: Vec<Summary>,
    (runs, runs_of): (usize, usize),
    max_bytes: usize,
) -> String {
    let mut shown = Shown { runs, runs_of, max_bytes, ..Shown::default() };
    let room = |share: usize| (share as f64 * (max_bytes as f64 / MAX_BYTES as f64)) as usize;
    let mut embedded = Vec::new();
    let points: usize = results.iter().map(|results| results.meta.points.len()).sum();
    let entries_per_point = (room(SUMMARY_BYTES) / SUMMARY_ENTRY_BYTES / points.max(1)).max(1);
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    for ((i, result), summary) in results.iter().enumerate().zip(summaries) {
        embedded.push(Embedded {
            meta: marked(&result.meta),
            timing: &result.timing,
            summary: raw(&EmbeddedSummary {
                points: embedded_points(cut(summary, entries_per_point, &mut shown).points),
            }),
            flows: Vec::new(),
            links: Vec::new(),
            ues: Vec::new(),
            mobility: Vec::new(),
            commands: Vec::new(),
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
            Row::Flow(i) => (&mut embedded.flows, raw(&rows::FlowRow::from(tables.flows.row(i)))),
            Row::Link(i) => (&mut embedded.links, raw(&rows::LinkRow::from(tables.links.row(i)))),
            Row::Ue(i) => (&mut embedded.ues, raw(&rows::UeRow::from(tables.ues.row(i)))),
            Row::Mobility(i) => (&mut embedded.mobility, raw(&rows::MobilityRow::from(tables.mobility.row(i)))),
            Row::Command(i) => (&mut embedded.commands, raw(&rows::CommandRow::from(tables.commands.row(i)))),
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
        let text = raw(&one.what.embedded(shown.points_per_series));
        let Some(rest) = left.checked_sub(escaped(text.get().to_owned()).len() + 1) else { break };
        left = rest;
        shown.series += 1;
        embedded[one.result].series.push(text);
    }
    let data = serde_json::to_string(&Data { shown, reproduction, figures, results: embedded })
        .expect("string keys and plain values");
    TEMPLATE.replacen(PLACEHOLDER, &escaped(data), 1)
}

/// Escapes `<` in JSON, the only character that could end the script element or turn it into a comment.
fn escaped(json: String) -> String {
    if json.contains('<') { json.replace('<', "\\u003c") } else { json }
}

/// Returns the largest number of points per series, within the bounds, with which all series fit into `bytes`.
fn points_that_fit(series: &[Ranked<Series<'_>>], bytes: usize) -> usize {
    let needed = |points: usize| series.iter().map(|one| one.what.estimated_bytes(points)).sum::<usize>();
    let mut points = POINTS_PER_SERIES;
    while points > COARSEST && needed(points) > bytes {
        points = (points * 4 / 5).max(COARSEST);
    }
    points
}

/// Collects everything in `results` that could be embedded.
fn candidates<'a>(
    result: usize,
    results: &'a Results,
    rows: &mut Vec<Ranked<Row>>,
    series: &mut Vec<Ranked<Series<'a>>>,
) {
    // Copies of flows are ranked within their run by delivered bytes.
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
    // UEs are ranked within their run by the bits of both directions.
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
    for (i, row) in results.tables.commands.iter().enumerate() {
        rows.push(Ranked { rank: (row.run, 0, row.point), result, what: Row::Command(i) });
    }
    // Mobility events come last: there may be many, and they matter least.
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

/// Keeps at most `entries` flows, links and UEs of each point.
fn cut(summary: Summary, entries: usize, shown: &mut Shown) -> Summary {
    let count = |point: &PointSummary| point.flows.len() + point.links.len() + point.ues.len();
    shown.summaries_of += summary.points.iter().map(count).sum::<usize>();
    let points: Vec<PointSummary> = summary.points.into_iter().map(|point| cut_point(point, entries)).collect();
    shown.summaries += points.iter().map(count).sum::<usize>();
    Summary { points, ..summary }
}

/// Keeps at most `entries` flows, links and UEs of a point: those with the most goodput and the busiest.
fn cut_point(mut point: PointSummary, entries: usize) -> PointSummary {
    let mean = |stat: Option<crate::Stat>| stat.map_or(0.0, |stat| stat.mean);
    keep_largest(&mut point.flows, entries, |flow| mean(flow.goodput_mbps));
    keep_largest(&mut point.links, entries, |link| mean(link.utilisation));
    keep_largest(&mut point.ues, entries, |ue| mean(ue.downlink.scheduled_mbps) + mean(ue.uplink.scheduled_mbps));
    point
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

/// Adds to the title of partial results that they are partial, so that the page shows it with the title.
fn marked(meta: &Meta) -> Cow<'_, Meta> {
    let Some(partial) = &meta.partial else { return Cow::Borrowed(meta) };
    let title = format!("{} (partial: {} of {} runs)", meta.title, partial.finished, partial.of);
    Cow::Owned(Meta { title: title.trim_start().to_owned(), partial: Some(partial.counts()), ..meta.clone() })
}

/// Returns the page's part of the summaries of points, with numbers shortened.
fn embedded_points(summaries: Vec<PointSummary>) -> Vec<Value> {
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => *value = json!(short(number.as_f64().unwrap_or(0.0))),
            Value::Array(values) => values.iter_mut().for_each(round),
            Value::Object(values) => values.values_mut().for_each(round),
            _ => {}
        }
    }
    let mut points = Vec::new();
    for point in summaries {
        // The varied values are the user's and are not rounded.
        let values = json!(point.values);
        let mut point = json!(point);
        round(&mut point);
        point["values"] = values;
        points.push(point);
    }
    points
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("string keys and plain values")
}
