//! Packets that one place of a capture has twice: of a Linux cooked capture of version 1 (`tcpdump -i any`), which does not
//! tell interfaces apart, of a mirror port that copies a packet as it comes in and as it goes out, or of a packet with a VLAN
//! tag and without.
//!
//! A sighting of a packet repeats an earlier one if all that is compared is the same and both are less than [`WINDOW_NS`] apart
//! at the same place. What routers change is not compared: traffic class, hop limit and IPv4's checksum. Repeats alone do not
//! tell copies from packets: acknowledgements that are sent again for each packet out of order may be the same byte for
//! byte, and networks duplicate packets. They are told apart by what else comes:
//!
//! - For each direction of each flow, it is counted how often its recent packets came: once, twice, or more. What three of
//!   four did is the rule; if there is none, packets come once. A packet that comes more often than the rule says was sent
//!   again: of four sightings where packets come twice, two count. Where packets come once, all count.
//! - Packets that a sender makes only once are evidence at once and weigh more: those with an identification (RFC 791, of
//!   which RFC 6864 lets some be 0; fragments of IPv6), and segments of TCP with data, SYN or FIN, since a retransmission
//!   takes a round trip.
//! - A packet with the content of its direction's packet before is no evidence: an acknowledgement that is sent again, or a
//!   datagram of a flow whose datagrams are all the same.
//! - A direction of which little is known follows the other one. If that does not help either, repeats of packets that are
//!   made only once are copies, and others are not.
//!
//! Limits: copies that are later, that another host's address translation or a tunnel has changed, or of which one was joined or
//! split by offload, are not found. Copies of datagrams that are all the same and without an identification count. After a
//! change of the rule within a flow, the first 30 packets or so follow the old one.
//!
//! Memory is bounded, and nothing is allocated after the first packet.

use std::collections::VecDeque;

use wire::hash::{address_bits, hash};
use wire::{Flags, Headers, Transport};

/// Nanoseconds after a packet from which on the same bytes are another packet: a retransmission takes a round trip at least.
pub const WINDOW_NS: u64 = 1_000_000;
/// Bytes that are compared: all headers, whose checksums stand for the rest.
const COMPARED: usize = 128;
/// The number of IPv6's fragment header (RFC 8200, 4.5).
const FRAGMENT: u8 = 44;
/// Recent packets: sets of places for them, by their signature, the places in a set, and all that are waited for.
const SETS: usize = 4_096;
const WAYS: usize = 2;
const MOST_WAITING: usize = SETS;
/// Directions of flows of which something is known.
const DIRECTIONS: usize = 4_096;
/// The most sightings that are told apart.
const MOST_TIMES: usize = 4;
/// The weight of a packet that is made once, and the sum of weights from which on a direction has a rule; a sum of
/// this many rules is halved.
const WEIGHT: u8 = 4;
const KNOWN: u8 = 4;
const MOST_KNOWN: u8 = 32 * WEIGHT;

/// A recent packet.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    signature: u64,
    at: u64,
    direction: u64,
    sightings: u8,
    /// What it weighs as evidence.
    weight: u8,
}

/// What is known of a direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    key: u64,
    latest: u64,
    /// Weights of packets that came once, twice, three times, and more often.
    came: [u8; MOST_TIMES],
}

impl Direction {
    /// How often its packets come, if enough is known: as three of four do, or else once.
    fn rule(&self) -> Option<u8> {
        let known: u8 = self.came.iter().sum();
        let is_rule = |times: &u8| 4 * u32::from(self.came[usize::from(*times) - 1]) >= 3 * u32::from(known);
        (known >= KNOWN).then(|| (1..=MOST_TIMES as u8).find(is_rule).unwrap_or(1))
    }

    /// A packet of this weight came so often, of which `before` was counted already.
    fn note(&mut self, weight: u8, before: Option<usize>, times: usize) {
        if let Some(before) = before {
            self.came[before - 1] = self.came[before - 1].saturating_sub(weight);
        }
        self.came[times.min(MOST_TIMES) - 1] += weight;
        if self.came.iter().sum::<u8>() > MOST_KNOWN {
            self.came = self.came.map(|weight| weight / 2);
        }
    }
}

/// Tells which packets of a capture are copies of earlier ones. See the module's documentation for the rule.
///
/// Each packet is given to [`Twice::is_copy`] once, in the order of the file.
#[derive(Debug, Default)]
pub struct Twice {
    recent: Vec<[Recent; WAYS]>,
    /// Sets and signatures of packets that are still to be counted, in the order of their times.
    waiting: VecDeque<(u64, u64)>,
    directions: Vec<Direction>,
    copies: u64,
}

impl Twice {
    /// Whether a packet is a copy of an earlier one, and should not count. `ip` are the bytes captured of the IP packet
    /// with these headers, `at` its time in nanoseconds, and `place` the number of the vantage point: packets of different ones
    /// are not compared.
    #[inline]
    pub fn is_copy(&mut self, headers: &Headers, ip: &[u8], at: u64, place: u32) -> bool {
        if self.recent.is_empty() {
            self.begin();
        }
        self.count(at);
        // 0 is that of a place that is free.
        let signature = (signature(ip) ^ (u64::from(place) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).max(1);
        let set = set_of(signature);
        let known = self.recent[set].iter().position(|one| one.signature == signature);
        match known.filter(|&way| at.abs_diff(self.recent[set][way].at) < WINDOW_NS) {
            Some(way) => self.repeats(headers, (set, way), ip, place),
            None => {
                self.add(headers, signature, ip, at, place);
                false
            }
        }
    }

    /// Number of copies until now.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// What to say of the copies; a line without a full stop.
    pub fn note(&self) -> Option<String> {
        let what = "packets are in the capture a second time, as of a mirror port or of `tcpdump -i any` at a router, and \
                    count once (less than 1 ms apart, as most packets of their flow)";
        (self.copies > 0).then(|| format!("{} {what}", self.copies))
    }

    /// Takes the memory: many a file has no packet.
    #[cold]
    fn begin(&mut self) {
        self.recent = vec![[Recent::default(); WAYS]; SETS];
        self.waiting = VecDeque::with_capacity(MOST_WAITING + 1);
        self.directions = vec![Direction::default(); DIRECTIONS];
    }

    /// Notes a packet that was not seen before.
    #[inline]
    fn add(&mut self, headers: &Headers, signature: u64, ip: &[u8], at: u64, place: u32) {
        let key = key_of(headers, place, false);
        let direction = &mut self.directions[index_of(key)];
        if direction.key != key {
            *direction = Direction { key, ..Direction::default() };
        }
        let is_other = std::mem::replace(&mut direction.latest, signature) != signature;
        let weight = match (has_identification(ip), is_other) {
            // The identification of all of its packets is the same, and tells nothing.
            (true, false) => {
                direction.note(WEIGHT, None, 1);
                0
            }
            _ if is_made_once(headers, ip) => WEIGHT,
            _ => u8::from(is_other),
        };
        let set = set_of(signature);
        let places = &mut self.recent[set];
        let way = match places.iter().position(|one| one.signature == signature) {
            Some(way) => way,
            None => usize::from(places[0].at > places[1].at),
        };
        places[way] = Recent { signature, at, direction: key, sightings: 1, weight };
        if weight > 0 {
            self.waiting.push_back((at, signature));
        }
    }

    /// Whether a further sighting of a packet is one of a copy.
    #[cold]
    fn repeats(&mut self, headers: &Headers, (set, way): (usize, usize), ip: &[u8], place: u32) -> bool {
        let packet = &mut self.recent[set][way];
        packet.sightings = packet.sightings.saturating_add(1);
        let Recent { sightings, weight, direction: key, .. } = *packet;
        let is_once = is_made_once(headers, ip);
        let direction = &mut self.directions[index_of(key)];
        let mut rule = None;
        if direction.key == key {
            let times = usize::from(sightings);
            let counted = (is_once && (3..=MOST_TIMES + 1).contains(&times)).then_some(times - 1);
            // What the others do, without this packet.
            let mut others = *direction;
            if let Some(counted) = counted {
                others.came[counted - 1] = others.came[counted - 1].saturating_sub(weight);
            }
            rule = others.rule();
            if is_once && times <= MOST_TIMES {
                direction.note(weight, counted, times);
            }
        }
        let rule = rule.or_else(|| {
            let back = key_of(headers, place, true);
            let direction = self.directions[index_of(back)];
            direction.rule().filter(|_| direction.key == back)
        });
        let is_copy = match rule {
            Some(rule) => (sightings - 1) % rule != 0,
            None => is_once,
        };
        self.copies += u64::from(is_copy);
        is_copy
    }

    /// Counts how often packets came of which no further sighting can come.
    #[inline]
    fn count(&mut self, now: u64) {
        while let Some(&(at, signature)) = self.waiting.front()
            && (now.abs_diff(at) >= WINDOW_NS || self.waiting.len() > MOST_WAITING)
        {
            self.waiting.pop_front();
            let Some(packet) = self.recent[set_of(signature)].iter().find(|one| one.signature == signature) else {
                continue;
            };
            let direction = &mut self.directions[index_of(packet.direction)];
            // Repeats of what is made once were counted as they came.
            let is_counted = packet.weight == WEIGHT && packet.sightings > 1;
            if packet.at == at && direction.key == packet.direction && !is_counted {
                direction.note(packet.weight, None, usize::from(packet.sightings));
            }
        }
    }
}

/// Whether a sender makes a packet with these bytes once, but for retransmissions.
#[inline]
fn is_made_once(headers: &Headers, ip: &[u8]) -> bool {
    has_identification(ip)
        || matches!(&headers.transport, Transport::Tcp(segment)
            if headers.payload_len > 0 || segment.flags.has(Flags::SYN) || segment.flags.has(Flags::FIN))
}

/// Whether the identification of an IPv4 packet is not 0, or that of an IPv6 packet is in the first extension.
#[inline]
fn has_identification(ip: &[u8]) -> bool {
    let &[first, _, _, _, high, low, next, ..] = ip else { return false };
    if first >> 4 == 4 { (high, low) != (0, 0) } else { next == FRAGMENT }
}

fn set_of(signature: u64) -> usize {
    signature as usize % SETS
}

fn index_of(key: u64) -> usize {
    key as usize % DIRECTIONS
}

/// A number of a direction of a flow at a place, or of the other direction.
#[inline]
fn key_of(headers: &Headers, place: u32, is_back: bool) -> u64 {
    let (from, to) = ((headers.source, headers.source_port), (headers.destination, headers.destination_port));
    let (from, to) = if is_back { (to, from) } else { (from, to) };
    let ports = u64::from(from.1) << 16 | u64::from(to.1);
    let rest = ports << 8 | u64::from(headers.protocol);
    hash(address_bits(from.0), address_bits(to.0), rest ^ u64::from(place) << 40).max(1)
}

/// A number that packets with the same bytes have, but for the bytes that routers change: traffic class, hop limit and checksum.
/// What follows the packet in its frame does not count.
#[inline]
pub fn signature(ip: &[u8]) -> u64 {
    let len_at = |at: usize| ip.get(at..at + 2).map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])));
    // 0 if an interface was still to segment it.
    let said = match ip.first().map(|first| first >> 4) {
        Some(4) => len_at(2),
        _ => len_at(4) + if len_at(4) > 0 { 40 } else { 0 },
    };
    let mut bytes = [0; COMPARED];
    let len = ip.len().min(COMPARED).min(if said > 0 { said } else { COMPARED });
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

#[cfg(test)]
mod tests;
