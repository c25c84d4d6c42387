//! Real packets as middleboxes see them, and the packets that middleboxes send.

use crate::forward::{Forward, visitor};
use crate::held::{Held, Store};
use crate::observe::{Header, Tcp, Transport};
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use pep::Arrival;
use sim::{External, FlowKey, Visitor};
use std::net::IpAddr;
use std::ops::Range;
use tcp::report::Message;
use tcp::segment::{Flags, Options, Segment, SynOptions, Timestamps};

/// Bytes of an Ethernet address.
const MAC: usize = 6;
const TTL: u8 = 64;
/// Bytes of the headers of nearly all segments with data, over IPv4: there is no option but timestamps.
const USUAL_HEADERS: u32 = 52;

/// The packets that are on their way, for the network's middleboxes.
pub(crate) struct OnTheWay<'a> {
    pub(crate) store: &'a mut Store,
    pub(crate) forward: &'a Forward,
}

impl External for OnTheWay<'_> {
    fn segment(&self, tag: u32, towards_receiver: bool) -> Option<(FlowKey, Segment, Arrival)> {
        let Held { frame, ip, .. } = self.store.get(tag);
        view(frame, ip.clone(), towards_receiver)
    }

    fn build(&mut self, tag: u32, onward: bool, segment: &Segment) -> Option<Visitor> {
        let Held { frame, ip, to, .. } = self.store.get(tag);
        let (frame, ip) = build(frame, ip.clone(), onward, segment)?;
        let header = Header::parse(&frame[ip.clone()])?;
        let to = if onward { *to } else { self.forward.to(&header, *to)? };
        if !self.store.has_room(frame.len()) {
            return None;
        }
        let tag = self.store.keep(&frame, ip, None, to);
        Some(visitor(tag, header.len, &header))
    }

    fn consumed(&mut self, tag: u32) {
        self.store.free(tag);
    }
}

/// The packet `frame[ip]` as a middlebox sees it.
fn view(frame: &[u8], ip: Range<usize>, towards_receiver: bool) -> Option<(FlowKey, Segment, Arrival)> {
    let packet = frame.get(ip.clone())?;
    let header = Header::parse(packet)?;
    let segment = segment(packet, &header)?;
    let (from, to) = ((header.source, header.source_port), (header.destination, header.destination_port));
    let key = FlowKey::Addresses(if towards_receiver { [from, to] } else { [to, from] });
    // The link's header, if it has one, begins with two addresses.
    let via = frame[..ip.start].get(MAC..2 * MAC).unwrap_or_default();
    let via = via.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    Some((key, segment, Arrival { packets: 1, packet_len: header.len, via }))
}

/// The frame of a segment that a middlebox sends on the way of `of[ip]`, or back to where that came from, and the packet in
/// it.
fn build(of: &[u8], ip: Range<usize>, onward: bool, segment: &Segment) -> Option<(Vec<u8>, Range<usize>)> {
    let header = Header::parse(of.get(ip.clone())?)?;
    let mut frame = of[..ip.start].to_vec();
    // On a wire, an answer goes back to the address that the packet came from.
    if !onward
        && let Some((first, rest)) = frame.split_at_mut_checked(MAC)
        && let Some(second) = rest.get_mut(..MAC)
    {
        first.swap_with_slice(second);
    }
    let (from, to) = ((header.source, header.source_port), (header.destination, header.destination_port));
    let start = frame.len();
    let (from, to) = if onward { (from, to) } else { (to, from) };
    write(segment, from, to, &mut frame)?;
    let end = frame.len();
    Some((frame, start..end))
}

/// A TCP segment as a PEP looks at it.
fn segment(packet: &[u8], header: &Header) -> Option<Segment> {
    let Transport::Tcp(tcp) = header.transport else { return None };
    let options = if tcp.has(Tcp::SYN) {
        let reports = announces(packet);
        Options::Syn(SynOptions { mss: 0, window_scale: None, sack_permitted: true, reports })
    } else if header.payload_len > 0 && header.len > header.payload_len + USUAL_HEADERS && announces(packet) {
        Options::Announcement
    } else {
        Options::default()
    };
    Some(Segment {
        seq: tcp.seq,
        ack: tcp.ack,
        window: tcp.window,
        len: u16::try_from(header.payload_len).ok()?,
        flags: Flags(tcp.flags),
        timestamps: tcp.timestamps.map(|(value, echo)| Timestamps { value, echo }),
        options,
    })
}

/// Whether a segment says that its sender understands reports.
fn announces(packet: &[u8]) -> bool {
    match SlicedPacket::from_ip(packet).map(|packet| packet.transport) {
        Ok(Some(TransportSlice::Tcp(tcp))) => Message::find(tcp.options()) == Some(Message::Announcement),
        _ => false,
    }
}

/// Appends the packet of a segment without payload, which is a report.
fn write(segment: &Segment, from: (IpAddr, u16), to: (IpAddr, u16), frame: &mut Vec<u8>) -> Option<()> {
    let Options::Report(report) = segment.options else { return None };
    let Timestamps { value, echo } = segment.timestamps?;
    let mut options = vec![1, 1, 8, 10];
    options.extend(value.to_be_bytes());
    options.extend(echo.to_be_bytes());
    report.write(&mut options);
    let ip = match (from.0, to.0) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), TTL),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), TTL),
        _ => return None,
    };
    let tcp = ip.tcp(from.1, to.1, segment.seq, segment.window).ack(segment.ack);
    tcp.options_raw(&options).ok()?.write(frame, &[]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pep::Pep;
    use units::Time;

    const SENDER: [u8; 4] = [10, 0, 0, 1];
    const PHONE: [u8; 4] = [10, 0, 0, 2];

    /// A packet between the two behind an Ethernet header, with timestamps and `more` options.
    fn frame(
        from_sender: bool,
        flags: u8,
        numbers: (u32, u32),
        stamps: (u32, u32),
        more: &[u8],
        len: usize,
    ) -> Vec<u8> {
        let (from, to, ports) = if from_sender { (SENDER, PHONE, (80, 4000)) } else { (PHONE, SENDER, (4000, 80)) };
        let mut options = vec![1, 1, 8, 10];
        options.extend(stamps.0.to_be_bytes());
        options.extend(stamps.1.to_be_bytes());
        options.extend(more);
        let mut tcp =
            PacketBuilder::ethernet2([if from_sender { 1 } else { 2 }; 6], [if from_sender { 2 } else { 1 }; 6])
                .ipv4(from, to, 64)
                .tcp(ports.0, ports.1, numbers.0, 500);
        if flags & Tcp::SYN != 0 {
            tcp = tcp.syn();
        }
        let mut frame = Vec::new();
        tcp.ack(numbers.1).options_raw(&options).unwrap().write(&mut frame, &vec![0; len]).unwrap();
        frame
    }

    /// What a PEP says to a frame with an IP packet behind an Ethernet header: the frame of its report.
    fn pass(pep: &mut Pep<FlowKey>, frame: &[u8], towards_receiver: bool) -> Option<(Vec<u8>, Range<usize>)> {
        let ip = 14..frame.len();
        let (key, segment, arrival) = view(frame, ip.clone(), towards_receiver)?;
        if !towards_receiver {
            pep.on_reply(key, &segment, Time::ZERO);
            return None;
        }
        build(frame, ip, false, &pep.on_arrival(key, &segment, &arrival, Time::ZERO)?)
    }

    #[test]
    fn an_announced_flow_is_answered_in_frames_that_hold() {
        let mut pep = Pep::new(pep::Config::default());
        let mut pass = |frame: &[u8], towards_receiver| pass(&mut pep, frame, towards_receiver);
        assert!(pass(&frame(true, Tcp::SYN, (999, 1), (100, 0), &tcp::report::announcement(), 0), true).is_none());
        assert!(pass(&frame(false, 0, (1, 1000), (700, 100), &[], 0), false).is_none());
        assert!(pass(&frame(true, 0, (1000, 1), (101, 700), &[], 1400), true).is_none());
        let (answer, ip) = pass(&frame(true, 0, (2400, 1), (102, 700), &[], 1400), true).expect("a report");
        assert_eq!((&answer[..6], &answer[6..12], &answer[12..14]), (&[1; 6][..], &[2; 6][..], &[8, 0][..]));
        let packet = &answer[ip];
        let header = Header::parse(packet).expect("a packet");
        assert_eq!((header.source, header.destination), (IpAddr::from(PHONE), IpAddr::from(SENDER)));
        assert_eq!((header.source_port, header.destination_port, header.payload_len), (4000, 80, 0));
        let Transport::Tcp(tcp) = header.transport else { panic!("{header:?}") };
        assert_eq!((tcp.seq, tcp.ack, tcp.flags, tcp.timestamps), (1, 1000, Tcp::ACK, Some((700, 102))));
        let sliced = SlicedPacket::from_ip(packet).unwrap();
        let Some(TransportSlice::Tcp(slice)) = sliced.transport else { panic!("no TCP") };
        let Some(Message::Report(report)) = Message::find(slice.options()) else { panic!("no report") };
        assert_eq!((report.from, report.through, report.missing()), (0, 2800, &[][..]));
        let checksum = slice.to_header().calc_checksum_ipv4_raw(PHONE, SENDER, &[]).unwrap();
        assert_eq!(slice.checksum(), checksum);
        assert_eq!((pep.stats().data, pep.stats().reports), (2, 1));
    }

    #[test]
    fn any_bytes_pass() {
        let mut pep = Pep::new(pep::Config { all: true, ..pep::Config::default() });
        bolero::check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
            for (towards_receiver, start) in [(true, 0), (true, 14), (false, 0), (false, 14)] {
                let ip = start..bytes.len();
                let Some((key, segment, arrival)) = view(bytes, ip.clone(), towards_receiver) else { continue };
                if let Some(report) = pep.on_arrival(key, &segment, &arrival, Time::ZERO) {
                    build(bytes, ip.clone(), false, &report);
                    build(bytes, ip, true, &report);
                }
            }
        });
    }
}
