//! Links and routes: a packet's way from one host to the other.

use crate::packet::{Body, Packet};
use aqm::{DropReason, Packet as _};
use des::{Agenda, Part};
use link::Link;
use record::Distribution;

/// A link in place.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) link: Link<Packet>,
    pub(crate) part: Part,
    /// How long the packets that left the queue had waited, since the warm-up.
    pub(crate) waits: Distribution,
}

/// All links, and the routes over them.
pub(crate) struct Network {
    pub(crate) places: Vec<Place>,
    /// Indices of links, in the order of the way.
    pub(crate) routes: Vec<Box<[u32]>>,
    /// Packets lost so far, by flow.
    pub(crate) lost: Vec<u64>,
    /// Packets that are told of what happens on the links.
    pub(crate) watch: Option<Box<crate::watch::Watch>>,
}

impl Network {
    /// A host hands over `packet`: it enters the first link of its route.
    #[inline]
    pub(crate) fn send(&mut self, packet: Packet, agenda: &mut Agenda) {
        if let Some(watch) = &mut self.watch {
            watch.sent(&packet, agenda.now());
        }
        let link = self.routes[packet.route as usize][0];
        self.enter(link, packet, agenda);
    }

    /// A link is called at its deadline.
    #[inline]
    pub(crate) fn call(&mut self, link: u32, agenda: &mut Agenda) {
        let Network { places, lost, watch, .. } = self;
        let place = &mut places[link as usize];
        let now = agenda.now();
        place.link.handle_timeout(now, &mut |packet: Packet, reason| {
            note_loss(lost, watch.as_deref_mut(), link, &packet, reason, now);
        });
    }

    /// The next packet that has come to the end of its route over `link`; those that go on are sent on. Call until
    /// `None`.
    #[inline]
    pub(crate) fn poll(&mut self, link: u32, agenda: &mut Agenda) -> Option<Packet> {
        let now = agenda.now();
        loop {
            let place = &mut self.places[link as usize];
            let Some(mut packet) = place.link.poll_delivery(now) else {
                agenda.wake(place.part, place.link.poll_timeout());
                return None;
            };
            place.waits.record(packet.waited());
            if let Some(watch) = &mut self.watch {
                watch.left(link, &packet, now);
            }
            packet.hop += 1;
            match self.routes[packet.route as usize].get(usize::from(packet.hop)) {
                Some(&next) => self.enter(next, packet, agenda),
                None => return Some(packet),
            }
        }
    }

    #[inline]
    fn enter(&mut self, link: u32, packet: Packet, agenda: &mut Agenda) {
        let Network { places, lost, watch, .. } = self;
        let place = &mut places[link as usize];
        let now = agenda.now();
        if let Some(watch) = watch {
            watch.entered(link, &packet, now);
        }
        place.link.handle_packet(packet, now, &mut |packet: Packet, reason| {
            note_loss(lost, watch.as_deref_mut(), link, &packet, reason, now);
        });
        agenda.wake(place.part, place.link.poll_timeout());
    }
}

fn note_loss(
    lost: &mut [u64],
    watch: Option<&mut crate::watch::Watch>,
    link: u32,
    packet: &Packet,
    reason: DropReason,
    now: units::Time,
) {
    lost[packet.owner.flow as usize] += 1;
    if let Some(watch) = watch {
        watch.lost(link, packet, reason, now);
    }
}

/// Whether a packet carries data, and not only an acknowledgement.
pub(crate) fn carries_data(packet: &Packet) -> bool {
    match &packet.body {
        Body::Tcp(segment) => segment.len > 0,
        Body::Udp { .. } => packet.len() > 0,
    }
}
