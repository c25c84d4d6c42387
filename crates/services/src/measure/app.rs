//! What connections share.

use super::keys::{Admission, Denied, Keys, Open};
use super::limits::{Gate, Limits, Visitor, is_private, truncated};
use super::metrics::Counters;
use super::results::Results;
use super::stream::Stream;
use crate::clock::unix_now;
use crate::log::Log;
use serde::Serialize;
use speedtest::rmbt::server::Direction;
use speedtest::rmbt::token;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use units::Time;

/// What the control server tells clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The name or address of this server, if it is not the host that clients name in their requests.
    pub name: Option<String>,
    /// Seconds of each direction.
    pub seconds: u32,
    /// The number of connections.
    pub flows: u32,
}

/// What connections share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) limits: Limits,
    pub(super) tls_only: bool,
    pub(super) require_v2: bool,
    pub(super) open: Open,
    pub(super) control: Option<Control>,
    pub(super) gate: Arc<Gate>,
    pub(super) counters: Arc<Counters>,
    pub(super) results: Results,
    pub(super) log: Log,
    /// Data of downloads.
    pub(super) random: Vec<u8>,
    /// The start of the clock of state machines.
    pub(super) start: Instant,
    pub(super) keys: RwLock<Arc<Keys>>,
    pub(super) tls: RwLock<Option<Arc<ServerConfig>>>,
    /// Long bodies of requests that are read at the same time.
    pub(super) bodies: Semaphore,
}

/// A transfer, as it is stored.
#[derive(Debug, Serialize)]
struct Stored<'a> {
    /// Unix time of the end, in seconds.
    time: f64,
    kind: &'static str,
    protocol: &'static str,
    tls: bool,
    test: &'a str,
    /// The network of the client; its address is not stored.
    client: String,
    direction: &'static str,
    bytes: u64,
    seconds: f64,
    complete: bool,
    congestion: Option<String>,
    min_rtt_us: Option<u32>,
    retransmissions: Option<u32>,
    /// Microseconds since the start, and bytes until then.
    samples: Vec<(u64, u64)>,
}

/// A transfer that has ended.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) protocol: &'static str,
    pub(super) test: &'a str,
    pub(super) peer: IpAddr,
    pub(super) transfer: speedtest::rmbt::server::Transfer,
}

impl App {
    pub(super) fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Counts, stores and reports a transfer.
    pub(super) fn end(&self, stream: &Stream, ended: Ended<'_>) {
        let Ended { protocol, test, peer, transfer } = ended;
        self.counters.transferred(transfer.direction, transfer.bytes);
        let direction = match transfer.direction {
            Direction::Download => "download",
            Direction::Upload => "upload",
        };
        let seconds = transfer.duration.as_secs_f64();
        let client = truncated(peer);
        if transfer.complete && seconds >= 1.0 {
            let rate = transfer.bytes as f64 * 8e-6 / seconds;
            self.log.line(format_args!("{client}: {protocol} {direction}, {rate:.1} Mbit/s for {seconds:.1} s"));
        }
        if !self.results.is_stored() {
            return;
        }
        let socket = stream.socket();
        let info = netio::sys::tcp_info(std::os::fd::AsFd::as_fd(socket)).ok();
        self.results.store(&Stored {
            time: unix_now().as_secs_f64(),
            kind: "transfer",
            protocol,
            tls: stream.is_tls(),
            test,
            client,
            direction,
            bytes: transfer.bytes,
            seconds,
            complete: transfer.complete,
            congestion: rustix::net::sockopt::tcp_congestion(socket).ok(),
            // A kernel that has not measured a round trip says so by its largest number.
            min_rtt_us: info.and_then(|info| info.min_rtt()),
            retransmissions: info.map(|info| info.total_retrans),
            samples: transfer.samples.as_slice().iter().map(|(time, bytes)| (time.as_micros(), *bytes)).collect(),
        });
    }

    pub(super) fn keys(&self) -> Arc<Keys> {
        self.keys.read().map_or_else(|poisoned| poisoned.into_inner().clone(), |keys| keys.clone())
    }

    pub(super) fn tls(&self) -> Option<TlsAcceptor> {
        let tls = self.tls.read().map_or_else(|poisoned| poisoned.into_inner().clone(), |tls| tls.clone());
        tls.map(TlsAcceptor::from)
    }
}

impl App {
    /// Decides whether a client may measure, and counts it as a flow then.
    pub(super) fn admit(&self, visitor: &mut Visitor, peer: IpAddr, text: &str) -> Result<Admission, Denied> {
        let result = self.decide(visitor, peer, text);
        match result {
            Ok(_) => self.counters.tokens_accepted.fetch_add(1, Relaxed),
            Err(Denied::Busy(busy)) => {
                self.counters.refuse(busy);
                0
            }
            Err(_) => self.counters.tokens_refused.fetch_add(1, Relaxed),
        };
        result
    }

    fn decide(&self, visitor: &mut Visitor, peer: IpAddr, text: &str) -> Result<Admission, Denied> {
        let now = unix_now().as_secs_f64() as i64;
        let token = token::check(text, &self.keys().0, peer, now, self.require_v2);
        match (token, self.open) {
            (Ok(token), _) => {
                visitor.start_flow(Some(&token.id)).map_err(Denied::Busy)?;
                let wait = u64::try_from(token.start - now).unwrap_or(0);
                Ok(Admission { test: token.test, wait: Duration::from_secs(wait) })
            }
            (Err(refusal), Open::Nobody) => Err(Denied::Token(refusal)),
            (Err(_), Open::Private) if !is_private(peer) => Err(Denied::Foreign),
            (Err(_), Open::Private | Open::Anyone) => {
                visitor.start_flow(None).map_err(Denied::Busy)?;
                Ok(Admission { test: String::new(), wait: Duration::ZERO })
            }
        }
    }
}
