//! Round-trip times of flows, and their increase over that of the idle path.

use crate::pattern::is_flow;
use crate::percentile::{Percentile, mean_of_flows};
use record::Results;
use serde::Deserialize;
use std::collections::BTreeMap;
use units::Span;
use units::stats::select_nearest_rank;

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

/// The mean of flows' percentiles of the smoothed round-trip times at the sampling moments after the warm-up, ms. It is missing
/// if any of the flows has none. Behind a proxy and without one, it is the same quantity: percentiles over the packets' own
/// samples would count the times with many packets more than those of a long queue.
pub(crate) fn of(results: &Results, point: u32, run: u32, flow: &str, at: Percentile) -> Option<f64> {
    let sampled = sampled(results, point, run, flow);
    mean_of_flows(results, point, run, flow, |row| {
        let rtts = sampled.get(&(row.flow, row.conn))?.iter();
        let mut rtts: Vec<f64> = rtts.filter(|(t_s, _)| *t_s >= row.start_s).map(|(_, rtt)| *rtt).collect();
        select_nearest_rank(&mut rtts, at.share())
    })
}

/// The sampling moments, s, and the smoothed round-trip times at them, ms, of each copy of some flows in a run. Behind a proxy
/// it is the sum of both legs'.
fn sampled<'a>(results: &'a Results, point: u32, run: u32, flow: &str) -> BTreeMap<(&'a str, u32), Vec<(f64, f64)>> {
    let mut proxied: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in results.tables.proxies.iter().filter(|row| (row.point, row.run) == (point, run)) {
        if let Some((wired, radio)) = row.wired_rtt_ms.zip(row.radio_rtt_ms).filter(|_| is_flow(flow, row.flow)) {
            proxied.entry((row.flow, row.conn)).or_default().push((row.t_s, wired + radio));
        }
    }
    // The sender of a proxied flow knows the wired leg only.
    let mut direct: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in results.tables.samples.iter().filter(|row| (row.point, row.run) == (point, run)) {
        let of = (row.flow, row.conn);
        if let Some(rtt) = row.srtt_ms.filter(|_| is_flow(flow, row.flow) && !proxied.contains_key(&of)) {
            direct.entry(of).or_default().push((row.t_s, rtt));
        }
    }
    proxied.append(&mut direct);
    proxied
}

/// The least round-trip time that any flow in a run saw, ms: of a packet, and behind a proxy of the smoothed ones of each leg. It
/// estimates a constant of the path, whatever the flows did later.
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

#[cfg(test)]
mod tests {
    use super::Percentile;
    use crate::measure::Measure;
    use record::Results;
    use record::tables::{FlowRow, ProxyRow, SampleRow};

    /// Without a proxy at point 0, the smoothed time is 103 ms at most sampling moments and the least time 3 ms. Most packets have
    /// 20 ms, as few are sent while the queue is long. With a proxy at point 1, the legs have 1 and 4 ms, of which 0.5 and 3 are
    /// the least that is seen.
    fn results() -> Results {
        let mut results = Results::default();
        let none = FlowRow {
            flow: "app",
            start_s: 1.0,
            rtt_min_ms: Some(3.0),
            rtt_p5_ms: Some(20.0),
            rtt_p50_ms: Some(20.0),
            ..FlowRow::default()
        };
        let wired = FlowRow { point: 1, rtt_min_ms: Some(0.5), rtt_p50_ms: Some(1.0), ..none };
        for row in [&none, &wired] {
            results.tables.flows.push(row);
        }
        let sample = SampleRow { flow: "app", ..SampleRow::default() };
        // Before the first round trip, in the warm-up, and after it.
        for (t_s, srtt_ms) in [(0.1, None), (0.5, Some(5.0)), (0.6, Some(5.0)), (0.7, Some(5.0))] {
            results.tables.samples.push(&SampleRow { t_s, srtt_ms, ..sample });
        }
        for (t_s, srtt_ms) in [(1.1, 13.0), (1.2, 103.0), (1.3, 103.0)] {
            results.tables.samples.push(&SampleRow { t_s, srtt_ms: Some(srtt_ms), ..sample });
            // The sender of the proxied flow sees the wired leg only, and another copy is another flow.
            results.tables.samples.push(&SampleRow { point: 1, t_s, srtt_ms: Some(1.0), ..sample });
            results.tables.samples.push(&SampleRow { conn: 1, t_s, srtt_ms: Some(900.0), ..sample });
        }
        for (t_s, wired, radio) in [(0.5, 9.0, 9.0), (1.1, 0.5, 4.0), (1.2, 1.0, 3.0), (1.3, 1.0, 4.0)] {
            let (wired_rtt_ms, radio_rtt_ms) = (Some(wired), Some(radio));
            results.tables.proxies.push(&ProxyRow {
                point: 1,
                flow: "app",
                t_s,
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
    fn a_round_trip_time_is_the_smoothed_one_at_sampling_moments_with_and_without_a_proxy() {
        let results = results();
        let rtt = |at| {
            let measure: Measure = toml::from_str(&format!("kind = 'rtt'\nflow = 'app'\nat = '{at}'")).unwrap();
            (measure.of(&results, 0, 0), measure.of(&results, 1, 0))
        };
        // Not the 20 ms that most packets have.
        assert_eq!(rtt("p50"), (Some(103.0), Some(4.5)));
        assert_eq!(rtt("p5"), (Some(13.0), Some(4.0)));
        // A flow of which there are no samples has no such value.
        let mut none = Results::default();
        none.tables.flows.push(&FlowRow { flow: "app", rtt_p50_ms: Some(20.0), ..FlowRow::default() });
        assert_eq!(Measure::Rtt { flow: "app".into(), at: Percentile::P50 }.of(&none, 0, 0), None);
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
