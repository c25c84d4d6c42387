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
use std::ops::Deref;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};
use units::Time;
use wire::{Segment, datagram_headers, segment_headers};

use crate::{Error, OutputFile};

/// The longest headers: IPv4 without options, TCP with 40 bytes of them.
const SNAPLEN: u32 = 20 + 60;
/// `if_tsresol` of nanoseconds: 10^-9.
const NANOSECONDS: u8 = 9;

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
        Ok(Capture { writer })
    }

    /// Notes that `packet` passed the link with the number `link` (in the order of [`Capture::new`]).
    ///
    /// # Errors
    /// [`Error::Io`]; also for a packet that is too long for IPv4, and for a link that does not exist.
    pub fn packet(&mut self, link: u32, packet: &PacketView<'_>) -> Result<(), Error> {
        let written = headers(packet).map_err(io::Error::other).and_then(|(headers, original_len)| {
            let block = EnhancedPacketBlock {
                interface_id: link,
                timestamp: Duration::from_nanos(packet.time.as_nanos()),
                original_len,
                data: Cow::Borrowed(&headers),
                options: Vec::new(),
            };
            self.writer.write_block(&block.into_block()).map_err(into_io)
        });
        match written {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::io("write", self.writer.get_ref().path())(error)),
        }
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<(), Error> {
        self.writer.into_inner().finish()
    }
}

/// A packet's headers, and its length with its payload.
fn headers(packet: &PacketView<'_>) -> Result<(impl Deref<Target = [u8]> + use<>, u32), wire::Error> {
    let (source, destination, ecn) = (packet.source.into(), packet.destination.into(), packet.ecn & 0b11);
    let (headers, len) = match packet.transport {
        Transport::Tcp(segment) => (segment_headers(segment, source, destination, ecn, &[])?, segment.len),
        Transport::Udp(len) => (datagram_headers(len, source, destination, ecn, &[])?, len),
    };
    let original_len = headers.len() as u32 + u32::from(len);
    Ok((headers, original_len))
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}
