//! Percentiles of flows' delays and round-trip times, and means over flows.

use crate::pattern::is_flow;
use record::Results;
use record::tables::FlowRow;
use serde::Deserialize;

/// A percentile of the one-way delay or the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Percentile {
    /// The 5th.
    P5,
    /// The 25th.
    P25,
    /// The median.
    #[default]
    P50,
    /// The 75th.
    P75,
    /// The 95th.
    P95,
}

impl Percentile {
    /// Returns the share of values that are not greater.
    pub(crate) fn share(self) -> f64 {
        match self {
            Percentile::P5 => 0.05,
            Percentile::P25 => 0.25,
            Percentile::P50 => 0.5,
            Percentile::P75 => 0.75,
            Percentile::P95 => 0.95,
        }
    }
}

/// The mean of a value of flows. It is missing if any of the flows has none.
pub(crate) fn mean_of_flows(
    results: &Results,
    point: u32,
    run: u32,
    flow: &str,
    value: impl Fn(FlowRow) -> Option<f64>,
) -> Option<f64> {
    let rows = results.tables.flows.iter();
    let rows = rows.filter(|row| (row.point, row.run) == (point, run) && is_flow(flow, row.flow));
    let of: Option<Vec<f64>> = rows.map(value).collect();
    of.filter(|of| !of.is_empty()).map(|of| of.iter().sum::<f64>() / of.len() as f64)
}
