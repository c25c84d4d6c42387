//! Moves bytes in one direction of a connection, from one socket to another.
//!
//! Small amounts are read and written through a buffer that all connections of a worker share. What the sink does not take,
//! and larger amounts, pass through a pipe by splice(2), without being copied. A direction has a pipe only while it holds
//! bytes, so idle connections cost none. All bytes that a direction holds are in its pipe, which keeps them in order and
//! bounds their number.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{self, Errno};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice};

/// Length of the shared buffer. A read that fills it begins bulk transfer.
const SCRATCH: usize = 32 << 10;
/// Least size of a pipe, so that the rest of a shared buffer always fits.
pub(super) const LEAST_PIPE: usize = SCRATCH;
/// Moves between two sockets before other connections have their turn.
const TURN: usize = 16;
/// No bound on what is between the sockets but the size of a pipe.
pub(super) const NO_LIMIT: usize = usize::MAX;
const FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

/// An empty pipe.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// What all directions of a worker share: empty pipes, and the buffer for small amounts.
#[derive(Debug)]
pub(super) struct Tools {
    spare: Vec<Pipe>,
    /// Capacity of each pipe.
    size: usize,
    most_spare: usize,
    scratch: Box<[u8]>,
}

impl Tools {
    /// Makes pipes of `size` bytes and keeps at most `most_spare` unused ones.
    pub(super) fn new(size: usize, most_spare: usize) -> Tools {
        Tools { spare: Vec::new(), size: size.max(LEAST_PIPE), most_spare, scratch: vec![0; SCRATCH].into() }
    }

    fn take(&mut self) -> io::Result<Pipe> {
        if let Some(pipe) = self.spare.pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        // Where a user's pipes are limited, the kernel's default may do: 64 KiB, or less once there are many.
        let size = fcntl_setpipe_size(&write, self.size).or_else(|_| fcntl_getpipe_size(&write))?;
        if size < LEAST_PIPE {
            return Err(Errno::NOBUFS);
        }
        Ok(Pipe { read, write })
    }

    fn give_back(&mut self, pipe: Pipe) {
        if self.spare.len() < self.most_spare {
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

/// One direction of a connection.
///
/// The owner calls the `on_…` methods for events of both sockets, which are edge-triggered, and then [`Direction::advance`]
/// until it waits.
#[derive(Debug, Default)]
pub(super) struct Direction {
    pipe: Option<Pipe>,
    /// Bytes in the pipe.
    held: usize,
    /// Bytes taken from the source.
    taken: u64,
    readable: bool,
    writable: bool,
    /// The source has announced its end, which a short read may hide.
    ending: bool,
    /// Reads go to the pipe at once.
    bulk: bool,
    /// The source has sent urgent data, at which splice(2) would stop forever.
    urgent: bool,
    /// The source has ended.
    ended: bool,
    /// The sink knows that.
    finished: bool,
}

impl Direction {
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

    /// Whether the source has ended and the sink knows it, after all bytes.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Bytes that the source has sent and the sink's socket has not yet taken.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Bytes taken from the source since the start.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Moves bytes until one side is not ready, or the turn of this direction is over. At most `most` bytes are between the
    /// sockets. With such a bound, nothing is taken from the source before the sink has sent most of what it was given
    /// (`TCP_NOTSENT_LOWAT`): the kernel looks at that only when it begins a new packet, which may become as long as 64 KiB.
    ///
    /// # Errors
    /// One of the sockets has failed, or there is no pipe to be had. The connection cannot go on.
    pub(super) fn advance(
        &mut self,
        source: BorrowedFd,
        sink: BorrowedFd,
        most: usize,
        tools: &mut Tools,
    ) -> io::Result<Turn> {
        let is_bounded = most != NO_LIMIT;
        let mut burst = 0;
        for _ in 0..TURN {
            if self.held > 0 && self.writable {
                self.write(sink, tools)?;
            }
            if self.ended {
                if self.held == 0 && !self.finished {
                    shutdown(sink, Shutdown::Write)?;
                    self.finished = true;
                }
                if self.held == 0 || !self.writable {
                    return Ok(Turn::Waits);
                }
                continue;
            }
            // Without room in the sink, only the pipe can take more.
            if !self.readable || ((self.held == 0 || is_bounded) && !self.writable) {
                if self.held > 0 && self.writable {
                    continue;
                }
                if burst < SCRATCH && self.held == 0 {
                    self.bulk = false;
                }
                return Ok(Turn::Waits);
            }
            if is_bounded && !has_room(sink)? {
                self.writable = false;
                return Ok(Turn::Waits);
            }
            let before = self.taken;
            if self.held == 0 && !self.bulk {
                self.copy(source, sink, most, tools)?;
            } else if !self.fill(source, most, tools)? && !self.writable {
                return Ok(Turn::Waits);
            }
            burst += (self.taken - before) as usize;
        }
        Ok(Turn::More)
    }

    /// Writes from the pipe to the sink.
    fn write(&mut self, sink: BorrowedFd, tools: &mut Tools) -> io::Result<()> {
        let Some(pipe) = &self.pipe else { return Ok(()) };
        match splice(&pipe.read, None, sink, None, self.held, FLAGS) {
            Ok(count) => self.held = self.held.saturating_sub(count),
            Err(Errno::AGAIN) => self.writable = false,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if self.held == 0
            && let Some(pipe) = self.pipe.take()
        {
            tools.give_back(pipe);
        }
        Ok(())
    }

    /// Reads from the source to the pipe. Returns whether anything came.
    fn fill(&mut self, source: BorrowedFd, most: usize, tools: &mut Tools) -> io::Result<bool> {
        let room = tools.size.min(most).saturating_sub(self.held);
        if room == 0 {
            return Ok(false);
        }
        let pipe = match self.pipe.take() {
            Some(pipe) => pipe,
            None => tools.take()?,
        };
        let read =
            if self.urgent { self.read_urgent(source, &pipe, room, tools) } else { splice_in(source, &pipe, room) };
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
            Err(Errno::AGAIN) if self.held > 0 => {}
            Err(Errno::AGAIN) => self.readable = false,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if self.held > 0 {
            self.pipe = Some(pipe);
        } else {
            tools.give_back(pipe);
        }
        Ok(matches!(read, Ok(1..)))
    }

    fn read_urgent(&self, source: BorrowedFd, pipe: &Pipe, room: usize, tools: &mut Tools) -> io::Result<usize> {
        // A page of a pipe may be used for one byte alone, so what is read might not fit beside what is there.
        if self.held > 0 {
            return Err(Errno::AGAIN);
        }
        let room = room.min(SCRATCH);
        let (count, _) = recv(source, &mut tools.scratch[..room], RecvFlags::DONTWAIT)?;
        write_all(pipe, &tools.scratch[..count])?;
        Ok(count)
    }

    /// Reads from the source to the shared buffer and writes that to the sink; the rest goes to a pipe.
    fn copy(&mut self, source: BorrowedFd, sink: BorrowedFd, most: usize, tools: &mut Tools) -> io::Result<()> {
        let room = most.clamp(1, SCRATCH);
        let count = match recv(source, &mut tools.scratch[..room], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.ended = true;
                return Ok(());
            }
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => {
                self.readable = false;
                return Ok(());
            }
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
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
            match send(sink, &tools.scratch[written..count], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.writable = false;
                    let pipe = tools.take()?;
                    write_all(&pipe, &tools.scratch[written..count])?;
                    self.pipe = Some(pipe);
                    self.held = count - written;
                    break;
                }
                Err(error) => return Err(error),
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
