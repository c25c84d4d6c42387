//! Metrics for Prometheus, over HTTP.

use super::limits::{Busy, Gate};
use crate::metrics::{self, Page};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use speedtest::rmbt::server::Direction;
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

#[derive(Debug)]
struct Totals {
    gate: Arc<Gate>,
    counters: Arc<Counters>,
}

impl Collector for Totals {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let mut page = Page(encoder);
        let (connections, flows, waiting, evicted) = self.gate.counts();
        let limits = self.gate.limits();
        for (name, help, value) in [
            ("open", "Connections at present", connections),
            ("open_limit", "The most connections", limits.connections),
            ("flows", "Connections that have presented a token", flows),
            ("flows_limit", "The most connections that have presented a token", limits.flows),
            ("waiting", "Connections that have not presented a token", waiting),
        ] {
            page.gauge(name, help, value as f64)?;
        }
        let of = &self.counters;
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        for (name, help, value) in [
            ("connections", "Connections accepted", load(&of.connections)),
            ("evicted", "Connections without a token that made room for others", evicted),
            ("tls_failures", "TLS handshakes that failed", load(&of.tls_failures)),
            ("faults", "Connections ended because of what the client sent", load(&of.faults)),
            ("timeouts", "Connections without a byte for too long", load(&of.timeouts)),
            ("results_stored", "Results written", load(&of.results_stored)),
            ("results_dropped", "Results that could not be written", load(&of.results_dropped)),
        ] {
            page.counter(name, help, value as f64)?;
        }
        let refused = Busy::ALL.iter().zip(&of.refused).map(|((_, name), count)| ([("limit", *name)], load(count)));
        page.counters("refused", "Connections and requests that a limit refused", refused)?;
        let tokens = [("accepted", &of.tokens_accepted), ("refused", &of.tokens_refused)];
        page.counters("tokens", "Tokens presented", tokens.map(|(result, count)| ([("result", result)], load(count))))?;
        let ways = |down, up| [([("direction", "download")], load(down)), ([("direction", "upload")], load(up))];
        page.counters("transfers", "Transfers that have ended", ways(&of.downloads, &of.uploads))?;
        page.counters("bytes", "Bytes of transfers that have ended", ways(&of.bytes_sent, &of.bytes_received))
    }
}

/// Returns the metrics of a server.
pub(super) fn text(gate: &Arc<Gate>, counters: &Arc<Counters>) -> String {
    metrics::text("ranway_measure", Totals { gate: gate.clone(), counters: counters.clone() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::measure::Limits;

    pub(crate) fn example() -> String {
        text(&Gate::new(Limits::default()), &Arc::default())
    }

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
            "ranway_measure_flows_limit 1024",
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
