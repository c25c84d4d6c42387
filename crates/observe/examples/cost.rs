//! Measures the observer's cost per packet, in nanoseconds. `cargo run --release -p observe --example cost`
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use etherparse::{PacketBuilder, TcpOptionElement as Element};
use observe::{Observer, VantagePoint};
use units::{Span, Time};
use wire::ip::mark_ce;
use wire::{Headers, Transport};

const PACKETS: u32 = 4_000_000;

fn measure(what: &str, mut one: impl FnMut(u32)) {
    let began = Instant::now();
    (0..PACKETS).for_each(&mut one);
    println!("{what:<48} {:>6.1} ns", began.elapsed().as_nanos() as f64 / f64::from(PACKETS));
}

/// Segments of `flows` downloads in turn, each acknowledged; what a segment and its acknowledgement cost together.
fn downloads(flows: u32, data: &Headers, ack: &Headers) {
    let point =
        |n: u8| VantagePoint { name: format!("h{n}"), v4: Ipv4Addr::new(10, 0, 0, n), v6: Ipv6Addr::UNSPECIFIED };
    let mut observer = Observer::new(vec![point(1), point(2)], |_| false);
    let (mut data, mut ack) = (*data, *ack);
    measure(&format!("segment and acknowledgement, {flows} downloads"), |n| {
        let now = Time::from_nanos(u64::from(n) * 1_000);
        let client = IpAddr::V4(Ipv4Addr::from_bits(0x0a80_0000 + n % flows));
        (data.destination, ack.source) = (client, client);
        let (Transport::Tcp(segment), Transport::Tcp(reply)) = (&mut data.transport, &mut ack.transport) else {
            return;
        };
        segment.seq = (n / flows).wrapping_mul(data.payload_len);
        reply.ack = segment.seq.wrapping_add(data.payload_len);
        let flow = observer.entered(0, 1, &data, now);
        observer.arrived(flow, &data, Span::from_millis(20), false, now);
        let flow = observer.entered(1, 0, &ack, now);
        observer.arrived(flow, &ack, Span::from_millis(20), false, now);
    });
    let began = Instant::now();
    observer.sample(Time::from_nanos(u64::from(PACKETS) * 1_000), Span::from_millis(100));
    println!("{:<48} {:>6.1} us", format!("a sample of {flows}"), began.elapsed().as_nanos() as f64 / 1e3);
}

fn main() {
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
        measure(&format!("parse: {name}"), |_| {
            let _ = black_box(Headers::parse(black_box(packet)));
        });
    }
    let [data, ack] = [0, 1].map(|n: usize| Headers::parse(&packets[n]).expect("it is a segment"));
    measure("key", |_| {
        black_box(black_box(&data).key());
    });
    let mut marked = packets[0].clone();
    measure("mark", |_| mark_ce(black_box(&mut marked)));
    for flows in [1, 100, 4_000, 100_000] {
        downloads(flows, &data, &ack);
    }
}
