//! A thread that connects to servers and moves the bytes of connections.

mod bequest;
mod openings;

pub(super) use bequest::Record;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use netio::realtime::{preemptions, wake_as_others, wake_promptly};
use netio::{Error, sys};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::sockopt;
use slab::Slab;

use super::book::{Ends, Place};
use super::busy_poll::{BusyPoll, Promptness};
use super::ended::{End, Ended};
use super::flow::{Flow, Registry};
use super::gate::Gate;
use super::hall::{Hall, Mailbox, Message};
use super::liveness::Liveness;
use super::memory::{self, Budget, Sizes};
use super::notice::Notice;
use super::opening::Opening;
use super::relay::{Direction, Fault, NO_LIMIT, Tools, Turn};
use super::samples::{self, Sampled, Samples};
use super::settings::{Current, Settings};

/// Events taken at once: usually all that there are.
const EVENTS: usize = 4096;
/// The time over which [`Shared::turn`] is smoothed.
const SMOOTHING: Duration = Duration::from_millis(5);
/// Longest sleep, so that the watchdog sees the worker alive.
const LONGEST_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const NO_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// Interval between checks of all connections for timeouts.
const SWEEP: Duration = Duration::from_secs(1);
/// Interval between checks of connections in [`Phase::Failed`], and the longest sleep while there are any.
const CHECK: Duration = Duration::from_millis(10);
const CHECK_SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// How long such a connection waits for the next acknowledgement. Some retransmissions fit into it, and a host that has stopped
/// reading does not hold the connection for longer.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that a host has to acknowledge before its connection may hold much for it.
const PROOF: u64 = 64 << 10;
/// The shortest interval between notices of the same kind.
const NOTICES: Duration = Duration::from_secs(10);
/// Unused pipes that a worker keeps.
const SPARE_PIPES: usize = 64;
/// A connection on which a byte has passed within this time may fill its buffers before they can shrink.
const IN_USE: Duration = Duration::from_secs(10);
/// A connection on which no byte passes for this long may be probed.
const SILENT: Duration = Duration::from_secs(1);
/// A closed socket's state in `TCP_INFO`.
const TCP_CLOSE: u8 = 7;

/// The token of the waker, which belongs to no connection, and the bit of tokens of legs whose connection has no client yet.
const WAKE: u64 = u64::MAX;
const OPENING: u64 = 1 << 63;
/// What a worker wants to know of the legs of a connection.
const INTEREST: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::PRI).union(EventFlags::ET);

/// Counters of a worker since its start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) established: AtomicU64,
    pub(super) closed: AtomicU64,
    pub(super) reset: AtomicU64,
    pub(super) connect_failed: AtomicU64,
    pub(super) connect_timeouts: AtomicU64,
    pub(super) idle_timeouts: AtomicU64,
    pub(super) half_closed_timeouts: AtomicU64,
    pub(super) exhausted: AtomicU64,
    pub(super) other_port: AtomicU64,
    pub(super) internal_errors: AtomicU64,
    /// Connections that were reset because all together took too much memory.
    pub(super) starved: AtomicU64,
    /// Bytes of memory that connections took at the last sweep.
    pub(super) memory: AtomicU64,
    pub(super) to_ue_bytes: AtomicU64,
    pub(super) from_ue_bytes: AtomicU64,
    pub(super) samples: Samples,
}

/// What others see of a worker.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) number: usize,
    pub(super) settings: Arc<Current>,
    pub(super) gate: Arc<Gate>,
    pub(super) hall: Arc<Hall>,
    pub(super) mailbox: Mailbox,
    pub(super) registry: Registry,
    pub(super) counters: Counters,
    /// Changes as long as the worker runs.
    pub(super) beat: AtomicU64,
    /// Whether it has not changed for too long.
    pub(super) hangs: AtomicBool,
    /// How long it handles events before it asks for new ones, which wait that long; smoothed, in ns.
    pub(super) turn: AtomicU64,
    /// Ends the worker.
    pub(super) stop: AtomicBool,
}

impl Shared {
    /// Tells the worker something, and wakes it.
    pub(super) fn tell(&self, message: Message) {
        self.mailbox.put(message);
        self.gate.waker(self.number).wake();
    }

    pub(super) fn hangs(&self) -> bool {
        self.hangs.load(Relaxed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The outgoing leg is not established.
    Connecting,
    Open,
    /// Both sides have ended and know it; data and FINs may not be acknowledged.
    Closing,
    /// The leg with this number has failed. What it has received goes to the other host, which has acknowledged `acked` bytes, the
    /// last of them at `since`. What the other host sends stays where it is.
    Failed {
        leg: usize,
        acked: u64,
        since: Instant,
    },
}

struct Connection {
    flow: Arc<Flow>,
    id: u64,
    place: Place,
    /// From the client and to it.
    directions: [Direction; 2],
    /// The receive buffers of the legs.
    sizes: [Sizes; 2],
    liveness: Liveness,
    phase: Phase,
    generation: u32,
    /// Whether it is in the list of those with more to move.
    queued: bool,
    /// When the proxy began to connect to its server, it was accepted, or a byte or the end of one side passed.
    active: Instant,
    sampled: Sampled,
}

/// Returns the smoothed duration of turns in ns. The last one took `turn` and ended `since` after the one before, and counts in
/// proportion: an event is more likely to come in a long turn.
fn smoothed(before: u64, turn: Duration, since: Duration) -> u64 {
    let weight = since.as_secs_f64() / (since + SMOOTHING).as_secs_f64();
    let (before, turn) = (before as f64, turn.as_nanos() as f64);
    (before + (turn - before) * weight) as u64
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    openings: Slab<Opening>,
    /// Their keys.
    by_ends: BTreeMap<Ends, usize>,
    connections: Slab<Connection>,
    /// The keys of those that there are, by their ends, but for those whose client is gone.
    joined: BTreeMap<Ends, usize>,
    tools: Tools,
    ready: VecDeque<u64>,
    /// Tokens of all connections in [`Phase::Failed`]. Some may have ended.
    failed: Vec<u64>,
    /// When those were checked last.
    checked: Instant,
    generation: u32,
    opened: u64,
    /// The last value of [`Hall::forsaken`].
    forsaken: u64,
    now: Instant,
    swept: Instant,
    /// Sweeps so far.
    sweeps: u64,
    /// When descriptors ran out.
    exhausted: Option<Instant>,
    /// What buffers may grow to.
    budget: Budget,
    /// When the operator was last told that connections were reset for that.
    told_starved: Option<Instant>,
    busy_poll: BusyPoll,
}

impl Worker {
    /// Prepares a worker.
    pub(super) fn new(shared: Arc<Shared>) -> Result<Worker, Error> {
        let prepare = || -> Result<OwnedFd, Errno> {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            let waker = shared.gate.waker(shared.number);
            epoll::add(&epoll, waker, EventData::new_u64(WAKE), EventFlags::IN)?;
            Ok(epoll)
        };
        let epoll = prepare().map_err(Error::system("prepare a thread for connections"))?;
        let settings = shared.settings.get();
        let tools = Tools::new(settings.buffer, SPARE_PIPES, settings.pipes_each());
        let now = Instant::now();
        Ok(Worker {
            shared,
            epoll,
            openings: Slab::new(),
            by_ends: BTreeMap::new(),
            connections: Slab::new(),
            joined: BTreeMap::new(),
            tools,
            ready: VecDeque::new(),
            failed: Vec::new(),
            checked: now,
            generation: 0,
            opened: 0,
            forsaken: 0,
            now,
            swept: now,
            sweeps: 0,
            exhausted: None,
            budget: Budget::new(settings.memory_each()),
            told_starved: None,
            busy_poll: BusyPoll::new(now),
        })
    }

    /// Runs until [`Shared::stop`] is set. Returns the worker, which resets its connections when it is dropped.
    pub(super) fn run(mut self) -> Worker {
        // A control, reports and the status may have the same processor, and data does not wait for them.
        wake_promptly();
        let mut events = Vec::with_capacity(EVENTS);
        let mut ended = Instant::now();
        let mut promptness = Promptness::new(ended);
        while !self.shared.stop.load(Relaxed) {
            self.shared.beat.fetch_add(1, Relaxed);
            events.clear();
            self.wait(&mut events);
            self.now = Instant::now();
            match promptness.change(self.now, preemptions) {
                Some(true) => wake_promptly(),
                Some(false) => wake_as_others(),
                None => {}
            }
            for event in &events {
                self.on_event(event);
            }
            for _ in 0..self.ready.len() {
                if let Some(token) = self.ready.pop_front()
                    && let Some(key) = self.find(token)
                {
                    self.connections[key].queued = false;
                    self.guarded(key, Worker::advance);
                }
            }
            if !self.failed.is_empty() && self.now.duration_since(self.checked) >= CHECK {
                self.checked = self.now;
                self.check_failed();
            }
            let forsaken = self.shared.hall.forsaken.load(Relaxed);
            if std::mem::replace(&mut self.forsaken, forsaken) != forsaken {
                self.forsake();
            }
            let since = self.now.duration_since(self.swept);
            if since >= SWEEP {
                self.swept = self.now;
                self.sweep(since);
            }
            let last = std::mem::replace(&mut ended, Instant::now());
            let turn = smoothed(self.shared.turn.load(Relaxed), ended - self.now, ended - last);
            self.shared.turn.store(turn, Relaxed);
        }
        self
    }

    /// Takes the events there are, and waits for one if nothing is to be done.
    fn wait(&mut self, events: &mut Vec<Event>) {
        let epoll = &self.epoll;
        // Interrupted is as good as woken.
        let mut take = |sleep| epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(sleep)).unwrap_or(0);
        if !self.ready.is_empty() {
            take(&NO_SLEEP);
            return;
        }
        let start = Instant::now();
        let busy_poll = self.busy_poll.length(start, preemptions);
        while start.elapsed() < busy_poll {
            if take(&NO_SLEEP) > 0 {
                return;
            }
        }
        take(if self.failed.is_empty() { &LONGEST_SLEEP } else { &CHECK_SLEEP });
        self.busy_poll.on_slept(start.elapsed());
    }

    fn on_event(&mut self, event: &Event) {
        let (token, flags) = (event.data.u64(), event.flags);
        if token == WAKE {
            self.shared.gate.waker(self.shared.number).clear();
            for message in self.shared.mailbox.take() {
                match message {
                    Message::Connect(syn, place) => self.connect(syn, place),
                    Message::Accepted(ends, accepted) => self.join(ends, accepted),
                    Message::Again(syn) => self.check(syn),
                    Message::GiveUp(ends) => self.give_up_waiting(ends),
                }
            }
        } else if token & OPENING != 0 {
            self.on_opening(token, flags);
        } else if let Some(key) = self.find(token) {
            let leg = (token & 1) as usize;
            self.guarded(key, |worker, key| worker.on_leg(key, leg, flags));
        }
    }

    /// Lets a connection be handled; an error of ours ends that connection alone.
    fn guarded(&mut self, key: usize, act: impl FnOnce(&mut Worker, usize)) {
        let panicked: Result<(), Box<dyn Any + Send>> = catch_unwind(AssertUnwindSafe(|| act(self, key)));
        if panicked.is_err() {
            self.shared.counters.internal_errors.fetch_add(1, Relaxed);
            self.end(key, End::Reset);
        }
    }

    fn on_exhausted(&mut self) {
        self.shared.counters.exhausted.fetch_add(1, Relaxed);
        self.exhausted.get_or_insert(self.now);
        self.shared.gate.shut_for_exhaustion();
    }

    fn on_established(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        connection.place.establish(self.now);
        self.shared.registry.establish(connection.id, &connection.flow);
        self.shared.counters.established.fetch_add(1, Relaxed);
    }

    /// A token names a leg of a connection, and no leg of one that had the same place before.
    fn token(&self, key: usize) -> u64 {
        u64::from(self.connections[key].generation) << 32 | (key as u64) << 1
    }

    fn find(&self, token: u64) -> Option<usize> {
        let key = (token & 0xffff_ffff) as usize >> 1;
        let connection = self.connections.get(key)?;
        (u64::from(connection.generation) == token >> 32).then_some(key)
    }

    fn on_leg(&mut self, key: usize, leg: usize, flags: EventFlags) {
        if flags.contains(EventFlags::ERR) {
            return self.fail(key, leg, None);
        }
        let connection = &mut self.connections[key];
        if connection.phase == Phase::Connecting && leg == 1 {
            if !flags.contains(EventFlags::OUT) {
                return;
            }
            // Without an error, room to write means that it is connected.
            if !matches!(sockopt::socket_error(connection.flow.legs()[1]), Ok(Ok(()))) {
                return self.end(key, End::ConnectFailed);
            }
            connection.phase = Phase::Open;
            let began = std::mem::replace(&mut connection.active, self.now);
            self.shared.counters.samples.handshakes.add(self.now.saturating_duration_since(began));
            self.on_established(key);
        }
        let connection = &mut self.connections[key];
        let ending = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
        if ending || flags.intersects(EventFlags::IN | EventFlags::PRI) {
            connection.directions[leg].on_readable(ending);
        }
        if flags.contains(EventFlags::PRI) {
            connection.directions[leg].on_urgent();
        }
        if flags.contains(EventFlags::OUT) {
            connection.directions[1 - leg].on_writable();
        }
        if connection.phase != Phase::Connecting {
            self.advance(key);
        }
    }

    /// Moves bytes in both directions, or in the one from a leg that has failed.
    fn advance(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        let sources = match connection.phase {
            Phase::Connecting => return,
            Phase::Open | Phase::Closing => 0..2,
            Phase::Failed { leg, .. } => leg..leg + 1,
        };
        let flow = Arc::clone(&connection.flow);
        let legs = flow.legs();
        let mut more = false;
        for source in sources {
            let connection = &mut self.connections[key];
            let direction = &mut connection.directions[source];
            let (taken, held, finished) = (direction.taken(), direction.held(), direction.is_finished());
            let to_ue = flow.is_to_ue(source);
            let most = if to_ue { flow.passing.load(Relaxed) } else { NO_LIMIT };
            let turn = direction.advance(legs[source], legs[1 - source], most, &mut self.tools);
            let new = direction.taken() - taken;
            if new > 0 || direction.held() != held || direction.is_finished() != finished {
                connection.active = self.now;
                let counters = &self.shared.counters;
                let total = if to_ue { &counters.to_ue_bytes } else { &counters.from_ue_bytes };
                let passed = flow.passed(source);
                passed.taken.store(direction.taken(), Relaxed);
                passed.held.store(direction.held() as u64, Relaxed);
                total.fetch_add(new, Relaxed);
                self.busy_poll.on_moved(new);
                self.shared.registry.progress(connection.id, &flow);
            }
            self.grow(key, source, new > 0);
            match turn {
                Ok(turn) => more |= turn == Turn::More,
                Err(Fault::Source(error) | Fault::Sink(error) | Fault::Pipe(error)) if is_exhaustion(error) => {
                    self.on_exhausted();
                    return self.end(key, End::Reset);
                }
                Err(Fault::Source(error)) => return self.fail(key, source, Some(error)),
                Err(Fault::Sink(error)) => return self.fail(key, 1 - source, Some(error)),
                Err(Fault::Pipe(_)) => return self.end(key, End::Reset),
            }
        }
        let connection = &mut self.connections[key];
        if matches!(connection.phase, Phase::Failed { .. }) {
            if self.end_if_delivered(key) {
                return;
            }
        } else if connection.directions.iter().all(Direction::is_finished) {
            connection.phase = Phase::Closing;
            if is_closed(&flow) {
                return self.end(key, End::Closed);
            }
        }
        let connection = &mut self.connections[key];
        if more && !connection.queued {
            connection.queued = true;
            let token = self.token(key);
            self.ready.push_back(token);
        }
    }

    /// Enlarges the receive buffer of a leg if its host needs that and there is memory for it. `has_more`: bytes have just been read.
    fn grow(&mut self, key: usize, source: usize, has_more: bool) {
        let Connection { flow, directions, sizes, .. } = &mut self.connections[key];
        let (direction, sizes, legs, whole) =
            (&mut directions[source], &mut sizes[source], flow.legs(), flow.receive_buffer);
        let is_first = !direction.is_proven();
        let is_due = if is_first {
            (has_more && is_read(direction, legs[1 - source]))
                || (direction.is_blocked() && is_larger(legs[source], whole))
        } else {
            has_more && sizes.is_due(direction.taken(), whole)
        };
        if !is_due {
            return;
        }
        let ue = self.shared.settings.get().host(flow.ue().ip());
        let (before, spare) = (sizes.memory(), self.budget.spare(ue));
        let larger = if !is_first {
            sizes.next(direction.taken(), legs[source], whole, spare)
        } else if spare > 0 {
            direction.on_proven();
            Some(sizes.first(direction.taken(), whole))
        } else {
            None
        };
        if let Some(bytes) = larger {
            flow.enlarge(source, bytes);
            self.budget.commit(ue, sizes.memory() - before);
        }
    }

    /// A leg has failed, as a call has `reported`, or none yet. The other leg is reset as well, but only after its host has what came
    /// before: a reset must not overtake data.
    fn fail(&mut self, key: usize, leg: usize, reported: Option<Errno>) {
        let connection = &mut self.connections[key];
        match connection.phase {
            Phase::Connecting => {
                return self.end(key, if leg == 1 { End::ConnectFailed } else { End::Reset });
            }
            Phase::Failed { leg: failed, .. } if failed == leg => return,
            // Nobody is left to take anything.
            Phase::Failed { .. } => return self.end(key, End::Reset),
            Phase::Open | Phase::Closing => {}
        }
        connection.phase = Phase::Failed { leg, acked: 0, since: self.now };
        if leg == 0 {
            connection.place.release();
            self.joined.remove(&connection.place.ends());
        }
        connection.directions[leg].on_source_failed(reported);
        connection.directions[1 - leg].discard();
        connection.flow.passed(1 - leg).held.store(0, Relaxed);
        let token = self.token(key);
        self.advance(key);
        if self.find(token).is_some() {
            self.failed.push(token);
        }
    }

    /// Ends connections in [`Phase::Failed`] whose time has come.
    fn check_failed(&mut self) {
        let mut failed = std::mem::take(&mut self.failed);
        failed.retain(|&token| self.find(token).is_some_and(|key| !self.end_if_delivered(key)));
        self.failed = failed;
    }

    /// Ends a connection in [`Phase::Failed`] if the other host has acknowledged everything, or has acknowledged nothing for too
    /// long. Returns whether it has ended.
    fn end_if_delivered(&mut self, key: usize) -> bool {
        let Connection { flow, directions, phase, .. } = &mut self.connections[key];
        let Phase::Failed { leg, acked, since } = phase else { return false };
        let is_over = match sys::tcp_info(flow.legs()[1 - *leg]) {
            Ok(info) => {
                if info.bytes_acked > *acked {
                    (*acked, *since) = (info.bytes_acked, self.now);
                }
                let is_acked = info.unacked == 0 && info.notsent_bytes == 0;
                (is_acked && directions[*leg].is_drained()) || self.now.saturating_duration_since(*since) >= ACK_TIMEOUT
            }
            Err(_) => true,
        };
        if is_over {
            self.end(key, End::Reset);
        }
        is_over
    }

    /// Ends a connection. Legs that are not closed are reset, because they do not linger.
    fn end(&mut self, key: usize, end: End) {
        let Some(connection) = self.connections.try_remove(key) else { return };
        let ends = connection.place.ends();
        if self.joined.get(&ends) == Some(&key) {
            self.joined.remove(&ends);
        }
        self.shared.registry.remove(connection.id);
        let counters = &self.shared.counters;
        let seen = connection.flow.observe().ok();
        counters.samples.end(seen.as_ref(), connection.sampled);
        self.shared.hall.records.put(|| Ended::new(&connection.flow, end, seen.as_ref()));
        let counter = match end {
            End::Closed => &counters.closed,
            End::Reset => &counters.reset,
            End::ConnectFailed => &counters.connect_failed,
            End::ConnectTimeout => &counters.connect_timeouts,
            End::Idle => &counters.idle_timeouts,
            End::HalfClosed => &counters.half_closed_timeouts,
            End::Starved => &counters.starved,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Keeps the memory of all connections below `most`; `taken` is what each takes, with its UE and its key. Returns those to end for that:
    /// of the UE that has most, the one that has most, and so on. What a socket has received can be given back in no other way.
    fn save(&mut self, taken: Vec<(IpAddr, u64, usize)>, most: u64) -> Vec<usize> {
        let memory = taken.iter().map(|(_, bytes, _)| bytes).sum();
        self.shared.counters.memory.store(memory, Relaxed);
        self.budget.note_taken(memory);
        let ended = memory::largest(taken, memory.saturating_sub(most));
        if !ended.is_empty() && self.told_starved.is_none_or(|then| self.now.saturating_duration_since(then) >= NOTICES)
        {
            self.told_starved = Some(self.now);
            let count = ended.len();
            self.shared.registry.notify([Notice::Failed(
                format!(
                    "connections take all the memory that --memory permits: {count} of the UEs that take most were reset, the \
                     largest first"
                )
                .into(),
            )]);
        }
        ended
    }

    /// Ends what took too long. The last time was `since` ago.
    fn sweep(&mut self, since: Duration) {
        let settings = self.shared.settings.get();
        let Settings { connect_timeout, idle_timeout, half_closed_timeout, .. } = *settings;
        self.tools.set_most(settings.pipes_each());
        let (mut over, mut all) = (Vec::new(), Vec::new());
        let (sweep, count) = (self.sweeps, self.connections.len());
        self.sweeps += 1;
        self.budget.begin(settings.memory_each());
        for (key, connection) in &mut self.connections {
            if samples::is_due(connection.id, sweep, count) {
                self.shared.counters.samples.take(&connection.flow, &mut connection.sampled);
            }
            let idle = self.now.saturating_duration_since(connection.active);
            let taken = memory::Taken::of(connection.flow.legs(), &connection.directions);
            if connection.phase == Phase::Open && idle >= SILENT {
                let legs = connection.flow.legs();
                connection.liveness.look(legs, settings.dead_peer_time, settings.keepalives());
            }
            let half_closed = connection.directions.iter().any(Direction::is_finished);
            let end = match connection.phase {
                Phase::Connecting | Phase::Open if taken.is_abusive(connection.flow.receive_buffer) => Some(End::Reset),
                Phase::Connecting => (idle >= connect_timeout).then_some(End::ConnectTimeout),
                Phase::Closing if is_closed(&connection.flow) => Some(End::Closed),
                Phase::Open if !half_closed => (idle >= idle_timeout).then_some(End::Idle),
                Phase::Open | Phase::Closing => (idle >= half_closed_timeout).then_some(End::HalfClosed),
                Phase::Failed { .. } => None,
            };
            if end.is_none() {
                let ue = settings.host(connection.flow.ue().ip());
                self.budget.commit(ue, taken.committed(&connection.sizes, idle < IN_USE));
                all.push((ue, taken.all(), key));
            }
            over.extend(end.map(|end| (key, end)));
        }
        over.extend(self.save(all, settings.memory_each()).into_iter().map(|key| (key, End::Starved)));
        for (key, end) in over {
            self.end(key, end);
        }
        if self.exhausted.is_some_and(|since| self.now.saturating_duration_since(since) >= SWEEP) {
            self.exhausted = None;
            self.shared.gate.retry();
        }
        self.sweep_openings(connect_timeout, since);
    }
}

/// Whether both legs have acknowledged everything and are over, but for a kernel's TIME-WAIT.
fn is_closed(flow: &Flow) -> bool {
    flow.legs().iter().all(|leg| sys::tcp_info(*leg).is_ok_and(|info| info.state == TCP_CLOSE))
}

/// Whether the host of the sink has shown that it reads.
fn is_read(direction: &Direction, sink: BorrowedFd) -> bool {
    direction.taken() >= PROOF && sys::tcp_info(sink).is_ok_and(|info| info.bytes_acked >= PROOF)
}

/// Whether the kernel has enlarged the receive buffer of a leg beyond these bytes and its overhead: many short packets take much
/// memory.
fn is_larger(leg: BorrowedFd, bytes: usize) -> bool {
    sockopt::socket_recv_buffer_size(leg).is_ok_and(|found| found > 2 * bytes)
}

/// Whether descriptors or memory have run out.
pub(super) fn is_exhaustion(error: Errno) -> bool {
    matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_turn_counts_at_once_and_is_forgotten_within_milliseconds() {
        const MS: u64 = 1_000_000;
        let long = smoothed(0, Duration::from_millis(95), Duration::from_millis(95));
        assert_eq!(long / MS, 90);
        // A thousand turns of 20 us.
        let after =
            (0..1000).fold(long, |before, _| smoothed(before, Duration::from_micros(20), Duration::from_micros(20)));
        assert!(after < 2 * MS, "{after} ns");
        assert_eq!(smoothed(long, Duration::ZERO, Duration::ZERO), long);
    }
}
