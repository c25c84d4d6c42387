//! Counts against tcptrace, row by row.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{Script, analysed, pcap};
use analyse::Rules;

/// What tcptrace prints of the direction from the client, by name; `None` without tcptrace.
fn tcptrace(file: &Path) -> Option<BTreeMap<String, String>> {
    let output = Command::new("tcptrace").args(["-n", "-l", "-r", "--csv"]).arg(file).output().ok();
    testkit::root::has_program(output.is_some(), "tcptrace");
    let output = output?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().filter(|line| line.contains(',') && !line.starts_with('#'));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    Some(cells(names).into_iter().zip(cells(values)).collect())
}

/// A number that looks random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A download in which segments are lost before and behind the capture, and overtaken.
fn conversation(seed: u64) -> Script {
    let mut random = Random(seed);
    let mut script = Script::new(if seed.is_multiple_of(2) { 1_000 } else { u32::MAX - 50_000 }, 40_000, false);
    let mut at = 60_000;
    let mut acked = 0;
    for n in 0..200u32 {
        at += 500 + random.below(3_000);
        match random.below(20) {
            // Lost behind the capture, and sent again after duplicate acknowledgements.
            0 => {
                script.data(at, n);
                (0..3).for_each(|k| {
                    script.ack(at + 41_000 + k, n, &[]);
                });
                script.data(at + 42_000, n);
                at += 43_000;
            }
            // Lost before the capture: it is seen once, late.
            1 if n > acked + 1 => {
                script.data(at, n + 1);
                script.data(at + 90_000, n);
                at += 91_000;
            }
            // Overtaken.
            2 => {
                script.data(at, n + 1);
                script.data(at + 300, n);
                at += 301;
            }
            _ => {
                script.data(at, n);
            }
        }
        if random.below(3) == 0 {
            acked = n + 1;
            script.ack(at + 40, acked, &[]);
        }
    }
    script.ack(at + 40_000, 201, &[]);
    script
}

/// Writes a capture with times in microseconds, which tcptrace reads.
fn write_micros(script: &Script, file: &Path) {
    let mut bytes = pcap(101, script.packets.iter().map(|packet| (packet.at_us, packet.bytes())));
    bytes[..4].copy_from_slice(&0xa1b2_c3d4u32.to_le_bytes());
    let mut at = 24;
    for packet in &script.packets {
        let time = 1_000_000_000 * 1_000_000 + packet.at_us;
        bytes[at..at + 4].copy_from_slice(&((time / 1_000_000) as u32).to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&((time % 1_000_000) as u32).to_le_bytes());
        at += 16 + packet.bytes().len();
    }
    std::fs::write(file, &bytes).unwrap();
}

#[test]
fn tcptrace_measures_the_same_round_trip_times() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..10 {
        let mut random = Random(seed);
        let mut script = Script::new(1_000, 40_000, false);
        let mut at = 60_000;
        for n in 0..200 {
            at += 50_000;
            script.data(at, n);
            at += 20_000 + random.below(60_000);
            script.ack(at, n + 1, &[]);
        }
        let file = dir.path().join("capture.pcap");
        write_micros(&script, &file);
        let Some(theirs) = tcptrace(&file) else { return };
        let analysis = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap();
        let flow = analysis.results.tables.flows.row(0);
        let pairs =
            [("RTT_min_a2b", flow.rtt_min_ms), ("RTT_max_a2b", flow.rtt_max_ms), ("RTT_avg_a2b", flow.rtt_mean_ms)];
        for (name, own) in pairs {
            let theirs: f64 = theirs[name].parse().unwrap();
            assert!((theirs - own.unwrap()).abs() < 0.15, "{seed}: {name}: {theirs}, ours {own:?}");
        }
        let count: u64 = analysis.results.tables.rtts.iter().map(|row| row.count).sum();
        // That of the SYN is one of both.
        assert_eq!(theirs["RTT_samples_a2b"], count.to_string(), "{seed}");
    }
}

#[test]
fn tcptrace_counts_the_same_segments_and_calls_late_ones_out_of_order() {
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..40 {
        let script = conversation(seed);
        let file = dir.path().join("capture.pcap");
        write_micros(&script, &file);
        let Some(theirs) = tcptrace(&file) else { return };
        let count = |name: &str| -> u64 {
            let text = theirs.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", theirs.keys()));
            text.parse::<f64>().unwrap_or_else(|_| panic!("{name}: {text}")) as u64
        };
        let analysis = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap();
        let ours = analysis.results.tables.tcp_flows.row(0);
        assert_eq!(count("actual_data_pkts_a2b"), ours.segments, "{seed}");
        assert_eq!(count("actual_data_bytes_a2b"), ours.payload_bytes, "{seed}");
        // What was seen before is a retransmission for both. What was not, but is below the highest, is out of order for
        // tcptrace whatever the delay; for us a retransmission if it came too late to have been overtaken.
        let (again, late) = (count("rexmt_data_pkts_a2b"), count("outoforder_pkts_a2b"));
        let (mut overtaken, mut lost_before) = (0, 0);
        for (place, packet) in script.packets.iter().enumerate().filter(|(_, packet)| !packet.back && packet.len > 0) {
            let earlier = || script.packets[..place].iter().filter(|other| !other.back && other.len > 0);
            let is_first = !earlier().any(|other| other.seq == packet.seq);
            let Some(before) = earlier().next_back().filter(|_| is_first) else { continue };
            if (packet.seq.wrapping_sub(before.seq) as i32) < 0 {
                // Where sequence numbers wrap around, tcptrace takes it for new data.
                overtaken += u64::from(packet.seq > before.seq);
                lost_before += u64::from(packet.at_us - before.at_us > 40_050);
            }
        }
        assert_eq!(again + late + overtaken, ours.retransmitted + ours.out_of_order, "{seed}: {ours:?}");
        assert_eq!(late + overtaken - ours.out_of_order, lost_before, "{seed}");
    }
}
