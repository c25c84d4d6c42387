//! Links: service by rate or by trace, loss, jitter, reordering, and delay.
//!
//! A [`Link`] is one direction: a queue discipline, a server that takes packets from it, and a wire that loses and
//! delays them. The server knows its future (a [`Schedule`] of rates or a [`Trace`]), so a packet's departure is
//! computed when its service begins and needs no event of its own: on an idle link, a packet costs one wake-up, its
//! delivery.
//!
//! A packet in service is not in the queue and does not count against its limit, as in a network device that holds one
//! packet. A packet that finds the server idle is served at once, bypassing the queue, as in Linux for every discipline
//! here (`TCQ_F_CAN_BYPASS`).

#![allow(clippy::doc_markdown, reason = "CoDel is a name, not code")]

pub mod delay;
mod foreseen;
mod rate;
pub mod trace;
mod wire;

pub use delay::{Delay, Delays};
pub use foreseen::Foreseen;
pub use rate::{Schedule, ScheduleError};
pub use trace::{Sharing, Trace, TraceError};
pub use wire::{Jitter, Loss, Random, Reordering, unit};

use std::collections::VecDeque;
use std::sync::Arc;

use aqm::{AnyQueue, Backlog, DropReason, Drops, Packet, Queue, sojourn};
use units::{Rate, Span, Time};

use rate::RateServer;
use trace::TraceServer;
use wire::{JitterSource, LossProcess, ReorderingSource, after};

/// The rate of a link with unlimited rate after an outage: a packet takes nanoseconds.
const UNLIMITED: Rate = Rate::from_mbps(10_000_000);

/// The configuration of one direction of a link. The default delivers everything at once, and its queue has no limit.
#[derive(Clone, Debug)]
pub struct Config {
    /// The queue discipline.
    pub queue: aqm::Config,
    /// The service rate.
    pub service: Service,
    /// Bytes of framing added to each packet's length during service. The queue does not count them.
    pub overhead: u32,
    /// Losses on the wire.
    pub loss: Option<Loss>,
    /// Delay of the wire.
    pub delay: Delay,
    /// Random additional delay.
    pub jitter: Option<Jitter>,
    /// Packets that others overtake.
    pub reordering: Option<Reordering>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            queue: aqm::Config::UNLIMITED,
            service: Service::default(),
            overhead: 0,
            loss: None,
            delay: Delay::default(),
            jitter: None,
            reordering: None,
        }
    }
}

/// The service of a link.
#[derive(Clone, Debug, Default)]
pub enum Service {
    /// Unlimited rate: packets never wait, and the queue discipline has no effect.
    #[default]
    Infinite,
    /// A rate that changes at given times.
    Rate(Schedule),
    /// The delivery opportunities of a trace, repeated when it ends.
    Trace {
        /// The opportunities; many links may share one.
        trace: Arc<Trace>,
        /// How packets use them.
        sharing: Sharing,
        /// Time in the trace at which the link's time zero lies; beyond its end, the trace has repeated.
        offset: Span,
    },
}

/// Statistics of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets handed to the link.
    pub arrived: Backlog,
    /// Packets delivered at the far end.
    pub delivered: Backlog,
    /// Packets that began service. Of these, the wire lost `losses`, [`Link::in_flight`] are under way, and the rest
    /// were delivered.
    pub served: Backlog,
    /// When the service of the last of these ends; until then, part of it is still to be served.
    pub service_ends: Time,
    /// Packets lost to a limit of the queue.
    pub overflows: u64,
    /// Packets dropped by the discipline's control law.
    pub control_drops: u64,
    /// Packets that the wire lost.
    pub losses: u64,
    /// Sum of the waiting times of all packets served.
    pub total_sojourn: Span,
    /// Bytes of a trace's delivery opportunities that were not used.
    pub wasted: u64,
}

/// One direction of a link.
///
/// Order of calls: [`Link::handle_packet`] when a packet arrives, [`Link::handle_timeout`] at the time returned by
/// [`Link::poll_timeout`], [`Link::set_rate`] at any time; after any of them, [`Link::poll_delivery`] until it returns
/// `None`, then [`Link::poll_timeout`] again. Time never goes back. Late calls serve packets at the times at which
/// service was due, so that only deliveries are late.
///
/// Services in between need no wake-up unless they have to be on time: backlog and statistics are updated to the current
/// time when they are read.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: AnyQueue<P>,
    /// Whether the queue is non-empty.
    waiting: bool,
    /// When the server takes the packet at the head, or never.
    next_service: Time,
    /// Whether the queue was used since the server last found it empty.
    used: bool,
    server: Server,
    overhead: u64,
    loss: LossProcess,
    jitter: JitterSource,
    reordering: ReorderingSource,
    delay: Delay,
    /// Packets on the wire with the time at which their delay ends. Order is kept: a packet that would overtake the
    /// front is delivered together with it.
    wire: VecDeque<(Time, P)>,
    /// Packets on the wire that others may overtake, in order of time.
    late: VecDeque<(Time, P)>,
    /// Whether service has to happen on time, because it can drop packets, somebody is told when it begins, or its packet may be
    /// delivered before all others.
    prompt: bool,
    /// Whether a packet that is served may be delivered before all others: not in their order, and after a shorter delay.
    overtakes_all: bool,
    /// Tags of packets that have begun service and were not polled, if that is noted.
    begun: Option<Vec<u64>>,
    /// `arrived` and `delivered` are derived from other counters when the statistics are read.
    stats: Stats,
    /// The longest waiting time since [`Link::take_longest_sojourn`].
    longest: Span,
    /// Bytes dropped by the queue.
    dropped_bytes: u64,
    /// Bytes lost on the wire.
    lost_bytes: u64,
}

#[derive(Clone, Debug)]
enum Server {
    Infinite,
    Rate(RateServer),
    Trace(TraceServer),
}

impl<P: Packet> Link<P> {
    /// Creates an idle link. `random` is used only if loss, jitter or reordering is configured.
    pub fn new(config: Config, mut random: Random) -> Self {
        let queue = AnyQueue::new(&config.queue);
        let is_even = config.jitter.is_none() && matches!(config.delay, Delay::Constant(_));
        let overtakes_all = config.reordering.is_some_and(|model| model.share > 0.0) && !is_even;
        let loss = LossProcess::new(config.loss, random.clone());
        // Loss, jitter and reordering use independent streams, so that enabling one does not change the others.
        random.jump();
        let jitter = JitterSource::new(config.jitter, random.clone());
        random.jump();
        Link {
            prompt: queue.drops_when_served() || config.loss.is_some() || overtakes_all,
            overtakes_all,
            begun: None,
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
            jitter,
            reordering: ReorderingSource::new(config.reordering, random),
            delay: config.delay,
            wire: VecDeque::new(),
            late: VecDeque::new(),
            stats: Stats::default(),
            longest: Span::ZERO,
            dropped_bytes: 0,
            lost_bytes: 0,
        }
    }

    /// Accepts `packet` at the link's input.
    #[inline]
    pub fn handle_packet(&mut self, packet: P, now: Time, drops: &mut impl Drops<P>) {
        // The path of most packets through most links, to be kept short.
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
        self.refresh();
    }

    /// Serves `packet` at once; the server must be free.
    #[inline(always)]
    fn pass(&mut self, mut packet: P, now: Time, drops: &mut impl Drops<P>) {
        packet.set_enqueued(now);
        let end = self.server.serve_at_once(u64::from(packet.len()) + self.overhead, now);
        self.depart(packet, Span::ZERO, end, drops);
    }

    /// Serves all packets that are due.
    #[inline]
    pub fn handle_timeout(&mut self, now: Time, drops: &mut impl Drops<P>) {
        if self.next_service <= now {
            self.serve_due(now, drops);
        }
    }

    /// Returns the next packet whose delay has passed, in order of time.
    #[inline]
    pub fn poll_delivery(&mut self, now: Time) -> Option<P> {
        if self.is_late_next(now) {
            return self.late.pop_front().map(|(_, packet)| packet);
        }
        self.wire.pop_front_if(|(due, _)| *due <= now).map(|(_, packet)| packet)
    }

    /// Returns whether a packet that others may overtake is delivered next, by `now`.
    #[inline]
    fn is_late_next(&self, now: Time) -> bool {
        let due = |packets: &VecDeque<(Time, P)>| packets.front().map(|&(due, _)| due);
        due(&self.late).is_some_and(|late| late <= now && due(&self.wire).is_none_or(|next| late < next))
    }

    /// Returns the time of the next call: the next delivery, or the next service if that is earlier and cannot wait.
    ///
    /// A service that need not be on time can wait for the delivery at the head of the wire: its packet is delivered no
    /// earlier.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        let delivery = self.wire.front().map_or(Time::MAX, |&(due, _)| due);
        let next = if !self.waiting || (delivery != Time::MAX && !self.prompt) {
            delivery
        } else {
            delivery.min(self.next_service)
        };
        let next = self.late.front().map_or(next, |&(due, _)| next.min(due));
        (next != Time::MAX).then_some(next)
    }

    /// Sets the rate from `now` on, replacing the schedule. A packet in service finishes its remaining bits at the new
    /// rate, so deliveries are those of a link whose schedule had contained the change from the start. A link with
    /// unlimited rate then has a rate and a queue. The rate of a trace cannot be set: returns whether it was set.
    ///
    /// Call [`Link::poll_timeout`] again afterwards. [`Foreseen`] links do not support this: they have already
    /// announced deliveries.
    pub fn set_rate(&mut self, rate: Rate, now: Time) -> bool {
        self.catch_up(now);
        match &mut self.server {
            Server::Infinite => self.server = Server::Rate(RateServer::new(Schedule::constant(rate))),
            Server::Rate(_) => self.change_rate(now, |server| server.set_rate(rate, now)),
            Server::Trace(_) => return false,
        }
        self.refresh();
        true
    }

    /// Serves nothing from `now` until `until`; then the schedule or the trace goes on where it would be without that. A packet in
    /// service waits with its remaining bits. A link with unlimited rate then has a queue. An outage within another one changes
    /// nothing, and [`Link::set_rate`] ends it.
    ///
    /// Call [`Link::poll_timeout`] again afterwards. As with [`Link::set_rate`], not for [`Foreseen`] links.
    pub fn pause(&mut self, until: Time, now: Time) {
        self.catch_up(now);
        match &mut self.server {
            Server::Infinite => {
                let mut server = RateServer::new(Schedule::constant(UNLIMITED));
                server.pause(until, now);
                self.server = Server::Rate(server);
            }
            Server::Rate(_) => self.change_rate(now, |server| server.pause(until, now)),
            Server::Trace(server) => server.pause(until),
        }
        self.refresh();
    }

    /// Changes the rates from `now` on, and moves the packet in service to the time at which it is delivered by them.
    fn change_rate(&mut self, now: Time, change: impl FnOnce(&mut RateServer)) {
        let Server::Rate(server) = &mut self.server else { unreachable!("only a link with a rate changes it") };
        let due = |end| self.jitter.delay_again(after(end, self.delay.at(end)));
        let before = due(server.next_start());
        change(server);
        let now_due = due(server.next_start());
        // A packet in service is the last on the wire, unless it is to be lost there.
        if let Some(extra) = self.reordering.last() {
            let is_it = |&(due, _): &(Time, P)| due == after(before, extra);
            if let Some((_, packet)) = self.late.iter().position(is_it).and_then(|i| self.late.remove(i)) {
                insert(&mut self.late, after(now_due, extra), packet);
            }
        } else if let Some((last, _)) = self.wire.back_mut()
            && *last == before
        {
            *last = now_due;
        }
        if self.stats.service_ends > now {
            self.stats.service_ends = server.next_start();
        }
    }

    /// Sets the loss on the wire from `now` on, for packets whose service begins later. Call [`Link::poll_timeout`] again
    /// afterwards.
    pub fn set_loss(&mut self, loss: Option<Loss>, now: Time) {
        self.catch_up(now);
        self.loss.set(loss);
        self.prompt = self.queue.drops_when_served() || loss.is_some() || self.overtakes_all || self.begun.is_some();
    }

    /// Has [`Link::poll_begun`] return packets from now on, which then begin service on time.
    pub fn note_begun(&mut self) {
        self.begun.get_or_insert_default();
        self.prompt = true;
    }

    /// Returns the tag ([`Packet::tag`]) of a packet that has left the queue, or passed it by, to be served; the wire may have
    /// lost it since. In no order. Call it after each [`Link::handle_packet`] and [`Link::handle_timeout`], until it returns
    /// `None`.
    #[inline]
    pub fn poll_begun(&mut self) -> Option<u64> {
        self.begun.as_mut()?.pop()
    }

    /// Returns whether the queue would drop a packet of `len` bytes and this priority that arrives at `now` after `ahead`, which
    /// is still to arrive.
    pub fn is_full(&self, len: u32, priority: u8, mut ahead: Backlog, now: Time) -> bool {
        if !self.waiting && self.server.is_free(now) {
            // The first packet is served at once.
            let Some(packets) = ahead.packets.checked_sub(1) else { return false };
            ahead = Backlog { packets, bytes: ahead.bytes.saturating_sub(len.into()) };
        }
        self.queue.is_full(len, priority, ahead)
    }

    /// Returns the backlog of the queue at `now`.
    pub fn backlog(&mut self, now: Time) -> Backlog {
        self.catch_up(now);
        self.queue.backlog()
    }

    /// Returns the longest waiting time of the packets that began service by `now` and not before the previous call.
    pub fn take_longest_sojourn(&mut self, now: Time) -> Span {
        self.catch_up(now);
        std::mem::take(&mut self.longest)
    }

    /// Returns the statistics up to `now`.
    pub fn stats(&mut self, now: Time) -> Stats {
        self.catch_up(now);
        let stats = &mut self.stats;
        let (dropped, waiting) = (stats.overflows + stats.control_drops, self.queue.backlog());
        stats.arrived.packets = stats.served.packets + dropped + waiting.packets;
        stats.arrived.bytes = stats.served.bytes + self.dropped_bytes + waiting.bytes;
        let on_wire = self.wire.iter().chain(&self.late);
        let in_flight = on_wire.map(|(_, packet)| u64::from(packet.len())).sum::<u64>();
        stats.delivered.packets = stats.served.packets - stats.losses - (self.wire.len() + self.late.len()) as u64;
        stats.delivered.bytes = stats.served.bytes - self.lost_bytes - in_flight;
        if let Server::Trace(server) = &self.server {
            self.stats.wasted = server.wasted() + if self.waiting { 0 } else { server.passing(now) };
        }
        self.stats
    }

    /// Returns the number of packets CE-marked by the queue so far.
    pub fn marks(&self) -> u64 {
        self.queue.marks()
    }

    /// Returns the number of packets in service or on the wire.
    pub fn in_flight(&self) -> u64 {
        (self.wire.len() + self.late.len()) as u64
    }

    /// Serves due packets if that need not be on time; otherwise the driver has already done so.
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
            self.refresh();
        }
    }

    /// Updates the cached state after the queue has changed.
    #[inline]
    fn refresh(&mut self) {
        self.waiting = self.queue.backlog().packets > 0;
        self.next_service = if self.waiting { self.server.next_start() } else { Time::MAX };
    }

    /// Calls the discipline after the server found the queue empty before `now`, so that it learns that flows went
    /// idle.
    #[cold]
    fn found_empty(&mut self, now: Time, drops: &mut impl Drops<P>) {
        self.used = false;
        let counted = &mut Counted { drops, stats: &mut self.stats, bytes: &mut self.dropped_bytes };
        let empty = self.queue.dequeue(now, counted);
        debug_assert!(empty.is_none(), "an empty queue returned a packet");
    }

    /// Puts `packet` onto the wire; it is in service until `end` after waiting for `wait`.
    #[inline(always)]
    fn depart(&mut self, mut packet: P, wait: Span, end: Time, drops: &mut impl Drops<P>) {
        self.stats.served.packets += 1;
        self.stats.served.bytes += u64::from(packet.len());
        self.stats.service_ends = end;
        packet.set_waited(wait);
        self.longest = self.longest.max(wait);
        self.stats.total_sojourn += wait;
        if let Some(begun) = &mut self.begun {
            begun.push(packet.tag());
        }
        if self.loss.loses() {
            self.stats.losses += 1;
            self.lost_bytes += u64::from(packet.len());
            drops.dropped(packet, DropReason::Loss);
            return;
        }
        let due = self.jitter.delay(after(end, self.delay.at(end)));
        match self.reordering.delay() {
            None => self.wire.push_back((due, packet)),
            Some(extra) => insert(&mut self.late, after(due, extra), packet),
        }
    }
}

/// Inserts a packet into others in order of time, behind those of the same time.
fn insert<P>(packets: &mut VecDeque<(Time, P)>, due: Time, packet: P) {
    let place = packets.iter().rposition(|(other, _)| *other <= due).map_or(0, |last| last + 1);
    packets.insert(place, (due, packet));
}

impl Server {
    /// Returns when the server is free for the packet at the head.
    #[inline]
    fn next_start(&self) -> Time {
        match self {
            Server::Infinite => unreachable!("nothing waits for an infinite rate"),
            Server::Rate(server) => server.next_start(),
            Server::Trace(server) => server.next_start(),
        }
    }

    /// Advances an idle server to `now`. Returns whether it looked for a packet in the meantime and found none.
    #[inline]
    fn idle_until(&mut self, now: Time) -> bool {
        match self {
            Server::Infinite => false,
            Server::Rate(server) => server.idle_until(now),
            Server::Trace(server) => server.idle_until(now),
        }
    }

    /// Returns whether a packet arriving at an empty queue is served at once. A trace's opportunities are used only by
    /// packets already waiting.
    #[inline]
    fn is_free(&self, now: Time) -> bool {
        match self {
            Server::Infinite => true,
            Server::Rate(server) => server.next_start() <= now,
            Server::Trace(_) => false,
        }
    }

    /// Serves `bytes` from `now` on, on a free server, and returns when the last of them has left.
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

    /// Serves `bytes` from `next_start` on, and returns when the last of them has left.
    #[inline]
    fn serve(&mut self, bytes: u64) -> Time {
        match self {
            Server::Infinite => unreachable!("nothing waits for an infinite rate"),
            Server::Rate(server) => server.serve(bytes),
            Server::Trace(server) => server.serve(bytes),
        }
    }
}

/// Counts packets dropped by a queue before passing them to the driver.
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
