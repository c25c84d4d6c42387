//! The uplink of a slot: grants, transmissions and decoding.
//!
//! [`crate::Rat`] gives the delay from a grant to the transmission. It is decoded [`crate::MacConfig::decoding`] after its
//! end. If that fails, the UE of an LTE cell is informed and repeats the block on the same resource blocks, which new
//! grants for that slot leave free; an NR cell grants the repetition. Proportional fair counts repetitions and blocks of
//! configured grants as service. A UE gets no grants while its sounding shows that even the most robust block would fail in
//! all its transmissions.
//!
//! Deviation: a block is filled when it is sent; a real UE begins about two milliseconds earlier.

use aqm::{Drops, Packet};
use channel::Direction;
use units::Time;

use crate::calendar::{Entry, Kind};
use crate::config::MacConfig;
use crate::delivery;
use crate::mac::access;
use crate::mac::adaptation::decibels;
use crate::mac::blocks::{Blocks, Free};
use crate::mac::cell::Cell;
use crate::mac::downlink::happens;
use crate::mac::filling;
use crate::mac::harq::Transport;
use crate::mac::needs::{self, Need};
use crate::mac::outer_loop::Chosen;
use crate::mac::power::Reported;
use crate::mac::requests::SHORT_BSR;
use crate::mac::sched;
use crate::mac::sleep;
use crate::network::{Io, Network, emit};
use crate::rat::{Formats, Sizes};
use crate::stats::{Event, Sink, Transmission};

/// Makes the grants of `tti`.
pub(crate) fn schedule_uplink<P: Packet>(network: &mut Network<P>, cell: usize, tti: u64) {
    for sent in network.cells[cell].timing.granted_in(tti) {
        grant_slot(network, cell, tti, sent);
    }
}

/// Grants in `tti` the uplink of slot `sent`.
fn grant_slot<P: Packet>(network: &mut Network<P>, cell: usize, tti: u64, sent: u64) {
    let formats = uplink_slot(network, cell, tti, sent);
    if !formats.carries(Direction::Uplink) {
        return;
    }
    let Cell { mac: MacConfig { link, transmissions, .. }, timing, reports, grid, reserved, .. } = network.cells[cell];
    let mut free = grid.shared.without(reserved);
    let waiting = network.cells[cell].uplink.active.ues().len();
    let control = &mut network.cells[cell].control;
    let grants = control.for_uplink((tti, sent), waiting);
    // Repetitions for which there is no grant left.
    let mut refused = 0;
    let mut repetitions = core::mem::take(&mut network.repetitions);
    // Resource blocks for a repetition at most.
    let mut most = grid.prbs;
    if let Some(places) = &network.cells[cell].places {
        free = free.without(places.blocks(sent));
        most = free.find(most).1;
    }
    let all = free;
    let mut count = free.count();
    let factor = network.interference.uplink_factor(cell);
    let mut candidates = core::mem::take(&mut network.candidates);
    let mut active = core::mem::take(&mut network.cells[cell].uplink.active);
    active.retain(|index| {
        network.work += 1;
        let ue = &mut network.ues[index as usize];
        let mut waits = false;
        if timing.repetition(tti).is_none() && ue.mac.up.harq.again().is_some() {
            waits = true;
            let (full_power, data) = (ue.mac.uplink.strength(tti).full_power_prbs(), || ue.mac.estimate.waiting);
            let may_send =
                |block: &Transport| block.is_repeated_in(&formats, Direction::Uplink, (most, full_power), data);
            if let Some(process) = ue.mac.up.harq.again_if(may_send) {
                let transport = &ue.mac.up.harq.processes[usize::from(process)];
                let prbs = transport.prbs_in(formats.elements(Direction::Uplink)).min(most);
                let (first, found) = free.find(prbs);
                if found == prbs && repetitions.len() < grants {
                    free.remove(first, prbs);
                    count -= prbs;
                    repetitions.push((index, process, prbs));
                } else if found == prbs {
                    refused += 1;
                }
                return true;
            }
        }
        let need = match needs::need(reports, ue, tti) {
            Need::Nothing => return waits,
            Need::Later => return true,
            Need::Bytes(need) => need.min(ue.mac.category.uplink_block_bits / 8),
        };
        match timing.uplink_process(sent) {
            Some(process) if ue.mac.up.harq.is_busy(process) => return true,
            None if ue.mac.idle_uplink().is_none() => return true,
            _ => {}
        }
        ue.sound(&link, reports, factor, tti);
        if ue.mac.uplink.is_out_of_range(&formats, transmissions, tti) {
            // The UE waits for a better channel.
            return true;
        }
        candidates.extend(needs::candidate(&formats, &network.cells[cell], (index, ue), (need, count), tti));
        // If it wants nothing any more, it leaves in the next slot.
        true
    });
    network.cells[cell].uplink.active = active;
    let mut granted = repetitions.len();
    if network.cells[cell].control.is_whole(sent) {
        network.cells[cell].control.note_needed(granted + refused + sched::enough(count, &candidates));
    }
    network.cells[cell].uplink.scheduler.divide_among(grants - granted, count, &mut candidates);
    let spare = candidates.iter().fold(count, |left, c| left.saturating_sub(c.got));
    let mut free = Free::new(all, network.interference.start(cell, Direction::Uplink, sent, spare));
    for (index, process, prbs) in repetitions.drain(..) {
        let (first, found) = free.find(prbs);
        if found == prbs {
            free.remove(first, prbs);
            grant_again(network, index, process, (first, prbs), (tti, sent));
        }
    }
    network.repetitions = repetitions;
    granted += grant_candidates(network, &candidates, (grid.sizes, &mut free), (&formats, tti, sent));
    network.cells[cell].control.take(tti, granted);
    candidates.clear();
    network.candidates = candidates;
}

/// Grants the candidates that have got resource blocks what is `free` of them. Returns the number of grants.
fn grant_candidates<P: Packet>(
    network: &mut Network<P>,
    candidates: &[sched::Candidate],
    (sizes, free): (Sizes, &mut Free),
    slot: (&Formats, u64, u64),
) -> usize {
    let mut granted = 0;
    for c in candidates.iter().take_while(|c| c.got > 0) {
        let (mut first, found) = free.find(c.got);
        let prbs = sizes.up_to(found);
        if prbs == 0 {
            break;
        }
        if prbs < c.least {
            continue;
        }
        if prbs < found {
            (first, _) = free.find(prbs);
        }
        free.remove(first, prbs);
        grant(network, c.ue, (first, prbs), slot);
        granted += 1;
    }
    granted
}

/// Returns the formats of slot `sent`, whose uplink is granted in `tti`. Of a flexible slot, the
/// uplink gets as many symbols as the UEs that can be granted need with all resource blocks, and as the weakest of
/// them needs with those for which its power suffices. If the downlink needs the rest, the directions share the slot by
/// their numbers of UEs, or the slots if either could not use its share.
fn uplink_slot<P: Packet>(network: &mut Network<P>, cell: usize, tti: u64, sent: u64) -> Formats {
    let Cell { mac: MacConfig { link, transmissions, .. }, formats, reports, grid, .. } = network.cells[cell];
    if formats.uplink_symbols(0).is_none() {
        return formats.in_slot(sent, 0);
    }
    let whole = formats.elements(Direction::Uplink);
    let prbs = u32::from(grid.prbs);
    // Resource elements of all, and of a resource block for the weakest, and for little of its data.
    let (mut all, mut weakest, mut least, mut ues) = (0, 0, 0, 0);
    let mut needs_whole = false;
    let factor = network.interference.uplink_factor(cell);
    let mut active = core::mem::take(&mut network.cells[cell].uplink.active);
    active.retain(|index| {
        let ue = &mut network.ues[index as usize];
        if let Some(process) = ue.mac.up.harq.again() {
            let elements = ue.mac.up.harq.processes[usize::from(process)].elements;
            let most = ue.mac.uplink.strength(tti).full_power_prbs().min(grid.prbs);
            all += elements;
            weakest = weakest.max(elements.div_ceil(most.into()));
            ues += 1;
            return true;
        }
        let need = match needs::need(reports, ue, tti) {
            Need::Nothing => return false,
            Need::Later => return true,
            Need::Bytes(need) => need,
        };
        if ue.mac.idle_uplink().is_none() {
            return true;
        }
        ue.sound(&link, reports, factor, tti);
        if ue.mac.uplink.is_out_of_range(&formats, transmissions, tti) {
            return true;
        }
        // A block was too small for data: how many symbols suffice is not known.
        needs_whole |= ue.mac.estimate.least().is_some();
        let need = need.min(ue.mac.category.uplink_block_bits / 8).max(formats.least_bytes(Direction::Uplink));
        let most = ue.mac.uplink.strength(tti).full_power_prbs().min(grid.prbs);
        let mcs = ue.mac.uplink.scheme(&formats, most, tti);
        let elements = |bytes| u32::from(network.cells[cell].grant_for(&formats, mcs, bytes)) * whole;
        all += elements(need);
        ues += 1;
        weakest = weakest.max(elements(need).div_ceil(most.into()));
        least = least.max(elements(need.min(2 * formats.least_bytes(Direction::Uplink))).div_ceil(most.into()));
        true
    });
    network.cells[cell].uplink.active = active;
    // No more than these are granted. Where symbols are flexible, no slot leaves grants to another, however many UEs wait.
    let most = u32::try_from(network.cells[cell].control.for_uplink((tti, sent), 0)).unwrap_or(u32::MAX);
    if ues > most {
        all = (u64::from(all) * u64::from(most) / u64::from(ues)) as u32;
    }
    let symbols = |elements: u32| formats.uplink_symbols(elements).unwrap_or(0);
    let free = symbols(u32::MAX);
    let wanted = if needs_whole { free } else { symbols(all.div_ceil(prbs).max(weakest)) };
    let mut granted = wanted;
    if granted > symbols(1) || granted > free - symbols(1) {
        let (waiting, needed) = downlink_need(network, cell, &formats, tti);
        let share = (u32::from(free) * ues).div_ceil(ues + waiting) as u8;
        let left = free.saturating_sub(symbols(needed.div_ceil(prbs)));
        granted = granted.min(share.max(left)).max(symbols(1));
        let is_enough = granted >= symbols(least) && !needs_whole;
        if waiting > 0 && (!is_enough || free - granted < symbols(1)) {
            // One of them could not use its share: they take turns.
            granted = if sent % u64::from(ues + waiting) < u64::from(ues) { wanted } else { 0 };
        }
    }
    let symbols = granted;
    network.cells[cell].grant_symbols(sent, symbols);
    formats.in_slot(sent, symbols)
}

/// Returns the number of UEs with data in the downlink, and the resource elements that they need for it.
fn downlink_need<P: Packet>(network: &mut Network<P>, cell: usize, formats: &Formats, tti: u64) -> (u32, u32) {
    let here = &network.cells[cell];
    let now = here.slots.start(tti);
    let elements = |index: &u32| {
        let ue = &mut network.ues[*index as usize];
        let carrier = ue.carrier_in(cell);
        let scheme = ue.mac.down[carrier].link.scheme(formats, tti);
        let bits = ue.bearers.backlog(Direction::Downlink, now).saturating_mul(8);
        let whole = u64::from(scheme.bits(formats, here.grid.prbs).max(1));
        let carrier = u64::from(formats.elements(Direction::Downlink) * u32::from(here.grid.prbs));
        u64::from(bits) * carrier / whole
    };
    let sum: u64 = here.downlink.active.ues().iter().map(elements).sum();
    (here.downlink.active.ues().len() as u32, u32::try_from(sum).unwrap_or(u32::MAX))
}

/// Grants the repetition of the block of `process` on these resource blocks of slot `sent`.
fn grant_again<P: Packet>(
    network: &mut Network<P>,
    index: u32,
    process: u8,
    (first, prbs): (u16, u16),
    (tti, sent): (u64, u64),
) {
    let ue = &mut network.ues[index as usize];
    let transport = &mut ue.mac.up.harq.processes[usize::from(process)];
    (transport.first_prb, transport.prbs) = (first, prbs);
    ue.mac.up.past.served(tti, transport.bits);
    ue.mac.up.harq.sent(process);
    if let (Some(place), Some(places)) = (&mut ue.mac.configured, &network.cells[ue.serving].places) {
        place.start_timer(&places.grant, process, tti);
    }
    if let Some(drx) = ue.mac.drx_at(tti) {
        drx.granted(process, tti);
    }
    network.note(sent, index, Kind::UplinkTransmit, process);
}

fn grant<P: Packet>(
    network: &mut Network<P>,
    index: u32,
    (first, prbs): (u16, u16),
    (formats, tti, sent): (&Formats, u64, u64),
) {
    let ue = &mut network.ues[index as usize];
    let Cell { timing, reports, .. } = network.cells[ue.serving];
    let Some(process) = timing.uplink_process(sent).or_else(|| ue.mac.idle_uplink()) else { return };
    let (mcs, chosen) = ue.mac.uplink.fitted(formats, prbs, tti);
    let transport = &mut ue.mac.up.harq.processes[usize::from(process)];
    transport.begin_uplink(formats, mcs, (first, prbs), sent);
    transport.chosen = if formats.is_short(Direction::Uplink) { Chosen::Small } else { chosen };
    let bytes = transport.bits / 8;
    ue.mac.up.past.served(tti, transport.bits);
    ue.mac.up.harq.sent(process);
    ue.mac.estimate.grant((tti, sent), needs::payload(reports, bytes));
    if let Some(drx) = ue.mac.drx_at(tti) {
        drx.granted(process, tti);
        drx.new_block(tti, Direction::Uplink);
    }
    network.note(sent, index, Kind::UplinkTransmit, process);
}

/// Finds the UEs that transmit at `now`, the beginning of `tick`, in the order of `due`, if they may interfere.
pub(crate) fn find_senders<P: Packet>(network: &mut Network<P>, due: &[Entry], now: Time, tick: u64) {
    if !network.interference.any_shared(Direction::Uplink) {
        return;
    }
    network.interference.end_senders(tick);
    for entry in due.iter().filter(|entry| entry.kind == Kind::UplinkTransmit) {
        let ue = &mut network.ues[entry.ue as usize];
        if ue.epoch == entry.epoch && network.interference.is_shared(ue.serving, Direction::Uplink) {
            let Transport { first_prb, prbs, .. } = ue.mac.up.harq.processes[usize::from(entry.process)];
            let until = ue.slots.tick(ue.slots.next_at(tick) + 1);
            network.interference.add_sender((entry.ue, &mut ue.phy.air), ue.serving, (first_prb, prbs), (now, until));
        }
    }
}

/// Transmits a UE's granted block, or retransmits it.
pub(crate) fn uplink_transmit<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    process: u8,
    tti: u64,
    io: &mut Io<'_, D, S>,
) {
    let is_new = network.ues[index as usize].mac.up.harq.processes[usize::from(process)].attempts == 0;
    network.ues[index as usize].mac.drx_at(tti);
    if is_new {
        fill_uplink(network, index, process, tti, io);
    }
    let ue = &mut network.ues[index as usize];
    let cell = &network.cells[ue.serving];
    let Cell { slots, decoding, timing, reports, .. } = *cell;
    let (formats, serving) = (cell.formats_in(tti), ue.serving);
    let known = cell.decoded(tti);
    let now = slots.start(tti);
    let Transport { first_prb, prbs, .. } = ue.mac.up.harq.processes[usize::from(process)];
    let blocks = first_prb..first_prb + prbs;
    ue.phy.air.uplink(ue.serving, now, prbs, &mut ue.phy.up_sinr);
    if network.interference.is_shared(ue.serving, Direction::Uplink) && !ue.phy.air.is_set() {
        let (serving, mut sinr) = (ue.serving, core::mem::take(&mut ue.phy.up_sinr));
        network.interference.uplink(serving, blocks.clone(), |ue| &network.ues[ue as usize].phy.air, &mut sinr);
        network.ues[index as usize].phy.up_sinr = sinr;
    }
    let ue = &mut network.ues[index as usize];
    let transport = &mut ue.mac.up.harq.processes[usize::from(process)];
    transport.attempts += 1;
    let (mcs, bits) = (transport.mcs, transport.bits);
    let scheme = (Direction::Uplink, mcs, 1);
    let error =
        ue.mac.up.errors.transmit(&formats, scheme, bits, (&ue.phy.up_sinr, blocks.clone()), &mut transport.soft);
    transport.decoded = !happens(error, &mut ue.phy.random);
    let (attempt, decoded, padding) = (transport.attempts, transport.decoded, transport.padding);
    let stats = &mut ue.stats.uplink;
    stats.prbs += u64::from(prbs);
    stats.retransmissions += u64::from(!is_new);
    stats.first_failures += u64::from(is_new && !decoded);
    if S::LISTENS {
        let event = Transmission {
            cell: ue.serving as u32,
            ue: index,
            direction: Direction::Uplink,
            process,
            attempt,
            decoded,
            mcs,
            cqi: 0,
            layers: 1,
            sinr_cdb: (decibels(f64::from(ue.phy.up_sinr.mean_over(blocks))) * 100.0) as i32,
            first_prb,
            prbs,
            bits,
            padding,
            queued: ue.bearers.waits(Direction::Uplink, now),
        };
        io.sink.event(now, &Event::Transmission(event));
    }
    if decoded {
        network.note_at(known, index, Kind::UplinkDecoded, process);
    } else {
        network.note(timing.uplink_failure(tti, decoding), index, Kind::UplinkNack, process);
    }
    if let Some(drx) = &mut network.ues[index as usize].mac.drx
        && (timing.repetition(tti).is_none() || attempt < network.cells[serving].mac.transmissions)
    {
        drx.transmitted(timing, process, tti);
        sleep::extended(network, index, tti);
    }
    if is_new {
        if network.ues[index as usize].bearers.acknowledges() {
            // Filling the block has started timers.
            network.note_rlc(index);
        }
        if network.ues[index as usize].mac.had_data != 0 && reports.include_buffers() {
            access::note_retx(network, index);
        }
    }
}

/// Builds the block that the UE sends with its grant.
fn fill_uplink<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    process: u8,
    tti: u64,
    io: &mut Io<'_, D, S>,
) {
    let ue = &mut network.ues[index as usize];
    let left = filling::fill(&network.cells[ue.serving], ue, process, tti, io.drops);
    let now = ue.slots.start(tti);
    ue.bearers.hand_down(Direction::Uplink, now, io.drops);
    ue.mac.had_data = ue.bearers.with_uplink_data(now);
    let transport = &mut ue.mac.up.harq.processes[usize::from(process)];
    transport.padding = left;
    let stats = &mut ue.stats.uplink;
    stats.blocks += 1;
    stats.bits += u64::from(transport.bits);
    stats.padding += u64::from(left);
}

/// The cell has decoded a block; returns whether the UE's bearers were touched.
pub(crate) fn uplink_decoded<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    process: u8,
    now: Time,
    io: &mut Io<'_, D, S>,
) -> bool {
    let ue = &mut network.ues[index as usize];
    let cell = &network.cells[ue.serving];
    let (mac, reports) = (&cell.mac, cell.reports);
    ue.mac.up.harq.finished(process);
    ue.mac.estimate.decoded();
    ue.mac.adapt_uplink(mac, process);
    let transport = &ue.mac.up.harq.processes[usize::from(process)];
    if let Some((level, prbs)) = transport.headroom {
        ue.mac.uplink.power.learn(reports.headroom_db(level), prbs, transport.built);
        emit(io.sink, now, || Event::PowerHeadroom { ue: index, level });
    }
    let has_more = transport.report.is_some_and(|report| report.bytes > 0);
    ue.mac.estimate.carried(transport.room, !transport.parcels().is_empty(), has_more);
    if let Some(report) = transport.report {
        ue.mac.estimate.learn(&report, transport.built);
        emit(io.sink, now, || Event::BufferStatus { ue: index, levels: report.levels });
    } else if transport.padding < SHORT_BSR && reports.include_buffers() {
        // There was no room to report the waiting data.
        ue.mac.estimate.full_without_report(transport.built, transport.bits / 8);
    }
    if reports.include_buffers() {
        access::update_uplink_activity(network, index);
    }
    delivery::receive(network, index, Direction::Uplink, process, now, io)
}

/// A block is known to have failed; returns whether the UE's bearers were touched.
pub(crate) fn uplink_nack<P: Packet, D: Drops<P>, S: Sink>(
    network: &mut Network<P>,
    index: u32,
    process: u8,
    tti: u64,
    io: &mut Io<'_, D, S>,
) -> bool {
    let ue = &mut network.ues[index as usize];
    let serving = ue.serving;
    let cell = &network.cells[serving];
    ue.mac.adapt_uplink(&cell.mac, process);
    let transport = &ue.mac.up.harq.processes[usize::from(process)];
    let may_repeat = transport.attempts < cell.mac.transmissions;
    if may_repeat {
        if let Some(again) = cell.timing.repetition(tti) {
            network.cells.reserve(serving, Blocks::run(transport.first_prb, transport.prbs));
            ue.mac.up.past.served(tti, transport.bits);
            network.note(again, index, Kind::UplinkTransmit, process);
        } else {
            ue.mac.up.harq.failed(process);
            network.cells.activate(serving, Direction::Uplink, index);
        }
    } else {
        ue.mac.up.harq.finished(process);
        if cell.reports.include_buffers() {
            if ue.mac.estimate.lost(&cell.mac.requests, tti) {
                // What the UE has reported of its power may be what is wrong.
                ue.mac.uplink.power = Reported::default();
                if ue.mac.configured.is_some() {
                    // It will not request, and its configured scheme may be what is wrong.
                    ue.mac.estimate.requested(&cell.mac.requests, tti);
                }
            }
            access::update_uplink_activity(network, index);
        }
        delivery::give_up(network, index, Direction::Uplink, process, io.drops);
    }
    !may_repeat
}

#[cfg(test)]
mod tests {
    use channel::tables::nr::Numerology;
    use channel::{AirConfig, Carrier, Channel, PathLoss, Random, Site};
    use rand_xoshiro::rand_core::SeedableRng;
    use testkit::queue::TestPacket;

    use super::*;
    use crate::rlc::{self, Mode, NrAm};
    use crate::{Above, BearerConfig, CellConfig, Config, Duplex, Filter, Nr, Rat, Room, UeConfig, pdcp};

    /// A UE behind a path loss of 100 dB in an NR cell with slots of 1 ms.
    fn network() -> Network<TestPacket> {
        let rat = Rat::Nr(Nr::new(Numerology::Khz15, Duplex::Fdd));
        let carrier = Carrier { downlink_hz: 2.1e9, uplink_hz: 1.9e9, prbs: 52, subcarrier_hz: 15_000 };
        let mac = MacConfig { rat, decoding: units::Span::from_millis(1), ..MacConfig::default() };
        let cell = CellConfig { site: Site { carrier, ..Site::default() }, mac, ..CellConfig::default() };
        let pdcp = pdcp::Config { queue: aqm::Config::UNLIMITED, discard: None };
        let rlc = rlc::Config { mode: Mode::NrAm(NrAm::default()), downlink: pdcp, uplink: pdcp };
        let ue = UeConfig {
            air: AirConfig {
                channel: Channel::Modelled { path_loss: PathLoss::Fixed(100.0), shadowing: None },
                ..AirConfig::default()
            },
            cell: Some(0),
            layers: 1,
            aggregates: false,
            category: channel::tables::lte::Category::UNLIMITED,
            bearers: vec![BearerConfig {
                qci: 9,
                filter: Filter::All,
                group: 3,
                rlc,
                nr: None,
                nr_buffer: None,
                above: None,
            }],
            host: Above { gate: aqm::gate::Config::default(), room: Room { packets: None, bytes: None } },
            reports_host: false,
            modem_drops: false,
        };
        let config = Config { cells: vec![cell], ues: vec![ue], ..Config::default() };
        Network::new(&config, |_| Random::seed_from_u64(1))
    }

    #[test]
    fn a_headroom_counts_for_the_resource_blocks_that_it_was_written_for() {
        let mut network = network();
        let mut io = Io { drops: &mut |_: TestPacket, _: aqm::DropReason| {}, sink: &mut () };
        let (timing, formats) = (network.cells[0].timing, network.cells[0].formats);
        network.ues[0].mac.up.harq.processes[0].begin_uplink(&formats, 5, (0, 4), 10);
        uplink_transmit(&mut network, 0, 0, 10, &mut io);
        // The block is repeated on 16 resource blocks of a shorter slot.
        grant_again(&mut network, 0, 0, (0, 16), (14, 15));
        uplink_decoded(&mut network, 0, 0, Time::ZERO + timing.slot() * 17, &mut io);
        // 23 dBm less -80 dBm and 100 dB, and less 6 dB on four: -3.02 dB is reported as -4 dB.
        let one_block_db = network.ues[0].mac.uplink.power.one_block_db;
        assert!((one_block_db - (-4.0 + 6.02)).abs() < 0.01, "{one_block_db}");
    }
    #[test]
    fn what_a_ue_has_reported_of_its_power_is_forgotten_after_five_lost_blocks_in_a_row() {
        let mut network = network();
        let mut io = Io { drops: &mut |_: TestPacket, _: aqm::DropReason| {}, sink: &mut () };
        let (timing, formats) = (network.cells[0].timing, network.cells[0].formats);
        network.ues[0].mac.uplink.power.learn(12.0, 1, 0);
        // Blocks are lost, of which the fifth is decoded after all.
        for (slot, is_decoded, one_block_db) in (1..)
            .zip([false; 4].into_iter().chain([true]).chain([false; 5]))
            .map(|(n, is_decoded)| (n * 10, is_decoded, if n < 10 { 12.0 } else { 0.0 }))
        {
            network.ues[0].mac.up.harq.processes[0].begin_uplink(&formats, 5, (0, 4), slot);
            network.ues[0].mac.up.harq.sent(0);
            network.ues[0].mac.up.harq.processes[0].attempts = network.cells[0].mac.transmissions;
            if is_decoded {
                uplink_decoded(&mut network, 0, 0, Time::ZERO + timing.slot() * (slot + 1), &mut io);
            } else {
                uplink_nack(&mut network, 0, 0, slot, &mut io);
            }
            assert_eq!(network.ues[0].mac.uplink.power.one_block_db, one_block_db, "slot {slot}");
        }
    }
}
