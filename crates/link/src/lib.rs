//! Links: service by rate or by trace, loss, jitter, and delay.
//!
//! A [`Link`] is one direction: a queue discipline, a server that takes packets from it, and a wire that loses and
//! delays them. The server knows its whole future (a [`Schedule`] of rates or a [`Trace`]), so a packet's departure is
//! computed when its service begins and needs no event of its own: an idle link costs one wake-up a packet, the
//! delivery.
//!
//! A packet in service is not in the queue and does not count against its limit, as in a network device that holds one
//! packet. A packet that finds the server idle is served at once without passing through the queue, as Linux does with
//! every discipline here (`TCQ_F_CAN_BYPASS`).

#![allow(clippy::doc_markdown, reason = "CoDel is a name and not code")]

mod foreseen;
mod rate;
pub mod trace;
mod wire;

pub use foreseen::Foreseen;
pub use rate::{Schedule, ScheduleError};
pub use trace::{Sharing, Trace, TraceError};
pub use wire::{Jitter, Loss, Random};

use std::collections::VecDeque;
use std::sync::Arc;

use aqm::{AnyQueue, Backlog, DropReason, Drops, Packet, Queue, sojourn};
use units::{Rate, Span, Time};

use rate::RateServer;
use trace::TraceServer;
use wire::{JitterSource, LossProcess, after};

/// One direction of a link. The default delivers everything at once.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What waits for the server, and how.
    pub queue: aqm::Config,
    /// How fast packets leave.
    pub service: Service,
    /// Bytes of framing that each packet costs the server on top of its length. The queue does not count them.
    pub overhead: u32,
    /// What the wire loses.
    pub loss: Loss,
    /// How long the wire takes.
    pub delay: Span,
    /// What it takes longer at random.
    pub jitter: Jitter,
}

/// How fast packets leave a link's queue.
#[derive(Clone, Debug, Default)]
pub enum Service {
    /// At once: nothing ever waits, and the queue discipline has no say.
    #[default]
    Infinite,
    /// At a rate that changes at given moments.
    Rate(Schedule),
    /// At the delivery opportunities of a trace, over again at its end.
    Trace {
        /// The opportunities; many links may share one.
        trace: Arc<Trace>,
        /// How packets use them.
        sharing: Sharing,
        /// The moment of the trace at which the link's time begins; past its end, the trace has begun again.
        offset: Span,
    },
}

/// What a link has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// What was handed to the link.
    pub arrived: Backlog,
    /// What came out at the far end.
    pub delivered: Backlog,
    /// What began its service. The wire lost `losses` of them, has [`Link::in_flight`], and delivered the rest.
    pub served: Backlog,
    /// When the service of the last of these ends: until then a part of it is yet to be served.
    pub service_ends: Time,
    /// Packets lost to a limit of the queue.
    pub overflows: u64,
    /// Packets dropped by the discipline's control law.
    pub control_drops: u64,
    /// Packets that the wire lost.
    pub losses: u64,
    /// How long the packet served last had waited.
    pub last_sojourn: Span,
    /// The sum of the waits of all packets served.
    pub total_sojourn: Span,
    /// Bytes of a trace's opportunities that passed unused.
    pub wasted: u64,
}

/// One direction of a link.
///
/// Order of calls: [`Link::handle_packet`] when a packet arrives, [`Link::handle_timeout`] at the time that
/// [`Link::poll_timeout`] gave, [`Link::set_rate`] if ever; after any of them, [`Link::poll_delivery`] until it gives nothing, then
/// [`Link::poll_timeout`] again. Time never goes back. Calls that come late serve at the times at which service was
/// due, so that only deliveries are late by it.
///
/// What is served in between needs no wake-up unless it may lose packets: the backlog and the statistics are brought up
/// to the time at which they are asked for.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: AnyQueue<P>,
    /// Whether the queue holds anything.
    waiting: bool,
    /// When the server takes its head, or never.
    next_service: Time,
    /// Whether it was used since the server last found it empty.
    used: bool,
    server: Server,
    overhead: u64,
    loss: LossProcess,
    jitter: JitterSource,
    delay: Span,
    /// Packets on the wire with the time at which their delay ends. Nothing overtakes the front: a packet behind it that
    /// would be earlier is delivered with it.
    wire: VecDeque<(Time, P)>,
    /// Whether service can lose packets, so that it has to happen on time.
    prompt: bool,
    /// `arrived` and `delivered` are the sums of others, and filled in when they are asked for.
    stats: Stats,
    /// Bytes that the queue dropped,
    dropped_bytes: u64,
    /// and that the wire lost.
    lost_bytes: u64,
}

#[derive(Clone, Debug)]
enum Server {
    Infinite,
    Rate(RateServer),
    Trace(TraceServer),
}

impl<P: Packet> Link<P> {
    /// An idle link. `random` is drawn from only if loss or jitter is configured.
    pub fn new(config: Config, mut random: Random) -> Self {
        let queue = AnyQueue::new(&config.queue);
        let loss = LossProcess::new(config.loss, random.clone());
        // Loss and jitter have independent streams, so that switching one on does not shift the other.
        random.jump();
        Link {
            prompt: queue.drops_when_served() || config.loss != Loss::None,
            queue,
            waiting: false,
            next_service: Time::MAX,
            used: false,
            server: match config.service {
                Service::Infinite => Server::Infinite,
                Service::Rate(schedule) => Server::Rate(RateServer::new(schedule)),
                Service::Trace { trace, sharing, offset } => Server::Trace(TraceServer::new(trace, sharing, offset)),
            },
            overhead: u64::from(config.overhead),
            loss,
            jitter: JitterSource::new(config.jitter, random),
            delay: config.delay,
            wire: VecDeque::new(),
            stats: Stats::default(),
            dropped_bytes: 0,
            lost_bytes: 0,
        }
    }

    /// `packet` arrives at the link's tail.
    #[inline]
    pub fn handle_packet(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        // The way of most packets through most links, which is to stay short.
        if !self.waiting && !self.used && self.server.is_free(now) {
            self.pass(packet, now, drops);
        } else {
            self.queue_or_pass(packet, now, drops);
        }
    }

    #[inline(never)]
    fn queue_or_pass(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        if self.next_service <= now {
            self.serve_due(now, drops);
        }
        if !self.waiting {
            if self.server.idle_until(now) && self.used {
                self.found_empty(now, drops);
            }
            if self.server.is_free(now) {
                return self.pass(packet, now, drops);
            }
        }
        self.used = true;
        let counted = &mut Counted { drops, stats: &mut self.stats, bytes: &mut self.dropped_bytes };
        self.queue.enqueue(packet, now, counted);
        self.look();
    }

    /// `packet` is served at once by a server that is free.
    #[inline(always)]
    fn pass(&mut self, mut packet: P, now: Time, drops: &mut impl Drops<P>) {
        packet.set_enqueued(now);
        let end = self.server.serve_at_once(u64::from(packet.len()) + self.overhead, now);
        self.depart(packet, Span::ZERO, end, drops);
    }

    /// Serves everything that is due.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time, drops: &mut impl Drops<P>) {
        if self.next_service <= now {
            self.serve_due(now, drops);
        }
    }

    /// The next packet whose delay has passed, in order.
    #[inline]
    pub fn poll_delivery(&mut self, now: Time) -> Option<P> {
        self.wire.pop_front_if(|(due, _)| *due <= now).map(|(_, packet)| packet)
    }

    /// When to call again: the next delivery, or the next service if that comes first and cannot wait.
    ///
    /// A service that loses nothing can wait for the delivery at the head of the wire: what it puts there is delivered
    /// no earlier.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let delivery = self.wire.front().map_or(Time::MAX, |&(due, _)| due);
        let next = if !self.waiting || (delivery != Time::MAX && !self.prompt) {
            delivery
        } else {
            delivery.min(self.next_service)
        };
        (next != Time::MAX).then_some(next)
    }

    /// The rate is `rate` from `now` on, whatever its schedule said for later, and a packet in service finishes its
    /// remaining bits at it: deliveries are those of a link whose schedule had said so from the start. An infinitely fast
    /// link has a rate then, and a queue. A trace stays what it is: returns whether the rate was set.
    ///
    /// [`Link::poll_timeout`] is asked again after it. [`Foreseen`] links cannot do this: they have told what they will do.
    pub fn set_rate(&mut self, rate: Rate, now: Time) -> bool {
        self.catch_up(now);
        match &mut self.server {
            Server::Infinite => self.server = Server::Rate(RateServer::new(Schedule::constant(rate))),
            Server::Rate(server) => {
                let due = |end| self.jitter.delay_again(after(end, self.delay));
                let before = due(server.next_start());
                server.set_rate(rate, now);
                // Whatever is in service is the last on the wire, unless it is to be lost there.
                if let Some((last, _)) = self.wire.back_mut()
                    && *last == before
                {
                    *last = due(server.next_start());
                }
                if self.stats.service_ends > now {
                    self.stats.service_ends = server.next_start();
                }
            }
            Server::Trace(_) => return false,
        }
        self.look();
        true
    }

    /// What waits for the server at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.catch_up(now);
        self.queue.backlog()
    }

    /// What was done until `now`.
    pub fn stats(&mut self, now: Time) -> Stats {
        self.catch_up(now);
        let stats = &mut self.stats;
        let (dropped, waiting) = (stats.overflows + stats.control_drops, self.queue.backlog());
        stats.arrived.packets = stats.served.packets + dropped + waiting.packets;
        stats.arrived.bytes = stats.served.bytes + self.dropped_bytes + waiting.bytes;
        let in_flight = self.wire.iter().map(|(_, packet)| u64::from(packet.len())).sum::<u64>();
        stats.delivered.packets = stats.served.packets - stats.losses - self.wire.len() as u64;
        stats.delivered.bytes = stats.served.bytes - self.lost_bytes - in_flight;
        if let Server::Trace(server) = &self.server {
            self.stats.wasted = server.wasted() + if self.waiting { 0 } else { server.passing(now) };
        }
        self.stats
    }

    /// Packets that the queue marked CE so far.
    pub fn marks(&self) -> u64 {
        self.queue.marks()
    }

    /// Packets in service or on the wire.
    pub fn in_flight(&self) -> u64 {
        self.wire.len() as u64
    }

    /// Serves what is due where nothing can be lost by it; elsewhere the driver has done so.
    fn catch_up(&mut self, now: Time) {
        if !self.prompt {
            self.serve_due(now, &mut |_: P, _: DropReason| unreachable!("this service loses no packet"));
        }
    }

    #[inline(never)]
    fn serve_due(&mut self, now: Time, drops: &mut impl Drops<P>) {
        while self.next_service <= now && self.waiting {
            let start = self.next_service;
            let counted = &mut Counted { drops, stats: &mut self.stats, bytes: &mut self.dropped_bytes };
            let head = self.queue.dequeue(start, counted);
            if let Some(packet) = head {
                let end = self.server.serve(u64::from(packet.len()) + self.overhead);
                let wait = sojourn(&packet, start);
                self.depart(packet, wait, end, drops);
            }
            self.look();
        }
    }

    /// Something came into the queue or left it.
    #[inline]
    fn look(&mut self) {
        self.waiting = self.queue.backlog().packets > 0;
        self.next_service = if self.waiting { self.server.next_start() } else { Time::MAX };
    }

    /// The server found the queue empty before now, from which disciplines learn that flows went idle.
    #[cold]
    fn found_empty(&mut self, now: Time, drops: &mut impl Drops<P>) {
        self.used = false;
        let counted = &mut Counted { drops, stats: &mut self.stats, bytes: &mut self.dropped_bytes };
        let empty = self.queue.dequeue(now, counted);
        debug_assert!(empty.is_none(), "a queue that holds nothing gave a packet");
    }

    /// `packet`, in service until `end` after a wait, goes onto the wire.
    #[inline(always)]
    fn depart(&mut self, mut packet: P, wait: Span, end: Time, drops: &mut impl Drops<P>) {
        self.stats.served.packets += 1;
        self.stats.served.bytes += u64::from(packet.len());
        self.stats.service_ends = end;
        packet.set_waited(wait);
        self.stats.last_sojourn = wait;
        self.stats.total_sojourn += wait;
        if self.loss.loses() {
            self.stats.losses += 1;
            self.lost_bytes += u64::from(packet.len());
            drops.dropped(packet, DropReason::Loss);
            return;
        }
        self.wire.push_back((self.jitter.delay(after(end, self.delay)), packet));
    }
}

impl Server {
    /// When the server is free for the packet at the head.
    #[inline]
    fn next_start(&self) -> Time {
        match self {
            Server::Infinite => unreachable!("nothing waits for an infinite rate"),
            Server::Rate(server) => server.next_start(),
            Server::Trace(server) => server.next_start(),
        }
    }

    /// Nothing waited until `now`. Whether the server looked for a packet and found none meanwhile.
    #[inline]
    fn idle_until(&mut self, now: Time) -> bool {
        match self {
            Server::Infinite => false,
            Server::Rate(server) => server.idle_until(now),
            Server::Trace(server) => server.idle_until(now),
        }
    }

    /// Whether a packet that arrives when nothing waits is served at once. A trace's opportunities are only ever used by
    /// what waits.
    #[inline]
    fn is_free(&self, now: Time) -> bool {
        match self {
            Server::Infinite => true,
            Server::Rate(server) => server.next_start() <= now,
            Server::Trace(_) => false,
        }
    }

    /// The server is free. Serves `bytes` from `now` on, and gives the time at which the last of them has left.
    #[inline]
    fn serve_at_once(&mut self, bytes: u64, now: Time) -> Time {
        match self {
            Server::Rate(server) => {
                server.idle_until(now);
                server.serve(bytes)
            }
            Server::Infinite | Server::Trace(_) => now,
        }
    }

    /// Serves `bytes` from `next_start` on, and gives the time at which the last of them has left.
    #[inline]
    fn serve(&mut self, bytes: u64) -> Time {
        match self {
            Server::Infinite => unreachable!("nothing waits for an infinite rate"),
            Server::Rate(server) => server.serve(bytes),
            Server::Trace(server) => server.serve(bytes),
        }
    }
}

/// Counts what a queue drops on its way to the driver.
struct Counted<'a, D> {
    drops: &'a mut D,
    stats: &'a mut Stats,
    bytes: &'a mut u64,
}

impl<P: Packet, D: Drops<P>> Drops<P> for Counted<'_, D> {
    fn dropped(&mut self, packet: P, reason: DropReason) {
        match reason {
            DropReason::Overflow => self.stats.overflows += 1,
            DropReason::Control => self.stats.control_drops += 1,
            DropReason::Loss => unreachable!("a queue loses nothing at random"),
        }
        *self.bytes += u64::from(packet.len());
        self.drops.dropped(packet, reason);
    }
}
