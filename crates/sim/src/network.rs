//! Links and routes: a packet's way from one host to the other.
//!
//! Where everything that a link carries goes on to one next link, and that gets nothing from elsewhere, a packet's
//! passage through both is known when it enters the first, as long as they are [`Foreseen`](::link::Foreseen). Such links form a *lane*:
//! the packet passes all of it at once, in its own time, and waits at the end of the last link until that time has come.
//! So a packet costs a call of the agenda where ways part or meet, or where a queue is managed, and not at every hop.
//!
//! What lies ahead is noted ahead: counters leave it out until its time has come ([`Network::catch_up`]), and a
//! [`Watch`] sorts what it hears before it writes.

pub(crate) mod link;
pub(crate) mod medium;
pub(crate) mod packet;
pub(crate) mod reports;
pub(crate) mod route;
pub(crate) mod watch;

use aqm::{Backlog, DropReason, Packet as _};
use des::{Agenda, Part};
use link::{Carrier, PlacedLink};
use medium::PlacedMedium;
use medium::interface::Port;
use medium::radio::Radio;
use packet::{Body, End, Owner, Packet, Parcel, Store, Visitor};
use route::{Hop, Routes};
use std::collections::BTreeMap;
use units::Time;
use watch::{Happening, Watch};

/// All links, the routes over them, and the packets in transit.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) links: Vec<PlacedLink>,
    pub(crate) media: Vec<PlacedMedium>,
    /// Links and ports of media by name.
    pub(crate) hops: BTreeMap<String, Hop>,
    pub(crate) routes: Routes,
    pub(crate) traffic: InTransit,
}

/// The place that a packet has reached.
pub(crate) enum Reached {
    /// The end of its route.
    End(Packet),
    /// A middlebox, by this hop ([`Hop::Middlebox`]).
    Middlebox(u32, Packet),
}

/// The packets in transit, and the records of lost ones.
#[derive(Default)]
pub(crate) struct InTransit {
    pub(crate) store: Store,
    /// Packets lost so far, by flow.
    pub(crate) lost: Vec<u64>,
    /// Future losses: time and flow.
    pending_losses: Vec<(Time, u32)>,
    /// Data that has left the queue of its own host, and was not taken yet.
    released: Vec<Released>,
    /// Tags of lost visitors that have not been polled.
    pub(crate) lost_visitors: Vec<u32>,
    /// Records what happens to each packet, if requested.
    pub(crate) watch: Option<Box<Watch>>,
}

/// Data of a connection that has left the queue of its own host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Released {
    pub(crate) owner: Owner,
    /// The end that it goes to.
    pub(crate) towards: End,
    /// Bytes of payload.
    pub(crate) payload: u64,
}

impl Network {
    /// Returns the first hop of `route` if packets wait for it in the queue of their host. From now on, what leaves that
    /// queue is noted.
    pub(crate) fn track_host(&mut self, route: u32) -> Option<Hop> {
        let first = self.routes.hops(route)[0];
        match first {
            Hop::Medium(medium, port) => self.media[usize::from(medium)].track_host(port).then_some(first),
            Hop::Link(link) => self.links[link as usize].queue_in_host().map(|link| {
                link.note_begun();
                first
            }),
            Hop::Middlebox(_) => None,
        }
    }

    /// Returns whether the queue of a host in front of `first`, the first hop of a route, would drop a packet after `ahead`.
    pub(crate) fn is_host_full(&self, first: Hop, len: u32, priority: u8, ahead: Backlog, now: Time) -> bool {
        match first {
            Hop::Medium(medium, port) => self.media[usize::from(medium)].is_host_full(port, len, priority, ahead),
            Hop::Link(link) => match &self.links[link as usize].carrier {
                Carrier::Link(carrier) => carrier.is_full(len, priority, ahead, now),
                Carrier::Foreseen(..) => false,
            },
            Hop::Middlebox(_) => false,
        }
    }

    /// Returns the radio network, if there is one.
    pub(crate) fn radio(&self) -> Option<&Radio> {
        self.media.iter().find_map(PlacedMedium::radio)
    }

    /// Like [`Network::radio`], to be changed.
    pub(crate) fn radio_mut(&mut self) -> Option<&mut Radio> {
        radio_of(&mut self.media)
    }

    /// Returns the cell that serves a UE, or served it last, in a radio network.
    pub(crate) fn cell_of(&self, ue: u32) -> Option<u32> {
        self.radio().map(|radio| radio.cell_of(ue))
    }

    /// Adds a medium; its ports are hops by their names.
    pub(crate) fn add_medium(&mut self, medium: PlacedMedium) {
        let index = self.media.len() as u16;
        self.hops.extend((0..).zip(medium.ports()).map(|(port, name)| (name, Hop::Medium(index, Port(port)))));
        if medium.radio().is_some() {
            self.routes.radio = Some(index);
        }
        self.media.push(medium);
    }

    /// Renews the deadlines of media after a change from outside.
    pub(crate) fn wake_media(&self, agenda: &mut Agenda) {
        self.media.iter().for_each(|medium| agenda.wake(medium.part, medium.poll_timeout()));
    }

    /// Adds a route over named links and ports of media and returns its number.
    ///
    /// # Panics
    /// If one of them does not exist.
    pub(crate) fn add_route(&mut self, names: &[String]) -> u32 {
        let hop = |name: &String| *self.hops.get(name).expect("a route names links and ports that exist");
        self.routes.add(names.iter().map(hop).collect())
    }

    /// Joins links to lanes, once links and routes are in place.
    pub(crate) fn connect(&mut self) {
        for link in 0..self.links.len() as u32 {
            self.links[link as usize].onward = self.lane_after(link);
            self.links[link as usize].is_entrance =
                self.is_foreseen(link) && self.routes.is_always_first(Hop::Link(link));
        }
        // A circle has no end to wait at: it is opened.
        for first in 0..self.links.len() as u32 {
            let mut at = first;
            while let Some(next) = self.links[at as usize].onward {
                if next == first {
                    self.links[at as usize].onward = None;
                }
                at = next;
            }
        }
    }

    /// The link that continues the lane of `link`.
    fn lane_after(&self, link: u32) -> Option<u32> {
        let hop = Hop::Link(link);
        let Some(Hop::Link(next)) = self.routes.only_next(hop) else { return None };
        let is_alone = self.routes.only_before(Hop::Link(next)) == Some(hop);
        (is_alone && self.is_foreseen(link) && self.is_foreseen(next)).then_some(next)
    }

    fn is_foreseen(&self, link: u32) -> bool {
        matches!(self.links[link as usize].carrier, Carrier::Foreseen(..))
    }

    /// Accepts the packet of the drafted parcel from a host: it enters the first hop of its `route`.
    #[inline(always)]
    pub(crate) fn send(&mut self, route: u32, agenda: &mut Agenda) {
        let first = self.routes.hops(route)[0];
        let packet = self.traffic.store.post();
        self.traffic.note(agenda.now(), &packet, Happening::Sent);
        self.enter(first, packet, agenda);
    }

    /// Like [`Network::send`], but the packet leaves its host at `at`, which may lie ahead, and `is_next` says whether all
    /// packets that the host sent before have entered their first hops. Returns the packet if its first hop cannot take it yet:
    /// [`Network::go_on`] with it when its time has come.
    #[inline(always)]
    pub(crate) fn send_at(&mut self, route: u32, at: Time, is_next: bool, agenda: &mut Agenda) -> Option<Packet> {
        let first = self.routes.hops(route)[0];
        let packet = self.traffic.store.post();
        self.traffic.note(at, &packet, Happening::Sent);
        if let Hop::Link(link) = first
            && self.links[link as usize].is_entrance
        {
            self.enter_link_at(link, packet, at, agenda);
            return None;
        }
        if at > agenda.now() || !is_next {
            return Some(packet);
        }
        self.enter_on(first, packet, agenda);
        None
    }

    /// Like [`Network::send`], but the packet enters after `passed` hops.
    pub(crate) fn send_from(&mut self, passed: u16, agenda: &mut Agenda) {
        let packet = self.traffic.store.post().at_hop(passed);
        self.traffic.note(agenda.now(), &packet, Happening::Sent);
        self.go_on(packet, agenda);
    }

    /// Enters a packet that a middlebox has forwarded or sent into the next hop of its route.
    pub(crate) fn go_on(&mut self, packet: Packet, agenda: &mut Agenda) {
        let hop = self.traffic.hop_of(&self.routes, &packet);
        self.enter_on(hop, packet, agenda);
    }

    /// Handles the deadline of a link.
    #[inline]
    pub(crate) fn call(&mut self, link: u32, agenda: &Agenda) {
        let now = agenda.now();
        let Network { links, traffic, .. } = self;
        if let Carrier::Link(carrier) = &mut links[link as usize].carrier {
            let hop = Hop::Link(link);
            carrier.handle_timeout(now, &mut |packet: Packet, why| traffic.lose(hop, &packet, why, now, now));
            traffic.note_begun(carrier);
        }
    }

    /// Returns the next packet of `link`, which was called, that has reached a middlebox or the end of its route. Packets that
    /// continue are forwarded. Call until `None`, and [`Store::free`] the parcels of packets that end.
    #[inline]
    pub(crate) fn poll(&mut self, link: u32, agenda: &mut Agenda) -> Option<Reached> {
        let now = agenda.now();
        loop {
            let place = &mut self.links[link as usize];
            let Some(packet) = place.leave(now) else {
                agenda.wake(place.part, place.poll_timeout());
                return None;
            };
            let hop = Hop::Link(link);
            if matches!(place.carrier, Carrier::Link(_)) {
                self.traffic.note(now, &packet, |packet, parcel| Happening::Left(hop, packet, parcel));
            }
            if let Some(reached) = self.next(packet, agenda) {
                return Some(reached);
            }
        }
    }

    /// Forwards a packet that has passed a hop, unless it has reached a middlebox or the end of its route.
    #[inline(always)]
    fn next(&mut self, packet: Packet, agenda: &mut Agenda) -> Option<Reached> {
        let route = self.traffic.store.get(&packet).route;
        match self.routes.hop(route, packet.hop()) {
            None => return Some(Reached::End(packet)),
            Some(Hop::Middlebox(tap)) => return Some(Reached::Middlebox(tap, packet)),
            Some(Hop::Link(link)) => self.enter_link_on(link, packet, agenda),
            Some(Hop::Medium(medium, port)) => self.enter_medium(medium, port, packet, agenda),
        }
        None
    }

    /// Handles the deadline of a medium.
    #[inline]
    pub(crate) fn call_medium(&mut self, medium: u16, agenda: &Agenda) {
        let (now, Network { media, routes, traffic, .. }) = (agenda.now(), self);
        let medium = &mut media[usize::from(medium)];
        medium.handle_timeout(now, &mut |packet, why| traffic.lose_in_medium(routes, &packet, why, now));
        traffic.note_released(medium);
    }

    /// Like [`Network::poll`], for a medium.
    #[inline]
    pub(crate) fn poll_medium(&mut self, medium: u16, agenda: &mut Agenda) -> Option<Reached> {
        let now = agenda.now();
        loop {
            let Network { media, traffic, .. } = self;
            let medium = &mut media[usize::from(medium)];
            let Some(packet) = medium.poll(now, &mut traffic.store) else {
                agenda.wake(medium.part, medium.poll_timeout());
                return None;
            };
            let hop = traffic.hop_of(&self.routes, &packet);
            let packet = packet.passed();
            traffic.note(now, &packet, |packet, parcel| Happening::Left(hop, packet, parcel));
            if let Some(reached) = self.next(packet, agenda) {
                return Some(reached);
            }
        }
    }

    /// Advances all counters to `moment`, before they are read.
    pub(crate) fn catch_up(&mut self, moment: Time) {
        self.links.iter_mut().for_each(|link| link.settle(moment));
        self.traffic.settle_losses(moment);
    }

    /// Has the watch, if there is one, write the events before `moment`.
    pub(crate) fn write_before(&mut self, moment: Time) {
        if let Some(watch) = &mut self.traffic.watch {
            watch.write_before(moment);
        }
    }

    // In line, for a new packet to stay in registers.
    #[inline(always)]
    fn enter(&mut self, hop: Hop, packet: Packet, agenda: &mut Agenda) {
        match hop {
            Hop::Link(link) => self.enter_link(link, packet, agenda),
            Hop::Medium(medium, port) => self.enter_medium(medium, port, packet, agenda),
            Hop::Middlebox(_) => panic!("a middlebox stands between links"),
        }
    }

    /// Like [`Network::enter`], for a packet that is not new.
    fn enter_on(&mut self, hop: Hop, packet: Packet, agenda: &mut Agenda) {
        self.enter(hop, packet, agenda);
    }

    /// Like [`Network::enter_link`], for a packet in transit.
    fn enter_link_on(&mut self, link: u32, packet: Packet, agenda: &mut Agenda) {
        self.enter_link(link, packet, agenda);
    }

    /// Enters a packet into `link` and the lane that begins there.
    #[inline(always)]
    fn enter_link(&mut self, link: u32, packet: Packet, agenda: &mut Agenda) {
        self.enter_link_at(link, packet, agenda.now(), agenda);
    }

    /// Like [`Network::enter_link`], at a time that lies ahead only if the link is an entrance.
    #[inline(always)]
    fn enter_link_at(&mut self, mut link: u32, mut packet: Packet, mut at: Time, agenda: &mut Agenda) {
        let now = agenda.now();
        let Network { links, traffic, .. } = self;
        let watched = traffic.watch.is_some();
        loop {
            if watched {
                traffic.note(at, &packet, |packet, parcel| Happening::Entered(Hop::Link(link), packet, parcel));
            }
            let place = &mut links[link as usize];
            let (foreseen, end) = match &mut place.carrier {
                Carrier::Foreseen(foreseen, end) => (foreseen, end),
                Carrier::Link(carrier) => return traffic.queue(link, carrier, place.part, packet, agenda),
            };
            match foreseen.pass(packet.len(), at) {
                Err((at, why)) => return traffic.lose(Hop::Link(link), &packet, why, at, now),
                Ok((due, waited)) => {
                    at = due;
                    // What is never served waits for no time that could be told.
                    if due < Time::MAX {
                        place.waits.record(waited);
                    }
                }
            }
            if foreseen.is_full() {
                foreseen.settle(now);
            }
            packet = packet.passed();
            if watched {
                traffic.note(at, &packet, |packet, parcel| Happening::Left(Hop::Link(link), packet, parcel));
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

    fn enter_medium(&mut self, medium: u16, port: Port, packet: Packet, agenda: &mut Agenda) {
        let now = agenda.now();
        let Network { routes, media, traffic, .. } = self;
        traffic.note(now, &packet, |packet, parcel| Happening::Entered(Hop::Medium(medium, port), packet, parcel));
        let medium = &mut media[usize::from(medium)];
        let drops = &mut |packet: Packet, why| traffic.lose_in_medium(routes, &packet, why, now);
        medium.enter(port, packet, now, drops);
        traffic.note_released(medium);
        agenda.wake(medium.part, medium.poll_timeout());
    }
}

/// Returns the radio network among the media.
pub(crate) fn radio_of(media: &mut [PlacedMedium]) -> Option<&mut Radio> {
    media.iter_mut().find_map(PlacedMedium::radio_mut)
}

impl InTransit {
    /// Enters a packet into a link that is not foreseen.
    fn queue(
        &mut self,
        link: u32,
        carrier: &mut ::link::Link<Packet>,
        part: Part,
        packet: Packet,
        agenda: &mut Agenda,
    ) {
        let now = agenda.now();
        carrier.handle_packet(packet, now, &mut |packet: Packet, why| {
            self.lose(Hop::Link(link), &packet, why, now, now);
        });
        self.note_begun(carrier);
        agenda.wake(part, carrier.poll_timeout());
    }

    /// Counts a packet as lost at `at`, which may be in the future.
    #[cold]
    fn lose(&mut self, hop: Hop, packet: &Packet, reason: DropReason, at: Time, now: Time) {
        let parcel = *self.store.get(packet);
        self.release(packet.tag());
        self.store.free(packet);
        if self.pending_losses.len() == self.pending_losses.capacity() {
            self.settle_losses(now);
        }
        self.pending_losses.push((at, parcel.owner.flow));
        if let Body::Visitor(visitor) = parcel.body {
            self.lost_visitors.push(visitor.tag);
        }
        if let Some(watch) = &mut self.watch {
            watch.note(at, Happening::Lost(hop, *packet, parcel, reason));
        }
    }

    /// Notes what has left the queue of a link, if that is the queue of a host.
    #[inline]
    fn note_begun(&mut self, carrier: &mut ::link::Link<Packet>) {
        while let Some(tag) = carrier.poll_begun() {
            self.release(tag);
        }
    }

    /// Notes what has left the queues of hosts before a medium.
    #[inline]
    fn note_released(&mut self, medium: &mut PlacedMedium) {
        while let Some(tag) = medium.poll_released() {
            self.release(tag);
        }
    }

    /// Notes that a packet no longer waits in the queue of its own host.
    fn release(&mut self, tag: u64) {
        let parcel = self.store.tagged(tag);
        if core::mem::take(&mut parcel.held)
            && let Body::Tcp(transmit) = &parcel.body
        {
            let payload = u64::from(transmit.segment.len);
            self.released.push(Released { owner: parcel.owner, towards: parcel.towards, payload });
        }
    }

    /// Returns whether data has left the queue of its own host and was not taken yet.
    #[inline]
    pub(crate) fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Returns data that has left the queue of its own host, which was not returned before.
    #[inline]
    pub(crate) fn take_released(&mut self) -> Option<Released> {
        self.released.pop()
    }

    /// Takes the payload of one connection's end out of what has left the queue of its host.
    pub(crate) fn take_released_of(&mut self, owner: Owner, towards: End) -> u64 {
        let mut sum = 0;
        self.released.retain(|one| {
            let is_own = (one.owner, one.towards) == (owner, towards);
            sum += if is_own { one.payload } else { 0 };
            !is_own
        });
        sum
    }

    /// Counts a packet as lost in the medium that it is in.
    #[cold]
    fn lose_in_medium(&mut self, routes: &Routes, packet: &Packet, reason: DropReason, now: Time) {
        let hop = self.hop_of(routes, packet);
        self.lose(hop, packet, reason, now, now);
    }

    /// Returns the hop that a packet is on.
    fn hop_of(&mut self, routes: &Routes, packet: &Packet) -> Hop {
        routes.hops(self.store.get(packet).route)[usize::from(packet.hop())]
    }

    /// Returns the parcel of a visitor on `route`.
    pub(crate) fn visit(&self, visitor: Visitor, route: u32, now: Time) -> Parcel {
        // The last of the flows is that of all visitors.
        let owner = Owner { flow: self.lost.len() as u32 - 1, connection: 0, generation: 0 };
        let body = Body::Visitor(visitor);
        Parcel { body, sent: now, owner, route, towards: End::To, priority: visitor.priority, aired: None, held: false }
    }

    /// Counts the losses up to `moment`.
    fn settle_losses(&mut self, moment: Time) {
        let lost = &mut self.lost;
        self.pending_losses.retain(|&(at, flow)| {
            let counts = at <= moment;
            lost[flow as usize] += u64::from(counts);
            !counts
        });
    }

    /// Reports to the watch, if there is one, what happens to a packet at `at`.
    #[inline]
    pub(crate) fn note(&mut self, at: Time, packet: &Packet, what: impl FnOnce(Packet, Parcel) -> Happening) {
        if let Some(watch) = &mut self.watch {
            watch.note(at, what(*packet, *self.store.get(packet)));
        }
    }
}
