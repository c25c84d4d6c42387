//! Probing of the path MTU where ICMP is lost (RFC 4821).
//!
//! A server or a UE may probe for itself on a direct path, but the proxy's sockets are the senders towards both. Linux has no option
//! of a socket for it (`tcp_mtu_probing` in `tcp_timer.c` asks the network namespace alone, and `TCP_MAXSEG` does not change the segments
//! of a connection that is established), so it is turned on for the namespace as long as a proxy runs. It has no effect on a
//! connection but after repeated timeouts.

use std::fs;

const SETTING: &str = "/proc/sys/net/ipv4/tcp_mtu_probing";

/// What the operator should know if it cannot be turned on.
pub(super) const OFF: &str = "net.ipv4.tcp_mtu_probing is 0 and cannot be set: connections through paths that lose large packets \
                              without ICMP will stall; set it to 1";

/// Turns probing on. Returns whether it was off; `None` if it is off and cannot be turned on.
pub(super) fn turn_on() -> Option<bool> {
    let is_off = fs::read_to_string(SETTING).is_ok_and(|value| value.trim() == "0");
    if is_off { fs::write(SETTING, "1").ok().map(|()| true) } else { Some(false) }
}

/// Turns probing off, as it was.
pub(super) fn turn_off() {
    // It cannot fail after `turn_on` but with fewer rights.
    let _ = fs::write(SETTING, "0");
}
