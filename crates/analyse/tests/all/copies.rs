//! Packets that a capture has twice at one place, and packets in fragments.

use crate::common::{Packet, Script, analysed, pcap};
use analyse::{Analysis, Rules};
use record::Table as _;

fn of(link: u32, packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Analysis {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture.pcap");
    std::fs::write(&file, pcap(link, packets)).unwrap();
    analysed(&[file], Rules::Ranway).unwrap()
}

/// What the only flow comes to.
fn figures(analysis: &Analysis) -> (u64, u64, Option<u64>, Option<u64>, Option<u64>, Option<f64>) {
    let (flows, tcp) = (&analysis.results.tables.flows, &analysis.results.tables.tcp_flows);
    assert_eq!(flows.len(), 1);
    let flow = flows.row(0);
    let segments = tcp.row(0).segments;
    (flow.bytes, segments, flow.retransmitted, flow.dup_acks, flow.max_in_flight_bytes, flow.rtt_p50_ms)
}

/// An upload at a router, of which a segment is lost, acknowledged by many at once; and it is retransmitted.
fn script() -> Script {
    let mut script = Script::new(1_000, 40_000, true);
    for n in 0..60 {
        script.data(50_000 + u64::from(n) * 1_000, n);
        match n {
            0..40 => _ = script.ack(50_100 + u64::from(n) * 1_000 + 39_900, n + 1, &[]),
            _ => _ = script.ack(50_100 + u64::from(n) * 1_000 + 39_900, 40, &[(41, n + 1)]),
        }
    }
    script.data(160_000, 40);
    script.ack(200_000, 60, &[]);
    script.packets.sort_by_key(|packet| packet.at_us);
    script
}

/// As a router passes it on.
fn routed(packet: &Packet) -> Vec<u8> {
    let mut bytes = packet.bytes();
    bytes[8] -= 1;
    bytes
}

#[test]
fn what_a_capture_has_twice_counts_once() {
    let expected = figures(&crate::common::of(&script()));
    assert_eq!((expected.0, expected.2), (60_000, Some(1)));
    for later_us in [0, 1, 5, 100] {
        let twice = script().packets.into_iter().flat_map(|packet| {
            let at = packet.at_us * 1_000;
            [(at, packet.bytes()), (at + later_us * 1_000, routed(&packet))]
        });
        let analysis = of(101, twice);
        assert_eq!(figures(&analysis), expected, "{later_us} us");
        let note = format!("{} packets are in the capture a second time", script().packets.len());
        assert!(analysis.notes.iter().any(|said| said.contains(&note)), "{:?}", analysis.notes);
    }
}

#[test]
fn a_tagged_and_an_untagged_copy_count_once() {
    let frame = |words: &[u16], packet: &Packet| {
        let head = words.iter().flat_map(|word| word.to_be_bytes());
        [2; 12].into_iter().chain(head).chain(packet.bytes()).collect::<Vec<u8>>()
    };
    let packets = script().packets;
    let both = packets.iter().flat_map(|packet| {
        let at = packet.at_us * 1_000;
        [(at, frame(&[0x8100, 5, 0x0800], packet)), (at + 1_000, frame(&[0x0800], packet))]
    });
    assert_eq!(figures(&of(1, both)), figures(&crate::common::of(&script())));
}

/// The fragments of a packet of IPv4, with so many bytes each behind their headers.
fn fragments(packet: &[u8], id: u16, size: usize) -> Vec<Vec<u8>> {
    let payload = &packet[20..];
    let parts: Vec<&[u8]> = payload.chunks(size).collect();
    let of = |(n, part): (usize, &&[u8])| {
        let mut bytes = packet[..20].to_vec();
        bytes.extend(*part);
        let (len, more) = (bytes.len() as u16, u16::from(n + 1 < parts.len()) << 13);
        bytes[2..4].copy_from_slice(&len.to_be_bytes());
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        bytes[6..8].copy_from_slice(&(more | (n * size / 8) as u16).to_be_bytes());
        bytes
    };
    parts.iter().enumerate().map(of).collect()
}

#[test]
fn a_packet_in_fragments_is_one_packet_in_any_order() {
    let expected = figures(&crate::common::of(&script()));
    for (size, reversed) in [(800, false), (800, true), (344, false), (344, true)] {
        let mut all = Vec::new();
        for (n, packet) in script().packets.iter().enumerate() {
            let mut parts = fragments(&packet.bytes(), n as u16 + 1, size);
            if reversed {
                parts.reverse();
            }
            all.extend(parts.into_iter().map(|part| (packet.at_us * 1_000, part)));
        }
        let analysis = of(101, all);
        assert_eq!(figures(&analysis), expected, "{size} {reversed}");
        let note = "61 packets came in fragments, and each counts when the last of them came";
        assert!(analysis.notes.iter().any(|said| said.contains(note)), "{:?}", analysis.notes);
    }
}

#[test]
fn packets_of_which_fragments_are_missing_are_counted() {
    let mut all = Vec::new();
    for (n, packet) in script().packets.iter().enumerate() {
        let mut parts = fragments(&packet.bytes(), n as u16 + 1, 800);
        // Of every tenth segment one fragment.
        if packet.len > 0 && packet.seq / 1_000 % 10 == 3 {
            parts.remove(n % 2);
        }
        all.extend(parts.into_iter().map(|part| (packet.at_us * 1_000, part)));
    }
    let analysis = of(101, all);
    let note = "6 packets came in fragments that are not all in the capture, and are left out";
    assert!(analysis.notes.iter().any(|said| said.contains(note)), "{:?}", analysis.notes);
    assert_eq!(figures(&analysis).1, 55);
}
