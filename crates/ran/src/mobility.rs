//! How a UE changes its cell, step by step.
//!
//! Event A3 triggers, and the UE sends a measurement report on SRB1 ([`crate::signalling`]). The cell that receives it
//! prepares the handover and sends the command the same way. Once the UE has it, its old cell stops, and RLC is
//! re-established at both ends (36.331 5.3.5.4, 36.323 5.2.2): with forwarding everything that the UE has not got is sent
//! again in the target. After the interruption the target may serve it, and the UE confirms the change. If the target
//! cannot be reached until T304 ends, or the radio link is lost, the UE looks for the cell that it hears best and
//! re-establishes its connection there (36.331 5.3.7).
//!
//! A command that RLC gives up after its last retransmission ends the handover. The UE knows nothing of it: its next
//! report starts another one, or its radio link fails.
//!
//! Deviations: the old cell serves the UE until the UE has the command; after a command that was given up, SRB1 begins
//! anew at both ends, although nothing tells the UE so; every cell has the UE's context, so a re-establishment never ends
//! in idle mode; the packets that are
//! forwarded reach the target within the interruption; a cell that is out of sync is tried again every ten milliseconds.

use core::fmt;

use aqm::{Drops, Packet};
use channel::Direction;
use units::{Span, Time};

use crate::calendar::Kind;
use crate::mac::adaptation::decibels;
use crate::network::{self, Delivery, Io, Ran, strongest};
use crate::pdcp::Keep;
use crate::signalling::{self, Message, Signal};
use crate::stats::{Event, Sink, Step};
use crate::ue::{Link, Ue};

/// Between attempts to reach a cell.
const RETRY: Span = Span::from_millis(10);

/// Why [`Ran::hand_over`] does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such cell.
    NoSuchCell,
    /// The cell serves the UE already.
    OwnCell,
    /// The UE is being handed over to this cell.
    UnderWay {
        /// Which cell that is.
        target: u32,
    },
    /// No cell serves the UE: it has lost its radio link and looks for one.
    NotServed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NoSuchCell => "there is no such cell",
            Refused::OwnCell => "this cell serves the UE already",
            Refused::UnderWay { .. } => "the UE is being handed over already",
            Refused::NotServed => "no cell serves the UE: it has lost its radio link",
        })
    }
}

impl std::error::Error for Refused {}

impl<P: Packet> Ran<P> {
    /// Hands `ue` over to `cell` as if a measurement report had arrived at `now`: the command is sent after the preparation,
    /// and may be lost; the target may be out of reach.
    ///
    /// The rules go on as before. A UE that hears another cell better than its new one is handed over again by A3, which
    /// is to be off for it to stay.
    pub fn hand_over(&mut self, ue: u32, cell: u32, now: Time, sink: &mut impl Sink) -> Result<(), Refused> {
        self.reach(now);
        let state = &mut self.ues[ue as usize];
        match state.link {
            _ if cell as usize >= self.cells.len() => return Err(Refused::NoSuchCell),
            Link::Searching { .. } => return Err(Refused::NotServed),
            Link::Preparing { target } | Link::Commanded { target } | Link::Moving { target, .. } => {
                return Err(Refused::UnderWay { target: target as u32 });
            }
            Link::Connected if state.serving == cell as usize => return Err(Refused::OwnCell),
            Link::Connected => {}
        }
        self.prepare(ue, cell as usize, now, sink);
        Ok(())
    }

    /// The old cell prepares the change to `target`.
    fn prepare<S: Sink>(&mut self, ue: u32, target: usize, now: Time, sink: &mut S) {
        self.ues[ue as usize].link = Link::Preparing { target };
        tell(sink, now, ue, Step::Preparing { target: target as u32 });
        self.note_after(self.handover.preparation, now, ue, Kind::Mobility);
    }

    /// The channel of `ue` or its cell is not what it was: it measures from `now` on, or looks for a cell again.
    pub(crate) fn wake(&mut self, ue: u32, now: Time) {
        let state = &mut self.ues[ue as usize];
        let slot = state.slots.next_after(now);
        if core::mem::take(&mut state.dormant) {
            self.note(slot, ue, Kind::Mobility, 0);
        } else if state.is_served() {
            self.note_measurement(ue, slot);
        }
    }

    /// Notes that something is due for `ue` after `pause`, rounded up to slots of its cell.
    fn note_after(&mut self, pause: Span, now: Time, ue: u32, kind: Kind) {
        let slots = self.ues[ue as usize].slots;
        self.note(slots.next_after(now) + slots.spanning(pause), ue, kind, 0);
    }

    /// Notes that `ue` measures in `slot`, if nothing is noted yet and it can make a difference.
    pub(crate) fn note_measurement(&mut self, ue: u32, slot: u64) {
        let state = &mut self.ues[ue as usize];
        let now = state.slots.start(slot);
        if !state.measures && self.measuring_matters(ue, now) {
            self.ues[ue as usize].measures = true;
            self.note(slot, ue, Kind::Measure, 0);
        }
    }

    /// Whether the link of `ue` or its cell may become another one by what it measures from `now` on.
    fn measuring_matters(&mut self, ue: u32, now: Time) -> bool {
        let state = &mut self.ues[ue as usize];
        if state.air.varies() {
            return true;
        }
        if !state.is_served() {
            return false;
        }
        let Ue { air, measurements, serving, .. } = state;
        let settled = measurements.are_settled(self.handover.a3.as_ref(), *serving, |cell| air.rsrp(cell, now));
        !settled || state.sync.is_in_doubt() || self.sinr_db(ue, now) < self.handover.link.q_out_db
    }

    pub(crate) fn measure<D: Drops<P>, S: Sink>(&mut self, index: u32, now: Time, io: &mut Io<'_, D, S>) {
        let ue = &mut self.ues[index as usize];
        let next = ue.slots.next_after(now) + ue.slots.spanning(self.handover.period).max(1);
        ue.measures = false;
        for cell in 0..self.cells.len() {
            let rsrp_dbm = ue.air.rsrp(cell, now);
            ue.measurements.measured(cell, rsrp_dbm);
            if S::LISTENS {
                let rsrq_db = ue.air.rsrq(cell, now);
                let serving = cell == ue.serving && ue.is_served();
                let event = Event::Measured { ue: index, cell: cell as u32, rsrp_dbm, rsrq_db, serving };
                io.sink.event(now, &event);
            }
        }
        let sinr_db = self.sinr_db(index, now);
        let ue = &mut self.ues[index as usize];
        if ue.is_served() && ue.sync.indicate(&self.handover.link, sinr_db, now) {
            self.lose_link(index, now, io);
        } else if ue.is_served() {
            self.evaluate_a3(index, now, io);
        }
        self.note_measurement(index, next);
    }

    fn evaluate_a3<D: Drops<P>, S: Sink>(&mut self, index: u32, now: Time, io: &mut Io<'_, D, S>) {
        let ue = &mut self.ues[index as usize];
        if let Some(a3) = &self.handover.a3
            && let Some(report) = ue.measurements.a3(a3, ue.serving, now)
        {
            tell(io.sink, now, index, Step::Triggered { target: report.best as u32 });
            self.signal(index, Direction::Uplink, Message::Report(report), now, io);
        }
    }

    pub(crate) fn mobility_step<D: Drops<P>, S: Sink>(&mut self, index: u32, now: Time, io: &mut Io<'_, D, S>) {
        match self.ues[index as usize].link {
            Link::Connected | Link::Commanded { .. } => {}
            Link::Preparing { target } => {
                self.ues[index as usize].link = Link::Commanded { target };
                let command = Message::Command { target, bytes: self.handover.command_bytes };
                self.signal(index, Direction::Downlink, command, now, io);
            }
            Link::Moving { target, since, deadline } => {
                if self.reaches(index, target, now) {
                    self.ues[index as usize].stats.handovers += 1;
                    self.signal(index, Direction::Uplink, Message::Complete, now, io);
                    self.connect(index, since, now, io);
                } else if now + RETRY <= deadline {
                    self.note_after(RETRY, now, index, Kind::Mobility);
                } else {
                    let ue = &mut self.ues[index as usize];
                    ue.stats.handover_failures += 1;
                    ue.link = Link::Searching { since };
                    tell(io.sink, now, index, Step::Failed);
                    let found = deadline.saturating_since(now) + self.handover.reestablishment;
                    self.note_after(found, now, index, Kind::Mobility);
                }
            }
            Link::Searching { since } => {
                let cells = self.cells.len();
                let target = strongest(&mut self.ues[index as usize].air, cells, now);
                if self.reaches(index, target, now) {
                    self.connect(index, since, now, io);
                } else if self.ues[index as usize].air.varies() {
                    self.note_after(RETRY, now, index, Kind::Mobility);
                } else {
                    self.ues[index as usize].dormant = true;
                }
            }
        }
    }

    /// `message` goes `way` on SRB1.
    fn signal<D: Drops<P>, S: Sink>(
        &mut self,
        index: u32,
        way: Direction,
        message: Message,
        now: Time,
        io: &mut Io<'_, D, S>,
    ) {
        let ue = &mut self.ues[index as usize];
        if !self.cells[ue.serving].mac.rat.carries_signalling() {
            return self.heed(index, message, now, io);
        }
        let srb = ue.srb.get_or_insert_with(|| Box::new(signalling::bearer()));
        srb.enqueue(way, Signal::new(message, now), now, &mut |_, _| {});
        match way {
            Direction::Downlink => self.cells[ue.serving].downlink.activate(index),
            Direction::Uplink => self.look_at_uplink(index, now),
        }
        self.note_rlc(index);
    }

    /// Acts on the messages that have arrived.
    pub(crate) fn heed_messages<D: Drops<P>, S: Sink>(&mut self, index: u32, now: Time, io: &mut Io<'_, D, S>) {
        let mut messages = core::mem::take(&mut self.messages);
        for message in messages.drain(..) {
            self.heed(index, message, now, io);
        }
        self.messages = messages;
    }

    fn heed<D: Drops<P>, S: Sink>(&mut self, index: u32, message: Message, now: Time, io: &mut Io<'_, D, S>) {
        let ue = &self.ues[index as usize];
        match (message, ue.link) {
            (Message::Report(report), Link::Connected) => self.prepare(index, report.best, now, io.sink),
            (Message::Command { target, .. }, Link::Commanded { .. }) => {
                let source = ue.serving as u32;
                tell(io.sink, now, index, Step::Left { source, target: target as u32 });
                let link = Link::Moving { target, since: now, deadline: now + self.handover.t304 };
                self.leave(index, link, self.handover.interruption, now, io);
            }
            // A report while a handover is prepared changes nothing; the target has heard the UE before it confirms.
            _ => {}
        }
    }

    /// RLC has given up the command to `index`.
    pub(crate) fn lose_command<D: Drops<P>, S: Sink>(&mut self, index: u32, now: Time, io: &mut Io<'_, D, S>) {
        let Ran { ues, messages, .. } = self;
        let ue = &mut ues[index as usize];
        if let Some(srb) = &mut ue.srb {
            let mut deliver = |_, signal: Signal, _| messages.push(signal.message);
            srb.reestablish(Keep::Nothing, Keep::All, now, &mut deliver, &mut |_, _| {});
        }
        if matches!(ue.link, Link::Commanded { .. }) {
            ue.link = Link::Connected;
            tell(io.sink, now, index, Step::CommandLost);
        }
        self.heed_messages(index, now, io);
    }

    /// The radio link of `index` is lost.
    pub(crate) fn lose_link<D: Drops<P>, S: Sink>(&mut self, index: u32, now: Time, io: &mut Io<'_, D, S>) {
        let ue = &mut self.ues[index as usize];
        if !ue.is_served() {
            return;
        }
        ue.stats.link_failures += 1;
        tell(io.sink, now, index, Step::LinkLost { source: ue.serving as u32 });
        self.leave(index, Link::Searching { since: now }, self.handover.reestablishment, now, io);
    }

    /// No cell serves `index` any more; the next step of `link` is due after `pause`.
    fn leave<D: Drops<P>, S: Sink>(&mut self, index: u32, link: Link, pause: Span, now: Time, io: &mut Io<'_, D, S>) {
        let Ran { ues, cells, outbox, handover, .. } = self;
        let ue = &mut ues[index as usize];
        cells[ue.serving].downlink.remove(index);
        cells[ue.serving].uplink.remove(index);
        ue.leave();
        ue.link = link;
        // What the UE has not sent successfully is its own to send again; the network's has to be forwarded.
        let downlink = if handover.forwarding { Keep::All } else { Keep::Nothing };
        for bearer in &mut ue.bearers {
            bearer.rlc.reestablish(
                downlink,
                Keep::All,
                now,
                &mut |direction, packet, times| {
                    outbox.push_back(Delivery { ue: index, direction, packet, times });
                },
                io.drops,
            );
        }
        ue.hand_down(Direction::Downlink, now, io.drops);
        ue.hand_down(Direction::Uplink, now, io.drops);
        let slots = ue.slots;
        self.note_rlc(index);
        self.note_measurement(index, slots.next_after(now) + slots.spanning(self.handover.period).max(1));
        self.note_after(pause, now, index, Kind::Mobility);
    }

    /// The serving cell serves `index` from now on.
    fn connect<D: Drops<P>, S: Sink>(&mut self, index: u32, since: Time, now: Time, io: &mut Io<'_, D, S>) {
        let ue = &mut self.ues[index as usize];
        ue.link = Link::Connected;
        let step = Step::Connected { cell: ue.serving as u32, interruption: now.saturating_since(since) };
        tell(io.sink, now, index, step);
        self.touched(index, now, io);
        self.wake(index, now);
        let ue = &mut self.ues[index as usize];
        let mac = &self.cells[ue.serving].mac;
        if ue.is_served() && ue.had_data != 0 && mac.rat.reports_buffers() {
            // The message that completes the change of the cell carries a report.
            ue.believed.asked = mac.requests.first_grant;
            self.look_at_belief(index);
        }
    }

    /// Whether `index` can be served by `target`; it is the serving cell then.
    fn reaches(&mut self, index: u32, target: usize, now: Time) -> bool {
        self.ues[index as usize].tune(target, &self.cells[target]);
        self.sinr_db(index, now) >= self.handover.link.q_out_db
    }

    /// The serving cell's mean SINR at a UE in dB.
    fn sinr_db(&mut self, index: u32, now: Time) -> f64 {
        let ue = &mut self.ues[index as usize];
        ue.hear(now);
        decibels(f64::from(ue.sinr.mean()))
    }
}

fn tell<S: Sink>(sink: &mut S, now: Time, ue: u32, step: Step) {
    network::tell(sink, now, || Event::Mobility { ue, step });
}
