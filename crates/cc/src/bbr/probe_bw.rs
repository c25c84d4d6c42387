//! `ProbeBW`: cycles the pacing gain to find more bandwidth, and drains the resulting queue.

use super::bandwidth::UNIT;
use super::state::{Bbr, Mode};
use crate::{AckSample, Ctx};
use rand_core::Rng;

impl Bbr {
    /// Enters the cycle at a random phase other than the draining one.
    pub(super) fn start_probe_bw(&mut self, cx: &mut Ctx) {
        let draw = (u64::from(cx.random.next_u32()) * 7) >> 32;
        let phase = (8 - draw as u8) % 8;
        self.transition_to(Mode::ProbeBw { phase, since: self.delivered_at }, cx);
    }

    /// Moves to the next phase of the cycle when this one is complete.
    pub(super) fn advance_cycle(&mut self, ack: &AckSample, cx: &Ctx) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let elapsed = self.delivered_at.saturating_since(since).as_micros();
        let full_length = self.min_rtt.is_some_and(|rtt| elapsed > u64::from(rtt));
        if self.phase_done(full_length, ack, cx) {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % 8, since: self.delivered_at };
        }
    }

    fn phase_done(&self, full_length: bool, ack: &AckSample, cx: &Ctx) -> bool {
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_flight = self.in_network_at_departure(ack.prior_in_flight, cx);
        let bw = self.max_bw.get();
        if self.pacing_gain > UNIT {
            // Probing may need more than a round trip to increase the flight; a loss shows that it does not fit.
            full_length && (ack.lost > 0 || in_flight >= self.inflight_target(bw, self.pacing_gain))
        } else {
            full_length || in_flight <= self.inflight_target(bw, UNIT)
        }
    }
}
