//! Metrics for Prometheus: the text format, what all services tell, and the page that only those may read who may.
//!
//! On the loopback interface, everybody on this machine may read them, under an address or `localhost`: pages of browsers that reach
//! the address by a name of their own (DNS rebinding) may not. Beyond it, readers need a token.

mod histogram;
mod process;
#[cfg(test)]
mod reference;

pub(crate) use histogram::Histogram;

use crate::secret;
use crate::server::{Hosts, Most};
use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::get;
use std::fmt;
use std::net::SocketAddr;

use process::Process;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// The type that Prometheus expects of it.
pub(crate) const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The most connections of readers.
pub(crate) const MOST_READERS: Most = Most { connections: 64, of_site: 32 };
/// The shortest token.
const SHORTEST_TOKEN: usize = 16;

/// Who may read metrics.
#[derive(Clone)]
pub struct MetricsAccess {
    address: SocketAddr,
    token: Option<String>,
}

impl fmt::Debug for MetricsAccess {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("MetricsAccess").field("address", &self.address).finish_non_exhaustive()
    }
}

impl MetricsAccess {
    /// Serves metrics at an address, to those who have the token if there is one.
    ///
    /// # Errors
    /// An address that others can reach without a token, or a token that is too short or cannot be sent.
    pub fn new(address: SocketAddr, token: Option<String>) -> Result<MetricsAccess, String> {
        match &token {
            None if !address.ip().to_canonical().is_loopback() => Err(format!(
                "metrics at {address} can be read by others: give a token with --metrics-token, or an address such as 127.0.0.1:{}",
                address.port()
            )),
            Some(token) if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(format!("a token of metrics has {SHORTEST_TOKEN} or more letters and digits, and no spaces"))
            }
            _ => Ok(MetricsAccess { address, token }),
        }
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn check(&self, request: &Request) -> Result<(), (StatusCode, &'static str)> {
        let headers = request.headers();
        if self.address.ip().to_canonical().is_loopback() && !Hosts::default().accept(headers) {
            return Err((StatusCode::FORBIDDEN, "the metrics are at 127.0.0.1 or localhost, not at this name\n"));
        }
        match &self.token {
            Some(token) if !secret::bearer(headers).is_some_and(|given| secret::is_same(given, token)) => {
                Err((StatusCode::UNAUTHORIZED, "a token is needed: send `Authorization: Bearer TOKEN`\n"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the pages: the metrics, as `text` returns them.
pub(crate) fn router(access: MetricsAccess, text: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let page = get(move || async move { ([(header::CONTENT_TYPE, CONTENT)], text()) });
    Router::new()
        .route("/metrics", page.clone())
        .route("/", page)
        .fallback(|| async { (StatusCode::NOT_FOUND, "the metrics are at /metrics\n") })
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            let checked = access.check(&request);
            async move {
                match checked {
                    Ok(()) => next.run(request).await,
                    Err(refused) => refused.into_response(),
                }
            }
        }))
}

/// Returns the metrics of a collector, whose names begin with `prefix`, and those of this process.
pub(crate) fn text(prefix: &str, collector: impl Collector) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for (prefix, collector) in [(Some(prefix), Box::new(collector) as Box<dyn Collector>), (None, Box::new(Process))] {
        let mut registry = prefix.map_or_else(Registry::default, Registry::with_prefix);
        registry.register_collector(collector);
        let _ = encode_registry(&mut text, &registry);
    }
    let _ = encode_eof(&mut text);
    text
}

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
        let to = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        match whole(value) {
            Some(whole) => ConstCounter::new(whole).encode(to),
            None => ConstCounter::new(value).encode(to),
        }
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

fn gauge(value: f64, to: MetricEncoder) -> Written {
    match whole(value) {
        Some(whole) => ConstGauge::new(whole).encode(to),
        None => ConstGauge::new(value).encode(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use tower::ServiceExt;

    const TOKEN: &str = "0123456789abcdef";

    async fn status(access: &MetricsAccess, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        let app = router(access.clone(), || "all of them\n".to_owned());
        let mut request = axum::http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = app.oneshot(request.body(Body::empty()).expect("a request")).await.expect("an answer");
        let status = answer.status().as_u16();
        if status == 200 {
            assert_eq!(answer.headers()[header::CONTENT_TYPE], CONTENT);
            let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
            assert_eq!(&body[..], b"all of them\n");
        }
        status
    }

    #[tokio::test]
    async fn metrics_are_served_at_their_path_and_under_no_foreign_name() {
        let access = MetricsAccess::new(([127, 0, 0, 1], 9180).into(), None).expect("it is loopback");
        let local = [("host", "localhost:9180")];
        for (method, path, expected) in
            [("GET", "/metrics", 200), ("GET", "/", 200), ("GET", "/other", 404), ("POST", "/", 405)]
        {
            assert_eq!(status(&access, method, path, &local).await, expected, "{method} {path}");
        }
        assert_eq!(status(&access, "GET", "/metrics", &[("host", "evil.example:9180")]).await, 403);
    }

    #[tokio::test]
    async fn beyond_loopback_readers_need_the_token() {
        let address: SocketAddr = ([0, 0, 0, 0], 9180).into();
        let why = MetricsAccess::new(address, None).expect_err("everybody could read them");
        assert!(why.starts_with("metrics at 0.0.0.0:9180 can be read by others: "), "{why}");
        for token in ["short", "0123456789 abcdef"] {
            assert!(MetricsAccess::new(address, Some(token.to_owned())).is_err(), "{token}");
        }
        let access = MetricsAccess::new(address, Some(TOKEN.to_owned())).expect("it has a token");
        assert!(!format!("{access:?}").contains(TOKEN));
        let host = ("host", "router.example:9180");
        for (value, expected) in [("Bearer 0123456789abcdef", 200), ("Bearer 0123456789abcdee", 401), ("Bearer ", 401)]
        {
            assert_eq!(status(&access, "GET", "/metrics", &[host, ("authorization", value)]).await, expected);
        }
        assert_eq!(status(&access, "GET", "/metrics", &[host]).await, 401);
    }
}
