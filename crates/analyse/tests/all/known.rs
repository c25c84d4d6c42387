//! Captures of known content: what must be said of them.

use crate::common::{ACK, MSS, Packet, Script, analysed, of, pcap};
use analyse::{Analysis, Rules, Single};
use import::packets::{Reader, ip_packet};
use observe::{Inspected, Marks};
use record::tables::{FlowRow, TcpFlowRow};
use units::{Span, Time};
use wire::Headers;

fn rows(analysis: &Analysis) -> (FlowRow<'_>, TcpFlowRow<'_>) {
    (analysis.results.tables.flows.row(0), analysis.results.tables.tcp_flows.row(0))
}

/// What each packet of a script tells.
fn told(script: &Script) -> Vec<Inspected> {
    let mut single = Single::new(Rules::Ranway, false);
    let each = |packet: &Packet| {
        let header = Headers::parse(&packet.bytes()).unwrap();
        single.packet(&header, Time::ZERO + Span::from_micros(packet.at_us)).1
    };
    script.packets.iter().map(each).collect()
}

/// Six segments, the second of which is lost and sent again.
fn fast(stamped: bool, base: u32) -> Script {
    let mut script = Script::new(base, 40_000, stamped);
    (0..6).for_each(|n| {
        script.data(50_000 + u64::from(n), n);
    });
    script.ack(90_000, 1, &[]);
    (0..4).for_each(|n| {
        script.ack(90_100 + n, 1, &[(2, 3 + n as u32)]);
    });
    script.data(95_000, 1);
    script.ack(135_000, 6, &[]);
    script
}

#[test]
fn a_lost_segment_is_a_fast_retransmission_and_nothing_else() {
    for (stamped, base) in [(false, 1_000), (true, 1_000), (true, u32::MAX - 2_500)] {
        let script = fast(stamped, base);
        let analysis = of(&script);
        let (flow, tcp) = rows(&analysis);
        assert_eq!(
            (flow.bytes, flow.segments_sent.unwrap(), flow.retransmitted.unwrap()),
            (6_000, 7, 1),
            "{stamped} {base}"
        );
        assert_eq!(
            (tcp.fast, tcp.timeouts, tcp.spurious, tcp.out_of_order),
            (Some(1), Some(0), Some(0), 0),
            "{stamped} {base}"
        );
        assert_eq!(
            (tcp.dup_acks, tcp.dsacks, tcp.gaps, tcp.acked_unseen),
            (Some(4), Some(0), 0, Some(0)),
            "{stamped} {base}"
        );
        assert_eq!(flow.max_in_flight_bytes.unwrap(), 6_000);
        // Of the SYN 40 ms, of the first segment 40 ms, and each of those that were selectively acknowledged.
        assert_eq!(flow.rtt_min_ms, Some(40.0));
        assert_eq!(flow.rtt_max_ms, Some(40.098));
        assert_eq!((tcp.mss, tcp.window_scale, tcp.handshake_server_ms), (Some(1_460), Some(7), Some(40.0)));
        assert_eq!(tcp.window_max_bytes, Some(500 << 7));
    }
}

#[test]
fn the_pipe_is_that_of_rfc_6675() {
    let script = fast(false, 1_000);
    let told = told(&script);
    let pipes: Vec<u64> =
        script.packets.iter().zip(&told).filter(|(packet, _)| !packet.back).map(|(_, one)| one.pipe.unwrap()).collect();
    let mss = u64::from(MSS);
    // SYN, acknowledgement, six segments; then four segments were selectively acknowledged, the hole is lost, and one is sent
    // again.
    assert_eq!(pipes, [1, 0, mss, 2 * mss, 3 * mss, 4 * mss, 5 * mss, 6 * mss, mss]);
    let last = told[script.packets.len() - 2];
    assert_eq!(last.in_flight, Some(5 * mss));
}

#[test]
fn silence_before_the_first_unacknowledged_byte_is_a_timeout() {
    let mut script = Script::new(1_000, 40_000, false);
    script.data(50_000, 0);
    script.data(50_100, 1);
    script.data(400_000, 0);
    script.ack(440_000, 2, &[]);
    let analysis = of(&script);
    let (flow, tcp) = rows(&analysis);
    assert_eq!((flow.retransmitted.unwrap(), tcp.timeouts, tcp.fast, tcp.spurious), (1, Some(1), Some(0), Some(0)));
    // By Karn's rule, the acknowledgement of a retransmission tells no round-trip time: that of the SYN is the only one.
    assert_eq!(flow.rtt_max_ms, Some(40.0));
    // Timestamps do.
    let mut script = Script::new(1_000, 40_000, true);
    script.data(50_000, 0);
    script.data(400_000, 0);
    script.ack(441_000, 1, &[]);
    let analysis = of(&script);
    assert!(rows(&analysis).1.rtt_ts_p95_ms.is_some_and(|rtt| (rtt - 41.0).abs() < 0.5));
}

#[test]
fn a_retransmission_whose_original_is_acknowledged_is_spurious_by_eifel() {
    for (echo, spurious) in [(100_050, 1), (100_400, 0)] {
        let mut script = Script::new(1_000, 40_000, true);
        script.data(50_000, 0);
        script.data(400_000, 0);
        script.ack(410_000, 1, &[]).stamps = Some((900_410, echo));
        let analysis = of(&script);
        let (flow, tcp) = rows(&analysis);
        assert_eq!((flow.retransmitted.unwrap(), tcp.spurious), (1, Some(spurious)), "{echo}");
    }
}

#[test]
fn a_retransmission_that_a_dsack_reports_is_spurious_once() {
    let mut script = Script::new(1_000, 40_000, false);
    (0..3).for_each(|n| {
        script.data(50_000 + u64::from(n), n);
    });
    script.data(60_000, 0);
    script.ack(100_000, 3, &[]);
    script.ack(101_000, 3, &[(0, 1)]);
    script.ack(102_000, 3, &[(0, 1)]);
    let analysis = of(&script);
    let (flow, tcp) = rows(&analysis);
    assert_eq!((flow.retransmitted.unwrap(), tcp.spurious, tcp.dsacks), (1, Some(1), Some(2)));
    // Sent after its acknowledgement was seen, it is so at once.
    let mut script = Script::new(1_000, 40_000, false);
    script.data(50_000, 0);
    script.ack(90_000, 1, &[]);
    script.data(91_000, 0);
    assert_eq!(rows(&of(&script)).1.spurious, Some(1));
    assert!(told(&script).last().unwrap().marks.any(Marks::SPURIOUS));
}

#[test]
fn without_timestamps_what_comes_within_a_round_trip_was_overtaken() {
    for (late_us, reordered) in [(200, 1), (39_000, 1), (41_000, 0)] {
        let mut script = Script::new(1_000, 40_000, false);
        script.data(50_000, 0);
        script.data(50_100, 2);
        script.data(50_100 + late_us, 1);
        script.ack(95_000, 3, &[]);
        let analysis = of(&script);
        let (flow, tcp) = rows(&analysis);
        assert_eq!(
            (tcp.out_of_order, flow.retransmitted.unwrap(), tcp.gaps),
            (reordered, 1 - reordered, 1),
            "{late_us}"
        );
        assert_eq!((flow.bytes, flow.segments_sent.unwrap()), (3_000, 3));
    }
}

#[test]
fn timestamps_tell_reordering_from_retransmission_whatever_the_delay() {
    for (at_us, stamp, reordered) in [(150_000, 100_049, 1), (52_000, 100_052, 0)] {
        let mut script = Script::new(1_000, 40_000, true);
        script.data(50_000, 0);
        script.data(50_100, 2);
        script.data(at_us, 1).stamps = Some((stamp, 900_040));
        script.ack(195_000, 3, &[]);
        let analysis = of(&script);
        let (flow, tcp) = rows(&analysis);
        assert_eq!((tcp.out_of_order, flow.retransmitted.unwrap()), (reordered, 1 - reordered), "{at_us}");
    }
}

#[test]
fn a_super_packet_counts_as_the_segments_that_it_is_cut_into() {
    let mut script = Script::new(1_000, 40_000, true);
    // With timestamps, a segment has 1448 of the 1460 bytes.
    script.data(50_000, 0).len = 5 * 1_448;
    script.data(51_000, 0).len = 1_448;
    let analysis = of(&script);
    let (flow, tcp) = rows(&analysis);
    assert_eq!(
        (flow.segments_sent.unwrap(), flow.retransmitted.unwrap(), tcp.super_packets, tcp.payload_bytes),
        (6, 1, 1, 6 * 1_448)
    );
    let dir = tempfile::tempdir().unwrap();
    let file = script.write(&dir.path().join("capture.pcap"));
    let theirs = analysed(&[file], Rules::Wireshark).unwrap();
    assert_eq!(rows(&theirs).0.segments_sent.unwrap(), 2);
}

#[test]
fn windows_that_close_are_counted_and_their_probes_are_no_retransmissions() {
    let mut script = Script::new(5_000, 10_000, false);
    script.data(20_000, 0);
    script.ack(30_000, 1, &[]).window = 0;
    script.data(300_000, 1).len = 1;
    script.ack(310_000, 1, &[]).window = 0;
    script.ack(400_000, 1, &[]).window = 10;
    let analysis = of(&script);
    let (flow, tcp) = rows(&analysis);
    assert_eq!((tcp.zero_windows, tcp.zero_window_probes, flow.retransmitted.unwrap()), (Some(2), Some(1), 0));
    assert_eq!((tcp.window_min_bytes, tcp.window_max_bytes), (Some(0), Some(10 << 7)));
}

#[test]
fn captures_of_one_direction_alone_are_counted_for_what_they_show() {
    // Data without acknowledgements, of more than the sequence space.
    let mut single = Single::new(Rules::Ranway, false);
    let mut script = Script::new(1_000, 40_000, false);
    script.packets.clear();
    let mut header = Headers::parse(&script.data(0, 0).bytes()).unwrap();
    let wire::Transport::Tcp(mut tcp) = header.transport else { panic!() };
    (header.len, header.payload_len) = (60_040, 60_000);
    let count = 100_000u64;
    for n in 0..count {
        tcp.seq = ((n * 60_000) & 0xffff_ffff) as u32;
        header.transport = wire::Transport::Tcp(tcp);
        single.packet(&header, Time::ZERO + Span::from_micros(n * 100));
    }
    let (flows, _) = single.finish();
    let counters = flows[0].tcp.as_ref().unwrap().counters;
    assert_eq!((counters.bytes, counters.retransmitted, counters.gaps), (count * 60_000, 0, 0));
    assert_eq!(flows[0].counters.delivered, count * 60_000);
    // Acknowledgements without data.
    let mut script = Script::new(1_000, 40_000, false);
    script.packets.clear();
    (0..10).for_each(|n| {
        script.ack(n * 1_000, n as u32, &[]);
    });
    let analysis = of(&script);
    let (flow, _) = rows(&analysis);
    assert_eq!((flow.bytes, flow.segments_sent.unwrap()), (0, 0));
}

/// What stands in front of an IPv4 packet, by link type.
fn link_headers() -> Vec<(u32, Vec<u8>)> {
    let ethernet = [0u8; 12];
    vec![
        (1, [&ethernet[..], &[0x08, 0x00]].concat()),
        (1, [&ethernet[..], &[0x81, 0x00, 0x00, 0x05, 0x08, 0x00]].concat()),
        (1, [&ethernet[..], &[0x88, 0xa8, 0x00, 0x05, 0x81, 0x00, 0x00, 0x06, 0x08, 0x00]].concat()),
        (1, [&ethernet[..], &[0x88, 0x64, 0x11, 0x00, 0x00, 0x01, 0x00, 0x22, 0x00, 0x21]].concat()),
        (113, [&[0u8; 14][..], &[0x08, 0x00]].concat()),
        (276, [&[0x08, 0x00][..], &[0u8; 18]].concat()),
        (0, vec![2, 0, 0, 0]),
        (108, vec![0, 0, 0, 2]),
        (9, vec![0xff, 0x03, 0x00, 0x21]),
        (12, Vec::new()),
        (228, Vec::new()),
    ]
}

#[test]
fn every_link_type_gives_the_same_flows() {
    let script = fast(true, 1_000);
    let plain = of(&script);
    let dir = tempfile::tempdir().unwrap();
    for (link, header) in link_headers() {
        let frames =
            script.packets.iter().map(|packet| (packet.at_us * 1_000, [&header[..], &packet.bytes()].concat()));
        let file = dir.path().join("capture.pcap");
        std::fs::write(&file, pcap(link, frames)).unwrap();
        let analysis = analysed(&[file], Rules::Ranway).unwrap();
        assert_eq!(rows(&analysis), rows(&plain), "link type {link}, header of {} bytes", header.len());
        assert!(analysis.notes.is_empty(), "{:?}", analysis.notes);
    }
}

/// A capture that keeps so many bytes of each packet.
fn cut_to(whole: &[u8], most: usize) -> Vec<u8> {
    let mut cut = whole[..24].to_vec();
    let mut at = 24;
    while at < whole.len() {
        let len = u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
        let kept = len.min(most);
        cut.extend(&whole[at..at + 8]);
        cut.extend((kept as u32).to_le_bytes());
        cut.extend(&whole[at + 12..at + 16 + kept]);
        at += 16 + len;
    }
    cut
}

#[test]
fn headers_alone_and_a_cut_file_give_the_same_flows_with_a_note() {
    let script = fast(true, 1_000);
    let whole = pcap(101, script.packets.iter().map(|packet| (packet.at_us * 1_000, packet.bytes())));
    let plain = of(&script);
    // Headers with timestamps and SACK blocks.
    let mut cut = cut_to(&whole, 96);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture.pcap");
    std::fs::write(&file, &cut).unwrap();
    assert_eq!(rows(&analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap()), rows(&plain));
    cut.extend([1, 2, 3]);
    std::fs::write(&file, &cut).unwrap();
    let analysis = analysed(&[file], Rules::Ranway).unwrap();
    assert_eq!(rows(&analysis), rows(&plain));
    assert!(
        analysis.notes[0].ends_with("ends within a packet; everything before it was analysed"),
        "{:?}",
        analysis.notes
    );
}

#[test]
fn cut_headers_and_times_before_the_first_are_noted() {
    let script = fast(true, 1_000);
    let count = script.packets.len();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture.pcap");
    let notes = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap().notes
    };
    let whole = pcap(101, script.packets.iter().map(|packet| (packet.at_us * 1_000, packet.bytes())));
    assert_eq!(notes(&whole), Vec::<String>::new());
    // The first one has a clock of its own.
    let later = script.packets.iter().enumerate();
    let late =
        pcap(101, later.map(|(n, packet)| (packet.at_us * 1_000 + u64::from(n == 0) * 1_000_000_000, packet.bytes())));
    let said = notes(&late);
    assert!(said[0].contains(&format!("{} packets have times before that of the first", count - 1)), "{said:?}");
    let said = notes(&cut_to(&whole, 30));
    assert!(said[0].contains(&format!("{count} of {count} frames lack a part of TCP's header")), "{said:?}");
}

#[test]
fn options_that_were_cut_off_are_unknown_and_noted() {
    let script = fast(true, 1_000);
    let count = script.packets.len();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture.pcap");
    let whole = pcap(101, script.packets.iter().map(|packet| (packet.at_us * 1_000, packet.bytes())));
    // Without any options; and without the window scale, which is the last one of a SYN.
    for most in [40, 56] {
        std::fs::write(&file, cut_to(&whole, most)).unwrap();
        for rules in [Rules::Ranway, Rules::Wireshark] {
            let analysis = analysed(std::slice::from_ref(&file), rules).unwrap();
            let (flow, tcp) = rows(&analysis);
            assert_eq!((flow.bytes, flow.segments_sent.unwrap(), flow.retransmitted.unwrap()), (6_000, 7, 1), "{most}");
            assert_eq!((tcp.mss, tcp.peer_mss, tcp.super_packets, tcp.options), (None, None, 0, ""), "{most}");
            assert_eq!((tcp.window_scale, tcp.window_max_bytes), (None, None), "{most}");
            assert_eq!(analysis.notes.len(), 1, "{:?}", analysis.notes);
            assert!(
                analysis.notes[0].contains(&format!(" of {count} frames lack TCP options")),
                "{:?}",
                analysis.notes
            );
        }
    }
}

#[test]
fn what_is_no_capture_is_named_with_what_would_be_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.pcap");
    let mut oversized = pcap(101, [(0, vec![0x45; 40])]);
    oversized[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    let unknown = "unknown format: expected a capture (pcap, pcapng), results of iperf3 (--json), ndt7 or MONROE's nettest (JSON), \
        metadata of a MONROE node, output of ss -ti, a table tcp_info.parquet, or a directory of results";
    let link = "unsupported link type 147; expected Ethernet, Linux cooked, raw IP, loopback or PPP";
    let cases: [(&[u8], &str); 7] = [
        (b"", "it is empty"),
        (b"hello", unknown),
        (&[0x1f, 0x8b, 8, 0], "compressed: run gunzip first"),
        (&[0xd4, 0xc3, 0xb2, 0xa1, 2], "damaged: shorter than a pcap header"),
        (&pcap(101, []), "contains no packet"),
        (&pcap(147, [(0, vec![0x45; 40])]), link),
        (&oversized, "damaged at byte 24: a packet of 4294967295 bytes"),
    ];
    for (bytes, message) in cases {
        std::fs::write(&file, bytes).unwrap();
        let error = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap_err().to_string();
        assert_eq!(error, format!("{}: {message}", file.display()));
    }
}

#[test]
fn times_of_every_resolution_and_byte_order_are_read() {
    // A pcapng file with an interface in each resolution: microseconds without an option, 10^-9, 2^-10, and an offset.
    let packet = Script::new(1, 1_000, false).packets[0].bytes();
    for is_big in [false, true] {
        let n32 = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
        let n16 = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
        let block = |kind: u32, body: &[u8]| {
            let len = n32(body.len() as u32 + 12);
            [&n32(kind)[..], &len, body, &len].concat()
        };
        let mut file = block(0x0a0d_0d0a, &[&n32(0x1a2b_3c4d)[..], &n16(1), &n16(0), &[0xff; 8]].concat());
        let option = |code: u16, value: &[u8]| {
            let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
            [&n16(code)[..], &n16(value.len() as u16), value, &padding].concat()
        };
        let offset = if is_big { 100i64.to_be_bytes() } else { 100i64.to_le_bytes() };
        let options = [vec![], option(9, &[9]), option(9, &[0x8a]), option(14, &offset)];
        for options in &options {
            file.extend(block(1, &[&n16(101)[..], &[0, 0], &n32(0), options, &[0; 4]].concat()));
        }
        for (interface, units) in [(0u32, 2_000_000u64), (1, 2_000_000_000), (2, 2 << 10), (3, 2_000_000)] {
            let (high, low) = ((units >> 32) as u32, units as u32);
            let len = packet.len() as u32;
            let padding = vec![0; packet.len().next_multiple_of(4) - packet.len()];
            let body = [&n32(interface)[..], &n32(high), &n32(low), &n32(len), &n32(len), &packet, &padding].concat();
            file.extend(block(6, &body));
        }
        let mut reader = Reader::new(&file[..]).unwrap();
        let mut times = Vec::new();
        while let Some(read) = reader.next_packet().unwrap() {
            assert_eq!(ip_packet(read.link, read.data).unwrap(), packet);
            times.push(read.at);
        }
        assert_eq!(times, [2_000_000_000, 2_000_000_000, 2_000_000_000, 102_000_000_000]);
    }
}

#[test]
fn packets_without_a_time_are_left_out_and_counted() {
    let script = fast(true, 1_000);
    let block = |kind: u32, body: &[u8]| {
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let len = u32::to_le_bytes((body.len() + padding.len()) as u32 + 12);
        [&kind.to_le_bytes()[..], &len, body, &padding, &len].concat()
    };
    let words = |words: &[u32]| words.iter().copied().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    // The interface has raw IP and nanoseconds, which are option 9.
    let section = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let head = [section, block(1, &words(&[101, 0, 9 | 1 << 16, 9, 0]))].concat();
    let simple = |packet: &Packet| {
        let bytes = packet.bytes();
        block(3, &[words(&[bytes.len() as u32]), bytes].concat())
    };
    let enhanced = |packet: &Packet| {
        let (bytes, at) = (packet.bytes(), 1_000_000_000_000_000_000 + packet.at_us * 1_000);
        let len = bytes.len() as u32;
        block(6, &[words(&[0, (at >> 32) as u32, at as u32, len, len]), bytes].concat())
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capture.pcapng");
    let without: Vec<u8> = script.packets.iter().flat_map(&simple).collect();
    std::fs::write(&file, [&head[..], &without].concat()).unwrap();
    let error = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap_err().to_string();
    assert!(error.contains(": its packets have no times (simple packet blocks)"), "{error}");
    let imported = import::capture::read(&[&head[..], &without].concat()[..]).unwrap_err().to_string();
    assert_eq!(imported, "its packets have no times (simple packet blocks)");
    // Among others, they change nothing else.
    let with: Vec<u8> = script.packets.iter().flat_map(enhanced).collect();
    let extra = [simple(&script.packets[0]), simple(&script.packets[5])].concat();
    std::fs::write(&file, [head, extra, with].concat()).unwrap();
    let analysis = analysed(std::slice::from_ref(&file), Rules::Ranway).unwrap();
    assert_eq!(rows(&analysis), rows(&of(&script)));
    let note = "2 packets have no time (simple packet blocks) and are left out";
    assert_eq!(analysis.notes, [format!("{}: {note}", file.display())]);
}

#[test]
fn time_sequence_rows_draw_data_acknowledgements_and_sack_blocks() {
    let analysis = of(&fast(true, u32::MAX - 2_500));
    let rows: Vec<_> = analysis.results.tables.segments.iter().map(|row| (row.kind, row.start, row.end)).collect();
    assert!(rows.contains(&("data", 1, 1_001)) && rows.contains(&("data", 5_001, 6_001)), "{rows:?}");
    assert!(rows.contains(&("retransmission", 1_001, 2_001)), "{rows:?}");
    assert!(rows.contains(&("sack", 2_001, 6_001)), "{rows:?}");
    assert!(rows.contains(&("ack", 6_001, 6_001 + (500 << 7))), "{rows:?}");
    assert!(!rows.iter().any(|row| row.0 == "out-of-order"));
}

#[test]
fn a_flag_selects_flows_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = fast(true, 1).write(&dir.path().join("capture.pcap"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let with = |flow: &str| {
        let flows = [flow.to_owned()];
        let options = analyse::Options {
            rules: Rules::Ranway,
            flows: &flows,
            ends: None,
            interval: None,
            progress: &|_| {},
            stop: &stop,
        };
        analyse::analyse(std::slice::from_ref(&file), &options)
    };
    assert_eq!(with(":80").unwrap().results.meta.points.len(), 1);
    let error = with(":443").unwrap_err().to_string();
    assert!(error.starts_with("no flow matches --flow in "), "{error}");
    let _ = ACK;
}
