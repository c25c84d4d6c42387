//! Where loss recovery stands.

use cc::Phase;
use units::Time;

/// Where recovery stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    pub(crate) phase: Phase,
    /// SND.NXT when the phase began (`high_seq`).
    pub(crate) high: u64,
    /// SND.UNA when the reaction began that may still be undone (`undo_marker`).
    pub(super) marker: Option<u64>,
    /// The end of the first segment that a report made retransmit, which may lie beyond what the receiver was about to
    /// acknowledge: only from there on an acknowledgement tells of it.
    pub(crate) early: u64,
    /// Retransmissions since that no D-SACK has told to be needless; `None` before the first.
    pub(super) needed: Option<u32>,
    /// When the first retransmission of the episode left (`retrans_stamp`).
    pub(crate) retransmitted_at: Option<Time>,
    /// An undo restores the window: no mark asked for the reduction as well.
    pub(super) restores: bool,
    /// F-RTO is finding out whether the time-out was spurious.
    pub(crate) f_rto: bool,
    /// F-RTO step 2b: new data is to be sent before anything is retransmitted.
    pub(crate) new_data_first: bool,
    /// It was sent, and the next acknowledgement tells.
    pub(crate) hold: bool,
}

impl Recovery {
    pub(crate) fn note_retransmission(&mut self, now: Time) {
        self.retransmitted_at.get_or_insert(now);
        self.needed = Some(self.needed.unwrap_or(0) + 1);
    }

    /// The reduction that begins cannot be undone.
    pub(crate) fn forget_undo(&mut self) {
        self.restores = false;
        self.marker = None;
    }

    /// A D-SACK told of so many needless retransmissions that end after `end`.
    pub(crate) fn on_needless(&mut self, end: u64, count: u32) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(needed) = &mut self.needed
        {
            *needed = needed.saturating_sub(count);
        }
    }

    /// Whether what is acknowledged up to `end` is from before this reaction.
    pub(crate) fn has_marker(&self) -> bool {
        self.marker.is_some()
    }

    pub(super) fn reduces(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }
}
