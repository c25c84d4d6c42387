//! The state of a network: its cells, its UEs, and the calendar of what is due.
//!
//! What happens to it is in the modules above: MAC's steps in [`crate::mac`], [`crate::delivery`] to bearers, and
//! [`crate::mobility`]. They are functions of a [`Network`], each of which calls only those of modules below its own.

use std::collections::VecDeque;
use std::sync::Arc;

use aqm::Packet;
use channel::{Air, Direction, Random, Site, Sites};
use units::{Span, Time};

use crate::calendar::{Calendar, Entry, Kind};
use crate::config::{CellConfig, Config};
use crate::handover::{Handover, Measurements};
use crate::mac::cell::{Cell, OnAir};
use crate::mac::cells::Cells;
use crate::mac::interference::Interference;
use crate::mac::sched::Candidate;
use crate::pdcp::Times;
use crate::signalling::Message;
use crate::stats::{Event, Sink};
use crate::ue::Ue;

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

/// The receivers of packets and events of one call.
pub(crate) struct Io<'a, D, S> {
    pub(crate) drops: &'a mut D,
    pub(crate) sink: &'a mut S,
}

/// See the module.
pub(crate) struct Network<P> {
    pub(crate) handover: Handover,
    /// The cells that may serve a UE, followed by their secondary carriers.
    pub(crate) cells: Cells,
    /// How many may serve a UE.
    pub(crate) serving_cells: usize,
    pub(crate) interference: Interference,
    /// Whether any cell has configured grants.
    pub(crate) has_configured: bool,
    pub(crate) ues: Vec<Ue<P>>,
    pub(crate) calendar: Calendar,
    /// The calendar's unit, of which all cells' slots and decoding delays are multiples.
    pub(crate) tick: Span,
    /// The first tick not yet processed.
    pub(crate) next_tick: u64,
    pub(crate) outbox: VecDeque<Delivery<P>>,
    pub(crate) work: u64,
    /// Reused buffers.
    pub(crate) due: Vec<Entry>,
    pub(crate) candidates: Vec<Candidate>,
    /// UEs, processes and resource blocks of repetitions in the uplink.
    pub(crate) repetitions: Vec<(u32, u8, u16)>,
    pub(crate) on_air: Vec<OnAir>,
    pub(crate) messages: Vec<Message>,
}

impl<P: Packet> Network<P> {
    /// Creates the network of `config` at time zero, with all UEs connected and idle. `random` returns each stream once. Nothing
    /// is noted yet.
    ///
    /// # Panics
    /// See [`crate::Ran::new`].
    pub(crate) fn new(config: &Config, mut random: impl FnMut(Stream) -> Random) -> Network<P> {
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
        Network {
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
        }
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
    pub(crate) fn note_discard(&mut self, ue: u32) {
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

    /// Returns when `tick` begins.
    #[inline]
    pub(crate) fn start_of(&self, tick: u64) -> Time {
        Time::ZERO + self.tick * tick
    }

    /// Returns the next tick with pending work.
    #[inline]
    pub(crate) fn next_due(&self) -> Option<u64> {
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
