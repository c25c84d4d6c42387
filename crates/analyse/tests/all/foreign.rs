//! Packets between the ends of a connection that are not of it, and packets of it that a capture has missed.

use crate::common::{ACK, FIN, MSS, Packet, SYN, Script, of};

const RST: u8 = 0x04;
const LEN: u32 = MSS as u32;

/// Packets one after the other, a millisecond apart, with the numbers that either end uses.
struct Talk {
    script: Script,
    at_us: u64,
}

impl Talk {
    fn new() -> Talk {
        Talk { script: Script { packets: Vec::new(), base: 0, stamped: false }, at_us: 0 }
    }

    fn says(&mut self, back: bool, flags: u8, seq: u32, ack: u32, len: u16) -> &mut Packet {
        self.at_us += 1_000;
        let at_us = self.at_us;
        self.script.packets.push(Packet { at_us, back, seq, ack, len, flags, window: 500, ..Packet::default() });
        self.script.packets.last_mut().unwrap()
    }

    fn handshake(&mut self, client: u32, server: u32) {
        self.says(false, SYN, client, 0, 0);
        self.says(true, SYN | ACK, server, client.wrapping_add(1), 0);
        self.says(false, ACK, client.wrapping_add(1), server.wrapping_add(1), 0);
    }

    /// Flights of ten segments, each acknowledged; returns the next numbers of both ends.
    fn flights(&mut self, back: bool, (client, server): (u32, u32), count: u32) -> (u32, u32) {
        let (mut own, other) = if back { (server, client) } else { (client, server) };
        for _ in 0..count {
            for _ in 0..10 {
                self.says(back, ACK, own, other, MSS);
                own = own.wrapping_add(LEN);
            }
            self.says(!back, ACK, other, own, 0);
        }
        if back { (client, own) } else { (own, server) }
    }
}

/// A number that looks random.
fn random(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 32) as u32
}

#[test]
fn what_is_left_of_an_earlier_connection_is_not_counted_whatever_its_numbers() {
    let mut state = 7;
    for draw in 0..48 {
        let [c1, s1, c2, s2] = [(); 4].map(|()| random(&mut state));
        let back = draw % 2 == 0;
        let mut talk = Talk::new();
        talk.handshake(c1, s1);
        let (client, server) = talk.flights(back, (c1.wrapping_add(1), s1.wrapping_add(1)), 3);
        talk.at_us += 5_000_000;
        talk.says(false, SYN, c2, 0, 0);
        // A challenge acknowledgement, old data, or a FIN; the client resets what it no longer knows.
        match draw / 2 % 3 {
            0 => talk.says(true, ACK, server, client, 0),
            1 => {
                for n in 0..5 {
                    talk.says(true, ACK, server.wrapping_add(n * LEN), client, MSS);
                }
                talk.says(true, ACK, server, client, MSS)
            }
            _ => talk.says(true, ACK | FIN, server, client, 0),
        };
        talk.says(false, RST, client, 0, 0);
        talk.at_us += 1_000_000;
        talk.handshake(c2, s2);
        talk.flights(back, (c2.wrapping_add(1), s2.wrapping_add(1)), 20);
        let analysis = of(&talk.script);
        let tables = &analysis.results.tables;
        let flows: Vec<_> = tables.flows.iter().map(|row| (row.bytes, row.max_in_flight_bytes)).collect();
        assert_eq!(flows, [(30_000, Some(10_000)), (200_000, Some(10_000))], "{draw}: {c1} {s1} {c2} {s2}");
        assert!(tables.tcp_flows.iter().all(|row| row.retransmitted == 0), "{draw}");
    }
}

#[test]
fn old_data_that_comes_after_the_handshake_is_not_counted_either() {
    let mut state = 11;
    for draw in 0..48 {
        let [c, s, old] = [(); 3].map(|()| random(&mut state));
        let back = draw % 2 == 0;
        let own = if back { s } else { c };
        // What lies within the window is taken by any receiver, too.
        if own.wrapping_sub(old) < 1_000_000 || old.wrapping_sub(own) < 1_000_000 {
            continue;
        }
        let mut talk = Talk::new();
        talk.handshake(c, s);
        let (client, server) = talk.flights(back, (c.wrapping_add(1), s.wrapping_add(1)), 3);
        for n in 0..3 {
            talk.says(back, ACK, old.wrapping_add(n * LEN), old, MSS);
        }
        talk.flights(back, (client, server), 3);
        let analysis = of(&talk.script);
        let tables = &analysis.results.tables;
        let (flow, tcp) = (tables.flows.row(0), tables.tcp_flows.row(0));
        assert_eq!((flow.bytes, flow.max_in_flight_bytes, tcp.retransmitted), (60_000, Some(10_000), 0), "{draw}");
        assert_eq!((tcp.foreign, tcp.segments), (Some(3), 60), "{draw}: {c} {s} {old}");
    }
}

#[test]
fn of_two_answers_to_a_syn_that_which_is_acknowledged_counts() {
    for first_counts in [false, true] {
        let mut talk = Talk::new();
        let (one, other) = (3_000_000_000, 70_000);
        talk.says(false, SYN, 1_000, 0, 0);
        talk.says(true, SYN | ACK, one, 1_001, 0);
        talk.says(true, SYN | ACK, other, 1_001, 0);
        let (taken, left) = if first_counts { (one, other) } else { (other, one) };
        talk.says(false, ACK, 1_001, taken.wrapping_add(1), 0);
        talk.says(false, RST, left.wrapping_add(1), 0, 0);
        talk.flights(true, (1_001, taken.wrapping_add(1)), 10);
        // Once more, when nothing is open any longer.
        talk.says(true, SYN | ACK, left, 1_001, 0);
        talk.flights(true, (1_001, taken.wrapping_add(1 + 100 * LEN)), 10);
        let analysis = of(&talk.script);
        let row = analysis.results.tables.flows.row(0);
        assert_eq!((row.bytes, row.retransmitted, row.max_in_flight_bytes), (200_000, Some(0), Some(10_000)));
    }
}

#[test]
fn data_outside_the_window_is_left_out_with_and_without_a_handshake() {
    for (has_handshake, ahead, len) in
        [(true, 3_000_000, MSS), (true, 400_000_000, 100), (false, 3_000_000, MSS), (false, 400_000_000, 1)]
    {
        for strays in 1..=3 {
            let mut talk = Talk::new();
            if has_handshake {
                talk.handshake(1_000, 5_000);
            }
            let (client, server) = talk.flights(false, (1_001, 5_001), 20);
            for n in 0..strays {
                // Not one behind the other.
                let far = client.wrapping_add(ahead + n * 200_000);
                talk.says(false, ACK | FIN, far, server, len);
            }
            talk.flights(false, (client, server), 20);
            let analysis = of(&talk.script);
            let tables = &analysis.results.tables;
            let (flow, tcp) = (tables.flows.row(0), tables.tcp_flows.row(0));
            let expected = (400_000, Some(10_000), 0, 0);
            let found = (flow.bytes, flow.max_in_flight_bytes, tcp.retransmitted, tcp.out_of_order);
            assert_eq!(tcp.foreign, Some(strays.into()), "{has_handshake} {ahead} {strays}");
            assert_eq!(analysis.notes.len(), 1, "{:?}", analysis.notes);
            assert_eq!(found, expected, "{has_handshake} {ahead} {strays}");
        }
    }
}

#[test]
fn what_a_capture_has_missed_of_both_directions_does_not_end_a_flow() {
    for missed in [100u32, 10_000] {
        let mut talk = Talk::new();
        talk.handshake(1_000, 5_000);
        let (client, server) = talk.flights(false, (1_001, 5_001), 10);
        // Far more than the window.
        talk.flights(false, (client.wrapping_add(missed * LEN), server), 10);
        let analysis = of(&talk.script);
        let tables = &analysis.results.tables;
        let (flow, tcp) = (tables.flows.row(0), tables.tcp_flows.row(0));
        assert_eq!((flow.bytes, tcp.retransmitted, tcp.segments, tcp.gaps), (200_000, 0, 200, 1), "{missed}");
    }
}

#[test]
fn goodput_of_one_direction_is_what_was_seen_of_it_once() {
    for missed_per_mille in [0, 1, 10, 200] {
        for has_answer in [false, true] {
            let mut talk = Talk::new();
            let (mut state, mut seen) = (missed_per_mille, 0);
            if has_answer {
                // With flow offload, the capture misses what follows the handshake.
                talk.handshake(1_000, 5_000);
            } else {
                talk.says(false, SYN, 1_000, 0, 0);
                talk.says(false, ACK, 1_001, 5_001, 0);
            }
            for n in 0..3_000 {
                if u64::from(random(&mut state)) % 1_000 < missed_per_mille {
                    continue;
                }
                talk.says(false, ACK, 1_001 + n * LEN, 5_001, MSS);
                seen += u64::from(LEN);
            }
            let analysis = of(&talk.script);
            let row = analysis.results.tables.flows.row(0);
            assert_eq!((row.bytes, row.retransmitted), (seen, Some(0)), "{missed_per_mille} {has_answer}");
            assert_eq!((row.max_in_flight_bytes, row.mean_in_flight_bytes), (None, None), "{missed_per_mille}");
        }
    }
}

#[test]
fn acknowledgements_that_pass_elsewhere_from_some_time_on_do_not_stop_a_flow() {
    let mut talk = Talk::new();
    talk.handshake(1_000, 5_000);
    let (client, server) = talk.flights(false, (1_001, 5_001), 10);
    let mut seen = 100 * u64::from(LEN);
    for n in (0..1_000).filter(|n| n % 50 != 20) {
        talk.says(false, ACK, client.wrapping_add(n * LEN), server, MSS);
        seen += u64::from(LEN);
    }
    let analysis = of(&talk.script);
    let row = analysis.results.tables.flows.row(0);
    assert_eq!((row.bytes, row.max_in_flight_bytes), (seen, None));
}

#[test]
fn a_probe_that_the_receiver_takes_is_data() {
    for is_taken in [false, true] {
        let mut talk = Talk::new();
        talk.handshake(1_000, 5_000);
        let (mut client, server) = talk.flights(false, (1_001, 5_001), 2);
        talk.says(true, ACK, server, client, 0).window = 0;
        for _ in 0..4 {
            talk.at_us += 1_000_000;
            talk.says(false, ACK, client, server, 1);
            client = client.wrapping_add(u32::from(is_taken));
            talk.says(true, ACK, server, client, 0).window = 0;
        }
        talk.says(true, ACK, server, client, 0);
        talk.flights(false, (client, server), 2);
        let analysis = of(&talk.script);
        let tables = &analysis.results.tables;
        let (flow, tcp) = (tables.flows.row(0), tables.tcp_flows.row(0));
        let more = if is_taken { 4 } else { 0 };
        assert_eq!((flow.bytes, tcp.segments, tcp.payload_bytes), (40_000 + more, 40 + more, 40_000 + more));
        assert_eq!(
            (tcp.retransmitted, tcp.timeouts, tcp.zero_window_probes, tcp.gaps),
            (0, Some(0), Some(4), 0),
            "{is_taken}"
        );
    }
}

#[test]
fn syns_that_are_sent_again_are_no_retransmitted_data() {
    let mut script = Script::new(1_000, 40_000, false);
    // Twice before the handshake, of which one answer is captured.
    for again in 1..3 {
        let packet = Packet { at_us: again * 1_000, flags: SYN, seq: 1_000, window: 64_000, ..Packet::default() };
        script.packets.insert(again as usize, packet);
    }
    script.data(50_000, 0);
    script.ack(90_000, 1, &[]);
    let results = of(&script).results;
    let flow = results.tables.flows.row(0);
    assert_eq!((flow.segments_sent, flow.retransmitted, flow.retrans_control), (Some(1), Some(2), Some(2)));
    assert_eq!((flow.retransmitted_data(), flow.retransmitted_share()), (Some(0), Some(0.0)));
    assert_eq!(results.summary().points[0].flows[0].retransmission_rate.map(|rate| rate.mean), Some(0.0));
    let said = &analyse::why(&results)[0].verdict;
    assert!(said.contains("nothing retransmitted"), "{said}");
}
