//! The network's interface, and the processing of one tick of its calendar.

use aqm::{Backlog, DropReason, Drops, Packet};
use channel::{Direction, Random, Sinr};
use units::{Span, Time};

use crate::calendar::{Entry, Kind};
use crate::config::Config;
use crate::delivery;
use crate::mac::adaptation::{self, decibels};
use crate::mac::blocks::Blocks;
use crate::mac::cell::Cell;
use crate::mac::{access, downlink, occasions, sleep, uplink};
use crate::mobility::{self, Refused};
use crate::network::{Delivery, Io, Network, Stream};
use crate::stats::{DirectionStats, Sink, UeStats};
use crate::ue::{Rrc, Ue};

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

/// Cells and their UEs. See the crate's documentation for the order of calls.
pub struct Ran<P> {
    pub(crate) network: Network<P>,
}

impl<P: Packet> Ran<P> {
    /// Creates the network of `config` at time zero, with all UEs connected and idle. `random` returns each stream
    /// once.
    ///
    /// # Panics
    /// If there is no cell, a UE has no bearer or more than 8, its cell does not exist, decoding takes longer than the
    /// technology allows (3 ms in LTE), a TDD pattern is invalid, or [`crate::Drx`] has invalid cycles: the code that reads
    /// the configuration checks that.
    pub fn new(config: &Config, random: impl FnMut(Stream) -> Random) -> Ran<P> {
        let mut network = Network::new(config, random);
        for ue in 0..network.ues.len() as u32 {
            occasions::configure_grant(&mut network, ue, Time::ZERO);
            // Spread over the period, so that UEs do not all measure in the same slot.
            let period = network.ues[ue as usize].slots.spanning(network.handover.period).max(1);
            mobility::note_measurement(&mut network, ue, u64::from(ue) % period);
        }
        Ran { network }
    }

    /// Accepts a packet for `ue` at the cell that serves it, or served it last.
    pub fn handle_downlink(&mut self, ue: u32, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.network.reach(now);
        let state = &mut self.network.ues[ue as usize];
        if !state.rrc.is_served() && !self.network.handover.forwarding {
            // It goes to a cell that the UE has left.
            drops.dropped(packet, DropReason::Loss);
            return;
        }
        state.bearers.enqueue_downlink(packet, now, drops);
        if state.rrc.is_served() {
            self.network.activate_downlink(ue);
        }
        self.network.note_discard(ue);
    }

    /// Accepts a packet sent by the host at `ue`.
    pub fn handle_uplink(&mut self, ue: u32, packet: P, now: Time, drops: &mut impl Drops<P>) {
        self.network.reach(now);
        let state = &mut self.network.ues[ue as usize];
        state.bearers.host.gate.enqueue(packet, now, drops);
        state.bearers.hand_down(Direction::Uplink, now, drops);
        access::check_uplink_buffers(&mut self.network, ue, now);
        self.network.note_discard(ue);
    }

    /// Has [`Ran::poll_released`] return the packets of `ue` from now on.
    pub fn note_released(&mut self, ue: u32) {
        self.network.ues[ue as usize].bearers.note_released();
    }

    /// Returns the tag ([`aqm::Packet::tag`]) of a packet that has left the queue of the host at `ue` for the modem, which may
    /// since have dropped it; in no order. To be called after each call of [`Ran::handle_uplink`] and [`Ran::handle_timeout`], until there is none.
    #[inline]
    pub fn poll_released(&mut self, ue: u32) -> Option<u64> {
        self.network.ues[ue as usize].bearers.poll_released()
    }

    /// Returns whether the queue of the host at `ue` would drop a packet of `len` bytes and this priority after `ahead`, which
    /// is still to arrive there.
    pub fn is_host_full(&self, ue: u32, len: u32, priority: u8, ahead: Backlog) -> bool {
        self.network.ues[ue as usize].bearers.host.gate.is_full(len, priority, ahead)
    }

    /// Sets the fraction, 0 to 1, of the resource blocks without data on the carriers of `cell` that interferes with UEs of
    /// other cells from `now` on. May cause radio link failures.
    pub fn set_load(&mut self, cell: u32, load: f32, now: Time) {
        self.network.reach(now);
        for ue in 0..self.network.ues.len() as u32 {
            self.report_until_now(ue);
        }
        let secondary = self.network.cells[cell as usize].secondary;
        for cell in [Some(cell as usize), secondary].into_iter().flatten() {
            self.network.interference.set_background(cell, load);
        }
        for ue in 0..self.network.ues.len() as u32 {
            mobility::wake(&mut self.network, ue, now);
        }
    }

    /// Sets the mean SINR in dB with which `ue` receives its serving cell from `now` on, regardless of interference and
    /// position; `None` restores the configured channel. [`Air::set_sinr`] describes the effect on the uplink and on
    /// fading; handovers still use the channel's received powers. Cells learn of it by the next reports, and the radio
    /// link may fail.
    pub fn set_sinr(&mut self, ue: u32, sinr_db: Option<f64>, now: Time) {
        self.network.reach(now);
        self.report_until_now(ue);
        self.network.ues[ue as usize].phy.air.set_sinr(sinr_db);
        mobility::wake(&mut self.network, ue, now);
    }

    /// Makes the measurements due before a change, which does not affect them.
    fn report_until_now(&mut self, ue: u32) {
        let state = &mut self.network.ues[ue as usize];
        if state.rrc.is_served() {
            for cell in [Some(state.serving), state.secondary].into_iter().flatten() {
                let Cell { slots, mac, formats, grid, .. } = &self.network.cells[cell];
                state.report_channel(cell, (formats, &mac.link), grid.group, slots.next_at(self.network.next_tick));
            }
            let Cell { slots, mac, reports, .. } = &self.network.cells[state.serving];
            let next = slots.next_at(self.network.next_tick);
            state.sound(&mac.link, *reports, self.network.interference.uplink_factor(state.serving), next);
        }
        state.mac.invalidate_sinr();
    }

    /// Returns when [`Ran::handle_timeout`] is next due; `None` if nothing is pending.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.network.next_due().map(|tick| self.network.start_of(tick))
    }

    /// Runs all slots that begin by `now`.
    pub fn handle_timeout(&mut self, now: Time, drops: &mut impl Drops<P>, sink: &mut impl Sink) {
        let mut io = Io { drops, sink };
        while let Some(tick) = self.network.next_due()
            && self.network.start_of(tick) <= now
        {
            self.run(tick, &mut io);
        }
    }

    /// Returns the next delivered packet.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<Delivery<P>> {
        self.network.outbox.pop_front()
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
        self.network.outbox.len() as u64 + self.network.ues.iter().map(inside).sum::<u64>()
    }

    /// Returns the backlog above RLC: a UE's host queue, or in the eNodeB the queues above its bearers' buffers.
    pub fn above_backlog(&self, ue: u32, direction: Direction) -> aqm::Backlog {
        self.network.ues[ue as usize].bearers.above(direction)
    }

    /// Returns how many bytes the byte queue limits allow in RLC; `None` without such limits.
    pub fn quota(&self, ue: u32, direction: Direction) -> Option<u64> {
        self.network.ues[ue as usize].bearers.quota(direction)
    }

    /// Returns the backlog of a UE in RLC and PDCP in one direction that has not been sent in part.
    pub fn rlc_backlog(&self, ue: u32, direction: Direction) -> aqm::Backlog {
        self.network.ues[ue as usize].bearers.queued(direction)
    }

    /// Returns the bytes that PDCP and RLC hold for a UE in one direction ([`crate::rlc::Bearer::occupancy`]).
    pub fn occupancy(&self, ue: u32, direction: Direction) -> u64 {
        self.network.ues[ue as usize].bearers.data.iter().map(|bearer| bearer.rlc.occupancy(direction)).sum()
    }

    /// Returns a UE's counters.
    pub fn stats(&self, ue: u32) -> UeStats {
        self.network.ues[ue as usize].stats
    }

    /// Returns what the cell that serves a UE, or served it last, has done for it in the downlink since `since`, when the
    /// UE's counters were `before`.
    pub fn downlink_of_cell(&self, ue: u32, since: Time, before: DirectionStats) -> DirectionStats {
        let Ue { stats, rrc: Rrc { connected: (at, then), .. }, .. } = &self.network.ues[ue as usize];
        stats.downlink - if *at > since { *then } else { before }
    }

    /// Returns the RLC counters of a UE, over all its bearers.
    pub fn rlc_stats(&self, ue: u32, direction: Direction) -> crate::rlc::Stats {
        self.network.ues[ue as usize].bearers.data.iter().map(|bearer| bearer.rlc.stats(direction)).sum()
    }

    /// Returns the cell that serves a UE, if any.
    pub fn serving(&self, ue: u32) -> Option<u32> {
        let state = &self.network.ues[ue as usize];
        state.rrc.is_served().then_some(state.serving as u32)
    }

    /// Returns where `ue` is at `now`: metres east, metres north and metres above ground.
    pub fn position(&self, ue: u32, now: Time) -> [f64; 3] {
        let at = self.network.ues[ue as usize].phy.air.position(now);
        [at.x, at.y, at.z]
    }

    /// Returns the distance in metres of `ue` at `now` from the cell that serves it or served it last.
    pub fn distance_m(&self, ue: u32, now: Time) -> f64 {
        let Ue { phy, serving, .. } = &self.network.ues[ue as usize];
        phy.air.distance_m(*serving, now)
    }

    /// Returns the classes (QCI or 5QI) of the bearers of `ue`: the default bearer's, then the dedicated ones'.
    pub fn classes(&self, ue: u32) -> impl Iterator<Item = u8> {
        self.network.ues[ue as usize].bearers.data.iter().map(|bearer| bearer.qci)
    }

    /// Returns what `ue` receives at `now`.
    pub fn hears(&mut self, ue: u32, now: Time) -> Heard {
        let served = self.serving(ue).is_some();
        let state = &mut self.network.ues[ue as usize];
        state.phy.hear_at(now, &self.network.interference, &self.network.cells);
        let mut sinr = Sinr::default();
        state.phy.air.downlink(state.serving, now, &mut sinr);
        let formats = self.network.cells[state.serving].formats;
        let reported =
            state.mac.reported_scheme((&formats, state.slots), now, self.network.next_tick).map(|scheme| scheme.cqi);
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
        let state = &mut self.network.ues[ue as usize];
        let Cell { formats, grid, .. } = self.network.cells[state.serving];
        let scheme =
            state.mac.reported_scheme((&formats, state.slots), now, self.network.next_tick).unwrap_or_else(|| {
                state.phy.hear_at(now, &self.network.interference, &self.network.cells);
                let mut sinr = Sinr::default();
                state.phy.air.downlink(state.serving, now, &mut sinr);
                adaptation::Scheme::first(&formats, &sinr)
            });
        let bits_per_block = f64::from(scheme.bits(&formats, grid.prbs)) / f64::from(grid.prbs);
        Some(Scheme { cqi: scheme.cqi, mcs: scheme.mcs, layers: scheme.layers, bits_per_block })
    }

    /// Returns the number in events of the secondary carrier of `cell` that `ue` uses when this cell serves it.
    pub fn secondary(&self, ue: u32, cell: u32) -> Option<u32> {
        self.secondary_of(cell)
            .filter(|_| self.network.ues[ue as usize].mac.aggregates_in(&self.network.cells[cell as usize]))
    }

    /// Returns the number in events of the secondary carrier of `cell`.
    pub fn secondary_of(&self, cell: u32) -> Option<u32> {
        self.network.cells[cell as usize].secondary.map(|secondary| secondary as u32)
    }

    /// Returns the cell that serves a UE or served it last.
    pub fn last_serving(&self, ue: u32) -> u32 {
        self.network.ues[ue as usize].serving as u32
    }

    /// Returns how many resource blocks `cell` has had for data in `direction` in the slots that have begun before `now`,
    /// or by `now` if they were run. Flexible slots count for both directions.
    pub fn resource_blocks(&self, cell: u32, direction: Direction, now: Time) -> u64 {
        let Cell { slots, formats, grid, .. } = &self.network.cells[cell as usize];
        let is_past = now.as_nanos() / self.network.tick.as_nanos() + 1 < self.network.next_tick;
        let run = if is_past { 0 } else { slots.next_at(self.network.next_tick) };
        let begun = run.max(slots.next_after(now));
        formats.slots_with(direction, begun) * u64::from(grid.prbs)
    }

    /// Returns how many resource blocks `cell` has used in the downlink, of those that [`Ran::resource_blocks`] returns.
    pub fn used_blocks(&self, cell: u32) -> u64 {
        self.network.cells[cell as usize].used
    }

    /// Returns the number of resource blocks of a carrier.
    pub fn carrier_prbs(&self, cell: u32) -> u16 {
        self.network.cells[cell as usize].grid.prbs
    }

    /// Returns the number of UEs.
    pub fn ues(&self) -> u32 {
        self.network.ues.len() as u32
    }

    /// Returns the number of operations on UEs so far: a machine-independent measure of the computational cost.
    pub fn work(&self) -> u64 {
        self.network.work
    }

    fn run<D: Drops<P>, S: Sink>(&mut self, tick: u64, io: &mut Io<'_, D, S>) {
        let network = &mut self.network;
        let now = network.start_of(tick);
        let mut due = core::mem::take(&mut network.due);
        network.calendar.take(tick, &mut due);
        network.next_tick = tick + 1;
        if network.interference.advance(now, &network.cells) {
            for ue in 0..network.ues.len() as u32 {
                let slot = network.ues[ue as usize].slots.next_after(now);
                mobility::note_measurement(network, ue, slot);
            }
        }
        if network.has_configured {
            occasions::use_occasions(network, &mut due, tick);
        }
        uplink::find_senders(network, &due, now, tick);
        for entry in &due {
            handle(network, entry, tick, io);
        }
        due.clear();
        network.due = due;
        network.interference.begin(tick);
        let mut from = 0;
        while let Some((cell, slot)) = network.cells.beginning(from, tick) {
            from = cell + 1;
            if network.cells[cell].mac.drx.is_some() {
                sleep::put_to_sleep(network, cell, slot);
            }
            if !network.cells[cell].downlink.active.ues().is_empty() {
                downlink::schedule_downlink(network, cell, slot, io);
            }
        }
        downlink::send_downlinks(network, io);
        let mut from = 0;
        while let Some((cell, slot)) = network.cells.beginning(from, tick) {
            from = cell + 1;
            if !network.cells[cell].uplink.active.ues().is_empty() {
                uplink::schedule_uplink(network, cell, slot);
            }
            network.cells[cell].reserved = Blocks::none();
        }
        network.cells.forget_idle();
    }

    /// Returns how long `ue` has been outside its Active Time in slots of its cells that have begun before `now`
    /// ([`crate::Drx`]). Time without a cell does not count.
    pub fn time_asleep(&mut self, ue: u32, now: Time) -> Span {
        if self.network.ues[ue as usize].mac.drx.is_some() {
            self.network.reach(now);
        }
        let state = &mut self.network.ues[ue as usize];
        // Slots that have not been run may still extend the Active Time.
        let slot = state.slots.next_after(now).min(state.slots.next_at(self.network.next_tick));
        let asleep = state.mac.drx_at(slot).map_or(0, |drx| drx.asleep());
        state.mac.asleep_before + state.slots.length() * asleep
    }

    /// Hands `ue` over to `cell` as if a measurement report had arrived at `now`: the command is sent after the
    /// preparation, and may be lost; the target may be out of reach.
    ///
    /// The handover rules remain in force. A UE that receives another cell better than its new one is handed over again
    /// by A3, which must be disabled for it to stay.
    pub fn hand_over(&mut self, ue: u32, cell: u32, now: Time, sink: &mut impl Sink) -> Result<(), Refused> {
        mobility::hand_over(&mut self.network, ue, cell, now, sink)
    }
}

/// Handles an entry of the calendar that is due at `tick`.
#[inline]
fn handle<P: Packet, D: Drops<P>, S: Sink>(network: &mut Network<P>, entry: &Entry, tick: u64, io: &mut Io<'_, D, S>) {
    let Entry { ue, epoch, kind, process } = *entry;
    let state = &network.ues[ue as usize];
    if state.epoch != epoch {
        return;
    }
    let (now, slot) = (network.start_of(tick), state.slots.next_at(tick));
    network.work += 1;
    // Whether bearers may have new data or timers, or messages have arrived.
    let is_touched = match kind {
        Kind::DownlinkDecoded => downlink::downlink_decoded(network, ue, process, now, io),
        Kind::DownlinkFeedback => downlink::downlink_feedback(network, ue, process, now, io),
        Kind::UplinkDecoded => uplink::uplink_decoded(network, ue, process, now, io),
        Kind::UplinkNack => uplink::uplink_nack(network, ue, process, slot, io),
        Kind::Rlc => delivery::rlc_timeout(network, ue, now, io),
        Kind::UplinkTransmit => return uplink::uplink_transmit(network, ue, process, slot, io),
        // It was not used.
        Kind::Occasion => return,
        Kind::SchedulingRequest => return access::request_opportunity(network, ue, slot, io),
        Kind::SchedulingRequestReceived => return access::request_received(network, ue, slot),
        Kind::RandomAccessDone => return access::random_access_done(network, ue, process, slot),
        Kind::RetxBsr => return access::retx_bsr(network, ue, slot),
        Kind::Wake => return sleep::wake_up(network, ue, slot),
        Kind::Measure => return mobility::measure(network, ue, now, io),
        Kind::Mobility => return mobility::mobility_step(network, ue, now, io),
    };
    if is_touched {
        mobility::handle_messages(network, ue, now, io);
        mobility::touched(network, ue, now, io);
    }
}
