//! Probing of the path MTU where ICMP is lost (RFC 4821).
//!
//! A server or a UE may probe for itself on a direct path, but the proxy's sockets are the senders towards both. Linux has no option
//! of a socket for it (`tcp_mtu_probing` in `tcp_timer.c` asks the network namespace alone, and `TCP_MAXSEG` does not change the segments
//! of a connection that is established), so it is turned on for the namespace as long as a proxy runs. It has no effect on a
//! connection but after repeated timeouts.

use std::fs;
use std::sync::{Mutex, PoisonError};

const SETTING: &str = "/proc/sys/net/ipv4/tcp_mtu_probing";

/// How many threads want it, and whether we have turned it on.
static WANTED: Mutex<(usize, bool)> = Mutex::new((0, false));

/// What the operator should know if it cannot be turned on.
pub(super) const OFF: &str = "net.ipv4.tcp_mtu_probing is 0 and cannot be set: connections through paths that lose large packets \
                              without ICMP will stall; set it to 1";

/// Turns probing on until the last of its kind is dropped. If the process is killed, it stays on.
#[derive(Debug)]
pub(super) struct MtuProbing(());

impl MtuProbing {
    /// Turns it on, unless it is. Without the right to do so, the setting stays as it is; then `tell` is called with [`OFF`], once.
    pub(super) fn start(tell: impl FnOnce(&'static str)) -> MtuProbing {
        let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.0 == 0 {
            let is_off = fs::read_to_string(SETTING).is_ok_and(|value| value.trim() == "0");
            wanted.1 = is_off && fs::write(SETTING, "1").is_ok();
            if is_off && !wanted.1 {
                tell(OFF);
            }
        }
        wanted.0 += 1;
        MtuProbing(())
    }
}

impl Drop for MtuProbing {
    fn drop(&mut self) {
        let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.0 -= 1;
        if wanted.0 == 0 && std::mem::take(&mut wanted.1) {
            let _ = fs::write(SETTING, "0");
        }
    }
}
