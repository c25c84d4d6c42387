//! UEs outside their Active Time ([`crate::mac::drx`]) leave the sets of active UEs of their cell, and a calendar entry
//! returns those that have something to send or receive.

use aqm::Packet;
use channel::Direction;

use crate::calendar::Kind;
use crate::mac::drx::NEVER;
use crate::network::Network;

/// Makes the UEs of `cell` inactive for which `slot` is not in the Active Time.
pub(crate) fn put_to_sleep<P: Packet>(network: &mut Network<P>, cell: usize, slot: u64) {
    for way in [Direction::Downlink, Direction::Uplink] {
        let mut active = core::mem::take(&mut network.cells[cell].side(way).active);
        active.retain(|index| {
            let ue = &network.ues[index as usize];
            let Some(drx) = &ue.mac.drx else { return true };
            let heard = ue.mac.request_state.heard_from;
            if drx.is_active(slot, heard) {
                return true;
            }
            if ue.needs_cell(way, ue.slots.start(slot)) {
                let next = drx.next_active(slot, heard);
                note_wake(network, index, next);
            }
            false
        });
        network.cells[cell].side(way).active = active;
    }
}

/// Wakes `index` in slot `next`, if it does not wake before.
fn note_wake<P: Packet>(network: &mut Network<P>, index: u32, next: u64) {
    if let Some(drx) = &mut network.ues[index as usize].mac.drx
        && next < drx.wake
    {
        drx.wake = next;
        network.note(next, index, Kind::Wake, 0);
    }
}

/// Called when the Active Time of `index` was extended in `slot`.
pub(crate) fn extended<P: Packet>(network: &mut Network<P>, index: u32, slot: u64) {
    let ue = &mut network.ues[index as usize];
    let heard = ue.mac.request_state.heard_from;
    let Some(drx) = &mut ue.mac.drx else { return };
    if drx.wake == NEVER {
        // Nothing waits.
        return;
    }
    let next = drx.next_active(slot, heard);
    if next > slot {
        note_wake(network, index, next);
        return;
    }
    drx.wake = NEVER;
    let now = ue.slots.start(slot);
    let needs = [Direction::Downlink, Direction::Uplink].map(|way| (way, ue.needs_cell(way, now)));
    let cell = ue.serving;
    for (way, _) in needs.into_iter().filter(|(_, needs)| *needs) {
        match way {
            Direction::Downlink => network.activate_downlink(index),
            Direction::Uplink => network.cells.activate(cell, Direction::Uplink, index),
        }
    }
}

/// The calendar's entry to wake `index`.
pub(crate) fn wake_up<P: Packet>(network: &mut Network<P>, index: u32, slot: u64) {
    let ue = &mut network.ues[index as usize];
    if let Some(drx) = &mut ue.mac.drx
        && drx.wake == slot
    {
        // If the Active Time has become shorter, it is woken later.
        drx.wake = NEVER - 1;
        extended(network, index, slot);
    }
}
