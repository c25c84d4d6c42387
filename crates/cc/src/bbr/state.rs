//! The state of the model, and the gains of its modes.

use super::aggregation::Aggregation;
use super::bandwidth::{MaxFilter, UNIT};
use super::policer::Policer;
use super::startup::FullPipe;
use crate::Phase;
use units::Time;

/// The smallest window: two segments each for a receiver that acknowledges every other one.
pub(super) const MIN_CWND: u32 = 4;
/// The inverse of startup's gain: what startup queued in a round leaves in a round.
pub(super) const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;

/// The window in this mode: two pipes, because acknowledgements come late and in bunches.
pub(super) const CWND_GAIN: u32 = UNIT * 2;
/// The pacing gains of the eight phases: probe, drain, cruise.
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];

/// The pacing gain of a phase.
pub(super) fn cycle_gain(phase: u8) -> u32 {
    CYCLE[usize::from(phase) % CYCLE.len()]
}

/// Where the model stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    /// In a phase of the cycle, since a moment.
    ProbeBw {
        phase: u8,
        since: Time,
    },
    /// With the moment of the end, once the flight is small, and whether a round has passed since.
    ProbeRtt {
        done_at: Option<Time>,
        round_done: bool,
    },
}

/// The BBR controller.
#[derive(Clone, Debug)]
pub struct Bbr {
    pub(super) mode: Mode,
    pub(super) cwnd: u32,
    /// The window before loss recovery or `ProbeRTT` cut it.
    pub(super) prior_cwnd: u32,
    pub(super) ssthresh: u32,
    /// In bytes per second; 0 before the first event.
    pub(super) pacing_rate: u64,
    /// Segments of a millisecond at that rate, which the window provides for, and the fewest that leave together.
    pub(super) burst: u32,
    pub(super) least_burst: u32,
    pub(super) pacing_gain: u32,
    pub(super) cwnd_gain: u32,

    pub(super) max_bw: MaxFilter,
    /// In microseconds, and when it was seen.
    pub(super) min_rtt: Option<u32>,
    pub(super) min_rtt_at: Time,
    pub(super) full_pipe: FullPipe,
    pub(super) policer: Policer,
    pub(super) aggregation: Aggregation,

    /// Rounds by delivery: one ends when a segment is delivered that was sent after the last one's end.
    pub(super) rounds: u32,
    pub(super) round_ends: u64,
    pub(super) round_start: bool,

    /// The phase of loss recovery at the acknowledgement before.
    pub(super) phase: Phase,
    /// The first round of recovery: as much leaves as arrives.
    pub(super) conserving: bool,
    pub(super) idle_restart: bool,
    pub(super) self_limited: SelfLimited,

    pub(super) started: bool,
    pub(super) has_seen_rtt: bool,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The last acknowledgement that delivered something.
    pub(super) delivered_at: Time,
}

/// The rounds sent with a window that this mode limits, by the count of delivered segments at their sending: their rate
/// samples say nothing of the path (Linux marks them by setting `tp->app_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelfLimited {
    from: u64,
    until: u64,
}

impl SelfLimited {
    /// Whether a segment sent when so many were delivered was sent under the mode's limit.
    pub(super) fn covers(&self, delivered: u64) -> bool {
        self.until > 0 && (self.from..=self.until).contains(&delivered)
    }

    pub(super) fn extend(&mut self, delivered: u64, in_flight: u32) {
        if !self.covers(delivered) {
            self.from = delivered;
        }
        self.until = (delivered + u64::from(in_flight)).max(1);
    }
}
