//! Metrics for Prometheus, over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use netio::Error;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::book::Reason;
use super::status::{Status, status};
use super::worker::Shared;
use crate::metrics::{self, MOST_READERS, MetricsAccess, router};
use crate::server::{refused, serve};

/// Interval between checks whether the proxy ends.
const TURN: Duration = Duration::from_millis(50);

/// An address at which metrics will be served.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
    access: MetricsAccess,
}

impl Metrics {
    /// Reserves an address.
    ///
    /// # Errors
    /// [`Error::Wrong`] if it is in use or not this machine's.
    pub fn bind(access: MetricsAccess) -> Result<Metrics, Error> {
        let address = access.address();
        let wrong = |error: std::io::Error| {
            Error::Wrong(format!("metrics cannot be served at {address}: {}", refused(&error, "--metrics")))
        };
        let listener = TcpListener::bind(address).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        Ok(Metrics { listener, access })
    }

    pub(super) fn serve(
        self,
        workers: Vec<Arc<Shared>>,
        stop: Arc<AtomicBool>,
    ) -> Result<(SocketAddr, JoinHandle<()>), Error> {
        let address = self.listener.local_addr().map_err(Error::system("serve metrics"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::system("serve metrics"))?;
        let app = router(self.access, move || text(&status(&workers, false)));
        let run = move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(self.listener) else { return };
                let serving = serve(listener, app, MOST_READERS, Vec::new());
                let stopped = async {
                    while !stop.load(Relaxed) {
                        tokio::time::sleep(TURN).await;
                    }
                };
                tokio::select! {
                    () = serving => {}
                    () = stopped => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("proxy-metrics".into());
        Ok((address, thread.spawn(run).map_err(Error::system("start a thread"))?))
    }
}

/// Encodes the totals of a status.
#[derive(Debug)]
struct Totals(Status);

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Status { totals: of, accepting, .. } = &self.0;
        let gauges = [
            ("connections", "Connections at present", of.open),
            ("half_open", "Connections at present whose handshake is not complete", of.half_open),
            ("accepting", "1 if new connections pass through the proxy, 0 if they bypass it", u64::from(*accepting)),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let counters = [
            ("established", "Connections of which both legs were established", of.established),
            ("closed", "Connections that ended after both sides had everything", of.closed),
            ("reset", "Connections that one side reset", of.reset),
            ("connect_failures", "Connections to hosts that refused or could not be reached", of.connect_failed),
            ("connect_timeouts", "Connections to hosts that did not answer in time", of.connect_timeouts),
            ("idle_timeouts", "Connections without a byte for too long", of.idle_timeouts),
            ("half_closed_timeouts", "Half-closed connections without a byte for too long", of.half_closed_timeouts),
            ("other_port", "Connections that did not keep the client's port", of.other_port),
            ("not_ours", "Clients that were there when their server had gone", of.not_ours),
            ("lost_syns", "SYNs that got lost on their way to the proxy or from it", of.lost_syns),
            ("overloads", "How often new connections began to bypass the proxy", of.overloads),
            ("exhausted", "How often descriptors or memory ran out", of.exhausted),
            ("internal_errors", "Connections ended by an error in the proxy", of.internal_errors),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let families = [
            ("accepted", "Connections accepted from a side", "from", [("ran", of.from_ue), ("wan", of.from_wan)]),
            ("bytes", "Bytes that have arrived for a side", "to", [("ran", of.to_ue_bytes), ("wan", of.from_ue_bytes)]),
        ];
        for (name, help, label, values) in families {
            let kind = ConstCounter::new(0_u64).metric_type();
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (side, value) in values {
                ConstCounter::new(value).encode(family.encode_family(&[(label, side)])?)?;
            }
        }
        let kind = ConstCounter::new(0_u64).metric_type();
        let help = "Connections that bypassed the proxy although it was asked";
        let mut family = encoder.encode_descriptor("bypassed", help, None, kind)?;
        for reason in Reason::ALL {
            let count = of.bypassed.get(&reason).copied().unwrap_or_default();
            ConstCounter::new(count).encode(family.encode_family(&[("reason", reason.name())])?)?;
        }
        Ok(())
    }
}

fn text(status: &Status) -> String {
    metrics::text("ranway_proxy", Totals(status.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Totals as Counted;

    #[test]
    fn each_counter_is_in_the_text() {
        let totals = Counted { open: 3, from_ue: 5, to_ue_bytes: 1 << 40, ..Counted::default() };
        let text = text(&Status { totals, accepting: true, connections: Vec::new() });
        for line in [
            "# TYPE ranway_proxy_connections gauge",
            "ranway_proxy_connections 3",
            "ranway_proxy_accepting 1",
            "ranway_proxy_accepted_total{from=\"ran\"} 5",
            "ranway_proxy_bytes_total{to=\"ran\"} 1099511627776",
            "ranway_proxy_reset_total 0",
            "ranway_proxy_bypassed_total{reason=\"half_open_ue\"} 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
