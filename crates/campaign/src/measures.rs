//! The values of a test, from its tables.

use record::tables::FlowRow;
use record::{Results, Tables};

use crate::plan::Combination;

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
    /// Jain's fairness index of the flows' goodput.
    pub jain: f64,
    /// The flows.
    pub flows: Vec<FlowValues>,
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
    let flow = |row: &FlowRow| FlowValues {
        goodput_mbps: row.goodput_mbps,
        rtt_ms: row.rtt_p50_ms,
        rtt_p95_ms: row.rtt_p95_ms,
        retransmitted: row
            .retransmitted
            .zip(row.segments_sent.filter(|sent| *sent > 0))
            .map(|(again, sent)| again as f64 / sent as f64),
    };
    Ok(Values {
        name,
        bytes,
        span_s: end - start,
        throughput_mbps: bytes as f64 * 8e-6 / (end - start),
        jain: if squares > 0.0 { sum * sum / (rows.len() as f64 * squares) } else { 1.0 },
        flows: rows.iter().map(flow).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;

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
                segments_sent: Some(100),
                retransmitted: Some(2),
                ..FlowRow::default()
            });
        }
        results
    }

    fn combination() -> Combination {
        Combination { cc: "cubic".into(), flows: 2, direction: Direction::Up }
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
    fn a_test_with_a_missing_unfinished_or_empty_flow_is_not_valid() {
        let of = |flows: &[_], complete| values(&results(flows), &combination(), complete).expect_err("not valid");
        assert_eq!(of(&[(0, 1, 1.0, true)], true), "1 of 2 flows `upload` have results");
        assert_eq!(of(&[(0, 1, 1.0, true), (1, 1, 1.0, false)], true), "flow `upload` 2 has not finished");
        assert_eq!(of(&[(0, 0, 0.0, true), (1, 0, 0.0, true)], true), "the flows `upload` have transferred nothing");
    }
}
