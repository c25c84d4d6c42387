//! Hosts: the applications of the flows, and their connections.
//!
//! An application's [`Action`] makes an endpoint ready; [`Hosts::pump`] takes segments out of it, each of which enters the
//! first hop of its route. What arrives is given to the endpoint of the other end, which is pumped in turn.

mod connections;
mod node;
mod own;

use crate::network::packet::{Body, End, Owner, Packet, Parcel};
use crate::network::route::Hop;
use crate::network::{InTransit, Network, Released};
use crate::parts::{Kind, Parts};
use crate::rows::RunId;
use crate::rows::meter::{Identity, Level, Life, Meter};
use aqm::{Ecn, Packet as _};
use cc::{AnyController, Random};
use connections::{Connection, Connections};
use des::{Part, Streams};
use node::Node;
use rand_xoshiro::rand_core::Rng;
use record::Tables;
use record::tables::{TransferRow, Transfers};
use scenario::Transport;
use std::collections::BTreeMap;
use std::ops::Range;
use tcp::{Context, Endpoint, Event, State};
use traffic::{Action, App, Notice, Reader, Side};
use units::{Span, Time};

/// A flow: an application, its connections, its meter.
pub(crate) struct Flow<'a> {
    /// Its description in the scenario.
    of: &'a scenario::Flow,
    /// Which of the description's copies.
    copy: u32,
    /// Whether the application receives each delivery as an event.
    follows_delivery: bool,
    app: App,
    /// If the receiving application pauses.
    reader: Option<Reader>,
    part: Part,
    config: tcp::Config,
    /// The numbers of the routes towards each end.
    routes: [u32; 2],
    /// For each end, the first hop of its segments, if they wait for it in its host's queue and are counted there.
    hosts: [Option<Hop>; 2],
    /// For each end, the number of its host.
    nodes: [u32; 2],
    start: Time,
    /// The open connections: the application's number and the slot.
    connections: Vec<(u32, u32)>,
    meter: Meter,
    random: Random,
    finished: bool,
    /// Whether a row of samples was written after everything was sent and acknowledged.
    is_sampled_to_end: bool,
    /// Whether a connection was reset or timed out.
    failed: bool,
    datagrams: u64,
}

impl<'a> Flow<'a> {
    /// Creates the copy `copy` of a flow over `routes`, which starts at `start` and is called as `part`.
    pub(crate) fn new(
        (of, copy): (&'a scenario::Flow, u32),
        app: App,
        part: Part,
        config: tcp::Config,
        (routes, hosts, nodes): ([u32; 2], [Option<Hop>; 2], [u32; 2]),
        start: Time,
        random: Random,
    ) -> Flow<'a> {
        Flow {
            of,
            copy,
            follows_delivery: app.follows_delivery(),
            app,
            reader: of.reader.map(|reader| Reader::new(reader.reads, reader.pauses, start)),
            part,
            config,
            routes,
            hosts,
            nodes,
            start,
            connections: Vec::new(),
            meter: Meter::default(),
            random,
            finished: false,
            is_sampled_to_end: false,
            failed: false,
            datagrams: 0,
        }
    }
}

/// The flows' ends on all hosts.
pub(crate) struct Hosts<'a> {
    id: RunId,
    flows: Vec<Flow<'a>>,
    nodes: Vec<Node>,
    /// Their numbers by name.
    names: BTreeMap<&'a str, u32>,
    connections: Connections,
    /// Endpoints that may have segments to send.
    ready_ends: Vec<(u32, End)>,
    /// Flows whose application may have actions.
    ready_flows: Vec<u32>,
    /// What the hosts remember of each other.
    memory: own::Memory<'a>,
    transfers: Transfers,
    /// Data packets that have arrived.
    packets: u64,
}

impl<'a> Hosts<'a> {
    pub(crate) fn new(id: RunId) -> Hosts<'a> {
        Hosts {
            id,
            flows: Vec::new(),
            nodes: Vec::new(),
            names: BTreeMap::new(),
            connections: Connections::default(),
            ready_ends: Vec::new(),
            ready_flows: Vec::new(),
            memory: own::Memory::default(),
            transfers: Transfers::default(),
            packets: 0,
        }
    }

    /// Returns the number of flows, which is the index of the next one.
    pub(crate) fn len(&self) -> u32 {
        self.flows.len() as u32
    }

    /// Returns the number of the host at a node, which is created if necessary.
    pub(crate) fn node(&mut self, name: &'a str, of: &scenario::Hosts, streams: &Streams, parts: &mut Parts) -> u32 {
        let Hosts { nodes, names, .. } = self;
        *names.entry(name).or_insert_with(|| {
            let number = nodes.len() as u32;
            let random = streams.named(&format!("host {name}"));
            nodes.push(Node::new(of.processing(name), random, parts.add(Kind::Node(number))));
            number
        })
    }

    /// Adds a flow.
    pub(crate) fn add(&mut self, flow: Flow<'a>) {
        self.flows.push(flow);
    }

    /// Returns the routes of a flow's data and of its acknowledgements.
    pub(crate) fn routes_of(&self, name: &str) -> Option<(u32, u32)> {
        let flow = self.flows.iter().find(|flow| flow.of.name == name)?;
        Some((flow.routes[End::To as usize], flow.routes[End::From as usize]))
    }

    /// Returns the name and the copy of a flow.
    pub(crate) fn name_of(&self, flow: u32) -> (&str, u32) {
        let flow = &self.flows[flow as usize];
        (&flow.of.name, flow.copy)
    }

    /// Data packets that have arrived.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Handles the deadline of an endpoint.
    #[inline]
    pub(crate) fn call_end(&mut self, connection: u32, end: End, parts: &mut Parts, network: &mut Network) {
        let now = parts.agenda.now();
        let Some(c) = self.connections.get_mut(connection) else { return };
        let log = network.traffic.watch.as_mut().and_then(|w| w.log());
        let cx = &mut Context { now, random: &mut self.flows[c.flow as usize].random, log };
        c.ends[end as usize].handle_timeout(cx);
        self.pump(connection, end, parts, network);
        self.settle(parts, network);
    }

    /// Sends the packets of a host whose departure is due.
    pub(crate) fn call_node(&mut self, node: u32, parts: &mut Parts, network: &mut Network) {
        self.nodes[node as usize].handle_timeout(network, &mut parts.agenda);
    }

    /// Handles the deadline of a flow's application.
    pub(crate) fn call_flow(&mut self, flow: u32, parts: &mut Parts, network: &mut Network) {
        self.ready_flows.push(flow);
        self.settle(parts, network);
    }

    /// Handles a packet of a flow at the end of its route.
    #[inline(always)]
    pub(crate) fn handle_packet(&mut self, packet: &Packet, parts: &mut Parts, network: &mut Network) {
        let reached = self.arrive(packet, parts.agenda.now(), &mut network.traffic);
        network.traffic.store.free(packet);
        if let Some((connection, end)) = reached {
            self.pump(connection, end, parts, network);
            self.settle(parts, network);
        }
    }

    /// Counts a packet and passes it to its endpoint. Returns the endpoint if it may have something to send.
    #[inline]
    fn arrive(&mut self, packet: &Packet, now: Time, traffic: &mut InTransit) -> Option<(u32, End)> {
        let InTransit { store, watch, .. } = traffic;
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
            Body::Visitor(_) => None,
            Body::Tcp(tcp::Transmit { segment, .. }) => {
                let Owner { connection, generation, .. } = parcel.owner;
                // If the connection is gone on both sides, nobody is left to be told.
                let c = self.connections.get_mut(connection).filter(|c| c.generation == generation)?;
                let log = watch.as_mut().and_then(|w| w.log());
                let cx = &mut Context { now, random: &mut flow.random, log };
                let outcome = c.ends[parcel.towards as usize].handle_segment(segment, packet.ecn() == Ecn::Ce, cx);
                match parcel.towards {
                    End::From => outcome.rtt.into_iter().for_each(|rtt| flow.meter.rtt(rtt)),
                    End::To => flow.meter.receive(outcome.delivered),
                }
                if outcome.quiet {
                    watch.iter_mut().for_each(|watch| watch.states(parcel.owner.flow, connection, now));
                    return None;
                }
                Some((connection, parcel.towards))
            }
        }
    }

    /// Calls everything that is ready until nothing is left to do at this time.
    #[inline(always)]
    fn settle(&mut self, parts: &mut Parts, network: &mut Network) {
        if !self.ready_ends.is_empty() || !self.ready_flows.is_empty() {
            self.settle_all(parts, network);
        }
    }

    fn settle_all(&mut self, parts: &mut Parts, network: &mut Network) {
        loop {
            if let Some((connection, end)) = self.ready_ends.pop() {
                self.pump(connection, end, parts, network);
            } else if let Some(flow) = self.ready_flows.pop() {
                self.drive(flow, parts, network);
            } else {
                return;
            }
        }
    }

    /// Takes segments and events from an endpoint.
    #[inline]
    fn pump(&mut self, connection: u32, end: End, parts: &mut Parts, network: &mut Network) {
        let Hosts { connections, flows, nodes, ready_flows, memory, .. } = self;
        let Some(c) = connections.get_mut(connection) else { return };
        let agenda = &mut parts.agenda;
        let now = agenda.now();
        let flow = &mut flows[c.flow as usize];
        let owner = Owner { flow: c.flow, connection, generation: c.generation };
        let towards = end.other();
        let route = flow.routes[towards as usize];
        let (host, node) = (flow.hosts[end as usize], &mut nodes[flow.nodes[end as usize] as usize]);
        // When the packets of this event leave, once there is one.
        let mut leaves = None;
        let endpoint = &mut c.ends[end as usize];
        let mut told = network.traffic.watch.as_mut().and_then(|w| w.log()).map(std::mem::take);
        let cx = &mut Context { now, random: &mut flow.random, log: told.as_mut() };
        loop {
            if let Some(first) = host {
                let ahead = node.backlog();
                endpoint.set_host_queue(own::queue(network, first, flow.of, c.held[end as usize], ahead, now));
            }
            let parcel = network.traffic.store.draft();
            if !endpoint.poll_transmit_into(parcel.body.tcp(), cx) {
                break;
            }
            let at = *leaves.get_or_insert_with(|| node.departure(now));
            (parcel.sent, parcel.owner, parcel.route, parcel.towards) = (at, owner, route, towards);
            (parcel.priority, parcel.aired, parcel.held) = (flow.of.priority, None, host.is_some());
            if host.is_some() {
                c.held[end as usize] += u64::from(parcel.body.tcp().segment.len);
            }
            node.send(route, at, network, agenda);
            if host.is_some() {
                c.held[end as usize] -= network.traffic.take_released_of(owner, towards);
            }
        }
        if let Some((told, log)) = told.zip(network.traffic.watch.as_mut().and_then(|w| w.log())) {
            *log = told;
        }
        let follows = flow.follows_delivery;
        // An application that does not follow the bytes rarely has anything to hear.
        while let Some(event) = if follows || endpoint.has_news() { endpoint.poll_event() } else { None } {
            memory.note(flow.of, end, &event, endpoint, now);
            let (conn, side) = (c.number, side(end));
            let notice = match event {
                Event::Connected => Notice::Connected { conn, side },
                Event::Delivered(bytes) if follows => Notice::Delivered { conn, side, bytes },
                Event::Delivered(_) | Event::Acked(_) => continue,
                Event::PeerClosed => Notice::Closed { conn, side },
                Event::Reset | Event::TimedOut => {
                    flow.failed = true;
                    Notice::Failed { conn }
                }
                Event::Closed => continue,
            };
            flow.app.handle(notice, now);
            ready_flows.push(c.flow);
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
            self.remove(connection, parts);
        }
    }

    /// Carries out the actions of an application.
    fn drive(&mut self, number: u32, parts: &mut Parts, network: &mut Network) {
        let now = parts.agenda.now();
        while let Some(action) = self.flows[number as usize].app.poll_action(now) {
            match action {
                Action::Connect { conn, opener } => self.connect(number, conn, opener, parts),
                Action::Write { conn, side, bytes } => self.on(number, conn, side, |e| e.write_all(bytes)),
                Action::WriteUnlimited { conn, side } => self.on(number, conn, side, Endpoint::write_unlimited),
                Action::Pause { conn, side } => self.on(number, conn, side, Endpoint::pause),
                Action::Close { conn, side } => self.on(number, conn, side, Endpoint::close),
                Action::Abort { conn } => self.on(number, conn, Side::From, Endpoint::abort),
                Action::Datagram { bytes } => self.send_datagram(number, bytes, parts, network),
                Action::Completed(transfer) => self.note_transfer(number, &transfer, true),
                Action::Failed(transfer) => self.note_transfer(number, &transfer, false),
                Action::Finished => self.flows[number as usize].finished = true,
            }
        }
        self.read_or_pause(number, now);
        let flow = &self.flows[number as usize];
        let reader = flow.reader.filter(|_| !flow.connections.is_empty()).map(|reader| reader.poll_timeout());
        parts.agenda.wake(flow.part, flow.app.poll_timeout().into_iter().chain(reader).min());
    }

    /// Has the receiving ends of a flow begin or end a pause that is due.
    fn read_or_pause(&mut self, number: u32, now: Time) {
        let flow = &mut self.flows[number as usize];
        let Some(reads) = flow.reader.as_mut().and_then(|reader| reader.poll(now)) else { return };
        for &(_, slot) in &flow.connections {
            self.connections.living_mut(slot).ends[End::To as usize].set_auto_read(reads, now);
            self.ready_ends.push((slot, End::To));
        }
    }

    /// Applies `act` to an endpoint of an application's connection, if it still exists.
    fn on(&mut self, flow: u32, conn: u32, side: Side, act: impl FnOnce(&mut Endpoint<AnyController>)) {
        let Some(&(_, slot)) = self.flows[flow as usize].connections.iter().find(|(n, _)| *n == conn) else { return };
        let end = end(side);
        act(&mut self.connections.living_mut(slot).ends[end as usize]);
        self.ready_ends.push((slot, end));
    }

    fn connect(&mut self, number: u32, conn: u32, opener: Side, parts: &mut Parts) {
        let now = parts.agenda.now();
        let slot = self.connections.reserve();
        let parts = [parts.add(Kind::End(slot, End::From)), parts.add(Kind::End(slot, End::To))];
        let flow = &mut self.flows[number as usize];
        let ends = [End::From, End::To].map(|e| {
            let (controller, isn) = (flow.of.cc.controller(flow.of.tcp.initial_window), flow.random.next_u32());
            let reads = e == End::From || flow.reader.is_none_or(|reader| reader.is_reading());
            let config = tcp::Config { auto_read: reads, ..flow.config.clone() };
            if e == end(opener) {
                Endpoint::connect(&config, controller, isn, now)
            } else {
                Endpoint::listen(&config, controller, isn)
            }
        });
        flow.connections.push((conn, slot));
        let generation = self.connections.next_generation();
        let level = Level::default();
        let connection = Connection { ends, parts, flow: number, number: conn, generation, level, held: [0; 2] };
        self.connections.insert(slot, connection);
        self.ready_ends.push((slot, end(opener)));
    }

    /// Removes a connection that both ends have finished.
    fn remove(&mut self, slot: u32, parts: &mut Parts) {
        let now = parts.agenda.now();
        let Some(mut c) = self.connections.remove(slot) else { return };
        let flow = &mut self.flows[c.flow as usize];
        flow.meter.level(&mut c.level, 0, 0, now);
        let sender = &c.ends[End::From as usize];
        flow.meter.end(sender.stats(), sender.limited(now));
        flow.connections.retain(|&(_, s)| s != slot);
        for part in c.parts {
            parts.agenda.remove_part(part);
        }
    }

    fn send_datagram(&mut self, number: u32, payload: u32, parts: &mut Parts, network: &mut Network) {
        let now = parts.agenda.now();
        let flow = &mut self.flows[number as usize];
        let body = Body::Udp { sequence: flow.datagrams, payload };
        flow.datagrams += 1;
        flow.meter.datagrams_sent += 1;
        let owner = Owner { flow: number, connection: 0, generation: 0 };
        let (route, towards, priority) = (flow.routes[End::To as usize], End::To, flow.of.priority);
        let node = &mut self.nodes[flow.nodes[End::From as usize] as usize];
        let at = node.departure(now);
        let parcel = Parcel { body, sent: at, owner, route, towards, priority, aired: None, held: false };
        *network.traffic.store.draft() = parcel;
        node.send(route, at, network, &mut parts.agenda);
    }

    fn note_transfer(&mut self, number: u32, transfer: &traffic::Transfer, completed: bool) {
        let flow = &mut self.flows[number as usize];
        let span = transfer.end - transfer.start;
        if completed {
            flow.meter.completions.push(span);
        }
        self.transfers.push(&TransferRow {
            point: self.id.point,
            run: self.id.run,
            flow: &flow.of.name,
            conn: flow.copy,
            index: transfer.index,
            start_s: transfer.start.as_secs_f64(),
            completion_s: completed.then(|| span.as_secs_f64()),
            bytes: transfer.bytes,
        });
    }

    /// Writes the rows of the flows at a sampling time, of a TCP flow up to the first after its end. `lost` holds the packets
    /// lost so far, by flow.
    pub(crate) fn sample(&mut self, now: Time, interval: Span, lost: &[u64], tables: &mut Tables) {
        for (flow, &lost) in self.flows.iter_mut().zip(lost) {
            if now <= flow.start || flow.is_sampled_to_end {
                continue;
            }
            flow.is_sampled_to_end = flow.finished && flow.of.transport() == Transport::Tcp && {
                let is_over = |state| matches!(state, State::TimeWait | State::Closed);
                flow.connections.iter().all(|&(_, slot)| is_over(self.connections.living(slot).ends[0].state()))
            };
            let newest = flow.connections.last().map(|&(_, slot)| self.connections.living(slot));
            let state = newest.map(|c| c.ends[End::From as usize].snapshot());
            let id = Identity::new(self.id, flow.of, flow.copy);
            tables.samples.push(&flow.meter.sample(&id, now, interval, lost, state.as_ref()));
        }
    }

    /// Ends the warm-up: the summary leaves out what was counted so far.
    pub(crate) fn warmed_up(&mut self, now: Time, lost: &[u64]) {
        for (flow, &lost) in self.flows.iter_mut().zip(lost) {
            for &(_, slot) in &flow.connections {
                let c = self.connections.living_mut(slot);
                let (cwnd, flight) = c.ends[End::From as usize].window();
                flow.meter.level(&mut c.level, cwnd, flight, now);
            }
            flow.meter.begin(now, lost, &self.connections.senders(&flow.connections, now));
        }
    }

    /// Writes the rows of the flows at the end, and of the transfers that were not finished.
    pub(crate) fn finish(mut self, end: Time, lost: &[u64], tables: &mut Tables) {
        for number in 0..self.flows.len() {
            for transfer in self.flows[number].app.in_progress(end) {
                self.note_transfer(number as u32, &transfer, false);
            }
        }
        for (flow, &lost) in self.flows.iter_mut().zip(lost) {
            for &(_, slot) in &flow.connections {
                let c = self.connections.living_mut(slot);
                flow.meter.level(&mut c.level, 0, 0, end);
            }
            let live = self.connections.senders(&flow.connections, end);
            let id = Identity::new(self.id, flow.of, flow.copy);
            // UDP flows end when their application does; TCP flows when everything was delivered, too.
            let life = Life { start: flow.start.min(end), now: end, completed: flow.finished && !flow.failed };
            tables.flows.push(&flow.meter.row(&id, &life, lost, &live));
            let (rtts, owds) = flow.meter.delays();
            tables.push_delays((id.point, id.run), (id.flow, id.copy), rtts, owds);
        }
        tables.transfers = self.transfers;
    }

    /// Writes the rows of `some` of the flows as if the run ended now. Means of windows are those up to their last change.
    pub(crate) fn rows_so_far(&self, some: Range<usize>, now: Time, lost: &[u64], tables: &mut Tables) {
        for (flow, &lost) in self.flows[some.clone()].iter().zip(&lost[some]) {
            if now <= flow.start {
                continue;
            }
            let live = self.connections.senders(&flow.connections, now);
            let id = Identity::new(self.id, flow.of, flow.copy);
            let life = Life { start: flow.start, now, completed: flow.finished && !flow.failed };
            tables.flows.push(&flow.meter.row(&id, &life, lost, &live));
            let (rtts, owds) = flow.meter.delays();
            tables.push_delays((id.point, id.run), (id.flow, id.copy), rtts, owds);
        }
    }

    /// Tells the connections what has left the queues of their hosts, and has those that waited for it send.
    pub(crate) fn handle_released(&mut self, parts: &mut Parts, network: &mut Network) {
        while let Some(Released { owner, towards, payload }) = network.traffic.take_released() {
            let end = towards.other();
            let Some(c) = self.connections.get_mut(owner.connection) else { continue };
            if c.generation != owner.generation {
                continue;
            }
            c.held[end as usize] -= payload;
            let flow = &self.flows[c.flow as usize];
            let Some(first) = flow.hosts[end as usize] else { continue };
            let ahead = self.nodes[flow.nodes[end as usize] as usize].backlog();
            let queue = own::queue(network, first, flow.of, c.held[end as usize], ahead, parts.agenda.now());
            if c.ends[end as usize].set_host_queue(queue) {
                self.ready_ends.push((owner.connection, end));
                self.settle(parts, network);
            }
        }
    }
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
