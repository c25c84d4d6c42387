//! The thread that decides about new connections.
//!
//! A SYN that this machine would forward comes here and waits ([`super::steering`]). The [`Book`](super::book::Book) says whether there is a place for
//! its connection. If not, the SYN passes, as without a proxy. If there is one, a worker connects to the server from the
//! client's address. Once the server has answered, the SYN is given to the listener, whose SYN-ACK the client gets: its handshake
//! is complete only if the server's is. If the server refuses or does not answer, the SYN passes, and the client learns what the
//! server says. Connections to ports for early acceptance are given to the listener at once.
//!
//! The thread renews the proxy's lease as long as connections are welcome and the other threads live.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use netio::Error;
use netio::nflog::{Log, Logged};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use super::book::{Answer, Reason};
use super::hall::{Hall, Message};
use super::listen::{HANGS, Listener, destination};
use super::steering::LEASE;
use super::syn::Syn;
use super::worker::{Shared, is_exhaustion};

/// Interval between renewals of the lease, of which some may be late.
const BEAT: Duration = Duration::from_millis(LEASE / 5);
const SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: (LEASE / 5 * 1_000_000) as i64 };
/// SYNs that have waited here for so long pass: their clients are about to send them again, or have done so. Older ones are obsolete.
const LATE: Duration = Duration::from_millis(700);
const OBSOLETE: Duration = Duration::from_secs(5);
/// SYNs and connections that are taken before other work has its turn.
const TURN: usize = 256;
/// What wakes the thread.
const LOGGED: u64 = 0;
const WAKE: u64 = 1;
const LISTEN: u64 = 2;

/// The thread.
pub(super) struct Admission {
    hall: Arc<Hall>,
    workers: Vec<Arc<Shared>>,
    log: Log,
    epoll: OwnedFd,
    interfaces: [Vec<u32>; 2],
    /// The worker that had the last connection.
    worker: usize,
    beaten: Option<Instant>,
    /// The last value of [`Hall::ticks`], and when it changed.
    ticks: (u64, Instant),
}

impl Admission {
    /// Prepares the thread. `interfaces` are the numbers of those towards servers and towards UEs.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn new(
        hall: Arc<Hall>,
        workers: Vec<Arc<Shared>>,
        log: Log,
        interfaces: [Vec<u32>; 2],
    ) -> Result<Admission, Error> {
        let prepare = || -> Result<OwnedFd, Errno> {
            let epoll = epoll::create(CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, &log, EventData::new_u64(LOGGED), EventFlags::IN)?;
            epoll::add(&epoll, hall.gate.waker(hall.waker), EventData::new_u64(WAKE), EventFlags::IN)?;
            for (listener, n) in hall.listeners.iter().zip(LISTEN..) {
                epoll::add(&epoll, &listener.socket, EventData::new_u64(n), EventFlags::IN)?;
            }
            Ok(epoll)
        };
        let epoll = prepare().map_err(Error::system("prepare a thread for new connections"))?;
        Ok(Admission { hall, workers, log, epoll, interfaces, worker: 0, beaten: None, ticks: (0, Instant::now()) })
    }

    /// Runs until [`Hall::stop`] is set.
    pub(super) fn run(mut self) -> Admission {
        let mut events: Vec<Event> = Vec::with_capacity(8);
        let mut last = Instant::now();
        while !self.hall.stop.load(Relaxed) {
            self.hall.beat.fetch_add(1, Relaxed);
            let now = Instant::now();
            // This process may have stood still.
            let silence = now.duration_since(std::mem::replace(&mut last, now));
            if silence > LATE {
                self.clear(now, silence > OBSOLETE);
            }
            self.renew(now);
            events.clear();
            // Interrupted is as good as woken.
            let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&SLEEP));
            for event in &events {
                match event.data.u64() {
                    LOGGED => self.on_logged(),
                    WAKE => {
                        self.hall.gate.waker(self.hall.waker).clear();
                        let again =
                            std::mem::take(&mut *self.hall.again.lock().unwrap_or_else(PoisonError::into_inner));
                        for syn in again {
                            admit(&self.hall, &self.workers, &mut self.worker, syn, Instant::now());
                        }
                    }
                    n => self.accept((n - LISTEN) as usize),
                }
            }
        }
        self
    }

    /// Renews the lease if connections are welcome and the other threads live, and sees to the listeners.
    fn renew(&mut self, now: Instant) {
        let ticks = self.hall.ticks.load(Relaxed);
        if ticks != self.ticks.0 {
            self.ticks = (ticks, now);
        }
        if self.beaten.is_some_and(|at| now.duration_since(at) < BEAT) {
            return;
        }
        // A watchdog shuts the listeners of a process that does not run.
        let are_open = self.hall.listeners.iter().all(|listener| listener.listens() || listener.listen().is_ok());
        let is_alive = now.duration_since(self.ticks.1) < HANGS && self.workers.iter().any(|worker| !worker.hangs());
        let is_leased = self.hall.gate.is_open() && are_open && is_alive;
        if is_leased {
            self.beaten = Some(now);
            self.hall.injector.renew();
        }
        self.hall.leased.store(is_leased, Relaxed);
    }

    /// Lets the SYNs pass that have come, or forgets them.
    fn clear(&mut self, now: Instant, are_obsolete: bool) {
        let Admission { hall, log, interfaces: [wan, ran], .. } = self;
        let mut act = |logged: Logged| match Syn::read(&logged, wan, ran) {
            _ if are_obsolete => {}
            Ok(syn) => {
                hall.book.remember(syn.ends, now);
                hall.pass(&syn.held, Reason::Closed);
            }
            Err(Some(held)) => hall.pass(&held, Reason::Unreadable),
            Err(None) => {}
        };
        while log.take(&mut act).unwrap_or(true) {}
    }

    fn on_logged(&mut self) {
        let now = Instant::now();
        let Admission { hall, workers, log, interfaces: [wan, ran], worker, .. } = self;
        for _ in 0..TURN {
            let taken = log.take(|logged| match Syn::read(&logged, wan, ran) {
                Ok(syn) => admit(hall, workers, worker, syn, now),
                Err(Some(held)) => hall.pass(&held, Reason::Unreadable),
                Err(None) => drop(hall.admitted.failed.fetch_add(1, Relaxed)),
            });
            match taken {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    hall.admitted.lost.fetch_add(1, Relaxed);
                    if error.raw_os_error() != Some(libc::ENOBUFS) {
                        return;
                    }
                }
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        let Some(Listener { socket }) = self.hall.listeners.get(listener) else { return };
        for _ in 0..TURN {
            match acceptfrom_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((accepted, client)) => {
                    let client: Option<SocketAddr> = client.and_then(|client| client.try_into().ok());
                    let ends = client.zip(destination(accepted.as_fd()));
                    match ends.and_then(|ends| Some((ends, self.hall.book.accept(ends)?))) {
                        Some((ends, worker)) => self.workers[worker].tell(Message::Accepted(ends, accepted)),
                        // Closing resets it.
                        None => drop(self.hall.admitted.not_ours.fetch_add(1, Relaxed)),
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(error) if is_exhaustion(error) => {
                    self.hall.gate.shut_for_exhaustion();
                    return;
                }
                // A watchdog has shut it while this process did not run.
                Err(Errno::INVAL) => return,
                // The client has gone in the meantime, or the like.
                Err(_) => {}
            }
        }
    }
}

/// Decides about a SYN.
fn admit(hall: &Hall, workers: &[Arc<Shared>], worker: &mut usize, syn: Syn, now: Instant) {
    let settings = hall.settings.get();
    // The next one that does not hang.
    let next = (1..=workers.len()).map(|n| (*worker + n) % workers.len()).find(|&n| !workers[n].hangs());
    let Some(next) = next else { return hall.pass(&syn.held, Reason::Closed) };
    if syn.is_known && !hall.book.has(&syn.ends) {
        // It is not split: its hosts know what to make of a SYN.
        hall.book.remember(syn.ends, now);
        return hall.pass(&syn.held, Reason::Again);
    }
    match hall.book.ask(syn.ends, syn.side, next, &settings, now) {
        Answer::Take(mut place) => {
            *worker = next;
            if syn.is_early(&settings.early) {
                place.deliver();
                hall.deliver(&syn);
            }
            workers[next].tell(Message::Connect(syn, place));
        }
        Answer::Pass(reason) => hall.pass(&syn.held, reason),
        Answer::Deliver => hall.deliver(&syn),
        Answer::Check(worker) => workers[worker].tell(Message::Again(syn)),
        Answer::GiveUp(worker) => workers[worker].tell(Message::GiveUp(syn.ends)),
        Answer::Wait => {}
    }
}
