//! Facts about what a sender sends and when.

use crate::pipe::*;
use cc::{Phase, Sign};
use tcp::{Config, Event, Kernel, Limit, SendBuffer, State};
use units::{Rate, Span, Time};
use wire::{Flags, Options, SynOptions};

const MSS: u64 = 1448;

#[test]
fn the_handshake_offers_what_linux_offers() {
    let mut p = Pipe::new(&plain(), fixed(10), fixed(10));
    p.run_until(at(1000));
    let [syn, ack] = p.sent(Client)[..] else { panic!("{:?}", p.sent(Client)) };
    let [syn_ack] = p.sent(Server)[..] else { panic!() };
    let offered = Options::Syn(SynOptions { mss: 1460, window_scale: Some(10), sack_permitted: true, reports: false });
    assert_eq!((syn.segment.flags, syn.segment.options, syn.segment.window), (Flags::SYN, offered, 64_240));
    assert_eq!((syn_ack.segment.flags, syn_ack.segment.options), (Flags::SYN | Flags::ACK, offered));
    assert_eq!(syn_ack.segment.ack, CLIENT_ISN + 1);
    assert_eq!((syn.segment.header_len(), syn_ack.segment.header_len(), ack.segment.header_len()), (40, 40, 32));
    assert_eq!((ack.segment.flags, ack.segment.seq, ack.segment.ack), (Flags::ACK, CLIENT_ISN + 1, SERVER_ISN + 1));
    // The window is scaled from here on: 64,088, in steps of 1024.
    assert_eq!(ack.segment.window, 63);
    assert_eq!(p.client.snapshot().mss, 1448);
    assert_eq!(p.client.snapshot().srtt, Some(ms(100)));
    assert_eq!(p.events[..2], [(at(100), Client, Event::Connected), (at(150), Server, Event::Connected)]);
}

#[test]
fn options_that_one_side_lacks_are_not_used() {
    let without = Config { timestamps: false, sack: false, ..plain() };
    let mut p = Pipe::with(&plain(), &without, fixed(10), fixed(10), 7);
    p.run_until(at(1000));
    p.log.clear();
    p.write(Client, 5000);
    p.run_until(at(2000));
    assert!(p.log.iter().all(|e| e.segment.timestamps.is_none() && e.blocks().is_empty()));
    assert_eq!(p.client.snapshot().mss, 1460);
    assert_eq!(p.delivered(Server), 5000);
}

#[test]
fn ten_segments_leave_at_once_and_no_more() {
    let mut p = Pipe::new(&plain(), cc::new_reno::NewReno::new(10), cc::new_reno::NewReno::new(10));
    p.client.write_unlimited();
    p.run_until(at(199));
    assert_eq!(p.data(Client).len(), 10);
    assert!(p.data(Client).iter().all(|e| e.time == at(100) && e.segment.len == 1448));
    // Slow start: each acknowledged segment releases two.
    p.run_until(at(201));
    assert_eq!(p.data(Client).len(), 30);
}

#[test]
fn a_write_marks_its_last_segment_with_push() {
    let mut p = connected(10);
    p.write(Client, 3000);
    p.run_until(at(2000));
    p.write(Client, 1);
    p.run_until(at(3000));
    let flags: Vec<_> = p.data(Client).iter().map(|e| (e.segment.len, e.has(Flags::PSH))).collect();
    assert_eq!(flags, [(1448, false), (1448, false), (104, true), (1, true)]);
}

#[test]
fn a_syn_is_sent_again_after_1_2_and_4_seconds_until_it_gives_up() {
    let mut p = Pipe::new(&Config { syn_retries: 3, ..plain() }, fixed(10), fixed(10)).script(|_| Fate::Drop);
    p.run();
    let times: Vec<_> = p.sent(Client).iter().map(|e| e.time).collect();
    assert_eq!(times, [at(0), at(1000), at(3000), at(7000)]);
    assert_eq!(p.events, [(at(15_000), Client, Event::TimedOut)]);
    assert!(p.client.is_over());
    // `tcpi_total_retrans` and `tcpi_total_rto`.
    assert_eq!((p.client.stats().retransmitted_syn, p.client.stats().timeouts), (3, 3));
}

#[test]
fn a_lost_syn_ack_is_sent_again_and_without_timestamps_the_time_out_falls_back_to_3_s() {
    let config = Config { timestamps: false, ..plain() };
    let mut p = Pipe::new(&config, fixed(10), fixed(10)).script(|e| match (e.from, e.number) {
        (Server, 1) => Fate::Drop,
        _ => Fate::Pass,
    });
    p.run_until(at(1500));
    assert!(p.client.state() == State::Established && p.server.state() == State::Established);
    assert_eq!((p.client.snapshot().srtt, p.client.snapshot().rto), (None, Span::from_secs(3)));
}

#[test]
fn a_lost_last_acknowledgement_of_the_handshake_is_made_up_for() {
    let mut p = Pipe::new(&plain(), fixed(10), fixed(10)).script(|e| match (e.from, e.number) {
        (Client, 2) => Fate::Drop,
        _ => Fate::Pass,
    });
    p.run_until(at(5000));
    assert_eq!(p.server.state(), State::Established);
    assert_eq!(p.server.stats().retransmitted_syn, 1);
    assert_eq!(p.client.stats().challenge_acks_sent, 1);
}

#[test]
fn both_may_open_at_once() {
    use tcp::{Context, Endpoint};
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: Time::ZERO, random: &mut random, log: None };
    let config = plain();
    let mut a = Endpoint::connect(&config, fixed(10), 1, Time::ZERO);
    let mut b = Endpoint::connect(&config, fixed(10), 2, Time::ZERO);
    let (x, y) = (a.poll_transmit(&mut cx).unwrap().segment, b.poll_transmit(&mut cx).unwrap().segment);
    a.handle_segment(&y, false, &mut cx);
    b.handle_segment(&x, false, &mut cx);
    let (x, y) = (a.poll_transmit(&mut cx).unwrap().segment, b.poll_transmit(&mut cx).unwrap().segment);
    assert_eq!(x.flags, Flags::SYN | Flags::ACK);
    a.handle_segment(&y, false, &mut cx);
    b.handle_segment(&x, false, &mut cx);
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
}

#[test]
fn three_selective_acknowledgements_retransmit_the_hole_at_once() {
    let mut p = connected(20);
    p.rescript(|e| if e.from == Client && e.data_number == 1 { Fate::Drop } else { Fate::Pass });
    p.write(Client, 8 * MSS);
    p.run_until(at(3000));
    // Reordering was never seen, so three segments beyond the hole are enough (RACK with the duplicate threshold).
    let story = p.data_story(Client);
    assert_eq!(story[8..], [(1100, 0)]);
    assert_eq!(p.client.stats().retransmitted_fast, 1);
    assert_eq!(p.client.controller().signs, [Sign::Loss]);
    assert_eq!((p.client.snapshot().phase, p.delivered(Server)), (Phase::Open, 8 * MSS));
}

#[test]
fn one_or_two_selective_acknowledgements_wait_for_the_reordering_window() {
    let mut p = connected(20);
    p.rescript(|e| if e.from == Client && e.data_number == 1 { Fate::Drop } else { Fate::Pass });
    p.write(Client, 3 * MSS);
    p.run_until(at(3000));
    // RTT 100 ms: a quarter of the smallest, and 2 ms of slack for the timer.
    assert_eq!(p.data_story(Client)[3..], [(1127, 0)]);
    assert_eq!((p.client.stats().timeouts, p.client.stats().loss_probes), (0, 0));
}

#[test]
fn segments_reported_by_sack_make_room_for_new_ones() {
    let mut p = connected(4);
    p.rescript(|e| if e.from == Client && e.data_number == 1 { Fate::Drop } else { Fate::Pass });
    p.client.write_unlimited();
    p.run_until(at(1101));
    // Four were in flight; the second and third are reported: limited transmit of two, and with the third, which is
    // the third report, the hole.
    assert_eq!(
        p.data_story(Client),
        [(1000, 0), (1000, 1), (1000, 2), (1000, 3), (1100, 4), (1100, 5), (1100, 0), (1100, 6)]
    );
}

#[test]
fn recovery_halves_the_window_once_whatever_number_of_holes() {
    let reno = || cc::new_reno::NewReno::new(40);
    let config = Config { receive_buffer: 8 << 20, receive_buffer_max: 8 << 20, ..plain() };
    let lost = [2, 3, 7, 11];
    let mut p = Pipe::new(&config, reno(), reno())
        .script(move |e| if e.from == Client && lost.contains(&e.data_number) { Fate::Drop } else { Fate::Pass });
    p.client.write(40 * MSS);
    p.run_until(at(205));
    assert_eq!(p.client.snapshot().phase, Phase::Recovery);
    // The first segment let slow start make 41 of 40 before the holes showed.
    assert_eq!(p.client.snapshot().ssthresh, 20);
    p.run_until(at(3000));
    assert_eq!((p.client.snapshot().cwnd, p.client.snapshot().phase), (20, Phase::Open));
    assert_eq!((p.client.stats().recoveries, p.client.stats().retransmitted_fast), (1, 4));
}

#[test]
fn after_a_pause_the_window_restarts_and_the_first_segment_says_so() {
    let reno = || cc::new_reno::NewReno::new(10);
    let config = Config { receive_buffer: 8 << 20, receive_buffer_max: 8 << 20, ..plain() };
    let mut p = Pipe::new(&config, reno(), reno());
    p.client.write(200 * MSS);
    p.run_until(at(2000));
    let before = p.client.snapshot().cwnd;
    assert!(before > 60, "{before}");
    p.log.clear();
    p.run_until(at(30_000));
    p.write(Client, 100 * MSS);
    p.run_for(ms(50));
    assert_eq!(p.data(Client).len(), 10);
    assert_eq!(p.client.snapshot().ssthresh, cc::INFINITE_SSTHRESH);
}

#[test]
fn every_hole_is_retransmitted_once_in_order() {
    let mut p = connected(40);
    let lost = [2, 3, 7, 11, 12, 20];
    p.rescript(move |e| if e.from == Client && lost.contains(&e.data_number) { Fate::Drop } else { Fate::Pass });
    p.write(Client, 30 * MSS);
    p.run_until(at(3000));
    let again: Vec<_> = p.data_story(Client)[30..].iter().map(|&(_, n)| u64::from(n) + 1).collect();
    assert_eq!(again, lost);
    assert_eq!(p.delivered(Server), 30 * MSS);
    assert_eq!((p.client.stats().recoveries, p.client.stats().timeouts), (1, 0));
}

#[test]
fn a_lost_retransmission_is_retransmitted_without_a_time_out() {
    let mut p = connected(40);
    p.rescript(
        |e| if e.from == Client && (e.data_number == 1 || e.data_number == 21) { Fate::Drop } else { Fate::Pass },
    );
    p.client.write(20 * MSS);
    p.flush(Client);
    p.run_until(at(1101));
    // The retransmission was the 21st; new data after it lets RACK see that it is missing.
    p.write(Client, 20 * MSS);
    p.run_until(at(4000));
    assert_eq!(p.client.stats().timeouts, 0);
    assert_eq!(p.client.stats().retransmitted_fast, 2);
    assert_eq!(p.delivered(Server), 40 * MSS);
}

#[test]
fn a_lost_tail_is_probed_after_two_round_trips_and_repaired() {
    let mut p = connected(40);
    p.rescript(
        |e| if e.from == Client && (e.data_number == 9 || e.data_number == 10) { Fate::Drop } else { Fate::Pass },
    );
    p.write(Client, 10 * MSS);
    p.run_until(at(5000));
    // The timer starts again with the acknowledgements at 1100: 2 * 100 + 2 ms. The probe is the last segment; its SACK at
    // 1402 marks the other, as the time since is far beyond the reordering window.
    assert_eq!(p.data_story(Client)[10..], [(1302, 9), (1402, 8)]);
    assert_eq!((p.client.stats().loss_probes, p.client.stats().timeouts), (1, 0));
    assert_eq!(p.delivered(Server), 10 * MSS);
}

#[test]
fn a_probe_that_repairs_the_only_loss_still_reduces_the_window() {
    let mut p = connected(40);
    p.rescript(|e| if e.from == Client && e.data_number == 10 { Fate::Drop } else { Fate::Pass });
    p.write(Client, 10 * MSS);
    p.run_until(at(1450));
    p.write(Client, MSS);
    p.run_until(at(5000));
    assert_eq!(p.client.stats().retransmitted_probe, 1);
    assert_eq!(p.client.stats().loss_probe_recoveries, 1);
    assert_eq!((p.client.controller().signs.clone(), p.client.snapshot().phase), (vec![Sign::Loss], Phase::Open));
}

#[test]
fn a_probe_that_was_needless_reduces_nothing() {
    let mut p = connected(40);
    // The last acknowledgement is late, so the probe arrives twice and is reported by a D-SACK.
    p.rescript(|e| if e.from == Server { Fate::Delay(ms(250)) } else { Fate::Pass });
    p.write(Client, MSS);
    p.run_until(at(1350));
    p.rescript(|_| Fate::Pass);
    p.run_until(at(4000));
    p.write(Client, MSS);
    p.run_until(at(5000));
    assert!(p.client.controller().signs.is_empty(), "{:?}", p.client.controller().signs);
}

#[test]
fn the_d_sack_of_a_probe_does_not_undo_the_recovery_of_another_segment() {
    let mut p = connected(40);
    p.rescript(|e| match e.from {
        Client if e.data_number == 1 => Fate::Drop,
        Server => Fate::Delay(ms(250)),
        _ => Fate::Pass,
    });
    p.write(Client, 10 * MSS);
    p.run_until(at(1240));
    // The SACKs are late, so the tenth segment was probed for at 1202. Its D-SACK arrives at 1402, between the
    // retransmission of the first segment at 1350 and its acknowledgement (`tcp_init_undo`).
    p.rescript(|e| if e.from == Server && e.time < at(1300) { Fate::Delay(ms(100)) } else { Fate::Pass });
    p.run_until(at(5000));
    assert_eq!(p.data_story(Client)[10..], [(1202, 9), (1350, 0)]);
    assert_eq!(p.client.stats().dsacks_received, 1);
    let controller = p.client.controller();
    assert_eq!((controller.signs.clone(), controller.undos), (vec![Sign::Loss], 0));
}

#[test]
fn a_lone_segment_is_probed_when_its_acknowledgement_cannot_be_delayed_any_more() {
    let mut p = connected(40);
    p.rescript(|e| if e.from == Client && e.data_number <= 1 { Fate::Drop } else { Fate::Pass });
    p.write(Client, MSS);
    p.run_until(at(4000));
    // SRTT 100 ms, RTO 300 ms: 2 * 100 + 200 = 400 ms is later, so the probe is at 300 ms.
    assert_eq!(p.data_story(Client), [(1000, 0), (1300, 0)]);
    assert_eq!(p.client.stats().loss_probes, 1);
}

#[test]
fn time_outs_double_from_srtt_plus_200_ms_as_linux_computes_it() {
    let mut p = connected(1);
    p.rescript(|e| if e.from == Client { Fate::Drop } else { Fate::Pass });
    p.write(Client, MSS);
    p.run_until(at(1000 + 300 + 300 + 600 + 1200 + 2400));
    // The handshake gave 100 ms: SRTT 100, RTTVAR max(4 * 50, 200): RTO 300 ms. A probe at 300, then time-outs at 300,
    // 600, 1200 after each other.
    let times: Vec<_> = p.data_story(Client).iter().map(|&(t, _)| t - 1000).collect();
    assert_eq!(times, [0, 300, 600, 1200, 2400, 4800]);
    let again = |again| Sign::Timeout { again };
    assert_eq!(p.client.controller().signs, [again(false), again(true), again(true), again(true)]);
}

#[test]
fn a_sample_ends_the_back_off() {
    let mut p = connected(1);
    p.rescript(|e| if e.from == Client && e.time < at(2000) { Fate::Drop } else { Fate::Pass });
    p.write(Client, MSS);
    p.run_until(at(2250));
    assert_eq!(p.client.snapshot().rto, ms(1200));
    p.run_until(at(3000));
    // The echoed timestamp gives a sample although only a retransmission was acknowledged.
    assert_eq!(p.client.snapshot().rto, ms(300));
}

#[test]
fn a_peer_that_is_gone_is_given_up_after_924_seconds() {
    let mut p = connected(10);
    p.rescript(|e| if e.from == Client { Fate::Drop } else { Fate::Pass });
    p.write(Client, MSS);
    p.run();
    assert!(p.has_event(Client, Event::TimedOut));
    let after = p.now.as_secs_f64();
    assert!((924.6..1060.0).contains(&after), "{after}");
}

#[test]
fn a_delay_spike_is_found_out_by_f_rto_without_timestamps() {
    let config = Config { timestamps: false, ..plain() };
    let mut p = connected_with(&config, 10);
    p.client.write_unlimited();
    p.run_for(ms(1000));
    let before = p.client.stats().clone();
    // Acknowledgements stop for 700 ms; everything arrives in the end.
    let resume = p.now + ms(700);
    p.rescript(move |e| match e.from {
        Server if e.time < resume => Fate::Delay(resume - e.time),
        _ => Fate::Pass,
    });
    p.run_for(ms(2000));
    let stats = p.client.stats();
    assert!(stats.timeouts > before.timeouts);
    assert_eq!(stats.undone_frto, 1);
    assert_eq!(p.client.controller().undos, 1);
    // Only what the timers sent again was: no go-back-N.
    assert!(stats.retransmitted() - before.retransmitted() <= 3, "{stats:?}");
}

#[test]
fn an_echoed_timestamp_undoes_a_needless_time_out() {
    let mut p = connected(1);
    p.write(Client, MSS);
    p.run_for(ms(500));
    let resume = p.now + ms(650);
    p.rescript(move |e| match e.from {
        Server if e.time < resume => Fate::Delay(resume - e.time),
        _ => Fate::Pass,
    });
    p.write(Client, MSS);
    p.run_for(ms(3000));
    assert!(p.client.stats().timeouts > 0);
    assert_eq!((p.client.stats().undone_timestamp, p.client.controller().undos), (1, 1));
    assert_eq!(p.client.snapshot().phase, Phase::Open);
}

#[test]
fn a_retransmission_that_leaves_with_new_segments_was_not_sent_before_them() {
    // Acknowledgements arrive in bunches, as from a cell: at one moment the first of them let new segments leave, and later
    // ones report a loss. The retransmission leaves after the new segments, whose arrival says nothing of it.
    let mut p = connected(30);
    p.rate = Some(Rate::from_mbps(5));
    let lost = [100, 101, 117, 140, 141, 200, 230, 260, 261, 262];
    p.rescript(move |e| match e.from {
        Client if e.is_data() && lost.contains(&e.data_number) => Fate::Drop,
        Server => {
            let grid = ms(20).as_nanos();
            Fate::Delay(Span::from_nanos(e.time.as_nanos().next_multiple_of(grid) - e.time.as_nanos()))
        }
        _ => Fate::Pass,
    });
    p.client.write_unlimited();
    p.run_for(ms(3000));
    let stats = p.client.stats();
    assert_eq!((stats.retransmitted(), stats.lost), (10, 10), "{stats:?}");
    assert_eq!(p.server.stats().duplicates_received, 0);
}

#[test]
fn a_time_out_that_was_spurious_is_followed_by_no_other_retransmission() {
    // Ten segments take 6 s at 20 kbit/s: the timer fires before the second is acknowledged. Echoed timestamps tell that
    // what is acknowledged then are originals, so the age of the retransmission says nothing of the others.
    let mut p = connected(10);
    p.rate = Some(Rate::from_bits_per_sec(20_000));
    p.write(Client, 20 * MSS);
    p.run_for(ms(30_000));
    let stats = p.client.stats();
    assert_eq!(p.delivered(Server), 20 * MSS);
    assert_eq!((stats.timeouts, stats.retransmitted()), (1, 1), "{stats:?}");

    // The way back stands still for 700 ms.
    let mut p = connected(40);
    p.rate = Some(Rate::from_mbps(2));
    let outage = (p.now + ms(200), p.now + ms(900));
    p.rescript(move |e| match e.from {
        Server if e.time >= outage.0 && e.time < outage.1 => Fate::Delay(outage.1 - e.time),
        _ => Fate::Pass,
    });
    p.write(Client, 70 * MSS);
    p.run_for(ms(10_000));
    let stats = p.client.stats();
    assert_eq!(p.delivered(Server), 70 * MSS);
    assert!(stats.timeouts >= 1 && stats.retransmitted() <= 2, "{stats:?}");
}

#[test]
fn d_sacks_for_every_retransmission_undo_the_recovery() {
    let config = Config { timestamps: false, ..plain() };
    let mut p = connected_with(&config, 20);
    // The first segment overtakes nothing for 60 ms: it is retransmitted, and then arrives.
    p.rescript(|e| if e.from == Client && e.data_number == 1 { Fate::Delay(ms(120)) } else { Fate::Pass });
    p.write(Client, 10 * 1460);
    p.run_for(ms(3000));
    assert_eq!(p.client.stats().retransmitted_fast, 1);
    assert_eq!(p.client.stats().dsacks_received, 1);
    assert_eq!((p.client.stats().undone_dsack, p.client.controller().undos), (1, 1));
    assert_eq!(p.client.snapshot().phase, Phase::Open);
}

#[test]
fn reordering_that_was_seen_makes_the_sender_patient() {
    let mut p = connected(20);
    // Late by 10 ms, less than a quarter of the round trip. With fifteen segments after it that is a loss at first, and
    // no longer once reordering has shown in a short burst.
    p.rescript(
        |e| if e.from == Client && [1, 17, 19].contains(&e.data_number) { Fate::Delay(ms(10)) } else { Fate::Pass },
    );
    for (burst, recoveries) in [(15, 1), (2, 1), (15, 1)] {
        p.write(Client, burst * MSS);
        p.run_for(ms(1000));
        assert_eq!(p.client.stats().recoveries, recoveries, "{:?}", p.client.stats());
    }
    assert!(p.client.stats().reorderings > 0);
}

#[test]
fn a_closed_window_is_probed_with_back_off_and_reopens() {
    let config = Config { receive_buffer_max: 131_072, auto_read: false, ecn: true, ..plain() };
    let mut p = connected_with(&config, 1000);
    p.client.write_unlimited();
    p.flush(Client);
    p.run_until(at(10_000));
    // Probes are no data: they carry no congestion marks.
    assert!(p.data(Client).iter().all(|e| e.ect) && p.acks(Client).iter().all(|e| !e.ect));
    assert_eq!((p.client.snapshot().send_window, p.client.snapshot().limit), (0, Limit::ReceiveWindow));
    let probes: Vec<_> = p.acks(Client).iter().map(|e| e.time.as_nanos() / 1_000_000).collect();
    let gaps: Vec<_> = probes.windows(2).map(|w| w[1] - w[0]).collect();
    // Each answer, a round trip later, starts the timer again.
    let doubles = |w: &[u64]| (w[1] - 100).abs_diff(2 * (w[0] - 100)) <= 2;
    assert!(gaps.len() >= 3 && gaps.windows(2).all(doubles), "{gaps:?}");
    let held = p.server.readable();
    assert!(held > 50_000, "{held}");
    let now = p.now;
    assert_eq!(p.server.read(u64::MAX, now), held);
    p.flush(Server);
    p.run_for(ms(200));
    assert!(p.delivered(Server) > held);
}

#[test]
fn nothing_is_sent_beyond_the_receive_window() {
    let config = Config { receive_buffer_max: 131_072, auto_read: false, ..plain() };
    let mut p = Pipe::new(&config, fixed(1000), fixed(1000));
    p.client.write_unlimited();
    p.run_until(at(5000));
    // The SYN-ACK's: 45 segments of 1448 bytes.
    let mut edge = CLIENT_ISN + 1 + 65_160;
    for e in &p.log {
        match e.from {
            Server if !e.has(Flags::SYN) => edge = edge.max(e.segment.ack + (u32::from(e.segment.window) << 7)),
            Client if e.is_data() => assert!(e.segment.seq + u32::from(e.segment.len) <= edge),
            _ => {}
        }
    }
    assert!(p.delivered(Server) > 50_000);
}

#[test]
fn paced_segments_leave_two_by_two_at_the_rate() {
    let mut p = connected(100);
    p.write(Client, 10 * MSS);
    p.run_until(at(2000));
    p.log.clear();
    let paced = Fixed { pacing: Some(Rate::from_bits_per_sec(1448 * 8 * 100)), ..fixed(100) };
    let mut p = Pipe::new(&plain(), paced.clone(), paced);
    p.client.write(20 * MSS);
    p.run_until(at(1000));
    // Ten are not held back, and the last two of them take 20 ms at 100 segments a second, as do any two that follow.
    let times: Vec<_> = p.data_story(Client).iter().map(|&(t, _)| t - 100).collect();
    assert_eq!(times[..10], [0; 10]);
    assert_eq!(times[10..], [20, 20, 40, 40, 60, 60, 80, 80, 100, 100]);
    let limited = p.client.limited(p.now);
    assert_eq!(limited[Limit::Pacing as usize], ms(100));
}

#[test]
fn a_pause_of_the_application_marks_rate_samples_until_it_has_passed() {
    let mut p = connected(10);
    p.write(Client, 3 * MSS);
    p.run_for(ms(500));
    assert!(p.client.controller().last.as_ref().unwrap().rate.app_limited);
    assert!(!p.client.controller().last.as_ref().unwrap().cwnd_limited);
    p.client.write_unlimited();
    p.run_for(ms(1000));
    let last = p.client.controller().last.clone().unwrap();
    assert!(last.cwnd_limited && !last.rate.app_limited);
    // Ten segments a round trip of 100 ms.
    assert_eq!((last.rate.delivered, last.rate.interval), (Some(10), ms(100)));
    assert_eq!(p.client.controller().idle.len(), 1);
}

#[test]
fn the_time_of_a_connection_is_divided_among_its_limits() {
    let mut p = Pipe::new(&plain(), fixed(10), fixed(10));
    p.run_until(at(1100));
    p.write(Client, 30 * MSS);
    p.run_until(at(3000));
    let limited = p.client.limited(p.now);
    assert_eq!(limited.iter().copied().sum::<Span>(), p.now - Time::ZERO);
    assert_eq!(limited[Limit::Handshake as usize], ms(100));
    // Three windows of ten: two round trips of waiting for the window.
    assert_eq!(limited[Limit::Cwnd as usize], ms(200));
    assert_eq!(limited[Limit::Application as usize], ms(2700));
}

#[test]
fn a_full_send_buffer_takes_no_more_until_data_is_acknowledged() {
    let mut p = connected_with(&Config { send_buffer: SendBuffer::Fixed(10_000), ..plain() }, 100);
    assert_eq!((p.client.write(25_000), p.client.write(1)), (10_000, 0));
    p.flush(Client);
    p.run_for(ms(50));
    assert_eq!(p.client.snapshot().limit, Limit::SendBuffer);
    p.run_for(ms(500));
    assert_eq!(p.client.write(25_000), 10_000);
}

/// The kernel of the values worked by hand below: `ss` shows a send buffer of 46,080 bytes for a new connection, and 832 bytes
/// of memory for a packet of one byte besides that byte.
fn lean(tso: bool) -> Config {
    Config { max_header: 192, send_buffer: SendBuffer::Growing(4 << 20), tso, ..plain() }
}

#[test]
fn a_growing_send_buffer_begins_with_two_windows_and_counts_memory() {
    // Twenty segments of 2048 + 256 bytes. A packet of a segment takes 1448 + 832, so the 21st exceeds the buffer.
    let mut p = connected_with(&lean(false), 10);
    assert_eq!((p.client.write(100_000), p.client.write(1)), (21 * MSS, 0));
    // Packets of half of the window that the SYN-ACK announced, 65,160: 22 segments take 31,856 + 832, and two exceed it.
    let mut p = connected_with(&lean(true), 10);
    assert_eq!(p.client.write(100_000), 44 * MSS);
    // With headers of 320 bytes a segment counts as 4096 + 256: 87,040 hold two of 31,856 + 896 and a third in part.
    let mut p = connected_with(&Config { max_header: 320, ..lean(true) }, 10);
    assert_eq!(p.client.write(200_000), 66 * MSS);
    // In 6.1 a packet of a segment takes 1448 + 256 + 1024: 87,040 hold 32 and a part.
    let old = Config { kernel: Kernel::V6_1, max_header: 320, ..lean(false) };
    assert_eq!(connected_with(&old, 10).client.write(100_000), 32 * MSS);
}

#[test]
fn the_send_buffer_grows_with_the_window_when_it_ran_empty() {
    let mut p = Pipe::new(&lean(true), cc::new_reno::NewReno::new(10), cc::new_reno::NewReno::new(10));
    p.client.write_unlimited();
    p.run_until(at(950));
    let fixed = Config { send_buffer: SendBuffer::Fixed(44 * MSS), ..lean(true) };
    let mut q = Pipe::new(&fixed, cc::new_reno::NewReno::new(10), cc::new_reno::NewReno::new(10));
    q.client.write_unlimited();
    q.run_until(at(950));
    let sent = |p: &Pipe<cc::new_reno::NewReno>, from, to| {
        p.data(Client).iter().filter(|e| (from..to).contains(&e.time)).count()
    };
    let rounds = [100, 200, 300, 400, 500].map(|ms| sent(&p, at(ms), at(ms + 100)));
    // The window doubles; a buffer that does not grow is emptied in the fourth round trip.
    assert_eq!(rounds, [10, 20, 40, 80, 160]);
    assert_eq!([300, 400, 500].map(|ms| sent(&q, at(ms), at(ms + 100))), [40, 44, 44]);
    // Everything is acknowledged in the end, whatever was refused on the way.
    p.client.pause();
    p.client.close();
    p.flush(Client);
    p.run();
    assert_eq!((p.client.unacked(), p.client.state()), (0, State::FinWait2));
}

#[test]
fn the_last_segment_of_a_packet_has_psh() {
    // Packets of two segments at such a rate, of which the fourth window ends with an odd one.
    let pushed = |tso| {
        let mut p = connected_with(&Config { tso, ..plain() }, 10);
        p.client.write_unlimited();
        p.flush(Client);
        p.data(Client).iter().map(|e| u8::from(e.has(Flags::PSH))).collect::<Vec<_>>()
    };
    assert_eq!(pushed(true), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(pushed(false), [0; 10]);
}

#[test]
fn what_does_not_fit_into_the_send_buffer_waits_outside() {
    // Ten segments fit, and are sent a round trip apart, however large the window.
    for unlimited in [false, true] {
        let mut p = connected_with(&Config { send_buffer: SendBuffer::Fixed(10 * MSS + 100), ..plain() }, 100);
        if unlimited {
            p.client.write_unlimited();
        } else {
            p.client.write_all(45 * MSS);
        }
        p.flush(Client);
        p.run_for(ms(50));
        assert_eq!(p.client.snapshot().limit, Limit::SendBuffer);
        p.run_for(ms(300));
        assert_eq!(p.data_story(Client).len(), 40);
        assert!(p.delivered(Server) >= 30 * MSS);
        p.client.close();
        p.flush(Client);
        p.run_for(ms(2000));
        if !unlimited {
            assert_eq!(p.delivered(Server), 45 * MSS);
        }
    }
}

#[test]
fn without_sack_three_duplicates_retransmit_and_partial_acknowledgements_go_on() {
    let config = Config { sack: false, ..plain() };
    let mut p = connected_with(&config, 20);
    p.rescript(|e| if e.from == Client && [3, 6].contains(&e.data_number) { Fate::Drop } else { Fate::Pass });
    p.write(Client, 20 * MSS);
    p.run_for(ms(3000));
    assert_eq!(p.data_story(Client)[20..], [(1100, 2), (1200, 5)]);
    assert_eq!((p.client.stats().timeouts, p.client.stats().recoveries), (0, 1));
    // Each segment counts as delivered once, by a duplicate or by the acknowledgement that passes it; and the SYN.
    let last = p.client.controller().last.clone().expect("it was told");
    assert_eq!((last.rate.total_delivered, p.client.snapshot().in_flight), (21, 0));
    assert_eq!(p.delivered(Server), 20 * MSS);
}

#[test]
fn without_sack_every_segment_out_of_order_is_acknowledged_at_once_and_the_window_stays() {
    // RFC 5681 4.2; each duplicate must look like one, so the window may not change with it.
    let config = Config { sack: false, ..plain() };
    let mut p = connected_with(&config, 30);
    p.write(Client, 30 * MSS);
    p.run_for(ms(300));
    p.log.clear();
    p.rescript(|e| if e.is_data() && e.data_number == 32 { Fate::Drop } else { Fate::Pass });
    p.write(Client, 30 * MSS);
    p.run_for(ms(120));
    let acks = p.acks(Server);
    let last = acks.last().expect("there are some").segment;
    let duplicates = acks.iter().filter(|e| e.segment.ack == last.ack && e.segment.window == last.window).count();
    // The second of 30 is lost: 28 follow, and one acknowledgement is of the first.
    assert!(duplicates >= 28, "{duplicates} of {}", acks.len());
    p.run_for(ms(2000));
    let stats = p.client.stats();
    assert_eq!((stats.retransmitted(), stats.timeouts, p.delivered(Server)), (1, 0, 60 * MSS), "{stats:?}");
}

#[test]
fn a_retransmission_into_an_empty_network_says_how_long_it_was_silent() {
    // As Linux tells its controllers (CA_EVENT_TX_START): Vegas and YeAH then forget the shortest round-trip time.
    let mut p = connected(10);
    p.write(Client, 10 * MSS);
    p.run_for(ms(1000));
    let before = p.client.controller().idle.len();
    p.rescript(|e| if e.is_data() && e.data_number <= 21 { Fate::Drop } else { Fate::Pass });
    p.write(Client, 10 * MSS);
    p.run_for(ms(5000));
    assert!(p.client.stats().timeouts >= 1, "{:?}", p.client.stats());
    assert!(p.client.controller().idle.len() > before + 1, "{:?}", p.client.controller().idle);
}

#[test]
fn more_than_4_gib_pass_the_wrap_of_sequence_numbers() {
    let config = Config { mss: 60_012, receive_buffer: 64 << 20, receive_buffer_max: 64 << 20, ..plain() };
    let mut p = Pipe::with(&config, &config, fixed(400), fixed(400), u32::MAX - 100_000);
    p.keep_log = false;
    let mut count = 0u64;
    p.rescript(move |e| {
        count += u64::from(e.from == Client);
        if e.from == Client && count.is_multiple_of(997) { Fate::Drop } else { Fate::Pass }
    });
    let bytes = (4 << 30) + 12_345_678;
    p.client.write(bytes);
    p.run_until(at(200));
    p.client.close();
    p.server.close();
    p.run();
    assert_eq!(p.delivered(Server), bytes);
    assert_eq!(p.client.stats().bytes_acked, bytes);
    assert!(p.has_event(Client, Event::Closed) && p.has_event(Server, Event::Closed));
    assert_eq!(p.client.stats().timeouts, 0);
}

/// Sizes of the bursts that leave at one moment, at `mbps` over a round trip of 10 ms, and how often each occurs.
fn bursts(tso: bool, mbps: u64, cwnd: u32) -> std::collections::BTreeMap<usize, usize> {
    let config = Config { tso, ..plain() };
    let mut p = Pipe::with(&config, &config, fixed(cwnd), fixed(cwnd), 7);
    (p.delay, p.rate) = (ms(5), Some(Rate::from_mbps(mbps)));
    p.client.write_unlimited();
    p.run_until(at(1000));
    let mut moments = std::collections::BTreeMap::<Time, usize>::new();
    p.data(Client).iter().filter(|e| e.time > at(500)).for_each(|e| *moments.entry(e.time).or_default() += 1);
    moments.into_values().fold(std::collections::BTreeMap::new(), |mut sizes, size| {
        *sizes.entry(size).or_default() += 1;
        sizes
    })
}

#[test]
fn where_an_interface_cuts_segments_a_fast_sender_keeps_a_millisecond_of_them_together() {
    assert!(bursts(false, 100, 100).keys().eq(&[2]), "{:?}", bursts(false, 100, 100));
    // The last segment of each packet has PSH, so it is acknowledged although it may be the odd one.
    assert!(bursts(true, 100, 100).keys().eq(&[9]), "{:?}", bursts(true, 100, 100));
    // A window that does not fill the path leaves gaps of more than a millisecond between acknowledgements: what comes
    // before such a gap is not kept back.
    assert!(bursts(true, 100, 60).keys().eq(&[2, 4, 6]), "{:?}", bursts(true, 100, 60));
}

#[test]
fn a_packet_that_waits_for_room_waits_for_the_window_that_has_less() {
    // The congestion window of 100 segments, and then a receive window of about as many.
    for (cwnd, buffer, limits) in [(100, 8 << 20, [true, false]), (1000, 300_000, [false, true])] {
        let config = Config { tso: true, receive_buffer: buffer, receive_buffer_max: buffer, ..plain() };
        let mut p = Pipe::with(&config, &config, fixed(cwnd), fixed(cwnd), 7);
        (p.delay, p.rate) = (ms(5), Some(Rate::from_mbps(100)));
        p.client.write_unlimited();
        p.run_until(at(1000));
        let limited = p.client.limited(p.now);
        let is_limit = |limit| limited[limit as usize] > ms(100);
        assert_eq!([Limit::Cwnd, Limit::ReceiveWindow].map(is_limit), limits, "{limited:?}");
        let last = p.client.controller().last.clone().expect("it was told");
        assert_eq!(last.cwnd_limited, limits[0]);
    }
}

#[test]
fn a_slow_sender_keeps_nothing_back() {
    // An acknowledgement comes every 2.4 ms.
    assert_eq!(bursts(true, 10, 60), bursts(false, 10, 60));
}

#[test]
fn without_sack_more_duplicates_than_segments_in_flight_raise_the_duplicate_threshold() {
    // Linux `tcp_check_reno_reordering`.
    let config = Config { sack: false, receive_buffer: 8 << 20, receive_buffer_max: 8 << 20, ..plain() };
    let mut p = connected_with(&config, 20);
    p.rescript(|e| match e.from {
        Client if e.data_number == 1 => Fate::Drop,
        Server => Fate::Duplicate(ms(1)),
        Client => Fate::Pass,
    });
    p.write(Client, 4 * MSS);
    p.run_for(ms(3000));
    // Three segments arrive after the hole, and each is acknowledged twice. The first acknowledgement also opens the window,
    // so there are five duplicates, of which two are too many.
    let stats = p.client.stats().clone();
    assert_eq!((stats.dup_acks_received, stats.reorderings, stats.retransmitted_fast), (5, 2, 1));
    // Now four duplicates are needed. Recovery lasts until something above it is acknowledged (RFC 6582 section 5).
    let mut after = stats;
    for (duplicates, timeouts) in [(4, 0), (3, 1)] {
        p.rescript(|_| Fate::Pass);
        p.write(Client, MSS);
        p.run_for(ms(1000));
        let first = p.data(Client).len() as u64 + 1;
        p.rescript(move |e| if e.is_data() && e.data_number == first { Fate::Drop } else { Fate::Pass });
        p.write(Client, (duplicates + 1) * MSS);
        p.run_for(ms(3000));
        let before = std::mem::replace(&mut after, p.client.stats().clone());
        assert_eq!((after.dup_acks_received - before.dup_acks_received, after.timeouts), (duplicates, timeouts));
    }
}
