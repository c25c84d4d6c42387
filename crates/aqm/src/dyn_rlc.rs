//! DynRLC: limits the number of SDUs in RLC so that their delay there meets a target (Kumar, Francini, Panwar, Sharma:
//! Dynamic control of RLC buffer size for latency minimization in mobile RAN, WCNC 2018).
//!
//! The paper's pseudo-code is not public. This implements what its public descriptions and a re-implementation by
//! authors who compare their work with it agree on: SDUs are passed down while fewer than a threshold are in RLC. At
//! the end of each interval, the mean time of SDUs in RLC is compared with a target. Above the target, the threshold
//! shrinks by a tenth of its distance from the minimum; otherwise it grows by a tenth of its distance from the maximum,
//! at least by one.
//!
//! The method is patented (US 11,425,592 B2). It is implemented for comparison in simulations; no deployed component
//! offers it.

use core::ops::RangeInclusive;
use std::collections::VecDeque;

use units::check::Check;
use units::{Span, Time, parameters};

use crate::Completion;

/// Initial threshold in SDUs, as in the re-implementation.
const INITIAL: u32 = 10;

/// Targets and intervals that are of use.
const TIMES: RangeInclusive<Span> = Span::from_millis(1)..=Span::from_secs(100);

parameters! {
    /// The target, and how the threshold follows it. The interval and the minimum are the re-implementation's; the maximum is
    /// 500 kB of full-sized packets; the target is the lower one of 003.
    #[derive(Copy, Eq)]
    pub struct Config {
        /// The delay threshold: the intended maximum time of a packet in the buffer.
        // DLT.
        pub target: Span = Span::from_millis(20), in TIMES;
        /// Interval between changes of the limit.
        pub interval: Span = Span::from_millis(200), in TIMES;
        /// Minimum of the limit, in packets.
        pub min: u32 = 2;
        /// Maximum of the limit, in packets; 333 full-sized packets are 500 kB.
        pub max: u32 = 333, in 1..=1_000_000;
        /// When a packet counts as having left the buffer.
        pub completed: Completion = Completion::default();
    } with check_bounds()
}

impl Config {
    fn check_bounds(&self, c: &mut Check) {
        c.range("min", self.min, 1..=self.max);
    }
}

/// The threshold and its estimator's state.
#[derive(Clone, Debug)]
pub struct DynRlc {
    config: Config,
    threshold: u32,
    /// When the SDUs in RLC entered it.
    inside: VecDeque<Time>,
    /// Total time in RLC of the SDUs that left in this interval, and their number.
    spent: (Span, u64),
    /// End of the interval.
    ends: Time,
}

impl DynRlc {
    /// Creates the threshold in its initial state.
    pub fn new(config: Config) -> DynRlc {
        DynRlc {
            config,
            threshold: INITIAL.clamp(config.min, config.max),
            inside: VecDeque::new(),
            spent: (Span::ZERO, 0),
            ends: Time::ZERO + config.interval,
        }
    }

    /// Returns the threshold in SDUs.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Returns whether filling must stop until something has left.
    pub fn is_stopped(&self) -> bool {
        self.inside.len() >= self.threshold as usize
    }

    /// Reports that an SDU was added.
    pub fn queued(&mut self, now: Time) {
        self.inside.push_back(now);
    }

    /// Reports that `sdus` have left, in whichever order: they count as the oldest, which leaves the sum of their times
    /// the same.
    pub fn completed(&mut self, sdus: u64, now: Time) {
        for since in self.inside.drain(..self.inside.len().min(sdus as usize)) {
            self.spent.0 += now.saturating_since(since);
            self.spent.1 += 1;
        }
        if now >= self.ends && self.spent.1 > 0 {
            let Config { target, min, max, .. } = self.config;
            let mean = self.spent.0 / self.spent.1;
            self.threshold = if mean > target {
                self.threshold.saturating_sub((self.threshold.saturating_sub(min) / 10).max(1)).max(min)
            } else {
                (self.threshold + (max.saturating_sub(self.threshold) / 10).max(1)).min(max)
            };
            self.spent = (Span::ZERO, 0);
            self.ends = now + self.config.interval;
        }
    }
}
