//! Captures, held against tshark.

#![allow(clippy::disallowed_methods)] // These tests are about files.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;

use record::{Capture, Error, Output, PacketView, Transport};
use units::Time;
use wire::{Block, Flags, Options, Sack, Segment, SynOptions, Timestamps};

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 443);
const PHONE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 50_000);
const MSS: u16 = 1448;

fn segment(flags: Flags, seq: u32, ack: u32, len: u16, value: u32, echo: u32) -> Segment {
    let timestamps = Some(Timestamps { value, echo });
    Segment { seq, ack, window: 512, len, flags, timestamps, options: Options::Sack(Sack::NONE) }
}

fn syn(flags: Flags, seq: u32, ack: u32) -> Segment {
    let options = Options::Syn(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: false });
    Segment { options, ..segment(flags, seq, ack, 0, 1, 0) }
}

/// A handshake, five segments of which the second is lost, three SACKs, the retransmission, and a datagram.
fn write_connection(output: &Output) -> Result<(), Error> {
    let mut capture = Capture::new(output.file("captures/run-0.pcapng")?, ["down", "up"])?;
    let mut now = 1_000_000_123;
    let mut packet = |link: u32, segment: &Segment| {
        now += 5_000_001;
        let (source, destination) = if link == 0 { (SERVER, PHONE) } else { (PHONE, SERVER) };
        let ecn = if segment.len > 0 { 2 } else { 0 };
        let transport = Transport::Tcp(segment);
        capture.packet(link, &PacketView { time: Time::from_nanos(now), source, destination, ecn, transport })
    };
    packet(1, &syn(Flags::SYN, 99, 0))?;
    packet(0, &syn(Flags::SYN | Flags::ACK, 999, 100))?;
    packet(1, &segment(Flags::ACK, 100, 1000, 0, 2, 1))?;
    let at = |n: u32| 1000 + n * u32::from(MSS);
    for n in [0, 2, 3, 4] {
        packet(0, &segment(Flags::ACK, at(n), 100, MSS, 3, 2))?;
    }
    packet(1, &segment(Flags::ACK, 100, at(1), 0, 4, 3))?;
    for end in 3..=5 {
        let mut sack = Sack::NONE;
        sack.push(Block { start: at(2), end: at(end) });
        packet(1, &Segment { options: Options::Sack(sack), ..segment(Flags::ACK, 100, at(1), 0, 4, 3) })?;
    }
    packet(0, &segment(Flags::ACK | Flags::PSH, at(1), 100, MSS, 5, 4))?;
    packet(1, &segment(Flags::ACK, 100, at(5), 0, 6, 5))?;
    packet(0, &segment(Flags::FIN | Flags::ACK, at(5), 100, 0, 7, 6))?;
    let datagram = PacketView {
        time: Time::from_nanos(3_000_000_000),
        source: SERVER,
        destination: PHONE,
        ecn: 3,
        transport: Transport::Udp(1200),
    };
    capture.packet(0, &datagram)?;
    capture.finish()
}

/// The packets as tshark reads them, by some fields; `None` without tshark.
fn tshark(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args([
        "-n",
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "udp.check_checksum:TRUE",
    ]);
    command.args(["-T", "fields", "-r"]).arg(file);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let out = command.output().ok();
    testkit::root::has_program(out.is_some(), "tshark");
    let out = out?;
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

#[test]
fn tshark_reads_every_header_and_sees_the_retransmission() {
    let temp = tempfile::tempdir().unwrap();
    let output = Output::create(&temp.path().join("r")).unwrap();
    write_connection(&output).unwrap();
    output.commit().unwrap();
    let file = temp.path().join("r/captures/run-0.pcapng");

    let fields = [
        "_ws.malformed",
        "ip.checksum.status",
        "tcp.checksum.status",
        "frame.interface_name",
        "frame.len",
        "tcp.analysis.retransmission",
        "tcp.options.sack_le",
        "frame.time_epoch",
        "ip.dsfield.ecn",
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
    ];
    let Some(packets) = tshark(&file, &fields) else { return };
    assert_eq!(packets.len(), 15);
    assert!(packets.iter().all(|packet| packet[0].is_empty()), "malformed: {packets:?}");
    assert!(packets.iter().all(|packet| packet[1] == "1"), "bad IPv4 checksum: {packets:?}");
    // Without the payload a checksum cannot be verified (2); a pure acknowledgement's can (1). None is bad (0).
    let statuses: Vec<&str> = packets.iter().map(|packet| packet[2].as_str()).collect();
    assert_eq!(statuses, ["1", "1", "1", "2", "2", "2", "2", "1", "1", "1", "1", "2", "1", "1", ""]);
    assert_eq!((packets[0][3].as_str(), packets[1][3].as_str()), ("up", "down"));
    assert_eq!(packets[3][4], (20 + 32 + 1448).to_string(), "the original length");
    let retransmitted: Vec<usize> = (0..15).filter(|&i| !packets[i][5].is_empty()).collect();
    assert_eq!(retransmitted, [11]);
    assert_eq!(packets[8][6], "2897", "the relative start of the SACK block");
    assert!(packets[0][7].contains("1.005000124"), "to the nanosecond: {}", packets[0][7]);
    assert_eq!((packets[3][8].as_str(), packets[14][8].as_str()), ("2", "3"));
    assert_eq!((packets[0][9].as_str(), packets[0][10].as_str()), ("1460", "7"));
}

#[test]
fn checksums_hold_over_a_payload_of_zeros() {
    let temp = tempfile::tempdir().unwrap();
    let output = Output::create(&temp.path().join("r")).unwrap();
    write_connection(&output).unwrap();
    output.commit().unwrap();
    let bytes = fs::read(temp.path().join("r/captures/run-0.pcapng")).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&bytes[..]).unwrap();
    let mut seen = 0;
    while let Some(block) = reader.next_block() {
        let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let mut whole = packet.data.to_vec();
        whole.resize(packet.original_len as usize, 0);
        let ip = etherparse::Ipv4HeaderSlice::from_slice(&whole).unwrap().to_header();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        if ip.protocol == etherparse::IpNumber::TCP {
            let (header, payload) = etherparse::TcpHeader::from_slice(&whole[20..]).unwrap();
            assert_eq!(header.checksum, header.calc_checksum_ipv4(&ip, payload).unwrap());
        } else {
            let (header, payload) = etherparse::UdpHeader::from_slice(&whole[20..]).unwrap();
            assert_eq!(header.checksum, header.calc_checksum_ipv4(&ip, payload).unwrap());
        }
        seen += 1;
    }
    assert_eq!(seen, 15);
}

#[test]
fn the_header_written_is_as_long_as_the_segment_says() {
    let temp = tempfile::tempdir().unwrap();
    let output = Output::create(&temp.path().join("r")).unwrap();
    let mut capture = Capture::new(output.file("captures/x.pcapng").unwrap(), ["l"]).unwrap();
    let mut expected = Vec::new();
    for timestamps in [None, Some(Timestamps::default())] {
        let mut options = Vec::new();
        for window_scale in [None, Some(14)] {
            for sack_permitted in [false, true] {
                options.push(Options::Syn(SynOptions { mss: 536, window_scale, sack_permitted, reports: false }));
            }
        }
        let mut sack = Sack::NONE;
        for n in 0..if timestamps.is_some() { 4 } else { 5 } {
            options.push(Options::Sack(sack));
            sack.push(Block { start: 10 * n, end: 10 * n + 5 });
        }
        for options in options {
            let segment = Segment { options, timestamps, ..segment(Flags::ACK, 1, 1, 0, 0, 0) };
            let transport = Transport::Tcp(&segment);
            let view = PacketView { time: Time::ZERO, source: SERVER, destination: PHONE, ecn: 0, transport };
            capture.packet(0, &view).unwrap();
            expected.push(20 + segment.header_len() as usize);
        }
    }
    capture.finish().unwrap();
    output.commit().unwrap();
    let bytes = fs::read(temp.path().join("r/captures/x.pcapng")).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&bytes[..]).unwrap();
    let mut lengths = Vec::new();
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
            lengths.push(packet.data.len());
        }
    }
    assert_eq!(lengths, expected);
}

#[test]
fn an_unknown_link_and_an_impossible_length_are_errors() {
    let temp = tempfile::tempdir().unwrap();
    let output = Output::create(&temp.path().join("r")).unwrap();
    let mut capture = Capture::new(output.file("captures/x.pcapng").unwrap(), ["l"]).unwrap();
    let view = |transport| PacketView { time: Time::ZERO, source: SERVER, destination: PHONE, ecn: 0, transport };
    assert!(matches!(capture.packet(1, &view(Transport::Udp(10))), Err(Error::Io { .. })));
    assert!(matches!(capture.packet(0, &view(Transport::Udp(65_535))), Err(Error::Io { .. })));
}
