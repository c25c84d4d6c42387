//! Connected-mode discontinuous reception (C-DRX): when a UE listens to its cell.
//!
//! Sources: 36.321 5.7 and 38.321 5.7; the timers' values, 36.331 and 38.331 (`DRX-Config`). A UE monitors the control
//! channel in its Active Time only, and a cell sends it nothing outside it. The Active Time is the union of
//! - the on-duration at the beginning of each cycle, long or short;
//! - drx-InactivityTimer, which each new block of either direction restarts;
//! - drx-RetransmissionTimer of each HARQ process: of the downlink, after a block that was not decoded; of NR's uplink,
//!   after every block, because the UE does not know; in LTE's uplink, the TTI of a block's acknowledgement, in which a
//!   grant for its repetition can occur;
//! - the time from a scheduling request until its buffer status report is sent;
//! - the end of random access, until the resulting grant, and in a new cell the time until its first assignment or
//!   grant.
//!
//! Requests, random access and acknowledgements are sent outside the Active Time as well.
//!
//! A slot belongs to a timer that runs at its beginning, where the control channel is: a timer of n slots that is started
//! by an assignment in slot k runs in slots k + 1 to k + n, and an on-duration from its first slot on.
//!
//! Nothing happens in a UE that sleeps: [`State`] holds when timers were started, from which it answers whether a slot is
//! in the Active Time, and which is next.
//!
//! Deviations:
//! 1. No DRX Command, no drx-SlotOffset, no adaptation of the cycle by the cell, and no secondary group.
//! 2. The cell knows the UE's Active Time, except that it learns of a request when it receives it, and of a block that
//!    was not decoded when it receives the acknowledgement.
//! 3. Channel reports and sounding are sent in on-durations and while drx-InactivityTimer runs; in the standard, also in
//!    the other parts of the Active Time, and not in its first 4 ms if that is unforeseen. Their slots are aligned with
//!    the on-duration. Measurements for mobility and radio link monitoring keep their period, which the standard extends
//!    to the cycle (36.133 8.1.2.2.1.2).
//! 4. After an acknowledged uplink block, LTE's UE does not listen for grants to repeat it.
//! 5. After a re-establishment, drx-InactivityTimer runs: its messages belong to its duration.

use channel::Direction;
use units::Span;

use crate::mac::harq;
use crate::rat::Timing;
use crate::slots::{Slots, at_or_after, at_or_before};

/// Symbols of a slot, the unit of NR's HARQ RTT timers.
const SYMBOLS: u64 = 14;

/// mac-ContentionResolutionTimer, its longest value.
const CONTENTION: Span = Span::from_millis(64);

/// No slot.
pub(crate) const NEVER: u64 = u64::MAX;

/// The parameters of discontinuous reception (`DRX-Config` of 36.331 and 38.331).
///
/// In a TDD cell, an on-duration that is shorter than the pattern may have no slot of the downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drx {
    /// Time at the beginning of each cycle in which the UE listens (`drx-onDurationTimer`); at least a slot.
    pub on_duration: Span,
    /// Time for which the UE listens after a new block (`drx-InactivityTimer`).
    pub inactivity: Span,
    /// The long cycle (`drx-LongCycle`), in whole milliseconds.
    pub cycle: Span,
    /// Beginning of the long cycle in each UE, in whole milliseconds, shorter than the cycle (`drx-StartOffset`); `None`
    /// spreads the UEs over the cycle.
    pub offset: Option<Span>,
    /// The cycle used for some time after drx-InactivityTimer has expired.
    pub short: Option<ShortCycle>,
    /// Slots in which the UE listens for the retransmission of a downlink block (`drx-RetransmissionTimerDL`).
    pub retransmission: u16,
    /// NR: likewise for grants to repeat an uplink block (`drx-RetransmissionTimerUL`).
    pub uplink_retransmission: u16,
    /// NR: symbols from a downlink block's acknowledgement until the UE listens for its retransmission
    /// (`drx-HARQ-RTT-TimerDL`). In LTE, this begins eight TTIs after the block.
    pub harq_rtt: u8,
    /// NR: symbols from an uplink block until the UE listens for a grant to repeat it (`drx-HARQ-RTT-TimerUL`).
    pub uplink_harq_rtt: u8,
}

/// The short cycle of [`Drx`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortCycle {
    /// Its length (`drx-ShortCycle`), in whole milliseconds; the long cycle is a multiple of it.
    pub cycle: Span,
    /// Number of short cycles before the long cycle is used (`drx-ShortCycleTimer`, 1 to 16).
    pub count: u8,
}

impl Drx {
    /// Returns whether the cycles are whole milliseconds that fit each other, and the on-duration has a slot.
    pub(crate) fn is_valid(&self) -> bool {
        let whole = |span: Span| span.as_nanos().is_multiple_of(Span::from_millis(1).as_nanos());
        let fits = |short: ShortCycle| {
            short.cycle > Span::ZERO
                && short.count > 0
                && whole(short.cycle)
                && self.cycle.as_nanos().is_multiple_of(short.cycle.as_nanos())
        };
        self.on_duration > Span::ZERO
            && self.cycle > Span::ZERO
            && whole(self.cycle)
            && self.offset.is_none_or(|offset| whole(offset) && offset < self.cycle)
            && self.short.is_none_or(fits)
    }
}

/// Maximum number of processes of a UE in one direction.
const PROCESSES: usize = harq::CARRIERS * harq::PROCESSES as usize;

/// The retransmission timers of one direction, by HARQ process.
#[derive(Clone, Debug, Default)]
struct Timers {
    /// Bit p: the timer of process p has been started, and has not expired when this was last looked at. The downlink's
    /// processes are those of all carriers ([`super::harq::number`]).
    started: u32,
    /// The first slot in which each runs, and the first in which it does not run any more.
    spans: [(u64, u64); PROCESSES],
}

impl Timers {
    #[inline]
    fn start(&mut self, process: u8, span: (u64, u64)) {
        self.spans[usize::from(process)] = span;
        self.started |= 1 << process;
    }

    /// Stops the timer of `process` after `slot`.
    #[inline]
    fn stop(&mut self, process: u8, slot: u64) {
        let until = &mut self.spans[usize::from(process)].1;
        *until = (*until).min(slot + 1);
    }

    /// Forgets those that have expired by `slot`.
    fn expire(&mut self, slot: u64) {
        let mut left = self.started;
        while left != 0 {
            let process = left.trailing_zeros();
            left &= left - 1;
            if self.spans[process as usize].1 <= slot {
                self.started &= !(1 << process);
            }
        }
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut left = self.started;
        core::iter::from_fn(move || {
            let process = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(self.spans[process])
        })
    }
}

/// The timers of a UE. All times and durations are slots of its cell; time never goes back.
#[derive(Clone, Debug)]
pub(crate) struct State {
    on: u64,
    inactivity: u64,
    cycle: u64,
    /// The beginning of the cycles, and the phase of the UE's reports.
    pub(crate) offset: u64,
    /// The short cycle, 0 without one, and how long it is used.
    short: (u64, u64),
    /// drx-HARQ-RTT-Timer and drx-RetransmissionTimer by direction.
    rtt: [u64; 2],
    retransmission: [u64; 2],
    /// DRX was configured in this slot.
    began: u64,
    /// The first slot in which drx-InactivityTimer does not run any more; 0 if it was never started.
    expiry: u64,
    /// The first slot in which it ran without a pause until `expiry`.
    busy_from: u64,
    /// The last interval before in which it ran.
    busy_before: (u64, u64),
    /// When the short cycle was used before `expiry`.
    short_before: (u64, u64),
    /// The end of an on-duration that began before that.
    on_before: u64,
    timers: [Timers; 2],
    /// When each downlink process's drx-HARQ-RTT-Timer expires.
    rtt_ends: [u64; PROCESSES],
    /// The UE listens until this slot, for the answer to its random access.
    access: u64,
    /// The slot of the only valid calendar entry to wake it, if it sleeps with something to do.
    pub(crate) wake: u64,
    /// Slots outside the Active Time, up to the slot `counted`.
    asleep: u64,
    counted: u64,
}

impl State {
    /// Creates the state of the UE number `index`, which is configured by a cell of this `timing` in slot `began`.
    pub(crate) fn new(config: &Drx, (timing, slots): (Timing, Slots), index: u32, began: u64) -> State {
        let millisecond = Span::from_millis(1);
        // A multiplicative hash by the golden ratio spreads any number of successive UEs.
        let spread = || {
            let place = u64::from(index.wrapping_mul(2_654_435_769));
            (config.cycle.as_nanos() / millisecond.as_nanos() * place) >> 32
        };
        let offset = config.offset.unwrap_or_else(|| millisecond * spread());
        let short = config.short.map_or((0, 0), |short| {
            let cycle = slots.spanning(short.cycle);
            (cycle, cycle * u64::from(short.count))
        });
        let symbols = |symbols: u8| u64::from(symbols).div_ceil(SYMBOLS);
        let uplink = timing.uplink_listening(config.uplink_retransmission);
        State {
            on: slots.spanning(config.on_duration),
            inactivity: slots.spanning(config.inactivity),
            cycle: slots.spanning(config.cycle),
            offset: slots.spanning(offset),
            short,
            rtt: [symbols(config.harq_rtt), symbols(config.uplink_harq_rtt)],
            retransmission: [config.retransmission.into(), uplink],
            began,
            expiry: 0,
            busy_from: 0,
            busy_before: (0, 0),
            short_before: (0, 0),
            on_before: 0,
            timers: Default::default(),
            rtt_ends: [0; PROCESSES],
            access: 0,
            wake: NEVER,
            asleep: 0,
            counted: began,
        }
    }

    /// A new block is assigned or granted in `slot`, the first one of an uplink `grant` or of the downlink.
    pub(crate) fn new_block(&mut self, slot: u64, way: Direction) {
        if self.expiry <= slot {
            self.on_before = self.on_end(slot);
            self.busy_before = (self.busy_from, self.expiry);
            self.busy_from = slot + 1;
            self.short_before = self.short_phase();
        }
        self.expiry = slot + 1 + self.inactivity;
        // Contention is resolved by a grant; in a new cell, any new block ends the access.
        if way == Direction::Uplink || self.access == NEVER {
            self.access = 0;
        }
    }

    /// A downlink block of `process` is assigned in `slot`.
    pub(crate) fn assigned(&mut self, timing: Timing, process: u8, slot: u64) {
        self.timers[Direction::Downlink as usize].stop(process, slot);
        self.rtt_ends[usize::from(process)] =
            timing.downlink_retransmission(slot, self.rtt[Direction::Downlink as usize]);
    }

    /// The cell learns in `slot` that the downlink block of `process` was not decoded.
    pub(crate) fn failed(&mut self, process: u8, slot: u64) {
        let from = self.rtt_ends[usize::from(process)];
        let until = from + self.retransmission[Direction::Downlink as usize];
        self.timers[Direction::Downlink as usize].start(process, (from.max(slot), until));
    }

    /// A grant for `process` is made in `slot`.
    pub(crate) fn granted(&mut self, process: u8, slot: u64) {
        self.timers[Direction::Uplink as usize].stop(process, slot);
    }

    /// The uplink block of `process` is sent in `slot`, and may be repeated.
    pub(crate) fn transmitted(&mut self, timing: Timing, process: u8, slot: u64) {
        let way = Direction::Uplink as usize;
        let from = timing.uplink_retransmission(slot, self.rtt[way]);
        self.timers[way].start(process, (from, from + self.retransmission[way]));
    }

    /// The UE has been heard in random access, and listens for a grant from `slot` on.
    pub(crate) fn accessed(&mut self, slot: u64, slots: Slots) {
        self.access = slot + slots.spanning(CONTENTION);
    }

    /// The UE listens until its first new block in this cell.
    pub(crate) fn arrived(&mut self) {
        self.access = NEVER;
    }

    /// Returns whether `slot` is in the Active Time, with a request pending since slot `requested`.
    #[inline]
    pub(crate) fn is_active(&self, slot: u64, requested: u64) -> bool {
        slot < self.expiry
            || slot >= requested
            || slot < self.access
            || slot < self.on_end(slot)
            || self.timers.iter().any(|timers| timers.iter().any(|(from, until)| (from..until).contains(&slot)))
    }

    /// Returns the first slot from `slot` on in the Active Time.
    pub(crate) fn next_active(&self, slot: u64, requested: u64) -> u64 {
        if self.is_active(slot, requested) {
            return slot;
        }
        let timers = self.timers.iter().flat_map(Timers::iter);
        let timers = timers.filter(|(from, until)| *from > slot && from < until).map(|(from, _)| from);
        timers.fold(self.next_start(slot).min(requested), u64::min)
    }

    /// Returns the first slot after `slot`, which is in the Active Time, that is not, or a slot from `limit` on.
    fn active_until(&self, slot: u64, requested: u64, limit: u64) -> u64 {
        if slot >= requested {
            return limit;
        }
        let mut end = slot;
        loop {
            let timers = self.timers.iter().flat_map(Timers::iter);
            let timers = timers.filter(|(from, until)| (*from..*until).contains(&end)).map(|(_, until)| until);
            let all = timers.chain([self.expiry, self.access, self.on_end(end)]);
            let next = all.fold(end, u64::max);
            if next == end || next >= limit {
                return next;
            }
            end = next;
        }
    }

    /// Counts the slots before `slot` outside the Active Time, before a change of the state in `slot`; `requested` as
    /// in [`State::is_active`].
    pub(crate) fn count(&mut self, slot: u64, requested: u64) {
        let mut at = self.counted;
        while at < slot {
            if let Some(asleep) = self.long_sleep(at, slot, requested) {
                self.asleep += asleep;
                break;
            }
            let next = self.next_active(at, requested).min(slot);
            self.asleep += next - at;
            at = self.active_until(next, requested, slot);
        }
        self.counted = self.counted.max(slot);
        for timers in &mut self.timers {
            timers.expire(slot);
        }
    }

    /// Returns the slots outside the Active Time of `from..to` if there is nothing but the long cycle.
    fn long_sleep(&self, from: u64, to: u64, requested: u64) -> Option<u64> {
        let timers = self.timers.iter().flat_map(Timers::iter).map(|(_, until)| until);
        let ends = timers.chain([self.expiry, self.access, self.on_before, self.short_phase().1, self.short_before.1]);
        // An on-duration that began in a short cycle may have lasted longer.
        if requested < to || ends.max().is_some_and(|end| from < end.saturating_add(self.on)) {
            return None;
        }
        let first = at_or_after(self.began, self.cycle, self.offset);
        let on = self.on.min(self.cycle);
        let listening = |slot: u64| {
            let slots = slot.saturating_sub(first);
            slots / self.cycle * on + (slots % self.cycle).min(on)
        };
        Some(to - from - (listening(to) - listening(from)))
    }

    /// Returns the slots outside the Active Time that were counted.
    pub(crate) fn asleep(&self) -> u64 {
        self.asleep
    }

    /// Returns the newest of the slots up to `slot` with this phase and period in which the UE reports, if it is found soon.
    pub(crate) fn newest_report(&self, slot: u64, period: u64, phase: u64) -> Option<u64> {
        let mut at = at_or_before(slot, period, phase)?;
        for _ in 0..16 {
            let awake = self.last_reporting(at)?;
            if awake == at {
                return Some(at);
            }
            at = at_or_before(awake, period, phase)?;
        }
        None
    }

    /// Returns whether the UE reports in `slot`, which may have passed.
    #[inline]
    pub(crate) fn reports_in(&self, slot: u64) -> bool {
        self.last_reporting(slot) == Some(slot)
    }

    /// Returns the last slot up to `slot` in which the UE reports if it has a report.
    fn last_reporting(&self, slot: u64) -> Option<u64> {
        let within = |(from, until): (u64, u64)| (from < until && from <= slot).then(|| slot.min(until - 1));
        let on = self.last_start(slot).and_then(|start| within((start, start + self.on)));
        on.max(within((self.busy_from, self.expiry))).max(within(self.busy_before))
    }

    /// Returns when the short cycle is used from `expiry` on.
    #[inline]
    fn short_phase(&self) -> (u64, u64) {
        if self.expiry == 0 { (0, 0) } else { (self.expiry, self.expiry + self.short.1) }
    }

    /// Returns the end of the on-duration in `slot`, or a slot up to `slot` if there is none.
    #[inline]
    fn on_end(&self, slot: u64) -> u64 {
        self.last_start(slot).map_or(0, |start| start + self.on).max(self.on_before)
    }

    /// Returns the last beginning of an on-duration up to `slot`.
    #[inline]
    fn last_start(&self, slot: u64) -> Option<u64> {
        let long = at_or_before(slot, self.cycle, self.offset).filter(|start| *start >= self.began);
        if self.short.0 == 0 {
            return long;
        }
        let short = |(from, until): (u64, u64)| {
            let last = slot.min(until.checked_sub(1)?);
            at_or_before(last, self.short.0, self.offset).filter(|start| *start >= from)
        };
        // The long cycle is a multiple of the short one.
        long.max(short(self.short_phase())).max(short(self.short_before))
    }

    /// Returns the first beginning of an on-duration from `slot` on.
    fn next_start(&self, slot: u64) -> u64 {
        let long = at_or_after(slot, self.cycle, self.offset);
        if self.short.0 == 0 {
            return long;
        }
        let short = |(from, until): (u64, u64)| {
            let start = at_or_after(slot.max(from), self.short.0, self.offset);
            if start < until { start } else { NEVER }
        };
        long.min(short(self.short_phase())).min(short(self.short_before))
    }
}

#[cfg(test)]
mod tests;
