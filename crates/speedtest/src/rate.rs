//! Throughput from samples of several flows that started together.
//!
//! Two formulas are in use for the same test, and give different numbers: the specification of RMBT interpolates all flows at
//! the moment t* when the first of them ended; RTR's clients since 2026 divide all bytes by the longest duration. Report both.

use observe::progress::Samples;
use units::{Rate, Span};

/// The throughput of several flows together, by both formulas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// The least of the flows' last times (t*).
    pub common: Span,
    /// The sum of bytes at t*, divided by t*: the specification of RMBT, phase 4.
    pub interpolated: Rate,
    /// The longest of the flows' last times.
    pub longest: Span,
    /// All bytes divided by the longest time: RTR's clients since 2026.
    pub total: Rate,
}

impl Throughput {
    /// Returns the throughput of flows, or nothing if one of them has no sample after its start.
    pub fn of<'a>(flows: impl IntoIterator<Item = &'a Samples> + Clone) -> Option<Throughput> {
        let mut ends = Vec::new();
        for flow in flows.clone() {
            ends.push(flow.last().filter(|(time, _)| *time > Span::ZERO)?);
        }
        let common = ends.iter().map(|end| end.0).min()?;
        let longest = ends.iter().map(|end| end.0).max()?;
        let at_common: f64 = flows.into_iter().map(|flow| flow.bytes_at(common)).sum();
        let bytes: f64 = ends.iter().map(|end| end.1 as f64).sum();
        let rate = |bytes: f64, time: Span| Rate::from_bits_per_sec((bytes * 8.0 / time.as_secs_f64()).round() as u64);
        Some(Throughput { common, interpolated: rate(at_common, common), longest, total: rate(bytes, longest) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(samples: &[(u64, u64)]) -> Samples {
        let mut flow = Samples::new(Span::ZERO);
        for &(ms, bytes) in samples {
            flow.record(Span::from_millis(ms), bytes);
        }
        flow
    }

    #[test]
    fn all_flows_are_interpolated_at_the_end_of_the_first() {
        // t* = 4 s. Flow b has 1000 + (4-3)/(5-3) * 2000 = 2000 bytes then: (4000 + 2000) * 8 / 4 = 12 000 bit/s.
        let (a, b) = (flow(&[(2_000, 1_000), (4_000, 4_000)]), flow(&[(3_000, 1_000), (5_000, 3_000)]));
        let throughput = Throughput::of([&a, &b]).expect("there are samples");
        assert_eq!((throughput.common, throughput.longest), (Span::from_secs(4), Span::from_secs(5)));
        assert_eq!(throughput.interpolated.bits_per_sec(), 12_000);
        // All 7000 bytes in 5 s.
        assert_eq!(throughput.total.bits_per_sec(), 11_200);
    }

    #[test]
    fn a_flow_that_ends_before_the_first_sample_of_another_counts_from_zero() {
        // t* = 1 s; flow b has 1/4 of its first 8000 bytes.
        let (a, b) = (flow(&[(1_000, 500)]), flow(&[(4_000, 8_000)]));
        let throughput = Throughput::of([&a, &b]).expect("there are samples");
        assert_eq!(throughput.interpolated.bits_per_sec(), (500 + 2_000) * 8);
    }

    #[test]
    fn one_flow_has_one_throughput() {
        let a = flow(&[(500, 10), (2_000, 1_000)]);
        let throughput = Throughput::of([&a]).expect("there are samples");
        assert_eq!(throughput.interpolated, throughput.total);
        assert_eq!(throughput.total.bits_per_sec(), 4_000);
    }

    #[test]
    fn a_flow_without_samples_makes_no_throughput() {
        assert_eq!(Throughput::of([&flow(&[(1, 1)]), &flow(&[])]), None);
        assert_eq!(Throughput::of([&flow(&[(0, 5)])]), None);
        assert_eq!(Throughput::of([]), None);
    }
}
