//! Radio access technologies: slots, grants, blocks and acknowledgements of a cell.
//!
//! Schedulers, the calendar, bearers, mobility and statistics use [`Rat`] instead of knowing a technology: the length
//! of a slot and what it carries, the timing of grants, data and feedback, the division of the carrier, the size of a
//! transport block and its errors, the number of HARQ processes, and what MAC knows of a UE's buffers. Each property is
//! a method here, and its values are in a file for each technology. [`reported`] holds what technologies share whose
//! UEs report their buffers and their power.
//!
//! # Adding a technology
//! 1. Add a variant to [`Rat`] and a file with the same functions; the compiler lists what is missing.
//! 2. Put its tables in a module of `channel::tables`, and its block error model beside `channel::phy`.
//! 3. Add its RLC and PDCP entities beside `rlc/lte`; `pdcp::Concatenation` states how a PDU contains parts of several SDUs.
//! 4. Make it selectable per cell in the scenario: cells of different technologies and slot lengths share one network, whose
//!    calendar ticks at the shortest slot of all cells.
//! 5. Add a test with an independent oracle (the standard's tables, another simulator). `determinism.rs` shows that the other
//!    technologies have not changed.

mod grid;
mod ideal;
mod kind;
mod lte;
pub(crate) mod nr;
mod reported;

pub(crate) use grid::{Grid, Need, Sizes};
pub use kind::Rat;

use core::ops::Range;

use aqm::{Drops, Packet};
use channel::{Direction, Modulation, Sinr, Soft};
use units::Span;

use crate::mac::power;
use crate::mac::requests::{GROUPS, Report};
use crate::mac::sched::{Candidate, Discipline, Scheduler};
use crate::network::{Io, Ran};
use crate::stats::Sink;
use crate::ue::Ue;

impl Sizes {
    /// Returns the largest size of at most `prbs` resource blocks.
    #[inline]
    pub(crate) fn up_to(self, prbs: u16) -> u16 {
        match self {
            Sizes::Smooth => lte::uplink_size(prbs),
            Sizes::Any => prbs,
        }
    }

    /// Returns the smallest size of at least `prbs` resource blocks.
    #[inline]
    pub(crate) fn from(self, prbs: u16) -> u16 {
        match self {
            Sizes::Smooth => lte::uplink_size_from(prbs),
            Sizes::Any => prbs,
        }
    }
}

/// Slots and delays. Delays are in slots of the cell.
impl Rat {
    /// Returns whether bearers use NR's RLC and PDCP.
    #[inline]
    pub(crate) fn is_nr(self) -> bool {
        matches!(self, Rat::Nr(_))
    }

    /// Returns whether grants and acknowledgements can be sent.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Rat::Lte | Rat::LteIdeal => true,
            Rat::Nr(nr) => nr.is_valid(),
        }
    }

    /// Returns the length of a slot.
    #[inline]
    pub fn slot(self) -> Span {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::SLOT,
            Rat::Nr(nr) => nr.numerology.slot(),
        }
    }

    /// Returns the technology with the resources of `slot`, of which `uplink` symbols are granted in the uplink if slots
    /// are flexible.
    #[inline]
    pub(crate) fn in_slot(self, slot: u64, uplink: u8) -> Rat {
        match self {
            Rat::Lte | Rat::LteIdeal => self,
            Rat::Nr(nr) => Rat::Nr(nr.in_slot(slot, uplink)),
        }
    }

    /// Returns how many of the first `slots` slots carry data of a direction.
    pub(crate) fn slots_with(self, direction: Direction, slots: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slots,
            Rat::Nr(nr) => nr.slots_with(direction, slots),
        }
    }

    /// Returns whether the slot at hand ([`Rat::in_slot`]) carries data of a direction.
    #[inline]
    pub(crate) fn carries(self, direction: Direction) -> bool {
        match self {
            Rat::Lte | Rat::LteIdeal => true,
            Rat::Nr(nr) => nr.carries(direction),
        }
    }

    /// Returns the resource elements of a resource block that carry data of a direction in the slot at hand, 1 if all
    /// slots are alike.
    #[inline]
    pub(crate) fn elements(self, direction: Direction) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => 1,
            Rat::Nr(nr) => nr.elements(direction),
        }
    }

    /// Returns the same of the slots that carry the most; of flexible slots, whose symbols are divided by demand, each does.
    #[inline]
    pub(crate) fn most_elements(self, direction: Direction) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => 1,
            Rat::Nr(nr) => nr.most_elements(direction),
        }
    }

    /// Returns whether the slot at hand carries less than half as much of a direction as others: the block of a UE is small.
    #[inline]
    pub(crate) fn is_short(self, direction: Direction) -> bool {
        2 * self.elements(direction) < self.most_elements(direction)
    }

    /// Returns whether no slot carries more of a direction than the slot at hand. Only there does a UE get a block that is
    /// too small for its channel's scheme: in a shorter slot, it waits.
    #[inline]
    pub(crate) fn is_longest(self, direction: Direction) -> bool {
        self.elements(direction) >= self.most_elements(direction)
    }

    /// Returns the uplink symbols of a flexible slot in which a resource block has this many resource elements, or all of
    /// them; `None` if grants of the uplink do not divide the slot's symbols between the directions.
    #[inline]
    pub(crate) fn uplink_symbols(self, elements: u32) -> Option<u8> {
        match self {
            Rat::Nr(nr) if nr.duplex == nr::Duplex::Flexible => Some(nr.uplink_symbols(elements)),
            _ => None,
        }
    }

    /// Returns the maximum decoding time for a block to be acknowledged in time.
    pub(crate) fn longest_decoding(self) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::LONGEST_DECODING,
            Rat::Nr(nr) => nr.k1.into(),
        }
    }

    /// Returns when the cell knows whether a downlink block sent in `slot` was decoded.
    #[inline]
    pub(crate) fn feedback(self, slot: u64, decoding: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::DATA_TO_REUSE,
            Rat::Nr(nr) => nr.acknowledged(slot) + 1 + decoding,
        }
    }

    /// Returns the first slot in which a UE listens for the retransmission of a downlink block sent in `slot` that was not
    /// decoded; `rtt` are slots from its acknowledgement if the technology has a timer for them.
    #[inline]
    pub(crate) fn downlink_retransmission(self, slot: u64, rtt: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::DATA_TO_REUSE,
            Rat::Nr(nr) => nr.acknowledged(slot) + 1 + rtt,
        }
    }

    /// Returns the first slot in which a UE listens for a grant to repeat an uplink block sent in `slot`; `rtt` are slots
    /// from its end if the technology has a timer for them.
    #[inline]
    pub(crate) fn uplink_retransmission(self, slot: u64, rtt: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::DATA_TO_NACK,
            Rat::Nr(_) => slot + 1 + rtt,
        }
    }

    /// Returns the slots whose uplink is granted in `slot`.
    #[inline]
    pub(crate) fn granted_in(self, slot: u64) -> Range<u64> {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::GRANT_TO_DATA..slot + lte::GRANT_TO_DATA + 1,
            Rat::Nr(nr) => nr.granted_in(slot),
        }
    }

    /// Returns the first slot whose uplink cannot have been granted before `slot`.
    pub(crate) fn ungranted_from(self, slot: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::GRANT_TO_DATA,
            Rat::Nr(nr) => nr.ungranted_from(slot),
        }
    }

    /// Returns when an uplink block sent in `slot` is known to have failed: by the UE, which repeats it at once, or, if
    /// repetitions are granted, by the cell.
    #[inline]
    pub(crate) fn uplink_failure(self, slot: u64, decoding: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::DATA_TO_NACK,
            Rat::Nr(_) => slot + 1 + decoding,
        }
    }

    /// Returns the slot in which a UE repeats a block that it has known to have failed since `slot`; `None` if that needs a
    /// grant.
    #[inline]
    pub(crate) fn repetition(self, slot: u64) -> Option<u64> {
        match self {
            Rat::Lte | Rat::LteIdeal => Some(slot + lte::GRANT_TO_DATA),
            Rat::Nr(_) => None,
        }
    }

    /// Returns the number of slots after which the directions of slots repeat.
    #[inline]
    pub(crate) fn pattern_slots(self) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => 1,
            Rat::Nr(nr) => nr.pattern_slots(),
        }
    }

    /// Returns whether a UE can send a scheduling request in `slot`.
    #[inline]
    pub(crate) fn carries_requests(self, slot: u64) -> bool {
        match self {
            Rat::Lte | Rat::LteIdeal => true,
            Rat::Nr(nr) => nr.has_uplink_control(slot),
        }
    }

    /// Returns when the cell can respond to a scheduling request sent in `slot`.
    #[inline]
    pub(crate) fn request_known(self, slot: u64, decoding: u64) -> u64 {
        match self {
            Rat::Lte | Rat::LteIdeal => slot + lte::REQUEST_TO_GRANT,
            Rat::Nr(_) => slot + 1 + decoding,
        }
    }

    /// Returns the number of HARQ processes of a direction, at most 16.
    #[inline]
    pub(crate) fn processes(self) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::PROCESSES,
            Rat::Nr(nr) => nr.processes,
        }
    }

    /// Returns whether grants that recur after `period` slots can be configured: always in slots that are all uplink.
    pub(crate) fn configurable(self, period: u16) -> bool {
        match self {
            Rat::Lte | Rat::LteIdeal => false,
            Rat::Nr(nr) => nr.configurable(period),
        }
    }

    /// Returns the HARQ process of a new uplink transmission in `slot`, or `None` if any idle one may be used.
    #[inline]
    pub(crate) fn uplink_process(self, slot: u64) -> Option<u8> {
        match self {
            Rat::Lte | Rat::LteIdeal => Some(lte::uplink_process(slot)),
            Rat::Nr(_) => None,
        }
    }
}

/// The carrier, and blocks on it.
impl Rat {
    /// Returns the division of a carrier of `prbs` resource blocks.
    pub(crate) fn grid(self, prbs: u16) -> Grid {
        match self {
            Rat::Lte => lte::grid(prbs),
            Rat::LteIdeal => ideal::grid(prbs),
            Rat::Nr(_) => nr::Nr::grid(prbs),
        }
    }

    /// Returns whether control channels have room for a limited number of assignments and grants.
    #[inline]
    pub(crate) fn limits_control(self) -> bool {
        match self {
            Rat::Lte | Rat::Nr(_) => true,
            Rat::LteIdeal => false,
        }
    }

    /// Returns the control channel elements of a slot on a carrier of `prbs` resource blocks.
    pub(crate) fn control_elements(self, prbs: u16) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::control_elements(prbs),
            Rat::Nr(nr) => nr.control_elements(prbs),
        }
    }

    /// Returns whether `slot` has a control channel of the downlink.
    pub(crate) fn carries_grants(self, slot: u64) -> bool {
        match self {
            Rat::Lte | Rat::LteIdeal => true,
            Rat::Nr(nr) => nr.has_control(slot),
        }
    }

    /// Returns the schedulers of downlink and uplink.
    pub(crate) fn schedulers(self, downlink: Discipline, uplink: Discipline) -> (Scheduler, Scheduler) {
        match self {
            Rat::Lte | Rat::Nr(_) => (Scheduler::new(downlink), Scheduler::new(uplink)),
            Rat::LteIdeal => ideal::schedulers(downlink, uplink),
        }
    }

    /// Returns the number of resource blocks of its widest carrier.
    #[inline]
    pub(crate) fn widest(self) -> u16 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::WIDEST,
            Rat::Nr(_) => nr::WIDEST,
        }
    }

    /// Returns the maximum number of layers of the downlink.
    #[inline]
    pub(crate) fn most_layers(self) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => 2,
            Rat::Nr(_) => 4,
        }
    }

    /// Returns the number of code words of a block on `layers`.
    #[inline]
    pub(crate) fn words(self, layers: u8) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => layers,
            Rat::Nr(_) => 1,
        }
    }

    /// Returns the bits of a code word of a downlink block with `mcs` and `layers` on `prbs` resource blocks.
    #[inline]
    pub(crate) fn downlink_bits(self, mcs: u8, layers: u8, prbs: u16) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::downlink_bits(mcs, prbs),
            Rat::Nr(nr) => nr.bits(Direction::Downlink, mcs, layers, prbs),
        }
    }

    /// Returns the bits of an uplink block with `mcs` on `prbs` resource blocks.
    #[inline]
    pub(crate) fn uplink_bits(self, mcs: u8, prbs: u16) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::uplink_bits(mcs, prbs),
            Rat::Nr(nr) => nr.bits(Direction::Uplink, mcs, 1, prbs),
        }
    }

    /// Returns `mcs`, or the next lower one if `mcs` cannot be decoded on `layers` and `prbs` resource blocks.
    #[inline]
    pub(crate) fn usable(self, direction: Direction, (mcs, layers): (u8, u8), prbs: u16) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::usable(mcs, prbs),
            Rat::Nr(nr) => nr.usable(direction, (mcs, layers), prbs),
        }
    }

    /// Returns what a resource block of the uplink carries in the slot at hand.
    #[inline]
    pub(crate) fn uplink_rates(self) -> power::Rates {
        match self {
            Rat::Lte | Rat::LteIdeal => power::Rates::Lte,
            Rat::Nr(nr) => {
                let way = Direction::Uplink;
                power::Rates::Nr { table: nr.tables[way as usize], elements: nr.elements(way) as u16 }
            }
        }
    }

    /// Returns the largest MCS index of a direction.
    #[inline]
    pub(crate) fn best_mcs(self, direction: Direction) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::BEST_MCS,
            Rat::Nr(nr) => nr.best_mcs(direction),
        }
    }

    /// Returns the bytes of the smallest block of a direction: headers leave room for data. In LTE's downlink, these are a
    /// subheader and the header of a segment in AM.
    #[inline]
    pub(crate) fn least_bytes(self, direction: Direction) -> u32 {
        match (self, direction) {
            (Rat::Lte | Rat::LteIdeal, Direction::Downlink) => 7,
            (Rat::Lte | Rat::LteIdeal, Direction::Uplink) => 1,
            (Rat::Nr(_), _) => channel::tables::nr::LEAST_BITS / 8,
        }
    }

    /// Returns the lowest MCS of an uplink block on `prbs` resource blocks: headers and a report leave room for data.
    #[inline]
    pub(crate) fn least_mcs(self, prbs: u16) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::least_mcs(prbs),
            Rat::Nr(nr) => nr.least_mcs(prbs),
        }
    }

    /// Returns an SINR in dB from which on the uplink's lowest MCS ([`Rat::least_mcs`]) can be decoded on any number of
    /// resource blocks.
    #[inline]
    pub(crate) fn robust_sinr_db(self) -> f32 {
        match self {
            // A single resource block has the highest of them.
            Rat::Lte | Rat::LteIdeal => self.uplink_sinr_db(lte::least_mcs(1)),
            Rat::Nr(nr) => nr.uplink_sinr_db(nr.best_mcs(Direction::Uplink)),
        }
    }

    /// Returns the modulation of an MCS.
    #[inline]
    pub(crate) fn modulation(self, direction: Direction, mcs: u8) -> Modulation {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::modulation(direction, mcs),
            Rat::Nr(nr) => nr.modulation(direction, mcs),
        }
    }

    /// Returns the coded bits of a code word sent with `modulation` on `layers` and `prbs` resource blocks.
    #[inline]
    pub(crate) fn coded_bits(self, direction: Direction, modulation: Modulation, layers: u8, prbs: u16) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::coded_bits(direction, modulation, prbs),
            Rat::Nr(nr) => nr.coded_bits(direction, modulation, layers, prbs),
        }
    }

    /// Returns the probability, 0 to 1, that a code word of `bits` with `mcs` cannot be decoded with this information.
    #[inline]
    pub(crate) fn block_error(self, direction: Direction, mcs: u8, bits: u32, soft: &Soft) -> f64 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::block_error(bits, soft),
            Rat::Nr(nr) => nr.block_error(direction, mcs, bits, soft),
        }
    }

    /// Returns the largest CQI, up to 15, whose block would fail with a probability of at most 10 % on the resource blocks
    /// `prbs`; 0 if there is none.
    #[inline]
    pub(crate) fn cqi(self, sinr: &Sinr, prbs: Option<Range<u16>>) -> u8 {
        match (self, prbs) {
            (Rat::Lte | Rat::LteIdeal, None) => channel::wideband_cqi(sinr),
            (Rat::Lte | Rat::LteIdeal, Some(prbs)) => channel::phy::subband_cqi(sinr, prbs),
            (Rat::Nr(nr), prbs) => nr.cqi(sinr, prbs),
        }
    }

    /// Returns the downlink's MCS for a reported CQI, shifted by `offset_db`.
    #[inline]
    pub(crate) fn mcs_for(self, cqi: u8, offset_db: f32) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::mcs_for(cqi, Direction::Downlink, offset_db),
            Rat::Nr(nr) => nr.mcs_for(cqi, offset_db),
        }
    }

    /// Returns the minimum SINR in dB that gives a CQI.
    #[inline]
    pub(crate) fn cqi_sinr_db(self, cqi: u8) -> f32 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::phy::cqi_sinr_db(cqi),
            Rat::Nr(nr) => nr.cqi_sinr_db(cqi),
        }
    }

    /// Returns the minimum SINR in dB of a downlink MCS.
    #[inline]
    pub(crate) fn downlink_sinr_db(self, mcs: u8) -> f32 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::phy::MCS_SINR_DB[Direction::Downlink as usize][usize::from(mcs)],
            Rat::Nr(nr) => nr.downlink_sinr_db(mcs),
        }
    }

    /// Returns the probability that the first transmission of a downlink block with an MCS fails at an SINR in dB.
    #[inline]
    pub(crate) fn downlink_error(self, mcs: u8, sinr_db: f32) -> f64 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::phy::first_error(Direction::Downlink, mcs, sinr_db),
            Rat::Nr(nr) => nr.downlink_error(mcs, sinr_db),
        }
    }

    /// Returns the uplink's MCS at an SINR in dB.
    #[inline]
    pub(crate) fn uplink_mcs_at(self, sinr_db: f32, has_64qam: bool) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal if has_64qam => channel::phy::mcs_at(sinr_db, Direction::Uplink),
            Rat::Lte | Rat::LteIdeal => channel::phy::mcs_at_16qam(sinr_db),
            Rat::Nr(nr) => nr.uplink_mcs_at(sinr_db),
        }
    }

    /// Returns the minimum SINR in dB of an uplink MCS.
    #[inline]
    pub(crate) fn uplink_sinr_db(self, mcs: u8) -> f32 {
        match self {
            Rat::Lte | Rat::LteIdeal => channel::phy::MCS_SINR_DB[Direction::Uplink as usize][usize::from(mcs)],
            Rat::Nr(nr) => nr.uplink_sinr_db(mcs),
        }
    }
}

/// What is reported, and headers.
impl Rat {
    /// Returns whether MAC adds subheaders to what RLC has built. If not, there are none, or RLC has counted them.
    #[inline]
    pub(crate) fn adds_headers(self) -> bool {
        match self {
            Rat::Lte => true,
            Rat::LteIdeal | Rat::Nr(_) => false,
        }
    }

    /// Returns whether the cell learns of uplink data by scheduling requests and buffer status reports. If not, it
    /// knows the buffers.
    #[inline]
    pub(crate) fn reports_buffers(self) -> bool {
        match self {
            Rat::Lte | Rat::Nr(_) => true,
            Rat::LteIdeal => false,
        }
    }

    /// Returns the report of the bytes that wait in each group.
    #[inline]
    pub(crate) fn report(self, waiting: [u32; GROUPS]) -> Report {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::report(waiting),
            Rat::Nr(_) => nr::report(waiting),
        }
    }

    /// Returns the size of that report with its subheader.
    #[inline]
    pub(crate) fn report_size(self, waiting: &[u32; GROUPS]) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::report_size(waiting),
            Rat::Nr(_) => nr::report_size(waiting),
        }
    }

    /// Returns the size of a power headroom report with its subheader.
    #[inline]
    pub(crate) fn headroom_report(self) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::HEADROOM_REPORT,
            Rat::Nr(_) => nr::HEADROOM_REPORT,
        }
    }

    /// Returns the level that a UE reports for a headroom in dB.
    #[inline]
    pub(crate) fn headroom_level(self, headroom_db: f64) -> u8 {
        if self.is_nr() { power::nr_level(headroom_db) } else { power::level(headroom_db) }
    }

    /// Returns the headroom in dB that a cell assumes for a level.
    #[inline]
    pub(crate) fn headroom_db(self, level: u8) -> f64 {
        if self.is_nr() { power::nr_level_db(level) } else { power::level_db(level) }
    }

    /// Whether the cell learns of a UE's power from power headroom reports. If not, it knows it.
    #[inline]
    pub(crate) fn reports_power(self) -> bool {
        match self {
            Rat::Lte | Rat::Nr(_) => true,
            Rat::LteIdeal => false,
        }
    }

    /// Whether RRC messages are carried by a bearer. If not, they arrive at once.
    #[inline]
    pub(crate) fn carries_signalling(self) -> bool {
        match self {
            Rat::Lte | Rat::Nr(_) => true,
            Rat::LteIdeal => false,
        }
    }

    /// How many of a downlink carrier's `groups` a UE is a candidate for that can fill
    /// `useful`.
    #[inline]
    pub(crate) fn downlink_want(self, useful: impl FnOnce() -> u16, groups: u16) -> u16 {
        match self {
            Rat::Lte | Rat::Nr(_) => useful(),
            Rat::LteIdeal => ideal::downlink_want(groups),
        }
    }

    /// What `ue` needs of the grants that are made in `slot`.
    #[inline]
    pub(crate) fn uplink_need<P: Packet>(&self, ue: &mut Ue<P>, slot: u64) -> Need {
        match self {
            Rat::Lte | Rat::Nr(_) => reported::uplink_need(self, ue),
            Rat::LteIdeal => ideal::uplink_need(ue, slot),
        }
    }

    /// `ue` as a candidate for one of `free` uplink resource blocks, to carry `need` bytes; `None` if no block can carry
    /// what it has.
    #[inline]
    pub(crate) fn uplink_candidate<P: Packet>(
        &self,
        ran: &mut Ran<P>,
        index: u32,
        (need, free): (u32, u16),
        slot: u64,
    ) -> Option<Candidate> {
        match self {
            Rat::Lte | Rat::Nr(_) => reported::uplink_candidate(self, ran, index, (need, free), slot),
            Rat::LteIdeal => Some(ideal::uplink_candidate(index, free)),
        }
    }

    /// Bytes of an uplink grant of `bytes` that are left for data.
    #[inline]
    pub(crate) fn uplink_payload(&self, bytes: u32) -> u32 {
        match self {
            Rat::Lte | Rat::Nr(_) => reported::uplink_payload(self, bytes),
            Rat::LteIdeal => bytes,
        }
    }

    /// Builds the uplink block of `process`: data and, where they are reported, buffer status and power headroom. Returns
    /// the bytes that nothing was left for.
    #[inline]
    pub(crate) fn fill_uplink<P: Packet, D: Drops<P>, S: Sink>(
        &self,
        ran: &mut Ran<P>,
        index: u32,
        process: u8,
        slot: u64,
        io: &mut Io<'_, D, S>,
    ) -> u32 {
        match self {
            Rat::Lte | Rat::Nr(_) => reported::fill_uplink(self, ran, index, process, slot, io),
            Rat::LteIdeal => ideal::fill_uplink(ran, index, process, slot, io),
        }
    }
}
