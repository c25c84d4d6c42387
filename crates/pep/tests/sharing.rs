//! Downloads from a server past a PEP to phones, in a simulation of their own, so that everything in it can be forged: what a
//! liar gains, and what a PEP's restart costs.

use cc::{AnyController, Random};
use pep::{Config as PepConfig, Pep};
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use tcp::{Config, Context, Endpoint};
use units::{Span, Time};
use wire::report::{Key, Report};
use wire::{Flags, Options, Segment};

/// Server to border, and border to phone.
const WIRE: Span = Span::from_millis(5);
const RADIO: Span = Span::from_millis(10);
/// 35 Mbit/s: a packet of 1500 bytes.
const PACKET_TIME: Span = Span::from_nanos(342_857);
const IP: u32 = 20;
const KEY: Key = Key::new([5; 16]);

/// What is to happen to a segment of a connection.
#[derive(Clone, Copy)]
enum Step {
    /// The sender's arrives at the border, the phone; the phone's arrives at the border; anything arrives at the server.
    Border,
    Phone,
    Back,
    Server,
}

struct World {
    now: Time,
    agenda: BTreeMap<(Time, u64), (usize, Step, Segment)>,
    serial: u64,
    servers: Vec<Endpoint<AnyController>>,
    phones: Vec<Endpoint<AnyController>>,
    random: Random,
    pep: Option<Pep<usize>>,
    /// The bottleneck is before the border, and the radio loses this share of the packets.
    wired: bool,
    loss: f64,
    /// When those that wait in the bottleneck, of which there are so many at most, have left.
    leaving: VecDeque<Time>,
    queue: usize,
    /// Reports all that a connection sends as having passed, with a tag of this key if there is one.
    liar: Option<(usize, Option<Key>)>,
}

impl World {
    fn new(controls: &[&str], report_key: Option<Key>) -> World {
        let controller = |name: &str| AnyController::by_name(name, cc::INITIAL_WINDOW).expect("it is known");
        let config = Config { report_key, receive_buffer: 16 << 20, receive_buffer_max: 16 << 20, ..Config::default() };
        let isn = |at: usize| 0xffff_0000 + 7_919 * at as u32;
        World {
            now: Time::ZERO,
            agenda: BTreeMap::new(),
            serial: 0,
            servers: (0..).zip(controls).map(|(at, cc)| Endpoint::listen(&config, controller(cc), isn(at))).collect(),
            phones: controls.iter().map(|_| Endpoint::connect(&config, controller("cubic"), 99, Time::ZERO)).collect(),
            random: Random::seed_from_u64(11),
            pep: None,
            wired: false,
            loss: 0.0,
            leaving: VecDeque::new(),
            queue: 100,
            liar: None,
        }
    }

    fn after(&mut self, delay: Span, at: usize, step: Step, segment: Segment) {
        self.serial += 1;
        self.agenda.insert((self.now + delay, self.serial), (at, step, segment));
    }

    /// The bottleneck; the wait there, unless it is full.
    fn bottleneck(&mut self) -> Option<Span> {
        while self.leaving.front().is_some_and(|&left| left <= self.now) {
            self.leaving.pop_front();
        }
        if self.leaving.len() >= self.queue {
            return None;
        }
        let left = self.leaving.back().map_or(self.now, |&last| last.max(self.now)) + PACKET_TIME;
        self.leaving.push_back(left);
        Some(left.saturating_since(self.now))
    }

    /// A segment leaves the server.
    fn leave(&mut self, at: usize, segment: Segment) {
        if let Some((liar, key)) = self.liar
            && liar == at
            && segment.len > 0
        {
            let mut report = Report::new(1, segment.seq_len() + 1);
            let timestamps = segment.timestamps.map(|t| wire::Timestamps { value: t.echo, echo: t.value });
            let ack = segment.seq.wrapping_sub(1);
            key.zip(timestamps).into_iter().for_each(|(key, stamps)| report.authenticate(key, ack, stamps));
            let (seq, options) = (segment.ack, Options::Report(report));
            let forged = Segment { seq, ack, window: 9, len: 0, flags: Flags::ACK, timestamps, options };
            self.after(Span::from_millis(1), at, Step::Server, forged);
        }
        let wait = if self.wired && segment.len > 0 { self.bottleneck() } else { Some(Span::ZERO) };
        if let Some(wait) = wait {
            self.after(wait + WIRE, at, Step::Border, segment);
        }
    }

    fn pass_border(&mut self, at: usize, segment: Segment) {
        let packet_len = IP + segment.header_len() + u32::from(segment.len);
        if let Some(report) = self.pep.as_mut().and_then(|pep| pep.on_data(at, &segment, packet_len, self.now)) {
            self.after(WIRE, at, Step::Server, report);
        }
        let wait = if !self.wired && segment.len > 0 { self.bottleneck() } else { Some(Span::ZERO) };
        let lost = segment.len > 0 && f64::from(self.random.next_u32()) < self.loss * f64::from(u32::MAX);
        if let Some(wait) = wait.filter(|_| !lost) {
            self.after(wait + RADIO, at, Step::Phone, segment);
        }
    }

    /// Both ends of a connection send what they may.
    fn flush(&mut self, at: usize) {
        loop {
            let mut cx = Context { now: self.now, random: &mut self.random, log: None };
            let (out, back) = (self.servers[at].poll_transmit(&mut cx), self.phones[at].poll_transmit(&mut cx));
            if out.is_none() && back.is_none() {
                break;
            }
            if let Some(out) = out {
                self.leave(at, out.segment);
            }
            if let Some(back) = back {
                self.after(RADIO, at, Step::Back, back.segment);
            }
        }
        for end in [&mut self.servers[at], &mut self.phones[at]] {
            while end.poll_event().is_some() {}
        }
    }

    fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        (0..self.servers.len()).for_each(|at| self.flush(at));
        loop {
            let next = self.agenda.first_key_value().map(|(&(time, _), _)| time);
            let timers = self.servers.iter().chain(&self.phones).filter_map(Endpoint::poll_timeout).min();
            let Some(time) = next.into_iter().chain(timers).min().filter(|&time| time <= end) else { break };
            self.now = self.now.max(time);
            let due = self.agenda.first_entry().filter(|entry| entry.key().0 <= self.now);
            let Some((at, step, segment)) = due.map(std::collections::btree_map::OccupiedEntry::remove) else {
                for at in 0..self.servers.len() {
                    let mut cx = Context { now: self.now, random: &mut self.random, log: None };
                    self.servers[at].handle_timeout(&mut cx);
                    self.phones[at].handle_timeout(&mut cx);
                    self.flush(at);
                }
                continue;
            };
            let mut cx = Context { now: self.now, random: &mut self.random, log: None };
            match step {
                Step::Border => self.pass_border(at, segment),
                Step::Phone => drop(self.phones[at].handle_segment(&segment, false, &mut cx)),
                Step::Server => drop(self.servers[at].handle_segment(&segment, false, &mut cx)),
                Step::Back => {
                    if let Some(pep) = &mut self.pep {
                        pep.on_reply(at, &segment, self.now);
                    }
                    self.after(WIRE, at, Step::Server, segment);
                }
            }
            if matches!(step, Step::Phone | Step::Server) {
                self.flush(at);
            }
        }
        self.now = end;
    }

    /// The server sends without end.
    fn begin(&mut self) {
        self.run_for(Span::from_millis(100));
        self.servers.iter_mut().for_each(Endpoint::write_unlimited);
    }

    /// What each connection gets, in Mbit/s.
    fn goodput(&mut self, seconds: u64) -> Vec<f64> {
        let bytes = |world: &World| -> Vec<u64> { world.servers.iter().map(|end| end.stats().bytes_acked).collect() };
        let before = bytes(self);
        self.run_for(Span::from_secs(seconds));
        bytes(self).iter().zip(before).map(|(after, before)| (after - before) as f64 * 8e-6 / seconds as f64).collect()
    }
}

/// What a connection gets of a wired bottleneck beside CUBIC if a liar reports for it.
fn share(control: &str, report_key: Option<Key>, liar: Option<Option<Key>>) -> (f64, Vec<f64>) {
    let mut world = World::new(&[control, "cubic"], report_key);
    world.wired = true;
    world.liar = liar.map(|key| (0, key));
    world.begin();
    world.run_for(Span::from_secs(10));
    let got = world.goodput(120);
    (got[0] / (got[0] + got[1]), got)
}

#[test]
fn forged_reports_gain_nothing_where_there_is_a_key() {
    let (fair, cubics) = share("cubic", None, None);
    eprintln!("CUBIC and CUBIC: {cubics:.1?} Mbit/s");
    assert!((fair - 0.5).abs() < 0.05, "{cubics:?}");
    for (what, key) in [("without a tag", None), ("with another key's tag", Some(Key::new([6; 16])))] {
        let (share, got) = share("mdcc", Some(KEY), Some(key));
        eprintln!("{what}: {got:.1?} Mbit/s");
        assert!((share - 0.5).abs() < 0.05, "{what}: {got:?}");
    }
    // What the key protects from.
    for (report_key, key) in [(None, None), (Some(KEY), Some(KEY))] {
        let (share, got) = share("mdcc", report_key, Some(key));
        eprintln!("believed: {got:.1?} Mbit/s");
        assert!(share > 0.7, "the lie is told: {got:?}");
    }
}

/// A download over a radio that loses packets, with a PEP.
fn download(key: Option<Key>) -> World {
    let mut world = World::new(&["mdcc"], key);
    world.loss = 1e-3;
    world.queue = 1_000;
    world.pep = Some(Pep::new(PepConfig { key, ..PepConfig::default() }));
    world.begin();
    world.run_for(Span::from_secs(5));
    world
}

#[test]
fn a_key_costs_no_throughput() {
    let [without, with] = [None, Some(KEY)].map(|key| download(key).goodput(60)[0]);
    eprintln!("without a key {without:.1} Mbit/s, with one {with:.1} Mbit/s");
    assert!((with / without - 1.0).abs() < 0.05, "{without} and {with}");
}

#[test]
fn a_connection_is_served_again_after_a_pep_was_started_anew() {
    let mut world = download(None);
    let served = world.goodput(60)[0];
    world.pep = None;
    let alone = world.goodput(60)[0];
    world.pep = Some(Pep::new(PepConfig::default()));
    world.run_for(Span::from_secs(65));
    let again = world.goodput(60)[0];
    eprintln!("served {served:.1} Mbit/s, alone {alone:.1} Mbit/s, served again {again:.1} Mbit/s");
    assert!(served > 1.5 * alone, "{served} and {alone}");
    assert!((again / served - 1.0).abs() < 0.1, "{served} and {again}");
    // A restart that takes no time is noticed and over within seconds.
    world.pep = Some(Pep::new(PepConfig::default()));
    world.run_for(Span::from_secs(3));
    let again = world.goodput(60)[0];
    assert!((again / served - 1.0).abs() < 0.1, "{served} and {again} at once");
}

#[test]
fn a_connection_is_served_again_after_hours_without_data() {
    let mut world = download(None);
    let served = world.goodput(200)[0];
    world.servers[0].pause();
    world.run_for(Span::from_secs(4 * 3_600));
    let before = world.pep.as_ref().map(Pep::stats).unwrap_or_default();
    assert_eq!(before.flows, 1);
    world.servers[0].write_unlimited();
    world.run_for(Span::from_secs(5));
    let again = world.goodput(200)[0];
    eprintln!("before {served:.1} Mbit/s, after {again:.1} Mbit/s");
    assert!((again / served - 1.0).abs() < 0.1, "{served} and {again}");
}
