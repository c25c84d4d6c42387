//! Settings of the kernel that the proxy changes for as long as it runs.

use std::fs;

use serde::{Deserialize, Serialize};

/// A setting. Another process may be told which ones were changed, but not where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Setting {
    /// Probing of the path MTU where ICMP is lost (RFC 4821).
    ///
    /// A server or a UE may probe for itself on a direct path, but the proxy's sockets are the senders towards both. Linux has no
    /// option of a socket for it (`tcp_mtu_probing` in `tcp_timer.c` asks the network namespace alone, and `TCP_MAXSEG` does not change
    /// the segments of a connection that is established). It has no effect on a connection but after repeated timeouts.
    MtuProbing,
    /// Early demultiplexing, which keeps SYNs from being forwarded.
    ///
    /// Before it looks for a route, the kernel gives a packet to the socket that it belongs to by its addresses and ports
    /// (`tcp_v4_early_demux`). A SYN from the port of a connection that is in TIME-WAIT here would get that socket, and the kernel
    /// forwards no packet that has one (`ip_forward`): it would vanish without a word. It saves a lookup for packets to this
    /// machine, and costs one for those that are forwarded.
    EarlyDemux,
}

impl Setting {
    /// Its file, and its values without the proxy and with it.
    fn values(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Setting::MtuProbing => ("/proc/sys/net/ipv4/tcp_mtu_probing", "0", "1"),
            Setting::EarlyDemux => ("/proc/sys/net/ipv4/tcp_early_demux", "1", "0"),
        }
    }

    /// Changes the setting, unless the operator has given it another value than the usual one. Returns whether it was changed.
    ///
    /// # Errors
    /// The process may not change it.
    pub(super) fn change(self) -> std::io::Result<bool> {
        let (path, without, with) = self.values();
        let is_usual = fs::read_to_string(path).is_ok_and(|value| value.trim() == without);
        if is_usual {
            fs::write(path, with)?;
        }
        Ok(is_usual)
    }

    /// Gives the setting the value that it had before.
    pub(super) fn restore(self) {
        let (path, without, _) = self.values();
        // It cannot fail after `change` but with fewer rights.
        let _ = fs::write(path, without);
    }
}
