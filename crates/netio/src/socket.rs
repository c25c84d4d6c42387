//! What more than one product does with its sockets.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::BindToDevice;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_socket_is_its_owners_alone_and_replaces_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let _socket = listen_for_owner(&path, 1).expect("it listens");
        assert_eq!(std::fs::metadata(&path).expect("there is a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(listen_for_owner(&path, 1).expect_err("the path is taken").kind(), io::ErrorKind::AddrInUse);
    }
}
