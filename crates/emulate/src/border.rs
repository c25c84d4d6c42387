//! The scenario's PEPs, for real packets: a PEP sees the headers of packets that pass it, and may answer their sender.

use pep::{Arrival, Pep, Stats};
use std::net::SocketAddr;
use std::ops::Range;
use units::Time;
use wire::{Headers, Transport, segment_headers};

/// Bytes of an Ethernet address.
const MAC: usize = 6;

/// The sender's and the receiver's address and port.
type Key = [SocketAddr; 2];

/// PEPs, in the order of [`sim::Live::pep_nodes`].
#[derive(Debug, Default)]
pub(crate) struct Border {
    peps: Vec<Pep<Key>>,
}

impl Border {
    pub(crate) fn new(count: usize) -> Border {
        Border { peps: (0..count).map(|_| Pep::new(pep::Config::default())).collect() }
    }

    /// Returns each PEP's counters.
    pub(crate) fn stats(&self) -> impl Iterator<Item = Stats> {
        self.peps.iter().map(Pep::stats)
    }

    /// The packet `frame[ip]` passes. Returns the frame of the PEP's answer, if there is one, and where its packet is.
    /// `answers` is true for packets towards the receiver, which the PEP answers.
    pub(crate) fn pass(
        &mut self,
        pep: usize,
        answers: bool,
        frame: &[u8],
        ip: Range<usize>,
        now: Time,
    ) -> Option<(Vec<u8>, Range<usize>)> {
        let packet = frame.get(ip.clone())?;
        let header = Headers::parse(packet).ok()?;
        let Transport::Tcp(segment) = header.transport else { return None };
        let pep = self.peps.get_mut(pep)?;
        let from = SocketAddr::new(header.source, header.source_port);
        let to = SocketAddr::new(header.destination, header.destination_port);
        if !answers {
            pep.on_reply([to, from], &segment, now);
            return None;
        }
        // The link's header, if it has one, begins with two addresses.
        let via = frame[..ip.start].get(MAC..2 * MAC).unwrap_or_default();
        let via = via.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let report = pep.on_arrival([from, to], &segment, &Arrival { packets: 1, packet_len: header.len, via }, now)?;
        // On a wire it goes back to the address that it came from.
        let mut answer = frame[..ip.start].to_vec();
        if let Some((first, rest)) = answer.split_at_mut_checked(MAC)
            && let Some(second) = rest.get_mut(..MAC)
        {
            first.swap_with_slice(second);
        }
        let start = answer.len();
        answer.extend(segment_headers(&report, to, from, 0, &[]).ok()?);
        let end = answer.len();
        Some((answer, start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
    use std::net::IpAddr;
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
                .tcp(ports.0, ports.1, numbers.0, 500);
        if flags.has(Flags::SYN) {
            tcp = tcp.syn();
        }
        let mut frame = Vec::new();
        tcp.ack(numbers.1).options_raw(&options).unwrap().write(&mut frame, &vec![0; len]).unwrap();
        frame
    }

    #[test]
    fn an_announced_flow_is_answered_in_frames_that_hold() {
        let mut border = Border::new(1);
        let mut pass = |frame: &[u8], answers| border.pass(0, answers, frame, 14..frame.len(), Time::ZERO);
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
        let stats: Vec<Stats> = border.stats().collect();
        assert_eq!((stats[0].data, stats[0].reports), (2, 1));
    }

    #[test]
    fn any_bytes_pass() {
        let mut border = Border::new(1);
        bolero::check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
            for answers in [true, false] {
                border.pass(0, answers, bytes, 0..bytes.len(), Time::ZERO);
                border.pass(0, answers, bytes, 14..bytes.len(), Time::ZERO);
            }
        });
    }
}
