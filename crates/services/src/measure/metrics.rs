//! Metrics for Prometheus, over HTTP.

use super::limits::{Busy, Gate};
use crate::metrics;
use measure::rmbt::server::Direction;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What the server has counted since its start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicU64,
    pub(super) refused: [AtomicU64; Busy::ALL.len()],
    pub(super) tokens_accepted: AtomicU64,
    pub(super) tokens_refused: AtomicU64,
    pub(super) tls_failures: AtomicU64,
    pub(super) faults: AtomicU64,
    pub(super) timeouts: AtomicU64,
    pub(super) downloads: AtomicU64,
    pub(super) uploads: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) bytes_received: AtomicU64,
    pub(super) results_stored: AtomicU64,
    pub(super) results_dropped: AtomicU64,
}

impl Counters {
    pub(super) fn refuse(&self, busy: Busy) {
        let index = Busy::ALL.iter().position(|(known, _)| *known == busy);
        if let Some(counter) = index.and_then(|index| self.refused.get(index)) {
            counter.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn transferred(&self, direction: Direction, bytes: u64) {
        let (transfers, total) = match direction {
            Direction::Download => (&self.downloads, &self.bytes_sent),
            Direction::Upload => (&self.uploads, &self.bytes_received),
        };
        transfers.fetch_add(1, Relaxed);
        total.fetch_add(bytes, Relaxed);
    }
}

/// A name, its help, its label, and a value for each value of the label.
type Family<'a> = (&'a str, &'a str, &'a str, Vec<(&'a str, u64)>);

#[derive(Debug)]
struct Totals {
    gate: Arc<Gate>,
    counters: Arc<Counters>,
}

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let (connections, flows, waiting, evicted) = self.gate.counts();
        let gauges = [
            ("open", "Connections at present", connections),
            ("flows", "Connections that have presented a token", flows),
            ("waiting", "Connections that have not presented a token", waiting),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let of = &self.counters;
        let counters = [
            ("connections", "Connections accepted", of.connections.load(Relaxed)),
            ("evicted", "Connections without a token that made room for others", evicted),
            ("tls_failures", "TLS handshakes that failed", of.tls_failures.load(Relaxed)),
            ("faults", "Connections ended because of what the client sent", of.faults.load(Relaxed)),
            ("timeouts", "Connections without a byte for too long", of.timeouts.load(Relaxed)),
            ("results_stored", "Results written", of.results_stored.load(Relaxed)),
            ("results_dropped", "Results that could not be written", of.results_dropped.load(Relaxed)),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let refused = Busy::ALL.iter().zip(&of.refused).map(|((_, name), count)| (*name, load(count))).collect();
        let ways = |down, up| vec![("download", load(down)), ("upload", load(up))];
        let tokens = vec![("accepted", load(&of.tokens_accepted)), ("refused", load(&of.tokens_refused))];
        let families: [Family<'_>; 4] = [
            ("refused", "Connections and requests that a limit refused", "limit", refused),
            ("tokens", "Tokens presented", "result", tokens),
            ("transfers", "Transfers that have ended", "direction", ways(&of.downloads, &of.uploads)),
            ("bytes", "Bytes of transfers that have ended", "direction", ways(&of.bytes_sent, &of.bytes_received)),
        ];
        for (name, help, label, values) in families {
            let kind = ConstCounter::new(0_u64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (of, value) in values {
                ConstCounter::new(value).encode(family.encode_family(&[(label, of)])?)?;
            }
        }
        Ok(())
    }
}

/// Returns the metrics of a server.
pub(super) fn text(gate: &Arc<Gate>, counters: &Arc<Counters>) -> String {
    metrics::text("ranway_measure", Totals { gate: gate.clone(), counters: counters.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Limits;

    #[test]
    fn each_counter_is_in_the_text() {
        let (gate, counters) = (Gate::new(Limits::default()), Arc::new(Counters::default()));
        let mut visitor = gate.enter([10, 0, 0, 1].into()).expect("there is room");
        visitor.start_flow(None).expect("there is room");
        counters.refuse(Busy::Token);
        counters.transferred(Direction::Upload, 1 << 40);
        let text = text(&gate, &counters);
        for line in [
            "# TYPE ranway_measure_flows gauge",
            "ranway_measure_open 1",
            "ranway_measure_flows 1",
            "ranway_measure_waiting 0",
            "ranway_measure_refused_total{limit=\"uses_of_token\"} 1",
            "ranway_measure_refused_total{limit=\"connections\"} 0",
            "ranway_measure_transfers_total{direction=\"upload\"} 1",
            "ranway_measure_bytes_total{direction=\"upload\"} 1099511627776",
            "ranway_measure_results_dropped_total 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
