//! The uplink of a slot: grants, transmissions and decoding.
//!
//! [`crate::rat::Timing`] gives the delay from a grant to the transmission. It is decoded
//! [`crate::MacConfig::decoding`] after its end; if that fails, the UE is informed later, and repeats the block on the
//! same resource blocks, which new grants for that slot leave free; proportional fair counts repetitions as service. A
//! UE gets no grants while its sounding shows that even the most robust block would fail in all its transmissions.
//!
//! Deviation: a block is filled when it is sent; a real UE begins about two milliseconds earlier.

use aqm::{Drops, Packet};
use channel::Direction;
use units::Time;

use crate::calendar::Kind;
use crate::config::MacConfig;
use crate::mac::adaptation::decibels;
use crate::mac::blocks::Blocks;
use crate::mac::cell::Cell;
use crate::mac::downlink::happens;
use crate::mac::requests::{Opportunity, Report, RequestState, SHORT_BSR};
use crate::network::{Io, Ran, emit};
use crate::rat::Need;
use crate::stats::{Event, Sink, Transmission};
use crate::ue::Ue;

impl<P: Packet> Ran<P> {
    /// Checks for uplink data that has to be reported to the cell.
    #[inline]
    pub(crate) fn check_uplink_buffers(&mut self, index: u32, now: Time) {
        let ue = &mut self.ues[index as usize];
        if !ue.is_served() {
            return;
        }
        let (_, with_data) = ue.uplink_groups(now);
        let new = with_data & !ue.had_data;
        let old = core::mem::replace(&mut ue.had_data, with_data) & with_data;
        let cell = &mut self.cells[ue.serving];
        if !cell.mac.rat.reports_buffers() {
            if with_data != 0 {
                cell.uplink.activate(index);
            }
        } else if new != 0 && ue.is_urgent(new, old) {
            ue.request_state.trigger();
            let next = ue.slots.next_at(self.next_tick);
            self.note_opportunity(index, next);
        }
    }

    /// Schedules the next scheduling request opportunity at or after TTI `from`, if a request is pending.
    #[inline]
    fn note_opportunity(&mut self, index: u32, from: u64) {
        let Ue { request_state, serving, .. } = &mut self.ues[index as usize];
        if request_state.request_pending && !request_state.opportunity_noted && !request_state.random_access {
            request_state.opportunity_noted = true;
            let tti = RequestState::opportunity(&self.cells[*serving].mac.requests, index, from);
            self.note(tti, index, Kind::SchedulingRequest, 0);
        }
    }

    pub(crate) fn request_opportunity<D: Drops<P>, S: Sink>(&mut self, index: u32, tti: u64, io: &mut Io<'_, D, S>) {
        let ue = &mut self.ues[index as usize];
        let MacConfig { rat, requests, .. } = &self.cells[ue.serving].mac;
        ue.request_state.opportunity_noted = false;
        if !ue.estimate.has_grant(tti) {
            match ue.request_state.opportunity_comes(requests, tti) {
                Opportunity::Unused | Opportunity::Prohibited => {}
                Opportunity::Sent => {
                    ue.stats.scheduling_requests += 1;
                    emit(io.sink, ue.slots.start(tti), || Event::SchedulingRequest { ue: index });
                    self.note(tti + rat.timing().request_to_grant, index, Kind::SchedulingRequestReceived, 0);
                }
                Opportunity::Exhausted => {
                    ue.stats.random_accesses += 1;
                    let done = tti + ue.slots.spanning(requests.random_access);
                    self.note(done, index, Kind::RandomAccessDone, 0);
                }
            }
        }
        self.note_opportunity(index, tti + 1);
    }

    pub(crate) fn request_received(&mut self, index: u32, tti: u64) {
        let ue = &mut self.ues[index as usize];
        ue.estimate.requested(&self.cells[ue.serving].mac.requests, tti);
        self.update_uplink_activity(index);
    }

    pub(crate) fn random_access_done(&mut self, index: u32) {
        let ue = &mut self.ues[index as usize];
        if ue.request_state.random_access {
            ue.request_state.random_access = false;
            ue.estimate.asked = self.cells[ue.serving].mac.requests.first_grant;
            self.update_uplink_activity(index);
        }
    }

    /// retxBSR-Timer: the timer may have been restarted since the entry was made.
    pub(crate) fn retx_bsr(&mut self, index: u32, tti: u64) {
        let ue = &mut self.ues[index as usize];
        ue.request_state.retx_noted = false;
        if ue.had_data == 0 {
            return;
        }
        if tti >= ue.request_state.retx_due {
            ue.request_state.trigger();
            let retx = self.cells[ue.serving].mac.requests.bsr_retx;
            ue.request_state.retx_due = tti + ue.slots.spanning(retx);
            self.note_opportunity(index, tti + 1);
        }
        self.note_retx(index);
    }

    #[inline]
    fn note_retx(&mut self, index: u32) {
        let request_state = &mut self.ues[index as usize].request_state;
        if !request_state.retx_noted && request_state.retx_due != u64::MAX {
            request_state.retx_noted = true;
            let due = request_state.retx_due;
            self.note(due, index, Kind::RetxBsr, 0);
        }
    }

    /// Updates whether the UE is active in the cell's uplink.
    #[inline]
    pub(crate) fn update_uplink_activity(&mut self, index: u32) {
        let ue = &self.ues[index as usize];
        if ue.estimate.wants() {
            self.cells[ue.serving].uplink.activate(index);
        }
    }

    /// Makes the grants of `tti`.
    pub(crate) fn schedule_uplink(&mut self, cell: usize, tti: u64) {
        let Cell { mac, grid, reserved, .. } = self.cells[cell];
        let rat = mac.rat;
        let process = rat.uplink_process(tti + rat.timing().grant_to_data);
        let mut free = grid.shared.without(reserved);
        let count = free.count();
        let mut candidates = core::mem::take(&mut self.candidates);
        let mut active = core::mem::take(&mut self.cells[cell].uplink.active);
        active.retain(|index| {
            self.work += 1;
            let ue = &mut self.ues[*index as usize];
            let need = match rat.uplink_need(ue, tti) {
                Need::Nothing => return false,
                Need::Later => return true,
                Need::Bytes(need) => need.min(ue.category.uplink_block_bits / 8),
            };
            if ue.up.harq.is_busy(process) {
                return true;
            }
            ue.sound(&mac.link, rat, tti);
            if ue.uplink.is_out_of_range(rat, mac.transmissions, tti) {
                // The UE waits for a better channel.
                return true;
            }
            let candidate = rat.uplink_candidate(self, *index, (need, count), tti);
            candidates.extend(candidate);
            candidate.is_some()
        });
        self.cells[cell].uplink.active = active;
        self.cells[cell].uplink.scheduler.divide(count, &mut candidates);
        for c in candidates.iter().take_while(|c| c.got > 0) {
            let (_, found) = free.find(c.got);
            let prbs = grid.sizes.up_to(found);
            if prbs == 0 {
                break;
            }
            if prbs < c.least {
                continue;
            }
            let (first, _) = free.find(prbs);
            free = free.without(Blocks::run(first, prbs));
            self.grant(c.ue, process, (first, prbs), tti);
        }
        candidates.clear();
        self.candidates = candidates;
    }

    fn grant(&mut self, index: u32, process: u8, (first, prbs): (u16, u16), tti: u64) {
        let ue = &mut self.ues[index as usize];
        let rat = self.cells[ue.serving].mac.rat;
        let sent = tti + rat.timing().grant_to_data;
        let mcs = ue.uplink.scheme(rat, prbs, tti);
        let transport = &mut ue.up.harq.processes[usize::from(process)];
        transport.clear();
        transport.mcs = mcs;
        transport.prbs = prbs;
        transport.first_prb = first;
        transport.bits = rat.uplink_bits(mcs, prbs);
        transport.built = sent;
        let bytes = transport.bits / 8;
        ue.up.past.served(tti, transport.bits);
        ue.up.harq.sent(process);
        ue.estimate.grant(sent, rat.uplink_payload(bytes));
        self.note(sent, index, Kind::UplinkTransmit, process);
    }

    /// Transmits a UE's granted block, or retransmits it.
    pub(crate) fn uplink_transmit<D: Drops<P>, S: Sink>(
        &mut self,
        index: u32,
        process: u8,
        tti: u64,
        io: &mut Io<'_, D, S>,
    ) {
        let is_new = self.ues[index as usize].up.harq.processes[usize::from(process)].attempts == 0;
        if is_new {
            self.fill_uplink(index, process, tti, io);
        }
        let ue = &mut self.ues[index as usize];
        let Cell { slots, mac: MacConfig { rat, .. }, decoding, .. } = self.cells[ue.serving];
        let now = slots.start(tti);
        let transport = &mut ue.up.harq.processes[usize::from(process)];
        let prbs = transport.prbs;
        ue.air.uplink(ue.serving, now, prbs, &mut ue.up_sinr);
        transport.attempts += 1;
        let blocks = transport.first_prb..transport.first_prb + prbs;
        let (first_prb, mcs, bits) = (blocks.start, transport.mcs, transport.bits);
        let error = ue.up.errors.transmit(Direction::Uplink, mcs, bits, &ue.up_sinr, blocks, &mut transport.soft);
        transport.decoded = !happens(error, &mut ue.random);
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
                sinr_cdb: (decibels(f64::from(ue.up_sinr.mean())) * 100.0) as i32,
                first_prb,
                prbs,
                bits,
                padding,
                queued: ue.waits(Direction::Uplink, now),
            };
            io.sink.event(now, &Event::Transmission(event));
        }
        if decoded {
            self.note(tti + 1 + decoding, index, Kind::UplinkDecoded, process);
        } else {
            self.note(tti + rat.timing().data_to_nack, index, Kind::UplinkNack, process);
        }
        if is_new {
            // Filling the block has started timers.
            self.note_rlc(index);
            if self.ues[index as usize].had_data != 0 && rat.reports_buffers() {
                self.note_retx(index);
            }
        }
    }

    /// Builds the block that the UE sends with its grant.
    fn fill_uplink<D: Drops<P>, S: Sink>(&mut self, index: u32, process: u8, tti: u64, io: &mut Io<'_, D, S>) {
        let rat = self.cells[self.ues[index as usize].serving].mac.rat;
        let left = rat.fill_uplink(self, index, process, tti, io);
        let ue = &mut self.ues[index as usize];
        let now = ue.slots.start(tti);
        ue.hand_down(Direction::Uplink, now, io.drops);
        ue.had_data = ue.uplink_groups(now).1;
        let transport = &mut ue.up.harq.processes[usize::from(process)];
        transport.padding = left;
        let stats = &mut ue.stats.uplink;
        stats.blocks += 1;
        stats.bits += u64::from(transport.bits);
        stats.padding += u64::from(left);
    }

    pub(crate) fn uplink_decoded<D: Drops<P>, S: Sink>(
        &mut self,
        index: u32,
        process: u8,
        now: Time,
        io: &mut Io<'_, D, S>,
    ) {
        let ue = &mut self.ues[index as usize];
        let MacConfig { rat, link, .. } = &self.cells[ue.serving].mac;
        ue.up.harq.finished(process);
        ue.estimate.decoded();
        let transport = &ue.up.harq.processes[usize::from(process)];
        if transport.attempts == 1 {
            ue.uplink.outer.outcome(link.step_db, transport.mcs, true);
        }
        if let Some(level) = transport.headroom {
            ue.uplink.power.learn(level, transport.prbs, transport.built);
            emit(io.sink, now, || Event::PowerHeadroom { ue: index, level });
        }
        let reports = transport.report.is_some_and(|report| report.levels != Report::default().levels);
        ue.estimate.carried(transport.bits / 8, !transport.parcels().is_empty(), reports);
        if let Some(report) = transport.report {
            ue.estimate.learn(&report, transport.built);
            emit(io.sink, now, || Event::BufferStatus { ue: index, levels: report.levels });
        } else if transport.padding < SHORT_BSR {
            // There was no room to report the waiting data.
            ue.estimate.full_without_report(transport.built, transport.bits / 8);
        }
        if rat.reports_buffers() {
            self.update_uplink_activity(index);
        }
        self.receive(index, Direction::Uplink, process, now, io);
        self.touched(index, now, io);
    }

    pub(crate) fn uplink_nack<D: Drops<P>, S: Sink>(
        &mut self,
        index: u32,
        process: u8,
        tti: u64,
        io: &mut Io<'_, D, S>,
    ) {
        let ue = &mut self.ues[index as usize];
        let cell = &mut self.cells[ue.serving];
        let transport = &ue.up.harq.processes[usize::from(process)];
        if transport.attempts == 1 {
            ue.uplink.outer.outcome(cell.mac.link.step_db, transport.mcs, false);
        }
        if transport.attempts < cell.mac.transmissions {
            cell.reserved = cell.reserved.and(Blocks::run(transport.first_prb, transport.prbs));
            ue.up.past.served(tti, transport.bits);
            let again = tti + cell.mac.rat.timing().grant_to_data;
            self.note(again, index, Kind::UplinkTransmit, process);
        } else {
            let now = ue.slots.start(tti);
            ue.up.harq.finished(process);
            if cell.mac.rat.reports_buffers() {
                ue.estimate.lost(&cell.mac.requests, tti);
                self.update_uplink_activity(index);
            }
            self.give_up(index, Direction::Uplink, process, io.drops);
            self.touched(index, now, io);
        }
    }
}
