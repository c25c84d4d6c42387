//! `--as wireshark` against tshark, packet by packet.

use std::path::Path;

use crate::common::{ACK, FIN, Packet, SERVER, Script, pcap, tshark};
use analyse::{Rules, Single};
use import::packets::{Reader, ip_packet};
use observe::{Inspected, Marks};
use units::Time;
use wire::Headers;

/// The fields, and the mark of each.
const FIELDS: [(&str, Marks); 14] = [
    ("retransmission", Marks::RETRANSMISSION),
    ("fast_retransmission", Marks::FAST),
    ("spurious_retransmission", Marks::SPURIOUS),
    ("out_of_order", Marks::OUT_OF_ORDER),
    ("duplicate_ack", Marks::DUPLICATE_ACK),
    ("zero_window", Marks::ZERO_WINDOW),
    ("window_full", Marks::WINDOW_FULL),
    ("keep_alive", Marks::KEEP_ALIVE),
    ("keep_alive_ack", Marks::KEEP_ALIVE_ACK),
    ("lost_segment", Marks::LOST_SEGMENT),
    ("ack_lost_segment", Marks::ACKED_UNSEEN),
    ("window_update", Marks::WINDOW_UPDATE),
    ("zero_window_probe", Marks::ZERO_WINDOW_PROBE),
    ("zero_window_probe_ack", Marks::ZERO_WINDOW_PROBE_ACK),
];

/// What our transcription says of each packet.
fn ours(file: &[u8]) -> Vec<Inspected> {
    let mut reader = Reader::new(file).unwrap();
    let mut single = Single::new(Rules::Wireshark, false);
    let (mut told, mut first) = (Vec::new(), None);
    while let Some(packet) = reader.next_packet().unwrap() {
        let at = packet.at - *first.get_or_insert(packet.at);
        let ip = ip_packet(packet.link, packet.data).unwrap();
        let header = Headers::parse_captured(ip, ip.len()).unwrap();
        told.push(single.packet(&header, Time::from_nanos(at)).1);
    }
    told
}

/// Compares every packet; returns the number of packets that have any of the fields.
fn compare(path: &Path, file: &[u8]) -> Option<usize> {
    std::fs::write(path, file).unwrap();
    // For a look at what differs.
    if let Ok(dir) = std::env::var("KEEP_CAPTURES") {
        std::fs::write(Path::new(&dir).join(path.file_name().unwrap()), file).unwrap();
    }
    let names: Vec<String> = FIELDS.iter().map(|(name, _)| format!("tcp.analysis.{name}")).collect();
    let mut fields: Vec<&str> = names.iter().map(String::as_str).collect();
    fields.extend(["tcp.analysis.bytes_in_flight", "tcp.analysis.ack_rtt"]);
    let theirs = tshark(path, &fields)?;
    let ours = ours(file);
    assert_eq!(theirs.len(), ours.len());
    let mut marked = 0;
    for (number, (theirs, ours)) in (1..).zip(theirs.iter().zip(&ours)) {
        let names: Vec<&str> =
            FIELDS.iter().zip(theirs).filter(|(_, text)| !text.is_empty()).map(|(f, _)| f.0).collect();
        let own: Vec<&str> = FIELDS.iter().filter(|(_, mark)| ours.marks.any(*mark)).map(|(name, _)| *name).collect();
        // Retransmissions of all kinds are retransmissions as well.
        let kinds = ["fast_retransmission", "spurious_retransmission"];
        let is_kind = names.iter().any(|name| kinds.contains(name));
        let names: Vec<&str> = names.into_iter().filter(|name| !(is_kind && *name == "retransmission")).collect();
        assert_eq!(names, own, "packet {number} of {}", path.display());
        let in_flight = ours.in_flight.map_or(String::new(), |bytes| bytes.to_string());
        assert_eq!(theirs[FIELDS.len()], in_flight, "bytes in flight, packet {number} of {}", path.display());
        let rtt = ours.rtt.map_or(String::new(), |rtt| format!("{:.9}", rtt.as_nanos() as f64 / 1e9));
        assert_eq!(theirs[FIELDS.len() + 1], rtt, "ack_rtt, packet {number} of {}", path.display());
        marked += usize::from(!names.is_empty());
    }
    Some(marked)
}

fn check(name: &str, script: &Script) {
    let dir = tempfile::tempdir().unwrap();
    let file = pcap(101, script.packets.iter().map(|packet| (packet.at_us * 1_000, packet.bytes())));
    let Some(marked) = compare(&dir.path().join(format!("{name}.pcap")), &file) else { return };
    assert!(marked > 0, "{name} shows nothing");
}

#[test]
fn a_fast_retransmission_and_a_late_one_have_wiresharks_names() {
    let mut script = Script::new(1_000, 40_000, false);
    (0..6).for_each(|n| {
        script.data(50_000 + u64::from(n), n);
    });
    script.ack(90_000, 1, &[]);
    (0..3).for_each(|n| {
        script.ack(90_100 + n, 1, &[(2, 3 + n as u32)]);
    });
    script.data(95_000, 1);
    script.ack(140_000, 6, &[]);
    script.data(150_000, 6);
    script.data(450_000, 6);
    script.ack(490_000, 7, &[]);
    script.data(491_000, 6);
    check("fast", &script);
}

#[test]
fn reordering_within_the_handshakes_round_trip_is_out_of_order() {
    let mut script = Script::new(u32::MAX - 2_500, 40_000, true);
    for (at, n) in [(50, 0), (51, 2), (52, 1), (53, 3), (110, 5), (170, 4)] {
        script.data(at * 1_000, n);
    }
    script.ack(200_000, 6, &[]);
    check("reordered", &script);
}

#[test]
fn windows_probes_and_keep_alives_have_wiresharks_names() {
    let mut script = Script::new(5_000, 10_000, false);
    script.data(20_000, 0);
    script.ack(30_000, 1, &[]).window = 0;
    let probe = script.data(300_000, 1);
    probe.len = 1;
    let seq = probe.seq;
    script.ack(310_000, 1, &[]).window = 0;
    script.ack(400_000, 1, &[]).window = 10;
    (1..2).for_each(|n| {
        script.data(410_000, n);
    });
    // The window of 10 << 7 ends 1280 bytes after the first segment.
    script.data(411_000, 2).len = 280;
    script.ack(420_000, 2, &[]).ack = seq + 1_280;
    let alive =
        Packet { at_us: 10_000_000, seq: seq + 1_279, ack: SERVER + 1, flags: ACK, window: 500, ..Packet::default() };
    script.packets.push(alive.clone());
    script.ack(10_010_000, 2, &[]).ack = seq + 1_280;
    script.packets.push(Packet { at_us: 10_020_000, flags: ACK | FIN, seq: seq + 1_280, ..alive });
    check("windows", &script);
}

#[test]
fn half_open_captures_have_gaps_and_unseen_acknowledgements() {
    let mut script = Script::new(1, 10_000, true);
    script.packets.clear();
    script.data(0, 10);
    script.data(1_000, 14);
    script.ack(30_000, 20, &[]);
    script.data(31_000, 12);
    script.data(32_000, 20);
    script.ack(60_000, 21, &[]);
    check("half-open", &script);
}

/// A number that looks random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn random_conversations_are_judged_alike() {
    let dir = tempfile::tempdir().unwrap();
    let mut marked = 0;
    let only = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in only.map_or(0..60, |seed| seed..seed + 1) {
        let mut random = Random(seed);
        let bases = [100, u32::MAX - 20_000, 1 << 31];
        let base = bases[random.below(3) as usize];
        let mut script = Script::new(base, 1_000 + random.below(50_000), seed.is_multiple_of(2));
        if seed.is_multiple_of(5) {
            script.packets.truncate(1 + seed as usize % 3);
        }
        let (mut at, mut next, mut acked, mut window) = (60_000, 0, 0, 500);
        for _ in 0..300 {
            at += [10, 300, 2_000, 15_000, 30_000, 250_000][random.below(6) as usize];
            match random.below(20) {
                0..7 => {
                    script.data(at, next);
                    next += 1;
                }
                7 => {
                    next += 1 + random.below(2) as u32;
                    script.data(at, next);
                }
                8 | 9 => {
                    script.data(at, acked + random.below(u64::from(next - acked) + 1) as u32);
                }
                10 => {
                    script.data(at, acked.saturating_sub(random.below(3) as u32));
                }
                11..14 => {
                    acked += random.below(u64::from(next.max(acked) - acked) + 1) as u32;
                    script.ack(at, acked, &[]).window = window;
                }
                14 | 15 => {
                    for _ in 0..random.below(4) {
                        at += 100;
                        script.ack(at, acked, &[(acked + 1, next + 1)]).window = window;
                    }
                    script.data(at + 500, acked);
                    at += 500;
                }
                16 => {
                    window = [0, 1, 8, 500, 500, 500][random.below(6) as usize];
                    script.ack(at, acked, &[]).window = window;
                }
                17 => {
                    let probe = script.data(at, acked);
                    (probe.seq, probe.len) = (probe.seq.wrapping_sub(random.below(2) as u32), random.below(2) as u16);
                }
                18 => script.data(at, next).len = 1 + random.below(3) as u16,
                _ if random.below(8) == 0 => {
                    script.data(at, next).flags |= FIN;
                }
                _ => {
                    script.ack(at, next + 2, &[]).window = window;
                }
            }
        }
        let file = pcap(101, script.packets.iter().map(|packet| (packet.at_us * 1_000, packet.bytes())));
        let Some(count) = compare(&dir.path().join(format!("random-{seed}.pcap")), &file) else { return };
        marked += count;
    }
    assert!(only.is_some() || marked > 3_000, "{marked}");
}
