//! Metrics for Prometheus: the text format, what all services tell, and the page that only those may read who may.
//!
//! On the loopback interface, everybody on this machine may read them, under an address or `localhost`: pages of browsers that reach
//! the address by a name of their own (DNS rebinding) may not. Beyond it, readers need a token.

mod histogram;
mod metric;
mod page;
mod process;
#[cfg(test)]
mod reference;
mod server;

pub(crate) use histogram::Histogram;
pub use metric::Metric;
pub(crate) use page::Page;
pub use server::{MetricsListener, MetricsServer};

use crate::secret;
use crate::server::Hosts;
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
use prometheus_client::registry::Registry;

/// The type that Prometheus expects of it.
pub(crate) const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

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
fn router(access: MetricsAccess, text: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
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
