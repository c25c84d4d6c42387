//! Sockets of the proxy: those that listen, and those of outgoing connections.
//!
//! A listener is bound to a loopback address and has no interface. Only the SYNs that the proxy itself gives back reach it, by the
//! rule of nftables ([`super::steering`]). Accepted sockets inherit its options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netio::socket::check_congestion;
use netio::{Error, sys};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpMaxSeg;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, connect_unspec, getsockname, ipproto, listen, socket_with,
    sockopt,
};

use super::flow::Side;
use super::label::{CONNECTING, set_priority};
use super::settings::Settings;
use super::syn::Syn;

/// Connections that wait to be accepted, at most, per listener.
const BACKLOG: i32 = 4096;
/// Time for the end of what an instance that was killed has left.
pub(super) const BIND_TIMEOUT: Duration = Duration::from_secs(1);
/// A process or thread that is silent for this long hangs.
pub(super) const HANGS: Duration = Duration::from_millis(600);
/// Connections that the kernel has accepted wait for it until it has been silent for this long.
pub(super) const LOST: Duration = Duration::from_secs(3);
/// The bits of the TOS byte or traffic class that are the DSCP.
const DSCP: u8 = 0xfc;

/// A socket that listens for one family.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
}

impl Listener {
    /// Opens a socket. It does not listen yet.
    ///
    /// # Errors
    /// [`Error::Wrong`] if another program uses the port.
    fn open(settings: &Settings, v6: bool) -> Result<Listener, Error> {
        let open = || -> std::io::Result<OwnedFd> {
            let socket = new_socket(v6)?;
            // Connections of an earlier proxy may be in TIME-WAIT.
            sockopt::set_socket_reuseaddr(&socket, true)?;
            prepare(socket.as_fd(), settings, v6)?;
            bind(&socket, &SocketAddr::new(loopback(v6), settings.port))?;
            Ok(socket)
        };
        let port = settings.port;
        let socket = open().map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                Error::Wrong(format!("port {port} is in use: choose another one with --port"))
            }
            _ => Error::system(format!("listen on port {port}"))(error),
        })?;
        Ok(Listener { socket })
    }

    /// Sets the options of connections to come.
    pub(super) fn prepare(&self, settings: &Settings) -> Result<(), Error> {
        let v6 = sockopt::socket_domain(&self.socket).is_ok_and(|domain| domain == AddressFamily::INET6);
        let prepare = || -> std::io::Result<()> {
            prepare(self.socket.as_fd(), settings, v6)?;
            if let Some(bytes) = settings.first_receive_buffer() {
                // It may have had a whole one before.
                sockopt::set_socket_recv_buffer_size_force(&self.socket, bytes)?;
                sys::lock_receive_buffer(self.socket.as_fd(), false)?;
            }
            Ok(())
        };
        prepare().map_err(Error::system("set the options of a socket"))
    }

    /// Lets connections in.
    pub(super) fn listen(&self) -> std::io::Result<()> {
        Ok(listen(&self.socket, BACKLOG)?)
    }

    /// Lets no more connections in. Those that were not accepted are reset.
    pub(super) fn shut(&self) {
        shut(self.socket.as_fd());
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn listens(&self) -> bool {
        sockopt::socket_acceptconn(&self.socket).unwrap_or(false)
    }
}

/// Shuts a listening socket; one that does not listen stays as it is. shutdown(2) would leave a mark on such a one, which
/// connections inherit once it listens again: all that they are sent would seem to have ended.
pub(super) fn shut(socket: BorrowedFd) {
    // It cannot fail for a socket of TCP.
    let _ = connect_unspec(socket);
}

/// Opens a listener for each family. Waits a moment for a port in use: the guardian of an instance that was killed may have it.
///
/// # Errors
/// As [`Listener::open`].
pub(super) fn open_patiently(settings: &Settings) -> Result<Vec<Listener>, Error> {
    check_loopback()?;
    let start = Instant::now();
    loop {
        match families().iter().map(|&v6| Listener::open(settings, v6)).collect() {
            Err(Error::Wrong(_)) if start.elapsed() < BIND_TIMEOUT => std::thread::sleep(Duration::from_millis(20)),
            opened => return opened,
        }
    }
}

/// Checks that the kernel has the congestion controls for radio legs, or loads them.
pub(super) fn check_congestion_control(settings: &Settings) -> Result<(), Error> {
    let of_classes = settings.classes.iter().filter_map(|class| class.congestion.as_ref());
    let controls = settings.radio_congestion.iter().chain(of_classes);
    controls.map(String::as_str).try_for_each(check_congestion).map_err(Error::Wrong)
}

/// Checks that the loopback interface has its addresses. A transparent socket could be bound without.
fn check_loopback() -> Result<(), Error> {
    let probe = |v6| bind(&new_socket(v6)?, &SocketAddr::new(loopback(v6), 0));
    families().iter().try_for_each(|&v6| probe(v6)).map_err(|error| match error {
        Errno::ADDRNOTAVAIL => Error::Missing("the loopback interface has no address: `ip link set lo up`".into()),
        error => Error::system("use the loopback interface")(error),
    })
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

/// Sets the options of a leg.
fn prepare(socket: BorrowedFd, settings: &Settings, v6: bool) -> std::io::Result<()> {
    sys::set_transparent(socket, v6)?;
    // Closing resets the connection, also when the process is killed: a FIN would tell the peer that it has everything.
    sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_oobinline(socket, true)?;
    settings.keepalives().set(socket)?;
    sys::set_notsent_lowat(socket, u32::try_from(settings.unsent).unwrap_or(u32::MAX))?;
    if !settings.is_tuned() {
        // The kernel allows as much again for its overhead. Only before a connection exists does it choose a window scale for it.
        sockopt::set_socket_recv_buffer_size_force(socket, settings.receive_buffer)?;
    }
    Ok(())
}

/// Chooses the congestion control and the rate of a leg on one side, of a connection whose SYN has a mark.
pub(super) fn control(socket: BorrowedFd, settings: &Settings, side: Side, mark: u32) -> std::io::Result<()> {
    if side == Side::Wan {
        return Ok(());
    }
    if let Some(control) = settings.congestion(mark) {
        sockopt::set_tcp_congestion(socket, control)?;
    }
    match settings.most_pacing(mark) {
        u64::MAX => Ok(()),
        bytes => sys::set_max_pacing_rate(socket, bytes),
    }
}

/// An outgoing connection.
pub(super) struct Outgoing {
    pub(super) socket: OwnedFd,
    /// Whether it has the client's port.
    pub(super) same_port: bool,
}

/// Begins to connect to the server of a SYN from the address of its client, and from its port if that is free. The connection has
/// the SYN's mark, by which routes are chosen, its DSCP, and no larger segments than it permits.
pub(super) fn connect_as(settings: &Settings, syn: &Syn) -> std::io::Result<Outgoing> {
    let (client, server) = syn.ends;
    let v6 = client.is_ipv6();
    let open = || -> std::io::Result<OwnedFd> {
        let socket = new_socket(v6)?;
        prepare(socket.as_fd(), settings, v6)?;
        control(socket.as_fd(), settings, syn.side.other(), syn.held.mark)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if syn.held.mark != 0 {
            sys::set_mark(socket.as_fd(), syn.held.mark)?;
        }
        set_priority(&socket, CONNECTING)?;
        if let Some(mss) = syn.mss {
            // A smaller one than the kernel permits is as none.
            let _ = setsockopt(&socket, TcpMaxSeg, &u32::from(mss));
        }
        match syn.tos & DSCP {
            0 => {}
            dscp if v6 => sockopt::set_ipv6_tclass(&socket, dscp.into())?,
            dscp => sockopt::set_ip_tos(&socket, dscp)?,
        }
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
            let listener = Listener { socket: socket_too };
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
