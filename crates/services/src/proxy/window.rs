//! The receive window of a leg that a control limits.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netio::sys;
use rustix::net::sockopt;

/// A `TCP_WINDOW_CLAMP` without effect.
const UNLIMITED: i32 = 1 << 30;

/// What bounds the receive window of a leg.
#[derive(Debug)]
pub(super) struct ReceiveWindow(Mutex<Bounds>);

#[derive(Debug)]
struct Bounds {
    /// The receive buffer without a control.
    whole: usize,
    /// The receive buffer that a control allows.
    buffer: Option<usize>,
    /// The window that a control allows.
    window: Option<i32>,
}

impl Bounds {
    fn allowed(&self) -> usize {
        self.buffer.map_or(self.whole, |buffer| buffer.min(self.whole))
    }
}

impl ReceiveWindow {
    /// The receive window of a leg whose buffer has this many bytes.
    pub(super) fn new(buffer: usize) -> ReceiveWindow {
        ReceiveWindow(Mutex::new(Bounds { whole: buffer, buffer: None, window: None }))
    }

    /// Limits the buffer, or lifts the limit.
    pub(super) fn limit_buffer(&self, leg: BorrowedFd, bytes: Option<usize>) {
        let mut bounds = self.lock();
        let before = bounds.allowed();
        bounds.buffer = bytes;
        let allowed = bounds.allowed();
        // Each call fails only if the connection has just ended.
        if allowed != before {
            // The kernel allows as much again for its overhead.
            let _ = sockopt::set_socket_recv_buffer_size_force(leg, allowed);
        }
        if allowed > before {
            // The kernel derives a bound of the window from the buffer that there was when data came.
            let _ = sys::set_window_clamp(leg, bounds.window.unwrap_or(UNLIMITED));
        }
    }

    /// Limits the window, or lifts the limit. A limit is read back and set again, because the kernel may raise it when data comes;
    /// if `is_quiet`, none has come since the last call.
    pub(super) fn limit_window(&self, leg: BorrowedFd, bytes: Option<u64>, is_quiet: bool) {
        let mut bounds = self.lock();
        let wanted = bytes.map(|bytes| i32::try_from(bytes).unwrap_or(UNLIMITED).min(UNLIMITED));
        let before = std::mem::replace(&mut bounds.window, wanted);
        if wanted.or(before).is_none() || (is_quiet && wanted == before) {
            return;
        }
        let set = wanted.unwrap_or(UNLIMITED);
        // Both calls fail only if the connection has just ended.
        if sys::window_clamp(leg).is_ok_and(|found| found != set) {
            let _ = sys::set_window_clamp(leg, set);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Bounds> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (leg, window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        // Without the kernel's overhead.
        let buffer = || sockopt::socket_recv_buffer_size(leg).unwrap() / 2;
        window.limit_buffer(leg, Some(100_000));
        window.limit_window(leg, Some(40_000), false);
        assert_eq!((buffer(), sys::window_clamp(leg).unwrap()), (100_000, 40_000));
        window.limit_buffer(leg, Some(WHOLE + 1));
        assert_eq!((buffer(), sys::window_clamp(leg).unwrap()), (WHOLE, 40_000));
        window.limit_window(leg, None, false);
        assert_eq!(sys::window_clamp(leg).unwrap(), UNLIMITED);
        window.limit_buffer(leg, Some(100_000));
        window.limit_buffer(leg, None);
        assert_eq!(buffer(), WHOLE);
    }
}
