//! Packet captures (pcap, pcapng): the packets of each flow and their times.
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

use crate::packets::{Packet, Reader, ip_packet};
use crate::{Error, Noted, Opportunities, choose};

/// Maximum number of flows; packets of further flows are left out.
pub const MAX_FLOWS: usize = 10_000;
/// Maximum number of packets.
const MAX_PACKETS: usize = 50_000_000;
/// Seconds without a packet at the end of a capture that are worth a note.
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

/// The packets of a capture, by flow.
#[derive(Debug, Default)]
pub struct Capture {
    /// For each flow: nanoseconds since the first packet of the file, and the size of the IP packet in bytes.
    flows: BTreeMap<Flow, Vec<(u64, u32)>>,
    /// Flows of connections that ended (FIN or RST of either end), and did not begin anew.
    ended: BTreeSet<Flow>,
    /// Nanoseconds from the first packet of the file to the latest.
    end: u64,
    /// Packets that were not IP, were unreadable, had no time, or belonged to flows beyond the limit.
    pub left_out: u64,
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
}

/// Reads a capture.
///
/// # Errors
/// [`Error::File`] if it is not a capture, is damaged, or has no IP packet; [`Error::Io`].
pub fn read(from: impl Read) -> Result<Capture, Error> {
    let mut capture = Capture::default();
    let mut reader = Reader::new(from)?;
    let (mut first, mut packets) = (None, 0);
    while let Some(packet) = reader.next_packet()? {
        packets += 1;
        if packets > MAX_PACKETS {
            return Err(Error::File("more than 50 million packets: split it (editcap -c)".to_owned()));
        }
        // Captures made on several processors are not strictly in order.
        capture.note(&packet, packet.at.saturating_sub(*first.get_or_insert(packet.at)));
    }
    if reader.is_cut_short() {
        return Err(Error::File("damaged: truncated within a packet".to_owned()));
    }
    capture.left_out += reader.without_time();
    if packets == 0 && reader.without_time() > 0 {
        return Err(Error::File("its packets have no times (simple packet blocks)".to_owned()));
    }
    if capture.flows.is_empty() {
        return Err(Error::File("contains no IP packet".to_owned()));
    }
    Ok(capture)
}

impl Capture {
    fn note(&mut self, packet: &Packet<'_>, at: u64) {
        self.end = self.end.max(at);
        let Some((flow, len, state)) = flow(packet) else {
            self.left_out += 1;
            return;
        };
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&flow) {
            self.left_out += 1;
            return;
        }
        self.flows.entry(flow).or_default().push((at, len));
        match state {
            State::Goes => {}
            State::Begins => {
                self.ended.remove(&flow);
                self.ended.remove(&flow.reversed());
            }
            State::Ends => self.ended.extend([flow, flow.reversed()]),
        }
    }

    /// Returns the flows with their packets and bytes, largest first.
    pub fn flows(&self) -> Vec<(Flow, u64, u64)> {
        let sum = |packets: &[(u64, u32)]| packets.iter().map(|&(_, len)| u64::from(len)).sum();
        let mut all: Vec<(Flow, u64, u64)> =
            self.flows.iter().map(|(flow, packets)| (*flow, packets.len() as u64, sum(packets))).collect();
        all.sort_by_key(|&(flow, _, bytes)| (std::cmp::Reverse(bytes), flow));
        all
    }

    /// Returns the delivery opportunities of the selected packets, from `begin` seconds after the first of them, for
    /// `length` seconds. The trace ends with the capture, so that an outage at its end is in it; but where all selected
    /// connections had ended before, it ends with their last packet.
    ///
    /// # Errors
    /// [`Error::Choose`] if nothing was selected and there are several flows; [`Error::File`] if no packet matches.
    pub fn trace(&self, which: &Which, begin: f64, length: Option<f64>) -> Result<Noted<Trace>, Error> {
        let chosen: Vec<&Flow> = self.flows.keys().filter(|flow| which.takes(flow)).collect();
        let names = || self.flows().iter().map(|(flow, ..)| format!("`{flow}`")).collect();
        if chosen.is_empty() {
            return Err(choose("no packet matches --flow, --from and --to", names()));
        }
        if which.is_open() && chosen.len() > 1 {
            return Err(choose("several flows in the capture: select one with --flow, or --from and --to", names()));
        }
        let mut packets: Vec<(u64, u32)> = chosen.iter().flat_map(|flow| &self.flows[flow]).copied().collect();
        packets.sort_by_key(|&(at, _)| at);
        let (first, last) = (packets[0].0, packets[packets.len() - 1].0);
        let has_ended = chosen.iter().all(|flow| self.ended.contains(flow));
        let end = if has_ended { last } else { self.end };
        let mut notes = Vec::new();
        let silence = (end - last) as f64 / 1e9;
        if silence >= SILENCE_S && length.is_none_or(|length| begin + length > (last - first) as f64 / 1e9) {
            let at = (last - first) as f64 / 1e9;
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

/// Returns the flow of a captured packet, the size of its IP packet in bytes, and what it says of the connection.
fn flow(packet: &Packet<'_>) -> Option<(Flow, u32, State)> {
    let ip = ip_packet(packet.link, packet.data)?;
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
