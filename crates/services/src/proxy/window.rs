//! The receive window of a leg that a control limits.

use std::os::fd::BorrowedFd;

use netio::sys;
use rustix::net::sockopt;

/// A `TCP_WINDOW_CLAMP` without effect.
const UNLIMITED: i32 = 1 << 30;

/// What bounds the receive window of a leg.
#[derive(Debug, Default)]
pub(super) struct ReceiveWindow {
    /// The receive buffer without a control.
    whole: u64,
    /// The receive buffer that a control allows.
    buffer: Option<u64>,
    /// The window that a control allows.
    window: Option<i32>,
}

impl ReceiveWindow {
    /// The receive window of a leg whose buffer has this many bytes.
    pub(super) fn new(buffer: usize) -> ReceiveWindow {
        ReceiveWindow { whole: buffer as u64, ..ReceiveWindow::default() }
    }

    /// Returns the limit of the buffer.
    pub(super) fn buffer(&self) -> Option<u64> {
        self.buffer
    }

    fn allowed(&self) -> u64 {
        self.buffer.map_or(self.whole, |buffer| buffer.min(self.whole))
    }

    /// Limits the buffer, or lifts the limit.
    pub(super) fn limit_buffer(&mut self, leg: BorrowedFd, bytes: Option<u64>) {
        let before = self.allowed();
        self.buffer = bytes;
        let allowed = self.allowed();
        // Each call fails only if the connection has just ended.
        if allowed != before {
            // The kernel allows as much again for its overhead.
            let _ = sockopt::set_socket_recv_buffer_size_force(leg, allowed as usize);
        }
        if allowed > before {
            // The kernel derives a bound of the window from the buffer that there was when data came.
            let _ = sys::set_window_clamp(leg, self.window.unwrap_or(UNLIMITED));
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
        // Both calls fail only if the connection has just ended.
        if sys::window_clamp(leg).is_ok_and(|found| found != set) {
            let _ = sys::set_window_clamp(leg, set);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    const WHOLE: usize = 1 << 20;

    #[test]
    fn root_limits_hold_until_they_are_lifted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (leg, _) = listener.accept().unwrap();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        // Without the kernel's overhead.
        let buffer = || sockopt::socket_recv_buffer_size(leg).unwrap() / 2;
        window.limit_buffer(leg, Some(100_000));
        window.limit_window(leg, Some(40_000), false);
        assert_eq!((buffer(), sys::window_clamp(leg).unwrap()), (100_000, 40_000));
        window.limit_buffer(leg, Some(WHOLE as u64 + 1));
        assert_eq!((buffer(), sys::window_clamp(leg).unwrap()), (WHOLE, 40_000));
        window.limit_window(leg, None, false);
        assert_eq!(sys::window_clamp(leg).unwrap(), UNLIMITED);
        window.limit_buffer(leg, Some(100_000));
        window.limit_buffer(leg, None);
        assert_eq!(buffer(), WHOLE);
    }
}
