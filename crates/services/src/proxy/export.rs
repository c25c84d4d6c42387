//! Sends flow records of connections that have ended to a collector: IPFIX over UDP.
//!
//! Workers never wait for a network: a thread sends, and what it cannot send is counted as lost. Nothing that a collector or the way to
//! it does ends anything. The proxy takes no packets to a collector: they are of this machine and of UDP.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netio::Error;
use rustix::net::sockopt::ip_mtu;

use super::ended::Ended;
use super::ipfix::{Messages, Record};
use super::notice::Notice;
use super::thread;
use crate::clock::unix_now;

/// Connections that may wait for the thread.
const MOST_WAITING: usize = 1 << 14;
/// The longest time for which a record waits for others.
const FLUSH: Duration = Duration::from_secs(1);
/// RFC 7011, section 8.4: templates are to be sent more than once before data that needs them. This many times before the first data, and
/// as often after it, one before each message.
const COPIES: u32 = 2;
/// The longest time for which a message waits for room in the socket. What waits behind it is lost then.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// Without an error for this long, messages get through again.
const REPAIRED: Duration = Duration::from_secs(5);
/// Bytes of an IP packet, at most: the least MTU of IPv6 (RFC 8200, section 5), which paths have nearly everywhere, so a message is one
/// packet even where a path's own MTU is not discovered. Section 10.3.3: without knowing more, 512 bytes.
const MOST: usize = 1_280;
const UNKNOWN: usize = 512;
/// The headers of UDP with IPv4, and with IPv6.
const HEADERS: [usize; 2] = [20 + 8, 40 + 8];

/// Where flow records go, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSettings {
    /// The collector's address.
    pub collector: SocketAddr,
    /// The observation domain of this proxy.
    pub domain: u32,
    /// Interval between templates.
    pub refresh: Duration,
}

/// Counters of flow records.
#[derive(Debug, Default)]
pub(super) struct Counts {
    sent: AtomicU64,
    lost: AtomicU64,
    /// Connections that found no room to wait.
    overflowed: AtomicU64,
}

impl Counts {
    /// The records that were sent, and those that could not be sent or that a collector's host is known to have refused.
    pub(super) fn get(&self) -> [u64; 2] {
        [self.sent.load(Relaxed), self.lost.load(Relaxed) + self.overflowed.load(Relaxed)]
    }
}

/// The way to a collector.
#[derive(Clone, Debug)]
pub(super) struct Exporter {
    ended: SyncSender<Ended>,
    counts: Arc<Counts>,
}

impl Exporter {
    /// Starts the thread, which ends after the last of this value's copies. It calls `tell` for what an operator should know.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn start(
        settings: ExportSettings,
        counts: Arc<Counts>,
        tell: impl Fn(Notice) + Send + 'static,
    ) -> Result<(Exporter, JoinHandle<()>), Error> {
        let (ended, taken) = sync_channel(MOST_WAITING);
        let export = Export::new(settings, Arc::clone(&counts), taken, tell);
        let thread = thread::start("proxy-export", move || export.run())?;
        Ok((Exporter { ended, counts }, thread))
    }

    pub(super) fn put(&self, ended: Ended) {
        if self.ended.try_send(ended).is_err() {
            self.counts.overflowed.fetch_add(1, Relaxed);
        }
    }
}

/// The thread.
struct Export<T> {
    settings: ExportSettings,
    counts: Arc<Counts>,
    taken: Receiver<Ended>,
    tell: T,
    messages: Messages,
    /// A session with the collector lasts as long as its socket.
    socket: Option<UdpSocket>,
    /// The records in the last message that was sent, which its receiver may yet refuse.
    unanswered: u32,
    /// How often templates have to be sent before data.
    copies: u32,
    /// Since when a record waits.
    since: Option<Instant>,
    /// When templates were sent last.
    refreshed: Instant,
    /// When a message failed last, if the operator has been told and messages have not got through since.
    failed: Option<Instant>,
    /// The last value of [`Counts::overflowed`].
    overflowed: u64,
}

impl<T: Fn(Notice)> Export<T> {
    fn new(settings: ExportSettings, counts: Arc<Counts>, taken: Receiver<Ended>, tell: T) -> Export<T> {
        Export {
            messages: Messages::new(settings.domain, UNKNOWN - HEADERS[1]),
            settings,
            overflowed: counts.overflowed.load(Relaxed),
            counts,
            taken,
            tell,
            socket: None,
            unanswered: 0,
            copies: 0,
            since: None,
            refreshed: Instant::now(),
            failed: None,
        }
    }

    fn run(mut self) {
        (0..COPIES).for_each(|_| self.send_templates());
        loop {
            match self.taken.recv_timeout(self.rest()) {
                Ok(ended) => self.put(&ended),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            if self.since.is_some_and(|since| since.elapsed() >= FLUSH) {
                self.flush();
            }
            if self.refreshed.elapsed() >= self.settings.refresh {
                self.send_templates();
            }
            let before = std::mem::replace(&mut self.overflowed, self.counts.overflowed.load(Relaxed));
            if self.overflowed > before {
                self.fail(0, "more connections end than can be sent");
            }
        }
    }

    /// Returns how long nothing is to be done, unless a connection ends.
    fn rest(&self) -> Duration {
        let refresh = self.settings.refresh.saturating_sub(self.refreshed.elapsed());
        self.since.map_or(refresh, |since| refresh.min(FLUSH.saturating_sub(since.elapsed())))
    }

    fn put(&mut self, ended: &Ended) {
        let record = Record::new(ended);
        if !self.messages.has_room(&record) {
            self.flush();
        }
        if self.messages.add(&record) {
            self.copies = COPIES;
        }
        self.since.get_or_insert_with(Instant::now);
    }

    /// Sends the records that wait, after the templates if the collector may not have them.
    fn flush(&mut self) {
        self.since = None;
        if self.messages.waiting() == 0 {
            return;
        }
        if self.socket.is_none() {
            self.open();
        }
        if self.copies > 0 {
            self.copies -= 1;
            self.send_templates();
        }
        if let Some((message, count)) = self.messages.take(now()) {
            self.send(&message, count);
        }
    }

    fn send_templates(&mut self) {
        self.refreshed = Instant::now();
        if self.socket.is_none() {
            self.open();
        }
        for message in self.messages.templates(now()) {
            self.send(&message, 0);
        }
    }

    /// Begins a session with the collector, if there is a way to it.
    fn open(&mut self) {
        let collector = self.settings.collector;
        let open = || -> io::Result<UdpSocket> {
            let any = match collector {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = UdpSocket::bind(any)?;
            socket.set_write_timeout(Some(SEND_TIMEOUT))?;
            socket.connect(collector)?;
            Ok(socket)
        };
        match open() {
            Ok(socket) => {
                let found =
                    if collector.is_ipv4() { ip_mtu(&socket).map_or(UNKNOWN, |mtu| mtu as usize) } else { MOST };
                let headers = HEADERS[usize::from(collector.is_ipv6())];
                // Each path has 512 bytes.
                self.messages.begin(found.clamp(UNKNOWN, MOST) - headers);
                self.copies = COPIES;
                self.unanswered = 0;
                self.socket = Some(socket);
            }
            Err(why) => self.fail(0, why),
        }
    }

    /// Sends a message with so many records.
    fn send(&mut self, message: &[u8], records: u32) {
        let was_refused = self.look_at_refusal();
        if was_refused && records > 0 {
            // Should the collector be there again, it has lost them.
            self.send_templates();
            self.look_at_refusal();
        }
        let Some(socket) = &self.socket else { return self.lose(records) };
        let sent = match socket.send(message) {
            // It has come in this moment, of an earlier message.
            Err(why) if why.kind() == ErrorKind::ConnectionRefused => socket.send(message),
            sent => sent,
        };
        match sent {
            Ok(_) => {
                self.unanswered = records;
                self.counts.sent.fetch_add(records.into(), Relaxed);
                if !was_refused && self.failed.is_some_and(|at| at.elapsed() >= REPAIRED) {
                    self.failed = None;
                    let text =
                        format!("flow records to the IPFIX collector {} no longer fail", self.settings.collector);
                    (self.tell)(Notice::Repaired(text.into()));
                }
            }
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let behind = self.taken.try_iter().count() as u32;
                self.fail(records + behind, "there is no room to send");
            }
            Err(why) => {
                // Its route or its own address may be gone. The next message has another socket.
                self.socket = None;
                self.fail(records, why);
            }
        }
    }

    /// Returns whether ICMP has told that the message before was refused.
    fn look_at_refusal(&mut self) -> bool {
        let Some(Ok(Some(why))) = self.socket.as_ref().map(UdpSocket::take_error) else { return false };
        let refused = std::mem::take(&mut self.unanswered);
        self.fail(refused, why);
        self.copies = COPIES;
        true
    }

    /// Counts records that are lost for a reason that was told.
    fn lose(&mut self, records: u32) {
        self.counts.lost.fetch_add(records.into(), Relaxed);
        self.failed = self.failed.map(|_| Instant::now());
    }

    /// Counts records that are lost, and tells the operator the first time.
    fn fail(&mut self, records: u32, why: impl Display) {
        self.lose(records);
        if self.failed.replace(Instant::now()).is_none() {
            let collector = self.settings.collector;
            let text = format!(
                "the IPFIX collector {collector} does not get all flow records ({why}); those that are lost are counted"
            );
            (self.tell)(Notice::Failed(text.into()));
        }
    }
}

/// The present Unix time. It wraps in 2106 (section 3.1).
fn now() -> u32 {
    (unix_now().as_nanos() / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::ended::tests::example;
    use std::sync::Mutex;

    /// A collector, and an exporter to it.
    struct Exported {
        collector: UdpSocket,
        exporter: Option<Exporter>,
        thread: Option<JoinHandle<()>>,
        counts: Arc<Counts>,
        told: Arc<Mutex<Vec<Notice>>>,
    }

    fn collect(at: SocketAddr) -> UdpSocket {
        let collector = UdpSocket::bind(at).expect("a port");
        collector.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        collector
    }

    impl Exported {
        fn start(refresh: Duration) -> Exported {
            let collector = collect((Ipv4Addr::LOCALHOST, 0).into());
            let settings =
                ExportSettings { collector: collector.local_addr().expect("an address"), domain: 7, refresh };
            let (counts, told) = (Arc::<Counts>::default(), Arc::<Mutex<Vec<Notice>>>::default());
            let tell = {
                let told = Arc::clone(&told);
                move |notice| told.lock().expect("nobody panics").push(notice)
            };
            let (exporter, thread) = Exporter::start(settings, Arc::clone(&counts), tell).expect("a thread");
            Exported { collector, exporter: Some(exporter), thread: Some(thread), counts, told }
        }

        fn put(&self, ports: std::ops::Range<u16>) {
            let exporter = self.exporter.as_ref().expect("it has not ended");
            ports.for_each(|port| exporter.put(example(port)));
        }

        /// The sequence number of the next message, and the number of its first set: templates have 2.
        fn receive(&self) -> (u32, u16) {
            let mut message = [0; 1 << 16];
            let length = self.collector.recv(&mut message).expect("it comes");
            assert!(length <= MOST, "{length} bytes");
            let sequence = u32::from_be_bytes(*message[8..].first_chunk().expect("four bytes"));
            (sequence, u16::from_be_bytes(*message[16..].first_chunk().expect("two bytes")))
        }

        fn told(&self) -> Vec<Notice> {
            self.told.lock().expect("nobody panics").clone()
        }

        fn end(&mut self) {
            self.exporter = None;
            self.thread.take().into_iter().for_each(|thread| thread.join().expect("it only sends"));
        }
    }

    #[test]
    fn records_are_sent_within_a_second_after_their_templates_and_templates_again_and_again() {
        let mut exported = Exported::start(Duration::from_secs(2));
        assert_eq!([(); 2].map(|()| exported.receive()), [(0, 2); 2]);
        let start = Instant::now();
        exported.put(1..3);
        // What is unknown of these needs a template of its own.
        let number = |(sequence, number): (u32, u16)| (sequence, number > 2);
        assert_eq!([(); 2].map(|()| number(exported.receive())), [(0, false), (0, true)]);
        assert!((0.9..2.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
        // Full messages do not wait: 15 records of 79 bytes.
        let start = Instant::now();
        exported.put(3..40);
        assert_eq!([(); 3].map(|()| number(exported.receive())), [(2, false), (2, true), (17, true)]);
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
        assert!(number(exported.receive()).1);
        assert_eq!(exported.receive().1, 2);
        // The last ones do not wait either.
        exported.put(40..41);
        exported.end();
        assert_eq!(number(exported.receive()), (39, true));
        assert_eq!((exported.counts.get(), exported.told()), ([40, 0], Vec::new()));
    }

    #[test]
    fn a_collector_that_is_gone_for_a_while_is_told_once_and_gets_templates_when_it_is_back() {
        let mut exported = Exported::start(Duration::from_secs(3_600));
        let at = exported.collector.local_addr().expect("an address");
        // Nobody has the port meanwhile, but perhaps somebody in the same moment.
        exported.collector = collect((Ipv4Addr::LOCALHOST, 0).into());
        let pause = FLUSH + Duration::from_millis(300);
        for port in 1..4 {
            exported.put(port..port + 1);
            std::thread::sleep(pause);
        }
        let [sent, lost] = exported.counts.get();
        assert!(sent == 3 && (2..=3).contains(&lost), "{sent} {lost}");
        assert!(matches!(&exported.told()[..], [Notice::Failed(text)] if text.contains(&at.to_string())));
        exported.collector = collect(at);
        exported.put(4..5);
        let kinds = [(); 2].map(|()| exported.receive().1);
        assert!(kinds[0] == 2 && kinds[1] > 2, "{kinds:?}");
        std::thread::sleep(REPAIRED);
        exported.put(5..6);
        exported.end();
        assert!(matches!(&exported.told()[..], [_, Notice::Repaired(_)]), "{:?}", exported.told());
        assert!(exported.counts.get()[1] <= 3);
    }

    #[test]
    fn a_connection_that_finds_no_room_is_counted_and_nobody_waits() {
        let (ended, _taken) = sync_channel(1);
        let exporter = Exporter { ended, counts: Arc::default() };
        (0..3).for_each(|port| exporter.put(example(port)));
        assert_eq!(exporter.counts.get(), [0, 2]);
    }

    #[test]
    fn without_a_way_to_the_collector_records_are_lost_and_nothing_else() {
        let (ended, taken) = sync_channel(8);
        let told = Mutex::new(Vec::new());
        // Broadcast is forbidden to a socket that has not asked for it.
        let settings = ExportSettings {
            collector: (Ipv4Addr::BROADCAST, 4739).into(),
            domain: 1,
            refresh: Duration::from_secs(60),
        };
        let counts = Arc::<Counts>::default();
        let exporter = Exporter { ended, counts: Arc::clone(&counts) };
        (0..5).for_each(|port| exporter.put(example(port)));
        drop(exporter);
        let tell = |notice| told.lock().expect("nobody panics").push(notice);
        Export::new(settings, Arc::clone(&counts), taken, tell).run();
        assert_eq!(counts.get(), [0, 5]);
        assert_eq!(told.lock().expect("nobody panics").len(), 1);
    }
}
