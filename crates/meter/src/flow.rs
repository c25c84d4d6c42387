//! What the threads of a measurement share.

use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use netio::errqueue::{Entry, Mark};
use netio::sys;
use observe::kernel::{Passage, State, Way};
use units::{Span, Time};
use wire::tcp_info::{self, TcpInfo};

/// Writes that wait for their stamps. Those beyond replace the oldest.
const MOST_WAITING: usize = 1024;
/// Stamped writes that are kept of a flow.
const MOST_STAMPED: usize = 100_000;

/// A write whose last byte is stamped.
#[derive(Clone, Copy, Debug)]
struct Stamped {
    byte: u32,
    written: Time,
    /// The times of the marks, in the order of [`Mark`].
    marks: [Option<Time>; 3],
}

impl Stamped {
    fn passage(&self) -> Passage {
        let [scheduled, sent, acknowledged] = self.marks;
        let between = |from: Option<Time>, to: Option<Time>| Some(to?.saturating_since(from?));
        Passage {
            written: self.written,
            buffered: between(Some(self.written), scheduled),
            queued: between(scheduled, sent),
            travelled: between(sent, acknowledged),
        }
    }
}

/// The stamped writes of a flow.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    waiting: Vec<Stamped>,
    done: Vec<Passage>,
}

impl Stamps {
    /// A write of which the last byte has this number.
    pub(crate) fn wrote(&mut self, byte: u32, now: Time) {
        if self.waiting.len() == MOST_WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push(Stamped { byte, written: now, marks: [None; 3] });
    }

    /// Takes an entry of the error queue; `at` converts wall-clock time.
    pub(crate) fn take(&mut self, entry: Entry, at: impl FnOnce(Span) -> Time) {
        let Entry::Stamp { mark, byte, time } = entry else { return };
        let Some(position) = self.waiting.iter().position(|stamped| stamped.byte == byte) else { return };
        let mark_at = &mut self.waiting[position].marks[mark as usize];
        // A retransmission is stamped again; the first time counts.
        mark_at.get_or_insert(at(time));
        if mark == Mark::Acknowledged {
            let passage = self.waiting.remove(position).passage();
            if self.done.len() < MOST_STAMPED {
                self.done.push(passage);
            }
        }
    }

    /// Returns all passages in the order of their writing, including those that have not ended.
    pub(crate) fn finish(&mut self) -> Vec<Passage> {
        let mut passages = std::mem::take(&mut self.done);
        passages.extend(self.waiting.drain(..).map(|stamped| stamped.passage()));
        passages.sort_unstable_by_key(|passage| passage.written);
        passages
    }
}

/// The beginning or the end of a transfer.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) at: Time,
    /// The state of the connection at this moment; `None` if this end's kernel does not tell it.
    pub(crate) state: Option<State>,
}

impl Edge {
    /// Bytes that the other end's kernel has acknowledged on the connection so far.
    pub(crate) fn acked(&self) -> Option<u64> {
        self.state.as_ref().map(|state| state.info.bytes_acked)
    }
}

/// A flow as its own thread, the sampler and the display see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) way: Way,
    /// Its number among those of its direction.
    pub(crate) number: usize,
    /// The socket, for questions about it, once there is one.
    socket: OnceLock<TcpStream>,
    /// Bytes of payload that this end has moved.
    pub(crate) moved: AtomicU64,
    /// Bytes that the server says it has received.
    pub(crate) confirmed: AtomicU64,
    begun: OnceLock<Edge>,
    ended: OnceLock<Edge>,
    /// Whether the next write is to be stamped.
    pub(crate) wants_stamp: AtomicBool,
    stamps: Mutex<Stamps>,
}

impl Shared {
    pub(crate) fn new(way: Way, number: usize) -> Shared {
        Shared {
            way,
            number,
            socket: OnceLock::new(),
            moved: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            begun: OnceLock::new(),
            ended: OnceLock::new(),
            wants_stamp: AtomicBool::new(false),
            stamps: Mutex::default(),
        }
    }

    /// Sets the socket, of which there is one in all.
    pub(crate) fn connected(&self, socket: TcpStream) {
        let _ = self.socket.set(socket);
    }

    pub(crate) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.get().map(AsFd::as_fd)
    }

    /// Takes note that its transfer begins.
    pub(crate) fn begin(&self, now: Time) {
        let _ = self.begun.set(self.edge(now));
    }

    /// Takes note that its transfer has ended, whether it is complete or not.
    pub(crate) fn end(&self, now: Time) {
        let _ = self.ended.set(self.edge(now));
    }

    /// When its transfer began, if it did.
    pub(crate) fn begun(&self) -> Option<&Edge> {
        self.begun.get()
    }

    /// When its transfer ended, if it did.
    pub(crate) fn ended(&self) -> Option<&Edge> {
        self.ended.get()
    }

    fn edge(&self, now: Time) -> Edge {
        Edge { at: now, state: self.sample(|| now) }
    }

    pub(crate) fn stamps(&self) -> MutexGuard<'_, Stamps> {
        self.stamps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state of the flow, and then the clock (`now`); `None` if the kernel does not tell the state.
    pub(crate) fn sample(&self, now: impl FnOnce() -> Time) -> Option<State> {
        let mut buffer = [0; tcp_info::MOST];
        let socket = self.socket()?;
        let raw = sys::tcp_info_bytes(socket, &mut buffer).ok()?;
        let info = TcpInfo::decode(raw)?;
        let bbr = sys::bbr_info(socket).ok().flatten();
        Some(State { at: now(), raw: raw.into(), info, bbr, delivered: self.delivered() })
    }

    /// The bytes that count: what this end has read of a download, and what the server has of an upload.
    pub(crate) fn delivered(&self) -> u64 {
        match self.way {
            Way::Down => self.moved.load(Relaxed),
            Way::Up => self.confirmed.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_divided_by_the_marks_whatever_their_order() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let ms = Span::from_millis;
        let mut stamps = Stamps::default();
        stamps.wrote(99, at(10));
        stamps.wrote(199, at(20));
        let mut stamp = |mark, byte, ms| {
            stamps.take(Entry::Stamp { mark, byte, time: Span::ZERO }, |_| at(ms));
        };
        stamp(Mark::Sent, 99, 17);
        stamp(Mark::Scheduled, 99, 12);
        // Of a retransmission.
        stamp(Mark::Sent, 99, 60);
        stamp(Mark::Acknowledged, 99, 90);
        stamp(Mark::Scheduled, 199, 21);
        stamp(Mark::Scheduled, 5, 1);
        stamps.take(Entry::Other, |_| at(0));
        assert_eq!(
            stamps.finish(),
            [
                Passage { written: at(10), buffered: Some(ms(2)), queued: Some(ms(5)), travelled: Some(ms(73)) },
                Passage { written: at(20), buffered: Some(ms(1)), queued: None, travelled: None },
            ]
        );
        assert_eq!(stamps.finish(), []);
    }

    #[test]
    fn writes_that_wait_for_stamps_are_bounded() {
        let mut stamps = Stamps::default();
        for byte in 0..5 * MOST_WAITING as u32 {
            stamps.wrote(byte, Time::ZERO);
        }
        assert_eq!(stamps.finish().len(), MOST_WAITING);
    }
}
