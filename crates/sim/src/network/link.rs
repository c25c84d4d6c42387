//! A link of the network, and the packets on it.

use super::packet::Packet;
use aqm::Backlog;
use des::Part;
use link::{Foreseen, Link};
use record::Distribution;
use std::collections::VecDeque;
use units::{Rate, Span, Time};

/// A link of the network: what carries its packets, and where they go on.
pub(crate) struct PlacedLink {
    pub(crate) name: String,
    pub(super) carrier: Carrier,
    /// The next link of its lane.
    pub(super) onward: Option<u32>,
    /// Whether only one host gives it packets and their passage is known in advance, so that they may be sent ahead of time.
    pub(super) is_entrance: bool,
    /// Whether its queue is that of the host where all routes over it begin. Then it is not foreseen.
    queue_in_host: bool,
    /// Its part of the agenda, which is called when a packet is delivered.
    pub(super) part: Part,
    /// Waiting times for the server since the warm-up.
    pub(super) waits: Waits,
    /// Whether its rate was changed.
    changed: bool,
}

/// Waiting times of packets; those that did not wait, which are many, are only counted.
#[derive(Default)]
pub(super) struct Waits {
    some: Distribution,
    none: u64,
}

impl Waits {
    #[inline]
    pub(super) fn record(&mut self, waited: Span) {
        match waited {
            Span::ZERO => self.none += 1,
            waited => self.some.record(waited),
        }
    }
}

/// The model of a link.
// The larger one is the one that most links are.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Carrier {
    /// At the last link of a lane: its packets with their delivery times.
    Foreseen(Foreseen, VecDeque<(Time, Packet)>),
    Link(Link<Packet>),
}

impl Carrier {
    /// `foresee`: whether the link's parameters stay constant.
    pub(crate) fn new(config: link::Config, random: link::Random, foresee: bool) -> Carrier {
        match Foreseen::new(&config, random.clone()).filter(|_| foresee) {
            Some(foreseen) => Carrier::Foreseen(foreseen, VecDeque::new()),
            None => Carrier::Link(Link::new(config, random)),
        }
    }
}

impl PlacedLink {
    /// `queue_in_host` as in the scenario; such a link must not be foreseen.
    pub(crate) fn new(name: String, carrier: Carrier, queue_in_host: bool, part: Part) -> PlacedLink {
        let (onward, is_entrance, waits, changed) = (None, false, Waits::default(), false);
        PlacedLink { name, carrier, onward, is_entrance, queue_in_host, part, waits, changed }
    }

    /// Returns the link if its queue is in a host.
    pub(super) fn queue_in_host(&mut self) -> Option<&mut Link<Packet>> {
        match &mut self.carrier {
            Carrier::Link(link) if self.queue_in_host => Some(link),
            _ => None,
        }
    }

    /// The distribution of waiting times in its queue, including packets that did not wait.
    pub(crate) fn waits(&self) -> Distribution {
        let mut waits = self.waits.some.clone();
        waits.record_many(Span::ZERO, self.waits.none);
        waits
    }

    /// Ends the warm-up.
    pub(crate) fn forget_waits(&mut self) {
        self.waits = Waits::default();
    }

    /// Returns the counters at `now`.
    pub(crate) fn stats(&mut self, now: Time) -> link::Stats {
        match &mut self.carrier {
            Carrier::Foreseen(foreseen, _) => foreseen.stats(now),
            Carrier::Link(link) => link.stats(now),
        }
    }

    /// Returns the longest waiting time of the packets that left the queue by `now` and not before the previous call.
    pub(crate) fn take_longest_wait(&mut self, now: Time) -> Span {
        match &mut self.carrier {
            Carrier::Foreseen(foreseen, _) => foreseen.take_longest_sojourn(now),
            Carrier::Link(link) => link.take_longest_sojourn(now),
        }
    }

    /// Returns the queue at `now`.
    pub(crate) fn backlog(&mut self, now: Time) -> Backlog {
        match &mut self.carrier {
            Carrier::Foreseen(foreseen, _) => foreseen.backlog(now),
            Carrier::Link(link) => link.backlog(now),
        }
    }

    /// Packets that were marked CE so far.
    pub(crate) fn marks(&self) -> u64 {
        match &self.carrier {
            Carrier::Foreseen(..) => 0,
            Carrier::Link(link) => link.marks(),
        }
    }

    /// Changes the rate of the link, if it has one that can change.
    pub(crate) fn set_rate(&mut self, rate: Rate, now: Time) -> bool {
        let Carrier::Link(link) = &mut self.carrier else { return false };
        let done = link.set_rate(rate, now);
        self.changed |= done;
        done
    }

    /// Serves nothing until `until`. Returns whether the link's parameters can change.
    pub(crate) fn pause(&mut self, until: Time, now: Time) -> bool {
        let Carrier::Link(link) = &mut self.carrier else { return false };
        link.pause(until, now);
        self.changed = true;
        true
    }

    /// Changes the probability that a packet is lost. Returns whether the link's parameters can change.
    pub(crate) fn set_loss(&mut self, probability: f64, now: Time) -> bool {
        let Carrier::Link(link) = &mut self.carrier else { return false };
        let loss = (probability > 0.0).then_some(link::Loss::Random { probability });
        link.set_loss(loss, now);
        true
    }

    /// Whether [`PlacedLink::set_rate`] or [`PlacedLink::pause`] has changed it.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Its part of the agenda.
    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Adds up what has been delivered by `now`.
    pub(super) fn settle(&mut self, now: Time) {
        if let Carrier::Foreseen(foreseen, _) = &mut self.carrier {
            foreseen.settle(now);
        }
    }

    /// Returns the next packet that has reached its end by `now`.
    #[inline]
    pub(super) fn leave(&mut self, now: Time) -> Option<Packet> {
        match &mut self.carrier {
            Carrier::Foreseen(_, end) => end.pop_front_if(|(due, _)| *due <= now).map(|(_, packet)| packet),
            Carrier::Link(link) => {
                let packet = link.poll_delivery(now)?;
                self.waits.record(packet.waited());
                Some(packet.passed())
            }
        }
    }

    /// Returns when to call it.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match &self.carrier {
            Carrier::Foreseen(_, end) => end.front().map(|&(due, _)| due),
            Carrier::Link(link) => link.poll_timeout(),
        }
    }
}
