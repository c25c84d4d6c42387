//! What is written is read, and any bytes are headers or an error.

use bolero::{TypeGenerator, check, produce};
use etherparse::{PacketBuilder, TcpHeader, TcpOptionElement as Element, UdpHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::icmp::{self, Echo};
use wire::report::{Key, Message, RANGES, RANGES_TAGGED, Report};
use wire::{
    Block, Error, Flags, Headers, Options, Sack, Segment, SynOptions, Timestamps, Transport, checksum,
    datagram_headers, ip, segment_headers, tcp, udp,
};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets();
const B6: [u8; 16] = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets();
/// No payload, at any length.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// The two ends of a packet.
fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
    let [a, b]: [IpAddr; 2] = if v6 { [A6.into(), B6.into()] } else { [A.into(), B.into()] };
    (SocketAddr::new(a, 41_234), SocketAddr::new(b, 80))
}

/// Numbers of which [`segment`] makes a segment that fits a header.
#[derive(Clone, Debug, TypeGenerator)]
struct Numbers {
    seq: u32,
    ack: u32,
    window: u16,
    len: u16,
    flags: u8,
    timestamps: Option<(u32, u32)>,
    kind: u8,
    words: [u32; 8],
    mss: u16,
    window_scale: Option<u8>,
    switches: (bool, bool),
}

fn segment(numbers: &Numbers) -> Segment {
    let Numbers { seq, ack, window, len, flags, kind, .. } = *numbers;
    let flags = Flags(flags);
    let timestamps = numbers.timestamps.map(|(value, echo)| Timestamps { value, echo });
    let (blocks, _) = numbers.words.as_chunks::<2>();
    let options = match kind % 4 {
        _ if flags.has(Flags::SYN) => Options::Syn(SynOptions {
            mss: numbers.mss,
            window_scale: numbers.window_scale.map(|shift| shift % 15),
            sack_permitted: numbers.switches.0,
            reports: numbers.switches.1,
        }),
        0 => Options::Announcement,
        1 => Options::Report(report(numbers, ack, timestamps)),
        _ => {
            let mut sack = Sack::NONE;
            let room = if timestamps.is_some() { 4 } else { 5 };
            for &[start, end] in &blocks[..usize::from(kind / 4 % room)] {
                sack.push(Block { start, end });
            }
            Options::Sack(sack)
        }
    };
    Segment { seq, ack, window, len: len % 60_000, flags, timestamps, options }
}

/// A sound report: its numbers rise.
fn report(numbers: &Numbers, ack: u32, timestamps: Option<Timestamps>) -> Report {
    let mut words = numbers.words.map(|word| word >> 3);
    words.sort_unstable();
    // Each is more than the one before.
    let words: Vec<u32> = words.iter().zip(0..).map(|(word, at)| word + at).collect();
    let mut report = Report::new(words[0], words[7]);
    let tagged = numbers.switches.0 && timestamps.is_some();
    let most = if tagged { RANGES_TAGGED } else { RANGES };
    for range in words[1..7].chunks(2).take(usize::from(numbers.kind) / 4 % (most + 1)) {
        assert!(report.push(Block { start: range[0], end: range[1] }));
    }
    if tagged {
        report.authenticate(Key::new([7; 16]), ack, timestamps.expect("it has some"));
    }
    report
}

/// What must hold of anything that was read.
fn read(packet: &[u8]) -> Option<Headers> {
    let ip = ip::View::parse(packet);
    let headers = match Headers::parse(packet) {
        Ok(headers) => headers,
        Err(error) => {
            assert_eq!(ip.err(), Some(error));
            return None;
        }
    };
    let ip = ip.expect("its headers were read");
    assert_eq!((ip.bytes().len(), ip.header_len() + ip.payload().len()), (headers.len as usize, headers.len as usize));
    assert!(ip.bytes().len() <= packet.len() && ip.header_len() >= 20 && !ip.is_empty());
    // All of it was captured. Of a TCP header that is cut off, more is read then.
    if (headers.protocol, headers.transport) != (ip::TCP, Transport::Other) {
        assert_eq!(Headers::parse_captured(packet, 0), Ok(headers));
    }
    assert!(headers.payload_len < headers.len);
    assert_eq!(headers.source.is_ipv4(), packet[0] >> 4 == 4);
    match headers.transport {
        Transport::Tcp(segment) => assert_eq!(u32::from(segment.len), headers.payload_len),
        Transport::Other => assert_eq!((headers.source_port, headers.destination_port), (0, 0)),
        Transport::Udp | Transport::Echo(_) => {}
    }
    let mut marked = packet.to_vec();
    ip::mark_ce(&mut marked);
    assert_eq!(Headers::parse(&marked), Ok(Headers { tos: headers.tos | 3, ..headers }));
    Some(headers)
}

/// What must hold of any bytes as a TCP header: what is written of it reads the same again.
fn read_tcp(bytes: &[u8]) {
    let Ok(view) = tcp::View::parse(bytes) else { return };
    assert_eq!(view.header_len() + view.payload().len(), bytes.len());
    let segment = view.segment();
    if let Some(Message::Report(report)) = view.message() {
        assert!(report.is_sound());
        assert!(matches!(segment.options, Options::Report(_) | Options::Syn(_) | Options::Announcement));
    }
    let (source, destination) = ends(false);
    if let Ok(header) = tcp::header(&segment, source, destination, view.payload()) {
        assert_eq!(header.len(), segment.header_len() as usize);
        let again = [&header[..], view.payload()].concat();
        assert_eq!(tcp::View::parse(&again).map(|view| view.segment()), Ok(segment));
    }
}

#[test]
fn any_bytes_are_headers_or_an_error() {
    check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
        read(bytes);
        read_tcp(bytes);
        let _ = (udp::View::parse(bytes), Echo::parse(false, bytes), Echo::parse(true, bytes));
        let _ = (Message::find(bytes), Message::parse(bytes));
        ip::mark_ce(&mut bytes.to_vec());
    });
}

/// Good packets of all sorts that are told apart.
fn good() -> Vec<Vec<u8>> {
    let sack = Element::SelectiveAcknowledgement((5_000, 6_000), [Some((8_000, 9_000)), None, None]);
    let options = [Element::Noop, Element::Noop, Element::Timestamp(7, 9), Element::Noop, Element::Noop, sack];
    let mut all = vec![Vec::new(); 8];
    let written = [
        PacketBuilder::ipv4(A, B, 64).tcp(80, 40_000, 1, 512).options(&options).unwrap().write(&mut all[0], &[1; 30]),
        PacketBuilder::ipv6(B6, A6, 64).tcp(40_000, 80, 1, 512).syn().write(&mut all[1], &[]),
        PacketBuilder::ipv4(B, A, 64).udp(5_000, 53).write(&mut all[2], &[1; 30]),
        PacketBuilder::ipv6(B6, A6, 64).udp(5_000, 53).write(&mut all[3], &[1; 30]),
        PacketBuilder::ipv4(B, A, 64).icmpv4_echo_request(7, 1).write(&mut all[4], &[1; 30]),
        PacketBuilder::ipv4(A, B, 64).icmpv4_echo_reply(7, 1).write(&mut all[5], &[1; 30]),
        PacketBuilder::ipv6(B6, A6, 64).icmpv6_echo_request(7, 1).write(&mut all[6], &[1; 30]),
    ];
    assert!(written.iter().all(Result::is_ok));
    // Hop-by-hop options, a routing header, a later fragment.
    let extensions = [43, 0, 1, 4, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 17, 0, 1, 1, 0, 0, 0, 9, 1, 2, 3, 4];
    all[7] = [&[0x60, 0, 0, 0, 0, 28, 0, 64], &A6[..], &B6, &extensions].concat();
    let mut announced = Segment { flags: Flags::ACK, len: 9, options: Options::Announcement, ..Segment::default() };
    for timestamps in [None, Some(Timestamps { value: 3, echo: 4 })] {
        announced.timestamps = timestamps;
        let (source, destination) = ends(false);
        let headers = segment_headers(&announced, source, destination, 0, &[]).unwrap();
        all.push([&headers[..], &[0; 9]].concat());
    }
    all
}

#[test]
fn any_edit_of_good_packets_gives_headers_or_an_error() {
    let good = good();
    let edits = produce::<(u8, Vec<(u8, u8)>, u8)>();
    check!().with_generator(edits).with_iterations(20_000).for_each(|(which, edits, cut)| {
        let mut packet = good[usize::from(*which) % good.len()].clone();
        for &(at, byte) in edits.iter().take(4) {
            if let Some(place) = packet.get_mut(usize::from(at)) {
                *place = byte;
            }
        }
        packet.truncate(if cut % 4 == 0 { usize::from(*cut) } else { packet.len() });
        read(&packet);
        read_tcp(packet.get(20..).unwrap_or_default());
    });
}

#[test]
fn any_segment_is_read_as_it_was_written() {
    check!().with_type::<(Numbers, u8, bool)>().with_iterations(20_000).for_each(|(numbers, tos, v6)| {
        let segment = segment(numbers);
        let (source, destination) = ends(*v6);
        let headers = segment_headers(&segment, source, destination, *tos, &[]).expect("it fits");
        let ip_header = if *v6 { 40 } else { 20 };
        assert_eq!(headers.len(), ip_header + segment.header_len() as usize);
        let packet = [&headers[..], &ZEROS[..usize::from(segment.len)]].concat();
        let expected = Headers {
            source: source.ip(),
            destination: destination.ip(),
            protocol: ip::TCP,
            source_port: source.port(),
            destination_port: destination.port(),
            tos: *tos,
            len: packet.len() as u32,
            payload_len: segment.len.into(),
            transport: Transport::Tcp(segment),
        };
        assert_eq!(read(&packet), Some(expected));
        let (header, payload) = TcpHeader::from_slice(&packet[ip_header..]).unwrap();
        let checksum = match v6 {
            true => header.calc_checksum_ipv6_raw(A6, B6, payload),
            false => header.calc_checksum_ipv4_raw(A, B, payload),
        };
        assert_eq!(header.checksum, checksum.unwrap());
        if !v6 {
            assert_eq!(checksum::Sum::default().with(&packet[..20]).checksum(), 0);
        }
    });
}

#[test]
fn a_datagram_is_read_as_it_was_written() {
    check!().with_type::<(Vec<u8>, u8, bool)>().with_iterations(2_000).for_each(|(payload, tos, v6)| {
        let (source, destination) = ends(*v6);
        let headers = datagram_headers(payload.len() as u16, source, destination, *tos, payload).expect("it fits");
        let packet = [&headers[..], payload].concat();
        let read = read(&packet).expect("it is one");
        assert_eq!((read.transport, read.payload_len as usize, read.tos), (Transport::Udp, payload.len(), *tos));
        assert_eq!((read.source_port, read.destination_port), (source.port(), destination.port()));
        let (header, payload) = UdpHeader::from_slice(&packet[headers.len() - udp::HEADER_LEN..]).unwrap();
        let expected = match v6 {
            true => UdpHeader::with_ipv6_checksum(41_234, 80, &v6_header(header.length), payload),
            false => UdpHeader::without_ipv4_checksum(41_234, 80, payload.len()),
        };
        if *v6 {
            assert_eq!(header, expected.unwrap());
        } else {
            let checksum = header.calc_checksum_ipv4_raw(A, B, payload).unwrap();
            assert_eq!(header, UdpHeader { checksum, ..expected.unwrap() });
        }
    });
}

fn v6_header(payload_length: u16) -> etherparse::Ipv6Header {
    let next_header = etherparse::IpNumber::UDP;
    etherparse::Ipv6Header { payload_length, next_header, source: A6, destination: B6, ..Default::default() }
}

#[test]
fn what_fits_no_header_is_an_error() {
    let (source, destination) = ends(false);
    let mut sack = Sack::NONE;
    (0..4).for_each(|n| sack.push(Block { start: n, end: n + 1 }));
    let long = Segment { options: Options::Sack(sack), timestamps: Some(Timestamps::default()), ..Segment::default() };
    assert_eq!(segment_headers(&long, source, destination, 0, &[]), Err(Error::TooLong));
    let long = Segment { len: u16::MAX - 39, ..Segment::default() };
    assert_eq!(segment_headers(&long, source, destination, 0, &[]), Err(Error::TooLong));
    let fits = Segment { len: u16::MAX - 40, ..Segment::default() };
    assert!(segment_headers(&fits, source, destination, 0, &[]).is_ok());
    assert_eq!(datagram_headers(u16::MAX - 7, source, destination, 0, &[]), Err(Error::TooLong));
    assert_eq!(datagram_headers(u16::MAX - 27, source, destination, 0, &[]), Err(Error::TooLong));
    let v6 = ends(true).1;
    assert_eq!(segment_headers(&fits, source, v6, 0, &[]), Err(Error::MixedAddresses));
    assert_eq!(datagram_headers(1, v6, source, 0, &[]), Err(Error::MixedAddresses));
    assert_eq!(tcp::header(&fits, v6, source, &[]), Err(Error::MixedAddresses));
    assert_eq!(udp::header(source, v6, 1, &[]), Err(Error::MixedAddresses));
    assert_eq!(icmp::too_big(v6.ip(), source.ip(), 1_280, &[]), Err(Error::MixedAddresses));
}

#[test]
fn an_error_names_what_is_wrong() {
    let v4 = &good()[0];
    let error = |bytes: &[u8]| Headers::parse(bytes).unwrap_err();
    assert_eq!(error(&[]), Error::Truncated);
    assert_eq!(error(&v4[..v4.len() - 1]), Error::Truncated);
    assert_eq!(error(&[0x50; 40]), Error::Malformed);
    // A header of four words; a packet that is shorter than its header.
    assert_eq!(error(&[&[0x44], &v4[1..]].concat()), Error::Malformed);
    assert_eq!(error(&[&v4[..2], &[0, 19], &v4[4..]].concat()), Error::Malformed);
    assert_eq!(tcp::View::parse(&[0; 20]).unwrap_err(), Error::Malformed);
    assert_eq!(tcp::View::parse(&[0x60; 20]).unwrap_err(), Error::Truncated);
    assert_eq!(Echo::parse(false, &[3, 0, 0, 0, 0, 0, 0, 0]), Err(Error::Malformed));
    assert_eq!(Echo::parse(false, &[8, 0, 0]), Err(Error::Truncated));
}

fn segment_of(packet: &[u8]) -> Segment {
    match Headers::parse(packet).map(|headers| headers.transport) {
        Ok(Transport::Tcp(segment)) => segment,
        other => panic!("not TCP: {other:?}"),
    }
}

fn tcp_v4(options: &[u8], flags: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv4(A, B, 64).tcp(41_234, 80, 0xffff_fff0, 512).ack(77);
    builder.options_raw(options).unwrap().write(&mut bytes, &[7; 100]).unwrap();
    bytes[33] = flags;
    bytes
}

#[test]
fn options_are_read_in_any_order_and_unknown_ones_are_skipped() {
    let time: &[u8] = &[8, 10, 0, 0, 0, 11, 0, 0, 0, 12];
    let sack: &[u8] = &[5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6];
    let (unknown, nops): (&[u8], &[u8]) = (&[99, 4, 1, 2], &[1, 1]);
    let stamped = Some(Timestamps { value: 11, echo: 12 });
    let mut blocks = Sack::NONE;
    [(1, 2), (5, 6)].into_iter().for_each(|(start, end)| blocks.push(Block { start, end }));
    for (options, timestamps, sack) in [
        (vec![], None, Sack::NONE),
        (vec![nops, time], stamped, Sack::NONE),
        (vec![nops, time, nops, sack], stamped, blocks),
        (vec![sack, time, nops], stamped, blocks),
        (vec![unknown, sack, time, nops], stamped, blocks),
        (vec![time, &[0], sack], stamped, Sack::NONE),
        (vec![&[8, 9, 0, 0, 0, 11, 0, 0, 0], nops], None, Sack::NONE),
        (vec![time, &[5, 0], sack], stamped, Sack::NONE),
        // Of two, the last counts, as in Linux.
        (vec![nops, &[5, 10, 0, 0, 0, 8, 0, 0, 0, 9], nops, sack], None, blocks),
    ] {
        let segment = segment_of(&tcp_v4(&options.concat(), 0x10));
        assert_eq!((segment.timestamps, segment.options), (timestamps, Options::Sack(sack)), "{options:?}");
        assert_eq!((segment.seq, segment.ack, segment.window, segment.len), (0xffff_fff0, 77, 512, 100));
        assert_eq!(segment.flags, Flags::ACK);
    }
}

#[test]
fn a_syn_has_its_options_or_the_defaults() {
    let syn = |options: &[u8]| segment_of(&tcp_v4(options, 0x02)).options;
    let none = SynOptions { mss: 536, window_scale: None, sack_permitted: false, reports: false };
    assert_eq!(syn(&[]), Options::Syn(none));
    let all = [2, 4, 5, 180, 4, 2, 1, 3, 3, 200, 253, 4, 0x52, 0x57];
    let expected = SynOptions { mss: 1_460, window_scale: Some(14), sack_permitted: true, reports: true };
    assert_eq!(syn(&all), Options::Syn(expected));
    // Timestamps alone, aligned as in other segments.
    let stamped = segment_of(&tcp_v4(&[1, 1, 8, 10, 0, 0, 0, 11, 0, 0, 0, 12], 0x02));
    assert_eq!((stamped.options, stamped.timestamps), (Options::Syn(none), Some(Timestamps { value: 11, echo: 12 })));
}

#[test]
fn of_selective_acknowledgements_four_are_held_and_the_first_is_the_newest() {
    let mut sack = Sack::NONE;
    let sacked = |sack| Segment { options: Options::Sack(sack), ..Segment::default() }.first_sacked();
    assert_eq!(sacked(sack), None);
    (1..=5).for_each(|n| sack.push(Block { start: 10 * n, end: 10 * n + 5 }));
    assert_eq!(sack.blocks().iter().map(|block| block.start).collect::<Vec<_>>(), [10, 20, 30, 40]);
    assert_eq!(sacked(sack), Some(15));
    assert_eq!(Segment { options: Options::Announcement, ..Segment::default() }.first_sacked(), None);
    sack.clear();
    assert_eq!((sack.is_empty(), sacked(sack)), (true, None));
}

#[test]
fn a_captured_syn_has_all_its_options_or_none() {
    let whole = tcp_v4(&[2, 4, 5, 180, 4, 2, 1, 1], 0x02);
    for captured in 40..=48 {
        let headers = Headers::parse_captured(&whole[..captured], whole.len()).unwrap();
        let Transport::Tcp(segment) = headers.transport else { panic!("{headers:?}") };
        let known = matches!(segment.options, Options::Syn(SynOptions { mss: 1_460, sack_permitted: true, .. }));
        assert_eq!((known, headers.payload_len), (captured == 48, 100), "{captured}");
        assert!(known || segment.options == Options::default(), "{captured}");
    }
}

#[test]
fn a_captured_segment_that_is_no_syn_keeps_the_options_that_are_there() {
    // A block, and then timestamps, which are cut off.
    let whole = tcp_v4(&[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 8, 10, 0, 0, 0, 11, 0, 0, 0, 12], 0x10);
    let mut block = Sack::NONE;
    block.push(Block { start: 1, end: 2 });
    for (captured, timestamps) in [(52, None), (63, None), (64, Some(Timestamps { value: 11, echo: 12 }))] {
        let headers = Headers::parse_captured(&whole[..captured], whole.len()).unwrap();
        let Transport::Tcp(segment) = headers.transport else { panic!("{headers:?}") };
        assert_eq!((segment.options, segment.timestamps), (Options::Sack(block), timestamps), "{captured}");
        assert_eq!((headers.len as usize, headers.payload_len), (whole.len(), 100));
    }
    // A header that says that it is longer than its packet has no payload.
    let mut long = tcp_v4(&[], 0x10)[..44].to_vec();
    (long[2], long[3], long[32]) = (0, 44, 0xf0);
    assert_eq!(Headers::parse_captured(&long, 44).map(|headers| headers.payload_len), Ok(0));
}

#[test]
fn the_key_of_a_packet_is_the_hash_of_its_addresses_ports_and_protocol() {
    let (source, destination) = ends(false);
    let bits = |end: SocketAddr| wire::hash::address_bits(end.ip());
    for (protocol, packet) in [(6, tcp_v4(&[], 0x10)), (6, tcp_v4(&[], 0x02))] {
        let headers = Headers::parse(&packet).unwrap();
        let ports = u64::from(headers.source_port) << 16 | u64::from(headers.destination_port);
        assert_eq!((headers.source, headers.destination), (source.ip(), destination.ip()));
        assert_eq!(headers.key(), wire::hash::hash(bits(source), bits(destination), ports << 8 | protocol));
    }
}

#[test]
fn a_length_of_zero_is_that_of_a_packet_to_be_segmented() {
    let v4 = tcp_v4(&[], 0x10);
    let v6 = |payload: u16| {
        let header = ip::Header {
            source: Ipv6Addr::from(A6).into(),
            destination: Ipv6Addr::from(B6).into(),
            tos: 0,
            protocol: ip::UDP,
            payload_len: usize::from(payload),
        };
        let mut bytes = header.to_bytes().unwrap().to_vec();
        bytes.extend([0; 100]);
        bytes
    };
    let len = |bytes: &[u8], unsegmented| ip::View::parse_captured(bytes, unsegmented).map(|view| view.len());
    let mut zero = v4.clone();
    (zero[2], zero[3]) = (0, 0);
    assert_eq!((len(&v4, 3_000), len(&zero, 3_000)), (Ok(v4.len()), Ok(3_000)));
    assert_eq!(len(&zero, 19), Err(Error::Malformed), "less than a header");
    assert_eq!((len(&v6(0), 3_000), len(&v6(0), 0), len(&v6(1), 3_000)), (Ok(3_000), Ok(40), Ok(41)));
    // A packet may end with its header.
    let alone = [&v4[..2], &[0, 20], &v4[4..]].concat();
    assert_eq!((len(&zero, 20), len(&alone, 0)), (Ok(20), Ok(20)));
}

#[test]
fn what_follows_a_packet_in_the_buffer_is_not_read() {
    let mut bytes = tcp_v4(&[], 0x10);
    let alone = Headers::parse(&bytes);
    bytes.extend([0xff; 300]);
    assert_eq!(Headers::parse(&bytes), alone);
}

#[test]
fn a_packet_that_is_shorter_than_it_says_is_an_error() {
    for whole in good() {
        for cut in 0..whole.len() {
            assert_eq!(Headers::parse(&whole[..cut]), Err(Error::Truncated), "{cut} of {}", whole.len());
        }
        assert!(Headers::parse(&whole).is_ok());
    }
}

#[test]
fn a_transport_header_that_is_cut_off_leaves_the_packet_without_ports() {
    let (source, destination) = (A.into(), B.into());
    let ip = ip::Header { source, destination, tos: 0, protocol: ip::TCP, payload_len: 7 }.to_bytes().unwrap();
    let headers = Headers::parse(&[&ip[..], &[1; 7]].concat()).unwrap();
    assert_eq!((headers.protocol, headers.source_port, headers.payload_len), (6, 0, 7));
    assert_eq!(headers.transport, Transport::Other);
}

#[test]
fn the_first_fragment_has_ports_and_the_others_do_not() {
    let mut bytes = tcp_v4(&[], 0x10);
    bytes[6] |= 0x20; // More fragments.
    assert_eq!(Headers::parse(&bytes).unwrap().source_port, 41_234);
    bytes[7] = 1; // The second.
    let headers = Headers::parse(&bytes).unwrap();
    assert_eq!((headers.protocol, headers.source_port, headers.payload_len), (6, 0, 120));
    for (offset, port) in [(0, 5_000), (8, 0)] {
        let fragment = [17, 0, 0, offset | 1, 0, 0, 0, 99];
        let udp = [0x13, 0x88, 0, 53, 0, 20, 0, 0];
        let bytes = [&[0x60, 0, 0, 0, 0, 16, 44, 64], &A6[..], &B6, &fragment, &udp].concat();
        let headers = Headers::parse(&bytes).unwrap();
        assert_eq!((headers.protocol, headers.source_port), (17, port));
    }
}

#[test]
fn extension_headers_are_passed_over() {
    let udp = [0x13, 0x88, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4];
    for (kind, rewritable) in [(0, true), (60, true), (43, false)] {
        let bytes = [&[0x60, 0, 0, 0, 0, 20, kind, 64], &A6[..], &B6, &[17, 0, 1, 4, 0, 0, 0, 0], &udp].concat();
        let headers = Headers::parse(&bytes).unwrap();
        assert_eq!((headers.source_port, headers.destination_port, headers.payload_len), (5_000, 53, 4));
        assert_eq!(headers.transport, Transport::Udp);
        let view = ip::View::parse(&bytes).unwrap();
        assert_eq!((view.header_len(), view.is_rewritable, view.fragment), (48, rewritable, ip::Fragment::Whole));
    }
}

#[test]
fn an_extension_header_that_is_cut_off_ends_the_headers() {
    // The first fragment, then destination options of which nothing, too little or only the first part is there.
    for rest in [&[][..], &[17], &[17, 1, 1, 4, 0, 0, 0, 0]] {
        let len = 8 + rest.len() as u8;
        let bytes = [&[0x60, 0, 0, 0, 0, len, 44, 64], &A6[..], &B6, &[60, 0, 0, 1, 0, 0, 0, 9], rest].concat();
        let view = ip::View::parse(&bytes).unwrap();
        assert_eq!((view.protocol, view.header_len(), view.fragment), (60, 48, ip::Fragment::First));
        assert_eq!(Headers::parse(&bytes).unwrap().transport, Transport::Other);
    }
}

#[test]
fn echoes_of_both_versions_are_read() {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    PacketBuilder::ipv4(A, B, 64).icmpv4_echo_request(300, 7).write(&mut v4, &[0; 56]).unwrap();
    PacketBuilder::ipv6(A6, B6, 64).icmpv6_echo_reply(300, 7).write(&mut v6, &[0; 56]).unwrap();
    for (bytes, reply) in [(&v4, false), (&v6, true)] {
        let headers = Headers::parse(bytes).unwrap();
        assert_eq!(headers.transport, Transport::Echo(Echo { reply, id: 300, seq: 7 }));
        assert_eq!((headers.payload_len, headers.source_port), (56, 0));
    }
    let request = Echo { reply: false, id: 300, seq: 7 };
    assert_eq!(request.header(false), v4[20..28]);
    assert_eq!(request.header(true), [128, 0, 0, 0, 1, 44, 0, 7], "the kernel adds the checksum");
    assert_eq!(Echo::parse(true, &Echo { reply: true, ..request }.header(true)), Ok(Echo { reply: true, ..request }));
}

#[test]
fn a_priority_is_what_linux_makes_of_the_tos_byte() {
    let mut headers = Headers::parse(&tcp_v4(&[], 0x10)).unwrap();
    // iptos: nothing, low cost with ECT(0), throughput, low delay, both, EF, CS1.
    for (tos, priority) in [(0, 0), (0x02, 0), (0x08, 2), (0x10, 6), (0x18, 4), (0xb8, 4), (0x20, 0), (0x12, 6)] {
        headers.tos = tos;
        assert_eq!(headers.priority(), priority, "{tos:#x}");
    }
}

#[test]
fn a_key_is_one_directions_own() {
    let headers = Headers::parse(&tcp_v4(&[], 0x10)).unwrap();
    let back = Headers {
        source: headers.destination,
        destination: headers.source,
        source_port: headers.destination_port,
        destination_port: headers.source_port,
        ..headers
    };
    assert_ne!(headers.key(), back.key());
    // 65,536 flows that differ in a port alone fill 1,024 buckets evenly: 64 to each, standard deviation 8.
    let mut buckets = [0u32; 1_024];
    for port in 0..=u16::MAX {
        buckets[(Headers { source_port: port, ..headers }.key() % 1_024) as usize] += 1;
    }
    assert!(buckets.iter().all(|n| (24..=104).contains(n)), "{buckets:?}");
}

#[test]
fn a_mark_leaves_the_checksum_valid() {
    let (source, destination) = (Ipv4Addr::from(A).into(), Ipv4Addr::from(B).into());
    for tos in [0x01, 0x02, 0x03, 0xba, 0xfe] {
        // A checksum of each value there is.
        for payload_len in 0..usize::from(u16::MAX) - 19 {
            let header = ip::Header { source, destination, tos, protocol: ip::UDP, payload_len };
            let mut bytes = header.to_bytes().unwrap();
            ip::mark_ce(&mut bytes);
            assert_eq!(bytes[1], tos | 3);
            assert_eq!(checksum::Sum::default().with(&bytes).checksum(), 0, "{tos:#x} {payload_len}");
        }
    }
}

#[test]
fn a_mark_of_ipv6_changes_nothing_but_the_code_point() {
    let mut bytes = good()[3].clone();
    (bytes[0], bytes[1]) = (0x6b, 0xa5); // Traffic class 0xba, a flow label.
    let before = Headers::parse(&bytes).unwrap();
    assert_eq!(before.tos, 0xba);
    ip::mark_ce(&mut bytes);
    assert_eq!(Headers::parse(&bytes), Ok(Headers { tos: 0xbb, ..before }));
    assert_eq!(bytes[1] & 0xf, 5);
}

#[test]
fn a_segment_without_a_connection_is_refused_as_rfc_9293_says() {
    let segment = |flags| Segment {
        seq: u32::MAX,
        ack: 500,
        window: 9,
        len: 10,
        flags,
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        options: Options::Sack(Sack::NONE),
    };
    let refused = |flags| segment(flags).refusal().map(|s| (s.seq, s.ack, s.flags, s.len, s.timestamps));
    assert_eq!(refused(Flags::ACK), Some((500, 0, Flags::RST, 0, None)));
    // SYN, ten bytes and FIN, after which the numbers begin again.
    let without_ack = Flags::SYN | Flags::FIN;
    assert_eq!(refused(without_ack), Some((0, 11, Flags::RST | Flags::ACK, 0, None)));
    assert_eq!(refused(Flags::RST | Flags::ACK), None);
}

/// What a view says of fragments: part, offset, whether more follow, and what they share.
fn fragment(bytes: &[u8]) -> (ip::Fragment, u32, bool, Option<u32>) {
    let view = ip::View::parse(bytes).unwrap();
    (view.fragment, view.offset, view.more, view.identification)
}

#[test]
fn a_fragment_says_where_it_belongs() {
    use ip::Fragment::{First, Later, Whole};
    let mut v4 = tcp_v4(&[], 0x10);
    (v4[4], v4[5]) = (0x12, 0x34);
    // Flags and offset in units of 8 bytes: don't fragment, more, more at 8 and at 65,528 bytes, the last.
    for (word, part, offset, more) in [
        (0x4000_u16, Whole, 0, false),
        (0x2000, First, 0, true),
        (0x2001, Later, 8, true),
        (0x3fff, Later, 65_528, true),
        (0x0100, Later, 2_048, false),
    ] {
        v4[6..8].copy_from_slice(&word.to_be_bytes());
        assert_eq!(fragment(&v4), (part, offset, more, Some(0x1234)), "{word:#x}");
        let view = ip::View::parse(&v4).unwrap();
        assert_eq!((view.may_be_fragmented(), view.is_rewritable), (word & 0x4000 == 0, true));
        assert_eq!(Headers::parse_captured(&v4, 0), Headers::parse(&v4));
    }
    for (word, part, offset, more) in [
        (0x0000_u16, First, 0, false),
        (0x0001, First, 0, true),
        (0x0008, Later, 8, false),
        (0xfff9, Later, 65_528, true),
        // Reserved bits.
        (0x0006, First, 0, false),
    ] {
        let [high, low] = word.to_be_bytes();
        let bytes = v6(44, &[17, 0, high, low, 0, 0, 0x12, 0x34, 0, 1, 0, 2, 0, 8, 0, 0]);
        assert_eq!(fragment(&bytes), (part, offset, more, Some(0x1234)), "{word:#x}");
        assert!(!ip::View::parse(&bytes).unwrap().may_be_fragmented());
        assert_eq!(Headers::parse(&bytes).unwrap().source_port, if part == First { 1 } else { 0 });
        assert_eq!(Headers::parse_captured(&bytes, 0), Headers::parse(&bytes));
    }
    assert_eq!(fragment(&v6(17, &[0, 1, 0, 2, 0, 8, 0, 0])), (Whole, 0, false, None));
}

/// A packet of IPv6 with this behind its header.
fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    [&[0x60, 0, 0, 0, 0, payload.len() as u8, next, 64], &A6[..], &B6, payload].concat()
}

#[test]
fn extension_headers_are_as_long_as_they_say() {
    const OPTIONS: [u8; 8] = [60, 0, 1, 4, 0, 0, 0, 0];
    let udp = [0, 1, 0, 2, 0, 8, 0, 0];
    let to = |next: u8, len: u8, bytes: usize| {
        let mut extension = vec![0; bytes];
        // The two words behind would be an offset, in a fragment header.
        extension[..4].copy_from_slice(&[next, len, 1, 4]);
        extension
    };
    for (first, extensions, protocol, header_len) in [
        // Units of 8 bytes beyond the first 8, and of 4 bytes in an authentication header.
        (60, to(17, 2, 24), 17, 64),
        (43, to(17, 1, 16), 17, 56),
        (51, to(17, 4, 24), 17, 64),
        (51, to(17, 1, 12), 17, 52),
        // Two and three in a row.
        (60, [&OPTIONS[..], &to(17, 0, 8)].concat(), 17, 56),
        (0, [&OPTIONS[..], &OPTIONS, &to(17, 0, 8)].concat(), 17, 64),
        // Hop-by-hop options anywhere but first are none.
        (60, [&to(0, 0, 8)[..], &to(17, 0, 8)].concat(), 0, 48),
        // What is no extension.
        (50, to(17, 0, 8), 50, 40),
    ] {
        let bytes = v6(first, &[&extensions[..], &udp].concat());
        let view = ip::View::parse(&bytes).unwrap();
        assert_eq!((view.protocol, view.header_len()), (protocol, header_len), "{first} {extensions:?}");
        assert_eq!(view.is_rewritable, first != 43 && first != 51);
        assert_eq!(Headers::parse(&bytes).unwrap().destination_port, if protocol == 17 { 2 } else { 0 });
        // Nothing has to follow the last one; without its last byte it is not there.
        if protocol == 17 {
            let ends = |bytes: &[u8]| ip::View::parse(&v6(first, bytes)).unwrap().protocol;
            assert_eq!(ends(&extensions), 17);
            assert_ne!(ends(&extensions[..extensions.len() - 1]), 17);
        }
    }
    // What a later fragment begins with is no extension, whatever its number says.
    let later = v6(44, &[&[60, 0, 0, 8, 0, 0, 0, 9], &to(17, 0, 8)[..], &udp].concat());
    let view = ip::View::parse(&later).unwrap();
    assert_eq!((view.protocol, view.header_len()), (60, 48));
}

#[test]
fn too_big_is_told_in_both_versions_with_a_checksum() {
    for quoted in [&[][..], &[0x45, 7, 9], &[1; 1_200]] {
        let v4 = icmp::too_big(A.into(), B.into(), 1_400, quoted).unwrap();
        assert_eq!((v4[..2].to_vec(), v4[4..].to_vec()), (vec![3, 4], vec![0, 0, 5, 120]));
        assert_eq!(checksum::Sum::default().with(&v4).with(quoted).checksum(), 0);
        let v6 = icmp::too_big(A6.into(), B6.into(), 1_280, quoted).unwrap();
        assert_eq!((v6[..2].to_vec(), v6[4..].to_vec()), (vec![2, 0], vec![0, 0, 5, 0]));
        let len = 8 + quoted.len() as u16;
        let sum = checksum::Sum::pseudo_header(A6.into(), B6.into(), ip::ICMP_V6, len);
        assert_eq!(sum.with(&v6).with(quoted).checksum(), 0);
    }
    let longest = usize::from(u16::MAX) - 8;
    assert!(icmp::too_big(A.into(), B.into(), 1_400, &ZEROS[..longest]).is_ok());
    assert_eq!(icmp::too_big(A.into(), B.into(), 1_400, &ZEROS[..=longest]), Err(Error::TooLong));
}

#[test]
fn a_tcp_view_has_the_checksum_field_and_no_more_payload_than_a_packet() {
    let packet = tcp_v4(&[], 0x10);
    let header = TcpHeader::from_slice(&packet[20..]).unwrap().0;
    assert_eq!(tcp::View::parse(&packet[20..]).map(|view| view.checksum()), Ok(header.checksum));
    for (payload, len) in [(65_535, 65_535), (65_536, 65_535)] {
        let bytes = [&packet[20..40], &vec![0; payload]].concat();
        assert_eq!(tcp::View::parse(&bytes).map(|view| view.segment().len), Ok(len));
    }
}

#[test]
fn flags_are_added_to_flags() {
    let mut flags = Flags::SYN;
    flags |= Flags::ACK;
    assert_eq!(flags, Flags(0x12));
    assert_eq!(flags | Flags::FIN, Flags(0x13));
    assert!(flags.has(Flags::SYN | Flags::ACK) && !flags.has(Flags::SYN | Flags::FIN));
}
