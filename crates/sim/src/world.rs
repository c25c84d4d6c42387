//! One run: the parts, and the loop that calls them.
//!
//! A packet's way: an application's [`Action`] makes its endpoint give segments out ([`World::pump`]); each enters the
//! first link of its route ([`Network::send`]); the agenda calls the link when the packet has crossed it, and it enters
//! the next, or arrives ([`World::arrive`]) at the endpoint of the other end, whose answer goes the same way back.

use crate::live::Arrival;
use crate::lte::Radio;
use crate::meter::{Identity, Level, Life, Meter};
use crate::network::{Carrier, InTransit, Network, Place};
use crate::packet::{Body, End, Owner, Packet, Parcel, Visitor};
use crate::topology::{self, Recordings};
use crate::watch::Happening;
use crate::{Error, setup};
use aqm::{Ecn, Packet as _};
use cc::{AnyController, Random};
use channel::Direction;
use des::{Agenda, Part, Streams};
use record::tables::{LinkRow, QueueRow, TransferRow};
use record::{Output, Tables, ms};
use scenario::{Scenario, Transport};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use tcp::{Context, Endpoint, Event};
use traffic::{Action, App, Notice, Side};
use units::{Bytes, Rate, Span, Time};

/// How often a run looks whether it should stop and tells how far it is, in simulated time.
const LOOK: Span = Span::from_millis(500);

/// What a part's number stands for.
#[derive(Clone, Copy)]
enum Kind {
    Link(u32),
    End(u32, End),
    Flow(u32),
    Radio,
    Sample,
    WarmedUp,
}

/// A connection: its two endpoints.
struct Connection {
    ends: [Endpoint<AnyController>; 2],
    parts: [Part; 2],
    flow: u32,
    /// The application's number of it.
    number: u32,
    generation: u32,
    level: Level,
}

/// A flow: an application, its connections, its meter.
struct Flow {
    /// Index of its description in the scenario.
    of: usize,
    /// Whether the application hears of each delivery.
    follows_delivery: bool,
    priority: u8,
    /// Which of the description's copies.
    copy: u32,
    app: App,
    part: Part,
    config: tcp::Config,
    /// Indices of the routes towards each end.
    routes: [u32; 2],
    start: Time,
    /// The connections that live: the application's number and ours.
    connections: Vec<(u32, u32)>,
    meter: Meter,
    random: Random,
    finished: bool,
    datagrams: u64,
}

/// What a finished run leaves.
pub(crate) struct Done {
    pub(crate) tables: Tables,
    pub(crate) simulated: Span,
    pub(crate) events: u64,
    pub(crate) packets: u64,
}

/// What a link had counted at a moment: bytes and packets served, and a trace's bytes that passed unused.
#[derive(Clone, Copy, Default)]
struct Sampled {
    served: u64,
    packets: u64,
    wasted: u64,
}

/// Everything of one run.
pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    point: u32,
    run: u32,
    streams: Streams,
    agenda: Agenda,
    /// By part number.
    kinds: Vec<Kind>,
    pub(crate) network: Network,
    flows: Vec<Flow>,
    connections: Vec<Option<Box<Connection>>>,
    /// Indices of `connections` that are free.
    free: Vec<u32>,
    generation: u32,
    /// Endpoints and flows that something happened to and that have not been looked at since.
    touched: Vec<(u32, End)>,
    stirred: Vec<u32>,
    tables: Tables,
    /// Links' counters at the end of the warm-up.
    link_before: Vec<(link::Stats, u64, f64)>,
    /// What the links had counted at the last sample.
    link_sampled: Vec<Sampled>,
    packets: u64,
    /// Visitors that have come to the end of their route and nobody has asked for yet.
    pub(crate) arrived: VecDeque<Arrival>,
}

impl<'a> World<'a> {
    /// Sets up run `run` of a scenario, which is the point `point` of its sweep; `live` if visitors come and links change
    /// while it runs.
    pub(crate) fn new(
        scenario: &'a Scenario,
        point: u32,
        run: u32,
        recordings: &Recordings,
        output: Option<&Output>,
        live: bool,
    ) -> Result<World<'a>, Error> {
        let streams = Streams::new(scenario.seed, run.into());
        let mut world = World {
            scenario,
            point,
            run,
            streams,
            agenda: Agenda::new(),
            kinds: Vec::new(),
            network: Network::default(),
            flows: Vec::new(),
            connections: Vec::new(),
            free: Vec::new(),
            generation: 0,
            touched: Vec::new(),
            stirred: Vec::new(),
            tables: Tables::default(),
            link_before: vec![Default::default(); scenario.links.len()],
            link_sampled: vec![Default::default(); scenario.links.len()],
            packets: 0,
            arrived: VecDeque::new(),
        };
        let traces = &recordings.traces;
        let begin = topology::trace_offset(scenario, traces, &streams);
        for (i, of) in scenario.links.iter().enumerate() {
            let part = world.part(Kind::Link(i as u32));
            let service = topology::service(of, scenario.duration, traces, begin, &streams);
            let link = topology::link(of, service, &streams, !live);
            world.network.places.push(Place::new(of.name.clone(), link, part));
        }
        if let Some(lte) = &scenario.lte {
            let part = world.part(Kind::Radio);
            let radio = Radio::new(scenario, lte, (point, run), &recordings.channels, &streams, part);
            world.agenda.wake(part, radio.poll_timeout());
            world.network.radio = Some(Box::new(radio));
            for (ue, of) in (0..).zip(&lte.ues) {
                let hops = [
                    (format!("radio-{}", of.name), Direction::Downlink),
                    (format!("radio-{}-reverse", of.name), Direction::Uplink),
                ];
                let place = |(name, direction)| Place::new(name, Carrier::Radio(ue, direction), part);
                world.network.places.extend(hops.map(place));
            }
        }
        let names: Vec<String> = world.network.places.iter().map(|place| place.name.clone()).collect();
        let links: BTreeMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        for (i, of) in scenario.flows.iter().enumerate() {
            world.add_flows(i, of, &links)?;
        }
        // The last one is of all visitors together.
        world.network.traffic.lost = vec![0; world.flows.len() + 1];
        world.network.traffic.watch = setup::watch(scenario, &names, (point, run), output)?;
        world.network.connect();
        if let Some(interval) = scenario.record.samples.interval() {
            let part = world.part(Kind::Sample);
            world.agenda.wake(part, Some(Time::ZERO + interval));
        }
        if scenario.warmup > Span::ZERO {
            let part = world.part(Kind::WarmedUp);
            world.agenda.wake(part, Some(Time::ZERO + scenario.warmup));
        }
        Ok(world)
    }

    fn add_flows(&mut self, of: usize, flow: &scenario::Flow, links: &BTreeMap<&str, u32>) -> Result<(), Error> {
        let index = |name: &String| links[name.as_str()];
        let towards_to: Box<[u32]> = flow.route.iter().map(index).collect();
        let towards_from: Box<[u32]> = flow.return_route.iter().map(index).collect();
        let routes = [self.network.routes.len() as u32, self.network.routes.len() as u32 + 1];
        self.network.routes.extend([towards_from, towards_to]);
        if flow.transport() == Transport::Tcp {
            self.place_peps(routes[End::To as usize], routes[End::From as usize]);
        }
        let config = topology::application(flow);
        for copy in 0..flow.count {
            let name = format!("flow {} {copy}", flow.name);
            let mut random = self.streams.named(&name);
            let start = Time::ZERO
                + flow.start
                + flow.stagger * copy.into()
                + setup::jitter(flow.start_jitter, &mut self.streams.named(&format!("{name} start")));
            let app = App::new(&config, start, flow.stop.map(|s| Time::ZERO + s), random.clone())
                .map_err(|e| Error::Flow { flow: flow.name.clone(), what: e.to_string() })?;
            // The controllers and the application draw from different parts of the flow's stream.
            random.long_jump();
            let number = self.flows.len() as u32;
            let part = self.part(Kind::Flow(number));
            self.agenda.wake(part, app.poll_timeout());
            self.flows.push(Flow {
                of,
                follows_delivery: app.follows_delivery(),
                priority: flow.priority,
                copy,
                app,
                part,
                config: setup::tcp(&flow.tcp),
                routes,
                start,
                connections: Vec::new(),
                meter: Meter::default(),
                random,
                finished: false,
                datagrams: 0,
            });
        }
        Ok(())
    }

    fn part(&mut self, kind: Kind) -> Part {
        let part = self.agenda.add_part();
        let place = part.0 as usize;
        if place == self.kinds.len() {
            self.kinds.push(kind);
        } else {
            self.kinds[place] = kind;
        }
        part
    }

    /// Runs to the end; `None` if it was stopped before. `tell` hears of simulated time as it passes.
    pub(crate) fn run(mut self, stop: &AtomicBool, tell: &dyn Fn(Span)) -> Result<Option<Done>, Error> {
        let end = Time::ZERO + self.scenario.duration;
        let mut told = Time::ZERO;
        while told < end {
            let until = end.min(told + LOOK);
            while let Some(part) = self.agenda.next(until) {
                self.call(part);
            }
            self.network.write_before(until);
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            tell(until - told);
            told = until;
        }
        self.finish(end).map(Some)
    }

    /// Does what is due until `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(part) = self.agenda.next(now) {
            self.call(part);
        }
        self.agenda.pass(now);
        self.network.write_before(now);
    }

    /// The present.
    pub(crate) fn now(&self) -> Time {
        self.agenda.now()
    }

    /// The radio network may want to be called earlier than it has said.
    pub(crate) fn look_at_radio(&mut self) {
        if let Some(radio) = &self.network.radio {
            self.agenda.wake(radio.part, radio.poll_timeout());
        }
    }

    /// A link has this rate from now on.
    pub(crate) fn set_rate(&mut self, name: &str, rate: Rate) -> Result<(), String> {
        let places = &mut self.network.places[..self.scenario.links.len()];
        let Some(place) = places.iter_mut().find(|place| place.name == name) else {
            let names = places.iter().map(|place| place.name.as_str());
            return Err(none_such("link", name, names));
        };
        if !place.set_rate(rate, self.agenda.now()) {
            return Err(format!("the link `{name}` has no rate that could be set"));
        }
        self.agenda.wake(place.part(), place.poll_timeout());
        Ok(())
    }

    /// When there is something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.agenda.poll_timeout()
    }

    /// Adds a route and gives its number.
    pub(crate) fn add_route(&mut self, links: &[String]) -> u32 {
        let place = |name: &String| self.network.places.iter().position(|place| place.name == *name);
        let route = links.iter().map(|name| place(name).expect("a route names places") as u32).collect();
        self.network.routes.push(route);
        (self.network.routes.len() - 1) as u32
    }

    /// Puts the scenario's PEPs on two routes between the same hosts, either of which may carry data.
    pub(crate) fn place_peps(&mut self, there: u32, back: u32) {
        let Network { peps, routes, .. } = &mut self.network;
        peps.place(&self.scenario.links, routes, (there, back), &self.streams);
        peps.place(&self.scenario.links, routes, (back, there), &self.streams);
    }

    /// A visitor enters its route at a link of it.
    pub(crate) fn enter(&mut self, route: u32, hop: u16, visitor: Visitor) {
        let owner = Owner { flow: self.flows.len() as u32, connection: 0, generation: 0 };
        *self.network.traffic.store.draft() = Parcel {
            body: Body::Visitor(visitor),
            sent: self.agenda.now(),
            owner,
            route,
            towards: End::To,
            priority: visitor.priority,
            aired: None,
        };
        self.network.send_at(route, hop, &mut self.agenda);
    }

    /// A visitor has come to the end of its route.
    fn let_go(&mut self, visitor: Visitor, packet: &Packet) {
        let (now, sent) = (self.agenda.now(), self.network.traffic.store.get(packet).sent);
        self.packets += 1;
        let ce = packet.ecn() == Ecn::Ce && visitor.ecn != Ecn::Ce;
        self.arrived.push_back(Arrival { tag: visitor.tag, at: now, delay: now - sent, ce });
    }

    #[inline]
    fn call(&mut self, part: Part) {
        match self.kinds[part.0 as usize] {
            Kind::Link(link) => {
                self.network.call(link, &self.agenda);
                while let Some(packet) = self.network.poll(link, &mut self.agenda) {
                    self.deliver(&packet);
                }
            }
            Kind::Radio => {
                self.network.call_radio(&self.agenda);
                while let Some(packet) = self.network.poll_radio(&mut self.agenda) {
                    self.deliver(&packet);
                }
            }
            Kind::End(connection, end) => {
                let now = self.agenda.now();
                if let Some(c) = &mut self.connections[connection as usize] {
                    let log = self.network.traffic.watch.as_mut().and_then(|w| w.log());
                    let cx = &mut Context { now, random: &mut self.flows[c.flow as usize].random, log };
                    c.ends[end as usize].handle_timeout(cx);
                    self.pump(connection, end);
                    self.settle();
                }
            }
            Kind::Flow(flow) => {
                self.stirred.push(flow);
                self.settle();
            }
            Kind::Sample => self.sample(part),
            Kind::WarmedUp => self.warmed_up(),
        }
    }

    /// A packet has come to the end of its route, and what it reached acts.
    #[inline(always)]
    fn deliver(&mut self, packet: &Packet) {
        let now = self.agenda.now();
        self.network.traffic.note(now, packet, Happening::Received);
        let parcel = self.network.traffic.store.get(packet);
        if let (Some((ue, left)), Some(radio)) = (parcel.aired, &mut self.network.radio) {
            radio.beyond(ue, now - left);
        }
        let reached = match parcel.body {
            Body::Visitor(visitor) => {
                self.let_go(visitor, packet);
                None
            }
            _ => self.arrive(packet),
        };
        self.network.traffic.store.free(packet);
        if let Some((connection, end)) = reached {
            self.pump(connection, end);
            self.settle();
        }
    }

    /// A packet of a flow has come to the end of its route. Gives the endpoint that it reached, if that may act upon it.
    #[inline]
    fn arrive(&mut self, packet: &Packet) -> Option<(u32, End)> {
        let now = self.agenda.now();
        let InTransit { store, watch, .. } = &mut self.network.traffic;
        let parcel = store.get(packet);
        let flow = &mut self.flows[parcel.owner.flow as usize];
        if parcel.towards == End::To {
            let data = parcel.body.carries_data();
            flow.meter.arrive(packet.len(), packet.ecn(), data.then(|| now - parcel.sent), now);
            self.packets += u64::from(data);
        }
        match &parcel.body {
            Body::Udp { payload, .. } => {
                flow.meter.receive((*payload).into());
                None
            }
            Body::Visitor(_) => unreachable!("visitors have no endpoint"),
            Body::Tcp(tcp::Transmit { segment, .. }) => {
                let Owner { connection, generation, .. } = parcel.owner;
                // If the connection is gone on both sides, nobody is left to be told.
                let c = self.connections[connection as usize].as_mut().filter(|c| c.generation == generation)?;
                let log = watch.as_mut().and_then(|w| w.log());
                let cx = &mut Context { now, random: &mut flow.random, log };
                let outcome = c.ends[parcel.towards as usize].handle_segment(segment, packet.ecn() == Ecn::Ce, cx);
                match parcel.towards {
                    End::From => outcome.rtt.into_iter().for_each(|rtt| flow.meter.rtt(rtt)),
                    End::To => flow.meter.receive(outcome.received),
                }
                if outcome.quiet {
                    watch.iter_mut().for_each(|watch| watch.states(parcel.owner.flow, connection, now));
                    return None;
                }
                Some((connection, parcel.towards))
            }
        }
    }

    /// Lets everything that was touched act, until nothing more happens now.
    #[inline(always)]
    fn settle(&mut self) {
        if !self.touched.is_empty() || !self.stirred.is_empty() {
            self.settle_all();
        }
    }

    fn settle_all(&mut self) {
        loop {
            if let Some((connection, end)) = self.touched.pop() {
                self.pump(connection, end);
            } else if let Some(flow) = self.stirred.pop() {
                self.drive(flow);
            } else {
                return;
            }
        }
    }

    /// Takes out of an endpoint what it wants to send and to tell.
    #[inline]
    fn pump(&mut self, connection: u32, end: End) {
        let World { agenda, connections, flows, network, stirred, .. } = self;
        let Some(c) = connections[connection as usize].as_mut() else { return };
        let now = agenda.now();
        let flow = &mut flows[c.flow as usize];
        let owner = Owner { flow: c.flow, connection, generation: c.generation };
        let towards = end.other();
        let route = flow.routes[towards as usize];
        let endpoint = &mut c.ends[end as usize];
        let mut told = network.traffic.watch.as_mut().and_then(|w| w.log()).map(std::mem::take);
        let cx = &mut Context { now, random: &mut flow.random, log: told.as_mut() };
        loop {
            let parcel = network.traffic.store.draft();
            if !endpoint.poll_transmit_into(parcel.body.tcp(), cx) {
                break;
            }
            (parcel.sent, parcel.owner, parcel.route, parcel.towards) = (now, owner, route, towards);
            (parcel.priority, parcel.aired) = (flow.priority, None);
            network.send(route, agenda);
        }
        if let Some((told, log)) = told.zip(network.traffic.watch.as_mut().and_then(|w| w.log())) {
            *log = told;
        }
        let follows = flow.follows_delivery;
        // Who does not follow the bytes is told of what happens seldom only.
        while let Some(event) = if follows || endpoint.has_news() { endpoint.poll_event() } else { None } {
            let (conn, side) = (c.number, side(end));
            let notice = match event {
                Event::Connected => Notice::Connected { conn, side },
                Event::Delivered(bytes) if follows => Notice::Delivered { conn, side, bytes },
                Event::Delivered(_) | Event::Acked(_) => continue,
                Event::PeerClosed => Notice::Closed { conn, side },
                Event::Reset | Event::TimedOut => Notice::Failed { conn },
                Event::Closed => continue,
            };
            flow.app.handle(notice, now);
            stirred.push(c.flow);
        }
        agenda.wake(c.parts[end as usize], endpoint.poll_timeout());
        if let Some(watch) = &mut network.traffic.watch {
            watch.states(c.flow, connection, now);
        }
        if end == End::From {
            let (cwnd, flight) = endpoint.window();
            flow.meter.level(&mut c.level, cwnd, flight, now);
        }
        if endpoint.is_over() && c.ends.iter().all(Endpoint::is_over) {
            self.remove(connection);
        }
    }

    /// Lets an application act.
    fn drive(&mut self, number: u32) {
        let now = self.agenda.now();
        while let Some(action) = self.flows[number as usize].app.poll_action(now) {
            match action {
                Action::Connect { conn, opener } => self.connect(number, conn, opener),
                Action::Write { conn, side, bytes } => self.on(number, conn, side, |e| e.write_all(bytes)),
                Action::WriteUnlimited { conn, side } => self.on(number, conn, side, Endpoint::write_unlimited),
                Action::Pause { conn, side } => self.on(number, conn, side, Endpoint::pause),
                Action::Close { conn, side } => self.on(number, conn, side, Endpoint::close),
                Action::Abort { conn } => self.on(number, conn, Side::From, Endpoint::abort),
                Action::Datagram { bytes } => self.datagram(number, bytes),
                Action::Completed(transfer) => self.transfer(number, &transfer, true),
                Action::Failed(transfer) => self.transfer(number, &transfer, false),
                Action::Finished => self.flows[number as usize].finished = true,
            }
        }
        let flow = &self.flows[number as usize];
        self.agenda.wake(flow.part, flow.app.poll_timeout());
    }

    /// Does something to an endpoint of an application's connection, if that still lives.
    fn on(&mut self, flow: u32, conn: u32, side: Side, act: impl FnOnce(&mut Endpoint<AnyController>)) {
        let Some(&(_, slot)) = self.flows[flow as usize].connections.iter().find(|(n, _)| *n == conn) else { return };
        let end = end(side);
        let c = self.connections[slot as usize].as_mut().expect("a flow's connections live");
        act(&mut c.ends[end as usize]);
        self.touched.push((slot, end));
    }

    fn connect(&mut self, number: u32, conn: u32, opener: Side) {
        use rand_xoshiro::rand_core::Rng;
        let now = self.agenda.now();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            (self.connections.len() - 1) as u32
        });
        let parts = [self.part(Kind::End(slot, End::From)), self.part(Kind::End(slot, End::To))];
        let flow = &mut self.flows[number as usize];
        let of = &self.scenario.flows[flow.of];
        let ends = [End::From, End::To].map(|e| {
            let (controller, isn) = (setup::controller(of), flow.random.next_u32());
            if e == end(opener) {
                Endpoint::connect(&flow.config, controller, isn, now)
            } else {
                Endpoint::listen(&flow.config, controller, isn)
            }
        });
        flow.connections.push((conn, slot));
        self.generation += 1;
        let generation = self.generation;
        let level = Level::default();
        let c = Connection { ends, parts, flow: number, number: conn, generation, level };
        self.connections[slot as usize] = Some(Box::new(c));
        self.touched.push((slot, end(opener)));
    }

    /// Both sides have forgotten a connection.
    fn remove(&mut self, slot: u32) {
        let now = self.agenda.now();
        let Some(mut c) = self.connections[slot as usize].take() else { return };
        let flow = &mut self.flows[c.flow as usize];
        flow.meter.level(&mut c.level, 0, 0, now);
        let sender = &c.ends[End::From as usize];
        flow.meter.end(sender.stats(), sender.limited(now));
        flow.connections.retain(|&(_, s)| s != slot);
        for part in c.parts {
            self.agenda.remove_part(part);
        }
        self.free.push(slot);
    }

    fn datagram(&mut self, number: u32, payload: u32) {
        let now = self.agenda.now();
        let flow = &mut self.flows[number as usize];
        let body = Body::Udp { sequence: flow.datagrams, payload };
        flow.datagrams += 1;
        flow.meter.datagrams_sent += 1;
        let owner = Owner { flow: number, connection: 0, generation: 0 };
        let (route, towards, priority) = (flow.routes[End::To as usize], End::To, flow.priority);
        *self.network.traffic.store.draft() = Parcel { body, sent: now, owner, route, towards, priority, aired: None };
        self.network.send(route, &mut self.agenda);
    }

    fn transfer(&mut self, number: u32, transfer: &traffic::Transfer, completed: bool) {
        let flow = &mut self.flows[number as usize];
        let span = transfer.end - transfer.start;
        if completed {
            flow.meter.completions.push(span);
        }
        self.tables.transfers.push(&TransferRow {
            point: self.point,
            run: self.run,
            flow: &self.scenario.flows[flow.of].name,
            conn: flow.copy,
            index: transfer.index,
            start_s: transfer.start.as_secs_f64(),
            completion_s: completed.then(|| span.as_secs_f64()),
            bytes: transfer.bytes,
        });
    }

    fn sample(&mut self, part: Part) {
        let now = self.agenda.now();
        let interval = self.scenario.record.samples.interval().expect("sampling is on");
        self.network.catch_up(now);
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if now <= flow.start {
                continue;
            }
            let newest = flow.connections.last().and_then(|&(_, slot)| self.connections[slot as usize].as_ref());
            let state = newest.map(|c| c.ends[End::From as usize].snapshot());
            let id = identity(self.scenario, self.point, self.run, flow.of, flow.copy);
            let lost = self.network.traffic.lost[number];
            self.tables.samples.push(&flow.meter.sample(&id, now, interval, lost, state.as_ref()));
        }
        let from = (now - Time::ZERO).saturating_sub(interval);
        for (i, (place, before)) in self.network.places.iter_mut().zip(&mut self.link_sampled).enumerate() {
            let stats = place.stats(now);
            let backlog = place.backlog(now);
            let served = Bytes::new(stats.served.bytes - before.served);
            let capacity = self.scenario.links.get(i).filter(|of| of.rate.is_some() && !place.is_changed()).map(|of| {
                // Of a trace: what was served and what was not used of it.
                let unused = stats.wasted.saturating_sub(before.wasted);
                topology::capacity(of, from, interval).unwrap_or((served.get() + unused) as f64)
            });
            self.tables.queues.push(&QueueRow {
                point: self.point,
                run: self.run,
                link: &place.name,
                t_s: now.as_secs_f64(),
                packets: backlog.packets,
                bytes: backlog.bytes,
                dropped: stats.overflows + stats.control_drops + stats.losses,
                marked: place.marks(),
                served_mbps: Rate::over(served, interval).as_mbps(),
                capacity_mbps: capacity.map(|bytes| bytes * 8e-6 / interval.as_secs_f64()),
                sojourn_ms: (stats.served.packets > before.packets).then(|| ms(stats.last_sojourn)),
            });
            *before = Sampled { served: stats.served.bytes, packets: stats.served.packets, wasted: stats.wasted };
        }
        if let Some(radio) = &mut self.network.radio {
            radio.sample(now, interval, &mut self.tables);
        }
        self.agenda.wake(part, Some(now + interval));
    }

    fn warmed_up(&mut self) {
        let now = self.agenda.now();
        self.network.catch_up(now);
        for (number, flow) in self.flows.iter_mut().enumerate() {
            for &(_, slot) in &flow.connections {
                let c = self.connections[slot as usize].as_mut().expect("a flow's connections live");
                let (cwnd, flight) = c.ends[End::From as usize].window();
                flow.meter.level(&mut c.level, cwnd, flight, now);
            }
            let live = live(&self.connections, &flow.connections, now);
            flow.meter.begin(now, self.network.traffic.lost[number], &live);
        }
        let places = self.network.places.iter_mut().zip(&self.scenario.links);
        for ((place, of), before) in places.zip(&mut self.link_before) {
            let stats = place.stats(now);
            *before = (stats, place.marks(), unserved(of, &stats, now));
            place.forget_waits();
        }
        if let Some(radio) = &mut self.network.radio {
            radio.warmed_up(now);
        }
    }

    /// Ends the run at `end`.
    pub(crate) fn finish(mut self, end: Time) -> Result<Done, Error> {
        self.network.catch_up(end);
        for (number, flow) in self.flows.iter_mut().enumerate() {
            for &(_, slot) in &flow.connections {
                let c = self.connections[slot as usize].as_mut().expect("a flow's connections live");
                flow.meter.level(&mut c.level, 0, 0, end);
            }
            let live = live(&self.connections, &flow.connections, end);
            let id = identity(self.scenario, self.point, self.run, flow.of, flow.copy);
            // UDP flows end when their application does; TCP flows when everything was delivered, too.
            let life = Life { start: flow.start.min(end), now: end, completed: flow.finished };
            self.tables.flows.push(&flow.meter.row(&id, &life, self.network.traffic.lost[number], &live));
            let (rtts, owds) = flow.meter.delays();
            self.tables.push_delays((self.point, self.run), (id.flow, id.copy), rtts, owds);
        }
        let span = (end - Time::ZERO).saturating_sub(self.scenario.warmup);
        for (i, place) in self.network.places.iter_mut().take(self.scenario.links.len()).enumerate() {
            let (before, marks, unserved_before) = &self.link_before[i];
            let stats = place.stats(end);
            let of = &self.scenario.links[i];
            let begun = stats.served.bytes - before.served.bytes;
            // Of a packet whose service spans an edge of the measured time, only the part within it counts.
            let served = begun as f64 + unserved_before - unserved(of, &stats, end);
            let could = match topology::capacity(of, self.scenario.warmup, span) {
                // After a change nobody knows what it could have been.
                _ if place.is_changed() => 0.0,
                Some(bytes) => bytes,
                // A trace: what was served and what was not used of it.
                None if of.rate.is_some() => (begun + stats.wasted - before.wasted) as f64,
                None => f64::INFINITY,
            };
            let waits = place.waits();
            let quantile = |q| waits.quantile(q).map(ms);
            self.tables.links.push(&LinkRow {
                point: self.point,
                run: self.run,
                link: &place.name,
                packets_in: stats.arrived.packets - before.arrived.packets,
                packets_out: stats.delivered.packets - before.delivered.packets,
                bytes_out: stats.delivered.bytes - before.delivered.bytes,
                dropped_overflow: stats.overflows - before.overflows,
                dropped_control: stats.control_drops - before.control_drops,
                dropped_loss: stats.losses - before.losses,
                marked: place.marks() - marks,
                utilisation: if could > 0.0 { served / could } else { 0.0 },
                sojourn_p50_ms: quantile(0.5),
                sojourn_p95_ms: quantile(0.95),
                sojourn_p99_ms: quantile(0.99),
            });
        }
        self.network.peps.finish(self.point, self.run, &mut self.tables.peps);
        if let Some(radio) = self.network.radio.take() {
            radio.finish(end, &mut self.tables);
        }
        if let Some(watch) = self.network.traffic.watch.take() {
            self.tables.events = watch.finish(end)?;
        }
        Ok(Done {
            tables: self.tables,
            simulated: end - Time::ZERO,
            events: self.agenda.handled(),
            packets: self.packets,
        })
    }
}

/// The living connections' counts at the sending end.
fn live<'a>(
    connections: &'a [Option<Box<Connection>>],
    of: &[(u32, u32)],
    now: Time,
) -> Vec<(&'a tcp::Stats, [Span; 6])> {
    let sender = |&(_, slot): &(u32, u32)| {
        let sender = &connections[slot as usize].as_ref().expect("a flow's connections live").ends[End::From as usize];
        (sender.stats(), sender.limited(now))
    };
    of.iter().map(sender).collect()
}

/// The bytes that a link with a known rate has yet to serve at `now` of the packet in service.
fn unserved(of: &scenario::Link, stats: &link::Stats, now: Time) -> f64 {
    let left = stats.service_ends.saturating_since(now);
    topology::capacity(of, now - Time::ZERO, left).unwrap_or(0.0)
}

fn identity(scenario: &Scenario, point: u32, run: u32, of: usize, copy: u32) -> Identity<'_> {
    let flow = &scenario.flows[of];
    let (transport, cc) = match flow.transport() {
        Transport::Tcp => ("tcp", flow.cc.name()),
        Transport::Udp => ("udp", ""),
    };
    Identity { point, run, flow: &flow.name, copy, transport, cc, from: &flow.from, to: &flow.to }
}

/// What to say of a name that there is none of.
pub(crate) fn none_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("there is no {what} `{name}`; there are {}", known.collect::<Vec<_>>().join(", "))
}

fn side(end: End) -> Side {
    match end {
        End::From => Side::From,
        End::To => Side::To,
    }
}

fn end(side: Side) -> End {
    match side {
        Side::From => End::From,
        Side::To => End::To,
    }
}
