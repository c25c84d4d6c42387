//! Sockets of the proxy: those that listen, and those of outgoing connections.
//!
//! A listener is bound to the loopback address, so that nothing but the rule of nftables leads to it, and to one interface,
//! which tells the side of a connection. Bound to another interface, it is hidden: the rule finds no listener for a SYN, but a
//! handshake under way goes on. Accepted sockets inherit the listener's options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netio::socket::{Keepalive, bound_device};
use netio::{Error, sys};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, connect_unspec, getsockname, ipproto, listen, socket_with,
    sockopt,
};

use super::flow::Side;
use super::settings::Settings;

/// Connections that wait to be accepted, at most, per listener.
const BACKLOG: i32 = 4096;
/// See [`open_patiently`].
const PATIENCE: Duration = Duration::from_secs(1);
/// An interface from which no SYN is led to a listener.
const NOWHERE: &str = "lo";
/// A process or thread that is silent for this long hangs.
pub(super) const HANGS: Duration = Duration::from_millis(600);
/// Connections that were begun before wait for it until it has been silent for this long.
const LOST: Duration = Duration::from_secs(3);
/// Interval between keepalives to a silent peer, of which [`KEEPALIVES`] without an answer end the connection.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(75);
const KEEPALIVES: u32 = 9;

/// A socket that listens for one side and family.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) side: Side,
    interface: String,
    pub(super) socket: OwnedFd,
}

impl Listener {
    /// Opens a socket at `port`, which other listeners of this process share. It does not listen yet.
    ///
    /// # Errors
    /// [`Error::Wrong`] if another program uses the port.
    fn open(settings: &Settings, side: Side, v6: bool) -> Result<Listener, Error> {
        let interface = match side {
            Side::Ran => settings.ran.clone(),
            Side::Wan => settings.wan.clone(),
        };
        let open = || -> std::io::Result<OwnedFd> {
            let socket = new_socket(v6)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            sockopt::set_socket_reuseport(&socket, true)?;
            sys::bind_to_device(socket.as_fd(), &interface)?;
            prepare(socket.as_fd(), settings, side, v6)?;
            bind(&socket, &SocketAddr::new(loopback(v6), settings.port))?;
            Ok(socket)
        };
        let what = || format!("listen on port {} of `{interface}`", settings.port);
        let socket = open().map_err(|error| refused(error, settings.port, what))?;
        Ok(Listener { side, interface, socket })
    }

    /// Sets the options of connections to come.
    pub(super) fn prepare(&self, settings: &Settings) -> Result<(), Error> {
        let v6 = sockopt::socket_domain(&self.socket).is_ok_and(|domain| domain == AddressFamily::INET6);
        let prepare = || -> std::io::Result<()> {
            prepare(self.socket.as_fd(), settings, self.side, v6)?;
            if let Some(bytes) = settings.first_receive_buffer() {
                // It may have had a whole one before.
                sockopt::set_socket_recv_buffer_size_force(&self.socket, bytes)?;
                sys::lock_receive_buffer(self.socket.as_fd(), false)?;
            }
            if self.side == Side::Ran && settings.radio_congestion.is_none() {
                // It may have had another one before.
                let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")?;
                sockopt::set_tcp_congestion(&self.socket, default.trim())?;
            }
            Ok(())
        };
        prepare().map_err(Error::system("set the options of a socket"))
    }

    /// Lets connections in.
    pub(super) fn listen(&self) -> std::io::Result<()> {
        sys::bind_to_device(self.socket.as_fd(), &self.interface)?;
        Ok(listen(&self.socket, BACKLOG)?)
    }

    /// Lets no more connections in than those whose handshake is under way.
    pub(super) fn hide(&self) -> std::io::Result<()> {
        hide(self.socket.as_fd())
    }

    pub(super) fn is_hidden(&self) -> bool {
        bound_device(self.socket.as_fd()).is_ok_and(|name| name == NOWHERE)
    }

    /// Lets no more connections in. Those that were not accepted are reset.
    pub(super) fn shut(&self) {
        shut(self.socket.as_fd());
    }

    pub(super) fn listens(&self) -> bool {
        sockopt::socket_acceptconn(&self.socket).unwrap_or(false)
    }
}

fn hide(socket: BorrowedFd) -> std::io::Result<()> {
    sys::bind_to_device(socket, NOWHERE)
}

/// Keeps connections from a listening socket whose process or thread has been silent for some time, at least [`HANGS`]: new ones
/// bypass it, and those that it has not accepted are reset when it is [`LOST`].
pub(super) fn keep_away(socket: BorrowedFd, silence: Duration) {
    if silence >= LOST || hide(socket).is_err() {
        shut(socket);
    }
}

/// Shuts a listening socket; one that does not listen stays as it is. shutdown(2) would leave a mark on such a one, which
/// connections inherit once it listens again: all that they are sent would seem to have ended.
pub(super) fn shut(socket: BorrowedFd) {
    // It cannot fail for a socket of TCP.
    let _ = connect_unspec(socket);
}

/// As [`open`], but waits a moment for a port in use: the guardian of an instance that was killed may have it.
pub(super) fn open_patiently(settings: &Settings) -> Result<Vec<Vec<Listener>>, Error> {
    let start = Instant::now();
    loop {
        match open(settings) {
            Err(Error::Wrong(_)) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
}

/// Opens the listeners of each worker.
///
/// # Errors
/// As [`Listener::open`].
fn open(settings: &Settings) -> Result<Vec<Vec<Listener>>, Error> {
    check_port(settings)?;
    let worker = |_| {
        let each = families().iter().flat_map(|&v6| [Side::Ran, Side::Wan].map(|side| (side, v6)));
        each.map(|(side, v6)| Listener::open(settings, side, v6)).collect()
    };
    (0..settings.threads).map(worker).collect()
}

/// Checks that the kernel has the congestion control for radio legs, or loads it.
pub(super) fn check_congestion_control(settings: &Settings) -> Result<(), Error> {
    let Some(control) = &settings.radio_congestion else { return Ok(()) };
    let set = new_socket(false).and_then(|socket| sockopt::set_tcp_congestion(&socket, control));
    set.map_err(|error| {
        let all = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        let all = all.trim();
        Error::Wrong(format!("congestion control `{control}`: {error}; this kernel has {all}"))
    })
}

/// Checks that no other program listens on the port. Our listeners share it among themselves, and a program of the same user
/// that also shares its port would get a part of the connections.
fn check_port(settings: &Settings) -> Result<(), Error> {
    for &v6 in families() {
        let probe = || -> std::io::Result<()> {
            let socket = new_socket(v6)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, &SocketAddr::new(loopback(v6), settings.port))?;
            Ok(())
        };
        probe().map_err(|error| refused(error, settings.port, || format!("use port {}", settings.port)))?;
    }
    Ok(())
}

/// Returns the error of a socket that could not be bound to `port`; `what` says what was tried.
fn refused(error: std::io::Error, port: u16, what: impl Fn() -> String) -> Error {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => Error::Wrong(format!("port {port} is in use: choose another one with --port")),
        std::io::ErrorKind::AddrNotAvailable => {
            Error::Missing("the loopback interface has no address: `ip link set lo up`".into())
        }
        _ => Error::system(what())(error),
    }
}

/// Returns the families that the kernel has: for each, whether it is IPv6.
fn families() -> &'static [bool] {
    if ipv6() { &[false, true] } else { &[false] }
}

fn loopback(v6: bool) -> IpAddr {
    if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() }
}

/// Whether the kernel has IPv6, and the loopback interface an address of it.
pub(super) fn ipv6() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv6/conf/lo/disable_ipv6").is_ok_and(|disabled| disabled.trim() == "0")
}

fn new_socket(v6: bool) -> Result<OwnedFd, Errno> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket =
        socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
    if v6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    Ok(socket)
}

/// Sets the options of a leg on one side.
fn prepare(socket: BorrowedFd, settings: &Settings, side: Side, v6: bool) -> std::io::Result<()> {
    sys::set_transparent(socket, v6)?;
    // Closing resets the connection, also when the process is killed: a FIN would tell the peer that it has everything.
    sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_oobinline(socket, true)?;
    let silence = settings.keepalive.max(Duration::from_secs(1));
    Keepalive { silence, interval: KEEPALIVE_INTERVAL, probes: KEEPALIVES }.set(socket)?;
    sys::set_notsent_lowat(socket, u32::try_from(settings.unsent).unwrap_or(u32::MAX))?;
    if !settings.is_tuned() {
        // The kernel allows as much again for its overhead. Only before a connection exists does it choose a window scale for it.
        sockopt::set_socket_recv_buffer_size_force(socket, settings.receive_buffer)?;
    }
    if let (Side::Ran, Some(control)) = (side, &settings.radio_congestion) {
        sockopt::set_tcp_congestion(socket, control)?;
    }
    Ok(())
}

/// An outgoing connection.
pub(super) struct Outgoing {
    pub(super) socket: OwnedFd,
    /// Whether it has the client's port.
    pub(super) same_port: bool,
}

/// Begins to connect to `server` from the address of `client`, and from its port if that is free.
pub(super) fn connect_as(
    settings: &Settings,
    client: SocketAddr,
    server: SocketAddr,
    towards: Side,
) -> std::io::Result<Outgoing> {
    let open = || -> std::io::Result<OwnedFd> {
        let socket = new_socket(client.is_ipv6())?;
        prepare(socket.as_fd(), settings, towards, client.is_ipv6())?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        Ok(socket)
    };
    let socket = open()?;
    let taken = match bind(&socket, &client).and_then(|()| begin(&socket, server)) {
        Ok(()) => return Ok(Outgoing { socket, same_port: true }),
        Err(error) => error,
    };
    // An earlier connection of the same addresses and ports is not quite over at this end.
    if !matches!(taken, Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) {
        return Err(taken.into());
    }
    drop(socket);
    let socket = open()?;
    let mut any_port = client;
    any_port.set_port(0);
    bind(&socket, &any_port)?;
    begin(&socket, server)?;
    Ok(Outgoing { socket, same_port: false })
}

fn begin(socket: &OwnedFd, server: SocketAddr) -> Result<(), Errno> {
    match connect(socket, &server) {
        Err(Errno::INPROGRESS) => Ok(()),
        connected => connected,
    }
}

/// Returns the address that a client asked for, which the accepted socket has as its own.
pub(super) fn destination(accepted: BorrowedFd) -> Option<SocketAddr> {
    getsockname(accepted).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_listener_may_be_shut_more_than_once_and_listens_again() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = TcpListener::bind(address) else { continue };
            let address = || socket.local_addr().expect("it is bound");
            let socket_too = socket.try_clone().expect("there is room").into();
            let listener = Listener { side: Side::Ran, interface: String::new(), socket: socket_too };
            assert!(listener.listens());
            listener.shut();
            assert!(!listener.listens());
            // As by the guardian while the gate is shut.
            listener.shut();
            listener.listen().expect("it is bound");
            // A port of the kernel's choice is another one now.
            let mut client = TcpStream::connect(address()).expect("it listens");
            let (mut accepted, _) = socket.accept().expect("it has connected");
            accepted.set_nonblocking(true).expect("it is a socket");
            let read = accepted.read(&mut [0]).expect_err("nothing has been sent, and nothing has ended");
            assert_eq!(read.kind(), ErrorKind::WouldBlock);
            accepted.set_nonblocking(false).expect("it is a socket");
            client.write_all(b"1").expect("it is open");
            accepted.read_exact(&mut [0]).expect("it arrives");
        }
    }
}
