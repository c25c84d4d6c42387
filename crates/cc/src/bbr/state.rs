//! The state of the model, and the gains of its modes.

use super::aggregation::Aggregation;
use super::bandwidth::{MaxFilter, UNIT};
use super::policer::Policer;
use super::startup::FullPipe;
use crate::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Time, parameters};

/// The minimum window: two segments in each direction for a receiver that acknowledges every other segment.
pub(super) const MIN_CWND: u32 = 4;
/// The inverse of startup's gain: what startup queues in a round drains in a round.
pub(super) const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;

/// The window's gain in this mode: two pipes, to allow for delayed and aggregated acknowledgements.
pub(super) const CWND_GAIN: u32 = UNIT * 2;
/// The pacing gains of the eight phases: probe, drain, cruise.
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];

/// Returns the pacing gain of a phase.
pub(super) fn cycle_gain(phase: u8) -> u32 {
    CYCLE[usize::from(phase) % CYCLE.len()]
}

/// The state of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    /// In a phase of the gain cycle, since a given time.
    ProbeBw {
        phase: u8,
        since: Time,
    },
    /// With the end time, once the flight is small, and whether a round has passed since.
    ProbeRtt {
        done_at: Option<Time>,
        round_done: bool,
    },
}

/// A version of BBR, by the Linux that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BbrLinux")]
pub enum Version {
    /// Linux 4.9: without room for aggregated acknowledgements in the window.
    // The room came with 5.1 (commit 78dc70ebaa38). It has no slow-start threshold after startup either, and 4.17 is the last.
    #[serde(rename = "4.9")]
    Linux4_9,
    /// Linux 6.1.
    #[default]
    #[serde(rename = "6.1")]
    Linux6_1,
}

parameters! {
    /// The parameters in files.
    #[derive(Copy, Eq)]
    pub struct Parameters {
        /// The version of Linux whose BBR to follow.
        #[serde(skip_serializing_if = "crate::is_default")]
        pub linux: Version = Version::Linux6_1;
    }
}

/// The BBR controller.
#[derive(Clone, Debug)]
pub struct Bbr {
    pub(super) version: Version,
    pub(super) mode: Mode,
    pub(super) cwnd: u32,
    /// The window before loss recovery or `ProbeRTT` reduced it.
    pub(super) prior_cwnd: u32,
    pub(super) ssthresh: u32,
    /// In bytes per second; 0 before the first event.
    pub(super) pacing_rate: u64,
    /// Segments sent in a millisecond at that rate, included in the window, and the minimum size of a burst.
    pub(super) burst: u32,
    pub(super) least_burst: u32,
    pub(super) pacing_gain: u32,
    pub(super) cwnd_gain: u32,

    pub(super) max_bw: MaxFilter,
    /// Minimum RTT in microseconds, and when it was measured.
    pub(super) min_rtt: Option<u32>,
    pub(super) min_rtt_at: Time,
    pub(super) full_pipe: FullPipe,
    pub(super) policer: Policer,
    pub(super) aggregation: Aggregation,

    /// Round count: a round ends when a segment is delivered that was sent after the end of the previous one.
    pub(super) rounds: u32,
    pub(super) round_ends: u64,
    pub(super) round_start: bool,

    /// The phase of loss recovery at the previous acknowledgement.
    pub(super) phase: Phase,
    /// Whether this is the first round of recovery, with packet conservation.
    pub(super) conserving: bool,
    pub(super) idle_restart: bool,
    pub(super) self_limited: SelfLimited,

    pub(super) started: bool,
    pub(super) has_seen_rtt: bool,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// When an acknowledgement last delivered data.
    pub(super) delivered_at: Time,
}

/// The rounds limited by this mode's window, by the count of segments delivered when a segment was sent: their rate
/// samples do not reflect the path (Linux marks them by setting `tp->app_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SelfLimited {
    from: u64,
    until: u64,
}

impl SelfLimited {
    /// Returns whether a segment sent at this delivery count was limited by the mode.
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
