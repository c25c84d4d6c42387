//! Labels of the proxy's own packets, by which its rules of nftables know them.

use std::os::fd::OwnedFd;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::Priority;

/// The priority (`SO_PRIORITY`) of SYNs that the proxy gives to itself, of UEs and of servers, which belong to no zone; and of what it
/// lets pass. It stays with a packet, and no rule of others knows it.
pub(super) const OF_UES: u32 = 0x7261_0001;
pub(super) const OF_SERVERS: u32 = 0x7261_0002;
pub(super) const PASSING: u32 = 0x7261_0003;
/// The priority of connections to servers that are not established.
pub(super) const CONNECTING: u32 = 0x7261_0004;
/// The priority of packets that tell the rules of nftables of a connection that is about to begin.
pub(super) const ANNOUNCING: u32 = 0x7261_0005;
/// What a SYN is logged with whose addresses and ports belong to a connection that is established, as far as the kernel tracks it.
pub(super) const KNOWN: &[u8] = b"known";

/// Sets a socket's priority (`SO_PRIORITY`), by which rules of nftables know its packets.
pub(super) fn set_priority(socket: &OwnedFd, priority: u32) -> std::io::Result<()> {
    Ok(setsockopt(socket, Priority, &(priority as i32))?)
}
