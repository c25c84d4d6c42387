//! The occasions of UEs with [`super::configured`] grants.

use aqm::Packet;
use channel::Direction;
use units::Time;

use crate::calendar::{Entry, Kind};
use crate::mac::cell::Cell;
use crate::network::Network;
use crate::ue::Ue;

/// Gives `index` at `now` a place in its serving cell, if that has one left.
pub(crate) fn configure_grant<P: Packet>(network: &mut Network<P>, index: u32, now: Time) {
    let ue = &mut network.ues[index as usize];
    let Cell { timing, places: Some(places), .. } = &mut network.cells[ue.serving] else { return };
    ue.mac.configured = places.take(timing.ungranted_from(ue.slots.next_after(now))).map(Box::new);
}

/// Takes back the place of `index`, which leaves its serving cell at `now`, and gives it to the first UE there that has
/// none.
pub(crate) fn release_grant<P: Packet>(network: &mut Network<P>, index: u32, now: Time) {
    let ue = &mut network.ues[index as usize];
    let cell = ue.serving;
    let (Some(place), Some(places)) = (ue.mac.configured.take(), &mut network.cells[cell].places) else { return };
    places.give_back(&place);
    let lacks_one = |ue: &Ue<P>| ue.serving == cell && ue.rrc.is_served() && ue.mac.configured.is_none();
    let next = (0..network.ues.len() as u32).find(|next| *next != index && lacks_one(&network.ues[*next as usize]));
    if let Some(next) = next {
        configure_grant(network, next, now);
        let slot = network.ues[next as usize].slots.next_after(now);
        note_occasion(network, next, slot);
    }
}

/// Schedules the next occasion from `slot` on of a UE that has a place.
#[inline]
pub(crate) fn note_occasion<P: Packet>(network: &mut Network<P>, index: u32, slot: u64) {
    let ue = &mut network.ues[index as usize];
    let (Some(place), Some(places)) = (&mut ue.mac.configured, &network.cells[ue.serving].places) else { return };
    if !core::mem::replace(&mut place.noted, true) {
        let next = place.next(&places.grant, slot);
        network.note(next, index, Kind::Occasion, 0);
    }
}

/// Decides at the beginning of a slot which UEs with an occasion send a block: their entries become transmissions.
pub(crate) fn use_occasions<P: Packet>(network: &mut Network<P>, due: &mut [Entry], tick: u64) {
    for number in 0..due.len() {
        let entry = due[number];
        let ue = &mut network.ues[entry.ue as usize];
        if entry.kind != Kind::Occasion || entry.epoch != ue.epoch {
            continue;
        }
        let is_granted = due
            .iter()
            .any(|other| (other.ue, other.epoch, other.kind) == (entry.ue, entry.epoch, Kind::UplinkTransmit));
        let slot = ue.slots.next_at(tick);
        let Cell { formats, places: Some(places), .. } = &network.cells[ue.serving] else { continue };
        let Some(place) = &mut ue.mac.configured else { continue };
        place.noted = false;
        if ue.mac.had_data == 0 {
            continue;
        }
        let grant = &places.grant;
        let process = grant.process(slot, places.per_ms);
        let is_free = place.free_from[usize::from(process)] <= slot && !ue.mac.up.harq.is_busy(process);
        if is_free && !is_granted {
            place.start_timer(grant, process, slot);
            let least = formats.least_mcs(grant.prbs);
            let mcs = formats.usable(Direction::Uplink, (grant.mcs.max(least), 1), grant.prbs);
            let blocks = (place.first_prb, grant.prbs);
            let transport = &mut ue.mac.up.harq.processes[usize::from(process)];
            transport.begin_uplink(formats, mcs, blocks, slot);
            ue.mac.up.past.served(slot, transport.bits);
            ue.mac.up.harq.sent(process);
            due[number] = Entry { kind: Kind::UplinkTransmit, process, ..entry };
        }
        note_occasion(network, entry.ue, slot + 1);
    }
}
