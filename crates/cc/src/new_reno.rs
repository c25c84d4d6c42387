//! `NewReno`: grows by one segment per round trip and halves the window after a loss.
//!
//! Source: RFC 5681 section 3.1, in segments as in Linux 6.1 `tcp_cong.c` (`tcp_reno_cong_avoid`, `tcp_reno_ssthresh`).
//! The endpoint decides which segments are retransmitted (RFC 6582).
//!
//! No deviation from Linux. Deviation from RFC 5681: the threshold is half of the window, not of the data in flight.

use crate::loss_based::{Growth, LossBased, Window};
use crate::{AckSample, Ctx, Sign};

/// `NewReno`'s growth: 1/cwnd for each acknowledged segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

/// The `NewReno` controller.
pub type NewReno = LossBased<Reno>;

impl NewReno {
    /// Creates `NewReno` with an initial window in segments.
    pub fn new(initial_window: u32) -> NewReno {
        LossBased::with_growth(Reno, initial_window)
    }
}

/// Returns half of the window, at least 2 (RFC 5681 equation 4).
pub(crate) fn half(window: &Window) -> u32 {
    (window.cwnd >> 1).max(2)
}

impl Growth for Reno {
    const NAME: &'static str = "reno";

    fn reduce(&mut self, window: &Window, _sign: Sign, _cx: &mut Ctx) -> u32 {
        half(window)
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample, _cx: &mut Ctx) {
        window.grow_one_per(window.cwnd, acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::{Controller, Event, ExitCause};

    #[test]
    fn slow_start_doubles_each_round() {
        let mut d = Driver::new(NewReno::new(10));
        for expected in [20, 40, 80] {
            d.acked_singly(d.cwnd());
            assert_eq!(d.cwnd(), expected);
        }
    }

    #[test]
    fn a_loss_halves_and_avoidance_adds_one_each_round() {
        let mut d = Driver::new(NewReno::new(40));
        d.lose_and_recover();
        assert_eq!(d.log[0], Event::SlowStartExit { cause: ExitCause::Congestion, cwnd: 40 });
        for expected in 21..30 {
            d.acked_singly(d.cwnd());
            assert_eq!((d.cwnd(), d.c.state()), (expected, "avoidance"));
        }
    }

    #[test]
    fn a_stretched_acknowledgement_counts_all_its_segments() {
        let mut d = Driver::new(NewReno::new(40));
        d.lose_and_recover();
        // 45 = 20 + 25 - 0: two steps at 20 each, 5 left.
        d.acked(45);
        assert_eq!((d.cwnd(), d.c.window().credit), (22, 5));
    }

    #[test]
    fn the_threshold_is_at_least_two() {
        assert_eq!(half(&Window { cwnd: 3, ssthresh: 9, credit: 0 }), 2);
    }
}
