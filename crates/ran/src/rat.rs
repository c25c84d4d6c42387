//! Radio access technologies: slots, grants, blocks and acknowledgements of a cell.
//!
//! Schedulers, the calendar, bearers, mobility and statistics use [`Rat`] instead of knowing a technology: the length
//! of a slot, the timing of grants, data and feedback, the division of the carrier, the size of a transport block, the
//! number of HARQ processes, and what MAC knows of a UE's buffers. Each property is a method here, and its values are
//! in a file for each technology.
//!
//! To add a technology, add a variant, a file with the same functions, and its tables in `channel`; the compiler lists
//! what is missing.

mod ideal;
mod kind;
mod lte;

pub use kind::Rat;
pub(crate) use kind::{Grid, Need, Sizes, Timing};

use aqm::{Drops, Packet};
use units::Span;

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

impl Rat {
    /// Returns the length of a slot.
    #[inline]
    pub fn slot(self) -> Span {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::SLOT,
        }
    }

    #[inline]
    pub(crate) fn timing(self) -> &'static Timing {
        match self {
            Rat::Lte | Rat::LteIdeal => &lte::TIMING,
        }
    }

    /// Returns the number of HARQ processes of a direction, at most 16.
    #[inline]
    pub(crate) fn processes(self) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::PROCESSES,
        }
    }

    /// Returns the HARQ process of a new uplink transmission in `slot`.
    #[inline]
    pub(crate) fn uplink_process(self, slot: u64) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::uplink_process(slot),
        }
    }

    pub(crate) fn grid(self, prbs: u16) -> Grid {
        match self {
            Rat::Lte => lte::grid(prbs),
            Rat::LteIdeal => ideal::grid(prbs),
        }
    }

    /// Returns the schedulers of downlink and uplink.
    pub(crate) fn schedulers(self, downlink: Discipline, uplink: Discipline) -> (Scheduler, Scheduler) {
        match self {
            Rat::Lte => (Scheduler::new(downlink), Scheduler::new(uplink)),
            Rat::LteIdeal => ideal::schedulers(downlink, uplink),
        }
    }

    /// Returns the number of resource blocks of its widest carrier.
    #[inline]
    pub(crate) fn widest(self) -> u16 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::WIDEST,
        }
    }

    /// Returns the bits of a downlink code word with `mcs` on `prbs` resource blocks.
    #[inline]
    pub(crate) fn downlink_bits(self, mcs: u8, prbs: u16) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::downlink_bits(mcs, prbs),
        }
    }

    /// Returns the bits of an uplink block with `mcs` on `prbs` resource blocks.
    #[inline]
    pub(crate) fn uplink_bits(self, mcs: u8, prbs: u16) -> u32 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::uplink_bits(mcs, prbs),
        }
    }

    /// Returns `mcs`, or the next lower one if `mcs` cannot be decoded on `prbs` resource blocks.
    #[inline]
    pub(crate) fn usable(self, mcs: u8, prbs: u16) -> u8 {
        match self {
            Rat::Lte | Rat::LteIdeal => lte::usable(mcs, prbs),
        }
    }

    /// Returns whether transport blocks have MAC headers.
    #[inline]
    pub(crate) fn has_headers(self) -> bool {
        match self {
            Rat::Lte => true,
            Rat::LteIdeal => false,
        }
    }

    /// Returns whether the cell learns of uplink data by scheduling requests and buffer status reports. If not, it
    /// knows the buffers.
    #[inline]
    pub(crate) fn reports_buffers(self) -> bool {
        match self {
            Rat::Lte => true,
            Rat::LteIdeal => false,
        }
    }

    /// Whether the cell learns of a UE's power from power headroom reports. If not, it knows it.
    #[inline]
    pub(crate) fn reports_power(self) -> bool {
        match self {
            Rat::Lte => true,
            Rat::LteIdeal => false,
        }
    }

    /// Whether RRC messages are carried by a bearer. If not, they arrive at once.
    #[inline]
    pub(crate) fn carries_signalling(self) -> bool {
        match self {
            Rat::Lte => true,
            Rat::LteIdeal => false,
        }
    }

    /// How many of a downlink carrier's `groups` a UE is a candidate for that can fill
    /// `useful`.
    #[inline]
    pub(crate) fn downlink_want(self, useful: impl FnOnce() -> u16, groups: u16) -> u16 {
        match self {
            Rat::Lte => useful(),
            Rat::LteIdeal => ideal::downlink_want(groups),
        }
    }

    /// What `ue` needs of the grants that are made in `slot`.
    #[inline]
    pub(crate) fn uplink_need<P: Packet>(self, ue: &Ue<P>, slot: u64) -> Need {
        match self {
            Rat::Lte => lte::uplink_need(ue),
            Rat::LteIdeal => ideal::uplink_need(ue, slot),
        }
    }

    /// `ue` as a candidate for one of `free` uplink resource blocks, to carry `need` bytes; `None` if no block can carry
    /// what it has.
    #[inline]
    pub(crate) fn uplink_candidate<P: Packet>(
        self,
        ran: &mut Ran<P>,
        index: u32,
        (need, free): (u32, u16),
        slot: u64,
    ) -> Option<Candidate> {
        match self {
            Rat::Lte => lte::uplink_candidate(ran, index, (need, free), slot),
            Rat::LteIdeal => Some(ideal::uplink_candidate(index, free)),
        }
    }

    /// Bytes of an uplink grant of `bytes` that are left for data.
    #[inline]
    pub(crate) fn uplink_payload(self, bytes: u32) -> u32 {
        match self {
            Rat::Lte => lte::uplink_payload(bytes),
            Rat::LteIdeal => bytes,
        }
    }

    /// Builds the uplink block of `process`: data and, where they are reported, buffer status and power headroom. Returns
    /// the bytes that nothing was left for.
    #[inline]
    pub(crate) fn fill_uplink<P: Packet, D: Drops<P>, S: Sink>(
        self,
        ran: &mut Ran<P>,
        index: u32,
        process: u8,
        slot: u64,
        io: &mut Io<'_, D, S>,
    ) -> u32 {
        match self {
            Rat::Lte => lte::fill_uplink(ran, index, process, slot, io),
            Rat::LteIdeal => ideal::fill_uplink(ran, index, process, slot, io),
        }
    }
}
