//! Scalable TCP: grows by a fixed step per acknowledged segment, so that recovery takes the same time at any rate.
//!
//! Source: T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks" (2003); Linux 6.1
//! `tcp_scalable.c`. The step of 0.01 and the decrease of 1/8 are those of the paper and Linux. The paper and Linux
//! before 4.8 count acknowledgements, however many segments each covers; later versions count segments.
//!
//! Deviation from Linux: step and decrease are parameters, because publications use different values (a step of 0.02 in
//! ns-3, 0.1 elsewhere).

use crate::loss_based::{Growth, LossBased, Window};
use crate::{AckSample, Ctx, Sign};
use units::check::Range;
use units::parameters;

/// Valid steps.
pub(crate) const VALID_STEP: Range<f64> = Range::above(0.0, 1.0);
/// Valid decreases.
pub(crate) const VALID_DECREASE: core::ops::RangeInclusive<f64> = 0.01..=0.99;

parameters! {
    /// The parameters in files. The defaults are the paper's and Linux's.
    #[derive(Copy)]
    pub struct Parameters {
        /// Growth of the window for each acknowledged segment, in segments.
        pub step: f64 = 0.01, in VALID_STEP;
        /// Fraction by which a loss reduces the window.
        pub decrease: f64 = 0.125, in VALID_DECREASE;
    }
}

/// Scalable's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalableConfig {
    /// Acknowledged segments per segment of growth: the inverse of the step. Below this window, growth is `NewReno`'s.
    pub acks_per_segment: u32,
    /// Reduction of the window by a loss, in 1024ths.
    pub decrease_1024ths: u32,
    /// Count acknowledgements instead of the segments they cover.
    pub per_acknowledgement: bool,
}

impl ScalableConfig {
    /// The parameters with a growth of `step` segments for each acknowledged one, and a reduction by this fraction of the window. The
    /// controller counts whole acknowledgements for a segment of growth, and 1024ths of the window.
    pub fn of(step: f64, decrease: f64, per_acknowledgement: bool) -> ScalableConfig {
        ScalableConfig {
            acks_per_segment: (1.0 / step).round().max(1.0) as u32,
            decrease_1024ths: (decrease * 1024.0).round() as u32,
            per_acknowledgement,
        }
    }
}

impl From<&Parameters> for ScalableConfig {
    fn from(&Parameters { step, decrease }: &Parameters) -> ScalableConfig {
        ScalableConfig::of(step, decrease, false)
    }
}

impl Default for ScalableConfig {
    fn default() -> ScalableConfig {
        ScalableConfig { acks_per_segment: 100, decrease_1024ths: 128, per_acknowledgement: false }
    }
}

/// Scalable's growth.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScalableGrowth {
    config: ScalableConfig,
}

impl ScalableGrowth {
    /// Creates the growth with its parameters, clamped to valid values: at least one acknowledgement per segment, and
    /// at most the whole window lost.
    pub fn new(config: ScalableConfig) -> ScalableGrowth {
        let acks_per_segment = config.acks_per_segment.max(1);
        let decrease_1024ths = config.decrease_1024ths.min(1024);
        ScalableGrowth { config: ScalableConfig { acks_per_segment, decrease_1024ths, ..config } }
    }
}

/// The Scalable TCP controller.
pub type Scalable = LossBased<ScalableGrowth>;

impl Scalable {
    /// Creates Scalable TCP with an initial window in segments.
    pub fn new(config: ScalableConfig, initial_window: u32) -> Scalable {
        LossBased::with_growth(ScalableGrowth::new(config), initial_window)
    }
}

impl Growth for ScalableGrowth {
    const NAME: &'static str = "scalable";

    fn reduce(&mut self, window: &Window, _sign: Sign, _cx: &mut Ctx) -> u32 {
        // MAX_CWND * 1024 = 2^31 fits.
        (window.cwnd - window.cwnd * self.config.decrease_1024ths / 1024).max(2)
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, acked: u32, _ack: &AckSample, _cx: &mut Ctx) {
        let acked = if self.config.per_acknowledgement { 1 } else { acked };
        window.grow_one_per(window.cwnd.min(self.config.acks_per_segment), acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;

    fn avoiding(config: ScalableConfig, cwnd: u32) -> Driver<Scalable> {
        let mut d = Driver::new(Scalable::new(config, cwnd));
        d.lose_and_recover();
        d
    }

    #[test]
    fn the_defaults_of_files_are_those_of_the_controller() {
        assert_eq!(ScalableConfig::from(&Parameters::default()), ScalableConfig::default());
    }

    #[test]
    fn a_loss_takes_an_eighth() {
        // 200 - 25; 15 - 1 (15 / 8 rounded down); 2 stays 2.
        for (before, after) in [(200, 175), (15, 14), (2, 2)] {
            assert_eq!(avoiding(ScalableConfig::default(), before).cwnd(), after);
        }
    }

    #[test]
    fn above_a_hundred_segments_each_hundred_acknowledged_add_one() {
        let mut d = avoiding(ScalableConfig::default(), 200);
        d.acked_singly(99);
        assert_eq!(d.cwnd(), 175);
        d.acked_singly(1);
        assert_eq!(d.cwnd(), 176);
        d.acked_singly(300);
        assert_eq!(d.cwnd(), 179);
    }

    #[test]
    fn below_it_growth_is_renos() {
        let mut d = avoiding(ScalableConfig::default(), 40);
        assert_eq!(d.cwnd(), 35);
        d.acked_singly(35);
        assert_eq!(d.cwnd(), 36);
    }

    #[test]
    fn step_and_decrease_are_parameters() {
        // Steps 0.02 and 0.1 are one segment for 50 and for 10 acknowledged; a decrease of 1/2 leaves 100.
        for (acks_per_segment, after_a_round) in [(50, 102), (10, 110)] {
            let mut d =
                avoiding(ScalableConfig { acks_per_segment, decrease_1024ths: 512, ..ScalableConfig::default() }, 200);
            assert_eq!(d.cwnd(), 100);
            d.acked_singly(100);
            assert_eq!(d.cwnd(), after_a_round);
        }
    }

    #[test]
    fn an_acknowledgement_of_two_segments_may_count_once() {
        for (per_acknowledgement, after_a_round) in [(false, 177), (true, 176)] {
            let mut d = avoiding(ScalableConfig { per_acknowledgement, ..ScalableConfig::default() }, 200);
            for _ in 0..100 {
                d.acked(2);
            }
            assert_eq!(d.cwnd(), after_a_round);
        }
    }
}
