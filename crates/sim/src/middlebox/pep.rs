//! Lightweight PEPs where links end: they watch the packets that go on there, and answer senders.

use crate::network::packet::{Body, Packet, Store, Visitor};
use crate::network::route::{Hop, Routes};
use crate::rows::RunId;
use ::pep::{Pep, Stats};
use aqm::Packet as _;
use des::Streams;
use rand_xoshiro::rand_core::Rng;
use record::tables::{PepRow, Peps as Table};
use std::collections::VecDeque;
use tcp::Transmit;
use units::Time;

/// A PEP at a node. A flow is a connection: its index in the high half of the key, its generation in the low half.
struct Place {
    node: String,
    pep: Pep<u64>,
    /// What was done for visitors, by who has their packets.
    for_visitors: Stats,
    /// Probability that a report is lost, and what decides.
    report_loss: f64,
    random: link::Random,
}

/// A visitor passes a PEP: who has its packet shows it to that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// [`Visitor::tag`].
    pub tag: u32,
    /// The PEP, as an index of [`crate::Live::pep_nodes`].
    pub pep: usize,
    /// When it passes.
    pub at: Time,
    /// Of a packet towards the receiver, where an answer enters ([`crate::Live::answer`]); `None` if it comes from there.
    pub back: Option<(u32, u16)>,
}

impl Place {
    fn loses_report(&mut self) -> bool {
        self.report_loss > 0.0 && unit(&mut self.random) < self.report_loss
    }
}

/// What a PEP does with the packets of a route that have come to it.
#[derive(Clone, Copy)]
struct Tap {
    place: u32,
    /// They go towards the receiver, and answers to them enter this route at this hop; otherwise they come from there.
    back: Option<(u32, u16)>,
}

/// All PEPs of a network.
#[derive(Default)]
pub(crate) struct Peps {
    places: Vec<Place>,
    /// By route, and hops of it that were passed.
    taps: Vec<Box<[Option<Tap>]>>,
    /// By link, whether a PEP is at its end.
    watched_links: Vec<bool>,
    /// By UE and direction, whether a PEP is at the end of the radio hop.
    watched_ues: Vec<[bool; 2]>,
    /// Visitors that have passed and nobody has asked for yet.
    pub(crate) passing: VecDeque<Passing>,
}

impl Peps {
    /// Whether packets that have passed `hop` are watched.
    #[inline]
    pub(crate) fn is_at(&self, hop: Hop) -> bool {
        match hop {
            Hop::Link(link) => self.watched_links.get(link as usize) == Some(&true),
            Hop::Radio(ue, direction) => self.watched_ues.get(ue as usize).is_some_and(|ue| ue[direction as usize]),
        }
    }

    /// Puts PEPs on `routes[there]`, the way of data, and `routes[back]`, the way of its acknowledgements.
    pub(crate) fn place(
        &mut self,
        links: &[scenario::Link],
        routes: &Routes,
        (there, back): (u32, u32),
        streams: &Streams,
    ) {
        for route in self.taps.len()..routes.len() {
            self.taps.push(vec![None; routes.hops(route as u32).len()].into());
        }
        let of = |hop: Hop| match hop {
            Hop::Link(link) => links.get(link as usize),
            Hop::Radio(..) => None,
        };
        let (way, way_back) = (routes.hops(there), routes.hops(back));
        for (after, &passed) in (1..).zip(&way[..way.len().saturating_sub(1)]) {
            let Some(at) = of(passed).filter(|at| at.pep) else { continue };
            // Where the acknowledgements pass the node: what is attached to it directly is not seen.
            let passes = |&i: &usize| i > 0 && of(way_back[i]).is_some_and(|link| link.from == at.to);
            let Some(hop) = (0..way_back.len()).find(passes).map(|hop| hop as u16) else { continue };
            let place = match self.places.iter().position(|place| place.node == at.to) {
                Some(place) => place,
                None => {
                    self.places.push(Place {
                        node: at.to.clone(),
                        pep: Pep::new(::pep::Config::default()),
                        for_visitors: Stats::default(),
                        report_loss: at.pep_report_loss,
                        random: streams.named(&format!("pep {} reports", at.to)),
                    });
                    self.places.len() - 1
                }
            } as u32;
            self.put(there, after, Tap { place, back: Some((back, hop)) });
            self.put(back, hop, Tap { place, back: None });
            for before in [passed, way_back[usize::from(hop) - 1]] {
                match before {
                    Hop::Link(link) => *entry(&mut self.watched_links, link) = true,
                    Hop::Radio(ue, direction) => entry(&mut self.watched_ues, ue)[direction as usize] = true,
                }
            }
        }
    }

    /// Puts a tap on a route where none is yet.
    fn put(&mut self, route: u32, passed: u16, tap: Tap) {
        self.taps[route as usize][usize::from(passed)].get_or_insert(tap);
    }

    /// A packet goes on. If there is an answer, its parcel is drafted in `store`: the route and the hop of it where it
    /// enters.
    // In line, for it is called from one place.
    #[inline(always)]
    pub(crate) fn pass(&mut self, packet: &Packet, store: &mut Store, now: Time) -> Option<(u32, u16)> {
        let parcel = store.get(packet);
        let tap = (*self.taps.get(parcel.route as usize)?.get(usize::from(packet.hop()))?)?;
        let segment = match &parcel.body {
            Body::Tcp(Transmit { segment, .. }) => segment,
            Body::Udp { .. } => return None,
            Body::Visitor(Visitor { tag, .. }) => {
                self.passing.push_back(Passing { tag: *tag, pep: tap.place as usize, at: now, back: tap.back });
                return None;
            }
        };
        let place = &mut self.places[tap.place as usize];
        let pep = &mut place.pep;
        let key = u64::from(parcel.owner.connection) << 32 | u64::from(parcel.owner.generation);
        let Some((route, hop)) = tap.back else {
            pep.on_reply(key, segment, now);
            return None;
        };
        let segment = pep.on_data(key, segment, packet.len(), now)?;
        if place.loses_report() {
            return None;
        }
        let (owner, towards, priority) = (parcel.owner, parcel.towards.other(), parcel.priority);
        let answer = store.draft();
        *answer.body.tcp() = Transmit { segment, ect: false };
        (answer.sent, answer.owner, answer.route, answer.towards) = (now, owner, route, towards);
        (answer.priority, answer.aired) = (priority, None);
        Some((route, hop))
    }

    /// Whether the answer of a PEP to a visitor is lost.
    pub(crate) fn loses_report(&mut self, pep: usize) -> bool {
        self.places.get_mut(pep).is_some_and(Place::loses_report)
    }

    /// The nodes where they are.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(|place| place.node.as_str())
    }

    /// What was done for visitors, in the order of [`Peps::nodes`].
    pub(crate) fn note_visitors(&mut self, stats: impl Iterator<Item = Stats>) {
        self.places.iter_mut().zip(stats).for_each(|(place, stats)| place.for_visitors = stats);
    }

    /// What they have done.
    pub(crate) fn finish(&self, RunId { point, run }: RunId, table: &mut Table) {
        for place in &self.places {
            let Stats { data, data_bytes, reports, nacks, report_bytes, withheld, flows, evicted } =
                place.pep.stats() + place.for_visitors;
            table.push(&PepRow {
                point,
                run,
                node: &place.node,
                segments: data,
                bytes: data_bytes,
                reports,
                nacks,
                report_bytes,
                withheld,
                flows,
                evicted,
            });
        }
    }
}

/// A random number from 0 to 1, without 1.
fn unit(random: &mut link::Random) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The element at `index`; the vector grows if it is too short.
fn entry<T: Clone + Default>(of: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    of.resize(of.len().max(index + 1), T::default());
    &mut of[index]
}
