//! The receive window of a leg, which its worker enlarges and a control limits.

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netio::sys;
use rustix::net::sockopt;

/// A `TCP_WINDOW_CLAMP` without effect.
const UNLIMITED: i32 = 1 << 30;

/// What bounds the receive window of a leg. A change is made under the lock, so that a worker and a control do not undo each
/// other's.
#[derive(Debug)]
pub(super) struct ReceiveWindow(Mutex<Bounds>);

#[derive(Debug)]
struct Bounds {
    /// The receive buffer without a control.
    grown: usize,
    /// The receive buffer that a control allows.
    buffer: Option<usize>,
    /// The window that a control allows.
    window: Option<i32>,
}

impl Bounds {
    fn allowed(&self) -> usize {
        self.buffer.map_or(self.grown, |buffer| buffer.min(self.grown))
    }

    /// Makes a change, and sets the buffer if it is another one then.
    fn change(&mut self, leg: BorrowedFd, change: impl FnOnce(&mut Bounds)) {
        let before = self.allowed();
        change(self);
        let allowed = self.allowed();
        if allowed != before {
            set_buffer(leg, allowed);
        }
        if allowed > before {
            // The kernel derives a bound of the window from the buffer that there was when the first data came.
            let _ = sys::set_window_clamp(leg, self.window.unwrap_or(UNLIMITED));
        }
    }
}

impl ReceiveWindow {
    /// A leg's receive window with a buffer of this many bytes after the handshake.
    pub(super) fn new(buffer: usize) -> ReceiveWindow {
        ReceiveWindow(Mutex::new(Bounds { grown: buffer, buffer: None, window: None }))
    }

    /// Sets the buffer after the handshake.
    pub(super) fn begin(&self, leg: BorrowedFd) {
        set_buffer(leg, self.lock().allowed());
    }

    /// Doubles the buffer, to at most `most` bytes, if the `bytes` that have passed and `arrived` at the other host call for it.
    /// In slow start, what a sender has in flight doubles with what it has sent, so the buffer grows ahead of that. What has not
    /// arrived at the other host does not count: it may have stopped reading.
    pub(super) fn grow(&self, leg: BorrowedFd, most: usize, passed: u64, arrived: impl FnOnce() -> u64) {
        let mut bounds = self.lock();
        let enough = bounds.grown as u64 / 4;
        if bounds.grown < most && passed >= enough && arrived() >= enough {
            bounds.change(leg, |bounds| bounds.grown = (bounds.grown * 2).min(most));
        }
    }

    /// Limits the buffer, or lifts the limit.
    pub(super) fn limit_buffer(&self, leg: BorrowedFd, bytes: Option<usize>) {
        self.lock().change(leg, |bounds| bounds.buffer = bytes);
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

fn set_buffer(leg: BorrowedFd, bytes: usize) {
    // It fails only if the connection has just ended. The kernel allows as much again for its overhead.
    let _ = sockopt::set_socket_recv_buffer_size_force(leg, bytes);
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    const FIRST: usize = 64 << 10;
    const MOST: usize = 1 << 20;

    /// A leg, which `act` handles, and its peer.
    fn with_leg(act: impl FnOnce(BorrowedFd, &ReceiveWindow)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (leg, _) = listener.accept().unwrap();
        let window = ReceiveWindow::new(FIRST);
        window.begin(leg.as_fd());
        act(leg.as_fd(), &window);
        drop(peer);
    }

    /// The receive buffer without the kernel's overhead.
    fn buffer(leg: BorrowedFd) -> usize {
        sockopt::socket_recv_buffer_size(leg).unwrap() / 2
    }

    #[test]
    fn root_a_buffer_grows_with_what_has_arrived_at_the_other_host() {
        with_leg(|leg, window| {
            assert_eq!(buffer(leg), FIRST);
            window.grow(leg, MOST, FIRST as u64 / 4 - 1, || u64::MAX);
            window.grow(leg, MOST, u64::MAX, || FIRST as u64 / 4 - 1);
            assert_eq!(buffer(leg), FIRST);
            window.grow(leg, MOST, FIRST as u64 / 4, || FIRST as u64 / 4);
            assert_eq!(buffer(leg), 2 * FIRST);
            (0..10).for_each(|_| window.grow(leg, MOST, u64::MAX, || u64::MAX));
            assert_eq!(buffer(leg), MOST);
        });
    }

    #[test]
    fn root_a_limit_holds_while_the_buffer_grows() {
        with_leg(|leg, window| {
            window.limit_buffer(leg, Some(100_000));
            window.limit_window(leg, Some(40_000), false);
            assert_eq!(buffer(leg), FIRST);
            window.grow(leg, MOST, u64::MAX, || u64::MAX);
            assert_eq!((buffer(leg), sys::window_clamp(leg).unwrap()), (100_000, 40_000));
            window.limit_window(leg, None, false);
            assert_eq!(sys::window_clamp(leg).unwrap(), UNLIMITED);
            window.limit_buffer(leg, None);
            assert_eq!(buffer(leg), 2 * FIRST);
        });
    }

    #[test]
    fn root_what_a_worker_and_a_control_do_at_once_is_all_done() {
        for _ in 0..200 {
            with_leg(|leg, window| {
                std::thread::scope(|scope| {
                    scope.spawn(|| (0..4).for_each(|_| window.grow(leg, MOST, u64::MAX, || u64::MAX)));
                    scope.spawn(|| window.limit_buffer(leg, Some(90_000)));
                });
                assert_eq!(buffer(leg), 90_000);
            });
        }
    }
}
