//! What more than one product does with its sockets.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::BindToDevice;
use nix::sys::socket::{getsockopt, setsockopt};
use rustix::fs::{Mode, fchmod};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};

/// Listens on a Unix socket at `path`, without blocking, for its owner alone; `backlog` clients may wait to be accepted.
///
/// # Errors
/// If there is a file at `path`, or `path` is longer than 107 bytes.
pub fn listen_for_owner(path: &Path, backlog: i32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the socket's mode. Changed afterwards, it would be open to others for a moment, and another file might be
    // there.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, backlog)?;
    Ok(socket)
}

/// The name of the interface that a socket is bound to (`SO_BINDTODEVICE`); empty without one.
pub fn bound_device(socket: BorrowedFd) -> io::Result<OsString> {
    Ok(getsockopt(&socket, BindToDevice)?)
}

/// Binds a socket to an interface (`SO_BINDTODEVICE`): all that it sends and receives passes that one. Without an interface it does
/// nothing. Since Linux 5.7 it takes no privilege; before that, `CAP_NET_RAW`.
///
/// # Errors
/// There is no such interface (`ENODEV`), or the kernel does not permit it (`EPERM`).
pub fn bind_device(socket: impl AsFd, interface: Option<&str>) -> io::Result<()> {
    Ok(interface.map_or(Ok(()), |name| setsockopt(&socket, BindToDevice, &name.into()))?)
}

/// Makes a socket for a TCP connection to an address, through an interface if one is given ([`bind_device`]). It does not block.
///
/// # Errors
/// The system's answer.
pub fn stream_through(address: SocketAddr, interface: Option<&str>) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    bind_device(&socket, interface)?;
    Ok(socket)
}

/// Begins to connect a socket that does not block. It can be written to when it is connected or has failed.
///
/// # Errors
/// The system's answer.
pub fn begin_connection(socket: OwnedFd, address: SocketAddr) -> io::Result<TcpStream> {
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(errno) => Err(errno.into()),
    }
}

/// Connects by TCP within `patience`, through an interface if one is given ([`bind_device`]).
///
/// # Errors
/// The system's answer; [`io::ErrorKind::TimedOut`].
pub fn connect_through(address: SocketAddr, interface: Option<&str>, patience: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + patience;
    let stream = begin_connection(stream_through(address, interface)?, address)?;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut one = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut one, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Returns the address from which this host sends to a server, through an interface if one is given ([`bind_device`]). Nothing is
/// sent: the kernel looks up the route.
///
/// # Errors
/// There is no route, or no such interface.
pub fn own_address(server: SocketAddr, interface: Option<&str>) -> io::Result<IpAddr> {
    let any: SocketAddr = if server.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    bind_device(&socket, interface)?;
    socket.connect(server)?;
    Ok(socket.local_addr()?.ip())
}

/// How the kernel finds out that the peer of a silent TCP connection is gone.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    /// Silence before the first probe, in whole seconds.
    pub silence: Duration,
    /// Interval between probes, in whole seconds.
    pub interval: Duration,
    /// The connection ends after this many without an answer.
    pub probes: u32,
}

impl Keepalive {
    /// Sets it for a socket of TCP.
    pub fn set(self, socket: impl AsFd) -> io::Result<()> {
        sockopt::set_tcp_keepidle(&socket, self.silence)?;
        sockopt::set_tcp_keepintvl(&socket, self.interval)?;
        sockopt::set_tcp_keepcnt(&socket, self.probes)?;
        Ok(sockopt::set_socket_keepalive(&socket, true)?)
    }
}

/// Checks that this kernel has a congestion control, by the kernel's name, or can load it, and lets this process use it.
///
/// # Errors
/// Which congestion controls there are, or who may use this one.
pub fn check_congestion(name: &str) -> Result<(), String> {
    // Without a socket nothing can be said: who makes one next tells why there is none.
    let Ok(socket) = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None) else {
        return Ok(());
    };
    set_congestion(socket, name)
}

/// Sets the congestion control of a TCP socket, by the kernel's name.
///
/// # Errors
/// As [`check_congestion`].
pub fn set_congestion(socket: impl AsFd, name: &str) -> Result<(), String> {
    sockopt::set_tcp_congestion(socket, name).map_err(|errno| no_congestion(name, &errno.into()))
}

/// Says which congestion controls there are.
fn no_congestion(name: &str, error: &io::Error) -> String {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{what}")).unwrap_or_default();
    let (allowed, available) = (read("tcp_allowed_congestion_control"), read("tcp_available_congestion_control"));
    let has = |list: &str| list.split_whitespace().any(|other| other == name);
    match error.kind() {
        io::ErrorKind::NotFound => {
            let names = available.split_whitespace().collect::<Vec<_>>().join(", ");
            format!("the kernel has no congestion control `{name}`; it has {names}")
        }
        io::ErrorKind::PermissionDenied if has(&available) && !has(&allowed) => format!(
            "only root may use the congestion control `{name}`, unless net.ipv4.tcp_allowed_congestion_control has it"
        ),
        _ => format!("the congestion control `{name}` cannot be used: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_connection_passes_the_interface_that_it_is_bound_to() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is loopback");
        let server = listener.local_addr().expect("it is bound");
        let patience = Duration::from_secs(5);
        let stream = connect_through(server, Some("lo"), patience).expect("it connects");
        assert_eq!(bound_device(stream.as_fd()).expect("it tells"), "lo");
        let free = connect_through(server, None, patience).expect("it connects");
        assert_eq!(bound_device(free.as_fd()).expect("it tells"), "");
        assert_eq!(own_address(server, Some("lo")).expect("there is a route"), server.ip());
        let none = Some("nosuch0");
        let missing = Some(Errno::NODEV.raw_os_error());
        assert_eq!(connect_through(server, none, patience).expect_err("there is none").raw_os_error(), missing);
        assert_eq!(own_address(server, none).expect_err("there is none").raw_os_error(), missing);
        drop(listener);
        let refused = connect_through(server, Some("lo"), patience).expect_err("nobody listens");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_socket_is_its_owners_alone_and_replaces_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let _socket = listen_for_owner(&path, 1).expect("it listens");
        assert_eq!(std::fs::metadata(&path).expect("there is a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(listen_for_owner(&path, 1).expect_err("the path is taken").kind(), io::ErrorKind::AddrInUse);
    }
}
