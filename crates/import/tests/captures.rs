//! Captures as tools write them: blocks, interfaces, encapsulations and compression; and what is said of what is left out.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use import::capture::{Capture, Which, read};

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let len = (body.len() + padding.len() + 12) as u32;
    [&kind.to_le_bytes()[..], &len.to_le_bytes(), body, &padding, &len.to_le_bytes()].concat()
}

fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &[&words(&[0x1a2b_3c4d, 1])[..], &[0xff; 8]].concat())
}

/// An interface with a link type and a name.
fn interface(link: u32, name: &str) -> Vec<u8> {
    let padded = name.len().next_multiple_of(4);
    let mut option = words(&[2 | (name.len() as u32) << 16]);
    option.extend(name.bytes().chain(std::iter::repeat(0)).take(padded));
    block(1, &[&words(&[link, 65_535])[..], &option, &[0; 4]].concat())
}

/// An enhanced packet block.
fn packet(interface: u32, ms: u32, data: &[u8]) -> Vec<u8> {
    let len = data.len() as u32;
    block(6, &[&words(&[interface, 0, ms * 1_000, len, len])[..], data].concat())
}

/// An obsolete packet block, before which three packets were lost.
fn old_packet(interface: u16, ms: u32, data: &[u8]) -> Vec<u8> {
    let len = data.len() as u32;
    block(2, &[&words(&[u32::from(interface) | 3 << 16, 0, ms * 1_000, len, len])[..], data].concat())
}

/// A TCP segment of 1500 bytes from 10.0.0.1 to 10.0.0.2 with these flags.
fn segment(flags: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 5, 0xdc, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0, 80, 0x13, 0x88, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags, 255, 255, 0, 0, 0, 0]);
    packet.resize(1_500, 0);
    packet
}

const ACK: u8 = 16;
const RAW: u32 = 101;

fn sizes(capture: &Capture) -> Vec<(Option<String>, u64, u64)> {
    capture.flows().into_iter().map(|one| (one.interface, one.packets, one.bytes)).collect()
}

#[test]
fn obsolete_packets_are_read_and_unknown_blocks_counted() {
    let file = [
        section(),
        interface(RAW, "wwan0"),
        old_packet(0, 1, &segment(ACK)),
        // Statistics have no packets; a custom block and one of a type to come may have some.
        block(5, &words(&[0, 0, 0])),
        block(0xbad, &words(&[32_473, 0])),
        block(0x77, &words(&[1, 2])),
        block(0x77, &words(&[1, 2])),
        packet(0, 2, &segment(ACK)),
    ]
    .concat();
    let capture = read(&file[..]).unwrap();
    assert_eq!(sizes(&capture), [(None, 2, 3_000)]);
    assert_eq!(capture.notes, ["3 blocks are of unknown types and left out (2 of type 0x77, 1 of type 0xbad)"]);
    let short = [section(), interface(RAW, "a"), block(2, &words(&[0, 0, 0, 99, 99, 0]))].concat();
    assert!(read(&short[..]).unwrap_err().to_string().contains("a block that cannot be read"));
    let nowhere = [section(), old_packet(0, 1, &segment(ACK))].concat();
    assert!(read(&nowhere[..]).unwrap_err().to_string().contains("a packet of interface 0, which is not described"));
}

#[test]
fn a_capture_may_be_compressed_and_cut_short() {
    let packets: Vec<Vec<u8>> = (0..50).map(|ms| packet(0, ms, &segment(ACK))).collect();
    let file = [section(), interface(RAW, "wwan0"), packets.concat()].concat();
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(&file).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(sizes(&read(&packed[..]).unwrap()), [(None, 50, 75_000)]);
    // gzip files may be joined (RFC 1952, 2.2).
    let half = file.len() / 2;
    let joined: Vec<u8> = [&file[..half], &file[half..]]
        .into_iter()
        .flat_map(|part| {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(part).unwrap();
            packed.finish().unwrap()
        })
        .collect();
    assert_eq!(sizes(&read(&joined[..]).unwrap()), [(None, 50, 75_000)]);
    for cut in [&packed[..packed.len() / 2], &file[..file.len() / 2]] {
        let capture = read(cut).unwrap();
        assert_eq!(capture.notes, ["ends within a packet; everything before it was read"]);
        assert!((20..26).contains(&sizes(&capture)[0].1));
    }
    let mut broken = packed;
    broken[20] ^= 0xff;
    assert!(read(&broken[..]).is_err());
}

#[test]
fn each_interface_is_a_vantage_point_of_its_own() {
    let both = |ms: u32| [packet(0, ms, &segment(ACK)), packet(1, ms, &segment(ACK))].concat();
    let file: Vec<u8> = (0..100).flat_map(both).collect();
    let file = [section(), interface(RAW, "wwan0"), interface(RAW, "tun0"), file].concat();
    let capture = read(&file[..]).unwrap();
    assert_eq!(sizes(&capture), [(Some("tun0".into()), 100, 150_000), (Some("wwan0".into()), 100, 150_000)]);
    let error = capture.trace(&Which::default(), 0.0, None).unwrap_err().to_string();
    assert!(error.ends_with("select one with --interface; choose one of wwan0, tun0"), "{error}");
    let of = |name: &str| capture.trace(&Which { interface: Some(name.into()), ..Which::default() }, 0.0, None);
    assert_eq!(of("tun0").unwrap().value.opportunities(), 100);
    assert_eq!(of("eth0").unwrap_err().to_string(), "no packet of an interface `eth0`; choose one of wwan0, tun0");
    // Both directions of a link of our own captures are one.
    let file = [section(), interface(RAW, "up"), interface(RAW, "up-reverse"), both(1)].concat();
    assert_eq!(sizes(&read(&file[..]).unwrap()), [(None, 2, 3_000)]);
}

#[test]
fn a_capture_of_any_interface_names_them_by_the_kernels_index() {
    let cooked =
        |index: u8| [&[8, 0, 0, 0, 0, 0, 0, index, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], &segment(ACK)].concat();
    let file = [section(), interface(276, "any"), packet(0, 1, &cooked(2)), packet(0, 2, &cooked(7))].concat();
    let capture = read(&file[..]).unwrap();
    assert_eq!(sizes(&capture), [(Some("ifindex 2".into()), 1, 1_500), (Some("ifindex 7".into()), 1, 1_500)]);
}

#[test]
fn frames_are_unpacked_or_said_to_be_what_they_are() {
    let frame = |kind: u16, rest: &[u8]| [&[0; 12][..], &kind.to_be_bytes(), rest].concat();
    let ip = segment(ACK);
    let labels = [&[0, 1, 0, 64][..], &[0, 2, 1, 64], &ip].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &ip].concat();
    let tagged = [&[0, 5, 0x88, 0x47][..], &labels].concat();
    let frames = [
        frame(0x0800, &ip),
        frame(0x8847, &labels),
        frame(0x05dc, &snap),
        frame(0x8100, &tagged),
        frame(0x0806, &[0; 28]),
        frame(0x0806, &[0; 28]),
        frame(0x88cc, &[0; 28]),
        frame(0x0026, &[0x42, 0x42, 3, 0]),
        frame(0x8847, &[0, 1, 1, 64, 0, 0, 0, 0]),
        frame(0x1234, &[0; 28]),
    ];
    let all = |frames: &[Vec<u8>]| {
        // At different times: the same packet at once would be a copy.
        let packets: Vec<Vec<u8>> = (1..).zip(frames).map(|(ms, data)| packet(0, ms, data)).collect();
        [section(), interface(1, "eth0"), packets.concat()].concat()
    };
    let capture = read(&all(&frames)[..]).unwrap();
    assert_eq!(sizes(&capture), [(None, 4, 6_000)]);
    let kinds = "ARP 2, EtherType 0x1234 1, LLC 1, LLDP 1, MPLS without IP 1";
    assert_eq!(capture.notes, [format!("6 frames have no IP packet and are left out ({kinds})")]);
    assert_eq!(
        read(&all(&frames[4..6])[..]).unwrap_err().to_string(),
        "contains no IP packet: 2 frames have no IP packet and are left out (ARP 2)"
    );
}

#[test]
fn an_outage_at_the_end_of_a_capture_is_in_the_trace_but_the_time_after_a_connection_is_not() {
    let file = |last: u8| {
        let other =
            segment(ACK).into_iter().enumerate().map(|(at, byte)| if at == 15 { 9 } else { byte }).collect::<Vec<u8>>();
        let packets: Vec<Vec<u8>> = (0..100).map(|ms| packet(0, ms, &segment(ACK))).collect();
        [section(), interface(RAW, ""), packets.concat(), packet(0, 100, &segment(last)), packet(0, 5_000, &other)]
            .concat()
    };
    let which = Which { from: Some([10, 0, 0, 1].into()), ..Which::default() };
    let trace = |last: u8, length| read(&file(last)[..]).unwrap().trace(&which, 0.0, length).unwrap();
    let outage = trace(ACK, None);
    assert_eq!((outage.value.opportunities(), outage.value.period().as_millis()), (101, 5_000));
    assert_eq!(
        outage.notes,
        [
            "no selected packet was captured in the last 4.9 s, which are an outage in the trace; if it was none, give --length 0.100"
        ]
    );
    assert_eq!(trace(ACK, Some(0.1)).value.period().as_millis(), 100);
    for fin_or_reset in [ACK | 1, 4] {
        let closed = trace(fin_or_reset, None);
        assert_eq!((closed.value.period().as_millis(), closed.notes.len()), (100, 0));
    }
}

#[test]
fn packets_of_times_that_go_back_are_counted() {
    let of = |times: &[u32]| {
        let packets = times.iter().map(|ms| packet(0, *ms, &segment(ACK)));
        let file = [section(), interface(RAW, "eth0")].into_iter().chain(packets).collect::<Vec<_>>().concat();
        read(&file[..]).unwrap().notes
    };
    assert_eq!(of(&[0, 10, 20, 20, 30]), Vec::<String>::new());
    let what = "2 packets are earlier than one before them in the file, by up to 3.000 s: they count in the order of their times";
    assert_eq!(of(&[0, 4_000, 1_000, 3_000, 5_000]), [what]);
}
