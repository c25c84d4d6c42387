//! The receive buffer and window of a leg.
//!
//! At first, the kernel tunes the buffer: it begins small, grows as fast as bytes are read, and has room for all packets that the
//! window has promised to take. A connection whose reader stops early thus holds little. Once much has arrived at the other host, the
//! proxy sets its size by need (`memory.rs`), which the kernel no longer changes. A control may limit it. A limit takes effect as the
//! announced window is used ([`Room`]).

use std::os::fd::BorrowedFd;

use netio::sys;
use rapid::Room;
use rustix::net::sockopt;

/// A `TCP_WINDOW_CLAMP` without effect.
const UNLIMITED: i32 = 1 << 30;
/// A limit of at least this many bytes has no effect on a buffer that the kernel tunes, which begins with about as much.
const TUNED: u64 = 64 << 10;
/// The kernel's least `TCP_WINDOW_CLAMP` is no more than this (`SOCK_MIN_RCVBUF`).
const LEAST_CLAMP: i32 = 2_304;
/// The most memory for a byte of a window that is believed: a segment of some bytes takes a packet of some hundred.
const MOST_OVERHEAD: u64 = 32;

/// What bounds the receive window of a leg that a control may limit.
#[derive(Debug, Default)]
pub(super) struct ReceiveWindow {
    /// The receive buffer while the kernel tunes it, at most.
    tuned: u64,
    /// The size by need that was seen last.
    size: Option<u64>,
    /// The receive buffer, unless the kernel tunes it.
    set: Option<u64>,
    /// The window that the leg is limited to.
    window: Option<i32>,
    overhead: Overhead,
}

/// The memory that the kernel reserves for a window of `payload` bytes.
#[derive(Clone, Copy, Debug)]
struct Overhead {
    memory: u64,
    payload: u64,
}

impl Default for Overhead {
    /// The kernel's assumption until it has seen a full segment (`TCP_DEFAULT_SCALING_RATIO`), and that of `SO_RCVBUF`, which it
    /// doubles.
    fn default() -> Overhead {
        Overhead { memory: 2, payload: 1 }
    }
}

impl Overhead {
    /// The kernel has set the limit of the window to `window`, with a buffer of `memory`: so much of what it has seen fits
    /// (`tcp_measure_rcv_mss`, since 6.11).
    fn learn(&mut self, memory: u64, window: u64) {
        // Other limits tell nothing: those that a socket begins with, and what we or others have set.
        if (memory / MOST_OVERHEAD..=memory).contains(&window) {
            *self = Overhead { memory, payload: window };
        }
    }

    /// Returns the part of `SO_RCVBUF` that a window takes: twice the size is memory. Packets with less overhead than that are
    /// treated as if they had as much, because the next ones may have it.
    fn buffer_of(self, window: u64) -> u64 {
        let bytes = u128::from(window) * u128::from(self.memory) / (2 * u128::from(self.payload.max(1)));
        window.max(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// The limits of a leg, which a control decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of the receive buffer; `None` for none but its size by need.
    pub(super) buffer: Option<u64>,
    /// Of the receive window; `None` for none but the buffer.
    pub(super) window: Option<u64>,
    /// The least window.
    pub(super) least: u64,
}

/// The state of a leg that is limited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// The receive buffer that it needs, as far as it is known: until then, the kernel tunes it.
    pub(super) size: Option<u64>,
    /// Whether data has arrived: before, a limit of the window is in vain, because the kernel forgets it.
    pub(super) has_data: bool,
    /// Whether no data has come since the last call.
    pub(super) is_quiet: bool,
}

/// Gives a leg a receive buffer without another limit of the window.
pub(super) fn set_size(leg: BorrowedFd, bytes: usize) {
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

/// The receive buffer without the kernel's overhead; `None` if the connection has just ended.
fn buffer_of(leg: BorrowedFd) -> Option<u64> {
    sockopt::socket_recv_buffer_size(leg).ok().map(|bytes| bytes as u64 / 2)
}

/// The part of the receive buffer that is in use, with the packets of out-of-order data.
fn queued(leg: BorrowedFd) -> u64 {
    sys::received_memory(leg).map_or(0, |bytes| u64::from(bytes) / 2)
}

/// The window that the peer has, or a bound of it.
fn announced(leg: BorrowedFd) -> u64 {
    // Before Linux 6.2, the kernel only tells what it would announce at most.
    sys::tcp_info(leg).map_or(0, |info| u64::from(info.rcv_wnd.unwrap_or(info.rcv_ssthresh)))
}

impl ReceiveWindow {
    /// The receive window of a leg whose whole buffer has this many bytes.
    pub(super) fn new(whole: usize) -> ReceiveWindow {
        ReceiveWindow { tuned: TUNED.min(whole as u64), ..ReceiveWindow::default() }
    }

    /// Limits the buffer and the window, or lifts the limits. Call it again while they are wanted: a buffer shrinks no faster than
    /// the announced window is used, and the kernel may raise the limit of the window when data comes. Call it also when the leg's
    /// size has changed.
    pub(super) fn limit(&mut self, leg: BorrowedFd, limits: Limits, state: Leg) {
        // Set in any case: [`set_size`] may have been called before or after the limit that was set last, or not at all.
        let is_new = std::mem::replace(&mut self.size, state.size) != state.size;
        let most = state.size.unwrap_or(self.tuned);
        let wanted = Room { buffer: limits.buffer.map_or(most, |bytes| bytes.min(most)), window: limits.window };
        let before = self.set.unwrap_or(most);
        let present = if wanted.buffer < before || is_new { buffer_of(leg) } else { None };
        let Some(present) = present.filter(|&present| present > wanted.buffer) else {
            self.limit_window(leg, wanted.window, state);
            if wanted.buffer != before || is_new {
                self.set_buffer(leg, wanted.buffer, wanted.buffer > before || is_new);
            }
            return;
        };
        // The window first: then no more is announced than the smaller buffer takes.
        let within = |announced| wanted.within(present, queued(leg), announced, limits.least);
        self.limit_window(leg, within(u64::MAX).window, state);
        let room = within(self.overhead.buffer_of(announced(leg)));
        self.set_buffer(leg, room.buffer, false);
        self.limit_window(leg, room.window, state);
    }

    fn set_buffer(&mut self, leg: BorrowedFd, bytes: u64, is_larger: bool) {
        self.set = Some(bytes);
        set_buffer(leg, bytes);
        if is_larger {
            set_clamp(leg, self.window.unwrap_or(UNLIMITED));
        }
    }

    /// Limits the window, or lifts the limit. A limit is read back and set again, because the kernel may raise it when data comes.
    fn limit_window(&mut self, leg: BorrowedFd, bytes: Option<u64>, state: Leg) {
        if !state.has_data {
            return;
        }
        // Of a limit of zero the kernel knows nothing; it sets its own least one instead of one byte.
        let wanted = bytes.map(|bytes| i32::try_from(bytes).unwrap_or(UNLIMITED).clamp(1, UNLIMITED));
        let before = std::mem::replace(&mut self.window, wanted);
        if wanted.or(before).is_none() || (state.is_quiet && wanted == before) {
            return;
        }
        let set = wanted.unwrap_or(UNLIMITED);
        let Ok(found) = sys::window_clamp(leg) else { return };
        if before != Some(found)
            && found > LEAST_CLAMP
            && let Some(buffer) = buffer_of(leg)
        {
            self.overhead.learn(2 * buffer, found as u64);
        }
        if found != set {
            set_clamp(leg, set);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;
    use nix::sys::socket::setsockopt;
    use nix::sys::socket::sockopt::TcpMaxSeg;

    const WHOLE: usize = 1 << 20;
    const MSS: u32 = 1448;
    const READY: Leg = Leg { size: Some(WHOLE as u64), has_data: true, is_quiet: false };
    const TUNING: Leg = Leg { size: None, ..READY };

    /// A leg and its peer.
    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_mss(&listener);
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, peer)
    }

    /// Lets the peer send segments as they are on most networks.
    fn set_mss(listener: &TcpListener) {
        setsockopt(listener, TcpMaxSeg, &(MSS + 12)).unwrap();
    }

    fn buffer(leg: BorrowedFd) -> usize {
        buffer_of(leg).unwrap() as usize
    }

    fn limits(buffer: Option<u64>, window: Option<u64>) -> Limits {
        Limits { buffer, window, least: 4 * u64::from(MSS) }
    }

    fn of_buffer(bytes: u64) -> Limits {
        limits(Some(bytes), None)
    }

    /// How often the kernel has dropped or moved what it had received, in this network.
    fn drops() -> u64 {
        let text = std::fs::read_to_string("/proc/self/net/netstat").unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("TcpExt:")).collect();
        let counters = lines[0].split(' ').zip(lines[1].split(' '));
        let of_queue = ["PruneCalled", "RcvPruned", "OfoPruned", "TCPRcvCollapsed", "TCPRcvQDrop", "TCPOFODrop"];
        counters.filter(|(name, _)| of_queue.contains(name)).map(|(_, count)| count.parse::<u64>().unwrap()).sum()
    }

    #[test]
    fn root_limits_hold_until_they_are_lifted() {
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        set_size(leg, WHOLE);
        window.limit(leg, limits(Some(100_000), Some(40_000)), READY);
        assert_eq!((buffer(leg), sys::window_clamp(leg).unwrap()), (100_000, 40_000));
        window.limit(leg, limits(Some(WHOLE as u64 + 1), Some(40_000)), READY);
        assert_eq!((buffer(leg), sys::window_clamp(leg).unwrap()), (WHOLE, 40_000));
        window.limit(leg, limits(Some(100_000), None), READY);
        assert_eq!((buffer(leg), sys::window_clamp(leg).unwrap()), (100_000, UNLIMITED));
        window.limit(leg, limits(None, None), READY);
        assert_eq!(buffer(leg), WHOLE);
    }

    #[test]
    fn root_a_limit_leaves_the_buffer_to_the_kernel_until_it_is_whole() {
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        let first = buffer(leg);
        window.limit(leg, of_buffer(TUNED), TUNING);
        window.limit(leg, limits(None, None), TUNING);
        assert_eq!(buffer(leg), first);
        set_size(leg, WHOLE);
        window.limit(leg, of_buffer(TUNED), READY);
        assert_eq!(buffer(leg), TUNED as usize);
        window.limit(leg, limits(None, None), READY);
        assert_eq!(buffer(leg), WHOLE);
        // A limit that was set just after the buffer had become whole is lifted as well.
        let (leg, _peer) = pair();
        let (leg, mut window) = (leg.as_fd(), ReceiveWindow::new(WHOLE));
        set_size(leg, WHOLE);
        window.limit(leg, of_buffer(TUNED / 2), TUNING);
        window.limit(leg, limits(None, None), READY);
        assert_eq!(buffer(leg), WHOLE);
    }

    #[test]
    fn root_a_first_limit_below_the_first_window_waits_until_that_is_used() {
        let (mut leg, mut peer) = pair();
        let mut window = ReceiveWindow::new(WHOLE);
        let first = announced(leg.as_fd());
        window.limit(leg.as_fd(), of_buffer(TUNED / 2), TUNING);
        // Its segments may take a little more than half of the memory.
        assert!((first..=TUNED).contains(&(buffer(leg.as_fd()) as u64)), "{first}");
        let before = drops();
        peer.write_all(&vec![7; first as usize]).unwrap();
        leg.read_exact(&mut vec![0; first as usize]).unwrap();
        assert_eq!(drops(), before);
        // Much at a time: the kernel rounds each window up to the next multiple of what the window scale can say.
        for _ in 0..100 {
            peer.write_all(&[7; 10_000]).unwrap();
            leg.read_exact(&mut [0; 10_000]).unwrap();
            window.limit(leg.as_fd(), of_buffer(TUNED / 2), TUNING);
        }
        assert_eq!((buffer(leg.as_fd()), drops()), (TUNED as usize / 2, before));
    }

    #[test]
    fn root_nothing_that_was_announced_is_dropped_when_a_limit_shrinks_the_buffer() {
        const LIMIT: u64 = 60_000;
        let (mut leg, mut peer) = pair();
        let mut window = ReceiveWindow::new(WHOLE);
        set_size(leg.as_fd(), WHOLE);
        peer.set_nonblocking(true).unwrap();
        let mut write = |bytes: usize| peer.write(&vec![7; bytes]).unwrap_or(0);
        // Until the window has opened.
        while announced(leg.as_fd()) < 500_000 {
            let written = write(100_000);
            leg.read_exact(&mut vec![0; written]).unwrap();
        }
        let before = drops();
        window.limit(leg.as_fd(), limits(Some(LIMIT), Some(LIMIT)), READY);
        assert!(buffer(leg.as_fd()) > 500_000, "{}", buffer(leg.as_fd()));
        // All of it comes, and nobody reads.
        let mut written = 0;
        while let more @ 1.. = write(100_000) {
            written += more;
        }
        assert!(written > 500_000, "{written}");
        assert_eq!(drops(), before);
        // A reader that always leaves something, and a sender that uses the window at once.
        let mut steps = 0;
        while buffer(leg.as_fd()) as u64 > LIMIT {
            leg.read_exact(&mut [0; 10_000]).unwrap();
            write(10_000);
            window.limit(leg.as_fd(), limits(Some(LIMIT), Some(LIMIT)), READY);
            steps += 1;
            assert!(steps < 10_000, "it never reaches its size: {}", buffer(leg.as_fd()));
        }
        assert_eq!((buffer(leg.as_fd()) as u64, drops()), (LIMIT, before));
    }

    /// A sender nearby uses each window within microseconds, long before the reader's next turn.
    #[test]
    fn root_a_limit_holds_soon_for_a_late_reader_and_leaves_its_flow_fast() {
        const LIMIT: u64 = 80_000;
        let (mut leg, mut peer) = pair();
        let mut window = ReceiveWindow::new(WHOLE);
        set_size(leg.as_fd(), WHOLE);
        let before = drops();
        let sender = std::thread::spawn(move || while peer.write_all(&[7; 100_000]).is_ok() {});
        leg.set_nonblocking(true).unwrap();
        let mut turn = |is_told: bool| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            if is_told {
                window.limit(leg.as_fd(), limits(Some(LIMIT), Some(LIMIT)), READY);
            }
            let read = leg.read(&mut vec![0; WHOLE]).unwrap_or(0);
            (buffer(leg.as_fd()) as u64, read)
        };
        let turns = (0..).find(|turns| turn(turns % 10 == 0).0 == LIMIT).unwrap();
        // It takes thousands, or forever, where the buffer is looked at only when it is full again.
        assert!(turns < 300, "{turns}");
        let read: usize = (0..50).map(|turns| turn(turns % 10 == 0).1).sum();
        drop(leg);
        sender.join().unwrap();
        assert_eq!(drops(), before);
        assert!(read as u64 > 50 * LIMIT / 2, "{read}");
    }

    #[test]
    fn packets_with_much_overhead_take_more_of_a_buffer() {
        let mut overhead = Overhead::default();
        assert_eq!(overhead.buffer_of(10_000), 10_000);
        // Five eighths are payload: as if it were half.
        overhead.learn(160_000, 100_000);
        assert_eq!(overhead.buffer_of(10_000), 10_000);
        // A quarter.
        overhead.learn(160_000, 40_000);
        assert_eq!(overhead.buffer_of(10_000), 20_000);
        // Nothing that segments tell.
        for window in [UNLIMITED as u64, 65_535 << 14, 1_152] {
            overhead.learn(160_000, window);
            assert_eq!(overhead.buffer_of(10_000), 20_000);
        }
    }
}
