//! Ethernet frames of real interfaces: finding the packets for a network, segmenting and checksumming them, and answering
//! those that are too long as a router does.
//!
//! Everything here takes any bytes. What is not understood is no packet, or is left as it is.

use std::ops::Range;

const V4: u16 = 0x0800;
const V6: u16 = 0x86dd;
/// Customer and service tags (IEEE 802.1Q), and the service tag's predecessor.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;
/// TCP flags that only the last segment may have, and that only the first may have.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;
/// IPv6's "nothing follows".
const NOTHING: u8 = 59;

/// An IP packet within a frame.
#[derive(Clone, Debug)]
struct Layers {
    /// The packet, without the padding of short frames.
    ip: Range<usize>,
    v6: bool,
    /// The transport protocol, and where its header begins.
    protocol: u8,
    transport: usize,
    /// Whether it is a fragment, and whether it is one without the transport header.
    fragment: bool,
    later_fragment: bool,
}

impl Layers {
    fn of(frame: &[u8]) -> Option<Layers> {
        let mut at = 12;
        while TAGS.contains(&word(frame, at)?) {
            at += 4;
        }
        let packet = frame.get(at + 2..)?;
        let version = packet.first()? >> 4;
        let mut layers = match (word(frame, at)?, version) {
            (V4, 4) => Layers::v4(packet)?,
            (V6, 6) => Layers::v6(packet)?,
            _ => return None,
        };
        layers.ip = at + 2..at + 2 + layers.ip.end;
        layers.transport += at + 2;
        Some(layers)
    }

    fn v4(packet: &[u8]) -> Option<Layers> {
        let header = usize::from(packet[0] & 15) * 4;
        let len = usize::from(word(packet, 2)?);
        if header < 20 || len < header || packet.len() < len {
            return None;
        }
        let fragment = word(packet, 6)?;
        Some(Layers {
            ip: 0..len,
            v6: false,
            protocol: packet[9],
            transport: header,
            fragment: fragment & 0x3fff != 0,
            later_fragment: fragment & 0x1fff != 0,
        })
    }

    fn v6(packet: &[u8]) -> Option<Layers> {
        let len = 40 + usize::from(word(packet, 4)?);
        let packet = packet.get(..len)?;
        let mut layers =
            Layers { ip: 0..len, v6: true, protocol: packet[6], transport: 40, fragment: false, later_fragment: false };
        // Hop-by-hop and destination options and the fragment header. Behind any other header (routing,
        // authentication) nothing is touched.
        while let 0 | 44 | 60 = layers.protocol {
            let Some(header) = packet.get(layers.transport..layers.transport + 8) else {
                layers.protocol = NOTHING;
                break;
            };
            if layers.protocol == 44 {
                layers.fragment = true;
                layers.later_fragment |= word(header, 2)? & 0xfff8 != 0;
            }
            layers.transport += if layers.protocol == 44 { 8 } else { 8 + usize::from(header[1]) * 8 };
            layers.protocol = header[0];
        }
        layers.transport = layers.transport.min(len);
        Some(layers)
    }

    fn source<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let (at, len) = if self.v6 { (8, 16) } else { (12, 4) };
        &frame[self.ip.start + at..][..len]
    }

    fn destination<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let (at, len) = if self.v6 { (24, 16) } else { (16, 4) };
        &frame[self.ip.start + at..][..len]
    }

    /// The first byte of the transport header, if it is there.
    fn kind(&self, frame: &[u8]) -> Option<u8> {
        if self.later_fragment { None } else { frame[..self.ip.end].get(self.transport).copied() }
    }

    /// The checksum that TCP, UDP or `ICMPv6` should have if its field holds zero.
    fn checksum(&self, frame: &[u8]) -> u16 {
        let len = (self.ip.end - self.transport) as u64;
        let pseudo = sum(self.source(frame)) + sum(self.destination(frame)) + len + u64::from(self.protocol);
        fold(pseudo + sum(&frame[self.transport..self.ip.end]))
    }
}

/// Returns where in `frame` the IP packet is that a network should carry, without Ethernet's padding.
///
/// `None` for everything that belongs to the two ends of a cable and goes straight to the other one: what is not IP,
/// broadcast and multicast, and neighbour and router discovery (`ICMPv6` 130 to 137 and 143), which a radio link does not
/// have.
pub fn packet(frame: &[u8]) -> Option<Range<usize>> {
    let layers = Layers::of(frame)?;
    let neighbours = layers.v6 && layers.protocol == ICMP6 && matches!(layers.kind(frame), Some(130..=137 | 143));
    let many = frame[0] & 1 != 0 || to_many(&layers, layers.destination(frame));
    (!neighbours && !many).then_some(layers.ip)
}

fn to_many(layers: &Layers, address: &[u8]) -> bool {
    // Multicast, the reserved block above it, and broadcast.
    if layers.v6 { address[0] == 0xff } else { address[0] >= 224 }
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
    let layers = Layers::of(frame)?;
    let packet = &frame[layers.ip.clone()];
    let (source, destination) = (layers.source(frame), layers.destination(frame));
    let may_be_cut = !layers.v6 && packet[6] & 0x40 == 0;
    let nobody = match source {
        [0 | 127, _, _, _] => true,
        _ => source.iter().all(|&byte| byte == 0) || to_many(&layers, source) || to_many(&layers, destination),
    };
    let error = match (layers.v6, layers.protocol, layers.kind(frame)) {
        (false, ICMP, kind) => matches!(kind, None | Some(3 | 4 | 5 | 11 | 12)),
        (true, ICMP6, kind) => matches!(kind, None | Some(0..=127 | 137)),
        _ => false,
    };
    let fits = packet.len() <= usize::from(mtu);
    if fits || may_be_cut || nobody || error || layers.later_fragment || (frame[0] | frame[6]) & 1 != 0 {
        return None;
    }

    let mut answer = Vec::with_capacity(layers.ip.start + 1280);
    answer.extend([&frame[6..12], &frame[..6], &frame[12..layers.ip.start]].concat());
    // RFC 1812, 4.3.2.3, and RFC 4443, 2.4 (c): as much of the packet as fits.
    let (header, longest) = if layers.v6 { (40, 1280) } else { (20, 576) };
    let quoted = &packet[..packet.len().min(longest - header - 8)];
    let carried = (8 + quoted.len()) as u16;
    if layers.v6 {
        answer.extend([0x60, 0, 0, 0]);
        answer.extend(carried.to_be_bytes());
        answer.extend([ICMP6, 64]);
    } else {
        // Precedence as RFC 1812, 4.3.2.5 has it, and DF.
        answer.extend([0x45, 0xc0]);
        answer.extend((20 + carried).to_be_bytes());
        answer.extend([0, 0, 0x40, 0, 64, ICMP, 0, 0]);
    }
    answer.extend(destination);
    answer.extend(source);
    answer.extend(if layers.v6 { [2, 0, 0, 0] } else { [3, 4, 0, 0] });
    answer.extend(u32::from(mtu).to_be_bytes());
    answer.extend(quoted);

    let icmp = layers.ip.start + header;
    let checksum = if layers.v6 { Layers::of(&answer)?.checksum(&answer) } else { fold(sum(&answer[icmp..])) };
    set(&mut answer, icmp + 2, checksum);
    if !layers.v6 {
        set_v4_checksum(&mut answer, layers.ip.start..icmp);
    }
    Some(answer)
}

/// The frames that the sender's interface would have made of `frame`, `size` bytes of payload each: of TCP (as Linux
/// does it: PSH and FIN stay on the last, CWR on the first) or UDP (UDP's segmentation offload). Checksums are right
/// whatever they were before.
///
/// `None` if that cannot be done: the packet is not TCP or UDP, is a fragment, or carries nothing.
pub fn cut(frame: &[u8], size: u16) -> Option<impl Iterator<Item = Vec<u8>>> {
    let layers = Layers::of(frame)?;
    let transport = &frame[layers.transport..layers.ip.end];
    let header = match layers.protocol {
        TCP => usize::from(transport.get(12)? >> 4) * 4,
        UDP => 8,
        _ => return None,
    };
    let least = if layers.protocol == TCP { 20 } else { 8 };
    if layers.fragment || size == 0 || header < least || transport.len() <= header {
        return None;
    }
    let (head, payload) = frame[..layers.ip.end].split_at(layers.transport + header);
    let count = payload.len().div_ceil(usize::from(size));
    let pieces = payload.chunks(usize::from(size)).enumerate();
    Some(pieces.map(move |(index, part)| piece(&layers, head, part, index, usize::from(size), index + 1 == count)))
}

/// The `index`th piece: `head` put right, and `part`.
fn piece(layers: &Layers, head: &[u8], part: &[u8], index: usize, size: usize, last: bool) -> Vec<u8> {
    let mut frame = [head, part].concat();
    let (ip, transport) = (layers.ip.start, layers.transport);
    let layers = Layers { ip: ip..frame.len(), ..layers.clone() };
    if layers.v6 {
        set(&mut frame, ip + 4, (layers.ip.len() - 40) as u16);
    } else {
        let id = word(&frame, ip + 4).unwrap_or(0).wrapping_add(index as u16);
        set(&mut frame, ip + 2, layers.ip.len() as u16);
        set(&mut frame, ip + 4, id);
        let header = usize::from(frame[ip] & 15) * 4;
        set_v4_checksum(&mut frame, ip..ip + header);
    }
    let field = if layers.protocol == TCP {
        let sequence = &mut frame[transport + 4..transport + 8];
        let first = u32::from_be_bytes([sequence[0], sequence[1], sequence[2], sequence[3]]);
        sequence.copy_from_slice(&first.wrapping_add((index * size) as u32).to_be_bytes());
        if !last {
            frame[transport + 13] &= !FIN_PSH;
        }
        if index > 0 {
            frame[transport + 13] &= !CWR;
        }
        transport + 16
    } else {
        let len = (layers.ip.end - transport) as u16;
        set(&mut frame, transport + 4, len);
        transport + 6
    };
    set(&mut frame, field, 0);
    let checksum = layers.checksum(&frame);
    // Zero stands for no checksum in UDP, and means the same as all ones in both.
    set(&mut frame, field, if checksum == 0 { 0xffff } else { checksum });
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
    let sctp = Layers::of(frame).filter(|layers| layers.protocol == SCTP && layers.transport == start && offset == 8);
    if let Some(layers) = sctp {
        if field + 4 <= layers.ip.end {
            frame[field..field + 4].fill(0);
            let checksum = crc32c(&frame[start..layers.ip.end]);
            frame[field..field + 4].copy_from_slice(&checksum.to_le_bytes());
        }
        return;
    }
    let checksum = fold(sum(&frame[start..]));
    set(frame, field, if checksum == 0 { 0xffff } else { checksum });
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

fn set_v4_checksum(frame: &mut [u8], header: Range<usize>) {
    set(frame, header.start + 10, 0);
    let checksum = fold(sum(&frame[header.clone()]));
    set(frame, header.start + 10, checksum);
}

/// The sum of the 16-bit words of `bytes`, the last filled up with zero (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    words + rest.first().map_or(0, |&last| u64::from(last) << 8)
}

/// The Internet checksum of what sums up to `sum`.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests;
