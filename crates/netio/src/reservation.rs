//! Reservations of interfaces: one program at a time looks after an interface.
//!
//! A reservation is an abstract socket (unix(7)), named after the interface's number. Its names belong to a network namespace, as
//! interface numbers do, so containers that share a namespace see each other's reservations whatever they have mounted. The
//! kernel gives the name free when the process ends, in whatever way, and tells who holds it.

use crate::Error;
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

/// What an interface is reserved for. Programs with different roles can share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A lightweight PEP looks at its packets.
    Pep,
    /// Its packets go through a program: an emulated network or a queue.
    Packets,
    /// Its TCP connections go through a split proxy.
    Proxy,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Role::Pep => "pep",
            Role::Packets => "packets",
            Role::Proxy => "proxy",
        }
    }

    /// What the holder does, and what can be done about it.
    const fn reason(self) -> &'static str {
        match self {
            Role::Pep => "already runs a PEP on it; --take-over replaces that",
            Role::Packets => "already handles its packets",
            Role::Proxy => "already proxies its connections",
        }
    }
}

/// An interface of this thread's network namespace that is reserved until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    _socket: UnixListener,
}

impl Reservation {
    /// Reserves an interface.
    ///
    /// # Errors
    /// [`Error::Wrong`] if there is no such interface, or if another process has reserved it, which is named.
    pub fn new(role: Role, interface: &str) -> Result<Reservation, Error> {
        let index = nix::net::if_::if_nametoindex(interface)
            .map_err(|_| Error::Wrong(format!("there is no interface `{interface}`")))?;
        Reservation::by_index(role, interface, index)
    }

    /// Reserves the interface with this number.
    ///
    /// # Errors
    /// As [`Reservation::new`].
    pub fn by_index(role: Role, interface: &str, index: u32) -> Result<Reservation, Error> {
        let what = || format!("to reserve `{interface}`");
        let name = format!("ranway/{}/{index}", role.name());
        let address = SocketAddr::from_abstract_name(name).map_err(Error::system(what()))?;
        match UnixListener::bind_addr(&address) {
            Ok(socket) => Ok(Reservation { _socket: socket }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let holder = holder(&address).unwrap_or_else(|| "another process".to_owned());
                Err(Error::Wrong(format!("`{interface}` is in use: {holder} {}", role.reason())))
            }
            Err(error) => Err(Error::system(what())(error)),
        }
    }
}

/// Who holds a reservation, as far as this process may know.
fn holder(address: &SocketAddr) -> Option<String> {
    let stream = UnixStream::connect_addr(address).ok()?;
    let peer = getsockopt(&stream, sockopt::PeerCredentials).ok()?;
    // 0: it is in another PID namespace.
    let process = if peer.pid() > 0 { format!("process {}", peer.pid()) } else { "another process".to_owned() };
    // Anybody in the namespace can take a name.
    let user = if peer.uid() == 0 { String::new() } else { format!(" of user {}", peer.uid()) };
    Some(process + &user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_reserved_once_for_each_role_and_the_holder_is_named() {
        let first = Reservation::new(Role::Pep, "lo").expect("nobody has it");
        let refused = Reservation::new(Role::Pep, "lo").map(drop).unwrap_err().to_string();
        let user = nix::unistd::getuid();
        let user = if user.is_root() { String::new() } else { format!(" of user {user}") };
        let holder = format!("process {}{user}", std::process::id());
        assert!(refused.starts_with(&format!("`lo` is in use: {holder} already runs a PEP on it")), "{refused}");
        assert!(Reservation::new(Role::Packets, "lo").is_ok());
        drop(first);
        assert!(Reservation::new(Role::Pep, "lo").is_ok());
        let none = Reservation::new(Role::Pep, "none0").map(drop).unwrap_err().to_string();
        assert_eq!(none, "there is no interface `none0`");
    }
}
