//! A TCP connection that a proxy splits: an endpoint on each leg, and what passes between them.

#[cfg(test)]
mod tests;

use super::interface::Way;
use cc::{AnyController, Directed, Random, Signal, Target};
use rand_xoshiro::rand_core::Rng;
use std::collections::VecDeque;
use tcp::{Context, Endpoint, Event, State, Transmit};
use units::Time;
use wire::Segment;

/// The legs of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Leg {
    /// Towards the host behind the core.
    Wired = 0,
    /// Towards the UE.
    Radio = 1,
}

impl Leg {
    pub(super) const BOTH: [Leg; 2] = [Leg::Wired, Leg::Radio];

    fn other(self) -> Leg {
        match self {
            Leg::Wired => Leg::Radio,
            Leg::Radio => Leg::Wired,
        }
    }
}

/// One side of a split connection.
struct Side {
    endpoint: Endpoint<AnyController>,
    /// The sequence number of its first byte.
    first: u32,
    /// Bytes that have arrived in order.
    arrived: u64,
    /// The peer has closed its direction.
    peer_closed: bool,
    /// Whether the endpoint was told to close.
    closed: bool,
    /// When the data that this side sends left the host: up to which offset, and the time. What is acknowledged is
    /// forgotten.
    births: VecDeque<(u64, Time)>,
    acked: u64,
}

/// A split connection.
pub(super) struct Split {
    sides: [Side; 2],
    /// The way of packets to the UE, and whether it was shown by one of them.
    pub(super) way: (Way, bool),
    pub(super) ue: u32,
    /// The most that one side takes from the other and has not sent.
    pub(super) unsent: u64,
}

impl Split {
    /// Creates the endpoints for a connection that is opened from `opener`. `ue` is the UE, `config` are the settings of both.
    pub(super) fn new(
        opener: Leg,
        (way, ue): ((Way, bool), u32),
        config: &tcp::Config,
        controller: impl Fn() -> AnyController,
        unsent: u64,
        (random, now): (&mut Random, Time),
    ) -> Split {
        let sides = Leg::BOTH.map(|leg| {
            let isn = random.next_u32();
            let controller = match leg {
                Leg::Wired => controller(),
                Leg::Radio => AnyController::Boxed(Box::new(Directed::new(controller()))),
            };
            let endpoint = if leg == opener {
                Endpoint::listen(config, controller, isn)
            } else {
                Endpoint::connect(config, controller, isn, now)
            };
            Side {
                endpoint,
                first: isn.wrapping_add(1),
                arrived: 0,
                peer_closed: false,
                closed: false,
                births: VecDeque::new(),
                acked: 0,
            }
        });
        Split { sides, way, ue, unsent }
    }

    pub(super) fn endpoint(&self, leg: Leg) -> &Endpoint<AnyController> {
        &self.sides[leg as usize].endpoint
    }

    pub(super) fn endpoint_mut(&mut self, leg: Leg) -> &mut Endpoint<AnyController> {
        &mut self.sides[leg as usize].endpoint
    }

    /// Returns the payload that has arrived in order on `leg`.
    pub(super) fn arrived(&self, leg: Leg) -> u64 {
        self.sides[leg as usize].arrived
    }

    /// Returns whether all bytes and ends have passed. An endpoint may still wait for late segments.
    pub(super) fn has_ended(&self) -> bool {
        self.sides.iter().all(|side| side.endpoint.is_over() || side.endpoint.state() == State::TimeWait)
    }

    /// Returns whether both endpoints are done.
    pub(super) fn is_over(&self) -> bool {
        self.sides.iter().all(|side| side.endpoint.is_over())
    }

    /// Returns the earlier deadline of the endpoints.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.sides.iter().filter_map(|side| side.endpoint.poll_timeout()).min()
    }

    /// Handles the endpoints' deadlines.
    pub(super) fn handle_timeout(&mut self, cx: &mut Context) {
        for side in &mut self.sides {
            if side.endpoint.poll_timeout().is_some_and(|due| due <= cx.now) {
                side.endpoint.handle_timeout(cx);
            }
        }
        self.relay(cx.now);
    }

    /// Handles a segment that arrives on `leg`, which left its host at `sent`.
    pub(super) fn handle_segment(&mut self, leg: Leg, segment: &Segment, (sent, ce): (Time, bool), cx: &mut Context) {
        let side = &mut self.sides[leg as usize];
        let outcome = side.endpoint.handle_segment(segment, ce, cx);
        if outcome.delivered > 0 {
            side.arrived += outcome.delivered;
            let upto = side.arrived;
            self.sides[leg.other() as usize].births.push_back((upto, sent));
        }
        self.relay(cx.now);
    }

    /// Sets or lifts the limits of the radio leg.
    pub(super) fn direct(&mut self, target: Option<Target>, cx: &mut Context) {
        self.endpoint_mut(Leg::Radio).signal(&Signal::Target(target), cx);
        self.relay(cx.now);
    }

    /// Passes data, ends and failures from each side to the other.
    pub(super) fn relay(&mut self, now: Time) {
        for from in Leg::BOTH {
            let mut failed = false;
            let side = &mut self.sides[from as usize];
            while let Some(event) = side.endpoint.poll_event() {
                match event {
                    Event::Acked(bytes) => {
                        side.acked += bytes;
                        while side.births.front().is_some_and(|(end, _)| *end <= side.acked) {
                            side.births.pop_front();
                        }
                    }
                    Event::PeerClosed => side.peer_closed = true,
                    Event::Reset | Event::TimedOut => failed = true,
                    Event::Connected | Event::Delivered(_) | Event::Closed => {}
                }
            }
            if failed {
                self.sides[from.other() as usize].endpoint.abort();
                continue;
            }
            let [wired, radio] = &mut self.sides;
            let (from, to) = match from {
                Leg::Wired => (wired, radio),
                Leg::Radio => (radio, wired),
            };
            let room = self.unsent.saturating_sub(to.endpoint.unsent());
            let bytes = from.endpoint.readable().min(room);
            if bytes > 0 {
                let taken = to.endpoint.write(bytes);
                from.endpoint.read(taken, now);
            }
            let ended = from.peer_closed && from.endpoint.readable() == 0;
            if ended && !to.closed {
                to.closed = true;
                to.endpoint.close();
            }
        }
    }

    /// Returns the next segment that a side sends: its leg, the segment, and when its data left the host.
    pub(super) fn poll_transmit(&mut self, cx: &mut Context) -> Option<(Leg, Transmit, Option<Time>)> {
        for leg in Leg::BOTH {
            let side = &mut self.sides[leg as usize];
            if let Some(transmit) = side.endpoint.poll_transmit(cx) {
                let born = (transmit.segment.len > 0).then(|| side.born(transmit.segment.seq)).flatten();
                // There is room for more.
                self.relay(cx.now);
                return Some((leg, transmit, born));
            }
        }
        None
    }
}

impl Side {
    /// Returns when the data with the sequence number `seq` left the host.
    fn born(&self, seq: u32) -> Option<Time> {
        let ahead = seq.wrapping_sub(self.first).wrapping_sub(self.acked as u32);
        let offset = self.acked + u64::from(ahead);
        let at = self.births.partition_point(|(end, _)| *end <= offset);
        self.births.get(at).map(|&(_, sent)| sent)
    }
}
