//! The network as its owner sees it, and what happens in one tick of its calendar.

use std::collections::VecDeque;

use aqm::{DropReason, Drops, Packet};
use channel::{Air, Direction, Random, Sinr, Site};
use units::{Span, Time};

use crate::calendar::{Calendar, Entry, Kind};
use crate::config::Config;
use crate::handover::{Handover, Measurements};
use crate::mac::adaptation::decibels;
use crate::mac::cell::Cell;
use crate::mac::harq::Parcel;
use crate::mac::sched::Candidate;
use crate::pdcp::Times;
use crate::signalling::{Message, SRB, Signal};
use crate::stats::{Event, Sink, UeStats};
use crate::ue::Ue;

/// What a random stream is for. Each UE has its own, so that adding one does not shift another's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The channel of a UE.
    Air(u32),
    /// Whether a UE's transport blocks are decoded.
    Decoding(u32),
}

/// A packet that has come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The UE that it was for or from.
    pub ue: u32,
    /// Which of the two.
    pub direction: Direction,
    /// The packet.
    pub packet: P,
    /// When it was sent over the air.
    pub times: Times,
}

/// What a UE hears of the cell that serves it, or served it last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard {
    /// Power of its reference signals in dBm.
    pub rsrp_dbm: f64,
    /// Their quality in dB.
    pub rsrq_db: f64,
    /// Linear mean of the downlink's SINR over the carrier, in dB; `None` while no cell serves the UE.
    pub sinr_db: Option<f64>,
    /// The quality that it reported last, or would report.
    pub cqi: u8,
}

/// Where packets and events of one call go.
pub(crate) struct Io<'a, D, S> {
    pub(crate) drops: &'a mut D,
    pub(crate) sink: &'a mut S,
}

/// Cells and their UEs. See the crate's documentation for the order of calls.
pub struct Ran<P> {
    pub(crate) handover: Handover,
    pub(crate) cells: Vec<Cell>,
    pub(crate) ues: Vec<Ue<P>>,
    pub(crate) calendar: Calendar,
    /// The calendar's unit: the shortest slot of all cells.
    tick: Span,
    /// The first tick that was not run yet.
    pub(crate) next_tick: u64,
    pub(crate) outbox: VecDeque<Delivery<P>>,
    pub(crate) work: u64,
    /// Reused lists.
    due: Vec<Entry>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) messages: Vec<Message>,
}

impl<P: Packet> Ran<P> {
    /// The network of `config` at time zero, with everybody connected and idle. `random` gives each stream once.
    ///
    /// # Panics
    /// If there is no cell, a UE has no bearer or more than 8, its cell does not exist, or decoding takes longer than the
    /// technology allows (3 ms in LTE): the configuration's reader checks that.
    pub fn new(config: &Config, mut random: impl FnMut(Stream) -> Random) -> Ran<P> {
        assert!(!config.cells.is_empty(), "a network has a cell");
        let tick = config.cells.iter().map(|c| c.mac.rat.slot()).min().expect("a network has a cell");
        let cells: Vec<Cell> = config.cells.iter().map(|c| Cell::new(c, tick)).collect();
        let sites: Vec<Site> = config.cells.iter().map(|c| c.site).collect();
        let mut ues = Vec::with_capacity(config.ues.len());
        for (index, ue) in config.ues.iter().enumerate() {
            assert!((1..=8).contains(&ue.bearers.len()), "a UE has one to eight bearers");
            let index = index as u32;
            let mut air = Air::new(&ue.air, &sites, random(Stream::Air(index)));
            for (cell, c) in config.cells.iter().enumerate() {
                air.set_load(cell, c.load);
            }
            let best = strongest(&mut air, sites.len(), Time::ZERO);
            let measurements = Measurements::new(sites.len(), &config.handover);
            let serving = ue.cell.unwrap_or(best);
            assert!(serving < sites.len(), "a UE starts in a cell that exists");
            let random = random(Stream::Decoding(index));
            ues.push(Ue::new(index, ue, (air, random), measurements, (serving, &cells[serving])));
        }
        let mut ran = Ran {
            handover: config.handover,
            cells,
            ues,
            calendar: Calendar::new(),
            tick,
            next_tick: 0,
            outbox: VecDeque::new(),
            work: 0,
            due: Vec::new(),
            candidates: Vec::new(),
            messages: Vec::new(),
        };
        for ue in 0..ran.ues.len() as u32 {
            // Spread over the period, so that not all of them measure in the same slot.
            let period = ran.ues[ue as usize].slots.spanning(ran.handover.period).max(1);
            ran.note_measurement(ue, u64::from(ue) % period);
        }
        ran
    }

    /// A packet for `ue` comes to the cell that serves it, or served it last.
    pub fn handle_downlink(&mut self, ue: u32, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.reach(now);
        let state = &mut self.ues[ue as usize];
        if !state.is_served() && !self.handover.forwarding {
            // It goes to a cell that the UE has left.
            drops.dropped(packet, DropReason::Loss);
            return;
        }
        state.enqueue_downlink(packet, now, drops);
        if state.is_served() {
            self.cells[state.serving].downlink.activate(ue);
        }
        self.note_rlc(ue);
    }

    /// The host at `ue` sends a packet.
    pub fn handle_uplink(&mut self, ue: u32, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.reach(now);
        let state = &mut self.ues[ue as usize];
        state.host.gate.enqueue(packet, now, drops);
        state.hand_down(Direction::Uplink, now, drops);
        self.look_at_uplink(ue, now);
        self.note_rlc(ue);
    }

    /// UEs of other cells hear `cell` on this share of its resource blocks, 0 to 1, from `now` on. Radio links may be lost by
    /// it.
    pub fn set_load(&mut self, cell: u32, load: f32, now: Time) {
        self.reach(now);
        for ue in 0..self.ues.len() as u32 {
            self.report_until_now(ue);
            self.ues[ue as usize].air.set_load(cell as usize, load);
            self.wake(ue, now);
        }
    }

    /// From `now` on `ue` hears the cell that serves it with this mean SINR in dB, whatever others send and wherever it is;
    /// `None` goes back to the channel of the configuration. What it does to the uplink and to fading, and that handovers
    /// still go by the channel's received powers, is [`Air::set_sinr`]'s. Cells learn of it by the next reports, and a
    /// radio link may be lost by it.
    pub fn set_sinr(&mut self, ue: u32, sinr_db: Option<f64>, now: Time) {
        self.reach(now);
        self.report_until_now(ue);
        self.ues[ue as usize].air.set_sinr(sinr_db);
        self.wake(ue, now);
    }

    /// Makes the measurements of before a change, which does not change them.
    fn report_until_now(&mut self, ue: u32) {
        let state = &mut self.ues[ue as usize];
        if state.is_served() {
            let Cell { slots, mac, grid, .. } = &self.cells[state.serving];
            let next = slots.next_at(self.next_tick);
            state.report_channel(&mac.link, grid.group, next);
            state.sound(&mac.link, mac.rat, next);
        }
        state.forget_sinr();
    }

    /// When [`Ran::handle_timeout`] is next due; `None` while there is nothing to be done.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.next_due().map(|tick| self.start_of(tick))
    }

    /// Runs all slots that begin until `now`.
    pub fn handle_timeout(&mut self, now: Time, drops: &mut impl Drops<P>, sink: &mut impl Sink) {
        let mut io = Io { drops, sink };
        while let Some(tick) = self.next_due()
            && self.start_of(tick) <= now
        {
            self.run(tick, &mut io);
        }
    }

    /// The next packet that has come through.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.outbox.pop_front()
    }

    /// Packets that were handed in and neither delivered nor dropped yet, those in [`Ran::poll_delivery`] included.
    pub fn held(&self) -> u64 {
        let inside = |ue: &Ue<P>| {
            let bearers = ue.bearers.iter().flat_map(|b| {
                [Direction::Downlink, Direction::Uplink]
                    .map(|way| b.rlc.queue(way).packets + b.rlc.in_transit(way) as u64)
            });
            let above = [Direction::Downlink, Direction::Uplink].map(|way| ue.above(way).packets);
            above.iter().sum::<u64>() + bearers.sum::<u64>()
        };
        self.outbox.len() as u64 + self.ues.iter().map(inside).sum::<u64>()
    }

    /// What waits above RLC: at a UE in its host's queue, in the eNodeB in those above its bearers' buffers.
    pub fn above_backlog(&self, ue: u32, direction: Direction) -> aqm::Backlog {
        self.ues[ue as usize].above(direction)
    }

    /// How many bytes byte queue limits let into RLC; `None` where nothing has such a limit.
    pub fn quota(&self, ue: u32, direction: Direction) -> Option<u64> {
        self.ues[ue as usize].quota(direction)
    }

    /// What waits in RLC and PDCP for a UE in one direction and was not begun to be sent.
    pub fn rlc_backlog(&self, ue: u32, direction: Direction) -> aqm::Backlog {
        self.ues[ue as usize].queued(direction)
    }

    /// What was counted for a UE so far.
    pub fn stats(&self, ue: u32) -> UeStats {
        self.ues[ue as usize].stats
    }

    /// The RLC counts of a UE, over all its bearers.
    pub fn rlc_stats(&self, ue: u32, direction: Direction) -> crate::rlc::Stats {
        self.ues[ue as usize].bearers.iter().map(|bearer| bearer.rlc.stats(direction)).sum()
    }

    /// The cell that serves a UE, if one does.
    pub fn serving(&self, ue: u32) -> Option<u32> {
        let state = &self.ues[ue as usize];
        state.is_served().then_some(state.serving as u32)
    }

    /// What `ue` hears at `now`.
    pub fn hears(&mut self, ue: u32, now: Time) -> Heard {
        let served = self.serving(ue).is_some();
        let state = &mut self.ues[ue as usize];
        let mut sinr = Sinr::default();
        state.air.downlink(state.serving, now, &mut sinr);
        let fresh = state.downlink.reports.is_fresh(state.slots.at(now));
        let rat = self.cells[state.serving].mac.rat;
        let reported = fresh.then(|| state.downlink.scheme(rat, state.slots.next_at(self.next_tick)).cqi);
        Heard {
            rsrp_dbm: state.air.rsrp(state.serving, now),
            rsrq_db: state.air.rsrq(state.serving, now),
            sinr_db: served.then(|| decibels(f64::from(sinr.mean()))),
            cqi: reported.unwrap_or_else(|| channel::wideband_cqi(&sinr)),
        }
    }

    /// Slots of `cell` that have begun by `now`, up to which everything was run.
    pub fn begun(&self, cell: u32, now: Time) -> u64 {
        let slots = self.cells[cell as usize].slots;
        slots.next_at(self.next_tick).max(slots.next_after(now))
    }

    /// UEs.
    pub fn ues(&self) -> u32 {
        self.ues.len() as u32
    }

    /// How often a UE was looked at or something was done for one: what running costs, independent of the machine.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// When `tick` begins.
    #[inline]
    fn start_of(&self, tick: u64) -> Time {
        Time::ZERO + self.tick * tick
    }

    /// The next tick in which something is to be done.
    #[inline]
    fn next_due(&self) -> Option<u64> {
        let busy = self.cells.iter().filter(|cell| cell.is_busy());
        let slot = busy.map(|cell| cell.slots.tick(cell.slots.next_at(self.next_tick))).min();
        match slot {
            Some(slot) if slot == self.next_tick => slot.into(),
            _ => slot.into_iter().chain(self.calendar.first()).min(),
        }
    }

    /// Time has come to `now`: an idle network has let the ticks before it pass.
    #[inline]
    pub(crate) fn reach(&mut self, now: Time) {
        let tick = now.as_nanos().div_ceil(self.tick.as_nanos());
        if tick > self.next_tick && self.next_due().is_none_or(|due| due >= tick) {
            self.next_tick = tick;
        }
    }

    fn run<D: Drops<P>, S: Sink>(&mut self, tick: u64, io: &mut Io<'_, D, S>) {
        let now = self.start_of(tick);
        let mut due = core::mem::take(&mut self.due);
        self.calendar.take(tick, &mut due);
        self.next_tick = tick + 1;
        for entry in &due {
            let ue = entry.ue;
            let state = &self.ues[ue as usize];
            if state.epoch != entry.epoch {
                continue;
            }
            let slot = state.slots.next_at(tick);
            self.work += 1;
            match entry.kind {
                Kind::DownlinkDecoded => self.downlink_decoded(ue, entry.process, now, io),
                Kind::DownlinkFeedback => self.downlink_feedback(ue, entry.process, now, io),
                Kind::UplinkTransmit => self.uplink_transmit(ue, entry.process, slot, io),
                Kind::UplinkDecoded => self.uplink_decoded(ue, entry.process, now, io),
                Kind::UplinkNack => self.uplink_nack(ue, entry.process, slot, io),
                Kind::SchedulingRequest => self.request_opportunity(ue, slot, io),
                Kind::SchedulingRequestHeard => self.request_heard(ue, slot),
                Kind::RandomAccessDone => self.random_access_done(ue),
                Kind::RetxBsr => self.retx_bsr(ue, slot),
                Kind::Rlc => self.rlc_timeout(ue, now, io),
                Kind::Measure => self.measure(ue, now, io),
                Kind::Mobility => self.mobility_step(ue, now, io),
            }
        }
        due.clear();
        self.due = due;
        for cell in 0..self.cells.len() {
            let slots = self.cells[cell].slots;
            if !slots.begins_at(tick) {
                continue;
            }
            let slot = slots.next_at(tick);
            if !self.cells[cell].downlink.active.is_empty() {
                self.schedule_downlink(cell, slot, io);
            }
            if !self.cells[cell].uplink.active.is_empty() {
                self.schedule_uplink(cell, slot);
            }
            self.cells[cell].reserved = crate::mac::blocks::Blocks::none();
        }
    }

    /// Notes that something is due for `ue` in `slot` of its cell, or in the next one if that has been.
    #[inline]
    pub(crate) fn note(&mut self, slot: u64, ue: u32, kind: Kind, process: u8) {
        let Ue { epoch, slots, .. } = self.ues[ue as usize];
        let slot = slot.max(slots.next_at(self.next_tick));
        self.calendar.at(slots.tick(slot), Entry { ue, epoch, kind, process });
    }

    /// RLC's or PDCP's entities at either end may have something new to send or to wait for.
    #[inline]
    pub(crate) fn touched<D: Drops<P>, S: Sink>(&mut self, ue: u32, now: Time, io: &mut Io<'_, D, S>) {
        let state = &mut self.ues[ue as usize];
        if state.bearers.iter().any(|b| b.rlc.failed().is_some()) {
            self.lose_link(ue, now, io);
            return;
        }
        match state.srb.as_ref().and_then(|srb| srb.failed()) {
            Some(Direction::Uplink) => return self.lose_link(ue, now, io),
            Some(Direction::Downlink) => self.lose_command(ue, now, io),
            None => {}
        }
        let state = &mut self.ues[ue as usize];
        if state.heeds_status {
            state.hand_down(Direction::Downlink, now, io.drops);
            state.hand_down(Direction::Uplink, now, io.drops);
        }
        if state.is_served() && state.backlog(Direction::Downlink, now) > 0 {
            self.cells[state.serving].downlink.activate(ue);
        }
        self.look_at_uplink(ue, now);
        self.note_rlc(ue);
    }

    /// Notes the next timer of RLC and PDCP.
    #[inline]
    pub(crate) fn note_rlc(&mut self, ue: u32) {
        let state = &mut self.ues[ue as usize];
        let signalling = state.srb.as_ref().and_then(|srb| srb.poll_timeout());
        let next = state.bearers.iter().filter_map(|b| b.rlc.poll_timeout()).chain(signalling).min();
        if let Some(next) = next {
            let slot = state.slots.next_after(next).max(state.slots.next_at(self.next_tick));
            let due = state.slots.start(slot);
            if due < state.rlc_noted {
                state.rlc_noted = due;
                self.note(slot, ue, Kind::Rlc, 0);
            }
        }
    }

    fn rlc_timeout<D: Drops<P>, S: Sink>(&mut self, ue: u32, now: Time, io: &mut Io<'_, D, S>) {
        let Ran { ues, outbox, messages, .. } = self;
        let state = &mut ues[ue as usize];
        if state.rlc_noted != now {
            // An earlier one took its place.
            return;
        }
        state.rlc_noted = Time::MAX;
        for bearer in &mut state.bearers {
            if bearer.rlc.poll_timeout().is_some_and(|due| due <= now) {
                bearer.rlc.handle_timeout(
                    now,
                    &mut |direction, packet, times| outbox.push_back(Delivery { ue, direction, packet, times }),
                    io.drops,
                );
            }
        }
        if let Some(srb) = &mut state.srb {
            // AM delivers nothing when a timer ends.
            srb.handle_timeout(now, &mut |_, signal: Signal, _| messages.push(signal.message), &mut |_, _| {});
        }
        // What PDCP discarded has made room.
        state.hand_down(Direction::Downlink, now, io.drops);
        state.hand_down(Direction::Uplink, now, io.drops);
        self.touched(ue, now, io);
    }

    /// Hands what a decoded block carries to RLC.
    pub(crate) fn receive<D: Drops<P>, S: Sink>(
        &mut self,
        ue: u32,
        way: Direction,
        process: u8,
        now: Time,
        io: &mut Io<'_, D, S>,
    ) {
        let Ran { ues, outbox, messages, .. } = self;
        let Ue { bearers, srb, down, up, .. } = &mut ues[ue as usize];
        let harq = if way == Direction::Downlink { &down.harq } else { &up.harq };
        for parcel in harq.processes[usize::from(process)].parcels() {
            if parcel.bearer == SRB {
                if let Some(srb) = srb {
                    let mut deliver = |_, signal: Signal, _| messages.push(signal.message);
                    srb.receive(way, &parcel.block, now, &mut deliver, &mut |_, _| {});
                }
                continue;
            }
            bearers[usize::from(parcel.bearer)].rlc.receive(
                way,
                &parcel.block,
                now,
                &mut |direction, packet, times| outbox.push_back(Delivery { ue, direction, packet, times }),
                io.drops,
            );
        }
        self.heed_messages(ue, now, io);
    }

    /// Tells RLC that HARQ has given up a block.
    pub(crate) fn give_up<D: Drops<P>>(&mut self, ue: u32, way: Direction, process: u8, drops: &mut D) {
        let Ue { bearers, down, up, stats, .. } = &mut self.ues[ue as usize];
        let harq = if way == Direction::Downlink { &down.harq } else { &up.harq };
        let data = |parcel: &&Parcel| parcel.bearer != SRB;
        for parcel in harq.processes[usize::from(process)].parcels().iter().filter(data) {
            bearers[usize::from(parcel.bearer)].rlc.lost(way, &parcel.block, drops);
        }
        stats.of(way).residual_errors += 1;
    }
}

/// Tells whoever listens.
#[inline]
pub(crate) fn tell<S: Sink>(sink: &mut S, now: Time, event: impl FnOnce() -> Event) {
    if S::LISTENS {
        sink.event(now, &event());
    }
}

/// The cell that is received with the most power.
pub(crate) fn strongest(air: &mut Air, cells: usize, now: Time) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for cell in 0..cells {
        let rsrp = air.rsrp(cell, now);
        if rsrp > best.1 {
            best = (cell, rsrp);
        }
    }
    best.0
}
