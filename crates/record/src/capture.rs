//! Packet captures (pcapng) that Wireshark and tshark open.
//!
//! Source: draft-ietf-opsawg-pcapng (sections 4.1 to 4.3), RFC 791, RFC 9293, RFC 7323, RFC 2018. One interface a link,
//! with the link's name; nanosecond timestamps that count from 1970-01-01 (simulated time starts at 0). Only headers are
//! kept, the original length is noted.
//!
//! Deviations: no payload exists in a simulation, so the transport checksums are those of a payload of zeros; the IPv4
//! identification is 0, as RFC 6864 permits for packets that may not be fragmented.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use units::Time;
use wire::report;
use wire::{Block, Flags, Options, Segment};

use crate::{Error, OutputFile};

/// The longest headers: IPv4 without options, TCP with 40 bytes of them.
const SNAPLEN: u32 = 20 + 60;
/// `if_tsresol` of nanoseconds: 10^-9.
const NANOSECONDS: u8 = 9;
const TTL: u8 = 64;
/// A payload that does not exist, for checksums.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A packet as a capture sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// When it passed.
    pub time: Time,
    /// Source address and port.
    pub source: SocketAddrV4,
    /// Destination address and port.
    pub destination: SocketAddrV4,
    /// The ECN code point (RFC 3168), 0 to 3.
    pub ecn: u8,
    /// What it carries.
    pub transport: Transport<'a>,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp(&'a Segment),
    /// A UDP datagram with so many bytes of payload.
    Udp(u16),
}

/// A capture that is being written. [`Capture::finish`] must follow.
pub struct Capture {
    writer: PcapNgWriter<OutputFile>,
    headers: Vec<u8>,
}

impl Capture {
    /// Begins a capture of `links`, by their names.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new<'a>(file: OutputFile, links: impl IntoIterator<Item = &'a str>) -> Result<Capture, Error> {
        let path = file.path().to_owned();
        let fail = |error| Error::io("write", &path)(into_io(error));
        // A fixed byte order: the same bytes on any machine.
        let mut writer = PcapNgWriter::with_endianness(file, Endianness::Little).map_err(fail)?;
        for link in links {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(link)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: SNAPLEN, options };
            writer.write_block(&interface.into_block()).map_err(fail)?;
        }
        Ok(Capture { writer, headers: Vec::with_capacity(SNAPLEN as usize) })
    }

    /// Notes that `packet` passed the link with the number `link` (in the order of [`Capture::new`]).
    ///
    /// # Errors
    /// [`Error::Io`]; also for a packet that is too long for IPv4, and for a link that does not exist.
    pub fn packet(&mut self, link: u32, packet: &PacketView<'_>) -> Result<(), Error> {
        self.headers.clear();
        let written = write_headers(packet, &mut self.headers).and_then(|original_len| {
            let block = EnhancedPacketBlock {
                interface_id: link,
                timestamp: Duration::from_nanos(packet.time.as_nanos()),
                original_len,
                data: Cow::Borrowed(&self.headers),
                options: Vec::new(),
            };
            self.writer.write_block(&block.into_block()).map_err(into_io)
        });
        match written {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::io("write", self.writer.get_ref().path())(error)),
        }
    }

    /// Flushes the capture to the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<(), Error> {
        self.writer.into_inner().finish()
    }
}

/// Writes a packet's headers and returns its length with its payload.
fn write_headers(packet: &PacketView<'_>, to: &mut Vec<u8>) -> io::Result<u32> {
    let (protocol, transport_len) = match packet.transport {
        Transport::Tcp(segment) => (IpNumber::TCP, segment.header_len() + u32::from(segment.len)),
        Transport::Udp(len) => (IpNumber::UDP, UdpHeader::LEN as u32 + u32::from(len)),
    };
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "a packet is too long for IPv4");
    let transport_len = u16::try_from(transport_len).map_err(|_| too_long())?;
    let mut ip =
        Ipv4Header::new(transport_len, TTL, protocol, packet.source.ip().octets(), packet.destination.ip().octets())
            .map_err(|_| too_long())?;
    ip.ecn = IpEcn::try_new(packet.ecn & 0b11).expect("two bits");
    ip.dont_fragment = true;
    ip.header_checksum = ip.calc_header_checksum();
    ip.write(to)?;

    let (source, destination) = (packet.source.port(), packet.destination.port());
    match packet.transport {
        Transport::Tcp(segment) => {
            let mut header = TcpHeader::new(source, destination, segment.seq, segment.window);
            header.acknowledgment_number = segment.ack;
            let has = |flag| segment.flags.has(flag);
            (header.fin, header.syn, header.rst) = (has(Flags::FIN), has(Flags::SYN), has(Flags::RST));
            (header.psh, header.ack) = (has(Flags::PSH), has(Flags::ACK));
            (header.ece, header.cwr) = (has(Flags::ECE), has(Flags::CWR));
            header.set_options(&options(segment)).map_err(io::Error::other)?;
            let of_pep = pep_option(segment);
            if !of_pep.is_empty() {
                let all = [header.options.as_slice(), &of_pep].concat();
                header.set_options_raw(&all).map_err(io::Error::other)?;
            }
            header.checksum =
                header.calc_checksum_ipv4(&ip, &ZEROS[..usize::from(segment.len)]).map_err(io::Error::other)?;
            header.write(to)?;
        }
        Transport::Udp(len) => {
            let header = UdpHeader::with_ipv4_checksum(source, destination, &ip, &ZEROS[..usize::from(len)])
                .map_err(io::Error::other)?;
            header.write(to)?;
        }
    }
    Ok(u32::from(ip.total_len))
}

/// The options in the order and with the padding that Linux gives them.
fn options(segment: &Segment) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
    };
    let mut options = Vec::new();
    let timestamps = segment.timestamps.map(|t| Timestamp(t.value, t.echo));
    match &segment.options {
        Options::Syn(syn) => {
            options.push(MaximumSegmentSize(syn.mss));
            match (syn.sack_permitted, timestamps) {
                (true, Some(timestamps)) => options.extend([SelectiveAcknowledgementPermitted, timestamps]),
                (true, None) => options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]),
                (false, Some(timestamps)) => options.extend([Noop, Noop, timestamps]),
                (false, None) => {}
            }
            options.extend(syn.window_scale.into_iter().flat_map(|shift| [Noop, WindowScale(shift)]));
        }
        Options::Report(_) | Options::Announcement => {
            options.extend(timestamps.into_iter().flat_map(|timestamps| [Noop, Noop, timestamps]));
        }
        Options::Sack(sack) => {
            options.extend(timestamps.into_iter().flat_map(|timestamps| [Noop, Noop, timestamps]));
            let pair = |block: &Block| (block.start, block.end);
            if let [first, rest @ ..] = sack.blocks() {
                let mut others = [None; 3];
                others.iter_mut().zip(rest).for_each(|(other, block)| *other = Some(pair(block)));
                options.extend([Noop, Noop, SelectiveAcknowledgement(pair(first), others)]);
            }
        }
    }
    options
}

/// What a segment says to or as a PEP.
fn pep_option(segment: &Segment) -> Vec<u8> {
    match &segment.options {
        Options::Syn(syn) if syn.reports => report::announcement().to_vec(),
        Options::Announcement => report::announcement().to_vec(),
        Options::Report(report) => {
            let mut option = Vec::new();
            report.write(&mut option);
            option
        }
        Options::Syn(_) | Options::Sack(_) => Vec::new(),
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}
