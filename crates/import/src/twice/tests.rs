use std::net::SocketAddr;

use wire::{Headers, Segment, datagram_headers, segment_headers};

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn ends(is_back: bool) -> (SocketAddr, SocketAddr) {
    let (near, far) = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:443".parse().unwrap());
    if is_back { (far, near) } else { (near, far) }
}

/// A segment of TCP without an identification.
fn segment(flags: u8, seq: u32, len: u16) -> Vec<u8> {
    let (from, to) = ends(false);
    let payload = vec![7; usize::from(len)];
    let segment = Segment { seq, len, flags: Flags(flags), ..Segment::default() };
    segment_headers(&segment, from, to, 0, &payload).unwrap().into_iter().chain(payload).collect()
}

/// An acknowledgement in the other direction.
fn ack(ack: u32) -> Vec<u8> {
    let (from, to) = ends(true);
    let segment = Segment { ack, flags: Flags::ACK, ..Segment::default() };
    segment_headers(&segment, from, to, 0, &[]).unwrap().to_vec()
}

/// A datagram with this content and identification.
fn datagram(content: u32, identification: u16) -> Vec<u8> {
    let payload = content.to_be_bytes().repeat(50);
    let (from, to) = ends(false);
    let headers = datagram_headers(200, from, to, 0, &payload).unwrap();
    let mut bytes: Vec<u8> = headers.into_iter().chain(payload).collect();
    bytes[4..6].copy_from_slice(&identification.to_be_bytes());
    bytes
}

/// Which of these packets are copies.
fn copies(packets: &[(u64, Vec<u8>)]) -> Vec<bool> {
    let mut twice = Twice::default();
    packets.iter().map(|(at, ip)| twice.is_copy(&Headers::parse_captured(ip, ip.len()).unwrap(), ip, *at, 0)).collect()
}

/// Each packet so many times, 5 µs apart.
fn times(count: u64, packets: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    packets.iter().flat_map(|(at, ip)| (0..count).map(move |n| (at + n * 5 * US, ip.clone()))).collect()
}

/// An upload of which each segment is acknowledged, and then many are out of order: the same acknowledgement, four at a time.
fn upload() -> Vec<(u64, Vec<u8>)> {
    let mut all = vec![(0, segment(Flags::SYN.0, 0, 0))];
    for n in 0..50 {
        let at = 10 * MS + u64::from(n) * 2 * MS;
        all.push((at, segment(Flags::ACK.0, 1 + n * 1_000, 1_000)));
        all.push((at + 300 * US, ack(1_001 + n * 1_000)));
    }
    for n in 0..10 {
        let at = 200 * MS + u64::from(n) * 4 * MS;
        all.push((at, segment(Flags::ACK.0, 90_000 + n * 1_000, 1_000)));
        all.extend((0..4).map(|dup| (at + (100 + dup * 20) * US, ack(50_001))));
    }
    // A retransmission, after a round trip.
    all.push((300 * MS, segment(Flags::ACK.0, 90_000, 1_000)));
    all
}

#[test]
fn packets_that_come_once_all_count_even_if_acknowledgements_are_the_same() {
    assert!(copies(&upload()).iter().all(|is_copy| !is_copy));
}

#[test]
fn of_packets_that_come_twice_or_more_often_each_counts_once() {
    for count in 2..=4 {
        let told = copies(&times(count, &upload()));
        let kept = told.iter().filter(|is_copy| !**is_copy).count();
        assert_eq!(kept, upload().len(), "{count}");
    }
}

#[test]
fn a_capture_that_begins_within_a_connection_may_keep_its_first_copies() {
    let acks: Vec<(u64, Vec<u8>)> = upload().into_iter().skip(1).filter(|(_, ip)| ip[15] == 2).collect();
    let kept = copies(&times(2, &acks)).iter().filter(|is_copy| !**is_copy).count();
    assert!((90..=95).contains(&kept), "{kept}");
    assert_eq!(acks.len(), 90);
}

#[test]
fn what_routers_and_frames_change_is_not_compared() {
    let routed = |mut ip: Vec<u8>| {
        (ip[1], ip[8], ip[10]) = (4, 63, 99);
        ip.extend([0; 6]);
        ip
    };
    let both: Vec<(u64, Vec<u8>)> =
        upload().into_iter().flat_map(|(at, ip)| [(at, ip.clone()), (at + 2 * US, routed(ip))]).collect();
    assert_eq!(copies(&both).iter().filter(|is_copy| !**is_copy).count(), upload().len());
}

#[test]
fn another_place_is_not_compared() {
    let (ip, mut twice) = (segment(Flags::ACK.0, 1, 500), Twice::default());
    let headers = Headers::parse_captured(&ip, 0).unwrap();
    let mut at = |place, us| twice.is_copy(&headers, &ip, us * US, place);
    assert_eq!([at(0, 0), at(1, 1), at(0, 2), at(1, 3)], [false, false, true, true]);
    assert!(!at(0, 1_000));
}

#[test]
fn packets_that_the_network_duplicates_now_and_then_count() {
    let mut all = upload();
    let doubled = all[21].clone();
    all.insert(22, (doubled.0 + 50 * US, doubled.1));
    assert!(copies(&all).iter().all(|is_copy| !is_copy));
}

#[test]
fn a_capture_behind_another_of_which_times_go_back_is_no_copy() {
    let later = upload().into_iter().map(|(at, ip)| (at + 3_500 * US, ip));
    let again: Vec<(u64, Vec<u8>)> = upload().into_iter().chain(later).collect();
    assert!(copies(&again).iter().all(|is_copy| !is_copy));
}

#[test]
fn bursts_of_datagrams_that_are_the_same_count() {
    // Frames of a few full packets and a last one, without content or identification.
    let frame = |n: u64| {
        let (at, full) = (n * 16 * MS, 2 + n % 3);
        let last = (at + full * 20 * US, datagram(5 + n as u32 % 2, 0));
        (0..full).map(move |packet| (at + packet * 20 * US, datagram(9, 0))).chain([last])
    };
    let all: Vec<(u64, Vec<u8>)> = (0..200).flat_map(frame).collect();
    assert!(copies(&all).iter().all(|is_copy| !is_copy));
}

#[test]
fn datagrams_that_are_all_the_same_count_and_others_once() {
    // Three within the time in which copies come.
    let stream = |content: fn(u32) -> u32, identification: fn(u32) -> u16| -> Vec<(u64, Vec<u8>)> {
        (0..300).map(|n| (u64::from(n) * 400 * US, datagram(content(n), identification(n)))).collect()
    };
    let kept = |packets: &[(u64, Vec<u8>)]| copies(packets).iter().filter(|is_copy| !**is_copy).count();
    assert_eq!(kept(&stream(|_| 9, |_| 0)), 300);
    assert!(kept(&stream(|_| 9, |_| 77)) >= 298);
    assert_eq!(kept(&times(2, &stream(|_| 9, |n| n as u16 + 1))), 300);
    let different = kept(&times(2, &stream(|n| n, |_| 0)));
    assert!((300..310).contains(&different), "{different}");
}
