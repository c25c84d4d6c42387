//! Metrics for Prometheus, over HTTP.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netio::Error;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::status::{Status, status};
use super::worker::Shared;

/// Interval between checks whether the proxy ends.
const TURN: Duration = Duration::from_millis(50);
/// Time for a request and for its answer, each.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request.
const LONGEST: usize = 8 << 10;
/// The type that Prometheus expects of its text format.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An address at which metrics will be served.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
}

impl Metrics {
    /// Reserves `address`.
    ///
    /// # Errors
    /// [`Error::Wrong`] if it is in use or not this machine's.
    pub fn bind(address: SocketAddr) -> Result<Metrics, Error> {
        let wrong = |error| Error::Wrong(format!("metrics cannot be served at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(wrong)?;
        listener.set_nonblocking(true).map_err(wrong)?;
        Ok(Metrics { listener })
    }

    pub(super) fn serve(
        self,
        workers: Vec<Arc<Shared>>,
        stop: Arc<AtomicBool>,
    ) -> Result<(SocketAddr, JoinHandle<()>), Error> {
        let address = self.listener.local_addr().map_err(Error::system("serve metrics"))?;
        let run = move || {
            while !stop.load(Relaxed) {
                match self.listener.accept() {
                    // Who does not ask properly gets no answer.
                    Ok((stream, _)) => drop(answer(stream, || text(&status(&workers, false)))),
                    Err(_) => std::thread::sleep(TURN),
                }
            }
        };
        let thread = std::thread::Builder::new().name("proxy-metrics".into());
        Ok((address, thread.spawn(run).map_err(Error::system("start a thread"))?))
    }
}

/// Answers a request of HTTP/1.0 or 1.1 and closes the connection.
fn answer(mut stream: TcpStream, metrics: impl Fn() -> String) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let until = Instant::now() + PATIENCE;
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > LONGEST {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut some = [0; 1024];
        match stream.read(&mut some)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => request.extend(&some[..count]),
        }
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let (state, kind, body) = match words[..] {
        [b"GET", b"/metrics" | b"/", _] => ("200 OK", TEXT, metrics()),
        [b"GET", ..] => ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET is possible\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {state}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Encodes the totals of a status.
#[derive(Debug)]
struct Totals(Status);

impl Collector for Totals {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Status { totals: of, accepting, .. } = &self.0;
        let gauges = [
            ("connections", "Connections at present", of.open),
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
            ("not_ours", "Connections to the proxy's own port", of.not_ours),
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
        Ok(())
    }
}

fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("ranway_proxy");
    registry.register_collector(Box::new(Totals(status.clone())));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Totals as Counted;

    fn ask(request: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        client.write_all(request).expect("it is sent");
        client.shutdown(std::net::Shutdown::Write).expect("it is connected");
        let (server, _) = listener.accept().expect("a client");
        let _ = answer(server, || "all of them\n".to_owned());
        let mut said = String::new();
        let _ = client.read_to_string(&mut said);
        said
    }

    #[test]
    fn metrics_are_served_at_their_path_alone() {
        let said = ask(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("\r\n\r\nall of them\n"), "{said}");
        assert!(ask(b"GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert_eq!(ask(b"GET /metrics HTTP/1.1\r\n"), "");
        assert_eq!(ask(&[b'x'; 20_000]), "");
    }

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
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
