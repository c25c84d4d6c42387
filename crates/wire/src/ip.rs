//! IP headers as bytes: IPv4 with options and fragments, IPv6 with extension headers.
//!
//! Source: RFC 791, RFC 8200, RFC 3168 (ECN). IPv4 checksums of received packets are not checked: interfaces do that.

use crate::{Error, checksum};
use arrayvec::ArrayVec;
use core::net::IpAddr;
use etherparse::err::ipv4::HeaderSliceError;
use etherparse::{IpNumber, Ipv4Header, Ipv4HeaderSlice, Ipv6FlowLabel, Ipv6Header, Ipv6HeaderSlice};

/// The number of ICMP.
pub const ICMP: u8 = 1;
/// The number of TCP.
pub const TCP: u8 = 6;
/// The number of UDP.
pub const UDP: u8 = 17;
/// The number of `ICMPv6`.
pub const ICMP_V6: u8 = 58;
/// The number of DCCP.
pub const DCCP: u8 = 33;
/// The number of SCTP.
pub const SCTP: u8 = 132;
/// The number of UDP-Lite.
pub const UDP_LITE: u8 = 136;

/// Bytes of the longest header that is written here.
pub const MAX_HEADER_LEN: usize = Ipv6Header::LEN;
/// The numbers of IPv6's extension headers, and the bytes of the shortest (RFC 8200 section 4, RFC 4302).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MIN_EXTENSION_LEN: usize = 8;
/// The bits of a fragment header's second word that hold the offset.
const FRAGMENT_OFFSET: u16 = 0xfff8;
/// Time to live, or hop limit, of the packets that are made here.
const TTL: u8 = 64;
/// The ECN code point "congestion experienced".
const CE: u8 = 0b11;

/// Which part of a fragmented packet a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment {
    /// It is not fragmented.
    Whole,
    /// It is the first fragment, with the transport header, or has an IPv6 fragment header although it is whole.
    First,
    /// It is a later fragment, without a transport header.
    Later,
}

/// An IP packet in bytes that come from anywhere.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bytes: &'a [u8],
    header_len: usize,
    /// Bytes of the packet as its header says; more than `bytes` if it was captured in part.
    len: usize,
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The whole TOS byte or traffic class: DSCP and ECN.
    pub tos: u8,
    /// The protocol behind the IP header and its extensions. If an extension cannot be read, its own number.
    pub protocol: u8,
    /// Whether it is a fragment.
    pub fragment: Fragment,
    /// Of a fragment, where its payload begins in that of the whole packet, in bytes.
    pub offset: u32,
    /// Whether more fragments follow in the packet.
    pub more: bool,
    /// What fragments of a packet share, with addresses and protocol (RFC 791) or addresses (RFC 8200 section 4.5); `None` of a packet
    /// of IPv6 without a fragment header.
    pub identification: Option<u32>,
    /// Whether checksums and lengths can be computed anew from the headers: there is no routing header, which holds the
    /// destination that checksums cover, and no authentication header.
    pub is_rewritable: bool,
}

impl<'a> View<'a> {
    /// The packet at the start of `bytes`. What follows it there is not part of it.
    ///
    /// # Errors
    /// [`Error::Truncated`] if `bytes` are shorter than the packet says; [`Error::Malformed`] if version or lengths make no
    /// sense.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        let view = View::parse_captured(bytes, 0)?;
        if view.len > view.bytes.len() { Err(Error::Truncated) } else { Ok(view) }
    }

    /// The packet at the start of `bytes`, of which only the first part may have been captured. `len` bytes stand for a
    /// length field of 0, which packets have that an interface is still to segment.
    ///
    /// # Errors
    /// As [`View::parse`], but only if the IP header itself is cut off.
    #[inline]
    pub fn parse_captured(bytes: &'a [u8], len: usize) -> Result<View<'a>, Error> {
        match bytes.first().ok_or(Error::Truncated)? >> 4 {
            4 => View::parse_v4(bytes, len),
            6 => View::parse_v6(bytes, len),
            _ => Err(Error::Malformed),
        }
    }

    #[inline]
    fn parse_v4(bytes: &'a [u8], unsegmented: usize) -> Result<View<'a>, Error> {
        let ip = Ipv4HeaderSlice::from_slice(bytes).map_err(|error| match error {
            HeaderSliceError::Len(_) => Error::Truncated,
            HeaderSliceError::Content(_) => Error::Malformed,
        })?;
        let header_len = ip.slice().len();
        let len = if ip.total_len() == 0 { unsegmented } else { usize::from(ip.total_len()) };
        if len < header_len {
            return Err(Error::Malformed);
        }
        let bytes = &bytes[..len.min(bytes.len())];
        Ok(View {
            bytes,
            header_len,
            len,
            source: ip.source_addr().into(),
            destination: ip.destination_addr().into(),
            tos: bytes[1],
            protocol: ip.protocol().0,
            fragment: match (ip.fragments_offset().value(), ip.more_fragments()) {
                (0, false) => Fragment::Whole,
                (0, true) => Fragment::First,
                _ => Fragment::Later,
            },
            offset: u32::from(ip.fragments_offset().value()) * 8,
            more: ip.more_fragments(),
            identification: Some(ip.identification().into()),
            is_rewritable: true,
        })
    }

    #[inline]
    fn parse_v6(bytes: &'a [u8], unsegmented: usize) -> Result<View<'a>, Error> {
        let ip = Ipv6HeaderSlice::from_slice(bytes).map_err(|_| Error::Truncated)?;
        let said = Ipv6Header::LEN + usize::from(ip.payload_length());
        let len = if ip.payload_length() == 0 { said.max(unsegmented) } else { said };
        let bytes = &bytes[..len.min(bytes.len())];
        let view = View {
            bytes,
            header_len: Ipv6Header::LEN,
            len,
            source: ip.source_addr().into(),
            destination: ip.destination_addr().into(),
            tos: ip.traffic_class(),
            protocol: ip.next_header().0,
            fragment: Fragment::Whole,
            offset: 0,
            more: false,
            identification: None,
            is_rewritable: true,
        };
        Ok(match view.protocol {
            TCP | UDP | ICMP_V6 => view,
            _ => view.behind_extensions(),
        })
    }

    /// Passes over extension headers, up to the first that is cut off. A later fragment has none behind its fragment header.
    #[cold]
    fn behind_extensions(mut self) -> View<'a> {
        while let Some(&[next, len, high, low, id @ ..]) = self.payload().first_chunk::<MIN_EXTENSION_LEN>() {
            let len = match self.protocol {
                // Hop-by-hop options come first or not at all.
                HOP_BY_HOP if self.header_len > Ipv6Header::LEN => break,
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => 8 + 8 * usize::from(len),
                FRAGMENT => MIN_EXTENSION_LEN,
                AUTHENTICATION => 8 + 4 * usize::from(len),
                _ => break,
            };
            if self.payload().len() < len {
                break;
            }
            // Its lowest bit is the flag "more", and the offset, in units of 8 bytes, begins at the third.
            let word = u16::from_be_bytes([high, low]);
            let is_later = self.protocol == FRAGMENT && word & FRAGMENT_OFFSET != 0;
            match self.protocol {
                FRAGMENT => {
                    (self.offset, self.more) = (u32::from(word & FRAGMENT_OFFSET), word & 1 != 0);
                    self.fragment = if is_later { Fragment::Later } else { Fragment::First };
                    self.identification = Some(u32::from_be_bytes(id));
                }
                ROUTING | AUTHENTICATION => self.is_rewritable = false,
                _ => {}
            }
            self.header_len += len;
            self.protocol = next;
            if is_later {
                break;
            }
        }
        self
    }

    /// Whether it is IPv6.
    #[inline]
    pub fn is_v6(&self) -> bool {
        self.source.is_ipv6()
    }

    /// Whether a router may fragment it.
    pub fn may_be_fragmented(&self) -> bool {
        !self.is_v6() && self.bytes[6] & 0x40 == 0
    }

    /// Bytes of the packet with its IP header, as that header says.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a packet has a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The whole packet, or what was captured of it.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes of the IP header with its options or extensions.
    #[inline]
    pub fn header_len(&self) -> usize {
        self.header_len
    }

    /// What follows the IP header and its extensions.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len..]
    }
}

/// An IP header to be written: without options or extensions, and not to be fragmented. The identification of IPv4 is 0, as
/// RFC 6864 permits then, and the flow label of IPv6 is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// TOS byte or traffic class: DSCP and ECN.
    pub tos: u8,
    /// The protocol that follows.
    pub protocol: u8,
    /// Bytes that follow.
    pub payload_len: usize,
}

impl Header {
    /// The header's bytes.
    ///
    /// # Errors
    /// [`Error::TooLong`]; [`Error::MixedAddresses`].
    pub fn to_bytes(&self) -> Result<ArrayVec<u8, MAX_HEADER_LEN>, Error> {
        let len = u16::try_from(self.payload_len).map_err(|_| Error::TooLong)?;
        let protocol = IpNumber(self.protocol);
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let header = Ipv4Header::new(len, TTL, protocol, source.octets(), destination.octets());
                let header = header.map_err(|_| Error::TooLong)?;
                let mut bytes = header.to_bytes();
                bytes[1] = self.tos;
                let checksum = checksum::Sum::default().with(&bytes).checksum();
                bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
                Ok(bytes.into_iter().collect())
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let header = Ipv6Header {
                    traffic_class: self.tos,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length: len,
                    next_header: protocol,
                    hop_limit: TTL,
                    source: source.octets(),
                    destination: destination.octets(),
                };
                Ok(header.to_bytes().into())
            }
            _ => Err(Error::MixedAddresses),
        }
    }
}

/// Marks a packet with congestion experienced (RFC 3168), whose sender must have said that it understands this. What is no IP
/// packet is left as it is.
pub fn mark_ce(packet: &mut [u8]) {
    match packet {
        [first, tos, _, _, _, _, _, _, _, _, c0, c1, ..] if *first >> 4 == 4 => {
            let old = u16::from_be_bytes([*first, *tos]);
            *tos |= CE;
            let new = u16::from_be_bytes([*first, *tos]);
            [*c0, *c1] = checksum::update(u16::from_be_bytes([*c0, *c1]), old, new).to_be_bytes();
        }
        // The traffic class lies across the first two bytes, ECN in the middle of the second.
        [first, second, ..] if *first >> 4 == 6 => *second |= CE << 4,
        _ => {}
    }
}
