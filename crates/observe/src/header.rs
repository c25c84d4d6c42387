//! Reads an IP packet's headers, and writes one thing into them: a congestion mark.
//!
//! Source: RFC 791, RFC 8200, RFC 9293, RFC 7323 (timestamps), RFC 2018 (SACK), RFC 792 and RFC 4443 (echo), RFC 3168
//! (ECN), RFC 1624 (incremental checksums), Linux's `rt_tos2priority`. The bytes are untrusted: a raw socket sends
//! anything. A buffer without a valid IP header, or shorter than the header says, is no packet; of the headers behind it as
//! much is read as possible.

use std::net::IpAddr;

use aqm::Ecn;
use etherparse::{
    IpNumber, Ipv4HeaderSlice, Ipv6ExtensionSlice, Ipv6ExtensionsSlice, Ipv6Header, Ipv6HeaderSlice, TcpHeaderSlice,
    TcpOptionElement, UdpHeader, UdpHeaderSlice, ip_number,
};

/// Linux's `ip_tos2prio`, by bits 1 to 4 of the TOS byte; of ECN it sees the higher bit and ignores it.
const PRIORITIES: [u8; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
/// Echo request and reply, by protocol.
const ECHO_V4: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];
const ECHO_LEN: usize = 8;
/// How Linux begins the options of a segment with timestamps: two no-ops, kind 8, length 10.
const ALIGNED_TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Odd constants without pattern (the fraction of pi), for [`mix`].
const SALT: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// The fields of an IP packet's headers that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// The protocol behind the IP header and its extensions.
    pub protocol: u8,
    /// The source port; 0 without ports, and in a fragment that is not the first.
    pub source_port: u16,
    /// The destination port; likewise.
    pub destination_port: u16,
    /// The whole TOS byte or traffic class: DSCP and ECN.
    pub tos: u8,
    /// Bytes of the packet with its IP header. What may follow them in the buffer is not part of it.
    pub len: u32,
    /// Bytes behind the transport header; behind the IP headers if no transport header could be read.
    pub payload_len: u32,
    /// The transport header.
    pub transport: Transport,
}

/// The fields of a packet's transport header that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Tcp),
    /// A UDP datagram.
    Udp,
    /// An ICMP echo request or reply.
    Echo(Echo),
    /// Anything else, and what could not be read.
    Other,
}

/// The TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// The flags of byte 13: [`Tcp::FIN`] and so on.
    pub flags: u8,
    /// The window as it is in the header, without its scale.
    pub window: u16,
    /// The value and the echo of its timestamps, if it has any.
    pub timestamps: Option<(u32, u32)>,
    /// The end of the first SACK block, which holds the segment that arrived last (RFC 2018, section 4).
    pub sacked: Option<u32>,
}

/// An ICMP echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Whether it is the reply.
    pub reply: bool,
    /// The identifier of the pinger.
    pub id: u16,
    /// The number of its request.
    pub seq: u16,
}

impl Tcp {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronises sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Resets the connection.
    pub const RST: u8 = 0x04;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

impl Header {
    /// Reads the headers of one IP packet.
    pub fn parse(packet: &[u8]) -> Option<Header> {
        match packet.first()? >> 4 {
            4 => Header::parse_v4(packet),
            6 => Header::parse_v6(packet),
            _ => None,
        }
    }

    fn parse_v4(packet: &[u8]) -> Option<Header> {
        let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
        let len = usize::from(ip.total_len());
        let payload = packet.get(ip.slice().len()..len)?;
        let first = ip.fragments_offset().value() == 0;
        let (source, destination) = (ip.source_addr().into(), ip.destination_addr().into());
        Some(Header::with_transport(source, destination, packet[1], len, ip.protocol().0, first, payload))
    }

    fn parse_v6(packet: &[u8]) -> Option<Header> {
        let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
        let len = Ipv6Header::LEN + usize::from(ip.payload_length());
        let payload = packet.get(Ipv6Header::LEN..len)?;
        let (protocol, first, payload) = match ip.next_header() {
            ip_number::TCP | ip_number::UDP | ip_number::IPV6_ICMP => (ip.next_header().0, true, payload),
            other => behind_extensions(other, payload),
        };
        let (source, destination) = (ip.source_addr().into(), ip.destination_addr().into());
        Some(Header::with_transport(source, destination, ip.traffic_class(), len, protocol, first, payload))
    }

    /// `first`: the transport header is in this packet, and not in an earlier fragment.
    fn with_transport(
        source: IpAddr,
        destination: IpAddr,
        tos: u8,
        len: usize,
        protocol: u8,
        first: bool,
        payload: &[u8],
    ) -> Header {
        let read = if first { Read::of(protocol, payload) } else { None };
        let read = read.unwrap_or(Read { ports: (0, 0), header_len: 0, transport: Transport::Other });
        let ((source_port, destination_port), transport) = (read.ports, read.transport);
        let (len, payload_len) = (len as u32, (payload.len() - read.header_len) as u32);
        Header { source, destination, protocol, source_port, destination_port, tos, len, payload_len, transport }
    }

    /// The ECN code point.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos)
    }

    /// The priority that Linux gives a packet with this TOS byte when it forwards it: 0 (best effort), 2 (bulk), 4
    /// (interactive bulk) or 6 (interactive). Of IPv6 the traffic class is taken for it, which Linux itself ignores.
    #[inline]
    pub fn priority(&self) -> u8 {
        PRIORITIES[usize::from(self.tos >> 1 & 15)]
    }

    /// A hash that all packets of one direction of a connection share, for queues that are fair to flows. Fragments without
    /// ports have another than the first.
    #[inline]
    pub fn key(&self) -> u64 {
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        hash(bits(self.source), bits(self.destination), ports << 8 | u64::from(self.protocol))
    }
}

/// What was read of a transport header.
struct Read {
    ports: (u16, u16),
    header_len: usize,
    transport: Transport,
}

impl Read {
    #[inline]
    fn of(protocol: u8, bytes: &[u8]) -> Option<Read> {
        match IpNumber(protocol) {
            ip_number::TCP => {
                let tcp = TcpHeaderSlice::from_slice(bytes).ok()?;
                let (timestamps, sacked) = options(&tcp);
                let transport = Transport::Tcp(Tcp {
                    seq: tcp.sequence_number(),
                    ack: tcp.acknowledgment_number(),
                    flags: tcp.slice()[13],
                    window: tcp.window_size(),
                    timestamps,
                    sacked,
                });
                let ports = (tcp.source_port(), tcp.destination_port());
                Some(Read { ports, header_len: tcp.slice().len(), transport })
            }
            ip_number::UDP => {
                let udp = UdpHeaderSlice::from_slice(bytes).ok()?;
                let ports = (udp.source_port(), udp.destination_port());
                Some(Read { ports, header_len: UdpHeader::LEN, transport: Transport::Udp })
            }
            ip_number::ICMP => Read::echo(ECHO_V4, bytes),
            ip_number::IPV6_ICMP => Read::echo(ECHO_V6, bytes),
            _ => None,
        }
    }

    fn echo([request, reply]: [u8; 2], bytes: &[u8]) -> Option<Read> {
        let header: &[u8; ECHO_LEN] = bytes.first_chunk()?;
        // The code of both is 0.
        if header[1] != 0 || ![request, reply].contains(&header[0]) {
            return None;
        }
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let echo = Echo { reply: header[0] == reply, id: word(4), seq: word(6) };
        Some(Read { ports: (0, 0), header_len: ECHO_LEN, transport: Transport::Echo(echo) })
    }
}

/// The protocol behind extension headers, whether its header is here, and what is behind them. If they cannot be read,
/// what they stand before is unknown, and the first that is wrong counts as the protocol.
#[cold]
fn behind_extensions(first: IpNumber, payload: &[u8]) -> (u8, bool, &[u8]) {
    let (extensions, protocol, rest, _) = Ipv6ExtensionsSlice::from_slice_lax(first, payload);
    let later = |extension| matches!(extension, Ipv6ExtensionSlice::Fragment(f) if f.fragment_offset().value() > 0);
    let fragment = extensions.is_fragmenting_payload() && extensions.into_iter().any(later);
    (protocol.0, !fragment, rest)
}

/// The timestamps and the end of the first SACK block.
#[inline]
fn options(tcp: &TcpHeaderSlice<'_>) -> (Option<(u32, u32)>, Option<u32>) {
    let options = tcp.options();
    if let Some(all) = options.first_chunk::<12>()
        && all[..4] == ALIGNED_TIMESTAMPS
        && options.len() == 12
    {
        let [.., v0, v1, v2, v3, e0, e1, e2, e3] = *all;
        return (Some((u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3]))), None);
    }
    let (mut timestamps, mut sacked) = (None, None);
    for option in tcp.options_iterator() {
        match option {
            Ok(TcpOptionElement::Timestamp(value, echo)) => timestamps = Some((value, echo)),
            Ok(TcpOptionElement::SelectiveAcknowledgement((_, end), _)) => sacked = Some(end),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    (timestamps, sacked)
}

/// An address as a number; that of an IPv4 address is that of the IPv6 address that maps it.
#[inline]
pub(crate) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// A hash of two addresses and what else tells a connection from others. The same on any machine and in any run.
#[inline]
pub(crate) fn hash(a: u128, b: u128, rest: u64) -> u64 {
    let halves = |n: u128| (n as u64, (n >> 64) as u64);
    let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
    let ends = mix(a0 ^ SALT[0], a1 ^ SALT[1]) ^ mix(b0 ^ SALT[2], b1 ^ SALT[3]).rotate_left(32);
    mix(ends ^ SALT[1], rest ^ SALT[0])
}

/// Both halves of the product, one on the other: each bit of the two has a say in each bit of the result.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Marks a packet with congestion experienced (RFC 3168). Its sender must have said that it understands this
/// ([`Ecn::capable`]). What is no IP packet is left as it is.
pub fn mark_ce(packet: &mut [u8]) {
    match packet {
        [first, tos, _, _, _, _, _, _, _, _, c0, c1, ..] if *first >> 4 == 4 => {
            let old = u16::from_be_bytes([*first, *tos]);
            *tos |= Ecn::Ce as u8;
            let new = u16::from_be_bytes([*first, *tos]);
            // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
            let sum = u32::from(!u16::from_be_bytes([*c0, *c1])) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
            [*c0, *c1] = checksum.to_be_bytes();
        }
        // The traffic class lies across the first two bytes, ECN in the middle of the second.
        [first, second, ..] if *first >> 4 == 6 => *second |= (Ecn::Ce as u8) << 4,
        _ => {}
    }
}

#[cfg(test)]
mod tests;
