//! Captures of both ends, of known delays, losses and clocks.

use std::path::PathBuf;

use crate::common::{Packet, Script, analysed, pcap};
use analyse::{Analysis, Rules};

/// A number that looks random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The second clock: ahead by `offset_s`, and faster by `ppm`.
struct Second {
    offset_s: u64,
    ppm: i64,
}

impl Second {
    /// Its time in nanoseconds, at a time of the first.
    fn at(&self, nanos: u64) -> u64 {
        let drift = i128::from(nanos) * i128::from(self.ppm) / 1_000_000;
        self.offset_s * 1_000_000_000 + (i128::from(nanos) + drift) as u64
    }
}

/// Ten minutes of segments each 20 ms, each acknowledged: the first capture at the client, the second at the server, 20 to
/// 60 ms away and 20 to 30 ms back. Every 50th segment is lost, and sent again.
fn captures(dir: &std::path::Path, clock: &Second, merged: bool) -> (PathBuf, PathBuf, u64) {
    let mut random = Random(7);
    let mut script = Script::new(u32::MAX - 500_000, 50_000, true);
    // The handshake is known to both.
    let mut near: Vec<(u64, Packet)> =
        script.packets.iter().map(|packet| (packet.at_us * 1_000, packet.clone())).collect();
    let mut far: Vec<(u64, Packet)> = near
        .iter()
        .map(|(at, packet)| (if packet.back { at - 22_000_000 } else { at + 25_000_000 }, packet.clone()))
        .collect();
    let mut lost = 0;
    for n in 0..30_000u32 {
        let sent_us = 1_000_000 + u64::from(n) * 20_000;
        let packet = script.data(sent_us, n).clone();
        near.push((sent_us * 1_000, packet.clone()));
        let mut delay_us = 20_000 + random.below(200) * random.below(200);
        if n % 50 == 49 {
            lost += 1;
            let again = script.data(sent_us + 300, n).clone();
            near.push(((sent_us + 300) * 1_000, again.clone()));
            delay_us += 300;
            far.push(((sent_us + delay_us) * 1_000, again));
        } else {
            far.push(((sent_us + delay_us) * 1_000, packet));
        }
        let acked_us = sent_us + delay_us + 10;
        let ack = script.ack(acked_us, n + 1, &[]).clone();
        far.push((acked_us * 1_000, ack.clone()));
        near.push(((acked_us + 20_000 + random.below(100) * random.below(100)) * 1_000, ack));
    }
    if merged {
        // The server's interface merges what follows immediately: the same segments, in fewer packets.
        let mut at = 0;
        while at + 2 < far.len() {
            let (a, b) = (&far[at].1, &far[at + 2].1);
            let follows = !a.back && !b.back && a.len > 0 && b.seq == a.seq.wrapping_add(u32::from(a.len));
            if follows && a.stamps == b.stamps {
                let more = b.len;
                far[at].1.len += more;
                far.remove(at + 2);
            }
            at += 1;
        }
    }
    near.sort_by_key(|(at, _)| *at);
    far.sort_by_key(|(at, _)| *at);
    let (one, other) = (dir.join("client.pcap"), dir.join("server.pcap"));
    std::fs::write(&one, pcap(101, near.iter().map(|(at, packet)| (*at, packet.bytes())))).unwrap();
    std::fs::write(&other, pcap(101, far.iter().map(|(at, packet)| (clock.at(*at), packet.bytes())))).unwrap();
    (one, other, lost)
}

fn check(analysis: &Analysis, clock: &Second, lost: u64, sign: f64) {
    let tables = &analysis.results.tables;
    let seen = tables.clocks.row(0);
    assert!((seen.drift_ppm - sign * clock.ppm as f64).abs() < 0.5, "{seen:?}");
    let middle = sign * (clock.offset_s as f64 * 1e3 + 300.0 * clock.ppm as f64 * 1e-3);
    assert!((seen.offset_ms - middle).abs() < 1.5, "{seen:?}, {middle}");
    assert!((19.5..21.0).contains(&seen.offset_bound_ms), "{seen:?}");
    let flow = tables.flows.row(0);
    assert_eq!(
        (flow.bytes, flow.retransmitted, flow.lost_packets),
        (30_000_000, Some(lost), Some(lost)),
        "{:?}",
        analysis.notes
    );
    let owd = flow.owd_p50_ms.unwrap();
    // 20 ms and the median of a product of two uniform numbers below 0.2 and 200: about 7.5 ms.
    assert!((26.0..29.0).contains(&owd), "{owd}");
    let rtt = flow.rtt_p50_ms.unwrap();
    assert!((48.0..53.0).contains(&rtt), "{rtt}");
    assert_eq!(tables.tcp_flows.row(0).far_mss, Some(1_460));
    assert_eq!(tables.tcp_flows.row(0).far_options, "mss wscale sack timestamps");
}

#[test]
fn both_ends_give_losses_delays_and_clocks_whichever_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Second { offset_s: 5, ppm: 40 };
    let (one, other, lost) = captures(dir.path(), &clock, false);
    check(&analysed(&[one.clone(), other.clone()], Rules::Ranway).unwrap(), &clock, lost, 1.0);
    check(&analysed(&[other, one], Rules::Ranway).unwrap(), &clock, lost, -1.0);
}

#[test]
fn segments_that_an_interface_merged_are_recognized() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Second { offset_s: 0, ppm: -80 };
    let (one, other, lost) = captures(dir.path(), &clock, true);
    check(&analysed(&[one, other], Rules::Ranway).unwrap(), &clock, lost, 1.0);
}

#[test]
fn captures_with_nothing_in_common_are_points_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let files = [1, 900_000].map(|base| {
        let mut script = Script::new(base, 40_000, true);
        (0..50).for_each(|n| {
            script.data(50_000 + u64::from(n), n);
        });
        script.write(&dir.path().join(format!("{base}.pcap")))
    });
    let analysis = analysed(&files, Rules::Ranway).unwrap();
    assert_eq!(analysis.results.meta.points.len(), 2);
    assert_eq!(analysis.results.tables.flows.iter().map(|flow| flow.point).collect::<Vec<_>>(), [0, 1]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let options = analyse::Options {
        rules: Rules::Ranway,
        flows: &[],
        ends: Some(true),
        interval: None,
        progress: &|_| {},
        stop: &stop,
    };
    let error = analyse::analyse(&files, &options).unwrap_err().to_string();
    assert!(error.contains("no 16 packets in common"), "{error}");
}
