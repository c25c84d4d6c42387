//! Links and routes: a packet's way from one host to the other.
//!
//! Most links hand everything they carry to the same next link. Such a link is not woken when a packet leaves it: the
//! next link *pulls* from it what has left it, each packet at its own time, whenever it is itself looked at. What
//! happens is the same, since a link's service is known in advance ([`link::Link`] serves late calls at the times at
//! which service was due); but a packet costs a call of the agenda only where ways part and at the end, and not at every
//! hop. A [`Watch`] hears of some things late but with their times, and sorts them before it writes.

use crate::packet::{Packet, Parcel, Store};
use crate::watch::{Happening, Watch};
use aqm::{DropReason, Packet as _};
use des::{Agenda, Part};
use link::Link;
use record::Distribution;
use units::{Span, Time};

/// A link in place.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) link: Link<Packet>,
    /// Its number in the agenda, by which it is woken if nobody pulls from it.
    pub(crate) part: Part,
    /// How long the packets that had to wait for the server did so, since the warm-up.
    waits: Distribution,
    /// How many did not have to.
    passed: u64,
    /// The links that it pulls from.
    feeders: Vec<u32>,
    /// The woken link that pulls from it, directly or through others; itself if it is woken.
    head: u32,
    /// The delays from its end to the end of `head`.
    ahead: Span,
}

impl Place {
    pub(crate) fn new(name: String, link: Link<Packet>, part: Part) -> Place {
        let waits = Distribution::new();
        Place { name, link, part, waits, passed: 0, feeders: Vec::new(), head: 0, ahead: Span::ZERO }
    }

    /// The distribution of the waits in its queue, of those who did not wait too.
    pub(crate) fn waits(&self) -> Distribution {
        let mut waits = self.waits.clone();
        waits.record_many(Span::ZERO, self.passed);
        waits
    }

    /// The warm-up ends.
    pub(crate) fn forget_waits(&mut self) {
        self.waits = Distribution::new();
        self.passed = 0;
    }

    /// The next packet that has left it by `now`, and when it did.
    #[inline(always)]
    fn leave(&mut self, now: Time) -> Option<(Time, Packet)> {
        let (due, mut packet) = self.link.poll_due(now)?;
        match packet.waited() {
            Span::ZERO => self.passed += 1,
            waited => self.waits.record(waited),
        }
        packet.hop += 1;
        Some((due, packet))
    }

    /// Serves what is due by `now`.
    #[inline]
    fn serve(&mut self, number: u32, now: Time, traffic: &mut InTransit) {
        while let Some(start) = self.link.next_service().filter(|&start| start <= now) {
            // Who watches wants to know when a packet was dropped, not when somebody looked.
            let until = if traffic.watch.is_some() { start } else { now };
            self.link.handle_timeout(until, &mut |packet: Packet, reason| traffic.lose(number, &packet, reason, until));
        }
    }

    /// `packet` enters it at `at`.
    #[inline]
    fn enter(&mut self, number: u32, packet: Packet, at: Time, traffic: &mut InTransit) {
        if traffic.watch.is_some() {
            self.serve(number, at, traffic);
            traffic.note(at, &packet, |packet, parcel| Happening::Entered(number, packet, parcel));
        }
        self.link.handle_packet(packet, at, &mut |packet: Packet, reason| traffic.lose(number, &packet, reason, at));
    }
}

/// All links, the routes over them, and the packets on their way.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) places: Vec<Place>,
    /// Indices of links, in the order of the way.
    pub(crate) routes: Vec<Box<[u32]>>,
    pub(crate) traffic: InTransit,
}

/// The packets on their way, and what becomes of those that are lost.
#[derive(Default)]
pub(crate) struct InTransit {
    pub(crate) store: Store,
    /// Packets lost so far, by flow.
    pub(crate) lost: Vec<u64>,
    /// Who is told what happens to each packet, if anybody.
    pub(crate) watch: Option<Box<Watch>>,
}

impl Network {
    /// Finds out which links are pulled from, once links and routes are in place.
    pub(crate) fn connect(&mut self) {
        let nexts = self.only_nexts();
        for (link, &next) in nexts.iter().enumerate() {
            if let Some(next) = next {
                self.places[next as usize].feeders.push(link as u32);
            }
        }
        for (link, next) in nexts.iter().enumerate() {
            if next.is_none() {
                self.set_head(link as u32, link as u32, Span::ZERO);
            }
        }
    }

    /// For each link: the link that everything goes on to that has passed it, if there is just one and nothing ends here.
    fn only_nexts(&self) -> Vec<Option<u32>> {
        // None: no route passes; Some(None): a route ends, or they part.
        let mut nexts: Vec<Option<Option<u32>>> = vec![None; self.places.len()];
        for route in &self.routes {
            for (i, &link) in route.iter().enumerate() {
                let next = route.get(i + 1).copied();
                let known = &mut nexts[link as usize];
                *known = Some(known.map_or(next, |known| known.filter(|_| known == next)));
            }
        }
        let mut nexts: Vec<Option<u32>> = nexts.into_iter().map(Option::flatten).collect();
        // A circle would pull from itself: it is opened at the link by which it is found.
        let mut seen = vec![usize::MAX; nexts.len()];
        for from in 0..nexts.len() {
            let mut at = from;
            while seen[at] == usize::MAX {
                seen[at] = from;
                let Some(next) = nexts[at] else { break };
                at = next as usize;
            }
            if seen[at] == from && nexts[at].is_some() {
                nexts[at] = None;
            }
        }
        nexts
    }

    fn set_head(&mut self, link: u32, head: u32, ahead: Span) {
        let place = &mut self.places[link as usize];
        (place.head, place.ahead) = (head, ahead);
        let ahead = ahead + place.link.delay();
        for feeder in place.feeders.clone() {
            self.set_head(feeder, head, ahead);
        }
    }

    /// A host hands over a packet: it enters the first link of its route.
    #[inline]
    pub(crate) fn send(&mut self, parcel: &Parcel, agenda: &mut Agenda) {
        let packet = self.traffic.store.put(parcel);
        self.traffic.note(agenda.now(), &packet, Happening::Sent);
        self.enter(self.routes[parcel.route as usize][0], packet, agenda);
    }

    /// A woken link is called at its deadline.
    #[inline]
    pub(crate) fn call(&mut self, link: u32, agenda: &Agenda) {
        self.pull(link, agenda.now());
        self.places[link as usize].serve(link, agenda.now(), &mut self.traffic);
    }

    /// The next packet that has come to the end of its route over `link`, which was called; those that go on are sent on.
    /// Call until `None`, and [`Store::free`] the parcel of what arrived.
    #[inline]
    pub(crate) fn poll(&mut self, link: u32, agenda: &mut Agenda) -> Option<Packet> {
        let now = agenda.now();
        loop {
            let Some((_, packet)) = self.places[link as usize].leave(now) else {
                agenda.wake(self.places[link as usize].part, self.next_call(link));
                return None;
            };
            self.traffic.note(now, &packet, |packet, parcel| Happening::Left(link, packet, parcel));
            let parcel = self.traffic.store.get(&packet);
            match self.routes[parcel.route as usize].get(usize::from(packet.hop)) {
                Some(&next) => self.enter(next, packet, agenda),
                None => return Some(packet),
            }
        }
    }

    /// Brings every link up to just before `moment`, before somebody looks at their counters. What happens at the moment
    /// itself is left alone, so that looking changes no order.
    pub(crate) fn catch_up(&mut self, moment: Time) {
        let now = moment - Span::from_nanos(1);
        for link in 0..self.places.len() as u32 {
            self.pull(link, now);
            self.places[link as usize].serve(link, now, &mut self.traffic);
        }
    }

    /// Lets the watch, if there is one, write what happened before `moment`.
    pub(crate) fn write_before(&mut self, moment: Time) {
        if self.traffic.watch.is_some() {
            self.catch_up(moment);
        }
        if let Some(watch) = &mut self.traffic.watch {
            watch.write_before(moment);
        }
    }

    #[inline]
    fn enter(&mut self, link: u32, packet: Packet, agenda: &mut Agenda) {
        let now = agenda.now();
        self.pull(link, now);
        let place = &mut self.places[link as usize];
        place.enter(link, packet, now, &mut self.traffic);
        let head = place.head;
        if head == link && place.feeders.is_empty() {
            agenda.wake(place.part, place.link.poll_timeout());
        } else {
            // Mostly others are ahead on the same way, and the first of them is due before this one can be.
            let earliest = now + place.ahead + if head == link { Span::ZERO } else { place.link.delay() };
            let part = self.places[head as usize].part;
            if !agenda.is_due_by(part, earliest) {
                agenda.wake(part, self.next_call(head));
            }
        }
    }

    /// Takes from the links that feed `link` what has left them by `now`.
    #[inline]
    fn pull(&mut self, link: u32, now: Time) {
        match self.places[link as usize].feeders[..] {
            [] => {}
            [feeder] => self.pull_from(feeder, link, now),
            _ => self.merge(link, now),
        }
    }

    fn pull_from(&mut self, feeder: u32, link: u32, now: Time) {
        self.pull(feeder, now);
        let pair = self.places.get_disjoint_mut([feeder as usize, link as usize]);
        let [from, to] = pair.expect("a link does not feed itself");
        from.serve(feeder, now, &mut self.traffic);
        let mut at = Time::ZERO;
        while let Some((due, packet)) = from.leave(now) {
            at = at.max(due);
            self.traffic.note(at, &packet, |packet, parcel| Happening::Left(feeder, packet, parcel));
            to.enter(link, packet, at, &mut self.traffic);
        }
    }

    /// [`Network::pull`] from several links, in the order of time; what leaves two at once, in the order of the links.
    fn merge(&mut self, link: u32, now: Time) {
        let feeders = std::mem::take(&mut self.places[link as usize].feeders);
        for &feeder in &feeders {
            self.pull(feeder, now);
            self.places[feeder as usize].serve(feeder, now, &mut self.traffic);
        }
        let mut at = Time::ZERO;
        let due = |place: &Place| place.link.next_delivery().map(|d| d.0).filter(|&due| due <= now);
        while let Some((_, feeder)) = feeders.iter().filter_map(|&f| Some((due(&self.places[f as usize])?, f))).min() {
            let (due, packet) = self.places[feeder as usize].leave(now).expect("it is due");
            at = at.max(due);
            self.traffic.note(at, &packet, |packet, parcel| Happening::Left(feeder, packet, parcel));
            self.places[link as usize].enter(link, packet, at, &mut self.traffic);
        }
        self.places[link as usize].feeders = feeders;
    }

    /// When a woken link wants to be called: no later than its next delivery.
    #[inline]
    fn next_call(&self, link: u32) -> Option<Time> {
        let place = &self.places[link as usize];
        if place.feeders.is_empty() { place.link.poll_timeout() } else { self.next_delivery(link).map(|d| d.0) }
    }

    /// A moment before which nothing leaves `link`, and the length of what may leave it then.
    fn next_delivery(&self, link: u32) -> Option<(Time, u32)> {
        let place = &self.places[link as usize];
        if let Some((due, packet)) = place.link.next_delivery() {
            return Some((due, packet.len()));
        }
        let mut next = place.link.next_service().map(|start| (start, 0));
        for &feeder in &place.feeders {
            if let Some((due, len)) = self.next_delivery(feeder) {
                let due = place.link.earliest_delivery(len, due);
                next = Some(next.map_or((due, len), |n| n.min((due, len))));
            }
        }
        next
    }
}

impl InTransit {
    #[cold]
    fn lose(&mut self, link: u32, packet: &Packet, reason: DropReason, now: Time) {
        let parcel = *self.store.get(packet);
        self.store.free(packet);
        self.lost[parcel.owner.flow as usize] += 1;
        if let Some(watch) = &mut self.watch {
            watch.note(now, Happening::Lost(link, *packet, parcel, reason));
        }
    }

    /// Tells the watch, if there is one, what happens to a packet at `at`.
    #[inline]
    pub(crate) fn note(&mut self, at: Time, packet: &Packet, what: impl FnOnce(Packet, Parcel) -> Happening) {
        if let Some(watch) = &mut self.watch {
            watch.note(at, what(*packet, *self.store.get(packet)));
        }
    }
}
