//! Links and routes: a packet's way from one host to the other.
//!
//! Where everything that a link carries goes on to one next link, and that gets nothing from elsewhere, a packet's
//! passage through both is known when it enters the first, as long as they are [`Foreseen`]. Such links form a *lane*:
//! the packet passes all of it at once, in its own time, and waits at the end of the last link until that time has come.
//! So a packet costs a call of the agenda where ways part or meet, or where a queue is managed, and not at every hop.
//!
//! What lies ahead is noted ahead: counters leave it out until its time has come ([`Network::catch_up`]), and a
//! [`Watch`] sorts what it hears before it writes.

use crate::lte::Radio;
use crate::packet::{Body, Packet, Parcel, Store};
use crate::peps::Peps;
use crate::watch::{Happening, Watch};
use aqm::{Backlog, DropReason, Packet as _};
use channel::Direction;
use des::{Agenda, Part};
use link::{Foreseen, Link};
use record::Distribution;
use std::collections::VecDeque;
use units::{Rate, Span, Time};

/// A link in place.
pub(crate) struct Place {
    pub(crate) name: String,
    carrier: Carrier,
    /// The next link of its lane.
    onward: Option<u32>,
    /// Its number in the agenda, by which it is woken for what waits at its end.
    part: Part,
    /// How long packets waited for the server, since the warm-up.
    waits: Waits,
    /// Whether its rate is not the scenario's any more.
    changed: bool,
}

/// How long packets waited, apart from those that did not have to, of which there are many.
#[derive(Default)]
struct Waits {
    some: Distribution,
    none: u64,
}

impl Waits {
    #[inline]
    fn record(&mut self, waited: Span) {
        match waited {
            Span::ZERO => self.none += 1,
            waited => self.some.record(waited),
        }
    }
}

/// What carries packets over a link.
// The larger one is the one that most links are.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Carrier {
    /// The packets at the end of the lane, if this is its last link, with the times at which they are delivered.
    Foreseen(Foreseen, VecDeque<(Time, Packet)>),
    Link(Link<Packet>),
    /// The radio hop of this UE.
    Radio(u32, Direction),
}

/// Radio hops are not asked what links are asked.
const NO_LINK: &str = "a radio hop is no link";

impl Carrier {
    /// `foresee`: whether nothing will happen to the link but packets.
    pub(crate) fn new(config: link::Config, random: link::Random, foresee: bool) -> Carrier {
        match Foreseen::new(&config, random.clone()).filter(|_| foresee) {
            Some(foreseen) => Carrier::Foreseen(foreseen, VecDeque::new()),
            None => Carrier::Link(Link::new(config, random)),
        }
    }
}

impl Place {
    pub(crate) fn new(name: String, carrier: Carrier, part: Part) -> Place {
        Place { name, carrier, onward: None, part, waits: Waits::default(), changed: false }
    }

    /// The distribution of the waits in its queue, of those who did not wait too.
    pub(crate) fn waits(&self) -> Distribution {
        let mut waits = self.waits.some.clone();
        waits.record_many(Span::ZERO, self.waits.none);
        waits
    }

    /// The warm-up ends.
    pub(crate) fn forget_waits(&mut self) {
        self.waits = Waits::default();
    }

    /// What was done until `now`.
    pub(crate) fn stats(&mut self, now: Time) -> link::Stats {
        match &mut self.carrier {
            Carrier::Foreseen(foreseen, _) => foreseen.stats(now),
            Carrier::Link(link) => link.stats(now),
            Carrier::Radio(..) => unreachable!("{NO_LINK}"),
        }
    }

    /// What waits for the server at `now`.
    pub(crate) fn backlog(&mut self, now: Time) -> Backlog {
        match &mut self.carrier {
            Carrier::Foreseen(foreseen, _) => foreseen.backlog(now),
            Carrier::Link(link) => link.backlog(now),
            Carrier::Radio(..) => unreachable!("{NO_LINK}"),
        }
    }

    /// Packets that were marked CE so far.
    pub(crate) fn marks(&self) -> u64 {
        match &self.carrier {
            Carrier::Foreseen(..) | Carrier::Radio(..) => 0,
            Carrier::Link(link) => link.marks(),
        }
    }

    /// Gives the link another rate, if it has one that can be changed.
    pub(crate) fn set_rate(&mut self, rate: Rate, now: Time) -> bool {
        let Carrier::Link(link) = &mut self.carrier else { return false };
        let done = link.set_rate(rate, now);
        self.changed |= done;
        done
    }

    /// Whether [`Place::set_rate`] has changed it.
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Its number in the agenda.
    pub(crate) fn part(&self) -> Part {
        self.part
    }

    /// Sums up what has been delivered by `now`.
    fn settle(&mut self, now: Time) {
        if let Carrier::Foreseen(foreseen, _) = &mut self.carrier {
            foreseen.settle(now);
        }
    }

    /// The next packet that has come to its end by `now`.
    #[inline]
    fn leave(&mut self, now: Time) -> Option<Packet> {
        match &mut self.carrier {
            Carrier::Foreseen(_, end) => end.pop_front_if(|(due, _)| *due <= now).map(|(_, packet)| packet),
            Carrier::Link(link) => {
                let packet = link.poll_delivery(now)?;
                self.waits.record(packet.waited());
                Some(packet.passed())
            }
            Carrier::Radio(..) => unreachable!("{NO_LINK}"),
        }
    }

    /// When to call it.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match &self.carrier {
            Carrier::Foreseen(_, end) => end.front().map(|&(due, _)| due),
            Carrier::Link(link) => link.poll_timeout(),
            Carrier::Radio(..) => unreachable!("{NO_LINK}"),
        }
    }
}

/// All links, the routes over them, and the packets on their way.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) places: Vec<Place>,
    /// Indices of links, in the order of the way.
    pub(crate) routes: Vec<Box<[u32]>>,
    /// What radio hops lead through.
    pub(crate) radio: Option<Box<Radio>>,
    /// The PEPs on the way.
    pub(crate) peps: Peps,
    pub(crate) traffic: InTransit,
}

/// The packets on their way, and what becomes of those that are lost.
#[derive(Default)]
pub(crate) struct InTransit {
    pub(crate) store: Store,
    /// Packets lost so far, by flow,
    pub(crate) lost: Vec<u64>,
    /// and those that will be: when, and the flow.
    doomed: Vec<(Time, u32)>,
    /// Tags of visitors that were lost and nobody has asked for yet.
    pub(crate) lost_visitors: Vec<u32>,
    /// Who is told what happens to each packet, if anybody.
    pub(crate) watch: Option<Box<Watch>>,
}

impl Network {
    /// Joins links to lanes, once links and routes are in place.
    pub(crate) fn connect(&mut self) {
        for link in 0..self.places.len() as u32 {
            self.places[link as usize].onward = self.only_next(link).filter(|&next| {
                let foreseen = |link: u32| matches!(self.places[link as usize].carrier, Carrier::Foreseen(..));
                let watched = self.peps.is_at(link);
                foreseen(link) && foreseen(next) && self.only_before(next) == Some(link) && !watched
            });
        }
        // A circle has no end to wait at: it is opened.
        for first in 0..self.places.len() as u32 {
            let mut at = first;
            while let Some(next) = self.places[at as usize].onward {
                if next == first {
                    self.places[at as usize].onward = None;
                }
                at = next;
            }
        }
    }

    /// The link that everything goes on to that has passed `link`, if there is just one and nothing ends there.
    fn only_next(&self, link: u32) -> Option<u32> {
        only(self.routes.iter().flat_map(|route| {
            let places = (0..route.len()).filter(move |&i| route[i] == link);
            places.map(|i| route.get(i + 1).copied())
        }))
    }

    /// The link that everything comes from that enters `link`, if there is just one and nothing begins there.
    fn only_before(&self, link: u32) -> Option<u32> {
        only(self.routes.iter().flat_map(|route| {
            let places = (0..route.len()).filter(move |&i| route[i] == link);
            places.map(|i| i.checked_sub(1).map(|before| route[before]))
        }))
    }

    /// A host hands over the packet whose parcel was drafted: it enters the first link of its `route`.
    #[inline(always)]
    pub(crate) fn send(&mut self, route: u32, agenda: &mut Agenda) {
        let first = self.routes[route as usize][0];
        let packet = self.traffic.store.post();
        self.traffic.note(agenda.now(), &packet, Happening::Sent);
        self.enter(first, packet, agenda);
    }

    /// As [`Network::send`], but it enters at a later hop.
    pub(crate) fn send_at(&mut self, route: u32, hop: u16, agenda: &mut Agenda) {
        let link = self.routes[route as usize][usize::from(hop)];
        let packet = self.traffic.store.post().at_hop(hop);
        self.traffic.note(agenda.now(), &packet, Happening::Sent);
        self.enter_next(link, packet, agenda);
    }

    /// A woken link is called at its deadline.
    #[inline]
    pub(crate) fn call(&mut self, link: u32, agenda: &Agenda) {
        let now = agenda.now();
        if let Carrier::Link(carrier) = &mut self.places[link as usize].carrier {
            carrier.handle_timeout(now, &mut |packet: Packet, why| self.traffic.lose(link, &packet, why, now, now));
        }
    }

    /// The next packet that has come to the end of its route over `link`, which was called; those that go on are sent on.
    /// Call until `None`, and [`Store::free`] the parcel of what arrived.
    #[inline]
    pub(crate) fn poll(&mut self, link: u32, agenda: &mut Agenda) -> Option<Packet> {
        let now = agenda.now();
        loop {
            let place = &mut self.places[link as usize];
            let Some(packet) = place.leave(now) else {
                agenda.wake(place.part, place.poll_timeout());
                return None;
            };
            if matches!(place.carrier, Carrier::Link(_)) {
                self.traffic.note(now, &packet, |packet, parcel| Happening::Left(link, packet, parcel));
            }
            if !self.goes_on(packet, link, agenda) {
                return Some(packet);
            }
        }
    }

    /// Sends a packet on that has passed `link`; whether there was a next one.
    #[inline(always)]
    fn goes_on(&mut self, packet: Packet, link: u32, agenda: &mut Agenda) -> bool {
        let route = self.traffic.store.get(&packet).route;
        let Some(&next) = self.routes[route as usize].get(usize::from(packet.hop())) else { return false };
        if self.peps.is_at(link)
            && let Some((route, hop)) = self.peps.pass(&packet, &mut self.traffic.store, agenda.now())
        {
            self.send_at(route, hop, agenda);
        }
        self.enter_next(next, packet, agenda);
        true
    }

    /// The LTE network is called at its deadline.
    #[inline]
    pub(crate) fn call_radio(&mut self, agenda: &Agenda) {
        let (now, Network { radio, routes, traffic, .. }) = (agenda.now(), self);
        if let Some(radio) = radio {
            radio.run(now, &mut |packet, why| traffic.lose_on_air(routes, &packet, why, now));
        }
    }

    /// As [`Network::poll`], of the LTE network.
    #[inline]
    pub(crate) fn poll_radio(&mut self, agenda: &mut Agenda) -> Option<Packet> {
        let now = agenda.now();
        loop {
            let Network { radio, traffic, .. } = self;
            let radio = radio.as_mut()?;
            let Some(packet) = radio.poll(now, &mut traffic.store) else {
                agenda.wake(radio.part, radio.poll_timeout());
                return None;
            };
            let hop = traffic.place_of(&self.routes, &packet);
            let packet = packet.passed();
            traffic.note(now, &packet, |packet, parcel| Happening::Left(hop, packet, parcel));
            if !self.goes_on(packet, hop, agenda) {
                return Some(packet);
            }
        }
    }

    /// Brings all counters up to `moment`, before somebody looks at them.
    pub(crate) fn catch_up(&mut self, moment: Time) {
        self.places.iter_mut().for_each(|place| place.settle(moment));
        self.traffic.bury(moment);
    }

    /// Lets the watch, if there is one, write what happened before `moment`.
    pub(crate) fn write_before(&mut self, moment: Time) {
        if let Some(watch) = &mut self.traffic.watch {
            watch.write_before(moment);
        }
    }

    fn enter_next(&mut self, link: u32, packet: Packet, agenda: &mut Agenda) {
        self.enter(link, packet, agenda);
    }

    /// A packet enters `link` and passes the lane that begins there.
    // In line, for a new packet to stay in registers.
    #[inline(always)]
    fn enter(&mut self, mut link: u32, mut packet: Packet, agenda: &mut Agenda) {
        let now = agenda.now();
        let Network { places, traffic, .. } = self;
        let watched = traffic.watch.is_some();
        let mut at = now;
        loop {
            if watched {
                traffic.note(at, &packet, |packet, parcel| Happening::Entered(link, packet, parcel));
            }
            let place = &mut places[link as usize];
            let Carrier::Foreseen(foreseen, end) = &mut place.carrier else {
                return self.enter_other(link, packet, agenda);
            };
            match foreseen.pass(packet.len(), at) {
                Err((at, why)) => return traffic.lose(link, &packet, why, at, now),
                Ok((due, waited)) => {
                    at = due;
                    place.waits.record(waited);
                }
            }
            if foreseen.is_full() {
                foreseen.settle(now);
            }
            packet = packet.passed();
            if watched {
                traffic.note(at, &packet, |packet, parcel| Happening::Left(link, packet, parcel));
            }
            match place.onward {
                Some(next) if at != Time::MAX => link = next,
                _ => {
                    end.push_back((at, packet));
                    if end.len() == 1 {
                        agenda.wake(place.part, Some(at));
                    }
                    return;
                }
            }
        }
    }

    fn enter_other(&mut self, link: u32, packet: Packet, agenda: &mut Agenda) {
        let now = agenda.now();
        let Network { places, routes, radio, traffic, .. } = self;
        let place = &mut places[link as usize];
        match &mut place.carrier {
            Carrier::Foreseen(..) => unreachable!("it passes at once"),
            Carrier::Link(carrier) => {
                carrier.handle_packet(packet, now, &mut |packet: Packet, why| {
                    traffic.lose(link, &packet, why, now, now);
                });
                agenda.wake(place.part, place.poll_timeout());
            }
            Carrier::Radio(ue, direction) => {
                let radio = radio.as_mut().expect("a radio hop leads through a network");
                let drops = &mut |packet: Packet, why| traffic.lose_on_air(routes, &packet, why, now);
                radio.enter(*ue, *direction, packet, now, drops);
                agenda.wake(radio.part, radio.poll_timeout());
            }
        }
    }
}

/// What all of them are, if they are all the same.
fn only(mut all: impl Iterator<Item = Option<u32>>) -> Option<u32> {
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

impl InTransit {
    /// A packet is lost at `at`, which may lie ahead.
    #[cold]
    fn lose(&mut self, link: u32, packet: &Packet, reason: DropReason, at: Time, now: Time) {
        let parcel = *self.store.get(packet);
        self.store.free(packet);
        if self.doomed.len() == self.doomed.capacity() {
            self.bury(now);
        }
        self.doomed.push((at, parcel.owner.flow));
        if let Body::Visitor(visitor) = parcel.body {
            self.lost_visitors.push(visitor.tag);
        }
        if let Some(watch) = &mut self.watch {
            watch.note(at, Happening::Lost(link, *packet, parcel, reason));
        }
    }

    /// A packet is lost on the radio hop that it is on.
    #[cold]
    fn lose_on_air(&mut self, routes: &[Box<[u32]>], packet: &Packet, reason: DropReason, now: Time) {
        let hop = self.place_of(routes, packet);
        self.lose(hop, packet, reason, now, now);
    }

    /// The place that a packet is at.
    fn place_of(&mut self, routes: &[Box<[u32]>], packet: &Packet) -> u32 {
        routes[self.store.get(packet).route as usize][usize::from(packet.hop())]
    }

    /// Counts what was lost by `moment`.
    fn bury(&mut self, moment: Time) {
        let lost = &mut self.lost;
        self.doomed.retain(|&(at, flow)| {
            let counts = at <= moment;
            lost[flow as usize] += u64::from(counts);
            !counts
        });
    }

    /// Tells the watch, if there is one, what happens to a packet at `at`.
    #[inline]
    pub(crate) fn note(&mut self, at: Time, packet: &Packet, what: impl FnOnce(Packet, Parcel) -> Happening) {
        if let Some(watch) = &mut self.watch {
            watch.note(at, what(*packet, *self.store.get(packet)));
        }
    }
}
