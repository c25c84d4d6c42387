//! The uplink of a TTI: what is granted, what is sent, and what becomes of it.
//!
//! A grant of TTI n is for n + 4. What the UE sends in it is decoded [`crate::MacConfig::decoding`] after its end; if it
//! is not, the UE learns so in the TTI 4 after it and repeats it 8 after it on the same resource blocks, which new grants
//! for that TTI leave free; proportional fair counts repetitions as service. A UE gets no grants while its sounding shows that
//! even the most robust block would fail in all its transmissions.
//!
//! Deviations: a block is filled when it is sent, where a UE begins about two milliseconds earlier.

use aqm::{Drops, Packet};
use channel::{Direction, tables::lte as tables};
use units::Time;

use crate::adaptation::decibels;
use crate::calendar::Kind;
use crate::downlink::happens;
use crate::harq::{PROCESSES, TO_FEEDBACK};
use crate::network::{Io, Ran, start_of, tell};
use crate::power::{self, HEADROOM_REPORT};
use crate::requests::{Asking, GRANT_TO_DATA, Opportunity, REQUEST_TO_GRANT, Report, SHORT_BSR, ttis};
use crate::sched::{Blocks, Candidate, uplink_size_from};
use crate::stats::{Event, Sink, Transmission};
use crate::ue::Ue;

/// What a grant leaves for MAC: a subheader, and a short report of the buffer and one of the power.
const MAC_PART: u32 = 1 + SHORT_BSR + HEADROOM_REPORT;

impl<P: Packet> Ran<P> {
    /// Looks whether there is uplink data that the cell has to be told of.
    #[inline]
    pub(crate) fn look_at_uplink(&mut self, index: u32, now: Time) {
        let ue = &mut self.ues[index as usize];
        if !ue.is_served() {
            return;
        }
        let (_, with_data) = ue.uplink_groups(now);
        let new = with_data & !ue.had_data;
        let old = core::mem::replace(&mut ue.had_data, with_data) & with_data;
        if self.mac.ideal {
            if with_data != 0 {
                self.cells[ue.serving].uplink.activate(index);
            }
        } else if new != 0 && ue.is_urgent(new, old) {
            ue.asking.trigger();
            self.note_opportunity(index, self.next_tti);
        }
    }

    /// Notes the next opportunity for a scheduling request from TTI `from` on, if one is pending.
    #[inline]
    fn note_opportunity(&mut self, index: u32, from: u64) {
        let asking = &mut self.ues[index as usize].asking;
        if asking.request_pending && !asking.opportunity_noted && !asking.random_access {
            asking.opportunity_noted = true;
            let tti = Asking::opportunity(&self.mac.requests, index, from);
            self.note(tti, index, Kind::SchedulingRequest, 0);
        }
    }

    pub(crate) fn request_opportunity<D: Drops<P>, S: Sink>(&mut self, index: u32, tti: u64, io: &mut Io<'_, D, S>) {
        let ue = &mut self.ues[index as usize];
        ue.asking.opportunity_noted = false;
        if !ue.believed.has_grant(tti) {
            match ue.asking.opportunity_comes(&self.mac.requests, tti) {
                Opportunity::Unused | Opportunity::Prohibited => {}
                Opportunity::Sent => {
                    ue.stats.scheduling_requests += 1;
                    tell(io.sink, start_of(tti), || Event::SchedulingRequest { ue: index });
                    self.note(tti + REQUEST_TO_GRANT, index, Kind::SchedulingRequestHeard, 0);
                }
                Opportunity::Exhausted => {
                    ue.stats.random_accesses += 1;
                    let done = tti + ttis(self.mac.requests.random_access);
                    self.note(done, index, Kind::RandomAccessDone, 0);
                }
            }
        }
        self.note_opportunity(index, tti + 1);
    }

    pub(crate) fn request_heard(&mut self, index: u32, tti: u64) {
        self.ues[index as usize].believed.requested(&self.mac.requests, tti);
        self.look_at_belief(index);
    }

    pub(crate) fn random_access_done(&mut self, index: u32) {
        let ue = &mut self.ues[index as usize];
        if ue.asking.random_access {
            ue.asking.random_access = false;
            ue.believed.asked = self.mac.requests.first_grant;
            self.look_at_belief(index);
        }
    }

    /// retxBSR-Timer: the entry may have been made before the timer was started again.
    pub(crate) fn retx_bsr(&mut self, index: u32, tti: u64) {
        let ue = &mut self.ues[index as usize];
        ue.asking.retx_noted = false;
        if ue.had_data == 0 {
            return;
        }
        if tti >= ue.asking.retx_due {
            ue.asking.trigger();
            ue.asking.retx_due = tti + ttis(self.mac.requests.bsr_retx);
            self.note_opportunity(index, tti + 1);
        }
        self.note_retx(index);
    }

    #[inline]
    fn note_retx(&mut self, index: u32) {
        let asking = &mut self.ues[index as usize].asking;
        if !asking.retx_noted && asking.retx_due != u64::MAX {
            asking.retx_noted = true;
            let due = asking.retx_due;
            self.note(due, index, Kind::RetxBsr, 0);
        }
    }

    /// The cell knows of something to be granted, or not.
    #[inline]
    pub(crate) fn look_at_belief(&mut self, index: u32) {
        let ue = &self.ues[index as usize];
        if ue.believed.wants() {
            self.cells[ue.serving].uplink.activate(index);
        }
    }

    /// Grants of `tti`, for four TTIs later.
    pub(crate) fn schedule_uplink(&mut self, cell: usize, tti: u64) {
        let now = start_of(tti);
        let sent = tti + GRANT_TO_DATA;
        let process = (sent % PROCESSES as u64) as u8;
        let mut free = self.cells[cell].shared.without(self.cells[cell].reserved);
        let mut candidates = core::mem::take(&mut self.candidates);
        let mut active = core::mem::take(&mut self.cells[cell].uplink.active);
        active.retain(|index| {
            self.work += 1;
            let ideal = self.mac.ideal;
            let ue = &mut self.ues[*index as usize];
            let need = if ideal {
                let known = Report::of(ue.uplink_groups(now).0).bytes();
                if known == 0 {
                    return false;
                }
                known.saturating_sub(ue.believed.granted_after(tti))
            } else if !ue.believed.wants() {
                return false;
            } else {
                (ue.believed.waiting.max(ue.believed.asked) + MAC_PART).max(ue.believed.least().unwrap_or(0))
            };
            if need == 0 || ue.up.harq.is_busy(process) {
                return true;
            }
            let need = need.min(ue.category.uplink_block_bits / 8);
            ue.sound(&self.mac.link, ideal, tti);
            if ue.uplink.is_out_of_range(self.mac.transmissions, tti) {
                // It waits for a better channel.
                return true;
            }
            if ideal {
                // Everybody has the same part, however much it is worth to him.
                candidates.push(Candidate::new(*index, 0.0, free.count()));
                return true;
            }
            let (ue, cell) = (&mut self.ues[*index as usize], &self.cells[cell]);
            let strength = ue.uplink.strength(tti);
            let most = strength.most_prbs();
            // A UE at the limit of its power has a better scheme on fewer blocks: try with as many as one block's takes.
            let few = cell.grant_for(tables::ul_mcs(ue.uplink.scheme(1, tti)).i_tbs, need).min(most);
            let i_tbs = tables::ul_mcs(ue.uplink.scheme(few, tti)).i_tbs;
            let want = cell.grant_for(i_tbs, need).min(cell.grant(most));
            let mut least = 1;
            if let Some(bytes) = ue.believed.least() {
                let bits_at =
                    |ue: &mut Ue<P>, prbs| tables::tbs(tables::ul_mcs(ue.uplink.scheme(prbs, tti)).i_tbs, prbs);
                let enough = bytes.saturating_mul(8);
                if bits_at(ue, want) < enough {
                    ue.believed.give_up();
                    return false;
                }
                least = (1..want).find(|prbs| bits_at(ue, *prbs) >= enough).map_or(want, uplink_size_from).min(want);
            }
            let weight = cell.uplink.scheduler.weight(&mut ue.up.past, tti);
            candidates.push(if want <= strength.full_power_prbs() {
                let whole = cell.grant(free.count()).max(1);
                let rate = tables::tbs(i_tbs, whole) as f32 / f32::from(whole);
                Candidate { least, ..Candidate::new(*index, weight * rate, want) }
            } else {
                Candidate::limited(*index, weight, want, least, strength)
            });
            true
        });
        self.cells[cell].uplink.active = active;
        self.cells[cell].uplink.scheduler.divide(free.count(), &mut candidates);
        for c in candidates.iter().take_while(|c| c.got > 0) {
            let (_, found) = free.find(c.got);
            let prbs = self.cells[cell].grant(found);
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

    fn grant(&mut self, index: u32, process: u8, (first, prbs): (u8, u8), tti: u64) {
        let sent = tti + GRANT_TO_DATA;
        let ue = &mut self.ues[index as usize];
        let mcs = ue.uplink.scheme(prbs, tti);
        let transport = &mut ue.up.harq.processes[usize::from(process)];
        transport.clear();
        transport.mcs = mcs;
        transport.prbs = prbs;
        transport.first_prb = first;
        transport.bits = tables::tbs(tables::ul_mcs(mcs).i_tbs, prbs);
        transport.built = sent;
        let bytes = transport.bits / 8;
        ue.up.past.served(tti, transport.bits);
        ue.up.harq.sent(process);
        ue.believed.grant(sent, if self.mac.ideal { bytes } else { bytes.saturating_sub(MAC_PART).max(1) });
        self.note(sent, index, Kind::UplinkTransmit, process);
    }

    /// The UE sends what it was granted, or sends it again.
    pub(crate) fn uplink_transmit<D: Drops<P>, S: Sink>(
        &mut self,
        index: u32,
        process: u8,
        tti: u64,
        io: &mut Io<'_, D, S>,
    ) {
        let now = start_of(tti);
        let is_new = self.ues[index as usize].up.harq.processes[usize::from(process)].attempts == 0;
        if is_new {
            self.fill_uplink(index, process, tti, io);
        }
        let ue = &mut self.ues[index as usize];
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
            self.note(tti + 1 + self.decoding, index, Kind::UplinkDecoded, process);
        } else {
            self.note(tti + TO_FEEDBACK, index, Kind::UplinkNack, process);
        }
        if is_new {
            // The timers that filling the block has started.
            self.note_rlc(index);
            if self.ues[index as usize].had_data != 0 && !self.mac.ideal {
                self.note_retx(index);
            }
        }
    }

    /// Builds what the UE sends with its grant (36.321 5.4.3, 5.4.5).
    fn fill_uplink<D: Drops<P>, S: Sink>(&mut self, index: u32, process: u8, tti: u64, io: &mut Io<'_, D, S>) {
        let now = start_of(tti);
        let (ideal, requests, power_reports) = (self.mac.ideal, self.mac.requests, self.mac.power_reports);
        let ue = &mut self.ues[index as usize];
        let (bits, prbs) = {
            let transport = &ue.up.harq.processes[usize::from(process)];
            (transport.bits, transport.prbs)
        };
        let mut bytes = bits / 8;
        let (mut report, mut headroom) = (None, None);
        let mut left;
        if ideal {
            left = ue.fill(Direction::Uplink, process, bytes, false, now, io.drops);
        } else {
            ue.asking.granted(&requests, tti);
            let (before, _) = ue.uplink_groups(now);
            let everything = before.iter().fold(1u32, |sum, b| sum.saturating_add(*b));
            // A report that would push out the last of the data is not sent.
            let reports = ue.asking.report_due && (everything > bytes || everything + SHORT_BSR <= bytes);
            if reports {
                bytes = bytes.saturating_sub(Report::size(&before));
            }
            // 36.321 5.4.3.1: after the buffer status, before data.
            let path_loss_db = ue.air.path_loss_db(ue.serving, now);
            if ue.reporting.is_due(&power_reports, path_loss_db, tti) && bytes >= HEADROOM_REPORT {
                bytes -= HEADROOM_REPORT;
                headroom = Some(power::level(ue.air.headroom_db(ue.serving, now, prbs)));
                ue.reporting.reported(&power_reports, path_loss_db, tti);
            }
            left = ue.fill(Direction::Uplink, process, bytes, true, now, io.drops);
            let (after, with_data) = ue.uplink_groups(now);
            report = reports.then(|| Report::of(after));
            let size = Report::size(&after);
            if !reports && left >= size {
                // Room that would be padding takes a report.
                report = Some(Report::of(after));
                left -= size;
            }
            if report.is_some() {
                ue.asking.reported(&requests, tti);
            } else if with_data == 0 {
                ue.asking.settled();
            }
        }
        ue.hand_down(Direction::Uplink, now, io.drops);
        ue.had_data = ue.uplink_groups(now).1;
        let transport = &mut ue.up.harq.processes[usize::from(process)];
        transport.padding = left;
        transport.report = report;
        transport.headroom = headroom;
        let stats = &mut ue.stats.uplink;
        stats.blocks += 1;
        stats.bits += u64::from(bits);
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
        ue.up.harq.finished(process);
        ue.believed.heard();
        let transport = &ue.up.harq.processes[usize::from(process)];
        if transport.attempts == 1 {
            ue.uplink.outer.outcome(self.mac.link.step_db, transport.mcs, true);
        }
        if let Some(level) = transport.headroom {
            ue.uplink.power.learn(level, transport.prbs, transport.built);
            tell(io.sink, now, || Event::PowerHeadroom { ue: index, level });
        }
        let reports = transport.report.is_some_and(|report| report.levels != Report::default().levels);
        ue.believed.carried(transport.bits / 8, !transport.parcels().is_empty(), reports);
        if let Some(report) = transport.report {
            ue.believed.learn(&report, transport.built);
            tell(io.sink, now, || Event::BufferStatus { ue: index, levels: report.levels });
        } else if transport.padding < SHORT_BSR {
            // There was no room to report what waits.
            ue.believed.came_full(transport.built, transport.bits / 8);
        }
        if !self.mac.ideal {
            self.look_at_belief(index);
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
        let transport = &ue.up.harq.processes[usize::from(process)];
        if transport.attempts == 1 {
            ue.uplink.outer.outcome(self.mac.link.step_db, transport.mcs, false);
        }
        if transport.attempts < self.mac.transmissions {
            let taken = Blocks::run(transport.first_prb, transport.prbs);
            let reserved = &mut self.cells[ue.serving].reserved;
            *reserved = reserved.and(taken);
            ue.up.past.served(tti, transport.bits);
            self.note(tti + GRANT_TO_DATA, index, Kind::UplinkTransmit, process);
        } else {
            ue.up.harq.finished(process);
            if !self.mac.ideal {
                ue.believed.lost(&self.mac.requests, tti);
                self.look_at_belief(index);
            }
            self.give_up(index, Direction::Uplink, process, io.drops);
            self.touched(index, start_of(tti), io);
        }
    }
}
