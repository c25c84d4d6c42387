//! Startup: doubles the rate each round trip until the pipe is full.

use super::bandwidth::{Bandwidth, UNIT};

/// 2 / ln 2 = 2.885: the smallest gain that lets the rate double each round trip.
pub(super) const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// The growth per round, in 256ths, below which the estimate counts as not growing.
const GROWTH: u64 = UNIT as u64 * 5 / 4;
/// Number of rounds without growth after which the pipe is full.
const FULL_ROUNDS: u32 = 3;

/// Detects that the pipe is full: the estimate did not grow by a quarter in three rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// The estimate at the last growth.
    base: Bandwidth,
    rounds: u32,
    pub(super) reached: bool,
}

impl FullPipe {
    /// Called at the end of a round that was not application-limited.
    pub(super) fn on_round(&mut self, max_bw: Bandwidth) {
        if self.reached {
            return;
        }
        if u64::from(max_bw.0) >= (u64::from(self.base.0) * GROWTH) >> 8 {
            self.base = max_bw;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }

    /// Called at a timeout: measures growth from zero again.
    pub(super) fn on_timeout(&mut self) {
        self.base = Bandwidth::default();
    }

    /// Called when the reduction was spurious.
    pub(super) fn on_undo(&mut self) {
        self.base = Bandwidth::default();
        self.rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_rounds_without_a_quarter_more_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        for (bw, full) in [
            (1000, false),
            (1250, false), // 1250 >= 1000 * 1.25: growth
            (1500, false), // 1 of 3: below 1562
            (1561, false), // 2 of 3
            (1562, false), // 1250 * 320 / 256 = 1562.5, floored to 1562: growth, the count starts again
            (1900, false),
            (1900, false),
            (1900, true),
        ] {
            pipe.on_round(Bandwidth(bw));
            assert_eq!(pipe.reached, full, "{bw}");
        }
    }

    #[test]
    fn gains_are_the_kernels_fixed_point() {
        // 256 * 2.885 = 738.56.
        assert_eq!(HIGH_GAIN, 739);
    }
}
