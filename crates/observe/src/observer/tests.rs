use super::*;
use crate::Rules;
use crate::counters::Counters;
use std::net::{Ipv4Addr, Ipv6Addr};
use units::Rate;
use wire::icmp::Echo;
use wire::{Block, Flags, Options, Sack, Segment, Transport};

const SERVER: usize = 0;
const UE: usize = 1;
const SYN: Flags = Flags::SYN;
const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::FIN;
/// The network's delay in either direction.
const DELAY: u64 = 10;

fn points() -> Vec<VantagePoint> {
    let point = |name: &str, n: u8| VantagePoint {
        name: name.to_owned(),
        v4: Ipv4Addr::new(10, 0, 0, n),
        v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()),
    };
    vec![point("server", 1), point("ue", 2)]
}

/// A UE and a server that talk while an observer measures. Sequence numbers count from the initial ones: the SYN is 0,
/// the first byte 1.
struct Talk {
    observer: Observer,
    isn: [u32; 2],
    ports: [u16; 2],
    /// The only SACK block of the next packets.
    sacked: Option<(u32, u32)>,
}

/// A packet on its way.
struct Way(u32, Headers, u64);

impl Talk {
    fn new(isn: [u32; 2]) -> Talk {
        Talk { observer: Observer::new(points(), |_| false), isn, ports: [80, 41_234], sacked: None }
    }

    fn header(&self, from: usize, payload_len: u32, transport: Transport) -> Headers {
        let address = |host: usize| IpAddr::V4(self.observer.points.points[host].v4);
        let (protocol, above) = match transport {
            Transport::Tcp(_) => (6, 20),
            Transport::Udp => (17, 8),
            _ => (1, 8),
        };
        let ports = if protocol == 1 { [0, 0] } else { self.ports };
        Headers {
            source: address(from),
            destination: address(1 - from),
            protocol,
            source_port: ports[from],
            destination_port: ports[1 - from],
            tos: 0,
            len: 20 + above + payload_len,
            payload_len,
            transport,
        }
    }

    fn enter(&mut self, ms: u64, from: usize, header: Headers) -> Way {
        Way(self.observer.entered(from, 1 - from, &header, at(ms)), header, ms)
    }

    fn segment(&self, from: usize, flags: Flags, seq: u32, ack: u32, payload: u32) -> Headers {
        let there = |offset: u32| self.isn[1 - from].wrapping_add(offset);
        let (seq, ack) = (self.isn[from].wrapping_add(seq), self.isn[1 - from].wrapping_add(ack));
        let mut sack = Sack::NONE;
        if let Some((start, end)) = self.sacked {
            sack.push(Block { start: there(start), end: there(end) });
        }
        let options = Options::Sack(sack);
        let tcp = Segment { seq, ack, window: 500, len: payload as u16, flags, timestamps: None, options };
        self.header(from, payload, Transport::Tcp(tcp))
    }

    /// A segment enters the network at `ms`.
    fn sends(&mut self, ms: u64, from: usize, flags: Flags, seq: u32, ack: u32, payload: u32) -> Way {
        let header = self.segment(from, flags, seq, ack, payload);
        self.enter(ms, from, header)
    }

    fn arrives(&mut self, ms: u64, Way(flow, header, sent): Way) {
        self.observer.arrived(flow, &header, Span::from_millis(ms - sent), false, at(ms));
    }

    fn loses(&mut self, ms: u64, Way(flow, ..): Way) {
        self.observer.lost(flow, at(ms));
    }

    /// A segment enters at `ms` and arrives [`DELAY`] later, before anything else happens.
    fn says(&mut self, ms: u64, from: usize, flags: Flags, seq: u32, ack: u32, payload: u32) {
        let way = self.sends(ms, from, flags, seq, ack, payload);
        self.arrives(ms + DELAY, way);
    }

    fn handshake(&mut self) {
        self.says(0, UE, SYN, 0, 0, 0);
        self.says(10, SERVER, SYN | ACK, 0, 1, 0);
        self.says(20, UE, ACK, 1, 1, 0);
    }

    fn ends(self, ms: u64) -> Vec<Flow> {
        self.observer.finish(at(ms))
    }
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn rtts(flow: &Flow) -> Vec<(u64, u64)> {
    flow.rtts.iter().map(|(rtt, count)| (rtt.as_millis(), count)).collect()
}

/// A download of six segments of 1,000 bytes, the third of which is lost once; then both sides close.
fn download(isn: [u32; 2]) -> Flow {
    let mut talk = Talk::new(isn);
    talk.handshake(); // Round-trip times: UE 20 ms, server 20 ms.
    let segment = |n: u32| 1 + n * 1_000;
    let first = talk.sends(30, SERVER, ACK, segment(0), 1, 1_000);
    let second = talk.sends(31, SERVER, ACK, segment(1), 1, 1_000);
    let third = talk.sends(32, SERVER, ACK, segment(2), 1, 1_000);
    let fourth = talk.sends(33, SERVER, ACK, segment(3), 1, 1_000);
    let fifth = talk.sends(34, SERVER, ACK, segment(4), 1, 1_000);
    talk.loses(35, third);
    talk.arrives(40, first);
    talk.arrives(41, second);
    talk.says(41, UE, ACK, 1, segment(2), 0); // Covers both; of the newer 51 - 31 = 20 ms.
    talk.arrives(53, fourth);
    talk.sacked = Some((segment(3), segment(4)));
    talk.says(53, UE, ACK, 1, segment(2), 0); // A duplicate; SACKs the fourth: 63 - 33 = 30 ms.
    talk.arrives(64, fifth);
    talk.sacked = Some((segment(3), segment(5)));
    talk.says(64, UE, ACK, 1, segment(2), 0); // A duplicate; SACKs the fifth: 74 - 34 = 40 ms.
    talk.sacked = None;
    talk.says(75, SERVER, ACK, segment(2), 1, 1_000); // Again.
    talk.says(85, UE, ACK, 1, segment(5), 0); // Covers what was retransmitted: no sample.
    talk.says(95, SERVER, ACK | FIN, segment(5), 1, 1_000);
    talk.says(105, UE, ACK | FIN, 1, segment(6) + 1, 0); // 115 - 95 = 20 ms.
    talk.says(115, SERVER, ACK, segment(6) + 1, 2, 0);
    assert_eq!(talk.observer.packets(), Packets { entered: 16, arrived: 15, lost: 1 });
    let [flow]: [Flow; 1] = talk.ends(1_000).try_into().unwrap();
    flow
}

#[test]
fn a_download_with_a_loss_is_measured_as_worked_out_by_hand() {
    let flow = download([0, 0]);
    assert_eq!(rtts(&flow), [(20, 3), (30, 1), (40, 1)]);
    assert_eq!(flow.name, "tcp server:80 > ue:41234");
    assert_eq!((flow.from.as_str(), flow.to.as_str(), flow.transport), ("server", "ue", "tcp"));
    let Counters { delivered, segments, retransmitted, dup_acks, .. } = flow.counters;
    assert_eq!((delivered, segments, retransmitted, dup_acks, flow.lost), (6_000, 7, 1, 2, Some(1)));
    assert_eq!((flow.start, flow.last_delivery, flow.completed), (at(0), Some(at(105)), true));
    assert_eq!(flow.measured, (at(0), at(105)));
    assert!((flow.goodput().as_mbps() - 48.0 / 105.0).abs() < 1e-6, "{}", flow.goodput());
    // Six segments of 1,040 bytes, two packets of 40.
    assert!((flow.throughput().as_mbps() - 8.0 * 6.32 / 105.0).abs() < 1e-6, "{}", flow.throughput());
    assert_eq!([0.05, 0.5, 0.95].map(|q| flow.owds.quantile(q).unwrap().as_millis()), [10, 10, 30]);
    assert_eq!(flow.max_in_flight, Some(5_000));
    // 1 from 10 to 30 (the SYN), then 1,000 to 5,000 in steps of 1 ms, 5,000 from 34 to 51, 3,000 to 95, 1,001 to
    // 105, when the connection is over.
    let area = 20.0 + 10_000.0 + 5_000.0 * 17.0 + 3_000.0 * 44.0 + 1_001.0 * 10.0;
    let mean = flow.mean_in_flight.unwrap();
    assert!((mean - area / 105.0).abs() < 1.0, "{mean} {}", area / 105.0);
}

#[test]
fn an_acknowledgement_that_sacks_several_segments_has_the_round_trip_time_of_the_newest() {
    let mut talk = Talk::new([0, 0]);
    talk.handshake();
    let segment = |n: u32| 1 + n * 1_000;
    let sent: Vec<Way> = (0..5).map(|n| talk.sends(30 + u64::from(n), SERVER, ACK, segment(n), 1, 1_000)).collect();
    for (n, way) in sent.into_iter().enumerate() {
        if n == 0 { talk.loses(40, way) } else { talk.arrives(50, way) }
    }
    // Its block covers the second to the fourth: 60 - 33 = 27 ms. The next adds the fifth: 62 - 34 = 28 ms.
    talk.sacked = Some((segment(1), segment(4)));
    talk.says(50, UE, ACK, 1, segment(0), 0);
    talk.sacked = Some((segment(1), segment(5)));
    talk.says(52, UE, ACK, 1, segment(0), 0);
    talk.sacked = None;
    // The retransmission's acknowledgement covers all and tells nothing.
    talk.says(70, SERVER, ACK, segment(0), 1, 1_000);
    talk.says(80, UE, ACK, 1, segment(5), 0);
    let flow = talk.ends(100).remove(0);
    // 20 ms of the SYN-ACK.
    assert_eq!(rtts(&flow), [(20, 1), (27, 1), (28, 1)]);
}

#[test]
fn a_syn_that_is_sent_again_is_a_retransmission_and_no_data() {
    let mut talk = Talk::new([0, 0]);
    for ms in [0, 1_000, 3_000] {
        let syn = talk.sends(ms, UE, SYN, 0, 0, 0);
        talk.loses(ms + 1, syn);
    }
    let flow = talk.ends(5_000).remove(0);
    let counters = flow.counters;
    assert_eq!((counters.segments, counters.retransmitted, counters.retransmitted_control), (0, 0, 2));
}

#[test]
fn sequence_numbers_may_wrap_around_anywhere() {
    let expected = download([0, 0]);
    for server in (0..7_000).step_by(250) {
        let flow = download([0u32.wrapping_sub(server), 0u32.wrapping_sub(server / 250 % 3)]);
        assert_eq!((flow.counters, flow.measured), (expected.counters, expected.measured), "{server}");
        assert_eq!((flow.max_in_flight, flow.completed), (expected.max_in_flight, expected.completed), "{server}");
        assert_eq!(rtts(&flow), rtts(&expected));
    }
}

#[test]
fn what_arrives_beyond_a_hole_counts_when_the_hole_is_filled() {
    let mut talk = Talk::new([7, 9]);
    talk.handshake();
    let ways: Vec<Way> = (0..4).map(|n| talk.sends(30, SERVER, ACK, 1 + n * 100, 1, 100)).collect();
    let mut ways = ways.into_iter();
    let [a, b, c, d] = [(); 4].map(|()| ways.next().unwrap());
    for (ms, way, delivered) in [(40, d, 0), (50, b, 0), (60, a, 200), (70, c, 400)] {
        talk.arrives(ms, way);
        let total: u64 = talk.observer.connections.iter().flat_map(|c| &c.ways).map(|way| way.totals.delivered).sum();
        assert_eq!(total, delivered, "{ms}");
    }
}

#[test]
fn an_acknowledgement_of_the_receiver_tells_what_was_not_kept() {
    let mut talk = Talk::new([7, 9]);
    talk.handshake();
    // Each second segment is lost: more holes than are kept.
    for n in 0..1_000 {
        let way = talk.sends(30, SERVER, ACK, 1 + n * 100, 1, 100);
        if n % 2 == 0 { talk.loses(30, way) } else { talk.arrives(40, way) }
    }
    for n in (0..1_000).step_by(2) {
        talk.says(50, SERVER, ACK, 1 + n * 100, 1, 100);
    }
    talk.says(60, UE, ACK, 1, 100_001, 0);
    let flow = &talk.ends(100)[0];
    assert_eq!((flow.counters.delivered, flow.counters.retransmitted), (100_000, 500));
}

#[test]
fn a_keep_alive_probe_is_no_data() {
    for payload in [0, 1] {
        let mut talk = Talk::new([7, 9]);
        talk.handshake();
        talk.says(30, SERVER, ACK, 1, 1, 100);
        talk.says(40, UE, ACK, 1, 101, 0);
        talk.says(9_000, SERVER, ACK, 100, 1, payload);
        talk.says(9_010, UE, ACK, 1, 101, 0);
        let flow = &talk.ends(10_000)[0];
        let Counters { segments, retransmitted, delivered, dup_acks, .. } = flow.counters;
        assert_eq!((segments, retransmitted, delivered, dup_acks), (1, 0, 100, 0));
    }
}

#[test]
fn a_second_connection_between_the_same_ports_has_a_row_of_its_own() {
    let mut talk = Talk::new([7, 9]);
    for isn in [[100, 200], [3_000_000_000, 50]] {
        talk.isn = isn;
        talk.handshake();
        talk.handshake(); // Its SYN again is no other connection.
        talk.says(30, SERVER, ACK | FIN, 1, 1, 100);
        talk.says(40, UE, ACK | FIN, 1, 102, 0);
    }
    let all = talk.ends(100);
    let rows: Vec<_> =
        all.iter().map(|flow| (flow.name.as_str(), flow.conn, flow.counters.delivered, flow.completed)).collect();
    assert_eq!(rows, [("tcp server:80 > ue:41234", 0, 100, true), ("tcp server:80 > ue:41234", 1, 100, true)]);
}

#[test]
fn what_is_left_of_a_connection_does_not_disturb_the_next_between_the_same_ports() {
    let mut talk = Talk::new([700_000_000, 3_000_000]);
    talk.handshake();
    talk.says(30, SERVER, ACK, 1, 1, 1_000);
    talk.says(40, UE, ACK, 1, 1_001, 0);
    let old = std::mem::replace(&mut talk.isn, [90_000, 1_000]);
    talk.says(5_000, UE, SYN, 0, 0, 0);
    // A challenge acknowledgement, old data, and what the client says to that.
    let new = std::mem::replace(&mut talk.isn, old);
    talk.says(5_010, SERVER, ACK, 1_001, 1, 0);
    talk.says(5_011, SERVER, ACK, 1_001, 1, 1_000);
    talk.says(5_020, UE, Flags::RST, 1, 0, 0);
    talk.isn = new;
    talk.says(6_000, UE, SYN, 0, 0, 0);
    talk.says(6_010, SERVER, SYN | ACK, 0, 1, 0);
    talk.says(6_020, UE, ACK, 1, 1, 0);
    for n in 0..5u32 {
        talk.says(6_030 + u64::from(n), SERVER, ACK, 1 + n * 1_000, 1, 1_000);
    }
    talk.says(6_050, UE, ACK, 1, 5_001, 0);
    let all = talk.ends(7_000);
    let [first, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!((first.counters.delivered, second.counters.delivered), (1_000, 5_000));
    assert_eq!((second.counters.segments, second.counters.retransmitted), (5, 0));
    assert_eq!((second.max_in_flight, second.rtts.count()), (Some(5_000), 2));
}

#[test]
fn a_connection_that_is_refused_is_flow_but_not_completed() {
    let mut talk = Talk::new([7, 9]);
    talk.says(0, UE, SYN, 0, 0, 0);
    talk.says(10, SERVER, Flags::RST | ACK, 0, 1, 0);
    let [flow]: [Flow; 1] = talk.ends(100).try_into().unwrap();
    assert_eq!((flow.name.as_str(), flow.completed), ("tcp ue:41234 > server:80", false));
    assert_eq!(flow.counters.delivered, 0);
}

#[test]
fn the_second_direction_has_a_row_if_it_carried_much() {
    for (up, rows) in [(10_000, 1), (10_001, 2)] {
        let mut talk = Talk::new([7, 9]);
        talk.handshake();
        talk.says(30, UE, ACK, 1, 1, up);
        for n in 0..20 {
            talk.says(40, SERVER, ACK, 1 + n * 50_000, 1 + up, 50_000);
        }
        let all = talk.ends(100);
        assert_eq!(all.len(), rows);
        assert_eq!(all[0].name, "tcp server:80 > ue:41234");
        assert!(
            all.get(1).is_none_or(|flow| flow.name == "tcp ue:41234 > server:80" && flow.counters.delivered == 10_001)
        );
    }
}

#[test]
fn a_key_names_the_sender_of_the_data_first() {
    let key = download([0, 0]).key.unwrap();
    assert_eq!(
        (key.sender.to_string(), key.receiver.to_string(), key.protocol),
        ("10.0.0.1:80".into(), "10.0.0.2:41234".into(), 6)
    );
}

#[test]
fn a_pinger_has_the_round_trip_times_of_its_answered_requests() {
    let mut talk = Talk::new([0, 0]);
    let echo = |reply, seq| Transport::Echo(Echo { reply, id: 77, seq });
    for (seq, rtt) in [(0, 30), (1, 50), (2, 0), (u16::MAX, 70)] {
        let ms = 1_000 * (1 + u64::from(seq % 100));
        let request = talk.header(UE, 56, echo(false, seq));
        let request = talk.enter(ms, UE, request);
        if rtt == 0 {
            talk.loses(ms + 5, request);
            continue;
        }
        talk.arrives(ms + 5, request);
        for _ in 0..2 {
            // A reply that comes twice counts once.
            let reply = talk.header(SERVER, 56, echo(true, seq));
            let reply = talk.enter(ms + 5, SERVER, reply);
            talk.arrives(ms + rtt, reply);
        }
    }
    let [flow]: [Flow; 1] = talk.ends(100_000).try_into().unwrap();
    assert_eq!((flow.name.as_str(), rtts(&flow)), ("icmp ue > server", vec![(30, 1), (50, 1), (70, 1)]));
    let Counters { segments, delivered, .. } = flow.counters;
    assert_eq!((flow.transport, flow.lost, segments, delivered), ("icmp", Some(1), 4, 3 * 56));
    // It fell silent after the last request arrived, at 1 + 65,535 % 100 s and 5 ms.
    assert_eq!((flow.measured, flow.completed), ((at(1_000), at(36_005)), false));
}

#[test]
fn datagrams_count_when_they_arrive() {
    let mut talk = Talk::new([0, 0]);
    for n in 0..10 {
        let datagram = talk.header(SERVER, 1_000, Transport::Udp);
        let way = talk.enter(n * 100, SERVER, datagram);
        if n < 8 { talk.arrives(n * 100 + 20 + n, way) } else { talk.loses(n * 100, way) }
    }
    let [flow]: [Flow; 1] = talk.ends(1_000).try_into().unwrap();
    let Counters { segments, delivered, .. } = flow.counters;
    assert_eq!((flow.name.as_str(), delivered, segments), ("udp server:80 > ue:41234", 8_000, 10));
    let owd = flow.owds.quantile(0.5).map(Span::as_millis);
    assert_eq!((flow.lost, owd, flow.rtts.count(), flow.measured.1), (Some(2), Some(23), 0, at(1_000)));
}

#[test]
fn the_warm_up_is_left_out_of_a_flow_but_not_of_its_samples() {
    let mut talk = Talk::new([7, 9]);
    talk.handshake();
    for n in 0..10u32 {
        let ms = 1_000 + 100 * u64::from(n);
        if n == 4 {
            talk.observer.warmed_up(at(ms));
        }
        talk.says(ms, SERVER, ACK, 1 + n * 1_000, 1, 1_000);
        talk.says(ms + DELAY, UE, ACK, 1, 1 + (n + 1) * 1_000, 0);
        talk.observer.sample(at(ms + 100), Span::from_millis(100));
    }
    let flow = &talk.ends(2_000)[0];
    let Counters { segments, delivered, .. } = flow.counters;
    assert_eq!((delivered, segments, flow.measured.0, flow.rtts.count()), (6_000, 6, at(1_400), 6));
    let first = flow.samples[0];
    assert_eq!((flow.samples.len(), first.at), (10, at(1_100)));
    assert_eq!(first.goodput(), Rate::from_bits_per_sec(80_000));
    assert_eq!(
        (first.rtt, first.srtt, first.in_flight),
        (Some(Span::from_millis(20)), Some(Span::from_millis(20)), Some(0))
    );
}

#[test]
fn a_silent_connection_is_not_sampled() {
    let mut talk = Talk::new([7, 9]);
    talk.handshake();
    talk.says(30, SERVER, ACK, 1, 1, 100);
    for second in 1..100 {
        if second == 50 {
            talk.says(49_500, SERVER, ACK, 101, 1, 100);
        }
        talk.observer.sample(at(second * 1_000), Span::from_secs(1));
    }
    let seconds: Vec<_> = talk.ends(100_000)[0].samples.iter().map(|sample| sample.at.as_secs_f64() as u64).collect();
    assert_eq!(seconds, (1..=11).chain(50..=60).collect::<Vec<_>>());
}

#[test]
fn connections_beyond_the_limit_are_counted_together() {
    let mut talk = Talk::new([7, 9]);
    let connections = MOST_CONNECTIONS as u32 + 900;
    for n in 0..connections {
        talk.ports = [80, 10_000 + n as u16];
        talk.handshake();
        talk.says(30, SERVER, ACK, 1, 1, 100);
    }
    // One that is followed singly still is; a new one between its ports is not.
    talk.ports = [80, 10_000];
    talk.says(40, SERVER, ACK, 101, 1, 50);
    talk.isn = [70, 90];
    talk.handshake();
    talk.says(60, SERVER, ACK, 1, 1, 50);
    talk.observer.sample(at(100), Span::from_millis(100));
    let all = talk.ends(1_000);
    assert_eq!(all.len(), MOST_CONNECTIONS + 1);
    assert_eq!((all[0].name.as_str(), all[0].counters.delivered), ("tcp server > others", 900 * 100 + 50));
    assert_eq!((all[1].name.as_str(), all[1].counters.delivered), ("tcp server:80 > ue:10000", 150));
    assert_eq!((all[0].key, all[1].key.unwrap().receiver.port()), (None, 10_000));
    assert_eq!(all.iter().map(|flow| flow.samples.len()).sum::<usize>(), MOST_SAMPLED);
}

#[test]
fn an_address_that_no_host_has_stands_for_itself() {
    let mut talk = Talk::new([0, 0]);
    let far = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let header = Headers { destination: far, source: far, ..talk.header(UE, 10, Transport::Udp) };
    let _ = talk.enter(0, UE, header);
    let [flow]: [Flow; 1] = talk.ends(100).try_into().unwrap();
    assert_eq!((flow.name.as_str(), flow.from.as_str(), flow.to.as_str()), ("udp ue:41234 > [::1]:80", "ue", "::1"));
}

#[test]
fn samples_of_a_long_run_are_merged_and_lose_no_byte() {
    const MOST: usize = 2 * 2 * MOST_SAMPLED;
    let mut talk = Talk::new([7, 9]);
    talk.observer.most_samples = MOST;
    talk.handshake();
    let (mut now, mut interval, mut bytes) = (1_000, Span::from_millis(100), 0);
    for n in 0..2_000u32 {
        talk.says(now, SERVER, ACK, 1 + n * 1_000, 1, 1_000);
        talk.says(now + DELAY, UE, ACK, 1, 1 + (n + 1) * 1_000, 0);
        bytes += 1_000;
        now += interval.as_nanos() / 1_000_000;
        interval = talk.observer.sample(at(now), interval);
    }
    // Each of both directions has samples.
    let flow = &talk.ends(now + 1_000)[0];
    assert!((MOST / 8..=MOST).contains(&flow.samples.len()), "{} samples", flow.samples.len());
    assert_eq!(flow.samples.iter().map(|sample| sample.delivered).sum::<u64>(), bytes);
    assert!(flow.samples.windows(2).all(|pair| pair[0].at + pair[1].interval == pair[1].at));
    assert_eq!(interval, Span::from_millis(400), "doubled twice");
}

#[test]
fn samples_of_a_long_capture_stay_few_and_lose_no_byte() {
    let inspection = Inspection { rules: Rules::Ranway, connections: 8, rows: false };
    let mut talk = Talk { observer: Observer::inspecting(points(), inspection), ..Talk::new([7, 9]) };
    let mut passes = |ms, from, flags, seq, ack, payload| {
        let header = talk.segment(from, flags, seq, ack, payload);
        talk.observer.inspect(&header, false, at(ms));
    };
    passes(0, UE, SYN, 0, 0, 0);
    passes(10, SERVER, SYN | ACK, 0, 1, 0);
    passes(20, UE, ACK, 1, 1, 0);
    let (mut now, mut interval, mut bytes) = (1_000, Span::from_millis(100), 0);
    for n in 0..MOST_CAPTURED as u32 + 10_000 {
        let header = talk.segment(SERVER, ACK, 1 + n * 100, 1, 100);
        talk.observer.inspect(&header, false, at(now));
        bytes += 100;
        now += interval.as_nanos() / 1_000_000;
        interval = talk.observer.sample(at(now), interval);
    }
    let [flow]: [Flow; 1] = talk.ends(now).try_into().unwrap();
    assert!((MOST_CAPTURED / 4..=MOST_CAPTURED).contains(&flow.samples.len()), "{} samples", flow.samples.len());
    assert_eq!(flow.samples.iter().map(|sample| sample.delivered).sum::<u64>(), bytes);
    assert!(interval > Span::from_millis(100));
}

#[test]
fn one_vantage_point_measures_deliveries_and_round_trips_to_each_end() {
    let mut talk = Talk::new([7, 9]);
    let mut passes = |ms, from, flags, seq, ack, payload| {
        let header = talk.segment(from, flags, seq, ack, payload);
        talk.observer.passed(from, &header, false, at(ms));
    };
    passes(0, UE, SYN, 0, 0, 0);
    passes(30, SERVER, SYN | ACK, 0, 1, 0);
    passes(34, UE, ACK, 1, 1, 0);
    passes(60, SERVER, ACK, 1, 1, 1_000);
    passes(61, SERVER, ACK, 1_001, 1, 1_000);
    passes(66, UE, ACK, 1, 2_001, 0);
    let [flow]: [Flow; 1] = talk.ends(100).try_into().unwrap();
    assert_eq!((flow.name.as_str(), flow.counters.delivered), ("tcp server:80 > ue:41234", 2_000));
    // SYN-ACK to ACK, and the second segment to its acknowledgement.
    assert_eq!((rtts(&flow), flow.owds.count()), (vec![(4, 1), (5, 1)], 0));
    assert_eq!(flow.packets, Packets { entered: 3, arrived: 3, lost: 0 });
}

#[test]
fn looks_at_flows_that_go_on_show_each_sample_once_and_change_nothing() {
    let transfer = |looks: bool| {
        let mut talk = Talk::new([7, 9]);
        let mut seen: Vec<Flow> = Vec::new();
        for connection in 0..3 {
            talk.isn = [connection * 1_000_000_007, 9];
            let begun = 3_000 * u64::from(connection);
            talk.says(begun, UE, SYN, 0, 0, 0);
            talk.says(begun + 10, SERVER, SYN | ACK, 0, 1, 0);
            for n in 0..20u32 {
                let ms = begun + 100 + 100 * u64::from(n);
                talk.says(ms, SERVER, ACK, 1 + n * 1_000, 1, 1_000);
                talk.says(ms + DELAY, UE, ACK, 1, 1 + (n + 1) * 1_000, 0);
                talk.observer.sample(at(ms + 50), Span::from_millis(100));
                if looks && n % 3 == 0 {
                    seen.extend(talk.observer.flows_so_far(at(ms + 50), 1));
                }
            }
            talk.says(begun + 2_200, SERVER, ACK | FIN, 20_001, 1, 0);
            talk.says(begun + 2_210, UE, ACK | FIN, 1, 20_002, 0);
            talk.observer.sample(at(begun + 2_300), Span::from_millis(100));
        }
        (0..5).for_each(|_| seen.extend(talk.observer.flows_so_far(at(9_000), 1)));
        (seen, talk.ends(10_000))
    };
    let (seen, ended) = transfer(true);
    assert_eq!(format!("{ended:?}"), format!("{:?}", transfer(false).1));
    for flow in &ended {
        let looks: Vec<&Flow> = seen.iter().filter(|one| (&one.name, one.conn) == (&flow.name, flow.conn)).collect();
        let shown: Vec<Time> = looks.iter().flat_map(|look| &look.samples).map(|sample| sample.at).collect();
        let own: Vec<Time> = flow.samples.iter().map(|sample| sample.at).collect();
        // What was sampled before the direction was clear is shown as well.
        assert_eq!(shown, own, "{} {}", flow.name, flow.conn);
        let last = looks.last().expect("it was seen");
        assert_eq!((last.counters.delivered, last.rtts.count()), (flow.counters.delivered, flow.rtts.count()));
    }
}

#[test]
fn one_vantage_point_tells_of_marks_in_front_of_it_alone() {
    // Not ECN-capable, ECN-capable, and marked on its way here.
    for (tos, ce, known) in [(0, false, true), (2, false, false), (3, true, true)] {
        let talk = Talk::new([1_000, 5_000]);
        let inspection = crate::Inspection { rules: Rules::Ranway, connections: 1, rows: false };
        let mut observer = Observer::inspecting(Vec::new(), inspection);
        for n in 0..3 {
            let header = Headers { tos, ..talk.segment(UE, ACK, 1 + n * 100, 1, 100) };
            observer.inspect(&header, ce, at(n.into()));
        }
        let flow = observer.finish(at(10)).remove(0);
        assert_eq!((flow.tells_marks, flow.counters.marked), (known, if ce { 3 } else { 0 }), "{tos}");
        // Nothing came back.
        assert!(!flow.tells_acknowledgements);
    }
}
