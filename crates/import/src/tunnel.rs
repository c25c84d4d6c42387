//! Tunnels of mobile networks (GTP-U): the packets of UEs in them, between base stations and the core.
//!
//! Source: TS 29.281, sections 4.4.2 (ports), 5.1 (header), 5.2 (extension headers) and 6.1 (message types).
//!
//! A capture may have the same packet of a UE several times, once for each link that it passed: in the tunnel of one leg, in that of
//! the next, and without a tunnel beyond the last. It counts once, on the link where it was seen first: otherwise each
//! would seem to be sent again. A packet is the same if its bytes are, but for those that routers change, within a second.
//! Fragments of tunnels are not put together: the first has the headers of the packet in it, and the others are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use wire::hash::{address_bits, hash};
use wire::ip::{Fragment, UDP, View};
use wire::{Headers, udp};

use crate::twice::signature;

/// The port of G-PDUs.
const PORT: u16 = 2_152;
/// The message type of a packet in a tunnel.
const G_PDU: u8 = 255;
/// Tunnels in each other, extension headers, and what is remembered.
const MOST_NESTED: usize = 4;
const MOST_EXTENSIONS: usize = 8;
const MOST_ENDS: usize = 65_536;
const MOST_RECENT: usize = 16_384;
/// For how long a packet may be on its way between two links, in nanoseconds.
const RECENT_NS: u64 = 1_000_000_000;

/// The sender and the receiver of packets of a UE, and their protocol.
type Ends = (SocketAddr, SocketAddr, u8);

/// A packet of the link on which it was seen: its interface and the ends of its tunnel.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: u64,
    packet: u64,
    link: u64,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It counts: the packet of a UE, or one that is in no tunnel, and its bytes.
    Counts(Headers, &'a [u8]),
    /// It does not.
    LeftOut,
}

/// The tunnels of a file. Each packet that concerns them is taken once, in the order of the file.
#[derive(Debug, Default)]
pub struct Tunnels {
    /// Packets that were in one.
    pub inside: u64,
    /// Packets that were seen on another link before.
    pub again: u64,
    /// Fragments without a header of a UE's packet.
    pub fragments: u64,
    /// The latest identifier of the tunnel of each direction.
    teids: BTreeMap<Ends, u32>,
    hosts: BTreeSet<(IpAddr, IpAddr)>,
    recent: VecDeque<Seen>,
    links: BTreeMap<u64, u64>,
}

impl Tunnels {
    /// Whether a packet may have to do with a tunnel.
    #[inline]
    pub fn concern(&self, headers: &Headers) -> bool {
        self.inside > 0 || headers.destination_port == PORT && headers.protocol == UDP
    }

    /// A packet that was captured at a time, on an interface; `ip` are its bytes.
    #[cold]
    pub fn take<'a>(&mut self, headers: Headers, mut ip: &'a [u8], at: u64, interface: u32) -> Outcome<'a> {
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
    fn once<'a>(&mut self, headers: Headers, ip: &'a [u8], at: u64, link: u64) -> Outcome<'a> {
        if self.inside == 0 {
            return Outcome::Counts(headers, ip);
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
                Outcome::Counts(headers, ip)
            }
        }
    }

    /// The latest identifier of the tunnel of a direction of a flow.
    pub fn teid(&self, from: SocketAddr, to: SocketAddr, protocol: u8) -> Option<u32> {
        self.teids.get(&(from, to, protocol)).copied()
    }

    /// What to say of packets in tunnels; each is a line without a full stop.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let counted = [
            (self.inside, "packets came in tunnels (GTP-U), and the flows are those inside"),
            (self.again, "packets were captured on several links, in a tunnel or not, and count once"),
            (self.fragments, "fragments of packets of tunnels were left out: the first of each counts for all"),
        ];
        counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"))
    }
}

fn ends_of(headers: &Headers) -> Ends {
    let end = SocketAddr::new;
    let (from, to) = (end(headers.source, headers.source_port), end(headers.destination, headers.destination_port));
    (from, to, headers.protocol)
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
