//! Round-trip times of flows, and their increase over that of the idle path.

use crate::percentile::{Percentile, mean_of_flows};
use crate::study;
use record::Results;
use record::tables::FlowRow;
use serde::Deserialize;
use std::collections::BTreeMap;
use units::Span;

/// What an increase is in per cent of: `"idle"` or a time.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Base {
    /// The round-trip time of the idle path.
    Idle,
    /// A time.
    Time(Span),
}

impl TryFrom<String> for Base {
    type Error = String;

    fn try_from(text: String) -> Result<Base, String> {
        match text.parse::<Span>() {
            _ if text == "idle" => Ok(Base::Idle),
            Ok(span) if span > Span::ZERO => Ok(Base::Time(span)),
            _ => Err(format!("`{text}` is neither `idle` nor a time above zero")),
        }
    }
}

impl Base {
    /// Returns an increase in per cent.
    pub(crate) fn percent(self, ms: f64, idle: f64) -> f64 {
        let base = match self {
            Base::Idle => idle,
            Base::Time(span) => record::ms(span),
        };
        ms / base * 100.0
    }
}

/// The mean of flows' percentiles of the round-trip time, ms. It is missing if any of the flows has none.
pub(crate) fn of(results: &Results, point: u32, run: u32, flow: &str, at: Percentile) -> Option<f64> {
    mean_of_flows(results, point, run, flow, |row| {
        let legs = legs(results, &row);
        if !legs.is_empty() {
            return quantile(legs.into_iter().map(|(wired, radio)| wired + radio).collect(), at.share());
        }
        match at {
            Percentile::P5 => row.rtt_p5_ms,
            Percentile::P25 | Percentile::P75 => None,
            Percentile::P50 => row.rtt_p50_ms,
            Percentile::P95 => row.rtt_p95_ms,
        }
    })
}

/// The least round-trip time of any flow in a run, ms.
pub(crate) fn idle(results: &Results, point: u32, run: u32) -> Option<f64> {
    // By connection, the least of each leg.
    let mut split: BTreeMap<(&str, u32), (f64, f64)> = BTreeMap::new();
    for row in results.tables.proxies.iter().filter(|row| (row.point, row.run) == (point, run)) {
        if let Some((wired, radio)) = row.wired_rtt_ms.zip(row.radio_rtt_ms) {
            let least = split.entry((row.flow, row.conn)).or_insert((wired, radio));
            *least = (least.0.min(wired), least.1.min(radio));
        }
    }
    let rows = results.tables.flows.iter().filter(|row| (row.point, row.run) == (point, run));
    let least = rows.filter_map(|row| match split.get(&(row.flow, row.conn)) {
        Some((wired, radio)) => Some(wired + radio),
        None => row.rtt_min_ms,
    });
    least.reduce(f64::min)
}

/// The increase of [`of`] over the idle path's round-trip time, ms.
pub(crate) fn increase(results: &Results, point: u32, run: u32, flow: &str, at: Percentile, idle: f64) -> Option<f64> {
    of(results, point, run, flow, at).map(|rtt| rtt - idle)
}

/// The samples of both legs' round-trip times of a flow behind a proxy, ms.
fn legs(results: &Results, flow: &FlowRow) -> Vec<(f64, f64)> {
    let legs = results.tables.proxies.iter();
    let legs =
        legs.filter(|leg| (leg.point, leg.run, leg.flow, leg.conn) == (flow.point, flow.run, flow.flow, flow.conn));
    legs.filter_map(|leg| leg.wired_rtt_ms.zip(leg.radio_rtt_ms)).collect()
}

/// Returns the quantile `q` of some values.
fn quantile(mut values: Vec<f64>, q: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    study::quantile(&values, q)
}

#[cfg(test)]
mod tests {
    use crate::measure::Measure;
    use record::Results;
    use record::tables::{FlowRow, ProxyRow};

    /// Without a proxy at point 0, the median is 103 ms and the least time 3 ms. With one at point 1, the legs have 1 and 4 ms,
    /// of which 0.5 and 3 are the least that is seen.
    fn results() -> Results {
        let mut results = Results::default();
        let none = FlowRow { flow: "app", rtt_min_ms: Some(3.0), rtt_p50_ms: Some(103.0), ..FlowRow::default() };
        let wired = FlowRow { point: 1, rtt_min_ms: Some(0.5), rtt_p50_ms: Some(1.0), ..none };
        for row in [&none, &wired] {
            results.tables.flows.push(row);
        }
        for (wired, radio) in [(0.5, 4.0), (1.0, 3.0), (1.0, 4.0)] {
            let (wired_rtt_ms, radio_rtt_ms) = (Some(wired), Some(radio));
            results.tables.proxies.push(&ProxyRow {
                point: 1,
                flow: "app",
                wired_rtt_ms,
                radio_rtt_ms,
                ..ProxyRow::default()
            });
        }
        results
    }

    fn measure(text: &str) -> Measure {
        toml::from_str(&format!("kind = \"rtt-increase\"\nflow = \"app\"\n{text}")).expect("it is a measure")
    }

    #[test]
    fn an_increase_is_over_the_least_round_trip_of_the_path() {
        let results = results();
        assert_eq!(measure("").of(&results, 0, 0), Some(100.0));
        // Both legs of the proxied connection at their least are 3.5 ms, and the median is 4.5.
        assert_eq!(measure("").of(&results, 1, 0), Some(1.0));
        // Of a pair, the least counts, as one path has one idle time: 100 over 1.5 ms.
        assert_eq!(measure("").of_both(&results, 0, 1, 0), Some((100.0, 1.5)));
    }

    #[test]
    fn an_increase_may_be_in_per_cent_of_the_idle_path_or_of_a_time() {
        let results = results();
        assert_eq!(measure("over = \"1 ms\"").of(&results, 0, 0), Some(10_000.0));
        let idle = measure("over = \"idle\"").of(&results, 0, 0).expect("it is known");
        assert!((idle - 10_000.0 / 3.0).abs() < 1e-9, "{idle}");
        let wrong = toml::from_str::<Measure>("kind = \"rtt-increase\"\nflow = \"app\"\nover = \"0 ms\"");
        let why = wrong.expect_err("it is wrong").to_string();
        assert!(why.contains("`0 ms` is neither `idle` nor a time above zero"), "{why}");
    }
}
