//! Traffic shaping ahead of a bufferbloated modem: the queue forms in FQ-CoDel, where small flows pass large ones, and not
//! in the modem, where all packets wait behind each other.
//!
//! Path of a packet: an eBPF program diverts what leaves by the modem's interface to [`Backlog::beside`]. [`Backlog::serve`]
//! reads it there, queues it in FQ-CoDel, and sends it by the modem's interface when a [`DrainModel`] says that the modem has
//! room. Incoming packets are not touched: a socket sees copies of them, for the answers in them.
//!
//! The interface itself may also refuse packets: the driver and its queue take what a socket may have unsent
//! (`net.core.wmem_default`). That is all that a queue shows from outside; a queue within the modem shows nothing.

mod input;
mod modem;
mod reflectors;

pub use input::Input;

use std::io::ErrorKind;
use std::net::IpAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use aqm::{DropReason, Ecn, FqCodel, Packet, Queue, fq_codel};
use backlog::{Answer, DrainModel, Estimate, Probe};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::time::TimeSpec;
use units::{Rate, Span, Time};
use wire::ip::mark_ce;
use wire::{Flags, Headers, Transport};

use modem::Modem;
use netio::Error;
use netio::attach;
use netio::realtime::Clock;
use reflectors::Reflectors;

/// Packets taken in a row before other work has its turn.
const BATCH: usize = 64;
/// Interval between checks that the interface still exists.
const LOOK: Span = Span::from_millis(500);
/// Time that the interface has at the end to take the packets that still wait.
const FAREWELL: Duration = Duration::from_secs(1);

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Packets sent to the modem, and their bytes on the IP layer.
    pub packets: u64,
    /// See `packets`.
    pub bytes: u64,
    /// Total time that they waited in the queue, in ns.
    pub waited_ns: u64,
    /// Packets that the queue dropped by its control law.
    pub dropped: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets that it marked instead of dropping them.
    pub marked: u64,
    /// Packets that the interface did not take.
    pub refused: u64,
    /// Outgoing packets lost before they were read, because they came faster than they were taken.
    pub missed: u64,
    /// Answers received.
    pub answers: u64,
    /// Incoming frames lost before they were read; they may have held answers.
    pub unheard: u64,
}

/// A modem whose traffic is shaped.
#[derive(Debug)]
pub struct Backlog {
    modem: Modem,
    drain: Box<dyn DrainModel>,
    reflectors: Option<Reflectors>,
    queue: FqCodel<Waiting>,
    /// Left the queue, and waits for the interface.
    stuck: Option<Waiting>,
    clock: Clock,
    buffer: Vec<u8>,
    counters: Counters,
    looked: Time,
}

/// A packet that waits.
#[derive(Clone, Debug)]
struct Waiting {
    frame: Box<[u8]>,
    /// Where in the frame the packet is.
    ip: Range<usize>,
    flow: u64,
    probe: Option<Probe>,
    priority: u8,
    ecn: Ecn,
    since: Time,
}

impl Packet for Waiting {
    fn len(&self) -> u32 {
        self.ip.len() as u32
    }
    fn flow(&self) -> u64 {
        self.flow
    }
    fn priority(&self) -> u8 {
        self.priority
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        mark_ce(&mut self.frame[self.ip.clone()]);
        self.ecn = Ecn::Ce;
    }
    fn enqueued(&self) -> Time {
        self.since
    }
    fn set_enqueued(&mut self, now: Time) {
        self.since = now;
    }
}

impl Backlog {
    /// Opens the interface `modem` of this thread's network namespace. Nothing is diverted yet. Packets are sent with the
    /// `mark` (`SO_MARK`) by which a diversion lets them pass.
    pub fn open(modem: &str, drain: Box<dyn DrainModel>, mark: u32) -> Result<Backlog, Error> {
        // As Linux does: nobody knows which flows share a queue.
        let random = crate::secret::random().map_err(|why| Error::Missing(format!("no random numbers: {why}")))?;
        let salt = u64::from_le_bytes(*random.first_chunk().expect("it has 16 bytes"));
        Ok(Backlog {
            modem: Modem::open(modem, mark)?,
            drain,
            reflectors: None,
            queue: FqCodel::new(fq_codel::Config { salt, ..fq_codel::Config::default() }),
            stuck: None,
            clock: Clock::start(),
            buffer: vec![0; attach::LONGEST],
            counters: Counters::default(),
            looked: Time::ZERO,
        })
    }

    /// Pings one of these hosts each `interval`, in turns, and reports the replies to the drain model. The pings take the
    /// namespace's route, which need not lead through the modem's interface.
    pub fn ping(&mut self, reflectors: &[IpAddr], interval: Span) -> Result<(), Error> {
        self.reflectors = Some(Reflectors::open(reflectors, interval)?);
        Ok(())
    }

    /// Tells the drain model that the modem's rate has changed.
    pub fn set_rate(&mut self, rate: Rate) {
        self.drain.set_rate(rate, self.clock.now());
    }

    /// The number of the modem's interface.
    pub fn interface(&self) -> u32 {
        self.modem.index()
    }

    /// The number of the interface to divert its packets to. It is removed when this is dropped.
    pub fn beside(&self) -> u32 {
        self.modem.beside()
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        Counters { marked: self.queue.marks(), ..self.counters }
    }

    /// Returns the queue's backlog.
    pub fn waiting(&self) -> aqm::Backlog {
        self.queue.backlog()
    }

    /// Returns the estimate of the modem.
    pub fn estimate(&self) -> Estimate {
        self.drain.estimate(self.clock.now())
    }

    /// Shapes traffic for `time`.
    ///
    /// # Errors
    /// [`Error::Missing`] if the interface is gone, and [`Error::System`].
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        let end = self.clock.now() + Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4));
        loop {
            let took = self.take()? == BATCH;
            let heard = self.hear() == BATCH;
            self.reflect();
            self.hand_down();
            let now = self.clock.now();
            if now >= end {
                return Ok(());
            }
            if now.saturating_since(self.looked) >= LOOK {
                self.looked = now;
                self.count_missed();
                if !self.modem.exists() {
                    return Err(Error::Missing(format!("`{}` is gone", self.modem.name())));
                }
            }
            let waits = self.stuck.is_some() || self.queue.backlog().packets > 0;
            let timeout = self.drain.poll_timeout(now).filter(|_| waits && self.stuck.is_none());
            let ping = self.reflectors.as_ref().map(Reflectors::poll_timeout);
            let until = timeout.into_iter().chain(ping).fold(end, Time::min);
            let until = if took || heard { now } else { until };
            self.sleep(until.saturating_since(now));
        }
    }

    /// Updates the counters of packets lost before they were read.
    fn count_missed(&mut self) {
        self.counters.missed = self.modem.missed().unwrap_or(self.counters.missed);
        self.counters.unheard += self.modem.unheard();
    }

    fn sleep(&self, span: Span) {
        let [packets, answers, room] = self.modem.ends();
        let room_is = if self.stuck.is_some() { PollFlags::POLLOUT } else { PollFlags::empty() };
        // Without reflectors, one end is there twice.
        let replies = self.reflectors.as_ref().map_or(packets, Reflectors::end);
        let mut fds = [
            PollFd::new(packets, PollFlags::POLLIN),
            PollFd::new(answers, PollFlags::POLLIN),
            PollFd::new(room, room_is),
            PollFd::new(replies, PollFlags::POLLIN),
        ];
        // Interrupted is as good as woken.
        let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(Duration::from_nanos(span.as_nanos()))), None);
    }

    /// Takes outgoing packets into the queue. Returns their number.
    fn take(&mut self) -> Result<usize, Error> {
        for count in 0..BATCH {
            let taken = self.modem.take(&mut self.buffer);
            let Some(frame) = taken.map_err(Error::system("read outgoing packets"))? else { return Ok(count) };
            let header = self.modem.packet(frame).and_then(|ip| Some((Headers::parse(&frame[ip.clone()]).ok()?, ip)));
            let Some((header, ip)) = header else {
                // Neighbours and the like do not wait.
                self.counters.refused += u64::from(self.modem.send(frame).is_err());
                continue;
            };
            let waiting = Waiting {
                frame: frame.into(),
                ip,
                flow: header.key(),
                probe: probe(&header),
                priority: header.priority(),
                ecn: Ecn::from_bits(header.tos),
                since: Time::ZERO,
            };
            let Counters { dropped, overflowed, .. } = &mut self.counters;
            self.queue.enqueue(waiting, self.clock.now(), &mut |_, reason| match reason {
                DropReason::Control => *dropped += 1,
                DropReason::Overflow | DropReason::Loss => *overflowed += 1,
            });
        }
        Ok(BATCH)
    }

    /// Reads incoming packets for answers. Returns their number.
    fn hear(&mut self) -> usize {
        for count in 0..BATCH {
            let Some(frame) = self.modem.hear(&mut self.buffer) else { return count };
            let ip = self.modem.packet(frame);
            if let Some(answer) = ip.and_then(|ip| Headers::parse(&frame[ip]).ok()).and_then(|header| answer(&header)) {
                self.counters.answers += 1;
                self.drain.answered(answer, self.clock.now());
            }
        }
        BATCH
    }

    /// Sends the ping that is due, and reads the replies that have come.
    fn reflect(&mut self) {
        let Some(reflectors) = &mut self.reflectors else { return };
        reflectors.send(self.clock.now());
        while let now = self.clock.now()
            && let Some((reflector, rtt)) = reflectors.receive(now)
        {
            self.drain.reflected(reflector, rtt, now);
        }
    }

    /// Sends the modem what it has room for.
    fn hand_down(&mut self) {
        loop {
            if let Some(waiting) = self.stuck.take()
                && !self.send(waiting)
            {
                return;
            }
            let now = self.clock.now();
            if !self.drain.has_room(now) {
                return;
            }
            let dropped = &mut self.counters.dropped;
            let Some(waiting) = self.queue.dequeue(now, &mut |_, _| *dropped += 1) else {
                return self.drain.on_idle();
            };
            self.counters.packets += 1;
            self.counters.bytes += waiting.ip.len() as u64;
            self.counters.waited_ns += now.saturating_since(waiting.since).as_nanos();
            self.drain.handed(waiting.len(), waiting.probe, now);
            self.stuck = Some(waiting);
        }
    }

    /// Sends a frame. Returns whether it was sent or lost; otherwise it is kept until the interface has room.
    fn send(&mut self, waiting: Waiting) -> bool {
        match self.modem.send(&waiting.frame) {
            Ok(()) => true,
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                self.stuck = Some(waiting);
                false
            }
            Err(_) => {
                self.counters.refused += 1;
                true
            }
        }
    }

    /// Sends all waiting packets, once nothing is diverted any more.
    pub fn finish(mut self) -> Counters {
        let end = Instant::now() + FAREWELL;
        while Instant::now() < end && self.take().is_ok_and(|count| count == BATCH) {}
        self.count_missed();
        while Instant::now() < end {
            let waiting = self.stuck.take().or_else(|| self.queue.dequeue(self.clock.now(), &mut |_, _| {}));
            let Some(waiting) = waiting else { break };
            if !self.send(waiting) {
                let [_, _, room] = self.modem.ends();
                let _ = poll(&mut [PollFd::new(room, PollFlags::POLLOUT)], PollTimeout::from(10_u8));
            }
        }
        self.counters()
    }
}

/// What the other side will answer in a packet.
fn probe(header: &Headers) -> Option<Probe> {
    let conversation = header.key();
    match &header.transport {
        Transport::Tcp(tcp) if !tcp.flags.has(Flags::RST) => {
            let len = header.payload_len + u32::from(tcp.flags.has(Flags::SYN)) + u32::from(tcp.flags.has(Flags::FIN));
            (len > 0).then(|| Probe { conversation, end: tcp.seq.wrapping_add(len) })
        }
        Transport::Echo(echo) if !echo.reply => {
            Some(Probe { conversation: conversation ^ u64::from(echo.id), end: u32::from(echo.seq) << 16 })
        }
        _ => None,
    }
}

/// What a packet answers.
fn answer(header: &Headers) -> Option<Answer> {
    let asked = Headers {
        source: header.destination,
        destination: header.source,
        source_port: header.destination_port,
        destination_port: header.source_port,
        ..*header
    };
    let conversation = asked.key();
    match &header.transport {
        Transport::Tcp(tcp) if tcp.flags.has(Flags::ACK) => {
            let window = (!tcp.flags.has(Flags::SYN)).then_some(tcp.window);
            Some(Answer { conversation, upto: tcp.ack, exactly: tcp.first_sacked(), window })
        }
        Transport::Echo(echo) if echo.reply => {
            let end = u32::from(echo.seq) << 16;
            Some(Answer { conversation: conversation ^ u64::from(echo.id), upto: end, exactly: None, window: None })
        }
        _ => None,
    }
}
