//! The steps of a handover and of a re-establishment.
//!
//! When event A3 triggers, the UE sends a measurement report on SRB1 ([`crate::signalling`]). The cell that receives it
//! prepares the handover and sends the command on SRB1 as well. When the UE has received it, its old cell stops, and
//! RLC is re-established at both ends (36.331 5.3.5.4, 36.323 5.2.2): with forwarding, all data not received by the UE
//! is sent again in the target. After the interruption the target may serve the UE, which confirms the change. If the
//! target cannot be reached before T304 expires, or the radio link fails, the UE searches for the cell received best
//! and re-establishes its connection there (36.331 5.3.7).
//!
//! A command that RLC abandons after its last retransmission ends the handover. The UE is unaware of it: its next
//! report starts another one, or its radio link fails.
//!
//! Deviations: the old cell serves the UE until the UE has the command; after an abandoned command, SRB1 is reset at
//! both ends, although nothing informs the UE; every cell has the UE's context, so a re-establishment never ends in
//! idle mode; forwarded packets reach the target within the interruption; access to a cell that is out of sync is
//! retried every ten milliseconds. [`crate::mac::reach`] says when a cell does not hear a UE.

use core::fmt;

use aqm::{Drops, Packet};
use channel::Direction;
use units::{Span, Time};

use crate::calendar::Kind;
use crate::mac::access;
use crate::mac::adaptation::decibels;
use crate::mac::cell::Cell;
use crate::mac::occasions;
use crate::network::{self, Delivery, Io, Network, strongest};
use crate::pdcp::Keep;
use crate::signalling::{self, Message, Signal};
use crate::stats::{Event, Sink, Step};
use crate::ue::{Link, Phy, Ue};

/// Interval between attempts to reach a cell.
const RETRY: Span = Span::from_millis(10);

/// The reason why [`crate::Ran::hand_over`] rejects a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The cell does not exist.
    NoSuchCell,
    /// The cell already serves the UE.
    OwnCell,
    /// A handover of the UE is already in progress.
    UnderWay {
        /// Its target cell.
        target: u32,
    },
    /// No cell serves the UE: its radio link has failed and it searches for a cell.
    NotServed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NoSuchCell => "no such cell",
            Refused::OwnCell => "the cell already serves the UE",
            Refused::UnderWay { .. } => "a handover of the UE is already in progress",
            Refused::NotServed => "no cell serves the UE: its radio link has failed",
        })
    }
}

impl std::error::Error for Refused {}

/// See [`crate::Ran::hand_over`].
pub(crate) fn hand_over<P: Packet>(
    network: &mut Network<P>,
    ue: u32,
    cell: u32,
    now: Time,
    sink: &mut impl Sink,
) -> Result<(), Refused> {
    network.reach(now);
    let state = &mut network.ues[ue as usize];
    match state.rrc.link {
        _ if cell as usize >= network.serving_cells => return Err(Refused::NoSuchCell),
        Link::Searching { .. } => return Err(Refused::NotServed),
        Link::Preparing { target } | Link::Commanded { target } | Link::Moving { target, .. } => {
            return Err(Refused::UnderWay { target: target as u32 });
        }
        Link::Connected if state.serving == cell as usize => return Err(Refused::OwnCell),
        Link::Connected => {}
    }
    prepare(network, ue, cell as usize, now, sink);
    Ok(())
}

/// Prepares the handover to `target` in the old cell.
fn prepare<P: Packet, S: Sink>(network: &mut Network<P>, ue: u32, target: usize, now: Time, sink: &mut S) {
    network.ues[ue as usize].rrc.link = Link::Preparing { target };
    emit(sink, now, ue, Step::Preparing { target: target as u32 });
    note_after(network, network.handover.preparation, now, ue, Kind::Mobility);
}

/// Resumes measurements, or the search for a cell, at `now` after a change of the channel of `ue` or its cell.
pub(crate) fn wake<P: Packet>(network: &mut Network<P>, ue: u32, now: Time) {
    let state = &mut network.ues[ue as usize];
    let slot = state.slots.next_after(now);
    if core::mem::take(&mut state.rrc.dormant) {
        network.note(slot, ue, Kind::Mobility, 0);
    } else if state.rrc.is_served() {
        note_measurement(network, ue, slot);
    }
}

/// Adds a calendar entry for `ue` after `pause`, rounded up to slots of its cell.
fn note_after<P: Packet>(network: &mut Network<P>, pause: Span, now: Time, ue: u32, kind: Kind) {
    let slots = network.ues[ue as usize].slots;
    network.note(slots.next_after(now) + slots.spanning(pause), ue, kind, 0);
}

/// Adds a calendar entry for a measurement of `ue` in `slot`, unless there is one or measuring has no effect.
pub(crate) fn note_measurement<P: Packet>(network: &mut Network<P>, ue: u32, slot: u64) {
    let state = &mut network.ues[ue as usize];
    let now = state.slots.start(slot);
    if !state.rrc.measures && measuring_matters(network, ue, now) {
        network.ues[ue as usize].rrc.measures = true;
        network.note(slot, ue, Kind::Measure, 0);
    }
}

/// Returns whether measurements from `now` on may change the link of `ue` or its cell.
fn measuring_matters<P: Packet>(network: &mut Network<P>, ue: u32, now: Time) -> bool {
    let state = &mut network.ues[ue as usize];
    if state.phy.air.varies() {
        return true;
    }
    if !state.rrc.is_served() {
        return false;
    }
    let (air, serving) = (&mut state.phy.air, state.serving);
    let settled = state.rrc.measurements.are_settled(network.handover.a3.as_ref(), serving, |cell| air.rsrp(cell, now));
    !settled
        || state.rrc.sync.is_t310_running()
        || least_sinr_db(network, ue, now) < network.handover.link.q_out_db
        || !is_heard(network, ue, now)
}

pub(crate) fn measure<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let ue = &mut network.ues[index as usize];
    let next = ue.slots.next_after(now) + ue.slots.spanning(network.handover.period).max(1);
    ue.rrc.measures = false;
    ue.hear(&network.interference);
    ue.rrc.measurements.measured(ue.phy.air.rsrps(now));
    if S::MEASURES {
        // Loads of cells that others do not hear have no versions.
        network.interference.load(&mut ue.phy.air);
        for cell in 0..network.serving_cells {
            let (rsrp_dbm, rsrq_db) = (ue.phy.air.rsrp(cell, now), ue.phy.air.rsrq(cell, now));
            let serving = cell == ue.serving && ue.rrc.is_served();
            let event = Event::Measured { ue: index, cell: cell as u32, rsrp_dbm, rsrq_db, serving };
            io.sink.event(now, &event);
        }
    }
    let is_heard = is_heard(network, index, now);
    let sinr_db = if is_heard { sinr_db(network, index, now) } else { f64::NEG_INFINITY };
    let ue = &mut network.ues[index as usize];
    ue.rrc.is_heard = is_heard;
    if ue.rrc.is_served() && ue.rrc.sync.indicate(&network.handover.link, sinr_db, now) {
        handle_link_failure(network, index, now, io);
    } else if ue.rrc.is_served() {
        evaluate_a3(network, index, now, io);
    }
    note_measurement(network, index, next);
}

fn evaluate_a3<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let ue = &mut network.ues[index as usize];
    if let Some(a3) = &network.handover.a3
        && let Some(report) = ue.rrc.measurements.a3(a3, ue.serving, now)
    {
        emit(io.sink, now, index, Step::Triggered { target: report.best as u32 });
        signal(network, index, Direction::Uplink, Message::Report(report), now, io);
    }
}

pub(crate) fn mobility_step<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    match network.ues[index as usize].rrc.link {
        Link::Connected | Link::Commanded { .. } => {}
        Link::Preparing { target } => {
            network.ues[index as usize].rrc.link = Link::Commanded { target };
            let command = Message::Command { target, bytes: network.handover.command_bytes };
            signal(network, index, Direction::Downlink, command, now, io);
        }
        Link::Moving { target, since, deadline } => {
            if reaches(network, index, target, now) {
                network.ues[index as usize].stats.handovers += 1;
                signal(network, index, Direction::Uplink, Message::Complete, now, io);
                connect(network, index, since, now, io);
            } else if now + RETRY <= deadline {
                note_after(network, RETRY, now, index, Kind::Mobility);
            } else {
                let ue = &mut network.ues[index as usize];
                ue.stats.handover_failures += 1;
                ue.rrc.link = Link::Searching { since };
                emit(io.sink, now, index, Step::Failed);
                let found = deadline.saturating_since(now) + network.handover.reestablishment;
                note_after(network, found, now, index, Kind::Mobility);
            }
        }
        Link::Searching { since } => {
            let cells = network.serving_cells;
            let target = strongest(&mut network.ues[index as usize].phy.air, cells, now);
            if reaches(network, index, target, now) {
                connect(network, index, since, now, io);
            } else if may_reach(network, index, target, now) {
                note_after(network, RETRY, now, index, Kind::Mobility);
            } else {
                network.ues[index as usize].rrc.dormant = true;
            }
        }
    }
}

/// Sends `message` on SRB1 in direction `way`.
fn signal<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    way: Direction,
    message: Message,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let ue = &mut network.ues[index as usize];
    let Cell { mac, reports, .. } = &network.cells[ue.serving];
    if !reports.carry_signalling() {
        return handle_message(network, index, message, now, io);
    }
    let srb = ue.bearers.srb.get_or_insert_with(|| Box::new(signalling::bearer(mac.rat)));
    srb.enqueue(way, Signal::new(message, now), now, &mut |_, _| {});
    match way {
        Direction::Downlink => network.activate_downlink(index),
        Direction::Uplink => access::check_uplink_buffers(network, index, now),
    }
    network.note_rlc(index);
}

/// Handles the messages that have arrived.
pub(crate) fn handle_messages<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    if network.messages.is_empty() {
        return;
    }
    let mut messages = core::mem::take(&mut network.messages);
    for message in messages.drain(..) {
        handle_message(network, index, message, now, io);
    }
    network.messages = messages;
}

fn handle_message<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    message: Message,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let ue = &network.ues[index as usize];
    match (message, ue.rrc.link) {
        (Message::Report(report), Link::Connected) => prepare(network, index, report.best, now, io.sink),
        (Message::Command { target, .. }, Link::Commanded { .. }) => {
            let source = ue.serving as u32;
            emit(io.sink, now, index, Step::Left { source, target: target as u32 });
            let link = Link::Moving { target, since: now, deadline: now + network.handover.t304 };
            leave(network, index, link, network.handover.interruption, now, io);
        }
        // A report during the preparation of a handover has no effect; the target has heard the UE before it
        // confirms.
        _ => {}
    }
}

/// Handles RLC's failure to deliver the command to `index`.
pub(crate) fn handle_command_failure<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let Network { ues, messages, .. } = network;
    let ue = &mut ues[index as usize];
    if let Some(srb) = &mut ue.bearers.srb {
        let mut deliver = |_, signal: Signal, _| messages.push(signal.message);
        srb.reestablish(Keep::Nothing, Keep::All, now, &mut deliver, &mut |_, _| {});
    }
    if matches!(ue.rrc.link, Link::Commanded { .. }) {
        ue.rrc.link = Link::Connected;
        emit(io.sink, now, index, Step::CommandLost);
    }
    handle_messages(network, index, now, io);
}

/// Handles a radio link failure of `index`.
pub(crate) fn handle_link_failure<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let ue = &mut network.ues[index as usize];
    if !ue.rrc.is_served() {
        return;
    }
    ue.stats.link_failures += 1;
    emit(io.sink, now, index, Step::LinkLost { source: ue.serving as u32 });
    leave(network, index, Link::Searching { since: now }, network.handover.reestablishment, now, io);
}

/// Disconnects `index` from its cell; the next step of `link` is due after `pause`.
fn leave<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    link: Link,
    pause: Span,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    occasions::release_grant(network, index, now);
    let Network { ues, cells, outbox, handover, .. } = network;
    let ue = &mut ues[index as usize];
    ue.mac.stop_drx(ue.slots, now);
    for cell in [Some(ue.serving), ue.secondary].into_iter().flatten() {
        cells[cell].downlink.remove(index);
    }
    cells[ue.serving].uplink.remove(index);
    ue.leave();
    ue.rrc.link = link;
    // Data that the UE has not sent successfully stays with the UE; the network's data has to be forwarded.
    let downlink = if handover.forwarding { Keep::All } else { Keep::Nothing };
    for bearer in &mut ue.bearers.data {
        bearer.rlc.reestablish(
            downlink,
            Keep::All,
            now,
            &mut |direction, packet, times| {
                outbox.push_back(Delivery { ue: index, direction, packet, times });
            },
            io.drops,
        );
    }
    ue.bearers.hand_down(Direction::Downlink, now, io.drops);
    ue.bearers.hand_down(Direction::Uplink, now, io.drops);
    let slots = ue.slots;
    network.note_rlc(index);
    note_measurement(network, index, slots.next_after(now) + slots.spanning(network.handover.period).max(1));
    note_after(network, pause, now, index, Kind::Mobility);
}

/// Connects `index` to the serving cell.
fn connect<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    since: Time,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    occasions::configure_grant(network, index, now);
    let Network { ues, cells, outbox, .. } = network;
    let ue = &mut ues[index as usize];
    let is_handover = matches!(ue.rrc.link, Link::Moving { .. });
    ue.rrc.link = Link::Connected;
    if ue.rrc.served_by != ue.serving {
        ue.rrc.served_by = ue.serving;
        ue.rrc.connected = (now, ue.stats.downlink);
    }
    ue.mac.start_drx(&cells[ue.serving], now);
    if let Some(drx) = &mut ue.mac.drx {
        if is_handover {
            drx.arrived();
        } else {
            drx.new_block(ue.slots.next_after(now), Direction::Uplink);
        }
    }
    // Nothing has been sent since the UE left its old cell: everything is kept.
    let mut deliver = |direction, packet, times| outbox.push_back(Delivery { ue: index, direction, packet, times });
    ue.bearers.adopt(cells[ue.serving].mac.rat.is_nr(), now, &mut deliver, io.drops);
    let step = Step::Connected { cell: ue.serving as u32, interruption: now.saturating_since(since) };
    emit(io.sink, now, index, step);
    touched(network, index, now, io);
    wake(network, index, now);
    let ue = &mut network.ues[index as usize];
    let Cell { mac, reports, .. } = &network.cells[ue.serving];
    if ue.rrc.is_served() && ue.mac.had_data != 0 && reports.include_buffers() {
        // The message that completes the handover carries a report.
        ue.mac.estimate.asked = mac.requests.first_grant;
        access::update_uplink_activity(network, index);
    }
}

/// Returns whether `index` can be served by `target`, which becomes the serving cell.
fn reaches<P: Packet>(network: &mut Network<P>, index: u32, target: usize, now: Time) -> bool {
    network.ues[index as usize].tune(target, &network.cells[target]);
    sinr_db(network, index, now) >= network.handover.link.q_out_db && is_heard(network, index, now)
}

/// Returns whether the serving cell hears `index`.
fn is_heard<P: Packet>(network: &mut Network<P>, index: u32, now: Time) -> bool {
    let Ue { phy: Phy { air, .. }, serving, .. } = &mut network.ues[index as usize];
    let least = network.cells[*serving].least_uplink_db;
    least == f64::NEG_INFINITY || air.uplink_sinr_db(*serving, now) >= least
}

/// Returns whether `target` may serve `index` later without a change from outside: the channel varies, or other cells
/// may fall silent.
fn may_reach<P: Packet>(network: &mut Network<P>, index: u32, target: usize, now: Time) -> bool {
    let is_shared = network.interference.is_shared(target, Direction::Downlink) && is_heard(network, index, now);
    let air = &mut network.ues[index as usize].phy.air;
    air.varies() || is_shared && decibels(air.greatest_sinr(target, now)) >= network.handover.link.q_out_db
}

/// Returns the lowest SINR in dB that interference may cause at a UE whose channel is constant.
fn least_sinr_db<P: Packet>(network: &mut Network<P>, index: u32, now: Time) -> f64 {
    let Ue { phy: Phy { air, .. }, serving, .. } = &mut network.ues[index as usize];
    if network.interference.is_shared(*serving, Direction::Downlink) && !network.interference.is_quiet() {
        return decibels(air.least_sinr(*serving, now)).min(sinr_db(network, index, now));
    }
    sinr_db(network, index, now)
}

/// Returns the serving cell's mean SINR at a UE in dB.
fn sinr_db<P: Packet>(network: &mut Network<P>, index: u32, now: Time) -> f64 {
    let ue = &mut network.ues[index as usize];
    ue.hear(&network.interference);
    ue.measure_downlink(now);
    decibels(f64::from(ue.mac.down[0].sinr.mean()))
}

/// Updates the UE's state after its RLC or PDCP entities may have new data or timers.
#[inline]
pub(crate) fn touched<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    ue: u32,
    now: Time,
    io: &mut Io<'_, D, S>,
) {
    let state = &mut network.ues[ue as usize];
    if state.bearers.data.iter().any(|b| b.rlc.failed().is_some()) {
        handle_link_failure(network, ue, now, io);
        return;
    }
    match state.bearers.srb.as_ref().and_then(|srb| srb.failed()) {
        Some(Direction::Uplink) => return handle_link_failure(network, ue, now, io),
        Some(Direction::Downlink) => handle_command_failure(network, ue, now, io),
        None => {}
    }
    let state = &mut network.ues[ue as usize];
    if state.bearers.uses_status {
        state.bearers.hand_down(Direction::Downlink, now, io.drops);
        state.bearers.hand_down(Direction::Uplink, now, io.drops);
    }
    if state.rrc.is_served() && state.bearers.has_data(Direction::Downlink, now) {
        network.activate_downlink(ue);
    }
    access::check_uplink_buffers(network, ue, now);
    network.note_rlc(ue);
}

fn emit<S: Sink>(sink: &mut S, now: Time, ue: u32, step: Step) {
    network::emit(sink, now, || Event::Mobility { ue, step });
}
