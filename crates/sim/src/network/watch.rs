//! Records of single packets, if requested: the table of events, and captures.

use super::packet::{Body, End, Packet, Parcel};
use super::route::Hop;
use crate::error::Error;
use crate::rows::RunId;
use aqm::{DropReason, Ecn, Packet as _};
use record::tables::{EventRow, Events};
use record::{Capture, PacketView, Transport};
use std::net::{Ipv4Addr, SocketAddrV4};
use units::{Span, Time};
use wire::Flags;

/// The port of the end that a flow's data goes to; each flow adds its number.
const PORT_TO: u16 = 5_000;
/// The first port of the other end; each connection adds its number.
const PORT_FROM: u16 = 10_000;

/// An event of a packet, or of a flow's sender.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Sent(Packet, Parcel),
    Received(Packet, Parcel),
    Entered(Hop, Packet, Parcel),
    Left(Hop, Packet, Parcel),
    Lost(Hop, Packet, Parcel, DropReason),
    State {
        flow: u32,
        connection: u32,
        detail: String,
    },
    /// Something was changed from outside.
    Command {
        link: String,
        detail: String,
    },
}

/// Returns the row of a change from outside.
pub(crate) fn command<'a>(id: RunId, link: &'a str, detail: &'a str, at: Time) -> EventRow<'a> {
    let RunId { point, run } = id;
    EventRow {
        point,
        run,
        t_ns: at.as_nanos(),
        kind: "command",
        link,
        detail,
        // It is about no packet.
        flow: "",
        conn: 0,
        towards: "",
        seq: 0,
        ack: 0,
        len: 0,
    }
}

/// Watches the packets of one run.
///
/// Of lanes it is told what happens ahead of its time ([`super`]), so that happenings are kept until everything
/// before a moment is known, and then written in the order of time ([`Watch::write_before`]).
pub(crate) struct Watch {
    pub(crate) id: RunId,
    /// The table of events, if requested.
    pub(crate) events: Option<Events>,
    /// What was changed from outside, without that table.
    pub(crate) commands: Events,
    pub(crate) captures: Option<Capture>,
    /// By link: the interface in the capture, if the link is captured.
    pub(crate) interfaces: Vec<Option<u32>>,
    /// By host: the same.
    pub(crate) at_hosts: Vec<Option<u32>>,
    pub(crate) links: Vec<String>,
    /// By medium: the names of its ports.
    pub(crate) ports: Vec<Vec<String>>,
    /// By flow: its name, and the hosts of its two ends by number.
    pub(crate) flows: Vec<(String, [u32; 2])>,
    /// Events of controllers that have not been recorded.
    pub(crate) log: Vec<cc::Event>,
    /// Events that have not been written.
    pub(crate) kept: Vec<(Time, Happening)>,
    /// The first failure to write a capture.
    pub(crate) failure: Option<Error>,
}

impl Watch {
    /// Something happened.
    pub(crate) fn note(&mut self, at: Time, what: Happening) {
        self.kept.push((at, what));
    }

    /// Writes the events before `moment`, all of which have been recorded.
    pub(crate) fn write_before(&mut self, moment: Time) {
        // Stable: what happened at once stays in the order in which it was noted.
        self.kept.sort_by_key(|&(at, _)| at);
        let known = self.kept.partition_point(|&(at, _)| at < moment);
        let mut kept = std::mem::take(&mut self.kept);
        for (at, what) in kept.drain(..known) {
            self.write(at, &what);
        }
        self.kept = kept;
    }

    fn write(&mut self, at: Time, what: &Happening) {
        match what {
            Happening::Sent(packet, parcel) => {
                self.row("send", None, packet, parcel, "", at);
                // What is on its way already is a middlebox's.
                if packet.hop() == 0 {
                    self.capture_at(parcel.towards.other(), packet, parcel, at);
                }
            }
            Happening::Received(packet, parcel) => {
                self.row("receive", None, packet, parcel, "", at);
                self.capture_at(parcel.towards, packet, parcel, at);
            }
            Happening::Entered(hop, packet, parcel) => self.row("enqueue", Some(*hop), packet, parcel, "", at),
            Happening::Left(hop, packet, parcel) => {
                let detail = if packet.ecn() == Ecn::Ce { "ce" } else { "" };
                self.row("deliver", Some(*hop), packet, parcel, detail, at);
                // A medium is no link with an interface.
                if let Hop::Link(link) = hop
                    && let Some(interface) = self.interfaces[*link as usize]
                {
                    self.capture(interface, packet, parcel, at);
                }
            }
            Happening::Lost(hop, packet, parcel, reason) => {
                let reason = match reason {
                    DropReason::Overflow => "overflow",
                    DropReason::Control => "control",
                    DropReason::Loss => "loss",
                };
                self.row("drop", Some(*hop), packet, parcel, reason, at);
            }
            Happening::State { flow, connection, detail } => self.state(*flow, *connection, detail, at),
            Happening::Command { link, detail } => {
                let row = command(self.id, link, detail, at);
                self.events.as_mut().unwrap_or(&mut self.commands).push(&row);
            }
        }
    }

    /// Receives the state changes of controllers.
    pub(crate) fn log(&mut self) -> Option<&mut Vec<cc::Event>> {
        self.events.is_some().then_some(&mut self.log)
    }

    /// An event of the controller of a flow's sender.
    pub(crate) fn states(&mut self, flow: u32, connection: u32, now: Time) {
        for event in std::mem::take(&mut self.log) {
            let detail = match event {
                cc::Event::SlowStartExit { cause, cwnd } => format!("slow start left at {cwnd} segments: {cause:?}"),
                cc::Event::State(state) => state.to_owned(),
            };
            self.note(now, Happening::State { flow, connection, detail });
        }
    }

    fn state(&mut self, flow: u32, connection: u32, detail: &str, now: Time) {
        let Some(events) = &mut self.events else { return };
        events.push(&EventRow {
            point: self.id.point,
            run: self.id.run,
            t_ns: now.as_nanos(),
            kind: "state",
            flow: &self.flows[flow as usize].0,
            conn: connection,
            link: "",
            towards: "",
            seq: 0,
            ack: 0,
            len: 0,
            detail,
        });
    }

    /// Ends the captures and returns the table. Events after `end` are dropped.
    pub(crate) fn finish(mut self, end: Time) -> Result<Events, Error> {
        self.write_before(end + Span::from_nanos(1));
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let Some(capture) = self.captures {
            capture.finish()?;
        }
        Ok(self.events.unwrap_or(self.commands))
    }

    fn row(&mut self, kind: &str, hop: Option<Hop>, packet: &Packet, parcel: &Parcel, detail: &str, now: Time) {
        let Some(events) = &mut self.events else { return };
        let (seq, ack) = match &parcel.body {
            Body::Tcp(tcp::Transmit { segment: s, .. }) => {
                (u64::from(s.seq), if s.flags.has(Flags::ACK) { u64::from(s.ack) } else { 0 })
            }
            Body::Udp { sequence, .. } => (*sequence, 0),
            Body::Visitor(_) => (0, 0),
        };
        events.push(&EventRow {
            point: self.id.point,
            run: self.id.run,
            t_ns: now.as_nanos(),
            kind,
            flow: &self.flows[parcel.owner.flow as usize].0,
            conn: parcel.owner.connection,
            link: match hop {
                None => "",
                Some(Hop::Link(link)) => &self.links[link as usize],
                Some(Hop::Medium(medium, port)) => &self.ports[usize::from(medium)][port.0 as usize],
                // Packets neither wait in it nor are lost.
                Some(Hop::Middlebox(_)) => "",
            },
            towards: match parcel.towards {
                End::From => "from",
                End::To => "to",
            },
            seq,
            ack,
            len: packet.len(),
            detail,
        });
    }

    /// Captures a packet at the host at an end of its flow, if that is captured.
    fn capture_at(&mut self, end: End, packet: &Packet, parcel: &Parcel, now: Time) {
        let host = self.flows[parcel.owner.flow as usize].1[end as usize];
        if let Some(interface) = self.at_hosts[host as usize] {
            self.capture(interface, packet, parcel, now);
        }
    }

    fn capture(&mut self, interface: u32, packet: &Packet, parcel: &Parcel, now: Time) {
        let Some(capture) = &mut self.captures else { return };
        let (_, hosts) = &self.flows[parcel.owner.flow as usize];
        let address = |end: End| {
            let [_, a, b, c] = (hosts[end as usize] + 1).to_be_bytes();
            Ipv4Addr::new(10, a, b, c)
        };
        // Ports of a real host are used again after 50,000 connections; here too.
        let from = SocketAddrV4::new(address(End::From), PORT_FROM + (parcel.owner.connection % 50_000) as u16);
        let to = SocketAddrV4::new(address(End::To), PORT_TO + (parcel.owner.flow % 5_000) as u16);
        let (source, destination) = match parcel.towards {
            End::To => (from, to),
            End::From => (to, from),
        };
        let transport = match &parcel.body {
            Body::Tcp(transmit) => Transport::Tcp(&transmit.segment),
            Body::Udp { payload, .. } => Transport::Udp(*payload as u16),
            // Whoever has the packet itself captures it.
            Body::Visitor(_) => return,
        };
        let view = PacketView { time: now, source, destination, ecn: packet.ecn() as u8, transport };
        if let Err(error) = capture.packet(interface, &view) {
            self.captures = None;
            self.failure = Some(error.into());
        }
    }
}
