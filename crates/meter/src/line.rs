//! A connection to the server.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use netio::{errqueue, sys};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket};
use units::{Span, Time};

use crate::flow::Shared;

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time without any progress after which a connection is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval between looks at the flag that ends the measurement.
const TURN: Duration = Duration::from_millis(100);

/// Why a measurement, or a flow of it, failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The server cannot be reached.
    #[error("{server}: {source}")]
    Connect {
        /// The server.
        server: String,
        /// The system's answer.
        source: io::Error,
    },
    /// An option of a socket is refused.
    #[error("{0}")]
    Option(String),
    /// The connection broke.
    #[error("the connection to the server broke: {0}")]
    Broken(io::Error),
    /// The server closed the connection.
    #[error("the server closed the connection {0}")]
    Closed(&'static str),
    /// The server says nothing.
    #[error("the server has not answered for {} s", PATIENCE.as_secs())]
    Silent,
    /// The server refuses.
    #[error("the server refuses the measurement{}", because(.0))]
    Refused(String),
    /// The server does not speak the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The user has ended the measurement.
    #[error("interrupted")]
    Interrupted,
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Broken(error)
    }
}

/// The clocks of a measurement: its own begins at the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
    /// The wall-clock time of the epoch, since the Unix epoch.
    pub(crate) unix: Span,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let (epoch, unix) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        Clock { epoch, unix: Span::from_nanos(unix.as_nanos() as u64) }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.epoch.elapsed().as_nanos().min(u64::MAX.into()) as u64)
    }

    /// Converts wall-clock time.
    pub(crate) fn of_unix(&self, unix: Span) -> Time {
        Time::ZERO + unix.saturating_sub(self.unix)
    }
}

/// A connection to the server, which never blocks for longer than it takes to notice the end of the measurement.
#[derive(Debug)]
pub(crate) struct Line {
    socket: TcpStream,
    clock: Clock,
    stop: Arc<AtomicBool>,
    /// How long the handshake took.
    pub(crate) handshake: Duration,
    /// The time of the last progress.
    moved: Instant,
    /// Bytes written since [`Line::stamp`], modulo 2^32.
    written: u32,
}

impl Line {
    /// Connects, with a congestion control if one is given.
    pub(crate) fn connect(
        (name, address): (&str, SocketAddr),
        congestion: Option<&str>,
        clock: Clock,
        stop: &Arc<AtomicBool>,
    ) -> Result<Line, Fault> {
        let failed = |source: io::Error| Fault::Connect { server: format!("{name} ({address})"), source };
        let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Stream, flags, None).map_err(|errno| failed(errno.into()))?;
        if let Some(name) = congestion {
            setsockopt(&socket, TcpCongestion, &name.into()).map_err(|errno| no_congestion(name, &errno.into()))?;
        }
        let start = Instant::now();
        match connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &SockaddrStorage::from(address)) {
            Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        let socket = TcpStream::from(socket);
        let mut line =
            Line { socket, clock, stop: Arc::clone(stop), handshake: Duration::ZERO, moved: start, written: 0 };
        let deadline = start + CONNECT;
        let done = PollFlags::POLLOUT | PollFlags::POLLERR | PollFlags::POLLHUP;
        while !line.wait_once(PollFlags::POLLOUT, TURN)?.intersects(done) {
            if Instant::now() >= deadline {
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
        }
        if let Some(error) = line.socket.take_error().map_err(failed)? {
            return Err(failed(error));
        }
        line.handshake = start.elapsed();
        line.socket.set_nodelay(true)?;
        Ok(line)
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Another handle of the socket, for questions about it.
    pub(crate) fn handle(&self) -> io::Result<TcpStream> {
        self.socket.try_clone()
    }

    /// Begins to count bytes for stamps.
    pub(crate) fn stamp(&mut self) -> io::Result<()> {
        self.written = 0;
        sys::enable_stamps(self.socket.as_fd())
    }

    /// Reads what there is; 0 bytes if there is nothing. An end of the connection is an error.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        loop {
            return match self.socket.read(buffer) {
                Ok(0) => Err(Fault::Closed("in the middle of the measurement")),
                Ok(length) => {
                    self.moved = Instant::now();
                    Ok(length)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Drops up to `most` bytes that have arrived; 0 bytes if there are none.
    pub(crate) fn discard(&mut self, most: usize) -> Result<usize, Fault> {
        match sys::discard(self.socket.as_fd(), most) {
            Ok(0) if most > 0 => Err(Fault::Closed("in the middle of the measurement")),
            Ok(length) => {
                self.moved = Instant::now();
                Ok(length)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as much as the kernel takes; 0 bytes if its buffer is full. The last byte is stamped if `of` wants it.
    pub(crate) fn write(&mut self, slices: &[IoSlice], of: Option<&Shared>) -> Result<usize, Fault> {
        let stamped = of.filter(|shared| shared.wants_stamp.load(Relaxed));
        loop {
            let now = self.now();
            let result = match stamped {
                Some(_) => sys::send_stamped(self.socket.as_fd(), slices),
                None => self.socket.write_vectored(slices),
            };
            return match result {
                Ok(length) => {
                    self.moved = Instant::now();
                    self.written = self.written.wrapping_add(length as u32);
                    if let Some(shared) = stamped {
                        shared.wants_stamp.store(false, Relaxed);
                        shared.stamps().wrote(self.written.wrapping_sub(1), now);
                    }
                    Ok(length)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Writes all of `bytes`.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            match self.write(&[IoSlice::new(bytes)], None)? {
                0 => drop(self.wait(PollFlags::POLLOUT, None)?),
                length => bytes = &bytes[length..],
            }
        }
        Ok(())
    }

    /// Waits until the socket is readable or writable, as `wanted`. Takes what the error queue has meanwhile.
    pub(crate) fn wait(&mut self, wanted: PollFlags, of: Option<&Shared>) -> Result<PollFlags, Fault> {
        loop {
            let found = self.wait_once(wanted, TURN)?;
            if found.contains(PollFlags::POLLERR) {
                self.take_stamps(of);
            }
            if found.intersects(wanted | PollFlags::POLLHUP) {
                return Ok(found);
            }
            if self.moved.elapsed() > PATIENCE {
                return Err(Fault::Silent);
            }
        }
    }

    fn wait_once(&self, wanted: PollFlags, time: Duration) -> Result<PollFlags, Fault> {
        if self.stop.load(Relaxed) {
            return Err(Fault::Interrupted);
        }
        let mut one = [PollFd::new(self.socket.as_fd(), wanted)];
        match poll(&mut one, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(one[0].revents().unwrap_or(PollFlags::empty())),
            Err(errno) => Err(Fault::Broken(errno.into())),
        }
    }

    /// Takes the entries of the error queue.
    pub(crate) fn take_stamps(&self, of: Option<&Shared>) {
        while let Ok(Some((entry, _))) = errqueue::take(self.socket.as_fd(), &mut []) {
            if let Some(shared) = of {
                shared.stamps().take(entry, |unix| self.clock.of_unix(unix));
            }
        }
    }

    /// Waits for a time; returns early with an error at the end of the measurement.
    pub(crate) fn rest(&self, span: Duration) -> Result<(), Fault> {
        let start = Instant::now();
        while let Some(left) = span.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
            if self.stop.load(Relaxed) {
                return Err(Fault::Interrupted);
            }
            std::thread::sleep(left.min(TURN));
        }
        Ok(())
    }
}

/// Says which congestion controls there are.
fn no_congestion(name: &str, error: &io::Error) -> Fault {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{what}")).unwrap_or_default();
    let (allowed, available) = (read("tcp_allowed_congestion_control"), read("tcp_available_congestion_control"));
    let has = |list: &str| list.split_whitespace().any(|other| other == name);
    Fault::Option(match error.kind() {
        io::ErrorKind::NotFound => {
            let names = available.split_whitespace().collect::<Vec<_>>().join(", ");
            format!("the kernel has no congestion control `{name}`; it has {names}")
        }
        io::ErrorKind::PermissionDenied if has(&available) && !has(&allowed) => format!(
            "only root may use the congestion control `{name}`, unless net.ipv4.tcp_allowed_congestion_control has it"
        ),
        _ => format!("the congestion control `{name}` cannot be used: {error}"),
    })
}
