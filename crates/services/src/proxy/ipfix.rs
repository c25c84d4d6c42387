//! IPFIX messages with a flow record for each connection that has ended.
//!
//! Sources: RFC 7011 (messages, templates), RFC 5103 (both directions in one record), and IANA's registry of IPFIX information
//! elements, whose names stand beside their numbers.
//!
//! The layout is fixed and small, so it is written here. The crate `netgauze-flow-pkt` (0.13) encodes it, too, but its build script
//! brings an HTTP client with a C library of its own, and a licence that `deny.toml` does not allow.
//!
//! A record's source is the host that opened the connection. What is unknown is not in its template: each set of known elements has a
//! template of its own. The registry has no element for a round-trip time of TCP, so records have none.
//!
//! Payload is in `initiatorOctets` and `responderOctets`, exactly. `octetDeltaCount` counts the bytes of IP packets by its definition;
//! [`Leg::octets`] tells what of them is known.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use super::ended::{End, Ended, Leg};
use super::flow::Side;

/// RFC 7011, section 3.1.
const VERSION: u16 = 10;
const HEADER: usize = 16;
/// Section 3.3.2.
const SET_HEADER: usize = 4;
const TEMPLATE_SET: u16 = 2;
/// Section 3.4.1: the least number of a template.
const FIRST_TEMPLATE: u16 = 256;
/// Section 3.2: the bit of an element's number that an enterprise number follows; and that of the reverse direction (RFC 5103).
const ENTERPRISE: u16 = 1 << 15;
const REVERSE: u32 = 29_305;
/// The protocol's number.
const TCP: u128 = 6;
/// `biflowDirection`: the source has opened the connection.
const INITIATOR: u128 = 1;

/// An information element.
struct Element {
    number: u16,
    is_reverse: bool,
    /// Its length in bytes.
    length: usize,
    /// Its value, if it is known.
    value: fn(&Ended) -> Option<u128>,
}

const fn element(number: u16, length: usize, value: fn(&Ended) -> Option<u128>) -> Element {
    Element { number, is_reverse: false, length, value }
}

const fn reverse(number: u16, length: usize, value: fn(&Ended) -> Option<u128>) -> Element {
    Element { number, is_reverse: true, length, value }
}

/// The elements of records, in their order.
const ELEMENTS: [Element; 21] = [
    // sourceIPv4Address, sourceIPv6Address, destinationIPv4Address, destinationIPv6Address
    element(8, 4, |of| ipv4(ends(of)[0])),
    element(27, 16, |of| ipv6(ends(of)[0])),
    element(12, 4, |of| ipv4(ends(of)[1])),
    element(28, 16, |of| ipv6(ends(of)[1])),
    // sourceTransportPort, destinationTransportPort
    element(7, 2, |of| Some(ends(of)[0].port().into())),
    element(11, 2, |of| Some(ends(of)[1].port().into())),
    // protocolIdentifier
    element(4, 1, |_| Some(TCP)),
    // flowStartMilliseconds, flowEndMilliseconds
    element(152, 8, |of| Some(milliseconds(of.time_s - of.duration_s))),
    element(153, 8, |of| Some(milliseconds(of.time_s))),
    // flowEndReason
    element(136, 1, |of| Some(reason(of.end))),
    // biflowDirection, which belongs in each record over UDP
    element(239, 1, |_| Some(INITIATOR)),
    // initiatorOctets, responderOctets, initiatorPackets, responderPackets
    element(231, 8, |of| Some(payload(of)[0].into())),
    element(232, 8, |of| Some(payload(of)[1].into())),
    element(298, 8, |of| Some(legs(of)[0]?.packets.into())),
    element(299, 8, |of| Some(legs(of)[1]?.packets.into())),
    // octetDeltaCount, packetDeltaCount
    element(1, 8, |of| Some(legs(of)[0]?.octets.into())),
    element(2, 8, |of| Some(legs(of)[0]?.packets.into())),
    reverse(1, 8, |of| Some(legs(of)[1]?.octets.into())),
    reverse(2, 8, |of| Some(legs(of)[1]?.packets.into())),
    // ingressInterface, egressInterface
    element(10, 4, |of| Some(interfaces(of)[0]?.into())),
    element(14, 4, |of| Some(interfaces(of)[1]?.into())),
];

/// Arranges what is known of the UE's side and of its peer's by who opened the connection.
fn by_initiator<T>(of: &Ended, [ue, peer]: [T; 2]) -> [T; 2] {
    match of.opened_by {
        Side::Ran => [ue, peer],
        Side::Wan => [peer, ue],
    }
}

fn ends(of: &Ended) -> [SocketAddr; 2] {
    by_initiator(of, [of.ue, of.peer])
}

/// The bytes from the initiator and from the responder.
fn payload(of: &Ended) -> [u64; 2] {
    by_initiator(of, [of.from_ue_bytes, of.to_ue_bytes])
}

fn legs(of: &Ended) -> [Option<Leg>; 2] {
    by_initiator(of, [of.ran, of.wan])
}

fn interfaces(of: &Ended) -> [Option<u32>; 2] {
    by_initiator(of, of.interfaces)
}

fn ipv4(end: SocketAddr) -> Option<u128> {
    if let IpAddr::V4(address) = end.ip() { Some(u32::from(address).into()) } else { None }
}

fn ipv6(end: SocketAddr) -> Option<u128> {
    if let IpAddr::V6(address) = end.ip() { Some(address.into()) } else { None }
}

fn milliseconds(seconds: f64) -> u128 {
    (seconds * 1e3).round() as u128
}

/// Values of `flowEndReason`: idle timeout, end of the flow detected, and lack of resources.
fn reason(end: End) -> u128 {
    match end {
        End::ConnectTimeout | End::Idle | End::HalfClosed => 1,
        End::Closed | End::Reset | End::ConnectFailed => 3,
        End::Starved => 5,
    }
}

/// A record, and which elements it has.
#[derive(Debug)]
pub(super) struct Record {
    known: u32,
    bytes: Vec<u8>,
}

impl Record {
    pub(super) fn new(ended: &Ended) -> Record {
        let mut record = Record { known: 0, bytes: Vec::new() };
        for (n, element) in ELEMENTS.iter().enumerate() {
            if let Some(value) = (element.value)(ended) {
                record.known |= 1 << n;
                record.bytes.extend_from_slice(&value.to_be_bytes()[size_of::<u128>() - element.length..]);
            }
        }
        record
    }
}

/// Makes messages of records.
#[derive(Debug)]
pub(super) struct Messages {
    domain: u32,
    /// The length of a message, at most.
    most: usize,
    /// Records in messages so far (section 3.1), of which the lower 32 bits count.
    sequence: u32,
    /// The elements of each template, by its number from [`FIRST_TEMPLATE`] on.
    templates: Vec<u32>,
    /// The records for the next message, by the number of their template.
    waiting: BTreeMap<u16, Vec<u8>>,
    count: u32,
}

impl Messages {
    /// Messages of an observation domain, of at most `most` bytes.
    pub(super) fn new(domain: u32, most: usize) -> Messages {
        // With IPv4 and with IPv6, all else known, as nearly always.
        let all = |without: &[u16]| {
            let has = |element: &Element| !without.contains(&element.number);
            ELEMENTS.iter().enumerate().map(|(n, element)| u32::from(has(element)) << n).sum()
        };
        let templates = vec![all(&[27, 28]), all(&[8, 12])];
        Messages { domain, most, sequence: 0, templates, waiting: BTreeMap::new(), count: 0 }
    }

    /// Begins a session with a collector, to which messages have at most `most` bytes. Records that wait belong to it.
    pub(super) fn begin(&mut self, most: usize) {
        self.sequence = 0;
        self.most = most;
    }

    /// The number of records that wait for the next message.
    pub(super) fn waiting(&self) -> u32 {
        self.count
    }

    /// Whether the next message has room for a record.
    pub(super) fn has_room(&self, record: &Record) -> bool {
        let sets: usize = self.waiting.values().map(|records| SET_HEADER + records.len()).sum();
        HEADER + sets + SET_HEADER + record.bytes.len() <= self.most
    }

    /// Adds a record to the next message. Returns whether it needs a template that has not been in [`Messages::templates`] before.
    pub(super) fn add(&mut self, record: &Record) -> bool {
        let found = self.templates.iter().position(|&known| known == record.known);
        let n = found.unwrap_or(self.templates.len());
        if found.is_none() {
            self.templates.push(record.known);
        }
        self.waiting.entry(FIRST_TEMPLATE + n as u16).or_default().extend_from_slice(&record.bytes);
        self.count += 1;
        found.is_none()
    }

    /// Returns messages with all templates, which leave at this Unix time.
    pub(super) fn templates(&self, time: u32) -> Vec<Vec<u8>> {
        let mut messages: Vec<Vec<u8>> = Vec::new();
        let mut set = Vec::new();
        for (&known, number) in self.templates.iter().zip(FIRST_TEMPLATE..) {
            let template = template(number, known);
            if !set.is_empty() && HEADER + SET_HEADER + set.len() + template.len() > self.most {
                messages.push(self.message(time, [(TEMPLATE_SET, &*std::mem::take(&mut set))]));
            }
            set.extend(template);
        }
        messages.push(self.message(time, [(TEMPLATE_SET, &*set)]));
        messages
    }

    /// Returns the message with the records that wait, which leaves at this Unix time, and their number; `None` if there are none.
    pub(super) fn take(&mut self, time: u32) -> Option<(Vec<u8>, u32)> {
        let waiting = std::mem::take(&mut self.waiting);
        let count = std::mem::take(&mut self.count);
        let message =
            (count > 0).then(|| self.message(time, waiting.iter().map(|(&number, records)| (number, &**records))));
        self.sequence = self.sequence.wrapping_add(count);
        message.map(|message| (message, count))
    }

    /// A message of these sets (sections 3.1 and 3.3).
    fn message<'a>(&self, time: u32, sets: impl IntoIterator<Item = (u16, &'a [u8])>) -> Vec<u8> {
        let mut message = vec![0; HEADER];
        for (number, body) in sets {
            message.extend(number.to_be_bytes());
            message.extend(((SET_HEADER + body.len()) as u16).to_be_bytes());
            message.extend(body);
        }
        let length = message.len() as u16;
        message[..2].copy_from_slice(&VERSION.to_be_bytes());
        message[2..4].copy_from_slice(&length.to_be_bytes());
        message[4..8].copy_from_slice(&time.to_be_bytes());
        message[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        message[12..16].copy_from_slice(&self.domain.to_be_bytes());
        message
    }
}

/// A template record (sections 3.2 and 3.4.1).
fn template(number: u16, known: u32) -> Vec<u8> {
    let mut template = [number.to_be_bytes(), (known.count_ones() as u16).to_be_bytes()].concat();
    for (_, element) in ELEMENTS.iter().enumerate().filter(|(n, _)| known & 1 << n != 0) {
        let enterprise = if element.is_reverse { ENTERPRISE } else { 0 };
        template.extend((element.number | enterprise).to_be_bytes());
        template.extend((element.length as u16).to_be_bytes());
        if element.is_reverse {
            template.extend(REVERSE.to_be_bytes());
        }
    }
    template
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::ended::tests::example;
    use testkit::ipfix::flows;

    const MOST: usize = 1_232;

    /// A connection over IPv6 that a server has opened.
    fn other() -> Ended {
        let leg = |packets, octets| Leg { srtt_s: None, min_rtt_s: None, retransmissions: 0, packets, octets };
        Ended {
            ue: "[2001:db8::1]:8080".parse().expect("an address"),
            peer: "[2001:db8:1::2]:50000".parse().expect("an address"),
            opened_by: Side::Wan,
            end: End::Starved,
            ran: Some(leg(3, 333)),
            wan: Some(leg(4, 444)),
            ..example(1)
        }
    }

    #[test]
    fn tshark_reads_each_element_that_is_known_and_no_other() {
        let mut messages = Messages::new(7, MOST);
        let known = Ended { wan: other().wan, end: End::Idle, time_s: 1_700_000_002.25, ..example(40_000) };
        let unknown = Ended { interfaces: [None, Some(3)], ran: None, ..example(40_001) };
        // IPv4 and IPv6 with all else have templates from the start.
        let are_new = [&known, &other(), &unknown].map(|ended| messages.add(&Record::new(ended)));
        assert_eq!(are_new, [false, false, true]);
        let mut all = messages.templates(1_700_000_003);
        all.extend(messages.take(1_700_000_003).map(|(message, count)| {
            assert_eq!(count, 3);
            message
        }));
        let Some(flows) = flows(&all) else { return };
        let expected: [&[&str]; 3] = [
            &[
                "SrcAddr: 10.0.0.1",
                "DstAddr: 192.0.2.1",
                "SrcPort: 40000",
                "DstPort: 443",
                "Protocol: TCP (6)",
                "[Duration: 1.000000000 seconds (milliseconds)]",
                "StartTime: Nov 14, 2023 22:13:21.250000000 UTC",
                "EndTime: Nov 14, 2023 22:13:22.250000000 UTC",
                "Flow End Reason: Idle timeout (1)",
                "Biflow Direction: Initiator (1)",
                "Initiator Octets: 4",
                "Responder Octets: 3",
                "Initiator Packets: 5",
                "Responder Packets: 4",
                "Octets: 264",
                "Packets: 5",
                "Octets: 444 (Reverse Type 1 BYTES)",
                "Packets: 4 (Reverse Type 2 PKTS)",
                "InputInt: 4",
                "OutputInt: 3",
            ],
            &[
                "SrcAddr: 2001:db8:1::2",
                "DstAddr: 2001:db8::1",
                "SrcPort: 50000",
                "DstPort: 8080",
                "Protocol: TCP (6)",
                "[Duration: 1.000000000 seconds (milliseconds)]",
                "StartTime: Jan  1, 1970 00:00:00.500000000 UTC",
                "EndTime: Jan  1, 1970 00:00:01.500000000 UTC",
                "Flow End Reason: Lack of resources (5)",
                "Biflow Direction: Initiator (1)",
                "Initiator Octets: 3",
                "Responder Octets: 4",
                "Initiator Packets: 4",
                "Responder Packets: 3",
                "Octets: 444",
                "Packets: 4",
                "Octets: 333 (Reverse Type 1 BYTES)",
                "Packets: 3 (Reverse Type 2 PKTS)",
                "InputInt: 3",
                "OutputInt: 4",
            ],
            &[
                "SrcAddr: 10.0.0.1",
                "DstAddr: 192.0.2.1",
                "SrcPort: 40001",
                "DstPort: 443",
                "Protocol: TCP (6)",
                "[Duration: 1.000000000 seconds (milliseconds)]",
                "StartTime: Jan  1, 1970 00:00:00.500000000 UTC",
                "EndTime: Jan  1, 1970 00:00:01.500000000 UTC",
                "Flow End Reason: End of Flow detected (3)",
                "Biflow Direction: Initiator (1)",
                "Initiator Octets: 4",
                "Responder Octets: 3",
                "OutputInt: 3",
            ],
        ];
        // In the order of their templates.
        assert_eq!(flows, expected);
    }

    #[test]
    fn messages_fit_and_count_the_records_before_them() {
        let number = |bytes: &[u8], at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().expect("four bytes"));
        let mut messages = Messages::new(7, MOST);
        messages.sequence = u32::MAX - 20;
        let mut all = Vec::new();
        for n in 0..50 {
            let ended = if n % 3 == 0 { other() } else { example(n) };
            let record = Record::new(&ended);
            if !messages.has_room(&record) {
                all.extend(messages.take(9));
            }
            messages.add(&record);
        }
        all.extend(messages.take(9));
        assert!(messages.take(9).is_none() && messages.waiting() == 0);
        let mut before = u32::MAX - 20;
        for (message, count) in &all {
            assert!(
                message.len() <= MOST && number(message, 0) == 10 << 16 | message.len() as u32,
                "{}",
                message.len()
            );
            assert_eq!([4, 8, 12].map(|at| number(message, at)), [9, before, 7]);
            before = before.wrapping_add(*count);
        }
        assert_eq!(all.iter().map(|(_, count)| count).sum::<u32>(), 50);
        assert!(all.len() < 8, "{} messages", all.len());
    }

    /// The numbers of the templates in a set.
    fn numbers(mut set: &[u8]) -> Vec<u16> {
        let number = |set: &[u8]| u16::from_be_bytes([set[0], set[1]]);
        let mut numbers = Vec::new();
        while !set.is_empty() {
            numbers.push(number(set));
            let count = number(&set[2..]);
            set = &set[4..];
            for _ in 0..count {
                set = &set[if number(set) & ENTERPRISE != 0 { 8 } else { 4 }..];
            }
        }
        numbers
    }

    #[test]
    fn templates_that_do_not_fit_into_a_message_are_in_several() {
        let mut messages = Messages::new(7, 512);
        for interfaces in [[None, None], [Some(1), None], [None, Some(1)]] {
            for end in [example(1), other()] {
                messages.add(&Record::new(&Ended { interfaces, ..end }));
            }
        }
        let all = messages.templates(0);
        assert!(all.len() > 1 && all.iter().all(|message| message.len() <= 512), "{all:?}");
        let numbers: Vec<u16> = all.iter().flat_map(|message| numbers(&message[HEADER + SET_HEADER..])).collect();
        assert_eq!(numbers, (256..256 + messages.templates.len() as u16).collect::<Vec<_>>());
    }
}
