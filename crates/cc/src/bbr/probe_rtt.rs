//! `ProbeRTT`: every ten seconds, keeps four segments in flight for 200 ms and a round trip, to measure the RTT without
//! queueing.

use super::state::{Bbr, MIN_CWND, Mode};
use crate::{AckSample, Ctx};
use units::{Span, Time};

/// Validity of a minimum RTT.
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// Time for which the flight is kept small, in addition to a round trip.
const DURATION: Span = Span::from_millis(200);

impl Bbr {
    /// Tracks the minimum RTT, enters the mode when it has expired, and leaves the mode when it was measured.
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample, cx: &mut Ctx) {
        let expired = cx.now.saturating_since(self.min_rtt_at) > MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt.map(crate::loss_based::micros)
            && (self.min_rtt.is_none_or(|min| rtt < min) || (expired && !ack.rate.maybe_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = cx.now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.transition_to(Mode::ProbeRtt { done_at: None, round_done: false }, cx);
            self.save_cwnd();
        }
        if let Mode::ProbeRtt { done_at, round_done } = self.mode {
            self.self_limited.extend(self.delivered, ack.in_flight);
            match done_at {
                None if ack.in_flight <= MIN_CWND => {
                    self.mode = Mode::ProbeRtt { done_at: Some(cx.now + DURATION), round_done: false };
                    self.round_ends = self.delivered;
                }
                None => {}
                Some(at) => {
                    let round_done = round_done || self.round_start;
                    self.mode = Mode::ProbeRtt { done_at, round_done };
                    if round_done {
                        self.leave_probe_rtt_after(at, cx);
                    }
                }
            }
        }
        if ack.rate.delivered.is_some_and(|n| n > 0) {
            self.idle_restart = false;
        }
    }

    /// A restart from idle has kept the path empty long enough, regardless of rounds.
    pub(super) fn probe_rtt_after_idle(&mut self, cx: &mut Ctx) {
        if let Mode::ProbeRtt { done_at: Some(at), .. } = self.mode {
            self.leave_probe_rtt_after(at, cx);
        }
    }

    fn leave_probe_rtt_after(&mut self, at: Time, cx: &mut Ctx) {
        if cx.now > at {
            self.min_rtt_at = cx.now;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            if self.full_pipe.reached {
                self.start_probe_bw(cx);
            } else {
                self.transition_to(Mode::Startup, cx);
            }
        }
    }
}
