//! Ethernet frames of real interfaces: finding the packets for a network, segmenting and checksumming them, and answering
//! those that are too long as a router does.
//!
//! Everything here takes any bytes. What is not understood is no packet, or is left as it is.

use std::net::IpAddr;
use std::ops::Range;
use wire::checksum::Sum;
use wire::ip::{self, Fragment};
use wire::{icmp, tcp, udp};

const V4: u16 = 0x0800;
const V6: u16 = 0x86dd;
/// Customer and service tags (IEEE 802.1Q), and the service tag's predecessor.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// TCP flags that only the last segment may have, and that only the first may have.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The IP packet within a frame, and where it begins.
fn find(frame: &[u8]) -> Option<(usize, ip::View<'_>)> {
    let mut at = 12;
    while TAGS.contains(&word(frame, at)?) {
        at += 4;
    }
    let packet = ip::View::parse(frame.get(at + 2..)?).ok()?;
    let kind = if packet.is_v6() { V6 } else { V4 };
    (word(frame, at)? == kind).then_some((at + 2, packet))
}

/// The first byte of what a packet carries, if it is there.
fn kind(packet: &ip::View<'_>) -> Option<u8> {
    if packet.fragment == Fragment::Later { None } else { packet.payload().first().copied() }
}

/// Returns where in `frame` the IP packet is that a network should carry, without Ethernet's padding.
///
/// `None` for everything that belongs to the two ends of a cable and goes straight to the other one: what is not IP,
/// broadcast and multicast, and neighbour and router discovery (`ICMPv6` 130 to 137 and 143), which a radio link does not
/// have.
pub fn packet(frame: &[u8]) -> Option<Range<usize>> {
    let (at, packet) = find(frame)?;
    let neighbours = packet.is_v6() && packet.protocol == ip::ICMP_V6 && matches!(kind(&packet), Some(130..=137 | 143));
    let many = frame[0] & 1 != 0 || to_many(packet.destination);
    (!neighbours && !many).then_some(at..at + packet.bytes().len())
}

/// Whether an address is multicast, broadcast, or in the reserved block between them.
fn to_many(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] >= 224,
        IpAddr::V6(v6) => v6.is_multicast(),
    }
}

/// Returns a router's answer to the sender of `frame` if its packet is longer than `mtu` and must not be fragmented:
/// "fragmentation needed" (RFC 1191) or "packet too big" (RFC 4443, 3.2), as a frame that goes back to where this one came
/// from.
///
/// A router would answer from an address of its own. There is none here, so the answer comes from the packet's own
/// destination; senders do not check it. `None` if there is nothing to be said: the packet fits, may be cut (IPv4
/// without DF, which is passed as it is), is itself an error message, a later fragment, or is from or to nobody in
/// particular (RFC 1812, 4.3.2.7). It is for the caller to limit how many are sent.
pub fn too_big(frame: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let (at, packet) = find(frame)?;
    let (source, destination) = (packet.source, packet.destination);
    let nobody = match source {
        IpAddr::V4(v4) => matches!(v4.octets()[0], 0 | 127),
        IpAddr::V6(v6) => v6.is_unspecified(),
    };
    let nobody = nobody || to_many(source) || to_many(destination);
    let error = match (packet.is_v6(), packet.protocol, kind(&packet)) {
        (false, ip::ICMP, kind) => matches!(kind, None | Some(3 | 4 | 5 | 11 | 12)),
        (true, ip::ICMP_V6, kind) => matches!(kind, None | Some(0..=127 | 137)),
        _ => false,
    };
    let fits = packet.bytes().len() <= usize::from(mtu);
    let later = packet.fragment == Fragment::Later;
    if fits || packet.may_be_fragmented() || nobody || error || later || (frame[0] | frame[6]) & 1 != 0 {
        return None;
    }

    // RFC 1812, 4.3.2.3, and RFC 4443, 2.4 (c): as much of the packet as fits. Precedence as RFC 1812, 4.3.2.5 has it.
    let (header_len, longest, tos, protocol) =
        if packet.is_v6() { (40, 1280, 0, ip::ICMP_V6) } else { (20, 576, 0xc0, ip::ICMP) };
    let quoted = &packet.bytes()[..packet.bytes().len().min(longest - header_len - icmp::HEADER_LEN)];
    let payload_len = icmp::HEADER_LEN + quoted.len();
    let header = ip::Header { source: destination, destination: source, tos, protocol, payload_len }.to_bytes().ok()?;
    let message = icmp::too_big(destination, source, mtu, quoted).ok()?;
    Some([&frame[6..12], &frame[..6], &frame[12..at], &header, &message, quoted].concat())
}

/// The frames that the sender's interface would have made of `frame`, `size` bytes of payload each: of TCP (as Linux
/// does it: PSH and FIN stay on the last, CWR on the first) or UDP (UDP's segmentation offload). Checksums are right
/// whatever they were before.
///
/// `None` if that cannot be done: the packet is not TCP or UDP, is a fragment, or carries nothing.
pub fn cut(frame: &[u8], size: u16) -> Option<impl Iterator<Item = Vec<u8>>> {
    let (at, packet) = find(frame)?;
    let header_len = match packet.protocol {
        ip::TCP => tcp::View::parse(packet.payload()).ok()?.header_len(),
        ip::UDP => udp::HEADER_LEN,
        _ => return None,
    };
    let may_be_cut = packet.fragment == Fragment::Whole && packet.is_rewritable;
    if !may_be_cut || size == 0 || packet.payload().len() <= header_len {
        return None;
    }
    let (header, payload) = packet.payload().split_at(header_len);
    let transport = at + packet.header_len();
    let head = &frame[..transport + header.len()];
    let count = payload.len().div_ceil(usize::from(size));
    let pieces = payload.chunks(usize::from(size)).enumerate();
    Some(pieces.map(move |(index, part)| {
        let first_byte = index * usize::from(size);
        piece([head, part].concat(), &packet, at, (index, first_byte, index + 1 == count))
    }))
}

/// Corrects the headers of a piece of `packet`, which begins at `start` in its frame. `place` is the piece's index, the offset of
/// its first byte in the payload, and whether it is the last.
fn piece(mut frame: Vec<u8>, packet: &ip::View<'_>, start: usize, place: (usize, usize, bool)) -> Vec<u8> {
    let (index, first_byte, last) = place;
    let (len, transport) = (frame.len() - start, start + packet.header_len());
    if packet.is_v6() {
        set(&mut frame, start + 4, (len - 40) as u16);
    } else {
        let id = word(&frame, start + 4).unwrap_or(0).wrapping_add(index as u16);
        set(&mut frame, start + 2, len as u16);
        set(&mut frame, start + 4, id);
        set(&mut frame, start + 10, 0);
        let checksum = Sum::default().with(&frame[start..transport]).checksum();
        set(&mut frame, start + 10, checksum);
    }
    let len = (frame.len() - transport) as u16;
    let field = if packet.protocol == ip::TCP {
        let sequence = &mut frame[transport + 4..transport + 8];
        let first = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        sequence.copy_from_slice(&first.wrapping_add(first_byte as u32).to_be_bytes());
        if !last {
            frame[transport + 13] &= !FIN_PSH;
        }
        if index > 0 {
            frame[transport + 13] &= !CWR;
        }
        transport + 16
    } else {
        set(&mut frame, transport + 4, len);
        transport + 6
    };
    set(&mut frame, field, 0);
    let sum = Sum::pseudo_header(packet.source, packet.destination, packet.protocol, len);
    let checksum = sum.with(&frame[transport..]).nonzero_checksum();
    set(&mut frame, field, checksum);
    frame
}

/// Finishes a checksum that the sender left to its interface: that over everything from `start` on belongs `offset`
/// bytes behind `start`, where the sum over the pseudo-header is already.
pub fn complete(frame: &mut [u8], start: usize, offset: usize) {
    let field = start + offset;
    if field + 2 > frame.len() {
        return;
    }
    // SCTP, whose checksum is of another kind (RFC 9260, appendix A), looks the same.
    let sctp = find(frame)
        .filter(|(at, packet)| packet.protocol == ip::SCTP && at + packet.header_len() == start && offset == 8);
    if let Some(end) = sctp.map(|(at, packet)| at + packet.bytes().len()) {
        if field + 4 <= end {
            frame[field..field + 4].fill(0);
            let checksum = crc32c(&frame[start..end]);
            frame[field..field + 4].copy_from_slice(&checksum.to_le_bytes());
        }
        return;
    }
    let checksum = Sum::default().with(&frame[start..]).nonzero_checksum();
    set(frame, field, checksum);
}

fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| (crc >> 1) ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), bit))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn set(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[cfg(test)]
mod tests;
