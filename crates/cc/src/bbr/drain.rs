//! Drain: empties the queue built up in startup.

use super::bandwidth::UNIT;
use super::state::{Bbr, Mode, Version};
use crate::Ctx;

impl Bbr {
    /// Changes from startup to drain when the pipe is full, and on to probe-bw once the data in flight fits into the
    /// pipe.
    pub(super) fn check_drain(&mut self, in_flight: u32, cx: &mut Ctx) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            if self.version == Version::Linux6_1 {
                self.ssthresh = self.inflight_target(self.max_bw.get(), UNIT);
            }
            self.transition_to(Mode::Drain, cx);
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(in_flight, cx) <= self.inflight_target(self.max_bw.get(), UNIT)
        {
            self.start_probe_bw(cx);
        }
    }
}
