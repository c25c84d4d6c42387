//! Facts about what a receiver acknowledges, when, and with what window.

use crate::pipe::*;
use tcp::{Config, Context, Endpoint, Event, Kernel, State, Transmit};
use units::{Span, Time};
use wire::{Flags, Options, Sack, Segment, Timestamps};

const MSS: u32 = 1448;

/// A server that a script of segments talks to, with no client behind.
struct Server {
    endpoint: Endpoint<Fixed>,
    random: cc::Random,
    now: Time,
    ce: bool,
}

impl Server {
    fn new(config: &Config) -> Server {
        let random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let mut server = Server { endpoint: Endpoint::listen(config, fixed(100), 0), random, now: at(1), ce: false };
        let syn = wire::SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: false };
        let ecn = if config.ecn { Flags::ECE | Flags::CWR } else { Flags::default() };
        server.take(Segment { flags: Flags::SYN | ecn, options: Options::Syn(syn), ..segment(0, 0) });
        server.take(segment(1, 0));
        assert_eq!(server.endpoint.state(), State::Established);
        server
    }

    /// Runs through quick acknowledgements, so that they are delayed from the next segment on; `next` is the new offset.
    fn settled(config: &Config) -> (Server, u32) {
        let mut server = Server::new(config);
        let mut seq = 1;
        for _ in 0..30 {
            server.take(segment(seq, MSS as u16));
            server.endpoint.read(u64::MAX, server.now);
            server.wait(10);
            seq += MSS;
        }
        server.wait(1000 - 300 - 1);
        // The pause was longer than the time-out, so there are quick acknowledgements once more.
        for _ in 0..40 {
            server.take(segment(seq, MSS as u16));
            server.endpoint.read(u64::MAX, server.now);
            server.wait(10);
            seq += MSS;
        }
        server.wait(100);
        (server, seq)
    }

    /// A segment arrives; gives what is answered at once.
    fn take(&mut self, mut segment: Segment) -> Vec<Transmit> {
        if segment.timestamps.is_some() {
            segment.timestamps = Some(Timestamps { value: (self.now.as_nanos() / 1_000_000) as u32, echo: 0 });
        }
        let mut cx = Context { now: self.now, random: &mut self.random, log: None };
        self.endpoint.handle_segment(&segment, self.ce, &mut cx);
        self.poll()
    }

    fn poll(&mut self) -> Vec<Transmit> {
        let mut cx = Context { now: self.now, random: &mut self.random, log: None };
        std::iter::from_fn(|| self.endpoint.poll_transmit(&mut cx)).collect()
    }

    /// Time passes; gives what is sent meanwhile and when, in milliseconds from now.
    fn wait(&mut self, ms: u64) -> Vec<(u64, Transmit)> {
        let (start, end) = (self.now, self.now + Span::from_millis(ms));
        let mut sent = Vec::new();
        while let Some(due) = self.endpoint.poll_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            let mut cx = Context { now: self.now, random: &mut self.random, log: None };
            self.endpoint.handle_timeout(&mut cx);
            let after = (self.now - start).as_millis();
            sent.extend(self.poll().into_iter().map(|t| (after, t)));
        }
        self.now = end;
        sent
    }
}

fn segment(seq: u32, len: u16) -> Segment {
    Segment {
        seq,
        ack: 1,
        window: 1000,
        len,
        flags: Flags::ACK,
        timestamps: Some(Timestamps::default()),
        options: Options::Sack(Sack::NONE),
    }
}

fn blocks(transmit: &Transmit) -> Vec<(u32, u32)> {
    match &transmit.segment.options {
        Options::Sack(sack) => sack.blocks().iter().map(|b| (b.start, b.end)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_at_once() {
    let mut s = Server::new(&plain());
    let mut seq = 1;
    let mut answered = Vec::new();
    for _ in 0..24 {
        answered.push(s.take(segment(seq, MSS as u16)).len());
        seq += MSS;
    }
    // 64,256 of window is 22 pairs of segments, at most 16; each segment that lets the window grow keeps one quick
    // acknowledgement more, up to the limit of the buffer.
    assert_eq!(answered[..16], [1; 16]);
    assert!(answered[16..].contains(&0), "{answered:?}");
}

#[test]
fn every_second_full_segment_is_acknowledged() {
    let config = Config { receive_buffer_max: 131_072, ..plain() };
    let (mut s, mut seq) = Server::settled(&config);
    let mut answered = Vec::new();
    for _ in 0..10 {
        answered.push(s.take(segment(seq, MSS as u16)).len());
        seq += MSS;
    }
    assert_eq!(answered, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn a_full_segment_with_push_is_acknowledged_at_once() {
    let (mut s, seq) = Server::settled(&Config { receive_buffer_max: 131_072, ..plain() });
    let mut pushed = segment(seq, MSS as u16);
    pushed.flags |= Flags::PSH;
    assert_eq!(s.take(pushed).len(), 1);
    assert_eq!(s.take(segment(seq + MSS, MSS as u16)).len(), 0);
}

#[test]
fn a_lone_segment_is_acknowledged_after_40_ms() {
    let config = Config { receive_buffer_max: 131_072, ..plain() };
    let (mut s, seq) = Server::settled(&config);
    assert!(s.take(segment(seq, MSS as u16)).is_empty());
    let acks = s.wait(1000);
    assert_eq!(acks.iter().map(|&(t, _)| t).collect::<Vec<_>>(), [40]);
    assert_eq!(acks[0].1.segment.ack, seq + MSS);
}

#[test]
fn the_end_of_a_message_is_acknowledged_as_soon_as_it_is_read() {
    let config = Config { receive_buffer_max: 131_072, ..plain() };
    let (mut s, seq) = Server::settled(&config);
    assert_eq!(s.take(segment(seq, 100)).len(), 1);
    let unread = Config { auto_read: false, ..config };
    let (mut s, seq) = Server::settled(&unread);
    s.endpoint.read(u64::MAX, s.now);
    s.poll();
    assert!(s.take(segment(seq, 100)).is_empty());
    s.endpoint.read(u64::MAX, s.now);
    assert_eq!(s.poll().len(), 1);
}

#[test]
fn sack_blocks_are_reported_newest_first_and_three_beside_timestamps() {
    let (mut s, start) = Server::settled(&Config { receive_buffer_max: 131_072, ..plain() });
    let at = |n: u32| start + n * MSS;
    s.take(segment(at(0), MSS as u16));
    let mut last = Vec::new();
    for n in [2, 4, 6, 8] {
        last = s.take(segment(at(n), MSS as u16));
    }
    // The fourth out-of-order segment is the first whose acknowledgement may be compressed.
    assert!(last.is_empty());
    let last = s.wait(2);
    assert_eq!(blocks(&last[0].1), [(at(8), at(9)), (at(6), at(7)), (at(4), at(5))]);
    // A segment that joins two blocks brings the joined one to the front.
    s.take(segment(at(3), MSS as u16));
    let last = s.wait(2);
    assert_eq!(blocks(&last[0].1), [(at(2), at(5)), (at(8), at(9)), (at(6), at(7))]);
    // The hole is filled: what is below is gone, and not all holes are, so it may wait for the timer.
    let acks = s.take(segment(at(1), MSS as u16));
    assert_eq!(acks[0].segment.ack, at(5));
    assert_eq!(blocks(&acks[0]), [(at(8), at(9)), (at(6), at(7))]);
}

#[test]
fn an_out_of_order_segment_and_one_that_fills_the_gap_are_acknowledged_at_once() {
    let config = Config { receive_buffer_max: 131_072, ..plain() };
    let (mut s, seq) = Server::settled(&config);
    assert_eq!(s.take(segment(seq + MSS, MSS as u16)).len(), 1);
    let acks = s.take(segment(seq, MSS as u16));
    assert_eq!((acks.len(), acks[0].segment.ack, blocks(&acks[0])), (1, seq + 2 * MSS, vec![]));
}

#[test]
fn a_third_change_of_blocks_sends_what_was_compressed_without_it() {
    // Linux `tcp_sack_new_ofo_skb`, `tcp_sack_compress_send_ack`.
    let (mut s, start) = Server::settled(&Config { receive_buffer_max: 131_072, ..plain() });
    let at = |n: u32| start + n * MSS;
    let one = |n: u32| (at(n), at(n + 1));
    for n in [2, 4, 6] {
        assert_eq!(s.take(segment(at(n), MSS as u16)).len(), 1);
    }
    // The fourth is compressed. The fifth sends that, and is itself told of by nothing, not even a timer.
    assert!(s.take(segment(at(8), MSS as u16)).is_empty());
    let acks = s.take(segment(at(10), MSS as u16));
    assert_eq!((acks.len(), blocks(&acks[0])), (1, vec![one(8), one(6), one(4)]));
    assert!(s.wait(10).is_empty());
    // Of the four blocks that are remembered, 10, 8, 6 and 4, the newest two change without a sign.
    assert!(s.take(segment(at(11), MSS as u16)).is_empty());
    assert!(s.take(segment(at(9), MSS as u16)).is_empty());
    // What is remembered of 2 is what arrives now: 3 joins it to 4 in the buffer, and in the blocks to 4 alone.
    let acks = s.take(segment(at(3), MSS as u16));
    assert_eq!((acks.len(), blocks(&acks[0])), (1, vec![(at(8), at(12)), one(6), (at(3), at(5))]));
    s.take(segment(at(13), MSS as u16));
    let acks = s.wait(2);
    assert_eq!(blocks(&acks[0].1), [one(13), (at(3), at(5)), (at(8), at(12))]);
}

#[test]
fn an_out_of_order_segment_that_lets_the_window_grow_is_acknowledged_at_once() {
    // Linux `tcp_data_queue_ofo` calls `tcp_grow_window`, which keeps one quick acknowledgement.
    let answered = |receive_buffer| {
        let (mut s, start) = Server::settled(&Config { receive_buffer, ..plain() });
        (1..=8).map(|n| s.take(segment(start + n * MSS, MSS as u16)).len()).sum::<usize>()
    };
    assert_eq!(answered(4 << 20), 8);
    // Where the window is at the buffer's limit, three are, and the others are compressed.
    assert_eq!(answered(131_072), 3);
}

#[test]
fn what_arrives_twice_is_reported_once_as_a_d_sack_first() {
    let mut s = Server::new(&plain());
    let at = |n: u32| 1 + n * MSS;
    s.take(segment(at(0), MSS as u16));
    // RFC 2883 example: below the acknowledgement.
    let acks = s.take(segment(at(0), MSS as u16));
    assert_eq!(blocks(&acks[0]), [(at(0), at(1))]);
    // And within a block that was reported.
    s.take(segment(at(2), 2 * MSS as u16));
    let acks = s.take(segment(at(3), MSS as u16));
    assert_eq!(blocks(&acks[0]), [(at(3), at(4)), (at(2), at(4))]);
    let acks = s.take(segment(at(5), MSS as u16));
    assert_eq!(blocks(&acks[0]), [(at(5), at(6)), (at(2), at(4))]);
    assert_eq!(s.endpoint.stats().dsacks_sent, 2);
}

#[test]
fn the_window_never_shrinks_when_a_clamp_is_set() {
    let config = Config { receive_buffer_max: 6 << 20, ..plain() };
    let mut p = Pipe::new(&config, fixed(200), fixed(200));
    p.client.write_unlimited();
    p.run_until(at(2000));
    let open = p.server.snapshot().receive_window;
    assert!(open > 300_000, "{open}");
    p.log.clear();
    p.server.set_window_clamp(Some(50_000));
    p.run_until(at(4000));
    let edges: Vec<u64> =
        p.acks(Server).iter().map(|e| u64::from(e.segment.ack) + (u64::from(e.segment.window) << 7)).collect();
    // Within the rounding to units of 128.
    assert!(edges.windows(2).all(|w| w[1] + 128 >= w[0]), "the right edge moved left");
    // In the end it is what the clamp says.
    let last = p.acks(Server).last().map(|e| u64::from(e.segment.window) << 7);
    assert!(last.is_some_and(|w| (49_900..50_200).contains(&w)), "{last:?}");
    // And it opens again.
    p.server.set_window_clamp(None);
    p.run_until(at(6000));
    assert!(p.server.snapshot().receive_window > 100_000);
}

#[test]
fn the_window_follows_the_sender_up_to_its_share_of_the_largest_buffer() {
    let config = Config { receive_buffer_max: 6 << 20, ..plain() };
    let mut p = Pipe::new(&config, fixed(5000), fixed(5000));
    p.keep_log = false;
    p.client.write_unlimited();
    p.run_until(at(150));
    // 160 / 256 of 128 KiB, and of 6 MiB.
    assert_eq!(p.server.snapshot().receive_buffer, 81_920);
    p.run_until(at(3000));
    assert_eq!(p.server.snapshot().receive_buffer, 3_932_160);
    assert!(p.client.snapshot().send_window > 3_800_000);
    // That much in a round trip of 100 ms.
    let before = p.delivered(crate::pipe::Server);
    p.run_for(ms(1000));
    let rate = p.delivered(crate::pipe::Server) - before;
    assert!(rate > 37_000_000, "{rate}");
}

#[test]
fn a_reader_that_stops_closes_the_window() {
    let config = Config { kernel: Kernel::V6_1, auto_read: false, receive_buffer_max: 131_072, ..plain() };
    let mut s = Server::new(&config);
    let mut seq = 1;
    let mut window = u32::MAX;
    for _ in 0..60 {
        for t in s.take(segment(seq, MSS as u16)) {
            window = u32::from(t.segment.window) << 7;
        }
        seq += MSS;
    }
    assert_eq!(window, 0);
    let readable = s.endpoint.readable();
    assert!(readable <= 65_536 + u64::from(MSS) && readable > 60_000, "{readable}");
    // Reading a little does not reopen it by slivers; reading much is told at once.
    s.endpoint.read(1000, s.now);
    assert!(s.poll().is_empty());
    s.endpoint.read(40_000, s.now);
    assert_eq!(s.poll().len(), 1);
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_reduced_its_window() {
    let config = Config { ecn: true, ..plain() };
    let mut p = connected_with(&config, 10);
    p.rescript(|e| if e.from == Client && e.data_number == 3 { Fate::Mark } else { Fate::Pass });
    p.write(Client, 10 * u64::from(MSS));
    p.run_until(at(1150));
    p.write(Client, 5 * u64::from(MSS));
    p.run_until(at(1500));
    assert!(p.data(Client).iter().all(|e| e.ect));
    assert!(p.acks(crate::pipe::Server).iter().all(|e| !e.ect));
    let cwr: Vec<_> = p.data(Client).iter().map(|e| e.has(Flags::CWR)).collect();
    assert_eq!(cwr.iter().position(|&c| c), Some(10), "the first new segment after the echo");
    assert_eq!(cwr.iter().filter(|&&c| c).count(), 1);
    let echo: Vec<_> = p.acks(crate::pipe::Server).iter().map(|e| (e.segment.ack, e.has(Flags::ECE))).collect();
    let third = CLIENT_ISN + 1 + 3 * MSS;
    let tenth = CLIENT_ISN + 1 + 10 * MSS;
    assert!(echo.iter().all(|&(ack, ece)| ece == (ack >= third && ack <= tenth)), "{echo:?}");
    assert_eq!(p.client.stats().ecn_reductions, 1);
    assert_eq!(p.client.controller().signs, [cc::Sign::Ecn]);
}

#[test]
fn ecn_is_not_used_unless_both_want_it() {
    let mut p = Pipe::with(&Config { ecn: true, ..plain() }, &plain(), fixed(10), fixed(10), 1);
    p.run_until(at(500));
    p.write(Client, 5000);
    p.run_until(at(1000));
    assert!(p.sent(Client)[0].has(Flags::ECE | Flags::CWR));
    assert!(!p.sent(crate::pipe::Server)[0].has(Flags::ECE));
    assert!(p.data(Client).iter().all(|e| !e.ect));
}

#[test]
fn a_close_ends_one_direction_and_the_other_goes_on() {
    let mut p = connected(10);
    p.write(Client, 1000);
    p.close(Client);
    p.run_until(at(1200));
    assert!(p.has_event(crate::pipe::Server, Event::PeerClosed));
    assert_eq!((p.client.state(), p.server.state()), (State::FinWait2, State::CloseWait));
    p.write(crate::pipe::Server, 50_000);
    p.run_until(at(3000));
    assert_eq!(p.delivered(Client), 50_000);
    p.close(crate::pipe::Server);
    p.run_until(at(3500));
    assert_eq!((p.client.state(), p.server.state()), (State::TimeWait, State::Closed));
    assert!(p.has_event(Client, Event::Closed) && p.has_event(crate::pipe::Server, Event::Closed));
    p.run();
    assert!(p.client.is_over());
    assert_eq!(p.now, at(3550 - 500) + Span::from_secs(60));
}

#[test]
fn both_may_close_at_once() {
    let mut p = connected(10);
    p.close(Client);
    p.close(crate::pipe::Server);
    p.run_until(at(1075));
    assert_eq!((p.client.state(), p.server.state()), (State::Closing, State::Closing));
    p.run();
    assert!(p.client.is_over() && p.server.is_over());
    assert!(p.has_event(Client, Event::Closed) && p.has_event(crate::pipe::Server, Event::Closed));
}

#[test]
fn a_lost_fin_and_a_lost_last_acknowledgement_are_repaired() {
    let mut p = connected(10);
    let (mut fins, mut last) = (0, 0);
    p.rescript(move |e| {
        let fin = e.has(Flags::FIN);
        fins += u32::from(fin && e.from == Client);
        last += u32::from(!fin && e.from == Client && e.segment.ack == SERVER_ISN + 2);
        if (fin && e.from == Client && fins == 1) || last == 1 {
            last += 1;
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    p.close(Client);
    p.run_until(at(2000));
    assert_eq!(p.server.state(), State::CloseWait);
    p.close(crate::pipe::Server);
    p.run_until(at(4000));
    assert_eq!((p.client.state(), p.server.state()), (State::TimeWait, State::Closed));
}

#[test]
fn an_abort_resets_the_peer() {
    for side in [Client, crate::pipe::Server] {
        let mut p = connected(10);
        p.client.write_unlimited();
        p.run_until(at(1500));
        p.end(side).abort();
        p.run_until(at(2000));
        assert!(p.client.is_over() && p.server.is_over());
        assert!(p.has_event(Client, Event::Reset) && p.has_event(crate::pipe::Server, Event::Reset));
        assert_eq!(p.client.poll_timeout(), None);
    }
}

#[test]
fn a_reset_counts_only_at_the_expected_sequence_number() {
    let mut s = Server::new(&plain());
    let reset = |seq| Segment { flags: Flags::RST, ..segment(seq, 0) };
    assert_eq!(s.take(reset(5000)).len(), 1, "a challenge");
    assert!(s.take(reset(6000)).is_empty(), "and not another so soon");
    assert_eq!(s.endpoint.state(), State::Established);
    s.take(reset(1));
    assert_eq!(s.endpoint.state(), State::Closed);
}

#[test]
fn a_refused_connection_is_reset() {
    let mut p = Pipe::new(&plain(), fixed(10), fixed(10)).script(|e| match e.from {
        Client => Fate::Drop,
        _ => Fate::Pass,
    });
    p.flush(Client);
    let flags = Flags::RST | Flags::ACK;
    p.inject(crate::pipe::Server, Segment { seq: 0, ack: CLIENT_ISN + 1, flags, ..segment(0, 0) });
    p.run_until(at(100));
    assert!(p.has_event(Client, Event::Reset));
}

#[test]
fn an_old_timestamp_is_refused() {
    let mut s = Server::new(&plain());
    s.wait(1000);
    s.take(segment(1, MSS as u16));
    let old = Segment { timestamps: Some(Timestamps { value: 500, echo: 0 }), ..segment(1 + MSS, MSS as u16) };
    let mut cx = Context { now: s.now, random: &mut s.random, log: None };
    s.endpoint.handle_segment(&old, false, &mut cx);
    assert_eq!(s.poll()[0].segment.ack, 1 + MSS);
    assert_eq!(s.endpoint.stats().bytes_received, u64::from(MSS));
}

#[test]
fn a_small_unscaled_window_closes_and_opens_by_whole_segments() {
    let config = Config {
        kernel: Kernel::V6_1,
        auto_read: false,
        delayed_ack: false,
        receive_buffer: 40_000,
        receive_buffer_max: 40_000,
        window_clamp: Some(20_000),
        ..plain()
    };
    let mut s = Server::new(&config);
    let windows = |sent: Vec<Transmit>| sent.iter().map(|t| u32::from(t.segment.window)).collect::<Vec<_>>();
    // 13 segments of 1448 bytes were announced with the SYN, and a 14th finds no room.
    let answers: Vec<u32> = (0..13).flat_map(|n| windows(s.take(segment(1 + n * MSS, MSS as u16)))).collect();
    assert_eq!(answers, (0..13).rev().map(|n| n * MSS).collect::<Vec<_>>());
    assert_eq!(windows(s.take(segment(1 + 13 * MSS, MSS as u16))), [0]);
    assert_eq!(s.endpoint.readable(), u64::from(13 * MSS));
    // 20,000 - 18,824 + 271 = 1447 are free, and then 1448; then 12,448, of which 8 segments.
    s.endpoint.read(271, s.now);
    assert!(windows(s.poll()).is_empty());
    s.endpoint.read(1, s.now);
    assert_eq!(windows(s.poll()), [MSS]);
    s.endpoint.read(11_000, s.now);
    assert_eq!(windows(s.poll()), [8 * MSS]);
    // All is read: 18,552 are announced at most, of which 12 segments; but that is not twice as much as is open.
    s.endpoint.read(u64::MAX, s.now);
    assert!(windows(s.poll()).is_empty());
    assert_eq!(windows(s.take(segment(1 + 13 * MSS, MSS as u16))), [12 * MSS]);
}

#[test]
fn without_sack_a_duplicate_takes_no_room_from_data() {
    let config = Config { sack: false, timestamps: false, ..plain() };
    let mut p = connected_with(&config, 10);
    // The server's segment arrives twice; what the client sends then is whole segments as before.
    p.rescript(|e| if e.from == Server && e.is_data() { Fate::Duplicate(ms(1)) } else { Fate::Pass });
    p.write(Server, 100);
    p.run_for(ms(500));
    assert_eq!(p.client.stats().duplicates_received, 1);
    p.write(Client, 4 * 1460);
    p.run_for(ms(500));
    let lens: Vec<_> = p.data(Client).iter().map(|e| e.segment.len).collect();
    assert_eq!((lens, p.client.stats().dsacks_sent), (vec![1460; 4], 0));
}

#[test]
fn data_that_owes_no_acknowledgement_uses_up_no_quick_one() {
    let mut s = Server::new(&plain());
    let mut seq = 1;
    let mut answered = Vec::new();
    for n in 0..16 {
        answered.push(s.take(segment(seq, MSS as u16)).len());
        seq += MSS;
        s.wait(60);
        if n < 10 {
            // Later than a reply would come; the peer acknowledges it.
            let before = s.endpoint.stats().bytes_sent;
            s.endpoint.write(100);
            assert_eq!(s.poll().len(), 1);
            let ack = 1 + before as u32 + 100;
            s.take(Segment { ack, ..segment(seq, 0) });
        }
    }
    // As without it: sixteen.
    assert_eq!(answered, [1; 16]);
}

#[test]
fn a_single_byte_counts_as_data() {
    let mut s = Server::new(&plain());
    // Acknowledged at once, as the first segments of a connection are.
    assert_eq!(s.take(segment(1, 1)).len(), 1);
    assert_eq!((s.endpoint.stats().bytes_received, s.endpoint.stats().acks_sent), (1, 2 - 1));
    // And again: it is a duplicate, with a D-SACK.
    s.wait(300);
    let again = s.take(segment(1, 1));
    assert_eq!(blocks(&again[0]), [(1, 2)]);
}

#[test]
fn forty_four_acknowledgements_are_compressed_into_one_at_most() {
    // Linux `tcp_comp_sack_nr`: the first takes so little of the buffer that the window still grows, which is acknowledged at
    // once; so are the next three, and then each 45th.
    let (mut s, start) = Server::settled(&Config { receive_buffer_max: 131_072, ..plain() });
    let mut at = |n: u32| s.take(segment(start + MSS + n * 100, 100)).len();
    let answered: Vec<u32> = (1..=100).filter(|&n| at(n - 1) > 0).collect();
    assert_eq!(answered, [1, 2, 3, 4, 49, 94]);
    // What is compressed leaves within a millisecond, and tells of all.
    let acks = s.wait(1);
    assert_eq!((acks.len(), blocks(&acks[0].1)), (1, vec![(start + MSS, start + MSS + 10_000)]));
    assert!(s.wait(10).is_empty());
}

#[test]
fn nothing_is_due_after_an_abort() {
    // An acknowledgement is delayed, or several are compressed.
    for out_of_order in [false, true] {
        let (mut s, start) = Server::settled(&Config { receive_buffer_max: 131_072, ..plain() });
        for n in 0..if out_of_order { 5 } else { 1 } {
            let gap = if out_of_order { MSS } else { 0 };
            s.take(segment(start + gap + n * MSS, MSS as u16));
        }
        assert!(s.endpoint.poll_timeout().is_some_and(|at| at <= s.now + ms(40)));
        s.endpoint.abort();
        assert_eq!(s.poll().len(), 1, "the reset");
        assert_eq!((s.endpoint.poll_timeout(), s.endpoint.is_over()), (None, true));
    }
}
