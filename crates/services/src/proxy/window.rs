//! The receive buffer and window of a leg.
//!
//! At first, the kernel tunes the buffer: it begins small, grows as fast as bytes are read, and has room for all packets that the
//! window has promised to take. A connection whose reader stops early thus holds little. Once much has arrived at the other host, the
//! buffer has its whole size, which the kernel no longer changes. A control may limit it.

use std::os::fd::BorrowedFd;

use netio::sys;
use rustix::net::sockopt;

/// A `TCP_WINDOW_CLAMP` without effect.
const UNLIMITED: i32 = 1 << 30;
/// A limit of at least this many bytes has no effect on a buffer that the kernel tunes, which begins with about as much.
const TUNED: u64 = 64 << 10;

/// What bounds the receive window of a leg that a control may limit.
#[derive(Debug, Default)]
pub(super) struct ReceiveWindow {
    /// The whole receive buffer.
    whole: u64,
    /// Whether [`set_whole`] was called for the leg.
    is_whole: bool,
    /// The receive buffer, unless the kernel tunes it.
    set: Option<u64>,
    /// The receive buffer that a control allows.
    buffer: Option<u64>,
    /// The window that a control allows.
    window: Option<i32>,
}

/// Gives a leg its whole receive buffer.
pub(super) fn set_whole(leg: BorrowedFd, bytes: usize) {
    set_buffer(leg, bytes as u64);
    // The kernel derives a bound of the window from the buffer that there was when data came.
    set_clamp(leg, UNLIMITED);
}

fn set_buffer(leg: BorrowedFd, bytes: u64) {
    // It fails only if the connection has just ended. The kernel allows as much again for its overhead.
    let _ = sockopt::set_socket_recv_buffer_size_force(leg, bytes as usize);
}

fn set_clamp(leg: BorrowedFd, bytes: i32) {
    // It fails only if the connection has just ended.
    let _ = sys::set_window_clamp(leg, bytes);
}

impl ReceiveWindow {
    /// The receive window of a leg whose whole buffer has this many bytes.
    pub(super) fn new(whole: usize) -> ReceiveWindow {
        ReceiveWindow { whole: whole as u64, ..ReceiveWindow::default() }
    }

    /// Returns the limit of the buffer.
    pub(super) fn buffer(&self) -> Option<u64> {
        self.buffer
    }

    /// Limits the buffer, or lifts the limit. Call it also when [`set_whole`] was called for the leg, after which it `is_whole`.
    pub(super) fn limit_buffer(&mut self, leg: BorrowedFd, bytes: Option<u64>, is_whole: bool) {
        self.buffer = bytes;
        // Set in any case: [`set_whole`] may have been called before or after the limit that was set last.
        let is_new = is_whole && !std::mem::replace(&mut self.is_whole, true);
        let most = if is_whole { self.whole } else { self.whole.min(TUNED) };
        let allowed = bytes.map_or(most, |bytes| bytes.min(most));
        let before = self.set.unwrap_or(most);
        if allowed == before && !is_new {
            return;
        }
        self.set = Some(allowed);
        set_buffer(leg, allowed);
        if allowed > before {
            set_clamp(leg, self.window.unwrap_or(UNLIMITED));
        }
    }

    /// Limits the window, or lifts the limit. A limit is read back and set again, because the kernel may raise it when data comes;
    /// if `is_quiet`, none has come since the last call.
    pub(super) fn limit_window(&mut self, leg: BorrowedFd, bytes: Option<u64>, is_quiet: bool) {
        let wanted = bytes.map(|bytes| i32::try_from(bytes).unwrap_or(UNLIMITED).min(UNLIMITED));
        let before = std::mem::replace(&mut self.window, wanted);
        if wanted.or(before).is_none() || (is_quiet && wanted == before) {
            return;
        }
        let set = wanted.unwrap_or(UNLIMITED);
        if sys::window_clamp(leg).is_ok_and(|found| found != set) {
            set_clamp(leg, set);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    const WHOLE: usize = 1 << 20;

    /// A leg and its peer.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, peer)
    }

    /// The receive buffer without the kernel's overhead.
    fn buffer(leg: BorrowedFd) -> usize {
        sockopt::socket_recv_buffer_size(leg).unwrap() / 2
    }

    #[test]
    fn root_limits_hold_until_they_are_lifted() {
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        set_whole(leg, WHOLE);
        window.limit_buffer(leg, Some(100_000), true);
        window.limit_window(leg, Some(40_000), false);
        assert_eq!((buffer(leg), sys::window_clamp(leg).unwrap()), (100_000, 40_000));
        window.limit_buffer(leg, Some(WHOLE as u64 + 1), true);
        assert_eq!((buffer(leg), sys::window_clamp(leg).unwrap()), (WHOLE, 40_000));
        window.limit_window(leg, None, false);
        assert_eq!(sys::window_clamp(leg).unwrap(), UNLIMITED);
        window.limit_buffer(leg, Some(100_000), true);
        window.limit_buffer(leg, None, true);
        assert_eq!(buffer(leg), WHOLE);
    }

    #[test]
    fn root_a_limit_leaves_the_buffer_to_the_kernel_until_it_is_whole() {
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        let first = buffer(leg);
        window.limit_buffer(leg, Some(TUNED), false);
        window.limit_buffer(leg, None, false);
        assert_eq!(buffer(leg), first);
        set_whole(leg, WHOLE);
        window.limit_buffer(leg, Some(TUNED), true);
        assert_eq!(buffer(leg), TUNED as usize);
        // As long as the kernel has not been told, a limit below what it begins with counts at once.
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        window.limit_buffer(leg, Some(TUNED / 2), false);
        assert_eq!(buffer(leg), TUNED as usize / 2);
        window.limit_buffer(leg, None, false);
        assert_eq!(buffer(leg), TUNED as usize);
        window.limit_buffer(leg, Some(TUNED / 2), false);
        set_whole(leg, WHOLE);
        window.limit_buffer(leg, Some(TUNED / 2), true);
        assert_eq!(buffer(leg), TUNED as usize / 2);
        window.limit_buffer(leg, None, true);
        assert_eq!(buffer(leg), WHOLE);
        // A limit that was set just after the buffer had become whole is lifted as well.
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        set_whole(leg, WHOLE);
        window.limit_buffer(leg, Some(TUNED / 2), false);
        window.limit_buffer(leg, None, true);
        assert_eq!(buffer(leg), WHOLE);
    }
}
