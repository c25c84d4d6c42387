//! The text format of Prometheus.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The type that Prometheus expects of it.
pub(crate) const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the metrics of a collector, whose names begin with `prefix`.
pub(crate) fn text(prefix: &str, collector: impl Collector) -> String {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}
