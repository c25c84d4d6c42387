//! The network's interface, and the processing of one tick of its calendar.

use std::collections::VecDeque;
use std::sync::Arc;

use aqm::{Backlog, DropReason, Drops, Packet};
use channel::{Air, Direction, Random, Sinr, Site, Sites};
use units::{Span, Time};

use crate::calendar::{Calendar, Entry, Kind};
use crate::config::{CellConfig, Config};
use crate::handover::{Handover, Measurements};
use crate::mac::adaptation::{self, decibels};
use crate::mac::cell::{Cell, OnAir};
use crate::mac::cells::Cells;
use crate::mac::harq::Parcel;
use crate::mac::interference::Interference;
use crate::mac::sched::Candidate;
use crate::pdcp::Times;
use crate::signalling::{Message, SRB, Signal};
use crate::stats::{DirectionStats, Event, Sink, UeStats};
use crate::ue::{Rrc, Ue};

/// The purpose of a random stream. Each UE has its own, so that adding a UE does not change another's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The channel of a UE.
    Air(u32),
    /// The decoding of a UE's transport blocks.
    Decoding(u32),
}

/// A packet that was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The UE that it was sent to or by.
    pub ue: u32,
    /// The direction.
    pub direction: Direction,
    /// The packet.
    pub packet: P,
    /// When it was sent over the air.
    pub times: Times,
}

/// A UE's reception of the cell that serves it, or served it last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heard {
    /// RSRP in dBm.
    pub rsrp_dbm: f64,
    /// RSRQ in dB.
    pub rsrq_db: f64,
    /// Linear mean of the downlink's SINR over the carrier, in dB; `None` while no cell serves the UE.
    pub sinr_db: Option<f64>,
    /// The CQI that it reported last, or would report.
    pub cqi: u8,
    /// Whether it has line of sight to the cell; models without this distinction assume it.
    pub is_los: bool,
    /// The beams of the cell's and of its own array; an end without one has beam 0. `None` if neither has an array.
    pub beams: Option<(u32, u32)>,
    /// The loss of blockers in dB.
    pub blocked_db: f64,
}

/// What a cell would send a UE in the downlink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// The channel quality indicator that it goes by.
    pub cqi: u8,
    /// The modulation and coding scheme.
    pub mcs: u8,
    /// The rank.
    pub layers: u8,
    /// Bits that a resource block carries in a slot, as part of a block on the whole carrier.
    pub bits_per_block: f64,
}

/// The receivers of packets and events of one call.
pub(crate) struct Io<'a, D, S> {
    pub(crate) drops: &'a mut D,
    pub(crate) sink: &'a mut S,
}

/// Cells and their UEs. See the crate's documentation for the order of calls.
pub struct Ran<P> {
    pub(crate) handover: Handover,
    /// The cells that may serve a UE, followed by their secondary carriers.
    pub(crate) cells: Cells,
    /// How many may serve a UE.
    pub(crate) serving_cells: usize,
    pub(crate) interference: Interference,
    /// Whether any cell has configured grants.
    has_configured: bool,
    pub(crate) ues: Vec<Ue<P>>,
    pub(crate) calendar: Calendar,
    /// The calendar's unit, of which all cells' slots and decoding delays are multiples.
    tick: Span,
    /// The first tick not yet processed.
    pub(crate) next_tick: u64,
    pub(crate) outbox: VecDeque<Delivery<P>>,
    pub(crate) work: u64,
    /// Reused buffers.
    due: Vec<Entry>,
    pub(crate) candidates: Vec<Candidate>,
    /// UEs, processes and resource blocks of repetitions in the uplink.
    pub(crate) repetitions: Vec<(u32, u8, u16)>,
    pub(crate) on_air: Vec<OnAir>,
    pub(crate) messages: Vec<Message>,
}

impl<P: Packet> Ran<P> {
    /// Creates the network of `config` at time zero, with all UEs connected and idle. `random` returns each stream
    /// once.
    ///
    /// # Panics
    /// If there is no cell, a UE has no bearer or more than 8, its cell does not exist, decoding takes longer than the
    /// technology allows (3 ms in LTE), a TDD pattern is invalid, or [`crate::Drx`] has invalid cycles: the code that reads
    /// the configuration checks that.
    pub fn new(config: &Config, mut random: impl FnMut(Stream) -> Random) -> Ran<P> {
        assert!(!config.cells.is_empty(), "a network has a cell");
        let tick = tick(&config.cells);
        let (carriers, secondaries) = config.carriers();
        let cells: Vec<Cell> = carriers.iter().zip(secondaries).map(|(c, second)| Cell::new(c, second, tick)).collect();
        let sites: Vec<Site> = carriers.iter().map(|c| c.site).collect();
        let sites = Arc::new(Sites::new(&sites));
        let serving_cells = config.cells.len();
        let interference = Interference::new(&carriers);
        let are_alone = ![Direction::Downlink, Direction::Uplink].iter().any(|way| interference.any_shared(*way));
        let mut ues = Vec::with_capacity(config.ues.len());
        for (index, ue) in config.ues.iter().enumerate() {
            assert!((1..=8).contains(&ue.bearers.len()), "a UE has one to eight bearers");
            let index = index as u32;
            let mut air = Air::among(&ue.air, &sites, random(Stream::Air(index)));
            for (cell, c) in carriers.iter().enumerate() {
                air.set_load(cell, c.load);
            }
            let best = strongest(&mut air, serving_cells, Time::ZERO);
            let measurements = Measurements::new(serving_cells, &config.handover);
            let serving = ue.cell.unwrap_or(best);
            assert!(serving < serving_cells, "a UE starts in a cell that exists");
            let random = random(Stream::Decoding(index));
            let is_constant = are_alone && !air.varies();
            let ue = Ue::new(index, ue, (air, random, is_constant), measurements, (serving, &cells[serving]));
            ues.push(ue);
        }
        let mut ran = Ran {
            handover: config.handover,
            interference,
            has_configured: config.cells.iter().any(|cell| cell.mac.configured.is_some()),
            serving_cells,
            cells: Cells::new(cells),
            ues,
            calendar: Calendar::new(),
            tick,
            next_tick: 0,
            outbox: VecDeque::new(),
            work: 0,
            due: Vec::new(),
            candidates: Vec::new(),
            repetitions: Vec::new(),
            on_air: Vec::new(),
            messages: Vec::new(),
        };
        for ue in 0..ran.ues.len() as u32 {
            ran.configure_grant(ue, Time::ZERO);
            // Spread over the period, so that UEs do not all measure in the same slot.
            let period = ran.ues[ue as usize].slots.spanning(ran.handover.period).max(1);
            ran.note_measurement(ue, u64::from(ue) % period);
        }
        ran
    }

    /// Accepts a packet for `ue` at the cell that serves it, or served it last.
    pub fn handle_downlink(&mut self, ue: u32, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.reach(now);
        let state = &mut self.ues[ue as usize];
        if !state.rrc.is_served() && !self.handover.forwarding {
            // It goes to a cell that the UE has left.
            drops.dropped(packet, DropReason::Loss);
            return;
        }
        state.bearers.enqueue_downlink(packet, now, drops);
        if state.rrc.is_served() {
            self.activate_downlink(ue);
        }
        self.note_discard(ue);
    }

    /// Accepts a packet sent by the host at `ue`.
    pub fn handle_uplink(&mut self, ue: u32, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.reach(now);
        let state = &mut self.ues[ue as usize];
        state.bearers.host.gate.enqueue(packet, now, drops);
        state.bearers.hand_down(Direction::Uplink, now, drops);
        self.check_uplink_buffers(ue, now);
        self.note_discard(ue);
    }

    /// Has [`Ran::poll_released`] return the packets of `ue` from now on.
    pub fn note_released(&mut self, ue: u32) {
        self.ues[ue as usize].bearers.note_released();
    }

    /// Returns the tag ([`aqm::Packet::tag`]) of a packet that has left the queue of the host at `ue` for the modem, which may
    /// since have dropped it; in no order. To be called after each call of [`Ran::handle_uplink`] and [`Ran::handle_timeout`], until there is none.
    #[inline]
    pub fn poll_released(&mut self, ue: u32) -> Option<u64> {
        self.ues[ue as usize].bearers.poll_released()
    }

    /// Returns whether the queue of the host at `ue` would drop a packet of `len` bytes and this priority after `ahead`, which
    /// is still to arrive there.
    pub fn is_host_full(&self, ue: u32, len: u32, priority: u8, ahead: Backlog) -> bool {
        self.ues[ue as usize].bearers.host.gate.is_full(len, priority, ahead)
    }

    /// Sets the fraction, 0 to 1, of the resource blocks without data on the carriers of `cell` that interferes with UEs of
    /// other cells from `now` on. May cause radio link failures.
    pub fn set_load(&mut self, cell: u32, load: f32, now: Time) {
        self.reach(now);
        for ue in 0..self.ues.len() as u32 {
            self.report_until_now(ue);
        }
        let secondary = self.cells[cell as usize].secondary;
        for cell in [Some(cell as usize), secondary].into_iter().flatten() {
            self.interference.set_background(cell, load);
        }
        for ue in 0..self.ues.len() as u32 {
            self.wake(ue, now);
        }
    }

    /// Sets the mean SINR in dB with which `ue` receives its serving cell from `now` on, regardless of interference and
    /// position; `None` restores the configured channel. [`Air::set_sinr`] describes the effect on the uplink and on
    /// fading; handovers still use the channel's received powers. Cells learn of it by the next reports, and the radio
    /// link may fail.
    pub fn set_sinr(&mut self, ue: u32, sinr_db: Option<f64>, now: Time) {
        self.reach(now);
        self.report_until_now(ue);
        self.ues[ue as usize].phy.air.set_sinr(sinr_db);
        self.wake(ue, now);
    }

    /// Makes the measurements due before a change, which does not affect them.
    fn report_until_now(&mut self, ue: u32) {
        let state = &mut self.ues[ue as usize];
        if state.rrc.is_served() {
            for cell in [Some(state.serving), state.secondary].into_iter().flatten() {
                let Cell { slots, mac, formats, grid, .. } = &self.cells[cell];
                state.report_channel(cell, (formats, &mac.link), grid.group, slots.next_at(self.next_tick));
            }
            let Cell { slots, mac, reports, .. } = &self.cells[state.serving];
            let next = slots.next_at(self.next_tick);
            state.sound(&mac.link, *reports, self.interference.uplink_factor(state.serving), next);
        }
        state.mac.invalidate_sinr();
    }

    /// Returns when [`Ran::handle_timeout`] is next due; `None` if nothing is pending.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.next_due().map(|tick| self.start_of(tick))
    }

    /// Runs all slots that begin by `now`.
    pub fn handle_timeout(&mut self, now: Time, drops: &mut impl Drops<P>, sink: &mut impl Sink) {
        let mut io = Io { drops, sink };
        while let Some(tick) = self.next_due()
            && self.start_of(tick) <= now
        {
            self.run(tick, &mut io);
        }
    }

    /// Returns the next delivered packet.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.outbox.pop_front()
    }

    /// Returns the number of packets accepted and neither delivered nor dropped yet, including those in
    /// [`Ran::poll_delivery`].
    pub fn held(&self) -> u64 {
        let inside = |ue: &Ue<P>| {
            let bearers = ue.bearers.data.iter().flat_map(|b| {
                [Direction::Downlink, Direction::Uplink]
                    .map(|way| b.rlc.queue(way).packets + b.rlc.in_transit(way) as u64)
            });
            let above = [Direction::Downlink, Direction::Uplink].map(|way| ue.bearers.above(way).packets);
            above.iter().sum::<u64>() + bearers.sum::<u64>()
        };
        self.outbox.len() as u64 + self.ues.iter().map(inside).sum::<u64>()
    }

    /// Returns the backlog above RLC: a UE's host queue, or in the eNodeB the queues above its bearers' buffers.
    pub fn above_backlog(&self, ue: u32, direction: Direction) -> aqm::Backlog {
        self.ues[ue as usize].bearers.above(direction)
    }

    /// Returns how many bytes the byte queue limits allow in RLC; `None` without such limits.
    pub fn quota(&self, ue: u32, direction: Direction) -> Option<u64> {
        self.ues[ue as usize].bearers.quota(direction)
    }

    /// Returns the backlog of a UE in RLC and PDCP in one direction that has not been sent in part.
    pub fn rlc_backlog(&self, ue: u32, direction: Direction) -> aqm::Backlog {
        self.ues[ue as usize].bearers.queued(direction)
    }

    /// Returns the bytes that PDCP and RLC hold for a UE in one direction ([`crate::rlc::Bearer::occupancy`]).
    pub fn occupancy(&self, ue: u32, direction: Direction) -> u64 {
        self.ues[ue as usize].bearers.data.iter().map(|bearer| bearer.rlc.occupancy(direction)).sum()
    }

    /// Returns a UE's counters.
    pub fn stats(&self, ue: u32) -> UeStats {
        self.ues[ue as usize].stats
    }

    /// Returns what the cell that serves a UE, or served it last, has done for it in the downlink since `since`, when the
    /// UE's counters were `before`.
    pub fn downlink_of_cell(&self, ue: u32, since: Time, before: DirectionStats) -> DirectionStats {
        let Ue { stats, rrc: Rrc { connected: (at, then), .. }, .. } = &self.ues[ue as usize];
        stats.downlink - if *at > since { *then } else { before }
    }

    /// Returns the RLC counters of a UE, over all its bearers.
    pub fn rlc_stats(&self, ue: u32, direction: Direction) -> crate::rlc::Stats {
        self.ues[ue as usize].bearers.data.iter().map(|bearer| bearer.rlc.stats(direction)).sum()
    }

    /// Returns the cell that serves a UE, if any.
    pub fn serving(&self, ue: u32) -> Option<u32> {
        let state = &self.ues[ue as usize];
        state.rrc.is_served().then_some(state.serving as u32)
    }

    /// Returns where `ue` is at `now`: metres east, metres north and metres above ground.
    pub fn position(&self, ue: u32, now: Time) -> [f64; 3] {
        let at = self.ues[ue as usize].phy.air.position(now);
        [at.x, at.y, at.z]
    }

    /// Returns the distance in metres of `ue` at `now` from the cell that serves it or served it last.
    pub fn distance_m(&self, ue: u32, now: Time) -> f64 {
        let Ue { phy, serving, .. } = &self.ues[ue as usize];
        phy.air.distance_m(*serving, now)
    }

    /// Returns the classes (QCI or 5QI) of the bearers of `ue`: the default bearer's, then the dedicated ones'.
    pub fn classes(&self, ue: u32) -> impl Iterator<Item = u8> {
        self.ues[ue as usize].bearers.data.iter().map(|bearer| bearer.qci)
    }

    /// Returns what `ue` receives at `now`.
    pub fn hears(&mut self, ue: u32, now: Time) -> Heard {
        let served = self.serving(ue).is_some();
        let state = &mut self.ues[ue as usize];
        state.phy.hear_at(now, &self.interference, &self.cells);
        let mut sinr = Sinr::default();
        state.phy.air.downlink(state.serving, now, &mut sinr);
        let formats = self.cells[state.serving].formats;
        let reported = state.mac.reported_scheme((&formats, state.slots), now, self.next_tick).map(|scheme| scheme.cqi);
        Heard {
            rsrp_dbm: state.phy.air.rsrp(state.serving, now),
            rsrq_db: state.phy.air.rsrq(state.serving, now),
            sinr_db: served.then(|| decibels(f64::from(sinr.mean()))),
            cqi: reported.unwrap_or_else(|| formats.cqi(&sinr, None)),
            is_los: state.phy.air.is_los(state.serving, now),
            beams: state.phy.air.beam(state.serving, now),
            blocked_db: state.phy.air.blocked_db(state.serving, now),
        }
    }

    /// Returns how the cell that serves a UE would send it a block now; `None` if no cell does.
    pub fn scheme(&mut self, ue: u32, now: Time) -> Option<Scheme> {
        self.serving(ue)?;
        let state = &mut self.ues[ue as usize];
        let Cell { formats, grid, .. } = self.cells[state.serving];
        let scheme = state.mac.reported_scheme((&formats, state.slots), now, self.next_tick).unwrap_or_else(|| {
            state.phy.hear_at(now, &self.interference, &self.cells);
            let mut sinr = Sinr::default();
            state.phy.air.downlink(state.serving, now, &mut sinr);
            adaptation::Scheme::first(&formats, &sinr)
        });
        let bits_per_block = f64::from(scheme.bits(&formats, grid.prbs)) / f64::from(grid.prbs);
        Some(Scheme { cqi: scheme.cqi, mcs: scheme.mcs, layers: scheme.layers, bits_per_block })
    }

    /// Returns the number in events of the secondary carrier of `cell` that `ue` uses when this cell serves it.
    pub fn secondary(&self, ue: u32, cell: u32) -> Option<u32> {
        self.secondary_of(cell).filter(|_| self.ues[ue as usize].mac.aggregates_in(&self.cells[cell as usize]))
    }

    /// Returns the number in events of the secondary carrier of `cell`.
    pub fn secondary_of(&self, cell: u32) -> Option<u32> {
        self.cells[cell as usize].secondary.map(|secondary| secondary as u32)
    }

    /// Returns the cell that serves a UE or served it last.
    pub fn last_serving(&self, ue: u32) -> u32 {
        self.ues[ue as usize].serving as u32
    }

    /// Returns how many resource blocks `cell` has had for data in `direction` in the slots that have begun before `now`,
    /// or by `now` if they were run. Flexible slots count for both directions.
    pub fn resource_blocks(&self, cell: u32, direction: Direction, now: Time) -> u64 {
        let Cell { slots, formats, grid, .. } = &self.cells[cell as usize];
        let is_past = now.as_nanos() / self.tick.as_nanos() + 1 < self.next_tick;
        let run = if is_past { 0 } else { slots.next_at(self.next_tick) };
        let begun = run.max(slots.next_after(now));
        formats.slots_with(direction, begun) * u64::from(grid.prbs)
    }

    /// Returns how many resource blocks `cell` has used in the downlink, of those that [`Ran::resource_blocks`] returns.
    pub fn used_blocks(&self, cell: u32) -> u64 {
        self.cells[cell as usize].used
    }

    /// Returns the number of resource blocks of a carrier.
    pub fn carrier_prbs(&self, cell: u32) -> u16 {
        self.cells[cell as usize].grid.prbs
    }

    /// Returns the number of UEs.
    pub fn ues(&self) -> u32 {
        self.ues.len() as u32
    }

    /// Returns the number of operations on UEs so far: a machine-independent measure of the computational cost.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Returns when `tick` begins.
    #[inline]
    fn start_of(&self, tick: u64) -> Time {
        Time::ZERO + self.tick * tick
    }

    /// Returns the next tick with pending work.
    #[inline]
    fn next_due(&self) -> Option<u64> {
        let mut first = None;
        for cell in self.cells.busy() {
            let slot = cell.slots.tick(cell.slots.next_at(self.next_tick));
            if slot == self.next_tick {
                // Nothing is earlier.
                return Some(slot);
            }
            first = first.into_iter().chain([slot]).min();
        }
        first.into_iter().chain(self.calendar.first()).min()
    }

    /// Advances the time to `now`: an idle network skips ticks.
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
        if self.interference.advance(now, &self.cells) {
            for ue in 0..self.ues.len() as u32 {
                self.note_measurement(ue, self.ues[ue as usize].slots.next_after(now));
            }
        }
        if self.has_configured {
            self.use_occasions(&mut due, tick);
        }
        self.find_senders(&due, now, tick);
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
                // It was not used.
                Kind::Occasion => {}
                Kind::SchedulingRequest => self.request_opportunity(ue, slot, io),
                Kind::SchedulingRequestReceived => self.request_received(ue, slot),
                Kind::RandomAccessDone => self.random_access_done(ue, entry.process, slot),
                Kind::RetxBsr => self.retx_bsr(ue, slot),
                Kind::Rlc => self.rlc_timeout(ue, now, io),
                Kind::Wake => self.wake_up(ue, slot),
                Kind::Measure => self.measure(ue, now, io),
                Kind::Mobility => self.mobility_step(ue, now, io),
            }
        }
        due.clear();
        self.due = due;
        self.interference.begin(tick);
        let mut from = 0;
        while let Some((cell, slot)) = self.cells.beginning(from, tick) {
            from = cell + 1;
            if self.cells[cell].mac.drx.is_some() {
                self.put_to_sleep(cell, slot);
            }
            if !self.cells[cell].downlink.active.ues().is_empty() {
                self.schedule_downlink(cell, slot, io);
            }
        }
        self.send_downlinks(io);
        let mut from = 0;
        while let Some((cell, slot)) = self.cells.beginning(from, tick) {
            from = cell + 1;
            if !self.cells[cell].uplink.active.ues().is_empty() {
                self.schedule_uplink(cell, slot);
            }
            self.cells[cell].reserved = crate::mac::blocks::Blocks::none();
        }
        self.cells.forget_idle();
    }

    /// Adds a calendar entry for `ue` in `slot` of its cell, or in the next slot if that has passed.
    #[inline]
    pub(crate) fn note(&mut self, slot: u64, ue: u32, kind: Kind, process: u8) {
        let slots = self.ues[ue as usize].slots;
        self.note_at(slots.tick(slot.max(slots.next_at(self.next_tick))), ue, kind, process);
    }

    /// Adds a calendar entry for `ue` at `tick`, which has not passed.
    #[inline]
    pub(crate) fn note_at(&mut self, tick: u64, ue: u32, kind: Kind, process: u8) {
        let epoch = self.ues[ue as usize].epoch;
        self.calendar.at(tick, Entry { ue, epoch, kind, process });
    }

    /// Updates the UE's state after its RLC or PDCP entities may have new data or timers.
    #[inline]
    pub(crate) fn touched<D: Drops<P>, S: Sink>(&mut self, ue: u32, now: Time, io: &mut Io<'_, D, S>) {
        let state = &mut self.ues[ue as usize];
        if state.bearers.data.iter().any(|b| b.rlc.failed().is_some()) {
            self.handle_link_failure(ue, now, io);
            return;
        }
        match state.bearers.srb.as_ref().and_then(|srb| srb.failed()) {
            Some(Direction::Uplink) => return self.handle_link_failure(ue, now, io),
            Some(Direction::Downlink) => self.handle_command_failure(ue, now, io),
            None => {}
        }
        let state = &mut self.ues[ue as usize];
        if state.bearers.uses_status {
            state.bearers.hand_down(Direction::Downlink, now, io.drops);
            state.bearers.hand_down(Direction::Uplink, now, io.drops);
        }
        if state.rrc.is_served() && state.bearers.has_data(Direction::Downlink, now) {
            self.activate_downlink(ue);
        }
        self.check_uplink_buffers(ue, now);
        self.note_rlc(ue);
    }

    /// Returns whether [`Ran::touched`] would change nothing of what the UE and its cell send.
    fn is_up_to_date(&self, ue: u32, now: Time) -> bool {
        let state = &self.ues[ue as usize];
        let Cell { reports, downlink, uplink, .. } = &self.cells[state.serving];
        let with_data = state.bearers.with_uplink_data(now);
        let is_known = match reports.include_buffers() {
            true => with_data == state.mac.had_data,
            false => with_data == 0 || uplink.active.ues().contains(&ue),
        };
        let is_active = !state.bearers.has_data(Direction::Downlink, now) || downlink.active.ues().contains(&ue);
        !state.rrc.is_served() || is_known && is_active
    }

    /// Marks `ue` as active in the downlink of the cells that send to it.
    #[inline]
    pub(crate) fn activate_downlink(&mut self, ue: u32) {
        let Ue { serving, secondary, .. } = self.ues[ue as usize];
        self.cells.activate(serving, Direction::Downlink, ue);
        if let Some(secondary) = secondary {
            self.cells.activate(secondary, Direction::Downlink, ue);
        }
    }

    /// Adds a calendar entry if an SDU that has arrived may be the next to be discarded: it changes no other timer.
    #[inline]
    fn note_discard(&mut self, ue: u32) {
        if self.ues[ue as usize].bearers.discards {
            self.note_rlc(ue);
        }
    }

    /// Adds a calendar entry for the next timer of RLC and PDCP.
    #[inline]
    pub(crate) fn note_rlc(&mut self, ue: u32) {
        let state = &mut self.ues[ue as usize];
        let signalling = state.bearers.srb.as_ref().and_then(|srb| srb.poll_timeout());
        let next = state.bearers.data.iter().filter_map(|b| b.rlc.poll_timeout()).chain(signalling).min();
        if let Some(next) = next.filter(|next| *next < state.bearers.noted) {
            let slot = state.slots.next_after(next).max(state.slots.next_at(self.next_tick));
            let due = state.slots.start(slot);
            if due < state.bearers.noted {
                state.bearers.noted = due;
                self.note(slot, ue, Kind::Rlc, 0);
            }
        }
    }

    fn rlc_timeout<D: Drops<P>, S: Sink>(&mut self, ue: u32, now: Time, io: &mut Io<'_, D, S>) {
        let Ran { ues, outbox, messages, .. } = self;
        let state = &mut ues[ue as usize];
        if state.bearers.noted != now {
            // It was replaced by an earlier one.
            return;
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
        self.touched(ue, now, io);
    }

    /// Passes the contents of a decoded block to RLC, and updates the UE's state.
    pub(crate) fn receive<D: Drops<P>, S: Sink>(
        &mut self,
        ue: u32,
        way: Direction,
        process: u8,
        now: Time,
        io: &mut Io<'_, D, S>,
    ) {
        let Ran { ues, outbox, messages, .. } = self;
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
        if may_answer {
            self.handle_messages(ue, now, io);
            self.touched(ue, now, io);
        } else {
            // Nothing but a receiver's timer has changed.
            debug_assert!(self.is_up_to_date(ue, now), "a block without acknowledgements changes nothing to be sent");
            self.note_rlc(ue);
        }
    }

    /// Informs RLC that HARQ has abandoned a block.
    pub(crate) fn give_up<D: Drops<P>>(&mut self, ue: u32, way: Direction, process: u8, drops: &mut D) {
        let Ue { bearers, mac, stats, .. } = &mut self.ues[ue as usize];
        let data = |parcel: &&Parcel| parcel.bearer != SRB;
        for parcel in mac.block(way, process).parcels().iter().filter(data) {
            bearers.data[usize::from(parcel.bearer)].rlc.lost(way, &parcel.block, drops);
        }
        stats.of(way).residual_errors += 1;
    }
}

/// Returns the longest time of which the slots and the decoding delays of all cells are multiples.
fn tick(cells: &[CellConfig]) -> Span {
    let spans = cells.iter().flat_map(|cell| [cell.mac.rat.slot(), cell.mac.decoding]);
    let mut tick = 0;
    for mut rest in spans.map(Span::as_nanos) {
        // Euclid's algorithm.
        while rest > 0 {
            (tick, rest) = (rest, tick % rest);
        }
    }
    Span::from_nanos(tick)
}

/// Emits an event if the sink listens.
#[inline]
pub(crate) fn emit<S: Sink>(sink: &mut S, now: Time, event: impl FnOnce() -> Event) {
    if S::LISTENS {
        sink.event(now, &event());
    }
}

/// Returns the cell received with the most power.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_divides_the_slots_and_the_decoding_delays_of_all_cells() {
        let of = |decoding: &[u64]| {
            let cell = |nanos: &u64| {
                let mut cell = CellConfig::default();
                cell.mac.decoding = Span::from_nanos(*nanos);
                cell
            };
            tick(&decoding.iter().map(cell).collect::<Vec<_>>()).as_nanos()
        };
        assert_eq!(of(&[3_000_000]), 1_000_000);
        assert_eq!(of(&[0]), 1_000_000);
        assert_eq!(of(&[3_000_000, 1_500_000, 750_000]), 250_000);
        assert_eq!([of(&[1_000_002]), of(&[1_000_001])], [2, 1]);
    }
}
