//! What a UE's bearers receive: the contents of decoded blocks, lost blocks, and their timers.

use aqm::{Drops, Packet};
use channel::Direction;
use units::Time;

use crate::mac::cell::Cell;
use crate::mac::harq::Parcel;
use crate::network::{Delivery, Io, Network};
use crate::signalling::{SRB, Signal};
use crate::stats::Sink;
use crate::ue::Ue;

/// Handles the timers of RLC and PDCP; returns whether any was due: bearers may have new data and timers.
pub(crate) fn rlc_timeout<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    ue: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) -> bool {
    let Network { ues, outbox, messages, .. } = network;
    let state = &mut ues[ue as usize];
    if state.bearers.noted != now {
        // It was replaced by an earlier one.
        return false;
    }
    state.bearers.noted = Time::MAX;
    for bearer in &mut state.bearers.data {
        if bearer.rlc.poll_timeout().is_some_and(|due| due <= now) {
            bearer.rlc.handle_timeout(
                now,
                &mut |direction, packet, times| outbox.push_back(Delivery { ue, direction, packet, times }),
                io.drops,
            );
        }
    }
    if let Some(srb) = &mut state.bearers.srb {
        // AM delivers nothing when a timer expires.
        srb.handle_timeout(now, &mut |_, signal: Signal, _| messages.push(signal.message), &mut |_, _| {});
    }
    // PDCP's discards have made room.
    state.bearers.hand_down(Direction::Downlink, now, io.drops);
    state.bearers.hand_down(Direction::Uplink, now, io.drops);
    true
}

/// Passes the contents of a decoded block to RLC; returns whether messages may have arrived, or bearers have new data.
pub(crate) fn receive<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    ue: u32,
    way: Direction,
    process: u8,
    now: Time,
    io: &mut Io<'_, D, S>,
) -> bool {
    let Network { ues, outbox, messages, .. } = network;
    let state = &mut ues[ue as usize];
    let may_answer = state.bearers.acknowledges() || state.bearers.uses_status || state.mac.drx.is_some();
    let Ue { bearers, mac, .. } = state;
    for parcel in mac.block(way, process).parcels() {
        if parcel.bearer == SRB {
            if let Some(srb) = &mut bearers.srb {
                let mut deliver = |_, signal: Signal, _| messages.push(signal.message);
                srb.receive(way, &parcel.block, now, &mut deliver, &mut |_, _| {});
            }
            continue;
        }
        bearers.data[usize::from(parcel.bearer)].rlc.receive(
            way,
            &parcel.block,
            now,
            &mut |direction, packet, times| outbox.push_back(Delivery { ue, direction, packet, times }),
            io.drops,
        );
    }
    if !may_answer {
        // Nothing but a receiver's timer has changed.
        debug_assert!(is_up_to_date(network, ue, now), "a block without acknowledgements changes nothing to be sent");
        network.note_rlc(ue);
    }
    may_answer
}

/// Informs RLC that HARQ has abandoned a block.
pub(crate) fn give_up<P: Packet, D: Drops<P>>(
    network: &mut Network<P>,
    ue: u32,
    way: Direction,
    process: u8,
    drops: &mut D,
) {
    let Ue { bearers, mac, stats, .. } = &mut network.ues[ue as usize];
    let data = |parcel: &&Parcel| parcel.bearer != SRB;
    for parcel in mac.block(way, process).parcels().iter().filter(data) {
        bearers.data[usize::from(parcel.bearer)].rlc.lost(way, &parcel.block, drops);
    }
    stats.of(way).residual_errors += 1;
}

/// Returns whether [`crate::mobility::touched`] would change nothing of what the UE and its cell send.
fn is_up_to_date<P: Packet>(network: &Network<P>, ue: u32, now: Time) -> bool {
    let state = &network.ues[ue as usize];
    let Cell { reports, downlink, uplink, .. } = &network.cells[state.serving];
    let with_data = state.bearers.with_uplink_data(now);
    let is_known = match reports.include_buffers() {
        true => with_data == state.mac.had_data,
        false => with_data == 0 || uplink.active.ues().contains(&ue),
    };
    let is_active = !state.bearers.has_data(Direction::Downlink, now) || downlink.active.ues().contains(&ue);
    !state.rrc.is_served() || is_known && is_active
}
