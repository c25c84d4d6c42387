//! The server of metrics: an address that is reserved first, and a thread that serves them there.

use super::metric::{Metric, text_of};
use super::{MetricsAccess, router};
use crate::server::{Most, refused, serve};
use netio::{Error, rights};
use std::net::{SocketAddr, TcpListener};
use std::thread::{Builder, JoinHandle};
use tokio::sync::oneshot;

/// The most connections of readers.
const MOST_READERS: Most = Most { connections: 64, of_site: 32 };

/// An address at which metrics will be served.
#[derive(Debug)]
pub struct MetricsListener {
    listener: TcpListener,
    address: SocketAddr,
    access: MetricsAccess,
}

impl MetricsListener {
    /// Reserves an address. Readers wait until it is served.
    ///
    /// # Errors
    /// [`Error::Wrong`] if it is in use or not this machine's.
    pub fn bind(access: MetricsAccess) -> Result<MetricsListener, Error> {
        let address = access.address();
        let wrong = |error: std::io::Error| {
            Error::Wrong(format!("metrics cannot be served at {address}: {}", refused(&error, "--metrics")))
        };
        let listener = TcpListener::bind(address).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        Ok(MetricsListener { listener, address, access })
    }

    /// Returns the address, whose port is chosen if it was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `metrics`, which it calls for each reader, in a thread of its own without capabilities. Whatever readers do, no other
    /// thread waits for them.
    ///
    /// # Errors
    /// [`Error::System`] without a thread.
    pub fn serve(
        self,
        metrics: impl Fn() -> Vec<Metric> + Clone + Send + Sync + 'static,
    ) -> Result<MetricsServer, Error> {
        self.serve_text(move || text_of(metrics()))
    }

    /// The same with metrics as text.
    pub(crate) fn serve_text(
        self,
        text: impl Fn() -> String + Clone + Send + Sync + 'static,
    ) -> Result<MetricsServer, Error> {
        let address = self.address;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::system("serve metrics"))?;
        let (running, stopped) = oneshot::channel::<()>();
        let run = move || {
            // It answers strangers, and needs no rights for that.
            if rights::give_up().is_err() {
                return;
            }
            runtime.block_on(async {
                tokio::select! {
                    () = self.run(text) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = Builder::new().name("metrics".into()).spawn(run).map_err(Error::system("serve metrics"))?;
        Ok(MetricsServer { address, running: Some(running), thread: Some(thread) })
    }

    /// Serves metrics as text on the current tokio runtime until the future is dropped.
    pub(crate) async fn run(self, text: impl Fn() -> String + Clone + Send + Sync + 'static) {
        if let Ok(listener) = tokio::net::TcpListener::from_std(self.listener) {
            serve(listener, router(self.access, text), MOST_READERS, Vec::new()).await;
        }
    }
}

/// A thread that serves metrics. Dropping it ends the thread and frees the address.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    /// The thread ends when this is gone.
    running: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Returns the address at which the metrics are.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn read(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("it is open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    }

    #[test]
    fn metrics_are_served_until_the_server_is_dropped_and_unknown_values_are_missing() {
        let access = || MetricsAccess::new(([127, 0, 0, 1], 0).into(), None).expect("it is loopback");
        let listener = MetricsListener::bind(access()).expect("there is a port");
        let server = listener.serve(|| {
            vec![
                Metric::counter("pep_flows", "flows", 7),
                Metric::sum("backlog_wait_seconds", "waiting", 1.5),
                Metric::gauge("backlog_rate_bytes_per_second", "the rate", None),
                Metric::gauge("pep_flows_limit", "the limit", Some(65_536.0)),
                Metric::gauges("backlog_queue_bytes", "bytes", "queue", [("host", Some(3_000.0)), ("modem", None)]),
            ]
        });
        let server = server.expect("it starts");
        let text = read(server.address());
        for line in [
            "# HELP ranway_pep_flows Flows",
            "# TYPE ranway_pep_flows counter",
            "ranway_pep_flows_total 7",
            "ranway_backlog_wait_seconds_total 1.5",
            "ranway_pep_flows_limit 65536",
            "ranway_backlog_queue_bytes{queue=\"host\"} 3000",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(text.contains("ranway_build_info{version=\""), "{text}");
        assert!(!text.contains("rate_bytes_per_second") && !text.contains("modem"), "{text}");
        let taken = MetricsAccess::new(server.address(), None).expect("it is loopback");
        let why = MetricsListener::bind(taken.clone()).expect_err("it is in use").to_string();
        assert!(why.starts_with(&format!("metrics cannot be served at {}: ", server.address())), "{why}");
        assert!(why.ends_with("choose another address with --metrics"), "{why}");
        drop(server);
        MetricsListener::bind(taken).expect("it is free again");
    }
}
