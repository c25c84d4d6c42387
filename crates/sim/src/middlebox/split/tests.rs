//! Two hosts whose connection is split: whatever the network and the hosts do, each byte arrives once and in order, no end of
//! a stream is told before its last byte, resets pass, memory is bounded, and in the end nothing is left.

use super::super::interface::{Origin, Way};
use super::*;
use rand_xoshiro::rand_core::SeedableRng;
use tcp::Config;
use units::Span;
use wire::Flags;

/// The most that a side takes from the other and has not sent, in bytes.
const UNSENT: u64 = 20_000;
/// The receive buffers of the proxy and of the hosts.
const BUFFER: u32 = 16_000;
/// One-way delay of each leg.
const DELAY: Span = Span::from_millis(5);

/// What a host does. The first byte is the host.
#[derive(Clone, Copy, Debug, bolero::TypeGenerator)]
enum Act {
    Write(bool, u16),
    Close(bool),
    Abort(bool),
    /// It does not read until it does again.
    Stall(bool),
    Read(bool),
    Wait(u8),
}

struct Host {
    endpoint: Endpoint<AnyController>,
    written: u64,
    read: u64,
    is_reading: bool,
    has_closed: bool,
    end_seen: bool,
    failed: bool,
}

/// A segment on its way.
struct Flight {
    at: Time,
    leg: Leg,
    to_host: bool,
    segment: Segment,
}

struct Lab {
    now: Time,
    hosts: [Host; 2],
    split: Split,
    flights: Vec<Flight>,
    fates: Vec<u8>,
    random: Random,
    /// A reset was lost, or came before data that was: its receiver may stay.
    reset_missed: bool,
}

fn config() -> Config {
    Config { auto_read: false, receive_buffer: BUFFER, receive_buffer_max: BUFFER, ..Config::default() }
}

fn controller() -> AnyController {
    AnyController::by_name("cubic", cc::INITIAL_WINDOW).expect("it exists")
}

impl Lab {
    fn new(opener: Leg, fates: &[u8]) -> Lab {
        let mut random = Random::seed_from_u64(1);
        let hosts = Leg::BOTH.map(|leg| {
            let endpoint = if leg == opener {
                Endpoint::connect(&config(), controller(), 7, Time::ZERO)
            } else {
                Endpoint::listen(&config(), controller(), 9)
            };
            let (written, read, is_reading) = (0, 0, true);
            Host { endpoint, written, read, is_reading, has_closed: false, end_seen: false, failed: false }
        });
        let way = (Way { tap: 0, origin: Origin::Visitor(0) }, true);
        let split = Split::new(opener, (way, 0), &config(), controller, UNSENT, (&mut random, Time::ZERO));
        let mut lab =
            Lab { now: Time::ZERO, hosts, split, flights: Vec::new(), fates: Vec::new(), random, reset_missed: false };
        // A SYN that arrives is what the proxy splits.
        lab.run_until(Time::ZERO + DELAY);
        lab.fates = fates.iter().rev().copied().collect();
        lab
    }

    /// Puts a segment onto a leg.
    fn carry(&mut self, leg: Leg, to_host: bool, segment: Segment) {
        let fate = self.fates.pop().unwrap_or(0);
        let mut fly = |after: Span| self.flights.push(Flight { at: self.now + after, leg, to_host, segment });
        match fate {
            0..=149 => fly(DELAY),
            150..=199 => self.reset_missed |= segment.flags.has(Flags::RST),
            200..=229 => fly(DELAY + Span::from_millis(u64::from(fate - 199) * 2)),
            230..=255 => {
                fly(DELAY);
                fly(DELAY + Span::from_millis(u64::from(fate - 229)));
            }
        }
    }

    /// Lets all do what they can do now.
    fn settle(&mut self) {
        loop {
            let mut sent = Vec::new();
            let Lab { split, hosts, now, random, .. } = self;
            let mut cx = Context { now: *now, random, log: None };
            while let Some((leg, transmit, _)) = split.poll_transmit(&mut cx) {
                sent.push((leg, true, transmit.segment));
            }
            for (leg, host) in Leg::BOTH.into_iter().zip(hosts) {
                if host.is_reading {
                    host.read += host.endpoint.read(u64::MAX, cx.now);
                }
                while let Some(event) = host.endpoint.poll_event() {
                    match event {
                        Event::PeerClosed => host.end_seen = true,
                        Event::Reset | Event::TimedOut => host.failed = true,
                        Event::Connected | Event::Acked(_) | Event::Delivered(_) | Event::Closed => {}
                    }
                }
                while let Some(transmit) = host.endpoint.poll_transmit(&mut cx) {
                    sent.push((leg, false, transmit.segment));
                }
            }
            self.check();
            if sent.is_empty() {
                return;
            }
            for (leg, to_host, segment) in sent {
                self.carry(leg, to_host, segment);
            }
        }
    }

    /// What must hold at any time.
    fn check(&self) {
        for leg in Leg::BOTH {
            let (host, peer) = (&self.hosts[leg as usize], &self.hosts[leg.other() as usize]);
            assert!(host.read <= peer.written, "{leg:?}: more arrived than was sent");
            if host.end_seen && host.endpoint.readable() == 0 {
                assert!(
                    peer.has_closed && host.read == peer.written,
                    "{leg:?}: the end of a stream that has not ended"
                );
            }
            let side = self.split.endpoint(leg);
            assert!(side.unsent() <= UNSENT && side.readable() <= u64::from(BUFFER), "{leg:?}: {side:?}");
        }
    }

    fn run_until(&mut self, end: Time) {
        self.settle();
        loop {
            let due = self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout());
            let due = due.chain(self.split.poll_timeout()).chain(self.flights.iter().map(|flight| flight.at));
            let Some(next) = due.min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            let mut cx = Context { now: self.now, random: &mut self.random, log: None };
            let (arrived, flights): (Vec<Flight>, Vec<Flight>) =
                std::mem::take(&mut self.flights).into_iter().partition(|flight| flight.at <= cx.now);
            self.flights = flights;
            let mut answers = Vec::new();
            for Flight { leg, to_host, segment, .. } in arrived {
                let host = &mut self.hosts[leg as usize];
                let endpoint = if to_host { &host.endpoint } else { self.split.endpoint(leg) };
                // Kernels answer for connections that they no longer have.
                if endpoint.is_over() && (host.failed || !to_host) {
                    answers.extend(segment.refusal().map(|answer| (leg, !to_host, answer)));
                    continue;
                }
                if to_host {
                    host.endpoint.handle_segment(&segment, false, &mut cx);
                } else {
                    self.split.handle_segment(leg, &segment, (cx.now, false), &mut cx);
                }
                let endpoint = if to_host { &host.endpoint } else { self.split.endpoint(leg) };
                self.reset_missed |= segment.flags.has(Flags::RST) && endpoint.state() != State::Closed;
            }
            for host in &mut self.hosts {
                if host.endpoint.poll_timeout().is_some_and(|due| due <= cx.now) {
                    host.endpoint.handle_timeout(&mut cx);
                }
            }
            if self.split.poll_timeout().is_some_and(|due| due <= cx.now) {
                self.split.handle_timeout(&mut cx);
            }
            for (leg, to_host, answer) in answers {
                self.carry(leg, to_host, answer);
            }
            self.settle();
        }
        self.now = end;
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Write(host, bytes) => {
                let host = &mut self.hosts[usize::from(host)];
                if !host.has_closed && !host.failed {
                    host.endpoint.write_all(u64::from(bytes));
                    host.written += u64::from(bytes);
                }
            }
            Act::Close(host) => {
                let host = &mut self.hosts[usize::from(host)];
                // Before a connection there is nothing to close.
                if host.endpoint.state() != State::Listen {
                    host.endpoint.close();
                    host.has_closed = true;
                }
            }
            Act::Abort(host) => {
                let host = &mut self.hosts[usize::from(host)];
                host.endpoint.abort();
                host.failed = true;
            }
            Act::Stall(host) => self.hosts[usize::from(host)].is_reading = false,
            Act::Read(host) => self.hosts[usize::from(host)].is_reading = true,
            Act::Wait(ms) => self.run_until(self.now + Span::from_millis(u64::from(ms))),
        }
    }
}

fn live(opener: bool, acts: &[Act], fates: &[u8]) {
    let mut lab = Lab::new(if opener { Leg::Radio } else { Leg::Wired }, fates);
    for act in acts {
        lab.act(*act);
    }
    // Then the network is as it should be, and both read and close.
    lab.fates.clear();
    for host in [false, true] {
        lab.act(Act::Read(host));
        lab.act(Act::Close(host));
    }
    lab.run_until(lab.now + Span::from_secs(20));
    // Whoever only listened has a connection now.
    for host in [false, true] {
        lab.act(Act::Close(host));
    }
    // A host whose reset was lost on the way to it gives up after a quarter of an hour.
    lab.run_until(lab.now + Span::from_secs(2000));
    if lab.reset_missed {
        // Nobody tells a side with nothing to send that its host has gone.
        return;
    }
    let failed = lab.hosts.iter().any(|host| host.failed);
    for (leg, host) in Leg::BOTH.into_iter().zip(&lab.hosts) {
        let peer = &lab.hosts[leg.other() as usize];
        assert!(
            host.endpoint.is_over() || failed && host.endpoint.state() == State::Listen,
            "{leg:?}: {:?}",
            host.endpoint
        );
        if !failed {
            assert!(host.end_seen && host.read == peer.written, "{leg:?}: {} of {}", host.read, peer.written);
        } else if !host.failed && host.endpoint.is_over() {
            // It was not told of a failure: both streams had ended before.
            assert!(host.end_seen && host.read == peer.written, "{leg:?}: cut short without a reset");
        }
    }
    assert!(lab.split.is_over(), "{:?} {:?}", lab.split.endpoint(Leg::Wired), lab.split.endpoint(Leg::Radio));
}

#[test]
fn streams_pass_whole_whatever_hosts_and_network_do() {
    bolero::check!().with_iterations(20_000).with_max_len(2000).with_type::<(bool, Vec<Act>, Vec<u8>)>().for_each(
        |(opener, acts, fates)| {
            live(*opener, acts, fates);
        },
    );
}

#[test]
fn a_half_closed_connection_carries_the_other_direction() {
    let mut lab = Lab::new(Leg::Radio, &[]);
    lab.act(Act::Write(true, 500));
    lab.act(Act::Close(true));
    lab.act(Act::Wait(100));
    assert!(lab.hosts[0].end_seen && lab.hosts[0].read == 500);
    lab.act(Act::Write(false, 60_000));
    lab.run_until(lab.now + Span::from_secs(2));
    assert_eq!((lab.hosts[1].read, lab.hosts[1].end_seen), (60_000, false));
    lab.act(Act::Close(false));
    lab.run_until(lab.now + Span::from_secs(5));
    assert!(lab.hosts[1].end_seen && lab.split.has_ended());
}

#[test]
fn a_reader_that_stalls_holds_back_its_own_sender() {
    let mut lab = Lab::new(Leg::Wired, &[]);
    lab.act(Act::Stall(true));
    for _ in 0..4 {
        lab.act(Act::Write(false, 60_000));
    }
    lab.run_until(lab.now + Span::from_secs(60));
    // What the reader's and the proxy's buffers hold has left the sender.
    let held = lab.hosts[0].written - lab.hosts[0].endpoint.unsent();
    assert!((30_000..60_000).contains(&held), "{held}");
    lab.act(Act::Read(true));
    // Probes of a window of zero are up to two minutes apart.
    lab.run_until(lab.now + Span::from_secs(130));
    assert_eq!(lab.hosts[1].read, 240_000);
}

#[test]
fn a_reset_passes_in_both_directions() {
    for host in [false, true] {
        let mut lab = Lab::new(Leg::Radio, &[]);
        lab.act(Act::Write(false, 30_000));
        lab.act(Act::Wait(200));
        lab.act(Act::Abort(host));
        lab.act(Act::Wait(100));
        assert!(lab.hosts[usize::from(!host)].failed && !lab.hosts[usize::from(!host)].end_seen);
        assert!(lab.split.is_over());
    }
}
