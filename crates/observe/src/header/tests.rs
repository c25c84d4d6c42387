use super::*;
use etherparse::{Ipv4Header, Ipv6FragmentHeader, PacketBuilder, TcpOptionElement as Option_};
use std::net::{Ipv4Addr, Ipv6Addr};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets();
const B6: [u8; 16] = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets();

fn tcp_v4(options: &[Option_]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4(A, B, 64).tcp(41_234, 80, 0xffff_fff0, 512).ack(77).options(options).unwrap();
    builder.write(&mut bytes, &[7; 100]).unwrap();
    bytes
}

fn tcp(header: &Header) -> Tcp {
    let Transport::Tcp(tcp) = header.transport else { panic!("not TCP: {header:?}") };
    tcp
}

#[test]
fn a_segment_is_read_with_its_options_in_any_order() {
    let sack = Option_::SelectiveAcknowledgement((1_000, 2_000), [Some((5, 6)), None, None]);
    let (noop, time) = (Option_::Noop, Option_::Timestamp(11, 12));
    for (options, timestamps, sacked) in [
        (vec![], None, None),
        (vec![noop.clone(), noop.clone(), time.clone()], Some((11, 12)), None),
        (
            vec![noop.clone(), noop.clone(), time.clone(), noop.clone(), noop.clone(), sack.clone()],
            Some((11, 12)),
            Some(2_000),
        ),
        (vec![sack, time, noop], Some((11, 12)), Some(2_000)),
    ] {
        let bytes = tcp_v4(&options);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.source, header.destination), (Ipv4Addr::from(A).into(), Ipv4Addr::from(B).into()));
        assert_eq!((header.protocol, header.source_port, header.destination_port), (6, 41_234, 80));
        assert_eq!((header.len as usize, header.payload_len), (bytes.len(), 100));
        let tcp = tcp(&header);
        assert_eq!((tcp.seq, tcp.ack, tcp.window, tcp.flags), (0xffff_fff0, 77, 512, Tcp::ACK));
        assert_eq!((tcp.timestamps, tcp.sacked), (timestamps, sacked));
    }
}

#[test]
fn what_follows_a_packet_in_the_buffer_is_not_read() {
    let mut bytes = tcp_v4(&[]);
    let alone = Header::parse(&bytes);
    bytes.extend([0xff; 300]);
    assert_eq!(Header::parse(&bytes), alone);
}

#[test]
fn a_packet_that_is_shorter_than_it_says_is_none() {
    let mut v6 = Vec::new();
    PacketBuilder::ipv6(A6, B6, 64).udp(1, 2).write(&mut v6, &[0; 10]).unwrap();
    for whole in [tcp_v4(&[]), v6] {
        for cut in 0..whole.len() {
            assert_eq!(Header::parse(&whole[..cut]), None, "{cut} of {}", whole.len());
        }
        assert!(Header::parse(&whole).is_some());
    }
}

#[test]
fn a_transport_header_that_is_cut_off_leaves_the_packet_without_ports() {
    let mut ip = Ipv4Header::new(7, 64, IpNumber::TCP, A, B).unwrap();
    ip.header_checksum = ip.calc_header_checksum();
    let bytes = [ip.to_bytes().as_slice(), &[1; 7]].concat();
    let header = Header::parse(&bytes).unwrap();
    assert_eq!((header.protocol, header.source_port, header.payload_len), (6, 0, 7));
    assert_eq!(header.transport, Transport::Other);
}

#[test]
fn the_first_fragment_has_ports_and_the_others_do_not() {
    let mut bytes = tcp_v4(&[]);
    bytes[6] |= 0x20; // More fragments.
    assert_eq!(Header::parse(&bytes).unwrap().source_port, 41_234);
    bytes[7] = 1; // The second.
    let header = Header::parse(&bytes).unwrap();
    assert_eq!((header.protocol, header.source_port, header.payload_len), (6, 0, 120));

    for (offset, port) in [(0, 5_000), (8, 0)] {
        let offset = etherparse::IpFragOffset::try_new(offset).unwrap();
        let fragment = Ipv6FragmentHeader::new(IpNumber::UDP, offset, true, 99).to_bytes();
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ipv6(A6, B6, 64);
        builder
            .write(
                &mut bytes,
                IpNumber::IPV6_FRAGMENTATION_HEADER,
                &[&fragment[..], &[0x13, 0x88, 0, 53, 0, 20, 0, 0]].concat(),
            )
            .unwrap();
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.protocol, header.source_port), (17, port));
    }
}

#[test]
fn extension_headers_are_passed_over() {
    let hop_by_hop = [17, 0, 1, 4, 0, 0, 0, 0];
    let udp = [0x13, 0x88, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4];
    let ip = Ipv6Header {
        payload_length: 20,
        next_header: IpNumber::IPV6_HEADER_HOP_BY_HOP,
        source: A6,
        destination: B6,
        ..Ipv6Header::default()
    };
    let bytes = [&ip.to_bytes()[..], &hop_by_hop, &udp].concat();
    let header = Header::parse(&bytes).unwrap();
    assert_eq!((header.source_port, header.destination_port, header.payload_len), (5_000, 53, 4));
    assert_eq!(header.transport, Transport::Udp);
}

#[test]
fn echoes_of_both_versions_are_read() {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    PacketBuilder::ipv4(A, B, 64).icmpv4_echo_request(300, 7).write(&mut v4, &[0; 56]).unwrap();
    PacketBuilder::ipv6(A6, B6, 64).icmpv6_echo_reply(300, 7).write(&mut v6, &[0; 56]).unwrap();
    for (bytes, reply) in [(v4, false), (v6, true)] {
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.transport, Transport::Echo(Echo { reply, id: 300, seq: 7 }));
        assert_eq!((header.payload_len, header.source_port), (56, 0));
    }
}

#[test]
fn a_priority_is_what_linux_makes_of_the_tos_byte() {
    let mut header = Header::parse(&tcp_v4(&[])).unwrap();
    // iptos: nothing, low cost with ECT(0), throughput, low delay, both, EF, CS1.
    for (tos, priority) in [(0, 0), (0x02, 0), (0x08, 2), (0x10, 6), (0x18, 4), (0xb8, 4), (0x20, 0), (0x12, 6)] {
        header.tos = tos;
        assert_eq!(header.priority(), priority, "{tos:#x}");
    }
}

#[test]
fn a_key_is_one_directions_own() {
    let header = Header::parse(&tcp_v4(&[])).unwrap();
    assert_eq!(header.key(), Header::parse(&tcp_v4(&[Option_::Timestamp(1, 2)])).unwrap().key());
    let back = Header {
        source: header.destination,
        destination: header.source,
        source_port: header.destination_port,
        destination_port: header.source_port,
        ..header
    };
    assert_ne!(header.key(), back.key());
    // 65,536 flows that differ in a port alone fill 1,024 buckets evenly: 64 to each, standard deviation 8.
    let mut buckets = [0u32; 1_024];
    for port in 0..=u16::MAX {
        buckets[(Header { source_port: port, ..header }.key() % 1_024) as usize] += 1;
    }
    assert!(buckets.iter().all(|n| (24..=104).contains(n)), "{buckets:?}");
}

#[test]
fn a_mark_leaves_the_checksum_valid() {
    for tos in [0x01, 0x02, 0x03, 0xba, 0xfe] {
        for id in 0..=u16::MAX {
            let mut ip = Ipv4Header::new(0, 64, IpNumber::UDP, A, B).unwrap();
            ip.identification = id;
            ip.dscp = (tos >> 2).try_into().unwrap();
            ip.ecn = (tos & 3).try_into().unwrap();
            ip.header_checksum = ip.calc_header_checksum();
            let mut bytes = ip.to_bytes();
            mark_ce(&mut bytes);
            let marked = Ipv4Header::from_slice(&bytes).unwrap().0;
            assert_eq!((marked.ecn.value(), marked.dscp), (3, ip.dscp));
            assert_eq!(marked.header_checksum, marked.calc_header_checksum(), "{tos:#x} {id}");
        }
    }
}

#[test]
fn a_mark_of_ipv6_changes_nothing_but_the_code_point() {
    let mut bytes = Vec::new();
    PacketBuilder::ipv6(A6, B6, 64).udp(1, 2).write(&mut bytes, &[0; 10]).unwrap();
    (bytes[0], bytes[1]) = (0x6b, 0xa5); // Traffic class 0xba, a flow label.
    let before = Header::parse(&bytes).unwrap();
    assert_eq!(before.tos, 0xba);
    mark_ce(&mut bytes);
    assert_eq!(Header::parse(&bytes).unwrap(), Header { tos: 0xbb, ..before });
    assert_eq!(bytes[1] & 0xf, 5);
}
