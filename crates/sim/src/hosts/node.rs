//! A host's processing time: what passes between an event and the departure of the packets that it causes.
//!
//! The delay is drawn once for all packets that one event causes, and a host's packets stay in order. An endpoint's state
//! changes at once; only its packets leave later. A link to which only hosts give packets is told in advance when a packet
//! will arrive there, so this costs no call of the agenda. Before other hops, packets wait here.

use crate::network::Network;
use crate::network::packet::Packet;
use aqm::{Backlog, Packet as _};
use des::{Agenda, Part};
use link::{Random, unit};
use scenario::Processing;
use std::collections::VecDeque;
use units::{Span, Time};

/// A host, as the place at which packets begin their way.
pub(super) struct Node {
    time: Distribution,
    /// When the packet that was sent last leaves.
    last: Time,
    /// Packets that their first hop takes when their time has come, in order of time.
    waiting: VecDeque<(Time, Packet)>,
    /// Their sum.
    backlog: Backlog,
    part: Part,
}

/// The distribution of the processing time.
enum Distribution {
    Constant(Span),
    /// Shares and times in nanoseconds, linear in between.
    Quantiles(Box<[(f64, f64)]>, Random),
}

impl Node {
    /// Creates a host that is called as `part`. All its random numbers come from `random`.
    pub(super) fn new(processing: &Processing, random: Random, part: Part) -> Node {
        let quantiles = processing.quantiles();
        let time = match (quantiles.first(), quantiles.last()) {
            (Some((_, least)), Some((_, most))) if least < most => {
                let points = quantiles.iter().map(|&(share, time)| (share, time.as_nanos() as f64));
                Distribution::Quantiles(points.collect(), random)
            }
            (least, _) => Distribution::Constant(least.map_or(Span::ZERO, |&(_, time)| time)),
        };
        Node { time, last: Time::ZERO, waiting: VecDeque::new(), backlog: Backlog::default(), part }
    }

    /// Returns when packets leave whose cause happens at `now`.
    #[inline]
    pub(super) fn departure(&mut self, now: Time) -> Time {
        let span = match &mut self.time {
            Distribution::Constant(span) => *span,
            Distribution::Quantiles(points, random) => {
                let share = unit(random);
                let next = points.partition_point(|point| point.0 <= share).min(points.len() - 1);
                let ((s0, t0), (s1, t1)) = (points[next - 1], points[next]);
                Span::from_nanos((t0 + (t1 - t0) * ((share - s0) / (s1 - s0))) as u64)
            }
        };
        self.last = self.last.max(now + span);
        self.last
    }

    /// Sends the packet of the drafted parcel, which leaves at `at`, on its route.
    #[inline(always)]
    pub(super) fn send(&mut self, route: u32, at: Time, network: &mut Network, agenda: &mut Agenda) {
        if let Some(packet) = network.send_at(route, at, self.waiting.is_empty(), agenda) {
            self.hold(packet, at, agenda);
        }
    }

    fn hold(&mut self, packet: Packet, at: Time, agenda: &mut Agenda) {
        self.backlog += Backlog { packets: 1, bytes: packet.len().into() };
        self.waiting.push_back((at, packet));
        if self.waiting.len() == 1 {
            agenda.wake(self.part, Some(at));
        }
    }

    /// Returns the packets that wait for their departure.
    pub(super) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Sends the packets whose time has come.
    pub(super) fn handle_timeout(&mut self, network: &mut Network, agenda: &mut Agenda) {
        let now = agenda.now();
        while let Some((_, packet)) = self.waiting.pop_front_if(|(at, _)| *at <= now) {
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.len());
            network.go_on(packet, agenda);
        }
        agenda.wake(self.part, self.waiting.front().map(|&(at, _)| at));
    }
}
