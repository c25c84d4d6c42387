//! Middleboxes: components at a node between two links that see the passing packets.
//!
//! A route leads through a middlebox by a hop of its own, [`Hop::Middlebox`]. The network gives out a packet that has come
//! to one; [`Middleboxes::handle_packet`] shows it to the middlebox, whose [`Verdict`] says what becomes of it.
//!
//! Hosts own endpoints; an endpoint belongs to an application, or to a middlebox that terminates connections. A route belongs
//! to a leg, which leads from one endpoint to the next. [`Middleboxes::place`] inserts a middlebox into a route. It has its
//! own deadline in the agenda. In an emulation, packets are visitors, of which the simulator does not have the contents: the
//! trait [`External`] gives the same middleboxes access to their headers and builds the packets that they emit.
//!
//! # Adding a middlebox
//! 1. Implement [`Middlebox`]. Put the algorithm in a pure crate, so that the live program uses the same one.
//! 2. Use [`Passing::flow`] as the key of per-flow state. To send later, store [`Passing::way`], which identifies the route.
//! 3. Add a variant to `MiddleboxKind` and place it as `place_peps` does, controlled by a scenario key. Experiments need neither:
//!    `Live::place` takes any `Box<dyn Middlebox>`.
//! 4. For its own results, add a table to `record::tables` and fill it in `Middleboxes::finish`.
//! 5. `tests/all/middlebox.rs` has an example of each kind: a delay, a firewall, a responder, a split proxy.
//!
//! A visitor's way is valid only during the call that showed its packet, so a middlebox cannot send packets to visitors from a
//! timer. The real packets that it emits carry no payload.

pub(crate) mod interface;
mod pep;
mod proxy;
mod split;

use crate::network::Network;
use crate::network::packet::{Body, Packet, Parcel, Visitor};
use crate::network::route::{Hop, Routes};
use crate::parts::{Kind, Parts};
use crate::rows::RunId;
use ::pep::Arrival;
use aqm::{Ecn, Packet as _};
use des::{Part, Streams};
use interface::{Emission, External, FlowKey, Middlebox, NoVisitors, Origin, Passing, Towards, Verdict, Way};
use pep::PepBox;
pub(crate) use proxy::ProxyBox;
use record::Tables;
use tcp::Transmit;

/// A route's passage through a middlebox.
#[derive(Clone, Copy)]
struct Tap {
    place: u32,
    route: u32,
    towards_receiver: bool,
    /// The passage of the way back.
    back: u32,
    /// The UE at one end.
    towards: Option<Towards>,
}

/// A middlebox at a node.
struct Place {
    node: String,
    kind: MiddleboxKind,
    /// Its part of the agenda.
    part: Part,
}

enum MiddleboxKind {
    Pep(Box<PepBox>),
    Proxy(Box<ProxyBox>),
    Custom(Box<dyn Middlebox>),
}

impl MiddleboxKind {
    fn as_mut(&mut self) -> &mut dyn Middlebox {
        match self {
            MiddleboxKind::Pep(pep) => &mut **pep,
            MiddleboxKind::Proxy(proxy) => &mut **proxy,
            MiddleboxKind::Custom(custom) => &mut **custom,
        }
    }
}

/// All middleboxes of a network.
#[derive(Default)]
pub(crate) struct Middleboxes {
    places: Vec<Place>,
    taps: Vec<Tap>,
}

impl Middleboxes {
    /// Puts the scenario's PEPs on two routes between the same hosts, either of which may carry data. `cells` is the number
    /// of PEPs at the node of the cells.
    pub(crate) fn place_peps(
        &mut self,
        cells: usize,
        links: &[scenario::Link],
        routes: &mut Routes,
        (one, other): (u32, u32),
        parts: &mut Parts,
        streams: &Streams,
    ) {
        for (there, back) in [(one, other), (other, one)] {
            // Behind the last link is the host itself.
            let peps = |hop: &Hop| link(links, *hop).filter(|link| link.pep);
            let way = routes.hops(there);
            let at: Vec<_> = way[..way.len().saturating_sub(1)].iter().filter_map(peps).collect();
            for link in at {
                let new = || {
                    let random = streams.named(&format!("pep {} reports", link.to));
                    let count = if link.to == scenario::RAN { cells } else { 1 };
                    MiddleboxKind::Pep(Box::new(PepBox::new(count, link.pep_report_loss, random)))
                };
                self.place(&link.to, new, links, routes, (there, back), parts);
            }
        }
    }

    /// Puts the scenario's proxy at the node `node` on two routes between the same hosts. The route `there` leads to a UE.
    pub(crate) fn place_proxy(
        &mut self,
        (node, proxy): (&str, &scenario::Proxy),
        links: &[scenario::Link],
        routes: &mut Routes,
        ways: (u32, u32),
        parts: &mut Parts,
        streams: &Streams,
    ) {
        let new = || MiddleboxKind::Proxy(Box::new(ProxyBox::new(proxy, streams.named("proxy"))));
        self.place(node, new, links, routes, ways, parts);
    }

    /// Returns the proxy and its part of the agenda.
    pub(crate) fn proxy(&mut self) -> Option<(&mut ProxyBox, Part)> {
        self.places.iter_mut().find_map(|place| match &mut place.kind {
            MiddleboxKind::Proxy(proxy) => Some((&mut **proxy, place.part)),
            MiddleboxKind::Pep(_) | MiddleboxKind::Custom(_) => None,
        })
    }

    /// Puts a custom middlebox at a node of two routes between the same hosts. Returns whether both lead through the node.
    pub(crate) fn place_custom(
        &mut self,
        node: &str,
        custom: Box<dyn Middlebox>,
        links: &[scenario::Link],
        routes: &mut Routes,
        ways: (u32, u32),
        parts: &mut Parts,
    ) -> bool {
        self.place(node, || MiddleboxKind::Custom(custom), links, routes, ways, parts)
    }

    /// Puts a middlebox at `node` on the route `there`, the way of data, and the route `back`, that of its
    /// acknowledgements, unless they have one there. `new` makes it if no other routes pass it yet. What is attached to the
    /// node directly is not seen.
    fn place(
        &mut self,
        node: &str,
        new: impl FnOnce() -> MiddleboxKind,
        links: &[scenario::Link],
        routes: &mut Routes,
        (there, back): (u32, u32),
        parts: &mut Parts,
    ) -> bool {
        let arrives = |hop: Hop| link(links, hop).is_some_and(|link| link.to == node);
        let leaves = |hop: Hop| link(links, hop).is_some_and(|link| link.from == node);
        let (way, way_back) = (routes.hops(there), routes.hops(back));
        // After the link that ends at the node on the way there, and before the link that begins at it on the way back.
        let Some(after) = (0..way.len().saturating_sub(1)).find(|&at| arrives(way[at])) else { return false };
        let Some(before) = (1..way_back.len()).find(|&at| leaves(way_back[at])) else { return false };
        let is_tap = |hop: Hop| matches!(hop, Hop::Middlebox(_));
        if is_tap(way[after + 1]) || is_tap(way_back[before - 1]) {
            return true;
        }
        let place = match self.places.iter().position(|place| place.node == node) {
            Some(place) => place,
            None => {
                let part = parts.add(Kind::Middlebox(self.places.len() as u32));
                self.places.push(Place { node: node.to_owned(), kind: new(), part });
                self.places.len() - 1
            }
        } as u32;
        let first = self.taps.len() as u32;
        routes.insert(there, after + 1, Hop::Middlebox(first));
        routes.insert(back, before, Hop::Middlebox(first + 1));
        for (route, place_of, towards_receiver, back) in
            [(there, first, true, first + 1), (back, first + 1, false, first)]
        {
            let towards = towards(routes, route, Hop::Middlebox(place_of));
            self.taps.push(Tap { place, route, towards_receiver, back, towards });
        }
        true
    }

    /// Handles a packet at the hop `tap`: the packet is forwarded or consumed, and what the middlebox sends enters the network.
    pub(crate) fn handle_packet(
        &mut self,
        tap: u32,
        packet: Packet,
        network: &mut Network,
        parts: &mut Parts,
        external: &mut dyn External,
    ) {
        let now = parts.agenda.now();
        let Tap { place, towards_receiver, towards, .. } = self.taps[tap as usize];
        let ce = packet.ecn() == Ecn::Ce;
        let cell = towards.and_then(|towards| network.cell_of(towards.number));
        let place = &mut self.places[place as usize];
        let parcel = network.traffic.store.get(&packet);
        let verdict = match &parcel.body {
            Body::Tcp(Transmit { segment, .. }) => {
                let Parcel { owner, towards: end, priority, sent, .. } = *parcel;
                let flow = FlowKey::Simulated(owner.connection, owner.generation);
                let arrival = Arrival { packets: 1, packet_len: packet.len(), via: 0 };
                let way = Way { tap, origin: Origin::Simulated { owner, towards: end, priority } };
                let passing = Passing { flow, towards_receiver, segment, arrival, sent, ce, towards, cell, way };
                place.kind.as_mut().handle_packet(&passing, now)
            }
            Body::Visitor(Visitor { tag, .. }) => match external.segment(*tag, towards_receiver) {
                Some((flow, segment, arrival)) => {
                    let way = Way { tap, origin: Origin::Visitor(*tag) };
                    let (segment, sent) = (&segment, parcel.sent);
                    let passing = Passing { flow, towards_receiver, segment, arrival, sent, ce, towards, cell, way };
                    place.kind.as_mut().handle_packet(&passing, now)
                }
                None => Verdict::Forward,
            },
            Body::Udp { .. } => Verdict::Forward,
        };
        parts.agenda.wake(place.part, place.kind.as_mut().poll_timeout());
        if let Verdict::Emit(emission) | Verdict::Answer(emission) = &verdict {
            self.emit(emission, network, parts, external);
        }
        match verdict {
            Verdict::Forward | Verdict::Emit(_) => {}
            Verdict::Consume | Verdict::Answer(_) => {
                if let Body::Visitor(visitor) = network.traffic.store.get(&packet).body {
                    external.consumed(visitor.tag);
                }
                return network.traffic.store.free(&packet);
            }
        }
        network.go_on(packet.passed(), &mut parts.agenda);
    }

    /// Handles the deadline of a middlebox.
    pub(crate) fn handle_timeout(&mut self, place: u32, network: &mut Network, parts: &mut Parts) {
        let now = parts.agenda.now();
        while let Some(emission) = self.places[place as usize].kind.as_mut().handle_timeout(now) {
            self.emit(&emission, network, parts, &mut NoVisitors);
        }
        let place = &mut self.places[place as usize];
        parts.agenda.wake(place.part, place.kind.as_mut().poll_timeout());
    }

    /// Sends a packet that a middlebox emits.
    fn emit(&self, emission: &Emission, network: &mut Network, parts: &mut Parts, external: &mut dyn External) {
        let Emission { way: Way { tap, origin }, onward, segment, ect, sent } = *emission;
        let tap = if onward { tap } else { self.taps[tap as usize].back };
        let route = self.taps[tap as usize].route;
        let now = parts.agenda.now();
        let parcel = match origin {
            Origin::Simulated { owner, towards, priority } => {
                let body = Body::Tcp(Transmit { segment, ect });
                let towards = if onward { towards } else { towards.other() };
                Parcel { body, sent: sent.unwrap_or(now), owner, route, towards, priority, aired: None, held: false }
            }
            Origin::Visitor(tag) => {
                let Some(visitor) = external.build(tag, onward, &segment) else { return };
                network.traffic.visit(visitor, route, now)
            }
        };
        *network.traffic.store.draft() = parcel;
        network.send_from(network.routes.behind(route, Hop::Middlebox(tap)), &mut parts.agenda);
    }

    /// Writes the rows of the middleboxes at the end.
    pub(crate) fn finish(&self, id: RunId, cells: &[String], tables: &mut Tables) {
        for place in &self.places {
            match &place.kind {
                MiddleboxKind::Pep(pep) => pep.finish(id, &place.node, cells, &mut tables.peps),
                MiddleboxKind::Proxy(_) | MiddleboxKind::Custom(_) => {}
            }
        }
    }
}

/// Returns the UE whose radio hop is on the way after or before the hop `at`.
fn towards(routes: &Routes, route: u32, at: Hop) -> Option<Towards> {
    let (way, radio) = (routes.hops(route), |hop: &Hop| routes.ue(*hop));
    let place = way.iter().position(|hop| *hop == at)?;
    let ahead = way[place..].iter().find_map(radio).map(|number| Towards { number, ue: true });
    ahead.or_else(|| way[..place].iter().find_map(radio).map(|number| Towards { number, ue: false }))
}

/// Returns the scenario's link of a hop.
fn link(links: &[scenario::Link], hop: Hop) -> Option<&scenario::Link> {
    match hop {
        Hop::Link(link) => links.get(link as usize),
        Hop::Medium(..) | Hop::Middlebox(_) => None,
    }
}
