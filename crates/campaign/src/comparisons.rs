//! Comparisons of congestion controls within blocks.
//!
//! The tests of a block met the same conditions, or nearly. The difference between two of them is free of what changes from block to
//! block, and the median of these differences has a narrower interval than the difference of two medians over all blocks: that is what
//! blocks are for. The block is the unit: a test counts with one value, the median of its flows, and resamples draw whole blocks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bootstrap::middle;
use crate::file::Direction;
use crate::measures::{ByMeasure, Values, by_measure, of_test};
use crate::plan::Combination;

/// The values of each combination's tests, by their blocks.
pub(crate) type Found<'a> = BTreeMap<&'a Combination, BTreeMap<u32, Vec<Values>>>;

/// Two congestion controls with the same number of flows in the same directions, through the same interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The congestion control that is subtracted.
    pub first: String,
    /// The one from which it is subtracted.
    pub second: String,
    /// The number of flows in each direction.
    pub flows: u32,
    /// The directions.
    pub direction: Direction,
    /// The interface, as in a [`Combination`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// By the names of flows (`download`, `upload`) and measures.
    pub measures: ByMeasure<Difference>,
}

/// Differences within blocks: the second congestion control's value less the first one's, in the measure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Their median.
    pub median: f64,
    /// The ends of its 95 % interval; missing with fewer than two blocks.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// Number of blocks in which both have a value.
    pub blocks: usize,
    /// Number of those in which the second one's is larger.
    pub larger: usize,
    /// Number of those in which it is smaller.
    pub smaller: usize,
}

/// Compares each two congestion controls, in the order of the combinations. Those without a common block are left out.
pub(crate) fn compare(seed: u64, combinations: &[Combination], found: &Found<'_>) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (place, first) in combinations.iter().enumerate() {
        let alike = |second: &&Combination| {
            (second.flows, second.direction, &second.interface) == (first.flows, first.direction, &first.interface)
        };
        for second in combinations[place + 1..].iter().filter(alike) {
            let measures = differences(seed, (first, second), found);
            if measures.is_empty() {
                continue;
            }
            comparisons.push(Comparison {
                first: first.cc.clone(),
                second: second.cc.clone(),
                flows: first.flows,
                direction: first.direction,
                interface: first.interface.clone(),
                measures,
            });
        }
    }
    comparisons
}

fn differences(seed: u64, (first, second): (&Combination, &Combination), found: &Found<'_>) -> ByMeasure<Difference> {
    let (Some(ours), Some(theirs)) = (found.get(first), found.get(second)) else { return BTreeMap::new() };
    by_measure(first, |(place, name), (measure, _, of)| {
        let difference = |(block, test): (&u32, &Vec<Values>)| {
            let value = |test: &Vec<Values>| of_test(test.get(place)?, of);
            Some(value(theirs.get(block)?)? - value(test)?)
        };
        let differences: Vec<f64> = ours.iter().filter_map(difference).collect();
        let (a, b, flows, direction) = (&first.cc, &second.cc, first.flows, first.direction.name());
        let through = first.through(' ');
        let stream = format!("campaign comparison {a} {b} {flows} {direction}{through} {name} {measure}");
        Difference::of(&differences, seed, &stream)
    })
}

impl Difference {
    /// Summarises the differences of some blocks; `None` without any. `stream` names the random numbers.
    fn of(differences: &[f64], seed: u64, stream: &str) -> Option<Difference> {
        let blocks: Vec<Vec<f64>> = differences.iter().map(|&difference| vec![difference]).collect();
        let (median, low, high) = middle(&blocks, seed, stream)?;
        let count = |is_it: fn(f64) -> bool| differences.iter().filter(|&&difference| is_it(difference)).count();
        Some(Difference {
            median,
            low,
            high,
            blocks: differences.len(),
            larger: count(|difference| difference > 0.0),
            smaller: count(|difference| difference < 0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::FlowValues;

    fn combination(cc: &str, flows: u32) -> Combination {
        Combination { cc: cc.into(), flows, direction: Direction::Up, interface: None }
    }

    fn test(goodputs: &[f64]) -> Vec<Values> {
        let flow =
            |&goodput_mbps: &f64| FlowValues { goodput_mbps, rtt_ms: None, rtt_p95_ms: None, retransmitted: None };
        vec![Values {
            name: "upload",
            bytes: 1,
            span_s: 1.0,
            throughput_mbps: goodputs.iter().sum(),
            jain: 1.0,
            jain_windows: [None; 3],
            flows: goodputs.iter().map(flow).collect(),
        }]
    }

    #[test]
    fn differences_are_taken_within_blocks_as_worked_by_hand() {
        // From block to block the network differs by more than the congestion controls do.
        let (cubic, bbr, vegas) = (combination("cubic", 1), combination("bbr", 1), combination("vegas", 1));
        let mut found = Found::new();
        for (block, ours, theirs) in [(1, 10.0, 12.0), (2, 20.0, 21.0), (3, 30.0, 33.0)] {
            found.entry(&cubic).or_default().insert(block, test(&[ours]));
            found.entry(&bbr).or_default().insert(block, test(&[theirs]));
        }
        // A test whose partner failed, and a congestion control without any test.
        found.entry(&cubic).or_default().insert(4, test(&[90.0]));
        let all = compare(1, &[cubic.clone(), bbr.clone(), vegas], &found);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].first.as_str(), all[0].second.as_str(), all[0].flows), ("cubic", "bbr", 1));
        // 2, 1 and 3: their median is 2, and all three draws are equal in 1/27 of the resamples at each end, more than 2.5 %.
        let throughput = all[0].measures["upload"]["throughput_mbps"];
        let expected = Difference { median: 2.0, low: Some(1.0), high: Some(3.0), blocks: 3, larger: 3, smaller: 0 };
        assert_eq!(throughput, expected);
        assert!(!all[0].measures["upload"].contains_key("flow_rtt_ms"));
        assert!(!all[0].measures["upload"].keys().any(|name| name.starts_with("jain")), "one flow");
    }

    #[test]
    fn a_test_counts_with_the_median_of_its_flows_and_other_numbers_of_flows_are_not_compared() {
        let (cubic, bbr, other) = (combination("cubic", 3), combination("bbr", 3), combination("bbr", 4));
        let mut found = Found::new();
        found.entry(&cubic).or_default().insert(1, test(&[1.0, 2.0, 30.0]));
        found.entry(&bbr).or_default().insert(1, test(&[1.0, 1.5, 2.0]));
        found.entry(&other).or_default().insert(1, test(&[9.0; 4]));
        let all = compare(1, &[cubic.clone(), bbr.clone(), other.clone()], &found);
        assert_eq!(all.len(), 1);
        let goodput = all[0].measures["upload"]["flow_goodput_mbps"];
        // One block has no interval.
        let expected = Difference { median: -0.5, low: None, high: None, blocks: 1, larger: 0, smaller: 1 };
        assert_eq!(goodput, expected);
        assert_eq!(all[0].measures["upload"]["jain"].median, 0.0);
    }
}
