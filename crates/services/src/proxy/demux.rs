//! Early demultiplexing, which keeps SYNs from being forwarded.
//!
//! Before it looks for a route, the kernel gives a packet to the socket that it belongs to by its addresses and ports
//! (`tcp_v4_early_demux`). A SYN from the port of a connection that is in TIME-WAIT here would get that socket, and the kernel forwards no
//! packet that has one (`ip_forward`): it would vanish without a word. So this is turned off as long as a proxy runs. It saves a
//! lookup for packets to this machine, and costs one for those that are forwarded.

use std::fs;

const SETTING: &str = "/proc/sys/net/ipv4/tcp_early_demux";

/// Turns it off. Returns whether it was on.
pub(super) fn turn_off() -> bool {
    fs::read_to_string(SETTING).is_ok_and(|value| value.trim() == "1") && fs::write(SETTING, "0").is_ok()
}

/// Turns it on, as it was.
pub(super) fn turn_on() {
    // It cannot fail after `turn_off` but with fewer rights.
    let _ = fs::write(SETTING, "1");
}
