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
    /// The least path MTU of IPv4 that ICMP may set.
    ///
    /// The kernel believes an ICMP error about an echo reply that it never sent, and the proxy's connections to that host, which are
    /// those of all UEs, would have segments of 500 bytes for ten minutes. The least MTU of IPv6 instead; paths with a smaller one
    /// are found by probing.
    LeastPathMtu,
    /// How long fragments of IPv4 wait for the rest of their packet, in seconds, and the bytes of all of them.
    ///
    /// `tproxy` makes the kernel put together all packets that it forwards, as connection tracking does. Fragments without the others of
    /// their packet then take memory that is of everybody.
    FragmentTime,
    /// See `FragmentTime`.
    FragmentMemory,
    /// The same of IPv6.
    FragmentTimeV6,
    /// See `FragmentTimeV6`.
    FragmentMemoryV6,
}

impl Setting {
    /// All of them.
    pub(super) const ALL: [Setting; 7] = [
        Setting::MtuProbing,
        Setting::EarlyDemux,
        Setting::LeastPathMtu,
        Setting::FragmentTime,
        Setting::FragmentMemory,
        Setting::FragmentTimeV6,
        Setting::FragmentMemoryV6,
    ];

    /// Its file, and its values without the proxy and with it.
    fn values(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Setting::MtuProbing => ("/proc/sys/net/ipv4/tcp_mtu_probing", "0", "1"),
            Setting::EarlyDemux => ("/proc/sys/net/ipv4/tcp_early_demux", "1", "0"),
            Setting::LeastPathMtu => ("/proc/sys/net/ipv4/route/min_pmtu", "552", "1280"),
            Setting::FragmentTime => ("/proc/sys/net/ipv4/ipfrag_time", "30", "3"),
            Setting::FragmentMemory => ("/proc/sys/net/ipv4/ipfrag_high_thresh", "4194304", "67108864"),
            Setting::FragmentTimeV6 => ("/proc/sys/net/netfilter/nf_conntrack_frag6_timeout", "60", "3"),
            Setting::FragmentMemoryV6 => {
                ("/proc/sys/net/netfilter/nf_conntrack_frag6_high_thresh", "4194304", "67108864")
            }
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
