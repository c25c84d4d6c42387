//! One run: its parts, and the loop that calls them.
//!
//! A packet's way: a host gives it to the first hop of its route ([`Network::send`]); the agenda calls the link when the
//! packet has crossed it, and it enters the next hop, or arrives at a host ([`Hosts::handle_packet`]), whose answer goes
//! the same way back. Packets from outside end in [`World::arrived`].

use crate::error::{Error, unknown_name};
use crate::hosts::Hosts;
use crate::middlebox::Middleboxes;
use crate::middlebox::interface::{External, Middlebox as _, NoVisitors};
use crate::network::link::PlacedLink;
use crate::network::medium::radio::UePlace;
use crate::network::packet::{Arrival, Body, Packet, Visitor};
use crate::network::watch::{self, Happening};
use crate::network::{Network, Reached, radio_of};
use crate::parts::{Kind, Parts};
use crate::reporting::Reports;
use crate::rows::RunId;
use crate::rows::links::LinkRows;
use aqm::{Ecn, Packet as _};
use des::{Part, Streams};
use record::tables::CommandRow;
use record::{Table, Tables};
use rnis::Record;
use scenario::Scenario;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Rate, Span, Time};

/// Simulated time between two checks for a stop.
const LOOK: Span = Span::from_millis(500);
/// The most that one call of [`World::rows_since`] returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// New rows of a table.
    rows: usize,
    /// Flows, and links.
    subjects: usize,
}

impl Most {
    /// Everything.
    pub(crate) const ALL: Most = Most { rows: usize::MAX, subjects: usize::MAX };
    /// What an emulation returns: packets wait meanwhile.
    pub(crate) const IN_REAL_TIME: Most = Most { rows: 5_000, subjects: 16 };
}

/// How much of the rows of a run somebody has seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    samples: usize,
    queues: usize,
    radio: usize,
    mobility: usize,
    commands: usize,
    proxies: usize,
    /// The next flow and the next link whose rows are due.
    flow: usize,
    link: usize,
}

impl Seen {
    /// Returns the rows of a run that has finished, but for what was seen of those over time; without `with_series`, only those of
    /// flows, links and UEs.
    pub fn rest_of(&self, tables: &Tables, with_series: bool) -> Tables {
        let mut rows = Tables {
            flows: tables.flows.clone(),
            links: tables.links.clone(),
            ues: tables.ues.clone(),
            rtts: tables.rtts.clone(),
            owds: tables.owds.clone(),
            transfers: tables.transfers.clone(),
            ..Tables::default()
        };
        if with_series {
            rows.samples.push_rows(&tables.samples, self.samples..tables.samples.len());
            rows.queues.push_rows(&tables.queues, self.queues..tables.queues.len());
            rows.radio.push_rows(&tables.radio, self.radio..tables.radio.len());
            rows.mobility.push_rows(&tables.mobility, self.mobility..tables.mobility.len());
            rows.commands.push_rows(&tables.commands, self.commands..tables.commands.len());
            rows.proxies.push_rows(&tables.proxies, self.proxies..tables.proxies.len());
        }
        rows
    }
}

/// Copies the rows from `seen` on, the newest if there are more than `most`.
fn copy_new<T: Table>(from: &T, seen: &mut usize, most: usize, to: &mut T) {
    let first = (*seen).max(from.len().saturating_sub(most));
    to.push_rows(from, first..from.len());
    *seen = from.len();
}

/// Returns the next of `count`, at most `most`, and moves `next` behind them.
fn in_turn(next: &mut usize, most: usize, count: usize) -> Range<usize> {
    let first = if *next < count { *next } else { 0 };
    *next = first.saturating_add(most);
    first..count.min(*next)
}

/// The results of a run.
pub(crate) struct Done {
    pub(crate) tables: Tables,
    pub(crate) simulated: Span,
    pub(crate) events: u64,
    pub(crate) packets: u64,
}

/// Everything of one run.
pub(crate) struct World<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) id: RunId,
    pub(crate) streams: Streams,
    pub(crate) parts: Parts,
    pub(crate) network: Network,
    pub(crate) middleboxes: Middleboxes,
    pub(crate) hosts: Hosts<'a>,
    pub(crate) link_rows: LinkRows,
    pub(crate) tables: Tables,
    /// Packets from outside that have arrived and have not been polled.
    pub(crate) arrived: VecDeque<Arrival>,
    /// Packets from outside that have arrived.
    pub(crate) visitors: u64,
    /// The cells' reports, if anybody uses them.
    pub(crate) reports: Option<Reports>,
}

impl World<'_> {
    /// Runs to the end, or returns `None` if it was stopped. `tell` is called with the simulated time that has passed and the
    /// world, and `report` with each report or event for readers outside.
    pub(crate) fn run(
        mut self,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Span, &mut Self),
        report: &dyn Fn(u32, Record),
    ) -> Result<Option<Done>, Error> {
        let end = Time::ZERO + self.scenario.duration;
        let mut told = Time::ZERO;
        while told < end {
            let until = end.min(told + LOOK);
            while let Some(part) = self.parts.agenda.next(until) {
                self.call(part, &mut NoVisitors);
            }
            self.network.write_before(until);
            while let Some((ue, record)) = self.reports.as_mut().and_then(|reports| reports.poll(until)) {
                report(ue, record);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            tell(until - told, &mut self);
            told = until;
        }
        self.finish(end).map(Some)
    }

    /// Processes everything due until `now`. `external` holds the packets of the visitors.
    pub(crate) fn advance(&mut self, now: Time, external: &mut impl External) {
        while let Some(part) = self.parts.agenda.next(now) {
            self.call(part, external);
        }
        self.parts.agenda.pass(now);
        self.network.write_before(now);
    }

    /// The present.
    pub(crate) fn now(&self) -> Time {
        self.parts.agenda.now()
    }

    /// Returns when to call it.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.parts.agenda.poll_timeout()
    }

    #[inline]
    fn call(&mut self, part: Part, external: &mut impl External) {
        match self.parts.kind(part) {
            Kind::Link(link) => {
                self.network.call(link, &self.parts.agenda);
                while let Some(reached) = self.network.poll(link, &mut self.parts.agenda) {
                    self.reach(&reached, external);
                }
            }
            Kind::Medium(medium) => {
                self.network.call_medium(medium, &self.parts.agenda);
                while let Some(reached) = self.network.poll_medium(medium, &mut self.parts.agenda) {
                    self.reach(&reached, external);
                }
            }
            Kind::Middlebox(place) => self.middleboxes.handle_timeout(place, &mut self.network, &mut self.parts),
            Kind::End(connection, end) => self.hosts.call_end(connection, end, &mut self.parts, &mut self.network),
            Kind::Flow(flow) => self.hosts.call_flow(flow, &mut self.parts, &mut self.network),
            Kind::Node(node) => self.hosts.call_node(node, &mut self.parts, &mut self.network),
            Kind::Reports => self.report(part),
            Kind::Measurements => self.measure(part),
            Kind::Sample => self.sample(part),
            Kind::WarmedUp => self.warmed_up(),
        }
        if self.network.traffic.has_released() {
            self.hosts.handle_released(&mut self.parts, &mut self.network);
        }
    }

    /// A packet has come to a middlebox or to the end of its route.
    #[inline(always)]
    fn reach(&mut self, reached: &Reached, external: &mut impl External) {
        match reached {
            Reached::End(packet) => self.deliver(packet),
            Reached::Middlebox(tap, packet) => {
                self.middleboxes.handle_packet(*tap, *packet, &mut self.network, &mut self.parts, external);
            }
        }
    }

    /// A packet has come to the end of its route.
    #[inline(always)]
    fn deliver(&mut self, packet: &Packet) {
        let now = self.parts.agenda.now();
        self.network.traffic.note(now, packet, Happening::Received);
        let parcel = self.network.traffic.store.get(packet);
        if let Some((ue, left)) = parcel.aired
            && let Some(radio) = radio_of(&mut self.network.media)
        {
            radio.beyond(ue, now - left);
        }
        match parcel.body {
            Body::Visitor(visitor) => self.deliver_external(visitor, packet),
            _ => self.hosts.handle_packet(packet, &mut self.parts, &mut self.network),
        }
    }

    /// A packet from outside has come to the end of its route.
    fn deliver_external(&mut self, visitor: Visitor, packet: &Packet) {
        let (now, store) = (self.parts.agenda.now(), &mut self.network.traffic.store);
        let sent = store.get(packet).sent;
        store.free(packet);
        self.visitors += 1;
        let ce = packet.ecn() == Ecn::Ce && visitor.ecn != Ecn::Ce;
        self.arrived.push_back(Arrival { tag: visitor.tag, at: now, delay: now - sent, ce });
    }

    /// Sends a packet from outside on a route.
    pub(crate) fn enter(&mut self, route: u32, visitor: Visitor) {
        let parcel = self.network.traffic.visit(visitor, route, self.parts.agenda.now());
        *self.network.traffic.store.draft() = parcel;
        self.network.send(route, &mut self.parts.agenda);
    }

    /// Puts the scenario's PEPs on two routes between the same hosts, either of which may carry data.
    pub(crate) fn place_peps(&mut self, one: u32, other: u32) {
        let World { scenario, streams, parts, network, middleboxes, .. } = self;
        let at_cells = scenario.radio.as_ref().filter(|radio| radio.pep_at == scenario::PepAt::Cells);
        let cells = at_cells.map_or(1, |radio| radio.cells.len());
        middleboxes.place_peps(cells, &scenario.links, &mut network.routes, (one, other), parts, streams);
    }

    /// Puts the scenario's proxy on two routes between the same hosts, one of which leads to a UE.
    pub(crate) fn place_proxy(&mut self, one: u32, other: u32) {
        let World { scenario, streams, parts, network, middleboxes, .. } = self;
        let Some(proxy) = scenario.radio.as_ref().and_then(scenario::Radio::proxy_in_cells) else { return };
        let at = (scenario::CORE, &proxy);
        middleboxes.place_proxy(at, &scenario.links, &mut network.routes, (one, other), parts, streams);
    }

    /// Has the cells' reports made for readers outside, too. Returns whether there are cells.
    pub(crate) fn open_reports(&mut self) -> bool {
        let World { scenario, streams, parts, network, reports, .. } = self;
        let (Some(of), Some(radio)) = (&scenario.radio, network.radio()) else { return false };
        let reports = reports.get_or_insert_with(|| Reports::new(of, radio, parts, streams));
        reports.open(streams.named("reports outside"), parts);
        true
    }

    /// Makes the cells' reports.
    fn report(&mut self, part: Part) {
        let World { reports, network, middleboxes, parts, .. } = self;
        let now = parts.agenda.now();
        let (Some(reports), Some(radio)) = (reports, network.radio_mut()) else { return };
        let mut proxy = middleboxes.proxy();
        if proxy.is_none() && !reports.is_open() {
            return;
        }
        let next = reports.send(radio, proxy.as_mut().map(|(proxy, _)| &mut **proxy), now);
        if let Some((proxy, place)) = proxy {
            parts.agenda.wake(place, proxy.poll_timeout());
        }
        parts.agenda.wake(part, Some(next));
    }

    /// Makes the UEs' measurement reports.
    fn measure(&mut self, part: Part) {
        let World { reports, network, parts, .. } = self;
        if let (Some(reports), Some(radio)) = (reports, network.radio_mut()) {
            let next = reports.measure(radio, parts.agenda.now());
            parts.agenda.wake(part, Some(next));
        }
    }

    /// Renews the radio network's deadline after a change.
    pub(crate) fn wake_radio(&mut self) {
        self.network.wake_media(&mut self.parts.agenda);
    }

    /// Changes the rate of a link from now on.
    pub(crate) fn set_rate(&mut self, name: &str, rate: Rate) -> Result<(), String> {
        self.change_link(name, "rate", |link, now| link.set_rate(rate, now))
    }

    /// Changes the probability of loss on a link from now on.
    pub(crate) fn set_loss(&mut self, name: &str, probability: f64) -> Result<(), String> {
        self.change_link(name, "loss", |link, now| link.set_loss(probability, now))
    }

    /// Serves no packet on a link, or on all of them, for `span` from now on.
    pub(crate) fn pause(&mut self, name: Option<&str>, span: Span) -> Result<(), String> {
        let until = self.parts.agenda.now() + span;
        let names: Vec<String> = match name {
            Some(name) => vec![name.to_owned()],
            None => self.network.links.iter().map(|link| link.name.clone()).collect(),
        };
        names.iter().try_for_each(|name| self.change_link(name, "outage", |link, now| link.pause(until, now)))
    }

    /// Records what was changed from outside: in the table of commands, and among the events.
    pub(crate) fn record_command(&mut self, command: &str, subject: &str, value: &str, until: Option<Time>) {
        let (now, RunId { point, run }) = (self.parts.agenda.now(), self.id);
        let (t_s, until_s) = (now.as_secs_f64(), until.map(Time::as_secs_f64));
        self.tables.commands.push(&CommandRow { point, run, t_s, command, subject, value, until_s });
        let words = [command, subject, value];
        let detail = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let is_of_link = self.network.links.iter().any(|link| link.name == subject);
        let link = if is_of_link { subject } else { "" };
        match &mut self.network.traffic.watch {
            Some(watch) => watch.note(now, Happening::Command { link: link.to_owned(), detail }),
            None => self.tables.events.push(&watch::command(self.id, link, &detail, now)),
        }
    }

    /// Changes a link by `change`, which returns whether that is possible.
    fn change_link(
        &mut self,
        name: &str,
        what: &str,
        change: impl FnOnce(&mut PlacedLink, Time) -> bool,
    ) -> Result<(), String> {
        let links = &mut self.network.links;
        let Some(link) = links.iter_mut().find(|link| link.name == name) else {
            return Err(unknown_name("link", name, links.iter().map(|link| link.name.as_str())));
        };
        if !change(link, self.parts.agenda.now()) {
            return Err(format!("the link `{name}` has no {what} that could be set"));
        }
        self.parts.agenda.wake(link.part(), link.poll_timeout());
        Ok(())
    }

    /// Returns the rows since the last call with `seen`: new ones of samples, queues, radio, proxies and mobility, and of links, UEs and
    /// flows those so far. Of more flows and links than `most` has, each call covers some in turn. Nothing that happens later
    /// depends on it.
    pub(crate) fn rows_since(&mut self, seen: &mut Seen, most: Most, now: Time) -> Tables {
        let mut rows = Tables::default();
        copy_new(&self.tables.samples, &mut seen.samples, most.rows, &mut rows.samples);
        copy_new(&self.tables.queues, &mut seen.queues, most.rows, &mut rows.queues);
        copy_new(&self.tables.radio, &mut seen.radio, most.rows, &mut rows.radio);
        copy_new(&self.tables.proxies, &mut seen.proxies, most.rows, &mut rows.proxies);
        copy_new(&self.tables.commands, &mut seen.commands, most.rows, &mut rows.commands);
        let World { scenario, network, hosts, link_rows, .. } = self;
        network.catch_up(now);
        let few = in_turn(&mut seen.flow, most.subjects, hosts.len() as usize);
        hosts.rows_so_far(few, now, &network.traffic.lost, &mut rows);
        let few = in_turn(&mut seen.link, most.subjects, network.links.len());
        link_rows.rows_so_far(few, &mut network.links, &scenario.links, (scenario.warmup, now), &mut rows.links);
        network.media.iter_mut().for_each(|medium| medium.rows_so_far(now, &mut rows));
        if let Some(radio) = network.radio() {
            copy_new(radio.mobility(), &mut seen.mobility, most.rows, &mut rows.mobility);
        }
        rows
    }

    /// Returns where each UE is.
    pub(crate) fn places(&self, now: Time) -> Vec<UePlace> {
        self.network.radio().map_or_else(Vec::new, |radio| radio.places(now))
    }

    /// Writes the rows of a sampling time.
    fn sample(&mut self, part: Part) {
        let World { scenario, network, tables, .. } = self;
        let now = self.parts.agenda.now();
        let interval = scenario.record.samples.interval().expect("sampling is on");
        network.catch_up(now);
        self.hosts.sample(now, interval, &network.traffic.lost, tables);
        self.link_rows.sample(&mut network.links, &scenario.links, now, interval, &mut tables.queues);
        network.media.iter_mut().for_each(|medium| medium.sample(now, interval, tables));
        if let Some(radio) = network.radio()
            && let Some((proxy, _)) = self.middleboxes.proxy()
        {
            let (hosts, ue) = (&self.hosts, |ue| radio.ue(ue));
            proxy.sample(self.id, now, |flow| hosts.name_of(flow), ue, &mut tables.proxies);
        }
        self.parts.agenda.wake(part, Some(now + interval));
    }

    fn warmed_up(&mut self) {
        let (now, network) = (self.parts.agenda.now(), &mut self.network);
        network.catch_up(now);
        self.hosts.warmed_up(now, &network.traffic.lost);
        self.link_rows.warmed_up(&mut network.links, &self.scenario.links, now);
        network.media.iter_mut().for_each(|medium| medium.warmed_up(now));
    }

    /// Ends the run at `end`.
    pub(crate) fn finish(self, end: Time) -> Result<Done, Error> {
        let World { scenario, id, parts, mut network, middleboxes, hosts, link_rows, mut tables, visitors, .. } = self;
        let packets = hosts.packets() + visitors;
        network.catch_up(end);
        hosts.finish(end, &network.traffic.lost, &mut tables);
        link_rows.finish(&mut network.links, &scenario.links, (scenario.warmup, end), &mut tables.links);
        let cells = network.radio().map_or(&[][..], |radio| radio.cells());
        middleboxes.finish(id, cells, &mut tables);
        network.media.into_iter().for_each(|medium| medium.finish(end, &mut tables));
        if let Some(watch) = network.traffic.watch {
            tables.events = watch.finish(end)?;
        }
        Ok(Done { tables, simulated: end - Time::ZERO, events: parts.agenda.handled(), packets })
    }
}
