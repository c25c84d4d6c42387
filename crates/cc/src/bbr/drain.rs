//! Drain: empties the queue that startup built.

use super::bandwidth::UNIT;
use super::state::{Bbr, Mode};
use crate::Ctx;

impl Bbr {
    /// Goes from startup to drain when the pipe is full, and on to probing once what is in flight fits the pipe.
    pub(super) fn check_drain(&mut self, in_flight: u32, cx: &mut Ctx) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.ssthresh = self.inflight_target(self.max_bw.get(), UNIT);
            self.transition_to(Mode::Drain, cx);
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(in_flight, cx) <= self.inflight_target(self.max_bw.get(), UNIT)
        {
            self.start_probe_bw(cx);
        }
    }
}
