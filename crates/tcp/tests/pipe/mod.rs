//! Two endpoints over a scripted pipe in virtual time, for tests that read as stories.
#![allow(dead_code, missing_docs, unreachable_pub)]

use cc::{AckSample, Congestion, Controller, Ctx, Limits, Listens, Passage, Random, Sent, Sign, Signal};
use rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use tcp::{Config, Context, Endpoint, Event, Outcome, SendBuffer, Transmit};
use units::{Bytes, Rate, Span, Time};
use wire::{Flags, Options, Segment};

/// The controls that tests take turns with: in this order in snapshots and in committed inputs.
pub const CONTROLS: [&str; 8] = ["reno", "cubic", "bbr", "vegas", "westwood", "yeah", "scalable", "mdcc"];

/// Segments one by one, and room for everything that is written.
pub fn plain() -> Config {
    Config { tso: false, send_buffer: SendBuffer::Fixed(u64::MAX), ..Config::default() }
}

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// A controller with a window that a test sets and that nothing moves, but for a time-out and what follows it. It notes
/// what it is told.
#[derive(Debug, Clone)]
pub struct Fixed {
    pub cwnd: u32,
    pub pacing: Option<Rate>,
    pub signs: Vec<Sign>,
    pub undos: u32,
    pub last: Option<AckSample>,
    pub idle: Vec<Span>,
    pub collapsed: Option<u32>,
    pub listens: Listens,
    pub passages: Vec<Passage>,
    /// Whether each of `signs` was announced.
    pub announced: Vec<bool>,
}

pub fn fixed(cwnd: u32) -> Fixed {
    Fixed {
        cwnd,
        pacing: None,
        signs: Vec::new(),
        undos: 0,
        last: None,
        idle: Vec::new(),
        collapsed: None,
        listens: Listens::default(),
        passages: Vec::new(),
        announced: Vec::new(),
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, sent: &Sent, _: &mut Ctx) {
        self.idle.extend(sent.idle);
    }
    fn on_ack(&mut self, ack: &AckSample, _: &mut Ctx) {
        self.collapsed = self.collapsed.filter(|_| ack.phase == cc::Phase::Loss).map(|cwnd| cwnd + ack.delivered);
        self.last = Some(ack.clone());
    }
    fn on_congestion(&mut self, congestion: &Congestion, _: &mut Ctx) {
        if let Sign::Timeout { .. } = congestion.sign {
            self.collapsed = Some(congestion.in_flight + 1);
        }
        self.signs.push(congestion.sign);
        self.announced.push(congestion.announced);
    }
    fn on_undo(&mut self, _: &mut Ctx) {
        self.undos += 1;
        self.collapsed = None;
    }
    fn on_signal(&mut self, signal: &Signal, _: &mut Ctx) {
        match signal {
            Signal::Passage(passage) => self.passages.push(passage.clone()),
            Signal::Target(target) => self.pacing = target.as_ref().and_then(|target| target.pacing),
            _ => {}
        }
    }
    fn listens(&self) -> Listens {
        self.listens
    }
    fn limits(&self) -> Limits {
        let cwnd = self.collapsed.map_or(self.cwnd, |cwnd| cwnd.min(self.cwnd));
        Limits { cwnd, ssthresh: 2, pacing: self.pacing, burst: 2 }
    }
    fn name(&self) -> &'static str {
        "fixed"
    }
    fn state(&self) -> &'static str {
        "fixed"
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Client,
    Server,
}
pub use Side::{Client, Server};

/// A segment as it enters the pipe.
#[derive(Clone, Debug)]
pub struct Entry {
    pub time: Time,
    pub from: Side,
    pub segment: Segment,
    pub ect: bool,
    /// Which of the sender's segments this is, and which of those with payload, from 1; a pure acknowledgement has the
    /// number of the last data segment.
    pub number: u64,
    pub data_number: u64,
}

impl Entry {
    pub fn is_data(&self) -> bool {
        self.segment.len > 0
    }
    pub fn has(&self, flags: Flags) -> bool {
        self.segment.flags.has(flags)
    }
    pub fn blocks(&self) -> Vec<(u32, u32)> {
        match &self.segment.options {
            Options::Sack(sack) => sack.blocks().iter().map(|b| (b.start, b.end)).collect(),
            Options::Syn(_) | Options::Report(_) | Options::Announcement => Vec::new(),
        }
    }
}

/// What the pipe does to a segment.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Pass,
    Drop,
    Delay(Span),
    /// A copy arrives so much later.
    Duplicate(Span),
    Mark,
}

type Script = Box<dyn FnMut(&Entry) -> Fate>;

pub struct Pipe<C> {
    pub now: Time,
    pub client: Endpoint<C>,
    pub server: Endpoint<C>,
    random: Random,
    pub delay: Span,
    /// The rate from client to server, with a queue that drops nothing.
    pub rate: Option<Rate>,
    busy_until: Time,
    script: Script,
    pub keep_log: bool,
    pub log: Vec<Entry>,
    pub events: Vec<(Time, Side, Event)>,
    pub rtts: Vec<Span>,
    flights: BinaryHeap<Reverse<(Time, u64)>>,
    carried: BTreeMap<u64, (Side, Segment, bool)>,
    serial: u64,
    /// What each side has been allowed to send up to, and the shift of the windows that it hears.
    edges: [u32; 2],
    scales: [u8; 2],
    numbers: [(u64, u64); 2],
    pub steps: u64,
    /// Checked after every input.
    pub check: fn(&Endpoint<C>),
}

pub const CLIENT_ISN: u32 = 1000;
pub const SERVER_ISN: u32 = 5000;

impl<C: Controller> Pipe<C> {
    pub fn new(config: &Config, client: C, server: C) -> Pipe<C> {
        Pipe::with(config, config, client, server, CLIENT_ISN)
    }

    pub fn with(client_config: &Config, server_config: &Config, client: C, server: C, isn: u32) -> Pipe<C> {
        Pipe {
            now: Time::ZERO,
            client: Endpoint::connect(client_config, client, isn, Time::ZERO),
            server: Endpoint::listen(server_config, server, SERVER_ISN),
            random: Random::seed_from_u64(1),
            delay: ms(50),
            rate: None,
            busy_until: Time::ZERO,
            script: Box::new(|_| Fate::Pass),
            keep_log: true,
            log: Vec::new(),
            events: Vec::new(),
            rtts: Vec::new(),
            flights: BinaryHeap::new(),
            carried: BTreeMap::new(),
            serial: 0,
            edges: [isn + 1, SERVER_ISN + 1],
            scales: [0; 2],
            numbers: [(0, 0); 2],
            steps: 0,
            check: |_| {},
        }
    }

    pub fn script(mut self, script: impl FnMut(&Entry) -> Fate + 'static) -> Pipe<C> {
        self.script = Box::new(script);
        self
    }

    /// Changes what the pipe does from now on.
    pub fn rescript(&mut self, script: impl FnMut(&Entry) -> Fate + 'static) {
        self.script = Box::new(script);
    }

    pub fn end(&mut self, side: Side) -> &mut Endpoint<C> {
        match side {
            Client => &mut self.client,
            Server => &mut self.server,
        }
    }

    fn carry(&mut self, arrives: Time, to: Side, segment: Segment, ce: bool) {
        self.serial += 1;
        self.flights.push(Reverse((arrives, self.serial)));
        self.carried.insert(self.serial, (to, segment, ce));
    }

    /// Puts a segment onto the wire, as if `from` had sent it.
    pub fn inject(&mut self, from: Side, segment: Segment) {
        let to = if from == Client { Server } else { Client };
        self.carry(self.now, to, segment, false);
    }

    fn transmit(&mut self, from: Side, Transmit { segment, ect }: Transmit) {
        let (number, data_number) = &mut self.numbers[from as usize];
        *number += 1;
        *data_number += u64::from(segment.len > 0);
        let end = segment.seq.wrapping_add(segment.seq_len());
        if segment.seq_len() > 0 && !segment.flags.has(Flags::SYN) {
            let room = self.edges[from as usize].wrapping_sub(end) as i32;
            assert!(room >= 0, "{from:?} sends {segment:?}, {} bytes beyond the window", -room);
        }
        let entry = Entry { time: self.now, from, segment, ect, number: *number, data_number: *data_number };
        let fate = (self.script)(&entry);
        let to = if from == Client { Server } else { Client };
        let mut leaves = self.now;
        if let (Some(rate), Client) = (self.rate, from) {
            let bytes = u64::from(segment.len) + u64::from(segment.header_len()) + 20;
            leaves = self.busy_until.max(self.now) + rate.time_for(Bytes::new(bytes));
            self.busy_until = leaves;
        }
        let arrives = leaves + self.delay;
        match fate {
            Fate::Pass => self.carry(arrives, to, segment, false),
            Fate::Drop => {}
            Fate::Delay(more) => self.carry(arrives + more, to, segment, false),
            Fate::Duplicate(later) => {
                self.carry(arrives, to, segment, false);
                self.carry(arrives + later, to, segment, false);
            }
            Fate::Mark => self.carry(arrives, to, segment, ect),
        }
        if self.keep_log {
            self.log.push(entry);
        }
    }

    /// Lets a side send what it may and tell what happened.
    pub fn flush(&mut self, side: Side) {
        loop {
            let mut random = self.random.clone();
            let mut cx = Context { now: self.now, random: &mut random, log: None };
            let transmit = self.end(side).poll_transmit(&mut cx);
            self.random = random;
            match transmit {
                Some(transmit) => self.transmit(side, transmit),
                None => break,
            }
        }
        while let Some(event) = self.end(side).poll_event() {
            let now = self.now;
            if self.keep_log || !matches!(event, Event::Acked(_) | Event::Delivered(_)) {
                self.events.push((now, side, event));
            }
        }
    }

    /// Notes how far a segment lets its receiver send.
    fn open_window(&mut self, to: Side, segment: &Segment) {
        let (edge, scale) = (&mut self.edges[to as usize], &mut self.scales[to as usize]);
        if let Options::Syn(options) = segment.options {
            *scale = options.window_scale.unwrap_or(0);
        }
        // The window of a SYN is not scaled (RFC 7323 section 2.2).
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { *scale };
        let base = if segment.flags.has(Flags::ACK) { segment.ack } else { *edge };
        let open = base.wrapping_add(u32::from(segment.window) << shift);
        if (open.wrapping_sub(*edge) as i32) > 0 {
            *edge = open;
        }
    }

    fn input(&mut self, side: Side, act: impl FnOnce(&mut Endpoint<C>, &mut Context) -> Outcome) {
        let mut random = self.random.clone();
        let mut cx = Context { now: self.now, random: &mut random, log: None };
        let outcome = act(self.end(side), &mut cx);
        self.random = random;
        if side == Client {
            self.rtts.extend(outcome.rtt);
        }
        self.flush(side);
        let check = self.check;
        check(self.end(side));
        self.steps += 1;
        assert!(self.steps < 20_000_000, "the connection does not come to rest at {}", self.now);
    }

    fn next_time(&self) -> Option<Time> {
        let flight = self.flights.peek().map(|Reverse((time, _))| *time);
        [flight, self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    /// Runs until `end`, or until nothing is left to happen.
    pub fn run_until(&mut self, end: Time) {
        self.flush(Client);
        self.flush(Server);
        while let Some(time) = self.next_time().filter(|&time| time <= end) {
            self.now = self.now.max(time);
            if let Some(&Reverse((arrives, serial))) = self.flights.peek()
                && arrives <= self.now
            {
                self.flights.pop();
                let (to, segment, ce) = self.carried.remove(&serial).expect("it was carried");
                self.open_window(to, &segment);
                self.input(to, |endpoint, cx| endpoint.handle_segment(&segment, ce, cx));
                continue;
            }
            for side in [Client, Server] {
                if self.end(side).poll_timeout().is_some_and(|due| due <= self.now) {
                    self.input(side, |endpoint, cx| {
                        endpoint.handle_timeout(cx);
                        Outcome::default()
                    });
                }
            }
        }
        if end != Time::MAX {
            self.now = end;
        }
    }

    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.run_until(Time::MAX);
    }

    pub fn write(&mut self, side: Side, bytes: u64) {
        self.end(side).write(bytes);
        self.flush(side);
    }

    pub fn close(&mut self, side: Side) {
        self.end(side).close();
        self.flush(side);
    }

    // What happened.

    pub fn sent(&self, from: Side) -> Vec<&Entry> {
        self.log.iter().filter(|e| e.from == from).collect()
    }

    pub fn data(&self, from: Side) -> Vec<&Entry> {
        self.log.iter().filter(|e| e.from == from && e.is_data()).collect()
    }

    /// Pure acknowledgements.
    pub fn acks(&self, from: Side) -> Vec<&Entry> {
        let other = |e: &&Entry| e.has(Flags::SYN) || e.has(Flags::FIN) || e.has(Flags::RST);
        self.log.iter().filter(|e| e.from == from && !e.is_data()).filter(|e| !other(e)).collect()
    }

    /// When each data segment left, in milliseconds, with its number in the stream of full segments.
    pub fn data_story(&self, from: Side) -> Vec<(u64, u32)> {
        let isn = if from == Client { CLIENT_ISN } else { SERVER_ISN };
        let story = |e: &&Entry| (e.time.as_nanos() / 1_000_000, (e.segment.seq.wrapping_sub(isn + 1)) / 1448);
        self.data(from).iter().map(story).collect()
    }

    pub fn has_event(&self, side: Side, event: Event) -> bool {
        self.events.iter().any(|&(_, s, e)| s == side && e == event)
    }

    pub fn delivered(&self, side: Side) -> u64 {
        match side {
            Client => self.client.stats().bytes_received,
            Server => self.server.stats().bytes_received,
        }
    }
}

/// A connection that is established at 100 ms (50 ms each way), with fixed windows and no receive window to think of.
pub fn connected(cwnd: u32) -> Pipe<Fixed> {
    connected_with(&Config { receive_buffer: 8 << 20, receive_buffer_max: 8 << 20, ..plain() }, cwnd)
}

pub fn connected_with(config: &Config, cwnd: u32) -> Pipe<Fixed> {
    let mut pipe = Pipe::new(config, fixed(cwnd), fixed(cwnd));
    pipe.run_until(at(1000));
    assert!(pipe.has_event(Client, Event::Connected) && pipe.has_event(Server, Event::Connected));
    pipe.log.clear();
    pipe.numbers = [(0, 0); 2];
    pipe
}
