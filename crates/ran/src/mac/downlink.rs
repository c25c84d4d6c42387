//! The downlink of a slot: scheduling, transmission, decoding and feedback.
//!
//! A block is sent in the slot in which it is assigned. The UE has decoded it [`crate::MacConfig::decoding`] after its
//! end; its acknowledgement ([`crate::Rat`] says when) allows the process to be reused. Retransmissions precede new
//! blocks, with the same scheme and as many resource elements; proportional fair
//! counts them as service. A UE that reports CQI 0, "out of range" (36.213 Table 7.2.3-1), gets no new data until it
//! reports another CQI. RRC messages are still sent to it: retransmissions may deliver a handover command.
//! A UE that the cell does not hear ([`crate::mac::reach`]) is served likewise.
//!
//! The control channel bounds the number of blocks in a slot ([`crate::mac::control`]).
//!
//! Deviations: control channels are free of errors, so that no assignment is missed and the eNodeB need not detect DTX;
//! a packet may be sent in the first slot that begins after its arrival; the eNodeB's processing time (3 ms in TR
//! 36.881) belongs to the delay of the link in front of it.

use aqm::{Drops, Packet};
use channel::Direction;
use units::Time;

use crate::calendar::Kind;
use crate::config::MacConfig;
use crate::delivery;
use crate::mac::adaptation::{decibels, divide};
use crate::mac::cell::{Cell, OnAir};
use crate::mac::harq::{Transport, carrier_of, number};
use crate::mac::outer_loop::Chosen;
use crate::mac::sched::Candidate;
use crate::mac::sleep;
use crate::network::{Io, Network};
use crate::rat::Formats;
use crate::stats::{Event, Sink, Transmission};

/// MAC overhead of a UE's first SDU: its subheader.
const HEADER: u32 = 1;

/// Chooses the blocks that `cell` sends in slot `tti`: [`send_downlinks`] sends them.
pub(crate) fn schedule_downlink<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    cell: usize,
    tti: u64,
    io: &mut Io<'_, D, S>,
) {
    let formats = network.cells[cell].formats_in(tti);
    if !formats.carries(Direction::Downlink) {
        return;
    }
    let Cell { slots, mac: MacConfig { link, .. }, formats: whole, wants, grid, .. } = network.cells[cell];
    let (now, groups) = (slots.start(tti), grid.groups);
    let mut first = 0;
    let begin = network.on_air.len();
    let uplink = network.cells[cell].uplink.active.ues().len();
    let most = network.cells[cell].control.for_downlink(tti, uplink);
    let mut candidates = core::mem::take(&mut network.candidates);
    let mut active = core::mem::take(&mut network.cells[cell].downlink.active);
    active.retain(|index| {
        network.work += 1;
        let ue = &mut network.ues[index as usize];
        ue.hear(&network.interference);
        let carrier = ue.carrier_in(cell);
        let mut waits = false;
        if ue.mac.down[carrier].harq.again().is_some() {
            waits = true;
            let data = || ue.bearers.backlog(Direction::Downlink, now);
            // The cell's power suffices for all resource blocks.
            let may_send =
                |block: &Transport| block.is_repeated_in(&formats, Direction::Downlink, (grid.prbs, u16::MAX), data);
            if let Some(process) = ue.mac.down[carrier].harq.again_if(may_send) {
                let transport = &ue.mac.down[carrier].harq.processes[usize::from(process)];
                let prbs = transport.prbs_in(formats.elements(Direction::Downlink)).min(grid.prbs);
                let want = network.cells[cell].groups_of(prbs);
                if want <= groups - first && network.on_air.len() - begin < most {
                    assign(network, (cell, formats), index, process, (first, want), tti);
                    first += want;
                }
                return true;
            }
        }
        let mut backlog = ue.bearers.backlog(Direction::Downlink, now);
        if backlog == 0 {
            return waits;
        }
        ue.report_channel(cell, (&whole, &link), grid.group, tti);
        let out_of_range = ue.mac.down[carrier].link.is_out_of_range(tti) || ue.rrc.is_unheard();
        if out_of_range {
            backlog = ue.bearers.signalling_backlog(Direction::Downlink, now);
            if backlog == 0 {
                // Its data waits for a report of a better channel.
                return true;
            }
        }
        if ue.mac.down[carrier].harq.idle().is_some() {
            let cell = &network.cells[cell];
            let is_short = formats.is_short(Direction::Downlink);
            let scheme = ue.mac.down[carrier].link.scheme_in(&whole, is_short, tti);
            let word = ue.mac.category.downlink_word_bits(scheme.layers);
            let words = u32::from(formats.words(scheme.layers));
            let most = scheme.within(&formats, grid.prbs, word).bits(&formats, grid.prbs);
            if !formats.is_longest(Direction::Downlink) && !scheme.carries(&formats, grid.prbs) {
                // The UE waits for a slot with more symbols.
                return true;
            }
            let rate = most as f32;
            let metric = rate * cell.downlink.scheduler.weight(&mut ue.mac.down_past, tti);
            let groups_for = |bytes| cell.groups_for(&formats, (scheme.mcs, scheme.layers), bytes);
            let mut least = 1;
            if ue.bearers.has_transparent && !out_of_range {
                let (fits, bytes) = ue.bearers.fitting_backlog(Direction::Downlink, most / 8, now, io.drops);
                if fits == 0 {
                    // The UE waits for a better channel.
                    return true;
                }
                backlog = fits;
                least = groups_for(bytes.div_ceil(words));
            }
            let bytes = backlog.saturating_add(HEADER).div_ceil(words).min(word / 8);
            let want = wants.downlink(|| groups_for(bytes), groups);
            if cell.downlink.scheduler.divides_equally() {
                least = least.max(groups_for(formats.least_bytes(Direction::Downlink)).min(want));
            }
            candidates.push(Candidate { least, scheme, ..Candidate::new(index, metric, want) });
        }
        true
    });
    network.cells[cell].downlink.active = active;
    let most = most - (network.on_air.len() - begin);
    network.cells[cell].downlink.scheduler.divide_among(most, groups - first, &mut candidates);
    for c in candidates.iter().take_while(|c| c.got > 0) {
        if let Some(process) = fill_downlink(network, (cell, &formats), c, first, tti, io) {
            assign(network, (cell, formats), c.ue, process, (first, c.got), tti);
            first += c.got;
        }
    }
    candidates.clear();
    network.candidates = candidates;
    let assigned = network.on_air.len() - begin;
    network.cells[cell].control.take(tti, assigned);
    if first > 0 {
        place_downlinks(network, cell, (begin, first), tti);
    }
}

/// Places the blocks of a slot, which are on the air from `begin` on and have `groups` groups, in the carrier.
fn place_downlinks<P: Packet>(network: &mut Network<P>, cell: usize, (begin, groups): (usize, u16), tti: u64) {
    let Cell { slots, grid, .. } = network.cells[cell];
    // The last group of the carrier, which may be smaller, is used if all are.
    let spare = (grid.prbs / grid.group).saturating_sub(groups);
    let start = network.interference.start(cell, Direction::Downlink, tti, spare);
    network.on_air[begin..].iter_mut().for_each(|block| block.groups.0 += start);
    let blocks = network.cells[cell].blocks(start, groups);
    network.interference.count(cell, blocks.len() as u16);
    if network.interference.is_shared(cell, Direction::Downlink) {
        let beam =
            if network.interference.steers(cell) { beam_of_slot(network, begin, slots.start(tti)) } else { None };
        network.interference.occupy(cell, blocks, beam, slots.tick(tti + 1));
    }
}

/// Returns the beam with which the block at this place is sent.
fn beam_of_slot<P: Packet>(network: &mut Network<P>, place: usize, now: Time) -> Option<u32> {
    let first = network.on_air.get(place)?;
    network.ues[first.ue as usize].phy.air.sent_beam(first.cell, now)
}

/// Assigns the `groups` to the block of `process` in slot `tti`.
fn assign<P: Packet>(
    network: &mut Network<P>,
    (cell, formats): (usize, Formats),
    index: u32,
    process: u8,
    groups: (u16, u16),
    tti: u64,
) {
    let ue = &mut network.ues[index as usize];
    let carrier = ue.carrier_in(cell);
    ue.mac.down[carrier].harq.sent(process);
    network.on_air.push(OnAir { cell, formats, tti, ue: index, process, groups });
}

/// Sends the blocks that all cells have assigned.
pub(crate) fn send_downlinks<P: Packet, D: Drops<P>, S: Sink>(network: &mut Network<P>, io: &mut Io<'_, D, S>) {
    let mut on_air = core::mem::take(&mut network.on_air);
    on_air.drain(..).for_each(|block| send_downlink(network, block, io));
    network.on_air = on_air;
}

/// Builds a new block; returns its process, or `None` if there is nothing to send.
fn fill_downlink<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    (cell, formats): (usize, &Formats),
    c: &Candidate,
    first: u16,
    tti: u64,
    io: &mut Io<'_, D, S>,
) -> Option<u8> {
    let here = &network.cells[cell];
    let now = here.slots.start(tti);
    let prbs = here.blocks(first, c.got).len() as u16;
    let ue = &mut network.ues[c.ue as usize];
    let carrier = ue.carrier_in(cell);
    let process = ue.mac.down[carrier].harq.idle()?;
    let transport = &mut ue.mac.down[carrier].harq.processes[usize::from(process)];
    transport.clear();
    let permitted = c.scheme.within(formats, prbs, ue.mac.category.downlink_word_bits(c.scheme.layers));
    let mut scheme = permitted.usable(formats, prbs);
    if c.got == here.grid.groups {
        // There is no more than the carrier: repetitions must do the rest.
        scheme = scheme.at_least(formats, prbs, formats.least_bytes(Direction::Downlink) * 8);
    }
    transport.mcs = scheme.mcs;
    transport.chosen = match scheme.mcs {
        mcs if mcs > c.scheme.mcs => Chosen::Raised,
        mcs if mcs == formats.best_mcs(Direction::Downlink) || permitted.mcs < c.scheme.mcs => Chosen::Highest,
        _ => Chosen::Freely,
    };
    if formats.is_short(Direction::Downlink) {
        transport.chosen = Chosen::Small;
    }
    transport.layers = scheme.layers;
    transport.prbs = prbs;
    transport.elements = formats.elements(Direction::Downlink) * u32::from(prbs);
    transport.bits = scheme.bits(formats, prbs);
    transport.built = tti;
    let (bits, bytes) = (transport.bits, transport.bits / 8);
    let left =
        ue.fill(Direction::Downlink, number(carrier, process), (bytes, here.reports.adds_headers()), now, io.drops);
    let transport = &mut ue.mac.down[carrier].harq.processes[usize::from(process)];
    if transport.parcels().is_empty() {
        return None;
    }
    transport.padding = left;
    ue.bearers.hand_down(Direction::Downlink, now, io.drops);
    let stats = &mut ue.stats.downlink;
    stats.blocks += 1;
    stats.bits += u64::from(bits);
    stats.padding += u64::from(left);
    Some(process)
}

/// Sends a block, for the first time or again.
fn send_downlink<P: Packet, D: Drops<P>, S: Sink>(network: &mut Network<P>, block: OnAir, io: &mut Io<'_, D, S>) {
    let OnAir { cell, formats, tti, ue: index, process, groups } = block;
    let Cell { slots, timing, decoding, .. } = network.cells[cell];
    let now = slots.start(tti);
    let mut blocks = network.cells[cell].blocks(groups.0, groups.1);
    let ue = &mut network.ues[index as usize];
    let carrier = ue.carrier_in(cell);
    let number = number(carrier, process);
    let down = &mut ue.mac.down[carrier];
    let layers = down.harq.processes[usize::from(process)].layers;
    let sinr = if network.interference.is_shared(cell, Direction::Downlink) {
        let sinr = network.interference.downlink(&mut ue.phy.air, cell, now);
        if layers > 1 {
            divide(sinr, layers, &mut down.share);
            down.divided = 0;
        }
        sinr
    } else {
        down.measure(&mut ue.phy.air, cell, now);
        down.divide_among(layers);
        &down.sinr
    };
    let transport = &mut down.harq.processes[usize::from(process)];
    // A group at the end of the carrier may be smaller than where the block was first sent.
    blocks.end = blocks.end.min(blocks.start + transport.prbs_in(formats.elements(Direction::Downlink)));
    let (first_prb, prbs) = (blocks.start, blocks.len() as u16);
    transport.attempts += 1;
    ue.mac.down_past.served(tti, transport.bits);
    let mcs = transport.mcs;
    let word = transport.bits / u32::from(formats.words(layers));
    let scheme = (Direction::Downlink, mcs, layers);
    let each = if layers > 1 { &down.share } else { sinr };
    let error = down.errors.transmit(&formats, scheme, word, (each, blocks.clone()), &mut transport.soft);
    transport.decoded = !happens(error, &mut ue.phy.random);
    let decoded = transport.decoded;
    network.cells[cell].used += u64::from(prbs);
    let stats = &mut ue.stats.downlink;
    stats.prbs += u64::from(prbs);
    stats.retransmissions += u64::from(transport.attempts > 1);
    stats.first_failures += u64::from(transport.attempts == 1 && !decoded);
    let (attempt, bits, padding) = (transport.attempts, transport.bits, transport.padding);
    if S::LISTENS {
        let event = Transmission {
            cell: cell as u32,
            ue: index,
            direction: Direction::Downlink,
            process,
            attempt,
            decoded,
            mcs,
            layers,
            cqi: down.link.scheme(&network.cells[cell].formats, tti).cqi,
            sinr_cdb: (decibels(f64::from(sinr.mean_over(blocks))) * 100.0) as i32,
            first_prb,
            prbs,
            bits,
            padding,
            queued: ue.bearers.waits(Direction::Downlink, now),
        };
        io.sink.event(now, &Event::Transmission(event));
    }
    if let Some(drx) = ue.mac.drx_at(tti) {
        drx.assigned(timing, number, tti);
        if attempt == 1 {
            drx.new_block(tti, Direction::Downlink);
        }
    }
    if decoded {
        network.note_at(network.cells[cell].decoded(tti), index, Kind::DownlinkDecoded, number);
    }
    network.note(timing.feedback(tti, decoding), index, Kind::DownlinkFeedback, number);
    if attempt == 1 && network.ues[index as usize].bearers.acknowledges() {
        // Filling the block has started timers.
        network.note_rlc(index);
    }
}

/// The UE has decoded a block; returns whether its bearers were touched.
pub(crate) fn downlink_decoded<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    ue: u32,
    process: u8,
    now: Time,
    io: &mut Io<'_, D, S>,
) -> bool {
    delivery::receive(network, ue, Direction::Downlink, process, now, io)
}

/// The cell receives an acknowledgement; returns whether the UE's bearers were touched.
pub(crate) fn downlink_feedback<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    number: u8,
    now: Time,
    io: &mut Io<'_, D, S>,
) -> bool {
    let ue = &mut network.ues[index as usize];
    let (carrier, process) = carrier_of(number);
    // Only a UE with a secondary has blocks on its second carrier.
    let cell = if carrier == 0 { ue.serving } else { ue.secondary.unwrap_or(ue.serving) };
    let mac = &network.cells[cell].mac;
    let down = &mut ue.mac.down[carrier];
    let transport = &down.harq.processes[usize::from(process)];
    let (decoded, attempts) = (transport.decoded, transport.attempts);
    if attempts == 1 {
        down.link.outer.outcome(mac.link.step_db, (transport.layers, transport.chosen), decoded);
    }
    if decoded {
        down.harq.finished(process);
        return false;
    }
    let (slot, may_repeat) = (ue.slots.next_after(now), attempts < mac.transmissions);
    if let Some(drx) = ue.mac.drx_at(slot) {
        drx.failed(number, slot);
        sleep::extended(network, index, slot);
    }
    if may_repeat {
        network.ues[index as usize].mac.down[carrier].harq.failed(process);
        network.cells.activate(cell, Direction::Downlink, index);
    } else {
        delivery::give_up(network, index, Direction::Downlink, number, io.drops);
        network.ues[index as usize].mac.down[carrier].harq.finished(process);
    }
    !may_repeat
}

/// Draws whether an event of this `probability` occurs.
#[inline]
pub(crate) fn happens(probability: f64, random: &mut channel::Random) -> bool {
    use rand_core::Rng;
    // Certain outcomes draw no random number.
    probability > 0.0 && (probability >= 1.0 || ((random.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64)
}
