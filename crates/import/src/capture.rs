//! Packet captures (pcap, pcapng): the packets of each flow and their times.
//!
//! A packet that passes several interfaces of a router, or a tunnel and the interface below it, is in a file once for each.
//! Each interface of a pcapng file, or of a Linux cooked capture of version 2 (`tcpdump -i any`), is therefore a vantage point
//! of its own. What one of them has twice counts once ([`twice`](crate::twice)). The flows of packets in tunnels (GTP-U) are those
//! inside ([`tunnel`](crate::tunnel)), and a packet in fragments counts with the last of them ([`fragments`](crate::fragments)).
//!
//! Sizes are those of the IP packets according to their headers, even if a packet was captured only in part.
//!
//! A capture shows what was *delivered*, which equals the link's capacity only while its queue was never empty. The
//! best input is therefore a capture at the receiver of a saturating flow, such as a bulk download.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use link::trace::Trace;
use wire::ip::{DCCP, Fragment, SCTP, TCP, UDP, UDP_LITE, View};
use wire::{Flags, Headers, Transport};

use crate::counted::Counted;
use crate::packets::{Others, Packet, Reader, ip_packet};
use crate::{Error, Noted, Opportunities, choose, shown};

/// Maximum number of flows; packets of further flows are left out.
pub const MAX_FLOWS: usize = 10_000;
/// Maximum number of packets.
const MAX_PACKETS: usize = 50_000_000;
/// Seconds without a packet at the end of a capture from which on they are an outage, and worth a note.
const SILENCE_S: f64 = 1.0;

/// One direction of a connection: the packets of one protocol from one address and port to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// The IP protocol number.
    pub protocol: u8,
    /// Source address; the port is 0 for protocols without ports.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
}

impl Flow {
    /// The other direction.
    fn reversed(&self) -> Flow {
        Flow { protocol: self.protocol, from: self.to, to: self.from }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            TCP => write!(f, "tcp")?,
            UDP => write!(f, "udp")?,
            SCTP => write!(f, "sctp")?,
            DCCP => write!(f, "dccp")?,
            UDP_LITE => write!(f, "udplite")?,
            other => write!(f, "ip-{other}")?,
        }
        write!(f, " {} > {}", self.from, self.to)
    }
}

/// The packets of a capture, by interface and flow.
#[derive(Debug, Default)]
pub struct Capture {
    /// For each flow at a vantage point: nanoseconds since the first packet of the file, and the size of the IP packet in bytes.
    flows: BTreeMap<(u32, Flow), Vec<(u64, u32)>>,
    /// The names of the vantage points.
    interfaces: BTreeMap<u32, String>,
    /// Flows of connections that ended (FIN or RST of either end), and did not begin anew.
    ended: BTreeSet<(u32, Flow)>,
    /// Nanoseconds from the first packet of the file to the latest.
    end: u64,
    /// What was left out; each is a line without a full stop.
    pub notes: Vec<String>,
}

/// Captures made on several processors are out of order by less than this.
const BACK_NS: u64 = 1_000_000;

/// What was left out or taken apart.
#[derive(Debug, Default)]
struct Frames {
    /// Frames without an IP packet.
    foreign: Others,
    /// Packets whose headers could not be read.
    damaged: u64,
    /// Packets of flows beyond the limit.
    beyond: u64,
    /// Packets that are clearly earlier than one before them in the file, and by how many nanoseconds at most.
    back: (u64, u64),
    counted: Counted,
}

/// A flow of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The flow.
    pub flow: Flow,
    /// The interface at which it was captured, if packets of several were.
    pub interface: Option<String>,
    /// Number of its packets.
    pub packets: u64,
    /// Bytes of its IP packets.
    pub bytes: u64,
}

/// Selects packets of a capture.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// The flow, as formatted by [`Flow`]; otherwise all packets with matching addresses.
    pub flow: Option<String>,
    /// Only packets from this address.
    pub from: Option<IpAddr>,
    /// Only packets to this address.
    pub to: Option<IpAddr>,
    /// Only packets of the interface with this name, or number if it has none.
    pub interface: Option<String>,
}

/// Reads a capture, which may be compressed with gzip.
///
/// # Errors
/// [`Error::File`] if it is not a capture, is damaged, or has no IP packet; [`Error::Io`].
pub fn read(from: impl Read) -> Result<Capture, Error> {
    let mut capture = Capture::default();
    let mut reader = Reader::new(from)?;
    let mut frames = Frames::default();
    let (mut first, mut latest, mut packets) = (None, 0_u64, 0);
    // The latest packet's interface, and its vantage point.
    let mut place = None;
    while let Some(packet) = reader.next_packet()? {
        packets += 1;
        if packets > MAX_PACKETS {
            return Err(Error::File("more than 50 million packets: split it (editcap -c)".to_owned()));
        }
        // Captures made on several processors are not strictly in order.
        let (at, interface) = (packet.at.saturating_sub(*first.get_or_insert(packet.at)), packet.interface);
        frames.back(latest.saturating_sub(packet.at));
        latest = latest.max(packet.at);
        capture.end = capture.end.max(at);
        let Some(seen) = frames.take(&packet) else { continue };
        let vantage = match place {
            Some((of, vantage)) if of == interface => vantage,
            _ => capture.vantage_point(&reader, interface),
        };
        place = Some((interface, vantage));
        frames.beyond += u64::from(!capture.note(vantage, seen, at));
    }
    capture.notes = frames.notes(&reader);
    if capture.flows.is_empty() {
        let without = reader.without_time();
        return Err(Error::File(match packets {
            0 if without > 0 => "its packets have no times (simple packet blocks)".to_owned(),
            0 => {
                let unknown = reader.unknown_blocks_note().map_or_else(String::new, |note| format!(": {note}"));
                format!("contains no IP packet{unknown}")
            }
            _ => format!("contains no IP packet: {}", capture.notes.join("; ")),
        }));
    }
    Ok(capture)
}

/// A packet of a flow: its size in bytes, and what it says of the connection.
type Seen = (Flow, u32, State);

impl Frames {
    /// Returns the packet in a frame; `None` if it does not count now.
    fn take(&mut self, frame: &Packet<'_>) -> Option<Seen> {
        let Some(ip) = ip_packet(frame.link, frame.data) else {
            self.foreign.note(frame);
            return None;
        };
        let len = frame.len as usize - (frame.data.len() - ip.len());
        let Ok(headers) = Headers::parse_captured(ip, len) else {
            self.damaged += 1;
            return None;
        };
        let counted = self.counted.take(headers, ip, (frame.at, frame.interface), with_ports);
        counted.map(|headers| seen(&headers))
    }

    /// Counts a packet that is so many nanoseconds earlier than one before it, unless processors alone make such differences.
    fn back(&mut self, ns: u64) {
        if ns >= BACK_NS {
            self.back = (self.back.0 + 1, self.back.1.max(ns));
        }
    }

    /// What to say of what was left out or taken apart.
    fn notes<R: Read>(&mut self, reader: &Reader<R>) -> Vec<String> {
        let mut notes = Vec::new();
        if reader.is_cut_short() {
            notes.push("ends within a packet; everything before it was read".to_owned());
        }
        notes.extend(reader.without_time_note());
        notes.extend(reader.unknown_blocks_note());
        let all = self.foreign.total();
        if all > 0 {
            let mut kinds: Vec<(&str, u64)> = self.foreign.iter().collect();
            kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            notes.push(format!("{all} frames have no IP packet and are left out ({})", kinds.join(", ")));
        }
        notes.extend(self.counted.notes());
        if self.damaged > 0 {
            notes.push(format!("{} packets have damaged headers and are left out", self.damaged));
        }
        let (count, most) = self.back;
        if count > 0 {
            let by = format!("by up to {:.3} s: they count in the order of their times", most as f64 / 1e9);
            notes.push(format!("{count} packets are earlier than one before them in the file, {by}"));
        }
        if self.beyond > 0 {
            notes.push(format!("{} packets of flows beyond the first {MAX_FLOWS} are left out", self.beyond));
        }
        notes
    }
}

impl Capture {
    /// Returns the vantage point of an interface, which is then known by name.
    fn vantage_point<R: Read>(&mut self, reader: &Reader<R>, interface: u32) -> u32 {
        let vantage = reader.vantage_point(interface);
        self.interfaces.entry(vantage).or_insert_with(|| reader.interface_label(vantage));
        vantage
    }

    /// Notes a packet; false if it is of one flow too many.
    fn note(&mut self, vantage: u32, (flow, len, state): Seen, at: u64) -> bool {
        let key = (vantage, flow);
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return false;
        }
        self.flows.entry(key).or_default().push((at, len));
        let back = (vantage, flow.reversed());
        match state {
            State::Goes => {}
            State::Begins => {
                self.ended.remove(&key);
                self.ended.remove(&back);
            }
            State::Ends => self.ended.extend([key, back]),
        }
        true
    }

    /// Returns the flows with their packets and bytes, by interface, largest first.
    pub fn flows(&self) -> Vec<Listed> {
        let list = |(&(vantage, flow), packets): (&(u32, Flow), &Vec<(u64, u32)>)| Listed {
            flow,
            interface: self.names_interface().then(|| self.interfaces[&vantage].clone()),
            packets: packets.len() as u64,
            bytes: packets.iter().map(|&(_, len)| u64::from(len)).sum(),
        };
        let mut all: Vec<Listed> = self.flows.iter().map(list).collect();
        all.sort_by(|a, b| (&a.interface, b.bytes, a.flow).cmp(&(&b.interface, a.bytes, b.flow)));
        all
    }

    /// Whether there are packets of several interfaces.
    fn names_interface(&self) -> bool {
        self.interfaces.len() > 1
    }

    /// Returns the delivery opportunities of the selected packets, from `begin` seconds after the first of them, for
    /// `length` seconds. The trace ends with the capture, so that an outage at its end is in it; but it ends with the last
    /// selected packet if the rest is less than a second, or all selected connections had ended.
    ///
    /// A packet may be in a file once for each interface that it passed: the selected packets are those of one.
    ///
    /// # Errors
    /// [`Error::Choose`] if nothing was selected and there are several flows, or packets of several interfaces were selected;
    /// [`Error::File`] if no packet matches.
    pub fn trace(&self, which: &Which, begin: f64, length: Option<f64>) -> Result<Noted<Trace>, Error> {
        let takes = |(vantage, flow): &&(u32, Flow)| {
            which.takes(flow) && which.interface.as_ref().is_none_or(|name| self.interfaces[vantage] == *name)
        };
        let chosen: Vec<&(u32, Flow)> = self.flows.keys().filter(takes).collect();
        let names = || {
            let mut names: Vec<String> = self.flows().iter().map(|listed| format!("`{}`", listed.flow)).collect();
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(name.clone()));
            names
        };
        if chosen.is_empty() {
            let is_known = |name: &String| self.interfaces.values().any(|one| one == name);
            if let Some(name) = which.interface.as_ref().filter(|name| !is_known(name)) {
                let of = self.interfaces.values().cloned().collect();
                return Err(choose(&format!("no packet of an interface `{}`", shown(name.as_bytes())), of));
            }
            return Err(choose("no packet matches --flow, --from, --to and --interface", names()));
        }
        let flows: BTreeSet<&Flow> = chosen.iter().map(|(_, flow)| flow).collect();
        if which.is_open() && flows.len() > 1 {
            return Err(choose("several flows in the capture: select one with --flow, or --from and --to", names()));
        }
        let vantages: BTreeSet<u32> = chosen.iter().map(|(vantage, _)| *vantage).collect();
        if vantages.len() > 1 {
            let of = vantages.iter().map(|vantage| self.interfaces[vantage].clone()).collect();
            let what = "the packets are of several interfaces, and may be in the file once for each: select one with --interface";
            return Err(choose(what, of));
        }
        let mut packets: Vec<(u64, u32)> = chosen.iter().flat_map(|key| &self.flows[*key]).copied().collect();
        packets.sort_by_key(|&(at, _)| at);
        let (first, last) = (packets[0].0, packets[packets.len() - 1].0);
        let silence = (self.end - last) as f64 / 1e9;
        let at = (last - first) as f64 / 1e9;
        // What waits for its last acknowledgement is no outage.
        let has_ended = chosen.iter().all(|key| self.ended.contains(key)) || silence < SILENCE_S && length.is_none();
        let (end, silence) = if has_ended { (last, 0.0) } else { (self.end, silence) };
        let mut notes = self.notes.clone();
        if silence >= SILENCE_S && length.is_none_or(|length| begin + length > at) {
            notes.push(format!(
                "no selected packet was captured in the last {silence:.1} s, which are an outage in the trace; if it was none, give \
                 --length {:.3}",
                (at - begin).max(0.001)
            ));
        }
        let mut sum = Opportunities::new(begin, length);
        for (at, len) in packets {
            sum.add((at - first) as f64 / 1e9, f64::from(len))?;
        }
        Ok(Noted { value: sum.finish((end - first) as f64 / 1e9)?, notes })
    }
}

impl Which {
    fn takes(&self, flow: &Flow) -> bool {
        self.flow.as_ref().is_none_or(|name| *name == flow.to_string())
            && self.from.is_none_or(|from| from == flow.from.ip())
            && self.to.is_none_or(|to| to == flow.to.ip())
    }

    fn is_open(&self) -> bool {
        self.flow.is_none() && self.from.is_none() && self.to.is_none()
    }
}

/// What a packet says of its connection.
#[derive(Clone, Copy)]
enum State {
    Begins,
    Goes,
    Ends,
}

/// Returns headers with the ports of protocols of which [`Headers`] has none.
#[inline]
fn with_ports(headers: Headers, ip: &[u8]) -> Headers {
    // RFC 9260, section 3.1; RFC 4340, section 5.1; RFC 3828, section 3.1: source and destination port are the first 4 bytes.
    let ports = || {
        let view = View::parse_captured(ip, ip.len()).ok().filter(|view| view.fragment != Fragment::Later)?;
        let &[a, b, c, d] = view.payload().first_chunk()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    };
    match headers.protocol {
        SCTP | DCCP | UDP_LITE => {
            let (source_port, destination_port) = ports().unwrap_or_default();
            Headers { source_port, destination_port, ..headers }
        }
        _ => headers,
    }
}

/// Returns what headers say of a flow and its connection.
#[inline]
fn seen(headers: &Headers) -> Seen {
    let state = match &headers.transport {
        Transport::Tcp(segment) if segment.flags.has(Flags::SYN) => State::Begins,
        Transport::Tcp(segment) if segment.flags.has(Flags::FIN) || segment.flags.has(Flags::RST) => State::Ends,
        _ => State::Goes,
    };
    let flow = Flow {
        protocol: headers.protocol,
        from: SocketAddr::new(headers.source, headers.source_port),
        to: SocketAddr::new(headers.destination, headers.destination_port),
    };
    (flow, headers.len, state)
}
