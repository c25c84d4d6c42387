//! The occasions of UEs with [`super::configured`] grants.

use aqm::Packet;
use channel::Direction;
use units::Time;

use crate::calendar::{Entry, Kind};
use crate::mac::cell::Cell;
use crate::network::Ran;

impl<P: Packet> Ran<P> {
    /// Gives `index` at `now` a place in its serving cell, if that has one left.
    pub(crate) fn configure_grant(&mut self, index: u32, now: Time) {
        let ue = &mut self.ues[index as usize];
        let Cell { mac, places: Some(places), .. } = &mut self.cells[ue.serving] else { return };
        ue.configured = places.take(mac.rat.ungranted_from(ue.slots.next_after(now))).map(Box::new);
    }

    /// Takes back the place of `index` in its serving cell.
    pub(crate) fn release_grant(&mut self, index: u32) {
        let ue = &mut self.ues[index as usize];
        if let (Some(place), Some(places)) = (ue.configured.take(), &mut self.cells[ue.serving].places) {
            places.give_back(&place);
        }
    }

    /// Schedules the next occasion from `slot` on of a UE that has a place.
    #[inline]
    pub(crate) fn note_occasion(&mut self, index: u32, slot: u64) {
        let ue = &mut self.ues[index as usize];
        let (Some(place), Some(places)) = (&mut ue.configured, &self.cells[ue.serving].places) else { return };
        if !core::mem::replace(&mut place.noted, true) {
            let next = place.next(&places.grant, slot);
            self.note(next, index, Kind::Occasion, 0);
        }
    }

    /// Decides at the beginning of a slot which UEs with an occasion send a block: their entries become transmissions.
    pub(crate) fn use_occasions(&mut self, due: &mut [Entry], tick: u64) {
        for number in 0..due.len() {
            let entry = due[number];
            let ue = &mut self.ues[entry.ue as usize];
            if entry.kind != Kind::Occasion || entry.epoch != ue.epoch {
                continue;
            }
            let is_granted = due
                .iter()
                .any(|other| (other.ue, other.epoch, other.kind) == (entry.ue, entry.epoch, Kind::UplinkTransmit));
            let slot = ue.slots.next_at(tick);
            let Cell { mac, places: Some(places), .. } = &self.cells[ue.serving] else { continue };
            let Some(place) = &mut ue.configured else { continue };
            place.noted = false;
            if ue.had_data == 0 {
                continue;
            }
            let grant = &places.grant;
            let process = grant.process(slot, places.per_ms);
            let is_free = place.free_from[usize::from(process)] <= slot && !ue.up.harq.is_busy(process);
            if is_free && !is_granted {
                place.start_timer(grant, process, slot);
                let least = mac.rat.least_mcs(grant.prbs);
                let mcs = mac.rat.usable(Direction::Uplink, (grant.mcs.max(least), 1), grant.prbs);
                let blocks = (place.first_prb, grant.prbs);
                let transport = &mut ue.up.harq.processes[usize::from(process)];
                transport.begin_uplink(mac.rat, mcs, blocks, slot);
                ue.up.past.served(slot, transport.bits);
                ue.up.harq.sent(process);
                due[number] = Entry { kind: Kind::UplinkTransmit, process, ..entry };
            }
            self.note_occasion(entry.ue, slot + 1);
        }
    }
}
