//! Streams of chunks: the last byte of each is 0x00 if more follow, 0xFF if it is the last.

use arrayvec::ArrayVec;
use std::io::IoSlice;
use units::{Span, Time};

/// The last byte of a chunk that another one follows.
const MORE: u8 = 0x00;
/// The last byte of the last chunk.
const LAST: u8 = 0xFF;
/// The most slices of a burst, for one `writev`.
pub const MOST_SLICES: usize = 96;
/// The fewest bytes of random data from which chunks are cut: two of the largest ones.
pub const RANDOM: usize = 2 * super::LARGEST_CHUNK;

/// The smallest chunk of which bytes are dropped unread.
const WORTH_SKIPPING: usize = 32 << 10;

/// Bytes to send, in order.
pub type Burst<'a> = ArrayVec<IoSlice<'a>, MOST_SLICES>;

/// When a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the chunk that is being sent after this time.
    After(Span),
    /// With this chunk, counted from 1.
    Chunks(u64),
}

/// The sender of a stream. Repeat [`Outgoing::burst`] and [`Outgoing::sent`] until [`Outgoing::is_finished`].
#[derive(Clone, Debug)]
pub struct Outgoing {
    chunk: usize,
    end: End,
    start: Time,
    /// What stands before each chunk: the header of a WebSocket frame.
    prefix: ArrayVec<u8, 14>,
    /// Complete chunks.
    chunks: u64,
    /// Bytes of the chunk that is being sent, its prefix included.
    position: usize,
    /// Whether the last burst ended with the last chunk.
    ends: bool,
    finished: bool,
}

impl Outgoing {
    /// Starts a stream of chunks of `chunk` bytes, each after `prefix`.
    ///
    /// # Panics
    /// If a chunk is empty or longer than [`super::LARGEST_CHUNK`], or the prefix longer than 14 bytes.
    pub fn new(chunk: usize, end: End, start: Time, prefix: &[u8]) -> Outgoing {
        assert!((1..=super::LARGEST_CHUNK).contains(&chunk), "the size of a chunk was checked");
        let prefix = prefix.try_into().expect("the header of a frame has at most 14 bytes");
        Outgoing { chunk, end, start, prefix, chunks: 0, position: 0, ends: false, finished: false }
    }

    /// Returns the next bytes to send, cut from `random`. Empty if the stream is finished.
    ///
    /// # Panics
    /// If `random` has fewer than [`RANDOM`] bytes.
    pub fn burst<'a>(&'a mut self, random: &'a [u8], now: Time) -> Burst<'a> {
        assert!(random.len() >= RANDOM, "there is enough random data");
        let mut burst = Burst::new();
        let mut position = self.position;
        let mut index = self.chunks;
        let prefix = self.prefix.len();
        self.ends = false;
        while !self.finished && !self.ends && burst.len() + 3 <= MOST_SLICES {
            let last = match self.end {
                End::After(span) => now.saturating_since(self.start) >= span,
                End::Chunks(count) => index + 1 >= count,
            };
            if position < prefix {
                burst.push(IoSlice::new(&self.prefix[position..]));
            }
            // Neighbouring chunks differ, so that nothing on the path can compress them.
            let from = (index as usize).wrapping_mul(self.chunk) % (random.len() - self.chunk);
            let body = &random[from..from + self.chunk - 1];
            let done = position.saturating_sub(prefix);
            if done < body.len() {
                burst.push(IoSlice::new(&body[done..]));
            }
            burst.push(IoSlice::new(if last { &[LAST] } else { &[MORE] }));
            self.ends = last;
            index += 1;
            position = 0;
        }
        burst
    }

    /// Takes note that the first `bytes` bytes of the latest burst were sent.
    pub fn sent(&mut self, bytes: usize) {
        let whole = self.prefix.len() + self.chunk;
        let total = self.position + bytes;
        self.chunks += (total / whole) as u64;
        self.position = total % whole;
        let complete = match self.end {
            End::Chunks(count) => self.chunks >= count,
            // The last chunk of the burst was the last of all, and it is complete.
            End::After(_) => self.ends && self.position == 0 && bytes > 0,
        };
        self.finished |= complete;
    }

    /// Whether the last chunk was sent.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the bytes of chunks that were sent, without prefixes.
    pub fn bytes(&self) -> u64 {
        self.chunks * self.chunk as u64 + self.position.saturating_sub(self.prefix.len()) as u64
    }

    /// Returns the time of the start.
    pub fn start(&self) -> Time {
        self.start
    }
}

/// The receiver of a stream.
#[derive(Clone, Debug)]
pub struct Incoming {
    chunk: usize,
    position: usize,
    bytes: u64,
}

/// What [`Incoming::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Bytes that belong to the stream.
    pub used: usize,
    /// Whether a chunk was completed.
    pub completed: bool,
    /// Whether the last chunk was completed.
    pub last: bool,
}

impl Incoming {
    /// Starts with chunks of `chunk` bytes.
    ///
    /// # Panics
    /// If a chunk is empty.
    pub fn new(chunk: usize) -> Incoming {
        assert!(chunk > 0, "the size of a chunk was checked");
        Incoming { chunk, position: 0, bytes: 0 }
    }

    /// Counts bytes up to the end of the stream. Only the last byte of each chunk is looked at; any but
    /// 0xFF means that another chunk follows, as in the reference servers.
    pub fn take(&mut self, input: &[u8]) -> Taken {
        let mut taken = Taken { used: 0, completed: false, last: false };
        while taken.used < input.len() && !taken.last {
            let part = (self.chunk - self.position).min(input.len() - taken.used);
            taken.used += part;
            self.position += part;
            self.bytes += part as u64;
            if self.position == self.chunk {
                self.position = 0;
                taken.completed = true;
                taken.last = input[taken.used - 1] == LAST;
            }
        }
        taken
    }

    /// Returns how many of the next bytes do not matter: those up to the last one of the chunk. The caller may drop them unread and
    /// call [`Incoming::skip`]. `None` if chunks are so small that it is not worth a call of the system.
    pub fn skippable(&self) -> Option<usize> {
        (self.chunk >= WORTH_SKIPPING).then(|| self.chunk - self.position - 1)
    }

    /// Counts bytes that were not looked at.
    ///
    /// # Panics
    /// If there are more than [`Incoming::skippable`].
    pub fn skip(&mut self, bytes: usize) {
        assert!(self.position + bytes < self.chunk, "the last byte of a chunk is looked at");
        self.position += bytes;
        self.bytes += bytes as u64;
    }

    /// Returns the bytes received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes received in complete chunks.
    pub fn complete(&self) -> u64 {
        self.bytes - self.position as u64
    }
}
