//! All headers of a packet at once: what a packet's headers say, and the headers of a segment or datagram.

use crate::fields::Flags;
use crate::hash::{address_bits, hash};
use crate::icmp::{self, Echo};
use crate::ip::Fragment;
use crate::segment::{Options, Segment};
use crate::{Error, ip, tcp, udp};
use arrayvec::ArrayVec;
use core::net::{IpAddr, SocketAddr};

/// Linux's `ip_tos2prio`, by bits 1 to 4 of the TOS byte; of ECN it sees the higher bit and ignores it.
const PRIORITIES: [u8; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];

/// An IP packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The protocol behind the IP header and its extensions.
    pub protocol: u8,
    /// The source port; 0 without ports, and of a fragment that is not the first.
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

/// A packet's transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDP datagram.
    Udp,
    /// An ICMP echo request or reply.
    Echo(Echo),
    /// Anything else, and what could not be read.
    Other,
}

impl Headers {
    /// Reads the headers of one IP packet. Of what lies behind a sound IP header as much is read as can be.
    ///
    /// # Errors
    /// Those of [`ip::View::parse`].
    pub fn parse(packet: &[u8]) -> Result<Headers, Error> {
        let ip = ip::View::parse(packet)?;
        let read = if ip.fragment == Fragment::Later { None } else { Read::of(ip.protocol, ip.payload()).ok() };
        let read = read.unwrap_or(Read { ports: (0, 0), header_len: 0, transport: Transport::Other });
        Ok(Headers {
            source: ip.source,
            destination: ip.destination,
            protocol: ip.protocol,
            source_port: read.ports.0,
            destination_port: read.ports.1,
            tos: ip.tos,
            len: ip.bytes().len() as u32,
            payload_len: (ip.payload().len() - read.header_len) as u32,
            transport: read.transport,
        })
    }

    /// Reads the headers of an IP packet of which only the first part may have been captured. Lengths are those of the whole
    /// packet; `len` is its length if its own field is 0 because an interface was still to segment it. A SYN whose options were
    /// cut off has no [`Options::Syn`]: what its sender offers is unknown.
    ///
    /// # Errors
    /// As [`ip::View::parse_captured`].
    #[inline]
    pub fn parse_captured(packet: &[u8], len: usize) -> Result<Headers, Error> {
        let ip = ip::View::parse_captured(packet, len)?;
        let read = if ip.fragment == Fragment::Later { None } else { Read::captured(ip.protocol, ip.payload()).ok() };
        let read = read.unwrap_or(Read { ports: (0, 0), header_len: 0, transport: Transport::Other });
        Ok(Headers {
            source: ip.source,
            destination: ip.destination,
            protocol: ip.protocol,
            source_port: read.ports.0,
            destination_port: read.ports.1,
            tos: ip.tos,
            len: ip.len() as u32,
            payload_len: (ip.len() - ip.header_len()).saturating_sub(read.header_len) as u32,
            transport: read.transport,
        })
    }

    /// The priority that Linux gives a packet with this TOS byte when it forwards it: 0 (best effort), 2 (bulk), 4
    /// (interactive bulk) or 6 (interactive). The traffic class of IPv6, which Linux ignores, counts the same.
    #[inline]
    pub fn priority(&self) -> u8 {
        PRIORITIES[usize::from(self.tos >> 1 & 15)]
    }

    /// A number that all packets of one direction of a connection share, and other packets hardly ever: for queues that are
    /// fair to flows. Fragments without ports have another one than the first.
    #[inline]
    pub fn key(&self) -> u64 {
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        hash(address_bits(self.source), address_bits(self.destination), ports << 8 | u64::from(self.protocol))
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
    fn captured(protocol: u8, bytes: &[u8]) -> Result<Read, Error> {
        if protocol != ip::TCP {
            return Read::of(protocol, bytes);
        }
        let (view, header_len) = tcp::View::parse_captured(bytes)?;
        let ports = (view.source_port(), view.destination_port());
        let mut segment = view.segment();
        if header_len > view.header_len() && segment.flags.has(Flags::SYN) {
            segment.options = Options::default();
        }
        Ok(Read { ports, header_len, transport: Transport::Tcp(segment) })
    }

    #[inline]
    fn of(protocol: u8, bytes: &[u8]) -> Result<Read, Error> {
        let echo = |echo| Read { ports: (0, 0), header_len: icmp::HEADER_LEN, transport: Transport::Echo(echo) };
        match protocol {
            ip::TCP => {
                let view = tcp::View::parse(bytes)?;
                let ports = (view.source_port(), view.destination_port());
                Ok(Read { ports, header_len: view.header_len(), transport: Transport::Tcp(view.segment()) })
            }
            ip::UDP => {
                let view = udp::View::parse(bytes)?;
                let ports = (view.source_port, view.destination_port);
                Ok(Read { ports, header_len: udp::HEADER_LEN, transport: Transport::Udp })
            }
            ip::ICMP => Echo::parse(false, bytes).map(echo),
            ip::ICMP_V6 => Echo::parse(true, bytes).map(echo),
            _ => Err(Error::Malformed),
        }
    }
}

/// Bytes of the longest headers that are written here.
const MAX_LEN: usize = ip::MAX_HEADER_LEN + tcp::MAX_HEADER_LEN;

/// The IP and TCP headers of a segment; see [`tcp::header`] for `payload`.
///
/// # Errors
/// [`Error::TooLong`]; [`Error::MixedAddresses`].
pub fn segment_headers(
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
    tos: u8,
    payload: &[u8],
) -> Result<ArrayVec<u8, MAX_LEN>, Error> {
    let tcp = tcp::header(segment, source, destination, payload)?;
    let payload_len = tcp.len() + usize::from(segment.len);
    let (source, destination) = (source.ip(), destination.ip());
    let ip = ip::Header { source, destination, tos, protocol: ip::TCP, payload_len }.to_bytes()?;
    Ok(ip.into_iter().chain(tcp).collect())
}

/// The IP and UDP headers of a datagram with `len` bytes of payload; see [`udp::header`] for `payload`.
///
/// # Errors
/// [`Error::TooLong`]; [`Error::MixedAddresses`].
pub fn datagram_headers(
    len: u16,
    source: SocketAddr,
    destination: SocketAddr,
    tos: u8,
    payload: &[u8],
) -> Result<ArrayVec<u8, MAX_LEN>, Error> {
    let udp = udp::header(source, destination, len, payload)?;
    let payload_len = udp.len() + usize::from(len);
    let (source, destination) = (source.ip(), destination.ip());
    let ip = ip::Header { source, destination, tos, protocol: ip::UDP, payload_len }.to_bytes()?;
    Ok(ip.into_iter().chain(udp).collect())
}
