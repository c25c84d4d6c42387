//! Radio access technologies: slots, grants, blocks and acknowledgements of a cell.
//!
//! A cell is created with four values of its technology, and the rest of the crate asks these instead of knowing a
//! technology:
//! - [`Timing`]: slots, and the delays between grants, data and feedback; HARQ processes;
//! - [`Formats`]: what a slot carries, and the schemes, sizes and errors of transport blocks;
//! - [`Reports`]: what UEs report of their buffers and their power, and what this and MAC's headers cost;
//! - [`Wants`]: what is asked of the schedulers, which divide the carrier's [`Grid`].
//!
//! Each is an enumeration of the technologies, whose methods call the functions of a technology's folder: `lte`, whose
//! idealised variant `ideal` differs in what it reports and how it divides the carrier, and `nr`. These know neither UEs nor
//! the network.
//!
//! # Adding a technology
//! 1. Add a variant to [`Rat`], to the values that differ from those of other technologies, and a folder with their
//!    functions; the compiler lists what is missing.
//! 2. Put its tables in a module of `channel::tables`, and its block error model beside `channel::phy`.
//! 3. Add its RLC and PDCP entities beside `rlc/lte`; `pdcp::Concatenation` states how a PDU contains parts of several SDUs.
//! 4. Make it selectable per cell in the scenario: cells of different technologies and slot lengths share one network, whose
//!    calendar ticks at the shortest slot of all cells.
//! 5. Add a test with an independent oracle (the standard's tables, another simulator). `determinism.rs` shows that the other
//!    technologies have not changed.

mod formats;
mod grid;
mod ideal;
mod lte;
pub(crate) mod nr;
mod reports;
mod timing;
mod wants;

pub(crate) use formats::Formats;
pub(crate) use grid::{Grid, Sizes};
pub(crate) use reports::Reports;
pub(crate) use timing::Timing;
pub(crate) use wants::Wants;

use nr::Nr;
use units::Span;

/// The radio access technology of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rat {
    /// LTE in FDD, according to 36.211 to 36.322.
    #[default]
    Lte,
    /// LTE with the idealisations of ns-3's LTE module, for comparison with it and with results published on it:
    /// - the eNodeB knows each UE's buffer levels in every TTI, quantised but without delay, error or cost: there are
    ///   no scheduling requests, no random access, and no reports in transport blocks; it also knows each UE's power;
    /// - MAC has no headers;
    /// - the uplink has no control region, and divides the carrier into equal parts, of three blocks at least, in turn;
    /// - the downlink leaves out the last resource block group if it is smaller than the others (one block of 25), and
    ///   round robin leaves out the remainder when it divides the groups; a UE that is served gets its part whether it
    ///   can fill it or not;
    /// - RRC messages arrive at once and without error.
    LteIdeal,
    /// NR, according to 38.211 to 38.323.
    Nr(Nr),
}

impl Rat {
    /// Returns the length of a slot.
    #[inline]
    pub fn slot(self) -> Span {
        self.timing().slot()
    }

    /// Returns whether bearers use NR's RLC and PDCP, and LTE's UE categories limit nothing.
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

    /// Returns when things happen in its cells.
    #[inline]
    pub(crate) fn timing(self) -> Timing {
        match self {
            Rat::Lte | Rat::LteIdeal => Timing::Lte,
            Rat::Nr(nr) => Timing::Nr(nr::timing::Timing(nr)),
        }
    }

    /// Returns the blocks of its cells.
    #[inline]
    pub(crate) fn formats(self) -> Formats {
        match self {
            Rat::Lte | Rat::LteIdeal => Formats::Lte,
            Rat::Nr(nr) => Formats::Nr(nr::formats::Formats::new(nr)),
        }
    }

    /// Returns the division of a carrier of `prbs` resource blocks.
    pub(crate) fn grid(self, prbs: u16) -> Grid {
        match self {
            Rat::Lte => lte::carrier::grid(prbs),
            Rat::LteIdeal => ideal::grid(prbs),
            Rat::Nr(nr) => nr::carrier::grid(&nr, prbs),
        }
    }

    /// Returns what UEs report.
    pub(crate) fn reports(self) -> Reports {
        match self {
            Rat::Lte => Reports::Lte,
            Rat::LteIdeal => Reports::Known,
            Rat::Nr(_) => Reports::Nr,
        }
    }

    /// Returns what is asked of schedulers.
    pub(crate) fn wants(self) -> Wants {
        match self {
            Rat::Lte | Rat::Nr(_) => Wants::Use,
            Rat::LteIdeal => Wants::Parts,
        }
    }
}
