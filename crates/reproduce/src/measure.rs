//! Figures of a run that answer published ones.

use record::Results;
use serde::Deserialize;
use units::{Rate, Span};

/// How long the mean of [`Measure::FillTime`] is taken over.
const WINDOW_S: f64 = 1.0;

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Measure {
    /// IP bytes that arrived after the warm-up, Mbit/s.
    Throughput {
        /// Of this flow.
        flow: String,
    },
    /// Payload that was delivered after the warm-up, Mbit/s.
    Goodput {
        /// Of this flow.
        flow: String,
    },
    /// Mean completion time of a flow's transfers, s.
    Completion {
        /// Of this flow.
        flow: String,
    },
    /// Jain's index over all flows' goodputs.
    Jain,
    /// From a moment until the mean of a second of what a link carries is a share of a rate, s. The mean slides in steps of
    /// the sampling interval; the time counts to the beginning of the second.
    FillTime {
        /// The link.
        link: String,
        /// The moment.
        after: Span,
        /// The rate.
        rate: Rate,
        /// The share of it.
        share: f64,
    },
}

impl Measure {
    /// The figure of one run, if it has one.
    pub fn of(&self, results: &Results, point: u32, run: u32) -> Option<f64> {
        let flows = || results.tables.flows.iter().filter(move |row| (row.point, row.run) == (point, run));
        match self {
            Measure::Throughput { flow } => flows().find(|row| row.flow == flow).map(|row| row.throughput_mbps),
            Measure::Goodput { flow } => flows().find(|row| row.flow == flow).map(|row| row.goodput_mbps),
            Measure::Completion { flow } => flows().find(|row| row.flow == flow).and_then(|row| row.completion_s),
            Measure::Jain => {
                let (n, sum, squares) = flows().fold((0.0, 0.0, 0.0), |(n, sum, squares), row| {
                    (n + 1.0, sum + row.goodput_mbps, squares + row.goodput_mbps * row.goodput_mbps)
                });
                (squares > 0.0).then(|| sum * sum / (n * squares))
            }
            Measure::FillTime { link, after, rate, share } => {
                let rows = results.tables.queues.iter();
                let rows = rows.filter(|row| (row.point, row.run) == (point, run) && row.link == link);
                let after = after.as_secs_f64();
                let samples: Vec<(f64, f64)> =
                    rows.map(|row| (row.t_s, row.served_mbps)).filter(|&(t, _)| t > after).collect();
                let interval = samples.get(1)?.0 - samples.first()?.0;
                let window = ((WINDOW_S / interval).round() as usize).max(1);
                let full =
                    |w: &[(f64, f64)]| w.iter().map(|s| s.1).sum::<f64>() / w.len() as f64 >= share * rate.as_mbps();
                // A sample at `t` is about the interval that ends there.
                samples.windows(window).find(|w| full(w)).map(|w| w[0].0 - interval - after)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::tables::QueueRow;

    #[test]
    fn a_link_is_full_from_the_first_second_whose_mean_is_the_share() {
        let mut results = Results::default();
        // 10 Mbit/s until 12 s, then 100 Mbit/s; the second from 11.96 s on is the first with a mean of 95.
        for i in 1..=2_000u32 {
            let t_s = f64::from(i) / 100.0;
            let served_mbps = if t_s <= 12.0 + 1e-9 { 10.0 } else { 100.0 };
            results.tables.queues.push(&QueueRow {
                point: 0,
                run: 0,
                link: "radio",
                t_s,
                packets: 0,
                bytes: 0,
                dropped: 0,
                marked: 0,
                served_mbps,
                sojourn_ms: None,
            });
        }
        let measure = |rate, share| Measure::FillTime { link: "radio".into(), after: Span::from_secs(10), rate, share };
        let time = measure(Rate::from_mbps(100), 0.95).of(&results, 0, 0).unwrap();
        assert!((time - 1.95).abs() < 0.011, "{time}");
        assert_eq!(measure(Rate::from_mbps(200), 0.95).of(&results, 0, 0), None);
        assert_eq!(measure(Rate::from_mbps(100), 0.95).of(&results, 0, 1), None);
    }
}
