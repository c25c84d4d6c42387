//! What a cell learns from reports of its UEs, and what they and MAC's headers cost.

use super::lte::reports as lte;
use super::nr::reports as nr;
use crate::mac::power;
use crate::mac::requests::{GROUPS, Report};

/// The reports of a cell's UEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// Of LTE.
    Lte,
    /// The cell of [`super::Rat::LteIdeal`] knows without reports what LTE's would tell it.
    Known,
    /// Of NR.
    Nr,
}

impl Reports {
    /// Returns whether MAC adds subheaders to what RLC has built. If not, there are none, or RLC has counted them.
    #[inline]
    pub(crate) fn adds_headers(self) -> bool {
        match self {
            Reports::Lte => true,
            Reports::Known | Reports::Nr => false,
        }
    }

    /// Returns whether the cell learns of uplink data by scheduling requests and buffer status reports. If not, it
    /// knows the buffers.
    #[inline]
    pub(crate) fn include_buffers(self) -> bool {
        match self {
            Reports::Lte | Reports::Nr => true,
            Reports::Known => false,
        }
    }

    /// Returns the report of the bytes that wait in each group.
    #[inline]
    pub(crate) fn report(self, waiting: [u32; GROUPS]) -> Report {
        match self {
            Reports::Lte | Reports::Known => lte::report(waiting),
            Reports::Nr => nr::report(waiting),
        }
    }

    /// Returns the size of that report with its subheader.
    #[inline]
    pub(crate) fn report_size(self, waiting: &[u32; GROUPS]) -> u32 {
        match self {
            Reports::Lte | Reports::Known => lte::report_size(waiting),
            Reports::Nr => nr::report_size(waiting),
        }
    }

    /// Returns the size of a power headroom report with its subheader.
    #[inline]
    pub(crate) fn headroom_report(self) -> u32 {
        match self {
            Reports::Lte | Reports::Known => lte::HEADROOM_REPORT,
            Reports::Nr => nr::HEADROOM_REPORT,
        }
    }

    /// Returns the level that a UE reports for a headroom in dB.
    #[inline]
    pub(crate) fn headroom_level(self, headroom_db: f64) -> u8 {
        match self {
            Reports::Lte | Reports::Known => power::level(headroom_db),
            Reports::Nr => power::nr_level(headroom_db),
        }
    }

    /// Returns the headroom in dB that a cell assumes for a level.
    #[inline]
    pub(crate) fn headroom_db(self, level: u8) -> f64 {
        match self {
            Reports::Lte | Reports::Known => power::level_db(level),
            Reports::Nr => power::nr_level_db(level),
        }
    }

    /// Whether the cell learns of a UE's power from power headroom reports. If not, it knows it.
    #[inline]
    pub(crate) fn include_power(self) -> bool {
        match self {
            Reports::Lte | Reports::Nr => true,
            Reports::Known => false,
        }
    }

    /// Whether RRC messages are carried by a bearer. If not, they arrive at once.
    #[inline]
    pub(crate) fn carry_signalling(self) -> bool {
        match self {
            Reports::Lte | Reports::Nr => true,
            Reports::Known => false,
        }
    }
}
