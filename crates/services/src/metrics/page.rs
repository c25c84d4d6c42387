//! Writes metrics in the text format.

use super::histogram::Histogram;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::fmt;

/// Writes metrics. Names have the unit, a base unit, at their end; those of counters get `_total`.
pub(crate) struct Page<'a>(pub(crate) DescriptorEncoder<'a>);

/// What each writer of [`Page`] returns: formatting does not fail, unless the text cannot be written.
type Written = Result<(), fmt::Error>;

impl Page<'_> {
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: f64) -> Written {
        gauge(value, self.0.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }

    /// Values with their labels.
    pub(crate) fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> Written {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values.into_iter().try_for_each(|(labels, value)| gauge(value, family.encode_family(&labels)?))
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: f64) -> Written {
        counter(value, self.0.encode_descriptor(name, help, None, MetricType::Counter)?)
    }

    /// Counts with their labels.
    pub(crate) fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> Written {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values
            .into_iter()
            .try_for_each(|(labels, value)| ConstCounter::new(value).encode(family.encode_family(&labels)?))
    }

    /// Sums of histograms of the same kind, such as those of several threads, with their labels.
    pub(crate) fn histograms<'h, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, Vec<&'h Histogram>)>,
    ) -> Written {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        values.into_iter().try_for_each(|(labels, parts)| histogram(&parts, family.encode_family(&labels)?))
    }

    /// The sum of histograms without labels.
    pub(crate) fn histogram(&mut self, name: &str, help: &str, parts: &[&Histogram]) -> Written {
        histogram(parts, self.0.encode_descriptor(name, help, None, MetricType::Histogram)?)
    }
}

fn histogram(parts: &[&Histogram], mut to: MetricEncoder) -> Written {
    let (sum_s, count, buckets) = Histogram::total(parts);
    to.encode_histogram::<[(&str, &str); 0]>(sum_s, count, &buckets, None)
}

/// Returns a value without the fraction that it does not have.
fn whole(value: f64) -> Option<u64> {
    const MOST: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    (value.fract() == 0.0 && (0.0..MOST).contains(&value)).then_some(value as u64)
}

fn counter(value: f64, to: MetricEncoder) -> Written {
    match whole(value) {
        Some(whole) => ConstCounter::new(whole).encode(to),
        None => ConstCounter::new(value).encode(to),
    }
}

fn gauge(value: f64, to: MetricEncoder) -> Written {
    match whole(value) {
        Some(whole) => ConstGauge::new(whole).encode(to),
        None => ConstGauge::new(value).encode(to),
    }
}
