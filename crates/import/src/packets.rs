//! The packets of a capture (pcap, pcapng) one after another, in bounded memory, and the IP packets in their frames.
//!
//! Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng, the link types of tcpdump.org, IEEE 802.1Q (VLAN tags),
//! RFC 2516 (`PPPoE`), RFC 3032 (MPLS labels), RFC 1042 (SNAP), RFC 1952 (gzip).
//!
//! Tolerances, all of which are met in practice: a file that ends within a packet ends before it ([`Reader::is_cut_short`]),
//! as after an interrupted tcpdump; packets may be longer than the snapshot length says; a pcapng file may have several
//! sections of either byte order, and interfaces of different link types and time resolutions. Packets without a time (simple
//! packet blocks) are left out and counted ([`Reader::without_time`]), and so are blocks of unknown types
//! ([`Reader::unknown_blocks_note`]). A block or packet that says it is longer than [`MAX_BLOCK`] is damage: nothing behind it can
//! be found. A file may be compressed with gzip.

use std::collections::BTreeMap;
use std::io::{Chain, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use pcap_parser::pcapng::{Block, parse_block_be, parse_block_le};
use pcap_parser::{PcapHeader, parse_pcap_header};

use crate::Error;

/// Bytes of the longest block or packet.
pub const MAX_BLOCK: usize = 16 << 20;
/// Interfaces of a section.
const MAX_INTERFACES: usize = 65_536;
/// Interfaces whose names are kept.
const MAX_NAMES: usize = 256;
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;
/// Types of unknown blocks, and kinds of frames without IP, that are counted singly.
const MAX_TYPES: usize = 16;
const MAX_KINDS: usize = 16;
/// The first bytes of a file that gzip wrote, and its method (RFC 1952, 2.3.1).
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
/// The first number of interfaces that a Linux cooked capture names by the kernel's index; those of pcapng are lower.
const KERNEL_INTERFACES: u32 = MAX_INTERFACES as u32 + 1;
/// The type of the obsolete packet block (draft-ietf-opsawg-pcapng, appendix A).
const PACKET_BLOCK: u32 = 2;
/// Bytes of an enhanced or obsolete packet block before the packet, and of such a block around it.
const BEFORE_PACKET: usize = 28;
const AROUND_PACKET: usize = BEFORE_PACKET + 4;
/// The type of a pcapng section header, which is the same in either byte order, and the byte orders' mark.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const ORDER_LE: [u8; 4] = 0x1a2b_3c4du32.to_le_bytes();
const ORDER_BE: [u8; 4] = 0x1a2b_3c4du32.to_be_bytes();
/// Bytes of a pcap file's header, of a packet's header there, and of the start of a pcapng section header.
const PCAP_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
const SECTION_START: usize = 12;
/// What is said of a file that is neither.
const NO_CAPTURE: &str = "not a capture: expected a pcap or pcapng file (tcpdump -w, dumpcap, tshark -w)";

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970-01-01.
    pub at: u64,
    /// The link type (`LINKTYPE_…`).
    pub link: u16,
    /// The interface that captured it: a number that [`Reader::interface_label`] and [`Reader::vantage_point`] understand.
    pub interface: u32,
    /// What was captured of the frame.
    pub data: &'a [u8],
    /// Bytes of the whole frame.
    pub len: u32,
}

/// An interface of a pcapng section.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    /// Units of time in a second; 0 if they are finer than can be counted.
    resolution: u64,
    offset_s: i64,
}

#[derive(Debug)]
enum Format {
    Pcap { link: u16, is_big: bool, nanos_per_unit: u64, header_len: usize },
    PcapNg { is_big: bool, interfaces: Vec<Interface> },
}

/// What unpacks compressed bytes: those that were read ahead, and the rest.
type Unpacked<R> = MultiGzDecoder<Counted<Chain<Cursor<Vec<u8>>, R>>>;

/// Where the bytes of a capture come from.
#[derive(Debug)]
enum Source<R> {
    Plain(R),
    Gzip(Box<Unpacked<R>>),
    /// Only while it is replaced.
    Empty,
}

/// A reader that counts.
#[derive(Debug)]
struct Counted<R> {
    from: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(into)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads the packets of a capture in the order of the file.
#[derive(Debug)]
pub struct Reader<R> {
    from: Source<R>,
    buffer: Vec<u8>,
    /// What is in the buffer and was not taken yet.
    begin: usize,
    end: usize,
    /// Bytes before the buffer.
    before: u64,
    format: Format,
    /// Names of the first section's interfaces.
    names: Vec<String>,
    is_cut_short: bool,
    without_time: u64,
    /// Blocks of unknown types, whose packets, if they have any, were not read.
    unknown_blocks: BTreeMap<u32, u64>,
}

impl<R: Read> Reader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`Error::File`] if it is not a capture; [`Error::Io`].
    pub fn new(from: R) -> Result<Reader<R>, Error> {
        let format = Format::PcapNg { is_big: false, interfaces: Vec::new() };
        let (buffer, names) = (vec![0; CHUNK], Vec::new());
        let mut reader = Reader {
            from: Source::Plain(from),
            buffer,
            begin: 0,
            end: 0,
            before: 0,
            format,
            names,
            is_cut_short: false,
            without_time: 0,
            unknown_blocks: BTreeMap::new(),
        };
        let is_long = reader.fill(4)?;
        if reader.ahead().starts_with(&GZIP) {
            reader.unpack();
        }
        if !(is_long && reader.fill(4)?) {
            return Err(Error::File("not a capture: too short".to_owned()));
        }
        if reader.ahead()[..4] == SECTION {
            return Ok(reader);
        }
        if !reader.fill(PCAP_HEADER)? {
            let is_pcap = parse_pcap_header(&[reader.ahead(), &[0; PCAP_HEADER]].concat()).is_ok();
            return Err(Error::File(
                if is_pcap { "damaged: shorter than a pcap header" } else { NO_CAPTURE }.to_owned(),
            ));
        }
        let (_, header) = parse_pcap_header(reader.ahead()).map_err(|_| Error::File(NO_CAPTURE.to_owned()))?;
        reader.format = pcap(&header);
        reader.begin += PCAP_HEADER;
        Ok(reader)
    }

    /// Unpacks what follows, which is compressed.
    fn unpack(&mut self) {
        let ahead = Cursor::new(self.ahead().to_vec());
        self.end = self.begin;
        if let Source::Plain(from) = std::mem::replace(&mut self.from, Source::Empty) {
            let from = Counted { from: ahead.chain(from), bytes: 0 };
            self.from = Source::Gzip(Box::new(MultiGzDecoder::new(from)));
        }
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`Error::File`] if the file is damaged here; [`Error::Io`].
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let packet = match self.format {
            Format::Pcap { link, is_big, nanos_per_unit, header_len } => {
                let Some(len) = self.pcap_record(is_big, header_len)? else { return Ok(None) };
                let record = &self.buffer[self.begin - len..self.begin];
                let number = |at: usize| number(record, at, is_big);
                // A fraction of a second or more is damage that does no harm.
                let at = u64::from(number(0)) * 1_000_000_000 + u64::from(number(4)) * nanos_per_unit;
                let len = number(12).max(number(8));
                Some(Packet { at, link, interface: 0, data: &record[header_len..], len })
            }
            Format::PcapNg { .. } => self.pcapng_packet()?,
        };
        // LINKTYPE_LINUX_SLL2 has the index of the interface: a router captures with `-i any` what comes in and what goes out.
        let by_kernel = packet.filter(|packet| packet.link == link::LINUX_SLL2).and_then(|packet| {
            let index = u32::from_be_bytes(packet.data.get(4..8)?.try_into().ok()?);
            Some(Packet { interface: index.saturating_add(KERNEL_INTERFACES), ..packet })
        });
        Ok(by_kernel.or(packet))
    }

    /// Bytes of the file up to and including the latest packet; of a compressed file, what had to be read for it.
    pub fn position(&self) -> u64 {
        match &self.from {
            Source::Gzip(from) => from.get_ref().bytes,
            Source::Plain(_) | Source::Empty => self.unpacked(),
        }
    }

    /// Bytes up to and including the latest packet, unpacked.
    fn unpacked(&self) -> u64 {
        self.before + self.begin as u64
    }

    /// The name of an interface in messages and tables: its own, or its number.
    pub fn interface_label(&self, interface: u32) -> String {
        match interface.checked_sub(KERNEL_INTERFACES) {
            Some(index) => format!("ifindex {index}"),
            None => self.interface_name(interface).map_or_else(|| interface.to_string(), str::to_owned),
        }
    }

    /// The vantage point of an interface, as the number of an interface: its own, or that of the interface of the other
    /// direction of the same link, which our own captures call `NAME-reverse`.
    pub fn vantage_point(&self, interface: u32) -> u32 {
        let forward = self.interface_name(interface).and_then(|name| name.strip_suffix("-reverse"));
        let same = forward.and_then(|forward| self.names.iter().position(|name| name == forward));
        same.and_then(|same| u32::try_from(same).ok()).unwrap_or(interface)
    }

    /// The name of an interface, if it has one.
    pub fn interface_name(&self, interface: u32) -> Option<&str> {
        self.names.get(interface as usize).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Whether the file ended within a packet.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Number of packets that were left out because they have no time (simple packet blocks of pcapng).
    pub fn without_time(&self) -> u64 {
        self.without_time
    }

    /// What to say of packets without a time.
    pub fn without_time_note(&self) -> Option<String> {
        let what = "packets have no time (simple packet blocks) and are left out";
        (self.without_time > 0).then(|| format!("{} {what}", self.without_time))
    }

    /// What to say of blocks of unknown types.
    pub fn unknown_blocks_note(&self) -> Option<String> {
        let kinds: Vec<String> =
            self.unknown_blocks.iter().map(|(kind, count)| format!("{count} of type {kind:#x}")).collect();
        let all: u64 = self.unknown_blocks.values().sum();
        (all > 0).then(|| format!("{all} blocks are of unknown types and left out ({})", kinds.join(", ")))
    }

    /// What was read and not taken yet.
    #[inline]
    fn ahead(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Makes `n` bytes available ahead; false if the file ends before.
    #[inline]
    fn fill(&mut self, n: usize) -> Result<bool, Error> {
        if self.end - self.begin >= n { Ok(true) } else { self.refill(n) }
    }

    #[cold]
    fn refill(&mut self, n: usize) -> Result<bool, Error> {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.before += self.begin as u64;
        (self.begin, self.end) = (0, self.end - self.begin);
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
        while self.end < n {
            let into = &mut self.buffer[self.end..];
            let read = match &mut self.from {
                Source::Plain(from) => from.read(into),
                Source::Gzip(from) => from.read(into),
                Source::Empty => Ok(0),
            };
            match (read, &self.from) {
                (Ok(0), _) => return Ok(false),
                (Ok(read), _) => self.end += read,
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                // A compressed file that was not written to its end.
                (Err(error), Source::Gzip(_)) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.is_cut_short = true;
                    return Ok(false);
                }
                (Err(error), Source::Gzip(_))
                    if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput) =>
                {
                    return Err(self.damaged("gzip's data"));
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// The file ends here; `whole` if it may.
    fn at_end<T>(&mut self) -> Option<T> {
        self.is_cut_short |= self.begin < self.end;
        None
    }

    /// Takes a packet with its header; returns the length of both.
    #[inline]
    fn pcap_record(&mut self, is_big: bool, header_len: usize) -> Result<Option<usize>, Error> {
        if !self.fill(header_len)? {
            return Ok(self.at_end());
        }
        let captured = number(self.ahead(), 8, is_big) as usize;
        if captured > MAX_BLOCK {
            return Err(self.damaged(&format!("a packet of {captured} bytes")));
        }
        let len = header_len + captured;
        if !self.fill(len)? {
            return Ok(self.at_end());
        }
        self.begin += len;
        Ok(Some(len))
    }

    fn pcapng_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        loop {
            let Some(len) = self.block()? else { return Ok(None) };
            let Format::PcapNg { is_big, interfaces } = &mut self.format else { return Ok(None) };
            let (from, to) = (self.begin, self.begin + len);
            let kind = number(&self.buffer[from..], 0, *is_big);
            if kind == PACKET_BLOCK {
                let Some((interface, units, lengths)) = packet_block(&self.buffer[from..to], *is_big) else {
                    return Err(self.damaged("a block that cannot be read"));
                };
                let Some(described) = interfaces.get(interface as usize) else {
                    let what = format!("a packet of interface {interface}, which is not described");
                    return Err(self.damaged(&what));
                };
                let (at, link) = (described.nanos(units), described.link);
                self.begin = to;
                let data = &self.buffer[from + BEFORE_PACKET..from + BEFORE_PACKET + lengths[0] as usize];
                return Ok(Some(Packet { at, link, interface, data, len: lengths[1].max(lengths[0]) }));
            }
            let parse = if *is_big { parse_block_be } else { parse_block_le };
            let fault = match parse(&self.buffer[from..to]) {
                Ok((_, Block::SectionHeader(_))) => {
                    interfaces.clear();
                    None
                }
                Ok((_, Block::InterfaceDescription(block))) => {
                    if self.names.len() == interfaces.len() && self.names.len() < MAX_NAMES {
                        let name = block.if_name().and_then(Result::ok).map(str::trim_end);
                        self.names.push(crate::shown(name.unwrap_or_default().trim_end_matches('\0').as_bytes()));
                    }
                    interfaces.push(Interface {
                        link: u16::try_from(block.linktype.0).unwrap_or(u16::MAX),
                        resolution: resolution(block.if_tsresol),
                        offset_s: if *is_big { block.if_tsoffset.swap_bytes() } else { block.if_tsoffset },
                    });
                    (interfaces.len() > MAX_INTERFACES).then(|| "more than 65536 interfaces".to_owned())
                }
                Ok((_, Block::EnhancedPacket(block))) => match interfaces.get(block.if_id as usize) {
                    Some(interface) => {
                        let units = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                        let (at, link) = (interface.nanos(units), interface.link);
                        let (captured, len) = (block.caplen as usize, block.origlen.max(block.caplen));
                        let start = from + BEFORE_PACKET;
                        self.begin = to;
                        let (interface, data) = (block.if_id, &self.buffer[start..start + captured]);
                        return Ok(Some(Packet { at, link, interface, data, len }));
                    }
                    None => Some(format!("a packet of interface {}, which is not described", block.if_id)),
                },
                Ok((_, Block::SimplePacket(_))) => {
                    self.without_time += 1;
                    interfaces.is_empty().then(|| "a packet without an interface".to_owned())
                }
                Ok((_, Block::Unknown(_) | Block::Custom(_))) => {
                    let is_new = !self.unknown_blocks.contains_key(&kind) && self.unknown_blocks.len() >= MAX_TYPES;
                    *self.unknown_blocks.entry(if is_new { u32::MAX } else { kind }).or_default() += 1;
                    None
                }
                // Names, statistics, logs and secrets.
                Ok(_) => None,
                Err(_) => Some("a block that cannot be read".to_owned()),
            };
            if let Some(fault) = fault {
                return Err(self.damaged(&fault));
            }
            self.begin = to;
        }
    }

    /// Reads a whole block ahead and returns its length; sets the byte order if it begins a section.
    #[inline]
    fn block(&mut self) -> Result<Option<usize>, Error> {
        if !self.fill(SECTION_START)? {
            return Ok(self.at_end());
        }
        let start: [u8; SECTION_START] = self.ahead()[..SECTION_START].try_into().unwrap_or_default();
        let Format::PcapNg { is_big, .. } = &mut self.format else { return Ok(None) };
        if start[..4] == SECTION {
            match start[8..] {
                [a, b, c, d] if [a, b, c, d] == ORDER_LE => *is_big = false,
                [a, b, c, d] if [a, b, c, d] == ORDER_BE => *is_big = true,
                _ => return Err(self.damaged("a section of unknown byte order")),
            }
        }
        let len = number(&start, 4, *is_big) as usize;
        if !(SECTION_START..=MAX_BLOCK).contains(&len) || !len.is_multiple_of(4) {
            return Err(self.damaged(&format!("a block of {len} bytes")));
        }
        Ok(if self.fill(len)? { Some(len) } else { self.at_end() })
    }

    fn damaged(&self, what: &str) -> Error {
        Error::File(format!("damaged at byte {}: {what}", self.unpacked()))
    }
}

/// The interface, the time in its units, and the captured and the whole length of the packet of an obsolete packet block.
fn packet_block(block: &[u8], is_big: bool) -> Option<(u32, u64, [u32; 2])> {
    if block.len() < AROUND_PACKET {
        return None;
    }
    let interface: [u8; 2] = block[8..10].try_into().ok()?;
    let interface = if is_big { u16::from_be_bytes(interface) } else { u16::from_le_bytes(interface) };
    let word = |at: usize| number(block, at, is_big);
    let captured = word(20);
    let fits = captured as usize <= block.len() - AROUND_PACKET;
    fits.then(|| (u32::from(interface), u64::from(word(12)) << 32 | u64::from(word(16)), [captured, word(24)]))
}

impl Interface {
    /// A time in this interface's units, in nanoseconds since the epoch.
    #[inline]
    fn nanos(&self, units: u64) -> u64 {
        let nanos = match self.resolution {
            1_000_000_000 => units,
            1_000_000 => units.saturating_mul(1_000),
            0 => 0,
            resolution => {
                let nanos = u128::from(units) * 1_000_000_000 / u128::from(resolution);
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        if self.offset_s == 0 {
            return nanos;
        }
        nanos.saturating_add_signed(self.offset_s.saturating_mul(1_000_000_000))
    }
}

/// Units in a second, of `if_tsresol`.
fn resolution(code: u8) -> u64 {
    let exponent = u32::from(code & 0x7f);
    let units = if code & 0x80 == 0 { 10u64.checked_pow(exponent) } else { 1u64.checked_shl(exponent) };
    units.unwrap_or(0)
}

fn pcap(header: &PcapHeader) -> Format {
    Format::Pcap {
        // The upper bits say how long a frame check sequence is.
        link: (header.network.0 & 0xffff) as u16,
        is_big: header.is_bigendian(),
        nanos_per_unit: if header.is_nanosecond_precision() { 1 } else { 1_000 },
        // Kuznetsov's variant has eight bytes more.
        header_len: if header.is_modified_format() { PACKET_HEADER + 8 } else { PACKET_HEADER },
    }
}

#[inline]
fn number(bytes: &[u8], at: usize, is_big: bool) -> u32 {
    let bytes: [u8; 4] = bytes[at..at + 4].try_into().unwrap_or_default();
    if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Link types.
pub mod link {
    /// Loopback of BSD: four bytes of address family in the capturing host's byte order.
    pub const NULL: u16 = 0;
    /// Ethernet.
    pub const ETHERNET: u16 = 1;
    /// PPP, possibly in HDLC-like framing.
    pub const PPP: u16 = 9;
    /// IP without a header in front, as systems number it.
    pub const RAW_BSD: u16 = 12;
    /// The same of OpenBSD.
    pub const RAW_OPENBSD: u16 = 14;
    /// IP without a header in front.
    pub const RAW: u16 = 101;
    /// Loopback of OpenBSD: as [`NULL`] in network byte order.
    pub const LOOP: u16 = 108;
    /// Linux cooked capture.
    pub const LINUX_SLL: u16 = 113;
    /// IPv4 without a header in front.
    pub const IPV4: u16 = 228;
    /// IPv6 without a header in front.
    pub const IPV6: u16 = 229;
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: u16 = 276;
    /// All of them.
    pub const ALL: [u16; 11] =
        [NULL, ETHERNET, PPP, RAW_BSD, RAW_OPENBSD, RAW, LOOP, LINUX_SLL, IPV4, IPV6, LINUX_SLL2];
}

const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
const ETHER_PPPOE: u16 = 0x8864;
/// RFC 3032: labels, and labels of multicast.
const ETHER_MPLS: [u16; 2] = [0x8847, 0x8848];
/// IEEE 802.3: below, it is a length, behind which a header of LLC follows.
const LEAST_ETHER: u16 = 0x0600;
/// LLC's header with that of SNAP for an `EtherType` (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// Values of an `EtherType` for VLAN tags, each of which may follow another.
const VLANS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MOST_VLANS: usize = 8;
const MOST_LABELS: usize = 16;
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// The IP packet in a frame, up to where the frame was captured; `None` if there is none, or the link type is not one of
/// [`link`].
#[inline]
pub fn ip_packet(link: u16, frame: &[u8]) -> Option<&[u8]> {
    let packet = match link {
        link::ETHERNET => behind_type(frame, 12)?,
        link::RAW | link::RAW_BSD | link::RAW_OPENBSD | link::IPV4 | link::IPV6 => frame,
        link::LINUX_SLL => behind_type(frame, 14)?,
        link::LINUX_SLL2 => behind(be16(frame, 0)?, frame.get(20..)?)?,
        link::NULL | link::LOOP => frame.get(4..)?,
        link::PPP => {
            let frame = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
            behind_ppp(frame)?
        }
        _ => return None,
    };
    matches!(packet.first()? >> 4, 4 | 6).then_some(packet)
}

/// The packet behind a header that ends with an `EtherType` at `at`.
#[inline]
fn behind_type(frame: &[u8], at: usize) -> Option<&[u8]> {
    behind(be16(frame, at)?, frame.get(at + 2..)?)
}

/// The packet in what follows an `EtherType`.
#[inline]
fn behind(mut kind: u16, mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..MOST_VLANS {
        match kind {
            ETHER_IPV4 | ETHER_IPV6 => return Some(rest),
            ETHER_PPPOE => return behind_ppp(rest.get(6..)?),
            _ if VLANS.contains(&kind) => (kind, rest) = (be16(rest, 2)?, rest.get(4..)?),
            _ if ETHER_MPLS.contains(&kind) => return behind_labels(rest),
            0..LEAST_ETHER => {
                let behind = rest.strip_prefix(&SNAP)?;
                (kind, rest) = (be16(behind, 0)?, behind.get(2..)?);
            }
            _ => return None,
        }
    }
    None
}

/// The packet behind the labels of MPLS, the last of which says that it is.
fn behind_labels(mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..MOST_LABELS {
        let is_last = rest.get(2)? & 1 == 1;
        rest = rest.get(4..)?;
        if is_last {
            return Some(rest);
        }
    }
    None
}

/// Frames without an IP packet, by what they are.
#[derive(Clone, Debug, Default)]
pub struct Others {
    counts: BTreeMap<String, u64>,
}

impl Others {
    /// Counts a frame.
    #[cold]
    pub fn note(&mut self, frame: &Packet<'_>) {
        let kind = frame_kind(frame.link, frame.data);
        let is_new = !self.counts.contains_key(&kind) && self.counts.len() >= MAX_KINDS;
        *self.counts.entry(if is_new { "others".to_owned() } else { kind }).or_default() += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The kinds with their numbers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(kind, count)| (&**kind, *count))
    }
}

/// What a frame without an IP packet is, in a message: a protocol, or the number of one.
fn frame_kind(link: u16, frame: &[u8]) -> String {
    if !link::ALL.contains(&link) {
        return format!("link type {link}");
    }
    let (mut kind, mut rest) = match link {
        link::ETHERNET => (be16(frame, 12), frame.get(14..)),
        link::LINUX_SLL => (be16(frame, 14), frame.get(16..)),
        link::LINUX_SLL2 => (be16(frame, 0), frame.get(20..)),
        _ => return "not IP".to_owned(),
    };
    for _ in 0..MOST_VLANS {
        let (Some(now), Some(behind)) = (kind, rest) else { break };
        if VLANS.contains(&now) {
            (kind, rest) = (be16(behind, 2), behind.get(4..));
        } else if now < LEAST_ETHER && behind.starts_with(&SNAP) {
            (kind, rest) = (be16(behind, 6), behind.get(8..));
        } else {
            break;
        }
    }
    match kind {
        None => "too short".to_owned(),
        Some(0x0806) => "ARP".to_owned(),
        Some(0x8863) => "PPPoE discovery".to_owned(),
        Some(ETHER_PPPOE) => "PPPoE control".to_owned(),
        Some(0x888e) => "EAPOL".to_owned(),
        Some(0x88cc) => "LLDP".to_owned(),
        Some(0x88f7) => "PTP".to_owned(),
        Some(0x88e5) => "MACsec".to_owned(),
        Some(kind) if ETHER_MPLS.contains(&kind) => "MPLS without IP".to_owned(),
        Some(ETHER_IPV4 | ETHER_IPV6) => "damaged IP".to_owned(),
        Some(0..LEAST_ETHER) => "LLC".to_owned(),
        Some(kind) => format!("EtherType {kind:#06x}"),
    }
}

fn behind_ppp(frame: &[u8]) -> Option<&[u8]> {
    matches!(be16(frame, 0)?, PPP_IPV4 | PPP_IPV6).then(|| &frame[2..])
}

#[inline]
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}
