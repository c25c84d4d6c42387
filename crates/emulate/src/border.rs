//! Real packets as middleboxes see them, and the packets that middleboxes send.

use crate::forward::{Forward, visitor};
use crate::held::{Held, Store};
use pep::Arrival;
use sim::{External, FlowKey, Visitor};
use std::net::SocketAddr;
use std::ops::Range;
use wire::{Headers, Segment, Transport, segment_headers};

/// Bytes of an Ethernet address.
const MAC: usize = 6;

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
        let headers = Headers::parse(&frame[ip.clone()]).ok()?;
        let to = if onward { *to } else { self.forward.to(&headers, *to)? };
        if !self.store.has_room(frame.len()) {
            return None;
        }
        let tag = self.store.keep(&frame, ip, None, to);
        Some(visitor(tag, headers.len, &headers))
    }

    fn consumed(&mut self, tag: u32) {
        self.store.free(tag);
    }
}

/// The packet `frame[ip]` as a middlebox sees it.
fn view(frame: &[u8], ip: Range<usize>, towards_receiver: bool) -> Option<(FlowKey, Segment, Arrival)> {
    let headers = Headers::parse(frame.get(ip.clone())?).ok()?;
    let Transport::Tcp(segment) = headers.transport else { return None };
    let [from, to] = addresses(&headers);
    let key = FlowKey::Addresses(if towards_receiver { [from, to] } else { [to, from] });
    // The link's header, if it has one, begins with two addresses.
    let via = frame[..ip.start].get(MAC..2 * MAC).unwrap_or_default();
    let via = via.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    Some((key, segment, Arrival { packets: 1, packet_len: headers.len, via }))
}

/// The frame of a segment without payload that a middlebox sends on the way of `of[ip]`, or back to where that came from,
/// and the place of the packet in it.
fn build(of: &[u8], ip: Range<usize>, onward: bool, segment: &Segment) -> Option<(Vec<u8>, Range<usize>)> {
    let headers = Headers::parse(of.get(ip.clone())?).ok()?;
    if segment.len > 0 {
        return None;
    }
    let mut frame = of[..ip.start].to_vec();
    // On a wire, an answer goes back to the address that the packet came from.
    if !onward
        && let Some((first, rest)) = frame.split_at_mut_checked(MAC)
        && let Some(second) = rest.get_mut(..MAC)
    {
        first.swap_with_slice(second);
    }
    let [from, to] = addresses(&headers);
    let (from, to) = if onward { (from, to) } else { (to, from) };
    let start = frame.len();
    frame.extend(segment_headers(segment, from, to, 0, &[]).ok()?);
    let end = frame.len();
    Some((frame, start..end))
}

/// A packet's source and destination.
fn addresses(headers: &Headers) -> [SocketAddr; 2] {
    let source = SocketAddr::new(headers.source, headers.source_port);
    [source, SocketAddr::new(headers.destination, headers.destination_port)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use pep::Pep;
    use std::net::IpAddr;
    use units::Time;
    use wire::report::{Message, announcement};
    use wire::{Flags, Timestamps};

    const SENDER: [u8; 4] = [10, 0, 0, 1];
    const PHONE: [u8; 4] = [10, 0, 0, 2];

    /// A packet between the two behind an Ethernet header, with timestamps and `more` options.
    fn frame(
        from_sender: bool,
        flags: Flags,
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
                .tcp(ports.0, ports.1, numbers.0, 65_000);
        if flags.has(Flags::SYN) {
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
        assert!(pass(&frame(true, Flags::SYN, (999, 1), (100, 0), &announcement(), 0), true).is_none());
        assert!(pass(&frame(false, Flags::default(), (1, 1000), (700, 100), &[], 0), false).is_none());
        assert!(pass(&frame(true, Flags::default(), (1000, 1), (101, 700), &[], 1400), true).is_none());
        let (answer, ip) =
            pass(&frame(true, Flags::default(), (2400, 1), (102, 700), &[], 1400), true).expect("a report");
        assert_eq!((&answer[..6], &answer[6..12], &answer[12..14]), (&[1; 6][..], &[2; 6][..], &[8, 0][..]));
        let packet = &answer[ip];
        let header = Headers::parse(packet).expect("a packet");
        assert_eq!((header.source, header.destination), (IpAddr::from(PHONE), IpAddr::from(SENDER)));
        assert_eq!((header.source_port, header.destination_port, header.payload_len), (4000, 80, 0));
        let Transport::Tcp(tcp) = header.transport else { panic!("{header:?}") };
        let timestamps = Some(Timestamps { value: 700, echo: 102 });
        assert_eq!((tcp.seq, tcp.ack, tcp.flags, tcp.timestamps), (1, 1000, Flags::ACK, timestamps));
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
