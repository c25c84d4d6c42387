//! Moves bytes in one direction of a connection, from one socket to another.
//!
//! Small amounts are read and written through a buffer that all connections of a worker share. What the sink does not take,
//! and larger amounts, pass through a pipe by splice(2), without being copied. A direction has a pipe only while it holds
//! bytes, so idle connections cost none. Where there is no pipe to be had, because descriptors are short, all bytes are read
//! and written, and what the sink does not take is kept in memory. What a direction holds is in one place, which keeps it in
//! order and bounds it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use netio::sys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{self, Errno};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};
use serde::{Deserialize, Serialize};

/// Length of the shared buffer. A read that fills it begins bulk transfer.
const SCRATCH: usize = 32 << 10;
/// Least size of a pipe, so that the rest of a shared buffer always fits.
pub(super) const LEAST_PIPE: usize = SCRATCH;
/// Moves between two sockets before other connections have their turn.
const TURN: usize = 16;
/// No bound on what is between the sockets but the size of a pipe.
pub(super) const NO_LIMIT: usize = usize::MAX;
/// The most that a direction holds before [`Direction::on_proven`].
const UNPROVEN: usize = 64 << 10;
/// Bytes that a source can send without its receive buffer being kept as it is, and the longest read among them. Up to its initial
/// window of ten segments, the kernel sees no reason to enlarge it.
const SMALL: usize = 8 << 10;
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

/// An empty pipe.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    /// Counts the pipes that there are.
    _counted: Arc<()>,
}

/// What all directions of a worker share: empty pipes, and the buffer for small amounts.
#[derive(Debug)]
pub(super) struct Tools {
    spare: Vec<Pipe>,
    /// Capacity of each pipe.
    size: usize,
    most_spare: usize,
    /// The most pipes that there may be; see [`Pipe`].
    most: usize,
    count: Arc<()>,
    scratch: Box<[u8]>,
}

impl Tools {
    /// Makes at most `most` pipes of `size` bytes and keeps at most `most_spare` unused ones.
    pub(super) fn new(size: usize, most_spare: usize, most: usize) -> Tools {
        let scratch = vec![0; SCRATCH].into();
        Tools { spare: Vec::new(), size: size.max(LEAST_PIPE), most_spare, most, count: Arc::default(), scratch }
    }

    /// Changes how many pipes there may be.
    pub(super) fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    fn count(&self) -> usize {
        Arc::strong_count(&self.count) - 1
    }

    /// Returns an empty pipe, unless there are enough or there is none to be had.
    fn take(&mut self) -> Option<Pipe> {
        self.spare.pop().or_else(|| (self.count() < self.most).then(|| self.make().ok()).flatten())
    }

    fn make(&self) -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        // Where a user's pipes are limited, the kernel's default may do: 64 KiB, or less once there are many.
        let size = fcntl_setpipe_size(&write, self.size).or_else(|_| fcntl_getpipe_size(&write))?;
        if size < LEAST_PIPE {
            return Err(Errno::NOBUFS);
        }
        Ok(Pipe { read, write, _counted: Arc::clone(&self.count) })
    }

    fn give_back(&mut self, pipe: Pipe) {
        if self.spare.len() < self.most_spare && self.count() <= self.most {
            self.spare.push(pipe);
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is nothing to do until an event.
    Waits,
    /// There may be more to move at once.
    More,
}

/// Why a direction cannot go on as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The source has failed; see [`Direction::on_source_failed`].
    Source(Errno),
    /// The sink has failed: nothing more can pass.
    Sink(Errno),
    /// A pipe has failed, and bytes are lost.
    Pipe(Errno),
}

/// What is left of a source that has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Failed {
    /// Its socket may have bytes. If the end seems to follow them, it has only if `may_end`.
    Unread { may_end: bool },
    /// Nothing. It has not ended.
    Read,
}

/// One direction of a connection.
///
/// The owner calls the `on_…` methods for events of both sockets, which are edge-triggered, and then [`Direction::advance`]
/// until it waits. If the source fails, it calls [`Direction::on_source_failed`] and goes on until
/// [`Direction::is_drained`]; if the sink fails, it calls [`Direction::discard`] and no other method that moves bytes.
///
/// Written and read, it has neither what it holds, which [`Direction::contents`] returns, nor what events tell again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Direction {
    #[serde(skip)]
    pipe: Option<Pipe>,
    /// What is held without a pipe.
    #[serde(skip)]
    rest: VecDeque<u8>,
    /// Bytes in the pipe or in `rest`.
    held: usize,
    /// Bytes that may pass before a sink with a bound is asked again whether it has room.
    #[serde(skip)]
    credit: usize,
    /// Bytes taken from the source.
    taken: u64,
    #[serde(skip)]
    readable: bool,
    #[serde(skip)]
    writable: bool,
    /// The source has announced its end, which a short read may hide.
    #[serde(skip)]
    ending: bool,
    /// Reads go to the pipe at once.
    #[serde(skip)]
    bulk: bool,
    /// The source has sent urgent data, at which splice(2) would stop forever.
    urgent: bool,
    /// The source has ended.
    ended: bool,
    /// The sink knows that.
    finished: bool,
    /// Whether the source has failed.
    failed: Option<Failed>,
    /// See [`Direction::on_proven`].
    proven: bool,
}

impl Direction {
    /// A direction that is or is not proven; see [`Direction::on_proven`].
    pub(super) fn new(proven: bool) -> Direction {
        Direction { proven, ..Direction::default() }
    }

    /// What it holds: the ends of a pipe, or bytes.
    pub(super) fn contents(&self) -> (Option<[BorrowedFd<'_>; 2]>, [&[u8]; 2]) {
        let (one, other) = self.rest.as_slices();
        (self.pipe.as_ref().map(|pipe| [pipe.read.as_fd(), pipe.write.as_fd()]), [one, other])
    }

    /// Gives a direction that was read what it held when it was written. Returns `None` if that cannot be.
    pub(super) fn with(self, pipe: Option<[OwnedFd; 2]>, rest: Vec<u8>, tools: &Tools) -> Option<Direction> {
        let is_whole = if pipe.is_some() { rest.is_empty() } else { rest.len() == self.held };
        let pipe = pipe.map(|[read, write]| Pipe { read, write, _counted: Arc::clone(&tools.count) });
        let readable = self.failed.is_some();
        is_whole.then_some(Direction { pipe, rest: rest.into(), readable, ..self })
    }

    /// The source may have bytes; `ending` if its end has come.
    pub(super) fn on_readable(&mut self, ending: bool) {
        self.readable = true;
        self.ending |= ending;
    }

    /// The source has urgent data.
    pub(super) fn on_urgent(&mut self) {
        self.urgent = true;
        self.bulk = false;
    }

    /// The sink may have room.
    pub(super) fn on_writable(&mut self) {
        self.writable = true;
    }

    /// The source's socket has failed. Bytes that it has received still pass, and then its end if that came before the failure.
    ///
    /// The kernel reports an error once: to a reader after those bytes, or at once to a writer. From then on a reader seems to be
    /// at an end. So if a call has `reported` an error, an end counts only if that error tells of one: `EPIPE` is a reset after it,
    /// and `ENOTCONN` leaves the report to a reader.
    pub(super) fn on_source_failed(&mut self, reported: Option<Errno>) {
        let may_end = matches!(reported, None | Some(Errno::PIPE | Errno::NOTCONN));
        self.failed = Some(Failed::Unread { may_end });
        self.readable = true;
        // Where there is urgent data, splice(2) reports the error before it.
        self.on_urgent();
    }

    /// Drops what is held.
    pub(super) fn discard(&mut self) {
        // A pipe that is not empty is not used again.
        (self.pipe, self.rest, self.held) = (None, VecDeque::new(), 0);
    }

    /// Whether the sink's socket has all that will ever come from a source that has failed, and its end if it has one.
    pub(super) fn is_drained(&self) -> bool {
        self.finished || (self.held == 0 && self.failed == Some(Failed::Read))
    }

    /// Whether the source has ended and the sink knows it, after all bytes.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Bytes that the source has sent and the sink's socket has not yet taken.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Whether the sink takes nothing at present, after more than a short message.
    pub(super) fn is_blocked(&self) -> bool {
        !self.writable && self.taken >= SMALL as u64
    }

    /// Whether [`Direction::on_proven`] was called.
    pub(super) fn is_proven(&self) -> bool {
        self.proven
    }

    /// The sink's host has shown that it reads, so the direction may hold as much as a pipe does, and the source's receive buffer
    /// may have its size set. Until then, the kernel may enlarge that buffer, but not because bytes are read: it would soon be large,
    /// and fill up if the host stops reading. What remains is room for packets that the window has promised to take.
    pub(super) fn on_proven(&mut self) {
        self.proven = true;
    }

    /// Bytes taken from the source since the start.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Moves bytes until one side is not ready, or the turn of this direction is over. At most `most` bytes are between the
    /// sockets. With such a bound, nothing is taken from the source before the sink has sent most of what it was given
    /// (`TCP_NOTSENT_LOWAT`): the kernel looks at that only when it begins a new packet, which may become as long as 64 KiB. A
    /// quarter of the bound may pass before that is asked again, so small messages need not ask.
    ///
    /// # Errors
    /// One of the sockets has failed, or a pipe. A source of which that is known is no error.
    pub(super) fn advance(
        &mut self,
        source: BorrowedFd,
        sink: BorrowedFd,
        most: usize,
        tools: &mut Tools,
    ) -> Result<Turn, Fault> {
        let is_bounded = most != NO_LIMIT;
        let mut burst = 0;
        for _ in 0..TURN {
            // As much as a sink has just taken may come after it at once, even if that was all it had room for.
            let mut had_room = self.writable;
            if self.held > 0 && self.writable {
                had_room = self.write(sink, tools).map_err(Fault::Sink)?;
            }
            if self.ended || self.failed == Some(Failed::Read) {
                if self.ended && self.held == 0 && !self.finished {
                    shutdown(sink, Shutdown::Write).map_err(Fault::Sink)?;
                    self.finished = true;
                }
                if self.held == 0 || !self.writable {
                    return Ok(Turn::Waits);
                }
                continue;
            }
            // Without room in the sink, only the pipe can take more.
            if !self.readable || ((self.held == 0 || is_bounded) && !had_room) {
                if self.held > 0 && self.writable {
                    continue;
                }
                if burst < SCRATCH && self.held == 0 {
                    self.bulk = false;
                }
                return Ok(Turn::Waits);
            }
            if is_bounded && self.credit == 0 {
                if !has_room(sink).map_err(Fault::Sink)? {
                    self.writable = false;
                    return Ok(Turn::Waits);
                }
                self.credit = most.div_ceil(4);
            }
            let before = self.taken;
            if self.held == 0 && !self.bulk {
                self.copy(source, sink, most, tools)?;
            } else if !self.fill(source, most, tools)? && !self.writable {
                return Ok(Turn::Waits);
            }
            let new = (self.taken - before) as usize;
            (burst, self.credit) = (burst + new, self.credit.saturating_sub(new));
        }
        Ok(Turn::More)
    }

    /// Writes what is held to the sink, as far as there is room. Returns whether there was any.
    fn write(&mut self, sink: BorrowedFd, tools: &mut Tools) -> io::Result<bool> {
        let before = self.held;
        let mut has_spliced = false;
        while self.held > 0 && self.writable {
            let written = match &self.pipe {
                Some(pipe) => splice(&pipe.read, None, sink, None, self.held, FLAGS),
                None => send(sink, self.rest.as_slices().0, SEND),
            };
            match written {
                Ok(count) => {
                    self.held = self.held.saturating_sub(count);
                    self.rest.drain(..count.min(self.rest.len()));
                    has_spliced = self.pipe.is_some();
                }
                Err(Errno::AGAIN) => self.writable = false,
                Err(Errno::INTR) => {}
                // splice(2) does not tell of an error after it has written something, and the kernel tells it once. What follows is
                // `EPIPE`, which says no more than that nothing can be sent.
                Err(Errno::PIPE) if has_spliced => return Err(Errno::CONNRESET),
                Err(error) => return Err(error),
            }
        }
        if self.held == 0 {
            self.rest = VecDeque::new();
            self.pipe.take().into_iter().for_each(|pipe| tools.give_back(pipe));
        }
        Ok(self.held < before)
    }

    /// Reads from the source to the pipe. Returns whether anything came.
    fn fill(&mut self, source: BorrowedFd, most: usize, tools: &mut Tools) -> Result<bool, Fault> {
        // What a sink has no room for is as well kept in the receive buffer.
        let size = if self.proven && self.writable { tools.size } else { tools.size.min(UNPROVEN) };
        let room = size.min(most).saturating_sub(self.held);
        if room == 0 {
            return Ok(false);
        }
        let Some(pipe) = self.pipe.take().or_else(|| if self.rest.is_empty() { tools.take() } else { None }) else {
            self.bulk = false;
            return Ok(false);
        };
        let read = match self.urgent {
            true => self.read(source, || self.read_urgent(source, &pipe, room, tools)),
            false => self.read(source, || splice_in(source, &pipe, room)).map_err(Fault::Source),
        };
        match read {
            // With an end behind urgent data of which no event has told yet, splice(2) sees an end, too.
            Ok(0) => match recv(source, &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((1.., _)) => self.on_urgent(),
                _ => self.ended = true,
            },
            Ok(count) => {
                self.held += count;
                self.taken += count as u64;
            }
            // The source is empty, or the pipe is full although it holds less than its size: each packet takes a slot.
            Err(Fault::Source(Errno::AGAIN)) if self.held > 0 => {}
            Err(Fault::Source(Errno::AGAIN)) => self.readable = false,
            Err(Fault::Source(Errno::INTR)) => {}
            // It may not be empty.
            Err(Fault::Pipe(_)) => return read.map(|_| false),
            // What is held still passes.
            Err(_) => {}
        }
        if self.held > 0 {
            self.pipe = Some(pipe);
        } else {
            tools.give_back(pipe);
        }
        match read {
            Err(Fault::Source(Errno::AGAIN | Errno::INTR)) => Ok(false),
            read => read.map(|count| count > 0),
        }
    }

    /// Reads from the source by `read`; see [`Direction::on_proven`].
    fn read<T>(&self, source: BorrowedFd, read: impl FnOnce() -> T) -> T {
        let keeps = !self.proven && self.taken >= SMALL as u64;
        // Neither call fails from Linux 5.14 on; with an earlier one, the buffer may become larger.
        if keeps {
            let _ = sys::lock_receive_buffer(source, true);
        }
        let read = read();
        if keeps {
            let _ = sys::lock_receive_buffer(source, false);
        }
        read
    }

    fn read_urgent(&self, source: BorrowedFd, pipe: &Pipe, room: usize, tools: &mut Tools) -> Result<usize, Fault> {
        // A page of a pipe may be used for one byte alone, so what is read might not fit beside what is there.
        if self.held > 0 {
            return Err(Fault::Source(Errno::AGAIN));
        }
        let room = room.min(SCRATCH);
        let (count, _) = recv(source, &mut tools.scratch[..room], RecvFlags::DONTWAIT).map_err(Fault::Source)?;
        write_all(pipe, &tools.scratch[..count]).map_err(Fault::Pipe)?;
        Ok(count)
    }

    /// Reads from the source to the shared buffer and writes that to the sink; the rest goes to a pipe.
    fn copy(&mut self, source: BorrowedFd, sink: BorrowedFd, most: usize, tools: &mut Tools) -> Result<(), Fault> {
        let longest = if self.proven || self.taken >= SMALL as u64 { SCRATCH } else { SMALL };
        let room = most.clamp(1, longest);
        let read = self.read(source, || recv(source, &mut tools.scratch[..room], RecvFlags::DONTWAIT));
        let count = match (read, self.failed) {
            (Ok((count @ 1.., _)), _) => count,
            (Err(Errno::INTR), _) => return Ok(()),
            (Ok(_), None | Some(Failed::Unread { may_end: true })) => {
                self.ended = true;
                return Ok(());
            }
            (_, Some(_)) => {
                self.failed = Some(Failed::Read);
                return Ok(());
            }
            (Err(Errno::AGAIN), None) => {
                self.readable = false;
                return Ok(());
            }
            (Err(error), None) => return Err(Fault::Source(error)),
        };
        self.taken += count as u64;
        if count == room {
            self.bulk = !self.urgent;
        } else {
            // More would come with another event, but for the end, which may have come with these bytes.
            self.readable = self.ending || self.urgent;
        }
        let mut written = 0;
        while written < count {
            match send(sink, &tools.scratch[written..count], SEND) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.writable = false;
                    self.held = count - written;
                    self.pipe = tools.take();
                    match &self.pipe {
                        Some(pipe) => write_all(pipe, &tools.scratch[written..count]).map_err(Fault::Pipe)?,
                        None => self.rest.extend(&tools.scratch[written..count]),
                    }
                    break;
                }
                Err(error) => return Err(Fault::Sink(error)),
            }
        }
        Ok(())
    }
}

/// Returns whether a socket is ready to send more. If not, an event will say when it is.
fn has_room(sink: BorrowedFd) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(sink, PollFlags::OUT)];
    match poll(&mut polled, Some(&Timespec::default())) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error),
    }
}

fn splice_in(source: BorrowedFd, pipe: &Pipe, room: usize) -> io::Result<usize> {
    splice(source, None, &pipe.write, None, room, FLAGS)
}

/// Writes to an empty pipe, which has room for at least [`SCRATCH`] bytes.
fn write_all(pipe: &Pipe, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match io::write(pipe.write.as_fd(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // It cannot be full: the connection ends rather than lose bytes.
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
