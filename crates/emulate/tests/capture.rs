//! Captures of real packets, held against tshark.

#![allow(clippy::disallowed_methods)] // These tests are about files.

use std::process::Command;
use std::time::{Duration, SystemTime};

use emulate::capture::{Direction, RawCapture};
use etherparse::PacketBuilder;
use record::Output;
use units::Time;

#[test]
fn tshark_reads_whole_packets_with_their_dates_and_directions() {
    let dir = tempfile::tempdir().unwrap();
    let output = Output::create(&dir.path().join("out")).unwrap();
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(5_000, 53).write(&mut v4, &[7; 1_001]).unwrap();
    let (a, b) = ([0xfd; 16], [0xfe; 16]);
    PacketBuilder::ipv6(a, b, 64).tcp(80, 41_234, 9, 512).write(&mut v6, &[7; 20]).unwrap();

    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_760_000_000);
    let file = output.file("captures/run-0.pcapng").unwrap();
    let mut capture = RawCapture::new(file, &["server", "ue"], began).unwrap();
    // Enough for several chunks, the last packet long after the others.
    let packets = 1_000u64;
    for n in 0..packets {
        let time = Time::from_nanos(n * 1_000 + 1 + if n + 1 == packets { 5_000_000_000 } else { 0 });
        capture.packet(0, Direction::Outbound, time, &v4);
        capture.packet(1, Direction::Inbound, time, if n % 2 == 0 { &v4 } else { &v6 });
    }
    assert_eq!(capture.finish().unwrap(), 0);
    output.commit().unwrap();

    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.len",
        "udp.dstport",
        "tcp.dstport",
    ];
    let mut command = Command::new("tshark");
    command.args(["-n", "-o", "udp.check_checksum:TRUE", "-T", "fields", "-r"]);
    command.arg(dir.path().join("out/captures/run-0.pcapng")).args(fields.iter().flat_map(|field| ["-e", field]));
    let out = command.output();
    if !testkit::root::has_program(out.is_ok(), "tshark") {
        return;
    }
    let out = out.expect("it is there");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len() as u64, 2 * packets);
    assert_eq!(lines[0], ["1760000000.000000001", "server", "0x00000002", "1029", "53", ""]);
    assert_eq!(lines[1], ["1760000000.000000001", "ue", "0x00000001", "1029", "53", ""]);
    assert_eq!(lines[3], ["1760000000.000001001", "ue", "0x00000001", "80", "", "41234"]);
    assert_eq!(lines.last().unwrap()[0], "1760000005.000999001");
}

#[test]
fn a_capture_that_cannot_be_written_says_so_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let output = Output::create(&dir.path().join("out")).unwrap();
    let file = output.file("captures/run-0.pcapng").unwrap();
    let mut capture = RawCapture::new(file, &["server"], SystemTime::UNIX_EPOCH).unwrap();
    capture.packet(7, Direction::Inbound, Time::ZERO, &[0x45]);
    let error = capture.finish().unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("run-0.pcapng"), "{error}");
}
