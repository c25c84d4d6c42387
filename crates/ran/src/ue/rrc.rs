//! The connection of a UE to its cells, and what decides about it.

use units::Time;

use crate::handover::{Measurements, Sync};
use crate::stats::DirectionStats;

/// The state of a UE's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The serving cell serves it.
    Connected,
    /// It is served, and a handover to `target` is being prepared.
    Preparing { target: usize },
    /// It is served, and the command to change to `target` has been sent.
    Commanded { target: usize },
    /// Not served since `since`: the UE is accessing `target`, and gives up at `deadline`.
    Moving { target: usize, since: Time, deadline: Time },
    /// Not served since `since`: the UE searches for a cell.
    Searching { since: Time },
}

/// See the module.
pub(crate) struct Rrc {
    pub(crate) link: Link,
    pub(crate) measurements: Measurements,
    pub(crate) sync: Sync,
    /// Whether the calendar has an entry for its next measurement.
    pub(crate) measures: bool,
    /// Whether its cell heard it at the last measurement ([`crate::mac::reach`]).
    pub(crate) is_heard: bool,
    /// It has found no cell, and searches again when its channel changes.
    pub(crate) dormant: bool,
    /// The cell that it was connected to last, and when it came there, with the downlink's counters then.
    pub(crate) served_by: usize,
    pub(crate) connected: (Time, DirectionStats),
}

impl Rrc {
    /// Creates the state of a UE that is connected to `serving`.
    pub(crate) fn new(measurements: Measurements, serving: usize) -> Rrc {
        Rrc {
            link: Link::Connected,
            measurements,
            sync: Sync::default(),
            measures: false,
            is_heard: true,
            dormant: false,
            served_by: serving,
            connected: (Time::ZERO, DirectionStats::default()),
        }
    }

    /// Returns whether a cell serves it.
    #[inline]
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.link, Link::Connected | Link::Preparing { .. } | Link::Commanded { .. })
    }

    /// Returns whether its cell has not heard it for long enough to send it no more data ([`crate::mac::reach`]).
    #[inline]
    pub(crate) fn is_unheard(&self) -> bool {
        !self.is_heard && self.sync.is_t310_running()
    }

    /// Forgets the measurements of the cell that the UE leaves, whose calendar entries are stale.
    pub(crate) fn leave(&mut self) {
        self.sync = Sync::default();
        self.measurements.forget();
        self.measures = false;
        self.is_heard = true;
        self.dormant = false;
    }
}
