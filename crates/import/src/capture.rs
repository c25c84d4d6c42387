//! Packet captures (pcap, pcapng): the packets of each flow and their times.
//!
//! A packet that passes several interfaces of a router, or a tunnel and the interface below it, is in a file once for each.
//! Each interface of a pcapng file, or of a Linux cooked capture of version 2 (`tcpdump -i any`), is therefore a vantage point
//! of its own.
//!
//! Sizes are those of the IP packets according to their headers, even if a packet was captured only in part.
//!
//! A capture shows what was *delivered*, which equals the link's capacity only while its queue was never empty. The
//! best input is therefore a capture at the receiver of a saturating flow, such as a bulk download.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxPacketHeaders, NetHeaders, TransportHeader};
use link::trace::Trace;

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
            6 => write!(f, "tcp")?,
            17 => write!(f, "udp")?,
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

/// Frames that were left out.
#[derive(Debug, Default)]
struct LeftOut {
    /// Frames without an IP packet.
    foreign: Others,
    /// Packets whose headers could not be read.
    damaged: u64,
    /// Packets of flows beyond the limit.
    beyond: u64,
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
    let mut left_out = LeftOut::default();
    let (mut first, mut packets) = (None, 0);
    // The latest packet's interface, and its vantage point.
    let mut place = None;
    while let Some(packet) = reader.next_packet()? {
        packets += 1;
        if packets > MAX_PACKETS {
            return Err(Error::File("more than 50 million packets: split it (editcap -c)".to_owned()));
        }
        // Captures made on several processors are not strictly in order.
        let (at, interface) = (packet.at.saturating_sub(*first.get_or_insert(packet.at)), packet.interface);
        capture.end = capture.end.max(at);
        let Some(seen) = left_out.flow(&packet) else { continue };
        let vantage = match place {
            Some((of, vantage)) if of == interface => vantage,
            _ => {
                let vantage = reader.vantage_point(interface);
                capture.interfaces.entry(vantage).or_insert_with(|| reader.interface_label(vantage));
                vantage
            }
        };
        place = Some((interface, vantage));
        capture.note(vantage, seen, at, &mut left_out);
    }
    capture.notes = left_out.notes(&reader);
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

impl LeftOut {
    /// Returns the flow of a packet, its size and what it says of the connection, or counts it.
    fn flow(&mut self, packet: &Packet<'_>) -> Option<(Flow, u32, State)> {
        let Some(ip) = ip_packet(packet.link, packet.data) else {
            self.foreign.note(packet);
            return None;
        };
        let seen = flow(packet, ip);
        self.damaged += u64::from(seen.is_none());
        seen
    }

    /// What to say of what was left out.
    fn notes<R: Read>(&self, reader: &Reader<R>) -> Vec<String> {
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
        if self.damaged > 0 {
            notes.push(format!("{} packets have damaged headers and are left out", self.damaged));
        }
        if self.beyond > 0 {
            notes.push(format!("{} packets of flows beyond the first {MAX_FLOWS} are left out", self.beyond));
        }
        notes
    }
}

impl Capture {
    fn note(&mut self, vantage: u32, (flow, len, state): (Flow, u32, State), at: u64, left_out: &mut LeftOut) {
        let key = (vantage, flow);
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            left_out.beyond += 1;
            return;
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

/// Returns the flow of a captured IP packet, its size in bytes, and what it says of the connection.
fn flow(packet: &Packet<'_>, ip: &[u8]) -> Option<(Flow, u32, State)> {
    let captured_of = packet.len - (packet.data.len() - ip.len()) as u32;
    let headers = LaxPacketHeaders::from_ip(ip).ok()?;
    let (source, destination, said, protocol) = match headers.net.as_ref()? {
        NetHeaders::Ipv4(ip, extensions) => {
            let protocol = extensions.auth.as_ref().map_or(ip.protocol, |auth| auth.next_header);
            (IpAddr::from(ip.source), IpAddr::from(ip.destination), u32::from(ip.total_len), protocol)
        }
        NetHeaders::Ipv6(ip, extensions) => {
            let protocol = extensions.next_header(ip.next_header).unwrap_or(ip.next_header);
            let len = if ip.payload_length == 0 { 0 } else { 40 + u32::from(ip.payload_length) };
            (IpAddr::from(ip.source), IpAddr::from(ip.destination), len, protocol)
        }
        NetHeaders::Arp(_) => return None,
    };
    let (sport, dport, state) = match &headers.transport {
        Some(TransportHeader::Tcp(tcp)) => {
            let state = match (tcp.syn, tcp.fin || tcp.rst) {
                (true, _) => State::Begins,
                (false, true) => State::Ends,
                (false, false) => State::Goes,
            };
            (tcp.source_port, tcp.destination_port, state)
        }
        Some(TransportHeader::Udp(udp)) => (udp.source_port, udp.destination_port, State::Goes),
        _ => (0, 0, State::Goes),
    };
    // With segmentation or receive offload, the length field may be zero.
    let len = if said == 0 { captured_of } else { said };
    let flow =
        Flow { protocol: protocol.0, from: SocketAddr::new(source, sport), to: SocketAddr::new(destination, dport) };
    Some((flow, len, state))
}
