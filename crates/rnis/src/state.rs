//! What is known of each UE and cell now.

use crate::addresses::{AddressMap, MOST_IDS};
use crate::event::{Bearer, Event, HandoverStatus, Layer2, Record, S1Action, S1Bearer, What};
use crate::identity::{AssociateId, TempUeId};
use crate::report::{RadioReport, UeId};
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use units::{Span, Time};

/// The most UEs that are remembered; the one that was silent for longest is forgotten first.
pub const MOST_UES: usize = 4096;
/// The most cells that are remembered.
pub const MOST_CELLS: usize = 1024;
/// A UE or cell that was silent for this long is forgotten.
pub const KEEP: Span = Span::from_secs(60);
/// Clocks of cells may be ahead by this much. A value from further in the future does not displace later ones.
const MOST_AHEAD: Span = Span::from_secs(1);

/// A UE is known by its cell and its RNTI there.
type Key = (u64, u16);

/// The latest values of each UE and cell. No I/O and no clock: `now` is an argument, on the clock of the reports, and never
/// decreases. Memory is bounded by [`MOST_UES`] and [`MOST_CELLS`].
#[derive(Clone, Debug, Default)]
pub struct State {
    map: AddressMap,
    ues: BTreeMap<Key, Ue>,
    cells: BTreeMap<u64, Cell>,
    by_address: BTreeMap<IpAddr, Key>,
    by_age: BTreeSet<(Time, Key)>,
    cells_by_age: BTreeSet<(Time, u64)>,
}

/// What is known of a UE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ue {
    /// Its latest report.
    pub report: Option<RadioReport>,
    /// Its latest layer 2 counters, and the end of their interval.
    pub layer2: Option<(Time, Layer2)>,
    /// The identifiers by which consumers know it.
    pub ids: Vec<AssociateId>,
    /// Its temporary identity.
    pub temp_ue_id: Option<TempUeId>,
    /// Its bearers by number (0 to 15).
    pub bearers: BTreeMap<u8, Bearer>,
    /// Its S1 bearers by number (0 to 15).
    pub s1: BTreeMap<u8, S1Bearer>,
    /// The handover of this UE was already reported.
    moved: bool,
    seen: Time,
}

/// What is known of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// The end of the interval of the following values.
    pub time: Time,
    /// Block-slots of the carrier that were used, and those that it had.
    pub prbs: Option<(u64, u64)>,
    /// UEs that had downlink data.
    pub active_ues: Option<u16>,
    /// Share of the uplink's blocks that was used, in percent.
    pub ul_prb_percent: Option<f64>,
    /// Share of the downlink's blocks that was used, in percent, as the cell reported it.
    pub dl_prb_percent: Option<f64>,
    seen: Time,
}

/// An event, and what consumers need to know of its UE to be notified.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The event.
    pub event: Event,
    /// The identifiers of the UE.
    pub ids: Vec<AssociateId>,
    /// The class of the bearer that the event is about.
    pub qci: Option<u8>,
}

/// What became of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accepted {
    /// The record, with the UE's addresses if they are known, unless it was a report older than the latest one.
    pub record: Option<Record>,
    /// The events to notify.
    pub occurrences: Vec<Occurrence>,
}

impl State {
    /// Creates a state that takes addresses from `map` where the cell does not know them.
    pub fn new(map: AddressMap) -> State {
        State { map, ..State::default() }
    }

    /// Takes in a record that arrived at `now`.
    ///
    /// A UE whose address appears in another cell has changed cells, and an event tells so, unless the cell has reported it.
    pub fn accept(&mut self, record: Record, now: Time) -> Accepted {
        match record {
            Record::Report(report) => self.accept_report(report, now),
            Record::Event(event) => self.accept_event(event, now),
        }
    }

    fn accept_report(&mut self, mut report: RadioReport, now: Time) -> Accepted {
        let key = (report.cell, report.ue.rnti);
        self.complete(key.0, &mut report.ue);
        if let Some(latest) = self.ues.get(&key).and_then(|ue| ue.report.as_ref())
            && report.time < latest.time
            && latest.time <= now + MOST_AHEAD
        {
            return Accepted::default();
        }
        let change = self.note(key, report.ue.address, report.time, now);
        let cell = self.cell(key.0, now);
        if report.time >= cell.time || cell.time > now + MOST_AHEAD {
            cell.time = report.time;
            cell.prbs = report.cell_prbs.map(|used| (used, report.all_prbs())).or(cell.prbs);
            cell.active_ues = report.active_ues.or(cell.active_ues);
        }
        if let Some(ue) = self.ues.get_mut(&key) {
            let former = ue.report.as_ref().and_then(|former| former.ue.second_address);
            if let Some(former) = former.filter(|_| former != report.ue.second_address) {
                ue.ids.retain(|id| *id != former.into());
            }
            if let Some(second) = report.ue.second_address {
                add(&mut ue.ids, second.into());
            }
            ue.report = Some(report.clone());
        }
        Accepted { record: Some(Record::Report(report)), occurrences: change.into_iter().collect() }
    }

    fn accept_event(&mut self, mut event: Event, now: Time) -> Accepted {
        let key = (event.cell, event.ue.rnti);
        self.complete(key.0, &mut event.ue);
        if let Some(address) = event.ue.address.or_else(|| self.ues.get(&key).and_then(Ue::address)) {
            event.ue.address = Some(address);
        }
        // A handover names the source; if the UE is in the target by now, its address must not move back.
        let moved = |address: &IpAddr| self.by_address.get(address).is_some_and(|&here| here != key);
        let stays = matches!(event.what, What::CellChange { .. }) && event.ue.address.as_ref().is_some_and(moved);
        let address = event.ue.address.filter(|_| !stays);
        let mut occurrences: Vec<Occurrence> = self.note(key, address, event.time, now).into_iter().collect();
        if let What::Layer2(layer2) = event.what {
            let cell = self.cell(key.0, now);
            cell.ul_prb_percent = layer2.cell_ul_prb_percent.or(cell.ul_prb_percent);
            cell.dl_prb_percent = layer2.cell_dl_prb_percent.or(cell.dl_prb_percent);
        }
        let Some(ue) = self.ues.get_mut(&key) else {
            return Accepted { record: Some(Record::Event(event)), occurrences };
        };
        ue.temp_ue_id = event.temp_ue_id.take().or(ue.temp_ue_id.take());
        event.temp_ue_id.clone_from(&ue.temp_ue_id);
        if let Some(second) = event.ue.second_address.filter(|_| !stays) {
            add(&mut ue.ids, second.into());
        }
        let mut qci = None;
        match &event.what {
            What::BearerEstablished(bearer) | What::BearerModified(bearer) => {
                qci = Some(bearer.qci);
                ue.bearers.insert(bearer.erab, *bearer);
            }
            What::BearerReleased { erab } => {
                qci = ue.bearers.remove(erab).map(|bearer| bearer.qci);
                ue.s1.remove(erab);
            }
            What::S1Bearer { action, bearer } => {
                let teid = AssociateId::GtpTeid(bearer.enb.teid);
                if let Some(old) = ue.s1.remove(&bearer.erab) {
                    ue.ids.retain(|id| *id != AssociateId::GtpTeid(old.enb.teid));
                }
                if *action != S1Action::Released {
                    ue.s1.insert(bearer.erab, *bearer);
                    add(&mut ue.ids, teid);
                }
            }
            What::Layer2(layer2) => ue.layer2 = Some((event.time, *layer2)),
            What::CellChange { status: HandoverStatus::Completed, .. } => ue.moved = true,
            _ => {}
        }
        let (mut ids, left) = (ue.ids.clone(), matches!(event.what, What::Left));
        for address in [event.ue.address, event.ue.second_address].into_iter().flatten() {
            add(&mut ids, address.into());
        }
        if left {
            self.remove(key);
        }
        if !left && !matches!(event.what, What::Layer2(_)) {
            occurrences.push(Occurrence { event: event.clone(), ids, qci });
        }
        Accepted { record: Some(Record::Event(event)), occurrences }
    }

    /// Adds the addresses of a UE that the operator's table has.
    fn complete(&self, cell: u64, ue: &mut UeId) {
        let mut known = self.map.get(cell, ue.rnti).iter().filter_map(address_of);
        ue.address = ue.address.or_else(|| known.clone().next());
        let is_second = |other: &IpAddr| ue.address.is_some_and(|first| first.is_ipv4() != other.is_ipv4());
        ue.second_address = ue.second_address.or_else(|| known.find(is_second));
    }

    /// Notes that a UE was heard, with this address; returns its change of cells, if that is news.
    fn note(&mut self, key: Key, address: Option<IpAddr>, time: Time, now: Time) -> Option<Occurrence> {
        let mut inherited = None;
        let mut change = None;
        if let Some(address) = address
            && let Some(&before) = self.by_address.get(&address)
            && before != key
        {
            let old = self.remove(before);
            if let Some(old) = &old
                && !old.moved
                && before.0 != key.0
            {
                let event = Event {
                    time,
                    cell: before.0,
                    ue: UeId::new(before.1).at(address),
                    temp_ue_id: old.temp_ue_id.clone(),
                    what: What::CellChange { status: HandoverStatus::Completed, targets: vec![key.0] },
                };
                change = Some(Occurrence { event, ids: old.ids.clone(), qci: None });
            }
            inherited = old;
        }
        if !self.ues.contains_key(&key) {
            if self.ues.len() >= MOST_UES
                && let Some(&(_, silent)) = self.by_age.first()
            {
                self.remove(silent);
            }
            let mut ue = Ue { ids: self.map.get(key.0, key.1).to_vec(), ..Ue::default() };
            if let Some(old) = inherited {
                ue = Ue { bearers: old.bearers, s1: old.s1, temp_ue_id: old.temp_ue_id, ..ue };
                old.ids.into_iter().for_each(|id| add(&mut ue.ids, id));
            }
            self.ues.insert(key, ue);
        }
        if let Some(ue) = self.ues.get_mut(&key) {
            self.by_age.remove(&(ue.seen, key));
            ue.seen = now;
            self.by_age.insert((now, key));
            if let Some(address) = address {
                // An RNTI that was given to another UE no longer has the former one's address.
                if let Some(former) = ue.report.as_ref().and_then(|report| report.ue.address)
                    && former != address
                {
                    ue.ids.retain(|id| *id != former.into());
                    self.by_address.remove(&former);
                }
                if ue.ids.len() >= MOST_IDS
                    && !ue.ids.contains(&address.into())
                    && let Some(oldest) = ue.ids.iter().position(|id| address_of(id).is_some())
                    && let Some(oldest) = address_of(&ue.ids.remove(oldest))
                {
                    self.by_address.remove(&oldest);
                }
                add(&mut ue.ids, address.into());
                // One without a place among the UE's identifiers would not be removed with it.
                if ue.ids.contains(&address.into()) {
                    self.by_address.insert(address, key);
                }
            }
        }
        change
    }

    /// Returns the entry of a cell that was heard.
    fn cell(&mut self, cell: u64, now: Time) -> &mut Cell {
        if !self.cells.contains_key(&cell)
            && self.cells.len() >= MOST_CELLS
            && let Some((_, silent)) = self.cells_by_age.pop_first()
        {
            self.cells.remove(&silent);
        }
        let entry = self.cells.entry(cell).or_default();
        self.cells_by_age.remove(&(entry.seen, cell));
        entry.seen = now;
        self.cells_by_age.insert((now, cell));
        entry
    }

    fn remove(&mut self, key: Key) -> Option<Ue> {
        let ue = self.ues.remove(&key)?;
        self.by_age.remove(&(ue.seen, key));
        for address in ue.ids.iter().filter_map(address_of) {
            if self.by_address.get(&address) == Some(&key) {
                self.by_address.remove(&address);
            }
        }
        Some(ue)
    }

    /// Forgets UEs and cells that were silent for [`KEEP`].
    pub fn forget(&mut self, now: Time) {
        while let Some(&(seen, key)) = self.by_age.first()
            && now.saturating_since(seen) > KEEP
        {
            self.remove(key);
        }
        while let Some(&(seen, cell)) = self.cells_by_age.first()
            && now.saturating_since(seen) > KEEP
        {
            self.cells_by_age.pop_first();
            self.cells.remove(&cell);
        }
    }

    /// Returns the UEs by cell and RNTI.
    pub fn ues(&self) -> impl Iterator<Item = (u64, u16, &Ue)> {
        self.ues.iter().map(|(&(cell, rnti), ue)| (cell, rnti, ue))
    }

    /// Returns the cells by identity.
    pub fn cells(&self) -> impl Iterator<Item = (u64, &Cell)> {
        self.cells.iter().map(|(&cell, entry)| (cell, entry))
    }

    /// Returns the latest report of the UE with an address.
    pub fn latest(&self, address: IpAddr) -> Option<&RadioReport> {
        self.ues.get(self.by_address.get(&address)?)?.report.as_ref()
    }
}

impl Ue {
    /// Returns whether a bearer has a guaranteed rate.
    ///
    /// Cells report a UE's traffic as a whole. It can be attributed to one of MEC 012's two kinds only if the UE has no such
    /// bearer: then it is traffic without guarantee.
    pub fn has_guaranteed_bearer(&self) -> bool {
        self.bearers.values().any(|bearer| is_guaranteed(bearer.qci))
    }

    fn address(&self) -> Option<IpAddr> {
        self.ids.iter().find_map(address_of)
    }
}

/// Returns whether bearers of a class have a guaranteed rate (23.203 table 6.1.7, 23.501 table 5.7.4-1).
fn is_guaranteed(qci: u8) -> bool {
    matches!(qci, 1..=4 | 65..=67 | 71..=76 | 82..=90)
}

/// Returns the UE's own address, if the identifier is one.
fn address_of(id: &AssociateId) -> Option<IpAddr> {
    match *id {
        AssociateId::Ipv4(address) => Some(address.into()),
        AssociateId::Ipv6(address) => Some(address.into()),
        AssociateId::Nated(_) | AssociateId::GtpTeid(_) => None,
    }
}

fn add(ids: &mut Vec<AssociateId>, id: AssociateId) {
    if !ids.contains(&id) && ids.len() < MOST_IDS {
        ids.push(id);
    }
}

#[cfg(test)]
mod tests;
