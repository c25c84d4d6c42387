//! The connections of a proxy as others than their worker see them: for the control of windows and rates, for the status and
//! for metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::feeds::Feeds;
use super::notice::Notice;
use super::relay::NO_LIMIT;
use super::settings::Settings;
use super::window::set_size;
use netio::sys::tcp_info;
use rapid::Sample;
use units::{Rate, Span};
use wire::tcp_info::TcpInfo;

/// No rate is promised.
const NO_PROMISE: u64 = u64::MAX;
/// `tcpi_min_rtt` without a sample.
const NO_RTT: u32 = u32::MAX;

/// The two sides of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Towards the UEs.
    Ran,
    /// Towards the servers.
    Wan,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Ran => Side::Wan,
            Side::Wan => Side::Ran,
        }
    }
}

/// Bytes that passed in one direction.
#[derive(Debug, Default)]
pub(super) struct Passed {
    /// Bytes taken from the source's socket.
    pub(super) taken: AtomicU64,
    /// Bytes that the proxy holds between both sockets.
    pub(super) held: AtomicU64,
}

/// A connection: a *radio leg* to the UE and a *wired leg* to its peer, which the client's address and port connect.
#[derive(Debug)]
pub struct Flow {
    ue: SocketAddr,
    peer: SocketAddr,
    opened_by: Side,
    opened: Instant,
    /// See [`Flow::interfaces`].
    interfaces: [Option<u32>; 2],
    radio: OwnedFd,
    wired: OwnedFd,
    established: AtomicBool,
    /// The whole receive buffer of each leg.
    pub(super) receive_buffer: usize,
    /// The receive buffer that the wired leg has, but for a control; 0 while the kernel tunes it.
    size: AtomicUsize,
    /// What the radio leg may send at most, in bytes per second; [`u64::MAX`] without a limit.
    pub(super) most_pacing: u64,
    /// Bytes towards the UE that may be between the sockets if a control limits them. The rest stays in the receive buffer, where
    /// it shrinks the window.
    pub(super) passing: AtomicUsize,
    /// The rate in bit/s that a control promises it, or [`NO_PROMISE`].
    promised: AtomicU64,
    pub(super) to_ue: Passed,
    pub(super) from_ue: Passed,
    /// Whether the news of its progress wait for the control.
    noted: AtomicBool,
}

impl Flow {
    /// `accepted` is the leg to the client, which is on the side `opened_by` and asked for `server` by a SYN with `mark`.
    pub(super) fn new(
        opened_by: Side,
        (client, server): (SocketAddr, SocketAddr),
        [accepted, outgoing]: [OwnedFd; 2],
        settings: &Settings,
        mark: u32,
        now: Instant,
    ) -> Flow {
        let (ue, peer, radio, wired) = match opened_by {
            Side::Ran => (client, server, accepted, outgoing),
            Side::Wan => (server, client, outgoing, accepted),
        };
        Flow {
            ue,
            peer,
            opened_by,
            opened: now,
            interfaces: [None; 2],
            radio,
            wired,
            established: AtomicBool::new(false),
            receive_buffer: settings.receive_buffer,
            size: AtomicUsize::new(if settings.is_tuned() { 0 } else { settings.receive_buffer }),
            most_pacing: settings.most_pacing(mark),
            passing: AtomicUsize::new(NO_LIMIT),
            promised: AtomicU64::new(NO_PROMISE),
            to_ue: Passed::default(),
            from_ue: Passed::default(),
            noted: AtomicBool::new(false),
        }
    }

    /// The same of a connection that another process had, of which it had set these receive buffers and this rate.
    pub(super) fn resumed(self, receive_buffer: usize, size: Option<usize>, most_pacing: u64) -> Flow {
        Flow { receive_buffer, size: AtomicUsize::new(size.unwrap_or(0)), most_pacing, ..self }
    }

    /// The same of a connection between these interfaces.
    pub(super) fn between(self, interfaces: [Option<u32>; 2]) -> Flow {
        Flow { interfaces, ..self }
    }

    /// The numbers of the interfaces towards the UE and towards its peer, as far as they are known.
    pub(super) fn interfaces(&self) -> [Option<u32>; 2] {
        self.interfaces
    }

    /// The UE's address and port.
    pub fn ue(&self) -> SocketAddr {
        self.ue
    }

    /// The address and port of the UE's peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The side whose host opened the connection.
    pub fn opened_by(&self) -> Side {
        self.opened_by
    }

    /// When the proxy accepted the connection.
    pub fn opened(&self) -> Instant {
        self.opened
    }

    /// Whether both legs are or were established.
    pub fn is_established(&self) -> bool {
        self.established.load(Relaxed)
    }

    /// The payload rate that a control promises it.
    pub(super) fn promised(&self) -> Option<Rate> {
        Some(self.promised.load(Relaxed)).filter(|&rate| rate != NO_PROMISE).map(Rate::from_bits_per_sec)
    }

    /// Notes what [`Flow::promised`] is from now on.
    pub(super) fn promise(&self, rate: Option<Rate>) {
        self.promised.store(rate.map_or(NO_PROMISE, Rate::bits_per_sec), Relaxed);
    }

    /// The socket of the radio leg.
    pub fn radio(&self) -> BorrowedFd<'_> {
        self.radio.as_fd()
    }

    /// The socket of the wired leg.
    pub fn wired(&self) -> BorrowedFd<'_> {
        self.wired.as_fd()
    }

    /// The legs in the order client, server.
    pub(super) fn legs(&self) -> [BorrowedFd<'_>; 2] {
        match self.opened_by {
            Side::Ran => [self.radio(), self.wired()],
            Side::Wan => [self.wired(), self.radio()],
        }
    }

    /// Gives a leg a receive buffer of so many bytes, whose host has shown that it reads. Where a control limits it, the control
    /// does so, but for the first time.
    pub(super) fn enlarge(&self, source: usize, bytes: usize) {
        let is_to_ue = self.is_to_ue(source);
        if !is_to_ue || self.size().is_none() || self.passing.load(Relaxed) == NO_LIMIT {
            set_size(self.legs()[source], bytes);
        }
        if is_to_ue {
            // Only then: a control that limits the buffer does so again.
            self.size.store(bytes, Release);
        }
    }

    /// The last receive buffer of the wired leg by [`Flow::enlarge`], or the whole one if it had that from the start.
    pub(super) fn size(&self) -> Option<usize> {
        Some(self.size.load(Acquire)).filter(|&bytes| bytes > 0)
    }

    /// Whether bytes from the client's leg (0) or from the outgoing one (1) go to the UE.
    pub(super) fn is_to_ue(&self, source: usize) -> bool {
        (source == 0) == (self.opened_by == Side::Wan)
    }

    /// The bytes that passed from one of these legs.
    pub(super) fn passed(&self, source: usize) -> &Passed {
        if self.is_to_ue(source) { &self.to_ue } else { &self.from_ue }
    }

    /// Counts what the proxy has taken from either side: as long as it does not change, no bytes have come.
    pub(super) fn taken(&self) -> [u64; 2] {
        [&self.to_ue, &self.from_ue].map(|passed| passed.taken.load(Relaxed))
    }

    /// The control has taken notice of the flow's progress, and reads its counters next.
    pub(super) fn on_noted(&self) {
        self.noted.swap(false, AcqRel);
    }

    /// Reads the state of both legs.
    ///
    /// # Errors
    /// The kernel is older than Linux 4.10.
    pub fn observe(&self) -> std::io::Result<Observation> {
        // The counters first: what they include, the sockets include as well.
        let (to_ue, from_ue) = (&self.to_ue, &self.from_ue);
        let (taken, held) = (to_ue.taken.load(Relaxed), to_ue.held.load(Relaxed));
        let (taken_from_ue, held_from_ue) = (from_ue.taken.load(Relaxed), from_ue.held.load(Relaxed));
        let (wired, radio) = (tcp_info(self.wired())?, tcp_info(self.radio())?);
        Ok(Observation { taken, held, taken_from_ue, held_from_ue, wired, radio })
    }
}

/// A connection at one time.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// Bytes towards the UE that the proxy has taken from the wired leg's receive buffer.
    pub taken: u64,
    /// Bytes towards the UE in the proxy, between both sockets.
    pub held: u64,
    /// Bytes from the UE that the proxy has taken from the radio leg's receive buffer.
    pub taken_from_ue: u64,
    /// Bytes from the UE in the proxy, between both sockets.
    pub held_from_ue: u64,
    /// The kernel's state of the wired leg.
    pub wired: TcpInfo,
    /// The kernel's state of the radio leg.
    pub radio: TcpInfo,
}

impl Observation {
    /// Bytes towards the UE that have arrived in order on the wired leg.
    pub fn arrived(&self) -> u64 {
        self.wired.bytes_received.max(self.taken)
    }

    /// Bytes towards the UE that the proxy has given to the radio leg's socket.
    pub fn given(&self) -> u64 {
        self.taken.saturating_sub(self.held)
    }

    /// Bytes that the UE has acknowledged.
    pub fn delivered(&self) -> u64 {
        // The kernel counts an acknowledged SYN or FIN as a byte.
        self.radio.bytes_acked.min(self.given())
    }

    /// Bytes sent to the UE and not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.given().saturating_sub(self.delivered()).saturating_sub(u64::from(self.radio.notsent_bytes))
    }

    /// Returns what a control sees of a flow that had delivered `before` bytes when the control was told of it.
    pub fn sample(&self, before: u64) -> Sample {
        let span = |micros: u32| (micros > 0 && micros != NO_RTT).then(|| Span::from_micros(u64::from(micros)));
        Sample {
            arrived: self.arrived().saturating_sub(before),
            delivered: self.delivered().saturating_sub(before),
            in_flight: self.in_flight(),
            wan_rtt: span(self.wired.rtt),
            wan_min_rtt: span(self.wired.min_rtt),
            wan_receive_rtt: span(self.wired.rcv_rtt),
            ran_rtt: span(self.radio.rtt),
            ran_min_rtt: span(self.radio.min_rtt),
        }
    }

    /// Bytes in the wired leg's receive buffer.
    pub fn unread(&self) -> u64 {
        self.arrived().saturating_sub(self.taken)
    }
}

/// What has happened to a connection, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Both legs are established.
    Established(u64),
    /// Bytes have passed. This is told once until [`Flow::on_noted`].
    Progress(u64),
    /// It has ended.
    Closed(u64),
}

/// The connections of a worker.
#[derive(Debug, Default)]
pub(super) struct Registry {
    flows: Mutex<BTreeMap<u64, Arc<Flow>>>,
    /// Whether a control follows the news.
    followed: AtomicBool,
    /// The news since the control took them last.
    news: Mutex<Vec<News>>,
    /// The feeds of a control, for all workers in the registry of the first.
    pub(super) feeds: Feeds,
    /// What the operator has not been told yet.
    notices: Mutex<Vec<Notice>>,
}

impl Registry {
    pub(super) fn insert(&self, id: u64, flow: &Arc<Flow>) {
        self.lock().insert(id, Arc::clone(flow));
    }

    pub(super) fn establish(&self, id: u64, flow: &Flow) {
        flow.established.store(true, Relaxed);
        self.tell(News::Established(id));
    }

    /// Call it after the flow's counters have changed.
    pub(super) fn progress(&self, id: u64, flow: &Flow) {
        if self.followed.load(Relaxed) && !flow.noted.swap(true, AcqRel) {
            self.tell(News::Progress(id));
        }
    }

    pub(super) fn remove(&self, id: u64) {
        self.lock().remove(&id);
        self.tell(News::Closed(id));
    }

    /// Forgets all connections, which are another process's.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn tell(&self, news: News) {
        let mut all = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if self.followed.load(Relaxed) {
            all.push(news);
        }
    }

    /// Begins to collect news, the first of which are the connections that there are, until the returned value is dropped.
    pub(super) fn follow(&self) -> Following<'_> {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.clear();
        self.followed.store(true, Relaxed);
        drop(news);
        // Those that are established in the meantime may be told twice.
        let mut established = Vec::new();
        self.for_each(|id, flow| established.extend(flow.is_established().then_some(News::Established(id))));
        self.news.lock().unwrap_or_else(PoisonError::into_inner).splice(..0, established);
        Following(self)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Flow>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the operator.
    pub(super) fn notify(&self, notices: impl IntoIterator<Item = Notice>) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(notices);
    }

    /// Takes what the operator has not been told yet.
    pub(super) fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a connection, unless it has ended.
    pub(super) fn get(&self, id: u64) -> Option<Arc<Flow>> {
        self.lock().get(&id).cloned()
    }

    /// Calls `act` for each connection. Connections neither open nor close meanwhile, so it should return soon.
    pub(super) fn for_each(&self, mut act: impl FnMut(u64, &Arc<Flow>)) {
        for (&id, flow) in &*self.lock() {
            act(id, flow);
        }
    }
}

/// The news of a worker's connections, for a control.
#[derive(Debug)]
pub(super) struct Following<'a>(&'a Registry);

impl Following<'_> {
    /// Replaces `read` by the news since the last call.
    pub(super) fn take(&self, read: &mut Vec<News>) {
        read.clear();
        std::mem::swap(read, &mut *self.0.news.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.followed.store(false, Relaxed);
        self.0.news.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
