//! Whatever a capture holds: an analysis or one line, and what must hold of every result.

use std::path::PathBuf;

use crate::common::{Packet, Script, analysed, or_one_line, pcap, quick_folder};
use analyse::{Analysis, Error, Rules};
use units::{Span, Time};

fn check(outcome: Result<Analysis, Error>) {
    let Some(analysis) = or_one_line(outcome) else { return };
    let tables = &analysis.results.tables;
    for flow in tables.tcp_flows.iter() {
        // Wireshark calls a SYN or a FIN out of order, too.
        let is_counted = flow.retransmitted + flow.out_of_order <= flow.segments;
        assert!(is_counted || flow.rules == "wireshark", "{flow:?}");
        assert!(flow.fast.is_none_or(|fast| fast <= flow.retransmitted), "{flow:?}");
        assert!(flow.retransmitted_bytes <= flow.payload_bytes, "{flow:?}");
        let (mean, most) = (flow.mean_pipe_bytes.unwrap_or(0.0), flow.max_pipe_bytes.unwrap_or(0));
        assert!(mean <= most as f64 * 1.000_001, "{flow:?}");
    }
    for flow in tables.flows.iter() {
        let numbers =
            [flow.goodput_mbps, flow.throughput_mbps, flow.mean_in_flight_bytes.unwrap_or(0.0), flow.measured_to_s];
        assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{flow:?}");
    }
    for clock in tables.clocks.iter() {
        assert!([clock.offset_ms, clock.drift_ppm, clock.offset_bound_ms].iter().all(|number| number.is_finite()));
    }
}

/// Analyses bytes as each kind of capture, alone and as both ends.
fn any(bytes: &[u8], rules: Rules) {
    let dir = quick_folder();
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let alone = file("one", bytes);
    check(analysed(std::slice::from_ref(&alone), rules));
    check(analysed(&[alone.clone(), alone], rules));
}

#[test]
fn any_bytes_are_a_capture_or_a_message() {
    bolero::check!().with_iterations(1_500).for_each(|bytes: &[u8]| {
        any(bytes, Rules::Ranway);
        for start in [&[0x0a, 0x0d, 0x0d, 0x0a][..], &[0xd4, 0xc3, 0xb2, 0xa1], &[0xa1, 0xb2, 0x3c, 0x4d]] {
            any(&[start, bytes].concat(), Rules::Ranway);
        }
        for link in [0, 1, 9, 101, 113, 276] {
            any(&pcap(link, [(0, bytes.to_vec()), (1, bytes.to_vec())]), Rules::Wireshark);
        }
    });
}

/// A pcapng file with a section, an interface, and packets.
fn pcapng(packets: &[Packet]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, body, &len].concat()
    };
    let mut file = block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    file.extend(block(1, &[101, 0, 0, 0, 0, 0, 0, 0]));
    for packet in packets {
        let bytes = packet.bytes();
        let len = (bytes.len() as u32).to_le_bytes();
        let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
        let at = (packet.at_us as u32).to_le_bytes();
        file.extend(block(6, &[&[0; 8][..], &at, &len, &len, &bytes, &padding].concat()));
    }
    file
}

#[test]
fn any_edit_of_a_good_capture_is_a_capture_or_a_message() {
    let mut script = Script::new(u32::MAX - 3_000, 10_000, true);
    (0..20).for_each(|n| {
        script.data(20_000 + u64::from(n) * 100, n).len = 40;
        script.ack(30_000 + u64::from(n) * 100, n, &[(n + 1, n + 2)]);
    });
    let good = [pcapng(&script.packets), pcap(101, script.packets.iter().map(|one| (one.at_us * 1_000, one.bytes())))];
    let edits = bolero::produce::<(u8, Vec<(u16, u8)>, u16)>();
    bolero::check!().with_generator(edits).with_iterations(3_000).for_each(|(which, edits, cut)| {
        let mut bytes = good[usize::from(which % 2)].clone();
        for &(at, byte) in edits.iter().take(12) {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(if cut.is_multiple_of(4) { usize::from(*cut) % bytes.len() } else { bytes.len() });
        any(&bytes, if which.is_multiple_of(3) { Rules::Wireshark } else { Rules::Ranway });
    });
}

/// A segment with small numbers, so that they meet.
#[derive(Clone, Debug, bolero::TypeGenerator)]
struct Numbers {
    wait: u16,
    back: bool,
    seq: u8,
    far: bool,
    ack: u8,
    len: u8,
    flags: u8,
    window: u8,
    stamps: Option<(u8, u8)>,
    sack: Vec<(u8, u8)>,
}

#[test]
fn any_segments_in_any_order_are_counted_consistently() {
    let segments = bolero::produce::<Vec<Numbers>>().with().len(0usize..120);
    bolero::check!().with_generator(segments).with_iterations(2_000).for_each(|segments| {
        let mut singles = [Rules::Ranway, Rules::Wireshark].map(|rules| analyse::Single::new(rules, true));
        let mut at_us = 0;
        let (mut payload, mut count) = (0, 0);
        for one in segments {
            at_us += u64::from(one.wait) * u64::from(one.wait % 64);
            let number = |n: u8| 0u32.wrapping_sub(12_800).wrapping_add(u32::from(n) * 100);
            let packet = Packet {
                at_us,
                back: one.back,
                seq: number(one.seq).wrapping_add(u32::from(one.far) << 30),
                ack: number(one.ack),
                len: u16::from(one.len) * 10,
                flags: if one.flags < 16 { one.flags } else { 0x10 | one.flags & 1 },
                window: u16::from(one.window),
                stamps: one.stamps.map(|(value, echo)| (value.into(), echo.into())),
                sack: one.sack.iter().take(3).map(|&(a, b)| (number(a), number(b))).collect(),
            };
            let Some(bytes) = std::panic::catch_unwind(|| packet.bytes()).ok() else { continue };
            let header = wire::Headers::parse(&bytes).unwrap();
            (payload, count) = (payload + u64::from(header.payload_len), count + u64::from(header.payload_len > 0));
            singles.iter_mut().for_each(|single| {
                single.packet(&header, Time::ZERO + Span::from_micros(at_us));
            });
        }
        for single in singles {
            for flow in single.finish().0 {
                let tcp = flow.tcp.as_ref().unwrap();
                let of = tcp.counters;
                // Super-packets are cut.
                assert!(of.segments <= count + payload / 500 && of.bytes <= payload, "{of:?}");
                assert!(of.retransmitted <= of.segments && of.retransmitted_bytes <= of.bytes, "{of:?}");
                assert!(of.fast + of.timeouts <= of.retransmitted, "{of:?}");
                assert!(tcp.rows.is_sorted_by_key(|row| row.at));
                assert!(tcp.rows.iter().all(|row| row.start <= row.end), "{:?}", tcp.rows);
                assert!(flow.counters.delivered <= payload);
            }
        }
    });
}
