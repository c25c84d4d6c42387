//! Settings of the kernel that the proxy changes for as long as it runs.

use std::fs;

use serde::{Deserialize, Serialize};

/// A setting, and the values that it has with the proxy and without it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    path: &'static str,
    without: &'static str,
    with: &'static str,
}

/// Probing of the path MTU where ICMP is lost (RFC 4821).
///
/// A server or a UE may probe for itself on a direct path, but the proxy's sockets are the senders towards both. Linux has no option
/// of a socket for it (`tcp_mtu_probing` in `tcp_timer.c` asks the network namespace alone, and `TCP_MAXSEG` does not change the segments
/// of a connection that is established). It has no effect on a connection but after repeated timeouts.
pub(super) const MTU_PROBING: Setting = Setting { path: "/proc/sys/net/ipv4/tcp_mtu_probing", without: "0", with: "1" };

/// Early demultiplexing, which keeps SYNs from being forwarded.
///
/// Before it looks for a route, the kernel gives a packet to the socket that it belongs to by its addresses and ports
/// (`tcp_v4_early_demux`). A SYN from the port of a connection that is in TIME-WAIT here would get that socket, and the kernel forwards no
/// packet that has one (`ip_forward`): it would vanish without a word. It saves a lookup for packets to this machine, and costs one
/// for those that are forwarded.
pub(super) const EARLY_DEMUX: Setting = Setting { path: "/proc/sys/net/ipv4/tcp_early_demux", without: "1", with: "0" };

/// A setting that was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Changed {
    path: String,
    before: String,
}

impl Setting {
    /// Changes the setting, unless the operator has given it another value than the usual one. Returns what to restore.
    ///
    /// # Errors
    /// The process may not change it.
    pub(super) fn change(self) -> std::io::Result<Option<Changed>> {
        if !fs::read_to_string(self.path).is_ok_and(|value| value.trim() == self.without) {
            return Ok(None);
        }
        fs::write(self.path, self.with)?;
        Ok(Some(Changed { path: self.path.to_owned(), before: self.without.to_owned() }))
    }
}

impl Changed {
    /// Gives the setting the value that it had before.
    pub(super) fn restore(&self) {
        // It cannot fail after `change` but with fewer rights.
        let _ = fs::write(&self.path, &self.before);
    }
}
