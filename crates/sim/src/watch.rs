//! What happens to single packets, for those who ask: the table of events, and captures.

use crate::Error;
use crate::packet::{Body, End, Packet, Parcel};
use aqm::{DropReason, Packet as _};
use record::tables::{EventRow, Events};
use record::{Capture, PacketView, Transport};
use std::net::{Ipv4Addr, SocketAddrV4};
use tcp::segment::Flags;
use units::Time;

/// The port of the end that a flow's data goes to; each flow adds its number.
const PORT_TO: u16 = 5_000;
/// The first port of the other end; each connection adds its number.
const PORT_FROM: u16 = 10_000;

/// Watches the packets of one run.
pub(crate) struct Watch {
    pub(crate) point: u32,
    pub(crate) run: u32,
    /// The table of events, if it is asked for.
    pub(crate) events: Option<Events>,
    pub(crate) captures: Option<Capture>,
    /// By link: the interface in the capture, if the link is captured.
    pub(crate) interfaces: Vec<Option<u32>>,
    pub(crate) links: Vec<String>,
    /// By flow: its name, and the hosts of its two ends by number.
    pub(crate) flows: Vec<(String, [u32; 2])>,
    /// What controllers told and is not in the table yet.
    pub(crate) log: Vec<cc::Event>,
    /// The first failure to write a capture.
    pub(crate) failure: Option<Error>,
}

impl Watch {
    pub(crate) fn sent(&mut self, packet: &Packet, parcel: &Parcel, now: Time) {
        self.note("send", None, (packet, parcel), "", now);
    }

    pub(crate) fn received(&mut self, packet: &Packet, parcel: &Parcel, now: Time) {
        self.note("receive", None, (packet, parcel), "", now);
    }

    pub(crate) fn entered(&mut self, link: u32, packet: &Packet, parcel: &Parcel, now: Time) {
        self.note("enqueue", Some(link), (packet, parcel), "", now);
    }

    pub(crate) fn left(&mut self, link: u32, packet: &Packet, parcel: &Parcel, now: Time) {
        let detail = if packet.ecn() == aqm::Ecn::Ce { "ce" } else { "" };
        self.note("deliver", Some(link), (packet, parcel), detail, now);
        if let Some(interface) = self.interfaces[link as usize] {
            self.capture(interface, packet, parcel, now);
        }
    }

    pub(crate) fn lost(&mut self, link: u32, packet: &Packet, parcel: &Parcel, reason: DropReason, now: Time) {
        let reason = match reason {
            DropReason::Overflow => "overflow",
            DropReason::Control => "control",
            DropReason::Loss => "loss",
        };
        self.note("drop", Some(link), (packet, parcel), reason, now);
    }

    /// Where controllers tell of their state changes.
    pub(crate) fn log(&mut self) -> Option<&mut Vec<cc::Event>> {
        self.events.is_some().then_some(&mut self.log)
    }

    /// What the controller of a flow's sender told.
    pub(crate) fn states(&mut self, flow: u32, connection: u32, now: Time) {
        for event in std::mem::take(&mut self.log) {
            let detail = match event {
                cc::Event::SlowStartExit { cause, cwnd } => format!("slow start left at {cwnd} segments: {cause:?}"),
                cc::Event::State(state) => state.to_owned(),
            };
            self.state(flow, connection, &detail, now);
        }
    }

    fn state(&mut self, flow: u32, connection: u32, detail: &str, now: Time) {
        let Some(events) = &mut self.events else { return };
        events.push(&EventRow {
            point: self.point,
            run: self.run,
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

    /// Ends the captures and gives out the table.
    pub(crate) fn finish(self) -> Result<Events, Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let Some(capture) = self.captures {
            capture.finish()?;
        }
        Ok(self.events.unwrap_or_default())
    }

    fn note(&mut self, kind: &str, link: Option<u32>, (packet, parcel): (&Packet, &Parcel), detail: &str, now: Time) {
        let Some(events) = &mut self.events else { return };
        let (seq, ack) = match &parcel.body {
            Body::Tcp(s) => (u64::from(s.seq), if s.flags.has(Flags::ACK) { u64::from(s.ack) } else { 0 }),
            Body::Udp { sequence, .. } => (*sequence, 0),
        };
        events.push(&EventRow {
            point: self.point,
            run: self.run,
            t_ns: now.as_nanos(),
            kind,
            flow: &self.flows[parcel.owner.flow as usize].0,
            conn: parcel.owner.connection,
            link: link.map_or("", |l| &self.links[l as usize]),
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
            Body::Tcp(segment) => Transport::Tcp(segment),
            Body::Udp { payload, .. } => Transport::Udp(*payload as u16),
        };
        let view = PacketView { time: now, source, destination, ecn: packet.ecn() as u8, transport };
        if let Err(error) = capture.packet(interface, &view) {
            self.captures = None;
            self.failure = Some(error.into());
        }
    }
}
