//! The values of a test, from its tables.

use std::collections::BTreeMap;

use record::tables::FlowRow;
use record::{Results, Tables};

use crate::bootstrap::median;
use crate::plan::Combination;

/// Lengths of the windows of [`Values::jain_windows`] in seconds.
const WINDOWS_S: [f64; 3] = [0.1, 1.0, 5.0];

/// The values of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowValues {
    /// Goodput in Mbit/s.
    pub goodput_mbps: f64,
    /// Median round-trip time in ms.
    pub rtt_ms: Option<f64>,
    /// 95th percentile of the round-trip time in ms.
    pub rtt_p95_ms: Option<f64>,
    /// Retransmitted segments over all segments; `None` if this end does not know.
    pub retransmitted: Option<f64>,
}

/// The values of a test in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The name of the flows: `download` or `upload`.
    pub name: &'static str,
    /// Bytes of all flows.
    pub bytes: u64,
    /// From the start of the first flow to the end of the last, in seconds.
    pub span_s: f64,
    /// All bytes over that span, in Mbit/s.
    pub throughput_mbps: f64,
    /// Jain's fairness index of the flows' goodput, over the whole test.
    pub jain: f64,
    /// Its mean over windows of 0.1, 1 and 5 s in the time in which all flows transfer. Windows in which nothing arrives are left
    /// out. `None` if there is no window, or if samples are on average further apart than it is long.
    pub jain_windows: [Option<f64>; 3],
    /// The flows.
    pub flows: Vec<FlowValues>,
}

/// A measure: its name, its unit, and its values in a test.
pub(crate) type Measure = (&'static str, &'static str, fn(&Values) -> Vec<f64>);

fn flows(values: &Values, of: fn(&FlowValues) -> Option<f64>) -> Vec<f64> {
    values.flows.iter().filter_map(of).collect()
}

/// All measures. Those that begin with `flow_` have a value for each flow, the others one for each test.
pub(crate) const MEASURES: [Measure; 9] = [
    ("throughput_mbps", "Mbit/s", |test| vec![test.throughput_mbps]),
    ("jain", "1", |test| vec![test.jain]),
    ("jain_100ms", "1", |test| Vec::from_iter(test.jain_windows[0])),
    ("jain_1s", "1", |test| Vec::from_iter(test.jain_windows[1])),
    ("jain_5s", "1", |test| Vec::from_iter(test.jain_windows[2])),
    ("flow_goodput_mbps", "Mbit/s", |test| flows(test, |flow| Some(flow.goodput_mbps))),
    ("flow_rtt_ms", "ms", |test| flows(test, |flow| flow.rtt_ms)),
    ("flow_rtt_p95_ms", "ms", |test| flows(test, |flow| flow.rtt_p95_ms)),
    ("flow_retransmitted", "1", |test| flows(test, |flow| flow.retransmitted)),
];

/// Returns the measures that mean something with a number of flows: one flow is always fair to itself.
fn measures_of(flows: u32) -> impl Iterator<Item = Measure> {
    MEASURES.into_iter().filter(move |(name, _, _)| flows > 1 || !name.starts_with("jain"))
}

/// By the names of flows (`download`, `upload`) and of measures.
pub(crate) type ByMeasure<T> = BTreeMap<&'static str, BTreeMap<&'static str, T>>;

/// Collects what `of` finds for each kind of flows of a combination, given the place of their direction and their name, and each measure.
pub(crate) fn by_measure<T>(
    combination: &Combination,
    of: impl Fn((usize, &'static str), Measure) -> Option<T>,
) -> ByMeasure<T> {
    let flows = combination.direction.flows().iter().copied().enumerate();
    let all = flows.map(|flows| {
        let found = |measure: Measure| Some((measure.0, of(flows, measure)?));
        (flows.1, measures_of(combination.flows).filter_map(found).collect::<BTreeMap<_, _>>())
    });
    all.filter(|(_, found)| !found.is_empty()).collect()
}

/// The one value of a test: the median of its flows.
pub(crate) fn of_test(values: &Values, of: fn(&Values) -> Vec<f64>) -> Option<f64> {
    median(&mut of(values))
}

/// Returns the values of a test in each of its directions. With `complete`, all transfers must have ended.
///
/// # Errors
/// Why the test is not valid: a flow is missing, has not finished, or nothing was transferred.
pub fn values(results: &Results, combination: &Combination, complete: bool) -> Result<Vec<Values>, String> {
    let of = |&name| direction(&results.tables, name, combination.flows, complete);
    combination.direction.flows().iter().map(of).collect()
}

fn direction(tables: &Tables, name: &'static str, count: u32, complete: bool) -> Result<Values, String> {
    let rows: Vec<FlowRow> = tables.flows.iter().filter(|row| row.flow == name).collect();
    if rows.len() as u64 != u64::from(count) {
        return Err(format!("{} of {count} flows `{name}` have results", rows.len()));
    }
    if complete && let Some(row) = rows.iter().find(|row| !row.completed) {
        return Err(format!("flow `{name}` {} has not finished", row.conn + 1));
    }
    let bytes = rows.iter().map(|row| row.bytes).sum();
    let start = rows.iter().map(|row| row.measured_from_s).fold(f64::INFINITY, f64::min);
    let end = rows.iter().map(|row| row.measured_to_s).fold(f64::NEG_INFINITY, f64::max);
    if bytes == 0 || end <= start {
        return Err(format!("the flows `{name}` have transferred nothing"));
    }
    let goodputs = || rows.iter().map(|row| row.goodput_mbps);
    let squares: f64 = goodputs().map(|goodput| goodput * goodput).sum();
    let sum: f64 = goodputs().sum();
    let all_from = rows.iter().map(|row| row.measured_from_s).fold(f64::NEG_INFINITY, f64::max);
    let all_to = rows.iter().map(|row| row.measured_to_s).fold(f64::INFINITY, f64::min);
    let series = series(tables, name, &rows);
    let flow = |row: &FlowRow| FlowValues {
        goodput_mbps: row.goodput_mbps,
        rtt_ms: row.rtt_p50_ms,
        rtt_p95_ms: row.rtt_p95_ms,
        retransmitted: row.retransmitted_share(),
    };
    Ok(Values {
        name,
        bytes,
        span_s: end - start,
        throughput_mbps: bytes as f64 * 8e-6 / (end - start),
        jain: jain(sum, squares, rows.len()).unwrap_or(1.0),
        jain_windows: WINDOWS_S.map(|window_s| jain_over(window_s, (all_from, all_to), &series)),
        flows: rows.iter().map(flow).collect(),
    })
}

/// Jain's index of `count` values with this sum and this sum of squares; `None` if all are 0.
fn jain(sum: f64, squares: f64, count: usize) -> Option<f64> {
    (squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

/// Goodput over time: each sample's interval, from and to, in seconds, and the Mbit/s in it.
type Series = Vec<(f64, f64, f64)>;

/// The goodput of each flow over time, in the order of `rows`.
fn series(tables: &Tables, name: &str, rows: &[FlowRow<'_>]) -> Vec<Series> {
    let mut all = vec![Series::new(); rows.len()];
    for sample in tables.samples.iter().filter(|sample| sample.flow == name) {
        let Some(flow) = rows.iter().position(|row| row.conn == sample.conn) else { continue };
        let before = all[flow].last().map_or(rows[flow].start_s, |&(_, to, _)| to);
        if sample.t_s > before {
            all[flow].push((before, sample.t_s, sample.goodput_mbps));
        }
    }
    all
}

/// The mean of Jain's index over the windows of a length between two times. What a sample counts is spread over its interval.
fn jain_over(window_s: f64, (from, to): (f64, f64), flows: &[Series]) -> Option<f64> {
    let is_fine = |series: &Series| match (series.first(), series.last()) {
        (Some(first), Some(last)) => last.1 - first.0 <= series.len() as f64 * window_s * (1.0 + 1e-6),
        _ => false,
    };
    if !flows.iter().all(is_fine) {
        return None;
    }
    // Whole windows; none if the flows do not overlap.
    let count = ((to - from) / window_s + 1e-6) as usize;
    let (mut sums, mut squares) = (vec![0.0_f64; count], vec![0.0_f64; count]);
    for series in flows {
        let mut amounts = vec![0.0_f64; count];
        for &(start, end, mbps) in series {
            let (mut start, end) = (start.max(from), end.min(to));
            let first = ((start - from) / window_s) as usize;
            for (window, amount) in amounts.iter_mut().enumerate().skip(first) {
                if start >= end {
                    break;
                }
                let edge = (from + (window + 1) as f64 * window_s).min(end);
                *amount += mbps * (edge - start).max(0.0);
                start = start.max(edge);
            }
        }
        for (window, amount) in amounts.into_iter().enumerate() {
            sums[window] += amount;
            squares[window] += amount * amount;
        }
    }
    let indices: Vec<f64> =
        sums.into_iter().zip(squares).filter_map(|(sum, squares)| jain(sum, squares, flows.len())).collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;
    use record::tables::SampleRow;

    fn results(flows: &[(u32, u64, f64, bool)]) -> Results {
        let mut results = Results::default();
        for &(conn, bytes, goodput_mbps, completed) in flows {
            results.tables.flows.push(&FlowRow {
                flow: "upload",
                conn,
                bytes,
                goodput_mbps,
                completed,
                measured_from_s: 1.0,
                measured_to_s: 5.0,
                transport: "tcp",
                segments_sent: Some(100),
                retransmitted: Some(2),
                ..FlowRow::default()
            });
        }
        results
    }

    fn combination() -> Combination {
        Combination { cc: "cubic".into(), flows: 2, direction: Direction::Up, interface: None }
    }

    #[test]
    fn throughput_and_fairness_are_those_worked_by_hand() {
        let found = values(&results(&[(0, 1_000_000, 2.0, true), (1, 3_000_000, 6.0, true)]), &combination(), true);
        let found = &found.expect("valid")[0];
        // 4 MB in 4 s; (2 + 6)^2 / (2 (4 + 36)) = 0.8.
        assert!((found.throughput_mbps - 8.0).abs() < 1e-12);
        assert!((found.jain - 0.8).abs() < 1e-12);
        assert_eq!(found.flows[0].retransmitted, Some(0.02));
    }

    #[test]
    fn fairness_in_short_windows_is_that_worked_by_hand() {
        // Both flows have 8 Mbit/s from 1 s on; the first one gets nothing more after 2.5 s, the second one until 5 s.
        let mut results = results(&[(0, 1_500_000, 3.0, true), (1, 4_000_000, 8.0, true)]);
        let ends = [1.75, 2.5, 3.25, 4.0, 5.0];
        for (conn, rates) in [(0, [8.0, 8.0, 0.0, 0.0, 0.0]), (1, [8.0; 5])] {
            for (t_s, goodput_mbps) in ends.into_iter().zip(rates) {
                results.tables.samples.push(&SampleRow {
                    flow: "upload",
                    conn,
                    t_s,
                    goodput_mbps,
                    ..SampleRow::default()
                });
            }
        }
        let found = values(&results, &combination(), true).expect("valid");
        // Mbit in the windows of 1 s: (8, 8), (4, 8), (0, 8), (0, 8). Their indices: 1, 12^2 / (2 * 80) = 0.9, 0.5 and 0.5.
        // Samples are further apart than 0.1 s, and the flows take less than 5 s.
        let [short, second, long] = found[0].jain_windows;
        assert!(second.is_some_and(|index| (index - 0.725).abs() < 1e-9), "{second:?}");
        assert_eq!((short, long), (None, None));
    }

    #[test]
    fn flows_that_take_turns_are_unfair_in_short_windows_and_fair_in_long_ones() {
        // For 10 s, either has the link for half a second, in samples of 0.1 s, and nothing arrives from 5 s to 6 s.
        let turns = |parity: usize| -> Series {
            let rate = |sample: usize| if sample / 5 % 2 == parity && sample / 10 != 5 { 10.0 } else { 0.0 };
            (0..100).map(|sample: usize| (sample as f64 / 10.0, (sample + 1) as f64 / 10.0, rate(sample))).collect()
        };
        let flows = [turns(0), turns(1)];
        for (window_s, expected) in [(0.1, 0.5), (1.0, 1.0), (5.0, 1.0)] {
            let index = jain_over(window_s, (0.0, 10.0), &flows).expect("there are windows");
            assert!((index - expected).abs() < 1e-9, "{window_s} s: {index}");
        }
        // There is no index of flows that do not overlap, of a time in which nothing arrives, or of a flow without samples.
        assert_eq!(jain_over(0.1, (10.0, 0.0), &flows), None);
        assert_eq!(jain_over(0.1, (5.0, 6.0), &flows), None);
        assert_eq!(jain_over(0.1, (0.0, 10.0), &[turns(0), Series::new()]), None);
    }

    #[test]
    fn a_test_with_a_missing_unfinished_or_empty_flow_is_not_valid() {
        let of = |flows: &[_], complete| values(&results(flows), &combination(), complete).expect_err("not valid");
        assert_eq!(of(&[(0, 1, 1.0, true)], true), "1 of 2 flows `upload` have results");
        assert_eq!(of(&[(0, 1, 1.0, true), (1, 1, 1.0, false)], true), "flow `upload` 2 has not finished");
        assert_eq!(of(&[(0, 0, 0.0, true), (1, 0, 0.0, true)], true), "the flows `upload` have transferred nothing");
    }
}
