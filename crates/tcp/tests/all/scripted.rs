//! Facts about a client whose peer is a script: each segment that it hears is written down, and so is the time between.

use crate::pipe::*;
use tcp::{Config, Context, Endpoint, Event, HostQueue, Kernel, Limit, Pacing, State};
use units::{Rate, Span, Time};
use wire::{Block, Flags, Options, Sack, Segment, SynOptions, Timestamps};

const MSS: u32 = 1448;

/// A client whose numbers are offsets: its first byte is 1, and the peer's too.
struct Client {
    endpoint: Endpoint<Fixed>,
    random: cc::Random,
    now: Time,
    timestamps: bool,
}

impl Client {
    /// The peer announces windows as they are, without a scale; the round trip of the handshake takes 100 ms.
    fn new(config: &Config, cwnd: u32, window: u16) -> Client {
        let random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let endpoint = Endpoint::connect(config, fixed(cwnd), 0, Time::ZERO);
        let mut client = Client { endpoint, random, now: Time::ZERO, timestamps: config.timestamps };
        client.poll();
        client.wait(100);
        let options =
            Options::Syn(SynOptions { mss: 1460, window_scale: None, sack_permitted: config.sack, reports: false });
        let syn = Segment { seq: 0, options, flags: Flags::SYN | Flags::ACK, ..client.segment(1, window) };
        client.hear(&syn);
        client.poll();
        assert_eq!(client.endpoint.state(), State::Established);
        client
    }

    fn segment(&self, ack: u32, window: u16) -> Segment {
        Segment {
            seq: 1,
            ack,
            window,
            len: 0,
            flags: Flags::ACK,
            timestamps: self.timestamps.then_some(Timestamps { value: 1, echo: 0 }),
            options: Options::Sack(Sack::NONE),
        }
    }

    fn context(&mut self) -> (&mut Endpoint<Fixed>, Context<'_>) {
        (&mut self.endpoint, Context { now: self.now, random: &mut self.random, log: None })
    }

    fn hear(&mut self, segment: &Segment) {
        let (endpoint, mut cx) = self.context();
        endpoint.handle_segment(segment, false, &mut cx);
        endpoint.audit();
    }

    /// An acknowledgement with these blocks arrives, in whole segments; nothing is sent yet.
    fn acked(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let mut sack = Sack::NONE;
        for &(start, end) in blocks {
            sack.push(Block { start: 1 + start * MSS, end: 1 + end * MSS });
        }
        let segment = Segment { options: Options::Sack(sack), ..self.segment(1 + ack * MSS, u16::MAX) };
        self.hear(&segment);
    }

    /// What is sent now: the offset from the first byte, and the length.
    fn poll(&mut self) -> Vec<(u32, u16)> {
        let (endpoint, mut cx) = self.context();
        let sent = std::iter::from_fn(|| endpoint.poll_transmit(&mut cx));
        sent.map(|t| (t.segment.seq.wrapping_sub(1), t.segment.len)).collect()
    }

    /// Time passes; what is sent meanwhile, and after how many milliseconds.
    fn wait(&mut self, ms: u64) -> Vec<(u64, u32, u16)> {
        let (start, end) = (self.now, self.now + Span::from_millis(ms));
        let mut sent = Vec::new();
        while let Some(due) = self.endpoint.poll_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            let (endpoint, mut cx) = self.context();
            endpoint.handle_timeout(&mut cx);
            let after = (self.now - start).as_millis();
            sent.extend(self.poll().into_iter().map(|(at, len)| (after, at, len)));
        }
        self.now = end;
        sent
    }

    fn write(&mut self, bytes: u64) -> Vec<(u32, u16)> {
        self.endpoint.write(bytes);
        self.poll()
    }
}

fn blind() -> Config {
    Config { timestamps: false, mss: MSS as u16, ..plain() }
}

#[test]
fn a_window_probe_sends_what_the_window_has_room_for_and_no_more() {
    // The window takes a segment and 552 bytes of the next.
    let mut c = Client::new(&blind(), 10, 2000);
    assert_eq!(c.write(5000), [(0, MSS as u16)]);
    c.wait(100);
    let rest = c.segment(1 + MSS, 552);
    c.hear(&rest);
    assert_eq!(c.poll(), []);
    // After a time-out of 300 ms, the probe fills the window to the byte.
    assert_eq!(c.wait(310), [(300, MSS, 552)]);
    // The rest waits, and so does a FIN, for which the window has no room.
    let closed = c.segment(2001, 0);
    c.hear(&closed);
    assert_eq!(c.poll(), []);
    c.endpoint.close();
    assert_eq!(c.poll(), []);
    // A closed window is probed with a number that was acknowledged long ago.
    let probes = c.wait(1000);
    assert!(probes.len() >= 2 && probes.iter().all(|&(_, seq, len)| (seq, len) == (1999, 0)), "{probes:?}");
    // An open one takes the rest.
    let open = c.segment(2001, 4000);
    c.hear(&open);
    assert_eq!(c.poll(), [(2000, MSS as u16), (2000 + MSS, MSS as u16), (2000 + 2 * MSS, 104)]);
    assert_eq!(c.endpoint.stats().window_probes as usize, 1 + probes.len());
}

#[test]
fn a_probe_carries_the_fin_only_if_the_window_has_room_for_it() {
    for (room, fin) in [(100, false), (101, true)] {
        let mut c = Client::new(&blind(), 10, MSS as u16);
        assert_eq!(c.write(u64::from(MSS) + 100), [(0, MSS as u16)]);
        c.endpoint.close();
        c.wait(100);
        // A window too small for the rest and the FIN together is probed with what fits.
        let rest = c.segment(1 + MSS, room);
        c.hear(&rest);
        let now = c.poll();
        assert_eq!((now.is_empty(), c.endpoint.in_flight()), (!fin, if fin { 101 } else { 0 }));
        // A probe of the window, or of the tail of what was sent.
        assert_eq!(c.wait(310).first(), Some(&(300, MSS, 100)));
        assert_eq!(c.endpoint.in_flight(), if fin { 101 } else { 100 });
    }
}

#[test]
fn what_was_retransmitted_once_gives_no_round_trip_time_however_it_was_marked_since() {
    let mut c = Client::new(&blind(), 20, u16::MAX);
    c.write(4 * u64::from(MSS));
    c.wait(100);
    c.acked(0, &[(1, 4)]);
    assert_eq!(c.poll(), [(0, MSS as u16)]);
    // What is sent after the retransmission arrives, and not the retransmission.
    c.wait(10);
    c.write(4 * u64::from(MSS));
    c.wait(100);
    c.acked(0, &[(1, 8)]);
    assert_eq!(c.endpoint.stats().lost, 2);
    // At the same moment the original turns out to have arrived: Karn's rule.
    let before = c.endpoint.snapshot();
    c.now += Span::from_millis(50);
    c.acked(8, &[]);
    let after = c.endpoint.snapshot();
    assert_eq!((after.rtt, after.srtt, after.min_rtt), (before.rtt, before.srtt, before.min_rtt));
    assert_eq!(c.poll(), []);
}

#[test]
fn a_segment_that_was_marked_lost_and_is_selectively_acknowledged_is_no_longer_lost() {
    let mut c = Client::new(&blind(), 4, u16::MAX);
    c.write(4 * u64::from(MSS));
    // Nothing is acknowledged: a probe of the tail after two round trips, and a time-out that marks all of them lost, after
    // which one leaves again.
    assert_eq!(c.wait(510), [(202, 3 * MSS, MSS as u16), (502, 0, MSS as u16)]);
    assert_eq!(c.endpoint.snapshot().in_flight, 1);
    // One had only been late; it was sent twice, so this does not tell that the time-out was spurious.
    c.acked(0, &[(3, 4)]);
    assert_eq!(c.endpoint.snapshot().in_flight, 1, "the retransmission");
    c.acked(4, &[]);
    assert_eq!(c.endpoint.snapshot().in_flight, 0);
}

/// A client that has four segments in flight and may send more; `pacing` in bytes per second.
fn with_host(config: &Config, pacing: Option<u64>) -> Client {
    let mut c = Client::new(config, 100, u16::MAX);
    c.endpoint.write(4 * u64::from(MSS));
    assert_eq!(c.poll().len(), 4);
    if let Some(rate) = pacing {
        // The script's controller takes its rate from a target of the driver.
        let target = Some(cc::Target {
            window: units::Bytes::new(100 * u64::from(MSS)),
            pacing: Some(Rate::from_bits_per_sec(8 * rate)),
        });
        let (endpoint, mut cx) = c.context();
        endpoint.signal(&cc::Signal::Target(target), &mut cx);
    }
    c
}

/// Whether so much payload in the host's own queue keeps a client from sending, which tells that it waits.
fn is_held(c: &mut Client, payload: u64) -> bool {
    c.endpoint.set_host_queue(HostQueue { payload, ..HostQueue::default() });
    c.endpoint.write(1);
    let held = c.poll().is_empty();
    assert_eq!(held, c.endpoint.snapshot().limit == Limit::HostQueue);
    // One that waits is woken when the queue has less of its data, and only then.
    assert!(!c.endpoint.set_host_queue(HostQueue { payload, ..HostQueue::default() }));
    assert_eq!(c.endpoint.set_host_queue(HostQueue { payload: payload - 1, ..HostQueue::default() }), held);
    assert!(!c.endpoint.set_host_queue(HostQueue::default()));
    held
}

/// The least payload in the host's queue that holds a client back.
fn threshold(config: &Config, pacing: Option<u64>) -> u64 {
    let (mut passes, mut held) = (1, 1 << 30);
    while held - passes > 1 {
        let middle = passes + (held - passes) / 2;
        let is_held = is_held(&mut with_host(config, pacing), middle);
        (passes, held) = if is_held { (passes, middle) } else { (middle, held) };
    }
    held
}

#[test]
fn two_packets_or_a_millisecond_of_data_may_wait_in_the_hosts_own_queue() {
    // A packet has two segments at least, and takes 2896 + 832 bytes.
    let config = Config { max_header: 192, ..blind() };
    assert_eq!(threshold(&config, None), 4 * u64::from(MSS));
    // The longest has 45, and takes 65,160 + 832. Of 200,000 bytes of memory, which are more than two of those, 197,478.5 are
    // payload.
    assert_eq!(threshold(&config, Some(200_000 << 10)), 197_479);
    // 6.18 allows 4 MB in any case. In 6.1 a packet takes 1024 + 256 besides its payload, and 1 MB is the most only where
    // nothing is paced.
    assert_eq!(threshold(&config, Some(8_000 << 20)), 4_141_424);
    let old = Config { kernel: Kernel::V6_1, max_header: 320, ..blind() };
    assert_eq!(threshold(&Config { pacing: Pacing::Never, ..old.clone() }, Some(8_000 << 20)), 1_028_375);
    assert!(threshold(&old, Some(8_000 << 20)) > 4_000_000);
}

#[test]
fn one_packet_may_always_follow_and_what_is_sent_again_may_wait_for_twice_as_long() {
    let config = Config { max_header: 192, ..blind() };
    let mut c = Client::new(&config, 100, u16::MAX);
    let full = |payload| HostQueue { payload, ..HostQueue::default() };
    c.endpoint.set_host_queue(full(1 << 20));
    // One that is in flight, and one more.
    assert_eq!(c.write(3 * u64::from(MSS)), [(0, MSS as u16), (MSS, MSS as u16)]);
    c.endpoint.set_host_queue(HostQueue::default());
    assert_eq!(c.write(2 * u64::from(MSS)).len(), 3);
    // The first is lost. Four packets of two segments keep its retransmission back, and a byte less does not.
    c.wait(100);
    c.acked(0, &[(1, 5)]);
    c.endpoint.set_host_queue(full(8 * u64::from(MSS)));
    assert_eq!(c.poll(), []);
    assert_eq!(c.endpoint.snapshot().limit, Limit::HostQueue);
    assert!(c.endpoint.set_host_queue(full(8 * u64::from(MSS) - 1)));
    assert_eq!(c.poll(), [(0, MSS as u16)]);
}

#[test]
fn a_full_queue_of_the_host_reduces_the_window_once_and_holds_everything() {
    let mut c = Client::new(&blind(), 100, u16::MAX);
    c.endpoint.set_host_queue(HostQueue { is_full: true, ..HostQueue::default() });
    assert_eq!(c.write(u64::from(MSS)), []);
    assert_eq!((c.endpoint.stats().host_drops, c.endpoint.snapshot().limit), (1, Limit::HostQueue));
    assert_eq!(
        (&c.endpoint.controller().signs[..], c.endpoint.snapshot().phase),
        (&[cc::Sign::Ecn][..], cc::Phase::Cwr)
    );
    assert_eq!(c.write(u64::from(MSS)), []);
    assert_eq!((c.endpoint.stats().host_drops, c.endpoint.controller().signs.len()), (2, 1));
    c.endpoint.set_host_queue(HostQueue::default());
    assert_eq!(c.write(1), [(0, MSS as u16), (MSS, MSS as u16), (2 * MSS, 1)]);
}

#[test]
fn a_queue_of_segments_counts_a_head_for_each() {
    // A segment takes 1448 + 832 bytes, a packet of two 2896 + 832.
    let config = Config { max_header: 192, tso: true, ..blind() };
    let is_held = |payload, is_segmented| {
        let mut c = with_host(&config, None);
        c.endpoint.set_host_queue(HostQueue { payload, is_segmented, ..HostQueue::default() });
        c.endpoint.write(20 * u64::from(MSS));
        c.poll().is_empty()
    };
    // Two packets are 7456 bytes: 5792 of payload in packets, 4735.2 in segments.
    assert_eq!([5791, 5792].map(|payload| is_held(payload, false)), [false, true]);
    assert_eq!([4735, 4736].map(|payload| is_held(payload, true)), [false, true]);
}

/// A SYN of a peer with everything.
fn syn(flags: Flags, ack: u32) -> Segment {
    let options = Options::Syn(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true, reports: false });
    Segment { seq: 700, ack, window: 5000, len: 0, flags, timestamps: None, options }
}

/// What an endpoint that has sent its SYN from 99 answers to a segment, and in which state it is then.
fn answered(config: &Config, segment: &Segment) -> (State, Vec<(Flags, u32, u32)>) {
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: at(10), random: &mut random, log: None };
    let mut endpoint = Endpoint::connect(config, fixed(10), 99, Time::ZERO);
    endpoint.poll_transmit(&mut cx);
    endpoint.handle_segment(segment, false, &mut cx);
    let sent = std::iter::from_fn(|| endpoint.poll_transmit(&mut cx)).map(|t| t.segment);
    // The peer's segment has no timestamps, so nothing but a SYN has.
    let sent = sent.inspect(|s| assert!(s.timestamps.is_none(), "{s:?}")).map(|s| (s.flags, s.seq, s.ack)).collect();
    (endpoint.state(), sent)
}

#[test]
fn an_answer_to_a_syn_opens_refuses_or_is_refused() {
    let config = plain();
    let both = Flags::SYN | Flags::ACK;
    let answered = |flags, ack| answered(&config, &syn(flags, ack));
    assert_eq!(answered(both, 100), (State::Established, vec![(Flags::ACK, 100, 701)]));
    // Of what was never sent, or not of the SYN (RFC 9293 section 3.10.7.3): a reset with that number.
    for ack in [99, 101] {
        assert_eq!(answered(both, ack), (State::SynSent, vec![(Flags::RST | Flags::ACK, ack, 0)]));
        assert_eq!(answered(both | Flags::RST, ack), (State::SynSent, vec![]));
    }
    // A reset counts if it acknowledges the SYN; an acknowledgement without SYN says nothing.
    assert_eq!(answered(Flags::RST | Flags::ACK, 100), (State::Closed, vec![]));
    assert_eq!(answered(Flags::RST, 0), (State::SynSent, vec![]));
    assert_eq!(answered(Flags::ACK, 100), (State::SynSent, vec![]));
    // Both open at once.
    assert_eq!(answered(Flags::SYN, 0), (State::SynReceived, vec![(both, 99, 701)]));
}

#[test]
fn both_sides_must_want_ecn_and_say_so_as_rfc_3168_has_it() {
    let asks = Flags::ECE | Flags::CWR;
    let both = Flags::SYN | Flags::ACK;
    for (ecn, flags, used) in [
        (true, both | Flags::ECE, true),
        (true, both | asks, false),
        (true, both, false),
        (false, both | Flags::ECE, false),
        (true, Flags::SYN | asks, true),
        (true, Flags::SYN | Flags::ECE, false),
        (true, Flags::SYN, false),
        (false, Flags::SYN | asks, false),
    ] {
        let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let mut cx = Context { now: at(10), random: &mut random, log: None };
        let mut endpoint = Endpoint::connect(&Config { ecn, ..plain() }, fixed(10), 99, Time::ZERO);
        endpoint.poll_transmit(&mut cx);
        endpoint.handle_segment(&syn(flags, 100), false, &mut cx);
        if !flags.has(Flags::ACK) {
            // Both have opened at once, and the SYN-ACK says what is in use.
            let answer = endpoint.poll_transmit(&mut cx).expect("a SYN-ACK");
            assert_eq!(answer.segment.flags.has(Flags::ECE), used, "{flags:?}");
            let ack = Segment { seq: 701, flags: Flags::ACK, options: Options::Sack(Sack::NONE), ..syn(flags, 100) };
            endpoint.handle_segment(&ack, false, &mut cx);
        }
        endpoint.poll_transmit(&mut cx);
        endpoint.write(100);
        let data = endpoint.poll_transmit(&mut cx).expect("data");
        assert_eq!((data.segment.len, data.ect), (100, used), "{flags:?}");
        // A mark that comes back.
        let ack = Segment { seq: 701, options: Options::Sack(Sack::NONE), ..syn(Flags::ACK | Flags::ECE, 200) };
        endpoint.handle_segment(&ack, false, &mut cx);
        let sample = endpoint.controller().last.as_ref().expect("an acknowledgement");
        assert_eq!((sample.ece, sample.delivered_ce), (used, u32::from(used)), "{flags:?}");
    }
}

#[test]
fn a_listener_takes_a_syn_and_nothing_else() {
    for (flags, state) in [
        (Flags::SYN, State::SynReceived),
        (Flags::SYN | Flags::ACK, State::Listen),
        (Flags::SYN | Flags::RST, State::Listen),
        (Flags::ACK, State::Listen),
    ] {
        let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let mut cx = Context { now: at(10), random: &mut random, log: None };
        let mut endpoint = Endpoint::listen(&plain(), fixed(10), 99);
        endpoint.handle_segment(&syn(flags, 0), false, &mut cx);
        assert_eq!(endpoint.state(), state, "{flags:?}");
        assert_eq!(endpoint.poll_transmit(&mut cx).is_some(), state == State::SynReceived);
    }
}

#[test]
fn segments_of_less_than_88_bytes_are_not_offered_and_not_sent() {
    // Linux `TCP_MIN_MSS`.
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: at(10), random: &mut random, log: None };
    let config = Config { mss: 40, timestamps: false, ..plain() };
    let mut endpoint = Endpoint::connect(&config, fixed(10), 99, Time::ZERO);
    let offer = endpoint.poll_transmit(&mut cx).expect("a SYN").segment.options;
    assert!(matches!(offer, Options::Syn(SynOptions { mss: 88, .. })), "{offer:?}");
    let options = Options::Syn(SynOptions { mss: 20, window_scale: None, sack_permitted: true, reports: false });
    endpoint.handle_segment(&Segment { options, ..syn(Flags::SYN | Flags::ACK, 100) }, false, &mut cx);
    assert_eq!(endpoint.snapshot().mss, 88);
}

#[test]
fn a_reset_ends_time_wait_and_leaves_nothing_to_wait_for() {
    let mut c = Client::new(&blind(), 10, u16::MAX);
    c.endpoint.close();
    assert_eq!(c.poll(), [(0, 0)]);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..c.segment(2, 1000) };
    c.hear(&fin);
    c.poll();
    assert_eq!(c.endpoint.state(), State::TimeWait);
    assert!(c.endpoint.poll_timeout().is_some());
    // The same FIN again is acknowledged again, and the time begins anew.
    c.wait(30_000);
    c.hear(&fin);
    assert_eq!(c.poll(), [(1, 0)]);
    assert_eq!(c.endpoint.poll_timeout(), Some(c.now + Span::from_secs(60)));
    let reset = Segment { flags: Flags::RST, ..c.segment(2, 0) };
    c.hear(&reset);
    assert_eq!((c.endpoint.state(), c.endpoint.poll_timeout(), c.poll()), (State::Closed, None, vec![]));
}

#[test]
fn a_packet_that_has_begun_is_not_held_back_in_the_middle() {
    let config = Config { max_header: 192, tso: true, ..blind() };
    let mut c = with_host(&config, None);
    c.endpoint.write(20 * u64::from(MSS));
    // The first of two segments has left when the host's queue fills: the second follows, and the next packet waits.
    let (endpoint, mut cx) = c.context();
    assert!(endpoint.poll_transmit(&mut cx).is_some());
    c.endpoint.set_host_queue(HostQueue { payload: 1 << 20, ..HostQueue::default() });
    assert_eq!(c.poll().len(), 1);
    assert_eq!(c.endpoint.snapshot().limit, Limit::HostQueue);
}

/// A client with timestamps that has heard the peer's time 100.
fn stamped() -> Client {
    let mut c = Client::new(&plain(), 10, u16::MAX);
    let data = with_stamp(&c, 100, 1, 10);
    c.hear(&data);
    assert_eq!(c.poll(), [(0, 0)], "acknowledged at once");
    c.wait(300);
    c
}

fn with_stamp(c: &Client, value: u32, seq: u32, len: u16) -> Segment {
    Segment { seq, len, timestamps: Some(Timestamps { value, echo: 0 }), ..c.segment(1, u16::MAX) }
}

#[test]
fn timestamps_may_go_back_by_one_tick_and_no_more() {
    // RFC 7323 section 5, with the tolerance of Linux. What is refused is answered, if it has data.
    for (value, received, answers) in
        [(101, 20, 1), (100, 20, 1), (99, 20, 1), (98, 10, 1), (98_u32.wrapping_sub(1 << 30), 10, 1)]
    {
        let mut c = stamped();
        let data = with_stamp(&c, value, 11, 10);
        c.hear(&data);
        let answered = c.poll().len() + c.wait(300).len();
        assert_eq!((c.endpoint.stats().bytes_received, answered), (received, answers), "{value}");
    }
    // A reset with an old time still counts, and what lacks a time is taken.
    let mut c = stamped();
    let reset = Segment { flags: Flags::RST, ..with_stamp(&c, 5, 11, 0) };
    c.hear(&reset);
    assert_eq!(c.endpoint.state(), State::Closed);
    let mut c = stamped();
    let bare = Segment { timestamps: None, ..with_stamp(&c, 0, 11, 10) };
    c.hear(&bare);
    assert_eq!(c.endpoint.stats().bytes_received, 20);
}

#[test]
fn what_is_outside_the_window_is_answered_and_without_data_only_twice_a_second() {
    let outside = |c: &Client, len| with_stamp(c, 200, 11_u32.wrapping_add(1 << 28), len);
    let mut c = stamped();
    for (wait, len, answers) in [(0, 0, 1), (499, 0, 0), (1, 0, 1), (0, 10, 1), (0, 10, 1), (400, 0, 0), (100, 0, 1)] {
        c.wait(wait);
        let segment = outside(&c, len);
        c.hear(&segment);
        assert_eq!(c.poll().len(), answers, "{wait} ms later, {len} bytes");
    }
    assert_eq!((c.endpoint.stats().duplicates_received, c.endpoint.stats().challenge_acks_sent), (2, 0));
    // Resets are not answered.
    let mut c = stamped();
    let reset = Segment { flags: Flags::RST, ..outside(&c, 0) };
    c.hear(&reset);
    assert_eq!((c.poll(), c.endpoint.state()), (vec![], State::Established));
}

#[test]
fn what_may_be_an_attack_is_challenged_twice_a_second_at_most() {
    // RFC 5961: a reset in the window, a SYN, an acknowledgement of what was never sent.
    let kinds: [fn(&Client) -> Segment; 3] = [
        |c| Segment { flags: Flags::RST, ..with_stamp(c, 100, 12, 0) },
        |c| Segment { flags: Flags::SYN | Flags::ACK, ..with_stamp(c, 100, 11, 0) },
        |c| Segment { ack: 2, ..with_stamp(c, 100, 11, 0) },
    ];
    for kind in kinds {
        let mut c = stamped();
        for (wait, answers) in [(0, 1), (499, 0), (1, 1)] {
            c.wait(wait);
            let segment = kind(&c);
            c.hear(&segment);
            assert_eq!(c.poll().len(), answers, "{segment:?} {wait} ms later");
        }
        assert_eq!((c.endpoint.stats().challenge_acks_sent, c.endpoint.state()), (2, State::Established));
    }
    // A reset at the expected number ends the connection; a segment without ACK is nothing.
    let mut c = stamped();
    let bare = Segment { flags: Flags::PSH, ..with_stamp(&c, 100, 11, 10) };
    c.hear(&bare);
    assert_eq!((c.poll(), c.endpoint.stats().bytes_received), (vec![], 10));
    let reset = Segment { flags: Flags::RST, ..with_stamp(&c, 100, 11, 0) };
    c.hear(&reset);
    assert_eq!(
        (c.poll(), c.endpoint.poll_event(), c.endpoint.state()),
        (vec![], Some(Event::Connected), State::Closed)
    );
}

#[test]
fn a_server_waits_for_the_acknowledgement_of_its_own_syn() {
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: at(10), random: &mut random, log: None };
    let mut server = Endpoint::listen(&plain(), fixed(10), 99);
    server.handle_segment(&syn(Flags::SYN, 0), false, &mut cx);
    let answer = server.poll_transmit(&mut cx).expect("a SYN-ACK").segment;
    assert_eq!((answer.seq, answer.ack), (99, 701));
    let ack = |ack, flags| Segment { seq: 701, ack, flags, options: Options::Sack(Sack::NONE), ..syn(flags, ack) };
    // The peer's SYN again: the answer again. One with other numbers, or an old acknowledgement, is none.
    server.handle_segment(&syn(Flags::SYN, 0), false, &mut cx);
    assert_eq!(server.poll_transmit(&mut cx).map(|t| t.segment.flags), Some(Flags::SYN | Flags::ACK));
    server.handle_segment(&ack(99, Flags::ACK), false, &mut cx);
    assert_eq!((server.state(), server.poll_transmit(&mut cx)), (State::SynReceived, None));
    // What lies outside the window is acknowledged.
    server.handle_segment(&Segment { seq: 701 + (1 << 28), len: 10, ..ack(100, Flags::ACK) }, false, &mut cx);
    let answer = server.poll_transmit(&mut cx).map(|t| (t.segment.flags, t.segment.seq, t.segment.ack));
    assert_eq!((answer, server.state()), (Some((Flags::ACK, 100, 701)), State::SynReceived));
    cx.now = at(60);
    server.handle_segment(&Segment { window: 300, ..ack(100, Flags::ACK) }, false, &mut cx);
    assert_eq!((server.state(), server.poll_event()), (State::Established, Some(Event::Connected)));
    // The window of the SYN was not scaled, that of the acknowledgement is.
    assert_eq!(server.snapshot().send_window, 300 << 7);
    // The SYN-ACK was sent twice, so it gives no sample without timestamps: 3 s (RFC 6298 section 5.7).
    assert_eq!((server.snapshot().srtt, server.snapshot().rto), (None, Span::from_secs(3)));
}

#[test]
fn an_endpoint_tells_what_it_knows() {
    let mut c = Client::new(&blind(), 10, 20_000);
    assert_eq!(c.endpoint.write(20_000), 20_000);
    assert_eq!((c.endpoint.unacked(), c.endpoint.unsent()), (20_000, 20_000));
    assert_eq!(c.poll().len(), 10);
    let (sent, mss) = (10 * u64::from(MSS), u64::from(MSS));
    assert_eq!((c.endpoint.window(), c.endpoint.in_flight(), c.endpoint.unsent()), ((sent, sent), sent, 20_000 - sent));
    c.wait(50);
    c.acked(4, &[(6, 7)]);
    assert_eq!((c.endpoint.unacked(), c.endpoint.in_flight()), (20_000 - 4 * mss, 6 * mss));
    // Four of ten are acknowledged, and one selectively.
    assert_eq!(c.endpoint.window(), (sent, 5 * mss));
    let (srtt, min) = c.endpoint.rtt();
    assert_eq!((srtt, min), (Some(Span::from_micros(93_750)), Some(ms(50))));
    let s = c.endpoint.snapshot();
    assert_eq!((s.cwnd, s.in_flight, s.unacked, s.unsent), (10, 5, 6 * mss, 20_000 - sent));
    assert_eq!((s.rtt, s.send_window, s.mss, s.controller), (Some(ms(50)), u64::from(u16::MAX), MSS, "fixed"));
    assert!(!c.endpoint.is_over() && c.endpoint.has_news());
    assert_eq!(
        (c.endpoint.poll_event(), c.endpoint.poll_event()),
        (Some(Event::Connected), Some(Event::Acked(4 * mss)))
    );
    assert!(!c.endpoint.has_news());
    // Data that waits for a reader, and a FIN.
    c.endpoint.set_auto_read(false, c.now);
    let data = Segment { len: 300, flags: Flags::ACK | Flags::FIN, ..c.segment(1 + 4 * MSS, 9_000) };
    c.hear(&data);
    assert_eq!((c.endpoint.readable(), c.endpoint.state()), (300, State::CloseWait));
    assert_eq!(c.endpoint.poll_event(), Some(Event::Delivered(300)));
    assert!(c.endpoint.has_news());
    assert_eq!((c.endpoint.poll_event(), c.endpoint.poll_event()), (Some(Event::PeerClosed), None));
    let now = c.now;
    assert_eq!((c.endpoint.read(100, now), c.endpoint.read(1_000, now), c.endpoint.readable()), (100, 200, 0));
}

#[test]
fn an_abort_resets_a_peer_that_there_is() {
    // Before the peer has answered, and when it has closed in order, nobody is told.
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: at(10), random: &mut random, log: None };
    let ends: [Endpoint<Fixed>; 2] =
        [Endpoint::connect(&plain(), fixed(10), 99, Time::ZERO), Endpoint::listen(&plain(), fixed(10), 99)];
    for mut endpoint in ends {
        endpoint.abort();
        assert_eq!((endpoint.state(), endpoint.poll_event()), (State::Closed, Some(Event::Reset)));
        assert_eq!((endpoint.poll_transmit(&mut cx), endpoint.poll_timeout(), endpoint.is_over()), (None, None, true));
    }
    let mut c = Client::new(&blind(), 10, u16::MAX);
    c.write(500);
    c.endpoint.poll_event();
    assert!(c.endpoint.poll_timeout().is_some());
    c.endpoint.abort();
    assert!(!c.endpoint.is_over() && c.endpoint.has_news());
    assert_eq!(c.endpoint.poll_timeout(), None);
    assert_eq!((c.endpoint.poll_event(), c.endpoint.in_flight() > 0), (Some(Event::Reset), true));
    assert_eq!((c.poll(), c.endpoint.is_over()), (vec![(500, 0)], true));
    // A listener that closes has closed.
    let mut listener = Endpoint::listen(&plain(), fixed(10), 99);
    listener.close();
    assert_eq!((listener.state(), listener.poll_event()), (State::Closed, Some(Event::Closed)));
}

#[test]
fn a_connection_that_is_closed_before_it_is_open_sends_its_fin_once_it_is() {
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: at(10), random: &mut random, log: None };
    let mut endpoint = Endpoint::connect(&plain(), fixed(10), 99, Time::ZERO);
    endpoint.poll_transmit(&mut cx);
    endpoint.write(100);
    endpoint.close();
    endpoint.close();
    assert_eq!((endpoint.state(), endpoint.write(1)), (State::SynSent, 0));
    endpoint.handle_segment(&syn(Flags::SYN | Flags::ACK, 100), false, &mut cx);
    assert_eq!(endpoint.state(), State::FinWait1);
    let sent: Vec<_> = std::iter::from_fn(|| endpoint.poll_transmit(&mut cx)).map(|t| t.segment).collect();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!((sent[0].len, sent[0].flags.has(Flags::FIN), sent[0].ack), (100, true, 701));
}

#[test]
fn what_a_segment_did_is_told_at_once() {
    let mut c = Client::new(&blind(), 10, 20_000);
    assert_eq!(c.write(2 * u64::from(MSS)).len(), 2);
    c.wait(50);
    let (mut random, mut now) = (<cc::Random as rand_core::SeedableRng>::seed_from_u64(1), c.now);
    let mut hear = |endpoint: &mut Endpoint<Fixed>, segment: &Segment| {
        now += Span::from_millis(1);
        endpoint.handle_segment(segment, false, &mut Context { now, random: &mut random, log: None })
    };
    let told = |rtt, delivered, acked| tcp::Outcome { rtt, delivered, acked, quiet: false };
    let first = c.segment(1 + MSS, 20_000);
    assert_eq!(hear(&mut c.endpoint, &first), told(Some(ms(51)), 0, u64::from(MSS)));
    assert_eq!(hear(&mut c.endpoint, &first), told(None, 0, 0));
    let data = |seq, len| Segment { seq, len, ..first };
    assert_eq!(hear(&mut c.endpoint, &data(1, 300)), told(None, 300, 0));
    assert_eq!(hear(&mut c.endpoint, &data(401, 300)), told(None, 0, 0), "beyond a gap");
    assert_eq!(hear(&mut c.endpoint, &data(201, 200)), told(None, 400, 0), "and all of it");
}

#[test]
fn an_application_sets_its_buffer_and_pauses() {
    let mut c = Client::new(&blind(), 4, u16::MAX);
    c.endpoint.set_receive_buffer(30_000);
    assert_eq!(c.endpoint.snapshot().receive_buffer, 30_000);
    c.endpoint.write_unlimited();
    assert_eq!(c.poll().len(), 4);
    c.endpoint.pause();
    assert_eq!(c.endpoint.unsent(), 0);
    c.wait(50);
    c.acked(4, &[]);
    assert_eq!(c.poll(), []);
    // What is written to a stream that has an end stays.
    c.endpoint.write(100);
    c.endpoint.pause();
    assert_eq!(c.poll(), [(4 * MSS, 100)]);
}

#[test]
fn a_signal_that_opens_the_window_is_followed_at_once() {
    let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
    let mut cx = Context { now: at(10), random: &mut random, log: None };
    let controller = cc::Directed::new(cc::new_reno::NewReno::new(2));
    let mut endpoint = Endpoint::connect(&blind(), controller, 99, Time::ZERO);
    endpoint.poll_transmit(&mut cx);
    endpoint.handle_segment(&syn(Flags::SYN | Flags::ACK, 100), false, &mut cx);
    endpoint.write(20_000);
    let sent = |endpoint: &mut Endpoint<_>, cx: &mut Context| {
        std::iter::from_fn(|| endpoint.poll_transmit(cx)).filter(|t| t.segment.len > 0).count()
    };
    assert_eq!(sent(&mut endpoint, &mut cx), 2);
    let target = cc::Target { window: units::Bytes::new(3 * u64::from(MSS)), pacing: None };
    endpoint.signal(&cc::Signal::Target(Some(target)), &mut cx);
    assert_eq!(sent(&mut endpoint, &mut cx), 1);
}

#[test]
fn a_lone_short_segment_marks_its_sample() {
    for (bytes, lone) in [(100, true), (u64::from(MSS), false)] {
        let mut c = Client::new(&blind(), 10, u16::MAX);
        assert_eq!(c.write(bytes).len(), 1);
        c.wait(50);
        let ack = c.segment(1 + bytes as u32, u16::MAX);
        c.hear(&ack);
        let sample = c.endpoint.controller().last.as_ref().expect("an acknowledgement");
        assert_eq!((sample.rate.maybe_delayed, sample.acked), (lone, 1), "{bytes}");
        assert_eq!((sample.delivered, sample.delivered_ce, sample.ece), (1, 0, false));
    }
}

#[test]
fn a_window_is_scaled_by_fourteen_bits_at_most() {
    for (shift, scale) in [(13, 13), (14, 14), (15, 14)] {
        let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let mut cx = Context { now: at(10), random: &mut random, log: None };
        let mut endpoint = Endpoint::connect(&plain(), fixed(10), 99, Time::ZERO);
        endpoint.poll_transmit(&mut cx);
        let options =
            Options::Syn(SynOptions { mss: 1460, window_scale: Some(shift), sack_permitted: true, reports: false });
        let answer = Segment { options, ..syn(Flags::SYN | Flags::ACK, 100) };
        endpoint.handle_segment(&answer, false, &mut cx);
        assert_eq!(endpoint.snapshot().send_window, 5_000, "that of the SYN-ACK is as it is");
        let ack = Segment { seq: 701, window: 3, flags: Flags::ACK, options: Options::Sack(Sack::NONE), ..answer };
        endpoint.write(10);
        endpoint.poll_transmit(&mut cx);
        endpoint.poll_transmit(&mut cx);
        endpoint.handle_segment(&Segment { ack: 110, ..ack }, false, &mut cx);
        assert_eq!(endpoint.snapshot().send_window, 3 << scale, "{shift}");
    }
}

#[test]
fn the_answer_to_a_repeated_syn_tells_the_round_trip_by_its_echo() {
    // The second SYN left at 1000 ms, and is answered 40 ms later; a time that has not come yet is none.
    for (echo, srtt) in [(1_000, Some(40)), (1_040, Some(1)), (1_041, None)] {
        let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let mut cx = Context { now: Time::ZERO, random: &mut random, log: None };
        let mut endpoint = Endpoint::connect(&plain(), fixed(10), 99, Time::ZERO);
        assert!(endpoint.poll_transmit(&mut cx).is_some());
        cx.now = at(1_000);
        endpoint.handle_timeout(&mut cx);
        assert!(endpoint.poll_transmit(&mut cx).is_some());
        cx.now = at(1_040);
        let timestamps = Some(Timestamps { value: 7, echo });
        endpoint.handle_segment(&Segment { timestamps, ..syn(Flags::SYN | Flags::ACK, 100) }, false, &mut cx);
        assert_eq!((endpoint.state(), endpoint.snapshot().srtt), (State::Established, srtt.map(ms)), "{echo}");
    }
}

#[test]
fn a_listener_scales_windows_if_the_peer_offers_to() {
    // Its own scale of 1, for a window of 65,536 bytes; the peer's may be 0.
    let config = Config { window_clamp: Some(65_536), ..plain() };
    for (offered, scale) in [(Some(0), Some(1)), (Some(7), Some(1)), (None, None)] {
        let mut random = <cc::Random as rand_core::SeedableRng>::seed_from_u64(1);
        let mut cx = Context { now: at(10), random: &mut random, log: None };
        let mut server = Endpoint::listen(&config, fixed(10), 99);
        let options = SynOptions { mss: 1460, window_scale: offered, sack_permitted: true, reports: false };
        server.handle_segment(&Segment { options: Options::Syn(options), ..syn(Flags::SYN, 0) }, false, &mut cx);
        let answer = server.poll_transmit(&mut cx).expect("a SYN-ACK").segment.options;
        assert!(matches!(answer, Options::Syn(options) if options.window_scale == scale), "{answer:?}");
    }
}
