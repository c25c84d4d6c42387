//! Links on which a packet's delivery time is known on arrival.
//!
//! Behind a drop-tail queue, packets are neither reordered nor dropped later, and the server knows its future rates: a
//! packet's service begins when it arrives or when the previous packet has been served, whichever is later (Lindley
//! 1952). So no packet has to be stored, and a driver can send a packet through several such links in a row at once, if
//! each gets its packets only from the previous one. [`crate::Link`] does the same with real queues, packet by packet.

use std::collections::VecDeque;

use aqm::drop_tail::{self, Victim};
use aqm::{Backlog, DropReason};
use units::{Span, Time};

use crate::rate::RateServer;
use crate::wire::{LossProcess, after};
use crate::{Config, Delay, Random, Service, Stats};

/// One direction of a link with a drop-tail queue, a known rate, a constant delay, no jitter and no reordering.
///
/// Order of calls: [`Foreseen::pass`] for each packet, with arrival times that never go back and may lie ahead of the
/// driver's current time, and [`Foreseen::settle`] with the current time. Counters refer to the current time.
#[derive(Clone, Debug)]
pub struct Foreseen {
    /// `None` if the rate is unlimited.
    server: Option<RateServer>,
    overhead: u64,
    queue: drop_tail::Config,
    loss: LossProcess,
    delay: Span,
    /// Accepted packets not yet settled, and the last settled one before them.
    passages: VecDeque<Passage>,
    settled: Passage,
    /// Sums up to the last of them.
    total: Sums,
    /// How many of them, from the front, are known to have begun service.
    begun: usize,
    /// The longest wait of those that began service since [`Foreseen::take_longest_sojourn`], among the first `looked`.
    longest: Span,
    looked: usize,
    /// Lost packets not yet settled, and sums over the earlier ones.
    lost: VecDeque<Lost>,
    overflowed: Backlog,
    wire_lost: Backlog,
}

/// The passage of an accepted packet through the link.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    arrived: Time,
    /// When its service began.
    start: Time,
    /// When it is delivered, if the wire does not lose it.
    end: Time,
    /// Sums over all accepted packets up to and including this one.
    sums: Sums,
}

/// Totals of accepted packets and of their waiting time.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    packets: u64,
    bytes: u64,
    waited: Span,
}

/// A packet that was not delivered.
#[derive(Clone, Copy, Debug)]
struct Lost {
    reason: DropReason,
    at: Time,
    /// When it would have been delivered.
    end: Time,
    len: u32,
}

impl Foreseen {
    /// Creates an idle link, if delivery times on a link of this kind are known in advance.
    pub fn new(config: &Config, random: Random) -> Option<Foreseen> {
        let aqm::Config::DropTail(queue) = config.queue else { return None };
        let server = match &config.service {
            Service::Infinite => None,
            Service::Rate(schedule) => Some(RateServer::new(schedule.clone())),
            Service::Trace { .. } => return None,
        };
        if config.jitter.is_some()
            || config.reordering.is_some_and(|model| model.share > 0.0)
            || queue.victim != Victim::Arriving
        {
            return None;
        }
        let Delay::Constant(delay) = config.delay else { return None };
        Some(Foreseen {
            server,
            overhead: u64::from(config.overhead),
            queue,
            loss: LossProcess::new(config.loss, random),
            delay,
            passages: VecDeque::with_capacity(16),
            settled: Passage::default(),
            total: Sums::default(),
            begun: 0,
            longest: Span::ZERO,
            looked: 0,
            lost: VecDeque::new(),
            overflowed: Backlog::default(),
            wire_lost: Backlog::default(),
        })
    }

    /// Sends a packet of `len` bytes that arrives at `at`. Returns when it is delivered and how long it waits for
    /// service, or when and why it is lost. If the rate never recovers from zero, the packet stays in service, to be
    /// delivered at [`Time::MAX`].
    // Inlined, because it is the main cost of a hop and has a single caller.
    #[inline(always)]
    pub fn pass(&mut self, len: u32, at: Time) -> Result<(Time, Span), (Time, DropReason)> {
        let (mut start, mut served) = (at, at);
        if let Some(server) = &mut self.server {
            if server.idle_until(at) || server.next_start() == at {
                self.begun = self.passages.len() + 1;
            } else {
                start = server.next_start();
                if !self.finds_room(len, at) {
                    return Err(self.lose(Lost { reason: DropReason::Overflow, at, end: at, len }));
                }
            }
            let server = self.server.as_mut().expect("there is one");
            served = server.serve(u64::from(len) + self.overhead);
        }
        let (end, waited) = (after(served, self.delay), start.saturating_since(at));
        self.total.packets += 1;
        self.total.bytes += u64::from(len);
        // Those that are never served would wait for longer than a span can be together.
        if start < Time::MAX {
            self.total.waited += waited;
        }
        self.passages.push_back(Passage { arrived: at, start, end, sums: self.total });
        if self.loss.loses() {
            return Err(self.lose(Lost { reason: DropReason::Loss, at: start, end, len }));
        }
        Ok((end, waited))
    }

    #[cold]
    fn lose(&mut self, lost: Lost) -> (Time, DropReason) {
        self.lost.push_back(lost);
        (lost.at, lost.reason)
    }

    /// Returns whether a packet of `len` bytes that has to wait fits into the queue at `at`.
    #[inline(always)]
    fn finds_room(&mut self, len: u32, at: Time) -> bool {
        // Packets that have begun service since the last arrival only free more room.
        self.has_room(len) || {
            while self.passages.get(self.begun).is_some_and(|next| next.start <= at) {
                self.begun += 1;
            }
            self.has_room(len)
        }
    }

    #[inline]
    fn has_room(&self, len: u32) -> bool {
        self.queue.has_room(self.total.since(&self.nth(self.begun).sums), u64::from(len))
    }

    /// Returns the last of the first `count` unsettled passages, or else the last settled one.
    #[inline]
    fn nth(&self, count: usize) -> &Passage {
        count.checked_sub(1).and_then(|last| self.passages.get(last)).unwrap_or(&self.settled)
    }

    /// Returns whether no more passages can be recorded without [`Foreseen::settle`], which should then be called.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.passages.len() == self.passages.capacity()
    }

    /// Removes the packets delivered or lost by `now`, keeping only their sums.
    pub fn settle(&mut self, now: Time) {
        let done = self.passages.partition_point(|passage| passage.end <= now);
        self.look(done);
        self.looked -= done;
        self.settled = *self.nth(done);
        self.passages.drain(..done);
        self.begun = self.begun.saturating_sub(done);
        while let Some(lost) = self.lost.pop_front_if(|lost| lost.end <= now) {
            let sum = match lost.reason {
                DropReason::Overflow => &mut self.overflowed,
                _ => &mut self.wire_lost,
            };
            *sum += lost.size();
        }
    }

    /// Returns the statistics up to `now`, which must not be earlier than a settled time.
    pub fn stats(&self, now: Time) -> Stats {
        let (arrived, begun, ended) = self.at(now);
        let (mut overflowed, mut lost, mut ended_lost) = (self.overflowed, self.wire_lost, self.wire_lost);
        for one in self.lost.iter().filter(|one| one.at <= now) {
            match one.reason {
                DropReason::Overflow => overflowed += one.size(),
                _ => lost += one.size(),
            }
            if one.reason != DropReason::Overflow && one.end <= now {
                ended_lost += one.size();
            }
        }
        Stats {
            arrived: Backlog {
                packets: arrived.sums.packets + overflowed.packets,
                bytes: arrived.sums.bytes + overflowed.bytes,
            },
            delivered: Backlog {
                packets: ended.sums.packets - ended_lost.packets,
                bytes: ended.sums.bytes - ended_lost.bytes,
            },
            served: Backlog { packets: begun.sums.packets, bytes: begun.sums.bytes },
            service_ends: if begun.end == Time::MAX {
                begun.end
            } else {
                begun.end - self.delay.min(begun.end - Time::ZERO)
            },
            overflows: overflowed.packets,
            losses: lost.packets,
            total_sojourn: begun.sums.waited,
            ..Stats::default()
        }
    }

    /// Returns the longest waiting time of the packets that began service by `now` and not before the previous call.
    pub fn take_longest_sojourn(&mut self, now: Time) -> Span {
        self.look(self.passages.partition_point(|passage| passage.start <= now));
        std::mem::take(&mut self.longest)
    }

    /// Takes the first `count` unsettled passages into account for the longest waiting time.
    fn look(&mut self, count: usize) {
        let new = self.looked.min(count)..count;
        let waits = self.passages.range(new).map(|passage| passage.start.saturating_since(passage.arrived));
        self.longest = waits.fold(self.longest, Span::max);
        self.looked = self.looked.max(count);
    }

    /// Returns the backlog at `now`.
    pub fn backlog(&self, now: Time) -> Backlog {
        let (arrived, begun, _) = self.at(now);
        arrived.sums.since(&begun.sums)
    }

    /// Returns the last passages by `now` that have arrived, begun service, and left the wire.
    fn at(&self, now: Time) -> (&Passage, &Passage, &Passage) {
        let last = |by: fn(&Passage) -> Time| self.nth(self.passages.partition_point(|passage| by(passage) <= now));
        (last(|p| p.arrived), last(|p| p.start), last(|p| p.end))
    }
}

impl Sums {
    #[inline]
    fn since(&self, before: &Sums) -> Backlog {
        Backlog { packets: self.packets - before.packets, bytes: self.bytes - before.bytes }
    }
}

impl Lost {
    fn size(&self) -> Backlog {
        Backlog { packets: 1, bytes: u64::from(self.len) }
    }
}
