//! Facts about a client whose peer is a script: each segment that it hears is written down, and so is the time between.

mod pipe;
use pipe::*;
use tcp::{Config, Context, Endpoint, State};
use units::{Span, Time};
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
