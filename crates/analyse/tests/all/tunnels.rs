//! Packets in tunnels, behind tags and labels, and frames that are no packets.

use std::net::{IpAddr, SocketAddr};

use crate::common::{Packet, Script, analysed, pcap};
use analyse::{Analysis, Error, Rules};
use record::Table as _;
use wire::datagram_headers;

/// Identifiers of the tunnels of either direction.
const TEIDS: [u32; 2] = [0x1122_3344, 0x5566_7788];

/// A packet in a tunnel between a base station and the core, with a header of these flags.
fn tunnelled(packet: &Packet, hosts: [&str; 2], flags: u8) -> Vec<u8> {
    let inner = packet.bytes();
    let mut gtp = vec![flags, 255];
    let optional: &[u8] = match flags & 0b111 {
        0 => &[],
        // A sequence number; or a PDU session container (TS 38.415) and one more extension.
        0b010 => &[0, 7, 0, 0],
        _ => &[0, 0, 0, 0x85, 1, 0x10, 9, 0xc0, 1, 0, 0, 0],
    };
    gtp.extend(((inner.len() + optional.len()) as u16).to_be_bytes());
    gtp.extend(TEIDS[usize::from(packet.back)].to_be_bytes());
    gtp.extend(optional);
    gtp.extend(inner);
    let address = |host: &str| SocketAddr::new(host.parse::<IpAddr>().unwrap(), 2_152);
    let [near, far] = hosts.map(address);
    let (from, to) = if packet.back { (far, near) } else { (near, far) };
    let mut bytes = datagram_headers(gtp.len() as u16, from, to, 0, &gtp).unwrap().to_vec();
    bytes.extend(gtp);
    bytes
}

/// A frame of Ethernet with these tags or labels, the last of which is the packet's type.
fn frame(between: &[u16], packet: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend(between.iter().flat_map(|word| word.to_be_bytes()));
    bytes.extend(packet);
    bytes
}

/// An upload with a loss.
fn script() -> Script {
    let mut script = Script::new(1_000, 40_000, false);
    for n in 0..50 {
        script.data(50_000 + u64::from(n) * 1_000, n);
    }
    script.ack(120_000, 49, &[]);
    script.data(400_000, 49);
    script.ack(440_000, 50, &[]);
    script
}

fn of(link: u32, packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Result<Analysis, Error> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture.pcap");
    std::fs::write(&file, pcap(link, packets)).unwrap();
    analysed(&[file], Rules::Ranway)
}

/// The figures of the only flow.
fn figures(analysis: &Analysis) -> (String, u64, Option<u64>, Option<u64>, Option<f64>) {
    let flows = &analysis.results.tables.flows;
    assert_eq!(flows.len(), 1);
    let flow = flows.row(0);
    (flow.flow.to_owned(), flow.bytes, flow.retransmitted, flow.max_in_flight_bytes, flow.rtt_p50_ms)
}

#[test]
fn the_flows_of_a_tunnel_are_those_inside() {
    let expected = figures(&crate::common::of(&script()));
    assert_eq!((expected.1, expected.2), (50_000, Some(1)));
    for hosts in [["172.16.0.1", "172.16.0.2"], ["fd00::1", "fd00::2"]] {
        for flags in [0b0011_0000, 0b0011_0010, 0b0011_0100] {
            let packets = script().packets;
            let inside = packets.iter().map(|packet| (packet.at_us * 1_000, tunnelled(packet, hosts, flags)));
            let analysis = of(101, inside).unwrap();
            assert_eq!(figures(&analysis), expected, "{hosts:?} {flags:#b}");
            assert_eq!(analysis.results.tables.flows.row(0).teid, Some(TEIDS[0].into()));
            assert!(analysis.notes.iter().any(|note| note.contains("GTP-U")), "{:?}", analysis.notes);
        }
    }
}

#[test]
fn a_packet_that_passes_several_links_counts_once() {
    let expected = figures(&crate::common::of(&script()));
    let legs: [[&str; 2]; 2] = [["172.16.0.1", "172.16.0.2"], ["172.16.1.2", "172.16.1.3"]];
    let mut all = Vec::new();
    for packet in script().packets {
        let at = packet.at_us * 1_000;
        let mut beyond = packet.bytes();
        // A router has passed it on.
        beyond[8] -= 3;
        let mut links = [tunnelled(&packet, legs[0], 0b0011_0000), tunnelled(&packet, legs[1], 0b0011_0000), beyond];
        if packet.back {
            links.reverse();
        }
        all.extend(links.into_iter().enumerate().map(|(n, bytes)| (at + n as u64 * 100, bytes)));
    }
    let analysis = of(101, all).unwrap();
    assert_eq!(figures(&analysis), expected);
    assert!(analysis.notes.iter().any(|note| note.contains("count once")), "{:?}", analysis.notes);
}

#[test]
fn fragments_of_a_tunnel_are_no_flow() {
    let mut all = Vec::new();
    for packet in script().packets {
        let whole = tunnelled(&packet, ["172.16.0.1", "172.16.0.2"], 0b0011_0000);
        if packet.len == 0 {
            all.push((packet.at_us * 1_000, whole));
            continue;
        }
        // The second fragment has the last bytes.
        let (at, cut) = (packet.at_us * 1_000, whole.len() / 2 / 8 * 8 + 4);
        let mut first = whole[..cut].to_vec();
        first[2..4].copy_from_slice(&(cut as u16).to_be_bytes());
        first[6] = 0x20;
        let mut second = whole[..20].to_vec();
        second.extend(&whole[cut..]);
        let len = second.len() as u16;
        second[2..4].copy_from_slice(&len.to_be_bytes());
        second[6..8].copy_from_slice(&((cut as u16 - 20) / 8).to_be_bytes());
        all.extend([(at, first), (at + 10, second)]);
    }
    let analysis = of(101, all).unwrap();
    assert_eq!(figures(&analysis), figures(&crate::common::of(&script())));
    assert!(analysis.notes.iter().any(|note| note.contains("fragments")), "{:?}", analysis.notes);
}

#[test]
fn other_messages_between_the_ends_of_tunnels_are_their_own_flow() {
    let packet = &script().packets[4];
    let mut echo = tunnelled(packet, ["172.16.0.1", "172.16.0.2"], 0b0011_0010);
    // Echo requests have no packet in them.
    echo[29] = 1;
    let analysis = of(101, [(0, echo.clone()), (1_000, echo)]).unwrap();
    assert!(figures(&analysis).0.starts_with("udp 172.16.0.1:2152 > "));
}

#[test]
fn tags_and_labels_are_passed_over() {
    let expected = figures(&crate::common::of(&script()));
    // VLAN; a tag of a provider's before it; MPLS with two labels; both.
    let kinds: [&[u16]; 4] = [
        &[0x8100, 7, 0x0800],
        &[0x88a8, 100, 0x8100, 7, 0x0800],
        &[0x8847, 1, 0x4040, 2, 0x4140],
        &[0x8100, 7, 0x8847, 1, 0x4140],
    ];
    for between in kinds {
        let packets = script().packets;
        let frames = packets.iter().map(|packet| (packet.at_us * 1_000, frame(between, &packet.bytes())));
        assert_eq!(figures(&of(1, frames).unwrap()), expected, "{between:x?}");
    }
}

#[test]
fn a_capture_without_a_flow_says_what_its_frames_were() {
    let frames = [(&[0x0806u16][..], 3), (&[0x88cc], 1), (&[0x8100, 7, 0x8847, 0, 0x0140], 2)];
    let all = frames.iter().flat_map(|(between, count)| (0..*count).map(|n| (n, frame(between, &[0; 40]))));
    let error = of(1, all).unwrap_err().to_string();
    let expected = "6 of 6 frames are not IP: 3 ARP, 1 LLDP, 2 MPLS without IP";
    assert!(error.contains("no flow in") && error.contains(expected) && !error.contains('\n'), "{error}");
}

#[test]
fn a_capture_in_a_tunnel_and_one_of_the_phone_are_both_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut script = Script::new(1_000, 40_000, true);
    for n in 0..100 {
        let at = 50_000 + u64::from(n) * 10_000;
        script.data(at, n);
        script.ack(at + 40_000, n + 1, &[]);
    }
    script.packets.sort_by_key(|packet| packet.at_us);
    let near = script.write(&dir.path().join("phone.pcap"));
    // 15 ms to the core, which is before the server.
    let there = |packet: &Packet| packet.at_us * 1_000 + 15_000_000 - if packet.back { 30_000_000 } else { 0 };
    let mut packets: Vec<_> = script.packets.iter().map(|packet| (there(packet), packet)).collect();
    packets.sort_by_key(|(at, _)| *at);
    let inside = packets.into_iter().map(|(at, packet)| (at, tunnelled(packet, ["10.9.0.1", "10.9.0.2"], 0b0011_0000)));
    let far = dir.path().join("core.pcap");
    std::fs::write(&far, pcap(101, inside)).unwrap();
    let analysis = analysed(&[near, far], Rules::Ranway).unwrap();
    let flow = analysis.results.tables.flows.row(0);
    assert_eq!((flow.bytes, flow.lost_packets, flow.teid), (100_000, Some(0), Some(TEIDS[0].into())));
    assert!((flow.owd_p50_ms.unwrap() - 15.0).abs() < 0.2, "{flow:?}");
}
