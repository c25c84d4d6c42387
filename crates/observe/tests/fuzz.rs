//! Whatever packets hosts send: no panic, no packet uncounted, no more memory than was agreed.

use observe::{Flow, MOST_CONNECTIONS, Observer, VantagePoint};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::{Span, Time};
use wire::ip::mark_ce;
use wire::{Headers, Transport};

fn observer() -> Observer {
    let point = |n: u8| VantagePoint {
        name: format!("h{n}"),
        v4: Ipv4Addr::new(10, 0, 0, n),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()),
    };
    Observer::new(vec![point(1), point(2)], |_| false)
}

/// What must hold of anything that was read.
fn read(packet: &[u8]) -> Option<Headers> {
    let header = Headers::parse(packet).ok()?;
    assert!(header.len as usize <= packet.len());
    assert!(header.payload_len < header.len);
    assert_eq!(header.source.is_ipv4(), packet[0] >> 4 == 4);
    if matches!(header.transport, Transport::Other) {
        assert_eq!((header.source_port, header.destination_port), (0, 0));
    }
    let mut marked = packet.to_vec();
    mark_ce(&mut marked);
    assert_eq!(Headers::parse(&marked), Ok(Headers { tos: header.tos | 3, ..header }));
    Some(header)
}

/// Asserts what must hold of every flow.
fn check(flows: &[Flow], end: Time) {
    for flow in flows {
        let (from, to) = flow.measured;
        assert!(flow.counters.retransmitted <= flow.counters.segments, "{flow:?}");
        assert!(flow.start <= to && from <= to && to <= end, "{flow:?}");
        let (mean, most) = (flow.mean_in_flight.unwrap_or(0.0), flow.max_in_flight.unwrap_or(0));
        assert!((0.0..=most as f64 * 1.000_001).contains(&mean), "{flow:?}");
        assert!(flow.rtts.max().is_none_or(|rtt| rtt <= end - Time::ZERO));
        let _ = (flow.packets.inside(), flow.goodput(), flow.throughput());
    }
}

/// Bytes as packets, each after its length in two bytes: they enter, and arrive or are lost later.
fn talk(input: &[u8]) {
    let mut observer = observer();
    let (mut inside, mut rest, mut now) = (VecDeque::new(), input, Time::ZERO);
    let (mut entered, mut ended) = (0, 0);
    while let Some((len, behind)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)) % 2_048;
        let packet;
        (packet, rest) = behind.split_at(len.min(behind.len()));
        now += Span::from_millis(1 + len as u64);
        if let Some(header) = read(packet) {
            inside.push_back((observer.entered(len % 3, len % 2, &header, now), header, now));
            entered += 1;
        }
        if len % 2 == 0
            && let Some((flow, header, since)) = inside.pop_front()
        {
            if len % 8 == 0 {
                observer.lost(flow, now);
            } else {
                observer.arrived(flow, &header, now - since, len % 16 == 2, now);
            }
            ended += 1;
        }
        match len % 32 {
            4 => observer.warmed_up(now),
            6 => {
                observer.sample(now, Span::from_millis(100));
            }
            _ => {}
        }
        let packets = observer.packets();
        assert_eq!(
            (packets.entered, packets.arrived + packets.lost, packets.inside()),
            (entered, ended, inside.len() as u64)
        );
    }
    check(&observer.finish(now), now);
}

#[test]
fn any_bytes_are_a_packet_or_none() {
    bolero::check!().with_iterations(20_000).for_each(talk);
}

/// Good packets of all sorts that are told apart.
fn good() -> Vec<Vec<u8>> {
    use etherparse::{PacketBuilder, TcpOptionElement as Element};
    let (a, b, a6, b6) = ([10, 0, 0, 1], [10, 0, 0, 2], [0xfd; 16], [0xfe; 16]);
    let sack = Element::SelectiveAcknowledgement((5_000, 6_000), [Some((8_000, 9_000)), None, None]);
    let options = [Element::Noop, Element::Noop, Element::Timestamp(7, 9), Element::Noop, Element::Noop, sack];
    let mut all = vec![Vec::new(); 8];
    let written = [
        PacketBuilder::ipv4(a, b, 64).tcp(80, 40_000, 1, 512).options(&options).unwrap().write(&mut all[0], &[1; 30]),
        PacketBuilder::ipv6(b6, a6, 64).tcp(40_000, 80, 1, 512).syn().write(&mut all[1], &[]),
        PacketBuilder::ipv4(b, a, 64).udp(5_000, 53).write(&mut all[2], &[1; 30]),
        PacketBuilder::ipv6(b6, a6, 64).udp(5_000, 53).write(&mut all[3], &[1; 30]),
        PacketBuilder::ipv4(b, a, 64).icmpv4_echo_request(7, 1).write(&mut all[4], &[1; 30]),
        PacketBuilder::ipv4(a, b, 64).icmpv4_echo_reply(7, 1).write(&mut all[5], &[1; 30]),
        PacketBuilder::ipv6(b6, a6, 64).icmpv6_echo_request(7, 1).write(&mut all[6], &[1; 30]),
    ];
    assert!(written.iter().all(Result::is_ok));
    // Hop-by-hop options, a routing header, a later fragment.
    let extensions = [43, 0, 1, 4, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 17, 0, 1, 1, 0, 0, 0, 9, 1, 2, 3, 4];
    all[7] = [&[0x60, 0, 0, 0, 0, 28, 0, 64], &a6[..], &b6, &extensions].concat();
    all
}

#[test]
fn any_edit_of_good_packets_gives_packets_or_none() {
    let good = good();
    let edits = bolero::produce::<Vec<(u8, u8, u8)>>().with().len(0usize..60);
    bolero::check!().with_generator(edits).with_iterations(20_000).for_each(|edits| {
        let mut input = Vec::new();
        for &(which, at, byte) in edits {
            let mut packet = good[usize::from(which) % good.len()].clone();
            // Mostly headers, and one packet in two as it was.
            let at = usize::from(at);
            if let Some(place) = packet.get_mut(at) {
                *place = byte;
            }
            packet.truncate(if byte < 16 { at } else { packet.len() });
            // A length modulo 2,048 with any remainder modulo 32, on which depends what happens then; see `talk`.
            packet.resize(packet.len().max(usize::from(byte % 32) + 64), 0);
            input.extend((packet.len() as u16).to_be_bytes());
            input.extend(packet);
        }
        talk(&input);
    });
}

/// An operation on a few connections with few sequence numbers, so that they meet.
#[derive(Clone, Debug, bolero::TypeGenerator)]
enum Operation {
    Enter { from_ue: bool, port: u8, seq: u16, far: bool, ack: u16, flags: u8, len: u8, sacked: Option<u16> },
    Arrive { which: u8, ce: bool },
    Lose { which: u8 },
    Wait { ms: u16 },
    Sample,
    WarmUp,
}

/// A TCP segment with these operations' numbers; the initial sequence numbers are such that they wrap around.
fn segment(operation: &Operation) -> Option<(usize, Vec<u8>)> {
    use etherparse::{PacketBuilder, TcpOptionElement as Element};
    let &Operation::Enter { from_ue, port, seq, far, ack, flags, len, sacked } = operation else { return None };
    let number = |n: u16| 0u32.wrapping_sub(30_000).wrapping_add(n.into());
    let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to) = if from_ue { (b, a) } else { (a, b) };
    let (client, port) = (40_000 + u16::from(port % 4), 80);
    let ports = if from_ue { (client, port) } else { (port, client) };
    let seq = number(seq).wrapping_add(if far { 1 << 30 } else { 0 });
    let mut builder = PacketBuilder::ipv4(from, to, 64).tcp(ports.0, ports.1, seq, 512);
    builder = if flags & 1 > 0 { builder.ack(number(ack)) } else { builder };
    builder = if flags & 0x0e == 0x02 { builder.syn() } else { builder };
    builder = if flags & 0x30 == 0x10 { builder.fin() } else { builder };
    builder = if flags & 0xc0 == 0x40 { builder.rst() } else { builder };
    let sack = sacked.map(|end| Element::SelectiveAcknowledgement((number(ack), number(end)), [None; 3]));
    let builder = builder.options(&Vec::from_iter(sack)).expect("one option");
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &vec![0; len.into()]).expect("a vector takes all");
    Some((from_ue.into(), bytes))
}

#[test]
fn any_segments_in_any_order_are_counted() {
    let operations = bolero::produce::<Vec<Operation>>().with().len(0usize..200);
    bolero::check!().with_generator(operations).with_iterations(5_000).for_each(|operations| {
        let mut observer = observer();
        let (mut inside, mut now) = (Vec::new(), Time::from_nanos(1));
        let (mut entered, mut arrived, mut lost, mut payload) = (0u64, 0u64, 0u64, 0u64);
        for operation in operations {
            match operation {
                Operation::Enter { .. } => {
                    let (from, bytes) = segment(operation).expect("it enters");
                    let header = read(&bytes).expect("it is a segment");
                    payload += u64::from(header.payload_len);
                    inside.push((observer.entered(from, 1 - from, &header, now), header, now));
                    entered += 1;
                }
                Operation::Arrive { which, ce } if !inside.is_empty() => {
                    let (flow, header, since) = inside.remove(usize::from(*which) % inside.len());
                    observer.arrived(flow, &header, now - since, *ce, now);
                    arrived += 1;
                }
                Operation::Lose { which } if !inside.is_empty() => {
                    observer.lost(inside.remove(usize::from(*which) % inside.len()).0, now);
                    lost += 1;
                }
                Operation::Wait { ms } => now += Span::from_millis((*ms).into()),
                Operation::Sample => {
                    observer.sample(now, Span::from_millis(100));
                }
                Operation::WarmUp => observer.warmed_up(now),
                Operation::Arrive { .. } | Operation::Lose { .. } => {}
            }
            let packets = observer.packets();
            assert_eq!((packets.entered, packets.arrived, packets.lost), (entered, arrived, lost));
            assert_eq!(packets.inside(), inside.len() as u64);
        }
        let flows = observer.finish(now);
        check(&flows, now);
        assert!(flows.iter().map(|flow| flow.counters.delivered).sum::<u64>() <= payload);
    });
}

#[test]
fn a_flood_of_connections_takes_no_more_memory_than_was_agreed() {
    let mut observer = observer();
    let (_, bytes) = segment(&Operation::Enter {
        from_ue: true,
        port: 0,
        seq: 0,
        far: false,
        ack: 0,
        flags: 2,
        len: 0,
        sacked: None,
    })
    .expect("it enters");
    let mut header = Headers::parse(&bytes).expect("it is a segment");
    for n in 0..200_000u32 {
        header.source = IpAddr::V4(Ipv4Addr::from_bits(n.wrapping_mul(2_654_435_761)));
        let flow = observer.entered(1, 0, &header, Time::from_nanos(n.into()));
        observer.arrived(flow, &header, Span::from_millis(1), false, Time::from_nanos(n.into()));
    }
    let flows = observer.finish(Time::from_nanos(1_000_000_000));
    assert_eq!(flows.len(), MOST_CONNECTIONS + 1);
    assert_eq!(flows.iter().map(|flow| flow.packets.entered).sum::<u64>(), 200_000);
}
