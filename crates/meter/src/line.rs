//! A connection to the server.

use std::io::{self, BufReader, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use netio::socket::{begin_connection, set_congestion, stream_through};
use netio::{errqueue, sys};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::ClientConnection;
use units::{Span, Time};
use wire::tcp_info::{self, TcpInfo};

use crate::fault::{Fault, IDLE_TIMEOUT};
use crate::flow::Shared;
use crate::tls::{self, Tls};

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for a TLS handshake.
const SECURE: Duration = Duration::from_secs(10);
/// Bytes of records that are read at once.
const RECORDS: usize = 64 << 10;
/// Interval between looks at the flag that ends the measurement.
const TURN: Duration = Duration::from_millis(100);

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
    /// Bytes written to the socket since [`Line::stamp`], modulo 2^32.
    written: u32,
    tls: Option<Box<Secure>>,
}

/// TLS on a connection.
#[derive(Debug)]
struct Secure {
    session: ClientConnection,
    /// The socket, with records that have been read and not decrypted.
    incoming: BufReader<TcpStream>,
}

impl Secure {
    /// Whether there is something to read that is no longer in the socket.
    fn has_input(&mut self) -> bool {
        let decrypted = self.session.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0);
        decrypted || !self.incoming.buffer().is_empty()
    }

    /// Reads and decrypts some records. Returns the number of bytes, 0 at the end of the connection.
    fn receive(&mut self) -> Result<io::Result<usize>, Fault> {
        let is_new = self.session.is_handshaking();
        let read = self.session.read_tls(&mut self.incoming);
        if let Err(error) = self.session.process_new_packets() {
            // The server learns why, if it can be told at once.
            let _ = self.session.write_tls(self.incoming.get_mut());
            return Err(Fault::Tls(tls::explain(&error, is_new)));
        }
        Ok(read)
    }
}

/// The socket to write to.
struct Below<'a> {
    socket: &'a TcpStream,
    /// Whether the last byte is to be stamped.
    is_stamped: bool,
}

impl Write for Below<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice]) -> io::Result<usize> {
        if self.is_stamped {
            sys::send_stamped(self.socket.as_fd(), slices)
        } else {
            self.socket.write_vectored(slices)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Line {
    /// Connects, through an interface and with a congestion control if they are given, and with TLS if that is.
    pub(crate) fn connect(
        (name, address): (&str, SocketAddr),
        interface: Option<&str>,
        congestion: Option<&str>,
        tls: Option<&Tls>,
        clock: Clock,
        stop: &Arc<AtomicBool>,
    ) -> Result<Line, Fault> {
        let failed = |source: io::Error| Fault::Connect { server: format!("{name} ({address})"), source };
        let socket = stream_through(address, interface).map_err(failed)?;
        if let Some(name) = congestion {
            set_congestion(&socket, name).map_err(Fault::Option)?;
        }
        let start = Instant::now();
        let socket = begin_connection(socket, address).map_err(failed)?;
        let mut line = Line {
            socket,
            clock,
            stop: Arc::clone(stop),
            handshake: Duration::ZERO,
            moved: start,
            written: 0,
            tls: None,
        };
        let deadline = start + CONNECT;
        let done = PollFlags::POLLOUT | PollFlags::POLLERR | PollFlags::POLLHUP;
        while !line.wait_once(PollFlags::POLLOUT, None)?.intersects(done) {
            if Instant::now() >= deadline {
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
        }
        if let Some(error) = line.socket.take_error().map_err(failed)? {
            return Err(failed(error));
        }
        line.handshake = start.elapsed();
        line.socket.set_nodelay(true)?;
        if let Some(tls) = tls {
            line.secure(tls.session(name)?)?;
        }
        Ok(line)
    }

    /// Does the TLS handshake.
    fn secure(&mut self, session: ClientConnection) -> Result<(), Fault> {
        let incoming = BufReader::with_capacity(RECORDS, self.handle()?);
        let secure = self.tls.insert(Box::new(Secure { session, incoming }));
        let mut is_new = secure.session.is_handshaking();
        let deadline = Instant::now() + SECURE;
        while is_new {
            self.flush(None)?;
            self.wait_once(PollFlags::POLLIN, None)?;
            if Instant::now() >= deadline {
                return Err(Fault::Tls(format!("the server has not answered with TLS within {} s", SECURE.as_secs())));
            }
            let Some(secure) = &mut self.tls else { return Ok(()) };
            match secure.receive()? {
                Ok(0) => return Err(Fault::Closed("in the TLS handshake; it may have no TLS")),
                Err(error) if is_passing(&error) => {}
                other => drop(other?),
            }
            is_new = secure.session.is_handshaking();
        }
        self.moved = Instant::now();
        self.flush(None).map(drop)
    }

    /// Whether what arrives is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Another handle of the socket, for questions about it.
    pub(crate) fn handle(&self) -> io::Result<TcpStream> {
        self.socket.try_clone()
    }

    /// The shortest round trip that the kernel has measured on it in the last minutes, from the handshake on; `None` if it does not
    /// tell.
    pub(crate) fn min_rtt(&self) -> Option<Span> {
        let mut buffer = [0; tcp_info::MOST];
        let raw = sys::tcp_info_bytes(self.socket.as_fd(), &mut buffer).ok()?;
        TcpInfo::decode(raw)?.min_rtt().map(|micros| Span::from_micros(micros.into()))
    }

    /// Begins to count bytes for stamps.
    pub(crate) fn stamp(&mut self) -> io::Result<()> {
        self.written = 0;
        sys::enable_stamps(self.socket.as_fd())
    }

    /// Reads what there is; 0 bytes if there is nothing. An end of the connection is an error.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        loop {
            let read = match &mut self.tls {
                None => self.socket.read(buffer),
                Some(secure) => match secure.session.reader().read(buffer) {
                    // All that was decrypted has been read.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => match secure.receive()? {
                        Ok(_) => continue,
                        Err(error) => Err(error),
                    },
                    // It ended without saying so, as connections without TLS do.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                    read => read,
                },
            };
            return match read {
                Ok(0) => Err(Fault::Closed("in the middle of the measurement")),
                Ok(length) => {
                    self.moved = Instant::now();
                    Ok(length)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_passing(&error) => Ok(0),
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Drops up to `most` bytes that have arrived; 0 bytes if there are none. Only without TLS, which has to decrypt them.
    pub(crate) fn discard(&mut self, most: usize) -> Result<usize, Fault> {
        match sys::discard(self.socket.as_fd(), most) {
            Ok(0) if most > 0 => Err(Fault::Closed("in the middle of the measurement")),
            Ok(length) => {
                self.moved = Instant::now();
                Ok(length)
            }
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as much as the kernel takes; 0 bytes if its buffer is full. The last byte is stamped if `of` wants it; with TLS, it is
    /// the last one of records. Of what TLS has taken, up to 64 KiB may wait for the kernel.
    pub(crate) fn write(&mut self, slices: &[IoSlice], of: Option<&Shared>) -> Result<usize, Fault> {
        if !self.is_tls() {
            return self.give(of, |below, _| below.write_vectored(slices));
        }
        // What waits comes first.
        if !self.flush(of)? {
            return Ok(0);
        }
        let Some(secure) = &mut self.tls else { return Ok(0) };
        let length = secure.session.writer().write_vectored(slices)?;
        self.flush(of)?;
        Ok(length)
    }

    /// Gives the kernel the records that wait for it. Returns whether it has taken all of them.
    fn flush(&mut self, of: Option<&Shared>) -> Result<bool, Fault> {
        while self.tls.as_ref().is_some_and(|secure| secure.session.wants_write()) {
            let send = |below: &mut Below, secure: Option<&mut Secure>| {
                secure.map_or(Ok(0), |secure| secure.session.write_tls(below))
            };
            if self.give(of, send)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets `give` write to the socket. Returns what that does; 0 if the kernel's buffer is full.
    fn give(
        &mut self,
        of: Option<&Shared>,
        mut give: impl FnMut(&mut Below, Option<&mut Secure>) -> io::Result<usize>,
    ) -> Result<usize, Fault> {
        let stamped = of.filter(|shared| shared.wants_stamp.load(Relaxed));
        let mut below = Below { socket: &self.socket, is_stamped: stamped.is_some() };
        loop {
            let now = self.clock.now();
            return match give(&mut below, self.tls.as_deref_mut()) {
                Ok(length) => {
                    self.moved = Instant::now();
                    self.written = self.written.wrapping_add(length as u32);
                    if let Some(shared) = stamped.filter(|_| length > 0) {
                        shared.wants_stamp.store(false, Relaxed);
                        shared.stamps().wrote(self.written.wrapping_sub(1), now);
                    }
                    Ok(length)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_passing(&error) => Ok(0),
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
        while !self.flush(None)? {
            self.wait(PollFlags::POLLOUT, None)?;
        }
        Ok(())
    }

    /// Waits until the socket is readable or writable, as `wanted`. Takes what the error queue has meanwhile.
    pub(crate) fn wait(&mut self, wanted: PollFlags, of: Option<&Shared>) -> Result<PollFlags, Fault> {
        loop {
            let found = self.wait_once(wanted, of)?;
            if found.contains(PollFlags::POLLERR) {
                self.take_stamps(of);
            }
            if found.intersects(wanted | PollFlags::POLLHUP) {
                return Ok(found);
            }
            if self.moved.elapsed() > IDLE_TIMEOUT {
                return Err(Fault::Silent);
            }
        }
    }

    /// Waits for at most [`TURN`]. Meanwhile the kernel is given the records that wait for it.
    pub(crate) fn wait_once(&mut self, wanted: PollFlags, of: Option<&Shared>) -> Result<PollFlags, Fault> {
        if self.stop.load(Relaxed) {
            return Err(Fault::Interrupted);
        }
        let mut has_output = false;
        if let Some(secure) = &mut self.tls {
            if wanted.contains(PollFlags::POLLIN) && secure.has_input() {
                return Ok(PollFlags::POLLIN);
            }
            has_output = secure.session.wants_write();
        }
        let asked = if has_output { wanted | PollFlags::POLLOUT } else { wanted };
        let mut one = [PollFd::new(self.socket.as_fd(), asked)];
        let mut found = match poll(&mut one, PollTimeout::try_from(TURN).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => one[0].revents().unwrap_or(PollFlags::empty()),
            Err(errno) => return Err(Fault::Broken(errno.into())),
        };
        if has_output && found.contains(PollFlags::POLLOUT) && !(self.flush(of)? && wanted.contains(PollFlags::POLLOUT))
        {
            found.remove(PollFlags::POLLOUT);
        }
        Ok(found)
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

impl Drop for Line {
    /// Says good-bye to the server's TLS, if that can be done at once.
    fn drop(&mut self) {
        if let Some(secure) = &mut self.tls {
            secure.session.send_close_notify();
            let _ = secure.session.write_tls(&mut self.socket);
        }
    }
}

/// Whether a call may succeed when it is made again.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The kernel's name of a congestion control, which scenarios may call otherwise.
pub fn kernel_name(name: &str) -> &str {
    if name == "new-reno" { "reno" } else { name }
}

/// Checks that this kernel has a congestion control, by the kernel's name, and lets this process use it.
///
/// # Errors
/// [`Fault::Option`] with those that there are.
pub fn check_congestion(name: &str) -> Result<(), Fault> {
    netio::socket::check_congestion(name).map_err(Fault::Option)
}
