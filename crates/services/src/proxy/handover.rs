//! How a proxy gives its connections to another process, such as a new version of itself.
//!
//! The *heir* asks the running proxy, through a socket whose name vanishes with that one, and both go through these steps:
//!
//! 1. The proxy *offers*: it tells what it has, and gives the listeners and the reservations. The heir prepares everything: its own
//!    table beside that of the proxy, a guardian, threads. Whatever fails until then, the proxy goes on.
//! 2. The heir is *ready*. New connections bypass the proxy from now on, and handshakes under way may take a moment.
//! 3. The workers stop. The proxy sends its connections: both sockets, what is held between them, and what is to be remembered.
//! 4. The heir has taken them, and the proxy says that they are its own. Only now does the heir move bytes, and the proxy never
//!    again. Should either end before, the proxy's workers go on.
//!
//! Meanwhile hosts wait as for a slow path: the sockets are open all the time, and so is the way to them.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use netio::Error;
use netio::reservation::Reservation;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, shutdown, socket_with,
};
use serde::{Deserialize, Serialize};

use super::book::Ends;
use super::listen::Listener;
use super::names::{NAMES, is_one_of_us, name};
use super::passing;
use super::relay::Direction;
use super::settings::Settings;
use super::steering::{LEASE, Slot};
use super::sysctl::Setting;
use super::worker::{Record, Worker};

/// The version of what is said. Another one is refused, and the proxy goes on.
const VERSION: u32 = 1;
/// The longest message: a connection that holds 32 KiB in each direction, with room to spare.
const LONGEST: usize = 128 << 10;
/// Time for the answer of the other process, while workers stand still.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A pause before another attempt.
const MOMENT: Duration = Duration::from_millis(1);
/// Processes that may wait to be heard.
const WAITING: i32 = 128;
/// Time for an heir to get ready.
const PREPARATION: Duration = Duration::from_secs(30);
/// Time for handshakes under way.
const HANDSHAKES: Duration = Duration::from_secs(3);
/// See [`LEASE`].
const LEASED: Duration = Duration::from_millis(LEASE);
/// Connections that have passed, in one message.
const PASSED: usize = 500;

/// What one process tells the other.
#[derive(Debug, Serialize, Deserialize)]
enum Message<D> {
    Offer(Offer),
    Ready,
    /// Connections that have passed, and how long ago.
    Passed(Vec<(Ends, Duration)>),
    Connection(Box<Record<D>>),
    /// There are no more than so many.
    All(u64),
    Taken,
    Yours,
    /// The service manager knows the heir.
    Released,
}

/// What the running proxy has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Offer {
    version: u32,
    slot: Slot,
    interfaces: Vec<(String, u32)>,
    port: u16,
    /// Settings of the kernel that it has changed.
    settings: Vec<Setting>,
    /// How many of the descriptors beside it are listeners; the others are reservations.
    listeners: usize,
}

impl Offer {
    pub(super) fn new(
        slot: Slot,
        interfaces: &[(String, u32)],
        port: u16,
        settings: &[Setting],
        listeners: usize,
    ) -> Offer {
        Offer { version: VERSION, slot, interfaces: interfaces.to_vec(), port, settings: settings.to_vec(), listeners }
    }
}

/// A message, the descriptors beside it, and the bytes after it.
type Heard = (Message<Direction>, Vec<OwnedFd>, Vec<u8>);

/// A connection to the other process.
#[derive(Debug)]
struct Line(OwnedFd);

impl Line {
    fn say(
        &self,
        message: &Message<&Direction>,
        descriptors: &[BorrowedFd],
        bytes: &[u8],
        timeout: Duration,
    ) -> Result<(), Error> {
        let said = serde_json::to_vec(message).expect("strings and numbers can be written as JSON");
        let length = u32::try_from(said.len()).expect("it is short").to_le_bytes();
        let parts = [IoSlice::new(&length), IoSlice::new(&said), IoSlice::new(bytes)];
        let until = Instant::now() + timeout;
        loop {
            match passing::send(self.0.as_fd(), &parts, descriptors, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, until.saturating_duration_since(Instant::now()))?,
                // Descriptors on their way are limited, too.
                Err(Errno::TOOMANYREFS) if Instant::now() < until => std::thread::sleep(MOMENT),
                Err(error) => return Err(failed("speak to the other process")(error)),
            }
        }
    }

    fn hear(&self, timeout: Duration) -> Result<Heard, Error> {
        self.wait(PollFlags::IN, timeout)?;
        let mut buffer = vec![0; LONGEST];
        let received = passing::receive(self.0.as_fd(), &mut buffer, RecvFlags::DONTWAIT);
        let (received, descriptors) = received.map_err(failed("hear the other process"))?;
        if received == 0 {
            return Err(Error::Missing("the other process has ended".into()));
        }
        buffer.truncate(received);
        let wrong = || Error::Wrong("the other process says what this version does not understand".into());
        let (length, rest) = buffer.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (said, bytes) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(wrong)?;
        Ok((serde_json::from_slice(said).map_err(|_| wrong())?, descriptors, bytes.to_vec()))
    }

    fn wait(&self, what: PollFlags, timeout: Duration) -> Result<(), Error> {
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        let mut polled = [PollFd::from_borrowed_fd(self.0.as_fd(), what)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => Err(Error::Missing("the other process does not answer".into())),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(failed("wait for the other process")(error)),
        }
    }

    /// Whether the other process has said something, or has ended.
    fn has_news(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }
}

fn failed(what: &str) -> impl Fn(Errno) -> Error + use<> {
    let what = what.to_owned();
    move |error| Error::System { what: what.clone(), source: error.into() }
}

fn unexpected() -> Error {
    Error::Wrong("the other process does not keep to the order of a hand-over".into())
}

/// How far an heir is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Offered,
    Ready,
}

/// A process that wants to go on with the connections.
#[derive(Debug)]
struct Heir {
    line: Line,
    stage: Stage,
    /// When it came to that stage.
    since: Instant,
}

impl Heir {
    fn look(&mut self, now: Instant, half_open: usize) -> Result<Due, Error> {
        let passed = now.duration_since(self.since);
        match self.stage {
            Stage::Offered if self.line.has_news() => match self.line.hear(ANSWER_TIMEOUT)? {
                (Message::Ready, ..) => {
                    (self.stage, self.since) = (Stage::Ready, now);
                    Ok(Due::Ready)
                }
                _ => Err(unexpected()),
            },
            Stage::Offered if passed >= PREPARATION => Err(Error::Missing("it does not get ready".into())),
            Stage::Ready if self.line.has_news() => {
                Err(self.line.hear(ANSWER_TIMEOUT).map_or_else(|why| why, |_| unexpected()))
            }
            // SYNs are held until the lease is over.
            Stage::Ready if passed >= LEASED && (half_open == 0 || passed >= HANDSHAKES) => Ok(Due::HandOver),
            _ => Ok(Due::Nothing),
        }
    }
}

/// Waits for an heir, in a running proxy.
#[derive(Debug)]
pub(super) struct Testament {
    socket: OwnedFd,
    heir: Option<Heir>,
}

/// What is to be done about an heir.
#[derive(Debug)]
pub(super) enum Due {
    Nothing,
    /// It is ready. New connections have to pass from now on.
    Ready,
    /// It is ready, and handshakes had their time.
    HandOver,
    /// It has given up, or has to.
    GaveUp(Error),
}

impl Testament {
    /// Opens a socket for heirs of the proxy whose interface towards the RAN has the number `ran`. `None` if others have all its names.
    pub(super) fn open(ran: u32) -> Result<Option<Testament>, Error> {
        let open = || -> Result<Option<OwnedFd>, Errno> {
            let socket = new_socket()?;
            for n in 0..NAMES {
                match bind(&socket, &address(ran, n)?) {
                    Err(Errno::ADDRINUSE) => {}
                    Err(error) => return Err(error),
                    Ok(()) => {
                        listen(&socket, WAITING)?;
                        return Ok(Some(socket));
                    }
                }
            }
            Ok(None)
        };
        let socket = open().map_err(failed("open a socket for a process that takes over"))?;
        Ok(socket.map(|socket| Testament { socket, heir: None }))
    }

    /// Looks after an heir. `offer` makes an offer, with what goes beside it.
    pub(super) fn look<'a>(
        &mut self,
        now: Instant,
        half_open: usize,
        offer: impl FnOnce() -> (Offer, Vec<BorrowedFd<'a>>),
    ) -> Due {
        let Some(mut heir) = self.heir.take() else {
            self.heir = self.greet(now, offer);
            return Due::Nothing;
        };
        match heir.look(now, half_open) {
            Ok(due) => {
                self.heir = Some(heir);
                due
            }
            Err(error) => Due::GaveUp(error),
        }
    }

    fn greet<'a>(&self, now: Instant, offer: impl FnOnce() -> (Offer, Vec<BorrowedFd<'a>>)) -> Option<Heir> {
        let line = loop {
            // Strangers may not keep others from coming.
            let line = Line(accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()?);
            if is_one_of_us(&line.0) {
                break line;
            }
        };
        let (offer, beside) = offer();
        line.say(&Message::Offer(offer), &beside, &[], Duration::ZERO).ok()?;
        Some(Heir { line, stage: Stage::Offered, since: now })
    }

    /// Gives connections to the heir, which is ready. The workers have stopped. Returns how many there were, and what ends when this
    /// process does, for the heir to wait for.
    ///
    /// # Errors
    /// The heir has not taken them: the workers have to go on.
    pub(super) fn hand_over(
        &mut self,
        passed: &[(Ends, Instant)],
        workers: &[Worker],
    ) -> Result<(u64, OwnedFd), Error> {
        let Heir { line, .. } = self.heir.take().ok_or_else(unexpected)?;
        // Hosts wait for all of it.
        let until = Instant::now() + ANSWER_TIMEOUT;
        let left = || until.saturating_duration_since(Instant::now());
        for some in passed.chunks(PASSED) {
            let some = some.iter().map(|(ends, at)| (*ends, at.elapsed())).collect();
            line.say(&Message::Passed(some), &[], &[], left())?;
        }
        let mut count = 0;
        for (record, descriptors, bytes) in workers.iter().flat_map(Worker::bequests) {
            line.say(&Message::Connection(Box::new(record)), &descriptors, &bytes, left())?;
            count += 1;
        }
        line.say(&Message::All(count), &[], &[], left())?;
        let (Message::Taken, ..) = line.hear(left())? else { return Err(unexpected()) };
        line.say(&Message::Yours, &[], &[], left())?;
        // A service manager ends the heir with this process, unless it has been told before. If this fails, so be it.
        let _ = line.hear(ANSWER_TIMEOUT);
        Ok((count, line.0))
    }
}

/// What a running proxy leaves to this process.
#[derive(Debug)]
pub struct Inheritance {
    line: Line,
    offer: Offer,
    listeners: Vec<OwnedFd>,
    reservations: Vec<OwnedFd>,
}

impl Inheritance {
    /// Asks the proxy of this network namespace whose interface towards the RAN is `ran`. `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Missing`] if it does not answer, and [`Error::Wrong`] if it is a version that cannot hand over to this one.
    pub fn ask(ran: &str) -> Result<Option<Inheritance>, Error> {
        let Ok(number) = nix::net::if_::if_nametoindex(ran) else { return Ok(None) };
        let call = |n| -> Option<Line> {
            let line = Line(new_socket().ok()?);
            let start = Instant::now();
            // Its queue may be full of strangers for a moment.
            while let Err(error) = connect(&line.0, &address(number, n).ok()?) {
                if error != Errno::AGAIN || start.elapsed() >= ANSWER_TIMEOUT {
                    return None;
                }
                std::thread::sleep(MOMENT);
            }
            is_one_of_us(&line.0).then_some(line)
        };
        let Some(line) = (0..NAMES).find_map(call) else { return Ok(None) };
        let (message, mut listeners, _) = line.hear(ANSWER_TIMEOUT)?;
        let Message::Offer(offer) = message else { return Err(unexpected()) };
        if offer.version != VERSION || offer.listeners == 0 || offer.listeners > listeners.len() {
            return Err(Error::Wrong(
                "the running proxy is of a version that cannot hand over its connections to this one: stop it first"
                    .into(),
            ));
        }
        let reservations = listeners.split_off(offer.listeners);
        Ok(Some(Inheritance { line, offer, listeners, reservations }))
    }

    /// Takes listeners and reservations for a proxy with these settings.
    ///
    /// # Errors
    /// [`Error::Wrong`] if it cannot go on with them.
    pub(super) fn possessions(
        &mut self,
        settings: &Settings,
        interfaces: &[(String, u32)],
    ) -> Result<(Vec<Listener>, Vec<Reservation>), Error> {
        let Offer { interfaces: theirs, port, .. } = &self.offer;
        if theirs != interfaces {
            let names: Vec<&str> = theirs.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            return Err(Error::Wrong(format!("the running proxy has the interfaces {names}: stop it to have others")));
        }
        if *port != settings.port {
            return Err(Error::Wrong(format!("the running proxy listens at port {port}: stop it to have another one")));
        }
        let listeners = self.listeners.drain(..).map(|socket| Listener { socket }).collect();
        Ok((listeners, self.reservations.drain(..).map(Reservation::inherited).collect()))
    }

    /// Which of two tables the running proxy has.
    pub(super) fn slot(&self) -> Slot {
        self.offer.slot
    }

    /// The settings of the kernel that it has changed.
    pub(super) fn settings(&self) -> &[Setting] {
        &self.offer.settings
    }

    /// Takes the connections, which are this process's own after [`Inheritance::confirm`]. `note` takes those that have passed, and `adopt` the others.
    ///
    /// # Errors
    /// The proxy goes on with them, and this process must not touch them.
    pub(super) fn take(
        &self,
        mut note: impl FnMut(Ends, Duration),
        mut adopt: impl FnMut(Record, Vec<OwnedFd>, &[u8]) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        self.line.say(&Message::Ready, &[], &[], ANSWER_TIMEOUT)?;
        let (mut count, mut timeout) = (0, HANDSHAKES + 2 * ANSWER_TIMEOUT);
        loop {
            let (message, descriptors, bytes) = self.line.hear(timeout)?;
            timeout = ANSWER_TIMEOUT;
            match message {
                Message::Passed(some) => some.into_iter().for_each(|(ends, ago)| note(ends, ago)),
                Message::Connection(record) => {
                    adopt(*record, descriptors, &bytes)?;
                    count += 1;
                }
                Message::All(all) if all == count => break,
                _ => return Err(unexpected()),
            }
        }
        Ok(count)
    }

    /// Says that this process has everything.
    ///
    /// # Errors
    /// The proxy goes on, and this process must not touch its connections.
    pub(super) fn confirm(&self) -> Result<(), Error> {
        self.line.say(&Message::Taken, &[], &[], ANSWER_TIMEOUT)?;
        let answer = self.line.hear(2 * ANSWER_TIMEOUT).or_else(|_| {
            // From now on the proxy cannot say it any more, but it may have.
            shutdown(&self.line.0, Shutdown::Read).map_err(failed("end a connection"))?;
            self.line.hear(Duration::ZERO)
        });
        match answer? {
            (Message::Yours, ..) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Lets the process that has handed over end.
    pub fn release(&self) {
        // It may have ended already.
        let _ = self.line.say(&Message::Released, &[], &[], ANSWER_TIMEOUT);
    }

    /// Whether the process that has handed over is gone, with everything that it had.
    pub fn is_complete(&self) -> bool {
        self.line.has_news()
    }
}

fn new_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

fn address(ran: u32, n: u32) -> Result<SocketAddrUnix, Errno> {
    SocketAddrUnix::new_abstract_name(name("heir", ran, n).as_bytes())
}
