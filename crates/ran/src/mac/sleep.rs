//! UEs outside their Active Time ([`crate::mac::drx`]) leave the sets of active UEs of their cell, and a calendar entry
//! returns those that have something to send or receive.

use aqm::Packet;
use channel::Direction;
use units::{Span, Time};

use crate::calendar::Kind;
use crate::mac::drx::NEVER;
use crate::network::Ran;

impl<P: Packet> Ran<P> {
    /// Returns how long `ue` has been outside its Active Time in slots of its cells that have begun before `now`
    /// ([`crate::Drx`]). Time without a cell does not count.
    pub fn time_asleep(&mut self, ue: u32, now: Time) -> Span {
        if self.ues[ue as usize].mac.drx.is_some() {
            self.reach(now);
        }
        let state = &mut self.ues[ue as usize];
        // Slots that have not been run may still extend the Active Time.
        let slot = state.slots.next_after(now).min(state.slots.next_at(self.next_tick));
        let asleep = state.mac.drx_at(slot).map_or(0, |drx| drx.asleep());
        state.mac.asleep_before + state.slots.length() * asleep
    }

    /// Makes the UEs of `cell` inactive for which `slot` is not in the Active Time.
    pub(crate) fn put_to_sleep(&mut self, cell: usize, slot: u64) {
        for way in [Direction::Downlink, Direction::Uplink] {
            let mut active = core::mem::take(&mut self.cells[cell].side(way).active);
            active.retain(|index| {
                let ue = &self.ues[index as usize];
                let Some(drx) = &ue.mac.drx else { return true };
                let heard = ue.mac.request_state.heard_from;
                if drx.is_active(slot, heard) {
                    return true;
                }
                if ue.needs_cell(way, ue.slots.start(slot)) {
                    let next = drx.next_active(slot, heard);
                    self.note_wake(index, next);
                }
                false
            });
            self.cells[cell].side(way).active = active;
        }
    }

    /// Wakes `index` in slot `next`, if it does not wake before.
    fn note_wake(&mut self, index: u32, next: u64) {
        if let Some(drx) = &mut self.ues[index as usize].mac.drx
            && next < drx.wake
        {
            drx.wake = next;
            self.note(next, index, Kind::Wake, 0);
        }
    }

    /// Called when the Active Time of `index` was extended in `slot`.
    pub(crate) fn extended(&mut self, index: u32, slot: u64) {
        let ue = &mut self.ues[index as usize];
        let heard = ue.mac.request_state.heard_from;
        let Some(drx) = &mut ue.mac.drx else { return };
        if drx.wake == NEVER {
            // Nothing waits.
            return;
        }
        let next = drx.next_active(slot, heard);
        if next > slot {
            self.note_wake(index, next);
            return;
        }
        drx.wake = NEVER;
        let now = ue.slots.start(slot);
        let needs = [Direction::Downlink, Direction::Uplink].map(|way| (way, ue.needs_cell(way, now)));
        let cell = ue.serving;
        for (way, _) in needs.into_iter().filter(|(_, needs)| *needs) {
            match way {
                Direction::Downlink => self.activate_downlink(index),
                Direction::Uplink => self.cells.activate(cell, Direction::Uplink, index),
            }
        }
    }

    /// The calendar's entry to wake `index`.
    pub(crate) fn wake_up(&mut self, index: u32, slot: u64) {
        let ue = &mut self.ues[index as usize];
        if let Some(drx) = &mut ue.mac.drx
            && drx.wake == slot
        {
            // If the Active Time has become shorter, it is woken later.
            drx.wake = NEVER - 1;
            self.extended(index, slot);
        }
    }
}
