//! Gives the connections of a worker to a worker of another process.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use netio::Error;
use rustix::event::epoll::{self, EventData};
use serde::{Deserialize, Serialize};

use super::super::book::Ends;
use super::super::flow::{Flow, Side};
use super::super::liveness::Liveness;
use super::super::memory::Sizes;
use super::super::relay::Direction;
use super::super::samples::Sampled;
use super::{Connection, INTEREST, Phase, Worker};

/// A connection as one process tells another. Beside it go, of its client's leg, its server's, and what each direction holds, the
/// descriptors, and then the bytes of directions that hold them without a pipe.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::proxy) struct Record<D = Direction> {
    ends: Ends,
    opened_by: Side,
    /// Since it was accepted, and since a byte passed.
    age: Duration,
    idle: Duration,
    is_established: bool,
    /// The leg that has failed.
    failed: Option<usize>,
    receive_buffer: usize,
    size: Option<usize>,
    most_pacing: u64,
    /// An earlier version does not tell them.
    #[serde(default)]
    interfaces: [Option<u32>; 2],
    directions: [D; 2],
    /// The bytes that each direction holds without a pipe.
    rests: [usize; 2],
    /// Whether each has a pipe.
    pipes: [bool; 2],
    sizes: [Sizes; 2],
    liveness: Liveness,
    sampled: Sampled,
}

/// A connection on its way: its record, what belongs beside it, and the bytes after it.
pub(in crate::proxy) type Sent<'a> = (Record<&'a Direction>, Vec<BorrowedFd<'a>>, Vec<u8>);

impl Worker {
    /// Returns what another process has to know of the connections, which stay here.
    pub(in crate::proxy) fn bequests(&self) -> impl Iterator<Item = Sent<'_>> {
        self.connections.iter().map(|(_, connection)| self.bequest(connection))
    }

    fn bequest<'a>(&self, connection: &'a Connection) -> Sent<'a> {
        let Connection { flow, place, directions, sizes, liveness, phase, active, sampled, .. } = connection;
        let held = directions.each_ref().map(Direction::contents);
        let record = Record {
            ends: place.ends(),
            opened_by: flow.opened_by(),
            age: flow.opened().elapsed(),
            idle: active.elapsed(),
            is_established: *phase != Phase::Connecting,
            failed: if let Phase::Failed { leg, .. } = phase { Some(*leg) } else { None },
            receive_buffer: flow.receive_buffer,
            size: flow.size(),
            most_pacing: flow.most_pacing,
            interfaces: flow.interfaces(),
            directions: directions.each_ref(),
            rests: held.each_ref().map(|(_, rest)| rest.iter().map(|part| part.len()).sum()),
            pipes: held.each_ref().map(|(pipe, _)| pipe.is_some()),
            sizes: *sizes,
            liveness: *liveness,
            sampled: *sampled,
        };
        let pipes = held.iter().filter_map(|(pipe, _)| *pipe).flatten();
        let descriptors = flow.legs().into_iter().chain(pipes).collect();
        let bytes = held.iter().flat_map(|(_, rest)| rest).flat_map(|part| part.iter().copied()).collect();
        (record, descriptors, bytes)
    }

    /// Takes a connection that another process had, before the worker runs.
    ///
    /// # Errors
    /// [`Error::Wrong`] if something is missing, and [`Error::System`]. Then the worker is of no use.
    pub(in crate::proxy) fn adopt(
        &mut self,
        record: Record,
        descriptors: Vec<OwnedFd>,
        mut bytes: &[u8],
    ) -> Result<(), Error> {
        let wrong = || Error::Wrong("a connection of the proxy before is incomplete".into());
        self.now = Instant::now();
        let settings = self.shared.settings.get();
        let (ends, opened_by) = (record.ends, record.opened_by);
        let mut descriptors = VecDeque::from(descriptors);
        let [accepted, outgoing] = [descriptors.pop_front(), descriptors.pop_front()];
        let (accepted, outgoing) = accepted.zip(outgoing).ok_or_else(wrong)?;
        let mut directions = Vec::new();
        for ((direction, rest), has_pipe) in record.directions.into_iter().zip(record.rests).zip(record.pipes) {
            let (rest, more) = bytes.split_at_checked(rest).ok_or_else(wrong)?;
            bytes = more;
            let pipe = has_pipe.then(|| Some([descriptors.pop_front()?, descriptors.pop_front()?]));
            let pipe = pipe.map(|pipe| pipe.ok_or_else(wrong)).transpose()?;
            directions.push(direction.with(pipe, rest.to_vec(), &self.tools).ok_or_else(wrong)?);
        }
        let directions: [Direction; 2] = directions.try_into().map_err(|_| wrong())?;
        let before = |time: Duration| self.now.checked_sub(time).unwrap_or(self.now);
        let flow = Flow::new(opened_by, ends, [accepted, outgoing], &settings, 0, before(record.age));
        let flow = flow.resumed(record.receive_buffer, record.size, record.most_pacing);
        let flow = Arc::new(flow.between(record.interfaces));
        for (source, direction) in directions.iter().enumerate() {
            flow.passed(source).taken.store(direction.taken(), Relaxed);
            flow.passed(source).held.store(direction.held() as u64, Relaxed);
        }
        let phase = match record.failed {
            Some(leg @ 0..2) => Phase::Failed { leg, acked: 0, since: self.now },
            Some(_) => return Err(wrong()),
            None if record.is_established => Phase::Open,
            None => Phase::Connecting,
        };
        self.opened += 1;
        self.generation = (self.generation + 1) & 0x7fff_ffff;
        let (id, generation) = (self.opened, self.generation);
        let place = self.shared.hall.book.adopt(ends, opened_by, self.shared.number, settings.ipv6_prefix, self.now);
        let key = self.connections.insert(Connection {
            flow: Arc::clone(&flow),
            id,
            place,
            directions,
            sizes: record.sizes,
            liveness: record.liveness,
            phase,
            generation,
            // Events tell again what the legs have to tell, but not that there is something to finish.
            queued: true,
            active: before(record.idle),
            sampled: record.sampled,
        });
        let token = self.token(key);
        self.ready.push_back(token);
        self.shared.registry.insert(id, &flow);
        if record.is_established {
            self.connections[key].place.establish(self.now);
            self.shared.registry.establish(id, &flow);
        }
        if record.failed == Some(0) {
            self.connections[key].place.release();
        } else {
            self.joined.insert(ends, key);
        }
        if record.failed.is_some() {
            self.failed.push(token);
        }
        let added = (0..).zip(flow.legs()).try_for_each(|(leg, socket)| {
            epoll::add(&self.epoll, socket.as_fd(), EventData::new_u64(token | leg), INTEREST)
        });
        added.map_err(Error::system("wait for the connections of the proxy before"))
    }
}
