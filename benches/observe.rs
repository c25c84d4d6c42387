//! What the observer's work costs for each packet.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use etherparse::{PacketBuilder, TcpOptionElement as Element};
use observe::{Observer, VantagePoint};
use units::{Span, Time};
use wire::ip::mark_ce;
use wire::{Headers, Transport};

/// Segments of `flows` downloads in turn, each acknowledged, which `observer` sees.
struct Downloads {
    flows: u32,
    observer: Observer,
    data: Headers,
    ack: Headers,
    n: u32,
}

impl Downloads {
    fn new(flows: u32, data: Headers, ack: Headers) -> Downloads {
        let point =
            |n: u8| VantagePoint { name: format!("h{n}"), v4: Ipv4Addr::new(10, 0, 0, n), v6: Ipv6Addr::UNSPECIFIED };
        Downloads { flows, observer: Observer::new(vec![point(1), point(2)], |_| false), data, ack, n: 0 }
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::from(self.n) * 1_000)
    }

    /// Observes a segment and its acknowledgement.
    fn step(&mut self) {
        let Downloads { flows, observer, data, ack, n } = self;
        let now = Time::from_nanos(u64::from(*n) * 1_000);
        let client = IpAddr::V4(Ipv4Addr::from_bits(0x0a80_0000 + *n % *flows));
        (data.destination, ack.source) = (client, client);
        let (Transport::Tcp(segment), Transport::Tcp(reply)) = (&mut data.transport, &mut ack.transport) else {
            unreachable!("both are segments");
        };
        segment.seq = (*n / *flows).wrapping_mul(data.payload_len);
        reply.ack = segment.seq.wrapping_add(data.payload_len);
        let flow = observer.entered(0, 1, data, now);
        observer.arrived(flow, data, Span::from_millis(20), false, now);
        let flow = observer.entered(1, 0, ack, now);
        observer.arrived(flow, ack, Span::from_millis(20), false, now);
        *n += 1;
    }
}

fn packets(c: &mut Criterion) {
    let time = [Element::Noop, Element::Noop, Element::Timestamp(7, 9)];
    let sack = Element::SelectiveAcknowledgement((5_000, 6_000), [Some((8_000, 9_000)), None, None]);
    let sacks = [&time[..], &[Element::Noop, Element::Noop, sack]].concat();
    let (a, b, a6, b6) = ([10, 0, 0, 1], [10, 0, 0, 2], [0xfd; 16], [0xfe; 16]);
    let mut packets = vec![Vec::new(); 4];
    let written = [
        PacketBuilder::ipv4(a, b, 64)
            .tcp(80, 40_000, 1, 512)
            .ack(1)
            .options(&time)
            .unwrap()
            .write(&mut packets[0], &[0; 1_400]),
        PacketBuilder::ipv4(b, a, 64)
            .tcp(40_000, 80, 1, 512)
            .ack(1)
            .options(&sacks)
            .unwrap()
            .write(&mut packets[1], &[]),
        PacketBuilder::ipv6(a6, b6, 64)
            .tcp(80, 40_000, 1, 512)
            .options(&time)
            .unwrap()
            .write(&mut packets[2], &[0; 1_400]),
        PacketBuilder::ipv4(a, b, 64).udp(5_000, 53).write(&mut packets[3], &[0; 1_400]),
    ];
    assert!(written.iter().all(Result::is_ok));
    for (name, packet) in
        ["data over IPv4", "acknowledgement with SACK", "data over IPv6", "datagram"].iter().zip(&packets)
    {
        c.bench_function(&format!("parse: {name}"), |b| {
            b.iter(|| black_box(Headers::parse(black_box(packet)).is_ok()));
        });
    }
    let [data, ack] = [0, 1].map(|n: usize| Headers::parse(&packets[n]).expect("it is a segment"));
    c.bench_function("key", |b| b.iter(|| black_box(black_box(&data).key())));
    let mut marked = packets[0].clone();
    c.bench_function("mark", |b| b.iter(|| mark_ce(black_box(&mut marked))));
    for flows in [1, 100, 4_000, 100_000] {
        let mut downloads = Downloads::new(flows, data, ack);
        // Each flow is known.
        (0..2 * flows).for_each(|_| downloads.step());
        let mut group = c.benchmark_group(format!("{flows} downloads"));
        group.bench_function("a segment and its acknowledgement", |b| b.iter(|| downloads.step()));
        group.bench_function("a sample", |b| {
            b.iter_batched(
                || (),
                |()| downloads.observer.sample(downloads.now(), Span::from_millis(100)),
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group!(benches, packets);
criterion_main!(benches);
