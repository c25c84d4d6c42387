//! How UEs ask for the uplink: the events of scheduling requests, random access and buffer status reports
//! ([`crate::mac::requests`]).

use aqm::{Drops, Packet};
use channel::Direction;
use units::Time;

use crate::calendar::Kind;
use crate::config::MacConfig;
use crate::mac::cell::Cell;
use crate::mac::occasions;
use crate::mac::requests::Opportunity;
use crate::mac::sleep;
use crate::network::{Io, Network, emit};
use crate::stats::{Event, Sink};
use crate::ue::{self, Ue};

/// Checks for uplink data that has to be reported to the cell.
#[inline]
pub(crate) fn check_uplink_buffers<P: Packet>(network: &mut Network<P>, index: u32, now: Time) {
    let ue = &mut network.ues[index as usize];
    if !ue.rrc.is_served() {
        return;
    }
    let with_data = ue.bearers.with_uplink_data(now);
    let new = with_data & !ue.mac.had_data;
    let old = core::mem::replace(&mut ue.mac.had_data, with_data) & with_data;
    let serving = ue.serving;
    if !network.cells[serving].reports.include_buffers() {
        if with_data != 0 {
            network.cells.activate(serving, Direction::Uplink, index);
        }
    } else if new != 0 && ue.bearers.is_urgent(new, old) {
        ue.mac.request_state.trigger();
        let next = ue.slots.next_at(network.next_tick);
        note_opportunity(network, index, next);
    }
}

/// Schedules the next scheduling request occasion at or after slot `from`, if a request is pending, or the next
/// occasion of a configured grant.
#[inline]
fn note_opportunity<P: Packet>(network: &mut Network<P>, index: u32, from: u64) {
    if network.ues[index as usize].mac.configured.is_some() {
        return occasions::note_occasion(network, index, from);
    }
    let Ue { mac: ue::Mac { request_state, .. }, serving, .. } = &mut network.ues[index as usize];
    if request_state.request_pending && !request_state.opportunity_noted && !request_state.random_access {
        request_state.opportunity_noted = true;
        let cell = &network.cells[*serving];
        let slot = cell.occasions.next(cell.timing, index, from);
        network.note(slot, index, Kind::SchedulingRequest, 0);
    }
}

pub(crate) fn request_opportunity<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    tti: u64,
    io: &mut Io<'_, D, S>,
) {
    let ue = &mut network.ues[index as usize];
    let Cell { mac: MacConfig { requests, .. }, timing, decoding, .. } = &network.cells[ue.serving];
    ue.mac.request_state.opportunity_noted = false;
    ue.mac.drx_at(tti);
    // It may have been given a configured grant meanwhile.
    if ue.mac.configured.is_none() && !ue.mac.estimate.has_grant(tti) {
        match ue.mac.request_state.opportunity_comes(requests, tti) {
            Opportunity::Unused | Opportunity::Prohibited => {}
            Opportunity::Sent => {
                ue.stats.scheduling_requests += 1;
                emit(io.sink, ue.slots.start(tti), || Event::SchedulingRequest { ue: index });
                let known = timing.request_known(tti, *decoding);
                ue.mac.request_state.sent(tti, known);
                network.note(known, index, Kind::SchedulingRequestReceived, 0);
            }
            Opportunity::Exhausted => {
                ue.stats.random_accesses += 1;
                let done = tti + ue.slots.spanning(requests.random_access);
                let access = ue.mac.request_state.accesses;
                network.note(done, index, Kind::RandomAccessDone, access);
            }
        }
    }
    note_opportunity(network, index, tti + 1);
}

pub(crate) fn request_received<P: Packet>(network: &mut Network<P>, index: u32, tti: u64) {
    let ue = &mut network.ues[index as usize];
    ue.mac.estimate.requested(&network.cells[ue.serving].mac.requests, tti);
    update_uplink_activity(network, index);
    sleep::extended(network, index, tti);
}

pub(crate) fn random_access_done<P: Packet>(network: &mut Network<P>, index: u32, access: u8, tti: u64) {
    let ue = &mut network.ues[index as usize];
    if ue.mac.request_state.random_access && ue.mac.request_state.accesses == access {
        ue.mac.request_state.random_access = false;
        ue.mac.estimate.asked = network.cells[ue.serving].mac.requests.first_grant;
        let slots = ue.slots;
        if let Some(drx) = ue.mac.drx_at(tti) {
            drx.accessed(tti, slots);
        }
        update_uplink_activity(network, index);
        sleep::extended(network, index, tti);
    }
}

/// retxBSR-Timer: the timer may have been restarted since the entry was made.
pub(crate) fn retx_bsr<P: Packet>(network: &mut Network<P>, index: u32, tti: u64) {
    let ue = &mut network.ues[index as usize];
    ue.mac.request_state.retx_noted = false;
    if ue.mac.had_data == 0 {
        return;
    }
    if tti >= ue.mac.request_state.retx_due {
        ue.mac.request_state.trigger();
        let retx = network.cells[ue.serving].mac.requests.bsr_retx;
        ue.mac.request_state.retx_due = tti + ue.slots.spanning(retx);
        note_opportunity(network, index, tti + 1);
    }
    note_retx(network, index);
}

/// Adds a calendar entry for retxBSR-Timer, if it runs and there is none.
#[inline]
pub(crate) fn note_retx<P: Packet>(network: &mut Network<P>, index: u32) {
    let request_state = &mut network.ues[index as usize].mac.request_state;
    if !request_state.retx_noted && request_state.retx_due != u64::MAX {
        request_state.retx_noted = true;
        let due = request_state.retx_due;
        network.note(due, index, Kind::RetxBsr, 0);
    }
}

/// Updates whether the UE is active in the cell's uplink.
#[inline]
pub(crate) fn update_uplink_activity<P: Packet>(network: &mut Network<P>, index: u32) {
    let ue = &network.ues[index as usize];
    if ue.mac.estimate.wants() {
        network.cells.activate(ue.serving, Direction::Uplink, index);
    }
}
