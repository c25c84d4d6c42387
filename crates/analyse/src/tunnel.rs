//! Tunnels of mobile networks (GTP-U): the packets of UEs in them, between base stations and the core.
//!
//! Source: TS 29.281, sections 4.4.2 (ports), 5.1 (header), 5.2 (extension headers) and 6.1 (message types).
//!
//! A capture may have the same packet of a UE several times, once for each link that it passed: in the tunnel of one leg, in that of
//! the next, and without a tunnel beyond the last. It counts once, on the link where it was seen first: otherwise each
//! would seem to be sent again. A packet is the same if its bytes are, but for those that routers change, within a second.
//! Fragments of tunnels are not put together: the first has the headers of the packet in it, and the others are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use observe::Flow;
use wire::hash::{address_bits, hash};
use wire::ip::{Fragment, UDP, View};
use wire::{Headers, udp};

/// The port of G-PDUs.
pub(crate) const PORT: u16 = 2_152;
/// The message type of a packet in a tunnel.
const G_PDU: u8 = 255;
/// Tunnels in each other, extension headers, and what is remembered.
const MOST_NESTED: usize = 4;
const MOST_EXTENSIONS: usize = 8;
const MOST_ENDS: usize = 65_536;
const MOST_RECENT: usize = 16_384;
/// For how long a packet may be on its way between two links, in nanoseconds.
const RECENT_NS: u64 = 1_000_000_000;
/// Bytes by which a packet is recognized.
const COMPARED: usize = 128;

/// The sender and the receiver of packets of a UE.
type Ends = (IpAddr, u16, IpAddr, u16, u8);

/// A packet of the link on which it was seen: its interface and the ends of its tunnel.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: u64,
    packet: u64,
    link: u64,
}

/// What becomes of a packet.
pub(crate) enum Outcome {
    /// It counts: the packet of a UE, or one that is in no tunnel.
    Counts(Headers),
    /// It does not.
    LeftOut,
}

/// The tunnels of a file.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    /// Packets that were in one.
    pub(crate) inside: u64,
    /// Packets that were seen on another link before, and fragments without a header of a UE's packet.
    pub(crate) again: u64,
    pub(crate) fragments: u64,
    /// The latest identifier of the tunnel of each direction.
    teids: BTreeMap<Ends, u32>,
    hosts: BTreeSet<(IpAddr, IpAddr)>,
    recent: VecDeque<Seen>,
    links: BTreeMap<u64, u64>,
}

impl Tunnels {
    /// Whether a packet may have to do with a tunnel.
    #[inline]
    pub(crate) fn concern(&self, headers: &Headers) -> bool {
        self.inside > 0 || headers.destination_port == PORT && headers.protocol == UDP
    }

    /// A packet that was captured at a time, on an interface; `ip` are its bytes.
    #[cold]
    pub(crate) fn take(&mut self, headers: Headers, mut ip: &[u8], at: u64, interface: u32) -> Outcome {
        let (outer, mut inner, mut teid) = ((headers.source, headers.destination), headers, None);
        for _ in 0..MOST_NESTED {
            let Some((id, packet)) = payload(&inner, ip) else { break };
            let Ok(found) = Headers::parse_captured(packet, 0) else { break };
            (inner, ip, teid) = (found, packet, Some(id));
        }
        let Some(teid) = teid else {
            let is_fragment = View::parse_captured(ip, 0).is_ok_and(|view| view.fragment == Fragment::Later);
            if is_fragment && headers.protocol == UDP && self.hosts.contains(&outer) {
                self.fragments += 1;
                return Outcome::LeftOut;
            }
            return self.once(headers, ip, at, u64::from(interface));
        };
        self.inside += 1;
        if self.hosts.len() < MOST_ENDS {
            self.hosts.insert(outer);
        }
        let ends = ends_of(&inner);
        if self.teids.len() < MOST_ENDS || self.teids.contains_key(&ends) {
            self.teids.insert(ends, teid);
        }
        // The same link in both directions, and another after a handover.
        let (low, high) = (outer.0.min(outer.1), outer.0.max(outer.1));
        self.once(inner, ip, at, hash(address_bits(low), address_bits(high), interface.into()))
    }

    /// Lets a packet count once.
    fn once(&mut self, headers: Headers, ip: &[u8], at: u64, link: u64) -> Outcome {
        if self.inside == 0 {
            return Outcome::Counts(headers);
        }
        while let Some(old) = self.recent.front().copied()
            && (self.recent.len() > MOST_RECENT || at.saturating_sub(old.at) > RECENT_NS)
        {
            self.recent.pop_front();
            if self.links.get(&old.packet) == Some(&old.link) {
                self.links.remove(&old.packet);
            }
        }
        let packet = signature(ip);
        match self.links.get(&packet) {
            Some(first) if *first != link => {
                self.again += 1;
                Outcome::LeftOut
            }
            _ => {
                self.links.insert(packet, link);
                self.recent.push_back(Seen { at, packet, link });
                Outcome::Counts(headers)
            }
        }
    }

    /// Notes in which tunnels flows were.
    pub(crate) fn name(&self, flows: &mut [Flow]) {
        for flow in flows {
            let ends = flow.key.map(|key| {
                let (sender, receiver) = (key.sender, key.receiver);
                (sender.ip(), sender.port(), receiver.ip(), receiver.port(), key.protocol)
            });
            flow.teid = ends.and_then(|ends| self.teids.get(&ends).copied()).or(flow.teid);
        }
    }
}

fn ends_of(headers: &Headers) -> Ends {
    (headers.source, headers.source_port, headers.destination, headers.destination_port, headers.protocol)
}

/// The tunnel's identifier and the packet in it, if a packet is a G-PDU with IP.
fn payload<'a>(headers: &Headers, ip: &'a [u8]) -> Option<(u32, &'a [u8])> {
    if headers.protocol != UDP || headers.destination_port != PORT {
        return None;
    }
    let view = View::parse_captured(ip, 0).ok()?;
    let gtp = view.payload().get(udp::HEADER_LEN..)?;
    let &[flags, kind, _, _, a, b, c, d] = gtp.first_chunk()?;
    // Version 1, and the protocol type of GTP rather than GTP'.
    if flags >> 4 != 0b0011 || kind != G_PDU {
        return None;
    }
    let mut rest = gtp.get(8..)?;
    // Any of the flags E, S and PN adds a sequence number, an N-PDU number and the type of the first extension header.
    if flags & 0b111 != 0 {
        let mut next = if flags & 0b100 != 0 { *rest.get(3)? } else { 0 };
        rest = rest.get(4..)?;
        for _ in 0..MOST_EXTENSIONS {
            if next == 0 {
                break;
            }
            // In units of 4 bytes, the last of which is the type of the next.
            let len = 4 * usize::from(*rest.first()?);
            next = *rest.get(len.checked_sub(1)?)?;
            rest = rest.get(len..)?;
        }
    }
    matches!(rest.first()? >> 4, 4 | 6).then_some((u32::from_be_bytes([a, b, c, d]), rest))
}

/// A number that packets with the same bytes have, but for the bytes that routers change: traffic class, hop limit and checksum.
fn signature(ip: &[u8]) -> u64 {
    let mut bytes = [0; COMPARED];
    let len = ip.len().min(COMPARED);
    bytes[..len].copy_from_slice(&ip[..len]);
    if bytes[0] >> 4 == 4 {
        (bytes[1], bytes[8], bytes[10], bytes[11]) = (0, 0, 0, 0);
    } else {
        (bytes[0], bytes[1], bytes[2], bytes[3], bytes[7]) = (6 << 4, 0, 0, 0, 0);
    }
    bytes.chunks_exact(32).fold(len as u64, |sum, chunk| {
        let half = |at: usize| u128::from_be_bytes(chunk[at..at + 16].try_into().unwrap_or_default());
        hash(half(0), half(16), sum)
    })
}
