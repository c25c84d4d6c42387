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
use prometheus_client::registry::Unit;

use super::feeds::{Trust, Unused};
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
        let Status { totals: of, accepting, feeds, unused_reports: unused, .. } = &self.0;
        let gauges = [
            ("connections", "Connections at present", of.open),
            ("half_open", "Connections at present whose handshake is not complete", of.half_open),
            ("accepting", "1 if new connections pass through the proxy, 0 if they bypass it", u64::from(*accepting)),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let memory = ConstGauge::new(i64::try_from(of.memory_bytes).unwrap_or(i64::MAX));
        let (name, help) = ("memory", "Memory of connections, in sockets and pipes");
        memory.encode(encoder.encode_descriptor(name, help, Some(&Unit::Bytes), memory.metric_type())?)?;
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
            ("starved", "Connections with stopped readers, reset because all took too much memory", of.starved),
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
        let (name, help) = ("feeds", "Addresses of UEs with connections, by whether the reports on them are believed");
        let mut family = encoder.encode_descriptor(name, help, None, ConstGauge::new(0_i64).metric_type())?;
        for trust in Trust::ALL {
            let count = feeds.iter().filter(|feed| feed.trust == trust).count();
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&[("trust", trust.name())])?)?;
        }
        // Without a feed, there is no age.
        if let Some(oldest) = feeds.iter().map(|feed| feed.age_s).max_by(f64::total_cmp) {
            let gauge = ConstGauge::new(oldest);
            let (name, help) = ("feed_age", "The greatest age of the latest report on a UE with connections");
            gauge.encode(encoder.encode_descriptor(name, help, Some(&Unit::Seconds), gauge.metric_type())?)?;
        }
        let (name, help) = ("reports_discarded", "Reports that were of no use");
        let mut family = encoder.encode_descriptor(name, help, None, ConstCounter::new(0_u64).metric_type())?;
        let Unused { ahead, old, impossible, overtaken } = *unused;
        for (why, value) in [("ahead", ahead), ("old", old), ("impossible", impossible), ("overtaken", overtaken)] {
            ConstCounter::new(value).encode(family.encode_family(&[("why", why)])?)?;
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
    use crate::proxy::{Feed, Totals as Counted};
    use axum::body::Body;
    use tower::ServiceExt;

    #[tokio::test]
    async fn metrics_are_served_at_their_path_alone() {
        let app = router(|| "all of them\n".to_owned());
        for (method, path, status) in
            [("GET", "/metrics", 200), ("GET", "/", 200), ("GET", "/other", 404), ("POST", "/", 405)]
        {
            let request =
                axum::http::Request::builder().method(method).uri(path).body(Body::empty()).expect("a request");
            let answer = app.clone().oneshot(request).await.expect("an answer");
            assert_eq!(answer.status().as_u16(), status, "{method} {path}");
            if status == 200 {
                assert_eq!(answer.headers()[CONTENT_TYPE], metrics::CONTENT);
                let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
                assert_eq!(&body[..], b"all of them\n");
            }
        }
    }

    #[test]
    fn each_counter_is_in_the_text() {
        let totals = Counted { open: 3, from_ue: 5, to_ue_bytes: 1 << 40, ..Counted::default() };
        let feed = |age_s, trust| Feed { ue: [10, 0, 0, 1].into(), age_s, trust };
        let feeds = vec![feed(0.5, Trust::Believed), feed(2.25, Trust::TooLow)];
        let unused_reports = Unused { old: 4, ..Unused::default() };
        let text = text(&Status { totals, accepting: true, feeds, unused_reports, connections: Vec::new() });
        for line in [
            "# TYPE ranway_proxy_connections gauge",
            "ranway_proxy_connections 3",
            "ranway_proxy_accepting 1",
            "ranway_proxy_accepted_total{from=\"ran\"} 5",
            "ranway_proxy_bytes_total{to=\"ran\"} 1099511627776",
            "ranway_proxy_reset_total 0",
            "ranway_proxy_feeds{trust=\"too-low\"} 1",
            "ranway_proxy_feeds{trust=\"stale\"} 0",
            "ranway_proxy_feed_age_seconds 2.25",
            "ranway_proxy_reports_discarded_total{why=\"old\"} 4",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
