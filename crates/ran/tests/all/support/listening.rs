//! A second model of discontinuous reception, from the events of a run: the slots in which a UE listens, as a union of
//! intervals, each written down as 36.321 5.7 and 38.321 5.7 have it.

use std::collections::BTreeSet;

use channel::Direction;
use ran::{Config, Drx, Duplex, Event, MacConfig, Nr, Rat, Step, Transmission};
use units::{Span, Time};

/// The time in which one cell serves a UE, in slots of the cell, and what happens in it.
struct Stay {
    mac: MacConfig,
    from: u64,
    until: Option<u64>,
    /// Whether it begins with a handover or a re-establishment, or with the run.
    arrival: Option<Arrival>,
    sent: Vec<(u64, Transmission)>,
    requests: Vec<u64>,
    /// When buffer status reports are decoded.
    reports: BTreeSet<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    Handover,
    Reestablishment,
}

/// Slots in which a cell with one symbol of control sends downlink control, and a UE uplink control.
fn has_control(nr: &Nr, direction: Direction, slot: u64) -> bool {
    let Duplex::Tdd(pattern) = nr.duplex else { return true };
    let place = slot % u64::from(pattern.slots);
    let (whole, symbols, place) = match direction {
        Direction::Downlink => (pattern.downlink_slots, pattern.downlink_symbols, place),
        Direction::Uplink => (pattern.uplink_slots, pattern.uplink_symbols, u64::from(pattern.slots) - 1 - place),
    };
    place < u64::from(whole) || (place == u64::from(whole) && symbols > 0)
}

impl Stay {
    fn slots(&self, span: Span) -> u64 {
        span.as_nanos().div_ceil(self.mac.rat.slot().as_nanos())
    }

    /// Whether a transmission needs no grant: UEs with a place send no requests.
    fn is_configured(&self, t: &Transmission) -> bool {
        let of = |grant: ran::ConfiguredGrant| t.process < grant.processes && t.prbs == grant.prbs;
        let is_first = t.direction == Direction::Uplink && t.attempt == 1;
        is_first && self.requests.is_empty() && self.mac.configured.is_some_and(of)
    }

    /// The slot of the control channel that assigned or granted a transmission; `None` if none was needed.
    fn assigned(&self, (slot, t): &(u64, Transmission)) -> Option<u64> {
        match (t.direction, self.mac.rat) {
            (Direction::Downlink, _) => Some(*slot),
            (Direction::Uplink, Rat::Nr(_)) if self.is_configured(t) => None,
            (Direction::Uplink, Rat::Nr(nr)) => {
                (0..=slot - u64::from(nr.k2)).rev().find(|slot| has_control(&nr, Direction::Downlink, *slot))
            }
            (Direction::Uplink, _) => (t.attempt == 1).then(|| slot - 4),
        }
    }

    /// The blocks that may end a request, and whether they are known to have reported or carried all data. Otherwise
    /// some data may just not have fitted.
    fn answers(&self) -> impl Iterator<Item = (u64, bool)> {
        let all = self.sent.iter().filter(|(_, t)| t.direction == Direction::Uplink && t.attempt == 1);
        let decoding = self.slots(self.mac.decoding);
        all.map(move |(slot, t)| (*slot, t.queued == 0 || t.decoded && self.reports.contains(&(slot + 1 + decoding))))
    }

    fn new_blocks(&self) -> Vec<u64> {
        let all = self.sent.iter().filter(|(_, t)| t.attempt == 1).filter_map(|sent| self.assigned(sent));
        let first = (self.arrival == Some(Arrival::Reestablishment)).then_some(self.from);
        all.chain(first).collect::<BTreeSet<u64>>().into_iter().collect()
    }

    /// The slots from which on and up to which the UE listens.
    fn intervals(&self, drx: &Drx, end: u64) -> Vec<(u64, u64)> {
        let end = self.until.unwrap_or(end);
        let mut all = Vec::new();
        let blocks = self.new_blocks();
        let inactivity = self.slots(drx.inactivity);
        let mut short = Vec::new();
        for (i, block) in blocks.iter().enumerate() {
            let expiry = block + 1 + inactivity;
            let own = self.arrival == Some(Arrival::Reestablishment) && *block == self.from;
            all.push((block + u64::from(!own), expiry));
            if let Some(cycle) = drx.short
                && blocks.get(i + 1).is_none_or(|next| *next >= expiry)
            {
                short.push((expiry, expiry + self.slots(cycle.cycle) * u64::from(cycle.count)));
            }
        }
        let (cycle, offset) = (self.slots(drx.cycle), self.slots(drx.offset.unwrap()));
        let mut phase = 0;
        for slot in self.from..end {
            let is_long = slot >= offset && slot % cycle == offset;
            while short.get(phase).is_some_and(|(_, until)| *until <= slot) {
                phase += 1;
            }
            let in_short = short[phase..].iter().take(2).any(|(from, until)| (*from..*until).contains(&slot));
            let is_short = in_short
                && drx.short.is_some_and(|short| {
                    let cycle = self.slots(short.cycle);
                    slot % cycle == offset % cycle
                });
            if is_long || is_short {
                all.push((slot, slot + self.slots(drx.on_duration)));
            }
        }
        for (i, sent) in self.sent.iter().enumerate() {
            let (slot, t) = sent;
            let is_same = |t: &Transmission, of: &Transmission| {
                (t.direction, t.cell, t.process) == (of.direction, of.cell, of.process)
            };
            let next = self.sent[i + 1..].iter().find(|(_, next)| is_same(next, t));
            let symbols = |symbols: u8| u64::from(symbols).div_ceil(14);
            let decoding = self.slots(self.mac.decoding);
            let (from, expires, known) = match (t.direction, self.mac.rat) {
                (Direction::Downlink, _) if t.decoded => continue,
                (Direction::Downlink, Rat::Nr(nr)) => {
                    let control = |slot: &u64| has_control(&nr, Direction::Uplink, *slot);
                    let feedback = (slot + u64::from(nr.k1)..).find(control).unwrap();
                    let from = feedback + 1 + symbols(drx.harq_rtt);
                    (from, from + u64::from(drx.retransmission), feedback + 1 + decoding)
                }
                (Direction::Downlink, _) => (slot + 8, slot + 8 + u64::from(drx.retransmission), 0),
                (Direction::Uplink, Rat::Nr(_)) => {
                    let from = slot + 1 + symbols(drx.uplink_harq_rtt);
                    (from, from + u64::from(drx.uplink_retransmission), 0)
                }
                (Direction::Uplink, _) if t.attempt == self.mac.transmissions => continue,
                (Direction::Uplink, _) => (slot + 4, slot + 5, 0),
            };
            let is_lte_uplink = !matches!(self.mac.rat, Rat::Nr(_)) && t.direction == Direction::Uplink;
            let stopped = match next {
                Some((slot, next)) if self.is_configured(next) => *slot,
                Some(next) if !is_lte_uplink => self.assigned(next).map_or(u64::MAX, |slot| slot + 1),
                _ => u64::MAX,
            };
            all.push((from.max(known), expires.min(stopped)));
        }
        for request in &self.requests {
            let answer = self.answers().find(|(slot, is_known)| slot > request && *is_known);
            all.push((*request, answer.map_or(u64::MAX, |(slot, _)| slot)));
        }
        if self.arrival == Some(Arrival::Handover) {
            all.push((self.from, blocks.first().map_or(u64::MAX, |first| first + 1)));
        }
        all.iter().map(|(from, until)| (*from, (*until).min(end))).filter(|(from, until)| from < until).collect()
    }
}

fn stays(config: &Config, events: &[(Time, Event)], ue: u32) -> Vec<Stay> {
    let stay = |cell: usize, now: Time, arrival| {
        let mac = config.cells[cell].mac;
        let from = now.as_nanos().div_ceil(mac.rat.slot().as_nanos());
        Stay { mac, from, until: None, arrival, sent: Vec::new(), requests: Vec::new(), reports: BTreeSet::new() }
    };
    let mut stays = vec![stay(config.ues[ue as usize].cell.unwrap(), Time::ZERO, None)];
    let mut next = Arrival::Handover;
    for (now, event) in events {
        let last = stays.last_mut().unwrap();
        let slot = now.as_nanos() / last.mac.rat.slot().as_nanos();
        match event {
            Event::Transmission(t) if t.ue == ue => last.sent.push((slot, *t)),
            Event::BufferStatus { ue: of, .. } if *of == ue => drop(last.reports.insert(slot)),
            Event::SchedulingRequest { ue: of } if *of == ue => last.requests.push(slot),
            Event::Mobility { ue: of, step } if *of == ue => match step {
                Step::Left { .. } | Step::LinkLost { .. } => {
                    last.until = Some(last.slots(now.saturating_since(Time::ZERO)));
                    next = if matches!(step, Step::Left { .. }) { Arrival::Handover } else { Arrival::Reestablishment };
                }
                Step::Failed => next = Arrival::Reestablishment,
                Step::Connected { cell, .. } => stays.push(stay(*cell as usize, *now, Some(next))),
                _ => {}
            },
            _ => {}
        }
    }
    stays
}

/// Checks that no cell assigned or granted a slot while `ue` did not listen, and returns how many there were while it did,
/// and how long it slept until `end`, if that can be told. Not for UEs with random accesses, which are not events.
pub fn check(config: &Config, events: &[(Time, Event)], ue: u32, end: Time) -> (usize, Option<Span>) {
    let (mut checked, mut asleep, mut is_clear) = (0, Span::ZERO, true);
    for stay in stays(config, events, ue) {
        let Some(drx) = stay.mac.drx else { continue };
        let last = stay.slots(end.saturating_since(Time::ZERO));
        is_clear &= stay.until.is_none()
            && stay.requests.iter().all(|r| stay.answers().find(|(slot, _)| slot > r).is_none_or(|(_, known)| known));
        let mut intervals = stay.intervals(&drx, last);
        intervals.sort_unstable();
        let mut union: Vec<(u64, u64)> = Vec::new();
        for (from, until) in intervals {
            match union.last_mut() {
                Some(before) if from <= before.1 => before.1 = before.1.max(until),
                _ => union.push((from, until)),
            }
        }
        let from = stay.from;
        let listening: u64 = union.iter().map(|(from, until)| until - from).sum();
        asleep += stay.mac.rat.slot() * (stay.until.unwrap_or(last) - from - listening);
        // Grants of its last slots have no transmission, and what they cause is not known.
        let margin = match stay.mac.rat {
            Rat::Nr(Nr { duplex: Duplex::Tdd(pattern), k2, .. }) => u64::from(k2) + u64::from(pattern.slots),
            Rat::Nr(nr) => nr.k2.into(),
            _ => 4,
        };
        for sent in &stay.sent {
            let Some(slot) = stay.assigned(sent) else { continue };
            if slot + margin >= stay.until.unwrap_or(last) {
                continue;
            }
            let listens = union.iter().any(|(from, until)| (*from..*until).contains(&slot));
            assert!(listens, "ue {ue} does not listen in slot {slot}: {sent:?}, {:?}", stay.mac);
            checked += 1;
        }
    }
    (checked, is_clear.then_some(asleep))
}
