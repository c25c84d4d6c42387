//! The thread that connects, writes and reads for all flows.

use super::flow::{Flow, TIMESTAMPS};
use super::sample::{Shared, since};
use crate::Error;
use netio::sys::{send_memory, set_max_pacing_rate, set_window_clamp, tcp_info};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, listen, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use traffic::Reader;
use units::{Span, Time};

/// Bytes of one write or read.
const BLOCK: usize = 256 << 10;
/// Writes before others have their turn; a socket that takes more is ready again at once.
const WRITES: usize = 16;

/// What became of a connection.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// When the handshake was over at the sender, since the epoch.
    pub(super) established: Option<Span>,
    pub(super) completed: Option<Span>,
    /// Bytes that the receiver has read.
    pub(super) received: u64,
    pub(super) failure: Option<String>,
}

/// A flow's connection.
pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    from: SocketAddr,
    to: SocketAddr,
    start: Duration,
    stop: Option<Duration>,
    /// Payload of a full segment that the scenario asks for.
    mss: u32,
    clamp: Option<i32>,
    /// What is still to be written, if that is bounded.
    left: Option<u64>,
    /// The pauses of the receiving end, if it makes any.
    reader: Option<Reader>,
    sending: Sending,
    receiving: Receiving,
    last_read: Span,
    carried: Carried,
}

/// Where the sending end stands. It is `Ended` when it has written everything, or failed.
enum Sending {
    Waiting,
    Connecting,
    Writing,
    Ended,
}

/// Where the receiving end stands.
enum Receiving {
    Listening(TcpListener),
    Reading(TcpStream),
    Ended,
}

/// One of a connection's ends.
#[derive(Clone, Copy)]
enum End {
    Sender,
    Receiver,
}

/// The socket of a flow's receiver, listening.
pub(super) fn listener(flow: &Flow, address: SocketAddr) -> Result<OwnedFd, Error> {
    let socket = open(flow, address)?;
    let set = |option: &str| format!("flow {}: set {option} of its receiver", flow.name);
    if let Some(clamp) = clamp(flow) {
        // The kernel doubles what is asked for.
        let memory = (flow.tcp.receive_buffer.get() / 2) as usize;
        setsockopt(&socket, sockopt::RcvBufForce, &memory).map_err(Error::system(set("SO_RCVBUFFORCE")))?;
        set_window_clamp(socket.as_fd(), clamp).map_err(Error::system(set("TCP_WINDOW_CLAMP")))?;
    }
    listen(&socket, Backlog::new(1).expect("one is a backlog"))
        .map_err(Error::system(format!("listen at {address}")))?;
    Ok(socket)
}

/// The largest window that a flow's receiver may announce.
fn clamp(flow: &Flow) -> Option<i32> {
    flow.tcp.window_clamp.map(|clamp| clamp.get().min(i32::MAX as u64) as i32)
}

/// The socket of a flow's sender, not yet connected.
pub(super) fn sender(flow: &Flow, address: SocketAddr) -> Result<OwnedFd, Error> {
    let socket = open(flow, address)?;
    let set = |option: &str| format!("flow {}: set {option} of its sender", flow.name);
    setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(flow.cc))
        .map_err(Error::system(set("TCP_CONGESTION")))?;
    if flow.tcp.pacing == Some(true) {
        // Any rate but the largest makes the socket pace itself, at the rate that the kernel computes.
        set_max_pacing_rate(socket.as_fd(), u64::MAX - 1).map_err(Error::system(set("SO_MAX_PACING_RATE")))?;
    }
    Ok(socket)
}

/// A socket with what both ends have in common.
fn open(flow: &Flow, address: SocketAddr) -> Result<OwnedFd, Error> {
    let set = |option: &str| format!("flow {}: set {option}", flow.name);
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).map_err(Error::system("make a socket"))?;
    setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(Error::system(set("SO_REUSEADDR")))?;
    setsockopt(&socket, sockopt::Ipv4Tos, &flow.tos.into()).map_err(Error::system(set("IP_TOS")))?;
    setsockopt(&socket, sockopt::TcpMaxSeg, &(flow.tcp.mss + TIMESTAMPS)).map_err(Error::system(set("TCP_MAXSEG")))?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address)).map_err(Error::system(format!("bind to {address}")))?;
    Ok(socket)
}

impl Connection {
    pub(super) fn new(flow: &Flow, [from, to]: [SocketAddr; 2], sender: OwnedFd, listener: OwnedFd) -> Connection {
        let nanos = |span: Span| Duration::from_nanos(span.as_nanos());
        let shared = Shared {
            sender: sender.into(),
            received: AtomicU64::new(0),
            begun: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        };
        Connection {
            shared: Arc::new(shared),
            from,
            to,
            start: nanos(flow.start),
            stop: flow.stop.map(nanos),
            mss: flow.tcp.mss,
            clamp: clamp(flow),
            left: flow.bytes,
            reader: flow.reader.map(|reader| Reader::new(reader.reads, reader.pauses, Time::ZERO + flow.start)),
            sending: Sending::Waiting,
            receiving: Receiving::Listening(listener.into()),
            last_read: Span::ZERO,
            carried: Carried::default(),
        }
    }

    /// When, after the epoch, something is due that no descriptor tells of.
    fn due(&self) -> Option<Duration> {
        let sender = self.sender_due();
        let reader = self.reader.filter(|_| matches!(self.receiving, Receiving::Reading(_)));
        let reader = reader.map(|reader| Duration::from_nanos(reader.poll_timeout().as_nanos()));
        sender.into_iter().chain(reader).min()
    }

    fn sender_due(&self) -> Option<Duration> {
        match self.sending {
            Sending::Waiting => Some(self.start),
            Sending::Writing => self.stop,
            Sending::Connecting | Sending::Ended => None,
        }
    }

    /// Whether the receiving end pauses.
    fn is_paused(&self) -> bool {
        self.reader.is_some_and(|reader| !reader.is_reading())
    }

    /// Does what is due at `passed` after the epoch.
    fn act(&mut self, passed: Duration) {
        if let Some(reader) = &mut self.reader {
            reader.poll(Time::from_nanos(passed.as_nanos() as u64));
        }
        if self.sender_due().is_none_or(|due| passed < due) {
            return;
        }
        let done = match self.sending {
            Sending::Waiting => {
                self.sending = Sending::Connecting;
                self.shared.begun.store(true, Ordering::Release);
                match connect(self.shared.sender.as_raw_fd(), &SockaddrStorage::from(self.to)) {
                    Ok(()) | Err(Errno::EINPROGRESS) => Ok(()),
                    Err(error) => Err(failed("connect")(error.into())),
                }
            }
            _ => self.close(),
        };
        self.check(done);
    }

    /// The descriptors to wait for, of this connection.
    fn wanted(&self) -> impl Iterator<Item = (End, PollFd<'_>)> {
        let sender = match self.sending {
            Sending::Connecting | Sending::Writing => Some(PollFlags::POLLOUT),
            // Errors are told unasked; a socket that is not yet connected would tell that it is not.
            Sending::Ended if !matches!(self.receiving, Receiving::Ended) => Some(PollFlags::empty()),
            Sending::Waiting | Sending::Ended => None,
        };
        let receiver = match &self.receiving {
            Receiving::Listening(socket) => Some((socket.as_fd(), PollFlags::POLLIN)),
            // Errors are told unasked.
            Receiving::Reading(socket) if self.is_paused() => Some((socket.as_fd(), PollFlags::empty())),
            Receiving::Reading(socket) => Some((socket.as_fd(), PollFlags::POLLIN)),
            Receiving::Ended => None,
        };
        let sender = sender.map(|flags| (End::Sender, PollFd::new(self.shared.sender.as_fd(), flags)));
        sender.into_iter().chain(receiver.map(|(fd, flags)| (End::Receiver, PollFd::new(fd, flags))))
    }

    /// One of the ends is ready for what it waits for, or has failed.
    fn handle(&mut self, end: End, block: &mut [u8], epoch: Instant) {
        let done = match (end, &self.sending) {
            (End::Receiver, _) => self.receive(block, epoch),
            (End::Sender, Sending::Connecting) => self.connected(epoch),
            (End::Sender, Sending::Writing) => self.write(),
            (End::Sender, _) => self.shared.sender.take_error().map_err(failed("send")).and_then(|error| match error {
                Some(error) => Err(failed("send")(error)),
                None => Ok(()),
            }),
        };
        self.check(done);
    }

    fn connected(&mut self, epoch: Instant) -> Result<(), String> {
        let sender = &self.shared.sender;
        if let Some(error) = sender.take_error().map_err(failed("connect"))? {
            return Err(failed("connect")(error));
        }
        let info = tcp_info(sender.as_fd()).map_err(failed("ask for TCP_INFO"))?;
        if info.snd_mss < self.mss {
            let (has, mss) = (info.snd_mss, self.mss);
            return Err(format!("its segments hold {has} bytes, not {mss}: the interface's MTU is too small"));
        }
        self.carried.established = Some(since(epoch, Instant::now()));
        self.sending = Sending::Writing;
        Ok(())
    }

    /// Writes what the send buffer has room for.
    ///
    /// The kernel asks whether there is room only when a write begins a new packet (`tcp_sendmsg_locked`). As long as the last one is
    /// being sent in parts, it has room for more, and so one long write would fill the congestion window, whatever the buffer.
    fn write(&mut self) -> Result<(), String> {
        static ZEROS: [u8; BLOCK] = [0; BLOCK];
        for _ in 0..WRITES {
            if self.left == Some(0) {
                return self.close();
            }
            let (queued, buffer) = send_memory(self.shared.sender.as_fd()).map_err(failed("ask for SO_MEMINFO"))?;
            let room = buffer.saturating_sub(queued) as usize;
            if room == 0 {
                // The kernel tells when a third of the buffer is free (`sk_stream_is_writeable`).
                return Ok(());
            }
            let next = self.left.map_or(BLOCK, |left| left.min(BLOCK as u64) as usize).min(room);
            match (&self.shared.sender).write(&ZEROS[..next]) {
                Ok(written) => self.left = self.left.map(|left| left - written as u64),
                Err(error) if again(&error) => return Ok(()),
                Err(error) => return Err(failed("send")(error)),
            }
        }
        Ok(())
    }

    /// Nothing more is written; what was accepted is still sent.
    fn close(&mut self) -> Result<(), String> {
        self.sending = Sending::Ended;
        self.shared.sender.shutdown(Shutdown::Write).map_err(failed("close"))
    }

    fn receive(&mut self, block: &mut [u8], epoch: Instant) -> Result<(), String> {
        match &mut self.receiving {
            Receiving::Listening(listener) => match listener.accept() {
                // A stranger's connection is none of ours.
                Ok((_, peer)) if peer != self.from => Ok(()),
                Ok((socket, _)) => {
                    socket.set_nonblocking(true).map_err(failed("accept"))?;
                    self.receiving = Receiving::Reading(socket);
                    Ok(())
                }
                Err(error) if again(&error) => Ok(()),
                Err(error) => Err(failed("accept")(error)),
            },
            Receiving::Reading(socket) => match socket.read(block) {
                Ok(0) => {
                    self.carried.completed = Some(self.last_read);
                    self.end();
                    Ok(())
                }
                Ok(read) => {
                    // Since 6.10 the kernel forgets it whenever it learns how large segments are.
                    if let Some(clamp) = self.clamp {
                        set_window_clamp(socket.as_fd(), clamp).map_err(failed("set TCP_WINDOW_CLAMP"))?;
                    }
                    self.shared.received.fetch_add(read as u64, Ordering::Relaxed);
                    self.last_read = since(epoch, Instant::now());
                    Ok(())
                }
                Err(error) if again(&error) => Ok(()),
                Err(error) => Err(failed("receive")(error)),
            },
            Receiving::Ended => Ok(()),
        }
    }

    /// Ends the connection if it failed.
    fn check(&mut self, done: Result<(), String>) {
        if let Err(failure) = done {
            self.carried.failure = Some(failure);
            self.end();
        }
    }

    fn end(&mut self) {
        self.sending = Sending::Ended;
        self.receiving = Receiving::Ended;
        self.shared.ended.store(true, Ordering::Release);
    }

    /// Breaks off what is still open, so that nothing of it goes on in the kernel, and tells what became of it.
    fn finish(mut self) -> Carried {
        if matches!(self.sending, Sending::Connecting) {
            self.carried.failure = Some("connect: no answer by the end".to_owned());
        }
        // At worst the kernel goes on for a while.
        let _ = setsockopt(&self.shared.sender, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
        self.carried.received = self.shared.received.load(Ordering::Relaxed);
        self.carried
    }
}

/// Carries the connections until `stop` is readable.
pub(super) fn run(mut connections: Vec<Connection>, epoch: Instant, stop: &EventFd) -> Vec<Carried> {
    let mut block = vec![0; BLOCK];
    loop {
        let passed = Instant::now().checked_duration_since(epoch);
        for connection in &mut connections {
            if let Some(passed) = passed {
                connection.act(passed);
            }
        }
        let due = connections.iter().filter_map(Connection::due).min();
        let wait = due.map(|due| TimeSpec::from_duration((epoch + due).saturating_duration_since(Instant::now())));
        let mut ends = Vec::new();
        let mut wanted = vec![PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        for (i, connection) in connections.iter().enumerate() {
            for (end, fd) in connection.wanted() {
                ends.push((i, end));
                wanted.push(fd);
            }
        }
        // Interrupted, or out of memory for a moment: nothing is ready then.
        let ready: Vec<bool> = match ppoll(&mut wanted, wait, None) {
            Ok(_) => wanted.iter().map(|fd| fd.any().unwrap_or(true)).collect(),
            Err(_) => continue,
        };
        if ready[0] {
            return connections.into_iter().map(Connection::finish).collect();
        }
        for (&(i, end), _) in ends.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            connections[i].handle(end, &mut block, epoch);
        }
    }
}

/// Whether a call is only to be made again later.
fn again(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn failed(what: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}
