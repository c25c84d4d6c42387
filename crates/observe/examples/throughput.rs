//! Time that a capture's packets take, without writing results: `cargo run --release -p observe --example throughput FILE`.
#![allow(clippy::disallowed_methods)] // An example reads a file and a clock.

use import::packets::{Reader, ip_packet};
use observe::{Inspection, Observer, Rules};
use std::fs::File;
use std::time::Instant;
use units::{Span, Time};
use wire::Headers;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: throughput FILE [wireshark]")?;
    let rules = if std::env::args().nth(2).is_some() { Rules::Wireshark } else { Rules::Ranway };
    let began = Instant::now();
    let mut reader = Reader::new(File::open(path)?)?;
    let mut observer = Observer::inspecting(Vec::new(), Inspection { rules, connections: 16_384, rows: true });
    let (mut packets, mut first, mut now, mut sampled) = (0u64, None, Time::ZERO, Time::ZERO);
    while let Some(packet) = reader.next_packet()? {
        packets += 1;
        let at = Time::from_nanos(packet.at.saturating_sub(*first.get_or_insert(packet.at)));
        let Some(ip) = ip_packet(packet.link, packet.data) else { continue };
        let Ok(header) = Headers::parse_captured(ip, ip.len()) else { continue };
        now = now.max(at);
        if now.saturating_since(sampled) >= Span::from_millis(100) {
            observer.sample(now, now.saturating_since(sampled));
            sampled = now;
        }
        observer.inspect(&header, false, now);
    }
    let seconds = began.elapsed().as_secs_f64();
    let flows = observer.finish(now).len();
    let (millions, megabytes) = (packets as f64 / 1e6, reader.position() as f64 / 1e6);
    println!(
        "{packets} packets, {flows} flows, {seconds:.2} s: {:.2} M/s, {:.0} MB/s",
        millions / seconds,
        megabytes / seconds
    );
    Ok(())
}
