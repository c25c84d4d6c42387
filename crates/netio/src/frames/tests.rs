//! etherparse makes the packets and checks the checksums, so that nothing here is held against itself.

use super::*;
use etherparse::{
    Icmpv6Type, IpHeaders, Ipv4Header, Ipv6Header, Ipv6RawExtHeader, NetHeaders, PacketBuilder, PacketHeaders,
    TcpHeader, TcpOptionElement, TransportHeader, VlanId,
};

const HERE: [u8; 6] = [2, 0, 0, 0, 0, 1];
const THERE: [u8; 6] = [2, 0, 0, 0, 0, 2];
const V4_HERE: [u8; 4] = [10, 0, 0, 1];
const V4_THERE: [u8; 4] = [10, 0, 0, 2];
const V6_HERE: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const V6_THERE: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

fn v4(protocol: u8) -> IpHeaders {
    let mut header = Ipv4Header::new(0, 64, protocol.into(), V4_HERE, V4_THERE).unwrap();
    header.identification = 0xffff;
    IpHeaders::Ipv4(header, Default::default())
}

fn v6() -> IpHeaders {
    let header =
        Ipv6Header { source: V6_HERE, destination: V6_THERE, hop_limit: 64, traffic_class: 2, ..Default::default() };
    IpHeaders::Ipv6(header, Default::default())
}

fn v6_with_options() -> IpHeaders {
    let IpHeaders::Ipv6(header, mut more) = v6() else { unreachable!() };
    more.hop_by_hop_options = Some(Ipv6RawExtHeader::new_raw(0.into(), &[1, 4, 0, 0, 0, 0]).unwrap());
    IpHeaders::Ipv6(header, more)
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
}

fn tcp_header() -> TcpHeader {
    let mut header = TcpHeader::new(5201, 40_000, u32::MAX - 2_000, 500);
    (header.ack, header.psh, header.fin, header.cwr, header.acknowledgment_number) = (true, true, true, true, 77);
    header.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(1, 2)]).unwrap();
    header
}

fn frame(vlan: bool, ip: IpHeaders, udp: bool, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let start = PacketBuilder::ethernet2(HERE, THERE);
    let ip = if vlan { start.single_vlan(VlanId::try_new(42).unwrap()).ip(ip) } else { start.ip(ip) };
    if udp {
        ip.udp(4433, 50_000).write(&mut bytes, &payload(len)).unwrap();
    } else {
        ip.tcp_header(tcp_header()).write(&mut bytes, &payload(len)).unwrap();
    }
    bytes
}

fn icmp6(kind: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let step = PacketBuilder::ethernet2(HERE, THERE).ip(v6());
    step.icmpv6(Icmpv6Type::Unknown { type_u8: kind, code_u8: 0, bytes5to8: [0; 4] })
        .write(&mut bytes, &payload(1400))
        .unwrap();
    bytes
}

fn icmp4(kind: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ethernet2(HERE, THERE)
        .ip(v4(1))
        .icmpv4_raw(kind, 0, [0; 4])
        .write(&mut bytes, &payload(1400))
        .unwrap();
    bytes
}

fn arp() -> Vec<u8> {
    [&THERE[..], &HERE, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &HERE, &V4_HERE, &[0; 6], &V4_THERE].concat()
}

/// Every checksum of a frame, by etherparse. Its payload.
fn checked(frame: &[u8]) -> Vec<u8> {
    let headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let payload = headers.payload.slice().to_vec();
    let net = headers.net.unwrap();
    if let NetHeaders::Ipv4(ip, _) = &net {
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    }
    match (headers.transport.unwrap(), &net) {
        (TransportHeader::Tcp(tcp), NetHeaders::Ipv4(ip, _)) => {
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(ip, &payload).unwrap());
        }
        (TransportHeader::Tcp(tcp), NetHeaders::Ipv6(ip, _)) => {
            assert_eq!(tcp.checksum, tcp.calc_checksum_ipv6(ip, &payload).unwrap());
        }
        (TransportHeader::Udp(udp), NetHeaders::Ipv4(ip, _)) => {
            assert_eq!(udp.checksum, udp.calc_checksum_ipv4(ip, &payload).unwrap());
            assert_eq!(usize::from(udp.length), 8 + payload.len());
        }
        (TransportHeader::Udp(udp), NetHeaders::Ipv6(ip, _)) => {
            assert_eq!(udp.checksum, udp.calc_checksum_ipv6(ip, &payload).unwrap());
            assert_eq!(usize::from(udp.length), 8 + payload.len());
        }
        (TransportHeader::Icmpv4(icmp), _) => assert_eq!(icmp.checksum, icmp.icmp_type.calc_checksum(&payload)),
        (TransportHeader::Icmpv6(icmp), NetHeaders::Ipv6(ip, _)) => {
            assert_eq!(icmp.checksum, icmp.icmp_type.calc_checksum(ip.source, ip.destination, &payload).unwrap());
        }
        other => panic!("{other:?}"),
    }
    payload
}

#[test]
fn ip_packets_for_one_host_are_for_the_network_with_their_tags_and_without_padding() {
    for (ip, version) in [(v4(6), 4), (v6(), 6), (v6_with_options(), 6)] {
        for (vlan, at) in [(false, 14), (true, 18)] {
            let mut frame = frame(vlan, ip.clone(), false, 1);
            let end = frame.len();
            frame.resize(end + 20, 0);
            assert_eq!(packet(&frame), Some(at..end));
            assert_eq!(frame[at] >> 4, version);
        }
    }
    // Two tags.
    let mut frame = frame(true, v4(6), false, 1);
    frame.splice(12..12, [0x88, 0xa8, 0, 7]);
    assert_eq!(packet(&frame), Some(22..frame.len()));
}

#[test]
fn what_belongs_to_the_cable_goes_straight() {
    assert_eq!(packet(&arp()), None);
    for kind in 0..=255 {
        let straight = matches!(kind, 130..=137 | 143);
        assert_eq!(packet(&icmp6(kind)).is_none(), straight, "ICMPv6 {kind}");
    }
    let mut behind_options = frame(false, v6_with_options(), false, 100);
    (behind_options[54], behind_options[62]) = (58, 143);
    assert_eq!(packet(&behind_options), None, "MLD behind a hop-by-hop header");
    let mut multicast = frame(false, v4(6), false, 100);
    multicast[0] |= 1;
    assert_eq!(packet(&multicast), None);
    let mut broadcast = frame(false, v4(17), true, 100);
    broadcast[30..34].fill(255);
    assert_eq!(packet(&broadcast), None);
    for length_field in [frame(false, v4(6), false, 100), frame(false, v6(), false, 100)] {
        assert_eq!(packet(&length_field[..length_field.len() - 1]), None, "shorter than it says");
    }
    assert_eq!(packet(&[]), None);
}

#[test]
fn an_unfinished_checksum_is_finished() {
    for ip in [v4(6), v6()] {
        for udp in [false, true] {
            let mut frame = frame(true, ip.clone(), udp, 1001);
            let whole = frame.clone();
            let (at, packet) = find(&whole).unwrap();
            let (transport, offset) = (at + packet.header_len(), if udp { 6 } else { 16 });
            // As Linux leaves it: the folded sum of the pseudo-header, not inverted.
            let len = packet.payload().len() as u16;
            let pseudo = Sum::pseudo_header(packet.source, packet.destination, packet.protocol, len);
            set(&mut frame, transport + offset, !pseudo.checksum());
            assert_ne!(frame, whole);
            complete(&mut frame, transport, offset);
            assert_eq!(frame, whole);
            checked(&frame);
        }
    }
}

#[test]
fn sctp_has_its_own_checksum() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    let mut frame = frame(false, v4(132), true, 100);
    frame[23] = 132;
    let mut padded = frame.clone();
    padded.extend([0; 9]);
    complete(&mut padded, 34, 8);
    frame[42..46].fill(0);
    let expected = crc32c(&frame[34..]).to_le_bytes();
    assert_eq!(padded[42..46], expected);
}

#[test]
fn a_checksum_beyond_the_frame_changes_nothing() {
    let frame = frame(false, v4(6), false, 10);
    for (start, offset) in [(frame.len(), 0), (0, frame.len() - 1), (65_535, 65_535)] {
        let mut changed = frame.clone();
        complete(&mut changed, start, offset);
        assert_eq!(changed, frame);
    }
}

#[test]
fn a_cut_tcp_segment_is_the_same_stream() {
    for ip in [v4(6), v6(), v6_with_options()] {
        for vlan in [false, true] {
            let whole = frame(vlan, ip.clone(), false, 10_000);
            let pieces: Vec<_> = cut(&whole, 1448).unwrap().collect();
            assert_eq!(pieces.len(), 7);
            let mut data = Vec::new();
            for (index, piece) in pieces.iter().enumerate() {
                let part = checked(piece);
                assert_eq!(part.len(), if index == 6 { 10_000 - 6 * 1448 } else { 1448 });
                let headers = PacketHeaders::from_ethernet_slice(piece).unwrap();
                let Some(TransportHeader::Tcp(tcp)) = headers.transport else { panic!() };
                let mut expected = tcp_header();
                expected.sequence_number = expected.sequence_number.wrapping_add(data.len() as u32);
                (expected.cwr, expected.psh, expected.fin) = (index == 0, index == 6, index == 6);
                expected.checksum = tcp.checksum;
                assert_eq!(tcp, expected);
                match headers.net.unwrap() {
                    NetHeaders::Ipv4(ip, _) => assert_eq!(ip.identification, 0xffff_u16.wrapping_add(index as u16)),
                    NetHeaders::Ipv6(ip, _) => assert_eq!(ip.traffic_class, 2),
                    NetHeaders::Arp(_) => panic!(),
                }
                assert_eq!(piece[..14], whole[..14]);
                data.extend(part);
            }
            assert_eq!(data, payload(10_000));
        }
    }
}

#[test]
fn a_cut_udp_train_is_datagrams() {
    for ip in [v4(17), v6()] {
        let whole = frame(false, ip, true, 3_000);
        let parts: Vec<_> = cut(&whole, 1_200).unwrap().map(|piece| checked(&piece)).collect();
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [1_200, 1_200, 600]);
        assert_eq!(parts.concat(), payload(3_000));
    }
}

#[test]
fn what_has_no_segments_is_not_cut() {
    let tcp = frame(false, v4(6), false, 3_000);
    assert!(cut(&tcp, 0).is_none());
    assert!(cut(&frame(false, v4(6), false, 0), 1448).is_none());
    assert!(cut(&icmp4(8), 500).is_none());
    assert!(cut(&arp(), 500).is_none());
    let mut fragment = tcp;
    fragment[20] |= 0x20;
    assert!(cut(&fragment, 1448).is_none());
}

#[test]
fn a_packet_that_is_too_big_is_answered_to_its_sender() {
    for (ip, at, longest, says) in [(v4(6), 14, 576, [3, 4, 0, 0]), (v6(), 14, 1280, [2, 0, 0, 0])] {
        for vlan in [false, true] {
            let big = frame(vlan, ip.clone(), false, 1440);
            let at = if vlan { at + 4 } else { at };
            let answer = too_big(&big, 1400).unwrap();
            checked(&answer);
            assert_eq!([&answer[6..12], &answer[..6], &answer[12..at]].concat(), big[..at]);
            assert_eq!(packet(&answer), Some(at..at + longest));
            let ((_, answered), (_, asked)) = (find(&answer).unwrap(), find(&big).unwrap());
            assert_eq!((answered.destination, answered.source), (asked.source, asked.destination));
            let icmp = answered.payload();
            assert_eq!((icmp[0], icmp[1], &icmp[4..8]), (says[0], says[1], &[0, 0, 0x05, 0x78][..]));
            assert!(big[at..].starts_with(&icmp[8..]));
            assert_eq!(too_big(&answer, 100), None, "no error about an error");
        }
    }
}

#[test]
fn nothing_is_said_where_nothing_is_to_be_said() {
    let big = frame(false, v4(6), false, 1440);
    assert!(too_big(&big, 1400).is_some());
    let ip_len = (big.len() - 14) as u16;
    assert_eq!(too_big(&big, ip_len), None, "it fits");
    let changed = |at: usize, bytes: &[u8]| {
        let mut frame = big.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        too_big(&frame, 1400)
    };
    assert_eq!(changed(20, &[0]), None, "may be cut");
    assert_eq!(changed(20, &[0x40, 9]), None, "a later fragment");
    assert!(changed(20, &[0x60, 0]).is_some(), "a first fragment");
    for source in [[0; 4], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]] {
        assert_eq!(changed(26, &source), None, "from {source:?}");
    }
    assert_eq!(changed(30, &[239, 1, 2, 3]), None, "to many");
    assert_eq!(changed(0, &[0xff; 6]), None, "broadcast");
    for kind in 0..=255 {
        assert_eq!(too_big(&icmp4(kind), 1400).is_none(), matches!(kind, 3 | 4 | 5 | 11 | 12), "ICMP {kind}");
        assert_eq!(too_big(&icmp6(kind), 1400).is_none(), matches!(kind, 0..=127 | 137), "ICMPv6 {kind}");
    }
}

/// What must hold of any bytes at all.
fn anything(frame: &[u8], mtu: u16, size: u16) {
    if let Some(ip) = packet(frame) {
        assert!(ip.start >= 14 && ip.start + 20 <= ip.end && ip.end <= frame.len());
    }
    if let Some(answer) = too_big(frame, mtu) {
        let (at, packet) = find(&answer).unwrap();
        assert_eq!(at + packet.bytes().len(), answer.len());
        assert!(packet.bytes().len() <= if packet.is_v6() { 1280 } else { 576 });
        assert_eq!(too_big(&answer, 60), None);
        checked(&answer);
    }
    if let Some(pieces) = cut(frame, size) {
        let (_, whole) = find(frame).unwrap();
        let mut data = Vec::<u8>::new();
        for piece in pieces.take(100) {
            let (at, packet) = find(&piece).unwrap();
            assert_eq!((at + packet.bytes().len(), packet.header_len()), (piece.len(), whole.header_len()));
            let len = packet.payload().len() as u16;
            let pseudo = Sum::pseudo_header(packet.source, packet.destination, packet.protocol, len);
            assert_eq!(pseudo.with(packet.payload()).checksum(), 0, "a right checksum sums up to nothing");
            let header = if packet.protocol == ip::UDP { 8 } else { usize::from(packet.payload()[12] >> 4) * 4 };
            let part = &packet.payload()[header..];
            assert!(!part.is_empty() && part.len() <= usize::from(size));
            data.extend(part);
        }
        let all = &whole.bytes()[whole.bytes().len() - data.len().min(whole.bytes().len())..];
        assert!(data == all || data.len() >= 100 * usize::from(size));
    }
    let mut changed = frame.to_vec();
    complete(&mut changed, usize::from(mtu), usize::from(size));
    assert_eq!(changed.len(), frame.len());
}

#[test]
fn any_bytes_are_a_frame_or_none() {
    bolero::check!().with_type::<(Vec<u8>, u16, u16)>().for_each(|(frame, mtu, size)| anything(frame, *mtu, *size));
}

#[test]
fn any_edit_of_a_frame_is_a_frame_or_none() {
    let frames = [
        frame(false, v4(6), false, 700),
        frame(true, v6(), false, 1400),
        frame(false, v6_with_options(), true, 1400),
        frame(true, v4(17), true, 90),
        icmp4(8),
        icmp6(128),
        arp(),
    ];
    bolero::check!().with_type::<(u8, Vec<(u8, u8)>, u16, u16, u16)>().with_iterations(20_000).for_each(
        |(which, edits, cut_off, mtu, size)| {
            let mut frame = frames[usize::from(*which) % frames.len()].clone();
            for &(at, byte) in edits.iter().take(6) {
                // Headers are where it matters.
                let at = usize::from(at) % frame.len().min(80);
                frame[at] = byte;
            }
            frame.truncate(frame.len() - usize::from(cut_off / 256).min(frame.len()));
            anything(&frame, mtu % 2048, size % 2048);
        },
    );
}
