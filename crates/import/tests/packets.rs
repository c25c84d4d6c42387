//! Packets that a capture has twice, in tunnels, and in fragments.

use import::capture::{Capture, Which, read};
use wire::ip::{SCTP, UDP};

/// A capture of raw IP packets at times in microseconds.
fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let words = |all: &[u32]| -> Vec<u8> { all.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101]);
    for (us, ip) in packets {
        let len = ip.len() as u32;
        file.extend(words(&[(us / 1_000_000) as u32, (us % 1_000_000) as u32, len, len]));
        file.extend(ip);
    }
    file
}

fn capture(packets: &[(u64, Vec<u8>)]) -> Capture {
    read(&pcap(packets)[..]).unwrap()
}

const PHONE: [u8; 4] = [10, 0, 0, 2];
const SERVER: [u8; 4] = [192, 0, 2, 1];
const BASE: [u8; 4] = [172, 16, 0, 1];
const CORE: [u8; 4] = [172, 16, 0, 2];

fn v4(from: [u8; 4], to: [u8; 4], protocol: u8, (id, fragment): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len()) as u16;
    let mut ip = vec![0x45, 0];
    for word in [len, id, fragment] {
        ip.extend(word.to_be_bytes());
    }
    ip.extend([64, protocol, 0, 0]);
    [&ip[..], &from, &to, payload].concat()
}

fn v6(protocol: u8, fragment: Option<(u32, u16)>, payload: &[u8]) -> Vec<u8> {
    let extension = fragment
        .map_or_else(Vec::new, |(id, offset)| [&[protocol, 0][..], &offset.to_be_bytes(), &id.to_be_bytes()].concat());
    let len = (extension.len() + payload.len()) as u16;
    let next = if fragment.is_some() { 44 } else { protocol };
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend(len.to_be_bytes());
    ip.extend([next, 64]);
    let address = |last: u8| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[last]].concat();
    [ip, address(1), address(2), extension, payload.to_vec()].concat()
}

/// A segment of an upload: TCP's header and so many bytes.
fn segment(n: u32, flags: u8, len: usize) -> Vec<u8> {
    let mut tcp = [&5_000u16.to_be_bytes()[..], &443u16.to_be_bytes()].concat();
    tcp.extend((1 + n * 1_448).to_be_bytes());
    tcp.extend([0, 0, 0, 1, 0x50, flags, 255, 255, 0, 0, 0, 0]);
    tcp.resize(20 + len, 7);
    tcp
}

fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let head: Vec<u8> = [from, to, len, 0].into_iter().flat_map(u16::to_be_bytes).collect();
    [&head[..], payload].concat()
}

/// An upload of 500 segments at 8 Mbit/s: a packet in 1.448 ms.
fn upload() -> Vec<(u64, Vec<u8>)> {
    let packet = |n: u32, flags, len| v4(PHONE, SERVER, 6, (0, 0x4000), &segment(n, flags, len));
    let data = (0..500u32).map(|n| (100_000 + u64::from(n) * 1_448, packet(n, 16, 1_448)));
    [(0, packet(0, 2, 0))].into_iter().chain(data).collect()
}

/// Each flow with its packets.
fn flows(capture: &Capture) -> Vec<(String, u64)> {
    capture.flows().into_iter().map(|one| (one.flow.to_string(), one.packets)).collect()
}

const UPLOAD: &str = "tcp 10.0.0.2:5000 > 192.0.2.1:443";

/// The mean rate in Mbit/s, to three digits.
fn mbps(capture: &Capture) -> f64 {
    let which = Which { flow: Some(UPLOAD.to_owned()), ..Which::default() };
    (capture.trace(&which, 0.0, None).unwrap().value.mean_rate().as_mbps() * 1_000.0).round() / 1e3
}

#[test]
fn a_packet_that_is_in_the_capture_twice_counts_once() {
    let once = capture(&upload());
    assert_eq!((flows(&once), once.notes.len()), (vec![(UPLOAD.to_owned(), 501)], 0));
    for us in [1, 5, 300] {
        let routed = |mut ip: Vec<u8>| {
            ip[8] -= 1;
            ip
        };
        let both = |(at, ip): (u64, Vec<u8>)| [(at, ip.clone()), (at + us, routed(ip))];
        let twice = capture(&upload().into_iter().flat_map(both).collect::<Vec<_>>());
        assert_eq!((flows(&twice), mbps(&twice)), (flows(&once), mbps(&once)), "{us}");
        assert!(twice.notes[0].starts_with("501 packets are in the capture a second time"), "{:?}", twice.notes);
    }
}

#[test]
fn the_flows_of_a_tunnel_are_those_inside() {
    let tunnelled = |ip: &[u8]| {
        let head = [&[0x30, 255][..], &(ip.len() as u16).to_be_bytes(), &[0, 0, 0, 0x11]].concat();
        v4(BASE, CORE, UDP, (0, 0), &datagram(2_152, 2_152, &[&head[..], ip].concat()))
    };
    let inside: Vec<(u64, Vec<u8>)> = upload().iter().map(|(at, ip)| (*at, tunnelled(ip))).collect();
    let capture_of = capture(&inside);
    assert_eq!(flows(&capture_of), flows(&capture(&upload())));
    assert_eq!(capture_of.notes, ["501 packets came in tunnels (GTP-U), and the flows are those inside"]);
    let which = Which { to: Some(SERVER.into()), ..Which::default() };
    assert!(capture_of.trace(&which, 0.0, None).is_ok());
    // On both sides of the core, and twice on each.
    let both = |(at, ip): &(u64, Vec<u8>)| {
        [(*at, tunnelled(ip)), (at + 2, tunnelled(ip)), (at + 50, ip.clone()), (at + 52, ip.clone())]
    };
    let all = capture(&upload().iter().flat_map(both).collect::<Vec<_>>());
    let packets = flows(&all)[0].1;
    // Datagrams without an identification count twice until they are known to come twice.
    assert!((501..510).contains(&packets), "{packets}");
}

#[test]
fn a_packet_in_fragments_counts_once_with_all_of_them() {
    let cut = |late_first: bool| -> Vec<(u64, Vec<u8>)> {
        let parts = |(n, (at, ip)): (usize, (u64, Vec<u8>))| {
            let (id, tcp) = (n as u16 + 1, &ip[20..]);
            if tcp.len() < 800 {
                return vec![(at, ip.clone())];
            }
            let first = v4(PHONE, SERVER, 6, (id, 0x2000), &tcp[..800]);
            let second = v4(PHONE, SERVER, 6, (id, 100), &tcp[800..]);
            if late_first { vec![(at, second), (at + 10, first)] } else { vec![(at, first), (at + 10, second)] }
        };
        upload().into_iter().enumerate().flat_map(parts).collect()
    };
    let whole = mbps(&capture(&upload()));
    for late_first in [false, true] {
        let parts = capture(&cut(late_first));
        assert_eq!(flows(&parts), [(UPLOAD.to_owned(), 501)]);
        assert_eq!(parts.notes, ["500 packets came in fragments, and each counts when the last of them came"]);
        // Each fragment has a header of 20 bytes of its own.
        assert!((mbps(&parts) / whole / (1_508.0 / 1_488.0) - 1.0).abs() < 0.005, "{} {whole}", mbps(&parts));
    }
    // Without the first fragments, nobody knows whose the others are.
    let lost: Vec<(u64, Vec<u8>)> =
        cut(false).into_iter().filter(|(at, _)| *at == 0 || (at - 100_000) % 1_448 == 10 || *at > 800_000).collect();
    let capture_of = capture(&lost);
    assert_eq!(flows(&capture_of), [(UPLOAD.to_owned(), 17)]);
    let note = "484 packets came in fragments that are not all in the capture, and are left out";
    assert_eq!(capture_of.notes[1], note);
}

#[test]
fn a_packet_of_ipv6_in_fragments_counts_once() {
    let payload = datagram(6_000, 443, &[9; 2_000]);
    let parts = |n: u32| {
        let at = u64::from(n) * 2_000;
        // The offset is in units of 8 bytes; the lowest bit says that more follow.
        let (first, second) = (v6(17, Some((n, 1)), &payload[..1_000]), v6(17, Some((n, 1_000)), &payload[1_000..]));
        [(at, first), (at + 20, second)]
    };
    let capture_of = capture(&(0..50).flat_map(parts).collect::<Vec<_>>());
    assert_eq!(flows(&capture_of), [("udp [2001:db8::1]:6000 > [2001:db8::2]:443".to_owned(), 50)]);
}

#[test]
fn protocols_with_ports_have_them() {
    let of =
        |protocol| flows(&capture(&[(0, v4(PHONE, SERVER, protocol, (1, 0), &datagram(7, 9, &[1; 20])))]))[0].0.clone();
    assert_eq!(of(SCTP), "sctp 10.0.0.2:7 > 192.0.2.1:9");
    assert_eq!(of(33), "dccp 10.0.0.2:7 > 192.0.2.1:9");
    assert_eq!(of(136), "udplite 10.0.0.2:7 > 192.0.2.1:9");
    assert_eq!(of(47), "ip-47 10.0.0.2:0 > 192.0.2.1:0");
}
