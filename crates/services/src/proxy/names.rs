//! The names of a proxy's sockets for other processes, and whom it believes there.
//!
//! The sockets are abstract ones, named after the interface towards the RAN, in the namespace of that interface. Any user can take
//! such a name first, so there are several.

use std::os::fd::AsFd;

use rustix::net::sockopt::socket_peercred;

/// Names of a socket, of which a proxy takes the first that is free.
pub(super) const NAMES: u32 = 8;

/// Returns the name with the number `n` of the socket for `what`.
pub(super) fn name(what: &str, ran: u32, n: u32) -> String {
    let more = if n == 0 { String::new() } else { format!("/{n}") };
    format!("ranway/proxy-{what}/{ran}{more}")
}

/// Whether the process at the other end has this one's user, or root's. Rights alone are no proof: anybody has some in a user namespace.
pub(super) fn is_one_of_us(socket: impl AsFd) -> bool {
    socket_peercred(socket).is_ok_and(|of| of.uid.is_root() || of.uid == rustix::process::geteuid())
}
